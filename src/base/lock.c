/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kinds of fab_lock. The mutex remembers its owner, for fab_lock_held().
 */
#include "base/lock.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static void set_owner(struct fab_lock *lock, pthread_t owner)
{
	__atomic_store_n(&lock->owner, owner, __ATOMIC_RELAXED);
}

static void nothing(struct fab_lock *lock)
{
	(void) lock;
}

static bool none_held(const struct fab_lock *lock)
{
	(void) lock;
	return true;
}

static bool mutex_held(const struct fab_lock *lock)
{
	return __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == pthread_self();
}

static void mutex_lock(struct fab_lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex)) {
		__atomic_add_fetch(&lock->waiter_cnt, 1, __ATOMIC_RELAXED);
		pthread_mutex_lock(&lock->mutex);
		__atomic_sub_fetch(&lock->waiter_cnt, 1, __ATOMIC_RELAXED);
	}
	set_owner(lock, pthread_self());
}

static void mutex_unlock(struct fab_lock *lock)
{
	set_owner(lock, 0);
	pthread_mutex_unlock(&lock->mutex);
}

static void mutex_yield(struct fab_lock *lock)
{
	mutex_unlock(lock);
	while (__atomic_load_n(&lock->waiter_cnt, __ATOMIC_RELAXED))
		sched_yield();
	mutex_lock(lock);
}

/* ---- biased ---- */

static long membarrier(int cmd)
{
	return syscall(SYS_membarrier, cmd, 0, 0);
}

static bool barrier_there;

static void barrier_init(void)
{
	barrier_there = !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
			!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

/* Every thread of the process has passed a full barrier when this returns. */
static void barrier_all(void)
{
	/* registered above; only an exec could have undone that */
	while (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) && errno == EPERM)
		membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

static void biased_lock(struct fab_lock *lock)
{
	mutex_lock(lock);
	if (!lock->inflated) {
		atomic_store_explicit(&lock->barred, true, memory_order_relaxed);
		barrier_all();
		while (atomic_load_explicit(&lock->inside, memory_order_acquire))
			sched_yield();
	}
	lock->by_mutex = true;
}

static void biased_enter(struct fab_lock *lock)
{
	atomic_store_explicit(&lock->inside, false, memory_order_release);
	biased_lock(lock);
}

static void biased_unlock(struct fab_lock *lock)
{
	lock->by_mutex = false;
	if (!lock->inflated)
		atomic_store_explicit(&lock->barred, false, memory_order_release);
	mutex_unlock(lock);
}

static bool biased_held(const struct fab_lock *lock)
{
	return atomic_load_explicit(&lock->inside, memory_order_relaxed) || mutex_held(lock);
}

static void biased_yield(struct fab_lock *lock)
{
	fab_lock_release(lock);
	while (__atomic_load_n(&lock->waiter_cnt, __ATOMIC_RELAXED))
		sched_yield();
	biased_lock(lock);
}

static const struct fab_lock_ops none_ops = {
	.lock = nothing,
	.enter = nothing,
	.unlock = nothing,
	.held = none_held,
	.yield = nothing,
};

static const struct fab_lock_ops mutex_ops = {
	.lock = mutex_lock,
	.enter = mutex_lock,
	.unlock = mutex_unlock,
	.held = mutex_held,
	.yield = mutex_yield,
};

static const struct fab_lock_ops biased_ops = {
	.lock = biased_lock,
	.enter = biased_enter,
	.unlock = biased_unlock,
	.held = biased_held,
	.yield = biased_yield,
};

const struct fab_lock_ops *fab_lock_kinds[] = {
	[FAB_LOCK_NONE] = &none_ops,
	[FAB_LOCK_MUTEX] = &mutex_ops,
	[FAB_LOCK_BIASED] = &biased_ops,
};

static void set_kind(struct fab_lock *lock, enum fab_lock_kind kind)
{
	lock->ops = fab_lock_kinds[kind];
	atomic_init(&lock->barred, kind == FAB_LOCK_MUTEX);
	lock->by_mutex = kind == FAB_LOCK_MUTEX;
}

void fab_lock_init(struct fab_lock *lock, enum fab_lock_kind kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (kind == FAB_LOCK_BIASED) {
		pthread_once(&once, barrier_init);
		if (!barrier_there)
			kind = FAB_LOCK_MUTEX;
	}
	pthread_mutex_init(&lock->mutex, NULL);
	set_owner(lock, 0);
	lock->waiter_cnt = 0;
	atomic_init(&lock->inside, false);
	lock->inflated = false;
	set_kind(lock, kind);
}

void fab_lock_inflate(struct fab_lock *lock)
{
	if (lock->ops == &none_ops)
		set_kind(lock, FAB_LOCK_MUTEX);
	if (lock->ops != &biased_ops)
		return;
	biased_lock(lock);
	lock->inflated = true;
	biased_unlock(lock);
}

void fab_lock_fini(struct fab_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
	lock->ops = NULL;
}
