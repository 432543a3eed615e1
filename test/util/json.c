/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What util/json.c writes, byte for byte. */
#include "../../util/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static char *text;
static size_t text_len;
static struct json json;

static void begin(void)
{
	json_init(&json, open_memstream(&text, &text_len));
	assert_non_null(json.out);
}

static void expect_text(const char *wanted)
{
	assert_int_equal(fclose(json.out), 0);
	assert_string_equal(text, wanted);
	free(text);
}

static void values_stand_in_order_with_commas_between(void **state)
{
	(void) state;
	begin();
	json_open(&json, NULL, '{');
	json_string(&json, "name", "tcp");
	json_open(&json, "list", '[');
	json_number(&json, NULL, 1);
	json_number(&json, NULL, UINT64_MAX);
	json_close(&json, ']');
	json_open(&json, "empty", '[');
	json_close(&json, ']');
	json_real(&json, "real", 1.5);
	json_string(&json, "none", NULL);
	json_close(&json, '}');
	expect_text("{\n  \"name\": \"tcp\",\n  \"list\": [\n    1,\n    18446744073709551615\n  ],\n  \"empty\": [],\n"
		    "  \"real\": 1.500,\n  \"none\": null\n}\n");
}

static void strings_are_escaped_and_always_utf8(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain", "\"plain\"" },
		{ "", "\"\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "tab\tend\n\x01\x7f", "\"tab\\u0009end\\u000a\\u0001\\u007f\"" },
		{ "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"" },
		{ "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"" },
		{ "cut off \xe2\x82", "\"cut off \\ufffd\\ufffd\"" },
		{ "alone \x80 wrong \xff", "\"alone \\ufffd wrong \\ufffd\"" },
		{ "overlong \xc0\xaf \xe0\x80\xaf", "\"overlong \\ufffd\\ufffd \\ufffd\\ufffd\\ufffd\"" },
		{ "surrogate \xed\xa0\x80", "\"surrogate \\ufffd\\ufffd\\ufffd\"" },
		{ "too high \xf4\x90\x80\x80", "\"too high \\ufffd\\ufffd\\ufffd\\ufffd\"" },
	};
	size_t i;

	(void) state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin();
		json_string(&json, NULL, cases[i].in);
		expect_text(cases[i].out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_stand_in_order_with_commas_between),
		cmocka_unit_test(strings_are_escaped_and_always_utf8),
	};

	return cmocka_run_group_tests_name("util/json", tests, NULL, NULL);
}
