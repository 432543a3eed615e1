/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls on several queues: poll sets, fi_poll(3), and fi_trywait(3). Control; no lock held.
 */
#ifndef FAB_SETS_H
#define FAB_SETS_H

#include <rdma/fi_domain.h>

/* The domain's fi_poll_open(3) slot. 0 or -FI_E*. */
int fab_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset);

/* The fabric's fi_trywait(3) slot. Makes progress for each object. 0: the caller may sleep on the descriptors of all of
 * them. -FI_EAGAIN: one of them has an entry to read. -FI_EINVAL, logged: one of them has no wait object. */
int fab_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt);

#endif
