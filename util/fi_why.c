/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_why: explains what waits in the processes of this host that use libfabric: on whom, since when, and who has to do
 * what. The sentences are made by the library (weft/stats.h); this program finds and reads the pages.
 */
#include "common.h"
#include "pages.h"
#include "why_prom.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

enum {
	EXIT_FINE = 0,			/* nothing is stuck */
	EXIT_STUCK = 1,
	EXIT_WRONG = 2,			/* wrong use */
	EXIT_NO_PAGE = 3,		/* nothing was read */
};

enum {
	OPT_ALL = 'a',
	OPT_AFTER = 't',
	OPT_FILE = 'f',
	OPT_JSON = 'j',
	OPT_PROM = 'p',
	OPT_HELP = 'h',
};

#define AFTER_MS	5000
#define LOOK_AGAIN_NS	200000000

static const char about[] = "Explain what waits in processes that use libfabric: on whom, since when, and who has to\n"
			    "do what. Exit status: 0 nothing is stuck, 1 something is, 2 wrong use, 3 no page was "
			    "read.";

static const char *const usage[] = { "PID...", "--all", "--file FILE...", NULL };

static const struct util_opt options[] = {
	{ 0, NULL, NULL, "Options:" },
	{ OPT_ALL, "all", NULL, "explain all processes of the user that run on this host" },
	{ OPT_AFTER, "after", "MS", "count what has waited for so many milliseconds as stuck (default: 5000)" },
	{ OPT_FILE, "file", NULL, "the arguments are files of pages, for instance copied from another host" },
	{ OPT_JSON, "json", NULL, "print a list of objects" },
	{ OPT_PROM, "prom", NULL, "print all counters as OpenMetrics text" },
	{ OPT_HELP, "help", NULL, "print this help and exit" },
	{ 0, NULL, NULL, NULL },
};

struct request {
	bool all, file, prom;
	enum fi_stats_form form;
	uint64_t after_ns;
	struct fid *fid;
	struct fi_ops_stats *ops;
};

static int open_ops(struct request *request)
{
	int ret = fi_open(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), "stats", NULL, 0, 0, &request->fid, NULL);

	if (!ret)
		ret = fi_open_ops(request->fid, FI_STATS_OPS_1, 0, (void **) &request->ops, NULL);
	if (ret)
		util_err("this libfabric has no pages: %s", fi_strerror(-ret));
	return ret;
}

/* ---- which pages ---- */

static void swap_pages(struct page *a, struct page *b)
{
	struct page copy = *a;

	*a = *b;
	*b = copy;
}

/* True for a page of the process with this pid that runs; of older ones that have had it, only if there is none. */
static bool is_chosen(const struct pages *pages, const struct page *page, pid_t pid)
{
	if (page->pid != pid || !page->source.page)
		return false;
	for (size_t i = 0; i < pages->cnt && !page->source.proc_state; i++)
		if (pages->list[i].pid == pid && pages->list[i].source.page && pages->list[i].source.proc_state)
			return false;
	return true;
}

/* Move the pages of the processes in args to the front, each as it is now. Returns their number. */
static size_t choose(struct pages *pages, char **args)
{
	size_t cnt = 0;

	for (; *args; args++) {
		size_t before = cnt;
		uint64_t pid;

		if (util_parse_number("PID", *args, 1, INT32_MAX, &pid))
			continue;
		for (size_t i = cnt; i < pages->cnt; i++)
			if (is_chosen(pages, &pages->list[i], (pid_t) pid))
				swap_pages(&pages->list[cnt++], &pages->list[i]);
		if (cnt == before)
			pages_tell_missing(pages, (pid_t) pid);
	}
	return cnt;
}

/* Move the pages of processes that live to the front. Returns their number. */
static size_t choose_living(struct pages *pages, size_t readable)
{
	size_t cnt = 0;

	for (size_t i = 0; i < readable; i++)
		if (pages->list[i].source.proc_state && !pages->list[i].left)
			swap_pages(&pages->list[cnt++], &pages->list[i]);
	return cnt;
}

static bool read_files(struct pages *pages, char **args)
{
	*pages = (struct pages) { .list = NULL };
	for (; *args; args++) {
		struct page page = { .pid = 0, .source.proc_state = 'S' };
		struct page *list;

		if (!page_read(&page, *args)) {
			util_err("%s: %s", *args, errno == EINVAL ? "it is no page" : strerror(errno));
			continue;
		}
		snprintf(page.path, sizeof(page.path), "%s", *args);
		list = realloc(pages->list, (pages->cnt + 1) * sizeof(*list));
		if (!list)
			return false;
		list[pages->cnt++] = page;
		pages->list = list;
	}
	return true;
}

/* Read twice: a program that looks often may have done so between two marks that it leaves. */
static bool read_twice(struct pages *pages)
{
	const struct timespec again = { .tv_nsec = LOOK_AGAIN_NS };
	struct pages before;
	bool ok;

	if (!pages_read(&before, 0))
		return false;
	nanosleep(&again, NULL);
	ok = pages_read(pages, 0);
	if (ok)
		pages_note_progress(pages, &before);
	pages_free(&before);
	return ok;
}

/* ---- the answer ---- */

static char *explain(const struct request *request, const struct pages *pages, size_t cnt,
		     struct fi_stats_verdict *verdict)
{
	struct fi_stats_source *source = calloc(pages->cnt + 1, sizeof(*source));
	char *text = NULL;
	size_t len, used = 0;

	for (size_t i = 0; source && i < pages->cnt; i++)
		if (pages->list[i].source.page && (i < cnt || !pages->list[i].left))
			source[used++] = pages->list[i].source;
	if (source) {
		len = request->ops->explain(request->fid, source, used, cnt, request->after_ns, request->form, NULL, 0,
					    verdict);
		text = malloc(len + 1);
		if (text)
			request->ops->explain(request->fid, source, used, cnt, request->after_ns, request->form, text,
					      len + 1, verdict);
	}
	free(source);
	return text;
}

/* What is to be said about the pages themselves. */
static void tell_pages(const struct pages *pages, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (!pages->list[i].source.proc_state)
			printf("pid %d has ended; this is what it left\n", (int) pages->list[i].pid);
		else if (pages->list[i].left)
			printf("pid %d has called exec() since; this is what the program before has left\n",
			       (int) pages->list[i].pid);
	}
}

static int answer(const struct request *request, struct pages *pages, size_t cnt)
{
	struct fi_stats_verdict verdict = { 0 };
	char *text = explain(request, pages, cnt, &verdict);

	if (!text) {
		util_err("no memory");
		return EXIT_NO_PAGE;
	}
	if (request->prom) {
		why_prom(stdout, pages, cnt, &verdict);
	} else if (request->form == FI_STATS_FORM_JSON) {
		fputs(text, stdout);
	} else {
		tell_pages(pages, cnt);
		fputs(text, stdout);
		if (!verdict.pending && !verdict.bad && !verdict.stuck)
			printf("nothing waits\n");
	}
	free(text);
	return verdict.stuck || verdict.cycles ? EXIT_STUCK : EXIT_FINE;
}

static int run(struct request *request, char **args)
{
	struct pages pages;
	size_t cnt = 0, readable = 0;
	int ret = EXIT_NO_PAGE;

	if (!(request->file ? read_files(&pages, args) : read_twice(&pages))) {
		util_err("no memory");
		return EXIT_NO_PAGE;
	}
	for (size_t i = 0; i < pages.cnt; i++)
		if (pages.list[i].source.page)
			swap_pages(&pages.list[readable++], &pages.list[i]);
	cnt = request->file ? readable : request->all ? choose_living(&pages, readable) : choose(&pages, args);
	if (cnt)
		ret = answer(request, &pages, cnt);
	else if (request->all)
		util_err("there is no page of this user%s%s",
			 *pages.denied ? "; not read, as it belongs to another: " : "", pages.denied);
	pages_free(&pages);
	return ret;
}

static int wrong_use(void)
{
	util_bad_usage();
	return EXIT_WRONG;
}

int main(int argc, char **argv)
{
	struct request request = { .after_ns = AFTER_MS * UINT64_C(1000000) };
	uint64_t ms;
	int opt, ret;

	util_init(argv[0]);
	while ((opt = util_getopt(argc, argv, options)) != -1) {
		switch (opt) {
		case OPT_ALL:
			request.all = true;
			break;
		case OPT_AFTER:
			if (util_parse_number("--after", optarg, 0, 1000000000, &ms))
				return wrong_use();
			request.after_ns = ms * 1000000;
			break;
		case OPT_FILE:
			request.file = true;
			break;
		case OPT_JSON:
			request.form = FI_STATS_FORM_JSON;
			break;
		case OPT_PROM:
			request.prom = true;
			break;
		case OPT_HELP:
			util_help(stdout, usage, about, options);
			return 0;
		default:
			return wrong_use();
		}
	}
	if (request.all != (optind == argc))
		return wrong_use();
	ret = open_ops(&request) ? EXIT_NO_PAGE : run(&request, argv + optind);
	if (request.fid)
		fi_close(request.fid);
	return ret;
}
