/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * No heap allocation per message in steady state. malloc() and its kin are this program's own here, and count; so a
 * sanitizer's cannot be used at the same time, and the tests are skipped then.
 */
#include "traffic.h"

#include <errno.h>
#include <stdatomic.h>

/* __libc_malloc() and its kin are glibc's. */
#if defined(__GLIBC__) && !SANITIZED
#define COUNTED 1
#else
#define COUNTED 0
#endif

static _Atomic size_t allocations;

#if COUNTED
/* What glibc's own are called for those who replace them. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t cnt, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t cnt, size_t size)
{
	allocations++;
	return __libc_calloc(cnt, size);
}

void *realloc(void *p, size_t size)
{
	allocations++;
	return __libc_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	allocations++;
	return __libc_memalign(align, size);
}

int posix_memalign(void **p, size_t align, size_t size)
{
	allocations++;
	*p = __libc_memalign(align, size);
	return *p ? 0 : ENOMEM;
}
#endif

struct steady_row {
	const char *name;
	enum kind kind;
	size_t len, window;		/* window 0: ping-pong */
};

static const struct steady_row steady_rows[] = {
	{ "ping_pong_8", PLAIN, 8, 0 }, { "ping_pong_tagged_8", TAGGED, 8, 0 },
	{ "ping_pong_inject_8", INJECTED, 8, 0 }, { "ping_pong_unexpected_8", UNEXPECTED, 8, 0 },
	{ "ping_pong_4K", PLAIN, 4096, 0 },
	{ "ping_pong_1M", PLAIN, 1 << 20, 0 }, { "stream_8", PLAIN, 8, 64 }, { "stream_tagged_8", TAGGED, 8, 64 },
	{ "stream_inject_8", INJECTED, 8, 64 }, { "stream_64K", PLAIN, 65536, 16 }, { "stream_1M", PLAIN, 1 << 20, 4 },
	{ "write_8", WRITES, 8, 16 }, { "write_64K", WRITES, 65536, 16 }, { "read_8", READS, 8, 16 },
	{ "read_64K", READS, 65536, 16 }, { "atomic_8", ATOMICS, 8, 16 }, { "fetch_8", FETCHES, 8, 16 },
	{ "fetch_64", FETCHES, 64, 64 },
};

static void pattern(struct pair *p, const struct steady_row *row, size_t cnt)
{
	if (row->window)
		stream(p, row->kind, row->len, row->window, cnt);
	else
		ping_pong(p, row->kind, row->len, cnt);
}

static void check_steady(struct test *t, const struct steady_row *row)
{
	size_t cnt = row->len > 65536 ? 100 : 2000, before;
	struct pair p = traffic_pair(t);

	if (!COUNTED)
		SKIP("malloc is a sanitizer's, or not glibc's");
	pattern(&p, row, 2 * cnt);
	before = allocations;
	pattern(&p, row, cnt);
	if (allocations != before)
		FAIL("%zu allocations for %zu messages", allocations - before, cnt);
}

/* After a while of traffic of one kind, more of it takes no more memory. */
TEST_TABLE(nothing_is_allocated, steady_rows, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, RELIABLE)
{
	check_steady(t, ROW(steady_rows));
}

static const struct steady_row datagram_rows[] = {
	{ "ping_pong_8", PLAIN, 8, 0 }, { "ping_pong_inject_8", INJECTED, 8, 0 },
	{ "ping_pong_unexpected_8", UNEXPECTED, 8, 0 }, { "stream_8", PLAIN, 8, 64 }, { "stream_1K", PLAIN, 1024, 16 },
};

/* The same of datagrams. */
TEST_TABLE(nothing_is_allocated_for_datagrams, datagram_rows, FI_MSG, .types = BIT(FI_EP_DGRAM))
{
	check_steady(t, ROW(datagram_rows));
}

/* The counting itself works. */
TEST_PROV(counting_works, FI_MSG, RELIABLE)
{
	size_t before = allocations;

	if (!COUNTED)
		SKIP("malloc is a sanitizer's, or not glibc's");
	side_open(t);
	CHECK(allocations > before);
}
