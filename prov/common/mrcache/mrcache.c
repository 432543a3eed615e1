/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A cache of registrations. "Lock" is the monitor's. Nothing is freed under it: what has ended goes into
 * cache->dead, and fab_mrc_reap() takes it from there.
 *
 *   registered --cached--> in use, idle --changed, replaced, evicted--> dead once nobody uses it --> deregistered
 *              --not cached--> in use ------------------------------^
 */
#include "common/mrcache/mrcache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/forks.h"
#include "common/explain/explain.h"

/* False in a child of fork(2): what is registered is the parent's, and a thread that is not here may have been in the
 * middle of a change. */
static bool is_own(const struct fab_mrc *cache)
{
	return cache->forks == fab_fork_cnt;
}

/* Without a monitor nothing is cached, and each registration has one user: there is nothing to guard. */
static void cache_lock(struct fab_mrc *cache)
{
	if (cache->monitor)
		cache->monitor->lock();
}

static void cache_unlock(struct fab_mrc *cache)
{
	if (cache->monitor)
		cache->monitor->unlock();
}

/* ---- tables: lock held ---- */

/* The number of registrations that begin at or before addr. */
static size_t table_upto(const struct fab_mrc_table *table, uintptr_t addr)
{
	size_t low = 0, high = table->cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (table->pin[mid]->start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The registration that contains [start, end), or NULL. Of those that begin early enough, the last one ends last. */
static struct fab_pin *table_find(const struct fab_mrc_table *table, uintptr_t start, uintptr_t end)
{
	size_t cnt = table_upto(table, start);

	return cnt && table->pin[cnt - 1]->end >= end ? table->pin[cnt - 1] : NULL;
}

/* The first registration that ends after addr. */
static size_t table_after(const struct fab_mrc_table *table, uintptr_t addr)
{
	size_t at = table_upto(table, addr);

	while (at && table->pin[at - 1]->end > addr)
		at--;
	return at;
}

static void pin_kill(struct fab_mrc *cache, struct fab_pin *pin)
{
	fab_list_remove(&pin->link);
	pthread_mutex_lock(&cache->dead_lock);
	fab_list_add_tail(&cache->dead, &pin->link);
	atomic_store_explicit(&cache->has_dead, true, memory_order_relaxed);
	pthread_mutex_unlock(&cache->dead_lock);
}

/* Take cnt registrations out of a table. Those in use stay valid for their users. */
static void table_cut(struct fab_mrc *cache, struct fab_mrc_table *table, size_t at, size_t cnt)
{
	for (size_t i = at; i < at + cnt; i++) {
		struct fab_pin *pin = table->pin[i];

		pin->cached = false;
		cache->cnt--;
		cache->size -= pin->end - pin->start;
		if (!pin->user_cnt)
			pin_kill(cache, pin);
	}
	table->cnt -= cnt;
	memmove(&table->pin[at], &table->pin[at + cnt], (table->cnt - at) * sizeof(*table->pin));
}

static struct fab_mrc_table *table_of(struct fab_mrc *cache, uint64_t access)
{
	size_t i = 0;

	while (cache->table[i].access && cache->table[i].access != access) {
		if (++i == FAB_MRC_USES)
			return NULL;
	}
	cache->table[i].access = access;
	return &cache->table[i];
}

/* ---- what the monitor calls: lock held ---- */

static void watch_changed(struct fab_mem_watcher *watcher, uintptr_t start, uintptr_t end)
{
	struct fab_mrc *cache = fab_container(watcher, struct fab_mrc, watcher);
	struct fab_list *link;

	for (size_t i = 0; i < FAB_MRC_USES; i++) {
		struct fab_mrc_table *table = &cache->table[i];
		size_t at = table_after(table, start), last = at;

		while (last < table->cnt && table->pin[last]->start < end)
			last++;
		if (last > at)
			table_cut(cache, table, at, last - at);
	}
	fab_list_for_each(&cache->coming, link) {
		struct fab_pin *pin = fab_container(link, struct fab_pin, link);

		pin->changed |= pin->start < end && pin->end > start;
	}
}

/* Shrink [*start, *end) so that it has no memory of the registration. More than needed stays watched, if the
 * registration begins inside. */
static void spare_pin(const struct fab_pin *pin, uintptr_t *start, uintptr_t *end)
{
	if (pin->end <= *start || pin->start >= *end)
		return;
	if (pin->start <= *start)
		*start = fab_min(pin->end, *end);
	else
		*end = pin->start;
}

static void watch_spare(struct fab_mem_watcher *watcher, uintptr_t *start, uintptr_t *end)
{
	const struct fab_mrc *cache = fab_container(watcher, struct fab_mrc, watcher);
	struct fab_list *link;

	for (size_t i = 0; i < FAB_MRC_USES; i++) {
		const struct fab_mrc_table *table = &cache->table[i];
		size_t at = table_after(table, *start);

		for (; at < table->cnt && table->pin[at]->start < *end && *start < *end; at++)
			spare_pin(table->pin[at], start, end);
	}
	fab_list_for_each(&cache->coming, link)
		spare_pin(fab_container(link, struct fab_pin, link), start, end);
}

/* ---- keeping ---- */

static void pin_evict(struct fab_mrc *cache, struct fab_pin *pin)
{
	struct fab_mrc_table *table = table_of(cache, pin->access);

	table_cut(cache, table, table_upto(table, pin->start) - 1, 1);
	cache->monitor->unwatch(pin->start, pin->end - pin->start);
}

/* Make room for a registration. False: too much is in use. */
static bool make_room(struct fab_mrc *cache, size_t len)
{
	if (len > cache->max_size)
		return false;
	while (cache->cnt >= cache->max_cnt || cache->size > cache->max_size - len) {
		struct fab_pin *pin = fab_list_first(&cache->idle, struct fab_pin, link);

		if (!pin)
			return false;
		pin_evict(cache, pin);
	}
	return true;
}

/* End the registrations that nobody uses. Lock not held. True if there were any. */
static bool drop_idle(struct fab_mrc *cache)
{
	struct fab_pin *pin;
	bool any = false;

	cache_lock(cache);
	while ((pin = fab_list_first(&cache->idle, struct fab_pin, link))) {
		pin_evict(cache, pin);
		any = true;
	}
	cache_unlock(cache);
	fab_mrc_reap(cache);
	return any;
}

/* Keep a registration, in place of those that it contains, unless another contains it. */
static void keep(struct fab_mrc *cache, struct fab_pin *pin)
{
	struct fab_mrc_table *table = table_of(cache, pin->access);
	size_t at, last;

	if (!table || table_find(table, pin->start, pin->end))
		return;
	at = table_upto(table, pin->start);
	if (at && table->pin[at - 1]->start == pin->start)
		at--;
	for (last = at; last < table->cnt && table->pin[last]->end <= pin->end; last++)
		;
	table_cut(cache, table, at, last - at);
	if (!make_room(cache, pin->end - pin->start))
		return;
	at = table_upto(table, pin->start);
	memmove(&table->pin[at + 1], &table->pin[at], (table->cnt - at) * sizeof(*table->pin));
	table->pin[at] = pin;
	table->cnt++;
	cache->cnt++;
	cache->size += pin->end - pin->start;
	pin->cached = true;
}

/* ---- calls ---- */

/* The monitor, which the first registration joins; NULL: there is none. Lock not held. */
static const struct fab_monitor *join(struct fab_mrc *cache)
{
	const struct fab_monitor *monitor;

	if (cache->monitor || !cache->max_cnt)
		return cache->monitor;
	pthread_mutex_lock(&cache->dead_lock);
	if (!cache->asked) {
		cache->asked = true;
		monitor = fab_core_monitor(cache->prov);
		if (!monitor->join(&cache->watcher))
			cache->monitor = monitor;
	}
	pthread_mutex_unlock(&cache->dead_lock);
	return cache->monitor;
}

struct fab_pin *fab_mrc_find(struct fab_mrc *cache, const void *addr, size_t len, uint64_t access)
{
	const struct fab_monitor *monitor = cache->monitor;
	uintptr_t start = (uintptr_t) addr;
	struct fab_pin *pin = NULL;

	if (!monitor || !monitor->quiet())
		return NULL;
	monitor->lock();
	for (size_t i = 0; i < FAB_MRC_USES && cache->table[i].access && !pin; i++) {
		if ((cache->table[i].access & access) == access)
			pin = table_find(&cache->table[i], start, start + len);
	}
	if (pin && !monitor->valid(start, len)) {
		watch_changed(&cache->watcher, start, start + len);
		pin = NULL;
	}
	if (pin && !pin->user_cnt++)
		fab_list_remove(&pin->link);
	monitor->unlock();
	return pin;
}

/* Begin to watch the memory of a registration that is about to be made. False: it will not be cached. */
static bool watch_begin(struct fab_mrc *cache, const struct fab_monitor *monitor, struct fab_pin *pin)
{
	if (!monitor)
		return false;
	monitor->lock();
	fab_list_add_tail(&cache->coming, &pin->link);
	monitor->unlock();
	if (monitor->watch(pin->start, pin->end - pin->start))
		return true;
	monitor->lock();
	fab_list_remove(&pin->link);
	monitor->unlock();
	return false;
}

/* The registration has been made, or not. Keep it if it is good. */
static void watch_end(struct fab_mrc *cache, const struct fab_monitor *monitor, struct fab_pin *pin, bool made)
{
	size_t len = pin->end - pin->start;
	bool lasts = made && monitor->lasts(pin->start, len);

	monitor->lock();
	if (lasts && !pin->changed)
		keep(cache, pin);
	fab_list_remove(&pin->link);
	if (!pin->cached)
		monitor->unwatch(pin->start, len);
	monitor->unlock();
}

int fab_mrc_get(struct fab_mrc *cache, const void *addr, size_t len, uint64_t access, struct fab_pin **out)
{
	struct fab_pin *pin = fab_mrc_find(cache, addr, len, access);
	const struct fab_monitor *monitor;
	bool watched;
	int ret;

	*out = pin;
	if (pin)
		return 0;
	fab_mrc_reap(cache);
	pin = malloc(sizeof(*pin));
	if (!pin)
		return -FI_ENOMEM;
	*pin = (struct fab_pin) {
		.start = (uintptr_t) addr, .end = (uintptr_t) addr + len, .access = access, .user_cnt = 1,
	};
	fab_list_init(&pin->link);
	monitor = is_own(cache) ? join(cache) : NULL;
	watched = watch_begin(cache, monitor, pin);
	ret = cache->ops->reg(cache, (void *) addr, len, access, &pin->region);
	/* what others keep registered may be too much for the device, or for the limit on locked memory */
	if (ret && monitor && drop_idle(cache))
		ret = cache->ops->reg(cache, (void *) addr, len, access, &pin->region);
	if (watched)
		watch_end(cache, monitor, pin, !ret);
	if (ret)
		free(pin);
	else
		*out = pin;
	return ret;
}

bool fab_mrc_put(struct fab_mrc *cache, struct fab_pin *pin)
{
	if (!is_own(cache))
		return false;
	cache_lock(cache);
	if (--pin->user_cnt)
		;
	else if (pin->cached)
		fab_list_add_tail(&cache->idle, &pin->link);
	else
		pin_kill(cache, pin);
	cache_unlock(cache);
	return atomic_load_explicit(&cache->has_dead, memory_order_relaxed);
}

void fab_mrc_reap(struct fab_mrc *cache)
{
	struct fab_list list = FAB_LIST_INIT(list), *link;

	if (!atomic_load_explicit(&cache->has_dead, memory_order_relaxed) || !is_own(cache))
		return;
	pthread_mutex_lock(&cache->dead_lock);
	fab_list_splice_tail(&list, &cache->dead);
	atomic_store_explicit(&cache->has_dead, false, memory_order_relaxed);
	pthread_mutex_unlock(&cache->dead_lock);
	while ((link = fab_list_pop_front(&list))) {
		struct fab_pin *pin = fab_container(link, struct fab_pin, link);

		cache->ops->dereg(cache, pin->region);
		free(pin);
	}
}

int fab_mrc_init(struct fab_mrc *cache, const struct fi_provider *prov, const struct fab_mrc_ops *ops)
{
	const struct fab_monitor *monitor = prov ? fab_core_monitor(prov) : NULL;

	*cache = (struct fab_mrc) { .ops = ops, .prov = prov, .forks = fab_fork_cnt };
	cache->watcher = (struct fab_mem_watcher) { .changed = watch_changed, .spare = watch_spare };
	fab_list_init(&cache->watcher.link);
	fab_list_init(&cache->coming);
	fab_list_init(&cache->idle);
	fab_list_init(&cache->dead);
	pthread_mutex_init(&cache->dead_lock, NULL);
	if (!monitor || !monitor->max_cnt)
		return 0;
	cache->max_cnt = monitor->max_cnt;
	cache->max_size = monitor->max_size;
	for (size_t i = 0; i < FAB_MRC_USES; i++) {
		cache->table[i].pin = calloc(cache->max_cnt + 1, sizeof(*cache->table[i].pin));
		if (!cache->table[i].pin) {
			fab_mrc_fini(cache);
			return -FI_ENOMEM;
		}
	}
	return 0;
}

void fab_mrc_fini(struct fab_mrc *cache)
{
	const struct fab_monitor *monitor = cache->monitor;

	if (monitor && is_own(cache)) {
		monitor->lock();
		for (size_t i = 0; i < FAB_MRC_USES; i++)
			table_cut(cache, &cache->table[i], 0, cache->table[i].cnt);
		monitor->unlock();
	}
	if (monitor) {
		monitor->leave(&cache->watcher);
		cache->monitor = NULL;
	}
	fab_mrc_reap(cache);
	for (size_t i = 0; i < FAB_MRC_USES; i++)
		free(cache->table[i].pin);
	pthread_mutex_destroy(&cache->dead_lock);
}
