/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sets of addresses of an address vector, fi_av_set(3): the members of a group in their order. Sets are changed by
 * control calls only, under the vector's change_lock. A member is an fi_addr_t. An address that is removed from the
 * vector stays a member of the set until it is removed from the set, too.
 */
#ifndef FAB_AV_SET_H
#define FAB_AV_SET_H

#include <rdma/fi_collective.h>
#include "common/av/vector.h"

struct fab_av_set {
	struct fid_av_set set_fid;
	struct fab_av *av;		/* borrowed: open took a reference */
	uint64_t flags;			/* as opened: FI_BARRIER_SET ...; none of these flags: all operations are
					 * allowed */
	size_t cnt;			/* members */
	size_t room;			/* members for which addr has room */
	fi_addr_t *addr;		/* owned; the members in order */
	uint64_t *has;			/* owned; bit n: fi_addr n is a member */
	size_t has_words;		/* length of has in 64-bit words */
	_Atomic uint32_t ref;		/* counts exported forms */
};

/* The slot of struct fi_ops_av. fi_av_set_addr() of the new set returns the address of the struct itself, which is
 * unique among open sets. 0, -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOSYS (communication keys), -FI_ENOMEM. */
int fab_av_set_open(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **set, void *context);

/* True if addr is a member. change_lock held, or no other thread can change the set. */
static inline bool fab_av_set_has(const struct fab_av_set *set, fi_addr_t addr)
{
	return addr / 64 < set->has_words && (set->has[addr / 64] >> addr % 64 & 1);
}

#endif
