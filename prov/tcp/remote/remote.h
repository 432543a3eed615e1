/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Remote memory: reads, writes (rma.c) and atomics (atomic.c), at both ends. What is here is for the tables of the
 * stream (struct tcp_frame, struct tcp_above), and for the calls. Engine lock held.
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
/* enter, of a write and of a request to read. 0. */
int tcp_rma_write_enter(struct tcp_conn *conn, struct tcp_tx *tx);
int tcp_rma_read_enter(struct tcp_conn *conn, struct tcp_tx *tx);
/* sent: a request waits for its answer; an answer completes, and is counted. */
void tcp_rma_asked(struct tcp_conn *conn, struct tcp_tx *tx);
void tcp_rma_served(struct tcp_conn *conn, struct tcp_tx *tx);
/* refused */
void tcp_rma_refused(struct tcp_tx *tx, int err);

/* reaim. Verify the write of the current header, which has the right shape, and aim at all of its targets; also in its
 * middle, after regions were closed. 0, or the FI_E* for which it is refused. */
uint32_t tcp_rma_write_aim(struct tcp_conn *conn);
/* may_leave. A response that has waited leaves if its regions are still open; else a refusal leaves in its place.
 * False: some of it has left already, or the peer knows no refusals. */
bool tcp_rma_rsp_may_leave(struct tcp_conn *conn, struct tcp_tx *tx);

/* ---- atomic.c ---- */

/* Initiator: the operands of a fetching atomic, which op names, go to where tx keeps them. 0 or -FI_ENOMEM. */
int tcp_amo_operands(struct tcp_tx *tx, const struct fab_op *op);
/* start */
void tcp_amo_req(struct tcp_conn *conn);
void tcp_amo_rsp(struct tcp_conn *conn);
/* enter. 0, -FI_EOPNOTSUPP. */
int tcp_amo_prepare(struct tcp_conn *conn, struct tcp_tx *tx);
/* must_wait: would its result be more than may be requested at a time? */
bool tcp_amo_must_wait(const struct tcp_conn *conn, const struct tcp_tx *tx);
/* release */
void tcp_amo_free(struct tcp_tx *tx);
/* The connection ends: operands that were on their way go. */
void tcp_amo_fail_all(struct tcp_conn *conn);

#endif
