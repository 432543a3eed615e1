/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entries of struct fi_ops for operations that an object of the core does not have. Each returns -FI_ENOSYS and does
 * nothing else. Any thread.
 */
#ifndef FAB_FID_H
#define FAB_FID_H

#include <rdma/fabric.h>

/* fi_ops.bind: -FI_ENOSYS. */
int fab_fid_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
/* fi_ops.control: -FI_ENOSYS. */
int fab_fid_no_control(struct fid *fid, int command, void *arg);
/* fi_ops.ops_open: -FI_ENOSYS. */
int fab_fid_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

#endif
