/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program that replaces recv() and send() of libc, as libraries do that accelerate sockets, gets every call of ours.
 */
#include "base/unit.h"

#include "base/sock.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

static unsigned recv_cnt, send_cnt;

#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

__attribute__((visibility("default"))) ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	recv_cnt++;
	return REAL(recv)(fd, buf, len, flags);
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	send_cnt++;
	return REAL(send)(fd, buf, len, flags);
}

static void replaced_functions_get_every_call(void **state)
{
	char got[4];
	int fds[2];

	(void) state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	recv_cnt = send_cnt = 0;
	assert_int_equal(fab_sock_recv_now(fds[0], got, sizeof(got)), -EAGAIN);
	assert_int_equal(fab_sock_send_now(fds[1], "abc", 3), 3);
	assert_int_equal(fab_sock_recv_now(fds[0], got, sizeof(got)), 3);
	assert_memory_equal(got, "abc", 3);
	close(fds[0]);
	assert_int_equal(fab_sock_send_now(fds[1], "abc", 3), -EPIPE);
	assert_int_equal(recv_cnt, 2);
	assert_int_equal(send_cnt, 2);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced_functions_get_every_call),
	};

	return cmocka_run_group_tests_name("base/replaced", tests, NULL, NULL);
}
