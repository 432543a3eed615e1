/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads into more buffers than one request of the device can have (max_sge_rd, which is 1 for iWARP). They are posted
 * as several requests, of which the last is signaled. The wr_id of each is the operation's entry in the ring; if a
 * second one fails, that entry has ended already (tx_failed). The queue pair has room for them (sq_size). Lock taken
 * here.
 */
#include "verbs/post.h"

/* Make the chain of requests, *cnt of them. 0 or -FI_E*. */
static ssize_t make_requests(struct vrb_ep *ep, const struct fab_op *op, struct ibv_sge *sge, struct ibv_send_wr *wr,
			     uint32_t *cnt)
{
	uint64_t addr = op->rma->addr;
	ssize_t ret = 0;

	*cnt = 0;
	for (uint32_t at = 0; at < op->iov_cnt && !ret; ++*cnt) {
		uint32_t n = fab_min(ep->read_iov_limit, op->iov_cnt - at);

		wr[*cnt] = (struct ibv_send_wr) {
			.wr_id = (uintptr_t) &ep->tx[ep->tx_tail & ep->tx_mask], .next = &wr[*cnt + 1],
			.sg_list = sge + at, .num_sge = (int) n,
			.opcode = IBV_WR_RDMA_READ, .wr.rdma = { addr, (uint32_t) op->rma->key },
			.send_flags = op->flags & FI_FENCE && !*cnt ? IBV_SEND_FENCE : 0,
		};
		if (ep->aim)
			ret = ep->aim(ep, op->addr, &wr[*cnt]);
		wr[*cnt].send_flags &= ~(unsigned) IBV_SEND_SIGNALED;	/* only the last part may complete it */
		addr += fab_iov_len(op->iov + at, n);
		at += n;
	}
	wr[*cnt - 1].next = NULL;
	wr[*cnt - 1].send_flags |= IBV_SEND_SIGNALED;
	return ret;
}

static ssize_t post_requests(struct vrb_ep *ep, const struct fab_op *op)
{
	uint64_t len = fab_iov_len(op->iov, op->iov_cnt);
	struct ibv_send_wr wr[VRB_IOV_LIMIT], *bad;
	struct ibv_sge sge[VRB_IOV_LIMIT];
	uint32_t cnt;
	ssize_t ret;

	if (vrb_bad_post(ep, op, len) || len > ep->max_msg_size)
		return vrb_refuse(ep, op->iov_cnt, len, op->flags);
	if (ep->kind->release)
		ep->kind->release(ep);
	ret = vrb_make_sge(op, false, sge);
	if (!ret)
		ret = make_requests(ep, op, sge, wr, &cnt);
	if (ret)
		return ret;
	ep->tx[ep->tx_tail & ep->tx_mask] = (struct vrb_tx) {
		.ep = ep, .stats = ep->stats, .context = op->context, .len = len, .pos = ep->tx_tail,
		.code = FAB_OP_READ, .want_cq = fab_ep_tx_wants_comp(&ep->base, op),
	};
	ret = ibv_post_send(ep->qp, wr, &bad);
	if (ret)
		return vrb_post_err((int) ret);
	ep->stats->queued += vrb_is_awaited(&ep->tx[ep->tx_tail++ & ep->tx_mask]);
	ep->tx_quiet = 0;
	return 0;
}

ssize_t vrb_read_apart(struct vrb_ep *ep, const struct fab_op *op)
{
	ssize_t ret;

	fab_engine_enter(ep->base.engine);
	ret = post_requests(ep, op);
	fab_engine_leave(ep->base.engine);
	return ret;
}
