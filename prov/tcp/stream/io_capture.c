/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See io_capture.h. A frame is not made in a ring: the peer could change it before it is in the file.
 */
#include "tcp/stream/io_capture.h"

#include "tcp/capture/capture.h"
#include "tcp/stream/stream.h"

/* n is the result of a call that was given iov. Returns n. */
static ssize_t captured(const struct tcp_conn *conn, bool out, const struct iovec *iov, ssize_t n)
{
	if (n > 0)
		tcp_capture_put(conn->src.fd, out, iov, n);
	return n;
}

static ssize_t sock_send(struct tcp_conn *conn, const void *buf, size_t len)
{
	return captured(conn, true, &(struct iovec) { (void *) buf, len }, tcp_io_sock.send(conn, buf, len));
}

static ssize_t sock_sendv(struct tcp_conn *conn, const struct iovec *iov, size_t cnt)
{
	return captured(conn, true, iov, tcp_io_sock.sendv(conn, iov, cnt));
}

static ssize_t sock_recv(struct tcp_conn *conn, void *buf, size_t len)
{
	return captured(conn, false, &(struct iovec) { buf, len }, tcp_io_sock.recv(conn, buf, len));
}

static ssize_t sock_recvv(struct tcp_conn *conn, const struct iovec *iov, size_t cnt)
{
	return captured(conn, false, iov, tcp_io_sock.recvv(conn, iov, cnt));
}

/* The engine's buffer, which is used by one call at a time. */
static uint8_t *staging_room(struct tcp_conn *conn, size_t len)
{
	(void) len;
	return fab_engine_tx_staging(conn->ep->base.engine);
}

static bool sock_has_input(const struct tcp_conn *conn)
{
	return tcp_io_sock.has_input(conn);
}

static uint64_t sock_unread(const struct tcp_conn *conn)
{
	return tcp_io_sock.unread(conn);
}

static const struct tcp_io io_capture_sock = {
	.send = sock_send,
	.sendv = sock_sendv,
	.room = staging_room,
	.leave = sock_send,
	.recv = sock_recv,
	.recvv = sock_recvv,
	.has_input = sock_has_input,
	.unread = sock_unread,
};

/* The engine has read n bytes. */
static bool sock_glanced(struct fab_source *src, ssize_t n)
{
	const struct tcp_conn *conn = fab_container(src, struct tcp_conn, src);

	captured(conn, false, &(struct iovec) { src->engine->staging, n > 0 ? n : 0 }, n);
	return tcp_rx_glanced(src, n);
}

void tcp_io_capture_use(struct tcp_conn *conn)
{
	conn->io = &io_capture_sock;
	conn->src.glanced = sock_glanced;
}

/* ---- rings ---- */

static ssize_t ring_send(struct tcp_conn *conn, const void *buf, size_t len)
{
	return captured(conn, true, &(struct iovec) { (void *) buf, len }, tcp_io_ring.send(conn, buf, len));
}

static ssize_t ring_sendv(struct tcp_conn *conn, const struct iovec *iov, size_t cnt)
{
	return captured(conn, true, iov, tcp_io_ring.sendv(conn, iov, cnt));
}

static bool ring_pull(struct tcp_conn *conn)
{
	return tcp_io_ring.pull(conn);
}

static bool ring_want_room(struct tcp_conn *conn)
{
	return tcp_io_ring.want_room(conn);
}

static bool ring_has_input(const struct tcp_conn *conn)
{
	return tcp_io_ring.has_input(conn);
}

static uint64_t ring_unread(const struct tcp_conn *conn)
{
	return tcp_io_ring.unread(conn);
}

const struct tcp_io tcp_io_capture_ring = {
	.send = ring_send,
	.sendv = ring_sendv,
	.room = staging_room,
	.leave = ring_send,
	.pull = ring_pull,
	.want_room = ring_want_room,
	.has_input = ring_has_input,
	.unread = ring_unread,
};

bool tcp_io_capture_record(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	struct tcp_pair *pair = conn->local->pair;

	/* before the answers to it, and once, also if it is not taken now */
	if (!pair->captured)
		captured(conn, false, &(struct iovec) { (void *) buf, len }, len);
	pair->captured = true;
	if (!tcp_rx_record(conn, buf, len))
		return false;
	pair->captured = false;
	return true;
}
