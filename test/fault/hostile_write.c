/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quiet writes (TCP_EXT_NAK) and their refusals, of peers that keep the rules and of peers that do not. A refusal of a
 * write that there was, and that was not refused before, is one error entry without a context. Any other ends the
 * connection.
 */
#include "fault/victim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_rma.h>

struct write {
	struct tcp_hdr hdr;
	struct tcp_rma_iov rma;
	uint64_t payload;
};

struct refusal {
	struct tcp_hdr hdr;
	struct tcp_refused refused;
};

static struct write write_of(uint64_t addr, uint64_t key, uint16_t flags)
{
	return (struct write) { HDR(.op = TCP_WIRE_WRITE, .flags = flags, .rma_iov_cnt = 1, .hdr_size = 40, .size = 48),
				.rma = { addr, 8, key }, .payload = 0x1122334455667788 };
}

static struct refusal refusal_of(uint64_t number)
{
	return (struct refusal) { HDR(.op = TCP_WIRE_REFUSED, .op_data = TCP_WIRE_WRITE, .hdr_size = 56, .size = 56),
				  .refused = { .number = number, .err = FI_ENOKEY, .target = { 1, 8, 3 } } };
}

/* ---- the victim is the target ---- */

/* Refusals have the numbers of their writes and come before the acknowledgement of a write behind them. Writes that are
 * allowed, or ask for an acknowledgement, get none. */
static void refused_writes_are_answered_by_number(void **state)
{
	struct {
		struct refusal first, second;
		struct tcp_hdr hdr;
		struct tcp_ack ack;
	} answer;
	struct write writes[5];
	struct victim v;
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_peer(&v, true);
	writes[0] = write_of((uintptr_t) v.memory, fi_mr_key(v.mr), 0);
	writes[1] = write_of(77, fi_mr_key(v.mr) + 1, 0);
	writes[2] = write_of((uintptr_t) v.memory + 8, fi_mr_key(v.mr), TCP_FLAG_DELIVERY);
	writes[3] = write_of((uintptr_t) v.memory + sizeof(v.memory) - 7, fi_mr_key(v.mr), 0);
	writes[4] = write_of((uintptr_t) v.memory + 16, fi_mr_key(v.mr), 0);
	raw_send(fd, writes, sizeof(writes));
	raw_recv_all(&v, fd, &answer, sizeof(answer));
	assert_int_equal(answer.first.hdr.op, TCP_WIRE_REFUSED);
	assert_int_equal(answer.first.hdr.op_data, TCP_WIRE_WRITE);
	assert_int_equal(answer.first.refused.number, 2);
	assert_int_equal(answer.first.refused.err, FI_ENOKEY);
	assert_memory_equal(&answer.first.refused.target, &writes[1].rma, sizeof(writes[1].rma));
	assert_int_equal(answer.second.refused.number, 3);
	assert_int_not_equal(answer.second.refused.err, 0);
	assert_int_equal(answer.hdr.op, TCP_WIRE_ACK);
	assert_int_equal(answer.ack.cnt, 1);
	for (int i = 0; i < 3; i++)
		assert_memory_equal(v.memory + 8 * i, &writes[0].payload, 8);
	close(fd);
	victim_close(&v);
}

/* Who writes and writes where it may not, and reads none of the refusals, is hung up on: memory for them has an end. */
static void refusals_that_nobody_reads_have_an_end(void **state)
{
	enum { CNT = 16384 };
	struct write *writes = calloc(CNT, sizeof(*writes));
	struct victim v;
	bool alive = true;
	int fd;

	(void) state;
	for (size_t i = 0; i < CNT; i++)
		writes[i] = write_of(0, 0xdead, 0);
	victim_open(&v);
	fd = raw_peer(&v, true);
	for (int i = 0; alive && i < 64; i++)
		alive = raw_pump(&v, fd, writes, CNT * sizeof(*writes));
	assert_false(alive);
	close(fd);
	still_works(&v);
	victim_close(&v);
	free(writes);
}

/* ---- the victim is the initiator ---- */

/* Write cnt times to the raw peer, which reads the frames. Each completes, though it answers nothing. */
static void victim_writes(struct victim *v, int fd, fi_addr_t to, uint64_t cnt)
{
	struct fi_cq_tagged_entry entry;
	struct write got;
	ssize_t ret;

	while (cnt--) {
		uint64_t end = now_ms() + DEADLINE_MS;

		OK(fi_write(v->ep, "8 bytes.", 8, NULL, to, 1, 3, v));
		while ((ret = fi_cq_read(v->cq, &entry, 1)) == -FI_EAGAIN)
			assert_true(now_ms() < end);
		assert_int_equal(ret, 1);
		assert_ptr_equal(entry.op_context, v);
		raw_recv_all(v, fd, &got, sizeof(got));
		assert_int_equal(got.hdr.op, TCP_WIRE_WRITE);
		assert_int_equal(got.hdr.flags, 0);
	}
}

static void each_write_is_refused_once_at_most(void **state)
{
	/* after three writes: numbers that are taken, and the one that ends the connection */
	static const uint64_t numbers[][4] = {
		{ 1, 1 }, { 2, 1 }, { 1, 2, 3, 4 }, { 3, 3 }, { 4 }, { 0 }, { 2, 3, UINT64_MAX },
	};
	struct refusal refusal;
	struct victim v;

	(void) state;
	victim_open(&v);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		int fd = raw_peer(&v, true), k = 0;

		victim_writes(&v, fd, raw_peer_addr(&v, fd), 3);
		for (; numbers[i][k] > (k ? numbers[i][k - 1] : 0) && numbers[i][k] <= 3; k++) {
			refusal = refusal_of(numbers[i][k]);
			raw_send(fd, &refusal, sizeof(refusal));
			assert_int_equal(failure(&v, NULL), FI_ENOKEY);
		}
		refusal = refusal_of(numbers[i][k]);
		raw_send(fd, &refusal, sizeof(refusal));
		raw_closed(&v, fd);
	}
	still_works(&v);
	victim_close(&v);
}

static void refusal_is_of_a_write_or_an_atomic_and_has_a_reason(void **state)
{
	struct refusal refusals[] = { refusal_of(1), refusal_of(1), refusal_of(1) };
	struct victim v;

	(void) state;
	refusals[0].hdr.op_data = TCP_WIRE_MSG;
	refusals[1].hdr.op_data = TCP_WIRE_READ_REQ;
	refusals[2].refused.err = 0;
	victim_open(&v);
	for (int i = 0; i < 3; i++) {
		int fd = raw_peer(&v, true);

		victim_writes(&v, fd, raw_peer_addr(&v, fd), 1);
		raw_send(fd, &refusals[i], sizeof(refusals[i]));
		raw_closed(&v, fd);
	}
	still_works(&v);
	victim_close(&v);
}

/* Whoever does not read errors cannot make more of them without end: further writes wait. */
static void unread_errors_stop_further_writes(void **state)
{
	enum { CNT = 1024 };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	uint64_t end = now_ms() + 3 * DEADLINE_MS;
	static struct refusal refusals[CNT];
	struct victim v;
	fi_addr_t to;
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_peer(&v, true);
	to = raw_peer_addr(&v, fd);
	OK(fi_cntr_open(v.domain, &attr, &v.cntr, NULL));
	OK(fi_ep_bind(v.ep, &v.cntr->fid, FI_WRITE));
	victim_writes(&v, fd, to, CNT);
	for (uint64_t i = 0; i < CNT; i++)
		refusals[i] = refusal_of(i + 1);
	raw_send(fd, refusals, sizeof(refusals));
	/* a look at a queue with something to read makes no progress; one at a counter does */
	while (fi_cntr_readerr(v.cntr) < CNT)
		assert_true(now_ms() < end);
	assert_int_equal(fi_write(v.ep, "8 bytes.", 8, NULL, to, 1, 3, &v), -FI_EAGAIN);
	for (int i = 0; i < CNT; i++)
		assert_int_equal(failure(&v, NULL), FI_ENOKEY);
	victim_writes(&v, fd, to, 1);
	close(fd);
	victim_close(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_writes_are_answered_by_number),
		cmocka_unit_test(refusals_that_nobody_reads_have_an_end),
		cmocka_unit_test(each_write_is_refused_once_at_most),
		cmocka_unit_test(refusal_is_of_a_write_or_an_atomic_and_has_a_reason),
		cmocka_unit_test(unread_errors_stop_further_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
