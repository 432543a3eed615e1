/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rank and filter of network interfaces, on a machine made up in a temporary folder; and on the one that runs the test.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "common/net/netif.h"
#include "folder.h"
#include "offer.h"

#define IF_MAX 16

/* ---- a machine ---- */

static struct {
	char dir[64], proc[80], sys[80];
	struct ifaddrs ifas[IF_MAX];
	union fab_sockaddr addrs[IF_MAX], masks[IF_MAX];
	unsigned cnt;
	int err;			/* errno of getifaddrs */
} machine;

static int fake_getifaddrs(struct ifaddrs **list)
{
	errno = machine.err;
	*list = machine.cnt ? machine.ifas : NULL;
	return machine.err ? -1 : 0;
}

static void fake_freeifaddrs(struct ifaddrs *list)
{
	(void) list;
}

static const struct fab_netif_source fake = { machine.proc, machine.sys, fake_getifaddrs, fake_freeifaddrs };

static int machine_new(void **state)
{
	(void) state;
	memset(&machine, 0, sizeof(machine));
	strcpy(machine.dir, "/tmp/netif-test-XXXXXX");
	assert_non_null(mkdtemp(machine.dir));
	snprintf(machine.proc, sizeof(machine.proc), "%s/proc", machine.dir);
	snprintf(machine.sys, sizeof(machine.sys), "%s/sys", machine.dir);
	mkdir(machine.proc, 0700);
	mkdir(machine.sys, 0700);
	folder_write(machine.proc, "route",
		     "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n");
	fab_netif_source = &fake;
	return 0;
}

static int machine_end(void **state)
{
	(void) state;
	return folder_remove(machine.dir);
}

/* An interface's address, "192.0.2.1/24". marks: files in its folder of /sys/class/net, each after a blank. */
static void add(const char *name, const char *cidr, unsigned flags, const char *speed, const char *marks)
{
	unsigned i = machine.cnt++, prefix_len = atoi(strchr(cidr, '/') + 1), size;
	union fab_sockaddr *addr = &machine.addrs[i], *mask = &machine.masks[i];
	char host[64], dir[160], mark[32];
	uint8_t *bits;

	snprintf(host, sizeof(host), "%.*s", (int) strcspn(cidr, "/"), cidr);
	if (inet_pton(AF_INET, host, &addr->sin.sin_addr) == 1) {
		addr->sa.sa_family = AF_INET;
		bits = (uint8_t *) &mask->sin.sin_addr;
		size = 4;
	} else {
		assert_int_equal(inet_pton(AF_INET6, host, &addr->sin6.sin6_addr), 1);
		addr->sa.sa_family = AF_INET6;
		bits = mask->sin6.sin6_addr.s6_addr;
		size = 16;
	}
	mask->sa.sa_family = addr->sa.sa_family;
	for (unsigned bit = 0; bit < prefix_len && bit < size * 8; bit++)
		bits[bit / 8] |= 0x80 >> bit % 8;
	machine.ifas[i] = (struct ifaddrs) { .ifa_name = (char *) name, .ifa_flags = flags, .ifa_addr = &addr->sa,
					     .ifa_netmask = &mask->sa };
	if (i)
		machine.ifas[i - 1].ifa_next = &machine.ifas[i];
	snprintf(dir, sizeof(dir), "%s/%s", machine.sys, name);
	if (mkdir(dir, 0700))
		return;
	folder_write(dir, "mtu", "1500\n");
	if (speed)
		folder_write(dir, "speed", speed);
	for (int len; sscanf(marks, " %31s%n", mark, &len) == 1; marks += len)
		folder_write(dir, mark, "");
}

static void default_route(const char *name)
{
	char line[128];

	snprintf(line, sizeof(line), "%s\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n", name);
	folder_write(machine.proc, "route", line);
}

#define UP (IFF_UP | IFF_RUNNING)

/* A server: two cards, a wireless one, docker, a bridge, a VPN, all in the wrong order. */
static void add_server(void)
{
	add("lo", "127.0.0.1/8", UP | IFF_LOOPBACK, NULL, "");
	add("docker0", "172.17.0.1/16", UP, "10000", "bridge");
	add("tun0", "10.8.0.2/24", UP, "10", "tun_flags");
	add("eth0", "192.0.2.2/24", UP, "1000", "device");
	add("eth0", "fe80::2/64", UP, "1000", "device");
	add("eth0", "2001:db8::2/64", UP, "1000", "device");
	add("eth1", "198.51.100.2/24", UP, "100000", "device");
	add("eth2", "203.0.113.2/24", UP, "-1", "device");
	add("eth3", "203.0.113.3/24", IFF_UP, "1000", "device");
	add("eth4", "203.0.113.4/24", IFF_RUNNING, "1000", "device");
	add("veth12", "10.1.0.1/24", UP, "10000", "");
	add("bond0", "10.2.0.1/24", UP, "20000", "");
	default_route("eth0");
}

/* The list as "name/4 name/6 ...". */
static const char *names(const char *filter)
{
	static char text[1024];
	struct fab_netif *list;
	size_t cnt;
	int ret;

	*text = '\0';
	ret = fab_netif_list(&test_prov, filter, &list, &cnt);
	if (ret)
		return ret == -FI_ENODATA ? "none" : "error";
	for (size_t i = 0; i < cnt; i++)
		sprintf(text + strlen(text), "%s%s/%d", i ? " " : "", list[i].name,
			list[i].addr.sa.sa_family == AF_INET ? 4 : 6);
	free(list);
	return text;
}

/* ---- rank ---- */

static void the_way_out_comes_first_and_loopback_last(void **state)
{
	(void) state;
	add_server();
	assert_string_equal(names(NULL), "eth0/4 eth1/4 eth0/6 eth2/4 bond0/4 docker0/4 veth12/4 tun0/4 eth0/6 eth3/4 "
			    "lo/4");
}

/* Whoever is behind a point-to-point interface is one host, also with a default route; hardware stays hardware. */
static void point_to_point_comes_last(void **state)
{
	(void) state;
	add("lo", "127.0.0.1/8", UP | IFF_LOOPBACK, NULL, "");
	add("wg0", "10.9.0.2/24", UP | IFF_POINTOPOINT | IFF_NOARP, NULL, "");
	add("ppp0", "10.9.1.2/32", UP | IFF_POINTOPOINT | IFF_NOARP, NULL, "");
	add("docker0", "172.17.0.1/16", UP, "10000", "bridge");
	add("wwan0", "192.0.2.9/24", UP | IFF_POINTOPOINT, "10", "device");
	add("eth0", "192.0.2.2/24", UP, "1000", "device");
	default_route("ppp0");
	assert_string_equal(names(NULL), "eth0/4 wwan0/4 docker0/4 ppp0/4 wg0/4 lo/4");
	assert_string_equal(names("wg0,eth0"), "wg0/4 eth0/4");
}

static void a_container_is_served_by_its_veth(void **state)
{
	(void) state;
	add("lo", "127.0.0.1/8", UP | IFF_LOOPBACK, NULL, "");
	add("lo", "::1/128", UP | IFF_LOOPBACK, NULL, "");
	add("eth1", "10.0.0.2/24", UP, "10000", "");
	add("eth0", "172.17.0.2/16", UP, "10000", "");
	default_route("eth0");
	assert_string_equal(names(NULL), "eth0/4 eth1/4 lo/4 lo/6");
}

static void a_bridge_with_the_default_route_is_the_way_out(void **state)
{
	(void) state;
	add("eth1", "10.0.0.2/24", UP, "1000", "device");
	add("br0", "192.0.2.2/24", UP, "1000", "bridge");
	default_route("br0");
	assert_string_equal(names(NULL), "br0/4 eth1/4");
}

static void ipv6_addresses_that_do_not_last_come_later(void **state)
{
	(void) state;
	add("eth0", "2001:db8::1/64", UP, "1000", "device");	/* temporary */
	add("eth0", "2001:db8::2/64", UP, "1000", "device");
	add("eth0", "2001:db8::3/64", UP, "1000", "device");	/* tentative */
	add("eth0", "2001:db8::4/64", UP, "1000", "device");	/* a duplicate */
	folder_write(machine.proc, "if_inet6", "20010db8000000000000000000000001 02 40 00 01     eth0\n"
		     "20010db8000000000000000000000002 02 40 00 80     eth0\n"
		     "20010db8000000000000000000000003 02 40 00 40     eth0\n"
		     "20010db8000000000000000000000004 02 40 00 c8     eth0\n");
	assert_string_equal(names(NULL), "eth0/6 eth0/6");
	assert_string_equal(names("2001:db8::3, 2001:db8::4"), "none");
}

static void an_ipv6_default_route_counts_and_a_rejecting_one_does_not(void **state)
{
	(void) state;
	add("eth0", "2001:db8:1::1/64", UP, "1000", "device");
	add("eth1", "2001:db8:2::1/64", UP, "1000", "device");
	folder_write(machine.proc, "ipv6_route",
		     "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
		     "00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 eth0\n"
		     "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
		     "20010db8000200000000000000000001 00000400 00000001 00000000 00000003 eth1\n");
	assert_string_equal(names(NULL), "eth1/6 eth0/6");
}

static void entries_say_network_speed_and_mtu(void **state)
{
	struct fab_netif *list;
	size_t cnt;

	(void) state;
	add("eth0:1", "192.0.2.77/26", UP, "10000", "device");
	add("eth0", "2001:db8:0:1:2::1/56", UP, "10000", "device");
	assert_int_equal(fab_netif_list(&test_prov, NULL, &list, &cnt), 0);
	assert_int_equal(cnt, 2);
	assert_string_equal(list[0].name, "eth0");
	assert_string_equal(list[0].network, "192.0.2.64/26");
	assert_int_equal(list[0].prefix_len, 26);
	assert_int_equal(list[0].mtu, 1500);
	assert_int_equal(list[0].speed, 10000000000);
	assert_true(list[0].running);
	assert_false(list[0].loopback);
	assert_int_equal(fab_addr_port(&list[0].addr.sa), 0);
	assert_string_equal(list[1].network, "2001:db8::/56");
	free(list);
}

/* ---- what it costs ---- */

static unsigned opens;

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	opens++;
	return __real_fopen(path, mode);
}

static unsigned opens_of_a_list(void)
{
	opens = 0;
	assert_string_not_equal(names(NULL), "none");
	return opens;
}

/* However many addresses there are: what lists routes and addresses is read once, and each interface asked once. */
static void more_addresses_open_no_more_files(void **state)
{
	unsigned few;

	(void) state;
	add("eth0", "192.0.2.1/24", UP, "1000", "device");
	add("eth0", "192.0.2.2/24", UP, "1000", "device");
	default_route("eth0");
	few = opens_of_a_list();
	assert_in_range(few, 1, 5);
	for (int i = 3; i < 9; i++) {
		char cidr[32];

		snprintf(cidr, sizeof(cidr), "192.0.2.%d/24", i);
		add("eth0", cidr, UP, "1000", "device");
		snprintf(cidr, sizeof(cidr), "2001:db8::%d/64", i);
		add("eth0", cidr, UP, "1000", "device");
	}
	assert_int_equal(opens_of_a_list(), few);
}

/* ---- filter ---- */

static const struct {
	const char *filter, *result;
} filters[] = {
	{ "eth1", "eth1/4" },
	{ "eth1,eth0", "eth1/4 eth0/4 eth0/6 eth0/6" },
	{ "lo", "lo/4" },
	{ "lo,eth1", "lo/4 eth1/4" },
	{ "eth?", "eth0/4 eth1/4 eth0/6 eth2/4 eth0/6 eth3/4" },
	{ "eth[12]", "eth1/4 eth2/4" },
	{ "eth*,^eth0", "eth1/4 eth2/4 eth3/4" },
	{ "!eth0 , ^docker0,^lo,!10.0.0.0/8", "eth1/4 eth2/4 eth3/4" },
	{ "198.51.100.0/24", "eth1/4" },
	{ "198.51.100.2", "eth1/4" },
	{ "198.51.100.3", "none" },
	{ "2001:db8::/32", "eth0/6" },
	{ "fe80::/10", "eth0/6" },
	{ "::/0,^fe80::/10", "eth0/6" },
	{ "10.2.0.0/23", "bond0/4" },
	{ "10.2.1.0/24", "none" },
	{ "0.0.0.0/0,^lo,^eth*", "bond0/4 docker0/4 veth12/4 tun0/4" },
	{ "nosuch", "none" },
	{ "10.0.0.0/33", "none" },
	{ "10.0.0.0/", "none" },
	{ "10.0.0.0/8x", "none" },
	{ "^*", "none" },
	{ "", "eth0/4 eth1/4 eth0/6 eth2/4 bond0/4 docker0/4 veth12/4 tun0/4 eth0/6 eth3/4 lo/4" },
	{ " , ,", "eth0/4 eth1/4 eth0/6 eth2/4 bond0/4 docker0/4 veth12/4 tun0/4 eth0/6 eth3/4 lo/4" },
};

static void filters_pick_and_leave_out(void **state)
{
	(void) state;
	add_server();
	for (size_t i = 0; i < fab_countof(filters); i++) {
		if (strcmp(names(filters[i].filter), filters[i].result))
			fail_msg("\"%s\": %s", filters[i].filter, names(filters[i].filter));
	}
}

static void a_filter_of_64_kib_is_no_trouble(void **state)
{
	char *filter = malloc(65537);

	(void) state;
	add_server();
	memset(filter, 'x', 65536);
	filter[65536] = '\0';
	assert_string_equal(names(filter), "none");
	free(filter);
}

/* ---- failure ---- */

static void the_systems_error_is_passed_on(void **state)
{
	struct fab_netif *list;
	size_t cnt;

	(void) state;
	machine.err = EMFILE;
	assert_int_equal(fab_netif_list(&test_prov, NULL, &list, &cnt), -EMFILE);
	machine.err = 0;
	assert_int_equal(fab_netif_list(&test_prov, NULL, &list, &cnt), -FI_ENODATA);
}

static void no_memory_is_an_error(void **state)
{
	struct fab_netif *list;
	size_t cnt;
	int ret = -FI_ENOMEM;

	(void) state;
	add_server();
	for (long n = 0; ret; n++) {
		fail_alloc(n);
		ret = fab_netif_list(&test_prov, NULL, &list, &cnt);
		fail_alloc(-1);
		assert_true(!ret || ret == -FI_ENOMEM);
	}
	free(list);
}

static void this_machine_has_its_loopback_last(void **state)
{
	static const struct fab_netif_source real = { "/proc/net", "/sys/class/net", getifaddrs, freeifaddrs };
	struct fab_netif *list;
	size_t cnt;

	(void) state;
	fab_netif_source = &real;
	if (fab_netif_list(&test_prov, NULL, &list, &cnt) == -FI_ENODATA)
		unit_skip("there is no network interface");
	for (size_t i = 1; i < cnt; i++)
		assert_true(list[i].loopback >= list[i - 1].loopback);
	free(list);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, machine_new, machine_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_way_out_comes_first_and_loopback_last),
		TEST(point_to_point_comes_last),
		TEST(a_container_is_served_by_its_veth),
		TEST(a_bridge_with_the_default_route_is_the_way_out),
		TEST(ipv6_addresses_that_do_not_last_come_later),
		TEST(an_ipv6_default_route_counts_and_a_rejecting_one_does_not),
		TEST(entries_say_network_speed_and_mtu),
		TEST(more_addresses_open_no_more_files),
		TEST(filters_pick_and_leave_out),
		TEST(a_filter_of_64_kib_is_no_trouble),
		TEST(the_systems_error_is_passed_on),
		TEST(no_memory_is_an_error),
		TEST(this_machine_has_its_loopback_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
