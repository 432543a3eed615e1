/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program for several nodes: actions made from a seed, played over the simulated network (net.h), and judged by what
 * libfabric promises. Faults of the network may fail operations. Then each still ends once, nothing arrives twice,
 * changed, or before its turn.
 */
#ifndef TEST_SIM_PLAY_H
#define TEST_SIM_PLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum action_kind {
	ACT_PASS,			/* node a reads its completions */
	ACT_TIME,			/* c nanoseconds pass */
	ACT_SEND,			/* a to b, c bytes, d: enum way, e: tag */
	ACT_TSEND,
	ACT_RECV,			/* at a, from b (a: from all), c bytes, d: ignored bits, e: tag */
	ACT_TRECV,
	ACT_CANCEL,			/* at a, the b-th receive that is posted there */
	ACT_WRITE,			/* a to b, c bytes, d: enum way, e: slot */
	ACT_READ,
	ACT_FETCH,			/* a adds 1 at b */
	ACT_CUT,			/* between a and b, if c; or no more */
	ACT_RESET,			/* a connection between a and b */
	ACT_RESTART,			/* a */
	ACT_KINDS,
};

enum way { PLAIN, INJECT, DELIVERED, WAYS };

struct action {
	uint8_t kind, a, b, d;
	uint32_t c, e;
};

#define ACTIONS_MAX	2000

struct program {
	uint64_t seed;			/* of the network's behaviour, and of what the program has from it */
	bool faults;
	unsigned nodes;
	uint32_t cnt;
	struct action actions[ACTIONS_MAX];
};

/* The program of this seed. */
void play_make(struct program *program, uint64_t seed, bool faults);
/* Play it. NULL: all is as promised; otherwise what is not (static memory), after which this process cannot play again.
 * *hash: of all events. */
const char *play_run(const struct program *program, uint64_t *hash);
void play_print(const struct program *program, FILE *out);

#endif
