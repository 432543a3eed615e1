/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints of every kind: open, enable, options, close. A queue pair exists from fi_enable on, so that receives can be
 * posted before there is a connection.
 *
 * Close: the queue pair is moved to the error state; the hardware reports all outstanding requests as flushed; then the
 * queue pair is destroyed. After that no work completion can refer to the endpoint.
 */
#include "verbs/kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "common/ops/ops.h"
#include "common/endpoint/endpoint.h"
#include "verbs/srx.h"

#define FLUSH_NS	1000000000ULL	/* a device that does not flush in this time has failed */

#define LATE_MAX	64		/* closed endpoints of a domain that are kept at a time (keep_late()) */
#define MARKER_CNT	1		/* vrb_post_marker() */

/* ---- enable ---- */

struct ibv_qp_init_attr vrb_qp_attr(const struct vrb_ep *ep)
{
	const struct fi_info *info = ep->base.info;

	return (struct ibv_qp_init_attr) {
		.qp_context = (void *) ep, .send_cq = ep->hw_cq->cq,
		.recv_cq = ep->srx ? ep->srx->ep.hw_cq->cq : ep->hw_cq->cq, .srq = ep->srx ? ep->srx->srq : NULL,
		.cap = { .max_send_wr = ep->sq_size, .max_recv_wr = ep->srx ? 0 : ep->rx_size,
			 .max_send_sge = info->tx_attr->iov_limit, .max_recv_sge = info->rx_attr->iov_limit,
			 .max_inline_data = info->tx_attr->inject_size },
	};
}

uint32_t vrb_inline_max(const struct vrb_ep *ep, const struct ibv_qp_cap *cap)
{
	return (uint32_t) fab_min((size_t) cap->max_inline_data, ep->base.info->tx_attr->inject_size);
}

int vrb_qp_refused(const struct vrb_ep *ep, const char *call)
{
	const struct fi_info *info = ep->base.info;
	int err = errno ? errno : FI_EIO;

	VRB_WARN(FI_LOG_EP_CTRL, "%s on %s for %u sends of %zu buffers, %u receives of %zu, %zu bytes inline: %s; ask "
		 "for less\n", call, vrb_domain_of(ep)->dev->name, ep->tx_size, info->tx_attr->iov_limit, ep->rx_size,
		 info->rx_attr->iov_limit, info->tx_attr->inject_size, strerror(err));
	return -err;
}

int vrb_srq_refused(const struct vrb_ep *ep, const char *call)
{
	int err = errno;

	VRB_WARN(FI_LOG_EP_CTRL, "%s on %s for %u receives of %u buffers: %s; ask for less\n", call,
		 vrb_domain_of(ep)->dev->name, ep->rx_size, ep->rx_iov_limit, strerror(err));
	return -err;
}

void vrb_srq_destroy(const struct vrb_ep *ep, struct ibv_srq *srq)
{
	int ret = ibv_destroy_srq(srq);

	if (ret)
		VRB_WARN(FI_LOG_EP_CTRL, "ibv_destroy_srq on %s: %s\n", vrb_domain_of(ep)->dev->name, strerror(ret));
}

static void stop_watches(struct vrb_ep *ep)
{
	vrb_watch_stop(&ep->qp_watch);
	vrb_watch_stop(&ep->srq_watch);
}

static int ep_activate(struct fab_ep *base)
{
	struct vrb_ep *ep = fab_container(base, struct vrb_ep, base);
	struct vrb_domain *domain = vrb_domain_of(ep);
	int ret;

	if (!ep->srx && ep->base.info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT && (ep->base.caps & FI_RECV))
		return fab_shared_missing(&ep->base);
	ret = fab_ep_check_enable(&ep->base);
	if (!ret && ep->srx)
		ret = vrb_srx_ready(ep->srx);
	if (ret)
		return ret;
	ep->reserved = ep->sq_size + (ep->srx ? 0 : ep->rx_size);
	ret = vrb_hw_cq_get(domain, ep->base.engine, ep->reserved, &ep->hw_cq);
	if (ret)
		return ret;
	ret = ep->kind->create(ep);
	if (ret)
		goto put_hw_cq;
	if (ep->kind->attach)
		ret = ep->kind->attach(ep);
	if (ret)
		goto destroy;
	if (!ep->srq && ep->srx)
		ep->srq = ep->srx->srq;
	if (ep->qp)
		vrb_watch_start(&ep->qp_watch, vrb_hw_cq_alarm(ep->hw_cq), ep->qp);
	if (ep->srq)
		vrb_watch_start(&ep->srq_watch, vrb_hw_cq_alarm(ep->hw_cq), ep->srq);
	fab_engine_lock(ep->base.engine);
	ep->base.enabled = true;
	fab_list_add_tail(&ep->hw_cq->eps, &ep->on_hw);
	if (ep->srx && ep->qp)
		vrb_srx_join(ep, ep->qp->qp_num);
	vrb_survey_start(ep);
	fab_engine_unlock(ep->base.engine);
	return 0;

destroy:
	ep->kind->destroy(ep);
	ep->srq = NULL;
put_hw_cq:
	vrb_hw_cq_put(domain, ep->hw_cq, ep->reserved);
	ep->hw_cq = NULL;
	return ret;
}

int vrb_ep_enable(struct vrb_ep *ep)
{
	return ep->base.enabled ? 0 : ep_activate(&ep->base);
}

/* ---- control, options, names ---- */

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_CM_DATA_SIZE || !vrb_ep_of(fid)->kind->cm_data_max)
		return fab_ep_getopt(fid, level, optname, optval, optlen);
	return fab_getopt_size(vrb_ep_of(fid)->kind->cm_data_max, optval, optlen);
}

/* The number of operations that can still be posted (API 1.x). */
static ssize_t ep_tx_size_left(struct fid_ep *fid)
{
	struct vrb_ep *ep = vrb_ep_of(&fid->fid);
	ssize_t left;

	fab_engine_lock(ep->base.engine);
	/* a probe may be outstanding beside tx_size operations */
	left = !ep->base.enabled ? -FI_EOPBADSTATE :
	       (ssize_t) ep->tx_size - fab_min(ep->tx_tail - ep->tx_head, ep->tx_size);
	fab_engine_unlock(ep->base.engine);
	return left;
}

/* The number of receives that can still be posted, also to a shared receive context. */
ssize_t vrb_ep_rx_size_left(struct fid_ep *fid)
{
	struct vrb_ep *ep = vrb_ep_of(&fid->fid);
	const struct vrb_ep *rx = ep->srx ? &ep->srx->ep : ep;
	ssize_t left;

	fab_engine_lock(ep->base.engine);
	left = ep->base.enabled ? (ssize_t) rx->rx_size - rx->rx_cnt : -FI_EOPBADSTATE;
	fab_engine_unlock(ep->base.engine);
	return left;
}

/* ---- close ---- */

static bool is_outstanding(const struct vrb_ep *ep)
{
	return ep->tx_head != ep->tx_tail || ep->rx_cnt;
}

/* Run the engine until the hardware has reported all outstanding requests. Lock held. */
static void drain(struct vrb_ep *ep)
{
	uint64_t end = fab_now_ns() + FLUSH_NS;

	while (is_outstanding(ep) && fab_now_ns() < end)
		fab_engine_run(ep->base.engine);
	if (is_outstanding(ep))
		VRB_WARN(FI_LOG_EP_CTRL, "device %s has not flushed its queues: %u sends and %u receives end with "
			 "FI_ECANCELED\n",
			 vrb_domain_of(ep)->dev->name, ep->tx_tail - ep->tx_head, ep->rx_cnt);
}

void vrb_qp_halt(struct vrb_ep *ep)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	/* in any other state the marker would be sent as a message */
	if (!ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE) && (ep->tx_head != ep->tx_tail || ep->srx))
		vrb_post_marker(ep);
}

int vrb_qp_post_recv(struct vrb_ep *ep, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	return ibv_post_recv(ep->qp, wr, &bad);
}

/* Remove the endpoint from everything except its queue pair; nothing is outstanding. Lock held. */
static void vrb_ep_stop(struct vrb_ep *ep)
{
	if (ep->kind->detach)
		ep->kind->detach(ep);
	ep->local_end = true;
	if (ep->state == VRB_EP_CONNECTED && ep->kind->disconnect)
		ep->kind->disconnect(ep);
	ep->state = VRB_EP_DOWN;
	if (!ep->hw_cq)
		return;
	ep->kind->halt(ep);
	drain(ep);
	if (ep->srx)
		vrb_srx_settle(ep);
	fab_list_remove(&ep->on_hw);
	vrb_survey_stop(ep);
	stop_watches(ep);
}

/* Lock held. */
static void destroy_qp(struct vrb_ep *ep)
{
	struct vrb_hw_cq *hw_cq = ep->hw_cq;

	if (!hw_cq)
		return;
	ep->kind->destroy(ep);
	if (is_outstanding(ep))
		vrb_hw_cq_poll(hw_cq);	/* a device may flush a queue pair when it is destroyed */
	if (ep->srx)
		vrb_srx_leave(ep);
}

/* Hand the queue pair over to unanswered.c if possible, since destroying it would wait for the peer. */
static void leave_qp(struct vrb_ep *ep)
{
	bool left = vrb_unanswered_keep(ep);

	fab_engine_lock(ep->base.engine);
	if (!left)
		destroy_qp(ep);
	else if (ep->srx)
		vrb_srx_leave(ep);
	fab_engine_unlock(ep->base.engine);
}

static void ep_free(struct vrb_ep *ep)
{
	fab_pool_fini(&ep->rx_pool);
	free(ep->tx);
	free(ep);
}

void vrb_ep_free_late(struct vrb_domain *domain)
{
	while (!fab_list_empty(&domain->late))
		ep_free(fab_container(fab_list_pop_front(&domain->late), struct vrb_ep, on_hw));
}

/* End requests that the device has not flushed, though their queue pair is destroyed or, if it is a shared XRC
 * initiator, in the error state. It may report them yet, in a queue that other endpoints poll. So the memory of the
 * endpoint stays until the domain closes, or LATE_MAX endpoints have been closed so after it, each of which has waited
 * for FLUSH_NS. True if there are any. Lock held. */
static bool keep_late(struct vrb_ep *ep)
{
	struct vrb_domain *domain = vrb_domain_of(ep);
	struct fab_list *oldest = NULL;

	if (!is_outstanding(ep))
		return false;
	vrb_requests_lost(ep, FI_ECANCELED, "the endpoint was closed, and the device has not flushed its queue pair");
	pthread_mutex_lock(&domain->late_lock);
	if (domain->late_cnt == LATE_MAX)
		oldest = fab_list_pop_front(&domain->late);
	else
		domain->late_cnt++;
	fab_list_add_tail(&domain->late, &ep->on_hw);
	pthread_mutex_unlock(&domain->late_lock);
	if (oldest)
		ep_free(fab_container(oldest, struct vrb_ep, on_hw));
	return true;
}

static int ep_close(struct fid *fid)
{
	struct vrb_ep *ep = vrb_ep_of(fid);
	int ret = fab_ep_check_close(&ep->base);
	bool unanswered, late;

	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	unanswered = ep->kind->unanswered && ep->kind->unanswered(ep);
	vrb_ep_stop(ep);
	if (!unanswered)
		destroy_qp(ep);
	late = keep_late(ep);
	fab_engine_unlock(ep->base.engine);
	if (unanswered)
		leave_qp(ep);
	ep->kind->close(ep);
	if (ep->srx)
		vrb_srx_unbind(ep);
	if (ep->hw_cq)
		vrb_hw_cq_put(vrb_domain_of(ep), ep->hw_cq, ep->reserved);
	vrb_unanswered_end(vrb_domain_of(ep), false);
	fab_stats_peers_fini(&ep->peers);
	fab_ep_fini(&ep->base);
	if (!late)
		ep_free(ep);
	return 0;
}

/* ---- tables ---- */

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return bfid->fclass == FI_CLASS_SRX_CTX ? vrb_srx_bind(vrb_ep_of(fid), bfid, flags) :
	       fab_ep_bind(fid, bfid, flags);
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = fab_ep_control,
};

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.getopt = ep_getopt,
	.setopt = fab_ep_setopt,
	.rx_size_left = vrb_ep_rx_size_left,
	.tx_size_left = ep_tx_size_left,
};

void vrb_ep_fill_ops(void)
{
	FAB_OPS_FILL(&ep_fid_ops);
	FAB_OPS_FILL(&ep_ops);
}

/* ---- open ---- */

static int vrb_ep_check_open(const struct vrb_domain *domain, const struct fi_info *info)
{
	if (info->ep_attr->type != domain->kind->ep_type) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_endpoint: ep_attr->type is %d; domain %s has endpoints of type %d\n",
			 info->ep_attr->type, domain->base.name, domain->kind->ep_type);
		return -FI_EINVAL;
	}
	if (domain->relaxed && !vrb_info_relaxed(info)) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_endpoint: the info has an order of remote accesses (msg_order), and that "
			 "of the domain has none, so its regions have none (FI_VERBS_RELAXED_ORDERING); open the "
			 "domain with the same info\n");
		return -FI_EINVAL;
	}
	return vrb_info_check(domain->kind, info, domain->base.fabric->fabric_fid.api_version);
}

static int queues_init(struct vrb_ep *ep, const struct fi_info *info)
{
	uint32_t ring = 2;

	ep->tx_size = info->tx_attr->size;
	ep->rx_size = info->rx_attr->size;
	ep->tx_quiet_max = ep->tx_size / 2 ? ep->tx_size / 2 - 1 : 0;
	ep->tx_iov_limit = fab_min(info->tx_attr->iov_limit, (size_t) VRB_IOV_LIMIT);
	ep->rx_iov_limit = fab_min(info->rx_attr->iov_limit, (size_t) VRB_IOV_LIMIT);
	ep->read_iov_limit = vrb_read_iov_limit(vrb_domain_of(ep)->dev);
	ep->sq_size = ep->tx_size * vrb_requests(vrb_domain_of(ep)->dev, ep->tx_iov_limit) + MARKER_CNT;
	ep->max_msg_size = info->ep_attr->max_msg_size + ep->kind->prefix;
	ep->aim = ep->kind->aim;
	fab_list_init(&ep->taker);
	while (ring < ep->tx_size + MARKER_CNT)
		ring *= 2;
	ep->tx_mask = ring - 1;
	ep->tx = calloc(ring, sizeof(*ep->tx));
	fab_pool_init(&ep->rx_pool, &(struct fab_pool_attr) { .size = sizeof(struct vrb_rx), .max_cnt = ep->rx_size });
	return ep->tx ? 0 : -FI_ENOMEM;
}

int vrb_ep_init(struct fab_ep *base, struct fab_domain *domain, const struct fi_info *info, void *context)
{
	struct vrb_ep *ep = fab_container(base, struct vrb_ep, base);
	struct fab_ep_ops ops = {
		.fid = &ep_fid_ops, .ep = &ep_ops,
		.msg = &vrb_msg_ops, .rma = &vrb_rma_ops,
		.atomic = &vrb_atomic_ops, .enable = ep_activate,
	};
	int ret;

	ret = vrb_ep_check_open(fab_container(domain, const struct vrb_domain, base), info);
	if (ret)
		return ret;
	ep->kind = fab_container(domain, const struct vrb_domain, base)->kind;
	ops.cm = ep->kind->cm;
	ret = fab_ep_init(&ep->base, domain, info, &ops, context);
	if (ret)
		return ret;
	ep->stats = &ep->base.stats->rest;
	ep->shown = !domain->fabric->layered;
	ret = queues_init(ep, info);
	if (!ret)
		ret = ep->kind->open(ep, info);
	if (!ret)
		return 0;
	fab_pool_fini(&ep->rx_pool);
	free(ep->tx);
	fab_ep_fini(&ep->base);
	return ret;
}
