/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hardware below a network interface, fi_nic(3), as /sys knows it. Any thread, no state.
 */
#ifndef FAB_NIC_H
#define FAB_NIC_H

#include "common/netif.h"

struct fid_nic;

/*
 * 0 with *nic to be put into a struct fi_info, which frees it; or NULL for an interface without hardware (loopback,
 * bridge, veth ...): programs that spread over what has a nic would take those for further ways out. -FI_ENOMEM.
 */
int fab_nic_open(const struct fab_netif *netif, struct fid_nic **nic);

#endif
