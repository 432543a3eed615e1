/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The functions that start a frame of remote reads and writes (tcp_frames[].start and .whole of remote/rma.c and
 * quiet.c), for a header that rx_hdr_check() accepts (tcp_header.c), of any bytes besides: targets of any place, length
 * and key. Regions are verified before they are used; all copies lie in their pieces of memory; an answer is taken only
 * for a read that has asked for as much.
 *
 * eva: -eva-slevel 300 -eva-slevel-function main:0,begin:0,any_header:0
 * eva: -eva-split-return-function fab_mr_verify:0,rma_piece:0,tcp_rma_verify:0
 */
#include "tcp_frame.h"
#include "common/op/op.c"
#include "tcp/remote/quiet.c"
#undef RSP_MAX
#include "tcp/remote/rma.c"

#define MEM	64			/* bytes of a payload that is at hand */

static struct fab_mr region;
static struct tcp_tx tx;
static uint8_t mem[TCP_TX_COPY_MAX];

/* ---- above and below ---- */

static uint32_t pieces;			/* of memory that each target of an access has */

/* An access is refused, or it has one piece of memory where one is asked for, and otherwise so many. */
int fab_mr_verify(struct fab_mr_map *map, const struct fab_auth_key *auth_key, uint64_t key, uint64_t addr, size_t len,
		  uint64_t access, struct iovec *iov, uint32_t *cnt, struct fab_mr **mr)
{
	(void) map, (void) auth_key, (void) key, (void) addr;
	prove(*cnt <= TCP_IOV_LIMIT);
	if (any_of(0, 1))
		return -(int) any_of(1, 300);
	*mr = &region;
	if (access & FAB_MR_HOST) {
		if (len > sizeof(mem))
			return -FI_EINVAL;
		iov->iov_base = mem;
		iov->iov_len = len;
		return 0;
	}
	if (*cnt < pieces)
		return -FI_ETOOSMALL;
	//@ loop unroll 8;
	for (uint32_t i = 0; i < pieces; i++)
		iov[i] = (struct iovec) { mem, any_of(0, sizeof(mem)) };
	*cnt = pieces;
	return 0;
}

/*@ requires \valid(hmem);
  @ assigns *hmem, \result \from *hmem, more;
  @*/
int fab_hmem_join(uint8_t *hmem, uint8_t more);
/*@ requires \valid(mr);
  @ assigns \nothing;
  @*/
void fab_mr_count(struct fab_mr *mr, struct fab_engine *one, size_t len);
/*@ assigns \nothing; */
void tcp_tx_queue(struct tcp_conn *one, struct tcp_tx *what);
/*@ assigns \nothing; */
void tcp_conn_text(const struct tcp_conn *one, char text[TCP_CONN_TEXT]);
/*@ assigns \nothing; */
void fab_ep_fail(struct fab_ep *one, enum fab_op_code code, const struct fab_comp *comp,
		 const struct fab_cq_fail *fail);

/* ---- frames ---- */

/* The frame is one that comes after others. */
static void begin(uint8_t op, uint32_t targets, uint32_t fixed, bool data, uint64_t payload)
{
	any_header(op, targets, fixed, data, payload);
	conn.remote.rsp_cnt = any_of(0, UINT32_MAX);
	conn.remote.quiet_sent = any_of(0, UINT64_MAX);
	conn.remote.quiet_refused = any_of(0, UINT64_MAX);
	conn.remote.quiet_taken = any_of(0, UINT64_MAX);
}

/* No read waits for an answer, or one of any length and number of pieces, of which the first has len bytes. low: 0, or
 * TCP_TX_ON_DEVICE. */
static void no_wait(void)
{
	fab_list_init(&conn.tx.read_wait);
}

static void any_wait(size_t len, uint8_t low)
{
	no_wait();
	any_bytes(&tx, sizeof(tx));
	tx.conn = &conn;
	tx.len = any_of(0, TCP_MAX_MSG_SIZE);
	tx.iov_cnt = any_of(low, low + TCP_IOV_LIMIT);
	tx.iov[0] = (struct iovec) { mem, len };
	fab_list_init(&tx.link);
	fab_list_add_tail(&conn.tx.read_wait, &tx.link);
}

static void prove_reads_and_writes(uint32_t targets)
{
	begin(TCP_WIRE_READ_REQ, targets, 0, false, 0);
	tcp_rma_read_req(&conn);
	begin(TCP_WIRE_WRITE, targets, 0, false, any_of(0, TCP_MAX_MSG_SIZE));
	tcp_rma_write(&conn);
	begin(TCP_WIRE_WRITE, targets, 0, true, any_of(0, TCP_MAX_MSG_SIZE));
	tcp_rma_write(&conn);
}

static void prove_answers(void)
{
	begin(TCP_WIRE_READ_RSP, 0, 0, false, any_of(0, TCP_MAX_MSG_SIZE));
	no_wait();
	broken = false;
	tcp_rma_read_rsp(&conn);
	prove(broken);
	any_wait(MEM, 0);
	tcp_rma_read_rsp(&conn);
	any_wait(MEM, TCP_TX_ON_DEVICE);
	tcp_rma_read_rsp(&conn);
	begin(TCP_WIRE_READ_ERR, 0, sizeof(struct tcp_read_err), false, 0);
	no_wait();
	broken = false;
	tcp_rma_read_err(&conn);
	prove(broken);
	any_wait(MEM, 0);
	tcp_rma_read_err(&conn);
	begin(TCP_WIRE_REFUSED, 0, sizeof(struct tcp_refused), false, 0);
	tcp_quiet_refused(&conn);
}

/* All of a frame with a payload of len bytes is at hand. */
static void prove_whole(size_t len)
{
	static uint8_t frame[sizeof(struct tcp_rma_iov) + MEM];

	any_bytes(frame, sizeof(frame));
	begin(TCP_WIRE_WRITE, 1, 0, false, len);
	conn.rx.hdr.rma_iov_cnt = any_of(0, UINT8_MAX);		/* is not checked before */
	(void) tcp_rma_write_whole(&conn, frame + sizeof(frame) - sizeof(struct tcp_rma_iov) - len, len);
	begin(TCP_WIRE_READ_REQ, 1, 0, false, len);
	conn.rx.hdr.rma_iov_cnt = any_of(0, UINT8_MAX);
	(void) tcp_rma_read_whole(&conn, frame + sizeof(frame) - sizeof(struct tcp_rma_iov) - len, len);
	begin(TCP_WIRE_READ_RSP, 0, 0, false, len);
	no_wait();
	prove(!tcp_rma_rsp_whole(&conn, frame + sizeof(frame) - len, len));
	any_wait(len, 0);
	(void) tcp_rma_rsp_whole(&conn, frame + sizeof(frame) - len, len);
}

int main(void)
{
	any_conn();
	region.hmem = any_of(0, UINT8_MAX);
	//@ loop unroll 16;
	for (uint32_t targets = 1; targets <= TCP_RMA_IOV_MAX; targets++) {
		//@ loop unroll 16;
		for (pieces = 0; pieces <= TCP_IOV_LIMIT; pieces++)
			prove_reads_and_writes(targets);
	}
	prove_answers();
	//@ loop unroll 80;
	for (size_t len = 0; len <= MEM; len++)
		prove_whole(len);
	reached();
	return 0;
}
