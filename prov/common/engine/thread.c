/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The thread of FI_PROGRESS_AUTO. It sleeps on the epoll set, and stays away while the application polls.
 */
#include "common/engine/parts.h"
#include "common/engine/survey.h"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include "base/sock.h"

#define SPINS_AWAY		32	/* passes by the application, without sleeping, after which the thread pauses */
#define AWAY_NS			250000	/* length of a pause, after which the thread checks again */

/* Sleep until a source is ready, something is queued to be sent, or a timer is due. Lock held on entry and return. */
static void thread_sleep(struct fab_engine *engine)
{
	struct pollfd pollfd = { .fd = engine->epfd, .events = POLLIN };

	fab_engine_watch(engine);
	fab_engine_prepare_sleep(engine);
	fab_engine_unlock(engine);
	fab_sock->poll(&pollfd, 1, -1);
	fab_engine_lock(engine);
	fab_engine_unwatch(engine);
	fab_survey_woken(engine);
}

/* Let waiting threads take the lock, between two passes. */
static void thread_let_others_in(struct fab_engine *engine)
{
	if (!fab_list_empty(&engine->signals))
		fab_engine_signal(engine);
	fab_lock_yield(&engine->lock);
}

/* Pause while the application polls, and leave the work to it. Lock held on entry and return. */
static void thread_keep_away(struct fab_engine *engine)
{
	const struct timespec away = { .tv_nsec = AWAY_NS };
	uint32_t before, now = atomic_load_explicit(&engine->spins, memory_order_relaxed);

	fab_engine_unlock(engine);
	do {
		before = now;
		nanosleep(&away, NULL);
		now = atomic_load_explicit(&engine->spins, memory_order_relaxed);
	} while (now != before && now >= SPINS_AWAY);
	fab_engine_lock(engine);
	atomic_store_explicit(&engine->spins, 0, memory_order_relaxed);
}

void *fab_engine_thread_main(void *arg)
{
	struct fab_engine *engine = arg;

	fab_engine_lock(engine);
	while (!engine->thread.stop) {
		if (fab_engine_pass_and_ask(engine))
			thread_let_others_in(engine);
		else
			thread_sleep(engine);
		if (atomic_load_explicit(&engine->spins, memory_order_relaxed) >= SPINS_AWAY)
			thread_keep_away(engine);
	}
	fab_engine_unlock(engine);
	return NULL;
}

int fab_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg, const char *name)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return -ret;
	if (name)
		pthread_setname_np(*thread, name);
	return 0;
}

void fab_engine_thread_join(struct fab_engine *engine)
{
	fab_engine_lock(engine);
	engine->thread.stop = true;
	fab_alarm_set(engine, FAB_ALARM_NOW);
	fab_engine_unlock(engine);
	pthread_join(engine->thread.id, NULL);
	engine->thread.run = false;
}
