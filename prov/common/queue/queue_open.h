/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine, the wait object and the reference that a completion queue or counter has of its domain: taken and given
 * back in one go. Control; no engine lock held.
 *
 * A queue opens on the domain's own engine. fab_queue_settle() gives it the engine that it stays on, once: when the
 * first endpoint that uses it is enabled, or something else needs to know the engine (an export, a memory region,
 * triggered work). Others may read the queue or sleep on it meanwhile, as fi_enable() is control: who takes the lock of
 * a queue that may not have settled does it with fab_engine_enter_of() or fab_engine_lock_of().
 */
#ifndef FAB_QUEUE_OPEN_H
#define FAB_QUEUE_OPEN_H

#include "common/domain/domain.h"
#include "common/wait/wait.h"

/* attr->engine is filled in here. Last step of an open, as fab_wait_init() is. 0 or -FI_E* with nothing taken. */
int fab_queue_init(struct fab_domain *domain, struct fab_wait *wait, struct fab_wait_attr *attr);
/* Give all of it back. -FI_EBUSY, logged, while *ref users of `what` ("a CQ") are left: nothing was done. 0. */
int fab_queue_close(struct fab_domain *domain, struct fab_wait *wait, const _Atomic uint32_t *ref, const char *what);

/* Give a queue that has not settled the engine `to` (the domain's own, too), to which the caller has a reference; the
 * queue takes one of its own. Whoever sleeps on it looks again. join_lock held. 0, or -FI_E* with nothing changed. */
int fab_queue_settle(struct fab_domain *domain, struct fab_wait *wait, struct fab_engine *to);
/* Settle it on an engine of its own, if it has not settled. join_lock held. 0 or -FI_E*. */
int fab_queue_settle_alone(struct fab_domain *domain, struct fab_wait *wait);

#endif
