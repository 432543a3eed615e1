/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Announced messages whose data can no longer be asked for: a receive has taken one, and the go-ahead (XCTS) cannot be
 * sent. The receive completes once, in error, and what others send finds its receives.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_tagged.h>
#include "base/bits.h"
#include "base/clock.h"
#include "remote.h"
#include "tcp/peer/peers.h"

#define LEN	(1 << 20)		/* of what is announced */
#define TAG	7

static uint8_t room[2 * LEN];

/* A peer of ours, in the node's address vector, that has announced cnt messages, which are kept. */
static int announcer(struct node *node, struct peer *peer, int cnt)
{
	const struct tcp_hello hello = { .incarnation = 77, .eager_max = 4096, .credit = 1 << 20 };
	int fd;

	*peer = peer_open(node);
	fd = connected_ext(node, peer, &hello);
	for (int i = 0; i < cnt; i++) {
		struct {
			struct tcp_hdr hdr;
			struct tcp_rts rts;
		} frame = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_XRTS, .op_data = 1, .hdr_size = sizeof(frame),
			      .size = sizeof(frame) }, { .tag = TAG, .len = LEN, .id = i } };

		raw_send(fd, &frame, sizeof(frame));
	}
	return fd;
}

static void drive_until_announced(struct node *node, const struct peer *peer, uint32_t cnt)
{
	struct tcp_conn *conn = node_conn(node, peer->fi_addr);
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	while (conn->msg.announced_cnt < cnt && fab_now_ms() < end_ms)
		drive(node);
	assert_int_equal(conn->msg.announced_cnt, cnt);
}

/* ---- why it cannot be sent ---- */

static void no_id(struct tcp_conn *conn, int fd)
{
	uint32_t id;

	(void) fd;
	while (!tcp_idmap_add(&conn->msg.rndv, room, &id))
		;
}

static void no_frame(struct tcp_conn *conn, int fd)
{
	(void) fd;
	conn->tx.control_cnt = UINT32_MAX / 2;
}

/* The peer resets the connection, and we have not looked yet. */
static void no_peer(struct tcp_conn *conn, int fd)
{
	struct linger now = { .l_onoff = 1 };

	(void) conn;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	shutdown(fd, SHUT_RD);
	close(fd);
}

static const struct failure {
	const char *what;
	void (*cause)(struct tcp_conn *conn, int fd);
	int err;
} failures[] = {
	{ "no number for the data", no_id, FI_ENOMEM },
	{ "no frame for the go-ahead", no_frame, FI_EIO },
	{ "no peer", no_peer, FI_ECONNRESET },
};

/* Nothing more completes, and another peer's message arrives. */
static void others_are_served(struct node *node)
{
	struct fi_cq_data_entry entry;
	struct peer other = peer_open(node);
	int fd = connected(node, &other, 3);
	char buf[5];

	assert_int_equal(fi_cq_read(node->cq, &entry, 1), -FI_EAGAIN);
	recv_from(node, fd, buf);
	peer_close(&other, fd);
}

static void go_ahead_that_cannot_be_sent(void **state)
{
	struct node *node = *state;

	for (size_t i = 0; i < fab_countof(failures); i++) {
		struct peer peer;
		char text[256] = "";
		int fd = announcer(node, &peer, 1);

		print_message("# %s\n", failures[i].what);
		drive_until_announced(node, &peer, 1);
		failures[i].cause(node_conn(node, peer.fi_addr), fd);
		assert_int_equal(fi_trecv(node->ep, room, LEN, NULL, FI_ADDR_UNSPEC, TAG, 0, room), 0);
		expect_error(node, room, failures[i].err, text);
		assert_non_null(strstr(text, "127.0.0.1"));
		others_are_served(node);
		if (failures[i].cause != no_peer)
			close(fd);
		close(peer.listener);
	}
}

/* A multi-receive has one such failure for what it had taken, and stays for what others send. */
static void multi_receive_stays(void **state)
{
	struct node *node = *state;
	struct iovec iov = { room, sizeof(room) };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = TAG,
				     .context = room };
	struct peer peer, other;
	int fd = announcer(node, &peer, 2), other_fd;

	drive_until_announced(node, &peer, 2);
	no_frame(node_conn(node, peer.fi_addr), fd);
	assert_int_equal(fi_trecvmsg(node->ep, &msg, FI_MULTI_RECV), 0);
	expect_error(node, room, FI_EIO, NULL);
	others_are_served(node);
	other = peer_open(node);
	other_fd = connected(node, &other, 4);
	raw_send(other_fd, &(struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_TAG, .hdr_size = 24,
					       .size = 24 + 5 }, sizeof(struct tcp_hdr));
	raw_send(other_fd, &(uint64_t) { TAG }, sizeof(uint64_t));
	raw_send(other_fd, "hello", 5);
	assert_ptr_equal(completion(node, NULL), room);
	assert_memory_equal(room + LEN, "hello", 5);
	peer_close(&other, other_fd);
	peer_close(&peer, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(go_ahead_that_cannot_be_sent, node_setup, node_teardown),
		cmocka_unit_test_setup_teardown(multi_receive_stays, node_setup, node_teardown),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/rndv", tests, NULL, NULL);
}
