/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The tables of data calls (common/calls/calls_message.h), which end in vrb_submit() and vrb_post_recv(). A connected
 * endpoint has one peer, so the address in a call is ignored.
 */
#include "common/calls/calls.h"
#include "common/ops/ops.h"
#include "verbs/post.h"

/* Flags that programs may pass although they add nothing to a call. */
#define ANY_FLAGS	(FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_COMPLETION | FI_MORE)
#define TX_FLAGS	(ANY_FLAGS | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_FENCE)

VRB_POST ssize_t submit(struct fab_ep *base, const struct fab_op *op)
{
	struct vrb_ep *ep = fab_container(base, struct vrb_ep, base);

	if (op->code == FAB_OP_READ && op->iov_cnt > 1 && op->iov_cnt > ep->read_iov_limit)
		return vrb_read_apart(ep, op);
	return vrb_submit(ep, op);
}

VRB_POST ssize_t post_recv(struct fab_ep *ep, const struct fab_op *op)
{
	return vrb_post_recv(fab_container(ep, struct vrb_ep, base), op);
}

static const struct fab_calls calls = {
	.prov = &vrb_prov,
	.submit = submit,
	.post_recv = post_recv,
	.send_flags = TX_FLAGS | FI_INJECT | FI_REMOTE_CQ_DATA,
	.read_flags = TX_FLAGS,
	.recv_flags = ANY_FLAGS,
	.iov_limit = VRB_IOV_LIMIT,
	.rma_limit = 1,
};

struct fi_ops_msg vrb_msg_ops = FAB_CALLS_MSG;
struct fi_ops_rma vrb_rma_ops = FAB_CALLS_RMA;

void vrb_data_fill_ops(void)
{
	FAB_OPS_FILL(&vrb_msg_ops);
	FAB_OPS_FILL(&vrb_rma_ops);
}
