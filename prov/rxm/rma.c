/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * RMA reads and writes, which the provider below carries out. Data for the target's completion queue is sent in a
 * packet behind the write, so that all 64 bits arrive over any provider. The packet leaves when the write has
 * completed, or at once if the write is injected. Where the provider below cannot tell whether a write has reached the
 * target's memory, a packet behind the write asks for an answer, which the target's software sends.
 */
#include "rxm/rxm.h"

#include <string.h>

/* True if the payload goes through a packet buffer: it is short, and a buffer of it has no descriptor. A copy costs
 * less than finding a registration, and much less than making one. */
static bool is_copied(const struct rxm_ep *ep, const struct fab_op *op, size_t len)
{
	uint32_t i = 0;

	if (!ep->domain->mr_local || len > RXM_COPY_MAX || (op->flags & FAB_OP_HMEM))
		return false;
	while (i < op->iov_cnt && op->desc && op->desc[i])
		i++;
	return i < op->iov_cnt;
}

static void copied_read_done(struct rxm_tx *tx, int err, const char *text)
{
	const uint8_t *from = tx->hold->pkt.data;

	for (uint32_t i = 0; i < tx->user_cnt && !err; i++) {
		if (tx->user[i].iov_len)	/* otherwise it may be NULL */
			memcpy(tx->user[i].iov_base, from, tx->user[i].iov_len);
		from += tx->user[i].iov_len;
	}
	rxm_app_done(tx, err, text);
}

/* Prepare the local buffers so that the provider below can use them after the call. */
static int make_local(struct rxm_ep *ep, const struct fab_op *op, struct rxm_tx *tx)
{
	bool reads = op->code == FAB_OP_READ;

	if (!(op->flags & FI_INJECT) && !is_copied(ep, op, tx->len))
		return rxm_tx_local(ep, tx, op->iov, op->desc, op->iov_cnt, reads ? RXM_PIN_FILL : FI_WRITE);
	tx->hold_bufs = &ep->big;
	tx->hold = rxm_buf_get(tx->hold_bufs);
	if (!tx->hold)
		return -FI_ENOMEM;
	if (reads) {
		fab_iov_copy(tx->user, op->iov, op->iov_cnt);
		tx->user_cnt = op->iov_cnt;
		tx->done = copied_read_done;
	} else {
		if (rxm_gather(op->flags, tx->hold->pkt.data, op->iov, tx->len))
			return -FI_EIO;
	}
	tx->iov[0] = (struct iovec) { tx->hold->pkt.data, tx->len };
	tx->desc[0] = tx->hold->desc;
	tx->iov_cnt = 1;
	return 0;
}

/* Make the packet after a write, which completes the operation. */
static int make_written(struct rxm_ep *ep, const struct fab_op *op, struct rxm_tx *tx)
{
	struct rxm_tx *then;
	int ret = rxm_app_tx(ep, op, tx->len, RXM_TX_PACKET, &then);

	if (ret)
		return ret;
	tx->then = then;
	tx->done = NULL;
	tx->app = false;
	if (!rxm_tx_packet(ep, then, RXM_WRITTEN, RXM_OP_MSG, 0))
		return -FI_ENOMEM;
	then->buf->pkt.op.size = tx->len;
	if (op->flags & FI_REMOTE_CQ_DATA) {
		then->buf->pkt.op.data = op->data;
		then->buf->pkt.op.flags = RXM_FLAG_CQ_DATA;
	}
	if (ep->domain->has_dc && tx->rma_cnt == 1) {
		/* a refused write does not end the connection there, so the target checks it before it reports data */
		then->below_flags = tx->below_flags;
		then->buf->pkt.op.flags |= RXM_FLAG_UNSURE;
		then->buf->pkt.op.tag = tx->rma[0].key;
		then->buf->pkt.ctrl.ctrl_data = tx->rma[0].addr;
	} else if (ep->domain->has_dc) {
		tx->below_flags = FI_DELIVERY_COMPLETE;	/* too much to check; the packet waits for it */
	} else if (op->flags & RXM_DELIVERED) {
		then->wants_answer = true;
		then->buf->pkt.op.flags |= RXM_FLAG_ACK;
	}
	return 0;
}

/* The completion level of a write for the provider below, which supports all of them. If nobody can observe the level,
 * the lowest. Deferred work has one that reports a refusal, since its counter can learn of none afterwards. */
static uint64_t level_below(const struct rxm_ep *ep, const struct fab_op *op)
{
	if (!fab_ep_tx_is_observed(&ep->base, op))
		return FI_INJECT_COMPLETE;
	if (op->hooked || (op->flags & RXM_DELIVERED))
		return FI_DELIVERY_COMPLETE;
	return op->flags & (FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE);
}

int rxm_rma_make(struct rxm_ep *ep, const struct fab_op *op, size_t len, struct rxm_tx **out)
{
	struct rxm_tx *tx;
	uint64_t remote = 0;
	bool delivered;
	int ret;

	for (uint32_t i = 0; i < op->rma_cnt; i++)
		remote += op->rma[i].len;
	if (remote != len || op->rma_cnt > ep->base.info->tx_attr->rma_iov_limit ||
	    op->iov_cnt > ep->base.info->tx_attr->iov_limit)
		return -FI_EINVAL;
	ret = rxm_app_tx(ep, op, len, op->code == FAB_OP_READ ? RXM_TX_READ : RXM_TX_WRITE, &tx);
	if (ret)
		return ret;
	ret = make_local(ep, op, tx);
	memcpy(tx->rma, op->rma, op->rma_cnt * sizeof(*op->rma));
	tx->rma_cnt = op->rma_cnt;
	tx->parts = 1;
	delivered = op->code == FAB_OP_WRITE && (op->flags & RXM_DELIVERED);
	if (op->code == FAB_OP_WRITE && ep->domain->has_dc)
		tx->below_flags = level_below(ep, op);
	if (!ret && ((op->flags & FI_REMOTE_CQ_DATA) || (delivered && !ep->domain->has_dc)))
		ret = make_written(ep, op, tx);
	if (ret) {
		rxm_tx_free(ep, tx);
		return ret;
	}
	*out = tx;
	return 0;
}
