/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The carriers of a stream while FI_CAPTURE is on. They do the same as tcp_io_sock and tcp_io_ring, and put the bytes
 * into the file. Chosen when a stream begins, so the others do not ask. Engine lock held.
 */
#ifndef TCP_IO_CAPTURE_H
#define TCP_IO_CAPTURE_H

#include "tcp/stream/conn.h"

/* Handles a record of a ring, as tcp_rx_record(). */
typedef bool tcp_record_fn(struct tcp_conn *conn, const uint8_t *buf, size_t len);

extern const struct tcp_io tcp_io_capture_ring;

/* A stream over a socket begins: capture it. */
void tcp_io_capture_use(struct tcp_conn *conn);
tcp_record_fn tcp_io_capture_record;

#endif
