/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Timers, sorted by time, and the alarm: a timerfd in the epoll set, which wakes sleepers when the first timer is due
 * or something was queued to be sent. It is set only while somebody may sleep.
 */
#include "common/engine/parts.h"

#include <sys/timerfd.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"

void fab_alarm_set(struct fab_engine *engine, uint64_t when_ns)
{
	struct itimerspec spec = { 0 };
	uint64_t now, left;

	if (when_ns == engine->alarm.when_ns)
		return;
	if (when_ns) {
		now = when_ns > FAB_ALARM_NOW ? fab_now_ns() : 0;
		left = when_ns > now ? when_ns - now : 1;
		spec.it_value.tv_sec = (time_t) (left / 1000000000);
		spec.it_value.tv_nsec = (long) (left % 1000000000);
	}
	fab_sock->timerfd_settime(engine->alarm.source.fd, 0, &spec, NULL);
	engine->alarm.when_ns = when_ns;
	if (when_ns == FAB_ALARM_NOW)
		engine->calm = FAB_ENGINE_CHORES;
}

uint64_t fab_timer_first_ns(const struct fab_engine *engine)
{
	const struct fab_timer *timer = fab_list_first(&engine->timers, struct fab_timer, link);

	return timer ? timer->when_ns : 0;
}

void fab_alarm_ready(struct fab_source *src, uint32_t events)
{
	(void) events;
	src->engine->alarm.due = true;
}

void fab_timer_init(struct fab_timer *timer, void (*fire)(struct fab_timer *timer))
{
	fab_list_init(&timer->link);
	timer->fire = fire;
	timer->when_ns = 0;
}

void fab_timer_start(struct fab_engine *engine, struct fab_timer *timer, uint64_t when_ns)
{
	struct fab_list *place;

	fab_list_remove(&timer->link);
	timer->when_ns = fab_max(when_ns, (uint64_t) FAB_ALARM_NOW + 1);
	for (place = engine->timers.prev; place != &engine->timers; place = place->prev) {
		if (fab_container(place, struct fab_timer, link)->when_ns <= timer->when_ns)
			break;
	}
	fab_list_add_after(place, &timer->link);
	if (place == &engine->timers && fab_engine_watched(engine) && engine->alarm.when_ns != FAB_ALARM_NOW)
		fab_alarm_set(engine, timer->when_ns);
}

void fab_timer_stop(struct fab_timer *timer)
{
	fab_list_remove(&timer->link);
}

bool fab_timers_run(struct fab_engine *engine)
{
	uint64_t now = fab_now_ns();
	struct fab_timer *timer;
	bool found = false;

	while ((timer = fab_list_first(&engine->timers, struct fab_timer, link)) && timer->when_ns <= now) {
		fab_list_remove(&timer->link);
		timer->fire(timer);
		found |= timer != &engine->stats.timer;
	}
	if (engine->alarm.due || (engine->alarm.when_ns > FAB_ALARM_NOW && engine->alarm.when_ns <= now))
		fab_alarm_set(engine, fab_engine_watched(engine) ? fab_timer_first_ns(engine) : 0);
	engine->alarm.due = false;
	return found;
}
