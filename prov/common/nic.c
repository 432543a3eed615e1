/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A nic is one piece of memory: its parts and their texts. A copy is the same bytes with the pointers set anew. The
 * text of what is not known is empty, and the pointer to it NULL.
 */
#include "common/nic.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/list.h"
#include "common/ops.h"

#define PATH_LEN	256

struct nic {
	struct fid_nic fid;
	struct fi_device_attr device;
	struct fi_bus_attr bus;
	struct fi_link_attr link;
	char name[16], device_id[16], version[16], vendor_id[16], driver[32], address[64], network_type[16];
};

static struct nic *nic_of(struct fid *fid)
{
	return fab_container(fid, struct nic, fid.fid);
}

/* ---- what /sys says ---- */

static void sys_path(char path[PATH_LEN], const struct fab_netif *netif, const char *file)
{
	snprintf(path, PATH_LEN, "%s/%s/%s", fab_netif_source->sys_net, netif->name, file);
}

/* The first line of a file, without its end; empty if there is none. */
static void sys_text(const struct fab_netif *netif, const char *file, char *text, size_t size)
{
	char path[PATH_LEN];
	FILE *f;

	text[0] = '\0';
	sys_path(path, netif, file);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(text, (int) size, f))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(f);
}

static bool sys_target(const struct fab_netif *netif, const char *file, char target[PATH_MAX])
{
	char path[PATH_LEN];

	sys_path(path, netif, file);
	return realpath(path, target);
}

/* A device may hang on another (virtio on PCI): the last part of the path that is an address on the PCI bus. */
static void find_bus(const struct fab_netif *netif, struct fi_bus_attr *bus)
{
	unsigned domain, id, device, function;
	char path[PATH_MAX], *part;

	bus->bus_type = FI_BUS_UNKNOWN;
	if (!sys_target(netif, "device", path))
		return;
	for (part = strrchr(path, '/'); part; part = strrchr(path, '/')) {
		if (sscanf(part, "/%4x:%2x:%2x.%1x", &domain, &id, &device, &function) == 4) {
			bus->bus_type = FI_BUS_PCI;
			bus->attr.pci = (struct fi_pci_attr) { domain, id, device, function };
			return;
		}
		*part = '\0';
	}
}

static enum fi_link_state find_state(const struct fab_netif *netif)
{
	char text[32];

	sys_text(netif, "operstate", text, sizeof(text));
	if (!strcmp(text, "up"))
		return FI_LINK_UP;
	return !*text || !strcmp(text, "unknown") ? FI_LINK_UNKNOWN : FI_LINK_DOWN;
}

/* By the kernel's number of link layers, ARPHRD_*. */
static const char *find_type(const struct fab_netif *netif)
{
	char text[16];

	sys_text(netif, "type", text, sizeof(text));
	return !strcmp(text, "1") ? "Ethernet" : !strcmp(text, "32") ? "InfiniBand" : "";
}

static void fill(struct nic *nic, const struct fab_netif *netif)
{
	char path[PATH_MAX];

	snprintf(nic->name, sizeof(nic->name), "%s", netif->name);
	sys_text(netif, "device/device", nic->device_id, sizeof(nic->device_id));
	sys_text(netif, "device/revision", nic->version, sizeof(nic->version));
	sys_text(netif, "device/vendor", nic->vendor_id, sizeof(nic->vendor_id));
	if (sys_target(netif, "device/driver", path))
		snprintf(nic->driver, sizeof(nic->driver), "%.31s", strrchr(path, '/') + 1);
	find_bus(netif, &nic->bus);
	sys_text(netif, "address", nic->address, sizeof(nic->address));
	snprintf(nic->network_type, sizeof(nic->network_type), "%s", find_type(netif));
	nic->link.mtu = netif->mtu;
	nic->link.speed = netif->speed;
	nic->link.state = find_state(netif);
}

/* ---- the object ---- */

static int nic_close(struct fid *fid)
{
	free(nic_of(fid));
	return 0;
}

static int nic_control(struct fid *fid, int command, void *arg);

static struct fi_ops nic_ops = {
	.size = sizeof(struct fi_ops),
	.close = nic_close,
	.control = nic_control,
};

static char *text_or_null(char *text)
{
	return *text ? text : NULL;
}

static void set_pointers(struct nic *nic)
{
	nic->fid.device_attr = &nic->device;
	nic->fid.bus_attr = &nic->bus;
	nic->fid.link_attr = &nic->link;
	nic->device = (struct fi_device_attr) {
		.name = nic->name,
		.device_id = text_or_null(nic->device_id),
		.device_version = text_or_null(nic->version),
		.vendor_id = text_or_null(nic->vendor_id),
		.driver = text_or_null(nic->driver),
	};
	nic->link.address = text_or_null(nic->address);
	nic->link.network_type = text_or_null(nic->network_type);
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	struct nic *copy;

	if (command != FI_DUP || !arg)
		return -FI_ENOSYS;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -FI_ENOMEM;
	*copy = *nic_of(fid);
	set_pointers(copy);
	*(struct fid_nic **) arg = &copy->fid;
	return 0;
}

int fab_nic_open(const struct fab_netif *netif, struct fid_nic **nic_fid)
{
	char path[PATH_MAX];
	struct nic *nic;

	*nic_fid = NULL;
	if (!sys_target(netif, "device", path))
		return 0;
	nic = calloc(1, sizeof(*nic));
	if (!nic)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&nic_ops);
	nic->fid.fid = (struct fid) { .fclass = FI_CLASS_NIC, .ops = &nic_ops };
	fill(nic, netif);
	set_pointers(nic);
	*nic_fid = &nic->fid;
	return 0;
}
