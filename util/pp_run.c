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

int pp_fail(const struct pp *pp, int ret, const char *operation, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, operation);
	vsnprintf(text, sizeof(text), operation, ap);
	va_end(ap);
	util_err("%s%s%s: %s (%d)", text, pp->peer[0] ? ": peer " : "", pp->peer, fi_strerror(-ret), ret);
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

/* Run cnt iterations, and wait until they are complete at both ends. Unless `spread` is NULL, the time of one message
 * is added to it: for each iteration if test->latency is set, otherwise the mean over each window. */
static int iterate(struct pp *pp, const struct pp_test *test, size_t size, uint32_t cnt, struct hist *spread)
{
	uint32_t i, stride = test->latency ? 1 : pp->opts->window, left = stride;
	uint64_t last = util_now_ns(), now;
	int ret;

	for (i = 0; i < cnt; i++) {
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
	return test->end(pp, size);
}

/* The processor time of all threads of this process so far. */
static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}

/* Run all iterations of one size: warm-up first, then measured. */
static int run_size(struct pp *pp, const struct pp_test *test, struct pp_result *result)
{
	const struct pp_opts *opts = pp->opts;
	bool spread = opts->stats && (test->latency || opts->window > 1);
	uint64_t start, cpu;
	int ret;

	hist_clear(&result->latency);
	result->sent = result->acked = opts->iterations;
	ret = test->begin ? test->begin(pp, result->size) : 0;
	if (!ret)
		ret = pp_ctrl_sync(pp);
	if (!ret && opts->warmup)
		ret = iterate(pp, test, result->size, opts->warmup, NULL);
	if (ret)
		return ret;
	cpu = cpu_ns();
	start = util_now_ns();
	ret = iterate(pp, test, result->size, opts->iterations, spread ? &result->latency : NULL);
	result->elapsed_ns = util_now_ns() - start;
	result->cpu_ns = cpu_ns() - cpu;
	if (!ret && opts->check && test->check)
		ret = test->check(pp, result->size);
	return ret ? ret : pp_ctrl_exchange_count(pp, &result->acked);
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
	return 0;
}

/* Run the test on the open objects. */
static int measure(struct pp *pp, const struct pp_test *test)
{
	struct json json;
	int ret = test->open ? test->open(pp) : 0;

	if (ret)
		return ret;
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

	ret = pp_ctrl_open(&pp);
	if (ret)
		return ret;
	ret = whole ? pp_fabric_open(&pp) : 0;
	if (!ret)
		ret = test ? measure(&pp, test) : body(&pp);
	if (!ret && !test && whole)
		ret = pp_finish(&pp);
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
