/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See net.h. A socket that listens becomes a pipe, a byte of which is a caller who waits; one that connects becomes an
 * end of a socket pair.
 */
#include "fuzz/net.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/sock.h"

#define FD_MAX		1024
#define CALLS_MAX	16		/* that wait to be accepted, or to be answered */

static struct end {
	bool ours;			/* a stream of IP */
	struct sockaddr_storage local, remote;
	int bell;			/* of a listening one: the pipe's other end, else 0 */
} ends[FD_MAX];

static struct {
	int fd;
	uint16_t port;
} calls[CALLS_MAX];
static size_t call_cnt;
static int answers[CALLS_MAX];
static size_t answer_cnt;

static int listening;			/* the last to listen, 0: nobody */
static bool answering;
static uint64_t now_ns, random_cnt;

static void must(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		abort();
	}
}

static struct end *end_of(int fd)
{
	return fd >= 0 && fd < FD_MAX && ends[fd].ours ? &ends[fd] : NULL;
}

static void set_port(struct sockaddr_storage *addr, uint16_t port)
{
	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *) addr)->sin6_port = htons(port);
	else
		((struct sockaddr_in *) addr)->sin_port = htons(port);
}

static uint16_t port_of(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *) addr)->sin6_port :
	       ((const struct sockaddr_in *) addr)->sin_port;
}

/* A pair of streams: ours in the place of fd, or a new one if that is -1; theirs is returned. */
static int make_pair(int *fd)
{
	int pair[2];

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), "socketpair");
	if (*fd < 0) {
		*fd = pair[0];
	} else {
		must(dup3(pair[0], *fd, O_CLOEXEC) >= 0, "dup3");
		close(pair[0]);
	}
	return pair[1];
}

/* ---- the library's calls ---- */

static int net_socket(int family, int type, int protocol)
{
	int fd = socket(family, type, protocol);

	if (fd >= 0 && (family == AF_INET || family == AF_INET6) && (type & 0xf) == SOCK_STREAM) {
		must(fd < FD_MAX, "a descriptor that is too large");
		ends[fd] = (struct end) { .ours = true, .local.ss_family = family };
	}
	return fd;
}

static int net_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	static uint16_t port = 20000;
	struct end *end = end_of(fd);

	if (!end)
		return bind(fd, addr, len);
	memcpy(&end->local, addr, len < sizeof(end->local) ? len : sizeof(end->local));
	if (!port_of(&end->local))
		set_port(&end->local, port++ | 0x4000);
	return 0;
}

static int net_listening(int fd, int backlog)
{
	struct end *end = end_of(fd);
	int pair[2];

	if (!end)
		return listen(fd, backlog);
	must(!pipe2(pair, O_NONBLOCK | O_CLOEXEC) && dup3(pair[0], fd, O_CLOEXEC) >= 0, "pipe2");
	close(pair[0]);
	end->bell = pair[1];
	listening = fd;
	return 0;
}

static void from_port(struct sockaddr_storage *addr, uint16_t port)
{
	const struct sockaddr_in from = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	memset(addr, 0, sizeof(*addr));
	memcpy(addr, &from, sizeof(from));
}

static int net_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct end *end = end_of(fd);
	char byte;
	int got;

	if (!end)
		return accept4(fd, addr, len, flags);
	if (read(fd, &byte, 1) != 1 || !call_cnt) {
		errno = EAGAIN;
		return -1;
	}
	got = calls[0].fd;
	ends[got] = (struct end) { .ours = true, .local = end->local };
	from_port(&ends[got].remote, calls[0].port);
	memmove(calls, calls + 1, --call_cnt * sizeof(*calls));
	if (addr) {
		memcpy(addr, &ends[got].remote, sizeof(struct sockaddr_in));
		*len = sizeof(struct sockaddr_in);
	}
	return got;
}

static int net_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct end *end = end_of(fd);

	if (!end)
		return connect(fd, addr, len);
	if (!answering || answer_cnt == CALLS_MAX) {
		errno = ECONNREFUSED;
		return -1;
	}
	memcpy(&end->remote, addr, len < sizeof(end->remote) ? len : sizeof(end->remote));
	if (!port_of(&end->local))
		from_port(&end->local, 30000);
	answers[answer_cnt++] = make_pair(&fd);
	errno = EINPROGRESS;
	return -1;
}

static int name_of(const struct sockaddr_storage *name, struct sockaddr *addr, socklen_t *len)
{
	socklen_t full = name->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	if (!name->ss_family) {
		errno = ENOTCONN;
		return -1;
	}
	memcpy(addr, name, *len < full ? *len : full);
	*len = full;
	return 0;
}

static int net_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct end *end = end_of(fd);

	return end ? name_of(&end->local, addr, len) : getsockname(fd, addr, len);
}

static int net_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct end *end = end_of(fd);

	return end ? name_of(&end->remote, addr, len) : getpeername(fd, addr, len);
}

static int net_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return end_of(fd) ? 0 : setsockopt(fd, level, name, value, len);
}

static ssize_t net_recv(int fd, void *buf, size_t len, int flags)
{
	int waiting = 0;

	/* how much there is; a local stream cannot tell that way */
	if (!end_of(fd) || !(flags & MSG_TRUNC))
		return recv(fd, buf, len, flags);
	must(!ioctl(fd, FIONREAD, &waiting), "FIONREAD");
	return waiting ? (ssize_t) ((size_t) waiting < len ? (size_t) waiting : len) :
	       recv(fd, &(char) { 0 }, 1, flags & ~MSG_TRUNC);
}

static int net_close(int fd)
{
	struct end *end = end_of(fd);

	if (end) {
		if (end->bell)
			close(end->bell);
		if (listening == fd)
			listening = 0;
		end->ours = false;
	}
	return close(fd);
}

static int net_timer(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
	(void) fd, (void) flags, (void) value, (void) old;
	return 0;
}

/* Whoever waits in vain has waited as long as it wanted. */
static int net_poll(struct pollfd *fds, nfds_t cnt, int timeout_ms)
{
	int ret = poll(fds, cnt, 0);

	if (!ret && timeout_ms > 0)
		net_pass_ms(timeout_ms);
	return ret;
}

static uint64_t net_now_ns(void)
{
	return now_ns += 100;
}

static uint64_t net_random64(void)
{
	return ++random_cnt * 0x9e3779b97f4a7c15;
}

static void install(void)
{
	static const struct fab_clock_ops clock = { .now_ns = net_now_ns, .random64 = net_random64 };
	static struct fab_sock_ops ops;

	ops = fab_sock_libc;
	ops.socket = net_socket;
	ops.bind = net_bind;
	ops.listen = net_listening;
	ops.accept4 = net_accept4;
	ops.connect = net_connect;
	ops.getsockname = net_getsockname;
	ops.getpeername = net_getpeername;
	ops.setsockopt = net_setsockopt;
	ops.recv = net_recv;
	ops.close = net_close;
	ops.timerfd_settime = net_timer;
	ops.poll = net_poll;
	fab_sock = &ops;
	fab_clock = &clock;
}

void net_reset(void)
{
	if (!now_ns)
		install();
	now_ns = 1000000000000;
	random_cnt = 0;
	answering = false;
	while (answer_cnt)
		close(answers[--answer_cnt]);
	while (call_cnt)
		close(calls[--call_cnt].fd);
}

void net_pass_ms(uint64_t ms)
{
	now_ns += ms * 1000000;
}

/* ---- the fuzzer's ---- */

int net_call(uint16_t port)
{
	int fd = -1, theirs;

	if (!listening || call_cnt == CALLS_MAX)
		return -1;
	theirs = make_pair(&fd);
	must(fd < FD_MAX, "a descriptor that is too large");
	calls[call_cnt].fd = fd;
	calls[call_cnt++].port = port;
	must(write(ends[listening].bell, "", 1) == 1, "write");
	return theirs;
}

void net_listen(bool on)
{
	answering = on;
}

int net_answer(void)
{
	int fd;

	if (!answer_cnt)
		return -1;
	fd = answers[0];
	memmove(answers, answers + 1, --answer_cnt * sizeof(*answers));
	return fd;
}

void net_send(int fd, const void *buf, size_t len)
{
	/* it may have hung up */
	(void) !send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool net_drain(int fd)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		;
	return n < 0 && errno == EAGAIN;
}
