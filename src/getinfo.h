/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo() in the newest layout of struct fi_info. compat.c exports it for every layout.
 */
#ifndef FAB_GETINFO_H
#define FAB_GETINFO_H

#include <rdma/fabric.h>

/* Define FI_ADDR_FORMAT and read it. Called once, by fab_init(). */
void fab_getinfo_init(void);

/* As fi_getinfo(3). Any thread. On success *info is a list that the caller frees with fi_freeinfo(); otherwise it is
 * NULL. Returns 0, or
 *	-FI_ENODATA	nothing matches; the log or an explain object says why
 *	-FI_ENOSYS	the caller was written for a newer library
 *	-FI_EBADFLAGS	unknown flag
 *	-FI_EINVAL	info is NULL
 *	-FI_ENOMEM */
int fab_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);

/* The same, as if called inside of a provider's getinfo(): see fab_core_ops.getinfo in base/core_ops.h. */
int fab_getinfo_inner(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);

#endif
