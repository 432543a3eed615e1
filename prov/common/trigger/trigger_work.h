/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room: trigger_run.c (waiting, becoming ready, beginning, ending) and trigger.c (the application's
 * calls). A "work" is one triggered operation or one piece of deferred work.
 *
 * One holder at a time owns a work. Until it has begun these are the lists below domain->works.lock. A begun triggered
 * operation is freed once it is submitted. Begun deferred work belongs to its operation, through the hook. When that
 * has ended and the completion counter is on another engine, the work goes to that engine's ready list, and is freed
 * when the counter has been changed: by a pass of that engine, or by a call that takes the work back.
 */
#ifndef FAB_TRIGGER_WORK_H
#define FAB_TRIGGER_WORK_H

#include "common/endpoint/endpoint.h"
#include "common/trigger/trigger.h"

struct fab_work {
	struct fab_list link;		/* in cntr->waiting or ready->works; works.lock guards it and `all` */
	struct fab_list all;		/* in domain->works.list until it has begun, and again while `ended` */
	struct fab_domain *domain;
	struct fab_cntr *cntr;		/* the counter it waits for; a reference, as are all counters here */
	uint64_t threshold;
	uint64_t number;		/* counts those of the domain */
	struct fab_engine *engine;	/* runs it; borrowed. With `target`, that one's: fab_work_arm() sets it */

	struct fi_deferred_work *deferred;	/* the application's, only compared; NULL: triggered operation */
	struct fab_cntr *completion;	/* incremented when deferred work ends; or NULL */
	bool failed;
	bool report;			/* deferred work with FI_COMPLETION: its end is reported to the endpoint too */
	bool ended;			/* ended; only `completion` is left to increment */

	struct fab_cntr *target;	/* FI_OP_CNTR_SET, FI_OP_CNTR_ADD; else NULL */
	bool set;
	uint64_t value;

	/* borrowed: closing it takes the work back; NULL if target is set; only compared after `ended` */
	struct fab_ep *ep;
	fab_trigger_submit *submit;
	void *context;			/* the application's */
	struct fab_hook hook;
	struct fab_op op;		/* its pointers lead to the memory behind this struct */
};

/* Take the references of an otherwise complete work, and put it into the list of its counter. The work is the room's
 * from here on. No lock held. 0; -FI_E*: the work is freed. */
int fab_work_arm(struct fab_work *work);
/* End a work that cannot be submitted, or is cancelled, with the error err (a positive FI_E*), and free it. text goes
 * to the CQ entry. The work is in no list; the lock of its engine is held. */
void fab_work_fail(struct fab_work *work, int err, const char *text);
/* struct fab_hook.done of deferred work: report its end, increment its completion counter, free it. The lock of its
 * engine is held. */
void fab_work_done(struct fab_hook *hook, enum fab_op_code code, const struct fab_comp *comp,
		   const struct fab_cq_fail *fail);
/* Give back the references of a work that is in no list, and free it. Any lock may be held. */
void fab_work_free(struct fab_work *work);
/* Free deferred work that was taken back. If it has ended, its completion counter counts it. No lock held. */
void fab_work_drop(struct fab_work *work);

/* Selects works. A NULL member fits any work. */
struct fab_work_fit {
	struct fab_ep *ep;
	void *context;
	struct fi_deferred_work *deferred;
	struct fab_cntr *cntr;
	bool only_deferred, only_triggered;
	struct fab_cntr *ended_for;	/* only works that have ended, with this completion counter */
};
/* Take the oldest work that fits and has not begun, or has ended, out of its lists; with fit->deferred only one that
 * has not begun. The caller owns it. NULL: there is none. Takes works.lock. */
struct fab_work *fab_work_take_back(struct fab_domain *domain, const struct fab_work_fit *fit);

#endif
