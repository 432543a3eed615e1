/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of fi_atomic(3). All are one with different arguments missing: each fills a struct call, in elements, and
 * call_submit() makes a struct fab_op of it, in bytes.
 */
#include "tcp/ops.h"

#include "common/ops.h"

#define AMO_FLAGS	((ANY_FLAGS & ~FI_TAGGED) | FI_ATOMIC | FI_INJECT | FI_FENCE)

/* Elements in memory here. */
struct vec {
	const struct fi_ioc *ioc;
	size_t cnt;
};

struct call {
	enum fab_atomic_kind kind;
	bool no_comp;			/* fi_inject_atomic() */
	enum fi_datatype datatype;
	enum fi_op op;
	struct vec operand;
	struct vec compare, result;	/* of the kinds that have them */
	const struct fi_rma_ioc *rma;
	size_t rma_cnt;
	fi_addr_t addr;
	uint64_t flags;
	void *context;
};

/* vec, whose elements have size bytes, as bytes in iov[TCP_IOV_LIMIT]: *cnt of them. False if it is not what a call may
 * have, or is not of `len` bytes in all. */
static bool vec_convert(const struct vec *vec, size_t size, uint64_t len, struct iovec *iov, uint32_t *cnt)
{
	uint64_t sum = 0;

	if (bad_vec(vec->ioc, vec->cnt, TCP_IOV_LIMIT))
		return false;
	for (size_t i = 0; i < vec->cnt; i++) {
		if (vec->ioc[i].count > TCP_AMO_MAX)
			return false;
		iov[i] = (struct iovec) { vec->ioc[i].addr, vec->ioc[i].count * size };
		sum += iov[i].iov_len;
	}
	*cnt = vec->cnt;
	return sum == len;
}

/* Targets as bytes, *len of them in all. 0, -FI_EINVAL, -FI_EMSGSIZE. */
static int rma_convert(const struct call *call, size_t size, struct fi_rma_iov *rma, uint64_t *len)
{
	if (!call->rma_cnt || bad_vec(call->rma, call->rma_cnt, TCP_RMA_IOV_MAX))
		return -FI_EINVAL;
	*len = 0;
	for (size_t i = 0; i < call->rma_cnt; i++) {
		if (call->rma[i].count > TCP_AMO_MAX)
			return -FI_EMSGSIZE;
		rma[i] = (struct fi_rma_iov) { call->rma[i].addr, call->rma[i].count * size, call->rma[i].key };
		*len += rma[i].len;
	}
	return *len > TCP_AMO_MAX ? -FI_EMSGSIZE : 0;
}

static ssize_t call_submit(struct fid_ep *fid, const struct call *call)
{
	struct iovec operand[TCP_IOV_LIMIT], compare[TCP_IOV_LIMIT], result[TCP_IOV_LIMIT];
	const bool fetches = call->kind != FAB_ATOMIC_BASE;
	const size_t size = fab_atomic_size(call->datatype);
	struct fi_rma_iov rma[TCP_RMA_IOV_MAX];
	struct fab_amo amo = { .kind = call->kind, .datatype = call->datatype, .op = call->op };
	struct fab_op op = {
		.code = fetches ? FAB_OP_FETCH_ATOMIC : FAB_OP_ATOMIC, .no_comp = call->no_comp, .rma = rma,
		.rma_cnt = call->rma_cnt, .amo = &amo, .addr = call->addr, .flags = call->flags, .context = call->context,
	};
	uint64_t len;
	int ret;

	if (!fab_atomic_valid(call->kind, call->datatype, call->op))
		return -FI_EOPNOTSUPP;
	ret = rma_convert(call, size, rma, &len);
	if (ret)
		return ret;
	if (call->op != FI_ATOMIC_READ && !vec_convert(&call->operand, size, len, operand, &amo.operand_cnt))
		return -FI_EINVAL;
	if (call->kind == FAB_ATOMIC_COMPARE && !vec_convert(&call->compare, size, len, compare, &amo.compare_cnt))
		return -FI_EINVAL;
	if (fetches && !vec_convert(&call->result, size, len, result, &op.iov_cnt))
		return -FI_EINVAL;
	amo.operand = operand;
	amo.compare = compare;
	op.iov = result;
	if (!fetches) {
		op.iov = operand;
		op.iov_cnt = amo.operand_cnt;
		amo.operand_cnt = 0;
	}
	return tcp_submit(ep_of(fid), &op);
}

/* What the calls with a message say; compare and result are added where they are. */
static ssize_t call_msg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags, struct call *call)
{
	ssize_t ret = check_msg(msg, flags, AMO_FLAGS);

	if (ret)
		return ret;
	call->datatype = msg->datatype;
	call->op = msg->op;
	call->operand = (struct vec) { msg->msg_iov, msg->iov_count };
	call->rma = msg->rma_iov;
	call->rma_cnt = msg->rma_iov_count;
	call->addr = msg->addr;
	call->flags = tx_msg_flags(fid, flags);
	call->context = msg->context;
	return call_submit(fid, call);
}

/* One place of cnt elements, as a struct vec and as a target. */
#define ONE(buf, cnt)		{ &(struct fi_ioc) { (void *) (buf), cnt }, 1 }
#define TARGET(cnt, at, akey)	.rma = &(struct fi_rma_ioc) { .addr = at, .count = cnt, .key = akey }, .rma_cnt = 1

static size_t vec_count(const struct fi_ioc *ioc, size_t cnt)
{
	size_t count = 0;

	for (size_t i = 0; ioc && i < cnt && i < TCP_IOV_LIMIT; i++)
		count += ioc[i].count;
	return count;
}

/* ---- operation alone ---- */

static ssize_t amo_write(struct fid_ep *fid, const void *buf, size_t count, void *desc, fi_addr_t dest, uint64_t addr,
			 uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void) desc;
	return call_submit(fid, &(struct call) {
		.kind = FAB_ATOMIC_BASE, .datatype = datatype, .op = op, .operand = ONE(buf, count),
		TARGET(count, addr, key), .addr = dest, .flags = tx_flags(fid), .context = context
	});
}

static ssize_t amo_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t cnt, fi_addr_t dest,
			  uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void) desc;
	return call_submit(fid, &(struct call) {
		.kind = FAB_ATOMIC_BASE, .datatype = datatype, .op = op, .operand = { iov, cnt },
		TARGET(vec_count(iov, cnt), addr, key), .addr = dest, .flags = tx_flags(fid), .context = context
	});
}

static ssize_t amo_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	return call_msg(fid, msg, flags, &(struct call) { .kind = FAB_ATOMIC_BASE });
}

static ssize_t amo_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest, uint64_t addr,
			  uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	return call_submit(fid, &(struct call) {
		.kind = FAB_ATOMIC_BASE, .no_comp = true, .datatype = datatype, .op = op, .operand = ONE(buf, count),
		TARGET(count, addr, key), .addr = dest, .flags = inject_flags(fid)
	});
}

/* ---- fetching: without an operand, FI_ATOMIC_READ takes its number of elements from the result ---- */

static ssize_t amo_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, void *result,
			     void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			     enum fi_op op, void *context)
{
	(void) desc, (void) result_desc;
	return call_submit(fid, &(struct call) {
		.kind = FAB_ATOMIC_FETCH, .datatype = datatype, .op = op, .operand = ONE(buf, count),
		.result = ONE(result, count), TARGET(count, addr, key), .addr = dest, .flags = tx_flags(fid),
		.context = context
	});
}

static ssize_t amo_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t cnt,
			      struct fi_ioc *resultv, void **result_desc, size_t result_cnt, fi_addr_t dest,
			      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void) desc, (void) result_desc;
	return call_submit(fid, &(struct call) {
		.kind = FAB_ATOMIC_FETCH, .datatype = datatype, .op = op, .operand = { iov, cnt },
		.result = { resultv, result_cnt }, TARGET(vec_count(resultv, result_cnt), addr, key), .addr = dest,
		.flags = tx_flags(fid), .context = context
	});
}

static ssize_t amo_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, struct fi_ioc *resultv,
				void **result_desc, size_t result_cnt, uint64_t flags)
{
	(void) result_desc;
	return call_msg(fid, msg, flags, &(struct call) {
		.kind = FAB_ATOMIC_FETCH, .result = { resultv, result_cnt }
	});
}

/* ---- comparing ---- */

static ssize_t amo_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc, const void *compare,
			     void *compare_desc, void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
			     uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void) desc, (void) compare_desc, (void) result_desc;
	return call_submit(fid, &(struct call) {
		.kind = FAB_ATOMIC_COMPARE, .datatype = datatype, .op = op, .operand = ONE(buf, count),
		.compare = ONE(compare, count), .result = ONE(result, count), TARGET(count, addr, key), .addr = dest,
		.flags = tx_flags(fid), .context = context
	});
}

static ssize_t amo_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t cnt,
			      const struct fi_ioc *comparev, void **compare_desc, size_t compare_cnt,
			      struct fi_ioc *resultv, void **result_desc, size_t result_cnt, fi_addr_t dest,
			      uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op, void *context)
{
	(void) desc, (void) compare_desc, (void) result_desc;
	return call_submit(fid, &(struct call) {
		.kind = FAB_ATOMIC_COMPARE, .datatype = datatype, .op = op, .operand = { iov, cnt },
		.compare = { comparev, compare_cnt }, .result = { resultv, result_cnt },
		TARGET(vec_count(iov, cnt), addr, key), .addr = dest, .flags = tx_flags(fid), .context = context
	});
}

static ssize_t amo_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, const struct fi_ioc *comparev,
				void **compare_desc, size_t compare_cnt, struct fi_ioc *resultv, void **result_desc,
				size_t result_cnt, uint64_t flags)
{
	(void) compare_desc, (void) result_desc;
	return call_msg(fid, msg, flags, &(struct call) {
		.kind = FAB_ATOMIC_COMPARE, .compare = { comparev, compare_cnt }, .result = { resultv, result_cnt }
	});
}

/* ---- what there is ---- */

static int amo_valid(enum fab_atomic_kind kind, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	if (!fab_atomic_valid(kind, datatype, op))
		return -FI_EOPNOTSUPP;
	if (count)
		*count = TCP_AMO_MAX / fab_atomic_size(datatype);
	return 0;
}

static int amo_writevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void) fid;
	return amo_valid(FAB_ATOMIC_BASE, datatype, op, count);
}

static int amo_readwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void) fid;
	return amo_valid(FAB_ATOMIC_FETCH, datatype, op, count);
}

static int amo_compwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void) fid;
	return amo_valid(FAB_ATOMIC_COMPARE, datatype, op, count);
}

int tcp_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags)
{
	enum fab_atomic_kind kind = flags & FI_FETCH_ATOMIC ? FAB_ATOMIC_FETCH :
				    flags & FI_COMPARE_ATOMIC ? FAB_ATOMIC_COMPARE : FAB_ATOMIC_BASE;
	int ret;

	(void) domain;
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED))
		return -FI_EBADFLAGS;
	if (!attr || (flags & (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC)) == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EINVAL;
	if (flags & FI_TAGGED)
		return -FI_EOPNOTSUPP;
	ret = amo_valid(kind, datatype, op, &attr->count);
	if (!ret)
		attr->size = fab_atomic_size(datatype);
	return ret;
}

struct fi_ops_atomic tcp_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = amo_write,
	.writev = amo_writev,
	.writemsg = amo_writemsg,
	.inject = amo_inject,
	.readwrite = amo_readwrite,
	.readwritev = amo_readwritev,
	.readwritemsg = amo_readwritemsg,
	.compwrite = amo_compwrite,
	.compwritev = amo_compwritev,
	.compwritemsg = amo_compwritemsg,
	.writevalid = amo_writevalid,
	.readwritevalid = amo_readwritevalid,
	.compwritevalid = amo_compwritevalid,
};
