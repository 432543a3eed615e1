/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading and writing a peer's memory - fi_rma(3). The peer has registered the memory with FI_REMOTE_READ or
 * FI_REMOTE_WRITE, and has sent the key. addr is the offset in the region, or with FI_MR_VIRT_ADDR the virtual address
 * at the peer. The peer does not take part and is not notified, except by remote CQ data, FI_RMA_EVENT or an ordered
 * message. Access outside of the region, or without permission, completes with FI_EACCES, FI_ENOKEY or another error.
 * fi_endpoint.h describes the calls in general.
 */
#ifndef FI_RMA_H
#define FI_RMA_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One piece of remote memory. */
struct fi_rma_iov {
	uint64_t addr;
	size_t len;
	uint64_t key;
};

/* The same in elements, for atomics. */
struct fi_rma_ioc {
	uint64_t addr;
	size_t count;
	uint64_t key;
};

/* An operation, for the calls with flags. The local and the remote pieces have the same length in all. */
struct fi_msg_rma {
	const struct iovec *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t addr;			/* the peer */
	const struct fi_rma_iov *rma_iov;
	size_t rma_iov_count;		/* at most tx_attr::rma_iov_limit */
	void *context;
	uint64_t data;			/* with FI_REMOTE_CQ_DATA */
};

struct fi_ops_rma {
	size_t size;
	ssize_t (*read)(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t addr,
			uint64_t key, void *context);
	ssize_t (*readv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t src_addr,
			 uint64_t addr, uint64_t key, void *context);
	ssize_t (*readmsg)(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
	ssize_t (*write)(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr, uint64_t addr,
			 uint64_t key, void *context);
	ssize_t (*writev)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count, fi_addr_t dest_addr,
			  uint64_t addr, uint64_t key, void *context);
	ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t addr,
			  uint64_t key);
	ssize_t (*writedata)(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
			     fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data, fi_addr_t dest_addr,
			      uint64_t addr, uint64_t key);
};

/* Read from the peer into the buffer. Completes when the data is in the buffer. */
static inline ssize_t fi_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t addr,
			      uint64_t key, void *context)
{
	return ep->rma->read(ep, buf, len, desc, src_addr, addr, key, context);
}

static inline ssize_t fi_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			       fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->readv(ep, iov, desc, count, src_addr, addr, key, context);
}

/* flags: FI_COMPLETION, FI_MORE, FI_FENCE, FI_TRIGGER. */
static inline ssize_t fi_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return ep->rma->readmsg(ep, msg, flags);
}

/* Write the buffer to the peer. */
static inline ssize_t fi_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,
			       uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->write(ep, buf, len, desc, dest_addr, addr, key, context);
}

static inline ssize_t fi_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
				fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->writev(ep, iov, desc, count, dest_addr, addr, key, context);
}

/* flags: FI_REMOTE_CQ_DATA, FI_COMPLETION, FI_MORE, FI_INJECT, FI_*_COMPLETE, FI_FENCE, FI_TRIGGER. */
static inline ssize_t fi_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return ep->rma->writemsg(ep, msg, flags);
}

/* len: at most tx_attr::inject_size. */
static inline ssize_t fi_inject_write(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr,
				      uint64_t addr, uint64_t key)
{
	return ep->rma->inject(ep, buf, len, dest_addr, addr, key);
}

/* The same two with remote CQ data: the peer's completion queue gets an entry with FI_REMOTE_WRITE when all data was
 * written. */
static inline ssize_t fi_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
				   fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->writedata(ep, buf, len, desc, data, dest_addr, addr, key, context);
}

static inline ssize_t fi_inject_writedata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
					  fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	return ep->rma->injectdata(ep, buf, len, data, dest_addr, addr, key);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_RMA_H */
