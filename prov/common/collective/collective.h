/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collectives over any provider that can send tagged messages of a kind of their own: groups, and operations on them
 * one after the other. fi_collective(3). What each member has to send and receive is in coll_plan.h.
 *
 * A message within a collective goes from one member to another with a tag that both know:
 *
 *   bits 24..63  group: agreed in the join; while joining, a hash of the members' addresses in their order
 *         8..23  number of the operation on the group, wraps
 *          0..7  round within the operation, wraps
 *
 * It meets only receives of collectives, by sender and tag, in order; so a member may be ahead of others, and what it
 * sends waits. Operations on a group begin in the order of their calls, each when the one before it has ended here.
 *
 * A group fails as a whole: the first member that cannot go on tells the others, along the neighbours of a barrier
 * (1, 2, 4 ... members away, which no single failure cuts), each passes it on once, and from then on every operation
 * on the group ends in that error. A member that is waited for is connected to, so that its end is noticed.
 *
 * Everything here is guarded by the lock of the endpoint's engine; calls of the application take it, the others want it
 * held.
 */
#ifndef FAB_COLLECTIVE_H
#define FAB_COLLECTIVE_H

#include <rdma/fi_collective.h>
#include "base/addr.h"
#include "common/op/op.h"

struct fab_coll;
struct fab_ep;

/* What a provider lends. Lock held; never called from within a completion. */
struct fab_coll_net {
	/* Carry out a FAB_OP_CSEND or FAB_OP_CRECV: 0, or -FI_E* and nothing was done. */
	int (*submit)(struct fab_ep *ep, const struct fab_op *op);
	/* Take an operation back, to or from member: its hook is called, now or when it has ended otherwise. */
	void (*cancel)(struct fab_ep *ep, fi_addr_t member, struct fab_hook *hook);
	/* Something from member is waited for: connect to it, if it is not. fab_coll_lost() will tell if that ends.
	 * 0, or -FI_E*: it cannot be reached. */
	int (*watch)(struct fab_ep *ep, fi_addr_t member);
	/* Tell member that the group of this tag has failed with err, if it can be told. Also from within parsing. */
	void (*abort)(struct fab_ep *ep, fi_addr_t member, uint64_t tag, int err);
	/* Is this our own address, as a peer may have it? */
	bool (*is_self)(struct fab_ep *ep, const union fab_sockaddr *addr);
};

#define FAB_COLL_GROUP_BITS	(~0ULL << 24)	/* of a tag */

/* For an endpoint with FI_COLLECTIVE, at its opening; sets ep->coll. 0 or -FI_ENOMEM. */
int fab_coll_open(struct fab_ep *ep, const struct fab_coll_net *net);
/* fi_close of the endpoint: -FI_EBUSY (logged) while it is in groups. No lock held. ep->coll may be NULL. */
int fab_coll_check_close(struct fab_ep *ep);
/* All connections have ended: nothing is under way any more. Frees ep->coll. */
void fab_coll_fini(struct fab_ep *ep);

/* ---- what arrives; may come from within parsing ---- */

/* The connection to a peer has ended, with a positive FI_E*. */
void fab_coll_lost(struct fab_coll *coll, fi_addr_t peer, int err);
/* A peer says that the group of this tag has failed with err. */
void fab_coll_aborted(struct fab_coll *coll, fi_addr_t peer, uint64_t tag, int err);
/* A message has come for which there is no receive. True: its group has failed, which the sender has been told; drop
 * it. */
bool fab_coll_refuses(struct fab_coll *coll, fi_addr_t peer, uint64_t tag);
/* Is a message of this peer waited for? Then its connection is not idle. */
bool fab_coll_waits_for(const struct fab_coll *coll, fi_addr_t peer);
/* Are there groups, if only closed ones of which an aborted operation has a message under way? */
bool fab_coll_lingers(const struct fab_coll *coll);

/* ---- slots ---- */

/* struct fi_ops_cm.join of an endpoint, with FI_COLLECTIVE. */
int fab_coll_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context);
/* struct fi_ops_domain: 0, -FI_EOPNOTSUPP, -FI_EINVAL. */
int fab_coll_query(struct fid_domain *domain, enum fi_collective_op coll, struct fi_collective_attr *attr,
		   uint64_t flags);
/* For endpoints with FI_COLLECTIVE. */
extern struct fi_ops_collective fab_coll_ops;

#endif
