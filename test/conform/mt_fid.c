/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FI_THREAD_FID and FI_THREAD_ENDPOINT: calls on one object are made by one thread at a time, those on different
 * objects at once. A queue may then be read without a lock, while others post, fail, poll and make progress beside
 * it. Source: fi_domain(3).
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "ops.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"	/* poll sets */

enum { MSGS = 1500, EVERY = 10 };	/* each so many messages a receive is cancelled */

/* What the threads of a test share; wrong is written by whoever finds something, and read when all have ended. */
struct work {
	struct pair p;
	struct fid_poll *set;
	double since_ms;
	_Atomic bool over;		/* the readers have all, or somebody has given up */
	_Atomic(const char *) wrong;
	uint32_t *in;			/* MSGS, one for each receive */
	char cancelled;			/* its address is the context of those */
};

static void wrong(struct work *w, const char *what)
{
	atomic_store(&w->wrong, what);
	atomic_store(&w->over, true);
}

/* False: it takes too long, which is wrong. */
static bool go_on(struct work *w)
{
	if (now_ms() - w->since_ms > 60000.0 * run.slow)
		wrong(w, "late");
	return !atomic_load(&w->over);
}

/* All calls on a's endpoint. */
static void *sends(void *arg)
{
	struct work *w = arg;
	struct side *a = w->p.a;
	ssize_t ret = 0;

	for (uint32_t i = 0; i < MSGS && !ret; i++) {
		while ((ret = fi_inject(a->ep, &i, sizeof(i), a->peer)) == -FI_EAGAIN && go_on(w))
			sched_yield();
	}
	if (ret)
		wrong(w, "fi_inject");
	return NULL;
}

/* All calls on a's queue: nothing comes, but it makes a's progress. */
static void *drives(void *arg)
{
	struct work *w = arg;
	struct fi_cq_tagged_entry entry;

	while (go_on(w)) {
		if (fi_cq_read(w->p.a->tx_cq, &entry, 1) != -FI_EAGAIN)
			wrong(w, "a completion of what has none");
		sched_yield();
	}
	return NULL;
}

/* All calls on b's endpoint: receives, in order, and such as are cancelled at once. */
static void *posts(void *arg)
{
	struct work *w = arg;
	struct fid_ep *ep = w->p.b->ep;
	ssize_t ret = 0;

	for (uint32_t i = 0; i < MSGS && !ret; i++) {
		do {
			ret = fi_recv(ep, &w->in[i], sizeof(w->in[i]), NULL, FI_ADDR_UNSPEC, &w->in[i]);
		} while (ret == -FI_EAGAIN && go_on(w) && !sched_yield());
		if (i % EVERY || ret)
			continue;
		/* tagged, so that no message takes it */
		ret = fi_trecv(ep, w->in, 0, NULL, FI_ADDR_UNSPEC, 1, 0, &w->cancelled);
		if (!ret)
			ret = fi_cancel(&ep->fid, &w->cancelled);
	}
	if (ret)
		wrong(w, "fi_recv, fi_trecv or fi_cancel");
	return NULL;
}

/* A poll set with b's queue in it. */
static void *polls(void *arg)
{
	struct work *w = arg;
	void *context[2];

	while (go_on(w)) {
		int ret = fi_poll(w->set, context, 2);

		if (ret < 0 || ret > 1 || (ret == 1 && context[0] != w->p.b))
			wrong(w, "fi_poll");
		sched_yield();
	}
	return NULL;
}

/* All calls on b's queue: the messages in their order, now one, now some at a time; each cancelled receive once. */
static void *reads(void *arg)
{
	struct work *w = arg;
	struct fid_cq *cq = w->p.b->rx_cq;
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry entry[3];
	uint32_t next = 0, cancelled = 0;

	while ((next < MSGS || cancelled < MSGS / EVERY) && go_on(w)) {
		ssize_t ret = fi_cq_read(cq, entry, 1 + next % 3);

		if (ret == -FI_EAVAIL) {
			ret = fi_cq_readerr(cq, &err, 0);
			if (ret != 1 || err.op_context != &w->cancelled || err.err != FI_ECANCELED)
				wrong(w, "fi_cq_readerr");
			cancelled++;
			continue;
		}
		if (ret < 0 && ret != -FI_EAGAIN)
			wrong(w, "fi_cq_read");
		for (ssize_t i = 0; i < ret; i++, next++) {
			if (entry[i].op_context != &w->in[next] || w->in[next] != next)
				wrong(w, "a message out of order");
		}
	}
	atomic_store(&w->over, true);
	return NULL;
}

static enum fi_threading wanted;

static void ask_for_level(struct fi_info *hints)
{
	hints->domain_attr->threading = wanted;
}

static const struct level_row {
	const char *name;
	enum fi_threading threading;
} level_rows[] = { { "fid", FI_THREAD_FID }, { "endpoint", FI_THREAD_ENDPOINT } };

/* One thread an object, all at once: nothing is lost, doubled or out of its place. */
TEST_TABLE(a_thread_for_each_object, level_rows, FI_MSG | FI_TAGGED, RDM_ONLY)
{
	static void *(*const fn[])(void *arg) = { reads, posts, polls, drives, sends };
	struct work *w = mem(t, sizeof(*w));
	struct fi_poll_attr attr = { 0 };
	pthread_t thread[COUNT(fn)];

	wanted = ROW(level_rows)->threading;
	w->p = pair_open(t, .one_cq = true, .raw_cq = true, .hints = ask_for_level);
	w->in = mem(t, MSGS * sizeof(*w->in));
	MUST(fi_poll_open(w->p.b->domain, &attr, &w->set));
	own_fid(t, &w->set->fid);
	MUST(fi_poll_add(w->set, &w->p.b->rx_cq->fid, 0));
	w->since_ms = now_ms();
	for (size_t i = 0; i < COUNT(fn); i++)
		CHECK(!pthread_create(&thread[i], NULL, fn[i], w));
	for (size_t i = 0; i < COUNT(fn); i++)
		pthread_join(thread[i], NULL);
	MUST(fi_poll_del(w->set, &w->p.b->rx_cq->fid, 0));
	if (atomic_load(&w->wrong))
		FAIL("%s", atomic_load(&w->wrong));
}
