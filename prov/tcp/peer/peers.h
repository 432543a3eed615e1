/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room, the peer table: peer.c (peers, lives, the address vector), dial.c (our own connects), budget.c
 * (the number of connections), request.c (incoming requests), ask.c (questions whether a request is the peer's). The
 * engine's lock guards everything.
 */
#ifndef TCP_PEERS_H
#define TCP_PEERS_H

#include "base/table.h"
#include "common/av/av.h"
#include "common/pace/pace.h"
#include "tcp/handshake/handshake.h"
#include "tcp/peer/peer.h"

struct tcp_peer;

/* A connection to a peer, from its making to its end. */
struct tcp_life {
	struct tcp_conn conn;
	struct fab_list link;		/* in table->lives */
	struct tcp_peer_table *table;
	struct tcp_peer *peer;		/* NULL: detached; no operation is added any more */
	/* Made by the peer, and not used for our own operations: it comes from or goes to a context of a scalable
	 * endpoint, or is a connection to ourselves. It is in peer->inbound; otherwise it is peer->life */
	bool inbound;
	bool knocked;			/* inbound: the peer has requested another connection in its place */
	uint16_t from;			/* inbound: the peer's transmit context, or TCP_CTX_NONE */
	struct fab_list in_link;
	uint32_t pid;			/* as the peer announced; 0: unknown */
	bool dormant;			/* parked, and not being restarted: the next operation restarts it */
	bool drained;			/* while closing: everything was sent */
	/* when it was first seen unused since quiet_pass, or was asked to park; budget.c */
	uint64_t quiet_ns;
	uint32_t quiet_pass;
	uint64_t leave_ns;		/* detached and leaving: close it at this time; 0: not leaving */
	struct fab_defer defer;
};

/* What a process says that was asked who it is (ask.c). */
struct tcp_who {
	uint64_t when_ns;		/* 0: nothing */
	uint64_t incarnation;
	bool connects;			/* it is connecting, or too old to know */
};

struct tcp_peer {
	struct fab_entry entry;		/* in table->peers, by addr */
	struct tcp_peer_table *table;
	union fab_sockaddr addr;	/* its listening address */
	/* with FI_AV_AUTH_KEY: the key for it, borrowed from the AV; NULL: the endpoint's key */
	struct fab_auth_key *key;
	uint16_t rx_ctx;		/* its receive context; 0 for a peer that connected to us */
	bool self;			/* it is this endpoint itself */
	struct tcp_life *life;		/* owned; or NULL */
	struct fab_list inbound;	/* struct tcp_life.in_link: owned; one for each `from` */
	struct tcp_cm *cm;		/* owned: our connect, or NULL */
	struct fab_turn turn;		/* in table->pace */
	struct fab_timer retry;
	int retry_ms;			/* delay until the next retry */
	uint64_t give_up_ns;		/* no retry after this; 0 until the first attempt */
	uint64_t knock_ns;		/* when a request arrived although we are connected; 0: none */
	uint64_t asked_ns;		/* when its address was last asked in vain (ask.c); 0: never */
	struct tcp_who said;		/* the answer, if it was of no use to the request for which it was asked */
	uint64_t holdoff_ns;		/* operations fail with holdoff_err until then */
	uint64_t untold_ns;		/* end of the hold-off after an operation has reported its reason; 0: one has */
	int holdoff_err;
};

struct tcp_peer_table {
	struct tcp_ep *ep;		/* borrowed */
	struct fab_table peers;		/* struct tcp_peer: owned */
	struct fab_list lives;
	uint32_t life_cnt;
	uint32_t stranger_cnt;		/* peers that are in no address vector */
	bool stranger_warned;
	uint64_t asked, accepted;	/* requests of peers so far, and those that became a life */
	struct tcp_listener listener;
	uint32_t connecting_cnt;	/* peers with a cm */
	struct fab_list asks;		/* struct tcp_ask.link: owned; oldest first */
	uint32_t ask_cnt;
	uint64_t asked_since_ns;	/* asked_cnt questions were begun since then, for a second */
	uint32_t asked_cnt;
	struct fab_timer leave;		/* runs while a life leaves */
	struct fab_timer reap;		/* runs while there are too many connections */
	uint64_t reap_ns;		/* delay until reap fires next; 0: not running */
	struct fab_pace pace;		/* paces our connects */
	uint32_t shortage;		/* connections to close although the budget has room */
	struct fab_av_watch watch;
	struct fab_defer defer;
};

/* ---- peer.c ---- */

/* Find the peer at addr with this key (FI_AV_AUTH_KEY, else NULL) and receive context (0 if it is not scalable). NULL:
 * none. */
struct tcp_peer *tcp_peer_find(const struct tcp_peer_table *table, const union fab_sockaddr *addr,
			       const struct fab_auth_key *key, uint16_t rx_ctx);
/* The same; makes it if there is none. NULL: no memory. */
struct tcp_peer *tcp_peer_get(struct tcp_peer_table *table, const union fab_sockaddr *addr, struct fab_auth_key *key,
			      uint16_t rx_ctx);
/* Free a peer about which nothing must be remembered. */
void tcp_peer_put(struct tcp_peer *peer);
/* Make conn the connection for operations to the peer with this fi_addr. False: no memory for the index. */
bool tcp_peer_index(struct tcp_peer *peer, fi_addr_t fi_addr, struct tcp_conn *conn);

/* Stop our own connect to the peer, which is not needed any more. */
void tcp_peer_stop(struct tcp_peer *peer);

/* Make a life for the peer, with an IDLE connection. It always ends in tcp_conn_down(). NULL: no memory. */
struct tcp_life *tcp_life_new(struct tcp_peer *peer);
/* The owner of the connection of an inbound life, in place of the one set by tcp_life_new(). */
extern const struct tcp_conn_owner tcp_inbound_owner;
/* The handshake of cm is done: start the stream. The life owns the descriptor from here on. */
void tcp_life_start(struct tcp_life *life, struct tcp_cm *cm);

/* True if the life should be ended: it is parked, its peer is in no address vector, it has no message, and there are
 * many such lives. */
bool tcp_life_is_forgettable(const struct tcp_life *life);
/* End a life that is not needed any more: send what is queued, shut down, and read until the peer closes, too. */
void tcp_life_leave(struct tcp_life *life);

/* ---- dial.c ---- */

/* Make a life from our side, or restart a dormant one. 0 or -FI_E*. */
int tcp_peer_begin(struct tcp_peer *peer);
/* Connect the peer's life, when its turn comes. 0; -FI_E*: nothing was begun, and the life may have ended. */
int tcp_peer_try(struct tcp_peer *peer);
/* Pace the connects of a table: fewer at a time while there are too many connections (budget.c). */
void tcp_pace_init(struct fab_pace *pace, struct tcp_ep *ep);
/* fab_timer.fire of peer->retry. */
void tcp_peer_retry_fire(struct fab_timer *timer);

/* The address to connect to for a peer. Borrowed from it. */
const union fab_sockaddr *tcp_peer_target(const struct tcp_peer *peer);

/* Private data in the handshake of RDM endpoints. */
struct tcp_rdm_data {
	struct tcp_rdm_cm cm;
	struct tcp_rdm_name name;
};
/* TCP_EXT_* that an RDM endpoint announces in addition to TCP_EXT_BASE. */
static inline uint16_t tcp_rdm_ext(const struct tcp_ep *ep)
{
	return TCP_EXT_PARK | (tcp_ep_has_coll(ep) ? TCP_EXT_COLL : 0) |
	       (ep->base.domain->attr.max_group_id ? TCP_EXT_GROUP : 0);
}
/* Write our private data; returns its length. Read from the peer's: its process id, 0 if unknown; whether peers cannot
 * connect to it; in the answer to a question, whether it connects to anybody. */
size_t tcp_rdm_data(const struct tcp_ep *ep, struct tcp_rdm_data *data);
uint32_t tcp_rdm_pid(const struct tcp_cm *cm);
bool tcp_rdm_firewalled(const struct tcp_cm *cm);
bool tcp_rdm_connects(const struct tcp_cm *cm);

/* ---- park.c ---- */

/* True if an RDM endpoint's connection is idle: as far as this end knows, nothing is outstanding in either direction,
 * and either end can connect again. The stream may then be ended. */
bool tcp_conn_idle(const struct tcp_conn *conn);
/* Ask the peer, which has TCP_EXT_PARK, to end the stream of an idle connection. Not again until its answer
 * (conn->park.asked). */
void tcp_park_ask(struct tcp_conn *conn);

/* ---- budget.c ---- */

/* True if there are so many lives of peers in no address vector that no new one is accepted (some are now being
 * closed); nearly so many that the rest of an idle one should be freed. */
bool tcp_strangers_full(const struct tcp_peer_table *table);
bool tcp_strangers_many(const struct tcp_peer_table *table);

/* Start closing idle connections, now and later, as long as there are too many. Called when there is a new
 * connection. */
void tcp_reap_start(struct tcp_peer_table *table);
/* Close some idle connections, after a call failed for lack of descriptors. False: there are none. */
bool tcp_reap_shortage(struct tcp_peer_table *table);
/* fab_timer.fire of table->reap. */
void tcp_reap_fire(struct fab_timer *timer);

/* ---- request.c ---- */

/* The contents of a request. */
struct tcp_request {
	union fab_sockaddr addr;	/* the peer */
	uint16_t rx_ctx, tx_ctx;	/* the contexts to be connected */
	uint16_t data_len;		/* length of the private data without the contexts */
	bool vouched;			/* the peer was asked, and nothing speaks against the request */
};

/* Decide on a request whose contents were read, and answer it. The caller frees cm. */
void tcp_request_handle(struct tcp_peer_table *table, struct tcp_cm *cm, const struct tcp_request *req);
/* True if the peer must still be asked before this request, which tcp_ask() has held, is accepted: the connection of
 * which it would take the place lives. Lock held. */
bool tcp_request_needs_voucher(const struct tcp_peer_table *table, const struct tcp_cm *cm,
			       const struct tcp_request *req);
/* The key that the sender of this request has proved, or NULL where the address vector has none. Borrowed from cm. Lock
 * held. */
struct fab_auth_key *tcp_request_key(const struct tcp_peer_table *table, const struct tcp_cm *cm);
/* The peer that the request names, or NULL. */
struct tcp_peer *tcp_request_peer(const struct tcp_peer_table *table, const struct tcp_cm *cm,
				  const struct tcp_request *req);
/* Reject it for now: its sender repeats it. */
void tcp_request_reject(const struct tcp_ep *ep, struct tcp_cm *cm);
/* True if its sender has closed meanwhile, as it does when another connection between the two has won. */
bool tcp_request_is_dead(const struct tcp_cm *cm);
/* The request function of the table's listener. */
void tcp_peer_request(struct tcp_listener *listener, struct tcp_cm *cm);
/* The same for a request that arrived at another context's listener. */
void tcp_peer_requested(struct tcp_peer_table *table, struct tcp_cm *cm);
/* Refuse a request permanently (TCP_REFUSE_*) or for now (0). */
void tcp_request_refuse(const struct tcp_ep *ep, struct tcp_cm *cm, uint8_t refusal);

/* ---- ask.c ---- */

/*
 * A request would replace a connection of this peer that lives. Ask the address that it names, hold the request until
 * the answer, and then pass it to tcp_request_handle() as vouched, or reject it. It is rejected at once if there are
 * too many questions, and accepted if the address has vouched for it a short time ago. The socket is taken out of cm if
 * the request is held.
 */
void tcp_ask(struct tcp_peer *peer, struct tcp_cm *cm, const struct tcp_request *req);
/* Answer a question. */
void tcp_ask_answer(struct tcp_peer_table *table, struct tcp_cm *cm);
/* Drop all questions, and the requests that wait for their answers. */
void tcp_ask_stop(struct tcp_peer_table *table);

#endif
