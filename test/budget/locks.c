/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a threading level saves: how often a message takes a lock. Counted by standing before the calls of the
 * library that take one; it has no other way to take any. How often a control call stops the other threads for one
 * (membarrier(2)) is counted in the same way. doc/decisions/levels.md says what each level takes, and why.
 */
#include "collective.h"
#include "traffic.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>

#include <rdma/fi_atomic.h>

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

static _Atomic unsigned long stops;		/* barriers that all threads had to pass */

EXPORTED long syscall(long nr, ...)
{
	long arg[6];
	va_list ap;

	va_start(ap, nr);
	for (size_t i = 0; i < COUNT(arg); i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	stops += nr == SYS_membarrier;
	return REAL(syscall)(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

struct level_row {
	const char *name;
	enum fi_threading threading;
	bool lock_free;
};

static const struct level_row level_rows[] = {
	{ "safe", FI_THREAD_SAFE, false },
	{ "fid", FI_THREAD_FID, false },
	{ "endpoint", FI_THREAD_ENDPOINT, true },
	{ "completion", FI_THREAD_COMPLETION, true },
	{ "domain", FI_THREAD_DOMAIN, true },
};

static enum fi_threading wanted;

static void ask_for_level(struct fi_info *hints)
{
	traffic_manual(hints);
	hints->domain_attr->threading = wanted;
}

/* The same, and control calls are serialised like data calls. */
static void ask_for_unified(struct fi_info *hints)
{
	ask_for_level(hints);
	hints->domain_attr->control_progress = FI_PROGRESS_CONTROL_UNIFIED;
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

static unsigned long count_datagram_locks(struct pair *p)
{
	unsigned long before = taken;

	ping_pong(p, PLAIN, 8, MSGS / 2);
	stream(p, PLAIN, 8, 16, MSGS);
	return taken - before;
}

static void check_level(struct test *t, const struct level_row *row, unsigned long (*count)(struct pair *p))
{
	struct pair p;
	unsigned long cnt, barriers;

	if (SANITIZED)
		SKIP("a sanitizer stands before the calls itself");
	wanted = row->threading;
	p = traffic_pair(t, .hints = ask_for_level);
	count(&p);			/* what happens once */
	barriers = stops;
	cnt = count(&p);
	barriers = stops - barriers;
	printf("# threading level %s: %.2f locks a message\n", row->name, (double) cnt / (2 * MSGS));
	if (!row->lock_free && !cnt)
		FAIL("%s: no lock was seen; counting does not work", row->name);
	if (row->lock_free && cnt)
		FAIL("%s: %lu locks for %d messages, none is needed", row->name, cnt, 2 * MSGS);
	/* a data call that enters as a control call does, stops the thread whose lock it is */
	if (barriers)
		FAIL("%s: %lu times membarrier(2) for %d messages, none is needed", row->name, barriers, 2 * MSGS);
}

/* Where the application serialises its data calls, by domain or by completion, a message takes no lock; nor does it
 * where each endpoint is one thread's, and all are the same one's. */
TEST_TABLE(of_a_message, level_rows, FI_MSG | FI_TAGGED, RELIABLE)
{
	check_level(t, ROW(level_rows), count_locks);
}

/* The same of datagrams. */
TEST_TABLE(of_a_datagram, level_rows, FI_MSG, .types = BIT(FI_EP_DGRAM))
{
	check_level(t, ROW(level_rows), count_datagram_locks);
}

enum { BARRIERS = 100, MEMBERS = 2 };

/* All members call a barrier, again and again. */
static void run_barriers(struct side *const side[MEMBERS], struct fid_mc *const mc[MEMBERS])
{
	struct fi_cq_tagged_entry entry;

	for (int i = 0; i < BARRIERS; i++) {
		int left = MEMBERS;

		for (int m = 0; m < MEMBERS; m++)
			MUST(fi_barrier(side[m]->ep, fi_mc_addr(mc[m]), NULL));
		while (left) {
			for (int m = 0; m < MEMBERS; m++) {
				ssize_t ret = fi_cq_read(side[m]->tx_cq, &entry, 1);

				if (ret != -FI_EAGAIN)
					CHECK_EQ(ret, 1);
				left -= ret == 1;
			}
		}
	}
}

/* A collective stops no thread either: it is a data call, and a group's event queue, which anybody may read, makes the
 * lock a mutex. */
TEST_TABLE(of_a_collective, level_rows, COLL_CAPS, RDM_ONLY)
{
	struct side *side[MEMBERS];
	struct fid_mc *mc[MEMBERS];
	unsigned long before, locks;

	if (SANITIZED)
		SKIP("a sanitizer stands before the calls itself");
	wanted = ROW(level_rows)->threading;
	for (int m = 0; m < MEMBERS; m++)
		side[m] = side_open(t, .eq = true, .one_cq = true, .hints = ask_for_level);
	for (int m = 0; m < MEMBERS; m++) {
		for (int n = 0; n < MEMBERS; n++)
			CHECK_EQ(side_insert(side[m], side[n]), n);
	}
	for (int m = 0; m < MEMBERS; m++)
		mc[m] = coll_join_begin(side[m], coll_everyone, MEMBERS);
	for (int m = 0; m < MEMBERS; m++)
		coll_join_end(side[m], mc[m]);
	run_barriers(side, mc);
	before = stops;
	locks = taken;
	run_barriers(side, mc);
	printf("# threading level %s: %.2f locks a barrier\n", ROW(level_rows)->name,
	       (double) (taken - locks) / BARRIERS);
	if (stops - before)
		FAIL("%s: %lu times membarrier(2) for %d barriers, none is needed", ROW(level_rows)->name,
		     stops - before, BARRIERS);
}

/* FI_THREAD_FID has one thread at a time at a queue, which takes out more than it asked for when it has the lock: the
 * reads that follow take none, which counts where each asks for one entry. FI_THREAD_ENDPOINT promises that, too, and
 * one thread alone has no lock left. */
TEST_PROV(fewer_than_the_level_above, FI_MSG | FI_TAGGED, RELIABLE)
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
	printf("# locks a message, entries read one by one: safe %.2f, fid %.2f, endpoint %.2f\n",
	       (double) cnt[0] / (2 * MSGS), (double) cnt[1] / (2 * MSGS), (double) cnt[2] / (2 * MSGS));
	for (size_t i = 1; i < COUNT(level); i++) {
		if (5 * cnt[i] > 4 * cnt[i - 1])
			FAIL("%lu locks, the level above takes %lu: a fifth at least is to be saved", cnt[i],
			     cnt[i - 1]);
	}
}

/* ---- what is left between FI_THREAD_COMPLETION and FI_THREAD_DOMAIN ---- */

enum { ATOMICS_CNT = 100 };

/* Atomics on its own memory, one at a time. */
static void add_to_itself(struct side *s, const struct region *r)
{
	const uint64_t one = 1;
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	for (int i = 0; i < ATOMICS_CNT; i++) {
		MUST(fi_atomic(s->ep, &one, 1, NULL, s->peer, r->addr, r->key, FI_UINT64, FI_SUM, NULL));
		while ((ret = fi_cq_read(s->tx_cq, &entry, 1)) == -FI_EAGAIN)
			;
		CHECK_EQ(ret, 1);
	}
}

/* Several engines serve one domain: what peers do to its memory, and the end of a region, has to be agreed among them.
 * FI_THREAD_DOMAIN has one, so that an atomic takes no lock; the end of a region still stops the others once, as any
 * thread may close one, unless control calls are serialised, too (FI_PROGRESS_CONTROL_UNIFIED). */
TEST_PROV(of_atomics_and_regions, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, RDM_ONLY)
{
	static const struct {
		enum fi_threading level;
		void (*hints)(struct fi_info *hints);
	} row[] = {
		{ FI_THREAD_COMPLETION, ask_for_level }, { FI_THREAD_DOMAIN, ask_for_level },
		{ FI_THREAD_DOMAIN, ask_for_unified },
	};
	unsigned long locks[COUNT(row)], barriers[COUNT(row)];

	if (SANITIZED)
		SKIP("a sanitizer stands before the calls itself");
	for (size_t i = 0; i < COUNT(row); i++) {
		struct side *s;
		struct region r;
		unsigned long before;

		wanted = row[i].level;
		s = side_open(t, .one_cq = true, .hints = row[i].hints);
		s->peer = side_insert(s, s);
		r = region_open(s, NULL, 8, FI_REMOTE_WRITE);
		add_to_itself(s, &r);
		before = taken;
		add_to_itself(s, &r);
		locks[i] = taken - before;
		before = stops;
		close_now(t, &r.mr->fid);
		barriers[i] = stops - before;
		side_close(s);
	}
	printf("# completion: %.2f locks an atomic, %lu barriers a region closed; domain: %.2f and %lu; unified: %.2f "
	       "and %lu\n", (double) locks[0] / ATOMICS_CNT, barriers[0], (double) locks[1] / ATOMICS_CNT, barriers[1],
	       (double) locks[2] / ATOMICS_CNT, barriers[2]);
	if (locks[0] < ATOMICS_CNT || locks[0] > 2 * ATOMICS_CNT || barriers[0] > 1)
		FAIL("FI_THREAD_COMPLETION: %lu locks for %d atomics, %lu barriers for a region; one each is to be "
		     "expected", locks[0], ATOMICS_CNT, barriers[0]);
	if (locks[1] || barriers[1] > 1)
		FAIL("FI_THREAD_DOMAIN: %lu locks for %d atomics, %lu barriers for a region; none and one are needed",
		     locks[1], ATOMICS_CNT, barriers[1]);
	if (locks[2] || barriers[2])
		FAIL("FI_THREAD_DOMAIN, control unified: %lu locks for %d atomics, %lu barriers for a region; none is "
		     "needed", locks[2], ATOMICS_CNT, barriers[2]);
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

enum { THREADS = 2, TURNS = 4, ROUNDS = 1000 };

struct loner {
	pthread_t thread;
	struct side *side;
	unsigned int nr;
	unsigned long calls;		/* of the library, so far */
	const char *wrong;		/* NULL: all well. A thread must not fail a test by itself */
};

static pthread_barrier_t all_there;		/* the threads, and the one that counts */

/* Messages to itself, one at a time, with no other calls than those of a data path. */
static void keep_to_itself(struct loner *l, uint32_t rounds)
{
	struct side *s = l->side;
	struct fi_cq_tagged_entry entry;
	double since = now_ms();
	uint32_t in, out;
	ssize_t ret;

	for (out = 0; out < rounds && !l->wrong; out++) {
		l->calls += 2;
		if (fi_recv(s->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL) ||
		    fi_send(s->ep, &out, sizeof(out), NULL, s->peer, NULL)) {
			l->wrong = "fi_recv or fi_send";
			return;
		}
		for (int got = 0; got < 2; got += ret == 1) {
			ret = fi_cq_read(s->tx_cq, &entry, 1);
			l->calls++;
			if ((ret != 1 && ret != -FI_EAGAIN) || now_ms() - since > 60000.0 * run.slow) {
				l->wrong = ret == 1 || ret == -FI_EAGAIN ? "late" : "fi_cq_read";
				return;
			}
		}
		if (in != out)
			l->wrong = "another number came";
	}
}

/* First by turns, so that every engine that both use has seen both, then all at once. */
static void *lead_its_life(void *arg)
{
	struct loner *l = arg;

	for (unsigned int i = 0; i < TURNS * THREADS; i++) {
		if (i % THREADS == l->nr)
			keep_to_itself(l, 1);
		pthread_barrier_wait(&all_there);
	}
	l->calls = 0;
	pthread_barrier_wait(&all_there);
	keep_to_itself(l, ROUNDS);
	pthread_barrier_wait(&all_there);
	return NULL;
}

static const struct loner_row {
	const char *name;
	enum fi_threading threading;
	unsigned int least;		/* locks that ten calls take at the least; 0: none */
} loner_rows[] = {
	{ "safe", FI_THREAD_SAFE, 10 },
	{ "fid", FI_THREAD_FID, 5 },
	{ "endpoint", FI_THREAD_ENDPOINT, 5 },
	{ "completion", FI_THREAD_COMPLETION, 0 },
};

/* Each thread has its own endpoint and its own queue, on one domain: nobody meets anybody. */
TEST_TABLE(of_a_queue_each, loner_rows, FI_MSG | FI_TAGGED, RDM_ONLY)
{
	const struct loner_row *row = ROW(loner_rows);
	struct loner l[THREADS] = { 0 };
	unsigned long calls = 0, cnt, contended;
	unsigned int i;

	if (SANITIZED)
		SKIP("a sanitizer stands before the calls itself");
	wanted = row->threading;
	CHECK(!pthread_barrier_init(&all_there, NULL, THREADS + 1));
	for (i = 0; i < THREADS; i++) {
		l[i].nr = i;
		l[i].side = side_open(t, .one_cq = true, .hints = ask_for_level, .domain_of = i ? l[0].side : NULL);
		l[i].side->peer = side_insert(l[i].side, l[i].side);
		keep_to_itself(&l[i], 1);	/* what happens once */
	}
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&l[i].thread, NULL, lead_its_life, &l[i]));
	for (i = 0; i < TURNS * THREADS; i++)
		pthread_barrier_wait(&all_there);
	cnt = taken;
	contended = met;
	pthread_barrier_wait(&all_there);
	pthread_barrier_wait(&all_there);
	cnt = taken - cnt;
	contended = met - contended;
	for (i = 0; i < THREADS; i++) {
		pthread_join(l[i].thread, NULL);
		calls += l[i].calls;
	}
	pthread_barrier_destroy(&all_there);
	for (i = 0; i < THREADS; i++) {
		if (l[i].wrong)
			FAIL("thread %u: %s", i, l[i].wrong);
	}
	printf("# threading level %s: %lu messages, %lu calls by %d threads took %lu locks, another held %lu of them\n",
	       row->name, (unsigned long) THREADS * ROUNDS, calls, THREADS, cnt, contended);
	if (row->least && 10 * cnt < row->least * calls)
		FAIL("%s: %lu locks for %lu calls; at least %u of ten need one, or counting does not work", row->name,
		     cnt, calls, row->least);
	if (!row->least && (cnt || contended))
		FAIL("%s: %lu locks for %lu calls, and %lu of them contended; none is needed", row->name, cnt, calls,
		     contended);
}
