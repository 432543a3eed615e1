/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer whose handshake is rubbish, or breaks off. After each, that connection is closed (or the one access
 * refused), every operation of ours has its one completion, and a good peer can still talk to the endpoint.
 */
#include "fault/victim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

/* ---- handshake ---- */

static const struct bad_hello {
	const char *what;
	size_t len;			/* bytes sent, then the peer waits for the hang-up */
	uint8_t pos, value;		/* byte replaced in a good hello */
} bad_hello[] = {
	{ "version of the handshake", 40, 0, 4 },
	{ "version 0", 40, 0, 0 },
	{ "type that nobody opens with", 40, 1, TCP_CM_CONNRESP },
	{ "type unknown", 40, 1, 77 },
	{ "more private data than is allowed", 40, 2, 0xff },
};

static void handshake_garbage_is_hung_up_on(void **state)
{
	struct victim v;

	(void) state;
	victim_open(&v);
	for (size_t i = 0; i < sizeof(bad_hello) / sizeof(*bad_hello); i++) {
		struct hello hello = hello_make(false);
		int fd = raw_connect(&v);

		((uint8_t *) &hello)[bad_hello[i].pos] = bad_hello[i].value;
		raw_send(fd, &hello, bad_hello[i].len);
		raw_closed(&v, fd);
	}
	still_works(&v);
	victim_close(&v);
}

static void handshake_byte_by_byte_is_accepted(void **state)
{
	struct hello hello = hello_make(true), answer;
	struct victim v;
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_connect(&v);
	for (size_t i = 0; i < sizeof(hello); i++) {
		raw_send(fd, (uint8_t *) &hello + i, 1);
		progress(&v);
	}
	raw_recv_all(&v, fd, &answer, sizeof(answer));
	assert_int_equal(answer.hdr.type, TCP_CM_CONNRESP);
	close(fd);
	victim_close(&v);
}

static void peer_vanishes_at_each_byte_of_the_handshake(void **state)
{
	struct hello hello = hello_make(true);
	struct victim v;

	(void) state;
	victim_open(&v);
	for (size_t len = 0; len <= sizeof(hello); len++) {
		int fd = raw_connect(&v);

		raw_send(fd, &hello, len);
		progress(&v);
		close(fd);
		progress(&v);
	}
	still_works(&v);
	victim_close(&v);
}

/* ---- which contexts a request names ---- */

static const struct ctx_hello {
	const char *what;
	bool scalable;			/* the victim is */
	bool ext, said;			/* our extension, and contexts, are announced */
	uint16_t rx_ctx, tx_ctx;
	uint16_t len;			/* of the private data */
	uint8_t type;			/* of the answer */
	uint32_t refusal;
} ctx_hello[] = {
	{ "announced and missing", false, true, true, 0, 0, 8, TCP_CM_NACK, 0 },
	{ "announced and cut", false, true, true, 0, 0, 15, TCP_CM_NACK, 0 },
	{ "no private data at all", false, true, true, 0, 0, 0, TCP_CM_NACK, 0 },
	{ "the only one", false, true, true, 0, 3, 16, TCP_CM_CONNRESP, 0 },
	{ "of an endpoint that has one", false, true, true, 1, 0, 16, TCP_CM_NACK, TCP_REFUSE_NO_CTX },
	{ "far beyond", false, true, true, 0xffff, 0, 16, TCP_CM_NACK, TCP_REFUSE_NO_CTX },
	{ "sender beyond the limit", false, true, true, 0, TCP_CTX_MAX, 16, TCP_CM_NACK, 0 },
	{ "sender that is not scalable", false, true, true, 0, TCP_CTX_NONE, 16, TCP_CM_CONNRESP, 0 },
	{ "not announced", false, true, false, 1, 0, 16, TCP_CM_CONNRESP, 0 },
	{ "the first of two", true, true, true, 0, 0, 16, TCP_CM_CONNRESP, 0 },
	{ "the second, which is not open", true, true, true, 1, 0, 16, TCP_CM_NACK, 0 },
	{ "a third of two", true, true, true, 2, 0, 16, TCP_CM_NACK, TCP_REFUSE_NO_CTX },
	{ "none named: the first", true, true, false, 0, 0, 8, TCP_CM_CONNRESP, 0 },
	{ "a scalable endpoint, from upstream", true, false, false, 0, 0, 8, TCP_CM_NACK, TCP_REFUSE_NO_EXT },
};

/* Ask for a connection as the row says, and read the answer's header. */
static struct tcp_cm_hdr ctx_ask(struct victim *v, const struct ctx_hello *row)
{
	struct {
		struct hello hello;
		struct tcp_rdm_ctx ctx;
	} msg = { .hello = hello_make(row->ext), .ctx = { htons(row->rx_ctx), htons(row->tx_ctx), 0 } };
	struct tcp_cm_hdr answer;
	int fd = raw_connect(v);

	if (row->said)
		msg.hello.hdr.ext |= htonl(TCP_EXT_CTX);
	msg.hello.hdr.seg_size = htons(row->len);
	raw_send(fd, &msg, sizeof(msg.hello.hdr) + row->len);
	raw_recv_all(v, fd, &answer, sizeof(answer));
	close(fd);
	return answer;
}

static void contexts_that_are_not_there_are_refused(void **state)
{
	struct victim v[2];

	(void) state;
	victim_open_as(&v[0], false);
	victim_open_as(&v[1], true);
	for (size_t i = 0; i < sizeof(ctx_hello) / sizeof(*ctx_hello); i++) {
		const struct ctx_hello *row = &ctx_hello[i];
		struct tcp_cm_hdr answer = ctx_ask(&v[row->scalable], row);
		uint32_t ext = ntohl(answer.ext);

		if (answer.type != row->type)
			fail_msg("%s: answered with %u", row->what, answer.type);
		if (row->type == TCP_CM_CONNRESP)
			assert_int_equal(!!(ext & TCP_EXT_CTX), row->said);
		else
			assert_int_equal(ext & TCP_EXT_AUTH ? ntohl(answer.eager_max) : 0, row->refusal);
	}
	still_works(&v[0]);
	victim_close(&v[0]);
	victim_close(&v[1]);
}

/* The same context asks again: while its first connection lives that is once too many, and then it is believed. */
static void a_context_that_asks_again_is_believed(void **state)
{
	struct {
		struct hello hello;
		struct tcp_rdm_ctx ctx;
	} msg = { .hello = hello_make(true), .ctx = { 0, htons(7), 0 } };
	static const uint8_t want[] = { TCP_CM_CONNRESP, TCP_CM_NACK, TCP_CM_CONNRESP };
	struct tcp_cm_hdr answer;
	struct victim v;
	int fd[3];

	(void) state;
	victim_open_as(&v, true);
	msg.hello.hdr.ext |= htonl(TCP_EXT_CTX);
	msg.hello.hdr.seg_size = htons(16);
	for (int i = 0; i < 3; i++) {
		fd[i] = raw_connect(&v);
		raw_send(fd[i], &msg, sizeof(msg));
		raw_recv_all(&v, fd[i], &answer, sizeof(answer));
		assert_int_equal(answer.type, want[i]);
	}
	raw_closed(&v, fd[0]);
	close(fd[1]);
	close(fd[2]);
	victim_close(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshake_garbage_is_hung_up_on),
		cmocka_unit_test(handshake_byte_by_byte_is_accepted),
		cmocka_unit_test(peer_vanishes_at_each_byte_of_the_handshake),
		cmocka_unit_test(contexts_that_are_not_there_are_refused),
		cmocka_unit_test(a_context_that_asks_again_is_believed),
	};

	setenv("FI_LOG_LEVEL", "silent", 0);	/* every one of them is worth a line */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
