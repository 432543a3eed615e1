/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XRC domains with the semantics of the former ibv_open_xrc_domain(3) and ibv_close_xrc_domain(3), over the calls that
 * libibverbs has today. Any thread. The caller owns the reference that it opened; the kernel counts the references of
 * all processes.
 */
#ifndef VRB_XRC_DOMAIN_H
#define VRB_XRC_DOMAIN_H

#include <stdbool.h>
#include <infiniband/verbs.h>

/* True if the device supports XRC. */
bool vrb_has_xrc(const struct ibv_device_attr *attr);

/*
 * Open the domain of the device of `context` that is associated with the inode of fd. If it is open already, here or in
 * another process, return another reference to it. fd may be closed afterwards.
 *
 * oflag is 0 or the bitwise or of
 *   O_CREAT  a domain is created if there is none; without it that fails
 *   O_EXCL   fails if there is one; with O_CREAT, looking and creating are one step for all processes
 *
 * fd -1: a new domain without an inode, which no other process can open; O_CREAT is the only valid oflag.
 *
 * Returns the domain, or NULL with errno, logged: EINVAL: invalid oflag, or O_EXCL alone and the domain exists; EBADF:
 * fd is not open; EOPNOTSUPP: the device has no XRC; EEXIST: the domain exists (O_CREAT and O_EXCL); ENOENT: it does
 * not (no O_CREAT); or an error of the device.
 */
struct ibv_xrcd *vrb_open_xrc_domain(struct ibv_context *context, int fd, int oflag);

/* Give a reference back; the last one destroys the domain. 0, or a positive errno, logged, and the reference stays:
 * EBUSY while queue pairs or shared receive queues exist that were made with this reference. */
int vrb_close_xrc_domain(struct ibv_xrcd *domain);

#endif
