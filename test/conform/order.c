/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Orders between messages and remote accesses, at the target, and of completions. Source: fi_endpoint(3), message and
 * completion ordering. */
#include <string.h>

#include "ops.h"

#define LEN (4 << 20)			/* longer than what is sent unasked */

static uint64_t wanted;

static void ask_for_order(struct fi_info *hints)
{
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = wanted;
}

static struct pair order_pair(struct test *t, uint64_t order)
{
	wanted = order;
	if (!info_find(t, hints_new(t, &(struct opts) { .hints = ask_for_order }), NULL, NULL, 0))
		ABSENT("%s does not offer the order", run.prov);
	return pair_open(t, .hints = ask_for_order);
}

/* FI_ORDER_WAS: a write that is seen was posted behind a message, so that is there too. */
TEST_PROV(write_after_send, FI_MSG | FI_RMA, RELIABLE)
{
	struct pair p = order_pair(t, FI_ORDER_SAS | FI_ORDER_WAS);
	struct region flag = region_open(p.b, NULL, 8, FI_REMOTE_WRITE);
	uint8_t *out = mem_pattern(t, LEN, 1), *in = mem(t, LEN);
	struct wait w;

	check_link(p.a, p.b);
	memset(flag.buf, 0, 8);
	post_recv(p.b, in, LEN);
	send_bytes(p.a, out, LEN);
	post(p.a, WRITE, .buf = "written", .len = 8, .raddr = flag.addr, .key = flag.key);
	for (w = wait_begin(); !*(volatile uint8_t *) flag.buf; )
		wait_more(t, &w, "the write");
	check_fill(in, LEN, 1);
	expect_tx_cnt(p.a, 2);
	expect_rx(p.b);
}

/* FI_ORDER_RAS: a read that was posted behind a message sees what that has brought. */
TEST_PROV(read_after_send, FI_MSG | FI_RMA, RELIABLE)
{
	struct pair p = order_pair(t, FI_ORDER_SAS | FI_ORDER_RAS);
	struct region r = region_open(p.b, NULL, LEN, FI_REMOTE_READ);
	uint8_t *out = mem_pattern(t, LEN, 1), *in = mem(t, LEN);

	check_link(p.a, p.b);
	memset(r.buf, 0, LEN);
	post_recv(p.b, r.buf, LEN);
	send_bytes(p.a, out, LEN);
	post(p.a, READ, .buf = in, .len = LEN, .raddr = r.addr, .key = r.key);
	expect_tx_cnt(p.a, 2);
	expect_rx(p.b);
	check_fill(in, LEN, 1);
}

struct after_read_row {
	const char *name;
	uint64_t order;
	bool message;
};

static const struct after_read_row after_read_rows[] = {
	{ "write", FI_ORDER_WAR, false }, { "rma_write", FI_ORDER_RMA_WAR, false }, { "message", FI_ORDER_SAR, true },
};

/* FI_ORDER_WAR, FI_ORDER_RMA_WAR, FI_ORDER_SAR: a read gets what was there before what was posted behind it came. */
TEST_TABLE(after_read, after_read_rows, FI_MSG | FI_RMA, RELIABLE)
{
	const struct after_read_row *row = ROW(after_read_rows);
	struct pair p = order_pair(t, FI_ORDER_SAS | row->order);
	struct region r = region_open(p.b, NULL, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE);
	uint8_t *out = mem_pattern(t, LEN, 2), *in = mem(t, LEN);

	check_link(p.a, p.b);
	fill(r.buf, LEN, 1);
	if (row->message)
		post_recv(p.b, r.buf, LEN);
	post(p.a, READ, .buf = in, .len = LEN, .raddr = r.addr, .key = r.key);
	if (row->message)
		send_bytes(p.a, out, LEN);
	else
		post(p.a, WRITEMSG, .buf = out, .len = LEN, .raddr = r.addr, .key = r.key,
		     .flags = FI_COMPLETION | level_delivered());
	expect_tx_cnt(p.a, 2);
	if (row->message)
		expect_rx(p.b);
	check_fill(in, LEN, 1);
	check_fill(r.buf, LEN, 2);
}

/* Who has not asked does not wait: a write reaches a peer that has no receive for the message before it. */
TEST_PROV(nobody_else_waits, FI_MSG | FI_RMA, RELIABLE)
{
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 8, FI_REMOTE_WRITE);
	uint8_t *out = mem_pattern(t, LEN, 1), *in = mem(t, LEN);

	if (!run.ours)
		ABSENT("upstream may wait");
	check_link(p.a, p.b);
	send_bytes(p.a, out, LEN);
	post(p.a, WRITEMSG, .buf = "written", .len = 8, .raddr = r.addr, .key = r.key,
	     .flags = FI_COMPLETION | level_delivered());
	expect_tx(p.a);
	CHECK_MEM(r.buf, "written", 8);
	post_recv(p.b, in, LEN);
	expect_rx(p.b);
	expect_tx(p.a);
	check_fill(in, LEN, 1);
}

static void ask_for_strict_completions(struct fi_info *hints)
{
	hints->tx_attr->comp_order = hints->rx_attr->comp_order = FI_ORDER_STRICT;
}

/* Completions in the order of the calls: who asks is told yes, or finds no entry. */
TEST_PROV(strict_completions_are_offered_or_refused, 0)
{
	struct opts o = { .hints = ask_for_strict_completions };
	struct fi_info *asked = info_find(t, hints_new(t, &o), NULL, NULL, 0);
	struct fi_info *plain = info_find(t, hints_new(t, &(struct opts) { 0 }), NULL, NULL, 0);

	CHECK(plain);
	CHECK_EQ(!asked, !(plain->tx_attr->comp_order & plain->rx_attr->comp_order & FI_ORDER_STRICT));
	if (asked)
		CHECK(asked->tx_attr->comp_order & asked->rx_attr->comp_order & FI_ORDER_STRICT);
}

/* Where they are, a long message does not let short ones behind it complete before it. */
TEST_PROV(strict_completions_come_in_order, FI_MSG, RELIABLE)
{
	enum { N = 6 };
	uint8_t *out = mem_pattern(t, LEN, 1), *in[N];
	void *tx[N], *rx[N];
	struct pair p;

	if (!info_find(t, hints_new(t, &(struct opts) { .hints = ask_for_strict_completions }), NULL, NULL, 0))
		ABSENT("%s does not offer it", run.prov);
	p = pair_open(t, .hints = ask_for_strict_completions);
	for (int i = 0; i < N; i++) {
		in[i] = mem(t, LEN);
		rx[i] = post(p.b, RECV, .buf = in[i], .len = LEN);
	}
	for (int i = 0; i < N; i++)
		tx[i] = post(p.a, SEND, .buf = out, .len = i % 2 ? 8 : LEN);
	for (int i = 0; i < N; i++) {
		CHECK(expect_tx(p.a).ctx == tx[i]);
		CHECK(expect_rx(p.b).ctx == rx[i]);
	}
}
