/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Time and random numbers, behind a table that a test can replace by a virtual clock and repeatable numbers.
 * All calls may be made from any thread.
 */
#ifndef FAB_BASE_CLOCK_H
#define FAB_BASE_CLOCK_H

#include <stdint.h>

struct fab_clock_ops {
	uint64_t (*now_ns)(void);	/* monotonic, from an arbitrary start */
	uint64_t (*random64)(void);	/* others cannot guess it; 0 is as likely as any other value */
};

/* The kernel's clock and random numbers. */
extern const struct fab_clock_ops fab_system_clock;

/* The table in use. A test replaces it before it starts a thread that reads it. */
extern const struct fab_clock_ops *fab_clock;

/* Monotonic time in nanoseconds. It never goes back; only differences mean anything. */
static inline uint64_t fab_now_ns(void)
{
	return fab_clock->now_ns();
}

/* Ticks for the page of a process (weft/stats.h): the time stamp counter where there is one, which costs one
 * instruction, also while a test has a virtual clock; else nanoseconds. */
#ifdef __x86_64__
#define FAB_TICKS_ARE_TSC	1
#else
#define FAB_TICKS_ARE_TSC	0
#endif
static inline uint64_t fab_ticks(void)
{
#if FAB_TICKS_ARE_TSC
	return __builtin_ia32_rdtsc();
#else
	return fab_now_ns();
#endif
}

/* The same in milliseconds. */
static inline uint64_t fab_now_ms(void)
{
	return fab_now_ns() / 1000000;
}

/* 64 random bits, fit for an incarnation number. Never fails, never waits. */
static inline uint64_t fab_random64(void)
{
	return fab_clock->random64();
}

/* The time of day in nanoseconds since 1970, for what people read. It may jump, and is not that of a test's clock. */
uint64_t fab_real_ns(void);

#endif
