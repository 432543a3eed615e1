/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An RDM endpoint among peers, which the test plays on plain sockets: who connects to whom, who wins when both do, what
 * a refusal, silence or rubbish come to. Peers that come again: restart.c.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/sock.h"
#include "remote.h"
#include "tcp/peer/peer.h"
#include "tcp/params/params.h"

/* ---- one side connects ---- */

/* The first send connects; what was queued meanwhile goes out in order, on one connection. */
static void first_send_connects(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd, ops[3];

	for (int i = 0; i < 3; i++)
		send_hello(node, peer.fi_addr, &ops[i]);
	fd = peer_up(node, &peer);
	for (int i = 0; i < 3; i++)
		expect_hello(node, fd);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal(completion(node, NULL), &ops[i]);
	peer_close(&peer, fd);
}

/* A peer that connects is known by its address and the port that it says it listens at. */
static void incoming_peer_is_known_by_its_port(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = peer_connect(node, &peer, 1);
	char buf[5];

	assert_int_equal(answer(node, fd), TCP_CM_CONNRESP);
	assert_int_equal(recv_from(node, fd, buf), peer.fi_addr);
	send_hello(node, peer.fi_addr, buf);
	hello_arrives(node, fd, NULL);
	peer_close(&peer, fd);
}

/* One that is in no address vector can send; from the moment it is inserted, it has a name. */
static void incoming_stranger_gets_a_name_when_inserted(void **state)
{
	struct node *node = *state;
	struct peer peer = { .listener = raw_listen(&peer.addr, 1) };
	int fd = peer_connect(node, &peer, 1);
	char buf[5];

	assert_int_equal(answer(node, fd), TCP_CM_CONNRESP);
	assert_int_equal(recv_from(node, fd, buf), FI_ADDR_NOTAVAIL);
	peer.fi_addr = node_insert(node, &peer.addr);
	assert_int_equal(recv_from(node, fd, buf), peer.fi_addr);
	send_hello(node, peer.fi_addr, buf);
	hello_arrives(node, fd, NULL);
	peer_close(&peer, fd);
}

/* Its message has come and its connection has gone by then: the message gets that name too. */
static void late_stranger_gets_a_name_when_inserted(void **state)
{
	struct {
		struct tcp_hdr hdr;
		char text[8];
	} frame = { .hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = 16, .size = 24 } };
	struct node *node = *state;
	struct peer peer = { .listener = raw_listen(&peer.addr, 1) };
	int fd = connected(node, &peer, 1);
	fi_addr_t src = 0;
	char buf[8];

	raw_send(fd, &frame, sizeof(frame));
	shutdown(fd, SHUT_WR);
	assert_true(raw_recv_end(fd, drive, node));
	peer.fi_addr = node_insert(node, &peer.addr);
	assert_int_equal(fi_recv(node->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
	assert_ptr_equal(completion(node, &src), buf);
	assert_int_equal(src, peer.fi_addr);
	peer_close(&peer, fd);
}

/* ---- both connect ---- */

/* The node has sent "hello" and so connects to the peer, which connects to the node. */
struct race {
	struct peer peer;
	int ours, theirs;
	char op;			/* context of the send */
};

static struct race *race_start(struct node *node, bool peer_above)
{
	static struct race race;

	race.peer = peer_open_ordered(node, peer_above);
	send_hello(node, race.peer.fi_addr, &race.op);
	race.ours = peer_accept(node, &race.peer);
	race.theirs = peer_connect(node, &race.peer, 1);
	return &race;
}

/* The message comes by this connection. */
static void race_end(struct node *node, struct race *race, int winner)
{
	hello_arrives(node, winner, &race->op);
	close(race->ours);
	if (race->theirs >= 0)
		close(race->theirs);
	close(race->peer.listener);
}

/* The request of the larger address wins: a smaller peer is told no, and the node goes on. */
static void smaller_peer_gives_way(void **state)
{
	struct node *node = *state;
	struct race *race = race_start(node, false);

	assert_int_equal(answer(node, race->theirs), TCP_CM_NACK);
	peer_reply(race->ours, &race->peer, TCP_CM_CONNRESP);
	race_end(node, race, race->ours);
}

/* A larger peer's request is taken instead of the node's, with the operations that waited. */
static void larger_peer_wins(void **state)
{
	struct node *node = *state;
	struct race *race = race_start(node, true);

	assert_int_equal(answer(node, race->theirs), TCP_CM_CONNRESP);
	assert_true(raw_recv_end(race->ours, drive, node));
	race_end(node, race, race->theirs);
}

/* The loser of a simultaneous connect may be accepted late, when its socket is closed already: it disturbs nothing. */
static void leftover_request_is_ignored(void **state)
{
	struct node *node = *state;
	struct race *race = race_start(node, false);

	close(race->theirs);
	race->theirs = -1;
	peer_reply(race->ours, &race->peer, TCP_CM_CONNRESP);
	race_end(node, race, race->ours);
}

/* A rejected connect is tried again: the peer may not have noticed yet that the connection of before is gone. */
static void rejected_connect_is_tried_again(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	char op;
	int fd;

	send_hello(node, peer.fi_addr, &op);
	for (int i = 0; i < 3; i++) {
		fd = peer_accept(node, &peer);
		peer_reply(fd, &peer, TCP_CM_NACK);
		close(fd);
	}
	fd = peer_up(node, &peer);
	hello_arrives(node, fd, &op);
	peer_close(&peer, fd);
}

/* ---- peers that are not there ---- */

/* Nobody listens: every queued operation says so, with both addresses; further ones fail at once, for the hold-off. */
static void refused_peer_fails_each_operation(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	char ops[2], text[256];

	close(peer.listener);
	send_hello(node, peer.fi_addr, &ops[0]);
	send_hello(node, peer.fi_addr, &ops[1]);
	expect_error(node, &ops[0], FI_ECONNREFUSED, text);
	assert_non_null(strstr(text, "127.0.0.1"));
	assert_non_null(strstr(text, " -> "));
	expect_error(node, &ops[1], FI_ECONNREFUSED, NULL);
	assert_int_equal(fi_send(node->ep, "x", 1, NULL, peer.fi_addr, NULL), -FI_ECONNREFUSED);
	test_added_ns += tcp_params.holdoff_ms * MS;
	send_hello(node, peer.fi_addr, &ops[0]);
	expect_error(node, &ops[0], FI_ECONNREFUSED, NULL);
}

/* The SYN goes unanswered: an error at the deadline. */
static void silent_peer_times_out(void **state)
{
	struct node *node = *state;
	struct peer peer = { .listener = raw_listen(&peer.addr, 0) };
	int first = raw_connect(&peer.addr);
	char op;

	peer.fi_addr = node_insert(node, &peer.addr);
	send_hello(node, peer.fi_addr, &op);
	for (int i = 0; i < 100; i++)
		drive(node);
	test_added_ns += tcp_params.connect_timeout_ms * MS;
	expect_error(node, &op, FI_ETIMEDOUT, NULL);
	peer_close(&peer, first);
}

/* The peer closes every connection before it has answered: tried again, an error at the deadline. */
static void peer_that_vanishes_in_the_handshake(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	char op;
	int fd;

	send_hello(node, peer.fi_addr, &op);
	for (int i = 0; i < 3; i++)
		close(peer_accept(node, &peer));
	fd = peer_accept(node, &peer);
	test_added_ns += tcp_params.connect_timeout_ms * MS;
	close(fd);
	expect_error(node, &op, FI_ECONNRESET, NULL);
	close(peer.listener);
}

/* It answers with rubbish: no second try. */
static void peer_that_answers_rubbish(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	char op, text[256];
	int fd;

	send_hello(node, peer.fi_addr, &op);
	fd = peer_accept(node, &peer);
	raw_send(fd, "HTTP/1.1 400 Bad Request\r\n\r\n........", 36);
	expect_error(node, &op, FI_EPROTO, text);
	assert_non_null(strstr(text, "version"));
	peer_close(&peer, fd);
}

/* Rubbish on the listener ends that connection and none else. */
static void rubbish_ends_only_its_connection(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int good = connected(node, &peer, 1), bad = raw_connect(&node->addr), gone = raw_connect(&node->addr);
	struct cm_bytes anonymous = raw_cm(TCP_CM_CONNREQ, NULL, 0);
	char buf[5];

	close(gone);
	raw_send(bad, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35);
	assert_true(raw_recv_end(bad, drive, node));
	close(bad);
	bad = raw_connect(&node->addr);
	raw_send(bad, &anonymous, raw_len(&anonymous));
	assert_int_equal(answer(node, bad), TCP_CM_NACK);
	close(bad);
	assert_int_equal(recv_from(node, good, buf), peer.fi_addr);
	peer_close(&peer, good);
}

/* ---- the address vector ---- */

/* A removed address: what was sent still arrives, then the peer sees the end; nothing can be sent there any more. */
static void removed_address_lets_go_of_its_connection(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	char op;

	send_hello(node, peer.fi_addr, &op);
	assert_int_equal(fi_av_remove(node->av, &peer.fi_addr, 1, 0), 0);
	expect_hello(node, fd);
	assert_true(raw_recv_end(fd, drive, node));
	assert_ptr_equal(completion(node, NULL), &op);
	assert_int_equal(fi_send(node->ep, "x", 1, NULL, peer.fi_addr, NULL), -FI_EINVAL);
	close(fd);

	peer.fi_addr = node_insert(node, &peer.addr);
	send_hello(node, peer.fi_addr, &op);
	fd = peer_up(node, &peer);
	hello_arrives(node, fd, NULL);
	peer_close(&peer, fd);
}

/* While it leaves, what the peer had sent before it noticed still comes in. */
static void removed_peer_may_finish(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	char buf[5];

	assert_int_equal(fi_av_remove(node->av, &peer.fi_addr, 1, 0), 0);
	drive(node);
	assert_int_equal(recv_from(node, fd, buf), FI_ADDR_NOTAVAIL);
	peer_close(&peer, fd);
}

/* An address that was never inserted, or is beyond all, is refused. */
static void unknown_address_is_refused(void **state)
{
	struct node *node = *state;

	assert_int_equal(fi_send(node->ep, "x", 1, NULL, 0, NULL), -FI_EINVAL);
	assert_int_equal(fi_send(node->ep, "x", 1, NULL, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	assert_int_equal(fi_send(node->ep, "x", 1, NULL, 1ULL << 40, NULL), -FI_EINVAL);
}

/* ---- close ---- */

/* An operation that is waiting for its connection when the endpoint closes completes as cancelled, within a bound. */
static void close_cancels_what_waits(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	char op;

	send_hello(node, peer.fi_addr, &op);
	assert_int_equal(fi_close(&node->ep->fid), 0);
	expect_error(node, &op, FI_ECANCELED, NULL);
	node_open_ep(node);
	close(peer.listener);
}

/* While its connection is being made, an injected message is refused. What was accepted arrives, though the endpoint is
 * closed at once. */
static void close_lets_injected_bytes_leave(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd;

	assert_int_equal(fi_inject(node->ep, "never", 5, peer.fi_addr), -FI_EAGAIN);
	fd = peer_up(node, &peer);
	while (fi_inject(node->ep, "hello", 5, peer.fi_addr) == -FI_EAGAIN)
		drive(node);
	assert_int_equal(fi_close(&node->ep->fid), 0);
	expect_hello(node, fd);
	node_open_ep(node);
	peer_close(&peer, fd);
}

static ssize_t send_nothing(int fd, const void *buf, size_t len, int flags)
{
	(void) fd, (void) buf, (void) len, (void) flags;
	errno = EAGAIN;
	return -1;
}

/* Where the socket takes no more, an injected message is refused, and nothing of it stays. */
static void inject_that_cannot_leave_is_refused(void **state)
{
	struct fab_sock_ops table = *fab_sock;
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);

	table.send = send_nothing;
	fab_sock = &table;
	assert_int_equal(fi_inject(node->ep, "never", 5, peer.fi_addr), -FI_EAGAIN);
	assert_int_equal(fi_inject(node->ep, "never", 5, peer.fi_addr), -FI_EAGAIN);
	fab_sock = &fab_sock_libc;
	while (fi_inject(node->ep, "hello", 5, peer.fi_addr) == -FI_EAGAIN)
		drive(node);
	expect_hello(node, fd);
	peer_close(&peer, fd);
}

/* Nobody listens: a caller that only repeats an injected message gets the reason, whether there is no hold-off or it
 * comes back after the hold-off; then there is another attempt. */
static void inject_to_nobody_gets_the_reason(void **state)
{
	const struct {
		int holdoff_ms;
		uint64_t away_ns;
	} rows[] = { { 0, 0 }, { 1000, 5000 * MS } };
	int holdoff_ms = tcp_params.holdoff_ms;
	struct node *node = *state;
	struct peer peer = peer_open(node);
	ssize_t ret;

	close(peer.listener);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		tcp_params.holdoff_ms = rows[i].holdoff_ms;
		test_added_ns += 2 * rows[i].away_ns;
		assert_int_equal(fi_inject(node->ep, "never", 5, peer.fi_addr), -FI_EAGAIN);
		for (int tries = 0; tries < 100; tries++) {
			drive(node);
			test_added_ns += rows[i].away_ns;
			ret = fi_inject(node->ep, "never", 5, peer.fi_addr);
			if (ret != -FI_EAGAIN)
				break;
		}
		assert_int_equal(ret, -FI_ECONNREFUSED);
	}
	tcp_params.holdoff_ms = holdoff_ms;
}

static int polls;

static int count_poll(struct pollfd *fds, nfds_t cnt, int timeout_ms)
{
	polls++;
	return poll(fds, cnt, timeout_ms);
}

/* The peer's kernel is slow to acknowledge, as it is while a process does not read: on one host that need not be waited
 * for, and what was sent arrives. */
static void close_does_not_wait_for_a_late_acknowledgement(void **state)
{
	struct fab_sock_ops table = *fab_sock;
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1), off = 0;

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off)), 0);
	assert_int_equal(fi_inject(node->ep, "hello", 5, peer.fi_addr), 0);
	table.poll = count_poll;
	fab_sock = &table;
	assert_int_equal(fi_close(&node->ep->fid), 0);
	fab_sock = &fab_sock_libc;
	assert_int_equal(polls, 0);
	expect_hello(node, fd);
	node_open_ep(node);
	peer_close(&peer, fd);
}

/* ---- cost ---- */

/* An idle connected peer costs 2 KB at most (doc/design.md, 7.9). */
static void idle_peer_is_small(void **state)
{
	enum { N = 64 };
	struct node *node = *state;
	struct peer peer[N];
	size_t before;
	int fd[N];

#ifdef FAB_ASAN
	unit_skip("the sanitizer's allocator does not count");
#endif
	for (int i = 0; i < N; i++)
		peer[i] = peer_open(node);
	before = mallinfo2().uordblks;
	for (int i = 0; i < N; i++)
		fd[i] = connected(node, &peer[i], 1);
	drive(node);
	print_message("%zu bytes a peer\n", (mallinfo2().uordblks - before) / N);
	assert_true(mallinfo2().uordblks - before <= N * 2048);
	for (int i = 0; i < N; i++) {
		close(fd[i]);
		close(peer[i].listener);
	}
}

static void peers_are_ordered_by_host_then_port(void **state)
{
	static const struct {
		const char *a, *b;
		int sign;
	} rows[] = {
		{ "fi_sockaddr_in://1.2.3.4:5", "fi_sockaddr_in://1.2.3.4:5", 0 },
		{ "fi_sockaddr_in://1.2.3.4:256", "fi_sockaddr_in://1.2.3.4:255", 1 },
		{ "fi_sockaddr_in://1.2.3.4:9", "fi_sockaddr_in://1.2.3.5:1", -1 },
		{ "fi_sockaddr_in://200.0.0.1:1", "fi_sockaddr_in://10.255.255.255:9", 1 },
		{ "fi_sockaddr_in6://[fe80::1]:7", "fi_sockaddr_in6://[fe80::1]:8", -1 },
		{ "fi_sockaddr_in6://[ff00::]:1", "fi_sockaddr_in6://[::1]:8", 1 },
	};

	(void) state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		union fab_sockaddr a, b;
		int ret;

		assert_int_equal(fab_addr_from_str(rows[i].a, &a), 0);
		assert_int_equal(fab_addr_from_str(rows[i].b, &b), 0);
		ret = tcp_peer_cmp(&a, &b);
		assert_int_equal((ret > 0) - (ret < 0), rows[i].sign);
		assert_int_equal(tcp_peer_cmp(&b, &a) > 0, ret < 0);
	}
}

/* Its connection has ended and its address has gone; another one has its index now. */
static void late_message_is_not_taken_for_another_peers(void **state)
{
	struct {
		struct tcp_hdr hdr;
		char text[8];
	} frame = { .hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = 16, .size = 24 } };
	struct node *node = *state;
	struct peer peer = peer_open(node), other;
	fi_addr_t first = peer.fi_addr, src = 0;
	char buf[8];
	int fd;

	send_hello(node, peer.fi_addr, NULL);
	fd = peer_up(node, &peer);
	hello_arrives(node, fd, NULL);
	raw_send(fd, &frame, sizeof(frame));
	shutdown(fd, SHUT_WR);
	assert_true(raw_recv_end(fd, drive, node));
	peer_close(&peer, fd);
	assert_int_equal(fi_av_remove(node->av, &first, 1, 0), 0);
	other = peer_open(node);
	assert_int_equal(other.fi_addr, first);
	assert_int_equal(fi_recv(node->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
	assert_ptr_equal(completion(node, &src), buf);
	assert_int_equal(src, FI_ADDR_NOTAVAIL);
	close(other.listener);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, node_setup, node_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(first_send_connects),
		TEST(incoming_peer_is_known_by_its_port),
		TEST(incoming_stranger_gets_a_name_when_inserted),
		TEST(late_stranger_gets_a_name_when_inserted),
		TEST(smaller_peer_gives_way),
		TEST(larger_peer_wins),
		TEST(leftover_request_is_ignored),
		TEST(rejected_connect_is_tried_again),
		TEST(refused_peer_fails_each_operation),
		TEST(silent_peer_times_out),
		TEST(peer_that_vanishes_in_the_handshake),
		TEST(peer_that_answers_rubbish),
		TEST(rubbish_ends_only_its_connection),
		TEST(removed_address_lets_go_of_its_connection),
		TEST(removed_peer_may_finish),
		TEST(unknown_address_is_refused),
		TEST(close_cancels_what_waits),
		TEST(close_lets_injected_bytes_leave),
		TEST(inject_that_cannot_leave_is_refused),
		TEST(inject_to_nobody_gets_the_reason),
		TEST(close_does_not_wait_for_a_late_acknowledgement),
		TEST(late_message_is_not_taken_for_another_peers),
		TEST(idle_peer_is_small),
		cmocka_unit_test(peers_are_ordered_by_host_then_port),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/peer", tests, NULL, NULL);
}
