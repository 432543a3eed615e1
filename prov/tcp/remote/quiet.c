/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Quiet frames (wire.h): writes and base atomics that ask for no acknowledgement. Engine lock held.
 *
 * The initiator completes the operation when the kernel has the frame, and keeps only a count. The target answers only
 * if it refuses the frame. Both ends count the quiet frames of a stream, so the number in the answer shows whether
 * there was such a frame. The refusal becomes an error entry without a context.
 */
#include "tcp/remote/rma.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "tcp/params/params.h"

void tcp_quiet_started(struct tcp_conn *conn)
{
	conn->remote.quiet_sent = conn->remote.quiet_refused = conn->remote.quiet_taken = 0;
}

/* ---- target ---- */

void tcp_quiet_taken(struct tcp_conn *conn)
{
	conn->remote.quiet_taken += !(conn->rx.hdr.flags & TCP_FLAG_WANT_ACK);
}

void tcp_quiet_refuse(struct tcp_conn *conn, uint32_t err)
{
	struct tcp_refused refused = { .number = conn->remote.quiet_taken, .err = err };
	struct tcp_tx *tx;

	memcpy(&refused.target, tcp_rx_extra(conn), sizeof(refused.target));
	tx = tcp_tx_control(conn, TCP_WIRE_REFUSED, &refused, sizeof(refused));
	if (!tx)
		return;
	tx->hdr.op_data = conn->rx.hdr.op;
	tcp_tx_queue(conn, tx);
}

/* ---- initiator ---- */

void tcp_quiet_sent(struct tcp_conn *conn, struct tcp_tx *tx)
{
	conn->remote.quiet_sent++;
	tcp_tx_done(tx, 0, 0, NULL);
}

/* Report the refusal of an operation that has completed. */
static void quiet_fail(struct tcp_conn *conn, enum fab_op_code code, const struct tcp_refused *refused)
{
	struct fab_ep *ep = &conn->ep->base;
	const struct fab_cq_late late = {
		.addr = refused->target.addr, .len = refused->target.len, .key = refused->target.key,
		.peer = ep->type == FI_EP_MSG ? (uintptr_t) ep->ep_fid.fid.context : conn->fi_addr,
	};
	const struct fab_comp comp = {
		.flags = fab_op_desc[code].cq_flags, .len = late.len, .src = FI_ADDR_NOTAVAIL,
	};
	int err = tcp_rx_errno(refused->err);
	char ends[TCP_CONN_TEXT], text[TCP_CONN_TEXT + 256];

	tcp_conn_text(conn, ends);
	snprintf(text, sizeof(text), "%s: the target refuses %s of %" PRIu64 " bytes at 0x%" PRIx64
		 " with key 0x%" PRIx64 ": %s. It had completed; with FI_DELIVERY_COMPLETE its completion is the error",
		 ends, code == FAB_OP_WRITE ? "a write" : "an atomic", late.len, late.addr, late.key,
		 tcp_rma_why(err));
	if (!ep->bound.tx_cq)
		TCP_WARN(FI_LOG_EP_DATA, "%s\n", text);
	fab_ep_fail(ep, code, &comp, &(struct fab_cq_fail) { .err = err, .prov_errno = err, .text = text,
		    .err_data = &late, .err_data_len = sizeof(late) });
}

void tcp_quiet_refused(struct tcp_conn *conn)
{
	uint8_t op = conn->rx.hdr.op_data;
	struct tcp_refused refused;

	memcpy(&refused, tcp_rx_extra(conn), sizeof(refused));
	if (!refused.err || (op != TCP_WIRE_WRITE && op != TCP_WIRE_AMO_REQ) ||
	    refused.number <= conn->remote.quiet_refused || refused.number > conn->remote.quiet_sent) {
		tcp_rx_broken(conn, "refusal of no write, or of one again");
		return;
	}
	conn->remote.quiet_refused = refused.number;
	quiet_fail(conn, op == TCP_WIRE_WRITE ? FAB_OP_WRITE : FAB_OP_ATOMIC, &refused);
}
