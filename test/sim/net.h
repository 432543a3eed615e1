/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A simulated kernel: the sockets, epoll sets, eventfds and timers of several processes, all in one thread, and one
 * clock. It stands behind the tables fab_sock and fab_clock. All that happens follows from the seed: the same seed
 * gives the same events.
 *
 * The processes are numbered nodes at ports of 127.0.0.1. The library does not know: between its calls, net_node()
 * says whose they are. Unix sockets are refused. UDP sockets are in net_udp.h.
 */
#ifndef TEST_SIM_NET_H
#define TEST_SIM_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr_in;

#define NET_NODES	4

/* How this network behaves. Bytes on a connection stay in order. */
struct net_attr {
	uint64_t delay_ns;		/* a segment takes up to so long */
	uint32_t segment;		/* longest segment, bytes; at least 1. Some arrive as one */
	uint32_t room;			/* bytes that a connection holds for each direction: in flight, and not read */
	uint32_t short_io;		/* one in so many calls of send and recv transfers only a part; 0: none */
	/* Of datagrams one in so many is lost, arrives twice, or cannot be sent (ENOBUFS); 0: none. */
	uint32_t lose, twice, no_bufs;
};

/* Begin anew: no files, time 0, and the random numbers of this seed. The first call puts this kernel in the place of
 * the real one. */
void net_begin(uint64_t seed, const struct net_attr *attr);
/* Close what is left. Returns the number of files that nobody had closed: a leak. */
unsigned net_end(void);

/* The calls that follow are those of this node. */
void net_node(unsigned node);
/* Let time pass, and deliver what arrives meanwhile. */
void net_pass_ns(uint64_t ns);
uint64_t net_now_ns(void);
/* The earliest time at which something may arrive; UINT64_MAX: nothing is on its way. */
uint64_t net_next_ns(void);

/* Memory for the simulator itself, which can always be had. free() frees it. */
void *net_alloc(size_t len);

/* Random numbers of the seed, for the program that is played: below n, which is not 0. */
uint32_t net_random(uint32_t n);
/* Other than before if something has happened at this node: bytes, connections, ends or room came to its descriptors,
 * or net_node() has named it. */
uint64_t net_stirs(unsigned node);
/* Bytes that were sent, arrived and were read until now: more where something moves. */
uint64_t net_moved(void);
/* All events until now, as a number: equal for equal runs. net_event() adds one. */
uint64_t net_hash(void);
void net_event(uint64_t what);

/* What somebody sees who watches the connections. A connection has a number, from 1 on; of its two ends one has asked
 * for it. */
struct net_end {
	uint32_t conn;
	unsigned node;
	bool asked;
	const struct sockaddr_in *ours, *theirs;
};

struct net_watch {
	/* This end has sent these bytes, or read them. */
	void (*sent)(const struct net_end *end, const uint8_t *buf, size_t len);
	void (*got)(const struct net_end *end, const uint8_t *buf, size_t len);
	/* This end is about to read up to len bytes, which are in buf. Returns how many it gets; at least 1. */
	size_t (*may_get)(const struct net_end *end, const uint8_t *buf, size_t len);
	/* This end closes the connection; or reads its end. */
	void (*closed)(const struct net_end *end);
	void (*got_end)(const struct net_end *end);
};

/* From now on, until the next net_begin(). */
void net_watch(const struct net_watch *watch);

/* A datagram is sent by this node, or read by it. */
enum net_fate { NET_SENT, NET_READ };
typedef void net_datagram_fn(enum net_fate fate, unsigned node, const uint8_t *buf, size_t len);
/* From now on, until the next net_begin(). */
void net_watch_datagrams(net_datagram_fn *watch);
/* Datagrams that are on their way, or have arrived and were not read. */
uint32_t net_datagrams(void);

/* ---- for net_udp.c ---- */

/* Something arrives at this time. */
void net_arrives_at(uint64_t ns);
/* True if nothing gets from one of these nodes to the other. */
bool net_is_cut(unsigned a, unsigned b);

/* ---- faults ---- */

/* From now on nothing gets from one of these nodes to the other; or again. */
void net_cut(unsigned a, unsigned b, bool cut);
/* Reset one of the connections between these nodes. False: there is none. */
bool net_reset(unsigned a, unsigned b);
/* The process of this node is killed: its connections end, its calls fail. What the library holds for it is closed
 * afterwards, by fi_close(). */
void net_kill(unsigned node);
/* One direction of such a connection ends: b reads to its end, and what a sends from now on fails. False: there is
 * none. */
bool net_half(unsigned a, unsigned b);
/* The clock jumps forward, between two instructions: nothing else happens meanwhile, on the wire neither. */
void net_jump_ns(uint64_t ns);
/* From now on one in n sockets cannot be had (EMFILE); 0: none. */
void net_lack_files(uint32_t n);
/* The same for allocations of all that is linked into this program. */
void net_lack_memory(uint32_t n);
/* All cuts end, and every lack. */
void net_heal(void);

#endif
