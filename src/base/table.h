/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hash tables of objects that contain their own entry, and arrays that grow with their largest index. Adding and
 * finding are O(1) on average. A table that finds no memory to grow gets slower and still works. The owner serialises
 * all calls. An object in a table must not move in memory.
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

/* The part of an object that links it into a table. While it is in no table, link is as fab_list_init() leaves it. */
struct fab_entry {
	struct fab_list link;		/* in its bucket, with others of any hash */
	uint64_t hash;
};

struct fab_table {
	struct fab_list *bucket;	/* owned */
	uint64_t mask;			/* buckets less one */
	uint64_t cnt;			/* entries */
};

/* Make an empty table. 0, or -ENOMEM; after that fab_table_fini() is not needed, and harmless. */
int fab_table_init(struct fab_table *table);

/* Free the table's buckets. The caller owns the entries, and has removed them before. */
void fab_table_fini(struct fab_table *table);

/* Add entry, which is in no table, under the hash of its key. The table does not look for equal keys. Cannot fail. */
void fab_table_add(struct fab_table *table, struct fab_entry *entry, uint64_t hash);

/* Remove entry. Nothing happens if it is in no table. */
void fab_table_remove(struct fab_table *table, struct fab_entry *entry);

/* Remove all entries, and call drop with each. drop may free its entry and may remove others, but must not add any. */
void fab_table_clear(struct fab_table *table, void (*drop)(struct fab_entry *entry));

/* Call fn with entries and arg, in no particular order, until it returns true. fn may remove its own entry and free it;
 * it must not add entries, or remove others. True if a call returned true. */
bool fab_table_any(const struct fab_table *table, bool (*fn)(struct fab_entry *entry, void *arg), void *arg);

/* The list that holds the entries of this hash, and others: walk it with fab_list_for_each() and compare the keys. */
static inline struct fab_list *fab_table_bucket(const struct fab_table *table, uint64_t hash)
{
	return &table->bucket[hash & table->mask];
}

/*
 * Grow an array until it has an element at index. array is the address of the pointer to it, which may be NULL. The
 * array has *room elements of size bytes each. Afterwards *room is a power of two, at least 8, and the new elements are
 * zero. 0, or -ENOMEM with everything unchanged. The caller frees the array.
 */
int fab_grow(void *array, size_t *room, size_t index, size_t size);

#endif
