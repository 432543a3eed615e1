/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomic operations on a peer's memory - fi_atomic(3). They are similar to RMA (fi_rma.h), but apply an enum fi_op to
 * elements of an enum fi_datatype. Each element is changed atomically; an array as a whole is not. Operations are
 * atomic among all that come through the same domain of the target, but not with respect to its CPU. fi_endpoint.h
 * describes the calls in general.
 *
 *   atomic		the operation only
 *   fetch_atomic	also returns the previous values in result
 *   compare_atomic	the same for FI_CSWAP to FI_MSWAP, with values to compare with
 *
 * count is a number of elements, at most the one that fi_atomicvalid(), fi_fetch_atomicvalid() or
 * fi_compare_atomicvalid() returns. addr and key identify the target as in fi_rma.h. The provider owns the buffers
 * (operand, compare, result) until the completion; vectors, desc and messages are borrowed for the call. Any thread,
 * within domain_attr::threading. 0: one completion follows (none of fi_inject_atomic()). -FI_EAGAIN: call again after
 * reading completions. -FI_EOPNOTSUPP: the datatype does not support this operation. -FI_EMSGSIZE: too many elements.
 * Another -FI_E*: nothing was done, see fi_atomic(3).
 */
#ifndef FI_ATOMIC_H
#define FI_ATOMIC_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of fi_query_atomic() for the kind; without either, the first kind above. With FI_TAGGED: operations on buffers
 * of tagged receives, where addr is the offset in a buffer and key its tag. */
#define FI_FETCH_ATOMIC (1ULL << 58)
#define FI_COMPARE_ATOMIC (1ULL << 59)

struct fi_atomic_attr {
	size_t count;			/* most elements of one call */
	size_t size;			/* bytes of an element */
};

/* The operand and the target, for the calls with flags. Both have the same number of elements in all. The caller owns
 * everything. */
struct fi_msg_atomic {
	const struct fi_ioc *msg_iov;	/* the operand */
	void **desc;			/* fi_mr_desc() of each entry, with FI_MR_LOCAL; else NULL */
	size_t iov_count;		/* at most tx_attr::iov_limit */
	fi_addr_t addr;			/* the peer */
	const struct fi_rma_ioc *rma_iov;	/* the target */
	size_t rma_iov_count;		/* at most tx_attr::rma_iov_limit */
	enum fi_datatype datatype;
	enum fi_op op;
	void *context;
	uint64_t data;			/* with FI_REMOTE_CQ_DATA, if the provider supports it for atomics */
};

/* A result or compare buffer, for deferred work (fi_trigger.h). */
struct fi_msg_fetch {
	struct fi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
};

struct fi_msg_compare {
	const struct fi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
};

/* The provider's table: write for fi_atomic*(), readwrite for fi_fetch_atomic*(), compwrite for
 * fi_compare_atomic*(). */
struct fi_ops_atomic {
	size_t size;			/* bytes of the table, in the version that the provider has */
	ssize_t (*write)(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t dest_addr,
			 uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*writev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count, fi_addr_t dest_addr,
			  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest_addr, uint64_t addr,
			  uint64_t key, enum fi_datatype datatype, enum fi_op op);

	ssize_t (*readwrite)(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			     void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*readwritev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			      struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest_addr,
			      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*readwritemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
				void **result_desc, size_t result_count, uint64_t flags);

	ssize_t (*compwrite)(struct fid_ep *ep, const void *buf, size_t count, void *desc, const void *compare,
			     void *compare_desc, void *result, void *result_desc, fi_addr_t dest_addr, uint64_t addr,
			     uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*compwritev)(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			      const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
			      struct fi_ioc *resultv, void **result_desc, size_t result_count, fi_addr_t dest_addr,
			      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context);
	ssize_t (*compwritemsg)(struct fid_ep *ep, const struct fi_msg_atomic *msg, const struct fi_ioc *comparev,
				void **compare_desc, size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				size_t result_count, uint64_t flags);

	int (*writevalid)(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count);
	int (*readwritevalid)(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count);
	int (*compwritevalid)(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count);
};

/* FI_MIN to FI_BXOR, FI_ATOMIC_WRITE, FI_DIFF. */
static inline ssize_t fi_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t dest_addr,
				uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	return ep->atomic->write(ep, buf, count, desc, dest_addr, addr, key, datatype, op, context);
}

/* The same with an operand in count pieces. The target is one piece. */
static inline ssize_t fi_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
				 fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,
				 enum fi_op op, void *context)
{
	return ep->atomic->writev(ep, iov, desc, count, dest_addr, addr, key, datatype, op, context);
}

/* The same with flags in place of the endpoint's, and a target in pieces. flags: FI_COMPLETION, FI_MORE, FI_INJECT,
 * FI_*_COMPLETE, FI_FENCE, FI_TAGGED, FI_TRIGGER. */
static inline ssize_t fi_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return ep->atomic->writemsg(ep, msg, flags);
}

/* The program may change the operand when the call returns; there is no completion. count elements have at most
 * tx_attr::inject_size bytes, otherwise -FI_EMSGSIZE. */
static inline ssize_t fi_inject_atomic(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest_addr,
				       uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	return ep->atomic->inject(ep, buf, count, dest_addr, addr, key, datatype, op);
}

/* The same operations, and FI_ATOMIC_READ, whose buf may be NULL. result has count elements, which are valid at the
 * completion. */
static inline ssize_t fi_fetch_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				      void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				      enum fi_datatype datatype, enum fi_op op, void *context)
{
	return ep->atomic->readwrite(ep, buf, count, desc, result, result_desc, dest_addr, addr, key, datatype, op,
				     context);
}

/* The same with an operand in count pieces and a result in result_count pieces. The target is one piece. */
static inline ssize_t fi_fetch_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
				       struct fi_ioc *resultv, void **result_desc, size_t result_count,
				       fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,
				       enum fi_op op, void *context)
{
	return ep->atomic->readwritev(ep, iov, desc, count, resultv, result_desc, result_count, dest_addr, addr, key,
				      datatype, op, context);
}

/* The same with flags, as fi_atomicmsg(). */
static inline ssize_t fi_fetch_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
					 void **result_desc, size_t result_count, uint64_t flags)
{
	return ep->atomic->readwritemsg(ep, msg, resultv, result_desc, result_count, flags);
}

/* FI_CSWAP to FI_MSWAP. compare has count elements. */
static inline ssize_t fi_compare_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
					const void *compare, void *compare_desc, void *result, void *result_desc,
					fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,
					enum fi_op op, void *context)
{
	return ep->atomic->compwrite(ep, buf, count, desc, compare, compare_desc, result, result_desc, dest_addr, addr,
				     key, datatype, op, context);
}

/* The same with operand, compare and result in pieces. The target is one piece. */
static inline ssize_t fi_compare_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
					 const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
					 struct fi_ioc *resultv, void **result_desc, size_t result_count,
					 fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,
					 enum fi_op op, void *context)
{
	return ep->atomic->compwritev(ep, iov, desc, count, comparev, compare_desc, compare_count, resultv, result_desc,
				      result_count, dest_addr, addr, key, datatype, op, context);
}

/* The same with flags, as fi_atomicmsg(). */
static inline ssize_t fi_compare_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg,
					   const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
					   struct fi_ioc *resultv, void **result_desc, size_t result_count,
					   uint64_t flags)
{
	return ep->atomic->compwritemsg(ep, msg, comparev, compare_desc, compare_count, resultv, result_desc,
					result_count, flags);
}

/* Query whether an endpoint supports an operation on a datatype. 0: it does, and *count is the most elements of a call
 * (count may be NULL). -FI_EOPNOTSUPP: it does not. The next two functions query the other kinds. */
static inline int fi_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return ep->atomic->writevalid(ep, datatype, op, count);
}

static inline int fi_fetch_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return ep->atomic->readwritevalid(ep, datatype, op, count);
}

static inline int fi_compare_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return ep->atomic->compwritevalid(ep, datatype, op, count);
}

/* The same for a domain, before there is an endpoint; flags have the kind. 0: *attr is set. -FI_EOPNOTSUPP: not
 * supported. -FI_EBADFLAGS, -FI_EINVAL, -FI_ENOSYS (the provider lacks the call). Since 1.5. */
static inline int fi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
				  struct fi_atomic_attr *attr, uint64_t flags)
{
	if (!FI_CHECK_OP(domain->ops, struct fi_ops_domain, query_atomic))
		return -FI_ENOSYS;
	return domain->ops->query_atomic(domain, datatype, op, attr, flags);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_ATOMIC_H */
