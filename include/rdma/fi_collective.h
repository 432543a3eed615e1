/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collective operations of a group - fi_collective(3), fi_av_set(3). Every member makes a set of the same addresses in
 * the same order (fi_av_set), joins the group (fi_join_collective), and then calls the same operations in the same
 * order. An operation completes for a member only after all members on which its result depends have called it.
 * fi_endpoint.h describes the calls in general; count is a number of elements of an enum fi_datatype. Since 1.9.
 */
#ifndef FI_COLLECTIVE_H
#define FI_COLLECTIVE_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_cm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fi_ops_av_set {
	size_t size;
	int (*set_union)(struct fid_av_set *dst, const struct fid_av_set *src);
	int (*intersect)(struct fid_av_set *dst, const struct fid_av_set *src);
	int (*diff)(struct fid_av_set *dst, const struct fid_av_set *src);
	int (*insert)(struct fid_av_set *set, fi_addr_t addr);
	int (*remove)(struct fid_av_set *set, fi_addr_t addr);
	int (*addr)(struct fid_av_set *set, fi_addr_t *coll_addr);
};

struct fid_av_set {
	struct fid fid;
	struct fi_ops_av_set *ops;
};

/* Capabilities and limits of a collective, for fi_query_collective(). */
struct fi_collective_attr {
	enum fi_op op;			/* in: the operation of a reduction, otherwise FI_NOOP */
	enum fi_datatype datatype;	/* in: FI_VOID for a barrier */
	struct fi_atomic_attr datatype_attr;	/* out: most elements of one call, and their size */
	size_t max_members;		/* out */
	uint64_t mode;			/* 0 */
};

/* The address for fi_join() with FI_COLLECTIVE. */
struct fi_collective_addr {
	const struct fid_av_set *set;
	fi_addr_t coll_addr;
};

/* An operation, for deferred work and for providers that forward it. */
struct fi_msg_collective {
	const struct fi_ioc *msg_iov;
	void **desc;
	size_t iov_count;
	fi_addr_t coll_addr;		/* the group */
	fi_addr_t root_addr;		/* the root member */
	enum fi_collective_op coll;
	enum fi_datatype datatype;
	enum fi_op op;
	void *context;
};

struct fi_ops_collective {
	size_t size;
	ssize_t (*barrier)(struct fid_ep *ep, fi_addr_t coll_addr, void *context);
	ssize_t (*broadcast)(struct fid_ep *ep, void *buf, size_t count, void *desc, fi_addr_t coll_addr,
			     fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags, void *context);
	ssize_t (*alltoall)(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			    void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags,
			    void *context);
	ssize_t (*allreduce)(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			     void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op,
			     uint64_t flags, void *context);
	ssize_t (*allgather)(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			     void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags,
			     void *context);
	ssize_t (*reduce_scatter)(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				  void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op,
				  uint64_t flags, void *context);
	ssize_t (*reduce)(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc,
			  fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype, enum fi_op op,
			  uint64_t flags, void *context);
	ssize_t (*scatter)(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
			   void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype,
			   uint64_t flags, void *context);
	ssize_t (*gather)(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result, void *result_desc,
			  fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
			  void *context);
	/* Any of the operations; msg has the kind. */
	ssize_t (*msg)(struct fid_ep *ep, const struct fi_msg_collective *msg, struct fi_ioc *resultv,
		       void **result_desc, size_t result_count, uint64_t flags);
	ssize_t (*barrier2)(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags, void *context);	/* since 1.17 */
};


/*
 * Sets of addresses. These calls do not communicate. A set must not change while the result of fi_av_set_addr() is in
 * use.
 */

/* Make a set of addresses of an address vector. The set is closed before the vector. */
static inline int fi_av_set(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, av_set))
		return -FI_ENOSYS;
	return av->ops->av_set(av, attr, set, context);
}

/* Union: add the members of src to dst. Intersection: keep only members that are also in src. Difference: remove
 * members that are in src. Members that stay keep their order; new members are appended. */
static inline int fi_av_set_union(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dst->ops->set_union(dst, src);
}

static inline int fi_av_set_intersect(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dst->ops->intersect(dst, src);
}

static inline int fi_av_set_diff(struct fid_av_set *dst, const struct fid_av_set *src)
{
	return dst->ops->diff(dst, src);
}

/* Append one address; remove one. */
static inline int fi_av_set_insert(struct fid_av_set *set, fi_addr_t addr)
{
	return set->ops->insert(set, addr);
}

static inline int fi_av_set_remove(struct fid_av_set *set, fi_addr_t addr)
{
	return set->ops->remove(set, addr);
}

/* The address of the set for fi_join_collective(). */
static inline int fi_av_set_addr(struct fid_av_set *set, fi_addr_t *coll_addr)
{
	return set->ops->addr(set, coll_addr);
}


/*
 * Groups
 */

/*
 * Join a group. All members call it. coll_addr is the result of fi_av_set_addr(), or of fi_mc_addr() for a group that
 * contains the new one; FI_ADDR_NOTAVAIL if the members are agreed on already. 0: the join was started;
 * FI_JOIN_COMPLETE follows, and then fi_mc_addr(*mc) is the group. -FI_ENOEQ: no event queue is bound. Closing *mc
 * leaves the group.
 */
static inline int fi_join_collective(struct fid_ep *ep, fi_addr_t coll_addr, const struct fid_av_set *set,
				     uint64_t flags, struct fid_mc **mc, void *context)
{
	struct fi_collective_addr addr;

	addr.set = set;
	addr.coll_addr = coll_addr;
	return fi_join(ep, &addr, flags | FI_COLLECTIVE, mc, context);
}

/* Completes when all members have called it. */
static inline ssize_t fi_barrier(struct fid_ep *ep, fi_addr_t coll_addr, void *context)
{
	return ep->collective->barrier(ep, coll_addr, context);
}

/* The same with flags of the operation. Since 1.17. */
static inline ssize_t fi_barrier2(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags, void *context)
{
	if (!flags)
		return fi_barrier(ep, coll_addr, context);
	if (!FI_CHECK_OP(ep->collective, struct fi_ops_collective, barrier2))
		return -FI_ENOSYS;
	return ep->collective->barrier2(ep, coll_addr, flags, context);
}

/* Copy the root's buf to the buf of every member. */
static inline ssize_t fi_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc, fi_addr_t coll_addr,
				   fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags, void *context)
{
	return ep->collective->broadcast(ep, buf, count, desc, coll_addr, root_addr, datatype, flags, context);
}

/* Part j of member i's buf becomes part i of member j's result. */
static inline ssize_t fi_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				  void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags,
				  void *context)
{
	return ep->collective->alltoall(ep, buf, count, desc, result, result_desc, coll_addr, datatype, flags, context);
}

/* Apply op to the bufs of all members, element by element; every member gets the result. */
static inline ssize_t fi_allreduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				   void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, enum fi_op op,
				   uint64_t flags, void *context)
{
	return ep->collective->allreduce(ep, buf, count, desc, result, result_desc, coll_addr, datatype, op, flags,
					 context);
}

/* Every member gets the bufs of all members, one after the other in the order of members. */
static inline ssize_t fi_allgather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				   void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype, uint64_t flags,
				   void *context)
{
	return ep->collective->allgather(ep, buf, count, desc, result, result_desc, coll_addr, datatype, flags,
					 context);
}

/* As fi_allreduce(), but member i gets only part i. */
static inline ssize_t fi_reduce_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
					void *result_desc, fi_addr_t coll_addr, enum fi_datatype datatype,
					enum fi_op op, uint64_t flags, void *context)
{
	return ep->collective->reduce_scatter(ep, buf, count, desc, result, result_desc, coll_addr, datatype, op, flags,
					      context);
}

/* As fi_allreduce(), but only the root gets the result. */
static inline ssize_t fi_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype,
				enum fi_op op, uint64_t flags, void *context)
{
	return ep->collective->reduce(ep, buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, op,
				      flags, context);
}

/* Part i of the root's buf is copied to the result of member i. */
static inline ssize_t fi_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				 void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype,
				 uint64_t flags, void *context)
{
	return ep->collective->scatter(ep, buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, flags,
				       context);
}

/* The root gets the bufs of all members, one after the other in the order of members. */
static inline ssize_t fi_gather(struct fid_ep *ep, const void *buf, size_t count, void *desc, void *result,
				void *result_desc, fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype,
				uint64_t flags, void *context)
{
	return ep->collective->gather(ep, buf, count, desc, result, result_desc, coll_addr, root_addr, datatype, flags,
				      context);
}

/* Query whether a domain supports a collective, with attr's op and datatype. 0: it does, and attr has the limits.
 * flags: 0, or FI_SCATTER for FI_REDUCE with a scattered result. */
static inline int fi_query_collective(struct fid_domain *domain, enum fi_collective_op coll,
				      struct fi_collective_attr *attr, uint64_t flags)
{
	if (!FI_CHECK_OP(domain->ops, struct fi_ops_domain, query_collective))
		return -FI_ENOSYS;
	return domain->ops->query_collective(domain, coll, attr, flags);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_COLLECTIVE_H */
