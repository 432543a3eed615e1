/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The map of memory regions: thousands are found by their keys, and readers on the data path meet none that is gone.
 */
#include "unit.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include "regions.h"

#define MANY 5000

static void many_regions_are_found(void **state)
{
	static struct fid_mr *mr[MANY];
	struct rng rng = { 5 };
	struct world world;
	struct iovec iov;

	(void) state;
	world_open(&world, &(struct world_attr) { 0 });
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(reg(&world, memory, 64, RMA, i << 12, &mr[i]), 0);
	/* close and open again at random, so that the table has gaps */
	for (int n = 0; n < 20000; n++) {
		uint64_t i = rng_below(&rng, MANY);

		if (mr[i]) {
			assert_int_equal(fi_close(&mr[i]->fid), 0);
			mr[i] = NULL;
		} else {
			assert_int_equal(reg(&world, memory, 64, RMA, i << 12, &mr[i]), 0);
		}
	}
	for (uint64_t i = 0; i < MANY; i++) {
		assert_int_equal(verify(&world, i << 12, 0, 1, FI_REMOTE_READ, &iov), mr[i] ? 0 : -FI_ENOKEY);
		if (mr[i])
			fi_close(&mr[i]->fid);
	}
	assert_int_equal(world.domain.mr_map.cnt, 0);
	world_close(&world);
}

struct reader {
	struct world *world;
	_Atomic bool stop;
};

static void *read_map(void *arg)
{
	struct reader *reader = arg;
	struct iovec iov;
	int ret;

	while (!atomic_load(&reader->stop)) {
		for (uint64_t key = 0; key < 64; key++) {
			ret = verify(reader->world, key, 0, 64, FI_REMOTE_WRITE, &iov);
			assert_true(ret == 0 || ret == -FI_ENOKEY);
			if (!ret)
				assert_ptr_equal(iov.iov_base, memory);
		}
	}
	return NULL;
}

static void readers_never_meet_a_region_that_is_gone(void **state)
{
	struct fid_mr *mr[64];
	struct world world;
	struct reader reader = { &world, false };
	pthread_t thread;

	(void) state;
	world_open(&world, &(struct world_attr) { .threading = FI_THREAD_SAFE });
	assert_int_equal(pthread_create(&thread, NULL, read_map, &reader), 0);
	for (int n = 0; n < 50; n++) {
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(reg(&world, memory, 64, RMA, i, &mr[i]), 0);
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(fi_close(&mr[i]->fid), 0);
	}
	atomic_store(&reader.stop, true);
	pthread_join(thread, NULL);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_regions_are_found),
		cmocka_unit_test(readers_never_meet_a_region_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
