/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion counters, fi_cntr(3): two numbers that other threads may read at any time, and a wait object. FI_CNTR_EVENTS_COMP
 * counts operations, FI_CNTR_EVENTS_BYTES their bytes. Added to with the engine's lock held; values are atomics (relaxed on the hot
 * path) since the application may read, add and set them from any thread.
 */
#ifndef FAB_CNTR_H
#define FAB_CNTR_H

#include <stdatomic.h>
#include <rdma/fi_eq.h>
#include "common/progress.h"
#include "common/wait.h"

struct fab_domain;

struct fab_cntr {
	struct fid_cntr cntr_fid;
	struct fab_domain *domain;	/* borrowed: open took a reference */
	struct fab_progress *progress;
	bool own_progress;
	bool bytes;			/* FI_CNTR_EVENTS_BYTES */
	_Atomic uint64_t value;
	_Atomic uint64_t err;
	_Atomic uint32_t ref;		/* endpoints and memory regions bound here */
	struct fab_wait wait;
};

/* fi_cntr_open: 0 or -FI_E*; the domain's slot. */
int fab_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);

/* One operation of len bytes succeeded. Lock held; written by one thread at a time, hence no atomic read-modify-write here
 * unless the application adds too (fi_cntr_add uses one). */
static inline void fab_cntr_inc(struct fab_cntr *cntr, size_t len)
{
	atomic_fetch_add_explicit(&cntr->value, cntr->bytes ? len : 1, memory_order_release);
	fab_wait_event(&cntr->wait, &cntr->progress->signals);
}

/* One operation failed. Lock held. */
static inline void fab_cntr_err(struct fab_cntr *cntr)
{
	atomic_fetch_add_explicit(&cntr->err, 1, memory_order_release);
	fab_wait_event(&cntr->wait, &cntr->progress->signals);
}

#endif
