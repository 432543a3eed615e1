/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a threading level saves: how often a message takes a lock. Counted by standing before the calls of the library that
 * take one; it has no other way to take any.
 */
#include "traffic.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static unsigned long taken;		/* locks, by any thread of this program: the test has one */

#define EXPORTED __attribute__((visibility("default")))

/* The real one of the C library. */
#define REAL(name) ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

#define COUNTED(name, type)		\
EXPORTED int name(type *lock)		\
{					\
	static __typeof__(&name) real;	\
					\
	if (!real)			\
		real = REAL(name);	\
	taken++;			\
	return real(lock);		\
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
