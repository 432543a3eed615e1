/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer whose atomics, or their results, are rubbish. After each, that connection is closed (or the one access
 * refused), every operation of ours has its one completion, and a good peer can still talk to the endpoint.
 */
#include "fault/victim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

struct amo_frame {
	struct tcp_hdr hdr;
	struct tcp_rma_iov rma;
	struct tcp_amo amo;
	uint64_t payload;
};

struct amo_answer {
	struct tcp_hdr hdr;
	struct tcp_amo_rsp rsp;
};

/* Datatypes and operations of a later version are refused, the stream goes on, and what we have is done. */
static void unknown_atomics_are_refused(void **state)
{
	struct amo_frame req = { AMO(1, 1, 8), .amo = { 99, 99 }, .payload = 5 };
	struct {
		struct tcp_hdr hdr;
		struct tcp_ack ack;
	} ack;
	struct amo_answer answer;
	uint64_t result;
	struct victim v;
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_peer(&v, true);
	req.rma = (struct tcp_rma_iov) { (uintptr_t) v.memory, 8, fi_mr_key(v.mr) };
	raw_send(fd, &req, sizeof(req));
	raw_recv_all(&v, fd, &answer, sizeof(answer));
	assert_int_equal(answer.hdr.op, TCP_WIRE_AMO_RSP);
	assert_int_equal(answer.rsp.err, FI_EOPNOTSUPP);

	req.hdr.op_data = TCP_AMO_BASE;
	req.hdr.flags = TCP_FLAG_DELIVERY;
	raw_send(fd, &req, sizeof(req));
	raw_recv_all(&v, fd, &ack, sizeof(ack));
	assert_int_equal(ack.hdr.op, TCP_WIRE_ACK);
	assert_int_equal(ack.ack.err, FI_EOPNOTSUPP);

	req.hdr.op_data = TCP_AMO_FETCH;
	req.hdr.flags = 0;
	req.amo = (struct tcp_amo) { FI_SUM, FI_UINT64 };
	raw_send(fd, &req, sizeof(req));
	raw_recv_all(&v, fd, &answer, sizeof(answer));
	assert_int_equal(answer.rsp.err, 0);
	raw_recv_all(&v, fd, &result, sizeof(result));
	assert_int_equal(result, 0);
	assert_memory_equal(v.memory, &req.payload, 8);
	close(fd);
	victim_close(&v);
}

/* A result that is too short or too long, or none, ends the connection; the atomic and what is behind it have one error
 * each. */
static void bad_results_of_atomics(void **state)
{
	static const struct {
		struct tcp_hdr hdr;
		uint32_t err;
		size_t len;
	} row[] = {
		{ { .version = 3, .op = TCP_WIRE_AMO_RSP, .hdr_size = 24, .size = 28 }, 0, 28 },
		{ { .version = 3, .op = TCP_WIRE_AMO_RSP, .hdr_size = 24, .size = 40 }, 0, 40 },
		{ { .version = 3, .op = TCP_WIRE_AMO_RSP, .hdr_size = 24, .size = 32 }, 13, 32 },
		{ { .version = 3, .op = TCP_WIRE_READ_RSP, .hdr_size = 16, .size = 24 }, 0, 24 },
		{ { .version = 3, .op = TCP_WIRE_READ_ERR, .hdr_size = 24, .size = 24 }, 13, 24 },
	};
	uint64_t one = 1, result[2];
	uint8_t request[2 * 56];
	struct victim v;

	(void) state;
	victim_open(&v);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		uint8_t frame[40] = { 0 };
		int fd = raw_peer(&v, true);
		fi_addr_t to = raw_peer_addr(&v, fd);

		memcpy(frame, &row[i].hdr, 16);
		memcpy(frame + 16, &row[i].err, 4);
		for (int k = 0; k < 2; k++)
			OK(fi_fetch_atomic(v.ep, &one, 1, NULL, &result[k], NULL, to, 0, 1, FI_UINT64, FI_SUM,
					   &result[k]));
		raw_recv_all(&v, fd, request, sizeof(request));
		raw_send(fd, frame, row[i].len);
		assert_int_not_equal(failure(&v, &result[0]), 0);
		assert_int_not_equal(failure(&v, &result[1]), 0);
		close(fd);
	}
	still_works(&v);
	victim_close(&v);
}

/* A peer that has no atomics: each is an error that says so. */
static void atomics_want_a_peer_that_has_them(void **state)
{
	uint64_t one = 1, result;
	struct victim v;
	fi_addr_t to;
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_peer(&v, false);
	to = raw_peer_addr(&v, fd);
	OK(fi_atomic(v.ep, &one, 1, NULL, to, 0, 1, FI_UINT64, FI_SUM, &one));
	assert_int_equal(failure(&v, &one), FI_EOPNOTSUPP);
	OK(fi_fetch_atomic(v.ep, &one, 1, NULL, &result, NULL, to, 0, 1, FI_UINT64, FI_SUM, &result));
	assert_int_equal(failure(&v, &result), FI_EOPNOTSUPP);
	close(fd);
	still_works(&v);
	victim_close(&v);
}

/* A peer without our extension takes a write to 4 pieces of its memory; one to 5 is an error that says so, and nothing
 * of it leaves. */
static void many_pieces_want_a_peer_that_takes_them(void **state)
{
	struct fi_rma_iov rma[TCP_RMA_IOV_BASE + 1];
	uint8_t out[TCP_RMA_IOV_BASE + 1] = { 0 }, frame[sizeof(struct tcp_hdr) + TCP_RMA_IOV_BASE * 25];
	struct iovec iov = { out, sizeof(out) };
	struct fi_msg_rma msg = { .msg_iov = &iov, .iov_count = 1, .rma_iov = rma, .rma_iov_count = sizeof(out),
				  .context = out };
	struct fi_cq_tagged_entry done;
	struct victim v;
	int fd;

	(void) state;
	for (size_t i = 0; i < sizeof(out); i++)
		rma[i] = (struct fi_rma_iov) { .addr = i, .len = 1, .key = 1 };
	victim_open(&v);
	fd = raw_peer(&v, false);
	msg.addr = raw_peer_addr(&v, fd);
	OK(fi_writemsg(v.ep, &msg, FI_COMPLETION));
	assert_int_equal(failure(&v, out), FI_EOPNOTSUPP);
	iov.iov_len = msg.rma_iov_count = TCP_RMA_IOV_BASE;
	OK(fi_writemsg(v.ep, &msg, FI_COMPLETION));
	raw_recv_all(&v, fd, frame, sizeof(frame));
	assert_int_equal(((struct tcp_hdr *) frame)->rma_iov_cnt, TCP_RMA_IOV_BASE);
	assert_int_equal(fi_cq_read(v.cq, &done, 1), 1);
	close(fd);
	still_works(&v);
	victim_close(&v);
}

/* It asks for results and reads none: memory for them has an end. */
static void results_that_nobody_reads_have_a_limit(void **state)
{
	static struct {
		struct tcp_hdr hdr;
		struct tcp_rma_iov rma;
		struct tcp_amo amo;
	} req[1024];
	struct victim v;
	bool alive = true;
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_peer(&v, true);
	for (size_t i = 0; i < sizeof(req) / sizeof(*req); i++) {
		req[i].hdr = (struct tcp_hdr) { .version = 3, .op = TCP_WIRE_AMO_REQ, .op_data = TCP_AMO_FETCH,
						.rma_iov_cnt = 1, .hdr_size = 48, .size = 48 };
		req[i].rma = (struct tcp_rma_iov) { (uintptr_t) v.memory, sizeof(v.memory), fi_mr_key(v.mr) };
		req[i].amo = (struct tcp_amo) { FI_ATOMIC_READ, FI_UINT64 };
	}
	for (int i = 0; alive && i < 64; i++)
		alive = raw_pump(&v, fd, req, sizeof(req));
	assert_false(alive);
	close(fd);
	still_works(&v);
	victim_close(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_atomics_are_refused),
		cmocka_unit_test(bad_results_of_atomics),
		cmocka_unit_test(atomics_want_a_peer_that_has_them),
		cmocka_unit_test(many_pieces_want_a_peer_that_takes_them),
		cmocka_unit_test(results_that_nobody_reads_have_a_limit),
	};

	setenv("FI_LOG_LEVEL", "silent", 0);	/* every one of them is worth a line */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
