/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The distance between two names (Damerau and Levenshtein, without overlaps), row by row. No state. */
#include "base/nearest.h"

#include "base/bits.h"

#include <ctype.h>
#include <string.h>

static int fold(char c)
{
	return tolower((unsigned char) c);
}

static unsigned distance_between(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][FAB_NEAREST_LEN + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2], *spare;
	size_t i, k;

	for (k = 0; k <= b_len; k++)
		last[k] = (unsigned) k;
	for (i = 1; i <= a_len; i++) {
		now[0] = (unsigned) i;
		for (k = 1; k <= b_len; k++) {
			now[k] = fab_min(fab_min(now[k - 1], last[k]) + 1,
					 last[k - 1] + (fold(a[i - 1]) != fold(b[k - 1])));
			if (i > 1 && k > 1 && fold(a[i - 1]) == fold(b[k - 2]) && fold(a[i - 2]) == fold(b[k - 1]))
				now[k] = fab_min(now[k], before[k - 2] + 1);
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[b_len];
}

void fab_nearest_init(struct fab_nearest *nearest, const char *name, size_t len)
{
	unsigned most = (unsigned) fab_min(len / 3, (size_t) 2);

	*nearest = (struct fab_nearest) { .name = name, .len = len, .distance = most + 1 };
}

void fab_nearest_try(struct fab_nearest *nearest, const char *candidate)
{
	size_t len = strlen(candidate);
	unsigned distance;

	if (nearest->len > FAB_NEAREST_LEN || len > FAB_NEAREST_LEN)
		return;
	distance = distance_between(nearest->name, nearest->len, candidate, len);
	if (distance && distance < nearest->distance) {
		nearest->found = candidate;
		nearest->distance = distance;
	}
}
