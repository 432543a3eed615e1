/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rendezvous: a message stays at its sender until a receive has matched it. Engine lock held.
 *
 *   sender                                   receiver
 *   RNDV_REQ(where it is) ------------------> a receive takes it
 *                                            reads it, by the provider below
 *   complete <-------------------- RNDV_DONE complete
 *
 * By write, if the receiver wants that and the sender is one of ours:
 *   RNDV_REQ ------------------------------->
 *   writes it <------------------- RNDV_WR(where to)
 *   complete, RNDV_WDONE ------------------> complete
 */
#include "rxm/rxm.h"

#include <string.h>

/* ---- sender ---- */

/* The remote address of buf, in a region that begins at base, for the provider below. */
static uint64_t remote_addr(const struct rxm_domain *domain, const void *buf, const void *base)
{
	return (uintptr_t) buf - (domain->mr_virt ? 0 : (uintptr_t) base);
}

#define REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

/* rxm_pin_take() or rxm_pin_make(). */
typedef int pin_fn(struct rxm_ep *ep, struct rxm_tx *tx, const void *buf, size_t len, uint64_t access,
		   struct fid_mr **mr);

/* Describe the buffers in iov in rndv, for access by the peer: by the application's descriptors (desc, or NULL), or by
 * registrations that pin gets. */
static int offer(struct rxm_ep *ep, struct rxm_tx *tx, const struct iovec *iov, void **desc, uint32_t cnt, pin_fn *pin,
		 uint64_t access, struct rxm_rndv *rndv)
{
	memset(rndv, 0, sizeof(*rndv));
	for (uint32_t i = 0; i < cnt; i++) {
		struct rxm_mr *named = ep->domain->uses_desc && desc ? desc[i] : NULL;
		struct rxm_iov *out = &rndv->iov[rndv->count];
		const void *base = iov[i].iov_base;
		struct fid_mr *mr;
		int ret = 0;

		if (!iov[i].iov_len)
			continue;
		mr = rxm_mr_for(named, access & REMOTE);
		if (mr)
			base = named->base;
		else
			ret = pin(ep, tx, iov[i].iov_base, iov[i].iov_len, access, &mr);
		if (ret)
			return ret;
		tx->user_desc[rndv->count] = ep->domain->uses_desc ? fi_mr_desc(mr) : NULL;
		tx->user[rndv->count] = iov[i];
		out->addr = remote_addr(ep->domain, iov[i].iov_base, base);
		out->len = iov[i].iov_len;
		out->key = fi_mr_key(mr);
		rndv->count++;
	}
	tx->user_cnt = rndv->count;
	return 0;
}

int rxm_rndv_make(struct rxm_ep *ep, const struct fab_op *op, struct rxm_tx *tx)
{
	struct rxm_op_hdr *hdr;
	struct rxm_rndv rndv;
	int ret;

	if (!rxm_tx_packet(ep, tx, RXM_RNDV_REQ, rxm_op_of(op), sizeof(rndv)))
		return -FI_ENOMEM;
	hdr = &tx->buf->pkt.op;
	hdr->size = tx->len;
	hdr->tag = op->tag;
	if (op->flags & FI_REMOTE_CQ_DATA) {
		hdr->flags |= RXM_FLAG_CQ_DATA;
		hdr->data = op->data;
	}
	ret = offer(ep, tx, op->iov, op->desc, op->iov_cnt, rxm_pin_take, RXM_PIN_OFFER, &rndv);
	memcpy(tx->buf->pkt.data, &rndv, sizeof(rndv));
	tx->wants_answer = true;
	return ret;
}

int rxm_rndv_convert(struct rxm_ep *ep, struct rxm_tx *tx)
{
	const struct rxm_op_hdr op = tx->buf->pkt.op;
	struct iovec iov[RXM_IOV_LIMIT] = { { tx->buf->pkt.data, tx->pkt_len - sizeof(struct rxm_pkt) } };
	uint32_t cnt = tx->iov_cnt ? tx->iov_cnt : 1;
	struct rxm_rndv rndv;
	int ret;

	if (tx->iov_cnt)
		fab_iov_copy(iov, tx->iov, tx->iov_cnt);
	tx->iov_cnt = 0;
	tx->hold = tx->buf;
	tx->hold_bufs = tx->bufs;
	if (!rxm_tx_packet(ep, tx, RXM_RNDV_REQ, (enum rxm_op) op.op, sizeof(rndv)))
		return -FI_ENOMEM;
	tx->buf->pkt.op = op;
	tx->buf->pkt.op.flags &= ~(RXM_FLAG_ACK | RXM_FLAG_MATCH);
	ret = offer(ep, tx, iov, NULL, cnt, rxm_pin_make, RXM_PIN_OFFER, &rndv);
	memcpy(tx->buf->pkt.data, &rndv, sizeof(rndv));
	return ret;
}

void rxm_answer(struct rxm_conn *conn, enum rxm_type type, uint64_t msg_id, int err)
{
	struct rxm_tx *tx;

	if (err && !conn->ext) {
		/* the answer has no field for an error: end the connection, which completes the peer's operation */
		rxm_conn_fail(conn, err, "a transfer of the peer failed here, and its library has no other way to "
			      "report that");
		return;
	}
	tx = rxm_tx_new(conn->ep, RXM_TX_PACKET);
	if (!tx || !rxm_tx_packet(conn->ep, tx, type, RXM_OP_MSG, 0)) {
		if (tx)
			rxm_tx_free(conn->ep, tx);
		rxm_conn_fail(conn, FI_ENOMEM, "no memory to answer the peer");
		return;
	}
	tx->buf->pkt.ctrl.msg_id = msg_id;
	tx->buf->pkt.ctrl.ctrl_data = (uint64_t) err;
	tx->control = true;
	rxm_tx_start(conn, tx);
}

/* ---- sender, by write ---- */

static void written(struct rxm_tx *tx, int err, const char *text)
{
	struct rxm_tx *send = tx->conn->state == RXM_CONN_DOWN ? NULL : rxm_tx_asked(tx->conn, tx->msg_id);
	uint64_t theirs = tx->data;
	struct rxm_conn *conn = tx->conn;

	if (!send)
		return;
	rxm_tx_answered(send, err, text);
	if (conn->state != RXM_CONN_DOWN)
		rxm_answer(conn, RXM_RNDV_WDONE, theirs, err);
}

/* Copy the description of the peer's memory from a packet. False: it is invalid. */
static bool read_rndv(struct rxm_tx *tx, const struct rxm_rndv *rndv, uint64_t len)
{
	tx->rma_cnt = 0;
	for (uint32_t i = 0; i < rndv->count && len; i++) {
		uint64_t part = fab_min(rndv->iov[i].len, len);

		if (!part)
			continue;
		tx->rma[tx->rma_cnt++] = (struct fi_rma_iov) {
			.addr = rndv->iov[i].addr, .len = part, .key = rndv->iov[i].key,
		};
		len -= part;
	}
	return !len;
}

static void set_parts(const struct rxm_ep *ep, struct rxm_tx *tx)
{
	tx->parts = tx->rma_cnt > ep->domain->below_info->tx_attr->rma_iov_limit ? tx->rma_cnt : 1;
}

void rxm_rndv_wr(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len)
{
	struct rxm_tx *send = rxm_tx_asked(conn, pkt->ctrl.msg_id), *tx;
	struct rxm_rndv rndv;

	if (!send || !send->user_cnt || send->writing || len < sizeof(rndv) || !pkt->op.size ||
	    pkt->op.size > send->len) {
		rxm_conn_broken(conn, "asks for a message that was not announced");
		return;
	}
	memcpy(&rndv, pkt->data, sizeof(rndv));
	tx = rxm_tx_new(conn->ep, RXM_TX_WRITE);
	if (!tx) {
		rxm_conn_fail(conn, FI_ENOMEM, "no memory to write a message to the peer");
		return;
	}
	if (rndv.count > RXM_IOV_MAX || !read_rndv(tx, &rndv, pkt->op.size)) {
		rxm_tx_free(conn->ep, tx);
		rxm_conn_broken(conn, "gives less memory for a message than it announced");
		return;
	}
	tx->msg_id = pkt->ctrl.msg_id;
	tx->data = pkt->ctrl.ctrl_data;
	tx->iov_cnt = 0;
	for (uint64_t left = pkt->op.size; left; tx->iov_cnt++) {
		uint64_t part = fab_min((uint64_t) send->user[tx->iov_cnt].iov_len, left);

		tx->iov[tx->iov_cnt] = (struct iovec) { send->user[tx->iov_cnt].iov_base, part };
		tx->desc[tx->iov_cnt] = send->user_desc[tx->iov_cnt];
		left -= part;
	}
	tx->done = written;
	tx->control = true;
	if (conn->ep->domain->has_dc)
		tx->below_flags = FI_DELIVERY_COMPLETE;	/* if it is refused, the message has failed */
	send->writing = true;
	set_parts(conn->ep, tx);
	rxm_tx_start(conn, tx);
}

/* ---- receiver ---- */

static void received(struct rxm_tx *tx, int err, const char *text)
{
	struct rxm_conn *conn = tx->conn;
	const struct fab_cq_fail fail = { .err = err, .prov_errno = err, .text = text };
	bool answer = tx->what == RXM_TX_READ && conn->state == RXM_CONN_UP;
	uint64_t msg_id = tx->msg_id;

	rxm_rx_finish(conn->ep, conn->stats, &tx->into, &tx->msg, err ? &fail : NULL);
	if (answer)
		rxm_answer(conn, RXM_RNDV_DONE, msg_id, err);
}

bool rxm_rndv_fetches(const struct rxm_tx *tx)
{
	return tx->done == received;
}

/* Make an iov of the buffers of a matched receive. */
static uint32_t into_iov(const struct fab_into *into, struct iovec *iov, void **desc)
{
	size_t left = into->take;
	uint32_t cnt = 0;

	if (into->rx->flags & FI_MULTI_RECV) {
		iov[0] = (struct iovec) { into->start, into->take };
		desc[0] = fab_rx_desc(&rxm_recv_ops, into->rx)[0];
		return 1;
	}
	for (; left; cnt++) {
		size_t part = fab_min(into->rx->iov[cnt].iov_len, left);

		iov[cnt] = (struct iovec) { into->rx->iov[cnt].iov_base, part };
		desc[cnt] = fab_rx_desc(&rxm_recv_ops, into->rx)[cnt];
		left -= part;
	}
	return cnt;
}

static int start_read(struct rxm_conn *conn, struct rxm_tx *tx, const struct rxm_rndv *rndv)
{
	read_rndv(tx, rndv, tx->into.take);
	set_parts(conn->ep, tx);
	tx->iov_cnt = (uint8_t) into_iov(&tx->into, tx->iov, tx->desc);
	return rxm_fetch_start(conn, tx);
}

static int start_write(struct rxm_conn *conn, struct rxm_tx *tx)
{
	struct iovec iov[RXM_IOV_LIMIT];
	void *desc[RXM_IOV_LIMIT];
	struct rxm_rndv rndv;
	uint32_t cnt;
	int ret;

	tx->what = RXM_TX_PACKET;
	if (!rxm_tx_packet(conn->ep, tx, RXM_RNDV_WR, RXM_OP_MSG, sizeof(rndv)))
		return -FI_ENOMEM;
	cnt = into_iov(&tx->into, iov, desc);
	ret = offer(conn->ep, tx, iov, desc, cnt, rxm_pin_make, RXM_PIN_LEND, &rndv);
	if (ret)
		return ret;
	memcpy(tx->buf->pkt.data, &rndv, sizeof(rndv));
	tx->buf->pkt.ctrl.msg_id = tx->msg_id;
	tx->buf->pkt.op.size = tx->into.take;
	tx->control = true;
	tx->wants_answer = true;
	rxm_tx_start(conn, tx);
	return 0;
}

void rxm_rndv_take(struct rxm_conn *conn, const struct rxm_rndv *rndv, uint64_t msg_id, const struct fab_into *into,
		   const struct fab_msg *msg)
{
	struct rxm_ep *ep = conn->ep;
	struct rxm_tx *tx;
	int ret;

	if (!into->take) {
		rxm_rx_finish(ep, conn->stats, into, msg, NULL);
		rxm_answer(conn, RXM_RNDV_DONE, msg_id, 0);
		return;
	}
	tx = rxm_tx_new(ep, RXM_TX_READ);
	ret = -FI_ENOMEM;
	if (tx) {
		tx->conn = conn;
		tx->into = *into;
		tx->msg = *msg;
		tx->msg_id = msg_id;
		tx->done = received;
		ret = rxm_params.rndv_write && conn->ext && !(into->rx->flags & FAB_OP_HMEM) ?
		      start_write(conn, tx) : start_read(conn, tx, rndv);
	}
	if (!ret)
		return;
	if (tx)
		rxm_tx_free(ep, tx);
	rxm_rx_finish(ep, conn->stats, into, msg, &(struct fab_cq_fail) {
		      .err = -ret, .prov_errno = -ret, .text = "the receive buffer cannot be registered" });
	rxm_answer(conn, RXM_RNDV_DONE, msg_id, -ret);
}
