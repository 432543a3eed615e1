/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections that the application makes: passive endpoints (pep.c), and the connection of a MSG endpoint (connect.c).
 */
#ifndef TCP_CONNECT_H
#define TCP_CONNECT_H

#include "common/endpoint/endpoint.h"
#include "tcp/stream/stream.h"

/* A connection request that a passive endpoint has reported and that was neither accepted nor refused. It is on no
 * engine; the peer waits. */
struct tcp_connreq {
	struct fab_connreq base;
	struct tcp_link sock;		/* owned */
	struct tcp_hello peer;
	struct fab_auth_key *auth_key;	/* has a reference: the key that the peer has proved, or NULL */
};

/* ---- pep.c ---- */

/* struct fi_ops_fabric.passive_ep. 0 or -FI_E*. */
int tcp_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);

/* Take the request with this handle out of the fabric. The caller owns it. NULL: no such request, or it was taken
 * before. No lock held. */
struct tcp_connreq *tcp_connreq_take(struct fab_fabric *fabric, fid_t handle);
/* Close the socket, unless it was taken, and free the request. */
void tcp_connreq_free(struct tcp_connreq *req);
/* Take the bound socket out of the passive endpoint with this handle, for an endpoint that inherits its address.
 * Returns the descriptor; -FI_EINVAL: handle is not a passive endpoint of this fabric; -FI_EOPBADSTATE: it listens. No
 * lock held. */
int tcp_pep_take_fd(struct fab_fabric *fabric, fid_t handle);

/* ---- connect.c ---- */

/* Slots of struct fi_ops_cm, see fi_cm(3). */
int tcp_msg_connect(struct fid_ep *ep, const void *addr, const void *param, size_t paramlen);
int tcp_msg_accept(struct fid_ep *ep, const void *param, size_t paramlen);
int tcp_msg_shutdown(struct fid_ep *ep, uint64_t flags);
int tcp_msg_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen);

/* The owner of ep->conn: reports its end to the EQ, once. */
extern const struct tcp_conn_owner tcp_msg_conn_owner;

/* For closing: send what is queued, then end the handshake and the connection, without events. The lock is held, and
 * released in between. */
void tcp_msg_stop(struct tcp_ep *ep);

#endif
