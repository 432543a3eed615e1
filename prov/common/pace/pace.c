/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See pace.h. */
#include "common/pace/pace.h"

#include "base/clock.h"

#define MS		1000000ULL	/* ns */
#define YOUNG_NS	(1000 * MS)
#define LOOK_NS		(20 * MS)	/* how often the timer looks whether attempts in line may begin */

static bool pace_has_room(const struct fab_pace *pace)
{
	return pace->young_cnt < pace->young_max();
}

static void pace_look(struct fab_pace *pace, uint64_t when_ns)
{
	pace->look_ns = when_ns;
	fab_timer_start(pace->engine, &pace->timer, when_ns);
}

static void become_young(struct fab_pace *pace, struct fab_turn *turn)
{
	turn->young_ns = fab_now_ns();
	pace->young_cnt++;
	fab_list_add_tail(&pace->young, &turn->link);
}

static void grow_old(struct fab_pace *pace, struct fab_turn *turn)
{
	fab_list_remove(&turn->link);
	turn->young_ns = 0;
	pace->young_cnt--;
}

bool fab_pace_enter(struct fab_pace *pace, struct fab_turn *turn)
{
	if (fab_list_empty(&pace->line) && pace_has_room(pace)) {
		become_young(pace, turn);
		return true;
	}
	if (fab_list_empty(&pace->line))
		pace_look(pace, fab_now_ns() + LOOK_NS);
	fab_list_add_tail(&pace->line, &turn->link);
	return false;
}

void fab_pace_leave(struct fab_pace *pace, struct fab_turn *turn)
{
	uint64_t now;

	if (!turn->young_ns) {
		fab_list_remove(&turn->link);
		return;
	}
	grow_old(pace, turn);
	if (fab_list_empty(&pace->line))
		return;
	now = fab_now_ns();
	if (pace->look_ns > now)
		pace_look(pace, now);
}

static void pace_fire(struct fab_timer *timer)
{
	struct fab_pace *pace = fab_container(timer, struct fab_pace, timer);
	uint64_t now = fab_now_ns();
	struct fab_turn *turn;

	while ((turn = fab_list_first(&pace->young, struct fab_turn, link)) && now - turn->young_ns >= YOUNG_NS)
		grow_old(pace, turn);
	/* an attempt that fails at once is not put in line again before this loop ends */
	while ((turn = fab_list_first(&pace->line, struct fab_turn, link)) && pace_has_room(pace)) {
		fab_list_remove(&turn->link);
		become_young(pace, turn);
		pace->begin(turn);
	}
	if (turn)
		pace_look(pace, now + LOOK_NS);
}

void fab_turn_init(struct fab_turn *turn)
{
	fab_list_init(&turn->link);
	turn->young_ns = 0;
}

void fab_pace_init(struct fab_pace *pace, struct fab_engine *engine, uint32_t (*young_max)(void),
		   void (*begin)(struct fab_turn *turn))
{
	*pace = (struct fab_pace) { .engine = engine, .young_max = young_max, .begin = begin };
	fab_list_init(&pace->line);
	fab_list_init(&pace->young);
	fab_timer_init(&pace->timer, pace_fire);
}

void fab_pace_stop(struct fab_pace *pace)
{
	fab_timer_stop(&pace->timer);
}
