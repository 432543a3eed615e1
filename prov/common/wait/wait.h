/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a thread sleeps until a CQ, counter or EQ has something: the wait objects of fi_cq(3) and fi_poll(3).
 *
 * One eventcount a queue. Nothing is signalled while nobody may be asleep: a sleeper arms the object, and so does for
 * good whoever is given its descriptor; the next event writes it once; a read that finds nothing takes the signal
 * back (a read that finds something makes no system call). With manual progress the descriptor given to the
 * application is an epoll set of the event descriptor and the engine's own, so that arriving data wakes the sleeper,
 * whose read then makes the progress. So: readable if and only if reading would find something or do something.
 *
 *   FI_WAIT_NONE         nothing; cannot sleep
 *   FI_WAIT_UNSPEC, FD   the above; the epoll set of an UNSPEC object is made when its descriptor is asked for
 *   FI_WAIT_POLLFD       the same descriptor as a list of one
 *   FI_WAIT_YIELD        no descriptor; sleeping is giving the processor away
 *   FI_WAIT_MUTEX_COND   a thread of the object's own uses it as an application would use FI_WAIT_FD, and tells the
 *                        condition; it needs no word with the application while that holds the mutex
 *   FI_WAIT_SET          as FI_WAIT_FD; the set is an epoll set of its members' descriptors
 *
 * "Guard" below is the lock of the queue: the engine's for CQ and counter, its own for an EQ.
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

/* The guard of a queue and what makes progress for it. */
struct fab_wait_guard {
	void (*lock)(struct fab_wait *wait);
	void (*enter)(struct fab_wait *wait);	/* the same in a data call (fab_engine_enter) */
	void (*unlock)(struct fab_wait *wait);
	/* A pass that leaves nothing undone, then get ready to sleep (fab_engine_prepare_sleep). A data call;
	 * guard not held. */
	void (*run)(struct fab_wait *wait);
	/* A watcher comes or goes (fab_engine_watch) on every engine of the queue. Guard held. */
	void (*watch)(struct fab_wait *wait, bool on);
	/* Get ready to sleep. Guard held on entry, not on return; lock() ends the sleep. */
	void (*pause)(struct fab_wait *wait);
};

/* Guarded by the guard, but for what says otherwise. */
struct fab_wait {
	enum fi_wait_obj obj;		/* as opened; fixed */
	const struct fab_wait_guard *guard;	/* fixed */
	bool (*has_event)(struct fab_wait *wait);	/* is there something to read? Guard held; fixed */
	bool armed;			/* someone may sleep: events must signal. Equals sleepers || outside */
	bool outside;			/* the descriptor was given away */
	bool signalled;			/* evfd has been written and not yet taken back */
	bool woken;			/* likewise, by fab_wait_wake() */
	uint32_t sleepers;		/* threads in fab_wait_sleep */
	uint32_t leaving;		/* those of them that the last wake has yet to get out */
	_Atomic uint32_t wakes;		/* calls of fab_wait_wake() that have begun; any thread */
	_Atomic uint32_t wakes_written;	/* ... and have written evfd */
	uint32_t wakes_seen;		/* as far as we looked */
	uint32_t wakes_taken;		/* as far as they have ended somebody's sleep */
	int evfd;			/* eventfd, -1 if obj needs none; fixed */
	int epfd;			/* epoll set of evfd and the engine's; -1 if there is none (yet) */
	struct fab_signal signal;	/* in engine->signals while an event is to be told */
	/* Borrowed: outlives the queue. Of a queue that has not settled, read with fab_engine_enter_of() */
	struct fab_engine *engine;
	bool settled;			/* engine is final (queue_open.h); written with the domain's join_lock, too */
	struct fab_wait_set *set;	/* borrowed: FI_WAIT_SET, holds a reference */
	struct fab_list set_link;	/* guarded by the set's mutex */
	struct fab_teller *teller;	/* owned: FI_WAIT_MUTEX_COND */
};

/* What a queue is opened with. */
struct fab_wait_attr {
	enum fi_wait_obj obj;
	struct fid_wait *set;		/* FI_WAIT_SET only */
	struct fab_engine *engine;
	bool settled;			/* engine is final; else fab_wait_settle() follows */
	bool (*has_event)(struct fab_wait *wait);
	/* NULL: the lock of `engine`, which alone makes progress for this queue. Otherwise there is an epoll set
	 * for sleepers from the start, to which the owner adds its further engines. */
	const struct fab_wait_guard *guard;
};

/* For the check of a queue's attributes: is there such an object, and with FI_WAIT_SET a set? */
bool fab_wait_exists(enum fi_wait_obj obj, const struct fid_wait *set);
/* attr has passed fab_wait_exists(). 0 or -errno. Last step of an open:
 * the queue's guard and engine must work, as FI_WAIT_MUTEX_COND starts to use them. That one also gives the engine a
 * lock. */
int fab_wait_init(struct fab_wait *wait, const struct fab_wait_attr *attr);
/* Guard not held; nobody sleeps any more. */
void fab_wait_fini(struct fab_wait *wait);
/* The queue gets the engine that it stays on (fab_queue_settle), for which a descriptor or set that was given out is to
 * wake from now on; threads that sleep on the queue look again. The guard is held; the lock of `to`, if that is another
 * engine, is not.
 * 0 or -errno with nothing changed. While the object is armed, the caller is to have `to` prepare for sleep next
 * (fab_engine_prepare_sleep). */
int fab_wait_settle(struct fab_wait *wait, struct fab_engine *to);

/* True if a thread of ours drives the engines of this queue, or will (FI_WAIT_MUTEX_COND): so they need a lock. */
bool fab_wait_has_thread(const struct fab_wait *wait);

/* Something was queued. The engine's lock held; O(1), no system call here: it happens at unlock, if it is still there
 * to be read. */
static inline void fab_wait_event(struct fab_wait *wait)
{
	if (wait->armed && !wait->signalled && fab_list_empty(&wait->signal.link))
		fab_list_add_tail(&wait->engine->signals, &wait->signal.link);
}
/* Signal now, if anybody may sleep and there is something to read. Guard held. */
void fab_wait_signal(struct fab_wait *wait);
/* A read found nothing. Guard held. Takes a signal back; most have none to take back. */
void fab_wait_take_back(struct fab_wait *wait);
static inline void fab_wait_drained(struct fab_wait *wait)
{
	if (wait->signalled || wait->woken || atomic_load(&wait->wakes) != wait->wakes_seen ||
	    wait->set || wait->teller)
		fab_wait_take_back(wait);
}
/* For FI_GETWAIT and FI_GETWAITOBJ of fi_control(3). Guard not held. 0, -FI_ENODATA (no such object), -FI_ETOOSMALL
 * (pollfd), -errno, or -FI_ENOSYS for another command. */
int fab_wait_control(struct fab_wait *wait, int command, void *arg);

/* The part of that which sets do, too: what FI_GETWAIT gives for fd (an int, or fi_wait_pollfd: -FI_ETOOSMALL) and
 * FI_GETWAITOBJ. */
int fab_wait_give_fd(enum fi_wait_obj obj, int fd, void *arg);
int fab_wait_give_obj(enum fi_wait_obj obj, void *arg);
/* Let the epoll set epfd be readable when fd is, or no longer. 0 or -errno. */
int fab_wait_nest(int epfd, int fd);
void fab_wait_unnest(int epfd, int fd);

/* One blocking call of the application: its deadline, and the fab_wait_wake() calls that came before it. */
struct fab_sleep {
	int timeout_ms;
	uint64_t deadline_ns;		/* 0: not needed yet */
	uint32_t wakes;
};

/* Milliseconds left, rounded up: 0 none, -1 no end. Reads the clock; the first call sets the deadline. */
int fab_sleep_left_ms(struct fab_sleep *sleep);

/* True if a thread may sleep here, in a call of ours: not for NONE and SET. */
static inline bool fab_wait_can_sleep(const struct fab_wait *wait)
{
	return wait->obj != FI_WAIT_NONE && wait->obj != FI_WAIT_SET;
}
/* Begin a blocking call; timeout_ms below 0: no end. Guard held. */
void fab_wait_begin(struct fab_wait *wait, struct fab_sleep *sleep, int timeout_ms);
/*
 * Sleep until an event, a fab_wait_wake() or the deadline. The caller has just looked, and found nothing. Guard held
 * on entry and exit, not while asleep. Returns 0: look again (also spurious), -FI_ETIMEDOUT, -FI_EINTR, -FI_EAGAIN:
 * fab_wait_wake() was called. With manual progress also wakes for the engine's sources and timers. FI_WAIT_YIELD
 * yields the processor instead.
 */
int fab_wait_sleep(struct fab_wait *wait, struct fab_sleep *sleep);
/* What a blocking read that found nothing returns: time is up, or a signal came, are -FI_EAGAIN there. */
static inline int fab_wait_read_error(int slept)
{
	return !slept || slept == -FI_ETIMEDOUT || slept == -FI_EINTR ? -FI_EAGAIN : slept;
}
/* fi_cq_signal(3): end every blocking call on this object, or the next one if there is none. Any thread, guard not
 * needed. */
void fab_wait_wake(struct fab_wait *wait);
/* fi_trywait(3) for one queue: makes progress; 0: armed and nothing there; -FI_EAGAIN: something to read. Guard not
 * held. */
int fab_wait_try(struct fab_wait *wait);

/* fi_wait_open(3): the fabric's slot. 0 or -FI_E*. */
int fab_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **waitset);
/* fi_trywait(3) for a wait set: makes progress for its members. 0: nothing to read, the set's descriptor will tell;
 * -FI_EAGAIN: a member has something to read. No lock held. */
int fab_wait_set_try(struct fid *set);

#endif
