/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The pieces of a direct frame, as a peer names them: they arrive in parts of any length, and have any place and any
 * length, also lengths that add up to more than 64 bits. The frame is started only if they have as much memory as its
 * payload; the system call that reads them gets as many entries as there is room for, and as many bytes.
 *
 * eva: -eva-slevel 40 -eva-min-loop-unroll 9
 * eva: -eva-slevel-function main:0,any_start:0,aim:0,direct_step:0,direct_part:0,direct_advance:0,tcp_reader_read:0
 */
#include "prove.h"
#include "tcp/stream/direct.c"

static struct tcp_direct direct;
static struct tcp_conn conn;
static struct tcp_ep ep;
static struct fab_engine engine;
static uint32_t cnt;			/* pieces of the frame */

/* ---- above and below ---- */

void tcp_rx_broken(struct tcp_conn *one, const char *what)
{
	(void) what;
	one->state = TCP_CONN_DOWN;
}

void tcp_conn_fail(struct tcp_conn *one, int err, int prov_errno, const char *what)
{
	(void) err, (void) prov_errno, (void) what;
	one->state = TCP_CONN_DOWN;
}

/* Aim at any memory, from this entry of the vector on. */
static void aim(struct tcp_rx_state *rx, uint32_t cur)
{
	any_bytes(rx->iov, sizeof(rx->iov));
	rx->iov_cur = cur;
	rx->iov_cnt = any_of(cur, TCP_IOV_LIMIT);
	rx->left = any_of(0, UINT64_MAX);
	rx->skip = any_of(0, UINT64_MAX);
}

static bool wanted;			/* the frames */

/* The frame is one that is dropped, or that ends the connection, or one whose payload is wanted. */
static void any_start(struct tcp_conn *one)
{
	prove(one->rx.hdr_have == 0 && one->rx.next_len == 0 && direct.have == 0 && direct.cur == 0);
	if (any_of(0, 1))
		one->state = TCP_CONN_DOWN;
	if (!wanted)
		return;
	one->rx.phase = TCP_RX_PAYLOAD;
	aim(&one->rx, 0);
}

static void spoilt(struct tcp_conn *one, int err)
{
	(void) one;
	prove(err == FI_EFAULT);
}

const struct tcp_frame tcp_frames[TCP_WIRE_OP_END] = {
	[TCP_WIRE_MSG] = { .start = any_start, .spoilt = spoilt },
};

int tcp_reader_read(const struct tcp_reader *reader, struct iovec *to, size_t to_cnt, struct iovec *from,
		    size_t from_cnt, size_t len)
{
	(void) reader;
	prove(to_cnt <= TCP_IOV_LIMIT && from_cnt <= cnt);
	prove(len > 0 && len <= STEP_LEN);
	any_bytes(to + to_cnt, sizeof(*to));		/* there is room for the cookie */
	any_bytes(from + from_cnt, sizeof(*from));
	return -(int) any_of(0, 133);
}

void tcp_rx_advance(struct tcp_rx_state *rx, size_t n)
{
	(void) n;
	aim(rx, 0);
}

/*@ assigns \nothing; */
void tcp_rx_recheck_region(struct tcp_conn *one);
/*@ assigns \nothing; */
void fab_engine_flush_later(struct fab_engine *one, struct fab_flush *flush);
/*@ assigns \nothing; */
extern char *strerror(int err);

/* ---- the frame ---- */

/* A frame of cnt pieces, of which some bytes have come before. */
static void begin(uint32_t have)
{
	any_bytes(&conn.rx.hdr, sizeof(conn.rx.hdr));
	conn.rx.hdr.op = TCP_WIRE_MSG;
	conn.rx.hdr.flags = TCP_PIECES(cnt) | any_of(0, 0xfff);
	conn.rx.hdr.hdr_size = any_of(sizeof(conn.rx.hdr), TCP_HDR_MAX);
	conn.rx.phase = TCP_RX_HDR;
	conn.state = TCP_CONN_UP;
	any_bytes(direct.piece, sizeof(direct.piece));
	direct.have = have;
	direct.cur = 0;
	direct.pass = any_of(0, UINT32_MAX);
	direct.pass_len = any_of(0, UINT64_MAX);
}

/* More bytes come, of which the array has as many as are missing. */
static void prove_more(uint32_t have)
{
	static uint8_t mem[TCP_PIECES_MAX * sizeof(struct iovec)];
	const size_t need = cnt * sizeof(struct iovec) - have;

	begin(have);
	any_bytes(mem, sizeof(mem));
	prove(tcp_direct_start(&conn, mem + sizeof(mem) - need, any_of(0, need)) <= need);
	begin(have);
	prove(tcp_direct_start(&conn, mem + sizeof(mem) - need, any_of(need, UINT32_MAX)) == need);
}

/* The next step of a payload, from these entries of both vectors on. */
static void prove_step(uint32_t cur, uint32_t iov_cur)
{
	begin(0);
	direct.cur = cur;
	conn.rx.phase = TCP_RX_PULL;
	aim(&conn.rx, iov_cur);
	direct_step(&conn);
	prove(direct.cur <= cnt);
}

int main(void)
{
	ep.base.engine = &engine;
	conn.ep = &ep;
	conn.direct.state = &direct;
	engine.pass_cnt = any_of(0, UINT32_MAX);
	for (cnt = 1; cnt <= TCP_PIECES_MAX; cnt++) {
		wanted = true;
		prove_more(0);
		wanted = false;
		//@ loop unroll 200;
		for (uint32_t have = 0; have < cnt * sizeof(struct iovec); have++)
			prove_more(have);
		for (uint32_t cur = 0; cur <= cnt; cur++) {
			prove_step(cur, 0);
			prove_step(cur, 1);
			prove_step(cur, TCP_IOV_LIMIT);
		}
	}
	reached();
	return 0;
}
