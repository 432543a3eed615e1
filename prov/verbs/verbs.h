/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The provider as its parts see it: each header has one idea.
 *
 * An endpoint (ep.h) is a queue pair of one kind (kind.h). Work completions arrive in hardware completion queues, which
 * belong to the poller (poller.h) of an engine. The poller turns them into entries of prov/common's completion queues
 * and counters.
 */
#ifndef VRB_VERBS_H
#define VRB_VERBS_H

#include "verbs/cm.h"
#include "verbs/data.h"
#include "verbs/domain.h"
#include "verbs/ep.h"
#include "verbs/gid.h"
#include "verbs/lib.h"
#include "verbs/params.h"
#include "verbs/pep.h"

/* ---- calls of the provider, fabric and domain tables: 0 or -FI_E*; no lock held ---- */

/* fi_getinfo(3) of the provider. */
int vrb_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
/* Check that an info asks for nothing that this kind does not offer. 0; or -FI_E*, logged. */
int vrb_info_check(const struct vrb_kind *kind, const struct fi_info *info, uint32_t version);
/* True if regions of a domain of this info may be written in any order (FI_VERBS_RELAXED_ORDERING). */
bool vrb_info_relaxed(const struct fi_info *info);
/* fi_fabric(3). */
int vrb_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
/* fi_domain(3). */
int vrb_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context);
/* fi_passive_ep(3). */
int vrb_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep, void *context);
/* fi_endpoint(3): the domain's ep_init. */
fab_ep_init_fn vrb_ep_init;

/* Each fills the empty slots of its file's operation tables; vrb_data_fill_ops() those of ops.c. Called once, at
 * load. */
void vrb_domain_fill_ops(void);
void vrb_cq_fill_ops(void);
void vrb_ep_fill_ops(void);
void vrb_cm_fill_ops(void);
void vrb_data_fill_ops(void);
void vrb_mr_fill_ops(void);

#endif
