/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What CQs and counters have of their domain, taken and given back in one go: an engine, a wait object, a reference.
 */
#ifndef FAB_QUEUE_H
#define FAB_QUEUE_H

#include "common/domain/domain.h"
#include "common/wait/wait.h"

/* attr->progress is filled in here. Last step of an open, as fab_wait_init() is. 0 or -FI_E* with nothing taken. */
int fab_queue_init(struct fab_domain *domain, const struct fab_engine_user *queue, struct fab_wait_attr *attr);
/* Give all of it back. -FI_EBUSY, logged, while *ref users of `what` ("a CQ") are left: nothing was done. 0. */
int fab_queue_close(struct fab_domain *domain, const struct fab_engine_user *queue, const _Atomic uint32_t *ref,
		    const char *what);

#endif
