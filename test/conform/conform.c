/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The runner: chooses tests by pattern, runs each with a watchdog, closes what it left open, and prints TAP.
 *
 * A test is named GROUP/NAME or GROUP/NAME/ROW, the group being its file. It ends in one of three ways: return, test_fail()
 * or test_skip(), the latter two by longjmp to run_one(). After a test that passed, everything closed must have returned
 * 0 and no file descriptor or thread may be left over.
 */
#include "conform.h"

#include <dirent.h>
#include <fnmatch.h>
#include <getopt.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
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

enum outcome { PASSED = 1, FAILED, SKIPPED };	/* longjmp values: never 0 */

struct undo {
	struct undo *next;
	void (*fn)(void *arg);		/* NULL: arg is a struct fid */
	void *arg;
};

static struct test_case *cases, **cases_end = &cases;
static jmp_buf leave;
static char reason[1024];		/* of the failure or skip */
static char noted[256];
static struct {
	const char *file;
	int line;
} called_at;
static char running[256];		/* name of the test, for the signal handlers */
static unsigned int number, failed;
static bool isolate, be_peer;

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
	static const char *const helpers[] = { "fixture.c", "progress.c", "ops.c", "conform.c", "waitobj.c", "process.c",
					       "rawsock.c" };
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
	snprintf(reason, sizeof(reason), "%s%s:%d: %s%s%s", from, base_name(file), line, noted, noted[0] ? ": " : "", text);
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

void note(const char *fmt, ...)
{
	va_list ap;

	noted[0] = 0;
	if (!fmt)
		return;
	va_start(ap, fmt);
	vsnprintf(noted, sizeof(noted), fmt, ap);
	va_end(ap);
}

static const char *ret_name(long long ret)
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

struct wait wait_begin(void)
{
	return (struct wait) { .until = now_ms() + 1000.0 * WAIT_S * run.slow };
}

void wait_more(struct test *t, struct wait *w, const char *what)
{
	sides_progress(t);
	if (now_ms() > w->until)
		FAIL("waited %u s for %s", WAIT_S * run.slow, what);
}

/* ---- ownership */

void own(struct test *t, void (*fn)(void *arg), void *arg)
{
	struct undo *u = malloc(sizeof(*u));

	if (!u)
		abort();
	*u = (struct undo) { .next = t->undo, .fn = fn, .arg = arg };
	t->undo = u;
}

void own_fid(struct test *t, struct fid *fid)
{
	own(t, NULL, fid);
}

void disown(struct test *t, void *arg)
{
	struct undo **at, *u;

	for (at = &t->undo; (u = *at); at = &u->next) {
		if (u->arg == arg) {
			*at = u->next;
			free(u);
			return;
		}
	}
	FAIL("the test does not own %p", arg);
}

void close_now(struct test *t, struct fid *fid)
{
	disown(t, fid);
	MUST(fi_close(fid));
}

/* Undo everything, newest first. A fid that does not close is reported in @why (first one only) and left. */
static bool undo_all(struct test *t, char *why, size_t size)
{
	struct undo *u;
	bool ok = true;
	size_t class;
	int ret;

	while ((u = t->undo)) {
		t->undo = u->next;
		if (u->fn) {
			u->fn(u->arg);
		} else {
			class = ((struct fid *) u->arg)->fclass;
			ret = fi_close(u->arg);
			if (ret && ok) {
				ok = false;
				snprintf(why, size, "at the end fi_close() of a fid of class %zu returned %d (%s)", class, ret,
					 ret_name(ret));
			}
		}
		free(u);
	}
	return ok;
}

void *mem(struct test *t, size_t len)
{
	void *p = calloc(1, len ? len : 1);

	if (!p)
		FAIL("no memory for %zu bytes", len);
	own(t, free, p);
	return p;
}

static unsigned char pattern_byte(size_t i, unsigned int seed)
{
	uint32_t x = (uint32_t) i * 2654435761u + seed * 40503u;

	return (unsigned char) (x >> 13);
}

void fill(void *buf, size_t len, unsigned int seed)
{
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = pattern_byte(i, seed);
}

void *mem_pattern(struct test *t, size_t len, unsigned int seed)
{
	void *p = mem(t, len);

	fill(p, len, seed);
	return p;
}

void check_fill(const void *buf, size_t len, unsigned int seed)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] != pattern_byte(i, seed))
			FAIL("byte %zu of %zu is 0x%02x, not 0x%02x", i, len, p[i], pattern_byte(i, seed));
	}
}

/* ---- what may not be left over */

/* Not inline: gcc would take its local for one of the function that calls setjmp(). */
__attribute__((noinline)) static unsigned int dir_count(const char *path)
{
	DIR *dir = opendir(path);
	unsigned int n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

struct left {
	unsigned int fds, threads;
};

static struct left left_now(void)
{
	return (struct left) { .fds = dir_count("/proc/self/fd"), .threads = dir_count("/proc/self/task") };
}

/* A joined thread may stay in /proc for a moment. */
static bool nothing_left(struct left before, char *why, size_t size)
{
	double until = now_ms() + 10000.0 * run.slow;
	struct left now;

	do {
		now = left_now();
		/* a sanitizer starts a thread of its own when it likes */
		if (now.fds <= before.fds && (SANITIZED || now.threads <= before.threads))
			return true;
	} while (now_ms() < until);
	snprintf(why, size, "left behind: %d file descriptors, %d threads", (int) (now.fds - before.fds),
		 (int) (now.threads - before.threads));
	return false;
}

/* ---- running */

static void print_result(enum outcome result)
{
	char *c;

	for (c = reason; *c; c++) {
		if (*c == '\n' || *c == '#')
			*c = ' ';
	}
	number++;
	if (result == SKIPPED)
		printf("ok %u - %s # SKIP %s\n", number, running, reason);
	else if (result == PASSED)
		printf("ok %u - %s\n", number, running);
	else
		printf("not ok %u - %s: %s\n", number, running, reason);
	fflush(stdout);
	failed += result == FAILED;
}

static void body(struct test *t)
{
	const struct test_case *c = t->c;

	if (c->types && !(c->types & BIT(run.type)))
		SKIP("not for %s", fi_tostr(&run.type, FI_TYPE_EP_TYPE));
	if (!c->alone)
		offer_check(c->caps);
	c->fn(t);
}

/*
 * A test's buffers may be on its stack, and a receive that it left posted may still write to them before its endpoint is
 * closed, from a progress thread or while closing. So the test runs far below the frames that close.
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

	reason[0] = noted[0] = 0;
	called_at.file = NULL;
	alarm(TEST_S * run.slow);
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
	alarm(0);
	return result;
}

/* In a process of its own, so that a crash costs one test. */
static void run_isolated(const struct test_case *c, const void *row)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		print_result(run_one(c, row));
		_exit(failed ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	number++;
	if (WIFSIGNALED(status))
		printf("not ok %u - %s: ended by signal %d\n", number, running, WTERMSIG(status));
	failed += status != 0;
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

/* Call @fn for every wanted test, with its name in running[]. */
static void each_case(char **patterns, void (*fn)(const struct test_case *c, const void *row))
{
	const struct test_case *c;
	size_t i, n;

	for (c = cases; c; c = c->next) {
		n = c->rows ? c->row_cnt : 1;
		for (i = 0; i < n; i++) {
			case_name(c, case_row(c, i), running, sizeof(running));
			if (wanted(running, patterns))
				fn(c, case_row(c, i));
		}
	}
}

static unsigned int planned;

static void case_count(__attribute__((unused)) const struct test_case *c, __attribute__((unused)) const void *row)
{
	planned++;
}

static void case_list(__attribute__((unused)) const struct test_case *c, __attribute__((unused)) const void *row)
{
	puts(running);
}

/* ---- what a provider cannot do by its nature */

/* Lines of a file: a glob, blanks, and why tests of such a name are skipped. */
struct except {
	struct except *next;
	char *glob, *why;
};
static struct except *excepts;

static void read_excepts(const char *path)
{
	FILE *file = fopen(path, "r");
	struct except *e;
	char line[512];
	size_t len;

	if (!file) {
		fprintf(stderr, "conform: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	while (fgets(line, sizeof(line), file)) {
		len = strcspn(line, " \t\n");
		if (!len || line[0] == '#')
			continue;
		e = calloc(1, sizeof(*e));
		if (!e)
			abort();
		e->glob = strndup(line, len);
		e->why = strndup(line + len + strspn(line + len, " \t"), strcspn(line + len + strspn(line + len, " \t"), "\n"));
		e->next = excepts;
		excepts = e;
	}
	fclose(file);
}

/* Why not this test, or NULL. */
static const char *excepted(const char *name)
{
	struct except *e;

	for (e = excepts; e; e = e->next) {
		if (!fnmatch(e->glob, name, 0))
			return e->why;
	}
	return NULL;
}

static void case_run(const struct test_case *c, const void *row)
{
	const char *why = excepted(running);

	if (why) {
		snprintf(reason, sizeof(reason), "%s", why);
		print_result(SKIPPED);
		return;
	}
	if (isolate)
		run_isolated(c, row);
	else
		print_result(run_one(c, row));
}

/* The watchdog's and the crash's last words. */
static void on_signal(int sig)
{
	char text[512];
	int len;

	len = snprintf(text, sizeof(text), "not ok %u - %s: %s%s%s\n", number + 1, running,
		       sig == SIGALRM ? "hangs" : "crashed", noted[0] ? ", at: " : "", noted);
	if (write(STDOUT_FILENO, text, (size_t) len) < 0)
		_exit(3);
	if (isolate)
		_exit(1);
	signal(sig, SIG_DFL);
	raise(sig);
}

static const char usage[] =
	"conform [-p PROVIDER] [-e msg|rdm|dgram] [OPTION...] [PATTERN...]\n"
	"  -p, --provider NAME       exact name, as in fabric_attr->prov_name\n"
	"  -e, --endpoint TYPE       msg, rdm or dgram\n"
	"  -6, --ipv6                addresses of the other family\n"
	"  -P, --progress MODEL      auto or manual\n"
	"  -T, --threading LEVEL     safe, fid, endpoint, completion or domain\n"
	"      --mode MODE           also: prefix (FI_MSG_PREFIX) or rx-cq-data (FI_RX_CQ_DATA); more than once for both\n"
	"  -m, --mr-mode MODE        basic (virtual addresses, provider's keys), local (and registered buffers) or none\n"
	"  -V, --api MAJOR.MINOR     version given to fi_getinfo()\n"
	"  -s, --slow N              stretch all deadlines N times\n"
	"  -f, --fork                each test in a process of its own\n"
	"  -x, --except FILE         skip the tests that it names: lines of a glob and a reason\n"
	"  -l, --list                list the tests\n"
	"A PATTERN is a part of GROUP/NAME, or a glob for all of it.\n";

static const struct option options[] = {
	{ "provider", required_argument, NULL, 'p' },
	{ "endpoint", required_argument, NULL, 'e' },
	{ "ipv6", no_argument, NULL, '6' },
	{ "progress", required_argument, NULL, 'P' },
	{ "threading", required_argument, NULL, 'T' },
	{ "mr-mode", required_argument, NULL, 'm' },
	{ "mode", required_argument, NULL, 'M' },
	{ "api", required_argument, NULL, 'V' },
	{ "slow", required_argument, NULL, 's' },
	{ "fork", no_argument, NULL, 'f' },
	{ "except", required_argument, NULL, 'x' },
	{ "list", no_argument, NULL, 'l' },
	{ "peer", no_argument, NULL, 'r' },		/* used by process.c */
	{ "probe", required_argument, NULL, 'q' },	/* used by getinfo_flags.c */
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 }
};

enum { MODE_PREFIX, MODE_RX_CQ_DATA };

struct word {
	int opt;
	const char *word;
	int value;
};

static const struct word words[] = {
	{ 'e', "msg", FI_EP_MSG }, { 'e', "rdm", FI_EP_RDM }, { 'e', "dgram", FI_EP_DGRAM },
	{ 'P', "auto", FI_PROGRESS_AUTO }, { 'P', "manual", FI_PROGRESS_MANUAL },
	{ 'T', "safe", FI_THREAD_SAFE }, { 'T', "completion", FI_THREAD_COMPLETION },
	{ 'T', "domain", FI_THREAD_DOMAIN }, { 'T', "fid", FI_THREAD_FID }, { 'T', "endpoint", FI_THREAD_ENDPOINT },
	{ 'M', "prefix", MODE_PREFIX }, { 'M', "rx-cq-data", MODE_RX_CQ_DATA },
	{ 'm', "basic", MR_BASIC_BITS }, { 'm', "none", 0 }, { 'm', "local", MR_BASIC_BITS | FI_MR_LOCAL },
};

static int word_value(int opt, const char *word)
{
	size_t i;

	for (i = 0; i < COUNT(words); i++) {
		if (words[i].opt == opt && !strcmp(words[i].word, word))
			return words[i].value;
	}
	fprintf(stderr, "conform: -%c does not know '%s'\n%s", opt, word, usage);
	exit(2);
}

static uint32_t version_value(const char *text)
{
	unsigned int major, minor;

	if (sscanf(text, "%u.%u", &major, &minor) != 2) {
		fprintf(stderr, "conform: '%s' is not MAJOR.MINOR\n", text);
		exit(2);
	}
	return FI_VERSION(major, minor);
}

/* Returns true if tests are only to be listed. */
static bool parse(int argc, char **argv)
{
	bool list = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "p:e:6P:T:m:V:s:flhx:", options, NULL)) >= 0) {
		switch (opt) {
		case 'p':
			run.prov = optarg;
			break;
		case 'e':
			run.type = (enum fi_ep_type) word_value(opt, optarg);
			break;
		case '6':
			run.family = AF_INET6;
			break;
		case 'P':
			run.progress = (enum fi_progress) word_value(opt, optarg);
			break;
		case 'T':
			run.threading = (enum fi_threading) word_value(opt, optarg);
			break;
		case 'm':
			run.mr_mode = word_value(opt, optarg);
			break;
		case 'M':
			run.mode |= word_value(opt, optarg) == MODE_PREFIX ? FI_MSG_PREFIX : FI_RX_CQ_DATA;
			break;
		case 'V':
			run.version = version_value(optarg);
			break;
		case 's':
			run.slow *= (unsigned int) atoi(optarg) ? : 1;
			break;
		case 'f':
			isolate = true;
			break;
		case 'x':
			read_excepts(optarg);
			break;
		case 'l':
			list = true;
			break;
		case 'r':
			be_peer = true;
			break;
		case 'q':
			exit(process_probe(optarg));
		default:
			fputs(usage, opt == 'h' ? stdout : stderr);
			exit(opt == 'h' ? 0 : 2);
		}
	}
	return list;
}

static void *nothing(void *arg)
{
	return arg;
}

/*
 * A first connection opens what a provider keeps for the life of the process, and a first thread what a sanitizer does, so
 * that no test is blamed for it.
 */
static void warm_up(void)
{
	static const struct test_case warm = { .name = "warm_up", .file = __FILE__, .fn = fixture_warm_up, .alone = true,
						.keeps = true };

	pthread_t thread;

	if (!pthread_create(&thread, NULL, nothing, NULL))
		pthread_join(thread, NULL);
	snprintf(running, sizeof(running), "warm_up");
	if (run_one(&warm, NULL) == FAILED)
		printf("# warm up: %s\n", reason);
}

/* The other process of a test: killed, or done when its input ends. */
static int peer_main(void)
{
	static const struct test_case peer = { .name = "peer", .file = __FILE__, .fn = process_body, .alone = true };

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

int main(int argc, char **argv)
{
	/* SIGPIPE too: a library must not raise it. A sanitizer reports the others better itself. */
	static const int crashes[] = { SIGALRM, SIGPIPE, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
	const size_t crash_cnt = SANITIZED ? 2 : COUNT(crashes);
	bool list = parse(argc, argv);
	size_t i;

	if (getenv("CONFORM_SLOW") && atoi(getenv("CONFORM_SLOW")) > 0)
		run.slow *= (unsigned int) atoi(getenv("CONFORM_SLOW"));
	run.ours = FI_MAJOR(fi_version()) >= 2;
	if (be_peer)
		return peer_main();
	if (list) {
		each_case(argv + optind, case_list);
		return 0;
	}
	for (i = 0; i < crash_cnt; i++)
		signal(crashes[i], on_signal);
	if (run.family == AF_INET6 && !ipv6_here()) {
		puts("1..0 # SKIP no IPv6 here");
		return 0;
	}
	each_case(argv + optind, case_count);
	printf("1..%u\n# %s, %s\n", planned, run.prov, fi_tostr(&run.type, FI_TYPE_EP_TYPE));
	fflush(stdout);
	warm_up();
	each_case(argv + optind, case_run);
	return failed ? 1 : 0;
}
