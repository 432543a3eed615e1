/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What every endpoint shares: binding, the checks before it is enabled, default flags, and failed operations.
 */
#include "common/ep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/ops.h"
#include "common/ops_part.h"

#define TX_MODIFIERS (FI_SEND | FI_READ | FI_WRITE)
#define RX_MODIFIERS (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)

static const struct fi_provider *prov_of(const struct fab_ep *ep)
{
	return ep->domain->fabric->prov;
}

/* ---- open and close ---- */

uint64_t fab_caps_full(uint64_t caps)
{
	if ((caps & (FI_MSG | FI_TAGGED)) && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	if ((caps & (FI_RMA | FI_ATOMIC)) && !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)))
		caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	return caps;
}

/* What is left of the endpoint's capabilities after those of its transmit and receive attributes, 0 meaning no
 * restriction. */
static uint64_t effective_caps(const struct fi_info *info)
{
	uint64_t caps = fab_caps_full(info->caps);

	if (info->tx_attr && info->tx_attr->caps)
		caps &= fab_caps_full(info->tx_attr->caps) | ~TX_MODIFIERS;
	if (info->rx_attr && info->rx_attr->caps)
		caps &= fab_caps_full(info->rx_attr->caps) | ~RX_MODIFIERS;
	return caps;
}

static int check_info(const struct fab_domain *domain, const struct fi_info *info)
{
	const struct fi_provider *prov = domain->fabric->prov;

	if (!info || !info->ep_attr || !info->domain_attr || !info->fabric_attr) {
		FI_WARN(prov, FI_LOG_EP_CTRL, "fi_endpoint: info %s; pass an info of fi_getinfo()\n",
			info ? "lacks ep_attr, domain_attr or fabric_attr" : "is NULL");
		return -FI_EINVAL;
	}
	switch (info->ep_attr->type) {
	case FI_EP_MSG:
		return 0;
	case FI_EP_RDM:
	case FI_EP_DGRAM:
		if (info->addr_format == domain->addr_format)
			return 0;
		FI_WARN(prov, FI_LOG_EP_CTRL, "fi_endpoint: info->addr_format is %u, that of domain %s, and so of its "
			"address vectors, is %u\n", info->addr_format, domain->name, domain->addr_format);
		return -FI_EINVAL;
	default:
		FI_WARN(prov, FI_LOG_EP_CTRL, "fi_endpoint: ep_attr->type is %d\n", info->ep_attr->type);
		return -FI_EINVAL;
	}
}

/* The endpoint's authorization key: its own, or the domain's; none with FI_AV_AUTH_KEY. */
static int get_auth_key(const struct fab_domain *domain, const struct fi_info *info, struct fab_auth_key **key)
{
	const struct fi_provider *prov = domain->fabric->prov;
	const struct fi_ep_attr *attr = info->ep_attr;
	size_t len = FI_VERSION_LT(domain->fabric->fabric_fid.api_version, FI_VERSION(1, 5)) ? 0 : attr->auth_key_size;

	*key = NULL;
	if (domain->av_auth_key && (attr->type == FI_EP_MSG || (len && len != FI_AV_AUTH_KEY))) {
		FI_WARN(prov, FI_LOG_EP_CTRL, "fi_endpoint: domain %s has its authorization keys in address vectors "
			"(FI_AV_AUTH_KEY): an endpoint has none of its own, and is not FI_EP_MSG\n", domain->name);
		return -FI_EINVAL;
	}
	if (len && !domain->av_auth_key)
		return fab_auth_get(prov, "fi_endpoint", attr->auth_key, len, key);
	*key = fab_auth_share(domain->auth_key);
	return 0;
}

/* The table for a family of calls that the endpoint has, or the one in which nothing is supported. */
#define TABLE(ops, none) ({ if (ops) FAB_OPS_FILL(ops); (ops) ? (ops) : &(none); })

int fab_ep_init(struct fab_ep *ep, struct fab_domain *domain, const struct fi_info *info, const struct fab_ep_ops *ops,
		void *context)
{
	struct fab_auth_key *auth_key;
	int ret;

	ret = check_info(domain, info);
	if (!ret)
		ret = get_auth_key(domain, info, &auth_key);
	if (ret)
		return ret;
	*ep = (struct fab_ep) {
		.domain = domain,
		.progress = &domain->progress,
		.type = info->ep_attr->type,
		.caps = effective_caps(info),
		.tx_msg_flags = FI_COMPLETION,
		.rx_msg_flags = FI_COMPLETION,
		.auth_key = auth_key,
		.info = fi_dupinfo(info),
	};
	if (!ep->info) {
		ret = -FI_ENOMEM;
		goto put_key;
	}
	FAB_OPS_FILL(ops->fid);
	FAB_OPS_FILL(ops->ep);
	ep->own = (struct fab_ep_fid) {
		.ep_fid = {
			.fid = { .fclass = FI_CLASS_EP, .context = context, .ops = ops->fid },
			.ops = ops->ep,
			.cm = TABLE(ops->cm, fab_no_cm),
			.msg = TABLE(ops->msg, fab_no_msg),
			.tagged = TABLE(ops->tagged, fab_no_tagged),
			.rma = TABLE(ops->rma, fab_no_rma),
			.atomic = TABLE(ops->atomic, fab_no_atomic),
			.collective = TABLE(ops->collective, fab_no_collective),
		},
		.ep = ep,
		.tx_op_flags = info->tx_attr ? info->tx_attr->op_flags : 0,
		.rx_op_flags = info->rx_attr ? info->rx_attr->op_flags : 0,
	};
	ret = fab_ops_part_take(&ep->ep_fid, ep->caps, &ep->part);
	if (ret)
		goto free_info;
	atomic_fetch_add(&domain->ref, 1);
	return 0;

free_info:
	fi_freeinfo(ep->info);
put_key:
	fab_auth_put(auth_key);
	return ret;
}

/* Count endpoints of an engine up (1) or down (-1). */
static void count_user(struct fab_progress *progress, int by)
{
	fab_progress_lock(progress);
	progress->user_cnt += by;
	fab_progress_unlock(progress);
}

static unsigned user_cnt(struct fab_progress *progress)
{
	unsigned cnt;

	fab_progress_lock(progress);
	cnt = progress->user_cnt;
	fab_progress_unlock(progress);
	return cnt;
}

static void put_cq(struct fab_cq *cq)
{
	if (!cq)
		return;
	fab_progress_lock(cq->progress);
	cq->ref--;
	fab_progress_unlock(cq->progress);
}

int fab_ep_check_close(const struct fab_ep *ep)
{
	uint32_t cnt = atomic_load(&ep->alias_cnt);

	if (!cnt)
		return 0;
	FI_WARN(prov_of(ep), FI_LOG_EP_CTRL, "fi_close of an endpoint that has %u aliases (fi_ep_alias): close them "
		"first\n", cnt);
	return -FI_EBUSY;
}

void fab_ep_fini(struct fab_ep *ep)
{
	if (ep->eq_driven)
		fab_eq_del_engine(ep->eq, ep->progress);
	if (ep->has_queue)
		count_user(ep->progress, -1);
	fab_domain_put_progress(ep->domain, ep->progress, ep->own_progress);
	put_cq(ep->tx_cq);
	put_cq(ep->rx_cq);
	for (int i = 0; i < FAB_CNTR_MAX; i++) {
		if (ep->cntr[i])
			atomic_fetch_sub(&ep->cntr[i]->ref, 1);
	}
	if (ep->eq)
		fab_eq_put(ep->eq);
	if (ep->av)
		fab_av_put(ep->av);
	fab_auth_put(ep->auth_key);
	fi_freeinfo(ep->info);
	free(ep->part);
	atomic_fetch_sub(&ep->domain->ref, 1);
}

/* ---- engines ---- */

static struct fab_progress_user user_of_cq(struct fab_cq *cq)
{
	return (struct fab_progress_user) { &cq->progress, &cq->own_progress, &cq->wait };
}

static struct fab_progress_user user_of_cntr(struct fab_cntr *cntr)
{
	return (struct fab_progress_user) { &cntr->progress, &cntr->own_progress, &cntr->wait };
}

/* Move what is bound to the endpoint so far to another engine, all of it or, after an error, nothing. */
static int move_queues(struct fab_ep *ep, struct fab_progress *to)
{
	struct fab_progress_user users[2 + FAB_CNTR_MAX];
	struct fab_progress *from = ep->progress;
	unsigned cnt = 0, moved;
	int ret = 0;

	if (ep->tx_cq)
		users[cnt++] = user_of_cq(ep->tx_cq);
	if (ep->rx_cq)
		users[cnt++] = user_of_cq(ep->rx_cq);
	for (int i = 0; i < FAB_CNTR_MAX; i++) {
		if (ep->cntr[i])
			users[cnt++] = user_of_cntr(ep->cntr[i]);
	}
	for (moved = 0; moved < cnt && !ret; moved++) {
		/* one queue may be bound twice */
		if (*users[moved].progress != to)
			ret = fab_progress_join(ep->domain, &users[moved], to);
	}
	/* what has not moved keeps the old engine alive */
	for (unsigned i = 0; ret && i < moved; i++) {
		if (*users[i].progress != from)
			fab_progress_join(ep->domain, &users[i], from);
	}
	return ret;
}

/* The endpoint's first engine. */
static void adopt(struct fab_ep *ep, struct fab_progress *progress)
{
	ep->has_queue = true;
	ep->progress = progress;
	count_user(progress, 1);
	fab_domain_check_serial(ep->domain, progress);
}

/* The endpoint and its queues go to another engine, unless others depend on where they are. */
static int move(struct fab_ep *ep, struct fab_progress *to)
{
	struct fab_progress *from = ep->progress;
	int ret;

	if (from == &ep->domain->progress || user_cnt(from) > 1 || ep->enabled) {
		FI_WARN(prov_of(ep), FI_LOG_EP_CTRL, "fi_ep_bind: with FI_THREAD_COMPLETION all queues, counters and "
			"shared contexts of an endpoint are progressed together, but both this one and those bound "
			"before serve other endpoints already; bind the shared one first, or use FI_THREAD_SAFE\n");
		return -FI_EINVAL;
	}
	count_user(from, -1);	/* it may be gone when its last queue has moved */
	ret = move_queues(ep, to);
	if (ret) {
		count_user(from, 1);
		return ret;
	}
	count_user(to, 1);
	fab_domain_check_serial(ep->domain, to);
	ep->progress = to;
	return 0;
}

/* Bring a queue that is about to be bound, and the endpoint, to one engine. What is on the domain's engine, though
 * others have their own, must stay there: a counter of memory regions (fab_mr_count). */
static int join(struct fab_ep *ep, const struct fab_progress_user *queue)
{
	struct fab_progress *theirs = *queue->progress, *ours = ep->progress, *fixed = &ep->domain->progress;

	if (theirs == ours && ep->has_queue)
		return 0;
	if (!ep->has_queue) {
		adopt(ep, theirs);
		return 0;
	}
	if (theirs != fixed && !user_cnt(theirs))
		return fab_progress_join(ep->domain, queue, ours);
	return move(ep, theirs);
}

int fab_ep_share_engine(struct fab_ep *ep, struct fab_ep *ctx)
{
	struct fab_domain *domain = ep->domain;
	int ret = 0;

	if (!domain->per_cq_progress)
		return 0;
	if (!ctx->has_queue) {
		if (ep->has_queue) {
			ctx->progress = ep->progress;
			fab_domain_hold_progress(domain, ctx->progress, &ctx->own_progress);
		} else {
			ret = fab_domain_get_progress(domain, &ctx->progress, &ctx->own_progress);
		}
		if (ret)
			return ret;
		adopt(ctx, ctx->progress);
	}
	if (!ep->has_queue)
		adopt(ep, ctx->progress);
	return ep->progress == ctx->progress ? 0 : move(ep, ctx->progress);
}

/* ---- bind ---- */

static int wrong_flags(const struct fab_ep *ep, const char *what, uint64_t flags, const char *allowed)
{
	FI_WARN(prov_of(ep), FI_LOG_EP_CTRL, "%s with flags %#" PRIx64 "; allowed are %s\n", what,
		flags, allowed);
	return -FI_EBADFLAGS;
}

static int refuse(const struct fab_ep *ep, const char *what, const char *why, int err)
{
	FI_WARN(prov_of(ep), FI_LOG_EP_CTRL, "fi_ep_bind of %s: %s\n", what, why);
	return -err;
}

static int bind_cq(struct fab_ep *ep, struct fab_cq *cq, uint64_t flags)
{
	struct fab_progress_user user = user_of_cq(cq);
	int ret;

	if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) || !(flags & (FI_TRANSMIT | FI_RECV)))
		return wrong_flags(ep, "fi_ep_bind of a completion queue", flags,
				   "FI_TRANSMIT or FI_RECV or both, with or without FI_SELECTIVE_COMPLETION");
	if (cq->domain != ep->domain)
		return refuse(ep, "a completion queue", "it belongs to another domain", FI_EDOMAIN);
	if (ep->enabled)
		return refuse(ep, "a completion queue", "the endpoint is enabled; bind before fi_enable()",
			      FI_EOPBADSTATE);
	if (((flags & FI_TRANSMIT) && ep->tx_cq) || ((flags & FI_RECV) && ep->rx_cq))
		return refuse(ep, "a completion queue", "the endpoint has one for these completions", FI_EINVAL);
	ret = join(ep, &user);
	if (ret)
		return ret;
	fab_progress_lock(cq->progress);
	if (flags & FI_TRANSMIT) {
		cq->ref++;
		ep->tx_cq = cq;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
		ep->tx_msg_flags = ep->tx_selective ? 0 : FI_COMPLETION;
	}
	if (flags & FI_RECV) {
		cq->ref++;
		cq->want_src |= !!(ep->caps & FI_SOURCE);
		ep->rx_cq = cq;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
		ep->rx_msg_flags = ep->rx_selective ? 0 : FI_COMPLETION;
	}
	fab_progress_unlock(cq->progress);
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

static int check_cntr(const struct fab_ep *ep, const struct fab_cntr *cntr, uint64_t flags)
{
	const uint64_t all = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

	if (!flags || (flags & ~all))
		return wrong_flags(ep, "fi_ep_bind of a counter", flags,
				   "FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE, one or more");
	if (cntr->domain != ep->domain)
		return refuse(ep, "a counter", "it belongs to another domain", FI_EDOMAIN);
	if ((flags & (FI_REMOTE_READ | FI_REMOTE_WRITE)) && !(ep->caps & FI_RMA_EVENT))
		return refuse(ep, "a counter", "FI_REMOTE_READ and FI_REMOTE_WRITE want an endpoint opened with "
			      "FI_RMA_EVENT", FI_EINVAL);
	for (int i = 0; i < FAB_CNTR_MAX; i++) {
		if ((flags & cntr_flag[i]) && ep->cntr[i])
			return refuse(ep, "a counter", "the endpoint has one for these operations", FI_EINVAL);
	}
	return 0;
}

static int bind_cntr(struct fab_ep *ep, struct fab_cntr *cntr, uint64_t flags)
{
	struct fab_progress_user user = user_of_cntr(cntr);
	int ret;

	ret = check_cntr(ep, cntr, flags);
	if (ret)
		return ret;
	ret = join(ep, &user);
	if (ret)
		return ret;
	/* Operations may be under way: a counter can be bound late. */
	fab_progress_lock(ep->progress);
	for (int i = 0; i < FAB_CNTR_MAX; i++) {
		if (flags & cntr_flag[i]) {
			atomic_fetch_add(&cntr->ref, 1);
			ep->cntr[i] = cntr;
		}
	}
	fab_progress_unlock(ep->progress);
	return 0;
}

static int bind_av(struct fab_ep *ep, struct fab_av *av)
{
	if (ep->type == FI_EP_MSG)
		return refuse(ep, "an address vector", "a connected endpoint (FI_EP_MSG) uses none", FI_EINVAL);
	if (av->domain != ep->domain)
		return refuse(ep, "an address vector", "it belongs to another domain", FI_EDOMAIN);
	if (ep->enabled)
		return refuse(ep, "an address vector", "the endpoint is enabled; bind before fi_enable()",
			      FI_EOPBADSTATE);
	if (ep->av)
		return refuse(ep, "an address vector", "the endpoint has one", FI_EINVAL);
	fab_av_get(av);
	ep->av = av;
	return 0;
}

static int bind_eq(struct fab_ep *ep, struct fab_eq *eq)
{
	if (eq->fabric != ep->domain->fabric)
		return refuse(ep, "an event queue", "it belongs to another fabric", FI_EDOMAIN);
	if (ep->enabled)
		return refuse(ep, "an event queue", "the endpoint is enabled; bind before fi_enable()", FI_EOPBADSTATE);
	if (ep->eq)
		return refuse(ep, "an event queue", "the endpoint has one", FI_EINVAL);
	fab_eq_get(eq);
	ep->eq = eq;
	return 0;
}

int fab_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fab_ep *ep = fab_ep_of(fid);

	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, fab_container(bfid, struct fab_cq, cq_fid.fid), flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, fab_container(bfid, struct fab_cntr, cntr_fid.fid), flags);
	case FI_CLASS_AV:
		return bind_av(ep, fab_container(bfid, struct fab_av, av_fid.fid));
	case FI_CLASS_EQ:
		return bind_eq(ep, fab_container(bfid, struct fab_eq, eq_fid.fid));
	default:
		FI_WARN(prov_of(ep), FI_LOG_EP_CTRL, "fi_ep_bind: object of class %zu; completion queues, counters, "
			"address vectors and event queues can be bound\n", bfid->fclass);
		return -FI_EINVAL;
	}
}

/* ---- enable and control ---- */

static bool has_cntr(const struct fab_ep *ep)
{
	for (int i = 0; i < FAB_CNTR_MAX; i++) {
		if (ep->cntr[i])
			return true;
	}
	return false;
}

/* Nobody would make progress for an endpoint that is only a target, if the application has nothing of it to read. (A
 * receive context that is only a target has its endpoint's transmit contexts beside it.) */
static bool lacks_queue(const struct fab_ep *ep)
{
	if ((ep->caps & TX_MODIFIERS) && !ep->tx_cq)
		return true;
	if ((ep->caps & FI_RECV) && !ep->rx_cq)
		return true;
	return !ep->tx_cq && !ep->rx_cq && !has_cntr(ep) && ep->domain->data_progress != FI_PROGRESS_AUTO &&
	       ep->ep_fid.fid.fclass != FI_CLASS_RX_CTX;
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
	} else if (ep->type != FI_EP_MSG && !ep->av) {
		err = FI_ENOAV;
		what = "bind an address vector";
	} else if (ep->type == FI_EP_MSG && !ep->eq && !ep->domain->eq) {
		err = FI_ENOEQ;
		what = "bind an event queue";
	} else {
		return 0;
	}
	FI_WARN(prov_of(ep), FI_LOG_EP_CTRL, "fi_enable of an endpoint: %s\n", what);
	return -err;
}

int fab_ep_check_enable(struct fab_ep *ep)
{
	int ret;

	ret = check_bound(ep);
	if (ret)
		return ret;
	if (!ep->eq && ep->domain->eq) {
		fab_eq_get(ep->domain->eq);
		ep->eq = ep->domain->eq;
	}
	if (ep->type == FI_EP_MSG && !ep->eq_driven) {
		ret = fab_eq_add_engine(ep->eq, ep->progress);
		ep->eq_driven = !ret;
	}
	return ret;
}

/* Check flags for one direction and make them the defaults of what the application holds. */
static int set_op_flags(struct fab_ep_fid *held, const char *what, uint64_t flags)
{
	const uint64_t tx_flags = FI_COMPLETION | FI_INJECT | FI_MORE | FI_FENCE | FI_MULTICAST | FI_INJECT_COMPLETE |
				  FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_COMMIT_COMPLETE | FI_MATCH_COMPLETE;
	const uint64_t rx_flags = FI_COMPLETION | FI_MULTI_RECV | FI_MORE;
	uint64_t direction = flags & (FI_TRANSMIT | FI_RECV);

	if (flags & ~(direction | (direction == FI_TRANSMIT ? tx_flags : rx_flags)))
		return wrong_flags(held->ep, what, flags, "those of fi_endpoint(3), section OPERATION FLAGS");
	if (direction == FI_TRANSMIT)
		held->tx_op_flags = flags & ~direction;
	else
		held->rx_op_flags = flags & ~direction;
	return 0;
}

static int one_direction(const struct fab_ep *ep, uint64_t flags)
{
	uint64_t direction = flags & (FI_TRANSMIT | FI_RECV);

	if (direction == FI_TRANSMIT || direction == FI_RECV)
		return 0;
	FI_WARN(prov_of(ep), FI_LOG_EP_CTRL, "an endpoint's operation flags are those of one direction: say FI_TRANSMIT "
		"or FI_RECV, and not both\n");
	return -FI_EINVAL;
}

/* ---- aliases ---- */

/* Another handle on the endpoint; all but its flags and its end is the endpoint's. */
struct alias {
	struct fab_ep_fid held;
	struct fi_ops ops;
};

static int alias_close(struct fid *fid)
{
	atomic_fetch_sub(&fab_ep_of(fid)->alias_cnt, 1);
	free(fab_container(fid, struct alias, held.ep_fid.fid));
	return 0;
}

static int alias_open(const struct fab_ep_fid *held, const struct fi_alias *arg)
{
	uint64_t flags = arg->flags;
	struct alias *alias;
	int ret;

	/* no flags at all: those of the parent */
	ret = flags ? one_direction(held->ep, flags) : 0;
	if (ret)
		return ret;
	alias = malloc(sizeof(*alias));
	if (!alias)
		return -FI_ENOMEM;
	alias->held = *held;
	alias->ops = *held->ep_fid.fid.ops;
	alias->ops.close = alias_close;
	alias->held.ep_fid.fid.ops = &alias->ops;
	ret = flags ? set_op_flags(&alias->held, "fi_ep_alias", flags) : 0;
	if (ret) {
		free(alias);
		return ret;
	}
	atomic_fetch_add(&held->ep->alias_cnt, 1);
	*arg->fid = &alias->held.ep_fid.fid;
	return 0;
}

int fab_ep_control(struct fid *fid, int command, void *arg)
{
	struct fab_ep_fid *held = fab_container(fid, struct fab_ep_fid, ep_fid.fid);
	uint64_t *flags = arg;
	int ret;

	if (command == FI_ALIAS)
		return arg ? alias_open(held, arg) : -FI_EINVAL;
	if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG)
		return -FI_ENOSYS;
	ret = flags ? one_direction(held->ep, *flags) : -FI_EINVAL;
	if (ret)
		return ret;
	if (command == FI_SETOPSFLAG)
		return set_op_flags(held, "FI_SETOPSFLAG", *flags);
	*flags = *flags & FI_TRANSMIT ? held->tx_op_flags : held->rx_op_flags;
	return 0;
}

void fab_ep_fail(struct fab_ep *ep, enum fab_op_code code, const struct fab_comp *comp, const struct fab_cq_fail *fail)
{
	struct fab_cq *cq = code >= FAB_OP_RECV ? ep->rx_cq : ep->tx_cq;
	struct fab_cntr *cntr = ep->cntr[fab_op_desc[code].cntr];

	if (cq)
		fab_cq_write_err(cq, comp, fail);
	if (cntr)
		fab_cntr_err(cntr);
}

int fab_getopt_size(size_t value, void *optval, size_t *optlen)
{
	if (!optlen || (*optlen && !optval))
		return -FI_EINVAL;
	if (*optlen < sizeof(value)) {
		*optlen = sizeof(value);
		return -FI_ETOOSMALL;
	}
	memcpy(optval, &value, sizeof(value));
	*optlen = sizeof(value);
	return 0;
}

/* Kinds of operations that limits are told of, in the order of FI_OPT_MAX_*_SIZE and FI_OPT_INJECT_*_SIZE. */
static const uint64_t limited[] = { FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC };

int fab_ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	const struct fab_ep *ep = fab_ep_of(fid);
	int inject = optname - FI_OPT_INJECT_MSG_SIZE, max = optname - FI_OPT_MAX_MSG_SIZE;

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	if (optname == FI_OPT_TX_SIZE)
		return fab_getopt_size(ep->info->tx_attr->size, optval, optlen);
	if (optname == FI_OPT_RX_SIZE)
		return fab_getopt_size(ep->info->rx_attr->size, optval, optlen);
	if (max >= 0 && max < (int) fab_countof(limited) && (ep->caps & limited[max]))
		return fab_getopt_size(ep->info->ep_attr->max_msg_size, optval, optlen);
	if (inject >= 0 && inject < (int) fab_countof(limited) && (ep->caps & limited[inject]))
		return fab_getopt_size(ep->info->tx_attr->inject_size, optval, optlen);
	return -FI_ENOPROTOOPT;
}
