/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_dom_test: domains open and close. */
#include "lib/unit.h"

#include <rdma/fi_errno.h>

static int open_one(struct unit *unit, struct fid **fid)
{
	struct fid_domain *domain;
	int ret = fi_domain(unit->fabric, unit->info, &domain, NULL);

	if (ret)
		return unit_fail(ret, "fi_domain");
	*fid = &domain->fid;
	return 0;
}

static int open_many(struct unit *unit)
{
	return unit_open_many(unit, unit->cnt, 0, open_one);
}

static int fabric_is_busy(struct unit *unit)
{
	int ret = fi_close(&unit->fabric->fid);

	return ret == -FI_EBUSY ? 0 : unit_fail(ret, "fi_close of a fabric with a domain, which must be -FI_EBUSY");
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "many domains at a time", open_many },
		{ "a fabric with a domain does not close", fabric_is_busy },
	};
	static const struct unit_program program = {
		.about = "Open and close domains.",
		.cnt_help = "domains at a time (default: 32)",
		.cnt = 32,
		.tests = tests,
		.test_cnt = sizeof(tests) / sizeof(tests[0]),
	};

	return unit_main(argc, argv, &program);
}
