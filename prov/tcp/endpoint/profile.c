/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The statistics of endpoints: fi_profile(3), common/endpoint/profile.h. With a shared receive context, receives and
 * messages of all its endpoints are counted. Engine lock held.
 */
#include "tcp/endpoint/ep.h"

#include "tcp/message/message.h"
#include "tcp/peer/peer.h"

static uint64_t profile_read(struct fab_ep *base, uint32_t var_id)
{
	const struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);
	const struct tcp_peer_counts peers = tcp_peer_count(ep);
	const struct fab_match *queue = ep->rx->recv.queue;

	switch (var_id) {
	case FI_VAR_UNEXP_MSG_CNT:
		return (uint64_t) queue[FAB_CLASS_MSG].unexp_cnt + queue[FAB_CLASS_TAGGED].unexp_cnt;
	case FI_VAR_MSG_QUEUE_CNT:
		return (uint64_t) queue[FAB_CLASS_MSG].posted_cnt + queue[FAB_CLASS_TAGGED].posted_cnt;
	case FI_VAR_CONNECTION_CNT:
		return peers.up;
	case FI_VAR_CONN_REQUEST:
		return peers.asked;
	case FI_VAR_CONN_ACCEPT:
		return peers.accepted;
	case FI_VAR_CONN_REJECT:
		return peers.asked - peers.accepted;
	default:
		return 0;
	}
}

static size_t profile_queue(struct fab_ep *base, struct fi_cq_tagged_entry *entry, size_t room)
{
	const struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);

	return tcp_unexp_list(ep, entry, room);
}

const struct fab_profiler tcp_rdm_profiler = {
	.vars = FAB_PROFILE_RECV | FAB_PROFILE_BIT(FI_VAR_CONNECTION_CNT) | FAB_PROFILE_REQUESTS,
	.events = true,
	.read = profile_read,
	.queue = profile_queue,
};

/* The requests for MSG endpoints arrive at a passive endpoint. */
const struct fab_profiler tcp_msg_profiler = {
	.vars = FAB_PROFILE_RECV | FAB_PROFILE_BIT(FI_VAR_CONNECTION_CNT),
	.events = true,
	.read = profile_read,
	.queue = profile_queue,
};
