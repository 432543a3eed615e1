/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Over verbs;ofi_rxm a packet always finds a receive at the other end, whatever the ends do: the device, which is that
 * of test/softverbs, counts those that do not (receiver not ready). One process, an endpoint a, which floods, and b,
 * which is slow or quiet.
 */
#include "ends.h"
#include "../softverbs/stand_in.h"

#include <stdlib.h>
#include <rdma/fi_atomic.h>

#define CAPS		(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define KEEPING		200	/* messages that wait at the peer: more than it has buffers (FI_OFI_RXM_MSG_RX_SIZE) */
#define LONG		(256 << 10)	/* bytes of one that is announced */
#define IDLE_PASSES	200	/* of an end that nothing comes to */

static uint64_t word[2];
static char from[LONG], to[LONG];
static unsigned (*rnr_cnt)(void);
static unsigned rnr_before;

static int setup(void **state)
{
	(void) state;
	ends_open(CAPS, 0, 4096);
	rnr_before = rnr_cnt();
	return 0;
}

/* What a device resends it does so on its own: all there is to see has been seen once all is delivered. */
static void expect_none(void)
{
	assert_int_equal(rnr_cnt() - rnr_before, 0);
}

/* Connected, by a message. */
static void meet(void)
{
	OK((int) fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, from, 8, NULL, a.peer, NULL));
	until(a.done == 1 && b.done == 1);
	a.done = b.done = 0;
}

#define FLOOD	10000

/* The receiver looks at its queue now and then, and posts a receive when it has looked often. */
static void flood(void **state)
{
	unsigned sent = 0, posted = 0;

	(void) state;
	meet();
	for (unsigned pass = 0; b.done < FLOOD; pass++) {
		while (sent < FLOOD && !fi_send(a.ep, from, 8, NULL, a.peer, NULL))
			sent++;
		drive(&a);
		if (pass % 4)
			continue;
		drive(&b);
		for (int i = 0; pass > 100 && posted < FLOOD && i < 64; i++) {
			if (fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL))
				break;
			posted++;
		}
	}
	until(a.done == FLOOD);
	expect_none();
}

/* Who has announced messages, and is quiet now, is told at once of all that they have been fetched. */
static void late_receives_of_long_messages(void **state)
{
	(void) state;
	meet();
	for (unsigned i = 0; i < KEEPING; i++)
		OK((int) fi_tsend(a.ep, from, LONG, NULL, a.peer, i, NULL));
	/* behind them: all have been announced */
	OK((int) fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, from, 8, NULL, a.peer, NULL));
	until(b.done == 1);
	for (unsigned i = 0; i < KEEPING; i++)
		OK((int) fi_trecv(b.ep, to, LONG, NULL, FI_ADDR_UNSPEC, i, 0, NULL));
	until_with(b.done == 1 + KEEPING, false);
	for (int i = 0; i < IDLE_PASSES; i++)
		drive(&b);
	until(a.done == 1 + KEEPING);
	expect_none();
}

/* Likewise who wants to know that short ones have been matched. */
static void late_matches(void **state)
{
	struct iovec iov = { from, 8 };
	struct fi_msg_tagged msg = { .msg_iov = &iov, .iov_count = 1 };

	(void) state;
	meet();
	msg.addr = a.peer;
	for (msg.tag = 0; msg.tag < KEEPING; msg.tag++)
		OK((int) fi_tsendmsg(a.ep, &msg, FI_COMPLETION | FI_MATCH_COMPLETE));
	OK((int) fi_recv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, NULL));
	OK((int) fi_send(a.ep, from, 8, NULL, a.peer, NULL));
	until(b.done == 1);
	for (unsigned i = 0; i < KEEPING; i++)
		OK((int) fi_trecv(b.ep, to, 8, NULL, FI_ADDR_UNSPEC, i, 0, NULL));
	until_with(b.done == 1 + KEEPING, false);
	for (int i = 0; i < IDLE_PASSES; i++)
		drive(&b);
	until(a.done == 1 + KEEPING);
	expect_none();
}

/* Both ask for atomics without a look at their queues: each is the other's slow receiver of requests and of answers. */
static void atomics_both_ways(void **state)
{
	struct fid_mr *mr[2];

	(void) state;
	meet();
	OK(fi_mr_reg(a.domain, &word[0], 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr[0], NULL));
	OK(fi_mr_reg(b.domain, &word[1], 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr[1], NULL));
	word[0] = word[1] = 0;
	memset(from, 0, 8);
	from[0] = 1;
	for (unsigned i = 0; i < 1000; i++) {
		OK((int) fi_atomic(a.ep, from, 1, NULL, a.peer, (uintptr_t) &word[1], fi_mr_key(mr[1]),
				   FI_UINT64, FI_SUM, NULL));
		OK((int) fi_atomic(b.ep, from, 1, NULL, b.peer, (uintptr_t) &word[0], fi_mr_key(mr[0]),
				   FI_UINT64, FI_SUM, NULL));
	}
	until(a.done == 1000 && b.done == 1000);
	assert_int_equal(word[0], 1000);
	assert_int_equal(word[1], 1000);
	expect_none();
	OK(fi_close(&mr[0]->fid));
	OK(fi_close(&mr[1]->fid));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, ends_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(flood),
		CASE(late_receives_of_long_messages),
		CASE(late_matches),
		CASE(atomics_both_ways),
	};

	rnr_cnt = stand_in("sv_test_rnr_cnt");
	return cmocka_run_group_tests_name("rxm/rnr", tests, NULL, NULL);
}
