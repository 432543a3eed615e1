/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A libibverbs before rdma-core 28 has no ibv_reg_mr_iova2(), which the header's ibv_reg_mr() calls where the compiler
 * does not know the access: that is so in a build without optimisation.
 */
#include <errno.h>
#include "base/unit.h"
#include "verbs/verbs.h"

static struct ibv_pd *pd;
static char memory[64];

static int open_pd(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && *list ? ibv_open_device(*list) : NULL;

	(void) state;
	ibv_free_device_list(list);
	pd = context ? ibv_alloc_pd(context) : NULL;
	return !pd;
}

static int close_pd(void **state)
{
	struct ibv_context *context = pd->context;

	(void) state;
	return ibv_dealloc_pd(pd) || ibv_close_device(context);
}

static void memory_is_registered(void **state)
{
	volatile int access = IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *mr = ibv_reg_mr_iova2(pd, memory, sizeof(memory), (uintptr_t) memory, (unsigned) access);

	(void) state;
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), access);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* What is optional is left out. */
static void optional_access_is_left_out(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr_iova2(pd, memory, sizeof(memory), (uintptr_t) memory,
					     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);

	(void) state;
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void other_addresses_are_refused(void **state)
{
	(void) state;
	assert_null(ibv_reg_mr_iova2(pd, memory, sizeof(memory), 0, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_registered), cmocka_unit_test(optional_access_is_left_out),
		cmocka_unit_test(other_addresses_are_refused),
	};

	return !vrb_lib_ready() || cmocka_run_group_tests(tests, open_pd, close_pd);
}
