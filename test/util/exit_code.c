/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the programs end with: no error is taken for success, nor for a wrong command line. */
#include "../../util/common.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <rdma/fi_errno.h>

/* What is left of it for whoever waits for the process. */
static int seen(int code)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(code);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void small_errors_are_themselves(void **state)
{
	(void) state;
	assert_int_equal(seen(util_exit_code(0)), 0);
	assert_int_equal(seen(util_exit_code(-FI_EIO)), FI_EIO);
	assert_int_equal(seen(util_exit_code(-FI_ENODATA)), FI_ENODATA);
	assert_int_equal(seen(util_exit_code(-FI_ECANCELED)), FI_ECANCELED);
}

static void those_of_libfabric_alone_are_errors_too(void **state)
{
	int err;

	(void) state;
	for (err = FI_ERRNO_OFFSET; err < FI_ERRNO_MAX; err++)
		assert_int_equal(seen(util_exit_code(-err)), FI_EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_errors_are_themselves),
		cmocka_unit_test(those_of_libfabric_alone_are_errors_too),
	};

	return cmocka_run_group_tests_name("util/exit_code", tests, NULL, NULL);
}
