/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_cntr(3): reading, changing, waiting, open and close.
 */
#include "common/queue/cntr.h"

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>
#include "base/bits.h"
#include "common/ops/ops.h"
#include "common/queue/queue_open.h"

static struct fab_cntr *cntr_of(struct fid_cntr *fid)
{
	return fab_container(fid, struct fab_cntr, cntr_fid);
}

static uint64_t now(_Atomic uint64_t *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

/* True if there is an event for a sleeper: its threshold is reached, or there was an error. For a thread that sleeps on
 * the descriptor any change is an event. */
static bool cntr_has_event(struct fab_wait *wait)
{
	struct fab_cntr *cntr = fab_container(wait, struct fab_cntr, wait);

	if (now(&cntr->err) != cntr->err_seen)
		return true;
	return wait->outside ? now(&cntr->value) != cntr->value_seen : now(&cntr->value) >= cntr->wake_value;
}

static bool unchanged(struct fab_cntr *cntr)
{
	return now(&cntr->value) == cntr->value_seen && now(&cntr->err) == cntr->err_seen;
}

/* ---- peer counters ---- */

/* Report changes to the owner, by one call for each operation. */
static void tell_owner(struct fab_cntr *cntr)
{
	const struct fi_ops_cntr_owner *ops = cntr->peer->owner_ops;

	for (; cntr->told != now(&cntr->value); cntr->told++)
		ops->inc(cntr->peer);
	for (; cntr->told_err != now(&cntr->err); cntr->told_err++)
		ops->incerr(cntr->peer);
}

void fab_cntr_changed(struct fab_cntr *cntr)
{
	if (cntr->peer)
		tell_owner(cntr);
	if (cntr->reached)
		cntr->reached(cntr);
}

/* The owner's counter in the context of FI_PEER; NULL: invalid, logged. */
static struct fid_peer_cntr *cntr_peer_of(const struct fab_domain *domain, const struct fi_peer_cntr_context *context)
{
	const struct fi_ops_cntr_owner *ops;

	if (context && context->size >= sizeof(*context) && context->cntr) {
		ops = context->cntr->owner_ops;
		if (ops && FI_CHECK_OP(ops, struct fi_ops_cntr_owner, inc) &&
		    FI_CHECK_OP(ops, struct fi_ops_cntr_owner, incerr))
			return context->cntr;
	}
	FI_WARN(domain->fabric->prov, FI_LOG_CNTR, "fi_cntr_open with FI_PEER: the context must be a struct "
		"fi_peer_cntr_context, with a cntr whose owner_ops have inc and incerr\n");
	return NULL;
}

/* ---- reading ---- */

/* Read *value for the application, and store it in *seen. */
static uint64_t cntr_look(struct fab_cntr *cntr, _Atomic uint64_t *value, uint64_t *seen)
{
	struct fab_engine *engine = fab_engine_enter_of(&cntr->wait.engine);
	uint64_t ret;

	if (now(value) == *seen)
		fab_engine_run(engine);
	else
		fab_engine_attend(engine);
	ret = *seen = now(value);
	if (unchanged(cntr))
		fab_wait_drained(&cntr->wait);
	fab_engine_unlock(engine);
	return ret;
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct fab_cntr *cntr = cntr_of(fid);

	return cntr_look(cntr, &cntr->value, &cntr->value_seen);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct fab_cntr *cntr = cntr_of(fid);

	return cntr_look(cntr, &cntr->err, &cntr->err_seen);
}

/* ---- changing ---- */

/* A change by the application. Works that it triggers begin now. */
static void change_locked(struct fab_cntr *cntr, _Atomic uint64_t *value, uint64_t by)
{
	bool armed = cntr->armed;

	fab_cntr_bump(cntr, value, by);
	if (armed)
		fab_engine_flush(cntr->wait.engine);
}

static int cntr_change(struct fab_cntr *cntr, _Atomic uint64_t *value, uint64_t by)
{
	struct fab_engine *engine = fab_engine_lock_of(&cntr->wait.engine);

	change_locked(cntr, value, by);
	fab_engine_unlock(engine);
	return 0;
}

static int cntr_add(struct fid_cntr *fid, uint64_t by)
{
	return cntr_change(cntr_of(fid), &cntr_of(fid)->value, by);
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t by)
{
	return cntr_change(cntr_of(fid), &cntr_of(fid)->err, by);
}

/* Set a value by adding the difference, modulo 2^64. */
static int set(struct fab_cntr *cntr, _Atomic uint64_t *value, uint64_t to)
{
	struct fab_engine *engine = fab_engine_lock_of(&cntr->wait.engine);

	change_locked(cntr, value, to - now(value));
	fab_engine_unlock(engine);
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t to)
{
	return set(cntr_of(fid), &cntr_of(fid)->value, to);
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t to)
{
	return set(cntr_of(fid), &cntr_of(fid)->err, to);
}

/* ---- waiting ---- */

/* Check a wait. 1: it continues; 0: the threshold is reached; -FI_EAVAIL: an operation has failed since the application
 * read the counter. */
static int verdict(struct fab_cntr *cntr, uint64_t threshold)
{
	uint64_t err = now(&cntr->err);

	if (now(&cntr->value) >= threshold)
		return 0;
	if (err == cntr->err_seen)
		return 1;
	cntr->err_seen = err;
	return -FI_EAVAIL;
}

/* A thread is about to sleep until the counter has reached the threshold: for the page of the process. */
static void tell_sleeper(const struct fab_cntr *cntr, uint64_t threshold, struct fi_stats_wait **record)
{
	if (!*record)
		*record = fab_stats_wait_open(cntr->domain->fabric->prov, false);
	if (*record)
		fab_stats_pending(&(*record)->pending, &(struct fi_stats_pending) {
			.number = threshold, .cnt = cntr->value, .len = threshold, .state = FI_STATS_THRESHOLD,
			.peer = UINT32_MAX,
		});
}

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout_ms)
{
	struct fab_cntr *cntr = cntr_of(fid);
	struct fi_stats_wait *record = NULL;
	struct fab_sleep sleep;
	int ret, slept = 0;

	if (cntr->wait.obj == FI_WAIT_SET)
		return -FI_ENOSYS;
	fab_engine_enter_of(&cntr->wait.engine);
	fab_wait_begin(&cntr->wait, &sleep, timeout_ms);
	for (;;) {
		ret = verdict(cntr, threshold);
		if (ret == 1) {
			fab_engine_run(cntr->wait.engine);
			ret = verdict(cntr, threshold);
		}
		if (ret != 1 || slept)
			break;
		cntr->wake_value = cntr->wait.sleepers ? fab_min(cntr->wake_value, threshold) : threshold;
		tell_sleeper(cntr, threshold, &record);
		slept = fab_wait_sleep(&cntr->wait, &sleep);
		fab_survey_woken(cntr->wait.engine);
	}
	fab_engine_unlock(cntr->wait.engine);
	fab_stats_wait_close(record);
	return ret == 1 ? slept : ret;
}

/* ---- open and close ---- */

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct fab_cntr *cntr = fab_container(fid, struct fab_cntr, cntr_fid.fid);

	if (!arg && (command == FI_GETOPSFLAG || command == FI_SETOPSFLAG))
		return -FI_EINVAL;
	switch (command) {
	case FI_GETOPSFLAG:
		*(uint64_t *) arg = cntr->op_flags;
		return 0;
	case FI_SETOPSFLAG:
		cntr->op_flags = *(uint64_t *) arg;
		return 0;
	case FI_EXPORT_FID:
		return fab_domain_lend(cntr->domain, fid, arg);
	default:
		return fab_wait_control(&cntr->wait, command, arg);
	}
}

static int cntr_close(struct fid *fid)
{
	struct fab_cntr *cntr = fab_container(fid, struct fab_cntr, cntr_fid.fid);
	int ret;

	if (cntr->count_ended)
		cntr->count_ended(cntr);
	ret = fab_queue_close(cntr->domain, &cntr->wait, &cntr->ref, "a counter");
	if (!ret)
		free(cntr);
	return ret;
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.control = cntr_control,
};

/* The owner calls it to make progress. The owner has the values. */
static uint64_t cntr_peer_read(struct fid_cntr *fid)
{
	struct fab_cntr *cntr = cntr_of(fid);
	struct fab_engine *engine = fab_engine_lock_of(&cntr->wait.engine);

	fab_engine_run(engine);
	cntr->value_seen = now(&cntr->value);
	cntr->err_seen = now(&cntr->err);
	fab_wait_drained(&cntr->wait);
	fab_engine_unlock(engine);
	return 0;
}

static struct fi_ops_cntr peer_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_peer_read,
};

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

static int cntr_check_attr(const struct fab_domain *domain, const struct fi_cntr_attr *attr)
{
	if ((unsigned) attr->events <= FI_CNTR_EVENTS_BYTES && fab_wait_exists(attr->wait_obj, attr->wait_set) &&
	    !(attr->flags & ~FI_PEER) && !((attr->flags & FI_PEER) && attr->events != FI_CNTR_EVENTS_COMP))
		return 0;
	FI_WARN(domain->fabric->prov, FI_LOG_CNTR, "fi_cntr_open: events %d, wait_obj %d, wait_set %p, flags 0x%llx; "
		"allowed are the events and wait objects of fi_cntr(3), FI_WAIT_SET with a wait_set, no flags or, "
		"with FI_CNTR_EVENTS_COMP, FI_PEER\n",
		attr->events, attr->wait_obj, (void *) attr->wait_set, (unsigned long long) attr->flags);
	return attr->flags == FI_XPU ? -FI_ENOSYS : -FI_EINVAL;	/* a counter that a device reads */
}

int fab_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr, struct fid_cntr **cntr_fid, void *context)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct fi_cntr_attr defaults = { 0 };
	struct fid_peer_cntr *peer = NULL;
	struct fab_cntr *cntr;
	int ret;

	if (!attr)
		attr = &defaults;
	ret = cntr_check_attr(domain, attr);
	if (ret)
		return ret;
	if (attr->flags & FI_PEER) {
		peer = cntr_peer_of(domain, context);
		if (!peer)
			return -FI_EINVAL;
	}
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&cntr_fid_ops);
	FAB_OPS_FILL(&cntr_ops);
	FAB_OPS_FILL(&peer_ops);
	cntr->peer = peer;
	cntr->armed = peer;
	cntr->domain = domain;
	cntr->bytes = attr->events == FI_CNTR_EVENTS_BYTES;
	cntr->wake_value = UINT64_MAX;
	fab_list_init(&cntr->waiting);
	cntr->cntr_fid.fid = (struct fid) { .fclass = FI_CLASS_CNTR, .context = context, .ops = &cntr_fid_ops };
	cntr->cntr_fid.ops = cntr->peer ? &peer_ops : &cntr_ops;
	ret = fab_queue_init(domain, &cntr->wait,
			     &(struct fab_wait_attr) { attr->wait_obj, attr->wait_set, .has_event = cntr_has_event });
	if (ret) {
		free(cntr);
		return ret;
	}
	*cntr_fid = &cntr->cntr_fid;
	return 0;
}
