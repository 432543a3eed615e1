/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory: reads and writes (rma.c), those that need nothing of the peer (straight.c), atomics (atomic.c) and
 * late refusals (quiet.c), at both ends. The functions here are for the tables of the stream (struct tcp_frame, struct
 * tcp_above) and for the data calls. Engine lock held.
 */
#ifndef TCP_REMOTE_H
#define TCP_REMOTE_H

#include "tcp/stream/stream.h"

/* ---- rma.c ---- */

/* start */
void tcp_rma_write(struct tcp_conn *conn);
void tcp_rma_read_req(struct tcp_conn *conn);
void tcp_rma_read_rsp(struct tcp_conn *conn);
void tcp_rma_read_err(struct tcp_conn *conn);
/* whole: each has one remote buffer in one piece of memory. A read is answered within the stream, or there is no such
 * way. */
bool tcp_rma_write_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len);
bool tcp_rma_read_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len);
bool tcp_rma_rsp_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len);
/* enter, for writes and read requests. Returns 0. */
int tcp_rma_write_enter(struct tcp_conn *conn, struct tcp_tx *tx);
int tcp_rma_read_enter(struct tcp_conn *conn, struct tcp_tx *tx);
/* sent: a request waits for its answer; an answer completes and is counted. */
void tcp_rma_asked(struct tcp_conn *conn, struct tcp_tx *tx);
void tcp_rma_served(struct tcp_conn *conn, struct tcp_tx *tx);
/* refused: a write; a direct response. */
void tcp_rma_refused(struct tcp_tx *tx, int err);
void tcp_rma_rsp_refused(struct tcp_tx *tx, int err);
/* spoilt: a write; a response. */
void tcp_rma_write_spoilt(struct tcp_conn *conn, int err);
void tcp_rma_rsp_spoilt(struct tcp_conn *conn, int err);

/* reaim: verify the write of the current header, which is well-formed, and aim at all its targets. Also called in its
 * middle, after regions were closed. 0, or the FI_E* with which it is refused. */
uint32_t tcp_rma_write_aim(struct tcp_conn *conn);
/* may_leave: true if the regions of a waiting response are still open. Otherwise a refusal is sent in its place; false:
 * part of it was sent already, or the peer does not support refusals. */
bool tcp_rma_rsp_may_leave(struct tcp_conn *conn, struct tcp_tx *tx);

/* ---- straight.c ---- */

/* bytes of the longest access that is straight, so that its caller holds the engine's lock for a bounded time */
#define TCP_STRAIGHT_MAX	(4u << 20)

/* Carry out a read or write of len bytes, TCP_STRAIGHT_MAX at most, in the memory of the peer. True: its bytes are
 * where they belong, and the caller completes it. False: send a frame. */
bool tcp_straight(struct tcp_conn *conn, const struct fab_op *op, uint64_t len);

/* ---- quiet.c ---- */

/* started: a stream begins, or is resumed: no quiet frame was sent or has arrived. */
void tcp_quiet_started(struct tcp_conn *conn);
/* sent, for writes and base atomics: complete the operation, whose frame is quiet. */
void tcp_quiet_sent(struct tcp_conn *conn, struct tcp_tx *tx);
/* start: the peer refuses a quiet frame. */
void tcp_quiet_refused(struct tcp_conn *conn);

/* ---- atomic.c ---- */

/* Initiator: copy the operands of a fetching atomic from op to tx. 0; -FI_ENOMEM; -FI_EIO: memory of a
 * device cannot be copied. */
int tcp_amo_operands(struct tcp_tx *tx, const struct fab_op *op);
/* start */
void tcp_amo_req(struct tcp_conn *conn);
void tcp_amo_rsp(struct tcp_conn *conn);
/* whole: each has one remote buffer and short operands, or one buffer for its result. */
bool tcp_amo_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len);
bool tcp_amo_rsp_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len);
/* enter. 0, -FI_EOPNOTSUPP. */
int tcp_amo_prepare(struct tcp_conn *conn, struct tcp_tx *tx);
/* must_wait: true if its result would exceed the bytes that may be requested at a time. */
bool tcp_amo_must_wait(const struct tcp_conn *conn, const struct tcp_tx *tx);
/* sent: a fetching atomic waits for its result; others, which are quiet, complete. */
void tcp_amo_sent(struct tcp_conn *conn, struct tcp_tx *tx);
/* release */
void tcp_amo_free(struct tcp_tx *tx);
/* Free operands that were arriving, when the connection ends. */
void tcp_amo_fail_all(struct tcp_conn *conn);

#endif
