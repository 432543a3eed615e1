/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The heap of glibc with a counter in front. glibc's own functions, strdup() and vasprintf() among them, come through
 * here as well.
 */
#include "core/heap.h"

#include "base/pool.h"		/* for FAB_ASAN */

#include <errno.h>
#include <stdlib.h>

static long fail_in = -1;
static bool has_failed;
static size_t block_cnt;

void heap_fail(long n)
{
	fail_in = n;
	has_failed = false;
}

bool heap_failed(void)
{
	return has_failed;
}

size_t heap_blocks(void)
{
	return block_cnt;
}

#if defined(FAB_ASAN) || defined(__SANITIZE_THREAD__)
bool heap_can_fail(void)
{
	return false;
}
#else
/* Exported by the program, so that the functions of libc find them. */
#pragma GCC visibility push(default)
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t cnt, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *block);

bool heap_can_fail(void)
{
	return true;
}

static bool fails(void)
{
	if (fail_in < 0 || fail_in-- > 0)
		return false;
	has_failed = true;
	errno = ENOMEM;
	return true;
}

static void *count(void *block)
{
	block_cnt += block ? 1 : 0;
	return block;
}

void *malloc(size_t size)
{
	return fails() ? NULL : count(__libc_malloc(size));
}

void *calloc(size_t cnt, size_t size)
{
	return fails() ? NULL : count(__libc_calloc(cnt, size));
}

void *realloc(void *block, size_t size)
{
	if (fails())
		return NULL;
	return block ? __libc_realloc(block, size) : count(__libc_realloc(NULL, size));
}

int posix_memalign(void **block, size_t align, size_t size)
{
	if (fails())
		return ENOMEM;
	*block = count(__libc_memalign(align, size));
	return *block ? 0 : ENOMEM;
}

void free(void *block)
{
	block_cnt -= block ? 1 : 0;
	__libc_free(block);
}
#pragma GCC visibility pop
#endif
