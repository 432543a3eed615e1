/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The GIDs of a port (gid.c). Any thread.
 */
#ifndef VRB_GID_H
#define VRB_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

struct vrb_device;			/* device.h */

enum vrb_gid_sort {
	VRB_GID_LINK,			/* fe80::/10 */
	VRB_GID_V4,			/* ::ffff:a.b.c.d */
	VRB_GID_V6,
	VRB_GID_SORTS
};

/* The GIDs of a port that are used. */
struct vrb_gids {
	bool have[VRB_GID_SORTS];
	uint8_t index[VRB_GID_SORTS];	/* the first of its sort in the port's table */
	uint8_t own;			/* index of the GID that names of endpoints have */
};

struct vrb_gid {
	union ibv_gid gid;
	enum vrb_gid_sort sort;
	uint8_t index;			/* in the port's table */
	bool routable;			/* packets with it can pass routers (RoCE v2) */
};

/* Called with one GID of a port. Returns false to end the walk. */
typedef bool vrb_gid_fn(const struct vrb_gid *gid, void *arg);

/* The sort of a GID, by its prefix. */
enum vrb_gid_sort vrb_gid_sort(const union ibv_gid *gid);
/* Call see with each GID of the port, in the order of its table, until it returns false. The table may have a thousand
 * entries; it is read by one call where libibverbs has that, else by one call for each. */
void vrb_gids_see(struct ibv_context *verbs, uint8_t port_num, vrb_gid_fn *see, void *arg);
/* Find the first GID of each sort, and the one for names of endpoints. */
void vrb_gids_find(const struct vrb_device *dev, struct vrb_gids *gids);
/* The index of the GID to send from to dest: one of the same sort if there is one. */
uint8_t vrb_gid_towards(const struct vrb_gids *gids, const union ibv_gid *dest);

#endif
