/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock whose kind is chosen once, when it is initialised: a mutex, or nothing at all where the application promised
 * to serialise its calls. Code that takes it does not know, nor ask, which it is: one way in and out fits all, since a
 * mutex is barred for ever, and always held by way of the mutex, and what is nothing is neither.
 *
 * Between the two is the biased lock, for data calls that the application serialises and other calls that it does not.
 * Data calls enter (fab_lock_enter): they say that they are inside, look whether somebody bars the way, and are in, two
 * stores and a load. Everybody else acquires (fab_lock_acquire): takes the mutex, bars the way, lets the kernel put a
 * memory barrier between the two instructions of whoever is entering just now (membarrier(2)), and waits until nobody
 * is inside. So a data call takes no lock, and pays nothing for those who come once in a while; those pay for it.
 *
 * The owned lock is for data calls of which nobody says that they are one at a time, but which mostly come from one
 * thread. It belongs to the first thread that enters: that one enters and acquires without a lock, as above, and all
 * others take the mutex and bar its way. One of them who enters becomes the owner; when there have been
 * FAB_LOCK_OWNERS, or others acquire it more than a thousand times a second, it is a mutex for good.
 */
#ifndef FAB_BASE_LOCK_H
#define FAB_BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum fab_lock_kind {
	FAB_LOCK_NONE,	/* the caller serialises: lock and unlock do nothing */
	FAB_LOCK_MUTEX,
	FAB_LOCK_BIASED,	/* a mutex where the kernel has no membarrier(2) */
	FAB_LOCK_OWNED,		/* likewise */
};

#define FAB_LOCK_OWNERS	4	/* of a FAB_LOCK_OWNED, one after the other */

struct fab_lock;

/* What a kind of lock does. */
struct fab_lock_ops {
	void (*lock)(struct fab_lock *lock);
	void (*enter)(struct fab_lock *lock);	/* the way is barred */
	void (*unlock)(struct fab_lock *lock);	/* of one who has acquired it */
	bool (*held)(const struct fab_lock *lock);
	void (*yield)(struct fab_lock *lock);
};

/* Operations of each kind, by enum fab_lock_kind, taken up by fab_lock_init(). A test may put its own into a slot
 * before it opens anything, for instance to count how often a mutex is taken, and calls the old ones from there. */
extern const struct fab_lock_ops *fab_lock_kinds[];

/* Of FAB_LOCK_OWNED. Each owner has a flag of its own, which nobody else ever writes: one who was on his way in when
 * the lock was taken from him must not be heard in the name of the next. */
struct fab_lock_owners {
	_Atomic unsigned now;		/* index of the owner; written with the mutex held, and nobody inside; grows */
	_Atomic bool barred;		/* the owner may not enter; written with the mutex held */
	bool entered;			/* held by the owner, who has no mutex; the holder's */
	unsigned visit_cnt;		/* times that others have acquired it from an owner; guarded by the mutex */
	uint64_t visits_ns;		/* when they were last counted; likewise */
	/* 0: nobody, which the first and the last are; each fixed once it is its turn */
	pthread_t thread[FAB_LOCK_OWNERS + 2];
	_Atomic bool inside[FAB_LOCK_OWNERS + 2];
};

struct fab_lock {
	const struct fab_lock_ops *ops;
	pthread_mutex_t mutex;	/* of FAB_LOCK_MUTEX; the owner may wait on a condition with it */
	pthread_t owner;	/* written with the mutex held; 0: nobody */
	unsigned waiter_cnt;	/* threads that found the mutex taken; atomic */
	/* of FAB_LOCK_BIASED, but for what says otherwise; inside says nothing with other kinds, which write it, too */
	_Atomic bool inside;	/* somebody has entered: written by data calls only, of which there is one at a time */
	_Atomic bool barred;	/* nobody may enter: written with the mutex held; a mutex or owned: always true */
	bool by_mutex;		/* held by one who has acquired it, not entered; the holder's; likewise */
	bool inflated;		/* barred for good; guarded by the mutex */
	struct fab_lock_owners owners;
};

/* Make an unlocked lock. fab_lock_fini() of a lock that somebody holds or waits for is a bug of the caller. */
void fab_lock_init(struct fab_lock *lock, enum fab_lock_kind kind);
void fab_lock_fini(struct fab_lock *lock);

/* Take the lock, waiting as long as it takes. Not recursive. */
static inline void fab_lock_acquire(struct fab_lock *lock)
{
	lock->ops->lock(lock);
}

/* The same for a data call: one of those that the application serialises with each other, on this lock, if the kind is
 * FAB_LOCK_BIASED. */
static inline void fab_lock_enter(struct fab_lock *lock)
{
	atomic_store_explicit(&lock->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);	/* whoever bars the way makes it one for the processor */
	if (__builtin_expect(atomic_load_explicit(&lock->barred, memory_order_acquire), 0))
		lock->ops->enter(lock);
}

/* Data calls may no longer be trusted to be one at a time: what is no mutex becomes one. Any thread, not holding it;
 * others may be inside of a biased or owned lock, and hold it as before, but of FAB_LOCK_NONE nobody may be. */
void fab_lock_inflate(struct fab_lock *lock);

/* Either way in ends here. */
static inline void fab_lock_release(struct fab_lock *lock)
{
	if (__builtin_expect(lock->by_mutex, 0))
		lock->ops->unlock(lock);
	else
		atomic_store_explicit(&lock->inside, false, memory_order_release);
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
