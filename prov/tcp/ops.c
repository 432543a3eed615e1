/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls: each puts its arguments into a struct fab_op, and tcp_submit() or tcp_post_recv() acts.
 *
 * Flags (fi_endpoint(3), fi_msg(3)): calls without a flags argument take the endpoint's op_flags; fi_*msg take what
 * they are given, and FI_COMPLETION from the endpoint if it is not bound for selective completion; fi_inject* take
 * the endpoint's completion level, which counters go by, and never write a CQ entry.
 */
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include "common/ops.h"
#include "tcp/ep.h"
#include "tcp/tcp.h"

/* What programs add that says nothing new about a call. */
#define ANY_FLAGS	(FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_COMPLETION | \
			 FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_TRIGGER)
#define SEND_FLAGS	(ANY_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA | FI_FENCE)
#define READ_FLAGS	(ANY_FLAGS | FI_FENCE)
#define RECV_FLAGS	(ANY_FLAGS | FI_MULTI_RECV)
#define TRECV_FLAGS	(RECV_FLAGS | FI_PEEK | FI_CLAIM | FI_DISCARD)

static inline struct tcp_ep *ep_of(const struct fid_ep *fid)
{
	return tcp_ep_of(&fid->fid);
}

/* What the application holds: the endpoint or an alias, each with default flags of its own. */
static inline struct fab_ep_fid *held_of(struct fid_ep *fid)
{
	return fab_container(fid, struct fab_ep_fid, ep_fid);
}

static inline uint64_t tx_flags(struct fid_ep *fid)
{
	return held_of(fid)->tx_op_flags;
}

static inline uint64_t inject_flags(struct fid_ep *fid)
{
	return (tx_flags(fid) & ~FI_COMPLETION) | FI_INJECT;
}

static inline uint64_t tx_msg_flags(struct fid_ep *fid, uint64_t flags)
{
	return flags | ep_of(fid)->base.tx_msg_flags;
}

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

static ssize_t bad_msg(const void *msg, uint64_t flags, uint64_t allowed)
{
	if (!msg) {
		TCP_WARN(FI_LOG_EP_DATA, "msg is NULL\n");
		return -FI_EINVAL;
	}
	TCP_WARN(FI_LOG_EP_DATA, "flags %#" PRIx64 " of a data call: %#" PRIx64 " are not supported by it\n", flags,
		 flags & ~allowed);
	return -FI_EBADFLAGS;
}

/* 0 if the call can be carried out as far as its form goes. */
static inline ssize_t check_msg(const void *msg, uint64_t flags, uint64_t allowed)
{
	return __builtin_expect(msg && !(flags & ~allowed), 1) ? 0 : bad_msg(msg, flags, allowed);
}

/* A vector that is one, and within the limit (fi_tx_attr, fi_rx_attr). */
static inline bool bad_vec(const void *vec, size_t cnt, size_t limit)
{
	return __builtin_expect(cnt > limit || (cnt && !vec), 0);
}

/* ---- messages ---- */

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	struct iovec iov = { buf, len };

	return tcp_post_recv(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_RECV, .iov = &iov, .desc = &desc, .iov_cnt = 1, .addr = addr, .flags = rx_flags(fid),
		.context = context
	});
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 void *context)
{
	if (bad_vec(iov, cnt, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	return tcp_post_recv(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_RECV, .iov = iov, .desc = desc, .iov_cnt = cnt, .addr = addr, .flags = rx_flags(fid),
		.context = context
	});
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, RECV_FLAGS);

	if (ret)
		return ret;
	if (bad_vec(msg->msg_iov, msg->iov_count, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	return tcp_post_recv(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_RECV, .iov = msg->msg_iov, .desc = msg->desc, .iov_cnt = msg->iov_count, .addr =
		msg->addr, .flags = rx_msg_flags(fid, flags), .context = msg->context
	});
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_SEND, .iov = &iov, .desc = &desc, .iov_cnt = 1, .addr = addr, .flags = tx_flags(fid),
		.context = context
	});
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 void *context)
{
	if (bad_vec(iov, cnt, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_SEND, .iov = iov, .desc = desc, .iov_cnt = cnt, .addr = addr, .flags = tx_flags(fid),
		.context = context
	});
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, SEND_FLAGS);

	if (ret)
		return ret;
	if (bad_vec(msg->msg_iov, msg->iov_count, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_SEND, .iov = msg->msg_iov, .desc = msg->desc, .iov_cnt = msg->iov_count, .addr =
		msg->addr, .data = msg->data, .flags = tx_msg_flags(fid, flags), .context = msg->context
	});
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr)
{
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_SEND, .no_comp = true, .iov = &iov, .iov_cnt = 1, .addr = addr, .flags =
		inject_flags(fid)
	});
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			    fi_addr_t addr, void *context)
{
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_SEND, .iov = &iov, .desc = &desc, .iov_cnt = 1, .addr = addr, .data = data, .flags =
		tx_flags(fid) | FI_REMOTE_CQ_DATA, .context = context
	});
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t addr)
{
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_SEND, .no_comp = true, .iov = &iov, .iov_cnt = 1, .addr = addr, .data = data, .flags =
		inject_flags(fid) | FI_REMOTE_CQ_DATA
	});
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
	struct iovec iov = { buf, len };

	return tcp_post_recv(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_TRECV, .iov = &iov, .desc = &desc, .iov_cnt = 1, .addr = addr, .tag = tag, .ignore =
		ignore, .flags = trecv_flags(fid), .context = context
	});
}

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			    uint64_t tag, uint64_t ignore, void *context)
{
	if (bad_vec(iov, cnt, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	return tcp_post_recv(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_TRECV, .iov = iov, .desc = desc, .iov_cnt = cnt, .addr = addr, .tag = tag, .ignore =
		ignore, .flags = trecv_flags(fid), .context = context
	});
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, TRECV_FLAGS);

	if (ret)
		return ret;
	if (bad_vec(msg->msg_iov, msg->iov_count, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	return tcp_post_recv(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_TRECV, .iov = msg->msg_iov, .desc = msg->desc, .iov_cnt = msg->iov_count, .addr =
		msg->addr, .tag = msg->tag, .ignore = msg->ignore, .flags = rx_msg_flags(fid, flags), .context =
		msg->context
	});
}

static ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t tag,
			   void *context)
{
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_TSEND, .iov = &iov, .desc = &desc, .iov_cnt = 1, .addr = addr, .tag = tag, .flags =
		tx_flags(fid), .context = context
	});
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			    uint64_t tag, void *context)
{
	if (bad_vec(iov, cnt, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_TSEND, .iov = iov, .desc = desc, .iov_cnt = cnt, .addr = addr, .tag = tag, .flags =
		tx_flags(fid), .context = context
	});
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, SEND_FLAGS);

	if (ret)
		return ret;
	if (bad_vec(msg->msg_iov, msg->iov_count, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_TSEND, .iov = msg->msg_iov, .desc = msg->desc, .iov_cnt = msg->iov_count, .addr =
		msg->addr, .tag = msg->tag, .data = msg->data, .flags = tx_msg_flags(fid, flags), .context =
		msg->context
	});
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr, uint64_t tag)
{
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_TSEND, .no_comp = true, .iov = &iov, .iov_cnt = 1, .addr = addr, .tag = tag, .flags =
		inject_flags(fid)
	});
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			       fi_addr_t addr, uint64_t tag, void *context)
{
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_TSEND, .iov = &iov, .desc = &desc, .iov_cnt = 1, .addr = addr, .tag = tag, .data =
		data, .flags = tx_flags(fid) | FI_REMOTE_CQ_DATA, .context = context
	});
}

static ssize_t tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t addr,
				 uint64_t tag)
{
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_TSEND, .no_comp = true, .iov = &iov, .iov_cnt = 1, .addr = addr, .tag = tag, .data =
		data, .flags = inject_flags(fid) | FI_REMOTE_CQ_DATA
	});
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
	struct fi_rma_iov rma = { .addr = remote, .len = len, .key = key };
	struct iovec iov = { buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_READ, .iov = &iov, .desc = &desc, .iov_cnt = 1, .rma = &rma, .rma_cnt = 1, .addr =
		addr, .flags = tx_flags(fid), .context = context
	});
}

/* What a scattered buffer is to become, or to come from, at the peer. */
static inline struct fi_rma_iov rma_whole(const struct iovec *iov, size_t cnt, uint64_t remote, uint64_t key)
{
	return (struct fi_rma_iov) { .addr = remote, .len = fab_iov_len(iov, cnt), .key = key };
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 uint64_t remote, uint64_t key, void *context)
{
	struct fi_rma_iov rma;

	if (bad_vec(iov, cnt, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	rma = rma_whole(iov, cnt, remote, key);
	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_READ, .iov = iov, .desc = desc, .iov_cnt = cnt, .rma = &rma, .rma_cnt = 1, .addr =
		addr, .flags = tx_flags(fid), .context = context
	});
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, READ_FLAGS);

	if (ret)
		return ret;
	if (bad_vec(msg->msg_iov, msg->iov_count, TCP_IOV_LIMIT) ||
	    bad_vec(msg->rma_iov, msg->rma_iov_count, TCP_RMA_IOV_MAX))
		return -FI_EINVAL;
	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_READ, .iov = msg->msg_iov, .desc = msg->desc, .iov_cnt = msg->iov_count, .rma =
		msg->rma_iov, .rma_cnt = msg->rma_iov_count, .addr = msg->addr, .flags = tx_msg_flags(fid, flags),
		.context = msg->context
	});
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t remote,
			 uint64_t key, void *context)
{
	struct fi_rma_iov rma = { .addr = remote, .len = len, .key = key };
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_WRITE, .iov = &iov, .desc = &desc, .iov_cnt = 1, .rma = &rma, .rma_cnt = 1, .addr =
		addr, .flags = tx_flags(fid), .context = context
	});
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			  uint64_t remote, uint64_t key, void *context)
{
	struct fi_rma_iov rma;

	if (bad_vec(iov, cnt, TCP_IOV_LIMIT))
		return -FI_EINVAL;
	rma = rma_whole(iov, cnt, remote, key);
	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_WRITE, .iov = iov, .desc = desc, .iov_cnt = cnt, .rma = &rma, .rma_cnt = 1, .addr =
		addr, .flags = tx_flags(fid), .context = context
	});
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	ssize_t ret = check_msg(msg, flags, SEND_FLAGS);

	if (ret)
		return ret;
	if (bad_vec(msg->msg_iov, msg->iov_count, TCP_IOV_LIMIT) ||
	    bad_vec(msg->rma_iov, msg->rma_iov_count, TCP_RMA_IOV_MAX))
		return -FI_EINVAL;
	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_WRITE, .iov = msg->msg_iov, .desc = msg->desc, .iov_cnt = msg->iov_count, .rma =
		msg->rma_iov, .rma_cnt = msg->rma_iov_count, .addr = msg->addr, .data = msg->data, .flags =
		tx_msg_flags(fid, flags), .context = msg->context
	});
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr, uint64_t remote,
			  uint64_t key)
{
	struct fi_rma_iov rma = { .addr = remote, .len = len, .key = key };
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_WRITE, .no_comp = true, .iov = &iov, .iov_cnt = 1, .rma = &rma, .rma_cnt = 1, .addr =
		addr, .flags = inject_flags(fid)
	});
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			     fi_addr_t addr, uint64_t remote, uint64_t key, void *context)
{
	struct fi_rma_iov rma = { .addr = remote, .len = len, .key = key };
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_WRITE, .iov = &iov, .desc = &desc, .iov_cnt = 1, .rma = &rma, .rma_cnt = 1, .addr =
		addr, .data = data, .flags = tx_flags(fid) | FI_REMOTE_CQ_DATA, .context = context
	});
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t addr,
			      uint64_t remote, uint64_t key)
{
	struct fi_rma_iov rma = { .addr = remote, .len = len, .key = key };
	struct iovec iov = { (void *) buf, len };

	return tcp_submit(ep_of(fid), &(struct fab_op) {
		.code = FAB_OP_WRITE, .no_comp = true, .iov = &iov, .iov_cnt = 1, .rma = &rma, .rma_cnt = 1, .addr =
		addr, .data = data, .flags = inject_flags(fid) | FI_REMOTE_CQ_DATA
	});
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
}
