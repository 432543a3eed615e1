/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Lists of provider names: which (layered) names they let through, and which providers that needs.
 */
#include "base/unit.h"

#include "base/bits.h"
#include "filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void lists_let_names_through(void **state)
{
	static const struct {
		const char *list;
		const char *yes;	/* names separated by blanks */
		const char *no;
	} cases[] = {
		{ NULL, "tcp tcp;ofi_rxm", "" },
		{ "", "tcp tcp;ofi_rxm", "" },
		{ "^", "tcp", "" },
		{ " , ,", "tcp", "" },
		{ "tcp", "tcp TCP tcp;ofi_rxm", "tcpx xtcp udp udp;ofi_rxd" },
		{ "tcp;ofi_rxm", "tcp;ofi_rxm ofi_rxm;tcp", "tcp udp;ofi_rxm" },
		{ "ofi_rxm;tcp", "tcp;ofi_rxm", "tcp ofi_rxm" },
		{ "ofi_rxm", "tcp;ofi_rxm verbs;ofi_rxm", "tcp udp;ofi_rxd" },
		{ "tcpx", "tcpx", "tcp xtcpx tcp;ofi_rxm" },
		{ "tcp;ofi_rxm2", "tcp;ofi_rxm2", "tcp;ofi_rxm" },
		{ "udp,tcp", "udp tcp udp;ofi_rxd", "verbs" },
		{ " udp , tcp\n", "udp tcp", "verbs" },
		{ "^tcp", "udp sockets", "tcp tcp;ofi_rxm" },
		{ "^tcp,udp", "sockets", "tcp udp udp;ofi_rxd" },
		{ " ^ tcp , udp", "sockets", "tcp udp" },
		{ "^ofi_rxm", "tcp udp;ofi_rxd", "tcp;ofi_rxm" },
		{ "^tcp;ofi_rxm", "tcp verbs;ofi_rxm", "tcp;ofi_rxm" },
	};
	char name[64];
	size_t i, pass;

	(void) state;
	for (i = 0; i < fab_countof(cases); i++) {
		for (pass = 0; pass < 2; pass++) {
			const char *names = pass ? cases[i].no : cases[i].yes;
			int len;

			for (; *names; names += len + (names[len] == ' ')) {
				len = (int) strcspn(names, " ");
				snprintf(name, sizeof(name), "%.*s", len, names);
				if (fab_filter_allows(cases[i].list, name) != !pass)
					fail_msg("\"%s\" and %s", cases[i].list ? cases[i].list : "NULL", name);
			}
		}
	}
}

/* A provider is needed if anything that it is part of may be shown. */
static void lists_need_providers(void **state)
{
	static const struct {
		const char *list;
		bool tcp, verbs, rxm, rxd;
	} cases[] = {
		{ NULL, true, true, true, true },
		{ "tcp", true, false, true, true },
		{ "tcp;ofi_rxm", true, false, true, false },
		{ "ofi_rxm;tcp", true, false, true, false },
		{ "ofi_rxm", true, true, true, true },
		{ "tcp,verbs;ofi_rxd", true, true, true, true },
		{ "^tcp", false, true, true, true },
		{ "^ofi_rxm", true, true, false, true },
		{ "^tcp;ofi_rxm", true, true, true, true },
		{ "nobody", false, false, true, true },
	};
	size_t i;

	(void) state;
	for (i = 0; i < fab_countof(cases); i++) {
		const char *list = cases[i].list;

		if (fab_filter_needs(list, "tcp") != cases[i].tcp ||
		    fab_filter_needs(list, "verbs") != cases[i].verbs ||
		    fab_filter_needs(list, "ofi_rxm") != cases[i].rxm ||
		    fab_filter_needs(list, "ofi_rxd") != cases[i].rxd)
			fail_msg("\"%s\"", list ? list : "NULL");
	}
}

static void lists_may_be_long(void **state)
{
	char *list = malloc(70000);

	(void) state;
	memset(list, 'x', 65536);
	strcpy(list + 65536, ",tcp");
	assert_true(fab_filter_allows(list, "tcp"));
	assert_false(fab_filter_allows(list, "udp"));
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_let_names_through),
		cmocka_unit_test(lists_need_providers),
		cmocka_unit_test(lists_may_be_long),
	};

	return cmocka_run_group_tests_name("core/filter", tests, NULL, NULL);
}
