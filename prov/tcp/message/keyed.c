/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receives for whoever has a certain authorization key: fi_recvmsg and fi_trecvmsg with FI_AUTH_KEY, where the keys are
 * those of the address vector (FI_AV_AUTH_KEY). Such a receive is queued under a source that no peer has and that
 * stands for the key; what comes by a connection is looked for under its own source and under that of its key, and
 * the older receive of the two takes it; not what comes in a peer group. Rare: whoever never posts one pays for the
 * test of a flag. Engine lock held.
 */
#include "tcp/message/msg.h"
#include "common/av/av.h"
#include "tcp/params/params.h"

#define KEY_SRC	(1ULL << 62)		/* with the handle of the key below it */

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

/* The oldest message that is kept for it; NULL: none. Those of connections that have ended have no key any more. */
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
	/* whether it stays posted or not */
	ep->rx->keyed = true;
	return fab_recv_post_with(&ep->rx->recv, &ep->rx->recv.pool, op, keyed_src(op->addr), keyed_find_kept,
				  &tcp_recv_ops);
}
