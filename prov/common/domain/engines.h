/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engines of a domain: its own engine, and with FI_THREAD_COMPLETION one for each group of endpoints and queues.
 * The table at the head of domain.h has the kind of lock of each; doc/decisions/engines.md has the reasons.
 *
 * A completion queue or counter is opened on the domain's own engine. fi_enable() of the first endpoint that uses the
 * queue moves it to its final engine (fab_queue_settle()). An engine lives as long as a queue or an endpoint uses it;
 * the domain's own engine lives as long as the domain.
 *
 * Control. Locks, outermost first: join_lock, engines.lock, an engine's lock, the lock of the domain's own engine.
 */
#ifndef FAB_ENGINES_H
#define FAB_ENGINES_H

#include <pthread.h>
#include <stdbool.h>
#include "base/list.h"
#include "common/engine/engine.h"

struct fab_domain;

struct fab_domain_engines {
	bool per_queue;			/* queues get other engines than the domain's own. Constant */
	bool shared;			/* fab_engine_attr.shared of other engines. Constant */
	/* Held while the engine of a queue, counter, endpoint or shared context is chosen or dropped; taken before all
	 * other locks of the domain and its engines. */
	pthread_mutex_t join_lock;
	pthread_mutex_t lock;		/* guards list, and the counts of each engine in engines.c */
	struct fab_list list;		/* all engines but the domain's own */
};

/* Make the domain's own engine, as its threading and progress require. 0 or -FI_E*. fini stops and frees it, when there
 * is no other engine. */
int fab_domain_engines_init(struct fab_domain *domain);
void fab_domain_engines_fini(struct fab_domain *domain);

/* Get the engine for queues and endpoints that have none yet: a new one with per_queue, otherwise the domain's own. The
 * caller has a reference, and drops it with fab_domain_put_engine(). 0 or -FI_E*. */
int fab_domain_get_engine(struct fab_domain *domain, struct fab_engine **engine);
/* Take another reference to an engine of the domain. */
void fab_domain_hold_engine(struct fab_domain *domain, struct fab_engine *engine);
/* Drop a reference. The last one frees an engine that is not the domain's own. No engine's lock held. */
void fab_domain_put_engine(struct fab_domain *domain, struct fab_engine *engine);

/* Add a completion queue or counter, or an endpoint, to an engine, with a new reference. If several of both are on the
 * engine, two of them may have nothing in common, and FI_THREAD_COMPLETION does not serialise calls on these: the
 * engine's lock then becomes a mutex. No engine's lock held. */
void fab_domain_add_queue(struct fab_domain *domain, struct fab_engine *engine);
void fab_domain_add_ep(struct fab_domain *domain, struct fab_engine *engine);
/* Remove an endpoint from an engine, and drop its reference. For a queue, fab_domain_put_engine() is enough. */
void fab_domain_del_ep(struct fab_domain *domain, struct fab_engine *engine);

/* Make an engine follow the domain's own one from now on (fab_engine_follow()), so that endpoints there may use queues
 * and shared contexts that are here. join_lock held, no engine's lock. 0 or -errno. */
int fab_domain_lead(struct fab_domain *domain, struct fab_engine *engine);

/* Wait until every engine of the domain has released its lock once. Afterwards no engine can still be reading memory
 * that was removed before from a structure that engines read under their own lock only. */
void fab_domain_quiesce(struct fab_domain *domain);

#endif
