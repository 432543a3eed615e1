/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What fi_tostr() keeps.
 */
#ifndef FAB_TOSTR_H
#define FAB_TOSTR_H

/* At unload: forget the per-thread buffers, since whoever would free them is about to go. That of the calling thread is
 * freed, those of threads that still run are lost. */
void fab_tostr_fini(void);

#endif
