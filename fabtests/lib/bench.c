/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command line of the benchmarks. */
#include "bench.h"

#include <string.h>

#include <rdma/fi_errno.h>

#include "../../util/common.h"

#define DEFAULT_PORT 9228
#define DEFAULT_ITERATIONS 1000
#define DEFAULT_WARMUP 10
#define DEFAULT_WINDOW 64
#define MAX_WINDOW 4096
#define DEFAULT_WAIT_S 30
#define DEFAULT_ACCEPT_S 600
#define MAX_OPTIONS 40

/* What the command line has come to so far. */
struct bench_opts {
	struct pp_opts pp;              /* first: take_option() is given its address */
	const struct pp_test *test;
};

static const struct util_opt common_options[] = {
	{ 0, NULL, NULL, "Interface: the first that satisfies all of them is used" },
	{ 'p', "provider", "NAME", "this provider, as fi_info names it" },
	{ 'f', "fabric", "NAME", "this fabric" },
	{ 'd', "domain", "NAME", "this domain" },
	{ 's', "src_addr", "HOST", "this source address, for the control channel as well" },
	{ 0, NULL, NULL, "Test: must be the same on both sides" },
	{ 'I', "iterations", "NUMBER", "iterations for every size (default: 1000)" },
	{ 'w', "warmup", "NUMBER", "iterations before those, which do not count (default: 10)" },
	{ 'S', "size", "SIZE|all", "one size in bytes (k, m and g are allowed), or all from 0 to 6m\n"
				   "(default: 64, 256, 1k, 4k, 64k, 1m)" },
	{ 'v', "verify", NULL, "check the data" },
	{ 'U', "delivery", NULL, "operations complete when they are done at the peer: FI_DELIVERY_COMPLETE" },
	{ 0, NULL, NULL, "Control channel: a TCP connection beside the fabric" },
	{ 'B', "src_port", "PORT", "our port (default: server 9228, client any); 0 is any free one,\n"
				   "which the server prints" },
	{ 'P', "dst_port", "PORT", "port of the server (default: 9228)" },
	{ 'E', "oob", NULL, "exchange addresses over the control channel: always so, taken for scripts" },
	{ PP_OPT_PORT_FILE, "port-file", "FILE", "server: write our port there once a client can connect" },
	{ 'T', "timeout", "SECONDS", "give up when the peer keeps us waiting this long (default: 30)" },
	{ 'A', "accept-timeout", "SECONDS", "server: give up when no client comes (default: 600)" },
	{ 0, NULL, NULL, "Output: a row for every size; of a pingpong with latencies, of half round trips" },
	{ PP_OPT_JSON, "json", NULL, "results as JSON" },
	{ 'h', "help", NULL, "this help" },
	{ 0, NULL, NULL, NULL },
};

static const struct util_opt window_options[] = {
	{ 0, NULL, NULL, "How much at a time:" },
	{ 'W', "window", "NUMBER", "operations under way (default: 64)" },
	{ 0, NULL, NULL, NULL },
};

static const struct util_opt rma_options[] = {
	{ 0, NULL, NULL, "RMA:" },
	{ 'e', "ep_type", "TYPE", "endpoint type: msg or rdm (default: rdm)" },
	{ 'o', "operation", "read|write", "what the client does with the server's memory (default: write)" },
	{ 0, NULL, NULL, NULL },
};

static int parse_operation(const char *text, const struct pp_test **test)
{
	if (!strcmp(text, "write")) {
		*test = &bench_write;
	} else if (!strcmp(text, "read")) {
		*test = &bench_read;
	} else {
		util_err("-o is '%s': read or write is allowed", text);
		return -FI_EINVAL;
	}
	return 0;
}

/* Connection-oriented or reliable: the tests cannot bear a loss. */
static int parse_type(const char *text, enum fi_ep_type *type)
{
	enum fi_ep_type value = *type;
	int ret;

	ret = pp_parse_ep_type(text, &value);
	if (!ret && value == FI_EP_DGRAM) {
		util_err("-e is '%s': msg or rdm is allowed", text);
		ret = -FI_EINVAL;
	}
	*type = ret ? *type : value;
	return ret;
}

static int parse_window(const char *text, uint32_t *window)
{
	uint64_t value;
	int ret;

	ret = util_parse_number("-W (operations)", text, 1, MAX_WINDOW, &value);
	*window = ret ? *window : (uint32_t) value;
	return ret;
}

/* Take one option. 0 or -FI_EINVAL, with a message. */
static int take_option(struct pp_opts *opts, int key, const char *arg)
{
	struct bench_opts *all = (struct bench_opts *) opts;

	switch (key) {
	case 'f':
		opts->fabric = arg;
		break;
	case 'w':
		return pp_parse_count("-w (iterations)", arg, 0, &opts->warmup);
	case 'W':
		return parse_window(arg, &opts->window);
	case 'e':
		return parse_type(arg, &opts->ep_type);
	case 'o':
		return parse_operation(arg, &all->test);
	case 'v':
		opts->check = true;
		break;
	case 'U':
		opts->op_flags |= FI_DELIVERY_COMPLETE;
		break;
	case 'E':
		break;
	default:
		return pp_take_option(opts, key, arg);
	}
	return 0;
}

/* Append a table to another, over its last entry; `table` has room. */
static void add_options(struct util_opt *table, const struct util_opt *more)
{
	while (table->help)
		table++;
	do {
		*table++ = *more;
	} while (more++->help);
}

int bench_main(int argc, char **argv, const struct bench *bench)
{
	struct util_opt options[MAX_OPTIONS] = { { 0, NULL, NULL, NULL } };
	struct bench_opts opts = {
		.pp = {
			.ep_type = bench->ep_type,
			.tagged = bench->tagged,
			.rma = bench->rma,
			.dst_port = DEFAULT_PORT,
			.iterations = DEFAULT_ITERATIONS,
			.warmup = DEFAULT_WARMUP,
			.window = bench->windowed ? DEFAULT_WINDOW : 1,
			.wait_ms = DEFAULT_WAIT_S * 1000,
			.accept_ms = DEFAULT_ACCEPT_S * 1000,
			.stats = true,
		},
		.test = bench->rma ? &bench_write : bench->test,
	};
	int code;

	util_init(argv[0]);
	pp_sizes_default(&opts.pp);
	if (bench->rma)
		add_options(options, rma_options);
	if (bench->windowed)
		add_options(options, window_options);
	add_options(options, common_options);
	if (pp_parse_command_line(&opts.pp, argc, argv, options, bench->about, take_option, &code))
		return code;
	/* What is written must be there when the server looks. */
	if (bench->rma && opts.pp.check)
		opts.pp.op_flags |= FI_DELIVERY_COMPLETE;
	return pp_run(&opts.pp, opts.test);
}
