/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending: the send queue of a connection, writing to the socket, and the operations that wait for an answer. Engine
 * lock held.
 *
 *   calls/submit.c -> held -> queue -flush-> socket -> done
 *   control frames ---------/                    \-> ack_wait, read_wait, rts -> done
 *
 * A message that nothing precedes and nobody must answer is no entry of the queue: calls/submit.c writes it.
 *
 * An operation is held while it may not start: it has FI_FENCE and earlier operations are outstanding; it is a remote
 * access that may not overtake messages; it is a fetching atomic that may not overtake reads, or the limit of
 * outstanding results is reached; or an operation before it is held. Control frames are not held, since peers wait for
 * them.
 *
 * A flush sends many queued frames in one call: small ones are copied together, large ones are sent from their buffers.
 */
#include "tcp/stream/stream.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "base/bits.h"
#include "common/hmem/hmem.h"
#include "tcp/params/params.h"
#include "tcp/stream/io_ring.h"

#define TX_IOV_MAX	64	/* iov entries in one call */
/* Bytes of long frames in one call. With more, the data copied first has left the processor's cache before the peer,
 * which reads at the same time, gets to it (measured: up to 1.5x slower). */
#define TX_CALL_LEN	(256 * 1024)
#define TX_LONG_LEN	(32 * 1024)
/* Control frames queued for one peer. The peer has at most so many operations outstanding, and some need two
 * answers. */
#define CONTROL_MAX	(4 * TCP_IDMAP_MAX)
#define ANSWERS_MAX	256	/* control frames that wait for the end of a read */
#define PACK_LEN	4032	/* bytes of further frames in a pack */
#define REST_CNT	256	/* control frames of a connection that ends; more are freed in pieces */

/* ---- answers that the peer does not read ---- */

/*
 * While the stream is full, control frames are charged to the peer, and those without a payload share an entry of the
 * queue, a pack: the first one is in hdr_buf, `id` others follow in `flat`, which is owned.
 */
static bool tx_is_pack(const struct tcp_tx *tx)
{
	return tx->code == FAB_OP_MAX && tx->charged > sizeof(*tx);	/* others are charged for themselves alone */
}

/* True for a control frame that may be in a pack: nothing happens when it was sent. */
static bool tx_packs(const struct tcp_tx *tx)
{
	return tx->code == FAB_OP_MAX && !tx->amo && !tx->want_ack && !tcp_frames[tx->hdr.op].sent;
}

/* Set the numbers of the frames in flat, from id on. Returns the number for the next frame. */
static __attribute__((noinline, cold)) uint8_t pack_number(struct tcp_tx *pack, uint8_t id)
{
	struct tcp_hdr hdr;

	if (!tx_is_pack(pack))
		return id;
	for (uint64_t at = 0; at < pack->size - pack->hdr_len; at += hdr.size) {
		memcpy(&hdr, pack->flat + at, sizeof(hdr));
		hdr.id = id++;
		memcpy(pack->flat + at, &hdr, sizeof(hdr));
	}
	return id;
}

static void answer_charge(struct tcp_tx *tx, uint64_t len)
{
	tx->charged += len;
	tcp_account_charge(&tx->conn->ep->rx->account, &tx->conn->holding, TCP_HELD_ANSWERS, len);
}

/* Free an entry that was charged. */
static __attribute__((noinline, cold)) void answer_free(struct tcp_tx_ctx *ctx, struct tcp_tx *tx)
{
	struct tcp_conn *conn = tx->conn;

	if (tx_is_pack(tx)) {
		conn->tx.control_cnt -= tx->id;
		conn->tx.pack_cnt--;
		free(tx->flat);
	}
	tcp_account_give(&conn->ep->rx->account, &conn->holding, TCP_HELD_ANSWERS, tx->charged);
	fab_pool_put(&ctx->pool, tx);
	tcp_rest_trim(conn->ep);
}

/* Add a control frame to the last entry of the queue, and free it. False: that is not possible. */
static bool tx_pack(struct tcp_conn *conn, struct tcp_tx *tx)
{
	struct tcp_tx *pack = fab_list_last(&conn->tx.queue, struct tcp_tx, link);

	if (!pack || pack->sent || !tx_packs(pack) || !pack->charged)
		return false;
	if (!tx_is_pack(pack)) {
		pack->flat = malloc(PACK_LEN);
		if (!pack->flat)
			return false;
		pack->id = 0;
		conn->tx.pack_cnt++;
		answer_charge(pack, PACK_LEN);
	}
	if (pack->size - pack->hdr_len + tx->size > PACK_LEN)
		return false;
	memcpy(pack->flat + pack->size - pack->hdr_len, tx->hdr_buf, tx->size);
	pack->size += tx->size;
	pack->id++;
	conn->tx.len += tx->size;
	tcp_tx_free(tx);
	conn->tx.control_cnt++;		/* it is still queued */
	return true;
}

/* An answer is queued although the stream is full. A peer that asks for more and more and reads nothing has no share of
 * its own any more, but shares that of strangers. It is read on: it may read when we have read what it sends. */
static void tx_note_unread(struct tcp_conn *conn)
{
	if (++conn->tx.unread_cnt < TCP_UNREAD_MAX || conn->src.outsider)
		return;
	fab_source_set_outsider(&conn->src, true);
	tcp_io_ring_classify(conn);
	conn->rx.stage = TCP_RX_STRANGER_FIRST;
}

/* The stream has room again, so the peer reads. */
static void tx_note_read(struct tcp_conn *conn)
{
	bool waited = tcp_conn_reads_nothing(conn);

	conn->tx.unread_cnt = 0;
	if (!waited)
		return;
	fab_source_set_outsider(&conn->src, conn->holding.class == TCP_STRANGER);
	tcp_io_ring_classify(conn);
}

/* Queue a frame although the stream is full. */
static __attribute__((noinline, cold)) void tx_queue_full(struct tcp_conn *conn, struct tcp_tx *tx)
{
	bool control = tx->code == FAB_OP_MAX;

	if (control) {
		tx_note_unread(conn);
		tcp_rest_keep_up(conn->ep);
	}
	if (tx_packs(tx) && tx_pack(conn, tx))
		return;
	conn->tx.len += tx->size;
	fab_list_add_tail(&conn->tx.queue, &tx->link);
	if (!control)
		return;
	answer_charge(tx, sizeof(*tx));
	if (!tcp_account_owes_enough(&conn->ep->rx->account, &conn->holding))
		return;
	tcp_account_refuse(&conn->ep->rx->account, TCP_REFUSED_ANSWERS);
	tcp_conn_fail(conn, FI_EIO, EPROTO, "a peer that is in no address vector sends more and more requests and "
		      "reads none of the answers");
}

/* ---- completion ---- */

void tcp_tx_free(struct tcp_tx *tx)
{
	struct tcp_tx_ctx *ctx = tx->conn->ep->tx;

	if (__builtin_expect(tx->amo, 0))
		tcp_frames[tx->hdr.op].release(tx);
	if (tx->code != FAB_OP_MAX) {
		ctx->cnt -= tx->rndv == TCP_TX_UNASKED;
		tx->conn->tx.op_cnt--;
		tx->conn->stats->dequeued++;
		fab_stats_completed(&tx->conn->stats->pending[tx->code <= FAB_OP_CSEND ? FI_STATS_PEER_MESSAGE :
							       FI_STATS_PEER_ACCESS], tx->number);
	} else {
		tx->conn->tx.control_cnt--;
	}
	if (__builtin_expect(tx->code == FAB_OP_MAX && tx->charged, 0)) {
		answer_free(ctx, tx);
		return;
	}
	fab_pool_put(&ctx->pool, tx);
}

/* Complete an operation that has failed (fail->err is not 0), or that has a hook. */
static void tx_done_rare(struct tcp_tx *tx, const struct fab_comp *comp, const struct fab_cq_fail *fail)
{
	struct fab_hook *hook = tx->context;

	if (tx->hooked)
		hook->done(hook, tx->code, comp, fail->err ? fail : NULL);
	else
		fab_ep_fail(&tx->conn->ep->base, tx->code, comp, fail);
}

void tcp_tx_done(struct tcp_tx *tx, int err, int prov_errno, const char *text)
{
	struct fab_ep *ep = &tx->conn->ep->base;

	if (tx->code != FAB_OP_MAX) {
		struct fab_comp comp = {
			.context = tx->context, .flags = fab_op_desc[tx->code].cq_flags, .len = tx->len,
			.data = tx->data, .tag = tx->tag, .src = FI_ADDR_NOTAVAIL,
		};

		if (__builtin_expect(!err, 1))
			fab_stats_count(tx->conn->stats, tx->code, tx->len);
		else
			tx->conn->stats->errors++;
		if (__builtin_expect(err || tx->hooked, 0))
			tx_done_rare(tx, &comp, &(struct fab_cq_fail) { .err = err, .prov_errno = prov_errno,
				     .text = text });
		else
			fab_ep_complete(ep, tx->code, &comp, tx->want_cq);
	} else if (__builtin_expect(tx->want_ack, 0) && !err) {
		tcp_frames[tx->hdr.op].sent(tx->conn, tx);	/* a direct answer, now that the peer has it */
		return;
	}
	tcp_tx_free(tx);
}

static void tx_fail_list(struct fab_list *list, int err, int prov_errno, const char *text)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(list)))
		tcp_tx_done(fab_container(link, struct tcp_tx, link), err, prov_errno, text);
}

/* Move the operations from the queue to ops. All others are held. */
static void tx_take_ops(struct tcp_conn *conn, struct fab_list *ops)
{
	uint32_t left = conn->tx.op_cnt;
	struct fab_list *link, *next;

	fab_list_for_each(&conn->tx.held, link)
		left--;
	fab_list_for_each_safe(&conn->tx.queue, link, next) {
		if (!left)
			return;			/* only answers are left, perhaps 65,536 of them */
		if (fab_container(link, struct tcp_tx, link)->code == FAB_OP_MAX)
			continue;
		fab_list_remove(link);
		fab_list_add_tail(ops, link);
		left--;
	}
}

void tcp_tx_fail_all(struct tcp_conn *conn, int err, int prov_errno, const char *text)
{
	struct fab_list ops = FAB_LIST_INIT(ops);

	tx_fail_list(&conn->tx.ack_wait, err, prov_errno, text);
	tx_fail_list(&conn->tx.read_wait, err, prov_errno, text);
	for (uint32_t id = 0; conn->tx.rts.cnt; id++) {
		struct tcp_tx *tx = tcp_idmap_del(&conn->tx.rts, id);

		if (!tx)
			continue;
		fab_list_remove(&tx->link);	/* from the queue, if the announcement was not sent */
		tcp_tx_done(tx, err, prov_errno, text);
	}
	tx_take_ops(conn, &ops);
	tx_fail_list(&ops, err, prov_errno, text);
	if (conn->tx.control_cnt < REST_CNT)
		tx_fail_list(&conn->tx.queue, err, prov_errno, text);
	else
		tcp_rest_answers(conn);
	tx_fail_list(&conn->tx.held, err, prov_errno, text);
	conn->tx.len = 0;
	conn->remote.read_cnt = conn->remote.long_read_cnt = 0;
}

/* The peer refuses the oldest frame. False: it cannot be refused. */
static bool tx_refused(struct tcp_conn *conn, uint32_t err)
{
	struct tcp_tx *tx = fab_list_first(&conn->tx.ack_wait, struct tcp_tx, link);

	if (!tx || !tcp_frames[tx->hdr.op].refused ||
	    !(tcp_frames[tx->hdr.op].rma || (tx->hdr.flags & TCP_FLAGS_PIECES)))
		return false;
	fab_list_remove(&tx->link);
	tcp_frames[tx->hdr.op].refused(tx, err);
	return true;
}

bool tcp_tx_acked(struct tcp_conn *conn, uint32_t cnt, uint32_t err)
{
	struct fab_list *link;

	for (; cnt; cnt--) {
		link = fab_list_pop_front(&conn->tx.ack_wait);
		if (!link)
			return conn->state == TCP_CONN_DOWN;
		tcp_tx_done(fab_container(link, struct tcp_tx, link), 0, 0, NULL);
	}
	return !err || conn->state == TCP_CONN_DOWN || tx_refused(conn, err);
}

/* The kernel has all of a frame. */
static void tx_sent(struct tcp_conn *conn, struct tcp_tx *tx)
{
	conn->tx.len -= tx->size;
	fab_list_remove(&tx->link);
	if (tx->want_ack)
		fab_list_add_tail(&conn->tx.ack_wait, &tx->link);
	else if (tcp_frames[tx->hdr.op].sent)
		tcp_frames[tx->hdr.op].sent(conn, tx);
	else
		tcp_tx_done(tx, 0, 0, NULL);
}

/* ---- from the application to the queue ---- */

/* True if the peer supports what the operation needs: confirming a match, a group, durable writes, many pieces of
 * memory. */
static bool tx_peer_knows(const struct tcp_conn *conn, const struct tcp_tx *tx, bool message)
{
	if (message && tx->match && !conn->peer.ext)
		return false;
	if ((tx->hdr.flags & TCP_FLAG_COMMIT) && !(conn->peer.features & TCP_EXT_COMMIT))
		return false;
	if (tx->hdr.rma_iov_cnt > TCP_RMA_IOV_BASE && !(conn->peer.features & TCP_EXT_RIOV))
		return false;
	return !(tx->hdr.flags & TCP_FLAG_GROUP) || (conn->peer.features & TCP_EXT_GROUP);
}

/* The stream is up, and tx is queued: set what depends on the peer. Credit is used in the order of the queue. 0;
 * -FI_EAGAIN, -FI_ENOMEM: it needs an announcement, which is not possible; -FI_EOPNOTSUPP: the peer does not support
 * it. */
static int tx_prepare(struct tcp_conn *conn, struct tcp_tx *tx)
{
	const struct tcp_frame *frame = &tcp_frames[tx->hdr.op];

	if (__builtin_expect(tx->match | (tx->hdr.flags & (TCP_FLAG_GROUP | TCP_FLAG_COMMIT)) |
			     (tx->hdr.rma_iov_cnt > TCP_RMA_IOV_BASE), 0) &&
	    !tx_peer_knows(conn, tx, frame->credit))
		return -FI_EOPNOTSUPP;
	if (frame->credit) {
		if (conn->peer.ext) {
			if (tx->match || !tcp_conn_has_credit(conn, tx->len, tx->flat))
				return frame->enter(conn, tx);
			conn->tx.credit -= tx->len + TCP_CREDIT_OVERHEAD;
		}
	} else if (frame->enter) {
		int ret = frame->enter(conn, tx);

		if (ret)
			return ret;
	}
	if (__builtin_expect(tx->size >= TCP_DIRECT_MIN, 0))
		tcp_direct_offer(conn, tx);
	tx->want_ack = (tx->hdr.flags & TCP_FLAG_WANT_ACK) && tx->code != FAB_OP_FETCH_ATOMIC;
	return 0;
}

static int tx_enter(struct tcp_conn *conn, struct tcp_tx *tx)
{
	int ret = conn->state == TCP_CONN_UP ? tx_prepare(conn, tx) : 0;

	if (ret)
		return ret;
	conn->tx.len += tx->size;
	fab_list_add_tail(&conn->tx.queue, &tx->link);
	return 0;
}

/* An accepted operation cannot be sent, since tx_enter() has failed: complete it. */
static void tx_refuse(struct tcp_tx *tx, int err)
{
	const char *text = "no memory to keep it until the peer asks for it";

	if (err == FI_EOPNOTSUPP && (tx->hdr.flags & TCP_FLAG_GROUP))
		text = "the peer has no peer groups: its domain was opened without max_group_id, or it runs another "
		       "libfabric";
	else if (err == FI_EOPNOTSUPP && (tx->hdr.flags & TCP_FLAG_COMMIT))
		text = "the peer does not support FI_COMMIT_COMPLETE: it runs another libfabric, or an older one";
	else if (err == FI_EOPNOTSUPP && tx->hdr.rma_iov_cnt > TCP_RMA_IOV_BASE)
		text = "the peer supports at most 4 remote buffers per operation: it runs another libfabric, or an "
		       "older one";
	else if (err == FI_EOPNOTSUPP && tx->amo)
		text = "the peer does not support this operation: it runs another libfabric, or has another byte order";
	else if (err == FI_EOPNOTSUPP)
		text = "the peer runs another libfabric, which does not report matches";
	tcp_tx_done(tx, err, err, text);
}

bool tcp_tx_all_done(const struct tcp_conn *conn)
{
	return fab_list_empty(&conn->tx.queue) && fab_list_empty(&conn->tx.ack_wait) &&
	       fab_list_empty(&conn->tx.read_wait) && !conn->tx.rts.cnt;
}

static bool tx_must_wait(const struct tcp_conn *conn, const struct tcp_tx *tx)
{
	return tcp_tx_is_behind(conn, tx->waits) || (tx->amo && tcp_frames[tx->hdr.op].must_wait(conn, tx));
}

int tcp_tx_add(struct tcp_conn *conn, struct tcp_tx *tx)
{
	int ret;

	if (conn->state == TCP_CONN_UP && (!fab_list_empty(&conn->tx.held) || tx_must_wait(conn, tx))) {
		fab_list_add_tail(&conn->tx.held, &tx->link);
		return 0;
	}
	ret = tx_enter(conn, tx);
	if (ret != -FI_EOPNOTSUPP)
		return ret;
	tx_refuse(tx, FI_EOPNOTSUPP);
	return 0;
}

/* Move the operations that may start now to the queue. True if the queue has any. */
static bool tx_release(struct tcp_conn *conn)
{
	struct tcp_tx *tx;
	int ret;

	while ((tx = fab_list_first(&conn->tx.held, struct tcp_tx, link)) && !tx_must_wait(conn, tx)) {
		fab_list_remove(&tx->link);
		ret = tx_enter(conn, tx);
		if (ret == -FI_EAGAIN) {
			fab_list_add_head(&conn->tx.held, &tx->link);
			break;
		}
		if (ret)
			tx_refuse(tx, -ret);
	}
	return !fab_list_empty(&conn->tx.queue);
}

/* ---- sending the queue ---- */

/* The iov of one call, while it is being filled. */
struct tx_batch {
	struct iovec iov[TX_IOV_MAX];
	uint32_t iov_cnt;
	uint32_t copied;		/* bytes used of tx_staging */
	uint64_t len;
	uint8_t *staging;
};

static void batch_add(struct tx_batch *batch, void *base, size_t len)
{
	batch->iov[batch->iov_cnt++] = (struct iovec) { base, len };
	batch->len += len;
}

/* Get room for a copy after the previous copies; it extends the last iov entry if that ends there. */
static uint8_t *batch_copy_room(struct tx_batch *batch, size_t len)
{
	uint8_t *pos = batch->staging + batch->copied;
	struct iovec *last = batch->iov_cnt ? &batch->iov[batch->iov_cnt - 1] : NULL;

	batch->copied += len;
	if (last && (uint8_t *) last->iov_base + last->iov_len == pos) {
		last->iov_len += len;
		batch->len += len;
	} else {
		batch_add(batch, pos, len);
	}
	return pos;
}

/* Add a part of a frame whose payload is memory of a device: as much as there is room for its copy. True: all of it.
 * False: no further frame can be added; if nothing was, the copy has failed. */
static __attribute__((noinline)) bool batch_add_device(struct tx_batch *batch, struct tcp_tx *tx)
{
	uint64_t at = tx->sent > tx->hdr_len ? tx->sent - tx->hdr_len : 0, left = tx->size - tx->hdr_len - at;
	uint64_t len = fab_min(left, (uint64_t) FAB_STAGING_LEN - batch->copied);

	if (fab_hmem_from(tx->hmem, batch->staging + batch->copied, tx->iov, at, len))
		return false;
	if (tx->sent < tx->hdr_len)
		batch_add(batch, tx->hdr_buf + tx->sent, tx->hdr_len - tx->sent);
	if (len)
		batch_add(batch, batch->staging + batch->copied, len);
	batch->copied += len;
	return len == left;
}

/* Add the parts of a frame from offset `sent` on. */
static void batch_add_frame(struct tx_batch *batch, struct tcp_tx *tx)
{
	uint64_t skip = tx->sent, left = tx->size - tx->sent;
	const struct iovec flat = { tx->flat, tx->size - tx->hdr_len };
	const struct iovec *iov = tx->flat ? &flat : tx->iov;

	if (skip < tx->hdr_len) {
		batch_add(batch, tx->hdr_buf + skip, tx->hdr_len - skip);
		left -= tx->hdr_len - skip;
		skip = 0;
	} else {
		skip -= tx->hdr_len;
	}
	for (; left; iov++) {
		size_t len = iov->iov_len > skip ? iov->iov_len - skip : 0;

		if (len > left)
			len = left;
		if (len)
			batch_add(batch, (uint8_t *) iov->iov_base + skip, len);
		left -= len;
		skip = skip > iov->iov_len ? skip - iov->iov_len : 0;
	}
}

/* Add a frame that is none for batch_fill(), with this number: its payload is memory of a device. Returns the number
 * for the next frame; -1: no other can be added, or this one could not. */
static __attribute__((noinline)) int batch_add_rare(struct tcp_conn *conn, struct tx_batch *batch, struct tcp_tx *tx,
						    uint8_t id)
{
	if (!tcp_tx_on_device(tx) || batch->iov_cnt + 3 > TX_IOV_MAX ||
	    batch->copied + TCP_TX_COPY_MAX > FAB_STAGING_LEN || batch->len >= TX_CALL_LEN)
		return -1;
	if (tx->hdr.op == TCP_WIRE_READ_RSP && !tcp_above.may_leave(conn, tx))
		return -1;
	if (!tx->sent)
		tx->hdr.id = id++;
	if (!tcp_tx_on_device(tx) || tx->flat)	/* it became a refusal; operands, in memory of the host */
		batch_add_frame(batch, tx);
	else if (!batch_add_device(batch, tx))
		return -1;
	return id;
}

/* Add queued frames for one call. Stops at a response whose region was closed while it waited, if no refusal can be
 * sent, and at a frame whose payload cannot be copied from a device. */
static void batch_fill(struct tcp_conn *conn, struct tx_batch *batch)
{
	uint8_t id = conn->tx.cnt;
	struct fab_list *link;

	fab_list_for_each(&conn->tx.queue, link) {
		struct tcp_tx *tx = fab_container(link, struct tcp_tx, link);

		if (batch->iov_cnt + tx->iov_cnt + 2 > TX_IOV_MAX ||
		    batch->copied + TCP_TX_COPY_MAX > FAB_STAGING_LEN ||
		    (batch->len >= TX_CALL_LEN && tx->size >= TX_LONG_LEN)) {
			int next = batch_add_rare(conn, batch, tx, id);

			if (next < 0)
				return;
			id = (uint8_t) next;
			continue;
		}
		if (tx->hdr.op == TCP_WIRE_READ_RSP && !tcp_above.may_leave(conn, tx))
			return;
		if (!tx->sent) {
			tx->hdr.id = id++;
			if (__builtin_expect(conn->tx.pack_cnt, 0))
				id = pack_number(tx, id);
		}
		if (!tx->sent && tx->size <= TCP_TX_COPY_MAX) {
			uint8_t *room = batch_copy_room(batch, tx->size);

			memcpy(room, tx->hdr_buf, tx->hdr_len);
			if (tx->flat)
				memcpy(room + tx->hdr_len, tx->flat, tx->size - tx->hdr_len);
			else
				tcp_tx_copy(room + tx->hdr_len, tx->iov, tx->size - tx->hdr_len);
		} else {
			batch_add_frame(batch, tx);
		}
	}
}

/* The first n bytes of the queue were sent. */
static void tx_advance(struct tcp_conn *conn, uint64_t n)
{
	while (n) {
		struct tcp_tx *tx = fab_list_first(&conn->tx.queue, struct tcp_tx, link);
		uint64_t left = tx->size - tx->sent;

		if (!tx->sent)
			conn->tx.cnt += 1 + (__builtin_expect(conn->tx.pack_cnt, 0) && tx_is_pack(tx) ? tx->id : 0);
		if (n < left) {
			tx->sent += n;
			return;
		}
		n -= left;
		tx->sent = tx->size;
		tx_sent(conn, tx);
	}
}

/* The stream is full: wait for room, unless there is some again. */
static void tx_block(struct tcp_conn *conn)
{
	if (!conn->io->want_room)
		fab_source_mod(&conn->src, conn->src.events | EPOLLOUT);
	conn->tx.blocked = !conn->io->want_room || !conn->io->want_room(conn);
	conn->stats->full_waits += conn->tx.blocked;
}

static void tx_wait_no_more(struct tcp_conn *conn)
{
	conn->tx.blocked = false;
	if (!conn->io->want_room)
		fab_source_mod(&conn->src, conn->src.events & ~(uint32_t) EPOLLOUT);
}

/* Continue with the first frame in the queue, a control frame, and no other. */
static void tx_unblock_one(struct tcp_conn *conn)
{
	struct tcp_tx *tx = fab_list_first(&conn->tx.queue, struct tcp_tx, link);
	ssize_t n = conn->io->send(conn, tx->hdr_buf + tx->sent, tx->size - tx->sent);

	if (n > 0)
		tx_advance(conn, n);
	if (fab_list_first(&conn->tx.queue, struct tcp_tx, link) != tx)
		tx_wait_no_more(conn);
}

void tcp_tx_unblock(struct tcp_conn *conn)
{
	if (conn->tx.unread_cnt)
		tx_note_read(conn);
	if (conn->state == TCP_CONN_PARKING) {
		tx_unblock_one(conn);
	} else if (conn->state == TCP_CONN_UP) {
		tx_wait_no_more(conn);
		tcp_tx_flush(conn);
	}
}

/*
 * Handle a failed send. If the peer has closed, the data that it sent before must still be read: stop sending, and let
 * the receiving side reach the end (the socket stays readable until then).
 */
static void tx_error(struct tcp_conn *conn, int err)
{
	if (err == EPIPE || err == ECONNRESET) {
		conn->tx.blocked = true;
		return;
	}
	tcp_conn_fail(conn, err, err, "send failed");
}

/* Add credit that is due, too. */
static void tx_add_credit(struct tcp_conn *conn)
{
	struct tcp_credit credit = { .len = conn->owed.credit };
	struct tcp_tx *tx;

	conn->owed.credit_due = false;
	if (conn->state != TCP_CONN_UP || !conn->peer.ext || !credit.len)
		return;
	tx = tcp_tx_control(conn, TCP_WIRE_CREDIT, &credit, sizeof(credit));
	if (!tx)
		return;
	conn->owed.credit = 0;
	conn->tx.len += tx->size;
	fab_list_add_tail(&conn->tx.queue, &tx->link);
}

/* The stream was given the first len bytes of the queue, and n is its answer. True: it may take more. */
static bool tx_written(struct tcp_conn *conn, ssize_t n, uint64_t len)
{
	if (n == -EINTR)
		return true;
	if (n < 0 && n != -EAGAIN) {
		tx_error(conn, -n);
		return false;
	}
	if (n > 0)
		tx_advance(conn, n);
	if (n == -EAGAIN || (uint64_t) n < len)
		tx_block(conn);
	return true;
}

void tcp_tx_resume(struct tcp_conn *conn, ssize_t n)
{
	struct tcp_tx *tx = fab_list_first(&conn->tx.queue, struct tcp_tx, link);

	tx->hdr.id = conn->tx.cnt;
	if (tx_written(conn, n, tx->size))
		tcp_tx_flush(conn);
}

/* The first frame of the queue cannot be sent. */
static __attribute__((noinline, cold)) void tx_cannot_leave(struct tcp_conn *conn)
{
	if (tcp_tx_on_device(fab_list_first(&conn->tx.queue, struct tcp_tx, link)))
		tcp_conn_fail(conn, FI_EIO, FI_EIO, "data could not be copied from the device, or its region was "
			      "closed while the peer was reading it");
	else
		tcp_conn_fail(conn, FI_EACCES, FI_EACCES, "a memory region was closed while the peer was reading it");
}

void tcp_tx_flush(struct tcp_conn *conn)
{
	struct fab_engine *engine = conn->ep->base.engine;

	if (__builtin_expect(conn->owed.credit_due, 0))
		tx_add_credit(conn);

	while (!conn->tx.blocked && conn->state == TCP_CONN_UP &&
	       (!fab_list_empty(&conn->tx.queue) || tx_release(conn))) {
		struct tx_batch batch;
		ssize_t n;

		batch.iov_cnt = batch.copied = batch.len = 0;
		batch.staging = fab_engine_tx_staging(engine);
		if (!batch.staging) {
			tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory to send from");
			return;
		}
		batch_fill(conn, &batch);
		if (!batch.iov_cnt) {
			tx_cannot_leave(conn);
			return;
		}
		n = batch.iov_cnt == 1 ? conn->io->send(conn, batch.iov[0].iov_base, batch.len) :
					 conn->io->sendv(conn, batch.iov, batch.iov_cnt);
		if (!tx_written(conn, n, batch.len))
			return;
	}
}

/* ---- queueing ---- */

void tcp_tx_queue(struct tcp_conn *conn, struct tcp_tx *tx)
{
	if (__builtin_expect(conn->tx.blocked, 0)) {
		tx_queue_full(conn, tx);
		return;
	}
	conn->tx.len += tx->size;
	fab_list_add_tail(&conn->tx.queue, &tx->link);
	if (conn->owed.in_read && conn->tx.control_cnt < ANSWERS_MAX)
		conn->owed.answers = true;
	else
		tcp_tx_flush(conn);
}

void tcp_tx_start(struct tcp_conn *conn)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(&conn->tx.queue, link, next) {
		struct tcp_tx *tx = fab_container(link, struct tcp_tx, link);

		if (tx->code == FAB_OP_MAX)
			continue;
		conn->tx.len -= tx->size;
		fab_list_remove(link);
		fab_list_add_tail(&conn->tx.held, link);
	}
	tcp_tx_flush(conn);
}

void tcp_tx_control_fill(struct tcp_tx *tx, enum tcp_wire_op op, const void *extra, size_t extra_len)
{
	tx->sent = 0;
	tx->want_ack = false;
	tx->amo = false;
	tx->flat = NULL;
	tx->iov_cnt = 0;
	tx->hdr_len = sizeof(tx->hdr) + extra_len;
	tx->size = tx->hdr_len;
	tx->hdr = (struct tcp_hdr) {
		.version = TCP_WIRE_VERSION, .op = op, .hdr_size = tx->hdr_len, .size = tx->size,
	};
	if (extra_len)
		memcpy(tx->hdr_buf + sizeof(tx->hdr), extra, extra_len);
}

struct tcp_tx *tcp_tx_try_control(struct tcp_conn *conn, enum tcp_wire_op op, const void *extra, size_t extra_len)
{
	struct tcp_tx *tx = conn->tx.control_cnt < CONTROL_MAX ? fab_pool_get(&conn->ep->tx->pool) : NULL;

	if (!tx)
		return NULL;
	conn->tx.control_cnt++;
	tx->charged = 0;
	tx->conn = conn;
	tx->code = FAB_OP_MAX;
	tcp_tx_control_fill(tx, op, extra, extra_len);
	return tx;
}

struct tcp_tx *tcp_tx_control(struct tcp_conn *conn, enum tcp_wire_op op, const void *extra, size_t extra_len)
{
	struct tcp_tx *tx = tcp_tx_try_control(conn, op, extra, extra_len);

	if (tx)
		return tx;
	if (conn->tx.control_cnt >= CONTROL_MAX)
		tcp_conn_fail(conn, FI_EIO, EPROTO, "the peer sends more and more requests and reads none of the "
			      "answers");
	else
		tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory for a control frame");
	return NULL;
}

void tcp_tx_ack(struct tcp_conn *conn, uint32_t err)
{
	struct tcp_tx *tx;

	if (conn->peer.ext) {
		const struct tcp_ack ack = { .cnt = conn->owed.ack_cnt, .err = err };
		const size_t size = sizeof(struct tcp_hdr) + sizeof(ack);
		uint8_t *frame = tcp_tx_place(conn, size);

		conn->owed.ack_cnt = 0;
		if (frame) {
			tcp_tx_make(conn, frame, TCP_WIRE_ACK, size, &ack, sizeof(ack));
			tcp_tx_put(conn, frame, size);
			return;
		}
		tx = tcp_tx_control(conn, TCP_WIRE_ACK, &ack, sizeof(ack));
		if (tx)
			tcp_tx_queue(conn, tx);
		return;
	}
	while (conn->owed.ack_cnt && conn->state == TCP_CONN_UP) {
		conn->owed.ack_cnt--;
		tx = tcp_tx_control(conn, TCP_WIRE_MSG, NULL, 0);
		if (!tx)
			return;
		tx->hdr.op_data = TCP_OP_DATA_ACK;
		tcp_tx_queue(conn, tx);
	}
}

/* ---- init and fini ---- */

void tcp_tx_ctx_init(struct tcp_tx_ctx *ctx, const struct fi_tx_attr *attr)
{
	ctx->size = attr->size;
	/* control frames are from this pool, too, so it has no limit: `size` limits operations, and limits for peers
	 * the rest */
	fab_pool_init(&ctx->pool, &(struct fab_pool_attr) { .size = sizeof(struct tcp_tx), .chunk_cnt = 16 });
}

void tcp_tx_ctx_fini(struct tcp_tx_ctx *ctx)
{
	fab_pool_fini(&ctx->pool);
}
