/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots of struct fi_ops for the few objects that the core itself makes: what such an object cannot do. Each answers
 * -FI_ENOSYS, from any thread.
 */
#ifndef FAB_FID_H
#define FAB_FID_H

#include <rdma/fabric.h>

int fab_fid_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int fab_fid_no_control(struct fid *fid, int command, void *arg);
int fab_fid_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

#endif
