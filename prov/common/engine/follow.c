/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Engines that follow another one, see engine.h. Their locks are taken in one order, engine before lead.
 */
#include "common/engine/engine.h"

#include <sys/epoll.h>

/* A thread that runs a pass of engine may sleep on it next without a look at lead. So lead is prepared, too. */
static bool follow_poll(struct fab_poll_fn *fn)
{
	struct fab_follow *follow = fab_container(fn, struct fab_follow, fn);
	struct fab_engine *lead = follow->lead;
	bool found;

	lead->epoll.ask |= follow->engine->epoll.ask;
	found = fab_engine_run(lead);
	fab_engine_prepare_sleep(lead);
	return found;
}

/* lead->epfd is readable: the next pass runs one of lead. */
static void follow_ready(struct fab_source *source, uint32_t events)
{
	struct fab_follow *follow = fab_container(source, struct fab_follow, source);

	(void) events;
	follow->lead->epoll.ask = true;
	fab_engine_no_glance(follow->lead);
}

int fab_engine_follow(struct fab_follow *follow, struct fab_engine *engine, struct fab_engine *lead)
{
	int ret;

	if (!engine->lead)
		fab_lock_lead(&engine->lock, &lead->lock);
	fab_engine_lock(engine);
	*follow = (struct fab_follow) {
		.fn.poll = follow_poll, .source = { .fd = lead->epfd, .ready = follow_ready }, .engine = engine,
	};
	engine->lead = lead;
	engine->tell_at_once = lead->tell_at_once = true;
	fab_engine_set_direct(engine, NULL);
	ret = fab_source_add(engine, &follow->source, EPOLLIN);
	if (!ret) {
		follow->lead = lead;
		fab_engine_watch(lead);
		fab_poll_add(engine, &follow->fn);
		if (atomic_load(&engine->watchers))
			fab_engine_prepare_sleep(engine);	/* threads sleep already */
	}
	fab_engine_unlock(engine);
	return ret;
}

void fab_engine_unfollow(struct fab_follow *follow)
{
	if (!follow->lead)
		return;
	fab_engine_lock(follow->engine);
	fab_source_del(&follow->source);
	fab_poll_del(follow->engine, &follow->fn);
	fab_engine_unwatch(follow->lead);
	fab_engine_unlock(follow->engine);
	follow->lead = NULL;
}
