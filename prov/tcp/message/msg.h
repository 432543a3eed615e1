/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the files of this room have among themselves. Engine lock held.
 */
#ifndef TCP_MSG_H
#define TCP_MSG_H

#include "tcp/message/message.h"

/* ---- msg.c ---- */

/* Aim the parser's iov at the room that a receive has given. */
void tcp_rx_aim_into(struct tcp_rx_state *rx, const struct fab_into *into);
/* The message of the current header goes into the buffer of rx.unexp, which holds the first `have` bytes of it. */
void tcp_msg_keep(struct tcp_conn *conn);
/* It goes into what a receive has taken for it, rx.into, or nowhere (into.rx is NULL); len bytes of it are in buf. */
void tcp_msg_resume(struct tcp_conn *conn, const uint8_t *buf, uint64_t len);

/* A message of a collective has come for which there is no receive. True: its group has failed, which the sender has
 * been told (the connection may have ended of it); drop it. */
bool tcp_msg_coll_refuses(struct tcp_conn *conn, uint64_t tag);

/* ---- kept.c ---- */

/* Tell programs that have asked (fab_profile_listens) of FI_EVENT_UNEXP_MSG_*. */
void tcp_profile_event(const struct tcp_unexp *unexp, uint32_t event_id);

/* ---- stall.c: a message that is too long to be kept waits in its socket for a receive ---- */

/* A receive has taken it (unexp->base.into is set), or nobody wants it: read on. unexp is gone. */
void tcp_stall_take(struct tcp_conn *conn, struct tcp_unexp *unexp);

/* ---- stranger.c: what peers that are in no address vector leave ---- */

/* A new message, complete but for its payload: counted if its sender is one. Its sender is known now, or it goes:
 * counted no more. */
void tcp_stranger_count(struct tcp_unexp *unexp);
void tcp_stranger_uncount(struct tcp_unexp *unexp);
/* It was not to be read, by tcp_stranger_hold(): it is no stranger any more, or enough has gone. */
void tcp_stranger_release(struct tcp_conn *conn);

/* ---- keyed.c ---- */

/* The posted receive for a message from conn: the older of `other`, which is the one by its source or NULL, and of the
 * one for its key. For tcp_rx_find(). */
struct fab_rx *tcp_keyed_find(struct tcp_conn *conn, enum fab_msg_class class, uint64_t tag, struct fab_rx *other);
/* A receive with FI_AUTH_KEY: op->addr is a key's handle. 0; -FI_EINVAL (logged), -FI_EAGAIN, -FI_ENOMEM. */
int tcp_keyed_post(struct tcp_ep *ep, const struct fab_op *op);

/* ---- rndv.c ---- */

/* A receive has taken an announced message (unexp->base.into is set): ask for the data. */
void tcp_rndv_take(struct tcp_conn *conn, struct tcp_unexp *unexp);
/* Nobody wants an announced message: let its sender complete. */
void tcp_rndv_discard(struct tcp_conn *conn, const struct tcp_unexp *unexp);

#endif
