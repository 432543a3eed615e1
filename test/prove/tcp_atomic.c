/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions that start a frame of an atomic and of its result (tcp_frames[].start and .whole of remote/atomic.c),
 * and the execution that follows when the operands are there, for a header that rx_hdr_check() accepts (tcp_header.c),
 * of any bytes besides. An atomic is executed only on as many bytes as it has operands, and has room for its result;
 * its answer is taken only for a request that waits for as much.
 *
 * eva: -eva-slevel 300 -eva-alloc-builtin fresh -eva-slevel-function main:0,begin:0,any_header:0
 * eva: -eva-slevel-function prove_kinds:0,prove_answer:0,prove_answer_whole:0
 * eva: -eva-split-return-function fab_mr_verify:0,verify:0,may_commit:0,commit:0
 * eva: -eva-split-return-function amo_request_decode:full,amo_tagged_targets:0,amo_request_run:0,amo_on_device:0
 * eva: -eva-split-return-function fab_hmem_from:0,fab_hmem_to:0
 */
#include "tcp_frame.h"
/* Which receive a tag matches is not analysed: the program has one, or none. */
static struct fab_rx *any_receive(void);
#define fab_recv_find(recv, class, tag, src)	any_receive()
#include "common/op/op.c"
#include "tcp/remote/quiet.c"
#include "tcp/remote/rma.c"
/* These are proved by themselves, and atomics with their contracts. */
static int verify(struct tcp_conn *conn, const struct tcp_rma_iov *rma, uint32_t cnt, uint64_t access,
		  struct fab_mr **mr, struct iovec *iov, uint32_t *iov_cnt);
static int may_commit(const struct tcp_conn *conn, bool tagged);
static int commit(const struct tcp_conn *conn);
static void count(const struct tcp_conn *conn);
static void refuse(struct tcp_conn *conn, uint32_t err);
#define tcp_rma_verify		verify
#define tcp_rma_may_commit	may_commit
#define tcp_rma_commit		commit
#define tcp_rma_count		count
#define tcp_rma_refuse		refuse
#include "tcp/remote/atomic.c"
#undef tcp_rma_verify
#undef tcp_rma_may_commit
#undef tcp_rma_commit
#undef tcp_rma_count
#undef tcp_rma_refuse

#define MEM	TCP_AMO_MAX		/* bytes of memory at a target */

static struct fab_mr region[2];
static struct tcp_tx tx;
static uint8_t mem[MEM];

/* ---- memory and arithmetic ---- */

static uint32_t pieces;			/* of memory of an access */
static uint32_t regions, found;		/* the targets of an access are in so many regions in turn */

/* An access is refused, or it has so many pieces of memory. */
int fab_mr_verify(struct fab_mr_map *map, const struct fab_auth_key *auth_key, uint64_t key, uint64_t addr, size_t len,
		  uint64_t access, struct iovec *iov, uint32_t *cnt, struct fab_mr **mr)
{
	(void) map, (void) auth_key, (void) key, (void) addr, (void) len, (void) access;
	prove(*cnt <= TCP_IOV_LIMIT);
	if (any_of(0, 1))
		return -(int) any_of(1, 300);
	*mr = &region[found++ % regions];
	if (*cnt < pieces)
		return -FI_ETOOSMALL;
	any_bytes(iov, pieces * sizeof(*iov));
	*cnt = pieces;
	return 0;
}

/* The same for all targets, whose memory is as long as they are. */
static int verify(struct tcp_conn *one, const struct tcp_rma_iov *rma, uint32_t cnt, uint64_t access,
		  struct fab_mr **mr, struct iovec *iov, uint32_t *iov_cnt)
{
	uint64_t len = 0;

	(void) one, (void) access;
	if (any_of(0, 1))
		return -(int) any_of(1, 300);
	//@ loop unroll 8;
	for (uint32_t i = 0; i < cnt; i++) {
		mr[i] = &region[0];
		len += rma[i].len;
	}
	prove(len <= MEM);
	//@ loop unroll 8;
	for (uint32_t i = 0; i < pieces; i++) {
		iov[i] = (struct iovec) { mem + MEM - len, i + 1 < pieces ? len / pieces : len };
		len -= iov[i].iov_len;
	}
	*iov_cnt = pieces;
	return 0;
}

static int may_commit(const struct tcp_conn *one, bool tagged)
{
	prove(tagged || one->rx.mr[one->rx.hdr.rma_iov_cnt - 1] == &region[0]);
	return any_of(0, 1) ? -FI_EOPNOTSUPP : 0;
}

static int commit(const struct tcp_conn *one)
{
	(void) one;
	return any_of(0, 1) ? -(int) any_of(1, 300) : 0;
}

static void count(const struct tcp_conn *one)
{
	prove(one->rx.mr[one->rx.hdr.rma_iov_cnt - 1] == &region[0]);
}

static void refuse(struct tcp_conn *one, uint32_t err)
{
	prove(err > 0 && err <= 300);
	one->state = any_of(TCP_CONN_UP, TCP_CONN_DOWN);
}

static bool valid;			/* the datatype has the operation */
static size_t element;			/* bytes */

/* As common/op/atomic.h: which kind of call has an operation. */
bool fab_atomic_valid(enum fab_atomic_kind kind, enum fi_datatype datatype, enum fi_op op)
{
	bool compares = op >= FI_CSWAP && op <= FI_MSWAP;

	(void) datatype;
	return valid && compares == (kind == FAB_ATOMIC_COMPARE) && (kind != FAB_ATOMIC_BASE || op != FI_ATOMIC_READ);
}

size_t fab_atomic_size(enum fi_datatype datatype)
{
	(void) datatype;
	return element;
}

void fab_atomic_pieces(enum fi_datatype datatype, enum fi_op op, const struct iovec *iov, size_t cnt,
		       const void *operand, const void *compare, void *result)
{
	size_t len = 0;

	(void) datatype;
	prove(cnt <= TCP_IOV_LIMIT);
	//@ loop unroll 8;
	for (size_t i = 0; i < cnt; i++) {
		any_bytes(iov[i].iov_base, iov[i].iov_len);
		len += iov[i].iov_len;
	}
	/* what Eva does not see: an operand that goes beyond this member stays in the connection */
	if (conn.rx.operands == conn.rx.operand_room && op != FI_ATOMIC_READ)
		prove((op >= FI_CSWAP && op <= FI_MSWAP ? 2 : 1) * len <= sizeof(conn.rx.operand_room));
	if (op != FI_ATOMIC_READ)
		prove_readable(operand, len);
	if (op >= FI_CSWAP && op <= FI_MSWAP)
		prove_readable(compare, len);
	if (result)
		any_bytes(result, len);
}

static struct fab_rx receive;

static struct fab_rx *any_receive(void)
{
	return any_of(0, 1) ? &receive : NULL;
}

int fab_hmem_from(uint8_t hmem, void *to, const struct iovec *iov, size_t at, size_t len)
{
	(void) hmem, (void) at;
	prove_readable(iov, sizeof(*iov));
	any_bytes(to, len);
	return any_of(0, 1) ? -FI_EIO : 0;
}

int fab_hmem_to(uint8_t hmem, const struct iovec *iov, size_t at, const void *from, size_t len)
{
	(void) hmem, (void) at;
	prove_readable(iov, sizeof(*iov));
	prove_readable(from, len);
	return any_of(0, 1) ? -FI_EIO : 0;
}

/*@ requires \valid(hmem);
  @ assigns *hmem, \result \from *hmem, more;
  @*/
int fab_hmem_join(uint8_t *hmem, uint8_t more);
/*@ assigns \result \from one;
  @ ensures \result == 0 || \result == 1;
  @*/
bool fab_domain_lock_atomics(struct fab_domain *one);
/*@ assigns \nothing; */
void fab_domain_unlock_atomics(void);
/*@ requires \valid(mr);
  @ assigns \nothing;
  @*/
void fab_mr_count(struct fab_mr *mr, struct fab_engine *one, size_t len);
/*@ requires \valid_read(iov + (0 .. cnt - 1));
  @ assigns \result \from cnt;
  @ ensures -300 <= \result <= 0;
  @*/
int fab_mr_commit(const struct fab_mr *mr, const struct iovec *iov, uint32_t cnt);

/* ---- the stream ---- */

/* All of an answer is there, and it is freed when it was sent. */
void tcp_tx_queue(struct tcp_conn *one, struct tcp_tx *what)
{
	(void) one;
	if (!what->amo)
		return;
	prove_readable(what->flat, what->size - what->hdr_len);
	if (what->flat != what->inject)
		free(what->flat);
}

/*@ assigns \nothing; */
void tcp_conn_text(const struct tcp_conn *one, char text[TCP_CONN_TEXT]);

/* ---- requests ---- */

/* The frame is one that comes after others. */
static void begin(uint8_t op, uint32_t targets, uint32_t fixed, uint64_t payload)
{
	any_header(op, targets, fixed, false, payload);
	conn.remote.amo_owed = any_of(0, UINT32_MAX);
	conn.remote.quiet_taken = any_of(0, UINT64_MAX);
	memset(conn.rx.mr, 0, sizeof(conn.rx.mr));
	fab_list_init(&conn.tx.read_wait);
	broken = false;
	comes = false;
	awaited = false;
}

/* Targets, operation and operands are any, and need not agree. */
static void prove_any(uint32_t targets, uint64_t payload)
{
	valid = any_of(0, 1);
	element = any_of(1, 32);
	begin(TCP_WIRE_AMO_REQ, targets, sizeof(struct tcp_amo), payload);
	tcp_amo_req(&conn);
	tcp_amo_fail_all(&conn);
}

/* A request of a kind for n bytes at each target. */
static void begin_request(enum fab_atomic_kind kind, enum fi_op op, uint32_t targets, size_t n, uint64_t payload,
			  bool tagged)
{
	struct tcp_rma_iov *rma = (struct tcp_rma_iov *) (conn.rx.hdr_buf + sizeof(struct tcp_hdr));

	begin(TCP_WIRE_AMO_REQ, targets, sizeof(struct tcp_amo), payload);
	conn.rx.hdr.op_data = kind;
	conn.rx.hdr.flags = any_of(0, 3) * TCP_FLAG_DELIVERY | (tagged ? TCP_FLAG_TAGGED : 0);
	//@ loop unroll 8;
	for (uint32_t i = 0; i < targets; i++)
		rma[i].len = n;
	((struct tcp_amo *) (rma + targets))->op = op;
}

static void take_request(void)
{
	comes = true;
	tcp_amo_req(&conn);
}

static void prove_kinds(uint32_t targets, size_t n, bool tagged)
{
	const uint64_t len = targets * n;

	begin_request(FAB_ATOMIC_BASE, any_of(FI_MIN, FI_BXOR), targets, n, len, tagged);
	take_request();
	begin_request(FAB_ATOMIC_FETCH, FI_ATOMIC_WRITE, targets, n, len, tagged);
	take_request();
	begin_request(FAB_ATOMIC_FETCH, FI_ATOMIC_READ, targets, n, 0, tagged);
	take_request();
	begin_request(FAB_ATOMIC_COMPARE, any_of(FI_CSWAP, FI_MSWAP), targets, n, 2 * len, tagged);
	take_request();
}

/* Operands, elements or the kind do not agree with the targets. */
static void prove_wrong(uint8_t kind, enum fi_op op, size_t n, uint64_t payload)
{
	begin_request(kind, op, 1, n, payload, false);
	take_request();
	prove(broken && !awaited);
}

/* An operation that this version does not have: it is refused when its operands were dropped. */
static void prove_unknown(uint8_t kind, enum fi_op op, uint64_t payload)
{
	begin_request(kind, op, 1, 8, payload, false);
	take_request();
	prove(awaited);
}

/* A tagged receive with three pieces takes n bytes at this place. */
static void prove_tagged(uint32_t targets, size_t n, uint64_t at)
{
	static struct iovec iov[3] = { { mem + MEM - 5, 5 }, { NULL, 0 }, { mem + MEM - 4, 4 } };
	struct tcp_rma_iov *rma = (struct tcp_rma_iov *) (conn.rx.hdr_buf + sizeof(struct tcp_hdr));

	receive.iov = iov;
	receive.iov_cnt = 3;
	receive.len = 9;
	receive.flags = any_of(0, UINT64_MAX);
	begin_request(FAB_ATOMIC_BASE, any_of(FI_MIN, FI_BXOR), targets, n, targets * n, true);
	ep.base.caps = any_of(0, UINT64_MAX);
	//@ loop unroll 8;
	for (uint32_t i = 0; i < targets; i++)
		rma[i].addr = at;
	take_request();
}

/* All of a request is at hand. */
static void prove_whole(enum fab_atomic_kind kind, enum fi_op op, size_t n, size_t len)
{
	static struct {
		struct tcp_rma_iov rma;
		struct tcp_amo amo;
		uint8_t operands[2 * 60];
	} frame;
	uint8_t *end = (uint8_t *) &frame + sizeof(frame), *rest = end - sizeof(frame.rma) - sizeof(frame.amo) - len;

	any_bytes(&frame, sizeof(frame));
	((struct tcp_rma_iov *) rest)->len = n;
	((struct tcp_amo *) (rest + sizeof(frame.rma)))->op = op;
	begin(TCP_WIRE_AMO_REQ, 1, sizeof(frame.amo), len);
	conn.rx.hdr.op_data = kind;
	conn.rx.hdr.rma_iov_cnt = any_of(0, UINT8_MAX);		/* is not checked before */
	conn.rx.hdr.flags = any_of(0, 3) * TCP_FLAG_DELIVERY;
	(void) tcp_amo_whole(&conn, rest, len);
}

/* ---- answers ---- */

/* A request of this type waits for n bytes, in one buffer or, on_device, in any number of a device's. */
static void any_wait(uint8_t op, size_t n, bool on_device)
{
	any_bytes(&tx, sizeof(tx));
	tx.conn = &conn;
	tx.hdr.op = op;
	tx.len = n;
	tx.iov_cnt = on_device ? TCP_TX_ON_DEVICE | 1 : 1;
	tx.iov[0] = (struct iovec) { mem + MEM - n, n };
	fab_list_init(&tx.link);
	fab_list_add_tail(&conn.tx.read_wait, &tx.link);
}

static void prove_answer(size_t n, uint64_t len, bool on_device)
{
	begin(TCP_WIRE_AMO_RSP, 0, sizeof(struct tcp_amo_rsp), len);
	tcp_amo_rsp(&conn);
	prove(broken && !awaited);
	begin(TCP_WIRE_AMO_RSP, 0, sizeof(struct tcp_amo_rsp), len);
	any_wait(TCP_WIRE_AMO_REQ, n, on_device);
	tcp_amo_rsp(&conn);
	begin(TCP_WIRE_AMO_RSP, 0, sizeof(struct tcp_amo_rsp), len);
	any_wait(TCP_WIRE_READ_REQ, n, on_device);
	tcp_amo_rsp(&conn);
	prove(broken && !awaited);
}

static void prove_answer_whole(size_t n, size_t len)
{
	static struct {
		struct tcp_amo_rsp rsp;
		uint8_t result[64];
	} frame;
	uint8_t *rest = (uint8_t *) &frame + sizeof(frame) - sizeof(frame.rsp) - len;

	any_bytes(&frame, sizeof(frame));
	begin(TCP_WIRE_AMO_RSP, 0, sizeof(frame.rsp), len);
	prove(!tcp_amo_rsp_whole(&conn, rest, len));
	any_wait(TCP_WIRE_AMO_REQ, n, any_of(0, 1));
	if (tcp_amo_rsp_whole(&conn, rest, len))
		prove(n == len);
	begin(TCP_WIRE_AMO_RSP, 0, sizeof(frame.rsp), len);
	any_wait(TCP_WIRE_READ_REQ, n, false);
	prove(!tcp_amo_rsp_whole(&conn, rest, len));
}

/* The parts that atomics share with writes, after regions were found. */
static void prove_parts(uint32_t targets)
{
	struct tcp_rma_iov rma[TCP_RMA_IOV_MAX];
	struct iovec iov[TCP_IOV_LIMIT];
	uint32_t cnt;

	begin(TCP_WIRE_AMO_REQ, targets, sizeof(struct tcp_amo), any_of(0, TCP_MAX_MSG_SIZE));
	any_bytes(rma, sizeof(rma));
	found = 0;
	if (tcp_rma_verify(&conn, rma, targets, any_of(0, UINT64_MAX), conn.rx.mr, iov, &cnt))
		return;
	prove(cnt <= TCP_IOV_LIMIT);
	if (cnt)
		prove_readable(iov, cnt * sizeof(*iov));
	(void) tcp_rma_may_commit(&conn, false);
	tcp_rma_count(&conn);
	(void) tcp_rma_commit(&conn);
	tcp_rma_refuse(&conn, any_of(1, 300));
}

int main(void)
{
	static const uint8_t short_lens[] = { 0, 1, 7, 8, 9, 16, 17, 55, 56, 57, 111, 112, 113, 114, 119, 120 };
	static const uint8_t counts[] = { 1, 2, 8 };
	/* about the rooms for operands, for an answer in the frame, and for one in the stream */
	static const size_t lens[] = { 0, 4, 55, 56, 57, 112, 113, 128, 129, 487, 488, 489, TCP_AMO_MAX };

	any_conn();
	place_ends = true;
	region[0].hmem = any_of(0, UINT8_MAX);
	region[0].flags = any_of(0, UINT64_MAX);
	region[1] = region[0];
	//@ loop unroll 16;
	for (uint32_t targets = 1; targets <= TCP_RMA_IOV_MAX; targets++) {
		//@ loop unroll 16;
		for (pieces = 0; pieces <= TCP_IOV_LIMIT; pieces++) {
			regions = 1 + pieces % 2;
			prove_parts(targets);
		}
		prove_any(targets, any_of(0, sizeof(conn.rx.operand_room)));
		prove_any(targets, any_of(sizeof(conn.rx.operand_room) + 1, 2 * TCP_AMO_MAX));
		prove_any(targets, any_of(2 * TCP_AMO_MAX + 1, TCP_MAX_MSG_SIZE));
	}
	valid = true;
	element = 4;
	//@ loop unroll 16;
	for (unsigned i = 0; i < sizeof(counts); i++) {
		//@ loop unroll 16;
		for (unsigned k = 0; k < sizeof(counts); k++) {
			pieces = counts[k];
			prove_kinds(counts[i], 8, false);
		}
		//@ loop unroll 16;
		for (uint64_t at = 0; at <= 9; at++)
			prove_tagged(counts[i], 4, at);
		prove_tagged(counts[i], 4, any_of(10, UINT64_MAX));
	}
	pieces = 2;
	element = 1;
	//@ loop unroll 16;
	for (unsigned i = 0; i < sizeof(lens) / sizeof(*lens); i++)
		prove_kinds(1, lens[i], false);
	element = 4;
	prove_wrong(TCP_AMO_COMPARE + 1, FI_SUM, 8, 8);
	prove_wrong(FAB_ATOMIC_BASE, FI_SUM, 8, 7);
	prove_wrong(FAB_ATOMIC_BASE, FI_SUM, 8, 16);
	prove_wrong(FAB_ATOMIC_FETCH, FI_ATOMIC_READ, 8, 8);
	prove_wrong(FAB_ATOMIC_COMPARE, FI_CSWAP, 8, 8);
	prove_wrong(FAB_ATOMIC_BASE, FI_SUM, 6, 6);
	prove_wrong(FAB_ATOMIC_BASE, FI_SUM, TCP_AMO_MAX + 4, TCP_AMO_MAX + 4);
	prove_unknown(FAB_ATOMIC_BASE, FI_ATOMIC_READ, 0);
	prove_unknown(FAB_ATOMIC_FETCH, any_of(FI_CSWAP, FI_MSWAP), 8);
	prove_unknown(FAB_ATOMIC_COMPARE, FI_SUM, 16);
	pieces = 1;
	element = 1;
	//@ loop unroll 32;
	for (unsigned i = 0; i < sizeof(short_lens); i++) {
		prove_whole(FAB_ATOMIC_BASE, any_of(FI_MIN, FI_BXOR), short_lens[i], short_lens[i]);
		prove_whole(FAB_ATOMIC_FETCH, FI_ATOMIC_READ, short_lens[i], 0);
		prove_whole(FAB_ATOMIC_COMPARE, any_of(FI_CSWAP, FI_MSWAP), short_lens[i] / 2, short_lens[i]);
	}
	//@ loop unroll 64;
	for (size_t len = 0; len <= 32; len++) {
		prove_answer(len, len, false);
		prove_answer(len, len, true);
		prove_answer_whole(len, len);
		prove_answer_whole(len / 2, len);
	}
	prove_answer(0, any_of(1, TCP_MAX_MSG_SIZE), false);
	reached();
	return 0;
}
