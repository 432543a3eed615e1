/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The handshake, each side against bytes that a peer may send: what is understood, what is refused, and that it takes
 * no byte too many.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/sock.h"
#include "exchange.h"
#include "tcp/params/params.h"

/* ---- what a message may look like ---- */

enum flaw {
	NONE, VERSION, TYPE, TOO_LONG, NO_ORDER, SWAPPED, CUT_HEADER, CUT_DATA, NOTHING,
};

struct row {
	const char *name;
	uint8_t type;
	size_t data_len;
	enum flaw flaw;
	int err;		/* of the exchange; 0: understood */
};

/* The bytes of a row; what follows them is closed if it is cut. */
static size_t make_bytes(const struct row *row, struct cm_bytes *msg)
{
	static const uint8_t data[TCP_CM_DATA_MAX] = "private data";
	size_t len;

	*msg = raw_cm(row->type, data, row->data_len);
	len = raw_len(msg);
	switch (row->flaw) {
	case VERSION:
		msg->hdr.version = 2;
		break;
	case TYPE:
		msg->hdr.type = 77;
		break;
	case TOO_LONG:
		msg->hdr.seg_size = htobe16(TCP_CM_DATA_MAX + 1);
		break;
	case NO_ORDER:
		msg->hdr.conn_data = 0x100;
		break;
	case SWAPPED:
		msg->hdr.conn_data = 1ULL << 56;
		break;
	case CUT_HEADER:
		return sizeof(msg->hdr) - 1;
	case CUT_DATA:
		return len - 1;
	case NOTHING:
		return 0;
	default:
		break;
	}
	return len;
}

static bool is_cut(const struct row *row)
{
	return row->flaw >= CUT_HEADER;
}

/* The peer says this, `step` bytes at a time, and closes where it is cut. */
static void say(struct exchange *x, int peer, const struct row *row, size_t step)
{
	struct cm_bytes msg;
	size_t len = make_bytes(row, &msg);

	for (size_t i = 0; i < len; i += step) {
		raw_send(peer, (uint8_t *) &msg + i, fab_min(step, len - i));
		exchange_drive(x);
	}
	if (is_cut(row))
		close(peer);
}

static void check_outcome(const struct exchange *x, const struct row *row)
{
	assert_int_equal(x->err, row->err);
	if (row->err) {
		assert_non_null(strstr(x->text, " -> "));
		return;
	}
	assert_int_equal(x->cm->type, row->type);
	assert_int_equal(x->cm->data_len, row->data_len);
	assert_int_equal(x->cm->peer.swap, row->flaw == SWAPPED);
	assert_false(x->cm->peer.ext);
	if (row->data_len)
		assert_memory_equal(x->cm->data, "private data", fab_min(row->data_len, (size_t) 12));
}

/* Elements of atomics and collectives are sent as they are in memory: neither is possible with a peer of the other byte
 * order, whatever it says. */
static void other_byte_order_has_no_atomics_and_no_collectives(void **state)
{
	const uint16_t native = TCP_EXT_AMO | TCP_EXT_TAMO | TCP_EXT_COLL;
	struct cm_bytes msg;

	(void) state;
	for (int swapped = 0; swapped < 2; swapped++) {
		struct tcp_cm cm = { .state = TCP_CM_REQUEST };

		make_bytes(&(struct row) { .type = TCP_CM_CONNREQ, .flaw = swapped ? SWAPPED : NONE }, &msg);
		msg.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_CTX | native);
		cm.hdr = msg.hdr;
		tcp_cm_decode(&cm);
		assert_int_equal(cm.peer.swap, swapped);
		assert_int_equal(cm.peer.features & (TCP_EXT_BASE | TCP_EXT_CTX), TCP_EXT_BASE | TCP_EXT_CTX);
		assert_int_equal(cm.peer.features & native, swapped ? 0 : native);
	}
}

/* ---- passive: a request is awaited ---- */

static const struct row requests[] = {
	{ "plain", TCP_CM_CONNREQ, 0, NONE, 0 },
	{ "data", TCP_CM_CONNREQ, 8, NONE, 0 },
	{ "all data", TCP_CM_CONNREQ, TCP_CM_DATA_MAX, NONE, 0 },
	{ "other byte order", TCP_CM_CONNREQ, 8, SWAPPED, 0 },
	{ "an answer", TCP_CM_CONNRESP, 0, NONE, FI_EPROTO },
	{ "a refusal", TCP_CM_NACK, 0, NONE, FI_EPROTO },
	{ "unknown type", TCP_CM_CONNREQ, 0, TYPE, FI_EPROTO },
	{ "wrong version", TCP_CM_CONNREQ, 0, VERSION, FI_EPROTO },
	{ "too much data", TCP_CM_CONNREQ, 0, TOO_LONG, FI_EPROTO },
	{ "no byte order", TCP_CM_CONNREQ, 0, NO_ORDER, FI_EPROTO },
	{ "cut in the header", TCP_CM_CONNREQ, 0, CUT_HEADER, FI_ECONNRESET },
	{ "cut in the data", TCP_CM_CONNREQ, 8, CUT_DATA, FI_ECONNRESET },
	{ "closed at once", TCP_CM_CONNREQ, 0, NOTHING, FI_ECONNRESET },
};

/* What comes after the message must stay in the socket. */
static void run_request(const struct row *row, size_t step)
{
	struct sockaddr_in addr;
	struct exchange x;
	int listener = raw_listen(&addr, 1), peer = raw_connect(&addr);
	char next;

	exchange_open(&x);
	exchange_accept(&x, listener, &addr);
	say(&x, peer, row, step);
	if (!is_cut(row))
		raw_send(peer, "!", 1);
	exchange_finish(&x);
	check_outcome(&x, row);
	if (!row->err) {
		raw_recv(x.cm->sock.fd, &next, 1, exchange_drive, &x);
		assert_int_equal(next, '!');
	}
	exchange_close(&x);
	if (!is_cut(row))
		close(peer);
	close(listener);
}

static void request_is_understood_or_refused(void **state)
{
	(void) state;
	for (size_t i = 0; i < fab_countof(requests); i++) {
		print_message("%s\n", requests[i].name);
		run_request(&requests[i], 1024);
		run_request(&requests[i], 1);
		run_request(&requests[i], 33);
	}
}

/* A request is read in one call, as nothing may follow it before its answer. */
static void what_follows_a_request_at_once_refuses_it(void **state)
{
	static const struct row more = { "more", TCP_CM_CONNREQ, 0, NONE, FI_EPROTO };
	struct sockaddr_in addr;
	struct exchange x;
	struct cm_bytes msg;
	int listener = raw_listen(&addr, 1), peer = raw_connect(&addr);
	size_t len = make_bytes(&more, &msg);

	(void) state;
	exchange_open(&x);
	exchange_accept(&x, listener, &addr);
	raw_send(peer, &msg, len + 1);
	exchange_finish(&x);
	check_outcome(&x, &more);
	exchange_close(&x);
	close(peer);
	close(listener);
}

/* ---- active: connect, and an answer is awaited ---- */

static const struct row answers[] = {
	{ "plain", TCP_CM_CONNRESP, 0, NONE, 0 },
	{ "data", TCP_CM_CONNRESP, TCP_CM_DATA_MAX, NONE, 0 },
	{ "refusal", TCP_CM_NACK, 0, NONE, 0 },
	{ "refusal with data", TCP_CM_NACK, 8, NONE, 0 },
	{ "other byte order", TCP_CM_CONNRESP, 8, SWAPPED, 0 },
	{ "no byte order", TCP_CM_CONNRESP, 8, NO_ORDER, FI_EPROTO },
	{ "refusal without byte order, as upstream's", TCP_CM_NACK, 8, NO_ORDER, 0 },
	{ "a request", TCP_CM_CONNREQ, 0, NONE, FI_EPROTO },
	{ "unknown type", TCP_CM_CONNRESP, 0, TYPE, FI_EPROTO },
	{ "wrong version", TCP_CM_CONNRESP, 0, VERSION, FI_EPROTO },
	{ "too much data", TCP_CM_CONNRESP, 0, TOO_LONG, FI_EPROTO },
	{ "cut in the header", TCP_CM_CONNRESP, 0, CUT_HEADER, FI_ECONNRESET },
	{ "cut in the data", TCP_CM_CONNRESP, 8, CUT_DATA, FI_ECONNRESET },
	{ "closed at once", TCP_CM_CONNRESP, 0, NOTHING, FI_ECONNRESET },
};

static void start_connect(struct exchange *x, const struct sockaddr_in *to)
{
	static const struct tcp_cm_msg msg = { .type = TCP_CM_CONNREQ, .incarnation = 0x1122334455667788,
					       .data = "hello", .data_len = 5 };

	assert_int_equal(exchange_connect(x, to, &msg), 0);
}

/* What start_connect() has to put on the wire, each byte of it. */
static void check_request(const struct cm_bytes *msg)
{
	assert_int_equal(msg->hdr.version, 3);
	assert_int_equal(msg->hdr.type, 0);
	assert_int_equal(be16toh(msg->hdr.seg_size), 5);
	assert_int_equal(be32toh(msg->hdr.ext), TCP_EXT_MAGIC | TCP_EXT_BASE | TCP_EXT_AMO | TCP_EXT_TAMO |
			 TCP_EXT_COMMIT | TCP_EXT_RIOV | TCP_EXT_SHORT | TCP_EXT_NAK |
			 TCP_EXT_DIRECT);
	assert_int_equal(be64toh(msg->hdr.incarnation), 0x1122334455667788);
	assert_int_equal(be32toh(msg->hdr.eager_max), tcp_params.eager_max);
	assert_int_equal(be32toh(msg->hdr.credit), tcp_params.credit);
	assert_int_equal(msg->hdr.conn_data, 1);
	assert_memory_equal(msg->data, "hello", 5);
}

static void run_answer(const struct row *row, size_t step)
{
	struct sockaddr_in addr;
	struct cm_bytes request;
	struct exchange x;
	int listener = raw_listen(&addr, 1), peer;

	exchange_open(&x);
	start_connect(&x, &addr);
	peer = raw_accept(listener, exchange_drive, &x);
	raw_recv(peer, &request, sizeof(request.hdr) + 5, exchange_drive, &x);
	check_request(&request);
	say(&x, peer, row, step);
	exchange_finish(&x);
	check_outcome(&x, row);
	exchange_close(&x);
	if (!is_cut(row))
		close(peer);
	close(listener);
}

static void answer_is_understood_or_refused(void **state)
{
	(void) state;
	for (size_t i = 0; i < fab_countof(answers); i++) {
		print_message("%s\n", answers[i].name);
		run_answer(&answers[i], 1024);
		run_answer(&answers[i], 1);
	}
}

/* A peer of ours says so, and what it says arrives in host order. */
static void extension_is_announced_and_read(void **state)
{
	struct cm_bytes msg = raw_cm(TCP_CM_CONNRESP, NULL, 0), request;
	struct sockaddr_in addr;
	struct exchange x;
	int listener = raw_listen(&addr, 1), peer;

	(void) state;
	msg.hdr.ext = htobe32(TCP_EXT_MAGIC | TCP_EXT_BASE | 0x8000);
	msg.hdr.incarnation = htobe64(0x0102030405060708);
	msg.hdr.eager_max = htobe32(1000);
	msg.hdr.credit = htobe32(5000);
	exchange_open(&x);
	start_connect(&x, &addr);
	peer = raw_accept(listener, exchange_drive, &x);
	raw_recv(peer, &request, sizeof(request.hdr) + 5, exchange_drive, &x);
	raw_send(peer, &msg, raw_len(&msg));
	exchange_finish(&x);
	assert_int_equal(x.err, 0);
	assert_true(x.cm->peer.ext);
	assert_int_equal(x.cm->peer.incarnation, 0x0102030405060708);
	assert_int_equal(x.cm->peer.eager_max, 1000);
	assert_int_equal(x.cm->peer.credit, 5000);
	exchange_close(&x);
	close(peer);
	close(listener);
}

/* Nobody listens: told from the engine, not from inside of the call, with both addresses. */
static void refused_connect_is_told_later(void **state)
{
	struct sockaddr_in addr;
	struct exchange x;

	(void) state;
	close(raw_listen(&addr, 1));
	exchange_open(&x);
	start_connect(&x, &addr);
	assert_false(x.over);
	exchange_finish(&x);
	assert_int_equal(x.err, FI_ECONNREFUSED);
	assert_non_null(strstr(x.text, "127.0.0.1"));
	assert_non_null(strstr(x.text, "is the peer running"));
	exchange_close(&x);
}

/* A full listener drops the SYN, like a firewall does. */
static void unanswered_connect_ends_at_the_deadline(void **state)
{
	struct sockaddr_in addr;
	struct exchange x;
	int listener = raw_listen(&addr, 0), first = raw_connect(&addr);

	(void) state;
	exchange_open(&x);
	start_connect(&x, &addr);
	for (int i = 0; i < 100; i++)
		exchange_drive(&x);
	assert_false(x.over);
	assert_int_equal(x.cm->state, TCP_CM_CONNECTING);
	test_added_ns += tcp_params.connect_timeout_ms * 1000000ULL;
	exchange_finish(&x);
	assert_int_equal(x.err, FI_ETIMEDOUT);
	assert_non_null(strstr(x.text, "FI_TCP_IFACE"));
	exchange_close(&x);
	close(first);
	close(listener);
}

/* A peer that is there may take its time to answer, but not for ever. */
static void late_answer_is_waited_for(void **state)
{
	struct sockaddr_in addr;
	struct cm_bytes request;
	struct exchange x;
	int listener = raw_listen(&addr, 1), peer;

	(void) state;
	exchange_open(&x);
	start_connect(&x, &addr);
	peer = raw_accept(listener, exchange_drive, &x);
	raw_recv(peer, &request, sizeof(request.hdr) + 5, exchange_drive, &x);
	test_added_ns += tcp_params.connect_timeout_ms * 2000000ULL;
	for (int i = 0; i < 100; i++)
		exchange_drive(&x);
	assert_false(x.over);
	test_added_ns += tcp_params.reply_timeout_ms * 1000000ULL;
	exchange_finish(&x);
	assert_int_equal(x.err, FI_ETIMEDOUT);
	exchange_close(&x);
	close(peer);
	close(listener);
}

/* A peer of this host has a time of its own for its answer about rings, after its acceptance. */
static void answer_about_rings_has_its_own_deadline(void **state)
{
	const struct tcp_cm_msg accept = { .type = TCP_CM_CONNRESP };
	struct sockaddr_in addr;
	struct cm_bytes request;
	struct exchange x;
	struct tcp_link link;
	int tcp = raw_listen(&addr, 1), listener, ret;

	(void) state;
	listener = tcp_local_listen(&(union fab_sockaddr) { .sin = addr }, 1);
	assert_true(listener >= 0);
	exchange_open(&x);
	x.cm->shared_memory = true;
	start_connect(&x, &addr);
	assert_int_equal(tcp_local_accept(listener, &link), 0);
	while ((ret = tcp_local_greet(&link, &(union fab_sockaddr) { .sin = addr })) == -EAGAIN)
		exchange_drive(&x);
	assert_int_equal(ret, 0);
	assert_non_null(link.local->pair);
	raw_recv(link.fd, &request, sizeof(request.hdr) + 5, exchange_drive, &x);
	test_added_ns += tcp_params.connect_timeout_ms * 900000ULL;
	assert_int_equal(tcp_cm_send(link.fd, &accept), 0);
	while (x.cm->state == TCP_CM_REPLY)
		exchange_drive(&x);
	assert_int_equal(x.cm->state, TCP_CM_RINGS);
	test_added_ns += tcp_params.connect_timeout_ms * 900000ULL;
	for (int i = 0; i < 100; i++)
		exchange_drive(&x);
	assert_false(x.over);
	test_added_ns += tcp_params.connect_timeout_ms * 200000ULL;
	exchange_finish(&x);
	assert_int_equal(x.err, FI_ETIMEDOUT);
	exchange_close(&x);
	tcp_link_close(&link);
	close(listener);
	close(tcp);
}

/* A connection that never sends its request does not stay. */
static void request_has_a_deadline(void **state)
{
	struct sockaddr_in addr;
	struct exchange x;
	int listener = raw_listen(&addr, 1), peer = raw_connect(&addr);

	(void) state;
	exchange_open(&x);
	exchange_accept(&x, listener, &addr);
	exchange_drive(&x);
	assert_false(x.over);
	test_added_ns += tcp_params.connect_timeout_ms * 1000000ULL;
	exchange_finish(&x);
	assert_int_equal(x.err, FI_ETIMEDOUT);
	exchange_close(&x);
	assert_true(raw_recv_end(peer, NULL, NULL));
	close(peer);
	close(listener);
}

/* Each socket call of an exchange fails in turn: it is refused, or ends with that error, and nothing is left behind. */
static long fail_at;

#define FAILING(name, ...) (fail_at-- ? fab_sock_libc.name(__VA_ARGS__) : (errno = EMFILE, -1))

static int failing_socket(int family, int type, int protocol)
{
	return FAILING(socket, family, type, protocol);
}

static int failing_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return FAILING(connect, fd, addr, len);
}

static int failing_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return FAILING(epoll_ctl, epfd, op, fd, event);
}

static ssize_t failing_send(int fd, const void *buf, size_t len, int flags)
{
	return FAILING(send, fd, buf, len, flags);
}

static ssize_t failing_recv(int fd, void *buf, size_t len, int flags)
{
	return FAILING(recv, fd, buf, len, flags);
}

static void each_socket_call_may_fail(void **state)
{
	static const struct tcp_cm_msg msg = { .type = TCP_CM_CONNREQ };
	struct cm_bytes reply = raw_cm(TCP_CM_CONNRESP, NULL, 0);
	struct fab_sock_ops ops = fab_sock_libc;
	struct sockaddr_in addr;
	int listener = raw_listen(&addr, 64), ret = -1;
	bool clean = false;

	(void) state;
	ops.socket = failing_socket;
	ops.connect = failing_connect;
	ops.epoll_ctl = failing_epoll_ctl;
	ops.send = failing_send;
	ops.recv = failing_recv;
	for (long n = 0; !clean; n++) {
		struct pollfd pfd = { .fd = listener, .events = POLLIN };
		struct exchange x;
		int peer = -1;

		assert_true(n < 100);
		exchange_open(&x);
		fab_sock = &ops;
		fail_at = n;
		ret = exchange_connect(&x, &addr, &msg);
		while (!ret && !x.over) {
			exchange_drive(&x);
			if (poll(&pfd, 1, 0) > 0) {
				peer = accept(listener, NULL, NULL);
				raw_send(peer, &reply, raw_len(&reply));
			}
		}
		if (ret)
			assert_int_equal(ret, -FI_EMFILE);
		else
			assert_true(x.err == 0 || x.err == EMFILE);
		clean = !ret && !x.err && fail_at >= 0;
		exchange_close(&x);
		fab_sock = &fab_sock_libc;
		if (peer >= 0)
			close(peer);
	}
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_byte_order_has_no_atomics_and_no_collectives),
		cmocka_unit_test(request_is_understood_or_refused),
		cmocka_unit_test(what_follows_a_request_at_once_refuses_it),
		cmocka_unit_test(answer_is_understood_or_refused),
		cmocka_unit_test(extension_is_announced_and_read),
		cmocka_unit_test(refused_connect_is_told_later),
		cmocka_unit_test(unanswered_connect_ends_at_the_deadline),
		cmocka_unit_test(late_answer_is_waited_for),
		cmocka_unit_test(answer_about_rings_has_its_own_deadline),
		cmocka_unit_test(request_has_a_deadline),
		cmocka_unit_test(each_socket_call_may_fail),
	};

	test_clock_start();
	return cmocka_run_group_tests_name("tcp/cm", tests, NULL, NULL);
}
