/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Tagged messages that are looked at before they are taken: peek, claim, discard. Source: fi_tagged(3). */
#include "ops.h"

/* A peek, its answer: 0 with the completion, or -FI_ENOMSG if there is no message (both ways of saying so). */
static int peek(struct side *s, uint64_t tag, uint64_t ignore, uint64_t flags, void *ctx, struct comp *c)
{
	struct wait w = wait_begin();
	ssize_t ret;

	ret = post_ret(s, TRECVMSG, .tag = tag, .ignore = ignore, .flags = FI_PEEK | flags, .ctx = ctx);
	if (ret == -FI_ENOMSG)
		return -FI_ENOMSG;
	if (ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP || ret == -FI_EINVAL || ret == -FI_EBADFLAGS)
		ABSENT("%s has no FI_PEEK: %s", run.prov, fi_strerror((int) -ret));
	MUST(ret);
	while (!rx_waiting(s))
		wait_more(s->t, &w, "the answer to a peek");
	*c = s->rx.list[s->rx.taken++];
	CHECK(c->ctx == ctx);
	if (!c->err)
		return 0;
	CHECK_EQ(c->err, FI_ENOMSG);
	return -FI_ENOMSG;
}

/* Peek until the message is there. */
static struct comp peek_found(struct side *s, uint64_t tag, uint64_t ignore, uint64_t flags, void *ctx)
{
	struct wait w = wait_begin();
	struct comp c = { 0 };

	while (peek(s, tag, ignore, flags, ctx, &c))
		wait_more(s->t, &w, "a peek to find the message");
	return c;
}

/* A peek finds nothing, then the message's length and tag, and takes nothing away. */
TEST_PROV(peek_does_not_consume, FI_TAGGED, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fi_context2 ctx;
	struct comp c;
	char in[8];

	CHECK_RET(peek(p.b, 5, 0, 0, &ctx, &c), -FI_ENOMSG);
	tsend_bytes(p.a, "abcdefgh", 8, 5);
	c = peek_found(p.b, 5, 0, 0, &ctx);
	CHECK_EQ(c.len, 8);
	CHECK_EQ(c.tag, 5);
	CHECK(c.flags & FI_TAGGED);
	CHECK_RET(peek(p.b, 6, 0, 0, &ctx, &c), -FI_ENOMSG);
	c = peek_found(p.b, 0, UINT64_MAX, 0, &ctx);
	CHECK_EQ(c.tag, 5);
	post_trecv(p.b, in, 8, 5, 0);
	expect_recv(p.b, "abcdefgh", 8);
	CHECK_RET(peek(p.b, 5, 0, 0, &ctx, &c), -FI_ENOMSG);
}

/* A program that does nothing but peek, and read the one answer each time, sees a message come. */
TEST_PROV(peek_is_progress, FI_TAGGED, RELIABLE)
{
	struct pair p = pair_open(t, .raw_cq = true);
	struct fi_context2 ctx;
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = 5, .context = &ctx };
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	double start = now_ms();
	ssize_t ret;

	if (!run.ours)
		ABSENT("upstream's fi_cq_read makes progress");
	post(p.a, TINJECT, .buf = "abcd", .len = 4, .tag = 5);
	do {
		fi_cq_read(p.a->tx_cq, &entry, 1);
		MUST(fi_trecvmsg(p.b->ep, &msg, FI_PEEK));
		ret = fi_cq_read(p.b->rx_cq, &entry, 1);
		if (ret == -FI_EAVAIL) {
			CHECK_RET(fi_cq_readerr(p.b->rx_cq, &err, 0), 1);
			CHECK_EQ(err.err, FI_ENOMSG);
		}
		if (now_ms() - start > 5000.0 * run.slow)
			FAIL("no message after 5 s of peeking");
	} while (ret != 1);
	CHECK_EQ(entry.len, 4);
}

/* A peek tells remote CQ data, and the source. */
TEST_PROV(peek_tells_data_and_source, FI_TAGGED | FI_SOURCE, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct fi_context2 ctx;
	struct comp c;
	char in[4];

	post(p.a, TSENDDATA, .buf = "abcd", .len = 4, .tag = 5, .data = 0x77);
	c = peek_found(p.b, 5, 0, 0, &ctx);
	CHECK(c.flags & FI_REMOTE_CQ_DATA);
	CHECK_EQ(c.data, 0x77);
	CHECK_EQ(c.src, p.b->peer);
	post_trecv(p.b, in, 4, 5, 0);
	CHECK_EQ(expect_recv(p.b, "abcd", 4).data, 0x77);
}

/* A claimed message goes to the claim's receive alone, found by context (also with FI_DIRECTED_RECV and address 0). */
TEST_PROV(claim, FI_TAGGED, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fi_context2 ctx;
	const fi_addr_t zero = 0;
	char in[2][8];
	struct comp c;

	tsend_bytes(p.a, "first---", 8, 5);
	tsend_bytes(p.a, "second--", 8, 5);
	c = peek_found(p.b, 5, 0, FI_CLAIM, &ctx);
	CHECK_EQ(c.len, 8);
	if (run.ours)		/* the entry tells a claim from a look */
		CHECK(c.flags & FI_CLAIM);
	post_trecv(p.b, in[0], 8, 5, 0);
	expect_recv(p.b, "second--", 8);
	post(p.b, TRECVMSG, .buf = in[1], .len = 8, .tag = 5, .flags = FI_CLAIM, .ctx = &ctx, .addr = &zero);
	c = expect_rx(p.b);
	CHECK(c.ctx == &ctx);
	CHECK_EQ(c.len, 8);
	CHECK_MEM(in[1], "first---", 8);
}

/* The same for a message that is not buffered. */
TEST_PROV(claim_large, FI_TAGGED, RELIABLE)
{
	enum { LEN = 2 << 20 };
	struct pair p = pair_open(t);
	uint8_t *in = mem(t, LEN), *out = mem_pattern(t, LEN, 5);
	struct fi_context2 ctx;

	tsend_bytes(p.a, out, LEN, 5);
	CHECK_EQ(peek_found(p.b, 5, 0, FI_CLAIM, &ctx).len, LEN);
	post(p.b, TRECVMSG, .buf = in, .len = LEN, .tag = 5, .flags = FI_CLAIM, .ctx = &ctx);
	CHECK_EQ(expect_rx(p.b).len, LEN);
	CHECK_MEM(in, out, LEN);
	expect_tx(p.a);
}

/* A claimed message is there for the claim's receive, also if its sender asks to cancel it (MPI_Mprobe, MPI_Cancel). */
TEST_PROV(claim_then_cancel, FI_TAGGED, RELIABLE)
{
	enum { LEN = 2 << 20 };
	struct pair p = pair_open(t);
	uint8_t *in = mem(t, LEN), *out = mem_pattern(t, LEN, 5);
	struct fi_context2 ctx, sent;
	struct comp c;

	if (!run.ours)
		ABSENT("upstream cannot cancel sends, and some of it crashes");
	post(p.a, TSEND, .buf = out, .len = LEN, .tag = 5, .ctx = &sent);
	peek_found(p.b, 5, 0, FI_CLAIM, &ctx);
	fi_cancel(&p.a->ep->fid, &sent);
	/* what was sent after the cancellation has arrived, so that has, too */
	tsend_bytes(p.a, "after---", 8, 6);
	peek_found(p.b, 6, 0, 0, &ctx);
	post(p.b, TRECVMSG, .buf = in, .len = LEN, .tag = 5, .flags = FI_CLAIM, .ctx = &ctx);
	c = expect_rx(p.b);
	CHECK(c.ctx == &ctx);
	CHECK_EQ(c.len, LEN);
	CHECK_MEM(in, out, LEN);
	expect_tx_cnt(p.a, 2);
}

/* A message can be discarded by the peek, or after it was claimed; the sender's completion comes all the same. */
TEST_PROV(discard, FI_TAGGED, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fi_context2 ctx;
	struct comp c;
	char in[8];

	tsend_bytes(p.a, "first---", 8, 5);
	tsend_bytes(p.a, "second--", 8, 5);
	tsend_bytes(p.a, "third---", 8, 5);
	CHECK_EQ(peek_found(p.b, 5, 0, FI_DISCARD, &ctx).len, 8);
	peek_found(p.b, 5, 0, FI_CLAIM, &ctx);
	post(p.b, TRECVMSG, .tag = 5, .flags = FI_CLAIM | FI_DISCARD, .ctx = &ctx);
	c = expect_rx(p.b);
	CHECK(c.ctx == &ctx);
	post_trecv(p.b, in, 8, 5, 0);
	expect_recv(p.b, "third---", 8);
	CHECK_RET(peek(p.b, 5, 0, 0, &ctx, &c), -FI_ENOMSG);
	expect_tx_cnt(p.a, 3);
}

/* A claimed message may still be truncated. */
TEST_PROV(claim_trunc, FI_TAGGED, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fi_context2 ctx;
	char in[4];

	tsend_bytes(p.a, "too long", 8, 5);
	peek_found(p.b, 5, 0, FI_CLAIM, &ctx);
	post(p.b, TRECVMSG, .buf = in, .len = 4, .tag = 5, .flags = FI_CLAIM, .ctx = &ctx);
	expect_rx_err(p.b, FI_ETRUNC, .olen = 4, .ctx = &ctx);
}
