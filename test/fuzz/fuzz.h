/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What a target of the fuzzers is: one function that takes any bytes, and that libFuzzer knows by this name. In the
 * tests replay.c calls it; `make fuzz` has libFuzzer do that.
 */
#ifndef TEST_FUZZ_FUZZ_H
#define TEST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Whatever data is, the library stays whole: a broken promise aborts. Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A promise. */
#define FUZZ_MUST(cond) do {								\
	if (!(cond)) {									\
		fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);	\
		abort();								\
	}										\
} while (0)

/* The next byte of an input, 0 where it has ended. */
static inline uint8_t fuzz_byte(const uint8_t **data, size_t *len)
{
	if (!*len)
		return 0;
	(*len)--;
	return *(*data)++;
}

#endif
