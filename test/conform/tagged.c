/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tagged messages (calls and sizes are in msg.c, peek and claim in tagged.peek.c): matching, order. Source:
 * fi_tagged(3). */
#include <inttypes.h>
#include <string.h>

#include "ops.h"

/* ---- matching */

struct match_row {
	const char *name;
	uint64_t tag, ignore, sent;
	bool match;
};

static const struct match_row match_rows[] = {
	{ "equal", 5, 0, 5, true },
	{ "other", 5, 0, 6, false },
	{ "zero", 0, 0, 0, true },
	{ "all_bits", UINT64_MAX, 0, UINT64_MAX, true },
	{ "top_bit_differs", 1, 0, 1ULL << 63 | 1, false },
	{ "ignored_low_bits", 0xab00, 0xff, 0xab42, true },
	{ "ignored_bits_in_own_tag", 0xab42, 0xff, 0xab00, true },
	{ "outside_of_mask", 0xab00, 0xff, 0xac00, false },
	{ "any", 77, UINT64_MAX, 12345, true },
	{ "ignored_high_half", 9, 0xffffffff00000000, 0xdead00000009, true },
	{ "ignored_hole", 0xf0f, 0x0f0, 0xfff, true },
	{ "ignored_hole_missed", 0xf0f, 0x0f0, 0x1fff, false },
};

/* send_tag & ~ignore == recv_tag & ~ignore, for posted receives and for waiting messages; the completion has the
 * sent tag. */
TEST_TABLE(match, match_rows, FI_TAGGED)
{
	const struct match_row *row = ROW(match_rows);
	struct pair p = pair_open(t);
	char in[4][4] = { { 0 } };
	struct comp c;

	if ((row->tag | row->sent) >> 63 && !(p.b->info->ep_attr->mem_tag_format >> 63))
		ABSENT("mem_tag_format is 0x%" PRIx64, p.b->info->ep_attr->mem_tag_format);
	note("posted first");
	post_trecv(p.b, in[0], 4, row->tag, row->ignore);
	tsend_bytes(p.a, "abcd", 4, row->sent);
	if (!row->match) {
		expect_tx(p.a);
		expect_no_completion(p.b);
		post_trecv(p.b, in[1], 4, row->sent, 0);
	}
	c = expect_recv(p.b, "abcd", 4);
	CHECK_EQ(c.tag, row->sent);
	CHECK_MEM(row->match ? in[0] : in[1], "abcd", 4);

	note("sent first");
	tsend_bytes(p.a, "efgh", 4, row->sent);
	idle(t);
	if (!row->match) {
		/* in[0] is still posted, and may take neither. */
		post_trecv(p.b, in[2], 4, row->tag, row->ignore);
		expect_tx(p.a);
		expect_no_completion(p.b);
	}
	post_trecv(p.b, in[3], 4, row->match ? row->tag : row->sent, row->match ? row->ignore : 0);
	c = expect_recv(p.b, "efgh", 4);
	CHECK_EQ(c.tag, row->sent);
	CHECK_MEM(in[3], "efgh", 4);
}

/* Messages find their receives by tag, not by order. */
TEST_PROV(out_of_order_tags, FI_TAGGED)
{
	enum { N = 50 };
	struct pair p = pair_open(t);
	uint32_t in[N], out[N], i;

	for (i = 0; i < N; i++)
		post_trecv(p.b, &in[i], sizeof(in[0]), i, 0);
	for (i = 0; i < N; i++) {
		out[i] = N - 1 - i;
		tsend_bytes(p.a, &out[i], sizeof(out[0]), out[i]);
	}
	expect_rx_cnt(p.b, N);
	for (i = 0; i < N; i++)
		CHECK_EQ(in[i], i);
}

/* Of several receives that match, the first posted takes the message, wildcard or not. */
TEST_PROV(first_posted_wins, FI_TAGGED)
{
	struct pair p = pair_open(t);
	char in[5][4];
	unsigned int i;

	post_trecv(p.b, in[0], 4, 7, 0);
	post_trecv(p.b, in[1], 4, 0, UINT64_MAX);
	post_trecv(p.b, in[2], 4, 7, 0);
	post_trecv(p.b, in[3], 4, 4, 3);
	post_trecv(p.b, in[4], 4, 7, 0);
	for (i = 0; i < 5; i++) {
		char out[4] = { 'm', 's', 'g', (char) ('0' + i) };

		post(p.a, TINJECT, .buf = out, .len = 4, .tag = 7);
		expect_recv(p.b, out, 4);
		CHECK_MEM(in[i], out, 4);
	}
}

/* Of several waiting messages that match, the first sent is taken, whatever lies between. */
TEST_PROV(first_sent_wins, FI_TAGGED, RELIABLE)
{
	static const struct {
		uint64_t tag, ignore;
		const char *want;
	} recvs[] = {
		{ 2, 0, "2--a" }, { 0, UINT64_MAX, "1--a" }, { 1, 0, "1--b" }, { 3, 1, "2--b" },
		{ 0, UINT64_MAX, "3--a" }, { 0, UINT64_MAX, "1--c" },
	};
	static const char *const sent[] = { "1--a", "2--a", "1--b", "2--b", "3--a", "1--c" };
	struct pair p = pair_open(t);
	char in[4];
	size_t i;

	for (i = 0; i < COUNT(sent); i++)
		tsend_bytes(p.a, sent[i], 4, (uint64_t) (sent[i][0] - '0'));
	idle(t);
	for (i = 0; i < COUNT(recvs); i++) {
		post_trecv(p.b, in, 4, recvs[i].tag, recvs[i].ignore);
		expect_recv(p.b, recvs[i].want, 4);
	}
}

/* Tagged and untagged messages do not meet. */
TEST_PROV(tagged_and_untagged_are_apart, FI_TAGGED | FI_MSG)
{
	struct pair p = pair_open(t);
	char tagged[4] = "", plain[4] = "";

	post_trecv(p.b, tagged, 4, 0, UINT64_MAX);
	post_recv(p.b, plain, 4);
	send_bytes(p.a, "flat", 4);
	CHECK_EQ(expect_recv(p.b, "flat", 4).flags & (FI_MSG | FI_TAGGED), FI_MSG);
	tsend_bytes(p.a, "tags", 4, 0);
	CHECK_EQ(expect_recv(p.b, "tags", 4).flags & (FI_MSG | FI_TAGGED), FI_TAGGED);
	CHECK_MEM(plain, "flat", 4);
	CHECK_MEM(tagged, "tags", 4);
}

/* Messages of one tag meet their receives in order, among many of other tags. */
TEST_PROV(order_within_a_tag, FI_TAGGED, RELIABLE)
{
	enum { N = 1200, TAGS = 6 };
	struct pair p = pair_open(t);
	uint32_t *in = mem(t, N * sizeof(*in)), *out = mem(t, N * sizeof(*out)), i;

	for (i = 0; i < N / 2; i++)
		post_trecv(p.b, &in[i], sizeof(in[0]), i % TAGS, 0);
	for (i = 0; i < N; i++) {
		out[i] = i / TAGS;
		tsend_bytes(p.a, &out[i], sizeof(out[0]), i % TAGS);
	}
	for (i = N / 2; i < N; i++)
		post_trecv(p.b, &in[i], sizeof(in[0]), i % TAGS, 0);
	expect_rx_cnt(p.b, N);
	expect_tx_cnt(p.a, N);
	for (i = 0; i < N; i++)
		CHECK_EQ(in[i], i / TAGS);
}

/* Receives by the ten thousand, matched last to first. */
TEST_PROV(ten_thousand_receives, FI_TAGGED, RELIABLE)
{
	enum { N = 10000 };
	struct pair p = pair_open(t, .rx_size = N);
	uint32_t *in = mem(t, N * sizeof(*in)), i;

	if (p.b->info->rx_attr->size < N)
		ABSENT("rx size is %zu", p.b->info->rx_attr->size);
	for (i = 0; i < N; i++)
		post_trecv(p.b, &in[i], sizeof(in[0]), i, 0);
	for (i = N; i-- > 0; )
		post(p.a, TINJECT, .buf = &i, .len = sizeof(i), .tag = i);
	expect_rx_cnt(p.b, N);
	for (i = 0; i < N; i++)
		CHECK_EQ(in[i], i);
}

/* Thousands of messages nobody waits for do not block those that somebody does, nor the acknowledgements of others. */
TEST_PROV(unexpected_flood_blocks_nobody, FI_TAGGED, RELIABLE)
{
	enum { N = 2000 };
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	uint32_t in = 0, i, *out = mem(t, N * sizeof(*out));
	char back[4];

	for (i = 0; i < N; i++) {
		out[i] = i;
		post(p.a, TINJECT, .buf = &out[i], .len = sizeof(out[0]), .tag = 1000 + i);
	}
	post_trecv(p.b, &in, sizeof(in), 1, 0);
	post(p.a, TSEND, .buf = "mine", .len = 4, .tag = 1);
	expect_recv(p.b, "mine", 4);
	expect_tx(p.a);
	post_trecv(p.a, back, 4, 2, 0);
	tsend_bytes(p.b, "back", 4, 2);
	expect_recv(p.a, "back", 4);
	expect_tx(p.b);
	for (i = 0; i < N; i++) {
		post_trecv(p.b, &in, sizeof(in), 1000 + i, 0);
		expect_recv(p.b, &i, sizeof(i));
	}
}

/* Nor do more large ones than any table of announcements would begin with. */
TEST_PROV(many_large_unexpected_block_nobody, FI_TAGGED, RELIABLE)
{
	enum { N = 100, LEN = 300 << 10 };
	struct pair p = pair_open(t);
	uint8_t *in = mem(t, LEN), *out = mem_pattern(t, LEN, 1);
	uint32_t i;

	for (i = 0; i < N; i++)
		post(p.a, TSEND, .buf = out, .len = LEN, .tag = 1000 + i);
	post(p.a, TSEND, .buf = "mine", .len = 4, .tag = 1);
	post_trecv(p.b, in, 4, 1, 0);
	expect_recv(p.b, "mine", 4);
	for (i = 0; i < N; i++) {
		post_trecv(p.b, in, LEN, 1000 + i, 0);
		expect_recv(p.b, out, LEN);
	}
	for (i = 0; i <= N; i++)
		expect_tx(p.a);
}

/* The same with messages that are too large to keep: the sender keeps them. */
TEST_PROV(large_unexpected_block_nobody, FI_TAGGED, RELIABLE)
{
	enum { N = 6, LEN = 1 << 20 };
	struct pair p = pair_open(t);
	uint8_t *in = mem(t, LEN), *out[N];
	char small[4];
	unsigned int i;

	if (!run.ours)
		ABSENT("what is buffered of unexpected messages is the provider's choice: fi_domain(3)");
	for (i = 0; i < N; i++) {
		out[i] = mem_pattern(t, LEN, i);
		tsend_bytes(p.a, out[i], LEN, 100 + i);
	}
	post_trecv(p.b, small, 4, 1, 0);
	tsend_bytes(p.a, "mine", 4, 1);
	expect_recv(p.b, "mine", 4);
	for (i = N; i-- > 0; ) {
		post_trecv(p.b, in, LEN, 100 + i, 0);
		expect_recv(p.b, out[i], LEN);
	}
	expect_tx_cnt(p.a, N + 1);
}

/* Nor do more of them than the transmit queue takes: who waits for its receiver is not in the way of others. */
TEST_PROV(announced_sends_leave_the_queue_free, FI_TAGGED, RELIABLE)
{
	enum { N = 300, LEN = 200 * 1024 };
	struct pair p = pair_open(t, .tx_size = 16);
	uint8_t *in = mem(t, LEN), *out = mem_pattern(t, LEN, 1);
	unsigned int i;

	if (!run.ours || strchr(run.prov, ';'))
		ABSENT("what is buffered of unexpected messages is the provider's choice: fi_domain(3)");
	check_link(p.a, p.b);
	for (i = 0; i < N; i++)
		tsend_bytes(p.a, out, LEN, 100 + i);
	post_trecv(p.b, in, LEN, 1, 0);
	tsend_bytes(p.a, "mine", 4, 1);
	expect_recv(p.b, "mine", 4);
	for (i = N; i-- > 0; ) {
		post_trecv(p.b, in, LEN, 100 + i, 0);
		expect_recv(p.b, out, LEN);
	}
	expect_tx_cnt(p.a, N + 1);
}

/* ---- sources */

/* Several senders with one tag: each message once, those of one sender in order. */
TEST_PROV(many_sources_one_tag, FI_TAGGED | FI_SOURCE, RDM_ONLY)
{
	enum { SENDERS = 4, N = 50 };
	struct side *b = side_open(t), *s[SENDERS];
	fi_addr_t addr[SENDERS], from[SENDERS * N];
	uint32_t in[SENDERS * N], i, j, seen[SENDERS] = { 0 };

	for (i = 0; i < SENDERS; i++) {
		s[i] = side_open(t);
		s[i]->peer = side_insert(s[i], b);
		addr[i] = side_insert(b, s[i]);
	}
	for (i = 0; i < COUNT(in); i++)
		post_trecv(b, &in[i], sizeof(in[0]), 3, 0);
	for (i = 0; i < COUNT(in); i++) {
		uint32_t out = i / SENDERS;

		post(s[i % SENDERS], TINJECT, .buf = &out, .len = sizeof(out), .tag = 3);
	}
	for (i = 0; i < COUNT(in); i++) {
		struct comp c = expect_rx(b);

		from[(uint32_t *) ctx_buf(b, c.ctx) - in] = c.src;
	}
	for (i = 0; i < COUNT(in); i++) {
		for (j = 0; j < SENDERS && addr[j] != from[i]; j++)
			;
		CHECK(j < SENDERS);
		CHECK_EQ(in[i], seen[j]);
		seen[j]++;
	}
}

/* Without FI_DIRECTED_RECV a tagged receive takes any source, whatever address it is posted with. */
TEST_PROV(undirected_trecv_ignores_source, FI_TAGGED, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	fi_addr_t c_addr = side_insert(p.b, c);
	char in[4];

	CHECK_EQ(p.b->info->caps & FI_DIRECTED_RECV, 0);
	post(p.b, TRECV, .buf = in, .len = 4, .tag = 1, .addr = &c_addr);
	tsend_bytes(p.a, "ofA1", 4, 1);
	expect_recv(p.b, "ofA1", 4);
}

/* A directed tagged receive wants both, source and tag; posted, and with messages waiting. */
TEST_PROV(directed_trecv, FI_TAGGED | FI_DIRECTED_RECV, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	fi_addr_t c_addr = side_insert(p.b, c);
	char in[4][4];

	c->peer = side_insert(c, p.b);
	post(p.b, TRECV, .buf = in[0], .len = 4, .tag = 1, .addr = &c_addr);
	post(p.b, TRECV, .buf = in[1], .len = 4, .ignore = UINT64_MAX, .addr = &p.b->peer);
	tsend_bytes(p.a, "ofA1", 4, 1);
	expect_recv(p.b, "ofA1", 4);
	CHECK_MEM(in[1], "ofA1", 4);
	tsend_bytes(p.a, "ofA2", 4, 1);
	idle(t);
	tsend_bytes(c, "ofC1", 4, 1);
	expect_recv(p.b, "ofC1", 4);
	CHECK_MEM(in[0], "ofC1", 4);
	tsend_bytes(c, "ofC2", 4, 2);
	idle(t);
	post(p.b, TRECV, .buf = in[2], .len = 4, .ignore = UINT64_MAX, .addr = &c_addr);
	expect_recv(p.b, "ofC2", 4);
	post(p.b, TRECV, .buf = in[3], .len = 4, .tag = 1);
	expect_recv(p.b, "ofA2", 4);
}

/* ---- errors */

/* Truncation of a tagged message: tag and lengths in the error entry, and the stream goes on. */
TEST_PROV(trecv_trunc, FI_TAGGED, RELIABLE)
{
	struct pair p = pair_open(t);
	char small[4], whole[8];
	void *ctx;

	ctx = post(p.b, TRECV, .buf = small, .len = 4, .tag = 1);
	post_trecv(p.b, whole, 8, 2, 0);
	tsend_bytes(p.a, "too long", 8, 1);
	tsend_bytes(p.a, "12345678", 8, 2);
	expect_rx_err(p.b, FI_ETRUNC, .olen = 4, .tag = 1, .ctx = ctx, .flags = FI_RECV | FI_TAGGED);
	expect_recv(p.b, "12345678", 8);
}

/* The same for a message that waited. */
TEST_PROV(trecv_trunc_unexpected, FI_TAGGED, RELIABLE)
{
	struct pair p = pair_open(t);
	uint8_t *out = mem_pattern(t, 100000, 1), *in = mem(t, 100000);

	tsend_bytes(p.a, out, 100000, 1);
	tsend_bytes(p.a, out, 99999, 2);
	idle(t);
	post_trecv(p.b, in, 1000, 1, 0);
	expect_rx_err(p.b, FI_ETRUNC, .olen = 99000);
	post_trecv(p.b, in, 99999, 2, 0);
	expect_recv(p.b, out, 99999);
	expect_tx_cnt(p.a, 2);
}

/* A cancelled tagged receive takes nothing, its neighbours do. */
TEST_PROV(cancel_trecv, FI_TAGGED)
{
	struct pair p = pair_open(t);
	char in[3][4];
	void *ctx[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		ctx[i] = post(p.b, TRECV, .buf = in[i], .len = 4, .tag = 1);
	MUST(fi_cancel(&p.b->ep->fid, ctx[1]));
	expect_rx_err(p.b, FI_ECANCELED, .ctx = ctx[1], .flags = FI_RECV | FI_TAGGED);
	tsend_bytes(p.a, "1111", 4, 1);
	CHECK(expect_recv(p.b, "1111", 4).ctx == ctx[0]);
	tsend_bytes(p.a, "2222", 4, 1);
	CHECK(expect_recv(p.b, "2222", 4).ctx == ctx[2]);
}

/* ---- more flags */

/* Selective completion holds for tagged operations, too. */
TEST_PROV(tagged_selective, FI_TAGGED)
{
	struct pair p = pair_open(t, .tx_bind = FI_SELECTIVE_COMPLETION, .rx_bind = FI_SELECTIVE_COMPLETION);
	char in[2][4] = { { 0 } };
	void *tx, *rx;

	post_trecv(p.b, in[0], 4, 1, 0);
	rx = post(p.b, TRECVMSG, .buf = in[1], .len = 4, .tag = 1, .flags = FI_COMPLETION);
	tsend_bytes(p.a, "1111", 4, 1);
	tx = post(p.a, TSENDMSG, .buf = "2222", .len = 4, .tag = 1, .flags = FI_COMPLETION);
	CHECK(expect_rx(p.b).ctx == rx);
	CHECK(expect_tx(p.a).ctx == tx);
	CHECK_MEM(in[0], "1111", 4);
	expect_no_completion(p.a);
	expect_no_completion(p.b);
}

static const struct length_row length_rows[] = {
	{ "0", 0 }, { "128", 128 }, { "64K", 65536 }, { "8M", 8 << 20 },
};

/* A delivery completion is true for tagged messages. */
TEST_TABLE(tagged_delivery_complete, length_rows, FI_TAGGED, RELIABLE)
{
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	size_t len = ROW(length_rows)->len;
	uint8_t *in = mem(t, len), *out = mem_pattern(t, len, 6);
	struct wait w = wait_begin();

	post_trecv(p.b, in, len, 1, 0);
	tsend_bytes(p.a, out, len, 1);
	while (!tx_waiting(p.a))
		wait_more(t, &w, "the delivery completion");
	CHECK_MEM(in, out, len);
	expect_tx(p.a);
	expect_recv(p.b, out, len);
}

/* An endpoint may send itself tagged messages of any size. */
TEST_TABLE(tagged_self_send, length_rows, FI_TAGGED, RDM_ONLY)
{
	size_t len = ROW(length_rows)->len;
	struct side *s = side_open(t);
	uint8_t *in = mem(t, len), *out = mem_pattern(t, len, 8);
	fi_addr_t me = side_insert(s, s);

	post(s, TSEND, .buf = out, .len = len, .tag = 1, .addr = &me);
	post_trecv(s, in, len, 1, 0);
	expect_recv(s, out, len);
	expect_tx(s);
}
