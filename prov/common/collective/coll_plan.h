/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What one member of a group has to do for a collective operation, as a list of steps: one message out and one in at
 * the same time, then something local. Pure computation: no group, no network (collective.c has those).
 *
 * A step begins when the one before it is finished. Two members agree on the `round` of a message between them; rounds
 * wrap, and messages of the same round from one member come in order.
 */
#ifndef FAB_COLL_PLAN_H
#define FAB_COLL_PLAN_H

#include <stdint.h>
#include "common/op/op.h"

#define FAB_COLL_NOBODY UINT32_MAX

/* A call's arguments. buf is read, result written, as fi_collective(3) says; where a member has no use for one of the
 * two it may be NULL. They may be the same memory. */
struct fab_coll_call {
	enum fi_collective_op kind;
	uint32_t rank;			/* of this member */
	uint32_t cnt;			/* members */
	uint32_t root;
	enum fi_datatype datatype;
	enum fi_op op;
	size_t count;			/* elements of one block: see fab_coll_plan() */
	const void *buf;
	void *result;			/* of a broadcast: the buffer */
};

enum fab_coll_then {
	FAB_COLL_NOTHING,
	FAB_COLL_COPY,			/* len bytes from src to dst, which may overlap */
	FAB_COLL_REDUCE,		/* dst = dst op src, len bytes */
};

struct fab_coll_step {
	uint32_t to, from;		/* FAB_COLL_NOBODY: no message that way */
	const uint8_t *out;
	size_t out_len;			/* bytes */
	uint8_t *in;
	size_t in_len;			/* bytes, exactly */
	enum fab_coll_then then;
	uint8_t round;
	uint8_t *dst;
	const uint8_t *src;
	size_t len;
};

struct fab_coll_plan {
	struct fab_coll_step *step;	/* owned */
	uint32_t cnt;
	size_t room;
	uint8_t *temp[2];		/* owned; as many as this member needs */
	unsigned temp_cnt;
	bool no_memory;			/* while it is being made */
};

/*
 * Make the plan, which fab_coll_plan_fini() frees. count elements are what a member contributes to FI_BROADCAST,
 * FI_ALLREDUCE, FI_REDUCE, FI_ALLGATHER and FI_GATHER, and what it gets from FI_SCATTER and FI_REDUCE_SCATTER; to and
 * from each other member in FI_ALLTOALL. The other side of these has cnt * count elements. 0, -FI_ENOMEM, -FI_EMSGSIZE
 * (more bytes than memory has).
 */
int fab_coll_plan(struct fab_coll_plan *plan, const struct fab_coll_call *call);
void fab_coll_plan_fini(struct fab_coll_plan *plan);

/* The messages of a step have gone and come: do what is left of it. */
void fab_coll_step_finish(const struct fab_coll_call *call, const struct fab_coll_step *step);

#endif
