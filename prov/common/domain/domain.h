/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The common part of all providers' fabrics and domains: names, API version, reference counts, threading and progress,
 * memory keys. A provider embeds these structs first in its own. Objects opened from them hold a reference; fi_close()
 * returns -FI_EBUSY while there are any.
 *
 * Everything here is control: any thread, no engine lock held.
 *
 * Engines and their locks (fi_domain(3), threading and progress):
 *
 *   FI_PROGRESS_AUTO              one engine with a thread, mutex
 *   FI_THREAD_COMPLETION          an engine for each group of endpoints and the queues that they use, biased lock: the
 *                                 application serialises data calls on objects with a common endpoint, but control
 *                                 calls (closing a memory region, reading an EQ) may come from any thread. A mutex if
 *                                 two endpoints with different queues are joined by a third object. The domain's own
 *                                 engine, for queues that no endpoint uses yet, endpoints with queues of several
 *                                 engines, and counters of memory regions: mutex, taken with those of these engines
 *   FI_THREAD_DOMAIN              one engine, biased lock, for the same reason
 *   one of these, control unified the same engines, no lock except that mutex
 *   FI_THREAD_ENDPOINT            one engine, owned lock: mostly one thread uses an endpoint, and often there is one
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
struct fab_domain;
struct fab_domain_ops;
struct fab_ep;
struct fab_eq;
struct fab_wait;

/* The handle of a connection request: fi_info.handle of an FI_CONNREQ points to fid. The handle outlives the request:
 * its address is not used again before FAB_CONNREQ_OLD_MAX further requests were answered. So a handle that is used
 * twice is detected and refused. */
struct fab_connreq_handle {
	struct fid fid;
	struct fab_list link;		/* in fabric->connreqs, or in old_connreqs after the request was taken */
	struct fab_connreq *req;	/* borrowed; NULL: the request was taken */
	uint64_t number;		/* of the request at its passive endpoint */
};

struct fab_fabric {
	struct fid_fabric fabric_fid;	/* .api_version: the application's */
	const struct fi_provider *prov;
	const struct fab_domain_ops *domain_ops;	/* of fab_domain_open(), by fab_fabric_open() */
	char *name;			/* owned */
	_Atomic uint32_t ref;
	struct fab_list link;		/* in the list of open fabrics, for fi_getinfo */
	pthread_mutex_t lock;		/* guards the lists below, and members that pep.h names; an engine's lock may be
					 * held */
	struct fab_list domains;	/* struct fab_domain.link, oldest first */
	struct fab_list peps;		/* struct fab_pep.link */
	struct fab_list connreqs;	/* struct fab_connreq_handle.link: requests that were not taken yet */
	struct fab_list old_connreqs;	/* handles of requests that were taken, latest last: pep.h */
	uint32_t old_connreq_cnt;
	bool layered;			/* FAB_CONTROL_LAYERED. Constant once it has domains */
};

/* Initialise the embedded part: fid, context, ops, name and API version from attr. The tables have the operations that
 * the provider supports; empty entries are filled. 0 or -FI_ENOMEM. */
int fab_fabric_init(struct fab_fabric *fabric, const struct fi_provider *prov, const struct fi_fabric_attr *attr,
		    struct fi_ops *fid_ops, struct fi_ops_fabric *ops, void *context);
/* A command of fi_control() on a fabric, without argument: a layered provider has opened it, whose endpoints are shown
 * to the user in place of this fabric's (common/stats). Providers of other libraries do not know it. */
#define FAB_CONTROL_LAYERED	0x66616201
/* Free the memory of fab_fabric_init(). 0; -FI_EBUSY (logged with their number): objects of the fabric are open, and
 * nothing was done. */
int fab_fabric_fini(struct fab_fabric *fabric);

/* fi_fabric(3) of a provider whose fabric is a plain struct fab_fabric: the provider's fabric function with tables
 * added. domain_ops is for fab_domain_open(). 0 or -FI_ENOMEM. */
int fab_fabric_open(const struct fi_provider *prov, const struct fi_fabric_attr *attr, struct fi_ops_fabric *ops,
		    const struct fab_domain_ops *domain_ops, struct fid_fabric **fabric, void *context);
/* The slot of every fabric for fi_domain2(3): calls the domain slot if there are no flags. -FI_EBADFLAGS; -FI_EINVAL
 * for FI_PEER, which no provider supports (fi_peer(3)); logged. */
int fab_domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, uint64_t flags,
		void *context);

/* For fi_getinfo(): find the oldest open fabric of the provider with this handle and name, or the oldest open domain
 * with this handle and name in a fabric with the given name. NULL stands for any handle or name; a handle is only
 * compared, so it may be invalid. NULL: no such object. The result stays valid as long as the application does not
 * close it meanwhile, which fi_domain(3) requires of the application. */
struct fid_fabric *fab_fabric_find(const struct fi_provider *prov, const struct fid_fabric *handle, const char *name);
struct fid_domain *fab_domain_find(const struct fi_provider *prov, const struct fid_domain *handle,
				   const char *fabric_name, const char *name);

/* Domain attributes that the domains of all our providers have in common, for the domain_attr of an offer. cnt: limit
 * of objects of each kind in a domain. */
#define FAB_DOMAIN_LIMITS(cnt)										\
	.threading = FI_THREAD_SAFE, .resource_mgmt = FI_RM_ENABLED, .av_type = FI_AV_UNSPEC,		\
	.mr_key_size = FAB_MR_KEY_SIZE, .mr_iov_limit = FAB_MR_IOV_LIMIT, .mr_cnt = cnt, .cq_cnt = cnt,	\
	.cntr_cnt = cnt, .ep_cnt = cnt, .tx_ctx_cnt = cnt, .rx_ctx_cnt = cnt, .max_ep_tx_ctx = 1,	\
	.max_ep_rx_ctx = 1, .max_cntr_value = UINT64_MAX, .max_err_cntr_value = UINT64_MAX

/* The attributes of the domain, as agreed when it was opened. Constant. */
struct fab_domain_attr {
	enum fi_threading threading;
	enum fi_progress control_progress;
	enum fi_progress data_progress;	/* FI_PROGRESS_AUTO if data or control asks for it, as one thread makes both
					 * kinds of progress; otherwise FI_PROGRESS_MANUAL */
	uint32_t tclass;		/* for endpoints without a class of their own; FI_TC_UNSPEC: none */
	enum fi_av_type av_type;	/* FI_AV_MAP or FI_AV_TABLE: replaces FI_AV_UNSPEC */
	enum fi_resource_mgmt resource_mgmt;
	int mr_mode;			/* FI_MR_BASIC and FI_MR_SCALABLE are replaced by the bits for which they
					 * stand */
	uint64_t caps;			/* info->caps */
	uint32_t addr_format;		/* info->addr_format */
	uint32_t max_group_id;		/* largest peer group; 0: not supported */
};

/* The authorization keys of a domain. */
struct fab_domain_auth {
	struct fab_auth_key *key;	/* has a reference; for endpoints and regions without a key of their own; or
					 * NULL */
	struct fab_auth_key *spare;	/* has a reference; for endpoints that would have no key, or NULL; set by the
					 * provider after it opened the domain */
	bool per_av;			/* FI_AV_AUTH_KEY: the keys are in address vectors */
	bool proven;			/* the provider supports keys; set by the provider after it opened the domain */
};

/* The event queue bound by fi_domain_bind(), set by fab_domain_bind() of the room of queues. */
struct fab_domain_events {
	struct fab_eq *eq;		/* has a reference; NULL: not bound */
	void (*put)(struct fab_eq *eq);	/* drops the reference when the domain is closed */
	bool of_regions;		/* FI_REG_MR: each registration ends with an event on eq */
};

/* Triggered operations and deferred work that have not begun, for the room of triggers. */
struct fab_domain_works {
	pthread_mutex_t lock;		/* guards the rest; an engine's lock may be held */
	struct fab_list list;
	uint64_t number;		/* works so far */
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
	const struct fab_domain_ops *ops;	/* borrowed; the tables it was opened with */
	struct fab_domain_auth auth;
	struct fi_hmem_override_ops hmem_own;	/* FI_SET_OPS_HMEM_OVERRIDE; size 0: none */
	/* With FI_HMEM: the provider's device reaches memory of other devices (peer to peer); it does so always, and
	 * the provider copies nothing. Set by the provider after it opened the domain */
	bool hmem_p2p, hmem_p2p_only;
	uint8_t (*hmem_of)(const void *desc);	/* for fab_domain_hmem(); NULL: a descriptor is a struct fab_mr */
	bool av_firewall;		/* FI_FIREWALL_ADDR is supported; set by the provider after it opened the
					 * domain */
};

/* The provider's part of opening an endpoint (fab_ep_open()). ep is zeroed memory that begins with a struct fab_ep, and
 * info has all attribute structures. Checks info, its type included, and calls fab_ep_init(). 0; -FI_E*: all is
 * undone. */
typedef int fab_ep_init_fn(struct fab_ep *ep, struct fab_domain *domain, const struct fi_info *info, void *context);

/* A provider's operation tables for domains; empty entries are filled with -FI_ENOSYS functions. */
struct fab_domain_ops {
	struct fi_ops *fid;		/* including close */
	struct fi_ops_domain *domain;
	struct fi_ops_mr *mr;
	/* FI_EXPORT_FID for objects of the domain: fab_lend(); NULL: -FI_ENOSYS */
	int (*lend)(struct fid *fid, struct fi_fid_export *exp);
	fab_ep_init_fn *ep_init;	/* for fab_ep_open() */
	size_t ep_size;			/* likewise: bytes of the provider's struct of an endpoint */
};
/* Initialise the embedded part, which is zeroed memory, with its engine, and check that this library supports info's
 * attributes. 0 or -FI_E* (-FI_EINVAL is logged). */
int fab_domain_init(struct fab_domain *domain, struct fab_fabric *fabric, const struct fi_info *info,
		    const struct fab_domain_ops *ops, void *context);
/* Stop the engine and free the memory of fab_domain_init(). 0; -FI_EBUSY (logged with their number): objects of the
 * domain are open, and nothing was done. */
int fab_domain_fini(struct fab_domain *domain);
/* fi_domain(3) of a provider whose domain is a plain struct fab_domain: the domain slot of a fabric that
 * fab_fabric_open() opened. info may be NULL (-FI_EINVAL). Otherwise returns as fab_domain_init(). */
int fab_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);
/* The close slot of such a domain. */
int fab_domain_close(struct fid *fid);
/* The domain's fi_set_ops(3) slot: FI_SET_OPS_HMEM_OVERRIDE. Its functions copy from and to memory of devices that is
 * registered from then on. Domains without FI_HMEM make no such copies, so they are never called. 0; -FI_EINVAL: ops is
 * NULL, or lacks a function; -FI_EBADFLAGS; -FI_ENOSYS: another name. */
int fab_domain_set_ops(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context);
/* The domain's control slot: FI_MAP_RAW_MR and FI_UNMAP_KEY, fi_mr(3). 0, -FI_EINVAL, or -FI_ENOSYS for other commands,
 * which the provider may handle. */
int fab_domain_control(struct fid *fid, int command, void *arg);

/* The number of the memory behind a descriptor of the domain's regions, or NULL: a device's, or 0 (hmem/hmem.h). */
static inline uint8_t fab_domain_hmem(const struct fab_domain *domain, const void *desc)
{
	if (!desc)
		return 0;
	return domain->hmem_of ? domain->hmem_of(desc) : ((const struct fab_mr *) desc)->hmem;
}

/* FI_EXPORT_FID for an object of the domain, called by the object's control slot. 0 or -FI_E*; -FI_ENOSYS: the provider
 * does not export objects. */
static inline int fab_domain_lend(const struct fab_domain *domain, struct fid *fid, struct fi_fid_export *exp)
{
	return domain->ops->lend ? domain->ops->lend(fid, exp) : -FI_ENOSYS;
}

/*
 * Called around the change that an atomic operation makes to memory of this domain, with the engine's lock held. In
 * between, no other thread changes memory by an atomic, on any engine of any domain of the process. It takes a lock,
 * which is the last in the order of locks, only if there are several such engines. True: the lock was taken, and
 * fab_domain_unlock_atomics() must follow.
 */
bool fab_domain_lock_atomics(struct fab_domain *domain);
void fab_domain_unlock_atomics(void);

#endif
