/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * More than one thread: calls at once where the threading level allows them, and threads that wait for others.
 *
 * A thread must not fail a test by itself (checks leave by longjmp): it notes what went wrong in its struct worker, and
 * the test's thread says it after joining.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_atomic.h>

#include "ops.h"
#include "waitobj.h"

struct worker {
	pthread_t thread;
	struct test *t;
	struct side *s;
	unsigned int id;
	void *(*fn)(void *arg);
	char wrong[256];		/* empty: all well */
	void *arg;
	size_t done;
};

#define WRONG(w, ...) do { if (!(w)->wrong[0]) snprintf((w)->wrong, sizeof((w)->wrong), __VA_ARGS__); } while (0)

static void start(struct worker *w)
{
	CHECK(!pthread_create(&w->thread, NULL, w->fn, w));
}

static void finish(struct worker *w)
{
	pthread_join(w->thread, NULL);
	if (w->wrong[0])
		FAIL("thread %u: %s", w->id, w->wrong);
}

static bool late(double start_ms)
{
	return now_ms() - start_ms > 20000.0 * run.slow;
}

static void set_safe(struct fi_info *hints)
{
	hints->domain_attr->threading = FI_THREAD_SAFE;
}

/* A linked pair in which every call may come from every thread. */
static struct pair safe_pair(struct test *t, enum fi_wait_obj wait)
{
	struct pair p = pair_open(t, .hints = set_safe, .cq_wait = wait);

	check_link(p.a, p.b);
	check_link(p.b, p.a);
	return p;
}

/* ---- one endpoint, many threads */

enum { SENDERS = 4, MSGS = 500 };

struct shared {
	_Atomic uint32_t seen[SENDERS];
	_Atomic size_t received, sent;
};

static void *sender(void *arg)
{
	struct worker *w = arg;
	struct side *s = w->s;
	double since = now_ms();
	uint32_t i, msg;
	ssize_t ret;

	for (i = 0; i < MSGS && !w->wrong[0]; i++) {
		msg = w->id << 16 | i;
		while ((ret = fi_inject(s->ep, &msg, sizeof(msg), s->peer)) == -FI_EAGAIN && !late(since))
			fi_cq_read(s->tx_cq, NULL, 0);
		if (ret)
			WRONG(w, "fi_inject: %zd", ret);
		w->done++;
	}
	return NULL;
}

/* Read receive completions, whoever's; each buffer is its own context. */
static void *receiver(void *arg)
{
	struct worker *w = arg;
	struct shared *shared = w->arg;
	struct fi_cq_tagged_entry entry;
	double since = now_ms();
	ssize_t ret;

	while (atomic_load(&shared->received) < SENDERS * MSGS && !late(since)) {
		ret = fi_cq_read(w->s->rx_cq, &entry, 1);
		if (ret == -FI_EAGAIN)
			continue;
		if (ret != 1) {
			WRONG(w, "fi_cq_read: %zd", ret);
			break;
		}
		uint32_t msg = *(uint32_t *) entry.op_context;

		if (msg >> 16 >= SENDERS || (msg & 0xffff) >= MSGS)
			WRONG(w, "message 0x%x", msg);
		else
			atomic_fetch_add(&shared->seen[msg >> 16], 1);
		atomic_fetch_add(&shared->received, 1);
	}
	if (atomic_load(&shared->received) < SENDERS * MSGS)
		WRONG(w, "%zu of %d messages", atomic_load(&shared->received), SENDERS * MSGS);
	return NULL;
}

/* Four threads send on one endpoint, two read one queue: nothing is lost or doubled. */
TEST_PROV(senders_and_receivers, FI_MSG, RELIABLE)
{
	struct pair p = safe_pair(t, FI_WAIT_NONE);
	struct shared *shared = mem(t, sizeof(*shared));
	struct worker w[SENDERS + 2] = { 0 };
	uint32_t *in = mem(t, SENDERS * MSGS * sizeof(*in)), i;

	for (i = 0; i < SENDERS * MSGS; i++)
		post(p.b, RECV, .buf = &in[i], .len = sizeof(in[0]), .ctx = &in[i]);
	for (i = 0; i < COUNT(w); i++) {
		w[i] = (struct worker) { .t = t, .s = i < SENDERS ? p.a : p.b, .id = i, .arg = shared,
					 .fn = i < SENDERS ? sender : receiver };
		start(&w[i]);
	}
	for (i = 0; i < COUNT(w); i++)
		finish(&w[i]);
	for (i = 0; i < SENDERS; i++)
		CHECK_EQ(atomic_load(&shared->seen[i]), MSGS);
}

/* Each thread has an endpoint and a queue of its own in one domain: FI_THREAD_COMPLETION. */
static void *talk_to_itself(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry entry;
	struct side *s = w->s;
	double since = now_ms();
	uint32_t in, out;
	ssize_t ret;

	for (out = 0; out < 300 && !w->wrong[0]; out++) {
		unsigned int got = 0;

		in = ~0u;
		if (fi_recv(s->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &in))
			WRONG(w, "fi_recv");
		while ((ret = fi_send(s->ep, &out, sizeof(out), NULL, s->peer, &out)) == -FI_EAGAIN && !late(since))
			fi_cq_read(s->tx_cq, NULL, 0);
		if (ret)
			WRONG(w, "fi_send: %zd", ret);
		while (got < 2 && !late(since)) {
			ret = fi_cq_read(s->tx_cq, &entry, 1);
			got += ret == 1;
			if (ret < 0 && ret != -FI_EAGAIN)
				WRONG(w, "fi_cq_read: %zd", ret);
		}
		if (in != out)
			WRONG(w, "message %u is %u", out, in);
	}
	return NULL;
}

static void set_completion(struct fi_info *hints)
{
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
}

/* Four sides talk to themselves, each in a thread. */
static void talk_all(struct test *t, struct side *s[4])
{
	struct worker w[4] = { 0 };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		s[i]->peer = side_insert(s[i], s[i]);
		w[i] = (struct worker) { .t = t, .s = s[i], .id = i, .fn = talk_to_itself };
		start(&w[i]);
	}
	for (i = 0; i < 4; i++)
		finish(&w[i]);
}

TEST_PROV(a_queue_each, FI_MSG, RDM_ONLY)
{
	struct side *s[4];
	unsigned int i;

	if (!info_find(t, hints_new(t, &(struct opts) { .hints = set_completion }), NULL, NULL, 0))
		SKIP("%s has no FI_THREAD_COMPLETION", run.prov);
	for (i = 0; i < 4; i++)
		s[i] = i ? side_open(t, .one_cq = true, .hints = set_completion, .domain_of = s[0]) :
			   side_open(t, .one_cq = true, .hints = set_completion);
	talk_all(t, s);
}

/* The same with a transmit context in common, which brings together what the application has apart. */
TEST_PROV(a_queue_each_and_a_shared_context, FI_MSG, RDM_ONLY)
{
	struct opts o = { .one_cq = true, .hints = set_completion };
	struct side *s[4];
	unsigned int i;
	int ret;

	s[0] = domain_side_opts(t, &o);
	ret = fi_stx_context(s[0]->domain, NULL, &o.stx, NULL);
	if (ret && !run.ours)
		SKIP("%s has no shared transmit contexts", run.prov);
	MUST(ret);
	own_fid(t, &o.stx->fid);
	s[0]->o.stx = o.stx;
	side_open_rest(s[0]);
	o.domain_of = s[0];
	for (i = 1; i < 4; i++)
		s[i] = side_open_opts(t, &o);
	talk_all(t, s);
}

/* ---- contexts of one scalable endpoint, a thread each */

enum { CTXS = 4 };

struct ctx_pair {
	struct side *tx, *rx;		/* with one queue */
	fi_addr_t to;			/* where tx sends: the next pair's rx */
};

/* Send numbers to the next one, take those of the one before, in order. */
static void *pass_on(void *arg)
{
	enum { N = 200 };
	struct worker *w = arg;
	const struct ctx_pair *p = w->arg;
	struct fi_cq_tagged_entry entry;
	uint32_t in = ~0u, out = 0, sent = 0, got = 0;
	bool posted = false, sending = false;
	double since = now_ms();
	ssize_t ret;

	while ((sent < N || got < N) && !w->wrong[0] && !late(since)) {
		if (!posted && got < N)
			posted = !fi_recv(p->rx->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &in);
		if (!sending && sent < N) {
			out = sent;
			ret = fi_send(p->tx->ep, &out, sizeof(out), NULL, p->to, &out);
			sending = !ret;
			if (ret && ret != -FI_EAGAIN)
				WRONG(w, "fi_send: %zd", ret);
		}
		ret = fi_cq_read(p->tx->tx_cq, &entry, 1);
		if (ret < 0 && ret != -FI_EAGAIN)
			WRONG(w, "fi_cq_read: %zd", ret);
		if (ret != 1)
			continue;
		if (entry.op_context == &out) {
			sent++;
			sending = false;
		} else {
			if (in != got)
				WRONG(w, "message %u is %u", got, in);
			got++;
			posted = false;
		}
	}
	if (sent < N || got < N)
		WRONG(w, "%u sent, %u received of %d", sent, got, N);
	return NULL;
}

static void set_ctx_cnt(struct fi_info *hints)
{
	hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = CTXS;
}

static void set_safe_ctxs(struct fi_info *hints)
{
	set_safe(hints);
	set_ctx_cnt(hints);
}

static void set_completion_ctxs(struct fi_info *hints)
{
	set_completion(hints);
	set_ctx_cnt(hints);
}

static const struct ctx_level_row {
	const char *name;
	void (*hints)(struct fi_info *hints);
} ctx_level_rows[] = {
	{ "safe", set_safe_ctxs }, { "completion", set_completion_ctxs },
};

/* Threads use the contexts of one endpoint at once, each its own. */
TEST_TABLE(a_context_each, ctx_level_rows, FI_MSG | FI_NAMED_RX_CTX, RDM_ONLY)
{
	struct opts o = { .hints = ROW(ctx_level_rows)->hints, .rx_ctx_bits = 2 };
	struct side *base = domain_side_opts(t, &o);
	struct ctx_pair p[CTXS];
	struct worker w[CTXS] = { 0 };
	struct fid_ep *sep;
	fi_addr_t self;
	int i;

	side_open_av(base);
	MUST(fi_scalable_ep(base->domain, base->info, &sep, NULL));
	own_fid(t, &sep->fid);
	MUST(fi_scalable_ep_bind(sep, &base->av->fid, 0));
	for (i = 0; i < CTXS; i++) {
		struct opts ctx = { .domain_of = base, .av_of = base, .sep = sep, .ctx = i, .one_cq = true };

		p[i].tx = side_open_opts(t, &ctx);
		ctx.rx_ctx = true;
		ctx.cq_of = p[i].tx;
		p[i].rx = side_open_opts(t, &ctx);
	}
	MUST(fi_enable(sep));
	base->name_len = sizeof(base->name);
	MUST(fi_getname(&sep->fid, base->name, &base->name_len));
	self = side_insert(base, base);
	for (i = 0; i < CTXS; i++) {
		p[i].to = fi_rx_addr(self, (i + 1) % CTXS, 2);
		w[i] = (struct worker) { .t = t, .arg = &p[i], .id = (unsigned int) i, .fn = pass_on };
		start(&w[i]);
	}
	for (i = 0; i < CTXS; i++)
		finish(&w[i]);
}

/* ---- waiting for another thread */

/* Blocks in fi_cq_sread() for each of N messages. */
static void *sleeper(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry entry;
	ssize_t ret;
	size_t cnt = *(size_t *) w->arg;

	while (w->done < cnt && !w->wrong[0]) {
		ret = fi_cq_sread(w->s->rx_cq, &entry, 1, NULL, 30000 * (int) run.slow);
		if (ret != 1)
			WRONG(w, "fi_cq_sread: %zd after %zu messages", ret, w->done);
		else
			w->done++;
	}
	return NULL;
}

/* A thread asleep in fi_cq_sread() is woken by each message that another thread's endpoint sends. */
TEST_TABLE(sread_wakes, wait_rows, FI_MSG, RELIABLE)
{
	struct pair p;
	struct worker w;
	size_t cnt = 100, i;
	uint8_t in[100];

	if (ROW(wait_rows)->obj == FI_WAIT_NONE)
		SKIP("nothing to wait on");
	p = safe_pair(t, ROW(wait_rows)->obj);
	for (i = 0; i < cnt; i++)
		post_recv(p.b, &in[i], 1);
	p.b->o.raw_cq = true;
	w = (struct worker) { .t = t, .s = p.b, .fn = sleeper, .arg = &cnt };
	start(&w);
	for (i = 0; i < cnt; i++) {
		post(p.a, SEND, .buf = "x", .len = 1);
		if (i % 10 == 0)
			sched_yield();
		expect_tx(p.a);
	}
	finish(&w);
	CHECK_EQ(w.done, cnt);
}

/* Two threads in blocking reads play ping-pong: a lost wake-up would stop them. */
static void *pong(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry entry;
	struct side *s = w->s;
	ssize_t ret;
	char in, out = 'p';

	while (w->done < 200 && !w->wrong[0]) {
		if (fi_recv(s->ep, &in, 1, NULL, FI_ADDR_UNSPEC, NULL))
			WRONG(w, "fi_recv");
		if (w->id == 0 || w->done)
			while ((ret = fi_inject(s->ep, &out, 1, s->peer)) == -FI_EAGAIN)
				fi_cq_read(s->tx_cq, NULL, 0);
		ret = fi_cq_sread(s->rx_cq, &entry, 1, NULL, 30000 * (int) run.slow);
		if (ret != 1)
			WRONG(w, "fi_cq_sread: %zd after %zu rounds", ret, w->done);
		w->done++;
	}
	/* The one that answers owes the last answer. */
	if (w->id == 1 && !w->wrong[0])
		while (fi_inject(s->ep, &out, 1, s->peer) == -FI_EAGAIN)
			fi_cq_read(s->tx_cq, NULL, 0);
	return NULL;
}

TEST_PROV(ping_pong_of_sleepers, FI_MSG, RELIABLE)
{
	struct pair p = safe_pair(t, FI_WAIT_UNSPEC);
	struct worker w[2] = { { .t = t, .s = p.a, .id = 0, .fn = pong }, { .t = t, .s = p.b, .id = 1, .fn = pong } };

	start(&w[0]);
	start(&w[1]);
	finish(&w[0]);
	finish(&w[1]);
}

/* fi_cq_signal() ends a blocking read without a completion. */
static void *wait_for_signal(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry entry;
	double since = now_ms();
	ssize_t ret;

	ret = fi_cq_sread(w->s->rx_cq, &entry, 1, NULL, -1);
	if (ret != -FI_EAGAIN)
		WRONG(w, "fi_cq_sread: %zd", ret);
	if (late(since))
		WRONG(w, "woken late");
	atomic_store((_Atomic bool *) w->arg, true);
	return NULL;
}

static const struct wait_row signal_rows[] = {
	{ "unspec", FI_WAIT_UNSPEC }, { "fd", FI_WAIT_FD }, { "mutex_cond", FI_WAIT_MUTEX_COND }, { "yield", FI_WAIT_YIELD },
};

TEST_TABLE(signal_wakes, signal_rows, FI_MSG, RELIABLE)
{
	struct pair p = safe_pair(t, ROW(signal_rows)->obj);
	unsigned int i;
	int ret;

	p.b->o.raw_cq = true;
	ret = fi_cq_signal(p.b->rx_cq);
	if (ret == -FI_ENOSYS)
		SKIP("no fi_cq_signal()");
	for (i = 0; i < 10; i++) {
		_Atomic bool woken = false;
		struct worker w = { .t = t, .s = p.b, .fn = wait_for_signal, .arg = &woken };

		start(&w);
		/* It may not be asleep yet: fi_cq(3) promises to wake who waits. */
		while (!atomic_load(&woken)) {
			side_idle(p.a);
			ret |= fi_cq_signal(p.b->rx_cq);
		}
		finish(&w);
		MUST(ret);
	}
}

/* A counter that another thread adds to, and one that counts messages. */
static void *wait_for_counter(void *arg)
{
	struct worker *w = arg;
	int ret = fi_cntr_wait(w->arg, 100, 30000 * (int) run.slow);

	if (ret)
		WRONG(w, "fi_cntr_wait: %d (%s)", ret, fi_strerror(-ret));
	return NULL;
}

TEST_PROV(counter_wakes, FI_MSG)
{
	struct side *s = domain_side(t, .hints = set_safe);
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC };
	struct worker w = { .t = t, .s = s, .fn = wait_for_counter };
	struct fid_cntr *cntr;
	unsigned int i;

	MUST(fi_cntr_open(s->domain, &attr, &cntr, NULL));
	own_fid(t, &cntr->fid);
	w.arg = cntr;
	start(&w);
	for (i = 0; i < 100; i++)
		MUST(fi_cntr_add(cntr, 1));
	finish(&w);
}

/* An event queue that another thread writes to. */
static void *wait_for_events(void *arg)
{
	struct worker *w = arg;
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret;

	while (w->done < 100 && !w->wrong[0]) {
		ret = fi_eq_sread(w->arg, &event, &entry, sizeof(entry), 30000 * (int) run.slow, 0);
		if (ret != sizeof(entry))
			WRONG(w, "fi_eq_sread: %zd", ret);
		else if (entry.data != w->done)
			WRONG(w, "event %llu instead of %zu", (unsigned long long) entry.data, w->done);
		w->done++;
	}
	return NULL;
}

TEST_PROV(event_queue_wakes, FI_MSG)
{
	struct side *s = domain_side(t, .hints = set_safe);
	struct fi_eq_attr attr = { .flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC };
	struct worker w = { .t = t, .s = s, .fn = wait_for_events };
	struct fi_eq_entry entry = { 0 };
	struct fid_eq *eq;

	MUST(fi_eq_open(s->fabric, &attr, &eq, NULL));
	own_fid(t, &eq->fid);
	w.arg = eq;
	start(&w);
	for (entry.data = 0; entry.data < 100; entry.data++)
		CHECK_RET(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), sizeof(entry));
	finish(&w);
}

/* A descriptor polled by a thread, while another one posts. */
static void *poller(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry entry;
	struct pollfd pfd = { .events = POLLIN };
	struct side *s = w->s;
	struct fid *fid = &s->rx_cq->fid;
	ssize_t ret;

	if (fi_control(fid, FI_GETWAIT, &pfd.fd))
		WRONG(w, "FI_GETWAIT");
	while (w->done < 100 && !w->wrong[0]) {
		ret = fi_cq_read(s->rx_cq, &entry, 1);
		if (ret == 1)
			w->done++;
		else if (ret != -FI_EAGAIN)
			WRONG(w, "fi_cq_read: %zd", ret);
		else if (!fi_trywait(s->fabric, &fid, 1) && poll(&pfd, 1, 30000 * (int) run.slow) != 1)
			WRONG(w, "a lost wake-up after %zu messages", w->done);
	}
	return NULL;
}

TEST_PROV(poll_wakes, FI_MSG, RELIABLE)
{
	struct pair p = safe_pair(t, FI_WAIT_FD);
	struct worker w = { .t = t, .s = p.b, .fn = poller };
	uint8_t in[100];
	unsigned int i;

	for (i = 0; i < 100; i++)
		post_recv(p.b, &in[i], 1);
	p.b->o.raw_cq = true;
	start(&w);
	for (i = 0; i < 100; i++) {
		post(p.a, SEND, .buf = "x", .len = 1);
		expect_tx(p.a);
	}
	finish(&w);
}

/* ---- control calls are always safe */

static void *open_and_close(void *arg)
{
	struct worker *w = arg;
	struct fi_info *info = w->arg;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_FD };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	unsigned int i;

	for (i = 0; i < 30 && !w->wrong[0]; i++) {
		struct fid_fabric *fabric;
		struct fid_domain *domain;
		struct fi_info *list;
		struct fid_ep *ep;
		struct fid_cq *cq;
		struct fid_av *av;

		if (fi_getinfo(run.version, NULL, NULL, 0, info, &list)) {
			WRONG(w, "fi_getinfo");
			return NULL;
		}
		if (fi_fabric(list->fabric_attr, &fabric, NULL) || fi_domain(fabric, list, &domain, NULL) ||
		    fi_cq_open(domain, &cq_attr, &cq, NULL) || fi_av_open(domain, &av_attr, &av, NULL) ||
		    fi_endpoint(domain, list, &ep, NULL) ||
		    fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) || fi_ep_bind(ep, &av->fid, 0) || fi_enable(ep)) {
			WRONG(w, "opening");
			return NULL;
		}
		if (fi_close(&ep->fid) || fi_close(&av->fid) || fi_close(&cq->fid) || fi_close(&domain->fid) ||
		    fi_close(&fabric->fid))
			WRONG(w, "closing");
		fi_freeinfo(list);
	}
	return NULL;
}

TEST_PROV(open_and_close_at_once, FI_MSG, RDM_ONLY)
{
	struct fi_info *hints = hints_new(t, &(struct opts) { .hints = set_safe });
	struct worker w[4] = { 0 };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		w[i] = (struct worker) { .t = t, .id = i, .fn = open_and_close, .arg = hints };
		start(&w[i]);
	}
	for (i = 0; i < 4; i++)
		finish(&w[i]);
}

/* Addresses are inserted and removed by some threads while others send to those that stay. */
static void *churn_addresses(void *arg)
{
	struct worker *w = arg;
	struct side *s = w->s, *other = w->arg;
	fi_addr_t addr;
	unsigned int i;

	for (i = 0; i < 200 && !w->wrong[0]; i++) {
		if (fi_av_insert(s->av, other->name, 1, &addr, 0, NULL) != 1)
			WRONG(w, "fi_av_insert");
		else if (fi_av_remove(s->av, &addr, 1, 0))
			WRONG(w, "fi_av_remove");
	}
	return NULL;
}

/* Control calls may come from any thread, also where data calls are serialised. */
struct level_row {
	const char *name;
	void (*hints)(struct fi_info *hints);
};

static const struct level_row level_rows[] = {
	{ "safe", set_safe }, { "completion", set_completion },
};

static struct pair level_pair(struct test *t, const struct level_row *row)
{
	struct pair p;

	if (!info_find(t, hints_new(t, &(struct opts) { .hints = row->hints }), NULL, NULL, 0))
		SKIP("%s has no threading level %s", run.prov, row->name);
	p = pair_open(t, .hints = row->hints);
	check_link(p.a, p.b);
	return p;
}

TEST_TABLE(addresses_change_while_sending, level_rows, FI_MSG, RDM_ONLY)
{
	const struct level_row *row = ROW(level_rows);
	struct pair p = level_pair(t, row);
	struct side *c = side_open(t, .hints = row->hints);
	struct worker w = { .t = t, .s = p.a, .fn = churn_addresses, .arg = c };
	unsigned int i;
	char in[4];

	start(&w);
	for (i = 0; i < 200; i++) {
		post_recv(p.b, in, 4);
		post(p.a, SEND, .buf = "abcd", .len = 4);
		expect_recv(p.b, "abcd", 4);
		expect_tx(p.a);
	}
	finish(&w);
}

/* Regions come and go while a peer writes to one that stays. */
static void *churn_regions(void *arg)
{
	struct worker *w = arg;
	uint8_t buf[64];
	struct fid_mr *mr;
	unsigned int i;

	for (i = 0; i < 300 && !w->wrong[0]; i++) {
		if (fi_mr_reg(w->s->domain, buf, sizeof(buf), FI_REMOTE_WRITE, 0, 1000 + i % 7 + 10 * w->id, 0, &mr, NULL))
			WRONG(w, "fi_mr_reg");
		else if (fi_close(&mr->fid))
			WRONG(w, "fi_close");
	}
	return NULL;
}

TEST_TABLE(regions_change_while_written, level_rows, FI_MSG | FI_RMA, RELIABLE)
{
	struct pair p = level_pair(t, ROW(level_rows));
	struct region r = region_open(p.b, NULL, 64, FI_REMOTE_WRITE);
	struct worker w[2] = { { .t = t, .s = p.b, .id = 0, .fn = churn_regions },
			       { .t = t, .s = p.b, .id = 1, .fn = churn_regions } };
	unsigned int i;

	start(&w[0]);
	start(&w[1]);
	for (i = 0; i < 200; i++) {
		post(p.a, WRITEMSG, .buf = "8 bytes.", .len = 8, .raddr = r.addr, .key = r.key, .flags = FI_DELIVERY_COMPLETE);
		expect_tx(p.a);
	}
	finish(&w[0]);
	finish(&w[1]);
	CHECK_MEM(r.buf, "8 bytes.", 8);
}

/* ---- atomics on the same words by many engines */

enum { ADDERS = 4, ADDS = 100, WORDS = 2048 };

struct adder {
	uint64_t addr, key;
	uint64_t one[WORDS], was[WORDS];
};

/* Add to all words through this endpoint, with and without fetching. */
static void *add(void *arg)
{
	struct worker *w = arg;
	struct adder *a = w->arg;
	struct fi_cq_tagged_entry entry;
	double since = now_ms();
	struct side *s = w->s;
	uint64_t last = 0;
	ssize_t ret;

	for (unsigned int i = 0; i < ADDS && !w->wrong[0]; i++) {
		ret = i % 2 ? fi_atomic(s->ep, a->one, WORDS, NULL, s->peer, a->addr, a->key, FI_UINT64, FI_SUM, NULL) :
			      fi_fetch_atomic(s->ep, a->one, WORDS, NULL, a->was, NULL, s->peer, a->addr, a->key, FI_UINT64,
					      FI_SUM, NULL);
		if (ret)
			WRONG(w, "an atomic: %zd", ret);
		while ((ret = fi_cq_read(s->tx_cq, &entry, 1)) == -FI_EAGAIN && !late(since))
			;
		if (ret != 1)
			WRONG(w, "fi_cq_read: %zd", ret);
		if (a->was[0] < last)
			WRONG(w, "a word has become less");
		last = a->was[0];
	}
	return NULL;
}

static const struct adder_row {
	const char *name;
	bool domain_each;
} adder_rows[] = { { "queue_each", false }, { "domain_each", true } };

/* Whichever way they come to the words, no addition is lost. */
TEST_TABLE(atomics_of_many_engines, adder_rows, FI_ATOMIC, RDM_ONLY)
{
	uint64_t *words = mem(t, WORDS * sizeof(*words));
	struct worker w[ADDERS] = { 0 };
	struct side *s[ADDERS];
	unsigned int i, k;

	if (!info_find(t, hints_new(t, &(struct opts) { .hints = set_completion }), NULL, NULL, 0))
		SKIP("%s has no FI_THREAD_COMPLETION", run.prov);
	for (i = 0; i < ADDERS; i++) {
		struct adder *a = mem(t, sizeof(*a));
		struct region r;

		s[i] = side_open(t, .one_cq = true, .hints = set_completion,
				 .domain_of = i && !ROW(adder_rows)->domain_each ? s[0] : NULL);
		s[i]->peer = side_insert(s[i], s[i]);
		r = region_open(s[i], words, WORDS * sizeof(*words), FI_REMOTE_READ | FI_REMOTE_WRITE);
		a->addr = r.addr;
		a->key = r.key;
		for (k = 0; k < WORDS; k++)
			a->one[k] = 1;
		w[i] = (struct worker) { .t = t, .s = s[i], .id = i, .fn = add, .arg = a };
	}
	for (i = 0; i < ADDERS; i++)
		start(&w[i]);
	for (i = 0; i < ADDERS; i++)
		finish(&w[i]);
	for (k = 0; k < WORDS; k++)
		CHECK_EQ(words[k], ADDERS * ADDS);
}
