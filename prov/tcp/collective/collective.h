/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives: see coll.c. Engine lock held, except where a comment says otherwise.
 */
#ifndef TCP_COLLECTIVE_H
#define TCP_COLLECTIVE_H

#include "common/collective/collective.h"
#include "tcp/stream/stream.h"

extern const struct fab_coll_net tcp_coll_net;	/* coll.c */
/* fi_ops_cm.join of a transmit context. Messages of its groups arrive at the receive context with the same number.
 * Takes locks. */
int tcp_coll_ctx_join(struct fid_ep *fid, const void *addr, uint64_t flags, struct fid_mc **mc, void *context);
/* A transmit or receive context that is in no group closes: end the remaining messages of aborted operations, and make
 * the other context forget it. Its own connections have ended. Lock held; idempotent. */
void tcp_coll_part(struct tcp_ep *ctx);

/* A frame of a collective has begun. */
void tcp_coll_start(struct tcp_conn *conn);
/* The stream has started, and the peer does not support collectives: end the operations that wait for it. */
void tcp_coll_purge(struct tcp_conn *conn);
/* The connection has ended; err is a positive FI_E* or 0. */
void tcp_coll_lost(struct tcp_conn *conn, int err);
/* A connection has begun, or goes on. */
void tcp_coll_met(struct tcp_conn *conn);

#endif
