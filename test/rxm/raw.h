/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer of tcp;ofi_rxm with a plain socket: its request, and packets of rxm as messages of tcp.
 */
#ifndef TEST_RXM_RAW_H
#define TEST_RXM_RAW_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "rxm/wire.h"
#include "tcp/wire/wire.h"

#define RAW_BUFFER_SIZE	16384		/* bytes of a message in a packet, FI_OFI_RXM_BUFFER_SIZE */
#define RAW_CONN_RX	64		/* packet buffers that it says it has */

struct raw_request {
	struct tcp_cm_hdr hdr;
	struct rxm_cm_req rxm;
};

/* The whole answer of who accepts it; hdr.type tells. */
struct raw_answer {
	struct tcp_cm_hdr hdr;
	struct rxm_cm_rsp rxm;
};

/* Of a peer that says it listens at this port. ext: rxm's additions are known; tcp's are not. */
static inline struct raw_request raw_request_of(uint16_t port, bool ext, uint64_t incarnation)
{
	return (struct raw_request) {
		.hdr = { .version = TCP_CM_VERSION, .type = TCP_CM_CONNREQ,
			 .seg_size = htobe16(sizeof(struct rxm_cm_req)), .conn_data = TCP_CM_CONN_DATA },
		.rxm = { .version = RXM_CM_VERSION, .endian = RXM_ENDIAN, .ctrl_version = RXM_CTRL_VERSION,
			 .op_version = RXM_CM_OP_VERSION, .port = port, .flow_ctrl = 2,
			 .eager_limit = RAW_BUFFER_SIZE,
			 .rx_size = RAW_CONN_RX | (ext ? RXM_EXT << RXM_EXT_SHIFT : 0), .conn_id = incarnation },
	};
}

struct raw_frame {
	struct tcp_hdr hdr;
	struct {			/* struct rxm_pkt, without what follows */
		struct rxm_ctrl_hdr ctrl;
		struct rxm_op_hdr op;
	} pkt;
};
_Static_assert(sizeof(struct raw_frame) == sizeof(struct tcp_hdr) + sizeof(struct rxm_pkt), "no gaps");

/* A packet with len bytes behind its headers. */
static inline struct raw_frame raw_frame_of(enum rxm_type type, enum rxm_op op, uint64_t tag, size_t len)
{
	return (struct raw_frame) {
		.hdr = { .version = TCP_WIRE_VERSION, .op = TCP_WIRE_MSG, .hdr_size = sizeof(struct tcp_hdr),
			 .size = sizeof(struct raw_frame) + len },
		.pkt = { .ctrl = { .version = RXM_CTRL_VERSION, .type = (uint8_t) type },
			 .op = { .version = RXM_OP_VERSION, .op = (uint8_t) op, .size = len, .tag = tag } },
	};
}

#endif
