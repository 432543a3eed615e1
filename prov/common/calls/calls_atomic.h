/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls of fi_atomic(3), written once. All are one with different arguments missing: each fills a struct
 * fab_call_atomic, in elements, of which fab_call_atomic() makes a struct fab_op, in bytes, and hands it to
 * calls.submit. For the file of a provider that defines `calls` (calls.h), whose rules hold here too.
 */
#ifndef FAB_CALLS_ATOMIC_H
#define FAB_CALLS_ATOMIC_H

#include "common/calls/calls_message.h"

#define FAB_CALLS_IOV_MAX	8	/* entries of a vector, local or remote, of any provider's atomics */

/* Elements in memory here. */
struct fab_ioc_vec {
	const struct fi_ioc *ioc;
	size_t cnt;
	void **desc;			/* one per entry, or NULL */
};

/* An atomic as programs say it. What it points to is the caller's. */
struct fab_call_atomic {
	enum fab_atomic_kind kind;
	bool no_comp;			/* fi_inject_atomic() */
	enum fi_datatype datatype;
	enum fi_op op;
	struct fab_ioc_vec operand;
	struct fab_ioc_vec compare, result;	/* of the kinds that have them */
	const struct fi_rma_ioc *rma;
	size_t rma_cnt;
	fi_addr_t addr;
	uint64_t flags;
	void *context;
};

/* Check it, and let calls->submit carry it out: what that returns, or -FI_EOPNOTSUPP (no such operation on this
 * datatype), -FI_EINVAL (vectors that are none, beyond the limit, or of different lengths), -FI_EMSGSIZE (beyond
 * calls->atomic_max). */
ssize_t fab_call_atomic(struct fid_ep *fid, const struct fab_calls *calls, const struct fab_call_atomic *call);
/* The same with what a message says added to call, which has its kind, and where it compares or fetches, with what.
 * Also -FI_EBADFLAGS. */
ssize_t fab_call_atomic_msg(struct fid_ep *fid, const struct fab_calls *calls, const struct fi_msg_atomic *msg,
			    uint64_t flags, struct fab_call_atomic *call);

/* Elements that a vector of a call describes. */
size_t fab_ioc_count(const struct fi_ioc *ioc, size_t cnt);

/* fi_atomicvalid() and its kin, of a provider whose atomics carry max bytes: 0 with *count, unless NULL, the number of
 * elements, or -FI_EOPNOTSUPP. */
int fab_call_atomic_valid(size_t max, enum fab_atomic_kind kind, enum fi_datatype datatype, enum fi_op op,
			  size_t *count);
/* fi_query_atomic(3), likewise: also -FI_EINVAL, -FI_EBADFLAGS. */
int fab_query_atomic(size_t max, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags);

/* One place of cnt elements, as a vector and as a target. */
#define CALL_ONE(buf, cnt, dsc)	{ &(struct fi_ioc) { (void *) (buf), cnt }, 1, &(void *) { dsc } }
#define CALL_TARGET(cnt, at, akey) \
	.rma = &(struct fi_rma_ioc) { .addr = at, .count = cnt, .key = akey }, .rma_cnt = 1

/* ---- operation alone ---- */

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

/* ---- fetching: without an operand, FI_ATOMIC_READ takes its number of elements from the result ---- */

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

/* ---- comparing ---- */

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

/* ---- what there is ---- */

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
