/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The contract of the check of a frame's header (rx_hdr_check()), whatever was agreed with the peer: a header is
 * accepted only if its type has a function that starts it; if it has no more targets than there is room for; if its
 * length is one that its type allows; and if its payload is not longer than one may be.
 *
 * eva: -eva-slevel 200 -eva-slevel-function rx_flags_check:0,tcp_direct_check:0,main:0
 */
#include "prove.h"
#include "tcp/stream/rx.c"
#include "tcp/stream/direct.c"
#include "tcp/face/frames.c"

static struct fi_ep_attr attr;
static struct fi_info info = { .ep_attr = &attr };
static struct tcp_ep ep;
static struct tcp_conn conn;
static struct tcp_hdr hdr;
static struct tcp_direct direct;

/* The length of a header without flags, and with all that its type may have. */
static uint64_t len_min(uint8_t op, uint8_t targets)
{
	return sizeof(hdr) + tcp_frames[op].fixed + (tcp_frames[op].rma ? targets * sizeof(struct tcp_rma_iov) : 0);
}

static uint64_t len_max(uint8_t op, uint8_t targets)
{
	return len_min(op, targets) + (tcp_frames[op].cq_data ? sizeof(uint64_t) : 0) +
	       (tcp_frames[op].group ? sizeof(struct tcp_group) : 0) + (op == TCP_WIRE_MSG ? sizeof(uint64_t) : 0);
}

/* A header with any flags. */
static void prove_sizes(uint8_t op, uint8_t targets, uint8_t hdr_size, uint64_t low, uint64_t high)
{
	const char *why;

	any_bytes(&hdr, sizeof(hdr));
	hdr.op = op;
	hdr.rma_iov_cnt = targets;
	hdr.hdr_size = hdr_size;
	hdr.size = any_of(low, high);
	why = rx_hdr_check(&conn, &hdr);
	if (!why) {
		prove(tcp_frames[op].start != NULL);
		prove(!tcp_frames[op].rma || (targets > 0 && targets <= TCP_RMA_IOV_MAX));
		prove(hdr.hdr_size >= len_min(op, targets) && hdr.hdr_size <= len_max(op, targets));
		prove(hdr.hdr_size <= sizeof(conn.rx.hdr_buf));
		prove(hdr.size >= hdr.hdr_size);
		prove(hdr.size - hdr.hdr_size <= (tcp_frames[op].payload ? TCP_MAX_MSG_SIZE : 0));
	}
	why = NULL;
	any_bytes(&hdr, sizeof(hdr));	/* both cases go on with the same state */
}

static void prove_refused(uint8_t op, uint8_t targets, uint8_t hdr_size)
{
	any_bytes(&hdr, sizeof(hdr));
	hdr.op = op;
	hdr.rma_iov_cnt = targets;
	hdr.hdr_size = hdr_size;
	prove(rx_hdr_check(&conn, &hdr) != NULL);
	any_bytes(&hdr, sizeof(hdr));
}

static void prove_targets(uint8_t op, uint8_t targets)
{
	uint64_t min = len_min(op, targets), max = len_max(op, targets);

	//@ loop unroll 4;
	for (uint64_t hdr_size = min; hdr_size <= max; hdr_size += 8) {
		prove_sizes(op, targets, hdr_size, 0, hdr_size - 1);
		prove_sizes(op, targets, hdr_size, hdr_size, UINT64_MAX);
	}
	prove_refused(op, targets, any_of(0, min - 1));
	prove_refused(op, targets, any_of(max + 1, UINT8_MAX));
	//@ loop unroll 8;
	for (unsigned odd = 1; odd < 8; odd++)
		prove_refused(op, targets, odd + 8 * any_of(0, UINT8_MAX / 8));
}

static void prove_op(uint8_t op)
{
	if (!tcp_frames[op].rma) {
		prove_targets(op, any_of(0, UINT8_MAX));
		return;
	}
	//@ loop unroll 16;
	for (uint8_t targets = 0; targets <= TCP_RMA_IOV_MAX; targets++)
		prove_targets(op, targets);
	prove_refused(op, any_of(TCP_RMA_IOV_MAX + 1, UINT8_MAX), any_of(0, UINT8_MAX));
}

int main(void)
{
	attr.type = any_of(0, FI_EP_RDM);
	ep.base.info = &info;
	conn.ep = &ep;
	conn.peer.features = any_of(0, UINT16_MAX);
	conn.peer.ext = any_of(0, 1);
	conn.direct.state = any_of(0, 1) ? &direct : NULL;
	direct.reads = any_of(0, 1);
	any_bytes(&hdr, sizeof(hdr));
	//@ loop unroll 64;
	for (uint8_t op = 0; op < TCP_WIRE_OP_END; op++) {
		if (tcp_frames[op].start)
			prove_op(op);
		else
			prove_refused(op, any_of(0, UINT8_MAX), any_of(0, UINT8_MAX));
	}
	prove_refused(any_of(TCP_WIRE_OP_END, UINT8_MAX), any_of(0, UINT8_MAX), any_of(0, UINT8_MAX));
	reached();
	return 0;
}
