/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * base/lock.h, and the table of base/clock.h: what is chosen once, and what a test can put in its place.
 */
#include "base/unit.h"

#include "base/clock.h"
#include "base/lock.h"

#include <pthread.h>
#include <sched.h>

static struct fab_lock shared;
static int counter;
static int taken_cnt;
static const struct fab_lock_ops *real_mutex;

static void *add_up(void *arg)
{
	int i;

	for (i = 0; i < 10000; i++) {
		fab_lock_acquire(&shared);
		counter++;
		fab_lock_release(&shared);
	}
	return arg;
}

static void mutex_excludes(void **state)
{
	pthread_t threads[2];
	int i;

	(void) state;
	fab_lock_init(&shared, FAB_LOCK_MUTEX);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_up, NULL), 0);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(counter, 20000);
	fab_lock_fini(&shared);
}

static void *ask_held(void *arg)
{
	*(int *) arg = fab_lock_held(&shared);
	return NULL;
}

/* Held is a fact about the asking thread. */
static void mutex_knows_its_owner(void **state)
{
	pthread_t other;
	int held = -1;

	(void) state;
	fab_lock_init(&shared, FAB_LOCK_MUTEX);
	assert_false(fab_lock_held(&shared));
	fab_lock_acquire(&shared);
	assert_true(fab_lock_held(&shared));
	assert_int_equal(pthread_create(&other, NULL, ask_held, &held), 0);
	pthread_join(other, NULL);
	assert_int_equal(held, 0);
	fab_lock_release(&shared);
	assert_false(fab_lock_held(&shared));
	fab_lock_fini(&shared);
}

/* One data call at a time, of the lock at arg, which counts under the protection of `shared`. */
static void *enter_led(void *arg)
{
	for (int i = 0; i < 10000; i++) {
		fab_lock_enter(arg);
		counter++;
		fab_lock_release(arg);
	}
	return NULL;
}

/* Holders of locks with one lead, and of the lead itself, exclude each other. */
static void locks_with_one_lead_exclude(void **state)
{
	static const enum fab_lock_kind kinds[] = { FAB_LOCK_BIASED, FAB_LOCK_BIASED, FAB_LOCK_NONE };
	struct fab_lock led[3];
	pthread_t threads[4];

	(void) state;
	counter = 0;
	fab_lock_init(&shared, FAB_LOCK_MUTEX);
	for (int i = 0; i < 3; i++) {
		fab_lock_init(&led[i], kinds[i]);
		fab_lock_lead(&led[i], &shared);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, enter_led, &led[i]), 0);
	assert_int_equal(pthread_create(&threads[3], NULL, add_up, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(counter, 40000);
	fab_lock_acquire(&shared);
	assert_true(fab_lock_held(&led[0]));
	fab_lock_release(&shared);
	for (int i = 0; i < 3; i++)
		fab_lock_fini(&led[i]);
	fab_lock_fini(&shared);
}

static void *lead_by_shared(void *arg)
{
	fab_lock_lead(arg, &shared);
	return NULL;
}

/* A lock that was inflated may get a lead while another thread holds it, and is free afterwards. */
static void inflated_lock_gets_a_lead_while_held(void **state)
{
	static const enum fab_lock_kind kinds[] = { FAB_LOCK_BIASED, FAB_LOCK_NONE };
	struct fab_lock led;
	pthread_t other;

	(void) state;
	fab_lock_init(&shared, FAB_LOCK_MUTEX);
	for (int i = 0; i < 2; i++) {
		fab_lock_init(&led, kinds[i]);
		fab_lock_inflate(&led);
		fab_lock_acquire(&led);
		assert_int_equal(pthread_create(&other, NULL, lead_by_shared, &led), 0);
		while (!__atomic_load_n(&led.waiter_cnt, __ATOMIC_RELAXED))
			sched_yield();
		fab_lock_release(&led);
		pthread_join(other, NULL);
		fab_lock_acquire(&led);
		assert_true(fab_lock_held(&shared));
		fab_lock_release(&led);
		fab_lock_fini(&led);
	}
	fab_lock_fini(&shared);
}

static void *take_once(void *arg)
{
	fab_lock_acquire(&shared);
	*(int *) arg = 1;
	fab_lock_release(&shared);
	return NULL;
}

/* Who yields the lock has it back only when those who waited for it have had it. */
static void yield_lets_waiters_in(void **state)
{
	const enum fab_lock_kind *kind = *state;
	pthread_t other;
	int done;

	fab_lock_init(&shared, *kind);
	fab_lock_acquire(&shared);
	for (int round = 0; round < 100; round++) {
		done = 0;
		assert_int_equal(pthread_create(&other, NULL, take_once, &done), 0);
		while (!__atomic_load_n(&shared.waiter_cnt, __ATOMIC_RELAXED))
			sched_yield();
		fab_lock_yield(&shared);
		assert_int_equal(done, 1);
		pthread_join(other, NULL);
	}
	fab_lock_yield(&shared);
	assert_true(fab_lock_held(&shared));
	fab_lock_release(&shared);
	fab_lock_fini(&shared);
}

/* ---- biased ---- */

static void *enter_and_add(void *arg)
{
	for (int i = 0; i < 10000; i++) {
		fab_lock_enter(&shared);
		counter++;
		fab_lock_release(&shared);
	}
	return arg;
}

static bool biased_init(void)
{
	fab_lock_init(&shared, FAB_LOCK_BIASED);
	return shared.ops == fab_lock_kinds[FAB_LOCK_BIASED];
}

static void run_three(void *(*first)(void *arg), void *(*second)(void *arg), void *(*third)(void *arg))
{
	void *(*const fns[])(void *arg) = { first, second, third };
	pthread_t threads[3];

	counter = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fns[i], NULL), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(counter, 30000);
}

/* One thread enters, any number acquires. */
static void biased_excludes(void **state)
{
	(void) state;
	if (!biased_init())
		unit_skip("no membarrier(2) here: a biased lock is a mutex");
	run_three(enter_and_add, add_up, add_up);
	fab_lock_fini(&shared);
}

/* Once it is inflated any number may enter. */
static void inflated_excludes(void **state)
{
	(void) state;
	biased_init();
	fab_lock_enter(&shared);
	fab_lock_release(&shared);
	fab_lock_inflate(&shared);
	run_three(enter_and_add, enter_and_add, add_up);
	fab_lock_fini(&shared);
}

/* Somebody has the mutex, for ever as far as we know: who enters does not see that. */
static void entering_takes_no_mutex(void **state)
{
	(void) state;
	if (!biased_init())
		unit_skip("no membarrier(2) here: a biased lock is a mutex");
	assert_int_equal(pthread_mutex_lock(&shared.mutex), 0);
	fab_lock_enter(&shared);
	assert_true(fab_lock_held(&shared));
	fab_lock_release(&shared);
	assert_int_equal(pthread_mutex_unlock(&shared.mutex), 0);
	assert_false(fab_lock_held(&shared));
	fab_lock_fini(&shared);
}

/* ---- counted ---- */

static void counting_acquire(struct fab_lock *lock)
{
	taken_cnt++;
	real_mutex->lock(lock);
}

static void counting_release(struct fab_lock *lock)
{
	real_mutex->unlock(lock);
}

static bool counting_held(const struct fab_lock *lock)
{
	return real_mutex->held(lock);
}

/* A test can prove how often a mutex was taken; the lock that is none takes none. */
static void mutexes_can_be_counted(void **state)
{
	static const struct fab_lock_ops counting = {
		.lock = counting_acquire, .enter = counting_acquire, .unlock = counting_release, .held = counting_held,
	};
	struct fab_lock none, mutex;

	(void) state;
	real_mutex = fab_lock_kinds[FAB_LOCK_MUTEX];
	fab_lock_kinds[FAB_LOCK_MUTEX] = &counting;
	fab_lock_init(&none, FAB_LOCK_NONE);
	fab_lock_init(&mutex, FAB_LOCK_MUTEX);
	fab_lock_kinds[FAB_LOCK_MUTEX] = real_mutex;

	fab_lock_acquire(&none);
	assert_true(fab_lock_held(&none));
	fab_lock_acquire(&none);
	fab_lock_release(&none);
	assert_int_equal(taken_cnt, 0);
	fab_lock_acquire(&mutex);
	fab_lock_release(&mutex);
	assert_int_equal(taken_cnt, 1);
	fab_lock_fini(&mutex);
	fab_lock_fini(&none);
}

static uint64_t fake_now(void)
{
	return 5000000123;
}

static uint64_t fake_random(void)
{
	return 42;
}

static void clock_can_be_replaced(void **state)
{
	static const struct fab_clock_ops fake = { fake_now, fake_random };
	const struct fab_clock_ops *real = fab_clock;

	(void) state;
	fab_clock = &fake;
	assert_int_equal(fab_now_ns(), 5000000123);
	assert_int_equal(fab_now_ms(), 5000);
	assert_int_equal(fab_random64(), 42);
	fab_clock = real;
}

static void clock_goes_forward_and_chance_does_not_repeat(void **state)
{
	uint64_t before = fab_now_ns();

	(void) state;
	assert_true(fab_now_ns() >= before);
	assert_true(fab_random64() != fab_random64());
}

int main(void)
{
	static enum fab_lock_kind kinds[] = { FAB_LOCK_MUTEX, FAB_LOCK_BIASED };
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mutex_excludes),
		cmocka_unit_test(mutex_knows_its_owner),
		cmocka_unit_test_prestate(yield_lets_waiters_in, &kinds[0]),
		cmocka_unit_test_prestate(yield_lets_waiters_in, &kinds[1]),
		cmocka_unit_test(biased_excludes),
		cmocka_unit_test(inflated_excludes),
		cmocka_unit_test(locks_with_one_lead_exclude),
		cmocka_unit_test(inflated_lock_gets_a_lead_while_held),
		cmocka_unit_test(entering_takes_no_mutex),
		cmocka_unit_test(mutexes_can_be_counted),
		cmocka_unit_test(clock_can_be_replaced),
		cmocka_unit_test(clock_goes_forward_and_chance_does_not_repeat),
	};

	return cmocka_run_group_tests_name("base/lock", tests, NULL, NULL);
}
