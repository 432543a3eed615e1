/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Start and end of the library, for the parts of the core.
 */
#ifndef FAB_CORE_FABRIC_H
#define FAB_CORE_FABRIC_H

/* Read settings and load providers, at the first call. Any thread; if another thread is doing it, the call waits for
 * that one. Functions that a provider calls while it is being loaded (fi_log(), fi_param_*(), fi_dupinfo() ...) must
 * not call this: it would wait for itself. */
void fab_init(void);

/* Count the open fabrics: change is 1 when one was opened, -1 when one is about to be freed. See
 * fab_core_ops.count_fabric. Any thread. */
void fab_count_fabric(int change);

#endif
