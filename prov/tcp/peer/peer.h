/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The peers of an RDM endpoint: their listening addresses, and the connection to each (peer.c). Also the supervision of
 * connections of all endpoints: alive.c, drain.c.
 */
#ifndef TCP_PEER_H
#define TCP_PEER_H

#include "tcp/peer/contexts.h"
#include "tcp/stream/stream.h"

/*
 * Listen at ep->base.name, whose port is set to the actual one, and watch ep's address vector. 0; -FI_E*: everything
 * was undone. No lock held; the endpoint is bound and not enabled yet.
 */
int tcp_peers_open(struct tcp_ep *ep);
/* Send what is queued (tcp_ep_drain()), end every connection, free the table. Operations that are left complete with
 * FI_ECANCELED. TCP_EP_CLOSING is set. No lock held; idempotent. */
void tcp_peers_close(struct tcp_ep *ep);
/* Call fn for connections until it returns true. True if it did. fn may end the connection for which it is called. Lock
 * held. */
bool tcp_peers_any(struct tcp_ep *ep, bool (*fn)(struct tcp_ep *ep, struct tcp_conn *conn, void *arg), void *arg);

/* True if frames of this connection, and its end, may concern groups of its endpoint. Not if it comes from a transmit
 * context with another number. Lock held. */
bool tcp_peer_same_ctx(const struct tcp_conn *conn);

/* Compare two addresses of one family by host, then port: < 0, 0, > 0. Both ends of a connection get the same order. */
int tcp_peer_cmp(const union fab_sockaddr *a, const union fab_sockaddr *b);

/* Get the connection for fi_addr, which may include a peer group; it is made if there is none. It may still be IDLE;
 * operations are then queued. 0; -FI_EINVAL: no such address; -FI_ECONNREFUSED, -FI_EHOSTUNREACH, -FI_ETIMEDOUT: it
 * failed recently (hold-off); -FI_ENOMEM, -FI_EMFILE. Lock held. */
int tcp_peer_conn(struct tcp_ep *ep, fi_addr_t fi_addr, struct tcp_conn **conn);

/* The connection for an address, of any type of endpoint, as far as it is known at once. NULL: ask tcp_peer_conn().
 * Lock held. */
static inline struct tcp_conn *tcp_ep_known_conn(const struct tcp_ep *ep, fi_addr_t fi_addr)
{
	uint64_t slot = fi_addr << ep->rdm.rx_ctx_bits | fi_addr >> (-ep->rdm.rx_ctx_bits & 63);

	if (ep->conn)
		return ep->conn;
	return slot < ep->rdm.by_addr_cnt ? ep->rdm.by_addr[slot] : NULL;
}

/* Get the connection for an address, of any type of endpoint. As tcp_peer_conn(). Lock held. */
static inline int tcp_ep_conn(struct tcp_ep *ep, fi_addr_t fi_addr, struct tcp_conn **conn)
{
	*conn = tcp_ep_known_conn(ep, fi_addr);
	return __builtin_expect(*conn != NULL, 1) ? 0 : tcp_peer_conn(ep, fi_addr, conn);
}

/* ---- park.c ---- */

/* tcp_frame.start of the PARK frames: the peer asks, answers, or continues. */
void tcp_park_asked(struct tcp_conn *conn);
void tcp_park_answered(struct tcp_conn *conn);
void tcp_park_stay(struct tcp_conn *conn);

/* ---- drain.c ---- */

/*
 * Send what is queued on connections, until drained(ep), called with the lock held, returns true, or for TCP_FLUSH_MS.
 * The engine makes progress meanwhile. The lock is held on entry and return, and released in between. For fi_close()
 * and fi_shutdown().
 */
void tcp_ep_drain(struct tcp_ep *ep, bool (*drained)(struct tcp_ep *ep));
/* True if the peer's kernel has received everything sent on this connection, or never will. Sends what can be sent.
 * Lock held. */
bool tcp_conn_drained(struct tcp_conn *conn);

/* ---- alive.c ---- */

/* Supervise the endpoint's connections from now on: a connection whose peer's kernel is silent is ended with
 * FI_ETIMEDOUT. Idempotent. Lock held. */
void tcp_alive_start(struct tcp_ep *ep);
void tcp_alive_stop(struct tcp_ep *ep);

/* ---- survey.c ---- */

/* Describe the endpoint's pending operations in the page of the process from now on; stop it. Lock held. */
void tcp_survey_start(struct tcp_ep *ep);
void tcp_survey_stop(struct tcp_ep *ep);	/* idempotent */
/* Describe those of a connection now. Returns their number. Lock held. */
uint64_t tcp_survey_conn(struct tcp_conn *conn);

/* ---- statistics: profile.c ---- */

/* Connections that are up, of any endpoint; requests of peers so far, and those that became a connection (0 for an
 * endpoint without peers). Lock held. */
struct tcp_peer_counts {
	uint64_t up, asked, accepted;
};
struct tcp_peer_counts tcp_peer_count(const struct tcp_ep *ep);

#endif
