/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote reads and writes straight to and from the memory of a peer of this host: the initiator's side. windows.h
 * describes the protocol, and the target's side. Engine lock held.
 *
 * The process is the right one: a read ends with the peer's cookie, in the same call (direct.h). Before a write, the
 * cookie was read at most FRESH_NS (reach.c) before the last look at the clock. The number of a process that has ended
 * is not given to another one so soon; a process that has called exec(2) so recently may get the bytes in its new
 * memory.
 * Nothing bounds the time from that look to the copy: if the initiator is stopped there, and the target has ended
 * meanwhile, the bytes may go to another process of the same user.
 */
#ifndef TCP_REACH_H
#define TCP_REACH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include "tcp/local/windows.h"

struct tcp_reach_state;

/* The peer of a stream, as a target. Zeroed before. */
struct tcp_reach {
	const struct tcp_permit *permit;	/* borrowed, shared with the peer; NULL: none */
	_Atomic uint32_t *busy;			/* borrowed, shared with the peer */
	pid_t pid;				/* the peer's process */
	bool off;				/* not possible, for the life of the stream */
	struct tcp_reach_state *state;		/* owned; NULL: not used yet */
};

/* An access of one operation. */
struct tcp_reach_access {
	bool write;
	const struct iovec *iov;	/* the local memory, at most TCP_IOV_LIMIT entries, with len bytes in all */
	size_t iov_cnt;
	uint64_t key, addr, len;	/* the remote memory, as in struct fi_rma_iov */
};

/* Carry out an access. 0: all bytes were copied. -EAGAIN: send a frame, which the target answers; some bytes may have
 * been copied. Another -errno, once a stream: likewise, and there will be no access of this kind; it says why. */
int tcp_reach_copy(struct tcp_reach *reach, const struct tcp_reach_access *access);
/* Free what it owns. */
void tcp_reach_fini(struct tcp_reach *reach);

#endif
