/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program for several nodes: actions made from a seed (make.c), played over the simulated network (play.c), and
 * judged by the promises of libfabric (judge.h). Faults of the network may fail operations. Then each still ends once,
 * nothing arrives twice, changed, or before its turn.
 */
#ifndef TEST_SIM_PLAY_H
#define TEST_SIM_PLAY_H

#include "config.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#if defined(HAVE_RXM) && !defined(HAVE_RXM_DL)
#define SIM_HAS_RXM	1		/* programs with ofi_rxm can be played */
#else
#define SIM_HAS_RXM	0
#endif

enum action_kind {
	ACT_PASS,			/* node a reads its completions */
	ACT_TIME,			/* c nanoseconds pass */
	ACT_JUMP,			/* the clock jumps by c seconds, and nothing else happens meanwhile */
	ACT_SEND,			/* a to b, c bytes, d: enum way, e: tag */
	ACT_TSEND,
	ACT_RECV,			/* at a, from b (a: from all), c bytes, d: ignored bits, e: tag */
	ACT_TRECV,
	ACT_MRECV,			/* the same as ACT_RECV, for many messages */
	ACT_PEEK,			/* the same as ACT_TRECV, d: enum peek */
	ACT_CANCEL,			/* at a, the b-th receive that is posted there; d: the b-th send */
	ACT_WRITE,			/* a to b, c bytes, d: enum way, e: slot */
	ACT_READ,
	ACT_BAD,			/* the same as ACT_WRITE, beyond the region (e: with no such key) */
	ACT_ATOMIC,			/* a at b, c elements of 1 << e bytes, d: enum amo */
	ACT_COUNT,			/* a adds 1 to the number of b that all share */
	ACT_COLL,			/* a calls its next collective (group.h) */
	ACT_JOIN,			/* a joins the next group, if its own has failed; of datagrams: joins the group,
					 * or leaves it */
	ACT_KNOW,			/* a forgets the address of b, or knows it again (datagram.h) */
	ACT_LINK,			/* a renews its connection with b, if that is over (link.h) */
	ACT_CUT,			/* between a and b, if c; or no more */
	ACT_RESET,			/* a connection between a and b */
	ACT_HALF,			/* the same: b reads its end, and a may read on */
	ACT_SHUTDOWN,			/* a ends its connection with b (link.h) */
	ACT_STOP,			/* a is killed */
	ACT_START,			/* a, if it was killed */
	ACT_RESTART,			/* both at once */
	ACT_KINDS,
};

enum way { PLAIN, INJECT, DELIVERED, FENCED, MATCHED, WAYS };
enum peek { LOOK, CLAIM, DISCARD, PEEKS };
enum amo { AMO_ADD, AMO_FETCH_ADD, AMO_SWAP, AMO_CSWAP, AMO_READ, AMOS };

struct action {
	uint8_t kind, a, b, d;
	uint32_t c, e;
	uint8_t route;			/* contexts (node.h), set when played: bit 0 of the sender, 1 of the receiver */
};

/* What a node has for its operations (node.h). */
enum contexts { OWN, SCALABLE, SHARED };
#define CONTEXTS	2

#define ACTIONS_MAX	2000

struct program {
	uint64_t seed;			/* of what happens by chance */
	bool faults;
	bool ordered;			/* every order is asked for that there is, not only the usual ones */
	bool data;			/* messages have CQ data, and the source of each is asked for */
	bool msg;			/* MSG endpoints (link.h), not RDM */
	bool rxm;			/* tcp;ofi_rxm, not tcp */
	bool dgram;			/* DGRAM endpoints of udp (datagram.h) */
	bool group;			/* all nodes are a group for collectives; of dgram: for multicast */
	bool once;			/* with group: who leaves it, or is started again, joins none before the end */
	bool ipv6;			/* with dgram only */
	bool strangers;			/* with dgram: nodes do not know all others */
	uint32_t contexts;		/* enum contexts; endpoints of tcp only, and MSG not SCALABLE */
	uint32_t keys;			/* authorization keys: 0 none, 1 the same for all, 2 another one for node 0 */
	uint32_t lack;			/* one in so many sockets cannot be had; 0: none */
	uint32_t lack_memory;		/* the same for allocations */
	uint32_t compute;		/* after its actions a node that got something computes for up to so many ns */
	/* The network (struct net_attr; delay: nanoseconds), and parameters of tcp. */
	uint32_t segment, room, delay, short_io, no_bufs, eager, credit, tx_size, max_conn;
	uint32_t rxm_buffer, rxm_sar, rxm_rx, rxm_write;	/* parameters of rxm: long messages are written */
	uint32_t nodes;
	uint32_t cnt;
	struct action actions[ACTIONS_MAX];
};

/* True if the program is of the kind that this word says, one of those of its first line: "group", or "delay=20000";
 * without its number, if that is not 0. */
bool play_is(struct program *program, const char *word);
/* The program of this seed. Every second one has faults. */
void play_make(struct program *program, uint64_t seed);
/* Play it. NULL: all is as promised; otherwise what is not (static memory), after which this process cannot play again.
 * *hash: of all events; *time_ns: the time that passed in it,
 * without jumps, and without waits in which nothing was on its way. */
const char *play_run(const struct program *program, uint64_t *hash, uint64_t *time_ns);
/* A program as text; lines that begin with # say nothing. play_read() reads the next one. False: there is none. Numbers
 * of the network and of parameters that its first line does not name are those of its seed. */
void play_print(struct program *program, FILE *out);
bool play_read(struct program *program, FILE *in);

#endif
