/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See cm.h. Reads exactly one CM message at a time and no byte more, since data frames may follow at once; but nothing
 * follows a request before its answer, so this is read in one call. It accepts a message in any number of pieces. It
 * sends each message in one call, as upstream cannot put pieces together.
 *
 * Deadlines: connecting, and the request on an accepted connection, have tcp_params.connect_timeout_ms. An answer may
 * take longer, as the peer may be busy: reply_timeout_ms, with a log message when it is late. If the peer dies
 * meanwhile, keepalive or a reset by its kernel ends the exchange.
 */
#include "tcp/handshake/cm.h"

#include <assert.h>
#include <byteswap.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "base/strbuf.h"
#include "common/net/net.h"
#include "tcp/capture/capture.h"
#include "tcp/sock/sock.h"
#include "tcp/params/params.h"

#define HDR_LEN		sizeof(struct tcp_cm_hdr)
#define MS		1000000ULL	/* ns */

/* Used by an assertion only. */
__attribute__((unused)) static const uint64_t cm_next[TCP_CM_STATE_MAX] = {
	[TCP_CM_IDLE]       = FAB_BIT(TCP_CM_CONNECTING) | FAB_BIT(TCP_CM_REPLY) | FAB_BIT(TCP_CM_REQUEST) |
			      FAB_BIT(TCP_CM_DONE),
	[TCP_CM_CONNECTING] = FAB_BIT(TCP_CM_REPLY) | FAB_BIT(TCP_CM_DONE),
	[TCP_CM_REPLY]      = FAB_BIT(TCP_CM_CONNECTING) | FAB_BIT(TCP_CM_RINGS) | FAB_BIT(TCP_CM_DONE),
	[TCP_CM_RINGS]      = FAB_BIT(TCP_CM_DONE),
	[TCP_CM_REQUEST]    = FAB_BIT(TCP_CM_PROOFS) | FAB_BIT(TCP_CM_DONE),
	[TCP_CM_PROOFS]     = FAB_BIT(TCP_CM_DONE),
};

static const char *const cm_state_name[TCP_CM_STATE_MAX] = {
	[TCP_CM_IDLE] = "idle",
	[TCP_CM_CONNECTING] = "connecting",
	[TCP_CM_REPLY] = "waiting for the answer",
	[TCP_CM_RINGS] = "waiting for the answer about rings",
	[TCP_CM_REQUEST] = "waiting for the request",
	[TCP_CM_PROOFS] = "waiting for the proof of an authorization key",
	[TCP_CM_DONE] = "done",
};

/* All changes of cm->state are made here. */
static void cm_move(struct tcp_cm *cm, enum tcp_cm_state state)
{
	assert(cm_next[cm->state] & FAB_BIT(state));
	TCP_LOG(FI_LOG_DEBUG, FI_LOG_EP_CTRL, "handshake %p: %s -> %s\n", (void *) cm,
		cm_state_name[cm->state], cm_state_name[state]);
	if (cm->state == TCP_CM_REPLY)
		cm->reply_ns += fab_now_ns() - cm->since_ns;
	cm->state = state;
	cm->since_ns = fab_now_ns();
}

static void cm_arm(struct tcp_cm *cm, int timeout_ms)
{
	fab_timer_start(cm->engine, &cm->timer, cm->since_ns + timeout_ms * MS);
}

/* Its last state. The socket stays open, and in the engine. */
static void cm_finish(struct tcp_cm *cm)
{
	cm_move(cm, TCP_CM_DONE);
	fab_timer_stop(&cm->timer);
}

static void cm_fail(struct tcp_cm *cm, int err, const char *why)
{
	cm_finish(cm);
	fab_source_del(&cm->src);
	cm->why = why;
	cm->owner->fail(cm, err);
}

/* ---- FI_CAPTURE ---- */

/* Bytes of the exchange were sent (out) or received. */
static void cm_capture(const struct tcp_cm *cm, bool out, const void *buf, size_t len)
{
	struct tcp_capture_stream stream = { .local = cm->sock.local, .connects = cm->state != TCP_CM_REQUEST };

	if (!tcp_capture_on())
		return;
	tcp_link_names(&cm->sock, &stream.ours, &stream.theirs);
	tcp_capture_begin(cm->sock.fd, &stream);
	tcp_capture_put(cm->sock.fd, out, &(struct iovec) { (void *) buf, len }, len);
}

/* ---- the message ---- */

size_t tcp_cm_encode(const struct tcp_cm_msg *msg, uint8_t *buf)
{
	struct tcp_cm_hdr hdr = {
		.version = TCP_CM_VERSION,
		.type = msg->type,
		.seg_size = htobe16(msg->data_len),
		.conn_data = TCP_CM_CONN_DATA,
	};

	if (msg->incarnation) {
		hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_AMO | TCP_EXT_TAMO | TCP_EXT_COMMIT |
				  TCP_EXT_RIOV | TCP_EXT_SHORT | TCP_EXT_NAK | TCP_EXT_DIRECT | msg->ext);
		hdr.incarnation = htobe64(msg->incarnation);
		hdr.eager_max = htobe32(tcp_params.eager_max);
		hdr.credit = htobe32(tcp_params.credit);
	}
	if (msg->refusal) {
		hdr.ext |= htobe32(TCP_EXT_MAGIC | TCP_EXT_AUTH);
		hdr.eager_max = htobe32(msg->refusal);
	}
	assert(msg->data_len <= TCP_CM_DATA_MAX);
	memcpy(buf, &hdr, HDR_LEN);
	if (msg->data_len)
		memcpy(buf + HDR_LEN, msg->data, msg->data_len);
	return HDR_LEN + msg->data_len;
}

void tcp_cm_decode(struct tcp_cm *cm)
{
	const struct tcp_cm_hdr *hdr = &cm->hdr;
	uint32_t ext = be32toh(hdr->ext);

	cm->type = hdr->type;
	cm->data_len = be16toh(hdr->seg_size);
	cm->peer = (struct tcp_hello) { .swap = hdr->conn_data == bswap_64(TCP_CM_CONN_DATA) };
	if ((ext & TCP_EXT_MAGIC_MASK) == TCP_EXT_MAGIC && (ext & TCP_EXT_BASE)) {
		cm->peer.ext = true;
		cm->peer.features = ext;
		if (cm->peer.swap)
			cm->peer.features &= ~(TCP_EXT_AMO | TCP_EXT_TAMO | TCP_EXT_COLL);
		cm->peer.incarnation = be64toh(hdr->incarnation);
		cm->peer.eager_max = be32toh(hdr->eager_max);
		cm->peer.credit = be32toh(hdr->credit);
	}
	cm->keyed = (ext & TCP_EXT_MAGIC_MASK) == TCP_EXT_MAGIC && (ext & TCP_EXT_AUTH);
	cm->refusal = cm->keyed && hdr->type == TCP_CM_NACK ? be32toh(hdr->eager_max) : 0;
}

/* The messages allowed in each state. auth.c checks the order of those about keys. */
static const uint64_t cm_types[TCP_CM_STATE_MAX] = {
	[TCP_CM_REPLY] = FAB_BIT(TCP_CM_CONNRESP) | FAB_BIT(TCP_CM_NACK) | FAB_BIT(TCP_CM_CHALLENGE) |
			 FAB_BIT(TCP_CM_ADMIT),
	[TCP_CM_REQUEST] = FAB_BIT(TCP_CM_CONNREQ),
	[TCP_CM_PROOFS] = FAB_BIT(TCP_CM_PROOF),
};

/* The reason why a message with this header, which was decoded, is invalid in this state, or NULL. */
static const char *cm_check(const struct tcp_cm *cm)
{
	const struct tcp_cm_hdr *hdr = &cm->hdr;

	if (hdr->version != TCP_CM_VERSION)
		return "its first byte is not this protocol's version, 3: is it libfabric's tcp at all?";
	if (cm->type > TCP_CM_ADMIT || !(cm_types[cm->state] & FAB_BIT(cm->type)))
		return cm->state == TCP_CM_REPLY ? "its answer is neither an acceptance nor a rejection" :
		       cm->state == TCP_CM_REQUEST ? "its first message is not a request" :
		       "it answered a challenge with something else than a proof";
	if (cm->data_len > TCP_CM_DATA_MAX)
		return "it announced more than 256 bytes of private data";
	/* upstream does not set it in a refusal */
	if (cm->type != TCP_CM_NACK && hdr->conn_data != TCP_CM_CONN_DATA &&
	    hdr->conn_data != bswap_64(TCP_CM_CONN_DATA))
		return "its byte order is neither little nor big endian";
	if (cm->buf_len > HDR_LEN + cm->data_len)
		return "it did not wait for the answer to its request";
	return NULL;
}

/* Read until len bytes are there, and of a request what there is. True: they are; false: not yet, or failed. */
static bool cm_read(struct tcp_cm *cm, size_t len)
{
	size_t most = cm->state == TCP_CM_REQUEST ? sizeof(cm->buf) : len;
	ssize_t ret;

	while (cm->buf_len < len) {
		ret = fab_sock->recv(cm->sock.fd, cm->buf + cm->buf_len, most - cm->buf_len, 0);
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret < 0 && errno == EAGAIN)
			return false;
		if (ret <= 0) {
			cm_fail(cm, ret ? errno : FI_ECONNRESET,
				ret ? NULL : "it closed the connection during the handshake");
			return false;
		}
		cm_capture(cm, false, cm->buf + cm->buf_len, ret);
		cm->buf_len += ret;
	}
	return true;
}

/* Read a message. True: it is complete and valid; false: not yet, or failed. */
static bool cm_read_msg(struct tcp_cm *cm)
{
	const char *wrong;

	if (!cm_read(cm, HDR_LEN))
		return false;
	tcp_cm_decode(cm);
	wrong = cm_check(cm);
	if (wrong)
		cm_fail(cm, FI_EPROTO, wrong);
	return !wrong && cm_read(cm, HDR_LEN + cm->data_len);
}

/* Send len bytes, which a new stream accepts at once. 0 or -errno. */
static int cm_send_all(int fd, const uint8_t *buf, size_t len)
{
	ssize_t ret;

	while (len) {
		ret = fab_sock->send(fd, buf, len, MSG_NOSIGNAL);
		if (ret < 0 && errno == EINTR)
			continue;
		if (ret < 0)
			return errno == EAGAIN ? -FI_ENOBUFS : -errno;
		buf += ret;
		len -= ret;
	}
	return 0;
}

int tcp_cm_send(int fd, const struct tcp_cm_msg *msg)
{
	uint8_t buf[HDR_LEN + TCP_CM_DATA_MAX];
	size_t len = tcp_cm_encode(msg, buf);

	if (tcp_capture_on())
		tcp_capture_put(fd, true, &(struct iovec) { buf, len }, len);
	return cm_send_all(fd, buf, len);
}

/* ---- states ---- */

static void cm_connected(struct tcp_cm *cm)
{
	int ret;

	tcp_sock_tune(cm->sock.fd);
	if (cm->auth)
		fab_name_local(cm->sock.fd, &cm->local);	/* part of the proof */
	cm_capture(cm, true, cm->buf, cm->buf_len);
	ret = cm_send_all(cm->sock.fd, cm->buf, cm->buf_len);
	if (ret) {
		cm_fail(cm, -ret, "the request could not be sent");
		return;
	}
	cm->buf_len = 0;
	cm_move(cm, TCP_CM_REPLY);
	fab_source_mod(&cm->src, EPOLLIN);
	cm_arm(cm, tcp_params.connect_timeout_ms);
}

/* Add the descriptor to the engine and enter the first state. 0; -errno: the descriptor still belongs to the caller. */
static int cm_begin(struct tcp_cm *cm, enum tcp_cm_state state, int fd, uint32_t events)
{
	int ret;

	cm->src.fd = fd;
	ret = fab_source_add(cm->engine, &cm->src, events);
	if (ret)
		return ret;
	cm->sock.fd = fd;
	cm_move(cm, state);
	return 0;
}

/* Connect with TCP. 0; -errno: nothing was begun, and fd still belongs to the caller. */
static int cm_begin_tcp(struct tcp_cm *cm, int fd)
{
	int own_fd = -1, ret;

	if (fd < 0) {
		fd = own_fd = tcp_sock_connect(&cm->local, &cm->remote, &cm->err);
		if (fd < 0)
			return fd;
	} else if (fab_sock->connect(fd, &cm->remote.sa, fab_addr_len(&cm->remote.sa)) && errno != EINPROGRESS) {
		cm->err = errno;
	}
	ret = cm_begin(cm, TCP_CM_CONNECTING, fd, cm->err ? 0 : EPOLLOUT);
	if (ret) {
		fab_sock_close(&own_fd);
		return ret;
	}
	/* A failure of connect() is reported by the engine, too, so that callers handle failures in one place. */
	cm_arm(cm, cm->err ? 0 : tcp_params.connect_timeout_ms);
	return 0;
}

/* ---- peers of this host ---- */

/* Say why a peer of this host gets TCP. */
static void cm_tell_tcp(const struct tcp_cm *cm, int err)
{
	char to[FAB_ADDR_STRLEN];

	fab_addr_to_str(&cm->remote.sa, to, sizeof(to));
	TCP_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "%s is on this host and is reached over TCP: %s\n", to,
		err == ECONNREFUSED ? "it has no Unix socket here (FI_TCP_LOCAL, another libfabric, nobody listens)" :
		err == EACCES ? "it is of another user" :
		err == ECONNRESET || err == EPROTO ? "it sees another user here, or is another libfabric" :
		strerror(err));
}

/* Connect over a Unix socket, and send the request. False: use TCP. */
static bool cm_begin_local(struct tcp_cm *cm, int fd)
{
	struct tcp_link link;
	int ret;

	if (!tcp_local_is_near(&cm->remote))
		return false;
	ret = tcp_local_dial(&cm->local, &cm->remote, fd, cm->shared_memory ? cm->engine : NULL, cm->buf,
			     cm->buf_len, &link);
	if (ret) {
		cm_tell_tcp(cm, -ret);
		return false;
	}
	if (cm_begin(cm, TCP_CM_REPLY, link.fd, EPOLLIN)) {
		if (link.local->port_fd == fd)
			link.local->port_fd = -1;
		tcp_link_close(&link);
		return false;
	}
	cm->sock = link;
	cm->local = link.local->ours;
	cm_capture(cm, true, cm->buf, cm->buf_len);
	cm_arm(cm, tcp_params.connect_timeout_ms);
	return true;
}

/* The peer does not answer our greeting properly: use TCP. */
static void cm_turn_to_tcp(struct tcp_cm *cm, int err)
{
	int fd = cm->sock.local->port_fd, ret;

	cm_tell_tcp(cm, err);
	cm->sock.local->port_fd = -1;
	fab_source_del(&cm->src);
	tcp_link_close(&cm->sock);
	ret = cm_begin_tcp(cm, fd);
	if (!ret)
		return;
	fab_sock_close(&fd);
	cm_fail(cm, -ret, NULL);
}

/* Read the greeting of a peer of this host. True: it is done, or the stream has none. False: it has not come, or the
 * exchange has changed its state. */
static bool cm_greet(struct tcp_cm *cm)
{
	bool asks = cm->state == TCP_CM_REPLY;
	int ret;

	if (!cm->sock.local || tcp_local_is_greeted(cm->sock.local))
		return true;
	ret = tcp_local_greet(&cm->sock, asks ? NULL : &cm->local);
	if (!ret) {
		cm->local = cm->sock.local->ours;
		cm->remote = cm->sock.local->theirs;
		cm->buf_len = 0;
		return true;
	}
	if (ret == -EAGAIN)
		return false;
	if (asks)
		cm_turn_to_tcp(cm, -ret);
	else
		cm_fail(cm, -ret, ret == -EPROTO ? "its greeting over the Unix socket is not valid" : NULL);
	return false;
}

/* ---- events ---- */

static void cm_end(struct tcp_cm *cm)
{
	cm_finish(cm);
	cm->owner->done(cm);
}

/* Read the peer's answer about rings. */
static void cm_receive_rings(struct tcp_cm *cm)
{
	int ret = tcp_pair_take_answer(cm->sock.local->pair, cm->sock.fd);

	if (!ret)
		cm_end(cm);
	else if (ret != -EAGAIN)
		cm_fail(cm, -ret, ret == -EPROTO ? "its answer about shared memory is not valid" : NULL);
}

static void cm_receive(struct tcp_cm *cm)
{
	int ret = 1;

	if (!cm_greet(cm))
		return;
	while (ret > 0 && cm_read_msg(cm)) {
		ret = tcp_auth_receive(cm);
		if (ret > 0) {
			cm->buf_len = 0;
			if (cm->state == TCP_CM_REQUEST)
				cm_move(cm, TCP_CM_PROOFS);	/* within the deadline for the request */
		}
	}
	if (ret < 0) {
		cm_fail(cm, -ret, cm->why);
	} else if (!ret && cm->type == TCP_CM_CONNRESP && cm->sock.local && cm->sock.local->pair) {
		cm_move(cm, TCP_CM_RINGS);
		cm_arm(cm, tcp_params.connect_timeout_ms);
		cm_receive_rings(cm);
	} else if (!ret) {
		cm_end(cm);
	}
}

static void cm_ready(struct fab_source *src, uint32_t events)
{
	struct tcp_cm *cm = fab_container(src, struct tcp_cm, src);
	int err;

	if (cm->state == TCP_CM_RINGS) {
		cm_receive_rings(cm);
		return;
	}
	if (cm->state != TCP_CM_CONNECTING) {
		cm_receive(cm);
		return;
	}
	err = cm->err;
	if (!err && (events & (EPOLLERR | EPOLLHUP)))
		err = fab_sock_error(cm->sock.fd);
	if (err)
		cm_fail(cm, err, NULL);
	else
		cm_connected(cm);
}

/* The answer is late, but the peer's kernel is alive. True: continue to wait. */
static bool cm_wait_more(struct tcp_cm *cm)
{
	char to[FAB_ADDR_STRLEN];
	uint64_t waited_ms = (fab_now_ns() - cm->since_ns) / MS;
	uint64_t limit_ms = tcp_params.reply_timeout_ms;

	if (cm->state != TCP_CM_REPLY || (limit_ms && waited_ms >= limit_ms))
		return false;
	if (!cm->nagged) {
		fab_addr_to_str(&cm->remote.sa, to, sizeof(to));
		TCP_WARN(FI_LOG_EP_CTRL, "%s accepted the connection %" PRIu64 " ms ago and has not answered: does the "
			 "peer make progress (read its CQ or EQ)? The connect goes on; FI_TCP_REPLY_TIMEOUT is %" PRIu64
			 " ms\n", to, waited_ms, limit_ms);
	}
	cm->nagged = true;
	if (limit_ms)
		cm_arm(cm, limit_ms);
	return true;
}

static void cm_timeout(struct fab_timer *timer)
{
	struct tcp_cm *cm = fab_container(timer, struct tcp_cm, timer);

	if (cm->err)
		cm_fail(cm, cm->err, NULL);
	else if (!cm_wait_more(cm))
		cm_fail(cm, FI_ETIMEDOUT, NULL);
}

struct tcp_cm *tcp_cm_new(struct fab_engine *engine, const struct tcp_cm_owner *owner, void *ctx)
{
	struct tcp_cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return NULL;
	cm->src.fd = -1;
	cm->src.ready = cm_ready;
	fab_list_init(&cm->src.hot);
	fab_list_init(&cm->link);
	fab_timer_init(&cm->timer, cm_timeout);
	cm->engine = engine;
	cm->owner = owner;
	cm->ctx = ctx;
	cm->sock.fd = -1;
	cm->since_ns = fab_now_ns();
	return cm;
}

int tcp_cm_connect(struct tcp_cm *cm, int fd, const union fab_sockaddr *local, const union fab_sockaddr *remote,
		   const struct tcp_cm_msg *msg)
{
	int ret;

	cm->remote = *remote;
	if (local)
		cm->local = *local;
	cm->buf_len = tcp_cm_encode(msg, cm->buf);
	ret = tcp_auth_begin(cm);
	if (ret)
		return ret;
	return cm_begin_local(cm, fd) ? 0 : cm_begin_tcp(cm, fd);
}

int tcp_cm_await(struct tcp_cm *cm, const struct tcp_link *link, const union fab_sockaddr *at,
		 const union fab_sockaddr *remote)
{
	int ret;

	cm->local = *at;
	if (remote) {
		cm->remote = *remote;
		if (fab_addr_is_any(&at->sa))
			fab_name_local(link->fd, &cm->local);
	}
	cm->src.outsider = true;
	ret = cm_begin(cm, TCP_CM_REQUEST, link->fd, EPOLLIN);
	if (ret)
		return ret;
	cm->sock = *link;
	cm_arm(cm, tcp_params.connect_timeout_ms);
	return 0;
}

static struct tcp_link cm_take_link(struct tcp_cm *cm)
{
	struct tcp_link link = cm->sock;

	assert(cm->state == TCP_CM_DONE);
	cm->sock = (struct tcp_link) { -1, NULL };
	return link;
}

struct tcp_link tcp_cm_take_sock(struct tcp_cm *cm)
{
	fab_source_del(&cm->src);
	return cm_take_link(cm);
}

int tcp_cm_start(struct tcp_cm *cm, struct tcp_conn *conn)
{
	struct tcp_link link = cm_take_link(cm);
	int ret = tcp_conn_start(conn, &link, &cm->peer, &cm->src);

	if (ret) {
		fab_source_del(&cm->src);
		tcp_link_close(&link);
	}
	return ret;
}

static void cm_release(struct fab_defer *defer)
{
	free(fab_container(defer, struct tcp_cm, defer));
}

struct tcp_cm *tcp_cm_pass(struct tcp_cm *cm, struct fab_engine *to)
{
	struct tcp_cm *passed = tcp_cm_new(to, NULL, NULL);

	if (!passed)
		return NULL;
	passed->state = TCP_CM_DONE;
	passed->local = cm->local;
	passed->remote = cm->remote;
	passed->proven = cm->proven;
	passed->peer = cm->peer;
	passed->type = cm->type;
	passed->data_len = cm->data_len;
	memcpy(passed->buf, cm->buf, sizeof(cm->buf));
	passed->sock = tcp_cm_take_sock(cm);
	return passed;
}

void tcp_cm_free(struct tcp_cm *cm)
{
	if (!cm)
		return;
	if (cm->state != TCP_CM_DONE)
		cm_finish(cm);
	fab_source_del(&cm->src);
	tcp_link_close(&cm->sock);
	tcp_auth_free(cm->auth);
	cm->auth = NULL;
	cm->defer.free = cm_release;
	fab_engine_defer(cm->engine, &cm->defer);
}

/* Advice for an error. */
static const char *cm_advice(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return "; no process listens there: is the peer running, and is this its current address?";
	case ETIMEDOUT:
		return "; is the address reachable from here (firewall, wrong interface: FI_TCP_IFACE)?";
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "; no machine has that address, or there is no route to it: is it the right interface?";
	case EADDRNOTAVAIL:
		return "; no such local address, or no free port (net.ipv4.ip_local_port_range)";
	default:
		return "";
	}
}

void tcp_cm_text(const struct tcp_cm *cm, int err, char *text, size_t size)
{
	char from[FAB_ADDR_STRLEN] = "anywhere", to[FAB_ADDR_STRLEN] = "?";
	union fab_sockaddr local = cm->local;
	struct fab_strbuf sb;

	if (cm->sock.fd >= 0 && !cm->sock.local)
		fab_name_local(cm->sock.fd, &local);
	if (fab_addr_len(&local.sa))
		fab_addr_to_str(&local.sa, from, sizeof(from));
	if (fab_addr_len(&cm->remote.sa))
		fab_addr_to_str(&cm->remote.sa, to, sizeof(to));
	fab_strbuf_init(&sb, text, size);
	fab_strbuf_printf(&sb, "connection %s -> %s: ", from, to);
	if (cm->why)
		fab_strbuf_puts(&sb, cm->why);
	else
		fab_strbuf_printf(&sb, "%s%s", strerror(err), cm_advice(err));
}
