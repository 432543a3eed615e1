/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_top: the pages of the processes of this host that use libfabric, live: in a terminal (top_screen.c), or as lines.
 */
#include "common.h"
#include "top_screen.h"
#include "top_watch.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

enum {
	EXIT_FINE = 0,
	EXIT_FAILED = 1,		/* no memory, or the output cannot be written */
	EXIT_WRONG = 2,			/* wrong use */
	EXIT_NO_PAGE = 3,		/* no process that was asked for has a page */
};

enum {
	OPT_ALL = 'a',
	OPT_BATCH = 'b',
	OPT_DELAY = 'd',
	OPT_COUNT = 'n',
	OPT_REVERSE = 'r',
	OPT_SORT = 's',
	OPT_VIEW = 'v',
	OPT_HELP = 'h',
	OPT_VERSION = 256,
};

#define DELAY_MS	1000
#define DELAY_MIN_MS	100
#define DELAY_MAX_MS	3600000
#define TITLES_EVERY	20		/* lines of sums */

static const char about[] =
	"Show what processes that use libfabric send and receive, and what waits: a line for each peer.\n"
	"Where the output is no terminal, print a line each second with the sums of all.\n"
	"Exit status: 0 fine, 1 failure, 2 wrong use, 3 no process that was asked for has a page.";

static const char *const usage[] = { "[OPTIONS] [--all]", "[OPTIONS] PID...", NULL };

static const struct util_opt options[] = {
	{ 0, NULL, NULL, "Options:" },
	{ OPT_ALL, "all", NULL, "show all processes of the user that run on this host (default)" },
	{ OPT_BATCH, "batch", NULL, "use no terminal: print the whole table after each reading, with exact\nnumbers" },
	{ OPT_DELAY, "delay", "SECONDS", "time between two readings, 0.1 to 3600 (default: 1)" },
	{ OPT_COUNT, "count", "COUNT", "end after so many readings with rates (default: without end)" },
	{ OPT_SORT, "sort", "KEY", "sort by pid, peer, ops, bytes, queue, kept, errors or waits\n(default: bytes)" },
	{ OPT_REVERSE, "reverse", NULL, "sort in reverse order" },
	{ OPT_VIEW, "view", "WHAT", "a line for each of: processes, endpoints, peers (default: peers)" },
	{ OPT_HELP, "help", NULL, "print this help and exit" },
	{ OPT_VERSION, "version", NULL, "print the version and exit" },
	{ 0, NULL, NULL, NULL },
};

struct request {
	struct top_watch watch;
	bool all, batch;
	pid_t *pids;			/* owned */
};

/* ---- lines ---- */

static void put_line(const struct top_layout *layout, const struct top_row *row, const char *before)
{
	char line[1024];

	top_line(line, sizeof(line), layout, row);
	printf("%s%s\n", before, line);
}

/* The time of the day, in buf. */
static const char *clock_text(char *buf, size_t len)
{
	time_t now = time(NULL);
	struct tm tm;

	if (!localtime_r(&now, &tm) || !strftime(buf, len, "%H:%M:%S", &tm))
		buf[0] = 0;
	return buf;
}

/* The line of sums. Columns keep their width from one line to the next, if they can. */
static void put_sums(const struct top_watch *watch, uint64_t number)
{
	struct top_layout layout;
	char clock[16];

	top_layout(&layout, &watch->top, TOP_SUM, false);
	if (number % TITLES_EVERY == 0)
		put_line(&layout, NULL, "TIME     ");
	clock_text(clock, sizeof(clock));
	strcat(clock, " ");
	put_line(&layout, &watch->top.sum, clock);
}

/* All rows, with an empty line behind them. */
static void put_table(const struct top_watch *watch)
{
	struct top_layout layout;

	top_layout(&layout, &watch->top, watch->view, true);
	put_line(&layout, NULL, "");
	for (size_t i = 0; i < watch->top.cnt; i++)
		put_line(&layout, &watch->top.row[i], "");
	printf("\n");
}

static void sleep_until(uint64_t ns)
{
	const struct timespec at = { .tv_sec = (time_t) (ns / 1000000000), .tv_nsec = (long) (ns % 1000000000) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		continue;
}

/* Print until all processes that were asked for have ended. The first reading has been made. */
static int print_lines(const struct request *request, struct top_watch *watch)
{
	uint64_t next = watch->now_ns;

	for (uint64_t number = 0; !watch->readings || number < watch->readings; number++) {
		/* a reading that came late does not make the following ones come early */
		next += watch->delay_ms * 1000000;
		if (next < watch->now_ns)
			next = watch->now_ns;
		sleep_until(next);
		if (!top_watch_read(watch)) {
			util_err("no memory");
			return EXIT_FAILED;
		}
		if (request->batch)
			put_table(watch);
		else
			put_sums(watch, number);
		if (fflush(stdout) || ferror(stdout)) {
			util_err("cannot write the output");
			return EXIT_FAILED;
		}
		if (watch->pids_cnt && !watch->living)
			break;
	}
	return EXIT_FINE;
}

/* ---- the command line ---- */

static int parse_delay(const char *text, uint64_t *ms)
{
	char *end;
	double seconds;

	errno = 0;
	seconds = strtod(text, &end);
	if (end == text || *end || errno || !(seconds * 1000 >= DELAY_MIN_MS && seconds * 1000 <= DELAY_MAX_MS)) {
		util_err("--delay is '%s': a number of seconds from 0.1 to 3600", text);
		return -FI_EINVAL;
	}
	*ms = (uint64_t) (seconds * 1000 + 0.5);
	return 0;
}

/* One of cnt names, of which *choice is the number then. */
static int parse_name(const char *option, const char *text, const char *const *names, int cnt, int *choice)
{
	for (int i = 0; i < cnt; i++) {
		if (!strcmp(text, names[i])) {
			*choice = i;
			return 0;
		}
	}
	util_err("%s is '%s': it is one of those that --help names", option, text);
	return -FI_EINVAL;
}

static int parse_pids(struct request *request, char **args, size_t cnt)
{
	uint64_t pid;

	request->pids = calloc(cnt + 1, sizeof(*request->pids));
	if (!request->pids)
		return -FI_ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		if (util_parse_number("PID", args[i], 1, INT32_MAX, &pid))
			return -FI_EINVAL;
		request->pids[i] = (pid_t) pid;
	}
	request->watch.pids = request->pids;
	request->watch.pids_cnt = cnt;
	return 0;
}

/* 0, or the option is wrong, which was reported. */
static int take_option(struct request *request, int key)
{
	struct top_watch *watch = &request->watch;
	int choice = 0, ret;

	switch (key) {
	case OPT_ALL:
		request->all = true;
		return 0;
	case OPT_BATCH:
		request->batch = true;
		return 0;
	case OPT_DELAY:
		return parse_delay(optarg, &watch->delay_ms);
	case OPT_COUNT:
		return util_parse_number("--count", optarg, 1, UINT32_MAX, &watch->readings);
	case OPT_SORT:
		ret = parse_name("--sort", optarg, top_key_names, TOP_KEYS, &choice);
		watch->key = choice;
		return ret;
	case OPT_REVERSE:
		watch->reverse = true;
		return 0;
	case OPT_VIEW:
		ret = parse_name("--view", optarg, top_view_names, TOP_SUM, &choice);
		watch->view = choice;
		return ret;
	default:
		return -FI_EINVAL;
	}
}

static void show_version(void)
{
	printf("fi_top: %d.%d (%s)\n", FI_MAJOR_VERSION, FI_MINOR_VERSION, WEFT_VERSION);
}

static int run(struct request *request)
{
	struct top_watch *watch = &request->watch;

	if (!top_watch_read(watch)) {
		util_err("no memory");
		return EXIT_FAILED;
	}
	if (watch->pids_cnt && !watch->cnt) {
		for (size_t i = 0; i < watch->pids_cnt; i++)
			pages_tell_missing(&watch->now, watch->pids[i]);
		return EXIT_NO_PAGE;
	}
	if (request->batch || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return print_lines(request, watch);
	return top_screen(watch) ? EXIT_FAILED : EXIT_FINE;
}

int main(int argc, char **argv)
{
	struct request request = { .watch = { .delay_ms = DELAY_MS, .view = TOP_PEERS, .key = TOP_BY_BYTES } };
	int key, ret = EXIT_WRONG;

	util_init(argv[0]);
	while ((key = util_getopt(argc, argv, options)) != -1) {
		if (key == OPT_HELP) {
			util_help(stdout, usage, about, options);
			return EXIT_FINE;
		}
		if (key == OPT_VERSION) {
			show_version();
			return EXIT_FINE;
		}
		if (take_option(&request, key))
			goto wrong;
	}
	if (request.all && optind < argc) {
		util_err("--all and PIDs exclude each other");
		goto wrong;
	}
	if (parse_pids(&request, argv + optind, (size_t) (argc - optind)))
		goto wrong;
	ret = run(&request);
	goto done;
wrong:
	util_bad_usage();
done:
	top_watch_free(&request.watch);
	free(request.pids);
	return ret;
}
