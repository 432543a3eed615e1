/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A connection: one stream of frames to one peer, the same for MSG and RDM endpoints (doc/design.md, 7.1). It owns a
 * send queue and a parser. Who opened it, and what its end means, is its owner's business (struct tcp_conn_owner).
 *
 * tcp_conn_init -> IDLE --operations may be queued--> tcp_conn_start -> UP -> tcp_conn_down -> DOWN -> freed by the
 * owner. An idle one may also go back: UP -> (PARKING ->) IDLE, by agreement with the peer (peer/park.c).
 *
 * All calls want the engine lock of conn->ep. Files: conn.c life and failure, tx.c what leaves, rx.c what arrives,
 * io_sock.c moves the bytes.
 */
#ifndef TCP_CONN_H
#define TCP_CONN_H

#include "base/addr.h"
#include "common/endpoint/endpoint.h"
#include "common/engine/engine.h"
#include "common/receive/receive.h"
#include "tcp/params/params.h"
#include "tcp/stream/idmap.h"
#include "tcp/wire/wire.h"

struct tcp_ep;
struct tcp_conn;
struct tcp_unexp;

enum tcp_conn_state {
	TCP_CONN_IDLE,			/* no stream yet, or parked; operations wait */
	TCP_CONN_UP,
	TCP_CONN_PARKING,		/* has agreed to end the stream: operations wait for that, or for a frame */
	TCP_CONN_DOWN,			/* every operation has been completed; nothing may be added */
};

/* What the other end said of itself in its CM message, in host order, checked by handshake/cm.c. */
struct tcp_hello {
	bool ext;			/* speaks our extension */
	bool swap;			/* its byte order is not ours */
	uint16_t features;		/* TCP_EXT_*; 0 unless ext */
	uint64_t incarnation;		/* 0 unless ext */
	uint32_t eager_max;
	uint32_t credit;
};

/* Told by the connection to who opened it. Called with the engine lock held. */
struct tcp_conn_owner {
	/* The stream has ended: err is 0 (the peer closed in good order) or a positive FI_E*. All operations of the
	 * connection have been completed by now. The owner may free the connection (through fab_engine_defer) or
	 * start over. */
	void (*down)(struct tcp_conn *conn, int err);
	/* The stream has ended by agreement, the connection is IDLE again, and operations may be waiting in it. The
	 * owner starts it again when there are any. NULL: this owner's connections are never parked. */
	void (*parked)(struct tcp_conn *conn);
	/* It goes on where it was when it is started again; if not, it is parked only when it keeps no message, whose
	 * credit would be given twice. */
	bool resumes;
};

/* Moves bytes. Results as of send(2)/recv(2): bytes, 0 at the end of the stream (recv), or -errno (-EAGAIN: later). */
struct tcp_io {
	ssize_t (*send)(struct tcp_conn *conn, const void *buf, size_t len);
	ssize_t (*sendv)(struct tcp_conn *conn, const struct iovec *iov, size_t cnt);
	ssize_t (*recv)(struct tcp_conn *conn, void *buf, size_t len);
	ssize_t (*recvv)(struct tcp_conn *conn, const struct iovec *iov, size_t cnt);
	void (*close)(struct tcp_conn *conn);
};
extern const struct tcp_io tcp_io_sock;

enum tcp_rx_phase {
	TCP_RX_HDR,			/* between frames, or within a header of which hdr_have bytes are here */
	TCP_RX_PAYLOAD,			/* `left` bytes of payload to go to iov, then `skip` to be dropped */
	TCP_RX_STALLED,			/* the rest of rx.unexp is in the socket until a receive takes it (stall.c) */
};

/* The parser's state: only what an unfinished frame needs. */
struct tcp_rx_state {
	enum tcp_rx_phase phase;
	uint8_t hdr_have;
	uint8_t iov_cnt, iov_cur;
	uint64_t left, skip;
	void (*done)(struct tcp_conn *conn);	/* payload is complete */
	struct fab_into into;		/* a message on its way into a posted receive; rx is NULL otherwise */
	struct tcp_unexp *unexp;	/* the message being kept, or announced data, or NULL */
	bool bulk;			/* the last payload was long: take little more than headers into staging */
	bool more;			/* the last read was filled: more is there */
	/* peers without extension only: not read, as unexp_len is over the limit or a message is stalled; likewise
	 * strangers' (message/stranger.c) */
	bool paused;
	/* a remote write that must not be: the FI_E* to answer with; its payload is dropped */
	uint32_t refuse;		/* likewise an atomic */
	uint32_t mr_gen;		/* fab_mr_map.gen when a remote write was verified */
	struct fab_mr *mr[TCP_RMA_IOV_MAX];	/* its regions, hdr.rma_iov_cnt of them; valid while mr_gen is */
	uint8_t *operands;		/* of an atomic: operand_room, or owned; NULL between them */
	union {
		struct iovec iov[TCP_IOV_LIMIT];
		struct {
			struct iovec aim;	/* where iov ends when operands are short */
			uint8_t operand_room[(TCP_IOV_LIMIT - 1) * sizeof(struct iovec)];
		};
	};
	union {
		struct tcp_hdr hdr;	/* of the current frame, host order */
		uint8_t hdr_buf[TCP_HDR_MAX];
	};
};

/* What is to be sent, and what waits for an answer: tx.c. */
struct tcp_conn_tx {
	struct fab_list queue;		/* struct tcp_tx: not, or not wholly, given to the socket */
	/* struct tcp_tx: operations that may not start yet, and those behind them; they go to queue. Empty unless UP */
	struct fab_list held;
	struct fab_list ack_wait;	/* struct tcp_tx: sent, acknowledgement to come, in order */
	struct fab_list read_wait;	/* struct tcp_tx: read requests sent, response to come, in order */
	struct tcp_idmap rts;		/* struct tcp_tx: announced, go-ahead to come */
	struct fab_flush flush;		/* linked: something waits for the next pass (FI_MORE, a burst, an answer) */
	uint64_t credit;		/* bytes that may be sent unasked (peer.ext) */
	uint64_t len;			/* bytes in queue */
	uint32_t cnt;			/* frames begun so far; the next one's tcp_hdr.id */
	uint32_t control_cnt;		/* frames of the provider's own in queue */
	bool blocked;			/* the socket is full: EPOLLOUT is armed */
};

/* What the peer is to be told of what came: rx.c. */
struct tcp_conn_owed {
	bool in_read;			/* frames of one read are being looked at: what they cause leaves together */
	bool answers;			/* and something in tx.queue is to leave when that is over */
	bool credit_due;		/* so much credit that the next to be sent takes the news along */
	uint32_t ack_cnt;
	uint32_t ack_len;		/* bytes read since one was owed first */
	uint64_t credit;		/* bytes consumed and not yet told to the peer */
};

/* The engine's pass_cnt when something was sent last (what follows is a burst), or received. */
struct tcp_conn_used {
	uint32_t sent_pass, recv_pass;
};

/* Messages on their way in, or kept: room message. */
struct tcp_conn_msg {
	struct tcp_idmap rndv;		/* struct tcp_unexp: its data has been asked for */
	struct fab_list unexp;		/* struct tcp_unexp of this connection */
	uint64_t unexp_len;		/* bytes kept for it, TCP_CREDIT_OVERHEAD each included */
	uint32_t announced_cnt;		/* announcements that no receive has taken */
	struct fab_list stranger;	/* linked in ctx->strangers */
};

/* Accesses to remote memory, ours and the peer's: room remote. */
struct tcp_conn_remote {
	uint32_t amo_asked;		/* results of atomics requested, TCP_AMO_WINDOW at most */
	uint32_t amo_owed;		/* results of atomics in tx.queue, TCP_AMO_WINDOW at most */
	uint32_t read_cnt;		/* reads in tx.queue and tx.read_wait, once the stream is up */
	uint32_t rsp_cnt;		/* read responses in tx.queue */
};

/* peer/park.c */
struct tcp_conn_park {
	bool asked;			/* PARK was sent, the answer has not come */
	bool stays;			/* is never parked: one of the ends could not open it again */
	bool parked;			/* IDLE after a stream that was parked: credit and unexp are still its own */
	uint32_t cnt;			/* tx.cnt behind PARK */
};

/* peer/alive.c: bytes that had come when it was looked at last; since when there were no more, though operations wait
 * (0: none do), and has that been said? */
struct tcp_conn_alive {
	uint64_t mark, stuck_ns;
	bool told;
};

/* A part belongs to the files that it names; others may read it. */
struct tcp_conn {
	struct fab_source src;		/* .fd: the socket */
	struct tcp_ep *ep;		/* borrowed: the endpoint outlives its connections */
	const struct tcp_conn_owner *owner;
	const struct tcp_io *io;
	fi_addr_t fi_addr;		/* the peer in ep's AV, or FI_ADDR_NOTAVAIL; the owner keeps it right */
	union fab_sockaddr addr;	/* RDM: where the peer listens, as an AV would have it; MSG: its end, once UP */
	enum tcp_conn_state state;
	struct tcp_hello peer;
	/* that both ends have proved to have; borrowed from ep or its AV, NULL: none was asked for */
	const struct fab_auth_key *auth_key;

	struct tcp_conn_tx tx;
	struct tcp_rx_state rx;
	struct tcp_conn_owed owed;
	struct tcp_conn_used used;
	struct tcp_conn_msg msg;
	struct tcp_conn_remote remote;
	struct tcp_conn_park park;
	struct tcp_conn_alive alive;
	struct fab_defer defer;		/* for the owner's free */
};

/* Prepare; no descriptor yet. Operations may be queued at once (tcp_submit) and leave when it starts. */
void tcp_conn_init(struct tcp_conn *conn, struct tcp_ep *ep, const struct tcp_conn_owner *owner);
/*
 * The handshake is done: take over the non-blocking socket fd and what the peer said of itself. Adds it to the
 * engine, sends what is queued. A parked connection goes on where it was if the peer says TCP_EXT_RESUME too, and
 * begins anew otherwise. 0, or -errno when the engine cannot take it (fd stays the caller's).
 */
int tcp_conn_start(struct tcp_conn *conn, int fd, const struct tcp_hello *peer);
/*
 * End it: close the socket, complete every operation in error - err is a positive FI_E*, prov_errno the cause, text
 * names both ends or is NULL - give receives that were being filled their error, forget announcements, then tell the
 * owner. err 0: the end is in good order, and what it cuts off has prov_errno for its error, or FI_ECANCELED if that
 * is 0. Idempotent.
 */
void tcp_conn_down(struct tcp_conn *conn, int err, int prov_errno, const char *text);
/* The same with a text made of both ends' addresses and `what`, which says what happened; logged, as a warning if
 * something is cut off by it, or if it is no end such as peers come to that close or are killed. */
void tcp_conn_fail(struct tcp_conn *conn, int err, int prov_errno, const char *what);
/* "connection OURS -> THEIRS", for a text; "?" for what is not known. */
#define TCP_CONN_TEXT	(2 * FAB_ADDR_STRLEN + 32)
void tcp_conn_text(const struct tcp_conn *conn, char text[TCP_CONN_TEXT]);
/* Does a stream to the peer that said this go on with the state of the one that was parked? */
bool tcp_conn_resumes(const struct tcp_conn *conn, const struct tcp_hello *peer);
/* Is there a stream? */
static inline bool tcp_conn_has_stream(const struct tcp_conn *conn)
{
	return conn->state == TCP_CONN_UP || conn->state == TCP_CONN_PARKING;
}
/* Send what can be sent now without waiting; true if nothing is left to send (for fi_close's bounded flush and
 * fi_shutdown). */
bool tcp_conn_flush(struct tcp_conn *conn);
/* Streams of this process. Any thread. */
uint32_t tcp_conn_cnt(void);
/* PARKING, but the stream is to go on: it is UP, and what has waited leaves. */
void tcp_conn_wake(struct tcp_conn *conn);
/* End the stream, which is idle or PARKING: the connection is IDLE, and its owner is told. */
void tcp_conn_park(struct tcp_conn *conn);
/* Give back what init took; state is DOWN or nothing was ever queued. */
void tcp_conn_fini(struct tcp_conn *conn);

#endif
