/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Looks through the operations of an endpoint that are pending, for the page of the process (common/stats). The lists
 * of a connection are in the order of posting, so the first operation of a kind is the oldest of its list. Engine lock
 * held.
 */
#include "rxm/rxm.h"

#include "base/bits.h"
#include "common/collective/collective.h"
#include "common/offers/offers.h"

#define LOOK_MAX	1024	/* peers that are looked at in one survey */
#define LIST_MAX	256	/* entries of a list among which an operation of each kind is sought */

/* The oldest operation of a kind so far, and its state. */
struct oldest {
	struct rxm_tx *tx;
	enum fi_stats_state state;
};

/* The operation of the application that an entry is, or that follows it. NULL: it is none. */
static struct rxm_tx *app_of(struct rxm_tx *tx)
{
	return tx->app ? tx : tx->then && tx->then->app ? tx->then : NULL;
}

static void compare(struct oldest *oldest, struct rxm_tx *tx, enum fi_stats_state state)
{
	if (oldest->tx && (int32_t) (tx->number - oldest->tx->number) >= 0)
		return;
	oldest->tx = tx;
	oldest->state = state;
}

typedef enum fi_stats_state state_fn(const struct rxm_conn *conn, const struct rxm_tx *tx);

/* Compare the first operation of each kind in a list. */
static void compare_list(struct oldest oldest[FI_STATS_PEER_KINDS], const struct fab_list *list,
			 const struct rxm_conn *conn, state_fn *state)
{
	bool found[FI_STATS_PEER_KINDS] = { false };
	struct fab_list *link;
	int cnt = 0;

	fab_list_for_each(list, link) {
		struct rxm_tx *tx = fab_container(link, struct rxm_tx, link), *app = app_of(tx);
		enum fi_stats_peer_kind kind;

		if (++cnt > LIST_MAX)
			return;
		if (!app)
			continue;
		kind = rxm_kind_of(app);
		if (found[kind])
			continue;
		found[kind] = true;
		compare(&oldest[kind], app, state(conn, tx));
	}
}

/* ---- states ---- */

static enum fi_stats_state state_unconnected(const struct rxm_conn *conn, const struct rxm_tx *tx)
{
	(void) conn, (void) tx;
	return FI_STATS_CONNECTING;
}

static enum fi_stats_state state_queued(const struct rxm_conn *conn, const struct rxm_tx *tx)
{
	if (conn->state != RXM_CONN_UP)
		return FI_STATS_CONNECTING;
	if (!fab_list_empty(&conn->stuck))
		return FI_STATS_FULL;
	return tx->what == RXM_TX_PACKET && conn->ext && !conn->credit[RXM_ASKS].left ? FI_STATS_CREDIT :
											FI_STATS_QUEUED;
}

/* The entry waits for the peer's answer, or will. */
static enum fi_stats_state state_asked(const struct rxm_tx *tx)
{
	switch (tx->buf->pkt.ctrl.type) {
	case RXM_RNDV_REQ:
		return tx->writing ? FI_STATS_SENT : FI_STATS_ANNOUNCED;
	case RXM_ATOMIC:
		return FI_STATS_ANSWER;
	default:
		return FI_STATS_DELIVERY;
	}
}

static enum fi_stats_state state_flying(const struct rxm_conn *conn, const struct rxm_tx *tx)
{
	(void) conn;
	if (tx->what == RXM_TX_READ)
		return FI_STATS_ANSWER;
	return tx->what == RXM_TX_PACKET && tx->wants_answer ? state_asked(tx) : FI_STATS_SENT;
}

/* ---- records ---- */

static void describe(struct rxm_ep *ep, struct rxm_peer *peer, enum fi_stats_peer_kind kind,
		     const struct oldest *oldest, uint64_t cnt)
{
	struct rxm_tx *tx = oldest->tx;

	if (tx)
		tx->told = true;
	fab_stats_peer_pending(ep->base.stats, peer->stats, kind, !tx ? NULL : &(struct fi_stats_pending) {
		.number = tx->number, .cnt = cnt, .tag = tx->tag, .len = tx->len, .op = tx->code,
		.state = oldest->state, .peer = UINT32_MAX,
		.flags = tx->code == FAB_OP_TSEND || tx->code == FAB_OP_CSEND ? FI_STATS_TAGGED : 0,
	});
}

/* A message of the peer, as what is pending. */
static struct fi_stats_pending of_message(uint64_t number, enum fab_msg_class class, uint64_t tag, uint64_t len,
					  enum fi_stats_state state)
{
	return (struct fi_stats_pending) {
		.number = number, .cnt = 1, .tag = tag, .len = len, .op = (uint8_t) (FAB_OP_RECV + class),
		.state = state, .peer = UINT32_MAX, .flags = class != FAB_CLASS_MSG ? FI_STATS_TAGGED : 0,
	};
}

/* The oldest message of the peer that no receive has taken. */
static void look_at_kept(struct rxm_ep *ep, struct rxm_peer *peer, const struct rxm_conn *conn)
{
	struct fi_stats_pending what = { .state = FI_STATS_NONE };
	struct fab_list *link;
	int cnt = 0;

	fab_list_for_each(&conn->kept, link) {
		const struct rxm_kept *kept = fab_container(link, struct rxm_kept, link);

		if (++cnt > LIST_MAX)
			break;
		if (kept->base.place != FAB_KEPT_QUEUED)
			continue;
		what = of_message(kept->base.match.seq, kept->base.class, kept->base.tag, kept->base.len,
				  kept->rndv ? FI_STATS_KEPT_ANNOUNCED : FI_STATS_KEPT);
		what.cnt = conn->kept_cnt;
		break;
	}
	fab_stats_peer_pending(ep->base.stats, peer->stats, FI_STATS_PEER_KEPT, what.state ? &what : NULL);
}

/* The first entry of a list that fetches an announced message into its receive. */
static const struct rxm_tx *fetch_in(const struct fab_list *list)
{
	struct fab_list *link;
	int cnt = 0;

	fab_list_for_each(list, link) {
		const struct rxm_tx *tx = fab_container(link, struct rxm_tx, link);

		if (rxm_rndv_fetches(tx))
			return tx;
		if (++cnt > LIST_MAX)
			break;
	}
	return NULL;
}

/* A message of the peer that a receive has taken, and of which a part is missing. */
static void look_at_arriving(struct rxm_ep *ep, struct rxm_peer *peer, const struct rxm_conn *conn)
{
	const struct rxm_part *part = fab_list_first(&conn->parts, struct rxm_part, link);
	const struct fab_list *lists[] = { &conn->waiting, &conn->flying, &conn->ctlq, &conn->answerq };
	struct fi_stats_pending what = { .state = FI_STATS_NONE };
	const struct rxm_tx *tx = NULL;

	for (size_t i = 0; i < fab_countof(lists) && !tx; i++)
		tx = fetch_in(lists[i]);
	if (tx)
		what = of_message(tx->msg_id, tx->msg.class, tx->msg.tag, tx->msg.len, FI_STATS_ARRIVING);
	else if (part && part->into.rx)
		what = of_message(part->msg_id, part->msg.class, part->msg.tag, part->msg.len, FI_STATS_ARRIVING);
	fab_stats_peer_pending(ep->base.stats, peer->stats, FI_STATS_PEER_ARRIVING, what.state ? &what : NULL);
}

static uint64_t survey_peer(struct rxm_ep *ep, struct rxm_peer *peer)
{
	struct oldest oldest[FI_STATS_PEER_KINDS] = { 0 };
	uint64_t cnt = peer->stats->queued - peer->stats->dequeued;
	const struct rxm_conn *conn = peer->conn;

	compare_list(oldest, &peer->txq, conn, state_unconnected);
	if (conn) {
		compare_list(oldest, &conn->waiting, conn, state_flying);
		compare_list(oldest, &conn->flying, conn, state_flying);
		compare_list(oldest, &conn->txq, conn, state_queued);
		compare_list(oldest, &conn->ctlq, conn, state_queued);
		look_at_kept(ep, peer, conn);
		look_at_arriving(ep, peer, conn);
	}
	describe(ep, peer, FI_STATS_PEER_MESSAGE, &oldest[FI_STATS_PEER_MESSAGE], cnt);
	describe(ep, peer, FI_STATS_PEER_ACCESS, &oldest[FI_STATS_PEER_ACCESS], cnt);
	return cnt;
}

struct look {
	struct rxm_ep *ep;
	uint64_t cnt;			/* operations */
	unsigned peers;
	bool rest_done;			/* the record of those without one has something */
};

static bool look_at(struct fab_entry *entry, void *arg)
{
	struct rxm_peer *peer = fab_container(entry, struct rxm_peer, entry);
	struct look *look = arg;
	bool shares = peer->stats == &look->ep->base.stats->rest;

	/* the first of several that has anything speaks for all that share a record */
	if (!shares || !look->rest_done)
		look->cnt += survey_peer(look->ep, peer);
	look->rest_done |= shares && (peer->stats->pending[FI_STATS_PEER_MESSAGE].since ||
				      peer->stats->pending[FI_STATS_PEER_ACCESS].since);
	return ++look->peers >= LOOK_MAX;
}

/* The record of the peer with this fi_addr_t. */
static uint32_t record_of(const struct rxm_ep *ep, fi_addr_t fi_addr)
{
	const union fab_sockaddr *addr;

	if (fi_addr < ep->by_addr_cnt && ep->by_addr[fi_addr])
		return fab_stats_peer_index(ep->base.stats, ep->by_addr[fi_addr]->stats);
	addr = fi_addr < FAB_AV_MAX ? fab_av_addr(ep->base.bound.av, fi_addr) : NULL;
	return addr ? fab_stats_peer_mention(ep->base.stats, &addr->sa, fi_addr) : UINT32_MAX;
}

/* The same of a directed receive, and of a member of a group. */
static uint32_t record_of_source(const struct fab_recv *recv, fi_addr_t src)
{
	return record_of(fab_container(recv, const struct rxm_ep, recv), fab_recv_plain_src(recv, src));
}

static uint32_t record_of_member(const struct fab_ep *ep, fi_addr_t member)
{
	return record_of(fab_container(ep, const struct rxm_ep, base), member);
}

static uint64_t survey_look(struct fab_survey *survey)
{
	struct rxm_ep *ep = fab_container(survey, struct rxm_ep, survey);
	struct look look = { .ep = ep };

	fab_table_any(&ep->peers, look_at, &look);
	fab_recv_survey(&ep->recv, ep->base.stats, record_of_source);
	rxm_account_show(ep);
	if (ep->base.coll)
		look.cnt += fab_coll_survey(ep->base.coll, record_of_member);
	return look.cnt;
}

void rxm_survey_start(struct rxm_ep *ep)
{
	union fab_sockaddr name = ep->addr;

	fab_ip_fill_addr(&rxm_prov, NULL, &name, ep->base.info);
	fab_stats_ep_name(ep->base.stats, &name.sa, ep->incarnation);
	ep->survey.look = survey_look;
	fab_survey_add(ep->base.engine, &ep->survey);
}
