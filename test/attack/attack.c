/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Attacks on a server, one after another. Each has a server, an honest client that sends all the time, and the
 * attacker. During the attack, peers that begin then send a first message.
 *
 *   attack [NAME...]                        what can be counted (TAP): the messages arrive, memory, descriptors, lines
 *                                           of log
 *   attack --table [--seconds S] [NAME...]  times and throughput, too: a table for doc/decisions/attacks.md
 *   attack --floor [--seconds S] [NAME...]  the throughput of a server that uses plain sockets, and epoll
 *
 * The throughput is compared in alternating stretches of S seconds (0.5): with the attack aimed at a decoy, then at the
 * server. The decoy is a second server, which no honest peer uses. So the attack takes place in both, with all that the
 * kernel and the attacker do for it, and what is compared is what the library lets it take from honest peers. Server
 * and decoy share a processor, of which the decoy has what the server leaves (SCHED_IDLE); the honest client and the
 * attacker share the other one, of which the attacker has what the client leaves.
 */
#include "attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAIRS		5		/* stretches with and without attack */
#define ENOUGH		200		/* honest messages that have to arrive during the attack */
#define OWN_FILES	32		/* descriptors of the server beside those of its peers */
#define LINES_MAX	100		/* a minute */
#define STRANGER_S	10		/* seconds in which the first message of a stranger should come */

struct page *page;
static struct page *decoy_page;

uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

void nap_us(unsigned us)
{
	nanosleep(&(struct timespec) { us / 1000000, us % 1000000 * 1000 }, NULL);
}

void give_up(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("# ", stdout);
	vprintf(fmt, args);
	puts("");
	fflush(stdout);
	_exit(1);
}

void want_known(const struct sockaddr_in *addr)
{
	uint32_t at = __atomic_fetch_add(&page->insert_cnt, 1, __ATOMIC_ACQ_REL);

	if (at >= INSERT_MAX)
		give_up("more addresses than the page takes");
	page->insert[at].sin_port = addr->sin_port;
	page->insert[at].sin_addr = addr->sin_addr;
	SET(insert[at].sin_family, addr->sin_family);
	while (GET(inserted) <= at)
		nap_us(50);
}

/* ---- processes ---- */

static bool table, plain;
static unsigned stretch_us = 500000;

static void on_processor(unsigned nr)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(nr, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* The rest of a process; it dies with the test. */
static pid_t start(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void stop(pid_t *pid)
{
	if (*pid <= 0)
		return;
	kill(*pid, SIGKILL);
	waitpid(*pid, NULL, 0);
	*pid = 0;
}

static pid_t server, decoy, client, attacker;
static int log_fd = -1;

/* The server, or the decoy. */
static pid_t start_server(const struct raid *raid, bool is_decoy)
{
	struct rlimit files = { raid->files, raid->files };
	pid_t pid = start();

	if (pid)
		return pid;
	setrlimit(RLIMIT_NOFILE, &files);
	if (table)
		on_processor(0);
	if (is_decoy) {
		log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		page = decoy_page;
		sched_setscheduler(0, SCHED_IDLE, &(struct sched_param) { 0 });
	}
	dup2(log_fd, STDERR_FILENO);
	if (plain)
		serve_plainly(raid->kind);
	else
		serve(raid->kind);
}

/* And wait until it is ready. */
static void start_servers(const struct raid *raid)
{
	server = start_server(raid, false);
	while (!GET(ready) && !waitpid(server, NULL, WNOHANG))
		nap_us(1000);
	if (!table)
		return;
	decoy = start_server(raid, true);
	while (!__atomic_load_n(&decoy_page->ready, __ATOMIC_ACQUIRE) && !waitpid(decoy, NULL, WNOHANG))
		nap_us(1000);
}

static pid_t start_client(const struct raid *raid)
{
	pid_t pid = start();

	if (pid)
		return pid;
	if (table)
		on_processor(1);
	if (plain)
		be_plain(raid->kind);
	else
		be_honest(raid->kind);
}

/* at: the page of the server to attack. */
static void start_attack(const struct raid *raid, struct page *at)
{
	uint64_t end_us = now_us() + PATIENCE_MS * 1000ULL;

	if (!raid->run) {
		/* fork() takes time of the server, whatever the child does: it forks beside the decoy, too */
		if (!strcmp(raid->name, "children") && at == page)
			SET(fork_children, 1);
		else if (!strcmp(raid->name, "children"))
			SET(fork_only, 1);
		return;
	}
	at->ready = 0;
	attacker = start();
	if (!attacker) {
		if (table) {
			on_processor(1);
			sched_setscheduler(0, SCHED_IDLE, &(struct sched_param) { 0 });
		}
		page = at;
		raid->run();
		_exit(0);
	}
	while (!__atomic_load_n(&at->ready, __ATOMIC_ACQUIRE) && now_us() < end_us)
		nap_us(1000);
	if (!__atomic_load_n(&at->ready, __ATOMIC_ACQUIRE))
		printf("# %s: the attacker has not set up what it needs\n", raid->name);
}

static void end_attack(void)
{
	SET(fork_children, 0);
	SET(fork_only, 0);
	stop(&attacker);
}

/* ---- what the server holds ---- */

static unsigned files_of(pid_t pid)
{
	unsigned cnt = 0;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		cnt++;
	if (dir)
		closedir(dir);
	return cnt > 2 ? cnt - 2 : 0;
}

/* A line of /proc/PID/status, in KiB: VmRSS, VmHWM. */
static unsigned memory_kib(pid_t pid, const char *what)
{
	char path[32], line[256];
	unsigned kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int) pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, what, strlen(what)))
			kib = strtoul(line + strlen(what) + 1, NULL, 10);
	}
	if (file)
		fclose(file);
	return kib;
}

static unsigned log_lines_cnt(void)
{
	char buf[4096];
	unsigned cnt = 0;
	off_t at = 0;
	ssize_t len;

	for (; (len = pread(log_fd, buf, sizeof(buf), at)) > 0; at += len) {
		for (ssize_t i = 0; i < len; i++)
			cnt += buf[i] == '\n';
	}
	return cnt;
}

/* ---- one attack ---- */

struct result {
	double ratio, least, most;	/* throughput with the attack on the server, and on the decoy */
	double per_s;			/* honest messages with that on the decoy */
	uint64_t first_us, stranger_us;	/* of a first message, known and stranger; UINT64_MAX: none came */
	unsigned grown_kib, files, lines;
	double attacked_s;		/* time under attack */
	uint64_t strokes, stolen, failed, arrived;
};

static uint64_t first_in_child(enum kind kind, bool known)
{
	uint64_t us = UINT64_MAX;
	int fds[2], status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return us;
	pid = start();
	if (!pid) {
		if (table)
			on_processor(1);
		alarm(known ? PATIENCE_MS / 1000 : STRANGER_S);
		us = first_message(kind, known);
		_exit(write(fds[1], &us, sizeof(us)) != sizeof(us));
	}
	close(fds[1]);
	if (read(fds[0], &us, sizeof(us)) != sizeof(us))
		us = UINT64_MAX;
	close(fds[0]);
	waitpid(pid, &status, 0);
	return us;
}

static double per_second(void)
{
	uint64_t begun_us = now_us(), begun = GET(done);

	nap_us(stretch_us);
	return (GET(done) - begun) * 1e6 / (now_us() - begun_us);
}

/* So many honest messages more are delivered. Returns how many, in time. */
static uint64_t arrive(uint64_t cnt)
{
	uint64_t end_us = now_us() + PATIENCE_MS * 1000ULL, begun = GET(done);

	while (GET(done) < begun + cnt && now_us() < end_us)
		nap_us(1000);
	return GET(done) - begun;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *) a, y = *(const double *) b;

	return (x > y) - (x < y);
}

static void compare(const struct raid *raid, struct result *res)
{
	double ratio[PAIRS], without[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		uint64_t begun_us;

		arrive(100);
		start_attack(raid, decoy_page);
		without[i] = per_second();
		end_attack();
		arrive(100);
		start_attack(raid, page);
		begun_us = now_us();
		ratio[i] = per_second() / without[i];
		res->files = files_of(server) > res->files ? files_of(server) : res->files;
		if (i < PAIRS - 1)
			end_attack();
		res->attacked_s += (now_us() - begun_us) / 1e6;
	}
	qsort(ratio, PAIRS, sizeof(*ratio), by_value);
	qsort(without, PAIRS, sizeof(*without), by_value);
	res->ratio = ratio[PAIRS / 2];
	res->least = ratio[0];
	res->most = ratio[PAIRS - 1];
	res->per_s = without[PAIRS / 2];
}

static struct result attack(const struct raid *raid)
{
	struct result res = { .first_us = UINT64_MAX, .stranger_us = UINT64_MAX };
	unsigned before_kib, files;
	uint64_t begun_us;

	memset(page, 0, sizeof(*page));
	memset(decoy_page, 0, sizeof(*decoy_page));
	log_fd = memfd_create("log", MFD_CLOEXEC);
	start_servers(raid);
	client = start_client(raid);
	arrive(ENOUGH);
	decoy_page->honest = page->honest;
	before_kib = memory_kib(server, "VmRSS:");
	if (table)
		compare(raid, &res);
	else
		start_attack(raid, page);
	begun_us = now_us();
	res.arrived = arrive(ENOUGH);
	if (!plain)
		res.first_us = first_in_child(raid->kind, true);
	if (raid->kind <= RXM && table && !plain)
		res.stranger_us = first_in_child(raid->kind, false);
	res.attacked_s += (now_us() - begun_us) / 1e6;
	files = files_of(server);
	res.files = files > res.files ? files : res.files;
	res.grown_kib = memory_kib(server, "VmHWM:") - before_kib;
	res.lines = log_lines_cnt();
	res.strokes = raid->run ? GET(strokes) : GET(children);
	res.stolen = GET(stolen);
	res.failed = GET(failed);
	end_attack();
	stop(&client);
	stop(&server);
	stop(&decoy);
	close(log_fd);
	return res;
}

/* ---- what is said of it ---- */

static const char *const kind_names[KINDS] = { "tcp RDM", "tcp;ofi_rxm", "tcp MSG", "udp" };

static void print_time(uint64_t us)
{
	if (us == UINT64_MAX)
		printf(" | -");
	else
		printf(" | %.1f ms", us / 1000.0);
}

static void print_row(const struct raid *raid, const struct result *res)
{
	printf("| %s | %s, %s | %.2f (%.2f to %.2f)", raid->name, kind_names[raid->kind], raid->what, res->ratio,
	       res->least, res->most);
	print_time(res->first_us);
	print_time(res->stranger_us);
	printf(" | %.1f of %u MiB | %u of %u | %u | %.0f |\n", res->grown_kib / 1024.0, raid->memory_mib, res->files,
	       raid->files * 7 / 8 + OWN_FILES, res->lines, res->strokes / res->attacked_s);
	fflush(stdout);
}

static int check(const char *raid, const char *what, bool good)
{
	if (!good)
		printf("# %s: %s\n", raid, what);
	return !good;
}

/* What is counted. The bounds are those of fi_tcp(7). */
static int judge(const struct raid *raid, const struct result *res)
{
	int faults = 0;

	faults += check(raid->name, "honest messages do not arrive", res->arrived >= ENOUGH);
	faults += check(raid->name, "operations of the honest client have failed", !res->failed);
	faults += check(raid->name, "the first message of a peer does not arrive", res->first_us != UINT64_MAX);
	faults += check(raid->name, "too much memory", res->grown_kib <= raid->memory_mib * 1024);
	faults += check(raid->name, "too many descriptors", res->files <= raid->files * 7 / 8 + OWN_FILES);
	faults += check(raid->name, "too many lines of log", res->lines <= LINES_MAX);
	faults += check(raid->name, "a connection was stolen", !res->stolen);
	faults += check(raid->name, "there was no attack", !raid->run || res->strokes);
	return faults;
}

/* In a process of its own, so that this one forks without the library. */
static bool is_built_here(enum kind kind)
{
	pid_t pid = start();
	int status = 0;

	if (!pid)
		_exit(!is_built(kind));
	waitpid(pid, &status, 0);
	return !status;
}

static bool chosen(const struct raid *raid, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (!strcmp(argv[i], raid->name))
			return true;
	}
	return !argc;
}

int main(int argc, char **argv)
{
	struct rlimit files;
	int faults = 0, nr = 0, at = 1;

	for (; at < argc && argv[at][0] == '-'; at++) {
		plain |= !strcmp(argv[at], "--floor");
		table |= plain || !strcmp(argv[at], "--table");
		if (!strcmp(argv[at], "--seconds") && at + 1 < argc)
			stretch_us = atof(argv[++at]) * 1e6;
	}
	argc -= at;
	argv += at;
	/* what comes over the network, not from this host */
	setenv("FI_TCP_LOCAL", "0", 0);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	page = mmap(NULL, 2 * sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		give_up("no shared page");
	decoy_page = page + 1;
	if (table)
		printf("| attack | | throughput | first message, known | stranger | memory | descriptors | lines | "
		       "strokes/s |\n"
		       "|---|---|---|---|---|---|---|---|---|\n");
	for (unsigned i = 0; i < raid_cnt; i++) {
		struct result res;
		int bad;

		if (!chosen(&raids[i], argc, argv) || (plain && !raids[i].plain))
			continue;
		if (raids[i].kind == RXM && !is_built_here(RXM)) {
			if (!table)
				printf("ok %d - %s # SKIP this build has no tcp;ofi_rxm\n", ++nr, raids[i].name);
			continue;
		}
		res = attack(&raids[i]);
		if (table)
			print_row(&raids[i], &res);
		bad = plain ? 0 : judge(&raids[i], &res);
		faults += bad;
		if (!table)
			printf("%sok %d - %s: %s\n", bad ? "not " : "", ++nr, raids[i].name, raids[i].what);
		fflush(stdout);
	}
	if (!table)
		printf("1..%d\n", nr);
	return faults > 0;
}
