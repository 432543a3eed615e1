/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What every provider's fabric and domain share: identity, API version, reference counts, threading and progress,
 * memory keys. A provider embeds these first in its own structs. Children hold a reference; fi_close with children is
 * -FI_EBUSY.
 *
 * Everything here is control: any thread, no engine lock held.
 *
 * Which engine and which lock (fi_domain(3), threading and progress):
 *   FI_PROGRESS_AUTO              one engine with a thread, mutex
 *   FI_THREAD_COMPLETION          an engine for each group of endpoints and the queues that they use, biased lock: the
 *                                 application serialises data calls on what an endpoint brings together, but control
 *                                 calls (closing a memory region, reading an EQ) may come from any thread. A mutex
 *                                 where two endpoints with different queues are brought together by a third thing.
 *                                 The domain's own engine, for queues that no endpoint uses yet and for counters of
 *                                 memory regions: mutex
 *   FI_THREAD_DOMAIN              one engine, biased lock, for the same reason
 *   one of these, control unified the same engines, no lock but that mutex
 *   FI_THREAD_ENDPOINT            one engine, owned lock: an endpoint is mostly one thread's, and often there is one
 *   anything else                 one engine, mutex
 */
#ifndef FAB_FABRIC_H
#define FAB_FABRIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_prov.h>
#include "base/list.h"
#include "common/domain/auth.h"
#include "common/domain/engines.h"
#include "common/regions/regions.h"
#include "common/engine/engine.h"

struct fab_connreq;
struct fab_eq;
struct fab_wait;

/* The handle of a request: fi_info.handle of an FI_CONNREQ points to fid. It outlives the request, so that no other
 * request has its address before FAB_CONNREQ_OLD_MAX more have been answered: a handle used twice is refused. */
struct fab_connreq_handle {
	struct fid fid;
	struct fab_list link;		/* in fabric->connreqs; once the request is taken, in old_connreqs */
	struct fab_connreq *req;	/* borrowed; NULL: taken */
};

struct fab_fabric {
	struct fid_fabric fabric_fid;	/* .api_version: what the application asked for */
	const struct fi_provider *prov;
	char *name;			/* owned */
	_Atomic uint32_t ref;
	struct fab_list link;		/* in the list of open fabrics, for fi_getinfo */
	pthread_mutex_t lock;		/* guards the lists, and what pep.h says; an engine's lock may be held */
	struct fab_list domains;	/* struct fab_domain.link, oldest first */
	struct fab_list peps;		/* struct fab_pep.link */
	struct fab_list connreqs;	/* struct fab_connreq_handle.link: requests that nobody has taken */
	struct fab_list old_connreqs;	/* of those that somebody has, the latest last: pep.h */
	uint32_t old_connreq_cnt;
};

/* Fill the embedded part: fid, context, ops, name and API version from attr. ops: what the provider supports; empty
 * slots are filled. 0 or -FI_ENOMEM. */
int fab_fabric_init(struct fab_fabric *fabric, const struct fi_provider *prov, const struct fi_fabric_attr *attr,
		    struct fi_ops *fid_ops, struct fi_ops_fabric *ops, void *context);
/* -FI_EBUSY while children live (logged: how many), else frees what init took and returns 0. */
int fab_fabric_fini(struct fab_fabric *fabric);

/* The same of a fabric that is no more than a struct fab_fabric: the provider's fabric slot but for the tables, and the
 * close slot of fid_ops. */
int fab_fabric_open(const struct fi_provider *prov, const struct fi_fabric_attr *attr, struct fi_ops *fid_ops,
		    struct fi_ops_fabric *ops, struct fid_fabric **fabric, void *context);
int fab_fabric_close(struct fid *fid);
/* fi_domain2(3), any fabric's slot: the domain slot where there are no flags, else -FI_EBADFLAGS, or -FI_EINVAL for
 * FI_PEER, which nobody has (fi_peer(3)); logged. */
int fab_domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, uint64_t flags,
		void *context);

/* For fi_getinfo: the oldest open fabric of the provider's that has this name and is this one; for a domain, in any
 * fabric of that name. NULL is any handle and any name; a handle is only compared, so it may be anything. NULL if there
 * is none. What is returned stays valid as long as the application closes nothing meanwhile, which fi_domain(3) leaves
 * to it. */
struct fid_fabric *fab_fabric_find(const struct fi_provider *prov, const struct fid_fabric *handle, const char *name);
struct fid_domain *fab_domain_find(const struct fi_provider *prov, const struct fid_domain *handle,
				   const char *fabric_name, const char *name);

/* What the domain was opened with: info's attributes as they were agreed on. Fixed. */
struct fab_domain_attr {
	enum fi_threading threading;
	enum fi_progress control_progress;
	enum fi_progress data_progress;	/* FI_PROGRESS_AUTO or FI_PROGRESS_MANUAL */
	uint32_t tclass;		/* of endpoints without one of their own; FI_TC_UNSPEC: none */
	enum fi_av_type av_type;	/* FI_AV_MAP or FI_AV_TABLE: replaces FI_AV_UNSPEC */
	enum fi_resource_mgmt resource_mgmt;
	int mr_mode;			/* FI_MR_BASIC and FI_MR_SCALABLE as the bits that they mean */
	uint64_t caps;			/* info->caps */
	uint32_t addr_format;		/* info->addr_format */
	uint32_t max_group_id;		/* of peer groups; 0: there are none */
};

/* The authorization keys of a domain. */
struct fab_domain_auth {
	struct fab_auth_key *key;	/* a reference: for endpoints and regions without one of their own; or NULL */
	bool per_av;			/* FI_AV_AUTH_KEY: the keys are those of address vectors */
	bool proven;			/* the provider makes peers prove keys: it sets this once the domain is open */
};

/* What fi_domain_bind() brings; the room of queues fills it (fab_domain_bind). */
struct fab_domain_events {
	struct fab_eq *eq;		/* borrowed with a reference; NULL: none */
	void (*put)(struct fab_eq *eq);	/* gives the reference back when the domain is closed */
	bool of_regions;		/* FI_REG_MR: registrations end in an event on eq */
};

/* Triggered operations and deferred work that have not begun; the room of triggers keeps them. */
struct fab_domain_works {
	pthread_mutex_t lock;		/* guards list; an engine's lock may be held */
	struct fab_list list;
};

struct fab_domain {
	struct fid_domain domain_fid;
	struct fab_fabric *fabric;	/* borrowed: init took a reference */
	char *name;			/* owned */
	struct fab_list link;		/* in fabric->domains */
	_Atomic uint32_t ref;
	struct fab_domain_attr attr;
	struct fab_engine engine;	/* the domain's own engine */
	struct fab_domain_engines engines;
	struct fab_domain_works works;
	struct fab_mr_map mr_map;
	struct fab_domain_events events;
	int (*lend)(struct fid *fid, struct fi_fid_export *exp);	/* as fab_domain_ops.lend; fixed */
	struct fab_domain_auth auth;
	bool av_firewall;		/* FI_FIREWALL_ADDR is known: its provider sets it, once the domain is open */
};

/* A provider's tables for its domains; empty slots are filled with typed -FI_ENOSYS. */
struct fab_domain_ops {
	struct fi_ops *fid;		/* .close included */
	struct fi_ops_domain *domain;
	struct fi_ops_mr *mr;
	/* FI_EXPORT_FID of an object of the domain: fab_lend(); NULL: -FI_ENOSYS */
	int (*lend)(struct fid *fid, struct fi_fid_export *exp);
};
/* Engine, keys, lists; checks that info's attributes are ones that this library can honour. 0 or -FI_E* (-FI_EINVAL is
 * logged). */
int fab_domain_init(struct fab_domain *domain, struct fab_fabric *fabric, const struct fi_info *info,
		    const struct fab_domain_ops *ops, void *context);
/* -FI_EBUSY while children live (logged: how many), else stops the engine, frees, returns 0. */
int fab_domain_fini(struct fab_domain *domain);
/* The same of a domain that is no more than a struct fab_domain; info may be NULL (-FI_EINVAL). close is the slot of
 * fid_ops. */
int fab_domain_open(struct fab_fabric *fabric, const struct fi_info *info, const struct fab_domain_ops *ops,
		    struct fid_domain **domain, void *context);
int fab_domain_close(struct fid *fid);
/* fi_set_ops(3), the domain's slot: FI_SET_OPS_HMEM_OVERRIDE. It is for copies from and to device memory, of which
 * there are none in domains without FI_HMEM, so the functions are never called. 0; -FI_EINVAL: ops is none;
 * -FI_EBADFLAGS; -FI_ENOSYS: another name. */
int fab_domain_set_ops(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);
/* The domain's control slot: FI_MAP_RAW_MR and FI_UNMAP_KEY, fi_mr(3). 0, -FI_EINVAL, or -FI_ENOSYS: the provider's
 * turn. */
int fab_domain_control(struct fid *fid, int command, void *arg);

/* FI_EXPORT_FID of an object of the domain, for its control slot. 0 or -FI_E*; -FI_ENOSYS: the provider lends none. */
static inline int fab_domain_lend(const struct fab_domain *domain, struct fid *fid, struct fi_fid_export *exp)
{
	return domain->lend ? domain->lend(fid, exp) : -FI_ENOSYS;
}

/*
 * Around what an atomic does to memory that peers reach through this domain, the engine's lock held: nobody else does
 * one meanwhile, on any engine of any domain in this process. It takes a lock, the last of all, only where there is
 * more than one such engine. True: it did, and fab_domain_unlock_atomics() must follow.
 */
bool fab_domain_lock_atomics(struct fab_domain *domain);
void fab_domain_unlock_atomics(void);

#endif
