/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See profile.h. A view reads the endpoint's variables under the engine's lock. Between start_reads and end_reads it
 * returns a copy made at the start: the application may make other calls in between, so the lock is not held.
 */
#include "common/endpoint/profile.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/ops/ops.h"

#define VAR_CNT		(FI_VAR_OFI_MEM + 1)
#define EVENT_CNT	(FI_EVENT_UNEXP_MSG_MATCHED + 1)

typedef int event_fn(struct fid_profile *fid, struct fi_profile_desc *event, void *data, size_t size, void *context);

/* A view, opened by fi_profile_open(). One thread at a time uses it; the engine's lock guards callbacks and link. */
struct profile {
	struct fid_profile fid;
	struct fab_ep *ep;		/* borrowed: views are closed before it */
	struct fab_list link;		/* in ep->views.profiles */
	uint64_t reset[VAR_CNT];	/* values of accumulating variables at the last fi_profile_reset() */
	bool frozen;			/* between start_reads and end_reads: return the copies below */
	uint64_t value[VAR_CNT];
	struct fi_cq_tagged_entry *queue;	/* owned; NULL: empty, or no memory */
	size_t queue_cnt;
	struct {
		event_fn *fn;		/* NULL: not registered */
		void *context;
	} callback[EVENT_CNT];
};

#define NUMBER(ID, NAME, DESC)										\
	[ID] = { .id = ID, .datatype_sel = fi_primitive_type, .datatype.primitive = FI_UINT64,			\
		 .size = sizeof(uint64_t), .name = NAME, .desc = DESC }
#define MESSAGES(ID, NAME, DESC)									\
	[ID] = { .id = ID, .datatype_sel = fi_defined_type, .datatype.defined = FI_TYPE_CQ_FORMAT,		\
		 .size = sizeof(struct fi_cq_tagged_entry), .name = NAME, .desc = DESC }

static const struct fi_profile_desc var_desc[VAR_CNT] = {
	NUMBER(FI_VAR_UNEXP_MSG_CNT, "unexp_msg_cnt", "messages that wait for a receive"),
	MESSAGES(FI_VAR_UNEXP_MSG_QUEUE, "unexp_msg_queue",
		 "those messages, untagged ones first: struct fi_cq_tagged_entry each"),
	NUMBER(FI_VAR_MSG_QUEUE_CNT, "msg_queue_cnt", "receives that wait for a message"),
	NUMBER(FI_VAR_CONNECTION_CNT, "connection_cnt", "connections there are"),
	NUMBER(FI_VAR_CONN_REQUEST, "conn_request", "connections that peers have asked for so far"),
	NUMBER(FI_VAR_CONN_ACCEPT, "conn_accept", "of those, accepted"),
	NUMBER(FI_VAR_CONN_REJECT, "conn_reject", "of those, refused"),
	NUMBER(FI_VAR_OFI_MEM, "ofi_mem", "bytes of memory of the provider"),
};

static const struct fi_profile_desc event_desc[EVENT_CNT] = {
	MESSAGES(FI_EVENT_UNEXP_MSG_RECVD, "unexp_msg_recvd", "a message came that no receive was posted for"),
	MESSAGES(FI_EVENT_UNEXP_MSG_MATCHED, "unexp_msg_matched", "a receive has taken such a message"),
};

static struct profile *profile_of(struct fid_profile *fid)
{
	return fab_container(fid, struct profile, fid);
}

static bool has_var(const struct profile *profile, uint32_t id)
{
	return id < VAR_CNT && (profile->ep->views.profiler->vars & FAB_PROFILE_BIT(id));
}

/* ---- variables ---- */

static ssize_t list(struct fi_profile_desc *to, size_t *count, const struct fi_profile_desc *desc, uint32_t mask)
{
	size_t room = to ? *count : 0, cnt = 0;

	for (; mask; mask &= mask - 1, cnt++) {
		if (cnt < room)
			to[cnt] = desc[__builtin_ctz(mask)];
	}
	*count = cnt;
	return (ssize_t) fab_min(cnt, room);
}

static ssize_t query_vars(struct fid_profile *fid, struct fi_profile_desc *varlist, size_t *count)
{
	return count ? list(varlist, count, var_desc, profile_of(fid)->ep->views.profiler->vars) : -FI_EINVAL;
}

static ssize_t query_events(struct fid_profile *fid, struct fi_profile_desc *eventlist, size_t *count)
{
	uint32_t all = profile_of(fid)->ep->views.profiler->events ? (1u << EVENT_CNT) - 1 : 0;

	return count ? list(eventlist, count, event_desc, all) : -FI_EINVAL;
}

/* Lock held. */
static uint64_t value_now(const struct profile *profile, uint32_t id)
{
	return profile->ep->views.profiler->read(profile->ep, id) - profile->reset[id];
}

static uint64_t read_number(struct profile *profile, uint32_t id)
{
	uint64_t value;

	if (profile->frozen)
		return profile->value[id];
	fab_engine_lock(profile->ep->engine);
	value = value_now(profile, id);
	fab_engine_unlock(profile->ep->engine);
	return value;
}

static ssize_t read_queue(struct profile *profile, struct fi_cq_tagged_entry *entry, size_t *size)
{
	size_t room = *size / sizeof(*entry), cnt = profile->queue_cnt;

	if (profile->frozen && cnt && !profile->queue)
		return -FI_ENOMEM;
	if (!profile->frozen) {
		fab_engine_lock(profile->ep->engine);
		cnt = profile->ep->views.profiler->queue(profile->ep, entry, room);
		fab_engine_unlock(profile->ep->engine);
	} else if (fab_min(cnt, room)) {
		memcpy(entry, profile->queue, fab_min(cnt, room) * sizeof(*entry));
	}
	*size = cnt * sizeof(*entry);
	return (ssize_t) (fab_min(cnt, room) * sizeof(*entry));
}

static ssize_t read_var(struct fid_profile *fid, uint32_t id, void *data, size_t *size)
{
	struct profile *profile = profile_of(fid);
	uint64_t value;

	if (!size || !has_var(profile, id) || (!data && *size))
		return -FI_EINVAL;
	if (id == FI_VAR_UNEXP_MSG_QUEUE)
		return read_queue(profile, data, size);
	if (*size < sizeof(value)) {
		*size = sizeof(value);
		return -FI_ETOOSMALL;
	}
	value = read_number(profile, id);
	memcpy(data, &value, sizeof(value));
	*size = sizeof(value);
	return sizeof(value);
}

static void reset(struct fid_profile *fid, uint64_t flags)
{
	struct profile *profile = profile_of(fid);
	struct fab_ep *ep = profile->ep;
	uint32_t mask = ep->views.profiler->vars & FAB_PROFILE_REQUESTS;

	(void) flags;
	fab_engine_lock(ep->engine);
	for (; mask; mask &= mask - 1) {
		uint32_t id = (uint32_t) __builtin_ctz(mask);

		profile->reset[id] = ep->views.profiler->read(ep, id);
	}
	fab_engine_unlock(ep->engine);
}

/* ---- start_reads and end_reads ---- */

static void end_reads(struct fid_profile *fid, uint64_t flags)
{
	struct profile *profile = profile_of(fid);

	(void) flags;
	free(profile->queue);
	profile->queue = NULL;
	profile->queue_cnt = 0;
	profile->frozen = false;
}

/* Lock held. */
static void copy_queue(struct profile *profile)
{
	struct fab_ep *ep = profile->ep;
	size_t cnt = ep->views.profiler->queue(ep, NULL, 0);

	profile->queue_cnt = cnt;
	profile->queue = cnt ? malloc(cnt * sizeof(*profile->queue)) : NULL;
	if (profile->queue)
		ep->views.profiler->queue(ep, profile->queue, cnt);
}

static void start_reads(struct fid_profile *fid, uint64_t flags)
{
	struct profile *profile = profile_of(fid);
	struct fab_ep *ep = profile->ep;
	uint32_t mask = ep->views.profiler->vars & ~FAB_PROFILE_BIT(FI_VAR_UNEXP_MSG_QUEUE);

	end_reads(fid, flags);
	fab_engine_lock(ep->engine);
	for (; mask; mask &= mask - 1) {
		uint32_t id = (uint32_t) __builtin_ctz(mask);

		profile->value[id] = value_now(profile, id);
	}
	if (has_var(profile, FI_VAR_UNEXP_MSG_QUEUE))
		copy_queue(profile);
	fab_engine_unlock(ep->engine);
	profile->frozen = true;
}

/* ---- events ---- */

static int reg_callback(struct fid_profile *fid, uint32_t event_id, event_fn *fn, void *context)
{
	struct profile *profile = profile_of(fid);

	if (event_id >= EVENT_CNT || !profile->ep->views.profiler->events)
		return -FI_EINVAL;
	fab_engine_lock(profile->ep->engine);
	profile->callback[event_id].fn = fn;
	profile->callback[event_id].context = context;
	fab_engine_unlock(profile->ep->engine);
	return 0;
}

void fab_profile_event(struct fab_ep *ep, uint32_t event_id, const struct fi_cq_tagged_entry *msg)
{
	struct fab_list *link;

	fab_list_for_each(&ep->views.profiles, link) {
		struct profile *profile = fab_container(link, struct profile, link);
		struct fi_profile_desc desc = event_desc[event_id];
		struct fi_cq_tagged_entry copy = *msg;

		if (profile->callback[event_id].fn)
			profile->callback[event_id].fn(&profile->fid, &desc, &copy, sizeof(copy),
						       profile->callback[event_id].context);
	}
}

/* ---- open and close ---- */

static int profile_close(struct fid *fid)
{
	struct profile *profile = fab_container(fid, struct profile, fid.fid);

	fab_engine_lock(profile->ep->engine);
	fab_list_remove(&profile->link);
	fab_engine_unlock(profile->ep->engine);
	free(profile->queue);
	free(profile);
	return 0;
}

static struct fi_ops profile_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = profile_close,
};

static struct fi_profile_ops profile_ops = {
	.size = sizeof(struct fi_profile_ops),
	.reset = reset,
	.query_vars = query_vars,
	.query_events = query_events,
	.read_var = read_var,
	.reg_callback = reg_callback,
	.start_reads = start_reads,
	.end_reads = end_reads,
};

int fab_ep_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	struct fab_ep *ep = fab_ep_of(fid);
	struct profile *profile;

	if (!name || strcmp(name, "fi_profile_ops") || !ep->views.profiler) {
		FI_INFO(ep->domain->fabric->prov, FI_LOG_EP_CTRL, "fi_open_ops: this endpoint has no \"%s\"\n",
			name ? name : "");
		return -FI_ENOSYS;
	}
	if (flags)
		return -FI_EBADFLAGS;
	profile = calloc(1, sizeof(*profile));
	if (!profile)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&profile_fid_ops);
	profile->fid = (struct fid_profile) {
		.fid = { .fclass = FI_CLASS_PROFILE, .context = context, .ops = &profile_fid_ops }, .ops = &profile_ops,
	};
	profile->ep = ep;
	fab_engine_lock(ep->engine);
	fab_list_add_tail(&ep->views.profiles, &profile->link);
	fab_engine_unlock(ep->engine);
	*ops = &profile->fid.ops;	/* fi_profile_open() finds the view from the address of this member */
	return 0;
}
