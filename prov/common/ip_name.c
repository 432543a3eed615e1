/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See ip_name.h. No state.
 */
#include "common/ip_name.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/sock.h"

void fab_name_local(int fd, union fab_sockaddr *addr)
{
	socklen_t len = sizeof(*addr);

	memset(addr, 0, sizeof(*addr));
	if (fab_sock->getsockname(fd, &addr->sa, &len))
		addr->sa.sa_family = AF_UNSPEC;
}

void fab_name_remote(int fd, union fab_sockaddr *addr)
{
	socklen_t len = sizeof(*addr);

	memset(addr, 0, sizeof(*addr));
	if (fab_sock->getpeername(fd, &addr->sa, &len))
		addr->sa.sa_family = AF_UNSPEC;
}

/* ---- addresses of applications ---- */

int fab_name_take(const struct fi_provider *prov, union fab_sockaddr *to, const struct fi_info *info, const void *addr,
		  size_t addrlen)
{
	int family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
	const struct sockaddr *sa = addr;

	memset(to, 0, sizeof(*to));
	to->sa.sa_family = family;
	if (!addr)
		return 0;
	if (addrlen < fab_addr_family_len(family) || sa->sa_family != family) {
		FI_WARN(prov, FI_LOG_EP_CTRL, "address of %zu bytes; the endpoint's addr_format wants an %s address "
			"of %u bytes\n", addrlen, family == AF_INET6 ? "IPv6" : "IPv4",
			(unsigned) fab_addr_family_len(family));
		return -FI_EINVAL;
	}
	memcpy(to, addr, fab_addr_family_len(family));
	return 0;
}

int fab_name_give(const union fab_sockaddr *addr, void *buf, size_t *addrlen)
{
	size_t len = fab_addr_len(&addr->sa), room;

	if (!addrlen)
		return -FI_EINVAL;
	room = buf ? *addrlen : 0;
	*addrlen = len;
	if (buf)
		memcpy(buf, addr, fab_min(room, len));
	return room < len ? -FI_ETOOSMALL : 0;
}

int fab_name_set(void **to, size_t *len, const union fab_sockaddr *addr)
{
	void *copy = malloc(fab_addr_len(&addr->sa));

	if (!copy)
		return -FI_ENOMEM;
	free(*to);
	*len = fab_addr_len(&addr->sa);
	*to = memcpy(copy, addr, *len);
	return 0;
}
