/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The reader of pages where a plain char is unsigned, as on Arm and POWER: it is compiled into this program so. Where
 * it is signed, test/core/stats is the same test.
 */
#include "base/unit.h"

#include "stats_read.c"

static void text_is_printable(void **state)
{
	static struct fi_stats_page page;
	const struct fi_stats_source source = { &page, sizeof(page), 0, 0, 'R' };
	struct fab_view view;

	(void) state;
	assert_true((char) -1 > 0);
	for (unsigned i = 0; i < sizeof(page.header.command); i++)
		page.header.command[i] = (char) (255 - i);	/* to 128 */
	for (unsigned i = 0; i < sizeof(page.header.host); i++)
		page.header.host[i] = (char) (1 + i);
	fab_view_open(&view, &source);
	for (unsigned i = 0; i < sizeof(page.header.command) - 1; i++)
		assert_int_equal(view.header.command[i], '?');
	for (unsigned i = 0; i < sizeof(page.header.host) - 1; i++)
		assert_int_equal(view.header.host[i], 1 + i < ' ' ? '?' : 1 + i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_printable),
	};

	return cmocka_run_group_tests_name("core/unsigned_char", tests, NULL, NULL);
}
