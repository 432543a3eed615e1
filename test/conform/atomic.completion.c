/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics that end: their completions, counters at both ends, deferred work. Source: fi_atomic(3), fi_cq(3), fi_mr(3),
 * fi_trigger(3).
 */
#include <rdma/fi_trigger.h>

#include "atomic_call.h"

/* ---- completions */

static const struct kind_row {
	const char *name;
	enum kind kind;
	enum fi_op op;
	uint64_t flags;			/* of the completion */
} kind_rows[] = {
	{ "base", BASE, FI_SUM, FI_ATOMIC | FI_WRITE },
	{ "fetch", FETCH, FI_SUM, FI_ATOMIC | FI_READ },
	{ "compare", COMPARE, FI_CSWAP, FI_ATOMIC | FI_READ },
};

/* A completion says what it is of. At the target there is none. */
TEST_TABLE(completion, kind_rows, FI_ATOMIC, RELIABLE)
{
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);
	uint64_t one = 1, zero = 0, result;
	struct comp c;

	amo_u64(p.a, ROW(kind_rows)->kind, ONE, .op = ROW(kind_rows)->op, .buf = &one, .compare = &zero,
		.result = &result, .raddr = r.addr, .key = r.key, .ctx = &c);
	c = expect_tx(p.a);
	CHECK(c.ctx == &c);
	CHECK_EQ(c.flags & (FI_ATOMIC | FI_WRITE | FI_READ | FI_RMA | FI_MSG | FI_TAGGED | FI_SEND | FI_RECV),
		 ROW(kind_rows)->flags);
	expect_no_completion(p.b);
}

/* With selective completion only those that ask for it have one. */
TEST_TABLE(selective, kind_rows, FI_ATOMIC, RELIABLE)
{
	struct pair p = pair_open(t, .tx_bind = FI_SELECTIVE_COMPLETION);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);
	uint64_t one = 1, zero = 0, result[2];
	struct comp c;

	for (unsigned int i = 0; i < 2; i++)
		amo_u64(p.a, ROW(kind_rows)->kind, i ? MSG : ONE, .op = ROW(kind_rows)->op, .buf = &one,
			.compare = &zero, .result = &result[i], .raddr = r.addr, .key = r.key, .ctx = &result[i],
			.flags = i ? FI_COMPLETION : 0);
	c = expect_tx(p.a);
	CHECK(c.ctx == &result[1]);
	expect_no_completion(p.a);
	CHECK_EQ(result[1], ROW(kind_rows)->kind == BASE ? result[1] : 1);
}

/* The buffers that are not written to are the caller's again when an injecting call returns. */
TEST_TABLE(inject, kind_rows, FI_ATOMIC, RELIABLE)
{
	enum { N = 200 };
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);
	uint64_t one, cmp, result[N];

	for (unsigned int i = 0; i < N; i++) {
		bool swap = ROW(kind_rows)->kind == COMPARE;

		one = swap ? i + 1 : 1;
		cmp = i;
		amo_u64(p.a, ROW(kind_rows)->kind, MSG, .op = ROW(kind_rows)->op, .buf = &one, .compare = &cmp,
			.result = &result[i], .raddr = r.addr + 1, .key = r.key,
			.flags = FI_INJECT | FI_COMPLETION | level_delivered());
		one = cmp = 1000;
	}
	expect_tx_cnt(p.a, N);
	for (unsigned int i = 0; i < N && ROW(kind_rows)->kind != BASE; i++)
		CHECK_EQ(result[i], i);
	CHECK_MEM(r.buf + 1, &(uint64_t) { N }, 8);
}

struct bound {
	struct pair p;
	struct fid_cntr *cntr;
};

static struct bound bound_open(struct test *t, bool target, uint64_t flags)
{
	struct bound b = { .p = pair_open(t) };
	struct side *s = target ? b.p.b : b.p.a;
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };

	MUST(fi_cntr_open(s->domain, &attr, &b.cntr, NULL));
	own_fid(t, &b.cntr->fid);
	MUST(fi_ep_bind(s->ep, &b.cntr->fid, flags));
	disown(t, &s->ep->fid);
	own_fid(t, &s->ep->fid);
	return b;
}

static const struct count_row {
	const char *name;
	bool target;
	uint64_t flags;
	uint64_t want;			/* of two that fetch nothing, one of them injected, a fetching, a comparing */
} count_rows[] = {
	{ "write", false, FI_WRITE, 2 }, { "read", false, FI_READ, 2 },
	{ "remote_write", true, FI_REMOTE_WRITE, 2 }, { "remote_read", true, FI_REMOTE_READ, 2 },
};

/* Those that fetch count as reads, the others as writes, at both ends. */
TEST_TABLE(counted, count_rows, FI_ATOMIC | FI_RMA_EVENT, RELIABLE)
{
	const struct count_row *row = ROW(count_rows);
	struct bound b;
	struct region r;
	struct wait w = wait_begin();
	uint64_t one = 1, result;

	if (!run.ours)
		ABSENT("a counter that is bound late");
	b = bound_open(t, row->target, row->flags);
	r = region_open(b.p.b, NULL, 16, ALL_REMOTE);
	amo_u64(b.p.a, BASE, ONE, .op = FI_SUM, .buf = &one, .raddr = r.addr, .key = r.key);
	amo_u64(b.p.a, BASE, INJ, .op = FI_SUM, .buf = &one, .raddr = r.addr, .key = r.key);
	amo_u64(b.p.a, FETCH, ONE, .op = FI_SUM, .buf = &one, .result = &result, .raddr = r.addr, .key = r.key);
	amo_u64(b.p.a, COMPARE, ONE, .op = FI_CSWAP, .buf = &one, .compare = &one, .result = &result, .raddr = r.addr,
		.key = r.key);
	expect_tx_cnt(b.p.a, 3);
	while (fi_cntr_read(b.cntr) < row->want)
		wait_more(t, &w, "atomics to be counted");
	idle(t);
	CHECK_EQ(fi_cntr_read(b.cntr), row->want);
	CHECK_EQ(fi_cntr_readerr(b.cntr), 0);
}

/* A counter of a region counts what changes it. */
TEST_PROV(region_counter, FI_ATOMIC | FI_RMA_EVENT, RELIABLE)
{
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	uint64_t one = 1, result;
	struct fid_cntr *cntr;

	if (!run.ours)
		ABSENT("a region that is bound late");
	MUST(fi_cntr_open(p.b->domain, &attr, &cntr, NULL));
	own_fid(t, &cntr->fid);
	MUST(fi_mr_bind(r.mr, &cntr->fid, FI_REMOTE_WRITE));
	disown(t, &r.mr->fid);
	own_fid(t, &r.mr->fid);
	amo_u64(p.a, BASE, ONE, .op = FI_SUM, .buf = &one, .raddr = r.addr, .key = r.key);
	amo_u64(p.a, FETCH, ONE, .op = FI_SUM, .buf = &one, .result = &result, .raddr = r.addr, .key = r.key);
	amo_u64(p.a, FETCH, ONE, .op = FI_ATOMIC_READ, .result = &result, .raddr = r.addr, .key = r.key);
	expect_tx_cnt(p.a, 3);
	CHECK_EQ(result, 2);
	CHECK_EQ(fi_cntr_read(cntr), 2);
}

/* ---- deferred work */

static struct fid_cntr *cntr_open(struct side *s)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	MUST(fi_cntr_open(s->domain, &attr, &cntr, NULL));
	own_fid(s->t, &cntr->fid);
	return cntr;
}

/* Queue one 64-bit atomic; all that describes it is gone when this returns, and so are the buffers that it reads. */
static void defer(struct pair *p, const struct region *r, const struct kind_row *row, uint64_t *result,
		  struct fi_deferred_work *work)
{
	uint64_t buf = 5, cmp = 0;
	struct fi_ioc out = { &buf, 1 }, compare = { &cmp, 1 }, in = { result, 1 };
	struct fi_rma_ioc target = { .addr = r->addr, .count = 1, .key = r->key };
	struct fi_msg_atomic msg = { .msg_iov = &out, .iov_count = 1, .addr = p->a->peer, .rma_iov = &target,
				     .rma_iov_count = 1, .datatype = FI_UINT64, .op = row->op };
	struct fi_op_compare_atomic all = { .ep = p->a->ep, .msg = msg, .fetch = { &in, NULL, 1 },
					    .compare = { &compare, NULL, 1 }, .flags = FI_INJECT };
	struct fi_op_fetch_atomic fetch = { .ep = p->a->ep, .msg = msg, .fetch = { &in, NULL, 1 }, .flags = FI_INJECT };
	struct fi_op_atomic base = { .ep = p->a->ep, .msg = msg, .flags = FI_INJECT };

	switch (row->kind) {
	case BASE:
		work->op_type = FI_OP_ATOMIC;
		work->op.atomic = &base;
		break;
	case FETCH:
		work->op_type = FI_OP_FETCH_ATOMIC;
		work->op.fetch_atomic = &fetch;
		break;
	default:
		work->op_type = FI_OP_COMPARE_ATOMIC;
		work->op.compare_atomic = &all;
	}
	MUST(fi_control(&p->a->domain->fid, FI_QUEUE_WORK, work));
	buf = cmp = 99;
	out.count = in.count = target.count = 0;
}

/* A counter starts it, another one counts it. */
TEST_TABLE(deferred, kind_rows, FI_ATOMIC | FI_TRIGGER, RELIABLE)
{
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, NULL, 8, ALL_REMOTE);
	struct fi_deferred_work work = { .threshold = 1, .triggering_cntr = cntr_open(p.a),
					 .completion_cntr = cntr_open(p.a) };
	struct wait w = wait_begin();
	uint64_t result = 77;

	defer(&p, &r, ROW(kind_rows), &result, &work);
	idle(t);
	CHECK_EQ(r.buf[0], 0);
	MUST(fi_cntr_add(work.triggering_cntr, 1));
	while (fi_cntr_read(work.completion_cntr) < 1)
		wait_more(t, &w, "the deferred atomic");
	CHECK_EQ(r.buf[0], 5);
	CHECK_EQ(result, ROW(kind_rows)->kind == BASE ? 77 : 0);
}
