/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From deferred work (FI_QUEUE_WORK, fi_trigger(3)) to the operation that it stands for: the one that the data call of
 * the same name makes.
 */
#ifndef FAB_CALLS_DEFERRED_H
#define FAB_CALLS_DEFERRED_H

#include <rdma/fi_trigger.h>
#include "common/calls/calls_atomic.h"

/* Deferred work as an operation. The pointers in it may point into it: it is not moved or copied. */
struct fab_deferred_op {
	struct fab_ep *ep;		/* borrowed: the endpoint that the work names, also through an alias */
	uint64_t flags;			/* the flags in the work */
	union {
		struct fab_op op;	/* with FI_TRIGGER; points to what the work points to */
		struct fab_atomic_op atomic;	/* begins with op */
	};
};

/*
 * Fill in *made from work, a data transfer or an atomic. calls are those of the endpoint's provider. No lock needed. 0;
 * -FI_ENOSYS: the work is of another kind, or the endpoint has no such call; or the error of the builder for the kind
 * (calls_message.h, calls_atomic.h). *made is undefined after an error.
 */
int fab_op_of_deferred(const struct fab_calls *calls, const struct fi_deferred_work *work,
		       struct fab_deferred_op *made);

#endif
