/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared contexts: a struct tcp_ep of which only one half is used, and to which other endpoints point for this half.
 * Operations through it complete on the queues of the endpoint through which the message was sent or received; the
 * context has no queues. It outlives the endpoints bound to it (fi_close() returns -FI_EBUSY). All of them are on one
 * engine (fab_ep_share_engine()), whose lock guards the list of users.
 */
#include "tcp/endpoint/ep.h"

#include <stdlib.h>
#include <string.h>
#include "common/ops/ops.h"
#include "common/endpoint/endpoint.h"
#include "common/trigger/trigger.h"
#include "tcp/calls/calls.h"
#include "tcp/lent/lent.h"
#include "tcp/message/message.h"
#include "tcp/offer/offer.h"
#include "tcp/params/params.h"

_Static_assert(offsetof(struct fid_ep, fid) == offsetof(struct fid_stx, fid) &&
	       offsetof(struct fid_ep, ops) == offsetof(struct fid_stx, ops), "a fid_stx is the beginning of a fid_ep");

struct tcp_half_ops tcp_rx_half, tcp_tx_half;

/* ---- close ---- */

static int srx_close(struct fid *fid)
{
	struct tcp_ep *srx = tcp_ep_of(fid);
	struct fab_engine *engine = srx->base.engine;
	int ret;

	ret = fab_ep_check_close(&srx->base);
	if (ret)
		return ret;
	fab_engine_lock(engine);
	if (!fab_list_empty(&srx->own_rx.users))
		ret = fab_shared_busy(&srx->base, "receive");
	else if (srx->own_rx.export_cnt)
		ret = tcp_exported_busy();
	srx->detours |= ret ? 0 : TCP_EP_CLOSING;
	fab_engine_unlock(engine);
	if (ret)
		return ret;
	fab_trigger_close(&srx->base);
	fab_engine_lock(engine);
	fab_recv_flush(&srx->own_rx.recv, FI_ECANCELED);
	tcp_owner_close(srx->own_rx.owner);
	tcp_rest_fini(srx);
	fab_engine_unlock(engine);
	tcp_rx_ctx_fini(&srx->own_rx);
	fab_ep_fini(&srx->base);
	free(srx);
	return 0;
}

static int srx_control(struct fid *fid, int command, void *arg)
{
	return command == FI_EXPORT_FID ? tcp_srx_export(tcp_ep_of(fid), arg) : fab_srx_control(fid, command, arg);
}

static int stx_close(struct fid *fid)
{
	struct tcp_ep *stx = tcp_ep_of(fid);
	struct fab_engine *engine = stx->base.engine;
	uint32_t user_cnt;

	fab_engine_lock(engine);
	user_cnt = stx->own_tx.user_cnt;
	fab_engine_unlock(engine);
	if (user_cnt)
		return fab_shared_busy(&stx->base, "transmit");
	tcp_tx_ctx_fini(&stx->own_tx);
	fab_ep_fini(&stx->base);
	free(stx);
	return 0;
}

/* ---- tables ---- */

static struct fi_ops srx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = fab_srx_bind,
	.control = srx_control,
};

static struct fi_ops stx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = stx_close,
};

static struct fi_ops_ep stx_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.getopt = fab_ep_getopt,
	.setopt = fab_ep_setopt,
};

/* Split the tables into one for each direction. */
static void shared_split_tables(void)
{
	fab_ops_part_msg(&tcp_rx_half.msg, &tcp_msg_ops, FI_RECV);
	fab_ops_part_tagged(&tcp_rx_half.tagged, &tcp_tagged_ops, FI_RECV);
	fab_ops_part_msg(&tcp_tx_half.msg, &tcp_msg_ops, FI_SEND);
	fab_ops_part_tagged(&tcp_tx_half.tagged, &tcp_tagged_ops, FI_SEND);
}

void tcp_shared_fill_ops(void)
{
	shared_split_tables();
	FAB_OPS_FILL(&srx_fid_ops);
	FAB_OPS_FILL(&stx_fid_ops);
	FAB_OPS_FILL(&stx_ep_ops);
	tcp_exported_fill_ops();
}

/* ---- open ---- */

/* Make an info for a context of the domain; the caller fills in the attributes. NULL: no memory. */
static struct fi_info *half_info(const struct fab_domain *domain)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	info->caps = domain->attr.caps;
	info->addr_format = domain->attr.addr_format;
	info->ep_attr->type = FI_EP_RDM;
	info->tx_attr->size = tcp_params.tx_size;
	info->rx_attr->size = tcp_params.rx_size;
	return info;
}

/* Initialise the part of a context that it has in common with endpoints, for info; ops are its operations. */
static int half_open(struct fab_domain *domain, struct fi_info *info, const struct fab_ep_ops *ops, size_t fclass,
		     void *context, struct tcp_ep **ctx)
{
	struct tcp_ep *ep;
	int ret;

	ret = tcp_info_check(info, domain);
	if (ret)
		return ret;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ret = fab_ep_init(&ep->base, domain, info, ops, context);
	if (ret) {
		free(ep);
		return ret;
	}
	ep->detours = domain->attr.caps & FI_HMEM ? TCP_EP_HMEM : 0;
	ep->base.ep_fid.fid.fclass = fclass;
	ep->base.enabled = true;
	*ctx = ep;
	return 0;
}

/* True if the caller's fi_tx_attr has tclass (test/abi/abi-generations.tsv). */
static bool half_has_tclass(const struct fab_domain *domain)
{
	return FI_VERSION_GE(domain->fabric->fabric_fid.api_version, FI_VERSION(1, 9));
}

void tcp_take_tx_attr(const struct fab_domain *domain, struct fi_info *info, const struct fi_tx_attr *attr)
{
	struct fi_tx_attr *mine = info->tx_attr;

	FAB_TAKE(mine, attr, caps);
	FAB_TAKE(mine, attr, msg_order);
	FAB_TAKE(mine, attr, comp_order);
	FAB_TAKE(mine, attr, inject_size);
	FAB_TAKE(mine, attr, size);
	FAB_TAKE(mine, attr, iov_limit);
	FAB_TAKE(mine, attr, rma_iov_limit);
	mine->mode = attr->mode;
	mine->op_flags = attr->op_flags;
	if (half_has_tclass(domain))
		FAB_TAKE(mine, attr, tclass);
	FAB_TAKE(info, attr, caps);
}

void tcp_give_tx_attr(const struct fab_domain *domain, const struct fi_info *info, struct fi_tx_attr *attr)
{
	memcpy(attr, info->tx_attr, half_has_tclass(domain) ? sizeof(*attr) : offsetof(struct fi_tx_attr, tclass));
}

int tcp_srx_open(struct fid_domain *domain_fid, struct fi_rx_attr *attr, struct fid_ep **srx_fid, void *context)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct fi_info *info = half_info(domain);
	struct fab_ep_ops ops = { .fid = &srx_fid_ops, .ep = &tcp_ep_ops };
	struct tcp_ep *srx;
	bool peer;
	int ret;

	if (!info)
		return -FI_ENOMEM;
	if (attr)
		fab_rx_attr_take(info, attr);
	peer = info->rx_attr->op_flags & FI_PEER;
	info->rx_attr->op_flags &= ~FI_PEER;
	/* the application posts receives of a peer's context to the owner */
	if ((info->caps & FI_MSG) && !peer)
		ops.msg = &tcp_rx_half.msg;
	if ((info->caps & FI_TAGGED) && !peer)
		ops.tagged = &tcp_rx_half.tagged;
	ret = half_open(domain, info, &ops, FI_CLASS_SRX_CTX, context, &srx);
	if (ret)
		goto free_info;
	tcp_rest_init(srx);
	ret = tcp_rx_ctx_init(&srx->own_rx, srx, info->rx_attr);
	if (!ret && peer) {
		ret = tcp_owner_open(srx, context);
		if (ret)
			tcp_rx_ctx_fini(&srx->own_rx);
	}
	if (ret) {
		fab_ep_fini(&srx->base);
		free(srx);
		goto free_info;
	}
	tcp_group_init(&srx->own_rx, domain);
	srx->rx = &srx->own_rx;
	srx->directed_recv = srx->base.caps & FI_DIRECTED_RECV;
	*srx_fid = &srx->base.ep_fid;
free_info:
	fi_freeinfo(info);
	return ret;
}

int tcp_stx_open(struct fid_domain *domain_fid, struct fi_tx_attr *attr, struct fid_stx **stx_fid, void *context)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct fi_info *info = half_info(domain);
	struct tcp_ep *stx;
	int ret;

	if (!info)
		return -FI_ENOMEM;
	if (attr)
		tcp_take_tx_attr(domain, info, attr);
	ret = half_open(domain, info, &(struct fab_ep_ops) { .fid = &stx_fid_ops, .ep = &stx_ep_ops }, FI_CLASS_STX_CTX,
			context, &stx);
	if (!ret) {
		tcp_tx_ctx_init(&stx->own_tx, info->tx_attr);
		stx->tx = &stx->own_tx;
		*stx_fid = (struct fid_stx *) &stx->base.ep_fid;
	}
	fi_freeinfo(info);
	return ret;
}

/* ---- bind ---- */

int tcp_srx_bind(struct tcp_ep *ep, struct fid *fid, uint64_t flags)
{
	struct fi_ops_msg *msg = ep->base.caps & FI_SEND ? &tcp_tx_half.msg : &fab_no_msg;
	struct fi_ops_tagged *tagged = ep->base.caps & FI_SEND ? &tcp_tx_half.tagged : &fab_no_tagged;
	struct tcp_ep *srx = tcp_ep_of(fid);
	int ret;

	ret = fab_shared_check_bind(&ep->base, &srx->base, ep->shared.srx, false,
				    FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, flags);
	if (!ret)
		ret = fab_ep_share_engine(&ep->base, &srx->base);
	if (ret)
		return ret;
	fab_engine_lock(srx->base.engine);
	ep->shared.srx = srx;
	ep->rx = &srx->own_rx;
	fab_list_add_tail(&srx->own_rx.users, &ep->shared.link);
	fab_engine_unlock(srx->base.engine);
	/* its receives are posted to the context */
	fab_ep_set_receives(&ep->base, ep->base.caps & FI_MSG ? msg : NULL, ep->base.caps & FI_TAGGED ? tagged : NULL);
	return 0;
}

int tcp_stx_bind(struct tcp_ep *ep, struct fid *fid, uint64_t flags)
{
	bool own = ep->base.info->ep_attr->tx_ctx_cnt != FI_SHARED_CONTEXT;
	struct tcp_ep *stx = tcp_ep_of(fid);
	int ret;

	ret = fab_shared_check_bind(&ep->base, &stx->base, ep->shared.stx, own,
				    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, flags);
	if (!ret)
		ret = fab_ep_share_engine(&ep->base, &stx->base);
	if (ret)
		return ret;
	fab_engine_lock(stx->base.engine);
	ep->shared.stx = stx;
	stx->own_tx.user_cnt++;
	/* frames return to the queue that they are from: while some are out, an enabled endpoint keeps its own */
	if (!ep->own_tx.pool.out_cnt)
		ep->tx = &stx->own_tx;
	else
		FI_INFO(&tcp_prov, FI_LOG_EP_CTRL, "fi_ep_bind of a shared transmit context to an endpoint with "
			"operations under way; it keeps its own limit of them\n");
	fab_engine_unlock(stx->base.engine);
	return 0;
}

int tcp_shared_check(const struct tcp_ep *ep)
{
	const struct fi_ep_attr *attr = ep->base.info->ep_attr;
	const struct tcp_ep *srx = ep->shared.srx, *stx = ep->shared.stx;
	const struct tcp_ep *first = srx ? fab_list_first(&srx->own_rx.users, struct tcp_ep, shared.link) : ep;

	if ((attr->tx_ctx_cnt == FI_SHARED_CONTEXT && !stx && (ep->base.caps & (FI_SEND | FI_READ | FI_WRITE))) ||
	    (attr->rx_ctx_cnt == FI_SHARED_CONTEXT && !srx && (ep->base.caps & FI_RECV)))
		return fab_shared_missing(&ep->base);
	if (first->base.bound.av != ep->base.bound.av) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_enable: endpoints that share a receive context must also share the "
			 "address vector (fi_endpoint(3)); bind the same one\n");
		return -FI_EINVAL;
	}
	return 0;
}

void tcp_shared_put(struct tcp_ep *ep)
{
	if (ep->shared.srx)
		fab_list_remove(&ep->shared.link);
	if (ep->rx->owner)
		tcp_owner_forget(ep->rx->owner, ep);
	if (ep->shared.stx)
		ep->shared.stx->own_tx.user_cnt--;
}
