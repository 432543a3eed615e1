/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What every provider's fabric and domain share: identity, API version, reference counts, threading and progress, memory keys.
 * A provider embeds these first in its own structs. Children hold a reference; fi_close with children is -FI_EBUSY.
 */
#ifndef FAB_FABRIC_H
#define FAB_FABRIC_H

#include <stdatomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_prov.h>
#include "common/mr.h"
#include "common/progress.h"

struct fab_fabric {
	struct fid_fabric fabric_fid;	/* .api_version: what the application asked for */
	const struct fi_provider *prov;
	char *name;			/* owned */
	_Atomic uint32_t ref;
	struct fab_list link;		/* in the provider-wide list that fi_getinfo reports open fabrics from */
	pthread_mutex_t lock;		/* guards domains */
	struct fab_list domains;	/* struct fab_domain.link */
};

/* Fill the embedded part: fid, context, ops, api version from attr. ops: what the provider supports; empty slots are filled. 0 or
 * -FI_ENOMEM. fini wants ref == 0. */
int fab_fabric_init(struct fab_fabric *fabric, const struct fi_provider *prov, const struct fi_fabric_attr *attr,
		    struct fi_ops *fid_ops, struct fi_ops_fabric *ops, void *context);
/* -FI_EBUSY while children live (logged: how many), else frees what init took and returns 0. */
int fab_fabric_fini(struct fab_fabric *fabric);

struct fab_domain {
	struct fid_domain domain_fid;
	struct fab_fabric *fabric;	/* borrowed: init took a reference */
	char *name;			/* owned */
	struct fab_list link;		/* in fabric->domains */
	_Atomic uint32_t ref;
	enum fi_threading threading;
	enum fi_progress control_progress;
	enum fi_progress data_progress;
	enum fi_av_type av_type;
	enum fi_resource_mgmt resource_mgmt;
	int mr_mode;			/* as agreed in fi_getinfo */
	uint64_t caps;			/* info->caps at open */
	bool per_cq_progress;		/* FI_THREAD_COMPLETION with manual progress: an engine per CQ or counter */
	struct fab_progress progress;	/* the domain's engine */
	struct fab_mr_map mr_map;
	struct fab_eq *eq;		/* borrowed: fi_domain_bind took a reference; NULL if none */
};

/* Engine, keys, lists; checks that info's attributes are ones that this library can honour. 0 or -FI_E*. */
int fab_domain_init(struct fab_domain *domain, struct fab_fabric *fabric, const struct fi_info *info,
		    struct fi_ops *fid_ops, struct fi_ops_domain *ops, struct fi_ops_mr *mr_ops, void *context);
/* -FI_EBUSY while children live (logged: how many), else stops the engine, frees, returns 0. */
int fab_domain_fini(struct fab_domain *domain);
/* fi_domain_bind: an EQ; FI_REG_MR and 0 accepted as fi_domain(3) says. 0 or -FI_EINVAL/-FI_EBUSY. */
int fab_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags);

/* The engine for a new CQ or counter: the domain's, or a new one when per_cq_progress (*own = true). 0 or -FI_E*. */
int fab_domain_get_progress(struct fab_domain *domain, struct fab_progress **progress, bool *own);
void fab_domain_put_progress(struct fab_domain *domain, struct fab_progress *progress, bool own);

#endif
