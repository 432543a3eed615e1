/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A lock of one of four kinds. The kind follows from what the application promised about its threads; fab_lock_init()
 * is given it once, and code that takes the lock never asks for it.
 *
 *	none	the application makes one call at a time: every operation does nothing
 *	mutex	any thread may call at any time
 *	biased	the application makes one data call at a time; other calls may come from any thread at any time
 *	owned	any thread may call at any time, but most data calls come from one thread
 *
 * A data call enters the lock (fab_lock_enter()). Every other call acquires it (fab_lock_acquire()). Both leave by
 * fab_lock_release(). Enter and release are the same inline code for all kinds. Enter tests `barred`, and release tests
 * `by_mutex`; where the flag is true, they call an operation of the kind. With a mutex and with an owned lock both
 * flags are always true. With none both are always false.
 *
 * Biased: fab_lock_enter() sets `inside` and then reads `barred`. If that is false, the call holds the lock, without
 * the mutex and without an atomic read-modify-write. fab_lock_acquire() takes the mutex, sets `barred`, has the kernel
 * run a memory barrier on every thread of the process (membarrier(2)), and waits until `inside` is false. The barrier
 * stands in for one between the store and the load of fab_lock_enter(), which a data call then need not pay for.
 *
 * Owned: the first thread that enters becomes the owner. The owner enters and acquires as a data call enters a biased
 * lock. Any other thread takes the mutex and keeps the owner out. A thread that did so to enter becomes the next owner.
 * The lock becomes a mutex for good when a thread enters after FAB_LOCK_OWNERS owners, or when other threads acquire it
 * from an owner more than 1000 times a second.
 *
 * If the kernel refuses membarrier(2) later (a seccomp filter was installed), the barrier is made by mprotect(2) or by
 * sched_setaffinity(2), which is slow, and a lock that needed it becomes a mutex for good.
 */
#ifndef FAB_BASE_LOCK_H
#define FAB_BASE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum fab_lock_kind {
	FAB_LOCK_NONE,
	FAB_LOCK_MUTEX,
	FAB_LOCK_BIASED,	/* a mutex from the start where the kernel has no membarrier(2) */
	FAB_LOCK_OWNED,		/* likewise */
};

#define FAB_LOCK_OWNERS	4	/* owners that a FAB_LOCK_OWNED has, one after the other, before it is a mutex */

struct fab_lock;

/* The operations of one kind of lock. */
struct fab_lock_ops {
	void (*lock)(struct fab_lock *lock);	/* fab_lock_acquire() */
	void (*enter)(struct fab_lock *lock);	/* the rest of fab_lock_enter() where `barred` is true */
	void (*unlock)(struct fab_lock *lock);	/* fab_lock_release() where `by_mutex` is true */
	bool (*held)(const struct fab_lock *lock);	/* fab_lock_held() */
	void (*yield)(struct fab_lock *lock);	/* fab_lock_yield() */
};

/* The operations of each kind, indexed by enum fab_lock_kind. fab_lock_init() copies the pointer into the lock. A test
 * may replace a slot before it opens anything (for instance to count how often a mutex is taken); its operations call
 * the ones that they replace. */
extern const struct fab_lock_ops *fab_lock_kinds[];

/* The owners of a FAB_LOCK_OWNED. Each owner has an `inside` flag of its own, which no other thread writes. With one
 * flag for all, a thread that sets it late, after it lost the lock, would be taken for the next owner. A field that is
 * "the holder's" is read and written only by the thread that holds the lock. */
struct fab_lock_owners {
	_Atomic unsigned now;		/* index of the owner; only grows; written with mutex held and nobody inside */
	_Atomic bool barred;		/* the owner may not enter; written with the mutex held */
	bool entered;			/* the owner holds the lock, without the mutex; the holder's */
	unsigned visit_cnt;		/* times that others acquired the lock from an owner; guarded by the mutex */
	uint64_t visits_ns;		/* fab_now_ns() when their rate was last measured; guarded by the mutex */
	/* The owner at each index, written when its turn comes. The first and the last entry stay 0: nobody. */
	pthread_t thread[FAB_LOCK_OWNERS + 2];
	_Atomic bool inside[FAB_LOCK_OWNERS + 2];
};

struct fab_lock {
	const struct fab_lock_ops *ops;
	pthread_mutex_t mutex;	/* of every kind but none */
	pthread_t owner;	/* thread that has the mutex, 0 for none; written with the mutex held */
	unsigned waiter_cnt;	/* threads that wait for the mutex; atomic */
	/* The next three matter to FAB_LOCK_BIASED. Data calls write `inside` of every kind; only biased reads it. */
	_Atomic bool inside;	/* a data call has entered; written by data calls, of which there is one at a time */
	_Atomic bool barred;	/* no data call may enter; written with the mutex held; mutex and owned: always true */
	bool by_mutex;		/* the holder acquired the lock; the holder's; mutex and owned: always true */
	bool inflated;		/* `barred` stays true for good; guarded by the mutex; biased only */
	struct fab_lock *lead;	/* held with this one (fab_lock_lead()), or NULL; guarded by the mutex; biased */
	struct fab_lock_owners owners;	/* owned only */
};

/* Initialise an unlocked lock. Cannot fail. */
void fab_lock_init(struct fab_lock *lock, enum fab_lock_kind kind);
/* End the life of a lock that no thread holds, waits for, or takes later. */
void fab_lock_fini(struct fab_lock *lock);

/* Take the lock; waits until it is free. Not recursive. Any thread (of FAB_LOCK_NONE the application serialises). */
static inline void fab_lock_acquire(struct fab_lock *lock)
{
	lock->ops->lock(lock);
}

/* Take the lock for a data call. With FAB_LOCK_BIASED the application makes one such call at a time on this lock. Waits
 * until the lock is free. Not recursive. */
static inline void fab_lock_enter(struct fab_lock *lock)
{
	atomic_store_explicit(&lock->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);	/* for the processor, fab_lock_acquire() does it */
	if (__builtin_expect(atomic_load_explicit(&lock->barred, memory_order_acquire), 0))
		lock->ops->enter(lock);
}

/* The same, if it takes no more than a store and a load. False: the caller does not hold the lock, and calls
 * fab_lock_enter(). */
static inline bool fab_lock_try_enter(struct fab_lock *lock)
{
	atomic_store_explicit(&lock->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return __builtin_expect(!atomic_load_explicit(&lock->barred, memory_order_acquire), 1);
}

/* Take a FAB_LOCK_MUTEX if it is free. False: another thread has it, or this one, or the lock is of another kind. */
bool fab_lock_try_acquire(struct fab_lock *lock);
/* While a thread wishes to try that, the holder's fab_lock_yield() counts it among those that wait. Any thread. */
void fab_lock_wish(struct fab_lock *lock, bool wish);
/* In a child of fork(2): the threads that waited for the lock are not there. */
void fab_lock_forget_waiters(struct fab_lock *lock);

/* From now on data calls may come from several threads at a time: a lock that is no mutex becomes one for good. Any
 * thread that does not hold the lock. If another thread holds a biased or owned lock, the call waits until it releases
 * it. A FAB_LOCK_NONE must not be held by anybody. */
void fab_lock_inflate(struct fab_lock *lock);

/* From now on a thread that takes `lock` takes `lead` after it. A thread that holds `lead` alone therefore has all that
 * both locks guard to itself; it must not take `lock` then. `lock` is a FAB_LOCK_BIASED or a FAB_LOCK_NONE, inflated or
 * not. It becomes a mutex, as fab_lock_inflate() says. `lead` is a FAB_LOCK_MUTEX, which outlives it. The calling
 * thread holds neither. */
void fab_lock_lead(struct fab_lock *lock, struct fab_lock *lead);

/* Release a lock that the calling thread entered or acquired. */
static inline void fab_lock_release(struct fab_lock *lock)
{
	if (__builtin_expect(lock->by_mutex, 0))
		lock->ops->unlock(lock);
	else
		atomic_store_explicit(&lock->inside, false, memory_order_release);
}

/* The same, if it takes no more than a store. False: the lock is still held. */
static inline bool fab_lock_try_release(struct fab_lock *lock)
{
	if (__builtin_expect(lock->by_mutex, 0))
		return false;
	atomic_store_explicit(&lock->inside, false, memory_order_release);
	return true;
}

/* Release the lock, wait until no thread waits for it, and acquire it again. For a thread that holds the lock most of
 * the time: by release and acquire alone it would have the mutex again before a waiting thread wakes. */
static inline void fab_lock_yield(struct fab_lock *lock)
{
	lock->ops->yield(lock);
}

/* True if the calling thread holds the lock. For assert() only: a FAB_LOCK_NONE does not know its holder and answers
 * true, and so does a biased lock while any data call is inside. */
static inline bool fab_lock_held(const struct fab_lock *lock)
{
	return lock->ops->held(lock);
}

#endif
