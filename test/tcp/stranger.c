/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that are in no address vector: what they leave without a receive is bounded for all of them together, and
 * nothing of it is lost.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_tagged.h>
#include "base/clock.h"
#include "common/progress.h"
#include "remote.h"
#include "tcp/tcp.h"

#define STRANGERS	8
#define STRANGER_MAX	(64 * 1024)	/* bytes */
#define LEN		(30 * 1024)	/* of a message */
#define MESSAGES	3		/* of each: more than the limit in all, less than what the kernel keeps of one */

static struct {
	struct tcp_hdr hdr;
	uint8_t payload[LEN];
} message;
static uint8_t room[LEN];

static int setup(void **state)
{
	tcp_params.stranger_max = STRANGER_MAX;
	message.hdr = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(message.hdr),
					 .size = sizeof(message) };
	return node_setup(state);
}

static int teardown(void **state)
{
	tcp_params.stranger_max = TCP_STRANGER_MAX;
	return node_teardown(state);
}

static struct peer stranger_open(void)
{
	struct peer peer = { .fi_addr = FI_ADDR_NOTAVAIL };

	peer.listener = raw_listen(&peer.addr, 1);
	return peer;
}

static struct tcp_rx_ctx *rx_ctx(const struct node *node)
{
	return fab_container(node->ep, struct tcp_ep, base.ep_fid)->rx;
}

/* As many as there are sockets which are not read. */
static unsigned held(const struct node *node)
{
	unsigned cnt = 0;
	struct fab_list *link;

	fab_list_for_each(&rx_ctx(node)->strangers, link)
		cnt++;
	return cnt;
}

/* The socket's own buffer takes all of them. */
static void leave_messages(int fd)
{
	int room_len = 8 * sizeof(message);

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room_len, sizeof(room_len));
	for (int i = 0; i < MESSAGES; i++)
		raw_send(fd, &message, sizeof(message));
}

static void drive_until_held(struct node *node, unsigned cnt)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	while (held(node) < cnt && fab_now_ms() < end_ms)
		drive(node);
	assert_true(held(node) >= cnt);
}

/* One read beyond the limit is what there may be. */
static void check_bound(const struct node *node)
{
	assert_true(rx_ctx(node)->stranger_len <= STRANGER_MAX + FAB_STAGING_LEN + 2 * LEN);
}

static void take_all(struct node *node, int cnt)
{
	for (int i = 0; i < cnt; i++) {
		memset(room, 0, sizeof(room));
		assert_int_equal(fi_recv(node->ep, room, LEN, NULL, FI_ADDR_UNSPEC, room), 0);
		assert_ptr_equal(completion(node, NULL), room);
		assert_memory_equal(room, message.payload, LEN);
		check_bound(node);
	}
	assert_int_equal(rx_ctx(node)->stranger_len, 0);
	assert_int_equal(held(node), 0);
}

static void together_they_are_bounded(void **state)
{
	struct node *node = *state;
	struct peer peer[STRANGERS];
	int fd[STRANGERS];

	for (int i = 0; i < STRANGERS; i++) {
		peer[i] = stranger_open();
		fd[i] = connected(node, &peer[i], i + 1);
		leave_messages(fd[i]);
	}
	drive_until_held(node, STRANGERS - 2);
	check_bound(node);
	take_all(node, STRANGERS * MESSAGES);
	for (int i = 0; i < STRANGERS; i++)
		peer_close(&peer[i], fd[i]);
}

/* Who leaves messages and goes, again and again, is bounded just so. */
static void those_that_have_gone_count_too(void **state)
{
	struct node *node = *state;

	for (int i = 0; i < STRANGERS; i++) {
		struct peer peer = stranger_open();
		int fd = connected(node, &peer, i + 1);

		leave_messages(fd);
		peer_close(&peer, fd);
	}
	drive_until_held(node, STRANGERS - 2);
	check_bound(node);
	take_all(node, STRANGERS * MESSAGES);
}

/* Who becomes known is read, whatever strangers have left; and what it left itself counts no more. */
static void who_becomes_known_is_read(void **state)
{
	struct node *node = *state;
	struct peer stranger = stranger_open(), friend = stranger_open();
	int fd = connected(node, &stranger, 1), friend_fd = connected(node, &friend, 2);
	char buf[5];

	leave_messages(fd);
	drive_until_held(node, 1);
	raw_send(friend_fd, &(struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_TAG, .hdr_size = 24,
						.size = 24 + 5 }, sizeof(struct tcp_hdr));
	raw_send(friend_fd, &(uint64_t) { 7 }, sizeof(uint64_t));
	raw_send(friend_fd, "hello", 5);
	drive_until_held(node, 2);
	friend.fi_addr = node_insert(node, &friend.addr);
	assert_int_equal(fi_trecv(node->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 7, 0, buf), 0);
	assert_ptr_equal(completion(node, NULL), buf);
	assert_memory_equal(buf, "hello", 5);
	assert_int_equal(held(node), 1);
	node_insert(node, &stranger.addr);
	assert_int_equal(rx_ctx(node)->stranger_len, 0);
	take_all(node, MESSAGES);
	peer_close(&stranger, fd);
	peer_close(&friend, friend_fd);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(together_they_are_bounded),
		TEST(those_that_have_gone_count_too),
		TEST(who_becomes_known_is_read),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/stranger", tests, NULL, NULL);
}
