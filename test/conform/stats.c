/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The counters in the page of the process are those of the workload. Source: fi_stats(7). */
#include <rdma/fi_atomic.h>
#include <string.h>
#include <weft/stats.h>

#include "ops.h"

#define ALL_REMOTE	(FI_REMOTE_READ | FI_REMOTE_WRITE)

/* The sum over all endpoints and peers of this process. */
struct sums {
	struct fi_stats_count op[FI_STATS_OPS];
	uint64_t errors, posted, queued, dequeued;
};

static const struct fi_stats_page *page_of_process(void)
{
	const struct fi_stats_page *page;
	struct fi_ops_stats *ops;
	struct fid *fid;

	if (fi_open(FI_VERSION(1, 20), "stats", NULL, 0, 0, &fid, NULL))
		ABSENT("this libfabric has no counters");
	MUST(fi_open_ops(fid, FI_STATS_OPS_1, 0, (void **) &ops, NULL));
	page = ops->page(fid);
	MUST(fi_close(fid));
	return page;
}

static void add_peer(struct sums *sums, const struct fi_stats_peer *peer)
{
	for (int i = 0; i < FI_STATS_OPS; i++) {
		sums->op[i].ops += peer->op[i].ops;
		sums->op[i].bytes += peer->op[i].bytes;
	}
	sums->errors += peer->errors;
	sums->queued += peer->queued;
	sums->dequeued += peer->dequeued;
}

static struct sums sum_up(const struct fi_stats_page *page)
{
	struct sums sums = { .errors = 0 };

	for (int i = 0; i < FI_STATS_EP_CNT; i++) {
		if (page->ep[i].used != FI_STATS_LIVE)
			continue;
		add_peer(&sums, &page->ep[i].rest);
		sums.posted += page->ep[i].posted[0] + page->ep[i].posted[1];
	}
	for (int i = 0; i < FI_STATS_PEER_CNT; i++)
		if (page->peer[i].used == FI_STATS_LIVE || page->peer[i].used == FI_STATS_GONE)
			add_peer(&sums, &page->peer[i]);
	return sums;
}

/* The operations of this kind since `before` are cnt, of len bytes in all. */
static void check_counted(const struct sums *before, const struct sums *now, enum fi_stats_op op, uint64_t cnt,
			  uint64_t len)
{
	CHECK_EQ(now->op[op].ops - before->op[op].ops, cnt);
	CHECK_EQ(now->op[op].bytes - before->op[op].bytes, len);
}

/* Nothing is pending, and nothing has failed. */
static void check_settled(const struct sums *before, const struct sums *now)
{
	CHECK_EQ(now->errors, before->errors);
	CHECK_EQ(now->queued - before->queued, now->dequeued - before->dequeued);
}

enum { TIMES = 5 };

static const struct call_row message_rows[] = { { "send", SEND }, { "tsend", TSEND } };

/* Messages of all lengths are counted once at each end, with their bytes, and so is each receive that was posted. */
TEST_TABLE(messages, message_rows, 0)
{
	static const size_t lens[] = { 0, 1, 64, 1000, 5000, 40000, 1 << 20 };
	bool tagged = calls[ROW(message_rows)->call].caps == FI_TAGGED;
	const struct fi_stats_page *page = page_of_process();
	uint64_t cnt = 0, len = 0, prefix;
	struct sums before, now;
	struct pair p;

	offer_check(calls[ROW(message_rows)->call].caps);
	p = pair_open(t, .caps = calls[ROW(message_rows)->call].caps);
	prefix = p.b->info->mode & FI_MSG_PREFIX ? p.b->info->ep_attr->msg_prefix_size : 0;
	before = sum_up(page);
	for (size_t i = 0; i < COUNT(lens) && lens[i] <= p.a->info->ep_attr->max_msg_size; i++) {
		uint8_t *out = mem_pattern(t, lens[i] + 1, 1), *in = mem(t, lens[i] + 1);

		for (int k = 0; k < TIMES; k++, cnt++, len += lens[i]) {
			post(p.b, tagged ? TRECV : RECV, .buf = in, .len = lens[i], .tag = 1);
			post(p.a, ROW(message_rows)->call, .buf = out, .len = lens[i], .tag = 1);
			expect_rx(p.b);
			expect_tx(p.a);
		}
	}
	now = sum_up(page);
	check_counted(&before, &now, tagged ? FI_STATS_TSEND : FI_STATS_SEND, cnt, len);
	check_counted(&before, &now, tagged ? FI_STATS_TRECV : FI_STATS_RECV, cnt, len + cnt * prefix);
	CHECK_EQ(now.posted - before.posted, cnt);
	check_settled(&before, &now);
}

static const struct call_row access_rows[] = { { "write", WRITE }, { "read", READ } };

/* Accesses are counted where they were asked for. */
TEST_TABLE(accesses, access_rows, FI_RMA)
{
	static const size_t lens[] = { 0, 1, 64, 1000, 5000, 40000, 1 << 20 };
	enum fi_stats_op op = ROW(access_rows)->call == WRITE ? FI_STATS_WRITE : FI_STATS_READ;
	const struct fi_stats_page *page = page_of_process();
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, lens[COUNT(lens) - 1], ALL_REMOTE);
	uint8_t *buf = mem(t, lens[COUNT(lens) - 1]);
	uint64_t cnt = 0, len = 0;
	struct sums before = sum_up(page), now;

	for (size_t i = 0; i < COUNT(lens); i++) {
		for (int k = 0; k < TIMES; k++, cnt++, len += lens[i]) {
			post(p.a, ROW(access_rows)->call, .buf = buf, .len = lens[i], .raddr = r.addr, .key = r.key);
			expect_tx(p.a);
		}
	}
	now = sum_up(page);
	check_counted(&before, &now, op, cnt, len);
	check_settled(&before, &now);
}

/* Atomics with and without a result are counted apart, where they were asked for. */
TEST_PROV(atomics, FI_ATOMIC)
{
	const struct fi_stats_page *page = page_of_process();
	struct pair p = pair_open(t);
	struct region r = region_open(p.b, NULL, 64, ALL_REMOTE);
	uint64_t *one = mem(t, sizeof(*one)), *result = mem(t, sizeof(*result));
	void *desc = desc_for(p.a, one, sizeof(*one)), *result_desc = desc_for(p.a, result, sizeof(*result));
	struct sums before, now;
	size_t native;
	bool plain;

	plain = !fi_atomicvalid(p.a->ep, FI_UINT64, FI_SUM, &native);
	if (fi_fetch_atomicvalid(p.a->ep, FI_UINT64, FI_SUM, &native))
		ABSENT("no sum of 64 bits");
	before = sum_up(page);
	for (int k = 0; k < TIMES; k++) {
		MUST(fi_fetch_atomic(p.a->ep, one, 1, desc, result, result_desc, p.a->peer, r.addr, r.key, FI_UINT64,
				     FI_SUM, NULL));
		p.a->tx_posted++;
		expect_tx(p.a);
		if (!plain)
			continue;
		MUST(fi_atomic(p.a->ep, one, 1, desc, p.a->peer, r.addr, r.key, FI_UINT64, FI_SUM, NULL));
		p.a->tx_posted++;
		expect_tx(p.a);
	}
	now = sum_up(page);
	check_counted(&before, &now, FI_STATS_FETCH_ATOMIC, TIMES, TIMES * 8);
	check_counted(&before, &now, FI_STATS_ATOMIC, plain ? TIMES : 0, plain ? TIMES * 8 : 0);
	check_settled(&before, &now);
}
