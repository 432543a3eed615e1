/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See offers.h. Interfaces and routes are read from the system in each call, so FI_RESCAN has no effect. No state.
 */
#include "common/offers/offers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/sock.h"
#include "common/net/net.h"

/* An interface, with the names and addresses of its entries. */
struct place {
	const struct fab_netif *netif;
	char domain[FI_NAME_MAX], fabric[FI_NAME_MAX];
	union fab_sockaddr src, dest;	/* family 0: none */
};

struct offers {
	struct fab_offer *offer;	/* owned, as is of */
	const struct fab_netif **of;	/* the interface of each */
	struct fi_info *list;		/* owned: the infos of all offers, linked so that they can be freed together */
	size_t cnt;
};

/* ---- entries ---- */

static void offers_fill_all(const struct fab_ip *ip, struct fi_info *info, const struct fab_netif *netif,
			    enum fi_ep_type type)
{
	if (ip->most) {
		*info->tx_attr = *ip->most->tx_attr;
		*info->rx_attr = *ip->most->rx_attr;
		*info->ep_attr = *ip->most->ep_attr;
		*info->domain_attr = *ip->most->domain_attr;
	}
	if (ip->fill)
		ip->fill(ip, info, netif, type);
	info->ep_attr->type = type;
	if (netif->loopback)
		info->domain_attr->caps &= ~FI_REMOTE_COMM;
	info->fabric_attr->prov_version = ip->prov->version;
	info->caps = info->tx_attr->caps | info->rx_attr->caps | info->domain_attr->caps;
	info->addr_format = netif->addr.sa.sa_family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
}

/* Make the nic of one more entry. The first entry of an interface has read the facts; the others have copies. */
static int offers_make_nic(const struct fab_ip *ip, const struct offers *offers, const struct fab_netif *netif,
			   struct fid_nic **nic)
{
	for (size_t i = offers->cnt; i-- > 0;) {
		if (!strcmp(offers->of[i]->name, netif->name))
			return fab_nic_copy(offers->offer[i].info->nic, nic);
	}
	return ip->nic(netif, nic);
}

static struct fi_info *offers_make_info(const struct fab_ip *ip, const struct offers *offers, const struct place *place,
					enum fi_ep_type type)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	offers_fill_all(ip, info, place->netif, type);
	info->domain_attr->name = strdup(place->domain);
	info->fabric_attr->name = strdup(place->fabric);
	if (offers_make_nic(ip, offers, place->netif, &info->nic) ||
	    !info->domain_attr->name || !info->fabric_attr->name ||
	    fab_name_set(&info->src_addr, &info->src_addrlen, &place->src) ||
	    (fab_addr_len(&place->dest.sa) && fab_name_set(&info->dest_addr, &info->dest_addrlen, &place->dest))) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

/* ---- selection of interfaces ---- */

/* The source address that the kernel chooses for dest. False: there is no route. */
static bool route_source(const union fab_sockaddr *dest, union fab_sockaddr *src)
{
	union fab_sockaddr to = *dest;
	socklen_t len = sizeof(*src);
	bool found;
	int fd;

	fd = fab_sock_open(dest->sa.sa_family, SOCK_DGRAM);
	if (fd < 0)
		return false;
	if (!fab_addr_port(&to.sa))
		fab_addr_set_port(&to.sa, 9);	/* connect() needs a port; nothing is sent */
	memset(src, 0, sizeof(*src));
	found = !fab_sock->connect(fd, &to.sa, fab_addr_len(&to.sa)) && !fab_sock->getsockname(fd, &src->sa, &len);
	fab_sock_close(&fd);
	return found;
}

/* The interfaces and addresses that a call of fi_getinfo() selects in one address family. */
struct wish {
	int family;
	struct fab_addr_hint hint;
	bool by_src;			/* only the interface with address src */
	union fab_sockaddr src;
};

static bool has_addr(const struct fab_netif *list, size_t cnt, const union fab_sockaddr *addr)
{
	for (size_t i = 0; i < cnt; i++) {
		if (fab_addr_equal_host(&list[i].addr.sa, &addr->sa))
			return true;
	}
	return false;
}

static void offers_make_wish(struct wish *wish, const struct fab_netif *list, size_t cnt)
{
	const struct fab_addr_hint *hint = &wish->hint;

	wish->by_src = hint->has_src && !fab_addr_is_any(&hint->src.sa);
	if (wish->by_src)
		wish->src = hint->src;
	else if (hint->has_dest && route_source(&hint->dest, &wish->src))
		wish->by_src = has_addr(list, cnt, &wish->src);
	/* else there is no route, or it leads through an interface that FI_TCP_IFACE leaves out: allow every
	 * interface */
}

/* Report why the interface is not in the answer. */
static void offers_refuse(const struct fab_ip *ip, const struct wish *wish, const struct fab_netif *netif,
			  enum fi_ep_type type)
{
	char entry[FI_NAME_MAX], kind[32], asked[FAB_ADDR_STRLEN], offered[FAB_ADDR_STRLEN];

	if (!fab_why_wanted(ip->prov))
		return;
	snprintf(entry, sizeof(entry), "%s %s %s", netif->name,
		 fi_tostr_r(kind, sizeof(kind), &type, FI_TYPE_EP_TYPE),
		 wish->family == AF_INET6 ? "FI_SOCKADDR_IN6" : "FI_SOCKADDR_IN");
	fab_addr_to_str(&wish->src.sa, asked, sizeof(asked));
	fab_addr_to_str(&netif->addr.sa, offered, sizeof(offered));
	fab_why_report(ip->prov, FAB_WHY_WHERE, entry,
		       wish->hint.has_src ? "src_addr" : "dest_addr, reached from", asked, offered);
}

static bool place_make(const struct fab_ip *ip, struct place *place, const struct wish *wish,
		       const struct fab_netif *netif, enum fi_ep_type type)
{
	const struct fab_addr_hint *hint = &wish->hint;

	if (netif->addr.sa.sa_family != wish->family)
		return false;
	if (wish->by_src && !fab_addr_equal_host(&netif->addr.sa, &wish->src.sa)) {
		offers_refuse(ip, wish, netif, type);
		return false;
	}
	*place = (struct place) { .netif = netif, .src = netif->addr };
	snprintf(place->domain, sizeof(place->domain), "%s", netif->name);
	snprintf(place->fabric, sizeof(place->fabric), "%s", netif->network);
	if (ip->place && !ip->place(ip, netif, place->domain, place->fabric))
		return false;
	if (hint->has_src && fab_addr_port(&hint->src.sa))
		place->src = hint->src;
	if (hint->has_dest)
		place->dest = hint->dest;
	return true;
}

/* ---- the answer ---- */

static int offers_add(const struct fab_ip *ip, struct offers *offers, const struct place *place, enum fi_ep_type type)
{
	struct fi_info *info = offers_make_info(ip, offers, place, type);

	if (!info)
		return -FI_ENOMEM;
	info->next = offers->list;
	offers->list = info;
	offers->of[offers->cnt] = place->netif;
	offers->offer[offers->cnt] = ip->offer;
	offers->offer[offers->cnt].info = info;
	offers->offer[offers->cnt++].secondary_caps &= info->caps;
	return 0;
}

static void offers_free(struct offers *offers)
{
	fi_freeinfo(offers->list);
	free(offers->of);
	free(offers->offer);
}

/* Make all entries of one type, in the order of the interfaces. */
static int offers_fill(const struct fab_ip *ip, struct offers *offers, enum fi_ep_type type, const struct wish *wishes,
		       size_t wish_cnt, const struct fab_netif *list, size_t cnt)
{
	struct place place;
	int ret = 0;

	for (size_t i = 0; i < cnt && !ret; i++) {
		for (size_t w = 0; w < wish_cnt && !ret; w++) {
			if (place_make(ip, &place, &wishes[w], &list[i], type))
				ret = offers_add(ip, offers, &place, type);
		}
	}
	return ret;
}

static const struct {
	int family;
	uint32_t format;
} families[] = {
	{ AF_INET, FI_SOCKADDR_IN },
	{ AF_INET6, FI_SOCKADDR_IN6 },
};

static bool is_addr_of(const void *addr, size_t len, int family)
{
	const struct sockaddr *sa = addr;

	return sa && len >= fab_addr_family_len(family) && sa->sa_family == family;
}

/* The only family that the call allows, if the address format or an address says so; 0: both are allowed. */
static int stated_family(const char *node, const struct fi_info *hints)
{
	union fab_sockaddr addr;
	const char *why;

	for (size_t i = 0; i < fab_countof(families) && hints; i++) {
		if (hints->addr_format == families[i].format)
			return families[i].family;
	}
	for (size_t i = 0; i < fab_countof(families); i++) {
		int family = families[i].family;

		if (node && !fab_resolve_name(node, NULL, FI_NUMERICHOST, family, &addr, &why))
			return family;
		if (!node && hints && (is_addr_of(hints->src_addr, hints->src_addrlen, family) ||
				       is_addr_of(hints->dest_addr, hints->dest_addrlen, family)))
			return family;
	}
	return 0;
}

/* Resolve node, service and hints in each family that is allowed. Returns the number of families with a result; *ret is
 * the last failure. */
static size_t make_wishes(const struct fab_ip *ip, struct wish *wishes, const char *node, const char *service,
			  uint64_t flags, const struct fi_info *hints, int *ret)
{
	int only = stated_family(node, hints);
	size_t cnt = 0;
	int err;

	*ret = -FI_ENODATA;
	for (size_t i = 0; i < fab_countof(families); i++) {
		if (only && only != families[i].family)
			continue;
		wishes[cnt] = (struct wish) { .family = families[i].family };
		err = fab_resolve(ip->prov, node, service, flags, hints, families[i].family, &wishes[cnt].hint);
		if (err)
			*ret = err;
		else
			cnt++;
	}
	return cnt;
}

int fab_ip_getinfo(const struct fab_ip *ip, uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	struct offers offers = { 0 };
	struct fab_netif *list;
	struct wish wishes[2];
	size_t cnt, wish_cnt;
	int ret;

	wish_cnt = make_wishes(ip, wishes, node, service, flags, hints, &ret);
	if (!wish_cnt)
		return ret;
	ret = fab_netif_list(ip->prov, ip->iface, &list, &cnt);
	if (ret)
		return ret;
	for (size_t w = 0; w < wish_cnt; w++)
		offers_make_wish(&wishes[w], list, cnt);
	ret = -FI_ENOMEM;
	offers.offer = calloc(cnt * ip->type_cnt, sizeof(*offers.offer));
	offers.of = calloc(cnt * ip->type_cnt, sizeof(*offers.of));
	if (!offers.offer || !offers.of)
		goto free_offers;
	ret = 0;
	for (size_t i = 0; i < ip->type_cnt && !ret; i++)
		ret = offers_fill(ip, &offers, ip->types[i], wishes, wish_cnt, list, cnt);
	if (!ret)
		ret = fab_hints_match(ip->prov, version, hints, offers.offer, offers.cnt, info);
free_offers:
	offers_free(&offers);
	free(list);
	return ret;
}

static bool offers_have_type(const struct fab_ip *ip, enum fi_ep_type type)
{
	char name[32];

	for (size_t i = 0; i < ip->type_cnt; i++) {
		if (ip->types[i] == type)
			return true;
	}
	FI_WARN(ip->prov, FI_LOG_EP_CTRL, "fi_endpoint: ep_attr->type is %s, which %s does not have\n",
		fi_tostr_r(name, sizeof(name), &type, FI_TYPE_EP_TYPE), ip->prov->name);
	return false;
}

int fab_ip_check(const struct fab_ip *ip, const struct fi_info *info, uint32_t version)
{
	struct fab_netif netif = {
		.addr.sa.sa_family = info->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET, .mtu = UINT32_MAX,
	};
	struct fab_offer offer = ip->offer;
	struct fi_info *most;
	int ret;

	if (!offers_have_type(ip, info->ep_attr->type))
		return -FI_EINVAL;
	most = fi_allocinfo();
	if (!most)
		return -FI_ENOMEM;
	offers_fill_all(ip, most, &netif, info->ep_attr->type);
	offer.info = most;
	ret = fab_hints_check(ip->prov, version, info, &offer, 1);
	fi_freeinfo(most);
	return ret;
}

void fab_ip_fill_addr(const struct fi_provider *prov, const char *iface, union fab_sockaddr *addr,
		      const struct fi_info *info)
{
	const struct fab_netif *best = NULL;
	struct fab_netif *list;
	uint16_t port = fab_addr_port(&addr->sa);
	size_t cnt;

	if (!fab_addr_is_any(&addr->sa) || fab_netif_list(prov, iface, &list, &cnt))
		return;
	for (size_t i = 0; i < cnt; i++) {
		bool named = !strcmp(list[i].name, info->domain_attr->name);

		if (list[i].addr.sa.sa_family != addr->sa.sa_family)
			continue;
		if (!best || (named && strcmp(best->name, list[i].name)))
			best = &list[i];
	}
	if (best) {
		*addr = best->addr;
		fab_addr_set_port(&addr->sa, port);
	}
	free(list);
}

bool fab_ip_is_own(const struct fi_provider *prov, const union fab_sockaddr *own, const union fab_sockaddr *addr)
{
	struct fab_netif *list;
	bool found = false;
	size_t cnt;

	if (fab_addr_port(&addr->sa) != fab_addr_port(&own->sa))
		return false;
	if (!fab_addr_is_any(&own->sa))
		return fab_addr_equal_host(&addr->sa, &own->sa);
	if (fab_netif_list(prov, NULL, &list, &cnt))
		return false;
	for (size_t i = 0; i < cnt && !found; i++)
		found = fab_addr_equal_host(&list[i].addr.sa, &addr->sa);
	free(list);
	return found;
}
