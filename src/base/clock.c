/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The kernel's clock and random numbers.
 */
#include "base/clock.h"

#include "base/bits.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

static uint64_t system_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* If the kernel has no random bytes yet, or refuses the call, the number is mixed from time, address and pid. */
static uint64_t system_random64(void)
{
	static uint64_t call_cnt;
	uint64_t value;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) == sizeof(value))
		return value;
	value = fab_mix64(clock_ns(CLOCK_REALTIME) ^ (uint64_t) (uintptr_t) &value);
	value ^= fab_mix64(__atomic_add_fetch(&call_cnt, 1, __ATOMIC_RELAXED) << 32 | (uint64_t) getpid());
	return value;
}

const struct fab_clock_ops fab_system_clock = {
	.now_ns = system_now_ns,
	.random64 = system_random64,
};

const struct fab_clock_ops *fab_clock = &fab_system_clock;

uint64_t fab_real_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}
