/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_pingpong: two processes pass messages back and forth, and print the time. Either end may be upstream's program.
 * This file has the command line; pp.h describes the other parts.
 */
#include "pp.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "common.h"

#define DEFAULT_PORT 47592
#define DEFAULT_TIME_MS 250
#define DEFAULT_WAIT_S 30
#define DEFAULT_ACCEPT_S 600

enum {
	OPT_STATS = PP_OPT_LAST + 1,
	OPT_TIME,
	OPT_NO_PIN,
	OPT_PLAIN,
};

static const char about[] = "Pass messages back and forth between two processes, and tell how long it took.";

static const struct util_opt options[] = {
	{ 0, NULL, NULL, "Interface: the first that satisfies all of them is used" },
	{ 'p', "provider", "NAME", "this provider, as fi_info names it" },
	{ 'e', "ep_type", "TYPE", "endpoint type: msg, rdm or dgram (default: dgram)" },
	{ 'd', "domain", "NAME", "this domain" },
	{ 'f', "fabric", "NAME", "this fabric" },
	{ 's', "src_addr", "HOST", "this source address, for the control channel as well" },
	{ '6', "ipv6", NULL, "IPv6 for the control channel, and for data where the provider has it" },
	{ 0, NULL, NULL, "Test: -e, -m, -I, -S and -c must be the same on both sides" },
	{ 'I', "iterations", "NUMBER", "messages each way for every size (default: as many as --time permits;\n"
				       "10 if the peer is upstream's program)" },
	{ OPT_TIME, "time", "SECONDS", "client: time to measure each size for, after a warm-up (default: 0.25)" },
	{ 'S', "size", "SIZE|all", "one size in bytes (k, m and g are allowed), or all from 0 to 6m\n"
				   "(default: 64, 256, 1k, 4k, 64k, 1m)" },
	{ 'm', "mode", "MODE", "plain or tagged messages: msg or tagged (default: msg)" },
	{ 'c', "check", NULL, "check the data of every message" },
	{ OPT_NO_PIN, "no-pin", NULL, "do not choose a core; processes of one host use two by default" },
	{ OPT_PLAIN, "plain", NULL, "do not compare options with the peer, as upstream's program" },
	{ 0, NULL, NULL, "Control channel: a TCP connection beside the fabric" },
	{ 'B', "src_port", "PORT", "our port (default: server 47592, client any); 0 is any free one,\n"
				   "which the server prints" },
	{ 'P', "dst_port", "PORT", "port of the server (default: 47592)" },
	{ PP_OPT_PORT_FILE, "port-file", "FILE", "server: write our port there once a client can connect" },
	{ 'T', "timeout", "SECONDS", "give up when the peer keeps us waiting this long (default: 30)" },
	{ 'A', "accept-timeout", "SECONDS", "server: give up when no client comes (default: 600)" },
	{ 0, NULL, NULL, "Output:" },
	{ OPT_STATS, "stats", NULL, "minimum and maximum of half a round trip, too" },
	{ PP_OPT_JSON, "json", NULL, "results as JSON, with latency" },
	{ 'v', "verbose", NULL, "each step on stderr; implies --stats" },
	{ 'h', "help", NULL, "this help" },
	{ 0, NULL, NULL, NULL },
};

static int parse_mode(const char *text, bool *tagged)
{
	*tagged = !strcmp(text, "tagged");
	if (*tagged || !strcmp(text, "msg"))
		return 0;
	util_err("-m is '%s': msg or tagged is allowed", text);
	return -FI_EINVAL;
}

static int parse_time(const char *text, uint32_t *time_ms)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.001 && seconds <= 1e6)) {
		util_err("--time (seconds) is '%s': a number from 0.001 to 1000000 is allowed", text);
		return -FI_EINVAL;
	}
	*time_ms = (uint32_t) (seconds * 1000);
	return 0;
}

/* Handle one option. 0 or -FI_EINVAL, with a message. */
static int take_option(struct pp_opts *opts, int key, const char *arg)
{
	switch (key) {
	case 'e':
		return pp_parse_ep_type(arg, &opts->ep_type);
	case 'm':
		return parse_mode(arg, &opts->tagged);
	case '6':
		opts->ipv6 = true;
		break;
	case 'c':
		opts->check = true;
		break;
	case 'f':
		opts->fabric = arg;
		break;
	case OPT_TIME:
		return parse_time(arg, &opts->time_ms);
	case OPT_NO_PIN:
		opts->pin = false;
		break;
	case OPT_PLAIN:
		opts->meet = false;
		break;
	case OPT_STATS:
		opts->extremes = true;
		break;
	case 'v':
		opts->verbose = opts->extremes = true;
		break;
	default:
		return pp_take_option(opts, key, arg);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct pp_opts opts = {
		.ep_type = FI_EP_DGRAM,
		.dst_port = DEFAULT_PORT,
		.time_ms = DEFAULT_TIME_MS,
		.stats = true,
		.meet = true,
		.pin = true,
		.window = 1,
		.mode = FI_MSG_PREFIX,
		.wait_ms = DEFAULT_WAIT_S * 1000,
		.accept_ms = DEFAULT_ACCEPT_S * 1000,
	};
	int code;

	util_init(argv[0]);
	pp_sizes_default(&opts);
	if (pp_parse_command_line(&opts, argc, argv, options, about, take_option, &code))
		return code;
	return pp_run(&opts, &pp_pingpong);
}
