/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_cq_read(3) directly from the hardware into the caller's entries. It is used while the ring of the CQ is empty and
 * its engine has one working hardware queue (engine->direct.queue). The read polls as many work completions as the
 * caller has room for. Those of its own CQ are written to the caller's entries; others are queued in their CQ, as by a
 * pass of the engine. After an error, it and all completions behind it are queued in order. Completions for which the
 * caller has no room stay in the hardware.
 *
 * If the engine has several hardware queues, each is polled, more slowly (vrb_poller_look()). Everything else is the
 * ordinary read of prov/common: when the ring is not empty, when operations are queued for sending, and every so many
 * reads, for descriptors and timers.
 */
#include "verbs/done.h"

#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/ops/ops.h"
#include "verbs/kind.h"

static const size_t entry_len[] = {
	[FI_CQ_FORMAT_UNSPEC] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

typedef ssize_t found_fn(struct fab_cq *cq, void *buf, size_t count, int cnt);

/* Return cnt work completions, or an error, that a poll has found. Lock held, dropped here. */
VRB_DONE ssize_t give(struct fab_cq *cq, void *buf, size_t count, int cnt, size_t size)
{
	struct fab_cq_taker taker = { .cq = cq, .to = buf, .size = size };
	const struct vrb_hw_cq *hw = cq->wait.engine->direct.queue;

	for (int i = 0; i < cnt; i++)
		vrb_done(&hw->wc[i], &taker, size);
	fab_engine_unlock(cq->wait.engine);
	return __builtin_expect(taker.cnt > 0, 1) ? taker.cnt : fab_cq_readfrom(&cq->cq_fid, buf, count, NULL);
}

/* Read from the ring, from several hardware queues, or after a pass. Lock held, dropped here. */
static __attribute__((noinline)) ssize_t ordinary(struct fab_cq *cq, void *buf, size_t count)
{
	struct fab_cq_taker taker = { .cq = cq, .to = buf, .size = entry_len[cq->format] };
	int found = -1;

	if (fab_cq_ring_empty(cq) && count && !cq->wait.engine->direct.queue)
		found = vrb_poller_look(cq->wait.engine, &taker, count);
	if (!found) {
		fab_engine_attend(cq->wait.engine);
		fab_wait_drained(&cq->wait);
	}
	fab_engine_unlock(cq->wait.engine);
	if (taker.cnt)
		return taker.cnt;
	return found ? fab_cq_readfrom(&cq->cq_fid, buf, count, NULL) : -FI_EAGAIN;
}

/* How a queue is read. */
enum way {
	ALONE,				/* its engine is final; no wait object, no thread of the engine */
	SETTLING,			/* its engine may be chosen while it is read (queue_open.h) */
	SHARED,				/* the same, and threads may sleep on it */
	WAY_CNT
};

VRB_DONE ssize_t look(struct fid_cq *fid, void *buf, size_t count, found_fn *found, enum way way)
{
	struct fab_cq *cq = fab_container(fid, struct fab_cq, cq_fid);
	struct vrb_hw_cq *hw;
	int cnt;

	if (__builtin_expect(!buf, 0))
		return fab_cq_readfrom(fid, buf, count, NULL);
	if (way == ALONE)
		fab_engine_enter(cq->wait.engine);
	else
		fab_engine_enter_of(&cq->wait.engine);
	if (__builtin_expect(!fab_cq_ring_empty(cq) || !count || --cq->wait.engine->direct.looks_left < 0, 0))
		return ordinary(cq, buf, count);
	hw = cq->wait.engine->direct.queue;
	cnt = ibv_poll_cq(hw->cq, (int) fab_min(count, (size_t) VRB_BATCH), hw->wc);
	if (__builtin_expect(cnt, 0))
		return found(cq, buf, count, cnt);
	if (way == SHARED) {
		fab_engine_attend(cq->wait.engine);
		fab_wait_drained(&cq->wait);
	}
	fab_engine_leave(cq->wait.engine);
	return -FI_EAGAIN;
}

/* ---- a table for each format and way ---- */

#define READ(name, suffix, way)									\
static ssize_t read_##name##suffix(struct fid_cq *fid, void *buf, size_t count)			\
{												\
	return look(fid, buf, count, found_##name, way);					\
}

#define READS(name, entry)									\
static __attribute__((noinline))								\
ssize_t found_##name(struct fab_cq *cq, void *buf, size_t count, int cnt)			\
{												\
	return give(cq, buf, count, cnt, sizeof(entry));					\
}												\
READ(name, , ALONE)										\
READ(name, _settling, SETTLING)									\
READ(name, _shared, SHARED)

READS(context, struct fi_cq_entry)
READS(msg, struct fi_cq_msg_entry)
READS(data, struct fi_cq_data_entry)
READS(tagged, struct fi_cq_tagged_entry)

/* The sources of messages are unknown: report FI_ADDR_NOTAVAIL. */
static ssize_t readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	ssize_t cnt = fid->ops->read(fid, buf, count);

	for (ssize_t i = 0; src && i < cnt; i++)
		src[i] = FI_ADDR_NOTAVAIL;
	return cnt;
}

#define WAYS(name)	{ read_##name, read_##name##_settling, read_##name##_shared }

static ssize_t (*const reads[][WAY_CNT])(struct fid_cq *cq, void *buf, size_t count) = {
	[FI_CQ_FORMAT_UNSPEC] = WAYS(context),
	[FI_CQ_FORMAT_CONTEXT] = WAYS(context),
	[FI_CQ_FORMAT_MSG] = WAYS(msg),
	[FI_CQ_FORMAT_DATA] = WAYS(data),
	[FI_CQ_FORMAT_TAGGED] = WAYS(tagged),
};
static struct fi_ops_cq direct[fab_countof(reads)][WAY_CNT];	/* other members are those of fab_cq_ops */

void vrb_cq_fill_ops(void)
{
	FAB_OPS_FILL(&fab_cq_ops);
	for (size_t i = 0; i < WAY_CNT * fab_countof(reads); i++) {
		struct fi_ops_cq *ops = &direct[i / WAY_CNT][i % WAY_CNT];

		*ops = fab_cq_ops;
		ops->read = reads[i / WAY_CNT][i % WAY_CNT];
		ops->readfrom = readfrom;
	}
}

static enum way way_of(const struct fab_cq *cq)
{
	if (cq->wait.obj != FI_WAIT_NONE || cq->wait.engine->thread.run)
		return SHARED;
	return cq->wait.settled ? ALONE : SETTLING;
}

int vrb_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **fid, void *context)
{
	int ret = fab_cq_open(domain, attr, fid, context);
	struct fab_cq *cq;

	if (ret)
		return ret;
	cq = fab_container(*fid, struct fab_cq, cq_fid);
	if (!cq->peer && !cq->ahead)
		cq->cq_fid.ops = &direct[cq->format][way_of(cq)];
	return 0;
}
