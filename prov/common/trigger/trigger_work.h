/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inside of triggers, for its two files: trigger_run.c (waiting, becoming ready, beginning, ending) and trigger.c (what
 * the application hands over and takes back). "Work" is one triggered operation or piece of deferred work.
 *
 * Who may still hold a pointer to a work: the lists below domain->work_lock while it has not begun; afterwards, if
 * it is deferred work, the operation through its hook; then, if its completion counter is another engine's, that
 * engine's ready list. Each hands it on, and the last frees it.
 */
#ifndef FAB_TRIGGER_WORK_H
#define FAB_TRIGGER_WORK_H

#include "common/endpoint/endpoint.h"
#include "common/trigger/trigger.h"

struct fab_work {
	struct fab_list link;		/* on cntr->waiting or ready->works; under work_lock, as the next */
	struct fab_list all;		/* in domain->works until it has begun */
	struct fab_domain *domain;
	struct fab_cntr *cntr;		/* that it waits for; with a reference, as all of these */
	uint64_t threshold;
	struct fab_engine *engine;	/* where it runs */

	struct fi_deferred_work *deferred;	/* of the application; only compared. NULL: a triggered operation */
	struct fab_cntr *completion;	/* counts the end of deferred work, or NULL */
	bool failed;
	bool report;			/* deferred work with FI_COMPLETION: the endpoint hears of its end too */
	bool ended;			/* only to be counted yet */

	struct fab_cntr *target;	/* FI_OP_CNTR_SET, FI_OP_CNTR_ADD; else NULL */
	bool set;
	uint64_t value;

	struct fab_ep *ep;		/* borrowed: closing it takes the work back; NULL for a counter's */
	fab_trigger_submit *submit;
	void *context;			/* of the application */
	struct fab_hook hook;
	struct fab_op op;		/* points behind the work */
};

/* Hand a work, complete but for its references, to its counter. 0; -FI_E*: it is gone. No lock held. */
int fab_work_arm(struct fab_work *work);
/* It cannot be submitted, or shall not be: its end is an error, a positive FI_E*. On no list; the lock of its engine is
 * held. */
void fab_work_fail(struct fab_work *work, int err, const char *text);
/* struct fab_hook.done of deferred work. */
void fab_work_done(struct fab_hook *hook, enum fab_op_code code, const struct fab_comp *comp,
		   const struct fab_cq_fail *fail);
/* On no list. */
void fab_work_free(struct fab_work *work);

/* Which work is meant: endpoint, context, deferred work, counter; NULL is any. */
struct fab_work_fit {
	struct fab_ep *ep;
	void *context;
	struct fi_deferred_work *deferred;
	struct fab_cntr *cntr;
	bool only_deferred, only_triggered;
};
/* The oldest that fits and has not begun, off its lists. NULL: there is none. */
struct fab_work *fab_work_take_back(struct fab_domain *domain, const struct fab_work_fit *fit);

#endif
