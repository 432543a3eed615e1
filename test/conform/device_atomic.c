/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics of providers that have what devices have: a 64-bit integer, fetched and added to or compared and swapped.
 * atomic.c is for those that have every operation. Source: fi_atomic(3).
 */
#include "ops.h"

#include <rdma/fi_atomic.h>

#define CONNECTED .types = BIT(FI_EP_MSG)

struct amos {
	struct pair p;
	struct region target;
	uint64_t *result;
};

static struct amos amos_open(struct test *t)
{
	struct amos a;

	if (!run.ours || strcmp(run.prov, "verbs"))
		ABSENT("for verbs of this library");
	a.p = pair_open(t);
	a.target = region_open(a.p.b, NULL, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
	a.result = mem(t, sizeof(*a.result));
	return a;
}

static ssize_t counted(const struct amos *a, ssize_t ret)
{
	a->p.a->tx_posted += !ret;
	return ret;
}

static uint64_t value(const struct amos *a)
{
	return ((const uint64_t *) a->target.buf)[1];
}

static ssize_t fetch(const struct amos *a, uint64_t operand, enum fi_op op)
{
	void *desc = desc_for(a->p.a, a->result, 8);

	return counted(a, fi_fetch_atomic(a->p.a->ep, &operand, 1, NULL, a->result, desc, FI_ADDR_UNSPEC,
					  a->target.addr + 8, a->target.key, FI_UINT64, op, NULL));
}

static ssize_t swap_to(const struct amos *a, uint64_t expected, uint64_t to, uint64_t *result)
{
	void *desc = desc_for(a->p.a, result, 8);

	return counted(a, fi_compare_atomic(a->p.a->ep, &to, 1, NULL, &expected, NULL, result, desc, FI_ADDR_UNSPEC,
					    a->target.addr + 8, a->target.key, FI_UINT64, FI_CSWAP, NULL));
}

static ssize_t swap(const struct amos *a, uint64_t expected, uint64_t to)
{
	return swap_to(a, expected, to, a->result);
}

/* A sum is added to what is there, and gives what was; a read gives it and changes nothing. */
TEST_PROV(sum_and_read, FI_ATOMIC, CONNECTED)
{
	struct amos a = amos_open(t);
	struct comp c;

	MUST(fetch(&a, 5, FI_SUM));
	c = expect_tx(a.p.a);
	CHECK_EQ(c.flags & (FI_ATOMIC | FI_READ), FI_ATOMIC | FI_READ);
	CHECK_EQ(*a.result, 0);
	MUST(fetch(&a, (uint64_t) -2, FI_SUM));
	expect_tx(a.p.a);
	CHECK_EQ(*a.result, 5);
	MUST(fetch(&a, 99, FI_ATOMIC_READ));
	expect_tx(a.p.a);
	CHECK_EQ(*a.result, 3);
	CHECK_EQ(value(&a), 3);
}

/* A swap changes what it expects and nothing else, and gives what was. */
TEST_PROV(compare_and_swap, FI_ATOMIC, CONNECTED)
{
	struct amos a = amos_open(t);

	MUST(swap(&a, 0, 7));
	expect_tx(a.p.a);
	CHECK_EQ(*a.result, 0);
	CHECK_EQ(value(&a), 7);
	MUST(swap(&a, 1, 9));
	expect_tx(a.p.a);
	CHECK_EQ(*a.result, 7);
	CHECK_EQ(value(&a), 7);
}

/* With nothing waited for each finds what the one before it left. */
TEST_PROV(in_order, FI_ATOMIC, CONNECTED)
{
	const uint64_t orders = FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
	struct amos a = amos_open(t);
	const struct fi_info *info = a.p.a->info;
	uint64_t was[64], i, cnt = info->tx_attr->size < 64 ? info->tx_attr->size : 64;

	CHECK_EQ(info->tx_attr->msg_order & orders, orders);
	CHECK_EQ(info->rx_attr->msg_order & orders, orders);
	CHECK_EQ(info->ep_attr->max_order_war_size, 8);
	for (unsigned int round = 0; round < 10; round++) {
		for (i = 0; i < cnt; i++)
			MUST(swap_to(&a, round * cnt + i, round * cnt + i + 1, &was[i]));
		expect_tx_cnt(a.p.a, cnt);
		for (i = 0; i < cnt; i++)
			CHECK_EQ(was[i], round * cnt + i);
	}
	CHECK_EQ(value(&a), 10 * cnt);
}

/* The queries say what there is, and the calls refuse what there is not. */
TEST_PROV(nothing_else, FI_ATOMIC, CONNECTED)
{
	struct amos a = amos_open(t);
	struct fid_ep *ep = a.p.a->ep;
	struct fi_atomic_attr attr;
	size_t count = 0;
	uint64_t one = 1;

	CHECK_RET(fi_fetch_atomicvalid(ep, FI_UINT64, FI_SUM, &count), 0);
	CHECK_EQ(count, 1);
	CHECK_RET(fi_compare_atomicvalid(ep, FI_INT64, FI_CSWAP, &count), 0);
	CHECK_RET(fi_fetch_atomicvalid(ep, FI_UINT32, FI_SUM, &count), -FI_EOPNOTSUPP);
	CHECK_RET(fi_fetch_atomicvalid(ep, FI_UINT64, FI_BOR, &count), -FI_EOPNOTSUPP);
	CHECK_RET(fi_atomicvalid(ep, FI_UINT64, FI_SUM, &count), -FI_EOPNOTSUPP);
	CHECK_RET(fi_query_atomic(a.p.a->domain, FI_UINT64, FI_SUM, &attr, FI_FETCH_ATOMIC), 0);
	CHECK_EQ(attr.count, 1);
	CHECK_EQ(attr.size, 8);
	CHECK_RET(fi_query_atomic(a.p.a->domain, FI_UINT64, FI_SUM, &attr, 0), -FI_EOPNOTSUPP);
	CHECK_RET(fetch(&a, 1, FI_BOR), -FI_EOPNOTSUPP);
	CHECK_RET(fi_atomic(ep, &one, 1, NULL, FI_ADDR_UNSPEC, a.target.addr, a.target.key, FI_UINT64, FI_SUM, NULL),
		  -FI_EOPNOTSUPP);
	a.target.addr += 4;
	CHECK_RET(fetch(&a, 1, FI_SUM), -FI_EINVAL);
	expect_no_completion(a.p.a);
}

/* A key that does not hold ends the operation with an error, and nothing has changed. */
TEST_PROV(wrong_key, FI_ATOMIC, CONNECTED)
{
	struct amos a = amos_open(t);

	a.target.key ^= 0x5555;
	MUST(fetch(&a, 5, FI_SUM));
	expect_tx_err(a.p.a, FI_EACCES);
	CHECK_EQ(value(&a), 0);
}
