/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a connection does with frames that come or wait at the wrong moment: a peer that ends it, a message too long to
 * be kept, a region that is closed while a peer waits for its bytes, announcements that find no place; and how long
 * acknowledgements wait.
 */
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "base/clock.h"
#include "remote.h"
#include "tcp/message/message.h"
#include "tcp/params/params.h"
#include "tcp/stream/stream.h"

/* Send all, while the node makes progress. */
static void pump(struct node *node, int fd, const void *buf, size_t len)
{
	uint64_t end_ms = fab_now_ms() + PATIENCE_MS;

	for (size_t sent = 0; sent < len; ) {
		ssize_t n = send(fd, (const uint8_t *) buf + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		assert_true(n > 0 || errno == EAGAIN);
		sent += n > 0 ? n : 0;
		drive(node);
		assert_true(fab_now_ms() < end_ms);
	}
}

/* What there is to send and to read is under way. */
static void settle(struct node *node)
{
	for (int i = 0; i < 200; i++)
		drive(node);
}

/* ---- the end ---- */

/* The peer closes in good order: what waits for its answer is told so, with both addresses. */
static void orderly_close_is_a_reset_for_what_waits(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	struct iovec iov = { "hello", 5 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = peer.fi_addr, .context = &iov };
	int fd = connected(node, &peer, 1);
	char text[256];

	assert_int_equal(fi_sendmsg(node->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
	expect_hello(node, fd);
	close(fd);
	expect_error(node, &iov, FI_ECONNRESET, text);
	assert_non_null(strstr(text, "127.0.0.1"));
	assert_non_null(strstr(text, " -> "));
	close(peer.listener);
}

/* ---- messages that are too long to be kept ---- */

#define LONG_LEN	(1 << 20)	/* bytes; much less than that is kept, and the kernel keeps some of it */
#define UNEXP_MAX	(32 * 1024)

struct frame {
	struct tcp_hdr hdr;
	uint64_t tag;
	uint8_t payload[LONG_LEN];
};

static struct frame frame;
static uint8_t room[LONG_LEN];

/* The first bytes of `frame`, a tagged message of len bytes; how many they are. */
static size_t frame_make(size_t len)
{
	size_t hdr_size = offsetof(struct frame, payload);

	frame.hdr = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_TAG, .hdr_size = hdr_size,
				       .size = hdr_size + len };
	frame.tag = 7;
	for (size_t i = 0; i < len; i++)
		frame.payload[i] = i * 2654435761u >> 24;
	return hdr_size + len;
}

static int unexp_setup(void **state)
{
	tcp_params.unexp_max = UNEXP_MAX;
	return node_setup(state);
}

static int unexp_teardown(void **state)
{
	tcp_params.unexp_max = TCP_UNEXP_MAX;
	return node_teardown(state);
}

static int coll_setup(void **state)
{
	struct node *node = calloc(1, sizeof(*node));

	node_open(node, FI_MSG | FI_COLLECTIVE, FI_THREAD_UNSPEC);
	*state = node;
	return 0;
}

/* Messages count what they take, not what they carry: FI_TCP_UNEXP_MAX is a limit on memory. */
static void empty_messages_count_too(void **state)
{
	enum { MAX = 4 << 20, CNT = 40000 };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	const uint64_t *held = &fab_container(node->ep, struct tcp_ep, base.ep_fid)->rx->account.len[TCP_KNOWN][0];
	size_t len = frame_make(0), sent = 0;

	tcp_params.unexp_max = MAX;
	for (int i = 0; i < CNT && sent < CNT * len; i++) {
		ssize_t ret = send(fd, (const char *) &frame + sent % len, len - sent % len,
				   MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += ret > 0 ? ret : 0;
		if (ret < 0 || i % 64 == 0)
			drive(node);
	}
	print_message("# %llu bytes are held\n", (unsigned long long) *held);
	assert_in_range(*held, MAX, MAX + FAB_STAGING_LEN / len * sizeof(struct tcp_unexp));
	peer_close(&peer, fd);
}

/* The peer sends its long message, until that does not get on. How much of it has left. */
static size_t send_until_stuck(struct node *node, int fd, size_t len)
{
	size_t sent = 0;
	ssize_t n;

	for (int idle = 0; idle < 100 && sent < len; idle++) {
		n = send(fd, (uint8_t *) &frame + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		sent += n > 0 ? n : 0;
		if (n > 0)
			idle = 0;
		drive(node);
	}
	return sent;
}

static void post_trecv(struct node *node)
{
	memset(room, 0, sizeof(room));
	assert_int_equal(fi_trecv(node->ep, room, sizeof(room), NULL, FI_ADDR_UNSPEC, 7, 0, room), 0);
}

static void frame_arrives(struct node *node, size_t len)
{
	assert_ptr_equal(completion(node, NULL), room);
	assert_memory_equal(room, frame.payload, len);
}

/* It waits in its socket, costs next to nothing, and goes from there straight into the receive. What follows it comes
 * too. */
static void long_message_waits_for_its_receive(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1), small = 128 * 1024;
	size_t len = frame_make(LONG_LEN), sent, before;
	char buf[5];

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	before = mallinfo2().uordblks;
	sent = send_until_stuck(node, fd, len);
#ifndef FAB_ASAN
	assert_true(mallinfo2().uordblks - before < 2 * FAB_STAGING_LEN + LONG_LEN / 4);
#endif
	(void) before;
	post_trecv(node);
	pump(node, fd, (uint8_t *) &frame + sent, len - sent);
	frame_arrives(node, LONG_LEN);
	assert_int_equal(recv_from(node, fd, buf), peer.fi_addr);
	peer_close(&peer, fd);
}

/* A peek sees it and drops it. */
static void long_message_may_be_discarded(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	struct fi_msg_tagged msg = { .tag = 7, .addr = FI_ADDR_UNSPEC, .context = node };
	int fd = connected(node, &peer, 1);
	size_t len = frame_make(LONG_LEN), sent = send_until_stuck(node, fd, len);
	char buf[5];

	assert_int_equal(fi_trecvmsg(node->ep, &msg, FI_PEEK | FI_DISCARD), 0);
	assert_ptr_equal(completion(node, NULL), node);
	pump(node, fd, (uint8_t *) &frame + sent, len - sent);
	assert_int_equal(recv_from(node, fd, buf), peer.fi_addr);
	peer_close(&peer, fd);
}

/* The peer has sent all of it and closes: the kernel's part comes into memory, and the receive may come late. */
static void long_message_outlives_its_sender(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	const size_t payload = 3 * UNEXP_MAX;
	size_t len = frame_make(payload);

	assert_int_equal(send_until_stuck(node, fd, len), len);
	shutdown(fd, SHUT_WR);
	assert_true(raw_recv_end(fd, drive, node));
	post_trecv(node);
	frame_arrives(node, payload);
	peer_close(&peer, fd);
}

/* The peer closes when it has sent part of it: there never was a message; what waits for the peer is told. */
static void long_message_without_its_end_is_none(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	struct fi_msg_tagged msg = { .tag = 7, .addr = FI_ADDR_UNSPEC, .context = node };
	int fd = connected(node, &peer, 1);

	frame_make(LONG_LEN);
	assert_int_equal(send_until_stuck(node, fd, 3 * UNEXP_MAX), 3 * UNEXP_MAX);
	assert_int_equal(fi_trecvmsg(node->ep, &msg, FI_PEEK), 0);
	assert_ptr_equal(completion(node, NULL), node);
	shutdown(fd, SHUT_WR);
	assert_true(raw_recv_end(fd, drive, node));
	assert_int_equal(fi_trecvmsg(node->ep, &msg, FI_PEEK), 0);
	expect_error(node, node, FI_ENOMSG, NULL);
	peer_close(&peer, fd);
}

/* All of it came in one read of the socket: it is in memory already. */
static void long_message_read_at_once_is_kept(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	const size_t payload = UNEXP_MAX + 1;
	size_t len = frame_make(payload);
	char buf[5];

	raw_send(fd, &frame, len);
	settle(node);
	post_trecv(node);
	frame_arrives(node, payload);
	assert_int_equal(recv_from(node, fd, buf), peer.fi_addr);
	peer_close(&peer, fd);
}

/* ---- regions that are closed ---- */

static struct fid_mr *reg(struct node *node, void *buf, size_t len)
{
	static uint64_t key;
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(node->domain, buf, len, FI_REMOTE_READ, 0, ++key, 0, &mr, NULL), 0);
	return mr;
}

static void read_request(int fd, struct fid_mr *mr, size_t len)
{
	struct {
		struct tcp_hdr hdr;
		struct tcp_rma_iov rma;
	} request = {
		.hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_READ_REQ, .rma_iov_cnt = 1,
			 .hdr_size = sizeof(request), .size = sizeof(request) },
		.rma = { .len = len, .key = fi_mr_key(mr) },
	};

	raw_send(fd, &request, sizeof(request));
}

/* A response waits behind another one when its region goes: that read is refused, and the stream goes on. */
static void region_closed_under_a_waiting_response(void **state)
{
	const size_t big_len = 24 << 20;	/* more than the kernels take */
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &(struct tcp_hello) { .incarnation = 1 });
	uint8_t *big = calloc(1, big_len), *in = malloc(big_len), small[64];
	struct fid_mr *big_mr = reg(node, big, big_len), *small_mr = reg(node, small, sizeof(small));
	struct {
		struct tcp_hdr hdr;
		struct tcp_read_err err;
	} refusal;
	struct tcp_hdr hdr;
	char buf[5];

	read_request(fd, big_mr, big_len);
	read_request(fd, small_mr, sizeof(small));
	settle(node);
	assert_int_equal(fi_close(&small_mr->fid), 0);
	raw_recv(fd, &hdr, sizeof(hdr), drive, node);
	assert_int_equal(hdr.op, TCP_WIRE_READ_RSP);
	raw_recv(fd, in, big_len, drive, node);
	raw_recv(fd, &refusal, sizeof(refusal), drive, node);
	assert_int_equal(refusal.hdr.op, TCP_WIRE_READ_ERR);
	assert_int_equal(refusal.err.err, FI_EACCES);
	assert_int_equal(recv_from(node, fd, buf), peer.fi_addr);
	assert_int_equal(fi_close(&big_mr->fid), 0);
	free(big);
	free(in);
	peer_close(&peer, fd);
}

/* A write whose payload is not as long as its targets ends the connection, and writes nothing. */
static void write_of_another_length(void **state)
{
	struct node *node = *state;
	char target[8] = { 0 };
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(node->domain, target, sizeof(target), FI_REMOTE_WRITE, 0, 77, 0, &mr, NULL), 0);
	for (int more = -4; more <= 4; more += 8) {
		struct peer peer = peer_open(node);
		int fd = connected_ext(node, &peer, &(struct tcp_hello) { .incarnation = 1 });
		struct {
			struct tcp_hdr hdr;
			struct tcp_rma_iov rma;
			char payload[12];
		} write = {
			.hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_WRITE, .rma_iov_cnt = 1,
				 .hdr_size = offsetof(typeof(write), payload),
				 .size = offsetof(typeof(write), payload) + sizeof(target) + (size_t) more },
			.rma = { .len = sizeof(target), .key = fi_mr_key(mr) }, .payload = "overwritten",
		};

		raw_send(fd, &write, write.hdr.size);
		assert_true(raw_recv_end(fd, drive, node));
		assert_int_equal(target[0], 0);
		close(fd);
		close(peer.listener);
	}
	assert_int_equal(fi_close(&mr->fid), 0);
}

/* ---- announcements ---- */

/* A message beyond the credit for which there is no announcement left is not sent at all; nor does taking one back give
 * credit that was never spent. */
static void without_announcement_nothing_goes_past_the_credit(void **state)
{
	const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096, .credit = 128 };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &hello);
	struct {
		struct tcp_hdr hdr;
		struct tcp_rts rts;
	} announced;
	struct tcp_conn *conn;
	uint64_t credit;
	uint32_t id;
	char op[2];

	send_hello(node, peer.fi_addr, &op[0]);
	hello_arrives(node, fd, &op[0]);
	conn = node_conn(node, peer.fi_addr);
	credit = conn->tx.credit;
	assert_int_equal(credit, hello.credit - 5 - TCP_CREDIT_OVERHEAD);
	while (!tcp_idmap_add(&conn->tx.rts, conn, &id))
		;
	assert_int_equal(fi_send(node->ep, "hello", 5, NULL, peer.fi_addr, &op[1]), -FI_EAGAIN);
	assert_int_equal(conn->tx.credit, credit);
	for (id = 0; conn->tx.rts.cnt; id++)
		tcp_idmap_del(&conn->tx.rts, id);
	send_hello(node, peer.fi_addr, &op[1]);
	raw_recv(fd, &announced, sizeof(announced), drive, node);
	assert_int_equal(announced.hdr.op, TCP_WIRE_XRTS);
	assert_int_equal(announced.rts.len, 5);
	close(fd);
	expect_error(node, &op[1], FI_ECONNRESET, NULL);
	close(peer.listener);
}

/* An injected message goes beyond the credit where the peer supports that, down to the debt; else it is refused. */
static void injects_go_into_debt(void **state)
{
	static const uint16_t features[] = { 0, TCP_EXT_SHORT };
	struct node *node = *state;

	for (int i = 0; i < 2; i++) {
		const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096, .features = features[i] };
		struct peer peer = peer_open(node);
		int fd = connected_ext(node, &peer, &hello);
		struct tcp_conn *conn = node_conn(node, peer.fi_addr);

		assert_int_equal(fi_inject(node->ep, "hello", 5, peer.fi_addr), features[i] ? 0 : -FI_EAGAIN);
		if (features[i]) {
			expect_hello(node, fd);
			assert_int_equal(conn->tx.credit, -5 - TCP_CREDIT_OVERHEAD);
			conn->tx.credit = 69 - (int64_t) TCP_SHORT_DEBT;
			assert_int_equal(fi_inject(node->ep, "hello", 5, peer.fi_addr), 0);
			assert_int_equal(fi_inject(node->ep, "hello", 5, peer.fi_addr), -FI_EAGAIN);
			expect_hello(node, fd);
		}
		peer_close(&peer, fd);
	}
}

/* What is not injected can wait: beyond the credit it is announced, however short it is. */
static void sends_do_not_go_into_debt(void **state)
{
	const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096, .features = TCP_EXT_SHORT };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &hello);
	struct {
		struct tcp_hdr hdr;
		struct tcp_rts rts;
	} announced;
	char op;

	send_hello(node, peer.fi_addr, &op);
	raw_recv(fd, &announced, sizeof(announced), drive, node);
	assert_int_equal(announced.hdr.op, TCP_WIRE_XRTS);
	assert_int_equal(announced.rts.len, 5);
	assert_int_equal(node_conn(node, peer.fi_addr)->tx.credit, 0);
	close(fd);
	expect_error(node, &op, FI_ECONNRESET, NULL);
	close(peer.listener);
}

/* A peer takes an announcement back just as a receive takes it: the go-ahead is sent, so the data still comes. */
static void check_taken_stays(struct node *node, bool receive_first)
{
	const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096 };
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &hello);
	struct {
		struct tcp_hdr hdr;
		struct tcp_rts rts;
	} rts = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_XRTS, .hdr_size = sizeof(rts), .size = sizeof(rts) },
		  { .id = 3, .len = 5 } };
	struct {
		struct tcp_hdr hdr;
		struct tcp_xcancel cancel;
	} cancel = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_XCANCEL, .hdr_size = sizeof(cancel),
		       .size = sizeof(cancel) }, { .id = 3 } };
	struct {
		struct tcp_hdr hdr;
		struct tcp_xdata xdata;
		char text[8];
	} data = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_XDATA, .hdr_size = offsetof(typeof(data), text),
		     .size = offsetof(typeof(data), text) + 5 }, .text = "hello" };
	struct {
		struct tcp_hdr hdr;
		struct tcp_cts cts;
	} cts;
	char in[5];

	if (receive_first)
		assert_int_equal(fi_recv(node->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	raw_send(fd, &rts, sizeof(rts));
	while (!receive_first && !node_conn(node, peer.fi_addr)->msg.announced_cnt)
		drive(node);
	if (!receive_first)
		assert_int_equal(fi_recv(node->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), 0);
	raw_recv(fd, &cts, sizeof(cts), drive, node);
	assert_int_equal(cts.hdr.op, TCP_WIRE_XCTS);
	assert_int_equal(cts.cts.len, 5);
	data.xdata.rx_id = cts.cts.rx_id;
	raw_send(fd, &cancel, sizeof(cancel));
	raw_send(fd, &data, data.hdr.size);
	assert_ptr_equal(completion(node, NULL), in);
	assert_memory_equal(in, "hello", 5);
	settle(node);
	assert_int_equal(recv(fd, &cts, sizeof(cts), MSG_DONTWAIT), -1);	/* no answer */
	peer_close(&peer, fd);
}

static void announcement_that_a_receive_has_taken_stays(void **state)
{
	check_taken_stays(*state, true);
	check_taken_stays(*state, false);
}

struct announcement {
	struct tcp_hdr hdr;
	struct tcp_rts rts;
};

struct taking_back {
	struct tcp_hdr hdr;
	struct tcp_xcancel cancel;
};

static struct announcement announcement(uint32_t id)
{
	return (struct announcement) {
		.hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_XRTS, .hdr_size = sizeof(struct announcement),
			 .size = sizeof(struct announcement) },
		.rts = { .id = id, .len = 5 },
	};
}

static struct taking_back taking_back(uint32_t id)
{
	return (struct taking_back) {
		.hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_XCANCEL, .hdr_size = sizeof(struct taking_back),
			 .size = sizeof(struct taking_back) },
		.cancel = { .id = id },
	};
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

/* The peer sends len bytes of frames that ask for nothing that is there, then announces a message with this id. Returns
 * how long the node needs for that, of the processor. */
static uint64_t ask_for_nothing(struct node *node, const struct peer *peer, int fd, const void *frames, size_t len,
				uint32_t id)
{
	const struct tcp_conn *conn = node_conn(node, peer->fi_addr);
	const struct announcement last = announcement(id);
	uint32_t before = conn->msg.announced_cnt;
	uint8_t all[len + sizeof(last)];
	uint64_t begun;

	memcpy(all, frames, len);
	memcpy(all + len, &last, sizeof(last));
	begun = cpu_ns();
	raw_send(fd, all, sizeof(all));		/* at once: the kernel would wait before it sends a second part */
	while (conn->msg.announced_cnt == before)
		drive(node);
	return cpu_ns() - begun;
}

#define KEPT	60000			/* messages that a peer has announced */
#define NOTHINGS 500

/* The peer announces KEPT messages, which change nothing in what the frames cost. */
static void check_kept_costs_nothing(struct node *node, const struct peer *peer, int fd, const void *frames, size_t len,
				     struct announcement message)
{
	static struct announcement many[KEPT];
	uint64_t few_ns, many_ns;

	ask_for_nothing(node, peer, fd, frames, len, KEPT);
	few_ns = ask_for_nothing(node, peer, fd, frames, len, KEPT + 1);
	for (uint32_t i = 0; i < KEPT; i++) {
		many[i] = message;
		many[i].rts.id = i;
	}
	for (uint32_t i = 0; i < KEPT; i += 500) {
		raw_send(fd, &many[i], 500 * sizeof(*many));
		while (node_conn(node, peer->fi_addr)->msg.announced_cnt < i + 502)
			drive(node);
	}
	many_ns = ask_for_nothing(node, peer, fd, frames, len, KEPT + 2);
	assert_true(many_ns < 50 * few_ns);
}

/* A peer may have announced 65536 messages. What it takes back is found at once, so it cannot keep the node busy. */
static void taking_back_does_not_depend_on_what_is_kept(void **state)
{
	const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096, .credit = 4096 };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &hello);
	struct taking_back frames[NOTHINGS];

	for (uint32_t i = 0; i < NOTHINGS; i++)
		frames[i] = taking_back(100000 + i);
	check_kept_costs_nothing(node, &peer, fd, frames, sizeof(frames), announcement(0));
	peer_close(&peer, fd);
}

/* Groups of collectives that nobody here has joined. */
#define GROUP(n)	((uint64_t) (n) << 32)

/* It says that it has left a group: that its messages for it are void is found out at once, too. */
static void leaving_groups_does_not_depend_on_what_is_kept(void **state)
{
	const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096, .credit = 4096,
					 .features = TCP_EXT_COLL };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &hello);
	struct announcement message = announcement(0);
	struct {
		struct tcp_hdr hdr;
		struct tcp_coll coll;
	} frames[NOTHINGS];

	for (uint32_t i = 0; i < NOTHINGS; i++) {
		frames[i].hdr = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_COLL,
						   .op_data = TCP_COLL_ABORT, .hdr_size = sizeof(*frames),
						   .size = sizeof(*frames) };
		frames[i].coll.tag = GROUP(1000 + i);
	}
	message.hdr.op_data = FAB_CLASS_COLL;
	message.rts.tag = GROUP(1);
	check_kept_costs_nothing(node, &peer, fd, frames, sizeof(frames), message);
	peer_close(&peer, fd);
}

/* How long the node needs to insert NOTHINGS addresses that were not there, of the processor; host: of 127.0.0.0/8. */
static uint64_t insert_many(struct node *node, uint32_t host)
{
	uint64_t begun = cpu_ns();

	for (uint32_t i = 0; i < NOTHINGS; i++) {
		const struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(1 + i),
						  .sin_addr.s_addr = htonl(INADDR_LOOPBACK + host) };

		node_insert(node, &addr);
	}
	return cpu_ns() - begun;
}

/* Peers have left messages that nobody has received: who else is inserted has nothing to do with them. */
static void inserting_does_not_depend_on_what_peers_have_left(void **state)
{
	static struct tcp_hdr empty[500];
	const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096, .credit = 4096 };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &hello);
	uint64_t none_ns;

	insert_many(node, 1);
	none_ns = insert_many(node, 2);
	for (uint32_t i = 0; i < 500; i++)
		empty[i] = (struct tcp_hdr) { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG,
					      .hdr_size = sizeof(*empty), .size = sizeof(*empty) };
	for (uint32_t i = 0; i < KEPT; i += 500)
		pump(node, fd, empty, sizeof(empty));
	settle(node);
	peer_close(&peer, fd);
	while (node_conn(node, peer.fi_addr))
		drive(node);
	assert_int_equal(fab_container(node->ep, struct tcp_ep, base.ep_fid)->rx->orphans.cnt, KEPT);
	assert_true(insert_many(node, 3) < 50 * none_ns);
}

/* An id names one message until it is taken. */
static void announcement_with_an_id_in_use_ends_the_connection(void **state)
{
	const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096, .credit = 4096 };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &hello);
	struct announcement twice[] = { announcement(3), announcement(3) };

	raw_send(fd, twice, sizeof(twice));
	assert_true(raw_recv_end(fd, drive, node));
	peer_close(&peer, fd);
}

/* So many messages that nobody receives may come from one peer: one more ends the connection. */
static void unexpected_messages_have_a_limit(void **state)
{
	struct {
		struct tcp_hdr hdr;
		uint8_t payload[64];
	} frame = { .hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(struct tcp_hdr),
			     .size = sizeof(frame) } };
	const struct tcp_hello hello = { .incarnation = 1, .eager_max = 4096, .credit = 4096 };
	const size_t credit = tcp_params.credit;
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &hello);
	size_t cnt;

	tcp_params.credit = 4096;
	cnt = (2 * tcp_params.credit + TCP_SHORT_DEBT) / (sizeof(frame.payload) + TCP_CREDIT_OVERHEAD);
	for (size_t i = 0; i < cnt; i++) {
		pump(node, fd, &frame, sizeof(frame));
		frame.hdr.id++;
	}
	settle(node);
	assert_int_equal(node_conn(node, peer.fi_addr)->state, TCP_CONN_UP);
	pump(node, fd, &frame, sizeof(frame));
	assert_true(raw_recv_end(fd, drive, node));
	tcp_params.credit = credit;
	close(fd);
	close(peer.listener);
}

/* Debug builds of upstream insist that frames count up, past where the number wraps; release builds send rubbish there,
 * and are understood. */
static void frames_are_numbered(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	struct {
		struct tcp_hdr hdr;
		char text[5];
	} __attribute__((packed)) frame;
	char buf[5];

	for (int i = 0; i < 300; i++) {
		send_hello(node, peer.fi_addr, NULL);
		raw_recv(fd, &frame, sizeof(frame), drive, node);
		assert_int_equal(frame.hdr.id, i & 0xff);
		completion(node, NULL);
	}
	for (int i = 0; i < 3; i++)
		recv_from(node, fd, buf);
	peer_close(&peer, fd);
}

/* FI_TCP_WRITE_COMPLETE: a write without a level is quiet, or asks for an acknowledgement. */
static void the_parameter_gives_writes_their_level(void **state)
{
	const struct tcp_hello hello = { .ext = true, .features = TCP_EXT_BASE | TCP_EXT_NAK, .incarnation = 1,
					 .eager_max = 4096, .credit = 1 << 20 };
	const struct tcp_ack ack = { .cnt = 1 };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected_ext(node, &peer, &hello);
	struct {
		struct tcp_hdr hdr;
		struct tcp_rma_iov rma;
		uint64_t payload;
	} got;
	struct {
		struct tcp_hdr hdr;
		struct tcp_ack ack;
	} answer = { { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_ACK, .hdr_size = sizeof(answer),
		       .size = sizeof(answer) }, ack };
	uint64_t word = 5;

	for (int delivered = 0; delivered < 2; delivered++) {
		drive(node);		/* the first since a pass leaves at once */
		tcp_params.write_delivered = delivered;
		assert_int_equal(fi_write(node->ep, &word, sizeof(word), NULL, peer.fi_addr, 1, 3, &word), 0);
		tcp_params.write_delivered = false;
		raw_recv(fd, &got, sizeof(got), drive, node);
		assert_int_equal(got.hdr.op, TCP_WIRE_WRITE);
		assert_int_equal(got.hdr.flags, delivered ? TCP_FLAG_DELIVERY : 0);
		assert_int_equal(got.payload, word);
		if (delivered)
			assert_int_equal(send(fd, &answer, sizeof(answer), 0), sizeof(answer));
		assert_ptr_equal(completion(node, NULL), &word);
	}
	peer_close(&peer, fd);
}

/* ---- sends that the stream takes only a part of ---- */

/* What the next sends to the stream answer, special_cnt of them: -errno, or they take at most so many bytes. */
static ssize_t special;
static unsigned special_cnt;

static ssize_t limited_send(struct tcp_conn *conn, const void *buf, size_t len)
{
	if (!special_cnt)
		return tcp_io_sock.send(conn, buf, len);
	special_cnt--;
	return special < 0 ? special : tcp_io_sock.send(conn, buf, (size_t) special < len ? (size_t) special : len);
}

static ssize_t limited_sendv(struct tcp_conn *conn, const struct iovec *iov, size_t cnt)
{
	if (!special_cnt)
		return tcp_io_sock.sendv(conn, iov, cnt);
	return limited_send(conn, iov[0].iov_base, iov[0].iov_len);
}

static struct tcp_io limited_io;

static void limit_sends(struct node *node, const struct peer *peer)
{
	limited_io = tcp_io_sock;
	limited_io.send = limited_io.leave = limited_send;
	limited_io.sendv = limited_sendv;
	node_conn(node, peer->fi_addr)->io = &limited_io;
}

static void next_sends(unsigned cnt, ssize_t answer)
{
	special_cnt = cnt;
	special = answer;
}

/* The tagged message of len bytes of `room` comes out of fd, as the n-th frame. */
static void expect_tagged(struct node *node, int fd, size_t len, uint8_t n)
{
	static struct frame in;

	raw_recv(fd, &in, offsetof(struct frame, payload) + len, drive, node);
	assert_int_equal(in.hdr.op, TCP_WIRE_TAG);
	assert_int_equal(in.hdr.id, n);
	assert_int_equal(in.hdr.size, offsetof(struct frame, payload) + len);
	assert_int_equal(in.tag, 7);
	assert_memory_equal(in.payload, room, len);
}

/* A full socket takes a frame in pieces, wherever it is cut, and other messages follow it in order. Each completes
 * once, when the last byte has left. */
static void frame_may_be_cut_anywhere(void **state)
{
	static const size_t lens[] = { 8, TCP_TX_COPY_MAX + 1 };
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	struct fi_cq_data_entry entry;
	uint8_t n = 0;

	limit_sends(node, &peer);
	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = i * 31;
	for (size_t l = 0; l < 2; l++) {
		/* above TCP_TX_COPY_MAX what is taken at once ends with the header */
		size_t end = lens[l] == 8 ? offsetof(struct frame, payload) + 8 : offsetof(struct frame, payload) + 1;

		for (size_t cut = 0; cut < end; cut++) {
			next_sends(1, cut ? (ssize_t) cut : -EAGAIN);
			assert_int_equal(fi_tsend(node->ep, room, lens[l], NULL, peer.fi_addr, 7, &special), 0);
			assert_int_equal(special_cnt, 0);
			assert_int_equal(fi_tsend(node->ep, room, 9, NULL, peer.fi_addr, 7, &frame), 0);
			expect_tagged(node, fd, lens[l], n++);
			expect_tagged(node, fd, 9, n++);
			assert_ptr_equal(completion(node, NULL), &special);
			assert_ptr_equal(completion(node, NULL), &frame);
			assert_int_equal(fi_cq_read(node->cq, &entry, 1), -FI_EAGAIN);
		}
	}
	peer_close(&peer, fd);
}

/* An injected message of which the socket takes nothing is refused and leaves no trace; of which it takes a part, that
 * goes on. */
static void inject_leaves_or_is_refused(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);

	limit_sends(node, &peer);
	memset(room, 'i', 8);
	next_sends(2, -EAGAIN);
	assert_int_equal(fi_tinject(node->ep, room, 8, peer.fi_addr, 7), -FI_EAGAIN);
	assert_int_equal(special_cnt, 0);
	next_sends(1, 5);
	assert_int_equal(fi_tinject(node->ep, room, 8, peer.fi_addr, 7), 0);
	assert_int_equal(fi_tinject(node->ep, room, 8, peer.fi_addr, 7), -FI_EAGAIN);
	expect_tagged(node, fd, 8, 0);
	assert_int_equal(fi_tinject(node->ep, room, 8, peer.fi_addr, 7), 0);
	expect_tagged(node, fd, 8, 1);
	peer_close(&peer, fd);
}

/* The stream fails in a send: the message completes once, with the error, which the stream does not repeat. */
static void send_that_fails_says_why(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	struct fi_cq_data_entry entry;
	char text[256];

	limit_sends(node, &peer);
	next_sends(1, -ETIMEDOUT);
	assert_int_equal(fi_tsend(node->ep, room, 8, NULL, peer.fi_addr, 7, &frame), 0);
	expect_error(node, &frame, FI_ETIMEDOUT, text);
	assert_non_null(strstr(text, "send failed"));
	assert_int_equal(fi_cq_read(node->cq, &entry, 1), -FI_EAGAIN);
	peer_close(&peer, fd);
}

/* ---- acknowledgements ---- */

#define STAGED_LEN	4096	/* bytes that are read ahead of a long message's end */

/* That of a long message may wait for the next one's, but only for what is there: the first bytes of the next one, all
 * of which came with the read that brought the end of this one. */
static void acknowledgement_waits_for_nothing_that_is_not_there(void **state)
{
	struct node *node = *state;
	struct peer peer = peer_open(node);
	int fd = connected(node, &peer, 1);
	size_t len = frame_make(40000);
	struct tcp_hdr ack;

	frame.hdr.flags = TCP_FLAG_DELIVERY;
	for (int i = 0; i < 4; i++) {
		post_trecv(node);
		post_trecv(node);
		raw_send(fd, &frame, len);
		raw_send(fd, &frame, STAGED_LEN);
		raw_recv(fd, &ack, sizeof(ack), drive, node);
		assert_int_equal(ack.op_data, TCP_OP_DATA_ACK);
		frame_arrives(node, 40000);
		pump(node, fd, (uint8_t *) &frame + STAGED_LEN, len - STAGED_LEN);
		raw_recv(fd, &ack, sizeof(ack), drive, node);
		assert_int_equal(ack.op_data, TCP_OP_DATA_ACK);
		frame_arrives(node, 40000);
	}
	peer_close(&peer, fd);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, node_setup, node_teardown)
#define LONG(fn) cmocka_unit_test_setup_teardown(fn, unexp_setup, unexp_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(empty_messages_count_too, unexp_setup, unexp_teardown),
		TEST(orderly_close_is_a_reset_for_what_waits),
		LONG(long_message_waits_for_its_receive),
		LONG(long_message_may_be_discarded),
		LONG(long_message_outlives_its_sender),
		LONG(long_message_without_its_end_is_none),
		LONG(long_message_read_at_once_is_kept),
		TEST(region_closed_under_a_waiting_response),
		TEST(write_of_another_length),
		TEST(without_announcement_nothing_goes_past_the_credit),
		TEST(injects_go_into_debt),
		TEST(sends_do_not_go_into_debt),
		TEST(announcement_that_a_receive_has_taken_stays),
		TEST(taking_back_does_not_depend_on_what_is_kept),
		TEST(inserting_does_not_depend_on_what_peers_have_left),
		cmocka_unit_test_setup_teardown(leaving_groups_does_not_depend_on_what_is_kept, coll_setup,
						node_teardown),
		TEST(announcement_with_an_id_in_use_ends_the_connection),
		TEST(unexpected_messages_have_a_limit),
		TEST(frames_are_numbered),
		TEST(the_parameter_gives_writes_their_level),
		TEST(frame_may_be_cut_anywhere),
		TEST(inject_leaves_or_is_refused),
		TEST(send_that_fails_says_why),
		TEST(acknowledgement_waits_for_nothing_that_is_not_there),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/stream", tests, NULL, NULL);
}
