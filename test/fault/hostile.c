/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer whose frames are rubbish. After each, that connection is closed (or the one access refused), every
 * operation of ours has its one completion, and a good peer can still talk to the endpoint.
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

/* ---- frames ---- */

#define TARGET(bytes, operation, datatype) { 0, bytes, 0xdead, operation | (uint64_t) datatype << 32 }

static const struct bad_frame {
	const char *what;
	bool ext;			/* announced our extension before */
	struct tcp_hdr hdr;
	uint64_t words[13];		/* behind the base header; 32-bit pairs are written low half first */
	size_t len;			/* bytes sent in all */
} bad_frames[] = {
	{ "type unknown", false, HDR(.op = 8, .hdr_size = 16, .size = 16), .len = 16 },
	{ "type 255", true, HDR(.op = 255, .hdr_size = 16, .size = 16), .len = 16 },
	{ "upstream's announcement, never negotiated", false, HDR(.op = TCP_WIRE_TAG_RTS, .op_data = 1, .hdr_size = 32,
	  .size = 32), .len = 32 },
	{ "upstream's go-ahead", false, HDR(.op = TCP_WIRE_CTS, .op_data = 1, .hdr_size = 16, .size = 16), .len = 16 },
	{ "upstream's data", false, HDR(.op = TCP_WIRE_DATA, .op_data = 1, .hdr_size = 16, .size = 20), .len = 20 },
	{ "our frames not announced", false, HDR(.op = TCP_WIRE_CREDIT, .hdr_size = 24, .size = 24), .len = 24 },
	{ "parking not announced", false, HDR(.op = TCP_WIRE_PARK, .hdr_size = 16, .size = 16), .len = 16 },
	{ "parking with a payload", true, HDR(.op = TCP_WIRE_PARK, .hdr_size = 16, .size = 20), .len = 20 },
	{ "parking agreed to without being asked", true, HDR(.op = TCP_WIRE_PARK_YES, .hdr_size = 16, .size = 16),
	  .len = 16 },
	{ "parking refused without being asked", true, HDR(.op = TCP_WIRE_PARK_NO, .hdr_size = 16, .size = 16),
	  .len = 16 },
	{ "header shorter than the base", false, HDR(.op = TCP_WIRE_MSG, .hdr_size = 15, .size = 16), .len = 16 },
	{ "header of length 0", false, HDR(.op = TCP_WIRE_MSG, .hdr_size = 0, .size = 16), .len = 16 },
	{ "header longer than any", false, HDR(.op = TCP_WIRE_MSG, .hdr_size = 255, .size = 300), .len = 120 },
	{ "tag missing", false, HDR(.op = TCP_WIRE_TAG, .hdr_size = 16, .size = 16), .len = 16 },
	{ "CQ data missing", false, HDR(.op = TCP_WIRE_MSG, .flags = 1, .hdr_size = 16, .size = 16), .len = 16 },
	{ "size less than the header", false, HDR(.op = TCP_WIRE_TAG, .hdr_size = 24, .size = 23), .len = 24 },
	{ "size 0", false, HDR(.op = TCP_WIRE_MSG, .hdr_size = 16, .size = 0), .len = 16 },
	{ "size of all ones", false, HDR(.op = TCP_WIRE_MSG, .hdr_size = 16, .size = UINT64_MAX), .len = 16 },
	{ "size of half the address space", false, HDR(.op = TCP_WIRE_TAG, .hdr_size = 24, .size = 1ULL << 63),
	  .len = 24 },
	{ "acknowledgement of nothing", false, HDR(.op = TCP_WIRE_MSG, .op_data = 2, .hdr_size = 16, .size = 16),
	  .len = 16 },
	{ "acknowledgement with a payload", false, HDR(.op = TCP_WIRE_MSG, .op_data = 2, .hdr_size = 16, .size = 24),
	  .len = 24 },
	{ "write to no target", false, HDR(.op = TCP_WIRE_WRITE, .hdr_size = 16, .size = 16), .len = 16 },
	{ "write to five targets", false, HDR(.op = TCP_WIRE_WRITE, .rma_iov_cnt = 5, .hdr_size = 16 + 96, .size = 112),
	  .len = 112 },
	{ "write to 255 targets", true, HDR(.op = TCP_WIRE_WRITE, .rma_iov_cnt = 255, .hdr_size = 40, .size = 40),
	  .len = 40 },
	{ "write longer than its target", true, HDR(.op = TCP_WIRE_WRITE, .rma_iov_cnt = 1, .hdr_size = 40, .size = 48),
	  { 0, 4, 0 }, .len = 48 },
	{ "write with lengths that wrap", true, HDR(.op = TCP_WIRE_WRITE, .rma_iov_cnt = 2, .hdr_size = 64, .size = 64),
	  { 0, UINT64_MAX, 0, 0, 1, 0 }, .len = 64 },
	{ "write with an unknown key, no extension", false, HDR(.op = TCP_WIRE_WRITE, .rma_iov_cnt = 1, .hdr_size = 40,
	  .size = 48), { 0, 8, 0xdead }, .len = 48 },
	{ "read of nothing known, no extension", false, HDR(.op = TCP_WIRE_READ_REQ, .rma_iov_cnt = 1, .hdr_size = 40,
	  .size = 40), { 0, 8, 0xdead }, .len = 40 },
	{ "read request with a payload", true, HDR(.op = TCP_WIRE_READ_REQ, .rma_iov_cnt = 1, .hdr_size = 40,
	  .size = 48),
	  .len = 48 },
	{ "answer to no read", false, HDR(.op = TCP_WIRE_READ_RSP, .hdr_size = 16, .size = 24), .len = 24 },
	{ "refusal of no read", true, HDR(.op = TCP_WIRE_READ_ERR, .hdr_size = 24, .size = 24), { 13 }, .len = 24 },
	{ "refusal of no write", true, HDR(.op = TCP_WIRE_REFUSED, .op_data = TCP_WIRE_WRITE, .hdr_size = 56,
	  .size = 56), { 1, 13 }, .len = 56 },
	{ "refusal of a write before the first", true, HDR(.op = TCP_WIRE_REFUSED, .op_data = TCP_WIRE_WRITE,
	  .hdr_size = 56, .size = 56), { 0, 13 }, .len = 56 },
	{ "refusal with a payload", true, HDR(.op = TCP_WIRE_REFUSED, .op_data = TCP_WIRE_WRITE, .hdr_size = 56,
	  .size = 64), { 1, 13 }, .len = 64 },
	{ "refusal not announced", false, HDR(.op = TCP_WIRE_REFUSED, .hdr_size = 56, .size = 56), .len = 56 },
	{ "four billion acknowledgements", true, HDR(.op = TCP_WIRE_ACK, .hdr_size = 24, .size = 24), { UINT32_MAX },
	  .len = 24 },
	{ "CQ data in front of an acknowledgement", true,
	  HDR(.op = TCP_WIRE_ACK, .flags = 1, .hdr_size = 24, .size = 24),
	  .len = 24 },
	{ "more credit than it promised", true, HDR(.op = TCP_WIRE_CREDIT, .hdr_size = 24, .size = 24), { 1 << 20 },
	  .len = 24 },
	{ "credit that wraps", true, HDR(.op = TCP_WIRE_CREDIT, .hdr_size = 24, .size = 24), { UINT64_MAX },
	  .len = 24 },
	{ "go-ahead for nothing", true, HDR(.op = TCP_WIRE_XCTS, .hdr_size = 32, .size = 32), { 7, 8 }, .len = 32 },
	{ "go-ahead with an id of all ones", true, HDR(.op = TCP_WIRE_XCTS, .hdr_size = 32, .size = 32),
	  { UINT64_MAX, 8 }, .len = 32 },
	{ "data nobody asked for", true, HDR(.op = TCP_WIRE_XDATA, .hdr_size = 24, .size = 32), { 3, 0 }, .len = 32 },
	{ "wide data nobody asked for", true, HDR(.op = TCP_WIRE_XDATA_WIDE, .hdr_size = 64, .size = 72), { 3, 0 },
	  .len = 72 },
	{ "wide data with a narrow header", true, HDR(.op = TCP_WIRE_XDATA_WIDE, .hdr_size = 24, .size = 32), { 3, 0 },
	  .len = 32 },
	{ "wide data not announced", false, HDR(.op = TCP_WIRE_XDATA_WIDE, .hdr_size = 64, .size = 72), { 3, 0 },
	  .len = 72 },
	{ "announcement of more than can be", true, HDR(.op = TCP_WIRE_XRTS, .op_data = 1, .hdr_size = 40, .size = 40),
	  { 1, UINT64_MAX, 1 }, .len = 40 },
	{ "announcement of unknown kind", true, HDR(.op = TCP_WIRE_XRTS, .op_data = 3, .hdr_size = 40, .size = 40),
	  { 1, 10, 1 }, .len = 40 },
	{ "peer group not announced", false, HDR(.op = TCP_WIRE_MSG, .flags = TCP_FLAG_GROUP, .hdr_size = 24,
	  .size = 24), { 1 }, .len = 24 },
	{ "peer group missing", true, HDR(.op = TCP_WIRE_TAG, .flags = TCP_FLAG_GROUP, .hdr_size = 24, .size = 24),
	  { 1 }, .len = 24 },
	{ "peer group that cannot be", true,
	  HDR(.op = TCP_WIRE_TAG, .flags = TCP_FLAG_GROUP, .hdr_size = 32, .size = 32),
	  { 1, TCP_GROUP_MAX + 1 }, .len = 32 },
	{ "peer group beyond 32 bits", true,
	  HDR(.op = TCP_WIRE_MSG, .flags = TCP_FLAG_GROUP, .hdr_size = 24, .size = 24),
	  { 1ULL << 32 | 1 }, .len = 24 },
	{ "peer group of a write", true, HDR(.op = TCP_WIRE_WRITE, .flags = TCP_FLAG_GROUP, .rma_iov_cnt = 1,
	  .hdr_size = 48, .size = 48), { 0, 0, 0, 1 }, .len = 48 },
	{ "peer group of an acknowledgement", true, HDR(.op = TCP_WIRE_MSG, .flags = TCP_FLAG_GROUP, .op_data = 2,
	  .hdr_size = 24, .size = 24), { 1 }, .len = 24 },
	{ "peer group of a collective's announcement", true, HDR(.op = TCP_WIRE_XRTS, .flags = TCP_FLAG_GROUP,
	  .op_data = 2, .hdr_size = 48, .size = 48), { 1, 10, 1, 1 }, .len = 48 },
	{ "announcement in a peer group that cannot be", true, HDR(.op = TCP_WIRE_XRTS, .flags = TCP_FLAG_GROUP,
	  .op_data = 1, .hdr_size = 48, .size = 48), { 1, 10, 1, UINT64_MAX }, .len = 48 },
	{ "atomic not announced", false, AMO(0, 1, 8), TARGET(8, FI_SUM, FI_UINT64), .len = 56 },
	{ "atomic without a target", true, AMO(0, 0, 8), .len = 56 },
	{ "atomic without an operation", true,
	  HDR(.op = TCP_WIRE_AMO_REQ, .rma_iov_cnt = 1, .hdr_size = 40, .size = 48),
	  .len = 48 },
	{ "atomic of unknown kind", true, AMO(3, 1, 8), TARGET(8, FI_SUM, FI_UINT64), .len = 56 },
	{ "atomic with half of an operand", true, AMO(0, 1, 4), TARGET(8, FI_SUM, FI_UINT64), .len = 52 },
	{ "atomic on half of an element", true, AMO(0, 1, 4), TARGET(4, FI_SUM, FI_UINT64), .len = 52 },
	{ "atomic with nothing to compare with", true, AMO(2, 1, 8), TARGET(8, FI_CSWAP, FI_UINT64), .len = 56 },
	{ "atomic that reads, with an operand", true, AMO(1, 1, 8), TARGET(8, FI_ATOMIC_READ, FI_UINT64), .len = 56 },
	{ "atomic on more than may be", true, AMO(1, 1, 0), TARGET(TCP_AMO_MAX + 8, FI_ATOMIC_READ, FI_UINT64),
	  .len = 48 },
	{ "atomic on lengths that wrap", true,
	  HDR(.op = TCP_WIRE_AMO_REQ, .op_data = 1, .rma_iov_cnt = 2, .hdr_size = 72, .size = 72),
	  { 0, UINT64_MAX, 0, 0, 9, 0, FI_ATOMIC_READ | (uint64_t) FI_UINT64 << 32 }, .len = 72 },
	{ "atomic with more operands than may be", true, AMO(0, 1, 3 * TCP_AMO_MAX), TARGET(8, 99, 99), .len = 48 },
	{ "result of no atomic", true, HDR(.op = TCP_WIRE_AMO_RSP, .hdr_size = 24, .size = 32), .len = 32 },
	{ "refusal of no atomic", true, HDR(.op = TCP_WIRE_AMO_RSP, .hdr_size = 24, .size = 24), { 13 }, .len = 24 },
	{ "collective not announced", false, HDR(.op = TCP_WIRE_COLL, .hdr_size = 24, .size = 24), .len = 24 },
	{ "collective without a tag", true, HDR(.op = TCP_WIRE_COLL, .hdr_size = 16, .size = 16), .len = 16 },
	{ "collective with CQ data", true, HDR(.op = TCP_WIRE_COLL, .flags = 1, .hdr_size = 32, .size = 32),
	  .len = 32 },
	{ "collective of unknown kind", true, HDR(.op = TCP_WIRE_COLL, .op_data = 2, .hdr_size = 24, .size = 24),
	  .len = 24 },
	{ "end of a group with a payload", true, HDR(.op = TCP_WIRE_COLL, .op_data = 1, .hdr_size = 24, .size = 32),
	  .len = 32 },
	{ "collective beyond its credit", true, HDR(.op = TCP_WIRE_COLL, .hdr_size = 24, .size = 24 + (1 << 30)),
	  { 1 }, .len = 24 },
	{ "unexpected message beyond its credit", true, HDR(.op = TCP_WIRE_MSG, .hdr_size = 16, .size = 16 + (1 << 30)),
	  .len = 16 },
};

static void frame_that_breaks_a_rule_ends_its_connection_only(void **state)
{
	struct victim v;

	(void) state;
	victim_open(&v);
	for (size_t i = 0; i < sizeof(bad_frames) / sizeof(*bad_frames); i++) {
		const struct bad_frame *bad = &bad_frames[i];
		uint8_t frame[128];
		int fd = raw_peer(&v, bad->ext);

		print_message("# %s\n", bad->what);
		memcpy(frame, &bad->hdr, 16);
		memcpy(frame + 16, bad->words, sizeof(bad->words));
		raw_send(fd, frame, bad->len);
		raw_closed(&v, fd);
	}
	still_works(&v);
	victim_close(&v);
}

/* The peer speaks our extension: a wrong key is refused, and the stream goes on. */
static void wrong_key_is_refused_and_the_stream_goes_on(void **state)
{
	struct {
		struct tcp_hdr hdr;
		struct tcp_rma_iov rma;
		uint64_t payload;
	} write = { HDR(.op = TCP_WIRE_WRITE, .flags = TCP_FLAG_DELIVERY,
		    .rma_iov_cnt = 1, .hdr_size = 40, .size = 48) };
	struct {
		struct tcp_hdr hdr;
		struct tcp_ack ack;
	} answer;
	struct {
		struct tcp_hdr hdr;
		struct tcp_read_err err;
	} refused;
	struct victim v;
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_peer(&v, true);

	write.rma = (struct tcp_rma_iov) { (uintptr_t) v.memory, 8, fi_mr_key(v.mr) + 1 };
	raw_send(fd, &write, sizeof(write));
	raw_recv_all(&v, fd, &answer, sizeof(answer));
	assert_int_equal(answer.hdr.op, TCP_WIRE_ACK);
	assert_int_equal(answer.ack.cnt, 0);
	assert_int_not_equal(answer.ack.err, 0);

	/* one byte past the end */
	write.rma = (struct tcp_rma_iov) { (uintptr_t) v.memory + sizeof(v.memory) - 7, 8, fi_mr_key(v.mr) };
	raw_send(fd, &write, sizeof(write));
	raw_recv_all(&v, fd, &answer, sizeof(answer));
	assert_int_not_equal(answer.ack.err, 0);

	write.hdr.op = TCP_WIRE_READ_REQ;
	write.hdr.flags = 0;
	write.hdr.size = 40;
	raw_send(fd, &write, 40);
	raw_recv_all(&v, fd, &refused, sizeof(refused));
	assert_int_equal(refused.hdr.op, TCP_WIRE_READ_ERR);

	write.hdr.op = TCP_WIRE_WRITE;
	write.hdr.flags = TCP_FLAG_DELIVERY;
	write.hdr.size = 48;
	write.payload = 0x1122334455667788;
	write.rma.addr = (uintptr_t) v.memory;
	raw_send(fd, &write, sizeof(write));
	raw_recv_all(&v, fd, &answer, sizeof(answer));
	assert_int_equal(answer.ack.cnt, 1);
	assert_int_equal(answer.ack.err, 0);
	assert_memory_equal(v.memory, &write.payload, 8);
	close(fd);
	victim_close(&v);
}

/* The end of a group that there is not, and messages of one: no harm, and no receive of the application meets them. */
static void collectives_of_strangers_do_no_harm(void **state)
{
	struct {
		struct tcp_hdr hdr;
		uint64_t tag;
	} end = { HDR(.op = TCP_WIRE_COLL, .op_data = TCP_COLL_ABORT, .hdr_size = 24, .size = 24), UINT64_MAX },
	  message = { HDR(.op = TCP_WIRE_COLL, .op_data = TCP_COLL_MSG, .hdr_size = 24, .size = 24), 7 };
	struct victim v;
	char buf[8];
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_peer(&v, true);
	OK(fi_trecv(v.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 0, UINT64_MAX, buf));
	for (int i = 0; i < 20; i++) {
		raw_send(fd, &end, sizeof(end));
		raw_send(fd, &message, sizeof(message));
		progress(&v);
	}
	for (int i = 0; i < 100; i++)
		progress(&v);
	close(fd);
	still_works(&v);
	OK(fi_cancel(&v.ep->fid, buf));
	assert_int_equal(failure(&v, buf), FI_ECANCELED);
	victim_close(&v);
}

/* The peer goes in the middle of a message that a receive has already taken: that receive ends in error, once. */
static void peer_vanishes_in_the_middle_of_a_message(void **state)
{
	struct tcp_hdr hdr = { .version = 3, .op = TCP_WIRE_MSG, .hdr_size = 16, .size = 16 + 100 };
	uint8_t buf[100], half[66] = { 0 };
	struct victim v;
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_peer(&v, false);
	OK(fi_recv(v.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, buf));
	memcpy(half, &hdr, sizeof(hdr));
	raw_send(fd, half, sizeof(half));
	for (int i = 0; i < 100; i++)
		progress(&v);
	close(fd);
	assert_int_equal(failure(&v, buf), FI_ECONNRESET);
	progress(&v);
	still_works(&v);
	victim_close(&v);
}

/* ---- a peer of the other byte order ---- */

static uint64_t swap_halves(uint64_t word)
{
	return (uint64_t) __builtin_bswap32(word >> 32) << 32 | __builtin_bswap32(word);
}

/* Our extension has fields of 32 bits beside those of 64: announcement, go-ahead, data and acknowledgement, from a
 * machine that writes all of them the other way round. */
static void extension_of_the_other_byte_order(bool wide)
{
	struct hello hello = hello_make(true), answer;
	struct {
		struct tcp_hdr hdr;
		uint64_t tag, len, id;
	} rts = { HDR(.op = TCP_WIRE_XRTS, .op_data = 1, .hdr_size = 40, .size = __builtin_bswap64(40)),
		  __builtin_bswap64(7), __builtin_bswap64(5), swap_halves(3) };
	struct {
		struct tcp_hdr hdr;
		struct tcp_cts cts;
	} cts;
	struct {
		struct tcp_hdr hdr;
		uint64_t rx_id, zero[5];
	} data = { HDR(.op = wide ? TCP_WIRE_XDATA_WIDE : TCP_WIRE_XDATA, .hdr_size = wide ? sizeof(data) : 24) };
	uint64_t end = now_ms() + DEADLINE_MS;
	struct fi_cq_tagged_entry entry;
	struct victim v;
	char buf[5];
	ssize_t ret;
	int fd;

	victim_open(&v);
	OK(fi_trecv(v.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 7, 0, buf));
	hello.hdr.conn_data = __builtin_bswap64(TCP_CM_CONN_DATA);
	fd = raw_connect(&v);
	raw_send(fd, &hello, sizeof(hello));
	raw_recv_all(&v, fd, &answer, sizeof(answer));
	raw_send(fd, &rts, sizeof(rts));
	raw_recv_all(&v, fd, &cts, sizeof(cts));
	assert_int_equal(cts.hdr.op, TCP_WIRE_XCTS);
	assert_int_equal(cts.cts.id, 3);
	data.rx_id = swap_halves(cts.cts.rx_id);
	data.hdr.size = __builtin_bswap64(data.hdr.hdr_size + 5);
	raw_send(fd, &data, data.hdr.hdr_size);
	raw_send(fd, "hello", 5);
	while ((ret = fi_cq_read(v.cq, &entry, 1)) == -FI_EAGAIN)
		assert_true(now_ms() < end);
	assert_int_equal(ret, 1);
	assert_memory_equal(buf, "hello", 5);
	close(fd);
	victim_close(&v);
}

static void extension_of_the_other_byte_order_is_understood(void **state)
{
	(void) state;
	extension_of_the_other_byte_order(false);
	extension_of_the_other_byte_order(true);
}

/* ---- limits ---- */

/* So many unexpected messages that its socket waits; then it is gone. What waits for its answer is told. */
static void peer_that_is_put_off_and_vanishes(void **state)
{
	static struct {
		struct tcp_hdr hdr;
		uint8_t payload[1 << 20];
	} frame = { HDR(.op = TCP_WIRE_MSG, .hdr_size = 16, .size = 16 + (1 << 20)) };
	struct linger abort = { .l_onoff = 1 };
	struct iovec iov = { "hello", 5 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .context = &iov };
	struct victim v;
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_peer(&v, false);
	msg.addr = raw_peer_addr(&v, fd);
	OK(fi_sendmsg(v.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	for (int i = 0; i < 65; i++)
		assert_true(raw_pump(&v, fd, &frame, sizeof(frame)));
	for (int i = 0; i < 100; i++)
		fi_cq_read(v.cq, NULL, 0);
	OK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)));
	close(fd);
	assert_int_not_equal(failure(&v, &iov), 0);
	victim_close(&v);
}

/* It refuses with a number that is no errno: the application gets one all the same. */
static void refusal_without_reason_is_an_error(void **state)
{
	struct {
		struct tcp_hdr hdr;
		struct tcp_read_err err;
	} refusal = { HDR(.op = TCP_WIRE_READ_ERR, .hdr_size = 24, .size = 24), { .err = 0x80000001 } };
	uint8_t request[40], buf[8];
	struct victim v;
	int fd;

	(void) state;
	victim_open(&v);
	fd = raw_peer(&v, true);
	OK(fi_read(v.ep, buf, sizeof(buf), NULL, raw_peer_addr(&v, fd), 0, 0, buf));
	raw_recv_all(&v, fd, request, sizeof(request));
	raw_send(fd, &refusal, sizeof(refusal));
	assert_int_equal(failure(&v, buf), FI_EIO);
	close(fd);
	victim_close(&v);
}

/* It answers a read with fewer bytes than were asked for, or more: these do not reach the memory behind the buffer. */
static void answer_of_another_length_ends_the_connection(void **state)
{
	struct {
		struct tcp_hdr hdr;
		uint64_t payload[2];
	} answer = { HDR(.op = TCP_WIRE_READ_RSP, .hdr_size = 16), { 1, 2 } };
	uint64_t buf[2] = { 0 };
	uint8_t request[40];
	struct victim v;

	(void) state;
	victim_open(&v);
	for (size_t len = 4; len <= sizeof(answer.payload); len += 12) {
		int fd = raw_peer(&v, true);

		OK(fi_read(v.ep, buf, sizeof(*buf), NULL, raw_peer_addr(&v, fd), 0, 0, buf));
		raw_recv_all(&v, fd, request, sizeof(request));
		answer.hdr.size = sizeof(answer.hdr) + len;
		raw_send(fd, &answer, answer.hdr.size);
		assert_int_equal(failure(&v, buf), FI_EIO);
		assert_int_equal(buf[1], 0);
		close(fd);
	}
	still_works(&v);
	victim_close(&v);
}

/* It asks and asks, and reads none of the answers: memory for them has an end. */
static void peer_that_reads_no_answers_is_hung_up_on(void **state)
{
	static struct {
		struct tcp_hdr hdr;
		struct tcp_rma_iov rma;
	} read[16384];
	struct victim v;
	bool alive = true;
	int fd;

	(void) state;
	for (size_t i = 0; i < sizeof(read) / sizeof(*read); i++) {
		read[i].hdr = (struct tcp_hdr) { .version = 3, .op = TCP_WIRE_READ_REQ, .rma_iov_cnt = 1,
						 .hdr_size = 40, .size = 40 };
		read[i].rma = (struct tcp_rma_iov) { 0, 8, 0xdead };
	}
	victim_open(&v);
	fd = raw_peer(&v, true);
	for (int i = 0; alive && i < 64; i++)
		alive = raw_pump(&v, fd, read, sizeof(read));
	assert_false(alive);
	close(fd);
	still_works(&v);
	victim_close(&v);
}

/* ---- chance ---- */

static uint32_t lcg(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* The right length of a header, or nearly always the right one. */
static uint8_t random_hdr_size(uint32_t *seed, const struct tcp_hdr *hdr)
{
	static const uint8_t fixed[TCP_WIRE_OP_END] = {
		[TCP_WIRE_TAG] = 8, [TCP_WIRE_ACK] = 8, [TCP_WIRE_CREDIT] = 8, [TCP_WIRE_XRTS] = 24,
		[TCP_WIRE_XCTS] = 16, [TCP_WIRE_XDATA] = 8, [TCP_WIRE_XDATA_WIDE] = 48, [TCP_WIRE_READ_ERR] = 8,
		[TCP_WIRE_COLL] = 8,
		[TCP_WIRE_AMO_REQ] = 8, [TCP_WIRE_AMO_RSP] = 8, [TCP_WIRE_REFUSED] = 40,
	};
	bool rma = hdr->op == TCP_WIRE_WRITE || hdr->op == TCP_WIRE_READ_REQ || hdr->op == TCP_WIRE_AMO_REQ;
	bool cq_data = hdr->op <= TCP_WIRE_TAG || hdr->op == TCP_WIRE_WRITE || hdr->op == TCP_WIRE_XRTS;

	if (!(lcg(seed) % 16))
		return lcg(seed);
	return sizeof(*hdr) + (hdr->op < TCP_WIRE_OP_END ? fixed[hdr->op] : 0) + (rma ? hdr->rma_iov_cnt * 24 : 0) +
	       (cq_data && (hdr->flags & TCP_FLAG_CQ_DATA) ? 8 : 0) +
	       (cq_data && !rma && (hdr->flags & TCP_FLAG_GROUP) ? 8 : 0);
}

/* Frames whose fields are drawn by chance, most of them right. Same every run. */
static size_t random_frame(uint32_t *seed, uint8_t *frame, size_t room)
{
	static const uint8_t ops[] = { 0, 0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 32, 33, 34, 34, 35, 36, 37, 38, 39, 39,
		40, 41, 41, 45, 200 };
	struct tcp_hdr hdr = {
		.version = 3, .op = ops[lcg(seed) % sizeof(ops)], .flags = lcg(seed) % 3 ? 0 : lcg(seed) % 64,
		.op_data = lcg(seed) % 3, .rma_iov_cnt = lcg(seed) % 8 ? 1 + lcg(seed) % 4 : lcg(seed),
	};

	for (size_t i = 0; i < room; i++)
		frame[i] = lcg(seed) % 4 ? 0 : lcg(seed);
	hdr.hdr_size = random_hdr_size(seed, &hdr);
	hdr.size = lcg(seed) % 16 ? (uint64_t) hdr.hdr_size + (lcg(seed) % 2 ? lcg(seed) % 256 : 0) : lcg(seed);
	memcpy(frame, &hdr, sizeof(hdr));
	return hdr.size < room ? hdr.size : room;
}

static void random_frames_do_no_harm(void **state)
{
	struct victim v;
	uint32_t seed = 12345;

	(void) state;
	victim_open(&v);
	for (int i = 0; i < 400; i++) {
		int fd = raw_peer(&v, lcg(&seed) % 4);

		for (int f = 0; f < 16; f++) {
			uint8_t frame[512];

			raw_send(fd, frame, random_frame(&seed, frame, sizeof(frame)));
			fi_cq_read(v.cq, NULL, 0);
		}
		close(fd);
	}
	for (int i = 0; i < 1000; i++)
		fi_cq_read(v.cq, NULL, 0);
	victim_close(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_that_breaks_a_rule_ends_its_connection_only),
		cmocka_unit_test(wrong_key_is_refused_and_the_stream_goes_on),
		cmocka_unit_test(collectives_of_strangers_do_no_harm),
		cmocka_unit_test(peer_vanishes_in_the_middle_of_a_message),
		cmocka_unit_test(extension_of_the_other_byte_order_is_understood),
		cmocka_unit_test(peer_that_is_put_off_and_vanishes),
		cmocka_unit_test(refusal_without_reason_is_an_error),
		cmocka_unit_test(answer_of_another_length_ends_the_connection),
		cmocka_unit_test(peer_that_reads_no_answers_is_hung_up_on),
		cmocka_unit_test(random_frames_do_no_harm),
	};

	setenv("FI_LOG_LEVEL", "silent", 0);	/* every one of them is worth a line */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
