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
/* A thread is about to sleep. */
void fab_stats_sleep(struct fab_engine *engine);

/* Ticks in two halves. Where there is no time stamp counter, the lower one is made of fewer bits, so that the upper one
 * changes every second or two there as well. */
#define FAB_MOMENT_BITS		(FAB_TICKS_ARE_TSC ? 32 : 30)

struct fab_moment {
	uint32_t low, high;
};

static inline __attribute__((always_inline)) struct fab_moment fab_moment_now(void)
{
	struct fab_moment now;

#if FAB_TICKS_ARE_TSC
	/* the compiler would join the halves and part them */
	__asm__ volatile("rdtsc" : "=a" (now.low), "=d" (now.high));
#else
	uint64_t ticks = fab_ticks();

	now.low = (uint32_t) (ticks & ((UINT64_C(1) << FAB_MOMENT_BITS) - 1));
	now.high = (uint32_t) (ticks >> FAB_MOMENT_BITS);
#endif
	return now;
}

static inline uint64_t fab_moment_ticks(struct fab_moment moment)
{
	return (uint64_t) moment.high << FAB_MOMENT_BITS | moment.low;
}

/* A pass ends, and the upper half is that of the last one. */
static inline __attribute__((always_inline)) void fab_stats_passed(struct fab_engine *engine, struct fab_moment now)
{
#if FAB_TICKS_ARE_TSC && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	memcpy(&engine->stats.record->last_pass, &now.low, sizeof(now.low));
#else
	engine->stats.record->last_pass = fab_moment_ticks(now);
#endif
}
/* A pass ends, and anything may have changed: store its time, and notice a gap since the last one. */
void fab_stats_passed_rare(struct fab_engine *engine, uint64_t now);

/* A pass that has found nothing ends, some time after the last survey. */
void fab_stats_idle_rare(struct fab_engine *engine);

/* A pass that has found nothing ends. */
static inline void fab_stats_idle(struct fab_engine *engine)
{
	const struct fi_stats_engine *record = engine->stats.record;

	if (__builtin_expect(record->last_pass - record->surveyed > FAB_STATS_SURVEY, 0))
		fab_stats_idle_rare(engine);
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
