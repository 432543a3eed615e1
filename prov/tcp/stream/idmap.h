/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Small numbers for pointers that a peer will name: slots with a free list, grown by doubling, at most
 * TCP_IDMAP_MAX. Owned by one connection, guarded by its engine lock.
 */
#ifndef TCP_IDMAP_H
#define TCP_IDMAP_H

#include <stdint.h>

#define TCP_IDMAP_MAX		65536

struct tcp_idmap {
	uintptr_t *slot;		/* pointer, or (next free << 1 | 1) */
	uint32_t cap;
	uint32_t free;			/* first free slot, or cap */
	uint32_t cnt;
};

/* init takes no memory; fini frees the table, whose slots are the callers'. The engine's lock is held for all calls. */
void tcp_idmap_init(struct tcp_idmap *map);
void tcp_idmap_fini(struct tcp_idmap *map);
/* *id for ptr (aligned to 2 at least). 0, -FI_ENOMEM, -FI_EAGAIN at the maximum. */
int tcp_idmap_add(struct tcp_idmap *map, void *ptr, uint32_t *id);
/* What id stands for, NULL if nothing: ids come from peers. */
void *tcp_idmap_get(const struct tcp_idmap *map, uint32_t id);
/* Take it out; NULL if there was nothing. */
void *tcp_idmap_del(struct tcp_idmap *map, uint32_t id);

#endif
