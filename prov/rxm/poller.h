/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The poller of an engine: the queues below that its endpoints share, the receives that their connections share, and
 * registrations that are made when the lock is about to be released. Conventions: rxm.h.
 */
#ifndef RXM_POLLER_H
#define RXM_POLLER_H

#include "rxm/objects.h"

/* ---- poller.c ---- */

/* Take a reference to the poller of an engine, which is opened if there is none. 0: the caller calls rxm_poller_put()
 * later. -FI_E*: the queues below cannot be opened. No lock held. */
int rxm_poller_get(struct rxm_domain *domain, struct fab_engine *engine, struct rxm_poller **poller);
/* Give a reference back; the last one closes the poller. The caller has ended its own connections before. No lock
 * held. */
void rxm_poller_put(struct rxm_domain *domain, struct rxm_poller *poller);
/* From here on: lock held. Each call may end any connection. */

/* Process completions and events, up to a bound. True if there were any: there may be more. */
bool rxm_poller_run(struct rxm_poller *poller);
/* Wait up to timeout_ms until there is a completion or an event, without releasing the lock; then process them. For
 * closing. */
void rxm_poller_wait(struct rxm_poller *poller, int timeout_ms);
/* A connection has become stuck that has nothing under way: try again soon. */
void rxm_poller_again(struct rxm_poller *poller);
/* Connections have ended: read the completion queue until the memory of all of them can be freed, and free it. Not from
 * inside of a pass. */
void rxm_poller_settle(struct rxm_poller *poller);
/* A queue below, "completion" or "event", has failed with err: the endpoints of the poller are lost. Lock held. */
void rxm_poller_lose(struct rxm_poller *poller, const char *queue, int err);

/* A request for a connection has taken so many nanoseconds, and was not that of a known peer. While known peers have
 * completions, no event is read for seven times as long. Lock held. */
void rxm_poller_stranger_asked(struct rxm_poller *poller, uint64_t took_ns);

/* ---- srx.c: lock held, except in open and close ---- */

/* Open the shared receives of a new poller, if the provider below has what they need and FI_OFI_RXM_USE_SRX permits;
 * poller->srx tells. */
void rxm_srx_open(struct rxm_domain *domain, struct rxm_poller *poller);
/* Free them. No connection uses them. */
void rxm_srx_close(struct rxm_poller *poller);
/* A connection will use them: make sure that there are some. 0 or -FI_E*. */
int rxm_srx_join(struct rxm_conn *conn);
/* More than half of the shared receives were in use: double them, if that is useful. */
void rxm_srx_enlarge(struct rxm_poller *poller);
/* Post a shared receive again, which is in no list. */
void rxm_srx_repost(struct rxm_poller *poller, struct rxm_rx *rx);
/* A connection has ended: post those again that it has. */
void rxm_srx_return(struct rxm_conn *conn);

/* ---- fetch.c ---- */

/* Read an announced message into the buffers of its receive; tx has rma, into, and done. 0: done() will be called.
 * -FI_E*: the caller frees tx. Lock held. */
int rxm_fetch_start(struct rxm_conn *conn, struct rxm_tx *tx);
/* rxm_poller.after. */
void rxm_fetch_after(struct fab_signal *signal);
/* Have after() called when the lock is released. Lock held. */
static inline void rxm_poller_after(struct rxm_poller *poller)
{
	if (fab_list_empty(&poller->after.link))
		fab_list_add_tail(&poller->engine->signals, &poller->after.link);
}

#endif
