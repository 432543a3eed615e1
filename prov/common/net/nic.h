/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hardware of a network interface or RDMA device, fi_nic(3), from /sys. Any thread, no state.
 */
#ifndef FAB_NIC_H
#define FAB_NIC_H

#include <rdma/fabric.h>
#include "common/net/netif.h"

/* An empty text: not known. */
struct fab_nic_text {
	char name[64], device_id[16], version[16], vendor_id[16], driver[32], firmware[64];
	char address[64], network_type[16];
};

/* The fields of a fid_nic. Zero means not known. */
struct fab_nic {
	struct fab_nic_text text;
	struct fi_bus_attr bus;
	size_t mtu;			/* bytes, 0 unknown */
	size_t speed;			/* bit/s, 0 unknown */
	enum fi_link_state state;
};

/* Fill in bus, ids and driver from the link `device` in a folder of /sys. False: there is no such link, so there is no
 * hardware. */
bool fab_nic_find(const char *folder, struct fab_nic *nic);

/* Copy a fid_nic; the copy of NULL is NULL. The caller closes it, as that of fab_nic_make(). 0 or -FI_ENOMEM. */
int fab_nic_copy(struct fid_nic *from, struct fid_nic **nic);

/* Make a fid_nic. The caller closes it, or stores it in a struct fi_info, whose release closes it. 0 or -FI_ENOMEM. */
int fab_nic_make(const struct fab_nic *from, struct fid_nic **nic);

/*
 * Make the fid_nic of an interface. 0; *nic is NULL for an interface without hardware (loopback, bridge, veth ...),
 * since programs that use all entries with a nic would count it as another device. -FI_ENOMEM.
 */
int fab_nic_open(const struct fab_netif *netif, struct fid_nic **nic);

#endif
