/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The measurement: every size, with warm-up and clock, and its result as a row or as JSON. */
#include "pp.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* 1536 as "1.5k", as upstream's program does; in a static buffer of a few, so that a line can hold more than one. */
static const char *short_number(uint64_t value)
{
	static const char units[] = "kmgt";
	static char bufs[4][24];
	static unsigned next;
	char *buf = bufs[next++ % 4];
	double scaled = (double) value;
	int unit = -1;

	while (scaled >= 1024 && unit < 3) {
		scaled /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(buf, sizeof(bufs[0]), "%llu", (unsigned long long) value);
	else
		snprintf(buf, sizeof(bufs[0]), scaled - (double) (uint64_t) scaled < 0.05 ? "%.0f%c" : "%.1f%c", scaled,
			 units[unit]);
	return buf;
}

/* What both forms of output are made of. MB is 10^6 bytes; a transfer is one message in one direction. */
static uint64_t result_total(const struct pp_result *result)
{
	return result->size * result->sent * result->transfers;
}

static double result_usec_per_transfer(const struct pp_result *result)
{
	return (double) result->elapsed_ns / 1000 / result->sent / result->transfers;
}

static double result_mb_per_second(const struct pp_result *result)
{
	return result->elapsed_ns ? (double) result_total(result) * 1000 / (double) result->elapsed_ns : 0;
}

static const struct {
	const char *name;
	double share;
} percentiles[] = { { "p50", 0.5 }, { "p99", 0.99 } };

static double percentile_usec(const struct pp_result *result, size_t i)
{
	return (double) hist_percentile(&result->latency, percentiles[i].share) / 1000;
}

static void print_header(bool latency)
{
	printf("%-8s%-8s%-9s%-10s%9s%11s%13s%13s", "bytes", "#sent", "#ack", "total", "time", "MB/sec", "usec/xfer",
	       "Mxfers/sec");
	if (latency)
		printf("%12s%10s%10s%10s", "usec: min", percentiles[0].name, percentiles[1].name, "max");
	putchar('\n');
	fflush(stdout);
}

static void print_row(const struct pp_result *result)
{
	char acked[16], elapsed[24];
	double usec = result_usec_per_transfer(result);

	snprintf(acked, sizeof(acked), "%s%u", result->acked == result->sent ? "=" : "", result->acked);
	snprintf(elapsed, sizeof(elapsed), "%.2fs", (double) result->elapsed_ns / 1e9);
	printf("%-8s%-8u%-9s%-10s%9s%11.2f%13.2f%13.2f", short_number(result->size), result->sent, acked,
	       short_number(result_total(result)), elapsed, result_mb_per_second(result), usec,
	       usec > 0 ? 1 / usec : 0);
	if (result->latency.cnt)
		printf("%12.2f%10.2f%10.2f%10.2f", (double) result->latency.min / 1000, percentile_usec(result, 0),
		       percentile_usec(result, 1), (double) result->latency.max / 1000);
	putchar('\n');
	fflush(stdout);
}

static void add_result(struct json *json, const struct pp_result *result)
{
	size_t i;

	json_open(json, NULL, '{');
	json_number(json, "bytes", result->size);
	json_number(json, "sent", result->sent);
	json_number(json, "acked", result->acked);
	json_number(json, "total_bytes", result_total(result));
	json_real(json, "time_usec", (double) result->elapsed_ns / 1000);
	json_real(json, "mb_per_sec", result_mb_per_second(result));
	json_real(json, "usec_per_transfer", result_usec_per_transfer(result));
	if (!result->latency.cnt) {
		json_close(json, '}');
		return;
	}
	json_open(json, "latency_usec", '{');
	json_real(json, "min", (double) result->latency.min / 1000);
	for (i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++)
		json_real(json, percentiles[i].name, percentile_usec(result, i));
	json_real(json, "max", (double) result->latency.max / 1000);
	json_close(json, '}');
	json_close(json, '}');
}

/* What is said before the first result: what was used to get them. */
static void begin_results(const struct pp *pp, struct json *json, bool latency)
{
	const struct fi_info *info = pp->info;

	if (!pp->opts->json) {
		print_header(latency);
		return;
	}
	json_init(json, stdout);
	json_open(json, NULL, '{');
	json_string(json, "role", pp->opts->server ? "client" : "server");
	json_string(json, "peer", pp->peer);
	json_string(json, "provider", info->fabric_attr->prov_name);
	json_string(json, "fabric", info->fabric_attr->name);
	json_string(json, "domain", info->domain_attr->name);
	json_string(json, "type", util_tostr(&info->ep_attr->type, FI_TYPE_EP_TYPE));
	json_string(json, "mode", pp->opts->tagged ? "tagged" : "msg");
	json_string(json, "data_check", pp->opts->check ? "yes" : "no");
	json_open(json, "results", '[');
}

/* `ret` is what the run came to: an incomplete list says so. */
static void end_results(const struct pp *pp, struct json *json, int ret)
{
	if (!pp->opts->json)
		return;
	json_close(json, ']');
	json_string(json, "error", ret ? fi_strerror(-ret) : NULL);
	json_close(json, '}');
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

/* Some iterations, until they are complete at both ends. Latencies go to `latency`, unless that is NULL. */
static int iterate(struct pp *pp, const struct pp_test *test, size_t size, uint32_t cnt, struct hist *latency)
{
	uint64_t last = util_now_ns(), now;
	uint32_t i;
	int ret;

	for (i = 0; i < cnt; i++) {
		ret = test->step(pp, size);
		if (ret)
			return ret;
		if (!latency)
			continue;
		now = util_now_ns();
		hist_add(latency, (now - last) / test->transfers);
		last = now;
	}
	return test->end(pp, size);
}

/* All iterations of one size, those before the clock starts and those after. */
static int run_size(struct pp *pp, const struct pp_test *test, struct pp_result *result)
{
	const struct pp_opts *opts = pp->opts;
	uint64_t start;
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
	start = util_now_ns();
	ret = iterate(pp, test, result->size, opts->iterations,
		      opts->stats && test->latency ? &result->latency : NULL);
	result->elapsed_ns = util_now_ns() - start;
	if (!ret && opts->check && test->check)
		ret = test->check(pp, result->size);
	return ret ? ret : pp_ctrl_exchange_count(pp, &result->acked);
}

/* Run every size that the endpoint allows, and show its result. */
static int run_sizes(struct pp *pp, const struct pp_test *test, struct json *json)
{
	const struct pp_opts *opts = pp->opts;
	struct pp_result result = { .transfers = test->transfers };
	size_t i;
	int ret;

	for (i = 0; i < opts->size_cnt && opts->size[i] <= pp->max_size; i++) {
		result.size = opts->size[i];
		ret = run_size(pp, test, &result);
		if (ret)
			return ret;
		if (opts->json)
			add_result(json, &result);
		else
			print_row(&result);
	}
	return 0;
}

static int run(struct pp *pp, const struct pp_test *test)
{
	struct json json;
	int ret, close_ret;

	ret = pp_ctrl_open(pp);
	if (ret)
		return ret;
	ret = pp_fabric_open(pp);
	if (!ret && test->open)
		ret = test->open(pp);
	if (!ret) {
		begin_results(pp, &json, pp->opts->stats && test->latency);
		ret = run_sizes(pp, test, &json);
		if (!ret)
			ret = pp_finish(pp);
		end_results(pp, &json, ret);
	}
	close_ret = pp_fabric_close(pp);
	pp_ctrl_close(pp);
	return ret ? ret : close_ret;
}

int pp_run(const struct pp_opts *opts, const struct pp_test *test)
{
	struct pp pp = { .opts = opts, .ctrl = -1 };
	int code = -run(&pp, test);

	if (fflush(stdout) || ferror(stdout)) {
		util_err("cannot write the results");
		return FI_EIO;
	}
	return code;
}
