/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two kinds of fab_lock. The mutex remembers its owner, for fab_lock_held().
 */
#include "base/lock.h"

#include <sched.h>

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

static const struct fab_lock_ops none_ops = {
	.lock = nothing,
	.unlock = nothing,
	.held = none_held,
	.yield = nothing,
};

static const struct fab_lock_ops mutex_ops = {
	.lock = mutex_lock,
	.unlock = mutex_unlock,
	.held = mutex_held,
	.yield = mutex_yield,
};

const struct fab_lock_ops *fab_lock_kinds[] = {
	[FAB_LOCK_NONE] = &none_ops,
	[FAB_LOCK_MUTEX] = &mutex_ops,
};

void fab_lock_init(struct fab_lock *lock, enum fab_lock_kind kind)
{
	lock->ops = fab_lock_kinds[kind];
	pthread_mutex_init(&lock->mutex, NULL);
	set_owner(lock, 0);
	lock->waiter_cnt = 0;
}

void fab_lock_fini(struct fab_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
	lock->ops = NULL;
}
