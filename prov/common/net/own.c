/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See own.h. The kernel is asked for the address from which it would send: to an own address it sends from that address
 * itself. A list of addresses would grow old, and with net.ipv4.ip_nonlocal_bind any address can be bound to.
 */
#include "common/net/own.h"

#include <netinet/in.h>
#include "base/sock.h"

#define ANY_PORT	9		/* nothing is sent there */

/* The address from which a datagram to addr would be sent; its family is 0 if no route leads there. */
static union fab_sockaddr own_source(const union fab_sockaddr *addr)
{
	union fab_sockaddr to = *addr, source = { 0 };
	socklen_t len = sizeof(source);
	int fd = fab_sock_open(addr->sa.sa_family, SOCK_DGRAM);

	if (fd < 0)
		return source;
	fab_addr_set_port(&to.sa, ANY_PORT);
	if (fab_sock->connect(fd, &to.sa, fab_addr_len(&to.sa)) || fab_sock->getsockname(fd, &source.sa, &len))
		source.sa.sa_family = 0;
	fab_sock_close(&fd);
	return source;
}

bool fab_net_is_own(const union fab_sockaddr *addr)
{
	union fab_sockaddr source;

	if (fab_addr_is_loopback(&addr->sa))
		return true;
	if (fab_addr_is_any(&addr->sa) ||
	    (addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&addr->sin6.sin6_addr)))
		return false;
	source = own_source(addr);
	return fab_addr_equal_host(&source.sa, &addr->sa);
}
