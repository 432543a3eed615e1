/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The choice between rings and the socket, when a stream begins.
 */
#ifndef TCP_IO_RING_H
#define TCP_IO_RING_H

#include "tcp/stream/conn.h"

/* Choose conn->io. The socket is there, and the state is UP. 0; -errno: the stream is broken. */
int tcp_io_ring_start(struct tcp_conn *conn);

#endif
