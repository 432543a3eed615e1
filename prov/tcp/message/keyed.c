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

struct tcp_rx *tcp_keyed_find(struct tcp_conn *conn, enum tcp_class class, uint64_t tag, struct tcp_rx *other)
{
	const struct fab_av *av = conn->ep->base.av;
	fi_addr_t handle = av ? fab_av_key_handle(av, conn->auth_key) : FI_ADDR_NOTAVAIL;
	struct fab_posted *posted;

	if (handle == FI_ADDR_NOTAVAIL)
		return other;
	posted = fab_match_find_posted(tcp_rx_queue(conn->ep, class), tag, keyed_src(handle));
	if (!posted || (other && other->posted.seq < posted->seq))
		return other;
	return fab_container(posted, struct tcp_rx, posted);
}

/* The oldest message that is kept for it; NULL: none. Those of connections that have ended have no key any more. */
static struct tcp_unexp *keyed_unexp(struct fab_match *queue, const struct fab_op *op, const struct fab_auth_key *key)
{
	struct fab_list *link;

	fab_list_for_each(&queue->unexp_order, link) {
		struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, match.order);

		if (!((unexp->match.tag ^ op->tag) & ~op->ignore) && unexp->conn && unexp->conn->auth_key == key &&
		    unexp->match.src == tcp_match_src(unexp->ep, unexp->conn->fi_addr, 0))
			return unexp;
	}
	return NULL;
}

int tcp_keyed_post(struct tcp_ep *ep, const struct fab_op *op)
{
	struct fab_match *queue = op->code == FAB_OP_RECV ? &ep->rx->msg : &ep->rx->tagged;
	struct fab_auth_key *key = ep->base.av ? fab_av_key_at(ep->base.av, op->addr) : NULL;
	struct tcp_unexp *unexp;
	struct tcp_rx *rx;
	int ret;

	if (!key || !ep->directed_recv || (op->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))) {
		TCP_WARN(FI_LOG_EP_DATA, "a receive with FI_AUTH_KEY %s\n",
			 key ? "wants FI_DIRECTED_RECV, and is no peek or claim" :
			 "names no key of the endpoint's address vector");
		return -FI_EINVAL;
	}
	ret = tcp_rx_new(ep, op, &rx);
	if (ret)
		return ret;
	rx->posted.src = keyed_src(op->addr);
	unexp = keyed_unexp(queue, op, key);
	if (!unexp || (op->flags & FI_MULTI_RECV)) {
		ret = tcp_rx_enqueue(ep, queue, rx);
		if (ret)
			return ret;
		ep->rx->keyed = true;
	}
	while (unexp && tcp_unexp_take(unexp, rx))
		unexp = keyed_unexp(queue, op, key);
	return 0;
}
