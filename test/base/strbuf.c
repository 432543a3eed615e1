/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * base/strbuf.h and base/bits.h.
 */
#include "base/unit.h"

#include "base/bits.h"
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

static void text_adds_up(void **state)
{
	struct fab_strbuf sb;
	char text[32];

	(void) state;
	fab_strbuf_init(&sb, text, sizeof(text));
	assert_string_equal(text, "");
	fab_strbuf_puts(&sb, "one");
	fab_strbuf_putc(&sb, ' ');
	fab_strbuf_printf(&sb, "%d, ", 2);
	fab_strbuf_cut(&sb, sb.len - 2);
	assert_string_equal(text, "one 2");
	assert_int_equal(sb.len, 5);
	assert_false(fab_strbuf_truncated(&sb));
}

/* What does not fit is cut off wherever the end falls, never written behind it, and still counted. */
static void text_is_cut_at_any_length(void **state)
{
	static const char whole[] = "abc 12345 z tail";
	char text[24], want[24];
	struct fab_strbuf sb;
	size_t size, i;

	(void) state;
	for (size = 0; size <= sizeof(whole) + 2; size++) {
		memset(text, '#', sizeof(text));
		fab_strbuf_init(&sb, text, size);
		fab_strbuf_puts(&sb, "abc ");
		fab_strbuf_printf(&sb, "%d", 12345);
		fab_strbuf_putc(&sb, ' ');
		fab_strbuf_putc(&sb, 'z');
		fab_strbuf_puts(&sb, " tail");
		assert_int_equal(sb.len, sizeof(whole) - 1);
		assert_int_equal(fab_strbuf_truncated(&sb), size < sizeof(whole));
		if (size) {
			snprintf(want, size, "%s", whole);
			assert_string_equal(text, want);
		}
		for (i = size; i < sizeof(text); i++)
			assert_int_equal(text[i], '#');
	}
}

static void cutting_ends_a_truncation(void **state)
{
	struct fab_strbuf sb;
	char text[4];

	(void) state;
	fab_strbuf_init(&sb, text, sizeof(text));
	fab_strbuf_puts(&sb, "abcdef");
	fab_strbuf_cut(&sb, 2);
	fab_strbuf_putc(&sb, 'x');
	assert_string_equal(text, "abx");
	assert_false(fab_strbuf_truncated(&sb));
}

static void sizes_are_rounded_up(void **state)
{
	(void) state;
	assert_int_equal(fab_align(0, 8), 0);
	assert_int_equal(fab_align(1, 8), 8);
	assert_int_equal(fab_align(8, 8), 8);
	assert_int_equal(fab_pow2_up(0), 1);
	assert_int_equal(fab_pow2_up(1), 1);
	assert_int_equal(fab_pow2_up(3), 4);
	assert_int_equal(fab_pow2_up(4), 4);
	assert_true(fab_pow2_up(UINT64_C(1) << 63) == UINT64_C(1) << 63);
	assert_int_equal(fab_min(3, 4), 3);
	assert_int_equal(fab_max(3, 4), 4);
	assert_true(FAB_BIT(63) == UINT64_C(1) << 63);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_adds_up),
		cmocka_unit_test(text_is_cut_at_any_length),
		cmocka_unit_test(cutting_ends_a_truncation),
		cmocka_unit_test(sizes_are_rounded_up),
	};

	return cmocka_run_group_tests_name("base/strbuf", tests, NULL, NULL);
}
