/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The engines of a domain: its own, and with FI_THREAD_COMPLETION one for each group of endpoints and queues. The table
 * at the head of domain.h says which kind of lock each has; doc/decisions/engines.md says why.
 *
 * A completion queue or counter opens on the domain's own engine. fi_enable() of the first endpoint that uses it gives
 * it the engine that it stays on (fab_queue_settle). An engine lives as long as a queue or an endpoint uses it; the
 * domain's own lives as long as the domain.
 *
 * Control. Locks, outermost first: join_lock, engines.lock, the lock of an engine, that of the domain's own engine.
 */
#ifndef FAB_ENGINES_H
#define FAB_ENGINES_H

#include <pthread.h>
#include <stdbool.h>
#include "base/list.h"
#include "common/engine/engine.h"

struct fab_domain;

struct fab_domain_engines {
	bool per_queue;			/* queues get engines beside the domain's own. Fixed */
	bool shared;			/* what further engines get as their `shared`. Fixed */
	/* Held while the engine of a queue, counter, endpoint or shared context is chosen or given back; outside of all
	 * other locks of the domain and its engines. */
	pthread_mutex_t join_lock;
	pthread_mutex_t lock;		/* guards list, and what engines.c keeps of each engine */
	struct fab_list list;		/* the engines beside the domain's own */
};

/* Make the domain's own engine, as its threading and progress demand. 0 or -FI_E*. fini stops and frees it; there is no
 * other engine then. */
int fab_domain_engines_init(struct fab_domain *domain);
void fab_domain_engines_fini(struct fab_domain *domain);

/* The engine for queues and endpoints that have none yet: a new one where engines are per queue, else the domain's own.
 * The caller has a reference, for fab_domain_put_engine(). 0 or -FI_E*. */
int fab_domain_get_engine(struct fab_domain *domain, struct fab_engine **engine);
/* One more reference to an engine of the domain. */
void fab_domain_hold_engine(struct fab_domain *domain, struct fab_engine *engine);
/* Give a reference back; an engine that is not the domain's own is freed with the last one. No engine's lock held. */
void fab_domain_put_engine(struct fab_domain *domain, struct fab_engine *engine);

/* A completion queue or counter, or an endpoint, comes to an engine, with a reference of its own. Where several of both
 * are on it, two of them may have nothing in common, so that FI_THREAD_COMPLETION does not serialise calls on them: its
 * lock becomes a mutex. No engine's lock held. */
void fab_domain_add_queue(struct fab_domain *domain, struct fab_engine *engine);
void fab_domain_add_ep(struct fab_domain *domain, struct fab_engine *engine);
/* An endpoint goes away: with its reference. A queue only gives its reference back (fab_domain_put_engine). */
void fab_domain_del_ep(struct fab_domain *domain, struct fab_engine *engine);

/* Return once every engine of the domain has been outside its lock: whatever was taken out of a structure that engines
 * read without a lock of its own has no reader left. */
void fab_domain_quiesce(struct fab_domain *domain);

#endif
