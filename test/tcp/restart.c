/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer of an RDM endpoint that comes again: started anew, or the same that has lost its connection.
 */
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "remote.h"
#include "tcp/peer/peers.h"
#include "tcp/params/params.h"

/* Another process at the same address: the old connection ends, the new one is it. */
static void restarted_peer_replaces_its_old_life(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = connected(node, &peer, 1), new = connected(node, &peer, 2);
	char buf[5];

	assert_true(raw_recv_end(old, drive, node));
	assert_int_equal(recv_from(node, new, buf), peer.fi_addr);
	send_hello(node, peer.fi_addr, buf);
	hello_arrives(node, new, NULL);
	close(old);
	peer_close(&peer, new);
}

/* In containers each life has the same pid; peers of ours are told apart by their incarnation. */
static void incarnation_tells_lives_apart(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd[2];

	for (int i = 0; i < 2; i++)
		fd[i] = connected_ext(node, &peer, &(struct tcp_hello) { .incarnation = 100 + i });
	assert_true(raw_recv_end(fd[0], drive, node));
	close(fd[0]);
	close(fd[1]);
	close(peer.listener);
}

/* The same life asks though it is connected: told no once (a leftover), believed when it asks again. */
static void insistent_peer_is_believed(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = connected(node, &peer, 1), again = peer_connect(node, &peer, 1), new;
	char buf[5];

	assert_int_equal(answer(node, again), TCP_CM_NACK);
	assert_int_equal(recv_from(node, old, buf), peer.fi_addr);
	new = connected(node, &peer, 1);
	assert_true(raw_recv_end(old, drive, node));
	assert_int_equal(recv_from(node, new, buf), peer.fi_addr);
	close(old);
	close(again);
	peer_close(&peer, new);
}

/* It insists while messages of its old connection wait to be read: they are not lost for that. */
static void insistent_peer_loses_no_message(void **state)
{
	enum { MSGS = 100, LEN = 2000 };
	struct {
		struct tcp_hdr hdr;
		uint8_t payload[LEN];
	} frame = { .hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = 16, .size = sizeof(frame) } };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	uint8_t buf[LEN];
	int old, knock[2], new;

	tcp_params.unexp_max = 4096;		/* what is beyond that stays in the socket */
	old = connected(node, &peer, 1);
	for (int i = 0; i < MSGS; i++) {
		frame.payload[0] = i;
		raw_send(old, &frame, sizeof(frame));
	}
	for (int i = 0; i < 2; i++) {
		knock[i] = peer_connect(node, &peer, 1);
		assert_int_equal(answer(node, knock[i]), TCP_CM_NACK);
		close(knock[i]);
	}
	for (int i = 0; i < MSGS; i++) {
		assert_int_equal(fi_recv(node->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
		assert_ptr_equal(completion(node, NULL), buf);
		assert_int_equal(buf[0], i);
	}
	new = connected(node, &peer, 1);
	assert_true(raw_recv_end(old, drive, node));
	tcp_params.unexp_max = TCP_UNEXP_MAX;
	close(old);
	peer_close(&peer, new);
}

/* A connection that went down comes back with the next send. */
static void next_send_reconnects(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	char buf[5], op;

	recv_from(node, fd, buf);
	close(fd);
	/* it notices that when it reads; until then a send goes to the old one */
	while (node_conn(node, peer.fi_addr))
		drive(node);
	send_hello(node, peer.fi_addr, &op);
	fd = peer_up(node, &peer);
	hello_arrives(node, fd, &op);
	peer_close(&peer, fd);
}

/* ---- an address that was removed ---- */

/* Its address is removed, and it closes and connects again: one pass finds the request, then the end of the stream. */
static void removed_peer_closes_and_comes_again(void **state)
{
	struct node *node = *state;
	const struct tcp_listener *listener = &((struct tcp_ep *) node->ep)->rdm.peers->listener;
	struct peer peer = peer_open(node);
	struct cm_bytes request = raw_rdm_cm(TCP_CM_CONNREQ, ntohs(peer.addr.sin_port), 1);
	int old = connected(node, &peer, 1), new;
	char buf[5];

	assert_int_equal(fi_av_remove(node->av, &peer.fi_addr, 1, 0), 0);
	new = raw_connect(&node->addr);
	while (!listener->awaited_cnt)
		drive(node);
	raw_send(new, &request, raw_len(&request));
	close(old);
	assert_int_equal(answer(node, new), TCP_CM_CONNRESP);
	recv_from(node, new, buf);
	peer_close(&peer, new);
}

static unsigned reads_left, reads_done;

/* A peer that sends a frame whenever it is read from: credits, which cost nothing. */
static ssize_t recv_credit(struct tcp_conn *conn, void *buf, size_t len)
{
	struct {
		struct tcp_hdr hdr;
		struct tcp_credit credit;
	} frame = { .hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_CREDIT, .hdr_size = sizeof(frame),
			     .size = sizeof(frame) } };

	(void) conn;
	assert_true(len >= sizeof(frame));
	if (!reads_left)
		return -EAGAIN;
	reads_left--;
	reads_done++;
	memcpy(buf, &frame, sizeof(frame));
	return sizeof(frame);
}

/* Its address is removed, it sends on, and asks for another connection: it is not read from for ever. It is told no,
 * and believed once the old stream has no more. */
static void removed_peer_that_sends_on_is_read_within_a_bound(void **state)
{
	const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096, .credit = 4096 };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = connected_ext(node, &peer, &hello), again, new;
	static struct tcp_io io;

	io = tcp_io_sock;
	io.recv = recv_credit;
	node_conn(node, peer.fi_addr)->io = &io;
	assert_int_equal(fi_av_remove(node->av, &peer.fi_addr, 1, 0), 0);
	reads_done = 0;
	reads_left = 100000;
	again = peer_connect(node, &peer, 1);
	assert_int_equal(answer(node, again), TCP_CM_NACK);
	assert_true(reads_done > 1 && reads_left > 0);
	reads_left = 0;
	new = connected_ext(node, &peer, &hello);
	close(old);
	close(again);
	peer_close(&peer, new);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, node_setup, node_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(restarted_peer_replaces_its_old_life),
		TEST(incarnation_tells_lives_apart),
		TEST(insistent_peer_is_believed),
		TEST(insistent_peer_loses_no_message),
		TEST(next_send_reconnects),
		TEST(removed_peer_closes_and_comes_again),
		TEST(removed_peer_that_sends_on_is_read_within_a_bound),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/restart", tests, NULL, NULL);
}
