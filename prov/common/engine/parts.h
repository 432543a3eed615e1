/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room: calls between the parts of an engine. Lock held.
 */
#ifndef FAB_ENGINE_PARTS_H
#define FAB_ENGINE_PARTS_H

#include "common/engine/engine.h"

/* ---- timer.c: timers, and the alarm, a timerfd that wakes sleepers for them ---- */

/* An alarm that is due now. Timers are always later. */
#define FAB_ALARM_NOW		1

/* Set the alarm to a time of the fab_now_ns() clock, to FAB_ALARM_NOW, or off (0). Also clears an alarm that has
 * expired. */
void fab_alarm_set(struct fab_engine *engine, uint64_t when_ns);
/* The source of the alarm is readable: struct fab_source.ready. */
void fab_alarm_ready(struct fab_source *src, uint32_t events);
/* The time of the first timer, or 0 if there is none. */
uint64_t fab_timer_first_ns(const struct fab_engine *engine);
/* Fire the timers that are due, and set the alarm anew. True if one has fired. */
bool fab_timers_run(struct fab_engine *engine);

/* Somebody may sleep on the epoll set. */
static inline bool fab_engine_watched(struct fab_engine *engine)
{
	return atomic_load(&engine->watchers) > 0;
}

/* ---- source.c: sources, which of them are hot, and what that means for the next passes ---- */

#define FAB_HOT_MAX		4	/* sources that are read before epoll is asked */
#define FAB_EPOLL_SOON		4U	/* ask epoll after at most so many passes if the hot sources have data, and are
					 * not all there are; or if they have none, are all, and epoll had found
					 * something */
#define FAB_EPOLL_PASSES	16U	/* ... at most, with each time that epoll finds nothing; and if they have data,
					 * and are all there are */
#define FAB_EPOLL_PASSES_WORDS	128U	/* the same if data comes by words alone: epoll has only what begins and ends */

/* The sources have changed, or the line of outsiders, or the gap between two looks at epoll: find out again what passes
 * would otherwise have to think about. */
void fab_engine_sources_changed(struct fab_engine *engine);
/* Have epoll watch src again, or not any more. 0 or -errno. */
int fab_source_watch(struct fab_source *src, bool watch);
/* src is not hot any more. Nothing happens if it is not hot. */
void fab_source_cool(struct fab_source *src);

/* The engine's poll function if it has only one, which has words. */
static inline struct fab_poll_fn *fab_only_words(const struct fab_engine *engine)
{
	struct fab_poll_fn *fn = fab_list_first(&engine->polls, struct fab_poll_fn, link);

	return fn && fn->link.next == &engine->polls && fn->words ? fn : NULL;
}

/* The most passes without epoll, where no other source has data. */
static inline unsigned fab_epoll_passes(const struct fab_engine *engine)
{
	return !engine->sources.poll_cnt && fab_only_words(engine) ? FAB_EPOLL_PASSES_WORDS : FAB_EPOLL_PASSES;
}

/* More sources are ready than can be hot: none is, and each pass asks epoll, so that all are read equally often. */
static inline bool fab_sources_crowded(const struct fab_engine *engine)
{
	return engine->epoll.cnt > FAB_HOT_MAX;
}

/* ---- engine.c: the pass ---- */

/* A pass that is not the application's, which asks epoll. True if it found anything. */
bool fab_engine_pass_and_ask(struct fab_engine *engine);

/* ---- thread.c: the thread of FI_PROGRESS_AUTO ---- */

/* The main function of the thread; arg is the engine. Lock not held, here and in join. */
void *fab_engine_thread_main(void *arg);
/* Have the thread end, and wait until it has. */
void fab_engine_thread_join(struct fab_engine *engine);

#endif
