/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics at both ends. Engine lock held.
 *
 *   initiator                                     target
 *   request --AMO_REQ(regions, operands)-->       all operands have arrived: verify, execute, and
 *           <--ACK-- (base, if asked)             acknowledge after the read
 *           <--AMO_RSP(result)-- (fetch, compare) or answer
 *
 * The target stores operands in the state of an unfinished frame (struct tcp_rx_state) or, if they are long, in
 * allocated memory: one request per connection. Results are taken when the operation is executed, so that later
 * operations are not visible in them, and wait in the send queue. The initiator limits the outstanding results to
 * TCP_AMO_WINDOW; a peer that does not is disconnected.
 */
#include "tcp/remote/rma.h"
#include <stdlib.h>
#include <string.h>
#include "common/hmem/hmem.h"
#include "tcp/message/message.h"

_Static_assert((int) TCP_AMO_BASE == FAB_ATOMIC_BASE && (int) TCP_AMO_FETCH == FAB_ATOMIC_FETCH &&
	       (int) TCP_AMO_COMPARE == FAB_ATOMIC_COMPARE, "the wire has our numbers");
_Static_assert(TCP_HDR_MAX >= sizeof(struct tcp_hdr) + TCP_RMA_IOV_MAX * sizeof(struct tcp_rma_iov) +
	       sizeof(struct tcp_amo), "a request's header");

static uint32_t amo_result_cost(uint64_t len)
{
	return len + TCP_AMO_OVERHEAD;
}

/* Give tx memory for a payload of len bytes: room, if its room_len bytes suffice, otherwise allocated. False: no
 * memory. */
static bool amo_take_flat(struct tcp_tx *tx, uint8_t *room, size_t room_len, size_t len)
{
	tx->flat = len <= room_len ? room : malloc(len);
	return tx->flat;
}

void tcp_amo_free(struct tcp_tx *tx)
{
	struct tcp_conn *conn = tx->conn;

	if (tcp_tx_owns_flat(tx))
		free(tx->flat);
	if (tx->code == FAB_OP_MAX)
		conn->remote.amo_owed -= tx->id;
	else
		conn->remote.amo_asked -= tx->id;
}

/* ---- initiator ---- */

/* Of several arrays, some in memory of a device. */
static int amo_operands_from(struct tcp_tx *tx, const struct fab_op *op, uint64_t operand_len, uint64_t compare_len)
{
	uint8_t hmem = fab_op_hmem(op->flags);

	return fab_hmem_from(hmem, tx->flat, op->amo->operand, 0, operand_len) ||
	       fab_hmem_from(hmem, tx->flat + operand_len, op->amo->compare, 0, compare_len) ? -FI_EIO : 0;
}

int tcp_amo_operands(struct tcp_tx *tx, const struct fab_op *op)
{
	const struct fab_amo *amo = op->amo;
	uint64_t len = tx->size - tx->hdr_len, operand_len;

	if (op->code == FAB_OP_ATOMIC || !len)
		return 0;
	if (!amo_take_flat(tx, tx->hdr_buf + tx->hdr_len, sizeof(tx->hdr_buf) - tx->hdr_len, len))
		return -FI_ENOMEM;
	operand_len = fab_iov_len(amo->operand, amo->operand_cnt);
	if (op->flags & FAB_OP_HMEM)
		return amo_operands_from(tx, op, operand_len, len - operand_len);
	tcp_tx_copy(tx->flat, amo->operand, operand_len);
	tcp_tx_copy(tx->flat + operand_len, amo->compare, len - operand_len);
	return 0;
}

bool tcp_amo_must_wait(const struct tcp_conn *conn, const struct tcp_tx *tx)
{
	return tx->code == FAB_OP_FETCH_ATOMIC && conn->remote.amo_asked + amo_result_cost(tx->len) > TCP_AMO_WINDOW;
}

int tcp_amo_prepare(struct tcp_conn *conn, struct tcp_tx *tx)
{
	uint16_t ext = tx->hdr.flags & TCP_FLAG_TAGGED ? TCP_EXT_TAMO : TCP_EXT_AMO;

	if (!(conn->peer.features & ext))
		return -FI_EOPNOTSUPP;
	if (tx->code == FAB_OP_ATOMIC)
		return tcp_rma_write_enter(conn, tx);
	tx->id = amo_result_cost(tx->len);
	conn->remote.amo_asked += tx->id;
	return 0;
}

void tcp_amo_sent(struct tcp_conn *conn, struct tcp_tx *tx)
{
	if (tx->code == FAB_OP_ATOMIC)
		tcp_quiet_sent(conn, tx);
	else
		tcp_rma_asked(conn, tx);
}

void tcp_amo_rsp(struct tcp_conn *conn)
{
	struct tcp_tx *tx = fab_list_first(&conn->tx.read_wait, struct tcp_tx, link);
	uint64_t len = conn->rx.hdr.size - conn->rx.hdr.hdr_size;
	struct tcp_amo_rsp rsp;

	memcpy(&rsp, tcp_rx_extra(conn), sizeof(rsp));
	if (!tx || tx->hdr.op != TCP_WIRE_AMO_REQ || len != (rsp.err ? 0 : tx->len)) {
		tcp_rx_broken(conn, "result of an atomic that was not asked for");
		return;
	}
	if (!rsp.err) {
		tcp_rma_take(conn, tx);
		return;
	}
	fab_list_remove(&tx->link);
	tcp_rma_refused(tx, tcp_rx_errno(rsp.err));
}

bool tcp_amo_rsp_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len)
{
	struct tcp_amo_rsp rsp;

	memcpy(&rsp, rest, sizeof(rsp));
	return !rsp.err && (conn->peer.features & TCP_EXT_AMO) &&
	       tcp_rma_take_whole(conn, TCP_WIRE_AMO_REQ, rest + sizeof(rsp), len);
}

/* ---- target: the request ---- */

/* A request, checked as far as possible without access to memory. */
struct request {
	enum fab_atomic_kind kind;
	enum fi_datatype datatype;
	enum fi_op op;
	uint64_t len;			/* of the elements, in bytes */
	uint64_t operand_len;		/* after the header, for each kind of operand */
	bool tagged;			/* rma describes tagged receives: offset, length, tag */
	uint32_t rma_cnt;
	struct tcp_rma_iov rma[TCP_RMA_IOV_MAX];
};

/* Decode the current header. 0; the FI_E* for a refusal; -1: the peer violates the protocol. */
static int amo_request_decode(struct tcp_conn *conn, struct request *req)
{
	const struct tcp_hdr *hdr = &conn->rx.hdr;
	uint64_t payload = hdr->size - hdr->hdr_size;
	struct tcp_amo amo;
	size_t size;

	if (!tcp_rma_targets(conn, req->rma, &req->len) || hdr->op_data > TCP_AMO_COMPARE ||
	    req->len > TCP_AMO_MAX || payload > 2 * TCP_AMO_MAX)
		return -1;
	req->rma_cnt = hdr->rma_iov_cnt;
	req->tagged = hdr->flags & TCP_FLAG_TAGGED;
	memcpy(&amo, (const uint8_t *) tcp_rx_extra(conn) + req->rma_cnt * sizeof(*req->rma), sizeof(amo));
	req->kind = hdr->op_data;
	req->datatype = amo.datatype;
	req->op = amo.op;
	if (!fab_atomic_valid(req->kind, req->datatype, req->op))
		return FI_EOPNOTSUPP;		/* a later version may have this operation */
	req->operand_len = req->op == FI_ATOMIC_READ ? 0 : req->len;
	if (payload != (req->kind == FAB_ATOMIC_COMPARE ? 2 : 1) * req->operand_len)
		return -1;
	size = fab_atomic_size(req->datatype);
	for (uint32_t i = 0; i < req->rma_cnt; i++) {
		if (req->rma[i].len % size)
			return -1;
	}
	return 0;
}

static void amo_done(struct tcp_conn *conn);

void tcp_amo_req(struct tcp_conn *conn)
{
	struct tcp_rx_state *rx = &conn->rx;
	uint64_t payload = rx->hdr.size - rx->hdr.hdr_size;
	struct request req;
	int ret = amo_request_decode(conn, &req);

	if (ret < 0) {
		tcp_rx_broken(conn, "atomic whose elements, operands and targets do not agree");
		return;
	}
	rx->refuse = ret;
	rx->operands = payload <= sizeof(rx->operand_room) ? rx->operand_room : malloc(payload);
	if (!rx->operands)
		rx->refuse = FI_ENOMEM;
	if (rx->refuse) {
		tcp_amo_fail_all(conn);
		tcp_rx_expect(conn, 0, payload, amo_done);
		return;
	}
	tcp_rx_aim(rx, &(struct iovec) { rx->operands, payload }, 1, payload, FAB_HMEM_HOST);
	tcp_rx_expect(conn, payload, 0, amo_done);
}

void tcp_amo_fail_all(struct tcp_conn *conn)
{
	if (conn->rx.operands != conn->rx.operand_room)
		free(conn->rx.operands);
	conn->rx.operands = NULL;
}

/* ---- target: execution ---- */

static uint64_t amo_request_access(const struct request *req)
{
	if (req->kind == FAB_ATOMIC_BASE)
		return FI_REMOTE_WRITE;
	return req->op == FI_ATOMIC_READ ? FI_REMOTE_READ : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

/* Append bytes [at, at + len) of a posted receive to iov. False: too many pieces. */
static bool amo_receive_pieces(const struct fab_rx *rx, uint64_t at, uint64_t len, struct iovec *iov, uint32_t *cnt)
{
	for (const struct iovec *piece = rx->iov; len; piece++) {
		size_t skip = at < piece->iov_len ? at : piece->iov_len;
		size_t n = piece->iov_len - skip < len ? piece->iov_len - skip : len;

		at -= skip;
		len -= n;
		if (!n)
			continue;
		if (*cnt == TCP_IOV_LIMIT)
			return false;
		iov[(*cnt)++] = (struct iovec) { (uint8_t *) piece->iov_base + skip, n };
	}
	return true;
}

/* Find the targets of an atomic on tagged receives: the receives that messages with these tags would match now. They
 * stay posted. *hmem is the number of their memory. 0 or -FI_E*. */
static int amo_tagged_targets(struct tcp_conn *conn, const struct request *req, struct iovec *iov, uint32_t *cnt,
			      uint8_t *hmem)
{
	const uint64_t access = amo_request_access(req);

	*cnt = 0;
	*hmem = FAB_HMEM_HOST;
	if (conn->ep->rx->owner || (conn->ep->base.caps & access) != access)
		return -FI_EOPNOTSUPP;
	for (const struct tcp_rma_iov *at = req->rma; at < req->rma + req->rma_cnt; at++) {
		struct fab_rx *rx = tcp_rx_find(conn, FAB_CLASS_TAGGED, at->key, 0);

		if (!rx)
			return -FI_ENOENT;
		if (at->addr > rx->len || at->len > rx->len - at->addr)
			return -FI_ETRUNC;
		if (!amo_receive_pieces(rx, at->addr, at->len, iov, cnt) ||
		    fab_hmem_join(hmem, fab_op_hmem(rx->flags)))
			return -FI_EINVAL;
	}
	return 0;
}

static const uint8_t *amo_compare(const struct tcp_conn *conn, const struct request *req)
{
	return req->kind == FAB_ATOMIC_COMPARE ? conn->rx.operands + req->operand_len : NULL;
}

/* Execute the request on memory of a device: on a copy of the elements, which goes back there. 0 or -FI_E*. */
static __attribute__((noinline)) int amo_on_device(struct tcp_conn *conn, const struct request *req, uint8_t hmem,
						   const struct iovec *iov, uint8_t *result)
{
	struct fab_domain *domain = conn->ep->base.domain;
	uint8_t *copy = malloc(req->len + 1);
	struct iovec piece = { copy, req->len };
	bool locked;
	int ret;

	if (!copy)
		return -FI_ENOMEM;
	locked = fab_domain_lock_atomics(domain);
	ret = fab_hmem_from(hmem, copy, iov, 0, req->len);
	if (!ret)
		fab_atomic_pieces(req->datatype, req->op, &piece, 1, req->operand_len ? conn->rx.operands : NULL,
				  amo_compare(conn, req), result);
	if (!ret && (amo_request_access(req) & FI_REMOTE_WRITE))
		ret = fab_hmem_to(hmem, iov, 0, copy, req->len);
	if (locked)
		fab_domain_unlock_atomics();
	free(copy);
	return ret;
}

/* Execute the request, and store the result in result unless that is NULL. 0 or the FI_E* for a refusal. */
static int amo_request_run(struct tcp_conn *conn, const struct request *req, uint8_t *result)
{
	const uint8_t *operands = conn->rx.operands;
	struct fab_domain *domain = conn->ep->base.domain;
	struct iovec iov[TCP_IOV_LIMIT];
	bool writes = amo_request_access(req) & FI_REMOTE_WRITE, locked;
	uint8_t hmem = FAB_HMEM_HOST;
	uint32_t cnt;
	int ret;

	ret = req->tagged ? amo_tagged_targets(conn, req, iov, &cnt, &hmem) :
	      tcp_rma_verify(conn, req->rma, req->rma_cnt, amo_request_access(req), conn->rx.mr, iov, &cnt);
	if (!ret && writes)
		ret = tcp_rma_may_commit(conn, req->tagged);
	if (ret)
		return -ret;
	if (__builtin_expect(domain->attr.caps & FI_HMEM, 0)) {
		ret = req->tagged ? 0 : tcp_rma_hmem(conn, conn->rx.mr, req->rma_cnt, &hmem);
		if (ret || hmem)
			return ret ? -ret : -amo_on_device(conn, req, hmem, iov, result);
	}
	locked = fab_domain_lock_atomics(domain);
	fab_atomic_pieces(req->datatype, req->op, iov, cnt, req->operand_len ? operands : NULL,
			  amo_compare(conn, req), result);
	if (locked)
		fab_domain_unlock_atomics();
	return writes ? -tcp_rma_commit(conn) : 0;
}

/* Count the access in counters for accesses of peers. */
static void amo_request_count(struct tcp_conn *conn, const struct request *req)
{
	enum fab_op_code code = req->kind == FAB_ATOMIC_BASE ? FAB_OP_REMOTE_ATOMIC : FAB_OP_REMOTE_FETCH_ATOMIC;
	const struct fab_comp comp = { .flags = fab_op_desc[code].cq_flags, .len = req->len };

	fab_stats_count(conn->stats, code, comp.len);
	fab_ep_complete(&conn->ep->base, code, &comp, false);
	if (!req->tagged && (amo_request_access(req) & FI_REMOTE_WRITE))
		tcp_rma_count(conn);
}

/* Execute a fetching request, and answer it in the stream, if there is a place for that. Otherwise nothing was done,
 * except that *err is the FI_E* for a refusal, if there is one. */
static bool amo_fetch_now(struct tcp_conn *conn, const struct request *req, uint32_t *err)
{
	const struct tcp_amo_rsp rsp = { 0 };
	const size_t hdr_len = sizeof(struct tcp_hdr) + sizeof(rsp);
	uint8_t *frame = req->len <= TCP_TX_COPY_MAX - hdr_len ? tcp_tx_place(conn, hdr_len + req->len) : NULL;

	if (!frame)
		return false;
	*err = amo_request_run(conn, req, frame + hdr_len);
	if (*err)
		return false;
	tcp_tx_make(conn, frame, TCP_WIRE_AMO_RSP, hdr_len + req->len, &rsp, sizeof(rsp));
	tcp_tx_put(conn, frame, hdr_len + req->len);
	amo_request_count(conn, req);		/* this may start deferred work */
	return true;
}

/* Make the answer with a result of len bytes, which the caller writes to tx->flat; or an acknowledgement. NULL: the
 * connection was ended. */
static struct tcp_tx *amo_answer_new(struct tcp_conn *conn, uint64_t len)
{
	struct tcp_amo_rsp rsp = { 0 };
	struct tcp_tx *tx;

	if (conn->remote.amo_owed + amo_result_cost(len) > TCP_AMO_WINDOW) {
		tcp_rx_broken(conn, "more atomics with results than the limit");
		return NULL;
	}
	tx = tcp_tx_control(conn, TCP_WIRE_AMO_RSP, &rsp, sizeof(rsp));
	if (!tx)
		return NULL;
	tx->amo = true;
	tx->id = amo_result_cost(len);
	conn->remote.amo_owed += tx->id;
	amo_take_flat(tx, tx->inject, sizeof(tx->inject), len);
	return tx;
}

static void amo_answer_send(struct tcp_conn *conn, struct tcp_tx *tx, uint64_t len, uint32_t err)
{
	struct tcp_amo_rsp rsp = { .err = err };

	memcpy(tx->hdr_buf + sizeof(tx->hdr), &rsp, sizeof(rsp));
	if (!err)
		tx->size += len;
	tx->hdr.size = tx->size;
	tcp_tx_queue(conn, tx);
}

static void amo_fetch_done(struct tcp_conn *conn, const struct request *req, uint32_t err)
{
	struct tcp_tx *tx;

	if (!err && amo_fetch_now(conn, req, &err))
		return;
	tx = amo_answer_new(conn, req->len);
	if (!tx)
		return;
	if (!err)
		err = tx->flat ? amo_request_run(conn, req, tx->flat) : FI_ENOMEM;
	if (!err)
		amo_request_count(conn, req);
	amo_answer_send(conn, tx, req->len, err);
}

static void amo_base_done(struct tcp_conn *conn, const struct request *req, uint32_t err)
{
	if (!err)
		err = amo_request_run(conn, req, NULL);
	if (err) {
		tcp_rma_refuse(conn, err);
		return;
	}
	amo_request_count(conn, req);
	tcp_quiet_taken(conn);
	tcp_rx_delivered(conn);
}

static void amo_request_done(struct tcp_conn *conn, const struct request *req)
{
	if (req->kind == FAB_ATOMIC_BASE)
		amo_base_done(conn, req, conn->rx.refuse);
	else
		amo_fetch_done(conn, req, conn->rx.refuse);
	tcp_amo_fail_all(conn);
}

/* All operands have arrived, or were dropped. */
static void amo_done(struct tcp_conn *conn)
{
	struct request req;

	amo_request_decode(conn, &req);
	amo_request_done(conn, &req);
}

bool tcp_amo_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len)
{
	struct tcp_rx_state *rx = &conn->rx;
	const size_t more = rx->hdr.hdr_size - sizeof(rx->hdr);
	struct request req;

	if (!(conn->peer.features & TCP_EXT_AMO) || rx->hdr.rma_iov_cnt != 1 || len > sizeof(rx->operand_room))
		return false;
	memcpy(rx->hdr_buf + sizeof(rx->hdr), rest, more);
	if (amo_request_decode(conn, &req))
		return false;
	rx->refuse = 0;
	rx->operands = rx->operand_room;
	memcpy(rx->operands, rest + more, len);
	amo_request_done(conn, &req);
	return true;
}
