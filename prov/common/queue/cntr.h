/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion counters, fi_cntr(3): two numbers that other threads may read at any time, and a wait object.
 * FI_CNTR_EVENTS_COMP counts operations, FI_CNTR_EVENTS_BYTES their bytes. All that changes them holds the engine's
 * lock.
 *
 * What waits for a counter to get somewhere (trigger.h) hangs on it in a list; whoever changes a value asks only
 * whether the counter is armed.
 *
 * A peer counter (FI_PEER, fi_peer(3)) is its owner's: it is armed for ever, and each change is told there.
 *
 * A counter has something to read when a value differs from what the application saw of it last. Reading such a value
 * makes no progress; reading one that is the same again runs a pass first.
 */
#ifndef FAB_CNTR_H
#define FAB_CNTR_H

#include <stdatomic.h>
#include <rdma/fi_eq.h>
#include "common/engine/engine.h"
#include "common/wait/wait.h"

struct fab_domain;
struct fid_peer_cntr;

struct fab_cntr {
	struct fid_cntr cntr_fid;
	struct fab_domain *domain;	/* borrowed: open took a reference */
	bool bytes;			/* FI_CNTR_EVENTS_BYTES */
	_Atomic uint64_t value;		/* read without the lock by who need not be exact */
	_Atomic uint64_t err;
	uint64_t value_seen;		/* by the application */
	uint64_t err_seen;
	uint64_t wake_value;		/* the smallest threshold that a sleeper waits for */
	uint64_t op_flags;		/* FI_GETOPSFLAG, FI_SETOPSFLAG */
	bool armed;			/* something may hang on `waiting`, or peer is set */
	struct fid_peer_cntr *peer;	/* borrowed from the owner of a peer counter; NULL: an ordinary one */
	uint64_t told, told_err;	/* of it, how much the owner has been told */
	struct fab_list waiting;	/* what a value triggers, by threshold; under domain->works.lock */
	/* the room of triggers, once something has waited here; called with the lock held after a change; or NULL */
	void (*reached)(struct fab_cntr *cntr);
	_Atomic uint32_t ref;		/* endpoints, memory regions and poll sets bound here, and work that names it */
	struct fab_wait wait;		/* .engine guards all above but what is fixed at open, or atomic */
};

/* fi_cntr_open: 0 or -FI_E*; the domain's slot. */
int fab_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);

/* An armed counter has changed: tell its owner, start what waits for it (trigger.h). Lock held. */
void fab_cntr_changed(struct fab_cntr *cntr);

/* Lock held: one writer at a time, hence no atomic read-modify-write. */
static inline void fab_cntr_bump(struct fab_cntr *cntr, _Atomic uint64_t *value, uint64_t by)
{
	atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + by, memory_order_release);
	if (__builtin_expect(cntr->armed, 0))
		fab_cntr_changed(cntr);
	fab_wait_event(&cntr->wait);
}

/* One operation of len bytes succeeded. Lock held. */
static inline void fab_cntr_inc(struct fab_cntr *cntr, size_t len)
{
	fab_cntr_bump(cntr, &cntr->value, cntr->bytes ? len : 1);
}

/* One operation failed. Lock held. */
static inline void fab_cntr_err(struct fab_cntr *cntr)
{
	fab_cntr_bump(cntr, &cntr->err, 1);
}

#endif
