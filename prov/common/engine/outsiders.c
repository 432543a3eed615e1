/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Outsiders and their turns. Somebody who is not known can make a listener, a connection before its request, or a
 * stranger's connection ready as often as he likes. Without a bound, twelve of them get twelve times the time of one
 * known peer.
 *
 * Outsiders are rationed while other sources have had data within BUSY_NS. A turn then ends after TURN_NS, with the
 * source that is being served. After a turn that took t there is none for REST * t, so they have 1 / (1 + REST) of the
 * time together. The time is measured, so it does not matter what they do with it. Who is not rationed has turns, too,
 * but long ones that follow one another: other sources are looked at in between.
 *
 * An outsider that epoll reports when it has no turn waits in line. Epoll does not watch it meanwhile: it costs nothing
 * until its turn, and does not wake those who sleep. A timer wakes them for the next turn. An outsider that has to do
 * with something of which epoll does not know, a ring, asks for its turn, and waits in line like the others.
 */
#include "common/engine/outsiders.h"
#include "common/engine/parts.h"

#include <sys/epoll.h>
#include "base/bits.h"
#include "base/clock.h"

#define BUSY_NS		1000000		/* who has had data within this time is busy: a turn would delay its next one by
					 * less than a tenth of it */
#define TURN_NS		30000
#define LONG_TURN_NS	200000		/* while nobody else has anything to do */
#define PAUSE_NS	5000		/* after it, if a thread sleeps in between */
#define REST		7
#define REST_MAX_NS	100000000	/* after a turn that was interrupted by the scheduler, for example */

bool fab_engine_turn_is_over(const struct fab_engine *engine)
{
	return fab_now_ns() >= engine->outsiders.turn_end_ns;
}

void fab_engine_outsiders_took(struct fab_engine *engine, uint64_t ns)
{
	struct fab_engine_outsiders *all = &engine->outsiders;
	uint64_t now = fab_now_ns();

	if (all->rationed)
		all->rest_ns = fab_min(fab_max(all->rest_ns, now) + REST * ns, now + REST_MAX_NS);
}

/* ---- the line ---- */

static void line_join(struct fab_source *src, uint32_t events)
{
	src->due = events;
	fab_list_add_tail(&src->engine->outsiders.line, &src->hot);
}

/* The same for a source that epoll has reported. */
static void line_join_reported(struct fab_source *src, uint32_t events)
{
	if (src->due) {				/* it has asked for its turn, too */
		src->due |= events;
	} else {
		if (!fab_list_empty(&src->hot)) {	/* it is hot */
			fab_list_remove(&src->hot);
			src->engine->sources.hot_cnt--;
		}
		line_join(src, events);
	}
	src->aside = true;
	fab_source_watch(src, false);	/* without events it would still be watched for EPOLLHUP */
}

void fab_source_ask_turn(struct fab_source *src)
{
	struct fab_engine *engine = src->engine;
	struct fab_engine_outsiders *all = &engine->outsiders;

	if (src->due)
		return;
	if (fab_list_empty(&all->line))
		fab_timer_start(engine, &all->turn, all->rest_ns);
	line_join(src, EPOLLIN);
	fab_engine_sources_changed(engine);
}

void fab_source_leave_line(struct fab_source *src)
{
	fab_list_remove(&src->hot);
	src->due = 0;
	src->aside = false;
}

/* The turn of the first in line. False: there is no memory for epoll to watch it again, so it stays. */
static bool line_serve(struct fab_engine_outsiders *all)
{
	struct fab_source *src = fab_list_first(&all->line, struct fab_source, hot);
	uint32_t events = src->due;

	if (src->aside && fab_source_watch(src, true))
		return false;
	fab_source_leave_line(src);
	src->ready(src, events);
	return true;
}

void fab_source_set_outsider(struct fab_source *src, bool outsider)
{
	src->outsider = outsider;
	if (!src->engine || outsider || !src->due || (src->aside && fab_source_watch(src, true)))
		return;
	fab_source_leave_line(src);
	fab_engine_sources_changed(src->engine);
}

/* ---- turns ---- */

/* True if it is their turn now. */
static bool turn_begin(struct fab_engine_outsiders *all, uint64_t now)
{
	if (all->heard || all->heard_before)
		all->busy_ns = now;
	all->heard = all->heard_before = false;
	all->rationed = all->busy_ns && now - all->busy_ns < BUSY_NS;
	all->turn_end_ns = now + (all->rationed ? TURN_NS : LONG_TURN_NS);
	return !all->rationed || now >= all->rest_ns;
}

/* worked: there was anything to do. */
static void turn_end(struct fab_engine *engine, uint64_t begun, bool worked)
{
	struct fab_engine_outsiders *all = &engine->outsiders;
	uint64_t now = fab_now_ns();

	/* joining the line counts, too */
	if (all->rationed && worked)
		all->rest_ns = fab_min(fab_max(all->rest_ns, begun) + (1 + REST) * (now - begun), now + REST_MAX_NS);
	if (fab_list_empty(&all->line))
		fab_timer_stop(&all->turn);
	else
		fab_timer_start(engine, &all->turn, all->rationed ? all->rest_ns : now + PAUSE_NS);
	fab_engine_sources_changed(engine);
}

bool fab_outsiders_serve(struct fab_engine *engine)
{
	struct fab_engine_outsiders *all = &engine->outsiders;
	uint64_t begun = fab_now_ns();
	bool may = turn_begin(all, begun), served = false, joined = false;

	while (may && !fab_list_empty(&all->line)) {
		may = line_serve(all) && !fab_engine_turn_is_over(engine);
		served = true;
	}
	for (int i = 0; i < engine->epoll.event_cnt; i++) {
		struct epoll_event *event = &engine->epoll.events[i];
		struct fab_source *src = event->data.ptr;

		if (src && may) {
			src->ready(src, event->events);
			served = true;
			may = !fab_engine_turn_is_over(engine);
		} else if (src) {
			line_join_reported(src, event->events);
			joined = true;
		}
	}
	turn_end(engine, begun, served || joined);
	return served;
}

static void turn_due(struct fab_timer *timer)
{
	struct fab_engine_outsiders *all = fab_container(timer, struct fab_engine_outsiders, turn);

	fab_outsiders_serve(fab_container(all, struct fab_engine, outsiders));
}

void fab_outsiders_init(struct fab_engine_outsiders *all)
{
	fab_list_init(&all->line);
	fab_timer_init(&all->turn, turn_due);
}
