/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engines that an EQ drives: its own, and those of the endpoints bound to it. And the guard of its wait object,
 * which makes sleepers on the EQ watchers of all of them.
 */
#include "common/queue/eq_engines.h"

#include <assert.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>

/* Lives from the first fab_eq_add_engine() to the last fab_eq_del_engine(), and as long as somebody drives it. */
struct fab_eq_engine {
	struct fab_list link;
	struct fab_progress *progress;	/* borrowed from the domain of the endpoints bound */
	uint32_t cnt;			/* of these endpoints; 0: goes away */
	uint32_t busy;			/* threads that drive it */
};

static struct fab_eq *eq_of_wait(struct fab_wait *wait)
{
	return fab_container(wait, struct fab_eq, wait);
}

static void look(struct fab_progress *progress)
{
	fab_progress_lock(progress);
	progress->ask_epoll = true;
	fab_progress_run(progress);
	fab_progress_unlock(progress);
}

static void last_look(struct fab_progress *progress)
{
	fab_progress_lock(progress);
	fab_progress_last_look(progress);
	fab_progress_unlock(progress);
}

static void prepare_sleep(struct fab_progress *progress)
{
	fab_progress_lock(progress);
	fab_progress_prepare_sleep(progress);
	fab_progress_unlock(progress);
}

/* Call fn for every engine that needs us. No lock held: eq->lock comes after theirs, so each is held in place by
 * `busy`. */
static void for_each_engine(struct fab_eq *eq, void (*fn)(struct fab_progress *progress))
{
	struct fab_eq_engine *engine;
	struct fab_list *link;

	fn(&eq->progress);
	pthread_mutex_lock(&eq->lock);
	fab_list_for_each(&eq->engines, link) {
		engine = fab_container(link, struct fab_eq_engine, link);
		if (!engine->cnt || engine->progress->thread_run)
			continue;
		engine->busy++;
		pthread_mutex_unlock(&eq->lock);
		fn(engine->progress);
		pthread_mutex_lock(&eq->lock);
		if (!--engine->busy && !engine->cnt)
			pthread_cond_broadcast(&eq->idle);
	}
	pthread_mutex_unlock(&eq->lock);
}

void fab_eq_run(struct fab_eq *eq)
{
	for_each_engine(eq, look);
}

/* ---- those of endpoints ---- */

static struct fab_eq_engine *find_engine(struct fab_eq *eq, const struct fab_progress *progress)
{
	struct fab_eq_engine *engine;
	struct fab_list *link;

	fab_list_for_each(&eq->engines, link) {
		engine = fab_container(link, struct fab_eq_engine, link);
		if (engine->progress == progress && engine->cnt)
			return engine;
	}
	return NULL;
}

/* Let those who sleep on the EQ wake for the engine, too. */
static int nest_engine(struct fab_eq *eq, struct fab_progress *progress)
{
	if (eq->wait.epfd < 0 || progress->thread_run)
		return 0;
	return fab_wait_nest(eq->wait.epfd, progress->epfd);
}

static int add_engine_locked(struct fab_eq *eq, struct fab_progress *progress)
{
	struct fab_eq_engine *engine = find_engine(eq, progress);
	int ret;

	if (engine) {
		engine->cnt++;
		return 0;
	}
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -FI_ENOMEM;
	ret = nest_engine(eq, progress);
	if (ret) {
		free(engine);
		return ret;
	}
	engine->progress = progress;
	engine->cnt = 1;
	fab_list_add_tail(&eq->engines, &engine->link);
	if (eq->wait.armed)
		fab_progress_watch(progress);
	return 0;
}

int fab_eq_add_engine(struct fab_eq *eq, struct fab_progress *progress)
{
	bool watched;
	int ret;

	if (progress == &eq->progress)
		return 0;
	if (fab_wait_has_thread(&eq->wait))
		fab_progress_share(progress);
	pthread_mutex_lock(&eq->lock);
	ret = add_engine_locked(eq, progress);
	watched = eq->wait.armed;
	pthread_mutex_unlock(&eq->lock);
	if (!ret && watched)
		prepare_sleep(progress);	/* for those who sleep already */
	return ret;
}

void fab_eq_del_engine(struct fab_eq *eq, struct fab_progress *progress)
{
	struct fab_eq_engine *engine;

	if (progress == &eq->progress)
		return;
	pthread_mutex_lock(&eq->lock);
	engine = find_engine(eq, progress);
	assert(engine);
	if (--engine->cnt) {
		pthread_mutex_unlock(&eq->lock);
		return;
	}
	if (eq->wait.epfd >= 0 && !progress->thread_run)
		fab_wait_unnest(eq->wait.epfd, progress->epfd);
	if (eq->wait.armed)
		fab_progress_unwatch(progress);
	while (engine->busy)
		pthread_cond_wait(&eq->idle, &eq->lock);
	fab_list_remove(&engine->link);
	pthread_mutex_unlock(&eq->lock);
	free(engine);
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
	void (*change)(struct fab_progress *progress) = on ? fab_progress_watch : fab_progress_unwatch;
	struct fab_eq *eq = eq_of_wait(wait);
	struct fab_eq_engine *engine;
	struct fab_list *link;

	change(&eq->progress);
	fab_list_for_each(&eq->engines, link) {
		engine = fab_container(link, struct fab_eq_engine, link);
		if (engine->cnt)
			change(engine->progress);
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
