/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_check_hmem: does the provider take the memory of devices (FI_HMEM)? Exit code 0: yes; 61 (FI_ENODATA): no. */
#include "lib/unit.h"

#include <rdma/fi_errno.h>

static int has_hmem(struct unit *unit)
{
	return unit->info->caps & FI_HMEM ? 0 : unit_fail(0, "an interface without the capability that was asked for");
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = { { "FI_HMEM is offered", has_hmem } };
	static const struct unit_program program = {
		.about = "Exit with 0 when the provider has FI_HMEM, with 61 when not.",
		.caps = FI_MSG | FI_HMEM,
		.tests = tests,
		.test_cnt = 1,
	};

	return unit_main(argc, argv, &program);
}
