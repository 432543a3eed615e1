/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages: tagged, untagged and of collectives; the receives that take them; what is kept of them until one does.
 *
 *   msg.c       into the posted receive that fits, or kept (struct tcp_unexp)
 *   recv.c      receives, on the common half (common/receive/recv.h); keyed.c those for an authorization key
 *   rndv.c      messages that ask first
 *   stall.c     messages too long to be kept, stranger.c peers that nobody knows, group.c peer groups
 *   kept.c      what programs are told of what is kept
 *
 * Engine lock held, but where it says otherwise.
 */
#ifndef TCP_MESSAGE_H
#define TCP_MESSAGE_H

#include <rdma/providers/fi_peer.h>
#include "common/av/av.h"
#include "common/receive/receive.h"
#include "tcp/stream/stream.h"

struct tcp_exported;			/* lent/exported.c */
struct tcp_owned;			/* lent/owner.c */
struct tcp_unexp;

/* What a message says of itself; base.flags has FI_TAGGED for TCP_FLAG_LAYER_TAG. */
struct tcp_msg {
	struct fab_msg base;
	const struct tcp_conn *conn;	/* it came by, for the source's address; NULL if that is down */
	uint32_t group;			/* of peers; not of one that was kept, whose source in matching has it */
};

/* ---- receives ---- */

#define TCP_RX_IOV	2		/* entries that a receive has room for; longer ones come from a pool */

/* Its share of a table of keys included a posted receive may cost 256 bytes (test/budget), hence 192 at most. */
_Static_assert(sizeof(struct fab_rx) + TCP_RX_IOV * sizeof(struct iovec) <= 192, "memory of a posted receive");

/* What the common half calls (struct fab_recv_ops): msg.c, recv.c. */
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

/* What the receives and messages of a class are in. */
static inline struct fab_recv *tcp_recv_of(struct tcp_ep *ep, enum fab_msg_class class)
{
	return class == FAB_CLASS_COLL ? &ep->own_rx.recv : &ep->rx->recv;
}

/* The one way in for receives (FAB_OP_RECV, FAB_OP_TRECV). Takes and drops the lock. 0: exactly one completion will
 * follow; -FI_EAGAIN, -FI_EINVAL, -FI_EOPBADSTATE, -FI_ENOMEM: nothing was done. */
ssize_t tcp_post_recv(struct tcp_ep *ep, const struct fab_op *op);
int tcp_post_recv_locked(struct fab_ep *ep, const struct fab_op *op);	/* likewise */
/* Who listens at addr is known as fi_addr from now on, or as nobody (FI_ADDR_NOTAVAIL): so are the messages that came
 * from there by connections that have ended since. Lock held. */
void tcp_rx_name_orphans(struct tcp_ep *ep, const union fab_sockaddr *addr, fi_addr_t fi_addr);
/* Nobody is to have what came for this endpoint, all of whose connections have ended. Lock held. */
void tcp_rx_drop_unexp(struct tcp_ep *ep);
/* The context of ep, which may be a shared one. 0 or -FI_ENOMEM. */
int tcp_rx_ctx_init(struct tcp_rx_ctx *ctx, struct tcp_ep *ep, const struct fi_rx_attr *attr);
void tcp_rx_ctx_fini(struct tcp_rx_ctx *ctx);	/* every receive has been flushed, every message dropped */

/* ---- messages that are kept ---- */

/*
 * A message on its way in that is not simply flowing into a posted receive: unexpected, or announced. Lives from its
 * first header until a receive has taken it. Small ones come from ctx->unexp_pool with room for TCP_UNEXP_SMALL
 * bytes; buf of larger ones is malloc'd.
 */
#define TCP_UNEXP_SMALL		192	/* bytes */

/* What is asked of who has brought a message for another provider. It is out of the queue by then, and may be gone
 * afterwards. */
struct tcp_foreign_ops {
	/* A receive has taken it (unexp->base.into is set): its provider is to put it there. */
	void (*start)(struct tcp_unexp *unexp);
	void (*discard)(struct tcp_unexp *unexp);	/* nobody wants it */
};

/* A message that another provider has, for a receive of ours: lent/exported.c's own. */
struct tcp_foreign {
	struct fi_peer_rx_entry entry;	/* lent to that provider until it gives it back */
	const struct tcp_foreign_ops *ops;
	struct tcp_exported *exported;	/* borrowed: stays until all entries have come back */
	struct iovec part;		/* of a multi-receive: what entry.iov points to */
};

struct tcp_unexp {
	/* TAKEN: not all of it is here. DROPPED: goes once all of it has come. ASKED: foreign */
	struct fab_kept base;
	struct tcp_ep *ep;		/* borrowed: that it came to; drops it before it goes */
	struct fab_list link;		/* in conn->msg.unexp, or in ctx->orphans when conn is NULL */
	/* where it comes from; NULL once that is down (only complete ones outlive it) */
	struct tcp_conn *conn;
	union fab_sockaddr from;	/* of an orphan: conn->addr */
	uint64_t kept;			/* what it adds to conn->msg.unexp_len, and costs of the peer's credit */
	uint64_t have;			/* stalled: bytes of it in buf */
	uint64_t stranger;		/* what it adds to ctx->stranger_len; 0: its sender is known */
	struct tcp_owned *owned;	/* it waits at the owner of the receives, or NULL */
	uint32_t rts_id;		/* announced: the sender's id */
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

/* The messages that are kept for an endpoint, for programs that look: fills as many of them as there is room for, and
 * returns how many there are. */
size_t tcp_unexp_list(const struct tcp_ep *ep, struct fi_cq_tagged_entry *entry, size_t room);
/* The peer of a connection has become known to the address vector, or unknown: so has the sender of its messages. */
void tcp_msg_name_sender(struct tcp_conn *conn, fi_addr_t fi_addr);
/* The sender of a message became known, or unknown. */
void tcp_unexp_set_src(struct tcp_ep *ep, struct tcp_unexp *unexp, fi_addr_t fi_addr);
/* The messages kept of this peer are complete, and no business of this connection any more. */
void tcp_rx_disown(struct tcp_conn *conn);
/* The connection ends: receives that were being filled get their error, unexpected messages that are not whole are
 * dropped. */
void tcp_rx_fail_all(struct tcp_conn *conn, int err, int prov_errno, const char *text);

/* fab_rx_finish() of a message that came to the endpoint. */
void tcp_rx_finish(struct tcp_ep *ep, const struct fab_into *into, const struct tcp_msg *msg,
		   const struct fab_cq_fail *fail);
/* What came by conn (NULL: it is down) from nobody that the address vector knows is in its place, with FI_SOURCE_ERR:
 * where it came from is the error's data, and with FI_AV_AUTH_KEY the key under which it did is the source. */
void tcp_fail_unknown(struct tcp_ep *ep, enum fab_op_code code, struct fab_comp *comp, const struct tcp_conn *conn);
/* The posted receive for a message from conn, or NULL. */
struct fab_rx *tcp_rx_find(struct tcp_conn *conn, enum fab_msg_class class, uint64_t tag, uint32_t group);
/* A new unexpected or announced message, in the queue. NULL: the connection has been ended, for lack of memory or
 * since the peer sends more than it was told it may. */
struct tcp_unexp *tcp_unexp_new(struct tcp_conn *conn, const struct tcp_msg *msg, bool announced);
/* A receive takes a message that is in the queue or claimed. True if the receive is still posted, for more
 * (multi-receive). */
bool tcp_unexp_take(struct tcp_unexp *unexp, struct fab_rx *rx);
/* fab_kept_unlink() of it. */
void tcp_unexp_unlink(struct tcp_unexp *unexp);
/* Nobody is to have a message that is in the queue or claimed. */
void tcp_unexp_drop(struct tcp_unexp *unexp);
/* What it says of itself, with the source as known now. */
struct tcp_msg tcp_unexp_msg(const struct tcp_unexp *unexp);
/* Taken or dropped: gives its memory back, and the peer its credit. Not in the queue any more. */
void tcp_unexp_free(struct tcp_unexp *unexp);

/* ---- receives that another provider has: lent/owner.c ---- */

struct tcp_owner_ops {
	/* The owner's receive for a message. NULL: it has none, and *entry waits for queue(); or the connection has
	 * been ended for lack of memory. */
	struct fab_rx *(*find)(struct tcp_conn *conn, const struct tcp_msg *msg, struct fi_peer_rx_entry **entry);
	/* The message is kept: let it wait. unexp NULL: it is not, give the entry back. */
	void (*queue)(struct tcp_owner *owner, struct tcp_unexp *unexp, struct fi_peer_rx_entry *entry);
	/* A message that was queued is about to go: its entry goes back, and owned may be gone. */
	void (*lost)(struct tcp_owned *owned);
	/* Messages of a connection have got another source. */
	void (*named)(struct tcp_owner *owner);
};

/* The beginning of what lent/owner.c has. */
struct tcp_owner {
	const struct tcp_owner_ops *ops;
};

/* ---- group.c: peer groups, fi_group_addr(3) ---- */

/* A source as matching has it: with the group, where there are any (common/receive/match.h). */
static inline fi_addr_t tcp_match_src(const struct tcp_ep *ep, fi_addr_t fi_addr, uint32_t group)
{
	return __builtin_expect(ep->rx->recv.grouped, 0) ? (fi_addr_t) group << 32 | (uint32_t) fi_addr : fi_addr;
}

/* The same as tcp_ep_recv_src(), where there are groups. */
fi_addr_t tcp_group_recv_src(const struct tcp_ep *ep, fi_addr_t fi_addr);
/* The group in an address of a call; FI_ADDR_UNSPEC is in none. */
uint64_t tcp_group_of(const struct tcp_ep *ep, fi_addr_t fi_addr);
/* Is it one that the domain has? If not, it is logged. */
bool tcp_group_valid(const struct tcp_ep *ep, fi_addr_t fi_addr);
/* What the domain that it is opened from has of groups is what a receive context has; before its first use. */
void tcp_group_init(struct tcp_rx_ctx *ctx, const struct fab_domain *domain);

/* The source that a receive is to match. */
static inline fi_addr_t tcp_ep_recv_src(const struct tcp_ep *ep, fi_addr_t fi_addr)
{
	if (__builtin_expect(ep->rx->recv.grouped, 0))
		return tcp_group_recv_src(ep, fi_addr);
	if (!ep->directed_recv || fi_addr == FI_ADDR_UNSPEC)
		return FI_ADDR_UNSPEC;
	return fi_addr & (UINT64_MAX >> ep->rdm.rx_ctx_bits);
}

/* ---- frames (struct tcp_frame) ---- */

/* start */
void tcp_msg_start(struct tcp_conn *conn);
void tcp_rndv_rts(struct tcp_conn *conn);
void tcp_rndv_cts(struct tcp_conn *conn);
void tcp_rndv_data(struct tcp_conn *conn);
void tcp_rndv_xcancel(struct tcp_conn *conn);
/* sent, of an announcement: it waits for the go-ahead. */
void tcp_rndv_sent(struct tcp_conn *conn, struct tcp_tx *tx);
/* enter: turn a queued send into an announcement of it. 0; -FI_EAGAIN (too many), -FI_ENOMEM: it stays as it was. */
int tcp_rndv_announce(struct tcp_conn *conn, struct tcp_tx *tx);
/* Ask for an announced send back; it completes when the peer has answered. */
void tcp_rndv_cancel(struct tcp_conn *conn, struct tcp_tx *tx);

/* ---- struct tcp_above ---- */

/* stalled: rx.unexp, whose header has come, is stalled, with len bytes of its payload or of what is behind it in buf.
 * Where all of it is there it is kept after all, and the phase is TCP_RX_PAYLOAD. */
void tcp_stall(struct tcp_conn *conn, const uint8_t *buf, size_t len);
/* gone: read what the kernel still has. */
void tcp_stall_gone(struct tcp_conn *conn);
/* hold: until enough has gone, or it is no stranger any more, or ends. */
void tcp_stranger_hold(struct tcp_conn *conn);

#endif
