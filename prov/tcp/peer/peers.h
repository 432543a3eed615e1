/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inside of the peer table, for its files: peer.c (peers, lives, the address vector), dial.c (our own connects),
 * budget.c (how many at a time), request.c (those who connect to us). All of it is guarded by the engine's lock.
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
	struct tcp_peer *peer;		/* NULL: detached, no operation is added any more */
	/* It came from the peer and is used for nothing of ours: from a context of a scalable endpoint, to one, or from
	 * ourselves. In peer->inbound; peer->life otherwise */
	bool inbound;
	bool knocked;			/* inbound: the peer has asked for another in its place */
	uint16_t from;			/* inbound: the transmit context, or TCP_CTX_NONE */
	struct fab_list in_link;
	uint32_t pid;			/* as it said; 0 unknown */
	bool dormant;			/* parked, and nobody tries to bring it back: the next operation does */
	bool drained;			/* while closing: nothing left to send */
	/* when it was first seen not to have been used since quiet_pass, or was asked to park; budget.c */
	uint64_t quiet_ns;
	uint32_t quiet_pass;
	uint64_t leave_ns;		/* detached and leaving: closed at this time; 0 not leaving */
	struct fab_defer defer;
};

struct tcp_peer {
	struct fab_entry entry;		/* in table->peers, by addr */
	struct tcp_peer_table *table;
	union fab_sockaddr addr;	/* that it listens at */
	/* FI_AV_AUTH_KEY: it is reached under; borrowed from the AV. NULL: the endpoint's */
	struct fab_auth_key *key;
	uint16_t rx_ctx;		/* which receive context of it this is about; who connects to us is about 0 */
	bool self;			/* it is ourselves */
	struct tcp_life *life;		/* owned; NULL if there is none */
	struct fab_list inbound;	/* struct tcp_life.in_link: owned; one for each `from` */
	struct tcp_cm *cm;		/* owned: our connect, or NULL */
	struct fab_turn turn;		/* in table->pace */
	struct fab_timer retry;
	int retry_ms;			/* the next wait */
	uint64_t give_up_ns;		/* no retry after this; 0 until the first attempt */
	uint64_t knock_ns;		/* when a request came though we are connected; 0: none did */
	uint64_t holdoff_ns;		/* operations fail with holdoff_err until then */
	int holdoff_err;
};

struct tcp_peer_table {
	struct tcp_ep *ep;		/* borrowed */
	struct fab_table peers;		/* struct tcp_peer: owned */
	struct fab_list lives;
	uint32_t life_cnt;
	uint32_t stranger_cnt;		/* of them, those whose peer is in no address vector */
	bool stranger_warned;
	uint64_t asked, accepted;	/* requests of peers so far, and those of them that became a life */
	struct tcp_listener listener;
	struct fab_timer leave;		/* runs while a life leaves */
	struct fab_timer reap;		/* runs while there are too many connections */
	uint64_t reap_ns;		/* the next wait; 0: it does not run */
	struct fab_pace pace;		/* whose turn it is to connect */
	uint32_t shortage;		/* connections to close although the budget has room */
	struct fab_av_watch watch;
	struct fab_defer defer;
};

/* ---- peer.c ---- */

/* The peer at addr under key (FI_AV_AUTH_KEY, else NULL), by its receive context (0 where it is not scalable), or
 * NULL. */
struct tcp_peer *tcp_peer_find(const struct tcp_peer_table *table, const union fab_sockaddr *addr,
			       const struct fab_auth_key *key, uint16_t rx_ctx);
/* The same, made if it is new. NULL: no memory. */
struct tcp_peer *tcp_peer_get(struct tcp_peer_table *table, const union fab_sockaddr *addr, struct fab_auth_key *key,
			      uint16_t rx_ctx);
/* Forget a peer of which there is nothing to know. */
void tcp_peer_put(struct tcp_peer *peer);
/* Make conn the one to use for the peer, whose fi_addr is this. False: no memory for the index. */
bool tcp_peer_index(struct tcp_peer *peer, fi_addr_t fi_addr, struct tcp_conn *conn);

/* It needs no connect of its own any more: end that. */
void tcp_peer_stop(struct tcp_peer *peer);

/* A life for the peer, with its connection IDLE; it ends, whatever happens, in tcp_conn_down() of that. NULL: no
 * memory. */
struct tcp_life *tcp_life_new(struct tcp_peer *peer);
/* In place of the owner that tcp_life_new() gives: of an inbound life. */
extern const struct tcp_conn_owner tcp_inbound_owner;
/* The handshake of cm is over: the stream may begin. Its descriptor is the life's from here on. */
void tcp_life_start(struct tcp_life *life, struct tcp_cm *cm);

/* Is it parked, a stranger's, without a message, and are there many such? Then it had better go. */
bool tcp_life_is_forgettable(const struct tcp_life *life);
/* Nobody needs it any more: send what it has, say so, read until the peer closes too. */
void tcp_life_leave(struct tcp_life *life);

/* ---- dial.c ---- */

/* Begin a life from our side, or bring back a dormant one. 0 or -FI_E*. */
int tcp_peer_begin(struct tcp_peer *peer);
/* Connect the life that the peer has, when its turn comes. 0, or -FI_E*: nothing was begun. */
int tcp_peer_try(struct tcp_peer *peer);
/* Pace the connects of a table: fewer at a time while there are more connections than there should be (budget.c). */
void tcp_pace_init(struct fab_pace *pace, struct tcp_ep *ep);
/* What peer->retry fires. */
void tcp_peer_retry_fire(struct fab_timer *timer);

/* The private data of a handshake between RDM endpoints. */
struct tcp_rdm_data {
	struct tcp_rdm_cm cm;
	struct tcp_rdm_name name;
};
/* TCP_EXT_* that an RDM endpoint announces beside TCP_EXT_BASE. */
static inline uint16_t tcp_rdm_ext(const struct tcp_ep *ep)
{
	return TCP_EXT_PARK | (tcp_ep_has_coll(ep) ? TCP_EXT_COLL : 0) |
	       (ep->base.domain->attr.max_group_id ? TCP_EXT_GROUP : 0);
}
/* What we say of ourselves in it; returns its length. And what the other end says: the process that it is, 0 unknown;
 * that nobody can connect to it. */
size_t tcp_rdm_data(const struct tcp_ep *ep, struct tcp_rdm_data *data);
uint32_t tcp_rdm_pid(const struct tcp_cm *cm);
bool tcp_rdm_firewalled(const struct tcp_cm *cm);

/* ---- park.c ---- */

/* Nothing is under way in either direction, as far as this end knows, and either end can connect again, so that the
 * stream might as well end. Of an RDM endpoint. */
bool tcp_conn_idle(const struct tcp_conn *conn);
/* Offer the peer, which has TCP_EXT_PARK, to end the stream of an idle connection. Not again before the answer has
 * come (conn->park.asked). */
void tcp_park_ask(struct tcp_conn *conn);

/* ---- budget.c ---- */

/* Are there so many lives of strangers that no new one may come (now they are being closed), or nearly so many that
 * what is left of one whose connection was idle is to go? */
bool tcp_strangers_full(const struct tcp_peer_table *table);
bool tcp_strangers_many(const struct tcp_peer_table *table);
/* How many connections there are too many, and some more, so that the next new ones find room. Any thread. */
uint64_t tcp_budget_excess(void);

/* There is a new connection: close idle ones, now and later, as long as there are too many. */
void tcp_reap_start(struct tcp_peer_table *table);
/* A call failed for want of descriptors: close some idle connections. False: there is none that could be. */
bool tcp_reap_shortage(struct tcp_peer_table *table);
/* What table->reap fires. */
void tcp_reap_fire(struct fab_timer *timer);

/* ---- request.c ---- */

/* Somebody connects: the table's listener's request slot. */
void tcp_peer_request(struct tcp_listener *listener, struct tcp_cm *cm);
/* The same, of a request that another context's listener has got. */
void tcp_peer_requested(struct tcp_peer_table *table, struct tcp_cm *cm);
/* Refuse a request for good: TCP_REFUSE_*; 0: for now. */
void tcp_request_refuse(const struct tcp_ep *ep, struct tcp_cm *cm, uint8_t refusal);

#endif
