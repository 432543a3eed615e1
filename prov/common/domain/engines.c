/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See engines.h.
 */
#include "common/domain/engines.h"

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "common/domain/domain.h"

/* An engine beside the domain's own. Guarded by engines.lock. */
struct queue_engine {
	struct fab_engine engine;	/* first: a struct fab_engine * of such an engine points here */
	struct fab_list link;		/* in engines.list */
	uint32_t ref;
	uint32_t queue_cnt;		/* CQs and counters added so far */
	uint32_t ep_cnt;		/* endpoints on it now */
	struct fab_follow follow;	/* if it follows the domain's own engine (fab_domain_lead()); join_lock */
};

/* Implements the table at the head of domain.h. */
static void choose_engines(struct fab_domain *domain, struct fab_engine_attr *attr)
{
	bool automatic = domain->attr.data_progress == FI_PROGRESS_AUTO;
	bool unified = domain->attr.control_progress == FI_PROGRESS_CONTROL_UNIFIED;

	domain->engines.per_queue = domain->attr.threading == FI_THREAD_COMPLETION && !automatic;
	domain->engines.shared = !unified || (domain->attr.threading != FI_THREAD_COMPLETION &&
					      domain->attr.threading != FI_THREAD_DOMAIN);
	*attr = (struct fab_engine_attr) {
		.auto_progress = automatic,
		/* the domain's own engine has queues of several threads, until endpoints use them */
		.shared = domain->engines.shared || domain->engines.per_queue,
		.data_serial = domain->attr.threading == FI_THREAD_DOMAIN,
		.data_owned = domain->attr.threading == FI_THREAD_ENDPOINT,
		.name = "fi-progress",
	};
}

int fab_domain_engines_init(struct fab_domain *domain)
{
	struct fab_engine_attr attr;
	int ret;

	choose_engines(domain, &attr);
	attr.prov = domain->fabric->prov;
	ret = fab_engine_init(&domain->engine, &attr);
	if (ret)
		return ret;
	pthread_mutex_init(&domain->engines.join_lock, NULL);
	pthread_mutex_init(&domain->engines.lock, NULL);
	fab_list_init(&domain->engines.list);
	return 0;
}

void fab_domain_engines_fini(struct fab_domain *domain)
{
	fab_engine_fini(&domain->engine);
	pthread_mutex_destroy(&domain->engines.join_lock);
	pthread_mutex_destroy(&domain->engines.lock);
}

int fab_domain_get_engine(struct fab_domain *domain, struct fab_engine **engine)
{
	struct queue_engine *queued;
	int ret;

	if (!domain->engines.per_queue) {
		*engine = &domain->engine;
		return 0;
	}
	queued = calloc(1, sizeof(*queued));
	if (!queued)
		return -FI_ENOMEM;
	ret = fab_engine_init(&queued->engine, &(struct fab_engine_attr) { .shared = domain->engines.shared,
			      .data_serial = true, .prov = domain->fabric->prov });
	if (ret) {
		free(queued);
		return ret;
	}
	queued->ref = 1;
	pthread_mutex_lock(&domain->engines.lock);
	fab_list_add_tail(&domain->engines.list, &queued->link);
	pthread_mutex_unlock(&domain->engines.lock);
	*engine = &queued->engine;
	return 0;
}

/* Add to the counts of references, queues and endpoints of an engine, or subtract endpoints. Inflates the engine's lock
 * if it must become a mutex. */
static void engine_count(struct fab_domain *domain, struct fab_engine *engine, int refs, int queues, int eps)
{
	struct queue_engine *queued = (struct queue_engine *) engine;
	bool crossed;

	if (engine == &domain->engine)
		return;
	pthread_mutex_lock(&domain->engines.lock);
	queued->ref += refs;
	queued->queue_cnt += queues;
	queued->ep_cnt += eps;
	crossed = queued->queue_cnt > 1 && queued->ep_cnt > 1;
	pthread_mutex_unlock(&domain->engines.lock);
	if (crossed && (queues || eps > 0))
		fab_lock_inflate(&engine->lock);
}

void fab_domain_hold_engine(struct fab_domain *domain, struct fab_engine *engine)
{
	engine_count(domain, engine, 1, 0, 0);
}

void fab_domain_add_queue(struct fab_domain *domain, struct fab_engine *engine)
{
	engine_count(domain, engine, 1, 1, 0);
}

void fab_domain_add_ep(struct fab_domain *domain, struct fab_engine *engine)
{
	engine_count(domain, engine, 1, 0, 1);
}

void fab_domain_put_engine(struct fab_domain *domain, struct fab_engine *engine)
{
	struct queue_engine *queued = (struct queue_engine *) engine;
	bool last;

	if (engine == &domain->engine)
		return;
	pthread_mutex_lock(&domain->engines.lock);
	last = !--queued->ref;
	if (last)
		fab_list_remove(&queued->link);
	pthread_mutex_unlock(&domain->engines.lock);
	if (last) {
		fab_engine_unfollow(&queued->follow);
		fab_engine_fini(&queued->engine);
		free(queued);
	}
}

void fab_domain_del_ep(struct fab_domain *domain, struct fab_engine *engine)
{
	engine_count(domain, engine, 0, 0, -1);
	fab_domain_put_engine(domain, engine);
}

int fab_domain_lead(struct fab_domain *domain, struct fab_engine *engine)
{
	struct queue_engine *queued = (struct queue_engine *) engine;

	if (engine == &domain->engine || queued->follow.lead)
		return 0;
	return fab_engine_follow(&queued->follow, engine, &domain->engine);
}

void fab_domain_quiesce(struct fab_domain *domain)
{
	struct fab_list *link;

	fab_engine_lock(&domain->engine);
	fab_engine_unlock(&domain->engine);
	pthread_mutex_lock(&domain->engines.lock);
	fab_list_for_each(&domain->engines.list, link) {
		struct queue_engine *queued = fab_container(link, struct queue_engine, link);

		fab_engine_lock(&queued->engine);
		fab_engine_unlock(&queued->engine);
	}
	pthread_mutex_unlock(&domain->engines.lock);
}
