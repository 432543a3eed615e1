/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What flags change: completion levels, selective completion, directed and cancelled receives, sources.
 * Source: fi_msg(3), fi_cq(3).
 */
#include <stdio.h>
#include <string.h>

#include "ops.h"

static const struct flag_row level_rows[] = {
	{ "none", 0 }, { "completion", FI_COMPLETION }, { "more", FI_MORE }, { "inject_complete", FI_INJECT_COMPLETE },
	{ "transmit_complete", FI_TRANSMIT_COMPLETE }, { "delivery_complete", FI_DELIVERY_COMPLETE },
	{ "inject_delivery", FI_INJECT | FI_DELIVERY_COMPLETE },
	{ "cq_data_delivery", FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE },
};

static bool level_offered(uint64_t flags)
{
	return run.type != FI_EP_DGRAM || !(flags & FI_DELIVERY_COMPLETE);
}

/* Each flag of fi_sendmsg() gives one completion and the message, before and after plain sends. */
TEST_TABLE(sendmsg_flag, level_rows, FI_MSG)
{
	uint64_t flags = ROW(level_rows)->flags;
	struct pair p = pair_open(t);
	char in[3][4];
	unsigned int i;

	if (!level_offered(flags))
		ABSENT("reliable endpoints only");
	if ((flags & FI_REMOTE_CQ_DATA) && !p.a->info->domain_attr->cq_data_size)
		ABSENT("no remote CQ data");
	for (i = 0; i < 3; i++)
		post_recv(p.b, in[i], 4);
	send_bytes(p.a, "0000", 4);
	post(p.a, SENDMSG, .buf = "1111", .len = 4, .flags = flags, .data = 7);
	send_bytes(p.a, "2222", 4);
	expect_recv(p.b, "0000", 4);
	expect_recv(p.b, "1111", 4);
	expect_recv(p.b, "2222", 4);
	expect_tx_cnt(p.a, 3);
	expect_no_completion(p.a);
}

/* The same as default of the endpoint, which fi_send() and fi_inject() obey. */
TEST_TABLE(op_flags_default, level_rows, FI_MSG)
{
	uint64_t flags = ROW(level_rows)->flags & ~(FI_REMOTE_CQ_DATA | FI_MORE);
	struct pair p;
	char in[2][4];

	if (!level_offered(flags))
		ABSENT("reliable endpoints only");
	p = pair_open(t, .tx_op_flags = flags);
	post_recv(p.b, in[0], 4);
	post_recv(p.b, in[1], 4);
	send_bytes(p.a, "1111", 4);
	post(p.a, INJECT, .buf = "2222", .len = 4);
	expect_recv(p.b, "1111", 4);
	expect_recv(p.b, "2222", 4);
	expect_tx(p.a);
	expect_no_completion(p.a);
}

static const struct length_row length_rows[] = {
	{ "8", 8 }, { "64K", 65536 }, { "4M", 4 << 20 },
};

/* No delivery completion while the target has done nothing; when it comes, the data is in the target's buffer. */
TEST_TABLE(delivery_complete_is_true, length_rows, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	size_t len = ROW(length_rows)->len;
	uint8_t *in = mem(t, len), *out = mem_pattern(t, len, 6);
	struct wait w = wait_begin();

	check_link(p.a, p.b);
	post_recv(p.b, in, len);
	send_bytes(p.a, out, len);
	if (p.b->info->domain_attr->data_progress == FI_PROGRESS_MANUAL) {
		side_idle(p.a);
		if (tx_waiting(p.a))
			CHECK_MEM(in, out, len);	/* the call that posted the receive may have found it */
	}
	while (!tx_waiting(p.a))
		wait_more(t, &w, "the delivery completion");
	CHECK_MEM(in, out, len);
	expect_tx(p.a);
	expect_recv(p.b, out, len);
}

/* A match completion says that a receive has taken the message: none before there is one. */
TEST_PROV(match_complete_is_true, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t, .tx_op_flags = FI_MATCH_COMPLETE);
	char in[4][4];

	if (!run.ours)
		ABSENT("upstream has it in one provider");
	post_recv(p.b, in[0], 4);
	send_bytes(p.a, "1111", 4);
	expect_recv(p.b, "1111", 4);
	expect_tx(p.a);
	send_bytes(p.a, "2222", 4);
	idle(t);
	CHECK_EQ(tx_waiting(p.a), 0);
	post_recv(p.b, in[1], 4);
	expect_recv(p.b, "2222", 4);
	expect_tx(p.a);
	post(p.a, SEND, .buf = NULL, .len = 0);
	post(p.a, SENDMSG, .buf = "4444", .len = 4, .flags = FI_MATCH_COMPLETE | FI_INJECT);
	idle(t);
	CHECK_EQ(tx_waiting(p.a), 0);
	post_recv(p.b, in[2], 4);
	post_recv(p.b, in[3], 4);
	expect_rx_cnt(p.b, 2);
	expect_tx_cnt(p.a, 2);
	CHECK_MEM(in[3], "4444", 4);
}

/* A burst of delivery completions: each send has one. */
TEST_PROV(delivery_complete_burst, FI_MSG, RELIABLE)
{
	enum { N = 500 };
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	uint32_t *in = mem(t, N * sizeof(*in)), i;

	for (i = 0; i < N; i++)
		post_recv(p.b, &in[i], sizeof(in[0]));
	for (i = 0; i < N; i++)
		send_bytes(p.a, "abcd", 4);
	expect_tx_cnt(p.a, N);
	expect_no_completion(p.a);
}

/* Messages marked FI_MORE travel with the one after them. */
TEST_PROV(more_then_last, FI_MSG)
{
	enum { N = 10 };
	struct pair p = pair_open(t);
	uint32_t in[N], out[N], i;

	for (i = 0; i < N; i++) {
		out[i] = i;
		post_recv(p.b, &in[i], sizeof(in[0]));
	}
	for (i = 0; i < N; i++)
		post(p.a, SENDMSG, .buf = &out[i], .len = sizeof(out[0]), .flags = i < N - 1 ? FI_MORE : 0);
	expect_rx_cnt(p.b, N);
	for (i = 0; i < N; i++)
		CHECK_EQ(in[i], i);
	expect_tx_cnt(p.a, N);
}

/* ---- selective completion */

/* Only operations marked FI_COMPLETION complete, when the CQ is bound so. */
TEST_PROV(selective_tx, FI_MSG)
{
	struct pair p = pair_open(t, .tx_bind = FI_SELECTIVE_COMPLETION);
	char in[3][4];
	void *ctx;
	unsigned int i;

	for (i = 0; i < 3; i++)
		post_recv(p.b, in[i], 4);
	send_bytes(p.a, "1111", 4);
	post(p.a, SENDMSG, .buf = "2222", .len = 4);
	ctx = post(p.a, SENDMSG, .buf = "3333", .len = 4, .flags = FI_COMPLETION);
	expect_recv(p.b, "1111", 4);
	expect_recv(p.b, "2222", 4);
	expect_recv(p.b, "3333", 4);
	CHECK(expect_tx(p.a).ctx == ctx);
	expect_no_completion(p.a);
}

/* With FI_COMPLETION as the endpoint's default fi_send() completes, fi_sendmsg() without the flag does not. */
TEST_PROV(selective_tx_with_default, FI_MSG)
{
	struct pair p = pair_open(t, .tx_bind = FI_SELECTIVE_COMPLETION, .tx_op_flags = FI_COMPLETION);
	char in[3][4];
	void *ctx;
	unsigned int i;

	for (i = 0; i < 3; i++)
		post_recv(p.b, in[i], 4);
	ctx = post(p.a, SEND, .buf = "1111", .len = 4);
	post(p.a, SENDMSG, .buf = "2222", .len = 4);
	post(p.a, INJECT, .buf = "3333", .len = 4);
	for (i = 0; i < 3; i++)
		expect_rx(p.b);
	CHECK(expect_tx(p.a).ctx == ctx);
	expect_no_completion(p.a);
}

/* The same for receives; an error completes in any case. */
TEST_PROV(selective_rx, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t, .rx_bind = FI_SELECTIVE_COMPLETION);
	char in[3][4] = { { 0 } };
	void *ctx;

	post_recv(p.b, in[0], 4);
	ctx = post(p.b, RECVMSG, .buf = in[1], .len = 4, .flags = FI_COMPLETION);
	post_recv(p.b, in[2], 2);
	send_bytes(p.a, "1111", 4);
	send_bytes(p.a, "2222", 4);
	CHECK(expect_rx(p.b).ctx == ctx);
	CHECK_MEM(in[0], "1111", 4);
	send_bytes(p.a, "3333", 4);
	expect_rx_err(p.b, FI_ETRUNC, .olen = 2);
	expect_tx_cnt(p.a, 3);
	expect_no_completion(p.b);
}

/* ---- directed receive and source */

/* A directed receive takes messages of its source only. */
TEST_PROV(directed_recv, FI_MSG | FI_DIRECTED_RECV, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	char from_a[4], from_c[4], from_any[4];
	fi_addr_t c_addr = side_insert(p.b, c);

	c->peer = side_insert(c, p.b);
	post(p.b, RECV, .buf = from_c, .len = 4, .addr = &c_addr);
	post(p.b, RECV, .buf = from_a, .len = 4, .addr = &p.b->peer);
	send_bytes(p.a, "ofA1", 4);
	expect_recv(p.b, "ofA1", 4);
	CHECK_MEM(from_a, "ofA1", 4);
	post_recv(p.b, from_any, 4);
	send_bytes(p.a, "ofA2", 4);
	expect_recv(p.b, "ofA2", 4);
	send_bytes(c, "ofC1", 4);
	expect_recv(p.b, "ofC1", 4);
	CHECK_MEM(from_c, "ofC1", 4);
}

/* Unexpected messages are found by source. */
TEST_PROV(directed_recv_of_unexpected, FI_MSG | FI_DIRECTED_RECV, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	char in[4][4];
	fi_addr_t c_addr = side_insert(p.b, c);

	c->peer = side_insert(c, p.b);
	send_bytes(p.a, "ofA1", 4);
	send_bytes(p.a, "ofA2", 4);
	send_bytes(c, "ofC1", 4);
	idle(t);
	post(p.b, RECV, .buf = in[0], .len = 4, .addr = &c_addr);
	expect_recv(p.b, "ofC1", 4);
	post(p.b, RECV, .buf = in[1], .len = 4, .addr = &p.b->peer);
	expect_recv(p.b, "ofA1", 4);
	post_recv(p.b, in[2], 4);
	expect_recv(p.b, "ofA2", 4);
}

/* Without FI_DIRECTED_RECV the address of a receive is ignored. */
TEST_PROV(undirected_recv_ignores_source, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	fi_addr_t c_addr = side_insert(p.b, c);
	char in[4];

	if (p.b->info->caps & FI_DIRECTED_RECV)
		FAIL("FI_DIRECTED_RECV is primary and was not asked for");
	post(p.b, RECV, .buf = in, .len = 4, .addr = &c_addr);
	send_bytes(p.a, "ofA1", 4);
	expect_recv(p.b, "ofA1", 4);
}

/* With FI_SOURCE a completion names the sender by the receiver's own fi_addr_t. */
TEST_PROV(source_is_known, FI_MSG | FI_SOURCE, UNCONNECTED)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	fi_addr_t c_addr = side_insert(p.b, c);
	char in[2][4];

	c->peer = side_insert(c, p.b);
	post_recv(p.b, in[0], 4);
	send_bytes(c, "ofC1", 4);
	CHECK_EQ(expect_recv(p.b, "ofC1", 4).src, c_addr);
	post_recv(p.b, in[1], 4);
	send_bytes(p.a, "ofA1", 4);
	CHECK_EQ(expect_recv(p.b, "ofA1", 4).src, p.b->peer);
}

/* A sender that is not in the address vector is FI_ADDR_NOTAVAIL. */
TEST_PROV(source_is_unknown, FI_MSG | FI_SOURCE, UNCONNECTED)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	char in[4];

	c->peer = side_insert(c, p.b);
	post_recv(p.b, in, 4);
	send_bytes(c, "ofC1", 4);
	CHECK_EQ(expect_recv(p.b, "ofC1", 4).src, FI_ADDR_NOTAVAIL);
}

/* Messages that wait follow the address vector, also when their sender has gone: they have the source, and are found by
 * it, from its insertion to its removal. */
TEST_PROV(unexpected_follow_av, FI_MSG | FI_SOURCE | FI_DIRECTED_RECV, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct side *c = side_open(t), *gone = side_open(t);
	fi_addr_t c_addr, gone_addr;
	char in[4][4];

	if (!run.ours)
		ABSENT("upstream may crash");
	c->peer = side_insert(c, p.b);
	gone->peer = side_insert(gone, p.b);
	send_bytes(c, "ofC1", 4);
	send_bytes(p.a, "ofA1", 4);
	send_bytes(gone, "ofG1", 4);
	send_bytes(c, "ofC2", 4);
	idle(t);
	expect_tx(gone);
	side_close_ep(gone);
	idle(t);
	c_addr = side_insert(p.b, c);
	gone_addr = side_insert(p.b, gone);
	post(p.b, RECV, .buf = in[0], .len = 4, .addr = &gone_addr);
	CHECK_EQ(expect_recv(p.b, "ofG1", 4).src, gone_addr);
	post(p.b, RECV, .buf = in[1], .len = 4, .addr = &c_addr);
	CHECK_EQ(expect_recv(p.b, "ofC1", 4).src, c_addr);
	MUST(fi_av_remove(p.b->av, &c_addr, 1, 0));
	post(p.b, RECV, .buf = in[2], .len = 4, .addr = &p.b->peer);
	CHECK_EQ(expect_recv(p.b, "ofA1", 4).src, p.b->peer);
	post_recv(p.b, in[3], 4);
	CHECK_EQ(expect_recv(p.b, "ofC2", 4).src, FI_ADDR_NOTAVAIL);
}

/* A directed receive outlives the removal of its address. What has come from there meanwhile is taken when the address
 * is there again, by the receives in their order. */
TEST_PROV(directed_recv_follows_av, FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV, RDM_ONLY)
{
	static char in[3][1 << 20], out[1 << 20];
	struct pair p = pair_open(t);
	struct side *c = side_open(t);
	fi_addr_t c_addr = side_insert(p.b, c);

	if (!run.ours)
		ABSENT("upstream fails receives of an address that is removed, or never completes them");
	c->peer = side_insert(c, p.b);
	memset(out, 'l', sizeof(out));
	for (int i = 0; i < 3; i++)
		post(p.b, RECV, .buf = in[i], .len = sizeof(in[i]), .addr = &c_addr);
	MUST(fi_av_remove(p.b->av, &c_addr, 1, 0));
	send_bytes(c, "ofC1", 4);
	send_bytes(c, out, sizeof(out));
	send_bytes(c, "ofC3", 4);
	idle(t);
	expect_no_completion(p.b);
	CHECK_EQ(side_insert(p.b, c), c_addr);
	CHECK_EQ(expect_recv(p.b, "ofC1", 4).src, c_addr);
	/* the long one may have to be fetched first */
	for (int i = 0; i < 2; i++)
		CHECK_EQ(expect_rx(p.b).src, c_addr);
	CHECK_MEM(in[0], "ofC1", 4);
	CHECK_MEM(in[1], out, sizeof(out));
	CHECK_MEM(in[2], "ofC3", 4);
}

/* The next completion of a side with .raw_cq is of 4 bytes of somebody who is in no address vector: insert him. */
static fi_addr_t insert_stranger(struct side *s, struct fi_cq_err_entry *err)
{
	struct fi_cq_tagged_entry entry;
	struct wait w = wait_begin();
	fi_addr_t src, added = FI_ADDR_NOTAVAIL;
	uint8_t addr[128];
	ssize_t ret;

	while ((ret = fi_cq_readfrom(s->rx_cq, &entry, 1, &src)) == -FI_EAGAIN)
		wait_more(s->t, &w, "the stranger's");
	CHECK_RET(ret, -FI_EAVAIL);
	*err = (struct fi_cq_err_entry) { .err_data = addr, .err_data_size = sizeof(addr) };
	CHECK_RET(fi_cq_readerr(s->rx_cq, err, 0), 1);
	CHECK_EQ(err->err, FI_EADDRNOTAVAIL);
	CHECK_EQ(err->len, 4);
	CHECK(!run.ours || err->err_data_size <= s->info->domain_attr->max_err_data);
	CHECK_RET(fi_av_insert(s->av, err->err_data, 1, &added, 0, NULL), 1);
	return added;
}

/* The next completion of such a side is from src. */
static struct fi_cq_tagged_entry expect_from(struct side *s, fi_addr_t src)
{
	struct fi_cq_tagged_entry entry = { 0 };
	struct wait w = wait_begin();
	fi_addr_t from = FI_ADDR_NOTAVAIL;
	ssize_t ret;

	while ((ret = fi_cq_readfrom(s->rx_cq, &entry, 1, &from)) == -FI_EAGAIN)
		wait_more(s->t, &w, "what he sends then");
	CHECK_RET(ret, 1);
	CHECK_EQ(from, src);
	return entry;
}

/* With FI_SOURCE_ERR such a message is an error entry whose err_data can be inserted. */
TEST_PROV(source_err_gives_address, FI_MSG | FI_SOURCE | FI_SOURCE_ERR, UNCONNECTED)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct side *c = side_open(t);
	struct fi_cq_err_entry err;
	char in[2][4];
	fi_addr_t src;

	c->peer = side_insert(c, p.b);
	post_recv(p.b, in[0], 4);
	send_bytes(c, "ofC1", 4);
	src = insert_stranger(p.b, &err);
	CHECK_MEM(in[0], "ofC1", 4);
	post_recv(p.b, in[1], 4);
	send_bytes(c, "ofC2", 4);
	expect_from(p.b, src);
}

/* So is a write with data: the error entry has the data, and the write is in place. */
TEST_PROV(source_err_of_a_write_with_data, FI_MSG | FI_RMA | FI_SOURCE | FI_SOURCE_ERR, RDM_ONLY)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct region r = region_open(p.b, NULL, 8, FI_REMOTE_WRITE);
	struct side *c = side_open(t);
	struct fi_cq_err_entry err;
	fi_addr_t src;

	c->peer = side_insert(c, p.b);
	post(c, WRITEDATA, .buf = "ofC1", .len = 4, .raddr = r.addr, .key = r.key, .data = 42);
	src = insert_stranger(p.b, &err);
	CHECK(err.flags & FI_REMOTE_WRITE);
	CHECK(err.flags & FI_REMOTE_CQ_DATA);
	CHECK_EQ(err.data, 42);
	CHECK_MEM(r.buf, "ofC1", 4);
	expect_tx(c);
	post(c, WRITEDATA, .buf = "ofC2", .len = 4, .raddr = r.addr, .key = r.key, .data = 43);
	CHECK_EQ(expect_from(p.b, src).data, 43);
	expect_tx(c);
	/* without data nobody is told */
	post(c, WRITE, .buf = "ofC3", .len = 4, .raddr = r.addr, .key = r.key);
	expect_tx(c);
	CHECK_MEM(r.buf, "ofC3", 4);
}

/* ---- cancel */

/* A cancelled receive completes with FI_ECANCELED and its context, and takes no message. */
TEST_PROV(cancel_recv, FI_MSG)
{
	struct pair p = pair_open(t);
	char in[2][4] = { { 0 } };
	void *ctx;

	ctx = post(p.b, RECV, .buf = in[0], .len = 4);
	post_recv(p.b, in[1], 4);
	MUST(fi_cancel(&p.b->ep->fid, ctx));
	expect_rx_err(p.b, FI_ECANCELED, .ctx = ctx, .flags = FI_RECV);
	send_bytes(p.a, "1111", 4);
	expect_recv(p.b, "1111", 4);
	CHECK_MEM(in[1], "1111", 4);
	expect_no_completion(p.b);
}

/* Cancelling what has completed, or never was, changes nothing. */
TEST_PROV(cancel_what_is_not_there, FI_MSG)
{
	struct pair p = pair_open(t);
	char in[4];
	void *ctx;

	ctx = post(p.b, RECV, .buf = in, .len = 4);
	send_bytes(p.a, "1111", 4);
	expect_recv(p.b, "1111", 4);
	fi_cancel(&p.b->ep->fid, ctx);
	fi_cancel(&p.b->ep->fid, in);
	expect_no_completion(p.b);
}

/* Among receives with one context one is cancelled. */
TEST_PROV(cancel_one_of_equal_contexts, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fi_context2 ctx[1];
	char in[2][4];

	post(p.b, RECV, .buf = in[0], .len = 4, .ctx = ctx);
	post(p.b, RECV, .buf = in[1], .len = 4, .ctx = ctx);
	MUST(fi_cancel(&p.b->ep->fid, ctx));
	expect_rx_err(p.b, FI_ECANCELED, .ctx = ctx);
	send_bytes(p.a, "1111", 4);
	CHECK(expect_rx(p.b).ctx == ctx);
	expect_no_completion(p.b);
}

/* Among many receives each cancel ends the one with its context, whatever the order, and whatever messages took before;
 * the others take messages in their order. */
TEST_PROV(cancel_among_many, FI_MSG)
{
	struct pair p = pair_open(t);
	enum { N = 96 };
	static struct fi_context2 ctx[N];
	bool gone[N] = { false };
	static char in[N];

	for (int i = 0; i < N; i++)
		post(p.b, RECV, .buf = &in[i], .len = 1, .ctx = &ctx[i]);
	for (int i = N; i > N / 2; i--) {
		int n = i * 77 % N, oldest = 0;

		MUST(fi_cancel(&p.b->ep->fid, &ctx[n]));
		if (!gone[n])
			expect_rx_err(p.b, FI_ECANCELED, .ctx = &ctx[n]);
		gone[n] = true;
		if (i % 3)
			continue;
		while (gone[oldest])
			oldest++;
		send_bytes(p.a, "1", 1);
		CHECK(expect_rx(p.b).ctx == &ctx[oldest]);
		gone[oldest] = true;
		post(p.b, RECV, .buf = &in[n], .len = 1, .ctx = &ctx[n]);
		gone[n] = false;
		MUST(fi_cancel(&p.b->ep->fid, &ctx[n]));
		expect_rx_err(p.b, FI_ECANCELED, .ctx = &ctx[n]);
		gone[n] = true;
	}
	for (int i = N; i--; ) {
		MUST(fi_cancel(&p.b->ep->fid, &ctx[i]));
		if (!gone[i])
			expect_rx_err(p.b, FI_ECANCELED, .ctx = &ctx[i]);
	}
	expect_no_completion(p.b);
}

/*
 * Cancelling a send among others: it ends once, cancelled or not, and a cancelled one never arrives. (That a send which
 * has not reached the wire must be cancelled is in gone.c.)
 */
TEST_PROV(cancel_a_send, FI_MSG, RELIABLE)
{
	enum { N = 8, LEN = 4 << 20 };
	struct pair p = pair_open(t);
	uint8_t *out[N], *in = mem(t, LEN);
	unsigned int cancelled = 0;
	void *ctx[N];
	size_t i;

	if (!run.ours)
		ABSENT("upstream cannot cancel sends, and some of it crashes");
	check_link(p.a, p.b);
	for (i = 0; i < N; i++) {
		out[i] = mem_pattern(t, LEN, (unsigned int) i);
		ctx[i] = post(p.a, SEND, .buf = out[i], .len = LEN);
	}
	fi_cancel(&p.a->ep->fid, ctx[N - 1]);
	for (i = 0; i < N - 1; i++) {
		post_recv(p.b, in, LEN);
		expect_recv(p.b, out[i], LEN);
	}
	for (i = 0; i < tx_waiting(p.a); i++)
		cancelled += p.a->tx.list[p.a->tx.taken + i].err == FI_ECANCELED;
	if (!cancelled) {
		post_recv(p.b, in, LEN);
		expect_recv(p.b, out[N - 1], LEN);
	}
	for (i = 0; i < N; i++) {
		if (tx_waiting(p.a) && p.a->tx.list[p.a->tx.taken].err)
			CHECK(expect_tx_err(p.a, FI_ECANCELED).ctx == ctx[N - 1]);
		else
			expect_tx(p.a);
	}
	check_link(p.a, p.b);
	expect_no_completion(p.b);
}

/* ---- multi-receive */

static void set_min_multi_recv(struct side *s, size_t min)
{
	MUST(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
}

/* One buffer takes several messages, packed, and is given back when less than the minimum is left. */
TEST_PROV(multi_recv, FI_MSG | FI_MULTI_RECV, RELIABLE)
{
	struct pair p = pair_open(t);
	uint8_t *in = mem(t, 256), *last = in;
	struct comp c = { 0 };
	unsigned int i;

	set_min_multi_recv(p.b, 64);
	post(p.b, RECVMSG, .buf = in, .len = 256, .flags = FI_MULTI_RECV);
	for (i = 0; i < 4; i++) {
		uint8_t *out = mem_pattern(t, 60, i);

		send_bytes(p.a, out, 60);
		c = expect_rx(p.b);
		CHECK_EQ(c.len, 60);
		CHECK((uint8_t *) c.buf >= last && (uint8_t *) c.buf + 60 <= in + 256);
		CHECK_MEM(c.buf, out, 60);
		last = (uint8_t *) c.buf + 60;
		if (i < 3)
			CHECK(!(c.flags & FI_MULTI_RECV));
	}
	if (!(c.flags & FI_MULTI_RECV))
		CHECK_EQ(expect_rx(p.b).flags & (FI_MULTI_RECV | FI_RECV), FI_MULTI_RECV);
	expect_no_completion(p.b);
}

/* The buffer is kept while exactly the minimum is left, and given back when one byte less is. */
TEST_PROV(multi_recv_minimum, FI_MSG | FI_MULTI_RECV, RELIABLE)
{
	struct pair p = pair_open(t);
	uint8_t *in = mem(t, 128);
	struct comp c;

	set_min_multi_recv(p.b, 64);
	post(p.b, RECVMSG, .buf = in, .len = 128, .flags = FI_MULTI_RECV);
	send_bytes(p.a, mem_pattern(t, 64, 1), 64);
	CHECK(!(expect_rx(p.b).flags & FI_MULTI_RECV));
	expect_no_completion(p.b);
	send_bytes(p.a, "x", 1);
	c = expect_rx(p.b);
	CHECK(c.buf == in + 64);
	if (!(c.flags & FI_MULTI_RECV))
		CHECK_EQ(expect_rx(p.b).flags & (FI_MULTI_RECV | FI_RECV), FI_MULTI_RECV);
}

/* The same for tagged messages: one buffer takes those that fit its tag, each with its own, also some that came
 * before. */
TEST_PROV(tagged_multi_recv, FI_TAGGED | FI_TAGGED_MULTI_RECV, RELIABLE)
{
	struct pair p = pair_open(t);
	uint8_t *in = mem(t, 256), out[100];
	struct comp c;
	unsigned int i;
	char other[4];

	set_min_multi_recv(p.b, 64);
	fill(out, 100, 1);
	tsend_bytes(p.a, out, 100, 0x10);
	post_trecv(p.b, other, 4, 0x77, 0);
	post(p.b, TRECVMSG, .buf = in, .len = 256, .tag = 0x10, .ignore = 0xf, .flags = FI_MULTI_RECV);
	tsend_bytes(p.a, "else", 4, 0x77);
	tsend_bytes(p.a, out, 100, 0x1f);
	for (i = 0; i < 3; i++) {
		c = expect_rx(p.b);
		if (c.tag == 0x77) {
			CHECK_MEM(other, "else", 4);
			continue;
		}
		CHECK_EQ(c.len, 100);
		CHECK_EQ(c.tag, c.buf == in ? 0x10 : 0x1f);
		check_fill(c.buf, 100, 1);
	}
	/* 56 bytes are left, less than the least: the buffer is the application's again */
	if (!(c.flags & FI_MULTI_RECV))
		CHECK_EQ(expect_rx(p.b).flags & (FI_MULTI_RECV | FI_RECV), FI_MULTI_RECV);
}

/* A cancelled multi-receive buffer says that it is given back. */
TEST_PROV(multi_recv_cancel, FI_MSG | FI_MULTI_RECV, RELIABLE)
{
	struct pair p = pair_open(t);
	uint8_t *in = mem(t, 1024);
	void *ctx;

	set_min_multi_recv(p.b, 64);
	ctx = post(p.b, RECVMSG, .buf = in, .len = 1024, .flags = FI_MULTI_RECV);
	send_bytes(p.a, "abcd", 4);
	CHECK_EQ(expect_rx(p.b).flags & FI_MULTI_RECV, 0);
	MUST(fi_cancel(&p.b->ep->fid, ctx));
	expect_rx_err(p.b, FI_ECANCELED, .ctx = ctx, .flags = FI_MULTI_RECV);
}
