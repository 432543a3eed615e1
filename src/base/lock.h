/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock whose kind is chosen once, when it is initialised: a mutex, or nothing at all where the application promised
 * to serialise its calls. Code that takes it does not know, nor ask, which it is.
 */
#ifndef FAB_BASE_LOCK_H
#define FAB_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

enum fab_lock_kind {
	FAB_LOCK_NONE,	/* the caller serialises: lock and unlock do nothing */
	FAB_LOCK_MUTEX,
};

struct fab_lock;

/* What a kind of lock does. */
struct fab_lock_ops {
	void (*lock)(struct fab_lock *lock);
	void (*unlock)(struct fab_lock *lock);
	bool (*held)(const struct fab_lock *lock);
	void (*yield)(struct fab_lock *lock);
};

/* Operations of each kind, by enum fab_lock_kind, taken up by fab_lock_init(). A test may put its own into a slot
 * before it opens anything, for instance to count how often a mutex is taken, and calls the old ones from there. */
extern const struct fab_lock_ops *fab_lock_kinds[];

struct fab_lock {
	const struct fab_lock_ops *ops;
	pthread_mutex_t mutex;	/* of FAB_LOCK_MUTEX; the owner may wait on a condition with it */
	pthread_t owner;	/* written with the mutex held; 0: nobody */
	unsigned waiter_cnt;	/* threads that found the mutex taken; atomic */
};

/* Make an unlocked lock. fab_lock_fini() of a lock that somebody holds or waits for is a bug of the caller. */
void fab_lock_init(struct fab_lock *lock, enum fab_lock_kind kind);
void fab_lock_fini(struct fab_lock *lock);

/* Take the lock, waiting as long as it takes. Not recursive. */
static inline void fab_lock_acquire(struct fab_lock *lock)
{
	lock->ops->lock(lock);
}

static inline void fab_lock_release(struct fab_lock *lock)
{
	lock->ops->unlock(lock);
}

/* For a thread that holds the lock most of the time: release it, stay out until those who wait have had it, take it
 * again. (With a mutex alone it would have it again before they are awake.) */
static inline void fab_lock_yield(struct fab_lock *lock)
{
	lock->ops->yield(lock);
}

/* For assert(): does the calling thread hold the lock? With FAB_LOCK_NONE nobody knows, and the answer is true. */
static inline bool fab_lock_held(const struct fab_lock *lock)
{
	return lock->ops->held(lock);
}

#endif
