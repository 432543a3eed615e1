/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Streams: frames, and what carries them. A connection (conn.h) queues what is to be sent, and reads what comes as far
 * as its meaning does not matter; operations and receives belong to an endpoint (ep.h). What a frame means is known to
 * the rooms above, whose functions are reached through two tables: tcp_frames, by type of frame, and tcp_above, for
 * what concerns a whole connection. Engine lock held throughout.
 */
#ifndef TCP_STREAM_H
#define TCP_STREAM_H

#include <string.h>
#include <sys/uio.h>
#include "tcp/stream/conn.h"
#include "tcp/stream/ep.h"

/* ---- what frames mean ---- */

/* A type of frame. Slots that are NULL have nothing to do; an operation is a struct tcp_tx that leaves as such a
 * frame. */
struct tcp_frame {
	/* One has come: its header is complete, and of the shape below. NULL: there is no such frame. */
	void (*start)(struct tcp_conn *conn);
	/* The stream is up, and the operation takes its place in the queue: settle what depends on the peer. Of those
	 * with `credit`: it cannot go unasked, announce it. 0; -FI_EAGAIN: not now; -FI_ENOMEM; -FI_EOPNOTSUPP: the
	 * peer does not know it. */
	int (*enter)(struct tcp_conn *conn, struct tcp_tx *tx);
	/* tx->amo: may it not start yet? And it goes: give back what it has. */
	bool (*must_wait)(const struct tcp_conn *conn, const struct tcp_tx *tx);
	void (*release)(struct tcp_tx *tx);
	/* All of it is with the kernel, it is on no list, and asks for no acknowledgement: wait for the answer, or
	 * complete it. NULL: it completes. */
	void (*sent)(struct tcp_conn *conn, struct tcp_tx *tx);
	/* The peer refuses it with err, a positive FI_E*: complete it; it is on no list. NULL: nobody may. */
	void (*refused)(struct tcp_tx *tx, int err);
	uint16_t ext;			/* ours: the TCP_EXT_* that must have been announced */
	uint8_t fixed;			/* bytes behind base header and CQ data */
	uint8_t pairs;			/* which words of `fixed` are two fields of 32 bits: bit n the n-th */
	bool cq_data;			/* may carry CQ data */
	bool rma;			/* carries rma_iov, one at least */
	bool payload;			/* size may exceed hdr_size */
	bool group;			/* may be of a peer group */
	bool credit;			/* a message: sent unasked it costs credit (peer.ext) */
};
/* By enum tcp_wire_op. */
extern const struct tcp_frame tcp_frames[TCP_WIRE_OP_END];

/* What else connections tell and ask the rooms above. */
struct tcp_above {
	/* The stream has begun, or goes on where a parked one was; nothing has been sent. */
	void (*started)(struct tcp_conn *conn, bool resumed);
	/* It has ended, and operations have been completed: what was on its way in gets its error, as in
	 * tcp_conn_down(); op_err is err, or the error of what is cut off where err is 0. */
	void (*ended)(struct tcp_conn *conn, int err, int op_err, int prov_errno, const char *text);
	/* The peer of one that is paused (tcp_rx_pause) has closed or gone: the kernel has all that will come. */
	void (*gone)(struct tcp_conn *conn);
	/* rx.phase is TCP_RX_STALLED, len bytes behind the header are in buf. */
	void (*stalled)(struct tcp_conn *conn, const uint8_t *buf, size_t len);
	/* There is too much of peers that nobody knows, and this is one: do not read from it. */
	void (*hold)(struct tcp_conn *conn);
	/* Regions have been closed in the middle of a TCP_WIRE_WRITE: aim anew at all of it, or the FI_E* that refuses
	 * it. */
	uint32_t (*reaim)(struct tcp_conn *conn);
	/* A TCP_WIRE_READ_RSP is about to leave: may it, or has it become a refusal? False: neither. */
	bool (*may_leave)(struct tcp_conn *conn, struct tcp_tx *tx);
};
extern const struct tcp_above tcp_above;

/* ---- tx.c ---- */

/* a frame up to this many bytes is copied beside others, so that many make one iov entry */
#define TCP_TX_COPY_MAX	512

/* Copy len bytes from iov to one place. */
static inline void tcp_tx_copy(uint8_t *to, const struct iovec *iov, uint64_t len)
{
	for (; len; iov++) {
		size_t n = iov->iov_len < len ? iov->iov_len : len;

		memcpy(to, iov->iov_base, n);
		to += n;
		len -= n;
	}
}

/* A new operation takes its place behind those before it; nothing is sent yet. 0; -FI_EAGAIN, -FI_ENOMEM: it would have
 * to be announced, and cannot be. */
int tcp_tx_add(struct tcp_conn *conn, struct tcp_tx *tx);
/* A frame of the provider's own: header made, no payload; the caller adds to it and hands it to tcp_tx_queue().
 * extra_len bytes of extra follow the base header. NULL: no memory, and the connection has been ended for it. */
struct tcp_tx *tcp_tx_control(struct tcp_conn *conn, enum tcp_wire_op op, const void *extra, size_t extra_len);
/* Write header and extra over those of a control frame of which nothing has been sent. */
void tcp_tx_control_fill(struct tcp_tx *tx, enum tcp_wire_op op, const void *extra, size_t extra_len);
/* Append to the send queue and send what can be sent; while a read's frames are looked at, tcp_rx_tell() will. */
void tcp_tx_queue(struct tcp_conn *conn, struct tcp_tx *tx);
/* The stream has started, or goes on: decide for the operations that were queued meanwhile what depends on the peer,
 * and send. */
void tcp_tx_start(struct tcp_conn *conn);
/* The socket takes data again (EPOLLOUT), or the pass begins. */
void tcp_tx_flush(struct tcp_conn *conn);
void tcp_tx_unblock(struct tcp_conn *conn);
/* The socket takes data again, and the front of the queue is a control frame: send that alone. */
void tcp_tx_unblock_one(struct tcp_conn *conn);
/* The peer acknowledges the oldest cnt frames; err not 0: and refuses the one after them. False: there were not that
 * many. */
bool tcp_tx_acked(struct tcp_conn *conn, uint32_t cnt, uint32_t err);
/* Have all operations and frames completed, but for those in tx.held? */
bool tcp_tx_all_done(const struct tcp_conn *conn);
/* Complete an operation that is on no list, and give its entry back. err is a positive FI_E* or 0. */
void tcp_tx_done(struct tcp_tx *tx, int err, int prov_errno, const char *text);
/* Give the entry of one that is on no list back, without a completion. */
void tcp_tx_free(struct tcp_tx *tx);
/* Complete everything outstanding in error. */
void tcp_tx_fail_all(struct tcp_conn *conn, int err, int prov_errno, const char *text);
/* Tell the peer what was received since. err refuses the frame that is not counted in owed.ack_cnt. (Credits go by
 * themselves, with the next flush once conn->owed.credit_due.) */
void tcp_tx_ack(struct tcp_conn *conn, uint32_t err);

/* A transmit context, embedded in an endpoint or a shared context: init with the limits of attr, fini once every
 * operation has completed. */
void tcp_tx_ctx_init(struct tcp_tx_ctx *ctx, const struct fi_tx_attr *attr);
void tcp_tx_ctx_fini(struct tcp_tx_ctx *ctx);

/* ---- rx.c: frames ---- */

/* One read from the socket and all frames in it. True if anything came, the end of the stream too, which may end the
 * connection. False: nothing did, there is no stream, or it is not to be read now. */
bool tcp_rx_poll(struct fab_source *src);
/* Tell the peer what its frames have come to: acknowledgements, credits, what else is queued because of them. Once a
 * read, so within one it does nothing. */
void tcp_rx_tell(struct tcp_conn *conn);
/* Stop reading from a peer that has too much unread, or go on; only those without credits are ever stopped. Its end
 * is seen all the same. */
void tcp_rx_pause(struct tcp_conn *conn, bool pause);
/* The peer gives credit back. */
void tcp_rx_credit(struct tcp_conn *conn);
/* Of conn->tx.flush: an acknowledgement that waits for the next read leaves, unless a pass has just begun, which may
 * bring that read. */
void tcp_rx_tell_flush(struct tcp_conn *conn);
/* Acknowledgement, ours or upstream's, which has no body and stands for one frame. */
void tcp_rx_ack(struct tcp_conn *conn);
/* Payload of the current frame goes to rx.iov (aimed already, at `left` bytes), then `skip` bytes nowhere; then
 * done. */
void tcp_rx_expect(struct tcp_conn *conn, uint64_t left, uint64_t skip, void (*done)(struct tcp_conn *conn));
/* Aim the parser's iov at the first len bytes of iov. */
void tcp_rx_aim(struct tcp_rx_state *rx, const struct iovec *iov, uint32_t cnt, uint64_t len);
/* Copy staged payload to where it belongs; returns how much was used. */
size_t tcp_rx_copy(struct tcp_rx_state *rx, const uint8_t *buf, size_t len);
/* Bytes of header behind the base header, after the CQ data if there is any. */
const void *tcp_rx_extra(const struct tcp_conn *conn);
/* CQ data of the current frame; 0 if there is none. */
uint64_t tcp_rx_cq_data(const struct tcp_conn *conn);
/* Its peer group; 0: none; above TCP_GROUP_MAX: one that there cannot be. */
uint32_t tcp_rx_group(const struct tcp_conn *conn);
/* The current frame has been delivered: acknowledge it, after this read, if it asked for that. */
void tcp_rx_delivered(struct tcp_conn *conn);
/* An error that a peer sent, not 0, as an application may see it: FI_EIO if it cannot be one. */
static inline int tcp_rx_errno(uint32_t err)
{
	return err < 4096 ? (int) err : FI_EIO;
}
/* The peer broke the protocol: log what, end the connection. */
void tcp_rx_broken(struct tcp_conn *conn, const char *what);

#endif
