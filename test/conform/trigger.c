/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Triggered operations and deferred work. Source: fi_trigger(3). */
#include <string.h>
#include <rdma/fi_trigger.h>

#include "ops.h"

#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_TRIGGER)

static struct fid_cntr *cntr_open(struct side *s)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	MUST(fi_cntr_open(s->domain, &attr, &cntr, s));
	own_fid(s->t, &cntr->fid);
	return cntr;
}

static void wait_value(struct side *s, struct fid_cntr *cntr, uint64_t value)
{
	struct wait w = wait_begin();

	while (fi_cntr_read(cntr) < value)
		wait_more(s->t, &w, "the counter");
	CHECK_EQ(fi_cntr_read(cntr), value);
}

/* A context that says when. */
static struct fi_triggered_context *at(struct test *t, struct fid_cntr *cntr, size_t threshold)
{
	struct fi_triggered_context *context = mem(t, sizeof(*context));

	context->event_type = FI_TRIGGER_THRESHOLD;
	context->trigger.threshold.cntr = cntr;
	context->trigger.threshold.threshold = threshold;
	return context;
}

/* ---- triggered operations */

/* Nothing is sent before the threshold, and the completion has the context of the call. */
TEST_PROV(waits_for_threshold, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_cntr *cntr = cntr_open(p.a);
	void *ctx = at(t, cntr, 2);
	char in[4];

	post_recv(p.b, in, 4);
	post(p.a, SENDMSG, .buf = "wait", .len = 4, .flags = FI_TRIGGER, .ctx = ctx);
	idle(t);
	MUST(fi_cntr_add(cntr, 1));
	idle(t);
	CHECK_EQ(rx_waiting(p.b), 0);
	MUST(fi_cntr_add(cntr, 1));
	expect_recv(p.b, "wait", 4);
	CHECK(expect_tx(p.a).ctx == ctx);
}

/* What is reached already begins at once. */
TEST_PROV(reached_begins_at_once, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_cntr *cntr = cntr_open(p.a);
	char in[4];

	MUST(fi_cntr_set(cntr, 7));
	post_trecv(p.b, in, 4, 5, 0);
	post(p.a, TSENDMSG, .buf = "here", .len = 4, .tag = 5, .flags = FI_TRIGGER, .ctx = at(t, cntr, 7));
	expect_recv(p.b, "here", 4);
	expect_tx(p.a);
}

/* By threshold, then in the order of the calls, also if the counter passes all of them in one step. */
TEST_PROV(order_is_by_threshold, CAPS, RELIABLE)
{
	static const struct {
		size_t threshold;
		const char *text;
	} sends[] = { { 3, "3rd." }, { 1, "1st." }, { 4, "4th." }, { 2, "2nd." }, { 4, "5th." } };
	static const char *const order[] = { "1st.", "2nd.", "3rd.", "4th.", "5th." };
	struct pair p = pair_open(t);
	struct fid_cntr *cntr = cntr_open(p.a);
	char in[5][4];

	for (size_t i = 0; i < 5; i++) {
		post_recv(p.b, in[i], 4);
		post(p.a, SENDMSG, .buf = sends[i].text, .len = 4, .flags = FI_TRIGGER,
		     .ctx = at(t, cntr, sends[i].threshold));
	}
	MUST(fi_cntr_add(cntr, 9));
	for (size_t i = 0; i < 5; i++)
		expect_recv(p.b, order[i], 4);
	expect_tx_cnt(p.a, 5);
}

/* A message that arrives starts the answer, with nobody in between. */
TEST_PROV(receive_triggers_answer, CAPS, RDM_ONLY)
{
	struct pair p = { .a = side_open(t), .b = domain_side(t) };
	struct fid_cntr *cntr = cntr_open(p.b);
	char ping[4], pong[4];

	side_open_rest(p.b);
	MUST(fi_ep_bind(p.b->ep, &cntr->fid, FI_RECV));
	p.a->peer = side_insert(p.a, p.b);
	p.b->peer = side_insert(p.b, p.a);
	post_recv(p.a, pong, 4);
	post_recv(p.b, ping, 4);
	post(p.b, SENDMSG, .buf = "pong", .len = 4, .flags = FI_TRIGGER, .ctx = at(t, cntr, 1));
	send_bytes(p.a, "ping", 4);
	expect_recv(p.a, "pong", 4);
	expect_recv(p.b, "ping", 4);
	expect_tx_cnt(p.b, 1);
}

/* A triggered receive takes a message that came before it. */
TEST_PROV(receive_is_posted_late, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_cntr *cntr = cntr_open(p.b);
	char in[5];

	post(p.b, RECVMSG, .buf = in, .len = 5, .flags = FI_TRIGGER, .ctx = at(t, cntr, 1));
	send_bytes(p.a, "early", 5);
	expect_tx(p.a);
	CHECK_EQ(rx_waiting(p.b), 0);
	MUST(fi_cntr_add(cntr, 1));
	expect_rx(p.b);
	CHECK_MEM(in, "early", 5);
}

/* With FI_INJECT the buffer is the caller's again at once. */
TEST_PROV(inject_copies, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_cntr *cntr = cntr_open(p.a);
	char out[4] = "text", in[4];

	post_recv(p.b, in, 4);
	post(p.a, SENDMSG, .buf = out, .len = 4, .flags = FI_TRIGGER | FI_INJECT, .ctx = at(t, cntr, 1));
	memset(out, '-', 4);
	MUST(fi_cntr_add(cntr, 1));
	expect_recv(p.b, "text", 4);
	expect_tx(p.a);
}

/* A failure of what was counted does not trigger. */
TEST_PROV(errors_do_not_trigger, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_cntr *cntr = cntr_open(p.a);
	char in[4];

	post_recv(p.b, in, 4);
	post(p.a, SENDMSG, .buf = "good", .len = 4, .flags = FI_TRIGGER, .ctx = at(t, cntr, 1));
	MUST(fi_cntr_adderr(cntr, 3));
	idle(t);
	CHECK_EQ(rx_waiting(p.b), 0);
	MUST(fi_cntr_add(cntr, 1));
	expect_recv(p.b, "good", 4);
	expect_tx(p.a);
}

/* fi_cancel() takes back what waits. */
TEST_PROV(cancelled_never_begins, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_cntr *cntr = cntr_open(p.a);
	void *ctx = at(t, cntr, 1);
	char in[4];

	post(p.a, SENDMSG, .buf = "gone", .len = 4, .flags = FI_TRIGGER, .ctx = ctx);
	MUST(fi_cancel(&p.a->ep->fid, ctx));
	CHECK(expect_tx_err(p.a, FI_ECANCELED).ctx == ctx);
	MUST(fi_cntr_add(cntr, 1));
	post_recv(p.b, in, 4);
	send_bytes(p.a, "next", 4);
	expect_recv(p.b, "next", 4);
	expect_tx(p.a);
}

/* A counter that something waits for is busy; closing the endpoint ends the wait. */
TEST_PROV(close_cancels, CAPS, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct fid_cntr *cntr = cntr_open(p.a);
	void *ctx = at(t, cntr, 1);
	struct fi_cq_err_entry err = { 0 };

	post(p.a, SENDMSG, .buf = "gone", .len = 4, .flags = FI_TRIGGER, .ctx = ctx);
	CHECK_RET(fi_close(&cntr->fid), -FI_EBUSY);
	side_close_ep(p.a);
	MUST(fi_cq_readerr(p.a->tx_cq, &err, 0) - 1);
	CHECK_EQ(err.err, FI_ECANCELED);
	CHECK(err.op_context == ctx);
	close_now(t, &cntr->fid);
}

/* So does closing a shared receive context that no endpoint uses. */
TEST_PROV(close_of_shared_context_cancels, CAPS, RDM_ONLY)
{
	struct side *s = domain_side(t);
	struct fid_cntr *cntr = cntr_open(s);
	struct iovec iov = { mem(t, 4), 4 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = at(t, cntr, 1) };
	struct fid_ep *srx;
	int ret = fi_srx_context(s->domain, NULL, &srx, NULL);

	if (ret == -FI_ENOSYS)
		ABSENT("no shared receive contexts");
	MUST(ret);
	MUST(fi_recvmsg(srx, &msg, FI_TRIGGER));
	CHECK_RET(fi_close(&cntr->fid), -FI_EBUSY);
	MUST(fi_close(&srx->fid));
	MUST(fi_cntr_add(cntr, 1));
	close_now(t, &cntr->fid);
}

struct bad_row {
	const char *name;
	enum fi_trigger_event event;
	bool no_cntr;
	int ret;
};
static const struct bad_row bad_rows[] = {
	{ "xpu", FI_TRIGGER_XPU, false, -FI_ENOSYS },
	{ "unknown_event", 77, false, -FI_EINVAL },
	{ "no_counter", FI_TRIGGER_THRESHOLD, true, -FI_EINVAL },
};

/* What cannot be triggered is refused by the call. */
TEST_TABLE(refused, bad_rows, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fi_triggered_context *ctx = at(t, ROW(bad_rows)->no_cntr ? NULL : cntr_open(p.a), 1);

	ctx->event_type = ROW(bad_rows)->event;
	CHECK_RET(try_op(p.a, SENDMSG, .buf = "text", .len = 4, .flags = FI_TRIGGER, .ctx = ctx), ROW(bad_rows)->ret);
}

/* ---- deferred work */

/* All that a piece of work may need, as long as the test lives. */
struct job {
	struct fi_deferred_work work;
	struct fi_op_msg msg;
	struct fi_op_tagged tagged;
	struct fi_op_rma rma;
	struct fi_op_cntr cntr;
	struct iovec iov;
	struct fi_rma_iov rma_iov;
	struct fid_cntr *start, *end;
	void *desc;
	uint8_t buf[16];
};

static struct job *job_new(struct side *s, enum fi_op_type type, size_t threshold)
{
	struct job *job = mem(s->t, sizeof(*job));
	const fi_addr_t to = type == FI_OP_RECV || type == FI_OP_TRECV ? FI_ADDR_UNSPEC : s->peer;

	job->start = cntr_open(s);
	job->end = cntr_open(s);
	job->work.threshold = threshold;
	job->work.triggering_cntr = job->start;
	job->work.completion_cntr = job->end;
	job->work.op_type = type;
	job->iov = (struct iovec) { job->buf, sizeof(job->buf) };
	job->desc = desc_for(s, job->buf, sizeof(job->buf));
	job->msg = (struct fi_op_msg) { s->ep, { .msg_iov = &job->iov, .desc = &job->desc, .iov_count = 1, .addr = to,
					.context = job }, 0 };
	job->tagged = (struct fi_op_tagged) { s->ep, { .msg_iov = &job->iov, .desc = &job->desc, .iov_count = 1,
					      .addr = to, .tag = 9, .context = job }, 0 };
	job->rma = (struct fi_op_rma) { s->ep, { .msg_iov = &job->iov, .desc = &job->desc, .iov_count = 1, .addr = to,
					.rma_iov = &job->rma_iov, .rma_iov_count = 1, .context = job }, 0 };
	switch (type) {
	case FI_OP_RECV:
	case FI_OP_SEND:
		job->work.op.msg = &job->msg;
		break;
	case FI_OP_TRECV:
	case FI_OP_TSEND:
		job->work.op.tagged = &job->tagged;
		break;
	default:
		job->work.op.rma = &job->rma;
	}
	return job;
}

static void queue(struct side *s, struct job *job)
{
	MUST(fi_control(&s->domain->fid, FI_QUEUE_WORK, &job->work));
}

struct work_row {
	const char *name;
	enum fi_op_type type;
	uint64_t flags;
};
static const struct work_row work_rows[] = {
	{ "send", FI_OP_SEND, 0 }, { "send_reported", FI_OP_SEND, FI_COMPLETION },
	{ "recv", FI_OP_RECV, 0 }, { "recv_reported", FI_OP_RECV, FI_COMPLETION },
	{ "tsend", FI_OP_TSEND, 0 }, { "tsend_reported", FI_OP_TSEND, FI_COMPLETION },
	{ "trecv", FI_OP_TRECV, 0 }, { "trecv_reported", FI_OP_TRECV, FI_COMPLETION },
	{ "write", FI_OP_WRITE, 0 }, { "write_reported", FI_OP_WRITE, FI_COMPLETION },
	{ "read", FI_OP_READ, 0 }, { "read_reported", FI_OP_READ, FI_COMPLETION },
};

/* The other end of a job of a's: what it waits for, or what it works on. */
static void other_end(struct pair *p, struct job *job, uint8_t *theirs)
{
	struct region region;

	switch (job->work.op_type) {
	case FI_OP_SEND:
		post_recv(p->b, theirs, sizeof(job->buf));
		return;
	case FI_OP_TSEND:
		post_trecv(p->b, theirs, sizeof(job->buf), 9, 0);
		return;
	case FI_OP_RECV:
		send_bytes(p->b, theirs, sizeof(job->buf));
		return;
	case FI_OP_TRECV:
		tsend_bytes(p->b, theirs, sizeof(job->buf), 9);
		return;
	default:
		region = region_open(p->b, theirs, sizeof(job->buf), FI_REMOTE_READ | FI_REMOTE_WRITE);
		job->rma_iov = (struct fi_rma_iov) { region.addr, sizeof(job->buf), region.key };
	}
}

/* Each kind of transfer waits, is done, and counts; the endpoint's queue hears of it if asked. */
TEST_TABLE(each_kind_is_done_and_counted, work_rows, CAPS, RELIABLE)
{
	const struct work_row *row = ROW(work_rows);
	bool out = row->type == FI_OP_SEND || row->type == FI_OP_TSEND || row->type == FI_OP_WRITE;
	bool recv = row->type == FI_OP_RECV || row->type == FI_OP_TRECV;
	struct pair p = pair_open(t);
	struct job *job = job_new(p.a, row->type, 3);
	uint8_t *theirs = mem(t, sizeof(job->buf));

	job->msg.flags = job->tagged.flags = job->rma.flags = row->flags;
	fill(out ? job->buf : theirs, sizeof(job->buf), 1);
	other_end(&p, job, theirs);
	queue(p.a, job);
	MUST(fi_cntr_add(job->start, 2));
	idle(t);
	CHECK_EQ(fi_cntr_read(job->end), 0);
	MUST(fi_cntr_add(job->start, 1));
	wait_value(p.a, job->end, 1);
	check_fill(job->buf, sizeof(job->buf), 1);
	if (!recv && row->flags) {
		p.a->tx_posted++;
		CHECK(expect_tx(p.a).ctx == job);
	} else if (row->flags) {
		CHECK(expect_rx(p.a).ctx == job);
	}
	if (row->type == FI_OP_SEND || row->type == FI_OP_TSEND)
		expect_rx(p.b);
	else if (recv)
		expect_tx(p.b);
	check_fill(theirs, sizeof(job->buf), 1);
	CHECK_EQ(rx_waiting(p.a) + tx_waiting(p.a), 0);
}

/* ---- deferred atomics */

struct atomic_row {
	const char *name;
	enum fi_op_type type;
	enum fi_op op;
	uint64_t operand, compare, want;	/* of a target that is 40 */
	bool fetches;
};
static const struct atomic_row atomic_rows[] = {
	{ "base", FI_OP_ATOMIC, FI_SUM, .operand = 2, .want = 42 },
	{ "fetch", FI_OP_FETCH_ATOMIC, FI_SUM, .operand = 2, .want = 42, .fetches = true },
	{ "read", FI_OP_FETCH_ATOMIC, FI_ATOMIC_READ, .want = 40, .fetches = true },
	{ "compare", FI_OP_COMPARE_ATOMIC, FI_CSWAP, .operand = 7, .compare = 40, .want = 7, .fetches = true },
};

/* Each kind waits, is done, and counts. */
TEST_TABLE(atomics_are_done_and_counted, atomic_rows, CAPS | FI_ATOMIC, RELIABLE)
{
	const struct atomic_row *row = ROW(atomic_rows);
	struct pair p = pair_open(t);
	uint64_t *words = mem(t, 4 * sizeof(*words));	/* operand, compare, result, target */
	struct region region = region_open(p.b, &words[3], sizeof(*words), FI_REMOTE_READ | FI_REMOTE_WRITE);
	struct fi_ioc operand = { &words[0], 1 }, compare = { &words[1], 1 }, result = { &words[2], 1 };
	struct fi_rma_ioc target = { region.addr, 1, region.key };
	void *desc[] = { desc_for(p.a, &words[0], 8), desc_for(p.a, &words[1], 8), desc_for(p.a, &words[2], 8) };
	struct fi_msg_atomic msg = {
		.msg_iov = row->op == FI_ATOMIC_READ ? NULL : &operand, .desc = &desc[0],
		.iov_count = row->op != FI_ATOMIC_READ, .addr = p.a->peer, .rma_iov = &target, .rma_iov_count = 1,
		.datatype = FI_UINT64, .op = row->op,
	};
	struct fi_op_atomic base = { p.a->ep, msg, 0 };
	struct fi_op_fetch_atomic fetch = { p.a->ep, msg, { &result, &desc[2], 1 }, 0 };
	struct fi_op_compare_atomic both = { p.a->ep, msg, fetch.fetch, { &compare, &desc[1], 1 }, 0 };
	struct fi_deferred_work work = {
		.threshold = 1, .triggering_cntr = cntr_open(p.a), .completion_cntr = cntr_open(p.a),
		.op_type = row->type,
	};

	words[0] = row->operand;
	words[1] = row->compare;
	words[3] = 40;
	if (row->type == FI_OP_ATOMIC)
		work.op.atomic = &base;
	else if (row->type == FI_OP_FETCH_ATOMIC)
		work.op.fetch_atomic = &fetch;
	else
		work.op.compare_atomic = &both;
	MUST(fi_control(&p.a->domain->fid, FI_QUEUE_WORK, &work));
	idle(t);
	CHECK_EQ(words[3], 40);
	MUST(fi_cntr_add(work.triggering_cntr, 1));
	wait_value(p.a, work.completion_cntr, 1);
	CHECK_EQ(words[3], row->want);
	CHECK_EQ(words[2], row->fetches ? 40 : 0);
	CHECK_EQ(tx_waiting(p.a), 0);
}

struct cntr_row {
	const char *name;
	enum fi_op_type type;
	uint64_t want;
};
static const struct cntr_row cntr_rows[] = { { "set", FI_OP_CNTR_SET, 5 }, { "add", FI_OP_CNTR_ADD, 15 } };

/* A counter that changes a counter. */
TEST_TABLE(counter_work, cntr_rows, CAPS, RELIABLE)
{
	struct side *s = domain_side(t);
	struct fid_cntr *start = cntr_open(s), *target = cntr_open(s);
	struct fi_op_cntr op = { target, 5 };
	struct fi_deferred_work work = {
		.threshold = 2, .triggering_cntr = start, .op_type = ROW(cntr_rows)->type, .op.cntr = &op,
	};
	struct wait w = wait_begin();

	MUST(fi_cntr_set(target, 10));
	MUST(fi_control(&s->domain->fid, FI_QUEUE_WORK, &work));
	MUST(fi_cntr_add(start, 1));
	CHECK_EQ(fi_cntr_read(target), 10);
	MUST(fi_cntr_add(start, 1));
	while (fi_cntr_read(target) != ROW(cntr_rows)->want)
		wait_more(t, &w, "the counter");
	work.completion_cntr = target;
	CHECK_RET(fi_control(&s->domain->fid, FI_QUEUE_WORK, &work), -FI_EINVAL);
}

/* One ends, the next begins: a ring of sends that nobody drives step by step. */
TEST_PROV(chain, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct job *job[4];
	char in[4][sizeof(job[0]->buf)];

	for (size_t i = 0; i < 4; i++) {
		job[i] = job_new(p.a, FI_OP_SEND, 1);
		if (i)
			job[i]->work.triggering_cntr = job[i - 1]->end;
		job[i]->buf[0] = (uint8_t) i;
		post_recv(p.b, in[i], sizeof(in[i]));
	}
	for (size_t i = 4; i-- > 0;)
		queue(p.a, job[i]);
	MUST(fi_cntr_add(job[0]->start, 1));
	wait_value(p.a, job[3]->end, 1);
	expect_rx_cnt(p.b, 4);
	for (size_t i = 0; i < 4; i++)
		CHECK_EQ(in[i][0], (int) i);
}

/* What fails counts as a failure, and is reported as one. Failures trigger, too, so that work may clean up. */
TEST_PROV(failure_counts_and_triggers, CAPS, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct job *job = job_new(p.a, FI_OP_WRITE, 1), *next = job_new(p.a, FI_OP_SEND, 1);
	struct wait w = wait_begin();
	char in[sizeof(next->buf)];

	job->rma_iov = (struct fi_rma_iov) { 0, sizeof(job->buf), 0x5555 };
	next->work.triggering_cntr = job->end;
	post_recv(p.b, in, sizeof(in));
	queue(p.a, next);
	queue(p.a, job);
	MUST(fi_cntr_add(job->start, 1));
	p.a->tx_posted++;
	CHECK(expect_tx_failed(p.a).ctx == job);
	while (!fi_cntr_readerr(job->end))
		wait_more(t, &w, "the counter's error value");
	CHECK_EQ(fi_cntr_read(job->end), 0);
	wait_value(p.a, next->end, 1);
	expect_rx(p.b);
}

/* Work that waits can be taken back, one or all of a counter or of the domain; what has begun cannot. */
TEST_PROV(cancel_and_flush, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct job *job[4];
	char in[sizeof(job[0]->buf)];

	for (size_t i = 0; i < 4; i++) {
		job[i] = job_new(p.a, FI_OP_SEND, 1);
		queue(p.a, job[i]);
	}
	CHECK_RET(fi_close(&job[0]->start->fid), -FI_EBUSY);
	MUST(fi_control(&p.a->domain->fid, FI_CANCEL_WORK, &job[0]->work));
	CHECK_RET(fi_control(&p.a->domain->fid, FI_CANCEL_WORK, &job[0]->work), -FI_ENOENT);
	close_now(t, &job[0]->start->fid);
	MUST(fi_control(&p.a->domain->fid, FI_FLUSH_WORK, job[1]->start));
	MUST(fi_cntr_add(job[1]->start, 1));

	post_recv(p.b, in, sizeof(in));
	MUST(fi_cntr_add(job[2]->start, 1));
	wait_value(p.a, job[2]->end, 1);
	expect_rx(p.b);
	MUST(fi_control(&p.a->domain->fid, FI_FLUSH_WORK, NULL));
	MUST(fi_cntr_add(job[3]->start, 1));
	idle(t);
	CHECK_EQ(fi_cntr_read(job[1]->end) + fi_cntr_read(job[3]->end), 0);
	CHECK_EQ(rx_waiting(p.b), 0);
}

static void completion_threading(struct fi_info *hints)
{
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
}

/* Work that has begun ends with its endpoint, and then lets go of its counters, though nobody reads them: the
 * completion counter belongs to the thread of another endpoint. */
TEST_PROV(counters_close_after_the_endpoint, CAPS, RDM_ONLY)
{
	struct side *a = side_open(t, .hints = completion_threading);
	struct side *b = side_open(t, .domain_of = a, .hints = completion_threading);
	struct job *first = job_new(a, FI_OP_RECV, 1), *job = job_new(b, FI_OP_RECV, 1);

	first->work.completion_cntr = job->end;
	queue(a, first);
	MUST(fi_control(&a->domain->fid, FI_CANCEL_WORK, &first->work));
	queue(b, job);
	MUST(fi_cntr_add(job->start, 1));
	CHECK_RET(fi_control(&b->domain->fid, FI_CANCEL_WORK, &job->work), -FI_ENOENT);
	side_close_ep(b);
	close_now(t, &job->end->fid);
	close_now(t, &job->start->fid);
}

/* What cannot be deferred is -FI_ENOSYS, what makes no sense -FI_EINVAL; nothing is queued. */
TEST_PROV(queue_refused, CAPS, RELIABLE)
{
	struct pair p = pair_open(t);
	struct job *job = job_new(p.a, FI_OP_RECV, 1);

	job->msg.flags = FI_MULTI_RECV;
	CHECK_RET(fi_control(&p.a->domain->fid, FI_QUEUE_WORK, &job->work), -FI_ENOSYS);
	job->msg.flags = 0;
	job->work.op_type = 99;
	CHECK_RET(fi_control(&p.a->domain->fid, FI_QUEUE_WORK, &job->work), -FI_ENOSYS);
	job->work.op_type = FI_OP_RECV;
	job->work.triggering_cntr = NULL;
	CHECK_RET(fi_control(&p.a->domain->fid, FI_QUEUE_WORK, &job->work), -FI_EINVAL);
	job->work.op.msg = NULL;
	CHECK_RET(fi_control(&p.a->domain->fid, FI_QUEUE_WORK, &job->work), -FI_EINVAL);
	close_now(t, &job->start->fid);
}
