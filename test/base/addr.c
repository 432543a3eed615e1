/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * base/addr.h: tables of addresses.
 */
#include "base/unit.h"

#include "base/addr.h"
#include "base/bits.h"

#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

static union fab_sockaddr parse(const char *str)
{
	union fab_sockaddr addr;

	memset(&addr, 0xff, sizeof(addr));
	if (fab_addr_from_str(str, &addr))
		fail_msg("%s is refused", str);
	return addr;
}

static void text_goes_both_ways(void **state)
{
	static const char *const texts[] = {
		"fi_sockaddr_in://0.0.0.0:0", "fi_sockaddr_in://192.0.2.7:65535", "fi_sockaddr_in://127.0.0.1:1",
		"fi_sockaddr_in6://[::]:0", "fi_sockaddr_in6://[2001:db8::1]:7471", "fi_sockaddr_in6://[fe80::1%1]:5",
		"fi_sockaddr_in6://[2001:db8:1111:2222:3333:4444:5555:6666]:65535",
	};
	char str[FAB_ADDR_STRLEN];
	size_t i;

	(void) state;
	for (i = 0; i < fab_countof(texts); i++) {
		union fab_sockaddr addr = parse(texts[i]);

		assert_int_equal(fab_addr_to_str(&addr.sa, str, sizeof(str)), strlen(texts[i]));
		assert_string_equal(str, texts[i]);
	}
}

static void text_may_leave_parts_out(void **state)
{
	static const struct {
		const char *loose, *strict;
	} cases[] = {
		{ "fi_sockaddr_in://:80", "fi_sockaddr_in://0.0.0.0:80" },
		{ "fi_sockaddr_in://192.0.2.1", "fi_sockaddr_in://192.0.2.1:0" },
		{ "fi_sockaddr_in://", "fi_sockaddr_in://0.0.0.0:0" },
		{ "fi_sockaddr_in6://:80", "fi_sockaddr_in6://[::]:80" },
		{ "fi_sockaddr_in6://[::1]", "fi_sockaddr_in6://[::1]:0" },
		{ "fi_sockaddr_in6://[fe80::1%lo]:5", "fi_sockaddr_in6://[fe80::1%1]:5" },
		{ "fi_sockaddr://192.0.2.1:5", "fi_sockaddr_in://192.0.2.1:5" },
		{ "fi_sockaddr://[::1]:5", "fi_sockaddr_in6://[::1]:5" },
		{ "fi_sockaddr_in://192.0.2.1:5?qos=3", "fi_sockaddr_in://192.0.2.1:5" },
		{ "fi_sockaddr_in6://[::1]:5/field", "fi_sockaddr_in6://[::1]:5" },
		{ "AF_INET;192.0.2.1;5", "fi_sockaddr_in://192.0.2.1:5" },
		{ "AF_INET;;7471", "fi_sockaddr_in://0.0.0.0:7471" },
		{ "AF_INET;192.0.2.1", "fi_sockaddr_in://192.0.2.1:0" },
		{ "AF_INET", "fi_sockaddr_in://0.0.0.0:0" },
		{ "AF_INET6;fe80::1%1;5;field", "fi_sockaddr_in6://[fe80::1%1]:5" },
	};
	size_t i;

	(void) state;
	for (i = 0; i < fab_countof(cases); i++) {
		union fab_sockaddr loose = parse(cases[i].loose), strict = parse(cases[i].strict);

		if (!fab_addr_equal(&loose.sa, &strict.sa))
			fail_msg("%s is not %s", cases[i].loose, cases[i].strict);
	}
}

static void ib_text_goes_both_ways(void **state)
{
	static const struct {
		const char *text, *full;
	} cases[] = {
		{ "fi_sockaddr_ib://[fe80::1]:0xffff:0x13f:0x0", NULL },
		{ "fi_sockaddr_ib://[fe80::2:3]:0x8001:0x13f:0xabc:65535", NULL },
		{ "fi_sockaddr_ib://[::]", "fi_sockaddr_ib://[::]:0xffff:0x13f:0x0" },
		{ "fi_sockaddr_ib://[fe80::1]:0x7fff", "fi_sockaddr_ib://[fe80::1]:0x7fff:0x13f:0x0" },
	};
	static const char *const wrong[] = {
		"fi_sockaddr_ib://", "fi_sockaddr_ib://[fe80::1", "fi_sockaddr_ib://[fe80::g]",
		"fi_sockaddr_ib://[fe80::1]x", "fi_sockaddr_ib://[fe80::1]:0x10000", "fi_sockaddr_ib://[fe80::1]:0x",
		"fi_sockaddr_ib://[fe80::1]:0x-1", "fi_sockaddr_ib://[fe80::1]:0xffff:0x13f:0x0:65536",
		"fi_sockaddr_ib://[fe80::1]:0xffff:0x13f:0x0:", "fi_sockaddr_ib://[fe80::1]:0xffff:0x106:0x0",
		"fi_sockaddr_in6://[fe80::1]:1",
		"fi_sockaddr_ib://[fe80:1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb]",
	};
	union fab_any_addr addr;
	char str[FAB_ADDR_STRLEN];

	(void) state;
	for (size_t i = 0; i < fab_countof(cases); i++) {
		assert_int_equal(fab_addr_ib_from_str(cases[i].text, &addr.sib), 0);
		fab_addr_to_str(&addr.sa, str, sizeof(str));
		assert_string_equal(str, cases[i].full ? cases[i].full : cases[i].text);
		assert_int_equal(fab_any_addr_len(&addr.sa), sizeof(addr.sib));
		assert_int_equal(fab_addr_len(&addr.sa), 0);
	}
	for (size_t i = 0; i < fab_countof(wrong); i++)
		assert_int_equal(fab_addr_ib_from_str(wrong[i], &addr.sib), -EINVAL);
}

/* All that is not said by their family alone, and what takes a struct sockaddr takes it too. */
static void ib_addresses_are_condensed(void **state)
{
	static const char *const text[] = {
		"fi_sockaddr_ib://[fe80::1]:0xffff:0x13f:0x0", "fi_sockaddr_ib://[fe80::2:3]:0x8001:0x13f:0x0:65535",
	};
	union fab_sockaddr small[2], stranger, ip = parse("fi_sockaddr_in6://[fe80::1%1]:5");
	union fab_any_addr full, back;
	char str[FAB_ADDR_STRLEN];

	(void) state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(fab_addr_ib_from_str(text[i], &full.sib), 0);
		fab_addr_condense(&full, &small[i]);
		fab_addr_expand(&small[i], &back);
		assert_memory_equal(&back.sib, &full.sib, sizeof(full.sib));
		assert_int_equal(fab_addr_port(&small[i].sa), fab_addr_port(&full.sa));
		fab_addr_to_str(&small[i].sa, str, sizeof(str));
		assert_string_equal(str, text[i]);
		assert_int_equal(fab_addr_len(&small[i].sa), 0);
		assert_false(fab_addr_is_any(&small[i].sa));
		/* the family of what is condensed is none that anybody may come with */
		full.ip = small[i];
		fab_addr_condense(&full, &stranger);
		assert_int_equal(stranger.sa.sa_family, AF_UNSPEC);
	}
	assert_false(fab_addr_equal(&small[0].sa, &small[1].sa));
	assert_true(fab_addr_hash(&small[0].sa) != fab_addr_hash(&small[1].sa));
	fab_addr_set_port(&small[1].sa, 5);
	assert_int_equal(fab_addr_port(&small[1].sa), 5);
	fab_addr_ib_set(&full.sib, &in6addr_any, 0xffff, 0);
	fab_addr_condense(&full, &small[0]);
	assert_true(fab_addr_is_any(&small[0].sa));
	fab_addr_expand(&ip, &full);
	fab_addr_condense(&full, &small[0]);
	assert_memory_equal(&small[0], &ip, sizeof(ip));
}

static void ib_port_is_in_the_service(void **state)
{
	union fab_any_addr a, b;

	(void) state;
	assert_int_equal(fab_addr_ib_from_str("fi_sockaddr_ib://[fe80::1]:0xffff:0x13f:0x0:7", &a.sib), 0);
	b = a;
	assert_int_equal(fab_addr_port(&a.sa), 7);
	fab_addr_set_port(&b.sa, 8);
	assert_int_equal(fab_addr_port(&b.sa), 8);
	assert_true(fab_addr_equal_host(&a.sa, &b.sa));
	assert_false(fab_addr_equal(&a.sa, &b.sa));
	assert_false(fab_addr_is_any(&a.sa));
	fab_addr_set_port(&b.sa, 0);
	assert_int_equal(fab_addr_port(&b.sa), 0);
	assert_int_equal(be64toh(b.sib.sib_sid_mask), ~UINT64_C(0xffff));
	memset(b.sib.sib_gid, 0, sizeof(b.sib.sib_gid));
	assert_true(fab_addr_is_any(&b.sa));
}

static void nonsense_is_refused(void **state)
{
	static const char *const texts[] = {
		"", "fi_sockaddr_in", "fi_sockaddr_in:/1.2.3.4:5", "1.2.3.4:5", "fi_sockaddr_in://1.2.3:5",
		"fi_sockaddr_in://1.2.3.4:65536", "fi_sockaddr_in://1.2.3.4:-1", "fi_sockaddr_in://1.2.3.4:5x",
		"fi_sockaddr_in://1.2.3.4:", "fi_sockaddr_in://1.2.3.4: 5", "fi_sockaddr_in://[::1]:5",
		"fi_sockaddr_in6://1.2.3.4:5", "fi_sockaddr_in6://[::1:5", "fi_sockaddr_in6://[::1]5",
		"fi_sockaddr_in6://[::g]:5", "fi_sockaddr_in6://[fe80::1%no-such-device]:5",
		"fi_sockaddr_in6://[fe80::1%0]:5", "fi_sockaddr_in6://::1:5", "fi_sockaddr_in://localhost:5",
		"fi_sockaddr_ib://1.2.3.4:5", "AF_INET7;1.2.3.4;5", "AF_INET;1.2.3;5", "AF_INET;1.2.3.4;5x",
		"AF_INET;::1;5", "AF_INET6;1.2.3.4;5", "AF_UNIX;x;5",
	};
	union fab_sockaddr addr, before;
	char huge[70000];
	size_t i;

	(void) state;
	memset(&addr, 0x5a, sizeof(addr));
	before = addr;
	memset(huge, '1', sizeof(huge));
	memcpy(huge, "fi_sockaddr_in://", 17);
	huge[sizeof(huge) - 1] = '\0';
	assert_int_equal(fab_addr_from_str(huge, &addr), -EINVAL);
	for (i = 0; i < fab_countof(texts); i++)
		if (fab_addr_from_str(texts[i], &addr) != -EINVAL)
			fail_msg("%s is taken", texts[i]);
	assert_memory_equal(&addr, &before, sizeof(addr));
}

static void text_is_cut_off_at_the_end_of_its_buffer(void **state)
{
	union fab_sockaddr addr = parse("fi_sockaddr_in://192.0.2.7:80");
	char str[12] = "xxxxxxxxxxx";

	(void) state;
	assert_int_equal(fab_addr_to_str(&addr.sa, str, 8), 29);
	assert_string_equal(str, "fi_sock");
	assert_int_equal(str[8], 'x');
	assert_int_equal(fab_addr_to_str(&addr.sa, NULL, 0), 29);
	addr.sa.sa_family = AF_UNIX;
	assert_int_equal(fab_addr_to_str(&addr.sa, str, sizeof(str)), strlen("address of unknown family 1"));
}

static void equality_is_address_port_and_link(void **state)
{
	static const struct {
		const char *a, *b;
		bool equal, equal_host;
	} cases[] = {
		{ "fi_sockaddr_in://192.0.2.1:5", "fi_sockaddr_in://192.0.2.1:5", true, true },
		{ "fi_sockaddr_in://192.0.2.1:5", "fi_sockaddr_in://192.0.2.1:6", false, true },
		{ "fi_sockaddr_in://192.0.2.1:5", "fi_sockaddr_in://192.0.2.2:5", false, false },
		{ "fi_sockaddr_in://192.0.2.1:5", "fi_sockaddr_in6://[::ffff:192.0.2.1]:5", false, false },
		{ "fi_sockaddr_in6://[fe80::1%1]:5", "fi_sockaddr_in6://[fe80::1%2]:5", false, false },
		{ "fi_sockaddr_in6://[2001:db8::1%1]:5", "fi_sockaddr_in6://[2001:db8::1%2]:5", true, true },
		{ "fi_sockaddr_in6://[2001:db8::1]:5", "fi_sockaddr_in6://[2001:db8::2]:5", false, false },
	};
	size_t i;

	(void) state;
	for (i = 0; i < fab_countof(cases); i++) {
		union fab_sockaddr a = parse(cases[i].a), b = parse(cases[i].b);

		assert_int_equal(fab_addr_equal(&a.sa, &b.sa), cases[i].equal);
		assert_int_equal(fab_addr_equal_host(&a.sa, &b.sa), cases[i].equal_host);
		if (cases[i].equal)
			assert_true(fab_addr_hash(&a.sa) == fab_addr_hash(&b.sa));
	}
}

/* Neighbours, which is what clusters have, do not share buckets. */
static void hash_tells_neighbours_apart(void **state)
{
	unsigned buckets[1024] = { 0 }, most = 0;
	char str[FAB_ADDR_STRLEN];
	unsigned i;

	(void) state;
	for (i = 0; i < 1024; i++) {
		union fab_sockaddr addr;
		unsigned *bucket;

		snprintf(str, sizeof(str), "fi_sockaddr_in://10.0.%u.%u:7471", i / 256, i % 256);
		addr = parse(str);
		bucket = &buckets[fab_addr_hash(&addr.sa) % 1024];
		++*bucket;
		most = fab_max(most, *bucket);
	}
	assert_in_range(most, 1, 10);
}

static void kinds_are_told(void **state)
{
	static const struct {
		const char *str;
		bool any, loopback, link_local;
	} cases[] = {
		{ "fi_sockaddr_in://0.0.0.0:5", true, false, false },
		{ "fi_sockaddr_in://127.1.2.3:5", false, true, false },
		{ "fi_sockaddr_in://169.254.9.9:5", false, false, true },
		{ "fi_sockaddr_in://169.253.9.9:5", false, false, false },
		{ "fi_sockaddr_in6://[::]:5", true, false, false },
		{ "fi_sockaddr_in6://[::1]:5", false, true, false },
		{ "fi_sockaddr_in6://[fe80::1%1]:5", false, false, true },
		{ "fi_sockaddr_in6://[2001:db8::1]:5", false, false, false },
	};
	union fab_sockaddr none = { .sa = { .sa_family = AF_UNIX } };
	size_t i;

	(void) state;
	for (i = 0; i < fab_countof(cases); i++) {
		union fab_sockaddr addr = parse(cases[i].str);

		assert_int_equal(fab_addr_is_any(&addr.sa), cases[i].any);
		assert_int_equal(fab_addr_is_loopback(&addr.sa), cases[i].loopback);
		assert_int_equal(fab_addr_is_link_local(&addr.sa), cases[i].link_local);
		assert_int_equal(fab_addr_port(&addr.sa), 5);
		fab_addr_set_port(&addr.sa, 60000);
		assert_int_equal(fab_addr_port(&addr.sa), 60000);
		assert_int_equal(fab_addr_len(&addr.sa), fab_addr_family_len(addr.sa.sa_family));
	}
	assert_int_equal(fab_addr_len(&none.sa), 0);
	assert_int_equal(fab_addr_port(&none.sa), 0);
	assert_false(fab_addr_is_any(&none.sa) || fab_addr_is_loopback(&none.sa) || fab_addr_is_link_local(&none.sa));
	assert_false(fab_addr_equal(&none.sa, &none.sa));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_goes_both_ways),
		cmocka_unit_test(text_may_leave_parts_out),
		cmocka_unit_test(ib_text_goes_both_ways),
		cmocka_unit_test(ib_addresses_are_condensed),
		cmocka_unit_test(ib_port_is_in_the_service),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(text_is_cut_off_at_the_end_of_its_buffer),
		cmocka_unit_test(equality_is_address_port_and_link),
		cmocka_unit_test(hash_tells_neighbours_apart),
		cmocka_unit_test(kinds_are_told),
	};

	return cmocka_run_group_tests_name("base/addr", tests, NULL, NULL);
}
