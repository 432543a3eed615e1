/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hooks, fi_hook(7): FI_HOOK has each call on each object of each provider noted ("trace") or measured ("perf").
 *
 * No object is wrapped. The tables of operations of an object are replaced when the object is made: the slots of the
 * new table call those of the old one, a copy of which follows it in memory. Objects keep their addresses, so no
 * argument has to be translated, and providers see nothing of it. A process without FI_HOOK has the tables of its
 * providers.
 */
#ifndef HOOK_HOOK_H
#define HOOK_HOOK_H

#include <rdma/fabric.h>

/* Define the parameters, and read FI_HOOK. Once, when the library starts. */
void fab_hook_init(void);
/* A fabric was opened: hook it, if FI_HOOK says so. All objects that are opened below it are hooked, too. Any
 * thread. */
void fab_hook_fabric(struct fid_fabric *fabric);

#endif
