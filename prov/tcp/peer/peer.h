/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peers of an RDM endpoint: who listens where, and the connection that is used for each (peer.c). And what keeps
 * connections of all kinds of endpoints in order: alive.c, drain.c.
 */
#ifndef TCP_PEER_H
#define TCP_PEER_H

#include "tcp/peer/contexts.h"
#include "tcp/stream/stream.h"

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

/* The connection for fi_addr, which may be one in a group, opened now if need be (it may still be IDLE: operations
 * queue). 0; -FI_EINVAL no such address; -FI_ECONNREFUSED, -FI_EHOSTUNREACH, -FI_ETIMEDOUT: it failed a moment ago
 * (hold-off); -FI_ENOMEM, -FI_EMFILE. Lock held. */
int tcp_peer_conn(struct tcp_ep *ep, fi_addr_t fi_addr, struct tcp_conn **conn);

/* What tcp_submit asks of an endpoint: the connection of an address, without a branch on the type beyond this. Lock
 * held. */
static inline int tcp_ep_conn(struct tcp_ep *ep, fi_addr_t fi_addr, struct tcp_conn **conn)
{
	uint64_t slot = fi_addr << ep->rdm.rx_ctx_bits | fi_addr >> (-ep->rdm.rx_ctx_bits & 63);

	if (ep->conn) {
		*conn = ep->conn;
		return 0;
	}
	if (slot < ep->rdm.by_addr_cnt && ep->rdm.by_addr[slot]) {
		*conn = ep->rdm.by_addr[slot];
		return 0;
	}
	return tcp_peer_conn(ep, fi_addr, conn);
}

/* ---- park.c ---- */

/* Frames (struct tcp_frame.start): the peer asks, answers, goes on. */
void tcp_park_asked(struct tcp_conn *conn);
void tcp_park_answered(struct tcp_conn *conn);
void tcp_park_stay(struct tcp_conn *conn);

/* ---- drain.c ---- */

/*
 * Let what is queued on connections leave: until drained(ep) says so with the lock held, or for TCP_FLUSH_MS while
 * the engine makes progress. Lock held on entry and return, not in between. For fi_close and fi_shutdown.
 */
void tcp_ep_drain(struct tcp_ep *ep, bool (*drained)(struct tcp_ep *ep));
/* Has everything of this connection arrived at the peer's kernel, or can it not any more? Sends what can be sent.
 * Lock held. */
bool tcp_conn_drained(struct tcp_conn *conn);

/* ---- alive.c ---- */

/* Look after the endpoint's connections from now on: those whose peer's kernel has gone silent are ended,
 * FI_ETIMEDOUT. Idempotent. Lock held. */
void tcp_alive_start(struct tcp_ep *ep);
void tcp_alive_stop(struct tcp_ep *ep);

/* ---- for programs that look: profile.c ---- */

/* Connections that are up, of any endpoint; requests of peers so far, and those of them that became a connection (0 of
 * what has no peers). Lock held. */
struct tcp_peer_counts {
	uint64_t up, asked, accepted;
};
struct tcp_peer_counts tcp_peer_count(const struct tcp_ep *ep);

#endif
