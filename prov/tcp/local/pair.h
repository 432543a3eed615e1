/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The two rings of a stream between processes of one host, in one piece of shared memory: the connecting end makes it,
 * and writes the first ring. Its greeting brings the memory and the page of its engine (ready.h). The accepting end
 * answers when its endpoint is known, with the page of that endpoint's engine or with a refusal, as the first bytes
 * that it sends after the handshake. The connecting end reads the answer before it begins its stream. The Unix socket
 * then carries only bytes that wake a sleeper, and the end of the stream.
 *
 * The engine's lock is held, where there is an engine.
 */
#ifndef TCP_PAIR_H
#define TCP_PAIR_H

#include "tcp/local/reach.h"
#include "tcp/local/ready.h"
#include "tcp/local/ring.h"

/* ---- messages with descriptors ---- */

/* Send a message with descriptors (cnt, 2 at most). Returns as sendmsg(2), or -errno. */
ssize_t tcp_pair_send(int fd, const struct iovec *iov, size_t iov_cnt, const int *fds, int cnt);

/* A message of fixed length that may arrive in pieces, with descriptors. Zeroed before. */
struct tcp_pair_inbox {
	uint16_t len;			/* bytes that have arrived */
	int cnt, fds[2];		/* owned: descriptors that have come with them; further ones were closed */
};

/* Receive what is missing of the size bytes of buf. 0; -EAGAIN: there is more to come; -ECONNRESET: the peer has
 * closed; or another -errno. */
int tcp_pair_recv(int fd, void *buf, size_t size, struct tcp_pair_inbox *inbox);
/* Close the descriptors. */
void tcp_pair_close(struct tcp_pair_inbox *inbox);

/* ---- pairs ---- */

struct tcp_pair_answer {
	uint32_t magic;
	uint32_t bit;			/* in the page that comes with it */
};

/*
 * Shared. The words of both rings, and the places where their first records go, are in one page: a connection that has
 * carried little touches no other. So the room of the second ring is in front of the words, and its first record is
 * where that page begins. Processes with another layout, or other words in the rings, have another number, and go on
 * without rings.
 */
#define TCP_PAIR_LAYOUT	3
struct tcp_pair_mem {
	uint8_t second[TCP_RING_ROOM];
	struct tcp_ring_words words[2];
	uint8_t first[TCP_RING_ROOM];
};
#define TCP_PAIR_PAGE	4096
#define TCP_PAIR_SECOND_POS	(TCP_RING_ROOM / TCP_PAIR_PAGE * TCP_PAIR_PAGE)	/* of the first record there */
_Static_assert(sizeof(struct tcp_pair_mem) == 15 * TCP_PAIR_PAGE, "there is no padding");
_Static_assert(offsetof(struct tcp_pair_mem, first) - TCP_PAIR_SECOND_POS < TCP_PAIR_PAGE * 3 / 4,
	       "the page of the words has room for the first records of both rings");

struct tcp_conn;

struct tcp_pair {
	struct tcp_near near;		/* our end; not added before the stream begins on the accepting end */
	struct tcp_conn *conn;		/* borrowed, of the room above: whose rings these are */
	struct tcp_ring_writer out;
	struct tcp_ring_reader in;
	struct tcp_ready_mem *peer;	/* owned, mapped; NULL: its answer has not come, or was a refusal */
	uint32_t peer_bit;
	struct tcp_pair_mem *mem;	/* owned, mapped: both rings */
	struct tcp_visitor visitor;	/* the peer, as it reaches our regions */
	struct tcp_reach reach;		/* the peer's regions, as we reach them */
	struct tcp_pair_answer answer;	/* of the accepting end, as far as it has come */
	struct tcp_pair_inbox inbox;	/* of the answer; owns the page's descriptor */
	uint32_t forks;			/* fab_fork_cnt of the process that has the memory */
	uint32_t part;			/* bytes of the next record that were handled: it was too long for one look */
	uint32_t spared;		/* looks that are not measured although the ring was full */
	bool captured;			/* FI_CAPTURE: the next record is in the file already */
	bool ended;			/* the peer has closed: nothing comes after what is in the ring */
	uint32_t taken_at_end;		/* with ended: in.taken at that time */
	int err;			/* with ended: the error of the socket, or 0 */
};

/* Make a pair for the connecting end, whose engine it is. *fd is for the peer, and the caller's. NULL: not possible. */
struct tcp_pair *tcp_pair_make(struct fab_engine *engine, int *fd);
/* Map the pair of a peer for the accepting end; both descriptors stay the caller's. NULL: they are not what they should
 * be, or there is no memory. */
struct tcp_pair *tcp_pair_map(int pair_fd, int ready_fd, uint32_t bit);
/* The stream begins, with the peer of process pid (0: unknown), over the socket fd. The peer's writes and reads may go
 * straight to the regions of map (NULL: they may not), and ours to its regions. */
void tcp_pair_begin_straight(struct tcp_pair *pair, struct fab_mr_map *map, pid_t pid, int fd);
/* Take a pair off its engine: nothing looks at it any more, and no remote access goes past the rings. *fd is the
 * stream's socket, which the caller closes next, unless it was taken over and is -1 (tcp_windows_leave()). NULL: the
 * stream has not begun, or this was called before. Idempotent. */
void tcp_pair_stop(struct tcp_pair *pair, int *fd);
/* Stop and free, or leave that to the time when the peer accesses our memory no more. NULL is allowed. */
void tcp_pair_free(struct tcp_pair *pair);

/* Accepting end: add the pair to the engine of the stream, and answer over the socket fd. 0; -ENOTSUP: it is not
 * possible (without pair) or not wanted (without engine), and the peer was told so; the stream uses the socket. Another
 * -errno: the stream is broken. */
int tcp_pair_answer(struct tcp_pair *pair, int fd, struct fab_engine *engine);
/* Connecting end: read the answer. 0: done; the rings are to be used if pair->peer is there, otherwise the socket.
 * -EAGAIN: it has not come. Another -errno: the stream is broken. */
int tcp_pair_take_answer(struct tcp_pair *pair, int fd);

#endif
