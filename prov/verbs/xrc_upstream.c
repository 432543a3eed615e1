/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Upstream's handshake over XRC, so that either end may be upstream's. Each direction is connected by a request of its
 * own, from the end that sends in it. The number of a new queue pair is that of the CM's messages.
 *
 *   connect: REQ (initiator) -> REP (its target) -> RTU; then the peer's reciprocal REQ comes to a port that the
 *            endpoint listens on, and is accepted with a target
 *   accept:  a target -> REP, RTU; then the reciprocal REQ to the peer's port
 *
 * An upstream process that has an initiator to the node already asks for the service of datagrams at the same port
 * (SIDR): it names the target and gets the SRQ, and there is no connection of the CM. We do not share initiators with
 * endpoints that are connected so.
 *
 * Upstream closes a connection of the CM when it has both queue pairs: its end says nothing about the endpoints.
 */
#include "verbs/xrc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "verbs/srx.h"

#define REJ_CONSUMER	28		/* IB_CM_REJ_CONSUMER_DEFINED: also of a request that is dropped unanswered */
#define PORT_TRIES	8
#define DATA_AT		sizeof(struct vrb_xrc_up_wire)

enum { STREAM, SIDR, PORTS };

struct vrb_xrc_up {
	struct vrb_ep *ep;
	struct vrb_cm_sink sink;	/* of the ids below */
	struct rdma_cm_id *port[PORTS];	/* owned: connecting, while the reciprocal request is awaited; or NULL */
	struct rdma_cm_id *back;	/* owned: of the reciprocal request; or NULL */
	struct rdma_cm_id *unwanted;	/* owned: of another request, until its event is acknowledged; or NULL */
	struct vrb_xrc_up_wire req;	/* of the end that connects */
	bool sends, receives;		/* the directions that are connected */
	bool told;			/* the reciprocal request has come: the ports close */
};

static bool up_take(const void *data, size_t len, struct vrb_xrc_up_wire *wire)
{
	if (!data || len < sizeof(*wire))
		return false;
	memcpy(wire, data, sizeof(*wire));
	wire->port = ntohs(wire->port);
	wire->tgt = ntohl(wire->tgt);
	wire->srqn = ntohl(wire->srqn);
	wire->tag = ntohl(wire->tag);
	return wire->version == VRB_XRC_UP_VERSION && wire->reciprocal <= 1;
}

static void up_give(uint8_t *data, struct vrb_xrc_up_wire wire)
{
	wire.version = VRB_XRC_UP_VERSION;
	wire.port = htons(wire.port);
	wire.tgt = htonl(wire.tgt);
	wire.srqn = htonl(wire.srqn);
	wire.tag = htonl(wire.tag);
	memcpy(data, &wire, sizeof(wire));
}

/* The parameters of a request or an answer. data has room for VRB_CM_DATA_MAX + 1 bytes; those of the application are
 * cm_data, and only in the first request and its answer. */
static struct rdma_conn_param up_param(struct vrb_ep *ep, struct vrb_xrc_up_wire wire, uint32_t qpn, uint8_t *data)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct rdma_conn_param param = vrb_cm_param(ep);
	uint8_t len = sizeof(wire);

	if (!wire.reciprocal) {
		memcpy(data + len, conn->cm_data, conn->cm_data[0] + 1u);
		len += (uint8_t) (conn->cm_data[0] + 1);
	}
	wire.srqn = vrb_xrc_ep_of(ep)->srqn;
	up_give(data, wire);
	param.private_data = data;
	param.private_data_len = len;
	param.qp_num = qpn;
	param.srq = 1;
	return param;
}

/* Add upstream's part to the data with which a request of it is refused. The length. */
static uint8_t up_refusal(const struct vrb_xrc_up_wire *req, uint8_t *data)
{
	uint8_t len = (uint8_t) (data[0] + 1);

	memmove(data + DATA_AT, data, len);
	up_give(data, (struct vrb_xrc_up_wire) { .reciprocal = req->reciprocal, .port = req->port, .tag = req->tag });
	return (uint8_t) (DATA_AT + len);
}

uint8_t vrb_xrc_up_refusal(const uint8_t *req, uint8_t *data)
{
	struct vrb_xrc_up_wire wire;

	if (vrb_xrc_is_ours(req, VRB_CM_DATA_MAX + 1) || !up_take(req, VRB_CM_DATA_MAX + 1, &wire))
		return 0;
	return up_refusal(&wire, data);
}

static void up_refuse(struct rdma_cm_id *id, const struct vrb_xrc_up_wire *req)
{
	uint8_t data[DATA_AT + 1] = { 0 };

	rdma_reject(id, data, up_refusal(req, data));
}

static void up_failed(struct vrb_ep *ep, int err, const struct rdma_cm_event *event, const char *step)
{
	if (ep->state == VRB_EP_CONNECTING)
		vrb_xrc_give_up(ep, err, event, step);
}

static void up_connected(struct vrb_ep *ep)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	const struct vrb_xrc_up *up = vrb_xrc_ep_of(ep)->up;
	size_t len;
	const void *data;

	if (!up->sends || !up->receives || ep->state != VRB_EP_CONNECTING)
		return;
	data = vrb_cm_unpack(conn->cm_data, sizeof(conn->cm_data), &len);	/* connecting: of the peer's answer */
	vrb_cm_up(ep, ep->base.info->handle ? NULL : data, ep->base.info->handle ? 0 : len);
}

/* ---- sending ---- */

static void up_ask(struct vrb_ep *ep, struct rdma_cm_id *id, struct vrb_xrc_up_wire wire)
{
	struct vrb_ini *ini = vrb_ini_make(ep, id, VRB_INI_OLD);
	uint8_t data[VRB_CM_DATA_MAX + 1];
	struct rdma_conn_param param;

	if (!ini) {
		up_failed(ep, errno, NULL, "XRC initiator");
		return;
	}
	param = up_param(ep, wire, ini->qp->qp_num, data);
	if (rdma_connect(id, &param))
		up_failed(ep, errno, NULL, "rdma_connect");
}

/* The answer to our request. */
static void up_answered(struct vrb_ep *ep, struct rdma_cm_id *id, const struct rdma_cm_event *event)
{
	struct vrb_conn_ep *own = vrb_conn_of(ep);
	const struct rdma_conn_param *conn = &event->param.conn;
	struct vrb_xrc_up *up = vrb_xrc_ep_of(ep)->up;
	struct vrb_xrc_up_wire rep;
	int ret;

	if (ep->state != VRB_EP_CONNECTING)
		return;
	if (!up_take(conn->private_data, conn->private_data_len, &rep) || rep.tag != up->req.tag) {
		rdma_reject(id, NULL, 0);
		up_failed(ep, FI_ECONNREFUSED, event, "the answer is not that of an XRC endpoint");
		return;
	}
	vrb_xrc_ep_of(ep)->peer_srqn = rep.srqn;
	ret = vrb_ini_connect(ep, id, conn->qp_num);
	if (!ret && rdma_establish(id))
		ret = -errno;
	if (ret) {
		up_failed(ep, -ret, event, "XRC initiator");
		return;
	}
	if (!rep.reciprocal)
		memcpy(own->cm_data, (const uint8_t *) conn->private_data + DATA_AT, sizeof(own->cm_data) - DATA_AT);
	up->sends = true;
	up_connected(ep);
}

/* ---- receiving ---- */

/* True if ep may receive by the target of this number. Upstream's endpoints share an initiator even if they send to one
 * shared receive context of ours, so another endpoint there may have the target already, and nothing tells for which of
 * the two a message was. Both may have it if a message is reported in the same way for either. */
static bool up_may_join(const struct vrb_ep *ep, uint32_t tgt)
{
	const struct vrb_ep *other = ep->srx ? vrb_srx_taker(ep->srx, tgt) : NULL;
	const struct fab_ep_bound *bound = &ep->base.bound;

	return !other || (!ep->srx->names_taker && other->base.bound.rx_cq == bound->rx_cq &&
			  other->base.report.rx_selective == ep->base.report.rx_selective &&
			  other->base.bound.cntr[FAB_CNTR_RECV] == bound->cntr[FAB_CNTR_RECV] &&
			  other->base.bound.cntr[FAB_CNTR_REMOTE_WRITE] == bound->cntr[FAB_CNTR_REMOTE_WRITE]);
}

/* Accept a request. 0 or -errno. */
static int up_accept(struct vrb_ep *ep, struct rdma_cm_id *id, const struct vrb_xrc_up_wire *req)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	bool stream = id->ps == RDMA_PS_TCP;
	uint8_t data[VRB_CM_DATA_MAX + 1];
	struct rdma_conn_param param;
	int ret = 0;

	if (stream)
		x->tgt = vrb_tgt_make(ep);
	else if (up_may_join(ep, req->tgt))
		x->tgt = vrb_tgt_open(ep, req->tgt);
	else
		return -FI_ECONNABORTED;
	if (!x->tgt)
		return -errno;
	if (stream)
		ret = vrb_tgt_connect(ep, id, x->tgt, 0);
	if (ret)
		return ret;
	vrb_xrc_join(ep);
	x->peer_srqn = req->srqn;
	param = up_param(ep, (struct vrb_xrc_up_wire) {
		.reciprocal = req->reciprocal, .port = req->port, .tag = req->tag,
	}, x->tgt->qp->qp_num, data);
	if (rdma_accept(id, &param))
		return -errno;
	x->up->receives = !stream;
	return 0;
}

/* ---- the end that connects ---- */

bool vrb_xrc_up_try(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *told = &event->param.conn;

	if (ep->state != VRB_EP_CONNECTING || ep->base.info->handle || event->status != REJ_CONSUMER ||
	    vrb_xrc_is_ours(told->private_data, told->private_data_len) ||
	    vrb_conn_of(ep)->peer.sa.sa_family == FAB_AF_IB)
		return false;
	vrb_xrc_ep_of(ep)->up = calloc(1, sizeof(*vrb_xrc_ep_of(ep)->up));
	if (!vrb_xrc_ep_of(ep)->up)
		return false;
	vrb_xrc_ep_of(ep)->up->ep = ep;
	vrb_xrc_ep_of(ep)->up->req.tag = (uint32_t) fab_random64();
	VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "fi_connect over XRC: the peer does not know our handshake; asked again "
		"with upstream's\n");
	vrb_xrc_renew(ep);
	return true;
}

static int listen_at(struct vrb_ep *ep, enum rdma_port_space space, union fab_any_addr *addr, struct rdma_cm_id **id)
{
	int ret;

	if (rdma_create_id(vrb_conn_of(ep)->id->channel, id, &vrb_xrc_ep_of(ep)->up->sink, space)) {
		*id = NULL;
		return -errno;
	}
	if (!rdma_bind_addr(*id, &addr->sa) && !rdma_listen(*id, 1)) {
		fab_addr_set_port(&addr->sa, ntohs(rdma_get_src_port(*id)));
		return 0;
	}
	ret = -errno;
	rdma_destroy_id(*id);
	*id = NULL;
	return ret;
}

static void close_ports(struct vrb_xrc_up *up)
{
	for (int i = 0; i < PORTS; i++) {
		if (up->port[i])
			rdma_destroy_id(up->port[i]);
		up->port[i] = NULL;
	}
}

/* Listen to both services at one port. 0 or -errno. */
static int up_listen(struct vrb_ep *ep)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct vrb_xrc_up *up = vrb_xrc_ep_of(ep)->up;
	union fab_any_addr addr = { 0 };
	int ret = 0;

	for (int i = 0; i < PORT_TRIES; i++) {
		memcpy(&addr, rdma_get_local_addr(conn->id), fab_any_addr_len(rdma_get_local_addr(conn->id)));
		fab_addr_set_port(&addr.sa, 0);
		ret = listen_at(ep, RDMA_PS_TCP, &addr, &up->port[STREAM]);
		if (!ret)
			ret = listen_at(ep, RDMA_PS_UDP, &addr, &up->port[SIDR]);
		if (!ret)
			break;
		close_ports(up);
	}
	up->req.port = fab_addr_port(&addr.sa);
	return ret;
}

static void up_begin(struct vrb_ep *ep)
{
	int ret = up_listen(ep);

	if (ret)
		up_failed(ep, -ret, NULL, "a port for the peer's request");
	else
		up_ask(ep, vrb_conn_of(ep)->id, vrb_xrc_ep_of(ep)->up->req);
}

/* The peer's reciprocal request, or somebody else's. */
static void up_called_back(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	struct vrb_xrc_up *up = vrb_xrc_ep_of(ep)->up;
	struct vrb_xrc_up_wire req;
	int ret;

	if (!up_take(event->param.conn.private_data, event->param.conn.private_data_len, &req) || !req.reciprocal ||
	    req.tag != up->req.tag || up->told || !fab_addr_equal_host(rdma_get_peer_addr(event->id), ep->peer_sa)) {
		VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "a request that is not the peer's reciprocal one came to an XRC "
			"endpoint that is connecting: refused\n");
		up->unwanted = event->id;
		return;
	}
	up->back = event->id;
	up->told = true;
	ret = up_accept(ep, event->id, &req);
	if (!ret) {
		up_connected(ep);
		return;
	}
	up_refuse(event->id, &req);
	up_failed(ep, -ret, event, "XRC target");
}

/* ---- the end that accepts ---- */

int vrb_xrc_up_open(struct vrb_ep *ep)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct vrb_xrc_up_wire req;

	if (vrb_xrc_is_ours(conn->cm_data, sizeof(conn->cm_data)) ||
	    !up_take(conn->cm_data, sizeof(conn->cm_data), &req) || req.reciprocal)
		return 0;
	vrb_xrc_ep_of(ep)->up = calloc(1, sizeof(*vrb_xrc_ep_of(ep)->up));
	if (!vrb_xrc_ep_of(ep)->up)
		return -FI_ENOMEM;
	vrb_xrc_ep_of(ep)->up->ep = ep;
	vrb_xrc_ep_of(ep)->up->req = req;
	return 0;
}

static void up_event(struct vrb_cm_sink *sink, const struct rdma_cm_event *event);
static void up_acknowledged(struct vrb_cm_sink *sink);

/* Send the reciprocal request. */
static void up_call_back(struct vrb_ep *ep)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct vrb_xrc_up *up = vrb_xrc_ep_of(ep)->up;
	union fab_any_addr from = { 0 }, to = { 0 };

	memcpy(&from, rdma_get_local_addr(conn->id), fab_any_addr_len(rdma_get_local_addr(conn->id)));
	memcpy(&to, &conn->peer, fab_any_addr_len(&conn->peer.sa));
	fab_addr_set_port(&from.sa, 0);
	fab_addr_set_port(&to.sa, up->req.port);
	if (rdma_create_id(conn->id->channel, &up->back, &up->sink, RDMA_PS_TCP)) {
		up->back = NULL;
		up_failed(ep, errno, NULL, "rdma_create_id");
	} else if (rdma_resolve_addr(up->back, &from.sa, &to.sa, VRB_RESOLVE_MS)) {
		up_failed(ep, errno, NULL, "rdma_resolve_addr");
	}
}

int vrb_xrc_up_accept(struct vrb_ep *ep)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct vrb_xrc_up *up = vrb_xrc_ep_of(ep)->up;
	int ret = up_accept(ep, conn->id, &up->req);

	up->sink.event = up_event;
	if (ret) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_accept of a request of upstream's over XRC: %s\n", strerror(-ret));
		up_refuse(conn->id, &up->req);
		return ret;
	}
	if (up->receives)
		up_call_back(ep);
	return 0;
}

/* ---- events ---- */

/* An event that both ids have in common. */
static void up_other(struct vrb_ep *ep, struct rdma_cm_id *id, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, VRB_RESOLVE_MS))
			up_failed(ep, errno, event, "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		up_answered(ep, id, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);		/* the answer; the endpoints stay connected */
		break;
	default:
		if (event->event != RDMA_CM_EVENT_ESTABLISHED && event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT)
			vrb_cm_event(ep, event);
	}
}

void vrb_xrc_up_event(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	struct vrb_xrc_up *up = vrb_xrc_ep_of(ep)->up;

	up->sink.event = up_event;
	up->sink.acknowledged = up_acknowledged;
	if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED) {
		up_begin(ep);
	} else if (event->event == RDMA_CM_EVENT_ESTABLISHED && ep->base.info->handle) {
		up->receives = true;
		up_call_back(ep);
	} else {
		up_other(ep, vrb_conn_of(ep)->id, event);
	}
}

/* Of the ports and the reciprocal request. */
static void up_event(struct vrb_cm_sink *sink, const struct rdma_cm_event *event)
{
	struct vrb_xrc_up *up = fab_container(sink, struct vrb_xrc_up, sink);
	struct vrb_ep *ep = up->ep;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		up_called_back(ep, event);
	} else if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED) {
		up_ask(ep, up->back, (struct vrb_xrc_up_wire) {
			.reciprocal = 1, .port = ntohs(rdma_get_src_port(vrb_conn_of(ep)->id)), .tag = up->req.tag,
		});
	} else if (event->event == RDMA_CM_EVENT_ESTABLISHED && !ep->base.info->handle) {
		up->receives = true;
		up_connected(ep);
	} else {
		up_other(ep, event->id, event);
	}
}

/* Ids can be destroyed when no event of theirs is in use. */
static void up_acknowledged(struct vrb_cm_sink *sink)
{
	struct vrb_xrc_up *up = fab_container(sink, struct vrb_xrc_up, sink);

	if (up->unwanted) {
		rdma_reject(up->unwanted, NULL, 0);
		rdma_destroy_id(up->unwanted);
		up->unwanted = NULL;
	}
	if (up->told)
		close_ports(up);
}

void vrb_xrc_up_end(struct vrb_ep *ep)
{
	struct vrb_xrc_up *up = vrb_xrc_ep_of(ep)->up;

	if (!up)
		return;
	close_ports(up);
	if (up->back)
		rdma_destroy_id(up->back);
	up->back = NULL;
}
