/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table behind an address vector, for av.c (the calls of fi_av(3)). Locks as in vector.h.
 */
#ifndef FAB_AV_TABLE_H
#define FAB_AV_TABLE_H

#include "common/av/vector.h"

/* Initialise a zeroed vector, empty, with room for count addresses. 0 or -FI_ENOMEM; the caller calls fini in either
 * case. */
int fab_av_table_init(struct fab_av *av, size_t count);
void fab_av_table_fini(struct fab_av *av);

/* Begin and end a call that changes the vector. In between change_lock is held, and no other process can change a
 * shared vector. Begin returns 0; or, for a shared vector, -FI_EACCES or -FI_EBUSY, and there is nothing to end. */
int fab_av_change_begin(struct fab_av *av);
void fab_av_change_end(struct fab_av *av);
/* Between begin and end: add a reference to an address, which is inserted if it is new; or drop one. Watchers are
 * called when the address is new, or when its last reference is gone. 0; insert: -FI_ENOMEM, -FI_ENOSPC; remove:
 * -FI_EINVAL (the index is free). */
int fab_av_table_insert(struct fab_av *av, const union fab_sockaddr *addr, struct fab_auth_key *key,
			fi_addr_t *fi_addr);
int fab_av_table_remove(struct fab_av *av, fi_addr_t fi_addr);
/* Between begin and end: set FI_FIREWALL_ADDR for an entry that has been inserted. */
void fab_av_table_firewall(struct fab_av *av, fi_addr_t fi_addr);

/* Copy the address of an index, also if another thread changes the vector. False: the index is free. No lock held. */
bool fab_av_table_get(struct fab_av *av, fi_addr_t fi_addr, union fab_sockaddr *addr);
/* Copy the changes that other processes have made to a shared vector, and call the watchers. No lock held. */
void fab_av_sync(struct fab_av *av);

#endif
