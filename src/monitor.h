/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory monitor of the process, for the caches of registrations in providers (base/core_ops.h), and the object
 * "mr_cache" of fi_open(3), by which a program brings a monitor of its own.
 */
#ifndef FAB_MONITOR_H
#define FAB_MONITOR_H

#include <rdma/fabric.h>
#include "base/core_ops.h"

extern struct fab_monitor fab_monitor;

/* Define and read the parameters FI_MR_CACHE_*. Called once, before a provider is loaded. */
void fab_monitor_init(void);

/* fi_open("mr_cache"). *fid takes a struct fid_mem_monitor by fi_import_fid(), which replaces the process's monitor as
 * long as no cache uses that. 0; -FI_EALREADY: the object is open already. Any thread. */
int fab_monitor_open(struct fid **fid, void *context);

#endif
