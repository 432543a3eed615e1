/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that are in no address vector: what they leave without a receive is bounded for all of them together, and
 * nothing of it is lost; and so is their number.
 */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <rdma/fi_tagged.h>
#include "base/clock.h"
#include "base/sock.h"
#include "common/engine/engine.h"
#include "remote.h"
#include "tcp/message/message.h"
#include "tcp/peer/peers.h"
#include "tcp/params/params.h"

#define STRANGERS	8
#define STRANGER_MAX	(256 * 1024)	/* bytes; one gets an eighth */
#define LEN		(30 * 1024)	/* of a message */
#define MESSAGES	3		/* of each: above the limit in all, less than the kernel keeps of one */

static struct {
	struct tcp_hdr hdr;
	uint8_t payload[LEN];
} message;
static uint8_t room[LEN];

static int setup(void **state)
{
	tcp_params.stranger_max = STRANGER_MAX;
	message.hdr = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG,
					 .hdr_size = sizeof(message.hdr), .size = sizeof(message) };
	return node_setup(state);
}

static int teardown(void **state)
{
	tcp_params.stranger_max = TCP_STRANGER_MAX;
	tcp_params.stranger_conn = TCP_STRANGER_CONN;
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

	fab_list_for_each(&rx_ctx(node)->account.waiting, link)
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
	assert_true(tcp_account_strangers(&rx_ctx(node)->account) <= STRANGER_MAX + FAB_STAGING_LEN + 2 * LEN);
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
	assert_int_equal(tcp_account_strangers(&rx_ctx(node)->account), 0);
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
	struct tcp_account_figures figures;
	struct node *node = *state;

	for (int i = 0; i < STRANGERS; i++) {
		struct peer peer = stranger_open();
		int fd = connected(node, &peer, i + 1);

		leave_messages(fd);
		peer_close(&peer, fd);
	}
	drive_until_held(node, STRANGERS - 2);
	check_bound(node);
	tcp_account_read(&rx_ctx(node)->account, &figures);
	assert_int_equal(figures.waiting, held(node));
	assert_in_range(figures.refused[TCP_REFUSED_READS], STRANGERS - 2, 2 * STRANGERS);
	assert_int_equal(figures.held[TCP_STRANGER][TCP_HELD_MESSAGES], tcp_account_strangers(&rx_ctx(node)->account));
	take_all(node, STRANGERS * MESSAGES);
	tcp_account_read(&rx_ctx(node)->account, &figures);
	assert_int_equal(figures.waiting, 0);
	assert_int_equal(figures.held[TCP_STRANGER][TCP_HELD_MESSAGES], 0);
}

static void send_tagged_hello(int fd)
{
	raw_send(fd, &(struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_TAG, .hdr_size = 24,
					 .size = 24 + 5 }, sizeof(struct tcp_hdr));
	raw_send(fd, &(uint64_t) { 7 }, sizeof(uint64_t));
	raw_send(fd, "hello", 5);
}

static void take_tagged_hello(struct node *node)
{
	char buf[5];

	assert_int_equal(fi_trecv(node->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 7, 0, buf), 0);
	assert_ptr_equal(completion(node, NULL), buf);
	assert_memory_equal(buf, "hello", 5);
}

/* Who becomes known is read, whatever strangers have left; and what it left itself counts no more. */
static void who_becomes_known_is_read(void **state)
{
	struct node *node = *state;
	struct peer stranger[STRANGERS], friend = stranger_open();
	int fd[STRANGERS], friend_fd = connected(node, &friend, 99);

	for (int i = 0; i < STRANGERS; i++) {
		stranger[i] = stranger_open();
		fd[i] = connected(node, &stranger[i], i + 1);
		leave_messages(fd[i]);
	}
	drive_until_held(node, STRANGERS);
	send_tagged_hello(friend_fd);
	drive_until_held(node, STRANGERS + 1);
	friend.fi_addr = node_insert(node, &friend.addr);
	take_tagged_hello(node);
	assert_int_equal(held(node), STRANGERS);
	for (int i = 0; i < STRANGERS; i++)
		node_insert(node, &stranger[i].addr);
	assert_int_equal(tcp_account_strangers(&rx_ctx(node)->account), 0);
	take_all(node, STRANGERS * MESSAGES);
	for (int i = 0; i < STRANGERS; i++)
		peer_close(&stranger[i], fd[i]);
	peer_close(&friend, friend_fd);
}

/* One that has used up its own share waits alone. */
static void one_does_not_stop_the_others(void **state)
{
	struct node *node = *state;
	struct peer greedy = stranger_open(), other = stranger_open();
	int greedy_fd = connected(node, &greedy, 1), other_fd = connected(node, &other, 2);

	leave_messages(greedy_fd);
	drive_until_held(node, 1);
	assert_in_range(tcp_account_strangers(&rx_ctx(node)->account), STRANGER_MAX / 8, STRANGER_MAX / 2);
	send_tagged_hello(other_fd);
	take_tagged_hello(node);
	take_all(node, MESSAGES);
	peer_close(&greedy, greedy_fd);
	peer_close(&other, other_fd);
}

/* A header that announces more than its sender's share costs others nothing: the message stays in the socket. */
static void a_long_message_costs_what_is_there(void **state)
{
	struct node *node = *state;
	struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_TAG, .hdr_size = 24, .size = 64 << 20 };
	struct peer greedy = stranger_open(), other = stranger_open();
	int greedy_fd = connected(node, &greedy, 1), other_fd = connected(node, &other, 2);

	raw_send(greedy_fd, &hdr, sizeof(hdr));
	raw_send(greedy_fd, &(uint64_t) { 8 }, sizeof(uint64_t));
	while (!tcp_account_strangers(&rx_ctx(node)->account))
		drive(node);
	assert_in_range(tcp_account_strangers(&rx_ctx(node)->account), 1, 1024);
	send_tagged_hello(other_fd);
	take_tagged_hello(node);
	peer_close(&greedy, greedy_fd);
	peer_close(&other, other_fd);
}

/* Who is in the middle of a frame when the limit is reached has that one read, and no other. */
static void a_frame_that_has_begun_is_read_alone(void **state)
{
	enum { GREEDY = 4, FRAMES = 1000 };
	static struct tcp_hdr frames[FRAMES];
	struct node *node = *state;
	struct peer peer[STRANGERS], greedy[GREEDY];
	int fd[STRANGERS], greedy_fd[GREEDY];
	uint64_t before;
	unsigned held_before;

	for (int i = 0; i < FRAMES; i++)
		frames[i] = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG,
					       .hdr_size = sizeof(*frames), .size = sizeof(*frames) };
	for (int i = 0; i < GREEDY; i++) {
		greedy[i] = stranger_open();
		greedy_fd[i] = connected(node, &greedy[i], 100 + i);
		raw_send(greedy_fd[i], frames, 8);
	}
	for (int i = 0; i < STRANGERS; i++) {
		peer[i] = stranger_open();
		fd[i] = connected(node, &peer[i], i + 1);
		leave_messages(fd[i]);
	}
	drive_until_held(node, STRANGERS - 2);
	for (int i = 0; i < 100; i++)
		drive(node);
	before = tcp_account_strangers(&rx_ctx(node)->account);
	held_before = held(node);
	for (int i = 0; i < GREEDY; i++)
		raw_send(greedy_fd[i], (char *) frames + 8, sizeof(frames) - 8);
	drive_until_held(node, held_before + GREEDY);
	assert_in_range(tcp_account_strangers(&rx_ctx(node)->account), before,
			before + GREEDY * sizeof(struct tcp_unexp));
	for (int i = 0; i < GREEDY; i++)
		peer_close(&greedy[i], greedy_fd[i]);
	for (int i = 0; i < STRANGERS; i++)
		peer_close(&peer[i], fd[i]);
}

/* Empty messages are charged at what they cost here, also those of a peer that the application knows. */
static void messages_have_their_real_cost(void **state)
{
	enum { CNT = 100 };
	struct node *node = *state;
	const struct tcp_account *account = &rx_ctx(node)->account;
	struct tcp_hdr hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(hdr),
			       .size = sizeof(hdr) };
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	char byte;

	for (int i = 0; i < CNT; i++)
		raw_send(fd, &hdr, sizeof(hdr));
	while (rx_ctx(node)->recv.queue[FAB_CLASS_MSG].unexp_cnt < CNT)
		drive(node);
	assert_int_equal(account->len[TCP_KNOWN][TCP_HELD_MESSAGES], CNT * sizeof(struct tcp_unexp));
	assert_int_equal(tcp_account_strangers(account), 0);
	for (int i = 0; i < CNT; i++) {
		assert_int_equal(fi_recv(node->ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &byte), 0);
		completion(node, NULL);
	}
	assert_int_equal(account->len[TCP_KNOWN][TCP_HELD_MESSAGES], 0);
	peer_close(&peer, fd);
}

/* ---- how many ---- */

#define CONN_MAX	4

static uint32_t stranger_cnt(const struct node *node)
{
	return fab_container(node->ep, struct tcp_ep, base.ep_fid)->rdm.peers->stranger_cnt;
}

/* Has the node closed, or said that it will send no more? */
static bool has_ended(int fd)
{
	char byte;

	return !recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

/* Let the time pass that idle ones are given, until there is room. */
static void drive_until_fewer(struct node *node, const int *fd, int cnt)
{
	for (int n = 0; stranger_cnt(node) >= (uint32_t) tcp_params.stranger_conn && n < 10000; n++) {
		drive(node);
		test_added_ns += 10 * MS;
		for (int i = 0; i < cnt; i++) {
			if (has_ended(fd[i]))
				shutdown(fd[i], SHUT_WR);
		}
	}
	assert_true(stranger_cnt(node) < (uint32_t) tcp_params.stranger_conn);
}

/* No more of them may be connected than the limit says; those that are idle go for those that come, and nobody goes, or
 * waits, whom the application knows. */
static void their_number_is_bounded(void **state)
{
	struct node *node = *state;
	struct peer peer[CONN_MAX], late = stranger_open(), friend = stranger_open();
	int fd[CONN_MAX], late_fd, friend_fd;

	tcp_params.stranger_conn = CONN_MAX;
	for (int i = 0; i < CONN_MAX; i++) {
		peer[i] = stranger_open();
		fd[i] = connected(node, &peer[i], i + 1);
	}
	assert_int_equal(stranger_cnt(node), CONN_MAX);
	late_fd = peer_connect(node, &late, 9);
	assert_int_equal(answer(node, late_fd), TCP_CM_NACK);
	close(late_fd);
	friend.fi_addr = node_insert(node, &friend.addr);
	friend_fd = connected(node, &friend, 8);
	drive_until_fewer(node, fd, CONN_MAX);
	late_fd = connected(node, &late, 9);
	assert_false(has_ended(friend_fd));
	for (int i = 0; i < CONN_MAX; i++)
		peer_close(&peer[i], fd[i]);
	peer_close(&late, late_fd);
	peer_close(&friend, friend_fd);
}

/* Who is busy does not go: a message of which half is here. Who becomes known counts no more. */
static void those_that_are_busy_stay(void **state)
{
	struct node *node = *state;
	struct peer peer[CONN_MAX], late = stranger_open();
	int fd[CONN_MAX], late_fd;

	tcp_params.stranger_conn = CONN_MAX;
	for (int i = 0; i < CONN_MAX; i++) {
		peer[i] = stranger_open();
		fd[i] = connected(node, &peer[i], i + 1);
		raw_send(fd[i], &message, sizeof(message) / 2);
	}
	for (int i = 0; i < 200; i++) {
		drive(node);
		test_added_ns += 20 * MS;
	}
	late_fd = peer_connect(node, &late, 9);
	assert_int_equal(answer(node, late_fd), TCP_CM_NACK);
	assert_int_equal(rx_ctx(node)->account.refused[TCP_REFUSED_REQUEST], 1);
	close(late_fd);
	for (int i = 0; i < CONN_MAX; i++)
		assert_false(has_ended(fd[i]));
	node_insert(node, &peer[0].addr);
	assert_int_equal(stranger_cnt(node), CONN_MAX - 1);
	late_fd = connected(node, &late, 9);
	for (int i = 0; i < CONN_MAX; i++)
		peer_close(&peer[i], fd[i]);
	peer_close(&late, late_fd);
}

/* ---- descriptors ---- */

enum { FILES = 32, FILES_OF_STRANGERS = FILES / 8 * 5 };

static rlim_t files;			/* the limit on open files, as the library sees it; 0: the real one */

/* Stands before libc's. */
int getrlimit(__rlimit_resource_t resource, struct rlimit *lim)
{
	if (syscall(SYS_prlimit64, 0, resource, NULL, lim))
		return -1;
	if (files && resource == RLIMIT_NOFILE)
		lim->rlim_cur = files;
	return 0;
}

static int teardown_files(void **state)
{
	files = 0;
	return teardown(state);
}

/* Strangers that have each left half a message do not take all descriptors: the next one waits, and a peer that the
 * application knows does not. They are not kept for long either. */
static void descriptors_are_left(void **state)
{
	struct node *node = *state;
	struct peer peer[FILES_OF_STRANGERS], late = stranger_open(), friend = stranger_open();
	int fd[FILES_OF_STRANGERS], late_fd, friend_fd, waited_ms = 0;

	files = FILES;
	for (int i = 0; i < FILES_OF_STRANGERS; i++) {
		peer[i] = stranger_open();
		fd[i] = connected(node, &peer[i], i + 1);
		raw_send(fd[i], &message, 100);
	}
	late_fd = peer_connect(node, &late, 99);
	assert_int_equal(answer(node, late_fd), TCP_CM_NACK);
	close(late_fd);
	friend.fi_addr = node_insert(node, &friend.addr);
	friend_fd = connected(node, &friend, 98);
	for (; stranger_cnt(node) > FILES_OF_STRANGERS - 2; waited_ms += 20) {
		drive(node);
		test_added_ns += 20 * MS;
		assert_true(waited_ms < 20000);
	}
	assert_true(waited_ms > 5000);
	late_fd = connected(node, &late, 99);
	assert_false(has_ended(friend_fd));
	for (int i = 0; i < FILES_OF_STRANGERS; i++)
		peer_close(&peer[i], fd[i]);
	peer_close(&late, late_fd);
	peer_close(&friend, friend_fd);
}

/* Connect as a stranger of ours, who knows parking. */
static int connected_ours(struct node *node, const struct peer *peer)
{
	struct cm_bytes request = raw_rdm_cm(TCP_CM_CONNREQ, ntohs(peer->addr.sin_port), 1);
	int fd = raw_connect(&node->addr);

	request.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_PARK);
	request.hdr.incarnation = htobe64(77);
	request.hdr.eager_max = request.hdr.credit = htobe32(1 << 20);
	raw_send(fd, &request, raw_len(&request));
	assert_int_equal(answer(node, fd), TCP_CM_CONNRESP);
	return fd;
}

static void expect_park(struct node *node, int fd)
{
	struct tcp_hdr asked;

	raw_recv(fd, &asked, sizeof(asked), drive, node);
	assert_int_equal(asked.op, TCP_WIRE_PARK);
}

/* A stranger that has never sent anything, and does not answer, is left after a second. */
static void those_that_have_sent_nothing_go_first(void **state)
{
	struct node *node = *state;
	struct peer peer[FILES_OF_STRANGERS];
	int fd[FILES_OF_STRANGERS], waited_ms = 0;

	files = FILES;
	for (int i = 0; i < FILES_OF_STRANGERS; i++) {
		peer[i] = stranger_open();
		fd[i] = connected_ours(node, &peer[i]);
	}
	for (; stranger_cnt(node) == FILES_OF_STRANGERS; waited_ms += 10) {
		drive(node);
		test_added_ns += 10 * MS;
		for (int i = 0; i < FILES_OF_STRANGERS; i++) {
			if (fd[i] >= 0 && has_ended(fd[i]))
				fab_sock_close(&fd[i]);
		}
		assert_true(waited_ms < 5000);
	}
	for (int i = 0; i < FILES_OF_STRANGERS; i++) {
		fab_sock_close(&fd[i]);
		close(peer[i].listener);
	}
}

/* Who asks many times without waiting for the answer gets one that parks, and the rest are refused together. */
static void asking_again_parks_nothing(void **state)
{
	enum { ASKED = 100 };
	struct node *node = *state;
	struct peer peer = stranger_open();
	int fd = connected_ours(node, &peer), yes = 0, answers = 0;
	struct tcp_hdr park[ASKED], said;

	for (int i = 0; i < ASKED; i++)
		park[i] = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_PARK,
					     .hdr_size = sizeof(*park), .size = sizeof(*park) };
	raw_send(fd, park, sizeof(park));
	while (answers < ASKED) {
		raw_recv(fd, &said, sizeof(said), drive, node);
		yes += said.op == TCP_WIRE_PARK_YES;
		answers += said.op == TCP_WIRE_PARK_YES || said.op == TCP_WIRE_PARK_NO;
	}
	assert_int_equal(yes, 1);
	peer_close(&peer, fd);
}

/* A stranger of ours is asked to park, and nothing of it stays behind. */
static void parked_ones_are_forgotten(void **state)
{
	struct node *node = *state;
	struct tcp_hdr park = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_PARK_YES, .hdr_size = sizeof(park),
				.size = sizeof(park) };
	struct peer peer = stranger_open();
	int fd;

	tcp_params.stranger_conn = 1;
	fd = connected_ours(node, &peer);
	expect_park(node, fd);
	raw_send(fd, &park, sizeof(park));
	assert_true(raw_recv_end(fd, drive, node));
	assert_int_equal(stranger_cnt(node), 0);
	peer_close(&peer, fd);
}

/* It is asked, and does not answer: it is left, after the time for a request if it has never said anything, and else
 * after that for a peer without progress; nobody else has to wait for it. */
static void those_that_do_not_answer_are_left(void **state)
{
	struct node *node = *state;
	int wait_ms[] = { tcp_params.connect_timeout_ms, tcp_params.reply_timeout_ms };
	struct peer peer, next;
	char buf[5];
	int fd, next_fd;

	tcp_params.stranger_conn = 1;
	for (int said = 0; said < 2; said++) {
		peer = stranger_open(), next = stranger_open();
		fd = connected_ours(node, &peer);
		if (said)
			assert_int_equal(recv_from(node, fd, buf), FI_ADDR_NOTAVAIL);
		expect_park(node, fd);
		test_added_ns += (wait_ms[said] - 10000) * MS;
		for (int i = 0; i < 100; i++)
			drive(node);
		assert_false(has_ended(fd));
		assert_int_equal(stranger_cnt(node), 1);
		test_added_ns += 20000 * MS;
		assert_true(raw_recv_end(fd, drive, node));
		close(fd);
		close(peer.listener);
		drive_until_fewer(node, NULL, 0);
		assert_int_equal(stranger_cnt(node), 0);
		next_fd = connected(node, &next, 9);
		shutdown(next_fd, SHUT_WR);
		assert_true(raw_recv_end(next_fd, drive, node));
		peer_close(&next, next_fd);
	}
}

/* ---- the page of the process ---- */

enum { PAGE_STRANGERS = FAB_STATS_STRANGERS + 2 };

static struct fi_stats_ep *page_record(const struct node *node)
{
	return fab_container(node->ep, struct tcp_ep, base.ep_fid)->base.stats;
}

/* Connections of strangers, or of others, that have a record of their own. */
static int have_records(const struct node *node, bool strangers)
{
	const struct tcp_ep *ep = fab_container(node->ep, struct tcp_ep, base.ep_fid);
	struct fab_list *link;
	int cnt = 0;

	fab_list_for_each(&ep->rdm.peers->lives, link) {
		const struct tcp_life *life = fab_container(link, struct tcp_life, link);

		cnt += (life->conn.fi_addr == FI_ADDR_NOTAVAIL) == strangers &&
		       life->conn.stats != &ep->base.stats->rest;
	}
	return cnt;
}

/* Strangers share a record where there are many, and one that becomes known gets its own. */
static void they_have_few_records(void **state)
{
	struct node *node = *state;
	struct peer peer[PAGE_STRANGERS];
	int fd[PAGE_STRANGERS];

	for (int i = 0; i < PAGE_STRANGERS; i++) {
		peer[i] = stranger_open();
		fd[i] = connected(node, &peer[i], i + 1);
	}
	assert_int_equal(stranger_cnt(node), PAGE_STRANGERS);
	assert_int_equal(have_records(node, true), FAB_STATS_STRANGERS);
	for (int i = 0; i < PAGE_STRANGERS; i++)
		node_insert(node, &peer[i].addr);
	assert_int_equal(have_records(node, false), PAGE_STRANGERS);
	for (int i = 0; i < PAGE_STRANGERS; i++)
		peer_close(&peer[i], fd[i]);
}

/* Where all records are those of known peers that have gone, a stranger gets none, and a known peer the oldest. */
static void they_take_no_record_of_others(void **state)
{
	struct node *node = *state;
	struct sockaddr_in gone = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct peer stranger = stranger_open(), friend = stranger_open();
	int stranger_fd, friend_fd;

	for (int i = 0; i < FI_STATS_PEER_CNT; i++) {
		gone.sin_port = htons((uint16_t) (i + 1));
		fab_stats_peer_mention(page_record(node), (struct sockaddr *) &gone, i);
	}
	stranger_fd = connected(node, &stranger, 1);
	assert_int_equal(have_records(node, true), 0);
	friend.fi_addr = node_insert(node, &friend.addr);
	friend_fd = connected(node, &friend, 2);
	assert_int_equal(have_records(node, false), 1);
	peer_close(&stranger, stranger_fd);
	peer_close(&friend, friend_fd);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(together_they_are_bounded),
		TEST(those_that_have_gone_count_too),
		TEST(who_becomes_known_is_read),
		TEST(one_does_not_stop_the_others),
		TEST(a_long_message_costs_what_is_there),
		TEST(a_frame_that_has_begun_is_read_alone),
		TEST(messages_have_their_real_cost),
		TEST(their_number_is_bounded),
		TEST(those_that_are_busy_stay),
		TEST(they_have_few_records),
		TEST(they_take_no_record_of_others),
		cmocka_unit_test_setup_teardown(descriptors_are_left, setup, teardown_files),
		cmocka_unit_test_setup_teardown(those_that_have_sent_nothing_go_first, setup, teardown_files),
		TEST(asking_again_parks_nothing),
		TEST(parked_ones_are_forgotten),
		TEST(those_that_do_not_answer_are_left),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/stranger", tests, NULL, NULL);
}
