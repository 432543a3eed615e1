/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Looking for a tagged message before receiving it, fi_tagged(3). Engine lock held.
 *
 *   FI_PEEK               is there one? Its length, tag, data and source, or FI_ENOMSG
 *   FI_PEEK | FI_CLAIM    and keep it for the receive that names the same context
 *   FI_CLAIM              receive what was claimed with this context, whatever address or tag the call gives
 *   ... | FI_DISCARD      and drop it
 */
#include "tcp/message/msg.h"

static void peek_found(const struct fab_op *op, const struct tcp_unexp *unexp)
{
	struct tcp_ep *ep = unexp->foreign ? tcp_rx_reporter(unexp->ep) : unexp->ep;
	struct tcp_msg msg = tcp_unexp_msg(unexp);
	struct fab_comp comp = {
		.context = op->context,
		.flags = fab_op_desc[op->code].cq_flags | (msg.has_data ? FI_REMOTE_CQ_DATA : 0) |
			 (op->flags & FI_CLAIM),
		.len = msg.len, .data = msg.data, .tag = msg.tag,
		.src = tcp_ep_src(ep, msg.src),
	};

	/* the answer is the completion: there is one whatever was selected */
	fab_ep_complete(&ep->base, op->code, &comp, ep->base.rx_cq);
}

static void peek_nothing(struct tcp_ep *ep, const struct fab_op *op)
{
	struct fab_comp comp = {
		.context = op->context, .flags = fab_op_desc[op->code].cq_flags, .tag = op->tag,
		.src = FI_ADDR_NOTAVAIL,
	};

	fab_ep_fail(&tcp_rx_reporter(ep)->base, op->code, &comp, &(struct fab_cq_fail) { .err = FI_ENOMSG,
		    .prov_errno = FI_ENOMSG, .text = "no such message has arrived" });
}

static struct tcp_unexp *peek_claimed(struct tcp_ep *ep, const void *context)
{
	struct fab_list *link;

	fab_list_for_each(&ep->rx->claimed, link) {
		struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, match.order);

		if (unexp->claim == context)
			return unexp;
	}
	return NULL;
}

static void peek(struct tcp_ep *ep, const struct fab_op *op)
{
	fi_addr_t src = tcp_ep_recv_src(ep, op->addr);
	struct fab_unexp *match = fab_match_find_unexp(&ep->rx->tagged, op->tag, op->ignore, src);
	struct tcp_unexp *unexp;

	/* whoever only peeks, and reads the one answer each time, makes no progress otherwise: fi_cq_read had an
	 * entry */
	if (!match && fab_engine_run(ep->base.engine))
		match = fab_match_find_unexp(&ep->rx->tagged, op->tag, op->ignore, src);
	if (!match) {
		peek_nothing(ep, op);
		return;
	}
	unexp = fab_container(match, struct tcp_unexp, match);
	peek_found(op, unexp);
	if (op->flags & FI_DISCARD) {
		tcp_unexp_drop(unexp);
	} else if (op->flags & FI_CLAIM) {
		tcp_unexp_unlink(unexp);
		unexp->place = TCP_UNEXP_CLAIMED;
		unexp->claim = op->context;
		fab_list_add_tail(&ep->rx->claimed, &unexp->match.order);
	}
}

static int claim(struct tcp_ep *ep, const struct fab_op *op)
{
	struct tcp_unexp *unexp = peek_claimed(ep, op->context);
	struct tcp_rx *rx;
	int ret;

	if (!unexp) {
		/* never claimed, or its sender went before all of it had come */
		peek_nothing(ep, op);
		return 0;
	}
	if (op->flags & FI_DISCARD) {
		peek_found(op, unexp);
		tcp_unexp_drop(unexp);
		return 0;
	}
	ret = tcp_rx_new(ep, op, &rx);
	if (!ret)
		tcp_unexp_take(unexp, rx);
	return ret;
}

int tcp_peek(struct tcp_ep *ep, const struct fab_op *op)
{
	if (op->code != FAB_OP_TRECV || (op->flags & FI_MULTI_RECV) || !(op->flags & (FI_PEEK | FI_CLAIM)))
		return -FI_EINVAL;
	if (!(op->flags & FI_PEEK))
		return claim(ep, op);
	if (ep->rx->grouped && !tcp_group_valid(ep, op->addr))
		return -FI_EINVAL;
	peek(ep, op);
	return 0;
}
