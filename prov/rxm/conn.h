/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers, and the connections with them (peer.c, conn.c). Lock held. Conventions: rxm.h.
 */
#ifndef RXM_CONN_H
#define RXM_CONN_H

#include "rxm/objects.h"

/* Find the peer of fi_addr, or make it. 0; -FI_EINVAL: the address vector has no such entry, logged; -FI_ENOMEM. */
int rxm_peer_add(struct rxm_ep *ep, fi_addr_t fi_addr, struct rxm_peer **peer);
/* The same, fast where the peer is known already. */
static inline int rxm_peer_get(struct rxm_ep *ep, fi_addr_t fi_addr, struct rxm_peer **peer)
{
	if (__builtin_expect(fi_addr >= ep->by_addr_cnt || !ep->by_addr[fi_addr], 0))
		return rxm_peer_add(ep, fi_addr, peer);
	*peer = ep->by_addr[fi_addr];
	return 0;
}
/* Start to connect to the peer if there is neither a connection nor an attempt. 0: rxm_tx_submit() may queue operations
 * for it. -FI_E*: why the peer cannot be reached; the data call returns this. */
int rxm_peer_connect(struct rxm_peer *peer);
/* The same, fast where there is a connection. */
static inline int rxm_peer_want(struct rxm_peer *peer)
{
	return __builtin_expect(!peer->conn, 0) ? rxm_peer_connect(peer) : 0;
}
/* Find the peer with this address, or make it. A caller that has no use for the peer after all calls rxm_peer_put().
 * NULL: no memory. */
struct rxm_peer *rxm_peer_of(struct rxm_ep *ep, const union fab_sockaddr *addr);
/* Free the peer if it has no connection, no entry in the address vector and no operation that waits. The caller must
 * not use it afterwards. */
void rxm_peer_put(struct rxm_peer *peer);
/* The peer's connection has ended: end the operations that wait for one with err and why. May free the peer. */
void rxm_peer_lost(struct rxm_peer *peer, int err, const char *why);
/* An attempt to connect has failed, and another may succeed: try again after a pause, if operations wait for a
 * connection. When the deadline has passed, end them with err and why instead. May free the peer. */
void rxm_peer_again(struct rxm_peer *peer, int err, const char *why);
/* Start a connection to the peer. 0: peer->conn is set. -FI_E*, logged: it is not, and the caller ends the operations
 * that wait. */
int rxm_conn_start(struct rxm_peer *peer);
/* Start the endpoint's timer for the deadlines of connections that are being made, unless it runs. */
void rxm_conn_watch(struct rxm_ep *ep);
/* Write the text of an error completion: the peer's address, what happened, and the words of the provider below or of
 * the peer (said, may be NULL). */
void rxm_peer_why(const struct rxm_peer *peer, const char *what, const char *said, char text[RXM_WHY]);
/* End a connection, and all its operations with err and a text of the peer's address and why. Operations that wait for
 * a connection with the same peer (peer->txq) go on waiting. Idempotent. */
void rxm_conn_end(struct rxm_conn *conn, int err, const char *why);
/* The completion queue below has failed: end all connections of the endpoint, and all operations that wait for one. */
void rxm_peers_lost(struct rxm_ep *ep, int err);
/* Make the endpoint's table of peers, and begin to watch the address vector. 0, or -FI_ENOMEM with nothing to undo. No
 * lock held. */
int rxm_peers_open(struct rxm_ep *ep);
/* End all connections and free all peers. The caller has stopped watching the address vector. The memory of the
 * connections is freed by rxm_poller_settle(), after the completion queue has been read. */
void rxm_peers_close(struct rxm_ep *ep);
/* Read one event of the event queue below and act on it; this may end connections and make others. False: there is no
 * event, or poller->ending must end first, for which the caller reads the completion queue. */
bool rxm_conn_event(struct rxm_poller *poller);
/* The completion queue has been read until it was empty: end the connection poller->ending, which there is. */
void rxm_conn_ended(struct rxm_poller *poller);
/* End a connection that has failed: log why, end all its operations, and those that wait for a connection with the same
 * peer unless another attempt is worth it. Idempotent. */
void rxm_conn_fail(struct rxm_conn *conn, int err, const char *why);
/* The peer has another record in the page of the process: write there what is known of the connection. */
void rxm_conn_tell_again(struct rxm_conn *conn);
/* The peer is in no address vector now, or in one: count the connection. */
void rxm_conn_set_stranger(struct rxm_conn *conn, bool stranger);
/* True if so much is kept for strangers, and this is one, that it gets no credit before receives have taken some. */
static inline bool rxm_strangers_have_enough(const struct rxm_conn *conn)
{
	return conn->stranger && conn->ep->stranger_len >= rxm_params.stranger_max;
}
/* End a connection where the peer broke the protocol: log what it did, as a warning, and end with FI_EPROTO. */
void rxm_conn_broken(struct rxm_conn *conn, const char *what);
/* Free the memory of connections that are DOWN. The completion queue has been read until it was empty since they went
 * DOWN. */
void rxm_conn_reap(struct rxm_poller *poller);

#endif
