/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The sentences of fi_why(1): what waits in pages, on whom, since when, and who has to do what. No state.
 */
#ifndef FAB_CORE_STATS_WHY_H
#define FAB_CORE_STATS_WHY_H

#include <weft/stats.h>

/* fi_ops_stats.explain() without its first argument. Any thread. */
size_t fab_stats_explain(const struct fi_stats_source *source, size_t cnt, size_t about, uint64_t after_ns,
			 enum fi_stats_form form, char *buf, size_t len, struct fi_stats_verdict *verdict);

/* When the operation of a page began to wait that did so last of those that have waited for after_ns at least; 0: none
 * has. *next_ns is the time until another one will have; 0: there is none. Messages without a receive do not count. */
uint64_t fab_stats_waiting(const struct fi_stats_source *source, uint64_t after_ns, uint64_t *next_ns);

#endif
