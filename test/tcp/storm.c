/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An RDM endpoint that connects to very many, or has no descriptor to do it with, or may only use certain ports.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "base/sock.h"
#include "node.h"
#include "raw.h"
#include "tcp/params/params.h"

#define PEERS	700
#define YOUNG	256			/* pace.c */
#define MS	1000000ULL

static struct node node;
static unsigned connects, sockets, sockets_refused;

static int count_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	connects++;
	return fab_sock_libc.connect(fd, addr, len);
}

static int refuse_socket(int family, int type, int protocol)
{
	sockets++;
	if (sockets > sockets_refused)
		return fab_sock_libc.socket(family, type, protocol);
	errno = EMFILE;
	return -1;
}

static int setup(void **state)
{
	static struct fab_sock_ops ops;

	(void) state;
	ops = fab_sock_libc;
	ops.connect = count_connect;
	ops.socket = refuse_socket;
	sockets_refused = 0;
	fab_sock = &ops;
	node_open(&node, FI_MSG, FI_THREAD_UNSPEC);
	connects = sockets = 0;
	tcp_params.local = false;
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	sockets_refused = 0;
	tcp_params.local = true;
	node_close(&node);
	fab_sock = &fab_sock_libc;
	return 0;
}

static void drive(void *arg)
{
	(void) arg;
	fi_cq_read(node.cq, NULL, 0);
}

static void drive_often(void)
{
	for (int i = 0; i < 1000; i++)
		drive(NULL);
}

/* Has a second of the endpoint's time nearly gone since start_ms, in which it was to do nothing yet? */
static uint64_t start_ms;

static bool too_slow(void)
{
	return fab_now_ms() - start_ms > 900;
}

/* The next completion within so long: 1 or -FI_EAVAIL. */
static ssize_t outcome(uint64_t within_ms)
{
	uint64_t end_ms = fab_now_ms() + within_ms;
	struct fi_cq_data_entry entry;
	ssize_t ret;

	do {
		ret = fi_cq_read(node.cq, &entry, 1);
		test_added_ns += MS;
	} while (ret == -FI_EAGAIN && fab_now_ms() < end_ms);
	return ret;
}

/* One socket listens at every loopback address, which makes as many peers of it as one likes. */
static int listen_everywhere(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*addr = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY) };
	assert_int_equal(bind(fd, (struct sockaddr *) addr, sizeof(*addr)), 0);
	assert_int_equal(listen(fd, PEERS), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *) addr, &len), 0);
	return fd;
}

/* Whose answers do not come for a second have had their time: the next ones connect. */
static void thousands_of_connects_are_paced(void **state)
{
	struct sockaddr_in addr;
	int fd = listen_everywhere(&addr);

	(void) state;
	start_ms = fab_now_ms();
	for (uint32_t i = 0; i < PEERS; i++) {
		addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + i);
		assert_int_equal(fi_send(node.ep, "hello", 5, NULL, node_insert(&node, &addr), NULL), 0);
	}
	drive_often();
	if (too_slow())
		unit_skip("the machine is too slow to see them wait");
	assert_int_equal(connects, YOUNG);
	test_added_ns += 1100 * MS;
	start_ms = fab_now_ms();
	drive_often();
	if (!too_slow())
		assert_int_equal(connects, 2 * YOUNG);
	test_added_ns += 1100 * MS;
	drive_often();
	assert_int_equal(connects, PEERS);
	close(fd);
}

/* Who has left the line, since its address was removed, is not connected to. */
static void removed_peers_leave_the_line(void **state)
{
	struct sockaddr_in addr;
	int fd = listen_everywhere(&addr);
	fi_addr_t last = 0;

	(void) state;
	start_ms = fab_now_ms();
	for (uint32_t i = 0; i < YOUNG + 2; i++) {
		addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + i);
		last = node_insert(&node, &addr);
		assert_int_equal(fi_send(node.ep, "hello", 5, NULL, last, NULL), 0);
	}
	assert_int_equal(fi_av_remove(node.av, &last, 1, 0), 0);
	if (too_slow())
		unit_skip("the machine is too slow to see them wait");
	test_added_ns += 1100 * MS;
	drive_often();
	assert_int_equal(connects, YOUNG + 1);
	close(fd);
}

static void answer_request(int listener, const struct sockaddr_in *addr)
{
	struct cm_bytes msg = raw_rdm_cm(TCP_CM_CONNRESP, ntohs(addr->sin_port), 1);
	uint8_t request[sizeof(struct tcp_cm_hdr) + sizeof(struct tcp_rdm_cm)];
	int fd = raw_accept(listener, drive, NULL);

	raw_recv(fd, request, sizeof(request), drive, NULL);
	raw_send(fd, &msg, raw_len(&msg));
	assert_int_equal(outcome(PATIENCE_MS), 1);
}

/* Without a descriptor, but with connections that may give theirs back, a send waits for one. */
static void send_waits_for_a_descriptor(void **state)
{
	struct sockaddr_in addr[2];
	int fd[2];

	(void) state;
	for (int i = 0; i < 2; i++) {
		fd[i] = raw_listen(&addr[i], 16);
		sockets = 0;
		sockets_refused = i ? 5 : 0;
		assert_int_equal(fi_send(node.ep, "hello", 5, NULL, node_insert(&node, &addr[i]), NULL), 0);
		while (sockets <= sockets_refused) {
			drive(NULL);
			test_added_ns += MS;
		}
		answer_request(fd[i], &addr[i]);
	}
	close(fd[0]);
	close(fd[1]);
}

/* If a connect may take no longer than the wait for a descriptor, the call itself fails. */
static void want_of_descriptors_without_time_fails_the_call(void **state)
{
	int before = tcp_params.connect_timeout_ms, fd;
	struct sockaddr_in addr[2];
	fi_addr_t second;

	(void) state;
	fd = raw_listen(&addr[0], 16);
	assert_int_equal(fi_send(node.ep, "hello", 5, NULL, node_insert(&node, &addr[0]), NULL), 0);
	answer_request(fd, &addr[0]);
	close(fd);
	fd = raw_listen(&addr[1], 16);
	second = node_insert(&node, &addr[1]);
	tcp_params.connect_timeout_ms = 1;
	sockets_refused = UINT32_MAX;
	assert_int_equal(fi_send(node.ep, "hello", 5, NULL, second, NULL), -FI_EMFILE);
	tcp_params.connect_timeout_ms = before;
	close(fd);
}

/* That there is none, for as long as a connect may take, is an error in the end. */
static void want_of_descriptors_is_an_error_in_the_end(void **state)
{
	struct sockaddr_in addr[2];
	struct fi_cq_err_entry err = { 0 };
	int fd[2];

	(void) state;
	for (int i = 0; i < 2; i++) {
		fd[i] = raw_listen(&addr[i], 16);
		sockets_refused = i ? UINT32_MAX : 0;
		assert_int_equal(fi_send(node.ep, "hello", 5, NULL, node_insert(&node, &addr[i]), NULL), 0);
		if (!i)
			answer_request(fd[i], &addr[i]);
	}
	assert_int_equal(outcome(2 * tcp_params.connect_timeout_ms), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(node.cq, &err, 0), 1);
	assert_int_equal(err.err, FI_EMFILE);
	close(fd[0]);
	close(fd[1]);
}

/* ---- peers that cannot agree to park ---- */

#define UPSTREAM	6

static void send_text(int fd, const char *text)
{
	struct {
		struct tcp_hdr hdr;
		char text[8];
	} frame = { .hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(frame.hdr),
			     .size = sizeof(frame) } };

	memcpy(frame.text, text, sizeof(frame.text));
	raw_send(fd, &frame, sizeof(frame));
}

/* Connect as the peer that listens at addr. */
static int connect_as(const struct sockaddr_in *addr)
{
	struct cm_bytes request = raw_rdm_cm(TCP_CM_CONNREQ, ntohs(addr->sin_port), 1);
	uint8_t answer[sizeof(struct tcp_cm_hdr) + sizeof(struct tcp_rdm_cm)];
	int fd = raw_connect(&node.addr);

	raw_send(fd, &request, raw_len(&request));
	raw_recv(fd, answer, sizeof(answer), drive, NULL);
	return fd;
}

/* Has the node said that no more will come? Nothing else was sent. */
static bool half_closed(int fd)
{
	char byte;

	return !recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
}

/* They are left alone until they are quiet; then some are told that no more will come. What they sent before they saw
 * that arrives, and before what they send after they have connected again. */
static void quiet_peers_of_upstream_are_let_go(void **state)
{
	struct sockaddr_in addr[UPSTREAM];
	int listener[UPSTREAM], fd[UPSTREAM], left = -1;
	char buf[2][8];

	(void) state;
	tcp_params.max_conn = UPSTREAM - 1;
	start_ms = fab_now_ms();
	for (int i = 0; i < UPSTREAM; i++) {
		listener[i] = raw_listen(&addr[i], 1);
		fd[i] = connect_as(&addr[i]);
	}
	drive_often();
	for (int i = 0; i < UPSTREAM && !too_slow(); i++)
		assert_false(half_closed(fd[i]));
	for (uint64_t end = fab_now_ms() + PATIENCE_MS; left < 0 && fab_now_ms() < end; test_added_ns += 100 * MS) {
		drive_often();
		for (int i = 0; i < UPSTREAM; i++)
			left = half_closed(fd[i]) ? i : left;
	}
	assert_true(left >= 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_recv(node.ep, buf[i], 8, NULL, FI_ADDR_UNSPEC, NULL), 0);
	send_text(fd[left], "earlier");
	close(fd[left]);
	fd[left] = connect_as(&addr[left]);
	send_text(fd[left], "later..");
	assert_int_equal(outcome(PATIENCE_MS), 1);
	assert_int_equal(outcome(PATIENCE_MS), 1);
	assert_string_equal(buf[0], "earlier");
	assert_string_equal(buf[1], "later..");
	for (int i = 0; i < UPSTREAM; i++) {
		close(fd[i]);
		close(listener[i]);
	}
	tcp_params.max_conn = 0;
}

#define RANGE	3

/* Are RANGE ports from low on free, outside of those that the kernel gives to others? */
static bool range_is_free(int low)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	bool all = true;

	for (int i = 0; i < RANGE; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		addr.sin_port = htons(low + i);
		all &= !bind(fd, (struct sockaddr *) &addr, sizeof(addr));
		close(fd);
	}
	return all;
}

/* Connections come from the ports that were allowed, and where these are used up, more than one from the same. */
static void connects_come_from_the_range(void **state)
{
	struct sockaddr_in addr, from;
	int listener[RANGE + 1], fd;
	socklen_t len;

	(void) state;
	tcp_params.out_port_low = 10000 + getpid() % 1000 * 16;
	while (!range_is_free(tcp_params.out_port_low))
		tcp_params.out_port_low += RANGE;
	tcp_params.out_port_high = tcp_params.out_port_low + RANGE - 1;
	for (int i = 0; i < RANGE + 1; i++) {
		listener[i] = raw_listen(&addr, 16);
		assert_int_equal(fi_send(node.ep, "hello", 5, NULL, node_insert(&node, &addr), NULL), 0);
		fd = raw_accept(listener[i], drive, NULL);
		len = sizeof(from);
		assert_int_equal(getpeername(fd, (struct sockaddr *) &from, &len), 0);
		assert_in_range(ntohs(from.sin_port), tcp_params.out_port_low, tcp_params.out_port_high);
		close(fd);
		close(listener[i]);
	}
	tcp_params.out_port_low = tcp_params.out_port_high = 0;
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(thousands_of_connects_are_paced),
		TEST(removed_peers_leave_the_line),
		TEST(send_waits_for_a_descriptor),
		TEST(want_of_descriptors_without_time_fails_the_call),
		TEST(want_of_descriptors_is_an_error_in_the_end),
		TEST(quiet_peers_of_upstream_are_let_go),
		TEST(connects_come_from_the_range),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/storm", tests, NULL, NULL);
}
