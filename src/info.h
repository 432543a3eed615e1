/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Life of struct fi_info, in the newest layout; compat.c serves the older ones. Any thread; the caller serialises calls
 * on one structure. Everything below an fi_info is owned by it, except what handle and the open fabric and domain point
 * to.
 */
#ifndef FAB_INFO_H
#define FAB_INFO_H

#include <rdma/fabric.h>

#include <stdbool.h>

/* What an entry can own that libfabric 1.0 did not know. */
enum {
	FAB_INFO_KEYS = 1 << 0,		/* authorization keys of endpoint and domain */
	FAB_INFO_NIC = 1 << 1,
	FAB_INFO_ALL = FAB_INFO_KEYS | FAB_INFO_NIC,
};

/* Copy one entry with all that it owns (next is NULL in the copy), or for NULL make one of zeros with all attribute
 * structures but nic present. NULL: no memory. The caller frees the result with fab_info_free(). */
struct fi_info *fab_info_dup(const struct fi_info *info);

/* Free a whole list; NULL is allowed. parts says which of the later members the entries have at all: others are not
 * looked at. */
void fab_info_free(struct fi_info *info, unsigned parts);

/* Free these parts of one entry, leaving none. */
void fab_info_drop(struct fi_info *info, unsigned parts);

#endif
