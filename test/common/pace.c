/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * common/pace/pace.h: attempts to connect begin a few at a time, in the order in which they were asked for.
 */
#include "unit.h"

#include "common/pace/pace.h"
#include "engine.h"

#define SECOND	1000000000ULL

static uint32_t most;
static struct fab_turn turn[4];
static unsigned begun[4], begun_cnt;
static struct fab_pace pace;

static uint32_t young_max(void)
{
	return most;
}

static void begin(struct fab_turn *which)
{
	begun[begun_cnt++] = (unsigned) (which - turn);
}

static void start(uint32_t max)
{
	spy_set_clock(SECOND);
	most = max;
	begun_cnt = 0;
	fab_pace_init(&pace, &engine, young_max, begin);
	for (size_t i = 0; i < fab_countof(turn); i++)
		fab_turn_init(&turn[i]);
}

static void stop(void)
{
	for (size_t i = 0; i < fab_countof(turn); i++)
		fab_pace_leave(&pace, &turn[i]);
	fab_pace_stop(&pace);
}

static void further_attempts_wait_for_the_end_of_one(void **state)
{
	(void) state;
	start(1);
	assert_true(fab_pace_enter(&pace, &turn[0]));
	assert_false(fab_pace_enter(&pace, &turn[1]));
	assert_false(fab_pace_enter(&pace, &turn[2]));
	fab_engine_run(&engine);
	assert_int_equal(begun_cnt, 0);
	fab_pace_leave(&pace, &turn[0]);
	assert_false(fab_pace_has(&turn[0]));
	fab_engine_run(&engine);
	assert_int_equal(begun_cnt, 1);
	assert_int_equal(begun[0], 1);
	fab_pace_leave(&pace, &turn[2]);	/* while it waits */
	fab_pace_leave(&pace, &turn[1]);
	fab_engine_run(&engine);
	assert_int_equal(begun_cnt, 1);
	stop();
}

/* Also where the bound has grown meanwhile: nobody goes past those in line. */
static void nobody_goes_past_the_line(void **state)
{
	(void) state;
	start(1);
	assert_true(fab_pace_enter(&pace, &turn[0]));
	assert_false(fab_pace_enter(&pace, &turn[1]));
	most = 2;
	assert_false(fab_pace_enter(&pace, &turn[2]));
	spy_set_clock(SECOND + SECOND / 10);
	fab_engine_run(&engine);
	assert_int_equal(begun_cnt, 1);
	assert_int_equal(begun[0], 1);
	most = 3;
	spy_set_clock(SECOND + SECOND / 5);
	fab_engine_run(&engine);
	assert_int_equal(begun_cnt, 2);
	assert_int_equal(begun[1], 2);
	stop();
}

static void an_attempt_that_takes_long_holds_up_nobody(void **state)
{
	(void) state;
	start(1);
	assert_true(fab_pace_enter(&pace, &turn[0]));
	assert_false(fab_pace_enter(&pace, &turn[1]));
	spy_set_clock(SECOND * 2 - 1);
	fab_engine_run(&engine);
	assert_int_equal(begun_cnt, 0);
	spy_set_clock(SECOND * 2 + SECOND / 20);
	fab_engine_run(&engine);
	assert_int_equal(begun_cnt, 1);
	assert_int_equal(begun[0], 1);
	assert_false(fab_pace_has(&turn[0]));
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(further_attempts_wait_for_the_end_of_one, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_goes_past_the_line, setup, teardown),
		cmocka_unit_test_setup_teardown(an_attempt_that_takes_long_holds_up_nobody, setup, teardown),
	};

	return cmocka_run_group_tests_name("common/pace", tests, NULL, NULL);
}
