/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GIDs of a port: which to send from and be known by. On InfiniBand the first is the port's own. Elsewhere the table
 * has some that only the link knows and some made of IP addresses, which can be routed (RoCE v2): those are
 * preferred. A datagram leaves from a GID of its destination's sort. Setup tier; nothing is kept.
 */
#include "verbs/verbs.h"

#include <stdio.h>
#include <string.h>

enum vrb_gid_sort vrb_gid_sort(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (!memcmp(gid->raw, mapped, sizeof(mapped)))
		return VRB_GID_V4;
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80 ? VRB_GID_LINK : VRB_GID_V6;
}

/* The kernel's word on an entry: false only if it says that routers do not know it. */
static bool is_routable(const struct vrb_device *dev, int index)
{
	char path[IBV_SYSFS_PATH_MAX + 64], type[32] = "";
	FILE *file;
	bool v1;

	snprintf(path, sizeof(path), "%s/ports/%u/gid_attrs/types/%d", dev->verbs->device->ibdev_path, dev->port_num, index);
	file = fopen(path, "re");
	if (!file)
		return true;
	v1 = fgets(type, sizeof(type), file) && strstr(type, "v1");
	fclose(file);
	return !v1;
}

static bool is_unset(const union ibv_gid *gid)
{
	static const union ibv_gid none;

	return !memcmp(gid, &none, sizeof(none));
}

void vrb_gids_find(const struct vrb_device *dev, struct vrb_gids *gids)
{
	union ibv_gid gid;

	memset(gids, 0, sizeof(*gids));
	for (int i = 0; i < dev->port.gid_tbl_len; i++) {
		enum vrb_gid_sort sort;

		if (ibv_query_gid(dev->verbs, dev->port_num, i, &gid) || is_unset(&gid))
			continue;
		sort = vrb_gid_sort(&gid);
		if (gids->have[sort] || (sort != VRB_GID_LINK && !is_routable(dev, i)))
			continue;
		gids->have[sort] = true;
		gids->index[sort] = (uint8_t) i;
	}
	if (vrb_params.gid_idx >= 0)
		gids->own = (uint8_t) vrb_params.gid_idx;
	else if (dev->port.link_layer == IBV_LINK_LAYER_INFINIBAND)
		gids->own = 0;
	else
		gids->own = gids->have[VRB_GID_V4] ? gids->index[VRB_GID_V4] :
			    gids->have[VRB_GID_V6] ? gids->index[VRB_GID_V6] : gids->index[VRB_GID_LINK];
}

uint8_t vrb_gid_towards(const struct vrb_gids *gids, const union ibv_gid *dest)
{
	enum vrb_gid_sort sort = vrb_gid_sort(dest);

	return vrb_params.gid_idx < 0 && gids->have[sort] ? gids->index[sort] : gids->own;
}
