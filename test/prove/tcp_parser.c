/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a header is put together from pieces of the stream (rx_header()), and how a frame is found that is all there
 * (rx_whole()), for headers of all lengths that rx_hdr_check() accepts (tcp_header.c). No byte behind a piece is read.
 * A frame is started when its header is complete, as long as was checked when its first 16 bytes were there. The rest
 * of the piece is then its payload; before, all bytes of a piece are used. The functions that start acknowledgements
 * and credit (rx.c) are proved, too.
 *
 * eva: -eva-slevel 300
 * eva: -eva-slevel-function main:0,prove_op:0,prove_sizes:0,prove_pieces:0,rx_flags_check:0
 */
#include "prove.h"
#define tcp_rx_ack	ack_start
#define tcp_rx_credit	credit_start
#include "tcp/stream/rx.c"
#undef tcp_rx_ack
#undef tcp_rx_credit

#define ROOM	9			/* bytes behind a header */
#define MARK	0xa5
#define LAST	0x5a			/* the last byte of a header that is longer than the base header */

static struct fi_ep_attr attr;
static struct fi_info info = { .ep_attr = &attr };
static struct tcp_ep ep;
static struct tcp_conn conn;

static uint8_t mem[TCP_HDR_MAX + ROOM];	/* the end of a piece is the end of the array */
static uint8_t hdr_size;		/* of the frame */
static bool swap;			/* the peer has the other byte order */
static bool ends;			/* only runs are looked at in which the frame is neither started nor refused */

/*@ assigns \nothing;
  @ ensures \false;
  @*/
void not_looked_at(void);

/* Eva does not see it when a header goes beyond its room, which is a member of the connection: there is a mark. */
static uint8_t *behind_hdr(void)
{
	return conn.rx.hdr_buf + sizeof(conn.rx.hdr_buf);
}

/* ---- what starts a frame ---- */

static void start(struct tcp_conn *one)
{
	prove(one->rx.hdr_have == 0 && one->rx.hdr.hdr_size == hdr_size);
	prove(*behind_hdr() == MARK);
	if (hdr_size > sizeof(struct tcp_hdr) && !one->peer.swap)
		prove(one->rx.hdr_buf[hdr_size - 1] == LAST);
	prove(one->rx.next + one->rx.next_len == mem + sizeof(mem));
	one->rx.next += any_of(0, one->rx.next_len);
	if (ends)
		not_looked_at();
}

#define START(name)			\
	void name(struct tcp_conn *one)	\
	{				\
		start(one);		\
	}
START(tcp_msg_start)
START(tcp_rma_read_req)
START(tcp_rma_read_rsp)
START(tcp_rma_write)
START(tcp_quiet_refused)
START(tcp_rx_ack)
START(tcp_rx_credit)
START(tcp_rndv_rts)
START(tcp_rndv_cts)
START(tcp_rndv_data)
START(tcp_direct_asked)
START(tcp_direct_answered)
START(tcp_rndv_xcancel)
START(tcp_amo_req)
START(tcp_amo_rsp)
START(tcp_coll_start)
START(tcp_park_asked)
START(tcp_park_answered)
START(tcp_park_stay)
START(tcp_rma_read_err)

/* Of a direct frame some of the pieces may be there. */
size_t tcp_direct_start(struct tcp_conn *one, const uint8_t *buf, size_t len)
{
	prove(one->rx.hdr_have == hdr_size && one->rx.hdr.hdr_size == hdr_size);
	prove(buf + len == mem + sizeof(mem));
	if (ends)
		not_looked_at();
	return any_of(0, len);
}

/* A whole frame has its header and its payload. */
static bool whole(const struct tcp_conn *one, const uint8_t *rest, size_t len)
{
	const size_t more = tcp_frames[one->rx.hdr.op].whole_hdr - sizeof(struct tcp_hdr);

	prove(one->rx.hdr.hdr_size == sizeof(struct tcp_hdr) + more && !one->peer.swap);
	prove_readable(rest, more + len);
	return any_of(0, 1);
}

#define WHOLE(name)								\
	bool name(struct tcp_conn *one, const uint8_t *rest, size_t len)	\
	{									\
		return whole(one, rest, len);					\
	}
WHOLE(tcp_msg_whole)
WHOLE(tcp_tag_whole)
WHOLE(tcp_rma_read_whole)
WHOLE(tcp_rma_rsp_whole)
WHOLE(tcp_rma_write_whole)
WHOLE(tcp_amo_whole)
WHOLE(tcp_amo_rsp_whole)
#include "tcp/face/frames.c"

/*@ assigns \result \from *hdr;
  @ ensures \result == \null || \valid_read(\result);
  @*/
const char *tcp_direct_check(const struct tcp_conn *one, const struct tcp_hdr *hdr);

void tcp_conn_fail(struct tcp_conn *one, int err, int prov_errno, const char *what)
{
	(void) err, (void) prov_errno, (void) what;
	prove(one->rx.hdr_have >= sizeof(struct tcp_hdr));
	one->state = TCP_CONN_DOWN;
	if (ends)
		not_looked_at();
}

/*@ assigns \result \from cnt, err;
  @ ensures \result == 0 || \result == 1;
  @*/
bool tcp_tx_acked(struct tcp_conn *one, uint32_t cnt, uint32_t err);

/* ---- pieces of a header ---- */

/* This byte of the header is in the parser's, or in the piece that follows, or it has not come yet. */
static void set(uint32_t at, uint8_t value, uint32_t have, uint32_t len)
{
	if (at < have)
		conn.rx.hdr_buf[at] = value;
	else if (at < have + len)
		mem[sizeof(mem) - len + (at - have)] = value;
}

/* A piece of len bytes, after `have` bytes of a header of this type. */
static size_t take_piece(uint8_t op, uint8_t targets, uint32_t have, uint32_t len)
{
	any_bytes(mem, sizeof(mem));
	any_bytes(conn.rx.hdr_buf, sizeof(conn.rx.hdr_buf));
	set(offsetof(struct tcp_hdr, op), op, have, len);
	set(offsetof(struct tcp_hdr, rma_iov_cnt), targets, have, len);
	set(offsetof(struct tcp_hdr, hdr_size), hdr_size, have, len);
	if (hdr_size > sizeof(struct tcp_hdr))
		set(hdr_size - 1, LAST, have, len);
	conn.rx.hdr_have = have;
	conn.rx.special = any_of(0, 1);
	*behind_hdr() = MARK;
	conn.peer.swap = swap;
	conn.state = TCP_CONN_UP;
	return rx_header(&conn, mem + sizeof(mem) - len, len);
}

static void prove_piece(uint8_t op, uint8_t targets, uint32_t have, uint32_t len)
{
	size_t used;

	ends = false;
	if (have + len >= hdr_size || have + len == sizeof(struct tcp_hdr))
		prove(take_piece(op, targets, have, len) <= len);
	ends = true;
	if (any_of(0, 1))		/* perhaps no run is left */
		return;
	used = take_piece(op, targets, have, len);
	prove(used == len && have + len < hdr_size && conn.rx.hdr_have == have + len);
	prove(*behind_hdr() == MARK);
}

/* Pieces that end before, at and behind the end of the base header, or of the header. */
static void prove_pieces(uint8_t op, uint8_t targets, uint32_t have)
{
	const uint32_t missing = hdr_size - have;

	swap = false;
	prove_piece(op, targets, have, 1);
	if (have < sizeof(struct tcp_hdr))
		prove_piece(op, targets, have, sizeof(struct tcp_hdr) - have);
	if (missing > 8)
		prove_piece(op, targets, have, 8);
	if (missing > 1)
		prove_piece(op, targets, have, missing - 1);
	prove_piece(op, targets, have, missing + ROOM);
	swap = any_of(0, 1);
	prove_piece(op, targets, have, missing);
}

static void prove_sizes(uint8_t op, uint8_t targets)
{
	const struct tcp_frame *kind = &tcp_frames[op];
	const uint32_t low = sizeof(struct tcp_hdr) + kind->fixed +
			     (kind->rma ? targets * sizeof(struct tcp_rma_iov) : 0);
	const uint32_t high = low + (kind->cq_data ? 8 : 0) + (kind->group ? 8 : 0) + (op == TCP_WIRE_MSG ? 8 : 0);

	//@ loop unroll 4;
	for (uint32_t size = low; size <= high; size += 8) {
		hdr_size = size;
		prove_pieces(op, targets, 0);
		if (size > sizeof(struct tcp_hdr)) {
			prove_pieces(op, targets, sizeof(struct tcp_hdr));
			prove_pieces(op, targets, size - 1);
		}
	}
}

static void prove_op(uint8_t op)
{
	if (!tcp_frames[op].start)
		return;
	if (tcp_frames[op].rma) {
		prove_sizes(op, 1);
		prove_sizes(op, TCP_RMA_IOV_MAX);
	} else {
		prove_sizes(op, any_of(0, UINT8_MAX));
	}
}

/* ---- whole frames ---- */

static void prove_whole(uint8_t op, size_t len)
{
	any_bytes(mem, sizeof(mem));
	mem[sizeof(mem) - len + offsetof(struct tcp_hdr, op)] = op;
	conn.peer.swap = any_of(0, 1);
	prove(rx_whole(&conn, mem + sizeof(mem) - len, len) <= len);
}

/* ---- acknowledgements and credit ---- */

static void prove_ack(void)
{
	any_bytes(conn.rx.hdr_buf, sizeof(conn.rx.hdr_buf));
	conn.rx.hdr_have = sizeof(struct tcp_hdr);
	ack_start(&conn);
}

/* A peer with this limit returns credit, of which so much is left. Eva does not add to a debt exactly. */
static void prove_credit(uint32_t limit, int64_t left)
{
	any_bytes(conn.rx.hdr_buf, sizeof(conn.rx.hdr_buf));
	conn.peer.credit = limit;
	conn.tx.credit = left;
	credit_start(&conn);
	prove(left < 0 || (conn.tx.credit >= left && conn.tx.credit <= limit));
}

int main(void)
{
	attr.type = any_of(0, FI_EP_RDM);
	ep.base.info = &info;
	conn.ep = &ep;
	conn.peer.features = any_of(0, UINT16_MAX);
	conn.peer.ext = any_of(0, 1);
	//@ loop unroll 64;
	for (uint8_t op = 0; op < TCP_WIRE_OP_END; op++)
		prove_op(op);
	hdr_size = sizeof(struct tcp_hdr) + 2 * sizeof(uint64_t);
	//@ loop unroll 64;
	for (uint32_t have = 0; have < hdr_size; have++)
		prove_pieces(TCP_WIRE_TAG, 0, have);
	//@ loop unroll 64;
	for (uint8_t op = 0; op < TCP_WIRE_OP_END; op++) {
		prove_whole(op, sizeof(mem));
		//@ loop unroll 64;
		for (size_t len = sizeof(struct tcp_hdr); len <= 64 && tcp_frames[op].whole; len++)
			prove_whole(op, len);
	}
	prove_whole(any_of(TCP_WIRE_OP_END, UINT8_MAX), sizeof(mem));
	prove_ack();
	prove_credit(0, -(int64_t) TCP_SHORT_DEBT);
	prove_credit(UINT32_MAX, -(int64_t) TCP_SHORT_DEBT);
	prove_credit(UINT32_MAX, 0);
	prove_credit(1000, 0);
	prove_credit(1000, 999);
	prove_credit(1000, 1000);
	reached();
	return 0;
}
