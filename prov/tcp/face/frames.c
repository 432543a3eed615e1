/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two tables of stream/stream.h: the format of each type of frame and the functions that handle it, and the
 * functions that handle events of a whole connection. The stream does not know the rooms above it; only this file knows
 * all of them.
 */
#include "tcp/collective/collective.h"
#include "tcp/message/message.h"
#include "tcp/peer/peer.h"
#include "tcp/remote/remote.h"
#include "tcp/stream/stream.h"

/* Bytes of a header with `more` after the base header. */
#define HDR(more)	(sizeof(struct tcp_hdr) + (more))

const struct tcp_frame tcp_frames[TCP_WIRE_OP_END] = {
	[TCP_WIRE_MSG] = { tcp_msg_start, .whole = tcp_msg_whole, .whole_hdr = HDR(0),
			   .enter = tcp_rndv_announce, .refused = tcp_msg_refused, .spoilt = tcp_msg_spoilt,
			   .cq_data = true, .payload = true, .group = true, .credit = true },
	[TCP_WIRE_TAG] = { tcp_msg_start, .whole = tcp_tag_whole, .whole_hdr = HDR(sizeof(uint64_t)),
			   .enter = tcp_rndv_announce, .refused = tcp_msg_refused, .spoilt = tcp_msg_spoilt,
			   .fixed = sizeof(uint64_t), .cq_data = true, .payload = true, .group = true, .credit = true },
	[TCP_WIRE_READ_REQ] = { tcp_rma_read_req, .whole = tcp_rma_read_whole,
				.whole_hdr = HDR(sizeof(struct tcp_rma_iov)), .enter = tcp_rma_read_enter,
				.sent = tcp_rma_asked, .rma = true },
	[TCP_WIRE_READ_RSP] = { tcp_rma_read_rsp, .whole = tcp_rma_rsp_whole, .whole_hdr = HDR(0),
				.sent = tcp_rma_served, .refused = tcp_rma_rsp_refused,
				.spoilt = tcp_rma_rsp_spoilt, .payload = true },
	[TCP_WIRE_WRITE] = { tcp_rma_write, .whole = tcp_rma_write_whole,
			     .whole_hdr = HDR(sizeof(struct tcp_rma_iov)), .enter = tcp_rma_write_enter,
			     .sent = tcp_quiet_sent, .refused = tcp_rma_refused, .spoilt = tcp_rma_write_spoilt,
			     .cq_data = true, .rma = true, .payload = true },
	[TCP_WIRE_REFUSED] = { tcp_quiet_refused, .fixed = sizeof(struct tcp_refused), .ext = TCP_EXT_NAK,
			       .pairs = 1 << 1 },
	[TCP_WIRE_ACK] = { tcp_rx_ack, .fixed = sizeof(struct tcp_ack), .ext = TCP_EXT_BASE, .pairs = 1 << 0 },
	[TCP_WIRE_CREDIT] = { tcp_rx_credit, .fixed = sizeof(struct tcp_credit), .ext = TCP_EXT_BASE },
	[TCP_WIRE_XRTS] = { tcp_rndv_rts, .sent = tcp_rndv_sent, .fixed = sizeof(struct tcp_rts), .cq_data = true,
			    .ext = TCP_EXT_BASE, .pairs = 1 << 2, .group = true },
	[TCP_WIRE_XCTS] = { tcp_rndv_cts, .fixed = sizeof(struct tcp_cts), .ext = TCP_EXT_BASE, .pairs = 1 << 0 },
	[TCP_WIRE_XDATA] = { tcp_rndv_data, .refused = tcp_msg_refused, .spoilt = tcp_msg_spoilt,
			     .fixed = sizeof(struct tcp_xdata), .payload = true, .ext = TCP_EXT_BASE,
			     .pairs = 1 << 0 },
	[TCP_WIRE_XDATA_WIDE] = { tcp_rndv_data, .fixed = sizeof(struct tcp_xdata_wide), .payload = true,
				  .ext = TCP_EXT_BASE, .pairs = 1 << 0 },
	[TCP_WIRE_DIRECT] = { tcp_direct_asked, .fixed = sizeof(struct tcp_direct_ask), .ext = TCP_EXT_DIRECT },
	[TCP_WIRE_DIRECT_ANSWER] = { tcp_direct_answered, .fixed = sizeof(struct tcp_direct_answer),
				     .ext = TCP_EXT_DIRECT, .pairs = 1 << 0 },
	[TCP_WIRE_XCANCEL] = { tcp_rndv_xcancel, .fixed = sizeof(struct tcp_xcancel), .ext = TCP_EXT_BASE,
			       .pairs = 1 << 0 },
	[TCP_WIRE_AMO_REQ] = { tcp_amo_req, .whole = tcp_amo_whole,
			       .whole_hdr = HDR(sizeof(struct tcp_rma_iov) + sizeof(struct tcp_amo)),
			       .enter = tcp_amo_prepare, .must_wait = tcp_amo_must_wait,
			       .release = tcp_amo_free, .sent = tcp_amo_sent, .refused = tcp_rma_refused,
			       .fixed = sizeof(struct tcp_amo), .rma = true, .payload = true, .ext = TCP_EXT_AMO },
	[TCP_WIRE_AMO_RSP] = { tcp_amo_rsp, .whole = tcp_amo_rsp_whole,
			       .whole_hdr = HDR(sizeof(struct tcp_amo_rsp)), .release = tcp_amo_free,
			       .fixed = sizeof(struct tcp_amo_rsp), .payload = true, .ext = TCP_EXT_AMO },
	[TCP_WIRE_COLL] = { tcp_coll_start, .enter = tcp_rndv_announce, .refused = tcp_msg_refused,
			    .spoilt = tcp_msg_spoilt, .fixed = sizeof(struct tcp_coll),
			    .payload = true, .ext = TCP_EXT_COLL, .credit = true },
	[TCP_WIRE_PARK] = { tcp_park_asked, .ext = TCP_EXT_PARK },
	[TCP_WIRE_PARK_YES] = { tcp_park_answered, .ext = TCP_EXT_PARK },
	[TCP_WIRE_PARK_NO] = { tcp_park_answered, .ext = TCP_EXT_PARK },
	[TCP_WIRE_PARK_STAY] = { tcp_park_stay, .ext = TCP_EXT_PARK },
	[TCP_WIRE_READ_ERR] = { tcp_rma_read_err, .fixed = sizeof(struct tcp_read_err), .ext = TCP_EXT_BASE,
				.pairs = 1 << 0 },
};

static void conn_started(struct tcp_conn *conn, bool resumed)
{
	tcp_quiet_started(conn);
	if (!resumed)
		tcp_rx_disown(conn);
	if (tcp_ep_has_coll(conn->ep) && !tcp_conn_has_coll(conn))
		tcp_coll_purge(conn);
	tcp_coll_met(conn);
}

static void conn_ended(struct tcp_conn *conn, int err, int op_err, int prov_errno, const char *text)
{
	tcp_amo_fail_all(conn);
	tcp_rx_fail_all(conn, op_err, prov_errno, text);
	tcp_coll_lost(conn, err);
}

const struct tcp_above tcp_above = {
	.started = conn_started,
	.ended = conn_ended,
	.gone = tcp_stall_gone,
	.stalled = tcp_stall,
	.hold = tcp_stranger_hold,
	.reaim = tcp_rma_write_aim,
	.may_leave = tcp_rma_rsp_may_leave,
};
