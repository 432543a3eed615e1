/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The choice between rings and the socket, when a stream begins, and how rings are looked at.
 */
#ifndef TCP_IO_RING_H
#define TCP_IO_RING_H

#include "tcp/stream/conn.h"

/* Choose the carrier of a stream that begins: conn->io, conn->local and conn->src.poll are set. The accepting end
 * answers the peer's offer of rings. 0; -errno: the stream is broken, and conn->io is the socket. */
int tcp_io_ring_choose(struct tcp_conn *conn, const struct tcp_link *link);
/* conn->src.outsider has changed, or may have: rings of strangers, and of peers that read no answers, are read in their
 * turn. */
void tcp_io_ring_classify(struct tcp_conn *conn);

#endif
