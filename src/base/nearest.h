/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The nearest name to a name with a typing error. A pure function, any thread.
 */
#ifndef FAB_BASE_NEAREST_H
#define FAB_BASE_NEAREST_H

#include <stddef.h>

/* Names longer than this have no nearest name. */
#define FAB_NEAREST_LEN 64

/* The search for the name that is nearest to `name`, over any number of candidates. */
struct fab_nearest {
	const char *name;	/* borrowed, name[0..len) */
	size_t len;
	const char *found;	/* borrowed: the nearest candidate so far; NULL: none is near enough */
	unsigned distance;	/* of `found`; until then one more than a typing error has */
};

/* Begin a search. */
void fab_nearest_init(struct fab_nearest *nearest, const char *name, size_t len);

/* Look at a candidate. It is found if it is nearer than all before. Case does not matter. The distance counts
 * characters that are missing, too many or different, and pairs of neighbours that are swapped; a typing error has at
 * most one of these in each three characters, and at most two. A candidate of distance 0 is not found: it is the
 * name. */
void fab_nearest_try(struct fab_nearest *nearest, const char *candidate);

#endif
