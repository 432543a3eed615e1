/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabrics and domains: who may close when, which attributes are refused, which engines there are and what lock they
 * have.
 */
#include "unit.h"

#include <rdma/fi_errno.h>
#include "offer.h"
#include "world.h"
#include "common/memory/memory.h"

static struct fi_ops fid_ops;
static struct fi_ops_domain domain_ops;

static void parents_stay_while_children_live(void **state)
{
	struct world world;
	struct fid_cq *cq;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	cq = open_cq(&world);
	assert_int_equal(fab_fabric_fini(&world.fabric), -FI_EBUSY);
	assert_int_equal(fab_domain_fini(&world.domain), -FI_EBUSY);
	assert_int_equal(fi_close(&cq->fid), 0);
	world_close(&world);
}

static void open_objects_are_found_by_name_and_handle(void **state)
{
	struct fi_provider other = { .name = "other" };
	struct world world;

	(void) state;
	assert_null(fab_fabric_find(&test_prov, NULL, NULL));
	world_open(&world, &(struct world_attr) { 0 });
	assert_ptr_equal(fab_fabric_find(&test_prov, NULL, "192.0.2.0/24"), &world.fabric.fabric_fid);
	assert_ptr_equal(fab_fabric_find(&test_prov, &world.fabric.fabric_fid, NULL), &world.fabric.fabric_fid);
	assert_null(fab_fabric_find(&test_prov, NULL, "other"));
	assert_null(fab_fabric_find(&other, NULL, NULL));
	assert_ptr_equal(fab_domain_find(&test_prov, NULL, "192.0.2.0/24", "eth0"), &world.domain.domain_fid);
	assert_null(fab_domain_find(&test_prov, NULL, "192.0.2.0/24", "eth1"));
	assert_null(fab_domain_find(&test_prov, NULL, "other", "eth0"));
	assert_null(fab_domain_find(&test_prov, (struct fid_domain *) &world, NULL, NULL));
	world_close(&world);
	assert_null(fab_fabric_find(&test_prov, NULL, NULL));
}

/* ---- attributes ---- */

static int try_domain(struct world *world, const struct fi_info *info)
{
	const struct fab_domain_ops tables = { .fid = &fid_ops, .domain = &domain_ops, .mr = &fab_mr_ops };
	struct fab_domain domain = { 0 };
	int ret;

	ret = fab_domain_init(&domain, &world->fabric, info, &tables, NULL);
	if (!ret)
		assert_int_equal(fab_domain_fini(&domain), 0);
	return ret;
}

static void values_that_do_not_exist_are_refused(void **state)
{
	struct world world;
	struct fi_info *info, bare = { 0 };

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	assert_int_equal(try_domain(&world, &bare), -FI_EINVAL);
	for (int i = 0; i < 8; i++) {
		info = fi_dupinfo(world.info);
		switch (i) {
		case 0:
			info->domain_attr->threading = 6;
			break;
		case 1:
			info->domain_attr->control_progress = 4;
			break;
		case 2:
			info->domain_attr->data_progress = 99;
			break;
		case 3:
			info->domain_attr->resource_mgmt = 3;
			break;
		case 4:
			info->domain_attr->av_type = 3;
			break;
		case 5:
			info->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_LOCAL;
			break;
		case 6:
			info->domain_attr->mr_mode = 1 << 20;
			break;
		default:
			free(info->domain_attr->name);
			info->domain_attr->name = NULL;
		}
		assert_int_equal(try_domain(&world, info), -FI_EINVAL);
		fi_freeinfo(info);
	}
	assert_int_equal(try_domain(&world, world.info), 0);
	world_close(&world);
}

/* ---- engines: the table at the head of fabric.h ---- */

static const struct {
	enum fi_threading threading;
	enum fi_progress control, data;
	enum fi_ep_type type;
	bool per_cq;			/* a queue that settles leaves the domain's engine */
	enum fab_lock_kind lock;	/* of the engine that it settles on */
} engines[] = {
	{ FI_THREAD_SAFE, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_EP_RDM, false, FAB_LOCK_MUTEX },
	{ FI_THREAD_FID, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_EP_RDM, false, FAB_LOCK_MUTEX },
	{ FI_THREAD_ENDPOINT, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_EP_RDM, false, FAB_LOCK_OWNED },
	{ FI_THREAD_ENDPOINT, FI_PROGRESS_CONTROL_UNIFIED, FI_PROGRESS_MANUAL, FI_EP_RDM, false, FAB_LOCK_OWNED },
	{ FI_THREAD_ENDPOINT, FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO, FI_EP_RDM, false, FAB_LOCK_MUTEX },
	{ FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_EP_RDM, false, FAB_LOCK_BIASED },
	{ FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_EP_MSG, false, FAB_LOCK_BIASED },
	{ FI_THREAD_DOMAIN, FI_PROGRESS_CONTROL_UNIFIED, FI_PROGRESS_MANUAL, FI_EP_MSG, false, FAB_LOCK_NONE },
	{ FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO, FI_EP_RDM, false, FAB_LOCK_MUTEX },
	{ FI_THREAD_COMPLETION, FI_PROGRESS_MANUAL, FI_PROGRESS_MANUAL, FI_EP_RDM, true, FAB_LOCK_BIASED },
	{ FI_THREAD_COMPLETION, FI_PROGRESS_CONTROL_UNIFIED, FI_PROGRESS_MANUAL, FI_EP_RDM, true, FAB_LOCK_NONE },
	{ FI_THREAD_COMPLETION, FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO, FI_EP_RDM, false, FAB_LOCK_MUTEX },
};

static void engines_and_locks_follow_threading_and_progress(void **state)
{
	struct world world;
	struct fid_cq *a, *b;
	struct fab_engine *engine;

	(void) state;
	for (size_t i = 0; i < fab_countof(engines); i++) {
		world_open(&world, &(struct world_attr) {
			   .threading = engines[i].threading, .control_progress = engines[i].control,
			   .data_progress = engines[i].data, .type = engines[i].type });
		a = open_cq(&world);
		b = open_cq(&world);
		assert_ptr_equal(fab_container(a, struct fab_cq, cq_fid)->wait.engine, &world.domain.engine);
		engine = settle_cq(&world, a);
		assert_int_equal(engine != settle_cq(&world, b), engines[i].per_cq);
		assert_int_equal(engine != &world.domain.engine, engines[i].per_cq);
		assert_ptr_equal(engine->lock.ops, fab_lock_kinds[engines[i].lock]);
		if (engines[i].per_cq)
			assert_ptr_equal(world.domain.engine.lock.ops, fab_lock_kinds[FAB_LOCK_MUTEX]);
		fab_domain_quiesce(&world.domain);
		fi_close(&a->fid);
		fi_close(&b->fid);
		assert_true(fab_list_empty(&world.domain.engines.list));
		world_close(&world);
	}
}

static void no_memory_opens_nothing(void **state)
{
	struct world world;
	int ret = -FI_ENOMEM;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	for (long n = 0; ret; n++) {
		fail_alloc(n);
		ret = try_domain(&world, world.info);
		fail_alloc(-1);
		assert_true(!ret || ret == -FI_ENOMEM);
		assert_int_equal(atomic_load(&world.fabric.ref), 1);
	}
	world_close(&world);
}

static void only_event_queues_of_the_same_fabric_are_bound(void **state)
{
	struct world world, other;
	struct fid_eq *eq;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	world_open(&other, &(struct world_attr) { 0 });
	eq = open_eq(&other);
	assert_int_equal(fi_domain_bind(&world.domain.domain_fid, &eq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_domain_bind(&world.domain.domain_fid, &world.fabric.fabric_fid.fid, 0), -FI_EINVAL);
	fi_close(&eq->fid);
	world_close(&other);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parents_stay_while_children_live),
		cmocka_unit_test(open_objects_are_found_by_name_and_handle),
		cmocka_unit_test(values_that_do_not_exist_are_refused),
		cmocka_unit_test(engines_and_locks_follow_threading_and_progress),
		cmocka_unit_test(no_memory_opens_nothing),
		cmocka_unit_test(only_event_queues_of_the_same_fabric_are_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
