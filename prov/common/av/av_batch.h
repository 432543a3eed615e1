/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One call of fi_av_insert(3), fi_av_insertsvc(3) or fi_av_insertsym(3): where the result of each address goes, in
 * every kind of vector. The caller's, on its stack; one thread. No lock is taken: what guards the vector is its own.
 */
#ifndef FAB_AV_BATCH_H
#define FAB_AV_BATCH_H

#include "common/av/vector.h"

struct fab_av_batch {
	struct fab_av *av;		/* borrowed; of it av_fid, domain, async and eq are looked at */
	fi_addr_t *fi_addr;		/* the application's: NULL, or one for each address */
	int *errs;			/* FI_SYNC_ERR: likewise */
	void *context;
	size_t index;			/* of the next address */
	size_t ok_cnt;
};

/* Begin; flags are those of the call that this vector knows. 0; -FI_EINVAL: FI_SYNC_ERR cannot be had; -FI_ENOEQ: the
 * vector has FI_EVENT and no event queue. Logged, and then there is nothing to end. */
int fab_av_batch_start(struct fab_av_batch *batch, struct fab_av *av, fi_addr_t *fi_addr, uint64_t flags,
		       void *context);
/* The next address has been inserted at fi_addr, or, if err (-FI_E*) is not 0, has not. */
void fab_av_batch_next(struct fab_av_batch *batch, fi_addr_t fi_addr, int err);
/* What the call returns: how many were inserted, or for FI_EVENT what telling that to the event queue gives (0 or
 * -FI_E*). */
int fab_av_batch_end(const struct fab_av_batch *batch);

#endif
