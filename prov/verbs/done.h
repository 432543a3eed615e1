/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From work completions to the entries of fi_cq_read(3), all inline, for the usual completions. post.c handles the
 * others. Engine lock held everywhere.
 */
#ifndef VRB_DONE_H
#define VRB_DONE_H

#include <arpa/inet.h>
#include "verbs/srx.h"

#define VRB_DONE	static inline __attribute__((always_inline))

/* Write an entry of size bytes to the reader; size is taker->size, a constant. */
VRB_DONE void vrb_take(struct fab_cq_taker *taker, size_t size, void *context, uint64_t flags, uint64_t len,
		       void *buf, uint64_t data)
{
	struct fab_comp *to = (struct fab_comp *) taker->to;

	taker->to += size;
	taker->cnt++;
	to->context = context;
	if (size > offsetof(struct fab_comp, flags)) {
		to->flags = flags;
		to->len = len;
	}
	if (size > offsetof(struct fab_comp, buf)) {
		to->buf = buf;
		to->data = data;
	}
	if (size > offsetof(struct fab_comp, tag))
		to->tag = 0;
}

/* Complete a send, write or read for a reader of its queue. False: nothing was done, as it needs vrb_work_done(). */
VRB_DONE bool vrb_tx_take(const struct vrb_tx *tx, struct fab_cq_taker *taker, size_t size)
{
	struct vrb_ep *ep = tx->ep;

	if (__builtin_expect(ep->tx_head != tx->pos || !tx->want_cq || ep->base.bound.tx_cq != taker->cq ||
			     ep->base.report.counted, 0))
		return false;
	ep->tx_head++;
	if (ep->shown) {
		tx->stats->dequeued++;
		fab_stats_count(tx->stats, tx->code, tx->len);
	}
	vrb_take(taker, size, tx->context, fab_op_desc[tx->code].cq_flags, tx->len, NULL, 0);
	return true;
}

/* The same for a receive. */
VRB_DONE bool vrb_rx_take(struct vrb_rx *rx, const struct ibv_wc *wc, struct fab_cq_taker *taker, size_t size)
{
	uint64_t flags = fab_op_desc[FAB_OP_RECV].cq_flags, data = 0;
	struct vrb_ep *owner = rx->ep, *ep = owner->srx ? vrb_srx_taker(owner->srx, wc->qp_num) : owner;
	void *context = rx->context, *buf;

	if (__builtin_expect(!ep || ep->base.bound.rx_cq != taker->cq || ep->base.report.rx_selective ||
			     ep->base.report.counted || wc->opcode != IBV_WC_RECV, 0))
		return false;
	buf = owner->srx ? ep->base.ep_fid.fid.context : NULL;	/* FAB_OPT_NAMES_TAKER */
	fab_pool_put(&owner->rx_pool, rx);
	owner->rx_cnt--;
	if (ep->shown)
		fab_stats_count(ep->stats, FAB_OP_RECV, wc->byte_len);
	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		flags |= FI_REMOTE_CQ_DATA;
		data = ntohl(wc->imm_data);
	}
	vrb_take(taker, size, context, flags, wc->byte_len, buf, data);
	return true;
}

/* Process one work completion for a reader: its entry goes to the taker or, if it is not of that queue, where
 * vrb_work_done() puts it. size is taker->size, a constant. */
VRB_DONE void vrb_done(const struct ibv_wc *wc, struct fab_cq_taker *taker, size_t size)
{
	void *ptr = (void *) (uintptr_t) (wc->wr_id & ~(uint64_t) VRB_IS_RX);

	if (__builtin_expect(wc->status != IBV_WC_SUCCESS, 0) ||
	    !(wc->wr_id & VRB_IS_RX ? vrb_rx_take(ptr, wc, taker, size) : vrb_tx_take(ptr, taker, size)))
		vrb_work_done(wc, taker);
}

#endif
