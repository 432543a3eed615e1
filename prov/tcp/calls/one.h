/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that leave within the call, and those of them that have one short buffer: the way of fi_send(), fi_tsend(),
 * fi_inject() and fi_tinject(). Inline, for the calls, so that the operation is never stored. The frame is made where
 * the stream wants it. Everything else is for submit.c.
 */
#ifndef TCP_ONE_H
#define TCP_ONE_H

#include <errno.h>
#include "base/copy.h"
#include "tcp/calls/calls.h"
#include "tcp/message/message.h"
#include "tcp/peer/peer.h"

/* The way of a message that leaves at once is one function for the compiler. */
#define TX_INLINE	static inline __attribute__((always_inline))

#define TX_HOLD_MAX	(128 * 1024)	/* bytes held back for the next pass; above this they are sent */
/* A longer frame, with more than 64 KiB, gains nothing from sharing a call. */
#define TX_HOLD_LEN	(64 * 1024 + TCP_HDR_MAX)

/* Completion levels that the peer must confirm (fi_endpoint(3)). */
#define TX_CONFIRM	(FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_TRANSMIT_COMPLETE | FI_COMMIT_COMPLETE)

/* True if the caller must come back for the completion of this operation, so that it may wait for the next pass. */
static inline bool tx_caller_returns(const struct tcp_ep *ep, const struct fab_op *op)
{
	if (fab_ep_tx_wants_comp(&ep->base, op))
		return true;
	return !(op->flags & FI_INJECT) && ep->base.bound.cntr[fab_op_desc[op->code].cntr];
}

/* True if an operation, whose queued frame has len bytes, should be held back for the next pass: in a burst, when
 * something was already sent since the last pass. Announcements and read requests are short frames, whatever the length
 * of the operation. */
static inline bool tx_hold(const struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	const struct tcp_ep *ep = conn->ep;

	if (__builtin_expect(op->flags & FI_MORE, 0))
		return conn->tx.len <= TX_HOLD_MAX;
	return conn->used.sent_pass == ep->base.engine->pass_cnt && conn->tx.len <= TX_HOLD_MAX && len <= TX_HOLD_LEN &&
	       tx_caller_returns(ep, op) && fab_engine_may_hold(ep->base.engine);
}

/* What an operation waits for: enum tcp_tx_waits. */
static inline uint8_t tx_waits(const struct tcp_ep *ep, const struct fab_op *op)
{
	return op->flags & FI_FENCE ? TCP_TX_BEHIND_ALL : ep->waits[op->code];
}

/* True if a message can leave within the call and complete then: nothing goes before it or with it, the peer need not
 * be asked, and it would not be held back. It needs no entry in the queue. The message is not hooked, needs no answer,
 * and is for no peer group. */
TX_INLINE bool tx_leaves_now(const struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	return tcp_tx_is_clear(conn) && !tcp_tx_is_behind(conn, tx_waits(conn->ep, op)) &&
	       (!conn->peer.ext || tcp_conn_has_credit(conn, len, op->flags & FI_INJECT)) &&
	       !tx_hold(conn, op, sizeof(struct tcp_hdr) + len);
}

/* Complete an operation on len bytes within its call. */
TX_INLINE void tx_complete_op(struct fab_ep *ep, const struct fab_op *op, uint64_t len)
{
	const struct fab_comp comp = {
		.context = op->context, .flags = fab_op_desc[op->code].cq_flags, .len = len, .data = op->data,
		.tag = op->tag, .src = FI_ADDR_NOTAVAIL,
	};

	fab_ep_complete_to(ep, op->code, &comp, fab_ep_tx_wants_comp(ep, op), NULL);
}

/* The stream has all of a message: complete it. */
TX_INLINE void tx_complete_now(struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	conn->tx.cnt++;
	if (conn->peer.ext)
		conn->tx.credit -= len + TCP_CREDIT_OVERHEAD;
	tx_complete_op(&conn->ep->base, op, len);
}

/* ---- one short buffer ---- */

/* The flags of fi_inject() and fi_tinject(), which have no completion, and those of the others; flags that change
 * nothing. */
#define TX_ONE_FLAGS(op)	((op)->no_comp ? FI_INJECT : FI_COMPLETION)
#define TX_ONE_ANY_FLAGS	(FI_COMPLETION | FI_INJECT_COMPLETE)

#define TX_ONE_LEN	(TCP_TX_COPY_MAX - sizeof(struct tcp_hdr) - sizeof(uint64_t))	/* with its header and tag */

/* Submit an operation with one buffer by the general way. The lock is held, and released. Returns as tcp_submit(). */
ssize_t tcp_submit_rest(struct tcp_ep *ep, const struct fab_op *op);
/* The same, after the stream has answered n to its frame, with an error or because it has taken only a part of it. */
ssize_t tcp_submit_part(struct tcp_conn *conn, const struct fab_op *op, ssize_t n);

/* True if the operation is valid and short, and asks for nothing but to be sent. */
TX_INLINE bool tx_is_plain(const struct tcp_ep *ep, const struct fab_op *op)
{
	return ep->base.enabled && !ep->closing && !(op->flags & ~(TX_ONE_FLAGS(op) | TX_ONE_ANY_FLAGS)) &&
	       op->iov->iov_len <= TX_ONE_LEN && ep->tx->cnt < ep->tx->size &&
	       !(op->no_comp && op->iov->iov_len > ep->base.info->tx_attr->inject_size);
}

/* Make the frame of `size` bytes. It may be in memory that the peer writes to, so nothing of it is read. */
TX_INLINE void tx_make_plain(const struct tcp_conn *conn, const struct fab_op *op, uint64_t size, uint8_t *frame)
{
	const bool tagged = op->code == FAB_OP_TSEND;

	*(struct tcp_hdr *) frame = (struct tcp_hdr) {
		.version = TCP_WIRE_VERSION, .op = tagged ? TCP_WIRE_TAG : TCP_WIRE_MSG, .size = size,
		.hdr_size = size - op->iov->iov_len, .id = conn->tx.cnt,
	};
	if (tagged)
		memcpy(frame + sizeof(struct tcp_hdr), &op->tag, sizeof(op->tag));
	fab_copy_short(frame + size - op->iov->iov_len, op->iov->iov_base, op->iov->iov_len);
}

/* The operation, with the flags that it can have when tx_is_plain(), so that the compiler knows them. */
TX_INLINE struct fab_op tx_as_plain(const struct fab_op *op)
{
	return (struct fab_op) {
		.code = op->code, .no_comp = op->no_comp, .iov_cnt = 1, .iov = op->iov, .addr = op->addr,
		.tag = op->tag, .flags = op->flags & TX_ONE_FLAGS(op), .context = op->context,
	};
}

/* tcp_submit() for a message with one buffer. */
TX_INLINE ssize_t tcp_submit_one(struct tcp_ep *ep, const struct fab_op *op)
{
	const uint64_t hdr_len = sizeof(struct tcp_hdr) + (op->code == FAB_OP_TSEND ? sizeof(op->tag) : 0);
	const uint64_t len = op->iov->iov_len, size = hdr_len + len;
	const struct fab_op plain = tx_as_plain(op);
	struct fab_engine *engine = ep->base.engine;
	struct fab_op_one one;
	struct tcp_conn *conn;
	uint8_t *frame;
	ssize_t n = -EAGAIN;

	fab_engine_enter(engine);
	conn = tcp_ep_known_conn(ep, op->addr);		/* with a peer group, none is */
	if (__builtin_expect(!conn || !tx_is_plain(ep, op) || !tx_leaves_now(conn, &plain, len), 0))
		return tcp_submit_rest(ep, fab_op_one(&one, op));
	frame = conn->io->room(conn, size);
	if (__builtin_expect(frame != NULL, 1)) {
		tx_make_plain(conn, op, size, frame);
		n = conn->io->leave(conn, frame, size);
	}
	if (__builtin_expect(n != (ssize_t) size, 0))
		return tcp_submit_part(conn, fab_op_one(&one, op), n);
	conn->used.sent_pass = engine->pass_cnt;
	tx_complete_now(conn, &plain, len);
	fab_engine_unlock(engine);
	return 0;
}

#endif
