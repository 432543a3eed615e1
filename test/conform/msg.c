/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Messages: every call, every size, and what completions say. Source: fi_msg(3), fi_cq(3), fi_endpoint(3). */
#include <string.h>

#include "ops.h"

static const struct call_row send_rows[] = {
	{ "send", SEND }, { "sendv", SENDV }, { "sendmsg", SENDMSG }, { "inject", INJECT }, { "senddata", SENDDATA },
	{ "injectdata", INJECTDATA }, { "tsend", TSEND }, { "tsendv", TSENDV }, { "tsendmsg", TSENDMSG },
	{ "tinject", TINJECT }, { "tsenddata", TSENDDATA }, { "tinjectdata", TINJECTDATA },
};

static const struct call_row recv_rows[] = {
	{ "recv", RECV }, { "recvv", RECVV }, { "recvmsg", RECVMSG }, { "trecv", TRECV }, { "trecvv", TRECVV },
	{ "trecvmsg", TRECVMSG },
};

#define TAG 0x1122334455667788
#define KINDS (FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_RMA | FI_READ | FI_WRITE)

/* Each way of sending delivers the bytes, tells the truth in both completions, and inject makes none at the sender. */
TEST_TABLE(send_call, send_rows, 0)
{
	const struct call_info *info = &calls[ROW(send_rows)->call];
	bool tagged = info->caps == FI_TAGGED;
	struct comp tx, rx;
	struct pair p;
	char in[16];
	void *ctx;

	offer_check(info->caps);
	p = pair_open(t, .caps = info->caps);
	if (info->data && !p.a->info->domain_attr->cq_data_size)
		ABSENT("no remote CQ data");
	post(p.b, tagged ? TRECV : RECV, .buf = in, .len = sizeof(in), .tag = TAG);
	ctx = post(p.a, ROW(send_rows)->call, .buf = "sixteen bytes ok", .len = 16, .tag = TAG, .data = 0x01020304);
	rx = expect_recv(p.b, "sixteen bytes ok", 16);
	CHECK_EQ(rx.flags & KINDS, FI_RECV | info->caps);
	CHECK_EQ(rx.flags & FI_REMOTE_CQ_DATA, info->data ? FI_REMOTE_CQ_DATA : 0);
	if (info->data)
		CHECK_EQ(rx.data, 0x01020304);
	if (tagged)
		CHECK_EQ(rx.tag, TAG);
	if (!info->inject) {
		tx = expect_tx(p.a);
		CHECK(tx.ctx == ctx);
		CHECK_EQ(tx.flags & KINDS, FI_SEND | info->caps);
	}
	expect_no_completion(p.a);
}

/* Each way of receiving takes a message, and its completion has its context. */
TEST_TABLE(recv_call, recv_rows, 0)
{
	const struct call_info *info = &calls[ROW(recv_rows)->call];
	struct pair p;
	char in[16];
	void *ctx;

	offer_check(info->caps);
	p = pair_open(t, .caps = info->caps);
	ctx = post(p.b, ROW(recv_rows)->call, .buf = in, .len = sizeof(in), .tag = TAG);
	post(p.a, info->caps == FI_TAGGED ? TSEND : SEND, .buf = "hello", .len = 5, .tag = TAG);
	CHECK(expect_recv(p.b, "hello", 5).ctx == ctx);
	expect_tx(p.a);
}

struct size_row {
	const char *name;
	long long len;		/* negative: relative to inject_size */
};

#define INJECT_LIMIT (-1000)
static const struct size_row size_rows[] = {
	{ "0", 0 }, { "1", 1 }, { "7", 7 }, { "inject_limit", INJECT_LIMIT },
	{ "above_inject_limit", INJECT_LIMIT + 1 },
	{ "4K", 4096 }, { "9001", 9001 }, { "64K", 65536 }, { "1M", 1 << 20 }, { "8M", 8 << 20 },
};

static size_t row_len(const struct size_row *row, const struct fi_info *info)
{
	return row->len >= 0 ? (size_t) row->len : (size_t) (row->len - INJECT_LIMIT) + info->tx_attr->inject_size;
}

/* A message arrives whole: when its receive is there first, and when the message is. */
static void check_size(struct test *t, enum call send, enum call recv)
{
	struct pair p = pair_open(t);
	size_t len = row_len(ROW(size_rows), p.a->info);
	uint8_t *in = mem(t, len + 1), *out;
	unsigned int round;

	if (len > p.a->info->ep_attr->max_msg_size)
		ABSENT("longest message is %zu", p.a->info->ep_attr->max_msg_size);
	for (round = 0; round < 2; round++) {
		note("%s", round ? "unexpected" : "expected");
		out = mem_pattern(t, len, 3 + round);
		memset(in, 0, len);
		in[len] = 0xaa;
		if (round == 0)
			post(p.b, recv, .buf = in, .len = len, .tag = TAG);
		post(p.a, send, .buf = out, .len = len, .tag = TAG);
		if (round == 1) {
			idle(t);
			post(p.b, recv, .buf = in, .len = len, .tag = TAG);
		}
		expect_recv(p.b, out, len);
		CHECK_EQ(in[len], 0xaa);
		expect_tx(p.a);
	}
}

/* Messages of every size arrive whole, and completions have their length. */
TEST_TABLE(size, size_rows, FI_MSG)
{
	check_size(t, SEND, RECV);
}

/* The same of tagged messages. */
TEST_TABLE(tagged_size, size_rows, FI_TAGGED)
{
	check_size(t, TSEND, TRECV);
}

/* Any size can be scattered and gathered in unequal pieces. */
TEST_TABLE(size_iov, size_rows, FI_MSG)
{
	struct pair p = pair_open(t);
	size_t len = row_len(ROW(size_rows), p.a->info);
	uint8_t *in = mem(t, len), *out = mem_pattern(t, len, 5);
	struct iovec from[2] = { { out, len / 3 }, { out + len / 3, len - len / 3 } };
	struct iovec to[2] = { { in, len - len / 4 }, { in + len - len / 4, len / 4 } };

	if (len > p.a->info->ep_attr->max_msg_size)
		ABSENT("longest message is %zu", p.a->info->ep_attr->max_msg_size);
	if (p.a->info->tx_attr->iov_limit < 2 || p.b->info->rx_attr->iov_limit < 2)
		ABSENT("iov_limit is 1");
	post(p.b, RECVV, .iov = to, .iov_cnt = 2);
	post(p.a, SENDV, .iov = from, .iov_cnt = 2);
	CHECK_EQ(expect_rx(p.b).len, len);
	CHECK_MEM(in, out, len);
	expect_tx(p.a);
}

/* A message without bytes needs no buffer, on either side. */
TEST_PROV(zero_length_without_buffer, FI_MSG)
{
	struct pair p = pair_open(t);

	post_recv(p.b, NULL, 0);
	send_bytes(p.a, NULL, 0);
	CHECK_EQ(expect_rx(p.b).len, 0);
	expect_tx(p.a);
}

/* Nor a vector (Open MPI's acknowledgements of synchronous sends). */
TEST_PROV(zero_length_without_vector, FI_MSG | FI_TAGGED)
{
	struct pair p = pair_open(t);
	struct fi_msg_tagged tagged = { .addr = p.a->peer, .tag = 3 };
	struct fi_msg plain = { .addr = p.a->peer };
	int ret;

	p.a->tx_posted += 2;
	MUST((int) fi_trecvmsg(p.b->ep, &(struct fi_msg_tagged) { .addr = FI_ADDR_UNSPEC, .tag = 3 }, FI_COMPLETION));
	while ((ret = fi_tsendmsg(p.a->ep, &tagged, FI_COMPLETION)) == -FI_EAGAIN)
		sides_progress(t);
	MUST(ret);
	CHECK_EQ(expect_rx(p.b).len, 0);
	expect_tx(p.a);
	MUST((int) fi_recvmsg(p.b->ep, &(struct fi_msg) { .addr = FI_ADDR_UNSPEC }, FI_COMPLETION));
	while ((ret = fi_sendmsg(p.a->ep, &plain, FI_COMPLETION)) == -FI_EAGAIN)
		sides_progress(t);
	MUST(ret);
	CHECK_EQ(expect_rx(p.b).len, 0);
	expect_tx(p.a);
}

/* A receive longer than the message leaves the rest of its buffer alone. */
TEST_PROV(short_message_in_long_buffer, FI_MSG)
{
	struct pair p = pair_open(t);
	char in[64];

	memset(in, 'x', sizeof(in));
	post_recv(p.b, in, sizeof(in));
	send_bytes(p.a, "abc", 3);
	expect_recv(p.b, "abc", 3);
	CHECK(in[3] == 'x' && in[63] == 'x');
}

/* Buffers of an inject call belong to the caller again when it returns. */
TEST_PROV(inject_buffer_is_free_at_once, FI_MSG)
{
	struct pair p = pair_open(t);
	size_t len = p.a->info->tx_attr->inject_size;
	uint8_t *out = mem(t, len), *in = mem(t, len), *want = mem(t, len);
	unsigned int i;

	for (i = 0; i < 20; i++) {
		fill(out, len, i);
		fill(want, len, i);
		post_recv(p.b, in, len);
		post(p.a, INJECT, .buf = out, .len = len);
		memset(out, 0xff, len);
		expect_recv(p.b, want, len);
	}
}

/* So do those of fi_sendmsg() with FI_INJECT, which does complete. */
TEST_PROV(inject_flag_buffer_is_free_at_once, FI_MSG)
{
	struct pair p = pair_open(t);
	size_t len = p.a->info->tx_attr->inject_size;
	uint8_t *out = mem_pattern(t, len, 1), *in = mem(t, len), *want = mem_pattern(t, len, 1);

	post_recv(p.b, in, len);
	post(p.a, SENDMSG, .buf = out, .len = len, .flags = FI_INJECT);
	memset(out, 0xff, len);
	expect_recv(p.b, want, len);
	expect_tx(p.a);
}

/* Injected messages are not lost when the peer does not look for a while. */
TEST_PROV(inject_many_while_peer_is_away, FI_MSG, RELIABLE)
{
	enum { N = 200 };
	struct pair p = pair_open(t);
	uint32_t out, *in = mem(t, N * sizeof(*in));
	unsigned int i;

	check_link(p.a, p.b);
	for (i = 0; i < N; i++)
		post_recv(p.b, &in[i], sizeof(in[i]));
	for (i = 0; i < N; i++) {
		out = i;
		post(p.a, INJECT, .buf = &out, .len = sizeof(out));
	}
	expect_rx_cnt(p.b, N);
	for (i = 0; i < N; i++)
		CHECK_EQ(in[i], i);
}

/* More than inject_size cannot be injected: an error at once, no completion, and the link goes on. */
TEST_PROV(inject_over_limit, FI_MSG)
{
	struct pair p = pair_open(t);
	size_t len = p.a->info->tx_attr->inject_size + 1;
	uint8_t *out = mem(t, len);
	ssize_t ret;

	if (!run.ours)
		ABSENT("upstream asserts or does as it likes: fi_msg(3) names no error");
	check_link(p.a, p.b);
	ret = post_ret(p.a, INJECT, .buf = out, .len = len);
	CHECK_RET(ret, -FI_EMSGSIZE);
	ret = post_ret(p.a, SENDMSG, .buf = out, .len = len, .flags = FI_INJECT);
	CHECK_RET(ret, -FI_EMSGSIZE);
	expect_no_completion(p.a);
	check_link(p.a, p.b);
}

/* iov_limit entries are taken, one more is -FI_EINVAL. */
TEST_PROV(iov_limit, FI_MSG)
{
	struct pair p = pair_open(t);
	size_t tx = p.a->info->tx_attr->iov_limit, rx = p.b->info->rx_attr->iov_limit, i, cnt = MIN(tx, rx);
	uint8_t in[64] = { 0 }, out[64];
	struct iovec from[65], to[65];

	fill(out, sizeof(out), 9);
	CHECK(tx >= 1 && rx >= 1);
	if (tx > 64 || rx > 64)
		ABSENT("limits of %zu and %zu", tx, rx);
	for (i = 0; i < COUNT(from); i++) {
		from[i] = (struct iovec) { .iov_base = &out[i % 64], .iov_len = 1 };
		to[i] = (struct iovec) { .iov_base = &in[i % 64], .iov_len = 1 };
	}
	post(p.b, RECVV, .iov = to, .iov_cnt = cnt);
	post(p.a, SENDV, .iov = from, .iov_cnt = cnt);
	CHECK_EQ(expect_rx(p.b).len, cnt);
	CHECK_MEM(in, out, cnt);
	expect_tx(p.a);
	if (!run.ours)
		return;		/* upstream asserts */
	CHECK_RET(post_ret(p.a, SENDV, .iov = from, .iov_cnt = tx + 1), -FI_EINVAL);
	CHECK_RET(post_ret(p.a, SENDMSG, .iov = from, .iov_cnt = tx + 1), -FI_EINVAL);
	CHECK_RET(post_ret(p.b, RECVV, .iov = to, .iov_cnt = rx + 1), -FI_EINVAL);
	CHECK_RET(post_ret(p.b, RECVMSG, .iov = to, .iov_cnt = rx + 1), -FI_EINVAL);
	expect_no_completion(p.a);
	check_link(p.a, p.b);
}

/* Remote CQ data of all the bytes that cq_data_size promises. */
TEST_PROV(cq_data_width, FI_MSG)
{
	struct pair p = pair_open(t);
	size_t width = p.a->info->domain_attr->cq_data_size;
	uint64_t data = 0xfedcba9876543210;
	char in[4];
	struct comp c;

	if (!width)
		ABSENT("no remote CQ data");
	CHECK(width >= 4);
	if (width < 8)
		data &= (1ULL << (8 * width)) - 1;
	post_recv(p.b, in, sizeof(in));
	post(p.a, SENDMSG, .buf = "data", .len = 4, .data = data, .flags = FI_REMOTE_CQ_DATA);
	c = expect_recv(p.b, "data", 4);
	CHECK(c.flags & FI_REMOTE_CQ_DATA);
	CHECK_EQ(c.data, data);
}

/* fi_sendmsg() without FI_REMOTE_CQ_DATA sends none, whatever the data member holds. */
TEST_PROV(no_cq_data_without_flag, FI_MSG)
{
	struct pair p = pair_open(t);
	char in[4];

	post_recv(p.b, in, sizeof(in));
	post(p.a, SENDMSG, .buf = "data", .len = 4, .data = 99);
	CHECK(!(expect_recv(p.b, "data", 4).flags & FI_REMOTE_CQ_DATA));
}

/* An operation without context completes with NULL. */
TEST_PROV(null_context, FI_MSG)
{
	struct pair p = pair_open(t);
	char in[4];

	MUST(fi_recv(p.b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
	post(p.a, SEND, .buf = "null", .len = 4);
	CHECK(expect_rx(p.b).ctx == NULL);
	expect_tx(p.a);
}

/* ---- truncation */

/* A message longer than its buffer completes with FI_ETRUNC, and the next message still arrives whole. */
TEST_PROV(recv_trunc_keeps_stream_in_step, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t);
	char small[4], whole[8];

	post_recv(p.b, small, sizeof(small));
	post_recv(p.b, whole, sizeof(whole));
	send_bytes(p.a, "too long", 8);
	send_bytes(p.a, "12345678", 8);
	expect_rx_err(p.b, FI_ETRUNC, .olen = 4);
	expect_recv(p.b, "12345678", 8);
}

/* The error entry says what the operation was and how much was placed, and the buffer ends where it ends. */
TEST_PROV(recv_trunc_entry, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t);
	char in[8] = "--------";
	void *ctx;

	ctx = post(p.b, RECV, .buf = in, .len = 4);
	send_bytes(p.a, "abcdefgh", 8);
	expect_rx_err(p.b, FI_ETRUNC, .olen = 4, .len = 4, .ctx = ctx, .flags = FI_RECV | FI_MSG);
	CHECK_MEM(in, "abcd----", 8);
}

struct trunc_row {
	const char *name;
	size_t room, len;
	bool unexpected;
};

static const struct trunc_row trunc_rows[] = {
	{ "0_of_1", 0, 1, false }, { "1_of_64K", 1, 65536, false }, { "4K_of_1M", 4096, 1 << 20, false },
	{ "all_but_one_of_1M", (1 << 20) - 1, 1 << 20, false }, { "unexpected_4_of_8", 4, 8, true },
	{ "unexpected_4K_of_1M", 4096, 1 << 20, true },
};

/* The rest of a long message is drained, whatever its size, and however often. */
TEST_TABLE(recv_trunc_is_drained, trunc_rows, FI_MSG, RELIABLE)
{
	const struct trunc_row *row = ROW(trunc_rows);
	struct pair p = pair_open(t);
	uint8_t *in = mem(t, row->room + 1), *out = mem_pattern(t, row->len, 2);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		if (!row->unexpected)
			post_recv(p.b, in, row->room);
		send_bytes(p.a, out, row->len);
		if (row->unexpected) {
			idle(t);
			post_recv(p.b, in, row->room);
		}
		expect_rx_err(p.b, FI_ETRUNC, .olen = row->len - row->room);
		expect_tx(p.a);
		check_link(p.a, p.b);
	}
}

/* ---- many */

/*
 * Messages between two endpoints meet their receives in order (FI_ORDER_SAS), posted before and after they come.
 * Here and below the order of completions is left open: it is another promise (comp_order), which few providers
 * make.
 */
TEST_PROV(order_of_many, FI_MSG, RELIABLE)
{
	enum { N = 2000, AHEAD = 50 };
	struct pair p = pair_open(t);
	uint32_t *in = mem(t, N * sizeof(*in)), *out = mem(t, N * sizeof(*out)), i, posted = 0;

	CHECK(p.a->info->tx_attr->msg_order & FI_ORDER_SAS);
	for (i = 0; i < N; i++) {
		/* Sometimes ahead of the sender, sometimes behind. */
		while (posted < N && posted < i + (i / 300 % 2 ? AHEAD : 1)) {
			post_recv(p.b, &in[posted], sizeof(in[0]));
			posted++;
		}
		out[i] = i;
		post(p.a, SEND, .buf = &out[i], .len = sizeof(out[0]));
	}
	while (posted < N)
		post_recv(p.b, &in[posted++], sizeof(in[0]));
	expect_rx_cnt(p.b, N);
	for (i = 0; i < N; i++)
		CHECK_EQ(in[i], i);
	expect_tx_cnt(p.a, N);
	expect_no_completion(p.a);
}

/* Injected messages keep their order, too, however fast they come. */
TEST_PROV(order_of_injected, FI_MSG, RELIABLE)
{
	enum { N = 10000 };
	struct pair p = pair_open(t);
	uint32_t *in = mem(t, N * sizeof(*in)), i, posted = 0;

	for (i = 0; i < N; i++) {
		for (; posted < N && posted < i + 100; posted++)
			post_recv(p.b, &in[posted], sizeof(in[0]));
		post(p.a, INJECT, .buf = &i, .len = sizeof(i));
	}
	expect_rx_cnt(p.b, N);
	for (i = 0; i < N; i++)
		CHECK_EQ(in[i], i);
}

/* Large and small messages meet their receives in order, whatever the order in which they are complete. */
TEST_PROV(order_of_mixed_sizes, FI_MSG, RELIABLE)
{
	enum { N = 40 };
	static const size_t lens[] = { 8, 300000, 64, 0, 70000, 4096, 1, 1 << 20 };
	struct pair p = pair_open(t);
	uint8_t *in[N], *out[N];
	size_t i;

	for (i = 0; i < N; i++) {
		in[i] = mem(t, 1 << 20);
		out[i] = mem_pattern(t, lens[i % COUNT(lens)], (unsigned int) i);
		post_recv(p.b, in[i], 1 << 20);
	}
	for (i = 0; i < N; i++)
		send_bytes(p.a, out[i], lens[i % COUNT(lens)]);
	expect_rx_cnt(p.b, N);
	for (i = 0; i < N; i++)
		CHECK_MEM(in[i], out[i], lens[i % COUNT(lens)]);
	expect_tx_cnt(p.a, N);
}

/* Both directions at once, with messages that no socket buffer holds. */
TEST_PROV(both_directions_large, FI_MSG, RELIABLE)
{
	enum { N = 4, LEN = 4 << 20 };
	struct pair p = pair_open(t);
	uint8_t *in[2 * N], *out = mem_pattern(t, LEN, 4);
	unsigned int i;

	for (i = 0; i < 2 * N; i++) {
		in[i] = mem(t, LEN);
		post_recv(i % 2 ? p.a : p.b, in[i], LEN);
	}
	for (i = 0; i < 2 * N; i++)
		send_bytes(i % 2 ? p.b : p.a, out, LEN);
	for (i = 0; i < 2 * N; i++)
		expect_recv(i % 2 ? p.a : p.b, out, LEN);
	expect_tx_cnt(p.a, N);
	expect_tx_cnt(p.b, N);
}

/* Unexpected messages wait, in order, until there is a receive: small ones by hundreds. */
TEST_PROV(unexpected_wait_in_order, FI_MSG, RELIABLE)
{
	enum { N = 300 };
	struct pair p = pair_open(t);
	uint32_t *in = mem(t, N * sizeof(*in)), *out = mem(t, N * sizeof(*out)), i;

	for (i = 0; i < N; i++) {
		out[i] = i;
		post(p.a, SEND, .buf = &out[i], .len = sizeof(out[0]));
	}
	idle(t);
	for (i = 0; i < N; i++)
		post_recv(p.b, &in[i], sizeof(in[0]));
	expect_rx_cnt(p.b, N);
	for (i = 0; i < N; i++)
		CHECK_EQ(in[i], i);
	expect_tx_cnt(p.a, N);
}

/* A full transmit queue says -FI_EAGAIN, no later than tx_attr->size operations; everything it took arrives. */
TEST_PROV(tx_full_says_eagain, FI_MSG, RELIABLE)
{
	enum { LEN = 32 };		/* sent unasked: what waits for its receiver does not count */
	struct pair p = pair_open(t, .tx_size = 16, .tx_op_flags = FI_DELIVERY_COMPLETE);
	size_t size = p.a->info->tx_attr->size, n, i;
	uint8_t *out = mem_pattern(t, LEN, 1), *in = mem(t, LEN);
	ssize_t ret = 0;

	if (!run.ours)
		ABSENT("the size is a guide only: fi_endpoint(3)");
	if (size > 512)
		ABSENT("tx size is %zu", size);
	if (run.progress == FI_PROGRESS_AUTO)
		ABSENT("a peer that makes progress by itself keeps what has no receive, and acknowledges it");
	check_link(p.a, p.b);
	for (n = 0; n <= size; n++) {
		ret = try_op(p.a, SEND, .buf = out, .len = LEN);
		if (ret)
			break;
	}
	CHECK_RET(ret, -FI_EAGAIN);
	for (i = 0; i < n; i++) {
		post_recv(p.b, in, LEN);
		expect_recv(p.b, out, LEN);
		memset(in, 0, LEN);
	}
	expect_tx_cnt(p.a, n);
	check_link(p.a, p.b);
}

/* -FI_EAGAIN is cured by reading the CQ of the sender and the receiver, again and again. */
TEST_PROV(tx_full_recovers, FI_MSG, RELIABLE)
{
	enum { LEN = 128 << 10, N = 600 };
	struct pair p = pair_open(t);
	uint8_t *out = mem_pattern(t, LEN, 1), *in = mem(t, LEN);
	size_t sent = 0, got = 0;
	struct wait w = wait_begin();

	post_recv(p.b, in, LEN);
	while (got < N) {
		while (sent < N && !try_op(p.a, SEND, .buf = out, .len = LEN))
			sent++;
		if (rx_waiting(p.b)) {
			expect_recv(p.b, out, LEN);
			if (++got < N)
				post_recv(p.b, in, LEN);
			w = wait_begin();
		}
		wait_more(t, &w, "a message");
	}
	expect_tx_cnt(p.a, N);
}

/* A receive may be posted as often as rx_attr->size says, before anything comes. */
TEST_PROV(rx_size_receives_fit, FI_MSG)
{
	struct pair p = pair_open(t);
	size_t size = MIN(p.b->info->rx_attr->size, 4096), i;
	uint32_t *in = mem(t, size * sizeof(*in));

	for (i = 0; i < size; i++)
		MUST(try_op(p.b, RECV, .buf = &in[i], .len = sizeof(in[0])));
	send_bytes(p.a, "abcd", 4);
	CHECK_MEM(ctx_buf(p.b, expect_recv(p.b, "abcd", 4).ctx), "abcd", 4);
	CHECK_MEM(&in[0], "abcd", 4);
}

/* Beyond that it is taken, or refused with -FI_EAGAIN; what was taken is filled, in order. */
TEST_PROV(rx_full_says_eagain, FI_MSG)
{
	enum { MOST = 1000 };
	struct pair p = pair_open(t, .rx_size = 16);
	size_t size = p.b->info->rx_attr->size, n, i;
	uint32_t *in = mem(t, MOST * sizeof(*in)), out;
	ssize_t ret = 0;

	if (size > MOST / 2)
		ABSENT("rx size is %zu", size);
	for (n = 0; n < MOST && !ret; n += !ret)
		ret = try_op(p.b, RECV, .buf = &in[n], .len = sizeof(in[0]));
	CHECK(!ret || ret == -FI_EAGAIN);
	CHECK(n >= size);
	for (i = 0; i < n; i++) {
		out = (uint32_t) i + 1;
		send_bytes(p.a, &out, sizeof(out));
		expect_recv(p.b, &out, sizeof(out));
	}
}

/* An endpoint may send to itself. */
TEST_PROV(self_send, FI_MSG, UNCONNECTED)
{
	struct side *s = side_open(t);
	uint8_t *in = mem(t, 1024), *out = mem_pattern(t, 1024, 8);
	fi_addr_t me = side_insert(s, s);

	post_recv(s, in, 1024);
	post(s, SEND, .buf = out, .len = 1024, .addr = &me);
	expect_recv(s, out, 1024);
	expect_tx(s);
}

/* An endpoint may send itself more than a socket holds. */
TEST_PROV(self_send_large, FI_MSG, RDM_ONLY)
{
	enum { LEN = 8 << 20 };
	struct side *s = side_open(t);
	uint8_t *in = mem(t, LEN), *out = mem_pattern(t, LEN, 8);
	fi_addr_t me = side_insert(s, s);

	post(s, SEND, .buf = out, .len = LEN, .addr = &me);
	idle(t);
	post_recv(s, in, LEN);
	expect_recv(s, out, LEN);
	expect_tx(s);
}
