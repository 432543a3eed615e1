/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The exported functions that take or return a struct fi_info, once for each layout that it has had.
 *
 * Hints are copied into the newest layout. Results are allocated in the newest layout; parts that an old caller does
 * not know, and would not free, are removed first. A program that was linked against an older version node may pass
 * structures that it allocated itself, so nothing here reads beyond the sizes of that node.
 */
#include "config.h"
#include "compat.h"

#include "base/bits.h"
#include "export.h"
#include "getinfo.h"
#include "info.h"

#include <stddef.h>
#include <string.h>

/* Bytes of each structure. fi_fabric_attr had the same size in 1.0: its last member lies in former padding. */
static const struct {
	uint32_t since;		/* first API version with this layout */
	uint8_t info, tx_attr, rx_attr, ep_attr, domain_attr, fabric_attr;
	unsigned parts;
} layouts[] = {
	[FAB_LAYOUT_1_0] = { FI_VERSION(1, 0), 112, 72, 64, 80, 120, 28, 0 },
	[FAB_LAYOUT_1_1] = { FI_VERSION(1, 5), 112, 72, 64, 96, 184, 32, FAB_INFO_KEYS },
	[FAB_LAYOUT_1_2] = { FI_VERSION(1, 7), 120, 72, 64, 96, 184, 32, FAB_INFO_ALL },
	[FAB_LAYOUT_1_3] = { FI_VERSION(1, 9), 120, 80, 64, 96, 192, 32, FAB_INFO_ALL },
	[FAB_LAYOUT_1_7] = { FI_VERSION(1, 20), 120, 80, 64, 96, 200, 32, FAB_INFO_ALL },
	[FAB_LAYOUT_1_8] = { FI_VERSION(2, 0), 120, 80, 64, 96, 208, 32, FAB_INFO_ALL },
	[FAB_LAYOUT_1_9] = { FI_VERSION(2, 5), 120, 80, 64, 96, 224, 32, FAB_INFO_ALL },
	[FAB_LAYOUT_1_10] = { FI_VERSION(2, 7), 120, 80, 64, 104, 232, 32, FAB_INFO_ALL },
};

/* A new member of one of these structures needs a row in the table above and a node in libfabric.map. */
_Static_assert(sizeof(struct fi_info) == 120 && sizeof(struct fi_tx_attr) == 80 && sizeof(struct fi_rx_attr) == 64 &&
	       sizeof(struct fi_ep_attr) == 104 && sizeof(struct fi_domain_attr) == 232 &&
	       sizeof(struct fi_fabric_attr) == 32, "the newest row is not the current layout");

enum fab_layout fab_layout_of(uint32_t api_version)
{
	enum fab_layout layout = FAB_LAYOUT_NEWEST;

	while (layout > FAB_LAYOUT_1_0 && FI_VERSION_LT(api_version, layouts[layout].since))
		layout--;
	return layout;
}

unsigned fab_layout_parts(enum fab_layout layout)
{
	return layouts[layout].parts;
}

/* Copy an attribute structure over the zeros of its new one; NULL stays NULL. */
static void *widen_attr(void *wide, const void *old, size_t len)
{
	return old ? memcpy(wide, old, len) : NULL;
}

struct fi_info *fab_widen(struct fab_wide_info *wide, const struct fi_info *old, enum fab_layout layout)
{
	if (!old)
		return NULL;
	memset(wide, 0, sizeof(*wide));
	memcpy(&wide->info, old, layouts[layout].info);
	wide->info.next = NULL;
	wide->info.tx_attr = widen_attr(&wide->tx_attr, old->tx_attr, layouts[layout].tx_attr);
	wide->info.rx_attr = widen_attr(&wide->rx_attr, old->rx_attr, layouts[layout].rx_attr);
	wide->info.ep_attr = widen_attr(&wide->ep_attr, old->ep_attr, layouts[layout].ep_attr);
	wide->info.domain_attr = widen_attr(&wide->domain_attr, old->domain_attr, layouts[layout].domain_attr);
	wide->info.fabric_attr = widen_attr(&wide->fabric_attr, old->fabric_attr, layouts[layout].fabric_attr);
	return &wide->info;
}

static int getinfo(enum fab_layout layout, uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	struct fab_wide_info wide;
	struct fi_info *entry;
	int ret;

	ret = fab_getinfo(version, node, service, flags, fab_widen(&wide, hints, layout), info);
	if (ret)
		return ret;
	for (entry = *info; entry; entry = entry->next)
		fab_info_drop(entry, FAB_INFO_ALL & ~layouts[layout].parts);
	return 0;
}

static struct fi_info *dupinfo(enum fab_layout layout, const struct fi_info *info)
{
	struct fab_wide_info wide;

	return fab_info_dup(fab_widen(&wide, info, layout));
}

struct fi_info *fab_dupinfo_of(uint32_t api_version, const struct fi_info *info)
{
	return dupinfo(fab_layout_of(api_version), info);
}

/* The three functions of one layout, as its version node has them. */
#define LAYOUT(suffix, tie, node) \
	FAB_EXPORT int fab_getinfo_##suffix(uint32_t version, const char *to_node, const char *service, \
					    uint64_t flags, const struct fi_info *hints, struct fi_info **info) \
	{ \
		return getinfo(FAB_LAYOUT_##suffix, version, to_node, service, flags, hints, info); \
	} \
	FAB_EXPORT struct fi_info *fab_dupinfo_##suffix(const struct fi_info *info) \
	{ \
		return dupinfo(FAB_LAYOUT_##suffix, info); \
	} \
	FAB_EXPORT void fab_freeinfo_##suffix(struct fi_info *info) \
	{ \
		fab_info_free(info, layouts[FAB_LAYOUT_##suffix].parts); \
	} \
	tie(fab_getinfo_##suffix, fi_getinfo, node); \
	tie(fab_dupinfo_##suffix, fi_dupinfo, node); \
	tie(fab_freeinfo_##suffix, fi_freeinfo, node)

#ifdef PIC
LAYOUT(1_0, FAB_COMPAT, "FABRIC_1.0");
LAYOUT(1_1, FAB_COMPAT, "FABRIC_1.1");
LAYOUT(1_2, FAB_COMPAT, "FABRIC_1.2");
LAYOUT(1_3, FAB_COMPAT, "FABRIC_1.3");
LAYOUT(1_7, FAB_COMPAT, "FABRIC_1.7");
LAYOUT(1_8, FAB_COMPAT, "FABRIC_1.8");
#ifdef API_2_7
LAYOUT(1_9, FAB_COMPAT, "FABRIC_1.9");
#else
LAYOUT(1_10, FAB_COMPAT, "FABRIC_1.10");
#endif
#endif

/* Programs are linked to the node of the headers that are installed, since their structs are as long as those say. */
#ifdef API_2_7
LAYOUT(1_10, FAB_DEFAULT, "FABRIC_1.10");
#else
LAYOUT(1_9, FAB_DEFAULT, "FABRIC_1.9");
#endif
