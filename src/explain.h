/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Explanations of fi_getinfo(). The user asks for them by FI_EXPLAIN=1 (they go to stderr), and a program by
 * fi_open(..., "explain", ...), which rdma/fi_ext.h describes. All calls from any thread.
 */
#ifndef FAB_EXPLAIN_H
#define FAB_EXPLAIN_H

#include "why.h"

#include <stdbool.h>
#include <stdint.h>

struct fid;

/* Define and read FI_EXPLAIN. Called once, by fab_init(). */
void fab_explain_init(void);

/* True if explanations go to stderr (FI_EXPLAIN). The log then does not repeat them. */
bool fab_explain_on_stderr(void);

/* True if the calling thread's next fi_getinfo() will be explained. */
bool fab_explain_wanted(void);

/* Explain a fi_getinfo() that returned ret: the call, its result, and the sorted reasons. An explain object of the
 * calling thread takes over the reasons; the list is then empty. The caller calls fab_reasons_fini() in any case. */
void fab_explain_tell(struct fab_reasons *reasons, uint32_t version, const char *node, const char *service,
		      uint64_t flags, int ret);

/* fi_open("explain"): open an object that records the fi_getinfo() calls of the calling thread. 0; or -FI_ENOMEM, and
 * *fid is unchanged. */
int fab_explain_open(struct fid **fid, void *context);

#endif
