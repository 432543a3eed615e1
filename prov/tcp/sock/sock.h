/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets before they have a stream: no state, any thread.
 */
#ifndef TCP_SOCK_H
#define TCP_SOCK_H

#include <rdma/fabric.h>
#include "base/addr.h"
#include "tcp/sock/advert.h"

/*
 * Open a socket and bind it to addr. Port 0 takes a port from FI_TCP_PORT_LOW_RANGE..HIGH_RANGE if these are set, and
 * any free one otherwise. *bound is the actual address. Returns the descriptor, which the caller owns, or -errno
 * (logged).
 */
int tcp_sock_bind(const union fab_sockaddr *addr, union fab_sockaddr *bound);

/* Open a socket, and connect it to `to` from addr (of another family: from any address). Its port is from
 * FI_TCP_OUT_PORT_LOW_RANGE..HIGH_RANGE if these are set; of those one that has no connection to this destination.
 * Returns the descriptor, which the caller owns, with *err 0 or the errno of connect(2), where EINPROGRESS is none; or
 * -errno (logged), with nothing in *err. */
int tcp_sock_connect(const union fab_sockaddr *addr, const union fab_sockaddr *to, int *err);

/* Open a socket and bind it to addr with a free port, which is then nobody else's. The port is from the range for
 * connecting, if there is one; when that is used up, another connection may have it, too. *bound is the actual address.
 * Returns the descriptor, which the caller owns, or -errno. */
int tcp_sock_reserve(const union fab_sockaddr *addr, union fab_sockaddr *bound);

/* Log that something failed with err for lack of descriptors or memory, with advice; at most once in ten seconds for
 * all callers. Any thread. */
void tcp_sock_shortage(const char *what, int err);

/* Check whether there is data to read, without reading. 1: there is; 0: the stream has ended; -errno; -EAGAIN: not
 * now. */
ssize_t tcp_sock_peek(int fd);

/* Set the options of all streams: TCP_NODELAY, keepalive. If the kernel refuses, that is logged and otherwise
 * harmless. */
void tcp_sock_tune(int fd);

#endif
