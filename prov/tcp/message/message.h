/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages, tagged, untagged and of collectives; the receives that take them; and the messages that are kept until a
 * receive takes them.
 *
 *   msg.c       a message arrives: into the posted receive that matches, or kept (struct tcp_unexp)
 *   recv.c      receives, on the common half (common/receive/recv.h); keyed.c receives for an authorization key
 *   rndv.c      rendezvous: announced messages
 *   stall.c     messages too long to be kept; stranger.c messages of peers in no address vector; group.c peer groups
 *   kept.c      kept messages in the statistics of an endpoint
 *
 * Engine lock held, except where a comment says otherwise.
 */
#ifndef TCP_MESSAGE_H
#define TCP_MESSAGE_H

#include <rdma/providers/fi_peer.h>
#include "base/table.h"
#include "common/av/av.h"
#include "common/receive/receive.h"
#include "tcp/stream/stream.h"

struct tcp_exported;			/* lent/exported.c */
struct tcp_owned;			/* lent/owner.c */
struct tcp_unexp;

/* The header of a message. base.flags has FI_TAGGED for TCP_FLAG_LAYER_TAG. */
struct tcp_msg {
	struct fab_msg base;
	const struct tcp_conn *conn;	/* on which it came, for the source's address; NULL if the connection is down */
	uint32_t group;			/* peer group; not used for a kept message, whose match.src contains it */
};

/* ---- receives ---- */

#define TCP_RX_IOV	2		/* iov entries with room in a receive; longer vectors are from a pool */

/* A posted receive, with its share of a table of keys, may cost 256 bytes (test/budget), so this is at most 192. */
_Static_assert(sizeof(struct fab_rx) + TCP_RX_IOV * sizeof(struct iovec) <= 192, "memory of a posted receive");

/* Callbacks of the common half (struct fab_recv_ops), in msg.c and recv.c. */
bool tcp_unexp_taken(struct fab_recv *recv, struct fab_kept *kept);
void tcp_unexp_dropped(struct fab_recv *recv, struct fab_kept *kept);
struct fab_ep *tcp_recv_reporter(const struct fab_recv *recv, const struct fab_kept *kept);
void tcp_recv_unknown(struct fab_ep *ep, enum fab_op_code code, struct fab_comp *comp, const struct fab_msg *msg);

static const struct fab_recv_ops tcp_recv_ops = {
	.iov_max = TCP_IOV_LIMIT,
	.iov_own = TCP_RX_IOV,
	.take = tcp_unexp_taken,
	.drop = tcp_unexp_dropped,
	.reporter = tcp_recv_reporter,
	.unknown = tcp_recv_unknown,
};

/* The struct fab_recv with the receives and messages of a class. */
static inline struct fab_recv *tcp_recv_of(struct tcp_ep *ep, enum fab_msg_class class)
{
	return class == FAB_CLASS_COLL ? &ep->own_rx.recv : &ep->rx->recv;
}

/* Post a receive (FAB_OP_RECV, FAB_OP_TRECV). Takes and releases the lock. 0: exactly one completion will follow.
 * -FI_EAGAIN, -FI_EINVAL, -FI_EOPBADSTATE, -FI_ENOMEM: nothing was done. */
ssize_t tcp_post_recv(struct tcp_ep *ep, const struct fab_op *op);
int tcp_post_recv_locked(struct fab_ep *ep, const struct fab_op *op);	/* the same with the lock held */
/* The peer that listens at addr was inserted as fi_addr, or removed (FI_ADDR_NOTAVAIL): set the source of its messages
 * whose connections have ended. Lock held. */
void tcp_rx_name_orphans(struct tcp_ep *ep, const union fab_sockaddr *addr, fi_addr_t fi_addr);
/* After senders were named fi_addr: receives that were posted for this source before take their messages. Lock held;
 * receives complete, and connections may fail. */
void tcp_rx_named(struct tcp_ep *ep, fi_addr_t fi_addr);
/* Drop the messages kept for this endpoint, all of whose connections have ended. Lock held. */
void tcp_rx_drop_unexp(struct tcp_ep *ep);
/* Initialise the receive context of ep, which may be a shared context. 0 or -FI_ENOMEM. */
int tcp_rx_ctx_init(struct tcp_rx_ctx *ctx, struct tcp_ep *ep, const struct fi_rx_attr *attr);
void tcp_rx_ctx_fini(struct tcp_rx_ctx *ctx);	/* after every receive was flushed and every message dropped */

/* ---- kept messages ---- */

/*
 * A message that does not go directly into a posted receive: unexpected, or announced. It lives from its header until a
 * receive has taken it completely. Messages of at most TCP_UNEXP_SMALL bytes are from ctx->unexp_pool; for others buf
 * is malloc()ed.
 */
#define TCP_UNEXP_SMALL		192	/* bytes */

/* Callbacks to another provider about a message that it has brought. The message is not in the queue any more, and may
 * be freed by the call. */
struct tcp_foreign_ops {
	/* A receive has taken it (unexp->base.into is set): the provider copies it there. */
	void (*start)(struct tcp_unexp *unexp);
	void (*discard)(struct tcp_unexp *unexp);	/* it is dropped */
};

/* A message of another provider for a receive of ours; private to lent/exported.c. */
struct tcp_foreign {
	struct fi_peer_rx_entry entry;	/* lent to that provider until it is returned */
	const struct tcp_foreign_ops *ops;
	struct tcp_exported *exported;	/* borrowed: exists until all entries are returned */
	struct iovec part;		/* of a multi-receive: entry.iov points here */
};

struct tcp_unexp {
	/* TAKEN: it is not complete yet. DROPPED: freed when it is complete. ASKED: foreign */
	struct fab_kept base;
	struct tcp_ep *ep;		/* borrowed: the endpoint at which it arrived, which drops it before it
					 * closes */
	union {
		struct {
			struct fab_list link;	/* in conn->msg.unexp */
			uint64_t have;		/* stalled: bytes in buf */
		};
		struct fab_entry orphan;	/* in ctx->orphans, when conn is NULL */
	};
	/* on which it comes; NULL if the connection is down (only complete messages outlive it) */
	struct tcp_conn *conn;
	union {
		union fab_sockaddr from;	/* conn->addr, after conn has become NULL */
		struct fab_entry group;		/* of a collective, before that: in ctx->grouped */
	};
	uint64_t kept;			/* its part of conn->msg.unexp_len, and of the peer's credit; see
					 * tcp_unexp_overhead() */
	uint64_t charged;		/* bytes, in ctx->account */
	struct tcp_owned *owned;	/* it waits at the owner of the receives; or NULL */
	uint32_t rts_id;		/* announced: the sender's id */
	uint8_t class;			/* enum tcp_class, when conn is NULL */
	bool announced;			/* the sender keeps the payload until a receive asks for it */
	bool listed;			/* announced, and no receive has taken it: in ctx->announced */
	bool stalled;			/* too long to be kept: payload stays in the socket until a receive takes it */
	bool complete;			/* buf has the whole payload */
	/* another provider has it; conn is NULL, ep the shared context, link in exported->unnamed or empty */
	bool foreign;
	uint8_t *buf;			/* small[], or malloc()ed; NULL: announced, or stalled without any bytes */
	union {
		uint8_t small[TCP_UNEXP_SMALL];
		struct tcp_foreign theirs;	/* if foreign */
		struct fab_entry entry;		/* if listed */
	};
};

/* What a kept message counts in addition to its payload. With credits, the wire format says so; of a peer that knows
 * none, FI_TCP_UNEXP_MAX bounds the memory, so it is what the message takes. */
static inline uint64_t tcp_unexp_overhead(const struct tcp_conn *conn)
{
	return conn->peer.ext ? TCP_CREDIT_OVERHEAD : sizeof(struct tcp_unexp);
}

/* List the messages kept for an endpoint, for its statistics: stores as many as there is room for, and returns the
 * number of all. */
size_t tcp_unexp_list(const struct tcp_ep *ep, struct fi_cq_tagged_entry *entry, size_t room);
/* The peer of a connection was inserted into the address vector, or removed: set the source of its messages. */
void tcp_msg_name_sender(struct tcp_conn *conn, fi_addr_t fi_addr);
/* Set the source of a message, when its sender was inserted or removed. */
void tcp_unexp_set_src(struct tcp_ep *ep, struct tcp_unexp *unexp, fi_addr_t fi_addr);
/* Detach the kept messages of this peer from the connection. They are complete. */
void tcp_rx_disown(struct tcp_conn *conn);
/* Drop the kept messages of this group of a collective, the bits of its tag, that came by this connection; this may end
 * it. What else is kept costs no time. Lock held. */
void tcp_rx_drop_group(struct tcp_conn *conn, uint64_t group);
/* The same for those that came by connections that have ended. It walks over all that these have left. */
void tcp_rx_drop_group_left(struct tcp_ep *ep, uint64_t group);
/* The connection ends: receives being filled complete with an error, and incomplete unexpected messages are dropped. */
void tcp_rx_fail_all(struct tcp_conn *conn, int err, int prov_errno, const char *text);

/* fab_rx_finish() for a message that arrived at the endpoint. */
void tcp_rx_finish(struct tcp_ep *ep, const struct fab_into *into, const struct tcp_msg *msg,
		   const struct fab_cq_fail *fail);
/* With FI_SOURCE_ERR: write the error entry of a complete message from a peer in no address vector, on conn (NULL: it
 * is down). err_data is the peer's address; with FI_AV_AUTH_KEY, src is the key's identifier. */
void tcp_fail_unknown(struct tcp_ep *ep, enum fab_op_code code, struct fab_comp *comp, const struct tcp_conn *conn);
/* Make an unexpected or announced message, and queue it. NULL: the connection was ended, because there was no memory,
 * or because the peer has sent more than its credit. */
struct tcp_unexp *tcp_unexp_new(struct tcp_conn *conn, const struct tcp_msg *msg, bool announced);
/* Let a receive take a message that is queued or claimed. True if the receive is still posted (multi-receive). */
bool tcp_unexp_take(struct tcp_unexp *unexp, struct fab_rx *rx);
/* fab_kept_unlink() for the message. */
void tcp_unexp_unlink(struct tcp_unexp *unexp);
/* Drop a message that is queued or claimed. */
void tcp_unexp_drop(struct tcp_unexp *unexp);
/* The header of a kept message, with its source as known now. */
struct tcp_msg tcp_unexp_msg(const struct tcp_unexp *unexp);
/* Free a message that was taken or dropped, and return its credit to the peer. It is not in the queue any more. */
void tcp_unexp_free(struct tcp_unexp *unexp);

/* ---- receives of another provider: lent/owner.c ---- */

struct tcp_owner_ops {
	/* Ask the owner for the receive of a message. NULL: it has none, and *entry is for queue(); or the connection
	 * was ended for lack of memory. */
	struct fab_rx *(*find)(struct tcp_conn *conn, const struct tcp_msg *msg, struct fi_peer_rx_entry **entry);
	/* Queue a kept message at the owner. unexp NULL: the message was not kept, return the entry. */
	void (*queue)(struct tcp_owner *owner, struct tcp_unexp *unexp, struct fi_peer_rx_entry *entry);
	/* A queued message is about to be freed: return its entry. owned may be freed by this. */
	void (*lost)(struct tcp_owned *owned);
	/* The source of messages of a connection has changed. */
	void (*named)(struct tcp_owner *owner);
};

/* The first part of lent/owner.c's struct. */
struct tcp_owner {
	const struct tcp_owner_ops *ops;
};

/* ---- group.c: peer groups, fi_group_addr(3) ---- */

/* A source of matching: fi_addr with the group, if there are peer groups (common/receive/match.h). */
static inline fi_addr_t tcp_match_src(const struct tcp_ep *ep, fi_addr_t fi_addr, uint32_t group)
{
	return __builtin_expect(ep->rx->recv.grouped, 0) ? (fi_addr_t) group << 32 | (uint32_t) fi_addr : fi_addr;
}

/* tcp_ep_recv_src() with peer groups. */
fi_addr_t tcp_group_recv_src(const struct tcp_ep *ep, fi_addr_t fi_addr);
/* The peer group in an address of a call; FI_ADDR_UNSPEC has none. */
uint64_t tcp_group_of(const struct tcp_ep *ep, fi_addr_t fi_addr);
/* True if the domain allows the group in the address; otherwise it is logged. */
bool tcp_group_valid(const struct tcp_ep *ep, fi_addr_t fi_addr);
/* Set whether a receive context has peer groups, from the domain. Before its first use. */
void tcp_group_init(struct tcp_rx_ctx *ctx, const struct fab_domain *domain);

/* The source of matching for a receive. */
static inline fi_addr_t tcp_ep_recv_src(const struct tcp_ep *ep, fi_addr_t fi_addr)
{
	if (__builtin_expect(ep->rx->recv.grouped, 0))
		return tcp_group_recv_src(ep, fi_addr);
	if (!ep->directed_recv || fi_addr == FI_ADDR_UNSPEC)
		return FI_ADDR_UNSPEC;
	return fi_addr & (UINT64_MAX >> ep->rdm.rx_ctx_bits);
}

/* ---- finding a receive ---- */

/* The posted receive for a message from conn: the older one of `other`, which matches by source or is NULL, and of the
 * one that matches by key. For tcp_rx_find(). */
struct fab_rx *tcp_keyed_find(struct tcp_conn *conn, enum fab_msg_class class, uint64_t tag, struct fab_rx *other);

/* The posted receive that matches a message from conn, or NULL. */
static inline struct fab_rx *tcp_rx_find(struct tcp_conn *conn, enum fab_msg_class class, uint64_t tag, uint32_t group)
{
	fi_addr_t src = tcp_match_src(conn->ep, conn->fi_addr, group);
	struct fab_rx *rx = fab_recv_find(tcp_recv_of(conn->ep, class), class, tag, src);

	return __builtin_expect(conn->ep->rx->keyed, 0) && !group ? tcp_keyed_find(conn, class, tag, rx) : rx;
}

/* ---- frames (struct tcp_frame) ---- */

/* start */
void tcp_msg_start(struct tcp_conn *conn);
bool tcp_msg_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len);	/* whole */
bool tcp_tag_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len);	/* whole */
void tcp_rndv_rts(struct tcp_conn *conn);
void tcp_rndv_cts(struct tcp_conn *conn);
void tcp_rndv_data(struct tcp_conn *conn);
void tcp_rndv_xcancel(struct tcp_conn *conn);
/* refused, spoilt: messages. */
void tcp_msg_refused(struct tcp_tx *tx, int err);
void tcp_msg_spoilt(struct tcp_conn *conn, int err);
/* sent, for an announcement: wait for the go-ahead. */
void tcp_rndv_sent(struct tcp_conn *conn, struct tcp_tx *tx);
/* enter: turn a queued send into an announcement. 0; -FI_EAGAIN (too many announcements), -FI_ENOMEM: nothing was
 * done. */
int tcp_rndv_announce(struct tcp_conn *conn, struct tcp_tx *tx);
/* True if the frame of an operation is the data of an announced message, which the peer waits for. */
static inline bool tcp_rndv_is_data(const struct tcp_tx *tx)
{
	return tx->hdr.op == TCP_WIRE_XDATA || tx->hdr.op == TCP_WIRE_XDATA_WIDE;
}
/* Ask the peer to forget an announced send. It completes when the peer has answered. */
void tcp_rndv_cancel(struct tcp_conn *conn, struct tcp_tx *tx);

/* ---- struct tcp_above ---- */

/* stalled: the message rx.unexp, whose header is complete, is stalled; buf has len bytes, which are its payload and
 * perhaps later frames. If the payload is complete, the message is kept after all, and the phase becomes
 * TCP_RX_PAYLOAD. */
void tcp_stall(struct tcp_conn *conn, const uint8_t *buf, size_t len);
/* gone: read the rest from the kernel. */
void tcp_stall_gone(struct tcp_conn *conn);
/* hold: do not read until enough messages are gone, the peer is in the address vector, or the connection ends. */
void tcp_stranger_hold(struct tcp_conn *conn);
/* The peer's fi_addr has changed, or ep->strange: give the connection its class, and read again what may be read
 * now. */
void tcp_stranger_reclass(struct tcp_conn *conn);

/* The way of a call into this room. */
#include "tcp/message/post.h"

#endif
