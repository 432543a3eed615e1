/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reasons why fi_getinfo() found nothing: collected from providers (base/core_ops.h) and from the core, sorted, and
 * written out. A list of reasons belongs to one call on one thread. Reasons are collected only while that thread
 * listens (fab_reasons_listen()).
 */
#ifndef FAB_WHY_H
#define FAB_WHY_H

#include "base/core_ops.h"

#include <stdbool.h>
#include <stddef.h>

struct fab_strbuf;
struct fi_provider;

/* One reason; strings are owned by the list. */
struct fab_reason {
	const char *prov;
	enum fab_why_kind kind;
	bool skipped;		/* the core did not ask this provider */
	char *entry;		/* NULL: the reason is about the whole provider */
	char *attr;
	char *asked;
	char *offered;
	unsigned provider_rank;	/* this and the next: set by fab_reasons_sort() */
	unsigned entry_rank;
	unsigned order;		/* position in which it was recorded */
	bool told;		/* used by fab_reasons_put(): written with those of a nearer entry */
};

struct fab_reasons {
	struct fab_reason *list;	/* owned */
	size_t cnt;
	size_t room;
	size_t lost;			/* reasons that were dropped, for lack of memory or beyond the bound */
};

/* Make an empty list. Allocates nothing. */
void fab_reasons_init(struct fab_reasons *reasons);
/* Free all reasons; the list is empty afterwards. */
void fab_reasons_fini(struct fab_reasons *reasons);

/* Collect the calling thread's reasons in this list from now on; NULL: do not collect them. Returns the list that was
 * used before, which the caller puts back when it is done. The list must live until then. */
struct fab_reasons *fab_reasons_listen(struct fab_reasons *reasons);

/* Number of reasons recorded in the calling thread's list, lost ones included; 0 if it does not listen. */
size_t fab_reasons_heard(void);

/* The table that providers report through. */
extern const struct fab_core_ops fab_reasons_ops;

/* Record a reason of the core about a provider, if the calling thread listens. Strings are copied. A reason about
 * fab_core_prov is about no single provider. */
void fab_reasons_add(const struct fi_provider *prov, const char *attr, const char *asked, const char *offered);
/* The same; the core did not ask this provider, because of attr. */
void fab_reasons_add_skipped(const struct fi_provider *prov, const char *attr, const char *asked, const char *offered);

/* Sort a list, nearest miss first. Providers that were asked come before providers that were skipped, in the order of
 * their nearest entries. An entry is nearer the fewer reasons it has of FAB_WHY_WHERE, then of FAB_WHY_WHICH, then of
 * FAB_WHY_WHAT. */
void fab_reasons_sort(struct fab_reasons *reasons);

/* Append all reasons of a sorted list as text for people. Entries of a provider that have the same reasons share a
 * line, and so do providers that were skipped for the same reason. Those that were skipped for their names are only
 * there if all were. */
void fab_reasons_put(struct fab_reasons *reasons, struct fab_strbuf *sb);

/* Log a sorted list (fab_log_keep()): one warning for each provider that was asked, and one for each reason of the
 * core, which is about names of providers. If there is none, one warning says which providers were not asked, and
 * why. */
void fab_reasons_log(struct fab_reasons *reasons);

#endif
