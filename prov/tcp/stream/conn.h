/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A connection: one stream of frames to one peer, the same for MSG and RDM endpoints (doc/design.md, 7.1). It has a
 * send queue and a parser. Its owner has opened it and handles its end (struct tcp_conn_owner).
 *
 * tcp_conn_init -> IDLE --operations may be queued--> tcp_conn_start -> UP -> tcp_conn_down -> DOWN -> freed by the
 * owner. An idle connection may also go back: UP -> (PARKING ->) IDLE, by agreement with the peer (peer/park.c).
 *
 * All functions require the engine lock of conn->ep. Files: conn.c (states and failure), tx.c (sending), rx.c
 * (receiving), io_sock.c (system calls), io_ring.c (shared memory), direct.c (payloads in the memory of their sender).
 */
#ifndef TCP_CONN_H
#define TCP_CONN_H

#include "base/addr.h"
#include "common/endpoint/endpoint.h"
#include "common/engine/engine.h"
#include "common/receive/receive.h"
#include "tcp/account/account.h"
#include "tcp/local/local.h"
#include "tcp/params/params.h"
#include "tcp/stream/idmap.h"
#include "tcp/wire/wire.h"

struct tcp_ep;
struct tcp_conn;
struct tcp_unexp;

enum tcp_conn_state {
	TCP_CONN_IDLE,			/* no stream yet, or parked; operations wait */
	TCP_CONN_UP,
	TCP_CONN_PARKING,		/* has agreed to end the stream: operations wait for its end, or for a frame */
	TCP_CONN_DOWN,			/* every operation was completed; none may be added */
};

/* The other end's announcements in its CM message, in host order, checked by handshake/cm.c. */
struct tcp_hello {
	bool ext;			/* supports our extension */
	bool swap;			/* has the other byte order */
	uint16_t features;		/* TCP_EXT_*; 0 without ext */
	uint64_t incarnation;		/* 0 without ext */
	uint32_t eager_max;
	uint32_t credit;
};

/* Callbacks to the owner of a connection, with the engine lock held. */
struct tcp_conn_owner {
	/* The stream has ended: err is 0 (the peer has closed it properly) or a positive FI_E*. All operations of the
	 * connection were completed. The owner may free the connection (with fab_engine_defer()) or start over. */
	void (*down)(struct tcp_conn *conn, int err);
	/* The stream was ended by agreement. The connection is IDLE, and may have operations that wait. The owner
	 * starts it again when there are any. NULL: the owner's connections are never parked. */
	void (*parked)(struct tcp_conn *conn);
	/* After parking, the stream can be resumed with its state. Otherwise it is parked only while it keeps no
	 * message, since the message's credit would be granted twice. */
	bool resumes;
};

/* System calls for data. Results as of send(2) and recv(2): bytes, 0 at the end of the stream (recv), or -errno
 * (-EAGAIN: later). */
struct tcp_io {
	ssize_t (*send)(struct tcp_conn *conn, const void *buf, size_t len);
	ssize_t (*sendv)(struct tcp_conn *conn, const struct iovec *iov, size_t cnt);
	/* A short frame (TCP_TX_COPY_MAX bytes at most) that is made in place: room() is the place for len bytes, and
	 * leave() sends them, as send() does. The peer may see and change what is there, so it is only written to.
	 * NULL: no memory. */
	uint8_t *(*room)(struct tcp_conn *conn, size_t len);
	ssize_t (*leave)(struct tcp_conn *conn, const void *frame, size_t len);
	/* As room(), but if the place is not in the stream itself, or there is none: NULL. So leave() takes all of the
	 * frame. NULL: a place is never in the stream. */
	uint8_t *(*place)(struct tcp_conn *conn, size_t len);
	ssize_t (*recv)(struct tcp_conn *conn, void *buf, size_t len);
	ssize_t (*recvv)(struct tcp_conn *conn, const struct iovec *iov, size_t cnt);
	/* In place of recv and recvv, which are NULL: take what has arrived, and handle it. As tcp_rx_poll(). */
	bool (*pull)(struct tcp_conn *conn);
	/* The stream is full: have tcp_tx_unblock() called when there is room. True: there is room already.
	 * NULL: EPOLLOUT tells. */
	bool (*want_room)(struct tcp_conn *conn);
	/* True if there is something to read, which is left where it is. */
	bool (*has_input)(const struct tcp_conn *conn);
	/* Bytes, with overhead, that were sent to a peer of this host and that its process has not read. */
	uint64_t (*unread)(const struct tcp_conn *conn);
};
extern const struct tcp_io tcp_io_sock, tcp_io_ring;

enum tcp_rx_phase {
	TCP_RX_HDR,			/* between frames, or in a header of which hdr_have bytes were read */
	TCP_RX_PAYLOAD,			/* `left` bytes of payload go to iov, then `skip` bytes are dropped */
	TCP_RX_PULL,			/* the same, but the payload is in the memory of the peer (direct.h) */
	TCP_RX_STALLED,			/* the rest of rx.unexp stays in the socket until a receive takes it
					 * (message/stall.c) */
};

/* Why the stream is not read now: bits of rx.paused. */
enum tcp_rx_paused {
	/* only for peers without extension: unexp_len is over the limit, or a message is stalled; also for peers in no
	 * address vector (message/stranger.c) */
	TCP_RX_PAUSED = 1,
	TCP_RX_PULLING = 2,		/* phase TCP_RX_PULL, and the next pass continues */
};

#define TCP_RX_REST	2		/* see tcp_rx_state.bulk */

/* The state of the parser for an unfinished frame. */
struct tcp_rx_state {
	enum tcp_rx_phase phase;
	uint8_t hdr_have;
	uint8_t iov_cnt, iov_cur;
	uint8_t hmem;			/* iov is memory of a device: its number; else 0 */
	uint64_t left, skip;
	void (*done)(struct tcp_conn *conn);	/* payload is complete */
	/* what was read behind the header, while a frame is started: tcp_rx_take() */
	const uint8_t *next;
	size_t next_len;
	struct fab_into into;		/* the room for a message in a posted receive; otherwise rx is NULL */
	struct tcp_unexp *unexp;	/* the message being kept, or whose announced payload is being read; or NULL */
	/* 1: the last payload was long: read little more than headers into the staging buffer. TCP_RX_REST: read
	 * nothing behind the current frame, since the next one is not wanted now. Each header sets it to 0 or 1 */
	uint8_t bulk;
	bool more;			/* the last read filled its buffer: there is more */
	uint8_t paused;			/* enum tcp_rx_paused */
	uint32_t stage;			/* the most bytes of the next read, if bulk is 0: FAB_STAGING_LEN, or less of a
					 * stranger */
	bool spoilt;			/* since iov was aimed, a copy to memory of a device has failed */
	bool special;			/* the peer has the other byte order, or may send direct frames */
	/* a remote write that was refused: the FI_E* for the answer; its payload is dropped */
	uint32_t refuse;		/* the same for an atomic */
	uint32_t mr_gen;		/* fab_mr_map.gen when a remote write was verified */
	struct fab_mr *mr[TCP_RMA_IOV_MAX];	/* its regions, hdr.rma_iov_cnt of them; valid while mr_gen is */
	uint8_t *operands;		/* of an atomic: operand_room, or owned; NULL if there is none */
	union {
		struct iovec iov[TCP_IOV_LIMIT];
		struct {
			struct iovec aim;	/* where iov continues after the operands */
			uint8_t operand_room[(TCP_IOV_LIMIT - 1) * sizeof(struct iovec)];
		};
	};
	union {
		struct tcp_hdr hdr;	/* the current frame, host order */
		uint8_t hdr_buf[TCP_HDR_MAX];
	};
};

/* Frames to be sent, and operations that wait for an answer: tx.c. */
struct tcp_conn_tx {
	struct fab_list queue;		/* struct tcp_tx: not, or not completely, written to the socket */
	/* struct tcp_tx: operations that may not start yet, and those behind them; they go to queue later. Empty unless
	 * UP */
	struct fab_list held;
	struct fab_list ack_wait;	/* struct tcp_tx: sent, waiting for an acknowledgement, in order */
	struct fab_list read_wait;	/* struct tcp_tx: read requests sent, waiting for the response, in order */
	struct tcp_idmap rts;		/* struct tcp_tx: announced, waiting for the go-ahead */
	struct fab_flush flush;		/* linked: frames wait for the next pass (FI_MORE, a burst, an answer) */
	int64_t credit;			/* bytes that may be sent without announcement (peer.ext); negative: a debt */
	uint64_t len;			/* bytes in queue */
	uint32_t cnt;			/* frames begun so far; tcp_hdr.id of the next one */
	uint32_t control_cnt;		/* control frames in queue, also those in packs */
	uint32_t op_cnt;		/* operations outstanding, in any list and in rts */
	bool blocked;			/* the socket is full: waiting for EPOLLOUT */
	uint32_t pack_cnt;		/* packs in queue (tx.c) */
	uint32_t unread_cnt;		/* answers queued while blocked, since the socket last had room */
};

/* Acknowledgements and credit that the peer must get: rx.c. */
struct tcp_conn_owed {
	bool in_read;			/* the frames of one read are being handled: their answers are sent together */
	bool answers;			/* tx.queue has answers to be sent after that */
	bool credit_due;		/* enough credit that the next frame sent must be accompanied by it */
	uint32_t ack_cnt;
	uint32_t ack_len;		/* bytes read since the first acknowledgement became due */
	uint64_t credit;		/* bytes consumed and not yet reported to the peer */
};

/* engine.pass_cnt at the last send (further sends in it are a burst), at the last receive, and at the last remote
 * access past the stream. */
struct tcp_conn_used {
	uint32_t sent_pass, recv_pass, straight_pass;
};

/* Messages arriving or kept: room message. */
struct tcp_conn_msg {
	struct tcp_idmap rndv;		/* struct tcp_unexp: its payload was requested */
	struct fab_list unexp;		/* struct tcp_unexp of this connection */
	uint64_t unexp_len;		/* bytes kept, with tcp_unexp_overhead() for each message */
	uint32_t announced_cnt;		/* announced messages that no receive has taken */
};

/* Remote memory accesses, ours and the peer's: room remote. */
struct tcp_conn_remote {
	uint32_t amo_asked;		/* results of atomics requested, TCP_AMO_WINDOW at most */
	uint32_t amo_owed;		/* results of atomics in tx.queue, TCP_AMO_WINDOW at most */
	uint32_t read_cnt;		/* reads in tx.queue and tx.read_wait, once the stream is up */
	uint32_t long_read_cnt;		/* of these, with TCP_DIRECT_MIN bytes at least */
	uint32_t rsp_cnt;		/* read responses in tx.queue */
	/* quiet frames (TCP_EXT_NAK) of this stream that were sent; the last of them that the peer has refused; and
	 * those that have arrived */
	uint64_t quiet_sent, quiet_refused, quiet_taken;
};

/* Whether frames of this end may be direct: the peer reads our memory. */
enum tcp_direct_lends {
	TCP_DIRECT_OFF,			/* no, for the life of the stream */
	TCP_DIRECT_UNASKED,
	TCP_DIRECT_ASKED,
	TCP_DIRECT_ON,
};

/* direct.c */
struct tcp_conn_direct {
	struct tcp_direct *state;	/* owned; NULL: neither end has asked */
	uint8_t lends;			/* enum tcp_direct_lends */
};

/* peer/park.c */
struct tcp_conn_park {
	bool asked;			/* PARK was sent, and not answered yet */
	uint32_t answer_pass;		/* engine->pass_cnt when a PARK was answered last; 0: never */
	bool stays;			/* never parked: one of the ends could not connect again */
	bool parked;			/* IDLE after parking: credit and unexp are still valid */
	uint32_t cnt;			/* tx.cnt after PARK */
};

/* peer/alive.c: bytes received at the last check; since when there were no more although operations wait (0: none
 * wait); whether that was logged. */
struct tcp_conn_alive {
	uint64_t mark, stuck_ns;
	bool told;
};

/* Each part belongs to the files named with it; other files may read it. */
struct tcp_conn {
	struct fab_source src;		/* .fd: the socket */
	struct tcp_ep *ep;		/* borrowed: the endpoint outlives its connections */
	const struct tcp_conn_owner *owner;
	const struct tcp_io *io;
	struct tcp_local *local;	/* owned: src.fd is a Unix socket; or NULL */
	struct fi_stats_peer *stats;	/* borrowed: its record in the page of the process (peer/survey.c) */
	fi_addr_t fi_addr;		/* the peer in ep's AV, or FI_ADDR_NOTAVAIL; the owner keeps it up to date */
	union fab_sockaddr addr;	/* RDM: the peer's listening address, as in an AV; MSG: the peer's address, once
					 * UP */
	enum tcp_conn_state state;
	struct tcp_hello peer;
	/* the key that both ends have proved, borrowed from ep or its AV; NULL: none was required */
	const struct fab_auth_key *auth_key;
	struct tcp_holding holding;	/* what is held for the peer, in ep->rx->account */

	struct tcp_conn_tx tx;
	struct tcp_rx_state rx;
	struct tcp_conn_owed owed;
	struct tcp_conn_used used;
	struct tcp_conn_msg msg;
	struct tcp_conn_remote remote;
	struct tcp_conn_direct direct;
	struct tcp_conn_park park;
	struct tcp_conn_alive alive;
	struct fab_defer defer;		/* used by the owner to free it */
};

/* Initialise, without a descriptor. Operations may be queued from now on (tcp_submit()); they are sent when the stream
 * starts. */
void tcp_conn_init(struct tcp_conn *conn, struct tcp_ep *ep, const struct tcp_conn_owner *owner);
/* With more answers that it does not read a peer waits for its turns like a stranger. */
#define TCP_UNREAD_MAX	2048
static inline bool tcp_conn_reads_nothing(const struct tcp_conn *conn)
{
	return conn->tx.unread_cnt >= TCP_UNREAD_MAX;
}
/* fi_addr or auth_key was set: give the peer the class that follows from them. */
void tcp_conn_classify(struct tcp_conn *conn);
/*
 * Start the stream after the handshake, with its non-blocking socket and the peer's announcements. Adds the socket
 * to the engine, in place of the source `from` unless that is NULL or not added, and sends what is queued. A parked
 * connection is resumed with its state if the peer has TCP_EXT_RESUME, too; otherwise it begins anew. 0; -errno: the
 * engine cannot add the socket, which still belongs to the caller.
 */
int tcp_conn_start(struct tcp_conn *conn, const struct tcp_link *link, const struct tcp_hello *peer,
		   struct fab_source *from);
/* The connection is being made, is up or parked: tell the page of the process. */
void tcp_conn_tell(struct tcp_conn *conn, enum fi_stats_conn state);
/* The address of a stranger was inserted into the vector as fi_addr, and none of its operations is queued: it may have
 * a record of its own there from now on. pid is that of its process, or 0. */
void tcp_conn_tell_inserted(struct tcp_conn *conn, fi_addr_t fi_addr, uint32_t pid);
/* The addresses of both ends of a stream. The family is 0 where it is not known. */
void tcp_conn_names(const struct tcp_conn *conn, union fab_sockaddr *ours, union fab_sockaddr *theirs);
/*
 * End the connection: close the socket, and complete every operation with an error. err is a positive FI_E*, prov_errno
 * the cause, text has both addresses or is NULL. Receives being filled get the error, announcements are dropped, then
 * the owner is told. err 0: the peer has closed properly; operations cut off get prov_errno, or FI_ECANCELED if that is
 * 0. Idempotent.
 */
void tcp_conn_down(struct tcp_conn *conn, int err, int prov_errno, const char *text);
/* The same with a text made from both addresses and `what`, which describes the event. It is logged, as a warning if
 * operations are cut off, or if it is not the usual end of a peer that closes or is killed. */
void tcp_conn_fail(struct tcp_conn *conn, int err, int prov_errno, const char *what);
/* "connection OURS -> THEIRS" for a text; an unknown address is "?". */
#define TCP_CONN_TEXT	(2 * FAB_ADDR_STRLEN + 32)
void tcp_conn_text(const struct tcp_conn *conn, char text[TCP_CONN_TEXT]);
/* True if a stream to the peer with these announcements resumes the parked one. */
bool tcp_conn_resumes(const struct tcp_conn *conn, const struct tcp_hello *peer);
/* True if a message of len bytes is within the peer's limit and credit, so that it needs no announcement. A short
 * injected message may go into debt if the peer supports that. For a stream that is up, with peer.ext. */
static inline bool tcp_conn_has_credit(const struct tcp_conn *conn, uint64_t len, bool injected)
{
	int64_t left = conn->tx.credit - (int64_t) (len + TCP_CREDIT_OVERHEAD);

	if (__builtin_expect(left >= 0 && len <= conn->peer.eager_max, 1))
		return true;
	return injected && len <= TCP_SHORT_LEN && left >= -(int64_t) TCP_SHORT_DEBT &&
	       (conn->peer.features & TCP_EXT_SHORT);
}
/* True if the connection has a stream. */
static inline bool tcp_conn_has_stream(const struct tcp_conn *conn)
{
	return conn->state == TCP_CONN_UP || conn->state == TCP_CONN_PARKING;
}
/* Send what can be sent without waiting. True if nothing is left to send, or to be read by the peer in our memory (for
 * the bounded flush of fi_close() and fi_shutdown()). */
bool tcp_conn_flush(struct tcp_conn *conn);
/* Continue a stream that is PARKING: it is UP again, and waiting operations are sent. */
void tcp_conn_wake(struct tcp_conn *conn);
/* End the stream, which is idle or PARKING: the connection becomes IDLE, and the owner is told. */
void tcp_conn_park(struct tcp_conn *conn);
/* Free everything; the state is DOWN, or nothing was ever queued. */
void tcp_conn_fini(struct tcp_conn *conn);

#endif
