/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engine, the wait object and the reference that a completion queue or counter has of its domain: taken and given
 * back in one go, and moved to another engine. Control; no engine lock held.
 */
#ifndef FAB_QUEUE_OPEN_H
#define FAB_QUEUE_OPEN_H

#include "common/domain/domain.h"
#include "common/wait/wait.h"

/* What a CQ or counter has of an engine: pointers to its fields. */
struct fab_engine_user {
	struct fab_engine **engine;
	bool *own;
	struct fab_wait *wait;
};
/* Let a CQ or counter, whose engine no endpoint uses yet, use `to` instead: both queues of one endpoint must be
 * progressed together. join_lock held. 0 or -FI_E* with nothing changed. */
int fab_engine_join(struct fab_domain *domain, const struct fab_engine_user *user, struct fab_engine *to);

/* attr->engine is filled in here. Last step of an open, as fab_wait_init() is. 0 or -FI_E* with nothing taken. */
int fab_queue_init(struct fab_domain *domain, const struct fab_engine_user *queue, struct fab_wait_attr *attr);
/* Give all of it back. -FI_EBUSY, logged, while *ref users of `what` ("a CQ") are left: nothing was done. 0. */
int fab_queue_close(struct fab_domain *domain, const struct fab_engine_user *queue, const _Atomic uint32_t *ref,
		    const char *what);

#endif
