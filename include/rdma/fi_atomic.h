/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Computing on a peer's memory - fi_atomic(3). As RMA (fi_rma.h), with elements of an enum fi_datatype instead of bytes
 * and an enum fi_op done to each; one element is changed as a whole, an array is not. Atomic among all that come
 * through the same domain of the target; not with its CPU. For the calls in general, see fi_endpoint.h.
 *
 *   atomic		the operation alone
 *   fetch_atomic	and what was there before goes to result
 *   compare_atomic	the same for FI_CSWAP to FI_MSWAP, with what to compare with
 *
 * count is in elements; of one call at most what fi_atomicvalid() and its like say. addr and key name the target as in
 * fi_rma.h. Buffers (operand, compare, result) are the provider's until the completion, vectors, desc and messages the
 * caller's again when the call returns. Any thread, as far as domain_attr::threading goes. 0: one completion follows
 * (none of fi_inject_atomic()); -FI_EAGAIN: call again after reading completions; -FI_EOPNOTSUPP: not this operation on
 * this datatype; -FI_EMSGSIZE: too many elements; another -FI_E*: nothing was done, see fi_atomic(3).
 */
#ifndef FI_ATOMIC_H
#define FI_ATOMIC_H

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of fi_query_atomic(): which kind; neither is the first of above. With FI_TAGGED: on the buffers of tagged
 * receives, addr then being an offset into one and key its tag. */
#define FI_FETCH_ATOMIC (1ULL << 58)
#define FI_COMPARE_ATOMIC (1ULL << 59)

struct fi_atomic_attr {
	size_t count;			/* elements of one call, at most */
	size_t size;			/* bytes of an element */
};

/* The operand and the target, for the calls with flags; both have the same number of elements in all. All is the
 * caller's. */
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
	uint64_t data;			/* with FI_REMOTE_CQ_DATA, of providers that carry it here */
};

/* Result, and what to compare with, for deferred work (fi_trigger.h). */
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

/* The provider's table: write is fi_atomic() and its kin, readwrite fetching, compwrite comparing. */
struct fi_ops_atomic {
	size_t size;			/* bytes of the table that the provider has */
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

/* Operation alone: FI_MIN to FI_BXOR, FI_ATOMIC_WRITE, FI_DIFF. */
static inline ssize_t fi_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc, fi_addr_t dest_addr,
				uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	return ep->atomic->write(ep, buf, count, desc, dest_addr, addr, key, datatype, op, context);
}

/* The same with an operand in count pieces; the target is one. */
static inline ssize_t fi_atomicv(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
				 fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,
				 enum fi_op op, void *context)
{
	return ep->atomic->writev(ep, iov, desc, count, dest_addr, addr, key, datatype, op, context);
}

/* The same with flags in place of the endpoint's, and targets in pieces: FI_COMPLETION, FI_MORE, FI_INJECT,
 * FI_*_COMPLETE, FI_FENCE, FI_TAGGED, FI_TRIGGER. */
static inline ssize_t fi_atomicmsg(struct fid_ep *ep, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return ep->atomic->writemsg(ep, msg, flags);
}

/* The operand may change as soon as the call returns, and there is no completion. count elements: at most
 * tx_attr::inject_size bytes, or -FI_EMSGSIZE. */
static inline ssize_t fi_inject_atomic(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest_addr,
				       uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	return ep->atomic->inject(ep, buf, count, dest_addr, addr, key, datatype, op);
}

/* Fetching: those of above and FI_ATOMIC_READ, whose buf may be NULL. result: count elements, there at completion. */
static inline ssize_t fi_fetch_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				      void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				      enum fi_datatype datatype, enum fi_op op, void *context)
{
	return ep->atomic->readwrite(ep, buf, count, desc, result, result_desc, dest_addr, addr, key, datatype, op,
				     context);
}

/* The same with an operand in count pieces and a result in result_count; the target is one. */
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

/* Comparing: FI_CSWAP to FI_MSWAP. compare: count elements. */
static inline ssize_t fi_compare_atomic(struct fid_ep *ep, const void *buf, size_t count, void *desc,
					const void *compare, void *compare_desc, void *result, void *result_desc,
					fi_addr_t dest_addr, uint64_t addr, uint64_t key, enum fi_datatype datatype,
					enum fi_op op, void *context)
{
	return ep->atomic->compwrite(ep, buf, count, desc, compare, compare_desc, result, result_desc, dest_addr, addr,
				     key, datatype, op, context);
}

/* The same with each of them in pieces; the target is one. */
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

/* Does an endpoint have this operation on this datatype? 0: yes, *count elements in a call at most (count may be NULL);
 * -FI_EOPNOTSUPP: no. The next two ask the same of the other kinds. */
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

/* The same of a domain, before there is an endpoint; flags name the kind. 0: *attr is filled;
 * -FI_EOPNOTSUPP: no; -FI_EBADFLAGS, -FI_EINVAL, -FI_ENOSYS (the provider has no such call). Since 1.5. */
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
