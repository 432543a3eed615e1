/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls: each puts its arguments into a struct fab_op, and tcp_submit() or tcp_post_recv() acts.
 */
#include "tcp/ops.h"

#include "common/ops.h"

#define SEND_FLAGS	(ANY_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA | FI_FENCE)
#define READ_FLAGS	(ANY_FLAGS | FI_FENCE)
#define RECV_FLAGS	(ANY_FLAGS | FI_MULTI_RECV | FI_AUTH_KEY)
#define TRECV_FLAGS	(RECV_FLAGS | FI_PEEK | FI_CLAIM | FI_DISCARD)

static inline uint64_t rx_flags(struct fid_ep *fid)
{
	return held_of(fid)->rx_op_flags;
}

static inline uint64_t trecv_flags(struct fid_ep *fid)
{
	return rx_flags(fid) & ~FI_MULTI_RECV;
}

static inline uint64_t rx_msg_flags(struct fid_ep *fid, uint64_t flags)
{
	return flags | ep_of(fid)->base.rx_msg_flags;
}

ssize_t tcp_bad_msg(const void *msg, uint64_t flags, uint64_t allowed)
{
	if (!msg) {
		TCP_WARN(FI_LOG_EP_DATA, "msg is NULL\n");
		return -FI_EINVAL;
	}
	TCP_WARN(FI_LOG_EP_DATA, "flags %#" PRIx64 " of a data call: %#" PRIx64 " are not supported by it\n", flags,
		 flags & ~allowed);
	return -FI_EBADFLAGS;
}

/*
 * ---- builders: op has all but its buffers ----
 */

/* What is done with a finished op: tcp_submit() or tcp_post_recv(). */
typedef ssize_t act_fn(struct tcp_ep *ep, const struct fab_op *op);

static inline __attribute__((always_inline))
ssize_t with_buf(struct fid_ep *fid, const void *buf, size_t len, void *desc, act_fn *act, struct fab_op *op)
{
	struct iovec iov = { (void *) buf, len };

	op->iov = &iov;
	op->desc = &desc;
	op->iov_cnt = 1;
	return act(ep_of(fid), op);
}

static inline __attribute__((always_inline))
ssize_t with_vec(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, act_fn *act, struct fab_op *op)
{
	if (bad_vec(iov, cnt, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	op->iov = iov;
	op->desc = desc;
	op->iov_cnt = cnt;
	return act(ep_of(fid), op);
}

/* One remote buffer, as long as the local one. */
static inline __attribute__((always_inline))
ssize_t with_rma_buf(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t remote, uint64_t key,
		     struct fab_op *op)
{
	struct fi_rma_iov rma = { .addr = remote, .len = len, .key = key };

	op->rma = &rma;
	op->rma_cnt = 1;
	return with_buf(fid, buf, len, desc, tcp_submit, op);
}

static inline __attribute__((always_inline))
ssize_t with_rma_vec(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, uint64_t remote,
		     uint64_t key, struct fab_op *op)
{
	struct fi_rma_iov rma = { .addr = remote, .key = key };

	if (bad_vec(iov, cnt, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	rma.len = fab_iov_len(iov, cnt);
	op->rma = &rma;
	op->rma_cnt = 1;
	return with_vec(fid, iov, desc, cnt, tcp_submit, op);
}

/* What struct fi_msg, fi_msg_tagged and fi_msg_rma have in common, for one that is not NULL. */
#define WITH_MSG(fid, msg, act, ...) \
	with_vec(fid, (msg)->msg_iov, (msg)->desc, (msg)->iov_count, act, &(struct fab_op) { \
		 .addr = (msg)->addr, .context = (msg)->context, __VA_ARGS__ })

#define OP(...)		(&(struct fab_op) { __VA_ARGS__ })

/* ---- messages ---- */

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	return with_buf(fid, buf, len, desc, tcp_post_recv, OP(.code = FAB_OP_RECV, .addr = addr,
			.flags = rx_flags(fid), .context = context));
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 void *context)
{
	return with_vec(fid, iov, desc, cnt, tcp_post_recv, OP(.code = FAB_OP_RECV, .addr = addr,
			.flags = rx_flags(fid), .context = context));
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, RECV_FLAGS);

	return ret ? ret : WITH_MSG(fid, msg, tcp_post_recv, .code = FAB_OP_RECV, .flags = rx_msg_flags(fid, flags));
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	return with_buf(fid, buf, len, desc, tcp_submit, OP(.code = FAB_OP_SEND, .addr = addr, .flags = tx_flags(fid),
			.context = context));
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 void *context)
{
	return with_vec(fid, iov, desc, cnt, tcp_submit, OP(.code = FAB_OP_SEND, .addr = addr, .flags = tx_flags(fid),
			.context = context));
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, SEND_FLAGS);

	return ret ? ret : WITH_MSG(fid, msg, tcp_submit, .code = FAB_OP_SEND, .data = msg->data,
				    .flags = tx_msg_flags(fid, flags));
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr)
{
	return with_buf(fid, buf, len, NULL, tcp_submit, OP(.code = FAB_OP_SEND, .no_comp = true, .addr = addr,
			.flags = inject_flags(fid)));
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			    fi_addr_t addr, void *context)
{
	return with_buf(fid, buf, len, desc, tcp_submit, OP(.code = FAB_OP_SEND, .addr = addr, .data = data,
			.flags = tx_flags(fid) | FI_REMOTE_CQ_DATA, .context = context));
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t addr)
{
	return with_buf(fid, buf, len, NULL, tcp_submit, OP(.code = FAB_OP_SEND, .no_comp = true, .addr = addr,
			.data = data, .flags = inject_flags(fid) | FI_REMOTE_CQ_DATA));
}

struct fi_ops_msg tcp_msg_ops = {
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

/* ---- tagged messages ---- */

static ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t tag,
			   uint64_t ignore, void *context)
{
	return with_buf(fid, buf, len, desc, tcp_post_recv, OP(.code = FAB_OP_TRECV, .addr = addr, .tag = tag,
			.ignore = ignore, .flags = trecv_flags(fid), .context = context));
}

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			    uint64_t tag, uint64_t ignore, void *context)
{
	return with_vec(fid, iov, desc, cnt, tcp_post_recv, OP(.code = FAB_OP_TRECV, .addr = addr, .tag = tag,
			.ignore = ignore, .flags = trecv_flags(fid), .context = context));
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, TRECV_FLAGS);

	return ret ? ret : WITH_MSG(fid, msg, tcp_post_recv, .code = FAB_OP_TRECV, .tag = msg->tag,
				    .ignore = msg->ignore, .flags = rx_msg_flags(fid, flags));
}

static ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t tag,
			   void *context)
{
	return with_buf(fid, buf, len, desc, tcp_submit, OP(.code = FAB_OP_TSEND, .addr = addr, .tag = tag,
			.flags = tx_flags(fid), .context = context));
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			    uint64_t tag, void *context)
{
	return with_vec(fid, iov, desc, cnt, tcp_submit, OP(.code = FAB_OP_TSEND, .addr = addr, .tag = tag,
			.flags = tx_flags(fid), .context = context));
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, SEND_FLAGS);

	return ret ? ret : WITH_MSG(fid, msg, tcp_submit, .code = FAB_OP_TSEND, .tag = msg->tag, .data = msg->data,
				    .flags = tx_msg_flags(fid, flags));
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr, uint64_t tag)
{
	return with_buf(fid, buf, len, NULL, tcp_submit, OP(.code = FAB_OP_TSEND, .no_comp = true, .addr = addr,
			.tag = tag, .flags = inject_flags(fid)));
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			       fi_addr_t addr, uint64_t tag, void *context)
{
	return with_buf(fid, buf, len, desc, tcp_submit, OP(.code = FAB_OP_TSEND, .addr = addr, .tag = tag,
			.data = data, .flags = tx_flags(fid) | FI_REMOTE_CQ_DATA, .context = context));
}

static ssize_t tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t addr,
				 uint64_t tag)
{
	return with_buf(fid, buf, len, NULL, tcp_submit, OP(.code = FAB_OP_TSEND, .no_comp = true, .addr = addr,
			.tag = tag, .data = data, .flags = inject_flags(fid) | FI_REMOTE_CQ_DATA));
}

struct fi_ops_tagged tcp_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};

/* ---- RMA: one remote buffer, except in the calls with a message ---- */

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t remote,
			uint64_t key, void *context)
{
	return with_rma_buf(fid, buf, len, desc, remote, key, OP(.code = FAB_OP_READ, .addr = addr,
			    .flags = tx_flags(fid), .context = context));
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 uint64_t remote, uint64_t key, void *context)
{
	return with_rma_vec(fid, iov, desc, cnt, remote, key, OP(.code = FAB_OP_READ, .addr = addr,
			    .flags = tx_flags(fid), .context = context));
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, READ_FLAGS);

	if (ret)
		return ret;
	if (bad_vec(msg->rma_iov, msg->rma_iov_count, TCP_RMA_IOV_MAX))
		return -FI_EINVAL;
	return WITH_MSG(fid, msg, tcp_submit, .code = FAB_OP_READ, .rma = msg->rma_iov, .rma_cnt = msg->rma_iov_count,
			.flags = tx_msg_flags(fid, flags));
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t remote,
			 uint64_t key, void *context)
{
	return with_rma_buf(fid, buf, len, desc, remote, key, OP(.code = FAB_OP_WRITE, .addr = addr,
			    .flags = tx_flags(fid), .context = context));
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			  uint64_t remote, uint64_t key, void *context)
{
	return with_rma_vec(fid, iov, desc, cnt, remote, key, OP(.code = FAB_OP_WRITE, .addr = addr,
			    .flags = tx_flags(fid), .context = context));
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, SEND_FLAGS);

	if (ret)
		return ret;
	if (bad_vec(msg->rma_iov, msg->rma_iov_count, TCP_RMA_IOV_MAX))
		return -FI_EINVAL;
	return WITH_MSG(fid, msg, tcp_submit, .code = FAB_OP_WRITE, .rma = msg->rma_iov, .rma_cnt = msg->rma_iov_count,
			.data = msg->data, .flags = tx_msg_flags(fid, flags));
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr, uint64_t remote,
			  uint64_t key)
{
	return with_rma_buf(fid, buf, len, NULL, remote, key, OP(.code = FAB_OP_WRITE, .no_comp = true, .addr = addr,
			    .flags = inject_flags(fid)));
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			     fi_addr_t addr, uint64_t remote, uint64_t key, void *context)
{
	return with_rma_buf(fid, buf, len, desc, remote, key, OP(.code = FAB_OP_WRITE, .addr = addr, .data = data,
			    .flags = tx_flags(fid) | FI_REMOTE_CQ_DATA, .context = context));
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t addr,
			      uint64_t remote, uint64_t key)
{
	return with_rma_buf(fid, buf, len, NULL, remote, key, OP(.code = FAB_OP_WRITE, .no_comp = true, .addr = addr,
			    .data = data, .flags = inject_flags(fid) | FI_REMOTE_CQ_DATA));
}

struct fi_ops_rma tcp_rma_ops = {
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

void tcp_data_fill_ops(void)
{
	FAB_OPS_FILL(&tcp_msg_ops);
	FAB_OPS_FILL(&tcp_tagged_ops);
	FAB_OPS_FILL(&tcp_rma_ops);
	FAB_OPS_FILL(&tcp_atomic_ops);
}
