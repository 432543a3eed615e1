/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * An exported shared receive context that two providers' threads use at once: the owner's, another's, which is another
 * domain of the provider, and the one that posts. Source: fi_peer(3).
 */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "export.h"
#include "mt_worker.h"

enum { MSGS = 300, LONG_EVERY = 10, LONG_LEN = 100000, WORDS = LONG_LEN / sizeof(uint32_t) };

struct counter {
	struct side *from, *owner, *peer;
	struct fid_ep *srx;
	fi_addr_t to[2];			/* owner, peer */
	uint32_t *out, *in;			/* MSGS buffers of LONG_LEN each */
	uint8_t told[MSGS];			/* the reader's, until all have ended */
	_Atomic bool over;			/* all have been told, or somebody has given up */
	double since_ms;
};

static size_t len_of(uint32_t tag)
{
	return tag % LONG_EVERY ? sizeof(uint32_t) : LONG_LEN;
}

static bool go_on(struct worker *w)
{
	struct counter *c = w->arg;

	if (worker_late(c->since_ms))
		WRONG(w, "late");
	if (w->wrong[0])
		atomic_store(&c->over, true);
	return !atomic_load(&c->over);
}

/* To the owner and to its peer by turns, and the progress of the sender. */
static void *sends_to_both(void *arg)
{
	struct worker *w = arg;
	struct counter *c = w->arg;
	struct fi_cq_tagged_entry entry;
	uint32_t next = 0, done = 0;
	ssize_t ret;

	while (done < MSGS && go_on(w)) {
		if (next < MSGS) {
			uint32_t *buf = &c->out[next * WORDS];

			ret = fi_tsend(c->from->ep, buf, len_of(next), NULL, c->to[next & 1], next, buf);
			next += !ret;
			if (ret && ret != -FI_EAGAIN)
				WRONG(w, "fi_tsend: %zd", ret);
		}
		ret = fi_cq_read(c->from->tx_cq, &entry, 1);
		done += ret == 1;
		if (ret < 0 && ret != -FI_EAGAIN)
			WRONG(w, "fi_cq_read of the sender: %zd", ret);
	}
	/* what the long ones need still */
	while (go_on(w)) {
		fi_cq_read(c->from->tx_cq, NULL, 0);
		sched_yield();
	}
	return NULL;
}

/* Receives of the context, before and behind the messages. */
static void *posts_receives(void *arg)
{
	struct worker *w = arg;
	struct counter *c = w->arg;
	ssize_t ret;

	for (uint32_t i = 0; i < MSGS && go_on(w); i++) {
		uint32_t *buf = &c->in[i * WORDS];

		while ((ret = fi_trecv(c->srx, buf, LONG_LEN, NULL, FI_ADDR_UNSPEC, i, 0, buf)) == -FI_EAGAIN &&
		       go_on(w))
			sched_yield();
		if (ret && ret != -FI_EAGAIN)
			WRONG(w, "fi_trecv: %zd", ret);
		if (i % 8 == 0)
			sched_yield();
	}
	return NULL;
}

/* The owner's queue, which has the completions of both. */
static void *reads_of_both(void *arg)
{
	struct worker *w = arg;
	struct counter *c = w->arg;
	struct fi_cq_tagged_entry entry;
	uint32_t cnt = 0;

	while (cnt < MSGS && go_on(w)) {
		ssize_t ret = fi_cq_read(c->owner->rx_cq, &entry, 1);

		if (ret == -FI_EAGAIN)
			continue;
		if (ret != 1 || entry.tag >= MSGS || entry.op_context != &c->in[entry.tag * WORDS] ||
		    entry.len != len_of((uint32_t) entry.tag)) {
			WRONG(w, "fi_cq_read of the owner: %zd, or not what was sent", ret);
			continue;
		}
		c->told[entry.tag]++;
		cnt++;
	}
	atomic_store(&c->over, true);
	return NULL;
}

/* The peer's progress. */
static void *drives_the_peer(void *arg)
{
	struct worker *w = arg;
	struct counter *c = w->arg;

	while (go_on(w)) {
		ssize_t ret = fi_cq_read(c->peer->tx_cq, NULL, 0);

		if (ret && ret != -FI_EAGAIN)
			WRONG(w, "fi_cq_read of the peer: %zd", ret);
		sched_yield();
	}
	return NULL;
}

static struct side *owner_open(struct test *t, struct fid_ep **srx)
{
	struct side *s = domain_side(t, .one_cq = true, .raw_cq = true, .hints = set_safe);
	struct fi_rx_attr attr = *s->info->rx_attr;

	if (!s->info->domain_attr->max_ep_srx_ctx)
		ABSENT("%s has no shared receive contexts here: max_ep_srx_ctx is 0", run.prov);
	MUST(fi_srx_context(s->domain, &attr, srx, NULL));
	own_fid(t, &(*srx)->fid);
	s->o.srx = *srx;
	side_open_rest(s);
	return s;
}

/* Each message of either meets its receive, whichever of the two comes first, and is told of once. */
TEST_PROV(one_context_for_two, FI_MSG | FI_TAGGED | FI_PEER, RDM_ONLY)
{
	static void *(*const fn[])(void *arg) = { reads_of_both, drives_the_peer, posts_receives, sends_to_both };
	struct counter *c = mem(t, sizeof(*c));
	struct worker w[COUNT(fn)] = { 0 };
	size_t i;

	c->owner = owner_open(t, &c->srx);
	c->peer = peer_open(t, &(struct opts) { .raw_cq = true, .hints = set_safe }, &(struct owners) {
			    .cq = export(t, &c->owner->rx_cq->fid, FI_CLASS_PEER_CQ),
			    .srx = export(t, &c->srx->fid, FI_CLASS_PEER_SRX),
			    .av = export(t, &c->owner->av->fid, FI_CLASS_PEER_AV) });
	c->from = side_open(t, .one_cq = true, .raw_cq = true, .hints = set_safe);
	c->to[0] = side_insert(c->from, c->owner);
	c->to[1] = side_insert(c->from, c->peer);
	side_insert(c->owner, c->from);
	side_insert(c->peer, c->from);
	c->out = mem(t, MSGS * LONG_LEN);
	c->in = mem(t, MSGS * LONG_LEN);
	for (i = 0; i < MSGS; i++)
		memset(&c->out[i * WORDS], (int) (i % 255 + 1), len_of((uint32_t) i));
	c->since_ms = now_ms();
	for (i = 0; i < COUNT(fn); i++) {
		w[i] = (struct worker) { .t = t, .arg = c, .id = (unsigned int) i, .fn = fn[i] };
		worker_start(&w[i]);
	}
	for (i = 0; i < COUNT(fn); i++)
		pthread_join(w[i].thread, NULL);
	for (i = 0; i < COUNT(fn); i++) {
		if (w[i].wrong[0])
			FAIL("thread %zu: %s", i, w[i].wrong);
	}
	for (i = 0; i < MSGS; i++) {
		CHECK_EQ(c->told[i], 1);
		CHECK_MEM(&c->in[i * WORDS], &c->out[i * WORDS], len_of((uint32_t) i));
	}
	side_close_ep(c->peer);
}
