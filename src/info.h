/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copy and release of struct fi_info in the newest layout; compat.c serves the older ones. Any thread; the caller
 * serialises calls on one structure. An fi_info owns everything that it points to, except handle, fabric_attr->fabric
 * and domain_attr->domain.
 */
#ifndef FAB_INFO_H
#define FAB_INFO_H

#include <rdma/fabric.h>

#include <stdbool.h>

/* Members of an fi_info that libfabric 1.0 did not have, and that own memory. */
enum {
	FAB_INFO_KEYS = 1 << 0,		/* authorization keys of endpoint and domain */
	FAB_INFO_NIC = 1 << 1,
	FAB_INFO_ALL = FAB_INFO_KEYS | FAB_INFO_NIC,
};

/* Copy one entry with everything that it owns; next is NULL in the copy. For NULL make an entry of zeros, with all
 * attribute structures and without nic. The caller frees the result with fab_info_free(). NULL: no memory. */
struct fi_info *fab_info_dup(const struct fi_info *info);

/* Free a whole list; NULL is allowed. parts (FAB_INFO_*) says which of the later members the entries have; the others
 * are not read. */
void fab_info_free(struct fi_info *info, unsigned parts);

/* Free these parts (FAB_INFO_*) of one entry, and set them to NULL or 0. */
void fab_info_drop(struct fi_info *info, unsigned parts);

#endif
