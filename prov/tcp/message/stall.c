/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unexpected messages that are too long to be kept (longer than FI_TCP_UNEXP_MAX), from a peer without announcements.
 * Such a message has its place in the order, but its payload stays in the socket, which is not read until a receive
 * takes the message. Engine lock held.
 *
 *   header -> STALLED --a receive takes it--> payload into the receive
 *                   \---dropped------------> payload is dropped
 *                    \--the peer closes----> the kernel has all data: read the rest into memory, or end the connection
 */
#include "tcp/message/msg.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/sock.h"
#include "tcp/params/params.h"

/* Keep the message after all: allocate memory for the rest. */
static void stall_keep(struct tcp_conn *conn, struct tcp_unexp *unexp)
{
	uint8_t *buf = realloc(unexp->buf, unexp->base.len);

	if (!buf) {
		tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory to keep an unexpected message");
		return;
	}
	unexp->buf = buf;
	unexp->stalled = false;
	unexp->kept = unexp->base.len + tcp_unexp_overhead(conn);
	conn->msg.unexp_len += unexp->kept;
	tcp_unexp_charge(unexp, unexp->base.len - unexp->have);
	tcp_msg_keep(conn);
}

void tcp_stall(struct tcp_conn *conn, const uint8_t *buf, size_t len)
{
	struct tcp_unexp *unexp = conn->rx.unexp;

	if (len >= unexp->base.len) {
		stall_keep(conn, unexp);
		return;
	}
	unexp->buf = malloc(len ? len : 1);
	if (!unexp->buf) {
		tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory for the beginning of an unexpected message");
		return;
	}
	memcpy(unexp->buf, buf, len);
	unexp->have = len;
	tcp_unexp_charge(unexp, len);
	tcp_rx_pause(conn, true);
}

void tcp_stall_take(struct tcp_conn *conn, struct tcp_unexp *unexp)
{
	conn->rx.unexp = NULL;
	conn->rx.into = unexp->base.into;
	tcp_msg_resume(conn, unexp->buf, unexp->have);
	tcp_unexp_free(unexp);
	tcp_rx_pause(conn, false);
}

/* True if the kernel has the next len bytes of the stream. */
static bool stall_has_bytes(const struct tcp_conn *conn, uint64_t len)
{
	/* the call counts the bytes without copying or removing them */
	ssize_t n = fab_sock->recv(conn->src.fd, NULL, len, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);

	return n > 0 && (uint64_t) n >= len;
}

void tcp_stall_gone(struct tcp_conn *conn)
{
	struct tcp_unexp *unexp = conn->rx.unexp;

	if (!fab_list_empty(&conn->holding.waits)) {
		tcp_conn_fail(conn, FI_ECONNRESET, ECONNRESET, "a peer that is in no address vector closed the "
			      "connection before its messages could be read");
		return;
	}
	if (conn->rx.phase == TCP_RX_STALLED) {
		if (stall_has_bytes(conn, unexp->base.len - unexp->have))
			stall_keep(conn, unexp);
		else
			tcp_conn_fail(conn, FI_ECONNRESET, ECONNRESET,
				      "the peer closed in the middle of a message for which no receive was posted");
	}
	tcp_rx_pause(conn, false);
}
