/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a thread sleeps until a CQ, counter or EQ has something: the wait objects of fi_cq(3) and fi_poll(3).
 *
 * One eventcount a queue. Nothing is signalled while nobody may be asleep: a reader that found nothing "arms" the object,
 * the next event writes it once, reading the queue empty takes the signal back. With manual progress the descriptor given
 * to the application is an epoll set of the event descriptor and the engine's own, so that arriving data wakes the sleeper, whose
 * read then makes the progress. So: readable if and only if reading would find something or do something.
 */
#ifndef FAB_WAIT_H
#define FAB_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <rdma/fi_eq.h>
#include "base/list.h"

struct fab_fabric;
struct fab_progress;

struct fab_wait_set;

struct fab_wait {
	enum fi_wait_obj obj;		/* as opened; FI_WAIT_UNSPEC is served as FI_WAIT_FD */
	bool armed;			/* a sleeper may exist: the next event must signal. Engine lock */
	bool signalled;			/* evfd has been written and not yet taken back. Engine lock */
	int evfd;			/* eventfd, -1 if obj needs none */
	int epfd;			/* what FI_GETWAIT gives for FD; -1 otherwise */
	struct fab_list link;		/* in progress->signals while an event is to be told */
	struct fab_progress *progress;	/* borrowed: outlives the queue; NULL for an EQ without engine */
	struct fab_wait_set *set;	/* borrowed: FI_WAIT_SET, holds a reference */
	struct fab_list set_link;
	pthread_mutex_t *mutex;		/* FI_WAIT_MUTEX_COND: allocated, owned */
	pthread_cond_t *cond;
	bool (*has_event)(struct fab_wait *wait);	/* engine lock held: is there something to read? */
};

/* obj and set come from the queue's attributes. 0, -FI_ENOSYS for an object that does not exist, -FI_EINVAL for a set
 * without one or a wrong fid, -errno. FI_WAIT_MUTEX_COND starts the engine's thread, as nobody else would make progress. */
int fab_wait_init(struct fab_wait *wait, struct fab_progress *progress, enum fi_wait_obj obj, struct fid_wait *set,
		  bool (*has_event)(struct fab_wait *wait));
void fab_wait_fini(struct fab_wait *wait);
/* The queue goes over to another engine (fab_progress_join): what was given to sleepers, a descriptor or a set, must wake for the new
 * one. No lock held; nobody sleeps, as no endpoint uses the queue yet. 0 or -FI_E* with nothing changed. */
int fab_wait_move(struct fab_wait *wait, struct fab_progress *to);

/* Something was queued. Lock held; O(1), no system call here: it happens at unlock, if it is still there to be read. */
static inline void fab_wait_event(struct fab_wait *wait, struct fab_list *signals)
{
	if (wait->armed && fab_list_empty(&wait->link))
		fab_list_add_tail(signals, &wait->link);
}
/* The queue was read empty. Lock held. Takes a pending signal back, arms for the next event where a descriptor was given out. */
void fab_wait_drained(struct fab_wait *wait);
/* For FI_GETWAIT and FI_GETWAITOBJ of fi_control(3). 0 or -FI_ENODATA/-FI_EINVAL. */
int fab_wait_control(struct fab_wait *wait, int command, void *arg);
/*
 * Sleep until an event, a signal() or timeout_ms (-1: no end). Lock held on entry and exit, not while asleep. Returns 0: look
 * again (also spurious), -FI_ETIMEDOUT, -FI_EINTR, -FI_EAGAIN: fab_wait_wake() was called. Flushes before it sleeps; with manual
 * progress also wakes for the engine's sources and timers. FI_WAIT_YIELD yields the processor instead; FI_WAIT_NONE: -FI_ENOSYS.
 */
int fab_wait_sleep(struct fab_wait *wait, int timeout_ms);
/* fi_cq_signal(3): end every fab_wait_sleep on this object, now or the next one. Lock held. */
void fab_wait_wake(struct fab_wait *wait);
/* fi_trywait(3) for one queue: 0 armed and nothing there, -FI_EAGAIN something to read. Lock held; runs a pass first. */
int fab_wait_try(struct fab_wait *wait);

/* fi_wait_open(3), fi_wait(3); fi_poll_open(3) and its calls live in poll.c. 0 or -FI_E*. */
int fab_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **waitset);
int fab_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt);
int fab_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset);

#endif
