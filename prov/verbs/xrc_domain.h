/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * XRC domains, with the meaning that ibv_open_xrc_domain(3) and ibv_close_xrc_domain(3) gave them, on the calls that
 * libibverbs has today. Any thread. The caller owns what it opened; the device counts the references of all processes.
 */
#ifndef VRB_XRC_DOMAIN_H
#define VRB_XRC_DOMAIN_H

#include <stdbool.h>
#include <infiniband/verbs.h>

/* Not all devices support XRC. */
bool vrb_has_xrc(const struct ibv_device_attr *attr);

/*
 * Open the domain that belongs to the device of `context` and is associated with the inode of fd, or return a reference
 * to one that is open, here or in another process. fd may be closed afterwards.
 *
 * oflag is 0 or the bitwise or of
 *   O_CREAT  a domain is created if there is none; without it that fails
 *   O_EXCL   together with O_CREAT: fails if there is one; looking and creating are one step for all processes
 *
 * fd -1: a new domain of no inode, which nobody else can open; O_CREAT is the only valid oflag.
 *
 * The domain, or NULL with errno, logged: EINVAL for flags that are not valid, EBADF for a descriptor that is not open,
 * EOPNOTSUPP where the device has no XRC; EEXIST and ENOENT for a domain that is there or is not; or what the device
 * says.
 */
struct ibv_xrcd *vrb_open_xrc_domain(struct ibv_context *context, int fd, int oflag);

/* Give a reference back; with the last one the domain is destroyed. 0, or an errno, logged: EBUSY while queue pairs or
 * shared receive queues that were made through this reference live. Then it stays open. */
int vrb_close_xrc_domain(struct ibv_xrcd *domain);

#endif
