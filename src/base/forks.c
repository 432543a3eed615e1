/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See forks.h. The locks of all guards are taken before a fork. If one of them is not free, all are released again
 * before the next try, so they may be taken in any order elsewhere.
 */
#include "base/forks.h"

#include <pthread.h>
#include <time.h>
#include "base/clock.h"

#define PATIENCE_MS	1000
#define NAP_NS		20000

uint32_t fab_fork_cnt;

static pthread_mutex_t guards_lock = PTHREAD_MUTEX_INITIALIZER;	/* for guards; held during a fork */
static struct fab_list guards = FAB_LIST_INIT(guards);

static void guards_release(void)
{
	struct fab_list *link;

	fab_list_for_each(&guards, link) {
		struct fab_fork_guard *guard = fab_container(link, struct fab_fork_guard, link);

		if (guard->taken)
			fab_lock_release(guard->lock);
		guard->taken = false;
	}
}

/* Take the locks that are free and not this thread's. The first one that another thread has, or NULL. */
static struct fab_lock *guards_take(void)
{
	struct fab_lock *busy = NULL;
	struct fab_list *link;

	fab_list_for_each(&guards, link) {
		struct fab_fork_guard *guard = fab_container(link, struct fab_fork_guard, link);

		guard->taken = !fab_lock_held(guard->lock) && fab_lock_try_acquire(guard->lock);
		if (!guard->taken && !busy && !fab_lock_held(guard->lock))
			busy = guard->lock;
	}
	return busy;
}

static void forks_prepare(void)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct fab_lock *busy;
	uint64_t end_ms;

	pthread_mutex_lock(&guards_lock);
	if (fab_list_empty(&guards))
		return;
	end_ms = fab_now_ms() + PATIENCE_MS;
	while ((busy = guards_take()) && fab_now_ms() < end_ms) {
		guards_release();
		fab_lock_wish(busy, true);
		nanosleep(&nap, NULL);
		fab_lock_wish(busy, false);
	}
}

static void forks_parent(void)
{
	guards_release();
	pthread_mutex_unlock(&guards_lock);
}

static void forks_child(void)
{
	struct fab_list *link;

	fab_fork_cnt++;
	fab_list_for_each(&guards, link)
		fab_lock_forget_waiters(fab_container(link, struct fab_fork_guard, link)->lock);
	forks_parent();
}

__attribute__((constructor)) static void forks_watch(void)
{
	pthread_atfork(forks_prepare, forks_parent, forks_child);
}

void fab_fork_guard_add(struct fab_fork_guard *guard, struct fab_lock *lock)
{
	guard->lock = lock;
	guard->taken = false;
	pthread_mutex_lock(&guards_lock);
	fab_list_add_tail(&guards, &guard->link);
	pthread_mutex_unlock(&guards_lock);
}

void fab_fork_guard_remove(struct fab_fork_guard *guard)
{
	if (!guard->lock)
		return;
	pthread_mutex_lock(&guards_lock);
	fab_list_remove(&guard->link);
	pthread_mutex_unlock(&guards_lock);
	guard->lock = NULL;
}
