/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_export_fid(3): what other providers put their results into. The exported form of a queue is a struct fid_peer_cq
 * (fi_peer(3)) whose owner is the queue, and likewise for counters, address vectors and sets of addresses. Peers
 * call it from any thread, with whatever locks of theirs: what they bring is left in an inbox under a lock that
 * nothing is called from, and a knock at the engine of the queue moves it.
 *
 * The exported form is closed with fi_close(), after the peers' objects; the object cannot be closed before.
 */
#ifndef FAB_LENT_H
#define FAB_LENT_H

#include <rdma/fi_ext.h>
#include <rdma/providers/fi_prov.h>
#include "common/av/av.h"
#include "common/queue/queue.h"

/* FI_EXPORT_FID of a completion queue, counter, address vector or set of addresses; for fab_domain_ops.lend. *exp->fid
 * is the caller's, who closes it with fi_close(). No lock held. 0; -FI_EINVAL (no exp, flags, or the object is itself a
 * peer's), -FI_ENOMEM, -errno (no descriptor), -FI_ENOSYS (an object of another class). */
int fab_lend(struct fid *fid, struct fi_fid_export *exp);

/* What peers have reported to the queue so far is in it now. Lock of its engine held. */
void fab_export_settle(struct fab_cq *cq);

/* What all of them refuse, logged: 0 or -FI_EINVAL. */
int fab_export_check(const struct fi_provider *prov, const struct fi_fid_export *exp, bool is_peer);

#endif
