/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The command line of programs with a server and a client. */
#include "ft.h"
#include "inband.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "../../util/common.h"

#define DEFAULT_PORT 9228
#define DEFAULT_ITERATIONS 1000
#define DEFAULT_WARMUP 10
#define DEFAULT_WINDOW 64
#define MAX_WINDOW 4096
#define DEFAULT_WAIT_S 30
#define DEFAULT_ACCEPT_S 600
#define MAX_OPTIONS 60
#define MAX_CORE 1023

enum {
	OPT_PIN = PP_OPT_LAST + 1,
	OPT_PROGRESS,
	OPT_AV_TYPE,
	OPT_THREADING,
	OPT_FAMILY,
	OPT_IN_BAND,
};

/* What the command line has come to so far. */
struct ft_opts {
	struct pp_opts pp;              /* first: take_option() is given its address */
	const struct ft_program *program;
	const struct pp_test *test;
	int core;                       /* -1 for any */
};

static const struct util_opt interface_options[] = {
	{ 0, NULL, NULL, "Interface: the first that satisfies all of them is used" },
	{ 'p', "provider", "NAME", "this provider, as fi_info names it" },
	{ 'f', "fabric", "NAME", "this fabric" },
	{ 'd', "domain", "NAME", "this domain" },
	{ 's', "src_addr", "HOST", "this source address, for the control channel as well" },
	{ OPT_FAMILY, "ipv6", NULL, "IPv6 for the control channel, and for data where the provider has it" },
	{ 'k', "msg-prefix", NULL, "accept that the provider wants room before the data of messages: FI_MSG_PREFIX" },
	{ 'M', "without", "mr_local", "do not accept that the provider wants local buffers registered" },
	{ OPT_PROGRESS, "progress", "auto|manual", "who makes progress (default: the provider's own choice)" },
	{ OPT_AV_TYPE, "av", "map|table", "how addresses are named (default: the provider's own choice)" },
	{ OPT_THREADING, "threading", "LEVEL", "safe, fid, domain, completion or endpoint (default: domain)" },
	{ 0, NULL, NULL, "Completions:" },
	{ 't', "completion", "queue|counter", "what tells that an operation is complete" },
	{ 'c', "method", "spin|sread|fd|yield", "how it is waited for (default: spin)" },
	{ 'U', "delivery", NULL, "operations complete when they are done at the peer: FI_DELIVERY_COMPLETE" },
	{ 'K', "fork", NULL, "a child that writes over its copy of the memory lives and ends before the\n"
			     "first message" },
	{ 0, NULL, NULL, NULL },
};

static const struct util_opt type_options[] = {
	{ 'e', "ep_type", "TYPE", "endpoint type: msg, rdm or dgram, those that make sense here" },
	{ 0, NULL, NULL, NULL },
};

static const struct util_opt size_options[] = {
	{ 0, NULL, NULL, "Test: must be the same on both sides" },
	{ 'I', "iterations", "NUMBER", "iterations for every size (default: 1000)" },
	{ 'w', "warmup", "NUMBER", "iterations before those, which do not count (default: 10)" },
	{ 'S', "size", "SIZE|all", "one size in bytes (k, m and g are allowed), or all from 0 to 6m\n"
				   "(default: 64, 256, 1k, 4k, 64k, 1m)" },
	{ 'v', "verify", NULL, "check the data" },
	{ 0, NULL, NULL, NULL },
};

static const struct util_opt common_options[] = {
	{ 0, NULL, NULL, "Control channel: a TCP connection beside the fabric" },
	{ 'B', "src_port", "PORT", "our port (default: server 9228, client any); 0 is any free one,\n"
				   "which the server prints" },
	{ 'P', "dst_port", "PORT", "port of the server (default: 9228)" },
	{ 'b', "oob-sync", "[=PORT]", "the port on both sides: -B of the server, -P of the client" },
	{ 'E', "oob", "[=PORT]", "the same: addresses go over the control channel with or without it" },
	{ OPT_IN_BAND, "in-band", NULL, "addresses, and what keeps both in step, go over an endpoint of the\n"
					"provider's: -B and -P are ports of its own, there is no TCP connection" },
	{ PP_OPT_PORT_FILE, "port-file", "FILE", "server: write our port there once a client can connect" },
	{ 'T', "timeout", "SECONDS", "give up when the peer keeps us waiting this long (default: 30)" },
	{ 'A', "accept-timeout", "SECONDS", "server: give up when no client comes (default: 600)" },
	{ 0, NULL, NULL, "Output:" },
	{ OPT_PIN, "pin-core", "NUMBER", "run on this processor core only" },
	{ 'V', "verbose", NULL, "each step on stderr" },
	{ 'h', "help", NULL, "this help" },
	{ 0, NULL, NULL, NULL },
};

static const struct util_opt bench_options[] = {
	{ PP_OPT_JSON, "json", NULL, "results as JSON; without it a row for every size: time of one message (of a\n"
				     "pingpong half a round trip; of a stream the mean over each window),\n"
				     "rate, bandwidth, processor time against time that passed" },
	{ 0, NULL, NULL, NULL },
};

static const struct util_opt window_options[] = {
	{ 0, NULL, NULL, "How much at a time:" },
	{ 'W', "window", "NUMBER", "operations under way (default: 64)" },
	{ 0, NULL, NULL, NULL },
};

static const struct util_opt operation_options[] = {
	{ 'o', "operation", "NAME", "what is measured" },
	{ 0, NULL, NULL, NULL },
};

/* A word that stands for a value. A table ends with NULL. */
struct word {
	const char *text;
	int value;
};

static int parse_word(const char *what, const char *text, const struct word *words, int *value)
{
	const struct word *word;

	for (word = words; word->text; word++) {
		if (!strcmp(text, word->text)) {
			*value = word->value;
			return 0;
		}
	}
	util_err("%s is '%s': these are allowed:", what, text);
	for (word = words; word->text; word++)
		fprintf(stderr, "  %s\n", word->text);
	return -FI_EINVAL;
}

static const struct word looks[] = {
	{ "spin", PP_LOOK_SPIN }, { "yield", PP_LOOK_YIELD }, { "sread", PP_LOOK_SREAD }, { "fd", PP_LOOK_FD },
	{ NULL, 0 },
};

static const struct word completions[] = { { "queue", false }, { "counter", true }, { NULL, 0 } };

static const struct word progresses[] = {
	{ "auto", FI_PROGRESS_AUTO }, { "manual", FI_PROGRESS_MANUAL }, { NULL, 0 },
};

static const struct word av_types[] = { { "map", FI_AV_MAP }, { "table", FI_AV_TABLE }, { NULL, 0 } };

static const struct word threadings[] = {
	{ "safe", FI_THREAD_SAFE }, { "fid", FI_THREAD_FID }, { "domain", FI_THREAD_DOMAIN },
	{ "completion", FI_THREAD_COMPLETION }, { "endpoint", FI_THREAD_ENDPOINT }, { NULL, 0 },
};

static int parse_operation(struct ft_opts *opts, const char *text)
{
	const struct ft_operation *op;
	char names[256] = "";

	for (op = opts->program->operations; op->name; op++) {
		if (!strcmp(text, op->name)) {
			opts->test = op->test;
			opts->pp.caps |= op->caps;
			return 0;
		}
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", *names ? ", " : "", op->name);
	}
	util_err("-o is '%s': one of %s is allowed", text, names);
	return -FI_EINVAL;
}

static int parse_type(const struct ft_opts *opts, const char *text, enum fi_ep_type *type)
{
	enum fi_ep_type value = *type;
	unsigned allowed = opts->program->ep_types;
	int ret;

	ret = pp_parse_ep_type(text, &value);
	if (!ret && !(allowed & 1u << value)) {
		util_err("-e is '%s': one of%s%s%s is allowed", text, allowed & FT_MSG ? " msg" : "",
			 allowed & FT_RDM ? " rdm" : "", allowed & FT_DGRAM ? " dgram" : "");
		ret = -FI_EINVAL;
	}
	*type = ret ? *type : value;
	return ret;
}

/* A number from min to max. */
static int parse_int(const char *what, const char *text, uint64_t min, uint64_t max, int *value)
{
	uint64_t number;
	int ret = util_parse_number(what, text, min, max, &number);

	*value = ret ? *value : (int) number;
	return ret;
}

/* Take an option whose argument is a word. 0 or -FI_EINVAL, with a message. */
static int take_word(struct pp_opts *opts, int key, const char *arg)
{
	static const struct word mr_modes[] = { { "mr_local", FI_MR_LOCAL }, { NULL, 0 } };
	int value = 0, ret = 0;

	switch (key) {
	case 'M':
		ret = parse_word("-M (a mode)", arg, mr_modes, &value);
		opts->not_mr_mode |= (uint64_t) value;
		break;
	case 't':
		ret = parse_word("-t (completion)", arg, completions, &value);
		opts->counters = value;
		break;
	case 'c':
		ret = parse_word("-c (method)", arg, looks, &value);
		opts->look = (enum pp_look) value;
		break;
	case OPT_PROGRESS:
		ret = parse_word("--progress", arg, progresses, &value);
		opts->progress = (enum fi_progress) value;
		break;
	case OPT_AV_TYPE:
		ret = parse_word("--av", arg, av_types, &value);
		opts->av_type = (enum fi_av_type) value;
		break;
	case OPT_THREADING:
		ret = parse_word("--threading", arg, threadings, &value);
		opts->threading = (enum fi_threading) value;
		break;
	}
	return ret;
}

/* With -K, what is registered stays ours whatever a child does with its copy. Waits for its end. */
static int fork_once(struct pp *pp)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (pp->tx_buf)
			memset(pp->tx_buf, 0xff, pp->buf_len);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return pp_fail(pp, -FI_EOTHER, "fork, or the child (-K)");
	return 0;
}

/* Whether a table has an option of this key. */
static bool has_key(const struct util_opt *table, int key)
{
	for (; table && table->help; table++) {
		if (table->key == key)
			return true;
	}
	return false;
}

/* Take one option. 0 or -FI_EINVAL, with a message. */
static int take_option(struct pp_opts *opts, int key, const char *arg)
{
	struct ft_opts *all = (struct ft_opts *) opts;
	int value = 0, ret;

	if (has_key(all->program->options, key))
		return all->program->take(opts, key, arg);
	switch (key) {
	case 'f':
		opts->fabric = arg;
		return 0;
	case 'w':
		return pp_parse_count("-w (iterations)", arg, 0, &opts->warmup);
	case 'W':
		ret = parse_int("-W (operations)", arg, 1, MAX_WINDOW, &value);
		opts->window = ret ? opts->window : (uint32_t) value;
		return ret;
	case 'e':
		return parse_type(all, arg, &opts->ep_type);
	case 'o':
		return parse_operation(all, arg);
	case 'v':
		opts->check = true;
		return 0;
	case 'V':
		opts->verbose = true;
		return 0;
	case 'k':
		opts->mode |= FI_MSG_PREFIX;
		return 0;
	case 'K':
		opts->opened = fork_once;
		return 0;
	case 'U':
		opts->op_flags |= FI_DELIVERY_COMPLETE;
		return 0;
	case OPT_FAMILY:
		opts->ipv6 = true;
		return 0;
	case 'b':
	case 'E':
		return arg ? pp_parse_port("-b, -E (a port)", arg + (*arg == '='), &opts->dst_port) : 0;
	case OPT_IN_BAND:
		opts->carrier = &ft_inband;
		return 0;
	case OPT_PIN:
		return parse_int("--pin-core", arg, 0, MAX_CORE, &all->core);
	}
	if (has_key(interface_options, key) && !strchr("pds", key))
		return take_word(opts, key, arg);
	return pp_take_option(opts, key, arg);
}

/* Append a table to another, over its last entry, but for what `own` has by the same letter; `table` has room. */
static void add_options(struct util_opt *table, const struct util_opt *more, const struct util_opt *own)
{
	while (table->help)
		table++;
	for (; more && more->help; more++) {
		if (!more->key || !has_key(own, more->key))
			*table++ = *more;
	}
	*table = (struct util_opt) { 0, NULL, NULL, NULL };
}

/* All options of a program. */
static void fill_options(struct util_opt *options, const struct ft_program *program)
{
	const struct {
		const struct util_opt *table;
		bool wanted;
	} tables[] = {
		{ interface_options, true },
		{ type_options, program->ep_types },
		{ size_options, !program->once },
		{ operation_options, program->operations },
		{ window_options, program->windowed },
		{ common_options, true },
		{ bench_options, !program->body || program->json },
	};
	size_t i;

	add_options(options, program->options, NULL);
	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (tables[i].wanted)
			add_options(options, tables[i].table, program->options);
	}
}

static int pin(int core)
{
	cpu_set_t set;

	if (core < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (!sched_setaffinity(0, sizeof(set), &set))
		return 0;
	util_err("--pin-core %d: %s", core, strerror(errno));
	return -FI_EINVAL;
}

int ft_skip(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	util_err("skipped: %s", text);
	return -FI_ENOSYS;
}

int ft_result(int ret, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("%s: %s\n", !ret ? "passed" : ret == -FI_ENOSYS || ret == -FI_ENODATA ? "skipped" : "failed", text);
	fflush(stdout);
	return ret;
}

/* The defaults of a program. */
static struct ft_opts default_opts(const struct ft_program *program)
{
	struct ft_opts opts = {
		.pp = {
			.ep_type = program->ep_type,
			.tagged = program->tagged,
			.rma = program->rma,
			.atomics = program->atomics,
			.caps = program->caps,
			.counters = program->counters,
			.hints = program->hints,
			.alone = program->alone,
			.dst_port = DEFAULT_PORT,
			.iterations = DEFAULT_ITERATIONS,
			.warmup = DEFAULT_WARMUP,
			.window = program->windowed ? DEFAULT_WINDOW : 1,
			.wait_ms = DEFAULT_WAIT_S * 1000,
			.accept_ms = DEFAULT_ACCEPT_S * 1000,
			.stats = true,
			.extremes = true,
			.cpu = true,
		},
		.program = program,
		.test = program->operations ? program->operations->test : program->test,
		.core = -1,
	};

	if (program->operations)
		opts.pp.caps |= program->operations->caps;
	pp_sizes_default(&opts.pp);
	return opts;
}

int ft_main(int argc, char **argv, const struct ft_program *program)
{
	struct util_opt options[MAX_OPTIONS] = { { 0, NULL, NULL, NULL } };
	struct ft_opts opts = default_opts(program);
	int code;

	util_init(argv[0]);
	fill_options(options, program);
	if (pp_parse_command_line(&opts.pp, argc, argv, options, program->about, take_option, &code))
		return code;
	if (pin(opts.core))
		return util_bad_usage();
	/* What is written must be there when the server looks. */
	opts.pp.delivered = opts.pp.rma && opts.pp.check;
	if (program->body)
		return pp_call(&opts.pp, !program->bare, program->body);
	return pp_run(&opts.pp, opts.test);
}
