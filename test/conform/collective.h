/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Joining a collective group, for members here and in a process of their own.
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

#endif
