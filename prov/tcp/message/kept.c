/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Statistics of kept messages: events, and a list of the messages (fi_profile(3)). Engine lock held.
 */
#include "tcp/message/msg.h"

#include "common/endpoint/endpoint.h"

static struct fi_cq_tagged_entry unexp_entry(const struct tcp_unexp *unexp)
{
	const bool tagged = unexp->base.class == FAB_CLASS_TAGGED || (unexp->base.flags & FI_TAGGED);

	return (struct fi_cq_tagged_entry) {
		.flags = FI_RECV | (tagged ? FI_TAGGED : FI_MSG) | (unexp->base.flags & FI_REMOTE_CQ_DATA),
		.len = unexp->base.len, .data = unexp->base.data, .tag = unexp->base.tag,
	};
}

/* List the messages of a queue behind cnt entries; returns the new number of all. */
static size_t unexp_list_queue(const struct fab_match *match, struct fi_cq_tagged_entry *entry, size_t cnt, size_t room)
{
	struct fab_list *link;

	fab_list_for_each(&match->unexp_order, link) {
		if (cnt < room)
			entry[cnt] = unexp_entry(fab_container(link, struct tcp_unexp, base.match.order));
		cnt++;
	}
	return cnt;
}

size_t tcp_unexp_list(const struct tcp_ep *ep, struct fi_cq_tagged_entry *entry, size_t room)
{
	const struct fab_match *queue = ep->rx->recv.queue;
	size_t cnt = unexp_list_queue(&queue[FAB_CLASS_MSG], entry, 0, room);

	return unexp_list_queue(&queue[FAB_CLASS_TAGGED], entry, cnt, room);
}

void tcp_profile_event(const struct tcp_unexp *unexp, uint32_t event_id)
{
	struct fi_cq_tagged_entry entry = unexp_entry(unexp);

	if (unexp->base.class != FAB_CLASS_COLL)
		fab_profile_event(&unexp->ep->base, event_id, &entry);
}
