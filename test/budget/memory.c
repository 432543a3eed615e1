/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory: what a posted receive, a connected peer, and a first operation cost. The kernel's share is not counted. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "traffic.h"

struct used {
	long long rss, heap;		/* bytes */
};

static struct used used_now(void)
{
	struct mallinfo2 heap = mallinfo2();
	long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%*d %lld", &pages) == 1);
	fclose(f);
	return (struct used) { .rss = pages * sysconf(_SC_PAGESIZE),
			       .heap = (long long) (heap.uordblks + heap.hblkhd) };
}

/* @cnt things were made since @before: the larger of both ways to count is held against the budget of one. */
static void check_budget(const char *what, struct used before, long long cnt, long long budget)
{
	struct used now = used_now();
	long long rss = now.rss - before.rss, heap = now.heap - before.heap;

	printf("# %s: %lld bytes of heap, %lld resident, budget %lld\n", what, heap / cnt, rss / cnt, budget);
	if (MAX(rss, heap) > budget * cnt)
		FAIL("%s costs %lld bytes, budget %lld", what, MAX(rss, heap) / cnt, budget);
}

static void need_counting(void)
{
	if (SANITIZED)
		SKIP("a sanitizer's memory would be counted");
}

struct recv_row {
	const char *name;
	bool tagged;
	size_t cnt;
};

static const struct recv_row recv_rows[] = {
	{ "untagged_16K", false, 16384 }, { "tagged_16K", true, 16384 }, { "tagged_60K", true, 60000 },
	{ "tagged_1K", true, 1024 },
};

/* A posted receive: 256 bytes. */
TEST_TABLE(posted_receive, recv_rows, FI_MSG | FI_TAGGED, RELIABLE)
{
	const struct recv_row *row = ROW(recv_rows);
	struct pair p = traffic_pair(t, .rx_size = row->cnt);
	static char buf[8];
	struct used before;
	size_t i;

	need_counting();
	before = used_now();
	for (i = 0; i < row->cnt; i++) {
		if (row->tagged)
			MUST(fi_trecv(p.b->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, i, 0, NULL));
		else
			MUST(fi_recv(p.b->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL));
	}
	check_budget("a posted receive", before, (long long) row->cnt, 256);
}

/* A peer that is connected and idle: 2 KB, and over rings 8 KB of shared memory: the page of both rings, and that of
 * the peer's engine. All with all, so that connections are many and endpoints few. */
TEST_PROV(connected_peer, FI_MSG, RDM_ONLY)
{
	enum { N = 14 };
	struct side *a[N], *b[N];
	struct rlimit limit;
	struct used before;
	unsigned int i, j;
	static char in[4];
	fi_addr_t addr[N][N];

	need_counting();
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_cur < 700)
		SKIP("only %lu file descriptors", (unsigned long) limit.rlim_cur);
	for (i = 0; i < N; i++) {
		a[i] = i ? side_open(t, .domain_of = a[0]) : side_open(t);
		b[i] = i ? side_open(t, .domain_of = b[0]) : side_open(t);
	}
	/* Pools, tables and staging that the first peer brings, and the address vectors. */
	for (i = 0; i < N; i++) {
		for (j = 0; j < N; j++)
			addr[i][j] = side_insert(a[i], b[j]);
		a[i]->peer = addr[i][i];
		check_link(a[i], b[i]);
	}
	before = used_now();
	for (i = 0; i < N; i++) {
		for (j = 0; j < N; j++) {
			if (i == j)
				continue;
			post_recv(b[j], in, 4);
			post(a[i], SEND, .buf = "abcd", .len = 4, .addr = &addr[i][j]);
			expect_rx(b[j]);
			expect_tx(a[i]);
		}
	}
	check_budget("a connected peer", before, 2 * N * (N - 1), 2048 + (traffic_over_socket() ? 0 : 8192));
}

/* The first operations of two endpoints: 1 MB together. */
TEST_PROV(first_operation, FI_MSG | FI_TAGGED, RELIABLE)
{
	struct pair p = pair_open(t);
	struct used before;

	need_counting();
	before = used_now();
	check_link(p.a, p.b);
	check_budget("the first operation", before, 1, 1 << 20);
}
