/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * base/sock.h: every entry of the table does what its name says, and a test can fail any of them.
 */
#include "base/unit.h"

#include "base/addr.h"
#include "base/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct fab_sock_ops failing;

/* A table without holes: each entry is a function. */
static void table_is_full(void **state)
{
	void *const *entry = (void *const *) (const void *) fab_sock;
	size_t i;

	(void) state;
	assert_ptr_equal(fab_sock, &fab_sock_libc);
	for (i = 0; i < sizeof(*fab_sock) / sizeof(*entry); i++)
		assert_non_null(entry[i]);
}

/* A listener on a free port of the loopback; its address in *addr. */
static int listener_open(union fab_sockaddr *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = fab_sock_open(AF_INET, SOCK_STREAM);

	assert_return_code(fd, -fd);
	assert_int_equal(fab_addr_from_str("fi_sockaddr_in://127.0.0.1:0", addr), 0);
	assert_return_code(fab_sock->bind(fd, &addr->sa, sizeof(addr->sin)), errno);
	assert_return_code(fab_sock->listen(fd, 1), errno);
	assert_return_code(fab_sock->getsockname(fd, &addr->sa, &len), errno);
	return fd;
}

static void wait_ready(int fd, short events)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	assert_int_equal(fab_sock->poll(&pfd, 1, 10000), 1);
}

static void sockets_carry_bytes(void **state)
{
	struct iovec iov[2] = { { "ab", 2 }, { "cd", 2 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	char got[8] = "";
	union fab_sockaddr addr, peer;
	socklen_t len = sizeof(peer);
	int server = listener_open(&addr), client = fab_sock_open(AF_INET, SOCK_STREAM), accepted, ret;

	(void) state;
	ret = fab_sock->connect(client, &addr.sa, sizeof(addr.sin));
	assert_true(!ret || errno == EINPROGRESS);
	wait_ready(server, POLLIN);
	accepted = fab_sock->accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_return_code(accepted, errno);
	wait_ready(client, POLLOUT);
	assert_int_equal(fab_sock_error(client), 0);
	assert_int_equal(fab_sock_set_int(client, IPPROTO_TCP, TCP_NODELAY, 1), 0);
	assert_return_code(fab_sock->getpeername(client, &peer.sa, &len), errno);
	assert_true(fab_addr_equal(&peer.sa, &addr.sa));

	assert_int_equal(fab_sock->recv(accepted, got, sizeof(got), 0), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fab_sock->sendmsg(client, &msg, MSG_NOSIGNAL), 4);
	wait_ready(accepted, POLLIN);
	assert_int_equal(fab_sock->recv(accepted, got, sizeof(got), 0), 4);
	assert_string_equal(got, "abcd");
	assert_int_equal(fab_sock->send(accepted, "xy", 2, MSG_NOSIGNAL), 2);
	wait_ready(client, POLLIN);
	iov[0] = (struct iovec) { got, 1 };
	iov[1] = (struct iovec) { got + 1, 7 };
	assert_int_equal(fab_sock->recvmsg(client, &msg, 0), 2);
	assert_memory_equal(got, "xy", 2);
	assert_return_code(fab_sock->shutdown(client, SHUT_WR), errno);
	wait_ready(accepted, POLLIN);
	assert_int_equal(fab_sock->recv(accepted, got, sizeof(got), 0), 0);

	fab_sock_close(&client);
	assert_int_equal(client, -1);
	fab_sock_close(&client);
	fab_sock_close(&accepted);
	fab_sock_close(&server);
}

static void epoll_sees_an_eventfd(void **state)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 7 };
	int epfd = fab_sock->epoll_create1(EPOLL_CLOEXEC), fd = fab_sock->eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint64_t value = 3;

	(void) state;
	assert_return_code(fab_sock->epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event), errno);
	assert_int_equal(fab_sock->epoll_wait(epfd, &event, 1, 0), 0);
	assert_int_equal(fab_sock->write(fd, &value, sizeof(value)), sizeof(value));
	assert_int_equal(fab_sock->epoll_wait(epfd, &event, 1, 0), 1);
	assert_int_equal(event.data.u64, 7);
	value = 0;
	assert_int_equal(fab_sock->read(fd, &value, sizeof(value)), sizeof(value));
	assert_int_equal(value, 3);
	fab_sock_close(&fd);
	fab_sock_close(&epfd);
}

/* O_NONBLOCK is set and cleared without touching the other flags. */
static void nonblock_changes_one_flag(void **state)
{
	int fd = fab_sock_open(AF_INET, SOCK_STREAM), flags = fcntl(fd, F_GETFL);

	(void) state;
	assert_true(flags & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_return_code(fab_sock->set_nonblock(fd, false), errno);
	assert_int_equal(fcntl(fd, F_GETFL), flags & ~O_NONBLOCK);
	assert_return_code(fab_sock->set_nonblock(fd, true), errno);
	assert_int_equal(fcntl(fd, F_GETFL), flags);
	fab_sock_close(&fd);
	assert_int_equal(fab_sock->set_nonblock(-1, true), -1);
}

/* A duplicate is the same socket, and is closed by execve(2). */
static void duplicate_is_the_same_socket(void **state)
{
	int fd = fab_sock_open(AF_INET, SOCK_STREAM), other = fab_sock->dup(fd);

	(void) state;
	assert_return_code(other, errno);
	assert_int_not_equal(other, fd);
	assert_true(fcntl(other, F_GETFD) & FD_CLOEXEC);
	fab_sock_close(&fd);
	assert_true(fcntl(other, F_GETFL) & O_NONBLOCK);
	fab_sock_close(&other);
	assert_int_equal(fab_sock->dup(-1), -1);
}

static int no_socket(int family, int type, int protocol)
{
	(void) family;
	(void) type;
	(void) protocol;
	errno = EMFILE;
	return -1;
}

static int no_option(int fd, int level, int name, const void *value, socklen_t len)
{
	(void) fd;
	(void) level;
	(void) name;
	(void) value;
	(void) len;
	errno = ENOPROTOOPT;
	return -1;
}

static void failures_come_back_as_errno(void **state)
{
	(void) state;
	failing = fab_sock_libc;
	failing.socket = no_socket;
	failing.setsockopt = no_option;
	fab_sock = &failing;
	assert_int_equal(fab_sock_open(AF_INET, SOCK_STREAM), -EMFILE);
	assert_int_equal(fab_sock_set_int(0, SOL_SOCKET, SO_REUSEADDR, 1), -ENOPROTOOPT);
	fab_sock = &fab_sock_libc;
	assert_int_equal(fab_sock_error(-1), EBADF);
}

static ssize_t refusing_recv(int fd, void *buf, size_t len, int flags)
{
	(void) fd, (void) buf, (void) len;
	assert_int_equal(flags, MSG_DONTWAIT);
	errno = ETIMEDOUT;
	return -1;
}

static ssize_t refusing_send(int fd, const void *buf, size_t len, int flags)
{
	(void) fd, (void) buf, (void) len;
	assert_int_equal(flags, MSG_NOSIGNAL | MSG_DONTWAIT);
	errno = ENOBUFS;
	return -1;
}

/* Bytes, the end, or -errno, on a socket that may block; and a table of a test gets the calls. */
static void calls_that_never_wait(void **state)
{
	char got[8];
	int fds[2];

	(void) state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(fab_sock_recv_now(fds[0], got, sizeof(got)), -EAGAIN);
	assert_int_equal(fab_sock_send_now(fds[1], "abcd", 4), 4);
	assert_int_equal(fab_sock_recv_now(fds[0], got, 3), 3);
	assert_memory_equal(got, "abc", 3);
	assert_int_equal(fab_sock_recv_now(fds[0], got, sizeof(got)), 1);
	assert_int_equal(fab_sock_recv_now(-1, got, sizeof(got)), -EBADF);
	failing = fab_sock_libc;
	failing.recv = refusing_recv;
	failing.send = refusing_send;
	fab_sock = &failing;
	assert_int_equal(fab_sock_recv_now(fds[0], got, sizeof(got)), -ETIMEDOUT);
	assert_int_equal(fab_sock_send_now(fds[1], "abcd", 4), -ENOBUFS);
	fab_sock = &fab_sock_libc;
	close(fds[1]);
	assert_int_equal(fab_sock_recv_now(fds[0], got, sizeof(got)), 0);
	assert_int_equal(fab_sock_send_now(fds[0], "abcd", 4), -EPIPE);
	close(fds[0]);
}

/* With a cancellation pending: looks and sends, which must not end the thread. */
static void *work_cancelled(void *arg)
{
	const int *fds = arg;
	char got[4];

	pthread_cancel(pthread_self());
	fab_sock_recv_now(fds[0], got, sizeof(got));
	fab_sock_send_now(fds[0], "abc", 3);
	return NULL;
}

/* libc's recv() and send() are cancellation points. So this also shows that they are passed by. */
static void calls_that_never_wait_are_no_cancellation_points(void **state)
{
	const char *kind = getenv("BUILD_KIND");
	pthread_t thread;
	void *end;
	int fds[2];

	(void) state;
	if (sizeof(void *) < 8 || (kind && strstr(kind, "san")))
		unit_skip("recv() and send() are a sanitizer's, or have no number of their own");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(pthread_create(&thread, NULL, work_cancelled, fds), 0);
	assert_int_equal(pthread_join(thread, &end), 0);
	assert_ptr_not_equal(end, PTHREAD_CANCELED);
	close(fds[0]);
	close(fds[1]);
}

static int interrupted_close(int fd)
{
	close(fd);
	errno = EINTR;
	return -1;
}

/* Errors are handled by closing and returning -errno, of the call that failed before. */
static void closing_keeps_errno(void **state)
{
	int fd = fab_sock_open(AF_INET, SOCK_STREAM);

	(void) state;
	failing = fab_sock_libc;
	failing.close = interrupted_close;
	fab_sock = &failing;
	errno = EADDRINUSE;
	fab_sock_close(&fd);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(fd, -1);
	fab_sock_close(&fd);
	assert_int_equal(errno, EADDRINUSE);
	fab_sock = &fab_sock_libc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_full),
		cmocka_unit_test(sockets_carry_bytes),
		cmocka_unit_test(epoll_sees_an_eventfd),
		cmocka_unit_test(nonblock_changes_one_flag),
		cmocka_unit_test(duplicate_is_the_same_socket),
		cmocka_unit_test(failures_come_back_as_errno),
		cmocka_unit_test(calls_that_never_wait),
		cmocka_unit_test(calls_that_never_wait_are_no_cancellation_points),
		cmocka_unit_test(closing_keeps_errno),
	};

	return cmocka_run_group_tests_name("base/sock", tests, NULL, NULL);
}
