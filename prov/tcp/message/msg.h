/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room. Engine lock held.
 */
#ifndef TCP_MSG_H
#define TCP_MSG_H

#include "tcp/message/message.h"

/* ---- msg.c ---- */

/* Aim the parser's iov at the room claimed in a receive. */
void tcp_rx_aim_into(struct tcp_rx_state *rx, const struct fab_into *into);
/* Read the message of the current header into the buffer of rx.unexp, which has its first `have` bytes. */
void tcp_msg_keep(struct tcp_conn *conn);
/* Read it into the room rx.into of a receive, or drop it (into.rx is NULL); buf has len bytes of it. */
void tcp_msg_resume(struct tcp_conn *conn, const uint8_t *buf, uint64_t len);

/* Decide about a message of a collective for which there is no receive. True: its group has failed, and the sender was
 * told (this may have ended the connection); drop the message. */
bool tcp_msg_coll_refuses(struct tcp_conn *conn, uint64_t tag);

/* ---- kept.c ---- */

/* Report FI_EVENT_UNEXP_MSG_* to the views of the endpoint (fab_profile_listens()). */
void tcp_profile_event(const struct tcp_unexp *unexp, uint32_t event_id);

/* ---- stall.c: a message that is too long to be kept waits in the socket for a receive ---- */

/* A receive has taken the message (unexp->base.into is set), or it is dropped: continue to read. Frees unexp. */
void tcp_stall_take(struct tcp_conn *conn, struct tcp_unexp *unexp);

/* ---- stranger.c: the account ---- */

/* Charge len more bytes for a message to the account; its conn is not NULL. */
void tcp_unexp_charge(struct tcp_unexp *unexp, uint64_t len);
/* The message is freed: give back all of it. May let connections of strangers be read again. */
void tcp_unexp_give(struct tcp_unexp *unexp);
/* Detach the message from its connection; sets conn to NULL. From then on: its sender's class has changed. */
void tcp_unexp_leave(struct tcp_unexp *unexp);
void tcp_unexp_reclass(struct tcp_unexp *unexp, enum tcp_class class);
/* Continue reading after tcp_stranger_hold(). */
void tcp_stranger_release(struct tcp_conn *conn);

/* ---- keyed.c ---- */

/* Post a receive with FI_AUTH_KEY; op->addr is the handle of a key. 0; -FI_EINVAL (logged), -FI_EAGAIN, -FI_ENOMEM. */
int tcp_keyed_post(struct tcp_ep *ep, const struct fab_op *op);

/* ---- rndv.c ---- */

/* A receive has taken an announced message (unexp->base.into is set): ask for the payload. */
void tcp_rndv_take(struct tcp_conn *conn, struct tcp_unexp *unexp);
/* An announced message is taken or freed: the sender cannot take it back any more. */
void tcp_rndv_unlist(struct tcp_unexp *unexp);
/* An announced message is dropped: tell its sender to complete it. */
void tcp_rndv_discard(struct tcp_conn *conn, const struct tcp_unexp *unexp);

#endif
