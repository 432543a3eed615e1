/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What av.c, the calls of fi_av(3), needs of the table behind them. Locks as in av.h.
 */
#ifndef FAB_AV_TABLE_H
#define FAB_AV_TABLE_H

#include "common/av/vector.h"

/* A zeroed vector becomes an empty one that has room for count addresses. 0 or -FI_ENOMEM; fini in either case. */
int fab_av_table_init(struct fab_av *av, size_t count);
void fab_av_table_fini(struct fab_av *av);

/* A call that changes the vector: between the two, change_lock is held, and nobody else changes a shared one. 0; or
 * -FI_EACCES, -FI_EBUSY of a shared one, and nothing to end. */
int fab_av_change_begin(struct fab_av *av);
void fab_av_change_end(struct fab_av *av);
/* Within: an address comes (again), or a reference to it goes, and the watchers are told. -FI_ENOMEM, -FI_ENOSPC;
 * -FI_EINVAL (nothing is there). */
int fab_av_table_insert(struct fab_av *av, const union fab_sockaddr *addr, struct fab_auth_key *key,
			fi_addr_t *fi_addr);
int fab_av_table_remove(struct fab_av *av, fi_addr_t fi_addr);
/* Within: an entry that was inserted by now has FI_FIREWALL_ADDR from here on. */
void fab_av_table_firewall(struct fab_av *av, fi_addr_t fi_addr);

/* Take over what other processes have changed in a shared vector. No lock held. */
void fab_av_sync(struct fab_av *av);

#endif
