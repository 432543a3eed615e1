/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_cntr_test: counters open, close and count. */
#include "lib/unit.h"

#include <rdma/fi_errno.h>

#define START 1234
#define STEP 7
/* A counter may take a moment to show what was done to it; no longer than this many looks. */
#define LOOKS 1000000

static int open_cntr(struct unit *unit, struct fid_cntr **cntr)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	int ret = fi_cntr_open(unit->domain, &attr, cntr, NULL);

	if (ret == -FI_ENOSYS)
		return unit_skip("the provider has no counters");
	return ret ? unit_fail(ret, "fi_cntr_open") : 0;
}

static int open_one(struct unit *unit, struct fid **fid)
{
	struct fid_cntr *cntr;
	int ret = open_cntr(unit, &cntr);

	if (!ret)
		*fid = &cntr->fid;
	return ret;
}

static int open_many(struct unit *unit)
{
	return unit_open_many(unit, unit->cnt, unit->info->domain_attr->cntr_cnt, open_one);
}

/* Until `read` gives `value`. */
static int expect_value(struct fid_cntr *cntr, uint64_t (*read)(struct fid_cntr *), uint64_t value, const char *what)
{
	uint64_t seen = 0;
	int i;

	for (i = 0; i < LOOKS; i++) {
		seen = read(cntr);
		if (seen == value)
			return 0;
	}
	return unit_fail((int64_t) seen, what);
}

static uint64_t read_value(struct fid_cntr *cntr)
{
	return fi_cntr_read(cntr);
}

static uint64_t read_errors(struct fid_cntr *cntr)
{
	return fi_cntr_readerr(cntr);
}

/* `set` and `add` change what `read` gives, and leave alone what `other` gives. */
static int count(struct unit *unit, int (*set)(struct fid_cntr *, uint64_t), int (*add)(struct fid_cntr *, uint64_t),
		 uint64_t (*read)(struct fid_cntr *), uint64_t (*other)(struct fid_cntr *))
{
	struct fid_cntr *cntr;
	int ret, close_ret;

	ret = open_cntr(unit, &cntr);
	if (ret)
		return ret;
	ret = expect_value(cntr, read, 0, "a new counter");
	if (!ret && set(cntr, START))
		ret = unit_fail(-FI_EOTHER, "set");
	if (!ret)
		ret = expect_value(cntr, read, START, "after set");
	if (!ret && add(cntr, STEP))
		ret = unit_fail(-FI_EOTHER, "add");
	if (!ret)
		ret = expect_value(cntr, read, START + STEP, "after add");
	if (!ret)
		ret = expect_value(cntr, other, 0, "the other value of the counter");
	close_ret = unit_close(&cntr->fid, "fi_close of a counter");
	return ret ? ret : close_ret;
}

static int set_value(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_set(cntr, value);
}

static int add_value(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_add(cntr, value);
}

static int set_errors(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_seterr(cntr, value);
}

static int add_errors(struct fid_cntr *cntr, uint64_t value)
{
	return fi_cntr_adderr(cntr, value);
}

static int count_values(struct unit *unit)
{
	return count(unit, set_value, add_value, read_value, read_errors);
}

static int count_errors(struct unit *unit)
{
	return count(unit, set_errors, add_errors, read_errors, read_value);
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "many counters at a time", open_many },
		{ "set and add change the value", count_values },
		{ "seterr and adderr change the errors", count_errors },
	};
	static const struct unit_program program = {
		.about = "Open, set, add to and read counters.",
		.cnt_help = "counters at a time, no more than the domain says (default: 256)",
		.cnt = 256,
		.tests = tests,
		.test_cnt = sizeof(tests) / sizeof(tests[0]),
	};

	return unit_main(argc, argv, &program);
}
