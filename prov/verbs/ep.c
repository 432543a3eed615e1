/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints: open, enable, options, close. A queue pair exists from fi_enable on, so that receives can be posted before
 * there is a connection; the device is known by then, since every endpoint has a source address (info->src_addr) or
 * comes from a request.
 *
 * Close: the queue pair goes into the error state, the hardware reports everything outstanding as flushed, then the
 * queue pair goes; from there on nothing can name the endpoint.
 */
#include "verbs/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "common/ip_name.h"
#include "common/ops.h"

#define FLUSH_NS	1000000000ULL	/* a device that does not flush in this time has failed */

#define MARKER_CNT	1		/* vrb_post_marker() */

/* ---- enable ---- */

static int qp_create(struct vrb_ep *ep)
{
	const struct fi_info *info = ep->base.info;
	struct ibv_qp_init_attr attr = {
		.qp_context = ep, .send_cq = ep->hw_cq->cq, .recv_cq = ep->hw_cq->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = ep->tx_size + MARKER_CNT, .max_recv_wr = ep->rx_size,
			 .max_send_sge = info->tx_attr->iov_limit, .max_recv_sge = info->rx_attr->iov_limit,
			 .max_inline_data = info->tx_attr->inject_size },
	};

	if (!rdma_create_qp(ep->id, vrb_domain_of(ep)->pd, &attr)) {
		ep->inline_max = attr.cap.max_inline_data;
		return 0;
	}
	VRB_WARN(FI_LOG_EP_CTRL, "rdma_create_qp on %s for %u sends of %zu buffers, %u receives of %zu, %zu bytes inline: %s;"
		 " ask for less\n", vrb_domain_of(ep)->dev->name, ep->tx_size, info->tx_attr->iov_limit, ep->rx_size,
		 info->rx_attr->iov_limit, info->tx_attr->inject_size, strerror(errno));
	return -errno;
}

static int ep_activate(struct vrb_ep *ep)
{
	struct vrb_domain *domain = vrb_domain_of(ep);
	int ret;

	ret = fab_ep_check_enable(&ep->base);
	if (ret)
		return ret;
	ret = vrb_hw_cq_get(domain, ep->base.progress, ep->reserved, &ep->hw_cq);
	if (ret)
		return ret;
	ret = qp_create(ep);
	if (ret)
		goto put_hw_cq;
	fab_progress_lock(ep->base.progress);
	ret = fab_source_add(ep->base.progress, &ep->cm_src, EPOLLIN);
	ep->base.enabled = !ret;
	fab_progress_unlock(ep->base.progress);
	if (!ret)
		return 0;
	rdma_destroy_qp(ep->id);
put_hw_cq:
	vrb_hw_cq_put(domain, ep->hw_cq, ep->reserved);
	ep->hw_cq = NULL;
	return ret;
}

int vrb_ep_enable(struct vrb_ep *ep)
{
	return ep->base.enabled ? 0 : ep_activate(ep);
}

/* ---- control, options, names ---- */

static int ep_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? ep_activate(vrb_ep_of(fid)) : fab_ep_control(fid, command, arg);
}

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_CM_DATA_SIZE)
		return fab_ep_getopt(fid, level, optname, optval, optlen);
	return fab_getopt_size(VRB_CM_DATA_MAX, optval, optlen);
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	(void) fid, (void) level, (void) optname, (void) optval, (void) optlen;
	return -FI_ENOPROTOOPT;
}

/* How many operations more can be posted, as programs of 1.x ask. */
static ssize_t ep_tx_size_left(struct fid_ep *fid)
{
	struct vrb_ep *ep = vrb_ep_of(&fid->fid);
	ssize_t left;

	fab_progress_lock(ep->base.progress);
	left = ep->base.enabled ? (ssize_t) ep->tx_size - (ep->tx_tail - ep->tx_head) : -FI_EOPBADSTATE;
	fab_progress_unlock(ep->base.progress);
	return left;
}

static ssize_t ep_rx_size_left(struct fid_ep *fid)
{
	struct vrb_ep *ep = vrb_ep_of(&fid->fid);
	ssize_t left;

	fab_progress_lock(ep->base.progress);
	left = ep->base.enabled ? (ssize_t) ep->rx_size - ep->rx_cnt : -FI_EOPBADSTATE;
	fab_progress_unlock(ep->base.progress);
	return left;
}

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct vrb_ep *ep = vrb_ep_of(fid);
	union fab_sockaddr name = { .sa.sa_family = AF_UNSPEC };
	const struct sockaddr *src = rdma_get_local_addr(ep->id);

	memcpy(&name, src, fab_addr_len(src));
	return fab_name_give(&name, addr, addrlen);
}

/* ---- close ---- */

/* Until the hardware has reported all that is outstanding. Lock held. */
static void drain(struct vrb_ep *ep)
{
	uint64_t end = fab_now_ns() + FLUSH_NS;

	while ((ep->tx_head != ep->tx_tail || ep->rx_cnt) && fab_now_ns() < end)
		fab_progress_run(ep->base.progress);
	if (ep->tx_head != ep->tx_tail || ep->rx_cnt)
		VRB_WARN(FI_LOG_EP_CTRL, "device %s does not flush: %u sends and %u receives are lost\n",
			 vrb_domain_of(ep)->dev->name, ep->tx_tail - ep->tx_head, ep->rx_cnt);
}

/* Lock held. */
static void stop(struct vrb_ep *ep)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	fab_source_del(&ep->cm_src);
	ep->local_end = true;
	if (ep->state == VRB_EP_CONNECTED)
		rdma_disconnect(ep->id);
	ep->state = VRB_EP_DOWN;
	if (!ep->id->qp)
		return;
	ibv_modify_qp(ep->id->qp, &attr, IBV_QP_STATE);
	if (ep->tx_head != ep->tx_tail)
		vrb_post_marker(ep);
	drain(ep);
	rdma_destroy_qp(ep->id);
}

static int ep_close(struct fid *fid)
{
	struct vrb_ep *ep = vrb_ep_of(fid);
	int ret = fab_ep_check_close(&ep->base);

	if (ret)
		return ret;
	fab_progress_lock(ep->base.progress);
	stop(ep);
	fab_progress_unlock(ep->base.progress);
	rdma_destroy_id(ep->id);
	rdma_destroy_event_channel(ep->channel);
	if (ep->hw_cq)
		vrb_hw_cq_put(vrb_domain_of(ep), ep->hw_cq, ep->reserved);
	if (ep->base.eq)
		fab_eq_purge(ep->base.eq, &ep->base.ep_fid.fid, NULL);
	fab_pool_fini(&ep->rx_pool);
	free(ep->tx);
	fab_ep_fini(&ep->base);
	free(ep);
	return 0;
}

/* ---- tables ---- */

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = fab_ep_bind,
	.control = ep_control,
};

static struct fi_ops_ep ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.rx_size_left = ep_rx_size_left,
	.tx_size_left = ep_tx_size_left,
};

static struct fi_ops_cm cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.getname = ep_getname,
	.getpeer = vrb_getpeer,
	.connect = vrb_connect,
	.accept = vrb_accept,
	.shutdown = vrb_shutdown,
};

void vrb_ep_fill_ops(void)
{
	FAB_OPS_FILL(&ep_fid_ops);
	FAB_OPS_FILL(&ep_ops);
	FAB_OPS_FILL(&cm_ops);
}

/* ---- open ---- */

static int check_open(const struct fab_domain *domain, const struct fi_info *info)
{
	if (!info || !info->ep_attr || !info->tx_attr || !info->rx_attr || !info->domain_attr) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_endpoint: info is NULL or lacks attributes; pass an info of fi_getinfo()\n");
		return -FI_EINVAL;
	}
	if (info->ep_attr->type != FI_EP_MSG) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_endpoint: ep_attr->type is %d; verbs has FI_EP_MSG\n", info->ep_attr->type);
		return -FI_EINVAL;
	}
	return vrb_info_check(info, domain->fabric->fabric_fid.api_version);
}

/* An id of the endpoint's own, on its device: of the request, or bound to the source address. */
static int id_init(struct vrb_ep *ep, const struct fi_info *info)
{
	struct vrb_fabric *fabric = fab_container(ep->base.domain->fabric, struct vrb_fabric, base);
	union fab_sockaddr src;
	struct vrb_connreq *req;
	int ret;

	if (info->handle) {
		req = vrb_connreq_take(fabric, info->handle);
		if (!req) {
			VRB_WARN(FI_LOG_EP_CTRL, "fi_endpoint: info->handle is no connection request that waits for an answer\n");
			return -FI_EINVAL;
		}
		ep->id = req->id;
		free(req);
		memcpy(&ep->peer, rdma_get_peer_addr(ep->id), fab_addr_len(rdma_get_peer_addr(ep->id)));
		return rdma_migrate_id(ep->id, ep->channel) ? -errno : 0;
	}
	ret = fab_name_take(&vrb_prov, &src, info, info->src_addr, info->src_addrlen);
	if (ret)
		return ret;
	if (rdma_create_id(ep->channel, &ep->id, ep, RDMA_PS_TCP))
		return -errno;
	if (!rdma_bind_addr(ep->id, &src.sa))
		return 0;
	VRB_WARN(FI_LOG_EP_CTRL, "rdma_bind_addr on %s: %s\n", vrb_domain_of(ep)->dev->name, strerror(errno));
	return -errno;
}

static int same_device(const struct vrb_ep *ep)
{
	const struct vrb_device *dev = vrb_domain_of(ep)->dev;

	if (ep->id->verbs == dev->verbs)
		return 0;
	VRB_WARN(FI_LOG_EP_CTRL, "fi_endpoint: the %s is not one of device %s\n",
		 ep->id->verbs ? "address" : "wildcard address", dev->name);
	return -FI_EINVAL;
}

static int channel_init(struct vrb_ep *ep)
{
	int flags;

	ep->channel = rdma_create_event_channel();
	if (!ep->channel)
		return -errno;
	flags = fcntl(ep->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(ep->channel->fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	ep->cm_src = (struct fab_source) { .fd = ep->channel->fd, .ready = vrb_cm_ready };
	return 0;
}

static int queues_init(struct vrb_ep *ep, const struct fi_info *info)
{
	uint32_t ring = 2;

	ep->tx_size = info->tx_attr->size;
	ep->rx_size = info->rx_attr->size;
	ep->reserved = ep->tx_size + MARKER_CNT + ep->rx_size;
	while (ring < ep->tx_size + MARKER_CNT)
		ring *= 2;
	ep->tx_mask = ring - 1;
	ep->tx = calloc(ring, sizeof(*ep->tx));
	fab_pool_init(&ep->rx_pool, &(struct fab_pool_attr) { .size = sizeof(struct vrb_rx), .max_cnt = ep->rx_size });
	return ep->tx ? 0 : -FI_ENOMEM;
}

static void undo_init(struct vrb_ep *ep)
{
	if (ep->id)
		rdma_destroy_id(ep->id);
	if (ep->channel)
		rdma_destroy_event_channel(ep->channel);
	fab_pool_fini(&ep->rx_pool);
	free(ep->tx);
	fab_ep_fini(&ep->base);
}

static int ep_init(struct vrb_ep *ep, struct fab_domain *domain, const struct fi_info *info, void *context)
{
	struct fab_ep_ops ops = {
		.fid = &ep_fid_ops, .ep = &ep_ops, .cm = &cm_ops,
		.msg = info->caps & FI_MSG ? &vrb_msg_ops : NULL, .rma = info->caps & FI_RMA ? &vrb_rma_ops : NULL,
	};
	int ret;

	ret = fab_ep_init(&ep->base, domain, info, &ops, context);
	if (ret)
		return ret;
	ret = queues_init(ep, info);
	if (!ret)
		ret = channel_init(ep);
	if (!ret)
		ret = id_init(ep, info);
	if (!ret)
		ret = same_device(ep);
	if (ret)
		undo_init(ep);
	else
		ep->id->context = ep;
	return ret;
}

int vrb_ep_open(struct fid_domain *domain_fid, struct fi_info *info, struct fid_ep **ep_fid, void *context)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct vrb_ep *ep;
	int ret;

	ret = check_open(domain, info);
	if (ret)
		return ret;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ret = ep_init(ep, domain, info, context);
	if (ret) {
		free(ep);
		return ret;
	}
	*ep_fid = &ep->base.ep_fid;
	return 0;
}
