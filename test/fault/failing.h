/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The n-th allocation fails, or the n-th call on a descriptor: malloc and its kin are replaced in the program that has
 * this, calls on descriptors through fab_sock. One thread.
 */
#ifndef TEST_FAULT_FAILING_H
#define TEST_FAULT_FAILING_H

#include <stdbool.h>
#include <stdint.h>
#include "base/pool.h"		/* FAB_ASAN */

/* A sanitizer has a heap of its own. */
#if !defined(FAB_ASAN) && !defined(__SANITIZE_THREAD__)
#define CAN_FAIL_ALLOC true
#else
#define CAN_FAIL_ALLOC false
#endif

extern long alloc_until, sock_until;	/* calls until the one that fails; 0: none does */
extern bool failed;			/* one did */
extern uint64_t waited_ns;		/* by which the library's time is ahead: waits for descriptors take none */

/* Replace calls on descriptors, and the library's clock, for the rest of the program or until fab_sock is set again. */
void failing_install(void);
/* Monotonic, not the library's. */
uint64_t failing_now_ms(void);
/* Call life(arg) with the first failing, then the second ... (*until is one of the two above), until a life sees
 * none fail. No descriptor may be left. Returns how many failed. */
long failing_sweep(long *until, void (*life)(void *arg), void *arg);

#endif
