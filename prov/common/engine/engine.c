/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pass, and the life of an engine. Sources, timers and the thread have files of their own (parts.h). All state is
 * in struct fab_engine.
 *
 * Costs: a busy connection costs one recv() per pass, and no epoll_wait(). A pass that finds nothing costs one system
 * call: recv() if the engine has one connection, which is hot, otherwise epoll_wait(). After such a recv() a glance
 * (fab_engine_glance_or_pass()) makes the next ones, without the rest of a pass. With several connections it asks
 * epoll in any case: a program that gives way after a pass without an event would wait a time slice for each pass that
 * does not look everywhere. If more connections are busy than can be hot, each pass calls epoll_wait() once, and recv()
 * once for each of them. The clock is read only if there are timers, and where epoll might be asked.
 */
#include "common/engine/outsiders.h"
#include "common/engine/parts.h"
#include "common/engine/survey.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/forks.h"
#include "base/sock.h"

#define EPOLL_WORDS_NS		100000	/* if data comes by words alone, ask epoll at most so often */
#define EPOLL_EVENTS		64
#define SPIN_TICKS		((uint64_t) 1 << 18)	/* some 0.1 ms in which nothing is found; then yield */
#define DIRECT_LOOKS		128	/* run a pass after at most so many direct reads without one, ... */
#define DIRECT_TICKS		((uint64_t) 1 << 30)	/* ... and after some 0.5 s */

/* ---- flushes, memory ---- */

void fab_flush_init(struct fab_flush *flush, void (*fn)(struct fab_flush *flush))
{
	fab_list_init(&flush->link);
	flush->flush = fn;
}

void fab_engine_flush_later(struct fab_engine *engine, struct fab_flush *flush)
{
	if (!fab_list_empty(&flush->link))
		return;
	fab_list_add_tail(&engine->flush, &flush->link);
	engine->calm = FAB_ENGINE_CHORES;
	engine->direct.looks_left = 0;
	if (!engine->in_pass && fab_engine_watched(engine))
		fab_alarm_set(engine, FAB_ALARM_NOW);
}

void fab_engine_set_direct(struct fab_engine *engine, void *direct)
{
	engine->direct.queue = engine->lead ? NULL : direct;
	engine->direct.looks_left = 0;
	engine->calm = FAB_ENGINE_CHORES;
}

void fab_flush_cancel(struct fab_flush *flush)
{
	fab_list_remove(&flush->link);
}

/* Flushes that are queued meanwhile wait for the next call, so that this ends. */
void fab_engine_flush(struct fab_engine *engine)
{
	struct fab_list todo = FAB_LIST_INIT(todo);
	struct fab_list *link;

	fab_list_splice_tail(&todo, &engine->flush);
	while ((link = fab_list_pop_front(&todo))) {
		struct fab_flush *flush = fab_container(link, struct fab_flush, link);

		flush->flush(flush);
	}
}

void fab_engine_defer(struct fab_engine *engine, struct fab_defer *defer)
{
	fab_list_add_tail(&engine->deferred, &defer->link);
	engine->calm = FAB_ENGINE_CHORES;
}

static void free_deferred(struct fab_engine *engine)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(&engine->deferred))) {
		struct fab_defer *defer = fab_container(link, struct fab_defer, link);

		defer->free(defer);
	}
}

uint8_t *fab_staging_make(uint8_t **staging)
{
	*staging = malloc(FAB_STAGING_LEN);
	return *staging;
}

void fab_engine_attach(struct fab_engine *engine, struct fab_attached *attached)
{
	attached->next = engine->attached;
	engine->attached = attached;
}

struct fab_attached *fab_engine_attached(const struct fab_engine *engine, const void *key)
{
	struct fab_attached *attached = engine->attached;

	while (attached && attached->key != key)
		attached = attached->next;
	return attached;
}

/* ---- the pass ---- */

/* True if one of them, or the pass before them, has found anything. */
static bool run_polls(struct fab_engine *engine, bool found)
{
	struct fab_list *link, *tmp;

	fab_list_for_each_safe(&engine->polls, link, tmp) {
		struct fab_poll_fn *fn = fab_container(link, struct fab_poll_fn, link);

		found |= fn->poll(fn);
	}
	return found;
}

void fab_engine_prepare_sleep(struct fab_engine *engine)
{
	fab_engine_no_glance(engine);
	fab_engine_flush(engine);
	run_polls(engine, false);	/* arm the hardware for watchers that came after the last poll */
	fab_stats_sleep(engine);
	atomic_store_explicit(&engine->spins, 0, memory_order_relaxed);
	fab_alarm_set(engine, fab_list_empty(&engine->flush) ? fab_timer_first_ns(engine) : FAB_ALARM_NOW);
}

/* Poll each hot source. A callback may take any of them out of the list, so the first one is always taken and moved to
 * the end. */
static __attribute__((noinline)) bool poll_hot(struct fab_engine *engine)
{
	bool found = false;

	for (unsigned cnt = engine->sources.hot_cnt; cnt && !fab_list_empty(&engine->sources.hot); cnt--) {
		struct fab_source *src = fab_list_first(&engine->sources.hot, struct fab_source, hot);

		if (engine->sources.hot_cnt > 1) {
			fab_list_remove(&src->hot);
			fab_list_add_tail(&engine->sources.hot, &src->hot);
		}
		if (__builtin_expect(src->outsider, 0) && fab_outsiders_step_back(engine)) {
			fab_source_cool(src);
		} else if (src->poll(src)) {
			src->quiet = 0;
			found = true;
			engine->outsiders.heard |= !src->outsider;
		} else if (__builtin_expect(++src->quiet > engine->sources.quiet_max, 0) && src->engine) {
			fab_source_cool(src);
		}
	}
	return found;
}

static __attribute__((noinline, cold)) void tell_epoll_failed(const struct fab_engine *engine, int err)
{
	if (engine->prov && err != EINTR)
		FI_WARN(engine->prov, FI_LOG_CORE, "cannot find out which sockets have data: epoll_wait(): %s; does a "
			"filter of system calls (seccomp) deny it? Operations that are outstanding will not end\n",
			strerror(err));
}

/* Handle what epoll has reported: outsiders last. True if there was anything to do now. */
static bool handle_events(struct fab_engine *engine)
{
	int outsiders = 0;
	bool found;

	for (int i = 0; i < engine->epoll.event_cnt; i++) {
		struct epoll_event *event = &engine->epoll.events[i];
		struct fab_source *src = event->data.ptr;

		if (src && src->outsider) {
			outsiders++;
			continue;
		}
		event->data.ptr = NULL;
		if (src && src != &engine->alarm.source)
			engine->outsiders.heard = true;
		if (src)
			src->ready(src, event->events);
	}
	found = engine->epoll.event_cnt > outsiders;
	if (__builtin_expect(outsiders || !fab_list_empty(&engine->outsiders.line), 0)) {
		found |= fab_outsiders_serve(engine);
		if (engine->outsiders.rationed)
			engine->epoll.cnt -= outsiders;
	}
	return found;
}

static bool ask_epoll(struct fab_engine *engine)
{
	struct epoll_event events[EPOLL_EVENTS];
	int before = engine->epoll.cnt;
	unsigned gap;
	bool found;

	engine->epoll.cnt = fab_sock->epoll_wait(engine->epfd, events, EPOLL_EVENTS, 0);
	if (__builtin_expect(engine->epoll.cnt < 0, 0))
		tell_epoll_failed(engine, errno);
	engine->epoll.events = events;
	engine->epoll.event_cnt = engine->epoll.cnt;
	found = handle_events(engine);
	engine->epoll.event_cnt = 0;
	engine->epoll.events = NULL;
	while (fab_sources_crowded(engine) && engine->sources.hot_cnt)
		fab_source_cool(fab_list_first(&engine->sources.hot, struct fab_source, hot));
	gap = engine->epoll.cnt > 0 ? FAB_EPOLL_SOON : fab_min(2 * engine->epoll.gap, fab_epoll_passes(engine));
	if (gap != engine->epoll.gap || engine->epoll.cnt != before) {
		engine->epoll.gap = gap;
		fab_engine_sources_changed(engine);
	}
	return found;
}

/* True if data comes by words alone, epoll had nothing the last times, and was asked a short time ago: a program that
 * looks every 20 ns would ask it for each tenth message. */
static bool asked_lately(struct fab_engine *engine)
{
	uint64_t now;

	if (engine->epoll.ask || engine->epoll.gap < FAB_EPOLL_PASSES_WORDS ||
	    fab_epoll_passes(engine) < FAB_EPOLL_PASSES_WORDS)
		return false;
	now = fab_now_ns();
	if (now - engine->epoll.asked_ns < EPOLL_WORDS_NS)
		return true;
	engine->epoll.asked_ns = now;
	return false;
}

/* True if it is time to look further than at the hot sources. found: these had data. */
static inline bool looks_further(const struct fab_engine *engine, bool found)
{
	return engine->epoll.since >= engine->epoll.limit[found] || (engine->epoll.ask && !found);
}

/* Nothing was found. With more processes than processors, a program that polls keeps its processor from the
 * process that it waits for, for milliseconds at each message. So it yields when it has looked in vain for
 * SPIN_TICKS. An engine with a mutex does not, since other threads may want it; nor does one in a test with a
 * clock of its own, since ticks go on while that clock stands. */
static void give_way(struct fab_engine *engine)
{
	struct fab_engine_outsiders *outsiders = &engine->outsiders;
	uint64_t now = fab_ticks();

	if (outsiders->heard) {
		outsiders->heard_before = true;
		outsiders->heard = false;
		engine->idle_since = now;
	} else if (now - engine->idle_since > SPIN_TICKS &&
		   engine->lock.ops != fab_lock_kinds[FAB_LOCK_MUTEX] && fab_clock == &fab_system_clock) {
		sched_yield();
		engine->idle_since = fab_ticks();
	}
}

/* Ask epoll, unless there is nothing to ask for, and check timers. True if anything was found. */
static __attribute__((noinline)) bool look_further(struct fab_engine *engine)
{
	bool found = false, sleeps = engine->epoll.ask;	/* the caller may be about to sleep */

	engine->epoll.since = 0;
	if ((engine->sources.cnt || engine->alarm.when_ns) && !asked_lately(engine))
		found = ask_epoll(engine);
	engine->epoll.ask = false;
	if (engine->alarm.due || !fab_list_empty(&engine->timers))
		found |= fab_timers_run(engine);
	/* this pass may have used up what the polls have armed for those who sleep */
	if (found && fab_engine_watched(engine))
		run_polls(engine, true);
	if (!found && !sleeps)
		give_way(engine);
	return found;
}

/* A pass begins, and CQs may read the hardware queue themselves again. */
static __attribute__((noinline)) void renew_direct(struct fab_engine *engine)
{
	uint64_t now = fab_ticks(), looks = DIRECT_LOOKS;
	uint64_t each = (now - engine->stats.renewed) / (engine->stats.granted + 1);

	if (engine->direct.looks_left < 0)
		engine->epoll.since = FAB_EPOLL_PASSES;
	/* an application that looks rarely makes more passes, so that the time of its last one is known */
	if (each > DIRECT_TICKS / DIRECT_LOOKS && fab_clock == &fab_system_clock)
		looks = DIRECT_TICKS / each;
	engine->stats.renewed = now;
	engine->stats.granted = engine->direct.queue ? (unsigned) looks : 0;
	engine->direct.looks_left = (int) engine->stats.granted;
}

/* What a pass does before it looks, and after it, if anything asks for it: that sets engine->calm to FAB_ENGINE_CHORES.
 * After it also when the upper half of the ticks has changed. */
static __attribute__((noinline)) void begin_chores(struct fab_engine *engine)
{
	if (engine->direct.queue || engine->direct.looks_left)
		renew_direct(engine);
	if (!fab_list_empty(&engine->flush))
		fab_engine_flush(engine);
	if (engine->alarm.when_ns == FAB_ALARM_NOW)
		fab_alarm_set(engine, fab_timer_first_ns(engine));
}

static __attribute__((noinline)) void end_chores(struct fab_engine *engine)
{
	struct fab_moment now = fab_moment_now();	/* once more: a register fewer where there are none */
	bool again;

	fab_stats_passed_rare(engine, fab_moment_ticks(now));
	if (!fab_list_empty(&engine->flush) && fab_engine_watched(engine))
		fab_alarm_set(engine, FAB_ALARM_NOW);
	if (!fab_list_empty(&engine->deferred))
		free_deferred(engine);
	again = engine->direct.queue || !fab_list_empty(&engine->flush) || engine->alarm.when_ns == FAB_ALARM_NOW ||
		!fab_list_empty(&engine->deferred);
	engine->calm = again ? FAB_ENGINE_CHORES : now.high;
}

/* A pass ends. One comparison shows that there are no chores, and that the upper half of the ticks is that of the last
 * pass; then the lower half is stored. So the page of the process takes three instructions. */
static inline __attribute__((always_inline)) void end_pass(struct fab_engine *engine)
{
	struct fab_moment now = fab_moment_now();

	if (__builtin_expect(engine->calm == now.high, 1))
		fab_stats_passed(engine, now);
	else
		end_chores(engine);
}

/* This pass has found nothing: glances may replace passes, up to the one that asks epoll. At words not with watchers,
 * for whom polls arm more than a glance can. */
static __attribute__((noinline)) void allow_glances(struct fab_engine *engine)
{
	struct fab_engine_glance *glance = &engine->glance;
	unsigned next = engine->epoll.since + 1;

	if (next >= engine->epoll.limit[false] || fab_stats_slow(engine))
		return;
	if (glance->src) {
		glance->len = engine->staging ? glance->src->glance_len(glance->src) : 0;
		glance->reads = glance->len ? engine->epoll.limit[false] - next : 0;
	} else if (!fab_engine_watched(engine) && glance->fn->words(glance->fn, glance)) {
		glance->left = engine->epoll.limit[false] - next;
	}
}

/* The rest of a pass, after the hot sources and the polls. found: these had something. */
static inline __attribute__((always_inline)) bool pass_rest(struct fab_engine *engine, bool found)
{
	engine->epoll.since++;
	if (looks_further(engine, found))
		found |= look_further(engine);

	engine->in_pass = false;
	end_pass(engine);
	if (found)
		return true;
	fab_stats_idle(engine);
	if (engine->glance.fn || engine->glance.src)
		allow_glances(engine);
	return false;
}

static bool pass(struct fab_engine *engine)
{
	bool found = false;

	if (engine->in_pass)
		return false;
	engine->in_pass = true;
	engine->pass_cnt++;
	fab_engine_no_glance(engine);
	if (fab_engine_has_chores(engine))
		begin_chores(engine);
	if (engine->sources.hot_cnt)
		found = poll_hot(engine);
	if (!fab_list_empty(&engine->polls)) {
		found = run_polls(engine, found);
		engine->outsiders.heard |= found;
	}
	return pass_rest(engine, found);
}

bool fab_engine_full_pass(struct fab_engine *engine)
{
	fab_engine_attend(engine);
	return pass(engine);
}

bool fab_engine_glanced(struct fab_engine *engine, ssize_t n)
{
	struct fab_source *src = engine->glance.src;
	bool found;

	fab_engine_attend(engine);
	engine->in_pass = true;
	engine->pass_cnt++;
	fab_engine_no_glance(engine);
	found = src->glanced(src, n);
	if (found) {
		src->quiet = 0;
		engine->outsiders.heard |= !src->outsider;
	}
	return pass_rest(engine, found);
}

bool fab_engine_pass(struct fab_engine *engine)
{
	bool found = false;

	return !fab_engine_glance_or_pass(engine, &found) && found;
}

__attribute__((noinline)) bool fab_engine_pass_and_ask(struct fab_engine *engine)
{
	engine->epoll.ask = true;
	return pass(engine);
}

void fab_engine_last_look(struct fab_engine *engine)
{
	fab_engine_pass_and_ask(engine);
	fab_engine_prepare_sleep(engine);
}

void fab_engine_signal(struct fab_engine *engine)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(&engine->signals))) {
		struct fab_signal *signal = fab_container(link, struct fab_signal, link);

		signal->tell(signal);
	}
}

ssize_t fab_engine_unlock_rare(struct fab_engine *engine, ssize_t ret)
{
	fab_engine_unlock(engine);
	return ret;
}
/* ---- init and fini ---- */

static enum fab_lock_kind lock_kind(const struct fab_engine_attr *attr)
{
	if (attr->auto_progress)
		return FAB_LOCK_MUTEX;
	if (!attr->shared)
		return FAB_LOCK_NONE;
	return attr->data_serial ? FAB_LOCK_BIASED : attr->data_owned ? FAB_LOCK_OWNED : FAB_LOCK_MUTEX;
}

int fab_engine_init(struct fab_engine *engine, const struct fab_engine_attr *attr)
{
	struct epoll_event event;
	int ret;

	memset(engine, 0, sizeof(*engine));
	engine->epoll.gap = FAB_EPOLL_SOON;
	fab_list_init(&engine->sources.hot);
	fab_list_init(&engine->flush);
	fab_list_init(&engine->polls);
	fab_list_init(&engine->timers);
	fab_list_init(&engine->deferred);
	fab_list_init(&engine->signals);
	fab_outsiders_init(&engine->outsiders);
	engine->alarm.source.ready = fab_alarm_ready;
	engine->forks = fab_fork_cnt;
	engine->prov = attr->prov;
	ret = fab_stats_engine_begin(engine, attr->auto_progress);
	if (ret)
		return ret;

	engine->epfd = fab_sock->epoll_create1(EPOLL_CLOEXEC);
	if (engine->epfd < 0) {
		ret = -errno;
		goto end_stats;
	}
	engine->alarm.source.fd = fab_sock->timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (engine->alarm.source.fd < 0) {
		ret = -errno;
		goto close_epfd;
	}
	ret = fab_source_add(engine, &engine->alarm.source, EPOLLIN);
	if (ret)
		goto close_alarm;
	engine->sources.cnt = 0;	/* does not count the alarm */
	/* where it is denied, passes would find nothing, and no operation would end */
	if (fab_sock->epoll_wait(engine->epfd, &event, 1, 0) < 0 && errno != EINTR) {
		ret = -errno;
		tell_epoll_failed(engine, errno);
		goto close_alarm;
	}

	fab_lock_init(&engine->lock, lock_kind(attr));
	if (lock_kind(attr) == FAB_LOCK_MUTEX)
		fab_fork_guard_add(&engine->fork_guard, &engine->lock);
	if (attr->auto_progress) {
		engine->thread.run = true;
		ret = fab_thread_start(&engine->thread.id, fab_engine_thread_main, engine, attr->name);
		if (ret)
			goto fini_lock;
	}
	return 0;

fini_lock:
	fab_fork_guard_remove(&engine->fork_guard);
	fab_lock_fini(&engine->lock);
close_alarm:
	fab_sock_close(&engine->alarm.source.fd);
close_epfd:
	fab_sock_close(&engine->epfd);
end_stats:
	fab_stats_engine_end(engine);
	return ret;
}

void fab_engine_fini(struct fab_engine *engine)
{
	fab_engine_disown(engine);
	if (engine->thread.run)
		fab_engine_thread_join(engine);
	while (engine->attached) {
		struct fab_attached *attached = engine->attached;

		engine->attached = attached->next;
		attached->free(attached);
	}
	free_deferred(engine);
	assert(!engine->sources.cnt);
	assert(fab_list_empty(&engine->signals));
	free(engine->staging);
	free(engine->tx_staging);
	fab_fork_guard_remove(&engine->fork_guard);
	fab_lock_fini(&engine->lock);
	fab_sock_close(&engine->alarm.source.fd);
	fab_sock_close(&engine->epfd);
	fab_stats_engine_end(engine);
}

struct fab_engine *fab_engine_lock_of(struct fab_engine *const *of)
{
	struct fab_engine *engine;

	for (;;) {
		engine = __atomic_load_n(of, __ATOMIC_ACQUIRE);
		fab_engine_lock(engine);
		if (engine == __atomic_load_n(of, __ATOMIC_RELAXED))
			return engine;
		fab_lock_release(&engine->lock);
	}
}

void fab_engine_share(struct fab_engine *engine)
{
	fab_lock_inflate(&engine->lock);
}
