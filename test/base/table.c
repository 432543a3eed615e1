/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * base/table.h: what is added is found, before and after the table has grown; arrays that grow.
 */
#include "base/unit.h"

#include <errno.h>
#include <stdlib.h>
#include "base/bits.h"
#include "base/table.h"

#define CNT	1000

struct item {
	uint64_t key;
	struct fab_entry entry;
	bool dropped;
};

static struct item item[CNT];
static struct fab_table table;

/* Few hashes for many keys: what shares one is told apart by its key. */
static uint64_t hash_of(uint64_t key)
{
	return fab_mix64(key % 100);
}

static struct item *find(uint64_t key)
{
	struct fab_list *link;

	fab_list_for_each(fab_table_bucket(&table, hash_of(key)), link) {
		struct item *it = fab_container(link, struct item, entry.link);

		if (it->key == key)
			return it;
	}
	return NULL;
}

static void fill(void)
{
	assert_int_equal(fab_table_init(&table), 0);
	for (uint64_t i = 0; i < CNT; i++) {
		item[i] = (struct item) { .key = i };
		assert_null(find(i));
		fab_table_add(&table, &item[i].entry, hash_of(i));
		assert_ptr_equal(find(i), &item[i]);
	}
}

static void finds_all_after_growing(void **state)
{
	(void) state;
	fill();
	assert_int_equal(table.cnt, CNT);
	assert_true(table.mask + 1 >= CNT / 2);
	for (uint64_t i = 0; i < CNT; i++)
		assert_ptr_equal(find(i), &item[i]);
	assert_null(find(CNT));
	fab_table_fini(&table);
}

static bool is_key(struct fab_entry *entry, void *arg)
{
	return fab_container(entry, struct item, entry)->key == *(uint64_t *) arg;
}

static void any_finds_what_is_there(void **state)
{
	uint64_t there = 700, absent = CNT;

	(void) state;
	assert_false(fab_table_any(&table, is_key, &there));
	fill();
	assert_true(fab_table_any(&table, is_key, &there));
	assert_false(fab_table_any(&table, is_key, &absent));
	fab_table_fini(&table);
}

static bool remove_odd(struct fab_entry *entry, void *arg)
{
	(void) arg;
	if (fab_container(entry, struct item, entry)->key % 2)
		fab_table_remove(&table, entry);
	return false;
}

static void any_lets_entries_remove_themselves(void **state)
{
	(void) state;
	fill();
	assert_false(fab_table_any(&table, remove_odd, NULL));
	assert_int_equal(table.cnt, CNT / 2);
	for (uint64_t i = 0; i < CNT; i++)
		assert_ptr_equal(find(i), i % 2 ? NULL : &item[i]);
	fab_table_fini(&table);
}

static void removes_once(void **state)
{
	(void) state;
	fill();
	for (uint64_t i = 0; i < CNT; i += 2) {
		fab_table_remove(&table, &item[i].entry);
		fab_table_remove(&table, &item[i].entry);
	}
	assert_int_equal(table.cnt, CNT / 2);
	for (uint64_t i = 0; i < CNT; i++)
		assert_ptr_equal(find(i), i % 2 ? &item[i] : NULL);
	fab_table_fini(&table);
}

/* Takes its neighbour along, which is then not handed over. */
static void drop_pair(struct fab_entry *entry)
{
	struct item *it = fab_container(entry, struct item, entry);
	struct item *other = &item[it->key ^ 1];

	assert_false(it->dropped);
	it->dropped = other->dropped = true;
	fab_table_remove(&table, &other->entry);
}

static void clear_hands_over_what_is_left(void **state)
{
	(void) state;
	fill();
	fab_table_clear(&table, drop_pair);
	assert_int_equal(table.cnt, 0);
	for (uint64_t i = 0; i < CNT; i++)
		assert_true(item[i].dropped);
	fab_table_fini(&table);
	fab_table_clear(&table, drop_pair);
}

static void arrays_grow_and_are_zero(void **state)
{
	size_t room = 0;
	int *array = NULL;

	(void) state;
	assert_int_equal(fab_grow(&array, &room, 0, sizeof(*array)), 0);
	assert_int_equal(room, 8);
	array[7] = 7;
	assert_int_equal(fab_grow(&array, &room, 7, sizeof(*array)), 0);
	assert_int_equal(room, 8);
	assert_int_equal(fab_grow(&array, &room, 100, sizeof(*array)), 0);
	assert_int_equal(room, 128);
	for (size_t i = 0; i < room; i++)
		assert_int_equal(array[i], i == 7 ? 7 : 0);
	assert_int_equal(fab_grow(&array, &room, SIZE_MAX / 4, sizeof(*array)), -ENOMEM);
	assert_int_equal(room, 128);
	assert_int_equal(array[7], 7);
	free(array);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_all_after_growing), cmocka_unit_test(any_finds_what_is_there),
		cmocka_unit_test(any_lets_entries_remove_themselves),
		cmocka_unit_test(removes_once),
		cmocka_unit_test(clear_hands_over_what_is_left), cmocka_unit_test(arrays_grow_and_are_zero),
	};

	return cmocka_run_group_tests_name("base/table", tests, NULL, NULL);
}
