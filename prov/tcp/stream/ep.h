/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A tcp endpoint, MSG or RDM. They differ in their connections: a MSG endpoint has one, made by fi_connect() or
 * fi_accept() (room connect); an RDM endpoint has a listener and a peer table, which connects on demand (room peer).
 * Everything else is the same.
 *
 * Guarded by the lock of base.engine, except members that are constant after opening.
 */
#ifndef TCP_EP_H
#define TCP_EP_H

#include "base/pool.h"
#include "base/table.h"
#include "common/endpoint/endpoint.h"
#include "common/receive/receive.h"
#include "tcp/account/account.h"
#include "tcp/stream/conn.h"

struct tcp_cm;				/* handshake/cm.h: the handshake of a MSG endpoint or a peer */
struct tcp_connreq;			/* connect/connect.h */
struct tcp_peer_table;			/* peer/peers.h */
struct tcp_sep;				/* peer/contexts.h */
struct tcp_owner;			/* message/message.h */

/* Posted receives and unexpected messages of an endpoint, or of several with a shared receive context; these are on one
 * engine. */
struct tcp_rx_ctx {
	struct fab_recv recv;		/* those of collectives are always in an endpoint's own (tcp_recv_of()) */
	struct fab_table orphans;	/* struct tcp_unexp.orphan: messages whose connection has ended, by address */
	bool named;			/* the senders of messages have become known since tcp_rx_named() */
	struct fab_table announced;	/* struct tcp_unexp.entry: announced messages that no receive has taken, by
					 * connection and rts_id; zero until the first one */
	struct fab_table grouped;	/* struct tcp_unexp.group: kept messages of collectives, by connection and
					 * group; the same. In an endpoint's own, as their receives are */
	struct fab_pool unexp_pool;	/* struct tcp_unexp with room for a small payload */
	struct tcp_account account;	/* memory held for the peers of its endpoints */
	bool keyed;			/* a receive for an authorization key has been posted (message/keyed.c) */
	uint32_t export_cnt;		/* shared: exported forms, which other providers use (room lent) */
	struct tcp_owner *owner;	/* owned: the receives belong to another provider (room lent); or NULL */
	struct fab_list users;		/* shared: struct tcp_ep.shared.link of endpoints bound, oldest first */
};

/* Operations outstanding of an endpoint, or of several with a shared transmit context; these are on one engine. */
struct tcp_tx_ctx {
	struct fab_pool pool;		/* struct tcp_tx: operations and control frames */
	uint32_t cnt;			/* operations of the application outstanding */
	uint32_t size;			/* limit of cnt; above it calls return -FI_EAGAIN */
	uint32_t user_cnt;		/* shared: endpoints bound */
};

/* MSG, room connect. */
struct tcp_ep_connect {
	struct tcp_cm *cm;		/* owned while a handshake runs, or NULL */
	struct tcp_connreq *req;	/* owned: the request that fi_accept() will answer, or NULL */
	int bound_fd;			/* owned: socket inherited from a passive endpoint, or -1 */
	bool connected;			/* FI_CONNECTED has been reported */
};

/* RDM, room peer. */
struct tcp_ep_rdm {
	/* indexed by fi_addr, rotated left by rx_ctx_bits so that the receive context is at the end: the connection to
	 * use, or NULL; borrowed from the peer table */
	struct tcp_conn **by_addr;
	size_t by_addr_cnt;
	int rx_ctx_bits;		/* of the address vector */
	uint64_t group_bits;		/* the bits of an fi_addr that are the peer group (message/group.c); 0: no
					 * groups */
	struct tcp_peer_table *peers;	/* owned */
};

/* endpoint/shared.c */
struct tcp_ep_shared {
	struct tcp_ep *srx, *stx;	/* borrowed: bound, and counted as a user there; NULL: none */
	struct fab_list link;		/* in srx->own_rx.users */
};

/* A context of a scalable endpoint: peer/contexts.h. */
struct tcp_ep_context {
	struct tcp_sep *sep;		/* borrowed: its scalable endpoint, or NULL */
	uint16_t number;		/* its index there, among contexts of its direction */
	/* borrowed: of a transmit context that is or was in groups, the receive context for their messages, and the
	 * other way round; both are on one engine; or NULL (collective/coll.c) */
	struct tcp_ep *mate;
};

/* peer/alive.c */
struct tcp_ep_alive {
	struct fab_timer timer;
	bool runs;
};

/* stream/rest.c: what is freed in pieces, one in each pass */
struct tcp_ep_rest {
	/* struct tcp_tx: control frames of connections that have ended, by class of the peer; tx->conn is not valid */
	struct fab_list answers[TCP_CLASSES];
	struct fab_pool_chunk *chunks;	/* owned: of pools from which nothing was handed out any more */
	struct fab_flush flush;		/* linked while there is any of it */
};

/* Why a call does not go the short way. */
enum tcp_ep_detour {
	TCP_EP_CLOSING = 1,		/* fi_close() has begun: operations and connections are refused */
	TCP_EP_HMEM = 2,		/* the domain has FI_HMEM: buffers, as their descriptors tell, and regions may
					 * be memory of a device */
};

/* Also the object of fi_srx_context() and fi_stx_context(), which is one half of an endpoint for use by others, and
 * contexts of scalable endpoints; base.ep_fid.fid.fclass tells which. */
struct tcp_ep {
	struct fab_ep base;
	struct tcp_rx_ctx *rx;		/* own_rx, or the srx's */
	struct tcp_tx_ctx *tx;		/* own_tx, or the stx's */
	struct tcp_rx_ctx own_rx;
	struct tcp_tx_ctx own_tx;
	uint64_t incarnation;		/* of this endpoint */
	uint32_t pid;			/* of the process that has opened it */
	bool directed_recv;		/* FI_DIRECTED_RECV: receives use their source address */
	uint8_t waits[FAB_OP_COLLECTIVE];	/* by enum fab_op_code: enum tcp_tx_waits of an operation without
						 * FI_FENCE */
	bool shared_memory;		/* FI_OPT_SHARED_MEMORY_PERMITTED: new connections may use it */
	bool strange;			/* MSG: the peer is a stranger to a layer above (FAB_OPT_STRANGER) */
	uint8_t detours;		/* bits of enum tcp_ep_detour */
	uint8_t straight_cnt;		/* accesses carried out within a call, since straight_pass */
	uint32_t straight_pass;		/* a pass of the engine */
	struct tcp_conn *conn;		/* owned, MSG; exists from opening, so that receives can be posted before it is
					 * up */
	struct tcp_ep_connect connect;
	struct tcp_ep_rdm rdm;
	struct tcp_ep_shared shared;
	struct tcp_ep_context context;
	struct tcp_ep_alive alive;
	struct tcp_ep_rest rest;
	struct fab_survey survey;	/* peer/survey.c */
};

/* The endpoint of a fid of the application, which may be an alias. */
static inline struct tcp_ep *tcp_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct tcp_ep, base);
}

/* True for a transmit context of a scalable endpoint. */
static inline bool tcp_ep_is_tx_ctx(const struct tcp_ep *ep)
{
	return ep->base.ep_fid.fid.fclass == FI_CLASS_TX_CTX;
}

/* True if it takes part in collectives, or a context with the same number may. */
static inline bool tcp_ep_has_coll(const struct tcp_ep *ep)
{
	return ep->base.type != FI_EP_MSG && (ep->base.caps & FI_COLLECTIVE);
}

/* True if both ends support collectives. The stream is up. */
static inline bool tcp_conn_has_coll(const struct tcp_conn *conn)
{
	return tcp_ep_has_coll(conn->ep) && (conn->peer.features & TCP_EXT_COLL);
}

/* ---- tx.c ---- */

/* Conditions for starting an operation: bits. */
enum tcp_tx_waits {
	TCP_TX_AT_ONCE = 0,
	TCP_TX_BEHIND_SENDS = 1,	/* the data of all earlier messages was sent (FI_ORDER_RAS, FI_ORDER_WAS) */
	/* all earlier reads have completed (FI_ORDER_RAR, FI_ORDER_WAR, FI_ORDER_SAR, FI_ORDER_RMA_WAR) */
	TCP_TX_BEHIND_READS = 2,
	/* all earlier reads whose answers may be direct, and so be taken from memory later than others, have completed
	 * (FI_ORDER_RAR, FI_ORDER_RMA_RAR, between reads) */
	TCP_TX_BEHIND_DIRECT = 8,
	TCP_TX_BEHIND_ALL = 4,		/* all earlier operations have completed (FI_FENCE) */
};

/* Whether it was announced (message/rndv.c). The peer may leave an announced operation unanswered, so it does not count
 * among the `size` operations of its context; each peer may have TCP_IDMAP_MAX of them. */
enum tcp_tx_rndv {
	TCP_TX_UNASKED,
	TCP_TX_ANNOUNCED,
	TCP_TX_ASKED_BACK,		/* the peer was asked to forget it */
};

/* An outstanding operation, or a control frame. A frame is sent from hdr, then iov; inject data is stored in place of
 * iov. */
struct tcp_tx {
	struct fab_list link;		/* in one of conn->tx's lists, or none (in conn->tx.rts) */
	struct tcp_conn *conn;
	void *context;
	/* payload in one piece: inject[], behind the header, or owned (with amo, or a pack); NULL: payload in iov */
	uint8_t *flat;
	uint64_t sent;			/* bytes of this frame written to the socket */
	uint64_t size;			/* bytes of this frame */
	uint64_t len;			/* length of the message, for the completion */
	uint64_t tag, data;		/* for error entries */
	uint32_t id;			/* in conn->tx.rts; of an atomic: its part of amo_asked or amo_owed; of a pack:
					 * frames in flat */
	uint8_t code;			/* enum fab_op_code; FAB_OP_MAX for control frames */
	uint8_t hdr_len;
	uint8_t iov_cnt;		/* with TCP_TX_ON_DEVICE added, where iov has memory of a device */
	bool want_cq;			/* success writes a CQ entry */
	bool want_ack;			/* complete only when acknowledged */
	uint8_t hmem;			/* if tcp_tx_on_device(): the number of the memory in iov (common/hmem) */
	bool match;			/* complete only when a receive has taken it (FI_MATCH_COMPLETE) */
	uint8_t waits;			/* enum tcp_tx_waits */
	bool amo;			/* an atomic, or the answer to one: free with tcp_amo_free() */
	bool hooked;			/* context is a struct fab_hook */
	uint8_t rndv;			/* enum tcp_tx_rndv */
	uint32_t charged;		/* control frame: bytes, in the account */
	uint32_t number;		/* operation: counts those of the peer's record (fi_stats_peer.queued) */
	/* read response: the generation at which its regions (stored behind hdr, their number is id) were verified */
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

/* So it is neither one buffer, nor few enough for a call: such a frame goes by ways for rare cases. */
#define TCP_TX_ON_DEVICE	0x80

static inline bool tcp_tx_on_device(const struct tcp_tx *tx)
{
	return tx->iov_cnt & TCP_TX_ON_DEVICE;
}

/* True if flat is memory of its own, which is freed with the frame. */
static inline bool tcp_tx_owns_flat(const struct tcp_tx *tx)
{
	return tx->flat && (tx->flat < (const uint8_t *) tx || tx->flat >= (const uint8_t *) (tx + 1));
}

#endif
