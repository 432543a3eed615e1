/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See trigger_work.h: works while they wait, become ready, begin and end.
 */
#include "common/trigger/trigger_work.h"

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"

#define LOOK_MAX	256	/* works that are looked at in one survey */

/* The ready list of an engine. Guarded by the engine's lock, except where a member says otherwise. */
struct fab_ready {
	struct fab_attached attached;	/* to the engine */
	struct fab_list works;		/* linked by work.link, in the order in which they will begin; works.lock */
	struct fab_flush flush;
	struct fab_bell bell;		/* for other engines; closed if there is only one */
	struct fab_domain *domain;
	struct fab_engine *engine;	/* borrowed: it owns this */
	struct fab_survey survey;
	struct fi_stats_wait *told;	/* owned: the oldest work that waits, in the page of the process; or NULL */
};

/* ---- references ---- */

/* struct fab_cntr.count_ended: an application that closes the counter may know from elsewhere that a work has ended,
 * and then nobody has run a pass of the counter's engine since. */
static void cntr_count_ended(struct fab_cntr *cntr)
{
	const struct fab_work_fit fit = { .ended_for = cntr };
	struct fab_work *work;

	while ((work = fab_work_take_back(cntr->domain, &fit)))
		fab_work_drop(work);
}

/* Take a reference to a counter. A counter that has not settled settles on the work's engine: an application may never
 * read a counter, and then only the engine of an endpoint makes progress for it. engine NULL: it settles on an engine
 * of its own. 0 or -FI_E* of settling; the reference is taken in either case, for fab_work_free(). */
static int cntr_get(struct fab_cntr *cntr, struct fab_engine *engine)
{
	struct fab_domain *domain = cntr->domain;
	int ret;

	atomic_fetch_add(&cntr->ref, 1);
	pthread_mutex_lock(&domain->engines.join_lock);
	cntr->count_ended = cntr_count_ended;
	if (engine && !cntr->wait.settled)
		ret = fab_queue_settle(domain, &cntr->wait, engine);
	else
		ret = fab_queue_settle_alone(domain, &cntr->wait);
	pthread_mutex_unlock(&domain->engines.join_lock);
	return ret;
}

static void cntr_put(struct fab_cntr *cntr)
{
	if (cntr)
		atomic_fetch_sub(&cntr->ref, 1);
}

void fab_work_free(struct fab_work *work)
{
	cntr_put(work->cntr);
	cntr_put(work->completion);
	cntr_put(work->target);
	free(work);
}

/* ---- running ready works ---- */

static const char ready_key;

/* The ready list of an engine, after ready_open(). */
static struct fab_ready *ready_of(const struct fab_engine *engine)
{
	return fab_container(fab_engine_attached(engine, &ready_key), struct fab_ready, attached);
}

static void ready_push(struct fab_work *work)
{
	fab_list_add_tail(&ready_of(work->engine)->works, &work->link);
}

/* Make the engine `to` run its ready list. The caller holds the lock of the engine `from`. */
static void ready_knock(struct fab_engine *to, struct fab_engine *from)
{
	if (to == from)
		fab_engine_flush_later(to, &ready_of(to)->flush);
	else
		fab_bell_ring(&ready_of(to)->bell);
}

/* Increment the completion counter of ended deferred work. The lock of the counter's engine is held. */
static void work_count(struct fab_work *work)
{
	struct fab_cntr *cntr = work->completion;

	fab_cntr_bump(cntr, work->failed ? &cntr->err : &cntr->value, 1);
	fab_work_free(work);
}

void fab_work_done(struct fab_hook *hook, enum fab_op_code code, const struct fab_comp *comp,
		      const struct fab_cq_fail *fail)
{
	struct fab_work *work = fab_container(hook, struct fab_work, hook);
	struct fab_ep *ep = work->ep;
	struct fab_cq *cq = code >= FAB_OP_RECV ? ep->bound.rx_cq : ep->bound.tx_cq;
	struct fab_engine *here = ep->engine;
	struct fab_comp mine = *comp;

	mine.context = work->context;
	work->failed = fail;
	if (work->report && fail)
		fab_ep_fail(ep, code, &mine, fail);
	else if (work->report)
		fab_ep_complete(ep, code, &mine, cq);
	else if (fail && cq)
		fab_cq_write_err(cq, &mine, fail);

	if (!work->completion) {
		fab_work_free(work);
	} else if (work->completion->wait.engine == here) {
		work_count(work);
	} else {
		work->ended = true;
		work->engine = work->completion->wait.engine;
		pthread_mutex_lock(&work->domain->works.lock);
		fab_list_add_tail(&work->domain->works.list, &work->all);
		ready_push(work);
		ready_knock(work->engine, here);
		pthread_mutex_unlock(&work->domain->works.lock);
	}
}

void fab_work_fail(struct fab_work *work, int err, const char *text)
{
	const struct fab_cq_fail fail = { .err = err, .prov_errno = err, .text = text };
	enum fab_op_code code = work->op.code;
	const struct fab_comp comp = {
		.context = work->context, .flags = fab_op_desc[code].cq_flags, .data = work->op.data,
		.tag = work->op.tag, .src = FI_ADDR_NOTAVAIL,
	};

	if (work->deferred) {
		fab_work_done(&work->hook, code, &comp, &fail);
	} else {
		fab_ep_fail(work->ep, code, &comp, &fail);
		fab_work_free(work);
	}
}

static void work_change_cntr(struct fab_work *work)
{
	struct fab_cntr *cntr = work->target;
	uint64_t now = atomic_load_explicit(&cntr->value, memory_order_relaxed);

	fab_cntr_bump(cntr, &cntr->value, work->set ? work->value - now : work->value);
	fab_work_free(work);
}

static void work_submit(struct fab_work *work)
{
	bool hooked = work->op.hooked;		/* a hooked work may have been freed when submit returns */
	int ret = work->submit(work->ep, &work->op);

	if (ret)
		fab_work_fail(work, -ret, "triggered, but it could not be submitted");
	else if (!hooked)
		fab_work_free(work);
}

static void work_run(struct fab_work *work)
{
	if (work->ended)
		work_count(work);
	else if (work->target)
		work_change_cntr(work);
	else
		work_submit(work);
}

static struct fab_work *ready_pop(struct fab_ready *ready)
{
	struct fab_work *work;

	pthread_mutex_lock(&ready->domain->works.lock);
	work = fab_list_first(&ready->works, struct fab_work, link);
	if (work) {
		fab_list_remove(&work->link);
		fab_list_remove(&work->all);
	}
	pthread_mutex_unlock(&ready->domain->works.lock);
	return work;
}

/* Run all ready works, including those that become ready meanwhile. Each work begins once, so the loop ends. Lock
 * held. */
static void ready_run(struct fab_ready *ready)
{
	struct fab_work *work;

	while ((work = ready_pop(ready)))
		work_run(work);
}

static void ready_flush(struct fab_flush *flush)
{
	ready_run(fab_container(flush, struct fab_ready, flush));
}

static void ready_rung(struct fab_bell *bell)
{
	ready_run(fab_container(bell, struct fab_ready, bell));
}

/* The oldest work of an engine that has not begun. works.lock held. */
static const struct fab_work *oldest_of(const struct fab_domain *domain, const struct fab_engine *engine)
{
	struct fab_list *link;
	int cnt = 0;

	fab_list_for_each(&domain->works.list, link) {
		const struct fab_work *work = fab_container(link, struct fab_work, all);

		if (work->engine == engine && !work->ended)
			return work;
		if (++cnt == LOOK_MAX)
			break;
	}
	return NULL;
}

/* Write the oldest work that waits for its counter to the page of the process. It is no endpoint's operation yet. */
static uint64_t survey_look(struct fab_survey *survey)
{
	struct fab_ready *ready = fab_container(survey, struct fab_ready, survey);
	struct fab_domain *domain = ready->domain;
	const struct fab_work *work;

	pthread_mutex_lock(&domain->works.lock);
	work = oldest_of(domain, ready->engine);
	if (work && !ready->told)
		ready->told = fab_stats_wait_open(domain->fabric->prov, true);
	if (work && ready->told)
		fab_stats_pending(&ready->told->pending, &(struct fi_stats_pending) {
			.number = work->number, .cnt = atomic_load_explicit(&work->cntr->value, memory_order_relaxed),
			.len = work->threshold, .state = FI_STATS_THRESHOLD, .peer = UINT32_MAX,
		});
	pthread_mutex_unlock(&domain->works.lock);
	if (work)
		return 1;
	fab_stats_wait_close(ready->told);
	ready->told = NULL;
	return 0;
}

static void ready_free(struct fab_attached *attached)
{
	struct fab_ready *ready = fab_container(attached, struct fab_ready, attached);

	fab_flush_cancel(&ready->flush);
	fab_bell_close(&ready->bell);
	fab_survey_del(&ready->survey);
	fab_stats_wait_close(ready->told);
	free(ready);
}

static int ready_open_locked(struct fab_domain *domain, struct fab_engine *engine)
{
	struct fab_ready *ready;
	int ret = 0;

	if (fab_engine_attached(engine, &ready_key))
		return 0;
	ready = calloc(1, sizeof(*ready));
	if (!ready)
		return -FI_ENOMEM;
	ready->attached = (struct fab_attached) { .key = &ready_key, .free = ready_free };
	ready->domain = domain;
	ready->engine = engine;
	fab_list_init(&ready->works);
	fab_flush_init(&ready->flush, ready_flush);
	if (domain->engines.per_queue)
		ret = fab_bell_open(&ready->bell, engine, ready_rung);
	if (ret) {
		free(ready);
		return ret;
	}
	ready->survey.look = survey_look;
	fab_survey_add(engine, &ready->survey);
	fab_engine_attach(engine, &ready->attached);
	return 0;
}

/* Make the ready list of an engine, if it has none. 0 or -FI_E*. No lock held. */
static int ready_open(struct fab_domain *domain, struct fab_engine *engine)
{
	int ret;

	fab_engine_lock(engine);
	ret = ready_open_locked(domain, engine);
	fab_engine_unlock(engine);
	return ret;
}

/* ---- waiting ---- */

/* True if the counter has reached the threshold. For deferred work failures count too: it may be the clean-up after
 * them. */
static bool reached(const struct fab_work *work, uint64_t ok, uint64_t err)
{
	return (work->deferred ? ok + err : ok) >= work->threshold;
}

/* struct fab_cntr.reached: works whose threshold the counter has reached become ready. The lock of the counter's engine
 * is held. */
static void cntr_reached(struct fab_cntr *cntr)
{
	uint64_t ok = atomic_load_explicit(&cntr->value, memory_order_relaxed);
	uint64_t err = atomic_load_explicit(&cntr->err, memory_order_relaxed);
	struct fab_list *link, *next;

	pthread_mutex_lock(&cntr->domain->works.lock);
	fab_list_for_each_safe(&cntr->waiting, link, next) {
		struct fab_work *work = fab_container(link, struct fab_work, link);

		if (work->threshold > ok + err)
			break;
		if (!reached(work, ok, err))
			continue;
		fab_list_remove(link);
		ready_push(work);
		ready_knock(work->engine, cntr->wait.engine);
	}
	cntr->armed = cntr->peer || !fab_list_empty(&cntr->waiting);
	pthread_mutex_unlock(&cntr->domain->works.lock);
}

/* Insert it into the counter's list, behind works with the same threshold. */
static void work_wait_for(struct fab_work *work)
{
	struct fab_list *place;

	for (place = work->cntr->waiting.prev; place != &work->cntr->waiting; place = place->prev) {
		if (fab_container(place, struct fab_work, link)->threshold <= work->threshold)
			break;
	}
	fab_list_add_after(place, &work->link);
}

/* Take references to all counters of a work, and choose the work's engine if that is its target's. 0; -FI_E*: the
 * references were taken, but not all counters have settled. */
static int take_counters(struct fab_work *work)
{
	int ret = 0, others = 0;

	if (work->target) {
		ret = cntr_get(work->target, NULL);
		work->engine = work->target->wait.engine;
	}
	if (work->completion)
		others = cntr_get(work->completion, work->engine);
	ret = ret ? ret : others;
	others = cntr_get(work->cntr, work->engine);
	return ret ? ret : others;
}

int fab_work_arm(struct fab_work *work)
{
	struct fab_domain *domain = work->domain;
	struct fab_cntr *cntr = work->cntr;
	struct fab_engine *engine;
	int ret;

	ret = take_counters(work);
	engine = work->engine;
	if (!ret)
		ret = ready_open(domain, engine);
	if (!ret && work->completion)
		ret = ready_open(domain, work->completion->wait.engine);
	if (ret) {
		fab_work_free(work);
		return ret;
	}
	fab_engine_lock(cntr->wait.engine);
	pthread_mutex_lock(&domain->works.lock);
	fab_list_add_tail(&domain->works.list, &work->all);
	work->number = ++domain->works.number;
	work_wait_for(work);
	pthread_mutex_unlock(&domain->works.lock);
	cntr->reached = cntr_reached;
	cntr_reached(cntr);
	fab_engine_unlock(cntr->wait.engine);

	fab_engine_lock(engine);
	ready_run(ready_of(engine));
	fab_engine_unlock(engine);
	return 0;
}

void fab_work_drop(struct fab_work *work)
{
	struct fab_engine *engine = work->engine;

	if (!work->ended) {
		fab_work_free(work);
		return;
	}
	fab_engine_lock(engine);
	work_count(work);
	fab_engine_unlock(engine);
}

static bool work_fits(const struct fab_work *work, const struct fab_work_fit *fit)
{
	if (work->ended && fit->deferred)
		return false;
	if (fit->ended_for)
		return work->ended && work->completion == fit->ended_for;
	return (!fit->ep || work->ep == fit->ep) && (!fit->context || work->context == fit->context) &&
	       (!fit->deferred || work->deferred == fit->deferred) && (!fit->cntr || work->cntr == fit->cntr) &&
	       !(fit->only_deferred && !work->deferred) && !(fit->only_triggered && work->deferred);
}

struct fab_work *fab_work_take_back(struct fab_domain *domain, const struct fab_work_fit *fit)
{
	struct fab_work *found = NULL;
	struct fab_list *link;

	pthread_mutex_lock(&domain->works.lock);
	fab_list_for_each(&domain->works.list, link) {
		struct fab_work *work = fab_container(link, struct fab_work, all);

		if (!work_fits(work, fit))
			continue;
		found = work;
		fab_list_remove(&work->link);
		fab_list_remove(&work->all);
		break;
	}
	pthread_mutex_unlock(&domain->works.lock);
	return found;
}
