/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of the API's values, enumerators and flag bits, for each enum fi_type whose data is a plain value. Pure
 * functions on constant tables, any thread.
 */
#ifndef FAB_NAMES_H
#define FAB_NAMES_H

#include <rdma/fabric.h>

#include <stdbool.h>

struct fab_strbuf;

/* Types of values that have no enum fi_type. The functions below take them in place of one. */
enum {
	FAB_TYPE_PRIVATE = 64,		/* greater than every enum fi_type */
	FAB_TYPE_COMP_ORDER = FAB_TYPE_PRIVATE,
	FAB_TYPE_RESOURCE_MGMT,
	FAB_TYPE_CLASS,
	FAB_TYPE_BUS,
	FAB_TYPE_LINK_STATE,
	FAB_TYPE_GETINFO_FLAGS,
};

/* True if this type has a table of names: its data is one value, and not a structure. The functions below are for such
 * types only. */
bool fab_names_has(unsigned type);

/* The value at data, 32 or 64 bits wide as the API defines for this type. */
uint64_t fab_names_load(unsigned type, const void *data);

/* The name of exactly this value, in static memory; NULL if it has none. */
const char *fab_names_find(unsigned type, uint64_t value);

/* Append a value as text. An enumerator is written as its name, or "Unknown (VALUE)". Flags are written as the names of
 * their bits, separated by ", "; the bits without a name follow as one hexadecimal number. Flags of 0 are written as
 * the name of 0 if it has one, else as nothing. */
void fab_names_put(struct fab_strbuf *sb, unsigned type, uint64_t value);

#endif
