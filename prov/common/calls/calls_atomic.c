/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The common part of the calls of fi_atomic(3): conversion from elements, which applications count, to bytes, which
 * providers count, and queries. No state, no locks.
 */
#include "common/calls/calls_atomic.h"

/* Convert vec, whose elements have size bytes, to iov[FAB_CALLS_IOV_MAX] and *cnt, in bytes. False if the vector is
 * invalid, or its length is not `len` bytes. */
static bool vec_convert(const struct fab_calls *calls, const struct fab_ioc_vec *vec, size_t size, uint64_t len,
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
static int rma_convert(const struct fab_calls *calls, const struct fab_call_atomic *call, size_t size,
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

ssize_t fab_call_atomic(struct fid_ep *fid, const struct fab_calls *calls, const struct fab_call_atomic *call)
{
	struct iovec operand[FAB_CALLS_IOV_MAX], compare[FAB_CALLS_IOV_MAX], result[FAB_CALLS_IOV_MAX];
	const bool fetches = call->kind != FAB_ATOMIC_BASE;
	const size_t size = fab_atomic_size(call->datatype);
	struct fi_rma_iov rma[FAB_CALLS_IOV_MAX];
	struct fab_amo amo = { .kind = call->kind, .datatype = call->datatype, .op = call->op };
	struct fab_op op = {
		.code = fetches ? FAB_OP_FETCH_ATOMIC : FAB_OP_ATOMIC, .no_comp = call->no_comp, .rma = rma,
		.rma_cnt = call->rma_cnt, .amo = &amo, .addr = call->addr, .flags = call->flags,
		.context = call->context,
	};
	uint64_t len;
	int ret;

	if (!fab_atomic_valid(call->kind, call->datatype, call->op))
		return -FI_EOPNOTSUPP;
	ret = rma_convert(calls, call, size, rma, &len);
	if (ret)
		return ret;
	if (call->op != FI_ATOMIC_READ && !vec_convert(calls, &call->operand, size, len, operand, &amo.operand_cnt))
		return -FI_EINVAL;
	if (call->kind == FAB_ATOMIC_COMPARE &&
	    !vec_convert(calls, &call->compare, size, len, compare, &amo.compare_cnt))
		return -FI_EINVAL;
	if (fetches && !vec_convert(calls, &call->result, size, len, result, &op.iov_cnt))
		return -FI_EINVAL;
	amo.operand = operand;
	amo.compare = compare;
	op.iov = result;
	op.desc = call->result.desc;
	if (!fetches) {
		op.iov = operand;
		op.desc = call->operand.desc;
		op.iov_cnt = amo.operand_cnt;
		amo.operand_cnt = 0;
	}
	return calls->submit(fab_calls_held(fid)->ep, &op);
}

ssize_t fab_call_atomic_msg(struct fid_ep *fid, const struct fab_calls *calls, const struct fi_msg_atomic *msg,
			    uint64_t flags, struct fab_call_atomic *call)
{
	ssize_t ret = fab_calls_check(calls->prov, msg, flags, calls->atomic_flags);

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
	return fab_call_atomic(fid, calls, call);
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
