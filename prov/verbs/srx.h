/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive contexts over a device's shared receive queue. A context is a struct vrb_ep of which only the
 * receiving half is in use, and which endpoints over reliable connections point to for theirs: one posts to it as to
 * any endpoint. All of them are on one engine, whose lock guards it.
 */
#ifndef VRB_SRX_H
#define VRB_SRX_H

#include "verbs/verbs.h"

#define VRB_SRX_BUCKETS	64

struct vrb_srx {
	struct vrb_ep ep;		/* ep.hw_cq, ep.reserved: where all completes, from the first fi_enable on */
	struct ibv_srq *srq;		/* owned */
	uint32_t user_cnt;		/* endpoints bound */
	struct fab_list takers[VRB_SRX_BUCKETS];	/* vrb_ep.taker of those with a queue pair, by its number */
};

/* The domain's slot of fi_srx_context(3), for kinds that have it. 0 or -FI_E*, logged. */
int vrb_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx, void *context);
/* fi_ep_bind of a context. 0; -FI_EINVAL, -FI_EDOMAIN, -FI_EOPBADSTATE, logged. No lock held. */
int vrb_srx_bind(struct vrb_ep *ep, struct fid *fid, uint64_t flags);
/* The endpoint does not need it any more. No lock held. */
void vrb_srx_unbind(struct vrb_ep *ep);
/* For fi_enable: has the context a queue to complete to? 0 or -FI_E*. No lock held. */
int vrb_srx_ready(struct vrb_srx *srx);
/* ep->qp receives from it: from now on, until the second is called, which takes what it has received before. ep->qp
 * is in error then, or no more. Lock held. */
void vrb_srx_join(struct vrb_ep *ep);
void vrb_srx_leave(struct vrb_ep *ep);
/* Before ep->qp, which is in error, is destroyed: wait until it has given back what it took of the context, as far as
 * the device tells, for LAST_NS at most. Lock held. */
void vrb_srx_settle(struct vrb_ep *ep);
/* The endpoint whose queue pair has this number; NULL: there is none any more. Lock held. */
struct vrb_ep *vrb_srx_taker(const struct vrb_srx *srx, uint32_t qpn);

/* Complete the tables of calls: once, as the provider is loaded. */
void vrb_srx_fill_ops(void);

#endif
