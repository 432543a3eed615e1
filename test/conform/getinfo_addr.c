/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Discovery: node, service, and addresses in hints. Source: fi_getinfo(3). */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "getinfo.h"

static unsigned int port_of(const void *addr)
{
	return ntohs(((const struct sockaddr_in *) addr)->sin_port);	/* same place in sockaddr_in6 */
}

static void check_addr(const void *addr, size_t len, const char *node, unsigned int port)
{
	const struct sockaddr *sa = addr;
	char text[64];
	const void *ip;

	CHECK(addr != NULL);
	CHECK_EQ(len, sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	ip = sa->sa_family == AF_INET6 ? (const void *) &((const struct sockaddr_in6 *) addr)->sin6_addr :
					 (const void *) &((const struct sockaddr_in *) addr)->sin_addr;
	inet_ntop(sa->sa_family, ip, text, sizeof(text));
	if (strcmp(text, node) || port_of(addr) != port)
		FAIL("address %s port %u, not %s port %u", text, port_of(addr), node, port);
}

static void need_sockaddr(void)
{
	if (!has_sockaddr())
		ABSENT("%s has no socket addresses", run.prov);
}

struct node_row {
	const char *name;
	const char *node, *service;		/* node "": the run's loopback address */
	uint64_t flags;
	unsigned int port;			/* expected; source or destination by FI_SOURCE */
};

static const struct node_row node_rows[] = {
	{ "dest", "", "12345", 0, 12345 },
	{ "dest_numeric", "", "12345", FI_NUMERICHOST, 12345 },
	{ "dest_without_service", "", NULL, 0, 0 },
	{ "source", "", "12345", FI_SOURCE, 12345 },
	{ "source_numeric", "", "12345", FI_SOURCE | FI_NUMERICHOST, 12345 },
	{ "source_without_service", "", NULL, FI_SOURCE, 0 },
	{ "dest_named_service", "", "discard", 0, 9 },
	{ "dest_port_65535", "", "65535", 0, 65535 },
};

/* Node and service become the destination, or with FI_SOURCE the source, and the other side fits to it. */
TEST_TABLE(node_and_service, node_rows, 0)
{
	const struct node_row *row = ROW(node_rows);
	struct fi_info *hints = hints_plain(t), *list, *info;
	int ret;

	need_sockaddr();
	hints->addr_format = run.family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	ret = getinfo(t, run.version, loopback(), row->service, row->flags, hints, &list);
	if (ret && row->service && !strcmp(row->service, "discard"))
		SKIP("no service 'discard' here");
	MUST(ret);
	for (info = list; info; info = info->next) {
		CHECK_EQ(info->addr_format, hints->addr_format);
		if (row->flags & FI_SOURCE) {
			check_addr(info->src_addr, info->src_addrlen, loopback(), row->port);
			CHECK(info->dest_addr == NULL);
		} else {
			check_addr(info->dest_addr, info->dest_addrlen, loopback(), row->port);
		}
	}
}

/* A service alone with FI_SOURCE: that port on each address. */
TEST_PROV(source_service_only, 0)
{
	struct fi_info *list, *info;

	need_sockaddr();
	MUST(getinfo(t, run.version, NULL, "12345", FI_SOURCE, hints_plain(t), &list));
	for (info = list; info; info = info->next) {
		CHECK(info->src_addr != NULL);
		CHECK_EQ(port_of(info->src_addr), 12345);
	}
}

/* The IPv4 address of this host that the run uses. */
static const char *ip4_here(void)
{
	return run.family == AF_INET6 ? "127.0.0.1" : loopback();
}

/* localhost is a name. */
TEST_PROV(node_by_name, 0)
{
	struct fi_info *hints = hints_plain(t), *list;

	need_sockaddr();
	if (run.family == AF_INET6)
		SKIP("localhost need not have an IPv6 address");
	if (strcmp(ip4_here(), "127.0.0.1"))
		ABSENT("localhost is not on the network that this run is for");
	hints->addr_format = FI_SOCKADDR_IN;
	MUST(getinfo(t, run.version, "localhost", "1", 0, hints, &list));
	check_addr(list->dest_addr, list->dest_addrlen, "127.0.0.1", 1);
}

/* FI_ADDR_STR addresses as node, in the form of today and in that of the first releases. */
TEST_PROV(node_as_string, 0)
{
	static const char *const forms[2][2] = {
		{ "fi_sockaddr_in://%s:12345", "AF_INET;%s;12345" },
		{ "fi_sockaddr_in6://[%s]:12345", "AF_INET6;%s;12345" },
	};
	struct fi_info *list;
	char node[128];
	int i;

	need_sockaddr();
	for (i = 0; i < (run.ours ? 2 : 1); i++) {
		snprintf(node, sizeof(node), forms[run.family == AF_INET6][i], loopback());
		note("%s", node);
		MUST(getinfo(t, run.version, node, NULL, 0, hints_plain(t), &list));
		check_addr(list->dest_addr, list->dest_addrlen, loopback(), 12345);
		MUST(getinfo(t, run.version, node, NULL, FI_SOURCE, hints_plain(t), &list));
		check_addr(list->src_addr, list->src_addrlen, loopback(), 12345);
	}
	if (!run.ours)
		return;
	note("no host");
	MUST(getinfo(t, run.version, "AF_INET;;7471", NULL, FI_SOURCE, hints_plain(t), &list));
	for (; list; list = list->next)
		CHECK_EQ(port_of(list->src_addr), 7471);
}

struct bad_node_row {
	const char *name;
	const char *node, *service;
	uint64_t flags;
};

static const struct bad_node_row bad_node_rows[] = {
	{ "unknown_node", "no-such-host.invalid", "1", 0 },
	{ "numeric_host_is_a_name", "localhost", "1", FI_NUMERICHOST },
	{ "not_dotted", "127.0.0.1.9", "1", FI_NUMERICHOST },
	{ "unknown_service", "127.0.0.1", "no-such-service", 0 },
	{ "unknown_source_service", NULL, "no-such-service", FI_SOURCE },
	{ "service_too_large", "127.0.0.1", "65536", 0 },
	{ "service_negative", "127.0.0.1", "-1", 0 },
	{ "service_huge", "127.0.0.1", "99999999999999999999", 0 },
	{ "source_that_is_not_local", "203.0.113.5", "1", FI_SOURCE | FI_NUMERICHOST },
	{ "string_without_address", "fi_sockaddr_in://", NULL, 0 },
	{ "string_of_rubbish", "fi_sockaddr_in://1.2.3:::x", NULL, 0 },
	{ "string_of_unknown_format", "fi_sockaddr_zz://127.0.0.1:1", NULL, 0 },
	{ "string_with_service", "fi_sockaddr_in://127.0.0.1:1", "2", 0 },
	{ "source_without_anything", NULL, NULL, FI_SOURCE },
};

/* What names nothing finds nothing, at once. */
TEST_TABLE(bad_node, bad_node_rows, 0)
{
	const struct bad_node_row *row = ROW(bad_node_rows);
	struct fi_info *list;
	int ret;

	need_sockaddr();
	ret = getinfo(t, run.version, row->node, row->service, row->flags, hints_plain(t), &list);
	CHECK(ret == -FI_ENODATA || ret == -FI_EINVAL);
}

/* Node and service of 64 KiB. */
TEST_PROV(long_node_and_service, 0)
{
	struct fi_info *list;
	char *name = long_name();

	own(t, free, name);
	need_sockaddr();
	CHECK(getinfo(t, run.version, name, "1", 0, hints_plain(t), &list) < 0);
	CHECK(getinfo(t, run.version, loopback(), name, 0, hints_plain(t), &list) < 0);
	memcpy(name, "fi_sockaddr_in://", 17);
	CHECK(getinfo(t, run.version, name, NULL, 0, hints_plain(t), &list) < 0);
}

static struct sockaddr_in *sin_new(const char *ip, unsigned int port)
{
	struct sockaddr_in *sin = calloc(1, sizeof(*sin));

	sin->sin_family = AF_INET;
	sin->sin_port = htons((uint16_t) port);
	inet_pton(AF_INET, ip, &sin->sin_addr);
	return sin;
}

/* Addresses in hints, where no node is given. */
TEST_PROV(addresses_in_hints, 0)
{
	struct fi_info *hints = hints_plain(t), *list, *info;

	need_sockaddr();
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = sin_new(ip4_here(), 0);
	hints->src_addrlen = sizeof(struct sockaddr_in);
	hints->dest_addr = sin_new(ip4_here(), 4321);
	hints->dest_addrlen = sizeof(struct sockaddr_in);
	MUST(getinfo(t, run.version, NULL, NULL, 0, hints, &list));
	for (info = list; info; info = info->next) {
		check_addr(info->src_addr, info->src_addrlen, ip4_here(), 0);
		check_addr(info->dest_addr, info->dest_addrlen, ip4_here(), 4321);
	}
}

/* A node takes the place of the destination in hints; FI_SOURCE that of the source. */
TEST_PROV(node_before_hints, 0)
{
	struct fi_info *hints = hints_plain(t), *list;

	need_sockaddr();
	if (run.family == AF_INET6)
		ABSENT("the same for IPv4");
	hints->addr_format = FI_SOCKADDR_IN;
	hints->dest_addr = sin_new("127.0.0.9", 4321);
	hints->dest_addrlen = sizeof(struct sockaddr_in);
	MUST(getinfo(t, run.version, ip4_here(), "1234", 0, hints, &list));
	check_addr(list->dest_addr, list->dest_addrlen, ip4_here(), 1234);
	MUST(getinfo(t, run.version, ip4_here(), "1234", FI_SOURCE, hints, &list));
	check_addr(list->src_addr, list->src_addrlen, ip4_here(), 1234);
	check_addr(list->dest_addr, list->dest_addrlen, "127.0.0.9", 4321);
}

/* An address with the length 0 in hints. */
static struct fi_info *hints_without_length(struct test *t, bool source)
{
	struct fi_info *hints = hints_plain(t);

	hints->addr_format = FI_SOCKADDR_IN;
	*(source ? &hints->src_addr : &hints->dest_addr) = sin_new("127.0.0.9", 4321);
	return hints;
}

/* An address has a length; a length without an address is ignored. */
TEST_PROV(length_belongs_to_address, 0)
{
	struct fi_info *hints = hints_plain(t), *list;

	need_sockaddr();
	if (!run.ours)
		ABSENT("upstream does not look at lengths");
	CHECK_RET(getinfo(t, run.version, NULL, NULL, 0, hints_without_length(t, true), &list), -FI_ENODATA);
	CHECK_RET(getinfo(t, run.version, NULL, NULL, 0, hints_without_length(t, false), &list), -FI_ENODATA);
	hints->src_addrlen = 3;
	hints->dest_addrlen = 5;
	MUST(getinfo(t, run.version, NULL, NULL, 0, hints, &list));
}

/* FI_SOURCE: address and length of the source in hints are ignored. Otherwise those of the destination are, beside a
 * node or a service. Such hints would find nothing if they were read. */
TEST_PROV(addresses_that_are_ignored, 0)
{
	struct fi_info *hints = hints_without_length(t, true), *list;

	need_sockaddr();
	if (run.family == AF_INET6)
		ABSENT("the same for IPv4");
	MUST(getinfo(t, run.version, ip4_here(), "1234", FI_SOURCE, hints, &list));
	check_addr(list->src_addr, list->src_addrlen, ip4_here(), 1234);
	MUST(getinfo(t, run.version, NULL, "1234", FI_SOURCE, hints, &list));
	CHECK_EQ(port_of(list->src_addr), 1234);
	hints = hints_without_length(t, false);
	MUST(getinfo(t, run.version, ip4_here(), "1234", 0, hints, &list));
	check_addr(list->dest_addr, list->dest_addrlen, ip4_here(), 1234);
	if (strcmp(ip4_here(), "127.0.0.1"))
		return;			/* a service alone is one of the loopback address, where the device is not */
	MUST(getinfo(t, run.version, NULL, "1234", 0, hints, &list));
	CHECK_EQ(port_of(list->dest_addr), 1234);
}

/* Addresses of the wrong length, family, or of nobody. */
TEST_PROV(bad_addresses_in_hints, 0)
{
	struct fi_info *hints, *list;

	need_sockaddr();
	hints = hints_plain(t);
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = sin_new("203.0.113.5", 0);
	hints->src_addrlen = sizeof(struct sockaddr_in);
	note("source that is not local");
	CHECK_RET(getinfo(t, run.version, NULL, NULL, 0, hints, &list), -FI_ENODATA);

	if (!run.ours)
		ABSENT("upstream does not look at lengths");
	hints = hints_plain(t);
	hints->addr_format = FI_SOCKADDR_IN;
	hints->src_addr = sin_new(ip4_here(), 0);
	hints->src_addrlen = 3;
	note("length 3");
	CHECK_RET(getinfo(t, run.version, NULL, NULL, 0, hints, &list), -FI_ENODATA);
	hints->src_addrlen = sizeof(struct sockaddr_in);
	((struct sockaddr_in *) hints->src_addr)->sin_family = 99;
	note("family 99");
	CHECK_RET(getinfo(t, run.version, NULL, NULL, 0, hints, &list), -FI_ENODATA);
	((struct sockaddr_in *) hints->src_addr)->sin_family = AF_INET;
	hints->addr_format = FI_SOCKADDR_IN6;
	note("format of the other family");
	CHECK_RET(getinfo(t, run.version, NULL, NULL, 0, hints, &list), -FI_ENODATA);
}

/* FI_SOCKADDR and FI_FORMAT_UNSPEC as hints: the answer names the real format. */
TEST_PROV(format_is_concrete, 0)
{
	struct fi_info *hints = hints_plain(t), *list, *info;

	need_sockaddr();
	MUST(getinfo(t, run.version, NULL, NULL, 0, hints, &list));
	for (info = list; info; info = info->next)
		CHECK(info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6);
	hints->addr_format = FI_SOCKADDR;
	MUST(getinfo(t, run.version, NULL, NULL, 0, hints, &list));
	for (info = list; info; info = info->next)
		CHECK(info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6);
}
