/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the log says of peers that are lost or slow: a warning once for what cuts something off or lasts too long,
 * naming both ends, and none for what is no news. The program's own logger counts them.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_rma.h>
#include "base/clock.h"
#include "remote.h"
#include "tcp/params/params.h"

static int warnings;
static char last[512];

static int log_enabled(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		       uint64_t flags)
{
	(void) prov, (void) subsys, (void) flags;
	return level <= FI_LOG_WARN;
}

static int log_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys, uint64_t flags,
		     uint64_t *showtime)
{
	(void) showtime;
	return log_enabled(prov, level, subsys, flags);
}

static void log_line(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		     const char *func, int line, const char *msg)
{
	(void) prov, (void) level, (void) subsys, (void) func, (void) line;
	warnings++;
	snprintf(last, sizeof(last), "%s", msg);
}

static struct fi_ops_log log_ops = {
	.size = sizeof(log_ops), .enabled = log_enabled, .ready = log_ready, .log = log_line,
};
static struct fid_logging logger = { .ops = &log_ops };

static int setup(void **state)
{
	int ret = node_setup(state);

	warnings = 0;
	last[0] = 0;
	return ret;
}

/* There was one, and it names the node, or what it comes from, and the peer. */
static void expect_warning(const struct peer *peer, const char *what)
{
	char text[64];

	assert_int_equal(warnings, 1);
	snprintf(text, sizeof(text), "-> fi_sockaddr_in://127.0.0.1:%u", ntohs(peer->addr.sin_port));
	if (!strstr(last, "connection fi_sockaddr_in://127.0.0.1:") || !strstr(last, text) || !strstr(last, what))
		fail_msg("warned: %s", last);
	warnings = 0;
}

static void post_read(struct node *node, const struct peer *peer, void *buf)
{
	assert_int_equal(fi_read(node->ep, buf, 8, NULL, peer->fi_addr, 0, 1, buf), 0);
}

/* The node's connection to a peer of this library; the request of the read that began it has come out of it. */
static int read_waits(struct node *node, const struct peer *peer, void *buf)
{
	uint8_t request[sizeof(struct tcp_hdr) + sizeof(struct tcp_rma_iov)];
	int fd;

	post_read(node, peer, buf);
	fd = peer_up_ext(node, peer, TCP_EXT_MAGIC | TCP_EXT_BASE);
	raw_recv(fd, request, sizeof(request), drive, node);
	return fd;
}

static void answer_read(int fd)
{
	struct {
		struct tcp_hdr hdr;
		uint64_t data;
	} rsp = { .hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_READ_RSP, .hdr_size = sizeof(rsp.hdr),
			   .size = sizeof(rsp) } };

	raw_send(fd, &rsp, sizeof(rsp));
}

static void peer_that_closes_is_no_news(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	uint64_t buf, end_ms = fab_now_ms() + PATIENCE_MS;
	int fd = read_waits(node, &peer, &buf);

	answer_read(fd);
	assert_ptr_equal(completion(node, NULL), &buf);
	peer_close(&peer, fd);
	while (node_conn(node, peer.fi_addr)) {
		assert_true(fab_now_ms() < end_ms);
		drive(node);
	}
	assert_int_equal(warnings, 0);
}

/* A program that ends when it has what it wants leaves messages behind, whose completions say so. */
static void message_that_a_peer_does_not_take_is_no_news(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	struct iovec iov = { .iov_base = &peer, .iov_len = 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = peer.fi_addr, .context = &msg };
	uint8_t frame[sizeof(struct tcp_hdr) + 8];
	int fd;

	assert_int_equal(fi_sendmsg(node->ep, &msg, FI_DELIVERY_COMPLETE), 0);
	fd = peer_up_ext(node, &peer, TCP_EXT_MAGIC | TCP_EXT_BASE);
	raw_recv(fd, frame, sizeof(frame), drive, node);
	peer_close(&peer, fd);
	expect_error(node, &msg, FI_ECONNRESET, NULL);
	assert_int_equal(warnings, 0);
}

static void what_is_cut_off_is_news(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	uint64_t buf;
	int fd = read_waits(node, &peer, &buf);

	peer_close(&peer, fd);
	expect_error(node, &buf, FI_ECONNRESET, NULL);
	expect_warning(&peer, "closed");
}

static void connect_that_fails_is_news(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	uint64_t buf;

	close(peer.listener);
	post_read(node, &peer, &buf);
	expect_error(node, &buf, FI_ECONNREFUSED, NULL);
	expect_warning(&peer, "refused");
}

/* Time goes by, as long as it takes for a look after it. */
static void time_passes(struct node *node, uint64_t ms)
{
	for (uint64_t step = 0; step < 4; step++) {
		test_added_ns += ms * MS / 4;
		drive(node);
	}
}

static void peer_that_is_stuck_is_news_once(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	uint64_t buf;
	int fd = read_waits(node, &peer, &buf);

	time_passes(node, tcp_params.user_timeout_ms / 2);
	assert_int_equal(warnings, 0);
	time_passes(node, 3 * tcp_params.user_timeout_ms);
	expect_warning(&peer, "FI_TCP_STALL_TIMEOUT");
	time_passes(node, 10 * tcp_params.user_timeout_ms);
	assert_int_equal(warnings, 0);
	answer_read(fd);
	assert_ptr_equal(completion(node, NULL), &buf);
	time_passes(node, 10 * tcp_params.user_timeout_ms);
	assert_int_equal(warnings, 0);
	peer_close(&peer, fd);
}

static int setup_stall(void **state)
{
	tcp_params.stall_timeout_ms = 1000;
	return setup(state);
}

static int teardown_stall(void **state)
{
	tcp_params.stall_timeout_ms = 0;
	return node_teardown(state);
}

/* FI_TCP_STALL_TIMEOUT: then that is its end. */
static void peer_that_is_stuck_is_given_up_where_asked_for(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	uint64_t buf;
	int fd = read_waits(node, &peer, &buf);
	struct fi_cq_tagged_entry entry;
	char text[256];

	assert_true(tcp_params.user_timeout_ms > 20 * tcp_params.stall_timeout_ms);
	time_passes(node, 4 * tcp_params.stall_timeout_ms);
	assert_int_equal(fi_cq_read(node->cq, &entry, 1), -FI_EAVAIL);	/* by now */
	expect_error(node, &buf, FI_ETIMEDOUT, text);
	assert_non_null(strstr(text, "FI_TCP_STALL_TIMEOUT"));
	expect_warning(&peer, "FI_TCP_STALL_TIMEOUT");
	peer_close(&peer, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(peer_that_closes_is_no_news, setup, node_teardown),
		cmocka_unit_test_setup_teardown(message_that_a_peer_does_not_take_is_no_news, setup, node_teardown),
		cmocka_unit_test_setup_teardown(what_is_cut_off_is_news, setup, node_teardown),
		cmocka_unit_test_setup_teardown(connect_that_fails_is_news, setup, node_teardown),
		cmocka_unit_test_setup_teardown(peer_that_is_stuck_is_news_once, setup, node_teardown),
		cmocka_unit_test_setup_teardown(peer_that_is_stuck_is_given_up_where_asked_for, setup_stall,
						teardown_stall),
	};

	if (fi_import_log(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), 0, &logger))
		return 1;
	test_clock_start();
	return cmocka_run_group_tests_name("tcp/news", tests, NULL, NULL);
}
