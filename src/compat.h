/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Older layouts of struct fi_info and of the attribute structures that it points to. Structures only ever grew at the
 * end, so an old structure is converted by copying its bytes over a new one of zeros. Pure functions, any thread.
 */
#ifndef FAB_COMPAT_H
#define FAB_COMPAT_H

#include <rdma/fabric.h>

/* The layouts, named after the version node of libfabric.map that introduced them. */
enum fab_layout {
	FAB_LAYOUT_1_0,
	FAB_LAYOUT_1_1,
	FAB_LAYOUT_1_2,
	FAB_LAYOUT_1_3,
	FAB_LAYOUT_1_7,
	FAB_LAYOUT_1_8,
	FAB_LAYOUT_1_9,
	FAB_LAYOUT_1_10,
	FAB_LAYOUT_NEWEST = FAB_LAYOUT_1_10,
};

/* One entry in the newest layout, made from an old one. Its attribute structures are copies. Everything else that it
 * points to is borrowed from the old entry. */
struct fab_wide_info {
	struct fi_info info;
	struct fi_tx_attr tx_attr;
	struct fi_rx_attr rx_attr;
	struct fi_ep_attr ep_attr;
	struct fi_domain_attr domain_attr;
	struct fi_fabric_attr fabric_attr;
};

/* Fill *wide from an entry of the given layout. Returns &wide->info, with next NULL; it is valid as long as *wide and
 * *old are. Returns NULL if old is NULL. */
struct fi_info *fab_widen(struct fab_wide_info *wide, const struct fi_info *old, enum fab_layout layout);

/* The layout of struct fi_info that code written for this API version uses. */
enum fab_layout fab_layout_of(uint32_t api_version);

/* fi_dupinfo() of an entry that such code made. NULL: no memory. */
struct fi_info *fab_dupinfo_of(uint32_t api_version, const struct fi_info *info);

/* The later members that entries of a layout have, as FAB_INFO_* of info.h. */
unsigned fab_layout_parts(enum fab_layout layout);

#endif
