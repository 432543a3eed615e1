/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The common part of all endpoints: binding, the choice of the engine, the checks before an endpoint is enabled, and
 * failed operations.
 */
#include "common/endpoint/ep.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

#define TX_MODIFIERS (FI_SEND | FI_READ | FI_WRITE)

static const struct fi_provider *ep_prov(const struct fab_ep *ep)
{
	return ep->domain->fabric->prov;
}

/* ---- engines ---- */

/* List the wait objects of all queues and counters bound to the endpoint. Returns their number. */
static unsigned list_bound(const struct fab_ep *ep, struct fab_wait *bound[2 + FAB_CNTR_MAX])
{
	unsigned cnt = 0;

	if (ep->bound.tx_cq)
		bound[cnt++] = &ep->bound.tx_cq->wait;
	if (ep->bound.rx_cq)
		bound[cnt++] = &ep->bound.rx_cq->wait;
	for (int i = 0; i < FAB_CNTR_MAX; i++) {
		if (ep->bound.cntr[i])
			bound[cnt++] = &ep->bound.cntr[i]->wait;
	}
	return cnt;
}

/* Put the endpoint on this engine. */
static void adopt(struct fab_ep *ep, struct fab_engine *engine)
{
	ep->has_engine = true;
	ep->engine = engine;
	fab_domain_add_ep(ep->domain, engine);
}

/* The engine that an endpoint and these queues have, if any: *engine, NULL for none. False: they have several. */
static bool one_engine(const struct fab_ep *ep, struct fab_wait *const *bound, unsigned cnt, struct fab_engine **engine)
{
	struct fab_engine *one = ep->has_engine ? ep->engine : NULL;

	for (unsigned i = 0; i < cnt; i++) {
		if (!bound[i]->settled || bound[i]->engine == one)
			continue;
		if (one)
			return false;
		one = bound[i]->engine;
	}
	*engine = one;
	return true;
}

/* The endpoint moves to the domain's engine, and the engine that it has follows the domain's from now on. The endpoint
 * is not enabled. 0 or -FI_E*. */
static int move_to_domain(struct fab_ep *ep)
{
	int ret;

	if (!ep->has_engine)
		return 0;
	ret = fab_domain_lead(ep->domain, ep->engine);
	if (ret)
		return ret;
	fab_domain_del_ep(ep->domain, ep->engine);
	adopt(ep, &ep->domain->engine);
	return 0;
}

/* An enabled endpoint stays on its engine, and `what` is on another. */
static int cannot_follow(const struct fab_ep *ep, const char *what)
{
	FI_WARN(ep_prov(ep), FI_LOG_EP_CTRL, "fi_ep_bind of %s to an enabled endpoint: with FI_THREAD_COMPLETION it "
		"must not be in use by endpoints with other queues; bind it before fi_enable(), or use "
		"FI_THREAD_SAFE\n", what);
	return -FI_EINVAL;
}

/* An endpoint whose queues are on several engines runs on the domain's, which these follow from now on; *to is that
 * one. 0 or -FI_E*; -FI_EINVAL, logged: it is enabled, and stays where it is. */
static int split_engines(struct fab_ep *ep, struct fab_wait *const *bound, unsigned cnt, struct fab_engine **to)
{
	int ret;

	if (ep->enabled)
		return cannot_follow(ep, "a counter");
	ret = move_to_domain(ep);
	for (unsigned i = 0; i < cnt && !ret; i++) {
		if (bound[i]->settled)
			ret = fab_domain_lead(ep->domain, bound[i]->engine);
	}
	*to = &ep->domain->engine;
	return ret;
}

/* The engine for an endpoint with these queues, with a reference to it: the one that it or a queue has, the domain's if
 * they have several, a new one for queues that have none; the domain's if there are no queues. join_lock held. 0 or
 * -FI_E*. */
static int find_engine(struct fab_ep *ep, struct fab_wait *const *bound, unsigned cnt, struct fab_engine **to)
{
	struct fab_engine *engine = NULL;
	int ret;

	if (!one_engine(ep, bound, cnt, &engine)) {
		ret = split_engines(ep, bound, cnt, &engine);
		if (ret)
			return ret;
	}
	if (!engine && cnt)
		return fab_domain_get_engine(ep->domain, to);
	*to = engine ? engine : ep->engine;
	fab_domain_hold_engine(ep->domain, *to);
	return 0;
}

/* Put an endpoint and its queues on one engine; join_lock held. After an error some of the queues may be on it already,
 * and a second call adds the others. */
static int come_together(struct fab_ep *ep, struct fab_wait *const *bound, unsigned cnt)
{
	struct fab_engine *to;
	int ret;

	ret = find_engine(ep, bound, cnt, &to);
	if (ret)
		return ret;
	for (unsigned i = 0; i < cnt && !ret; i++) {
		/* the same queue may be bound twice */
		if (!bound[i]->settled)
			ret = fab_queue_settle(ep->domain, bound[i], to);
	}
	if (!ret && !ep->has_engine)
		adopt(ep, to);
	fab_domain_put_engine(ep->domain, to);
	return ret;
}

static int choose_engine_locked(struct fab_ep *ep)
{
	struct fab_wait *bound[2 + FAB_CNTR_MAX];

	return come_together(ep, bound, list_bound(ep, bound));
}

static void lock_joins(const struct fab_ep *ep)
{
	pthread_mutex_lock(&ep->domain->engines.join_lock);
}

static void unlock_joins(const struct fab_ep *ep)
{
	pthread_mutex_unlock(&ep->domain->engines.join_lock);
}

/* The engine for all that is bound to an endpoint. */
static int choose_engine(struct fab_ep *ep)
{
	int ret;

	lock_joins(ep);
	ret = choose_engine_locked(ep);
	unlock_joins(ep);
	return ret;
}

static int fix_engine_locked(struct fab_ep *ctx)
{
	struct fab_engine *engine;
	int ret;

	if (!ctx->domain->engines.per_queue || ctx->has_engine)
		return 0;
	ret = fab_domain_get_engine(ctx->domain, &engine);
	if (ret)
		return ret;
	adopt(ctx, engine);
	fab_domain_put_engine(ctx->domain, engine);
	return 0;
}

int fab_ep_fix_engine(struct fab_ep *ctx)
{
	int ret;

	lock_joins(ctx);
	ret = fix_engine_locked(ctx);
	unlock_joins(ctx);
	return ret;
}

static int share_engine_locked(struct fab_ep *ep, struct fab_ep *ctx)
{
	bool queues = ep->bound.tx_cq || ep->bound.rx_cq || ep->report.counted;
	int ret = 0;

	if (!ctx->has_engine && !ep->has_engine && queues)
		ret = choose_engine_locked(ep);
	if (ret)
		return ret;
	if (!ctx->has_engine && ep->has_engine)
		adopt(ctx, ep->engine);
	ret = fix_engine_locked(ctx);
	if (ret)
		return ret;
	if (!ep->has_engine)
		adopt(ep, ctx->engine);
	if (ep->engine == ctx->engine)
		return 0;
	if (ep->enabled)
		return cannot_follow(ep, "a shared context");
	ret = fab_domain_lead(ep->domain, ctx->engine);
	return ret ? ret : move_to_domain(ep);
}

int fab_ep_share_engine(struct fab_ep *ep, struct fab_ep *ctx)
{
	int ret;

	if (!ep->domain->engines.per_queue)
		return 0;
	lock_joins(ep);
	ret = share_engine_locked(ep, ctx);
	unlock_joins(ep);
	return ret;
}

/* ---- bind ---- */

static int wrong_flags(const struct fab_ep *ep, const char *what, uint64_t flags, const char *allowed)
{
	FI_WARN(ep_prov(ep), FI_LOG_EP_CTRL, "%s with flags %#" PRIx64 "; allowed are %s\n", what,
		flags, allowed);
	return -FI_EBADFLAGS;
}

static int ep_refuse(const struct fab_ep *ep, const char *what, const char *why, int err)
{
	FI_WARN(ep_prov(ep), FI_LOG_EP_CTRL, "fi_ep_bind of %s: %s\n", what, why);
	return -err;
}

static int check_cq(const struct fab_ep *ep, const struct fab_cq *cq, uint64_t flags)
{
	if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) || !(flags & (FI_TRANSMIT | FI_RECV)))
		return wrong_flags(ep, "fi_ep_bind of a completion queue", flags,
				   "FI_TRANSMIT or FI_RECV or both, with or without FI_SELECTIVE_COMPLETION");
	if (cq->domain != ep->domain)
		return ep_refuse(ep, "a completion queue", "it belongs to another domain", FI_EDOMAIN);
	if (ep->enabled)
		return ep_refuse(ep, "a completion queue", "the endpoint is enabled; bind before fi_enable()",
				 FI_EOPBADSTATE);
	if (((flags & FI_TRANSMIT) && ep->bound.tx_cq) || ((flags & FI_RECV) && ep->bound.rx_cq))
		return ep_refuse(ep, "a completion queue", "the endpoint has one for these completions", FI_EINVAL);
	return 0;
}

static void take_cq(struct fab_ep *ep, struct fab_cq *cq, uint64_t flags)
{
	fab_engine_lock(cq->wait.engine);
	if (flags & FI_TRANSMIT) {
		cq->ref++;
		ep->bound.tx_cq = cq;
		ep->report.tx_selective = flags & FI_SELECTIVE_COMPLETION;
		ep->report.tx_each = !ep->report.tx_selective;
		ep->report.tx_msg_flags = ep->report.tx_selective ? 0 : FI_COMPLETION;
	}
	if (flags & FI_RECV) {
		cq->ref++;
		ep->bound.rx_cq = cq;
		ep->report.rx_selective = flags & FI_SELECTIVE_COMPLETION;
		ep->report.rx_msg_flags = ep->report.rx_selective ? 0 : FI_COMPLETION;
	}
	fab_engine_unlock(cq->wait.engine);
}

static int bind_cq(struct fab_ep *ep, struct fab_cq *cq, uint64_t flags)
{
	int ret = check_cq(ep, cq, flags);

	if (ret)
		return ret;
	lock_joins(ep);
	take_cq(ep, cq, flags);
	unlock_joins(ep);
	return 0;
}

static const uint64_t cntr_flag[FAB_CNTR_MAX] = {
	[FAB_CNTR_SEND] = FI_SEND,
	[FAB_CNTR_RECV] = FI_RECV,
	[FAB_CNTR_READ] = FI_READ,
	[FAB_CNTR_WRITE] = FI_WRITE,
	[FAB_CNTR_REMOTE_READ] = FI_REMOTE_READ,
	[FAB_CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
};

/* The operations that the endpoint can count, of those in `flags`: peers' operations only with FI_RMA_EVENT. */
static uint64_t countable(const struct fab_ep *ep, uint64_t flags)
{
	return ep->caps & FI_RMA_EVENT ? flags : flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE);
}

static int check_cntr(const struct fab_ep *ep, const struct fab_cntr *cntr, uint64_t flags)
{
	const uint64_t all = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

	if (!flags || (flags & ~all))
		return wrong_flags(ep, "fi_ep_bind of a counter", flags,
				   "FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE, one or more");
	if (cntr->domain != ep->domain)
		return ep_refuse(ep, "a counter", "it belongs to another domain", FI_EDOMAIN);
	if (!countable(ep, flags))
		return ep_refuse(ep, "a counter", "FI_REMOTE_READ and FI_REMOTE_WRITE require an endpoint opened with "
				 "FI_RMA_EVENT", FI_EINVAL);
	for (int i = 0; i < FAB_CNTR_MAX; i++) {
		if ((countable(ep, flags) & cntr_flag[i]) && ep->bound.cntr[i])
			return ep_refuse(ep, "a counter", "the endpoint has one for these operations", FI_EINVAL);
	}
	return 0;
}

/* With the lock held, since operations may be outstanding: a counter may be bound after enable. */
static void take_cntr(struct fab_ep *ep, struct fab_cntr *cntr, uint64_t flags)
{
	if (countable(ep, flags) != flags)
		FI_INFO(ep_prov(ep), FI_LOG_EP_CTRL, "fi_ep_bind of a counter with flags %#" PRIx64 ": the endpoint "
			"was opened without FI_RMA_EVENT; peers' operations are not counted\n", flags);
	flags = countable(ep, flags);
	fab_engine_lock(ep->engine);
	for (int i = 0; i < FAB_CNTR_MAX; i++) {
		if (flags & cntr_flag[i]) {
			atomic_fetch_add(&cntr->ref, 1);
			ep->bound.cntr[i] = cntr;
			ep->report.counted = true;
		}
	}
	fab_engine_unlock(ep->engine);
}

static int ep_bind_cntr(struct fab_ep *ep, struct fab_cntr *cntr, uint64_t flags)
{
	struct fab_wait *wait = &cntr->wait;
	int ret;

	ret = check_cntr(ep, cntr, flags);
	if (ret)
		return ret;
	lock_joins(ep);
	if (ep->enabled)
		ret = come_together(ep, &wait, 1);
	if (!ret)
		take_cntr(ep, cntr, flags);
	unlock_joins(ep);
	return ret;
}

static int bind_av(struct fab_ep *ep, struct fab_av *av)
{
	if (ep->type == FI_EP_MSG)
		return ep_refuse(ep, "an address vector", "a connected endpoint (FI_EP_MSG) uses none", FI_EINVAL);
	if (av->domain != ep->domain)
		return ep_refuse(ep, "an address vector", "it belongs to another domain", FI_EDOMAIN);
	if (ep->enabled)
		return ep_refuse(ep, "an address vector", "the endpoint is enabled; bind before fi_enable()",
				 FI_EOPBADSTATE);
	if (ep->bound.av)
		return ep_refuse(ep, "an address vector", "the endpoint has one", FI_EINVAL);
	fab_av_get(av);
	ep->bound.av = av;
	return 0;
}

static int bind_eq(struct fab_ep *ep, struct fab_eq *eq)
{
	if (eq->fabric != ep->domain->fabric)
		return ep_refuse(ep, "an event queue", "it belongs to another fabric", FI_EDOMAIN);
	if (ep->bound.eq)
		return ep_refuse(ep, "an event queue", "the endpoint has one", FI_EINVAL);
	fab_eq_get(eq);
	fab_engine_lock(ep->engine);
	ep->bound.eq = eq;
	fab_engine_unlock(ep->engine);
	return 0;
}

int fab_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fab_ep *ep = fab_ep_of(fid);

	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, fab_container(bfid, struct fab_cq, cq_fid.fid), flags);
	case FI_CLASS_CNTR:
		return ep_bind_cntr(ep, fab_container(bfid, struct fab_cntr, cntr_fid.fid), flags);
	case FI_CLASS_AV:
		return bind_av(ep, fab_container(bfid, struct fab_av, av_fid.fid));
	case FI_CLASS_EQ:
		return bind_eq(ep, fab_container(bfid, struct fab_eq, eq_fid.fid));
	default:
		FI_WARN(ep_prov(ep), FI_LOG_EP_CTRL, "fi_ep_bind: object of class %zu; completion queues, counters, "
			"address vectors and event queues can be bound\n", bfid->fclass);
		return -FI_EINVAL;
	}
}

/* A shared receive context uses the queues and counters of its endpoints. */
int fab_srx_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	FI_WARN(ep_prov(fab_ep_of(fid)), FI_LOG_EP_CTRL, "fi_ep_bind to a shared receive context: object of class %zu, "
		"flags %#" PRIx64 "; bind queues and counters to the endpoints that use it\n", bfid->fclass, flags);
	return -FI_EINVAL;
}

static void put_cq(struct fab_cq *cq)
{
	if (!cq)
		return;
	fab_engine_lock(cq->wait.engine);
	cq->ref--;
	fab_engine_unlock(cq->wait.engine);
}

void fab_ep_unbind(struct fab_ep *ep)
{
	if (ep->eq_driven)
		fab_eq_del_engine(ep->bound.eq, ep->engine);
	lock_joins(ep);
	if (ep->has_engine)
		fab_domain_del_ep(ep->domain, ep->engine);
	put_cq(ep->bound.tx_cq);
	put_cq(ep->bound.rx_cq);
	unlock_joins(ep);
	for (int i = 0; i < FAB_CNTR_MAX; i++) {
		if (ep->bound.cntr[i])
			atomic_fetch_sub(&ep->bound.cntr[i]->ref, 1);
	}
	if (ep->bound.eq) {
		fab_eq_purge(ep->bound.eq, &ep->ep_fid.fid, NULL);
		fab_eq_put(ep->bound.eq);
	}
	if (ep->bound.av)
		fab_av_put(ep->bound.av);
}

/* ---- enable ---- */

static bool has_cntr(const struct fab_ep *ep)
{
	for (int i = 0; i < FAB_CNTR_MAX; i++) {
		if (ep->bound.cntr[i])
			return true;
	}
	return false;
}

/* True if the application has no queue that it could read to make progress for the endpoint, which is only a target. (A
 * receive context that is only a target has its endpoint's transmit contexts beside it.) */
static bool lacks_queue(const struct fab_ep *ep)
{
	if ((ep->caps & TX_MODIFIERS) && !ep->bound.tx_cq)
		return true;
	if ((ep->caps & FI_RECV) && !ep->bound.rx_cq)
		return true;
	return !ep->bound.tx_cq && !ep->bound.rx_cq && !has_cntr(ep) &&
	       ep->domain->attr.data_progress != FI_PROGRESS_AUTO && ep->ep_fid.fid.fclass != FI_CLASS_RX_CTX;
}

static int check_bound(const struct fab_ep *ep)
{
	const char *what;
	int err;

	if (ep->enabled) {
		err = FI_EOPBADSTATE;
		what = "it is enabled already";
	} else if (lacks_queue(ep)) {
		err = FI_ENOCQ;
		what = "bind a completion queue for each direction that it has (FI_TRANSMIT, FI_RECV)";
	} else if (ep->type != FI_EP_MSG && !ep->bound.av) {
		err = FI_ENOAV;
		what = "bind an address vector";
	} else if (ep->type == FI_EP_MSG && !ep->bound.eq && !ep->domain->events.eq) {
		err = FI_ENOEQ;
		what = "bind an event queue";
	} else {
		return 0;
	}
	FI_WARN(ep_prov(ep), FI_LOG_EP_CTRL, "fi_enable of an endpoint: %s\n", what);
	return -err;
}

int fab_ep_check_enable(struct fab_ep *ep)
{
	int ret;

	ret = check_bound(ep);
	if (!ret)
		ret = choose_engine(ep);
	if (ret)
		return ret;
	if (!ep->bound.eq && ep->domain->events.eq) {
		fab_eq_get(ep->domain->events.eq);
		ep->bound.eq = ep->domain->events.eq;
	}
	if (ep->type == FI_EP_MSG && !ep->eq_driven) {
		ret = fab_eq_add_engine(ep->bound.eq, ep->engine);
		ep->eq_driven = !ret;
	}
	if (!ret)
		fab_stats_ep_enabled(ep->stats, ep->engine->stats.record, ep->ep_fid.fid.fclass);
	return ret;
}

void fab_ep_fail(struct fab_ep *ep, enum fab_op_code code, const struct fab_comp *comp, const struct fab_cq_fail *fail)
{
	struct fab_cq *cq = code >= FAB_OP_RECV ? ep->bound.rx_cq : ep->bound.tx_cq;
	struct fab_cntr *cntr = ep->bound.cntr[fab_op_desc[code].cntr];

	FAB_PROBE4(error, ep, code, comp->context, fail->err);
	if (ep->stats && fail->err != FI_ECANCELED)
		fab_stats_error(ep->stats, code, comp, fail->err, fail->prov_errno, fail->text);
	if (cq)
		fab_cq_write_err(cq, comp, fail);
	if (cntr)
		fab_cntr_err(cntr);
}
