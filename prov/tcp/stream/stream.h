/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What conn.c, tx.c, rx.c, msg.c, stall.c, stranger.c, rma.c and rndv.c - the data half of a connection - share with
 * each other and with nobody else. Engine lock held throughout.
 */
#ifndef TCP_STREAM_H
#define TCP_STREAM_H

#include <rdma/providers/fi_peer.h>
#include "tcp/stream/conn.h"
#include "tcp/stream/ep.h"

/*
 * A message on its way in that is not simply flowing into a posted receive: unexpected, or announced. Lives from its
 * first header until a receive has taken it. Small ones come from ctx->unexp_pool with room for TCP_UNEXP_SMALL
 * bytes; buf of larger ones is malloc'd.
 */
#define TCP_UNEXP_SMALL		192	/* bytes */

enum tcp_unexp_place {
	TCP_UNEXP_QUEUED,		/* in the queue, for a receive to find */
	TCP_UNEXP_CLAIMED,		/* in ctx->claimed, for the receive with the claim's context (FI_CLAIM) */
	TCP_UNEXP_TAKEN,		/* a receive has it, but not all of it is here */
	TCP_UNEXP_DROPPED,		/* nobody will have it (FI_DISCARD); goes once all of it has come */
	TCP_UNEXP_ASKED,		/* foreign: its provider knows that there is no receive; it has not queued it */
};

/* A message that another provider has, for a receive of ours: exported.c's own. */
struct tcp_foreign {
	struct fi_peer_rx_entry entry;	/* lent to that provider until it gives it back */
	struct tcp_exported *exported;	/* borrowed: stays until all entries have come back */
	struct iovec part;		/* of a multi-receive: what entry.iov points to */
};

struct tcp_unexp {
	struct fab_unexp match;		/* linked while QUEUED; its order links it while CLAIMED */
	struct tcp_ep *ep;		/* borrowed: that it came to; drops it before it goes */
	struct fab_list link;		/* in conn->unexp, or in ctx->orphans when conn is NULL */
	/* where it comes from; NULL once that is down (only complete ones outlive it) */
	struct tcp_conn *conn;
	union fab_sockaddr from;	/* of an orphan: conn->addr */
	struct tcp_into into;		/* the receive that took it before all of it was here; rx is NULL otherwise */
	uint64_t tag, data;
	uint64_t len;			/* bytes of the message */
	uint64_t kept;			/* what it adds to conn->unexp_len, and costs of the peer's credit */
	uint64_t have;			/* stalled: bytes of it in buf */
	uint64_t stranger;		/* what it adds to ctx->stranger_len; 0: its sender is known */
	void *claim;			/* context of the claim */
	struct tcp_owned *owned;	/* it waits at the owner of the receives, or NULL */
	uint32_t rts_id;		/* announced: the sender's id */
	enum tcp_unexp_place place;
	uint8_t class;			/* enum tcp_class */
	bool layered;			/* as in struct tcp_msg */
	bool has_data;			/* FI_REMOTE_CQ_DATA */
	bool announced;			/* payload stays with the sender until a receive asks for it */
	bool stalled;			/* too long to be kept: payload stays in the socket until a receive takes it */
	bool complete;			/* all of it is in buf */
	/* another provider has it; conn is NULL, ep the shared context, link in exported->unnamed or in nothing */
	bool foreign;
	uint8_t *buf;			/* small[], or malloc'd; NULL: announced, or stalled with nothing here */
	union {
		uint8_t small[TCP_UNEXP_SMALL];
		struct tcp_foreign theirs;	/* if foreign */
	};
};

/* ---- profile.c ---- */

/* Tell programs that have asked (fab_profile_listens) of FI_EVENT_UNEXP_MSG_*. */
void tcp_profile_event(const struct tcp_unexp *unexp, uint32_t event_id);

/* ---- tx.c ---- */

/* a frame up to this many bytes is copied beside others, so that many make one iov entry */
#define TCP_TX_COPY_MAX	512

/* Copy len bytes from iov to one place. */
static inline void tcp_tx_copy(uint8_t *to, const struct iovec *iov, uint64_t len)
{
	for (; len; iov++) {
		size_t n = iov->iov_len < len ? iov->iov_len : len;

		memcpy(to, iov->iov_base, n);
		to += n;
		len -= n;
	}
}

/* A new operation takes its place behind those before it; nothing is sent yet. 0; -FI_EAGAIN, -FI_ENOMEM: it would have
 * to be announced, and cannot be. */
int tcp_tx_add(struct tcp_conn *conn, struct tcp_tx *tx);
/* A frame of the provider's own: header made, no payload; the caller adds to it and hands it to tcp_tx_queue().
 * extra_len bytes of extra follow the base header. NULL: no memory, and the connection has been ended for it. */
struct tcp_tx *tcp_tx_control(struct tcp_conn *conn, enum tcp_wire_op op, const void *extra, size_t extra_len);
/* Write header and extra over those of a control frame of which nothing has been sent. */
void tcp_tx_control_fill(struct tcp_tx *tx, enum tcp_wire_op op, const void *extra, size_t extra_len);
/* Append to the send queue and send what can be sent; while a read's frames are looked at, tcp_rx_tell() will. */
void tcp_tx_queue(struct tcp_conn *conn, struct tcp_tx *tx);
/* The stream has started, or goes on: decide for the operations that were queued meanwhile what depends on the peer,
 * and send. */
void tcp_tx_start(struct tcp_conn *conn);
/* The socket takes data again (EPOLLOUT), or the pass begins. */
void tcp_tx_flush(struct tcp_conn *conn);
void tcp_tx_unblock(struct tcp_conn *conn);
/* The socket takes data again, and the front of the queue is a control frame: send that alone. */
void tcp_tx_unblock_one(struct tcp_conn *conn);
/* The peer acknowledges the oldest cnt frames; err not 0: and refuses the one after them. False: there were not that
 * many. */
bool tcp_tx_acked(struct tcp_conn *conn, uint32_t cnt, uint32_t err);
/* Complete an operation that is on no list, and give its entry back. err is a positive FI_E* or 0. */
void tcp_tx_done(struct tcp_tx *tx, int err, int prov_errno, const char *text);
/* Give the entry of one that is on no list back, without a completion. */
void tcp_tx_free(struct tcp_tx *tx);
/* Complete everything outstanding in error. */
void tcp_tx_fail_all(struct tcp_conn *conn, int err, int prov_errno, const char *text);
/* Tell the peer what was received since. err refuses the frame that is not counted in ack_owed. (Credits go by
 * themselves, with the next flush once conn->credit_due.) */
void tcp_tx_ack(struct tcp_conn *conn, uint32_t err);

/* ---- rx.c: frames ---- */

/* One read from the socket and all frames in it. True if anything came, the end of the stream too, which may end the
 * connection. False: nothing did, there is no stream, or it is not to be read now. */
bool tcp_rx_poll(struct fab_source *src);
/* Tell the peer what its frames have come to: acknowledgements, credits, what else is queued because of them. Once a
 * read, so within one it does nothing. */
void tcp_rx_tell(struct tcp_conn *conn);
/* Acknowledgement, ours or upstream's, which has no body and stands for one frame. */
void tcp_rx_ack(struct tcp_conn *conn);
/* Payload of the current frame goes to rx.iov (aimed already, at `left` bytes), then `skip` bytes nowhere; then
 * done. */
void tcp_rx_expect(struct tcp_conn *conn, uint64_t left, uint64_t skip, void (*done)(struct tcp_conn *conn));
/* Aim the parser's iov at the first len bytes of iov. */
void tcp_rx_aim(struct tcp_rx_state *rx, const struct iovec *iov, uint32_t cnt, uint64_t len);
void tcp_rx_aim_into(struct tcp_rx_state *rx, const struct tcp_into *into);
/* Copy staged payload to where it belongs; returns how much was used. */
size_t tcp_rx_copy(struct tcp_rx_state *rx, const uint8_t *buf, size_t len);
/* Bytes of header behind the base header, after the CQ data if there is any. */
const void *tcp_rx_extra(const struct tcp_conn *conn);
/* CQ data of the current frame; 0 if there is none. */
uint64_t tcp_rx_cq_data(const struct tcp_conn *conn);
/* Its peer group; 0: none; above TCP_GROUP_MAX: one that there cannot be. */
uint32_t tcp_rx_group(const struct tcp_conn *conn);
/* The current frame has been delivered: acknowledge it, after this read, if it asked for that. */
void tcp_rx_delivered(struct tcp_conn *conn);
/* An error that a peer sent, not 0, as an application may see it: FI_EIO if it cannot be one. */
static inline int tcp_rx_errno(uint32_t err)
{
	return err < 4096 ? (int) err : FI_EIO;
}
/* The peer broke the protocol: log what, end the connection. */
void tcp_rx_broken(struct tcp_conn *conn, const char *what);

/* ---- msg.c and recv.c: messages, and the receives that take them ---- */

static inline struct fab_match *tcp_rx_queue(struct tcp_ep *ep, enum tcp_class class)
{
	if (class == TCP_CLASS_COLL)
		return &ep->own_rx.coll;
	return class == TCP_CLASS_TAGGED ? &ep->rx->tagged : &ep->rx->msg;
}

/* The sender of a message became known, or unknown. */
void tcp_unexp_set_src(struct tcp_ep *ep, struct tcp_unexp *unexp, fi_addr_t fi_addr);
/* Stop reading from a peer that has too much unread, or go on; only those without credits are ever stopped. Its end
 * is seen all the same. */
void tcp_rx_pause(struct tcp_conn *conn, bool pause);
/* A frame with a message begins. */
void tcp_msg_start(struct tcp_conn *conn);
/* The messages kept of this peer are complete, and no business of this connection any more. */
void tcp_rx_disown(struct tcp_conn *conn);
/* The connection ends: receives that were being filled get their error, unexpected messages that are not whole are
 * dropped. */
void tcp_rx_fail_all(struct tcp_conn *conn, int err, int prov_errno, const char *text);

/* What a message says of itself. */
struct tcp_msg {
	uint64_t tag, data, len;
	fi_addr_t src;
	const struct tcp_conn *conn;	/* it came by, for the source's address; NULL if that is down */
	uint32_t group;			/* of peers; not of one that was kept, whose source in matching has it */
	uint8_t class;			/* enum tcp_class */
	bool has_data;
	bool layered;			/* TCP_FLAG_LAYER_TAG: tag is only told */
};
/* Take room for a message of len bytes in a posted receive: all of it, or the next part of a multi-receive. It
 * leaves the queue when it is used up: then false, and it may be gone after tcp_rx_finish(), which follows in any
 * case. */
bool tcp_rx_claim(struct tcp_ep *ep, struct tcp_rx *rx, uint64_t len, struct tcp_into *into);
/* The message for which room was taken is in place, or will never be (fail, whose err is then reported). A message
 * longer than the room is FI_ETRUNC. Gives the receive back if nothing more can come to it. */
void tcp_rx_finish(struct tcp_ep *ep, const struct tcp_into *into, const struct tcp_msg *msg,
		   const struct fab_cq_fail *fail);
/* What came by conn (NULL: it is down) from nobody that the address vector knows is in its place, with FI_SOURCE_ERR:
 * where it came from is the error's data, and with FI_AV_AUTH_KEY the key under which it did is the source. */
void tcp_fail_unknown(struct tcp_ep *ep, enum fab_op_code code, struct fab_comp *comp, const struct tcp_conn *conn);
/* Who reports what concerns no message: a shared context has no queue of its own, so the endpoint bound first does. */
struct tcp_ep *tcp_rx_reporter(struct tcp_ep *ep);
/* The posted receive for a message from conn, or NULL. */
struct tcp_rx *tcp_rx_find(struct tcp_conn *conn, enum tcp_class class, uint64_t tag, uint32_t group);
/* A new unexpected or announced message, in the queue. NULL: the connection has been ended, for lack of memory or
 * since the peer sends more than it was told it may. */
struct tcp_unexp *tcp_unexp_new(struct tcp_conn *conn, const struct tcp_msg *msg, bool announced);
/* A receive takes a message that is in the queue or claimed. True if the receive is still posted, for more
 * (multi-receive). */
bool tcp_unexp_take(struct tcp_unexp *unexp, struct tcp_rx *rx);
/* Out of the queue, or of the claimed ones. */
void tcp_unexp_unlink(struct tcp_unexp *unexp);
/* Nobody is to have a message that is in the queue or claimed. */
void tcp_unexp_drop(struct tcp_unexp *unexp);
/* What it says of itself, with the source as known now. */
struct tcp_msg tcp_unexp_msg(const struct tcp_unexp *unexp);
/* Taken or dropped: gives its memory back, and the peer its credit. Not in the queue any more. */
void tcp_unexp_free(struct tcp_unexp *unexp);

/* The message of the current header goes into the buffer of rx.unexp, which holds the first `have` bytes of it. */
void tcp_msg_keep(struct tcp_conn *conn);
/* It goes into what a receive has taken for it, rx.into, or nowhere (into.rx is NULL); len bytes of it are in buf. */
void tcp_msg_resume(struct tcp_conn *conn, const uint8_t *buf, uint64_t len);

/* ---- stall.c: a message that is too long to be kept waits in its socket for a receive ---- */

/* rx.unexp, whose header has come, is stalled, with len bytes of its payload or of what is behind it in buf. Where all
 * of it is there it is kept after all, and the phase is TCP_RX_PAYLOAD. */
void tcp_stall(struct tcp_conn *conn, const uint8_t *buf, size_t len);
/* A receive has taken it (unexp->into is set), or nobody wants it: read on. unexp is gone. */
void tcp_stall_take(struct tcp_conn *conn, struct tcp_unexp *unexp);
/* The peer of a paused connection has closed or gone: read what the kernel still has. */
void tcp_stall_gone(struct tcp_conn *conn);

/* ---- stranger.c: what peers that are in no address vector leave ---- */

/* A new message, complete but for its payload: counted if its sender is one. Its sender is known now, or it goes:
 * counted no more. */
void tcp_stranger_count(struct tcp_unexp *unexp);
void tcp_stranger_uncount(struct tcp_unexp *unexp);
/* Is the next frame of this peer not to be read, as there is too much already? Then tcp_stranger_hold(), until
 * enough of it has gone; or tcp_stranger_release(), when it is no stranger any more, or ends. */
static inline bool tcp_stranger_waits(const struct tcp_conn *conn)
{
	return conn->fi_addr == FI_ADDR_NOTAVAIL && conn->ep->rx->stranger_len >= tcp_params.stranger_max &&
	       conn->rx.phase == TCP_RX_HDR && !conn->rx.hdr_have && conn->state == TCP_CONN_UP;
}
void tcp_stranger_hold(struct tcp_conn *conn);
void tcp_stranger_release(struct tcp_conn *conn);

/* ---- keyed.c ---- */

/* The posted receive for a message from conn: the older of `other`, which is the one by its source or NULL, and of the
 * one for its key. For tcp_rx_find(). */
struct tcp_rx *tcp_keyed_find(struct tcp_conn *conn, enum tcp_class class, uint64_t tag, struct tcp_rx *other);
/* A receive with FI_AUTH_KEY: op->addr is a key's handle. 0; -FI_EINVAL (logged), -FI_EAGAIN, -FI_ENOMEM. */
int tcp_keyed_post(struct tcp_ep *ep, const struct fab_op *op);

/* ---- exported.c: a foreign message, which is out of the queue by now ---- */

/* A receive has taken it (unexp->into is set): its provider is to put it there. unexp may be gone. */
void tcp_foreign_start(struct tcp_unexp *unexp);
/* Nobody wants it. unexp may be gone. */
void tcp_foreign_discard(struct tcp_unexp *unexp);

/* ---- recv.c, peek.c ---- */

/* Nothing more can come to a receive, which is not posted: it goes. */
void tcp_rx_free(struct tcp_rx_ctx *ctx, struct tcp_rx *rx);
/* Post a new receive. 0; -FI_ENOMEM: it is gone. */
int tcp_rx_enqueue(struct tcp_ep *ep, struct fab_match *queue, struct tcp_rx *rx);

/* A receive with the arguments of a call, not posted. 0, -FI_EAGAIN, -FI_ENOMEM, -FI_EINVAL. */
int tcp_rx_new(struct tcp_ep *ep, const struct fab_op *op, struct tcp_rx **rx);
/* fi_trecvmsg with FI_PEEK, FI_CLAIM, FI_DISCARD in the combinations of fi_tagged(3). 0: one completion will follow,
 * or has; -FI_EINVAL ... */
int tcp_peek(struct tcp_ep *ep, const struct fab_op *op);

/* ---- rma.c: headers are complete and checked for shape ---- */

void tcp_rma_write(struct tcp_conn *conn);
/* Verify the write of the current header, which has the right shape, and aim at all of its targets; also in its middle,
 * after regions were closed. 0, or the FI_E* for which it is refused. */
int tcp_rma_write_aim(struct tcp_conn *conn);
void tcp_rma_read_req(struct tcp_conn *conn);
void tcp_rma_read_rsp(struct tcp_conn *conn);
/* Complete an access that is on no list, and that its target has refused. */
void tcp_rma_refused(struct tcp_tx *tx, int err);
void tcp_rma_read_err(struct tcp_conn *conn);
/* May a read response that has waited still be sent? False if a region of it was closed meanwhile. */
bool tcp_rma_rsp_valid(struct tcp_conn *conn, struct tcp_tx *tx);
/* It may not: turn it into a refusal, where it stands in the queue. False: too late, or the peer knows no refusals. */
bool tcp_rma_rsp_refuse(struct tcp_conn *conn, struct tcp_tx *tx);
/* A read response has left: count it. */
void tcp_rma_served(struct tcp_conn *conn, const struct tcp_tx *tx);

/* ---- coll.c ---- */

/* Have both ends collectives? The stream is up. */
bool tcp_coll_speaks(const struct tcp_conn *conn);
/* A frame of a collective begins. */
void tcp_coll_start(struct tcp_conn *conn);
/* A message of a collective has come for which there is no receive. True: its group has failed, which the sender has
 * been told (the connection may have ended of it); drop it. */
bool tcp_coll_refuses(struct tcp_conn *conn, uint64_t tag);
/* The stream has started, and the peer has no collectives: what waits for it ends. */
void tcp_coll_purge(struct tcp_conn *conn);
/* The connection has ended; err is a positive FI_E* or 0. */
void tcp_coll_lost(struct tcp_conn *conn, int err);

/* ---- park.c ---- */

/* Offer the peer, which has TCP_EXT_PARK, to end the stream of an idle connection. Not again before the answer has
 * come (conn->park_asked). */
void tcp_park_ask(struct tcp_conn *conn);
/* Frames: the peer asks, answers, goes on. */
void tcp_park_asked(struct tcp_conn *conn);
void tcp_park_answered(struct tcp_conn *conn);
void tcp_park_stay(struct tcp_conn *conn);
/* Something comes though we are PARKING: the stream goes on, and what has waited leaves. */
void tcp_park_wake(struct tcp_conn *conn);

/* For atomics, which are checked and counted as writes are. Verify cnt regions for access: which they are into mr,
 * their pieces into iov (TCP_IOV_LIMIT slots). 0 or -FI_E*, logged. */
int tcp_rma_verify(struct tcp_conn *conn, const struct tcp_rma_iov *rma, uint32_t cnt, uint64_t access,
		   struct fab_mr **mr, struct iovec *iov, uint32_t *iov_cnt);
/* The targets that the current header names, and their bytes; false if one is longer than any message. */
bool tcp_rma_targets(struct tcp_conn *conn, struct tcp_rma_iov *rma, uint64_t *len);
/* The write of the current header is in place: it counts once for each region of rx.mr, with the bytes that went
 * there. */
void tcp_rma_count(struct tcp_conn *conn);
/* May the current frame, a write or atomic on rx.mr (tagged: on receives), have the TCP_FLAG_COMMIT that it has, if it
 * does? A peer that means no more than delivery by it always may. 0 or -FI_EOPNOTSUPP, logged: refuse it. */
int tcp_rma_may_commit(struct tcp_conn *conn, bool tagged);
/* What the current frame has written is in memory: with TCP_FLAG_COMMIT, let it be durable before anybody is told.
 * Waits for the device. 0 or -FI_E*, logged: refuse it. */
int tcp_rma_commit(struct tcp_conn *conn);
/* It is refused, with an FI_E*; where the peer does not take that, the connection ends. */
void tcp_rma_refuse(struct tcp_conn *conn, uint32_t err);
/* The payload of the current frame goes to the buffers of tx, the front of read_wait, which then completes. */
void tcp_rma_take(struct tcp_conn *conn, struct tcp_tx *tx);

/* ---- atomic.c ---- */

/* Initiator: the operands of a fetching atomic, which op names, go to where tx keeps them. 0 or -FI_ENOMEM. */
int tcp_amo_operands(struct tcp_tx *tx, const struct fab_op *op);
/* It takes its place in the queue: 0, -FI_EOPNOTSUPP. */
int tcp_amo_prepare(struct tcp_conn *conn, struct tcp_tx *tx);
/* Would its result be more than may be requested at a time? */
bool tcp_amo_must_wait(const struct tcp_conn *conn, const struct tcp_tx *tx);
/* tx->amo is set, and tx goes: give back what it has. */
void tcp_amo_free(struct tcp_tx *tx);
/* Frames. */
void tcp_amo_req(struct tcp_conn *conn);
void tcp_amo_rsp(struct tcp_conn *conn);
/* The connection ends: operands that were on their way go. */
void tcp_amo_fail_all(struct tcp_conn *conn);

/* ---- rndv.c ---- */

void tcp_rndv_rts(struct tcp_conn *conn);
void tcp_rndv_cts(struct tcp_conn *conn);
void tcp_rndv_data(struct tcp_conn *conn);
void tcp_rndv_xcancel(struct tcp_conn *conn);
/* Turn a queued send into an announcement of it. 0; -FI_EAGAIN (too many), -FI_ENOMEM: it stays as it was. */
int tcp_rndv_announce(struct tcp_conn *conn, struct tcp_tx *tx);
/* A receive has taken an announced message (unexp->into is set): ask for the data. */
void tcp_rndv_take(struct tcp_conn *conn, struct tcp_unexp *unexp);
/* Nobody wants an announced message: let its sender complete. */
void tcp_rndv_discard(struct tcp_conn *conn, const struct tcp_unexp *unexp);
/* Ask for an announced send back; it completes when the peer has answered. */
void tcp_rndv_cancel(struct tcp_conn *conn, struct tcp_tx *tx);

#endif
