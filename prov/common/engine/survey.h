/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room: what an engine writes to the page of the process (doc/decisions/stats.md). Lock held.
 */
#ifndef FAB_ENGINE_SURVEY_H
#define FAB_ENGINE_SURVEY_H

#include <string.h>
#include "common/engine/engine.h"
#include "base/clock.h"

/* Before the engine is used: its record. 0 or -FI_ENOMEM. No lock held, here and in fini. */
int fab_stats_engine_begin(struct fab_engine *engine, bool automatic);
void fab_stats_engine_end(struct fab_engine *engine);

/* Look through all pending operations. */
void fab_survey_run(struct fab_engine *engine);
/* A pass begins at `now`: store it, and notice a gap since the last one. */
void fab_stats_pass_rare(struct fab_engine *engine, uint64_t now);
/* A thread is about to sleep. */
void fab_stats_sleep(struct fab_engine *engine);

/* A pass begins. The upper half of the counter changes every one or two seconds, and then the rest is done; so the
 * usual pass takes five instructions more. */
static inline __attribute__((always_inline)) void fab_stats_pass(struct fab_engine *engine)
{
	engine->pass_cnt++;
#if FAB_TICKS_ARE_TSC && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	struct fi_stats_engine *record = engine->stats.record;
	uint32_t low, high, last;

	__asm__ volatile("rdtsc" : "=a" (low), "=d" (high));	/* the halves: the compiler would join and part them */
	memcpy(&last, (char *) &record->last_pass + sizeof(low), sizeof(last));
	if (__builtin_expect(last != high, 0))
		fab_stats_pass_rare(engine, (uint64_t) high << 32 | low);
	else
		memcpy(&record->last_pass, &low, sizeof(low));
#else
	fab_stats_pass_rare(engine, fab_ticks());
#endif
}

/* A pass that has found nothing ends. */
static inline void fab_stats_idle(struct fab_engine *engine)
{
	const struct fi_stats_engine *record = engine->stats.record;

	if (__builtin_expect(record->last_pass - record->surveyed > FAB_STATS_SURVEY, 0))
		fab_survey_run(engine);
}

/* The same, where glances may replace the next passes. True: passes are so far apart that they had better not, since
 * the time of the last one would be wrong for long. */
static inline bool fab_stats_slow(struct fab_engine *engine)
{
	uint64_t now = engine->stats.record->last_pass, last = engine->stats.idle;

	engine->stats.idle = now;
	return now - last > FAB_STATS_SLOW && fab_clock == &fab_system_clock;
}

#endif
