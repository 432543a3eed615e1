/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bounds the attempts to connect that an endpoint makes at a time. An application's first round of sends may open
 * thousands of connections, many to one host, whose listen queue would overflow; a lost SYN costs a second. At most
 * young_max() attempts are young at a time, and further ones wait in line. An attempt stops being young when it ends,
 * and after a second at the latest, so that peers that do not answer delay the others no longer.
 *
 * Lock of the engine held everywhere.
 */
#ifndef FAB_PACE_H
#define FAB_PACE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "common/engine/engine.h"

/* An attempt to connect: part of the provider's peer. */
struct fab_turn {
	struct fab_list link;		/* in a list of the pace, or in none */
	uint64_t young_ns;		/* when its attempt became young; 0: it is not */
};

struct fab_pace {
	struct fab_engine *engine;	/* borrowed */
	uint32_t (*young_max)(void);	/* the bound; may change */
	void (*begin)(struct fab_turn *turn);	/* called when an attempt that waited in line may begin */
	struct fab_list young;		/* struct fab_turn.link, by young_ns: attempts that have just begun */
	struct fab_list line;		/* struct fab_turn.link: attempts that wait */
	uint32_t young_cnt;
	uint64_t look_ns;		/* when the timer fires, while there is a line */
	struct fab_timer timer;
};

/* Make an empty pace. Cannot fail. */
void fab_pace_init(struct fab_pace *pace, struct fab_engine *engine, uint32_t (*young_max)(void),
		   void (*begin)(struct fab_turn *turn));
/* Stop: begin() is not called any more. */
void fab_pace_stop(struct fab_pace *pace);
/* Make a turn that is neither in line nor young. */
void fab_turn_init(struct fab_turn *turn);
/* Ask to begin an attempt; the turn is neither in line nor young. True: the caller begins it now. False: begin() will
 * be called, unless fab_pace_leave() is called before. */
bool fab_pace_enter(struct fab_pace *pace, struct fab_turn *turn);
/* The attempt has ended, with success or not. Idempotent, and harmless for a turn that did not enter. */
void fab_pace_leave(struct fab_pace *pace, struct fab_turn *turn);
/* True if the turn is in line or young. */
static inline bool fab_pace_has(const struct fab_turn *turn)
{
	return !fab_list_empty(&turn->link);
}

#endif
