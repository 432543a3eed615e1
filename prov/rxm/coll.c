/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives (prov/common/collective/collective.h) over rxm. Their messages have their own op, RXM_OP_COLL. They are
 * sent like other messages, and matched among themselves (FAB_CLASS_COLL). The common code is told when a connection to
 * a member is lost; it tells members when a group has failed. Collectives work only between ends that both announced
 * them in the handshake. Engine lock held.
 */
#include "rxm/rx.h"

#include "common/collective/collective.h"
#include "common/offers/offers.h"

/* Get the peer of a member, and start a connection if there is none. 0 or -FI_E*. */
static int coll_peer(struct rxm_ep *ep, fi_addr_t member, struct rxm_peer **peer)
{
	int ret;

	if (ep->closing)
		return -FI_EOPBADSTATE;
	if (ep->poller->lost)
		return -ep->poller->lost;
	ret = rxm_peer_get(ep, member, peer);
	if (!ret)
		ret = rxm_peer_want(*peer);
	if (!ret && (*peer)->conn && (*peer)->conn->state == RXM_CONN_UP && !(*peer)->conn->coll)
		ret = -FI_EOPNOTSUPP;
	return ret;
}

static int coll_submit(struct fab_ep *base, const struct fab_op *op)
{
	struct rxm_ep *ep = fab_container(base, struct rxm_ep, base);
	struct rxm_peer *peer;
	int ret;

	if (op->code == FAB_OP_CRECV)
		return fab_recv_post_coll(&ep->recv, op, op->addr);
	ret = coll_peer(ep, op->addr, &peer);
	return ret ? ret : rxm_submit_locked(base, op);
}

static int coll_watch(struct fab_ep *base, fi_addr_t member)
{
	struct rxm_peer *peer;

	return coll_peer(fab_container(base, struct rxm_ep, base), member, &peer);
}

static uint64_t coll_life(struct fab_ep *base, fi_addr_t member)
{
	const struct rxm_ep *ep = fab_container(base, struct rxm_ep, base);
	const struct rxm_peer *peer = member < ep->by_addr_cnt ? ep->by_addr[member] : NULL;

	return peer && peer->conn && peer->conn->state == RXM_CONN_UP ? peer->conn->peer_id : 0;
}

/* An entry that has had no connection was for a member that cannot be reached. */
static void abort_done(struct rxm_tx *tx, int err, const char *text)
{
	(void) text;
	if (err && tx->conn && tx->conn->peer->fi_addr != FI_ADDR_NOTAVAIL)
		fab_coll_untold(tx->ep->base.coll, tx->conn->peer->fi_addr, tx->buf->pkt.op.tag);
}

static int coll_abort(struct fab_ep *base, fi_addr_t member, uint64_t tag, int err)
{
	struct rxm_ep *ep = fab_container(base, struct rxm_ep, base);
	struct rxm_peer *peer;
	struct rxm_tx *tx;
	int ret = coll_peer(ep, member, &peer);

	if (ret)
		return ret;
	tx = rxm_tx_new(ep, RXM_TX_PACKET);
	if (!tx)
		return -FI_ENOMEM;
	if (!rxm_tx_packet(ep, tx, RXM_COLL_ABORT, RXM_OP_COLL, 0)) {
		rxm_tx_free(ep, tx);
		return -FI_ENOMEM;
	}
	tx->buf->pkt.op.tag = tag & FAB_COLL_GROUP_BITS;
	tx->buf->pkt.ctrl.ctrl_data = (uint64_t) err;
	tx->done = abort_done;
	rxm_tx_submit(peer, tx);
	return 0;
}

/* Cancel a receive that no message has matched, or a send that has not left. A receive whose message is arriving, and a
 * send that was announced, end when the member completes them or is lost. After an announced send the member is told
 * not to wait for it. */
static void coll_cancel(struct fab_ep *base, fi_addr_t member, struct fab_hook *hook)
{
	struct rxm_ep *ep = fab_container(base, struct rxm_ep, base);
	uint64_t tag;

	if (fab_recv_cancel_hook(&ep->recv, hook) || ep->closing || rxm_tx_cancel(ep, hook, true))
		return;
	if (rxm_tx_announced(ep, hook, &tag))
		coll_abort(base, member, tag, FI_ECANCELED);
}

static void coll_forget(struct fab_ep *base, uint64_t tag)
{
	rxm_kept_drop_group_left(fab_container(base, struct rxm_ep, base), tag & FAB_COLL_GROUP_BITS);
}

static bool coll_is_self(struct fab_ep *base, const union fab_sockaddr *addr)
{
	return fab_ip_is_own(&rxm_prov, &fab_container(base, struct rxm_ep, base)->addr, addr);
}

const struct fab_coll_net rxm_coll_net = {
	.submit = coll_submit,
	.cancel = coll_cancel,
	.watch = coll_watch,
	.life = coll_life,
	.abort = coll_abort,
	.forget = coll_forget,
	.is_self = coll_is_self,
};

/* ---- events of connections ---- */

void rxm_coll_aborted(struct rxm_conn *conn, const struct rxm_pkt *pkt)
{
	struct fab_coll *coll = conn->ep->base.coll;

	if (!conn->coll) {
		rxm_conn_broken(conn, "a message of a collective, although this endpoint has none");
		return;
	}
	if (fab_coll_aborted(coll, conn->peer->fi_addr, pkt->op.tag, rxm_wire_err(pkt->ctrl.ctrl_data)))
		rxm_kept_drop_group(conn, pkt->op.tag & FAB_COLL_GROUP_BITS);
}

bool rxm_coll_refuses(struct rxm_conn *conn, const struct fab_msg *msg)
{
	return msg->class == FAB_CLASS_COLL &&
	       fab_coll_refuses(conn->ep->base.coll, conn->peer->fi_addr, msg->tag);
}

void rxm_coll_lost(struct rxm_peer *peer, int err)
{
	struct fab_coll *coll = peer->ep->base.coll;

	if (coll && peer->fi_addr != FI_ADDR_NOTAVAIL)
		fab_coll_lost(coll, peer->fi_addr, err);
}

void rxm_coll_met(const struct rxm_conn *conn)
{
	struct fab_coll *coll = conn->ep->base.coll;

	if (coll && conn->peer_id && conn->peer->fi_addr != FI_ADDR_NOTAVAIL)
		fab_coll_met(coll, conn->peer->fi_addr, conn->peer_id);
}

bool rxm_coll_waits(const struct rxm_peer *peer)
{
	const struct fab_coll *coll = peer->ep->base.coll;

	return coll && peer->fi_addr != FI_ADDR_NOTAVAIL && fab_coll_waits_for(coll, peer->fi_addr);
}

void rxm_coll_purge(struct rxm_peer *peer)
{
	rxm_tx_fail_coll(&peer->txq, FI_EOPNOTSUPP, "the peer has no collectives");
	rxm_coll_lost(peer, FI_EOPNOTSUPP);
}
