/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Exports objects to other providers, fi_export_fid(3). The exported form of a completion queue is a struct fid_peer_cq
 * (fi_peer(3)) whose owner is the queue. Counters, address vectors and sets of addresses have exported forms likewise.
 * Peers may call these from any thread, and hold any of their own locks. So a call only puts its data into an inbox,
 * under a lock inside of which nothing is called, and wakes the engine of the object, which empties the inbox.
 *
 * The exported form is closed with fi_close(), after the objects of the peers. The object itself cannot be closed
 * before.
 */
#ifndef FAB_LENT_H
#define FAB_LENT_H

#include <rdma/fi_ext.h>
#include <rdma/providers/fi_prov.h>
#include "common/av/av.h"
#include "common/queue/queue.h"

/* FI_EXPORT_FID for a completion queue, counter, address vector or set of addresses; for fab_domain_ops.lend. *exp->fid
 * belongs to the caller, who closes it with fi_close(). No lock held. 0; -FI_EINVAL (exp is NULL or incomplete, or the
 * object was itself opened as a peer), -FI_ENOMEM, -errno (no descriptor), -FI_ENOSYS (an object of another class). */
int fab_lend(struct fid *fid, struct fi_fid_export *exp);

/* Move all completions that peers have reported so far into the queue. Lock of its engine held. */
void fab_export_settle(struct fab_cq *cq);

/* The checks that all classes have in common: 0, or -FI_EINVAL, logged. is_peer: the object was itself opened as a
 * peer. */
int fab_export_check(const struct fi_provider *prov, const struct fi_fid_export *exp, bool is_peer);

#endif
