/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Small arithmetic on bits and sizes. Pure functions, no state.
 */
#ifndef FAB_BASE_BITS_H
#define FAB_BASE_BITS_H

#include <stddef.h>
#include <stdint.h>

/* Bit n as a 64-bit value, n in 0..63. */
#define FAB_BIT(n) (UINT64_C(1) << (n))

/* Number of elements of an array (not of a pointer). */
#define fab_countof(array) (sizeof(array) / sizeof((array)[0]))

/* Smaller and larger of two values of one type; each argument is evaluated once. */
#define fab_min(a, b) ({ __typeof__(a) min_a = (a); __typeof__(b) min_b = (b); min_a < min_b ? min_a : min_b; })
#define fab_max(a, b) ({ __typeof__(a) max_a = (a); __typeof__(b) max_b = (b); max_a > max_b ? max_a : max_b; })

/* len rounded up to a multiple of align, a power of two. */
static inline size_t fab_align(size_t len, size_t align)
{
	return (len + align - 1) & ~(align - 1);
}

/* The smallest power of two that is not below n; 1 for 0. n must not exceed 2^63. */
static inline uint64_t fab_pow2_up(uint64_t n)
{
	return n <= 1 ? 1 : UINT64_C(1) << (64 - __builtin_clzll(n - 1));
}

/* Spread the bits of x over the whole word: a cheap hash for integers that differ in few bits. */
static inline uint64_t fab_mix64(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	x ^= x >> 29;
	return x;
}

#endif
