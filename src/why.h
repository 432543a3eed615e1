/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Why fi_getinfo() found nothing: reasons collected from providers (base/core_ops.h) and from the core itself, put in
 * order, and told. A list of reasons belongs to one call on one thread; nothing is collected unless that thread
 * listens.
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
	bool skipped;		/* the core did not ask this provider at all */
	char *entry;		/* NULL: about the provider as a whole */
	char *attr;
	char *asked;
	char *offered;
	unsigned provider_rank;	/* the following are filled in by fab_reasons_sort() */
	unsigned entry_rank;
	unsigned order;		/* in which it came */
};

struct fab_reasons {
	struct fab_reason *list;	/* owned */
	size_t cnt;
	size_t room;
	size_t lost;			/* reasons that there was no memory or place for */
};

/* An empty list; needs no memory. fini frees what it has become. */
void fab_reasons_init(struct fab_reasons *reasons);
void fab_reasons_fini(struct fab_reasons *reasons);

/* From now on the calling thread's reasons go to this list, or for NULL nowhere. Returns what it was before. */
struct fab_reasons *fab_reasons_listen(struct fab_reasons *reasons);

/* Number of reasons that the thread's list has; 0 if it does not listen. */
size_t fab_reasons_heard(void);

/* The table that providers report through. */
extern const struct fab_core_ops fab_reasons_ops;

/* Record a reason of the core's own, if the thread listens; strings are copied. _skipped: the provider was not asked,
 * because of attr. */
void fab_reasons_add(const struct fi_provider *prov, const char *attr, const char *asked, const char *offered);
void fab_reasons_add_skipped(const struct fi_provider *prov, const char *attr, const char *asked, const char *offered);

/* Put the nearest miss first: providers that were asked before those that were not, then by their nearest entry; of a
 * provider the entry with the fewest reasons that pick another entry, then with the fewest reasons at all. */
void fab_reasons_sort(struct fab_reasons *reasons);

/* Append all reasons of a sorted list, for people. */
void fab_reasons_put(const struct fab_reasons *reasons, struct fab_strbuf *sb);

/* Log a sorted list: one warning a provider that was asked; if none was, one that says who was left out and why. */
void fab_reasons_log(const struct fab_reasons *reasons);

#endif
