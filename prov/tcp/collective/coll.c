/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The messages and connections of collectives (prov/common/collective/collective.h) over tcp. Their messages have a
 * class of their own; they are sent, matched and kept like others. Members that disconnect and groups that fail are
 * reported. Engine lock held.
 *
 * A transmit context of a scalable endpoint may be a member, too. It sends to the receive contexts with its own number
 * of the other members, and their messages arrive at its mate, the receive context with the same number beside it. Both
 * are on one engine and share the groups, which belong to the transmit context. The mate is found at the first join.
 */
#include "tcp/collective/collective.h"

#include <string.h>
#include "base/bits.h"
#include "common/offers/offers.h"
#include "tcp/calls/calls.h"
#include "tcp/message/message.h"
#include "tcp/params/params.h"
#include "tcp/peer/peer.h"

#define ERR_SHIFT	8		/* TCP_COLL_ABORT: first bit of the error in the tag ... */
#define ERR_MASK	0xffffu		/* ... with 16 bits */

/* ---- events of the network ---- */

/* A group has failed, or the peer has left it: what the peer sent is not wanted. */
static void coll_aborted(struct tcp_conn *conn, uint64_t tag)
{
	struct fab_coll *coll = conn->ep->base.coll;

	if (!coll || fab_coll_aborted(coll, conn->fi_addr, tag, (int) (tag >> ERR_SHIFT & ERR_MASK)))
		tcp_rx_drop_group(conn, tag & FAB_COLL_GROUP_BITS);
}

void tcp_coll_start(struct tcp_conn *conn)
{
	const struct tcp_hdr *hdr = &conn->rx.hdr;
	bool empty = hdr->size == hdr->hdr_size;
	struct tcp_coll frame;

	memcpy(&frame, tcp_rx_extra(conn), sizeof(frame));
	if (!tcp_ep_has_coll(conn->ep))
		tcp_rx_broken(conn, "message of a collective, although this endpoint has none");
	else if (hdr->op_data == TCP_COLL_MSG)
		tcp_msg_start(conn);
	else if (hdr->op_data != TCP_COLL_ABORT || !empty)
		tcp_rx_broken(conn, "message of a collective of unknown kind");
	else
		coll_aborted(conn, frame.tag);
}

void tcp_coll_lost(struct tcp_conn *conn, int err)
{
	struct fab_coll *coll = conn->ep->base.coll;

	if (!coll || conn->fi_addr == FI_ADDR_NOTAVAIL || !tcp_peer_same_ctx(conn))
		return;
	/* a parked connection for one direction only: the peer connects again when it needs one */
	if (conn->park.parked && !conn->owner->resumes)
		return;
	fab_coll_lost(coll, conn->fi_addr, err ? err : FI_ECONNRESET);
}

void tcp_coll_met(struct tcp_conn *conn)
{
	struct fab_coll *coll = conn->ep->base.coll;

	if (coll && conn->peer.incarnation && conn->fi_addr != FI_ADDR_NOTAVAIL && tcp_peer_same_ctx(conn))
		fab_coll_met(coll, conn->fi_addr, conn->peer.incarnation);
}

void tcp_coll_purge(struct tcp_conn *conn)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(&conn->tx.queue, link, next) {
		struct tcp_tx *tx = fab_container(link, struct tcp_tx, link);

		if (tx->hdr.op != TCP_WIRE_COLL)
			continue;
		fab_list_remove(link);
		tcp_tx_done(tx, FI_EOPNOTSUPP, FI_EOPNOTSUPP, "the peer has no collectives, or another byte order");
	}
	tcp_coll_lost(conn, FI_EOPNOTSUPP);
}

/* ---- struct fab_coll_net ---- */

/* The address for sending to a member: for a context, the member's receive context with the same number. */
static fi_addr_t coll_dest(const struct tcp_ep *ep, fi_addr_t member)
{
	return ep->context.number ? fi_rx_addr(member, ep->context.number, ep->rdm.rx_ctx_bits) : member;
}

/* Get the connection to a member, unless the member is known not to support collectives. An endpoint that is being
 * closed makes none. 0 or -FI_E*. */
static int coll_conn(struct fab_ep *base, fi_addr_t member, struct tcp_conn **conn)
{
	struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);
	int ret;

	if ((ep->detours & TCP_EP_CLOSING) && !tcp_ep_known_conn(ep, coll_dest(ep, member)))
		return -FI_EOPBADSTATE;
	ret = tcp_ep_conn(ep, coll_dest(ep, member), conn);
	if (!ret && tcp_conn_has_stream(*conn) && !tcp_conn_has_coll(*conn))
		ret = -FI_EOPNOTSUPP;
	return ret;
}

/* The endpoint at which messages of its groups arrive. NULL: its receive context was closed, and all groups have
 * failed. */
static struct tcp_ep *coll_receiver(struct tcp_ep *ep)
{
	return ep->context.sep ? ep->context.mate : ep;
}

static int coll_submit(struct fab_ep *base, const struct fab_op *op)
{
	struct tcp_ep *ep = fab_container(base, struct tcp_ep, base), *receiver = coll_receiver(ep);
	struct fab_op send = *op;
	struct tcp_conn *conn;
	int ret;

	if (op->code == FAB_OP_CRECV)
		return receiver ? tcp_post_recv_locked(&receiver->base, op) : -FI_EOPBADSTATE;
	send.addr = coll_dest(ep, op->addr);
	/* the connection is used in one direction only: the member would not notice if a message was lost with it, so
	 * this end must */
	if (ep->context.sep)
		send.flags |= FI_DELIVERY_COMPLETE;
	ret = coll_conn(base, op->addr, &conn);
	return ret ? ret : tcp_submit_locked(base, &send);
}

static void coll_cancel(struct fab_ep *base, fi_addr_t member, struct fab_hook *hook)
{
	struct tcp_ep *ep = fab_container(base, struct tcp_ep, base), *receiver = coll_receiver(ep);

	(void) member;
	if (!receiver || !fab_recv_cancel_hook(&receiver->own_rx.recv, hook))
		tcp_peers_any(ep, tcp_tx_cancel_coll, hook);
}

static int coll_watch(struct fab_ep *base, fi_addr_t member)
{
	struct tcp_conn *conn;

	return coll_conn(base, member, &conn);
}

static uint64_t coll_life(struct fab_ep *base, fi_addr_t member)
{
	struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);
	const struct tcp_conn *conn = tcp_ep_known_conn(ep, coll_dest(ep, member));

	return conn ? conn->peer.incarnation : 0;
}

static int coll_abort(struct fab_ep *base, fi_addr_t member, uint64_t tag, int err)
{
	struct tcp_coll frame = {
		.tag = (tag & FAB_COLL_GROUP_BITS) | (uint64_t) (err & ERR_MASK) << ERR_SHIFT,
	};
	struct tcp_conn *conn;
	struct tcp_tx *tx;
	int ret = coll_conn(base, member, &conn);

	if (ret)
		return ret;
	tx = tcp_tx_control(conn, TCP_WIRE_COLL, &frame, sizeof(frame));
	if (!tx)
		return -FI_ENOMEM;
	tx->hdr.op_data = TCP_COLL_ABORT;
	tcp_tx_queue(conn, tx);
	return 0;
}

static void coll_forget(struct fab_ep *base, uint64_t tag)
{
	struct tcp_ep *receiver = coll_receiver(fab_container(base, struct tcp_ep, base));

	if (receiver)
		tcp_rx_drop_group_left(receiver, tag & FAB_COLL_GROUP_BITS);
}

static bool coll_is_self(struct fab_ep *base, const union fab_sockaddr *addr)
{
	return fab_ip_is_own(&tcp_prov, &base->name, addr);
}

const struct fab_coll_net tcp_coll_net = {
	.submit = coll_submit,
	.cancel = coll_cancel,
	.watch = coll_watch,
	.life = coll_life,
	.abort = coll_abort,
	.forget = coll_forget,
	.is_self = coll_is_self,
};

/* ---- contexts of scalable endpoints ---- */

static int coll_refuse(const struct tcp_ep *ctx, int err, const char *why)
{
	TCP_WARN(FI_LOG_EP_CTRL, "fi_join_collective on transmit context %u of a scalable endpoint: %s\n",
		 ctx->context.number, why);
	return -err;
}

/* Attach the receive context with the same number to the groups of a transmit context. */
static int coll_ctx_pair(struct tcp_ep *ctx)
{
	struct tcp_ep *mate = tcp_sep_mate(ctx);

	if (!mate)
		return coll_refuse(ctx, FI_EOPBADSTATE, "the members' messages come to the receive context of the same "
				   "number, which is not enabled (or not there: ep_attr->rx_ctx_cnt)");
	if (!tcp_ep_has_coll(mate))
		return coll_refuse(ctx, FI_EINVAL, "the receive context of the same number was opened without "
				   "FI_COLLECTIVE");
	if (mate->base.engine != ctx->base.engine)
		return coll_refuse(ctx, FI_EINVAL, "with FI_THREAD_COMPLETION it must have the same completion queue "
				   "as the receive context of this number");
	if (ctx->context.number && ctx->context.number >> ctx->rdm.rx_ctx_bits)
		return coll_refuse(ctx, FI_EINVAL, "the address vector's rx_ctx_bits leave no room for its number");
	fab_engine_lock(ctx->base.engine);
	ctx->context.mate = mate;
	mate->context.mate = ctx;
	mate->base.coll = ctx->base.coll;
	fab_engine_unlock(ctx->base.engine);
	return 0;
}

int tcp_coll_ctx_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **mc, void *context)
{
	struct tcp_ep *ctx = tcp_ep_of(&fid->fid);
	int ret = 0;

	if (!ctx->base.coll)
		return -FI_ENOSYS;
	if (!ctx->base.enabled)
		return -FI_EOPBADSTATE;
	if (!ctx->context.mate)
		ret = coll_ctx_pair(ctx);
	return ret ? ret : fab_coll_join(fid, addr, flags, mc, context);
}

/* End a connection on which a message may arrive that an aborted operation waits for. */
static bool coll_end_lingering(struct tcp_ep *receiver, struct tcp_conn *conn, void *coll)
{
	(void) receiver;
	if (tcp_peer_same_ctx(conn) &&
	    (conn->fi_addr == FI_ADDR_NOTAVAIL || fab_coll_waits_for(coll, conn->fi_addr)))
		tcp_conn_down(conn, FI_ECANCELED, FI_ECANCELED, "the transmit context of an aborted collective closes");
	return false;
}

void tcp_coll_part(struct tcp_ep *ctx)
{
	struct tcp_ep *mate = ctx->context.mate;

	if (!mate)
		return;
	if (tcp_ep_is_tx_ctx(ctx) && mate->rdm.peers && fab_coll_lingers(ctx->base.coll))
		tcp_peers_any(mate, coll_end_lingering, ctx->base.coll);
	(tcp_ep_is_tx_ctx(ctx) ? mate : ctx)->base.coll = NULL;
	ctx->context.mate = mate->context.mate = NULL;
}
