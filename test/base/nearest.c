/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The nearest name: which errors are typing errors, and which of several names wins. */
#include "base/unit.h"

#include "base/nearest.h"

#include <string.h>

static const char *nearest_of(const char *name, const char *const *candidates)
{
	struct fab_nearest nearest;

	fab_nearest_init(&nearest, name, strlen(name));
	for (; *candidates; candidates++)
		fab_nearest_try(&nearest, *candidates);
	return nearest.found;
}

#define NEAREST(name, ...) nearest_of(name, (const char *const[]) { __VA_ARGS__, NULL })

static void one_error_is_found(void **state)
{
	(void) state;
	assert_string_equal(NEAREST("tpc", "udp", "tcp"), "tcp");
	assert_string_equal(NEAREST("TCPP", "udp", "tcp"), "tcp");
	assert_string_equal(NEAREST("vrbs", "tcp", "verbs"), "verbs");
	assert_string_equal(NEAREST("FI_TCP_IFCAES", "FI_TCP_IFACE"), "FI_TCP_IFACE");
}

static void another_name_is_not_an_error(void **state)
{
	(void) state;
	assert_null(NEAREST("ucx", "tcp", "udp", "verbs"));
	assert_null(NEAREST("ab", "ac"));
	assert_null(NEAREST("", "a"));
	assert_null(NEAREST("FI_TCP_IFACE", "FI_SOCKETS_IFACE"));
	assert_null(NEAREST("tcp", "TCP"));
}

static void the_nearest_wins_and_then_the_first(void **state)
{
	(void) state;
	assert_string_equal(NEAREST("FI_TCP_RX_SIZ", "FI_TCP_TX_SIZE", "FI_TCP_RX_SIZE"), "FI_TCP_RX_SIZE");
	assert_string_equal(NEAREST("abx", "abc", "abd"), "abc");
}

static void a_long_name_has_none(void **state)
{
	char name[FAB_NEAREST_LEN + 2], near[FAB_NEAREST_LEN + 2];

	(void) state;
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memcpy(near, name, sizeof(near));
	near[0] = 'b';
	assert_null(NEAREST(name, near));
	assert_null(NEAREST(name + 1, near + 1));
	near[1] = 'b';
	assert_string_equal(NEAREST(name + 1, near + 1), near + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_error_is_found),
		cmocka_unit_test(another_name_is_not_an_error),
		cmocka_unit_test(the_nearest_wins_and_then_the_first),
		cmocka_unit_test(a_long_name_has_none),
	};

	return cmocka_run_group_tests_name("base/nearest", tests, NULL, NULL);
}
