/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The counting table, and the clock. See spy.h.
 */
#include "spy.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include "base/clock.h"
#include "base/sock.h"

struct spy spy;
static _Atomic long until_failure = -1;
static int failure;
static _Atomic bool failed;
static struct fab_sock_ops table;

static bool fails(_Atomic long *cnt)
{
	spy.all++;
	if (cnt)
		(*cnt)++;
	if (until_failure < 0 || until_failure-- > 0)
		return false;
	errno = failure;
	failed = true;
	return true;
}

static int spy_epoll_create1(int flags)
{
	return fails(NULL) ? -1 : fab_sock_libc.epoll_create1(flags);
}

static int spy_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return fails(&spy.epoll_ctl) ? -1 : fab_sock_libc.epoll_ctl(epfd, op, fd, event);
}

static int spy_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	return fails(&spy.epoll_wait) ? -1 : fab_sock_libc.epoll_wait(epfd, events, max, timeout_ms);
}

static int spy_eventfd(unsigned int value, int flags)
{
	return fails(NULL) ? -1 : fab_sock_libc.eventfd(value, flags);
}

static int spy_timerfd_create(int clock, int flags)
{
	return fails(NULL) ? -1 : fab_sock_libc.timerfd_create(clock, flags);
}

static int spy_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
	return fails(&spy.timer) ? -1 : fab_sock_libc.timerfd_settime(fd, flags, value, old);
}

static ssize_t spy_read(int fd, void *buf, size_t len)
{
	return fails(&spy.read) ? -1 : fab_sock_libc.read(fd, buf, len);
}

static ssize_t spy_write(int fd, const void *buf, size_t len)
{
	return fails(&spy.write) ? -1 : fab_sock_libc.write(fd, buf, len);
}

static ssize_t spy_recv(int fd, void *buf, size_t len, int flags)
{
	return fails(&spy.recv) ? -1 : fab_sock_libc.recv(fd, buf, len, flags);
}

static int spy_poll(struct pollfd *fds, nfds_t cnt, int timeout_ms)
{
	return fails(&spy.poll) ? -1 : fab_sock_libc.poll(fds, cnt, timeout_ms);
}

void spy_start(void)
{
	table = fab_sock_libc;
	table.epoll_create1 = spy_epoll_create1;
	table.epoll_ctl = spy_epoll_ctl;
	table.epoll_wait = spy_epoll_wait;
	table.eventfd = spy_eventfd;
	table.timerfd_create = spy_timerfd_create;
	table.timerfd_settime = spy_timerfd_settime;
	table.read = spy_read;
	table.write = spy_write;
	table.recv = spy_recv;
	table.poll = spy_poll;
	fab_sock = &table;
	spy_fail(-1, 0);
	spy_reset();
}

void spy_stop(void)
{
	fab_sock = &fab_sock_libc;
}

void spy_reset(void)
{
	memset(&spy, 0, sizeof(spy));
}

void spy_fail(long n, int error)
{
	failed = false;
	failure = error;
	until_failure = n;
}

int spy_failed(void)
{
	return failed;
}

static _Atomic uint64_t now;
static const struct fab_clock_ops *real_clock;

static uint64_t clock_now_ns(void)
{
	return now;
}

static uint64_t clock_random64(void)
{
	return real_clock->random64();
}

static const struct fab_clock_ops clock_ops = {
	.now_ns = clock_now_ns,
	.random64 = clock_random64,
};

void spy_set_clock(uint64_t now_ns)
{
	now = now_ns;
	if (fab_clock == &clock_ops)
		return;
	real_clock = fab_clock;
	fab_clock = &clock_ops;
}

void spy_real_clock(void)
{
	if (fab_clock == &clock_ops)
		fab_clock = real_clock;
}

int spy_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int cnt = 0;

	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt - 3;		/* ".", "..", and that of dir */
}
