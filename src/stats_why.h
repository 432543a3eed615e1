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

#endif
