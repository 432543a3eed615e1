/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Forced (-include) into those sources of prov/tcp that write to memory shared with a peer: each store to it, and each
 * copy, is preceded by a call. The library itself has nothing of this.
 */
#ifndef TEST_FAULT_STORES_H
#define TEST_FAULT_STORES_H

#include <stdatomic.h>
#include <string.h>

/* A store, or a system call that tells the peer, comes next. */
void stores_point(void);

#define STORES_AT(ptr)		((__typeof__((void) 0, *(ptr)) *) (ptr))

#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_store_explicit(ptr, value, order)						\
	(stores_point(), __atomic_store_n(STORES_AT(ptr), value, order))
#define atomic_exchange_explicit(ptr, value, order)						\
	(stores_point(), __atomic_exchange_n(STORES_AT(ptr), value, order))
#define atomic_fetch_or_explicit(ptr, value, order)						\
	(stores_point(), __atomic_fetch_or(STORES_AT(ptr), value, order))
#define atomic_fetch_and_explicit(ptr, value, order)						\
	(stores_point(), __atomic_fetch_and(STORES_AT(ptr), value, order))
#define atomic_compare_exchange_strong_explicit(ptr, expected, value, order, failure_order)	\
	(stores_point(), __atomic_compare_exchange_n(STORES_AT(ptr), expected, value, 0, order, failure_order))
#define memcpy(to, from, len)	(stores_point(), __builtin_memcpy(to, from, len))

#endif
