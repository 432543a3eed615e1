/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics. The initiator sends a packet with the operands. The target carries it out in software, and answers with the
 * previous values or with an error. Engine lock held.
 */
#include "rxm/rxm.h"

#include <arpa/inet.h>
#include <string.h>
#include "common/hmem/hmem.h"
#include "common/op/op.h"

/* ---- initiator ---- */

int rxm_atomic_make(struct rxm_ep *ep, const struct fab_op *op, size_t len, struct rxm_tx **out)
{
	const struct fab_amo *amo = op->amo;
	bool fetches = op->code == FAB_OP_FETCH_ATOMIC;
	const struct iovec *operand = fetches ? amo->operand : op->iov;
	uint32_t operand_cnt = fetches ? amo->operand_cnt : op->iov_cnt;
	size_t operand_len = amo->op == FI_ATOMIC_READ ? 0 : fab_iov_len(operand, operand_cnt);
	size_t compare_len = fab_iov_len(amo->compare, amo->compare_cnt);
	struct rxm_amo *req;
	struct rxm_pkt *pkt;
	struct rxm_tx *tx;
	int ret;

	if (op->rma_cnt > RXM_IOV_MAX)
		return -FI_EINVAL;
	ret = rxm_app_tx(ep, op, len, RXM_TX_PACKET, &tx);
	if (ret)
		return ret;
	if (!rxm_tx_packet(ep, tx, RXM_ATOMIC, RXM_OP_AMO + amo->kind, sizeof(*req) + operand_len + compare_len)) {
		rxm_tx_free(ep, tx);
		return -FI_ENOMEM;
	}
	pkt = &tx->buf->pkt;
	req = (struct rxm_amo *) pkt->data;
	memset(req, 0, sizeof(*req));
	for (uint32_t i = 0; i < op->rma_cnt; i++) {
		req->ioc[i] = (struct rxm_ioc) {
			.addr = op->rma[i].addr, .count = op->rma[i].len / fab_atomic_size(amo->datatype),
			.key = op->rma[i].key,
		};
	}
	if (rxm_gather(op->flags, req->data, operand, operand_len) ||
	    rxm_gather(op->flags, req->data + operand_len, amo->compare, compare_len)) {
		rxm_tx_free(ep, tx);
		return -FI_EIO;
	}
	pkt->op.size = sizeof(*req) + operand_len + compare_len;
	pkt->op.amo.datatype = amo->datatype;
	pkt->op.amo.op = amo->op;
	pkt->op.amo.ioc_count = (uint8_t) op->rma_cnt;
	tx->wants_answer = true;
	if (fetches) {
		fab_iov_copy(tx->user, op->iov, op->iov_cnt);
		tx->user_cnt = op->iov_cnt;
		tx->hmem = fab_op_hmem(op->flags);
	}
	*out = tx;
	return 0;
}

void rxm_atomic_rsp(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len)
{
	struct rxm_tx *tx = rxm_tx_asked(conn, pkt->ctrl.msg_id);
	const uint8_t *from = pkt->data + sizeof(struct rxm_amo_rsp);
	struct rxm_amo_rsp rsp;
	size_t want;
	int ret;

	if (!tx || tx->what != RXM_TX_PACKET || tx->buf->pkt.ctrl.type != RXM_ATOMIC || len < sizeof(rsp)) {
		rxm_conn_broken(conn, "the result of an atomic that was not requested");
		return;
	}
	memcpy(&rsp, pkt->data, sizeof(rsp));
	want = rsp.status ? 0 : fab_iov_len(tx->user, tx->user_cnt);
	if (ntohl(rsp.len) != want || len - sizeof(rsp) < want) {
		rxm_conn_broken(conn, "the result of an atomic of another length");
		return;
	}
	if (__builtin_expect(tx->hmem && want, 0)) {
		ret = fab_hmem_to(tx->hmem, tx->user, 0, from, want);
		rxm_tx_told(tx, -ret);
		return;
	}
	for (uint32_t i = 0; i < tx->user_cnt && want; i++) {
		if (tx->user[i].iov_len)	/* otherwise it may be NULL */
			memcpy(tx->user[i].iov_base, from, tx->user[i].iov_len);
		from += tx->user[i].iov_len;
	}
	rxm_tx_told(tx, rxm_wire_err(ntohl(rsp.status)));
}

/* ---- target ---- */

/* A decoded request. Its format has been checked. */
struct request {
	enum fab_atomic_kind kind;
	enum fi_datatype datatype;
	enum fi_op op;
	size_t size;			/* of one element */
	size_t len;			/* of all elements, bytes */
	uint32_t ioc_cnt;
	struct rxm_ioc ioc[RXM_IOV_MAX];
	const uint8_t *operand, *compare;	/* NULL if the request has none */
};

/* Decode a request. 0; an FI_E* with which the request is refused; -1: the packet is malformed. */
static int decode(struct request *req, const struct rxm_pkt *pkt, size_t len)
{
	size_t operand_len, have;

	if (pkt->op.op < RXM_OP_AMO || pkt->op.op > RXM_OP_AMO_COMPARE || len < sizeof(struct rxm_amo) ||
	    pkt->op.amo.ioc_count > RXM_IOV_MAX || pkt->op.size > len)
		return -1;
	have = len - sizeof(struct rxm_amo);
	*req = (struct request) {
		.kind = pkt->op.op - RXM_OP_AMO, .datatype = pkt->op.amo.datatype, .op = pkt->op.amo.op,
		.ioc_cnt = pkt->op.amo.ioc_count,
	};
	memcpy(req->ioc, pkt->data, sizeof(req->ioc));
	if (!fab_atomic_valid(req->kind, req->datatype, req->op))
		return FI_EOPNOTSUPP;
	req->size = fab_atomic_size(req->datatype);
	for (uint32_t i = 0; i < req->ioc_cnt; i++) {
		if (req->ioc[i].count > RXM_AMO_MAX)
			return -1;
		req->len += req->ioc[i].count * req->size;
	}
	operand_len = req->op == FI_ATOMIC_READ ? 0 : req->len;
	if (req->len > RXM_AMO_MAX || have < operand_len * (req->kind == FAB_ATOMIC_COMPARE ? 2 : 1))
		return -1;
	if (operand_len)
		req->operand = ((const struct rxm_amo *) pkt->data)->data;
	if (operand_len && req->kind == FAB_ATOMIC_COMPARE)
		req->compare = req->operand + operand_len;
	return 0;
}

static uint64_t access_of(const struct request *req)
{
	if (req->kind == FAB_ATOMIC_BASE)
		return FI_REMOTE_WRITE;
	return req->op == FI_ATOMIC_READ ? FI_REMOTE_READ : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

/* Carry the request out on a copy of the elements, which goes back to the device. 0 or -FI_E*. */
static __attribute__((noinline)) int run_on_device(const struct request *req, uint8_t hmem, const struct iovec *iov,
						   uint8_t *result, bool writes)
{
	uint8_t copy[RXM_AMO_MAX];
	struct iovec piece = { copy, req->len };
	int ret = fab_hmem_from(hmem, copy, iov, 0, req->len);

	if (ret)
		return ret;
	fab_atomic_pieces(req->datatype, req->op, &piece, 1, req->operand, req->compare, result);
	return writes ? fab_hmem_to(hmem, iov, 0, copy, req->len) : 0;
}

/* Carry the request out, and write the previous values to result, unless that is NULL. 0, or the FI_E* with which the
 * request is refused. */
static int atomic_run(struct rxm_ep *ep, const struct request *req, uint8_t *result)
{
	struct iovec iov[RXM_IOV_MAX * FAB_MR_IOV_LIMIT];
	struct fab_domain *domain = ep->base.domain;
	uint32_t cnt = 0, part;
	struct fab_mr *mr;
	uint8_t hmem = FAB_HMEM_HOST;
	bool locked;
	int ret;

	for (uint32_t i = 0; i < req->ioc_cnt; i++) {
		const struct rxm_ioc *ioc = &req->ioc[i];

		part = fab_countof(iov) - cnt;
		ret = fab_mr_verify(&domain->mr_map, NULL, ioc->key, ioc->addr, ioc->count * req->size, access_of(req),
				    iov + cnt, &part, &mr);
		if (!ret && fab_hmem_join(&hmem, mr->hmem))
			ret = -FI_EOPNOTSUPP;
		if (ret) {
			RXM_WARN(FI_LOG_EP_DATA, "an atomic of a peer on %zu bytes at %#lx under key %#lx is refused: "
				 "%s\n", req->len, (unsigned long) ioc->addr, (unsigned long) ioc->key,
				 fi_strerror(-ret));
			return -ret;
		}
		cnt += part;
	}
	locked = fab_domain_lock_atomics(domain);
	if (__builtin_expect(hmem, 0))
		ret = run_on_device(req, hmem, iov, result, access_of(req) & FI_REMOTE_WRITE);
	else
		fab_atomic_pieces(req->datatype, req->op, iov, cnt, req->operand, req->compare, result);
	if (locked)
		fab_domain_unlock_atomics();
	return hmem ? -ret : 0;
}

void rxm_atomic_req(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len)
{
	struct rxm_ep *ep = conn->ep;
	struct rxm_amo_rsp rsp;
	size_t result_len;
	struct request req;
	struct rxm_tx *tx;
	bool fetches;
	int err = decode(&req, pkt, len);

	if (err < 0) {
		rxm_conn_broken(conn, "an atomic whose elements, operands and targets do not agree");
		return;
	}
	fetches = !err && req.kind != FAB_ATOMIC_BASE;
	tx = rxm_tx_new(ep, RXM_TX_PACKET);
	if (!tx ||
	    !rxm_tx_packet(ep, tx, RXM_ATOMIC_RSP, (enum rxm_op) pkt->op.op, sizeof(rsp) + (fetches ? req.len : 0))) {
		if (tx)
			rxm_tx_free(ep, tx);
		rxm_conn_fail(conn, FI_ENOMEM, "no memory for the result of an atomic");
		return;
	}
	if (!err)
		err = atomic_run(ep, &req, fetches ? tx->buf->pkt.data + sizeof(rsp) : NULL);
	if (!err)
		fab_stats_count(conn->stats, fetches ? FAB_OP_REMOTE_FETCH_ATOMIC : FAB_OP_REMOTE_ATOMIC, req.len);
	result_len = !err && fetches ? req.len : 0;
	rsp = (struct rxm_amo_rsp) { .status = htonl((uint32_t) err), .len = htonl((uint32_t) result_len) };
	memcpy(tx->buf->pkt.data, &rsp, sizeof(rsp));
	tx->pkt_len = sizeof(*pkt) + sizeof(rsp) + result_len;
	tx->buf->pkt.op.size = sizeof(rsp) + result_len;
	tx->buf->pkt.ctrl.msg_id = pkt->ctrl.msg_id;
	tx->control = true;
	rxm_tx_start(conn, tx);
}
