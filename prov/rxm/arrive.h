/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that arrive, and their processing. Lock held. Conventions: rxm.h.
 */
#ifndef RXM_ARRIVE_H
#define RXM_ARRIVE_H

#include "rxm/objects.h"

/* ---- rx.c: lock held ---- */

/* A receive below has completed with a packet of len bytes. The packet is processed as soon as all earlier ones have
 * been: a provider fills receives in the order of the messages, but may complete them in another order (tcp does, for
 * messages that it announces for lack of credit). May end the connection. */
void rxm_rx_packet(struct rxm_rx *rx, size_t len);
/* The same for a tagged message without a packet. Upstream over tcp sends small messages so, with tag and data in tcp's
 * own header. */
void rxm_rx_bare(struct rxm_rx *rx, const struct fi_cq_tagged_entry *entry);
/* Process the packets that have arrived, in order, up to the first that is missing. Nothing is processed before the
 * handshake is complete, which may be read later than packets. May end the connection. */
void rxm_rx_resume(struct rxm_conn *conn);
/* The connection is about to end before the handshake was complete: process the packets that have arrived, since the
 * peer may have sent all it had to send, and closed. May end the connection. */
void rxm_rx_last_words(struct rxm_conn *conn);
/* Allocate the packet buffers of a new connection and post them below. 0, or -FI_E*. After an error the caller closes
 * the endpoint below, which takes back the buffers that were posted; their memory is freed with the connection. */
int rxm_rx_post_all(struct rxm_conn *conn);
/* The connection has ended: end the receives that it was filling with err and text. Unexpected messages that are
 * complete stay (ep->orphans); others are dropped. */
void rxm_rx_fail_all(struct rxm_conn *conn, int err, const char *text);
/* The address vector now has addr as fi_addr (FI_ADDR_NOTAVAIL: no longer): set this as the source of unexpected
 * messages from there, and let receives take them that were posted for it before. peer is the peer of addr, or NULL. */
void rxm_rx_name(struct rxm_ep *ep, struct rxm_peer *peer, const union fab_sockaddr *addr, fi_addr_t fi_addr);
/* The completion queue below has an entry for a remote write of len bytes with data, by a peer without our additions.
 * ctx is the context of that entry, or NULL. */
void rxm_rx_remote_write(struct rxm_poller *poller, struct rxm_ctx *ctx, uint64_t data, size_t len);
/* Complete a remote write of len bytes with data, at its target. */
void rxm_rx_written(struct rxm_ep *ep, struct fi_stats_peer *stats, uint64_t data, size_t len);
/* The slots of struct fab_recv_ops for unexpected messages, called by common/receive: kept.c. */
bool rxm_kept_take(struct fab_recv *recv, struct fab_kept *kept);
void rxm_kept_drop(struct fab_recv *recv, struct fab_kept *kept);
static const struct fab_recv_ops rxm_recv_ops = {
	.iov_max = RXM_IOV_LIMIT,
	.iov_own = RXM_IOV_LIMIT,
	.keeps_desc = true,
	.take = rxm_kept_take,
	.drop = rxm_kept_drop,
};
/* fab_rx_finish() of a message that came to the endpoint. */
void rxm_rx_finish(struct rxm_ep *ep, struct fi_stats_peer *stats, const struct fab_into *into,
		   const struct fab_msg *msg,
		   const struct fab_cq_fail *fail);
/* Post again the packet buffers that were held back because too many answers were queued, as far as enough answers have
 * left. May end the connection. */
void rxm_rx_release_held(struct rxm_conn *conn);
/* The same, fast where none are held back. */
static inline void rxm_rx_release(struct rxm_conn *conn)
{
	if (!fab_list_empty(&conn->held))
		rxm_rx_release_held(conn);
}
/* The status in a peer's packet as a positive FI_E*, or 0; a value out of range becomes FI_EIO. */
int rxm_wire_err(uint64_t status);

/* ---- rndv.c: lock held; each may end the connection. len is the number of bytes behind the headers of pkt, and not
 * checked yet (so in atomic.c) ---- */

/* A receive has matched an announced message, whose rndv has been checked: fetch the message, answer the peer's
 * request msg_id, and finish the receive, now or later. rndv, into and msg are copied. */
void rxm_rndv_take(struct rxm_conn *conn, const struct rxm_rndv *rndv, uint64_t msg_id, const struct fab_into *into,
		   const struct fab_msg *msg);
/* True for an entry that fetches an announced message, whose msg and msg_id it has. */
bool rxm_rndv_fetches(const struct rxm_tx *tx);
/* Answer the peer's request msg_id, without payload, with err (0: success). The connection is UP. An error ends the
 * connection if the peer is without our additions: its packets have no field for an error. */
void rxm_answer(struct rxm_conn *conn, enum rxm_type type, uint64_t msg_id, int err);
/* Make a new entry the announcement of op. 0; or -FI_ENOMEM, or the error of a registration below: the caller frees the
 * entry. */
int rxm_rndv_make(struct rxm_ep *ep, const struct fab_op *op, struct rxm_tx *tx);
/* Turn an eager message that has not left into an announcement. Returns as rxm_rndv_make(). */
int rxm_rndv_convert(struct rxm_ep *ep, struct rxm_tx *tx);
/* RNDV_WR: the peer says where to write a message that we announced. */
void rxm_rndv_wr(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len);

/* ---- atomic.c: lock held ---- */

/* ATOMIC: carry out a peer's atomic, and answer it. May end the connection. */
void rxm_atomic_req(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len);
/* ATOMIC_RSP: the answer to one of our atomics. May end the connection. */
void rxm_atomic_rsp(struct rxm_conn *conn, const struct rxm_pkt *pkt, size_t len);

#endif
