/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Objects of one size. The owner of a pool serialises all calls on it; the pool takes no lock.
 *
 * Memory is allocated in chunks. The first is small, and each next one is twice as large, up to a bound: a pool that is
 * hardly used stays small, and a busy one seldom allocates. The pool does not touch an object before it is handed out
 * for the first time, so the unused part of a chunk costs address space only. Chunks are freed together, by
 * fab_pool_fini() or fab_pool_detach(). Under AddressSanitizer an object that is not handed out is poisoned.
 */
#ifndef FAB_BASE_POOL_H
#define FAB_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define FAB_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FAB_ASAN 1
#endif
#endif

#ifdef FAB_ASAN
#include <sanitizer/asan_interface.h>
#define fab_poison(ptr, len) __asan_poison_memory_region(ptr, len)
#define fab_unpoison(ptr, len) __asan_unpoison_memory_region(ptr, len)
#else
#define fab_poison(ptr, len) ((void) (ptr), (void) (len))
#define fab_unpoison(ptr, len) ((void) (ptr), (void) (len))
#endif

struct fab_pool_attr {
	size_t size;		/* bytes of an object, at least 1 */
	size_t align;		/* power of two; 0: as malloc() aligns */
	size_t max_cnt;		/* most objects that may be handed out at a time; 0: no bound */
	size_t chunk_cnt;	/* objects in the first chunk; 0: a default */
};

struct fab_pool_link {
	struct fab_pool_link *next;
};

struct fab_pool_chunk;

struct fab_pool {
	struct fab_pool_link *free;	/* objects put back, latest first */
	char *fresh;			/* the next object that was never handed out; fresh_end: no such object */
	char *fresh_end;
	size_t stride;			/* bytes from one object to the next */
	size_t out_cnt;			/* objects handed out now */
	size_t made_cnt;		/* objects that the chunks hold, used or not */
	size_t max_cnt;
	size_t next_cnt;		/* objects in the next chunk */
	size_t align;
	struct fab_pool_chunk *chunks;	/* owned */
};

/* Prepare an empty pool; allocates nothing and cannot fail. */
void fab_pool_init(struct fab_pool *pool, const struct fab_pool_attr *attr);

/* Take the memory of a pool from which nothing is handed out (out_cnt is 0), and add it to *chunks, which belong to the
 * caller. It may be used again. O(chunks in *chunks). */
void fab_pool_detach(struct fab_pool *pool, struct fab_pool_chunk **chunks);
/* Free the first chunk. */
void fab_pool_free_chunk(struct fab_pool_chunk **chunks);

/* Free all chunks. Objects that are still handed out become invalid: the owner makes sure that nobody uses one. */
void fab_pool_fini(struct fab_pool *pool);

/* Call fn with each object and arg, in no particular order. All objects of the pool must be handed out (out_cnt ==
 * made_cnt). */
void fab_pool_each(struct fab_pool *pool, void (*fn)(void *object, void *arg), void *arg);

/* Part of fab_pool_get(), not for callers: take an object that was never handed out, from a new chunk if need be. NULL
 * as fab_pool_get(). */
void *fab_pool_get_fresh(struct fab_pool *pool);

/* True if max_cnt objects are handed out: only a put can make the next get succeed. */
static inline bool fab_pool_full(const struct fab_pool *pool)
{
	return pool->out_cnt >= pool->max_cnt;
}

/* Take an object, contents undefined. The caller owns it until fab_pool_put(). O(1), except when a chunk is added.
 * NULL: either max_cnt objects are handed out (fab_pool_full(); the caller returns -FI_EAGAIN and does not wait), or
 * there is no memory (-FI_ENOMEM). */
static inline void *fab_pool_get(struct fab_pool *pool)
{
	struct fab_pool_link *link = pool->free;

	if (__builtin_expect(!link, 0))
		return fab_pool_get_fresh(pool);
	fab_unpoison(link, pool->stride);
	pool->free = link->next;
	pool->out_cnt++;
	return link;
}

/* Give back an object of this pool. The object that was given back last is handed out next: it is likely in cache. */
static inline void fab_pool_put(struct fab_pool *pool, void *object)
{
	struct fab_pool_link *link = object;

	link->next = pool->free;
	pool->free = link;
	pool->out_cnt--;
	fab_poison(link, pool->stride);
}

#endif
