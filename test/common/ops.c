/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Every slot of every table gets an entry, a provider's own entries stay, and the filled ones say -FI_ENOSYS.
 */
#include "unit.h"

#include <rdma/fi_errno.h>
#include "common/op/op.h"
#include "common/ops/ops.h"

/* Tables are a size and then function pointers: none may be left NULL. */
static void assert_full(const void *table, size_t size)
{
	void *const *slot = (void *const *) ((const char *) table + sizeof(size_t));

	assert_int_equal(*(const size_t *) table, size);
	for (size_t i = 0; i < (size - sizeof(size_t)) / sizeof(*slot); i++)
		assert_non_null(slot[i]);
}

#define CHECK(type) do {			\
	static type table;			\
						\
	FAB_OPS_FILL(&table);			\
	assert_full(&table, sizeof(table));	\
} while (0)

static void no_slot_is_left_empty(void **state)
{
	(void) state;
	CHECK(struct fi_ops);
	CHECK(struct fi_ops_fabric);
	CHECK(struct fi_ops_domain);
	CHECK(struct fi_ops_mr);
	CHECK(struct fi_ops_av);
	CHECK(struct fi_ops_cq);
	CHECK(struct fi_ops_cntr);
	CHECK(struct fi_ops_eq);
	CHECK(struct fi_ops_ep);
	CHECK(struct fi_ops_cm);
	CHECK(struct fi_ops_msg);
	CHECK(struct fi_ops_tagged);
	CHECK(struct fi_ops_rma);
	CHECK(struct fi_ops_atomic);
	CHECK(struct fi_ops_collective);
}

static void tables_of_nothing_are_complete_from_the_start(void **state)
{
	struct fid_ep ep = { .cm = &fab_no_cm, .msg = &fab_no_msg, .tagged = &fab_no_tagged, .rma = &fab_no_rma,
			     .atomic = &fab_no_atomic, .collective = &fab_no_collective };
	size_t count;

	(void) state;
	assert_full(&fab_no_cm, sizeof(fab_no_cm));
	assert_full(&fab_no_atomic, sizeof(fab_no_atomic));
	assert_int_equal(fi_send(&ep, NULL, 0, NULL, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_trecv(&ep, NULL, 0, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_read(&ep, NULL, 0, NULL, 0, 0, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_atomicvalid(&ep, FI_INT8, FI_SUM, &count), -FI_ENOSYS);
	assert_int_equal(fi_compare_atomicmsg(&ep, NULL, NULL, NULL, 0, NULL, NULL, 0, 0), -FI_ENOSYS);
	assert_int_equal(fi_barrier(&ep, 0, NULL), -FI_ENOSYS);
	assert_int_equal(fi_connect(&ep, NULL, NULL, 0), -FI_ENOSYS);
}

static int own_close(struct fid *fid)
{
	(void) fid;
	return 7;
}

static void what_is_there_stays(void **state)
{
	static struct fi_ops ops = { .close = own_close };
	struct fid fid = { .ops = &ops };

	(void) state;
	FAB_OPS_FILL(&ops);
	FAB_OPS_FILL(&ops);
	assert_int_equal(fi_close(&fid), 7);
	assert_int_equal(fi_control(&fid, 0, NULL), -FI_ENOSYS);
	ops.size = 24;
	FAB_OPS_FILL(&ops);
	assert_int_equal(ops.size, 24);
}

/* The receive side reports to another queue than the send side: fab_ep_complete() tells them apart by the code. */
static void operations_are_described(void **state)
{
	(void) state;
	for (unsigned code = 0; code < FAB_OP_MAX; code++) {
		const struct fab_op_desc *desc = &fab_op_desc[code];

		assert_non_null(desc->name);
		assert_int_equal(!!(desc->cq_flags & (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)),
				 code >= FAB_OP_RECV);
		assert_int_equal(__builtin_popcountll(desc->cq_flags), code == FAB_OP_COLLECTIVE ? 1 : 2);
		assert_true(desc->cntr < FAB_CNTR_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_slot_is_left_empty),
		cmocka_unit_test(tables_of_nothing_are_complete_from_the_start),
		cmocka_unit_test(what_is_there_stays),
		cmocka_unit_test(operations_are_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
