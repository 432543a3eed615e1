/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(3) of providers with IP addresses: an offer for each endpoint type, network interface and address, which
 * then go through the matcher. Any thread; nothing is kept between calls.
 *
 * Addresses: a source that is named picks the interface that has it. A destination picks the interface that routes to
 * it. A wildcard source with a port, as a server asks for with FI_SOURCE and a service alone, stays a wildcard, since
 * its clients may use any address of this machine.
 */
#ifndef FAB_IP_INFO_H
#define FAB_IP_INFO_H

#include "common/hints/hints.h"
#include "common/net/net.h"

/* A provider's side of it. */
struct fab_ip {
	const struct fi_provider *prov;
	const char *iface;		/* which interfaces, see fab_netif_list(); NULL: all */
	const enum fi_ep_type *types;	/* in the order of the answer; each in that of the interfaces */
	size_t type_cnt;
	/* NULL, or: is there a place of this provider's on the interface? Then names of domain and fabric other than
	 * those of interface and network (FI_NAME_MAX bytes each). */
	bool (*place)(const struct fab_ip *ip, const struct fab_netif *netif, char *domain, char *fabric);
	/* Fill in all attributes of an entry, each at its most, but for info->caps, names, addresses and versions; a
	 * loopback interface loses FI_REMOTE_COMM afterwards. The info has all its parts. */
	void (*fill)(const struct fab_ip *ip, struct fi_info *info, const struct fab_netif *netif,
		     enum fi_ep_type type);
	/* What hardware an entry is of: fab_nic_open(), or what an interface's knows less of. 0, -FI_ENOMEM. */
	int (*nic)(const struct fab_netif *netif, struct fid_nic **nic);
	struct fab_offer offer;		/* all but info, of every entry; secondary_caps it lacks do not matter */
};

/* The provider's getinfo. 0, -FI_ENODATA (reasons recorded), -FI_EINVAL, -FI_ENOMEM. */
int fab_ip_getinfo(const struct fab_ip *ip, uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info);

/* Does an info, whose ep_attr->type is one of ip's, ask for nothing that is not offered? For opening an endpoint
 * with it. 0; -FI_EINVAL, logged; -FI_ENOMEM. */
int fab_ip_check(const struct fab_ip *ip, const struct fi_info *info, uint32_t version);

/* Put an interface's address (that of info's domain, or else the best) in place of a wildcard, for fi_getname(3). */
void fab_ip_fill_addr(const struct fi_provider *prov, const char *iface, union fab_sockaddr *addr,
		      const struct fi_info *info);

/* Is addr, as a peer may have it, the one that is bound as own: that, or with the wildcard one of this machine's? */
bool fab_ip_is_own(const struct fi_provider *prov, const union fab_sockaddr *own, const union fab_sockaddr *addr);

#endif
