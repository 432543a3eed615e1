/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A tcp endpoint, MSG or RDM. The two differ in where a connection comes from: a MSG endpoint has one, made by
 * fi_connect or fi_accept (cm.c); an RDM endpoint has a listener and a peer table that opens them on demand
 * (peer.c). All else is the same.
 *
 * Guarded by base.progress's lock, except what open fixes.
 */
#ifndef TCP_EP_H
#define TCP_EP_H

#include "base/pool.h"
#include "common/endpoint/ep.h"
#include "common/receive/match.h"
#include "tcp/stream/conn.h"

struct tcp_cm;				/* cm.h: the handshake of a MSG endpoint or a peer */
struct tcp_peer_table;			/* peer.h */
struct tcp_sep;				/* sep.h */
struct tcp_owner;			/* owner.h; likewise */
struct tcp_owned;

/* Kinds of messages: each is matched with receives of its own kind only. Numbers are those of the wire (tcp_rts). */
enum tcp_class {
	TCP_CLASS_MSG,
	TCP_CLASS_TAGGED,
	TCP_CLASS_COLL,			/* inside of collectives */
	TCP_CLASS_MAX
};

/* Posted receives and unexpected messages of an endpoint, or of several (shared receive contexts, shared.c): those are
 * on one engine. */
struct tcp_rx_ctx {
	struct fab_match msg;		/* untagged; all tags are 0 */
	struct fab_match tagged;
	struct fab_match coll;		/* of collectives: always an endpoint's own */
	struct fab_pool coll_pool;	/* struct tcp_rx of those, one for each group at most */
	struct fab_pool pool;		/* struct tcp_rx; at most rx_attr->size */
	struct fab_pool iov_pool;	/* struct iovec[TCP_IOV_LIMIT] of those receives that have many */
	struct fab_list claimed;	/* struct tcp_unexp, by match.order: found by a peek, waiting for its claim */
	struct fab_list orphans;	/* struct tcp_unexp, by link: those whose connection has ended */
	struct fab_pool unexp_pool;	/* struct tcp_unexp with room for a small payload */
	uint64_t stranger_len;		/* bytes kept of peers in no address vector (stranger.c) */
	struct fab_list strangers;	/* struct tcp_conn.stranger: not read because of them */
	bool stranger_warned;
	size_t min_multi_recv;		/* FI_OPT_MIN_MULTI_RECV */
	bool keyed;			/* a receive for an authorization key has been posted (keyed.c) */
	bool grouped;			/* sources have a peer group (group.c) */
	uint32_t export_cnt;		/* shared: other providers take receives of it (exported.h) */
	struct tcp_owner *owner;	/* owned: another provider has the receives (owner.h); NULL: we do */
	struct fab_list users;		/* shared: struct tcp_ep.srx_link of those bound, oldest first */
};

/* Operations under way of an endpoint, or of several (shared transmit contexts): those are on one engine. */
struct tcp_tx_ctx {
	struct fab_pool pool;		/* struct tcp_tx: operations and control frames */
	uint32_t cnt;			/* operations of the application outstanding */
	uint32_t size;			/* at most this many, then -FI_EAGAIN */
	uint32_t user_cnt;		/* shared: endpoints bound */
};

/* Also what fi_srx_context and fi_stx_context open, one half of an endpoint for others to use as theirs, and
 * contexts of scalable endpoints; base.ep_fid.fid.fclass tells. */
struct tcp_ep {
	struct fab_ep base;
	struct tcp_rx_ctx *rx;		/* own_rx, or that of srx */
	struct tcp_tx_ctx *tx;		/* own_tx, or that of stx */
	struct tcp_rx_ctx own_rx;
	struct tcp_tx_ctx own_tx;
	struct tcp_ep *srx, *stx;	/* borrowed: bound, and counted as a user there; NULL: none */
	struct fab_list srx_link;	/* in srx->own_rx.users */
	struct tcp_sep *sep;		/* borrowed: what it is a context of (sep.h), or NULL */
	uint16_t ctx;			/* its number there, among those of its direction */
	/* borrowed: of a transmit context that is or was in groups, the receive context that their messages come to,
	 * and the other way round; both are on one engine. NULL: none (coll.c) */
	struct tcp_ep *coll_mate;
	uint64_t incarnation;		/* ours */
	union fab_sockaddr addr;	/* bound or listening address; what fi_getname gives */
	bool directed_recv;		/* FI_DIRECTED_RECV: source addresses of receives count */
	bool want_src;			/* FI_SOURCE */
	uint8_t waits[FAB_OP_COLLECTIVE];	/* by enum fab_op_code: enum tcp_tx_waits, without a fence */
	bool src_err;			/* FI_SOURCE_ERR: messages of unknown peers are errors, with the address */
	struct fab_timer alive;		/* alive.c */
	bool alive_runs;
	bool closing;			/* fi_close has begun: no operation, no connection is taken any more */

	/* MSG */
	struct tcp_conn *conn;		/* owned; from open on, so that receives can be posted before it is up */
	struct tcp_cm *cm;		/* owned while a handshake runs, or NULL */
	struct tcp_connreq *req;	/* owned: what fi_accept will answer, or NULL */
	int bound_fd;			/* owned: socket inherited from a passive endpoint, or -1 */
	bool connected;			/* FI_CONNECTED has been reported */

	/* RDM */
	/* index fi_addr, turned left by rx_ctx_bits, so that the receive context is at its end: the connection to
	 * use, or NULL; borrowed from the peer table */
	struct tcp_conn **by_addr;
	size_t by_addr_cnt;
	int rx_ctx_bits;		/* of the address vector */
	uint64_t group_bits;		/* of an fi_addr, those of a peer group (group.c); 0: there are none */
	struct tcp_peer_table *peers;	/* owned */
};

/* The endpoint behind what the application holds, which may be an alias. */
static inline struct tcp_ep *tcp_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct tcp_ep, base);
}

/* A transmit context of a scalable endpoint? */
static inline bool tcp_ep_is_tx_ctx(const struct tcp_ep *ep)
{
	return ep->base.ep_fid.fid.fclass == FI_CLASS_TX_CTX;
}

/* Does it take part in collectives, or may a context of the same number? */
static inline bool tcp_ep_has_coll(const struct tcp_ep *ep)
{
	return ep->base.type != FI_EP_MSG && (ep->base.caps & FI_COLLECTIVE);
}

/* ---- group.c: peer groups, fi_group_addr(3) ---- */

/* A source as matching has it: with the group, where there are any (common/receive/match.h). */
static inline fi_addr_t tcp_match_src(const struct tcp_ep *ep, fi_addr_t fi_addr, uint32_t group)
{
	return __builtin_expect(ep->rx->grouped, 0) ? (fi_addr_t) group << 32 | (uint32_t) fi_addr : fi_addr;
}

/* And back: the sender, or FI_ADDR_NOTAVAIL. */
static inline fi_addr_t tcp_plain_src(const struct tcp_ep *ep, fi_addr_t src)
{
	if (!ep->rx->grouped)
		return src;
	return (uint32_t) src == UINT32_MAX ? FI_ADDR_NOTAVAIL : (uint32_t) src;
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
	if (__builtin_expect(ep->rx->grouped, 0))
		return tcp_group_recv_src(ep, fi_addr);
	if (!ep->directed_recv || fi_addr == FI_ADDR_UNSPEC)
		return FI_ADDR_UNSPEC;
	return fi_addr & (UINT64_MAX >> ep->rx_ctx_bits);
}

/* ---- profile.c ---- */

/* What is told of endpoints: fi_profile(3). */
extern const struct fab_profiler tcp_rdm_profiler, tcp_msg_profiler;

/* ---- tx.c ---- */

/* What must be over before an operation may start: bits. */
enum tcp_tx_waits {
	TCP_TX_AT_ONCE = 0,
	TCP_TX_BEHIND_SENDS = 1,	/* data of all messages before it is on its way (FI_ORDER_RAS, FI_ORDER_WAS) */
	/* all reads before it have completed (FI_ORDER_RAR, FI_ORDER_WAR, FI_ORDER_SAR, FI_ORDER_RMA_WAR) */
	TCP_TX_BEHIND_READS = 2,
	TCP_TX_BEHIND_ALL = 4,		/* all before it have completed (FI_FENCE) */
};

/* Has it been announced (rndv.c)? Then the peer may let it wait for ever, and it takes up no place among the `size`
 * operations of its context any more; one peer may have TCP_IDMAP_MAX. */
enum tcp_tx_rndv {
	TCP_TX_UNASKED,
	TCP_TX_ANNOUNCED,
	TCP_TX_ASKED_BACK,		/* the peer has been asked to forget it */
};

/* One outstanding operation, or a control frame. A frame leaves from hdr and then iov; inject data sits where the
 * iov would. */
struct tcp_tx {
	struct fab_list link;		/* in one of conn's txq, held, ack_wait, read_wait, or none (in conn->rts) */
	struct tcp_conn *conn;
	void *context;
	/* payload in one piece: inject[], behind the header, or owned (if amo); NULL: in iov */
	uint8_t *flat;
	uint64_t sent;			/* bytes of this frame given to the socket */
	uint64_t size;			/* bytes of this frame */
	uint64_t len;			/* bytes of the message, for the completion */
	uint64_t tag, data;		/* likewise, for errors */
	uint32_t id;			/* in conn->rts; of an atomic: what it counts for in amo_asked or amo_owed */
	uint8_t code;			/* enum fab_op_code; FAB_OP_MAX for control frames */
	uint8_t hdr_len;
	uint8_t iov_cnt;
	bool want_cq;			/* success writes a CQ entry */
	bool want_ack;			/* complete only when acknowledged */
	bool match;			/* complete only when a receive has taken it (FI_MATCH_COMPLETE) */
	uint8_t waits;			/* enum tcp_tx_waits */
	bool amo;			/* an atomic, or the answer to one: tcp_amo_free() */
	bool hooked;			/* context is a struct fab_hook */
	uint8_t rndv;			/* enum tcp_tx_rndv */
	/* read response: when its regions (kept behind hdr, id of them) were verified */
	uint32_t mr_gen;
	union {
		struct tcp_hdr hdr;
		uint8_t hdr_buf[TCP_HDR_MAX];
	};
	union {
		struct iovec iov[TCP_IOV_LIMIT];
		uint8_t inject[TCP_IOV_LIMIT * sizeof(struct iovec)];
	};
};

/*
 * The one way in for sends, tagged sends, remote access and atomics (op->code below FAB_OP_RECV). Takes and drops the
 * engine lock. 0: exactly one completion will follow (or none if not asked for); -FI_EAGAIN: queue full, call again
 * after reading completions; -FI_EINVAL, -FI_EMSGSIZE, -FI_ENOTCONN, -FI_EOPBADSTATE, or why the peer cannot be
 * reached: nothing was done.
 */
ssize_t tcp_submit(struct tcp_ep *ep, const struct fab_op *op);
/* The same with the lock held, which an operation with FI_TRIGGER drops and takes again. Not from within a
 * completion. */
int tcp_submit_locked(struct fab_ep *ep, const struct fab_op *op);
/* Cancel an operation by its context: at once if none of its bytes has left; an announced message is asked back from
 * the peer, and completes as cancelled, or as sent if a receive had taken it. True if found. Lock held. */
bool tcp_tx_cancel(struct tcp_ep *ep, struct tcp_conn *conn, void *context);
bool tcp_tx_cancel_coll(struct tcp_ep *ep, struct tcp_conn *conn, void *hook);	/* the same of a collective's */

/* ---- rx.c ---- */

#define TCP_RX_IOV	2		/* entries that a receive has room for; longer ones come from ctx->iov_pool */

/* A posted receive. Its share of a table of keys included it may cost 256 bytes (test/budget), hence 192 at most. */
struct tcp_rx {
	struct fab_posted posted;
	void *context;
	uint64_t flags;			/* of the call: FI_COMPLETION, FI_MULTI_RECV */
	size_t len;			/* bytes of room in iov; shrinks as a multi-receive is used */
	uint32_t busy;			/* messages on their way into a multi-receive buffer */
	uint8_t code;			/* FAB_OP_RECV, FAB_OP_TRECV, FAB_OP_CRECV */
	uint8_t iov_cnt;
	bool unposted;			/* taken out of the queue: goes when busy is 0 */
	bool hooked;			/* context is a struct fab_hook */
	struct iovec *iov;		/* own, or owned: from ctx->iov_pool */
	struct iovec own[TCP_RX_IOV];
};
_Static_assert(sizeof(struct tcp_rx) <= 192, "memory of a posted receive");

/* The one way in for receives (FAB_OP_RECV, FAB_OP_TRECV). Takes and drops the lock. 0: exactly one completion will
 * follow; -FI_EAGAIN, -FI_EINVAL, -FI_EOPBADSTATE, -FI_ENOMEM: nothing was done. */
ssize_t tcp_post_recv(struct tcp_ep *ep, const struct fab_op *op);
int tcp_post_recv_locked(struct fab_ep *ep, const struct fab_op *op);	/* likewise */
/* Cancel the oldest posted receive with this context. True if found: its error completion (FI_ECANCELED) is written.
 * Lock held. */
bool tcp_rx_cancel(struct tcp_ep *ep, void *context);
bool tcp_rx_cancel_coll(struct tcp_ep *ep, struct fab_hook *hook);	/* the same of a collective's */
/* Complete every receive posted to the endpoint itself with err (positive); those of a shared context stay. Lock held;
 * for close and MSG shutdown. */
void tcp_rx_flush(struct tcp_ep *ep, int err);
/* Who listens at addr is known as fi_addr from now on, or as nobody (FI_ADDR_NOTAVAIL): so are the messages that came
 * from there by connections that have ended since. Lock held. */
void tcp_rx_name_orphans(struct tcp_ep *ep, const union fab_sockaddr *addr, fi_addr_t fi_addr);
/* Nobody is to have what came for this endpoint, all of whose connections have ended. Lock held. */
void tcp_rx_drop_unexp(struct tcp_ep *ep);
int tcp_rx_ctx_init(struct tcp_rx_ctx *ctx, const struct fi_rx_attr *attr);	/* 0 or -FI_ENOMEM */
void tcp_rx_ctx_fini(struct tcp_rx_ctx *ctx);	/* every receive has been flushed, every message dropped */
void tcp_tx_ctx_init(struct tcp_tx_ctx *ctx, const struct fi_tx_attr *attr);
void tcp_tx_ctx_fini(struct tcp_tx_ctx *ctx);	/* every operation has completed */

/* ---- ep.c ---- */

/* May an endpoint, RDM or MSG, be opened with this info? 0, -FI_EINVAL (logged), -FI_ENOMEM. */
int tcp_ep_check_info(const struct fab_domain *domain, const struct fi_info *info);
/* Everything but the connection of a MSG endpoint; *ep is zeroed. 0 or -FI_E*; undone by fini, and by fi_close. */
int tcp_ep_init(struct tcp_ep *ep, struct fab_domain *domain, const struct fi_info *info, const struct fab_ep_ops *ops,
		void *context);
void tcp_ep_fini(struct tcp_ep *ep);
/* fi_getname of an endpoint that is not connected. */
int tcp_rdm_getname(fid_t fid, void *addr, size_t *addrlen);
extern struct fi_ops tcp_ep_fid_ops;		/* close, bind, control; of contexts, too */
extern struct fi_ops_ep tcp_ep_ops;		/* options, cancel */

/* ---- shared.c ---- */

/* The calls of one direction only, for contexts. */
struct tcp_half_ops {
	struct fi_ops_msg msg;
	struct fi_ops_tagged tagged;
};
extern struct tcp_half_ops tcp_rx_half, tcp_tx_half;

/* Take over into info what the application asks of a context; what it leaves at 0 stays. And tell it what it got. */
void tcp_take_tx_attr(const struct fab_domain *domain, struct fi_info *info, const struct fi_tx_attr *attr);
void tcp_give_tx_attr(const struct fab_domain *domain, const struct fi_info *info, struct fi_tx_attr *attr);
/* fi_ep_bind of such a context. 0; -FI_EINVAL, -FI_EDOMAIN, -FI_EOPBADSTATE, logged. No lock held. */
int tcp_srx_bind(struct tcp_ep *ep, struct fid *fid, uint64_t flags);
int tcp_stx_bind(struct tcp_ep *ep, struct fid *fid, uint64_t flags);
/* Are the shared contexts there that the endpoint was opened for, and do they suit it? For fi_enable. 0; -FI_EINVAL,
 * -FI_EOPBADSTATE, logged. No lock held. */
int tcp_shared_check(const struct tcp_ep *ep);
/* The endpoint closes: nobody uses them for it any more. Lock held. */
void tcp_shared_put(struct tcp_ep *ep);

/* What a completion has as the source of what came from fi_addr. */
static inline fi_addr_t tcp_ep_src(const struct tcp_ep *ep, fi_addr_t fi_addr)
{
	return !ep->want_src ? FI_ADDR_NOTAVAIL : ep->base.av ? fab_av_user_id(ep->base.av, fi_addr) : fi_addr;
}

/* ---- peer.c: RDM ---- */

/* The connection for fi_addr, which may be one in a group, opened now if need be (it may still be IDLE: operations
 * queue). 0; -FI_EINVAL no such address; -FI_ECONNREFUSED, -FI_EHOSTUNREACH, -FI_ETIMEDOUT: it failed a moment ago
 * (hold-off); -FI_ENOMEM, -FI_EMFILE. Lock held. */
int tcp_peer_conn(struct tcp_ep *ep, fi_addr_t fi_addr, struct tcp_conn **conn);

/* What tcp_submit asks of an endpoint: the connection of an address, without a branch on the type beyond this. Lock
 * held. */
static inline int tcp_ep_conn(struct tcp_ep *ep, fi_addr_t fi_addr, struct tcp_conn **conn)
{
	uint64_t slot = fi_addr << ep->rx_ctx_bits | fi_addr >> (-ep->rx_ctx_bits & 63);

	if (ep->conn) {
		*conn = ep->conn;
		return 0;
	}
	if (slot < ep->by_addr_cnt && ep->by_addr[slot]) {
		*conn = ep->by_addr[slot];
		return 0;
	}
	return tcp_peer_conn(ep, fi_addr, conn);
}

#endif
