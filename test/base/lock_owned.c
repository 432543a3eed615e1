/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * FAB_LOCK_OWNED of base/lock.h: what its owner does without a mutex, and how it gets another; and of biased locks,
 * too, what becomes of them where the kernel takes membarrier(2) away.
 */
#include "base/unit.h"

#include "base/clock.h"
#include "base/lock.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 400, ADDS = 30, VISITORS = 1000 };

static struct fab_lock lock;
static int counter;		/* guarded by the lock */
static _Atomic int unheld;	/* times that somebody was inside and was told not to hold it */

static void owned_init(void)
{
	fab_lock_init(&lock, FAB_LOCK_OWNED);
	counter = 0;
	atomic_store(&unheld, 0);
	if (lock.ops != fab_lock_kinds[FAB_LOCK_OWNED])
		unit_skip("no membarrier(2) here: an owned lock is a mutex");
}

static void owned_fini(void)
{
	assert_false(fab_lock_held(&lock));
	assert_int_equal(atomic_load(&unheld), 0);
	fab_lock_fini(&lock);
}

static unsigned owner_now(void)
{
	return atomic_load(&lock.owners.now);
}

static void add_and_release(void)
{
	atomic_fetch_add(&unheld, !fab_lock_held(&lock));
	counter++;
	fab_lock_release(&lock);
}

static void enter_once(void)
{
	fab_lock_enter(&lock);
	add_and_release();
}

static void acquire_once(void)
{
	fab_lock_acquire(&lock);
	add_and_release();
}

static void *enters(void *arg)
{
	enter_once();
	return arg;
}

static pthread_t begin(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fn, arg), 0);
	return thread;
}

static void end(pthread_t thread)
{
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Somebody has the mutex, for ever as far as we know: the owner does not see that, nor does anybody else own it. */
static void the_owner_takes_no_mutex(void **state)
{
	(void) state;
	owned_init();
	assert_false(fab_lock_held(&lock));
	enter_once();
	assert_int_equal(owner_now(), 1);
	assert_int_equal(pthread_mutex_lock(&lock.mutex), 0);
	enter_once();
	acquire_once();
	assert_int_equal(pthread_mutex_unlock(&lock.mutex), 0);
	owned_fini();
}

/* Who only acquires before anybody has entered owns nothing. */
static void acquiring_makes_no_owner(void **state)
{
	(void) state;
	owned_init();
	acquire_once();
	acquire_once();
	assert_int_equal(owner_now(), 0);
	owned_fini();
}

/* ---- barriers ---- */

static _Atomic int barriers;

long __real_syscall(long nr, ...);
long __wrap_syscall(long nr, ...);

static int refused;		/* errno of membarrier(2) from now on; 0: it works */
static bool page_refused;	/* mprotect(2) does not */
static int moves;		/* sched_setaffinity(2) */
static _Atomic int naps;

/* membarrier(2), which takes three numbers, is all that there is here. */
long __wrap_syscall(long nr, ...)
{
	va_list ap;
	int cmd;

	assert_int_equal(nr, SYS_membarrier);
	va_start(ap, nr);
	cmd = va_arg(ap, int);
	va_end(ap);
	barriers += cmd == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
	errno = refused;
	return refused ? -1 : __real_syscall(nr, cmd, 0, 0);
}

int __real_mprotect(void *addr, size_t len, int prot);
int __wrap_mprotect(void *addr, size_t len, int prot);
int __wrap_mprotect(void *addr, size_t len, int prot)
{
	errno = EPERM;
	return page_refused ? -1 : __real_mprotect(addr, len, prot);
}

int __real_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
	moves++;
	return __real_sched_setaffinity(pid, size, set);
}

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	naps++;
	return __real_nanosleep(time, left);
}

static void *acquires(void *arg)
{
	acquire_once();
	return arg;
}

/* Whoever comes to what another owns has every thread pass a barrier: once. Nobody else does. */
static void others_have_a_barrier_passed(void **state)
{
	(void) state;
	owned_init();
	atomic_store(&barriers, 0);
	acquire_once();
	enter_once();
	enter_once();
	acquire_once();
	assert_int_equal(atomic_load(&barriers), 0);
	end(begin(acquires, NULL));
	assert_int_equal(atomic_load(&barriers), 1);
	end(begin(enters, NULL));
	assert_int_equal(atomic_load(&barriers), 2);
	fab_lock_inflate(&lock);
	atomic_store(&barriers, 0);
	enter_once();
	end(begin(enters, NULL));
	end(begin(acquires, NULL));
	assert_int_equal(atomic_load(&barriers), 0);
	owned_fini();
}

/* ---- from one to the next ---- */

static _Atomic int turn;

struct heir {
	pthread_t thread;
	int nr;
	unsigned owner;		/* after it has entered */
};

/* Enter when it is one's turn, and be there until all have had theirs. */
static void *inherits(void *arg)
{
	struct heir *heir = arg;

	while (atomic_load(&turn) != heir->nr)
		sched_yield();
	enter_once();
	enter_once();
	heir->owner = owner_now();
	atomic_fetch_add(&turn, 1);
	while (atomic_load(&turn) != FAB_LOCK_OWNERS + 2)
		sched_yield();
	return NULL;
}

/* Each that enters is the next owner, but only so many are; then there is none. */
static void owners_follow_each_other_so_often(void **state)
{
	struct heir heirs[FAB_LOCK_OWNERS + 2];

	(void) state;
	owned_init();
	atomic_store(&turn, 0);
	for (int i = 0; i < FAB_LOCK_OWNERS + 2; i++) {
		heirs[i].nr = i;
		heirs[i].thread = begin(inherits, &heirs[i]);
	}
	for (int i = 0; i < FAB_LOCK_OWNERS + 2; i++)
		end(heirs[i].thread);
	for (int i = 0; i < FAB_LOCK_OWNERS + 2; i++)
		assert_int_equal(heirs[i].owner, i < FAB_LOCK_OWNERS ? i + 1 : FAB_LOCK_OWNERS + 1);
	assert_int_equal(counter, 2 * (FAB_LOCK_OWNERS + 2));
	owned_fini();
}

/* One after the other, which may have one identity: no addition is lost (and ThreadSanitizer has nothing to say). */
static void owners_that_are_gone_do_no_harm(void **state)
{
	(void) state;
	owned_init();
	for (int i = 0; i < 20; i++) {
		end(begin(enters, NULL));
		enter_once();
	}
	assert_int_equal(counter, 40);
	owned_fini();
}

/* The child of a fork goes on with what its thread owned. */
static void a_fork_keeps_the_owner(void **state)
{
	int status = -1;
	pid_t pid;

	(void) state;
	owned_init();
	enter_once();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		fab_lock_enter(&lock);
		fab_lock_release(&lock);
		fab_lock_acquire(&lock);
		_exit(lock.owners.entered && fab_lock_held(&lock) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	owned_fini();
}

/* ---- one who has seen that he is the owner, and then is not ---- */

static _Atomic enum { PASS, STOP, STOPPED } gate;
static _Atomic bool got_in;
static __thread bool late;

pthread_t __real_pthread_self(void);
pthread_t __wrap_pthread_self(void);

/* What an owner is compared with: that is where the late one is held up. */
pthread_t __wrap_pthread_self(void)
{
	if (late && atomic_load(&gate) == STOP) {
		atomic_store(&gate, STOPPED);
		while (atomic_load(&gate) == STOPPED)
			sched_yield();
	}
	return __real_pthread_self();
}

static void *comes_late(void *arg)
{
	enter_once();
	late = true;
	atomic_store(&gate, STOP);
	fab_lock_enter(&lock);
	atomic_store(&got_in, true);
	add_and_release();
	return arg;
}

/* He waits for the new owner, who is inside, and does not come in with him. */
static void a_late_owner_waits(void **state)
{
	pthread_t thread;

	(void) state;
	owned_init();
	atomic_store(&got_in, false);
	thread = begin(comes_late, NULL);
	while (atomic_load(&gate) != STOPPED)
		sched_yield();
	enter_once();
	assert_int_equal(owner_now(), 2);
	fab_lock_enter(&lock);
	assert_true(lock.owners.entered);
	atomic_store(&gate, PASS);
	/* he comes to the mutex, which is free: he bars the way, and waits until we are outside */
	while (!atomic_load(&lock.owners.barred) && !atomic_load(&got_in))
		sched_yield();
	assert_false(atomic_load(&got_in));
	add_and_release();
	end(thread);
	assert_int_equal(counter, 4);
	owned_fini();
}

/* ---- visitors ---- */

static uint64_t fake_ns;

static uint64_t fake_now(void)
{
	return fake_ns;
}

static uint64_t fake_random(void)
{
	return 42;
}

struct visits {
	uint64_t apart_ns;	/* by the clock */
	unsigned owner;		/* that there is afterwards */
};

static void *visits(void *arg)
{
	struct visits *v = arg;

	for (int i = 0; i < VISITORS; i++) {
		fake_ns += v->apart_ns;
		acquire_once();
	}
	return NULL;
}

/* Others who acquire it leave it to the owner, unless they come more than a thousand times a second. */
static void who_visits_too_often_ends_it(void **state)
{
	static const struct fab_clock_ops fake = { fake_now, fake_random };
	const struct fab_clock_ops *real = fab_clock;
	struct visits rows[] = { { 1100000, 1 }, { 900000, FAB_LOCK_OWNERS + 1 } };

	(void) state;
	fab_clock = &fake;
	for (int i = 0; i < 2; i++) {
		owned_init();
		enter_once();
		end(begin(visits, &rows[i]));
		assert_int_equal(owner_now(), rows[i].owner);
		enter_once();
		assert_int_equal(counter, VISITORS + 2);
		owned_fini();
	}
	fab_clock = real;
}

/* ---- all at once ---- */

static pthread_barrier_t meet;

static void *adds(void *arg)
{
	const int *nr = arg;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&meet);
		for (int i = 0; i < ADDS; i++) {
			if (*nr == THREADS - 1 && i % 2)
				acquire_once();
			else
				enter_once();
			if (i % 8 == *nr)
				sched_yield();
		}
		pthread_barrier_wait(&meet);
	}
	return NULL;
}

/* Through all owners, and on when there is none, many times: they exclude each other. In every other round somebody
 * says meanwhile that it is to be a mutex. */
static void owners_and_others_exclude(void **state)
{
	static int nr[THREADS] = { 0, 1, 2 };
	pthread_t threads[THREADS];

	(void) state;
	owned_init();
	owned_fini();
	pthread_barrier_init(&meet, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		threads[i] = begin(adds, &nr[i]);
	for (int round = 0; round < ROUNDS; round++) {
		owned_init();
		pthread_barrier_wait(&meet);
		if (round % 2)
			fab_lock_inflate(&lock);
		pthread_barrier_wait(&meet);
		assert_int_equal(counter, THREADS * ADDS);
		owned_fini();
	}
	for (int i = 0; i < THREADS; i++)
		end(threads[i]);
	pthread_barrier_destroy(&meet);
}

/* ---- without membarrier(2) ---- */

static const struct {
	enum fab_lock_kind kind;
	int refused;
	bool page_refused;
} sandboxes[] = {
	{ FAB_LOCK_BIASED, EPERM, false }, { FAB_LOCK_BIASED, ENOSYS, false }, { FAB_LOCK_BIASED, EACCES, true },
	{ FAB_LOCK_OWNED, EPERM, false }, { FAB_LOCK_OWNED, ENOSYS, true },
};

static _Atomic bool entering;

static void *enters_often(void *arg)
{
	for (int i = 0; i < 100 * VISITORS; i++) {
		enter_once();
		entering = true;
	}
	return arg;
}

/* In a process of its own, since it never gets membarrier(2) back. What is wrong with the lock, as text. */
static const char *use_in_sandbox(size_t row)
{
	pthread_t thread;

	fab_lock_init(&lock, sandboxes[row].kind);
	counter = 0;
	thread = begin(enters_often, NULL);
	while (!entering)
		sched_yield();
	refused = sandboxes[row].refused;
	page_refused = sandboxes[row].page_refused;
	for (int i = 0; i < VISITORS; i++)
		acquire_once();
	end(thread);
	if (counter != 101 * VISITORS || unheld)
		return "it does not exclude";
	if (sandboxes[row].page_refused && !moves)
		return "no barrier was made";
	if (!(sandboxes[row].kind == FAB_LOCK_BIASED ? lock.inflated : owner_now() == FAB_LOCK_OWNERS + 1))
		return "it is no mutex in the end";
	fab_lock_init(&lock, sandboxes[row].kind);
	return lock.inflated || lock.ops == fab_lock_kinds[FAB_LOCK_MUTEX] ? NULL : "a new one is no mutex";
}

/* Whatever it answers: who acquires comes in, and excludes those who enter. */
static void a_sandbox_without_membarrier_leaves_a_mutex(void **state)
{
	(void) state;
	owned_init();
	owned_fini();
	for (size_t i = 0; i < sizeof(sandboxes) / sizeof(sandboxes[0]); i++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			const char *fault = use_in_sandbox(i);

			if (fault)
				fprintf(stderr, "row %zu: %s\n", i, fault);
			_exit(fault != NULL);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* ---- priorities ---- */

static void *stays_until_nap(void *arg)
{
	enter_once();		/* an owned lock: the first time is by the mutex */
	fab_lock_enter(&lock);
	entering = true;
	while (!naps)
		sched_yield();
	add_and_release();
	return arg;
}

/* Who waits for those inside leaves the processor to threads of lower priority, too, which sched_yield() does not. */
static void who_waits_sleeps_after_a_while(void **state)
{
	(void) state;
	for (int kind = FAB_LOCK_BIASED; kind <= FAB_LOCK_OWNED; kind++) {
		pthread_t thread;

		owned_init();
		fab_lock_init(&lock, kind);
		naps = 0;
		entering = false;
		thread = begin(stays_until_nap, NULL);
		while (!entering)
			sched_yield();
		acquire_once();
		end(thread);
		owned_fini();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_owner_takes_no_mutex),
		cmocka_unit_test(acquiring_makes_no_owner),
		cmocka_unit_test(others_have_a_barrier_passed),
		cmocka_unit_test(owners_follow_each_other_so_often),
		cmocka_unit_test(owners_that_are_gone_do_no_harm),
		cmocka_unit_test(a_fork_keeps_the_owner),
		cmocka_unit_test(a_late_owner_waits),
		cmocka_unit_test(who_visits_too_often_ends_it),
		cmocka_unit_test(owners_and_others_exclude),
		cmocka_unit_test(a_sandbox_without_membarrier_leaves_a_mutex),
		cmocka_unit_test(who_waits_sleeps_after_a_while),
	};

	return cmocka_run_group_tests_name("base/lock_owned", tests, NULL, NULL);
}
