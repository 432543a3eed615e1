/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(3) for providers with IP addresses. It makes an offer for each endpoint type, network interface and
 * address, and hands the offers to fab_hints_match(). Any thread; no state between calls.
 *
 * Addresses. A source address selects the interface that has it. A destination selects the interface that the route to
 * it leads through. A wildcard source with a port, which servers ask for with FI_SOURCE and a service alone, stays a
 * wildcard, since clients may connect to any address of this host.
 */
#ifndef FAB_IP_INFO_H
#define FAB_IP_INFO_H

#include "common/hints/hints.h"
#include "common/net/net.h"

/* The provider's part of fi_getinfo(). */
struct fab_ip {
	const struct fi_provider *prov;
	const char *iface;		/* filter of interfaces, see fab_netif_list(); NULL: all */
	const enum fi_ep_type *types;	/* endpoint types; the entries are in this order, those of one type in the order
					 * of the interfaces */
	size_t type_cnt;
	const struct fi_info *most;	/* borrowed: every entry gets a copy of its tx_attr, rx_attr, ep_attr and
					 * domain_attr; NULL: fill sets them */
	/* NULL, or: true if the provider has a device for the interface. It may then change the names of domain and
	 * fabric, which are those of interface and network otherwise (FI_NAME_MAX bytes each). */
	bool (*place)(const struct fab_ip *ip, const struct fab_netif *netif, char *domain, char *fabric);
	/* Fill in the attributes of an entry, each with the most that the provider can do, except info->caps, names,
	 * addresses and versions. On a loopback interface FI_REMOTE_COMM is removed afterwards. The info has all
	 * attribute structures. NULL: the attributes of `most` are final. */
	void (*fill)(const struct fab_ip *ip, struct fi_info *info, const struct fab_netif *netif,
		     enum fi_ep_type type);
	/* Make the fid_nic of an interface: fab_nic_open(), or one with more details. 0, -FI_ENOMEM. */
	int (*nic)(const struct fab_netif *netif, struct fid_nic **nic);
	struct fab_offer offer;		/* the members but info, for every entry; secondary_caps that info lacks are
					 * ignored */
};

/* The provider's getinfo. 0: the caller frees *info with fi_freeinfo(). -FI_ENODATA: nothing matches (reasons
 * reported); -FI_EINVAL, -FI_ENOMEM. */
int fab_ip_getinfo(const struct fab_ip *ip, uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info);

/* Check the info with which an application opens an endpoint, its type included, against what the provider offers. 0;
 * -FI_EINVAL, logged; -FI_ENOMEM. */
int fab_ip_check(const struct fab_ip *ip, const struct fi_info *info, uint32_t version);

/* For fi_getname(3): replace a wildcard address in *addr by an interface's address. The interface is the one of info's
 * domain, or else the best one. */
void fab_ip_fill_addr(const struct fi_provider *prov, const char *iface, union fab_sockaddr *addr,
		      const struct fi_info *info);

/* True if addr, as a peer may know it, is an address of a socket bound to own: it is equal to own, or own is a wildcard
 * and addr is an address of this host. */
bool fab_ip_is_own(const struct fi_provider *prov, const union fab_sockaddr *own, const union fab_sockaddr *addr);

#endif
