/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Returns the results of one call of fi_av_insert(3), fi_av_insertsvc(3) or fi_av_insertsym(3), for every kind of
 * vector: into the caller's arrays, or to the event queue. A batch is on the stack of its caller; one thread uses it.
 * Takes no lock; the caller holds the lock that guards its vector.
 */
#ifndef FAB_AV_BATCH_H
#define FAB_AV_BATCH_H

#include "common/av/vector.h"

struct fab_av_batch {
	struct fab_av *av;		/* borrowed; of its members only av_fid, domain, async and eq are used */
	fi_addr_t *fi_addr;		/* the application's array, one element per address; or NULL */
	int *errs;			/* with FI_SYNC_ERR: the application's array, one element per address; else
					 * NULL */
	void *context;
	size_t index;			/* of the next address, from 0 */
	size_t ok_cnt;
};

/* Begin. flags are the flags of the call; the caller has refused those that its vector does not support. 0. -FI_EINVAL:
 * FI_SYNC_ERR is not possible. -FI_ENOEQ: the vector has FI_EVENT, but neither it nor its domain has an event queue.
 * Errors are logged; the batch then must not be used. */
int fab_av_batch_start(struct fab_av_batch *batch, struct fab_av *av, fi_addr_t *fi_addr, uint64_t flags,
		       void *context);
/* Record the result of the next address: it was inserted at fi_addr (err is 0), or failed with err (-FI_E*). */
void fab_av_batch_next(struct fab_av_batch *batch, fi_addr_t fi_addr, int err);
/* The return value of the call: the number of addresses inserted. With FI_EVENT: 0 if the event was written, or
 * -FI_E*. */
int fab_av_batch_end(const struct fab_av_batch *batch);
/* For the fi_close() of a vector: drop its unread events, and the reference to its event queue. */
void fab_av_drop_events(struct fab_av *av);

#endif
