/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Runs a program from the command line to the exit code, and measures: every size, with warm-up and clock. */
#include "pp.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "common.h"
#include "hist.h"
#include "json.h"

/* What the last pp_fail() has printed, without names of hosts: for the peer. */
static char failure[512];

int pp_fail(const struct pp *pp, int ret, const char *operation, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, operation);
	vsnprintf(text, sizeof(text), operation, ap);
	va_end(ap);
	util_err("%s%s%s: %s (%d)", text, pp->peer[0] ? ": peer " : "", pp->peer, fi_strerror(-ret), ret);
	snprintf(failure, sizeof(failure), "%s: %s (%d)", text, fi_strerror(-ret), ret);
	return ret;
}

void pp_debug(const struct pp *pp, const char *fmt, ...)
{
	va_list ap;

	if (!pp->opts->verbose)
		return;
	fprintf(stderr, "# ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* One message there and one back. The client begins. */
static int exchange(struct pp *pp, size_t size)
{
	int ret;

	if (pp->opts->server) {
		ret = pp_send(pp, size);
		return ret ? ret : pp_recv(pp, size);
	}
	ret = pp_recv(pp, size);
	return ret ? ret : pp_send(pp, size);
}

static int flush(struct pp *pp, size_t size)
{
	(void) size;
	return pp_flush(pp);
}

const struct pp_test pp_pingpong = {
	.transfers = 2,
	.latency = true,
	.step = exchange,
	.end = flush,
};

/* A line on a terminal that says how far a long measurement is. */
struct progress {
	uint64_t size, next_ns;         /* next_ns: when to write it again; UINT64_MAX: never */
	bool written;
};

#define PROGRESS_NS 1000000000
/* The clock is read for it in each of so many iterations. */
#define PROGRESS_STRIDE 256

static void progress_begin(const struct pp *pp, struct progress *progress, uint64_t size)
{
	bool wanted = isatty(STDERR_FILENO) && !pp->opts->json && !pp->opts->verbose;

	*progress = (struct progress) { .size = size, .next_ns = wanted ? util_now_ns() + PROGRESS_NS : UINT64_MAX };
}

/* done of all: iterations, or nanoseconds. */
static void progress_show(struct progress *progress, uint64_t done, uint64_t all)
{
	uint64_t now;

	if (progress->next_ns == UINT64_MAX)
		return;
	now = util_now_ns();
	if (now < progress->next_ns)
		return;
	fprintf(stderr, "\r%llu bytes: %u %% ", (unsigned long long) progress->size, (unsigned) (done * 100 / all));
	progress->next_ns = now + PROGRESS_NS;
	progress->written = true;
}

static void progress_end(const struct progress *progress)
{
	if (progress->written)
		fprintf(stderr, "\r%40s\r", "");
}

/* Run cnt iterations, and wait until they are complete at both ends. Unless `spread` is NULL, the time of one message
 * is added to it: for each iteration if test->latency is set, otherwise the mean over each window. */
static int iterate(struct pp *pp, const struct pp_test *test, size_t size, uint32_t cnt, struct hist *spread)
{
	uint32_t i, stride = test->latency ? 1 : pp->opts->window, left = stride;
	uint64_t last = util_now_ns(), now;
	struct progress progress;
	int ret;

	progress_begin(pp, &progress, size);
	for (i = 0; i < cnt; i++) {
		if (i % PROGRESS_STRIDE == PROGRESS_STRIDE - 1)
			progress_show(&progress, i, cnt);
		ret = test->step(pp, size);
		if (ret)
			return ret;
		if (!spread || --left)
			continue;
		now = util_now_ns();
		hist_add(spread, (now - last) / test->transfers / stride);
		last = now;
		left = stride;
	}
	progress_end(&progress);
	return test->end(pp, size);
}

#define ITERATIONS_DEFAULT 10
/* Of a size, if they are counted by time. */
#define MOST_ITERATIONS 0x20000000
/* The time of a warm-up, and the least time of a batch of iterations, if iterations are counted by time. */
#define WARMUP_NS 30000000
#define BATCH_NS 5000000

/* Run batches of iterations until limit_ns have passed. The client decides, and both ends agree on the next batch in
 * between, which is not measured. *batch is the first one, and afterwards the last one. */
static int iterate_for(struct pp *pp, const struct pp_test *test, struct pp_result *result, uint64_t limit_ns,
		       uint32_t *batch, bool spread)
{
	struct progress progress;
	uint64_t start, took;
	uint32_t next;
	int ret;

	progress_begin(pp, &progress, result->size);
	result->elapsed_ns = result->sent = 0;
	for (;;) {
		start = util_now_ns();
		ret = iterate(pp, test, result->size, *batch, spread ? &result->latency : NULL);
		took = util_now_ns() - start;
		if (ret)
			return ret;
		result->elapsed_ns += took;
		result->sent += *batch;
		next = took < BATCH_NS && *batch < MOST_ITERATIONS ? 2 * *batch : *batch;
		if (result->elapsed_ns >= limit_ns || result->sent > MOST_ITERATIONS)
			next = 0;
		ret = pp_meet_count(pp, &next);
		if (ret || !next)
			break;
		*batch = next;
		progress_show(&progress, result->elapsed_ns, limit_ns);
	}
	progress_end(&progress);
	return ret;
}

/* The processor time of all threads of this process so far. */
static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}

/* Warm up, and measure iterations: as many as fit the time of the options, or a given number. */
static int measure_size(struct pp *pp, const struct pp_test *test, struct pp_result *result, bool spread)
{
	const struct pp_opts *opts = pp->opts;
	uint64_t start, cpu;
	uint32_t batch = 1;
	int ret = 0;

	if (!opts->iterations && pp->met)
		ret = iterate_for(pp, test, result, WARMUP_NS, &batch, false);
	else if (opts->warmup)
		ret = iterate(pp, test, result->size, opts->warmup, NULL);
	if (ret)
		return ret;
	cpu = cpu_ns();
	start = util_now_ns();
	if (!opts->iterations && pp->met) {
		ret = iterate_for(pp, test, result, opts->time_ms * 1000000ULL, &batch, spread);
	} else {
		result->sent = opts->iterations ? opts->iterations : ITERATIONS_DEFAULT;
		ret = iterate(pp, test, result->size, result->sent, spread ? &result->latency : NULL);
		result->elapsed_ns = util_now_ns() - start;
	}
	result->cpu_ns = cpu_ns() - cpu;
	result->acked = result->sent;
	return ret;
}

/* Run one size. */
static int run_size(struct pp *pp, const struct pp_test *test, struct pp_result *result)
{
	const struct pp_opts *opts = pp->opts;
	int ret;

	hist_clear(&result->latency);
	ret = test->begin ? test->begin(pp, result->size) : 0;
	if (!ret)
		ret = pp_ctrl_sync(pp);
	if (!ret)
		ret = measure_size(pp, test, result, opts->stats && (test->latency || opts->window > 1));
	if (!ret && opts->check && test->check)
		ret = test->check(pp, result->size);
	return ret ? ret : pp_ctrl_exchange_count(pp, &result->acked);
}

/* Say which sizes are left out, if any: those from index i on. */
static void report_left_out(const struct pp *pp, size_t i)
{
	const struct pp_opts *opts = pp->opts;

	if (i < opts->size_cnt)
		util_err("%zu of the %zu sizes are left out, from %llu bytes on: this endpoint carries messages of %zu "
			 "bytes at most", opts->size_cnt - i, opts->size_cnt, (unsigned long long) opts->size[i],
			 pp->max_size);
}

/* Run every size that the endpoint allows, and print its result. */
static int run_sizes(struct pp *pp, const struct pp_test *test, struct json *json)
{
	const struct pp_opts *opts = pp->opts;
	struct pp_result result = { .transfers = test->transfers };
	size_t i;
	int ret;

	for (i = 0; i < opts->size_cnt && opts->size[i] <= pp->max_size; i++) {
		if (opts->size[i] < test->min_size)
			continue;
		result.size = opts->size[i];
		ret = run_size(pp, test, &result);
		if (ret)
			return ret;
		pp_report(pp, json, test, &result);
	}
	report_left_out(pp, i);
	return 0;
}

/* Run the test on the open objects. */
static int measure(struct pp *pp, const struct pp_test *test)
{
	struct json json;
	int ret = test->open ? test->open(pp) : 0;

	if (ret)
		return ret;
	pp_pin(pp);
	pp_report_begin(pp, &json, test);
	ret = run_sizes(pp, test, &json);
	if (!ret)
		ret = pp_finish(pp);
	pp_report_end(pp, &json, ret);
	return ret;
}

/* The exit code, if closing does not return. */
static volatile sig_atomic_t closing_code;

static void give_up(int number)
{
	static const char text[] = "closing did not end within the limit of -T: given up\n";

	(void) number;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(FI_EIO);
	_exit(closing_code);
}

void pp_closing(const struct pp *pp, int ret)
{
	closing_code = util_exit_code(ret ? ret : -FI_ETIMEDOUT);
	fflush(stdout);
	signal(SIGALRM, give_up);
	alarm((unsigned) pp->opts->wait_ms / 1000 + 1);
}

/* Open everything that is needed, run test or body (the other one is NULL), and close. */
static int run(const struct pp_opts *opts, bool whole, const struct pp_test *test, int (*body)(struct pp *pp))
{
	struct pp pp = { .opts = opts, .ctrl = -1 };
	int ret, close_ret;

	ret = opts->meet && !opts->server ? pp_find_provider(&pp) : 0;
	if (!ret)
		ret = pp_ctrl_open(&pp);
	if (ret)
		return ret;
	ret = pp_meet(&pp);
	if (!ret && whole)
		ret = pp_fabric_open(&pp);
	if (!ret)
		ret = test ? measure(&pp, test) : body(&pp);
	if (!ret && !test && whole)
		ret = pp_finish(&pp);
	if (ret && ret != -FI_ECONNRESET)
		pp_meet_tell(&pp, failure);
	pp_closing(&pp, ret);
	close_ret = pp_fabric_close(&pp);
	pp_ctrl_close(&pp);
	return ret ? ret : close_ret;
}

/* The exit code for the result of a run, after flushing the output. */
static int exit_code(int ret)
{
	if (fflush(stdout) || ferror(stdout)) {
		util_err("cannot write the results");
		return FI_EIO;
	}
	return util_exit_code(ret);
}

int pp_run(const struct pp_opts *opts, const struct pp_test *test)
{
	return exit_code(run(opts, true, test, NULL));
}

int pp_call(const struct pp_opts *opts, bool whole, int (*body)(struct pp *pp))
{
	return exit_code(run(opts, whole, NULL, body));
}
