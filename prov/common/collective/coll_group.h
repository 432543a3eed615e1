/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Inside of collectives, for its three files: coll_run.c (operations on a group, their messages, failure),
 * coll_join.c (how a group comes and goes), collective.c (the application's calls). See collective.h; the lock of
 * the endpoint's engine is held everywhere.
 *
 *   group:  JOINING --join ends--> JOINED --> FAILED (also from JOINING)
 */
#ifndef FAB_COLL_GROUP_H
#define FAB_COLL_GROUP_H

#include "common/collective/coll_plan.h"
#include "common/collective/collective.h"
#include "common/endpoint/endpoint.h"

#define FAB_GROUP_ADDR	(1ULL << 63)	/* fi_mc_addr() of a group: this and its slot; no address of a vector or set */
#define FAB_COLL_DEAD_MAX	64		/* failed groups that are remembered after their closing */
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
	struct fab_list ops;		/* struct fab_coll_op, the first one is running */
	struct fab_flush flush;		/* goes on with the first one */
	enum fab_group_state state;
	bool closed;
	int err;			/* FAB_GROUP_FAILED: a positive FI_E* */
	int aborted;			/* a member says so, and it has not been acted on; likewise */
	uint64_t kinds;			/* FI_BARRIER_SET ...: allowed operations */
	uint64_t hash;			/* group bits of the join's tags */
	uint64_t id;			/* group bits of all others */
	uint16_t seq;			/* of the next operation */
	uint32_t rank, cnt;
	fi_addr_t member[];
};

/* One message of a step. */
struct fab_coll_message {
	struct fab_hook hook;
	struct fab_coll_op *op;
	bool busy;
	size_t len;			/* bytes that a received one must have */
};

struct fab_coll_op {
	struct fab_list link;
	struct fab_group *group;
	void *context;
	bool want_cq;
	bool begun;			/* the receive of step `at` is under way, or has been */
	bool sent;			/* and so is the other message */
	int err;			/* why it fails */
	int lost;			/* a connection has ended, not acted on yet; positive FI_E* */
	uint32_t at;
	uint64_t tag;			/* without the round */
	struct fab_coll_call call;
	struct fab_coll_plan plan;
	struct fab_coll_message out, in;
	uint64_t join[2];		/* what a join reduces, and the result */
};

struct fab_coll_dead {
	uint64_t group;			/* bits of the tag; 0: none */
	int err;
};

struct fab_coll {
	struct fab_ep *ep;
	const struct fab_coll_net *net;
	struct fab_list groups;		/* closed ones too */
	struct fab_group **slot;		/* owned; by fi_mc_addr() */
	size_t slot_cnt;
	uint32_t next_id;		/* no group of ours has this number yet */
	uint32_t op_cnt;		/* outstanding */
	struct fab_coll_dead dead[FAB_COLL_DEAD_MAX];
	unsigned dead_next;
};

/* ---- coll_run.c ---- */

/* The bits of a tag that name a group. */
static inline uint64_t fab_group_bits(uint64_t hash)
{
	return hash & FAB_COLL_GROUP_BITS;
}

/* Hand an operation with its call filled in to the group; begins it if it is the first. 0; -FI_E*: it is gone. */
int fab_group_queue(struct fab_group *group, struct fab_coll_op *op);
/* Go on with what is outstanding, as far as it goes; not from within a completion. A closed group goes with its last
 * operation. */
void fab_group_run(struct fab_group *group);
/* Once: what is running fails with err, a positive FI_E*, and the neighbours hear of it. */
void fab_group_fail(struct fab_group *group, int err);
/* Off coll->groups. Nothing is outstanding. */
void fab_group_free(struct fab_group *group);
/* fab_group.flush: runs the group. */
void fab_group_flush(struct fab_flush *flush);

/* ---- coll_join.c ---- */

/* The group that an fi_mc_addr() means, or NULL. */
struct fab_group *fab_group_of(const struct fab_coll *coll, fi_addr_t addr);

/* For log lines. */
static inline const struct fi_provider *fab_coll_prov(const struct fab_ep *ep)
{
	return ep->domain->fabric->prov;
}

#endif
