/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The life of one endpoint of tcp, or of ofi_rxm over it, with a peer who says anything: opened, given operations,
 * connected, fed, left, closed. Whatever came, each transmitting operation has ended exactly once, no receive has
 * ended twice, the connection is closed after its peer has closed it, and everything can be closed.
 */
#ifndef TEST_FUZZ_TCP_PLAY_H
#define TEST_FUZZ_TCP_PLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "fuzz/fuzz.h"

/* The peer calls from this port of 127.0.0.1, and says in its request that it listens at PLAY_PEER. */
#define PLAY_PORT	5000
#define PLAY_PEER	6000
#define PLAY_KEY	"a key of the fuzzers"

enum {						/* of tcp_play.receives */
	PLAY_RECV = 1 << 0,			/* of 64 bytes */
	PLAY_RECV_MULTI = 1 << 1,
	PLAY_RECV_TAGGED = 1 << 2,		/* tag 1 */
	PLAY_RECV_ANY_TAG = 1 << 3,
	PLAY_RECV_FROM = 1 << 4,		/* tag 2, from the peer */
	PLAY_PEEK = 1 << 5,			/* tag 1 */
	PLAY_CANCEL = 1 << 6,			/* half-way, the tagged one */
	PLAY_POST_LATE = 1 << 7,		/* receives are posted when everything has come */
};

enum {						/* of tcp_play.sends */
	PLAY_SEND = 1 << 0,
	PLAY_SEND_LONG = 1 << 1,		/* of 2048 bytes: announced, if the peer said 256 */
	PLAY_SEND_ACKED = 1 << 2,		/* FI_DELIVERY_COMPLETE */
	PLAY_READ = 1 << 3,
	PLAY_WRITE = 1 << 4,
	PLAY_ATOMIC = 1 << 5,
	PLAY_FETCH = 1 << 6,
	PLAY_CANCEL_LONG = 1 << 7,
};

struct tcp_play {
	bool msg;				/* MSG endpoint; else RDM */
	bool dial;				/* the endpoint connects, and bytes are the answer */
	bool keyed;				/* it has PLAY_KEY */
	bool scalable;				/* RDM: it has two receive contexts */
	bool stranger;				/* RDM: the peer is in no address vector */
	bool rxm;				/* RDM of tcp;ofi_rxm */
	/* Bytes of a request, at the beginning of what the peer says: operations that transmit begin behind it. 0: the
	 * endpoint connects, or there may be no connection, and none begin */
	size_t hello_len;
	uint8_t receives, sends;
	uint8_t chunk;				/* bytes at a time; 0: all at once */
};

/* What an input says of the operations: receives, sends, chunk. */
static inline void play_bytes(struct tcp_play *play, const uint8_t **data, size_t *len)
{
	play->receives = fuzz_byte(data, len);
	play->sends = fuzz_byte(data, len);
	play->chunk = fuzz_byte(data, len);
}

void tcp_play(const struct tcp_play *how, const uint8_t *bytes, size_t len);

#endif
