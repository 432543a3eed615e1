/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The UDP messages that find a datagram endpoint by its service. Question and answer have the same length, so that a
 * forged source address cannot multiply traffic. Big-endian. Fields that a message does not use are zero, and checked.
 */
#ifndef VRB_NAMES_WIRE_H
#define VRB_NAMES_WIRE_H

#include <stdint.h>

#define VRB_NAMES_MAGIC		0x57554e53	/* "WUNS" */
#define VRB_NAMES_VERSION	1

enum {
	VRB_NAMES_ASK = 1,
	VRB_NAMES_FOUND = 2,
	VRB_NAMES_NONE = 3,		/* no endpoint of this node has the service */
};

struct vrb_names_msg {
	uint32_t magic;
	uint8_t version;
	uint8_t code;
	uint16_t service;		/* 1 to 65535 */
	uint64_t nonce;			/* random; the answer repeats it, so that others cannot forge one */
	uint8_t gid[16];		/* this and the next four, of FOUND only: the endpoint's address */
	uint32_t qpn;
	uint16_t lid;
	uint16_t pkey;
	uint8_t sl;
	uint8_t zero[7];
};
_Static_assert(sizeof(struct vrb_names_msg) == 48, "no holes");

#endif
