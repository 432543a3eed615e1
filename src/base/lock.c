/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The four kinds of struct fab_lock, each a table of operations. lock.h says how they work. The thread that has the
 * mutex is noted in fab_lock.owner, for fab_lock_held().
 */
#include "base/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include "base/clock.h"

#define VISITS		256		/* an owned lock that others acquire so many times ... */
#define VISITS_NS	256000000	/* ... within this time becomes a mutex */
#define YIELDS		64		/* a thread that waits yields so many times, then it sleeps */
#define NAP_NS		50000
#define BARRIER_PAGE	4096		/* bytes; the kernel rounds them up to a page */
#define CPUS		8192		/* the most that Linux supports */
#define ULONG_BITS	(sizeof(long) * CHAR_BIT)

static void set_owner(struct fab_lock *lock, pthread_t owner)
{
	__atomic_store_n(&lock->owner, owner, __ATOMIC_RELAXED);
}

static void nothing(struct fab_lock *lock)
{
	(void) lock;
}

static bool none_held(const struct fab_lock *lock)
{
	(void) lock;
	return true;
}

static bool mutex_held(const struct fab_lock *lock)
{
	return __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) == pthread_self();
}

static void mutex_lock(struct fab_lock *lock)
{
	if (pthread_mutex_trylock(&lock->mutex)) {
		__atomic_add_fetch(&lock->waiter_cnt, 1, __ATOMIC_RELAXED);
		pthread_mutex_lock(&lock->mutex);
		__atomic_sub_fetch(&lock->waiter_cnt, 1, __ATOMIC_RELAXED);
	}
	set_owner(lock, pthread_self());
}

static void mutex_unlock(struct fab_lock *lock)
{
	set_owner(lock, 0);
	pthread_mutex_unlock(&lock->mutex);
}

/* One step of waiting for another thread, which may need this CPU. *round starts at 0. The first YIELDS steps yield, to
 * threads of the same priority; later ones sleep, so that threads of lower priority run, too. */
static void stand_aside(unsigned *round)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	if ((*round)++ < YIELDS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

/* Wait until no thread waits for the lock, which the caller does not hold. */
static void let_waiters_in(struct fab_lock *lock)
{
	unsigned round = 0;

	while (__atomic_load_n(&lock->waiter_cnt, __ATOMIC_RELAXED))
		stand_aside(&round);
}

static void mutex_yield(struct fab_lock *lock)
{
	mutex_unlock(lock);
	let_waiters_in(lock);
	mutex_lock(lock);
}

/* ---- a barrier in every thread ---- */

static long membarrier(int cmd)
{
	return syscall(SYS_membarrier, cmd, 0, 0);
}

/* membarrier(2) works. It becomes false when the kernel refuses a call that worked before (a seccomp filter was
 * installed); from then on each lock that needs a barrier becomes a mutex, and new locks are mutexes. */
static _Atomic bool barrier_there;
static pthread_mutex_t by_hand = PTHREAD_MUTEX_INITIALIZER;	/* held for a barrier without membarrier(2) */
static char *barrier_page;		/* an anonymous page, only for mprotect(2); NULL: it could not be mapped */

static void barrier_init(void)
{
	void *page = mmap(NULL, BARRIER_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	barrier_page = page == MAP_FAILED ? NULL : page;
	barrier_there = !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
			!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

/* True if mprotect(2), when it makes a page read-only, interrupts every CPU that runs a thread of this process. On x86
 * the kernel flushes TLBs of other CPUs by interrupts, and an interrupt is a full barrier. CPUs that flush the TLBs of
 * others by an instruction (AMD's INVLPGB), and other architectures, get no interrupts. */
static bool is_page_a_barrier(void)
{
#ifdef __x86_64__
	unsigned eax, ebx = 0, ecx, edx;

	return barrier_page && !(__get_cpuid(0x80000008, &eax, &ebx, &ecx, &edx) && (ebx & 1u << 3));
#else
	return false;
#endif
}

static bool barrier_by_page(void)
{
	if (!is_page_a_barrier())
		return false;
	/* the kernel flushes TLBs only for a page that has been written to */
	if (mprotect(barrier_page, BARRIER_PAGE, PROT_READ | PROT_WRITE))
		return false;
	(*(volatile char *) barrier_page)++;
	return !mprotect(barrier_page, BARRIER_PAGE, PROT_READ);
}

/* Run this thread on every CPU that it may run on. The scheduler took the thread that ran there off the CPU for that,
 * and a context switch is a full barrier. */
static bool barrier_by_cpus(void)
{
	unsigned long before[CPUS / ULONG_BITS] = { 0 }, one[CPUS / ULONG_BITS] = { 0 };
	bool moved = !sched_getaffinity(0, sizeof(before), (cpu_set_t *) before);

	for (unsigned cpu = 0; moved && cpu < CPUS; cpu++) {
		one[cpu / ULONG_BITS] = 1ul << cpu % ULONG_BITS;
		/* EINVAL: there is no such CPU, or it is not for this process */
		moved = !sched_setaffinity(0, sizeof(one), (cpu_set_t *) one) || errno == EINVAL;
		one[cpu / ULONG_BITS] = 0;
	}
	sched_setaffinity(0, sizeof(before), (cpu_set_t *) before);
	return moved;
}

/* Every thread of the process has passed a full barrier when this returns; it does not return before. The mutex of a
 * lock is held, and that lock has to become a mutex for good if barrier_there is false afterwards. */
static void barrier_all(void)
{
	unsigned round = 0;

	if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return;
	/* EPERM also means that the process is not registered, for instance after an exec */
	if (errno == EPERM && !membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
	    !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return;
	atomic_store(&barrier_there, false);
	pthread_mutex_lock(&by_hand);
	while (!barrier_by_page() && !barrier_by_cpus())
		stand_aside(&round);
	pthread_mutex_unlock(&by_hand);
}

/* ---- biased ---- */

/* Set *barred and wait until *inside is false. Nobody enters until *barred is false again. Mutex held. */
static void bar(_Atomic bool *barred, _Atomic bool *inside)
{
	unsigned round = 0;

	atomic_store_explicit(barred, true, memory_order_relaxed);
	barrier_all();
	while (atomic_load_explicit(inside, memory_order_acquire))
		stand_aside(&round);
}

static void biased_lock(struct fab_lock *lock)
{
	mutex_lock(lock);
	if (!lock->inflated) {
		bar(&lock->barred, &lock->inside);
		lock->inflated = !atomic_load_explicit(&barrier_there, memory_order_relaxed);
	}
	lock->by_mutex = true;
	if (lock->lead)
		fab_lock_acquire(lock->lead);
}

static void biased_enter(struct fab_lock *lock)
{
	atomic_store_explicit(&lock->inside, false, memory_order_release);
	biased_lock(lock);
}

static void biased_unlock(struct fab_lock *lock)
{
	if (lock->lead)
		fab_lock_release(lock->lead);
	lock->by_mutex = false;
	if (!lock->inflated)
		atomic_store_explicit(&lock->barred, false, memory_order_release);
	mutex_unlock(lock);
}

static bool biased_held(const struct fab_lock *lock)
{
	return atomic_load_explicit(&lock->inside, memory_order_relaxed) || mutex_held(lock) ||
	       (lock->lead && fab_lock_held(lock->lead));
}

static void biased_yield(struct fab_lock *lock)
{
	fab_lock_release(lock);
	let_waiters_in(lock);
	biased_lock(lock);
}

/*
 * ---- owned ----
 *
 * A thread may read that it is the owner, be preempted before it sets its `inside` flag, and continue when other
 * threads have had the lock in between. Either it set the flag before their memory barrier, and they wait for it. Or it
 * then reads `barred` as true. Or it reads `barred` as false because one of them released the lock: it acquires that
 * release, so it sees that the owner is now another thread, and does not enter.
 *
 * When an owner ends, the C library may give its pthread_t to a new thread, which is then taken for the owner. That is
 * harmless: a pthread_t is an address in the thread's stack, and the C library orders the reuse of that memory after
 * everything that the old thread did. After a fork() the only thread of the child has the pthread_t of the thread that
 * forked, and owns what that one owned. If another thread owned the lock and was inside, the lock stays held for ever
 * in the child, as a mutex does.
 */

static unsigned owner_now(const struct fab_lock *lock)
{
	return atomic_load_explicit(&lock->owners.now, memory_order_acquire);
}

/* Enter as the owner, without the mutex. False: the calling thread is not the owner, or the owner may not enter. */
static inline bool owner_comes(struct fab_lock *lock)
{
	struct fab_lock_owners *owners = &lock->owners;
	unsigned now = owner_now(lock);

	if (owners->thread[now] != pthread_self())
		return false;
	atomic_store_explicit(&owners->inside[now], true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);	/* as in fab_lock_enter() */
	if (__builtin_expect(atomic_load_explicit(&owners->barred, memory_order_acquire), 0) ||
	    __builtin_expect(owner_now(lock) != now, 0)) {
		atomic_store_explicit(&owners->inside[now], false, memory_order_release);
		return false;
	}
	owners->entered = true;
	return true;
}

/* Make the calling thread the owner at index now; FAB_LOCK_OWNERS + 1: no thread ever owns the lock again. Mutex held,
 * nobody else inside. */
static void set_owner_now(struct fab_lock *lock, unsigned now)
{
	if (now <= FAB_LOCK_OWNERS)
		lock->owners.thread[now] = pthread_self();
	atomic_store_explicit(&lock->owners.now, now, memory_order_release);
}

static void nobody_owns(struct fab_lock *lock)
{
	set_owner_now(lock, FAB_LOCK_OWNERS + 1);
}

/* Count that another thread acquired the lock from an owner. True if that happens so often that a mutex is better.
 * Mutex held. */
static bool visited_often(struct fab_lock_owners *owners)
{
	uint64_t before = owners->visits_ns;

	if (owners->visit_cnt++ % VISITS)
		return false;
	owners->visits_ns = fab_now_ns();
	return owners->visit_cnt > 1 && owners->visits_ns - before < VISITS_NS;
}

/* Take the lock by its mutex. True if another thread was the owner and had to be kept out. */
static bool take_owned(struct fab_lock *lock)
{
	struct fab_lock_owners *owners = &lock->owners;
	unsigned now;
	bool stop;

	mutex_lock(lock);
	now = owner_now(lock);
	stop = owners->thread[now] && owners->thread[now] != pthread_self();
	if (stop)
		bar(&owners->barred, &owners->inside[now]);
	owners->entered = false;
	if (!atomic_load_explicit(&barrier_there, memory_order_relaxed))
		nobody_owns(lock);
	return stop;
}

static void owned_lock(struct fab_lock *lock)
{
	if (!owner_comes(lock) && take_owned(lock) && visited_often(&lock->owners))
		nobody_owns(lock);
}

static void owned_enter(struct fab_lock *lock)
{
	unsigned now;

	if (owner_comes(lock))
		return;
	take_owned(lock);
	now = owner_now(lock);
	if (now <= FAB_LOCK_OWNERS && lock->owners.thread[now] != pthread_self())
		set_owner_now(lock, now + 1);
}

static void owned_unlock(struct fab_lock *lock)
{
	struct fab_lock_owners *owners = &lock->owners;

	if (owners->entered) {
		atomic_store_explicit(&owners->inside[owner_now(lock)], false, memory_order_release);
		return;
	}
	atomic_store_explicit(&owners->barred, false, memory_order_release);
	mutex_unlock(lock);
}

static bool owned_held(const struct fab_lock *lock)
{
	unsigned now = owner_now(lock);

	return (lock->owners.thread[now] == pthread_self() &&
		atomic_load_explicit(&lock->owners.inside[now], memory_order_relaxed)) || mutex_held(lock);
}

static void owned_yield(struct fab_lock *lock)
{
	owned_unlock(lock);
	let_waiters_in(lock);
	take_owned(lock);
}

static const struct fab_lock_ops none_ops = {
	.lock = nothing,
	.enter = nothing,
	.unlock = nothing,
	.held = none_held,
	.yield = nothing,
};

static const struct fab_lock_ops mutex_ops = {
	.lock = mutex_lock,
	.enter = mutex_lock,
	.unlock = mutex_unlock,
	.held = mutex_held,
	.yield = mutex_yield,
};

static const struct fab_lock_ops biased_ops = {
	.lock = biased_lock,
	.enter = biased_enter,
	.unlock = biased_unlock,
	.held = biased_held,
	.yield = biased_yield,
};

static const struct fab_lock_ops owned_ops = {
	.lock = owned_lock,
	.enter = owned_enter,
	.unlock = owned_unlock,
	.held = owned_held,
	.yield = owned_yield,
};

const struct fab_lock_ops *fab_lock_kinds[] = {
	[FAB_LOCK_NONE] = &none_ops,
	[FAB_LOCK_MUTEX] = &mutex_ops,
	[FAB_LOCK_BIASED] = &biased_ops,
	[FAB_LOCK_OWNED] = &owned_ops,
};

static void set_kind(struct fab_lock *lock, enum fab_lock_kind kind)
{
	lock->ops = fab_lock_kinds[kind];
	lock->by_mutex = kind == FAB_LOCK_MUTEX || kind == FAB_LOCK_OWNED;
	atomic_init(&lock->barred, lock->by_mutex);
}

/* Make it a biased lock that data calls never enter: as good as a mutex, and it can have a lead. */
static void set_inflated(struct fab_lock *lock)
{
	set_kind(lock, FAB_LOCK_BIASED);
	lock->inflated = true;
	atomic_init(&lock->barred, true);
}

void fab_lock_init(struct fab_lock *lock, enum fab_lock_kind kind)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	bool can_bar = true;

	if (kind == FAB_LOCK_BIASED || kind == FAB_LOCK_OWNED) {
		pthread_once(&once, barrier_init);
		can_bar = atomic_load(&barrier_there);
	}
	pthread_mutex_init(&lock->mutex, NULL);
	set_owner(lock, 0);
	lock->waiter_cnt = 0;
	atomic_init(&lock->inside, false);
	lock->inflated = false;
	lock->lead = NULL;
	memset(&lock->owners, 0, sizeof(lock->owners));
	if (can_bar)
		set_kind(lock, kind);
	else if (kind == FAB_LOCK_OWNED)
		set_kind(lock, FAB_LOCK_MUTEX);
	else
		set_inflated(lock);
}

bool fab_lock_try_acquire(struct fab_lock *lock)
{
	if (lock->ops != fab_lock_kinds[FAB_LOCK_MUTEX] || pthread_mutex_trylock(&lock->mutex))
		return false;
	set_owner(lock, pthread_self());
	return true;
}

void fab_lock_wish(struct fab_lock *lock, bool wish)
{
	__atomic_add_fetch(&lock->waiter_cnt, wish ? 1 : -1, __ATOMIC_RELAXED);
}

void fab_lock_forget_waiters(struct fab_lock *lock)
{
	__atomic_store_n(&lock->waiter_cnt, 0, __ATOMIC_RELAXED);
}

void fab_lock_inflate(struct fab_lock *lock)
{
	if (lock->ops == &none_ops) {
		set_inflated(lock);
		return;
	}
	if (lock->ops == &owned_ops) {
		take_owned(lock);
		nobody_owns(lock);
		owned_unlock(lock);
	}
	if (lock->ops == &biased_ops) {
		biased_lock(lock);
		lock->inflated = true;
		biased_unlock(lock);
	}
}

void fab_lock_lead(struct fab_lock *lock, struct fab_lock *lead)
{
	fab_lock_inflate(lock);
	mutex_lock(lock);
	lock->lead = lead;
	mutex_unlock(lock);
}

void fab_lock_fini(struct fab_lock *lock)
{
	pthread_mutex_destroy(&lock->mutex);
	lock->ops = NULL;
}
