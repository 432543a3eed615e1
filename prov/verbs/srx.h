/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Shared receive contexts over a device's shared receive queue (SRQ). A context is a struct vrb_ep whose receiving half
 * alone is in use; receives are posted to it as to any endpoint. Endpoints that are bound to it point to it. Context
 * and endpoints are on one engine, whose lock guards them. A context is a kind of its own: vrb_rc_srx in srx.c, and
 * vrb_xrc_srx in xrc_srx.c.
 */
#ifndef VRB_SRX_H
#define VRB_SRX_H

#include "verbs/verbs.h"

#define VRB_SRX_BUCKETS	64

struct vrb_srx {
	struct vrb_ep ep;		/* all its receives complete to ep.hw_cq, set by the first fi_enable */
	struct ibv_srq *srq;		/* owned; over XRC NULL before the first fi_enable */
	uint32_t user_cnt;		/* endpoints bound */
	bool names_taker;		/* somebody has asked for FAB_OPT_NAMES_TAKER, and relies on it */
	struct fab_list takers[VRB_SRX_BUCKETS];	/* vrb_ep.taker of those that have joined, by vrb_ep.qpn */
	uint32_t srqn;			/* this and the rest: used by xrc_srx.c */
	struct fab_list early;		/* receives that were posted before there is an SRQ */
	struct fab_list again;		/* receives that the next pass posts again */
	struct fab_flush flush;		/* posts them */
};

/* fi_srx_context(3) of domains whose endpoints have contexts. 0 or -FI_E*, logged. No lock held. */
int vrb_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx, void *context);
/* fi_ep_bind(3) of a context to an endpoint, which takes a reference. 0; -FI_EINVAL, -FI_EDOMAIN or -FI_EOPBADSTATE,
 * logged. No lock held. */
int vrb_srx_bind(struct vrb_ep *ep, struct fid *fid, uint64_t flags);
/* Undo vrb_srx_bind(), when the endpoint is closed. No lock held. */
void vrb_srx_unbind(struct vrb_ep *ep);
/* For fi_enable(3): make sure that the context has a hardware completion queue and an SRQ. 0 or -FI_E*. No lock
 * held. */
int vrb_srx_ready(struct vrb_srx *srx);
/* From now on the queue pair of this number takes receives of the context for ep, and not for those that have joined
 * before. Lock held. */
void vrb_srx_join(struct vrb_ep *ep, uint32_t qpn);
/* The queue pair takes no more for ep, but for the last of those that have joined before, if there is one: process the
 * completions of its receives. Idempotent. Lock held. */
void vrb_srx_leave(struct vrb_ep *ep);
/* Before ep->qp, which is in the error state, is destroyed: wait until the device reports that it has given back all
 * receives that it took, for LAST_NS at most. Lock held. */
void vrb_srx_settle(struct vrb_ep *ep);
/* The endpoint for which the queue pair of this number takes receives; NULL: it has left the context. Lock held. */
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

/* A receive was taken by a queue pair whose endpoint has left the context. Over XRC it is posted again: the queue pair
 * is used by others, and what it brings to an endpoint that has gone is dropped. Lock held. */
void vrb_srx_unclaimed(struct vrb_srx *srx, struct vrb_rx *rx, const struct ibv_wc *wc);

/* ---- for the kinds of contexts ---- */

extern const struct vrb_kind vrb_rc_srx;	/* srx.c */
extern const struct vrb_kind vrb_xrc_srx;	/* xrc_srx.c */
/* A receive is gone, and nobody has its completion. The caller has logged why. Lock held. */
void vrb_srx_lost(struct vrb_srx *srx, struct vrb_rx *rx);
/* Part of a vrb_kind.fill: the limits of the device's SRQs. */
void vrb_srx_fill(struct fi_info *info, const struct vrb_device *dev);
/* For vrb_kind.open: the pool of receives, whose objects of size bytes begin with a struct vrb_rx. */
void vrb_srx_pool(struct vrb_ep *ep, size_t size);

/* Fill the empty slots of the operation tables. Called once, at load. */
void vrb_srx_fill_ops(void);

#endif
