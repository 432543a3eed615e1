/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive contexts over a device's shared receive queue. A context is a struct vrb_ep whose receiving half alone
 * is in use; receives are posted to it as to any endpoint. RC endpoints that are bound to it point to it. Context and
 * endpoints are on one engine, whose lock guards them.
 */
#ifndef VRB_SRX_H
#define VRB_SRX_H

#include "verbs/verbs.h"

#define VRB_SRX_BUCKETS	64

struct vrb_srx {
	struct vrb_ep ep;		/* all its receives complete to ep.hw_cq, set by the first fi_enable */
	struct ibv_srq *srq;		/* owned */
	uint32_t user_cnt;		/* endpoints bound */
	struct fab_list takers[VRB_SRX_BUCKETS];	/* vrb_ep.taker of those with a queue pair, by its number */
};

/* fi_srx_context(3), a vrb_kind.srx_open. 0 or -FI_E*, logged. No lock held. */
int vrb_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx, void *context);
/* fi_ep_bind(3) of a context to an endpoint, which takes a reference. 0; -FI_EINVAL, -FI_EDOMAIN or -FI_EOPBADSTATE,
 * logged. No lock held. */
int vrb_srx_bind(struct vrb_ep *ep, struct fid *fid, uint64_t flags);
/* Undo vrb_srx_bind(), when the endpoint is closed. No lock held. */
void vrb_srx_unbind(struct vrb_ep *ep);
/* For fi_enable(3): make sure that the context has a hardware completion queue. 0 or -FI_E*. No lock held. */
int vrb_srx_ready(struct vrb_srx *srx);
/* ep->qp takes receives of the context from now on. Lock held. */
void vrb_srx_join(struct vrb_ep *ep);
/* ep->qp is in the error state or destroyed: process the completions of its receives; it takes no more. Lock held. */
void vrb_srx_leave(struct vrb_ep *ep);
/* Before ep->qp, which is in the error state, is destroyed: wait until the device reports that it has given back all
 * receives that it took, for LAST_NS at most. Lock held. */
void vrb_srx_settle(struct vrb_ep *ep);
/* The endpoint whose queue pair has this number; NULL: it has left the context. Lock held. */
static inline struct vrb_ep *vrb_srx_taker(const struct vrb_srx *srx, uint32_t qpn)
{
	const struct fab_list *list = &srx->takers[qpn % VRB_SRX_BUCKETS];
	struct fab_list *link;

	fab_list_for_each(list, link) {
		struct vrb_ep *ep = fab_container(link, struct vrb_ep, taker);

		if (ep->qpn == qpn)
			return ep;
	}
	return NULL;
}

/* Fill the empty slots of the operation tables. Called once, at load. */
void vrb_srx_fill_ops(void);

#endif
