/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_cq(3): reading, sleeping, open and close. Errors: cq_err.c.
 */
#include "common/queue/cq_err.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>
#include "base/bits.h"
#include "common/ops/ops.h"
#include "common/queue/queue_open.h"

#define RING_START		64	/* entries */
#define SIZE_MAX_ASKED		(1U << 28)	/* entries; a larger size is refused as a mistake */

static struct fab_cq *cq_of(struct fid_cq *fid)
{
	return fab_container(fid, struct fab_cq, cq_fid);
}

/* ---- formats: each is the first part of struct fab_comp ---- */

#define SAME_PLACE(member, field)										\
	_Static_assert(offsetof(struct fi_cq_tagged_entry, member) == offsetof(struct fab_comp, field),		\
		       "formats are copied in one piece")
SAME_PLACE(op_context, context);
SAME_PLACE(flags, flags);
SAME_PLACE(len, len);
SAME_PLACE(buf, buf);
SAME_PLACE(data, data);
SAME_PLACE(tag, tag);

/* size is a constant in every caller. */
static inline __attribute__((always_inline))
void copy_entries(const struct fab_comp *ring, uint32_t mask, uint32_t pos, uint32_t cnt, void *buf, size_t size)
{
	char *to = buf;

	for (uint32_t i = 0; i < cnt; i++, to += size)
		memcpy(to, &ring[(pos + i) & mask], size);
}

static void copy_context(const struct fab_comp *ring, uint32_t mask, uint32_t pos, uint32_t cnt, void *buf)
{
	copy_entries(ring, mask, pos, cnt, buf, sizeof(struct fi_cq_entry));
}

static void copy_msg(const struct fab_comp *ring, uint32_t mask, uint32_t pos, uint32_t cnt, void *buf)
{
	copy_entries(ring, mask, pos, cnt, buf, sizeof(struct fi_cq_msg_entry));
}

static void copy_data(const struct fab_comp *ring, uint32_t mask, uint32_t pos, uint32_t cnt, void *buf)
{
	copy_entries(ring, mask, pos, cnt, buf, sizeof(struct fi_cq_data_entry));
}

static void copy_tagged(const struct fab_comp *ring, uint32_t mask, uint32_t pos, uint32_t cnt, void *buf)
{
	copy_entries(ring, mask, pos, cnt, buf, sizeof(struct fi_cq_tagged_entry));
}

/* FI_CQ_FORMAT_UNSPEC is the shortest format, since the application does not know the length of an entry. */
static void (*const copy_by_format[])(const struct fab_comp *ring, uint32_t mask, uint32_t pos, uint32_t cnt,
				      void *buf) = {
	[FI_CQ_FORMAT_UNSPEC] = copy_context,
	[FI_CQ_FORMAT_CONTEXT] = copy_context,
	[FI_CQ_FORMAT_MSG] = copy_msg,
	[FI_CQ_FORMAT_DATA] = copy_data,
	[FI_CQ_FORMAT_TAGGED] = copy_tagged,
};

/* ---- the ring ---- */

static bool cq_grow(struct fab_cq *cq)
{
	uint32_t mask = cq->mask * 2 + 1;
	struct fab_comp *ring = malloc(((size_t) mask + 1) * sizeof(*ring));

	if (!ring)
		return false;
	for (uint32_t pos = cq->head; pos != cq->tail; pos++)
		ring[pos & mask] = cq->ring[pos & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = mask;
	return true;
}

/* The number of successes before the first error. */
static uint32_t readable(const struct fab_cq *cq)
{
	return (__builtin_expect(cq->err_cnt, 0) ? fab_cq_first_err(cq)->pos : cq->tail) - cq->head;
}

/* True if there is enough for a sleeper that waits for cnt entries. An error always is. */
static bool enough(const struct fab_cq *cq, uint32_t cnt)
{
	return cq->tail - cq->head >= cnt || cq->err_cnt;
}

static bool cq_has_event(struct fab_wait *wait)
{
	const struct fab_cq *cq = fab_container(wait, struct fab_cq, wait);

	return !cq->peer && enough(cq, wait->outside ? 1 : cq->wake_cnt);
}

bool fab_cq_full(struct fab_cq *cq, const struct fab_comp *comp)
{
	if (cq->peer)
		fab_cq_owner_write(cq, comp);
	else if (cq_grow(cq))
		return false;
	else
		fab_cq_set_overrun(cq, comp);
	return true;
}

/* ---- reading ---- */

/* Take up to count entries. Returns their number, -FI_EAVAIL if an error comes first, -FI_EAGAIN if the queue is
 * empty. */
static inline __attribute__((always_inline)) ssize_t cq_take(struct fab_cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	uint32_t cnt = readable(cq);

	if (!cnt)
		return cq->err_cnt ? -FI_EAVAIL : -FI_EAGAIN;
	if (cnt > count)
		cnt = (uint32_t) count;
	cq->copy(cq->ring, cq->mask, cq->head, cnt, buf);
	if (src) {
		for (uint32_t i = 0; i < cnt; i++)
			src[i] = cq->ring[(cq->head + i) & cq->mask].src;
	}
	cq->head += cnt;
	return cnt;
}

/* Run a pass if the queue is empty or count is 0, and read. The lock is held, and released. src is NULL in
 * fi_cq_read(3), for which the compiler leaves its part out. */
static inline __attribute__((always_inline))
ssize_t cq_read_locked(struct fab_cq *cq, struct fab_engine *engine, void *buf, size_t count, fi_addr_t *src)
{
	ssize_t ret;

	if (fab_cq_ring_empty(cq) || !count)
		fab_engine_run(engine);
	else
		fab_engine_attend(engine);
	if (fab_cq_ring_empty(cq)) {
		ret = -FI_EAGAIN;
		if (cq->wait.obj != FI_WAIT_NONE)	/* nobody sleeps */
			fab_wait_drained(&cq->wait);
	} else {
		ret = cq_take(cq, buf, count, src);
	}
	fab_engine_unlock(engine);
	return ret;
}

/* fi_cq_readfrom(3) */
static inline __attribute__((always_inline))
ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	struct fab_cq *cq = cq_of(fid);

	if (!buf && count)
		return -FI_EINVAL;
	return cq_read_locked(cq, fab_engine_enter_of(&cq->wait.engine), buf, count, src);
}

ssize_t fab_cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	return cq_readfrom(fid, buf, count, src);
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

/* ---- fi_cq_read(3), by format ----
 *
 * For an engine whose lock takes no call. Entries that are there, and a queue where a glance is enough, take no call
 * but the last. In the inline functions, size is a constant. */

/* The rare cases: there is an error, somebody may sleep, or count is 0. The lock is held, and released. */
static __attribute__((noinline)) ssize_t cq_read_rest(struct fab_cq *cq, void *buf, size_t count)
{
	return cq_read_locked(cq, cq->wait.engine, buf, count, NULL);
}

/* Take up to count of the entries that are there, and unlock. */
static inline __attribute__((always_inline))
ssize_t cq_take_sized(struct fab_cq *cq, struct fab_engine *engine, void *buf, size_t count, size_t size)
{
	uint32_t cnt = fab_min((size_t) (cq->tail - cq->head), count);

	copy_entries(cq->ring, cq->mask, cq->head, cnt, buf, size);
	cq->head += cnt;
	return fab_engine_return(engine, cnt);
}

/* The queue is empty: run a pass, and read. The lock is held, and released. */
static inline __attribute__((always_inline))
ssize_t cq_pass_sized(struct fab_cq *cq, void *buf, size_t count, size_t size)
{
	struct fab_engine *engine = cq->wait.engine;
	bool found;

	if (fab_engine_glance_or_pass(engine, &found))
		return fab_engine_return(engine, -FI_EAGAIN);
	if (__builtin_expect(cq->err_cnt, 0))
		return cq_read_rest(cq, buf, count);
	if (cq->tail == cq->head)
		return fab_engine_return(engine, -FI_EAGAIN);
	return cq_take_sized(cq, engine, buf, count, size);
}

/* The lock of this engine is held, and released. pass: cq_pass_sized() with this size. */
static inline __attribute__((always_inline))
ssize_t cq_read_sized(struct fab_cq *cq, struct fab_engine *engine, void *buf, size_t count, size_t size,
		      ssize_t (*pass)(struct fab_cq *cq, void *buf, size_t count))
{
	if (__builtin_expect(cq->err_cnt || !count, 0))
		return cq_read_rest(cq, buf, count);
	if (cq->tail != cq->head) {
		fab_engine_attend(engine);
		return cq_take_sized(cq, engine, buf, count, size);
	}
	if (__builtin_expect(cq->wait.obj != FI_WAIT_NONE, 0))
		return cq_read_rest(cq, buf, count);
	if (fab_engine_glance(engine))
		return fab_engine_return(engine, -FI_EAGAIN);
	return pass(cq, buf, count);
}

/* For a format: the rest of the read that makes a pass, and the read. */
#define CQ_READ(format, type)									\
	static __attribute__((noinline))							\
	ssize_t cq_pass_##format(struct fab_cq *cq, void *buf, size_t count)			\
	{											\
		return cq_pass_sized(cq, buf, count, sizeof(type));				\
	}											\
	static ssize_t cq_read_##format(struct fid_cq *fid, void *buf, size_t count)		\
	{											\
		struct fab_cq *cq = cq_of(fid);							\
		struct fab_engine *engine;							\
												\
		if (!buf && count)								\
			return -FI_EINVAL;							\
		engine = fab_engine_try_enter_of(&cq->wait.engine);				\
		return !engine ? cq_read(fid, buf, count) :					\
		       cq_read_sized(cq, engine, buf, count, sizeof(type), cq_pass_##format);	\
	}
CQ_READ(context, struct fi_cq_entry)
CQ_READ(msg, struct fi_cq_msg_entry)
CQ_READ(data, struct fi_cq_data_entry)
CQ_READ(tagged, struct fi_cq_tagged_entry)

/* ---- reading ahead: see struct fab_cq_ahead ---- */

/* Take out the next entries, as many as there is room for. Lock held; all entries read ahead before have been
 * returned. */
static void read_ahead(struct fab_cq *cq)
{
	struct fab_cq_ahead *ahead = cq->ahead;
	uint32_t cnt = fab_min(readable(cq), (uint32_t) FAB_CQ_AHEAD);

	for (uint32_t i = 0; i < cnt; i++)
		ahead->entry[i] = cq->ring[(cq->head + i) & cq->mask];
	cq->head += cnt;
	ahead->at = 0;
	atomic_store_explicit(&ahead->cnt, cnt, memory_order_relaxed);
}

static ssize_t ahead_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	struct fab_cq *cq = cq_of(fid);
	struct fab_cq_ahead *ahead = cq->ahead;
	uint32_t left = atomic_load_explicit(&ahead->cnt, memory_order_relaxed);
	ssize_t ret;

	if (left && count && buf) {
		uint32_t cnt = fab_min((size_t) left, count);

		cq->copy(ahead->entry, FAB_CQ_AHEAD - 1, ahead->at, cnt, buf);
		for (uint32_t i = 0; src && i < cnt; i++)
			src[i] = ahead->entry[ahead->at + i].src;
		ahead->at += cnt;
		atomic_store_explicit(&ahead->cnt, left - cnt, memory_order_relaxed);
		return cnt;
	}
	if (!buf && count)
		return -FI_EINVAL;
	fab_engine_enter(cq->wait.engine);
	if (fab_cq_ring_empty(cq) || !count)
		fab_engine_run(cq->wait.engine);
	ret = cq_take(cq, buf, count, src);
	if (ret > 0)
		read_ahead(cq);
	fab_engine_unlock(cq->wait.engine);
	return ret;
}

static ssize_t ahead_read(struct fid_cq *fid, void *buf, size_t count)
{
	return ahead_readfrom(fid, buf, count, NULL);
}

static struct fi_ops_cq ahead_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = ahead_read,
	.readfrom = ahead_readfrom,
	.readerr = fab_cq_readerr,
	.strerror = fab_cq_strerror,
};

/* ---- sleeping ---- */

/* Sleep until there are cnt entries or an error, or the sleep ends. 0, or the reason why the sleep ended. */
static int cq_wait_for(struct fab_cq *cq, uint32_t cnt, int timeout_ms)
{
	struct fab_sleep sleep;
	int ret;

	fab_wait_begin(&cq->wait, &sleep, timeout_ms);
	while (!enough(cq, cnt)) {
		fab_engine_run(cq->wait.engine);
		if (enough(cq, cnt))
			break;
		cq->wake_cnt = cq->wait.sleepers ? fab_min(cq->wake_cnt, cnt) : cnt;
		ret = fab_wait_sleep(&cq->wait, &sleep);
		if (ret)
			return ret;
		fab_survey_woken(cq->wait.engine);
	}
	return 0;
}

/* cond is the threshold itself. It is limited to count: the caller has no room for more, and would not read them. */
static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src, const void *cond,
			    int timeout_ms)
{
	struct fab_cq *cq = cq_of(fid);
	size_t cnt = cq->threshold && cond ? fab_min((size_t) (uintptr_t) cond, count) : 1;
	ssize_t taken;
	int ret;

	if (!fab_wait_can_sleep(&cq->wait))
		return -FI_ENOSYS;
	if (!buf && count)
		return -FI_EINVAL;
	fab_engine_enter_of(&cq->wait.engine);
	ret = cq_wait_for(cq, (uint32_t) fab_max(cnt, (size_t) 1), timeout_ms);
	taken = cq_take(cq, buf, count, src);
	fab_engine_unlock(cq->wait.engine);

	return taken == -FI_EAGAIN ? fab_wait_read_error(ret) : taken;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout_ms)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout_ms);
}

static int cq_signal(struct fid_cq *fid)
{
	struct fab_cq *cq = cq_of(fid);

	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	fab_wait_wake(&cq->wait);
	return 0;
}

/* ---- open and close ---- */

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct fab_cq *cq = fab_container(fid, struct fab_cq, cq_fid.fid);

	if (command == FI_EXPORT_FID)
		return fab_domain_lend(cq->domain, fid, arg);
	if (command == FAB_CONTROL_STRANGERS_TOOK) {
		fab_engine_lock(cq->wait.engine);
		fab_engine_outsiders_took(cq->wait.engine, *(const uint64_t *) arg);
		fab_engine_unlock(cq->wait.engine);
		return 0;
	}
	return fab_wait_control(&cq->wait, command, arg);
}

static void cq_free(struct fab_cq *cq)
{
	struct fab_list *link;

	if (cq->last_err)
		fab_cq_err_free(cq, cq->last_err);
	while ((link = fab_list_pop_front(&cq->errs)))
		fab_cq_err_free(cq, fab_container(link, struct fab_cq_err, link));
	free(cq->overrun);
	free(cq->spare);
	free(cq->ahead);
	free(cq->ring);
	free(cq);
}

static int cq_close(struct fid *fid)
{
	struct fab_cq *cq = fab_container(fid, struct fab_cq, cq_fid.fid);
	int ret;

	ret = fab_queue_close(cq->domain, &cq->wait, &cq->ref, "a CQ");
	if (!ret)
		cq_free(cq);
	return ret;
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.control = cq_control,
};

#define CQ_OPS(read_fn) {			\
	.size = sizeof(struct fi_ops_cq),	\
	.read = read_fn,			\
	.readfrom = fab_cq_readfrom,		\
	.readerr = fab_cq_readerr,		\
	.sread = cq_sread,			\
	.sreadfrom = cq_sreadfrom,		\
	.signal = cq_signal,			\
	.strerror = fab_cq_strerror,		\
}
struct fi_ops_cq fab_cq_ops = CQ_OPS(cq_read);
static struct fi_ops_cq quick_ops[fab_countof(copy_by_format)] = {
	[FI_CQ_FORMAT_UNSPEC] = CQ_OPS(cq_read_context),
	[FI_CQ_FORMAT_CONTEXT] = CQ_OPS(cq_read_context),
	[FI_CQ_FORMAT_MSG] = CQ_OPS(cq_read_msg),
	[FI_CQ_FORMAT_DATA] = CQ_OPS(cq_read_data),
	[FI_CQ_FORMAT_TAGGED] = CQ_OPS(cq_read_tagged),
};

/* The owner calls it with count 0 to make progress. */
static ssize_t cq_peer_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct fab_cq *cq = cq_of(fid);
	struct fab_engine *engine;

	(void) buf;
	if (count)
		return -FI_ENOSYS;
	engine = fab_engine_lock_of(&cq->wait.engine);
	fab_engine_run(engine);
	fab_wait_drained(&cq->wait);
	fab_engine_unlock(engine);
	return -FI_EAGAIN;
}

static struct fi_ops_cq peer_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_peer_read,
	.strerror = fab_cq_strerror,
};

/* The owner's queue in the context of FI_PEER; NULL: invalid, logged. */
static struct fid_peer_cq *cq_peer_of(const struct fab_domain *domain, const struct fi_peer_cq_context *context)
{
	const struct fi_ops_cq_owner *ops;

	if (context && context->size >= sizeof(*context) && context->cq) {
		ops = context->cq->owner_ops;
		if (ops && FI_CHECK_OP(ops, struct fi_ops_cq_owner, write) &&
		    FI_CHECK_OP(ops, struct fi_ops_cq_owner, writeerr))
			return context->cq;
	}
	FI_WARN(domain->fabric->prov, FI_LOG_CQ, "fi_cq_open with FI_PEER: the context must be a struct "
		"fi_peer_cq_context, with a cq whose owner_ops have write and writeerr\n");
	return NULL;
}

/* Check the attributes. 0, -FI_ENOSYS for a queue that a device reads, or -FI_EINVAL; the log names the attribute. */
static int cq_check_attr(const struct fab_domain *domain, const struct fi_cq_attr *attr)
{
	const char *what = NULL;
	unsigned long long value = 0;

	if (attr->size > SIZE_MAX_ASKED)
		what = "size", value = attr->size;
	else if (attr->flags & ~(FI_AFFINITY | FI_PEER))
		what = "flags", value = attr->flags;
	else if ((unsigned) attr->format >= fab_countof(copy_by_format))
		what = "format", value = attr->format;
	else if (!fab_wait_exists(attr->wait_obj, attr->wait_set))
		what = "wait_obj", value = attr->wait_obj;
	else if (attr->wait_obj != FI_WAIT_NONE && (unsigned) attr->wait_cond > FI_CQ_COND_THRESHOLD)
		what = "wait_cond", value = attr->wait_cond;
	if (!what)
		return 0;
	FI_WARN(domain->fabric->prov, FI_LOG_CQ, "fi_cq_open: %s is 0x%llx; allowed are a size up to %u, the flag "
		"FI_AFFINITY or FI_PEER, the formats, wait objects and conditions of fi_cq(3), FI_WAIT_SET with a "
		"wait_set\n", what, value, SIZE_MAX_ASKED);
	return (attr->flags & ~(FI_AFFINITY | FI_PEER)) == FI_XPU ? -FI_ENOSYS : -FI_EINVAL;
}

/* True if the queue may read ahead: the application reads from one thread at a time, completions stay in this queue,
 * and no sleeper has to be told of entries that are left. */
static bool reads_ahead(const struct fab_domain *domain, const struct fi_cq_attr *attr)
{
	return (domain->attr.threading == FI_THREAD_FID || domain->attr.threading == FI_THREAD_ENDPOINT) &&
	       domain->attr.data_progress == FI_PROGRESS_MANUAL && attr->wait_obj == FI_WAIT_NONE;
}

/* True if data calls mostly take the lock of an engine without a call (base/lock.h: none, biased). */
static bool enters_quickly(const struct fab_domain *domain)
{
	return (domain->attr.threading == FI_THREAD_COMPLETION || domain->attr.threading == FI_THREAD_DOMAIN) &&
	       domain->attr.data_progress == FI_PROGRESS_MANUAL;
}

static struct fab_cq *cq_alloc(const struct fi_cq_attr *attr)
{
	struct fab_cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return NULL;
	fab_list_init(&cq->errs);
	fab_list_init(&cq->exports);
	cq->ring = malloc(RING_START * sizeof(*cq->ring));
	cq->spare = fab_cq_err_alloc(NULL, 0, NULL);
	cq->overrun = fab_cq_err_alloc(NULL, 0, NULL);
	if (!cq->ring || !cq->spare || !cq->overrun) {
		cq_free(cq);
		return NULL;
	}
	fab_list_init(&cq->overrun->link);
	cq->overrun->err = cq->overrun->prov_errno = FI_EOVERRUN;
	cq->mask = RING_START - 1;
	cq->wake_cnt = 1;
	cq->format = attr->format;
	cq->copy = copy_by_format[attr->format];
	cq->threshold = attr->wait_obj != FI_WAIT_NONE && attr->wait_cond == FI_CQ_COND_THRESHOLD;
	return cq;
}

int fab_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr, struct fid_cq **cq_fid, void *context)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct fi_cq_attr defaults = { 0 };
	struct fid_peer_cq *peer = NULL;
	struct fab_cq *cq;
	int ret;

	if (!attr)
		attr = &defaults;
	ret = cq_check_attr(domain, attr);
	if (ret)
		return ret;
	if (attr->flags & FI_PEER) {
		peer = cq_peer_of(domain, context);
		if (!peer)
			return -FI_EINVAL;
	}
	cq = cq_alloc(attr);
	if (!cq)
		return -FI_ENOMEM;
	if (!peer && reads_ahead(domain, attr)) {
		cq->ahead = calloc(1, sizeof(*cq->ahead));
		if (!cq->ahead) {
			cq_free(cq);
			return -FI_ENOMEM;
		}
	}
	if (peer) {
		cq->peer = peer;
		cq->mask = 0;
		cq->tail = 1;
	}
	FAB_OPS_FILL(&cq_fid_ops);
	FAB_OPS_FILL(&fab_cq_ops);
	FAB_OPS_FILL(&quick_ops[attr->format]);
	FAB_OPS_FILL(&peer_ops);
	FAB_OPS_FILL(&ahead_ops);
	cq->domain = domain;
	cq->cq_fid.fid = (struct fid) { .fclass = FI_CLASS_CQ, .context = context, .ops = &cq_fid_ops };
	cq->cq_fid.ops = peer ? &peer_ops : cq->ahead ? &ahead_ops :
			 enters_quickly(domain) ? &quick_ops[attr->format] : &fab_cq_ops;
	ret = fab_queue_init(domain, &cq->wait,
			     &(struct fab_wait_attr) { attr->wait_obj, attr->wait_set, .has_event = cq_has_event });
	if (ret) {
		cq_free(cq);
		return ret;
	}
	*cq_fid = &cq->cq_fid;
	return 0;
}
