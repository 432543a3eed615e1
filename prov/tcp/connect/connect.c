/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See connect.h. The state of a MSG endpoint consists of the states of its parts:
 *
 *   conn IDLE   new; with cm: fi_connect(), until the peer answers; with req: opened for a request, until fi_accept()
 *   conn UP     connected
 *   conn DOWN   ended, whether or not it was up before
 *
 * Events: FI_CONNECTED once, before any event about the connection's end; then FI_SHUTDOWN once, at both ends (as in
 * upstream). Or one error event in place of both. No events after fi_close() has begun.
 */
#include "tcp/connect/connect.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/sock.h"
#include "common/net/net.h"
#include "tcp/handshake/handshake.h"
#include "tcp/message/message.h"
#include "tcp/params/params.h"
#include "tcp/peer/peer.h"

/* ---- the end of the connection ---- */

static void msg_down(struct tcp_conn *conn, int err)
{
	struct tcp_ep *ep = conn->ep;

	fab_recv_flush(&ep->own_rx.recv, err ? err : FI_ECANCELED);
	if (ep->connect.connected && !(ep->detours & TCP_EP_CLOSING))
		fab_eq_write_cm(ep->base.bound.eq, FI_SHUTDOWN, &ep->base.ep_fid.fid, NULL, NULL, 0);
}

const struct tcp_conn_owner tcp_msg_conn_owner = { .down = msg_down };

/* The handshake is done: write FI_CONNECTED, then start the stream. conn owns the socket from here on. */
static void msg_up(struct tcp_ep *ep, struct tcp_link link, const struct tcp_hello *peer, const void *data, size_t len)
{
	/* the key is proved: the active side could not get here without, and the passive side has compared it */
	union fab_sockaddr ours;
	int ret = fab_eq_write_cm(ep->base.bound.eq, FI_CONNECTED, &ep->base.ep_fid.fid, NULL, data, len);

	ep->connect.connected = !ret;
	ep->conn->auth_key = ep->base.auth_key;
	tcp_link_names(&link, &ours, &ep->conn->addr);
	if (!ret)
		ret = tcp_conn_start(ep->conn, &link, peer, NULL);
	if (!ret)
		fab_stats_peer_name(ep->base.stats, ep->conn->stats, NULL, &ours.sa, 0, 0);
	if (!ret) {
		tcp_alive_start(ep);
		return;
	}
	tcp_link_close(&link);
	tcp_conn_down(ep->conn, -ret, -ret, "there was no memory or descriptor for the new connection");
}

/* ---- active side ---- */

/* The connect has failed: write one error event, and complete queued operations with the error. */
static void msg_connect_fail(struct tcp_cm *cm, int err)
{
	struct tcp_ep *ep = cm->ctx;
	char text[256];

	tcp_cm_text(cm, err, text, sizeof(text));
	/* a program may try until the peer listens; the event tells it why it is refused */
	TCP_LOG(err == FI_ECONNREFUSED ? FI_LOG_INFO : FI_LOG_WARN, FI_LOG_EP_CTRL, "%s\n", text);
	fab_eq_write_cm_err(ep->base.bound.eq, &ep->base.ep_fid.fid, err, err, NULL, 0, text);
	tcp_conn_down(ep->conn, err, err, text);
	ep->connect.cm = NULL;
	tcp_cm_free(cm);
}

static void msg_connect_refused(struct tcp_cm *cm)
{
	struct tcp_ep *ep = cm->ctx;
	char text[256];

	cm->why = "the peer rejected it";
	tcp_cm_text(cm, FI_ECONNREFUSED, text, sizeof(text));
	TCP_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "%s, with %u bytes of data\n", text, cm->data_len);
	fab_eq_write_cm_err(ep->base.bound.eq, &ep->base.ep_fid.fid, FI_ECONNREFUSED, FI_ECONNREFUSED, cm->data,
			    cm->data_len, text);
	tcp_conn_down(ep->conn, FI_ECONNREFUSED, FI_ECONNREFUSED, text);
}

static void msg_connect_done(struct tcp_cm *cm)
{
	struct tcp_ep *ep = cm->ctx;

	ep->connect.cm = NULL;
	if (cm->type == TCP_CM_NACK)
		msg_connect_refused(cm);
	else
		msg_up(ep, tcp_cm_take_sock(cm), &cm->peer, cm->data, cm->data_len);
	tcp_cm_free(cm);
}

static const struct tcp_cm_owner connect_owner = { .done = msg_connect_done, .fail = msg_connect_fail };

/* Check whether the endpoint may begin a connection. 0 or -FI_E*. */
static int msg_check_fresh(const struct tcp_ep *ep)
{
	if (ep->conn->state == TCP_CONN_UP)
		return -FI_EISCONN;
	if (ep->connect.cm)
		return -FI_EALREADY;
	if (ep->conn->state == TCP_CONN_DOWN || (ep->detours & TCP_EP_CLOSING))
		return -FI_EOPBADSTATE;
	return 0;
}

/* The common part of fi_connect() and fi_accept(). */
static int msg_prepare(struct tcp_ep *ep, const void *param, size_t paramlen)
{
	int ret = fab_cm_check_data(&tcp_prov, TCP_CM_DATA_MAX, param, paramlen);

	/* as the application would */
	return ret || ep->base.enabled ? ret : fi_enable(&ep->base.ep_fid);
}

static int msg_check_addr(const struct tcp_ep *ep, const struct sockaddr *addr)
{
	int want = ep->base.info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;

	if (addr && addr->sa_family == want && fab_addr_port(addr))
		return 0;
	TCP_WARN(FI_LOG_EP_CTRL, "fi_connect to %s: the endpoint needs an %s address with a port\n",
		 addr ? "an address of another family or without a port" : "NULL", want == AF_INET6 ? "IPv6" : "IPv4");
	return -FI_EINVAL;
}

static int msg_start_connect(struct tcp_ep *ep, const struct sockaddr *addr, const void *param, size_t paramlen)
{
	struct tcp_cm_msg msg = { .type = TCP_CM_CONNREQ, .incarnation = ep->incarnation,
				  .data = param, .data_len = paramlen,
				  .ext = TCP_EXT_MSG | (ep->base.auth_key ? TCP_EXT_AUTH : 0) };
	union fab_sockaddr remote = { 0 }, from = ep->base.name;
	int ret = msg_check_fresh(ep);

	if (ret)
		return ret;
	memcpy(&remote, addr, fab_addr_len(addr));
	if (ep->connect.bound_fd < 0)
		fab_addr_set_port(&from.sa, 0);	/* not its own: connections of one source address get a port each */
	ep->connect.cm = tcp_cm_new(ep->base.engine, &connect_owner, ep);
	if (!ep->connect.cm)
		return -FI_ENOMEM;
	ep->connect.cm->keyring.key = ep->base.auth_key;
	ep->connect.cm->shared_memory = ep->shared_memory;
	ret = tcp_cm_connect(ep->connect.cm, ep->connect.bound_fd, &from, &remote, &msg);
	if (ret) {
		tcp_cm_free(ep->connect.cm);
		ep->connect.cm = NULL;
		return ret;
	}
	ep->connect.bound_fd = -1;
	fab_stats_peer_name(ep->base.stats, ep->conn->stats, &remote.sa, NULL, 0, 0);
	tcp_conn_tell(ep->conn, FI_STATS_CONN_CONNECTING);
	return 0;
}

int tcp_msg_connect(struct fid_ep *fid, const void *addr, const void *param, size_t paramlen)
{
	struct tcp_ep *ep = tcp_ep_of(&fid->fid);
	int ret;

	ret = msg_check_addr(ep, addr);
	if (!ret)
		ret = msg_prepare(ep, param, paramlen);
	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	ret = ep->connect.req ? -FI_EOPBADSTATE : msg_start_connect(ep, addr, param, paramlen);
	fab_engine_unlock(ep->base.engine);
	return ret;
}

/* ---- passive side ---- */

static int msg_answer(struct tcp_ep *ep, const void *param, size_t paramlen)
{
	struct tcp_cm_msg msg = { .type = TCP_CM_CONNRESP, .incarnation = ep->incarnation, .ext = TCP_EXT_MSG,
				  .data = param, .data_len = paramlen };
	struct tcp_connreq *req = ep->connect.req;
	struct tcp_link link;
	int ret;

	if (!req)
		return msg_check_fresh(ep) ? msg_check_fresh(ep) : -FI_EOPBADSTATE;
	if (req->auth_key != ep->base.auth_key) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_accept: the peer has proved the authorization key of the passive "
			 "endpoint, and the endpoint has %s; open both with the same key\n",
			 ep->base.auth_key ? "another one" : "none");
		return -FI_EACCES;
	}
	ret = tcp_cm_send(req->sock.fd, &msg);
	if (ret) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_accept: the peer has closed the connection: %s\n", strerror(-ret));
		tcp_conn_down(ep->conn, -ret, -ret, "the peer closed the connection before it was accepted");
	} else {
		link = req->sock;
		req->sock = (struct tcp_link) { -1, NULL };
		msg_up(ep, link, &req->peer, NULL, 0);
	}
	ep->connect.req = NULL;
	tcp_connreq_free(req);
	return ret;
}

int tcp_msg_accept(struct fid_ep *fid, const void *param, size_t paramlen)
{
	struct tcp_ep *ep = tcp_ep_of(&fid->fid);
	int ret;

	ret = msg_prepare(ep, param, paramlen);
	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	ret = msg_answer(ep, param, paramlen);
	fab_engine_unlock(ep->base.engine);
	return ret;
}

/* ---- the end ---- */

static bool msg_drained(struct tcp_ep *ep)
{
	return (ep->conn->state == TCP_CONN_IDLE && !ep->connect.cm) || tcp_conn_drained(ep->conn);
}

int tcp_msg_shutdown(struct fid_ep *fid, uint64_t flags)
{
	struct tcp_ep *ep = tcp_ep_of(&fid->fid);
	int ret = 0;

	if (flags)
		return -FI_EINVAL;
	if (fab_engine_disown(ep->base.engine))
		return 0;		/* the connection is the parent's */
	fab_engine_lock(ep->base.engine);
	if (ep->conn->state == TCP_CONN_UP) {
		tcp_ep_drain(ep, msg_drained);
		tcp_conn_down(ep->conn, 0, 0, "the endpoint was shut down");
	} else {
		ret = -FI_ENOTCONN;
	}
	fab_engine_unlock(ep->base.engine);
	return ret;
}

int tcp_msg_getpeer(struct fid_ep *fid, void *addr, size_t *addrlen)
{
	struct tcp_ep *ep = tcp_ep_of(&fid->fid);
	union fab_sockaddr ours, remote = { 0 };

	fab_engine_lock(ep->base.engine);
	if (ep->conn->state == TCP_CONN_UP)
		tcp_conn_names(ep->conn, &ours, &remote);
	fab_engine_unlock(ep->base.engine);
	if (!fab_addr_len(&remote.sa))
		return -FI_ENOTCONN;
	return fab_name_give(&remote, addr, addrlen);
}

void tcp_msg_stop(struct tcp_ep *ep)
{
	if (ep->conn->state == TCP_CONN_UP)
		tcp_ep_drain(ep, msg_drained);
	tcp_cm_free(ep->connect.cm);
	ep->connect.cm = NULL;
	if (ep->connect.req)
		tcp_connreq_free(ep->connect.req);
	ep->connect.req = NULL;
	fab_sock_close(&ep->connect.bound_fd);
	tcp_conn_down(ep->conn, 0, 0, "the endpoint was closed");
}
