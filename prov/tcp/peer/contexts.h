/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Scalable endpoints: one address, and several transmit and receive contexts, each a struct tcp_ep with one direction.
 * A connection goes from one transmit context to one receive context (struct tcp_rdm_ctx of tcp/wire/wire.h). So
 * contexts share nothing on their data path, and may be on different engines. The shared part is here: the listening
 * socket, and passing requests to the receive context that they name.
 *
 * struct tcp_sep.lock guards the shared part. It may be taken with an engine's lock held; no engine's lock is taken
 * while it is held.
 */
#ifndef TCP_CONTEXTS_H
#define TCP_CONTEXTS_H

#include <pthread.h>
#include "tcp/stream/stream.h"

struct tcp_cm;
struct tcp_peer_table;

/* A context. */
struct tcp_sep_slot {
	struct tcp_ep *open;		/* borrowed: from opening to closing the context, or NULL */
	struct tcp_ep *live;		/* receive context that accepts requests, or NULL */
	struct fab_list inbox;		/* owned; struct tcp_cm.link: requests that arrived on another engine */
	struct fab_bell wake;		/* wakes live's engine for the inbox; closed if all contexts are on one
					 * engine */
};

struct tcp_sep {
	struct tcp_ep ep;		/* address, identity, address vector; it transfers nothing itself */
	pthread_mutex_t lock;		/* guards the members below */
	int fd;				/* owned: bound to ep.base.name; -1 until a context is enabled */
	uint32_t tx_cnt, rx_cnt;	/* constant */
	struct tcp_sep_slot *tx, *rx;	/* owned */
};

/* Bind to the address, which then stays the same. 0 or -FI_E*. No lock held. */
int tcp_sep_bind(struct tcp_sep *sep);
/* For enabling a context: give it the address, which is bound if it was not, the address vector and the event queue. 0
 * or -FI_E* (bind). No lock held. */
int tcp_sep_join(struct tcp_ep *ctx);
/* A new descriptor on which a receive context listens. The caller owns it; or -errno. */
int tcp_sep_fd(const struct tcp_ep *ctx);
/* Let a receive context accept requests. 0 or -errno. No lock held. */
int tcp_sep_live(struct tcp_ep *ctx);
/* Stop passing requests to a context that closes. No lock held; idempotent. */
void tcp_sep_leave(struct tcp_ep *ctx);
/* The receive context with the number of this transmit context; NULL if it is not enabled. */
struct tcp_ep *tcp_sep_mate(const struct tcp_ep *ctx);
/* A context was closed: its number may be used again. */
void tcp_sep_closed(struct tcp_ep *ctx);

/*
 * Route a request for receive context rx_ctx, which arrived on ctx, a live context. Its exchange is DONE. Returns the
 * peer table of that receive context if it is on the same engine. NULL: the request was passed to another engine, or
 * refused. The lock of ctx's engine is held.
 */
struct tcp_peer_table *tcp_sep_route(struct tcp_ep *ctx, struct tcp_cm *cm, uint16_t rx_ctx);

#endif
