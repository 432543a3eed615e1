/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_pingpong: two processes pass messages back and forth, and tell how long it took. Either end may be upstream's
 * program. Here: the command line, the sizes, the exchange, the results. What the parts are is in pp.h.
 */
#include "pp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "common.h"
#include "hist.h"
#include "json.h"

#define DEFAULT_PORT 47592
#define DEFAULT_ITERATIONS 10
#define DEFAULT_WAIT_S 30
#define DEFAULT_ACCEPT_S 600
#define MAX_SIZE (1ULL << 40)

enum {
	OPT_STATS = 256,
	OPT_JSON,
	OPT_PORT_FILE,
};

static const char about[] = "Pass messages back and forth between two processes, and tell how long it took.";

static const char *const usage[] = { "[OPTIONS]                 start the server",
				     "[OPTIONS] SERVER_ADDRESS  connect to it", NULL };

static const struct util_opt options[] = {
	{ 0, NULL, NULL, "Interface: the first that satisfies all of them is used" },
	{ 'p', "provider", "NAME", "this provider, as fi_info names it" },
	{ 'e', "ep_type", "TYPE", "endpoint type: msg, rdm or dgram (default: dgram)" },
	{ 'd', "domain", "NAME", "this domain" },
	{ 's', "src_addr", "HOST", "this source address, for the control channel as well" },
	{ '6', "ipv6", NULL, "IPv6 for the control channel, and for data where the provider has it" },
	{ 0, NULL, NULL, "Test: -e, -m, -I, -S and -c must be the same on both sides" },
	{ 'I', "iterations", "NUMBER", "messages each way for every size (default: 10)" },
	{ 'S', "size", "SIZE|all", "one size in bytes (k, m and g are allowed), or all from 0 to 6m\n"
				   "(default: 64, 256, 1k, 4k, 64k, 1m)" },
	{ 'm', "mode", "MODE", "plain or tagged messages: msg or tagged (default: msg)" },
	{ 'c', "check", NULL, "check the data of every message" },
	{ 0, NULL, NULL, "Control channel: a TCP connection beside the fabric" },
	{ 'B', "src_port", "PORT", "our port (default: server 47592, client any); 0 is any free one,\n"
				   "which the server prints" },
	{ 'P', "dst_port", "PORT", "port of the server (default: 47592)" },
	{ OPT_PORT_FILE, "port-file", "FILE", "server: write our port there once a client can connect" },
	{ 'T', "timeout", "SECONDS", "give up when the peer keeps us waiting this long (default: 30)" },
	{ 'A', "accept-timeout", "SECONDS", "server: give up when no client comes (default: 600)" },
	{ 0, NULL, NULL, "Output:" },
	{ OPT_STATS, "stats", NULL, "latency as well: minimum, median, 99th percentile, maximum of half round trips" },
	{ OPT_JSON, "json", NULL, "results as JSON, with latency" },
	{ 'v', "verbose", NULL, "each step on stderr; implies --stats" },
	{ 'h', "help", NULL, "this help" },
	{ 0, NULL, NULL, NULL },
};

struct pp_result {
	uint64_t size;
	uint32_t sent, acked;
	uint64_t elapsed_ns;
	struct hist latency;            /* half round trips in ns; empty unless asked for */
};

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

static void sizes_default(struct pp_opts *opts)
{
	static const uint64_t few[] = { 64, 256, 1024, 4096, 65536, 1048576 };

	memcpy(opts->size, few, sizeof(few));
	opts->size_cnt = sizeof(few) / sizeof(few[0]);
}

/* 0 and 1, each power of two, and what is halfway to the next: both ends must come to the same list. */
static void sizes_all(struct pp_opts *opts)
{
	unsigned power;

	opts->size_cnt = 0;
	opts->size[opts->size_cnt++] = 0;
	opts->size[opts->size_cnt++] = 1;
	for (power = 1; power <= 22; power++) {
		opts->size[opts->size_cnt++] = 1ULL << power;
		opts->size[opts->size_cnt++] = 3ULL << (power - 1);
	}
}

static int parse_sizes(const char *text, struct pp_opts *opts)
{
	opts->one_size = strcmp(text, "all") != 0;
	if (!opts->one_size) {
		sizes_all(opts);
		return 0;
	}
	opts->size_cnt = 1;
	return util_parse_number("-S (bytes, or 'all')", text, 0, MAX_SIZE, &opts->size[0]);
}

static int parse_mode(const char *text, bool *tagged)
{
	*tagged = !strcmp(text, "tagged");
	if (*tagged || !strcmp(text, "msg"))
		return 0;
	util_err("-m is '%s': msg or tagged is allowed", text);
	return -FI_EINVAL;
}

static int parse_ep_type(const char *text, enum fi_ep_type *type)
{
	uint32_t value;
	int ret;

	ret = util_parse_enum("endpoint type", text, FI_TYPE_EP_TYPE, "FI_EP_", &value);
	if (!ret && value != FI_EP_MSG && value != FI_EP_RDM && value != FI_EP_DGRAM) {
		util_err("-e is '%s': msg, rdm or dgram is allowed", text);
		return -FI_EINVAL;
	}
	*type = ret ? *type : (enum fi_ep_type) value;
	return ret;
}

static int parse_port(const char *what, const char *text, uint16_t *port)
{
	uint64_t value;
	int ret;

	ret = util_parse_number(what, text, 0, UINT16_MAX, &value);
	*port = ret ? *port : (uint16_t) value;
	return ret;
}

static int parse_seconds(const char *what, const char *text, int *ms)
{
	uint64_t value;
	int ret;

	ret = util_parse_number(what, text, 1, 1000000, &value);
	*ms = ret ? *ms : (int) value * 1000;
	return ret;
}

/* Take one option. 0 or -FI_EINVAL, with a message. */
static int take_option(struct pp_opts *opts, int key, const char *arg)
{
	uint64_t value;
	int ret;

	switch (key) {
	case 'p':
		opts->provider = arg;
		break;
	case 'd':
		opts->domain = arg;
		break;
	case 's':
		opts->src = arg;
		break;
	case OPT_PORT_FILE:
		opts->port_file = arg;
		break;
	case 'e':
		return parse_ep_type(arg, &opts->ep_type);
	case 'm':
		return parse_mode(arg, &opts->tagged);
	case 'S':
		return parse_sizes(arg, opts);
	case 'B':
		opts->have_src_port = true;
		return parse_port("-B (a port)", arg, &opts->src_port);
	case 'P':
		return parse_port("-P (a port)", arg, &opts->dst_port);
	case 'T':
		return parse_seconds("-T (seconds)", arg, &opts->wait_ms);
	case 'A':
		return parse_seconds("-A (seconds)", arg, &opts->accept_ms);
	case 'I':
		ret = util_parse_number("-I (iterations)", arg, 1, INT32_MAX, &value);
		opts->iterations = ret ? opts->iterations : (uint32_t) value;
		return ret;
	case '6':
		opts->ipv6 = true;
		break;
	case 'c':
		opts->check = true;
		break;
	case OPT_STATS:
		opts->stats = true;
		break;
	case OPT_JSON:
		opts->json = opts->stats = true;
		break;
	case 'v':
		opts->verbose = opts->stats = true;
		break;
	}
	return 0;
}

/* Read the command line. 0 to go on, else *code is what to exit with. */
static int parse_command_line(struct pp_opts *opts, int argc, char **argv, int *code)
{
	int key;

	*code = 0;
	while ((key = util_getopt(argc, argv, options)) != -1) {
		if (key == 'h') {
			util_help(stdout, usage, about, options);
			return 1;
		}
		if (key == '?' || take_option(opts, key, optarg)) {
			*code = util_bad_usage();
			return 1;
		}
	}
	if (optind + 1 < argc) {
		util_err("one server address is allowed, not '%s' as well", argv[optind + 1]);
		*code = util_bad_usage();
		return 1;
	}
	opts->server = argv[optind];
	if (!opts->server && !opts->have_src_port)
		opts->src_port = DEFAULT_PORT;
	return 0;
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
	return result->size * result->sent * 2;
}

static double result_usec_per_transfer(const struct pp_result *result)
{
	return (double) result->elapsed_ns / 1000 / result->sent / 2;
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

static void print_header(const struct pp_opts *opts)
{
	printf("%-8s%-8s%-9s%-10s%9s%11s%13s%13s", "bytes", "#sent", "#ack", "total", "time", "MB/sec", "usec/xfer",
	       "Mxfers/sec");
	if (opts->stats)
		printf("%12s%10s%10s%10s", "usec: min", percentiles[0].name, percentiles[1].name, "max");
	putchar('\n');
	fflush(stdout);
}

static void print_row(const struct pp_opts *opts, const struct pp_result *result)
{
	char acked[16], elapsed[24];
	double usec = result_usec_per_transfer(result);

	snprintf(acked, sizeof(acked), "%s%u", result->acked == result->sent ? "=" : "", result->acked);
	snprintf(elapsed, sizeof(elapsed), "%.2fs", (double) result->elapsed_ns / 1e9);
	printf("%-8s%-8u%-9s%-10s%9s%11.2f%13.2f%13.2f", short_number(result->size), result->sent, acked,
	       short_number(result_total(result)), elapsed, result_mb_per_second(result), usec,
	       usec > 0 ? 1 / usec : 0);
	if (opts->stats)
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
	json_open(json, "latency_usec", '{');
	json_real(json, "min", (double) result->latency.min / 1000);
	for (i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++)
		json_real(json, percentiles[i].name, percentile_usec(result, i));
	json_real(json, "max", (double) result->latency.max / 1000);
	json_close(json, '}');
	json_close(json, '}');
}

/* What is said before the first result: what was used to get them. */
static void begin_results(const struct pp *pp, struct json *json)
{
	const struct fi_info *info = pp->info;

	if (!pp->opts->json) {
		print_header(pp->opts);
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

/* Exchange all messages of one size. The latency of one is half of the time since the one before. */
static int run_size(struct pp *pp, struct pp_result *result)
{
	uint32_t iterations = pp->opts->iterations;
	uint64_t start, last, now;
	int ret;

	hist_clear(&result->latency);
	ret = pp_ctrl_sync(pp);
	if (ret)
		return ret;
	start = last = util_now_ns();
	for (result->sent = 0; result->sent < iterations; result->sent++) {
		ret = exchange(pp, result->size);
		if (ret)
			return ret;
		if (!pp->opts->stats)
			continue;
		now = util_now_ns();
		hist_add(&result->latency, (now - last) / 2);
		last = now;
	}
	ret = pp_flush(pp);
	result->elapsed_ns = util_now_ns() - start;
	result->acked = iterations;
	return ret ? ret : pp_ctrl_exchange_count(pp, &result->acked);
}

/* Run every size that the endpoint allows, and show its result. */
static int run_sizes(struct pp *pp, struct json *json)
{
	const struct pp_opts *opts = pp->opts;
	struct pp_result result;
	size_t i;
	int ret;

	for (i = 0; i < opts->size_cnt && opts->size[i] <= pp->max_size; i++) {
		result.size = opts->size[i];
		ret = run_size(pp, &result);
		if (ret)
			return ret;
		if (opts->json)
			add_result(json, &result);
		else
			print_row(opts, &result);
	}
	return 0;
}

/* Everything between the command line and the exit code. */
static int run(struct pp *pp)
{
	struct json json;
	int ret, close_ret;

	ret = pp_ctrl_open(pp);
	if (ret)
		return ret;
	ret = pp_fabric_open(pp);
	if (!ret) {
		begin_results(pp, &json);
		ret = run_sizes(pp, &json);
		if (!ret)
			ret = pp_finish(pp);
		end_results(pp, &json, ret);
	}
	close_ret = pp_fabric_close(pp);
	pp_ctrl_close(pp);
	return ret ? ret : close_ret;
}

int main(int argc, char **argv)
{
	struct pp_opts opts = {
		.ep_type = FI_EP_DGRAM,
		.dst_port = DEFAULT_PORT,
		.iterations = DEFAULT_ITERATIONS,
		.wait_ms = DEFAULT_WAIT_S * 1000,
		.accept_ms = DEFAULT_ACCEPT_S * 1000,
	};
	struct pp pp = { .opts = &opts, .ctrl = -1 };
	int code;

	util_init(argv[0]);
	sizes_default(&opts);
	if (parse_command_line(&opts, argc, argv, &code))
		return code;
	code = -run(&pp);
	if (fflush(stdout) || ferror(stdout)) {
		util_err("cannot write the results");
		return FI_EIO;
	}
	return code;
}
