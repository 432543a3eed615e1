/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A heap that can be told to fail, and that counts. A program that links heap.c has malloc(), calloc(), realloc(),
 * posix_memalign() and free() go through it; not in a sanitizer build, where the sanitizer has them, and where only the
 * n-th failure is lost: leaks are the sanitizer's to find there. One thread.
 */
#ifndef TEST_CORE_HEAP_H
#define TEST_CORE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* Can this build fail allocations? If not, the calls below do nothing. */
bool heap_can_fail(void);

/* Let the n-th allocation from now on fail, counted from 0, and none before or after it; a negative n: none. */
void heap_fail(long n);

/* Did an allocation fail since the last heap_fail()? */
bool heap_failed(void);

/* Number of blocks that are allocated now. */
size_t heap_blocks(void);

#endif
