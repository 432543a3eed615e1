/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * GIDs of a port: the one that endpoints send from, and the one in their names. On InfiniBand the first is used. On
 * Ethernet the table has link-local GIDs and GIDs made from IP addresses; those that can be routed (RoCE v2) are
 * preferred. A datagram is sent from a GID of the same sort as its destination. Called at setup only; no state.
 */
#include "verbs/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"

enum vrb_gid_sort vrb_gid_sort(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (!memcmp(gid->raw, mapped, sizeof(mapped)))
		return VRB_GID_V4;
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80 ? VRB_GID_LINK : VRB_GID_V6;
}

/* False if the kernel says that the entry is of RoCE v1, whose packets cannot pass routers. */
static bool is_routable(const struct ibv_context *verbs, uint8_t port_num, int index)
{
	char path[IBV_SYSFS_PATH_MAX + 64], type[32] = "";
	FILE *file;
	bool v1;

	snprintf(path, sizeof(path), "%s/ports/%u/gid_attrs/types/%d", verbs->device->ibdev_path, port_num, index);
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

/* Read the GIDs of all ports of the device by one call. *cnt < 0: this is not possible. The caller frees the table. */
static struct ibv_gid_entry *read_table(struct ibv_context *verbs, size_t room, ssize_t *cnt)
{
	struct ibv_gid_entry *table = vrb_lib_gid_table() && room ? calloc(room, sizeof(*table)) : NULL;

	*cnt = table ? ibv_query_gid_table(verbs, table, room, 0) : -1;
	return table;
}

/* Read the GIDs with one call for each. */
static void ask_each(struct ibv_context *verbs, uint8_t port_num, int cnt, vrb_gid_fn *see, void *arg)
{
	struct vrb_gid gid;

	for (int i = 0; i < cnt; i++) {
		if (ibv_query_gid(verbs, port_num, i, &gid.gid) || is_unset(&gid.gid))
			continue;
		gid.index = (uint8_t) i;
		gid.sort = vrb_gid_sort(&gid.gid);
		gid.routable = gid.sort != VRB_GID_LINK && is_routable(verbs, port_num, i);
		if (!see(&gid, arg))
			return;
	}
}

void vrb_gids_see(struct ibv_context *verbs, uint8_t port_num, vrb_gid_fn *see, void *arg)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct ibv_gid_entry *table;
	ssize_t cnt;

	if (ibv_query_port(verbs, port_num, &port) || ibv_query_device(verbs, &attr))
		return;
	table = read_table(verbs, (size_t) port.gid_tbl_len * attr.phys_port_cnt, &cnt);
	for (ssize_t i = 0; i < cnt; i++) {
		struct vrb_gid gid = { .gid = table[i].gid, .index = (uint8_t) table[i].gid_index };

		if (table[i].port_num != port_num || table[i].gid_index > UINT8_MAX || is_unset(&gid.gid))
			continue;
		gid.sort = vrb_gid_sort(&gid.gid);
		gid.routable = gid.sort != VRB_GID_LINK && table[i].gid_type != IBV_GID_TYPE_ROCE_V1;
		if (!see(&gid, arg))
			break;
	}
	free(table);
	if (cnt < 0)
		ask_each(verbs, port_num, fab_min(port.gid_tbl_len, UINT8_MAX + 1), see, arg);
}

static bool sort_out(const struct vrb_gid *gid, void *arg)
{
	struct vrb_gids *gids = arg;

	if (!gids->have[gid->sort] && (gid->sort == VRB_GID_LINK || gid->routable)) {
		gids->have[gid->sort] = true;
		gids->index[gid->sort] = gid->index;
	}
	return !(gids->have[VRB_GID_LINK] && gids->have[VRB_GID_V4] && gids->have[VRB_GID_V6]);
}

void vrb_gids_find(const struct vrb_device *dev, struct vrb_gids *gids)
{
	memset(gids, 0, sizeof(*gids));
	if (vrb_params.gid_idx >= 0) {
		gids->own = (uint8_t) vrb_params.gid_idx;
		return;
	}
	vrb_gids_see(dev->verbs, dev->port_num, sort_out, gids);
	if (dev->port.link_layer == IBV_LINK_LAYER_INFINIBAND)
		gids->own = 0;
	else
		gids->own = gids->have[VRB_GID_V4] ? gids->index[VRB_GID_V4] :
			    gids->have[VRB_GID_V6] ? gids->index[VRB_GID_V6] : gids->index[VRB_GID_LINK];
}

uint8_t vrb_gid_towards(const struct vrb_gids *gids, const union ibv_gid *dest)
{
	enum vrb_gid_sort sort = vrb_gid_sort(dest);

	return gids->have[sort] ? gids->index[sort] : gids->own;
}
