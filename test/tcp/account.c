/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The account of what is held for peers (prov/tcp/account): its sums by class; and answers that a peer does not
 * read, and the time that its requests take. Messages of strangers: stranger.c.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/own_clock.h"
#include "remote.h"
#include "tcp/message/message.h"
#include "tcp/params/params.h"
#include "tcp/peer/peers.h"

/* ---- sums ---- */

static void a_peer_moves_with_all_that_is_held_for_it(void **state)
{
	struct tcp_account account;
	struct tcp_holding a, b;

	(void) state;
	tcp_account_init(&account);
	tcp_holding_init(&a);
	tcp_holding_init(&b);
	tcp_account_charge(&account, &a, TCP_HELD_MESSAGES, 100);
	tcp_account_charge(&account, &a, TCP_HELD_ANNOUNCED, 10);
	tcp_account_charge(&account, &b, TCP_HELD_MESSAGES, 1);
	assert_int_equal(tcp_account_strangers(&account), 111);
	tcp_account_reclass(&account, &a, TCP_KNOWN);
	assert_int_equal(tcp_account_strangers(&account), 1);
	assert_int_equal(account.len[TCP_KNOWN][TCP_HELD_MESSAGES], 100);
	assert_int_equal(account.len[TCP_KNOWN][TCP_HELD_ANNOUNCED], 10);
	tcp_account_reclass(&account, &a, TCP_STRANGER);
	assert_int_equal(tcp_account_strangers(&account), 111);
	tcp_account_leave(&a, TCP_HELD_MESSAGES, 100);
	assert_int_equal(tcp_account_strangers(&account), 111);
	tcp_account_move_left(&account, TCP_STRANGER, TCP_PROVED, TCP_HELD_MESSAGES, 100);
	tcp_account_give_left(&account, TCP_PROVED, TCP_HELD_MESSAGES, 100);
	tcp_account_give(&account, &a, TCP_HELD_ANNOUNCED, 10);
	tcp_account_give(&account, &b, TCP_HELD_MESSAGES, 1);
	tcp_account_fini(&account);
}

/* ---- answers ---- */

#define READS		20000
#define CHUNK		500
#define STRANGER_MAX	(1024 * 1024)	/* bytes; a quarter for answers */
#define LITTLE		4096		/* bytes of a socket's room */
#define MUCH		(1024 * 1024)

static struct {
	struct tcp_hdr hdr;
	struct tcp_rma_iov rma;
} refused_read[CHUNK];

struct answer {
	struct tcp_hdr hdr;
	struct tcp_read_err err;
};

static int setup(void **state)
{
	for (int i = 0; i < CHUNK; i++) {
		refused_read[i].hdr = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_READ_REQ,
							 .rma_iov_cnt = 1, .hdr_size = sizeof(*refused_read),
							 .size = sizeof(*refused_read) };
		refused_read[i].rma = (struct tcp_rma_iov) { .len = 8, .key = 0xdead };
	}
	return node_setup(state);
}

static int teardown(void **state)
{
	tcp_params.stranger_max = TCP_STRANGER_MAX;
	return node_teardown(state);
}

static struct tcp_ep *node_tcp_ep(const struct node *node)
{
	return fab_container(node->ep, struct tcp_ep, base.ep_fid);
}

static const struct tcp_account *account_of(const struct node *node)
{
	return &node_tcp_ep(node)->rx->account;
}

/* The connection that was made last. */
static struct tcp_conn *last_conn(const struct node *node)
{
	return &fab_list_last(&node_tcp_ep(node)->rdm.peers->lives, struct tcp_life, link)->conn;
}

/* The room that the kernel has for what the node sends. */
static void set_room(int fd, const struct tcp_conn *conn, int len)
{
	assert_return_code(setsockopt(conn->src.fd, SOL_SOCKET, SO_SNDBUF, &len, sizeof(len)), 0);
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &len, sizeof(len)), 0);
}

/* A peer of ours that reads nothing of what the node sends: the kernel has little room for it. */
static int mute_peer(struct node *node, const struct peer *peer, struct tcp_conn **conn)
{
	const struct tcp_hello hello = { .incarnation = 77, .eager_max = 1 << 18, .credit = 1 << 19 };
	int fd = connected_ext(node, peer, &hello);

	*conn = last_conn(node);
	set_room(fd, *conn, LITTLE);
	return fd;
}

/* False: the connection has ended, and conn may have been freed. */
static bool is_up(const struct node *node, const struct tcp_conn *conn)
{
	struct fab_list *link;

	fab_list_for_each(&node_tcp_ep(node)->rdm.peers->lives, link) {
		if (&fab_container(link, struct tcp_life, link)->conn == conn)
			return conn->state == TCP_CONN_UP;
	}
	return false;
}

static uint32_t answered(const struct tcp_conn *conn)
{
	return conn->tx.cnt + conn->tx.control_cnt;
}

/* True while the node has not read all that was sent to conn over fd. */
static bool is_unread(int fd, const struct tcp_conn *conn)
{
	int unsent, arrived;

	assert_return_code(ioctl(fd, SIOCOUTQNSD, &unsent), 0);
	assert_return_code(ioctl(conn->src.fd, FIONREAD, &arrived), 0);
	return unsent || arrived;
}

/* Ask for cnt reads that are refused. How many of the answers wait here is for the kernel to say, which takes some. */
static void ask(struct node *node, int fd, const struct tcp_conn *conn, uint32_t cnt)
{
	for (uint32_t done = 0; done < cnt && is_up(node, conn); done += CHUNK) {
		uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

		raw_send(fd, refused_read, sizeof(refused_read));
		while (is_up(node, conn) && is_unread(fd, conn) && fab_now_ms() < end_ms)
			drive(node);
	}
}

/* Answers that nobody reads share entries of the queue: 24 bytes cost little more. All of them arrive, in order, and
 * then their memory is given back. */
static void unread_answers_are_packed(void **state)
{
	struct node *node = *state;
	const uint64_t *held = &account_of(node)->len[TCP_KNOWN][TCP_HELD_ANSWERS];
	struct peer peer = peer_open(node);
	struct tcp_conn *conn;
	int fd = mute_peer(node, &peer, &conn);
	static struct answer answer[CHUNK];

	ask(node, fd, conn, READS);
	assert_in_range(*held, READS / 2 * sizeof(*answer), READS * 32);
	assert_int_equal(conn->holding.len[TCP_HELD_ANSWERS], *held);
	set_room(fd, conn, MUCH);	/* or each few of them would wait for a delayed acknowledgement */
	for (uint32_t i = 0; i < READS; i++) {
		const struct tcp_hdr *hdr = &answer[i % CHUNK].hdr;

		if (!(i % CHUNK))
			raw_recv(fd, answer, sizeof(answer), drive, node);
		assert_int_equal(hdr->op, TCP_WIRE_READ_ERR);
		assert_int_equal(hdr->id, (uint8_t) i);
		assert_int_equal(hdr->size, sizeof(*answer));
	}
	assert_int_equal(*held, 0);
	assert_int_equal(conn->tx.control_cnt, 0);
	assert_int_equal(conn->tx.len, 0);
	peer_close(&peer, fd);
}

/* The connection of a stranger that reads no answers ends at the share of all strangers; that of a peer that the
 * application knows, which owes as much, does not; and others are served. */
static void strangers_get_a_share_of_answers(void **state)
{
	struct node *node = *state;
	struct tcp_account_figures figures;
	struct peer friend = peer_open(node), stranger = { .fi_addr = FI_ADDR_NOTAVAIL };
	struct tcp_conn *conn, *friend_conn;
	int friend_fd = mute_peer(node, &friend, &friend_conn), fd;
	uint64_t most = 0;
	char buf[5];

	tcp_params.stranger_max = STRANGER_MAX;
	ask(node, friend_fd, friend_conn, READS);
	assert_int_equal(friend_conn->state, TCP_CONN_UP);
	stranger.listener = raw_listen(&stranger.addr, 1);
	fd = mute_peer(node, &stranger, &conn);
	for (int i = 0; i < READS / CHUNK && is_up(node, conn); i++) {
		ask(node, fd, conn, CHUNK);
		tcp_account_read(account_of(node), &figures);
		most = fab_max(most, figures.held[TCP_STRANGER][TCP_HELD_ANSWERS]);
		assert_int_equal(figures.descriptors[TCP_FD_STREAM], is_up(node, conn) ? 2 : 1);
	}
	assert_in_range(most, TCP_ANSWERS_MIN, STRANGER_MAX / 4 + CHUNK * sizeof(struct tcp_tx));
	while (account_of(node)->len[TCP_STRANGER][TCP_HELD_ANSWERS])	/* it is given back in pieces */
		drive(node);
	assert_int_equal(figures.held[TCP_KNOWN][TCP_HELD_ANSWERS], friend_conn->holding.len[TCP_HELD_ANSWERS]);
	assert_int_equal(figures.refused[TCP_REFUSED_ANSWERS], 1);
	assert_int_equal(friend_conn->state, TCP_CONN_UP);
	assert_int_equal(recv_from(node, friend_fd, buf), friend.fi_addr);
	peer_close(&stranger, fd);
	peer_close(&friend, friend_fd);
}

#define OWED		5000		/* answers of a connection that ends */
#define TICK_NS		10000		/* by which the clock goes on whenever it is read */
#define PIECE		128		/* answers that are freed in a look, by this clock */

/* A connection ends that is owed thousands of answers to reads, between which there are messages: these fail at once,
 * and the answers are freed in pieces. */
static void what_is_owed_at_the_end_is_freed_in_pieces(void **state)
{
	struct node *node = *state;
	const struct fab_pool *pool = &node_tcp_ep(node)->tx->pool;
	struct peer peer = peer_open(node);
	struct tcp_conn *conn;
	int fd = mute_peer(node, &peer, &conn);
	static char mem[8];
	struct fid_mr *mr;
	size_t before;

	assert_int_equal(fi_mr_reg(node->domain, mem, sizeof(mem), FI_REMOTE_READ, 0, 0xdead, 0, &mr, NULL), 0);
	ask(node, fd, conn, OWED / 2);
	for (int i = 0; i < 2; i++) {
		send_hello(node, peer.fi_addr, &mem[i]);
		ask(node, fd, conn, OWED / 2);
	}
	assert_true(pool->out_cnt > OWED);
	own_clock_step(TICK_NS);
	close(fd);
	while (is_up(node, conn))
		drive(node);
	before = pool->out_cnt;
	assert_true(before > OWED / 2);
	for (int i = 0; i < 2; i++)
		expect_error(node, &mem[i], FI_ECONNRESET, NULL);
	assert_true(account_of(node)->len[TCP_KNOWN][TCP_HELD_ANSWERS] > 0);
	while (pool->out_cnt) {
		before = pool->out_cnt;
		drive(node);
		assert_in_range(before - pool->out_cnt, 1, PIECE);
	}
	assert_int_equal(account_of(node)->len[TCP_KNOWN][TCP_HELD_ANSWERS], 0);
	assert_int_equal(pool->made_cnt, 0);
	own_clock_off();
	assert_int_equal(fi_close(&mr->fid), 0);
	close(peer.listener);
}

/* The endpoint closes before all of it was freed. */
static void what_is_owed_is_freed_with_the_endpoint(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	struct tcp_conn *conn;
	int fd = mute_peer(node, &peer, &conn);

	ask(node, fd, conn, OWED);
	own_clock_step(TICK_NS);
	close(fd);
	while (is_up(node, conn))
		drive(node);
	assert_true(account_of(node)->len[TCP_KNOWN][TCP_HELD_ANSWERS] > 0);
	own_clock_off();
	close(peer.listener);
}

/* ---- time ---- */

#define COST_NS		1000		/* of a request, by this clock, which stands still otherwise */
#define SHARE_NS	15000
#define LOOKS		60
#define LOOK_NS		20000		/* from one look to the next, of many */
#define MANY_LOOKS	300
#define QUIET_NS	2000000		/* without data of others, a peer is alone */

#define UNREAD		(12 * CHUNK)	/* with which it waits like a stranger */

static const struct tcp_conn *costly;
static uint64_t begin_ns;
static size_t poured;			/* bytes of refused_read */

static uint64_t costs_ns(void)
{
	return begin_ns + COST_NS * answered(costly);
}

/* As many requests as the socket takes. */
static void pour(int fd)
{
	ssize_t n;

	while ((n = send(fd, (char *) refused_read + poured, sizeof(refused_read) - poured, MSG_DONTWAIT)) > 0)
		poured = (poured + n) % sizeof(refused_read);
	assert_int_equal(errno, EAGAIN);
}

#define OFTEN		8
#define OWED_MUCH	20000

/* Ask for cnt reads that are refused, and no more, with few passes: what has arrived is read after the end, too. */
static void ask_at_once(struct node *node, int fd, const struct tcp_conn *conn, uint32_t cnt)
{
	size_t all = cnt * sizeof(*refused_read), sent = 0, at;
	ssize_t n;

	do {
		at = sent % sizeof(refused_read);
		n = send(fd, (char *) refused_read + at, fab_min(all - sent, sizeof(refused_read) - at), MSG_DONTWAIT);
		sent += n > 0 ? (size_t) n : 0;
		if (n <= 0 || sent == all)
			drive(node);
	} while (sent < all || is_unread(fd, conn));
}

/* A peer connects, is owed thousands of answers and closes, again and again: what it has left is freed before it has
 * left as much anew, however few passes there are. */
static void who_comes_again_does_not_leave_more(void **state)
{
	struct node *node = *state;
	const struct fab_pool *pool = &node_tcp_ep(node)->tx->pool;
	struct peer peer = peer_open(node);
	static char mem[8];
	struct fid_mr *mr;
	size_t most = 0;

	assert_int_equal(fi_mr_reg(node->domain, mem, sizeof(mem), FI_REMOTE_READ, 0, 0xdead, 0, &mr, NULL), 0);
	own_clock_step(TICK_NS);
	for (int i = 0; i < OFTEN; i++) {
		struct tcp_conn *conn;
		int fd = mute_peer(node, &peer, &conn);

		ask_at_once(node, fd, conn, OWED_MUCH);
		most = fab_max(most, pool->out_cnt);
		close(fd);
		while (is_up(node, conn))
			drive(node);
	}
	own_clock_off();
	print_message("# %zu answers at most\n", most);
	assert_in_range(most, OWED_MUCH / 2, 2 * OWED_MUCH);
	assert_int_equal(fi_close(&mr->fid), 0);
	close(peer.listener);
}

static void begin_costs(const struct tcp_conn *conn)
{
	costly = conn;
	poured = 0;
	begin_ns = fab_now_ns() - COST_NS * answered(conn);
	own_clock_on(costs_ns);
}

/* Until what was sent to this end is there: on a busy machine the kernel may take its time. */
static void await_data(const struct tcp_conn *conn)
{
	struct pollfd fd = { .fd = conn->src.fd, .events = POLLIN };

	assert_int_equal(poll(&fd, 1, 10000), 1);
}

/* The i-th look of some. *most: the most requests of the costly peer that one of their second half has handled. */
static void look(struct node *node, int i, uint32_t *most)
{
	uint32_t before = answered(costly);

	drive(node);
	if (i >= LOOKS / 2)
		*most = fab_max(*most, answered(costly) - before);
}

/* The most requests that are handled in one look. In each the other peer has one, if there is one. */
static uint32_t most_of_a_look(struct node *node, int fd, int other, const struct tcp_conn *other_conn)
{
	uint32_t most = 0;

	for (int i = 0; i < LOOKS; i++) {
		pour(fd);
		if (other_conn) {
			raw_send(other, refused_read, sizeof(*refused_read));
			await_data(other_conn);
		} else {
			begin_ns += QUIET_NS;
		}
		look(node, i, &most);
	}
	return most;
}

/* A known peer that always has costly requests gets as many of them handled in a pass as take a share of it; when it is
 * alone, as many as it likes: a long turn, since it reads no answers. */
static void costly_requests_share_a_pass(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node), other = peer_open(node);
	struct tcp_conn *conn, *other_conn;
	int fd_other = mute_peer(node, &other, &other_conn), fd = mute_peer(node, &peer, &conn);
	uint32_t beside, alone;

	begin_costs(conn);
	beside = most_of_a_look(node, fd, fd_other, other_conn);
	alone = most_of_a_look(node, fd, -1, NULL);
	own_clock_off();
	print_message("# %u requests in a look beside another peer, %u alone\n", beside, alone);
	assert_in_range(beside, 1, 2 * SHARE_NS / COST_NS);	/* a pass reads it twice when it asks epoll, too */
	assert_in_range(alone, 100, UINT32_MAX);
	assert_true(is_up(node, conn));
	peer_close(&peer, fd);
	peer_close(&other, fd_other);
}

/* Read what the node sends, until the peer has its own share again. */
static void drain(struct node *node, int fd, const struct tcp_conn *conn)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;
	char buf[4096];

	while (conn->src.outsider && fab_now_ms() < end_ms) {
		while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
			continue;
		drive(node);
	}
}

/* In many looks, less was done for it than it could have asked for. */
static void check_it_waited(const struct tcp_conn *conn, uint32_t before)
{
	own_clock_off();
	print_message("# %u requests in %u looks\n", answered(conn) - before, MANY_LOOKS);
	assert_in_range(answered(conn) - before, 1, 2 * MANY_LOOKS * LOOK_NS / COST_NS / 3);
	assert_true(conn->src.outsider);
}

/* A known peer that has left many answers unread has an eighth of the time beside others, until it has read them. */
static void who_reads_no_answers_waits_like_a_stranger(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node), other = peer_open(node);
	struct tcp_conn *conn, *other_conn;
	int fd_other = mute_peer(node, &other, &other_conn), fd = mute_peer(node, &peer, &conn);
	uint32_t before;

	ask(node, fd, conn, UNREAD);
	before = answered(conn);
	begin_costs(conn);
	for (int i = 0; i < MANY_LOOKS; i++) {
		pour(fd);
		raw_send(fd_other, refused_read, sizeof(*refused_read));
		await_data(other_conn);
		drive(node);
		begin_ns += LOOK_NS;
	}
	check_it_waited(conn, before);
	drain(node, fd, conn);
	assert_false(conn->src.outsider);
	peer_close(&peer, fd);
	peer_close(&other, fd_other);
}

/* A stranger that has left many answers unread is inserted: it is known now, and waits until it has read them. */
static void insertion_changes_nothing_for_who_reads_no_answers(void **state)
{
	struct node *node = *state;
	struct peer peer = { .listener = raw_listen(&peer.addr, 1) };
	struct tcp_conn *conn;
	int fd = mute_peer(node, &peer, &conn), segment = 65536;

	/* where a segment does not fit, the kernel drops it, and what it acknowledges is sent again for minutes */
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &segment, sizeof(segment)), 0);
	assert_int_equal(conn->holding.class, TCP_STRANGER);
	ask(node, fd, conn, 4 * UNREAD);
	node_insert(node, &peer.addr);
	assert_int_equal(conn->holding.class, TCP_KNOWN);
	assert_true(conn->src.outsider);
	drain(node, fd, conn);
	assert_false(conn->src.outsider);
	peer_close(&peer, fd);
}

/* ---- the same over rings ---- */

/* A peer of this process over rings, which nobody drives: the test writes into its ring, and reads nothing. */
struct ring_peer {
	struct node node;
	struct tcp_conn *conn;		/* its end */
	struct tcp_conn *there;		/* the end of the node under test */
	size_t poured;			/* bytes of refused_read */
};

static void ring_peer_open(struct ring_peer *peer, struct node *node)
{
	fi_addr_t to;

	*peer = (struct ring_peer) { 0 };
	test_random += 2;		/* for an incarnation of its own, which is odd */
	node_open(&peer->node, FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE, FI_THREAD_UNSPEC);
	node_insert(node, &peer->node.addr);
	to = node_insert(&peer->node, &node->addr);
	send_hello(&peer->node, to, peer);
	while (!(peer->conn = node_conn(&peer->node, to)) || !tcp_tx_all_done(peer->conn)) {
		drive(&peer->node);
		drive(node);
	}
	assert_non_null(peer->conn->io->pull);
	peer->there = last_conn(node);
	assert_non_null(peer->there->io->pull);
}

static void ring_peers_open(struct ring_peer peers[2], struct node *node)
{
	ring_peer_open(&peers[1], node);
	ring_peer_open(&peers[0], node);
}

/* As many requests as the ring takes, in records of so many bytes at most. waits: the peer has more, and waits for room
 * as a writer does. */
static void ring_pour(struct ring_peer *peer, size_t record, bool waits)
{
	const struct tcp_io *io = peer->conn->io;
	ssize_t n;

	do {
		n = io->send(peer->conn, (char *) refused_read + peer->poured,
			     fab_min(record, sizeof(refused_read) - peer->poured));
		if (n > 0)
			peer->poured = (peer->poured + n) % sizeof(refused_read);
	} while (n > 0 || (waits && io->want_room(peer->conn)));
	assert_int_equal(n, -EAGAIN);
}

/* One request, or the rest of the one of which a part was sent. */
static void ring_ask_once(struct ring_peer *peer)
{
	size_t len = sizeof(*refused_read) - peer->poured % sizeof(*refused_read);

	assert_int_equal(peer->conn->io->send(peer->conn, (char *) refused_read + peer->poured, len), len);
	peer->poured = (peer->poured + len) % sizeof(refused_read);
}

/* Read what the node has written. */
static void ring_drain(struct ring_peer *peer)
{
	struct tcp_ring_reader *in = &peer->conn->local->pair->in;
	uint32_t len;

	while (tcp_ring_peek(in, &len))
		tcp_ring_take(in, len);
	tcp_ring_tell(in);
}

static void ring_peers_close(struct ring_peer *peers, struct node *node)
{
	for (int i = 0; i < 2; i++) {
		tcp_conn_fail(peers[i].conn, FI_EIO, FI_EIO, "the test has written into its ring");
		node_close(&peers[i].node);
	}
	for (int i = 0; i < 10; i++)
		drive(node);
}

/* As of most_of_a_look(). */
static uint32_t most_of_a_ring_look(struct node *node, struct ring_peer *peer, struct ring_peer *other, size_t record,
				    bool waits)
{
	uint32_t most = 0;

	for (int i = 0; i < LOOKS; i++) {
		ring_pour(peer, record, waits);
		ring_drain(peer);
		if (other) {
			ring_ask_once(other);
			ring_drain(other);
		} else {
			begin_ns += QUIET_NS;
		}
		look(node, i, &most);
	}
	return most;
}

/* It reads the answers, and always has further requests: hundreds of them in a record, or one in each. */
static void ring_shares_a_pass(struct node *node, size_t record, bool waits)
{
	bool (*usual)(struct tcp_near *near);
	const struct tcp_near *near;
	struct ring_peer peers[2];
	uint32_t beside, alone;

	ring_peers_open(peers, node);
	near = &peers[0].there->local->pair->near;
	usual = near->look;
	begin_costs(peers[0].there);
	beside = most_of_a_ring_look(node, &peers[0], &peers[1], record, waits);
	assert_true(near->look != usual);
	tcp_conn_classify(peers[0].there);	/* in the middle of a record: nothing of it is handled twice */
	alone = most_of_a_ring_look(node, &peers[0], NULL, record, waits);
	own_clock_off();
	print_message("# %u requests in a look beside another peer, %u alone\n", beside, alone);
	assert_in_range(beside, 1, SHARE_NS / COST_NS + 1);
	assert_in_range(alone, 64, UINT32_MAX);
	/* it costs little again, and is not measured */
	for (int i = 0; near->look != usual; i++) {
		assert_true(i < 100000);
		ring_drain(&peers[0]);
		drive(node);
		if (tcp_ring_is_handled(&peers[0].conn->local->pair->out))
			ring_ask_once(&peers[0]);
	}
	assert_true(is_up(node, peers[0].there));
	ring_peers_close(peers, node);
}

static void costly_requests_over_rings_share_a_pass(void **state)
{
	ring_shares_a_pass(*state, sizeof(refused_read), true);
}

static void costly_records_share_a_pass(void **state)
{
	ring_shares_a_pass(*state, sizeof(*refused_read), false);
}

/* A part of a record was handled, and then the peer makes it shorter than this part. */
static void record_that_shrinks_ends_the_connection(void **state)
{
	struct node *node = *state;
	struct ring_peer peers[2];
	struct tcp_ring_reader *in;

	ring_peers_open(peers, node);
	in = &peers[0].there->local->pair->in;
	begin_costs(peers[0].there);
	most_of_a_ring_look(node, &peers[0], &peers[1], sizeof(refused_read), true);
	own_clock_off();
	assert_true(peers[0].there->local->pair->part > 1);
	atomic_store(tcp_ring_word(in->room, in->pos), 1);
	drive(node);
	assert_false(is_up(node, peers[0].there));
	ring_peers_close(peers, node);
}

static void who_reads_no_answers_over_rings_waits_like_a_stranger(void **state)
{
	struct node *node = *state;
	struct ring_peer peers[2];
	struct tcp_conn *conn;
	uint32_t before;

	ring_peers_open(peers, node);
	conn = peers[0].there;
	for (int i = 0; i < MANY_LOOKS && !conn->src.outsider; i++) {
		ring_pour(&peers[0], sizeof(refused_read), true);
		drive(node);
	}
	assert_true(conn->src.outsider);
	before = answered(conn);
	begin_costs(conn);
	for (int i = 0; i < MANY_LOOKS; i++) {
		ring_pour(&peers[0], sizeof(refused_read), true);
		ring_ask_once(&peers[1]);
		ring_drain(&peers[1]);
		drive(node);
		begin_ns += LOOK_NS;
	}
	check_it_waited(conn, before);
	while (conn->src.outsider || conn->tx.control_cnt) {
		ring_drain(&peers[0]);
		drive(node);
	}
	/* and has a share of its own again */
	before = answered(conn);
	ring_pour(&peers[0], sizeof(refused_read), true);
	drive(node);
	assert_true(answered(conn) > before);
	ring_peers_close(peers, node);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_moves_with_all_that_is_held_for_it),
		TEST(unread_answers_are_packed),
		TEST(strangers_get_a_share_of_answers),
		TEST(what_is_owed_at_the_end_is_freed_in_pieces),
		TEST(who_comes_again_does_not_leave_more),
		TEST(what_is_owed_is_freed_with_the_endpoint),
		TEST(costly_requests_share_a_pass),
		TEST(who_reads_no_answers_waits_like_a_stranger),
		TEST(insertion_changes_nothing_for_who_reads_no_answers),
		TEST(costly_requests_over_rings_share_a_pass),
		TEST(costly_records_share_a_pass),
		TEST(record_that_shrinks_ends_the_connection),
		TEST(who_reads_no_answers_over_rings_waits_like_a_stranger),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/account", tests, NULL, NULL);
}
