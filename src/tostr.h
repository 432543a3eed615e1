/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The per-thread buffers of fi_tostr().
 */
#ifndef FAB_TOSTR_H
#define FAB_TOSTR_H

/* Called at unload: free the buffer of the calling thread, and remove the destructor that frees those of other threads
 * when they end. The buffers of threads that still run are leaked. */
void fab_tostr_fini(void);

#endif
