/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * base/pool.h: bounds, growth, alignment, and what memory is touched.
 */
#include "base/unit.h"

#include "base/bits.h"
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void pool_hands_out_no_object_twice(void **state)
{
	enum { CNT = 1000 };
	struct fab_pool pool;
	char *objects[CNT];
	int i;

	(void) state;
	fab_pool_init(&pool, &(struct fab_pool_attr) { .size = 24, .chunk_cnt = 3 });
	for (i = 0; i < CNT; i++) {
		objects[i] = fab_pool_get(&pool);
		assert_non_null(objects[i]);
		memset(objects[i], i, 24);
	}
	assert_int_equal(pool.out_cnt, CNT);
	for (i = 0; i < CNT; i++)
		assert_true(objects[i][0] == (char) i && objects[i][23] == (char) i);
	for (i = 0; i < CNT; i++)
		fab_pool_put(&pool, objects[i]);
	assert_int_equal(pool.out_cnt, 0);
	fab_pool_fini(&pool);
}

static void pool_gives_the_warmest_object_first(void **state)
{
	struct fab_pool pool;
	void *a, *b;

	(void) state;
	fab_pool_init(&pool, &(struct fab_pool_attr) { .size = 8 });
	a = fab_pool_get(&pool);
	b = fab_pool_get(&pool);
	fab_pool_put(&pool, a);
	fab_pool_put(&pool, b);
	assert_ptr_equal(fab_pool_get(&pool), b);
	assert_ptr_equal(fab_pool_get(&pool), a);
	fab_pool_fini(&pool);
}

/* Neither the bound nor the way to it may depend on how chunks double. */
static void pool_stops_exactly_at_max_cnt(void **state)
{
	struct fab_pool pool;
	void *object = NULL;
	size_t i;

	(void) state;
	fab_pool_init(&pool, &(struct fab_pool_attr) { .size = 8, .max_cnt = 37, .chunk_cnt = 5 });
	for (i = 0; i < 37; i++) {
		assert_false(fab_pool_full(&pool));
		object = fab_pool_get(&pool);
		assert_non_null(object);
	}
	assert_true(fab_pool_full(&pool));
	assert_null(fab_pool_get(&pool));
	fab_pool_put(&pool, object);
	assert_ptr_equal(fab_pool_get(&pool), object);
	assert_null(fab_pool_get(&pool));
	fab_pool_fini(&pool);
}

static void pool_aligns(void **state)
{
	struct fab_pool pool;
	uintptr_t object;
	int i;

	(void) state;
	fab_pool_init(&pool, &(struct fab_pool_attr) { .size = 65, .align = 64 });
	for (i = 0; i < 100; i++) {
		object = (uintptr_t) fab_pool_get(&pool);
		assert_int_equal(object % 64, 0);
	}
	fab_pool_fini(&pool);
}

/* A size that no memory can hold is refused like any other lack of memory, without a wrap-around. */
static void pool_survives_absurd_sizes(void **state)
{
	struct fab_pool pool;

	(void) state;
	fab_pool_init(&pool, &(struct fab_pool_attr) { .size = SIZE_MAX / 4, .chunk_cnt = 64 });
	assert_null(fab_pool_get(&pool));
	assert_false(fab_pool_full(&pool));
	fab_pool_fini(&pool);
}

/* Of a large chunk only the pages of objects that were handed out are in memory. */
static void pool_touches_only_what_it_hands_out(void **state)
{
	enum { SIZE = 4096, CNT = 4096 };
	size_t page = (size_t) sysconf(_SC_PAGESIZE), pages = SIZE * CNT / page, resident = 0, i;
	unsigned char *map = malloc(pages);
	struct fab_pool pool;
	void *object;
	char *start;

	(void) state;
#ifdef FAB_ASAN
	free(map);
	unit_skip("AddressSanitizer has pages of its own");
#endif
	assert_non_null(map);
	fab_pool_init(&pool, &(struct fab_pool_attr) { .size = SIZE, .align = SIZE, .chunk_cnt = CNT });
	object = fab_pool_get(&pool);
	memset(object, 1, SIZE);
	start = (char *) fab_align((uintptr_t) object, page);
	assert_return_code(mincore(start, SIZE * CNT - page, map), 0);
	for (i = 0; i < pages - 1; i++)
		resident += map[i] & 1;
	assert_in_range(resident, 1, pages / 4);	/* a huge page may come whole */
	fab_pool_fini(&pool);
	free(map);
}

static void count_marks(void *object, void *arg)
{
	*(size_t *) arg += *(char *) object == 'x';
}

static void pool_shows_each_object_once(void **state)
{
	struct fab_pool pool;
	size_t marks = 0, cnt = 0;
	void *object;

	(void) state;
	fab_pool_init(&pool, &(struct fab_pool_attr) { .size = 24, .align = 64, .max_cnt = 100, .chunk_cnt = 3 });
	for (; (object = fab_pool_get(&pool)); cnt++)
		memset(object, cnt % 2 ? 'x' : '.', 24);
	assert_int_equal(cnt, 100);
	fab_pool_each(&pool, count_marks, &marks);
	assert_int_equal(marks, 50);
	fab_pool_fini(&pool);
}

static void pool_gives_its_memory_back_and_goes_on(void **state)
{
	struct fab_pool_chunk *chunks = NULL;
	struct fab_pool pool;
	void *object[100];
	int cnt;

	(void) state;
	fab_pool_init(&pool, &(struct fab_pool_attr) { .size = 24, .chunk_cnt = 3 });
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 100; i++)
			assert_non_null(object[i] = fab_pool_get(&pool));
		assert_in_range(pool.made_cnt, 100, 300);
		for (int i = 0; i < 100; i++)
			fab_pool_put(&pool, object[i]);
		fab_pool_detach(&pool, &chunks);
		assert_int_equal(pool.made_cnt, 0);
	}
	for (cnt = 0; chunks; cnt++)
		fab_pool_free_chunk(&chunks);
	assert_in_range(cnt, 2 * 2, 2 * 100);
	fab_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pool_hands_out_no_object_twice),
		cmocka_unit_test(pool_gives_the_warmest_object_first),
		cmocka_unit_test(pool_stops_exactly_at_max_cnt),
		cmocka_unit_test(pool_aligns),
		cmocka_unit_test(pool_survives_absurd_sizes),
		cmocka_unit_test(pool_shows_each_object_once),
		cmocka_unit_test(pool_gives_its_memory_back_and_goes_on),
		cmocka_unit_test(pool_touches_only_what_it_hands_out),
	};

	return cmocka_run_group_tests_name("base/pool", tests, NULL, NULL);
}
