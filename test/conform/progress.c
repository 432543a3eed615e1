/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Driving every side of a test, and what comes out: completions and events, kept with their side until the test takes
 * them in order. A completion with one of the side's own contexts may come only once.
 */
#define CONFORM_INSIDE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "slot.h"

/* ---- reading completion queues */

static void keep(struct comps *q, const struct comp *c)
{
	if (q->cnt == q->room) {
		q->room = q->room ? 2 * q->room : 64;
		q->list = realloc(q->list, q->room * sizeof(*q->list));
		if (!q->list)
			abort();
	}
	q->list[q->cnt++] = *c;
}

/* Which way a completion belongs, where both share one queue. */
static bool is_rx(struct side *s, const struct comp *c)
{
	const struct slot *slot = slot_find(s, c->ctx);

	if (slot)
		return calls[slot->call].recv;
	return c->flags & (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV);
}

static void took(struct side *s, struct comps *q, const struct comp *c)
{
	struct slot *slot = slot_find(s, c->ctx);

	if (slot && slot->done++ && !slot->many)
		FAIL("a second completion for one %s", calls[slot->call].name);
	keep(q, c);
}

static const size_t entry_size[] = {
	[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

static struct comp comp_of(enum fi_cq_format format, const void *entry, fi_addr_t src)
{
	struct fi_cq_tagged_entry e = { 0 };

	memcpy(&e, entry, entry_size[format]);
	return (struct comp) { .ctx = e.op_context, .flags = e.flags, .len = e.len,
			       .buf = hmem_host(e.buf), .data = e.data, .tag = e.tag, .src = src };
}

static struct comp comp_of_err(const struct fi_cq_err_entry *e)
{
	struct comp c = { .ctx = e->op_context, .flags = e->flags, .len = e->len, .buf = hmem_host(e->buf),
			  .data = e->data, .tag = e->tag, .err = e->err, .prov_errno = e->prov_errno, .olen = e->olen,
			  .src = FI_ADDR_NOTAVAIL, .err_data_len = e->err_data_size };

	if (e->err_data_size)
		memcpy(c.err_data, e->err_data, MIN(e->err_data_size, sizeof(c.err_data)));
	return c;
}

/* One entry or error entry of @cq. */
static bool read_one(struct side *s, struct fid_cq *cq, struct comp *c)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry;
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	ssize_t ret;

	if (s->info->caps & FI_SOURCE)
		ret = fi_cq_readfrom(cq, &entry, 1, &src);
	else
		ret = fi_cq_read(cq, &entry, 1);
	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		CHECK_RET(fi_cq_readerr(cq, &err, 0), 1);
		CHECK(err.err > 0);
		*c = comp_of_err(&err);
		snprintf(s->err_text, sizeof(s->err_text), "%s",
			 fi_cq_strerror(cq, err.prov_errno, err.err_data, NULL, 0));
		prefix_took(s, c);
		return true;
	}
	CHECK_RET(ret, 1);
	*c = comp_of(s->o.format, &entry, src);
	prefix_took(s, c);
	return true;
}

static void drain_cq(struct side *s, struct fid_cq *cq, struct comps *q)
{
	bool shared = s->tx_cq == s->rx_cq;
	struct comp c;

	while (read_one(s, cq, &c))
		took(s, shared ? is_rx(s, &c) ? &s->rx : &s->tx : q, &c);
}

static void progress_cqs(struct side *s)
{
	if (s->o.cq_of || !s->tx_cq || !s->ep)
		return;
	if (s->o.raw_cq) {
		fi_cq_read(s->tx_cq, NULL, 0);
		if (s->rx_cq != s->tx_cq)
			fi_cq_read(s->rx_cq, NULL, 0);
		return;
	}
	drain_cq(s, s->tx_cq, &s->tx);
	if (s->rx_cq && s->rx_cq != s->tx_cq)
		drain_cq(s, s->rx_cq, &s->rx);
}

/* ---- reading event queues */

static void read_event_err(struct side *s, struct event *e)
{
	struct fi_eq_err_entry err = { 0 };

	CHECK_RET(fi_eq_readerr(s->eq, &err, 0), sizeof(err));
	CHECK(err.err > 0);
	e->err = err.err;
	e->fid = err.fid;
	e->len = MIN(err.err_data_size, sizeof(e->data));
	if (e->len)
		memcpy(e->data, err.err_data, e->len);
}

static bool read_event(struct side *s, struct event *e)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + sizeof(e->data)];
	} buf;
	ssize_t ret;

	ret = fi_eq_read(s->eq, &e->type, &buf, sizeof(buf), 0);
	if (ret == -FI_EAGAIN)
		return false;
	if (ret == -FI_EAVAIL) {
		read_event_err(s, e);
		return true;
	}
	if (ret < (ssize_t) sizeof(struct fi_eq_cm_entry))
		FAIL("fi_eq_read() returned %zd (%s)", ret, ret < 0 ? fi_strerror((int) -ret) : "short");
	e->fid = buf.cm.fid;
	e->len = (size_t) ret - sizeof(buf.cm);
	memcpy(e->data, buf.room + sizeof(buf.cm), e->len);
	if (e->type == FI_CONNREQ) {
		e->info = buf.cm.info;
		CHECK(e->info != NULL);
		own_info(s->t, e->info);
	}
	return true;
}

static void progress_eq(struct side *s)
{
	struct event e = { 0 };

	if (!s->eq || s->o.raw_eq)
		return;
	while (read_event(s, &e)) {
		if (s->event_cnt == COUNT(s->events))
			FAIL("more than %zu events", COUNT(s->events));
		s->events[s->event_cnt++] = e;
		memset(&e, 0, sizeof(e));
	}
}

void side_progress(struct side *s)
{
	progress_cqs(s);
	progress_eq(s);
}

void side_idle(struct side *s)
{
	double until = now_ms() + 50 * run.slow;

	for (; now_ms() < until; nap())
		side_progress(s);
}

void sides_progress(struct test *t)
{
	struct side *s;

	for (s = t->sides; s; s = s->next)
		side_progress(s);
	sched_yield();		/* a provider's own threads may need this processor */
}

void idle(struct test *t)
{
	double until = now_ms() + 20 * run.slow;
	int i;

	for (i = 0; i < 50 || now_ms() < until; i++) {
		sides_progress(t);
		if (i >= 50)
			nap();
	}
}

bool sides_tidy(struct test *t, char *why, size_t size)
{
	struct side *s;
	bool ok = true;

	for (s = t->sides; s; s = s->next) {
		if (ok && s->tx.cnt > s->tx_posted) {
			snprintf(why, size, "%zu transmit completions for %zu operations", s->tx.cnt, s->tx_posted);
			ok = false;
		}
	}
	return ok;
}

/* ---- events */

static struct event take_event(struct side *s, const char *what)
{
	struct wait w = wait_begin();

	while (s->event_taken == s->event_cnt)
		wait_more(s->t, &w, what);
	return s->events[s->event_taken++];
}

struct event expect_event(struct side *s, uint32_t type)
{
	char what[64];
	struct event e;

	snprintf(what, sizeof(what), "event %s", fi_tostr(&type, FI_TYPE_EQ_EVENT));
	e = take_event(s, what);
	if (e.err)
		FAIL("an error event (%s) where %s was expected", fi_strerror(e.err), what);
	CHECK_EQ(e.type, type);
	return e;
}

struct event expect_event_err(struct side *s, int err)
{
	struct event e = take_event(s, "an error event");

	if (!e.err)
		FAIL("event %u where an error was expected", e.type);
	check_ret(__FILE__, __LINE__, "err of the event, negated", -e.err, -err);
	return e;
}

void expect_no_event(struct side *s)
{
	idle(s->t);
	if (s->event_taken < s->event_cnt)
		FAIL("event %u (error %d) where none was expected", s->events[s->event_taken].type,
		     s->events[s->event_taken].err);
}

/* ---- completions */

static struct comp take(struct side *s, struct comps *q, const char *what)
{
	struct wait w = wait_begin();

	while (q->taken == q->cnt)
		wait_more(s->t, &w, what);
	return q->list[q->taken++];
}

static struct comp take_good(struct side *s, struct comps *q, const char *what)
{
	struct comp c = take(s, q, what);

	if (c.err)
		FAIL("%s is an error: %s, prov_errno %d, olen %zu", what, fi_strerror(c.err), c.prov_errno, c.olen);
	return c;
}

static struct comp take_err(struct side *s, struct comps *q, const char *what, int err)
{
	struct comp c = take(s, q, what);

	if (!c.err)
		FAIL("%s succeeded where %s was expected", what, fi_strerror(err));
	check_ret(__FILE__, __LINE__, "err of the completion, negated", -c.err, -err);
	return c;
}

struct comp expect_tx(struct side *s)
{
	return take_good(s, &s->tx, "a transmit completion");
}

struct comp expect_rx(struct side *s)
{
	return take_good(s, &s->rx, "a receive completion");
}

void expect_tx_cnt(struct side *s, size_t cnt)
{
	while (cnt--)
		expect_tx(s);
}

void expect_rx_cnt(struct side *s, size_t cnt)
{
	while (cnt--)
		expect_rx(s);
}

struct comp expect_tx_err(struct side *s, int err)
{
	return take_err(s, &s->tx, "a transmit completion", err);
}

struct comp expect_tx_any(struct side *s)
{
	return take(s, &s->tx, "a completion");
}

struct comp expect_tx_failed(struct side *s)
{
	struct comp c = take(s, &s->tx, "an error completion");

	if (!c.err)
		FAIL("a transmit succeeded that could not");
	return c;
}

struct comp expect_rx_err_with(struct side *s, int err, const struct comp *want)
{
	struct comp c = take_err(s, &s->rx, "a receive completion", err);

	if (want->olen)
		CHECK_EQ(c.olen, want->olen);
	if (want->len)
		CHECK_EQ(c.len, want->len);
	if (want->ctx)
		CHECK(c.ctx == want->ctx);
	if (want->tag)
		CHECK_EQ(c.tag, want->tag);
	if (want->flags)
		CHECK_EQ(c.flags & want->flags, want->flags);
	return c;
}

size_t rx_waiting(struct side *s)
{
	return s->rx.cnt - s->rx.taken;
}

size_t tx_waiting(struct side *s)
{
	return s->tx.cnt - s->tx.taken;
}

void expect_both_ends_named(struct side *s)
{
	const char *host;

	if (!run.ours || (strcmp(run.prov, "tcp") && strcmp(run.prov, "sockets")))
		return;
	host = strstr(s->err_text, loopback());
	if (!host || !strstr(host + 1, loopback()))
		FAIL("'%s' does not name both ends of a connection", s->err_text);
}

void expect_no_completion(struct side *s)
{
	idle(s->t);
	if (tx_waiting(s))
		FAIL("a transmit completion (error %d) where none was expected", s->tx.list[s->tx.taken].err);
	if (rx_waiting(s))
		FAIL("a receive completion (error %d) where none was expected", s->rx.list[s->rx.taken].err);
}
