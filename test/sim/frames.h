/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What the ends of simulated connections say to each other: messages of the handshake and frames, read from the bytes
 * that the network carries (tcp/wire/wire.h), without the code of the library. A read never takes bytes of two frames
 * at once, so that the frames of a node follow one another in the log as it handles them.
 */
#ifndef TEST_SIM_FRAMES_H
#define TEST_SIM_FRAMES_H

#include "sim/net.h"
#include "tcp/wire/wire.h"

#define FRAME_CONNS	4096
#define FRAME_HEAD	(sizeof(struct tcp_cm_hdr) + TCP_CM_DATA_MAX)

/* A message of the handshake, or a frame. */
struct frame {
	struct net_end end;		/* who has sent it, or read all of it */
	bool got;			/* it was read */
	bool cm;			/* of the handshake */
	uint32_t nth;			/* of those in its direction, from 0 on */
	uint8_t type;
	uint16_t ext;			/* of the handshake: TCP_EXT_* */
	size_t head_len;
	uint8_t head[FRAME_HEAD];	/* all of a message of the handshake; the header of a frame */
};

struct frames_watch {
	/* The header of a frame was sent. NULL: of no interest. */
	void (*begun)(const struct frame *frame);
	/* All of it was sent, or read. */
	void (*frame)(const struct frame *frame);
	/* A part of one was read, without its end. NULL: of no interest. */
	void (*got_part)(const struct net_end *end);
	/* This end closes the connection; or it reads its end. NULL: of no interest. */
	void (*closed)(const struct net_end *end);
	void (*got_end)(const struct net_end *end);
};

/* Tell of all connections, until the next net_begin(), after which it is called. */
void frames_watch(const struct frames_watch *watch);

#endif
