/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics, fi_atomic(3). A device has two: fetch-and-add, which serves FI_SUM and FI_ATOMIC_READ, and compare-and-swap,
 * each on one 64-bit integer at an aligned address. All others return -FI_EOPNOTSUPP.
 */
#include "verbs/post.h"

#include <string.h>
#include "common/calls/calls.h"
#include "common/ops/ops.h"

#define FLAGS		(FI_ATOMIC | FI_READ | FI_WRITE | FI_COMPLETION | FI_MORE | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_FENCE)

static int valid(enum fab_atomic_kind kind, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	bool has = (datatype == FI_INT64 || datatype == FI_UINT64) &&
		   (kind == FAB_ATOMIC_FETCH ? op == FI_SUM || op == FI_ATOMIC_READ :
		    kind == FAB_ATOMIC_COMPARE && op == FI_CSWAP);

	if (has && count)
		*count = 1;
	return has ? 0 : -FI_EOPNOTSUPP;
}

/* The one element in the iov of an atomic. */
static uint64_t element(const struct iovec *iov, uint32_t cnt)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < cnt; i++) {
		if (iov[i].iov_len == sizeof(value))
			memcpy(&value, iov[i].iov_base, sizeof(value));
	}
	return value;
}

void vrb_atomic_wr(const struct fab_amo *amo, uint64_t addr, uint32_t rkey, struct ibv_send_wr *wr)
{
	uint64_t operand = amo->op == FI_ATOMIC_READ ? 0 : element(amo->operand, amo->operand_cnt);

	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.rkey = rkey;
	if (amo->kind == FAB_ATOMIC_COMPARE) {
		wr->opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr->wr.atomic.compare_add = element(amo->compare, amo->compare_cnt);
		wr->wr.atomic.swap = operand;
	} else {
		wr->opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr->wr.atomic.compare_add = operand;
	}
}

/* True if the processor cannot read the operands. */
static bool operand_is_foreign(const struct fab_amo *amo)
{
	const struct fab_call_atomic *call = amo->call;
	void **desc[] = { call->operand.desc, amo->kind == FAB_ATOMIC_COMPARE ? call->compare.desc : NULL };

	for (size_t i = 0; i < 2; i++) {
		if (desc[i] && *desc[i] && vrb_desc_foreign(*desc[i]))
			return true;
	}
	return false;
}

static ssize_t vrb_atomic_submit(struct fab_ep *ep, const struct fab_op *op)
{
	if (valid(op->amo->kind, op->amo->datatype, op->amo->op, NULL))
		return -FI_EOPNOTSUPP;
	if (op->rma_cnt != 1 || op->rma->len != VRB_ATOMIC_LEN || op->rma->addr % VRB_ATOMIC_LEN)
		return -FI_EINVAL;
	if (__builtin_expect(ep->caps & FI_HMEM, 0) && op->amo->call && operand_is_foreign(op->amo)) {
		VRB_WARN(FI_LOG_EP_DATA, "an atomic with operands in memory of a device; the processor reads them, so "
			 "they must be in host memory\n");
		return -FI_EOPNOTSUPP;
	}
	return vrb_submit(fab_container(ep, struct vrb_ep, base), op);
}

static const struct fab_calls calls = {
	.prov = &vrb_prov,
	.submit = vrb_atomic_submit,
	.atomic_flags = FLAGS,
	.iov_limit = 1,
	.rma_limit = 1,
	.atomic_max = VRB_ATOMIC_LEN,
};

static int writevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void) ep;
	return valid(FAB_ATOMIC_BASE, datatype, op, count);
}

static int readwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void) ep;
	return valid(FAB_ATOMIC_FETCH, datatype, op, count);
}

static int compwritevalid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	(void) ep;
	return valid(FAB_ATOMIC_COMPARE, datatype, op, count);
}

int vrb_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags)
{
	enum fab_atomic_kind kind = flags & FI_FETCH_ATOMIC ? FAB_ATOMIC_FETCH :
				    flags & FI_COMPARE_ATOMIC ? FAB_ATOMIC_COMPARE : FAB_ATOMIC_BASE;
	int ret = fab_query_atomic(VRB_ATOMIC_LEN, datatype, op, attr, flags);

	(void) domain;
	return ret ? ret : valid(kind, datatype, op, &attr->count);
}

struct fi_ops_atomic vrb_atomic_ops = FAB_CALLS_ATOMIC;

void vrb_atomic_fill_ops(void)
{
	vrb_atomic_ops.writevalid = writevalid;
	vrb_atomic_ops.readwritevalid = readwritevalid;
	vrb_atomic_ops.compwritevalid = compwritevalid;
	FAB_OPS_FILL(&vrb_atomic_ops);
}
