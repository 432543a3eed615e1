/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared by the files of the receiving side: rx.c (packets and their buffers), msg.c (the messages in them), kept.c
 * (unexpected messages). Engine lock held everywhere.
 */
#ifndef RXM_RX_H
#define RXM_RX_H

#include "rxm/rxm.h"

/* A packet that is being processed. */
struct rxm_in {
	struct rxm_conn *conn;
	struct rxm_rx *rx;
	const struct rxm_pkt *pkt;
	size_t len;			/* bytes behind the headers */
	struct rxm_kept *kept;		/* its message became unexpected and waits here; or NULL */
};

/* ---- rx.c ---- */

/* Post the buffer of a packet that has been processed again, unless the connection is DOWN. May end the connection. */
void rxm_rx_repost(struct rxm_rx *rx);
/* A packet of the peer, of this load, has been processed: give the peer credit for another. May end the connection. */
void rxm_credit_give(struct rxm_conn *conn, enum rxm_load load);

/* ---- msg.c: each may end the connection ---- */

/* EAGER: a message in one packet. */
void rxm_msg_eager(struct rxm_in *in);
/* A tagged message without headers: the whole buffer is payload. */
void rxm_msg_bare(struct rxm_in *in);
/* RNDV_REQ: a message that is announced. */
void rxm_msg_rndv(struct rxm_in *in);
/* SEG: a segment of a message. */
void rxm_msg_segment(struct rxm_in *in);
/* If the peer wanted that, tell it that message msg_id has been delivered. Does nothing if conn is NULL or not UP. */
void rxm_msg_acknowledge(struct rxm_conn *conn, bool wanted, uint64_t msg_id);
/* Free the state of a message whose last segment has come, or will not come any more. */
void rxm_part_free(struct rxm_part *part);

/* ---- kept.c ---- */

/* Keep an unexpected message, with room for that many bytes of it, of which the caller writes len. NULL: no memory, and
 * the connection has ended. */
struct rxm_kept *rxm_kept_new(struct rxm_conn *conn, const struct fab_msg *msg, size_t room, size_t len);
/* The next len bytes of it have come, for which there is room. They count from now on: what a message costs is what is
 * here, not what it is said to become. */
void rxm_kept_append(struct rxm_kept *kept, const void *data, size_t len);
/* Drop the unexpected messages for a group of collectives: those of this connection, which may end it; and those of
 * connections that have ended. group is the tag's FAB_COLL_GROUP_BITS. */
void rxm_kept_drop_group(struct rxm_conn *conn, uint64_t group);
void rxm_kept_drop_group_left(struct rxm_ep *ep, uint64_t group);
/* Free an unexpected message that is not in the matcher any more: post its buffer again and give the peer its credit.
 * May end the connection. */
void rxm_kept_free(struct rxm_kept *kept);

#endif
