/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Listeners: where they bind, and what they do when there is no room or no descriptor for another connection.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/sock.h"
#include "common/net/ip_name.h"
#include "raw.h"
#include "tcp/handshake/listen.h"
#include "tcp/sock/sock.h"
#include "tcp/params/params.h"

/* ---- addresses ---- */

static const union fab_sockaddr loopback = { .sin = { .sin_family = AF_INET, .sin_addr.s_addr = 0x0100007f } };

/* Any port; then the same one again: taken. */
static void a_port_is_bound_once(void **state)
{
	union fab_sockaddr bound, again;
	int fd = tcp_sock_bind(&loopback, &bound);

	(void) state;
	assert_true(fd >= 0);
	assert_int_not_equal(fab_addr_port(&bound.sa), 0);
	assert_int_equal(fab_sock->listen(fd, 1), 0);
	assert_int_equal(tcp_sock_bind(&bound, &again), -FI_EADDRINUSE);
	close(fd);
}

/* Take all three ports of the range, from the last on; false if somebody else has one. */
static bool take_range(int fd[3])
{
	union fab_sockaddr bound;

	for (int i = 0; i < 3; i++) {
		test_random = 2;
		fd[i] = tcp_sock_bind(&loopback, &bound);
		if (fd[i] < 0 || fab_addr_port(&bound.sa) != tcp_params.port_low + (i + 2) % 3 ||
		    fab_sock->listen(fd[i], 1))
			return false;
	}
	return true;
}

/* A range gives each of its ports, wherever it begins, and then says that there is none left. */
static void a_range_is_used_up(void **state)
{
	int fd[3] = { -1, -1, -1 }, free_fd, tries = 0;
	union fab_sockaddr bound;

	(void) state;
	do {
		for (int i = 0; i < 3; i++)
			fab_sock_close(&fd[i]);
		assert_true(tries++ < 100);
		tcp_params.port_low = tcp_params.port_high = 0;
		free_fd = tcp_sock_bind(&loopback, &bound);
		close(free_fd);
		tcp_params.port_low = fab_addr_port(&bound.sa) & ~3;
		tcp_params.port_high = tcp_params.port_low + 2;
	} while (!take_range(fd));
	assert_int_equal(tcp_sock_bind(&loopback, &bound), -FI_EADDRINUSE);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	tcp_params.port_low = tcp_params.port_high = 0;
}

static void addresses_of_applications_are_checked(void **state)
{
	struct fi_info info = { .addr_format = FI_SOCKADDR_IN };
	union fab_sockaddr addr, in6 = { .sin6.sin6_family = AF_INET6 };
	char buf[sizeof(addr)];
	size_t len;

	(void) state;
	assert_int_equal(fab_name_take(&tcp_prov, &addr, &info, NULL, 0), 0);
	assert_true(fab_addr_is_any(&addr.sa));
	assert_int_equal(fab_name_take(&tcp_prov, &addr, &info, &loopback, sizeof(loopback.sin)), 0);
	assert_true(fab_addr_equal(&addr.sa, &loopback.sa));
	assert_int_equal(fab_name_take(&tcp_prov, &addr, &info, &loopback, sizeof(loopback.sin) - 1), -FI_EINVAL);
	assert_int_equal(fab_name_take(&tcp_prov, &addr, &info, &in6, sizeof(in6)), -FI_EINVAL);

	len = 0;
	assert_int_equal(fab_name_give(&loopback, NULL, &len), -FI_ETOOSMALL);
	assert_int_equal(len, sizeof(loopback.sin));
	len = 4;
	memset(buf, 0x55, sizeof(buf));
	assert_int_equal(fab_name_give(&loopback, buf, &len), -FI_ETOOSMALL);
	assert_int_equal(len, sizeof(loopback.sin));
	assert_memory_equal(buf, &loopback, 4);
	assert_int_equal(buf[4], 0x55);
	assert_int_equal(fab_name_give(&loopback, buf, &len), 0);
	assert_memory_equal(buf, &loopback, sizeof(loopback.sin));
	assert_int_equal(fab_name_give(&loopback, buf, NULL), -FI_EINVAL);
}

/* ---- accepting ---- */

struct fixture {
	struct fab_engine engine;
	struct tcp_listener listener;
	struct sockaddr_in addr;
	bool room;
	int request_cnt, call_cnt;
	int fail;			/* errno of accept, 0: it works */
};

static struct fixture *current;		/* whose calls the socket table counts */

static bool has_room(struct tcp_listener *listener)
{
	return fab_container(listener, struct fixture, listener)->room;
}

static void request(struct tcp_listener *listener, struct tcp_cm *cm)
{
	assert_int_equal(cm->remote.sa.sa_family, AF_INET);
	assert_int_equal(cm->data_len, 2);
	fab_container(listener, struct fixture, listener)->request_cnt++;
}

static int counting_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	current->call_cnt++;
	if (!current->fail)
		return fab_sock_libc.accept4(fd, addr, len, flags);
	errno = current->fail;
	return -1;
}

static struct fab_sock_ops counting;

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	union fab_sockaddr bound;
	int fd;

	counting = fab_sock_libc;
	counting.accept4 = counting_accept4;
	fab_sock = &counting;
	current = f;
	assert_int_equal(fab_engine_init(&f->engine, &(struct fab_engine_attr) { .shared = true }), 0);
	fd = tcp_sock_bind(&loopback, &bound);
	f->addr = bound.sin;
	f->room = true;
	f->listener.room = has_room;
	f->listener.request = request;
	fab_engine_lock(&f->engine);
	assert_int_equal(tcp_listener_start(&f->listener, &f->engine, fd, 16), 0);
	fab_engine_unlock(&f->engine);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fab_engine_lock(&f->engine);
	tcp_listener_stop(&f->listener);
	tcp_listener_stop(&f->listener);
	fab_engine_unlock(&f->engine);
	fab_engine_fini(&f->engine);
	free(f);
	fab_sock = &fab_sock_libc;
	return 0;
}

/* Connect, and send a request. */
static int client(struct fixture *f)
{
	struct cm_bytes msg = raw_cm(TCP_CM_CONNREQ, "hi", 2);
	int fd = raw_connect(&f->addr);

	raw_send(fd, &msg, raw_len(&msg));
	return fd;
}

static void drive(struct fixture *f, int passes)
{
	while (passes--) {
		fab_engine_lock(&f->engine);
		fab_engine_run(&f->engine);
		fab_engine_unlock(&f->engine);
	}
}

static void drive_until(struct fixture *f, int request_cnt)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	while (f->request_cnt < request_cnt && fab_now_ms() < end_ms)
		drive(f, 1);
	assert_int_equal(f->request_cnt, request_cnt);
}

/* Several connections are taken in one event. */
static void connections_come_in_batches(void **state)
{
	struct fixture *f = *state;
	int fd[8];

	for (int i = 0; i < 8; i++)
		fd[i] = client(f);
	drive_until(f, 8);
	for (int i = 0; i < 8; i++)
		close(fd[i]);
}

/* While accept() fails it waits, and does not spin; it goes on when that is over. */
static void check_waits_out(struct fixture *f, int err)
{
	int fd = client(f);

	f->fail = err;
	drive(f, 1000);
	assert_int_equal(f->call_cnt, 1);
	test_added_ns += 1000000000;
	drive(f, 1000);
	assert_int_equal(f->call_cnt, 2);
	f->fail = 0;
	test_added_ns += 1000000000;
	drive_until(f, 1);
	close(fd);
}

static void want_of_descriptors_is_waited_out(void **state)
{
	check_waits_out(*state, EMFILE);
}

/* A filter of system calls denies it. */
static void denial_is_waited_out(void **state)
{
	check_waits_out(*state, EPERM);
}

/* A connection that died in the queue is no reason to stop. */
static void an_aborted_connection_is_skipped(void **state)
{
	struct fixture *f = *state;
	int fd = client(f);

	f->fail = ECONNABORTED;
	drive(f, 1);
	f->fail = 0;
	drive_until(f, 1);
	close(fd);
}

/* Where there is no room, connections stay with the kernel. */
static void want_of_room_leaves_them_with_the_kernel(void **state)
{
	struct fixture *f = *state;
	int fd = client(f);

	f->room = false;
	drive(f, 100);
	assert_int_equal(f->call_cnt, 0);
	f->room = true;
	test_added_ns += 1000000000;
	drive_until(f, 1);
	close(fd);
}

/* Connect, and send a byte: without that the kernel keeps the connection to itself. */
static int begin_request(const struct sockaddr_in *addr)
{
	const uint8_t version = TCP_CM_VERSION;
	int fd = raw_connect(addr);

	raw_send(fd, &version, sizeof(version));
	return fd;
}

/* The kernel keeps connections that have sent nothing; they cost no descriptor and no time. */
static void connection_that_sends_nothing_is_not_accepted(void **state)
{
	struct cm_bytes msg = raw_cm(TCP_CM_CONNREQ, "hi", 2);
	struct fixture *f = *state;
	int fd = raw_connect(&f->addr);

	drive(f, 100);
	assert_int_equal(f->call_cnt, 0);
	raw_send(fd, &msg, raw_len(&msg));
	drive_until(f, 1);
	close(fd);
}

/* One that goes silent is dropped when the listener stops, and taken care of with the others while it runs. */
static void silent_connection_is_dropped_at_the_end(void **state)
{
	struct fixture *f = *state;
	int silent = begin_request(&f->addr), fd = client(f);

	drive_until(f, 1);
	assert_int_equal(f->listener.awaited_cnt, 1);
	fab_engine_lock(&f->engine);
	tcp_listener_stop(&f->listener);
	fab_engine_unlock(&f->engine);
	assert_true(raw_recv_end(silent, NULL, NULL));
	close(silent);
	close(fd);
}

/* ---- connections that begin to speak, and say no more ---- */

enum { PATIENCE_NS = 500 * 1000000 };	/* in which a peer that speaks is heard, whatever others do */

static struct rlimit old_limit;

/* The same as setup(), where so many files may be open. */
static int setup_limited(void **state, rlim_t limit)
{
	struct rlimit lim;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
	lim = old_limit;
	lim.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
	return setup(state);
}

static int setup_few(void **state)
{
	return setup_limited(state, 256);
}

static int setup_many(void **state)
{
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old_limit), 0);
	return setup_limited(state, old_limit.rlim_max);
}

static int teardown_limited(void **state)
{
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old_limit), 0);
	return teardown(state);
}

/* Connect from this host, and send no more than a byte. */
static int silent_from(struct fixture *f, const char *host)
{
	const uint8_t version = TCP_CM_VERSION;
	struct sockaddr_in from = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET, host, &from.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *) &from, sizeof(from)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *) &f->addr, sizeof(f->addr)), 0);
	raw_send(fd, &version, sizeof(version));
	/* the listener takes it, if it takes any */
	drive(f, 2);
	return fd;
}

/* Drive until so many requests have come, and count the time. */
static uint64_t time_until(struct fixture *f, int request_cnt)
{
	uint64_t begin_ns = fab_now_ns();

	while (f->request_cnt < request_cnt && fab_now_ns() - begin_ns < 10 * (uint64_t) PATIENCE_NS) {
		drive(f, 1);
		test_added_ns += 100000;
	}
	assert_int_equal(f->request_cnt, request_cnt);
	return fab_now_ns() - begin_ns;
}

/* More silent ones than may wait: who speaks is heard at once, and few of the others are kept. */
static void check_silent_ones_give_way(struct fixture *f, int cnt, uint32_t kept)
{
	int *fd = calloc(cnt, sizeof(*fd)), speaks;
	uint64_t dropped = tcp_descriptors_dropped();

	for (int i = 0; i < cnt; i++) {
		fd[i] = silent_from(f, "127.0.0.2");
		test_added_ns += 1000000;
	}
	assert_in_range(tcp_descriptors_dropped() - dropped, 1, cnt);
	assert_true(f->listener.awaited_cnt <= kept);
	speaks = client(f);
	assert_true(time_until(f, 1) < PATIENCE_NS);
	assert_true(f->listener.awaited_cnt <= kept);
	for (int i = 0; i < cnt; i++)
		close(fd[i]);
	close(speaks);
	free(fd);
}

static void silent_connections_give_way(void **state)
{
	if (old_limit.rlim_max < 16384)
		unit_skip("two descriptors for each of more than 1024 connections");
	check_silent_ones_give_way(*state, 1030, 1024);
}

static void silent_connections_leave_descriptors(void **state)
{
	check_silent_ones_give_way(*state, 100, 256 / 8);
}

enum { AT_ONCE = 40 };		/* 32 wait, and the kernel keeps the others */

/* They come all at once, so that none is old: they do not wait long in the kernel's queue either. */
static void silent_connections_that_come_at_once_give_way(void **state)
{
	struct fixture *f = *state;
	int fd[AT_ONCE], speaks;

	for (int i = 0; i < AT_ONCE; i++)
		fd[i] = silent_from(f, "127.0.0.2");
	speaks = client(f);
	assert_true(time_until(f, 1) < PATIENCE_NS);
	for (int i = 0; i < AT_ONCE; i++)
		close(fd[i]);
	close(speaks);
}

/* A peer that has to wait for its own program before it sends its request does not go for those of another host. */
static void silent_connections_of_another_host_go_first(void **state)
{
	struct cm_bytes msg = raw_cm(TCP_CM_CONNREQ, "hi", 2);
	struct fixture *f = *state;
	int fd[60], slow = begin_request(&f->addr);

	drive(f, 2);
	for (int i = 0; i < 60; i++) {
		fd[i] = silent_from(f, "127.0.0.2");
		test_added_ns += 10000000;
	}
	raw_send(slow, (const uint8_t *) &msg + 1, raw_len(&msg) - 1);
	drive_until(f, 1);
	for (int i = 0; i < 60; i++)
		close(fd[i]);
	close(slow);
}

#define TEST_FEW(fn) cmocka_unit_test_setup_teardown(fn, setup_few, teardown_limited)
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_is_bound_once),
		cmocka_unit_test(a_range_is_used_up),
		cmocka_unit_test(addresses_of_applications_are_checked),
		TEST(connections_come_in_batches),
		TEST(want_of_descriptors_is_waited_out),
		TEST(denial_is_waited_out),
		TEST(an_aborted_connection_is_skipped),
		TEST(want_of_room_leaves_them_with_the_kernel),
		TEST(connection_that_sends_nothing_is_not_accepted),
		TEST(silent_connection_is_dropped_at_the_end),
		cmocka_unit_test_setup_teardown(silent_connections_give_way, setup_many, teardown_limited),
		TEST_FEW(silent_connections_leave_descriptors),
		TEST_FEW(silent_connections_that_come_at_once_give_way),
		TEST_FEW(silent_connections_of_another_host_go_first),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/listen", tests, NULL, NULL);
}
