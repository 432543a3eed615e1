/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine, the wait object and the domain's reference of a completion queue or counter. Control; no engine lock
 * held.
 *
 * A queue is opened on the domain's own engine. fab_queue_settle() moves it to its final engine, once: when the first
 * endpoint that uses it is enabled, or when another object needs the final engine (an export, a memory region,
 * triggered work). Since fi_enable() is a control call, other threads may read the queue or sleep on it meanwhile. Code
 * that takes the lock of a queue that may not have settled uses fab_engine_enter_of() or fab_engine_lock_of().
 */
#ifndef FAB_QUEUE_OPEN_H
#define FAB_QUEUE_OPEN_H

#include "common/domain/domain.h"
#include "common/wait/wait.h"

/* Initialise, as the last step of opening a queue (see fab_wait_init()). Sets attr->engine. 0; -FI_E*: nothing was
 * taken. */
int fab_queue_init(struct fab_domain *domain, struct fab_wait *wait, struct fab_wait_attr *attr);
/* Drop the queue's engine, wait object and reference. 0; -FI_EBUSY, logged: *ref is not 0, so `what` ("a CQ") is in
 * use, and nothing was done. */
int fab_queue_close(struct fab_domain *domain, struct fab_wait *wait, const _Atomic uint32_t *ref, const char *what);

/* Move a queue that has not settled to the engine `to`, which may be the domain's own. The caller has a reference to
 * it; the queue takes another one. Threads that sleep on the queue check it again. join_lock held. 0; -FI_E*: nothing
 * was changed. */
int fab_queue_settle(struct fab_domain *domain, struct fab_wait *wait, struct fab_engine *to);
/* Settle a queue on an engine of its own, if it has not settled. join_lock held. 0 or -FI_E*. */
int fab_queue_settle_alone(struct fab_domain *domain, struct fab_wait *wait);

#endif
