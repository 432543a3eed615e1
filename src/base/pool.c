/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Growth of object pools. A chunk is one allocation: a header, padding up to the alignment, then the objects.
 */
#include "base/pool.h"

#include "base/bits.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

enum {
	FIRST_CHUNK_CNT = 16,
	MAX_CHUNK_LEN = 256 * 1024,	/* chunks stop doubling here */
};

struct fab_pool_chunk {
	struct fab_pool_chunk *next;
	size_t len;
};

void fab_pool_init(struct fab_pool *pool, const struct fab_pool_attr *attr)
{
	size_t align = attr->align ? attr->align : _Alignof(max_align_t);

	align = fab_max(align, _Alignof(struct fab_pool_link));
	*pool = (struct fab_pool) {
		.stride = fab_align(fab_max(attr->size, sizeof(struct fab_pool_link)), align),
		.align = align,
		.max_cnt = attr->max_cnt ? attr->max_cnt : SIZE_MAX,
		.next_cnt = attr->chunk_cnt ? attr->chunk_cnt : FIRST_CHUNK_CNT,
	};
}

void fab_pool_free_chunk(struct fab_pool_chunk **chunks)
{
	struct fab_pool_chunk *chunk = *chunks;

	*chunks = chunk->next;
	fab_unpoison(chunk, chunk->len);
	free(chunk);
}

void fab_pool_fini(struct fab_pool *pool)
{
	while (pool->chunks)
		fab_pool_free_chunk(&pool->chunks);
	*pool = (struct fab_pool) { .max_cnt = 0 };
}

void fab_pool_detach(struct fab_pool *pool, struct fab_pool_chunk **chunks)
{
	assert(!pool->out_cnt);
	while (*chunks)
		chunks = &(*chunks)->next;
	*chunks = pool->chunks;
	pool->chunks = NULL;
	pool->free = NULL;
	pool->fresh = pool->fresh_end = NULL;
	pool->made_cnt = 0;
}

static bool pool_grow(struct fab_pool *pool)
{
	size_t cnt = fab_min(pool->next_cnt, pool->max_cnt - pool->made_cnt);
	size_t head = fab_align(sizeof(struct fab_pool_chunk), pool->align);
	struct fab_pool_chunk *chunk;
	void *memory;
	size_t len;

	if (!cnt || __builtin_mul_overflow(cnt, pool->stride, &len) || __builtin_add_overflow(len, head, &len) ||
	    posix_memalign(&memory, fab_max(pool->align, sizeof(void *)), len))
		return false;

	chunk = memory;
	chunk->next = pool->chunks;
	chunk->len = len;
	pool->chunks = chunk;
	pool->fresh = (char *) chunk + head;
	pool->fresh_end = (char *) chunk + len;
	pool->made_cnt += cnt;
	if (len <= MAX_CHUNK_LEN / 2)
		pool->next_cnt = cnt * 2;
	fab_poison(pool->fresh, len - head);
	return true;
}

void *fab_pool_get_fresh(struct fab_pool *pool)
{
	void *object;

	if (pool->fresh == pool->fresh_end && !pool_grow(pool))
		return NULL;
	object = pool->fresh;
	pool->fresh += pool->stride;
	pool->out_cnt++;
	fab_unpoison(object, pool->stride);
	return object;
}

void fab_pool_each(struct fab_pool *pool, void (*fn)(void *object, void *arg), void *arg)
{
	size_t head = fab_align(sizeof(struct fab_pool_chunk), pool->align);

	assert(pool->out_cnt == pool->made_cnt);
	for (struct fab_pool_chunk *chunk = pool->chunks; chunk; chunk = chunk->next) {
		for (size_t at = head; at < chunk->len; at += pool->stride)
			fn((char *) chunk + at, arg);
	}
}
