/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(), in the newest layout. compat.c exports it for every caller.
 */
#ifndef FAB_GETINFO_H
#define FAB_GETINFO_H

#include <rdma/fabric.h>

/* As fi_getinfo(3). On success *info is a list that the caller frees with fi_freeinfo(); otherwise it is NULL. Any
 * thread. 0; -FI_ENODATA: nothing fits, and the log or an explain object says why; -FI_ENOSYS: the caller was written
 * for a newer library; -FI_EBADFLAGS: unknown flag; -FI_EINVAL: info is NULL; -FI_ENOMEM. */
int fab_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);

/* The same as if from inside of a provider's getinfo (base/core_ops.h). */
int fab_getinfo_inner(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);

#endif
