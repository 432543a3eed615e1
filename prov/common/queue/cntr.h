/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Completion counters, fi_cntr(3): two numbers, which any thread may read at any time, and a wait object.
 * FI_CNTR_EVENTS_COMP counts operations, FI_CNTR_EVENTS_BYTES their bytes. Every change is made with the engine's lock
 * held.
 *
 * Works that wait for a counter to reach a threshold (trigger.h) are in its list. A change of a value only tests
 * whether the counter is armed.
 *
 * A peer counter (FI_PEER, fi_peer(3)) belongs to its owner. It is always armed, and each change is reported to the
 * owner.
 *
 * A counter has something to read if a value differs from the one that the application read last. Reading such a value
 * makes no progress; reading an unchanged value runs a pass first.
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
	_Atomic uint64_t value;		/* may be read without the lock, then possibly an older value */
	_Atomic uint64_t err;
	uint64_t value_seen;		/* value that the application read last */
	uint64_t err_seen;
	uint64_t wake_value;		/* the smallest threshold of a sleeper */
	uint64_t op_flags;		/* FI_GETOPSFLAG, FI_SETOPSFLAG */
	bool armed;			/* `waiting` may have works, or peer is set */
	struct fid_peer_cntr *peer;	/* borrowed: the owner of a peer counter; NULL: not a peer counter */
	uint64_t told, told_err;	/* values that were reported to the owner */
	struct fab_list waiting;	/* works that wait for a threshold, in order; domain->works.lock */
	/* set by the room of triggers when work first waits here; called with the lock held after a change; or NULL */
	void (*reached)(struct fab_cntr *cntr);
	/* set by that room when a work first refers to the counter: count the works that have ended, and have only to
	 * be counted here. fi_close() calls it; no lock held; or NULL */
	void (*count_ended)(struct fab_cntr *cntr);
	_Atomic uint32_t ref;		/* counts endpoints, memory regions, poll sets and works that use it */
	struct fab_wait wait;		/* .engine guards all members above, except constants and atomics */
};

/* The domain's fi_cntr_open slot. 0 or -FI_E*. */
int fab_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);

/* An armed counter has changed: report it to its owner, and start works that waited for it (trigger.h). Lock held. */
void fab_cntr_changed(struct fab_cntr *cntr);

/* Add to a value. The lock is held, so there is one writer at a time and no atomic read-modify-write is needed. */
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
