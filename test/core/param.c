/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parameters: where values come from, what each type takes, and what becomes of rubbish.
 */
#include "base/unit.h"

#include "base/bits.h"
#include "core/child.h"
#include "core/conf.h"
#include "param.h"

#include <rdma/providers/fi_prov.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fi_provider prov = { .name = "te;st" };

static void run(const char *const env[], const char *conf, void (*body)(void))
{
	conf_write(conf, strlen(conf));
	free(child_run(env, body));
}

static void define_all(void)
{
	child_check(!fi_param_define(&prov, "word", FI_PARAM_STRING, "a word, for %s", "tests"));
	child_check(!fi_param_define(&prov, "number", FI_PARAM_INT, "a number"));
	child_check(!fi_param_define(&prov, "switch", FI_PARAM_BOOL, "a switch"));
	child_check(!fi_param_define(&prov, "size", FI_PARAM_SIZE_T, "a size"));
}

static void check_types(void)
{
	int number = 0, on = -1;
	char *word = NULL;
	size_t size = 0;

	child_check(fi_param_get_str(&prov, "word", &word) == -FI_ENOENT);
	define_all();
	child_check(!fi_param_get_str(&prov, "word", &word) && !strcmp(word, "x y"));
	child_check(!fi_param_get_int(&prov, "number", &number) && number == -17);
	child_check(!fi_param_get_bool(&prov, "switch", &on) && on == 1);
	child_check(!fi_param_get_size_t(&prov, "size", &size) && size == SIZE_MAX);
}

static void values_come_from_the_environment(void **state)
{
	static const char *const env[] = {
		"FI_TE_ST_WORD=x y", "FI_TE_ST_NUMBER=-17", "FI_TE_ST_SWITCH=oN",
		"FI_TE_ST_SIZE=0xffffffffffffffff", NULL,
	};

	(void) state;
	run(env, "", check_types);
}

static void values_come_from_the_file(void **state)
{
	(void) state;
	run(NULL, "# comment\n\n \t FI_TE_ST_WORD =\tx y  \r\nFI_TE_ST_NUMBER=-017\nFI_TE_ST_NUMBER=-17\n"
		  "FI_TE_ST_SWITCH=yes\nFI_TE_ST_SIZE=18446744073709551615", check_types);
}

static void check_environment_wins(void)
{
	int number = 0;

	define_all();
	child_check(!fi_param_get_int(&prov, "number", &number) && number == 1);
}

static void check_file_wins(void)
{
	int number = 0;

	define_all();
	child_check(!fi_param_get_int(&prov, "number", &number) && number == 2);
}

static void environment_wins_unless_the_file_is_preferred(void **state)
{
	static const char *const env[] = { "FI_TE_ST_NUMBER=1", NULL };
	static const char *const prefer[] = { "FI_TE_ST_NUMBER=1", "FI_PREFER_SYSCONFIG=1", NULL };

	(void) state;
	run(env, "FI_TE_ST_NUMBER=2\n", check_environment_wins);
	run(prefer, "FI_TE_ST_NUMBER=2\n", check_file_wins);
	run(prefer, "", check_environment_wins);
}

/* ---- units ---- */

static const struct {
	const char *text;
	long long value;
} numbers_with_units[] = {
	{ "64k", 64 << 10 }, { "64K", 64 << 10 }, { "64KiB", 64 << 10 }, { "64kb", 64 << 10 }, { "64 KB", 64 << 10 },
	{ "64Ki", 64 << 10 }, { "3m", 3 << 20 }, { "3MiB", 3 << 20 }, { "1g", 1 << 30 }, { "1GB", 1 << 30 },
	{ "5000 ", 5000 }, { "5000\t\r", 5000 }, { "64B", 64 }, { "0x10k", 16 << 10 }, { "64k ", 64 << 10 },
	{ "2097151k", 2097151LL << 10 }, { "0g", 0 },
};

static long long wanted;

static void check_number(void)
{
	int number = 7;
	size_t size = 7;

	define_all();
	child_check(!fi_param_get_int(&prov, "number", &number) && number == wanted);
	child_check(!fi_param_get_size_t(&prov, "size", &size) && size == (size_t) wanted);
}

static void numbers_may_have_units_and_blanks(void **state)
{
	char number[64], size[64];
	const char *env[] = { number, size, NULL };

	(void) state;
	for (size_t i = 0; i < fab_countof(numbers_with_units); i++) {
		snprintf(number, sizeof(number), "FI_TE_ST_NUMBER=%s", numbers_with_units[i].text);
		snprintf(size, sizeof(size), "FI_TE_ST_SIZE=%s", numbers_with_units[i].text);
		wanted = numbers_with_units[i].value;
		run(env, "", check_number);
	}
}

static void check_negative(void)
{
	int number = 0;

	define_all();
	child_check(!fi_param_get_int(&prov, "number", &number) && number == -(2 << 20));
}

static void a_negative_number_may_have_a_unit(void **state)
{
	static const char *const env[] = { "FI_TE_ST_NUMBER=-2M", NULL };

	(void) state;
	run(env, "", check_negative);
}

static void check_unset(void)
{
	int number = 7, on = 7;
	char *word = "as it was";
	size_t size = 7;

	define_all();
	child_check(fi_param_get_str(&prov, "word", &word) == -FI_ENODATA && !strcmp(word, "as it was"));
	child_check(fi_param_get_int(&prov, "number", &number) == -FI_ENODATA && number == 7);
	child_check(fi_param_get_bool(&prov, "switch", &on) == -FI_ENODATA && on == 7);
	child_check(fi_param_get_size_t(&prov, "size", &size) == -FI_ENODATA && size == 7);
}

static void what_is_not_set_leaves_the_default_alone(void **state)
{
	(void) state;
	run(NULL, "", check_unset);
}

static void check_rubbish(void)
{
	int number = 7, on = 7;
	size_t size = 7;

	define_all();
	child_check(fi_param_get_int(&prov, "number", &number) == -FI_EINVAL && number == 7);
	child_check(fi_param_get_bool(&prov, "switch", &on) == -FI_EINVAL && on == 7);
	child_check(fi_param_get_size_t(&prov, "size", &size) == -FI_EINVAL && size == 7);
}

static void rubbish_is_named_and_leaves_the_default_alone(void **state)
{
	static const char *const numbers[] = {
		"", " ", "12x", "x", "99999999999", "-2147483649", "1.5", "2g", "2097152k", "k", "9223372036854775807k",
		"4kk", "4iB",
	};
	static const char *const sizes[] = {
		"", "-1", "4t", "18446744073709551616", "0x", "nan", "17179869184g", "18014398509481984k", "-4k", "4 5",
		"4k5", "1.5k", "4kx",
	};
	static const char *const switches[] = { "", "2", "maybe", "yess" };
	char number[64], size[64], on[64], *text;
	const char *env[] = { number, size, on, NULL };
	size_t i;

	(void) state;
	conf_write("", 0);
	for (i = 0; i < 26; i++) {
		snprintf(number, sizeof(number), "FI_TE_ST_NUMBER=%s", numbers[i % fab_countof(numbers)]);
		snprintf(size, sizeof(size), "FI_TE_ST_SIZE=%s", sizes[i % fab_countof(sizes)]);
		snprintf(on, sizeof(on), "FI_TE_ST_SWITCH=%s", switches[i % fab_countof(switches)]);
		text = child_run(env, check_rubbish);
		if (!strstr(text, number) || !strstr(text, size) || !strstr(text, on))
			fail_msg("%s %s %s: not all named in:\n%s", number, size, on, text);
		free(text);
	}
}

static void check_params(void)
{
	struct fi_param *params;
	int cnt = 0, i, found = 0;

	define_all();
	define_all();
	child_check(fi_getparams(NULL, &cnt) == -FI_EINVAL);
	child_check(!fi_getparams(&params, &cnt));
	for (i = 0; i < cnt; i++) {
		child_check(params[i].name && params[i].help_string);
		if (!strcmp(params[i].name, "FI_TE_ST_WORD")) {
			found++;
			child_check(params[i].type == FI_PARAM_STRING);
			child_check(!strcmp(params[i].help_string, "te;st: a word, for tests"));
			child_check(!strcmp(params[i].value, "v"));
		}
		if (!strcmp(params[i].name, "FI_PROVIDER_PATH")) {
			found++;
			child_check(!params[i].value);
		}
	}
	child_check(found == 2);
	fi_freeparams(params);
	fi_freeparams(NULL);
}

static void parameters_are_listed_once_with_their_values(void **state)
{
	static const char *const env[] = { "FI_TE_ST_WORD=v", NULL };

	(void) state;
	run(env, "", check_params);
}

static void check_bad_calls(void)
{
	char name[300];
	int number;

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	child_check(fi_param_define(&prov, NULL, FI_PARAM_INT, "x") == -FI_EINVAL);
	child_check(fi_param_define(&prov, "", FI_PARAM_INT, "x") == -FI_EINVAL);
	child_check(fi_param_define(&prov, "a", FI_PARAM_INT, NULL) == -FI_EINVAL);
	child_check(fi_param_define(&prov, "a", (enum fi_param_type) 99, "x") == -FI_EINVAL);
	child_check(fi_param_define(&prov, name, FI_PARAM_INT, "x") == -FI_EINVAL);
	child_check(fi_param_get_int(&prov, name, &number) == -FI_EINVAL);
	child_check(fi_param_get_int(&prov, NULL, &number) == -FI_EINVAL);
	child_check(fi_param_get_int(&prov, "a", NULL) == -FI_EINVAL);
}

static void bad_calls_are_refused(void **state)
{
	(void) state;
	run(NULL, "", check_bad_calls);
}

static void check_file_with_rubbish(void)
{
	int number = 0;

	define_all();
	fab_param_report();
	fab_param_report();
	child_check(!fi_param_get_int(&prov, "number", &number) && number == 5);
}

/* One warning for each line that means nothing, however long or binary; the lines that mean something still do. */
static void rubbish_in_the_file_costs_a_warning_a_line(void **state)
{
	static const char start[] = "FI_TE_ST_NUMBER=5\nno equals sign\nLOWER_case = 1\nFI_ = 2\n= 3\n\x01\xff\x80\n"
				    "FI_UNKNOWN_TO_ALL=let pass\n";
	char *conf = malloc(200000), *text;
	size_t len = sizeof(start) - 1;

	(void) state;
	memcpy(conf, start, len);
	memset(conf + len, 'z', 65536);
	conf[len + 65536] = '\n';
	conf_write(conf, len + 65537);
	text = child_run(NULL, check_file_with_rubbish);
	assert_int_equal(count_lines(text, "is ignored"), 6);
	assert_non_null(strstr(text, ":2: \"no equals sign\""));
	assert_non_null(strstr(text, ":5: \"= 3\""));
	assert_null(strstr(text, "UNKNOWN_TO_ALL"));
	free(text);
	free(conf);
}

static void check_no_file(void)
{
	fab_param_report();
	check_unset();
}

static void a_file_that_is_none_is_named_once(void **state)
{
	char *text;

	(void) state;
	fab_param_path = "/tmp";
	text = child_run(NULL, check_no_file);
	assert_int_equal(count_lines(text, "configuration file /tmp is not used"), 1);
	free(text);
	fab_param_path = "/nonexistent/libfabric.conf";
	text = child_run(NULL, check_no_file);
	assert_string_equal(text, "");
	free(text);
	fab_param_path = conf_path;
}

static void check_long_file(void)
{
	int number = 0;
	size_t size = 0;

	define_all();
	fab_param_report();
	child_check(!fi_param_get_int(&prov, "number", &number) && number == 5);
	child_check(fi_param_get_size_t(&prov, "size", &size) == -FI_ENODATA);
}

/* The line that the limit of 1 MiB cuts through is not used: FI_TE_ST_SIZE = 1000 would be 10. */
static void of_a_file_too_long_no_part_of_a_line_is_used(void **state)
{
	static const char start[] = "FI_TE_ST_NUMBER=5\n#", end[] = "\nFI_TE_ST_SIZE=10";
	static const char rest[] = "00\nFI_TE_ST_SIZE=7\n";
	size_t len = 1 << 20, end_len = sizeof(end) - 1;
	char *conf = malloc(len + sizeof(rest)), *text;

	(void) state;
	memset(conf, 'z', len);
	memcpy(conf, start, sizeof(start) - 1);
	memcpy(conf + len - end_len, end, end_len);
	memcpy(conf + len, rest, sizeof(rest));
	conf_write(conf, len + sizeof(rest) - 1);
	text = child_run(NULL, check_long_file);
	assert_int_equal(count_lines(text, "is longer than 1048576 bytes: the lines after line 2 are ignored"), 1);
	free(text);
	free(conf);
}

static void check_whole_file(void)
{
	size_t size = 0;

	define_all();
	fab_param_report();
	child_check(!fi_param_get_size_t(&prov, "size", &size) && size == 10);
}

static void a_file_of_1_mib_is_used_whole(void **state)
{
	static const char end[] = "\nFI_TE_ST_SIZE=10";
	size_t len = 1 << 20, end_len = sizeof(end) - 1;
	char *conf = malloc(len), *text;

	(void) state;
	memset(conf, '#', len);
	memcpy(conf + len - end_len, end, end_len);
	conf_write(conf, len);
	text = child_run(NULL, check_whole_file);
	assert_string_equal(text, "");
	free(text);
	free(conf);
}

/* Nobody ever writes to this FIFO, and the first call of all does not wait for somebody to. */
static void a_fifo_is_named_and_not_waited_for(void **state)
{
	char fifo[64], *text;

	(void) state;
	snprintf(fifo, sizeof(fifo), "%s.fifo", conf_path);
	assert_return_code(mkfifo(fifo, 0600), errno);
	fab_param_path = fifo;
	text = child_run(NULL, check_no_file);
	assert_int_equal(count_lines(text, "is not used: it is not a regular file"), 1);
	free(text);
	unlink(fifo);
	fab_param_path = "/dev/null";
	text = child_run(NULL, check_no_file);
	assert_string_equal(text, "");
	free(text);
	fab_param_path = conf_path;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_from_the_environment),
		cmocka_unit_test(values_come_from_the_file),
		cmocka_unit_test(environment_wins_unless_the_file_is_preferred),
		cmocka_unit_test(numbers_may_have_units_and_blanks),
		cmocka_unit_test(a_negative_number_may_have_a_unit),
		cmocka_unit_test(what_is_not_set_leaves_the_default_alone),
		cmocka_unit_test(rubbish_is_named_and_leaves_the_default_alone),
		cmocka_unit_test(parameters_are_listed_once_with_their_values),
		cmocka_unit_test(bad_calls_are_refused),
		cmocka_unit_test(rubbish_in_the_file_costs_a_warning_a_line),
		cmocka_unit_test(a_file_that_is_none_is_named_once),
		cmocka_unit_test(of_a_file_too_long_no_part_of_a_line_is_used),
		cmocka_unit_test(a_file_of_1_mib_is_used_whole),
		cmocka_unit_test(a_fifo_is_named_and_not_waited_for),
	};

	return cmocka_run_group_tests_name("core/param", tests, conf_set_up, conf_tear_down);
}
