/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls: each puts its arguments into a struct fab_op, and vrb_submit() or vrb_post_recv() acts. Flags as in
 * fi_endpoint(3), fi_msg(3) and fi_rma(3).
 */
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include "common/ops.h"
#include "verbs/verbs.h"

/* What programs add that says nothing new about a call. */
#define ANY_FLAGS	(FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_COMPLETION | FI_MORE)
#define TX_FLAGS	(ANY_FLAGS | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_FENCE)
#define SEND_FLAGS	(TX_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA)

static inline struct vrb_ep *ep_of(struct fid_ep *fid)
{
	return vrb_ep_of(&fid->fid);
}

/* The endpoint, or an alias of it with default flags of its own. */
static inline uint64_t tx_flags(struct fid_ep *fid)
{
	return fab_container(fid, struct fab_ep_fid, ep_fid)->tx_op_flags;
}

static inline uint64_t rx_flags(struct fid_ep *fid)
{
	return fab_container(fid, struct fab_ep_fid, ep_fid)->rx_op_flags;
}

static inline uint64_t inject_flags(struct fid_ep *fid)
{
	return (tx_flags(fid) & ~FI_COMPLETION) | FI_INJECT;
}

/* 0 if a call with a message can be carried out as far as its form goes. */
static ssize_t check_msg(const void *msg, const void *iov, size_t cnt, uint64_t flags, uint64_t allowed)
{
	if (!msg || (cnt && !iov) || cnt > VRB_IOV_LIMIT)
		return -FI_EINVAL;
	if (!(flags & ~allowed))
		return 0;
	VRB_WARN(FI_LOG_EP_DATA, "flags %#" PRIx64 " of a data call: %#" PRIx64 " are not supported\n", flags,
		 flags & ~allowed);
	return -FI_EBADFLAGS;
}

static inline bool bad_vec(const struct iovec *iov, size_t cnt)
{
	return cnt > VRB_IOV_LIMIT || (cnt && !iov);
}

/* ---- messages ---- */

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 void *context)
{
	(void) addr;
	if (bad_vec(iov, cnt))
		return -FI_EINVAL;
	return vrb_post_recv(ep_of(fid), &(struct fab_op) { .code = FAB_OP_RECV, .iov = iov, .desc = desc, .iov_cnt = cnt,
			     .flags = rx_flags(fid), .context = context });
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	return msg_recvv(fid, &(struct iovec) { buf, len }, &desc, 1, addr, context);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, msg ? msg->msg_iov : NULL, msg ? msg->iov_count : 0, flags, ANY_FLAGS);

	if (ret)
		return ret;
	return vrb_post_recv(ep_of(fid), &(struct fab_op) { .code = FAB_OP_RECV, .iov = msg->msg_iov, .desc = msg->desc,
			     .iov_cnt = msg->iov_count, .flags = flags | ep_of(fid)->base.rx_msg_flags,
			     .context = msg->context });
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 void *context)
{
	(void) addr;
	if (bad_vec(iov, cnt))
		return -FI_EINVAL;
	return vrb_submit(ep_of(fid), &(struct fab_op) { .code = FAB_OP_SEND, .iov = iov, .desc = desc, .iov_cnt = cnt,
			  .flags = tx_flags(fid), .context = context });
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	return msg_sendv(fid, &(struct iovec) { (void *) buf, len }, &desc, 1, addr, context);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, msg ? msg->msg_iov : NULL, msg ? msg->iov_count : 0, flags, SEND_FLAGS);

	if (ret)
		return ret;
	return vrb_submit(ep_of(fid), &(struct fab_op) { .code = FAB_OP_SEND, .iov = msg->msg_iov, .desc = msg->desc,
			  .iov_cnt = msg->iov_count, .data = msg->data, .flags = flags | ep_of(fid)->base.tx_msg_flags,
			  .context = msg->context });
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr)
{
	struct iovec iov = { (void *) buf, len };

	(void) addr;
	return vrb_submit(ep_of(fid), &(struct fab_op) { .code = FAB_OP_SEND, .no_comp = true, .iov = &iov, .iov_cnt = 1,
			  .flags = inject_flags(fid) });
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t addr,
			    void *context)
{
	struct iovec iov = { (void *) buf, len };

	(void) addr;
	return vrb_submit(ep_of(fid), &(struct fab_op) { .code = FAB_OP_SEND, .iov = &iov, .desc = &desc, .iov_cnt = 1,
			  .data = data, .flags = tx_flags(fid) | FI_REMOTE_CQ_DATA, .context = context });
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t addr)
{
	struct iovec iov = { (void *) buf, len };

	(void) addr;
	return vrb_submit(ep_of(fid), &(struct fab_op) { .code = FAB_OP_SEND, .no_comp = true, .iov = &iov, .iov_cnt = 1,
			  .data = data, .flags = inject_flags(fid) | FI_REMOTE_CQ_DATA });
}

struct fi_ops_msg vrb_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};

/* ---- RMA ---- */

/* One remote range, as long as what is read or written. */
static ssize_t rma(struct fid_ep *fid, const struct fab_op *op, uint64_t remote, uint64_t key)
{
	struct fi_rma_iov range = { .addr = remote, .len = fab_iov_len(op->iov, op->iov_cnt), .key = key };
	struct fab_op whole = *op;

	whole.rma = &range;
	whole.rma_cnt = 1;
	return vrb_submit(ep_of(fid), &whole);
}

static ssize_t rma_msg(struct fid_ep *fid, enum fab_op_code code, const struct fi_msg_rma *msg, uint64_t flags,
		       uint64_t allowed)
{
	ssize_t ret = check_msg(msg, msg ? msg->msg_iov : NULL, msg ? msg->iov_count : 0, flags, allowed);

	if (ret)
		return ret;
	if (msg->rma_iov_count != 1 || !msg->rma_iov)
		return -FI_EINVAL;
	return vrb_submit(ep_of(fid), &(struct fab_op) { .code = code, .iov = msg->msg_iov, .desc = msg->desc,
			  .iov_cnt = msg->iov_count, .rma = msg->rma_iov, .rma_cnt = 1, .data = msg->data,
			  .flags = flags | ep_of(fid)->base.tx_msg_flags, .context = msg->context });
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 uint64_t remote, uint64_t key, void *context)
{
	(void) addr;
	if (bad_vec(iov, cnt))
		return -FI_EINVAL;
	return rma(fid, &(struct fab_op) { .code = FAB_OP_READ, .iov = iov, .desc = desc, .iov_cnt = cnt,
		   .flags = tx_flags(fid), .context = context }, remote, key);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t remote,
			uint64_t key, void *context)
{
	return rma_readv(fid, &(struct iovec) { buf, len }, &desc, 1, addr, remote, key, context);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_msg(fid, FAB_OP_READ, msg, flags, TX_FLAGS);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			  uint64_t remote, uint64_t key, void *context)
{
	(void) addr;
	if (bad_vec(iov, cnt))
		return -FI_EINVAL;
	return rma(fid, &(struct fab_op) { .code = FAB_OP_WRITE, .iov = iov, .desc = desc, .iov_cnt = cnt,
		   .flags = tx_flags(fid), .context = context }, remote, key);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t remote,
			 uint64_t key, void *context)
{
	return rma_writev(fid, &(struct iovec) { (void *) buf, len }, &desc, 1, addr, remote, key, context);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return rma_msg(fid, FAB_OP_WRITE, msg, flags, SEND_FLAGS);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr, uint64_t remote, uint64_t key)
{
	struct iovec iov = { (void *) buf, len };

	(void) addr;
	return rma(fid, &(struct fab_op) { .code = FAB_OP_WRITE, .no_comp = true, .iov = &iov, .iov_cnt = 1,
		   .flags = inject_flags(fid) }, remote, key);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data, fi_addr_t addr,
			     uint64_t remote, uint64_t key, void *context)
{
	struct iovec iov = { (void *) buf, len };

	(void) addr;
	return rma(fid, &(struct fab_op) { .code = FAB_OP_WRITE, .iov = &iov, .desc = &desc, .iov_cnt = 1, .data = data,
		   .flags = tx_flags(fid) | FI_REMOTE_CQ_DATA, .context = context }, remote, key);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t addr,
			      uint64_t remote, uint64_t key)
{
	struct iovec iov = { (void *) buf, len };

	(void) addr;
	return rma(fid, &(struct fab_op) { .code = FAB_OP_WRITE, .no_comp = true, .iov = &iov, .iov_cnt = 1, .data = data,
		   .flags = inject_flags(fid) | FI_REMOTE_CQ_DATA }, remote, key);
}

struct fi_ops_rma vrb_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};

void vrb_data_fill_ops(void)
{
	FAB_OPS_FILL(&vrb_msg_ops);
	FAB_OPS_FILL(&vrb_rma_ops);
}
