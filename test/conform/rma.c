/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Remote memory access: calls, bounds, keys, order with messages. Source: fi_rma(3), fi_mr(3), fi_cq(3). */
#include <stdio.h>
#include <string.h>

#include "ops.h"

#define ALL_REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

static const struct call_row write_rows[] = {
	{ "write", WRITE }, { "writev", WRITEV }, { "writemsg", WRITEMSG }, { "inject_write", INJECT_WRITE },
	{ "writedata", WRITEDATA }, { "inject_writedata", INJECT_WRITEDATA },
};

static const struct call_row read_rows[] = {
	{ "read", READ }, { "readv", READV }, { "readmsg", READMSG },
};

/* The completion that a write with CQ data makes at the target. */
static void check_target(const struct comp *c, uint64_t data, size_t len)
{
	CHECK_EQ(c->flags & (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA | FI_MSG | FI_TAGGED | FI_RECV | FI_WRITE),
		 FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	CHECK_EQ(c->data, data);
	CHECK(c->ctx == NULL);
	if (c->len)
		CHECK_EQ(c->len, len);
}

/* Each way of writing puts the bytes where they belong, and only with CQ data the target hears of it. */
TEST_TABLE(write_call, write_rows, FI_RMA)
{
	const struct call_info *info = &calls[ROW(write_rows)->call];
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 64, ALL_REMOTE);
	struct comp c;
	void *ctx;

	ctx = post(p.a, ROW(write_rows)->call, .buf = "sixteen bytes ok", .len = 16, .raddr = r.addr + 8, .key = r.key,
		   .data = 0x01020304);
	if (info->data) {
		c = expect_rx(p.b);
		check_target(&c, 0x01020304, 16);
	} else {
		wait_byte(t, &r.buf[23], 'k');
	}
	CHECK_MEM(r.buf + 8, "sixteen bytes ok", 16);
	CHECK(r.buf[7] == 0 && r.buf[24] == 0);
	if (!info->inject) {
		c = expect_tx(p.a);
		CHECK(c.ctx == ctx);
		CHECK_EQ(c.flags & (FI_RMA | FI_WRITE | FI_MSG | FI_TAGGED | FI_SEND | FI_READ | FI_REMOTE_WRITE),
			 FI_RMA | FI_WRITE);
	}
	expect_no_completion(p.a);
	expect_no_completion(p.b);
}

/* Each way of reading brings the bytes, and the target hears nothing. */
TEST_TABLE(read_call, read_rows, FI_RMA)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 64, ALL_REMOTE);
	char in[16] = "";
	struct comp c;
	void *ctx;

	memcpy(r.buf + 8, "sixteen bytes ok", 16);
	ctx = post(p.a, ROW(read_rows)->call, .buf = in, .len = 16, .raddr = r.addr + 8, .key = r.key);
	c = expect_tx(p.a);
	CHECK(c.ctx == ctx);
	CHECK_EQ(c.flags & (FI_RMA | FI_READ | FI_MSG | FI_TAGGED | FI_SEND | FI_WRITE | FI_REMOTE_READ),
		 FI_RMA | FI_READ);
	CHECK_MEM(in, "sixteen bytes ok", 16);
	expect_no_completion(p.b);
}

static const struct length_row length_rows[] = {
	{ "1", 1 }, { "128", 128 }, { "129", 129 }, { "4K", 4096 }, { "64K", 65536 }, { "1M", 1 << 20 },
	{ "8M", 8 << 20 },
};

/* Any length: written, and read back. */
TEST_TABLE(length, length_rows, FI_RMA)
{
	struct pair p = pair_open(t);
	size_t len = ROW(length_rows)->len;
	uint8_t *out = mem_pattern(t, len, 1), *in = mem(t, len);
	struct region r = region_open(p.b, NULL, len + 2, ALL_REMOTE);

	post(p.a, WRITE, .buf = out, .len = len, .raddr = r.addr + 1, .key = r.key);
	expect_tx(p.a);
	post(p.a, READ, .buf = in, .len = len, .raddr = r.addr + 1, .key = r.key);
	expect_tx(p.a);
	CHECK_MEM(in, out, len);
	CHECK_MEM(r.buf + 1, out, len);
	CHECK(r.buf[0] == 0 && r.buf[len + 1] == 0);
}

/* Nothing to transfer is a transfer that completes. */
TEST_PROV(zero_length, FI_RMA)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);

	post(p.a, WRITE, .buf = NULL, .len = 0, .raddr = r.addr, .key = r.key);
	expect_tx(p.a);
	post(p.a, READ, .buf = NULL, .len = 0, .raddr = r.addr, .key = r.key);
	expect_tx(p.a);
}

/* A write of nothing with CQ data still delivers the data: the way to knock at a peer. */
TEST_PROV(zero_length_with_data, FI_RMA)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);
	struct comp c;

	post(p.a, WRITEDATA, .buf = NULL, .len = 0, .raddr = r.addr, .key = r.key, .data = 42);
	c = expect_rx(p.b);
	check_target(&c, 42, 0);
	expect_tx(p.a);
}

static void rx_cq_data(struct fi_info *hints)
{
	hints->mode |= FI_RX_CQ_DATA;
}

/* Whoever says that it posts receives for data (FI_RX_CQ_DATA) is told where they are needed, in both modes: there a
 * write with data waits for a receive, takes it, whatever its length, and leaves the buffer as it was. */
TEST_PROV(data_takes_receive_where_told, FI_MSG | FI_RMA, RELIABLE)
{
	struct pair p = pair_open(t, .hints = rx_cq_data);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);
	char in[2][4] = { "....", "" };
	struct comp c;

	CHECK_EQ(p.a->info->rx_attr->mode & FI_RX_CQ_DATA, p.a->info->mode & FI_RX_CQ_DATA);
	if (!(p.b->info->mode & FI_RX_CQ_DATA))
		ABSENT("no receive is needed here");
	if (p.b->info->domain_attr->cq_data_size < 4)
		ABSENT("data of %zu bytes", p.b->info->domain_attr->cq_data_size);
	post(p.a, WRITEDATA, .buf = "12345678", .len = 8, .raddr = r.addr, .key = r.key, .data = 42);
	post_recv(p.b, in[0], 4);
	post_recv(p.b, in[1], 4);
	c = expect_rx(p.b);
	CHECK_EQ(c.flags & (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA | FI_MSG),
		 FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	CHECK_EQ(c.data, 42);
	CHECK_EQ(c.len, 8);
	CHECK_MEM(r.buf, "12345678", 8);
	CHECK_MEM(in[0], "....", 4);
	expect_tx(p.a);
	send_bytes(p.a, "next", 4);
	expect_recv(p.b, "next", 4);
	CHECK_MEM(in[1], "next", 4);
}

/* Local pieces and remote pieces need not agree. */
TEST_PROV(iov_to_rma_iov, FI_RMA)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 100, ALL_REMOTE), q = region_open(p.b, NULL, 100, ALL_REMOTE);
	uint8_t *out = mem_pattern(t, 90, 1), *in = mem(t, 90);
	struct iovec from[3] = { { out, 10 }, { out + 10, 50 }, { out + 60, 30 } };
	struct iovec to[2] = { { in, 1 }, { in + 1, 89 } };
	struct fi_rma_iov rma[3] = { { r.addr + 5, 40, r.key }, { q.addr, 25, q.key }, { r.addr + 60, 25, r.key } };

	if (p.a->info->tx_attr->rma_iov_limit < 3 || p.a->info->tx_attr->iov_limit < 3)
		ABSENT("rma_iov_limit is %zu", p.a->info->tx_attr->rma_iov_limit);
	post(p.a, WRITEMSG, .iov = from, .iov_cnt = 3, .rma_iov = rma, .rma_cnt = 3);
	expect_tx(p.a);
	post(p.a, READMSG, .iov = to, .iov_cnt = 2, .rma_iov = rma, .rma_cnt = 3);
	expect_tx(p.a);
	CHECK_MEM(in, out, 90);
	CHECK_MEM(r.buf + 5, out, 40);
	CHECK_MEM(q.buf, out + 40, 25);
	CHECK_MEM(r.buf + 60, out + 65, 25);
}

/* A region for reads alone is enough to read into. */
TEST_PROV(read_into_a_region_for_reads, FI_MSG | FI_RMA)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 64, ALL_REMOTE);
	uint8_t *in = mem(t, 64);
	struct fid_mr *mr;

	memcpy(r.buf, "sixteen bytes ok", 16);
	MUST(fi_mr_reg(p.a->domain, in, 64, FI_READ, 0, 900, 0, &mr, NULL));
	own_fid(t, &mr->fid);
	check_link(p.a, p.b);
	MUST((int) fi_read(p.a->ep, in, 16, fi_mr_desc(mr), p.a->peer, r.addr, r.key, in));
	p.a->tx_posted++;
	CHECK(expect_tx(p.a).ctx == in);
	CHECK_MEM(in, "sixteen bytes ok", 16);
}

/* As many pieces as there may be are read into, each its own bytes, and many such reads may be outstanding. */
TEST_PROV(read_scatters, FI_RMA)
{
	enum { N = 40, LEN = 1000, GAP = 24 };
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, N * LEN, ALL_REMOTE);
	uint8_t *in = mem(t, N * (LEN + GAP)), *out = mem_pattern(t, N * LEN, 8);
	size_t cnt = p.a->info->tx_attr->iov_limit, rest, i, n;
	struct iovec iov[LEN];

	if (cnt < 2 || cnt > GAP)
		ABSENT("iov_limit is %zu", cnt);
	rest = LEN - (cnt - 1) * 10 - (cnt - 1) * (cnt - 2) / 2;
	memcpy(r.buf, out, N * LEN);
	for (n = 0; n < N; n++) {
		uint8_t *at = in + n * (LEN + GAP);

		for (i = 0; i < cnt; i++) {
			iov[i] = (struct iovec) { at, i + 1 < cnt ? 10 + i : rest };
			at += iov[i].iov_len + 1;
		}
		post(p.a, READV, .iov = iov, .iov_cnt = cnt, .raddr = r.addr + n * LEN, .key = r.key);
	}
	expect_tx_cnt(p.a, N);
	for (n = 0; n < N; n++) {
		const uint8_t *at = in + n * (LEN + GAP), *want = out + n * LEN;

		for (i = 0; i < cnt; i++) {
			size_t len = i + 1 < cnt ? 10 + i : LEN - (cnt - 1) * 10 - (cnt - 1) * (cnt - 2) / 2;

			CHECK_MEM(at, want, len);
			CHECK_EQ(at[len], 0);
			at += len + 1;
			want += len;
		}
	}
	expect_no_completion(p.a);
}

/* One completion for a read that fails, of however many pieces. */
TEST_PROV(read_that_scatters_fails_once, FI_RMA, RELIABLE)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 64, ALL_REMOTE);
	uint8_t in[64];
	struct iovec iov[2] = { { in, 16 }, { in + 32, 16 } };
	void *ctx;

	if (p.a->info->tx_attr->iov_limit < 2)
		ABSENT("iov_limit is 1");
	ctx = post(p.a, READV, .iov = iov, .iov_cnt = 2, .raddr = r.addr, .key = r.key ^ 0x5a);
	CHECK(expect_tx_failed(p.a).ctx == ctx);
	expect_no_completion(p.a);
}

/* iov_limit and rma_iov_limit are taken, one more is -FI_EINVAL. */
TEST_PROV(rma_iov_limits, FI_RMA)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 256, ALL_REMOTE);
	size_t max = p.a->info->tx_attr->rma_iov_limit, local = p.a->info->tx_attr->iov_limit, i;
	struct fi_rma_iov rma[64];
	struct iovec iov[64];
	uint8_t out[64], in[64] = { 0 };

	CHECK(max >= 1);
	if (max >= COUNT(rma) || local >= COUNT(iov))
		ABSENT("limits of %zu and %zu", max, local);
	fill(out, sizeof(out), 3);
	for (i = 0; i < COUNT(rma); i++) {
		rma[i] = (struct fi_rma_iov) { .addr = r.addr + 2 * i, .len = 1, .key = r.key };
		iov[i] = (struct iovec) { .iov_base = &out[i], .iov_len = 1 };
	}
	post(p.a, WRITEMSG, .buf = out, .len = max, .rma_iov = rma, .rma_cnt = max);
	expect_tx(p.a);
	post(p.a, READMSG, .buf = in, .len = max, .rma_iov = rma, .rma_cnt = max);
	expect_tx(p.a);
	CHECK_MEM(in, out, max);
	for (i = 0; i < max; i++)
		CHECK_EQ(r.buf[2 * i], out[i]);
	if (!run.ours)
		return;		/* upstream asserts */
	CHECK_RET(post_ret(p.a, WRITEMSG, .buf = out, .len = max + 1, .rma_iov = rma, .rma_cnt = max + 1), -FI_EINVAL);
	CHECK_RET(post_ret(p.a, READMSG, .buf = out, .len = max + 1, .rma_iov = rma, .rma_cnt = max + 1), -FI_EINVAL);
	CHECK_RET(post_ret(p.a, WRITEV, .iov = iov, .iov_cnt = local + 1, .raddr = r.addr, .key = r.key), -FI_EINVAL);
	CHECK_RET(post_ret(p.a, READV, .iov = iov, .iov_cnt = local + 1, .raddr = r.addr, .key = r.key), -FI_EINVAL);
	expect_no_completion(p.a);
}

/* Injected writes leave their buffer to the caller. */
TEST_PROV(inject_write_buffer_is_free_at_once, FI_RMA)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 64 * 4, ALL_REMOTE);
	uint32_t i, out;

	for (i = 0; i < 64; i++) {
		out = i + 1;
		post(p.a, INJECT_WRITE, .buf = &out, .len = 4, .raddr = r.addr + 4 * i, .key = r.key);
		out = 0xdeadbeef;
	}
	wait_byte(t, &r.buf[63 * 4], 64);
	for (i = 0; i < 64; i++)
		CHECK_EQ(((uint32_t *) r.buf)[i], i + 1);
	expect_no_completion(p.a);
}

static const struct flag_row flag_rows[] = {
	{ "none", 0 }, { "completion", FI_COMPLETION }, { "more", FI_MORE }, { "inject", FI_INJECT },
	{ "inject_complete", FI_INJECT_COMPLETE }, { "transmit_complete", FI_TRANSMIT_COMPLETE },
	{ "delivery_complete", FI_DELIVERY_COMPLETE }, { "inject_delivery", FI_INJECT | FI_DELIVERY_COMPLETE },
	{ "cq_data", FI_REMOTE_CQ_DATA }, { "cq_data_delivery", FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE },
};

/* Each flag of fi_writemsg() gives one completion; a delivery completion is true. */
TEST_TABLE(writemsg_flag, flag_rows, FI_RMA)
{
	uint64_t flags = ROW(flag_rows)->flags;
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);
	struct wait w = wait_begin();
	struct comp c;

	post(p.a, WRITEMSG, .buf = "sixteen bytes ok", .len = 16, .raddr = r.addr, .key = r.key, .flags = flags,
	     .data = 5);
	while (!tx_waiting(p.a))
		wait_more(t, &w, "the completion");
	if (flags & FI_DELIVERY_COMPLETE)
		CHECK_MEM(r.buf, "sixteen bytes ok", 16);
	expect_tx(p.a);
	wait_byte(t, &r.buf[15], 'k');
	if (flags & FI_REMOTE_CQ_DATA) {
		c = expect_rx(p.b);
		check_target(&c, 5, 16);
	}
	expect_no_completion(p.a);
	expect_no_completion(p.b);
}

/* No delivery completion of a write while a target with manual progress does nothing. */
TEST_PROV(write_delivery_waits_for_target, FI_RMA)
{
	enum { LEN = 5 << 20 };		/* more than a peer of the host copies in its call */
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	struct region r = region_open(p.b, NULL, LEN, ALL_REMOTE);
	uint8_t *out = mem_pattern(t, LEN, 2);
	struct wait w = wait_begin();

	/* The link must be there before the target goes quiet. */
	post(p.a, WRITE, .buf = out, .len = 1, .raddr = r.addr, .key = r.key);
	expect_tx(p.a);
	post(p.a, WRITE, .buf = out, .len = LEN, .raddr = r.addr, .key = r.key);
	if (p.b->info->domain_attr->data_progress == FI_PROGRESS_MANUAL) {
		side_idle(p.a);
		CHECK_EQ(tx_waiting(p.a), 0);
	}
	while (!tx_waiting(p.a))
		wait_more(t, &w, "the delivery completion");
	CHECK_MEM(r.buf, out, LEN);
}

/* Selective completion holds for RMA. */
TEST_PROV(rma_selective, FI_RMA)
{
	struct pair p = pair_open(t, .tx_bind = FI_SELECTIVE_COMPLETION);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);
	char in[4];
	void *ctx;

	post(p.a, WRITE, .buf = "abcd", .len = 4, .raddr = r.addr, .key = r.key);
	post(p.a, READ, .buf = in, .len = 4, .raddr = r.addr, .key = r.key);
	ctx = post(p.a, WRITEMSG, .buf = "efgh", .len = 4, .raddr = r.addr, .key = r.key, .flags = FI_COMPLETION);
	CHECK(expect_tx(p.a).ctx == ctx);
	ctx = post(p.a, READMSG, .buf = in, .len = 4, .raddr = r.addr, .key = r.key, .flags = FI_COMPLETION);
	CHECK(expect_tx(p.a).ctx == ctx);
	CHECK_MEM(in, "efgh", 4);
	expect_no_completion(p.a);
}

/* ---- what is not allowed */

enum fault { WRONG_KEY, BEYOND_END, ACROSS_END, BEFORE_START, WRAPS, NO_ACCESS, CLOSED };

struct fault_row {
	const char *name;
	enum call call;
	enum fault fault;
};

static const struct fault_row fault_rows[] = {
	{ "write_wrong_key", WRITE, WRONG_KEY }, { "write_beyond_end", WRITE, BEYOND_END },
	{ "write_across_end", WRITE, ACROSS_END }, { "write_before_start", WRITE, BEFORE_START },
	{ "write_wraps", WRITE, WRAPS }, { "write_no_access", WRITE, NO_ACCESS }, { "write_closed", WRITE, CLOSED },
	{ "read_wrong_key", READ, WRONG_KEY }, { "read_beyond_end", READ, BEYOND_END },
	{ "read_across_end", READ, ACROSS_END }, { "read_before_start", READ, BEFORE_START },
	{ "read_wraps", READ, WRAPS }, { "read_no_access", READ, NO_ACCESS }, { "read_closed", READ, CLOSED },
	{ "writedata_wrong_key", WRITEDATA, WRONG_KEY },
};

static void close_region(struct side *s, struct region *r)
{
	close_now(s->t, &r->mr->fid);
}

/*
 * An access that the target does not allow is one error completion at the initiator, touches nothing, and makes no
 * completion at the target. An RDM endpoint goes on; for MSG fi_domain(3) lets the connection be torn down.
 */
TEST_TABLE(access_fault, fault_rows, FI_RMA | FI_MSG, RELIABLE)
{
	const struct fault_row *row = ROW(fault_rows);
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	uint8_t *around = mem(t, 3 * 4096), *zero = mem(t, 3 * 4096), *buf = mem_pattern(t, 4096, 1);
	uint64_t access = row->fault != NO_ACCESS ? ALL_REMOTE : row->call == READ ? FI_REMOTE_WRITE : FI_REMOTE_READ;
	struct region r = region_open(p.b, around + 4096, 4096, access);
	uint64_t addr = r.addr, key = r.key;
	struct comp c;
	void *ctx;

	switch (row->fault) {
	case WRONG_KEY:
		key ^= 0x5a5a5a;
		break;
	case BEYOND_END:
		addr += 4096;
		break;
	case ACROSS_END:
		addr += 4096 - 8;
		break;
	case BEFORE_START:
		addr -= 8;
		break;
	case WRAPS:
		addr = UINT64_MAX - 7;
		break;
	case NO_ACCESS:
		break;
	case CLOSED:
		close_region(p.b, &r);
		break;
	}
	check_link(p.a, p.b);
	ctx = post(p.a, row->call, .buf = buf, .len = 16, .raddr = addr, .key = key, .data = 3);
	c = expect_tx_failed(p.a);
	CHECK(c.ctx == ctx);
	CHECK_EQ(c.flags & (FI_RMA | FI_READ | FI_WRITE), FI_RMA | (row->call == READ ? FI_READ : FI_WRITE));
	expect_both_ends_named(p.a);
	CHECK_EQ(rx_waiting(p.b), 0);
	CHECK_MEM(around, zero, 3 * 4096);
	if (run.type == FI_EP_RDM)
		check_link(p.a, p.b);
}

/* Closing one region leaves a write alone that is on its way into another. */
TEST_PROV(write_survives_close_of_another_region, FI_RMA)
{
	enum { LEN = 32 << 20 };
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	struct region r = region_open(p.b, NULL, LEN, ALL_REMOTE), other = region_open(p.b, NULL, 64, ALL_REMOTE);
	uint8_t *out = mem_pattern(t, LEN, 4);

	if (p.a->info->ep_attr->max_msg_size < LEN)
		ABSENT("a write has at most %zu bytes here", p.a->info->ep_attr->max_msg_size);
	out[0] = 1;
	out[LEN - 1] = 1;
	post(p.a, WRITE, .buf = out, .len = LEN, .raddr = r.addr, .key = r.key);
	wait_byte(t, r.buf, 1);
	close_region(p.b, &other);
	expect_tx(p.a);
	CHECK_MEM(r.buf, out, LEN);
}

/* Which error it is: a key nobody has, a range that is not there, a right that is not given. */
TEST_PROV(access_fault_errno, FI_RMA, RDM_ONLY)
{
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	struct region r = region_open(p.b, NULL, 64, FI_REMOTE_READ);
	uint8_t buf[16] = { 0 };

	if (!run.ours)
		ABSENT("fi_rma(3) names no errors");
	post(p.a, WRITE, .buf = buf, .len = 16, .raddr = r.addr, .key = r.key ^ 0x5a5a5a);
	expect_tx_err(p.a, FI_ENOKEY);
	post(p.a, WRITE, .buf = buf, .len = 16, .raddr = r.addr, .key = r.key);
	expect_tx_err(p.a, FI_EACCES);
	post(p.a, READ, .buf = buf, .len = 16, .raddr = r.addr + 56, .key = r.key);
	expect_tx_err(p.a, FI_EINVAL);
	post(p.a, READ, .buf = buf, .len = 16, .raddr = r.addr, .key = r.key);
	expect_tx(p.a);
}

/* One bad piece of several spoils the whole operation, and nothing of it is written. */
TEST_PROV(bad_piece_writes_nothing, FI_RMA, RELIABLE)
{
	struct pair p = pair_open(t, .tx_op_flags = FI_DELIVERY_COMPLETE);
	struct region r = region_open(p.b, NULL, 64, ALL_REMOTE);
	uint8_t *out = mem_pattern(t, 32, 1), zero[64] = { 0 };
	struct fi_rma_iov rma[2] = { { r.addr, 16, r.key }, { r.addr + 56, 16, r.key } };

	if (p.a->info->tx_attr->rma_iov_limit < 2)
		ABSENT("rma_iov_limit is 1");
	if (!run.ours)
		ABSENT("fi_rma(3) does not say how much of it happens");
	post(p.a, WRITEMSG, .buf = out, .len = 32, .rma_iov = rma, .rma_cnt = 2, .flags = FI_DELIVERY_COMPLETE);
	expect_tx_failed(p.a);
	CHECK_MEM(r.buf, zero, 64);
}

/* ---- order */

/* A message sent after a write finds the data there (FI_ORDER_SAW). */
TEST_PROV(send_after_write, FI_RMA | FI_MSG)
{
	static const size_t lens[] = { 8, 5000, 300000, 2 << 20 };
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 2 << 20, ALL_REMOTE);
	char in[4];
	size_t i;

	if (!(p.a->info->tx_attr->msg_order & FI_ORDER_SAW))
		ABSENT("no FI_ORDER_SAW");
	for (i = 0; i < 12; i++) {
		uint8_t *out = mem_pattern(t, lens[i % 4], 20 + (unsigned int) i);

		post_recv(p.b, in, 4);
		post(p.a, WRITE, .buf = out, .len = lens[i % 4], .raddr = r.addr, .key = r.key);
		send_bytes(p.a, "done", 4);
		expect_recv(p.b, "done", 4);
		CHECK_MEM(r.buf, out, lens[i % 4]);
		expect_tx_cnt(p.a, 2);
	}
}

/* A read after a write sees it (FI_ORDER_RAW), the last of several writes is what stays (FI_ORDER_WAW). */
TEST_PROV(read_after_writes, FI_RMA)
{
	enum { LEN = 200000 };
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, LEN, ALL_REMOTE);
	uint8_t *out[5], *in = mem(t, LEN);
	unsigned int i;

	if ((p.a->info->tx_attr->msg_order & (FI_ORDER_RAW | FI_ORDER_WAW)) != (FI_ORDER_RAW | FI_ORDER_WAW))
		ABSENT("no FI_ORDER_RAW and WAW");
	if (p.a->info->ep_attr->max_order_raw_size < LEN || p.a->info->ep_attr->max_order_waw_size < LEN)
		ABSENT("data order of %zu bytes", p.a->info->ep_attr->max_order_raw_size);
	for (i = 0; i < COUNT(out); i++) {
		out[i] = mem_pattern(t, LEN, i);
		post(p.a, WRITE, .buf = out[i], .len = LEN, .raddr = r.addr, .key = r.key);
	}
	post(p.a, READ, .buf = in, .len = LEN, .raddr = r.addr, .key = r.key);
	expect_tx_cnt(p.a, COUNT(out) + 1);
	CHECK_MEM(in, out[COUNT(out) - 1], LEN);
}

/* Many reads in flight: each brings its own piece. */
TEST_PROV(many_reads, FI_RMA)
{
	enum { N = 300, PIECE = 700 };
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, N * PIECE, ALL_REMOTE);
	uint8_t *in = mem(t, N * PIECE);
	unsigned int i;

	fill(r.buf, r.len, 4);
	for (i = 0; i < N; i++)
		post(p.a, READ, .buf = in + i * PIECE, .len = PIECE, .raddr = r.addr + i * PIECE, .key = r.key);
	expect_tx_cnt(p.a, N);
	CHECK_MEM(in, r.buf, r.len);
}

/* Both ends read and write large pieces of each other at once, and messages go in between. */
TEST_PROV(both_directions, FI_RMA | FI_MSG)
{
	enum { LEN = 3 << 20 };
	struct pair p = pair_open(t);
	struct region r[2] = { region_open(p.a, NULL, 2 * LEN, ALL_REMOTE),
			       region_open(p.b, NULL, 2 * LEN, ALL_REMOTE) };
	struct side *s[2] = { p.a, p.b };
	uint8_t *in[2], *out[2];
	char msg[2][4];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		in[i] = mem(t, LEN);
		out[i] = mem_pattern(t, LEN, i);
		fill(r[i].buf + LEN, LEN, 10 + i);
		post_recv(s[i], msg[i], 4);
	}
	for (i = 0; i < 2; i++) {
		post(s[i], WRITE, .buf = out[i], .len = LEN, .raddr = r[!i].addr, .key = r[!i].key);
		post(s[i], READ, .buf = in[i], .len = LEN, .raddr = r[!i].addr + LEN, .key = r[!i].key);
		send_bytes(s[i], "done", 4);
	}
	for (i = 0; i < 2; i++) {
		expect_recv(s[i], "done", 4);
		expect_tx_cnt(s[i], 3);
		CHECK_MEM(in[i], r[!i].buf + LEN, LEN);
		CHECK_MEM(r[i].buf, out[!i], LEN);
	}
}

/* An endpoint may write to and read from itself. */
TEST_PROV(self_rma, FI_RMA, RDM_ONLY)
{
	struct side *s = side_open(t);
	struct region r = region_open(s, NULL, 100000, ALL_REMOTE);
	uint8_t *out = mem_pattern(t, 100000, 1), *in = mem(t, 100000);

	s->peer = side_insert(s, s);
	post(s, WRITE, .buf = out, .len = 100000, .raddr = r.addr, .key = r.key);
	expect_tx(s);
	post(s, READ, .buf = in, .len = 100000, .raddr = r.addr, .key = r.key);
	expect_tx(s);
	CHECK_MEM(in, out, 100000);
}
