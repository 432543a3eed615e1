/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls of fi_atomic(3), written once. Each fills a struct fab_call_atomic, whose vectors count elements;
 * fab_call_atomic() converts that into a struct fab_op, whose vectors count bytes, and hands it to calls.submit. The
 * file of a provider that defines `calls` (calls_message.h) includes this; the rules of calls_message.h for flags,
 * threads and results hold here too.
 */
#ifndef FAB_CALLS_ATOMIC_H
#define FAB_CALLS_ATOMIC_H

#include "common/calls/calls_message.h"

#define FAB_CALLS_IOV_MAX	8	/* entries of a vector, local or remote, of any provider's atomics */

/* Local memory, as a vector of elements. */
struct fab_ioc_vec {
	const struct fi_ioc *ioc;
	size_t cnt;
	void **desc;			/* one per entry, or NULL */
};

/* The arguments of an atomic call. All that it points to is the caller's. */
struct fab_call_atomic {
	enum fab_atomic_kind kind;
	bool no_comp;			/* fi_inject_atomic() */
	enum fi_datatype datatype;
	enum fi_op op;
	struct fab_ioc_vec operand;
	struct fab_ioc_vec compare, result;	/* only of kinds that compare or fetch */
	const struct fi_rma_ioc *rma;
	size_t rma_cnt;
	fi_addr_t addr;
	uint64_t flags;
	void *context;
};

/* An atomic as an operation. The pointers in it point into it: it is not moved or copied. */
struct fab_atomic_op {
	struct fab_op op;		/* points to the members below */
	struct fab_amo amo;
	struct iovec operand[FAB_CALLS_IOV_MAX], compare[FAB_CALLS_IOV_MAX], result[FAB_CALLS_IOV_MAX];
	struct fi_rma_iov rma[FAB_CALLS_IOV_MAX];
};

/* Check call, and let calls->submit carry it out. No lock held. The result of submit, or before it -FI_EOPNOTSUPP (no
 * such operation on this datatype), -FI_EINVAL (a vector is NULL, beyond the limit, or of another length than the
 * others) or -FI_EMSGSIZE (more than calls->atomic_max bytes). */
ssize_t fab_call_atomic(struct fid_ep *fid, const struct fab_calls *calls, const struct fab_call_atomic *call);
/* The same for a call with a message. The caller has filled in the kind of call, and its compare and result vectors;
 * the rest comes from msg. Also -FI_EBADFLAGS (logged). */
ssize_t fab_call_atomic_msg(struct fid_ep *fid, const struct fab_calls *calls, const struct fi_msg_atomic *msg,
			    uint64_t flags, struct fab_call_atomic *call);
/* Check such a call as fab_call_atomic_msg() does, with the same errors, but fill in *made instead of submitting. The
 * pointers in *made lead into it, and to what msg and call point to. No lock needed. 0: made->op is the operation. */
int fab_op_of_atomic_msg(struct fid_ep *fid, const struct fab_calls *calls, const struct fi_msg_atomic *msg,
			 uint64_t flags, struct fab_call_atomic *call, struct fab_atomic_op *made);

/* Set FAB_OP_HMEM in flags if an operand of an atomic is memory of a device (fab_mr_mark()). During the call. 0 or
 * -FI_EINVAL, logged. */
int fab_call_atomic_mark(const struct fab_amo *amo, uint64_t *flags);

/* The sum of the elements of the first FAB_CALLS_IOV_MAX entries of ioc[0..cnt); 0 if ioc is NULL. */
size_t fab_ioc_count(const struct fi_ioc *ioc, size_t cnt);

/* fi_atomicvalid(), fi_fetch_atomicvalid() and fi_compare_atomicvalid(), by kind, of a provider whose atomics have at
 * most max bytes. 0: *count (count may be NULL) is the most elements a call may have. -FI_EOPNOTSUPP: no such
 * operation. No lock. */
int fab_call_atomic_valid(size_t max, enum fab_atomic_kind kind, enum fi_datatype datatype, enum fi_op op,
			  size_t *count);
/* fi_query_atomic(3), likewise: fills in *attr. 0, -FI_EOPNOTSUPP, -FI_EINVAL (attr is NULL, or flags both fetch and
 * compare), -FI_EBADFLAGS. */
int fab_query_atomic(size_t max, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags);

/* One buffer of cnt elements: as a struct fab_ioc_vec, and as the remote vector of a call. */
#define CALL_ONE(buf, cnt, dsc)	{ &(struct fi_ioc) { (void *) (buf), cnt }, 1, &(void *) { dsc } }
#define CALL_TARGET(cnt, at, akey) \
	.rma = &(struct fi_rma_ioc) { .addr = at, .count = cnt, .key = akey }, .rma_cnt = 1

/* ---- calls that neither fetch nor compare; one for each slot of struct fi_ops_atomic, as all below ---- */

static inline ssize_t call_atomic(struct fid_ep *fid, const void *buf, size_t count, void *desc, fi_addr_t dest,
				  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	return fab_call_atomic(fid, &calls, &(struct fab_call_atomic) {
		.kind = FAB_ATOMIC_BASE, .datatype = datatype, .op = op, .operand = CALL_ONE(buf, count, desc),
		CALL_TARGET(count, addr, key), .addr = dest, .flags = fab_calls_tx_flags(fid), .context = context
	});
}

static inline ssize_t call_atomicv(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t cnt,
				   fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
				   enum fi_op op, void *context)
{
	return fab_call_atomic(fid, &calls, &(struct fab_call_atomic) {
		.kind = FAB_ATOMIC_BASE, .datatype = datatype, .op = op, .operand = { iov, cnt, desc },
		CALL_TARGET(fab_ioc_count(iov, cnt), addr, key), .addr = dest, .flags = fab_calls_tx_flags(fid),
		.context = context
	});
}

static inline ssize_t call_atomicmsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return fab_call_atomic_msg(fid, &calls, msg, flags, &(struct fab_call_atomic) { .kind = FAB_ATOMIC_BASE });
}

static inline ssize_t call_inject_atomic(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest,
					 uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	return fab_call_atomic(fid, &calls, &(struct fab_call_atomic) {
		.kind = FAB_ATOMIC_BASE, .no_comp = true, .datatype = datatype, .op = op,
		.operand = CALL_ONE(buf, count, NULL), CALL_TARGET(count, addr, key), .addr = dest,
		.flags = fab_calls_inject_flags(fid)
	});
}

/* ---- fetching calls. FI_ATOMIC_READ has no operand: the result has the number of elements ---- */

static inline ssize_t call_fetch_atomic(struct fid_ep *fid, const void *buf, size_t count, void *desc, void *result,
					void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
					enum fi_datatype datatype, enum fi_op op, void *context)
{
	return fab_call_atomic(fid, &calls, &(struct fab_call_atomic) {
		.kind = FAB_ATOMIC_FETCH, .datatype = datatype, .op = op, .operand = CALL_ONE(buf, count, desc),
		.result = CALL_ONE(result, count, result_desc), CALL_TARGET(count, addr, key), .addr = dest,
		.flags = fab_calls_tx_flags(fid), .context = context
	});
}

static inline ssize_t call_fetch_atomicv(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t cnt,
					 struct fi_ioc *resultv, void **result_desc, size_t result_cnt, fi_addr_t dest,
					 uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
					 void *context)
{
	return fab_call_atomic(fid, &calls, &(struct fab_call_atomic) {
		.kind = FAB_ATOMIC_FETCH, .datatype = datatype, .op = op, .operand = { iov, cnt, desc },
		.result = { resultv, result_cnt, result_desc },
		CALL_TARGET(fab_ioc_count(resultv, result_cnt), addr, key), .addr = dest,
		.flags = fab_calls_tx_flags(fid), .context = context
	});
}

static inline ssize_t call_fetch_atomicmsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
					   void **result_desc, size_t result_cnt, uint64_t flags)
{
	return fab_call_atomic_msg(fid, &calls, msg, flags, &(struct fab_call_atomic) {
		.kind = FAB_ATOMIC_FETCH, .result = { resultv, result_cnt, result_desc }
	});
}

/* ---- comparing calls ---- */

static inline ssize_t call_compare_atomic(struct fid_ep *fid, const void *buf, size_t count, void *desc,
					  const void *compare, void *compare_desc, void *result, void *result_desc,
					  fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
					  enum fi_op op, void *context)
{
	return fab_call_atomic(fid, &calls, &(struct fab_call_atomic) {
		.kind = FAB_ATOMIC_COMPARE, .datatype = datatype, .op = op, .operand = CALL_ONE(buf, count, desc),
		.compare = CALL_ONE(compare, count, compare_desc), .result = CALL_ONE(result, count, result_desc),
		CALL_TARGET(count, addr, key), .addr = dest, .flags = fab_calls_tx_flags(fid), .context = context
	});
}

static inline ssize_t call_compare_atomicv(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t cnt,
					   const struct fi_ioc *comparev, void **compare_desc, size_t compare_cnt,
					   struct fi_ioc *resultv, void **result_desc, size_t result_cnt,
					   fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
					   enum fi_op op, void *context)
{
	return fab_call_atomic(fid, &calls, &(struct fab_call_atomic) {
		.kind = FAB_ATOMIC_COMPARE, .datatype = datatype, .op = op, .operand = { iov, cnt, desc },
		.compare = { comparev, compare_cnt, compare_desc }, .result = { resultv, result_cnt, result_desc },
		CALL_TARGET(fab_ioc_count(iov, cnt), addr, key), .addr = dest, .flags = fab_calls_tx_flags(fid),
		.context = context
	});
}

static inline ssize_t call_compare_atomicmsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
					     const struct fi_ioc *comparev, void **compare_desc, size_t compare_cnt,
					     struct fi_ioc *resultv, void **result_desc, size_t result_cnt,
					     uint64_t flags)
{
	return fab_call_atomic_msg(fid, &calls, msg, flags, &(struct fab_call_atomic) {
		.kind = FAB_ATOMIC_COMPARE, .compare = { comparev, compare_cnt, compare_desc },
		.result = { resultv, result_cnt, result_desc }
	});
}

/* ---- queries: fab_call_atomic_valid() for each kind ---- */

static inline int call_atomicvalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void) fid;
	return fab_call_atomic_valid(calls.atomic_max, FAB_ATOMIC_BASE, datatype, op, count);
}

static inline int call_fetch_atomicvalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void) fid;
	return fab_call_atomic_valid(calls.atomic_max, FAB_ATOMIC_FETCH, datatype, op, count);
}

static inline int call_compare_atomicvalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void) fid;
	return fab_call_atomic_valid(calls.atomic_max, FAB_ATOMIC_COMPARE, datatype, op, count);
}

#define FAB_CALLS_ATOMIC { \
	.size = sizeof(struct fi_ops_atomic), .write = call_atomic, .writev = call_atomicv, \
	.writemsg = call_atomicmsg, .inject = call_inject_atomic, .readwrite = call_fetch_atomic, \
	.readwritev = call_fetch_atomicv, .readwritemsg = call_fetch_atomicmsg, .compwrite = call_compare_atomic, \
	.compwritev = call_compare_atomicv, .compwritemsg = call_compare_atomicmsg, \
	.writevalid = call_atomicvalid, .readwritevalid = call_fetch_atomicvalid, \
	.compwritevalid = call_compare_atomicvalid, \
}

#endif
