/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive contexts: open, bind, close. Receives complete to a hardware queue of the context, with the number of
 * the queue pair that took them, which tells the endpoint. When an endpoint ends, receives that no message has taken
 * stay in the shared queue.
 */
#include "verbs/srx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "common/ops/ops.h"
#include "common/endpoint/endpoint.h"
#include "verbs/kind.h"

#define LAST_NS		1000000000ULL	/* wait for the last receive if the device is known to report it, ... */
#define FIRST_LAST_NS	250000000ULL	/* ... and if that is unknown; after ... */
#define MISSES_MAX	3		/* ... so many failed waits, do not wait */

static struct fi_ops_msg recv_ops, send_ops;	/* vrb_msg_ops of contexts, and of endpoints with one */

/* ---- receives and endpoints ---- */

void vrb_srx_join(struct vrb_ep *ep, uint32_t qpn)
{
	ep->qpn = qpn;
	fab_list_add_head(&ep->srx->takers[qpn % VRB_SRX_BUCKETS], &ep->taker);
}

/* How long to wait for a device to report the last receive; some devices may never do. */
static uint64_t patience_ns(const struct vrb_domain *domain)
{
	return atomic_load(&domain->last_told) ? LAST_NS :
	       atomic_load(&domain->last_missed) < MISSES_MAX ? FIRST_LAST_NS : 0;
}

void vrb_srx_settle(struct vrb_ep *ep)
{
	struct vrb_domain *domain = vrb_domain_of(ep);
	uint64_t end = fab_now_ns() + (ep->last_due && !atomic_load(&ep->hw_cq->broken) ? patience_ns(domain) : 0);

	while (!(atomic_load(&ep->qp_watch.told) & VRB_TOLD_LAST) && fab_now_ns() < end)
		fab_engine_run(ep->base.engine);
	if (atomic_load(&ep->qp_watch.told) & VRB_TOLD_LAST)
		atomic_store(&domain->last_told, true);
	else if (ep->last_due && atomic_fetch_add(&domain->last_missed, 1) < MISSES_MAX)
		VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "device %s has not reported the last shared receive of queue pair "
			"%u: if the queue pair has consumed one, that receive is lost\n", domain->dev->name, ep->qpn);
	vrb_hw_cq_poll(ep->srx->ep.hw_cq);
}

void vrb_srx_leave(struct vrb_ep *ep)
{
	vrb_hw_cq_poll(ep->srx->ep.hw_cq);
	fab_list_remove(&ep->taker);
	fab_list_init(&ep->taker);
}

void vrb_srx_lost(struct vrb_srx *srx, struct vrb_rx *rx)
{
	fab_pool_put(&srx->ep.rx_pool, rx);
	srx->ep.rx_cnt--;
}

void vrb_srx_unclaimed(struct vrb_srx *srx, struct vrb_rx *rx, const struct ibv_wc *wc)
{
	if (srx->ep.kind->repost) {
		srx->ep.kind->repost(&srx->ep, rx);
		return;
	}
	VRB_WARN(FI_LOG_EP_DATA, "%s: queue pair %u has consumed a shared receive after its endpoint was closed; that "
		 "receive is lost\n", vrb_domain_of(&srx->ep)->dev->name, wc->qp_num);
	vrb_srx_lost(srx, rx);
}

int vrb_srx_ready(struct vrb_srx *srx)
{
	struct vrb_ep *ep = &srx->ep;
	struct vrb_hw_cq *hw_cq;
	int ret;

	ret = vrb_hw_cq_get(vrb_domain_of(ep), ep->base.engine, ep->reserved, &hw_cq);
	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	if (!ep->hw_cq) {
		ep->hw_cq = hw_cq;
		ret = ep->kind->create ? ep->kind->create(ep) : 0;
		if (ret)
			ep->hw_cq = NULL;
		else
			hw_cq = NULL;
	}
	fab_engine_unlock(ep->base.engine);
	if (hw_cq)
		vrb_hw_cq_put(vrb_domain_of(ep), hw_cq, ep->reserved);
	return ret;
}

/* ---- bind ---- */

int vrb_srx_bind(struct vrb_ep *ep, struct fid *fid, uint64_t flags)
{
	struct vrb_ep *ctx = vrb_ep_of(fid);
	int ret;

	ret = fab_shared_check_bind(&ep->base, &ctx->base, ep->srx, false, FI_MSG, flags);
	if (!ret)
		ret = fab_ep_share_engine(&ep->base, &ctx->base);
	if (ret)
		return ret;
	ep->srx = ctx->srx;
	fab_engine_lock(ctx->base.engine);
	ctx->srx->user_cnt++;
	fab_engine_unlock(ctx->base.engine);
	/* the program posts receives to the context */
	if (ep->base.caps & FI_MSG)
		fab_ep_set_receives(&ep->base, ep->base.caps & FI_SEND ? &send_ops : &fab_no_msg, NULL);
	return 0;
}

void vrb_srx_unbind(struct vrb_ep *ep)
{
	struct fab_engine *engine = ep->srx->ep.base.engine;

	fab_engine_lock(engine);
	ep->srx->user_cnt--;
	fab_engine_unlock(engine);
}

/* ---- close ---- */

static int srx_close(struct fid *fid)
{
	struct vrb_srx *srx = vrb_ep_of(fid)->srx;
	struct vrb_ep *ep = &srx->ep;
	uint32_t user_cnt;
	int ret;

	ret = fab_ep_check_close(&ep->base);
	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	user_cnt = srx->user_cnt;
	fab_engine_unlock(ep->base.engine);
	if (user_cnt)
		return fab_shared_busy(&ep->base, "receive");
	vrb_unanswered_end(vrb_domain_of(ep), true);
	ep->kind->close(ep);
	if (ep->hw_cq)
		vrb_hw_cq_put(vrb_domain_of(ep), ep->hw_cq, ep->reserved);
	/* receives that no message has taken are not reported: no completion queue belongs to them */
	fab_pool_fini(&ep->rx_pool);
	fab_ep_fini(&ep->base);
	free(srx);
	return 0;
}

static int srx_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	if (level != FI_OPT_ENDPOINT || optname != FAB_OPT_NAMES_TAKER)
		return fab_ep_getopt(fid, level, optname, optval, optlen);
	if (!optval || !optlen || *optlen < sizeof(bool))
		return -FI_ETOOSMALL;
	vrb_ep_of(fid)->srx->names_taker = true;
	*(bool *) optval = true;
	*optlen = sizeof(bool);
	return 0;
}

static struct fi_ops srx_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = srx_close,
	.bind = fab_srx_bind,
	.control = fab_srx_control,
};

static struct fi_ops_ep srx_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.getopt = srx_getopt,
	.setopt = fab_ep_setopt,
	.rx_size_left = vrb_ep_rx_size_left,
};

void vrb_srx_fill_ops(void)
{
	fab_ops_part_msg(&recv_ops, &vrb_msg_ops, FI_RECV);
	fab_ops_part_msg(&send_ops, &vrb_msg_ops, FI_SEND);
	FAB_OPS_FILL(&srx_fid_ops);
	FAB_OPS_FILL(&srx_ep_ops);
}

/* ---- open ---- */

void vrb_srx_fill(struct fi_info *info, const struct vrb_device *dev)
{
	info->rx_attr->size = (size_t) fab_min(dev->attr.max_srq_wr, dev->attr.max_cqe);
	info->rx_attr->iov_limit = fab_min(info->rx_attr->iov_limit, (size_t) dev->attr.max_srq_sge);
}

static void rc_srx_fill(struct fi_info *info, const struct vrb_device *dev)
{
	vrb_rc.fill(info, dev);
	vrb_srx_fill(info, dev);
}

static int rc_srx_open(struct vrb_ep *ep, const struct fi_info *info)
{
	struct vrb_domain *domain = vrb_domain_of(ep);
	struct ibv_srq_init_attr attr = {
		.srq_context = ep, .attr = { .max_wr = ep->rx_size, .max_sge = ep->rx_iov_limit },
	};

	(void) info;
	ep->srx->srq = ibv_create_srq(domain->pd, &attr);
	if (!ep->srx->srq)
		return vrb_srq_refused(ep, "ibv_create_srq");
	vrb_srx_pool(ep, sizeof(struct vrb_rx));
	return 0;
}

static void rc_srx_close(struct vrb_ep *ep)
{
	vrb_srq_destroy(ep, ep->srx->srq);
}

static int rc_srx_post_recv(struct vrb_ep *ep, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	return ibv_post_srq_recv(ep->srx->srq, wr, &bad);
}

const struct vrb_kind vrb_rc_srx = {
	.ep_type = FI_EP_MSG,
	.suffix = "",
	.fill = rc_srx_fill,
	.open = rc_srx_open,
	.close = rc_srx_close,
	.post_recv = rc_srx_post_recv,
};

/* Make the info of a context: the attributes that the application requests, and otherwise those of the device. NULL: no
 * memory. */
static struct fi_info *srx_make_info(const struct vrb_domain *domain, const struct fi_rx_attr *attr)
{
	struct fi_info *info = vrb_info_of(domain->kind->srx, domain->dev, domain->dev->fabric);

	if (!info)
		return NULL;
	info->rx_attr->size = fab_min(info->rx_attr->size, vrb_params.rx_size);
	info->rx_attr->op_flags = 0;
	info->tx_attr->op_flags = 0;
	if (attr)
		fab_rx_attr_take(info, attr);
	return info;
}

void vrb_srx_pool(struct vrb_ep *ep, size_t size)
{
	fab_pool_init(&ep->rx_pool, &(struct fab_pool_attr) { .size = size, .max_cnt = ep->rx_size });
}

static int srx_init(struct vrb_srx *srx, struct fab_domain *domain, const struct fi_info *info, void *context)
{
	const struct fab_ep_ops ops = {
		.fid = &srx_fid_ops, .ep = &srx_ep_ops, .msg = info->caps & FI_MSG ? &recv_ops : NULL,
	};
	const struct vrb_kind *kind = fab_container(domain, const struct vrb_domain, base)->kind->srx;
	struct vrb_ep *ep = &srx->ep;
	int ret;

	ret = vrb_info_check(kind, info, domain->fabric->fabric_fid.api_version);
	if (ret)
		return ret;
	ret = fab_ep_init(&ep->base, domain, info, &ops, context);
	if (ret)
		return ret;
	ep->base.ep_fid.fid.fclass = FI_CLASS_SRX_CTX;
	ep->kind = kind;
	ep->stats = &ep->base.stats->rest;
	ep->srx = srx;
	ep->rx_size = ep->reserved = info->rx_attr->size;
	ep->rx_iov_limit = fab_min(info->rx_attr->iov_limit, (size_t) VRB_IOV_LIMIT);
	for (int i = 0; i < VRB_SRX_BUCKETS; i++)
		fab_list_init(&srx->takers[i]);
	ret = kind->open(ep, info);
	if (ret) {
		fab_ep_fini(&ep->base);
		return ret;
	}
	ep->base.enabled = true;
	return 0;
}

int vrb_srx_open(struct fid_domain *domain_fid, struct fi_rx_attr *attr, struct fid_ep **srx_fid, void *context)
{
	struct vrb_domain *domain = fab_container(domain_fid, struct vrb_domain, base.domain_fid);
	struct fi_info *info = srx_make_info(domain, attr);
	struct vrb_srx *srx = calloc(1, sizeof(*srx));
	int ret = info && srx ? srx_init(srx, &domain->base, info, context) : -FI_ENOMEM;

	fi_freeinfo(info);
	if (ret)
		free(srx);
	else
		*srx_fid = &srx->ep.base.ep_fid;
	return ret;
}
