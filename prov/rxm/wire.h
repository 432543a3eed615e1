/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The protocol between two ofi_rxm: upstream's packets (as observed of Debian's 1.17), and our additions to them. The
 * additions are used if both ends have said in the handshake that they know them.
 *
 * A connection of the provider below carries packets in both directions. Each is one message of that provider: two
 * headers of 32 bytes, then a payload that depends on the type. Everything is in the sender's byte order; a peer with
 * another byte order is refused.
 *
 *   EAGER       op.size bytes of message
 *   SEG         ctrl.seg_size bytes of a message of op.size: the first (seg_no 0), then the others in order
 *   RNDV_REQ    struct rxm_rndv: where op.size bytes of message can be read; ctrl.msg_id is the sender's number for it
 *   RNDV_DONE   they have been read: ctrl.msg_id as in the request (ours: ctrl.ctrl_data is 0 or an errno)
 *   ATOMIC      struct rxm_ioc[4], then the operands (and values to compare with), op.size bytes in all
 *   ATOMIC_RSP  struct rxm_amo_rsp, then the previous values, op.size bytes in all
 *   CREDIT      ctrl.ctrl_data more packets may be sent
 *   RNDV_WR     (answer to RNDV_REQ) struct rxm_rndv: where the message can be written to; ctrl.ctrl_data is the
 *               receiver's number for it
 *   RNDV_WDONE  it has been written: ctrl.msg_id is the receiver's number (ours: ctrl.ctrl_data likewise)
 *
 * Ours:
 *   ACK         message ctrl.msg_id has been delivered (RXM_FLAG_ACK), or taken by a receive (RXM_FLAG_MATCH, too)
 *   WRITTEN     the remote write before this packet has ended, of op.size bytes: op.data is for the target's completion
 *               queue (RXM_FLAG_CQ_DATA). With RXM_FLAG_UNSURE it was sent without waiting for the end of the write,
 *               which may have been refused: the target checks address ctrl.ctrl_data and key op.tag of the write
 *   COLL_ABORT  the group of op.tag (collective.h) has failed, with errno ctrl.ctrl_data; 0: the sender has left it,
 *               and op.tag is that of its join
 * And in every packet ctrl.conn_id holds credit: the number of packets of the other end that were taken since the last
 * report, requests in its lower half and answers in its upper half.
 */
#ifndef RXM_WIRE_H
#define RXM_WIRE_H

#include <stdint.h>

#define RXM_CM_VERSION		1
#define RXM_CTRL_VERSION	4
#define RXM_CM_OP_VERSION	3	/* in the handshake */
#define RXM_OP_VERSION		2	/* in each packet */
#define RXM_EXT			0x57	/* mark in the handshake: the sender knows our additions ... */
#define RXM_EXT_COLL		0x80	/* ... and its endpoint has collectives */
#define RXM_EXT_SHIFT		24	/* of the mark in rxm_cm_req.rx_size */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define RXM_ENDIAN		2
#else
#define RXM_ENDIAN		1
#endif

enum rxm_type {
	RXM_EAGER,
	RXM_SEG,
	RXM_RNDV_REQ,
	RXM_RNDV_DONE,
	RXM_ATOMIC,
	RXM_ATOMIC_RSP,
	RXM_CREDIT,
	RXM_RNDV_WR,
	RXM_RNDV_WDONE,
	RXM_ACK = 32,			/* ours from here on */
	RXM_WRITTEN,
	RXM_COLL_ABORT,
	RXM_TYPE_MAX
};

enum rxm_op {
	RXM_OP_MSG,
	RXM_OP_TAGGED,
	RXM_OP_AMO = 6,			/* fi_atomic(), fi_fetch_atomic(), fi_compare_atomic() */
	RXM_OP_AMO_FETCH,
	RXM_OP_AMO_COMPARE,
	RXM_OP_COLL = 32,		/* ours: a message within a collective, with a tag */
};

enum rxm_op_flag {
	RXM_FLAG_CQ_DATA = 1u << 17,	/* as FI_REMOTE_CQ_DATA */
	RXM_FLAG_UNSURE = 1u << 29,	/* ours: of WRITTEN, see there */
	RXM_FLAG_MATCH = 1u << 30,	/* ours, with RXM_FLAG_ACK: send RXM_ACK when a receive has taken the message */
	RXM_FLAG_ACK = 1u << 31,	/* ours: send RXM_ACK when the message has been delivered */
};

struct rxm_ctrl_hdr {
	uint8_t version;
	uint8_t type;			/* enum rxm_type */
	uint16_t seg_size;
	uint32_t seg_no;
	uint64_t conn_id;
	uint64_t msg_id;
	uint64_t ctrl_data;
};

struct rxm_op_hdr {
	uint8_t version;
	uint8_t rx_index;
	uint8_t op;			/* enum rxm_op */
	uint8_t op_data;
	uint32_t flags;			/* enum rxm_op_flag */
	uint64_t size;
	uint64_t data;
	union {
		uint64_t tag;
		struct {
			uint8_t datatype, op, ioc_count, pad[5];
		} amo;
	};
};

struct rxm_pkt {
	struct rxm_ctrl_hdr ctrl;
	struct rxm_op_hdr op;
	uint8_t data[];
};
_Static_assert(sizeof(struct rxm_pkt) == 64, "wire format");

#define RXM_IOV_MAX	4

struct rxm_iov {
	uint64_t addr, len, key;
};

struct rxm_rndv {
	struct rxm_iov iov[RXM_IOV_MAX];
	uint8_t count, pad[7];
};
_Static_assert(sizeof(struct rxm_rndv) == 104, "wire format");

struct rxm_ioc {
	uint64_t addr, count, key;
};

struct rxm_amo {
	struct rxm_ioc ioc[RXM_IOV_MAX];
	uint8_t data[];
};

struct rxm_amo_rsp {
	uint32_t status;		/* 0 or a positive errno; these two in network byte order */
	uint32_t len;			/* bytes of data */
	uint8_t data[];
};

/* Private data of a connection request. rxm_cm_rsp is the private data of an acceptance, rxm_cm_rej of a rejection.
 *
 * With upstream 2.7, a pair of endpoints may have several connections, and `slot` is the index of the one requested.
 * Slot 0 carries all messages until the others are up, so an end that refuses the others misses nothing. Upstream up to
 * 2.6 sends 0 there, and reads it not at all. Our builds until November 2026 had their mark there. */
struct rxm_cm_req {
	uint8_t version;
	uint8_t endian;
	uint8_t ctrl_version;
	uint8_t op_version;
	uint16_t port;			/* the sender listens here; in its own byte order, as everything is */
	uint8_t flow_ctrl;
	uint8_t slot;			/* 0 */
	uint32_t eager_limit;		/* bytes behind the headers of a packet that the sender can receive */
	uint32_t rx_size;		/* packet buffers that it posts for the connection, in 24 bits; ours: above them
					 * RXM_EXT. Upstream does not read it */
	uint64_t conn_id;
};
_Static_assert(sizeof(struct rxm_cm_req) == 24, "wire format");

struct rxm_cm_rsp {
	uint64_t conn_id;
	uint32_t rx_size;
	uint8_t flow_ctrl;
	uint8_t ext;			/* ours: RXM_EXT */
	uint16_t eager_kb;		/* ours: eager_limit in KiB */
};
_Static_assert(sizeof(struct rxm_cm_rsp) == 16, "wire format");

enum rxm_cm_reason {
	RXM_REJECT_UNSPEC,
	RXM_REJECT_REFUSED,
	RXM_REJECT_ALREADY,		/* there is a connection, or this end is making one */
};

struct rxm_cm_rej {
	uint8_t version;
	uint8_t reason;
};

#endif
