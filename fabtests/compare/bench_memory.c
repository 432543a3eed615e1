/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory of one process by what the kernel says it has touched: many receives that nothing comes for; one endpoint with
 * many peers, endpoints of the other process that have all exchanged a message with it.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define DEFAULT_RECEIVES 10000
#define DEFAULT_PEERS 200
#define NAME_LEN 64
#define TAG 1
/* A first one each, so that what is made once is not counted. */
#define FIRST 16

/* Bytes that this process has touched and nobody else has. */
static long touched(void)
{
	long size, resident, shared;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%ld %ld %ld", &size, &resident, &shared) != 3)
		bench_check(-FI_EIO, "/proc/self/statm");
	fclose(file);
	return (resident - shared) * sysconf(_SC_PAGESIZE);
}

static void show(long before, long cnt)
{
	printf("%.1f %ld\n", (double) (touched() - before) / (double) (cnt ? cnt : 1), cnt);
}

/* Contexts are the program's: they are touched before. */
static struct fi_context2 *make_contexts(long cnt)
{
	struct fi_context2 *ctx = malloc((size_t) cnt * sizeof(*ctx));

	bench_check(ctx ? 0 : -FI_ENOMEM, "contexts");
	memset(ctx, 0xff, (size_t) cnt * sizeof(*ctx));
	return ctx;
}

void memory_of_receives(struct bench *b)
{
	long i, before = 0, cnt = b->count ? b->count : DEFAULT_RECEIVES;
	struct fi_context2 *ctx;
	struct node node = { .sent = 0 };
	static char data[64];
	ssize_t ret = 0;

	if (!b->parent)
		return;
	ctx = make_contexts(cnt + FIRST);
	node_open(b, &node, FI_TAGGED, (size_t) (cnt + FIRST));
	for (i = 0; i < cnt + FIRST && !ret; i++) {
		if (i == FIRST)
			before = touched();
		ret = fi_trecv(node.ep, data, sizeof(data), NULL, FI_ADDR_UNSPEC, TAG + (uint64_t) i, 0, &ctx[i]);
	}
	bench_check(ret == -FI_EAGAIN ? 0 : ret, "fi_trecv");
	show(before, i - FIRST - (ret != 0));
	node_close(&node);
	free(ctx);
}

/* One message from an endpoint to an address; node's queue has its completion. */
static void send_one(struct node *node, struct fid_ep *ep, fi_addr_t addr, uint64_t tag, const char *data)
{
	long sent = node->sent;
	ssize_t ret;

	while ((ret = fi_tsend(ep, data, 8, NULL, addr, tag, node_ctx())) == -FI_EAGAIN)
		node_poll(node);
	bench_check(ret, "fi_tsend");
	while (node->sent == sent)
		node_poll(node);
}

static void recv_one(struct node *node, struct fid_ep *ep, uint64_t tag, char *data)
{
	ssize_t ret;

	while ((ret = fi_trecv(ep, data, 8, NULL, FI_ADDR_UNSPEC, tag, 0, node_ctx())) == -FI_EAGAIN)
		node_poll(node);
	bench_check(ret, "fi_trecv");
}

/* The parent's node has the peers: it gets a message from each, and answers. */
static void be_one(struct bench *b, struct node *node, long cnt)
{
	char name[NAME_LEN], mine[NAME_LEN] = "", data[8] = "";
	long i, before = 0;

	node_name(node->ep, mine);
	for (i = 0; i < cnt + FIRST; i++) {
		if (i == FIRST)
			before = touched();
		recv_one(node, node->ep, TAG, data);
		bench_swap(b, mine, name, sizeof(name));
		while (node->received <= i)
			node_poll(node);
		send_one(node, node->ep, node_insert(node, name), TAG, data);
		bench_swap(b, mine, name, sizeof(name));
	}
	show(before, cnt);
}

static void be_many(struct bench *b, struct node *node, long cnt)
{
	char name[NAME_LEN] = "", theirs[NAME_LEN], data[8] = "";
	fi_addr_t one = FI_ADDR_UNSPEC;
	struct fid_ep *ep;
	long i;

	for (i = 0; i < cnt + FIRST; i++) {
		ep = node_ep(node);
		node_name(ep, name);
		recv_one(node, ep, TAG, data);
		bench_swap(b, name, theirs, sizeof(name));
		one = i ? one : node_insert(node, theirs);
		send_one(node, ep, one, TAG, data);
		while (node->received <= i)
			node_poll(node);
		bench_swap(b, name, theirs, sizeof(name));
	}
}

void memory_of_peers(struct bench *b)
{
	struct node node = { .sent = 0 };

	node_open(b, &node, FI_TAGGED, 0);
	(b->parent ? be_one : be_many)(b, &node, b->count ? b->count : DEFAULT_PEERS);
	/* Endpoints of the child go with its process: closing so many is not what is measured. */
}
