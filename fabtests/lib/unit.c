/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Options, domain and results of the unit programs. */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "../../util/common.h"
#include "../../util/pp.h"

#define MAX_CNT 65536
#define EXIT_FAILED 1

static const struct util_opt address_options[] = {
	{ 'g', "good-address", "HOST", "insert the address of this host (default: that of our interface)" },
	{ 'G', "bad-address", "HOST", "this one must be refused, by name or when it is inserted" },
	{ 'e', "ep_type", "TYPE", "endpoint type: msg, rdm or dgram (default: rdm)" },
	{ 0, NULL, NULL, NULL },
};

static const char *const usage[] = { "[OPTIONS]", NULL };

static const struct util_opt options[] = {
	{ 'p', "provider", "NAME", "this provider, as fi_info names it" },
	{ 'f', "fabric", "NAME", "this fabric" },
	{ 'd', "domain", "NAME", "this domain" },
	{ 's', "src_addr", "HOST", "this source address (default: 127.0.0.1)" },
	{ 'h', "help", NULL, "this help" },
	{ 0, NULL, NULL, NULL },
};

/* Why the test that runs was skipped, or NULL. */
static const char *skip_reason;

int unit_fail(int64_t ret, const char *call)
{
	if (ret < 0)
		printf("# %s: %s (%" PRId64 ")\n", call, fi_strerror((int) -ret), ret);
	else
		printf("# %s: %" PRId64 "\n", call, ret);
	return ret < 0 ? (int) ret : -FI_EOTHER;
}

int unit_skip(const char *why)
{
	skip_reason = why;
	return -FI_ENOSYS;
}

int unit_close(struct fid *fid, const char *what)
{
	int ret = fi_close(fid);

	return ret ? unit_fail(ret, what) : 0;
}

int unit_open_many(struct unit *unit, size_t cnt, size_t limit, int (*open)(struct unit *unit, struct fid **fid))
{
	size_t i, max = limit && limit < cnt ? limit : cnt;
	struct fid **fids = calloc(max, sizeof(*fids));
	int ret = 0, close_ret;

	if (!fids)
		return unit_fail(-FI_ENOMEM, "calloc");
	for (i = 0; i < max; i++) {
		ret = open(unit, &fids[i]);
		if (ret)
			break;
	}
	while (i--) {
		close_ret = unit_close(fids[i], "fi_close of one of many");
		ret = ret ? ret : close_ret;
	}
	free(fids);
	return ret;
}

/* A copy of `text` in *to; whether there was memory for it. NULL is its own copy. */
static bool copy_text(char **to, const char *text)
{
	*to = text ? strdup(text) : NULL;
	return !text || *to;
}

struct fi_info *unit_hints(const struct unit *unit, uint64_t caps, enum fi_ep_type type)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = type;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      (hints->caps & FI_HMEM ? FI_MR_HMEM : 0);
	if (copy_text(&hints->fabric_attr->prov_name, unit->provider) &&
	    copy_text(&hints->fabric_attr->name, unit->fabric_name) &&
	    copy_text(&hints->domain_attr->name, unit->domain_name))
		return hints;
	fi_freeinfo(hints);
	return NULL;
}

/* Everything that tests work with. 0 or -FI_*, with a message. */
static int open_unit(struct unit *unit, const struct unit_program *program)
{
	struct fi_info *hints = unit_hints(unit, program->caps, unit->ep_type);
	const char *call = "fi_getinfo";
	int ret = -FI_ENOMEM;

	if (hints)
		ret = fi_getinfo(UTIL_API_VERSION, unit->src, program->service, FI_SOURCE, hints, &unit->info);
	fi_freeinfo(hints);
	if (!ret) {
		call = "fi_fabric";
		ret = fi_fabric(unit->info->fabric_attr, &unit->fabric, NULL);
	}
	if (!ret) {
		call = "fi_domain";
		ret = fi_domain(unit->fabric, unit->info, &unit->domain, NULL);
	}
	if (ret)
		util_err("%s: %s (%d)", call, fi_strerror(-ret), ret);
	return ret;
}

/* Close what is open. 0, or the first failure. */
static int close_unit(struct unit *unit)
{
	int ret = unit->domain ? unit_close(&unit->domain->fid, "fi_close of the domain") : 0;
	int fabric_ret = unit->fabric ? unit_close(&unit->fabric->fid, "fi_close of the fabric") : 0;

	fi_freeinfo(unit->info);
	return ret ? ret : fabric_ret;
}

/* Run one test and print its line; whether it failed. */
static bool run_test(struct unit *unit, const struct unit_test *test, size_t number)
{
	int ret;

	skip_reason = NULL;
	ret = test->run(unit);
	if (skip_reason)
		printf("ok %zu - %s # SKIP %s\n", number, test->name, skip_reason);
	else
		printf("%sok %zu - %s\n", ret ? "not " : "", number, test->name);
	fflush(stdout);
	return ret && !skip_reason;
}

static int run_tests(struct unit *unit, const struct unit_program *program)
{
	bool failed = false;
	size_t i;

	printf("1..%zu\n", program->test_cnt + program->more_test_cnt);
	for (i = 0; i < program->test_cnt; i++)
		failed |= run_test(unit, &program->tests[i], i + 1);
	for (i = 0; i < program->more_test_cnt; i++)
		failed |= run_test(unit, &program->more_tests[i], program->test_cnt + i + 1);
	return failed ? EXIT_FAILED : 0;
}

/* Take one option. 0 or -FI_EINVAL, with a message. */
static int take_option(struct unit *unit, int key, const char *arg)
{
	switch (key) {
	case 'p':
		unit->provider = arg;
		break;
	case 'f':
		unit->fabric_name = arg;
		break;
	case 'd':
		unit->domain_name = arg;
		break;
	case 's':
		unit->src = arg;
		break;
	case 'g':
		unit->good = arg;
		break;
	case 'G':
		unit->bad = arg;
		break;
	case 'e':
		return pp_parse_ep_type(arg, &unit->ep_type);
	case 'n':
		return util_parse_number("-n (a number)", arg, 1, MAX_CNT, &unit->cnt);
	}
	return 0;
}

/* The options of a program: the common ones behind its own. */
static const struct util_opt *program_options(const struct unit_program *program)
{
	static struct util_opt table[sizeof(options) / sizeof(options[0]) + 1 +
				     sizeof(address_options) / sizeof(address_options[0])];
	struct util_opt *next = table;
	const struct util_opt *more;

	if (program->cnt_help)
		*next++ = (struct util_opt) { 'n', "number", "NUMBER", program->cnt_help };
	for (more = address_options; program->addresses && more->help; more++)
		*next++ = *more;
	memcpy(next, options, sizeof(options));
	return table;
}

int unit_main(int argc, char **argv, const struct unit_program *program)
{
	const struct util_opt *table = program_options(program);
	struct unit unit = { .src = "127.0.0.1", .cnt = program->cnt, .ep_type = program->ep_type };
	int key, code;

	util_init(argv[0]);
	while ((key = util_getopt(argc, argv, table)) != -1) {
		if (key == 'h') {
			util_help(stdout, usage, program->about, table);
			return 0;
		}
		if (key == '?' || take_option(&unit, key, optarg))
			return util_bad_usage();
	}
	code = -open_unit(&unit, program);
	if (!code)
		code = run_tests(&unit, program);
	if (close_unit(&unit) && !code)
		code = EXIT_FAILED;
	return code;
}
