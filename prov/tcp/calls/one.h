/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that leave within the call, and those of them that have one short buffer: the way of fi_send(),
 * fi_tsend(), fi_inject(), fi_tinject(), fi_write(), fi_inject_write() and fi_read(). Inline, for the calls, so that
 * the operation is never stored, except a read, which has an answer. The frame is made where the stream wants it.
 * Everything else is for submit.c.
 */
#ifndef TCP_ONE_H
#define TCP_ONE_H

#include <errno.h>
#include "base/copy.h"
#include "base/probe.h"
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

/* True if an operation can leave within the call, as far as those before it are concerned. */
TX_INLINE bool tx_is_next(const struct tcp_conn *conn, const struct fab_op *op)
{
	return tcp_tx_is_clear(conn) && !tcp_tx_is_behind(conn, tx_waits(conn->ep, op));
}

/* True if a message can leave within the call and complete then: nothing goes before it or with it, the peer need not
 * be asked, and it would not be held back. It needs no entry in the queue. The message is not hooked, needs no answer,
 * and is for no peer group. */
TX_INLINE bool tx_leaves_now(const struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	return tx_is_next(conn, op) &&
	       (!conn->peer.ext || tcp_conn_has_credit(conn, len, op->flags & FI_INJECT)) &&
	       !tx_hold(conn, op, sizeof(struct tcp_hdr) + len);
}

/* What an operation keeps of its call. */
TX_INLINE void tx_keep(struct tcp_tx *tx, struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	tx->conn = conn;
	tx->context = op->context;
	tx->len = len;
	tx->tag = op->tag;
	tx->data = op->data;
	tx->code = op->code;
	tx->want_cq = fab_ep_tx_wants_comp(&conn->ep->base, op);
	tx->want_ack = false;
	conn->tx.op_cnt++;
	tx->number = (uint32_t) ++conn->stats->queued;
	tx->rndv = TCP_TX_UNASKED;
	tx->amo = op->amo;
	tx->hooked = op->hooked;
}

/* Complete an operation on len bytes within its call. */
TX_INLINE void tx_complete_op(struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	struct fab_ep *ep = &conn->ep->base;

	const struct fab_comp comp = {
		.context = op->context, .flags = fab_op_desc[op->code].cq_flags, .len = len, .data = op->data,
		.tag = op->tag, .src = FI_ADDR_NOTAVAIL,
	};

	fab_stats_count(conn->stats, op->code, len);
	fab_ep_complete_to(ep, op->code, &comp, fab_ep_tx_wants_comp(ep, op), NULL);
}

/* The stream has all of a message: complete it. */
TX_INLINE void tx_complete_now(struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	conn->tx.cnt++;
	if (conn->peer.ext)
		conn->tx.credit -= len + TCP_CREDIT_OVERHEAD;
	tx_complete_op(conn, op, len);
}

/* ---- one short buffer ---- */

/* The flags of fi_inject*(), which have no completion, and those of the others; flags that change nothing. */
#define TX_ONE_FLAGS(op)	((op)->no_comp ? FI_INJECT : FI_COMPLETION)
#define TX_ONE_ANY_FLAGS	(FI_COMPLETION | FI_INJECT_COMPLETE)

/* Submit an operation with one buffer by the general way, and fire the probe `post`. The lock is held, and released.
 * Returns as tcp_submit(). */
ssize_t tcp_submit_rest(struct tcp_ep *ep, const struct fab_op *op);
/* The same, after the stream has answered n to its frame, with an error or because it has taken only a part of it. */
ssize_t tcp_submit_part(struct tcp_conn *conn, const struct fab_op *op, ssize_t n);

/* Bytes of the header of such an operation. */
TX_INLINE uint64_t tx_one_hdr_len(const struct fab_op *op)
{
	return sizeof(struct tcp_hdr) + (op->code == FAB_OP_SEND ? 0 : op->code == FAB_OP_TSEND ? sizeof(op->tag) :
					 sizeof(struct tcp_rma_iov));
}

/* True if the operation is valid and has len_max bytes at most, and asks for nothing but to be sent. */
TX_INLINE bool tx_is_plain(const struct tcp_ep *ep, const struct fab_op *op, uint64_t len_max)
{
	return ep->base.enabled && !ep->detours && !(op->flags & ~(TX_ONE_FLAGS(op) | TX_ONE_ANY_FLAGS)) &&
	       op->iov->iov_len <= len_max && ep->tx->cnt < ep->tx->size &&
	       !(op->no_comp && op->iov->iov_len > ep->base.info->tx_attr->inject_size);
}

/* The frame of an operation. */
static const uint8_t wire_op[] = {
	[FAB_OP_SEND] = TCP_WIRE_MSG,
	[FAB_OP_TSEND] = TCP_WIRE_TAG,
	[FAB_OP_CSEND] = TCP_WIRE_COLL,
	[FAB_OP_WRITE] = TCP_WIRE_WRITE,
	[FAB_OP_ATOMIC] = TCP_WIRE_AMO_REQ,
	[FAB_OP_READ] = TCP_WIRE_READ_REQ,
	[FAB_OP_FETCH_ATOMIC] = TCP_WIRE_AMO_REQ,
};

/* Make the header of a frame of `size` bytes. It may be in memory that the peer writes to, so nothing of it is read. */
TX_INLINE void tx_make_header(const struct tcp_conn *conn, const struct fab_op *op, uint64_t size, uint8_t *frame)
{
	*(struct tcp_hdr *) frame = (struct tcp_hdr) {
		.version = TCP_WIRE_VERSION, .op = wire_op[op->code], .size = size, .hdr_size = tx_one_hdr_len(op),
		.rma_iov_cnt = op->rma_cnt, .id = conn->tx.cnt,
	};
	if (op->rma_cnt)
		*(struct tcp_rma_iov *) (frame + sizeof(struct tcp_hdr)) = (struct tcp_rma_iov) {
			.addr = op->rma->addr, .len = op->rma->len, .key = op->rma->key,
		};
	else if (op->code == FAB_OP_TSEND)
		memcpy(frame + sizeof(struct tcp_hdr), &op->tag, sizeof(op->tag));
}

/* The operation, with the flags that it can have when tx_is_plain(), so that the compiler knows them. */
TX_INLINE struct fab_op tx_as_plain(const struct fab_op *op)
{
	return (struct fab_op) {
		.code = op->code, .no_comp = op->no_comp, .iov_cnt = 1, .iov = op->iov, .addr = op->addr,
		.tag = op->tag, .flags = op->flags & TX_ONE_FLAGS(op), .context = op->context,
	};
}

/* Make the frame of such an operation, and give it to the stream. The result is that of conn->io->send. */
TX_INLINE ssize_t tx_send_plain(struct tcp_conn *conn, const struct fab_op *op, uint64_t size)
{
	const uint64_t hdr_len = tx_one_hdr_len(op);
	uint8_t *frame = conn->io->room(conn, size);

	if (__builtin_expect(!frame, 0))
		return -EAGAIN;
	tx_make_header(conn, op, size, frame);
	if (op->code != FAB_OP_READ)
		fab_copy_short(frame + hdr_len, op->iov->iov_base, size - hdr_len);
	return conn->io->leave(conn, frame, size);
}

/* tcp_submit() for a message with one buffer. */
TX_INLINE ssize_t tcp_submit_one(struct tcp_ep *ep, const struct fab_op *op)
{
	const uint64_t hdr_len = tx_one_hdr_len(op), len = op->iov->iov_len, size = hdr_len + len;
	const struct fab_op plain = tx_as_plain(op);
	struct fab_engine *engine = ep->base.engine;
	struct fab_op_one one;
	struct tcp_conn *conn;
	ssize_t n;

	fab_engine_enter(engine);
	conn = tcp_ep_known_conn(ep, op->addr);		/* with a peer group, none is */
	if (__builtin_expect(!conn || !tx_is_plain(ep, op, TCP_TX_COPY_MAX - hdr_len) ||
			     !tx_leaves_now(conn, &plain, len), 0))
		return tcp_submit_rest(ep, fab_op_one(&one, op));
	FAB_PROBE4(post, &ep->base, conn->fi_addr, op->code, op->context);
	n = tx_send_plain(conn, op, size);
	if (__builtin_expect(n != (ssize_t) size, 0))
		return tcp_submit_part(conn, fab_op_one(&one, op), n);
	conn->used.sent_pass = engine->pass_cnt;
	tx_complete_now(conn, &plain, len);
	fab_engine_unlock(engine);
	return 0;
}

/* ---- one short buffer at each end ---- */

/* A write that has completed may be refused and become an error entry: unread ones with which further writes are
 * refused. */
#define TX_ERRORS_MAX	1024

/* True if writes and base atomics must wait until the application has read earlier errors. */
static inline bool tx_has_errors(const struct tcp_ep *ep)
{
	const struct fab_cq *cq = ep->base.bound.tx_cq;

	return cq && cq->err_cnt >= TX_ERRORS_MAX;
}

/* True if a remote access can leave within the call: as tx_leaves_now(). A write also completes then, and its target
 * may refuse it later. */
TX_INLINE bool tx_access_leaves_now(const struct tcp_conn *conn, const struct fab_op *op, uint64_t size)
{
	if (op->code == FAB_OP_WRITE && (tcp_params.write_delivered || tx_has_errors(conn->ep) ||
					 (conn->peer.ext && !(conn->peer.features & TCP_EXT_NAK))))
		return false;
	return tx_is_next(conn, op) && !tx_hold(conn, op, size);
}

/* The stream has all of the request of a read: wait for its answer. */
TX_INLINE void tx_asked(struct tcp_conn *conn, struct tcp_tx *tx, const struct fab_op *op)
{
	tx_keep(tx, conn, op, op->iov->iov_len);
	tx->hdr.op = TCP_WIRE_READ_REQ;
	tx->iov_cnt = 1;
	tx->iov[0] = *op->iov;
	conn->ep->tx->cnt++;
	tcp_read_begins(conn, tx);
	fab_list_add_tail(&conn->tx.read_wait, &tx->link);
}

/* tcp_submit() for a write or read with one buffer at each end. */
TX_INLINE ssize_t tcp_access_one(struct tcp_ep *ep, const struct fab_op *op)
{
	const bool reads = op->code == FAB_OP_READ;
	const uint64_t hdr_len = tx_one_hdr_len(op), len = op->iov->iov_len, size = hdr_len + (reads ? 0 : len);
	const struct fab_op plain = tx_as_plain(op);
	struct fab_engine *engine = ep->base.engine;
	struct tcp_tx *tx = NULL;
	struct fab_op_one one;
	struct tcp_conn *conn;
	ssize_t n = -EAGAIN;

	fab_engine_enter(engine);
	conn = tcp_ep_known_conn(ep, op->addr);
	/* longer reads may go straight to the memory of the peer */
	if (__builtin_expect(!conn || !tx_is_plain(ep, op, reads ? TCP_WINDOW_MIN - 1 : TCP_TX_COPY_MAX - hdr_len) ||
			     !tx_access_leaves_now(conn, &plain, size), 0))
		return tcp_submit_rest(ep, fab_op_one(&one, op));
	FAB_PROBE4(post, &ep->base, conn->fi_addr, op->code, op->context);
	if (reads)
		tx = fab_pool_get(&ep->tx->pool);
	if (!reads || tx)
		n = tx_send_plain(conn, op, size);
	if (__builtin_expect(n != (ssize_t) size, 0)) {
		if (tx)
			fab_pool_put(&ep->tx->pool, tx);
		return tcp_submit_part(conn, fab_op_one(&one, op), n);
	}
	conn->used.sent_pass = engine->pass_cnt;
	conn->tx.cnt++;
	if (reads) {
		tx_asked(conn, tx, &plain);
	} else {
		conn->remote.quiet_sent++;
		tx_complete_op(conn, &plain, len);
	}
	fab_engine_unlock(engine);
	return 0;
}

#endif
