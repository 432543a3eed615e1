/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A clock of the test's own in place of fab_clock, so that work takes a known time on any machine. Random numbers are
 * still the real clock's. For a test of one thread.
 */
#ifndef TEST_BASE_OWN_CLOCK_H
#define TEST_BASE_OWN_CLOCK_H

#include <stdint.h>
#include "base/clock.h"

static struct fab_clock_ops own_clock;
static const struct fab_clock_ops *own_clock_real;	/* while the own clock is on */
static uint64_t own_clock_step_ns, own_clock_steps_ns;

static inline uint64_t own_clock_random64(void)
{
	return own_clock_real->random64();
}

/* From now on the time is what now_ns() returns, in nanoseconds. It may read own_clock_real. */
static inline void own_clock_on(uint64_t (*now_ns)(void))
{
	own_clock_real = fab_clock;
	own_clock = (struct fab_clock_ops) { .now_ns = now_ns, .random64 = own_clock_random64 };
	fab_clock = &own_clock;
}

/* The real time is back. The own clock is on. */
static inline void own_clock_off(void)
{
	fab_clock = own_clock_real;
}

static inline uint64_t own_clock_steps(void)
{
	own_clock_steps_ns += own_clock_step_ns;
	return own_clock_real->now_ns() + own_clock_steps_ns;
}

/* From now on the time is the real one and, beyond that, goes on by step_ns whenever it is read. */
static inline void own_clock_step(uint64_t step_ns)
{
	own_clock_step_ns = step_ns;
	own_clock_on(own_clock_steps);
}

#endif
