/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peek, claim and discard of tagged messages, fi_tagged(3). Engine lock held.
 *
 *   FI_PEEK               report length, tag, data and source of a message that has arrived, or FI_ENOMSG
 *   FI_PEEK | FI_CLAIM    and reserve it for the receive with the same context
 *   FI_CLAIM              receive the message claimed with this context; address and tag of the call are ignored
 *   ... | FI_DISCARD      and drop it
 */
#include "common/receive/recv.h"
#include "common/receive/recv_path.h"

static void peek_found(struct fab_recv *recv, const struct fab_op *op, const struct fab_kept *kept)
{
	struct fab_ep *ep = fab_recv_reporter(recv, kept);
	struct fab_msg msg = fab_kept_msg(recv, kept);
	const struct fab_comp comp = {
		.context = op->context, .flags = fab_op_desc[op->code].cq_flags | msg.flags | (op->flags & FI_CLAIM),
		.len = msg.len, .data = msg.data, .tag = msg.tag, .src = fab_ep_src(ep, msg.src),
	};

	/* the completion is the result of a peek, so it is written even with selective completion */
	fab_ep_complete(ep, op->code, &comp, ep->bound.rx_cq);
}

static void peek_nothing(struct fab_recv *recv, const struct fab_op *op)
{
	const struct fab_comp comp = {
		.context = op->context, .flags = fab_op_desc[op->code].cq_flags, .tag = op->tag,
		.src = FI_ADDR_NOTAVAIL,
	};

	fab_ep_fail(fab_recv_reporter(recv, NULL), op->code, &comp, &(struct fab_cq_fail) { .err = FI_ENOMSG,
		    .prov_errno = FI_ENOMSG, .text = "no such message has arrived" });
}

static struct fab_kept *peek_find_claimed(struct fab_recv *recv, const void *context)
{
	struct fab_list *link;

	fab_list_for_each(&recv->claimed, link) {
		struct fab_kept *kept = fab_container(link, struct fab_kept, match.order);

		if (kept->claim == context)
			return kept;
	}
	return NULL;
}

static void peek_look(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src)
{
	struct fab_kept *kept = fab_recv_find_kept(recv, op, src);

	/* A program that only peeks gets a completion from every fi_cq_read(), which then makes no progress. */
	if (!kept && fab_engine_run(recv->ep->engine))
		kept = fab_recv_find_kept(recv, op, src);
	if (!kept) {
		peek_nothing(recv, op);
		return;
	}
	peek_found(recv, op, kept);
	if (op->flags & FI_DISCARD) {
		fab_kept_drop(recv, kept);
	} else if (op->flags & FI_CLAIM) {
		fab_kept_unlink(recv, kept);
		kept->place = FAB_KEPT_CLAIMED;
		kept->claim = op->context;
		fab_list_add_tail(&recv->claimed, &kept->match.order);
	}
}

static int peek_claim(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src)
{
	struct fab_kept *kept = peek_find_claimed(recv, op->context);
	struct fab_rx *rx;
	int ret;

	if (!kept) {
		/* never claimed, or its sender failed before the message was complete */
		peek_nothing(recv, op);
		return 0;
	}
	if (op->flags & FI_DISCARD) {
		peek_found(recv, op, kept);
		fab_kept_drop(recv, kept);
		return 0;
	}
	ret = fab_rx_new(recv, op, src, &rx);
	if (!ret)
		fab_kept_take_with(recv, kept, rx, recv->ops);
	return ret;
}

int fab_recv_peek(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src)
{
	if (op->code != FAB_OP_TRECV || (op->flags & FI_MULTI_RECV) || !(op->flags & (FI_PEEK | FI_CLAIM)))
		return -FI_EINVAL;
	if (fab_recv_is_mute(recv))
		return -FI_EOPBADSTATE;
	if (!(op->flags & FI_PEEK))
		return peek_claim(recv, op, src);
	peek_look(recv, op, src);
	return 0;
}
