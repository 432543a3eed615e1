/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that are killed, or stopped, in the middle of things: processes of their own (process.h). As in gone.c, an
 * operation that was accepted completes once, in time.
 * Source: fi_cq(3), fi_endpoint(3).
 */
#include <signal.h>
#include <string.h>

#include "ops.h"
#include "process.h"

enum { BIG = 8 << 20 };

static void say_hello(struct side *s, struct process *proc)
{
	process_tell(proc, "recv 4\n");
	process_answer(proc, "posted");
	send_bytes(s, "abcd", 4);
	process_answer(proc, "received");
	expect_tx(s);
}

/* Two processes talk; the helper is what the tests below take it for. */
TEST_PROV(process_talks, FI_MSG, RELIABLE)
{
	struct process *proc = process_new(t);
	struct side *s = side_to(t, proc);
	uint8_t *in = mem(t, BIG);
	char msg[4];

	say_hello(s, proc);
	post_recv(s, msg, 4);
	process_tell(proc, "send 4\n");
	CHECK_EQ(expect_rx(s).len, 4);
	post_recv(s, in, BIG);
	process_tell(proc, "send 8388608\n");
	CHECK_EQ(expect_rx(s).len, BIG);
	process_end(proc);
}

/* Killed after a first exchange: sends fail, with an errno that says so, and the connection's event comes once. */
TEST_PROV(killed_when_idle, FI_MSG, RELIABLE)
{
	struct process *proc = process_new(t);
	struct side *s = side_to(t, proc);
	struct wait w;
	ssize_t ret;

	if (!run.ours)
		ABSENT("upstream may hang");
	say_hello(s, proc);
	process_kill(proc);
	if (run.type == FI_EP_MSG)
		expect_event(s, FI_SHUTDOWN);
	for (w = wait_begin(); ; wait_more(t, &w, "an error")) {
		ret = try_op(s, SEND, .buf = "lost", .len = 4);
		if (ret < 0 && ret != -FI_EAGAIN)
			break;
		idle(t);
		if (tx_waiting(s) && s->tx.list[s->tx.cnt - 1].err)
			break;
	}
	if (run.type == FI_EP_MSG)
		expect_no_event(s);
}

/* Killed while it takes nothing of what we send: each send completes, once. */
TEST_PROV(killed_with_our_sends, FI_MSG, RELIABLE)
{
	struct process *proc = process_new(t);
	struct side *s = side_to(t, proc);
	uint8_t *out = mem(t, BIG);
	size_t i;

	if (!run.ours)
		ABSENT("upstream may hang");
	say_hello(s, proc);
	process_signal(proc, SIGSTOP);
	for (i = 0; i < 3; i++)
		send_bytes(s, out, BIG);
	side_idle(s);
	process_kill(proc);
	for (i = 0; i < 3; i++) {
		struct wait w = wait_begin();

		while (!tx_waiting(s))
			wait_more(t, &w, "the sends to complete");
		s->tx.taken++;
	}
	CHECK(s->tx.list[s->tx.cnt - 1].err != 0);
	expect_no_completion(s);
}

/* Killed in the middle of a message to us: the receive that it went into completes in error. */
TEST_PROV(killed_in_a_message_to_us, FI_MSG, RELIABLE)
{
	struct process *proc = process_new(t);
	struct side *s = side_to(t, proc);
	uint8_t *in = mem(t, BIG);
	struct wait w = wait_begin();

	if (!run.ours)
		ABSENT("upstream may hang");
	say_hello(s, proc);
	post_recv(s, in, BIG);
	process_tell(proc, "send 8388608\n");
	process_answer(proc, "sending");
	while (!memchr(in, 's', 65536))
		wait_more(t, &w, "a part of the message");
	if (rx_waiting(s))
		SKIP("the message was faster than the signal");
	process_kill(proc);
	while (!rx_waiting(s))
		wait_more(t, &w, "the receive to fail");
	if (!s->rx.list[s->rx.taken].err)
		SKIP("the message was faster than the signal");
}

/* Killed while we read from it. */
TEST_PROV(killed_with_our_reads, FI_MSG | FI_RMA, RELIABLE)
{
	struct process *proc = process_new(t);
	struct side *s = side_to(t, proc);
	uint64_t addr, key;
	uint8_t *in = mem(t, BIG);

	if (!run.ours)
		ABSENT("upstream may hang");
	say_hello(s, proc);
	process_tell(proc, "region 8388608\n");
	process_region(proc, &addr, &key);
	post(s, READ, .buf = in, .len = BIG, .raddr = addr, .key = key);
	expect_tx(s);
	process_signal(proc, SIGSTOP);
	post(s, READ, .buf = in, .len = BIG, .raddr = addr, .key = key);
	side_idle(s);
	process_kill(proc);
	expect_tx_failed(s);
	expect_both_ends_named(s);
	expect_no_completion(s);
}

/* Killed before it was ever spoken to. */
TEST_PROV(killed_before_contact, FI_MSG, RDM_ONLY)
{
	struct process *proc = process_new(t);
	struct side *s = side_to(t, proc);
	int err;

	if (!run.ours)
		ABSENT("upstream says -FI_EAGAIN for ever");
	process_kill(proc);
	err = send_fails(s, s->peer);
	CHECK(err == FI_ECONNREFUSED || err == FI_EHOSTUNREACH || err == FI_ECONNRESET);
}

/* Stopped, not killed: what was sent waits, and goes on when it goes on. */
TEST_PROV(stopped_and_continued, FI_MSG, RELIABLE)
{
	struct process *proc = process_new(t);
	struct side *s = side_to(t, proc);
	uint8_t *out = mem(t, BIG);

	say_hello(s, proc);
	process_tell(proc, "recv 8388608\n");
	process_answer(proc, "posted");
	process_signal(proc, SIGSTOP);
	send_bytes(s, out, BIG);
	side_idle(s);
	CHECK(!tx_waiting(s) || !s->tx.list[s->tx.taken].err);
	process_signal(proc, SIGCONT);
	process_answer(proc, "received");
	expect_tx(s);
}
