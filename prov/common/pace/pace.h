/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connects of an endpoint, not all at once: an application's first round of sends may open thousands, many to one host,
 * whose queue would overflow (and a lost SYN costs a second). At most so many attempts are young at a time; who comes
 * later waits in line, without a connection. An attempt is young for a second at most, so that peers that do not answer
 * hold up nobody for longer.
 *
 * Lock of the engine held everywhere.
 */
#ifndef FAB_PACE_H
#define FAB_PACE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "common/engine/engine.h"

/* Of one who connects: part of the provider's peer. */
struct fab_turn {
	struct fab_list link;		/* in a list of the pace, or in none */
	uint64_t young_ns;		/* when its attempt became young; 0: it is not */
};

struct fab_pace {
	struct fab_engine *engine;	/* borrowed */
	uint32_t (*young_max)(void);	/* as of now */
	void (*begin)(struct fab_turn *turn);	/* the attempt of who was in line may begin */
	struct fab_list young;		/* struct fab_turn.link, by young_ns: attempts that have just begun */
	struct fab_list line;		/* likewise: waiting for their turn */
	uint32_t young_cnt;
	uint64_t look_ns;		/* when the timer fires, while there is a line */
	struct fab_timer timer;
};

void fab_pace_init(struct fab_pace *pace, struct fab_engine *engine, uint32_t (*young_max)(void),
		   void (*begin)(struct fab_turn *turn));
/* Nothing begins any more. */
void fab_pace_stop(struct fab_pace *pace);
void fab_turn_init(struct fab_turn *turn);
/* An attempt to connect is to begin. True: now. False: begin() will be called, unless fab_pace_leave() is first. Not of
 * one that fab_pace_has(). */
bool fab_pace_enter(struct fab_pace *pace, struct fab_turn *turn);
/* The attempt is over, whatever came of it; idempotent, and good for one that never entered. */
void fab_pace_leave(struct fab_pace *pace, struct fab_turn *turn);
/* Is it in line, or young? */
static inline bool fab_pace_has(const struct fab_turn *turn)
{
	return !fab_list_empty(&turn->link);
}

#endif
