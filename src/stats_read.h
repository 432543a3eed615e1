/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reading a page (weft/stats.h) that may have any contents: a copy of each record is checked before it is used. No
 * state.
 */
#ifndef FAB_CORE_STATS_READ_H
#define FAB_CORE_STATS_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <weft/stats.h>

/* A page that is being read. */
struct fab_view {
	const struct fi_stats_source *source;	/* borrowed */
	struct fi_stats_header header;		/* its texts end with a NUL, and are printable */
	const char *wrong;			/* why it cannot be read, or NULL: it can */
};

/* Look at a page. view->wrong says whether it can be read. */
void fab_view_open(struct fab_view *view, const struct fi_stats_source *source);
/* The number of records that a table should have; of some, the page may lack a part. */
uint32_t fab_view_cnt(const struct fab_view *view, enum fi_stats_table_kind table);
/* Copy the first `size` bytes of a record. False: there is no such record, or it is shorter. */
bool fab_view_read(const struct fab_view *view, enum fi_stats_table_kind table, uint32_t index, void *record,
		   size_t size);
/* The same, checked, and true only for records in use. */
bool fab_view_engine(const struct fab_view *view, uint32_t index, struct fi_stats_engine *engine);
bool fab_view_ep(const struct fab_view *view, uint32_t index, struct fi_stats_ep *ep);
bool fab_view_peer(const struct fab_view *view, uint32_t index, struct fi_stats_peer *peer);
bool fab_view_wait(const struct fab_view *view, uint32_t index, struct fi_stats_wait *wait);
bool fab_view_figure(const struct fab_view *view, uint32_t index, struct fi_stats_figure *figure);
/* True if something is pending, and the record is whole. */
bool fab_view_pending(const struct fi_stats_pending *pending);
/* Nanoseconds from a time of the page until it was read; 0 if that makes no sense. */
uint64_t fab_view_age(const struct fab_view *view, uint64_t ticks);

#endif
