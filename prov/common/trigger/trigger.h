/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Operations that start by themselves when a counter gets there, fi_trigger(3): triggered operations (FI_TRIGGER) and
 * deferred work (FI_QUEUE_WORK). Both are the same here: a copy of the operation's struct fab_op that waits.
 *
 *   waiting, on its counter, by threshold  --the counter changes-->  ready, on the engine that it is to run on
 *   --next pass of that engine-->  begun: submitted, or its counter changed
 *
 * A counter changes in the middle of sending or parsing, and perhaps on another engine than the operation's; hence the
 * step between. Within one engine a flush runs what is ready, across engines an eventfd. (Only with
 * FI_THREAD_COMPLETION there are several, and only counters bound to endpoints stay on theirs; others move to that of
 * the work which names them.)
 *
 * domain->work_lock guards all lists and is taken last. What waits holds references on its counters, so that closing
 * one is -FI_EBUSY; closing an endpoint cancels what waits for it.
 */
#ifndef FAB_TRIGGER_H
#define FAB_TRIGGER_H

#include <rdma/fi_trigger.h>
#include "common/op/op.h"

struct fab_cntr;
struct fab_domain;
struct fab_ep;
struct fab_engine;

/* Carry out op, which the provider has checked, on ep: lock of ep's engine held; 0, or -FI_E* and nothing was done.
 * With op->accepted set it is not refused because a queue is full. */
typedef int fab_trigger_submit(struct fab_ep *ep, const struct fab_op *op);

/*
 * An operation with FI_TRIGGER in its flags, checked as far as the provider can: keep a copy, and submit that, without
 * the flag, when its counter says so. The lock of ep's engine is held; it is dropped and taken again. 0: it waits or
 * has begun. -FI_EINVAL, -FI_ENOSYS (FI_TRIGGER_XPU), -FI_EBADFLAGS (ep lacks FI_TRIGGER), each logged; -FI_ENOMEM,
 * -FI_EMFILE.
 */
int fab_trigger_op(struct fab_ep *ep, const struct fab_op *op, fab_trigger_submit *submit);
/* Is op, on its way into fab_trigger_op(), deferred work? On the thread of the call. */
bool fab_trigger_is_deferred(const struct fab_op *op);
/* Is there deferred work that will post receives of ep? Lock of ep's engine held. */
bool fab_trigger_defers_recv(const struct fab_ep *ep);
/* fi_cancel: the oldest triggered operation of ep with this context that has not begun completes as cancelled. True if
 * there was one. Lock of ep's engine held. */
bool fab_trigger_cancel(struct fab_ep *ep, void *context);
/* ep is being closed and takes no operation any more: triggered operations that have not begun complete as cancelled,
 * deferred work is forgotten. No lock held. */
void fab_trigger_close(struct fab_ep *ep);

/* FI_QUEUE_WORK, FI_CANCEL_WORK, FI_FLUSH_WORK of a domain: 0 or -FI_E* (fi_trigger(3)); -FI_ENOENT: it has begun, or
 * was never queued. FI_FLUSH_WORK's arg is NULL or the counter whose work is meant. No lock held. */
int fab_work_control(struct fab_domain *domain, int command, void *arg);

/* The control slot of a domain whose endpoints have FI_TRIGGER: that, and fab_domain_control(). */
int fab_domain_work_control(struct fid *domain, int command, void *arg);

#endif
