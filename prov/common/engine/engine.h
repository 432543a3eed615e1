/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The progress engine: an epoll set, a staging buffer, timers, and one lock, which guards every object that makes
 * progress here (endpoints, their connections, CQs, counters). doc/design.md, section 7.3.
 *
 * A domain has one engine. With FI_THREAD_COMPLETION and manual progress, endpoints without a common queue have
 * different engines (common/domain/engines.h). Each EQ has an engine for listening.
 *
 * With manual progress, threads of the application run an engine when they read or wait on a CQ, counter or EQ. With
 * FI_PROGRESS_AUTO the engine has a thread, too, which sleeps in epoll, and pauses while the application itself polls.
 * "Lock held" below means engine->lock. Its kind is chosen at init from the threading level: none if the application
 * serialises everything, biased if it serialises data calls, owned if it makes them mostly from one thread, otherwise a
 * mutex. Callers do not test for the kind.
 *
 * A pass runs queued flushes, reads sources that had data lately, asks epoll when these have none, and from time to
 * time anyway, runs timers that are due, and frees deferred memory. Wait objects are notified at unlock.
 *
 * An outsider is a source of which somebody who is not known decides how much there is to do: a listener, a connection
 * that has not sent its request, a stranger. While other sources have data, outsiders share an eighth of the time
 * (outsiders.c).
 *
 * A watcher is a thread that may sleep on epfd without the engine knowing: a thread in fab_wait_sleep(), the engine's
 * own thread, or the application with a descriptor that it got. While there is a watcher, the alarm (a timerfd in epfd)
 * makes epfd readable when a pass must run: for the first timer, or at once when something was queued to be sent.
 */
#ifndef FAB_ENGINE_H
#define FAB_ENGINE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <rdma/fi_domain.h>
#include "base/forks.h"
#include "base/list.h"
#include "base/lock.h"
#include "base/sock.h"
#include "common/stats/stats.h"

struct epoll_event;
struct fab_engine;

/*
 * A file descriptor that an engine watches. Embedded in a connection, a listener ... Zeroed before it is added for the
 * first time. All callbacks run with the lock held. They may remove this or any other source (fab_source_del), whose
 * memory they then pass to fab_engine_defer().
 */
struct fab_source {
	int fd;				/* the embedder's: set before fab_source_add, closed after fab_source_del */
	uint32_t events;		/* EPOLLIN, EPOLLOUT: the events watched (level triggered) */
	uint32_t quiet;			/* passes since it last had data; private to the engine */
	uint32_t due;			/* events that wait for its turn; private to the engine */
	bool outsider;			/* set before fab_source_add, or by fab_source_set_outsider */
	bool aside;			/* epoll does not watch it while it waits; private to the engine */
	struct fab_list hot;		/* in engine->sources.hot while it is hot, in engine->outsiders.line while it
					 * waits for its turn; private to the engine */
	struct fab_engine *engine;	/* NULL: not added */
	/* epoll has reported `events`. */
	void (*ready)(struct fab_source *src, uint32_t events);
	/* Try one non-blocking read, without an event. True if it had data. NULL: the source is never hot. */
	bool (*poll)(struct fab_source *src);
	/* Where poll does no more than one recv() as long as that finds nothing, a glance may make it instead: the
	 * number of bytes to read, at most FAB_STAGING_LEN. 0: poll must be called. NULL: always. */
	size_t (*glance_len)(const struct fab_source *src);
	/* With glance_len: a glance has read n bytes to engine->staging, or n is 0 or -errno. Results as of poll. */
	bool (*glanced)(struct fab_source *src, ssize_t n);
};

/*
 * A bell wakes an engine from any thread. A thread that has left something for the engine rings the bell, and a pass of
 * the engine then calls the bell's function. It is an eventfd. Embedded; zeroed before it is opened for the first time.
 */
struct fab_bell {
	struct fab_source source;	/* owns its descriptor while the bell is open */
	/* Called after the bell was rung, once or several times. Lock held. */
	void (*rung)(struct fab_bell *bell);
};

/* Calls `fire` once at or after when_ns (fab_now_ns clock). Passes check timers, so the delay depends on them. */
struct fab_timer {
	struct fab_list link;
	uint64_t when_ns;
	void (*fire)(struct fab_timer *timer);
};

/* Called once, at the start of the next pass, or before a thread sleeps. It is unlinked before the call. */
struct fab_flush {
	struct fab_list link;		/* empty (fab_list_init) while not queued */
	void (*flush)(struct fab_flush *flush);
};

/* Looks through the pending operations of an object, for the page of the process (common/stats). Embedded. */
struct fab_survey {
	struct fab_list link;
	/* Write what is pending; returns the number of operations, without receives and messages kept. Lock held; not
	 * to be removed from within. */
	uint64_t (*look)(struct fab_survey *survey);
};

/* Memory that is freed after the pass, since sources of this pass may still point to it. */
struct fab_defer {
	struct fab_list link;
	void (*free)(struct fab_defer *defer);
};

/* A function of a provider that polls hardware (verbs), called in every pass; true if it found anything. It is called
 * once more before a thread sleeps. While there are watchers, a call that finds nothing must leave the hardware armed,
 * so that the next event makes epfd readable. Lock held. */
struct fab_engine_glance;
struct fab_poll_fn {
	struct fab_list link;
	bool (*poll)(struct fab_poll_fn *fn);
	/* A call of poll has found nothing: fill in the words that are 0 until there is something. False: there is more
	 * to look at. NULL: there are no such words. */
	bool (*words)(const struct fab_poll_fn *fn, struct fab_engine_glance *glance);
};

/* A notification that is delivered at unlock, after the pass. Embedded in a wait object. */
struct fab_signal {
	struct fab_list link;		/* in engine->signals; empty while nothing is to be notified */
	void (*tell)(struct fab_signal *signal);	/* lock held; unlinked before the call */
};

/* Makes one engine follow another (fab_engine_follow()). Embedded; zeroed before. */
struct fab_follow {
	struct fab_poll_fn fn;		/* in engine->polls: runs a pass of lead */
	struct fab_source source;	/* lead->epfd, so that a thread that sleeps on engine->epfd wakes for it */
	struct fab_engine *engine, *lead;	/* borrowed; lead is NULL while not in use */
};

/* Data that a higher room attaches to an engine, embedded in a struct of its own. */
struct fab_attached {
	const void *key;		/* the address of a constant of the room */
	struct fab_attached *next;	/* private to the engine */
	/* Called when the engine ends: free the data. No lock held; no other thread uses the engine. */
	void (*free)(struct fab_attached *attached);
};

#define FAB_STAGING_LEN		(64 * 1024)	/* bytes; the most that one recv() reads */

/* What epoll_wait() reported, and when to call it again. */
struct fab_engine_epoll {
	struct epoll_event *events;	/* while they are handled: of this pass; data.ptr NULL: nothing left to do */
	int event_cnt;			/* of events */
	int cnt;			/* sources that were ready, without outsiders that have to wait */
	bool ask;			/* the next pass must ask epoll, even if hot sources have no data */
	unsigned since;			/* passes since the last epoll_wait(), or since it was put off */
	uint64_t asked_ns;		/* when it was called last, as far as data comes by words alone */
	unsigned gap;			/* passes after which it is called again if hot sources have no data */
	/* passes after which epoll is called again where hot sources have no data, and where they have: what follows
	 * from gap and the sources */
	unsigned limit[2];
};

/* The sources of an engine. */
struct fab_engine_sources {
	struct fab_list hot;		/* struct fab_source.hot */
	unsigned hot_cnt;
	unsigned quiet_max;		/* polls without data after which a source is no longer hot */
	unsigned cnt;			/* all, except the alarm */
	unsigned poll_cnt;		/* those that may be hot */
	unsigned out_cnt;		/* those that watch for EPOLLOUT */
};

/* Outsiders, and whether they may go on: outsiders.c. */
struct fab_engine_outsiders {
	struct fab_list line;		/* struct fab_source.hot of those that wait for their turn, first come first
					 * served; epoll does not watch them meanwhile */
	struct fab_timer turn;		/* runs while there is a line: the next turn */
	uint64_t rest_ns;		/* there is no turn before this time, while they are rationed */
	uint64_t busy_ns;		/* about when another source had data last; 0: never */
	uint64_t turn_end_ns;		/* of the turn that has begun last */
	bool heard;			/* another source had data since give_way() has looked at this flag */
	bool heard_before;		/* another source had data before that, and since the last turn */
	bool rationed;			/* other sources have had data lately */
};

/* The timerfd in epfd that makes it readable when a sleeper must return. */
struct fab_engine_alarm {
	struct fab_source source;
	uint64_t when_ns;		/* 0: off */
	bool due;			/* epoll has reported it */
};

/* FI_PROGRESS_AUTO: the engine's own thread. */
struct fab_engine_thread {
	pthread_t id;
	bool run;			/* it exists. Constant while it does */
	bool stop;			/* it must end */
};

/* For a provider whose CQs read the hardware themselves. */
struct fab_engine_direct {
	void *queue;			/* the hardware queue with all completions of this engine, or NULL */
	/* how often a CQ may read it before the next pass; 0 without a queue, or if something is queued to be sent */
	int looks_left;
};

/*
 * Where words in memory announce all that a pass may find, a look that finds them 0 replaces the pass
 * (fab_engine_glance()). Where all that it may find is in one source, a recv() that finds nothing replaces it
 * (fab_engine_pass()). A pass that has found nothing sets how many times. Whatever may make a difference sets 0.
 */
#define FAB_GLANCE_MAX	4
struct fab_engine_glance {
	struct fab_poll_fn *fn;		/* the only one, and has words; no source is hot. NULL: no such function */
	struct fab_source *src;		/* the only one that is hot, and has glance_len; there is no poll function, and
					 * nothing else that epoll would have to be asked for. NULL: no such source */
	unsigned left;			/* glances at words until the next pass */
	unsigned reads;			/* the same, of src */
	size_t len;			/* bytes to read */
	unsigned cnt;			/* of word */
	const _Atomic uint64_t *bits;
	const _Atomic uint32_t *word[FAB_GLANCE_MAX];
};

/* What the engine writes to the page of the process (engine/survey.c). */
struct fab_engine_stats {
	struct fi_stats_engine *record;	/* owned */
	struct fab_list surveys;
	struct fab_timer timer;		/* wakes a sleeper once for a survey */
	uint64_t again_ns;		/* a sleeper wakes for another survey after this time; 0: it does not */
	uint64_t renewed;		/* ticks of the pass that last permitted direct reads, and ... */
	unsigned granted;		/* ... so many of them */
	bool due;			/* something may have happened since the last survey, and the timer may wake
					 * a sleeper for it. Not for one outside, whose descriptor means something */
	bool fired;			/* the timer has fired since a sleeper woke */
	uint64_t idle;			/* ticks of the last pass that has found nothing */
};

#define FAB_ENGINE_CHORES	UINT32_MAX

/* Guarded by lock, except where a member says otherwise. */
struct fab_engine {
	struct fab_lock lock;
	int epfd;			/* readable when any source is ready; part of the epoll sets of wait objects.
					 * Constant */
	bool in_pass;
	uint32_t pass_cnt;		/* passes so far */
	uint32_t calm;			/* the upper half of the ticks at the last pass (survey.h): until it changes, a
					 * pass has to do no more than look. Or FAB_ENGINE_CHORES */
	struct fab_engine_stats stats;
	_Atomic uint32_t spins;		/* passes by the application since it last prepared to sleep; written with the
					 * lock */
	_Atomic uint32_t watchers;	/* threads that may sleep on epfd; incremented before the last look that
					 * precedes a sleep */
	struct fab_engine_direct direct;
	struct fab_engine_epoll epoll;
	struct fab_engine_sources sources;
	struct fab_engine_outsiders outsiders;
	struct fab_engine_glance glance;
	uint64_t idle_since;		/* ticks of the last look that found something, or of the last yield */
	struct fab_engine *lead;	/* the engine that this one follows, or NULL: its lock is held with ours, and
					 * each of our passes runs one of its */
	bool tell_at_once;		/* it follows or is followed. A thread that releases the lock of the other
					 * engine does not look at our signals, so wait objects are notified at once */
	struct fab_list flush;
	struct fab_list polls;
	struct fab_list timers;		/* by when_ns, earliest first */
	struct fab_list deferred;
	struct fab_list signals;	/* struct fab_signal.link: wait objects to notify */
	struct fab_engine_alarm alarm;
	struct fab_engine_thread thread;
	struct fab_attached *attached;	/* owned */
	const struct fi_provider *prov;	/* borrowed; or NULL */
	struct fab_fork_guard fork_guard;	/* of lock, if that is a mutex */
	uint32_t forks;			/* fab_fork_cnt of the process that made it, or has disowned it */
	bool inherited;			/* it was disowned */
	uint8_t *staging;		/* see fab_engine_staging(); a source uses it during one call */
	uint8_t *tx_staging;		/* for gathering small frames; likewise */
};

/* The use of an engine, which determines its kind of lock (base/lock.h): none if neither `shared` nor `auto_progress`
 * is set; if only `shared` is set, biased with data_serial and owned with data_owned; otherwise a mutex. */
struct fab_engine_attr {
	bool shared;			/* several threads may use it at a time */
	bool data_serial;		/* but only one at a time makes data calls (fab_engine_enter) */
	bool data_owned;		/* most data calls come from one thread */
	bool auto_progress;
	const char *name;		/* of the thread, at most 15 bytes */
	const struct fi_provider *prov;	/* for the log; borrowed. NULL: nothing is logged */
};

/* Initialise, and start the thread with auto_progress. 0: the caller calls fab_engine_fini() at the end. -FI_EMFILE,
 * -FI_ENOMEM or another -errno; -FI_EPERM, -FI_ENOSYS, logged: epoll_wait() is denied to this process. */
int fab_engine_init(struct fab_engine *engine, const struct fab_engine_attr *attr);

/* Stop the thread, free all memory, including deferred memory. No source is left; the lock is not held. */
void fab_engine_fini(struct fab_engine *engine);

/*
 * True in a child of fork(2), for an engine of its parent. The child shares descriptors with the parent, so what it
 * does with them concerns the connections of the parent. All that it may do is to close the objects.
 */
bool fab_engine_is_inherited(const struct fab_engine *engine);
/* Before an object of the engine is closed: in a child of fork(2), let go of what the engine shares with the parent,
 * and of all that its passes would do, so that passes and changes of its sources concern nobody. The engine's thread is
 * not in the child. The lock is not held. True if the engine is inherited: the caller sends nothing. Cheap and without
 * effect otherwise. */
bool fab_engine_disown(struct fab_engine *engine);

/* Start a thread, with a name of at most 15 bytes, or NULL. It blocks all signals, which are for the application's
 * threads. 0 or -errno. */
int fab_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg, const char *name);

/* Make an engine follow `lead` for good: a thread that takes its lock takes that of lead, too (fab_lock_lead()), each
 * of its passes runs one of lead, and threads that sleep on it wake for what lead finds. An operation on lead may
 * then change objects of engine, such as a completion queue. lead has a mutex, follows none, and outlives engine. No
 * lock held. 0; -errno: only the lock was changed. */
int fab_engine_follow(struct fab_follow *follow, struct fab_engine *engine, struct fab_engine *lead);
/* Undo it, but for the lock, before fab_engine_fini() of the engine; idempotent. No lock held. */
void fab_engine_unfollow(struct fab_follow *follow);

/* Allow other threads from now on: an engine without a lock gets a mutex (no thread may be inside meanwhile), and a
 * biased or owned lock becomes a mutex. */
void fab_engine_share(struct fab_engine *engine);

/* Add, change or remove a source. Lock held. add: 0 or -errno; mod and del of an added source cannot fail. */
int fab_source_add(struct fab_engine *engine, struct fab_source *src, uint32_t events);
void fab_source_mod(struct fab_source *src, uint32_t events);
void fab_source_del(struct fab_source *src);		/* idempotent; does not close the fd */
/* Replace `from`, which is added, by `to`, which is not: the same descriptor, with other callbacks. One system call.
 * Lock held. 0; -errno: nothing was done, since `from` is an outsider that epoll does not watch now, and cannot. */
int fab_source_move(struct fab_source *from, struct fab_source *to, uint32_t events);
/* A source becomes an outsider, or is none any more. Lock held, and needed only while it is added. */
void fab_source_set_outsider(struct fab_source *src, bool outsider);
/* An outsider has something to do that epoll does not report: call ready with EPOLLIN in its turn. It is added. Lock
 * held. */
void fab_source_ask_turn(struct fab_source *src);
/* For an outsider that has a choice: true if it should do little at a time, since others have data. Lock held. */
static inline bool fab_engine_rations(const struct fab_engine *engine)
{
	return engine->outsiders.rationed;
}
/* A layer above has spent ns more on what outsiders have sent. They wait for that as after a turn that took so long.
 * Lock held. */
void fab_engine_outsiders_took(struct fab_engine *engine, uint64_t ns);
/* For an outsider in a loop: true if it should go on in its next turn. Lock held. */
bool fab_engine_turn_is_over(const struct fab_engine *engine);
/* Add a function to the passes of an engine, or remove it. Lock held. */
void fab_poll_add(struct fab_engine *engine, struct fab_poll_fn *fn);
void fab_poll_del(struct fab_engine *engine, struct fab_poll_fn *fn);
/* Make a source hot that is not. For fab_source_hot(). Lock held. */
void fab_source_heat(struct fab_source *src);
/* The source has just had data: make it hot, so that passes read it before they ask epoll. Lock held. */
static inline void fab_source_hot(struct fab_source *src)
{
	src->quiet = 0;
	if (__builtin_expect(fab_list_empty(&src->hot), 0))
		fab_source_heat(src);
}

/* Open a bell: a ring makes engine call rung from now on. Lock held. 0: the bell is open until fab_bell_close().
 * -errno. */
int fab_bell_open(struct fab_bell *bell, struct fab_engine *engine, void (*rung)(struct fab_bell *bell));
/* Close a bell: rung is not called any more. Idempotent. Lock held. */
void fab_bell_close(struct fab_bell *bell);
/* Ring a bell: rung will be called. Any thread; any lock may be held, and one of them must keep the bell open
 * meanwhile. */
void fab_bell_ring(struct fab_bell *bell);
/* True between fab_bell_open() and fab_bell_close(). */
static inline bool fab_bell_is_open(const struct fab_bell *bell)
{
	return bell->source.engine;
}

/* Initialise, start and stop a timer. Lock held. Starting a timer that is started changes its time; stopping is
 * idempotent. */
void fab_timer_init(struct fab_timer *timer, void (*fire)(struct fab_timer *timer));
void fab_timer_start(struct fab_engine *engine, struct fab_timer *timer, uint64_t when_ns);
void fab_timer_stop(struct fab_timer *timer);

/* Initialise, queue and cancel a flush; defer freeing memory to the end of the pass. Lock held. */
void fab_flush_init(struct fab_flush *flush, void (*fn)(struct fab_flush *flush));
void fab_engine_flush_later(struct fab_engine *engine, struct fab_flush *flush);	/* idempotent */
void fab_flush_cancel(struct fab_flush *flush);						/* idempotent */
void fab_engine_defer(struct fab_engine *engine, struct fab_defer *defer);

/* Add or remove a survey of pending operations. Idempotent removal of one that is zeroed or was removed. Lock held. */
void fab_survey_add(struct fab_engine *engine, struct fab_survey *survey);
void fab_survey_del(struct fab_survey *survey);
/* The application is about to sleep: what is pending may differ from the last survey. Lock held. */
static inline void fab_survey_due(struct fab_engine *engine)
{
	engine->stats.due = true;
}
/* The same for a sleeper that wakes, unless that is because of a survey. Lock held. */
static inline void fab_survey_woken(struct fab_engine *engine)
{
	engine->stats.due |= !engine->stats.fired;
	engine->stats.fired = false;
}

/* Set engine->direct.queue to the hardware queue that CQs of this engine may read themselves, or to NULL. They may read
 * it from the next pass on. Lock held. */
void fab_engine_set_direct(struct fab_engine *engine, void *direct);

/* Allocate a staging buffer, FAB_STAGING_LEN bytes, and store it in *staging. NULL: no memory. For the two functions
 * below. */
uint8_t *fab_staging_make(uint8_t **staging);
/* The engine's staging buffers, allocated on first use. NULL: no memory. Lock held, valid until the caller returns to
 * the engine. */
static inline uint8_t *fab_engine_staging(struct fab_engine *engine)
{
	return __builtin_expect(engine->staging != NULL, 1) ? engine->staging : fab_staging_make(&engine->staging);
}
static inline uint8_t *fab_engine_tx_staging(struct fab_engine *engine)
{
	return __builtin_expect(engine->tx_staging != NULL, 1) ? engine->tx_staging :
								  fab_staging_make(&engine->tx_staging);
}

/* The application drives the engine itself, so the engine's thread may pause. Lock held. */
static inline void fab_engine_attend(struct fab_engine *engine)
{
	uint32_t spins = atomic_load_explicit(&engine->spins, memory_order_relaxed);

	atomic_store_explicit(&engine->spins, spins + 1, memory_order_relaxed);
}

/* Attach data to an engine, which owns it from now on. Lock held. */
void fab_engine_attach(struct fab_engine *engine, struct fab_attached *attached);
/* The data with this key, or NULL. Lock held. */
struct fab_attached *fab_engine_attached(const struct fab_engine *engine, const void *key);

/* True: the next pass may have to do more than look (engine.c, begin_chores()). Lock held. */
static inline bool fab_engine_has_chores(const struct fab_engine *engine)
{
	return engine->calm == FAB_ENGINE_CHORES;
}

/* A glance at words, which counts as a pass. True: there is nothing to find. False: make a pass. Lock held. */
static inline bool fab_engine_glance(struct fab_engine *engine)
{
	struct fab_engine_glance *glance = &engine->glance;

	if (!glance->left || fab_engine_has_chores(engine) || atomic_load_explicit(glance->bits, memory_order_relaxed))
		return false;
	for (unsigned i = 0; i < glance->cnt; i++) {
		if (atomic_load_explicit(glance->word[i], memory_order_relaxed))
			return false;
	}
	glance->left--;
	engine->epoll.since++;
	engine->pass_cnt++;
	engine->stats.record->glances++;
	fab_engine_attend(engine);
	return true;
}
/* The next look is a pass: something has changed that the words do not tell. Lock held. */
static inline void fab_engine_no_glance(struct fab_engine *engine)
{
	engine->glance.left = 0;
	engine->glance.reads = 0;
}

/* Run one pass in any case. The lock is held, and not released in between. True if it found anything. Within a pass
 * this does nothing. Wait objects are notified by fab_engine_unlock(). */
bool fab_engine_full_pass(struct fab_engine *engine);
/* For fab_engine_glance_or_pass(): a glance at glance.src has read n bytes, or n is 0 or -errno. It becomes a pass.
 * Lock held. True if it found anything. */
bool fab_engine_glanced(struct fab_engine *engine, ssize_t n);
/* True: a glance at the only hot source, which is one recv(), has replaced the pass and found nothing. False: a pass
 * was run, and *found is its result. Lock held. */
static inline bool fab_engine_glance_or_pass(struct fab_engine *engine, bool *found)
{
	ssize_t n;

	if (!engine->glance.reads || fab_engine_has_chores(engine)) {
		*found = fab_engine_full_pass(engine);
		return false;
	}
	n = fab_sock_recv_now(engine->glance.src->fd, engine->staging, engine->glance.len);
	if (__builtin_expect(n != -EAGAIN, 0)) {
		*found = fab_engine_glanced(engine, n);
		return false;
	}
	engine->glance.src->quiet++;	/* read again: a register fewer to save */
	engine->glance.reads--;
	engine->epoll.since++;
	engine->pass_cnt++;
	engine->stats.record->glances++;
	fab_engine_attend(engine);
	return true;
}
/* Run one pass, or a glance at the only hot source in its place. Lock held. True if it found anything. */
bool fab_engine_pass(struct fab_engine *engine);
/* The same, if a glance is not enough. */
static inline bool fab_engine_run(struct fab_engine *engine)
{
	return !fab_engine_glance(engine) && fab_engine_pass(engine);
}
/* Run the queued flushes only. Lock held. */
void fab_engine_flush(struct fab_engine *engine);

static inline void fab_engine_lock(struct fab_engine *engine)
{
	fab_lock_acquire(&engine->lock);
}

/* The same for a data call: posting an operation or reading a queue, which the application serialises as the threading
 * level says. Not for control calls, which fi_domain(3) allows from any thread at any time. */
static inline void fab_engine_enter(struct fab_engine *engine)
{
	fab_lock_enter(&engine->lock);
}

/* The same, if it takes no more than a store and a load. False: nothing was done that matters; call
 * fab_engine_enter(). For functions that make no other call. */
static inline bool fab_engine_try_enter(struct fab_engine *engine)
{
	return fab_lock_try_enter(&engine->lock);
}

/* Undo fab_engine_try_enter(); nothing was done since. */
static inline void fab_engine_undo_enter(struct fab_engine *engine)
{
	(void) fab_lock_try_release(&engine->lock);
}

/*
 * Both for an object whose engine may be chosen while other threads use it. *of is written once, with the lock of the
 * old engine held; the old engine outlives the object. Returns the engine with its lock held; *of does not change while
 * it is held.
 */
struct fab_engine *fab_engine_lock_of(struct fab_engine *const *of);
static inline struct fab_engine *fab_engine_enter_of(struct fab_engine *const *of)
{
	struct fab_engine *engine;

	for (;;) {
		engine = __atomic_load_n(of, __ATOMIC_ACQUIRE);
		fab_engine_enter(engine);
		if (__builtin_expect(engine == __atomic_load_n(of, __ATOMIC_RELAXED), 1))
			return engine;
		fab_lock_release(&engine->lock);
	}
}

/* The same for functions that make no other call, as of fab_engine_try_enter(). NULL: it takes more, call
 * fab_engine_enter_of(). */
static inline struct fab_engine *fab_engine_try_enter_of(struct fab_engine *const *of)
{
	struct fab_engine *engine = __atomic_load_n(of, __ATOMIC_ACQUIRE);

	if (!fab_engine_try_enter(engine))
		return NULL;
	if (__builtin_expect(engine == __atomic_load_n(of, __ATOMIC_RELAXED), 1))
		return engine;
	fab_engine_undo_enter(engine);
	return NULL;
}

void fab_engine_signal(struct fab_engine *engine);	/* part of unlock: notifies wait objects */

/* Notify wait objects that still have something to read, and unlock. An entry that was read in the same call causes no
 * notification. */
static inline void fab_engine_unlock(struct fab_engine *engine)
{
	if (!fab_list_empty(&engine->signals))
		fab_engine_signal(engine);
	fab_lock_release(&engine->lock);
}

/* Unlock, and return ret. For the end of functions that make no other call: the call in here is their last. */
ssize_t fab_engine_unlock_rare(struct fab_engine *engine, ssize_t ret);
static inline ssize_t fab_engine_return(struct fab_engine *engine, ssize_t ret)
{
	if (__builtin_expect(!fab_list_empty(&engine->signals) || !fab_lock_try_release(&engine->lock), 0))
		return fab_engine_unlock_rare(engine, ret);
	return ret;
}

/* Unlock, for a caller that has queued no event. */
static inline void fab_engine_leave(struct fab_engine *engine)
{
	fab_lock_release(&engine->lock);
}

/* Add or remove a watcher. Any thread, no lock needed. A watcher calls fab_engine_prepare_sleep() after it was added
 * and before it sleeps. */
static inline void fab_engine_watch(struct fab_engine *engine)
{
	atomic_fetch_add(&engine->watchers, 1);
}
static inline void fab_engine_unwatch(struct fab_engine *engine)
{
	atomic_fetch_sub(&engine->watchers, 1);
}
/* True if data to be sent may wait for the next pass. With a watcher it may not, since the watcher would have to be
 * woken for it. A progress thread that has paused is not a watcher: it continues when the application stops polling.
 * Lock held. */
static inline bool fab_engine_may_hold(const struct fab_engine *engine)
{
	return !atomic_load_explicit(&engine->watchers, memory_order_relaxed);
}
/* Run flushes, and set the alarm to the first timer, so that epfd becomes readable when a watcher must run a pass. Lock
 * held. */
void fab_engine_prepare_sleep(struct fab_engine *engine);
/* The last check before a thread sleeps: run a pass that asks epoll, then fab_engine_prepare_sleep(). Lock held. */
void fab_engine_last_look(struct fab_engine *engine);

#endif
