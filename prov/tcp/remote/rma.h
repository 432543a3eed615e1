/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Private to this room: functions of rma.c for atomics, which are verified, counted and refused like reads and writes.
 * Engine lock held.
 */
#ifndef TCP_RMA_H
#define TCP_RMA_H

#include "tcp/remote/remote.h"

/* Verify access to cnt regions: store the regions in mr, and their pieces in iov (TCP_IOV_LIMIT entries). 0 or -FI_E*,
 * logged. */
int tcp_rma_verify(struct tcp_conn *conn, const struct tcp_rma_iov *rma, uint32_t cnt, uint64_t access,
		   struct fab_mr **mr, struct iovec *iov, uint32_t *iov_cnt);
/* The number of the memory of cnt regions: a device's, or 0. 0 or -FI_EOPNOTSUPP, logged. */
int tcp_rma_find_hmem(struct fab_mr *const *mr, uint32_t cnt, uint8_t *hmem);
/* The same, of a domain that may have none. */
static inline int tcp_rma_hmem(const struct tcp_conn *conn, struct fab_mr *const *mr, uint32_t cnt, uint8_t *hmem)
{
	*hmem = 0;
	return __builtin_expect(conn->ep->base.domain->attr.caps & FI_HMEM, 0) ? tcp_rma_find_hmem(mr, cnt, hmem) : 0;
}
/* Read the targets from the current header, and their total length; false if one is longer than any message. */
bool tcp_rma_targets(struct tcp_conn *conn, struct tcp_rma_iov *rma, uint64_t *len);
/* Count the write of the current header, which is complete: once for each region of rx.mr, with its bytes. */
void tcp_rma_count(struct tcp_conn *conn);
/* Check the TCP_FLAG_COMMIT, if any, of the current frame, a write or atomic on rx.mr (tagged: on receives). A peer for
 * which the flag means delivery only is always allowed. 0; -FI_EOPNOTSUPP, logged: the caller refuses the frame. */
int tcp_rma_may_commit(struct tcp_conn *conn, bool tagged);
/* With TCP_FLAG_COMMIT: make the data of the current frame durable before it is acknowledged or reported. Blocks on the
 * device. 0; -FI_E*, logged: the caller refuses the frame. */
int tcp_rma_commit(struct tcp_conn *conn);
/* Refuse the current frame, a write or base atomic, with an FI_E*. If the peer does not support refusals, the
 * connection ends. */
void tcp_rma_refuse(struct tcp_conn *conn, uint32_t err);
/* The meaning of an error with which a target refuses an access, as a text that is never freed. */
const char *tcp_rma_why(int err);
/* Read the payload of the current frame into the buffers of tx, the first of read_wait, and then complete it. */
void tcp_rma_take(struct tcp_conn *conn, struct tcp_tx *tx);
/* The same for a payload of len bytes that is at hand. False: the first of read_wait is no such request, or has another
 * length, or more than one buffer: nothing was done. */
bool tcp_rma_take_whole(struct tcp_conn *conn, enum tcp_wire_op request, const uint8_t *payload, size_t len);

/* ---- quiet.c ---- */

/* Target: the current frame, a write or base atomic, was carried out or is refused: count it if it is quiet. */
void tcp_quiet_taken(struct tcp_conn *conn);
/* Target: refuse the current frame, which is quiet and counted, with an FI_E*. The peer has TCP_EXT_NAK. */
void tcp_quiet_refuse(struct tcp_conn *conn, uint32_t err);

#endif
