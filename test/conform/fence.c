/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* FI_FENCE: an operation starts when all before it to the same peer have completed. Source: fi_msg(3), fi_rma(3). */
#include "ops.h"

#define ALL_REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
/* More than a socket takes, and than a peer of the host copies in its call, so that a read is long on its way. */
#define LEN (5 << 20)

static const struct call_row send_rows[] = { { "sendmsg", SENDMSG }, { "tsendmsg", TSENDMSG } };

/* What is written behind the fence is not seen by a read before it, for which no order is promised otherwise. */
TEST_PROV(write_behind_read, FI_RMA | FI_FENCE, RELIABLE)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, mem_pattern(t, LEN, 1), LEN, ALL_REMOTE);
	uint8_t *in = mem(t, LEN), *out = mem_pattern(t, LEN, 2);

	post(p.a, READ, .buf = in, .len = LEN, .raddr = r.addr, .key = r.key);
	post(p.a, WRITEMSG, .buf = out, .len = LEN, .raddr = r.addr, .key = r.key,
	     .flags = FI_FENCE | FI_COMPLETION | level_delivered());
	expect_tx_cnt(p.a, 2);
	check_fill(in, LEN, 1);
	check_fill(r.buf, LEN, 2);
}

/* A read behind the fence brings what was written before it, into one buffer and into several. */
TEST_PROV(read_behind_write, FI_RMA | FI_FENCE, RELIABLE)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, mem_pattern(t, LEN, 1), LEN, ALL_REMOTE);
	uint8_t *in = mem(t, LEN), *out = mem_pattern(t, LEN, 2);
	struct iovec iov[2] = { { in, LEN / 4 }, { in + LEN / 4, LEN - LEN / 4 } };

	for (size_t cnt = 1; cnt <= MIN(p.a->info->tx_attr->iov_limit, COUNT(iov)); cnt++) {
		fill(out, LEN, 1 + (unsigned int) cnt);
		memset(in, 0, LEN);
		post(p.a, WRITE, .buf = out, .len = LEN, .raddr = r.addr, .key = r.key);
		iov[0].iov_len = cnt == 1 ? LEN : LEN / 4;
		post(p.a, READMSG, .iov = iov, .iov_cnt = cnt, .raddr = r.addr, .key = r.key,
		     .flags = FI_FENCE | FI_COMPLETION);
		expect_tx_cnt(p.a, 2);
		check_fill(in, LEN, 1 + (unsigned int) cnt);
	}
}

/* A message behind the fence arrives when the read before it has been answered: the memory is its owner's again. */
TEST_TABLE(message_behind_read, send_rows, FI_RMA | FI_MSG | FI_TAGGED | FI_FENCE, RELIABLE)
{
	bool tagged = ROW(send_rows)->call == TSENDMSG;
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, mem_pattern(t, LEN, 1), LEN, ALL_REMOTE);
	uint8_t *in = mem(t, LEN);
	char note[4];

	post(p.b, tagged ? TRECV : RECV, .buf = note, .len = sizeof(note), .tag = 5);
	post(p.a, READ, .buf = in, .len = LEN, .raddr = r.addr, .key = r.key);
	post(p.a, ROW(send_rows)->call, .buf = "done", .len = 4, .tag = 5, .flags = FI_FENCE | FI_COMPLETION);
	expect_recv(p.b, "done", 4);
	memset(r.buf, 0, LEN);
	expect_tx_cnt(p.a, 2);
	check_fill(in, LEN, 1);
}

/* Both ends wait behind a fence for what the other still has to answer: answers pass. And what is behind is in
 * order. */
TEST_PROV(both_ways, FI_RMA | FI_MSG | FI_FENCE, RELIABLE)
{
	struct pair p = pair_open(t);
	struct side *side[2] = { p.a, p.b };
	uint8_t *in[2], got[2][3];

	for (unsigned int i = 0; i < 2; i++) {
		for (unsigned int k = 0; k < 3; k++)
			post(side[i], RECV, .buf = &got[i][k], .len = 1);
	}
	for (unsigned int i = 0; i < 2; i++) {
		struct region r = region_open(side[!i], mem_pattern(t, LEN, 1 + i), LEN, ALL_REMOTE);

		in[i] = mem(t, LEN);
		post(side[i], READ, .buf = in[i], .len = LEN, .raddr = r.addr, .key = r.key);
		post(side[i], SENDMSG, .buf = "1", .len = 1, .flags = FI_FENCE | FI_COMPLETION);
		post(side[i], SEND, .buf = "2", .len = 1);
		post(side[i], SENDMSG, .buf = "3", .len = 1, .flags = FI_FENCE | FI_COMPLETION);
	}
	for (unsigned int i = 0; i < 2; i++) {
		expect_tx_cnt(side[i], 4);
		expect_rx_cnt(side[i], 3);
		check_fill(in[i], LEN, 1 + i);
		CHECK_MEM(got[i], "123", 3);
	}
}

/* With nothing before it a fence costs nothing. */
TEST_PROV(alone, FI_MSG | FI_FENCE, RELIABLE)
{
	struct pair p = pair_open(t);
	char in[4];

	for (unsigned int i = 0; i < 3; i++) {
		post_recv(p.b, in, 4);
		post(p.a, SENDMSG, .buf = "abcd", .len = 4, .flags = FI_FENCE | FI_COMPLETION);
		expect_recv(p.b, "abcd", 4);
		expect_tx(p.a);
	}
}

static void set_manual(struct fi_info *hints)
{
	hints->domain_attr->control_progress = hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
}

/* One that waits can be cancelled, and what is behind it goes on. (A peer with a thread may have answered before.) */
TEST_PROV(cancelled, FI_RMA | FI_MSG | FI_FENCE, RELIABLE)
{
	struct pair p = pair_open(t, .hints = set_manual);
	struct region r = region_open(p.b, mem_pattern(t, LEN, 1), LEN, ALL_REMOTE);
	uint8_t *in = mem(t, LEN);
	char got[1];
	struct comp c;
	void *ctx;

	check_link(p.a, p.b);
	post_recv(p.b, got, 1);
	post(p.a, READ, .buf = in, .len = LEN, .raddr = r.addr, .key = r.key);
	ctx = post(p.a, SENDMSG, .buf = "x", .len = 1, .flags = FI_FENCE | FI_COMPLETION);
	post(p.a, SEND, .buf = "y", .len = 1);
	MUST(fi_cancel(&p.a->ep->fid, ctx));
	c = expect_tx_err(p.a, FI_ECANCELED);
	CHECK(c.ctx == ctx);
	expect_recv(p.b, "y", 1);
	expect_tx_cnt(p.a, 2);
	check_fill(in, LEN, 1);
}

/* When the peer goes, those that wait end, too: one completion each. */
TEST_PROV(peer_gone, FI_RMA | FI_MSG | FI_FENCE, RELIABLE)
{
	struct pair p = pair_open(t, .hints = set_manual);
	struct region r = region_open(p.b, NULL, LEN, ALL_REMOTE);
	uint8_t *in = mem(t, LEN);

	check_link(p.a, p.b);
	post(p.a, READ, .buf = in, .len = LEN, .raddr = r.addr, .key = r.key);
	post(p.a, SENDMSG, .buf = "x", .len = 1, .flags = FI_FENCE | FI_COMPLETION);
	post(p.a, SEND, .buf = "y", .len = 1);
	close_now(t, &r.mr->fid);
	side_close_ep(p.b);
	for (unsigned int i = 0; i < 3; i++)
		expect_tx_failed(p.a);
}
