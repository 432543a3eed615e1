/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Names of fabrics. Endpoints of the same fabric can reach each other. InfiniBand subnets differ in the prefix of their
 * GIDs, which the subnet manager assigns. On Ethernet a GID is made from an address, and the first GID of a port has
 * the link-local prefix, which is the same everywhere. So the fabric of a RoCE port is the IP network of the address in
 * use, as for tcp, but under another name, since tcp endpoints cannot be reached from verbs. Called at setup only; no
 * state.
 */
#include "verbs/verbs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/net/net.h"

bool vrb_device_roce(const struct vrb_device *dev)
{
	return dev->quirks->gids && dev->port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

void vrb_fabric_of_network(char *name, size_t size, const char *network)
{
	snprintf(name, size, "RoCE-%s", network);
}

/* Get the network of the interface with the address from which the GID is made. False: this machine has no such
 * interface. */
static bool network_of(const union ibv_gid *gid, char *network, size_t size)
{
	union fab_any_addr addr = { .sin6.sin6_family = AF_INET6 };
	struct fab_netif *list;
	bool found = false;
	size_t cnt;

	if (vrb_gid_sort(gid) == VRB_GID_V4) {
		addr = (union fab_any_addr) { .sin.sin_family = AF_INET };
		memcpy(&addr.sin.sin_addr, gid->raw + 12, sizeof(addr.sin.sin_addr));
	} else {
		memcpy(&addr.sin6.sin6_addr, gid->raw, sizeof(addr.sin6.sin6_addr));
	}
	if (fab_netif_list(&vrb_prov, NULL, &list, &cnt))
		return false;
	for (size_t i = 0; i < cnt && !found; i++) {
		found = fab_addr_equal_host(&list[i].addr.sa, &addr.sa);
		if (found)
			snprintf(network, size, "%s", list[i].network);
	}
	free(list);
	return found;
}

void vrb_fabric_of_gid(char *name, size_t size, const struct vrb_device *dev, const union ibv_gid *gid)
{
	char network[64];

	if (dev->quirks->fabric)
		snprintf(name, size, "%s", dev->quirks->fabric);
	else if (vrb_device_roce(dev) && network_of(gid, network, sizeof(network)))
		vrb_fabric_of_network(name, size, network);
	else
		snprintf(name, size, "IB-0x%016" PRIx64, be64toh(gid->global.subnet_prefix));
}
