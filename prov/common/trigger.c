/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See trigger.h. "Work" is one triggered operation or piece of deferred work.
 *
 * Who may still hold a pointer to a work: the lists below domain->work_lock while it has not begun; afterwards, if it is
 * deferred work, the operation through its hook; then, if its completion counter is another engine's, that engine's
 * ready list. Each hands it on, and the last frees it.
 */
#include "common/trigger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/sock.h"
#include "common/cntr.h"
#include "common/ep.h"
#include "common/fabric.h"

/* Guarded by the engine's lock, but for what says otherwise. */
struct fab_ready {
	struct fab_list works;		/* by work.link, in the order in which they are to begin; under work_lock */
	struct fab_flush flush;
	struct fab_source source;	/* an eventfd for other engines to knock at; fd -1: there are none */
	struct fab_domain *domain;
};

enum work_place {
	WAITING,			/* on its counter */
	READY,				/* on its engine */
	BEGUN,				/* of no list */
};

struct work {
	struct fab_list link;		/* on cntr->waiting or ready->works */
	struct fab_list all;		/* in domain->works until it has begun */
	enum work_place place;		/* link, all and place under work_lock */
	struct fab_domain *domain;
	struct fab_cntr *cntr;		/* that it waits for; with a reference, as all of these */
	uint64_t threshold;
	struct fab_progress *progress;	/* where it runs */

	struct fi_deferred_work *deferred;	/* of the application; only compared. NULL: a triggered operation */
	struct fab_cntr *completion;	/* counts the end of deferred work, or NULL */
	bool failed;
	bool report;			/* deferred work with FI_COMPLETION: the endpoint hears of its end too */
	bool ended;			/* only to be counted yet */

	struct fab_cntr *target;	/* FI_OP_CNTR_SET, FI_OP_CNTR_ADD; else NULL */
	bool set;
	uint64_t value;

	struct fab_ep *ep;		/* borrowed: closing it takes the work back; NULL for a counter's */
	fab_trigger_submit *submit;
	void *context;			/* of the application */
	struct fab_hook hook;
	struct fab_op op;		/* points behind the work */
};

/* Deferred work of this thread on its way through the data call that makes a struct fab_op of it: the call's context. */
struct draft {
	struct fab_domain *domain;
	struct fi_deferred_work *deferred;
	uint64_t flags;
	void *context;
};
static __thread struct draft *drafting;

static const struct fi_provider *prov_of(const struct fab_domain *domain)
{
	return domain->fabric->prov;
}

/* ---- references ---- */

/* Keep a counter, and it on its engine: that of the work, unless something else keeps it elsewhere, since nobody may
 * make progress for a counter by itself. */
static void cntr_get(struct fab_cntr *cntr, struct fab_progress *progress)
{
	struct fab_domain *domain = cntr->domain;

	if (cntr->progress != progress && cntr->own_progress && !cntr->progress->user_cnt)
		fab_progress_join(domain, &(struct fab_progress_user) { &cntr->progress, &cntr->own_progress,
				  &cntr->wait }, progress);
	atomic_fetch_add(&cntr->ref, 1);
	atomic_fetch_add(&cntr->progress->user_cnt, 1);
}

static void cntr_put(struct fab_cntr *cntr)
{
	if (!cntr)
		return;
	atomic_fetch_sub(&cntr->progress->user_cnt, 1);
	atomic_fetch_sub(&cntr->ref, 1);
}

/* On no list. */
static void work_free(struct work *work)
{
	cntr_put(work->cntr);
	cntr_put(work->completion);
	cntr_put(work->target);
	free(work);
}

/* ---- running what is ready ---- */

static void ready_push(struct work *work)
{
	work->place = READY;
	fab_list_add_tail(&work->progress->ready->works, &work->link);
}

/* The engine of a work that has become ready is to look: `from` is the one whose lock the caller holds. */
static void ready_knock(struct fab_progress *to, struct fab_progress *from)
{
	const uint64_t one = 1;

	if (to == from)
		fab_progress_flush_later(to, &to->ready->flush);
	else
		(void) !fab_sock->write(to->ready->source.fd, &one, sizeof(one));
}

/* Deferred work has ended: the lock of the completion counter's engine is held. */
static void work_count(struct work *work)
{
	struct fab_cntr *cntr = work->completion;

	fab_cntr_bump(cntr, work->failed ? &cntr->err : &cntr->value, 1);
	work_free(work);
}

static void work_done(struct fab_hook *hook, enum fab_op_code code, const struct fab_comp *comp,
		      const struct fab_cq_fail *fail)
{
	struct work *work = fab_container(hook, struct work, hook);
	struct fab_ep *ep = work->ep;
	struct fab_cq *cq = code >= FAB_OP_RECV ? ep->rx_cq : ep->tx_cq;
	struct fab_progress *here = ep->progress;
	struct fab_comp mine = *comp;

	mine.context = work->context;
	work->failed = fail;
	if (work->report && fail)
		fab_ep_fail(ep, code, &mine, fail);
	else if (work->report)
		fab_ep_complete(ep, code, &mine, cq);
	else if (fail && cq)
		fab_cq_write_err(cq, &mine, fail);

	if (!work->completion) {
		work_free(work);
	} else if (work->completion->progress == here) {
		work_count(work);
	} else {
		work->ended = true;
		work->progress = work->completion->progress;
		pthread_mutex_lock(&work->domain->work_lock);
		ready_push(work);
		ready_knock(work->progress, here);
		pthread_mutex_unlock(&work->domain->work_lock);
	}
}

/* It cannot be submitted, or shall not be: its end is an error. */
static void work_fail(struct work *work, int err, const char *text)
{
	const struct fab_cq_fail fail = { .err = err, .prov_errno = err, .text = text };
	enum fab_op_code code = work->op.code;
	const struct fab_comp comp = {
		.context = work->context, .flags = fab_op_desc[code].cq_flags, .data = work->op.data,
		.tag = work->op.tag, .src = FI_ADDR_NOTAVAIL,
	};

	if (work->deferred) {
		work_done(&work->hook, code, &comp, &fail);
	} else {
		fab_ep_fail(work->ep, code, &comp, &fail);
		work_free(work);
	}
}

static void work_change_cntr(struct work *work)
{
	struct fab_cntr *cntr = work->target;
	uint64_t now = atomic_load_explicit(&cntr->value, memory_order_relaxed);

	fab_cntr_bump(cntr, &cntr->value, work->set ? work->value - now : work->value);
	work_free(work);
}

static void work_submit(struct work *work)
{
	bool hooked = work->op.hooked;		/* then it may be gone when submit returns */
	int ret = work->submit(work->ep, &work->op);

	if (ret)
		work_fail(work, -ret, "triggered, but it could not be submitted");
	else if (!hooked)
		work_free(work);
}

static void work_run(struct work *work)
{
	if (work->ended)
		work_count(work);
	else if (work->target)
		work_change_cntr(work);
	else
		work_submit(work);
}

static struct work *ready_pop(struct fab_ready *ready)
{
	struct work *work;

	pthread_mutex_lock(&ready->domain->work_lock);
	work = fab_list_first(&ready->works, struct work, link);
	if (work) {
		fab_list_remove(&work->link);
		fab_list_remove(&work->all);
		work->place = BEGUN;
	}
	pthread_mutex_unlock(&ready->domain->work_lock);
	return work;
}

/* Also what becomes ready meanwhile: each begins once, so that this ends. Lock held. */
static void ready_run(struct fab_ready *ready)
{
	struct work *work;

	while ((work = ready_pop(ready)))
		work_run(work);
}

static void ready_flush(struct fab_flush *flush)
{
	ready_run(fab_container(flush, struct fab_ready, flush));
}

static void ready_source(struct fab_source *source, uint32_t events)
{
	uint64_t cnt;

	(void) events;
	(void) !fab_sock->read(source->fd, &cnt, sizeof(cnt));
	ready_run(fab_container(source, struct fab_ready, source));
}

static int ready_open_source(struct fab_progress *progress, struct fab_ready *ready)
{
	int ret;

	ready->source.fd = fab_sock->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ready->source.fd < 0)
		return -errno;
	ready->source.ready = ready_source;
	ret = fab_source_add(progress, &ready->source, EPOLLIN);
	if (ret)
		fab_sock_close(&ready->source.fd);
	return ret;
}

static int ready_open_locked(struct fab_domain *domain, struct fab_progress *progress)
{
	struct fab_ready *ready;
	int ret = 0;

	if (progress->ready)
		return 0;
	ready = calloc(1, sizeof(*ready));
	if (!ready)
		return -FI_ENOMEM;
	ready->domain = domain;
	ready->source.fd = -1;
	fab_list_init(&ready->works);
	fab_flush_init(&ready->flush, ready_flush);
	if (domain->per_cq_progress)
		ret = ready_open_source(progress, ready);
	if (ret)
		free(ready);
	else
		progress->ready = ready;
	return ret;
}

/* Let things become ready on an engine. 0 or -FI_E*. No lock held. */
static int ready_open(struct fab_domain *domain, struct fab_progress *progress)
{
	int ret;

	fab_progress_lock(progress);
	ret = ready_open_locked(domain, progress);
	fab_progress_unlock(progress);
	return ret;
}

void fab_ready_free(struct fab_progress *progress)
{
	struct fab_ready *ready = progress->ready;

	if (!ready)
		return;
	progress->ready = NULL;
	fab_flush_cancel(&ready->flush);
	fab_source_del(&ready->source);
	fab_sock_close(&ready->source.fd);
	free(ready);
}

/* ---- waiting ---- */

/* Has the counter got there? Deferred work counts failures too, since it is what cleans up after them. */
static bool reached(const struct work *work, uint64_t ok, uint64_t err)
{
	return (work->deferred ? ok + err : ok) >= work->threshold;
}

void fab_trigger_check(struct fab_cntr *cntr)
{
	uint64_t ok = atomic_load_explicit(&cntr->value, memory_order_relaxed);
	uint64_t err = atomic_load_explicit(&cntr->err, memory_order_relaxed);
	struct fab_list *link, *next;

	pthread_mutex_lock(&cntr->domain->work_lock);
	fab_list_for_each_safe(&cntr->waiting, link, next) {
		struct work *work = fab_container(link, struct work, link);

		if (work->threshold > ok + err)
			break;
		if (!reached(work, ok, err))
			continue;
		fab_list_remove(link);
		ready_push(work);
		ready_knock(work->progress, cntr->progress);
	}
	cntr->armed = cntr->peer || !fab_list_empty(&cntr->waiting);
	pthread_mutex_unlock(&cntr->domain->work_lock);
}

/* Behind those with the same threshold. */
static void wait_for(struct work *work)
{
	struct fab_list *place;

	for (place = work->cntr->waiting.prev; place != &work->cntr->waiting; place = place->prev) {
		if (fab_container(place, struct work, link)->threshold <= work->threshold)
			break;
	}
	fab_list_add_after(place, &work->link);
}

/* Hand a work, complete but for its references, to its counter. 0; -FI_E*: it is gone. No lock held. */
static int work_arm(struct work *work)
{
	struct fab_domain *domain = work->domain;
	struct fab_progress *progress = work->progress;
	struct fab_cntr *cntr = work->cntr;
	int ret;

	if (work->target)
		cntr_get(work->target, progress);
	if (work->completion)
		cntr_get(work->completion, progress);
	cntr_get(cntr, progress);
	ret = ready_open(domain, progress);
	if (!ret && work->completion)
		ret = ready_open(domain, work->completion->progress);
	if (ret) {
		work_free(work);
		return ret;
	}
	fab_progress_lock(cntr->progress);
	pthread_mutex_lock(&domain->work_lock);
	fab_list_add_tail(&domain->works, &work->all);
	wait_for(work);
	pthread_mutex_unlock(&domain->work_lock);
	fab_trigger_check(cntr);
	fab_progress_unlock(cntr->progress);

	fab_progress_lock(progress);
	ready_run(progress->ready);
	fab_progress_unlock(progress);
	return 0;
}

/* Which work is meant: endpoint, context, deferred work, counter; NULL is any. */
struct fit {
	struct fab_ep *ep;
	void *context;
	struct fi_deferred_work *deferred;
	struct fab_cntr *cntr;
	bool only_deferred, only_triggered;
};

static bool fits(const struct work *work, const struct fit *fit)
{
	return (!fit->ep || work->ep == fit->ep) && (!fit->context || work->context == fit->context) &&
	       (!fit->deferred || work->deferred == fit->deferred) && (!fit->cntr || work->cntr == fit->cntr) &&
	       !(fit->only_deferred && !work->deferred) && !(fit->only_triggered && work->deferred);
}

/* The oldest that fits and has not begun, off its lists. NULL: there is none. */
static struct work *take_back(struct fab_domain *domain, const struct fit *fit)
{
	struct work *found = NULL;
	struct fab_list *link;

	pthread_mutex_lock(&domain->work_lock);
	fab_list_for_each(&domain->works, link) {
		struct work *work = fab_container(link, struct work, all);

		if (!fits(work, fit))
			continue;
		found = work;
		fab_list_remove(&work->link);
		fab_list_remove(&work->all);
		work->place = BEGUN;
		break;
	}
	pthread_mutex_unlock(&domain->work_lock);
	return found;
}

/* ---- triggered operations ---- */

static struct fab_cntr *cntr_of(const struct fab_domain *domain, struct fid_cntr *fid, const char *what)
{
	struct fab_cntr *cntr;

	if (fid && fid->fid.fclass == FI_CLASS_CNTR) {
		cntr = fab_container(fid, struct fab_cntr, cntr_fid);
		if (cntr->domain == domain)
			return cntr;
	}
	FI_WARN(prov_of(domain), FI_LOG_EP_DATA, "%s is %s\n", what, fid ? "no counter of this domain" : "NULL");
	return NULL;
}

/* What an operation with FI_TRIGGER waits for. 0 or -FI_E*. */
static int condition_of(struct fab_ep *ep, const struct fi_triggered_context *context, struct fab_cntr **cntr,
			uint64_t *threshold)
{
	const struct fi_provider *prov = prov_of(ep->domain);

	if (!(ep->caps & FI_TRIGGER)) {
		FI_WARN(prov, FI_LOG_EP_DATA, "FI_TRIGGER: the endpoint was opened without that capability\n");
		return -FI_EBADFLAGS;
	}
	if (!context || context->event_type != FI_TRIGGER_THRESHOLD) {
		bool xpu = context && context->event_type == FI_TRIGGER_XPU;

		FI_WARN(prov, FI_LOG_EP_DATA, "FI_TRIGGER: %s; the context is a struct fi_triggered_context with "
			"event_type FI_TRIGGER_THRESHOLD\n", !context ? "context is NULL" :
			xpu ? "FI_TRIGGER_XPU wants a device, and only system memory is supported" :
			      "event_type is unknown");
		return xpu ? -FI_ENOSYS : -FI_EINVAL;
	}
	*cntr = cntr_of(ep->domain, context->trigger.threshold.cntr, "FI_TRIGGER: trigger.threshold.cntr");
	*threshold = context->trigger.threshold.threshold;
	return *cntr ? 0 : -FI_EINVAL;
}

/* What can be deferred but not hooked: more than one completion, or none of its own. */
#define NOT_DEFERRED (FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD)

static int condition_of_draft(struct fab_ep *ep, const struct draft *draft, const struct fab_op *op,
			      struct fab_cntr **cntr, uint64_t *threshold)
{
	const struct fi_provider *prov = prov_of(ep->domain);

	if (ep->domain != draft->domain) {
		FI_WARN(prov, FI_LOG_EP_DATA, "FI_QUEUE_WORK: the endpoint belongs to another domain\n");
		return -FI_EINVAL;
	}
	if (op->flags & NOT_DEFERRED) {
		FI_WARN(prov, FI_LOG_EP_DATA, "FI_QUEUE_WORK: flags %#" PRIx64 "; FI_MULTI_RECV, FI_PEEK, FI_CLAIM and "
			"FI_DISCARD cannot be deferred\n", op->flags);
		return -FI_ENOSYS;
	}
	*cntr = cntr_of(ep->domain, draft->deferred->triggering_cntr, "FI_QUEUE_WORK: triggering_cntr");
	*threshold = draft->deferred->threshold;
	return *cntr ? 0 : -FI_EINVAL;
}

/* Where what an operation points to goes: from here on. */
static void *put(uint8_t **pos, const void *from, size_t len)
{
	void *to = *pos;

	if (len)
		memcpy(to, from, len);
	*pos += len;
	return to;
}

static size_t vec_len(uint32_t cnt)
{
	return cnt * sizeof(struct iovec);
}

/* A vector and, if data, what it points to. */
static const struct iovec *put_vec(uint8_t **pos, uint8_t **data, const struct iovec *from, uint32_t cnt)
{
	struct iovec *iov = put(pos, from, vec_len(cnt));

	for (uint32_t i = 0; data && i < cnt; i++)
		iov[i].iov_base = put(data, iov[i].iov_base, iov[i].iov_len);
	return iov;
}

/* Bytes of the buffers that FI_INJECT gives back at once: those that are not results. */
static size_t inject_len(const struct fab_op *op)
{
	size_t len = op->code < FAB_OP_READ ? fab_iov_len(op->iov, op->iov_cnt) : 0;

	if (op->amo)
		len += fab_iov_len(op->amo->operand, op->amo->operand_cnt) +
		       fab_iov_len(op->amo->compare, op->amo->compare_cnt);
	return len;
}

/* Copy an operation with all that it points to. NULL: no memory. */
static struct work *work_copy(const struct fab_op *op)
{
	const struct fab_amo none = { 0 }, *amo = op->amo ? op->amo : &none;
	size_t rma_len = op->rma_cnt * sizeof(*op->rma);
	size_t len = sizeof(struct work) + sizeof(*amo) + rma_len +
		     vec_len(op->iov_cnt + amo->operand_cnt + amo->compare_cnt);
	bool inject = op->flags & FI_INJECT;
	struct work *work = calloc(1, len + (inject ? inject_len(op) : 0));
	uint8_t *pos, *data;
	struct fab_amo *copy;

	if (!work)
		return NULL;
	pos = (uint8_t *) (work + 1);
	data = (uint8_t *) work + len;
	work->op = *op;
	work->op.desc = NULL;
	work->op.flags &= ~FI_TRIGGER;
	work->op.accepted = true;
	copy = put(&pos, amo, sizeof(*amo));
	work->op.rma = put(&pos, op->rma, rma_len);
	work->op.iov = put_vec(&pos, inject && op->code < FAB_OP_READ ? &data : NULL, op->iov, op->iov_cnt);
	copy->operand = put_vec(&pos, inject ? &data : NULL, amo->operand, amo->operand_cnt);
	copy->compare = put_vec(&pos, inject ? &data : NULL, amo->compare, amo->compare_cnt);
	if (op->amo)
		work->op.amo = copy;
	return work;
}

int fab_trigger_op(struct fab_ep *ep, const struct fab_op *op, fab_trigger_submit *submit)
{
	const struct draft *draft = drafting && op->context == drafting ? drafting : NULL;
	struct fab_cntr *cntr;
	uint64_t threshold;
	struct work *work;
	int ret;

	ret = draft ? condition_of_draft(ep, draft, op, &cntr, &threshold) :
		      condition_of(ep, op->context, &cntr, &threshold);
	if (ret)
		return ret;
	work = work_copy(op);
	if (!work)
		return -FI_ENOMEM;
	work->domain = ep->domain;
	work->cntr = cntr;
	work->threshold = threshold;
	work->progress = ep->progress;
	work->ep = ep;
	work->submit = submit;
	work->context = op->context;
	if (draft) {
		work->deferred = draft->deferred;
		if (draft->deferred->completion_cntr)
			work->completion = fab_container(draft->deferred->completion_cntr, struct fab_cntr, cntr_fid);
		work->report = draft->flags & FI_COMPLETION;
		work->context = draft->context;
		work->hook.done = work_done;
		work->op.hooked = true;
		work->op.context = &work->hook;
	}
	fab_progress_unlock(ep->progress);
	ret = work_arm(work);
	fab_progress_lock(ep->progress);
	return ret;
}

bool fab_trigger_cancel(struct fab_ep *ep, void *context)
{
	struct work *work;

	if (!context)
		return false;
	work = take_back(ep->domain, &(struct fit) { .ep = ep, .context = context, .only_triggered = true });
	if (work)
		work_fail(work, FI_ECANCELED, "cancelled before its counter triggered it");
	return work;
}

void fab_trigger_close(struct fab_ep *ep)
{
	const struct fit fit = { .ep = ep };
	struct work *work;

	while ((work = take_back(ep->domain, &fit))) {
		if (work->deferred) {
			work_free(work);
			continue;
		}
		fab_progress_lock(ep->progress);
		work_fail(work, FI_ECANCELED, "the endpoint was closed before its counter triggered it");
		fab_progress_unlock(ep->progress);
	}
}

/* ---- deferred work ---- */

static int queue_cntr_op(struct fab_domain *domain, struct fi_deferred_work *deferred)
{
	const struct fi_op_cntr *op = deferred->op.cntr;
	struct fab_cntr *cntr, *target;
	struct work *work;

	if (deferred->completion_cntr) {
		FI_WARN(prov_of(domain), FI_LOG_DOMAIN, "FI_QUEUE_WORK: completion_cntr must be NULL with FI_OP_CNTR_SET "
			"and FI_OP_CNTR_ADD\n");
		return -FI_EINVAL;
	}
	cntr = cntr_of(domain, deferred->triggering_cntr, "FI_QUEUE_WORK: triggering_cntr");
	target = cntr_of(domain, op->cntr, "FI_QUEUE_WORK: op.cntr->cntr");
	if (!cntr || !target)
		return -FI_EINVAL;
	work = calloc(1, sizeof(*work));
	if (!work)
		return -FI_ENOMEM;
	work->domain = domain;
	work->cntr = cntr;
	work->threshold = deferred->threshold;
	work->progress = target->progress;
	work->deferred = deferred;
	work->target = target;
	work->set = deferred->op_type == FI_OP_CNTR_SET;
	work->value = op->value;
	return work_arm(work);
}

/* Each kind of operation: through the data call that it is, which makes a struct fab_op of it and comes back in
 * fab_trigger_op(). The structs of atomic operations begin with what an fi_op_atomic is. */
#define DRAFT(what)								\
	({									\
		__typeof__((what)->msg) msg_ = (what)->msg;			\
										\
		draft->flags = (what)->flags;					\
		draft->context = msg_.context;					\
		msg_.context = draft;						\
		msg_;								\
	})

static ssize_t call(struct draft *draft)
{
	const struct fi_deferred_work *work = draft->deferred;
	const uint64_t trigger = FI_TRIGGER;

	switch (work->op_type) {
	case FI_OP_RECV: {
		struct fi_msg msg = DRAFT(work->op.msg);

		return fi_recvmsg(work->op.msg->ep, &msg, work->op.msg->flags | trigger);
	}
	case FI_OP_SEND: {
		struct fi_msg msg = DRAFT(work->op.msg);

		return fi_sendmsg(work->op.msg->ep, &msg, work->op.msg->flags | trigger);
	}
	case FI_OP_TRECV: {
		struct fi_msg_tagged msg = DRAFT(work->op.tagged);

		return fi_trecvmsg(work->op.tagged->ep, &msg, work->op.tagged->flags | trigger);
	}
	case FI_OP_TSEND: {
		struct fi_msg_tagged msg = DRAFT(work->op.tagged);

		return fi_tsendmsg(work->op.tagged->ep, &msg, work->op.tagged->flags | trigger);
	}
	case FI_OP_READ: {
		struct fi_msg_rma msg = DRAFT(work->op.rma);

		return fi_readmsg(work->op.rma->ep, &msg, work->op.rma->flags | trigger);
	}
	case FI_OP_WRITE: {
		struct fi_msg_rma msg = DRAFT(work->op.rma);

		return fi_writemsg(work->op.rma->ep, &msg, work->op.rma->flags | trigger);
	}
	case FI_OP_ATOMIC: {
		struct fi_msg_atomic msg = DRAFT(work->op.atomic);

		return fi_atomicmsg(work->op.atomic->ep, &msg, work->op.atomic->flags | trigger);
	}
	case FI_OP_FETCH_ATOMIC: {
		struct fi_op_fetch_atomic *op = work->op.fetch_atomic;
		struct fi_msg_atomic msg = DRAFT(op);

		return fi_fetch_atomicmsg(op->ep, &msg, op->fetch.msg_iov, op->fetch.desc, op->fetch.iov_count,
					  op->flags | trigger);
	}
	case FI_OP_COMPARE_ATOMIC: {
		struct fi_op_compare_atomic *op = work->op.compare_atomic;
		struct fi_msg_atomic msg = DRAFT(op);

		return fi_compare_atomicmsg(op->ep, &msg, op->compare.msg_iov, op->compare.desc, op->compare.iov_count,
					    op->fetch.msg_iov, op->fetch.desc, op->fetch.iov_count,
					    op->flags | trigger);
	}
	default:
		return -FI_ENOSYS;
	}
}

static bool is_cntr_op(const struct fi_deferred_work *deferred)
{
	return deferred->op_type == FI_OP_CNTR_SET || deferred->op_type == FI_OP_CNTR_ADD;
}

static int work_queue(struct fab_domain *domain, struct fi_deferred_work *deferred)
{
	struct draft draft = { .domain = domain, .deferred = deferred };
	int ret;

	if (!deferred || !deferred->op.msg) {
		FI_WARN(prov_of(domain), FI_LOG_DOMAIN, "FI_QUEUE_WORK: %s is NULL\n", deferred ? "op" : "the work");
		return -FI_EINVAL;
	}
	if (is_cntr_op(deferred))
		return queue_cntr_op(domain, deferred);
	if (deferred->completion_cntr &&
	    !cntr_of(domain, deferred->completion_cntr, "FI_QUEUE_WORK: completion_cntr"))
		return -FI_EINVAL;
	drafting = &draft;
	ret = (int) call(&draft);
	drafting = NULL;
	return ret;
}

static int work_cancel(struct fab_domain *domain, struct fi_deferred_work *deferred)
{
	struct work *work;

	if (!deferred)
		return -FI_EINVAL;
	work = take_back(domain, &(struct fit) { .deferred = deferred });
	if (!work)
		return -FI_ENOENT;
	work_free(work);
	return 0;
}

static int work_flush(struct fab_domain *domain, struct fid_cntr *fid)
{
	struct fit fit = { .only_deferred = true };
	struct work *work;

	if (fid) {
		fit.cntr = cntr_of(domain, fid, "FI_FLUSH_WORK: the counter");
		if (!fit.cntr)
			return -FI_EINVAL;
	}
	while ((work = take_back(domain, &fit)))
		work_free(work);
	return 0;
}

int fab_work_control(struct fab_domain *domain, int command, void *arg)
{
	switch (command) {
	case FI_QUEUE_WORK:
		return work_queue(domain, arg);
	case FI_CANCEL_WORK:
		return work_cancel(domain, arg);
	case FI_FLUSH_WORK:
		return work_flush(domain, arg);
	default:
		return -FI_ENOSYS;
	}
}
