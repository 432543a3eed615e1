/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The private data of the CM's REQ, REP and REJ between two XRC endpoints, big-endian. Ours is behind the room for the
 * data of the application (vrb_cm_pack()), upstream's before that data. The first byte tells them apart: upstream's is
 * its version, ours the length of the application's data with VRB_XRC_OURS.
 */
#ifndef VRB_XRC_WIRE_H
#define VRB_XRC_WIRE_H

#include <stdint.h>

#define VRB_XRC_MAGIC		0x5852	/* "XR" */
#define VRB_XRC_VERSION		1
#define VRB_XRC_OURS		0x80
#define VRB_XRC_AT		36	/* bytes before it */
#define VRB_XRC_DATA_MAX	(VRB_XRC_AT - 1)	/* of the application's data, less the length before it */

enum {
	VRB_XRC_SHARED = 1,		/* `pair` is a target of the receiver's node that serves my initiator already */
	VRB_XRC_FRESH = 2,		/* REJ: there is no such target here; ask again with a new initiator */
	VRB_XRC_SRX = 4,		/* srqn is the SRQ of a shared receive context: other endpoints may have it */
};

struct vrb_xrc_wire {
	uint16_t magic;
	uint8_t version;
	uint8_t flags;
	uint32_t srqn;			/* the sender's SRQ, which the receiver's requests name */
	uint32_t pair;			/* number of the sender's new initiator; SHARED: of the receiver's target */
	uint32_t tgt;			/* REQ: a new target, for the receiver's initiator if it has none on this node.
					 * REP: the target of the receiver's initiator */
	uint32_t tag;			/* tells XRC domains of the sender's node apart */
};

#define VRB_XRC_UP_VERSION	2

/* Upstream's, as Debian's 1.17 sends it. A connection takes two requests, one in each direction (xrc_upstream.c). */
struct vrb_xrc_up_wire {
	uint8_t version;
	uint8_t reciprocal;		/* 1: of the second request and its answer */
	uint16_t port;			/* REQ: where the sender listens. An answer repeats it */
	uint32_t tgt;			/* REQ to the service of datagrams: the target of the sender's initiator */
	uint32_t srqn;			/* the sender's SRQ */
	uint32_t tag;			/* chosen by the end that connects; the other messages repeat it */
};
_Static_assert(sizeof(struct vrb_xrc_up_wire) == 16, "as upstream's");

#endif
