/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The steps of one group member in a collective operation. A step sends one message and receives one at the same time,
 * then does a local computation. Plans are computed without a group or a network; coll_run.c carries them out.
 *
 * A step begins when the one before it has finished. The two members that exchange a message use the same `round` for
 * it. Rounds wrap. Messages of the same round from one member arrive in order.
 */
#ifndef FAB_COLL_PLAN_H
#define FAB_COLL_PLAN_H

#include <stdint.h>
#include "common/op/op.h"

#define FAB_COLL_NOBODY UINT32_MAX

/* The arguments of a call. buf is read and result is written, as fi_collective(3) says. Each may be NULL on a member
 * that does not use it. They may be the same memory. */
struct fab_coll_call {
	enum fi_collective_op kind;
	uint32_t rank;			/* of this member in the group */
	uint32_t cnt;			/* members of the group */
	uint32_t root;
	enum fi_datatype datatype;
	enum fi_op op;
	size_t count;			/* elements of one block; see fab_coll_plan() */
	const void *buf;
	void *result;			/* of FI_BROADCAST: the buffer */
};

enum fab_coll_then {
	FAB_COLL_NOTHING,
	FAB_COLL_COPY,			/* len bytes from src to dst, which may overlap */
	FAB_COLL_REDUCE,		/* dst = dst op src, len bytes */
};

struct fab_coll_step {
	uint32_t to, from;		/* FAB_COLL_NOBODY: the step does not send, or does not receive */
	const uint8_t *out;
	size_t out_len;			/* bytes */
	uint8_t *in;
	size_t in_len;			/* bytes; the message must have exactly this length */
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
	uint8_t *temp[2];		/* owned; used if this member needs them */
	unsigned temp_cnt;
	bool no_memory;			/* an allocation failed while the plan was made */
};

/*
 * Make the plan. The caller frees it with fab_coll_plan_fini(). call->count is the number of elements that each member
 * contributes to FI_BROADCAST, FI_ALLREDUCE, FI_REDUCE, FI_ALLGATHER and FI_GATHER, that each member receives from
 * FI_SCATTER and FI_REDUCE_SCATTER, and that each pair of members exchanges in FI_ALLTOALL. The other vector of
 * gathering and scattering operations has cnt * count elements. 0. -FI_EMSGSIZE: the byte count overflows. -FI_ENOMEM.
 * After an error there is nothing to free.
 */
int fab_coll_plan(struct fab_coll_plan *plan, const struct fab_coll_call *call);
void fab_coll_plan_fini(struct fab_coll_plan *plan);

/* Do the computation of a step whose messages have been sent and received. */
void fab_coll_step_finish(const struct fab_coll_call *call, const struct fab_coll_step *step);

#endif
