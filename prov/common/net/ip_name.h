/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses that applications pass in and get, and addresses of sockets. No state, any thread.
 */
#ifndef FAB_IP_NAME_H
#define FAB_IP_NAME_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include "base/addr.h"

/* The address that a socket is bound to; its family is 0 if getsockname() fails. */
void fab_name_local(int fd, union fab_sockaddr *addr);
/* The address of a socket's peer; its family is 0 if getpeername() fails. */
void fab_name_remote(int fd, union fab_sockaddr *addr);

/* Check an address that the application passed in (info->src_addr, fi_setname, fi_connect) against info->addr_format,
 * and copy it to *to; NULL is the wildcard address. 0, or -FI_EINVAL, logged with the address. */
int fab_name_take(const struct fi_provider *prov, union fab_sockaddr *to, const struct fi_info *info, const void *addr,
		  size_t addrlen);
/* The same where the format may be FI_SOCKADDR_IB; NULL is then any GID, in partition 0xffff. */
int fab_any_name_take(const struct fi_provider *prov, union fab_any_addr *to, const struct fi_info *info,
		      const void *addr, size_t addrlen);
/* Copy addr, whose length fab_any_addr_len() knows, to buf[*addrlen] as fi_getname(3) says, and set *addrlen to its
 * length. 0, or -FI_ETOOSMALL with as many bytes as fit. */
int fab_name_give(const void *addr, void *buf, size_t *addrlen);

/* Set *to, an address of a struct fi_info (or NULL), to a copy of addr, and *len to its length. 0 or -FI_ENOMEM. */
int fab_name_set(void **to, size_t *len, const void *addr);

#endif
