/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls (common/calls/calls_message.h): tcp_submit() and tcp_post_recv() act.
 */
#include "tcp/calls/one.h"

#include "common/calls/calls.h"
#include "common/ops/ops.h"
#include "tcp/message/message.h"
#include "tcp/params/params.h"

/* Flags that programs may pass although they add nothing to a call. */
#define ANY_FLAGS	(FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_COMPLETION | \
			 FI_MORE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_MATCH_COMPLETE | FI_TRIGGER)
#define RECV_FLAGS	(ANY_FLAGS | FI_MULTI_RECV | FI_AUTH_KEY)

static ssize_t ops_submit(struct fab_ep *ep, const struct fab_op *op)
{
	return tcp_submit(fab_container(ep, struct tcp_ep, base), op);
}

static ssize_t ops_post_recv(struct fab_ep *ep, const struct fab_op *op)
{
	return tcp_post_recv(fab_container(ep, struct tcp_ep, base), op);
}

static inline __attribute__((always_inline)) ssize_t ops_send_one(struct fab_ep *ep, const struct fab_op *op)
{
	return tcp_submit_one(fab_container(ep, struct tcp_ep, base), op);
}

static inline __attribute__((always_inline)) ssize_t ops_rma_one(struct fab_ep *ep, const struct fab_op *op)
{
	return tcp_access_one(fab_container(ep, struct tcp_ep, base), op);
}

static inline __attribute__((always_inline)) ssize_t ops_recv_now(struct fab_ep *ep, const struct fab_op *op)
{
	return tcp_post_recv_now(fab_container(ep, struct tcp_ep, base), op);
}

static const struct fab_calls calls = {
	.prov = &tcp_prov,
	.submit = ops_submit,
	.post_recv = ops_post_recv,
	.send_one = ops_send_one,
	.rma_one = ops_rma_one,
	.recv_now = ops_recv_now,
	.send_flags = ANY_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA | FI_FENCE,
	.write_flags = FI_COMMIT_COMPLETE,
	.read_flags = ANY_FLAGS | FI_FENCE,
	.recv_flags = RECV_FLAGS,
	.trecv_flags = RECV_FLAGS | FI_PEEK | FI_CLAIM | FI_DISCARD,
	.atomic_flags = ANY_FLAGS | FI_ATOMIC | FI_INJECT | FI_FENCE | FI_COMMIT_COMPLETE,
	.iov_limit = TCP_IOV_LIMIT,
	.rma_limit = TCP_RMA_IOV_MAX,
	.atomic_max = TCP_AMO_MAX,
};
_Static_assert(TCP_IOV_LIMIT <= FAB_CALLS_IOV_MAX && TCP_RMA_IOV_MAX <= FAB_CALLS_IOV_MAX,
	       "fab_call_atomic() has room");

const struct fab_calls *const tcp_calls = &calls;

struct fi_ops_msg tcp_msg_ops = FAB_CALLS_MSG;
struct fi_ops_tagged tcp_tagged_ops = FAB_CALLS_TAGGED;
struct fi_ops_rma tcp_rma_ops = FAB_CALLS_RMA;
struct fi_ops_atomic tcp_atomic_ops = FAB_CALLS_ATOMIC;

int tcp_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op, struct fi_atomic_attr *attr,
		     uint64_t flags)
{
	(void) domain;
	/* every atomic that is supported is supported on tagged receives, too */
	return fab_query_atomic(calls.atomic_max, datatype, op, attr, flags & ~FI_TAGGED);
}

void tcp_data_fill_ops(void)
{
	FAB_OPS_FILL(&tcp_msg_ops);
	FAB_OPS_FILL(&tcp_tagged_ops);
	FAB_OPS_FILL(&tcp_rma_ops);
	FAB_OPS_FILL(&tcp_atomic_ops);
}
