/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packet buffers, registered with the provider below if it needs that. Lock of the endpoint's engine held.
 */
#include "rxm/rxm.h"

#include <stdlib.h>

#define CHUNK_BUFS	32

struct rxm_chunk {
	struct rxm_chunk *next;		/* in rxm_bufs.chunks */
	struct fid_mr *mr;		/* owned; NULL: not registered */
	_Alignas(16) uint8_t mem[];
};

struct rxm_chunk *rxm_chunk_alloc(struct fid_domain *below, size_t size, size_t cnt)
{
	struct rxm_chunk *chunk = malloc(sizeof(*chunk) + size * cnt);	/* not cleared: unused pages cost nothing */
	const struct iovec iov = { chunk ? chunk->mem : NULL, size * cnt };
	const struct fi_mr_attr attr = {
		.mr_iov = &iov, .iov_count = 1, .access = FI_SEND | FI_RECV | FI_READ | FI_WRITE,
	};

	if (!chunk)
		return NULL;
	chunk->next = NULL;
	chunk->mr = NULL;
	/* a provider that requires local registration chooses the keys itself, so the key passed here is not used */
	if (below && fi_mr_regattr(below, &attr, 0, &chunk->mr)) {
		free(chunk);
		return NULL;
	}
	return chunk;
}

void rxm_chunk_free(struct rxm_chunk *chunk)
{
	if (chunk && chunk->mr)
		fi_close(&chunk->mr->fid);
	free(chunk);
}

uint8_t *rxm_chunk_mem(struct rxm_chunk *chunk)
{
	return chunk->mem;
}

void *rxm_chunk_desc(struct rxm_chunk *chunk)
{
	return chunk->mr ? fi_mr_desc(chunk->mr) : NULL;
}

void rxm_bufs_init(struct rxm_bufs *bufs, struct fid_domain *below, size_t size)
{
	*bufs = (struct rxm_bufs) { .below = below, .size = (sizeof(struct rxm_buf) + size + 63) & ~(size_t) 63 };
}

void rxm_bufs_fini(struct rxm_bufs *bufs)
{
	struct rxm_chunk *chunk;

	while ((chunk = bufs->chunks)) {
		bufs->chunks = chunk->next;
		rxm_chunk_free(chunk);
	}
	bufs->free = NULL;
}

bool rxm_bufs_grow(struct rxm_bufs *bufs)
{
	struct rxm_chunk *chunk = rxm_chunk_alloc(bufs->below, bufs->size, CHUNK_BUFS);

	if (!chunk)
		return false;
	chunk->next = bufs->chunks;
	bufs->chunks = chunk;
	for (size_t i = 0; i < CHUNK_BUFS; i++) {
		struct rxm_buf *buf = (struct rxm_buf *) (chunk->mem + i * bufs->size);

		buf->desc = rxm_chunk_desc(chunk);
		rxm_buf_put(bufs, buf);
	}
	return true;
}
