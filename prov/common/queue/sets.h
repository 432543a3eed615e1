/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls on several queues at once: poll sets and fi_trywait(3), fi_poll(3). Control; no lock held.
 */
#ifndef FAB_SETS_H
#define FAB_SETS_H

#include <rdma/fi_domain.h>

/* fi_poll_open(3): the domain's slot. 0 or -FI_E*. */
int fab_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset);

/* fi_trywait(3): the fabric's slot. Makes progress for each object. 0: the caller may sleep on the descriptors of all
 * of them. -FI_EAGAIN: one has something to read. -FI_EINVAL, logged: one cannot be waited for. */
int fab_trywait(struct fid_fabric *fabric, struct fid **fids, int cnt);

#endif
