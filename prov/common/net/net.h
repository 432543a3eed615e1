/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Interfaces, names and addresses of this host.
 *
 *   netif    network interfaces and their ranks; resolution of node and service
 *   ip_name  addresses as fi_getname(3) and fi_setname(3) have them
 *   nic      the struct fid_nic of an interface
 *   tclass   traffic classes as the kernel marks packets
 */
#ifndef FAB_NET_ROOM_H
#define FAB_NET_ROOM_H

#include "common/net/ip_name.h"
#include "common/net/netif.h"
#include "common/net/nic.h"
#include "common/net/own.h"
#include "common/net/tclass.h"

#endif
