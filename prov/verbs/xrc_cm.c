/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections of XRC endpoints: one handshake of the CM, whose ids have no queue pairs, sets up both directions.
 *
 *   connect: address -> route -> an initiator (shared, or made) and a new target -> REQ
 *   accept:  the initiator's target (opened, or made), an initiator (shared, or made) -> REP
 *   CONNECT_RESPONSE: what was made at either end is connected; of a target that is not needed only the number is used
 *   -> RTU
 *
 * An endpoint waits for an initiator that another endpoint is making, but at most WAIT_NS. An endpoint that has to
 * answer a REQ does not wait for one that waits for its own answer: two processes could wait for each other.
 */
#include "verbs/xrc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "verbs/srx.h"

#define WAIT_NS		1000000000ULL

_Static_assert(VRB_XRC_AT + sizeof(struct vrb_xrc_wire) == VRB_CM_DATA_MAX + 1, "as long as a request has room for");

/* ---- private data ---- */

bool vrb_xrc_is_ours(const void *data, size_t len)
{
	uint16_t magic;

	if (!data || len < VRB_XRC_AT + sizeof(struct vrb_xrc_wire))
		return false;
	memcpy(&magic, (const uint8_t *) data + VRB_XRC_AT, sizeof(magic));
	return (*(const uint8_t *) data & VRB_XRC_OURS) && magic == htons(VRB_XRC_MAGIC);
}

/* The provider's part, which begins at `at`. False: it is of another version. */
static bool take_part(const uint8_t *at, struct vrb_xrc_wire *wire)
{
	memcpy(wire, at, sizeof(*wire));
	wire->srqn = ntohl(wire->srqn);
	wire->pair = ntohl(wire->pair);
	wire->tgt = ntohl(wire->tgt);
	wire->tag = ntohl(wire->tag);
	return ntohs(wire->magic) == VRB_XRC_MAGIC && wire->version == VRB_XRC_VERSION;
}

static bool xrc_cm_take(const void *data, size_t len, struct vrb_xrc_wire *wire)
{
	return vrb_xrc_is_ours(data, len) && take_part((const uint8_t *) data + VRB_XRC_AT, wire);
}

/* data is of vrb_cm_pack(), and has room for VRB_CM_DATA_MAX + 1 bytes. */
static void xrc_cm_give(uint8_t *data, struct vrb_xrc_wire wire)
{
	data[0] |= VRB_XRC_OURS;
	wire.magic = htons(VRB_XRC_MAGIC);
	wire.version = VRB_XRC_VERSION;
	wire.srqn = htonl(wire.srqn);
	wire.pair = htonl(wire.pair);
	wire.tgt = htonl(wire.tgt);
	wire.tag = htonl(wire.tag);
	memcpy(data + VRB_XRC_AT, &wire, sizeof(wire));
}

uint8_t vrb_xrc_refusal(const uint8_t *req, uint8_t *data)
{
	uint8_t len = vrb_xrc_up_refusal(req, data);

	if (len)
		return len;
	xrc_cm_give(data, (struct vrb_xrc_wire) { 0 });
	return VRB_CM_DATA_MAX + 1;
}

const void *vrb_xrc_unpack(const void *data, uint8_t len, size_t *cnt)
{
	const uint8_t *bytes = data;
	uint8_t ahead = sizeof(struct vrb_xrc_up_wire);

	if (vrb_xrc_is_ours(data, len)) {
		*cnt = bytes[0] & ~VRB_XRC_OURS;
		*cnt = *cnt <= VRB_XRC_DATA_MAX ? *cnt : 0;
		return *cnt ? bytes + 1 : NULL;
	}
	if (len <= ahead || bytes[0] != VRB_XRC_UP_VERSION)
		return vrb_cm_unpack(data, len, cnt);
	return vrb_cm_unpack(bytes + ahead, len - ahead, cnt);
}

/* The parameters of a REQ or REP. data has room for VRB_CM_DATA_MAX + 1 bytes: the application's data, and the
 * provider's part after it. */
static struct rdma_conn_param xrc_conn_param(struct vrb_ep *ep, uint8_t *data)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	bool shared = x->ini->state == VRB_INI_READY;
	struct rdma_conn_param param = vrb_cm_param(ep);

	memcpy(data, x->conn.cm_data, VRB_XRC_AT);
	xrc_cm_give(data, (struct vrb_xrc_wire) {
		.flags = (shared ? VRB_XRC_SHARED : 0) | (ep->srx ? VRB_XRC_SRX : 0), .srqn = x->srqn,
		.tgt = x->tgt->qp->qp_num,
		.pair = shared ? x->ini->tgt : x->ini->qp->qp_num, .tag = vrb_xrc_of(ep)->tag,
	});
	param.private_data = data;
	param.private_data_len = VRB_CM_DATA_MAX + 1;
	param.qp_num = (x->number ? x->number : x->tgt)->qp->qp_num;
	param.srq = 1;
	return param;
}

static int data_fits(const struct vrb_ep *ep)
{
	const struct vrb_conn_ep *conn = vrb_conn_of(ep);

	if (conn->cm_data[0] <= VRB_XRC_DATA_MAX)
		return 0;
	VRB_WARN(FI_LOG_EP_CTRL, "%u bytes of connection data: over XRC at most %d can be sent (FI_OPT_CM_DATA_SIZE)\n",
		 conn->cm_data[0], VRB_XRC_DATA_MAX);
	return -FI_EINVAL;
}

/* Refuse a request, so that an end that knows our handshake does not take this one for upstream's. */
static void refuse(struct vrb_ep *ep, uint8_t flags)
{
	uint8_t data[VRB_CM_DATA_MAX + 1] = { 0 };

	xrc_cm_give(data, (struct vrb_xrc_wire) { .flags = flags });
	rdma_reject(vrb_conn_of(ep)->id, data, sizeof(data));
}

/* ---- initiators ---- */

static bool is_maker(const struct vrb_ep *ep)
{
	const struct vrb_ini *ini = vrb_xrc_ep_of(ep)->ini;

	return ini && ini->maker == ep && ini->state < VRB_INI_READY;
}

void vrb_xrc_give_up(struct vrb_ep *ep, int err, const struct rdma_cm_event *event, const char *step)
{
	if (is_maker(ep))
		vrb_ini_settle(vrb_xrc_ep_of(ep)->ini, VRB_INI_OLD);
	vrb_cm_refused(ep, err ? err : FI_ENOMEM, event, step);
}

/*
 * Find or make an initiator. tag: the peer's, if this answers a REQ. 0; -FI_EINPROGRESS: the timer will continue; or
 * -errno.
 */
static int xrc_cm_pick(struct vrb_ep *ep, const uint32_t *tag, bool may_wait)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	struct vrb_ini *ini = x->again ? NULL : vrb_ini_find(ep, tag);

	if (ini && ini->state == VRB_INI_READY) {
		vrb_ini_use(ep, ini);
		return 0;
	}
	if (ini && may_wait && !(tag && ini->state == VRB_INI_CONNECTING)) {
		fab_list_add_tail(&ini->waiters, &x->wait);
		fab_timer_start(ep->base.engine, &x->timer, fab_now_ns() + WAIT_NS);
		return -FI_EINPROGRESS;
	}
	ini = vrb_ini_make(ep, x->conn.id, tag ? VRB_INI_ACCEPTING : VRB_INI_CONNECTING);
	if (!ini)
		return -errno;
	if (tag)
		ini->tag = *tag;
	return 0;
}

/* ---- the active side ---- */

int vrb_xrc_connect(struct vrb_ep *ep)
{
	int ret = data_fits(ep);

	return ret ? ret : vrb_id_connect(ep);
}

static void xrc_cm_ask(struct vrb_ep *ep, bool may_wait)
{
	uint8_t data[VRB_CM_DATA_MAX + 1];
	struct rdma_conn_param param;
	int ret = xrc_cm_pick(ep, NULL, may_wait);

	if (ret == -FI_EINPROGRESS)
		return;
	if (!ret) {
		vrb_xrc_ep_of(ep)->tgt = vrb_tgt_make(ep);
		ret = vrb_xrc_ep_of(ep)->tgt ? 0 : -errno;
	}
	if (ret) {
		vrb_xrc_give_up(ep, -ret, NULL, "XRC queue pairs");
		return;
	}
	param = xrc_conn_param(ep, data);
	if (vrb_cm_ask(ep, &param))
		vrb_xrc_give_up(ep, errno, NULL, "rdma_connect");
}

bool vrb_xrc_is_taken(const struct vrb_ep *ep, uint32_t qpn)
{
	return ep->srx && vrb_srx_taker(ep->srx, qpn);
}

/* What the target has taken for an endpoint that is gone is reported first. */
void vrb_xrc_join(struct vrb_ep *ep)
{
	if (!ep->srx)
		return;
	vrb_hw_cq_poll(ep->srx->ep.hw_cq);
	vrb_srx_join(ep, vrb_xrc_ep_of(ep)->tgt->qp->qp_num);
}

/* Keep the target that this end needs: the one to which the peer's initiator is connected already, or the new one. */
static int settle_target(struct vrb_ep *ep, const struct vrb_xrc_wire *rep)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);

	if (!(rep->flags & VRB_XRC_SHARED))
		return vrb_tgt_connect(ep, x->conn.id, x->tgt, rep->pair);
	x->number = x->tgt;
	x->tgt = vrb_xrc_is_taken(ep, rep->pair) ? NULL : vrb_tgt_open(ep, rep->pair);
	return x->tgt ? 0 : -FI_ECONNABORTED;
}

static void on_response(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	struct vrb_xrc_wire rep;
	bool made = is_maker(ep);
	int ret = 0;

	if (ep->state != VRB_EP_CONNECTING)
		return;
	if (!xrc_cm_take(event->param.conn.private_data, event->param.conn.private_data_len, &rep)) {
		rdma_reject(x->conn.id, NULL, 0);
		vrb_xrc_give_up(ep, FI_ECONNREFUSED, event, "the peer is not an XRC endpoint of this provider");
		return;
	}
	x->peer_srqn = rep.srqn;
	x->peer_shares = rep.flags & VRB_XRC_SRX;
	if (made) {
		ret = vrb_ini_connect(ep, x->conn.id, rep.tgt);
		x->ini->tag = rep.tag;
	}
	if (!ret)
		ret = settle_target(ep, &rep);
	if (!ret)
		vrb_xrc_join(ep);
	if (!ret && rdma_establish(x->conn.id))
		ret = -errno;
	if (ret) {
		rdma_reject(x->conn.id, NULL, 0);
		vrb_xrc_give_up(ep, -ret, event, "XRC queue pairs");
		return;
	}
	if (made)
		vrb_ini_settle(x->ini, VRB_INI_READY);
	vrb_cm_connected(ep, event);
}

/* True if the peer cannot open the target to which the initiator is connected, and asks for a new attempt with a new
 * initiator. The id is in use by this event, so the attempt is made a little later. */
static bool is_asked_to_renew(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	struct vrb_xrc_wire rej;

	if (ep->state != VRB_EP_CONNECTING || x->again ||
	    !xrc_cm_take(event->param.conn.private_data, event->param.conn.private_data_len, &rej) ||
	    !(rej.flags & VRB_XRC_FRESH))
		return false;
	if (is_maker(ep))
		return false;
	x->again = true;
	vrb_xrc_renew(ep);
	return true;
}

void vrb_xrc_drop_targets(struct vrb_ep *ep)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);

	if (x->tgt)
		vrb_tgt_put(ep, x->tgt);
	if (x->number)
		vrb_tgt_put(ep, x->number);
	x->tgt = x->number = NULL;
}

void vrb_xrc_renew(struct vrb_ep *ep)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);

	vrb_ini_leave(ep);
	vrb_xrc_drop_targets(ep);
	x->renew = true;
	fab_timer_start(ep->base.engine, &x->timer, fab_now_ns());
}

static void ask_again(struct vrb_ep *ep)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	union fab_any_addr from = { 0 };
	struct rdma_cm_id *id;

	memcpy(&from, rdma_get_local_addr(conn->id), fab_any_addr_len(rdma_get_local_addr(conn->id)));
	fab_addr_set_port(&from.sa, 0);
	if (rdma_create_id(conn->id->channel, &id, &conn->sink, vrb_port_space(&conn->peer.sa))) {
		vrb_xrc_give_up(ep, errno, NULL, "rdma_create_id");
		return;
	}
	rdma_destroy_id(conn->id);
	conn->id = id;
	if (rdma_resolve_addr(conn->id, &from.sa, &conn->peer.sa, VRB_RESOLVE_MS))
		vrb_xrc_give_up(ep, errno, NULL, "rdma_resolve_addr");
}

/* ---- the passive side ---- */

static void refuse_target(struct vrb_ep *ep)
{
	refuse(ep, VRB_XRC_FRESH);
	VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "fi_accept over XRC: the target of the peer's initiator serves another "
		"endpoint of the shared receive context, is in another XRC domain than this process "
		"(FI_VERBS_XRCD_FILENAME), or was just destroyed; the peer will ask again with a new initiator\n");
}

/* Answer a REQ. 0, -FI_EINPROGRESS, -errno. */
static int xrc_cm_answer(struct vrb_ep *ep, bool may_wait)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	uint8_t data[VRB_CM_DATA_MAX + 1];
	struct rdma_conn_param param;
	struct vrb_xrc_wire req;
	int ret;

	take_part(x->conn.cm_data + VRB_XRC_AT, &req);
	x->peer_srqn = req.srqn;
	x->peer_shares = req.flags & VRB_XRC_SRX;
	ret = xrc_cm_pick(ep, &req.tag, may_wait);
	if (ret)
		return ret;
	if (is_maker(ep))
		ret = vrb_ini_connect(ep, x->conn.id, req.tgt);
	if (ret)
		return ret;
	param = xrc_conn_param(ep, data);
	return rdma_accept(x->conn.id, &param) ? -errno : 0;
}

/* Get the target that the peer's initiator has or will have, and a number for the CM's messages. 0; -FI_ECONNABORTED:
 * this process cannot have the target of that initiator; or -errno. */
static int answer_target(struct vrb_ep *ep, const struct vrb_xrc_wire *req)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);

	if (!(req->flags & VRB_XRC_SHARED)) {
		x->tgt = vrb_tgt_make(ep);
		return x->tgt ? vrb_tgt_connect(ep, x->conn.id, x->tgt, req->pair) : -errno;
	}
	if (!vrb_xrc_is_taken(ep, req->pair))
		x->tgt = vrb_tgt_open(ep, req->pair);
	if (!x->tgt)
		return -FI_ECONNABORTED;
	x->number = vrb_tgt_make(ep);
	return x->number ? 0 : -errno;
}

int vrb_xrc_accept(struct vrb_ep *ep)
{
	struct vrb_xrc_ep *x = vrb_xrc_ep_of(ep);
	struct vrb_xrc_wire req;
	int ret = data_fits(ep);

	if (ret)
		return ret;
	if (x->up)
		return vrb_xrc_up_accept(ep);
	if (!take_part(x->conn.cm_data + VRB_XRC_AT, &req)) {	/* fi_accept's data is before it */
		VRB_WARN(FI_LOG_EP_CTRL,
			 "fi_accept over XRC: the peer is no XRC endpoint of this provider, nor of upstream's\n");
		refuse(ep, 0);
		return -FI_EPROTO;
	}
	ret = answer_target(ep, &req);
	if (ret == -FI_ECONNABORTED) {
		refuse_target(ep);
		return ret;
	}
	if (!ret) {
		vrb_xrc_join(ep);
		ret = xrc_cm_answer(ep, true);
	}
	if (!ret || ret == -FI_EINPROGRESS)
		return 0;
	refuse(ep, 0);
	if (is_maker(ep))
		vrb_ini_settle(x->ini, VRB_INI_OLD);
	return ret;
}

/* ---- events and timer ---- */

void vrb_xrc_timer(struct fab_timer *timer)
{
	struct vrb_xrc_ep *x = fab_container(timer, struct vrb_xrc_ep, timer);
	bool told = fab_list_empty(&x->wait);	/* false: the endpoint is still waiting, and its time is over */
	struct vrb_ep *ep = &x->conn.ep;
	int ret;

	fab_list_remove(&x->wait);
	fab_list_init(&x->wait);
	if (ep->state != VRB_EP_CONNECTING)
		return;
	if (x->renew) {
		x->renew = false;
		ask_again(ep);
	} else if (!ep->base.info->handle) {
		xrc_cm_ask(ep, told);
	} else {
		ret = xrc_cm_answer(ep, told);
		if (ret && ret != -FI_EINPROGRESS) {
			refuse(ep, 0);
			vrb_xrc_give_up(ep, -ret, NULL, "accepting");
		}
	}
}

void vrb_xrc_event(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	if (vrb_xrc_ep_of(ep)->up) {
		vrb_xrc_up_event(ep, event);
		return;
	}
	switch (event->event) {
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (ep->state == VRB_EP_CONNECTING)
			xrc_cm_ask(ep, true);
		return;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		on_response(ep, event);
		return;
	case RDMA_CM_EVENT_REJECTED:
		if (is_asked_to_renew(ep, event) || vrb_xrc_up_try(ep, event))
			return;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (is_maker(ep))
			vrb_ini_settle(vrb_xrc_ep_of(ep)->ini, VRB_INI_READY);
		break;
	default:
		break;
	}
	vrb_cm_event(ep, event);
	if (ep->state == VRB_EP_DOWN && is_maker(ep))
		vrb_ini_settle(vrb_xrc_ep_of(ep)->ini, VRB_INI_OLD);
}
