/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Slots with a free list, see idmap.h. A free slot holds the next free one, shifted left with bit 0 set; a taken slot
 * a pointer, whose bit 0 is clear. The table never shrinks.
 */
#include "tcp/stream/idmap.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>

#define FIRST_CAP	8

static bool idmap_slot_taken(const struct tcp_idmap *map, uint32_t id)
{
	return id < map->cap && !(map->slot[id] & 1);
}

static int idmap_grow(struct tcp_idmap *map)
{
	uint32_t cap = map->cap ? map->cap * 2 : FIRST_CAP;
	uintptr_t *slot;

	if (cap > TCP_IDMAP_MAX)
		return -FI_EAGAIN;
	slot = realloc(map->slot, cap * sizeof(*slot));
	if (!slot)
		return -FI_ENOMEM;
	for (uint32_t id = map->cap; id < cap; id++)
		slot[id] = (uintptr_t) (id + 1) << 1 | 1;
	map->slot = slot;
	map->free = map->cap;
	map->cap = cap;
	return 0;
}

void tcp_idmap_init(struct tcp_idmap *map)
{
	*map = (struct tcp_idmap) { 0 };
}

void tcp_idmap_fini(struct tcp_idmap *map)
{
	free(map->slot);
	tcp_idmap_init(map);
}

int tcp_idmap_add(struct tcp_idmap *map, void *ptr, uint32_t *id)
{
	int ret;

	assert(ptr && !((uintptr_t) ptr & 1));
	if (map->free == map->cap) {
		ret = idmap_grow(map);
		if (ret)
			return ret;
	}
	*id = map->free;
	map->free = map->slot[*id] >> 1;
	map->slot[*id] = (uintptr_t) ptr;
	map->cnt++;
	return 0;
}

void *tcp_idmap_get(const struct tcp_idmap *map, uint32_t id)
{
	return idmap_slot_taken(map, id) ? (void *) map->slot[id] : NULL;
}

void *tcp_idmap_del(struct tcp_idmap *map, uint32_t id)
{
	void *ptr = tcp_idmap_get(map, id);

	if (!ptr)
		return NULL;
	map->slot[id] = (uintptr_t) map->free << 1 | 1;
	map->free = id;
	map->cnt--;
	return ptr;
}
