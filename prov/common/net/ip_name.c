/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See ip_name.h. No state.
 */
#include "common/net/ip_name.h"

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
		FI_WARN(prov, FI_LOG_EP_CTRL, "address of %zu bytes; the endpoint's addr_format requires an %s address "
			"of %u bytes\n", addrlen, family == AF_INET6 ? "IPv6" : "IPv4",
			(unsigned) fab_addr_family_len(family));
		return -FI_EINVAL;
	}
	memcpy(to, addr, fab_addr_family_len(family));
	return 0;
}

static int take_ib(const struct fi_provider *prov, struct fab_sockaddr_ib *to, const void *addr, size_t addrlen)
{
	const struct sockaddr *sa = addr;

	if (!addr) {
		fab_addr_ib_set(to, &in6addr_any, UINT16_MAX, 0);
		return 0;
	}
	if (addrlen < sizeof(*to) || sa->sa_family != FAB_AF_IB) {
		FI_WARN(prov, FI_LOG_EP_CTRL, "address of %zu bytes; the endpoint's addr_format requires a struct "
			"sockaddr_ib of %zu bytes\n", addrlen, sizeof(*to));
		return -FI_EINVAL;
	}
	memcpy(to, addr, sizeof(*to));
	return 0;
}

int fab_any_name_take(const struct fi_provider *prov, union fab_any_addr *to, const struct fi_info *info,
		      const void *addr, size_t addrlen)
{
	memset(to, 0, sizeof(*to));
	return info->addr_format == FI_SOCKADDR_IB ? take_ib(prov, &to->sib, addr, addrlen) :
						     fab_name_take(prov, &to->ip, info, addr, addrlen);
}

int fab_name_give(const void *addr, void *buf, size_t *addrlen)
{
	size_t len = fab_any_addr_len(addr), room;

	if (!addrlen)
		return -FI_EINVAL;
	room = buf ? *addrlen : 0;
	*addrlen = len;
	if (buf)
		memcpy(buf, addr, fab_min(room, len));
	return room < len ? -FI_ETOOSMALL : 0;
}

int fab_name_set(void **to, size_t *len, const void *addr)
{
	void *copy = malloc(fab_any_addr_len(addr));

	if (!copy)
		return -FI_ENOMEM;
	free(*to);
	*len = fab_any_addr_len(addr);
	*to = memcpy(copy, addr, *len);
	return 0;
}
