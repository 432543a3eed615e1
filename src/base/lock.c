/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The four kinds of struct fab_lock, each a table of operations. lock.h says how they work. The thread that has the
 * mutex is noted in fab_lock.owner, for fab_lock_held().
 */
#include "base/lock.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"

#define VISITS		256		/* an owned lock that others acquire so many times ... */
#define VISITS_NS	256000000	/* ... within this time becomes a mutex */

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

/* Set *barred and wait until *inside is false. Nobody enters until *barred is false again. Mutex held. */
static void bar(_Atomic bool *barred, _Atomic bool *inside)
{
	atomic_store_explicit(barred, true, memory_order_relaxed);
	barrier_all();
	while (atomic_load_explicit(inside, memory_order_acquire))
		sched_yield();
}

static void biased_lock(struct fab_lock *lock)
{
	mutex_lock(lock);
	if (!lock->inflated)
		bar(&lock->barred, &lock->inside);
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

/*
 * ---- owned ----
 *
 * A thread may read that it is the owner, be preempted before it sets its `inside` flag, and continue when other
 * threads have had the lock in between. Either it set the flag before their memory barrier, and they wait for it. Or it
 * then reads `barred` as true. Or it reads `barred` as false because one of them released the lock: it acquires that
 * release, so it sees that the owner is now another thread, and does not enter.
 *
 * When an owner ends, the C library may give its pthread_t to a new thread, which is then taken for the owner. That is
 * harmless: a pthread_t is an address in the thread's stack, and the C library orders the reuse of that memory after
 * everything that the old thread did. After a fork() the only thread of the child has the pthread_t of the thread that
 * forked, and owns what that one owned. If another thread owned the lock and was inside, the lock stays held for ever
 * in the child, as a mutex does.
 */

static unsigned owner_now(const struct fab_lock *lock)
{
	return atomic_load_explicit(&lock->owners.now, memory_order_acquire);
}

/* Enter as the owner, without the mutex. False: the calling thread is not the owner, or the owner may not enter. */
static inline bool owner_comes(struct fab_lock *lock)
{
	struct fab_lock_owners *owners = &lock->owners;
	unsigned now = owner_now(lock);

	if (owners->thread[now] != pthread_self())
		return false;
	atomic_store_explicit(&owners->inside[now], true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);	/* as in fab_lock_enter() */
	if (__builtin_expect(atomic_load_explicit(&owners->barred, memory_order_acquire), 0) ||
	    __builtin_expect(owner_now(lock) != now, 0)) {
		atomic_store_explicit(&owners->inside[now], false, memory_order_release);
		return false;
	}
	owners->entered = true;
	return true;
}

/* Make the calling thread the owner at index now; FAB_LOCK_OWNERS + 1: no thread ever owns the lock again. Mutex held,
 * nobody else inside. */
static void set_owner_now(struct fab_lock *lock, unsigned now)
{
	if (now <= FAB_LOCK_OWNERS)
		lock->owners.thread[now] = pthread_self();
	atomic_store_explicit(&lock->owners.now, now, memory_order_release);
}

static void nobody_owns(struct fab_lock *lock)
{
	set_owner_now(lock, FAB_LOCK_OWNERS + 1);
}

/* Count that another thread acquired the lock from an owner. True if that happens so often that a mutex is better.
 * Mutex held. */
static bool visited_often(struct fab_lock_owners *owners)
{
	uint64_t before = owners->visits_ns;

	if (owners->visit_cnt++ % VISITS)
		return false;
	owners->visits_ns = fab_now_ns();
	return owners->visit_cnt > 1 && owners->visits_ns - before < VISITS_NS;
}

/* Take the lock by its mutex. True if another thread was the owner and had to be kept out. */
static bool take_owned(struct fab_lock *lock)
{
	struct fab_lock_owners *owners = &lock->owners;
	unsigned now;
	bool stop;

	mutex_lock(lock);
	now = owner_now(lock);
	stop = owners->thread[now] && owners->thread[now] != pthread_self();
	if (stop)
		bar(&owners->barred, &owners->inside[now]);
	owners->entered = false;
	return stop;
}

static void owned_lock(struct fab_lock *lock)
{
	if (!owner_comes(lock) && take_owned(lock) && visited_often(&lock->owners))
		nobody_owns(lock);
}

static void owned_enter(struct fab_lock *lock)
{
	unsigned now;

	if (owner_comes(lock))
		return;
	take_owned(lock);
	now = owner_now(lock);
	if (now <= FAB_LOCK_OWNERS && lock->owners.thread[now] != pthread_self())
		set_owner_now(lock, now + 1);
}

static void owned_unlock(struct fab_lock *lock)
{
	struct fab_lock_owners *owners = &lock->owners;

	if (owners->entered) {
		atomic_store_explicit(&owners->inside[owner_now(lock)], false, memory_order_release);
		return;
	}
	atomic_store_explicit(&owners->barred, false, memory_order_release);
	mutex_unlock(lock);
}

static bool owned_held(const struct fab_lock *lock)
{
	unsigned now = owner_now(lock);

	return (lock->owners.thread[now] == pthread_self() &&
		atomic_load_explicit(&lock->owners.inside[now], memory_order_relaxed)) || mutex_held(lock);
}

static void owned_yield(struct fab_lock *lock)
{
	owned_unlock(lock);
	while (__atomic_load_n(&lock->waiter_cnt, __ATOMIC_RELAXED))
		sched_yield();
	take_owned(lock);
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

static const struct fab_lock_ops owned_ops = {
	.lock = owned_lock,
	.enter = owned_enter,
	.unlock = owned_unlock,
	.held = owned_held,
	.yield = owned_yield,
};

const struct fab_lock_ops *fab_lock_kinds[] = {
	[FAB_LOCK_NONE] = &none_ops,
	[FAB_LOCK_MUTEX] = &mutex_ops,
	[FAB_LOCK_BIASED] = &biased_ops,
	[FAB_LOCK_OWNED] = &owned_ops,
};

static void set_kind(struct fab_lock *lock, enum fab_lock_kind kind)
{
	lock->ops = fab_lock_kinds[kind];
	lock->by_mutex = kind == FAB_LOCK_MUTEX || kind == FAB_LOCK_OWNED;
	atomic_init(&lock->barred, lock->by_mutex);
}

void fab_lock_init(struct fab_lock *lock, enum fab_lock_kind kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (kind == FAB_LOCK_BIASED || kind == FAB_LOCK_OWNED) {
		pthread_once(&once, barrier_init);
		if (!barrier_there)
			kind = FAB_LOCK_MUTEX;
	}
	pthread_mutex_init(&lock->mutex, NULL);
	set_owner(lock, 0);
	lock->waiter_cnt = 0;
	atomic_init(&lock->inside, false);
	lock->inflated = false;
	memset(&lock->owners, 0, sizeof(lock->owners));
	set_kind(lock, kind);
}

void fab_lock_inflate(struct fab_lock *lock)
{
	if (lock->ops == &none_ops)
		set_kind(lock, FAB_LOCK_MUTEX);
	if (lock->ops == &owned_ops) {
		take_owned(lock);
		nobody_owns(lock);
		owned_unlock(lock);
	}
	if (lock->ops == &biased_ops) {
		biased_lock(lock);
		lock->inflated = true;
		biased_unlock(lock);
	}
}

void fab_lock_fini(struct fab_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
	lock->ops = NULL;
}
