/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who wants every fi_getinfo() explained: the user by FI_EXPLAIN=1 (on stderr), and the program by
 * fi_open(..., "explain", ...), described in rdma/fi_ext.h.
 */
#ifndef FAB_EXPLAIN_H
#define FAB_EXPLAIN_H

#include "why.h"

#include <stdbool.h>
#include <stdint.h>

struct fid;

/* Define and read FI_EXPLAIN. Called once, by fab_init(). */
void fab_explain_init(void);

/* Does anybody want the calling thread's next fi_getinfo() explained? */
bool fab_explain_wanted(void);

/* Tell them: what was called, how it ended, and the sorted reasons, which are taken over (the list is empty then). */
void fab_explain_tell(struct fab_reasons *reasons, uint32_t version, const char *node, const char *service,
		      uint64_t flags, int ret);

/* fi_open("explain"): an object for the fi_getinfo() calls of the calling thread. 0 or -FI_ENOMEM. */
int fab_explain_open(struct fid **fid, void *context);

#endif
