/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See survey.h. A sleeper wakes for a survey once, some time after the application has last done anything: it may be
 * that what was done just before is what hangs.
 */
#include "common/engine/survey.h"

#include <rdma/fi_errno.h>
#include "base/clock.h"

#define SLEEPER_NS	100000000

void fab_survey_run(struct fab_engine *engine)
{
	struct fi_stats_engine *record = engine->stats.record;
	struct fab_list *link;
	uint64_t cnt = 0;

	fab_list_for_each(&engine->stats.surveys, link) {
		struct fab_survey *survey = fab_container(link, struct fab_survey, link);

		cnt += survey->look(survey);
	}
	record->pending = cnt;
	record->passes = engine->pass_cnt;
	record->surveyed = fab_ticks();
	engine->stats.again_ns = fab_stats_stuck(engine->prov);
}

static void timer_fire(struct fab_timer *timer)
{
	struct fab_engine *engine = fab_container(timer, struct fab_engine, stats.timer);

	engine->stats.due = false;
	engine->stats.fired = true;
	fab_survey_run(engine);
}

/* Ticks go on while a test has a clock of its own, which its surveys would advance, at other times in each run. */
static bool ticks_count(void)
{
	return !FAB_TICKS_ARE_TSC || fab_clock == &fab_system_clock;
}

void fab_stats_idle_rare(struct fab_engine *engine)
{
	if (ticks_count())
		fab_survey_run(engine);
	else
		engine->stats.record->surveyed = fab_ticks();
}

void fab_stats_passed_rare(struct fab_engine *engine, uint64_t now)
{
	struct fi_stats_engine *record = engine->stats.record;
	uint64_t last = record->last_pass, gap = now - last;

	record->last_pass = now;
	/* a thread that was asleep did not fail to call */
	if (!ticks_count() || gap <= FAB_STATS_SLOW || gap <= record->longest_gap || record->last_sleep >= last)
		return;
	if (now - record->surveyed > FAB_STATS_SURVEY)
		fab_survey_run(engine);
	if (!record->pending)
		return;
	record->longest_gap = gap;
	record->longest_gap_end = now;
	fab_stats_gap(gap);
}

void fab_stats_sleep(struct fab_engine *engine)
{
	struct fi_stats_engine *record = engine->stats.record;

	record->last_sleep = fab_ticks();
	if (!ticks_count())
		return;
	if (!engine->stats.due && record->last_sleep - record->surveyed > FAB_STATS_SURVEY / 16)
		fab_survey_run(engine);
	if (fab_list_empty(&engine->stats.surveys) || !fab_list_empty(&engine->stats.timer.link))
		return;
	if (engine->stats.due && record->last_sleep - record->surveyed > FAB_STATS_SURVEY) {
		engine->stats.due = false;
		fab_survey_run(engine);
	}
	if (engine->stats.due || engine->stats.again_ns)
		fab_timer_start(engine, &engine->stats.timer,
				fab_now_ns() + (engine->stats.due ? SLEEPER_NS : engine->stats.again_ns));
}

void fab_survey_add(struct fab_engine *engine, struct fab_survey *survey)
{
	fab_list_add_tail(&engine->stats.surveys, &survey->link);
}

void fab_survey_del(struct fab_survey *survey)
{
	if (survey->link.next)
		fab_list_remove(&survey->link);
}

int fab_stats_engine_begin(struct fab_engine *engine, bool automatic)
{
	fab_list_init(&engine->stats.surveys);
	fab_timer_init(&engine->stats.timer, timer_fire);
	engine->stats.record = fab_stats_engine_open(engine->prov, automatic);
	return engine->stats.record ? 0 : -FI_ENOMEM;
}

void fab_stats_engine_end(struct fab_engine *engine)
{
	if (!fab_engine_is_inherited(engine))
		fab_stats_engine_close(engine->stats.record);
	engine->stats.record = NULL;
}
