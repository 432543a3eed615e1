/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posting a receive with one buffer: the way of fi_recv() and fi_trecv(). Inline, for the calls, so that the operation
 * is never stored. It makes no call but the last, so that few registers are saved. Everything else is for recv.c.
 */
#ifndef TCP_POST_H
#define TCP_POST_H

#include "common/receive/receive.h"
#include "tcp/message/message.h"

/* True if a receive can be posted now, and nothing is to be done but to post it. */
static inline bool tcp_recv_is_plain(const struct tcp_ep *ep, const struct fab_op *op)
{
	return ep->base.enabled && !ep->detours && !(ep->conn && ep->conn->state == TCP_CONN_DOWN) &&
	       !ep->rx->recv.grouped &&
	       !(op->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER | FI_AUTH_KEY));
}

/* tcp_post_recv() for an operation with one buffer. FAB_OP_NOT_NOW: nothing was done, and tcp_post_recv() is
 * needed. */
static inline __attribute__((always_inline)) ssize_t tcp_post_recv_now(struct tcp_ep *ep, const struct fab_op *op)
{
	struct fab_engine *engine = ep->base.engine;
	struct fab_rx *rx;

	if (__builtin_expect(!fab_engine_try_enter(engine), 0))
		return FAB_OP_NOT_NOW;
	rx = !tcp_recv_is_plain(ep, op) ? NULL :
	     fab_recv_make_one(&ep->rx->recv, op, tcp_ep_recv_src(ep, op->addr));
	if (__builtin_expect(!rx, 0)) {
		fab_engine_undo_enter(engine);
		return FAB_OP_NOT_NOW;
	}
	return fab_recv_post_one(engine, &ep->rx->recv, rx, op->code);
}

#endif
