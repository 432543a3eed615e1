/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The names of the API's values: enumerators and flag bits, for each enum fi_type that is a plain value. Pure functions
 * on constant tables, any thread.
 */
#ifndef FAB_NAMES_H
#define FAB_NAMES_H

#include <rdma/fabric.h>

#include <stdbool.h>

struct fab_strbuf;

/* Types of values that have no enum fi_type of their own, and go where one is asked for below. */
enum {
	FAB_TYPE_PRIVATE = 64,		/* greater than every enum fi_type */
	FAB_TYPE_COMP_ORDER = FAB_TYPE_PRIVATE,
	FAB_TYPE_RESOURCE_MGMT,
	FAB_TYPE_CLASS,
	FAB_TYPE_BUS,
	FAB_TYPE_LINK_STATE,
	FAB_TYPE_GETINFO_FLAGS,
};

/* Is a datum of this type one value with names (and not a structure, or unknown)? The rest is for such types only. */
bool fab_names_has(unsigned type);

/* Fetch the value at data, which has the width that the API gives to this type. */
uint64_t fab_names_load(unsigned type, const void *data);

/* Name of exactly this value; NULL if it has none. */
const char *fab_names_find(unsigned type, uint64_t value);

/* Append the name of an enumerator, "Unknown (VALUE)" if it has none; or of each flag bit, separated by ", ", bits
 * without a name together as one hexadecimal number, and nothing (or the name that it has) for 0. */
void fab_names_put(struct fab_strbuf *sb, unsigned type, uint64_t value);

#endif
