/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Announced messages whose data can no longer be asked for: a receive has taken one, and the go-ahead (XCTS) cannot be
 * sent. The receive completes once, in error, and what others send finds its receives. And the header that long data
 * has.
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

/* ---- the header of long data ---- */

#define SHORT	(TCP_RX_BULK_LEN - 1)

/* The frame of the data up to its payload, in the form asked for or not. */
struct data {
	struct tcp_hdr hdr;
	struct tcp_xdata_wide wide;
};

static struct data data_frame(uint32_t rx_id, uint64_t len, bool wide)
{
	const size_t hdr_size = wide ? TCP_WIDE_LEN : sizeof(struct tcp_hdr) + sizeof(struct tcp_xdata);

	return (struct data) {
		{ .version = TCP_WIRE_VERSION, .op = wide ? TCP_WIRE_XDATA_WIDE : TCP_WIRE_XDATA,
		  .hdr_size = hdr_size, .size = hdr_size + len },
		{ .xdata.rx_id = rx_id },
	};
}

/* The receiver asks for the wide header where the data is long, and takes either. */
static void long_data_is_asked_for_with_a_wide_header(void **state)
{
	static const struct { uint64_t len; bool asked, wide; } cases[] = {
		{ SHORT, false, false }, { SHORT + 1, true, true }, { SHORT + 1, true, false },
	};
	struct node *node = *state;
	struct peer peer;
	int fd = announcer(node, &peer, fab_countof(cases));

	drive_until_announced(node, &peer, fab_countof(cases));
	for (size_t i = 0; i < fab_countof(cases); i++) {
		struct {
			struct tcp_hdr hdr;
			struct tcp_cts cts;
		} cts;
		struct data data;

		memset(room, 0, LEN);
		memset(room + LEN, 'a' + (int) i, cases[i].len);
		assert_int_equal(fi_trecv(node->ep, room, cases[i].len, NULL, FI_ADDR_UNSPEC, TAG, 0, room), 0);
		raw_recv(fd, &cts, sizeof(cts), drive, node);
		assert_int_equal(cts.hdr.op, TCP_WIRE_XCTS);
		assert_int_equal(cts.hdr.op_data, cases[i].asked ? TCP_CTS_WIDE : 0);
		assert_int_equal(cts.cts.len, cases[i].len);
		data = data_frame(cts.cts.rx_id, cases[i].len, cases[i].wide);
		raw_send(fd, &data, data.hdr.hdr_size);
		raw_send(fd, room + LEN, cases[i].len);
		expect_error(node, room, FI_ETRUNC, NULL);
		assert_memory_equal(room, room + LEN, cases[i].len);
	}
	peer_close(&peer, fd);
}

/* The sender uses it for a receiver that asks for it, so an older one gets none. */
static void long_data_has_a_wide_header_if_it_is_asked_for(void **state)
{
	const struct tcp_hello hello = { .incarnation = 77, .eager_max = 4096, .credit = 1 << 20 };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &hello);

	for (int wide = 0; wide < 2; wide++) {
		struct {
			struct tcp_hdr hdr;
			struct tcp_rts rts;
		} rts;
		struct {
			struct tcp_hdr hdr;
			struct tcp_cts cts;
		} cts = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_XCTS, .op_data = wide ? TCP_CTS_WIDE : 0,
			    .hdr_size = sizeof(cts), .size = sizeof(cts) }, { .rx_id = 5, .len = TCP_RX_BULK_LEN } };
		struct data data, expected = data_frame(5, TCP_RX_BULK_LEN, wide);

		memset(room, 'x' + wide, LEN);
		assert_int_equal(fi_tsend(node->ep, room, LEN, NULL, peer.fi_addr, TAG, room), 0);
		raw_recv(fd, &rts, sizeof(rts), drive, node);
		assert_int_equal(rts.hdr.op, TCP_WIRE_XRTS);
		cts.cts.id = rts.rts.id;
		raw_send(fd, &cts, sizeof(cts));
		raw_recv(fd, &data, expected.hdr.hdr_size, drive, node);
		expected.hdr.id = data.hdr.id;
		assert_memory_equal(&data, &expected, expected.hdr.hdr_size);
		raw_recv(fd, room + LEN, TCP_RX_BULK_LEN, drive, node);
		assert_memory_equal(room, room + LEN, TCP_RX_BULK_LEN);
		assert_ptr_equal(completion(node, NULL), room);
	}
	peer_close(&peer, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(go_ahead_that_cannot_be_sent, node_setup, node_teardown),
		cmocka_unit_test_setup_teardown(multi_receive_stays, node_setup, node_teardown),
		cmocka_unit_test_setup_teardown(long_data_is_asked_for_with_a_wide_header, node_setup, node_teardown),
		cmocka_unit_test_setup_teardown(long_data_has_a_wide_header_if_it_is_asked_for, node_setup,
						node_teardown),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/rndv", tests, NULL, NULL);
}
