/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters: values, waiting, and what is counted by which binding. Source: fi_cntr(3), fi_endpoint(3). */
#include <string.h>

#include "ops.h"
#include "waitobj.h"

static struct fid_cntr *cntr_open(struct side *s, enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = wait };
	struct fid_cntr *cntr;
	int ret;

	ret = fi_cntr_open(s->domain, &attr, &cntr, s);
	if (ret == -FI_ENOSYS || (ret && wait))
		ABSENT("%s has no counters with wait object %d", run.prov, wait);
	MUST(ret);
	own_fid(s->t, &cntr->fid);
	return cntr;
}

/* Drive until the counter has the value. */
static void wait_value(struct test *t, struct fid_cntr *cntr, uint64_t value)
{
	struct wait w = wait_begin();

	while (fi_cntr_read(cntr) < value)
		wait_more(t, &w, "the counter");
	CHECK_EQ(fi_cntr_read(cntr), value);
}

/* Value and error value are two numbers: read, set, add. */
TEST_PROV(values, FI_MSG)
{
	struct fid_cntr *cntr = cntr_open(domain_side(t), FI_WAIT_NONE);

	CHECK_EQ(fi_cntr_read(cntr), 0);
	CHECK_EQ(fi_cntr_readerr(cntr), 0);
	MUST(fi_cntr_add(cntr, 5));
	MUST(fi_cntr_add(cntr, 1ULL << 40));
	MUST(fi_cntr_adderr(cntr, 3));
	CHECK_EQ(fi_cntr_read(cntr), 5 + (1ULL << 40));
	CHECK_EQ(fi_cntr_readerr(cntr), 3);
	MUST(fi_cntr_set(cntr, 7));
	MUST(fi_cntr_seterr(cntr, 9));
	CHECK_EQ(fi_cntr_read(cntr), 7);
	CHECK_EQ(fi_cntr_readerr(cntr), 9);
}

/* ---- waiting */

/* Each wait object: a wait ends at its time, with the threshold reached at once. */
TEST_TABLE(wait, wait_rows, FI_MSG)
{
	struct fid_cntr *cntr = cntr_open(domain_side(t), ROW(wait_rows)->obj);
	double start;

	if (ROW(wait_rows)->obj == FI_WAIT_NONE && !run.ours)
		ABSENT("1.17 does not wait without a wait object");
	start = now_ms();
	CHECK_RET(fi_cntr_wait(cntr, 1, 60), -FI_ETIMEDOUT);
	check_waited(start, 60);
	CHECK_EQ(fi_cntr_readerr(cntr), 0);
	start = now_ms();
	CHECK_RET(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
	check_waited(start, 0);
	MUST(fi_cntr_add(cntr, 5));
	start = now_ms();
	MUST(fi_cntr_wait(cntr, 1, 5000));
	MUST(fi_cntr_wait(cntr, 5, -1));
	check_waited(start, 0);
	CHECK_RET(fi_cntr_wait(cntr, 6, 20), -FI_ETIMEDOUT);
	MUST(fi_cntr_wait(cntr, 0, 0));
}

/* ---- what is counted */

struct bound {
	struct pair p;
	struct fid_cntr *cntr;
};

/* A pair whose b has a counter with this binding, and a CQ that says no more than it must. */
static struct bound bound_open(struct test *t, uint64_t flags, enum fi_wait_obj wait, bool late)
{
	struct bound b = { 0 };
	struct opts o = { .unenabled = true };
	struct side *s;

	if (run.type == FI_EP_MSG) {
		struct event e;

		b.p.listener = listener_open(t);
		b.p.a = connector_open(t, b.p.listener, &(struct opts) { 0 });
		MUST(fi_connect(b.p.a->ep, b.p.listener->name, NULL, 0));
		e = expect_event(b.p.listener, FI_CONNREQ);
		s = acceptor_new(b.p.listener, e.info, &o);
	} else {
		b.p.a = side_open(t);
		s = domain_side_opts(t, &o);
	}
	b.p.b = s;
	b.cntr = cntr_open(s, wait);
	side_open_rest(s);
	if (!late)
		MUST(fi_ep_bind(s->ep, &b.cntr->fid, flags));
	if (run.type == FI_EP_MSG) {
		MUST(fi_accept(s->ep, NULL, 0));
		expect_event(b.p.a, FI_CONNECTED);
		expect_event(s, FI_CONNECTED);
	} else {
		side_enable(s);
		b.p.a->peer = side_insert(b.p.a, s);
		s->peer = side_insert(s, b.p.a);
	}
	if (late)
		MUST(fi_ep_bind(s->ep, &b.cntr->fid, flags));
	return b;
}

/* Receives count with FI_RECV, and no sends. */
TEST_PROV(counts_receives, FI_MSG)
{
	struct bound b = bound_open(t, FI_RECV, FI_WAIT_NONE, false);
	char in[3][4], back[4];
	unsigned int i;

	for (i = 0; i < 3; i++)
		post_recv(b.p.b, in[i], 4);
	post_recv(b.p.a, back, 4);
	for (i = 0; i < 3; i++)
		send_bytes(b.p.a, "abcd", 4);
	send_bytes(b.p.b, "back", 4);
	wait_value(t, b.cntr, 3);
	expect_recv(b.p.a, "back", 4);
	CHECK_EQ(fi_cntr_read(b.cntr), 3);
	for (i = 0; i < 3; i++)
		expect_recv(b.p.b, "abcd", 4);
}

/* Sends count with FI_SEND, injected ones too, and no receives. */
TEST_PROV(counts_sends, FI_MSG)
{
	struct bound b = bound_open(t, FI_SEND, FI_WAIT_NONE, false);
	char in[3][4], other[4];
	unsigned int i;

	for (i = 0; i < 3; i++)
		post_recv(b.p.a, in[i], 4);
	post_recv(b.p.b, other, 4);
	send_bytes(b.p.a, "abcd", 4);
	expect_recv(b.p.b, "abcd", 4);
	CHECK_EQ(fi_cntr_read(b.cntr), 0);
	send_bytes(b.p.b, "1111", 4);
	post(b.p.b, INJECT, .buf = "2222", .len = 4);
	send_bytes(b.p.b, "3333", 4);
	wait_value(t, b.cntr, 3);
	for (i = 0; i < 3; i++)
		expect_rx(b.p.a);
}

/* Tagged messages count like others. */
TEST_PROV(counts_tagged, FI_TAGGED)
{
	struct bound b = bound_open(t, FI_SEND | FI_RECV, FI_WAIT_NONE, false);
	char in[2][4];

	post_trecv(b.p.b, in[0], 4, 1, 0);
	post_trecv(b.p.a, in[1], 4, 2, 0);
	tsend_bytes(b.p.a, "abcd", 4, 1);
	wait_value(t, b.cntr, 1);
	tsend_bytes(b.p.b, "efgh", 4, 2);
	wait_value(t, b.cntr, 2);
	expect_rx(b.p.b);
	expect_rx(b.p.a);
}

struct local_row {
	const char *name;
	uint64_t flags, cnt;		/* of two writes and a read */
};

static const struct local_row local_rows[] = {
	{ "write", FI_WRITE, 2 }, { "read", FI_READ, 1 }, { "both", FI_READ | FI_WRITE, 3 },
};

/* Reads and writes of the initiator, each with its flag. */
TEST_TABLE(counts_rma, local_rows, FI_RMA)
{
	struct bound b = bound_open(t, ROW(local_rows)->flags, FI_WAIT_NONE, false);
	struct region r = region_open(b.p.a, NULL, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
	char buf[4] = "abc";

	post(b.p.b, WRITE, .buf = buf, .len = 4, .raddr = r.addr, .key = r.key);
	post(b.p.b, INJECT_WRITE, .buf = buf, .len = 4, .raddr = r.addr, .key = r.key);
	post(b.p.b, READ, .buf = buf, .len = 4, .raddr = r.addr, .key = r.key);
	expect_tx_cnt(b.p.b, 2);
	wait_value(t, b.cntr, ROW(local_rows)->cnt);
}

/* What peers do to the target's memory, with FI_RMA_EVENT. */
static const struct flag_row remote_rows[] = {
	{ "write", FI_REMOTE_WRITE }, { "read", FI_REMOTE_READ },
};

/* A counter bound for remote operations counts those that arrive, and nothing else. */
TEST_TABLE(counts_remote, remote_rows, FI_RMA | FI_RMA_EVENT)
{
	uint64_t flags = ROW(remote_rows)->flags;
	struct bound b = bound_open(t, flags, FI_WAIT_NONE, false);
	struct region r = region_open(b.p.b, NULL, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
	char buf[8] = "abc";

	post(b.p.a, WRITE, .buf = buf, .len = 4, .raddr = r.addr, .key = r.key);
	post(b.p.a, INJECT_WRITE, .buf = buf, .len = 4, .raddr = r.addr + 4, .key = r.key);
	post(b.p.a, READ, .buf = buf, .len = 8, .raddr = r.addr, .key = r.key);
	expect_tx_cnt(b.p.a, 2);
	wait_value(t, b.cntr, flags == FI_REMOTE_WRITE ? 2 : 1);
	CHECK_EQ(fi_cntr_readerr(b.cntr), 0);
}

struct unasked_row {
	const char *name;
	uint64_t flags;
	bool late;
};

static const struct unasked_row unasked_rows[] = {
	{ "both", FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE, false },
	{ "both_late", FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE, true },
	{ "write", FI_RECV | FI_REMOTE_WRITE, false },
	{ "read", FI_RECV | FI_REMOTE_READ, false },
};

/* One counter for receives and remote operations counts the receives alone, without FI_RMA_EVENT. */
TEST_TABLE(remote_operations_beside_receives, unasked_rows, FI_MSG | FI_RMA, RDM_ONLY)
{
	const struct unasked_row *row = ROW(unasked_rows);
	struct side *a = side_open(t), *b = domain_side(t);
	struct fid_cntr *cntr, *other;
	struct region r;
	char in[4];

	b->info->caps &= ~FI_RMA_EVENT;
	b->info->rx_attr->caps &= ~FI_RMA_EVENT;
	b->o.unenabled = true;
	cntr = cntr_open(b, FI_WAIT_NONE);
	other = cntr_open(b, FI_WAIT_NONE);
	side_open_rest(b);
	if (row->late)
		side_enable(b);
	MUST(fi_ep_bind(b->ep, &cntr->fid, row->flags));
	if (run.ours) {
		CHECK_RET(fi_ep_bind(b->ep, &other->fid, FI_RECV), -FI_EINVAL);
		CHECK_RET(fi_ep_bind(b->ep, &other->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	}
	if (!row->late)
		side_enable(b);
	a->peer = side_insert(a, b);
	r = region_open(b, NULL, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
	post(a, WRITE, .buf = "abcd", .len = 4, .raddr = r.addr, .key = r.key);
	expect_tx(a);
	post(a, READ, .buf = in, .len = 4, .raddr = r.addr, .key = r.key);
	expect_tx(a);
	post_recv(b, in, 4);
	send_bytes(a, "abcd", 4);
	wait_value(t, cntr, 1);
	expect_recv(b, "abcd", 4);
	CHECK_EQ(fi_cntr_read(cntr), 1);
	disown(t, &b->ep->fid);
	own_fid(t, &b->ep->fid);
}

/* SOS binds after fi_enable(), and counts from then on. */
TEST_PROV(bound_late, FI_MSG)
{
	struct bound b;
	char in[4];

	if (!run.ours)
		ABSENT("upstream's answers differ by provider");
	b = bound_open(t, FI_RECV, FI_WAIT_NONE, true);
	post_recv(b.p.b, in, 4);
	send_bytes(b.p.a, "abcd", 4);
	wait_value(t, b.cntr, 1);
}

/* The same with connections that are there already. */
TEST_PROV(bound_late_counts_remote_writes, FI_RMA | FI_RMA_EVENT, RDM_ONLY)
{
	struct bound b;
	struct region r;

	if (!run.ours)
		ABSENT("upstream's answers differ by provider");
	b = bound_open(t, FI_REMOTE_WRITE, FI_WAIT_NONE, true);
	r = region_open(b.p.b, NULL, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
	post(b.p.a, WRITE, .buf = "abcd", .len = 4, .raddr = r.addr, .key = r.key);
	wait_value(t, b.cntr, 1);
}

/* A counter waits for its messages by itself: manual progress happens in fi_cntr_wait(). */
TEST_PROV(wait_for_messages, FI_MSG)
{
	struct bound b = bound_open(t, FI_RECV, FI_WAIT_UNSPEC, false);
	char in[5][4];
	unsigned int i;

	check_link(b.p.b, b.p.a);
	check_link(b.p.a, b.p.b);	/* it needs nobody's progress to send: only one side is driven from here on */
	for (i = 0; i < 5; i++)
		post_recv(b.p.b, in[i], 4);
	for (i = 0; i < 5; i++)
		post(b.p.a, INJECT, .buf = "abcd", .len = 4);
	MUST(fi_cntr_wait(b.cntr, 6, 5000));
	CHECK_EQ(fi_cntr_read(b.cntr), 6);
}

/* Reading a counter is progress, too. */
TEST_PROV(read_is_progress, FI_MSG)
{
	struct bound b = bound_open(t, FI_RECV, FI_WAIT_NONE, false);
	struct wait w = wait_begin();
	char in[4];

	check_link(b.p.b, b.p.a);
	post_recv(b.p.b, in, 4);
	post(b.p.a, INJECT, .buf = "abcd", .len = 4);
	side_idle(b.p.a);
	while (fi_cntr_read(b.cntr) != 1)
		CHECK(now_ms() < w.until);
	CHECK_MEM(in, "abcd", 4);
}

/* A failed operation counts as error, and ends a wait. */
TEST_PROV(errors_are_counted, FI_MSG, RELIABLE)
{
	struct bound b = bound_open(t, FI_RECV, FI_WAIT_UNSPEC, false);
	struct wait w = wait_begin();
	char in[2];
	int ret;

	check_link(b.p.b, b.p.a);
	check_link(b.p.a, b.p.b);	/* as above */
	post_recv(b.p.b, in, 2);
	post(b.p.a, INJECT, .buf = "abcd", .len = 4);
	ret = fi_cntr_wait(b.cntr, 2, 5000);
	if (run.ours ? ret != -FI_EAVAIL : ret >= 0)
		FAIL("fi_cntr_wait() returned %d (%s)", ret, fi_strerror(-ret));
	while (fi_cntr_readerr(b.cntr) != 1)
		wait_more(t, &w, "the error to be counted");
	CHECK_EQ(fi_cntr_read(b.cntr), 1);
	expect_rx_err(b.p.b, FI_ETRUNC, .olen = 2);
}

/* A bound counter is busy until its endpoint is closed. */
TEST_PROV(bound_is_busy, FI_MSG)
{
	struct bound b = bound_open(t, FI_SEND | FI_RECV, FI_WAIT_NONE, false);

	CHECK_RET(fi_close(&b.cntr->fid), -FI_EBUSY);
	check_link(b.p.a, b.p.b);
	side_close_ep(b.p.b);
	close_now(t, &b.cntr->fid);
}

/* The descriptor of a counter: no lost wake-up. */
TEST_PROV(fd_wakes, FI_MSG)
{
	struct bound b = bound_open(t, FI_RECV, FI_WAIT_FD, false);
	int fd = wait_fd(&b.cntr->fid);
	struct wait w = wait_begin();
	unsigned int i;
	char in[4];

	check_link(b.p.b, b.p.a);
	idle(t);
	b.p.b->o.raw_cq = true;
	for (i = 1; i <= 10; i++) {
		post_recv(b.p.b, in, 4);
		post(b.p.a, INJECT, .buf = "abcd", .len = 4);
		while (fi_cntr_read(b.cntr) < i) {
			if (!trywait(b.p.b, &b.cntr->fid) && !fd_readable(fd, 5000))
				FAIL("a lost wake-up: nothing in 5 s");
			CHECK(now_ms() < w.until);
		}
	}
}
