/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What collectives (prov/common/collective.h) need of tcp: messages of a class of their own, which are sent, matched
 * and kept as all others are, and word of members that have gone or of groups that have failed. Engine lock held.
 */
#include "tcp/stream.h"

#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "common/collective.h"
#include "common/netif.h"
#include "tcp/peer.h"
#include "tcp/tcp.h"

#define ERR_SHIFT	8		/* TCP_COLL_ABORT: the error is in the tag from this bit on ... */
#define ERR_MASK	0xffffu		/* ... with 16 bits */

bool tcp_coll_speaks(const struct tcp_conn *conn)
{
	return conn->ep->base.coll && (conn->peer.features & TCP_EXT_COLL);
}

/* ---- what arrives ---- */

void tcp_coll_start(struct tcp_conn *conn)
{
	const struct tcp_hdr *hdr = &conn->rx.hdr;
	struct fab_coll *coll = conn->ep->base.coll;
	bool empty = hdr->size == hdr->hdr_size;
	struct tcp_coll frame;

	memcpy(&frame, tcp_rx_extra(conn), sizeof(frame));
	if (!coll)
		tcp_rx_broken(conn, "message of a collective, though we have none");
	else if (hdr->op_data == TCP_COLL_MSG)
		tcp_msg_start(conn);
	else if (hdr->op_data == TCP_COLL_ABORT && empty)
		fab_coll_aborted(coll, conn->fi_addr, frame.tag,
				 (int) fab_max(frame.tag >> ERR_SHIFT & ERR_MASK, (uint64_t) 1));
	else
		tcp_rx_broken(conn, "message of a collective of unknown kind");
}

void tcp_coll_lost(struct tcp_conn *conn, int err)
{
	if (conn->ep->base.coll && conn->fi_addr != FI_ADDR_NOTAVAIL)
		fab_coll_lost(conn->ep->base.coll, conn->fi_addr, err ? err : FI_ECONNRESET);
}

void tcp_coll_purge(struct tcp_conn *conn)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(&conn->txq, link, next) {
		struct tcp_tx *tx = fab_container(link, struct tcp_tx, link);

		if (tx->hdr.op != TCP_WIRE_COLL)
			continue;
		fab_list_remove(link);
		tcp_tx_done(tx, FI_EOPNOTSUPP, FI_EOPNOTSUPP, "the peer has no collectives");
	}
	tcp_coll_lost(conn, FI_EOPNOTSUPP);
}

/* ---- what collectives ask of us ---- */

/* The connection to a member, if that has collectives as far as is known. */
static int coll_conn(struct fab_ep *base, fi_addr_t member, struct tcp_conn **conn)
{
	int ret = tcp_ep_conn(fab_container(base, struct tcp_ep, base), member, conn);

	if (!ret && tcp_conn_has_stream(*conn) && !tcp_coll_speaks(*conn))
		ret = -FI_EOPNOTSUPP;
	return ret;
}

static int coll_submit(struct fab_ep *base, const struct fab_op *op)
{
	struct tcp_conn *conn;
	int ret;

	if (op->code == FAB_OP_CRECV)
		return tcp_post_recv_locked(base, op);
	ret = coll_conn(base, op->addr, &conn);
	return ret ? ret : tcp_submit_locked(base, op);
}

static void coll_cancel(struct fab_ep *base, fi_addr_t member, struct fab_hook *hook)
{
	struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);

	(void) member;
	if (!tcp_rx_cancel_coll(ep, hook))
		tcp_peers_any(ep, tcp_tx_cancel_coll, hook);
}

static int coll_watch(struct fab_ep *base, fi_addr_t member)
{
	struct tcp_conn *conn;

	return coll_conn(base, member, &conn);
}

static void coll_abort(struct fab_ep *base, fi_addr_t member, uint64_t tag, int err)
{
	struct tcp_coll frame = {
		.tag = (tag & FAB_COLL_GROUP_BITS) | (uint64_t) (err & ERR_MASK) << ERR_SHIFT,
	};
	struct tcp_conn *conn;
	struct tcp_tx *tx;

	if (coll_conn(base, member, &conn))
		return;
	tx = tcp_tx_control(conn, TCP_WIRE_COLL, &frame, sizeof(frame));
	if (!tx)
		return;
	tx->hdr.op_data = TCP_COLL_ABORT;
	tcp_tx_queue(conn, tx);
}

/* One of this machine's addresses, or the one that a bound endpoint has. */
static bool is_local(const union fab_sockaddr *addr)
{
	struct fab_netif *list;
	bool found = false;
	size_t cnt;

	if (fab_netif_list(&tcp_prov, NULL, &list, &cnt))
		return false;
	for (size_t i = 0; i < cnt && !found; i++)
		found = fab_addr_equal_host(&list[i].addr.sa, &addr->sa);
	free(list);
	return found;
}

static bool coll_is_self(struct fab_ep *base, const union fab_sockaddr *addr)
{
	const struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);

	if (fab_addr_port(&addr->sa) != fab_addr_port(&ep->addr.sa))
		return false;
	if (fab_addr_is_any(&ep->addr.sa))
		return is_local(addr);
	return fab_addr_equal_host(&addr->sa, &ep->addr.sa);
}

const struct fab_coll_net tcp_coll_net = {
	.submit = coll_submit,
	.cancel = coll_cancel,
	.watch = coll_watch,
	.abort = coll_abort,
	.is_self = coll_is_self,
};
