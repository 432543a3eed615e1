/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What rma.c has for atomics, which are checked, counted and refused as reads and writes are. Engine lock held.
 */
#ifndef TCP_RMA_H
#define TCP_RMA_H

#include "tcp/remote/remote.h"

/* Verify cnt regions for access: which they are into mr,
 * their pieces into iov (TCP_IOV_LIMIT slots). 0 or -FI_E*, logged. */
int tcp_rma_verify(struct tcp_conn *conn, const struct tcp_rma_iov *rma, uint32_t cnt, uint64_t access,
		   struct fab_mr **mr, struct iovec *iov, uint32_t *iov_cnt);
/* The targets that the current header names, and their bytes; false if one is longer than any message. */
bool tcp_rma_targets(struct tcp_conn *conn, struct tcp_rma_iov *rma, uint64_t *len);
/* The write of the current header is in place: it counts once for each region of rx.mr, with the bytes that went
 * there. */
void tcp_rma_count(struct tcp_conn *conn);
/* May the current frame, a write or atomic on rx.mr (tagged: on receives), have the TCP_FLAG_COMMIT that it has, if it
 * does? A peer that means no more than delivery by it always may. 0 or -FI_EOPNOTSUPP, logged: refuse it. */
int tcp_rma_may_commit(struct tcp_conn *conn, bool tagged);
/* What the current frame has written is in memory: with TCP_FLAG_COMMIT, let it be durable before anybody is told.
 * Waits for the device. 0 or -FI_E*, logged: refuse it. */
int tcp_rma_commit(struct tcp_conn *conn);
/* It is refused, with an FI_E*; where the peer does not take that, the connection ends. */
void tcp_rma_refuse(struct tcp_conn *conn, uint32_t err);
/* The payload of the current frame goes to the buffers of tx, the front of read_wait, which then completes. */
void tcp_rma_take(struct tcp_conn *conn, struct tcp_tx *tx);

#endif
