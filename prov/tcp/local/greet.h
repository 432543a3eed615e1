/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streams between processes of one host and one user: a Unix socket in place of a TCP socket. Every listener of tcp has
 * an abstract Unix socket, too, whose name contains its address. A process that connects to an address of its own host
 * tries that name first. Both ends check the credentials of the other. Each end then sends a greeting, the connecting
 * end first, and the ordinary handshake follows. Abstract names belong to a network namespace, and so do the addresses.
 *
 * No state, any thread; a struct tcp_local belongs to whoever holds it.
 */
#ifndef TCP_GREET_H
#define TCP_GREET_H

#include <stdbool.h>
#include <sys/types.h>
#include "base/addr.h"
#include "common/engine/engine.h"
#include "tcp/local/pair.h"

/* In the byte order of the host, which both ends share. */
struct tcp_greeting {
	uint32_t magic;
	uint16_t version;
	uint16_t pair;			/* the connecting end offers rings (pair.h), with two descriptors: the memory,
					 * the page of its engine. The number of their layout, TCP_PAIR_LAYOUT; or 0 */
	uint32_t bit;			/* in that page */
	union fab_sockaddr from, to;	/* the connecting end; the listener as it knows it */
};

/* A stream over a Unix socket: what a TCP socket would know by itself. */
struct tcp_local {
	union fab_sockaddr ours, theirs;	/* both ends, as they would be named with TCP */
	pid_t pid;			/* the peer's process; 0: it is in another pid namespace */
	int port_fd;			/* owned: a TCP socket that keeps the port of `ours`, or -1 */
	struct tcp_greeting greeting;	/* the peer's, as far as it has come */
	struct tcp_pair_inbox inbox;	/* of the greeting */
	struct tcp_pair *pair;		/* owned: the rings, or NULL */
	bool owes_answer;		/* accepting end: the peer has offered rings (tcp_pair_answer) */
	struct fab_defer defer;
};

/* The socket of a stream. Whoever holds it closes it with tcp_link_close(). */
struct tcp_link {
	int fd;				/* -1: none */
	struct tcp_local *local;	/* NULL: fd is a TCP socket, or -1 */
};

/* Close the socket, free what belongs to it, and make it {-1, NULL}. Idempotent. */
void tcp_link_close(struct tcp_link *link);
/* The same for a stream, whose rings may be read in this pass: the memory is freed after it. Engine lock held. */
void tcp_link_retire(struct tcp_link *link, struct fab_engine *engine);
/* The addresses of both ends. The family is 0 where it is not known. */
void tcp_link_names(const struct tcp_link *link, union fab_sockaddr *ours, union fab_sockaddr *theirs);

/* True if a process of this host may listen at addr, so that tcp_local_dial() is worth a try. */
bool tcp_local_is_near(const union fab_sockaddr *addr);

/* Listen beside the TCP socket that is bound to addr. Returns the descriptor, which the caller closes. -errno; -ENOSYS:
 * FI_TCP_LOCAL is off. */
int tcp_local_listen(const union fab_sockaddr *addr, int backlog);
/* Accept a connection from a listening descriptor. 0: *link is the caller's, and the peer's greeting has to be read.
 * -EAGAIN: there is none; -EACCES: it was one of another user, and is closed; or another -errno of accept(). */
int tcp_local_accept(int listen_fd, struct tcp_link *link);

/*
 * Connect to the process that listens at `to`, and send a greeting with len bytes of request behind it. `from` is the
 * own address; if it is NULL or a wildcard, the one that TCP would take. port_fd is a TCP socket bound to its port, or
 * -1; without a port in `from` either, one is reserved. With an engine, rings are offered. 0: *link is the caller's,
 * and includes port_fd; the peer's greeting will come. -errno: use TCP, and port_fd still belongs to the caller.
 */
int tcp_local_dial(const union fab_sockaddr *from, const union fab_sockaddr *to, int port_fd,
		   struct fab_engine *engine, const void *request, size_t len, struct tcp_link *link);

/* True if the peer's greeting has arrived. */
static inline bool tcp_local_is_greeted(const struct tcp_local *local)
{
	return local->inbox.len == sizeof(local->greeting);
}

/* Read the peer's greeting, if it is there. The accepting end, which listens at `at` (NULL: the connecting end), then
 * sends its own. 0: done, and link->local has both addresses. -EAGAIN: not yet. -EPROTO: it is not valid. Another
 * -errno: the connection has failed. */
int tcp_local_greet(struct tcp_link *link, const union fab_sockaddr *at);

#endif
