/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The table of an address vector: entries by index, and the reverse table. The table of a shared vector (av_shared.h)
 * is a copy. An entry that another process has added is copied when a lookup, also on the data path, does not find it
 * here. Entries that other processes have removed are removed by the next control call, which also calls the watchers
 * for additions and removals.
 */
#include "common/av/av_table.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/av/av_key.h"
#include "common/av/av_shared.h"

#define SLOTS_MIN 64
#define WORD_BITS 64

/* ---- entries: index -> address ---- */

/* Chunk k holds the indices for which index + FAB_AV_FIRST has its highest bit at log2(FAB_AV_FIRST) + k. */
static unsigned chunk_of(uint64_t index)
{
	return __builtin_clzll(FAB_AV_FIRST) - __builtin_clzll(index + FAB_AV_FIRST);
}

static uint64_t chunk_size(unsigned k)
{
	return (uint64_t) FAB_AV_FIRST << k;
}

static struct fab_av_entry *entry_at(const struct fab_av *av, uint64_t index)
{
	unsigned k = chunk_of(index);

	return atomic_load_explicit(&av->chunk[k], memory_order_relaxed) + (index + FAB_AV_FIRST - chunk_size(k));
}

static void import_new(struct fab_av *av);

/* Copy entries that other processes have added. */
static void import(struct fab_av *av)
{
	pthread_mutex_lock(&av->lock);
	import_new(av);
	pthread_mutex_unlock(&av->lock);
}

static const union fab_sockaddr *addr_here(const struct fab_av *av, fi_addr_t fi_addr)
{
	const struct fab_av_entry *entry;

	if (fi_addr >= atomic_load_explicit(&av->cnt, memory_order_acquire))
		return NULL;
	entry = entry_at(av, fi_addr);
	return atomic_load_explicit(&entry->ref, memory_order_acquire) ? &entry->addr : NULL;
}

const union fab_sockaddr *fab_av_addr(const struct fab_av *av, fi_addr_t fi_addr)
{
	const union fab_sockaddr *addr = addr_here(av, fi_addr);

	if (addr || !av->shared)
		return addr;
	import((struct fab_av *) av);
	return addr_here(av, fi_addr);
}

bool fab_av_table_get(struct fab_av *av, fi_addr_t fi_addr, union fab_sockaddr *addr)
{
	const union fab_sockaddr *there;

	fab_av_sync(av);
	pthread_mutex_lock(&av->lock);
	there = addr_here(av, fi_addr);
	if (there)
		*addr = *there;
	pthread_mutex_unlock(&av->lock);
	return there;
}

bool fab_av_is_firewalled(const struct fab_av *av, fi_addr_t fi_addr)
{
	return fi_addr < atomic_load_explicit(&av->cnt, memory_order_acquire) &&
	       (atomic_load_explicit(&entry_at(av, fi_addr)->ref, memory_order_relaxed) & FAB_AV_FIREWALLED);
}

struct fab_av_extra *fab_av_extra(const struct fab_av *av, fi_addr_t fi_addr)
{
	unsigned k = chunk_of(fi_addr);
	struct fab_av_extra *extra;

	if (fi_addr >= atomic_load_explicit(&av->cnt, memory_order_acquire))
		return NULL;
	extra = atomic_load_explicit(&av->extra[k], memory_order_relaxed);
	return extra ? extra + (fi_addr + FAB_AV_FIRST - chunk_size(k)) : NULL;
}

fi_addr_t fab_av_find_user_id(const struct fab_av *av, fi_addr_t fi_addr)
{
	const struct fab_av_extra *extra = fab_av_extra(av, fi_addr);

	return extra ? atomic_load_explicit(&extra->user_id, memory_order_relaxed) : fi_addr;
}

/* Allocate chunk k, and the bits of its indices. 0 or -FI_ENOMEM. */
static int reserve_chunk(struct fab_av *av, unsigned k)
{
	uint64_t index = chunk_size(k) - FAB_AV_FIRST;
	struct fab_av_entry *chunk;
	struct fab_av_extra *extra;
	uint64_t *used;

	if (atomic_load_explicit(&av->chunk[k], memory_order_relaxed))
		return 0;
	used = realloc(av->used, (index + chunk_size(k)) / 8);
	if (!used)
		return -FI_ENOMEM;
	av->used = used;
	if ((av->user_ids || av->keys) && !atomic_load_explicit(&av->extra[k], memory_order_relaxed)) {
		extra = calloc(chunk_size(k), sizeof(*extra));
		if (!extra)
			return -FI_ENOMEM;
		atomic_store_explicit(&av->extra[k], extra, memory_order_relaxed);
	}
	chunk = calloc(chunk_size(k), sizeof(*chunk));
	if (!chunk)
		return -FI_ENOMEM;
	memset(used + index / WORD_BITS, 0, chunk_size(k) / 8);
	atomic_store_explicit(&av->chunk[k], chunk, memory_order_relaxed);
	return 0;
}

/* Allocate the chunks up to the one of index. 0, -FI_ENOMEM or -FI_ENOSPC. */
static int reserve(struct fab_av *av, uint64_t index)
{
	int ret = index < FAB_AV_MAX ? 0 : -FI_ENOSPC;

	for (unsigned k = 0; !ret && k <= chunk_of(index); k++)
		ret = reserve_chunk(av, k);
	return ret;
}

static bool is_used(const struct fab_av *av, uint64_t index)
{
	return av->used[index / WORD_BITS] >> index % WORD_BITS & 1;
}

/* The lowest free index; it may be the first one that was never used. */
static uint64_t lowest_free(const struct fab_av *av)
{
	uint64_t cnt = atomic_load_explicit(&av->cnt, memory_order_relaxed);
	uint64_t index = av->lowest;

	while (index < cnt && is_used(av, index))
		index = av->used[index / WORD_BITS] == UINT64_MAX ? (index / WORD_BITS + 1) * WORD_BITS : index + 1;
	return fab_min(index, cnt);
}

/* ---- reverse table: address -> index; av->lock held ---- */

/* True if the entry has this address and key. */
static bool entry_is(const struct fab_av *av, uint64_t index, const union fab_sockaddr *addr,
		     const struct fab_auth_key *key)
{
	return fab_addr_equal(&entry_at(av, index)->addr.sa, &addr->sa) && (!av->keys || fab_av_key(av, index) == key);
}

/* The slot of an address and key, or the empty slot where it would be inserted. */
static uint32_t find_slot(const struct fab_av *av, const union fab_sockaddr *addr, const struct fab_auth_key *key)
{
	uint32_t i = fab_addr_hash(&addr->sa) & av->slot_mask;

	while (av->slots[i] && !entry_is(av, av->slots[i] - 1, addr, key))
		i = (i + 1) & av->slot_mask;
	return i;
}

static int grow_slots(struct fab_av *av, uint32_t slot_cnt)
{
	uint32_t *old = av->slots, old_cnt = old ? av->slot_mask + 1 : 0;
	uint32_t *slots = calloc(slot_cnt, sizeof(*slots));

	if (!slots)
		return -FI_ENOMEM;
	av->slots = slots;
	av->slot_mask = slot_cnt - 1;
	for (uint32_t i = 0; i < old_cnt; i++) {
		if (old[i])
			slots[find_slot(av, &entry_at(av, old[i] - 1)->addr, fab_av_key(av, old[i] - 1))] = old[i];
	}
	free(old);
	return 0;
}

/* Empty slot i, and move later entries of the probe sequence up, so that no search ends early at an empty slot. */
static void clear_slot(struct fab_av *av, uint32_t i)
{
	uint32_t mask = av->slot_mask, k = i, home;

	for (;;) {
		k = (k + 1) & mask;
		if (!av->slots[k])
			break;
		home = fab_addr_hash(&entry_at(av, av->slots[k] - 1)->addr.sa) & mask;
		if (((k - home) & mask) >= ((k - i) & mask)) {
			av->slots[i] = av->slots[k];
			i = k;
		}
	}
	av->slots[i] = 0;
}

fi_addr_t fab_av_find_under(struct fab_av *av, const union fab_sockaddr *addr, const struct fab_auth_key *key)
{
	uint32_t index;

	pthread_mutex_lock(&av->lock);
	index = av->slots[find_slot(av, addr, key)];
	if (!index && av->shared) {
		import_new(av);
		index = av->slots[find_slot(av, addr, key)];
	}
	pthread_mutex_unlock(&av->lock);
	return index ? index - 1 : FI_ADDR_NOTAVAIL;
}

/* ---- inserting and removing one address; change_lock held ---- */

static void tell_inserted(struct fab_av *av, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct fab_list *link;

	fab_list_for_each(&av->watches, link) {
		struct fab_av_watch *watch = fab_container(link, struct fab_av_watch, link);

		watch->inserted(watch, fi_addr, addr);
	}
}

static void tell_removed(struct fab_av *av, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct fab_list *link;

	fab_list_for_each(&av->watches, link) {
		struct fab_av_watch *watch = fab_container(link, struct fab_av_watch, link);

		watch->removed(watch, fi_addr, addr);
	}
}

/* Write a new entry and publish it. av->lock held; slot is the empty slot for addr. */
static int av_table_place(struct fab_av *av, uint64_t index, const union fab_sockaddr *addr, struct fab_auth_key *key,
			  uint32_t slot)
{
	struct fab_av_entry *entry;
	struct fab_av_extra *extra;
	int ret;

	ret = reserve(av, index);
	if (ret)
		return ret;
	entry = entry_at(av, index);
	entry->addr = *addr;
	atomic_store_explicit(&entry->ref, 1, memory_order_release);
	extra = atomic_load_explicit(&av->extra[chunk_of(index)], memory_order_relaxed);
	if (extra) {
		extra += index + FAB_AV_FIRST - chunk_size(chunk_of(index));
		extra->key = key;
		atomic_store_explicit(&extra->user_id, index, memory_order_relaxed);
	}
	if (index >= atomic_load_explicit(&av->cnt, memory_order_relaxed))
		atomic_store_explicit(&av->cnt, index + 1, memory_order_release);
	av->slots[slot] = index + 1;
	av->addr_cnt++;
	return 0;
}

static void set_used(struct fab_av *av, uint64_t index)
{
	av->used[index / WORD_BITS] |= FAB_BIT(index % WORD_BITS);
}

/* Add `by` to the reference count that an index has in all processes together; *ref is the new count. 0 or -FI_E*. */
static int share_ref(struct fab_av *av, uint64_t index, const union fab_sockaddr *addr, int by, uint32_t *ref)
{
	struct fab_av_record record = { .ref = 0 };
	int ret = 0;

	if (by < 0 || addr == NULL)
		ret = fab_av_shared_get(av->shared, index, &record);
	else
		record.addr = *addr;
	if (ret)
		return ret;
	record.ref += by;
	*ref = record.ref;
	return fab_av_shared_put(av->shared, index, &record);
}

/* Insert a new address at the lowest free index. av->lock held. 0 or -FI_E*. */
static int publish(struct fab_av *av, const union fab_sockaddr *addr, struct fab_auth_key *key, uint32_t slot,
		   fi_addr_t *fi_addr)
{
	uint64_t index = lowest_free(av);
	uint32_t ref;
	int ret = av->shared ? share_ref(av, index, addr, 1, &ref) : 0;

	if (!ret)
		ret = av_table_place(av, index, addr, key, slot);
	if (ret)
		return ret;
	set_used(av, index);
	av->lowest = index + 1;
	*fi_addr = index;
	return 0;
}

/* Make room for another address in the reverse table. av->lock held. 0 or -FI_ENOMEM. */
static int reserve_slot(struct fab_av *av)
{
	if ((av->addr_cnt + 1) * UINT64_C(4) > (av->slot_mask + UINT64_C(1)) * 3)
		return grow_slots(av, (av->slot_mask + 1) * 2);
	return 0;
}

int fab_av_table_insert(struct fab_av *av, const union fab_sockaddr *addr, struct fab_auth_key *key,
			fi_addr_t *fi_addr)
{
	uint32_t slot, ref;
	bool is_new;
	int ret;

	pthread_mutex_lock(&av->lock);
	ret = reserve_slot(av);
	if (ret)
		goto unlock;
	slot = find_slot(av, addr, key);
	is_new = !av->slots[slot];
	if (is_new) {
		ret = publish(av, addr, key, slot, fi_addr);
	} else {
		*fi_addr = av->slots[slot] - 1;
		if (av->shared)
			ret = share_ref(av, *fi_addr, NULL, 1, &ref);
		else
			atomic_fetch_add_explicit(&entry_at(av, *fi_addr)->ref, 1, memory_order_relaxed);
	}
unlock:
	pthread_mutex_unlock(&av->lock);
	if (!ret && is_new)
		tell_inserted(av, *fi_addr, addr);
	return ret;
}

void fab_av_table_firewall(struct fab_av *av, fi_addr_t fi_addr)
{
	atomic_fetch_or_explicit(&entry_at(av, fi_addr)->ref, FAB_AV_FIREWALLED, memory_order_relaxed);
}

/* Remove an entry whose ref is 0 now from the reverse table. av->lock held. True: the watchers know the entry, and the
 * caller tells them. */
static bool take_out(struct fab_av *av, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	bool told = is_used(av, fi_addr);

	clear_slot(av, find_slot(av, addr, fab_av_key(av, fi_addr)));
	av->addr_cnt--;
	av->used[fi_addr / WORD_BITS] &= ~FAB_BIT(fi_addr % WORD_BITS);
	av->lowest = fab_min(av->lowest, (uint64_t) fi_addr);
	return told;
}

int fab_av_table_remove(struct fab_av *av, fi_addr_t fi_addr)
{
	const union fab_sockaddr *there = fab_av_addr(av, fi_addr);
	union fab_sockaddr addr;
	uint32_t ref = 0;
	int ret = 0;

	if (!there)
		return -FI_EINVAL;
	addr = *there;
	pthread_mutex_lock(&av->lock);
	if (av->shared)
		ret = share_ref(av, fi_addr, NULL, -1, &ref);
	else
		ref = (atomic_load_explicit(&entry_at(av, fi_addr)->ref, memory_order_relaxed) &
		       ~FAB_AV_FIREWALLED) - 1;
	if (!ret && !ref)
		atomic_store(&entry_at(av, fi_addr)->ref, 0);
	else if (!ret && !av->shared)
		atomic_fetch_sub(&entry_at(av, fi_addr)->ref, 1);
	if (!ret && !ref)
		take_out(av, fi_addr, &addr);
	pthread_mutex_unlock(&av->lock);
	if (!ret && !ref)
		tell_removed(av, fi_addr, &addr);
	return ret;
}

/* ---- changes by other processes ---- */

static bool is_here(const struct fab_av *av, uint64_t index)
{
	return index < atomic_load(&av->cnt) && atomic_load(&entry_at(av, index)->ref);
}

/* Copy new entries; av->lock held. sync() handles removals and calls the watchers. */
static void import_new(struct fab_av *av)
{
	uint64_t gen = fab_av_shared_gen(av->shared), cnt;
	struct fab_av_record *records;
	uint32_t slot;
	int ret = 0;

	if (gen == av->import_gen || fab_av_shared_load(av->shared, &records, &cnt))
		return;
	for (uint64_t i = 0; i < cnt && !ret; i++) {
		if (!records[i].ref || is_here(av, i))
			continue;
		ret = reserve_slot(av);
		slot = find_slot(av, &records[i].addr, NULL);
		if (!ret && !av->slots[slot])	/* else the file has this address twice: another process is at fault */
			ret = av_table_place(av, i, &records[i].addr, NULL, slot);
	}
	if (!ret)
		av->import_gen = gen;
	free(records);
}

/* Drop an entry that other processes have removed or replaced. change_lock held. */
static void drop_stale(struct fab_av *av, uint64_t index, const struct fab_av_record *record)
{
	union fab_sockaddr addr = entry_at(av, index)->addr;
	bool told;

	if (record && record->ref && fab_addr_equal(&addr.sa, &record->addr.sa))
		return;
	pthread_mutex_lock(&av->lock);
	atomic_store(&entry_at(av, index)->ref, 0);
	told = take_out(av, index, &addr);
	pthread_mutex_unlock(&av->lock);
	if (told)
		tell_removed(av, index, &addr);
}

/* Bring the copy up to date with the file, and call the watchers. change_lock held. 0 or -FI_E*. */
static int sync(struct fab_av *av)
{
	uint64_t gen = fab_av_shared_gen(av->shared), cnt;
	struct fab_av_record *records;
	int ret;

	if (gen == av->told_gen)
		return 0;
	pthread_mutex_lock(&av->lock);
	ret = fab_av_shared_load(av->shared, &records, &cnt);
	pthread_mutex_unlock(&av->lock);
	if (ret)
		return ret;
	for (uint64_t i = 0; i < atomic_load(&av->cnt); i++) {
		if (is_here(av, i))
			drop_stale(av, i, i < cnt ? &records[i] : NULL);
	}
	free(records);
	pthread_mutex_lock(&av->lock);
	av->import_gen = gen - 1;
	import_new(av);
	ret = av->import_gen == gen - 1 ? -FI_ENOMEM : 0;
	pthread_mutex_unlock(&av->lock);
	for (uint64_t i = 0; i < atomic_load(&av->cnt); i++) {
		bool untold;

		/* the bits may move while the lock is not held: another thread's import may grow them */
		pthread_mutex_lock(&av->lock);
		untold = is_here(av, i) && !is_used(av, i);
		if (untold)
			set_used(av, i);
		pthread_mutex_unlock(&av->lock);
		if (untold)
			tell_inserted(av, i, &entry_at(av, i)->addr);
	}
	if (!ret)
		av->told_gen = gen;
	return ret;
}

void fab_av_sync(struct fab_av *av)
{
	if (!av->shared)
		return;
	pthread_mutex_lock(&av->change_lock);
	sync(av);
	pthread_mutex_unlock(&av->change_lock);
}

int fab_av_change_begin(struct fab_av *av)
{
	int ret;

	pthread_mutex_lock(&av->change_lock);
	if (!av->shared)
		return 0;
	pthread_mutex_lock(&av->lock);
	ret = fab_av_shared_lock(av->shared);
	pthread_mutex_unlock(&av->lock);
	if (ret) {
		pthread_mutex_unlock(&av->change_lock);
		return ret;
	}
	ret = sync(av);
	if (ret)
		fab_av_change_end(av);
	return ret;
}

void fab_av_change_end(struct fab_av *av)
{
	if (av->shared) {
		pthread_mutex_lock(&av->lock);
		/* our own changes are in the copy and the watchers know them; but changes of others may be missing
		 * still */
		if (av->told_gen == fab_av_shared_gen(av->shared))
			av->told_gen = av->import_gen = fab_av_shared_unlock(av->shared);
		else
			fab_av_shared_unlock(av->shared);
		pthread_mutex_unlock(&av->lock);
	}
	pthread_mutex_unlock(&av->change_lock);
}

/* ---- watchers, open and close ---- */

void fab_av_watch(struct fab_av *av, struct fab_av_watch *watch)
{
	fab_av_sync(av);
	pthread_mutex_lock(&av->change_lock);
	fab_list_add_tail(&av->watches, &watch->link);
	pthread_mutex_unlock(&av->change_lock);
}

void fab_av_unwatch(struct fab_av *av, struct fab_av_watch *watch)
{
	pthread_mutex_lock(&av->change_lock);
	fab_list_remove(&watch->link);
	pthread_mutex_unlock(&av->change_lock);
}

int fab_av_table_init(struct fab_av *av, size_t count)
{
	pthread_mutex_init(&av->change_lock, NULL);
	pthread_mutex_init(&av->lock, NULL);
	fab_list_init(&av->watches);
	return grow_slots(av, fab_max((uint64_t) SLOTS_MIN, fab_pow2_up(count * 2)));
}

void fab_av_table_fini(struct fab_av *av)
{
	for (unsigned k = 0; k < FAB_AV_CHUNKS; k++) {
		free(atomic_load(&av->chunk[k]));
		free(atomic_load(&av->extra[k]));
	}
	free(av->used);
	free(av->slots);
	pthread_mutex_destroy(&av->lock);
	pthread_mutex_destroy(&av->change_lock);
}
