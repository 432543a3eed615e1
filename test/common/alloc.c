/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * malloc and its kin, which fail when told to. For programs linked with -Wl,--wrap of each: only calls from objects
 * linked into the program come here, not those of shared libraries.
 */
#include "unit.h"

#include <errno.h>

static long until_failure = -1;
static size_t asked;

void fail_alloc(long n)
{
	until_failure = n;
}

size_t malloc_asked(void)
{
	size_t len = asked;

	asked = 0;
	return len;
}

static bool fails(void)
{
	if (until_failure > 0)
		until_failure--;
	else if (!until_failure)
		errno = ENOMEM;
	return !until_failure;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t cnt, size_t size);
void *__real_realloc(void *ptr, size_t size);
char *__real_strdup(const char *str);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t cnt, size_t size);
void *__wrap_realloc(void *ptr, size_t size);
char *__wrap_strdup(const char *str);

void *__wrap_malloc(size_t size)
{
	asked += size;
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t cnt, size_t size)
{
	return fails() ? NULL : __real_calloc(cnt, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
	return fails() ? NULL : __real_realloc(ptr, size);
}

char *__wrap_strdup(const char *str)
{
	return fails() ? NULL : __real_strdup(str);
}
