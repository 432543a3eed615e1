/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Results, as rows for people and as JSON for programs. */
#include "pp.h"

#include <stdio.h>

#include <rdma/fi_errno.h>

#include "common.h"
#include "hist.h"
#include "json.h"

/* Format 1536 as "1.5k", like upstream's program. The text is in one of several static buffers, so that a line can have
 * more than one. */
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

/* The values of both forms of output. Rows count bytes in powers of 1024; JSON has bytes, and MB of 10^6 bytes. A
 * transfer is one message in one direction. */
static uint64_t result_total(const struct pp_result *result)
{
	return result->size * result->sent * result->transfers;
}

static double result_usec_per_transfer(const struct pp_result *result)
{
	return (double) result->elapsed_ns / 1000 / result->sent / result->transfers;
}

static double result_mib_per_second(const struct pp_result *result)
{
	return result->elapsed_ns ? (double) result_total(result) * 1e9 / 1048576 / (double) result->elapsed_ns : 0;
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

static double result_cpu_percent(const struct pp_result *result)
{
	return result->elapsed_ns ? (double) result->cpu_ns * 100 / (double) result->elapsed_ns : 0;
}

static void print_header(const struct pp *pp, bool latency)
{
	printf("%-8s%-8s%-9s%-10s%9s%11s%13s%13s", "bytes", "#sent", "#ack", "total", "time", "MiB/sec", "usec/xfer",
	       "Mxfers/sec");
	if (pp->opts->cpu)
		printf("%7s", "cpu%");
	if (latency)
		printf("%10s%10s", percentiles[0].name, percentiles[1].name);
	if (latency && pp->opts->extremes)
		printf("%10s%10s", "min", "max");
	putchar('\n');
	fflush(stdout);
}

static void print_row(const struct pp *pp, const struct pp_result *result)
{
	char acked[16], elapsed[24];
	double usec = result_usec_per_transfer(result);

	snprintf(acked, sizeof(acked), "%s%u", result->acked == result->sent ? "=" : "", result->acked);
	snprintf(elapsed, sizeof(elapsed), "%.2fs", (double) result->elapsed_ns / 1e9);
	printf("%-8s%-8u%-9s%-10s%9s%11.2f%13.2f%13.4f", short_number(result->size), result->sent, acked,
	       short_number(result_total(result)), elapsed, result_mib_per_second(result), usec,
	       usec > 0 ? 1 / usec : 0);
	if (pp->opts->cpu)
		printf("%7.0f", result_cpu_percent(result));
	if (result->latency.cnt)
		printf("%10.2f%10.2f", percentile_usec(result, 0), percentile_usec(result, 1));
	if (result->latency.cnt && pp->opts->extremes)
		printf("%10.2f%10.2f", (double) result->latency.min / 1000, (double) result->latency.max / 1000);
	putchar('\n');
	fflush(stdout);
}

static void add_result(const struct pp *pp, struct json *json, const struct pp_test *test,
		       const struct pp_result *result)
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
	if (pp->opts->cpu)
		json_real(json, "cpu_percent", result_cpu_percent(result));
	if (!result->latency.cnt) {
		json_close(json, '}');
		return;
	}
	json_open(json, test->latency ? "latency_usec" : "window_usec_per_transfer", '{');
	json_real(json, "min", (double) result->latency.min / 1000);
	for (i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++)
		json_real(json, percentiles[i].name, percentile_usec(result, i));
	json_real(json, "max", (double) result->latency.max / 1000);
	json_close(json, '}');
	json_close(json, '}');
}

void pp_report_begin(const struct pp *pp, struct json *json, const struct pp_test *test)
{
	const struct fi_info *info = pp->info;

	if (!pp->opts->json) {
		print_header(pp, pp->opts->stats && (test->latency || pp->opts->window > 1));
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
	if (pp->opts->window > 1)
		json_number(json, "window", pp->opts->window);
	json_string(json, "data_check", pp->opts->check ? "yes" : "no");
	json_open(json, "results", '[');
}

void pp_report(const struct pp *pp, struct json *json, const struct pp_test *test, const struct pp_result *result)
{
	if (pp->opts->json)
		add_result(pp, json, test, result);
	else
		print_row(pp, result);
}

/* An incomplete list is marked. */
void pp_report_end(const struct pp *pp, struct json *json, int ret)
{
	if (!pp->opts->json)
		return;
	json_close(json, ']');
	json_string(json, "error", ret ? fi_strerror(-ret) : NULL);
	json_close(json, '}');
}
