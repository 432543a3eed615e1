/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A connection's bytes over a TCP or Unix socket. Every call is non-blocking; none raises SIGPIPE.
 */
#include <errno.h>
#include "base/sock.h"
#include "tcp/stream/ep.h"

static ssize_t io_sock_send(struct tcp_conn *conn, const void *buf, size_t len)
{
	return fab_sock_send_now(conn->src.fd, buf, len);
}

/* The engine's buffer, which is used by one call at a time. */
static uint8_t *io_sock_room(struct tcp_conn *conn, size_t len)
{
	(void) len;
	return fab_engine_tx_staging(conn->ep->base.engine);
}

static ssize_t io_sock_sendv(struct tcp_conn *conn, const struct iovec *iov, size_t cnt)
{
	struct msghdr msg = { .msg_iov = (struct iovec *) iov, .msg_iovlen = cnt };
	ssize_t n = fab_sock->sendmsg(conn->src.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n < 0 ? -errno : n;
}

static ssize_t io_sock_recv(struct tcp_conn *conn, void *buf, size_t len)
{
	return fab_sock_recv_now(conn->src.fd, buf, len);
}

static ssize_t io_sock_recvv(struct tcp_conn *conn, const struct iovec *iov, size_t cnt)
{
	struct msghdr msg = { .msg_iov = (struct iovec *) iov, .msg_iovlen = cnt };
	ssize_t n = fab_sock->recvmsg(conn->src.fd, &msg, MSG_DONTWAIT);

	return n < 0 ? -errno : n;
}

static bool io_sock_has_input(const struct tcp_conn *conn)
{
	char byte;

	return fab_sock->recv(conn->src.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static uint64_t io_sock_unread(const struct tcp_conn *conn)
{
	return fab_sock_unread(conn->src.fd);
}

const struct tcp_io tcp_io_sock = {
	.send = io_sock_send,
	.sendv = io_sock_sendv,
	.room = io_sock_room,
	.leave = io_sock_send,
	.recv = io_sock_recv,
	.recvv = io_sock_recvv,
	.has_input = io_sock_has_input,
	.unread = io_sock_unread,
};
