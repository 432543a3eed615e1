/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A tcp endpoint, MSG or RDM. The two differ in where a connection comes from: a MSG endpoint has one, made by
 * fi_connect or fi_accept (room connect); an RDM endpoint has a listener and a peer table that opens them on demand
 * (room peer). All else is the same.
 *
 * Guarded by base.progress's lock, except what open fixes.
 */
#ifndef TCP_EP_H
#define TCP_EP_H

#include "base/pool.h"
#include "common/endpoint/endpoint.h"
#include "common/receive/receive.h"
#include "tcp/stream/conn.h"

struct tcp_cm;				/* handshake/cm.h: the handshake of a MSG endpoint or a peer */
struct tcp_connreq;			/* connect/connect.h */
struct tcp_peer_table;			/* peer/peers.h */
struct tcp_sep;				/* peer/contexts.h */
struct tcp_owner;			/* message/message.h */

/* Posted receives and unexpected messages of an endpoint, or of several (shared receive contexts): those are
 * on one engine. */
struct tcp_rx_ctx {
	struct fab_recv recv;		/* collectives' are always in an endpoint's own (tcp_recv_of()) */
	struct fab_list orphans;	/* struct tcp_unexp, by link: those whose connection has ended */
	struct fab_pool unexp_pool;	/* struct tcp_unexp with room for a small payload */
	uint64_t stranger_len;		/* bytes kept of peers in no address vector (message/stranger.c) */
	struct fab_list strangers;	/* struct tcp_conn.stranger: not read because of them */
	bool stranger_warned;
	bool keyed;			/* a receive for an authorization key has been posted (message/keyed.c) */
	uint32_t export_cnt;		/* shared: other providers take receives of it (room lent) */
	struct tcp_owner *owner;	/* owned: another provider has the receives (room lent); NULL: we do */
	struct fab_list users;		/* shared: struct tcp_ep.shared.link of those bound, oldest first */
};

/* Operations under way of an endpoint, or of several (shared transmit contexts): those are on one engine. */
struct tcp_tx_ctx {
	struct fab_pool pool;		/* struct tcp_tx: operations and control frames */
	uint32_t cnt;			/* operations of the application outstanding */
	uint32_t size;			/* at most this many, then -FI_EAGAIN */
	uint32_t user_cnt;		/* shared: endpoints bound */
};

/* MSG, room connect. */
struct tcp_ep_connect {
	struct tcp_cm *cm;		/* owned while a handshake runs, or NULL */
	struct tcp_connreq *req;	/* owned: what fi_accept will answer, or NULL */
	int bound_fd;			/* owned: socket inherited from a passive endpoint, or -1 */
	bool connected;			/* FI_CONNECTED has been reported */
};

/* RDM, room peer. */
struct tcp_ep_rdm {
	/* index fi_addr, turned left by rx_ctx_bits, so that the receive context is at its end: the connection to
	 * use, or NULL; borrowed from the peer table */
	struct tcp_conn **by_addr;
	size_t by_addr_cnt;
	int rx_ctx_bits;		/* of the address vector */
	uint64_t group_bits;		/* of an fi_addr, those of a peer group (message/group.c); 0: there are none */
	struct tcp_peer_table *peers;	/* owned */
};

/* endpoint/shared.c */
struct tcp_ep_shared {
	struct tcp_ep *srx, *stx;	/* borrowed: bound, and counted as a user there; NULL: none */
	struct fab_list link;		/* in srx->own_rx.users */
};

/* A context of a scalable endpoint: peer/contexts.h. */
struct tcp_ep_context {
	struct tcp_sep *sep;		/* borrowed: what it is a context of, or NULL */
	uint16_t number;		/* there, among those of its direction */
	/* borrowed: of a transmit context that is or was in groups, the receive context that their messages come to,
	 * and the other way round; both are on one engine. NULL: none (collective/coll.c) */
	struct tcp_ep *mate;
};

/* peer/alive.c */
struct tcp_ep_alive {
	struct fab_timer timer;
	bool runs;
};

/* Also what fi_srx_context and fi_stx_context open, one half of an endpoint for others to use as theirs, and
 * contexts of scalable endpoints; base.ep_fid.fid.fclass tells. */
struct tcp_ep {
	struct fab_ep base;
	struct tcp_rx_ctx *rx;		/* own_rx, or that of srx */
	struct tcp_tx_ctx *tx;		/* own_tx, or that of stx */
	struct tcp_rx_ctx own_rx;
	struct tcp_tx_ctx own_tx;
	uint64_t incarnation;		/* ours */
	union fab_sockaddr addr;	/* bound or listening address; what fi_getname gives */
	bool directed_recv;		/* FI_DIRECTED_RECV: source addresses of receives count */
	uint8_t waits[FAB_OP_COLLECTIVE];	/* by enum fab_op_code: enum tcp_tx_waits, without a fence */
	bool closing;			/* fi_close has begun: no operation, no connection is taken any more */
	struct tcp_conn *conn;		/* owned, MSG; from open on, so that receives can be posted before it is up */
	struct tcp_ep_connect connect;
	struct tcp_ep_rdm rdm;
	struct tcp_ep_shared shared;
	struct tcp_ep_context context;
	struct tcp_ep_alive alive;
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

/* Have both ends collectives? The stream is up. */
static inline bool tcp_conn_has_coll(const struct tcp_conn *conn)
{
	return tcp_ep_has_coll(conn->ep) && (conn->peer.features & TCP_EXT_COLL);
}

/* ---- tx.c ---- */

/* What must be over before an operation may start: bits. */
enum tcp_tx_waits {
	TCP_TX_AT_ONCE = 0,
	TCP_TX_BEHIND_SENDS = 1,	/* data of all messages before it is on its way (FI_ORDER_RAS, FI_ORDER_WAS) */
	/* all reads before it have completed (FI_ORDER_RAR, FI_ORDER_WAR, FI_ORDER_SAR, FI_ORDER_RMA_WAR) */
	TCP_TX_BEHIND_READS = 2,
	TCP_TX_BEHIND_ALL = 4,		/* all before it have completed (FI_FENCE) */
};

/* Has it been announced (message/rndv.c)? Then the peer may let it wait for ever, and it takes up no place among the
 * `size` operations of its context any more; one peer may have TCP_IDMAP_MAX. */
enum tcp_tx_rndv {
	TCP_TX_UNASKED,
	TCP_TX_ANNOUNCED,
	TCP_TX_ASKED_BACK,		/* the peer has been asked to forget it */
};

/* One outstanding operation, or a control frame. A frame leaves from hdr and then iov; inject data sits where the
 * iov would. */
struct tcp_tx {
	struct fab_list link;		/* in one of conn->tx's lists, or none (in conn->tx.rts) */
	struct tcp_conn *conn;
	void *context;
	/* payload in one piece: inject[], behind the header, or owned (if amo); NULL: in iov */
	uint8_t *flat;
	uint64_t sent;			/* bytes of this frame given to the socket */
	uint64_t size;			/* bytes of this frame */
	uint64_t len;			/* bytes of the message, for the completion */
	uint64_t tag, data;		/* likewise, for errors */
	uint32_t id;			/* in conn->tx.rts; of an atomic: what it counts for in amo_asked or amo_owed */
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

#endif
