/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Atomics on the buffers of tagged receives. Source: fi_atomic(3), FI_TAGGED; doc/decisions/tcp-atomics.md. */
#include <rdma/fi_atomic.h>

#include "ops.h"

#define TAG 9

static struct pair tatomic_pair(struct test *t)
{
	struct pair p = pair_open(t);
	struct fi_atomic_attr attr = { 0 };

	if (fi_query_atomic(p.a->domain, FI_UINT64, FI_SUM, &attr, FI_TAGGED))
		ABSENT("%s has no atomics on tagged receives", run.prov);
	check_link(p.a, p.b);
	return p;
}

/* One element of 64 bits at `at` in the receive with the tag; fetched into *result unless that is NULL. */
static void tatomic(struct side *s, uint64_t tag, uint64_t at, enum fi_op op, uint64_t *operand, uint64_t *result)
{
	struct fi_ioc in = { operand, 1 }, out = { result, 1 };
	struct fi_rma_ioc rma = { .addr = at, .count = 1, .key = tag };
	struct fi_msg_atomic m = {
		.msg_iov = &in, .iov_count = 1, .addr = s->peer, .rma_iov = &rma, .rma_iov_count = 1,
		.datatype = FI_UINT64, .op = op,
	};

	if (result)
		MUST(fi_fetch_atomicmsg(s->ep, &m, &out, NULL, 1, FI_TAGGED | FI_COMPLETION));
	else
		MUST(fi_atomicmsg(s->ep, &m, FI_TAGGED | FI_COMPLETION | level_delivered()));
	s->tx_posted++;
}

/* It changes the buffer of the oldest receive with that tag, which stays posted, for the message that comes. */
TEST_PROV(works_on_the_posted_buffer, FI_ATOMIC | FI_TAGGED, RELIABLE)
{
	struct pair p = tatomic_pair(t);
	uint64_t one = 1, got = 0, first[3] = { 10, 20, 30 }, second[3] = { 40, 50, 60 };
	uint64_t message[3] = { 7, 8, 9 };

	post_trecv(p.b, first, sizeof(first), TAG, 0);
	post_trecv(p.b, second, sizeof(second), TAG, 0);
	tatomic(p.a, TAG, 8, FI_SUM, &one, NULL);
	expect_tx(p.a);
	CHECK_EQ(first[1], 21);
	tatomic(p.a, TAG, 16, FI_SUM, &one, &got);
	expect_tx(p.a);
	CHECK_EQ(got, 30);
	CHECK_EQ(first[2], 31);
	tatomic(p.a, TAG, 0, FI_ATOMIC_READ, &one, &got);
	expect_tx(p.a);
	CHECK_EQ(got, 10);
	CHECK_EQ(second[1], 50);
	tsend_bytes(p.a, message, sizeof(message), TAG);
	expect_recv(p.b, message, sizeof(message));
	expect_tx(p.a);
	/* the next one has its turn */
	tatomic(p.a, TAG, 8, FI_SUM, &one, NULL);
	expect_tx(p.a);
	CHECK_EQ(second[1], 51);
	CHECK_EQ(first[1], 8);
	tsend_bytes(p.a, message, sizeof(message), TAG);
	expect_recv(p.b, message, sizeof(message));
	expect_tx(p.a);
}

/* A receive in pieces, and an element that two of them share. */
TEST_PROV(pieces, FI_ATOMIC | FI_TAGGED, RELIABLE)
{
	struct pair p = tatomic_pair(t);
	uint8_t low[4] = { 0 }, mid[4] = { 5 }, high[12] = { 0 };
	struct iovec iov[] = { { low, 4 }, { mid, 4 }, { high, 12 } };
	uint64_t one = 1, got = 0;
	char message[20] = "so it goes";

	post(p.b, TRECVV, .iov = iov, .iov_cnt = 3, .tag = TAG);
	tatomic(p.a, TAG, 4, FI_SUM, &one, &got);
	expect_tx(p.a);
	CHECK_EQ(got, 5);
	CHECK_EQ(mid[0], 6);
	tatomic(p.a, TAG, 12, FI_SUM, &one, NULL);
	expect_tx(p.a);
	CHECK_EQ(high[4], 1);
	tsend_bytes(p.a, message, sizeof(message), TAG);
	expect_rx(p.b);
	expect_tx(p.a);
}

/* Without a receive, or beyond its end, it is an error of that operation and changes nothing. */
TEST_PROV(refused, FI_ATOMIC | FI_TAGGED, RELIABLE)
{
	struct pair p = tatomic_pair(t);
	uint64_t one = 1, got = 3, buf[2] = { 1, 2 };

	tatomic(p.a, TAG, 0, FI_SUM, &one, NULL);
	expect_tx_err(p.a, FI_ENOENT);
	tatomic(p.a, TAG, 0, FI_SUM, &one, &got);
	expect_tx_err(p.a, FI_ENOENT);
	post_trecv(p.b, buf, sizeof(buf), TAG, 0);
	tatomic(p.a, TAG, 9, FI_SUM, &one, NULL);
	expect_tx_err(p.a, FI_ETRUNC);
	tatomic(p.a, TAG, UINT64_MAX - 3, FI_SUM, &one, &got);
	expect_tx_err(p.a, FI_ETRUNC);
	tatomic(p.a, TAG + 1, 0, FI_SUM, &one, &got);
	expect_tx_err(p.a, FI_ENOENT);
	CHECK(buf[0] == 1 && buf[1] == 2 && got == 3);
	tsend_bytes(p.a, "all is well", 12, TAG);
	expect_recv(p.b, "all is well", 12);
	expect_tx(p.a);
}
