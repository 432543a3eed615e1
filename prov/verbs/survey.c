/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints in the page of the process (common/stats): connections, and a look through the operations that are pending.
 * Requests complete in the order of posting, so the first one in the ring is the oldest. Engine lock held.
 */
#include "verbs/kind.h"

#include <string.h>
#include "base/bits.h"
#include "verbs/srx.h"

#define LOOK_MAX	256	/* requests of a ring that are looked at in one survey */

/* ---- connections ---- */

/* The connection that is being made. It is the only one of its endpoint, so its number is 1. */
static void tell_connecting(struct vrb_ep *ep)
{
	bool accepts = ep->base.info->handle, sent = vrb_conn_of(ep)->req_sent;

	fab_stats_pending(&ep->stats->pending[FI_STATS_PEER_CONNECT], &(struct fi_stats_pending) {
		.number = 1, .cnt = 1, .peer = UINT32_MAX,
		.state = accepts ? FI_STATS_CONNECTING : sent ? FI_STATS_ACCEPTING : FI_STATS_RESOLVING,
	});
}

void vrb_survey_connecting(struct vrb_ep *ep)
{
	if (ep->stats == &ep->base.stats->rest)
		ep->stats = fab_stats_peer_get(ep->base.stats, ep->peer_sa, FI_ADDR_NOTAVAIL);
	fab_stats_peer_conn(ep->base.stats, ep->stats, FI_STATS_CONN_CONNECTING, FI_STATS_CARRIER_RDMA);
	ep->told = true;
	tell_connecting(ep);
}

void vrb_survey_connected(struct vrb_ep *ep)
{
	struct rdma_cm_id *id = vrb_conn_of(ep)->id;

	fab_stats_pending(&ep->stats->pending[FI_STATS_PEER_CONNECT], NULL);
	fab_stats_peer_name(ep->base.stats, ep->stats, rdma_get_peer_addr(id), rdma_get_local_addr(id), 0, 0);
	fab_stats_peer_conn(ep->base.stats, ep->stats, FI_STATS_CONN_UP, FI_STATS_CARRIER_RDMA);
}

void vrb_survey_ended(struct vrb_ep *ep, int err)
{
	fab_stats_pending(&ep->stats->pending[FI_STATS_PEER_CONNECT], NULL);
	if (ep->stats->conn == FI_STATS_CONN_DOWN)
		return;
	ep->stats->losses += err != 0;
	fab_stats_event(ep->base.stats, ep->stats, err ? FI_STATS_EV_LOST : FI_STATS_EV_ENDED, (uint64_t) err);
	fab_stats_peer_conn(ep->base.stats, ep->stats, FI_STATS_CONN_DOWN, FI_STATS_CARRIER_RDMA);
}

/* ---- operations ---- */

static bool waits_for_data(const struct vrb_tx *tx)
{
	return tx->code == FAB_OP_READ || tx->code == FAB_OP_FETCH_ATOMIC;
}

static void describe(struct vrb_ep *ep, const struct vrb_tx *tx, enum fi_stats_peer_kind kind, uint64_t number,
		     bool behind)
{
	struct fi_stats_peer *stats = tx->stats;

	fab_stats_peer_pending(ep->base.stats, stats, kind, &(struct fi_stats_pending) {
		.number = number, .cnt = stats->queued - stats->dequeued, .len = tx->len, .peer = UINT32_MAX,
		.op = tx->code, .flags = FI_STATS_IN_ORDER,
		.state = behind ? FI_STATS_FENCE : waits_for_data(tx) ? FI_STATS_ANSWER : FI_STATS_SENT,
	});
}

/* Describe the first request of each kind that the application waits for. A message completes no earlier than the reads
 * before it. */
static void look_at_ring(struct vrb_ep *ep)
{
	uint32_t end = ep->tx_head + fab_min(ep->tx_tail - ep->tx_head, (uint32_t) LOOK_MAX);
	const struct vrb_tx *first[2] = { NULL };
	uint64_t number = 0, numbers[2];

	for (uint32_t pos = ep->tx_head; pos != end && !(first[0] && first[1]); pos++) {
		const struct vrb_tx *tx = &ep->tx[pos & ep->tx_mask];
		bool access = tx->code >= FAB_OP_WRITE;

		if (tx->code == FAB_OP_MAX || !vrb_is_awaited(tx))
			continue;
		number++;
		if (first[access])
			continue;
		first[access] = tx;
		numbers[access] = tx->stats->dequeued + number;
	}
	if (first[0])
		describe(ep, first[0], FI_STATS_PEER_MESSAGE, numbers[0], first[1] && waits_for_data(first[1]) &&
			 (int32_t) (first[1]->pos - first[0]->pos) < 0);
	if (first[1])
		describe(ep, first[1], FI_STATS_PEER_ACCESS, numbers[1], false);
	for (int access = 0; access < 2; access++)
		if (!first[access])
			fab_stats_pending(&ep->stats->pending[access ? FI_STATS_PEER_ACCESS : FI_STATS_PEER_MESSAGE],
					  NULL);
}

/* Receives are not in a list: the oldest is known by the number of those that were posted before it. */
static void look_at_receives(struct vrb_ep *ep)
{
	struct fi_stats_ep *stats = ep->base.stats;
	uint32_t peer = ep->srx ? UINT32_MAX : fab_stats_peer_index(stats, ep->stats);
	bool known = peer != UINT32_MAX;

	fab_stats_pending(&stats->pending[FI_STATS_EP_RECV], !ep->rx_cnt ? NULL : &(struct fi_stats_pending) {
		.number = stats->posted[0] - ep->rx_cnt + 1, .cnt = ep->rx_cnt, .op = FAB_OP_RECV,
		.state = FI_STATS_POSTED, .peer = peer, .flags = known ? FI_STATS_PEER : FI_STATS_ANY_SOURCE,
	});
}

static uint64_t survey_look(struct fab_survey *survey)
{
	struct vrb_ep *ep = fab_container(survey, struct vrb_ep, survey);
	bool waits = ep->tx_head != ep->tx_tail || ep->rx_cnt || ep->state == VRB_EP_CONNECTING;

	/* there may be many endpoints, most of which have nothing */
	if (!waits && !ep->told)
		return 0;
	ep->told = waits;
	look_at_ring(ep);
	look_at_receives(ep);
	if (ep->state == VRB_EP_CONNECTING)
		tell_connecting(ep);
	return ep->stats->queued - ep->stats->dequeued + (ep->state == VRB_EP_CONNECTING);
}

void vrb_survey_start(struct vrb_ep *ep)
{
	if (!ep->shown)
		return;
	ep->survey.look = survey_look;
	fab_survey_add(ep->base.engine, &ep->survey);
}

void vrb_survey_stop(struct vrb_ep *ep)
{
	fab_survey_del(&ep->survey);
	if (ep->stats != &ep->base.stats->rest)
		fab_stats_peer_put(ep->base.stats, ep->stats);
	ep->stats = &ep->base.stats->rest;
}
