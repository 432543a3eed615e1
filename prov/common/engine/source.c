/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sources: the entry of each in epoll, and which of them are hot, so that a pass reads them before it asks epoll. Each
 * change computes the limits of the next passes, so that a pass only compares numbers.
 */
#include "common/engine/outsiders.h"
#include "common/engine/parts.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>
#include "base/bits.h"
#include "base/sock.h"

#define HOT_QUIET_MAX		512	/* passes without data after which a source is not hot any more ... */
#define HOT_QUIET_SHARED	2	/* ... if there are other sources: epoll is asked then anyway, and is cheaper
					 * than a recv() without data */

/* Change the entry of src in epoll. */
static int source_ctl(struct fab_engine *engine, int op, struct fab_source *src)
{
	struct epoll_event event = { .events = src->events, .data.ptr = src };

	return fab_sock->epoll_ctl(engine->epfd, op, src->fd, &event) ? -errno : 0;
}

int fab_source_watch(struct fab_source *src, bool watch)
{
	return source_ctl(src->engine, watch ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, src);
}

static unsigned waits_to_write(uint32_t events)
{
	return (events & EPOLLOUT) != 0;
}

/* The only hot source, if it is all that a pass reads, and glances may do so. */
static struct fab_source *only_hot(const struct fab_engine *engine)
{
	struct fab_source *src = fab_list_first(&engine->sources.hot, struct fab_source, hot);

	return engine->sources.hot_cnt == 1 && fab_list_empty(&engine->polls) && src->glance_len ? src : NULL;
}

void fab_engine_sources_changed(struct fab_engine *engine)
{
	const struct fab_engine_sources *all = &engine->sources;
	unsigned most = fab_epoll_passes(engine);
	bool nothing_hot = !all->hot_cnt && fab_list_empty(&engine->polls);
	bool elsewhere = all->out_cnt || all->poll_cnt > all->hot_cnt || !fab_list_empty(&engine->outsiders.line);

	engine->epoll.limit[false] = nothing_hot || elsewhere ? 0 : fab_min(engine->epoll.gap, most);
	engine->epoll.limit[true] = fab_sources_crowded(engine) ? 0 : elsewhere ? FAB_EPOLL_SOON : most;
	engine->sources.quiet_max = all->poll_cnt > 1 ? HOT_QUIET_SHARED : HOT_QUIET_MAX;
	engine->glance.fn = all->hot_cnt ? NULL : fab_only_words(engine);
	engine->glance.src = elsewhere ? NULL : only_hot(engine);
	fab_engine_no_glance(engine);
}

/* src is in epoll: count it. */
static void source_enter(struct fab_engine *engine, struct fab_source *src)
{
	src->engine = engine;
	src->quiet = 0;
	src->due = 0;
	src->aside = false;
	fab_list_init(&src->hot);
	engine->sources.cnt++;
	engine->sources.poll_cnt += src->poll != NULL;
	engine->sources.out_cnt += waits_to_write(src->events);
	fab_engine_sources_changed(engine);
}

int fab_source_add(struct fab_engine *engine, struct fab_source *src, uint32_t events)
{
	int ret;

	assert(!src->engine);
	src->events = events;
	ret = source_ctl(engine, EPOLL_CTL_ADD, src);
	if (!ret)
		source_enter(engine, src);
	return ret;
}

void fab_source_mod(struct fab_source *src, uint32_t events)
{
	struct fab_engine *engine = src->engine;

	if (src->events == events)
		return;
	engine->sources.out_cnt += waits_to_write(events) - waits_to_write(src->events);
	fab_engine_sources_changed(engine);
	src->events = events;
	if (!src->aside)
		source_ctl(engine, EPOLL_CTL_MOD, src);
}

void fab_source_cool(struct fab_source *src)
{
	if (fab_list_empty(&src->hot) || src->due)
		return;
	fab_list_remove(&src->hot);
	src->engine->sources.hot_cnt--;
	fab_engine_sources_changed(src->engine);
}

/* Undo source_enter(). What epoll has reported of it is not handled any more. */
static void source_leave(struct fab_source *src)
{
	struct fab_engine *engine = src->engine;

	fab_source_cool(src);
	if (src->due)
		fab_source_leave_line(src);
	for (int i = 0; i < engine->epoll.event_cnt; i++) {
		if (engine->epoll.events[i].data.ptr == src)
			engine->epoll.events[i].data.ptr = NULL;
	}
	engine->sources.cnt--;
	engine->sources.poll_cnt -= src->poll != NULL;
	engine->sources.out_cnt -= waits_to_write(src->events);
	fab_engine_sources_changed(engine);
	src->engine = NULL;
}

void fab_source_del(struct fab_source *src)
{
	if (!src->engine)
		return;
	if (!src->aside)
		source_ctl(src->engine, EPOLL_CTL_DEL, src);
	source_leave(src);
}

int fab_source_move(struct fab_source *from, struct fab_source *to, uint32_t events)
{
	struct fab_engine *engine = from->engine;
	int ret;

	assert(from->fd == to->fd && !to->engine);
	to->events = events;
	ret = source_ctl(engine, from->aside ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, to);
	if (ret)
		return ret;
	source_leave(from);
	source_enter(engine, to);
	return 0;
}

/* The hot source that has been quiet for the longest time. */
static struct fab_source *coolest(struct fab_engine *engine)
{
	struct fab_source *best = NULL, *src;
	struct fab_list *link;

	fab_list_for_each(&engine->sources.hot, link) {
		src = fab_container(link, struct fab_source, hot);
		if (!best || src->quiet > best->quiet)
			best = src;
	}
	return best;
}

void fab_source_heat(struct fab_source *src)
{
	struct fab_engine *engine = src->engine;
	struct fab_source *victim;

	if (!engine || !src->poll || fab_sources_crowded(engine) || (src->outsider && fab_outsiders_step_back(engine)))
		return;
	if (engine->sources.hot_cnt == FAB_HOT_MAX) {
		victim = coolest(engine);
		if (victim->quiet < 2)
			return;		/* all hot sources are busy: epoll serves this one */
		fab_source_cool(victim);
	}
	fab_list_add_tail(&engine->sources.hot, &src->hot);
	engine->sources.hot_cnt++;
	fab_engine_sources_changed(engine);
}

void fab_poll_add(struct fab_engine *engine, struct fab_poll_fn *fn)
{
	fab_list_add_tail(&engine->polls, &fn->link);
	fab_engine_sources_changed(engine);
}

void fab_poll_del(struct fab_engine *engine, struct fab_poll_fn *fn)
{
	fab_list_remove(&fn->link);
	fab_engine_sources_changed(engine);
}
