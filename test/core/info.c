/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Copies of struct fi_info: whole, deep, freed without rest, also when memory runs out; and its older layouts.
 */
#include "base/unit.h"

#include "base/bits.h"
#include "compat.h"
#include "core/heap.h"
#include "info.h"

#include <stdlib.h>
#include <string.h>

static char device_name[] = "dev", device_id[] = "id", device_version[] = "v", vendor[] = "vnd", driver[] = "drv",
	firmware[] = "fw", link_addr[] = "aa:bb", net_type[] = "Ethernet", domain_name[] = "eth0",
	fabric_name[] = "net", prov_name[] = "tcp", src[] = "source", dest[] = "destination";
static uint8_t ep_key[] = { 1, 2, 3 }, domain_key[] = { 4, 5 };
static struct fi_device_attr device = {
	.name = device_name, .device_id = device_id, .device_version = device_version, .vendor_id = vendor,
	.driver = driver, .firmware = firmware,
};
static struct fi_bus_attr bus = { .bus_type = FI_BUS_PCI, .attr.pci = { 1, 2, 3, 4 } };
static struct fi_link_attr link_attr = { .address = link_addr, .mtu = 1500, .network_type = net_type };
static struct fid_nic nic = {
	.fid.fclass = FI_CLASS_NIC, .device_attr = &device, .bus_attr = &bus, .link_attr = &link_attr,
	.prov_attr = &nic,
};
static struct fi_tx_attr tx = { .caps = 1, .tclass = 7 };
static struct fi_rx_attr rx = { .caps = 2, .iov_limit = 8 };
static struct fi_ep_attr ep = { .type = FI_EP_RDM, .auth_key = ep_key, .auth_key_size = sizeof(ep_key) };
static struct fi_domain_attr domain = {
	.name = domain_name, .domain = (void *) 8, .auth_key = domain_key, .auth_key_size = sizeof(domain_key),
	.max_err_cntr_value = 9,
};
static struct fi_fabric_attr fabric = {
	.name = fabric_name, .prov_name = prov_name, .fabric = (void *) 16, .api_version = 5,
};
static struct fi_info next;
static struct fi_info full = {
	.next = &next, .caps = 3, .mode = 4, .addr_format = FI_ADDR_STR, .src_addrlen = sizeof(src), .src_addr = src,
	.dest_addrlen = sizeof(dest), .dest_addr = dest, .handle = (void *) 24, .tx_attr = &tx, .rx_attr = &rx,
	.ep_attr = &ep, .domain_attr = &domain, .fabric_attr = &fabric, .nic = &nic,
};

static void assert_copied(const void *copy, const void *original, size_t len)
{
	assert_non_null(copy);
	assert_ptr_not_equal(copy, original);
	assert_memory_equal(copy, original, len);
}

static void assert_copied_string(const char *copy, const char *original)
{
	assert_copied(copy, original, strlen(original) + 1);
}

static void a_copy_is_whole_and_deep(void **state)
{
	struct fi_info *copy = fi_dupinfo(&full);

	(void) state;
	assert_non_null(copy);
	assert_null(copy->next);
	assert_int_equal(copy->caps, 3);
	assert_int_equal(copy->addr_format, FI_ADDR_STR);
	assert_ptr_equal(copy->handle, full.handle);
	assert_copied(copy->src_addr, src, sizeof(src));
	assert_copied(copy->dest_addr, dest, sizeof(dest));
	assert_copied(copy->tx_attr, &tx, sizeof(tx));
	assert_copied(copy->rx_attr, &rx, sizeof(rx));
	assert_copied(copy->ep_attr->auth_key, ep_key, sizeof(ep_key));
	assert_ptr_equal(copy->domain_attr->domain, domain.domain);
	assert_int_equal(copy->domain_attr->max_err_cntr_value, 9);
	assert_copied_string(copy->domain_attr->name, domain_name);
	assert_copied(copy->domain_attr->auth_key, domain_key, sizeof(domain_key));
	assert_ptr_equal(copy->fabric_attr->fabric, fabric.fabric);
	assert_copied_string(copy->fabric_attr->name, fabric_name);
	assert_copied_string(copy->fabric_attr->prov_name, prov_name);
	assert_copied_string(copy->nic->device_attr->name, device_name);
	assert_copied_string(copy->nic->device_attr->firmware, firmware);
	assert_copied(copy->nic->bus_attr, &bus, sizeof(bus));
	assert_copied_string(copy->nic->link_attr->address, link_addr);
	assert_copied_string(copy->nic->link_attr->network_type, net_type);
	assert_null(copy->nic->prov_attr);
	fi_freeinfo(copy);
}

/* What the core made, it can also copy: through the operations of the nic, as a provider's own would be. */
/* Callers free a list entry by entry. */
static void a_copy_of_a_list_entry_is_alone(void **state)
{
	struct fi_info *copy = fab_info_dup(&full);

	(void) state;
	assert_non_null(copy);
	assert_ptr_equal(full.next, &next);
	assert_null(copy->next);
	fab_info_free(copy, FAB_INFO_ALL);
}

static void a_copy_of_a_copy_is_the_same(void **state)
{
	struct fi_info *copy = fi_dupinfo(&full), *again = fi_dupinfo(copy);
	struct fid *fid = &again->nic->fid;

	(void) state;
	assert_copied_string(again->nic->device_attr->driver, driver);
	assert_ptr_not_equal(again->nic, copy->nic);
	assert_int_equal(fi_control(fid, FI_GETWAIT, NULL), -FI_ENOSYS);
	assert_int_equal(fid->ops->bind(fid, fid, 0), -FI_ENOSYS);
	fi_freeinfo(copy);
	fi_freeinfo(again);
}

static void a_copy_of_nothing_is_blank(void **state)
{
	static const struct fi_domain_attr zero;
	struct fi_info *info = fi_allocinfo();

	(void) state;
	assert_true(info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->fabric_attr);
	assert_memory_equal(info->domain_attr, &zero, sizeof(zero));
	assert_true(!info->nic && !info->caps && !info->src_addr && !info->fabric_attr->prov_name);
	fi_freeinfo(info);
	fi_freeinfo(NULL);
}

static void a_sparse_entry_stays_sparse(void **state)
{
	struct fi_ep_attr keys_in_av = { .auth_key_size = FI_AV_AUTH_KEY };
	struct fi_info sparse = { .src_addrlen = 16, .ep_attr = &keys_in_av }, *copy = fi_dupinfo(&sparse);

	(void) state;
	assert_true(!copy->src_addr && !copy->tx_attr && !copy->domain_attr && !copy->nic);
	assert_null(copy->ep_attr->auth_key);
	assert_true(copy->ep_attr->auth_key_size == FI_AV_AUTH_KEY);
	fi_freeinfo(copy);
}

/* Each allocation of a copy fails in turn: there is no copy then, and nothing is left of it. */
static void a_copy_that_fails_leaves_nothing(void **state)
{
	struct fi_info *copy, *again;
	size_t blocks;
	long n;

	(void) state;
	if (!heap_can_fail())
		unit_skip("a sanitizer has a heap of its own");
	copy = fi_dupinfo(&full);
	blocks = heap_blocks();
	for (n = 0; n < 1000; n++) {
		heap_fail(n);
		again = fi_dupinfo(copy);
		heap_fail(-1);
		if (again)
			break;
		assert_int_equal(heap_blocks(), blocks);
	}
	assert_in_range(n, 20, 100);
	fi_freeinfo(again);
	assert_int_equal(heap_blocks(), blocks);
	fi_freeinfo(copy);
}

static int refuse_dup(struct fid *fid, int command, void *arg)
{
	(void) fid;
	(void) command;
	(void) arg;
	return -FI_ENOMEM;
}

/* A provider's nic is copied by the provider, and if it cannot, there is no copy. */
static void a_nic_with_operations_copies_itself(void **state)
{
	struct fi_ops ops = { .size = sizeof(ops), .control = refuse_dup };
	struct fid_nic own = { .fid.ops = &ops };
	struct fi_info info = { .nic = &own };

	(void) state;
	assert_null(fi_dupinfo(&info));
}

/* Each older layout, filled to its last byte, in memory that has no byte more: AddressSanitizer sees a read beyond, and
 * bytes beyond are zero in the result. */
static void old_layouts_are_widened(void **state)
{
	static const struct {
		enum fab_layout layout;
		uint32_t version;
		size_t info, tx, rx, ep, domain, fabric;
	} cases[] = {
		{ FAB_LAYOUT_1_0, FI_VERSION(1, 4), 112, 72, 64, 80, 120, 28 },
		{ FAB_LAYOUT_1_1, FI_VERSION(1, 6), 112, 72, 64, 96, 184, 32 },
		{ FAB_LAYOUT_1_2, FI_VERSION(1, 8), 120, 72, 64, 96, 184, 32 },
		{ FAB_LAYOUT_1_3, FI_VERSION(1, 17), 120, 80, 64, 96, 192, 32 },
		{ FAB_LAYOUT_1_7, FI_VERSION(1, 22), 120, 80, 64, 96, 200, 32 },
		{ FAB_LAYOUT_1_8, FI_VERSION(2, 4), 120, 80, 64, 96, 208, 32 },
		{ FAB_LAYOUT_1_9, FI_VERSION(2, 6), 120, 80, 64, 96, 224, 32 },
		{ FAB_LAYOUT_1_10, FI_VERSION(2, 7), 120, 80, 64, 104, 232, 32 },
	};
	size_t i;

	(void) state;
	for (i = 0; i < fab_countof(cases); i++) {
		struct fi_info *old = malloc(cases[i].info), *wide_info;
		struct fab_wide_info wide, zero;

		memset(old, 0xee, cases[i].info);
		old->tx_attr = memset(malloc(cases[i].tx), 1, cases[i].tx);
		old->rx_attr = memset(malloc(cases[i].rx), 2, cases[i].rx);
		old->ep_attr = memset(malloc(cases[i].ep), 3, cases[i].ep);
		old->domain_attr = memset(malloc(cases[i].domain), 4, cases[i].domain);
		old->fabric_attr = memset(malloc(cases[i].fabric), 5, cases[i].fabric);
		memset(&wide, 0xff, sizeof(wide));
		memset(&zero, 0, sizeof(zero));

		assert_int_equal(fab_layout_of(cases[i].version), cases[i].layout);
		wide_info = fab_widen(&wide, old, cases[i].layout);
		assert_ptr_equal(wide_info, &wide.info);
		assert_null(wide_info->next);
		assert_memory_equal((char *) wide_info->tx_attr, old->tx_attr, cases[i].tx);
		assert_memory_equal((char *) wide_info->ep_attr, old->ep_attr, cases[i].ep);
		assert_memory_equal((char *) wide_info->domain_attr, old->domain_attr, cases[i].domain);
		assert_memory_equal((char *) wide_info->fabric_attr, old->fabric_attr, cases[i].fabric);
		assert_memory_equal((char *) &wide.info + cases[i].info, &zero, sizeof(wide.info) - cases[i].info);
		assert_memory_equal((char *) &wide.tx_attr + cases[i].tx, &zero, sizeof(wide.tx_attr) - cases[i].tx);
		assert_memory_equal((char *) &wide.ep_attr + cases[i].ep, &zero, sizeof(wide.ep_attr) - cases[i].ep);
		assert_memory_equal((char *) &wide.domain_attr + cases[i].domain, &zero,
				    sizeof(wide.domain_attr) - cases[i].domain);
		assert_memory_equal((char *) &wide.fabric_attr + cases[i].fabric, &zero,
				    sizeof(wide.fabric_attr) - cases[i].fabric);

		free(old->tx_attr);
		free(old->rx_attr);
		free(old->ep_attr);
		free(old->domain_attr);
		free(old->fabric_attr);
		free(old);
	}
	assert_null(fab_widen(NULL, NULL, FAB_LAYOUT_1_0));
}

/* An old caller's fi_freeinfo() knows neither keys nor nic: what it is given has none. */
static void later_parts_can_be_dropped(void **state)
{
	struct fi_info *copy = fi_dupinfo(&full);

	(void) state;
	fab_info_drop(copy, FAB_INFO_KEYS);
	assert_true(!copy->ep_attr->auth_key && !copy->ep_attr->auth_key_size);
	assert_true(!copy->domain_attr->auth_key && !copy->domain_attr->auth_key_size);
	assert_non_null(copy->nic);
	fab_info_drop(copy, FAB_INFO_ALL);
	assert_null(copy->nic);
	fab_info_free(copy, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_whole_and_deep),
		cmocka_unit_test(a_copy_of_a_list_entry_is_alone),
		cmocka_unit_test(a_copy_of_a_copy_is_the_same),
		cmocka_unit_test(a_copy_of_nothing_is_blank),
		cmocka_unit_test(a_sparse_entry_stays_sparse),
		cmocka_unit_test(a_copy_that_fails_leaves_nothing),
		cmocka_unit_test(a_nic_with_operations_copies_itself),
		cmocka_unit_test(old_layouts_are_widened),
		cmocka_unit_test(later_parts_can_be_dropped),
	};

	return cmocka_run_group_tests_name("core/info", tests, NULL, NULL);
}
