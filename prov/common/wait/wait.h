/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Wait objects of fi_cq(3) and fi_poll(3): threads sleep in them until a CQ, counter or EQ has something to read.
 *
 * Each queue has an eventfd. It is written only while a thread may be asleep. A sleeper arms the object for the time of
 * its sleep; giving the descriptor to the application arms it for good. The next event then writes the eventfd once. A
 * read that finds nothing clears it; a read that finds something makes no system call. With manual progress the
 * application's descriptor is an epoll set of the eventfd and of the engine's own epoll set. So arriving data wakes the
 * sleeper, whose read then makes progress. The descriptor is readable if and only if a read would find something or
 * make progress.
 *
 *   FI_WAIT_NONE         no object; queues refuse to sleep, counters as with FI_WAIT_YIELD
 *   FI_WAIT_UNSPEC, FD   as above; the epoll set of an UNSPEC object is made when its descriptor is asked for
 *   FI_WAIT_POLLFD       the same descriptor, in a list of one
 *   FI_WAIT_YIELD        no descriptor; sleeping yields the processor
 *   FI_WAIT_MUTEX_COND   a thread of the object watches the descriptor of FI_WAIT_FD, and signals the condition. The
 *                        application may hold the mutex during any call
 *   FI_WAIT_SET          as FI_WAIT_FD; the set is an epoll set of its members' descriptors
 *
 * "Guard" below is the lock of the queue: the engine's for a CQ or counter, its own for an EQ.
 */
#ifndef FAB_WAIT_H
#define FAB_WAIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "base/list.h"
#include "common/engine/engine.h"

struct fab_teller;
struct fab_wait;
struct fab_wait_set;

/* The guard of a queue, and the engines that make progress for it. */
struct fab_wait_guard {
	void (*lock)(struct fab_wait *wait);
	void (*enter)(struct fab_wait *wait);	/* the same in a data call (fab_engine_enter) */
	void (*unlock)(struct fab_wait *wait);
	/* Run passes until there is nothing left to do, then prepare for sleep (fab_engine_prepare_sleep()). A data
	 * call; guard not held. */
	void (*run)(struct fab_wait *wait);
	/* Add or remove a watcher (fab_engine_watch()) on every engine of the queue. Guard held. */
	void (*watch)(struct fab_wait *wait, bool on);
	/* Prepare for sleep. The guard is held on entry and released on return; lock() follows the sleep. */
	void (*pause)(struct fab_wait *wait);
};

/* Guarded by the guard, except where a member says otherwise. */
struct fab_wait {
	enum fi_wait_obj obj;		/* as opened; constant */
	const struct fab_wait_guard *guard;	/* constant */
	bool (*has_event)(struct fab_wait *wait);	/* true if there is something to read. Guard held; constant */
	bool armed;			/* a thread may be asleep, so events must signal: sleepers || outside */
	bool outside;			/* the application has the descriptor */
	bool signalled;			/* evfd was written by an event, and not cleared yet */
	bool woken;			/* evfd was written by fab_wait_wake(), and not cleared yet */
	uint32_t sleepers;		/* threads in fab_wait_sleep() */
	uint32_t leaving;		/* sleepers that the last wake has not reached yet */
	uint32_t roused;		/* sleepers that the last event has not reached yet */
	uint32_t signals;		/* events that have written evfd */
	uint32_t spin_ns;		/* for so long a thread looks again before it sleeps; 0: waits are long */
	_Atomic uint32_t wakes;		/* calls of fab_wait_wake() that have begun; any thread */
	_Atomic uint32_t wakes_written;	/* ... and that have written evfd */
	uint32_t wakes_seen;		/* value of wakes at the last check */
	uint32_t wakes_taken;		/* wakes that have ended a sleep */
	uint32_t wakes_told;		/* wakes that a teller has told of */
	int evfd;			/* eventfd; -1 if obj needs none; constant */
	int epfd;			/* epoll set of evfd and the engine's epoll set; -1: none (yet) */
	struct fab_signal signal;	/* in engine->signals while an event must be signalled */
	/* Borrowed: outlives the queue. While the queue has not settled, use fab_engine_enter_of() to read it */
	struct fab_engine *engine;
	bool settled;			/* engine is final (queue_open.h); written with the domain's join_lock, too */
	struct fab_wait_set *set;	/* FI_WAIT_SET: has a reference; else NULL */
	struct fab_list set_link;	/* guarded by the set's mutex */
	struct fab_teller *teller;	/* owned; FI_WAIT_MUTEX_COND; else NULL */
};

/* The attributes of a wait object. */
struct fab_wait_attr {
	enum fi_wait_obj obj;
	struct fid_wait *set;		/* FI_WAIT_SET only */
	struct fab_engine *engine;
	bool settles_later;		/* the caller calls fab_wait_settle() later, with another engine or with this
					 * one; false: engine is final */
	bool (*has_event)(struct fab_wait *wait);
	/* NULL: the lock of `engine`, the only engine of this queue. Otherwise the epoll set for sleepers exists from
	 * the start, and the owner adds its further engines to it. */
	const struct fab_wait_guard *guard;
};

/* Check attributes of a queue: true if the wait object is supported, and with FI_WAIT_SET there is a set. */
bool fab_wait_exists(enum fi_wait_obj obj, const struct fid_wait *set);
/* Initialise; attr has passed fab_wait_exists(). This is the last step of opening a queue: guard and engine must work
 * already, since FI_WAIT_MUTEX_COND starts a thread that uses them. That object also makes the engine's lock a mutex. 0
 * or -errno. */
int fab_wait_init(struct fab_wait *wait, const struct fab_wait_attr *attr);
/* Free everything. Guard not held; no thread sleeps any more. */
void fab_wait_fini(struct fab_wait *wait);
/* Move the queue to its final engine (fab_queue_settle()). The application's descriptor, or the set, will wake up for
 * that engine from now on; threads that sleep on the queue check it again. The guard is held; the lock of `to`, if that
 * is another engine, is not. 0; -errno: nothing was changed. If the object is armed, the caller then calls
 * fab_engine_prepare_sleep() for `to`. */
int fab_wait_settle(struct fab_wait *wait, struct fab_engine *to);

/* True if a thread of the object drives the engines of this queue, or will (FI_WAIT_MUTEX_COND). They then need a
 * lock. */
bool fab_wait_has_thread(const struct fab_wait *wait);

/* Signal now, if a thread may be asleep and there is something to read. Guard held. */
void fab_wait_signal(struct fab_wait *wait);
/* Called when an entry was queued. The engine's lock is held. O(1), without a system call: the object is notified at
 * unlock, if there is still something to read. If the engine follows another, or is followed, it is notified here. */
static inline void fab_wait_event(struct fab_wait *wait)
{
	if (!wait->armed || wait->signalled || !fab_list_empty(&wait->signal.link))
		return;
	if (wait->engine->tell_at_once)
		fab_wait_signal(wait);
	else
		fab_list_add_tail(&wait->engine->signals, &wait->signal.link);
}
/* Called by a read that found nothing: clears evfd if it was written. Guard held. (fab_wait_drained() tests first
 * whether there may be anything to clear.) */
void fab_wait_take_back(struct fab_wait *wait);
static inline void fab_wait_drained(struct fab_wait *wait)
{
	if (wait->signalled || wait->woken || atomic_load(&wait->wakes) != wait->wakes_seen ||
	    wait->set || wait->teller)
		fab_wait_take_back(wait);
}
/* FI_GETWAIT and FI_GETWAITOBJ of fi_control(3). Guard not held. 0, -FI_ENODATA (the object has no such form),
 * -FI_ETOOSMALL (pollfd), -errno, or -FI_ENOSYS for another command. */
int fab_wait_control(struct fab_wait *wait, int command, void *arg);

/* Store the answer to FI_GETWAIT for descriptor fd: an int, or struct fi_wait_pollfd (-FI_ETOOSMALL: no room). And the
 * answer to FI_GETWAITOBJ. Wait sets use them, too. */
int fab_wait_give_fd(enum fi_wait_obj obj, int fd, void *arg);
int fab_wait_give_obj(enum fi_wait_obj obj, void *arg);
/* Add fd to the epoll set epfd, or remove it. 0 or -errno. */
int fab_wait_nest(int epfd, int fd);
void fab_wait_unnest(int epfd, int fd);

/* A blocking call of the application: its deadline, and the fab_wait_wake() calls before it. */
struct fab_sleep {
	int timeout_ms;
	uint64_t deadline_ns;		/* 0: not computed yet */
	uint64_t spin_end_ns;		/* until when the thread looks again instead of sleeping; 0: as deadline_ns */
	uint32_t wakes;
};

/* The milliseconds left, rounded up; -1: no timeout. Reads the clock; the first call sets the deadline. */
int fab_sleep_left_ms(struct fab_sleep *sleep);

/* True if a blocking read of a CQ or EQ with this object may sleep: not with NONE and SET. */
static inline bool fab_wait_can_sleep(const struct fab_wait *wait)
{
	return wait->obj != FI_WAIT_NONE && wait->obj != FI_WAIT_SET;
}
/* Begin a blocking call. A negative timeout_ms means no timeout. Guard held. */
void fab_wait_begin(struct fab_wait *wait, struct fab_sleep *sleep, int timeout_ms);
/*
 * Sleep until an event, a fab_wait_wake() or the deadline. The caller has just checked and found nothing. The guard is
 * held on entry and return, and not while asleep. 0: check again (possibly without reason). -FI_ETIMEDOUT; -FI_EINTR;
 * -FI_EAGAIN: fab_wait_wake() was called. With manual progress, sources and timers of the engine wake it, too.
 * FI_WAIT_YIELD and FI_WAIT_NONE yield the processor instead of sleeping.
 */
int fab_wait_sleep(struct fab_wait *wait, struct fab_sleep *sleep);
/* The result of a blocking read that found nothing: a timeout and a signal are -FI_EAGAIN. */
static inline int fab_wait_read_error(int slept)
{
	return !slept || slept == -FI_ETIMEDOUT || slept == -FI_EINTR ? -FI_EAGAIN : slept;
}
/* fi_cq_signal(3): end every blocking call on this object; if there is none, end the next one. Any thread, guard not
 * needed. */
void fab_wait_wake(struct fab_wait *wait);
/* fi_trywait(3) for one queue: makes progress. 0: nothing to read, and the object is armed. -FI_EAGAIN: something to
 * read, or a fab_wait_wake() that has ended no call yet. Guard not held. */
int fab_wait_try(struct fab_wait *wait);
/* The same for the thread of FI_WAIT_MUTEX_COND: it tells of a fab_wait_wake() once, and leaves it to the application's
 * next call. */
int fab_wait_look(struct fab_wait *wait);

/* The fabric's fi_wait_open(3) slot. 0 or -FI_E*. */
int fab_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **waitset);
/* fi_trywait(3) for a wait set: makes progress for its members. 0: nothing to read, and the set's descriptor will
 * become readable. -FI_EAGAIN: a member has something to read. No lock held. */
int fab_wait_set_try(struct fid *set);

#endif
