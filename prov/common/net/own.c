/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See own.h. Only an own address can be bound to, so the kernel is asked that way; a list of addresses would grow old.
 */
#include "common/net/own.h"

#include "base/sock.h"

bool fab_net_is_own(const union fab_sockaddr *addr)
{
	union fab_sockaddr host = *addr;
	bool own;
	int fd;

	if (fab_addr_is_loopback(&addr->sa))
		return true;
	if (fab_addr_is_any(&addr->sa))
		return false;
	fd = fab_sock_open(addr->sa.sa_family, SOCK_DGRAM);
	if (fd < 0)
		return false;
	fab_addr_set_port(&host.sa, 0);
	own = !fab_sock->bind(fd, &host.sa, fab_addr_len(&host.sa));
	fab_sock_close(&fd);
	return own;
}
