/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For programs about the functions that start a frame of tcp (tcp_frames[].start and .whole): a connection, the header
 * that such a function gets, and the part of the stream that it uses.
 */
#ifndef PROVE_TCP_FRAME_H
#define PROVE_TCP_FRAME_H

#include "prove.h"
#include "tcp/stream/stream.h"

static struct tcp_conn conn;
static struct tcp_ep ep;
static struct fab_domain domain;
static struct fab_engine engine;
static struct fi_stats_peer stats;

/* ---- the stream ---- */

/* The connection ends: a program says what the rooms above do then. */
#ifndef CONN_ENDS
#define CONN_ENDS()	((void) 0)
#endif

static bool broken;			/* the peer has violated the protocol */

void tcp_rx_broken(struct tcp_conn *one, const char *what)
{
	(void) what;
	broken = true;
	one->state = TCP_CONN_DOWN;
	CONN_ENDS();
}

void tcp_conn_fail(struct tcp_conn *one, int err, int prov_errno, const char *what)
{
	(void) err, (void) prov_errno, (void) what;
	one->state = TCP_CONN_DOWN;
	CONN_ENDS();
}

const void *tcp_rx_extra(const struct tcp_conn *one)
{
	size_t data_len = one->rx.hdr.flags & TCP_FLAG_CQ_DATA ? sizeof(uint64_t) : 0;

	return one->rx.hdr_buf + sizeof(struct tcp_hdr) + data_len;
}

uint64_t tcp_rx_cq_data(const struct tcp_conn *one)
{
	(void) one;
	return any_of(0, UINT64_MAX);
}

/* The payload comes at once, so Eva need not join the cases before: the caller of tcp_rx_expect() does nothing after
 * it. Otherwise its length is any. */
static bool comes;
static bool awaited;

void tcp_rx_aim(struct tcp_rx_state *rx, const struct iovec *iov, uint32_t cnt, uint64_t len, uint8_t hmem)
{
	uint64_t room = 0;

	(void) hmem;
	prove(cnt <= TCP_IOV_LIMIT);
	prove_readable(iov, cnt * sizeof(*iov));
	rx->spoilt = any_of(0, 1);
	if (!comes)
		return;
	//@ loop unroll 8;
	for (uint32_t i = 0; i < cnt; i++) {
		any_bytes(iov[i].iov_base, iov[i].iov_len);
		room += iov[i].iov_len;
	}
	prove(room >= len);
}

void tcp_rx_expect(struct tcp_conn *one, uint64_t left, uint64_t skip, void (*done)(struct tcp_conn *conn))
{
	prove(left <= TCP_MAX_MSG_SIZE && skip <= TCP_MAX_MSG_SIZE);
	awaited = true;
	one->rx.left = 0;
	if (!comes)
		return;
	prove(left + skip == one->rx.hdr.size - one->rx.hdr.hdr_size);
	done(one);
}

static struct tcp_tx control;
static bool no_control;			/* there is no memory for it */

struct tcp_tx *tcp_tx_control(struct tcp_conn *one, enum tcp_wire_op op, const void *extra, size_t extra_len)
{
	prove(extra_len <= TCP_HDR_MAX - sizeof(struct tcp_hdr));
	if (extra_len)
		prove_readable(extra, extra_len);
	if (no_control) {
		tcp_conn_fail(one, FI_ENOMEM, FI_ENOMEM, "no memory");
		return NULL;
	}
	memset(&control, 0, sizeof(control));
	control.conn = one;
	control.code = FAB_OP_MAX;
	control.hdr.op = op;
	control.hdr_len = control.hdr.hdr_size = sizeof(struct tcp_hdr) + extra_len;
	control.size = control.hdr.size = control.hdr_len;
	return &control;
}

/*@ assigns \nothing; */
void tcp_tx_done(struct tcp_tx *what, int err, int prov_errno, const char *text);
/*@ assigns \nothing; */
void tcp_direct_offer(struct tcp_conn *one, struct tcp_tx *what);
/*@ assigns \nothing; */
void tcp_tx_ack(struct tcp_conn *one, uint32_t err);

/* Room in the stream, for the answer to a frame. */
static uint8_t place[TCP_TX_COPY_MAX];
static bool place_ends;			/* the room ends with the array: for programs that have one length at a time */

static uint8_t *any_place(struct tcp_conn *one, size_t len)
{
	(void) one;
	prove(len <= sizeof(place));
	if (any_of(0, 1))
		return NULL;
	return place_ends ? place + sizeof(place) - len : place;
}
static ssize_t any_leave(struct tcp_conn *one, const void *frame, size_t len)
{
	(void) one;
	prove_readable(frame, len);
	return (ssize_t) len;
}
static const struct tcp_io io = { .place = any_place, .leave = any_leave };

/* ---- the frame ---- */

/* A connection on which anything may have come before. */
static void any_conn(void)
{
	ep.base.engine = &engine;
	ep.base.domain = &domain;
	ep.base.type = any_of(0, FI_EP_RDM);
	ep.detours = any_of(0, UINT8_MAX);
	domain.attr.caps = any_of(0, UINT64_MAX);
	domain.mr_map.gen = any_of(0, UINT32_MAX);
	ep.rx = &ep.own_rx;
	conn.ep = &ep;
	conn.io = &io;
	conn.stats = &stats;
	conn.peer.ext = any_of(0, 1);
	conn.peer.features = any_of(0, UINT16_MAX);
	fab_list_init(&conn.tx.queue);
	fab_list_init(&conn.tx.held);
	fab_list_init(&conn.tx.read_wait);
	no_control = any_of(0, 1);
}

/* A header that rx_hdr_check() accepts (tcp_header.c), of any bytes besides: of this type, with so many targets, `more`
 * other bytes behind the base header and, if `data`, CQ data. */
static void any_header(uint8_t op, uint32_t targets, uint32_t more, bool data, uint64_t payload)
{
	any_bytes(conn.rx.hdr_buf, sizeof(conn.rx.hdr_buf));
	conn.rx.hdr.op = op;
	conn.rx.hdr.flags &= ~TCP_FLAG_CQ_DATA;
	conn.rx.hdr.flags |= data ? TCP_FLAG_CQ_DATA : 0;
	conn.rx.hdr.rma_iov_cnt = targets;
	conn.rx.hdr.hdr_size = sizeof(struct tcp_hdr) + targets * sizeof(struct tcp_rma_iov) + more + (data ? 8 : 0);
	conn.rx.hdr.size = conn.rx.hdr.hdr_size + payload;
	conn.state = TCP_CONN_UP;
}

#endif
