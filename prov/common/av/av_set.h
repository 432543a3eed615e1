/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sets of addresses of an address vector, fi_av_set(3): the members of a group in their order. Changes are control
 * calls, and serialise on the vector's change_lock. A member is an fi_addr_t: what is removed from the vector stays
 * a member until it is taken out of the set too.
 */
#ifndef FAB_AV_SET_H
#define FAB_AV_SET_H

#include <rdma/fi_collective.h>
#include "common/av/vector.h"

struct fab_av_set {
	struct fid_av_set set_fid;
	struct fab_av *av;		/* borrowed: open took a reference */
	uint64_t flags;			/* as opened: FI_BARRIER_SET ...; none of those: all */
	size_t cnt;			/* members */
	size_t room;			/* members that addr has room for */
	fi_addr_t *addr;		/* owned; the members in order */
	uint64_t *has;			/* owned; bit n: n is a member */
	size_t has_words;		/* words of 64 bits in it */
	_Atomic uint32_t ref;		/* exported forms */
};

/* The slot of struct fi_ops_av. fi_av_set_addr() of what it opens gives the set's own address in memory: one that no
 * other set that is open has. 0, -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOSYS (communication keys), -FI_ENOMEM. */
int fab_av_set_open(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context);

/* Is addr a member? change_lock, or nobody changes the set. */
static inline bool fab_av_set_has(const struct fab_av_set *set, fi_addr_t addr)
{
	return addr / 64 < set->has_words && (set->has[addr / 64] >> addr % 64 & 1);
}

#endif
