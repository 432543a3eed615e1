/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A listener: accepts connections, and waits for the request of each. Passive endpoints (connect/pep.c) and RDM
 * endpoints (peer/request.c) own one each.
 */
#ifndef TCP_LISTEN_H
#define TCP_LISTEN_H

#include "common/engine/engine.h"
#include "tcp/handshake/cm.h"

struct tcp_listener {
	struct fab_source src;
	struct fab_source near;		/* a Unix socket for peers of this host; fd -1: none */
	union fab_sockaddr addr;	/* of both */
	struct fab_timer again;		/* runs while accepting is paused */
	struct fab_engine *engine;	/* borrowed; its lock guards all members. NULL: not started, or stopped */
	struct tcp_keyring keyring;	/* the keys that connecting peers must prove */
	uint32_t batch;			/* connections to accept at a time */
	uint32_t batch_pass;		/* engine->pass_cnt when that was last used */
	uint32_t awaited_cnt;
	uint32_t awaited_max;		/* of all listeners of the process */
	uint16_t awaited_of[256];	/* how many of a host; hosts may share an entry */
	struct fab_list awaited;	/* struct tcp_cm.link: connections without a request yet, oldest first */
	/* True if another connection may be accepted beside the awaited_cnt that have no request yet. False: one may
	 * take the place of another, and it is called again soon. NULL: always true. */
	bool (*room)(struct tcp_listener *listener);
	/* There is no descriptor for the next connection: free some, if possible. NULL: not possible. */
	void (*starved)(struct tcp_listener *listener);
	/* A request is complete and well-formed. The exchange is DONE; its descriptor is closed afterwards unless the
	 * callback takes it. */
	void (*request)(struct tcp_listener *listener, struct tcp_cm *cm);
};

/*
 * Listen on the bound socket fd, with a kernel queue of backlog connections. The lock is held. The caller has set room,
 * starved, request and keyring; the other members are 0. 0: the listener owns fd. -errno: fd still belongs to the
 * caller.
 */
int tcp_listener_start(struct tcp_listener *listener, struct fab_engine *engine, int fd, int backlog);
/* Stop, close the descriptor, and drop connections without a request. Lock held; idempotent, also for a zeroed
 * listener. The embedder frees its memory with fab_engine_defer(). */
void tcp_listener_stop(struct tcp_listener *listener);

#endif
