/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scalable endpoints: one address, many transmit and receive contexts, each a struct tcp_ep with one direction. A
 * connection goes from one transmit context to one receive context (wire.h, struct tcp_rdm_ctx), so that contexts
 * share nothing in their data path and may run on engines of their own. What they share is here: the socket that is
 * listened at, and who is to have a request that names a receive context.
 *
 * struct tcp_sep.lock guards what is shared; an engine's lock may be held when it is taken, and none is taken under it.
 */
#ifndef TCP_CONTEXTS_H
#define TCP_CONTEXTS_H

#include <pthread.h>
#include "tcp/stream/stream.h"

struct tcp_cm;
struct tcp_peer_table;

/* A context. */
struct tcp_sep_slot {
	struct tcp_ep *open;		/* borrowed: from its opening to its close, or NULL */
	struct tcp_ep *live;		/* receive context: requests may go to it; or NULL */
	struct fab_list inbox;		/* struct tcp_cm.link: requests that came in on another engine; owned */
	struct fab_bell wake;		/* tells live's engine of them; closed: all are on one engine */
};

struct tcp_sep {
	struct tcp_ep ep;		/* address, identity, AV; it transfers nothing itself */
	pthread_mutex_t lock;		/* guards what follows */
	int fd;				/* owned: bound to ep.addr; -1 until something is enabled */
	uint32_t tx_cnt, rx_cnt;	/* fixed */
	struct tcp_sep_slot *tx, *rx;	/* owned */
};

/* Take the address, which stays the same from here on. 0 or -FI_E*. No lock held. */
int tcp_sep_bind(struct tcp_sep *sep);
/* A context is being enabled: give it the address, which is bound now if need be, the address vector and the event
 * queue. 0 or -FI_E* (bind). No lock held. */
int tcp_sep_join(struct tcp_ep *ctx);
/* A descriptor for a receive context to listen at, the caller's; or -errno. */
int tcp_sep_fd(const struct tcp_ep *ctx);
/* A receive context is ready for requests. 0 or -errno. No lock held. */
int tcp_sep_live(struct tcp_ep *ctx);
/* The context closes: it gets no more requests. No lock held; idempotent. */
void tcp_sep_leave(struct tcp_ep *ctx);
/* The receive context of the same number as a transmit context, or NULL if that is not enabled. */
struct tcp_ep *tcp_sep_mate(const struct tcp_ep *ctx);
/* It has closed: its number is free. */
void tcp_sep_closed(struct tcp_ep *ctx);

/*
 * A request for receive context rx_ctx, whose exchange is DONE, has come in on ctx, a live one. Who is to go on with
 * it: the peers of that context, where it is on the same engine. NULL: it was passed on to another engine, or refused.
 * The lock of ctx's engine is held.
 */
struct tcp_peer_table *tcp_sep_route(struct tcp_ep *ctx, struct tcp_cm *cm, uint16_t rx_ctx);

#endif
