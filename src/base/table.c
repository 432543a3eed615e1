/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See table.h. Buckets double when there are more entries than buckets.
 */
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"

#define BUCKETS_MIN	16
#define ROOM_MIN	8

/* Replace the buckets by cnt new ones. 0 or -ENOMEM. */
static int table_resize(struct fab_table *table, uint64_t cnt)
{
	struct fab_list *bucket = malloc(cnt * sizeof(*bucket)), *link;
	struct fab_table old = *table;

	if (!bucket)
		return -ENOMEM;
	for (uint64_t i = 0; i < cnt; i++)
		fab_list_init(&bucket[i]);
	table->bucket = bucket;
	table->mask = cnt - 1;
	for (uint64_t i = 0; old.bucket && i <= old.mask; i++) {
		while ((link = fab_list_pop_front(&old.bucket[i]))) {
			uint64_t hash = fab_container(link, struct fab_entry, link)->hash;

			fab_list_add_tail(fab_table_bucket(table, hash), link);
		}
	}
	free(old.bucket);
	return 0;
}

int fab_table_init(struct fab_table *table)
{
	*table = (struct fab_table) { 0 };
	return table_resize(table, BUCKETS_MIN);
}

void fab_table_fini(struct fab_table *table)
{
	free(table->bucket);
	*table = (struct fab_table) { 0 };
}

void fab_table_add(struct fab_table *table, struct fab_entry *entry, uint64_t hash)
{
	if (table->cnt > table->mask)
		table_resize(table, (table->mask + 1) * 2);	/* on failure the table is too full and slower, but
								 * works */
	entry->hash = hash;
	fab_list_add_tail(fab_table_bucket(table, hash), &entry->link);
	table->cnt++;
}

void fab_table_remove(struct fab_table *table, struct fab_entry *entry)
{
	table->cnt -= !fab_list_empty(&entry->link);
	fab_list_remove(&entry->link);
}

void fab_table_clear(struct fab_table *table, void (*drop)(struct fab_entry *entry))
{
	struct fab_list *link;

	for (uint64_t i = 0; table->bucket && i <= table->mask; i++) {
		while ((link = fab_list_pop_front(&table->bucket[i]))) {
			table->cnt--;
			drop(fab_container(link, struct fab_entry, link));
		}
	}
}

bool fab_table_any(const struct fab_table *table, bool (*fn)(struct fab_entry *entry, void *arg), void *arg)
{
	struct fab_list *link, *next;

	for (uint64_t i = 0; table->bucket && i <= table->mask; i++) {
		fab_list_for_each_safe(&table->bucket[i], link, next) {
			if (fn(fab_container(link, struct fab_entry, link), arg))
				return true;
		}
	}
	return false;
}

int fab_grow(void *array, size_t *room, size_t index, size_t size)
{
	size_t want;
	char *bytes;

	if (index < *room)
		return 0;
	if (index >= SIZE_MAX / 2 / size)
		return -ENOMEM;
	want = fab_max(fab_pow2_up(index + 1), (uint64_t) ROOM_MIN);
	memcpy(&bytes, array, sizeof(bytes));
	bytes = realloc(bytes, want * size);
	if (!bytes)
		return -ENOMEM;
	memset(bytes + *room * size, 0, (want - *room) * size);
	memcpy(array, &bytes, sizeof(bytes));
	*room = want;
	return 0;
}
