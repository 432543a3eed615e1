/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See trigger.h: copying, queueing and cancelling triggered operations and deferred work.
 */
#include "common/trigger/trigger_work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/calls/calls.h"
#include "common/hmem/hmem.h"

static const struct fi_provider *trigger_prov(const struct fab_domain *domain)
{
	return domain->fabric->prov;
}

/* ---- triggered operations ---- */

static struct fab_cntr *trigger_cntr(const struct fab_domain *domain, struct fid_cntr *fid, const char *what)
{
	struct fab_cntr *cntr;

	if (fid && fid->fid.fclass == FI_CLASS_CNTR) {
		cntr = fab_container(fid, struct fab_cntr, cntr_fid);
		if (cntr->domain == domain)
			return cntr;
	}
	FI_WARN(trigger_prov(domain), FI_LOG_EP_DATA, "%s is %s; it must be a counter of the domain\n", what,
		fid ? "something else" : "NULL");
	return NULL;
}

/* Find the counter and threshold of an operation with FI_TRIGGER. 0 or -FI_E*. */
static int condition_of(struct fab_ep *ep, const struct fi_triggered_context *context, struct fab_cntr **cntr,
			uint64_t *threshold)
{
	const struct fi_provider *prov = trigger_prov(ep->domain);

	if (!(ep->caps & FI_TRIGGER)) {
		FI_WARN(prov, FI_LOG_EP_DATA, "FI_TRIGGER: the endpoint was opened without that capability\n");
		return -FI_EBADFLAGS;
	}
	if (!context || context->event_type != FI_TRIGGER_THRESHOLD) {
		bool xpu = context && context->event_type == FI_TRIGGER_XPU;

		FI_WARN(prov, FI_LOG_EP_DATA, "FI_TRIGGER: %s; the context is a struct fi_triggered_context with "
			"event_type FI_TRIGGER_THRESHOLD\n", !context ? "context is NULL" :
			xpu ? "FI_TRIGGER_XPU requires a device, but only system memory is supported" :
			      "event_type is unknown");
		return xpu ? -FI_ENOSYS : -FI_EINVAL;
	}
	*cntr = trigger_cntr(ep->domain, context->trigger.threshold.cntr, "FI_TRIGGER: trigger.threshold.cntr");
	*threshold = context->trigger.threshold.threshold;
	return *cntr ? 0 : -FI_EINVAL;
}

/* Copy len bytes to *pos, and advance *pos. Returns the copy. */
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

/* What the copy of an operation is made of. */
struct copies {
	uint8_t *pos;
	uint8_t *data;			/* for the buffers */
	uint8_t hmem;			/* their number, if they are memory of a device */
	bool failed;			/* a copy from the device */
};

/* Copy a vector, and if with_data is set its buffers. */
static const struct iovec *put_vec(struct copies *to, bool with_data, const struct iovec *from, uint32_t cnt)
{
	struct iovec *iov = put(&to->pos, from, vec_len(cnt));

	for (uint32_t i = 0; with_data && i < cnt; i++) {
		if (to->hmem) {
			to->failed |= fab_hmem_from(to->hmem, to->data, &iov[i], 0, iov[i].iov_len) != 0;
			iov[i].iov_base = to->data;
			to->data += iov[i].iov_len;
		} else {
			iov[i].iov_base = put(&to->data, iov[i].iov_base, iov[i].iov_len);
		}
	}
	return iov;
}

/* The length of the buffers that FI_INJECT returns to the application at once: all but those for results. */
static size_t inject_len(const struct fab_op *op)
{
	size_t len = op->code < FAB_OP_READ ? fab_iov_len(op->iov, op->iov_cnt) : 0;

	if (op->amo)
		len += fab_iov_len(op->amo->operand, op->amo->operand_cnt) +
		       fab_iov_len(op->amo->compare, op->amo->compare_cnt);
	return len;
}

/* Make a work: a copy of draft, with a copy of op and all that it points to. NULL: no memory, or injected data could
 * not be copied from a device. */
static struct fab_work *work_copy(const struct fab_work *draft, const struct fab_op *op)
{
	const struct fab_amo none = { 0 }, *amo = op->amo ? op->amo : &none;
	size_t rma_len = op->rma_cnt * sizeof(*op->rma);
	size_t desc_len = op->desc ? op->iov_cnt * sizeof(*op->desc) : 0;
	size_t len = sizeof(struct fab_work) + sizeof(*amo) + rma_len +
		     vec_len(op->iov_cnt + amo->operand_cnt + amo->compare_cnt) + desc_len;
	bool inject = op->flags & FI_INJECT, whole = inject && op->code < FAB_OP_READ;
	struct copies to = { .hmem = fab_op_hmem(op->flags) };
	struct fab_work *work = calloc(1, len + (inject ? inject_len(op) : 0));
	struct fab_amo *copy;

	if (!work)
		return NULL;
	to.pos = (uint8_t *) (work + 1);
	to.data = (uint8_t *) work + len;
	*work = *draft;
	work->op = *op;
	if (op->hooked)
		work->op.context = &work->hook;
	work->op.desc = NULL;
	work->op.flags &= ~FI_TRIGGER;
	work->op.accepted = true;
	if (whole)
		work->op.flags &= ~FAB_OP_HMEM_BITS;	/* the copies are the host's */
	copy = put(&to.pos, amo, sizeof(*amo));
	work->op.rma = put(&to.pos, op->rma, rma_len);
	work->op.iov = put_vec(&to, whole, op->iov, op->iov_cnt);
	if (desc_len && !whole)
		work->op.desc = put(&to.pos, op->desc, desc_len);
	copy->call = NULL;
	copy->operand = put_vec(&to, inject, amo->operand, amo->operand_cnt);
	copy->compare = put_vec(&to, inject, amo->compare, amo->compare_cnt);
	if (to.failed) {
		free(work);
		return NULL;
	}
	if (op->amo)
		work->op.amo = copy;
	return work;
}

bool fab_trigger_defers_recv(const struct fab_ep *ep)
{
	struct fab_list *link;
	bool found = false;

	pthread_mutex_lock(&ep->domain->works.lock);
	fab_list_for_each(&ep->domain->works.list, link) {
		const struct fab_work *work = fab_container(link, struct fab_work, all);

		found |= work->ep == ep && work->deferred && !work->ended && work->op.code >= FAB_OP_RECV;
	}
	pthread_mutex_unlock(&ep->domain->works.lock);
	return found;
}

int fab_trigger_op(struct fab_ep *ep, const struct fab_op *op, fab_trigger_submit *submit)
{
	struct fab_work draft = { .domain = ep->domain, .context = op->context };
	struct fab_work *work;
	int ret = 0;

	if (op->hooked)
		draft = *fab_container(op->context, struct fab_work, hook);
	else
		ret = condition_of(ep, op->context, &draft.cntr, &draft.threshold);
	if (ret)
		return ret;
	draft.engine = ep->engine;
	draft.ep = ep;
	draft.submit = submit;
	work = work_copy(&draft, op);
	if (!work)
		return -FI_ENOMEM;
	fab_engine_unlock(ep->engine);
	ret = fab_work_arm(work);
	fab_engine_lock(ep->engine);
	return ret;
}

bool fab_trigger_cancel(struct fab_ep *ep, void *context)
{
	const struct fab_work_fit fit = { .ep = ep, .context = context, .only_triggered = true };
	struct fab_work *work;

	if (!context)
		return false;
	work = fab_work_take_back(ep->domain, &fit);
	if (work)
		fab_work_fail(work, FI_ECANCELED, "cancelled before its counter triggered it");
	return work;
}

void fab_trigger_close(struct fab_ep *ep)
{
	const struct fab_work_fit fit = { .ep = ep };
	struct fab_work *work;

	while ((work = fab_work_take_back(ep->domain, &fit))) {
		if (work->deferred) {
			fab_work_drop(work);
			continue;
		}
		fab_engine_lock(ep->engine);
		fab_work_fail(work, FI_ECANCELED, "the endpoint was closed before its counter triggered it");
		fab_engine_unlock(ep->engine);
	}
}

/* ---- deferred work ---- */

static int queue_cntr_op(struct fab_domain *domain, struct fi_deferred_work *deferred)
{
	const struct fi_op_cntr *op = deferred->op.cntr;
	struct fab_cntr *cntr, *target;
	struct fab_work *work;

	if (deferred->completion_cntr) {
		FI_WARN(trigger_prov(domain), FI_LOG_DOMAIN, "FI_QUEUE_WORK: completion_cntr must be NULL with "
			"FI_OP_CNTR_SET and FI_OP_CNTR_ADD\n");
		return -FI_EINVAL;
	}
	cntr = trigger_cntr(domain, deferred->triggering_cntr, "FI_QUEUE_WORK: triggering_cntr");
	target = trigger_cntr(domain, op->cntr, "FI_QUEUE_WORK: op.cntr->cntr");
	if (!cntr || !target)
		return -FI_EINVAL;
	work = calloc(1, sizeof(*work));
	if (!work)
		return -FI_ENOMEM;
	work->domain = domain;
	work->cntr = cntr;
	work->threshold = deferred->threshold;
	work->deferred = deferred;
	work->target = target;
	work->set = deferred->op_type == FI_OP_CNTR_SET;
	work->value = op->value;
	return fab_work_arm(work);
}

static bool is_cntr_op(const struct fi_deferred_work *deferred)
{
	return deferred->op_type == FI_OP_CNTR_SET || deferred->op_type == FI_OP_CNTR_ADD;
}

/* Flags of operations that cannot be deferred, since they have no completion of their own, or several. */
#define NOT_DEFERRED (FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD)

/* Complete draft, and submit its operation with the draft's hook as the context. The provider checks the operation and
 * calls fab_trigger_op(), which copies the draft. */
static int queue_op(struct fab_work *draft, const struct fab_calls *calls, struct fab_deferred_op *made)
{
	const struct fi_provider *prov = trigger_prov(draft->domain);
	struct fab_op *op = &made->op;

	if (made->ep->domain != draft->domain) {
		FI_WARN(prov, FI_LOG_EP_DATA, "FI_QUEUE_WORK: the endpoint belongs to another domain\n");
		return -FI_EINVAL;
	}
	if (op->flags & NOT_DEFERRED) {
		FI_WARN(prov, FI_LOG_EP_DATA, "FI_QUEUE_WORK: flags %#" PRIx64 "; FI_MULTI_RECV, FI_PEEK, FI_CLAIM and "
			"FI_DISCARD cannot be deferred\n", op->flags);
		return -FI_ENOSYS;
	}
	draft->cntr = trigger_cntr(draft->domain, draft->deferred->triggering_cntr, "FI_QUEUE_WORK: triggering_cntr");
	if (!draft->cntr)
		return -FI_EINVAL;
	draft->threshold = draft->deferred->threshold;
	draft->report = made->flags & FI_COMPLETION;
	draft->context = op->context;
	draft->hook.done = fab_work_done;
	op->context = &draft->hook;
	op->hooked = true;
	return (int) (op->code >= FAB_OP_RECV ? calls->post_recv : calls->submit)(made->ep, op);
}

static int work_queue(struct fab_domain *domain, const struct fab_calls *calls, struct fi_deferred_work *deferred)
{
	struct fab_work draft = { .domain = domain, .deferred = deferred };
	struct fab_deferred_op made;
	int ret;

	if (!deferred || !deferred->op.msg) {
		FI_WARN(trigger_prov(domain), FI_LOG_DOMAIN, "FI_QUEUE_WORK: %s is NULL\n",
			deferred ? "op" : "the work");
		return -FI_EINVAL;
	}
	if (is_cntr_op(deferred))
		return queue_cntr_op(domain, deferred);
	if (deferred->completion_cntr) {
		draft.completion = trigger_cntr(domain, deferred->completion_cntr, "FI_QUEUE_WORK: completion_cntr");
		if (!draft.completion)
			return -FI_EINVAL;
	}
	ret = fab_op_of_deferred(calls, deferred, &made);
	return ret ? ret : queue_op(&draft, calls, &made);
}

static int work_cancel(struct fab_domain *domain, struct fi_deferred_work *deferred)
{
	struct fab_work *work;

	if (!deferred)
		return -FI_EINVAL;
	work = fab_work_take_back(domain, &(struct fab_work_fit) { .deferred = deferred });
	if (!work)
		return -FI_ENOENT;
	fab_work_free(work);
	return 0;
}

static int work_flush(struct fab_domain *domain, struct fid_cntr *fid)
{
	struct fab_work_fit fit = { .only_deferred = true };
	struct fab_work *work;

	if (fid) {
		fit.cntr = trigger_cntr(domain, fid, "FI_FLUSH_WORK: the counter");
		if (!fit.cntr)
			return -FI_EINVAL;
	}
	while ((work = fab_work_take_back(domain, &fit)))
		fab_work_drop(work);
	return 0;
}

int fab_work_control(struct fab_domain *domain, const struct fab_calls *calls, int command, void *arg)
{
	switch (command) {
	case FI_QUEUE_WORK:
		return work_queue(domain, calls, arg);
	case FI_CANCEL_WORK:
		return work_cancel(domain, arg);
	case FI_FLUSH_WORK:
		return work_flush(domain, arg);
	default:
		return -FI_ENOSYS;
	}
}

int fab_domain_work_control(struct fid *fid, const struct fab_calls *calls, int command, void *arg)
{
	int ret = fab_work_control(fab_container(fid, struct fab_domain, domain_fid.fid), calls, command, arg);

	return ret == -FI_ENOSYS ? fab_domain_control(fid, command, arg) : ret;
}
