/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The device's thread: sockets and timers, one lock. Sources are known to epoll by a number that is never used
 * again, so an event of a source that has gone meanwhile is dropped.
 */
#include "sv.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX	32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct fab_list timers = FAB_LIST_INIT(timers);
static struct sv_source **sources;	/* by id less the first */
static uint64_t source_cap;
static int epfd = -1, wakefd = -1;
static bool running;

void sv_lock(void)
{
	pthread_mutex_lock(&lock);
}

void sv_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void sv_wait(void)
{
	pthread_cond_wait(&changed, &lock);
}

void sv_wait_until(uint64_t end_ns)
{
	struct timespec ts = { (time_t) (end_ns / 1000000000u), (long) (end_ns % 1000000000u) };

	pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &ts);
}

void sv_wake_all(void)
{
	pthread_cond_broadcast(&changed);
}

uint64_t sv_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000000u + ts.tv_nsec;
}

/* Let the thread look at its timers again. */
static void poke(void)
{
	if (wakefd >= 0 && write(wakefd, &(uint64_t) { 1 }, sizeof(uint64_t)) < 0)
		return;			/* it is to wake already */
}

void sv_timer_init(struct sv_timer *timer, void (*fire)(struct sv_timer *timer))
{
	fab_list_init(&timer->link);
	timer->fire = fire;
}

void sv_timer_stop(struct sv_timer *timer)
{
	fab_list_remove(&timer->link);
	fab_list_init(&timer->link);
}

static void run_timers(void)
{
	uint64_t now = sv_now_ns();
	struct fab_list *link;

again:
	fab_list_for_each(&timers, link) {
		struct sv_timer *timer = fab_container(link, struct sv_timer, link);

		if (timer->when_ns <= now) {
			sv_timer_stop(timer);
			timer->fire(timer);
			goto again;
		}
	}
}

/* Milliseconds until the first timer, for epoll. */
static int until_timer(void)
{
	uint64_t first = UINT64_MAX, now = sv_now_ns();
	struct fab_list *link;

	fab_list_for_each(&timers, link) {
		struct sv_timer *timer = fab_container(link, struct sv_timer, link);

		if (timer->when_ns < first)
			first = timer->when_ns;
	}
	if (first == UINT64_MAX)
		return -1;
	return first <= now ? 0 : (int) ((first - now + 999999) / 1000000);
}

static void *engine(void *arg)
{
	struct epoll_event events[EVENTS_MAX];
	uint64_t count;
	int i, cnt, wait_ms;

	(void) arg;
	for (;;) {
		sv_lock();
		wait_ms = until_timer();
		sv_unlock();
		cnt = epoll_wait(epfd, events, EVENTS_MAX, wait_ms);
		sv_lock();
		for (i = 0; i < cnt; i++) {
			uint64_t id = events[i].data.u64;

			if (!id)
				(void) !read(wakefd, &count, sizeof(count));
			else if (sources[id - 1])
				sources[id - 1]->ready(sources[id - 1], events[i].events);
		}
		run_timers();
		sv_unlock();
	}
	return NULL;
}

static void forked(void);

static void watch_fork(void)
{
	pthread_atfork(NULL, NULL, forked);
}

static int start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = 0 };
	sigset_t all, old;
	pthread_t thread;
	int ret;

	if (running)
		return 0;
	epfd = epoll_create1(EPOLL_CLOEXEC);
	wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (epfd < 0 || wakefd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, wakefd, &ev))
		return errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, engine, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret)
		return ret;
	pthread_setname_np(thread, "softverbs");
	pthread_detach(thread);
	running = true;
	pthread_once(&once, watch_fork);
	return 0;
}

/* A child that goes on after fork() has none of the parent's threads, and gets its own. What the parent had open is the
 * parent's. */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	fab_list_init(&timers);
	memset(sources, 0, source_cap * sizeof(*sources));
	close(epfd);
	close(wakefd);
	running = false;
	start();
}

void sv_timer_start(struct sv_timer *timer, uint64_t delay_ns)
{
	sv_timer_stop(timer);
	timer->when_ns = sv_now_ns() + delay_ns;
	fab_list_add_tail(&timers, &timer->link);
	if (start())
		abort();		/* a device cannot do without its clock */
	poke();
}

int sv_source_add(struct sv_source *src, uint32_t events)
{
	static uint64_t next_id;
	struct epoll_event ev = { .events = events };
	int ret = start();

	if (ret)
		return ret;
	if (next_id == source_cap) {
		uint64_t cap = source_cap ? 2 * source_cap : 64;
		struct sv_source **more = realloc(sources, cap * sizeof(*more));

		if (!more)
			return ENOMEM;
		sources = more;
		source_cap = cap;
	}
	src->id = ev.data.u64 = next_id + 1;
	src->events = events;
	if (epoll_ctl(epfd, EPOLL_CTL_ADD, src->fd, &ev)) {
		src->id = 0;
		return errno;
	}
	sources[next_id++] = src;
	return 0;
}

void sv_source_mod(struct sv_source *src, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = src->id };

	if (!src->id || src->events == events)
		return;
	src->events = events;
	epoll_ctl(epfd, EPOLL_CTL_MOD, src->fd, &ev);
}

void sv_source_del(struct sv_source *src)
{
	if (!src->id)
		return;
	epoll_ctl(epfd, EPOLL_CTL_DEL, src->fd, NULL);
	sources[src->id - 1] = NULL;
	src->id = 0;
}

static socklen_t name_of(struct sockaddr_un *name, const char *fmt, va_list args)
{
	int len;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	len = vsnprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, fmt, args);
	return offsetof(struct sockaddr_un, sun_path) + 1 + len;
}

socklen_t sv_name(struct sockaddr_un *name, const char *fmt, ...)
{
	va_list args;
	socklen_t len;

	va_start(args, fmt);
	len = name_of(name, fmt, args);
	va_end(args);
	return len;
}

int sv_bind(int type, const char *fmt, ...)
{
	int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), cause;
	struct sockaddr_un name;
	socklen_t len;
	va_list args;

	if (fd < 0)
		return -1;
	va_start(args, fmt);
	len = name_of(&name, fmt, args);
	va_end(args);
	if (!bind(fd, (struct sockaddr *) &name, len))
		return fd;
	cause = errno;
	close(fd);
	errno = cause;
	return -1;
}
