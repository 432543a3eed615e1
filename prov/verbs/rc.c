/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MSG endpoints over reliable connected queue pairs, which librdmacm connects (cm.c). Each has a CM id of its own,
 * which is bound to its device from fi_endpoint() on: by the source address (info->src_addr), or because the id comes
 * from a connection request or a passive endpoint.
 */
#include "verbs/kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "common/net/net.h"
#include "verbs/srx.h"

#define HELD_MAX	16		/* requests of FI_MORE that are posted in one call */

/* Requests that were posted with FI_MORE and have not been passed to the device. */
struct held {
	struct fab_flush flush;		/* posts them if no other request follows */
	struct vrb_ep *ep;
	uint32_t cnt;
	struct {
		struct ibv_send_wr wr;	/* linked in their order */
		struct ibv_sge sge[VRB_IOV_LIMIT];
	} req[HELD_MAX];
};

struct vrb_rc_ep {
	struct vrb_conn_ep conn;
	struct held *held;		/* owned: from the first FI_MORE on, else NULL */
	struct fab_timer accepted;	/* delays FI_CONNECTED of an accepted connection */
	uint32_t last_read;		/* position of the last read in the order of posting */
};

static struct vrb_rc_ep *rc_of(struct vrb_ep *ep)
{
	return fab_container(ep, struct vrb_rc_ep, conn.ep);
}

static bool rc_offered(const struct vrb_device *dev)
{
	(void) dev;
	return true;
}

static bool rc_odp(const struct ibv_device_attr_ex *attr)
{
	return vrb_odp_has(attr, attr->odp_caps.per_transport_caps.rc_odp_caps, 0);
}

static void rc_fill(struct fi_info *info, const struct vrb_device *dev)
{
	/* how many endpoints can share one, not how many of them there can be */
	info->domain_attr->max_ep_srx_ctx = dev->attr.max_srq > 0 ? info->domain_attr->ep_cnt : 0;
	info->ep_attr->protocol = dev->quirks->protocol;
}

/* ---- the id ---- */

static int id_of_request(struct vrb_ep *ep, fid_t handle, struct rdma_event_channel *channel)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct vrb_connreq *req = vrb_connreq_take(ep->base.domain->fabric, handle);

	if (!req) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_endpoint: info->handle is neither a passive endpoint nor a connection "
			 "request that waits for an answer\n");
		return -FI_EINVAL;
	}
	conn->id = req->id;
	memcpy(conn->cm_data, req->data, sizeof(conn->cm_data));
	free(req);
	memcpy(&conn->peer, rdma_get_peer_addr(conn->id), fab_any_addr_len(rdma_get_peer_addr(conn->id)));
	ep->peer_sa = &conn->peer.sa;
	return rdma_migrate_id(conn->id, channel) ? -errno : 0;
}

/* Take the id of a handle: of a passive endpoint, whose address the endpoint gets, or of a connection request. */
static int id_of_handle(struct vrb_ep *ep, fid_t handle, struct rdma_event_channel *channel)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	int ret = vrb_pep_take_id(ep->base.domain->fabric, handle, &conn->id);

	if (ret == -FI_ENOENT)
		return id_of_request(ep, handle, channel);
	if (ret == -FI_EOPBADSTATE)
		VRB_WARN(FI_LOG_EP_CTRL,
			 "fi_endpoint: info->handle is a passive endpoint that already listens; use one that does not "
			 "listen\n");
	if (ret)
		return ret;
	ep->base.info->handle = NULL;	/* no request to accept */
	return rdma_migrate_id(conn->id, channel) ? -errno : 0;
}

static int id_init(struct vrb_ep *ep, const struct fi_info *info, struct rdma_event_channel *channel)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	union fab_any_addr src;
	int ret;

	if (info->handle)
		return id_of_handle(ep, info->handle, channel);
	ret = fab_any_name_take(&vrb_prov, &src, info, info->src_addr, info->src_addrlen);
	if (ret)
		return ret;
	if (rdma_create_id(channel, &conn->id, NULL, vrb_port_space(&src.sa)))
		return -errno;
	if (!rdma_bind_addr(conn->id, &src.sa))
		return 0;
	VRB_WARN(FI_LOG_EP_CTRL, "rdma_bind_addr on %s: %s\n", vrb_domain_of(ep)->dev->name, strerror(errno));
	return -errno;
}

static int same_device(const struct vrb_ep *ep)
{
	const struct vrb_conn_ep *conn = vrb_conn_of(ep);
	const struct vrb_device *dev = vrb_domain_of(ep)->dev;

	if (conn->id->verbs == dev->verbs)
		return 0;
	VRB_WARN(FI_LOG_EP_CTRL, "fi_endpoint: the %s does not belong to device %s\n",
		 conn->id->verbs ? "address" : "wildcard address", dev->name);
	return -FI_EINVAL;
}

/* The delay of rc_event() is over. */
static void accepted_fire(struct fab_timer *timer)
{
	struct vrb_ep *ep = &fab_container(timer, struct vrb_rc_ep, accepted)->conn.ep;

	if (ep->state == VRB_EP_CONNECTING)
		vrb_cm_connected(ep, NULL);
}

/* The channel of ids whose endpoints are not enabled. Events stay there until the id moves to another. */
static int channel_of(struct vrb_domain *domain, struct rdma_event_channel **channel)
{
	int ret = 0;

	pthread_mutex_lock(&domain->lock);
	if (!domain->channel)
		ret = vrb_channel_make(&domain->channel);
	*channel = domain->channel;
	pthread_mutex_unlock(&domain->lock);
	return ret;
}

void vrb_id_close(struct vrb_ep *ep)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);

	if (conn->id)
		rdma_destroy_id(conn->id);
	conn->id = NULL;
}

int vrb_id_open(struct vrb_ep *ep, const struct fi_info *info)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct rdma_event_channel *channel;
	int ret = channel_of(vrb_domain_of(ep), &channel);

	if (!ret)
		ret = id_init(ep, info, channel);
	if (!ret)
		ret = same_device(ep);
	if (ret) {
		vrb_id_close(ep);
		return ret;
	}
	conn->sink.event = vrb_cm_sink_event;
	conn->id->context = &conn->sink;
	return 0;
}

int vrb_id_attach(struct vrb_ep *ep)
{
	return vrb_hw_cq_take_id(vrb_domain_of(ep), ep->hw_cq, vrb_conn_of(ep)->id);
}

void vrb_id_detach(struct vrb_ep *ep)
{
	vrb_conn_of(ep)->id->context = NULL;
}

static int rc_open(struct vrb_ep *ep, const struct fi_info *info)
{
	fab_timer_init(&rc_of(ep)->accepted, accepted_fire);
	return vrb_id_open(ep, info);
}

/* ---- the queue pair ---- */

/* post.c expects requests to complete in order. So where they overtake reads (vrb_quirks.reads_overtaken), a request
 * that is posted while a read is outstanding gets a fence. A read does not need one. */
static ssize_t aim_behind_reads(struct vrb_ep *ep, fi_addr_t addr, struct ibv_send_wr *wr)
{
	(void) addr;
	if (wr->opcode == IBV_WR_RDMA_READ) {
		rc_of(ep)->last_read = ep->tx_tail;
		wr->send_flags &= ~(unsigned) IBV_SEND_FENCE;
	} else if (rc_of(ep)->last_read - ep->tx_head < ep->tx_tail - ep->tx_head) {
		wr->send_flags |= IBV_SEND_FENCE;
	}
	return 0;
}

/* ---- requests that follow each other (FI_MORE) ---- */

/* The last of the requests that are kept is linked to nothing. */
static void held_taken(struct held *held)
{
	held->cnt = 0;
	held->ep->aim = NULL;
	fab_flush_cancel(&held->flush);
}

/* A vrb_ep.aim: the device gets what is kept, and then wr, in one call, for which it is rung once. */
static ssize_t aim_behind_held(struct vrb_ep *ep, fi_addr_t addr, struct ibv_send_wr *wr)
{
	struct held *held = rc_of(ep)->held;

	(void) addr;
	held->req[held->cnt].wr = *wr;
	held->req[held->cnt - 1].wr.next = &held->req[held->cnt].wr;
	*wr = held->req[0].wr;
	held_taken(held);
	return 0;
}

static void rc_release(struct vrb_ep *ep)
{
	struct held *held = rc_of(ep)->held;
	struct ibv_send_wr *bad;
	int err;

	if (!held || !held->cnt)
		return;
	err = ibv_post_send(ep->qp, &held->req[0].wr, &bad);
	held_taken(held);
	if (err)
		vrb_held_refused(ep);
}

static void held_flush(struct fab_flush *flush)
{
	rc_release(fab_container(flush, struct held, flush)->ep);
}

static struct held *held_of(struct vrb_ep *ep)
{
	struct vrb_rc_ep *rc = rc_of(ep);

	if (rc->held)
		return rc->held;
	rc->held = calloc(1, sizeof(*rc->held));
	if (!rc->held)
		return NULL;
	rc->held->ep = ep;
	fab_flush_init(&rc->held->flush, held_flush);
	return rc->held;
}

/* Where requests behind reads wait for them, each is passed to the device at once. */
static bool rc_hold(struct vrb_ep *ep, const struct ibv_send_wr *wr)
{
	struct held *held = ep->aim && ep->aim != aim_behind_held ? NULL : held_of(ep);
	struct ibv_send_wr *to;

	if (!held || held->cnt == HELD_MAX - 1)
		return false;
	to = &held->req[held->cnt].wr;
	*to = *wr;
	to->sg_list = held->req[held->cnt].sge;
	memcpy(to->sg_list, wr->sg_list, (size_t) wr->num_sge * sizeof(*wr->sg_list));
	if (held->cnt)
		held->req[held->cnt - 1].wr.next = to;
	held->cnt++;
	ep->aim = aim_behind_held;
	fab_engine_flush_later(ep->base.engine, &held->flush);
	return true;
}

static int rc_create(struct vrb_ep *ep)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct ibv_qp_init_attr attr = vrb_qp_attr(ep);

	attr.qp_type = IBV_QPT_RC;
	if (vrb_domain_of(ep)->dev->quirks->reads_overtaken)
		ep->aim = aim_behind_reads;
	errno = 0;
	if (rdma_create_qp(conn->id, vrb_domain_of(ep)->pd, &attr))
		return vrb_qp_refused(ep, "rdma_create_qp");
	ep->qp = conn->id->qp;
	ep->inline_max = vrb_inline_max(ep, &attr.cap);
	return 0;
}

static void rc_destroy(struct vrb_ep *ep)
{
	fab_timer_stop(&rc_of(ep)->accepted);
	if (rc_of(ep)->held)
		fab_flush_cancel(&rc_of(ep)->held->flush);
	free(rc_of(ep)->held);
	rc_of(ep)->held = NULL;
	rdma_destroy_qp(vrb_conn_of(ep)->id);
	ep->qp = NULL;
}

/* ---- connections ---- */

/* Set the time after which a peer sends again to a queue pair without a posted receive. This is done once librdmacm has
 * made the queue pair ready; librdmacm sets 0, which means 655 ms. Errors are ignored: if the connection has ended
 * already, an event reports it. */
static void set_rnr_timer(const struct vrb_ep *ep)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = (uint8_t) vrb_params.min_rnr_timer };
	int ret = vrb_domain_of(ep)->dev->quirks->repeats ? ibv_modify_qp(ep->qp, &attr, IBV_QP_MIN_RNR_TIMER) : 0;

	if (ret)
		VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "%s: ibv_modify_qp to FI_VERBS_MIN_RNR_TIMER=%d: %s\n",
			vrb_domain_of(ep)->dev->name, vrb_params.min_rnr_timer, strerror(ret));
}

/* Mark the packets of the connection, in both directions, with the endpoint's traffic class. */
static void mark_packets(const struct vrb_ep *ep)
{
	int dscp = fab_tclass_dscp(ep->base.info, ep->base.domain->attr.tclass);
	/* the low two bits are for congestion notification and belong to the device */
	uint8_t tos = (uint8_t) (fab_max(dscp, 0) << 2);

	if (dscp >= 0 && rdma_set_option(vrb_conn_of(ep)->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)))
		VRB_WARN(FI_LOG_EP_CTRL, "rdma_set_option on %s: packets cannot be marked with the codepoint (DSCP) %d "
			 "of their traffic class: %s; they leave unmarked\n", vrb_domain_of(ep)->dev->name, dscp,
			 strerror(errno));
}

int vrb_id_connect(struct vrb_ep *ep)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	int ret;

	mark_packets(ep);

	if (!rdma_resolve_addr(conn->id, NULL, &conn->peer.sa, VRB_RESOLVE_MS))
		return 0;
	ret = -errno;
	VRB_WARN(FI_LOG_EP_CTRL, "rdma_resolve_addr on %s: %s\n", vrb_domain_of(ep)->dev->name, strerror(errno));
	return ret;
}

static int rc_accept(struct vrb_ep *ep)
{
	struct rdma_conn_param conn = vrb_cm_param(ep);
	int ret;

	if (!rdma_accept(vrb_conn_of(ep)->id, &conn)) {
		set_rnr_timer(ep);
		return 0;
	}
	ret = -errno;
	VRB_WARN(FI_LOG_EP_CTRL, "rdma_accept on %s: %s\n", vrb_domain_of(ep)->dev->name, strerror(errno));
	return ret;
}

/* Where the accepting end may not send at once, FI_CONNECTED of an accepted connection is delayed a little. */
static void rc_event(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	const struct vrb_quirks *quirks = vrb_domain_of(ep)->dev->quirks;
	bool established = event->event == RDMA_CM_EVENT_ESTABLISHED && ep->state == VRB_EP_CONNECTING;

	if (established && !ep->base.info->handle)
		set_rnr_timer(ep);
	if (established && ep->base.info->handle && quirks->accepted_ns)
		fab_timer_start(ep->base.engine, &rc_of(ep)->accepted, fab_now_ns() + quirks->accepted_ns);
	else
		vrb_cm_event(ep, event);
}

static bool rc_unanswered(const struct vrb_ep *ep)
{
	return vrb_domain_of(ep)->dev->quirks->holds_unanswered && vrb_conn_of(ep)->asked &&
	       ep->state == VRB_EP_CONNECTING;
}

static void rc_disconnect(struct vrb_ep *ep)
{
	rdma_disconnect(vrb_conn_of(ep)->id);
}

static bool rc_probes(const struct vrb_ep *ep)
{
	return vrb_domain_of(ep)->dev->quirks->probes;
}

const struct vrb_kind vrb_rc = {
	.ep_type = FI_EP_MSG,
	.ep_size = sizeof(struct vrb_rc_ep),
	.suffix = "",
	.getinfo = vrb_msg_getinfo,
	.offered = rc_offered,
	.odp = rc_odp,
	.fill = rc_fill,
	.cm_data_max = VRB_CM_DATA_MAX,
	.av_open = fab_av_open,
	.srx = &vrb_rc_srx,
	.open = rc_open,
	.close = vrb_id_close,
	.create = rc_create,
	.destroy = rc_destroy,
	.attach = vrb_id_attach,
	.detach = vrb_id_detach,
	.unanswered = rc_unanswered,
	.halt = vrb_qp_halt,
	.cm = &vrb_cm_ops,
	.connect = vrb_id_connect,
	.accept = rc_accept,
	.disconnect = rc_disconnect,
	.event = rc_event,
	.probes = rc_probes,
	.hold = rc_hold,
	.release = rc_release,
	.post_recv = vrb_qp_post_recv,
};
