/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A listener: accepts connections and waits for the request that each of them owes. Passive endpoints (pep.c) and RDM
 * endpoints (request.c) own one each.
 */
#ifndef TCP_LISTEN_H
#define TCP_LISTEN_H

#include "common/engine/engine.h"
#include "tcp/handshake/cm.h"

struct tcp_listener {
	struct fab_source src;
	struct fab_timer again;		/* runs while accepting is put off */
	struct fab_engine *engine;	/* borrowed; its lock guards all of this. NULL: not started, or stopped */
	struct tcp_keyring keyring;	/* what whoever connects has to prove */
	uint32_t awaited_cnt;
	struct fab_list awaited;	/* struct tcp_cm.link: connections whose request has not come yet */
	/* May another connection come in now? False: ask again in a moment. NULL: always. */
	bool (*room)(struct tcp_listener *listener);
	/* No descriptor is left for the connection that waits: give some back, if that can be. NULL: it cannot. */
	void (*starved)(struct tcp_listener *listener);
	/* A request is here, whole and well-formed. The exchange is DONE; its descriptor is closed afterwards unless
	 * it is taken. */
	void (*request)(struct tcp_listener *listener, struct tcp_cm *cm);
};

/*
 * Listen on the bound socket fd, with backlog connections kept by the kernel. The lock is held. 0, or -errno: fd
 * stays the caller's. On success the listener owns it. room, starved, request and keyring are set before, the rest is
 * zero.
 */
int tcp_listener_start(struct tcp_listener *listener, struct fab_engine *engine, int fd, int backlog);
/* Stop, close the descriptor, drop those who have not sent their request. Lock held; idempotent, also for one that is
 * all zero. The embedder defers freeing its memory. */
void tcp_listener_stop(struct tcp_listener *listener);

#endif
