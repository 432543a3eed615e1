/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engines that an EQ drives: its own, and those of the endpoints bound to it. Also the guard of its wait object,
 * which makes a sleeper on the EQ a watcher of all these engines.
 */
#include "common/queue/eq_engines.h"

#include <assert.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>

/* An engine that an EQ drives. It lives from the first fab_eq_add_engine() to the last fab_eq_del_engine(), and as long
 * as a thread drives it. */
struct fab_eq_driven {
	struct fab_list link;
	struct fab_engine *engine;	/* borrowed from the domain of the endpoints bound */
	uint32_t cnt;			/* endpoints on it that are bound here; 0: being removed */
	uint32_t busy;			/* threads that drive it now */
};

static struct fab_eq *eq_of_wait(struct fab_wait *wait)
{
	return fab_container(wait, struct fab_eq, wait);
}

static void eq_engines_look(struct fab_engine *engine)
{
	fab_engine_lock(engine);
	engine->epoll.ask = true;
	fab_engine_run(engine);
	fab_engine_unlock(engine);
}

static void last_look(struct fab_engine *engine)
{
	fab_engine_lock(engine);
	fab_engine_last_look(engine);
	fab_engine_unlock(engine);
}

static void prepare_sleep(struct fab_engine *engine)
{
	fab_engine_lock(engine);
	fab_engine_prepare_sleep(engine);
	fab_engine_unlock(engine);
}

/* Call fn for every engine that has no thread. No lock held: an engine's lock is taken before eq->lock, so that `busy`
 * keeps each engine in place instead. */
static void for_each_engine(struct fab_eq *eq, void (*fn)(struct fab_engine *engine))
{
	struct fab_eq_driven *driven;
	struct fab_list *link;

	fn(&eq->engine);
	pthread_mutex_lock(&eq->lock);
	fab_list_for_each(&eq->engines, link) {
		driven = fab_container(link, struct fab_eq_driven, link);
		if (!driven->cnt || driven->engine->thread.run)
			continue;
		driven->busy++;
		pthread_mutex_unlock(&eq->lock);
		fn(driven->engine);
		pthread_mutex_lock(&eq->lock);
		if (!--driven->busy && !driven->cnt)
			pthread_cond_broadcast(&eq->idle);
	}
	pthread_mutex_unlock(&eq->lock);
}

void fab_eq_run(struct fab_eq *eq)
{
	for_each_engine(eq, eq_engines_look);
}

/* ---- engines of endpoints ---- */

static struct fab_eq_driven *find_engine(struct fab_eq *eq, const struct fab_engine *engine)
{
	struct fab_eq_driven *driven;
	struct fab_list *link;

	fab_list_for_each(&eq->engines, link) {
		driven = fab_container(link, struct fab_eq_driven, link);
		if (driven->engine == engine && driven->cnt)
			return driven;
	}
	return NULL;
}

/* Let threads that sleep on the EQ wake up for the engine, too. */
static int nest_engine(struct fab_eq *eq, struct fab_engine *engine)
{
	if (eq->wait.epfd < 0 || engine->thread.run)
		return 0;
	return fab_wait_nest(eq->wait.epfd, engine->epfd);
}

static int add_engine_locked(struct fab_eq *eq, struct fab_engine *engine)
{
	struct fab_eq_driven *driven = find_engine(eq, engine);
	int ret;

	if (driven) {
		driven->cnt++;
		return 0;
	}
	driven = calloc(1, sizeof(*driven));
	if (!driven)
		return -FI_ENOMEM;
	ret = nest_engine(eq, engine);
	if (ret) {
		free(driven);
		return ret;
	}
	driven->engine = engine;
	driven->cnt = 1;
	fab_list_add_tail(&eq->engines, &driven->link);
	if (eq->wait.armed)
		fab_engine_watch(engine);
	return 0;
}

int fab_eq_add_engine(struct fab_eq *eq, struct fab_engine *engine)
{
	bool watched;
	int ret;

	if (engine == &eq->engine)
		return 0;
	if (fab_wait_has_thread(&eq->wait))
		fab_engine_share(engine);
	pthread_mutex_lock(&eq->lock);
	ret = add_engine_locked(eq, engine);
	watched = eq->wait.armed;
	pthread_mutex_unlock(&eq->lock);
	if (!ret && watched)
		prepare_sleep(engine);	/* for threads that sleep already */
	return ret;
}

void fab_eq_del_engine(struct fab_eq *eq, struct fab_engine *engine)
{
	struct fab_eq_driven *driven;

	if (engine == &eq->engine)
		return;
	pthread_mutex_lock(&eq->lock);
	driven = find_engine(eq, engine);
	assert(driven);
	if (--driven->cnt) {
		pthread_mutex_unlock(&eq->lock);
		return;
	}
	if (eq->wait.epfd >= 0 && !engine->thread.run && !fab_engine_is_inherited(engine))
		fab_wait_unnest(eq->wait.epfd, engine->epfd);
	if (eq->wait.armed)
		fab_engine_unwatch(engine);
	while (driven->busy)
		pthread_cond_wait(&eq->idle, &eq->lock);
	fab_list_remove(&driven->link);
	pthread_mutex_unlock(&eq->lock);
	free(driven);
}

/* ---- the guard of the wait object ---- */

static void guard_lock(struct fab_wait *wait)
{
	pthread_mutex_lock(&eq_of_wait(wait)->lock);
}

static void guard_unlock(struct fab_wait *wait)
{
	pthread_mutex_unlock(&eq_of_wait(wait)->lock);
}

static void guard_run(struct fab_wait *wait)
{
	for_each_engine(eq_of_wait(wait), last_look);
}

static void guard_watch(struct fab_wait *wait, bool on)
{
	void (*change)(struct fab_engine *engine) = on ? fab_engine_watch : fab_engine_unwatch;
	struct fab_eq *eq = eq_of_wait(wait);
	struct fab_eq_driven *driven;
	struct fab_list *link;

	change(&eq->engine);
	fab_list_for_each(&eq->engines, link) {
		driven = fab_container(link, struct fab_eq_driven, link);
		if (driven->cnt)
			change(driven->engine);
	}
}

static void guard_pause(struct fab_wait *wait)
{
	guard_unlock(wait);
	for_each_engine(eq_of_wait(wait), prepare_sleep);
}

const struct fab_wait_guard fab_eq_guard = {
	.lock = guard_lock,
	.enter = guard_lock,
	.unlock = guard_unlock,
	.run = guard_run,
	.watch = guard_watch,
	.pause = guard_pause,
};
