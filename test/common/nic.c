/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The hardware below an interface, read from a /sys made up in a temporary folder; and its copies.
 */
#include "unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "common/net/nic.h"
#include "folder.h"

static char top[64], sys_net[80];
static struct fab_netif_source fake;

static void make_dir(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", top, path);
	assert_int_equal(mkdir(full, 0700), 0);
}

static void make_link(const char *path, const char *target)
{
	char full[256], to[256];

	snprintf(full, sizeof(full), "%s/%s", top, path);
	snprintf(to, sizeof(to), "%s/%s", top, target);
	assert_int_equal(symlink(to, full), 0);
}

/* A link with a target that is taken as it is. */
static void make_relative_link(const char *path, const char *target)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", top, path);
	assert_int_equal(symlink(target, full), 0);
}

/* eth0: virtio on PCI, with links as the kernel's. ib0: on PCI itself. usb0: on a bus that is not PCI. veth0: no
 * hardware. */
static int machine_new(void **state)
{
	(void) state;
	strcpy(top, "/tmp/nic-test-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(sys_net, sizeof(sys_net), "%s/net", top);
	make_dir("net");
	make_dir("drivers");
	make_dir("drivers/virtio_net");
	make_dir("pci0000:00");
	make_dir("pci0000:00/0000:00:03.0");
	make_dir("pci0000:00/0000:00:03.0/virtio2");
	make_dir("pci0000:00/0000:00:03.0/virtio2/net");
	make_dir("pci0000:00/0000:00:03.0/virtio2/net/eth0");
	make_relative_link("pci0000:00/0000:00:03.0/virtio2/net/eth0/device", "../../../virtio2");
	make_relative_link("pci0000:00/0000:00:03.0/virtio2/driver", "../../../drivers/virtio_net");
	folder_write(top, "pci0000:00/0000:00:03.0/virtio2/device", "0x0001\n");
	folder_write(top, "pci0000:00/0000:00:03.0/virtio2/vendor", "0x1af4\n");
	make_relative_link("net/eth0", "../pci0000:00/0000:00:03.0/virtio2/net/eth0");
	folder_write(top, "net/eth0/address", "02:fc:00:00:00:01\n");
	folder_write(top, "net/eth0/operstate", "up\n");
	folder_write(top, "net/eth0/type", "1\n");
	make_dir("pci0000:00/10a3:b1:1f.7");
	folder_write(top, "pci0000:00/10a3:b1:1f.7/revision", "0x05\n");
	make_dir("net/ib0");
	make_link("net/ib0/device", "pci0000:00/10a3:b1:1f.7");
	folder_write(top, "net/ib0/operstate", "lowerlayerdown\n");
	folder_write(top, "net/ib0/type", "32\n");
	make_dir("usb");
	make_dir("net/usb0");
	make_link("net/usb0/device", "usb");
	make_dir("net/veth0");
	fake = *fab_netif_source;
	fake.sys_net = sys_net;
	fab_netif_source = &fake;
	return 0;
}

static int machine_end(void **state)
{
	(void) state;
	return folder_remove(top);
}

static struct fid_nic *nic_open(const char *name)
{
	struct fab_netif netif = { .hardware = true, .mtu = 1500, .speed = 10000000000 };
	struct fid_nic *nic = (void *) 1;

	snprintf(netif.name, sizeof(netif.name), "%s", name);
	assert_int_equal(fab_nic_open(&netif, &nic), 0);
	return nic;
}

static void check_eth0(const struct fid_nic *nic)
{
	assert_int_equal(nic->fid.fclass, FI_CLASS_NIC);
	assert_string_equal(nic->device_attr->name, "eth0");
	assert_string_equal(nic->device_attr->device_id, "0x0001");
	assert_string_equal(nic->device_attr->vendor_id, "0x1af4");
	assert_string_equal(nic->device_attr->driver, "virtio_net");
	assert_null(nic->device_attr->device_version);
	assert_null(nic->device_attr->firmware);
	assert_int_equal(nic->bus_attr->bus_type, FI_BUS_PCI);
	assert_int_equal(nic->bus_attr->attr.pci.device_id, 3);
	assert_string_equal(nic->link_attr->address, "02:fc:00:00:00:01");
	assert_int_equal(nic->link_attr->mtu, 1500);
	assert_int_equal(nic->link_attr->speed, 10000000000);
	assert_int_equal(nic->link_attr->state, FI_LINK_UP);
	assert_string_equal(nic->link_attr->network_type, "Ethernet");
}

static void hardware_is_described(void **state)
{
	struct fid_nic *nic = nic_open("eth0");

	(void) state;
	check_eth0(nic);
	fi_close(&nic->fid);
}

static void every_part_of_a_pci_address_counts(void **state)
{
	struct fid_nic *nic = nic_open("ib0");

	(void) state;
	assert_int_equal(nic->bus_attr->attr.pci.domain_id, 0x10a3);
	assert_int_equal(nic->bus_attr->attr.pci.bus_id, 0xb1);
	assert_int_equal(nic->bus_attr->attr.pci.device_id, 0x1f);
	assert_int_equal(nic->bus_attr->attr.pci.function_id, 7);
	assert_string_equal(nic->device_attr->device_version, "0x05");
	assert_null(nic->device_attr->driver);
	assert_int_equal(nic->link_attr->state, FI_LINK_DOWN);
	assert_string_equal(nic->link_attr->network_type, "InfiniBand");
	fi_close(&nic->fid);
}

static void another_bus_is_unknown(void **state)
{
	struct fid_nic *nic = nic_open("usb0");

	(void) state;
	assert_int_equal(nic->bus_attr->bus_type, FI_BUS_UNKNOWN);
	assert_int_equal(nic->link_attr->state, FI_LINK_UNKNOWN);
	assert_null(nic->link_attr->address);
	assert_null(nic->link_attr->network_type);
	fi_close(&nic->fid);
}

static void software_has_no_nic(void **state)
{
	(void) state;
	assert_null(nic_open("veth0"));
	assert_null(nic_open("no-such-interface"));
}

/* Copies own all that they point to, and can be copied again; by fi_dupinfo(), too. */
static void copies_stand_alone(void **state)
{
	struct fi_info *info = fi_allocinfo(), *copy, *again;

	(void) state;
	info->nic = nic_open("eth0");
	copy = fi_dupinfo(info);
	assert_ptr_not_equal(copy->nic, info->nic);
	fi_freeinfo(info);
	again = fi_dupinfo(copy);
	fi_freeinfo(copy);
	check_eth0(again->nic);
	fi_freeinfo(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hardware_is_described),
		cmocka_unit_test(every_part_of_a_pci_address_counts),
		cmocka_unit_test(another_bus_is_unknown),
		cmocka_unit_test(software_has_no_nic),
		cmocka_unit_test(copies_stand_alone),
	};

	return cmocka_run_group_tests(tests, machine_new, machine_end);
}
