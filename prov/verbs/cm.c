/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections of endpoints, over librdmacm. Each event of the endpoint's id has a handler, which runs on the
 * thread that drives the engine, with its lock held.
 *
 *   connect: resolve the address -> resolve the route -> connect -> ESTABLISHED, or refused
 *   accept:  ESTABLISHED
 *
 * The private data of a CM message always arrives at its full length, so its first byte is the length of the
 * application's part. Upstream does the same, and the two can talk. A request between InfiniBand addresses has a struct
 * vrb_ib_ahead before that, where librdmacm has its own header for IP addresses.
 */
#include "verbs/kind.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "common/net/net.h"
#include "common/ops/ops.h"

#define TELL_NS		1000000000ULL	/* between two lines about changes of addresses */
#define RESOLVE_AGAIN	3		/* questions for an address or route without an answer that are asked again */
#define RNR_FOR_EVER	7
#define RETRIES		7

/* Why a request was rejected, as InfiniBand numbers it (enum ib_cm_rej_reason). iWARP has an errno instead. */
enum {
	REJ_NO_RESOURCES = 3,
	REJ_TIMEOUT = 4,
	REJ_INVALID_SERVICE_ID = 8,
	REJ_STALE_CONN = 10,
	REJ_CONSUMER_DEFINED = 28,
};

int vrb_cm_pack(uint8_t *to, const void *param, size_t paramlen)
{
	int ret = fab_cm_check_data(&vrb_prov, VRB_CM_DATA_MAX, param, paramlen);

	if (ret)
		return ret;
	to[0] = (uint8_t) paramlen;
	if (paramlen)
		memcpy(to + 1, param, paramlen);
	return 0;
}

const void *vrb_cm_unpack(const void *data, uint8_t len, size_t *cnt)
{
	const uint8_t *bytes = data;

	*cnt = len && bytes[0] < len && bytes[0] <= VRB_CM_DATA_MAX ? bytes[0] : 0;
	return *cnt ? bytes + 1 : NULL;
}

const void *vrb_cm_data(const struct vrb_kind *kind, const void *data, uint8_t len, size_t *cnt)
{
	return kind && kind->unpack ? kind->unpack(data, len, cnt) : vrb_cm_unpack(data, len, cnt);
}

struct rdma_conn_param vrb_cm_param(const struct vrb_ep *ep)
{
	const struct vrb_conn_ep *conn = vrb_conn_of(ep);

	return (struct rdma_conn_param) {
		.private_data = conn->cm_data, .private_data_len = conn->cm_data[0] + 1,
		/* as much as both devices can: librdmacm finds out */
		.responder_resources = RDMA_MAX_RESP_RES, .initiator_depth = RDMA_MAX_INIT_DEPTH,
		.flow_control = 1, .retry_count = RETRIES, .rnr_retry_count = RNR_FOR_EVER,
	};
}

int vrb_cm_ask(struct vrb_ep *ep, struct rdma_conn_param *param)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct {
		struct vrb_ib_ahead ahead;
		uint8_t data[VRB_CM_DATA_MAX + 1];
	} req = { 0 };
	union fab_any_addr src;
	int ret;

	if (conn->peer.sa.sa_family == FAB_AF_IB) {
		memcpy(&src.sib, rdma_get_local_addr(conn->id), sizeof(src.sib));
		memcpy(req.ahead.src_gid, src.sib.sib_gid, sizeof(req.ahead.src_gid));
		memcpy(req.ahead.dest_gid, conn->peer.sib.sib_gid, sizeof(req.ahead.dest_gid));
		memcpy(req.data, param->private_data, param->private_data_len);
		param->private_data = &req;
		param->private_data_len = (uint8_t) (sizeof(req.ahead) + param->private_data_len);
	}
	ret = rdma_connect(conn->id, param);
	conn->req_sent = !ret;
	return ret;
}

/* ---- events for the application ---- */

/* The reason for which a request was rejected. */
static const char *reason(const struct rdma_cm_event *event)
{
	switch (event->status) {
	case REJ_NO_RESOURCES:
		return "the peer has no resources left for it";
	case REJ_TIMEOUT:
		return "the peer waited too long for the end of the handshake";
	case REJ_INVALID_SERVICE_ID:
		return "nobody listens there";
	case REJ_STALE_CONN:
		return "the peer still had an older connection with a queue pair of this number, and ends it now; "
		       "connect again with a new endpoint";
	case REJ_CONSUMER_DEFINED:
		return "the peer's program rejected it";
	default:
		return "rejected";
	}
}

/* An attempt to connect has failed. */
void vrb_cm_refused(struct vrb_ep *ep, int err, const struct rdma_cm_event *event, const char *step)
{
	const struct vrb_device *dev = vrb_domain_of(ep)->dev;
	const void *data = NULL;
	size_t len = 0;
	char peer[FAB_ADDR_STRLEN], text[FAB_ADDR_STRLEN + 192];

	if (event && event->event == RDMA_CM_EVENT_REJECTED) {
		data = vrb_cm_data(ep->kind, event->param.conn.private_data, event->param.conn.private_data_len, &len);
		step = reason(event);
	}
	fab_addr_to_str(ep->peer_sa, peer, sizeof(peer));
	snprintf(text, sizeof(text), "%s, port %u: no connection %s %s: %s: %s", dev->name, dev->port_num,
		 ep->base.info->handle ? "from" : "to", peer, step, fi_strerror(err));
	VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "%s (%d)\n", text, event ? event->status : 0);
	ep->state = VRB_EP_DOWN;
	vrb_survey_ended(ep, err);
	fab_eq_write_cm_err(ep->base.bound.eq, &ep->base.ep_fid.fid, err, event ? event->status : err, data, len, text);
}

void vrb_cm_up(struct vrb_ep *ep, const void *data, size_t len)
{
	ep->state = VRB_EP_CONNECTED;
	ep->last_due = ep->qp->srq;
	vrb_survey_connected(ep);
	fab_eq_write_cm(ep->base.bound.eq, FI_CONNECTED, &ep->base.ep_fid.fid, NULL, data, len);
}

void vrb_cm_connected(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	const void *data = NULL;
	size_t len = 0;

	if (event)
		data = vrb_cm_data(ep->kind, event->param.conn.private_data, event->param.conn.private_data_len, &len);
	vrb_cm_up(ep, data, len);
}

/* Handle the end of a connection, once. The queue pair goes into the error state, which flushes outstanding
 * requests. */
static void ended(struct vrb_ep *ep)
{
	if (ep->state == VRB_EP_CONNECTED && ep->kind->disconnect)
		ep->kind->disconnect(ep);
	ep->state = VRB_EP_DOWN;
	vrb_survey_ended(ep, ep->end_err);
	if (ep->shutdown_told || !ep->base.bound.eq)
		return;
	ep->shutdown_told = true;
	fab_eq_write_cm(ep->base.bound.eq, FI_SHUTDOWN, &ep->base.ep_fid.fid, NULL, NULL, 0);
}

void vrb_cm_lost(struct vrb_ep *ep, int err, const char *why)
{
	if (ep->state == VRB_EP_CONNECTING)
		vrb_cm_refused(ep, err, NULL, why);
	else
		ended(ep);
}

/* The peer's last word may be lost, and comes again after seconds. */
void vrb_cm_notify(struct vrb_ep *ep)
{
	if (ep->state == VRB_EP_CONNECTING && ep->base.info->handle &&
	    rdma_notify(vrb_conn_of(ep)->id, IBV_EVENT_COMM_EST))
		VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "rdma_notify on %s: %s\n", vrb_domain_of(ep)->dev->name,
			strerror(errno));
}

void vrb_cm_silent(struct vrb_ep *ep, int err, const char *why)
{
	char peer[FAB_ADDR_STRLEN];

	if (ep->state != VRB_EP_CONNECTED)
		return;
	fab_addr_to_str(ep->peer_sa, peer, sizeof(peer));
	VRB_WARN(FI_LOG_EP_CTRL, "%s, port %u: the connection to %s ends: %s\n", vrb_domain_of(ep)->dev->name,
		 vrb_domain_of(ep)->dev->port_num, peer, why);
	ep->end_err = err;
	ep->end_why = why;
	ended(ep);
}

/* ---- events ---- */

static void on_addr(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	if (rdma_resolve_route(vrb_conn_of(ep)->id, VRB_RESOLVE_MS))
		vrb_cm_refused(ep, errno, event, "rdma_resolve_route");
}

static void on_route(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	struct rdma_conn_param param = vrb_cm_param(ep);

	conn->asked = !vrb_cm_ask(ep, &param);
	if (!conn->asked)
		vrb_cm_refused(ep, errno, event, "rdma_connect");
}

/* The error of an attempt that has failed. A status is a negative errno or a reason code of the CM; iWARP reports a
 * refusal as ECONNRESET. Another attempt may succeed after a stale connection, and that is no refusal. */
static int error_of(const struct rdma_cm_event *event)
{
	if (event->event != RDMA_CM_EVENT_REJECTED)
		return event->status < 0 ? -event->status : FI_EHOSTUNREACH;
	return event->status == REJ_STALE_CONN ? FI_ECONNRESET : FI_ECONNREFUSED;
}

static void on_error(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	int err = error_of(event);

	if (ep->state == VRB_EP_CONNECTING)
		vrb_cm_refused(ep, err, event, rdma_event_str(event->event));
}

/* A kernel also says so of a connection over RoCE, when the hardware address behind the peer's IP address is another
 * one (Linux 6.0). The queue pair keeps the old one, which may lead nowhere. */
static void on_unreachable(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	if (ep->state == VRB_EP_CONNECTED)
		vrb_alive_ask(ep);
	else
		on_error(ep, event);
}

/* There is no address or route. If that is for lack of an answer, question or answer may have been lost: kernels before
 * 5.13 ask the subnet manager once. */
static void on_unresolved(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);
	bool again = ep->state == VRB_EP_CONNECTING && event->status == -ETIMEDOUT &&
		     conn->resolved_again++ < RESOLVE_AGAIN;

	if (again && event->event == RDMA_CM_EVENT_ROUTE_ERROR)
		again = !rdma_resolve_route(conn->id, VRB_RESOLVE_MS);
	else if (again)
		again = !rdma_resolve_addr(conn->id, NULL, &conn->peer.sa, VRB_RESOLVE_MS);
	if (!again)
		on_error(ep, event);
}

static void on_established(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	if (ep->state == VRB_EP_CONNECTING)
		vrb_cm_connected(ep, event);
}

static void on_disconnected(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	if (ep->state == VRB_EP_CONNECTING && !ep->base.info->handle) {
		vrb_cm_refused(ep, FI_ECONNABORTED, event, "the peer ended the connection before it was established");
		return;
	}
	if (ep->state == VRB_EP_CONNECTING)
		vrb_cm_connected(ep, NULL);	/* it was established, but that message was lost */
	if (ep->state == VRB_EP_CONNECTED || ep->local_end)
		ended(ep);
}

static void on_removal(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	(void) event;
	VRB_WARN(FI_LOG_EP_CTRL, "device %s is being removed\n", vrb_domain_of(ep)->dev->name);
	vrb_hw_cq_removed(ep->hw_cq, FI_ENODEV, "the device is being removed");
}

void vrb_cm_address_changed(const char *device)
{
	static _Atomic uint64_t told_ns;	/* each id of a device gets an event: one line tells of all */
	uint64_t now = fab_now_ns(), before = atomic_load(&told_ns);

	if ((before && now - before < TELL_NS) || !atomic_compare_exchange_strong(&told_ns, &before, now))
		return;
	VRB_WARN(FI_LOG_EP_CTRL, "device %s: the hardware address behind an IP address has changed, as when a bonded "
		 "interface fails over; connections and listeners go on\n", device);
}

static void on_address_change(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	(void) event;
	vrb_cm_address_changed(vrb_domain_of(ep)->dev->name);
}

static void (*const handlers[])(struct vrb_ep *ep, const struct rdma_cm_event *event) = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = on_addr,
	[RDMA_CM_EVENT_ADDR_ERROR] = on_unresolved,
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = on_route,
	[RDMA_CM_EVENT_ROUTE_ERROR] = on_unresolved,
	[RDMA_CM_EVENT_CONNECT_ERROR] = on_error,
	[RDMA_CM_EVENT_UNREACHABLE] = on_unreachable,
	[RDMA_CM_EVENT_REJECTED] = on_error,
	[RDMA_CM_EVENT_ESTABLISHED] = on_established,
	[RDMA_CM_EVENT_DISCONNECTED] = on_disconnected,
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = on_removal,
	[RDMA_CM_EVENT_ADDR_CHANGE] = on_address_change,
};

void vrb_cm_event(struct vrb_ep *ep, const struct rdma_cm_event *event)
{
	if (event->event < fab_countof(handlers) && handlers[event->event])
		handlers[event->event](ep, event);
}

void vrb_cm_sink_event(struct vrb_cm_sink *sink, const struct rdma_cm_event *event)
{
	struct vrb_ep *ep = &fab_container(sink, struct vrb_conn_ep, sink)->ep;

	ep->kind->event(ep, event);
}

/* ---- calls ---- */

static int cm_begin(struct vrb_ep *ep, const void *param, size_t paramlen)
{
	int ret = vrb_cm_pack(vrb_conn_of(ep)->cm_data, param, paramlen);

	if (!ret)
		ret = vrb_ep_enable(ep);
	if (!ret && ep->state != VRB_EP_IDLE) {
		VRB_WARN(FI_LOG_EP_CTRL, "the endpoint has already connected or accepted; open a new one\n");
		ret = ep->state == VRB_EP_CONNECTED ? -FI_EISCONN : -FI_EOPBADSTATE;
	}
	return ret;
}

static int cm_connect(struct fid_ep *fid, const void *addr, const void *param, size_t paramlen)
{
	struct vrb_ep *ep = vrb_ep_of(&fid->fid);
	union fab_any_addr dest;
	int ret;

	if (!addr) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_connect: addr is NULL; pass the address of the peer\n");
		return -FI_EINVAL;
	}
	ret = fab_any_name_take(&vrb_prov, &dest, ep->base.info, addr, fab_any_addr_len(addr));
	if (!ret)
		ret = cm_begin(ep, param, paramlen);
	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	vrb_conn_of(ep)->peer = dest;
	ep->peer_sa = &vrb_conn_of(ep)->peer.sa;
	ep->state = VRB_EP_CONNECTING;
	vrb_survey_connecting(ep);
	ret = ep->kind->connect(ep);
	if (ret) {
		ep->state = VRB_EP_IDLE;
		vrb_survey_ended(ep, -ret);
	}
	fab_engine_unlock(ep->base.engine);
	return ret;
}

static int cm_accept(struct fid_ep *fid, const void *param, size_t paramlen)
{
	struct vrb_ep *ep = vrb_ep_of(&fid->fid);
	int ret;

	if (!ep->base.info->handle) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_accept: the endpoint was not opened with the info of an FI_CONNREQ\n");
		return -FI_EINVAL;
	}
	ret = cm_begin(ep, param, paramlen);
	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	ep->state = VRB_EP_CONNECTING;
	vrb_survey_connecting(ep);
	ret = ep->kind->accept(ep);
	if (ret) {
		ep->state = VRB_EP_DOWN;
		vrb_survey_ended(ep, -ret);
	}
	fab_engine_unlock(ep->base.engine);
	return ret;
}

static int cm_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct vrb_ep *ep = vrb_ep_of(&fid->fid);
	int ret = 0;

	if (flags)
		return -FI_EBADFLAGS;
	fab_engine_lock(ep->base.engine);
	if (ep->state != VRB_EP_CONNECTED) {
		ret = -FI_ENOTCONN;
	} else {
		ep->local_end = true;
		ended(ep);
	}
	fab_engine_unlock(ep->base.engine);
	return ret;
}

static int cm_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	struct vrb_ep *ep = vrb_ep_of(&fid->fid);

	return ep->state == VRB_EP_CONNECTED ? fab_name_give(ep->peer_sa, addr, addrlen) : -FI_ENOTCONN;
}

static int cm_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct vrb_ep *ep = vrb_ep_of(fid);

	return fab_name_give(rdma_get_local_addr(vrb_conn_of(ep)->id), addr, addrlen);
}

struct fi_ops_cm vrb_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.getname = cm_getname,
	.getpeer = cm_getpeer,
	.connect = cm_connect,
	.accept = cm_accept,
	.shutdown = cm_shutdown,
};

void vrb_cm_fill_ops(void)
{
	FAB_OPS_FILL(&vrb_cm_ops);
}
