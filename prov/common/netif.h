/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The machine's network interfaces, best first, and what node, service and flags of fi_getinfo(3) mean on them. For IP providers.
 *
 * Rank: running and up, physical before virtual, of default routes first, faster first; docker, bridge, veth, tun and link-local addresses last
 * of those, loopback last of all. doc/design.md, 7.7.
 */
#ifndef FAB_NETIF_H
#define FAB_NETIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/addr.h"

struct fab_netif {
	char name[16];
	union fab_sockaddr addr;	/* port 0 */
	union fab_sockaddr net;		/* addr & netmask */
	uint8_t prefix_len;
	bool loopback, running;
	uint32_t mtu;			/* bytes */
	uint64_t speed;			/* bit/s, 0 unknown */
	char network[64];		/* "192.168.1.0/24", "fe80::/64": the fabric name */
};

/* One entry per interface and address, ranked. filter: value of FI_TCP_IFACE - comma list of names, globs, CIDR, each with '^' or '!' for
 * not - or NULL. *list is allocated (free()). 0, -FI_ENODATA (none left: log says what there was), -FI_ENOMEM. */
int fab_netif_list(const char *filter, struct fab_netif **list, size_t *cnt);

/*
 * One address from a node and a service, as fi_getinfo(3) and fi_av_insertsvc(3) name them. node: a host name, a numeric address (the only
 * thing with FI_NUMERICHOST), or an FI_ADDR_STR text ("fi_sockaddr_in://1.2.3.4:5", then service is NULL); NULL is the wildcard address with
 * FI_SOURCE, else the loopback address. service: a port number or a name of /etc/services; NULL is port 0. family: AF_INET, AF_INET6,
 * or AF_UNSPEC for whatever comes first. May ask name servers, and wait for them. 0 with *addr, -FI_ENODATA (no such name, or none
 * in this family), -FI_EINVAL (a service that is none, a text that cannot be read), -FI_ENOMEM; then *why is a sentence for
 * people, constant text.
 */
int fab_resolve_name(const char *node, const char *service, uint64_t flags, int family, union fab_sockaddr *addr,
		     const char **why);

/* The source and destination that a getinfo call means, from node/service/flags and hints' addresses. */
struct fab_addr_hint {
	bool has_src, has_dest;
	union fab_sockaddr src, dest;
};
struct fi_provider;
struct fi_info;
/* Resolve all of it, in one family (AF_INET, AF_INET6) or whatever comes first (AF_UNSPEC): a provider with offers in both asks once
 * for each. An address of the hints that is of the other family is -FI_ENODATA. 0, -FI_ENODATA (no such name), -FI_EINVAL (a service that is
 * none, wrong address length ...): each recorded with fab_why_report under `prov`. */
int fab_resolve(const struct fi_provider *prov, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, int family, struct fab_addr_hint *out);

#endif
