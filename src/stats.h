/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The page of this process (weft/stats.h): its file, its header, and the object of fi_open("stats"). Providers write to
 * it (prov/common/stats). There is one page for all copies of prov/common, which get it through base/core_ops.h.
 */
#ifndef FAB_CORE_STATS_H
#define FAB_CORE_STATS_H

#include <weft/stats.h>

/* Define and read FI_STATS and FI_STATS_DUMP. Called once, by fab_init(). */
void fab_stats_init(void);

/* The page, made by the first call, also that of a child of fork(2). It stays at its address. NULL: no memory. Any
 * thread. */
struct fi_stats_page *fab_stats_page(void);
/* The page if there is one already, or NULL. Any thread. */
const struct fi_stats_page *fab_stats_have(void);
/* The path of its file, or NULL. Any thread. */
const char *fab_stats_path(void);

/* The process ends, or the library is unloaded: print what FI_STATS_DUMP asks for, and remove the file. */
void fab_stats_stop(void);
/* struct fab_core_ops.stats_stuck. */
uint64_t fab_stats_tell_stuck(void);
/* fi_open("stats"). 0 or -FI_ENOMEM, and *fid is unchanged. */
int fab_stats_open(struct fid **fid, void *context);

#endif
