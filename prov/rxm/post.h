/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posting a receive with one buffer: the way of fi_recv() and fi_trecv(). Inline, for the calls, so that the operation
 * is never stored. It makes no call but the last, so that few registers are saved. Everything else is for submit.c.
 */
#ifndef RXM_POST_H
#define RXM_POST_H

#include "common/receive/receive.h"
#include "rxm/rxm.h"

/* True if a receive can be posted now, and nothing is to be done but to post it. */
static inline bool rxm_recv_is_plain(const struct rxm_ep *ep, const struct fab_op *op)
{
	return ep->base.enabled && !ep->closing && !ep->poller->odd &&
	       !(op->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER));
}

/* rxm_post_recv() for an operation with one buffer. FAB_OP_NOT_NOW: nothing was done, and rxm_post_recv() is
 * needed. */
static inline __attribute__((always_inline)) ssize_t rxm_post_recv_now(struct rxm_ep *ep, const struct fab_op *op)
{
	fi_addr_t src = ep->base.caps & FI_DIRECTED_RECV ? op->addr : FI_ADDR_UNSPEC;
	struct fab_engine *engine = ep->base.engine;
	struct fab_rx *rx;

	if (__builtin_expect(!fab_engine_try_enter(engine), 0))
		return FAB_OP_NOT_NOW;
	rx = rxm_recv_is_plain(ep, op) ? fab_recv_make_one(&ep->recv, op, src) : NULL;
	if (__builtin_expect(!rx, 0)) {
		fab_engine_undo_enter(engine);
		return FAB_OP_NOT_NOW;
	}
	fab_rx_desc(&rxm_recv_ops, rx)[0] = op->desc[0];
	return fab_recv_post_one(engine, &ep->recv, rx, op->code);
}

#endif
