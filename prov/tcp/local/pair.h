/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two rings of a stream between processes of one host, in one piece of shared memory: the connecting end makes it,
 * and writes the first ring. Its greeting brings the memory and the page of its engine (ready.h). The accepting end
 * answers when its endpoint is known, with the page of that endpoint's engine or with a refusal, as the first bytes
 * that it sends after the handshake. The Unix socket then carries only bytes that wake a sleeper, and the end of the
 * stream.
 *
 * The engine's lock is held, where there is an engine.
 */
#ifndef TCP_PAIR_H
#define TCP_PAIR_H

#include "tcp/local/ready.h"
#include "tcp/local/ring.h"

struct tcp_pair_answer {
	uint32_t magic;
	uint32_t bit;			/* in the page that comes with it */
};

struct tcp_conn;

struct tcp_pair {
	struct tcp_near near;		/* our end; not added before the stream begins on the accepting end */
	struct tcp_conn *conn;		/* borrowed, of the room above: whose rings these are */
	struct tcp_ring_writer out;
	struct tcp_ring_reader in;
	struct tcp_ready_mem *peer;	/* owned, mapped; NULL: its answer has not come */
	uint32_t peer_bit;
	struct tcp_ring_mem *mem;	/* owned, mapped: both rings */
	struct tcp_pair_answer answer;	/* of the accepting end, as far as it has come: answer_len bytes */
	uint8_t answer_len;
	int page_cnt, page_fd[2];	/* owned: descriptors that have come with it */
	bool ended;			/* the peer has closed: nothing comes after what is in the ring */
	int err;			/* with ended: the error of the socket, or 0 */
};

/* Make a pair for the connecting end, whose engine it is. *fd is for the peer, and the caller's. NULL: not possible. */
struct tcp_pair *tcp_pair_make(struct fab_engine *engine, int *fd);
/* Map the pair of a peer for the accepting end; both descriptors stay the caller's. NULL: they are not what they should
 * be, or there is no memory. */
struct tcp_pair *tcp_pair_map(int pair_fd, int ready_fd, uint32_t bit);
/* Take a pair off its engine: nothing looks at it any more. Idempotent. */
void tcp_pair_stop(struct tcp_pair *pair);
/* Stop and free. NULL is allowed. */
void tcp_pair_free(struct tcp_pair *pair);

/* Accepting end: add the pair to the engine of the stream, and answer over the socket fd. 0; -ENOTSUP: it is not
 * possible (without pair) or not wanted (without engine), and the peer was told so; the stream uses the socket. Another
 * -errno: the stream is broken. */
int tcp_pair_answer(struct tcp_pair *pair, int fd, struct fab_engine *engine);
/* Connecting end: read the answer. 0: the rings may be used. -EAGAIN: it has not come. -ENOTSUP: the peer refuses; the
 * stream uses the socket. Another -errno: the stream is broken. */
int tcp_pair_take_answer(struct tcp_pair *pair, int fd);

/* Send a message with descriptors (cnt, 2 at most). Returns as sendmsg(2), or -errno. */
ssize_t tcp_pair_send(int fd, const struct iovec *iov, size_t iov_cnt, const int *fds, int cnt);
/* Receive bytes, and descriptors into fds[2] behind the *cnt that are there; further ones are closed. Returns as
 * recvmsg(2), or -errno. */
ssize_t tcp_pair_recv(int fd, void *buf, size_t len, int fds[2], int *cnt);

#endif
