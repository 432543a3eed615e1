/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Looks through the operations of an endpoint that are pending, for the page of the process (common/stats). Of each
 * list the oldest operation counts, so a connection costs the same however many operations it has; of many connections
 * only some are looked at each time. Engine lock held.
 */
#include "tcp/peer/peers.h"

#include "base/bits.h"
#include "common/collective/collective.h"
#include "tcp/message/message.h"

#define LOOK_MAX	1024	/* connections that are looked at in one survey */
#define IDS_MAX		256	/* announced messages among which the oldest is sought */

static bool is_message(const struct tcp_tx *tx)
{
	return tx->code <= FAB_OP_CSEND;
}

/* The operation of a kind that was queued first, so far, and its state. */
struct oldest {
	const struct tcp_tx *tx;
	enum fi_stats_state state;
};

static void compare(struct oldest *oldest, const struct tcp_tx *tx, enum fi_stats_state state)
{
	if (oldest->tx && (int32_t) (tx->number - oldest->tx->number) >= 0)
		return;
	oldest->tx = tx;
	oldest->state = state;
}

/* Compare the first operation of each kind in a list, which is near its head. */
static void compare_list(struct oldest oldest[FI_STATS_PEER_KINDS], const struct fab_list *list,
			 enum fi_stats_state state)
{
	bool found[FI_STATS_PEER_KINDS] = { false };
	struct fab_list *link;
	int cnt = 0;

	fab_list_for_each(list, link) {
		const struct tcp_tx *tx = fab_container(link, struct tcp_tx, link);
		enum fi_stats_peer_kind kind = is_message(tx) ? FI_STATS_PEER_MESSAGE : FI_STATS_PEER_ACCESS;

		if (++cnt > IDS_MAX)
			return;
		if (tx->code == FAB_OP_MAX || found[kind] || tx->hdr.op == TCP_WIRE_XRTS)
			continue;	/* those of announcements are in tx.rts, too */
		compare(&oldest[kind], tx, state);
		found[kind] = true;
		if (found[FI_STATS_PEER_MESSAGE] && found[FI_STATS_PEER_ACCESS])
			return;
	}
}

/* What operations of a connection that is not up wait for. */
static enum fi_stats_state idle_state(const struct tcp_conn *conn)
{
	if (conn->ep->conn)
		return FI_STATS_CONNECTING;
	if (conn->park.parked)
		return FI_STATS_PARKED;
	return fab_av_is_firewalled(conn->ep->base.bound.av, conn->fi_addr) ? FI_STATS_AWAITED : FI_STATS_CONNECTING;
}

/* A short message is announced if the peer has granted no credit for it. */
static enum fi_stats_state announced_state(const struct tcp_conn *conn, const struct tcp_tx *tx)
{
	if (tx->sent != tx->size)
		return conn->tx.blocked ? FI_STATS_FULL : FI_STATS_QUEUED;
	return tx->len <= conn->peer.eager_max && !tx->match ? FI_STATS_CREDIT : FI_STATS_ANNOUNCED;
}

static void describe(struct tcp_conn *conn, enum fi_stats_peer_kind kind, const struct oldest *oldest, uint64_t cnt)
{
	const struct tcp_tx *tx = oldest->tx;

	fab_stats_peer_pending(conn->ep->base.stats, conn->stats, kind, !tx ? NULL : &(struct fi_stats_pending) {
		.number = tx->number, .cnt = cnt, .tag = tx->tag, .len = tx->len, .op = tx->code,
		.state = oldest->state, .peer = UINT32_MAX,
		.flags = tx->code == FAB_OP_TSEND || tx->code == FAB_OP_CSEND ? FI_STATS_TAGGED : 0,
	});
}

/* Count a message of the peer, and describe it if it is the first one. */
static void note_message(struct fi_stats_pending *what, const struct tcp_unexp *unexp, enum fi_stats_state state)
{
	if (what->cnt++)
		return;
	what->number = unexp->base.match.seq;
	what->tag = unexp->base.tag;
	what->len = unexp->base.len;
	what->op = FAB_OP_RECV + unexp->base.class;
	what->flags = unexp->base.class != FAB_CLASS_MSG ? FI_STATS_TAGGED : 0;
	what->peer = UINT32_MAX;
	what->state = state;
}

/* The message of which a part has arrived, and whose receive waits for the rest. */
static void note_current(struct fi_stats_pending *what, const struct tcp_conn *conn)
{
	const struct fab_into *into = &conn->rx.into;

	if (what->cnt || conn->rx.phase != TCP_RX_PAYLOAD || !into->rx)
		return;
	*what = (struct fi_stats_pending) {
		.number = conn->stats->op[FAB_OP_RECV].ops + conn->stats->op[FAB_OP_TRECV].ops + 1, .cnt = 1,
		.len = conn->rx.hdr.size - conn->rx.hdr.hdr_size, .op = FAB_OP_RECV, .peer = UINT32_MAX,
		.state = FI_STATS_ARRIVING,
	};
}

/* The oldest message of the peer that no receive has taken, and the oldest one that has not arrived completely. */
static void look_at_messages(struct tcp_conn *conn)
{
	struct fi_stats_pending kept = { .cnt = 0 }, arriving = { .cnt = 0 };
	struct fab_list *link;
	int cnt = 0;

	fab_list_for_each(&conn->msg.unexp, link) {
		const struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, link);

		if (++cnt > IDS_MAX)
			break;
		if (unexp->base.place == FAB_KEPT_QUEUED)
			note_message(&kept, unexp, unexp->announced ? FI_STATS_KEPT_ANNOUNCED : FI_STATS_KEPT);
		else if (unexp->base.place == FAB_KEPT_TAKEN)
			note_message(&arriving, unexp, FI_STATS_ARRIVING);
	}
	note_current(&arriving, conn);
	fab_stats_pending(&conn->stats->pending[FI_STATS_PEER_KEPT], kept.cnt ? &kept : NULL);
	fab_stats_pending(&conn->stats->pending[FI_STATS_PEER_ARRIVING], arriving.cnt ? &arriving : NULL);
}

/* The connection itself: the handshake of a MSG endpoint. */
static void look_at_connect(const struct tcp_conn *conn)
{
	const struct tcp_cm *cm = conn->ep->connect.cm;

	fab_stats_pending(&conn->stats->pending[FI_STATS_PEER_CONNECT], !cm ? NULL : &(struct fi_stats_pending) {
		.number = cm->since_ns, .cnt = 1, .peer = UINT32_MAX,
		.state = cm->state == TCP_CM_CONNECTING ? FI_STATS_CONNECTING : FI_STATS_ACCEPTING,
	});
}

uint64_t tcp_survey_conn(struct tcp_conn *conn)
{
	const struct fi_stats_peer *stats = conn->stats;
	struct oldest oldest[FI_STATS_PEER_KINDS] = { 0 };
	uint64_t cnt = stats->queued - stats->dequeued;

	if (conn->state != TCP_CONN_UP) {
		compare_list(oldest, &conn->tx.queue, idle_state(conn));
		compare_list(oldest, &conn->tx.held, idle_state(conn));
	} else {
		compare_list(oldest, &conn->tx.queue, conn->tx.blocked ? FI_STATS_FULL : FI_STATS_QUEUED);
		compare_list(oldest, &conn->tx.held, FI_STATS_FENCE);
	}
	compare_list(oldest, &conn->tx.ack_wait, FI_STATS_DELIVERY);
	compare_list(oldest, &conn->tx.read_wait, FI_STATS_ANSWER);
	for (uint32_t id = 0; id < fab_min(conn->tx.rts.cap, (uint32_t) IDS_MAX) && conn->tx.rts.cnt; id++) {
		const struct tcp_tx *tx = tcp_idmap_get(&conn->tx.rts, id);

		if (tx)
			compare(&oldest[FI_STATS_PEER_MESSAGE], tx, announced_state(conn, tx));
	}
	describe(conn, FI_STATS_PEER_MESSAGE, &oldest[FI_STATS_PEER_MESSAGE], cnt);
	describe(conn, FI_STATS_PEER_ACCESS, &oldest[FI_STATS_PEER_ACCESS], cnt);
	look_at_messages(conn);
	if (conn->ep->conn)
		look_at_connect(conn);
	return cnt + (conn->ep->connect.cm != NULL);
}

struct look {
	uint64_t cnt;			/* operations */
	unsigned conns;
	bool rest_done;			/* the record of those without one has something */
};

static bool look_at(struct tcp_ep *ep, struct tcp_conn *conn, void *arg)
{
	struct look *look = arg;
	bool shares = conn->stats == &ep->base.stats->rest;

	/* the first of several that has anything speaks for all that share a record */
	if (!shares || !look->rest_done)
		look->cnt += tcp_survey_conn(conn);
	look->rest_done |= shares && (conn->stats->pending[FI_STATS_PEER_MESSAGE].since ||
				      conn->stats->pending[FI_STATS_PEER_ACCESS].since);
	return ++look->conns >= LOOK_MAX;
}

/* The record of the peer with this fi_addr_t. */
static uint32_t record_of(const struct tcp_ep *ep, fi_addr_t fi_addr)
{
	struct tcp_conn *conn = ep->base.type == FI_EP_MSG ? ep->conn :
				fi_addr < ep->rdm.by_addr_cnt && !ep->rdm.rx_ctx_bits ? ep->rdm.by_addr[fi_addr] : NULL;
	const union fab_sockaddr *addr;

	if (conn || ep->base.type == FI_EP_MSG)
		return conn ? fab_stats_peer_index(ep->base.stats, conn->stats) : UINT32_MAX;
	addr = ep->base.bound.av ? fab_av_addr(ep->base.bound.av, fi_addr) : NULL;
	return addr ? fab_stats_peer_mention(ep->base.stats, &addr->sa, fi_addr) : UINT32_MAX;
}

/* The same of a directed receive, and of a member of a group. */
static uint32_t record_of_source(const struct fab_recv *recv, fi_addr_t src)
{
	return record_of(fab_container(recv->ep, const struct tcp_ep, base), fab_recv_plain_src(recv, src));
}

static uint32_t record_of_member(const struct fab_ep *ep, fi_addr_t member)
{
	return record_of(fab_container(ep, const struct tcp_ep, base), member);
}

static uint64_t survey_look(struct fab_survey *survey)
{
	struct tcp_ep *ep = fab_container(survey, struct tcp_ep, survey);
	struct look look = { 0 };

	if (ep->detours & TCP_EP_CLOSING)
		return 0;
	if (ep->conn)
		look_at(ep, ep->conn, &look);
	else if (ep->rdm.peers)
		tcp_peers_any(ep, look_at, &look);
	if (!tcp_ep_is_tx_ctx(ep)) {
		fab_recv_survey(&ep->rx->recv, ep->base.stats, record_of_source);
		tcp_account_show(&ep->rx->account);
	}
	if (ep->base.coll)
		look.cnt += fab_coll_survey(ep->base.coll, record_of_member);
	return look.cnt;
}

void tcp_survey_start(struct tcp_ep *ep)
{
	ep->survey.look = survey_look;
	fab_survey_add(ep->base.engine, &ep->survey);
}

void tcp_survey_stop(struct tcp_ep *ep)
{
	fab_survey_del(&ep->survey);
}
