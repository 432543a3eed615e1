/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Entries of MSG endpoints without IP addresses: InfiniBand's CM connects by GID and service id (FI_SOCKADDR_IB), so a
 * port needs no IPoIB. RoCE and iWARP have no such entries, because their CM needs IP addresses.
 *
 * fab_resolve_gid() parses node and service. Ports are of the port space RDMA_PS_IB, as in upstream's provider.
 */
#include "verbs/ports.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "common/net/net.h"

struct wish {
	bool has_src, has_dest;
	union fab_any_addr src, dest;
};

struct search {
	const struct vrb_kind *kind;
	const struct vrb_query *query;
	const struct wish *wish;
	bool named;			/* the hints name this format: list also ports with IP addresses */
	const struct vrb_device *dev;	/* the device whose GIDs are being compared */
	struct vrb_offers offers;
	int ret;
};

/* ---- the query ---- */

/* Take an address from the hints. False: it is not an InfiniBand address. */
static bool take_hint(const void *data, size_t len, bool *has, union fab_any_addr *addr)
{
	*has = true;
	if (len < sizeof(addr->sib))
		return false;
	memcpy(&addr->sib, data, sizeof(addr->sib));
	return addr->sa.sa_family == FAB_AF_IB;
}

static int ib_info_make_wish(const struct vrb_query *query, struct wish *wish)
{
	bool source = query->flags & FI_SOURCE, named = query->node || query->service;
	const struct fi_info *hints = query->hints;
	const char *why = "";
	int ret;

	if (source && !named)
		return -FI_EINVAL;
	if (named) {
		ret = fab_resolve_gid(query->node, query->service, query->flags,
				      source ? &wish->src.sib : &wish->dest.sib, &why);
		if (ret && fab_why_wanted(&vrb_prov))
			fab_why_report(&vrb_prov, FAB_WHY_WHICH, "FI_SOCKADDR_IB", query->node ? "node" : "service",
				       query->node ? query->node : query->service, query->node ? "a GID" : why);
		if (ret)
			return ret;
		*(source ? &wish->has_src : &wish->has_dest) = true;
	}
	if (hints && hints->src_addr && !source &&
	    !take_hint(hints->src_addr, hints->src_addrlen, &wish->has_src, &wish->src))
		return -FI_ENODATA;
	if (hints && hints->dest_addr && (!named || source) &&
	    !take_hint(hints->dest_addr, hints->dest_addrlen, &wish->has_dest, &wish->dest))
		return -FI_ENODATA;
	return 0;
}

/* ---- ports ---- */

/* True if the port has an IP address, with which it has an entry already. */
static bool has_ip(const struct vrb_device *dev)
{
	struct fab_netif *list;
	bool found = false;
	size_t cnt;

	if (fab_netif_list(&vrb_prov, NULL, &list, &cnt))
		return false;
	for (size_t i = 0; i < cnt && !found; i++)
		found = vrb_device_of(&list[i].addr.sa) == dev;
	free(list);
	return found;
}

static bool add_gid(const struct vrb_gid *gid, void *arg)
{
	struct search *search = arg;
	const struct vrb_device *dev = search->dev;
	const struct wish *wish = search->wish;
	union fab_any_addr src, dest = wish->dest;
	struct fi_info *info;
	__be16 pkey = 0xffff;

	ibv_query_pkey(dev->verbs, dev->port_num, 0, &pkey);
	fab_addr_ib_set(&src.sib, &gid->gid, ntohs(pkey), wish->has_src ? fab_addr_port(&wish->src.sa) : 0);
	if (wish->has_src && !fab_addr_is_any(&wish->src.sa) && !fab_addr_equal_host(&wish->src.sa, &src.sa))
		return true;
	if (vrb_device_of(&src.sa) != dev)
		return true;
	if (wish->has_dest && !memcmp(dest.sib.sib_gid, &in6addr_loopback, sizeof(dest.sib.sib_gid)))
		memcpy(dest.sib.sib_gid, &gid->gid, sizeof(dest.sib.sib_gid));
	info = vrb_port_entry(search->kind, dev, &gid->gid, &src.sib, wish->has_dest ? &dest.sib : NULL,
			      sizeof(src.sib));
	if (info)
		info->addr_format = FI_SOCKADDR_IB;
	search->ret = vrb_offers_add(&search->offers, info);
	return !search->ret;
}

static int ib_info_add_port(const struct vrb_device *dev, void *arg)
{
	struct search *search = arg;

	if (dev->port.link_layer != IBV_LINK_LAYER_INFINIBAND || (!search->named && has_ip(dev)))
		return 0;
	search->dev = dev;
	vrb_gids_see(dev->verbs, dev->port_num, add_gid, search);
	return search->ret;
}

int vrb_ib_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info)
{
	uint32_t format = query->hints ? query->hints->addr_format : FI_FORMAT_UNSPEC;
	struct wish wish = { 0 };
	struct search search = { .kind = kind, .query = query, .wish = &wish, .named = format == FI_SOCKADDR_IB };
	int ret;

	if ((!search.named && format != FI_FORMAT_UNSPEC && format != FI_SOCKADDR) ||
	    (!search.named && vrb_params.iface))
		return -FI_ENODATA;
	ret = ib_info_make_wish(query, &wish);
	if (ret)
		return ret;
	ret = vrb_ports_see(kind, ib_info_add_port, &search);
	if (!ret && !search.offers.cnt)
		ret = -FI_ENODATA;
	return vrb_offers_answer(&search.offers, ret, query, info);
}
