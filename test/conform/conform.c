/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The runner: chooses tests by pattern, runs each with a watchdog, and closes what it left open. The checks are here,
 * for they leave a test; isolate.c has the processes that tests run in, owned.c what a test owns, cmdline.c the command
 * line, report.c the results.
 *
 * A test is named GROUP/NAME or GROUP/NAME/ROW, the group being its file, up to the first dot: GROUP.c, or GROUP.PART.c
 * where one file would be too long. It ends in one of four ways: return, or by longjmp to run_one() from test_fail(),
 * test_skip() or test_absent(). After a test that passed, everything closed must have returned 0 and no file descriptor
 * or thread may be left over. A test that cannot apply to this provider and endpoint type is absent: it has no result,
 * a comment says why. So the plan comes last.
 */
#include "runner.h"

#include <fnmatch.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "process.h"

struct run run = {
	.prov = "tcp", .type = FI_EP_RDM, .family = AF_INET, .version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.slow = SANITIZED ? 3 : 1,
};

/* Only a failure waits so long: the machine may do much else meanwhile. */
enum { WAIT_S = 30, TEST_S = 90 };

static struct test_case *cases, **cases_end = &cases;
static jmp_buf leave;
static char reason[1024];		/* of the failure, the skip or the absence */
static struct {
	const char *file;
	int line;
} called_at;
static struct cmdline cmdline;
static bool in_child;			/* this process runs tests, and its parent prints the plan */

void test_add(struct test_case *c)
{
	*cases_end = c;
	cases_end = &c->next;
}

/* ---- checks */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool helper_file(const char *file)
{
	static const char *const helpers[] = { "fixture.c", "progress.c", "ops.c", "conform.c", "waitobj.c",
					       "process.c", "rawsock.c", "owned.c" };
	size_t i;

	for (i = 0; i < COUNT(helpers); i++) {
		if (!strcmp(base_name(file), helpers[i]))
			return true;
	}
	return false;
}

void test_at(const char *file, int line)
{
	called_at.file = file;
	called_at.line = line;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
	char text[640], from[64] = "";
	va_list ap;

	/* A helper's own file and line matter less than the test's. */
	if (called_at.file && helper_file(file))
		snprintf(from, sizeof(from), "%s:%d: ", base_name(called_at.file), called_at.line);

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(reason, sizeof(reason), "%s%s:%d: %s%s%s", from, base_name(file), line, tally->noted,
		 tally->noted[0] ? ": " : "", text);
	longjmp(leave, FAILED);
}

void test_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	longjmp(leave, SKIPPED);
}

void test_absent(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	longjmp(leave, ABSENT);
}

void note(const char *fmt, ...)
{
	va_list ap;

	tally->noted[0] = 0;
	if (!fmt)
		return;
	va_start(ap, fmt);
	vsnprintf(tally->noted, sizeof(tally->noted), fmt, ap);
	va_end(ap);
}

const char *ret_name(long long ret)
{
	return ret < 0 && ret > -4096 ? fi_strerror((int) -ret) : "";
}

void check_ret(const char *file, int line, const char *what, long long got, long long want)
{
	if (got == want)
		return;
	test_fail(file, line, "%s returned %lld (%s), not %lld (%s)", what, got, ret_name(got), want, ret_name(want));
}

void check_eq(const char *file, int line, const char *what, unsigned long long got, unsigned long long want)
{
	if (got != want)
		test_fail(file, line, "%s is %llu (0x%llx), not %llu (0x%llx)", what, got, got, want, want);
}

void check_mem(const char *file, int line, const char *what, const void *got, const void *want, size_t len)
{
	const unsigned char *g = got, *w = want;
	size_t i;

	if (!len || !memcmp(g, w, len))
		return;
	for (i = 0; i < len; i++) {
		if (g[i] != w[i])
			test_fail(file, line, "%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i, len, g[i], w[i]);
	}
}

/* ---- time */

double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

void nap(void)
{
	poll(NULL, 0, 1);
}

struct wait wait_begin(void)
{
	double now = now_ms();

	/* an excepted test has to fail, so it need not wait long */
	return (struct wait) { .begun = now, .until = now + 1000.0 * (cmdline.excepted ? 1 : WAIT_S) * run.slow };
}

void wait_more(struct test *t, struct wait *w, const char *what)
{
	double now;

	sides_progress(t);
	now = now_ms();
	if (now > w->until)
		FAIL("waited %u s for %s", WAIT_S * run.slow, what);
	/* What comes takes a few rounds, or, if it is long, many. */
	if (now > w->begun + 5 && ++w->rounds % 16 == 0)
		nap();
}

/* ---- running */

static void body(struct test *t)
{
	const struct test_case *c = t->c;

	if (!c->alone)
		offer_check(c->caps);
	c->fn(t);
}

/*
 * A test's buffers may be on its stack, and a receive that it left posted may still write to them before its
 * endpoint is closed, from a progress thread or while closing. So the test runs far below the frames that close.
 */
static __attribute__((noinline)) void body_below(struct test *t)
{
	volatile char gap[256 * 1024];

	gap[0] = 0;
	body(t);
	gap[sizeof(gap) - 1] = 0;
}

static enum outcome run_one(const struct test_case *c, const void *row)
{
	struct test t = { .c = c, .row = row };
	struct left before = left_now();
	enum outcome result;
	char why[256];

	reason[0] = tally->noted[0] = 0;
	called_at.file = NULL;
	alarm(TEST_S * run.slow);
	tally->kill_ms = now_ms() + (TEST_S * run.slow + 10) * 1000;
	result = setjmp(leave);
	if (!result) {
		body_below(&t);
		result = PASSED;
	}
	if (result == PASSED && !sides_tidy(&t, reason, sizeof(reason)))
		result = FAILED;
	if (!undo_all(&t, why, sizeof(why)) && result == PASSED) {
		memcpy(reason, why, sizeof(why));
		result = FAILED;
	}
	if (result == PASSED && !c->keeps && !nothing_left(before, reason, sizeof(reason)))
		result = FAILED;
	tally->kill_ms = 0;
	alarm(0);
	return result;
}

static bool wanted(const char *name, char **patterns)
{
	if (!*patterns)
		return true;
	for (; *patterns; patterns++) {
		if (strstr(name, *patterns) || !fnmatch(*patterns, name, 0))
			return true;
	}
	return false;
}

static void case_name(const struct test_case *c, const void *row, char *name, size_t size)
{
	const char *file = base_name(c->file);
	int len = (int) strcspn(file, ".");

	if (row)
		snprintf(name, size, "%.*s/%s/%s", len, file, c->name, *(const char *const *) row);
	else
		snprintf(name, size, "%.*s/%s", len, file, c->name);
}

const struct test_case *test_named(const char *name)
{
	const struct test_case *c;
	char its[256];

	for (c = cases; c; c = c->next) {
		case_name(c, NULL, its, sizeof(its));
		if (!strcmp(its, name))
			return c;
	}
	return NULL;
}

static const void *case_row(const struct test_case *c, size_t i)
{
	return c->rows ? (const char *) c->rows + i * c->row_size : NULL;
}

/* Call @fn for every wanted test. */
static void each_case(char **patterns, void (*fn)(const struct test_case *c, const void *row, const char *name))
{
	const struct test_case *c;
	char name[sizeof(tally->running)];
	size_t i, n;

	for (c = cases; c; c = c->next) {
		n = c->rows ? c->row_cnt : 1;
		for (i = 0; i < n; i++) {
			case_name(c, case_row(c, i), name, sizeof(name));
			if (wanted(name, patterns))
				fn(c, case_row(c, i), name);
		}
	}
}

static unsigned int found;

static void case_count(__attribute__((unused)) const struct test_case *c, __attribute__((unused)) const void *row,
		       __attribute__((unused)) const char *name)
{
	found++;
}

static void case_list(__attribute__((unused)) const struct test_case *c, __attribute__((unused)) const void *row,
		      const char *name)
{
	const struct test_text *text = test_text_of(name);

	puts(name);
	if (cmdline.explain)
		printf("    %s%s%s\n", text->checks, text->checks[0] ? " See " : "", text->pages);
}

/* Is there a reason, found without running it, why the test has no place in this run? */
static bool is_absent(const struct test_case *c, const char *name)
{
	const char *why = excepted(name);

	if (cmdline.excepted && !why)
		snprintf(reason, sizeof(reason), "no exception");
	else if (why && !cmdline.excepted)
		snprintf(reason, sizeof(reason), "%s", why);
	else if (c->types && !(c->types & BIT(run.type)))
		snprintf(reason, sizeof(reason), "not for %s", fi_tostr(&run.type, FI_TYPE_EP_TYPE));
	else if (FI_VERSION_LT(fi_version(), c->since))
		snprintf(reason, sizeof(reason), "the library is of %u.%u, and this came with %u.%u",
			 FI_MAJOR(fi_version()), FI_MINOR(fi_version()), FI_MAJOR(c->since), FI_MINOR(c->since));
	else
		return false;
	return true;
}

static void *nothing(void *arg)
{
	return arg;
}

/*
 * A first connection opens what a provider keeps for the life of the process, and a first thread what a sanitizer
 * does, so that no test is blamed for it.
 */
static void warm_up(void)
{
	static const struct test_case warm = { .name = "warm_up", .file = __FILE__, .fn = fixture_warm_up,
					       .alone = true, .keeps = true };

	pthread_t thread;

	if (!pthread_create(&thread, NULL, nothing, NULL))
		pthread_join(thread, NULL);
	if (run_one(&warm, NULL) == FAILED)
		fprintf(stderr, "warm up: %s\n", reason);
}

/* The result of a test that has to fail. A reason that begins with "maybe" allows that it passes. */
static enum outcome turned(enum outcome result, const char *why)
{
	if (result == FAILED)
		return PASSED;
	if (result != PASSED)
		return ABSENT;
	snprintf(reason, sizeof(reason), "it passes, so it needs no exception: %s", why);
	return strncmp(why, "maybe", 5) ? FAILED : ABSENT;
}

/* Tests that each_case() has come to, with or without a result. */
static unsigned int reached;

/* Run the test in a child of the runner, which goes on with the tests that follow unless each has its own process. */
static void case_run(const struct test_case *c, const void *row, const char *name)
{
	enum outcome result;

	if (reached++ < tally->done)
		return;		/* by a child */
	if (is_absent(c, name)) {
		report_result(name, ABSENT, reason);
		tally->done++;
		return;
	}
	snprintf(tally->running, sizeof(tally->running), "%s", name);
	if (!in_child) {
		in_child = isolate();
		if (!in_child)
			return;
		warm_up();
	}
	result = run_one(c, row);
	report_result(name, cmdline.excepted ? turned(result, excepted(name)) : result, reason);
	tally->running[0] = 0;
	tally->done++;
	if (cmdline.fork_each)
		exit(0);
}

/* The other process of a test: killed, or done when its input ends. */
static int peer_main(void)
{
	static const struct test_case peer = { .name = "peer", .file = __FILE__, .fn = process_body, .alone = true,
						.keeps = true };

	if (run_one(&peer, NULL) == PASSED)
		return 0;
	fprintf(stderr, "# the other process: %s\n", reason);
	return 1;
}

static bool ipv6_here(void)
{
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool here = fd >= 0 && !bind(fd, (struct sockaddr *) &addr, sizeof(addr));

	if (fd >= 0)
		close(fd);
	return here;
}

/* A pattern that matches no test is a mistake of the caller's. */
static void check_patterns(char **patterns)
{
	unsigned int before;

	for (; *patterns; patterns++) {
		before = found;
		each_case((char *[]) { *patterns, NULL }, case_count);
		if (found > before)
			continue;
		fprintf(stderr, "conform: no test is named '%s'\n", *patterns);
		exit(2);
	}
}

/* Whether the provider has endpoints of run.type: asked in a child, since the runner opens nothing. */
static bool is_offered(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fixture_is_offered() ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Run the tests of run.type. True in a child of the runner, which has nothing else to do. */
static bool run_type(void)
{
	report_type();
	tally->done = reached = 0;
	each_case(cmdline.patterns, case_run);
	return in_child;
}

/* Run the tests of each endpoint type that the provider has. As run_type(). */
static bool run_every_type(void)
{
	static const enum fi_ep_type types[] = { FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM };
	char text[256];
	size_t i;
	bool any = false;

	for (i = 0; i < COUNT(types); i++) {
		run.type = types[i];
		if (!is_offered())
			continue;
		any = true;
		if (run_type())
			return true;
	}
	if (!any) {
		snprintf(text, sizeof(text),
			 "fi_getinfo() has no provider '%s' (exact name, as `fi_info -l` prints it)", run.prov);
		report_fault(text);
	}
	return false;
}

static const char *glob;		/* of an exception */
static bool glob_hit, glob_group;	/* it matches a test; its group is one of this program */

static void case_against_glob(__attribute__((unused)) const struct test_case *c,
			      __attribute__((unused)) const void *row, const char *name)
{
	size_t len = strcspn(glob, "*?[/");

	glob_hit |= !fnmatch(glob, name, 0);
	glob_group |= glob[len] != '/' || !strncmp(glob, name, len + 1);
}

/* A list may be for several programs: each looks at its own groups. */
static bool matches_a_test(const char *pattern)
{
	glob = pattern;
	glob_hit = glob_group = false;
	each_case((char *[]) { NULL }, case_against_glob);
	return glob_hit || !glob_group;
}

/* An exception that matches no test was for one that has another name now. */
static void check_excepts(void)
{
	const char *unmatched = excepts_unmatched(matches_a_test);

	if (!unmatched)
		return;
	printf("Bail out! no test is named %s, which a list of exceptions names\n", unmatched);
	exit(2);
}

int main(int argc, char **argv)
{
	if (FI_VERSION_LT(fi_version(), run.version))
		run.version = fi_version();
	cmdline = cmdline_read(argc, argv);
	if (getenv("CONFORM_SLOW") && atoi(getenv("CONFORM_SLOW")) > 0)
		run.slow *= (unsigned int) atoi(getenv("CONFORM_SLOW"));
	run.ours = strstr(fi_tostr("", FI_TYPE_VERSION), "weft");
	tally_init();
	if (cmdline.be_peer)
		return peer_main();
	check_patterns(cmdline.patterns);
	check_excepts();
	if (cmdline.list) {
		each_case(cmdline.patterns, case_list);
		return 0;
	}
	if (run.family == AF_INET6 && !ipv6_here()) {
		puts("1..0 # SKIP no IPv6 here");
		return 0;
	}
	report_begin(&cmdline);
	if (cmdline.every_type ? run_every_type() : run_type())
		return 0;
	hmem_report();
	report_end();
	return tally->failed ? 1 : 0;
}
