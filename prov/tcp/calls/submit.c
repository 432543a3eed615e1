/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From a data call to the send queue, or straight to the stream. tcp_submit() takes the engine lock; the other
 * functions require it.
 *
 *   message -> tx_goes_at_once() -> stream -> completion
 *                    \-> no, or the stream takes only a part -> struct tcp_tx -> send queue (stream/tx.c)
 *   read, write -> tcp_straight() -> memory of the peer -> completion
 *           \-> no -> struct tcp_tx
 *   short ones of them that may leave: calls/one.h
 *
 * The first send after a pass is sent at once. Later sends in the same pass that are short, and have a completion for
 * which the caller must come back, wait for the next pass, or until there are many of them, and then share a system
 * call. An operation without a completion never waits, unless FI_MORE announces further calls.
 *
 * An injected operation without a completion obliges its caller to no further call. So it leaves within the call, or is
 * refused with -FI_EAGAIN: while the connection is being made, where the socket takes no more, beyond the peer's credit
 * and the debt that the peer allows, and behind operations that wait (decisions/tcp-small-sends.md).
 *
 * A frame is made as upstream knows it; what depends on the peer is decided by tx.c once the stream is up.
 */
#include "tcp/calls/one.h"
#include <errno.h>
#include <string.h>
#include "base/probe.h"
#include "common/calls/calls.h"
#include "common/hmem/hmem.h"
#include "common/memory/memory.h"
#include "common/trigger/trigger.h"
#include "tcp/message/message.h"
#include "tcp/params/params.h"
#include "tcp/peer/peer.h"
#include "tcp/remote/remote.h"

/* True if the operation returns data. The answer then replaces the acknowledgement. */
static inline bool op_fetches(const struct fab_op *op)
{
	return op->code >= FAB_OP_READ;
}

/* Bytes after the header of a fetching operation. */
static inline uint64_t op_fetch_payload(const struct fab_op *op)
{
	return op->amo ? fab_iov_len(op->amo->operand, op->amo->operand_cnt) +
			 fab_iov_len(op->amo->compare, op->amo->compare_cnt) : 0;
}

/* The flag that asks the peer for a confirmation, for an operation with one of TX_CONFIRM. Only remote memory can be
 * durable; fetching operations are answered anyway. */
static inline uint16_t op_confirm_flag(const struct fab_op *op)
{
	if ((op->flags & FI_COMMIT_COMPLETE) && (op->code == FAB_OP_WRITE || op->amo))
		return TCP_FLAG_COMMIT;
	return op_fetches(op) ? 0 : TCP_FLAG_DELIVERY;
}

/* The flags of a write or base atomic without a completion level, with the level that it gets. Deferred work has one
 * that reports a refusal, since its counter can learn of none afterwards. */
static inline uint64_t tx_write_flags(const struct tcp_ep *ep, const struct fab_op *op)
{
	bool delivered = tcp_params.write_delivered && !(op->flags & FI_INJECT_COMPLETE);

	if (!op->hooked && !(delivered && fab_ep_tx_is_observed(&ep->base, op)))
		return op->flags;
	return op->flags | FI_DELIVERY_COMPLETE;
}

/* The flags of an operation with a completion level, without a level that nobody can observe. FI_COMMIT_COMPLETE of
 * remote memory has an effect that lasts. */
static inline uint64_t tx_observed_flags(const struct tcp_ep *ep, const struct fab_op *op)
{
	uint64_t lasts = op->code < FAB_OP_WRITE ? 0 : FI_COMMIT_COMPLETE;

	return fab_ep_tx_is_observed(&ep->base, op) ? op->flags : op->flags & ~(TX_CONFIRM & ~lasts);
}

/* The operation's flags, with its completion level. */
static inline uint64_t tx_flags(const struct tcp_ep *ep, const struct fab_op *op)
{
	if (__builtin_expect(op->flags & TX_CONFIRM, 0))
		return tx_observed_flags(ep, op);
	return op->code == FAB_OP_WRITE || op->code == FAB_OP_ATOMIC ? tx_write_flags(ep, op) : op->flags;
}

/* Write the header of an operation on len bytes to buf, except the frame id. Returns its length. */
TX_INLINE uint8_t tx_encode(const struct fab_op *op, uint64_t flags, uint64_t len, void *buf)
{
	struct tcp_hdr *hdr = buf;
	uint8_t *pos = (uint8_t *) (hdr + 1);

	*hdr = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = wire_op[op->code] };
	if (flags & FI_REMOTE_CQ_DATA) {
		hdr->flags = TCP_FLAG_CQ_DATA;
		memcpy(pos, &op->data, sizeof(op->data));
		pos += sizeof(op->data);
	}
	if (op->code == FAB_OP_TSEND || op->code == FAB_OP_CSEND) {
		memcpy(pos, &op->tag, sizeof(op->tag));
		pos += sizeof(op->tag);
	} else if (op->code != FAB_OP_SEND) {
		/* fi_rma_iov and tcp_rma_iov are the same three words */
		memcpy(pos, op->rma, op->rma_cnt * sizeof(struct tcp_rma_iov));
		pos += op->rma_cnt * sizeof(struct tcp_rma_iov);
		hdr->rma_iov_cnt = op->rma_cnt;
	}
	if (op->amo) {
		memcpy(pos, &(struct tcp_amo) { .op = op->amo->op, .datatype = op->amo->datatype },
		       sizeof(struct tcp_amo));
		pos += sizeof(struct tcp_amo);
		hdr->op_data = op->amo->kind;
		hdr->flags |= flags & FI_TAGGED ? TCP_FLAG_TAGGED : 0;
	}
	if (flags & TX_CONFIRM)
		hdr->flags |= op_confirm_flag(op);
	hdr->hdr_size = pos - (uint8_t *) buf;
	hdr->size = hdr->hdr_size + (op_fetches(op) ? op_fetch_payload(op) : len);
	return hdr->hdr_size;
}

/* True if the operation must leave within the call, since the caller may make no further one. If a thread of ours makes
 * progress, or if the operation was accepted earlier, it may be queued. */
static inline bool tx_must_leave(const struct tcp_ep *ep, const struct fab_op *op)
{
	return fab_ep_tx_leaves(&ep->base, op) && !ep->base.engine->thread.run;
}

/* True unless it is known already, before the frame is made, that an operation on len bytes cannot leave now. */
static bool tx_can_leave(const struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	if (conn->state != TCP_CONN_UP || conn->tx.blocked || !fab_list_empty(&conn->tx.held))
		return false;
	return !tcp_frames[wire_op[op->code]].credit || !conn->peer.ext || tcp_conn_has_credit(conn, len, true);
}

/* True if the endpoint takes another operation. */
static inline bool tx_has_room(const struct tcp_ep *ep, const struct fab_op *op)
{
	if (ep->tx->cnt >= ep->tx->size)
		return false;
	return !(op->code == FAB_OP_WRITE || op->code == FAB_OP_ATOMIC) || !tx_has_errors(ep);
}

#define TX_WAITS	1	/* result of tx_check: the arguments are valid, but a counter triggers the operation */

/* Check for arguments that are invalid for any peer. 0, TX_WAITS, -FI_E*. */
TX_INLINE int tx_check(const struct tcp_ep *ep, const struct fab_op *op, uint64_t len)
{
	if (op->iov_cnt > TCP_IOV_LIMIT || op->rma_cnt > TCP_RMA_IOV_MAX)
		return -FI_EINVAL;
	if (len > TCP_MAX_MSG_SIZE)
		return -FI_EMSGSIZE;
	if (op->code >= FAB_OP_WRITE) {
		uint64_t rma_len = 0;

		for (uint32_t i = 0; i < op->rma_cnt; i++)
			rma_len += op->rma[i].len;
		if (!op->rma_cnt || rma_len != len)
			return -FI_EINVAL;
	}
	if (op->flags & (FI_INJECT | FI_TRIGGER)) {
		if ((op->flags & FI_INJECT) && len > ep->base.info->tx_attr->inject_size)
			return -FI_EMSGSIZE;
		if (op->flags & FI_TRIGGER)
			return TX_WAITS;
	}
	return 0;
}

/* Add the peer group to a message for a peer in a group; remote accesses have none. */
static void tx_add_group(struct tcp_tx *tx, const struct tcp_ep *ep, fi_addr_t fi_addr)
{
	struct tcp_group group = { .id = tcp_group_of(ep, fi_addr) };

	if (tx->code != FAB_OP_SEND && tx->code != FAB_OP_TSEND)
		return;
	memcpy(tx->hdr_buf + tx->hdr_len, &group, sizeof(group));
	tx->hdr.flags |= TCP_FLAG_GROUP;
	tx->hdr_len += sizeof(group);
	tx->hdr.hdr_size = tx->hdr_len;
	tx->hdr.size += sizeof(group);
}

/* The end of tx_alloc() for buffers in memory of a device: copy what does not stay the application's. */
static __attribute__((noinline, cold)) int tx_take_device(struct tcp_tx *tx, const struct fab_op *op, uint64_t len)
{
	const uint8_t hmem = fab_op_hmem(op->flags);
	bool inject = (op->flags & FI_INJECT) && !op_fetches(op);
	int ret = 0;

	tx->flat = inject ? tx->inject : NULL;
	tx->hmem = hmem;
	if (inject) {
		ret = fab_hmem_from(hmem, tx->inject, op->iov, 0, len);
	} else {
		fab_iov_copy(tx->iov, op->iov, op->iov_cnt);
		tx->iov_cnt |= TCP_TX_ON_DEVICE;
	}
	if (!ret && tx->amo)
		ret = tcp_amo_operands(tx, op);
	if (ret)
		tcp_tx_free(tx);
	return ret;
}

/* Make *out a struct tcp_tx of the operation on len bytes, which is in no queue. 0; -FI_ENOMEM; -FI_EIO: memory of a
 * device cannot be copied. */
TX_INLINE int tx_alloc(struct tcp_conn *conn, const struct fab_op *op, uint64_t len, struct tcp_tx **out)
{
	struct tcp_ep *ep = conn->ep;
	struct tcp_tx *tx = fab_pool_get(&ep->tx->pool);
	uint64_t flags = tx_flags(ep, op);

	if (!tx)
		return -FI_ENOMEM;
	*out = tx;
	ep->tx->cnt++;
	tx_keep(tx, conn, op, len);
	tx->sent = 0;
	tx->match = flags & FI_MATCH_COMPLETE;
	tx->waits = tx_waits(ep, op);
	tx->hdr_len = tx_encode(op, flags, len, &tx->hdr);
	if (__builtin_expect(op->addr & ep->rdm.group_bits, 0))
		tx_add_group(tx, ep, op->addr);
	tx->size = tx->hdr.size;
	tx->id = 0;
	tx->iov_cnt = op->iov_cnt;
	if (__builtin_expect(op->flags & FAB_OP_HMEM, 0))
		return tx_take_device(tx, op, len);
	if ((op->flags & FI_INJECT) && !op_fetches(op)) {
		tx->flat = tx->inject;
		tcp_tx_copy(tx->inject, op->iov, len);
		return 0;
	}
	tx->flat = NULL;
	fab_iov_copy(tx->iov, op->iov, op->iov_cnt);
	if (tx->amo && tcp_amo_operands(tx, op)) {
		tcp_tx_free(tx);
		return -FI_ENOMEM;
	}
	return 0;
}

/* Remove an operation from tx.queue as if it had never been there. */
static void tx_unqueue(struct tcp_conn *conn, struct tcp_tx *tx)
{
	conn->tx.len -= tx->size;
	if (tx->hdr.op == TCP_WIRE_XRTS)
		tcp_idmap_del(&conn->tx.rts, tx->id);
	else if (conn->state == TCP_CONN_UP && tx->hdr.op == TCP_WIRE_READ_REQ)
		tcp_read_ends(conn, tx);
	else if (conn->state == TCP_CONN_UP && conn->peer.ext && tx->code <= FAB_OP_CSEND)
		conn->tx.credit += tx->len + TCP_CREDIT_OVERHEAD;
}

/* Remove op, which was just added, from the end of list. False: it is not there, or a part of it has left. */
static bool tx_take_back(struct tcp_conn *conn, const struct fab_op *op, struct fab_list *list)
{
	struct tcp_tx *tx = fab_container(list->prev, struct tcp_tx, link);

	if (fab_list_empty(list) || tx->code != op->code || tx->context != op->context || tx->sent)
		return false;
	if (list == &conn->tx.queue)
		tx_unqueue(conn, tx);
	fab_list_remove(&tx->link);
	tcp_tx_free(tx);
	return true;
}

/* ---- messages that leave at once ---- */

/* True if tx_leaves_now(), for any operation. */
static inline bool tx_goes_at_once(const struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	return op->code <= FAB_OP_TSEND && !op->hooked && !(op->flags & (TX_CONFIRM | FAB_OP_HMEM)) &&
	       !(op->addr & conn->ep->rdm.group_bits) && tx_leaves_now(conn, op, len);
}

/* Write the header at hdr, and the payload of len bytes from the application's buffers. -EAGAIN also if it may be
 * direct. */
static __attribute__((noinline)) ssize_t tx_write_long(struct tcp_conn *conn, const struct fab_op *op, uint64_t len,
						       void *hdr, size_t hdr_len)
{
	struct iovec iov[1 + TCP_IOV_LIMIT];

	if (tcp_direct_wants(conn, len))
		return -EAGAIN;
	iov[0] = (struct iovec) { hdr, hdr_len };
	fab_iov_copy(iov + 1, op->iov, op->iov_cnt);
	return conn->io->sendv(conn, iov, 1 + op->iov_cnt);
}

/* Write the frame of such a message to the stream. *size is the length of the frame; the result is that of conn->io. */
TX_INLINE ssize_t tx_write_now(struct tcp_conn *conn, const struct fab_op *op, uint64_t len, uint8_t *staging,
			       uint64_t *size)
{
	struct tcp_hdr *hdr = (struct tcp_hdr *) staging;
	uint8_t hdr_len = tx_encode(op, op->flags, len, hdr);

	hdr->id = conn->tx.cnt;
	*size = hdr_len + len;
	if (*size <= TCP_TX_COPY_MAX) {
		if (__builtin_expect(op->iov_cnt == 1 && len, 1))
			memcpy(staging + hdr_len, op->iov->iov_base, len);
		else
			tcp_tx_copy(staging + hdr_len, op->iov, len);
		return conn->io->send(conn, staging, *size);
	}
	return tx_write_long(conn, op, len, staging, hdr_len);
}

/* True if a stream that answers n to a send has taken none of it. The next call answers the same. */
static bool tx_took_none(ssize_t n)
{
	return n == -EAGAIN || n == -EINTR || n == -EPIPE || n == -ECONNRESET;
}

/* The stream has taken n bytes of a message, but not all, or has failed (n < 0): queue the message, as its rest or its
 * end. 0; -FI_ENOMEM: the connection has ended. */
static __attribute__((noinline, cold)) int tx_queue_rest(struct tcp_conn *conn, const struct fab_op *op, uint64_t len,
							 ssize_t n)
{
	struct tcp_tx *tx;

	if (tx_alloc(conn, op, len, &tx) || tcp_tx_add(conn, tx)) {
		tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory for the rest of a message");
		return -FI_ENOMEM;
	}
	tcp_tx_resume(conn, n);
	return 0;
}

#define TX_NOT_NOW	1	/* result of tx_send_now: nothing was done */

/* Send a message for which tx_goes_at_once(). 0, TX_NOT_NOW, -FI_ENOMEM. */
TX_INLINE int tx_send_now(struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	struct fab_engine *engine = conn->ep->base.engine;
	uint8_t *staging = fab_engine_tx_staging(engine);
	uint64_t size;
	ssize_t n;

	if (__builtin_expect(!staging, 0))
		return TX_NOT_NOW;
	n = tx_write_now(conn, op, len, staging, &size);
	if (__builtin_expect(n < 0, 0) && tx_took_none(n))
		return TX_NOT_NOW;
	conn->used.sent_pass = engine->pass_cnt;
	if (__builtin_expect(n < 0 || (uint64_t) n < size, 0))
		return tx_queue_rest(conn, op, len, n);
	tx_complete_now(conn, op, len);
	return 0;
}

/* ---- submission ---- */

/* A program that always finds the completion of such an access in its queue would run no pass. So one call in so many
 * does. */
#define STRAIGHT_RUN	16

static void tx_count_straight(struct tcp_ep *ep)
{
	uint32_t pass = ep->base.engine->pass_cnt;

	if (ep->straight_pass != pass)
		ep->straight_cnt = 0;
	ep->straight_pass = pass;
	ep->straight_cnt++;
}

/* Carry out a remote access within the call. A shorter write that need not wait for the peer costs less on the stream.
 * False: it is to be queued. */
static __attribute__((noinline)) bool tx_go_straight(struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	bool waits = op->code == FAB_OP_READ ||
		     (op->code == FAB_OP_WRITE && (tx_flags(conn->ep, op) & TX_CONFIRM));

	if ((!waits && (op->code != FAB_OP_WRITE || len < TCP_DIRECT_MIN)) || len > TCP_STRAIGHT_MAX ||
	    !tcp_straight(conn, op, len))
		return false;
	tx_complete_op(conn, op, len);
	tx_count_straight(conn->ep);
	return true;
}

/* An operation was queued, and may have left. If it is the only one, and may have to wait for long, the page of the
 * process has it from now on, also if the program never makes progress. */
static void tx_tell_first(struct tcp_conn *conn)
{
	const struct fi_stats_peer *stats = conn->stats;

	if (stats->queued - stats->dequeued == 1 &&
	    (conn->state != TCP_CONN_UP || conn->tx.blocked || conn->tx.rts.cnt || !fab_list_empty(&conn->tx.held)))
		tcp_survey_conn(conn);
}

/* Queue an operation on len bytes, and send it unless it is to wait. */
static __attribute__((noinline)) int tx_enqueue(struct tcp_conn *conn, const struct fab_op *op, uint64_t len)
{
	struct tcp_ep *ep = conn->ep;
	struct fab_engine *engine = ep->base.engine;
	bool must_leave = tx_must_leave(ep, op);
	struct tcp_tx *tx;
	uint64_t queued;
	int ret;

	if (__builtin_expect(len >= TCP_WINDOW_MIN, 0) && tx_go_straight(conn, op, len))
		return 0;
	if (must_leave && !tx_can_leave(conn, op, len))
		return -FI_EAGAIN;
	ret = tx_alloc(conn, op, len, &tx);
	if (ret)
		return ret;

	queued = conn->tx.len;
	ret = tcp_tx_add(conn, tx);
	if (ret) {
		tcp_tx_free(tx);
		return ret;
	}
	if (conn->state != TCP_CONN_UP) {
		tx_tell_first(conn);
		return 0;
	}
	if (must_leave && tx_take_back(conn, op, &conn->tx.held))
		return -FI_EAGAIN;
	if (tx_hold(conn, op, conn->tx.len - queued)) {
		fab_engine_flush_later(engine, &conn->tx.flush);
	} else {
		conn->used.sent_pass = engine->pass_cnt;
		tcp_tx_flush(conn);
		if (must_leave && conn->tx.blocked && tx_take_back(conn, op, &conn->tx.queue))
			return -FI_EAGAIN;
	}
	tx_tell_first(conn);
	return 0;
}

static int tx_submit_hmem(struct tcp_ep *ep, const struct fab_op *op);

/* marked: with FI_HMEM, the flags tell whether buffers are memory of a device. */
TX_INLINE int tx_submit_marked(struct tcp_ep *ep, const struct fab_op *op, bool marked)
{
	uint64_t len = fab_iov_len(op->iov, op->iov_cnt);
	struct tcp_conn *conn;
	int ret;

	if (!ep->base.enabled || ep->detours) {
		if (!ep->base.enabled || (ep->detours & TCP_EP_CLOSING))
			return -FI_EOPBADSTATE;
		if (!marked)
			return tx_submit_hmem(ep, op);
	}
	ret = tx_check(ep, op, len);
	if (ret)
		return ret == TX_WAITS ? fab_trigger_op(&ep->base, op, tcp_submit_locked) : ret;
	ret = tcp_ep_conn(ep, op->addr, &conn);
	if (ret)
		return ret;
	if (conn->state == TCP_CONN_DOWN || (ep->conn && conn->state == TCP_CONN_IDLE))
		return -FI_ENOTCONN;
	if (!tx_has_room(ep, op) && !op->accepted)
		return -FI_EAGAIN;
	if (tx_goes_at_once(conn, op, len)) {
		ret = tx_send_now(conn, op, len);
		if (ret != TX_NOT_NOW)
			return ret;
	}
	return tx_enqueue(conn, op, len);
}

TX_INLINE int tx_submit(struct tcp_ep *ep, const struct fab_op *op)
{
	return tx_submit_marked(ep, op, false);
}

static __attribute__((noinline)) int tx_submit_hmem(struct tcp_ep *ep, const struct fab_op *op)
{
	struct fab_op marked = *op;
	int ret = fab_mr_mark(op->desc, op->iov_cnt, &marked.flags);

	if (!ret && op->amo)
		ret = fab_call_atomic_mark(op->amo, &marked.flags);
	return ret ? ret : tx_submit_marked(ep, &marked, true);
}

int tcp_submit_locked(struct fab_ep *base, const struct fab_op *op)
{
	return tx_submit(fab_container(base, struct tcp_ep, base), op);
}

/* The end of a call: release the lock. */
static inline ssize_t tx_return(struct tcp_ep *ep, const struct fab_op *op, int ret)
{
	/* the caller of an injected operation may do nothing but try again */
	if (__builtin_expect((ret == -FI_EAGAIN && (op->flags & FI_INJECT)) || ep->straight_cnt == STRAIGHT_RUN, 0)) {
		ep->straight_cnt = 0;
		fab_engine_run(ep->base.engine);
	}
	fab_engine_unlock(ep->base.engine);
	return ret;
}

ssize_t tcp_submit_rest(struct tcp_ep *ep, const struct fab_op *op)
{
	FAB_PROBE4(post, &ep->base, op->addr, op->code, op->context);
	return tx_return(ep, op, tx_submit(ep, op));
}

ssize_t tcp_submit_part(struct tcp_conn *conn, const struct fab_op *op, ssize_t n)
{
	uint64_t len = op->iov->iov_len;

	if (tx_took_none(n))
		return tx_return(conn->ep, op, tx_enqueue(conn, op, len));
	conn->used.sent_pass = conn->ep->base.engine->pass_cnt;
	return tx_return(conn->ep, op, tx_queue_rest(conn, op, len, n));
}

ssize_t tcp_submit(struct tcp_ep *ep, const struct fab_op *op)
{
	fab_engine_enter(ep->base.engine);
	return tx_return(ep, op, tx_submit(ep, op));
}

/* The operation with this context in the list of which nothing was sent yet, or NULL. */
static struct tcp_tx *tx_find_unsent(struct fab_list *list, const void *context, bool hooked)
{
	struct fab_list *link;

	fab_list_for_each(list, link) {
		struct tcp_tx *tx = fab_container(link, struct tcp_tx, link);

		if (tx->code != FAB_OP_MAX && tx->hooked == hooked && tx->context == context && !tx->sent &&
		    !tcp_rndv_is_data(tx))
			return tx;
	}
	return NULL;
}

static bool tx_cancel_queued(struct tcp_conn *conn, const void *context, bool hooked)
{
	struct tcp_tx *tx = tx_find_unsent(&conn->tx.queue, context, hooked);

	if (tx)
		tx_unqueue(conn, tx);
	else
		tx = tx_find_unsent(&conn->tx.held, context, hooked);
	if (!tx)
		return false;
	fab_list_remove(&tx->link);
	tcp_tx_done(tx, FI_ECANCELED, FI_ECANCELED, "cancelled before any of it was sent");
	tcp_tx_flush(conn);
	return true;
}

/* Ask the peer to forget an announced message with this context. False: there is none, or a receive has taken it. */
static bool tx_cancel_announced(struct tcp_conn *conn, const void *context, bool hooked)
{
	for (uint32_t id = 0; id < conn->tx.rts.cap; id++) {
		struct tcp_tx *tx = tcp_idmap_get(&conn->tx.rts, id);

		if (tx && tx->hooked == hooked && tx->context == context && tx->sent == tx->size &&
		    tx->rndv == TCP_TX_ANNOUNCED) {
			tcp_rndv_cancel(conn, tx);
			return true;
		}
	}
	return false;
}

bool tcp_tx_cancel(struct tcp_ep *ep, struct tcp_conn *conn, void *context)
{
	(void) ep;
	return tx_cancel_queued(conn, context, false) || tx_cancel_announced(conn, context, false);
}

bool tcp_tx_cancel_coll(struct tcp_ep *ep, struct tcp_conn *conn, void *hook)
{
	(void) ep;
	return tx_cancel_queued(conn, hook, true) || tx_cancel_announced(conn, hook, true);
}
