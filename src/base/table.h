/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hash tables of objects that carry their own entry, and arrays that grow with their largest index. Adding and finding
 * are O(1) on average. A table that finds no memory to grow gets slower, and goes on. The owner serialises all
 * calls; an object in a table stays where it is in memory.
 *
 * 	struct fab_list *link;
 *
 * 	fab_list_for_each(fab_table_bucket(&table, hash), link)
 * 		if (is_it(fab_container(link, struct thing, entry.link))) ...
 */
#ifndef FAB_BASE_TABLE_H
#define FAB_BASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

/* Place of an object in a table. In none: link as fab_list_init() leaves it. */
struct fab_entry {
	struct fab_list link;		/* in its bucket, with others of any hash */
	uint64_t hash;
};

struct fab_table {
	struct fab_list *bucket;	/* owned */
	uint64_t mask;			/* buckets less one */
	uint64_t cnt;			/* entries */
};

/* Make an empty table. 0, or -ENOMEM: fab_table_fini() is not needed, and does no harm where the table was zero. */
int fab_table_init(struct fab_table *table);

/* Free what the table itself has; the entries are their owner's, who took them out before. */
void fab_table_fini(struct fab_table *table);

/* Put entry, which is in no table, under its key's hash. Equal keys are for the caller to keep out. */
void fab_table_add(struct fab_table *table, struct fab_entry *entry, uint64_t hash);

/* Take entry out; nothing happens where it is in no table. */
void fab_table_remove(struct fab_table *table, struct fab_entry *entry);

/* Take all entries out and hand each to drop, which may free it and may remove others, but adds none. */
void fab_table_clear(struct fab_table *table, void (*drop)(struct fab_entry *entry));

/* Ask all entries, in no order, until fn, which neither adds nor removes, says true. False: none did. */
bool fab_table_any(const struct fab_table *table, bool (*fn)(struct fab_entry *entry, void *arg), void *arg);

/* Where entries of that hash are, among others: walk it with fab_list_for_each() and compare the keys. */
static inline struct fab_list *fab_table_bucket(const struct fab_table *table, uint64_t hash)
{
	return &table->bucket[hash & table->mask];
}

/*
 * Make an array reach an index: *room elements of size bytes are at *array (a pointer to the pointer to them, which
 * may be NULL); there will be a power of two of them, 8 at least, the new ones zero. 0, or -ENOMEM: all is as
 * before.
 */
int fab_grow(void *array, size_t *room, size_t index, size_t size);

#endif
