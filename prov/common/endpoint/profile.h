/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Numbers about an endpoint for programs: fi_profile(3). A provider says once what it can tell of an endpoint (struct
 * fab_profiler in its struct fab_ep_ops); programs open as many views of it as they like. Where none is open, an
 * endpoint pays a look at an empty list for a message that nobody had posted a receive for, and nothing elsewhere.
 */
#ifndef FAB_PROFILE_H
#define FAB_PROFILE_H

#include <rdma/fi_profile.h>
#include "common/endpoint/ep.h"

/* What can be told of an endpoint. Called with the engine's lock. */
struct fab_profiler {
	uint32_t vars;			/* which FI_VAR_* there are: FAB_PROFILE_BIT() of each */
	bool events;			/* fab_profile_event() is called of it */
	/* The value of one of them that is a number. */
	uint64_t (*read)(struct fab_ep *ep, uint32_t var_id);
	/* FI_VAR_UNEXP_MSG_QUEUE: store up to room messages that wait, untagged ones first, each kind in its order;
	 * returns how many there are. */
	size_t (*queue)(struct fab_ep *ep, struct fi_cq_tagged_entry *entry, size_t room);
};

#define FAB_PROFILE_BIT(var_id)	(1u << (var_id))

/* Those that tell of receives and unexpected messages, and those that count requests of peers for a connection, which
 * add up. */
#define FAB_PROFILE_RECV	(FAB_PROFILE_BIT(FI_VAR_UNEXP_MSG_CNT) | FAB_PROFILE_BIT(FI_VAR_UNEXP_MSG_QUEUE) | \
				 FAB_PROFILE_BIT(FI_VAR_MSG_QUEUE_CNT))
#define FAB_PROFILE_REQUESTS	(FAB_PROFILE_BIT(FI_VAR_CONN_REQUEST) | FAB_PROFILE_BIT(FI_VAR_CONN_ACCEPT) | \
				 FAB_PROFILE_BIT(FI_VAR_CONN_REJECT))

/* struct fi_ops.ops_open of endpoints: "fi_profile_ops", which fi_profile_open() asks for. 0: fi_close() of the view is
 * due before that of the endpoint; -FI_ENOSYS: another name, or nothing is known of this endpoint; -FI_EBADFLAGS,
 * -FI_ENOMEM. Takes the engine's lock. */
int fab_ep_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* Tell whoever asked for event_id (FI_EVENT_UNEXP_MSG_*). Lock held. */
void fab_profile_event(struct fab_ep *ep, uint32_t event_id, const struct fi_cq_tagged_entry *msg);

/* Is there somebody to be told? */
static inline bool fab_profile_listens(const struct fab_ep *ep)
{
	return __builtin_expect(!fab_list_empty(&ep->profiles), 0);
}

#endif
