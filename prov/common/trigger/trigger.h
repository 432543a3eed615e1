/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that start when a counter reaches a threshold, fi_trigger(3): triggered operations (FI_TRIGGER) and
 * deferred work (FI_QUEUE_WORK). Both are kept in the same form: a copy of the operation's struct fab_op.
 *
 *   waiting (in the counter's list, by threshold)  --the counter reaches the threshold-->
 *   ready (in the list of the engine that will run it)  --next pass of that engine-->
 *   begun (submitted; FI_OP_CNTR_SET and FI_OP_CNTR_ADD: their counter is changed)
 *
 * A counter may change in the middle of sending or parsing, and on another engine than the operation's. An operation
 * therefore never begins at the change itself; it becomes ready first. If the counter and the operation have the same
 * engine, a flush of that engine runs the ready list; otherwise a bell wakes the operation's engine. There are
 * several engines only with FI_THREAD_COMPLETION. A counter that is bound to an endpoint stays on its engine then; any
 * other counter moves to the engine of the operation that names it.
 *
 * domain->works.lock guards all lists and is the last lock taken. A waiting operation holds references to its counters,
 * so that fi_close() of such a counter is -FI_EBUSY. Closing an endpoint cancels the operations that wait for it.
 */
#ifndef FAB_TRIGGER_H
#define FAB_TRIGGER_H

#include <rdma/fi_trigger.h>
#include "common/op/op.h"

struct fab_calls;
struct fab_cntr;
struct fab_domain;
struct fab_ep;
struct fab_engine;

/* The provider's submit function: carry out op on ep. The provider has checked op before. If op->accepted is set, a
 * full queue is no reason to refuse it. The lock of ep's engine is held. 0, or -FI_E*: nothing was done. */
typedef int fab_trigger_submit(struct fab_ep *ep, const struct fab_op *op);

/*
 * Keep a copy of an operation with FI_TRIGGER in its flags, and submit the copy, without the flag, when its counter
 * reaches the threshold. The provider has made all other checks of op. If op->hooked is set, op is deferred work that
 * fab_work_control() has submitted. The lock of ep's engine is held on entry and on return, and dropped in between. 0:
 * the operation waits or has begun. An error has begun nothing: -FI_EINVAL, -FI_ENOSYS (FI_TRIGGER_XPU) or
 * -FI_EBADFLAGS (ep lacks FI_TRIGGER), each logged; -FI_ENOMEM, -FI_EMFILE.
 */
int fab_trigger_op(struct fab_ep *ep, const struct fab_op *op, fab_trigger_submit *submit);
/* True if deferred work that has not begun will post a receive of ep. Lock of ep's engine held. */
bool fab_trigger_defers_recv(const struct fab_ep *ep);
/* fi_cancel(): the oldest triggered operation of ep with this context that has not begun completes with FI_ECANCELED.
 * True if there was one. Lock of ep's engine held. */
bool fab_trigger_cancel(struct fab_ep *ep, void *context);
/* Take back all work of an endpoint that is being closed and accepts no more operations. Triggered operations that have
 * not begun complete with FI_ECANCELED; deferred work is dropped without a completion. No lock held. */
void fab_trigger_close(struct fab_ep *ep);

/*
 * fi_control() of a domain with FI_QUEUE_WORK, FI_CANCEL_WORK or FI_FLUSH_WORK, fi_trigger(3). The arg of FI_FLUSH_WORK
 * is a counter, or NULL for the work of all counters. No lock held. 0 or -FI_E*; -FI_ENOENT: the work has begun, or was
 * never queued.
 *
 * calls are those of the domain's provider. FI_QUEUE_WORK hands the work to their submit or post_recv at once, as an
 * operation with FI_TRIGGER and a hook. The provider checks it as any other operation, and passes it on to
 * fab_trigger_op().
 */
int fab_work_control(struct fab_domain *domain, const struct fab_calls *calls, int command, void *arg);

/* For the control slot (struct fi_ops) of a domain whose endpoints have FI_TRIGGER: fab_work_control() for its
 * commands, fab_domain_control() for the others, with their results. No lock held. */
int fab_domain_work_control(struct fid *domain, const struct fab_calls *calls, int command, void *arg);

#endif
