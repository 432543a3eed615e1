/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streams: frames, and the connections that carry them. A connection (conn.h) queues frames to send, and reads frames
 * without knowing their meaning. Operations and receives belong to an endpoint (ep.h). The rooms above know the meaning
 * of frames; their functions are called through two tables: tcp_frames, by type of frame, and tcp_above, for events of
 * a whole connection. Engine lock held everywhere.
 */
#ifndef TCP_STREAM_H
#define TCP_STREAM_H

#include <string.h>
#include <sys/uio.h>
#include "tcp/stream/conn.h"
#include "tcp/stream/ep.h"

/* ---- the meaning of frames ---- */

/* A type of frame. NULL functions have nothing to do. "The operation" is a struct tcp_tx that is sent as such a
 * frame. */
struct tcp_frame {
	/* A frame has arrived: its header is complete and has the format below. NULL: frames of this type are not
	 * allowed. */
	void (*start)(struct tcp_conn *conn);
	/* Tried before, for a frame all of which is at hand, without TCP_FLAGS_LONGER and with a header of whole_hdr
	 * bytes: `rest` is what follows the base header, the rest of the header and a payload of len bytes. False:
	 * nothing was done, and start is called. NULL: there is no such way. */
	bool (*whole)(struct tcp_conn *conn, const uint8_t *rest, size_t len);
	uint8_t whole_hdr;
	/* The stream is up, and the operation is about to be queued: set what depends on the peer. With `credit`: the
	 * credit is not enough, announce the operation. 0; -FI_EAGAIN: not now; -FI_ENOMEM; -FI_EOPNOTSUPP: the peer
	 * does not support it. */
	int (*enter)(struct tcp_conn *conn, struct tcp_tx *tx);
	/* With tx->amo. must_wait: true if the operation may not start yet. release: the operation is freed, return
	 * what it has. */
	bool (*must_wait)(const struct tcp_conn *conn, const struct tcp_tx *tx);
	void (*release)(struct tcp_tx *tx);
	/* The kernel has all of the frame, it is in no list, and it asks for no acknowledgement: wait for the answer,
	 * or complete it. NULL: it completes. */
	void (*sent)(struct tcp_conn *conn, struct tcp_tx *tx);
	/* The peer refuses the operation with err (a positive FI_E*): complete it; it is in no list. NULL: cannot be
	 * refused. Other frames than those with rma are refused if they are direct only. */
	void (*refused)(struct tcp_tx *tx, int err);
	/* The frame is direct, and its payload cannot be read: finish what it was for with err (a positive FI_E*), and
	 * refuse the frame. NULL: such frames are not direct. */
	void (*spoilt)(struct tcp_conn *conn, int err);
	uint16_t ext;			/* ours: the TCP_EXT_* that the peer must have announced */
	uint8_t fixed;			/* bytes after the base header and CQ data */
	uint8_t pairs;			/* bit n: the n-th word of `fixed` is two 32-bit fields */
	bool cq_data;			/* may carry CQ data */
	bool rma;			/* has rma_iov, at least one */
	bool payload;			/* size may exceed hdr_size */
	bool group;			/* may have a peer group */
	bool credit;			/* a message: without announcement it uses credit (peer.ext) */
};
/* By enum tcp_wire_op. */
extern const struct tcp_frame tcp_frames[TCP_WIRE_OP_END];

/* Events of a connection for the rooms above. */
struct tcp_above {
	/* The stream has begun, or a parked one was resumed; nothing was sent yet. */
	void (*started)(struct tcp_conn *conn, bool resumed);
	/* The stream has ended, and operations were completed: complete what was arriving with the error, as in
	 * tcp_conn_down(). op_err is err, or if err is 0 the error for what is cut off. */
	void (*ended)(struct tcp_conn *conn, int err, int op_err, int prov_errno, const char *text);
	/* The peer of a paused connection (tcp_rx_pause()) has closed or died: the kernel has everything that will
	 * come. */
	void (*gone)(struct tcp_conn *conn);
	/* rx.phase is TCP_RX_STALLED; buf has the len bytes after the header. */
	void (*stalled)(struct tcp_conn *conn, const uint8_t *buf, size_t len);
	/* Too much is kept for this stranger, or for all of them: do not read from it. */
	void (*hold)(struct tcp_conn *conn);
	/* Regions were closed in the middle of a TCP_WIRE_WRITE: aim again at all of it. Returns 0, or the FI_E* that
	 * refuses it. */
	uint32_t (*reaim)(struct tcp_conn *conn);
	/* A TCP_WIRE_READ_RSP is about to be sent. True: send it, possibly changed to a refusal. False: neither is
	 * possible. */
	bool (*may_leave)(struct tcp_conn *conn, struct tcp_tx *tx);
};
extern const struct tcp_above tcp_above;

/* ---- tx.c ---- */

/* a frame of at most so many bytes is copied, so that many frames share an iov entry */
#define TCP_TX_COPY_MAX	512

/* Copy len bytes from iov to one buffer. */
static inline void tcp_tx_copy(uint8_t *to, const struct iovec *iov, uint64_t len)
{
	for (; len; iov++) {
		size_t n = iov->iov_len < len ? iov->iov_len : len;

		memcpy(to, iov->iov_base, n);
		to += n;
		len -= n;
	}
}

/* Add an operation behind the earlier ones; nothing is sent yet. 0; -FI_EAGAIN, -FI_ENOMEM: it needs an announcement,
 * which is not possible. */
int tcp_tx_add(struct tcp_conn *conn, struct tcp_tx *tx);
/* Make a control frame: a header without payload, with extra_len bytes of extra after the base header. The caller
 * completes it and passes it to tcp_tx_queue(). NULL: no memory, and the connection was ended. */
struct tcp_tx *tcp_tx_control(struct tcp_conn *conn, enum tcp_wire_op op, const void *extra, size_t extra_len);
/* The same, but the connection goes on without it. */
struct tcp_tx *tcp_tx_try_control(struct tcp_conn *conn, enum tcp_wire_op op, const void *extra, size_t extra_len);
/* Replace header and extra of a control frame of which nothing was sent. */
void tcp_tx_control_fill(struct tcp_tx *tx, enum tcp_wire_op op, const void *extra, size_t extra_len);
/* Append to the send queue, and send what can be sent. While the frames of a read are handled, tcp_rx_tell() sends
 * later. */
void tcp_tx_queue(struct tcp_conn *conn, struct tcp_tx *tx);
/* The stream has started or was resumed: set what depends on the peer in operations that were queued, and send. */
void tcp_tx_start(struct tcp_conn *conn);
/* Send: a pass begins. */
void tcp_tx_flush(struct tcp_conn *conn);
/* The stream has room again (EPOLLOUT, or a ring was read): send. A stream that is PARKING sends the frame that was
 * begun, and no other. */
void tcp_tx_unblock(struct tcp_conn *conn);
/* The peer acknowledges the oldest cnt frames; if err is not 0, it refuses the next one. False: there are not so
 * many. */
bool tcp_tx_acked(struct tcp_conn *conn, uint32_t cnt, uint32_t err);
/* True if all operations and frames have completed, except those in tx.held. */
bool tcp_tx_all_done(const struct tcp_conn *conn);
/* True if an operation with these bits of enum tcp_tx_waits may not start yet. */
static inline bool tcp_tx_is_behind(const struct tcp_conn *conn, uint8_t waits)
{
	return __builtin_expect(waits, 0) && (((waits & TCP_TX_BEHIND_SENDS) && conn->tx.rts.cnt) ||
					      ((waits & TCP_TX_BEHIND_READS) && conn->remote.read_cnt) ||
					      ((waits & TCP_TX_BEHIND_DIRECT) && conn->remote.long_read_cnt &&
					       conn->rx.special) ||
					      ((waits & TCP_TX_BEHIND_ALL) && !tcp_tx_all_done(conn)));
}
/* True if a frame may be written to the stream now: it is up and not full, and no frame must go before. */
static inline bool tcp_tx_is_clear(const struct tcp_conn *conn)
{
	return conn->state == TCP_CONN_UP && !conn->tx.blocked && !conn->owed.credit_due &&
	       fab_list_empty(&conn->tx.queue) && fab_list_empty(&conn->tx.held);
}
/* Where a short frame of `size` bytes can be made, which then leaves before all others by tcp_tx_put(). NULL: something
 * goes before it; or the stream is a socket, where frames share a call. Queue it then. */
static inline uint8_t *tcp_tx_place(struct tcp_conn *conn, size_t size)
{
	return conn->io->place && tcp_tx_is_clear(conn) ? conn->io->place(conn, size) : NULL;
}
/* Make the base header there, and the `more` bytes after it. The peer may see and change what is there. Returns the
 * place of the payload. */
static inline uint8_t *tcp_tx_make(const struct tcp_conn *conn, uint8_t *frame, enum tcp_wire_op op, size_t size,
				   const void *more, size_t more_len)
{
	*(struct tcp_hdr *) frame = (struct tcp_hdr) {
		.version = TCP_WIRE_VERSION, .op = op, .size = size, .hdr_size = sizeof(struct tcp_hdr) + more_len,
		.id = conn->tx.cnt,
	};
	if (more_len)
		memcpy(frame + sizeof(struct tcp_hdr), more, more_len);
	return frame + sizeof(struct tcp_hdr) + more_len;
}
static inline void tcp_tx_put(struct tcp_conn *conn, const uint8_t *frame, size_t size)
{
	conn->io->leave(conn, frame, size);
	conn->tx.cnt++;
}
/* The first frame of the queue was written past it, while tcp_tx_is_clear(): n is the result of conn->io's send for all
 * of its bytes. Continue with its rest, or handle the error. */
void tcp_tx_resume(struct tcp_conn *conn, ssize_t n);
/* Complete an operation that is in no list, and free it. err is a positive FI_E* or 0. */
void tcp_tx_done(struct tcp_tx *tx, int err, int prov_errno, const char *text);
/* Free an operation that is in no list, without a completion. */
void tcp_tx_free(struct tcp_tx *tx);
/* Complete everything outstanding with an error. */
void tcp_tx_fail_all(struct tcp_conn *conn, int err, int prov_errno, const char *text);
/* Send the acknowledgements that are due. err, unless 0, refuses the frame after those counted in owed.ack_cnt. (Credit
 * is sent with the next flush when conn->owed.credit_due is set.) */
void tcp_tx_ack(struct tcp_conn *conn, uint32_t err);

/* Initialise a transmit context in an endpoint or shared context with the limits of attr; fini after every operation
 * has completed. */
void tcp_tx_ctx_init(struct tcp_tx_ctx *ctx, const struct fi_tx_attr *attr);
void tcp_tx_ctx_fini(struct tcp_tx_ctx *ctx);

/* ---- rest.c: what takes long to free is freed in pieces, one in each pass ---- */

/* Of an endpoint or a shared receive context that is opened; and closed, when its connections have ended, with the lock
 * held: all is freed. */
void tcp_rest_init(struct tcp_ep *ep);
void tcp_rest_fini(struct tcp_ep *ep);
/* The connection has ended, and has nothing but control frames in its queue: free them, and clear the queue. */
void tcp_rest_answers(struct tcp_conn *conn);
/* Nothing is handed out of the pool any more: free its memory. It may be used again. */
void tcp_rest_pool(struct tcp_ep *ep, struct fab_pool *pool);
/* An answer was queued: free two of those that ended connections have left, so that a peer which connects again and
 * again does not leave more than is freed. */
void tcp_rest_keep_up(struct tcp_ep *ep);
/* A control frame was given back to the pool of operations: do that if it was the last one, and there were many. */
void tcp_rest_trim(struct tcp_ep *ep);

/* ---- direct.c: payload that stays in the memory of its sender until the receiver reads it there ---- */

/* bytes of payload from which on that costs less than the stream (decisions/local-peers.md) */
#define TCP_DIRECT_MIN	32768

/* True if a message of len bytes is to be queued, so that tcp_direct_offer() sees it. */
static inline bool tcp_direct_wants(const struct tcp_conn *conn, uint64_t len)
{
	return len >= TCP_DIRECT_MIN && (conn->direct.lends == TCP_DIRECT_UNASKED ||
					 conn->direct.lends == TCP_DIRECT_ON);
}
/* A frame is about to be queued, with its payload in tx->iov: make it direct, if it is long and the peer reads our
 * memory. tx->size, want_ack and the header's flags change. The peer is asked if it was not yet. */
void tcp_direct_offer(struct tcp_conn *conn, struct tcp_tx *tx);
/* A read of ours enters the queue, or has ended: count it. */
static inline void tcp_read_begins(struct tcp_conn *conn, const struct tcp_tx *tx)
{
	conn->remote.read_cnt++;
	conn->remote.long_read_cnt += tx->len >= TCP_DIRECT_MIN;
}
static inline void tcp_read_ends(struct tcp_conn *conn, const struct tcp_tx *tx)
{
	conn->remote.read_cnt--;
	conn->remote.long_read_cnt -= tx->len >= TCP_DIRECT_MIN;
}
/* start: the peer asks, or answers. */
void tcp_direct_asked(struct tcp_conn *conn);
void tcp_direct_answered(struct tcp_conn *conn);
/* Check a header with TCP_FLAGS_PIECES. NULL: valid; otherwise the fault. */
const char *tcp_direct_check(const struct tcp_conn *conn, const struct tcp_hdr *hdr);

/* ---- rx.c: frames ---- */

#define TCP_RX_BULK_LEN	(32 * 1024)	/* bytes of payload from which on another copy costs noticeable time */

/* Read once from the socket, and handle all frames. True if anything arrived, including the end of the stream, which
 * may end the connection. False: nothing arrived, there is no stream, or it may not be read now. */
bool tcp_rx_poll(struct fab_source *src);
#define TCP_RX_STRANGER_FIRST	4096	/* bytes of the first read from a stranger */
/* A stranger's connection was served in its turn: make its next read shorter if it took all of the turn, or longer. */
void tcp_rx_learn_cost(struct tcp_conn *conn);
/* Its turn begins. While others have data, no more of it is read at a time than a turn should take. */
void tcp_rx_begin_turn(struct tcp_conn *conn);
/* A known peer had more than was read of it, which took so many ns: make its next read as long as takes its share of a
 * pass, or longer if nobody else has data. True: it took little. */
bool tcp_rx_learn_share(struct tcp_conn *conn, uint64_t took);
/* Read once from a stream over a socket (fab_source.poll). */
bool tcp_rx_poll_socket(struct fab_source *src);
/* Glances at it (fab_source.glance_len and glanced): allowed between frames, unless an answer is owed. */
size_t tcp_rx_glance_len(const struct fab_source *src);
bool tcp_rx_glanced(struct fab_source *src, ssize_t n);
/* For io->pull. Handle a record of len bytes, or a part of one, which stays where it is; then the answers to all
 * records. False: nothing may be read from the stream now, and the record stays. */
bool tcp_rx_record(struct tcp_conn *conn, const uint8_t *buf, size_t len);
void tcp_rx_records_end(struct tcp_conn *conn);
/* The stream has ended, with err (a positive errno) or properly (0). */
void tcp_rx_end(struct tcp_conn *conn, int err);
/* Send the answers to received frames: acknowledgements, credit, and other frames queued because of them. Done once for
 * each read, so within one it does nothing. */
void tcp_rx_tell(struct tcp_conn *conn);
/* Stop reading from a peer with too many unread messages, or continue. Only peers without credit are stopped. The end
 * of the stream is noticed all the same. */
void tcp_rx_pause(struct tcp_conn *conn, bool pause);
/* The peer returns credit. */
void tcp_rx_credit(struct tcp_conn *conn);
/* Called by conn->tx.flush: send an acknowledgement that waits for the next read, unless a pass has just begun, which
 * may do that read. */
void tcp_rx_tell_flush(struct tcp_conn *conn);
/* Handle an acknowledgement, ours or upstream's; upstream's has no body and stands for one frame. */
void tcp_rx_ack(struct tcp_conn *conn);
/* Read the payload of the current frame into rx.iov (which is aimed at `left` bytes), drop the next `skip` bytes, then
 * call done. */
void tcp_rx_expect(struct tcp_conn *conn, uint64_t left, uint64_t skip, void (*done)(struct tcp_conn *conn));
/* For the start of a frame, in place of tcp_rx_expect(): its payload of len bytes, which was read with the header. It
 * is valid until the function returns. NULL: not all of it was; nothing was done. */
static inline const uint8_t *tcp_rx_take(struct tcp_conn *conn, uint64_t len)
{
	const uint8_t *payload = conn->rx.next;

	if (len > conn->rx.next_len)
		return NULL;
	conn->rx.next += len;
	conn->rx.bulk = len >= TCP_RX_BULK_LEN;
	return payload;
}
/* Aim the parser's iov at the first len bytes of iov; hmem is the number of a device's memory there, or 0. With a
 * device, whoever finishes the payload looks at rx->spoilt. */
void tcp_rx_aim(struct tcp_rx_state *rx, const struct iovec *iov, uint32_t cnt, uint64_t len, uint8_t hmem);
/* Copy n bytes of payload to where rx.iov points, in memory of a device. */
void tcp_rx_to_device(struct tcp_rx_state *rx, const uint8_t *buf, size_t n);
/* n bytes of payload were stored where rx.iov points. */
void tcp_rx_advance(struct tcp_rx_state *rx, size_t n);
/* Before more of a payload is stored: regions may have been closed while a write is arriving. If its own regions still
 * exist, it continues; otherwise its rest is dropped. */
void tcp_rx_recheck_region(struct tcp_conn *conn);
/* Handle len bytes of the stream, all from one read, and send the answers. */
void tcp_rx_handle(struct tcp_conn *conn, const uint8_t *buf, size_t len);
/* Copy staged payload to rx.iov; returns the number of bytes used. */
size_t tcp_rx_copy(struct tcp_rx_state *rx, const uint8_t *buf, size_t len);
/* The part of the header after the base header and the CQ data, if any. */
const void *tcp_rx_extra(const struct tcp_conn *conn);
/* The CQ data of the current frame; 0 if it has none. */
uint64_t tcp_rx_cq_data(const struct tcp_conn *conn);
/* The peer group of the current frame; 0: none; above TCP_GROUP_MAX: invalid. */
uint32_t tcp_rx_group(const struct tcp_conn *conn);
/* The current frame was delivered: acknowledge it, after this read, if it asked for that. */
static inline void tcp_rx_delivered(struct tcp_conn *conn)
{
	if (conn->rx.hdr.flags & TCP_FLAG_WANT_ACK)
		conn->owed.ack_cnt++;
}
/* Convert an error from a peer (not 0) for the application: FI_EIO if it is invalid. */
static inline int tcp_rx_errno(uint32_t err)
{
	return err < 4096 ? (int) err : FI_EIO;
}
/* The peer has violated the protocol: log `what` and end the connection. */
void tcp_rx_broken(struct tcp_conn *conn, const char *what);

#endif
