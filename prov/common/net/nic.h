/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hardware below a network interface or a device, fi_nic(3), as /sys knows it. Any thread, no state.
 */
#ifndef FAB_NIC_H
#define FAB_NIC_H

#include <rdma/fabric.h>
#include "common/net/netif.h"

/* Empty: not known. */
struct fab_nic_text {
	char name[64], device_id[16], version[16], vendor_id[16], driver[32], firmware[64];
	char address[64], network_type[16];
};

/* What a nic is made of. Zeroed, nothing of it is known. */
struct fab_nic {
	struct fab_nic_text text;
	struct fi_bus_attr bus;
	size_t mtu;			/* bytes, 0 unknown */
	size_t speed;			/* bit/s, 0 unknown */
	enum fi_link_state state;
};

/* Add the bus, and ids and driver as text, which <folder>/device has, a link of /sys. False: there is none, so no
 * hardware. */
bool fab_nic_find(const char *folder, struct fab_nic *nic);

/* An object with all that is known, to be put into a struct fi_info, which frees it. 0, -FI_ENOMEM. */
int fab_nic_make(const struct fab_nic *from, struct fid_nic **nic);

/*
 * 0 with *nic as above; or NULL for an interface without hardware (loopback, bridge, veth ...): programs that spread
 * over what has a nic would take those for further ways out. -FI_ENOMEM.
 */
int fab_nic_open(const struct fab_netif *netif, struct fid_nic **nic);

#endif
