/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct frames (wire.h, TCP_EXT_DIRECT), private to this room. Each end asks the other once a stream, with its first
 * long frame, whether it can read this end's memory. So a connection with short messages pays nothing.
 *
 *   sender                                  receiver
 *   DIRECT, long frame as usual    -->      reads the cookie of DIRECT in the sender's memory
 *   UNASKED -> ASKED               <--      DIRECT_ANSWER
 *   -> ON: header and pieces       -->      phase PULL: reads the payload, a step at a time; then as usual
 *   completes                      <--      ACK
 *
 * Engine lock held.
 */
#ifndef TCP_STREAM_DIRECT_H
#define TCP_STREAM_DIRECT_H

#include "tcp/stream/stream.h"

/* Handle the pieces that follow the header of a direct frame, which is complete, and start the frame when they are
 * there. Returns the number of bytes used. */
size_t tcp_direct_start(struct tcp_conn *conn, const uint8_t *buf, size_t len);
/* Phase TCP_RX_PULL: keep len bytes behind the frame until its payload is complete. */
void tcp_direct_keep(struct tcp_conn *conn, const uint8_t *buf, size_t len);
/* The stream is paused with TCP_RX_PULLING: read on. */
void tcp_direct_go_on(struct tcp_conn *conn);
/* The stream begins: whether the other end is asked is decided when there is something to send. */
void tcp_direct_begin(struct tcp_conn *conn);
/* The stream ends: what the peer reads of our memory from now on is of no use to it. Idempotent. */
void tcp_direct_end(struct tcp_conn *conn);
/* True if the peer may still read memory of ours for frames that were sent. */
bool tcp_direct_lends(const struct tcp_conn *conn);

#endif
