/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Makes fid_nic objects. The core owns their operations: fi_dupinfo() copies a nic whose provider cannot, and the copy
 * has operations of the core. An attribute that is not known is an empty text here, and a NULL pointer in the nic.
 */
#include "common/net/nic.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "common/ops/ops.h"

/* ---- facts from /sys ---- */

/* Read the first line of a file without its newline; text is empty if there is no such file. */
static void sys_text(const char *folder, const char *file, char *text, size_t size)
{
	char path[PATH_MAX];
	FILE *f;

	text[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	f = fopen(path, "re");
	if (!f)
		return;
	if (!fgets(text, (int) size, f))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(f);
}

/* Read where a link points to. False: there is no such link. */
static bool sys_link(const char *folder, const char *file, char target[PATH_MAX])
{
	char path[PATH_MAX];
	ssize_t len;

	snprintf(path, sizeof(path), "%s%s", folder, file);
	len = readlink(path, target, PATH_MAX - 1);
	target[len < 0 ? 0 : len] = '\0';
	return len > 0;
}

/* Find the PCI address of a device: the last part of its path that is one. The device may be below another (virtio on
 * PCI). False: the path has none. */
static bool find_bus(char path[PATH_MAX], struct fi_bus_attr *bus)
{
	unsigned domain, id, device, function;
	char *part;

	bus->bus_type = FI_BUS_UNKNOWN;
	for (part = strrchr(path, '/'); part; part = strrchr(path, '/')) {
		if (sscanf(part, "/%4x:%2x:%2x.%1x", &domain, &id, &device, &function) == 4) {
			bus->bus_type = FI_BUS_PCI;
			bus->attr.pci = (struct fi_pci_attr) { domain, id, device, function };
			return true;
		}
		*part = '\0';
	}
	return false;
}

/* The folder is a link into the folder of its device, to which the link `device` leads back ("../../../0000:00:03.0").
 * realpath() of both would make 30 system calls. */
bool fab_nic_find(const char *folder, struct fab_nic *nic)
{
	struct fab_nic_text *text = &nic->text;
	char path[PATH_MAX], *slash;

	if (sys_link(folder, "/device/driver", path)) {
		slash = strrchr(path, '/');
		snprintf(text->driver, sizeof(text->driver), "%.31s", slash ? slash + 1 : path);
	}
	if (!sys_link(folder, "/device", path))
		return false;
	if (!find_bus(path, &nic->bus) && sys_link(folder, "", path))
		find_bus(path, &nic->bus);
	sys_text(folder, "device/device", text->device_id, sizeof(text->device_id));
	sys_text(folder, "device/revision", text->version, sizeof(text->version));
	sys_text(folder, "device/vendor", text->vendor_id, sizeof(text->vendor_id));
	return true;
}

/* ---- the object ---- */

/* No ops of its own: only the core can copy it. */
static struct fi_ops plain_ops = { .size = sizeof(struct fi_ops) };

static char *text_or_null(char *text)
{
	return *text ? text : NULL;
}

int fab_nic_copy(struct fid_nic *from, struct fid_nic **nic)
{
	struct fi_info *copy = fi_dupinfo(&(struct fi_info) { .nic = from });

	*nic = NULL;
	if (!copy)
		return -FI_ENOMEM;
	*nic = copy->nic;
	copy->nic = NULL;
	fi_freeinfo(copy);
	return 0;
}

int fab_nic_make(const struct fab_nic *from, struct fid_nic **nic)
{
	struct fab_nic_text text = from->text;
	struct fi_bus_attr bus = from->bus;
	struct fi_device_attr device = {
		.name = text_or_null(text.name),
		.device_id = text_or_null(text.device_id),
		.device_version = text_or_null(text.version),
		.vendor_id = text_or_null(text.vendor_id),
		.driver = text_or_null(text.driver),
		.firmware = text_or_null(text.firmware),
	};
	struct fi_link_attr link = {
		.address = text_or_null(text.address),
		.mtu = from->mtu,
		.speed = from->speed,
		.state = from->state,
		.network_type = text_or_null(text.network_type),
	};
	struct fid_nic plain = {
		.fid = { .fclass = FI_CLASS_NIC, .ops = &plain_ops },
		.device_attr = &device,
		.bus_attr = &bus,
		.link_attr = &link,
	};

	FAB_OPS_FILL(&plain_ops);
	return fab_nic_copy(&plain, nic);
}

/* ---- the nic of an interface ---- */

static enum fi_link_state find_state(const char *folder)
{
	char text[32];

	sys_text(folder, "operstate", text, sizeof(text));
	if (!strcmp(text, "up"))
		return FI_LINK_UP;
	return !*text || !strcmp(text, "unknown") ? FI_LINK_UNKNOWN : FI_LINK_DOWN;
}

/* The link type, from the kernel's ARPHRD_* number. */
static const char *find_type(const char *folder)
{
	char text[16];

	sys_text(folder, "type", text, sizeof(text));
	return !strcmp(text, "1") ? "Ethernet" : !strcmp(text, "32") ? "InfiniBand" : "";
}

int fab_nic_open(const struct fab_netif *netif, struct fid_nic **nic_fid)
{
	struct fab_nic nic = { .mtu = netif->mtu, .speed = netif->speed };
	char folder[PATH_MAX];

	*nic_fid = NULL;
	if (!netif->hardware)
		return 0;
	snprintf(folder, sizeof(folder), "%s/%s", fab_netif_source->sys_net, netif->name);
	if (!fab_nic_find(folder, &nic))
		return 0;
	snprintf(nic.text.name, sizeof(nic.text.name), "%s", netif->name);
	sys_text(folder, "address", nic.text.address, sizeof(nic.text.address));
	snprintf(nic.text.network_type, sizeof(nic.text.network_type), "%s", find_type(folder));
	nic.state = find_state(folder);
	return fab_nic_make(&nic, nic_fid);
}
