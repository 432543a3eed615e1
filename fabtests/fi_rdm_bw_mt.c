/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_rdm_bw_mt: bandwidth of several threads, each with a domain, queue, address vector and endpoint of its own, RDM
 * endpoints. Thread n of the client sends to thread n of the server; with -g both ways at once. Objects are opened and
 * closed by the first thread; while the others run, it waits for them.
 */
#include "lib/ft.h"

#include <pthread.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "../util/json.h"

#define MAX_THREADS 64
#define DEFAULT_THREADS 2

/* From the command line. */
static uint32_t thread_cnt = DEFAULT_THREADS;
static bool both_ways;

/* One thread, and what it works with. */
struct worker {
	pthread_t thread;
	struct pp pp;
	size_t size;
	struct hist spread;             /* time of a message, the mean over each window */
	uint64_t last_ns;               /* when the window began */
	int ret;
};

static const struct util_opt own_options[] = {
	{ 0, NULL, NULL, "Threads: must be the same on both sides" },
	{ 'n', "threads", "NUMBER", "threads at each end (default: 2)" },
	{ 'g', "both-ways", NULL, "the server sends as well" },
	{ 0, NULL, NULL, NULL },
};

static int take(struct pp_opts *opts, int key, const char *arg)
{
	uint64_t value;
	int ret;

	(void) opts;
	if (key == 'g') {
		both_ways = true;
		return 0;
	}
	ret = util_parse_number("-n (threads)", arg, 1, MAX_THREADS, &value);
	thread_cnt = ret ? thread_cnt : (uint32_t) value;
	return ret;
}

/* Message number i is done: with the last one of a window, note what it took. */
static void note_time(struct worker *worker, uint32_t i)
{
	uint32_t window = worker->pp.opts->window;
	uint64_t now;

	if (window == 1 || (i + 1) % window)
		return;
	now = util_now_ns();
	hist_add(&worker->spread, (now - worker->last_ns) / window / (both_ways ? 2 : 1));
	worker->last_ns = now;
}

/* Every message out, every message in: the window is full both ways. */
static int exchange(struct worker *worker)
{
	struct pp *pp = &worker->pp;
	uint32_t i, cnt = pp->opts->iterations, window = pp->opts->window;
	size_t size = worker->size;
	int ret = 0;

	for (i = 0; i < cnt + window - 1 && !ret; i++) {
		if (i < cnt)
			ret = pp_send(pp, size);
		if (!ret && i >= window - 1) {
			ret = pp_recv(pp, size);
			note_time(worker, i - (window - 1));
		}
	}
	return ret ? ret : pp_flush(pp);
}

static int one_way(struct worker *worker)
{
	struct pp *pp = &worker->pp;
	uint32_t i;
	int ret = 0;

	for (i = 0; i < pp->opts->iterations && !ret; i++) {
		ret = ft_stream.step(pp, worker->size);
		note_time(worker, i);
	}
	return ret ? ret : ft_stream.end(pp, worker->size);
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	worker->last_ns = util_now_ns();
	worker->ret = (both_ways ? exchange : one_way)(worker);
	return NULL;
}

/* All threads exchange messages of one size. */
static int run_threads(struct worker *workers, size_t size)
{
	uint32_t i, started;
	int ret = 0;

	for (started = 0; started < thread_cnt && !ret; started++) {
		workers[started].size = size;
		hist_clear(&workers[started].spread);
		ret = pthread_create(&workers[started].thread, NULL, work, &workers[started]);
	}
	if (ret) {
		util_err("pthread_create: %s", fi_strerror(ret));
		started--;
		ret = -ret;
	}
	for (i = 0; i < started; i++) {
		pthread_join(workers[i].thread, NULL);
		ret = ret ? ret : workers[i].ret;
	}
	return ret;
}

static int run_size(struct pp *pp, struct worker *workers, size_t size, struct json *json)
{
	const struct pp_test shape = { .transfers = both_ways ? 2 : 1 };
	struct pp_result result = { .size = size, .transfers = shape.transfers };
	struct timespec cpu;
	uint64_t start;
	uint32_t i;
	int ret;

	ret = pp_ctrl_sync(pp);
	if (ret)
		return ret;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	result.cpu_ns = 0 - ((uint64_t) cpu.tv_sec * 1000000000 + (uint64_t) cpu.tv_nsec);
	start = util_now_ns();
	ret = run_threads(workers, size);
	if (ret)
		return ret;
	result.elapsed_ns = util_now_ns() - start;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	result.cpu_ns += (uint64_t) cpu.tv_sec * 1000000000 + (uint64_t) cpu.tv_nsec;
	for (i = 0; i < thread_cnt; i++)
		hist_merge(&result.latency, &workers[i].spread);
	result.sent = result.acked = pp->opts->iterations * thread_cnt;
	ret = pp_ctrl_exchange_count(pp, &result.acked);
	if (!ret)
		pp_report(pp, json, &shape, &result);
	return ret;
}

/* Open the endpoints of all threads, over the one control channel. */
static int open_workers(struct pp *pp, struct worker *workers)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; i < thread_cnt && !ret; i++) {
		workers[i].pp = (struct pp) { .opts = pp->opts, .ctrl = pp->ctrl, .carried = pp->carried };
		ret = pp_fabric_open(&workers[i].pp);
	}
	return ret;
}

static int run_sizes(struct pp *pp, struct worker *workers)
{
	const struct pp_opts *opts = pp->opts;
	struct pp *first = &workers[0].pp;
	struct json json;
	int ret = 0;
	size_t i;

	pp_report_begin(first, &json, &ft_stream);
	for (i = 0; i < opts->size_cnt && opts->size[i] <= first->max_size && !ret; i++)
		ret = run_size(first, workers, opts->size[i], &json);
	for (i = 0; i < thread_cnt && !ret; i++)
		ret = pp_finish(&workers[i].pp);
	pp_report_end(first, &json, ret);
	return ret;
}

static int body(struct pp *pp)
{
	struct worker *workers = calloc(thread_cnt, sizeof(*workers));
	int ret, close_ret;
	uint32_t i;

	if (!workers)
		return pp_fail(pp, -FI_ENOMEM, "threads");
	ret = open_workers(pp, workers);
	if (!ret)
		ret = run_sizes(pp, workers);
	for (i = 0; i < thread_cnt; i++) {
		close_ret = workers[i].pp.opts ? pp_fabric_close(&workers[i].pp) : 0;
		ret = ret ? ret : close_ret;
	}
	free(workers);
	return ret;
}

int main(int argc, char **argv)
{
	static const struct ft_program program = {
		.about = "Bandwidth of several threads, each with an endpoint of its own, RDM endpoints.",
		.ep_type = FI_EP_RDM,
		.windowed = true,
		.bare = true,
		.json = true,
		.options = own_options,
		.take = take,
		.body = body,
	};

	return ft_main(argc, argv, &program);
}
