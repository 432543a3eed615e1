/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Numbers for pointers that a peer will name, and numbers that it makes up.
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/unit.h"
#include "tcp/stream/idmap.h"

static uint64_t object[TCP_IDMAP_MAX + 1];

static void a_number_stands_for_its_pointer_until_deleted(void **state)
{
	struct tcp_idmap map;
	uint32_t id[100];

	(void) state;
	tcp_idmap_init(&map);
	for (int i = 0; i < 100; i++)
		assert_int_equal(tcp_idmap_add(&map, &object[i], &id[i]), 0);
	for (int i = 0; i < 100; i++)
		assert_ptr_equal(tcp_idmap_get(&map, id[i]), &object[i]);
	for (int i = 0; i < 100; i += 2)
		assert_ptr_equal(tcp_idmap_del(&map, id[i]), &object[i]);
	for (int i = 0; i < 100; i++)
		assert_ptr_equal(tcp_idmap_get(&map, id[i]), i % 2 ? &object[i] : NULL);
	assert_int_equal(map.cnt, 50);
	/* what was given back is used before the table grows */
	for (int i = 0; i < 50; i++) {
		assert_int_equal(tcp_idmap_add(&map, &object[i], &id[0]), 0);
		assert_true(id[0] < 100);
	}
	tcp_idmap_fini(&map);
}

static void made_up_numbers_are_nothing(void **state)
{
	struct tcp_idmap map;
	uint32_t id;

	(void) state;
	tcp_idmap_init(&map);
	assert_null(tcp_idmap_get(&map, 0));
	assert_null(tcp_idmap_del(&map, 0));
	assert_int_equal(tcp_idmap_add(&map, object, &id), 0);
	assert_null(tcp_idmap_get(&map, id + 1));
	assert_null(tcp_idmap_get(&map, UINT32_MAX));
	assert_null(tcp_idmap_del(&map, 1u << 30));
	assert_ptr_equal(tcp_idmap_del(&map, id), object);
	assert_null(tcp_idmap_del(&map, id));
	assert_int_equal(map.cnt, 0);
	tcp_idmap_fini(&map);
}

static void there_is_a_maximum(void **state)
{
	struct tcp_idmap map;
	uint32_t id;

	(void) state;
	tcp_idmap_init(&map);
	for (size_t i = 0; i < TCP_IDMAP_MAX; i++)
		assert_int_equal(tcp_idmap_add(&map, &object[i], &id), 0);
	assert_int_equal(tcp_idmap_add(&map, &object[TCP_IDMAP_MAX], &id), -FI_EAGAIN);
	tcp_idmap_del(&map, 17);
	assert_int_equal(tcp_idmap_add(&map, &object[TCP_IDMAP_MAX], &id), 0);
	assert_int_equal(id, 17);
	tcp_idmap_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_stands_for_its_pointer_until_deleted),
		cmocka_unit_test(made_up_numbers_are_nothing),
		cmocka_unit_test(there_is_a_maximum),
	};

	return cmocka_run_group_tests_name("tcp/idmap", tests, NULL, NULL);
}
