/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pass, its sources, timers and flushes, the alarm, and the thread of FI_PROGRESS_AUTO. All state is the engine's.
 *
 * Costs in mind: a busy connection costs one recv a pass and no epoll; a pass that finds nothing costs one call (a recv
 * while something is hot, else epoll); the clock is read only when there are timers.
 */
#include "common/engine/engine.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "common/trigger/trigger.h"
#include "common/engine/wait.h"

#define HOT_MAX			4	/* sources tried before epoll */
#define HOT_QUIET_MAX		512	/* passes without data after which a source is no longer hot ... */
#define HOT_QUIET_SHARED	8	/* ... while others are: one epoll is cheaper than two recv for nothing */
#define EPOLL_QUIET_PASSES	4	/* ask epoll at the latest after this many passes if hot sources are quiet */
#define EPOLL_PASSES		16	/* ... if they are not */
#define CLOCK_PASSES		16	/* look at timers at the latest after this many passes, if they find data */
#define EPOLL_EVENTS		64
#define DIRECT_LOOKS		128	/* a pass at the latest after so many looks that made none */
#define SPINS_AWAY		32	/* looks of the application without a sleep: the thread keeps away */
#define AWAY_NS			250000	/* for so long, then sees whether that goes on */

/* An alarm that is due now; no timer is that early. */
#define ALARM_NOW		1

/* ---- the alarm ---- */

/* Set the alarm to a time of the fab_now_ns() clock, ALARM_NOW, or 0 for off. Also takes back an alarm that went off.
 */
static void alarm_set(struct fab_progress *progress, uint64_t when_ns)
{
	struct itimerspec spec = { 0 };
	uint64_t now, left;

	if (when_ns == progress->alarm_ns)
		return;
	if (when_ns) {
		now = when_ns > ALARM_NOW ? fab_now_ns() : 0;
		left = when_ns > now ? when_ns - now : 1;
		spec.it_value.tv_sec = (time_t) (left / 1000000000);
		spec.it_value.tv_nsec = (long) (left % 1000000000);
	}
	fab_sock->timerfd_settime(progress->alarm.fd, 0, &spec, NULL);
	progress->alarm_ns = when_ns;
}

static uint64_t first_timer_ns(const struct fab_progress *progress)
{
	const struct fab_timer *timer = fab_list_first(&progress->timers, struct fab_timer, link);

	return timer ? timer->when_ns : 0;
}

static bool watched(struct fab_progress *progress)
{
	return atomic_load(&progress->watchers) > 0;
}

static void alarm_ready(struct fab_source *src, uint32_t events)
{
	(void) events;
	src->progress->alarm_due = true;
}

static bool run_polls(struct fab_progress *progress)
{
	struct fab_list *link, *tmp;
	bool found = false;

	fab_list_for_each_safe(&progress->polls, link, tmp) {
		struct fab_poll_fn *fn = fab_container(link, struct fab_poll_fn, link);

		found |= fn->poll(fn);
	}
	return found;
}

void fab_progress_prepare_sleep(struct fab_progress *progress)
{
	fab_progress_flush(progress);
	run_polls(progress);		/* hardware is to wake whoever has begun to watch since it was asked last */
	atomic_store_explicit(&progress->spins, 0, memory_order_relaxed);
	alarm_set(progress, fab_list_empty(&progress->flush) ? first_timer_ns(progress) : ALARM_NOW);
}

/* ---- sources ---- */

/* Make epoll know src as it says, or forget it. */
static int source_ctl(struct fab_progress *progress, int op, struct fab_source *src)
{
	struct epoll_event event = { .events = src->events, .data.ptr = src };

	return fab_sock->epoll_ctl(progress->epfd, op, src->fd, &event) ? -errno : 0;
}

static unsigned waits_to_write(uint32_t events)
{
	return (events & EPOLLOUT) != 0;
}

int fab_source_add(struct fab_progress *progress, struct fab_source *src, uint32_t events)
{
	int ret;

	assert(!src->progress);
	src->events = events;
	ret = source_ctl(progress, EPOLL_CTL_ADD, src);
	if (ret)
		return ret;
	src->progress = progress;
	src->quiet = 0;
	fab_list_init(&src->hot);
	progress->source_cnt++;
	progress->out_cnt += waits_to_write(events);
	return 0;
}

void fab_source_mod(struct fab_source *src, uint32_t events)
{
	struct fab_progress *progress = src->progress;

	if (src->events == events)
		return;
	progress->out_cnt += waits_to_write(events) - waits_to_write(src->events);
	src->events = events;
	source_ctl(progress, EPOLL_CTL_MOD, src);
}

static void cool(struct fab_source *src)
{
	if (fab_list_empty(&src->hot))
		return;
	fab_list_remove(&src->hot);
	src->progress->hot_cnt--;
}

void fab_source_del(struct fab_source *src)
{
	struct fab_progress *progress = src->progress;

	if (!progress)
		return;
	cool(src);
	source_ctl(progress, EPOLL_CTL_DEL, src);
	for (int i = progress->asked_next; i < progress->asked_cnt; i++) {
		if (progress->asked[i].data.ptr == src)
			progress->asked[i].data.ptr = NULL;
	}
	progress->source_cnt--;
	progress->out_cnt -= waits_to_write(src->events);
	src->progress = NULL;
}

/* The hot source that has been quiet longest. */
static struct fab_source *coolest(struct fab_progress *progress)
{
	struct fab_source *best = NULL, *src;
	struct fab_list *link;

	fab_list_for_each(&progress->hot, link) {
		src = fab_container(link, struct fab_source, hot);
		if (!best || src->quiet > best->quiet)
			best = src;
	}
	return best;
}

void fab_source_hot(struct fab_source *src)
{
	struct fab_progress *progress = src->progress;
	struct fab_source *victim;

	src->quiet = 0;
	if (!progress || !src->poll || !fab_list_empty(&src->hot))
		return;
	if (progress->hot_cnt == HOT_MAX) {
		victim = coolest(progress);
		if (victim->quiet < 2)
			return;		/* all are busy: epoll serves the others */
		cool(victim);
	}
	fab_list_add_tail(&progress->hot, &src->hot);
	progress->hot_cnt++;
}

/* ---- timers, flushes, memory ---- */

void fab_timer_init(struct fab_timer *timer, void (*fire)(struct fab_timer *timer))
{
	fab_list_init(&timer->link);
	timer->fire = fire;
	timer->when_ns = 0;
}

void fab_timer_start(struct fab_progress *progress, struct fab_timer *timer, uint64_t when_ns)
{
	struct fab_list *place;

	fab_list_remove(&timer->link);
	timer->when_ns = fab_max(when_ns, (uint64_t) ALARM_NOW + 1);
	for (place = progress->timers.prev; place != &progress->timers; place = place->prev) {
		if (fab_container(place, struct fab_timer, link)->when_ns <= timer->when_ns)
			break;
	}
	fab_list_add_after(place, &timer->link);
	if (place == &progress->timers && watched(progress) && progress->alarm_ns != ALARM_NOW)
		alarm_set(progress, timer->when_ns);
}

void fab_timer_stop(struct fab_timer *timer)
{
	fab_list_remove(&timer->link);
}

static bool run_timers(struct fab_progress *progress)
{
	uint64_t now = fab_now_ns();
	struct fab_timer *timer;
	bool found = false;

	progress->since_clock = 0;
	while ((timer = fab_list_first(&progress->timers, struct fab_timer, link)) && timer->when_ns <= now) {
		fab_list_remove(&timer->link);
		timer->fire(timer);
		found = true;
	}
	if (progress->alarm_due || (progress->alarm_ns > ALARM_NOW && progress->alarm_ns <= now))
		alarm_set(progress, watched(progress) ? first_timer_ns(progress) : 0);
	progress->alarm_due = false;
	return found;
}

void fab_flush_init(struct fab_flush *flush, void (*fn)(struct fab_flush *flush))
{
	fab_list_init(&flush->link);
	flush->flush = fn;
}

void fab_progress_flush_later(struct fab_progress *progress, struct fab_flush *flush)
{
	if (!fab_list_empty(&flush->link))
		return;
	fab_list_add_tail(&progress->flush, &flush->link);
	progress->looks_left = 0;
	if (!progress->in_pass && watched(progress))
		alarm_set(progress, ALARM_NOW);
}

void fab_progress_set_direct(struct fab_progress *progress, void *direct)
{
	progress->direct = direct;
	progress->looks_left = 0;
}

void fab_flush_cancel(struct fab_flush *flush)
{
	fab_list_remove(&flush->link);
}

/* What is queued meanwhile stays for the next time, so that this ends. */
void fab_progress_flush(struct fab_progress *progress)
{
	struct fab_list todo = FAB_LIST_INIT(todo);
	struct fab_list *link;

	fab_list_splice_tail(&todo, &progress->flush);
	while ((link = fab_list_pop_front(&todo))) {
		struct fab_flush *flush = fab_container(link, struct fab_flush, link);

		flush->flush(flush);
	}
}

void fab_progress_defer(struct fab_progress *progress, struct fab_defer *defer)
{
	fab_list_add_tail(&progress->deferred, &defer->link);
}

static void free_deferred(struct fab_progress *progress)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(&progress->deferred))) {
		struct fab_defer *defer = fab_container(link, struct fab_defer, link);

		defer->free(defer);
	}
}

static uint8_t *staging_get(uint8_t **staging)
{
	if (!*staging)
		*staging = malloc(FAB_STAGING_LEN);
	return *staging;
}

uint8_t *fab_progress_staging(struct fab_progress *progress)
{
	return staging_get(&progress->staging);
}

uint8_t *fab_progress_tx_staging(struct fab_progress *progress)
{
	return staging_get(&progress->tx_staging);
}

/* ---- the pass ---- */

/* Always the first of the list, which then goes to its end: a callback may take any of them out. */
static bool poll_hot(struct fab_progress *progress)
{
	bool found = false;

	for (unsigned cnt = progress->hot_cnt; cnt && !fab_list_empty(&progress->hot); cnt--) {
		struct fab_source *src = fab_list_first(&progress->hot, struct fab_source, hot);

		fab_list_remove(&src->hot);
		fab_list_add_tail(&progress->hot, &src->hot);
		if (src->poll(src)) {
			src->quiet = 0;
			found = true;
		} else if (++src->quiet > (progress->hot_cnt > 1 ? HOT_QUIET_SHARED : HOT_QUIET_MAX) && src->progress) {
			cool(src);
		}
	}
	return found;
}

static bool ask_epoll(struct fab_progress *progress)
{
	struct epoll_event events[EPOLL_EVENTS];

	progress->since_epoll = 0;
	progress->asked_cnt = fab_sock->epoll_wait(progress->epfd, events, EPOLL_EVENTS, 0);
	progress->asked = events;
	for (progress->asked_next = 0; progress->asked_next < progress->asked_cnt;) {
		struct epoll_event *event = &events[progress->asked_next++];
		struct fab_source *src = event->data.ptr;

		if (src)
			src->ready(src, event->events);
	}
	progress->asked = NULL;
	return progress->asked_cnt > 0;
}

/* Is it time to ask epoll, after the hot sources gave something or not? */
static bool epoll_wanted(const struct fab_progress *progress, bool found)
{
	bool nothing_hot = !progress->hot_cnt && fab_list_empty(&progress->polls);

	if (!progress->source_cnt && !progress->alarm_ns)
		return false;
	if (found)
		return progress->since_epoll >= (progress->out_cnt ? EPOLL_QUIET_PASSES : EPOLL_PASSES);
	return nothing_hot || progress->ask_epoll || progress->out_cnt || progress->since_epoll >= EPOLL_QUIET_PASSES;
}

/* Is it time to look at timers? */
static bool clock_wanted(const struct fab_progress *progress, bool found)
{
	if (progress->alarm_due)
		return true;
	return !fab_list_empty(&progress->timers) && (!found || progress->since_clock >= CLOCK_PASSES);
}

static bool pass(struct fab_progress *progress)
{
	bool found;

	if (progress->in_pass)
		return false;
	progress->in_pass = true;
	progress->pass_cnt++;
	if (progress->looks_left < 0)
		progress->since_epoll = EPOLL_PASSES;
	progress->looks_left = progress->direct ? DIRECT_LOOKS : 0;

	if (!fab_list_empty(&progress->flush))
		fab_progress_flush(progress);
	if (progress->alarm_ns == ALARM_NOW)
		alarm_set(progress, first_timer_ns(progress));

	found = poll_hot(progress);
	if (!fab_list_empty(&progress->polls))
		found |= run_polls(progress);
	progress->since_epoll++;
	if (epoll_wanted(progress, found))
		found |= ask_epoll(progress);
	progress->ask_epoll = false;

	progress->since_clock++;
	if (clock_wanted(progress, found))
		found |= run_timers(progress);

	progress->in_pass = false;
	if (!fab_list_empty(&progress->deferred))
		free_deferred(progress);
	return found;
}

bool fab_progress_run(struct fab_progress *progress)
{
	fab_progress_attend(progress);
	return pass(progress);
}

void fab_progress_last_look(struct fab_progress *progress)
{
	progress->ask_epoll = true;
	pass(progress);
	fab_progress_prepare_sleep(progress);
}

void fab_progress_signal(struct fab_progress *progress)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(&progress->signals)))
		fab_wait_signal(fab_container(link, struct fab_wait, link));
}

/* ---- the thread ---- */

/* Sleep until something arrives, is queued to leave, or is due. Lock held on entry and exit. */
static void thread_sleep(struct fab_progress *progress)
{
	struct pollfd pollfd = { .fd = progress->epfd, .events = POLLIN };

	fab_progress_watch(progress);
	fab_progress_prepare_sleep(progress);
	fab_progress_unlock(progress);
	fab_sock->poll(&pollfd, 1, -1);
	fab_progress_lock(progress);
	fab_progress_unwatch(progress);
}

/* Between two passes. */
static void thread_let_others_in(struct fab_progress *progress)
{
	if (!fab_list_empty(&progress->signals))
		fab_progress_signal(progress);
	fab_lock_yield(&progress->lock);
}

/* The application polls: leave the work to it as long as it does. Lock held on entry and exit. */
static void thread_keep_away(struct fab_progress *progress)
{
	const struct timespec away = { .tv_nsec = AWAY_NS };
	uint32_t before, now = atomic_load_explicit(&progress->spins, memory_order_relaxed);

	fab_progress_unlock(progress);
	do {
		before = now;
		nanosleep(&away, NULL);
		now = atomic_load_explicit(&progress->spins, memory_order_relaxed);
	} while (now != before && now >= SPINS_AWAY);
	fab_progress_lock(progress);
	atomic_store_explicit(&progress->spins, 0, memory_order_relaxed);
}

static void *thread_main(void *arg)
{
	struct fab_progress *progress = arg;

	fab_progress_lock(progress);
	while (!progress->thread_stop) {
		progress->ask_epoll = true;
		if (pass(progress))
			thread_let_others_in(progress);
		else
			thread_sleep(progress);
		if (atomic_load_explicit(&progress->spins, memory_order_relaxed) >= SPINS_AWAY)
			thread_keep_away(progress);
	}
	fab_progress_unlock(progress);
	return NULL;
}

int fab_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg, const char *name)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return -ret;
	if (name)
		pthread_setname_np(*thread, name);
	return 0;
}

static void thread_join(struct fab_progress *progress)
{
	fab_progress_lock(progress);
	progress->thread_stop = true;
	alarm_set(progress, ALARM_NOW);
	fab_progress_unlock(progress);
	pthread_join(progress->thread, NULL);
	progress->thread_run = false;
}

/* ---- life ---- */

static enum fab_lock_kind lock_kind(const struct fab_progress_attr *attr)
{
	if (attr->auto_progress)
		return FAB_LOCK_MUTEX;
	if (!attr->shared)
		return FAB_LOCK_NONE;
	return attr->data_serial ? FAB_LOCK_BIASED : attr->data_owned ? FAB_LOCK_OWNED : FAB_LOCK_MUTEX;
}

int fab_progress_init(struct fab_progress *progress, const struct fab_progress_attr *attr)
{
	int ret;

	memset(progress, 0, sizeof(*progress));
	fab_list_init(&progress->hot);
	fab_list_init(&progress->flush);
	fab_list_init(&progress->polls);
	fab_list_init(&progress->timers);
	fab_list_init(&progress->deferred);
	fab_list_init(&progress->signals);
	progress->alarm.ready = alarm_ready;

	progress->epfd = fab_sock->epoll_create1(EPOLL_CLOEXEC);
	if (progress->epfd < 0)
		return -errno;
	progress->alarm.fd = fab_sock->timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (progress->alarm.fd < 0) {
		ret = -errno;
		goto close_epfd;
	}
	ret = fab_source_add(progress, &progress->alarm, EPOLLIN);
	if (ret)
		goto close_alarm;
	progress->source_cnt = 0;	/* of others */

	fab_lock_init(&progress->lock, lock_kind(attr));
	if (attr->auto_progress) {
		progress->thread_run = true;
		ret = fab_thread_start(&progress->thread, thread_main, progress, attr->name);
		if (ret)
			goto fini_lock;
	}
	return 0;

fini_lock:
	fab_lock_fini(&progress->lock);
close_alarm:
	fab_sock_close(&progress->alarm.fd);
close_epfd:
	fab_sock_close(&progress->epfd);
	return ret;
}

void fab_progress_fini(struct fab_progress *progress)
{
	if (progress->thread_run)
		thread_join(progress);
	fab_ready_free(progress);
	free_deferred(progress);
	assert(!progress->source_cnt);
	assert(fab_list_empty(&progress->signals));
	free(progress->staging);
	free(progress->tx_staging);
	fab_lock_fini(&progress->lock);
	fab_sock_close(&progress->alarm.fd);
	fab_sock_close(&progress->epfd);
}

void fab_progress_share(struct fab_progress *progress)
{
	fab_lock_inflate(&progress->lock);
}
