/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Statistics of an endpoint, fi_profile(3). A provider declares its variables and events once (struct fab_profiler in
 * its struct fab_ep_ops). Applications open any number of views of an endpoint. If none is open, an unexpected message
 * costs the test for an empty list, and nothing else costs anything.
 */
#ifndef FAB_PROFILE_H
#define FAB_PROFILE_H

#include <rdma/fi_profile.h>
#include "common/endpoint/ep.h"

/* The provider's statistics. Its functions are called with the engine's lock held. */
struct fab_profiler {
	uint32_t vars;			/* the FI_VAR_* that the provider has: FAB_PROFILE_BIT() of each */
	bool events;			/* the provider calls fab_profile_event() */
	/* The value of a variable, except FI_VAR_UNEXP_MSG_QUEUE. */
	uint64_t (*read)(struct fab_ep *ep, uint32_t var_id);
	/* FI_VAR_UNEXP_MSG_QUEUE: store up to room unexpected messages, untagged ones first, each kind in its order.
	 * Returns the number of all. */
	size_t (*queue)(struct fab_ep *ep, struct fi_cq_tagged_entry *entry, size_t room);
};

#define FAB_PROFILE_BIT(var_id)	(1u << (var_id))

/* The variables about receives and unexpected messages; the variables that count connection requests, which
 * accumulate. */
#define FAB_PROFILE_RECV	(FAB_PROFILE_BIT(FI_VAR_UNEXP_MSG_CNT) | FAB_PROFILE_BIT(FI_VAR_UNEXP_MSG_QUEUE) | \
				 FAB_PROFILE_BIT(FI_VAR_MSG_QUEUE_CNT))
#define FAB_PROFILE_REQUESTS	(FAB_PROFILE_BIT(FI_VAR_CONN_REQUEST) | FAB_PROFILE_BIT(FI_VAR_CONN_ACCEPT) | \
				 FAB_PROFILE_BIT(FI_VAR_CONN_REJECT))

/* fi_ops.ops_open of endpoints, for the name "fi_profile_ops" that fi_profile_open() passes. Takes the engine's lock.
 * 0: *ops is a new view, which the application closes before the endpoint. -FI_ENOSYS: another name, or the endpoint
 * has no statistics. -FI_EBADFLAGS, -FI_ENOMEM. */
int fab_ep_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* Call the callbacks registered for event_id (FI_EVENT_UNEXP_MSG_*). Lock held. */
void fab_profile_event(struct fab_ep *ep, uint32_t event_id, const struct fi_cq_tagged_entry *msg);

/* True if any view is open. */
static inline bool fab_profile_listens(const struct fab_ep *ep)
{
	return __builtin_expect(!fab_list_empty(&ep->views.profiles), 0);
}

#endif
