/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Start of the library, for the parts of the core.
 */
#ifndef FAB_CORE_FABRIC_H
#define FAB_CORE_FABRIC_H

/* Read settings and load providers, the first time. Any thread; returns when it is done, whoever does it. Not to be
 * called from what a provider may call while it is being loaded (fi_log(), fi_param_*(), fi_dupinfo() ...). */
void fab_init(void);

#endif
