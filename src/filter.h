/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lists of names that users write: FI_PROVIDER, FI_LOG_PROV, FI_LOG_SUBSYS, and prov_name in hints. Pure functions on
 * the caller's strings, from any thread; the caller keeps the list unchanged for the time of a call.
 *
 *   "tcp,udp"      only these		"^tcp,udp"     all but these		NULL, "", "^"    all
 *
 * A layered provider's name has its layers separated by ';'. An item of a list means every name that has all the layers
 * of the item, in any order: "tcp" and "ofi_rxm;tcp" both mean "tcp;ofi_rxm". Case and blanks around do not matter.
 */
#ifndef FAB_FILTER_H
#define FAB_FILTER_H

#include <stdbool.h>

/* Does the list let this name through? */
bool fab_filter_allows(const char *list, const char *name);

/* Is this name one of those that an inclusive list names? Not with an empty list, nor with one of exceptions. */
bool fab_filter_names(const char *list, const char *name);

/* May a provider of this single-layer name be needed to make any name that the list lets through? It may be itself, or
 * as a layer below or above another. What it finally offers is still to be held against fab_filter_allows(). */
bool fab_filter_needs(const char *list, const char *name);

/* Has an item of the list, if it is an inclusive one, this name as one of its layers ("tcp;ofi_rxm" has ofi_rxm)? */
bool fab_filter_mentions(const char *list, const char *name);

/* Is name that of a utility provider, which layers itself over others ("ofi_rxm")? */
bool fab_filter_is_util(const char *name);

/* Call fn with each item of the list (without '^' and blanks around, not NUL-terminated) until it returns true; tells
 * whether it did. */
bool fab_filter_any(const char *list, bool (*fn)(const char *item, int len, const void *arg), const void *arg);

/* Does the list begin with '^'? */
bool fab_filter_negated(const char *list);

#endif
