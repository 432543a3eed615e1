/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive contexts of XRC endpoints: receive memory is per process, however many peers there are. All peers name
 * the SRQ of the context; the target queue pair that has brought a message tells its endpoint.
 *
 * An SRQ of XRC completes to a queue that is known when it is made. So it is made by the first fi_enable() of an
 * endpoint that has the context; receives that are posted before wait in a list. A target lives on when an endpoint has
 * closed, and may bring messages to it that were under way. Their receives are posted again, so each receive keeps its
 * buffers. The next pass does so: a peer that goes on sending to such an endpoint would otherwise get a receive back as
 * soon as its message was read, and the pass that polls the queue until it is empty would not end.
 */
#include "verbs/srx.h"

#include <errno.h>
#include <string.h>
#include "verbs/xrc.h"

/* A receive of a context. */
struct xrc_rx {
	struct vrb_rx rx;
	struct fab_list link;		/* in srx->early, while there is no SRQ; in srx->again */
	int sge_cnt;
	struct ibv_sge sge[];		/* as many as the context's iov_limit */
};

static int post(struct vrb_srx *srx, struct xrc_rx *rx)
{
	struct ibv_recv_wr wr = {
		.wr_id = (uintptr_t) rx | VRB_IS_RX, .sg_list = rx->sge, .num_sge = rx->sge_cnt,
	};
	struct ibv_recv_wr *bad;

	return ibv_post_srq_recv(srx->srq, &wr, &bad);
}

static void post_again(struct fab_flush *flush)
{
	struct vrb_srx *srx = fab_container(flush, struct vrb_srx, flush);
	struct fab_list *link, *tmp;

	fab_list_for_each_safe(&srx->again, link, tmp) {
		struct xrc_rx *rx = fab_container(link, struct xrc_rx, link);
		int ret;

		fab_list_remove(link);
		ret = post(srx, rx);
		if (!ret)
			continue;
		VRB_WARN(FI_LOG_EP_DATA, "ibv_post_srq_recv on %s: %s; a shared receive that came to a closed endpoint "
			 "is lost\n", vrb_domain_of(&srx->ep)->dev->name, strerror(ret));
		vrb_srx_lost(srx, &rx->rx);
	}
}

static void xrc_srx_fill(struct fi_info *info, const struct vrb_device *dev)
{
	vrb_xrc_kind.fill(info, dev);
	vrb_srx_fill(info, dev);
}

static int xrc_srx_open(struct vrb_ep *ep, const struct fi_info *info)
{
	int ret = vrb_xrc_get(vrb_domain_of(ep));

	(void) info;
	if (ret)
		return ret;
	fab_list_init(&ep->srx->early);
	fab_list_init(&ep->srx->again);
	fab_flush_init(&ep->srx->flush, post_again);
	vrb_srx_pool(ep, sizeof(struct xrc_rx) + ep->rx_iov_limit * sizeof(struct ibv_sge));
	return 0;
}

static void xrc_srx_close(struct vrb_ep *ep)
{
	fab_engine_lock(ep->base.engine);
	fab_flush_cancel(&ep->srx->flush);
	fab_engine_unlock(ep->base.engine);
	if (ep->srx->srq)
		vrb_srq_destroy(ep, ep->srx->srq);
	vrb_xrc_put(vrb_domain_of(ep));
}

static int xrc_srx_create(struct vrb_ep *ep)
{
	struct vrb_srx *srx = ep->srx;
	struct fab_list *link;
	int ret = vrb_xrc_srq_make(ep, &srx->srq, &srx->srqn);

	if (ret)
		return ret;
	fab_list_for_each(&srx->early, link) {
		ret = post(srx, fab_container(link, struct xrc_rx, link));
		if (ret)
			break;
	}
	if (!ret) {
		fab_list_init(&srx->early);
		return 0;
	}
	VRB_WARN(FI_LOG_EP_CTRL, "ibv_post_srq_recv on %s: %s\n", vrb_domain_of(ep)->dev->name, strerror(ret));
	vrb_srq_destroy(ep, srx->srq);		/* with what has been posted; the list still has all */
	srx->srq = NULL;
	return -ret;
}

static int xrc_srx_post_recv(struct vrb_ep *ep, struct ibv_recv_wr *wr)
{
	struct xrc_rx *rx = (struct xrc_rx *) (uintptr_t) (wr->wr_id & ~(uint64_t) VRB_IS_RX);
	struct ibv_recv_wr *bad;

	rx->sge_cnt = wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++)
		rx->sge[i] = wr->sg_list[i];
	if (ep->srx->srq)
		return ibv_post_srq_recv(ep->srx->srq, wr, &bad);
	fab_list_add_tail(&ep->srx->early, &rx->link);
	return 0;
}

static void xrc_srx_repost(struct vrb_ep *ep, struct vrb_rx *rx)
{
	fab_list_add_tail(&ep->srx->again, &fab_container(rx, struct xrc_rx, rx)->link);
	fab_engine_flush_later(ep->base.engine, &ep->srx->flush);
}

const struct vrb_kind vrb_xrc_srx = {
	.ep_type = FI_EP_MSG,
	.suffix = "-xrc",
	.fill = xrc_srx_fill,
	.open = xrc_srx_open,
	.close = xrc_srx_close,
	.create = xrc_srx_create,
	.post_recv = xrc_srx_post_recv,
	.repost = xrc_srx_repost,
};
