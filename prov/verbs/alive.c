/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "verbs/alive.h"

#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
#include "verbs/kind.h"

#define MS		1000000ULL
#define LOOKS		2		/* in the shorter of the two times */

uint64_t vrb_alive_period_ns(void)
{
	uint64_t probe = (uint64_t) vrb_params.keepalive_ms, stall = (uint64_t) vrb_params.stall_ms;

	if (!probe || !stall)
		return (probe + stall) * MS / LOOKS;
	return fab_min(probe, stall) * MS / LOOKS;
}

/* Post a write of no bytes. Its place is that of an operation, or of the marker while there is none. */
static void post_probe(struct vrb_ep *ep, uint64_t now_ns)
{
	struct vrb_conn_ep *conn = vrb_conn_of(ep);

	if (vrb_post_marker(ep))
		ep->tx_quiet = 0;
	conn->alive.tail = ep->tx_tail;
	conn->alive.posted_ns = now_ns;
}

/* True if the end of the last request is not reported, or there is none. */
static bool is_unknown(const struct vrb_ep *ep)
{
	return ep->tx_tail == ep->tx_head || ep->tx_quiet;
}

void vrb_alive_ask(struct vrb_ep *ep)
{
	if (ep->kind->probes(ep) && is_unknown(ep))
		post_probe(ep, fab_now_ns());
}

void vrb_alive_look(struct vrb_ep *ep, uint64_t now_ns, bool probe)
{
	struct vrb_alive *alive = &vrb_conn_of(ep)->alive;
	uint32_t cnt = ep->tx_tail - ep->tx_head;
	bool waits = cnt > ep->tx_quiet;	/* one that is reported has not completed */
	bool stalls;

	if (ep->state != VRB_EP_CONNECTED || !ep->kind->probes(ep))
		return;
	stalls = vrb_params.stall_ms && (!ep->kind->alone || ep->kind->alone(ep));
	if (!alive->posted_ns || alive->tail != ep->tx_tail)
		alive->posted_ns = now_ns;
	if (!alive->moved_ns || alive->head != ep->tx_head || !waits)
		alive->moved_ns = now_ns;
	alive->head = ep->tx_head;
	alive->tail = ep->tx_tail;
	if (probe && is_unknown(ep) && now_ns - alive->posted_ns >= (uint64_t) vrb_params.keepalive_ms * MS)
		post_probe(ep, now_ns);
	else if (stalls && waits && now_ns - alive->moved_ns >= (uint64_t) vrb_params.stall_ms * MS)
		vrb_cm_silent(ep, FI_ETIMEDOUT, "the peer has posted no receive within the time limit "
			      "(FI_VERBS_STALL_TIMEOUT)");
}
