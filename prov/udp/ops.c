/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls: each puts its arguments into a struct fab_op, and udp_submit() or udp_post_recv() acts. Flags as in
 * fi_endpoint(3) and fi_msg(3).
 */
#include <inttypes.h>
#include <rdma/fi_errno.h>
#include "udp/udp.h"

/* What programs add that says nothing new about a call. */
#define ANY_FLAGS	(FI_MSG | FI_SEND | FI_RECV | FI_COMPLETION | FI_MORE)
#define SEND_FLAGS	(ANY_FLAGS | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_MULTICAST)

static inline struct udp_ep *ep_of(struct fid_ep *fid)
{
	return udp_ep_of(&fid->fid);
}

/* The endpoint, or an alias of it with default flags of its own. */
static inline struct fab_ep_fid *held_of(struct fid_ep *fid)
{
	return fab_container(fid, struct fab_ep_fid, ep_fid);
}

static ssize_t check_msg(const struct fi_msg *msg, uint64_t flags, uint64_t allowed)
{
	if (!msg || (msg->iov_count && !msg->msg_iov))
		return -FI_EINVAL;
	if (!(flags & ~allowed))
		return 0;
	UDP_WARN(FI_LOG_EP_DATA, "flags %#" PRIx64 " of a data call: %#" PRIx64 " are not supported\n", flags,
		 flags & ~allowed);
	return -FI_EBADFLAGS;
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 void *context)
{
	if (cnt > UDP_IOV_LIMIT || (cnt && !iov))
		return -FI_EINVAL;
	return udp_post_recv(ep_of(fid), &(struct fab_op) { .code = FAB_OP_RECV, .iov = iov, .desc = desc,
			     .iov_cnt = cnt, .addr = addr, .flags = held_of(fid)->rx_op_flags, .context = context });
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	struct iovec iov = { buf, len };

	return msg_recvv(fid, &iov, &desc, 1, addr, context);
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct udp_ep *ep = ep_of(fid);
	ssize_t ret = check_msg(msg, flags, ANY_FLAGS);

	if (ret || msg->iov_count > UDP_IOV_LIMIT)
		return ret ? ret : -FI_EINVAL;
	return udp_post_recv(ep, &(struct fab_op) { .code = FAB_OP_RECV, .iov = msg->msg_iov, .desc = msg->desc,
			     .iov_cnt = msg->iov_count, .addr = msg->addr, .flags = flags | ep->base.rx_msg_flags,
			     .context = msg->context });
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
			 void *context)
{
	if (cnt > UDP_IOV_LIMIT || (cnt && !iov))
		return -FI_EINVAL;
	return udp_submit(ep_of(fid), &(struct fab_op) { .code = FAB_OP_SEND, .iov = iov, .desc = desc, .iov_cnt = cnt,
			  .addr = addr, .flags = held_of(fid)->tx_op_flags, .context = context });
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	struct iovec iov = { (void *) buf, len };

	return msg_sendv(fid, &iov, &desc, 1, addr, context);
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct udp_ep *ep = ep_of(fid);
	ssize_t ret = check_msg(msg, flags, SEND_FLAGS);

	if (ret || msg->iov_count > UDP_IOV_LIMIT)
		return ret ? ret : -FI_EINVAL;
	return udp_submit(ep, &(struct fab_op) { .code = FAB_OP_SEND, .iov = msg->msg_iov, .desc = msg->desc,
			  .iov_cnt = msg->iov_count, .addr = msg->addr, .flags = flags | ep->base.tx_msg_flags,
			  .context = msg->context });
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr)
{
	struct iovec iov = { (void *) buf, len };

	return udp_submit(ep_of(fid), &(struct fab_op) { .code = FAB_OP_SEND, .no_comp = true, .iov = &iov,
			  .iov_cnt = 1, .addr = addr, .flags = held_of(fid)->tx_op_flags | FI_INJECT });
}

struct fi_ops_msg udp_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
};
