/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receives for any peer with a certain authorization key: fi_recvmsg() and fi_trecvmsg() with FI_AUTH_KEY, when the
 * keys are in the address vector (FI_AV_AUTH_KEY). Such a receive is queued with a source that stands for the key, and
 * that no peer has. A message is searched under its own source and under the source of its key, and the older receive
 * takes it. Messages of a peer group do not match such receives. They are rare; without them the cost is the test of a
 * flag. Engine lock held.
 */
#include "tcp/message/msg.h"
#include "common/av/av.h"
#include "tcp/params/params.h"

#define KEY_SRC	(1ULL << 62)		/* the source for a key; the key's handle is in the lower bits */

static fi_addr_t keyed_src(fi_addr_t handle)
{
	return KEY_SRC | handle;
}

struct fab_rx *tcp_keyed_find(struct tcp_conn *conn, enum fab_msg_class class, uint64_t tag, struct fab_rx *other)
{
	const struct fab_av *av = conn->ep->base.bound.av;
	fi_addr_t handle = av ? fab_av_key_handle(av, conn->auth_key) : FI_ADDR_NOTAVAIL;
	struct fab_rx *rx;

	if (handle == FI_ADDR_NOTAVAIL)
		return other;
	rx = fab_recv_find(tcp_recv_of(conn->ep, class), class, tag, keyed_src(handle));
	return !rx || (other && other->posted.seq < rx->posted.seq) ? other : rx;
}

/* The oldest kept message for the receive, or NULL. Messages whose connection has ended have no key any more. */
static struct fab_kept *keyed_find_kept(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src)
{
	const struct fab_auth_key *key = fab_av_key_at(recv->ep->bound.av, op->addr);
	struct fab_list *link;

	(void) src;
	fab_list_for_each(&fab_rx_queue(recv, op->code)->unexp_order, link) {
		struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, base.match.order);

		if (!((unexp->base.match.tag ^ op->tag) & ~op->ignore) && unexp->conn && unexp->conn->auth_key == key &&
		    unexp->base.match.src == tcp_match_src(unexp->ep, unexp->conn->fi_addr, 0))
			return &unexp->base;
	}
	return NULL;
}

int tcp_keyed_post(struct tcp_ep *ep, const struct fab_op *op)
{
	struct fab_auth_key *key = ep->base.bound.av ? fab_av_key_at(ep->base.bound.av, op->addr) : NULL;

	if (!key || !ep->directed_recv || (op->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))) {
		TCP_WARN(FI_LOG_EP_DATA, "a receive with FI_AUTH_KEY %s\n",
			 key ? "needs FI_DIRECTED_RECV, and cannot be a peek or claim" :
			 "names no key of the endpoint's address vector");
		return -FI_EINVAL;
	}
	/* whether or not it stays posted */
	ep->rx->keyed = true;
	return fab_recv_post_with(&ep->rx->recv, &ep->rx->recv.pool, op, keyed_src(op->addr), keyed_find_kept,
				  &tcp_recv_ops);
}
