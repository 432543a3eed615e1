/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Completion levels of writes and atomics, and what a program sees if the target refuses one that has completed.
 * Source: fi_cq(3), completion semantics and errors; doc/decisions/completion-levels.md. */
#include <string.h>

#include "atomic_call.h"
#include "ops.h"

#define ALL_REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define BAD_KEY		0x5555

/* Where an operation may complete before its target has answered, and be refused afterwards. */
static void want_late_errors(void)
{
	if (!run.ours || !strncmp(run.prov, "verbs", 5) || !strcmp(run.prov, "loop"))
		ABSENT("%s ends the connection, or has no early completions", run.prov);
}

struct early_row {
	const char *name;
	enum call call;
	uint64_t flags;
	bool silent;			/* success writes no entry */
};

static const struct early_row early_rows[] = {
	{ "write", WRITE, 0, false },
	{ "writev", WRITEV, 0, false },
	{ "writemsg", WRITEMSG, FI_COMPLETION, false },
	{ "inject_complete", WRITEMSG, FI_COMPLETION | FI_INJECT_COMPLETE, false },
	{ "inject_flag", WRITEMSG, FI_COMPLETION | FI_INJECT, false },
	{ "inject_write", INJECT_WRITE, 0, true },
};

static void check_late(struct side *s, uint64_t flags, const struct region *r)
{
	struct comp c = expect_tx_err(s, FI_ENOKEY);

	CHECK(!c.ctx);
	CHECK_EQ(c.flags & (FI_RMA | FI_ATOMIC | FI_WRITE), flags);
	CHECK_EQ(c.err_data_len, sizeof(c.err_data));
	CHECK_EQ(c.err_data[0], r->addr);
	CHECK_EQ(c.err_data[1], 8);
	CHECK_EQ(c.err_data[2], BAD_KEY);
	if (run.type == FI_EP_RDM)
		CHECK_EQ(c.err_data[3], s->peer);
	else
		CHECK_EQ(c.err_data[3], (uintptr_t) s->ep->fid.context);
	CHECK(strstr(s->err_text, "refuses"));
}

/* A write that was refused after it completed is one more entry: an error without a context, which says what was
 * refused. The stream goes on. */
TEST_TABLE(refused_write_has_an_entry_of_its_own, early_rows, FI_RMA | FI_MSG, RELIABLE)
{
	const struct early_row *row = ROW(early_rows);
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 8, ALL_REMOTE);

	want_late_errors();
	check_link(p.a, p.b);
	post(p.a, row->call, .buf = "no entry", .len = 8, .raddr = r.addr, .key = BAD_KEY, .flags = row->flags);
	if (!row->silent)
		expect_tx(p.a);
	p.a->tx_posted++;
	check_late(p.a, FI_RMA | FI_WRITE, &r);
	post(p.a, row->call, .buf = "go ahead", .len = 8, .raddr = r.addr, .key = r.key, .flags = row->flags);
	if (!row->silent)
		expect_tx(p.a);
	wait_byte(t, &r.buf[7], 'd');
	CHECK_MEM(r.buf, "go ahead", 8);
	check_link(p.a, p.b);
	check_link(p.b, p.a);
	expect_no_completion(p.a);
}

/* An atomic without a result likewise. tcp;ofi_rxm answers every atomic, so there the error has a context. */
TEST_PROV(refused_atomic_has_an_entry_of_its_own, FI_ATOMIC, RELIABLE)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 8, ALL_REMOTE);
	uint64_t one = 1, got = 9;

	want_late_errors();
	if (strstr(run.prov, "rxm"))
		ABSENT("it answers every atomic");
	amo_u64(p.a, BASE, ONE, .op = FI_SUM, .buf = &one, .raddr = r.addr, .key = BAD_KEY);
	expect_tx(p.a);
	p.a->tx_posted++;
	check_late(p.a, FI_ATOMIC | FI_WRITE, &r);
	amo_u64(p.a, BASE, ONE, .op = FI_SUM, .buf = &one, .raddr = r.addr, .key = r.key);
	amo_u64(p.a, FETCH, ONE, .op = FI_SUM, .buf = &one, .result = &got, .raddr = r.addr, .key = r.key);
	expect_tx_cnt(p.a, 2);
	CHECK_EQ(got, 1);
	expect_no_completion(p.a);
}

static const struct { const char *name; uint64_t level; } answered_rows[] = {
	{ "transmit", FI_TRANSMIT_COMPLETE }, { "delivery", FI_DELIVERY_COMPLETE },
	{ "delivery_before_inject", FI_DELIVERY_COMPLETE | FI_INJECT_COMPLETE },
};

/* With the levels above inject complete, the completion is the error: it has the context, and there is no other. */
TEST_TABLE(refusal_is_the_completion, answered_rows, FI_RMA | FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 8, ALL_REMOTE);
	void *ctx;

	want_late_errors();
	ctx = post(p.a, WRITEMSG, .buf = "no entry", .len = 8, .raddr = r.addr, .key = BAD_KEY,
		   .flags = FI_COMPLETION | ROW(answered_rows)->level);
	CHECK(expect_tx_err(p.a, FI_ENOKEY).ctx == ctx);
	check_link(p.a, p.b);
	expect_no_completion(p.a);
}

/* When an operation is delivered, so are all before it to the same peer, and the refusals of those are there. */
TEST_PROV(delivery_covers_what_was_before, FI_RMA | FI_MSG, RELIABLE)
{
	enum { CNT = 100 };
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, CNT + 1, ALL_REMOTE);
	uint8_t one = 1;
	void *ctx;

	want_late_errors();
	check_link(p.a, p.b);
	for (uint32_t i = 0; i < CNT; i++)
		post(p.a, WRITE, .buf = &one, .len = 1, .raddr = r.addr + i, .key = i == CNT / 2 ? BAD_KEY : r.key);
	ctx = post(p.a, WRITEMSG, .buf = &one, .len = 1, .raddr = r.addr + CNT, .key = r.key,
		   .flags = FI_COMPLETION | FI_DELIVERY_COMPLETE);
	p.a->tx_posted++;
	for (uint32_t i = 0, late = 0; i < CNT + 2; i++) {
		struct comp c = expect_tx_any(p.a);

		late += !!c.err;
		if (c.ctx == ctx)
			CHECK(i == CNT + 1 && late == 1);
	}
	for (uint32_t i = 0; i < CNT + 1; i++)
		CHECK_EQ(r.buf[i], i != CNT / 2);
	expect_no_completion(p.a);
}

/* A counter counts the success when it is reported, and the refusal among its errors. */
TEST_PROV(counter_counts_both, FI_RMA | FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct region r = region_open(p.b, NULL, 8, ALL_REMOTE);
	struct fid_cntr *cntr;
	struct wait w;

	want_late_errors();
	MUST(fi_cntr_open(p.a->domain, &attr, &cntr, NULL));
	own_fid(t, &cntr->fid);
	MUST(fi_ep_bind(p.a->ep, &cntr->fid, FI_WRITE));
	disown(t, &p.a->ep->fid);
	own_fid(t, &p.a->ep->fid);
	check_link(p.a, p.b);
	post(p.a, INJECT_WRITE, .buf = "no entry", .len = 8, .raddr = r.addr, .key = BAD_KEY);
	p.a->tx_posted++;
	check_late(p.a, FI_RMA | FI_WRITE, &r);
	w = wait_begin();
	while (fi_cntr_read(cntr) != 1 || fi_cntr_readerr(cntr) != 1)
		wait_more(t, &w, "one success and one error");
}
