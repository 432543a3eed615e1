/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domains, and the memory regions in them.
 */
#ifndef VRB_DOMAIN_H
#define VRB_DOMAIN_H

#include <stdatomic.h>
#include "common/domain/domain.h"
#include "verbs/device.h"

struct vrb_xrc;				/* xrc.h */

struct vrb_kind;			/* kind.h */

struct vrb_domain {
	struct fab_domain base;
	const struct vrb_device *dev;
	const struct vrb_kind *kind;	/* of its endpoints */
	struct ibv_pd *pd;		/* owned */
	int relaxed;			/* IBV_ACCESS_RELAXED_ORDERING, or 0: of its regions */
	bool odp;			/* regions are paged on demand: FI_VERBS_USE_ODP is set, and the device can */
	pthread_mutex_t lock;		/* guards the lists and the channel; engine locks are taken inside */
	struct rdma_event_channel *channel;	/* owned: of ids that are on no engine yet; NULL before the first */
	struct fab_list pollers;	/* struct vrb_poller.link */
	struct fab_list unanswered;	/* used by unanswered.c */
	pthread_mutex_t late_lock;	/* taken inside of engines' locks; guards the next two */
	struct fab_list late;		/* struct vrb_ep.on_hw: see keep_late() in ep.c */
	uint32_t late_cnt;		/* its length */
	_Atomic bool last_told;		/* the device has reported IBV_EVENT_QP_LAST_WQE_REACHED once */
	_Atomic uint32_t last_missed;	/* times that it did not do so in time */
	struct vrb_xrc *xrc;		/* used by xrc_share.c: NULL while there is no XRC endpoint */
};

extern struct fi_ops_mr vrb_mr_ops;	/* mr.c */
/* True if regions of the domain are to be paged on demand (FI_VERBS_USE_ODP). If the device cannot do that, logs it
 * once, and returns false. */
bool vrb_mr_odp(const struct vrb_device *dev, const struct vrb_kind *kind);
/* True if the processor cannot read the memory of a descriptor. A descriptor of fi_mr_desc() is the struct ibv_mr,
 * whose context is NULL then. */
static inline bool vrb_desc_foreign(const struct ibv_mr *desc)
{
	return !desc->context;
}

#endif
