/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What unit tests of prov/common share: cmocka, random numbers that repeat, and allocations that fail.
 */
#ifndef TEST_COMMON_UNIT_H
#define TEST_COMMON_UNIT_H

#include "base/unit.h"

#include "base/bits.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct rng {
	uint64_t state;
};

/* A number below limit (not 0). */
static inline uint64_t rng_below(struct rng *rng, uint64_t limit)
{
	rng->state += UINT64_C(0x9e3779b97f4a7c15);
	return fab_mix64(rng->state ^ rng->state >> 31) % limit;
}

/* Has this machine an IPv4 address for the name localhost? Not where /etc/hosts is missing. */
static inline bool unit_has_localhost(void)
{
	const struct addrinfo hints = { .ai_family = AF_INET };
	struct addrinfo *found;

	if (getaddrinfo("localhost", NULL, &hints, &found))
		return false;
	freeaddrinfo(found);
	return true;
}

/* The n-th allocation from now, counted from 0, and every one after it fails; -1: none does. In programs that link
 * alloc.c. */
void fail_alloc(long n);
/* Bytes that malloc() was asked for since the last call of this one. In the same programs; not thread-safe. */
size_t malloc_asked(void);

#endif
