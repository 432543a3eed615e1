/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses that applications give and are given, and those of sockets: no state, any thread.
 */
#ifndef FAB_IP_NAME_H
#define FAB_IP_NAME_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include "base/addr.h"

/* Where fd is bound, and who is at its other end; family 0 if the kernel does not say. */
void fab_name_local(int fd, union fab_sockaddr *addr);
void fab_name_remote(int fd, union fab_sockaddr *addr);

/* Check an address that the application gave (info->src_addr, fi_setname, fi_connect) against info->addr_format and
 * take it over; NULL is the wildcard. 0, or -FI_EINVAL, logged with what was asked. */
int fab_name_take(const struct fi_provider *prov, union fab_sockaddr *to, const struct fi_info *info, const void *addr,
		  size_t addrlen);
/* The same, where FI_SOCKADDR_IB may be the format; then NULL is any GID, in partition 0xffff. */
int fab_any_name_take(const struct fi_provider *prov, union fab_any_addr *to, const struct fi_info *info,
		      const void *addr, size_t addrlen);
/* Copy addr, which fab_any_addr_len() knows, to the buffer as fi_getname(3) says: 0, or -FI_ETOOSMALL with as much as
 * fits; *addrlen is then what is needed. */
int fab_name_give(const void *addr, void *buf, size_t *addrlen);

/* Let *to, an address of a struct fi_info or NULL, be a copy of addr, likewise. 0 or -FI_ENOMEM. */
int fab_name_set(void **to, size_t *len, const void *addr);

#endif
