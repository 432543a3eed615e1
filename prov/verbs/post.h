/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From a data call to the device, all inline. Each call fills a struct fab_op mostly with constants, so the compiler
 * removes most of the code. Nothing here passes the fab_op to a function that is not inline: the compiler would then
 * have to build it in memory. Only files that define data calls include this.
 */
#ifndef VRB_POST_H
#define VRB_POST_H

#include <arpa/inet.h>
#include <errno.h>
#include "base/bits.h"
#include "verbs/kind.h"

#define VRB_POST	static inline __attribute__((always_inline))

/* True if the processor cannot read one of the buffers, so that the data cannot be sent inline. */
VRB_POST bool vrb_any_foreign(const struct fab_op *op)
{
	for (uint32_t i = 0; i < op->iov_cnt; i++) {
		if (__builtin_expect(op->desc && op->desc[i] && vrb_desc_foreign(op->desc[i]), 0))
			return true;
	}
	return false;
}

/* Fill the scatter-gather list from the operation's buffers. in_wr: the data is sent inline and needs no descriptors.
 * 0, or -FI_EINVAL, logged: a buffer without a descriptor. */
VRB_POST ssize_t vrb_make_sge(const struct fab_op *op, bool in_wr, struct ibv_sge *sge)
{
	for (uint32_t i = 0; i < op->iov_cnt; i++) {
		const struct ibv_mr *mr = op->desc && !in_wr ? op->desc[i] : NULL;

		if (__builtin_expect(!mr && !in_wr && op->iov[i].iov_len, 0))
			return vrb_no_desc(op->code);
		sge[i].addr = (uintptr_t) op->iov[i].iov_base;
		sge[i].length = (uint32_t) op->iov[i].iov_len;
		sge[i].lkey = mr ? mr->lkey : 0;
	}
	return 0;
}

/* The opcode of a work request; data: it carries immediate data. */
VRB_POST enum ibv_wr_opcode vrb_opcode(enum fab_op_code code, bool data)
{
	switch (code) {
	case FAB_OP_READ:
		return IBV_WR_RDMA_READ;
	case FAB_OP_WRITE:
		return data ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	default:
		return data ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
	}
}

/* True if the operation cannot be posted, now or at all; vrb_refuse() finds out why. The length is checked
 * elsewhere. */
VRB_POST bool vrb_bad_post(const struct vrb_ep *ep, const struct fab_op *op, uint64_t len)
{
	return ep->state != VRB_EP_CONNECTED || ep->tx_tail - ep->tx_head >= ep->tx_size ||
	       (op->iov_cnt > 1 && op->iov_cnt > ep->tx_iov_limit) ||
	       (op->code >= FAB_OP_WRITE && (op->rma_cnt != 1 || op->rma->len != len));
}

/* IBV_SEND_SIGNALED if the hardware is to report the request that is about to be posted, else 0. */
VRB_POST unsigned vrb_report(struct vrb_ep *ep, enum fab_op_code code, bool want_cq)
{
	if (want_cq || ep->base.bound.cntr[fab_op_desc[code].cntr] || ep->tx_quiet >= ep->tx_quiet_max) {
		ep->tx_quiet = 0;
		return IBV_SEND_SIGNALED;
	}
	ep->tx_quiet++;
	return 0;
}

/* The result of a call whose ibv_post_send() or ibv_post_recv() has returned ret, not 0: -FI_EAGAIN for a full queue,
 * or another -FI_E*. The man pages say that ret is an errno; libsiw returns it negative, or -1 and sets errno. */
ssize_t vrb_post_err(int ret);

/* A request was not posted: make the next one signaled, since this one may have been meant to be. Returns ret. */
VRB_POST ssize_t vrb_not_posted(struct vrb_ep *ep, ssize_t ret)
{
	ep->tx_quiet = ep->tx_quiet_max;
	return ret;
}

/* Lock held. */
VRB_POST ssize_t vrb_post(struct vrb_ep *ep, const struct fab_op *op)
{
	uint64_t len = fab_iov_len(op->iov, op->iov_cnt);
	struct vrb_tx *tx = &ep->tx[ep->tx_tail & ep->tx_mask];
	struct ibv_sge sge[VRB_IOV_LIMIT];
	struct ibv_send_wr wr, *bad;
	bool in_wr, more = false;
	ssize_t ret;
	int err;

	if (__builtin_expect(vrb_bad_post(ep, op, len), 0))
		return vrb_refuse(ep, op->iov_cnt, len, op->flags);
	in_wr = op->code < FAB_OP_ATOMIC && len <= ep->inline_max;
	if (in_wr && __builtin_expect(vrb_any_foreign(op), 0)) {
		if (op->flags & FI_INJECT)
			return vrb_no_copy(op->code);
		in_wr = false;
	}
	if (!in_wr && __builtin_expect(len > ep->max_msg_size || ((op->flags & FI_INJECT) && len > ep->inline_max), 0))
		return vrb_refuse(ep, op->iov_cnt, len, op->flags);
	ret = vrb_make_sge(op, in_wr, sge);
	if (__builtin_expect(ret, 0))
		return ret;
	tx->ep = ep;
	tx->stats = ep->stats;
	tx->context = op->context;
	tx->len = len;
	tx->pos = ep->tx_tail;
	tx->code = (uint8_t) op->code;
	wr.send_flags = in_wr ? IBV_SEND_INLINE : 0;
	if (__builtin_expect(!op->no_comp && ep->base.report.tx_each, 1)) {
		tx->want_cq = true;
		wr.send_flags |= vrb_report(ep, op->code, true);
	} else {
		tx->want_cq = fab_ep_tx_wants_comp(&ep->base, op);
		wr.send_flags |= vrb_report(ep, op->code, tx->want_cq);
	}
	wr.wr_id = (uintptr_t) tx;
	wr.next = NULL;
	wr.sg_list = sge;
	wr.num_sge = (int) op->iov_cnt;
	wr.opcode = vrb_opcode(op->code, false);
	if (__builtin_expect(op->flags & (FI_REMOTE_CQ_DATA | FI_FENCE | FI_MORE), 0)) {
		more = op->flags & FI_MORE && !(op->flags & FI_INJECT);
		if (op->flags & FI_FENCE)
			wr.send_flags |= IBV_SEND_FENCE;
		if (op->flags & FI_REMOTE_CQ_DATA) {
			wr.opcode = vrb_opcode(op->code, true);
			wr.imm_data = htonl((uint32_t) op->data);
		}
	}
	if (op->code == FAB_OP_FETCH_ATOMIC) {
		vrb_atomic_wr(op->amo, op->rma->addr, (uint32_t) op->rma->key, &wr);
	} else if (op->code >= FAB_OP_WRITE) {
		wr.wr.rdma.remote_addr = op->rma->addr;
		wr.wr.rdma.rkey = (uint32_t) op->rma->key;
	}
	if (__builtin_expect(more, 0) && ep->kind->hold && ep->kind->hold(ep, &wr)) {
		ep->tx_tail++;
		tx->stats->queued += vrb_is_awaited(tx);
		return 0;
	}
	if (__builtin_expect(ep->aim != NULL, 0)) {
		ret = ep->aim(ep, op->addr, &wr);
		if (ret)
			return vrb_not_posted(ep, ret);
	}
	err = ibv_post_send(ep->qp, &wr, &bad);
	if (__builtin_expect(err, 0))
		return vrb_not_posted(ep, vrb_post_failed(ep, &wr, err));
	ep->tx_tail++;
	tx->stats->queued += vrb_is_awaited(tx);
	return 0;
}

/*
 * The one way in for sends, writes and reads. Takes and drops the lock. 0: exactly one completion follows, or none if
 * not asked for; -FI_EAGAIN: the queue is full, call again after reading completions; -FI_ENOTCONN, -FI_EINVAL,
 * -FI_EMSGSIZE, or what the device says: nothing was done.
 */
VRB_POST ssize_t vrb_submit(struct vrb_ep *ep, const struct fab_op *op)
{
	ssize_t ret;

	fab_engine_enter(ep->base.engine);
	ret = vrb_post(ep, op);
	fab_engine_leave(ep->base.engine);
	return ret;
}

/* vrb_submit() of a read into more buffers than one request of the device can have (read.c). Takes and drops the lock.
 * Returns as vrb_submit(). */
ssize_t vrb_read_apart(struct vrb_ep *ep, const struct fab_op *op);

/* Lock held. */
VRB_POST ssize_t vrb_post_rx(struct vrb_ep *ep, const struct fab_op *op)
{
	struct ibv_sge sge[VRB_IOV_LIMIT];
	struct ibv_recv_wr wr;
	struct vrb_rx *rx;
	ssize_t ret;

	if (__builtin_expect(!ep->base.enabled || ep->state == VRB_EP_DOWN || op->iov_cnt > ep->rx_iov_limit, 0))
		return vrb_refuse_rx(ep);
	ret = vrb_make_sge(op, false, sge);
	if (__builtin_expect(ret, 0))
		return ret;
	rx = fab_pool_get(&ep->rx_pool);
	if (__builtin_expect(!rx, 0))
		return fab_pool_full(&ep->rx_pool) ? -FI_EAGAIN : -FI_ENOMEM;
	rx->ep = ep;
	rx->context = op->context;
	rx->flags = op->flags;
	wr.wr_id = (uintptr_t) rx | VRB_IS_RX;
	wr.next = NULL;
	wr.sg_list = sge;
	wr.num_sge = (int) op->iov_cnt;
	ret = ep->kind->post_recv(ep, &wr);
	if (__builtin_expect(ret, 0)) {
		fab_pool_put(&ep->rx_pool, rx);
		return vrb_post_err((int) ret);
	}
	ep->rx_cnt++;
	ep->base.stats->posted[0]++;
	return 0;
}

/* Post a receive. Takes and drops the lock. 0: exactly one completion follows, or none if not asked for. -FI_EAGAIN:
 * all receives are posted. -FI_E*: nothing was done. */
VRB_POST ssize_t vrb_post_recv(struct vrb_ep *ep, const struct fab_op *op)
{
	ssize_t ret;

	fab_engine_enter(ep->base.engine);
	ret = vrb_post_rx(ep, op);
	fab_engine_leave(ep->base.engine);
	return ret;
}

#endif
