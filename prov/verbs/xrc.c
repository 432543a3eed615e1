/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MSG endpoints over XRC: the kind's table, and the SRQ of an endpoint without a shared receive context (xrc_srx.c).
 * Requests are posted to an initiator that other endpoints use, too (xrc_share.c). So each request is signaled, and
 * names the SRQ that it is for.
 *
 * End: several connections share a queue pair, so its state does not tell that one of them has ended; only the CM does.
 * Receives are taken back by destroying the SRQ. Outstanding requests end when the peer destroys its SRQ; an initiator
 * without other users is moved to the error state at once.
 */
#include "verbs/xrc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "common/av/av.h"
#include "verbs/srx.h"
#include "verbs/xrc_domain.h"

#define LEAVE_NS	1000000000ULL	/* time for requests on a shared initiator to end */

/* True if the device has enough resources for an endpoint: a receive queue, an initiator and a target. */
static bool xrc_offered(const struct vrb_device *dev)
{
	const struct ibv_device_attr *attr = &dev->attr;
	char have[96];

	if (!vrb_has_xrc(attr))
		return false;
	if (attr->max_srq > 0 && attr->max_srq_wr > 0 && attr->max_srq_sge > 0 && attr->max_qp > 1)
		return true;
	snprintf(have, sizeof(have), "%d, %d, %d, %d", attr->max_srq, attr->max_srq_wr, attr->max_srq_sge,
		 attr->max_qp);
	vrb_say_lacks(dev, "max_srq, max_srq_wr, max_srq_sge, max_qp, for XRC", "1, 1, 1, 2", have);
	return false;
}

static bool xrc_odp(const struct ibv_device_attr_ex *attr)
{
	return vrb_odp_has(attr, attr->xrc_odp_caps, IBV_ODP_SUPPORT_SRQ_RECV);
}

static void xrc_fill(struct fi_info *info, const struct vrb_device *dev)
{
	struct fi_rx_attr *rx = info->rx_attr;

	info->ep_attr->protocol = FI_PROTO_RDMA_CM_IB_XRC;
	rx->size = fab_min(rx->size, (size_t) dev->attr.max_srq_wr);
	rx->iov_limit = fab_min(rx->iov_limit, (size_t) dev->attr.max_srq_sge);
	info->domain_attr->ep_cnt = fab_min(info->domain_attr->ep_cnt, (size_t) dev->attr.max_srq);
	/* how many endpoints can share one, not how many of them there can be */
	info->domain_attr->max_ep_srx_ctx = info->domain_attr->ep_cnt;
}

/* ---- open, enable ---- */

static int xrc_open(struct vrb_ep *ep, const struct fi_info *info)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	int ret = vrb_xrc_get(vrb_domain_of(ep));

	if (ret)
		return ret;
	fab_list_init(&x->user);
	fab_list_init(&x->wait);
	fab_timer_init(&x->timer, vrb_xrc_timer);
	ret = vrb_id_open(ep, info);
	if (ret)
		goto put_xrc;
	if (info->handle)
		ret = vrb_xrc_up_open(ep);
	if (!ret)
		return 0;
	vrb_id_close(ep);
put_xrc:
	vrb_xrc_put(vrb_domain_of(ep));
	return ret;
}

static void xrc_close(struct vrb_ep *ep)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);

	vrb_id_close(ep);
	if (x->put_cq)
		vrb_hw_cq_put(vrb_domain_of(ep), x->put_cq, x->put_cnt);
	vrb_xrc_put(vrb_domain_of(ep));
	free(x->up);
	free(x->posted);
}

int vrb_xrc_srq_make(struct vrb_ep *ep, struct ibv_srq **out, uint32_t *num)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = ep->rx_size, .max_sge = ep->rx_iov_limit },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = vrb_domain_of(ep)->pd, .xrcd = vrb_xrc_of(ep)->xrcd, .cq = ep->hw_cq->cq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(vrb_domain_of(ep)->dev->verbs, &attr);
	int ret;

	if (!srq)
		return vrb_srq_refused(ep, "ibv_create_srq_ex");
	ret = ibv_get_srq_num(srq, num);
	if (ret) {
		ibv_destroy_srq(srq);
		return -ret;
	}
	*out = srq;
	return 0;
}

/* An SRQ of its own, and a record of what is posted to it. */
static int own_srq(struct vrb_ep *ep)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	uint32_t ring = 1;
	int ret;

	while (ring < ep->rx_size)
		ring *= 2;
	free(x->posted);
	x->posted = calloc(ring, sizeof(*x->posted));
	if (!x->posted)
		return -FI_ENOMEM;
	x->rx_mask = ring - 1;
	ret = vrb_xrc_srq_make(ep, &x->srq, &x->srqn);
	if (!ret)
		ep->srq = x->srq;
	return ret;
}

static int xrc_create(struct vrb_ep *ep)
{
	ep->inline_max = (uint32_t) fab_min((size_t) vrb_domain_of(ep)->dev->inline_max,
					   ep->base.info->tx_attr->inject_size);
	if (!ep->srx)
		return own_srq(ep);
	vrb_xrc_ep_of(ep)->srqn = ep->srx->srqn;
	return 0;
}

/* ---- data ---- */

static ssize_t xrc_aim(struct vrb_ep *ep, fi_addr_t addr, struct ibv_send_wr *wr)
{
	(void) addr;
	wr->qp_type.xrc.remote_srqn = vrb_xrc_ep_of(ep)->peer_srqn;
	wr->send_flags |= IBV_SEND_SIGNALED;
	return 0;
}

static void xrc_aim_marker(struct vrb_ep *ep, struct ibv_send_wr *wr)
{
	wr->qp_type.xrc.remote_srqn = vrb_xrc_ep_of(ep)->peer_srqn;
}

static bool xrc_probes(const struct vrb_ep *ep)
{
	return vrb_domain_of(ep)->dev->quirks->probes;
}

static bool xrc_alone(const struct vrb_ep *ep)
{
	return vrb_xrc_ep_of(ep)->ini->user_cnt == 1;
}

static int xrc_post_recv(struct vrb_ep *ep, struct ibv_recv_wr *wr)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	struct ibv_recv_wr *bad;
	int ret = x->srq ? ibv_post_srq_recv(x->srq, wr, &bad) : ENOTCONN;

	if (!ret)
		x->posted[x->posted_cnt++ & x->rx_mask] = wr->wr_id;
	return ret;
}

/* ---- end and close ---- */

/* Messages that have arrived are delivered. Then the SRQ is destroyed, so that nothing more arrives; a message that
 * arrives meanwhile is lost. The other receives end as flushed. Messages take receives in order, so these are the last
 * that were posted. Those of a shared context stay there. */
static void end_receives(struct vrb_ep *ep)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	struct ibv_wc wc = { .status = IBV_WC_WR_FLUSH_ERR };

	if (ep->srx)
		vrb_srx_leave(ep);
	if (!x->srq)
		return;
	vrb_hw_cq_poll(ep->hw_cq);
	vrb_watch_stop(&ep->srq_watch);
	vrb_srq_destroy(ep, x->srq);
	x->srq = NULL;
	ep->srq = NULL;
	vrb_hw_cq_settle(ep->hw_cq, ep->rx_cnt);
	for (uint32_t i = x->posted_cnt - ep->rx_cnt; i != x->posted_cnt; i++) {
		wc.wr_id = x->posted[i & x->rx_mask];
		vrb_work_done(&wc, NULL);
	}
}

static void end_initiator(struct vrb_ini *ini)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	vrb_ini_settle(ini, VRB_INI_OLD);
	ibv_modify_qp(ini->qp, &attr, IBV_QP_STATE);
}

static void xrc_disconnect(struct vrb_ep *ep)
{
	rdma_disconnect(vrb_conn_of(ep)->id);
	if (vrb_xrc_ep_of(ep)->ini && vrb_xrc_ep_of(ep)->ini->user_cnt == 1)
		end_initiator(vrb_xrc_ep_of(ep)->ini);
	end_receives(ep);
}

static void xrc_halt(struct vrb_ep *ep)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	uint64_t end = fab_now_ns() + LEAVE_NS;

	vrb_xrc_up_end(ep);
	fab_timer_stop(&x->timer);
	fab_list_remove(&x->wait);
	fab_list_init(&x->wait);
	end_receives(ep);
	while (ep->tx_head != ep->tx_tail && x->ini->user_cnt > 1 && fab_now_ns() < end)
		fab_engine_run(ep->base.engine);
	if (ep->tx_head == ep->tx_tail)
		return;
	if (x->ini->user_cnt > 1)
		VRB_WARN(FI_LOG_EP_CTRL, "%s: %u requests of a closed XRC endpoint do not end and delay %u other "
			 "endpoints that send to that node: all of these fail\n", vrb_domain_of(ep)->dev->name,
			 ep->tx_tail - ep->tx_head, x->ini->user_cnt - 1);
	end_initiator(x->ini);
}

static void xrc_destroy(struct vrb_ep *ep)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);

	if (x->srq)
		ibv_destroy_srq(x->srq);
	x->srq = NULL;
	vrb_ini_leave(ep);
	vrb_xrc_drop_targets(ep);
}

const struct vrb_kind vrb_xrc_kind = {
	.ep_type = FI_EP_MSG,
	.ep_size = sizeof(struct vrb_xrc_ep),
	.suffix = "-xrc",
	.getinfo = vrb_msg_getinfo,
	.offered = xrc_offered,
	.odp = xrc_odp,
	.fill = xrc_fill,
	.cm_data_max = VRB_XRC_DATA_MAX,
	.sidr = true,
	.unpack = vrb_xrc_unpack,
	.refusal = vrb_xrc_refusal,
	.av_open = fab_av_open,
	.srx = &vrb_xrc_srx,
	.open = xrc_open,
	.close = xrc_close,
	.create = xrc_create,
	.destroy = xrc_destroy,
	.attach = vrb_id_attach,
	.detach = vrb_id_detach,
	.halt = xrc_halt,
	.cm = &vrb_cm_ops,
	.connect = vrb_xrc_connect,
	.accept = vrb_xrc_accept,
	.disconnect = xrc_disconnect,
	.event = vrb_xrc_event,
	.aim = xrc_aim,
	.probes = xrc_probes,
	.alone = xrc_alone,
	.aim_marker = xrc_aim_marker,
	.post_recv = xrc_post_recv,
};
