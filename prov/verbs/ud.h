/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of datagram endpoints (FI_ADDR_IB_UD) and address vectors of them. The layout is that of upstream's
 * fi_getname(), as observed at run time: 32 bytes in the byte order of the machine, except the GID.
 */
#ifndef VRB_UD_H
#define VRB_UD_H

#include "base/table.h"
#include "verbs/kind.h"

#define VRB_UD_PREFIX	40		/* bytes of a receive buffer before the datagram: the device may write there */
#define VRB_UD_QKEY	0x11111111	/* of every datagram, as in upstream */
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

/* An entry of an address vector. Sends read the first two fields without a lock; the vector's change_lock guards the
 * rest. */
struct vrb_ud_peer {
	struct ibv_ah *ah;		/* owned; NULL: the entry is free */
	struct vrb_ud_name name;
	uint32_t ref;			/* insertions less removals */
	uint32_t index;
	uint32_t number;		/* of the insertion: no other entry of the vector ever has it */
	struct fab_entry by_name;	/* in the vector's table, while it is not free */
};

/* ---- ud_info.c: functions of the kind's table (kind.h), and names of ports; any thread ---- */

/* vrb_kind.getinfo. */
int vrb_ud_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info);
/* vrb_kind.offered. */
bool vrb_ud_offered(const struct vrb_device *dev);
/* vrb_kind.fill. */
void vrb_ud_fill(struct fi_info *info, const struct vrb_device *dev);
/* Fill *gids with the port's GIDs, and *name with the name that endpoints of the port have, without a queue pair
 * number. False, with errno: the GID of the name cannot be read. */
bool vrb_ud_port_name(const struct vrb_device *dev, struct vrb_gids *gids, struct vrb_ud_name *name);
/* The address (addr, len) of an info as a name, borrowed. NULL: info or addr is NULL, or the address has another
 * format. */
const struct vrb_ud_name *vrb_ud_name_in(const struct fi_info *info, const void *addr, size_t len);

/* ---- ud_av.c, ud.c ---- */

/* fi_av_open(3), the vrb_kind.av_open for FI_ADDR_IB_UD. 0 or -FI_E*. */
int vrb_ud_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
/* Make an address handle for an endpoint; datagrams leave from a GID of the same sort as the endpoint's. The caller
 * destroys it. NULL with errno. */
struct ibv_ah *vrb_ud_ah(const struct vrb_domain *domain, const struct vrb_gids *gids, const struct vrb_ud_name *name);
/* Fill the empty slots of the operation tables of ud.c and ud_av.c. Called once, at load. */
void vrb_ud_fill_ops(void);
/* The same for the tables of ud_av.c alone. */
void vrb_ud_av_fill_ops(void);

/* The entry at fi_addr, or NULL. Takes no lock: the application must not remove an address while it sends to it. */
const struct vrb_ud_peer *vrb_ud_peer(const struct fab_av *av, fi_addr_t fi_addr);

#endif
