/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tagged messages - fi_tagged(3). A message matches a receive if the tags are equal in all bits that are not set in the
 * receive's ignore, and, with FI_DIRECTED_RECV, the peer is the receive's src_addr. A message takes the first posted
 * receive that matches, and a receive takes the first unexpected message that matches. Untagged messages of
 * fi_endpoint.h are matched separately.
 *
 * fi_endpoint.h describes the calls in general. For all of them: Lengths are in bytes. The provider owns the buffers
 * until the completion; vectors, desc and messages (struct fi_msg_tagged) are borrowed for the call. Any thread, within
 * domain_attr::threading. 0: one completion follows (none of fi_tinject() and fi_tinjectdata()). -FI_EAGAIN: a queue is
 * full, call again after reading completions. Another -FI_E*: nothing was done, see fi_msg(3).
 */
#ifndef FI_TAGGED_H
#define FI_TAGGED_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* With ep_attr::mem_tag_format FI_TAG_MPI: the bits that a receive may ignore, separately or together. */
#define FI_MPI_IGNORE_TAG ((uint64_t) UINT32_MAX)
#define FI_MPI_IGNORE_PAYLOAD ((uint64_t) UINT8_MAX << 32)

/* A tag of format FI_TAG_MPI: the tag of MPI, and the kind of traffic. */
static inline uint64_t fi_tag_mpi(int tag, uint8_t payload_id)
{
	return (uint64_t) payload_id << 32 | (uint32_t) tag;
}

/* A message to send, or a receive to post, for the calls with flags. The caller owns everything. */
struct fi_msg_tagged {
	const struct iovec *msg_iov;
	void **desc;			/* fi_mr_desc() of each entry, with FI_MR_LOCAL; else NULL */
	size_t iov_count;		/* at most tx_attr::iov_limit or rx_attr::iov_limit */
	fi_addr_t addr;			/* the peer; of a receive its source, or FI_ADDR_UNSPEC for any */
	uint64_t tag;
	uint64_t ignore;		/* of a receive */
	void *context;
	uint64_t data;			/* with FI_REMOTE_CQ_DATA */
};

/* The provider's table, one entry for each call below. The calls describe the entries. */
struct fi_ops_tagged {
	size_t size;			/* bytes of the table, in the version that the provider has */
	ssize_t (*recv)(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t tag,
			uint64_t ignore, void *context);
	ssize_t (*recvv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr,
			 uint64_t tag, uint64_t ignore, void *context);
	ssize_t (*recvmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
	ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, uint64_t tag,
			void *context);
	ssize_t (*sendv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr,
			 uint64_t tag, void *context);
	ssize_t (*sendmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t tag);
	ssize_t (*senddata)(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			    fi_addr_t dest_addr, uint64_t tag, void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr,
			      uint64_t tag);
};

/* Post a buffer for a message with this tag; with FI_DIRECTED_RECV from src_addr (FI_ADDR_UNSPEC: any peer). A message
 * longer than the buffer completes with FI_ETRUNC. */
static inline ssize_t fi_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t tag,
			       uint64_t ignore, void *context)
{
	return ep->tagged->recv(ep, buf, len, desc, src_addr, tag, ignore, context);
}

/* The same with a buffer in count pieces. */
static inline ssize_t fi_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
				fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
{
	return ep->tagged->recvv(ep, iov, desc, count, src_addr, tag, ignore, context);
}

/*
 * flags: FI_COMPLETION, FI_MORE, FI_MULTI_RECV (with FI_TAGGED_MULTI_RECV), and one of the following, which concern
 * unexpected messages only:
 *
 *   FI_PEEK			find a message. Completes at once with its length, tag, data and peer, or with FI_ENOMSG
 *				as an error entry or as the result of the call. The message stays in the queue
 *   FI_PEEK | FI_CLAIM		the same, and reserve the message for this context, which is a struct fi_context
 *   FI_CLAIM			receive the message that was reserved for this context
 *   FI_PEEK | FI_DISCARD	as FI_PEEK, and drop the message
 *   FI_CLAIM | FI_DISCARD	drop the message that was reserved
 */
static inline ssize_t fi_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return ep->tagged->recvmsg(ep, msg, flags);
}

/* Send a message with this tag to dest_addr, which connected endpoints ignore. */
static inline ssize_t fi_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,
			       uint64_t tag, void *context)
{
	return ep->tagged->send(ep, buf, len, desc, dest_addr, tag, context);
}

/* The same with a message in count pieces. */
static inline ssize_t fi_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
				fi_addr_t dest_addr, uint64_t tag, void *context)
{
	return ep->tagged->sendv(ep, iov, desc, count, dest_addr, tag, context);
}

/* The same with flags in place of the endpoint's: FI_REMOTE_CQ_DATA, FI_COMPLETION, FI_MORE, FI_INJECT, FI_*_COMPLETE,
 * FI_FENCE, FI_TRIGGER. */
static inline ssize_t fi_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return ep->tagged->sendmsg(ep, msg, flags);
}

/* Send a message whose buffer the program may change when the call returns, without a completion. len: at most
 * tx_attr::inject_size, otherwise -FI_EMSGSIZE. */
static inline ssize_t fi_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t tag)
{
	return ep->tagged->inject(ep, buf, len, dest_addr, tag);
}

/* fi_tsend() with remote CQ data: the peer's completion has the low domain_attr::cq_data_size bytes of data. */
static inline ssize_t fi_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
				   fi_addr_t dest_addr, uint64_t tag, void *context)
{
	return ep->tagged->senddata(ep, buf, len, desc, data, dest_addr, tag, context);
}

/* fi_tinject() with remote CQ data. */
static inline ssize_t fi_tinjectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				     fi_addr_t dest_addr, uint64_t tag)
{
	return ep->tagged->injectdata(ep, buf, len, data, dest_addr, tag);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_TAGGED_H */
