/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Node, service, flags and hints into addresses. Nothing here asks a name server.
 */
#include "unit.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <rdma/fi_errno.h>
#include "common/net/netif.h"
#include "offer.h"

/* ---- one name ---- */

static const struct {
	const char *node, *service;
	uint64_t flags;
	int family, ret;
	const char *addr;
} names[] = {
	{ "192.0.2.1", "7471", 0, AF_INET, 0, "fi_sockaddr_in://192.0.2.1:7471" },
	{ "192.0.2.1", "7471", FI_NUMERICHOST, AF_UNSPEC, 0, "fi_sockaddr_in://192.0.2.1:7471" },
	{ "192.0.2.1", NULL, FI_NUMERICHOST, AF_INET6, -FI_ENODATA, NULL },
	{ "2001:db8::1", "1", FI_NUMERICHOST, AF_UNSPEC, 0, "fi_sockaddr_in6://[2001:db8::1]:1" },
	{ "::ffff:192.0.2.1", "1", FI_NUMERICHOST, AF_UNSPEC, 0, "fi_sockaddr_in6://[::ffff:192.0.2.1]:1" },
	{ "localhost", "5", FI_NUMERICHOST, AF_INET, -FI_ENODATA, NULL },
	{ NULL, "5", 0, AF_INET, 0, "fi_sockaddr_in://127.0.0.1:5" },
	{ NULL, "5", FI_SOURCE, AF_INET, 0, "fi_sockaddr_in://0.0.0.0:5" },
	{ NULL, "5", FI_SOURCE, AF_INET6, 0, "fi_sockaddr_in6://[::]:5" },
	{ NULL, NULL, FI_SOURCE, AF_UNSPEC, 0, "fi_sockaddr_in://0.0.0.0:0" },
	{ "", NULL, FI_NUMERICHOST, AF_INET, -FI_ENODATA, NULL },
	/* services */
	{ "192.0.2.1", "0", 0, AF_INET, 0, "fi_sockaddr_in://192.0.2.1:0" },
	{ "192.0.2.1", "65535", 0, AF_INET, 0, "fi_sockaddr_in://192.0.2.1:65535" },
	{ "192.0.2.1", "65536", 0, AF_INET, -FI_EINVAL, NULL },
	{ "192.0.2.1", "99999999999999999999", 0, AF_INET, -FI_EINVAL, NULL },
	{ "192.0.2.1", "12x", 0, AF_INET, -FI_EINVAL, NULL },
	{ "192.0.2.1", "-1", 0, AF_INET, -FI_EINVAL, NULL },
	{ "192.0.2.1", "", 0, AF_INET, -FI_EINVAL, NULL },
	{ "192.0.2.1", "no-such-service", 0, AF_INET, -FI_EINVAL, NULL },
	/* address texts */
	{ "fi_sockaddr_in://192.0.2.1:7471", NULL, 0, AF_UNSPEC, 0, "fi_sockaddr_in://192.0.2.1:7471" },
	{ "fi_sockaddr_in6://[2001:db8::1]:2", NULL, 0, AF_UNSPEC, 0, "fi_sockaddr_in6://[2001:db8::1]:2" },
	{ "fi_sockaddr://192.0.2.1:7471", NULL, 0, AF_UNSPEC, 0, "fi_sockaddr_in://192.0.2.1:7471" },
	{ "fi_sockaddr://[2001:db8::1]:2", NULL, 0, AF_UNSPEC, 0, "fi_sockaddr_in6://[2001:db8::1]:2" },
	{ "fi_sockaddr_ip://192.0.2.1:7471", NULL, 0, AF_UNSPEC, 0, "fi_sockaddr_in://192.0.2.1:7471" },
	{ "fi_sockaddr_in://192.0.2.1:7471", NULL, 0, AF_INET6, -FI_ENODATA, NULL },
	{ "fi_sockaddr_in://192.0.2.1:7471", "7471", 0, AF_UNSPEC, -FI_EINVAL, NULL },
	{ "fi_sockaddr_in://nonsense", NULL, 0, AF_UNSPEC, -FI_EINVAL, NULL },
	{ "fi_sockaddr_in://", NULL, 0, AF_UNSPEC, -FI_EINVAL, NULL },
	{ "fi_sockaddr_in://:5", NULL, FI_SOURCE, AF_UNSPEC, 0, "fi_sockaddr_in://0.0.0.0:5" },
	{ "fi_sockaddr_ib://[fe80::1]:1", NULL, 0, AF_UNSPEC, -FI_EINVAL, NULL },
	{ "http://192.0.2.1/", NULL, 0, AF_UNSPEC, -FI_EINVAL, NULL },
};

static void names_become_addresses(void **state)
{
	union fab_sockaddr addr;
	char text[FAB_ADDR_STRLEN];
	const char *why;
	int ret;

	(void) state;
	for (size_t i = 0; i < fab_countof(names); i++) {
		why = NULL;
		ret = fab_resolve_name(names[i].node, names[i].service, names[i].flags, names[i].family, &addr, &why);
		if (ret != names[i].ret)
			fail_msg("%s %s: %d %s", names[i].node, names[i].service, ret, why);
		if (ret) {
			assert_non_null(why);
			continue;
		}
		fab_addr_to_str(&addr.sa, text, sizeof(text));
		assert_string_equal(text, names[i].addr);
	}
}

static void a_host_may_have_a_name(void **state)
{
	union fab_sockaddr addr;
	char text[FAB_ADDR_STRLEN];
	const char *why;

	(void) state;
	if (!unit_has_localhost())
		unit_skip("this machine has no address for localhost (/etc/hosts)");
	assert_int_equal(fab_resolve_name("localhost", "5", 0, AF_INET, &addr, &why), 0);
	fab_addr_to_str(&addr.sa, text, sizeof(text));
	assert_string_equal(text, "fi_sockaddr_in://127.0.0.1:5");
}

static void a_service_may_have_a_name(void **state)
{
	union fab_sockaddr addr;
	const char *why;

	(void) state;
	if (!getservbyname("domain", "tcp"))
		unit_skip("this machine has no name for port 53 (/etc/services)");
	assert_int_equal(fab_resolve_name("192.0.2.1", "domain", 0, AF_INET, &addr, &why), 0);
	assert_int_equal(fab_addr_port(&addr.sa), 53);
}

static void texts_of_64_kib_are_refused(void **state)
{
	char *text = malloc(65537);
	union fab_sockaddr addr;
	const char *why;

	(void) state;
	memset(text, 'a', 65536);
	text[65536] = '\0';
	assert_int_equal(fab_resolve_name(text, NULL, 0, AF_INET, &addr, &why), -FI_EINVAL);
	assert_int_equal(fab_resolve_name("192.0.2.1", text, 0, AF_INET, &addr, &why), -FI_EINVAL);
	memcpy(text, "fi_sockaddr://", 14);
	assert_int_equal(fab_resolve_name(text, NULL, 0, AF_INET, &addr, &why), -FI_EINVAL);
	free(text);
}

/* ---- nodes in a row ---- */

static const struct {
	const char *node;
	uint64_t n;
	int family, ret;
	const char *says;		/* the address, or why there is none */
} rows[] = {
	{ "192.0.2.254", 1, AF_INET, 0, "fi_sockaddr_in://192.0.2.255:0" },
	{ "192.0.2.255", 1, AF_INET, 0, "fi_sockaddr_in://192.0.3.0:0" },
	{ "255.255.255.255", 1, AF_INET, -FI_EINVAL, "the range of nodes goes beyond the last address" },
	{ "2001:db8::ffff", 1, AF_INET6, 0, "fi_sockaddr_in6://[2001:db8::1:0]:0" },
	{ "fi_sockaddr_in://192.0.2.255:5", 1, AF_INET, 0, "fi_sockaddr_in://192.0.3.0:5" },
	/* nobody is asked for 192.0.2.256 */
	{ "192.0.2.255", 1, AF_INET6, -FI_ENODATA, "not a numeric address of this family" },
	{ "fi_sockaddr_in6://[2001:db8::1]:65535", 1, AF_INET, -FI_ENODATA, "an address of another family" },
	{ "a-name", 1, AF_INET, -FI_EINVAL, "consecutive nodes need a host name that ends in a number and has at most "
	  "200 bytes" },
};

static void nodes_are_counted_up(void **state)
{
	union fab_sockaddr addr;
	char text[FAB_ADDR_STRLEN];
	const char *why;
	int ret;

	(void) state;
	for (size_t i = 0; i < fab_countof(rows); i++) {
		ret = fab_resolve_nth(rows[i].node, rows[i].n, 0, rows[i].family, &addr, &why);
		if (ret != rows[i].ret)
			fail_msg("%s, %d on: %d", rows[i].node, (int) rows[i].n, ret);
		if (!ret)
			fab_addr_to_str(&addr.sa, text, sizeof(text));
		assert_string_equal(ret ? why : text, rows[i].says);
	}
}

/* ---- a call of fi_getinfo ---- */

static void set_addr(void **addr, size_t *len, const char *text)
{
	union fab_sockaddr *copy = calloc(1, sizeof(*copy));

	assert_int_equal(fab_addr_from_str(text, copy), 0);
	*addr = copy;
	*len = fab_addr_len(&copy->sa);
}

static struct fi_info *hints_with(const char *src, const char *dest)
{
	struct fi_info *hints = fi_allocinfo();

	if (src)
		set_addr(&hints->src_addr, &hints->src_addrlen, src);
	if (dest)
		set_addr(&hints->dest_addr, &hints->dest_addrlen, dest);
	return hints;
}

static void assert_addr(bool has, const union fab_sockaddr *addr, const char *expected)
{
	char text[FAB_ADDR_STRLEN];

	assert_int_equal(has, expected != NULL);
	if (!expected)
		return;
	fab_addr_to_str(&addr->sa, text, sizeof(text));
	assert_string_equal(text, expected);
}

#define ONE "fi_sockaddr_in://192.0.2.1:1"
#define TWO "fi_sockaddr_in://192.0.2.2:2"
#define NAMED "fi_sockaddr_in://192.0.2.9:9"

/* What fi_getinfo(3) says of src_addr and dest_addr in hints beside node and service. */
static const struct {
	bool named;			/* node and service are given */
	uint64_t flags;
	const char *hint_src, *hint_dest, *src, *dest;
} calls[] = {
	{ false, 0, NULL, NULL, NULL, NULL },
	{ false, 0, ONE, TWO, ONE, TWO },
	{ true, 0, NULL, NULL, NULL, NAMED },
	{ true, 0, ONE, TWO, ONE, NAMED },
	{ true, FI_SOURCE, NULL, NULL, NAMED, NULL },
	{ true, FI_SOURCE, ONE, TWO, NAMED, TWO },
};

static void node_and_hints_make_source_and_destination(void **state)
{
	const char *node, *service;
	struct fab_addr_hint out;
	struct fi_info *hints;

	(void) state;
	for (size_t i = 0; i < fab_countof(calls); i++) {
		hints = hints_with(calls[i].hint_src, calls[i].hint_dest);
		node = calls[i].named ? "192.0.2.9" : NULL;
		service = calls[i].named ? "9" : NULL;
		assert_int_equal(fab_resolve(&test_prov, node, service, calls[i].flags, hints, AF_INET, &out), 0);
		assert_addr(out.has_src, &out.src, calls[i].src);
		assert_addr(out.has_dest, &out.dest, calls[i].dest);
		fi_freeinfo(hints);
	}
	assert_int_equal(fab_resolve(&test_prov, NULL, NULL, 0, NULL, AF_UNSPEC, &out), 0);
	assert_false(out.has_src || out.has_dest);
}

static int resolve_hint(size_t len, uint32_t format, int family, int sa_family)
{
	struct fi_info *hints = hints_with(ONE, NULL);
	struct fab_addr_hint out;
	int ret;

	hints->src_addrlen = len;
	hints->addr_format = format;
	((struct sockaddr *) hints->src_addr)->sa_family = sa_family;
	hear_nothing(true);
	ret = fab_resolve(&test_prov, NULL, NULL, 0, hints, family, &out);
	assert_int_equal(heard.cnt, ret ? 1 : 0);
	fi_freeinfo(hints);
	return ret;
}

static void addresses_of_hints_are_checked(void **state)
{
	(void) state;
	assert_int_equal(resolve_hint(16, FI_FORMAT_UNSPEC, AF_INET, AF_INET), 0);
	assert_int_equal(resolve_hint(28, FI_SOCKADDR, AF_UNSPEC, AF_INET), 0);
	assert_int_equal(resolve_hint(15, FI_SOCKADDR_IN, AF_INET, AF_INET), -FI_EINVAL);
	assert_int_equal(resolve_hint(1, FI_SOCKADDR_IN, AF_INET, AF_INET), -FI_EINVAL);
	assert_int_equal(resolve_hint(0, FI_SOCKADDR_IN, AF_INET, AF_INET), -FI_EINVAL);
	assert_int_equal(resolve_hint(16, FI_SOCKADDR_IN, AF_INET, AF_INET6), -FI_EINVAL);
	assert_int_equal(resolve_hint(16, FI_SOCKADDR_IN, AF_INET6, AF_INET), -FI_ENODATA);
	assert_int_equal(resolve_hint(16, FI_SOCKADDR_IN, AF_INET, AF_UNIX), -FI_ENODATA);
	assert_int_equal(resolve_hint(16, FI_ADDR_GNI, AF_INET, AF_INET), -FI_ENODATA);
	assert_int_equal(resolve_hint(16, FI_ADDR_STR, AF_INET, AF_INET), -FI_ENODATA);
}

static void failures_name_the_parameter(void **state)
{
	struct fab_addr_hint out;

	(void) state;
	hear_nothing(true);
	assert_int_equal(fab_resolve(&test_prov, "192.0.2.1", "http!", 0, NULL, AF_INET, &out), -FI_EINVAL);
	assert_string_equal(heard.attrs, "service");
	assert_string_equal(heard.asked, "http!");
	hear_nothing(true);
	assert_int_equal(fab_resolve(&test_prov, "not numeric", "1", FI_NUMERICHOST, NULL, AF_INET, &out), -FI_ENODATA);
	assert_string_equal(heard.attrs, "node");
	assert_string_equal(heard.asked, "not numeric");
	hear_nothing(true);
	assert_int_equal(fab_resolve(&test_prov, "fi_sockaddr_in://x", NULL, 0, NULL, AF_INET, &out), -FI_EINVAL);
	assert_string_equal(heard.attrs, "node");
	hear_nothing(true);
	assert_int_equal(fab_resolve(&test_prov, NULL, NULL, FI_SOURCE, NULL, AF_INET, &out), -FI_EINVAL);
	assert_string_equal(heard.attrs, "flags");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_become_addresses),
		cmocka_unit_test(a_host_may_have_a_name),
		cmocka_unit_test(a_service_may_have_a_name),
		cmocka_unit_test(texts_of_64_kib_are_refused),
		cmocka_unit_test(nodes_are_counted_up),
		cmocka_unit_test(node_and_hints_make_source_and_destination),
		cmocka_unit_test(addresses_of_hints_are_checked),
		cmocka_unit_test(failures_name_the_parameter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
