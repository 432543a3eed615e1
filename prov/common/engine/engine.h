/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The progress engine: one epoll set, one staging buffer, timers, and the one lock that guards every object which
 * makes progress here (endpoints, their connections, CQs, counters). doc/design.md, section 7.3.
 *
 * A domain has one engine. With FI_THREAD_COMPLETION and manual progress endpoints that have no queue in common have
 * different ones (common/domain/engines.h). Each EQ has one for listening.
 *
 * Who calls: with manual progress whoever reads or waits on a CQ, counter or EQ; with FI_PROGRESS_AUTO also the
 * engine's own thread, which sleeps in epoll, and keeps away while the application itself polls. "Lock held" below
 * means engine->lock; its kind is chosen at init from the threading level (none where the application serialises all,
 * a biased one where it serialises data calls, an owned one where it mostly makes them in one thread), so no caller
 * ever asks.
 *
 * A pass: flush what is queued to leave, read the sources that were busy lately, ask epoll when they are quiet and
 * from time to time anyway, run timers that are due, free what was closed. Wait objects are signalled at unlock.
 *
 * Whoever may sleep on epfd without being seen by us (a thread in fab_wait_sleep, the engine's thread, the owner of a
 * descriptor that was given out) is a watcher. While there is one, the alarm, a timerfd in epfd, makes epfd readable
 * when somebody must come back: at the first timer, or at once because something was queued to leave.
 */
#ifndef FAB_ENGINE_H
#define FAB_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <rdma/fi_domain.h>
#include "base/list.h"
#include "base/lock.h"

struct epoll_event;
struct fab_engine;

/*
 * Something with a file descriptor. Embedded in a connection, a listener ... Zeroed before it is added for the first
 * time. All callbacks run with the lock held, and may close this or any other source (fab_source_del), whose memory
 * they hand to fab_engine_defer().
 */
struct fab_source {
	int fd;				/* the embedder's, set before fab_source_add and closed after fab_source_del */
	uint32_t events;		/* EPOLLIN, EPOLLOUT as armed (level triggered) */
	uint32_t quiet;			/* passes since it last gave something; engine's own */
	struct fab_list hot;		/* in engine->hot while it is one of the busy few; engine's own */
	struct fab_engine *engine;	/* the engine that it is added to, or NULL */
	/* epoll says `events`. */
	void (*ready)(struct fab_source *src, uint32_t events);
	/* Try to read without being told to: one non-blocking call. True if it gave anything. NULL: never hot. */
	bool (*poll)(struct fab_source *src);
};

/*
 * A bell wakes an engine from any thread: one who has left something for the engine rings the bell, and a pass of the
 * engine calls the bell's function. It is an eventfd. Embedded, and zeroed before it is opened for the first time.
 */
struct fab_bell {
	struct fab_source source;	/* owns its descriptor while the bell is open */
	/* The bell was rung, once or several times. Lock held. */
	void (*rung)(struct fab_bell *bell);
};

/* Runs `fire` once when `when_ns` (fab_now_ns clock) has come; precision is that of the passes. */
struct fab_timer {
	struct fab_list link;
	uint64_t when_ns;
	void (*fire)(struct fab_timer *timer);
};

/* Called at the start of the next pass, and before anyone sleeps. Linked at most once; unlinked before the call. */
struct fab_flush {
	struct fab_list link;		/* self-linked (fab_list_init) while idle */
	void (*flush)(struct fab_flush *flush);
};

/* Memory to free once the pass is over, since sources of this pass may still point to it. */
struct fab_defer {
	struct fab_list link;
	void (*free)(struct fab_defer *defer);
};

/* A function of a provider that polls hardware (verbs), called on every pass; true if it found anything. It is called
 * once more before a thread sleeps. While there are watchers, a call that finds nothing must leave the hardware armed:
 * the next event must make epfd readable. Lock held. */
struct fab_poll_fn {
	struct fab_list link;
	bool (*poll)(struct fab_poll_fn *fn);
};

/* Something to tell outside of the pass, at unlock: embedded in a wait object. */
struct fab_signal {
	struct fab_list link;		/* in engine->signals; self-linked while there is nothing to tell */
	void (*tell)(struct fab_signal *signal);	/* lock held; unlinked before the call */
};

/* What an upper room keeps with an engine, embedded in a struct of its own. */
struct fab_attached {
	/* The engine goes away: free it. No lock held; nobody else uses the engine. */
	void (*free)(struct fab_attached *attached);
};

#define FAB_STAGING_LEN		(64 * 1024)	/* bytes; one recv takes up to this much */

/* Guarded by lock, but for what says otherwise. */
struct fab_engine {
	struct fab_lock lock;
	int epfd;			/* readable when any source is; nests in wait objects. Fixed */
	bool thread_run;		/* FI_PROGRESS_AUTO: the thread exists. Fixed while it does */
	bool thread_stop;
	bool in_pass;
	bool ask_epoll;			/* the next pass does not leave it at quiet hot sources */
	bool alarm_due;			/* epoll has shown the alarm */
	uint32_t pass_cnt;		/* of passes so far */
	unsigned hot_cnt;
	unsigned since_epoll;		/* passes since epoll was asked */
	unsigned since_clock;		/* passes since timers were looked at */
	unsigned source_cnt;		/* without the alarm */
	unsigned out_cnt;		/* sources that wait to write */
	/* A provider's whose CQs read hardware themselves: where all arrives that does here, or NULL; and how often
	 * they may look there before the next pass: none if there is no such place, or something waits to leave */
	void *direct;
	int looks_left;
	_Atomic uint32_t spins;		/* looks of the application since it prepared to sleep; written with the lock */
	_Atomic uint32_t watchers;	/* who may sleep on epfd; raised before the last look that precedes a sleep */
	struct fab_list hot;
	struct fab_list flush;
	struct fab_list polls;
	struct fab_list timers;		/* by when_ns, soonest first */
	struct fab_list deferred;
	struct fab_list signals;	/* struct fab_signal.link: wait objects with something to tell */
	struct epoll_event *asked;	/* what epoll told in this pass; from asked_next on yet to be served */
	int asked_next, asked_cnt;
	uint64_t alarm_ns;		/* what the alarm is set to; 0: off */
	struct fab_source alarm;
	struct fab_attached *attached;	/* owned: what an upper room keeps here (triggered work); NULL: nothing */
	uint8_t *staging;		/* see fab_engine_staging(): borrowed by one source for one call */
	uint8_t *tx_staging;		/* for gathering small frames; likewise */
	pthread_t thread;
};

/* What an engine is for; decides its lock (base/lock.h): none if it is neither `shared` nor has `auto_progress`; if it
 * is shared and has none, a biased one if data calls are serialised, an owned one if they mostly are one thread's; else
 * a mutex. */
struct fab_engine_attr {
	bool shared;			/* more than one thread may come at a time */
	bool data_serial;		/* but not for data calls (fab_engine_enter) */
	bool data_owned;		/* seldom for data calls */
	bool auto_progress;
	const char *name;		/* of the thread, at most 15 bytes */
};

/* 0, -FI_EMFILE/-FI_ENOMEM ... (as the kernel said). On success the caller owns it until fini. */
int fab_engine_init(struct fab_engine *engine, const struct fab_engine_attr *attr);

/* Stops the thread, runs what is deferred, frees. No source may be left; the caller must not hold the lock. */
void fab_engine_fini(struct fab_engine *engine);

/* Start a thread of ours: named (at most 15 bytes, or NULL), and without signals, which are the application's. 0 or
 * -errno. */
int fab_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg, const char *name);

/* From now on threads of ours come too: gives an engine without a lock a mutex (then nobody may be inside), and makes a
 * biased or owned lock one. */
void fab_engine_share(struct fab_engine *engine);

/* Add, change, remove a descriptor. Lock held. add: 0 or -errno; mod and del cannot fail for an added source. */
int fab_source_add(struct fab_engine *engine, struct fab_source *src, uint32_t events);
void fab_source_mod(struct fab_source *src, uint32_t events);
void fab_source_del(struct fab_source *src);		/* idempotent; does not close the fd */
/* This source just gave data: keep it among the busy few. Lock held. */
void fab_source_hot(struct fab_source *src);

/* From now on a ring makes engine call rung. Lock held. 0: the bell is open until fab_bell_close(); or -errno. */
int fab_bell_open(struct fab_bell *bell, struct fab_engine *engine, void (*rung)(struct fab_bell *bell));
/* rung is not called any more; idempotent. Lock held. */
void fab_bell_close(struct fab_bell *bell);
/* rung will be called after this. Any thread; any lock may be held, and one must keep the bell open meanwhile. */
void fab_bell_ring(struct fab_bell *bell);
/* True between fab_bell_open() and fab_bell_close(). */
static inline bool fab_bell_is_open(const struct fab_bell *bell)
{
	return bell->source.engine;
}

/* Lock held. Starting a started timer moves it; stopping is idempotent. */
void fab_timer_init(struct fab_timer *timer, void (*fire)(struct fab_timer *timer));
void fab_timer_start(struct fab_engine *engine, struct fab_timer *timer, uint64_t when_ns);
void fab_timer_stop(struct fab_timer *timer);

/* Lock held. */
void fab_flush_init(struct fab_flush *flush, void (*fn)(struct fab_flush *flush));
void fab_engine_flush_later(struct fab_engine *engine, struct fab_flush *flush);	/* idempotent */
void fab_flush_cancel(struct fab_flush *flush);						/* idempotent */
void fab_engine_defer(struct fab_engine *engine, struct fab_defer *defer);

/* Set engine->direct to the hardware queue that CQs on this engine may read themselves, or NULL: none. They may read it
 * from the next pass on. Lock held. */
void fab_engine_set_direct(struct fab_engine *engine, void *direct);

/* The engine's staging buffers, allocated on first use. NULL: no memory. Lock held, valid until the caller returns to
 * the engine. */
uint8_t *fab_engine_staging(struct fab_engine *engine);
uint8_t *fab_engine_tx_staging(struct fab_engine *engine);

/* The application looks after this engine itself: its thread may keep away. Lock held. */
static inline void fab_engine_attend(struct fab_engine *engine)
{
	uint32_t spins = atomic_load_explicit(&engine->spins, memory_order_relaxed);

	atomic_store_explicit(&engine->spins, spins + 1, memory_order_relaxed);
}

/* One pass; lock held (kept throughout). True if it found anything. Does not signal wait objects: fab_engine_unlock()
 * does. Called from within a pass it does nothing. */
bool fab_engine_run(struct fab_engine *engine);
/* Send what is queued to leave, nothing else. Lock held. */
void fab_engine_flush(struct fab_engine *engine);

static inline void fab_engine_lock(struct fab_engine *engine)
{
	fab_lock_acquire(&engine->lock);
}

/* The same for a data call, which the application serialises with others where the threading level says so: post,
 * read a queue. Not for those that fi_domain(3) lets any thread make at any time. */
static inline void fab_engine_enter(struct fab_engine *engine)
{
	fab_lock_enter(&engine->lock);
}

/*
 * Both for an object whose engine may be chosen while others use it: *of is written once, with the lock held of the
 * engine that it leaves, and that one outlives the object. Returns the engine, whose lock is held; *of stays the same
 * while it is.
 */
struct fab_engine *fab_engine_lock_of(struct fab_engine *const *of);
static inline struct fab_engine *fab_engine_enter_of(struct fab_engine *const *of)
{
	struct fab_engine *engine = __atomic_load_n(of, __ATOMIC_ACQUIRE);

	fab_engine_enter(engine);
	if (__builtin_expect(engine == __atomic_load_n(of, __ATOMIC_RELAXED), 1))
		return engine;
	fab_lock_release(&engine->lock);
	return fab_engine_lock_of(of);
}

void fab_engine_signal(struct fab_engine *engine);	/* slow half of unlock: writes to wait objects */

/* Signal wait objects that still have something to tell (so an entry that was read in the same call costs nothing),
 * unlock. */
static inline void fab_engine_unlock(struct fab_engine *engine)
{
	if (!fab_list_empty(&engine->signals))
		fab_engine_signal(engine);
	fab_lock_release(&engine->lock);
}

/* The same for who has queued nothing and told nobody anything. */
static inline void fab_engine_leave(struct fab_engine *engine)
{
	fab_lock_release(&engine->lock);
}

/* A watcher comes or goes; any thread, no lock needed. After it came, and before it sleeps:
 * fab_engine_prepare_sleep(). */
static inline void fab_engine_watch(struct fab_engine *engine)
{
	atomic_fetch_add(&engine->watchers, 1);
}
static inline void fab_engine_unwatch(struct fab_engine *engine)
{
	atomic_fetch_sub(&engine->watchers, 1);
}
/* May what is to leave wait for the next pass? Not while there is a watcher, who would have to be woken for it. (A
 * progress thread that keeps away while the application polls is none: it comes back when that stops.) Lock held. */
static inline bool fab_engine_may_hold(const struct fab_engine *engine)
{
	return !atomic_load_explicit(&engine->watchers, memory_order_relaxed);
}
/* Flush, and set the alarm to the first timer: then epfd alone will tell a watcher to come back. Lock held. */
void fab_engine_prepare_sleep(struct fab_engine *engine);
/* The last look of somebody who is going to sleep: a pass that asks epoll too, then the above. Lock held. */
void fab_engine_last_look(struct fab_engine *engine);

#endif
