/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What programs are told of an endpoint: fi_profile(3), common/endpoint/profile.h. With a shared receive context its
 * receives and messages are everybody's. Engine lock held.
 */
#include "common/endpoint/profile.h"

#include "tcp/peer/peers.h"
#include "tcp/stream/stream.h"
#include "tcp/params/params.h"

static uint64_t connection_cnt(const struct tcp_ep *ep)
{
	struct fab_list *link;
	uint64_t cnt = 0;

	if (ep->conn)
		return ep->conn->state == TCP_CONN_UP;
	if (!ep->peers)
		return 0;
	fab_list_for_each(&ep->peers->lives, link)
		cnt += fab_container(link, struct tcp_life, link)->conn.state == TCP_CONN_UP;
	return cnt;
}

static uint64_t profile_read(struct fab_ep *base, uint32_t var_id)
{
	const struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);
	const struct tcp_peer_table *peers = ep->peers;	/* NULL until it is enabled */

	switch (var_id) {
	case FI_VAR_UNEXP_MSG_CNT:
		return (uint64_t) ep->rx->msg.unexp_cnt + ep->rx->tagged.unexp_cnt;
	case FI_VAR_MSG_QUEUE_CNT:
		return (uint64_t) ep->rx->msg.posted_cnt + ep->rx->tagged.posted_cnt;
	case FI_VAR_CONNECTION_CNT:
		return connection_cnt(ep);
	case FI_VAR_CONN_REQUEST:
		return peers ? peers->asked : 0;
	case FI_VAR_CONN_ACCEPT:
		return peers ? peers->accepted : 0;
	case FI_VAR_CONN_REJECT:
		return peers ? peers->asked - peers->accepted : 0;
	default:
		return 0;
	}
}

static struct fi_cq_tagged_entry entry_of(const struct tcp_unexp *unexp)
{
	return (struct fi_cq_tagged_entry) {
		.flags = FI_RECV | (unexp->class == TCP_CLASS_TAGGED || unexp->layered ? FI_TAGGED : FI_MSG) |
			 (unexp->has_data ? FI_REMOTE_CQ_DATA : 0),
		.len = unexp->len, .data = unexp->data, .tag = unexp->tag,
	};
}

/* Where cnt entries are stored already; returns how many there are then. */
static size_t add_queue(const struct fab_match *match, struct fi_cq_tagged_entry *entry, size_t cnt, size_t room)
{
	struct fab_list *link;

	fab_list_for_each(&match->unexp_order, link) {
		if (cnt < room)
			entry[cnt] = entry_of(fab_container(link, struct tcp_unexp, match.order));
		cnt++;
	}
	return cnt;
}

static size_t profile_queue(struct fab_ep *base, struct fi_cq_tagged_entry *entry, size_t room)
{
	const struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);

	return add_queue(&ep->rx->tagged, entry, add_queue(&ep->rx->msg, entry, 0, room), room);
}

void tcp_profile_event(const struct tcp_unexp *unexp, uint32_t event_id)
{
	struct fi_cq_tagged_entry entry = entry_of(unexp);

	if (unexp->class != TCP_CLASS_COLL)
		fab_profile_event(&unexp->ep->base, event_id, &entry);
}

const struct fab_profiler tcp_rdm_profiler = {
	.vars = FAB_PROFILE_RECV | FAB_PROFILE_BIT(FI_VAR_CONNECTION_CNT) | FAB_PROFILE_REQUESTS,
	.events = true,
	.read = profile_read,
	.queue = profile_queue,
};

/* Requests for these come to a passive endpoint. */
const struct fab_profiler tcp_msg_profiler = {
	.vars = FAB_PROFILE_RECV | FAB_PROFILE_BIT(FI_VAR_CONNECTION_CNT),
	.events = true,
	.read = profile_read,
	.queue = profile_queue,
};
