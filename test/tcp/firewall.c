/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who cannot be connected to: peers that were inserted with FI_FIREWALL_ADDR, and this process with
 * FI_TCP_FIREWALL_ADDR. The test plays the peers on plain sockets.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/clock.h"
#include "remote.h"
#include "tcp/params/params.h"

/* A peer that listens, so that who connects nevertheless is seen, and is in the node's address vector as one that
 * cannot be connected to. */
static struct peer peer_behind(struct node *node)
{
	struct peer peer = { .listener = raw_listen(&peer.addr, 16) };

	assert_int_equal(fi_av_insert(node->av, &peer.addr, 1, &peer.fi_addr, FI_FIREWALL_ADDR, NULL), 1);
	return peer;
}

/* A connect to the loopback address is over when it returns: nobody has made one. */
static void assert_nobody_connected(const struct peer *peer)
{
	struct timeval now = { .tv_usec = 1 };

	assert_int_equal(setsockopt(peer->listener, SOL_SOCKET, SO_RCVTIMEO, &now, sizeof(now)), 0);
	assert_int_equal(accept(peer->listener, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
}

/* What is sent to it waits, and leaves in order when it connects; whichever address is the larger one. */
static void sends_wait_for_the_peer(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_behind(node);
	int fd, ops[3];
	char buf[5];

	for (int i = 0; i < 3; i++)
		send_hello(node, peer.fi_addr, &ops[i]);
	for (int i = 0; i < 100; i++)
		drive(node);
	fd = connected(node, &peer, 1);
	for (int i = 0; i < 3; i++)
		hello_arrives(node, fd, &ops[i]);
	assert_int_equal(recv_from(node, fd, buf), peer.fi_addr);
	assert_nobody_connected(&peer);
	peer_close(&peer, fd);
}

/* It does not come: each operation ends at the deadline and says why, the next ones at once; until it does come. */
static void wait_ends_at_the_deadline(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_behind(node);
	char ops[3], text[256], *other;
	int fd;

	send_hello(node, peer.fi_addr, &ops[0]);
	drive(node);
	test_added_ns += (tcp_params.connect_timeout_ms - 1000) * MS / 2;
	send_hello(node, peer.fi_addr, &ops[1]);
	test_added_ns += (tcp_params.connect_timeout_ms / 2 + 1000) * MS;
	expect_error(node, &ops[0], FI_EFIREWALLADDR, text);
	assert_non_null(strstr(text, "FI_FIREWALL_ADDR"));
	other = strstr(text, "127.0.0.1");
	assert_non_null(other);
	assert_non_null(strstr(other + 1, "127.0.0.1"));
	expect_error(node, &ops[1], FI_EFIREWALLADDR, NULL);
	assert_int_equal(fi_send(node->ep, "x", 1, NULL, peer.fi_addr, NULL), -FI_EFIREWALLADDR);
	assert_nobody_connected(&peer);
	fd = connected(node, &peer, 1);
	send_hello(node, peer.fi_addr, &ops[2]);
	hello_arrives(node, fd, &ops[2]);
	peer_close(&peer, fd);
}

/* There is no room for more than an endpoint's operations. */
static void waiting_sends_are_bounded(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_behind(node);
	size_t size = node->info->tx_attr->size;
	int fd;

	for (size_t i = 0; i < size; i++)
		send_hello(node, peer.fi_addr, NULL);
	assert_int_equal(fi_send(node->ep, "hello", 5, NULL, peer.fi_addr, NULL), -FI_EAGAIN);
	fd = connected(node, &peer, 1);
	for (size_t i = 0; i < size; i++)
		hello_arrives(node, fd, NULL);
	peer_close(&peer, fd);
}

/* The connection is lost: what is sent then waits for another. */
static void lost_connection_is_waited_for(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_behind(node);
	int fd = connected(node, &peer, 1);
	char op;

	close(fd);
	while (node_conn(node, peer.fi_addr))
		drive(node);
	send_hello(node, peer.fi_addr, &op);
	for (int i = 0; i < 100; i++)
		drive(node);
	assert_nobody_connected(&peer);
	fd = connected(node, &peer, 1);
	hello_arrives(node, fd, &op);
	peer_close(&peer, fd);
}

/* It is about the entry: gone with the last reference, and there from the call on that says so. */
static void flag_is_the_entrys(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_behind(node);
	fi_addr_t again;
	int fd, ops[2];

	assert_int_equal(fi_av_insert(node->av, &peer.addr, 1, &again, 0, NULL), 1);
	assert_int_equal(again, peer.fi_addr);
	assert_int_equal(fi_av_remove(node->av, &again, 1, 0), 0);
	send_hello(node, peer.fi_addr, &ops[0]);
	assert_int_equal(fi_av_remove(node->av, &again, 1, 0), 0);
	expect_error(node, &ops[0], FI_ECANCELED, NULL);
	assert_nobody_connected(&peer);
	peer.fi_addr = node_insert(node, &peer.addr);
	send_hello(node, peer.fi_addr, &ops[1]);
	fd = peer_up(node, &peer);
	hello_arrives(node, fd, &ops[1]);
	peer_close(&peer, fd);
}

/* What waits ends with its endpoint, and can be cancelled. */
static void waiting_sends_are_cancelled(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_behind(node);
	int ops[2];

	send_hello(node, peer.fi_addr, &ops[0]);
	send_hello(node, peer.fi_addr, &ops[1]);
	assert_int_equal(fi_cancel(&node->ep->fid, &ops[1]), 0);
	expect_error(node, &ops[1], FI_ECANCELED, NULL);
	assert_int_equal(fi_av_remove(node->av, &peer.fi_addr, 1, 0), 0);
	expect_error(node, &ops[0], FI_ECANCELED, NULL);
	close(peer.listener);
}

/* ---- what the ends say ---- */

/* A request of a peer that knows parking, and says with `features` whether it can be connected to. */
static int connect_with(struct node *node, const struct peer *peer, uint8_t features)
{
	struct tcp_rdm_cm data = { .features = features, .port = peer->addr.sin_port, .pid = htobe32(1) };
	struct cm_bytes request = raw_cm(TCP_CM_CONNREQ, &data, sizeof(data));
	int fd = raw_connect(&node->addr);

	request.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_PARK);
	request.hdr.incarnation = htobe64(1234);
	request.hdr.eager_max = htobe32(1000);
	request.hdr.credit = htobe32(10000);
	raw_send(fd, &request, raw_len(&request));
	return fd;
}

/* A connection that one end could not open again is not given up while it is idle; any other is. */
static void idle_connection_is_kept(void **state)
{
	struct node *node = *state;
	struct peer plain = peer_open(node), inserted = peer_behind(node), said = peer_open(node);
	int fd = connect_with(node, &plain, 0);

	assert_int_equal(answer(node, fd), TCP_CM_CONNRESP);
	assert_int_equal(ask_to_park(node, fd), TCP_WIRE_PARK_YES);
	peer_close(&plain, fd);
	fd = connect_with(node, &inserted, 0);
	assert_int_equal(answer(node, fd), TCP_CM_CONNRESP);
	assert_int_equal(ask_to_park(node, fd), TCP_WIRE_PARK_NO);
	peer_close(&inserted, fd);
	fd = connect_with(node, &said, TCP_RDM_FIREWALL);
	assert_int_equal(answer(node, fd), TCP_CM_CONNRESP);
	assert_int_equal(ask_to_park(node, fd), TCP_WIRE_PARK_NO);
	peer_close(&said, fd);
}

/* We send, and a peer behind a firewall connects before it takes our connection: what we sent comes by its. */
static void theirs_wins(struct node *node, struct peer *peer)
{
	int ours, theirs;
	char op;

	send_hello(node, peer->fi_addr, &op);
	ours = peer_accept(node, peer);
	theirs = connect_with(node, peer, TCP_RDM_FIREWALL);
	assert_int_equal(answer(node, theirs), TCP_CM_CONNRESP);
	hello_arrives(node, theirs, &op);
	close(ours);
	peer_close(peer, theirs);
}

/* Both connect at the same time: who cannot be connected to wins, though its address is the smaller one. */
static void request_from_behind_wins(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open_ordered(node, false);

	theirs_wins(node, &peer);
}

static int setup_behind(void **state)
{
	tcp_params.firewall_addr = true;
	return node_setup(state);
}

static int teardown_behind(void **state)
{
	tcp_params.firewall_addr = false;
	return node_teardown(state);
}

/* FI_TCP_FIREWALL_ADDR: our requests and answers say so. */
static void own_firewall_is_told(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node), other = peer_open(node);
	struct {
		struct tcp_cm_hdr hdr;
		struct tcp_rdm_cm data;
	} said;
	char op;
	int fd;

	send_hello(node, peer.fi_addr, &op);
	fd = raw_accept(peer.listener, drive, node);
	raw_recv(fd, &said, sizeof(said), drive, node);
	assert_int_equal(said.data.features, TCP_RDM_FIREWALL);
	peer_reply(fd, &peer, TCP_CM_CONNRESP);
	hello_arrives(node, fd, &op);
	peer_close(&peer, fd);
	fd = connect_with(node, &other, 0);
	raw_recv(fd, &said, sizeof(said), drive, node);
	assert_int_equal(said.hdr.type, TCP_CM_CONNRESP);
	assert_int_equal(said.data.features, TCP_RDM_FIREWALL);
	assert_int_equal(ask_to_park(node, fd), TCP_WIRE_PARK_NO);
	peer_close(&other, fd);
}

/* Then our request wins, though the peer's address is the larger one; between two of them addresses decide. */
static void own_request_from_behind_wins(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open_ordered(node, true), both = peer_open_ordered(node, true);
	int ours, theirs;
	char op;

	send_hello(node, peer.fi_addr, &op);
	ours = peer_accept(node, &peer);
	theirs = connect_with(node, &peer, 0);
	assert_int_equal(answer(node, theirs), TCP_CM_NACK);
	peer_reply(ours, &peer, TCP_CM_CONNRESP);
	hello_arrives(node, ours, &op);
	close(theirs);
	peer_close(&peer, ours);

	theirs_wins(node, &both);
}

static void option_tells_of_own_firewall(void **state)
{
	struct node *node = *state;
	size_t len = sizeof(bool);
	bool value = false;

	assert_int_equal(fi_getopt(&node->ep->fid, FI_OPT_ENDPOINT, FI_OPT_FIREWALL_ADDR, &value, &len), 0);
	assert_true(value);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, node_setup, node_teardown)
#define BEHIND(fn) cmocka_unit_test_setup_teardown(fn, setup_behind, teardown_behind)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sends_wait_for_the_peer),
		TEST(wait_ends_at_the_deadline),
		TEST(waiting_sends_are_bounded),
		TEST(lost_connection_is_waited_for),
		TEST(flag_is_the_entrys),
		TEST(waiting_sends_are_cancelled),
		TEST(idle_connection_is_kept),
		TEST(request_from_behind_wins),
		BEHIND(own_firewall_is_told),
		BEHIND(own_request_from_behind_wins),
		BEHIND(option_tells_of_own_firewall),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/firewall", tests, NULL, NULL);
}
