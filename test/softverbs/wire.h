/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What passes between two software devices: datagrams on Unix sockets in the abstract name space, one socket a queue
 * pair. Such datagrams are neither lost nor reordered, and a sender is told when the receiver is full or gone; so there
 * is no retransmission but after "receiver not ready". Both ends are this code on one machine: native byte order.
 */
#ifndef SV_WIRE_H
#define SV_WIRE_H

#include <stdint.h>

#define SV_MAGIC	0x53560001u
#define SV_PAYLOAD_MAX	(32 * 1024)	/* bytes of a message in one packet */

enum sv_op {
	SV_SEND,			/* a part of a message: total, offset; imm in the last */
	SV_WRITE,			/* likewise, to raddr + offset */
	SV_READ,			/* total bytes wanted from raddr */
	SV_ATOMIC,			/* operand (compare or add), swap */
	SV_ACK,				/* msn has been carried out */
	SV_NAK,				/* msn has not: status */
	SV_READ_RSP,			/* a part: total, offset */
	SV_ATOMIC_RSP,			/* 8 bytes */
	SV_DATAGRAM,			/* UD */
	SV_PROBE,			/* are you there? never answered: the socket tells */
	SV_OPEN,			/* give me the socket of this target queue pair (xrc.c) */
	SV_OPENED,			/* here it is, with its descriptors as ancillary data */
	SV_ANSWERED,			/* to the holder of a target queue pair: the answer to msn has left (status) */
};

enum {
	SV_F_IMM = 1,
	SV_F_SOLICITED = 2,
	SV_F_CSWAP = 4,			/* of SV_ATOMIC; else fetch and add */
	SV_F_FORWARDED = 8,		/* by the holder of a target queue pair to the process of an XRC SRQ */
};

enum sv_nak {
	SV_NAK_RNR = 1,			/* no receive posted: ask again later */
	SV_NAK_INVALID,			/* message too long for its receive, or an operation that is not allowed */
	SV_NAK_ACCESS,			/* key, bounds or rights */
	SV_NAK_OP,			/* the responder's own buffers are at fault */
};

struct sv_pkt {
	uint32_t magic;
	uint8_t op;
	uint8_t flags;
	uint8_t status;			/* enum sv_nak */
	uint8_t access;			/* of a forwarded request: the target queue pair's remote access rights */
	uint8_t src_gid[16], dst_gid[16];
	uint32_t src_qpn, dst_qpn;
	uint32_t srqn;			/* XRC: the receive queue meant */
	uint32_t msn;			/* number of the message in its direction */
	uint32_t imm;			/* as given, big-endian by convention of verbs */
	uint32_t qkey;
	uint32_t rkey;
	uint32_t len;			/* of the payload that follows */
	uint64_t total, offset;
	uint64_t raddr;
	uint64_t operand, swap;
};

#endif
