/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints closed with work to do, and peers that are not there, go away, or come back (gone.killed.c: that die).
 * Whatever happens: an operation that was accepted completes once, in time, unless its own endpoint was closed. Source:
 * fi_endpoint(3), fi_cm(3), fi_cq(3), and what this library promises beyond (marked by run.ours).
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "ops.h"
#include "rawsock.h"

enum { BIG = 8 << 20 };

/* ---- closing with operations pending */

/* Receives that wait when their endpoint is closed are dropped, or completed as cancelled: none twice, none as good. */
TEST_PROV(close_with_receives, FI_MSG)
{
	struct pair p = pair_open(t);
	char in[10][4];
	size_t i;

	for (i = 0; i < 10; i++)
		post_recv(p.a, in[i], 4);
	side_close_ep(p.a);
	idle(t);
	CHECK(rx_waiting(p.a) <= 10);
	for (i = p.a->rx.taken; i < p.a->rx.cnt; i++)
		CHECK(p.a->rx.list[i].err == FI_ECANCELED);
}

/* Sends that cannot leave: closing does not wait for them for ever. */
TEST_PROV(close_with_sends, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t);
	uint8_t *out = mem(t, BIG);
	double start;
	size_t i;

	check_link(p.a, p.b);
	for (i = 0; i < 4; i++)
		try_op(p.a, SEND, .buf = out, .len = BIG);
	side_progress(p.a);
	start = now_ms();
	side_close_ep(p.a);
	CHECK(now_ms() - start < 3000.0 * run.slow);
}

/* The peer of such a close is not left with half a message: its receive completes in error, or is still posted. */
TEST_PROV(close_in_the_middle_of_a_message, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	uint8_t *out = mem_pattern(t, BIG, 1), *in = mem(t, BIG), *in2 = mem(t, BIG);
	struct wait w;

	if (!run.ours)
		ABSENT("upstream leaves the receive waiting");
	if (p.b->info->domain_attr->data_progress == FI_PROGRESS_AUTO)
		ABSENT("progress threads would bring all of it");
	check_link(p.a, p.b);
	c->peer = side_insert(c, p.b);
	post_recv(p.b, in, BIG);
	send_bytes(p.a, out, BIG);
	/* A part of it arrives. */
	for (w = wait_begin(); !in[0] && now_ms() < w.until; ) {
		side_progress(p.a);
		side_progress(p.b);
		if (in[4096])
			break;
	}
	CHECK_EQ(rx_waiting(p.b), 0);
	side_close_ep(p.a);
	idle(t);
	if (rx_waiting(p.b))
		CHECK(p.b->rx.list[p.b->rx.taken++].err != 0);
	/* Somebody else is served, by the receive that is left or by a new one. */
	post_recv(p.b, in2, BIG);
	send_bytes(c, out, BIG);
	CHECK_EQ(expect_rx(p.b).len, BIG);
}

/* ---- peers that are not there */

/* The name of an endpoint that is no more. */
static fi_addr_t dead_addr(struct test *t, struct side *s)
{
	struct side *gone = side_open(t);
	fi_addr_t addr = side_insert(s, gone);

	side_close(gone);
	return addr;
}

/* An address where nobody listens. */
TEST_PROV(send_to_nobody_fails, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t);
	fi_addr_t nobody = dead_addr(t, p.a);
	int err;

	if (!run.ours)
		ABSENT("upstream says -FI_EAGAIN for ever");
	err = send_fails(p.a, nobody);
	if (err != FI_ECONNREFUSED && err != FI_EHOSTUNREACH)
		FAIL("error %s", fi_strerror(err));
	/* The second time it is known. */
	err = send_fails(p.a, nobody);
	CHECK(err == FI_ECONNREFUSED || err == FI_EHOSTUNREACH);
	check_link(p.a, p.b);
}

/* Each of many operations that wait for a connection which fails completes, in order, once. */
TEST_PROV(all_operations_to_nobody_fail, FI_MSG | FI_TAGGED | FI_RMA, RDM_ONLY)
{
	struct pair p = pair_open(t);
	fi_addr_t nobody = dead_addr(t, p.a);
	static const enum call kinds[] = { SEND, TSEND, WRITE, READ, SENDDATA };
	size_t posted = 0, i;
	char buf[4] = "";
	ssize_t ret;

	if (!run.ours)
		ABSENT("upstream says -FI_EAGAIN for ever");
	for (i = 0; i < 20; i++) {
		ret = post_ret(p.a, kinds[i % COUNT(kinds)], .buf = buf, .len = 4, .addr = &nobody, .key = 1);
		CHECK(ret <= 0 && ret != -FI_EAGAIN);
		posted += !ret;
	}
	for (i = 0; i < posted; i++)
		expect_tx_failed(p.a);
	expect_no_completion(p.a);
	check_link(p.a, p.b);
}

/* Injected messages to nobody vanish without a trace. */
TEST_PROV(inject_to_nobody, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t);
	fi_addr_t nobody = dead_addr(t, p.a);
	struct fi_context2 last;
	size_t i;

	if (!run.ours)
		ABSENT("upstream says -FI_EAGAIN for ever");
	for (i = 0; i < 10; i++)
		post_ret(p.a, INJECT, .buf = "lost", .len = 4, .addr = &nobody);
	/* an error may be told, also of an injected message, and not behind that of the last */
	if (!post_ret(p.a, SEND, .buf = "lost", .len = 4, .addr = &nobody, .ctx = &last)) {
		while (expect_tx_failed(p.a).ctx != &last)
			;
	}
	idle(t);
	while (tx_waiting(p.a))
		expect_tx_failed(p.a);
	check_link(p.a, p.b);
}

/* A socket that listens, of which nobody takes a connection: a peer that does not answer. */
static fi_addr_t mute_addr(struct test *t, struct side *s)
{
	struct sockaddr_storage addr;
	fi_addr_t fi_addr;

	raw_listen(t, s->name, s->name_len, &addr);
	CHECK_RET(fi_av_insert(s->av, &addr, 1, &fi_addr, 0, NULL), 1);
	return fi_addr;
}

/* What waits for a connection has not reached the wire, and can be cancelled: messages and RMA. */
TEST_PROV(cancel_while_connecting, FI_MSG | FI_TAGGED | FI_RMA, RDM_ONLY)
{
	static const enum call kinds[] = { SEND, TSEND, WRITE, READ };
	struct pair p = pair_open(t);
	fi_addr_t mute;
	char buf[4] = "";
	size_t i, n = 0;
	void *ctx[4];

	if (!run.ours || !has_sockaddr())
		ABSENT("upstream cannot cancel sends");
	mute = mute_addr(t, p.a);
	for (i = 0; i < COUNT(kinds); i++) {
		struct fi_context2 *c = mem(t, sizeof(*c));

		if (try_op(p.a, kinds[i], .buf = buf, .len = 4, .addr = &mute, .ctx = c))
			continue;
		ctx[n++] = c;
	}
	if (!n)
		ABSENT("operations are refused with -FI_EAGAIN until there is a connection");
	for (i = n; i-- > 0; ) {
		MUST(fi_cancel(&p.a->ep->fid, ctx[i]));
		CHECK(expect_tx_err(p.a, FI_ECANCELED).ctx == ctx[i]);
	}
	expect_no_completion(p.a);
	check_link(p.a, p.b);
}

/* ---- peers that go away */

/* What waits for a peer that closes completes in error: a large message, one after it, a read. */
TEST_PROV(peer_closes_with_our_work, FI_MSG | FI_RMA, RELIABLE)
{
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	struct region r = region_open(p.b, NULL, BIG, FI_REMOTE_READ | FI_REMOTE_WRITE);
	uint8_t *out = mem(t, BIG), *in = mem(t, BIG);
	/* A progress thread or a device of the peer may have done some of it before, or have met the region's end; and
	 * a device may find nobody there before it hears that the peer has closed. */
	bool by_itself = p.b->info->domain_attr->data_progress == FI_PROGRESS_AUTO || !strncmp(run.prov, "verbs", 5);
	size_t i;

	if (!run.ours)
		ABSENT("upstream's flush differs by provider");
	check_link(p.a, p.b);
	send_bytes(p.a, out, BIG);
	post(p.a, READ, .buf = in, .len = BIG, .raddr = r.addr, .key = r.key);
	post(p.a, WRITE, .buf = out, .len = BIG, .raddr = r.addr, .key = r.key);
	send_bytes(p.a, out, 8);
	side_progress(p.a);
	close_now(t, &r.mr->fid);
	side_close_ep(p.b);
	for (i = 0; i < 4; i++) {
		struct wait w = wait_begin();
		struct comp c;

		while (!tx_waiting(p.a))
			wait_more(t, &w, "every operation to end");
		c = p.a->tx.list[p.a->tx.taken++];
		if (by_itself && (!c.err || c.err == FI_EACCES || c.err == FI_ENOKEY || c.err == FI_EHOSTUNREACH))
			continue;
		if (c.err != FI_ECONNRESET && c.err != FI_ECONNREFUSED && c.err != FI_ENOTCONN &&
		    c.err != FI_ECONNABORTED && c.err != FI_ESHUTDOWN)
			FAIL("operation %zu: error %s", i, fi_strerror(c.err));
	}
	expect_no_completion(p.a);
}

/* Receives of a connection that is gone complete in error, each once, in order; and the event comes once. */
TEST_PROV(peer_closes_with_our_receives, FI_MSG, CONNECTED)
{
	struct pair p = pair_open(t);
	char in[5][4];
	void *ctx[5];
	size_t i;

	if (!run.ours)
		ABSENT("upstream's flush differs by provider");
	for (i = 0; i < 5; i++)
		ctx[i] = post(p.a, RECV, .buf = in[i], .len = 4);
	send_bytes(p.b, "1111", 4);
	expect_recv(p.a, "1111", 4);
	side_close_ep(p.b);
	expect_event(p.a, FI_SHUTDOWN);
	for (i = 1; i < 5; i++) {
		struct wait w = wait_begin();

		while (!rx_waiting(p.a))
			wait_more(t, &w, "the receives to be flushed");
		CHECK(p.a->rx.list[p.a->rx.taken].err != 0);
		CHECK(p.a->rx.list[p.a->rx.taken++].ctx == ctx[i]);
	}
	expect_no_completion(p.a);
	expect_no_event(p.a);
}

/* Receives of an unconnected endpoint outlive any peer. */
TEST_PROV(receives_outlive_peers, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	char in[4];

	check_link(p.a, p.b);
	c->peer = side_insert(c, p.b);
	post_recv(p.b, in, 4);
	side_close_ep(p.a);
	expect_no_completion(p.b);
	send_bytes(c, "abcd", 4);
	expect_recv(p.b, "abcd", 4);
}

/* What a peer sent before it closed is not lost. */
TEST_PROV(last_words_arrive, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t);
	uint32_t in[20], out[20], i;

	for (i = 0; i < 20; i++) {
		out[i] = i;
		post_recv(p.b, &in[i], 4);
	}
	for (i = 0; i < 20; i++)
		send_bytes(p.a, &out[i], 4);
	expect_tx_cnt(p.a, 20);
	side_close_ep(p.a);
	expect_rx_cnt(p.b, 20);
	for (i = 0; i < 20; i++)
		CHECK_EQ(in[i], i);
}

/* A side at the address of one that is closed. */
static struct side *side_reborn(struct test *t, const uint8_t *name, size_t len)
{
	struct side *again = domain_side(t);

	memcpy(again->info->src_addr, name, again->info->src_addrlen);
	side_open_rest(again);
	CHECK_EQ(again->name_len, len);
	CHECK_MEM(again->name, name, len);
	return again;
}

/* The first sends may still find the connection of a peer that has gone. */
static void send_until_it_fails(struct side *s)
{
	struct wait w = wait_begin();

	while (!post_ret(s, SEND, .buf = "lost", .len = 4)) {
		while (!tx_waiting(s))
			wait_more(s->t, &w, "a completion");
		if (s->tx.list[s->tx.taken++].err)
			return;
		wait_more(s->t, &w, "a send to fail");
	}
}

/* A receive that names a peer is no operation to it: it stays, also one that is posted when the peer is known to be
 * gone, and takes what the peer sends when it has come back. It can be cancelled meanwhile. */
TEST_PROV(directed_receives_outlive_their_peer, FI_MSG | FI_DIRECTED_RECV, RDM_ONLY)
{
	struct side *a = side_open(t), *b = side_open(t), *again;
	uint8_t name[128];
	char in[3][4];
	size_t len;
	void *ctx;

	if (!run.ours || !has_sockaddr())
		ABSENT("upstream may take the new life for the old");
	a->peer = side_insert(a, b);
	check_link(a, b);
	post(a, RECV, .buf = in[0], .len = 4, .addr = &a->peer);
	memcpy(name, b->name, len = b->name_len);
	side_close(b);
	send_until_it_fails(a);
	post(a, RECV, .buf = in[1], .len = 4, .addr = &a->peer);
	ctx = post(a, RECV, .buf = in[2], .len = 4, .addr = &a->peer);
	idle(t);
	CHECK_EQ(rx_waiting(a), 0);
	MUST(fi_cancel(&a->ep->fid, ctx));
	expect_rx_err(a, FI_ECANCELED, .ctx = ctx);
	again = side_reborn(t, name, len);
	again->peer = side_insert(again, a);
	send_bytes(again, "new1", 4);
	expect_recv(a, "new1", 4);
	CHECK_MEM(in[0], "new1", 4);
	send_bytes(again, "new2", 4);
	expect_recv(a, "new2", 4);
	CHECK_MEM(in[1], "new2", 4);
	expect_tx_cnt(again, 2);
}

/* A peer that starts again at the same address is reached again, by the fi_addr_t known. */
TEST_PROV(peer_comes_back, FI_MSG, RDM_ONLY)
{
	struct side *a = side_open(t), *b = side_open(t), *again;
	unsigned int life;

	if (!run.ours || !has_sockaddr())
		ABSENT("upstream may take the new life for the old");
	a->peer = side_insert(a, b);
	check_link(a, b);
	for (life = 0; life < 3; life++) {
		struct wait w = wait_begin();
		uint8_t name[128];
		char in[4];

		note("life %u", life);
		memcpy(name, b->name, b->name_len);
		side_close(b);
		again = side_reborn(t, name, b->name_len);
		post_recv(again, in, 4);
		/* The first sends may find the old connection dead. */
		while (!rx_waiting(again)) {
			while (tx_waiting(a))
				a->tx.taken++;
			try_op(a, INJECT, .buf = "abcd", .len = 4);
			wait_more(t, &w, "the new life of the peer");
		}
		expect_recv(again, "abcd", 4);
		b = again;
		idle(t);
	}
}
