/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peers of an RDM endpoint: who listens where, and the connection that is used for each. See peer.c; what
 * tcp_submit asks is tcp_peer_conn() in ep.h.
 */
#ifndef TCP_PEER_H
#define TCP_PEER_H

#include "tcp/stream/ep.h"

/*
 * Listen at ep->addr (whose port becomes the one that it got), watch ep's address vector. 0 or -FI_E*: nothing is
 * left behind. No lock held; the endpoint is bound and not yet enabled.
 */
int tcp_peers_open(struct tcp_ep *ep);
/* Let what is queued leave (tcp_ep_drain), end every connection, free the table. Operations that are still there
 * complete with FI_ECANCELED. ep->closing is set. No lock held; idempotent. */
void tcp_peers_close(struct tcp_ep *ep);
/* Call fn for every connection until it returns true; true if one did. fn may end the one that it is called for.
 * Lock held. */
bool tcp_peers_any(struct tcp_ep *ep, bool (*fn)(struct tcp_ep *ep, struct tcp_conn *conn, void *arg), void *arg);

/* May what comes by this connection, or its end, be about the groups of its endpoint? Not if it came from a transmit
 * context of another number. Lock held. */
bool tcp_peer_same_ctx(const struct tcp_conn *conn);

/* Order of two addresses of one family, as both ends of a connection see it: host, then port. < 0, 0, > 0. */
int tcp_peer_cmp(const union fab_sockaddr *a, const union fab_sockaddr *b);

#endif
