/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * More than one thread that transfers: on one endpoint, on one each, on contexts of one, and on the same words of
 * memory. Those that wait are in mt.wakes.c, those that open and close in mt.control.c. Source: fi_domain(3).
 */
#include <stdatomic.h>

#include <rdma/fi_atomic.h>

#include "mt_worker.h"

/* ---- one endpoint, many threads */

enum { SENDERS = 4, MSGS = 500 };

struct shared {
	_Atomic uint32_t seen[SENDERS];
	_Atomic size_t received, posted;
	uint32_t in[SENDERS * MSGS];
	void *desc;
};

static void *sender(void *arg)
{
	struct worker *w = arg;
	struct shared *shared = w->arg;
	struct side *s = w->s;
	double since = now_ms();
	uint32_t i, msg;
	ssize_t ret;

	for (i = 0; i < MSGS && !w->wrong[0]; i++) {
		msg = w->id << 16 | i;
		while ((ret = fi_inject(s->ep, &msg, sizeof(msg), s->peer)) == -FI_EAGAIN && !worker_late(since))
			fi_cq_read(s->tx_cq, NULL, 0);
		if (ret)
			WRONG(w, "fi_inject: %zd", ret);
		w->done++;
	}
	/* what was taken may wait for credit of the other end, which is its own progress */
	while (atomic_load(&shared->received) < SENDERS * MSGS && !worker_late(since))
		fi_cq_read(s->tx_cq, NULL, 0);
	return NULL;
}

/* The next receive, if there is one left: each buffer is its own context. */
static ssize_t post_next(struct worker *w)
{
	struct shared *shared = w->arg;
	size_t i = atomic_fetch_add(&shared->posted, 1);

	if (i >= SENDERS * MSGS)
		return 0;
	return fi_recv(w->s->ep, &shared->in[i], sizeof(shared->in[i]), shared->desc, FI_ADDR_UNSPEC, &shared->in[i]);
}

/* Read receive completions, whoever's, and post a receive for each. */
static void *receiver(void *arg)
{
	struct worker *w = arg;
	struct shared *shared = w->arg;
	struct fi_cq_tagged_entry entry;
	double since = now_ms();
	ssize_t ret;

	while (atomic_load(&shared->received) < SENDERS * MSGS && !worker_late(since)) {
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
		ret = post_next(w);
		if (ret)
			WRONG(w, "fi_recv: %zd", ret);
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
	uint32_t i;

	shared->desc = desc_for(p.b, shared->in, sizeof(shared->in));
	for (i = 0; i < SENDERS * MSGS / 10; i++)
		MUST((int) post_next(&(struct worker) { .s = p.b, .arg = shared }));
	for (i = 0; i < COUNT(w); i++) {
		w[i] = (struct worker) { .t = t, .s = i < SENDERS ? p.a : p.b, .id = i, .arg = shared,
					 .fn = i < SENDERS ? sender : receiver };
		worker_start(&w[i]);
	}
	for (i = 0; i < COUNT(w); i++)
		worker_finish(&w[i]);
	for (i = 0; i < SENDERS; i++)
		CHECK_EQ(atomic_load(&shared->seen[i]), MSGS);
}

/* Each thread has an endpoint and a queue of its own in one domain, or a domain of its own. */
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
		while ((ret = fi_send(s->ep, &out, sizeof(out), NULL, s->peer, &out)) == -FI_EAGAIN &&
		       !worker_late(since))
			fi_cq_read(s->tx_cq, NULL, 0);
		if (ret)
			WRONG(w, "fi_send: %zd", ret);
		while (got < 2 && !worker_late(since)) {
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

/* Four sides talk to themselves, each in a thread. */
static void talk_all(struct test *t, struct side *s[4])
{
	struct worker w[4] = { 0 };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		s[i]->peer = side_insert(s[i], s[i]);
		w[i] = (struct worker) { .t = t, .s = s[i], .id = i, .fn = talk_to_itself };
		worker_start(&w[i]);
	}
	for (i = 0; i < 4; i++)
		worker_finish(&w[i]);
}

static const struct apart_row {
	const char *name;
	void (*hints)(struct fi_info *hints);
	bool domain_each;		/* the level serialises the calls of a domain */
} apart_rows[] = {
	{ "endpoint", set_endpoint, false }, { "completion", set_completion, false }, { "domain", set_domain, true },
};

/* Threads that each have an endpoint and its queue need no lock, at each threading level that allows it. */
TEST_TABLE(a_queue_each, apart_rows, FI_MSG, RDM_ONLY)
{
	const struct apart_row *row = ROW(apart_rows);
	struct side *s[4];
	unsigned int i;

	if (!info_find(t, hints_new(t, &(struct opts) { .hints = row->hints }), NULL, NULL, 0))
		ABSENT("%s does not have that level", run.prov);
	for (i = 0; i < 4; i++)
		s[i] = side_open(t, .one_cq = true, .hints = row->hints,
				 .domain_of = i && !row->domain_each ? s[0] : NULL);
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
		ABSENT("%s has no shared transmit contexts", run.prov);
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

	while ((sent < N || got < N) && !w->wrong[0] && !worker_late(since)) {
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
		worker_start(&w[i]);
	}
	for (i = 0; i < CTXS; i++)
		worker_finish(&w[i]);
}

/* ---- atomics on the same words by many engines */

/* Words take long to multiply, and little to add to or to swap: who works on them without asking others is overtaken in
 * the middle of a product, by 1, and then writes over what came in between. */
typedef long double _Complex word_t;

enum { ADDERS = 8, ADDS = 120, UNDER_WAY = 4, WORDS = 512 };

struct adder {
	uint64_t addr, key;
	size_t cnt;			/* words in one atomic: all, or as many as the endpoint takes */
	word_t one[WORDS];
	word_t was[WORDS], old[WORDS], new[WORDS];	/* of a swap: results, compared with, put there */
	size_t swapped[WORDS];
	bool swaps;
};

/* Take completions until no more than this many are under way. */
static void adder_wait(struct worker *w, unsigned int *under_way, unsigned int limit, double since)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret = 0;

	while (*under_way > limit && (ret == -FI_EAGAIN || ret >= 0) && !worker_late(since)) {
		ret = fi_cq_read(w->s->tx_cq, &entry, 1);
		*under_way -= ret == 1;
	}
	if (*under_way > limit)
		WRONG(w, "%u atomics do not complete: %zd", *under_way - limit, ret);
}

/* Put one more than what was seen last where that is still there, and note where it was. */
static ssize_t swap(struct worker *w, unsigned int *under_way, double since)
{
	struct adder *a = w->arg;
	ssize_t ret;

	for (unsigned int k = 0; k < a->cnt; k++) {
		a->old[k] = a->was[k];
		a->new[k] = a->old[k] + 1;
	}
	ret = fi_compare_atomic(w->s->ep, a->new, a->cnt, NULL, a->old, NULL, a->was, NULL, w->s->peer, a->addr, a->key,
				FI_LONG_DOUBLE_COMPLEX, FI_CSWAP, NULL);
	if (ret)
		return ret;
	++*under_way;
	adder_wait(w, under_way, 0, since);
	for (unsigned int k = 0; k < a->cnt && !w->wrong[0]; k++)
		a->swapped[k] += a->was[k] == a->old[k];
	return 0;
}

/* Multiply all words by one, many times, and now and then add to them, by the row's operation. */
static void *add(void *arg)
{
	struct worker *w = arg;
	struct adder *a = w->arg;
	double since = now_ms();
	unsigned int under_way = 0;
	ssize_t ret;

	for (unsigned int i = 0; i < 2 * ADDS && !w->wrong[0]; i++) {
		if (i % 2 && a->swaps)
			ret = swap(w, &under_way, since);
		else
			ret = fi_atomic(w->s->ep, a->one, a->cnt, NULL, w->s->peer, a->addr, a->key,
					FI_LONG_DOUBLE_COMPLEX, i % 2 ? FI_SUM : FI_PROD, NULL);
		if (ret)
			WRONG(w, "an atomic: %zd", ret);
		under_way += !(i % 2 && a->swaps);
		adder_wait(w, &under_way, UNDER_WAY, since);
	}
	adder_wait(w, &under_way, 0, since);
	return NULL;
}

static const struct adder_row {
	const char *name;
	bool domain_each, swaps;
} adder_rows[] = {
	{ "queue_each", false, false }, { "domain_each", true, false },
	{ "queue_each_swaps", false, true }, { "domain_each_swaps", true, true },
};

/* What the words must have come to: 0, and one for each addition. */
static void check_words(const word_t *words, const struct worker w[ADDERS], bool swaps)
{
	for (unsigned int k = 0; k < ((const struct adder *) w[0].arg)->cnt; k++) {
		size_t want = swaps ? 0 : ADDERS * ADDS;

		for (unsigned int i = 0; i < ADDERS; i++)
			want += ((const struct adder *) w[i].arg)->swapped[k];
		CHECK(want > 0);
		CHECK_EQ((size_t) words[k], want);
	}
}

static size_t words_at_once(const struct side *s)
{
	size_t base, compare;

	MUST(fi_atomicvalid(s->ep, FI_LONG_DOUBLE_COMPLEX, FI_PROD, &base));
	MUST(fi_compare_atomicvalid(s->ep, FI_LONG_DOUBLE_COMPLEX, FI_CSWAP, &compare));
	return MIN(MIN(base, compare), WORDS);
}

/* Whichever way eight of them come to the words, no addition is lost. */
TEST_TABLE(atomics_of_many_engines, adder_rows, FI_ATOMIC, RDM_ONLY)
{
	word_t *words = mem(t, WORDS * sizeof(*words));
	struct worker w[ADDERS] = { 0 };
	struct side *s[ADDERS];
	unsigned int i, k;

	if (!info_find(t, hints_new(t, &(struct opts) { .hints = set_completion }), NULL, NULL, 0))
		ABSENT("%s has no FI_THREAD_COMPLETION", run.prov);
	for (i = 0; i < ADDERS; i++) {
		struct adder *a = mem(t, sizeof(*a));
		struct region r;

		s[i] = side_open(t, .one_cq = true, .hints = set_completion, .tx_op_flags = level_delivered(),
				 .domain_of = i && !ROW(adder_rows)->domain_each ? s[0] : NULL);
		s[i]->peer = side_insert(s[i], s[i]);
		r = region_open(s[i], words, WORDS * sizeof(*words), FI_REMOTE_READ | FI_REMOTE_WRITE);
		a->addr = r.addr;
		a->key = r.key;
		a->swaps = ROW(adder_rows)->swaps;
		a->cnt = words_at_once(s[i]);
		for (k = 0; k < WORDS; k++)
			a->one[k] = 1;
		w[i] = (struct worker) { .t = t, .s = s[i], .id = i, .fn = add, .arg = a };
	}
	for (i = 0; i < ADDERS; i++)
		worker_start(&w[i]);
	for (i = 0; i < ADDERS; i++)
		worker_finish(&w[i]);
	check_words(words, w, ROW(adder_rows)->swaps);
}
