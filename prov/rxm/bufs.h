/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packet buffers, registered if the provider below needs that (bufs.c). Lock held, or no other thread can reach the
 * object yet or any more.
 */
#ifndef RXM_BUFS_H
#define RXM_BUFS_H

#include "rxm/objects.h"

/* Make an empty pool of buffers, each with room for size bytes behind the headers of a packet. below is as in struct
 * rxm_bufs. Cannot fail. */
void rxm_bufs_init(struct rxm_bufs *bufs, struct fid_domain *below, size_t size);
/* Free the memory of all buffers. None may be in use. */
void rxm_bufs_fini(struct rxm_bufs *bufs);
/* Add one chunk of buffers. False: no memory, or it cannot be registered. */
bool rxm_bufs_grow(struct rxm_bufs *bufs);
/* Take a buffer, contents undefined; the caller owns it until rxm_buf_put(). NULL: no memory, or it cannot be
 * registered. */
static inline struct rxm_buf *rxm_buf_get(struct rxm_bufs *bufs)
{
	struct rxm_buf *buf;

	if (__builtin_expect(!bufs->free, 0) && !rxm_bufs_grow(bufs))
		return NULL;
	buf = bufs->free;
	bufs->free = buf->next;
	return buf;
}
/* Give a buffer back to the pool that it was taken from. */
static inline void rxm_buf_put(struct rxm_bufs *bufs, struct rxm_buf *buf)
{
	buf->next = bufs->free;
	bufs->free = buf;
}
/* Allocate cnt * size bytes of zeroed memory, registered with the domain below unless that is NULL. The caller frees
 * it. NULL: no memory, or it cannot be registered. */
struct rxm_chunk *rxm_chunk_alloc(struct fid_domain *below, size_t size, size_t cnt);
/* Free a chunk that no operation below uses any more. NULL is allowed. */
void rxm_chunk_free(struct rxm_chunk *chunk);
/* The first byte of the chunk's memory. */
uint8_t *rxm_chunk_mem(struct rxm_chunk *chunk);
/* The chunk's descriptor for the provider below; NULL if it is not registered. */
void *rxm_chunk_desc(struct rxm_chunk *chunk);

#endif
