/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers: their addresses, and the operations that wait for a connection with them. Engine lock held, except in the
 * functions that the address vector calls (av_inserted, av_removed).
 *
 * A connection is made when the first operation needs it, as soon as not too many others are being made
 * (common/pace/pace.h). After a failure, operations to the peer fail at once for a while (hold-off).
 */
#include "rxm/rxm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"

#define MS		1000000ULL	/* ns */
#define YOUNG_MAX	64		/* connections being made at the same time */
#define AGAIN_MS	5		/* first delay before a retry; later delays are longer */
#define AGAIN_MAX_MS	200
#define AGAIN_LIMIT_MS	60000		/* total time for retries, unless FI_OFI_RXM_CONNECT_TIMEOUT is less */

static struct rxm_peer *rxm_peer_find(struct rxm_ep *ep, const union fab_sockaddr *addr)
{
	struct fab_list *link;

	fab_list_for_each(fab_table_bucket(&ep->peers, fab_addr_hash(&addr->sa)), link) {
		struct rxm_peer *peer = fab_container(link, struct rxm_peer, entry.link);

		if (fab_addr_equal(&peer->addr.sa, &addr->sa))
			return peer;
	}
	return NULL;
}

void rxm_peer_why(const struct rxm_peer *peer, const char *what, const char *said, char text[RXM_WHY])
{
	char addr[FAB_ADDR_STRLEN];

	fab_addr_to_str(&peer->addr.sa, addr, sizeof(addr));
	snprintf(text, RXM_WHY, "%s: %s%s%s", addr, what, said ? ": " : "", said ? said : "");
}

/* ---- waiting for a connection ---- */

static void hold_off(struct rxm_peer *peer, int err)
{
	peer->holdoff_ns = fab_now_ns() + (uint64_t) rxm_params.holdoff_ms * MS;
	peer->holdoff_err = err;
	peer->untold = peer->asked;
}

static void peer_give_up(struct rxm_peer *peer, int err, const char *why)
{
	char text[RXM_WHY];

	peer->tries = 0;
	peer->asked = false;
	fab_timer_stop(&peer->retry);
	fab_pace_leave(&peer->ep->pace, &peer->turn);
	rxm_peer_why(peer, why, NULL, text);
	rxm_tx_fail_list(&peer->txq, err, text);
	rxm_coll_lost(peer, err);
}

/* The peer cannot be reached: fail all its operations, and new ones for a while. */
static void peer_unreachable(struct rxm_peer *peer, int err, const char *why)
{
	char text[RXM_WHY];

	rxm_peer_why(peer, why, NULL, text);
	/* the provider below logs all failures but refusals, which its programs may expect */
	FI_LOG(&rxm_prov, err == FI_ECONNREFUSED ? FI_LOG_WARN : FI_LOG_INFO, FI_LOG_EP_CTRL, "no connection: %s\n",
	       text);
	hold_off(peer, err);
	peer_give_up(peer, err, why);
}

/* True if an operation needs a connection. */
static bool ops_want(const struct rxm_peer *peer)
{
	return !fab_list_empty(&peer->txq) || peer->asked;
}

/* True if an operation or a collective needs a connection. */
static bool peer_is_wanted(const struct rxm_peer *peer)
{
	return ops_want(peer) || rxm_coll_waits(peer);
}

/* Start connecting to a peer. On failure, returns -FI_E* and starts the hold-off. */
static int rxm_peer_start(struct rxm_peer *peer)
{
	int ret = rxm_conn_start(peer);

	if (!ret)
		return 0;
	hold_off(peer, -ret);
	fab_pace_leave(&peer->ep->pace, &peer->turn);
	return ret;
}

static void turn_begin(struct fab_turn *turn)
{
	struct rxm_peer *peer = fab_container(turn, struct rxm_peer, turn);
	char why[RXM_WHY];
	int ret;

	if (peer->conn || !peer_is_wanted(peer)) {
		fab_pace_leave(&peer->ep->pace, turn);
		return;
	}
	ret = rxm_peer_start(peer);
	if (!ret)
		return;
	snprintf(why, sizeof(why), "cannot connect: %s", fi_strerror(-ret));
	peer_give_up(peer, -ret, why);
}

static uint32_t young_max(void)
{
	return YOUNG_MAX;
}

static void retry_fire(struct fab_timer *timer)
{
	struct rxm_peer *peer = fab_container(timer, struct rxm_peer, retry);

	if (peer->conn || !peer_is_wanted(peer))
		return;
	if (!fab_pace_has(&peer->turn) && fab_pace_enter(&peer->ep->pace, &peer->turn))
		turn_begin(&peer->turn);
}

void rxm_peer_again(struct rxm_peer *peer, int err, const char *why)
{
	unsigned ms = fab_min((unsigned) AGAIN_MS << fab_min(peer->tries, 8u), (unsigned) AGAIN_MAX_MS);
	/* random, so that two peers that refuse each other do not retry at the same times */
	uint64_t now = fab_now_ns(), when_ns = now + ms * MS + fab_random64() % (ms * MS);

	if (peer->conn || !peer_is_wanted(peer)) {
		peer->tries = 0;
		rxm_peer_put(peer);
		return;
	}
	if (!peer->tries++)
		peer->deadline_ns = now + (uint64_t) fab_min(rxm_params.connect_timeout_ms, AGAIN_LIMIT_MS) * MS;
	if (when_ns > peer->deadline_ns) {
		peer_unreachable(peer, err, why);
		rxm_peer_put(peer);
		return;
	}
	peer->stats->retries++;
	fab_timer_start(peer->ep->base.engine, &peer->retry, when_ns);
}

void rxm_peer_lost(struct rxm_peer *peer, int err, const char *why)
{
	if (ops_want(peer) && !peer->conn) {
		peer_unreachable(peer, err, why);
	}
	rxm_coll_lost(peer, err);
	rxm_peer_put(peer);
}

int rxm_peer_connect(struct rxm_peer *peer)
{
	if (peer->conn || ops_want(peer) || fab_pace_has(&peer->turn))
		return 0;
	if (peer->holdoff_ns) {
		if (peer->untold || peer->holdoff_ns > fab_now_ns()) {
			peer->untold = false;
			return -peer->holdoff_err;
		}
		peer->holdoff_ns = 0;
	}
	return fab_pace_enter(&peer->ep->pace, &peer->turn) ? rxm_peer_start(peer) : 0;
}

/* ---- the table ---- */

struct rxm_peer *rxm_peer_of(struct rxm_ep *ep, const union fab_sockaddr *addr)
{
	struct rxm_peer *peer = rxm_peer_find(ep, addr);

	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->ep = ep;
	peer->addr = *addr;
	peer->fi_addr = fab_av_find(ep->base.bound.av, addr);
	peer->stats = fab_stats_peer_get(ep->base.stats, &addr->sa, peer->fi_addr);
	fab_list_init(&peer->txq);
	fab_turn_init(&peer->turn);
	fab_timer_init(&peer->retry, retry_fire);
	fab_table_add(&ep->peers, &peer->entry, fab_addr_hash(&addr->sa));
	return peer;
}

void rxm_peer_put(struct rxm_peer *peer)
{
	if (peer->conn || peer->inbound || peer->inquiry || peer->fi_addr != FI_ADDR_NOTAVAIL ||
	    !fab_list_empty(&peer->txq))
		return;
	fab_timer_stop(&peer->retry);
	fab_pace_leave(&peer->ep->pace, &peer->turn);
	fab_table_remove(&peer->ep->peers, &peer->entry);
	fab_stats_peer_put(peer->ep->base.stats, peer->stats);
	free(peer);
}

/* The peer's address is in the vector as fi_addr. */
static void peer_inserted(struct rxm_peer *peer, fi_addr_t fi_addr)
{
	struct rxm_conn *conns[] = { peer->conn, peer->inbound, peer->inquiry };
	struct fi_stats_peer *before = peer->stats;

	if (peer->fi_addr == FI_ADDR_NOTAVAIL)
		peer->stats = fab_stats_peer_insert(peer->ep->base.stats, before, &peer->addr.sa, fi_addr);
	peer->fi_addr = fi_addr;
	for (size_t i = 0; peer->stats != before && i < fab_countof(conns); i++)
		if (conns[i])
			rxm_conn_tell_again(conns[i]);
}

int rxm_peer_add(struct rxm_ep *ep, fi_addr_t fi_addr, struct rxm_peer **out)
{
	const union fab_sockaddr *addr;
	struct rxm_peer *peer;

	addr = fi_addr < FAB_AV_MAX ? fab_av_addr(ep->base.bound.av, fi_addr) : NULL;
	if (!addr) {
		RXM_WARN(FI_LOG_EP_DATA, "the address vector has no fi_addr %#lx\n", (unsigned long) fi_addr);
		return -FI_EINVAL;
	}
	peer = rxm_peer_of(ep, addr);
	if (!peer || fab_grow(&ep->by_addr, &ep->by_addr_cnt, fi_addr, sizeof(*ep->by_addr)))
		return -FI_ENOMEM;
	ep->by_addr[fi_addr] = peer;
	peer_inserted(peer, fi_addr);
	*out = peer;
	return 0;
}

/* ---- callbacks of the address vector ---- */

static void av_inserted(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct rxm_ep *ep = fab_container(watch, struct rxm_ep, watch);
	struct rxm_peer *peer;

	fab_engine_lock(ep->base.engine);
	peer = rxm_peer_find(ep, addr);
	if (peer)
		peer_inserted(peer, fi_addr);
	rxm_rx_name(ep, peer, addr, fi_addr);
	fab_engine_unlock(ep->base.engine);
}

static void av_removed(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct rxm_ep *ep = fab_container(watch, struct rxm_ep, watch);
	struct rxm_peer *peer;

	fab_engine_lock(ep->base.engine);
	peer = rxm_peer_find(ep, addr);
	if (fi_addr < ep->by_addr_cnt)
		ep->by_addr[fi_addr] = NULL;
	rxm_rx_name(ep, peer, addr, FI_ADDR_NOTAVAIL);
	if (peer) {
		peer->fi_addr = FI_ADDR_NOTAVAIL;
		rxm_peer_put(peer);
	}
	fab_engine_unlock(ep->base.engine);
}

int rxm_peers_open(struct rxm_ep *ep)
{
	int ret;

	fab_pace_init(&ep->pace, ep->base.engine, young_max, turn_begin);
	ret = fab_table_init(&ep->peers);
	if (ret)
		return ret;
	ep->watch.inserted = av_inserted;
	ep->watch.removed = av_removed;
	fab_av_watch(ep->base.bound.av, &ep->watch);
	return 0;
}

static bool lose_peer(struct fab_entry *entry, void *err)
{
	struct rxm_peer *peer = fab_container(entry, struct rxm_peer, entry);
	const char *why = "the completion queue below has failed";
	fi_addr_t fi_addr = peer->fi_addr;

	peer->fi_addr = 0;	/* keep the peer until this function is done with it */
	if (peer->conn)
		rxm_conn_fail(peer->conn, *(const int *) err, why);
	if (peer->inbound)
		rxm_conn_fail(peer->inbound, *(const int *) err, why);
	if (peer->inquiry)
		rxm_conn_fail(peer->inquiry, *(const int *) err, why);
	peer_give_up(peer, *(const int *) err, why);
	peer->fi_addr = fi_addr;
	return false;
}

void rxm_peers_lost(struct rxm_ep *ep, int err)
{
	fab_table_any(&ep->peers, lose_peer, &err);
}

static void close_peer(struct fab_entry *entry)
{
	struct rxm_peer *peer = fab_container(entry, struct rxm_peer, entry);

	peer->fi_addr = 0;	/* keep the peer until this function is done with it */
	if (peer->conn)
		rxm_conn_end(peer->conn, FI_ECANCELED, "the endpoint is closed");
	if (peer->inbound)
		rxm_conn_end(peer->inbound, FI_ECANCELED, "the endpoint is closed");
	if (peer->inquiry)
		rxm_conn_end(peer->inquiry, FI_ECANCELED, "the endpoint is closed");
	peer_give_up(peer, FI_ECANCELED, "the endpoint is closed");
	peer->fi_addr = FI_ADDR_NOTAVAIL;
	rxm_peer_put(peer);
}

void rxm_peers_close(struct rxm_ep *ep)
{
	fab_table_clear(&ep->peers, close_peer);
	fab_pace_stop(&ep->pace);
	fab_table_fini(&ep->peers);
	free(ep->by_addr);
	ep->by_addr = NULL;
	ep->by_addr_cnt = 0;
}
