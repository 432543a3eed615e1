/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See failing.h. */
#include "failing.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <time.h>
#include "base/clock.h"
#include "base/sock.h"
#include "base/unit.h"

long alloc_until, sock_until;
bool failed;
uint64_t waited_ns;

static bool fail_now(long *until)
{
	if (!*until || --*until)
		return false;
	failed = true;
	return true;
}

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t cnt, size_t size);
extern void *__libc_realloc(void *ptr, size_t size);

#if CAN_FAIL_ALLOC
void *malloc(size_t size)
{
	return fail_now(&alloc_until) ? NULL : __libc_malloc(size);
}

void *calloc(size_t cnt, size_t size)
{
	return fail_now(&alloc_until) ? NULL : __libc_calloc(cnt, size);
}

void *realloc(void *ptr, size_t size)
{
	return fail_now(&alloc_until) ? NULL : __libc_realloc(ptr, size);
}
#endif

/* One wrapper a call: fails as the real one could, else passes on. */
#define FAILING(name, err, ret_type, params, args)						\
static ret_type fail_##name params								\
{												\
	if (fail_now(&sock_until)) {								\
		errno = err;									\
		return -1;									\
	}											\
	return fab_sock_libc.name args;								\
}

FAILING(socket, EMFILE, int, (int family, int type, int protocol), (family, type, protocol))
FAILING(bind, EADDRINUSE, int, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len))
FAILING(listen, EADDRINUSE, int, (int fd, int backlog), (fd, backlog))
FAILING(accept4, EMFILE, int, (int fd, struct sockaddr *addr, socklen_t *len, int flags), (fd, addr, len, flags))
FAILING(connect, ECONNREFUSED, int, (int fd, const struct sockaddr *addr, socklen_t len), (fd, addr, len))
FAILING(getsockname, ENOBUFS, int, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len))
FAILING(getpeername, ENOTCONN, int, (int fd, struct sockaddr *addr, socklen_t *len), (fd, addr, len))
FAILING(setsockopt, ENOPROTOOPT, int, (int fd, int level, int name, const void *value, socklen_t len),
	(fd, level, name, value, len))
FAILING(getsockopt, ENOBUFS, int, (int fd, int level, int name, void *value, socklen_t *len),
	(fd, level, name, value, len))
FAILING(send, ECONNRESET, ssize_t, (int fd, const void *buf, size_t len, int flags), (fd, buf, len, flags))
FAILING(sendmsg, ENOBUFS, ssize_t, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags))
FAILING(recv, ECONNRESET, ssize_t, (int fd, void *buf, size_t len, int flags), (fd, buf, len, flags))
FAILING(recvmsg, ETIMEDOUT, ssize_t, (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
FAILING(sendmmsg, ENOBUFS, int, (int fd, struct mmsghdr *msgs, unsigned int cnt, int flags), (fd, msgs, cnt, flags))
FAILING(recvmmsg, ENOMEM, int, (int fd, struct mmsghdr *msgs, unsigned int cnt, int flags, struct timespec *timeout),
	(fd, msgs, cnt, flags, timeout))
FAILING(epoll_create1, EMFILE, int, (int flags), (flags))
FAILING(dup, EMFILE, int, (int fd), (fd))
FAILING(eventfd, EMFILE, int, (unsigned int value, int flags), (value, flags))

static int fail_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	/* the kernel never refuses to forget or to change what it has */
	if (op == EPOLL_CTL_ADD && fail_now(&sock_until)) {
		errno = ENOSPC;
		return -1;
	}
	return fab_sock_libc.epoll_ctl(epfd, op, fd, event);
}

/* The library's time: who waits for descriptors in vain has waited as long as it wanted. */
static uint64_t test_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec + waited_ns;
}

static int impatient_poll(struct pollfd *fds, nfds_t cnt, int timeout_ms)
{
	int ret = poll(fds, cnt, 0);

	if (!ret && timeout_ms > 0)
		waited_ns += timeout_ms * 1000000ULL;
	return ret;
}

void failing_install(void)
{
	static struct fab_sock_ops ops;
	static struct fab_clock_ops clock;

	ops = fab_sock_libc;
	ops.socket = fail_socket;
	ops.bind = fail_bind;
	ops.listen = fail_listen;
	ops.accept4 = fail_accept4;
	ops.connect = fail_connect;
	ops.getsockname = fail_getsockname;
	ops.getpeername = fail_getpeername;
	ops.setsockopt = fail_setsockopt;
	ops.getsockopt = fail_getsockopt;
	ops.send = fail_send;
	ops.sendmsg = fail_sendmsg;
	ops.recv = fail_recv;
	ops.recvmsg = fail_recvmsg;
	ops.sendmmsg = fail_sendmmsg;
	ops.recvmmsg = fail_recvmmsg;
	ops.epoll_create1 = fail_epoll_create1;
	ops.epoll_ctl = fail_epoll_ctl;
	ops.dup = fail_dup;
	ops.eventfd = fail_eventfd;
	ops.poll = impatient_poll;
	fab_sock = &ops;
	clock.now_ns = test_now_ns;
	if (fab_clock != &clock)
		clock.random64 = fab_clock->random64;
	fab_clock = &clock;
}

uint64_t failing_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

static int fd_cnt(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int cnt = 0;

	assert_non_null(dir);
	while (readdir(dir))
		cnt++;
	closedir(dir);
	return cnt;
}

long failing_sweep(long *until, void (*life)(void *arg), void *arg)
{
	int fds = fd_cnt();
	long n;

	for (n = 1; ; n++) {
		failed = false;
		*until = n;
		life(arg);
		*until = 0;
		assert_int_equal(fd_cnt(), fds);
		if (!failed)
			break;
	}
	failed = false;
	print_message("# %ld calls, each failed once\n", n - 1);
	return n - 1;
}
