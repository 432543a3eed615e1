/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a threading level saves: how often a message takes a lock. Counted by standing before the calls of the
 * library that take one; it has no other way to take any. doc/decisions/levels.md says what each level takes, and
 * why.
 */
#include "traffic.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* By any thread of this program. */
static _Atomic unsigned long taken;		/* locks asked for */
static _Atomic unsigned long met;		/* of them, those that somebody else held */

#define EXPORTED __attribute__((visibility("default")))

/* The real one of the C library. */
#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

/* What a call returned: the library tries before it waits, so who would have to wait is seen by the try. */
static int noted(int ret)
{
	met += ret == EBUSY;
	return ret;
}

#define COUNTED(name, type)			\
EXPORTED int name(type *lock)			\
{						\
	static _Atomic(__typeof__(&name)) real;	\
						\
	if (!real)				\
		real = REAL(name);		\
	taken++;				\
	return noted(real(lock));		\
}

COUNTED(pthread_mutex_lock, pthread_mutex_t)
COUNTED(pthread_mutex_trylock, pthread_mutex_t)
COUNTED(pthread_spin_lock, pthread_spinlock_t)
COUNTED(pthread_spin_trylock, pthread_spinlock_t)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)

struct level_row {
	const char *name;
	enum fi_threading threading;
	bool lock_free;
};

static const struct level_row level_rows[] = {
	{ "safe", FI_THREAD_SAFE, false },
	{ "fid", FI_THREAD_FID, false },
	{ "endpoint", FI_THREAD_ENDPOINT, false },
	{ "completion", FI_THREAD_COMPLETION, true },
	{ "domain", FI_THREAD_DOMAIN, true },
};

static enum fi_threading wanted;

static void ask_for_level(struct fi_info *hints)
{
	traffic_manual(hints);
	hints->domain_attr->threading = wanted;
}

enum { MSGS = 1000 };

/* Locks taken by MSGS messages, half of them each way, one at a time; and by as many in a stream. */
static unsigned long count_locks(struct pair *p)
{
	unsigned long before = taken;

	ping_pong(p, TAGGED, 8, MSGS / 2);
	stream(p, PLAIN, 8, 64, MSGS);
	return taken - before;
}

/* Where the application serialises its data calls, by domain or by completion, a message takes no lock. */
TEST_TABLE(of_a_message, level_rows, FI_MSG | FI_TAGGED, RELIABLE)
{
	const struct level_row *row = ROW(level_rows);
	struct pair p;
	unsigned long cnt;

	if (SANITIZED)
		SKIP("a sanitizer stands before the calls itself");
	wanted = row->threading;
	p = traffic_pair(t, .hints = ask_for_level);
	count_locks(&p);		/* what happens once */
	cnt = count_locks(&p);
	printf("# threading level %s: %.2f locks a message\n", row->name, (double) cnt / (2 * MSGS));
	if (!row->lock_free && !cnt)
		FAIL("%s: no lock was seen; counting does not work", row->name);
	if (row->lock_free && cnt)
		FAIL("%s: %lu locks for %d messages, none is needed", row->name, cnt, 2 * MSGS);
}

/* FI_THREAD_FID has one thread at a time at a queue, which takes out more than it asked for when it has the lock: the
 * reads that follow take none, which counts where each asks for one entry. FI_THREAD_ENDPOINT promises that, too. */
TEST_PROV(fewer_where_one_reads, FI_MSG | FI_TAGGED, RELIABLE)
{
	static const enum fi_threading level[] = { FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_ENDPOINT };
	unsigned long cnt[COUNT(level)];

	if (SANITIZED)
		SKIP("a sanitizer stands before the calls itself");
	for (size_t i = 0; i < COUNT(level); i++) {
		struct pair p;

		wanted = level[i];
		p = traffic_pair(t, .hints = ask_for_level);
		traffic_read_cnt = 1;
		count_locks(&p);
		cnt[i] = count_locks(&p);
		traffic_read_cnt = 16;
	}
	printf("# locks a message, entries read one by one: safe %.2f, fid %.2f, endpoint %.2f\n", (double) cnt[0] / (2 * MSGS),
	       (double) cnt[1] / (2 * MSGS), (double) cnt[2] / (2 * MSGS));
	for (size_t i = 1; i < COUNT(level); i++) {
		if (5 * cnt[i] > 4 * cnt[0])
			FAIL("%lu locks, FI_THREAD_SAFE takes %lu: a fifth at least is to be saved", cnt[i], cnt[0]);
	}
}

/* Two queues for the two directions: still one endpoint's. */
TEST_PROV(of_an_endpoint_with_two_queues, FI_MSG | FI_TAGGED, RDM_ONLY)
{
	enum { ROUNDS = 100 };
	struct pair p;
	unsigned long before, cnt;

	if (SANITIZED)
		SKIP("a sanitizer stands before the calls itself");
	wanted = FI_THREAD_COMPLETION;
	p = pair_open(t, .hints = ask_for_level);
	check_link(p.a, p.b);
	before = taken;
	for (int i = 0; i < ROUNDS; i++)
		check_link(p.a, p.b);
	cnt = taken - before;
	if (cnt)
		FAIL("%lu locks for %d messages, none is needed", cnt, ROUNDS);
}

/* ---- threads that have nothing in common but the domain ---- */

enum { THREADS = 2, ROUNDS = 2000 };

struct loner {
	pthread_t thread;
	struct side *side;
	unsigned long calls;		/* of the library, so far */
	const char *wrong;		/* NULL: all well. A thread must not fail a test by itself */
};

/* Messages to itself, one at a time, with no other calls than those of a data path. */
static void *keep_to_itself(void *arg)
{
	struct loner *l = arg;
	struct side *s = l->side;
	struct fi_cq_tagged_entry entry;
	double since = now_ms();
	uint32_t in, out;
	ssize_t ret;

	for (out = 0; out < ROUNDS; out++) {
		l->calls += 2;
		if (fi_recv(s->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL) ||
		    fi_send(s->ep, &out, sizeof(out), NULL, s->peer, NULL)) {
			l->wrong = "fi_recv or fi_send";
			return NULL;
		}
		for (int got = 0; got < 2; got += ret == 1) {
			ret = fi_cq_read(s->tx_cq, &entry, 1);
			l->calls++;
			if ((ret != 1 && ret != -FI_EAGAIN) || now_ms() - since > 60000.0 * run.slow) {
				l->wrong = ret == 1 || ret == -FI_EAGAIN ? "late" : "fi_cq_read";
				return NULL;
			}
		}
		if (in != out) {
			l->wrong = "another number came";
			return NULL;
		}
	}
	return NULL;
}

static const struct level_row loner_rows[] = {
	{ "safe", FI_THREAD_SAFE, false }, { "completion", FI_THREAD_COMPLETION, true },
};

/* Each thread has its own endpoint and its own queue, on one domain: nobody meets anybody. */
TEST_TABLE(of_a_queue_each, loner_rows, FI_MSG | FI_TAGGED, RDM_ONLY)
{
	const struct level_row *row = ROW(loner_rows);
	struct loner l[THREADS] = { 0 };
	unsigned long calls = 0, before_taken, before_met;
	unsigned int i;

	if (SANITIZED)
		SKIP("a sanitizer stands before the calls itself");
	wanted = row->threading;
	for (i = 0; i < THREADS; i++) {
		l[i].side = side_open(t, .one_cq = true, .hints = ask_for_level, .domain_of = i ? l[0].side : NULL);
		l[i].side->peer = side_insert(l[i].side, l[i].side);
		keep_to_itself(&l[i]);	/* what happens once */
		if (l[i].wrong)
			FAIL("endpoint %u: %s", i, l[i].wrong);
		l[i].calls = 0;
	}
	before_taken = taken;
	before_met = met;
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&l[i].thread, NULL, keep_to_itself, &l[i]));
	for (i = 0; i < THREADS; i++) {
		pthread_join(l[i].thread, NULL);
		calls += l[i].calls;
	}
	for (i = 0; i < THREADS; i++) {
		if (l[i].wrong)
			FAIL("thread %u: %s", i, l[i].wrong);
	}
	printf("# threading level %s: %lu calls by %d threads took %lu locks, of which another held %lu\n", row->name, calls,
	       THREADS, taken - before_taken, met - before_met);
	if (!row->lock_free && taken - before_taken < calls)
		FAIL("%s: %lu locks for %lu calls; one each is needed, or counting does not work", row->name,
		     taken - before_taken, calls);
	if (row->lock_free && (taken != before_taken || met != before_met))
		FAIL("%s: %lu locks for %lu calls, and %lu of them contended; none is needed", row->name,
		     taken - before_taken, calls, met - before_met);
}
