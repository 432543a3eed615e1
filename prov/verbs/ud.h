/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of datagram endpoints, FI_ADDR_IB_UD, and vectors of them. The layout is what upstream's fi_getname() gives,
 * seen at run time: 32 bytes in the byte order of the machine, but for the GID.
 */
#ifndef VRB_UD_H
#define VRB_UD_H

#include "base/table.h"
#include "verbs/kind.h"

#define VRB_UD_PREFIX	40		/* bytes of a receive buffer before the datagram: the device may write there */
#define VRB_UD_QKEY	0x11111111	/* of every datagram, as upstream has it */
#define VRB_UD_PKEY	0xffff

struct vrb_ud_name {
	union ibv_gid gid;
	uint32_t qpn;
	uint16_t lid;
	uint16_t pkey;
	uint16_t service;
	uint8_t sl;
	uint8_t pad[5];
};
_Static_assert(sizeof(struct vrb_ud_name) == 32, "as upstream's");

/* Whom an entry of a vector names. Who sends reads the first two; the rest is guarded by the vector's change_lock. */
struct vrb_ud_peer {
	struct ibv_ah *ah;		/* owned; NULL: the entry is free */
	struct vrb_ud_name name;
	uint32_t ref;			/* inserts less removes */
	uint32_t index;
	struct fab_entry by_name;	/* in the vector's table, while it is not free */
};

/* ud_info.c: fi_getinfo, for the table of the kind. */
int vrb_ud_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info);
bool vrb_ud_offered(const struct vrb_device *dev);
void vrb_ud_fill(struct fi_info *info, const struct vrb_device *dev);
/* The name that the port is known by, without a queue pair, and the GIDs that it has. False: the GID that it is to be
 * known by cannot be read; errno. */
bool vrb_ud_port_name(const struct vrb_device *dev, struct vrb_gids *gids, struct vrb_ud_name *name);
/* An address of an info's, as a name, borrowed from it; NULL: there is none, or one of another format. info may be
 * NULL. */
const struct vrb_ud_name *vrb_ud_name_in(const struct fi_info *info, const void *addr, size_t len);

/* The domain's fi_av_open slot for FI_ADDR_IB_UD. 0 or -FI_E*. */
int vrb_ud_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
/* A handle for that endpoint, from whichever GID of the port is of its sort. NULL, with errno. The caller owns it. */
struct ibv_ah *vrb_ud_ah(const struct vrb_domain *domain, const struct vrb_gids *gids, const struct vrb_ud_name *name);
void vrb_ud_fill_ops(void);		/* operation tables of ud.c, and those of ud_av.c */
void vrb_ud_av_fill_ops(void);

/* The entry at fi_addr, or NULL. No lock: what is removed while somebody sends to it is the application's fault. */
const struct vrb_ud_peer *vrb_ud_peer(const struct fab_av *av, fi_addr_t fi_addr);

#endif
