/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets before they carry a stream: no state, any thread.
 */
#ifndef TCP_SOCK_H
#define TCP_SOCK_H

#include <rdma/fabric.h>
#include "base/addr.h"
#include "tcp/sock/advert.h"

/*
 * Open a socket and bind it to addr; port 0 takes one of FI_TCP_PORT_LOW_RANGE..HIGH_RANGE if these are set, any free
 * one otherwise. *bound is the address that it got. The descriptor, which the caller owns, or -errno (logged).
 */
int tcp_sock_bind(const union fab_sockaddr *addr, union fab_sockaddr *bound);

/* Open a socket for connecting from addr (NULL, or of another family: from anywhere); its port is one of
 * FI_TCP_OUT_PORT_LOW_RANGE..HIGH_RANGE if these are set, and otherwise chosen by the kernel at connect. The descriptor
 * or -errno (logged). */
int tcp_sock_open_from(int family, const union fab_sockaddr *addr);

/* Log that something failed with err for want of descriptors or memory, and what to do about it; once in ten seconds at
 * most, whoever says it. Any thread. */
void tcp_sock_shortage(const char *what, int err);

/* Is there anything to read? 1; 0: the stream has ended; -errno, -EAGAIN: not now. Takes nothing. */
ssize_t tcp_sock_peek(int fd);

/* TCP_NODELAY, keepalive: what every stream wants. A refusal of the kernel is logged and otherwise harmless. */
void tcp_sock_tune(int fd);

#endif
