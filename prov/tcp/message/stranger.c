/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers whose address is not in the address vector ("strangers"). The memory for their messages without a receive has a
 * common limit (FI_TCP_STRANGER_MAX) in addition to the limit of each peer, since anybody may connect many times. At
 * the limit their sockets are not read, between two frames, until receives have taken half of it. Engine lock held.
 *
 * A message counts from its header until a receive has taken it or its sender is inserted into the address vector, also
 * after the sender has disconnected.
 */
#include "tcp/message/msg.h"
#include <sys/epoll.h>
#include "tcp/params/params.h"

void tcp_stranger_count(struct tcp_unexp *unexp)
{
	if (unexp->conn->fi_addr != FI_ADDR_NOTAVAIL || unexp->conn == unexp->ep->conn)
		return;
	unexp->stranger = sizeof(*unexp) + (unexp->announced ? 0 : unexp->kept);
	unexp->ep->rx->stranger_len += unexp->stranger;
}

void tcp_stranger_release(struct tcp_conn *conn)
{
	fab_list_remove(&conn->msg.stranger);
	if (conn->rx.phase != TCP_RX_STALLED)
		tcp_rx_pause(conn, false);
}

void tcp_stranger_uncount(struct tcp_unexp *unexp)
{
	struct tcp_rx_ctx *ctx = unexp->ep->rx;
	struct tcp_conn *conn;

	ctx->stranger_len -= unexp->stranger;
	unexp->stranger = 0;
	if (ctx->stranger_len > tcp_params.stranger_max / 2)
		return;
	while ((conn = fab_list_first(&ctx->strangers, struct tcp_conn, msg.stranger)))
		tcp_stranger_release(conn);
}

void tcp_stranger_hold(struct tcp_conn *conn)
{
	struct tcp_rx_ctx *ctx = conn->ep->rx;

	if (!ctx->stranger_warned)
		TCP_WARN(FI_LOG_EP_DATA, "peers that are in no address vector have sent messages without a matching "
			 "receive, %llu bytes of memory; their connections are not read until receives are posted "
			 "(FI_TCP_STRANGER_MAX, %zu)\n", (unsigned long long) ctx->stranger_len,
			 tcp_params.stranger_max);
	ctx->stranger_warned = true;
	conn->rx.paused |= TCP_RX_PAUSED;
	/* Not even for its end: the kernel's data would have to be kept then. The socket of a ring only wakes, and must
	 * continue to. */
	if (!conn->io->pull)
		fab_source_mod(&conn->src, conn->src.events & ~(uint32_t) (EPOLLIN | EPOLLRDHUP));
	if (fab_list_empty(&conn->msg.stranger))
		fab_list_add_tail(&ctx->strangers, &conn->msg.stranger);
}
