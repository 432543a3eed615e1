/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer of an RDM endpoint that comes again: started anew, or the same that has lost its connection.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"
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

/* ---- peers of ours, which can be asked who they are ---- */

/* Its connection, in this run. */
static int run_connected(struct node *node, const struct peer *peer, uint64_t incarnation)
{
	return connected_ext(node, peer, &(struct tcp_hello) { .incarnation = incarnation,
			   .eager_max = 4096, .credit = 4096 });
}

/* The same, without waiting for the answer. */
static int run_connect(struct node *node, const struct peer *peer, uint64_t incarnation)
{
	return peer_connect_ext(node, peer, &(struct tcp_hello) { .incarnation = incarnation,
			   .eager_max = 4096, .credit = 4096 });
}

/* The node asks the peer's port, and this run listens there. connects: whether it says that it is connecting; -1: it is
 * of an older version, and does not say. */
static void run_says(struct node *node, const struct peer *peer, uint64_t incarnation, int connects)
{
	struct cm_bytes question, says = raw_rdm_cm(TCP_CM_NACK, ntohs(peer->addr.sin_port), 1);
	int fd = raw_accept(peer->listener, drive, node);

	raw_recv(fd, &question, sizeof(question.hdr) + sizeof(struct tcp_rdm_cm), drive, node);
	assert_int_equal(question.hdr.type, TCP_CM_CONNREQ);
	assert_true(be32toh(question.hdr.ext) & TCP_EXT_WHO);
	says.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | (connects < 0 ? 0 : TCP_EXT_WHO));
	says.hdr.incarnation = htobe64(incarnation);
	((struct tcp_rdm_cm *) says.data)->features = connects == 1 ? TCP_RDM_CONNECTS : 0;
	raw_send(fd, &says, raw_len(&says));
	assert_true(raw_recv_end(fd, drive, node));
	close(fd);
}

static void ends(struct node *node, int fd)
{
	assert_true(raw_recv_end(fd, drive, node));
	close(fd);
}

/* In containers each life has the same pid; peers of ours are told apart by their incarnation. */
static void incarnation_tells_lives_apart(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = run_connected(node, &peer, 100), new = run_connect(node, &peer, 101);
	char buf[5];

	run_says(node, &peer, 101, 1);
	assert_int_equal(answer(node, new), TCP_CM_CONNRESP);
	ends(node, old);
	assert_int_equal(recv_from(node, new, buf), peer.fi_addr);
	peer_close(&peer, new);
}

/* A request of a thief: its incarnation (0: it takes itself for upstream's, which has none), and whether the peer's
 * port is asked. */
struct theft {
	uint64_t incarnation;
	bool asked;
};

/* A peer's connection that stays although a thief sends these requests; it says that it is not connecting. */
static int connection_withstands(struct node *node, const struct peer *peer, const struct theft thefts[2])
{
	int old = run_connected(node, peer, 100), thief;
	char buf[5];

	for (const struct theft *theft = thefts; theft < thefts + 2; theft++) {
		thief = theft->incarnation ? run_connect(node, peer, theft->incarnation) :
					     peer_connect(node, peer, 1);
		if (theft->asked)
			run_says(node, peer, 100, 0);
		assert_int_equal(answer(node, thief), TCP_CM_NACK);
		ends(node, thief);
		test_added_ns += 200 * MS;
	}
	assert_int_equal(recv_from(node, old, buf), peer->fi_addr);
	return old;
}

/* Another process of the peer's host says that it listens at the peer's port. The port is asked, and the connection
 * stays. */
static void connection_is_not_stolen(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = connection_withstands(node, &peer, (struct theft[]) { { 101, true }, { 0, true } });

	send_hello(node, peer.fi_addr, &peer);
	hello_arrives(node, old, NULL);
	peer_close(&peer, old);
}

/* It may know the incarnation of the peer, and insist as the peer would. */
static void connection_is_not_stolen_by_insisting(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);

	peer_close(&peer, connection_withstands(node, &peer, (struct theft[]) { { 100, false }, { 100, true } }));
}

/* The peer itself insists, as it has lost its end. It says that it is connecting, or is too old to say it. */
static void insistent_peer_vouches_for_itself(void **state)
{
	struct node *node = *state;

	for (int says = -1; says < 2; says += 2) {
		struct peer peer = peer_open(node);
		int old = run_connected(node, &peer, 100), new = run_connect(node, &peer, 100);

		assert_int_equal(answer(node, new), TCP_CM_NACK);
		ends(node, new);
		new = run_connect(node, &peer, 100);
		run_says(node, &peer, 100, says);
		assert_int_equal(answer(node, new), TCP_CM_CONNRESP);
		ends(node, old);
		peer_close(&peer, new);
	}
}

/* Nobody listens at the peer's port: there is nobody to ask, and the request is believed. */
static void peer_that_cannot_be_asked_is_believed(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = run_connected(node, &peer, 100), new;

	close(peer.listener);
	new = run_connected(node, &peer, 101);
	ends(node, old);
	close(new);
}

/* The old connection has ended already, and only the end was not read: nobody is asked. */
static void ended_connection_needs_no_question(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = run_connected(node, &peer, 100), new;

	close(old);
	new = run_connected(node, &peer, 101);
	peer_close(&peer, new);
}

/* True if the node has asked this peer's port. */
static bool was_asked(const struct peer *peer)
{
	return poll(&(struct pollfd) { .fd = peer->listener, .events = POLLIN }, 1, 0) == 1;
}

/* The peer's port accepts the question and says nothing, as behind a port forward. The request is accepted when the old
 * connection has ended, as there is nothing left to protect. */
static void request_that_waits_is_accepted_when_the_connection_ends(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = run_connected(node, &peer, 100), new = run_connect(node, &peer, 101);

	while (!was_asked(&peer))
		drive(node);
	test_added_ns += 1100 * MS;
	for (int i = 0; i < 10; i++)
		drive(node);
	assert_int_equal(recv(new, &(char) { 0 }, 1, MSG_DONTWAIT), -1);
	close(old);
	while (node_conn(node, peer.fi_addr))
		drive(node);
	test_added_ns += 1100 * MS;
	assert_int_equal(answer(node, new), TCP_CM_CONNRESP);
	peer_close(&peer, new);
}

/* The peer holds our request for longer than a connect may take, and rejects it: the time that it held it does not
 * count, and we repeat the request. */
static void request_that_was_held_is_repeated(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	char op;
	int fd;

	for (int i = 0; i < 2; i++) {
		if (!i)
			send_hello(node, peer.fi_addr, &op);
		fd = peer_accept(node, &peer);
		test_added_ns += 2ULL * tcp_params.connect_timeout_ms * MS;
		drive(node);
		peer_reply(fd, &peer, TCP_CM_NACK);
		ends(node, fd);
	}
	fd = peer_up(node, &peer);
	hello_arrives(node, fd, &op);
	peer_close(&peer, fd);
}

/* Requests do not make the node connect as often as they come: a peer that has said no is not asked again at once. */
static void questions_have_a_rate(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = run_connected(node, &peer, 100), thief = run_connect(node, &peer, 101);

	run_says(node, &peer, 100, 0);
	assert_int_equal(answer(node, thief), TCP_CM_NACK);
	close(thief);
	for (int i = 0; i < 20; i++) {
		thief = run_connect(node, &peer, 102 + i);
		assert_int_equal(answer(node, thief), TCP_CM_NACK);
		close(thief);
	}
	assert_false(was_asked(&peer));
	peer_close(&peer, old);
}

/* A thief that repeats its requests does not keep the peer waiting that was started again: the answer to its question
 * speaks for the peer. Once the peer is connected, it speaks for nobody any more. */
static void thief_does_not_keep_the_peer_waiting(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = run_connected(node, &peer, 100), thief = run_connect(node, &peer, 102), new;

	run_says(node, &peer, 101, 1);
	assert_int_equal(answer(node, thief), TCP_CM_NACK);
	close(thief);
	thief = run_connect(node, &peer, 103);
	assert_int_equal(answer(node, thief), TCP_CM_NACK);
	close(thief);
	new = run_connect(node, &peer, 101);
	assert_int_equal(answer(node, new), TCP_CM_CONNRESP);
	assert_false(was_asked(&peer));
	ends(node, old);
	thief = run_connect(node, &peer, 101);		/* one that knows its incarnation, and insists */
	assert_int_equal(answer(node, thief), TCP_CM_NACK);
	close(thief);
	test_added_ns += 200 * MS;
	thief = run_connect(node, &peer, 101);
	run_says(node, &peer, 101, 0);
	assert_int_equal(answer(node, thief), TCP_CM_NACK);
	close(thief);
	peer_close(&peer, new);
}

/* An answer is remembered for a second. */
static void answer_is_forgotten(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = run_connected(node, &peer, 100), thief = run_connect(node, &peer, 102), new;

	run_says(node, &peer, 101, 1);
	assert_int_equal(answer(node, thief), TCP_CM_NACK);
	close(thief);
	test_added_ns += 1100 * MS;
	new = run_connect(node, &peer, 101);
	run_says(node, &peer, 101, 1);
	assert_int_equal(answer(node, new), TCP_CM_CONNRESP);
	ends(node, old);
	peer_close(&peer, new);
}

/* Requests that wait for an answer are 16 at most. A further one is told to come again; after a second it takes the
 * place of the oldest. What waits is gone when the endpoint is closed. */
static void requests_that_wait_have_a_bound(void **state)
{
	enum { WAITING = 16 };
	struct node *node = *state;
	struct peer peer[WAITING + 1];
	int old[WAITING + 1], new[WAITING + 1];

	for (int i = 0; i <= WAITING; i++) {
		peer[i] = peer_open(node);
		old[i] = run_connected(node, &peer[i], 100);
		new[i] = run_connect(node, &peer[i], 101);
		while (i < WAITING && !was_asked(&peer[i]))
			drive(node);
	}
	assert_int_equal(answer(node, new[WAITING]), TCP_CM_NACK);
	assert_false(was_asked(&peer[WAITING]));
	close(new[WAITING]);
	test_added_ns += 1100 * MS;
	new[WAITING] = run_connect(node, &peer[WAITING], 101);
	run_says(node, &peer[WAITING], 101, 1);
	assert_int_equal(answer(node, new[WAITING]), TCP_CM_CONNRESP);
	assert_int_equal(answer(node, new[0]), TCP_CM_NACK);
	for (int i = 0; i <= WAITING; i++) {
		close(old[i]);
		close(new[i]);
		close(peer[i].listener);
	}
}

/* Two nodes make progress. */
struct two {
	struct node *node;
	struct node other;
};

static void drive_two(void *arg)
{
	struct two *two = arg;

	drive(two->node);
	drive(&two->other);
}

/* A peer of ours answers questions by itself: in its new run it takes the place of a connection that its old run has
 * left, at once; and a third process does not take its place then. */
static void node_answers_questions(void **state)
{
	struct two two = { .node = *state };
	struct peer peer = peer_open(two.node);
	int old = run_connected(two.node, &peer, 100), thief;
	struct cm_bytes reply;
	uint64_t begun;
	fi_addr_t to;
	char buf[5];

	close(peer.listener);
	node_open_at(&two.other, FI_MSG | FI_SOURCE, ntohs(peer.addr.sin_port));
	to = node_insert(&two.other, &two.node->addr);
	assert_int_equal(fi_recv(two.node->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
	begun = fab_now_ns();
	send_hello(&two.other, to, NULL);
	assert_true(raw_recv_end(old, drive_two, &two));
	while (fi_cq_read(two.node->cq, &(struct fi_cq_data_entry) { 0 }, 1) == -FI_EAGAIN)
		drive_two(&two);
	assert_true(fab_now_ns() - begun < 500 * MS);
	assert_int_equal(fi_recv(two.node->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
	thief = run_connect(two.node, &peer, 101);
	raw_recv(thief, &reply, sizeof(reply.hdr), drive_two, &two);
	assert_int_equal(reply.hdr.type, TCP_CM_NACK);
	send_hello(&two.other, to, NULL);
	while (fi_cq_read(two.node->cq, &(struct fi_cq_data_entry) { 0 }, 1) == -FI_EAGAIN)
		drive_two(&two);
	close(thief);
	close(old);
	node_close(&two.other);
}

/* ---- a peer that has lost its connection ---- */

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
	raw_send(new, &request, 1);	/* the kernel shows no connection that has sent nothing (TCP_DEFER_ACCEPT) */
	while (!listener->awaited_cnt)
		drive(node);
	raw_send(new, (char *) &request + 1, raw_len(&request) - 1);
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

/* A thief makes us read from the peer that it names eight times at most. */
static void thief_does_not_make_us_read(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int old = run_connected(node, &peer, 100), thief;
	static struct tcp_io io;

	io = tcp_io_sock;
	io.recv = recv_credit;
	node_conn(node, peer.fi_addr)->io = &io;
	thief = run_connect(node, &peer, 101);
	reads_done = 0;
	reads_left = 100000;
	while (!was_asked(&peer))
		drive(node);
	assert_in_range(reads_done, 8, 8 + 4);
	reads_left = 0;
	run_says(node, &peer, 100, 0);
	assert_int_equal(answer(node, thief), TCP_CM_NACK);
	close(thief);
	peer_close(&peer, old);
}

/* A peer parks its connection, and the next one does not resume it: what it sent before is of no connection any more.
 * Then its number is given to somebody else, who has not sent it. */
static void message_before_parking_is_nobody_elses(void **state)
{
	struct {
		struct tcp_hdr hdr;
		char text[8];
	} message = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(message.hdr),
			.size = sizeof(message) }, "unasked" };
	struct node *node = *state;
	struct peer peer = peer_open(node), other;
	int old = connected_ext(node, &peer, &(struct tcp_hello) { .incarnation = 100, .eager_max = 4096,
				.credit = 4096, .features = TCP_EXT_PARK }), new;
	char buf[8];
	fi_addr_t src;

	raw_send(old, &message, sizeof(message));
	assert_int_equal(ask_to_park(node, old), TCP_WIRE_PARK_YES);
	close(old);
	for (int i = 0; i < 10; i++)
		drive(node);
	new = run_connected(node, &peer, 100);
	assert_int_equal(fi_av_remove(node->av, &peer.fi_addr, 1, 0), 0);
	other = peer_open(node);
	assert_int_equal(other.fi_addr, peer.fi_addr);
	assert_int_equal(fi_recv(node->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf), 0);
	assert_ptr_equal(completion(node, &src), buf);
	assert_string_equal(buf, "unasked");
	assert_int_equal(src, FI_ADDR_NOTAVAIL);
	close(other.listener);
	peer_close(&peer, new);
}

/* A parked stream is resumed by the run of the peer that has parked it, with what is left of its credit. Another run
 * has kept nothing, and gives the credit that it says. */
static void another_run_does_not_resume(void **state)
{
	const struct tcp_hello hello = { .incarnation = 100, .eager_max = 4096, .credit = 4096,
					 .features = TCP_EXT_PARK | TCP_EXT_RESUME };
	struct node *node = *state;

	for (unsigned restarted = 0; restarted < 2; restarted++) {
		struct peer peer = peer_open(node);
		struct tcp_hello again = hello;
		int fd = connected_ext(node, &peer, &hello);
		struct tcp_conn *conn;

		send_hello(node, peer.fi_addr, &again);
		hello_arrives(node, fd, &again);
		conn = node_conn(node, peer.fi_addr);
		assert_int_equal(ask_to_park(node, fd), TCP_WIRE_PARK_YES);
		close(fd);
		while (conn->state == TCP_CONN_PARKING)
			drive(node);
		again.incarnation += restarted;
		fd = peer_connect_ext(node, &peer, &again);
		if (restarted)
			run_says(node, &peer, again.incarnation, 1);
		assert_int_equal(answer(node, fd), TCP_CM_CONNRESP);
		send_hello(node, peer.fi_addr, &again);
		hello_arrives(node, fd, &again);
		conn = node_conn(node, peer.fi_addr);
		assert_int_equal(4096 - conn->tx.credit, (restarted ? 1 : 2) * (5 + TCP_CREDIT_OVERHEAD));
		peer_close(&peer, fd);
	}
}

static size_t room;			/* bytes that the stream takes */

static ssize_t send_what_fits(struct tcp_conn *conn, const void *buf, size_t len)
{
	size_t n = fab_min(len, room);

	room -= n;
	return n ? tcp_io_sock.send(conn, buf, n) : -EAGAIN;
}

/* A peer asks to park, and has gone before all of the answer was sent, or after that. The message that waits for the
 * next connection is the first frame there: the answer would be one without a question. */
static void answer_about_parking_stays_with_its_stream(void **state)
{
	const size_t rooms[] = { 0, 5, sizeof(struct tcp_hdr) };
	const struct tcp_hello hello = { .incarnation = 100, .eager_max = 4096, .credit = 4096,
					 .features = TCP_EXT_PARK };
	const struct tcp_hdr park = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_PARK, .hdr_size = sizeof(park),
				      .size = sizeof(park) };
	struct tcp_io io = tcp_io_sock;
	struct node *node = *state;

	io.send = send_what_fits;
	for (size_t i = 0; i < fab_countof(rooms); i++) {
		struct peer peer = peer_open(node);
		int old = connected_ext(node, &peer, &hello), new;
		struct tcp_conn *conn = node_conn(node, peer.fi_addr);

		conn->io = &io;
		room = rooms[i];
		raw_send(old, &park, sizeof(park));
		while (conn->state != TCP_CONN_PARKING)
			drive(node);
		assert_int_equal(room, 0);
		send_hello(node, peer.fi_addr, &room);
		close(old);
		new = peer_up(node, &peer);
		hello_arrives(node, new, &room);
		assert_int_equal(conn->tx.control_cnt, 0);
		peer_close(&peer, new);
	}
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, node_setup, node_teardown)

/* What the node says of itself to somebody who listens at this port, and asks. */
static uint8_t ask_node(struct node *node, uint16_t port)
{
	struct cm_bytes question = raw_rdm_cm(TCP_CM_CONNREQ, 0, port), says;
	int fd = raw_connect(&node->addr);

	question.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_WHO);
	raw_send(fd, &question, raw_len(&question));
	raw_recv(fd, &says, sizeof(says.hdr) + sizeof(struct tcp_rdm_cm), drive, node);
	assert_int_equal(says.hdr.type, TCP_CM_NACK);
	assert_true(be32toh(says.hdr.ext) & TCP_EXT_WHO);
	close(fd);
	return ((const struct tcp_rdm_cm *) says.data)->features;
}

/* A peer that is connected is told that the node does not connect to it, even while it connects to another one:
 * somebody else claims to be the node then. Who is not known is told whether it connects to anybody. */
static void who_asks_is_told_of_itself(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node), other = peer_open(node);
	int fd = run_connected(node, &peer, 7), fd_other;
	char context;

	assert_int_equal(ask_node(node, 0) & TCP_RDM_CONNECTS, 0);
	send_hello(node, other.fi_addr, &context);
	fd_other = peer_accept(node, &other);
	assert_int_equal(ask_node(node, ntohs(peer.addr.sin_port)) & TCP_RDM_CONNECTS, 0);
	assert_int_not_equal(ask_node(node, ntohs(other.addr.sin_port)) & TCP_RDM_CONNECTS, 0);
	assert_int_not_equal(ask_node(node, 1) & TCP_RDM_CONNECTS, 0);
	assert_int_not_equal(ask_node(node, 0) & TCP_RDM_CONNECTS, 0);
	peer_reply(fd_other, &other, TCP_CM_CONNRESP);
	hello_arrives(node, fd_other, &context);
	peer_close(&peer, fd);
	peer_close(&other, fd_other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(restarted_peer_replaces_its_old_life),
		TEST(incarnation_tells_lives_apart),
		TEST(connection_is_not_stolen),
		TEST(connection_is_not_stolen_by_insisting),
		TEST(insistent_peer_vouches_for_itself),
		TEST(peer_that_cannot_be_asked_is_believed),
		TEST(ended_connection_needs_no_question),
		TEST(request_that_waits_is_accepted_when_the_connection_ends),
		TEST(request_that_was_held_is_repeated),
		TEST(questions_have_a_rate),
		TEST(thief_does_not_keep_the_peer_waiting),
		TEST(answer_is_forgotten),
		TEST(requests_that_wait_have_a_bound),
		TEST(node_answers_questions),
		TEST(insistent_peer_is_believed),
		TEST(insistent_peer_loses_no_message),
		TEST(who_asks_is_told_of_itself),
		TEST(next_send_reconnects),
		TEST(removed_peer_closes_and_comes_again),
		TEST(removed_peer_that_sends_on_is_read_within_a_bound),
		TEST(thief_does_not_make_us_read),
		TEST(message_before_parking_is_nobody_elses),
		TEST(another_run_does_not_resume),
		TEST(answer_about_parking_stays_with_its_stream),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/restart", tests, NULL, NULL);
}
