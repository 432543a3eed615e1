/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lists of names that users write: FI_PROVIDER, FI_LOG_PROV, FI_LOG_SUBSYS, and prov_name in hints. Pure functions on
 * the caller's strings, from any thread; the caller keeps the list unchanged for the time of a call.
 *
 *   "tcp,udp"      only these		"^tcp,udp"     all but these		NULL, "", "^"    all
 *
 * The name of a layered provider consists of its layers, separated by ';'. An item of a list matches every name that
 * has all layers of the item, in any order: "tcp" and "ofi_rxm;tcp" both match "tcp;ofi_rxm". Case, and blanks around
 * an item or a layer, do not matter.
 */
#ifndef FAB_FILTER_H
#define FAB_FILTER_H

#include <stdbool.h>

/* True if the list lets this name through. */
bool fab_filter_allows(const char *list, const char *name);

/* True if an item of the list matches this name. False for an empty list, and for one that begins with '^'. */
bool fab_filter_names(const char *list, const char *name);

/* True if a provider of this single-layer name may be needed for a name that the list lets through: by itself, or as a
 * layer over or under another provider. The names of its entries must still be checked with fab_filter_allows(). */
bool fab_filter_needs(const char *list, const char *name);

/* True if an item of the list has this name as one of its layers: "tcp;ofi_rxm" mentions ofi_rxm. False for a list that
 * begins with '^'. */
bool fab_filter_mentions(const char *list, const char *name);

/* True if this is the name of a utility provider, which is layered over others ("ofi_rxm"). */
bool fab_filter_is_util(const char *name);

/* Call fn with each item of the list and arg, until it returns true. An item comes without '^' and blanks around it,
 * and is not NUL-terminated. True if a call of fn returned true. */
bool fab_filter_any(const char *list, bool (*fn)(const char *item, int len, const void *arg), const void *arg);

/* True if the list begins with '^'. */
bool fab_filter_negated(const char *list);

#endif
