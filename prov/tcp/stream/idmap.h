/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Maps small numbers to pointers, for ids that a peer sends back: slots with a free list, doubled when full, at most
 * TCP_IDMAP_MAX. Owned by one connection; its engine lock guards it.
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

/* init allocates nothing; fini frees the table, but not the objects. The engine's lock is held for all functions. */
void tcp_idmap_init(struct tcp_idmap *map);
void tcp_idmap_fini(struct tcp_idmap *map);
/* Assign *id to ptr (aligned to 2 bytes at least). 0, -FI_ENOMEM; -FI_EAGAIN: the maximum is reached. */
int tcp_idmap_add(struct tcp_idmap *map, void *ptr, uint32_t *id);
/* The pointer of id, or NULL; ids come from peers and may be invalid. */
void *tcp_idmap_get(const struct tcp_idmap *map, uint32_t id);
/* Remove and return it, or NULL. */
void *tcp_idmap_del(struct tcp_idmap *map, uint32_t id);

#endif
