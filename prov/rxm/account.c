/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What endpoints hold for peers, in the page of the process (common/stats), where those of all endpoints are added up.
 * Lock held.
 */
#include "rxm/rxm.h"

#include <string.h>

static const struct {
	const char *name;
	enum fi_stats_label_kind kind;
} figures[RXM_FIGURES] = {
	[RXM_HELD_KNOWN] = { "rxm_messages_held_known_bytes", FI_STATS_GAUGE },
	[RXM_HELD_STRANGERS] = { "rxm_messages_held_strangers_bytes", FI_STATS_GAUGE },
	[RXM_HELD_BUFFERS] = { "rxm_buffers_held_bytes", FI_STATS_GAUGE },
	[RXM_HELD_CONNS] = { "rxm_connections_held_strangers", FI_STATS_GAUGE },
	[RXM_REFUSED] = { "rxm_refused_requests", FI_STATS_COUNTER },
};

/* Write what has changed since the last time. */
static void show(struct rxm_ep *ep, const uint64_t now[RXM_FIGURES])
{
	for (int i = 0; i < RXM_FIGURES; i++) {
		if (now[i] == ep->shown[i])
			continue;
		__atomic_fetch_add(fab_stats_figure(&rxm_prov, figures[i].name, figures[i].kind), now[i] - ep->shown[i],
				   __ATOMIC_RELAXED);
		ep->shown[i] = now[i];
	}
}

void rxm_account_show(struct rxm_ep *ep)
{
	show(ep, (uint64_t[RXM_FIGURES]) {
		[RXM_HELD_KNOWN] = ep->kept_len - ep->stranger_len,
		[RXM_HELD_STRANGERS] = ep->stranger_len,
		/* connections that share receives have none of their own */
		[RXM_HELD_BUFFERS] = ep->poller->srx ? 0 : ep->conn_cnt * rxm_params.conn_rx * ep->rx_len,
		[RXM_HELD_CONNS] = ep->stranger_cnt,
		[RXM_REFUSED] = ep->refused_cnt,
	});
}

void rxm_account_end(struct rxm_ep *ep)
{
	show(ep, (uint64_t[RXM_FIGURES]) { [RXM_REFUSED] = ep->refused_cnt });
}
