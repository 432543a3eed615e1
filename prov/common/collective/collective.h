/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collective operations, fi_collective(3), for any provider that can send tagged messages of a separate class: groups,
 * and the operations on a group, one after the other. coll_plan.h computes which messages each member sends and
 * receives.
 *
 * A message of a collective has a tag that sender and receiver compute:
 *
 *   bits 24..63  group: agreed in the join; during the join, a hash of the members' addresses in their order
 *         8..23  number of the operation on the group; wraps
 *          0..7  round within the operation; wraps
 *
 * It matches only receives of collectives, by sender and tag, in order. So a member may be ahead of others: its
 * messages wait at the receiver. Operations on a group begin in the order of the calls; each begins when the one before
 * it has ended on this member.
 *
 * A group fails as a whole. The first member that cannot continue tells its neighbours in the barrier (the members 1,
 * 2, 4 ... places away; no single failure separates these), and each of them passes the failure on once. From then on
 * every operation on the group ends with that error. A member connects to every member from which it waits for a
 * message, so that it notices when that one ends. When a join has ended it connects to its neighbours, too, and knows
 * the process of each, so that it does not wait for another process at the same address.
 *
 * The lock of the endpoint's engine guards all of this. Functions for slots of operation tables take it; all other
 * functions require that it is held.
 */
#ifndef FAB_COLLECTIVE_H
#define FAB_COLLECTIVE_H

#include <rdma/fi_collective.h>
#include "base/addr.h"
#include "common/op/op.h"

struct fab_coll;
struct fab_ep;

/* Functions of the provider. Lock held. None is called from within a completion, unless it says so. */
struct fab_coll_net {
	/* Carry out a FAB_OP_CSEND or FAB_OP_CRECV. 0: the operation's hook will be called; -FI_E*: nothing was
	 * done. */
	int (*submit)(struct fab_ep *ep, const struct fab_op *op);
	/* Cancel an operation to or from member. Its hook is called, now or when the operation ends otherwise. */
	void (*cancel)(struct fab_ep *ep, fi_addr_t member, struct fab_hook *hook);
	/* Connect to member, if not connected: a message from it is expected. The provider then calls fab_coll_lost()
	 * if the connection ends. 0; -FI_E*: member cannot be reached. */
	int (*watch)(struct fab_ep *ep, fi_addr_t member);
	/* The number of the process with which there is a connection (fab_coll_met()). 0: there is none. */
	uint64_t (*life)(struct fab_ep *ep, fi_addr_t member);
	/* Tell member, if possible, that the group of this tag has failed with err; or, err 0: that this end has left a
	 * group whose join has this tag. There it is fab_coll_aborted(). May be called while a message is parsed. 0:
	 * the message is queued on a connection, which may still be in the making; -FI_E*: it is not. */
	int (*abort)(struct fab_ep *ep, fi_addr_t member, uint64_t tag, int err);
	/* Drop the messages of this tag's group that no receive has taken, as far as they came by connections that have
	 * ended. */
	void (*forget)(struct fab_ep *ep, uint64_t tag);
	/* True if addr, as a peer may know it, is an address of this endpoint. */
	bool (*is_self)(struct fab_ep *ep, const union fab_sockaddr *addr);
};

#define FAB_COLL_GROUP_BITS	(~0ULL << 24)	/* the bits of a tag that identify the group */

/* Set ep->coll of an endpoint with FI_COLLECTIVE that is being opened. 0 or -FI_ENOMEM. */
int fab_coll_open(struct fab_ep *ep, const struct fab_coll_net *net);
/* Check for fi_close() of the endpoint: 0, or -FI_EBUSY (logged) while it is in groups. No lock held. ep->coll may be
 * NULL. */
int fab_coll_check_close(struct fab_ep *ep);
/* Free ep->coll, when all connections have ended and no message is under way. */
void fab_coll_fini(struct fab_ep *ep);

/* ---- events of the network; may be reported while a message is parsed ---- */

/* The connection to a peer has ended with err (a positive FI_E*). */
void fab_coll_lost(struct fab_coll *coll, fi_addr_t peer, int err);
/* What net->abort() has sent to a peer with this tag was lost with the connection. It is sent again at once, eight
 * times at most, which makes a connection: one that fails may take others along, as over XRC, and the peer may wait for
 * members that know nothing, either. Called at the end of the message, also from within another's. */
void fab_coll_untold(struct fab_coll *coll, fi_addr_t peer, uint64_t tag);
/* There is a connection with a peer, which gets the news that may have been lost. life: the number of its process,
 * another one for each; not 0. A group of which an earlier process at this address is a member fails. */
void fab_coll_met(struct fab_coll *coll, fi_addr_t peer, uint64_t life);
/* A peer has reported that the group of this tag has failed with err (a positive FI_E*), or that it has left the group
 * (0). True: the caller drops what came from the peer with this tag and no receive has taken. */
bool fab_coll_aborted(struct fab_coll *coll, fi_addr_t peer, uint64_t tag, int err);
/* Decide about a message that no receive matches. True: its group has failed, and the sender has been told; the
 * provider drops the message. False: the provider keeps it. */
bool fab_coll_refuses(struct fab_coll *coll, fi_addr_t peer, uint64_t tag);
/* True if a collective waits for a message of this peer. Its connection is not idle then. */
bool fab_coll_waits_for(const struct fab_coll *coll, fi_addr_t peer);
/* True if there are groups, including closed ones that still have a message of an aborted operation under way. */
bool fab_coll_lingers(const struct fab_coll *coll);

/* Write the oldest operation of a collective to the page of the process (common/stats), as what waits at the endpoint.
 * record: the index of the record of a member, or UINT32_MAX. Returns the number of operations. */
uint64_t fab_coll_survey(const struct fab_coll *coll, uint32_t (*record)(const struct fab_ep *ep, fi_addr_t member));

/* ---- slots of operation tables ---- */

/* fi_ops_cm.join of an endpoint with FI_COLLECTIVE. */
int fab_coll_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc, void *context);
/* fi_ops_domain.query_collective. 0, -FI_EOPNOTSUPP, -FI_EINVAL. */
int fab_coll_query(struct fid_domain *domain, enum fi_collective_op coll, struct fi_collective_attr *attr,
		   uint64_t flags);
/* The collective operations of endpoints with FI_COLLECTIVE. */
extern struct fi_ops_collective fab_coll_ops;

#endif
