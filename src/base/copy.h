/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies that are mostly short. Pure functions, no state.
 */
#ifndef FAB_BASE_COPY_H
#define FAB_BASE_COPY_H

#include <stdint.h>
#include <string.h>

/* memcpy(), without a call for 8 to 16 bytes: two words, which may overlap. */
static inline __attribute__((always_inline)) void fab_copy_short(void *to, const void *from, size_t len)
{
	uint64_t first, last;

	if (__builtin_expect(len - sizeof(first) > sizeof(last), 0)) {
		if (len)	/* otherwise both may be NULL */
			memcpy(to, from, len);
		return;
	}
	memcpy(&first, from, sizeof(first));
	memcpy(&last, (const char *) from + len - sizeof(last), sizeof(last));
	memcpy(to, &first, sizeof(first));
	memcpy((char *) to + len - sizeof(last), &last, sizeof(last));
}

#endif
