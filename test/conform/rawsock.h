/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Plain sockets at the addresses of endpoints: peers that do not speak the protocol, or say nothing. All belong to
 * the test. */
#ifndef CONFORM_RAWSOCK_H
#define CONFORM_RAWSOCK_H

#include <sys/socket.h>

#include "fixture.h"

/* @fd is closed when the test ends. */
void own_fd(struct test *t, int fd);
/* Connected to the endpoint or listener of this name. */
int raw_connect(struct test *t, const void *name, size_t len);
/* A listening socket, not blocking, at the host of @like, any port; its own address is written to @name. */
int raw_listen(struct test *t, const void *like, size_t len, struct sockaddr_storage *name);
/* Skip the test unless the provider is tcp with socket addresses, whose wire it is about. */
void need_tcp_wire(void);
/* The test is about TCP sockets, which tcp uses between endpoints of one host only if FI_TCP_LOCAL is 0. */
void need_tcp_sockets(void);

#endif
