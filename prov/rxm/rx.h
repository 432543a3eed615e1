/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Between the files that deal with what arrives: rx.c (packets and their buffers), msg.c (the messages in them),
 * kept.c (messages that wait for their receive). Engine lock held everywhere.
 */
#ifndef RXM_RX_H
#define RXM_RX_H

#include "rxm/rxm.h"

/* A packet that came, and what is left to decide about it. */
struct rxm_in {
	struct rxm_conn *conn;
	struct rxm_rx *rx;
	const struct rxm_pkt *pkt;
	size_t len;			/* bytes behind the headers */
	struct rxm_kept *kept;		/* it waits here, or NULL */
};

/* ---- rx.c ---- */

/* The buffer of a packet has been looked at: post it again, unless the connection is DOWN. May end it. */
void rxm_rx_repost(struct rxm_rx *rx);
/* A packet of the peer, with this load, has been dealt with: it may send one more. May end the connection. */
void rxm_credit_give(struct rxm_conn *conn, enum rxm_load load);

/* ---- msg.c: each may end the connection ---- */

void rxm_msg_eager(struct rxm_in *in);
/* A message without a packet, which is all of the buffer. */
void rxm_msg_bare(struct rxm_in *in);
void rxm_msg_rndv(struct rxm_in *in);
void rxm_msg_segment(struct rxm_in *in);
/* Tell the peer, which asked for that, that message msg_id has been delivered; not if conn is NULL or not UP. */
void rxm_msg_acknowledge(struct rxm_conn *conn, bool wanted, uint64_t msg_id);
/* Forget a message of which segments were to come; where it waits it does so no longer for them. */
void rxm_part_free(struct rxm_part *part);

/* ---- kept.c ---- */

/* Keep a message for which there is no receive, with room for so many bytes of it. NULL: no memory, and the connection
 * has ended. */
struct rxm_kept *rxm_kept_new(struct rxm_conn *conn, struct fab_recv *recv, const struct fab_msg *msg, size_t room);
/* Drop what waits of this connection for a group of collectives (FAB_COLL_GROUP_BITS): it has failed. */
void rxm_kept_drop_group(struct rxm_conn *conn, uint64_t group);
/* It has been unlinked, or taken: give back what it holds. May end the connection. */
void rxm_kept_free(struct rxm_kept *kept);

#endif
