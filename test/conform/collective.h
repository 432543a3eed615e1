/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Collective groups: joining, for members here and in a process of their own; and calls of all members here, against a
 * plain computation.
 */
#ifndef CONFORM_COLLECTIVE_H
#define CONFORM_COLLECTIVE_H

#include <rdma/fi_collective.h>

#include "fixture.h"

/* The set of these members, in this order. Belongs to the test. */
struct fid_av_set *coll_set_open(struct side *s, const fi_addr_t *addr, size_t cnt);
/* @s asks to join the group of these members, which may be itself too; FI_JOIN_COMPLETE is to follow. Belongs to the
 * test. */
struct fid_mc *coll_join_begin(struct side *s, const fi_addr_t *addr, size_t cnt);
/* The next event says that it has. */
void coll_join_end(struct side *s, struct fid_mc *mc);
/* Every address vector has all members in the same order, so that their numbers are their fi_addr_t. */
extern const fi_addr_t coll_everyone[];
#define COLL_MEMBERS_MAX 8
#define COLL_CAPS (FI_MSG | FI_TAGGED | FI_COLLECTIVE)

/* Members 0 to cnt - 1, each of which knows all others by the same fi_addr: their number. */
struct coll_group {
	struct test *t;
	size_t cnt;
	struct side *side[COLL_MEMBERS_MAX];
	struct fid_mc *mc[COLL_MEMBERS_MAX];
};

/* The members of @g, which are in no group, join one. */
void coll_join_all(struct coll_group *g);

/* A call; what its kind has no use for is not looked at. */
struct coll_call {
	enum fi_collective_op kind;
	enum fi_datatype datatype;
	enum fi_op op;
	size_t count;
	fi_addr_t root;
	const void *buf;
	void *result;
	void *context;
};

ssize_t coll_call_now(struct side *s, struct fid_mc *mc, const struct coll_call *c);
/* It must succeed; coll_expect_done() is to follow. */
void coll_call(struct side *s, struct fid_mc *mc, const struct coll_call *c);
void coll_expect_done(struct side *s, void *context);
/* All members call a barrier, which ends for all of them. */
void coll_barrier(struct coll_group *g);
/* All members call it with @count elements a block; each gets what it should. */
void coll_check_one(struct coll_group *g, enum fi_collective_op kind, size_t count);
/* Element @j of block @b of what member @i gives, and their sum over all members. */
int64_t coll_value(size_t i, size_t b, size_t j);
int64_t coll_sum(size_t cnt, size_t b, size_t j);

#ifndef CONFORM_INSIDE
#define coll_join_all(g) AT(coll_join_all(g))
#define coll_barrier(g) AT(coll_barrier(g))
#define coll_check_one(g, kind, count) AT(coll_check_one(g, kind, count))
#endif

#endif
