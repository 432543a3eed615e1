/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The common part of the calls of fi_atomic(3): conversion from elements, which applications count, to bytes, which
 * providers count, and queries. No state, no locks.
 */
#include "common/calls/calls_atomic.h"

#include "common/memory/memory.h"

/* Convert vec, whose elements have size bytes, to iov[FAB_CALLS_IOV_MAX] and *cnt, in bytes. False if the vector is
 * invalid, or its length is not `len` bytes. */
CALL_INLINE bool vec_convert(const struct fab_calls *calls, const struct fab_ioc_vec *vec, size_t size, uint64_t len,
			     struct iovec *iov, uint32_t *cnt)
{
	uint64_t sum = 0;

	if (fab_calls_bad_vec(vec->ioc, vec->cnt, calls->iov_limit))
		return false;
	for (size_t i = 0; i < vec->cnt; i++) {
		if (vec->ioc[i].count > calls->atomic_max)
			return false;
		iov[i] = (struct iovec) { vec->ioc[i].addr, vec->ioc[i].count * size };
		sum += iov[i].iov_len;
	}
	*cnt = vec->cnt;
	return sum == len;
}

/* Convert the remote vector to bytes; *len is their sum. 0, -FI_EINVAL, -FI_EMSGSIZE. */
CALL_INLINE int rma_convert(const struct fab_calls *calls, const struct fab_call_atomic *call, size_t size,
			    struct fi_rma_iov *rma, uint64_t *len)
{
	if (!call->rma_cnt || fab_calls_bad_vec(call->rma, call->rma_cnt, calls->rma_limit))
		return -FI_EINVAL;
	*len = 0;
	for (size_t i = 0; i < call->rma_cnt; i++) {
		if (call->rma[i].count > calls->atomic_max)
			return -FI_EMSGSIZE;
		rma[i] = (struct fi_rma_iov) { call->rma[i].addr, call->rma[i].count * size, call->rma[i].key };
		*len += rma[i].len;
	}
	return *len > calls->atomic_max ? -FI_EMSGSIZE : 0;
}

/* Check call, and fill in *made. 0, -FI_EOPNOTSUPP, -FI_EINVAL, -FI_EMSGSIZE. */
CALL_INLINE int op_of_atomic(const struct fab_calls *calls, const struct fab_call_atomic *call,
			     struct fab_atomic_op *made)
{
	const bool fetches = call->kind != FAB_ATOMIC_BASE;
	uint32_t operand_cnt = 0, compare_cnt = 0, result_cnt = 0;
	uint64_t len;
	size_t size;
	int ret;

	if (!fab_atomic_valid(call->kind, call->datatype, call->op))
		return -FI_EOPNOTSUPP;
	size = fab_atomic_size(call->datatype);
	ret = rma_convert(calls, call, size, made->rma, &len);
	if (ret)
		return ret;
	if (call->op != FI_ATOMIC_READ && !vec_convert(calls, &call->operand, size, len, made->operand, &operand_cnt))
		return -FI_EINVAL;
	if (call->kind == FAB_ATOMIC_COMPARE &&
	    !vec_convert(calls, &call->compare, size, len, made->compare, &compare_cnt))
		return -FI_EINVAL;
	if (fetches && !vec_convert(calls, &call->result, size, len, made->result, &result_cnt))
		return -FI_EINVAL;
	made->amo = (struct fab_amo) {
		.kind = call->kind, .datatype = call->datatype, .op = call->op, .operand = made->operand,
		.operand_cnt = fetches ? operand_cnt : 0, .compare = made->compare, .compare_cnt = compare_cnt,
		.call = call,
	};
	made->op = (struct fab_op) {
		.code = fetches ? FAB_OP_FETCH_ATOMIC : FAB_OP_ATOMIC, .no_comp = call->no_comp,
		.iov = fetches ? made->result : made->operand, .iov_cnt = fetches ? result_cnt : operand_cnt,
		.desc = fetches ? call->result.desc : call->operand.desc, .rma = made->rma, .rma_cnt = call->rma_cnt,
		.amo = &made->amo, .addr = call->addr, .flags = call->flags, .context = call->context,
	};
	return 0;
}

/* Check msg and flags, and fill in *call from them. */
static int call_of_msg(struct fid_ep *fid, const struct fab_calls *calls, const struct fi_msg_atomic *msg,
		       uint64_t flags, struct fab_call_atomic *call)
{
	int ret = (int) fab_calls_check(calls->prov, msg, flags, calls->atomic_flags);

	if (ret)
		return ret;
	call->datatype = msg->datatype;
	call->op = msg->op;
	call->operand = (struct fab_ioc_vec) { msg->msg_iov, msg->iov_count, msg->desc };
	call->rma = msg->rma_iov;
	call->rma_cnt = msg->rma_iov_count;
	call->addr = msg->addr;
	call->flags = fab_calls_tx_msg_flags(fid, flags);
	call->context = msg->context;
	return 0;
}

int fab_op_of_atomic_msg(struct fid_ep *fid, const struct fab_calls *calls, const struct fi_msg_atomic *msg,
			 uint64_t flags, struct fab_call_atomic *call, struct fab_atomic_op *made)
{
	int ret = call_of_msg(fid, calls, msg, flags, call);

	return ret ? ret : op_of_atomic(calls, call, made);
}

ssize_t fab_call_atomic(struct fid_ep *fid, const struct fab_calls *calls, const struct fab_call_atomic *call)
{
	struct fab_atomic_op made;
	int ret = op_of_atomic(calls, call, &made);

	if (ret)
		return ret;
	FAB_PROBE4(post, fab_calls_held(fid)->ep, made.op.addr, made.op.code, made.op.context);
	return calls->submit(fab_calls_held(fid)->ep, &made.op);
}

ssize_t fab_call_atomic_msg(struct fid_ep *fid, const struct fab_calls *calls, const struct fi_msg_atomic *msg,
			    uint64_t flags, struct fab_call_atomic *call)
{
	int ret = call_of_msg(fid, calls, msg, flags, call);

	return ret ? ret : fab_call_atomic(fid, calls, call);
}

int fab_call_atomic_mark(const struct fab_amo *amo, uint64_t *flags)
{
	const struct fab_call_atomic *call = amo->call;
	int ret;

	if (!call)
		return 0;
	ret = fab_mr_mark(call->operand.desc, call->operand.cnt, flags);
	return ret || amo->kind != FAB_ATOMIC_COMPARE ? ret : fab_mr_mark(call->compare.desc, call->compare.cnt, flags);
}

size_t fab_ioc_count(const struct fi_ioc *ioc, size_t cnt)
{
	size_t count = 0;

	for (size_t i = 0; ioc && i < cnt && i < FAB_CALLS_IOV_MAX; i++)
		count += ioc[i].count;
	return count;
}

/* ---- queries ---- */

int fab_call_atomic_valid(size_t max, enum fab_atomic_kind kind, enum fi_datatype datatype, enum fi_op op,
			  size_t *count)
{
	if (!fab_atomic_valid(kind, datatype, op))
		return -FI_EOPNOTSUPP;
	if (count)
		*count = max / fab_atomic_size(datatype);
	return 0;
}

int fab_query_atomic(size_t max, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr, uint64_t flags)
{
	enum fab_atomic_kind kind = flags & FI_FETCH_ATOMIC ? FAB_ATOMIC_FETCH :
				    flags & FI_COMPARE_ATOMIC ? FAB_ATOMIC_COMPARE : FAB_ATOMIC_BASE;
	int ret;

	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED))
		return -FI_EBADFLAGS;
	if (!attr || (flags & (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EINVAL;
	if (flags & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	ret = fab_call_atomic_valid(max, kind, datatype, op, &attr->count);
	if (!ret)
		attr->size = fab_atomic_size(datatype);
	return ret;
}
