/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sockets before they carry a stream, and the addresses that applications give them: no state, any thread.
 */
#ifndef TCP_SOCK_H
#define TCP_SOCK_H

#include <rdma/fabric.h>
#include "base/addr.h"

/*
 * Open a socket and bind it to addr; port 0 takes one of FI_TCP_PORT_LOW_RANGE..HIGH_RANGE if these are set, any free
 * one otherwise. *bound is the address that it got. The descriptor, which the caller owns, or -errno (logged).
 */
int tcp_sock_bind(const union fab_sockaddr *addr, union fab_sockaddr *bound);

/* Open a socket for connecting from addr (NULL, or of another family: from anywhere); its port is chosen by the
 * kernel at connect. The descriptor or -errno (logged). */
int tcp_sock_open_from(int family, const union fab_sockaddr *addr);

/* TCP_NODELAY, keepalive: what every stream wants. A refusal of the kernel is logged and otherwise harmless. */
void tcp_sock_tune(int fd);

/* Where fd is bound, and who is at its other end; family 0 if the kernel does not say. */
void tcp_sock_local(int fd, union fab_sockaddr *addr);
void tcp_sock_remote(int fd, union fab_sockaddr *addr);

/* Check an address that the application gave (info->src_addr, fi_setname, fi_connect) against info->addr_format and
 * take it over; NULL is the wildcard. 0, or -FI_EINVAL, logged with what was asked. */
int tcp_take_addr(union fab_sockaddr *to, const struct fi_info *info, const void *addr, size_t addrlen);
/* Copy addr to the buffer as fi_getname(3) says: 0, or -FI_ETOOSMALL with as much as fits; *addrlen is then what is
 * needed. */
int tcp_give_addr(const union fab_sockaddr *addr, void *buf, size_t *addrlen);

/* Let *to, an address of a struct fi_info or NULL, be a copy of addr. 0 or -FI_ENOMEM. */
int tcp_set_addr(void **to, size_t *len, const union fab_sockaddr *addr);

#endif
