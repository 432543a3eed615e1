/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Of the progress engine: timers, what waits for the next pass (flushes), and that both wake who sleeps on it.
 */
#include "unit.h"

#include <poll.h>
#include "engine.h"

/* ---- timers ---- */

struct clockwork {
	struct fab_timer timer;
	unsigned fired;
	unsigned order;
	uint64_t again_ns;		/* 0: not again */
};
static unsigned fire_order;

static void clockwork_fire(struct fab_timer *timer)
{
	struct clockwork *clockwork = fab_container(timer, struct clockwork, timer);

	clockwork->fired++;
	clockwork->order = ++fire_order;
	if (clockwork->again_ns)
		fab_timer_start(&engine, timer, clockwork->timer.when_ns + clockwork->again_ns);
}

static void timers_fire_in_order_when_due(void **state)
{
	struct clockwork c[4] = { 0 };

	(void) state;
	spy_set_clock(1000);
	for (int i = 0; i < 4; i++)
		fab_timer_init(&c[i].timer, clockwork_fire);
	fire_order = 0;
	fab_timer_start(&engine, &c[0].timer, 1300);
	fab_timer_start(&engine, &c[1].timer, 1100);
	fab_timer_start(&engine, &c[2].timer, 1200);
	fab_timer_start(&engine, &c[3].timer, 1100);
	assert_false(fab_engine_run(&engine));
	spy_set_clock(1200);
	assert_true(fab_engine_run(&engine));
	assert_int_equal(c[1].order, 1);
	assert_int_equal(c[3].order, 2);
	assert_int_equal(c[2].order, 3);
	assert_int_equal(c[0].fired, 0);
	fab_timer_start(&engine, &c[0].timer, 5000);		/* moved */
	spy_set_clock(1300);
	assert_false(fab_engine_run(&engine));
	fab_timer_stop(&c[0].timer);
	fab_timer_stop(&c[0].timer);
	spy_set_clock(6000);
	assert_false(fab_engine_run(&engine));
	assert_int_equal(c[0].fired, 0);
}

static void timer_may_start_again_from_its_own_call(void **state)
{
	struct clockwork c = { .again_ns = 100 };

	(void) state;
	spy_set_clock(1000);
	fab_timer_init(&c.timer, clockwork_fire);
	fab_timer_start(&engine, &c.timer, 1100);
	spy_set_clock(1350);
	fab_engine_run(&engine);
	assert_int_equal(c.fired, 3);		/* 1100, 1200, 1300 */
	assert_int_equal(c.timer.when_ns, 1400);
	fab_timer_stop(&c.timer);
}

/* ---- flush ---- */

struct outbox {
	struct fab_flush flush;
	unsigned cnt;
	bool again;
};

static void outbox_flush(struct fab_flush *flush)
{
	struct outbox *outbox = fab_container(flush, struct outbox, flush);

	outbox->cnt++;
	if (outbox->again)
		fab_engine_flush_later(&engine, flush);
}

static void flush_happens_once_in_the_next_pass(void **state)
{
	struct outbox a = { 0 }, b = { 0 };

	(void) state;
	fab_flush_init(&a.flush, outbox_flush);
	fab_flush_init(&b.flush, outbox_flush);
	spy_reset();
	fab_engine_flush_later(&engine, &a.flush);
	fab_engine_flush_later(&engine, &a.flush);
	fab_engine_flush_later(&engine, &b.flush);
	fab_flush_cancel(&b.flush);
	fab_flush_cancel(&b.flush);
	assert_int_equal(spy.all, 0);
	fab_engine_run(&engine);
	fab_engine_run(&engine);
	assert_int_equal(a.cnt, 1);
	assert_int_equal(b.cnt, 0);
}

static void flush_queued_while_flushing_waits_for_the_next_time(void **state)
{
	struct outbox a = { .again = true };

	(void) state;
	fab_flush_init(&a.flush, outbox_flush);
	fab_engine_flush_later(&engine, &a.flush);
	fab_engine_flush(&engine);
	assert_int_equal(a.cnt, 1);
	fab_engine_flush(&engine);
	assert_int_equal(a.cnt, 2);
	fab_flush_cancel(&a.flush);
}

/* ---- sleepers ---- */

static bool epfd_readable(void)
{
	struct pollfd pollfd = { .fd = engine.epfd, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

/* As above, but gives the kernel's timer time to go off. */
static bool epfd_becomes_readable(void)
{
	struct pollfd pollfd = { .fd = engine.epfd, .events = POLLIN };

	return poll(&pollfd, 1, 10000) == 1;
}

static void flush_wakes_a_watcher_and_the_pass_takes_it_back(void **state)
{
	struct outbox a = { 0 };

	(void) state;
	fab_flush_init(&a.flush, outbox_flush);
	fab_engine_watch(&engine);
	fab_engine_prepare_sleep(&engine);
	assert_false(epfd_readable());
	fab_engine_flush_later(&engine, &a.flush);
	assert_true(epfd_becomes_readable());
	fab_engine_run(&engine);
	assert_int_equal(a.cnt, 1);
	assert_false(epfd_readable());
	fab_engine_unwatch(&engine);
}

static void timer_wakes_a_watcher(void **state)
{
	struct clockwork c = { 0 }, later = { 0 };

	(void) state;
	fab_timer_init(&c.timer, clockwork_fire);
	fab_timer_init(&later.timer, clockwork_fire);
	fab_timer_start(&engine, &later.timer, UINT64_MAX / 2);
	fab_engine_watch(&engine);
	fab_engine_prepare_sleep(&engine);
	assert_false(epfd_readable());
	fab_timer_start(&engine, &c.timer, 1);		/* while asleep: long due */
	assert_true(epfd_becomes_readable());
	assert_true(fab_engine_run(&engine));
	assert_int_equal(c.fired, 1);
	assert_false(epfd_readable());
	fab_engine_unwatch(&engine);
	fab_timer_stop(&later.timer);
}

/* A timer that was stopped after the alarm was set for it must not leave epfd readable for good. */
static void alarm_of_a_stopped_timer_goes_away(void **state)
{
	struct clockwork c = { 0 };

	(void) state;
	fab_timer_init(&c.timer, clockwork_fire);
	fab_engine_watch(&engine);
	fab_timer_start(&engine, &c.timer, 1);
	fab_timer_stop(&c.timer);
	assert_true(epfd_becomes_readable());
	fab_engine_last_look(&engine);
	assert_false(epfd_readable());
	assert_int_equal(c.fired, 0);
	fab_engine_unwatch(&engine);
}

static void nobody_watching_costs_no_alarm(void **state)
{
	struct clockwork c = { 0 };
	struct outbox a = { 0 };

	(void) state;
	fab_timer_init(&c.timer, clockwork_fire);
	fab_flush_init(&a.flush, outbox_flush);
	spy_reset();
	fab_timer_start(&engine, &c.timer, UINT64_MAX / 2);
	fab_engine_flush_later(&engine, &a.flush);
	fab_engine_run(&engine);
	assert_int_equal(spy.timer, 0);
	fab_timer_stop(&c.timer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(timers_fire_in_order_when_due),
		TEST(timer_may_start_again_from_its_own_call),
		TEST(flush_happens_once_in_the_next_pass),
		TEST(flush_queued_while_flushing_waits_for_the_next_time),
		TEST(flush_wakes_a_watcher_and_the_pass_takes_it_back),
		TEST(timer_wakes_a_watcher),
		TEST(alarm_of_a_stopped_timer_goes_away),
		TEST(nobody_watching_costs_no_alarm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
