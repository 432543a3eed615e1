/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The map from keys to regions, and the check of remote accesses. regions.h describes readers and writers of the map.
 *
 * A slot of the table is NULL (a search ends), GONE (its region was removed; a search continues), or a region. At most
 * three quarters of the slots are not NULL.
 */
#include "common/regions/regions.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/clock.h"

#define TABLE_MIN 16

struct fab_mr_table {
	uint64_t mask;			/* slots less one */
	uint64_t used;			/* slots that are not NULL; used by writers only */
	_Atomic(struct fab_mr *) slot[];
};

static struct fab_mr gone;
#define GONE (&gone)

/* ---- the map ---- */

static struct fab_mr_table *table_alloc(uint64_t slot_cnt)
{
	struct fab_mr_table *table = calloc(1, sizeof(*table) + slot_cnt * sizeof(table->slot[0]));

	if (table)
		table->mask = slot_cnt - 1;
	return table;
}

static void table_put(struct fab_mr_table *table, struct fab_mr *mr)
{
	uint64_t i = fab_mix64(mr->mr_fid.key) & table->mask;
	struct fab_mr *there;

	while ((there = atomic_load_explicit(&table->slot[i], memory_order_relaxed)) && there != GONE)
		i = (i + 1) & table->mask;
	if (!there)
		table->used++;
	atomic_store_explicit(&table->slot[i], mr, memory_order_release);
}

static void table_remove(struct fab_mr_table *table, const struct fab_mr *mr)
{
	uint64_t i = fab_mix64(mr->mr_fid.key) & table->mask;

	while (atomic_load_explicit(&table->slot[i], memory_order_relaxed) != mr)
		i = (i + 1) & table->mask;
	atomic_store_explicit(&table->slot[i], GONE, memory_order_relaxed);
}

int fab_mr_map_init(struct fab_mr_map *map, int mr_mode, uint64_t caps, void (*quiesce)(struct fab_mr_map *map))
{
	struct fab_mr_table *table = table_alloc(TABLE_MIN);

	if (!table)
		return -FI_ENOMEM;
	*map = (struct fab_mr_map) {
		.quiesce = quiesce,
		.prov_key = mr_mode & FI_MR_PROV_KEY,
		.virt_addr = mr_mode & FI_MR_VIRT_ADDR,
		.keys_matter = caps & (FI_RMA | FI_ATOMIC),
	};
	pthread_mutex_init(&map->lock, NULL);
	atomic_init(&map->table, table);
	return 0;
}

void fab_mr_map_fini(struct fab_mr_map *map)
{
	if (map->watch)
		map->watch->fini(map);
	free(atomic_load(&map->table));
	pthread_mutex_destroy(&map->lock);
}

struct fab_mr *fab_mr_lookup(struct fab_mr_map *map, uint64_t key)
{
	const struct fab_mr_table *table = atomic_load_explicit(&map->table, memory_order_acquire);
	struct fab_mr *mr;

	for (uint64_t i = fab_mix64(key) & table->mask; ; i = (i + 1) & table->mask) {
		mr = atomic_load_explicit(&table->slot[i], memory_order_acquire);
		if (!mr || (mr != GONE && mr->mr_fid.key == key))
			return mr;
	}
}

/* Make room for another region. *old is the old table, which the caller frees after map->quiesce(), or NULL. map->lock
 * held. 0; -FI_ENOMEM, only if there is no room at all. */
static int map_reserve(struct fab_mr_map *map, struct fab_mr_table **old)
{
	struct fab_mr_table *table = atomic_load_explicit(&map->table, memory_order_relaxed), *bigger;
	struct fab_mr *mr;

	*old = NULL;
	if ((table->used + 1) * 4 <= (table->mask + 1) * 3)
		return 0;
	bigger = table_alloc(fab_max((uint64_t) TABLE_MIN, fab_pow2_up((map->cnt + 1) * UINT64_C(2))));
	if (!bigger)
		return table->used < table->mask ? 0 : -FI_ENOMEM;
	for (uint64_t i = 0; i <= table->mask; i++) {
		mr = atomic_load_explicit(&table->slot[i], memory_order_relaxed);
		if (mr && mr != GONE)
			table_put(bigger, mr);
	}
	atomic_store_explicit(&map->table, bigger, memory_order_release);
	*old = table;
	return 0;
}

/* Choose a random key: a peer that knows a key has access to the region, so keys must not be predictable. */
static uint64_t choose_key(struct fab_mr_map *map)
{
	uint64_t key;

	do
		key = fab_random64();
	while (key == FI_KEY_NOTAVAIL || fab_mr_lookup(map, key));
	return key;
}

int fab_mr_map_add(struct fab_mr_map *map, struct fab_mr *mr, uint64_t requested_key)
{
	struct fab_mr_table *old = NULL;
	int ret = 0;

	pthread_mutex_lock(&map->lock);
	mr->mr_fid.key = map->prov_key ? choose_key(map) : requested_key;
	mr->in_map = !fab_mr_lookup(map, mr->mr_fid.key);
	if (!mr->in_map && map->keys_matter)
		ret = -FI_ENOKEY;
	if (mr->in_map)
		ret = map_reserve(map, &old);
	if (!ret && mr->in_map) {
		table_put(atomic_load_explicit(&map->table, memory_order_relaxed), mr);
		map->cnt++;
	}
	if (old)
		map->quiesce(map);
	free(old);
	pthread_mutex_unlock(&map->lock);
	if (!ret && mr->in_map && map->watch)
		map->watch->opened(map, mr);
	return ret;
}

int fab_mr_map_withdraw(struct fab_mr_map *map, struct fab_mr *mr)
{
	return mr->in_map && map->watch ? map->watch->withdraw(map, mr) : 0;
}

void fab_mr_map_remove(struct fab_mr_map *map, struct fab_mr *mr)
{
	if (!mr->in_map)
		return;
	pthread_mutex_lock(&map->lock);
	table_remove(atomic_load_explicit(&map->table, memory_order_relaxed), mr);
	map->cnt--;
	atomic_fetch_add(&map->gen, 1);
	pthread_mutex_unlock(&map->lock);
	map->quiesce(map);
}

/* ---- remote access ---- */

/* Describe len bytes at offset of the region in iov. 0 or -FI_ETOOSMALL. */
static int find_pieces(const struct fab_mr *mr, size_t offset, size_t len, struct iovec *iov, uint32_t *iov_cnt)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; len; i++) {
		size_t part = mr->iov[i].iov_len;

		if (offset >= part) {
			offset -= part;
			continue;
		}
		if (cnt == *iov_cnt)
			return -FI_ETOOSMALL;
		part = fab_min(part - offset, len);
		iov[cnt].iov_base = (void *) ((uintptr_t) mr->iov[i].iov_base + offset);
		iov[cnt++].iov_len = part;
		len -= part;
		offset = 0;
	}
	*iov_cnt = cnt;
	return 0;
}

int fab_mr_verify(struct fab_mr_map *map, const struct fab_auth_key *proven, uint64_t key, uint64_t addr, size_t len,
		  uint64_t access, struct iovec *iov, uint32_t *iov_cnt, struct fab_mr **mr)
{
	struct fab_mr *found = fab_mr_lookup(map, key);
	uint64_t offset;
	int ret;

	if (!found)
		return -FI_ENOKEY;
	if ((found->access & access) != access || (found->auth_key && found->auth_key != proven))
		return -FI_EACCES;
	offset = addr - found->base;
	if (addr < found->base || offset > found->len || len > found->len - offset)
		return -FI_EINVAL;
	ret = find_pieces(found, offset, len, iov, iov_cnt);
	if (!ret)
		*mr = found;
	return ret;
}

/* ---- raw keys ---- */

int fab_mr_map_raw(const struct fi_mr_map_raw *map_raw)
{
	uint64_t key;

	if (map_raw->key_size != FAB_MR_KEY_SIZE || !map_raw->raw_key || !map_raw->key)
		return -FI_EINVAL;
	memcpy(&key, map_raw->raw_key, FAB_MR_KEY_SIZE);
	*map_raw->key = be64toh(key);
	return 0;
}
