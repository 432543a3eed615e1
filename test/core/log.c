/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Logging: who is let through by which settings, how a line looks, and the logger of an application.
 */
#include "base/unit.h"

#include "base/clock.h"
#include "core/child.h"
#include "log.h"

#include <rdma/fi_ext.h>

#include <glob.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fi_provider tcp = { .name = "tcp" }, udp = { .name = "udp" };

static void speak(void)
{
	FI_LOG(&tcp, FAB_LOG_ERROR, FI_LOG_CORE, "tcp error");
	FI_WARN(&tcp, FI_LOG_CQ, "tcp warn");
	FI_TRACE(&tcp, FI_LOG_CQ, "tcp trace");
	FI_INFO(&tcp, FI_LOG_AV, "tcp info");
	FI_LOG(&tcp, FI_LOG_DEBUG, FI_LOG_AV, "tcp debug");
	FI_WARN(&udp, FI_LOG_AV, "udp warn\n");
	FI_WARN(NULL, FI_LOG_CORE, "core warn");
}

static void settings_choose_lines(void **state)
{
	static const struct {
		const char *env[4];
		const char *heard;	/* the lines, in order, by one letter each: e w t i d, u for udp, c for core */
	} cases[] = {
		{ { NULL }, "ewuc" },
		{ { "FI_LOG_LEVEL=silent" }, "" },
		{ { "FI_LOG_LEVEL=error" }, "e" },
		{ { "FI_LOG_LEVEL=Warn" }, "ewuc" },
		{ { "FI_LOG_LEVEL=trace" }, "ewtuc" },
		{ { "FI_LOG_LEVEL=info" }, "ewtiuc" },
		{ { "FI_LOG_LEVEL=debug" }, "ewtiduc" },
		{ { "FI_LOG_PROV=udp" }, "u" },
		{ { "FI_LOG_PROV=^udp" }, "ewc" },
		{ { "FI_LOG_PROV=core,udp" }, "uc" },
		{ { "FI_LOG_SUBSYS=av" }, "u" },
		{ { "FI_LOG_SUBSYS=^av,core" }, "w" },
		{ { "FI_LOG_SUBSYS=av", "FI_LOG_PROV=tcp", "FI_LOG_LEVEL=info" }, "i" },
	};
	static const char *const words[] = {
		"tcp error", "tcp warn", "tcp trace", "tcp info", "tcp debug", "udp warn", "core warn",
	};
	char heard[8], *text;
	size_t i, j, len;

	(void) state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		text = child_run(cases[i].env, speak);
		for (j = len = 0; j < 7; j++)
			if (count_lines(text, words[j]))
				heard[len++] = "ewtiduc"[j];
		heard[len] = '\0';
		if (strcmp(heard, cases[i].heard) || count_lines(text, "\n") != (int) len)
			fail_msg("case %zu: heard %s, expected %s:\n%s", i, heard, cases[i].heard, text);
		free(text);
	}
}

static void speak_debug(void)
{
	FI_DBG(&tcp, FI_LOG_CORE, "tcp dbg");
}

/* FI_DBG is there in a debug build (--enable-debug), and costs nothing in others. */
static void debug_lines_are_for_debug_builds(void **state)
{
	static const char *const env[] = { "FI_LOG_LEVEL=debug", NULL };
	char *text = child_run(env, speak_debug);
#ifdef ENABLE_DEBUG
	unsigned int lines = 1;
#else
	unsigned int lines = 0;
#endif

	(void) state;
	assert_int_equal(count_lines(text, "tcp dbg"), lines);
	free(text);
}

static void a_word_that_is_no_level_is_named(void **state)
{
	static const char *const env[] = { "FI_LOG_LEVEL=loud", NULL };
	char *text = child_run(env, speak);

	(void) state;
	assert_int_equal(count_lines(text, "FI_LOG_LEVEL=loud is unknown"), 1);
	assert_int_equal(count_lines(text, "tcp warn"), 1);
	assert_int_equal(count_lines(text, "tcp trace"), 0);
	free(text);
}

/* A bad interval is read while the settings are being read: that must neither hang nor be kept quiet. */
static void a_bad_interval_is_named(void **state)
{
	static const char *const env[] = { "FI_LOG_INTERVAL=soon", NULL };
	char *text = child_run(env, speak);

	(void) state;
	assert_int_equal(count_lines(text, "FI_LOG_INTERVAL=soon is not used"), 1);
	assert_int_equal(count_lines(text, "tcp warn"), 1);
	free(text);
}

static void speak_once(void)
{
	fi_log(&tcp, FI_LOG_WARN, FI_LOG_EP_CTRL, "some_function", 42, "%s %d", "text", 7);
	printf("pid %d\n", (int) getpid());
}

static void a_line_says_who_where_and_how_bad(void **state)
{
	static const char *const debug[] = { "FI_LOG_LEVEL=debug", NULL };
	char *text = child_run(NULL, speak_once), want[128];
	int pid;

	(void) state;
	assert_int_equal(sscanf(strstr(text, "pid "), "pid %d", &pid), 1);
	snprintf(want, sizeof(want), "libfabric:%d:", pid);
	assert_int_equal(strncmp(text, want, strlen(want)), 0);
	assert_non_null(strstr(text, "::tcp:ep_ctrl:some_function():42<warn> text 7\n"));
	free(text);

	text = child_run(debug, speak_once);
	assert_int_equal(sscanf(strstr(text, "pid "), "pid %d", &pid), 1);
	snprintf(want, sizeof(want), "libfabric:%d/%d:", pid, pid);
	assert_int_equal(strncmp(text, want, strlen(want)), 0);
	free(text);
}

/* Run speak() with the log in a folder of its own, at FI_LOG_LOCATION=<the folder>/<place>, and mode 0640. The result
 * is the text of stdout and stderr; *file the text of the file "name", or NULL. Both are the caller's. */
static char *speak_to(const char *place, const char *name, bool there, char **file)
{
	char dir[] = "/tmp/log-test-XXXXXX", env[128], path[160], *text;
	const char *const set[] = { env, "FI_LOG_LOCATION_MODE=0640", NULL };
	struct stat st;
	glob_t found;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(env, sizeof(env), "FI_LOG_LOCATION=%s/%s", dir, place);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (there) {
		f = fopen(path, "w");
		fputs("mine", f);
		fclose(f);
	}
	umask(0);
	text = child_run(set, speak);
	*file = NULL;
	if (!glob(path, 0, NULL, &found)) {
		assert_int_equal(found.gl_pathc, 1);
		assert_int_equal(stat(found.gl_pathv[0], &st), 0);
		assert_true(there || (st.st_mode & 07777) == 0640);
		*file = calloc(1, (size_t) st.st_size + 1);
		f = fopen(found.gl_pathv[0], "r");
		assert_int_equal(fread(*file, 1, (size_t) st.st_size, f), st.st_size);
		fclose(f);
		unlink(found.gl_pathv[0]);
		globfree(&found);
	}
	assert_int_equal(rmdir(dir), 0);
	return text;
}

static void the_log_goes_to_its_location(void **state)
{
	char *file, *text = speak_to("a.log", "a.log", false, &file);

	(void) state;
	assert_string_equal(text, "");
	assert_non_null(file);
	assert_int_equal(count_lines(file, "tcp warn"), 1);
	assert_int_equal(count_lines(file, "\n"), 4);
	free(file);
	free(text);

	text = speak_to("", "ofi_[0-9]*.log", false, &file);
	assert_string_equal(text, "");
	assert_non_null(file);
	assert_int_equal(count_lines(file, "\n"), 4);
	free(file);
	free(text);
}

static void a_location_that_exists_is_not_overwritten(void **state)
{
	char *file, *text = speak_to("a.log", "a.log", true, &file);

	(void) state;
	assert_string_equal(file, "mine");
	assert_int_equal(count_lines(text, "no file can be created there: File exists; the log goes to stderr"), 1);
	assert_int_equal(count_lines(text, "tcp warn"), 1);
	free(file);
	free(text);
}

static void speak_to_stdout(void)
{
	fclose(stderr);
	speak();
}

static void the_location_may_be_stdout(void **state)
{
	static const char *const env[] = { "FI_LOG_LOCATION=stdout", NULL };
	char *text = child_run(env, speak_to_stdout);

	(void) state;
	assert_int_equal(count_lines(text, "\n"), 4);
	free(text);
}

static void speak_at_length(void)
{
	char *text = malloc(100000);

	memset(text, 'y', 99999);
	text[99999] = '\0';
	FI_WARN(&tcp, FI_LOG_CORE, "%s", text);
	text[1899] = '\0';
	FI_WARN(&tcp, FI_LOG_CORE, "%s\n", text);
	free(text);
}

static void long_lines_stay_whole(void **state)
{
	char *text = child_run(NULL, speak_at_length), *second = strchr(text, '\n') + 1;

	(void) state;
	assert_int_equal(count_lines(text, "\n"), 2);
	assert_int_equal(strspn(strchr(text, 'y'), "y"), 99999);
	assert_int_equal(strspn(strchr(second, 'y'), "y"), 1899);
	assert_string_equal(strchr(second, '\n'), "\n");
	free(text);
}

static uint64_t fake_ns;

static uint64_t fake_now(void)
{
	return fake_ns;
}

static void speak_every_100_ms(void)
{
	static const struct fab_clock_ops fake = { .now_ns = fake_now };
	uint64_t showtime = 0, never = 0;
	int i;

	fab_clock = &fake;
	for (i = 0; i < 50; i++) {
		fake_ns = (uint64_t) i * 100000000;
		if (fi_log_ready(&tcp, FI_LOG_WARN, FI_LOG_CORE, &showtime))
			printf("ready at %d\n", i * 100);
		child_check(!fi_log_ready(&tcp, FI_LOG_INFO, FI_LOG_CORE, &never));
	}
}

static void rate_is_limited(void **state)
{
	static const char *const env[] = { "FI_LOG_INTERVAL=500", NULL };
	char *text = child_run(NULL, speak_every_100_ms);

	(void) state;
	assert_string_equal(text, "ready at 0\nready at 2000\nready at 4000\n");
	free(text);
	text = child_run(env, speak_every_100_ms);
	assert_int_equal(count_lines(text, "ready"), 10);
	free(text);
}

static void speak_again_and_again(void)
{
	static const struct fab_clock_ops fake = { .now_ns = fake_now };
	int i, j;

	fab_clock = &fake;
	for (i = 0; i < 50; i++) {
		FI_WARN(&tcp, FI_LOG_CQ, "said before\n");
		for (j = 0; j < 2; j++)
			FI_WARN(&tcp, FI_LOG_CQ, j ? "from another place\n" : "from one place\n");
	}
	for (i = 0; i < 100; i++) {
		fake_ns = i < 50 ? 0 : 3600 * 1000000000ULL;
		FI_WARN(&tcp, FI_LOG_CQ, "peer %d\n", i);
	}
	FI_WARN(&udp, FI_LOG_CQ, "not a peer\n");
}

/* A line is written once, and a place in the source has ten of them in ten minutes. Level info has them all. */
static void warnings_are_not_repeated(void **state)
{
	static const char *const info[] = { "FI_LOG_LEVEL=info", NULL };
	char *text = child_run(NULL, speak_again_and_again);

	(void) state;
	assert_int_equal(count_lines(text, "said before"), 1);
	assert_int_equal(count_lines(text, "from one place"), 1);
	assert_int_equal(count_lines(text, "from another place"), 1);
	assert_int_equal(count_lines(text, "<warn> peer "), 20);
	assert_int_equal(count_lines(text, "further lines like the last one are left out for 10 minutes"), 2);
	assert_int_equal(count_lines(text, "40 lines like the last one were left out"), 1);
	assert_int_equal(count_lines(text, "not a peer"), 1);
	free(text);
	text = child_run(info, speak_again_and_again);
	assert_int_equal(count_lines(text, "said before"), 50);
	assert_int_equal(count_lines(text, "<warn> peer "), 100);
	assert_int_equal(count_lines(text, "further lines"), 0);
	free(text);
}

static void speak_without_end(void)
{
	static const struct fab_clock_ops fake = { .now_ns = fake_now };

	fab_clock = &fake;
	for (int i = 0; i <= 251200; i++) {
		fake_ns = i < 251200 ? i * 2000ULL : 3600 * 1000000000ULL;
		FI_WARN(&tcp, FI_LOG_CQ, "refused a read\n");
		FI_WARN(&tcp, FI_LOG_CQ, "refused read %d\n", i);
	}
	FI_WARN(&udp, FI_LOG_CQ, "good\n");
}

/* A peer that makes us warn all the time, whether the text changes or not, fills no log, and is counted. */
static void warnings_that_are_left_out_are_counted(void **state)
{
	char *text = child_run(NULL, speak_without_end);

	(void) state;
	assert_in_range(count_lines(text, "\n"), 20, 40);
	for (unsigned long cnt = 100; cnt <= 100000; cnt *= 10) {
		char line[64];

		snprintf(line, sizeof(line), " %lu lines like the last one were left out in 10 minutes", cnt);
		assert_int_equal(count_lines(text, line), 2);
	}
	assert_int_equal(count_lines(text, " 251199 lines like the last one were left out in 10 minutes"), 1);
	assert_int_equal(count_lines(text, " 251190 lines like the last one were left out in 10 minutes"), 1);
	assert_int_equal(count_lines(text, "good"), 1);
	free(text);
}

/* A line of a place that has used up its lines is not even formatted: a peer may cause thousands of them. */
static void speak_in_vain(void)
{
	int made = 0;

	for (int i = 0; i < 50; i++) {
		int len = 0;

		FI_WARN(&tcp, FI_LOG_CORE, "line %d%n of many\n", i, &len);
		made += len > 0;
	}
	child_check(made < 20);
	made = 0;
	for (int i = 0; i < 5000; i++) {
		int len = 0;

		FI_WARN(&tcp, FI_LOG_CORE, "the same%n of one\n", &len);
		made += len > 0;
	}
	child_check(made < 2000);
}

static void lines_that_are_left_out_are_not_made(void **state)
{
	char *text = child_run(NULL, speak_in_vain);

	(void) state;
	assert_in_range(count_lines(text, " of many"), 10, 20);
	free(text);
}

/* The application's logger: writes what it is asked and given. */
static int app_enabled(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		       uint64_t flags)
{
	(void) subsys;
	return level <= FI_LOG_TRACE && strcmp(prov->name, "udp") && !(flags & FI_LOG_PROV_FILTERED);
}

static int app_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys, uint64_t flags,
		     uint64_t *showtime)
{
	*showtime = 77;
	return app_enabled(prov, level, subsys, flags);
}

static void app_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		    const char *func, int line, const char *msg)
{
	printf("app: %s %d %d %s %s", prov->name, level, subsys, func, line > 0 ? msg : "?");
}

static struct fi_ops_log app_ops = { .enabled = app_enabled, .ready = app_ready, .log = app_log };
static struct fid_logging app_logger = { .ops = &app_ops };

static void speak_to_application(void)
{
	uint64_t showtime = 0;

	child_check(!fi_import_log(FI_VERSION(1, 14), 0, &app_logger));
	child_check(!fi_import_log(FI_VERSION(1, 14), 0, &app_logger));
	FI_LOG(&tcp, FAB_LOG_ERROR, FI_LOG_CORE, "tcp error");
	FI_TRACE(&tcp, FI_LOG_CQ, "tcp trace\n");
	FI_INFO(&tcp, FI_LOG_CQ, "tcp info");
	FI_WARN(&udp, FI_LOG_CQ, "udp warn");
	child_check(fi_log_ready(&tcp, FI_LOG_WARN, FI_LOG_CORE, &showtime) && showtime == 77);
}

static void an_application_can_bring_its_logger(void **state)
{
	static const char *const silent[] = { "FI_LOG_LEVEL=silent", NULL };
	static const char *const filtered[] = { "FI_LOG_PROV=udp", NULL };
	char *text = child_run(silent, speak_to_application);

	(void) state;
	assert_string_equal(text, "app: tcp 0 0 speak_to_application tcp error\n"
				  "app: tcp 1 6 speak_to_application tcp trace\n");
	free(text);
	text = child_run(filtered, speak);
	assert_int_equal(count_lines(text, "tcp"), 0);
	free(text);
}

static void offer_bad_loggers(void)
{
	struct fi_ops_log ops = app_ops;
	struct fid_logging logger = { .fid.fclass = FI_CLASS_LOG, .ops = &ops };
	struct fid *fid, *second;

	child_check(!fi_open(FI_VERSION(1, 14), "logging", NULL, 0, 0, &fid, &ops));
	child_check(fid->context == &ops && fid->fclass == FI_CLASS_LOG);
	child_check(fi_open(FI_VERSION(1, 14), "logging", NULL, 0, 0, &second, NULL) == -FI_EALREADY);
	child_check(fi_import_fid(fid, NULL, 0) == -FI_EINVAL);
	ops.size = sizeof(ops) - 1;
	child_check(fi_import_fid(fid, &logger.fid, 0) == -FI_EINVAL);
	ops.size = sizeof(ops);
	child_check(fi_import_fid(fid, &logger.fid, 1) == -FI_EBADFLAGS);
	ops.log = NULL;
	child_check(fi_import_fid(fid, &logger.fid, 0) == -FI_EINVAL);
	ops.log = app_log;
	logger.fid.fclass = FI_CLASS_CQ;
	child_check(fi_import_fid(fid, &logger.fid, 0) == -FI_EINVAL);
	child_check(fi_control(fid, FI_GETWAIT, NULL) == -FI_ENOSYS);
	child_check(!fi_close(fid));
	child_check(!fi_open(FI_VERSION(1, 14), "logging", NULL, 0, 0, &fid, NULL));
	child_check(!fi_close(fid));
	FI_WARN(&udp, FI_LOG_CORE, "still ours");
}

static void bad_loggers_are_refused(void **state)
{
	char *text = child_run(NULL, offer_bad_loggers);

	(void) state;
	assert_int_equal(count_lines(text, "udp:core"), 1);
	free(text);
}

static void *speak_often(void *arg)
{
	int i;

	for (i = 0; i < 100; i++)
		FI_WARN(&tcp, FI_LOG_CORE, "[from a thread]");
	return arg;
}

static void speak_from_threads(void)
{
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++)
		child_check(!pthread_create(&threads[i], NULL, speak_often, NULL));
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* Threads that begin together all speak with the real settings in the end, and never into each other's lines. */
static void lines_of_threads_do_not_mix(void **state)
{
	static const char *const all[] = { "FI_LOG_LEVEL=info", NULL };
	char *text = child_run(all, speak_from_threads), *line = text;
	int cnt = 0;

	(void) state;
	for (; *line; line = strchr(line, '\n') + 1, cnt++) {
		assert_int_equal(strncmp(line, "libfabric:", 10), 0);
		assert_int_equal(strncmp(strchr(line, '['), "[from a thread]\n", 16), 0);
	}
	assert_int_equal(cnt, 400);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_choose_lines),
		cmocka_unit_test(debug_lines_are_for_debug_builds),
		cmocka_unit_test(a_word_that_is_no_level_is_named),
		cmocka_unit_test(a_bad_interval_is_named),
		cmocka_unit_test(a_line_says_who_where_and_how_bad),
		cmocka_unit_test(the_log_goes_to_its_location),
		cmocka_unit_test(a_location_that_exists_is_not_overwritten),
		cmocka_unit_test(the_location_may_be_stdout),
		cmocka_unit_test(long_lines_stay_whole),
		cmocka_unit_test(rate_is_limited),
		cmocka_unit_test(warnings_are_not_repeated),
		cmocka_unit_test(warnings_that_are_left_out_are_counted),
		cmocka_unit_test(lines_that_are_left_out_are_not_made),
		cmocka_unit_test(an_application_can_bring_its_logger),
		cmocka_unit_test(bad_loggers_are_refused),
		cmocka_unit_test(lines_of_threads_do_not_mix),
	};

	return cmocka_run_group_tests_name("core/log", tests, NULL, NULL);
}
