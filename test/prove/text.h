/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The C library's functions of texts, for programs that Eva analyses. They read as the real ones do, byte by byte up to
 * the NUL, so a text without one is an error of the analysis. Eva follows each byte that can end a loop on its own. The
 * program keeps the results apart with -eva-split-return-function. What a number or an address means is not analysed:
 * it has any value.
 */
#ifndef PROVE_TEXT_H
#define PROVE_TEXT_H

#include "prove.h"
#include <errno.h>
#include <limits.h>

static int any_errno;
int *__errno_location(void)
{
	return &any_errno;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	//@ loop unroll 300;
	while (s[n])
		n++;
	return n;
}

char *strchr(const char *s, int c)
{
	//@ loop unroll 200;
	for (; *s != (char) c; s++) {
		if (!*s)
			return NULL;
	}
	return (char *) s;
}

/* For sets of one or two bytes. */
size_t strcspn(const char *s, const char *set)
{
	size_t n = 0;

	//@ loop unroll 200;
	while (s[n] && s[n] != set[0] && (!set[0] || s[n] != set[1]))
		n++;
	return n;
}

int strncmp(const char *a, const char *b, size_t n)
{
	//@ loop unroll 40;
	for (size_t i = 0; i < n; i++) {
		if (a[i] != b[i])
			return 1;
		if (!a[i])
			return 0;
	}
	return 0;
}

size_t strnlen(const char *s, size_t max)
{
	size_t n = 0;

	//@ loop unroll 1100;
	while (n < max && s[n])
		n++;
	return n;
}

/* For sets and parts without a NUL in their first byte. */
char *strstr(const char *s, const char *part)
{
	const size_t len = strlen(part);

	//@ loop unroll 1100;
	for (; *s; s++) {
		if (!strncmp(s, part, len))
			return (char *) s;
	}
	return NULL;
}

/* A number ends anywhere in its text. */
unsigned long strtoul(const char *s, char **end, int base)
{
	(void) base;
	*end = (char *) s + any_of(0, strlen(s));
	if (any_of(0, 1))
		any_errno = ERANGE;
	return any_of(0, ULONG_MAX);
}

/* The same, with a state for each end: what follows is read. */
unsigned long long strtoull(const char *s, char **end, int base)
{
	(void) base;
	any_errno = any_of(0, ERANGE);
	//@ loop unroll 200;
	while (*s && any_of(0, 1))
		s++;
	if (end)
		*end = (char *) s;
	return any_of(0, ULLONG_MAX);
}

/* The table of isdigit() and isxdigit(): for EOF and unsigned bytes, as C promises. The classes are any. */
static unsigned short class_table[1 + 256];
static const unsigned short *class_at;
const unsigned short **__ctype_b_loc(void)
{
	any_bytes(class_table, sizeof(class_table));
	class_at = class_table + 1;
	return &class_at;
}

int inet_pton(int family, const char *text, void *to)
{
	(void) strlen(text);
	if (any_of(0, 1))
		return 0;
	any_bytes(to, family == AF_INET ? 4 : 16);
	return 1;
}

unsigned if_nametoindex(const char *name)
{
	(void) strlen(name);
	return any_of(0, INT32_MAX);
}

#endif
