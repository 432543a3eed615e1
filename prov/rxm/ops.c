/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tables of data calls (common/calls/calls.h), which end in rxm_submit() and rxm_post_recv().
 */
#include "common/calls/calls.h"
#include "common/ops/ops.h"
#include "rxm/post.h"

/* Flags that programs may pass although they add nothing to a call. The endpoint handles completion levels. */
#define ANY_FLAGS	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_MORE | \
			 FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_MATCH_COMPLETE | FI_TRIGGER)
#define SEND_FLAGS	(ANY_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA)
#define RECV_FLAGS	(ANY_FLAGS | FI_MULTI_RECV)

static ssize_t rxm_ops_submit(struct fab_ep *ep, const struct fab_op *op)
{
	return rxm_submit(fab_container(ep, struct rxm_ep, base), op);
}

static ssize_t rxm_ops_post_recv(struct fab_ep *ep, const struct fab_op *op)
{
	return rxm_post_recv(fab_container(ep, struct rxm_ep, base), op);
}

static inline __attribute__((always_inline)) ssize_t rxm_ops_recv_now(struct fab_ep *ep, const struct fab_op *op)
{
	return rxm_post_recv_now(fab_container(ep, struct rxm_ep, base), op);
}

static const struct fab_calls calls = {
	.prov = &rxm_prov,
	.submit = rxm_ops_submit,
	.post_recv = rxm_ops_post_recv,
	.recv_now = rxm_ops_recv_now,
	.send_flags = SEND_FLAGS,
	.read_flags = ANY_FLAGS,
	.recv_flags = RECV_FLAGS,
	.trecv_flags = RECV_FLAGS | FI_PEEK | FI_CLAIM | FI_DISCARD,
	.atomic_flags = ANY_FLAGS | FI_INJECT,
	.iov_limit = RXM_IOV_LIMIT,
	.rma_limit = RXM_IOV_LIMIT,
	.atomic_max = RXM_AMO_MAX,
};

const struct fab_calls *const rxm_calls = &calls;

struct fi_ops_msg rxm_msg_ops = FAB_CALLS_MSG;
struct fi_ops_tagged rxm_tagged_ops = FAB_CALLS_TAGGED;
struct fi_ops_rma rxm_rma_ops = FAB_CALLS_RMA;
struct fi_ops_atomic rxm_atomic_ops = FAB_CALLS_ATOMIC;

int rxm_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags)
{
	(void) domain;
	return fab_query_atomic(calls.atomic_max, datatype, op, attr, flags);
}
