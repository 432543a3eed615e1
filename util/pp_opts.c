/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Parses the options and their arguments, for programs that use pp.h. */
#include "pp.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "common.h"

#define MAX_SIZE (1ULL << 40)

static const char *const usage[] = { "[OPTIONS]                 start the server",
				     "[OPTIONS] SERVER_ADDRESS  connect to it", NULL };

void pp_sizes_default(struct pp_opts *opts)
{
	static const uint64_t few[] = { 64, 256, 1024, 4096, 65536, 1048576 };

	memcpy(opts->size, few, sizeof(few));
	opts->size_cnt = sizeof(few) / sizeof(few[0]);
}

/* 0 and 1, each power of two, and the size halfway to the next. Both ends must have the same list. */
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

int pp_parse_ep_type(const char *text, enum fi_ep_type *type)
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

int pp_parse_port(const char *what, const char *text, uint16_t *port)
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

int pp_parse_count(const char *what, const char *text, uint32_t min, uint32_t *cnt)
{
	uint64_t value;
	int ret;

	ret = util_parse_number(what, text, min, INT32_MAX, &value);
	*cnt = ret ? *cnt : (uint32_t) value;
	return ret;
}

int pp_take_option(struct pp_opts *opts, int key, const char *arg)
{
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
	case PP_OPT_PORT_FILE:
		opts->port_file = arg;
		break;
	case 'S':
		return parse_sizes(arg, opts);
	case 'I':
		return pp_parse_count("-I (iterations)", arg, 1, &opts->iterations);
	case 'B':
		opts->have_src_port = true;
		return pp_parse_port("-B (a port)", arg, &opts->src_port);
	case 'P':
		return pp_parse_port("-P (a port)", arg, &opts->dst_port);
	case 'T':
		return parse_seconds("-T (seconds)", arg, &opts->wait_ms);
	case 'A':
		return parse_seconds("-A (seconds)", arg, &opts->accept_ms);
	case PP_OPT_JSON:
		opts->json = opts->stats = true;
		break;
	}
	return 0;
}

int pp_parse_command_line(struct pp_opts *opts, int argc, char **argv, const struct util_opt *options,
			  const char *about, int (*take)(struct pp_opts *opts, int key, const char *arg), int *code)
{
	int key;

	*code = 0;
	while ((key = util_getopt(argc, argv, options)) != -1) {
		if (key == 'h') {
			util_help(stdout, usage, about, options);
			return 1;
		}
		if (key == '?' || take(opts, key, optarg)) {
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
		opts->src_port = opts->dst_port;
	return 0;
}
