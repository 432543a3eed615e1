/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room: coll_run.c (operations on a group, their messages, failure), coll_join.c (making, joining and
 * freeing groups), collective.c (the application's calls). See collective.h. The lock of the endpoint's engine is held
 * everywhere.
 *
 *   group:  JOINING --join ends--> JOINED --> FAILED (also from JOINING)
 */
#ifndef FAB_COLL_GROUP_H
#define FAB_COLL_GROUP_H

#include "common/collective/coll_plan.h"
#include "common/collective/collective.h"
#include "common/endpoint/endpoint.h"

#define FAB_GROUP_ADDR	(1ULL << 63)	/* fi_mc_addr() of a group is this bit and the group's slot; no address of a
					 * vector or set has the bit */
#define FAB_COLL_DEAD_MAX	64		/* failed groups that are remembered: closed ones, and those whose join
					 * has not ended here */
#define FAB_COLL_NEWS_MAX	64		/* failures that neighbours may have to be told again */
#define FAB_GROUP_MEMBERS_MAX	(1u << 24)

enum fab_group_state {
	FAB_GROUP_JOINING,
	FAB_GROUP_JOINED,
	FAB_GROUP_FAILED,
};

struct fab_group {
	struct fid_mc mc;
	struct fab_coll *coll;
	struct fab_list link;		/* in coll->groups */
	struct fab_list ops;		/* struct fab_coll_op; the first one is running */
	struct fab_flush flush;		/* continues the first operation */
	enum fab_group_state state;
	bool closed;
	bool join_aborted;		/* the join has ended here, but perhaps not at all members */
	bool used;			/* a call has succeeded */
	bool whole;			/* a call has succeeded that all members must have made: none is in the join */
	int err;			/* FAB_GROUP_FAILED: a positive FI_E* */
	int aborted;			/* a member has reported this failure, and it has not been handled yet; a
					 * positive FI_E* */
	uint64_t kinds;			/* FI_BARRIER_SET ...: the operations allowed; 0: all */
	uint64_t hash;			/* the group's bits in tags of the join */
	uint64_t id;			/* the group's bits in tags of all other operations */
	uint16_t seq;			/* number of the next operation */
	uint32_t rank, cnt;
	uint64_t *life;			/* by rank, behind member: the process that has joined; 0: not known */
	bool *lost;			/* by rank, behind life: a connection to it was lost, and perhaps a message */
	fi_addr_t member[];
};

/* True if the group was joined and no call has succeeded: others may still be in the join, or its messages in their
 * queues. */
static inline bool fab_group_just_joined(const struct fab_group *group)
{
	return group->state == FAB_GROUP_JOINED && !group->used;
}

/* A message of a step. */
struct fab_coll_message {
	struct fab_hook hook;
	struct fab_coll_op *op;
	bool busy;
	size_t len;			/* bytes that a received message must have */
};

struct fab_coll_op {
	struct fab_list link;
	struct fab_group *group;
	void *context;
	bool want_cq;
	bool begun;			/* the receive of step `at` has been submitted */
	bool sent;			/* the send of step `at` has been submitted */
	int err;			/* the operation fails with this; a positive FI_E*; or 0 */
	int lost;			/* a connection was lost with this error, and it has not been handled yet; a
					 * positive FI_E*; or 0 */
	uint32_t at;
	uint64_t tag;			/* round is 0 */
	uint64_t number;		/* counts those of the endpoint */
	struct fab_coll_call call;
	struct fab_coll_plan plan;
	struct fab_coll_message out, in;
	uint64_t join[2];		/* of a join: the number that this member contributes, and the result */
};

struct fab_coll_dead {
	uint64_t group;			/* the group's bits of the tag; 0: unused */
	int err;
};

enum fab_news_state {
	FAB_NEWS_NONE,
	FAB_NEWS_DUE,			/* is sent in the next flush */
	FAB_NEWS_SENT,			/* no connection to the peer has been lost since */
	FAB_NEWS_LOST,			/* perhaps: goes with the next connection */
};

/* A failure of which a neighbour is told (coll_news.c). */
struct fab_coll_news {
	uint64_t tag;			/* the group's bits */
	fi_addr_t peer;
	int err;			/* a positive FI_E* */
	enum fab_news_state state;
	uint8_t presses;		/* how often fab_coll_untold() has had it sent again */
};

struct fab_coll {
	struct fab_ep *ep;
	const struct fab_coll_net *net;
	struct fab_list groups;		/* includes closed groups that still have messages */
	struct fab_group **slot;		/* owned; indexed by the slot in fi_mc_addr() */
	size_t slot_cnt;
	uint32_t op_cnt;		/* operations outstanding */
	uint64_t op_number;		/* operations so far */
	struct fab_coll_dead dead[FAB_COLL_DEAD_MAX];
	unsigned dead_next;
	struct fab_coll_news news[FAB_COLL_NEWS_MAX];	/* the oldest is forgotten */
	unsigned news_next;
	struct fab_flush flush;		/* sends the news that is due */
};

/* ---- coll_run.c ---- */

/* The bits of a tag that identify the group. */
static inline uint64_t fab_group_bits(uint64_t hash)
{
	return hash & FAB_COLL_GROUP_BITS;
}

/* Append an operation, whose call is filled in, to the group, and begin it if it is the first. 0; -FI_E*: it was
 * freed. */
int fab_group_queue(struct fab_group *group, struct fab_coll_op *op);
/* Continue the operations of the group until one has to wait. Must not be called from a completion. May free the group:
 * a closed group is freed with its last operation. */
void fab_group_run(struct fab_group *group);
/* Fail the group: the running operation ends with err (a positive FI_E*), and the neighbours are told. Does nothing if
 * the group has failed before. */
void fab_group_fail(struct fab_group *group, int err);
/* This member makes no more calls. Where another one may be in the join, or be another process now that has not joined,
 * this member's messages of the join may wait there for a receive, and a later join must not take them: the neighbours
 * are told. */
void fab_group_leave(struct fab_group *group);
/* Take the group out of coll->groups and free it. It has no operations. */
void fab_group_free(struct fab_group *group);
/* fab_group.flush: calls fab_group_run(). */
void fab_group_flush(struct fab_flush *flush);

/* ---- coll_news.c ---- */

/* Tell peer that the group with these bits has failed with err (a positive FI_E*), now and, if that may have been lost,
 * with the next connections; or, err 0, that this end has left a group whose join has this tag, now only: messages of
 * the join that came by a connection that was lost are dropped without it. */
void fab_coll_tell(struct fab_coll *coll, fi_addr_t peer, uint64_t tag, int err);
/* Forget the news of a join with this tag: another one begins. */
void fab_coll_news_forget(struct fab_coll *coll, uint64_t tag);
/* A connection to peer has been lost. */
void fab_coll_news_lost(struct fab_coll *coll, fi_addr_t peer);
/* There is a connection to peer. */
void fab_coll_news_met(struct fab_coll *coll, fi_addr_t peer);
/* fab_coll.flush. */
void fab_coll_news_flush(struct fab_flush *flush);

/* ---- coll_join.c ---- */

/* The group with this fi_mc_addr(), or NULL. */
struct fab_group *fab_group_of(const struct fab_coll *coll, fi_addr_t addr);
/* Remember that the group with this tag is over, and with which error (a positive FI_E*; 0: without one). The oldest of
 * FAB_COLL_DEAD_MAX is forgotten. */
void fab_coll_dead_add(struct fab_coll *coll, uint64_t tag, int err);

/* The provider of an endpoint, for log messages. */
static inline const struct fi_provider *fab_coll_prov(const struct fab_ep *ep)
{
	return ep->domain->fabric->prov;
}

#endif
