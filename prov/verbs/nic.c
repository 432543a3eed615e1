/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hardware of an entry, fi_nic(3): device and port from libibverbs, the bus from the kernel (sysfs). Fields unknown
 * to both stay unset. Called at setup only; no state.
 */
#include "verbs/verbs.h"

#include <arpa/inet.h>
#include <stdio.h>
#include "base/bits.h"
#include "common/net/net.h"

#define MBIT	1000000ULL
#define GBIT_MAX	1000000	/* more is no speed */

/* The speed of a port as the kernel has it, "400 Gb/sec (4X NDR)", or 0. */
static size_t speed_in_sysfs(const struct vrb_device *dev)
{
	char path[IBV_SYSFS_PATH_MAX + 32];
	double gbit = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/ports/%u/rate", dev->verbs->device->ibdev_path, dev->port_num);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%lf Gb/sec", &gbit) != 1 || gbit < 0 || gbit > GBIT_MAX)
		gbit = 0;
	fclose(file);
	return (size_t) (gbit * 1000) * MBIT;
}

/* The speed of a port by ibv_query_port(3), which encodes width and lane speed as one bit each. Speeds beyond NDR have
 * no bit there. */
static size_t speed_in_verbs(const struct ibv_port_attr *port)
{
	static const unsigned lane_mbit[] = { 2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000 };
	static const unsigned lanes[] = { 1, 4, 8, 12, 2 };
	size_t lane = 0, width = 0;

	for (size_t i = 0; i < fab_countof(lane_mbit); i++)
		lane = port->active_speed == 1u << i ? lane_mbit[i] : lane;
	for (size_t i = 0; i < fab_countof(lanes); i++)
		width = port->active_width == 1u << i ? lanes[i] : width;
	return lane * width * MBIT;
}

static void fill_link(struct fab_nic *nic, const struct vrb_device *dev)
{
	static const char *const layers[] = {
		[IBV_LINK_LAYER_INFINIBAND] = "InfiniBand", [IBV_LINK_LAYER_ETHERNET] = "Ethernet",
	};
	const struct ibv_port_attr *port = &dev->port;
	union ibv_gid gid;

	/* the first GID is made from the port's GUID or the interface's address */
	if (!ibv_query_gid(dev->verbs, dev->port_num, 0, &gid))
		inet_ntop(AF_INET6, &gid, nic->text.address, sizeof(nic->text.address));
	if (port->link_layer < fab_countof(layers) && layers[port->link_layer])
		snprintf(nic->text.network_type, sizeof(nic->text.network_type), "%s", layers[port->link_layer]);
	if (port->active_mtu >= IBV_MTU_256 && port->active_mtu <= IBV_MTU_4096)
		nic->mtu = 128u << port->active_mtu;
	nic->speed = speed_in_sysfs(dev);
	if (!nic->speed)
		nic->speed = speed_in_verbs(port);
	nic->state = port->state == IBV_PORT_ACTIVE ? FI_LINK_UP : FI_LINK_DOWN;
}

int vrb_nic_open(const struct vrb_device *dev, struct fid_nic **nic_fid)
{
	const struct ibv_device_attr *attr = &dev->attr;
	struct fab_nic nic = { .bus.bus_type = FI_BUS_UNKNOWN };
	struct fab_nic_text *text = &nic.text;

	fab_nic_find(dev->verbs->device->ibdev_path, &nic);
	/* values from libibverbs replace those from the bus, since a device may be a function of another one */
	snprintf(text->name, sizeof(text->name), "%s", dev->name);
	snprintf(text->vendor_id, sizeof(text->vendor_id), "0x%04x", attr->vendor_id);
	snprintf(text->device_id, sizeof(text->device_id), "0x%04x", attr->vendor_part_id);
	snprintf(text->version, sizeof(text->version), "%u", attr->hw_ver);
	snprintf(text->firmware, sizeof(text->firmware), "%.63s", attr->fw_ver);
	fill_link(&nic, dev);
	return fab_nic_make(&nic, nic_fid);
}
