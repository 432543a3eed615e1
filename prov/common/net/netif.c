/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Reads network interfaces from the kernel, filters and ranks them. Not on the data path; no state: each call reads
 * them again.
 */
#include "common/net/netif.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "base/strbuf.h"
#include "base/table.h"
#include "common/explain/explain.h"

static const struct fab_netif_source system_source = {
	.proc_net = "/proc/net",
	.sys_net = "/sys/class/net",
	.getifaddrs = getifaddrs,
	.freeifaddrs = freeifaddrs,
};

const struct fab_netif_source *fab_netif_source = &system_source;

/* The criteria of the rank, most important first. Smaller values are better. */
enum rank {
	RANK_PICK,		/* position in the filter's list */
	RANK_LOOPBACK,
	RANK_NOT_RUNNING,
	RANK_LINK_LOCAL,
	RANK_CLASS,		/* enum class */
	RANK_NO_DEFAULT_ROUTE,
	RANK_SLOWNESS,		/* UINT64_MAX less the speed */
	RANK_FLEETING,		/* IPv6: temporary or deprecated */
	RANK_FAMILY,
	RANK_ORDER,		/* order in the kernel's list */
	RANK_MAX
};

enum class {
	CLASS_HARDWARE,		/* also any interface with a default route */
	CLASS_SOFTWARE,		/* bond, vlan, interfaces of containers ... */
	CLASS_LOCAL,		/* docker, bridge, veth, tun: they rarely lead to another host */
	CLASS_POINT_TO_POINT,	/* software with one peer: wg, ppp, most tun */
};

struct candidate {
	struct fab_netif netif;
	uint64_t rank[RANK_MAX];
};

/* ---- the filter ---- */

#define ITEM_MAX 64

struct item {
	char text[ITEM_MAX];
	bool negated, is_range;
	union fab_sockaddr net;
	unsigned prefix_len;
};

/* True if addr is in net/prefix_len. */
static bool netif_in_range(const union fab_sockaddr *addr, const union fab_sockaddr *net, unsigned prefix_len)
{
	const uint8_t *a, *b;

	if (addr->sa.sa_family != net->sa.sa_family)
		return false;
	a = addr->sa.sa_family == AF_INET ? (const uint8_t *) &addr->sin.sin_addr : addr->sin6.sin6_addr.s6_addr;
	b = net->sa.sa_family == AF_INET ? (const uint8_t *) &net->sin.sin_addr : net->sin6.sin6_addr.s6_addr;
	if (memcmp(a, b, prefix_len / 8))
		return false;
	return !(prefix_len % 8) || !((a[prefix_len / 8] ^ b[prefix_len / 8]) & (0xff00 >> prefix_len % 8 & 0xff));
}

/* Parse "10.0.0.0/8" or an address. False: the item is neither, so it is a name. */
static bool parse_range(struct item *item)
{
	char text[ITEM_MAX], *slash, *end;
	unsigned max;

	snprintf(text, sizeof(text), "%s", item->text);
	slash = strchr(text, '/');
	if (slash)
		*slash = '\0';
	memset(&item->net, 0, sizeof(item->net));
	if (inet_pton(AF_INET, text, &item->net.sin.sin_addr) == 1) {
		item->net.sa.sa_family = AF_INET;
		max = 32;
	} else if (inet_pton(AF_INET6, text, &item->net.sin6.sin6_addr) == 1) {
		item->net.sa.sa_family = AF_INET6;
		max = 128;
	} else {
		return false;
	}
	item->prefix_len = slash ? strtoul(slash + 1, &end, 10) : max;
	return !slash || (slash[1] && !*end && item->prefix_len <= max);
}

/* Get the next item of a comma list, and advance *filter. False: no more items. */
static bool next_item(const char **filter, struct item *item)
{
	size_t len;

	*filter += strspn(*filter, ", \t");
	if (!**filter)
		return false;
	len = strcspn(*filter, ", \t");
	item->negated = **filter == '^' || **filter == '!';
	snprintf(item->text, sizeof(item->text), "%.*s", (int) fab_min(len, (size_t) ITEM_MAX) - item->negated,
		 *filter + item->negated);
	item->is_range = parse_range(item);
	*filter += len;
	return true;
}

static bool item_fits(const struct item *item, const struct fab_netif *netif)
{
	return item->is_range ? netif_in_range(&netif->addr, &item->net, item->prefix_len) :
				!fnmatch(item->text, netif->name, 0);
}

/* True if the filter takes the interface; *place is the position of the item that matches. */
static bool netif_pick(const char *filter, const struct fab_netif *netif, uint64_t *place)
{
	bool choosy = false, found = false;
	struct item item;

	*place = 0;
	for (uint64_t i = 0; filter && next_item(&filter, &item); i++) {
		choosy |= !item.negated;
		if (!item_fits(&item, netif))
			continue;
		if (item.negated)
			return false;
		if (!found)
			*place = i;
		found = true;
	}
	return found || !choosy;
}

/* ---- facts about an interface ---- */

static FILE *netif_open_file(const char *dir, const char *name, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s%s%s", dir, name, file ? "/" : "", file ? file : "");
	return fopen(path, "re");
}

/* The number in /sys/class/net/NAME/FILE. 0: the file does not exist, or the number is negative (unknown). */
static uint64_t sys_number(const char *name, const char *file)
{
	FILE *f = netif_open_file(fab_netif_source->sys_net, name, file);
	long long value;

	if (!f)
		return 0;
	if (fscanf(f, "%lld", &value) != 1 || value < 0)
		value = 0;
	fclose(f);
	return value;
}

static bool sys_has(const char *name, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s/%s", fab_netif_source->sys_net, name, file);
	return !access(path, F_OK);
}

/* ---- facts from /proc/net, read once for all addresses ---- */

/* An interface with a default route of a family. */
struct way_out {
	char name[IF_NAMESIZE];
	int family;
};

/* An IPv6 address with flags that matter here. */
struct odd_addr {
	uint8_t addr[16];
	char name[IF_NAMESIZE];
	unsigned flags;			/* the kernel's */
};

/* Sorted after reading. */
struct facts {
	struct way_out *ways;		/* owned, as is addrs */
	size_t way_cnt, way_room;
	struct odd_addr *addrs;
	size_t addr_cnt, addr_room;
};

#define IPV6_FLEETING	(0x01 | 0x20)	/* temporary, deprecated */
#define IPV6_UNUSABLE	(0x08 | 0x40)	/* duplicate detected; duplicate detection is still running */

static int compare_ways(const void *a, const void *b)
{
	const struct way_out *left = a, *right = b;

	return left->family != right->family ? left->family - right->family : strcmp(left->name, right->name);
}

static int compare_addrs(const void *a, const void *b)
{
	const struct odd_addr *left = a, *right = b;
	int cmp = memcmp(left->addr, right->addr, sizeof(left->addr));

	return cmp ? cmp : strcmp(left->name, right->name);
}

static int add_way(struct facts *facts, int family, const char *name)
{
	struct way_out *way;

	if (fab_grow(&facts->ways, &facts->way_room, facts->way_cnt, sizeof(*way)))
		return -FI_ENOMEM;
	way = &facts->ways[facts->way_cnt++];
	way->family = family;
	snprintf(way->name, sizeof(way->name), "%s", name);
	return 0;
}

/* Take the default route, if any, from a line of /proc/net/route. 0 or -FI_ENOMEM, as for the other files. */
static int take_route(struct facts *facts, const char *line)
{
	unsigned dest, mask, flags;
	char name[IF_NAMESIZE];

	if (strstr(line, "\t00000000\t") &&
	    sscanf(line, "%15s %x %*s %x %*s %*s %*s %x", name, &dest, &flags, &mask) == 4 && !dest && !mask &&
	    (flags & 0x1))
		return add_way(facts, AF_INET, name);
	return 0;
}

/* The same for a line of /proc/net/ipv6_route. */
static int take_route6(struct facts *facts, const char *line)
{
	char name[IF_NAMESIZE];
	unsigned flags;

	/* flags: 0x1 usable, 0x200 reject */
	if (strspn(line, "0") == 32 && !strncmp(line + 32, " 00 ", 4) &&
	    sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %*s %x %15s", &flags, name) == 2 && (flags & 0x201) == 0x1)
		return add_way(facts, AF_INET6, name);
	return 0;
}

/* Take the address from a line of /proc/net/if_inet6, if its flags matter. */
static int take_addr6(struct facts *facts, const char *line)
{
	struct odd_addr *odd;
	char name[IF_NAMESIZE];
	unsigned flags, byte;

	if (sscanf(line, "%*32s %*s %*s %*s %x %15s", &flags, name) != 2 || !(flags & (IPV6_FLEETING | IPV6_UNUSABLE)))
		return 0;
	if (fab_grow(&facts->addrs, &facts->addr_room, facts->addr_cnt, sizeof(*odd)))
		return -FI_ENOMEM;
	odd = &facts->addrs[facts->addr_cnt++];
	odd->flags = flags;
	memcpy(odd->name, name, sizeof(name));
	for (int i = 0; i < 16 && sscanf(line + 2 * i, "%2x", &byte) == 1; i++)
		odd->addr[i] = byte;
	return 0;
}

/* Call take for each line of a file. A file that cannot be read counts as empty. */
static int read_lines(struct facts *facts, const char *name, int (*take)(struct facts *facts, const char *line))
{
	FILE *f = netif_open_file(fab_netif_source->proc_net, name, NULL);
	char line[256];
	int ret = 0;

	while (f && !ret && fgets(line, sizeof(line), f))
		ret = take(facts, line);
	if (f)
		fclose(f);
	return ret;
}

static void facts_free(struct facts *facts)
{
	free(facts->ways);
	free(facts->addrs);
}

/* Read all files. 0 or -FI_ENOMEM; the caller calls facts_free() in either case. */
static int facts_read(struct facts *facts)
{
	memset(facts, 0, sizeof(*facts));
	if (read_lines(facts, "route", take_route) || read_lines(facts, "ipv6_route", take_route6) ||
	    read_lines(facts, "if_inet6", take_addr6))
		return -FI_ENOMEM;
	if (facts->way_cnt)
		qsort(facts->ways, facts->way_cnt, sizeof(*facts->ways), compare_ways);
	if (facts->addr_cnt)
		qsort(facts->addrs, facts->addr_cnt, sizeof(*facts->addrs), compare_addrs);
	return 0;
}

static bool has_default_route(const struct facts *facts, int family, const char *name)
{
	struct way_out key = { .family = family };

	snprintf(key.name, sizeof(key.name), "%s", name);
	return facts->way_cnt && bsearch(&key, facts->ways, facts->way_cnt, sizeof(key), compare_ways);
}

/* The kernel's flags of an IPv6 address; 0 if it has none that matter. */
static unsigned ipv6_flags(const struct facts *facts, const union fab_sockaddr *addr, const char *name)
{
	const struct odd_addr *found = NULL;
	struct odd_addr key = { .flags = 0 };

	memcpy(key.addr, &addr->sin6.sin6_addr, sizeof(key.addr));
	snprintf(key.name, sizeof(key.name), "%s", name);
	if (facts->addr_cnt)
		found = bsearch(&key, facts->addrs, facts->addr_cnt, sizeof(key), compare_addrs);
	return found ? found->flags : 0;
}

static enum class netif_class_of(const struct fab_netif *netif, bool default_route)
{
	static const char *const prefixes[] = { "docker", "br-", "virbr", "veth", "tun", "tap" };

	if (netif->hardware)
		return CLASS_HARDWARE;
	if (netif->point_to_point)
		return CLASS_POINT_TO_POINT;
	if (sys_has(netif->name, "tun_flags"))
		return CLASS_LOCAL;
	if (default_route)
		return CLASS_HARDWARE;
	if (sys_has(netif->name, "bridge"))
		return CLASS_LOCAL;
	for (size_t i = 0; i < fab_countof(prefixes); i++) {
		if (!strncmp(netif->name, prefixes[i], strlen(prefixes[i])))
			return CLASS_LOCAL;
	}
	return CLASS_SOFTWARE;
}

/* ---- candidates ---- */

static unsigned mask_len(const uint8_t *mask, unsigned size)
{
	unsigned len = 0;

	while (len < size * 8 && (mask[len / 8] & (0x80 >> len % 8)))
		len++;
	return len;
}

/* Set net, prefix_len and network from addr and the netmask (NULL: the address alone). */
static void set_network(struct fab_netif *netif, const struct sockaddr *netmask)
{
	bool v4 = netif->addr.sa.sa_family == AF_INET;
	unsigned size = v4 ? 4 : 16;
	union fab_sockaddr mask;
	char text[INET6_ADDRSTRLEN];
	uint8_t *host, *bits;

	memset(&mask, 0xff, sizeof(mask));
	if (netmask)
		memcpy(&mask, netmask, fab_addr_len(&netif->addr.sa));
	netif->net = netif->addr;
	host = v4 ? (uint8_t *) &netif->net.sin.sin_addr : netif->net.sin6.sin6_addr.s6_addr;
	bits = v4 ? (uint8_t *) &mask.sin.sin_addr : mask.sin6.sin6_addr.s6_addr;
	for (unsigned i = 0; i < size; i++)
		host[i] &= bits[i];
	netif->prefix_len = mask_len(bits, size);
	inet_ntop(netif->net.sa.sa_family, host, text, sizeof(text));
	snprintf(netif->network, sizeof(netif->network), "%s/%u", text, netif->prefix_len);
}

static void set_rank(struct candidate *candidate, const struct facts *facts, unsigned addr_flags)
{
	const struct fab_netif *netif = &candidate->netif;
	int family = netif->addr.sa.sa_family;
	bool default_route = !netif->loopback && has_default_route(facts, family, netif->name);

	candidate->rank[RANK_LOOPBACK] = netif->loopback;
	candidate->rank[RANK_NOT_RUNNING] = !netif->running;
	candidate->rank[RANK_LINK_LOCAL] = fab_addr_is_link_local(&netif->addr.sa);
	candidate->rank[RANK_CLASS] = netif_class_of(netif, default_route);
	candidate->rank[RANK_NO_DEFAULT_ROUTE] = !default_route;
	candidate->rank[RANK_SLOWNESS] = UINT64_MAX - netif->speed;
	candidate->rank[RANK_FLEETING] = !!(addr_flags & IPV6_FLEETING);
	candidate->rank[RANK_FAMILY] = family != AF_INET;
}

/* Fill in the facts from /sys about an interface. They are copied if one of the earlier candidates is of the same
 * interface. */
static void set_link(struct fab_netif *netif, const struct candidate *earlier, size_t cnt)
{
	for (size_t i = cnt; i-- > 0;) {
		const struct fab_netif *same = &earlier[i].netif;

		if (strcmp(same->name, netif->name))
			continue;
		netif->mtu = same->mtu;
		netif->speed = same->speed;
		netif->hardware = same->hardware;
		return;
	}
	netif->mtu = sys_number(netif->name, "mtu");
	netif->speed = sys_number(netif->name, "speed") * 1000000;
	netif->hardware = sys_has(netif->name, "device");
}

/* Make entry number cnt of the list. False: the address cannot be used. */
static bool candidate_make(struct candidate *list, size_t cnt, const struct facts *facts, const struct ifaddrs *ifa)
{
	struct candidate *candidate = &list[cnt];
	struct fab_netif *netif = &candidate->netif;
	unsigned addr_flags = 0;

	if (!ifa->ifa_addr || !fab_addr_len(ifa->ifa_addr) || !(ifa->ifa_flags & IFF_UP))
		return false;
	memset(candidate, 0, sizeof(*candidate));
	memcpy(&netif->addr, ifa->ifa_addr, fab_addr_len(ifa->ifa_addr));
	fab_addr_set_port(&netif->addr.sa, 0);
	snprintf(netif->name, sizeof(netif->name), "%.*s", (int) strcspn(ifa->ifa_name, ":"), ifa->ifa_name);
	netif->loopback = ifa->ifa_flags & IFF_LOOPBACK;
	netif->running = ifa->ifa_flags & IFF_RUNNING;
	netif->point_to_point = ifa->ifa_flags & IFF_POINTOPOINT;
	if (netif->addr.sa.sa_family == AF_INET6)
		addr_flags = ipv6_flags(facts, &netif->addr, netif->name);
	if (addr_flags & IPV6_UNUSABLE)
		return false;
	set_link(netif, list, cnt);
	set_network(netif, ifa->ifa_netmask);
	set_rank(candidate, facts, addr_flags);
	return true;
}

static int compare_candidates(const void *a, const void *b)
{
	const uint64_t *left = ((const struct candidate *) a)->rank, *right = ((const struct candidate *) b)->rank;

	for (unsigned i = 0; i < RANK_MAX; i++) {
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	}
	return 0;
}

/* Append the name and address of each interface that is up. */
static void put_up(struct fab_strbuf *sb, const struct ifaddrs *ifas)
{
	for (const struct ifaddrs *ifa = ifas; ifa; ifa = ifa->ifa_next) {
		char addr[INET6_ADDRSTRLEN];

		if (!ifa->ifa_addr || !fab_addr_len(ifa->ifa_addr) || !(ifa->ifa_flags & IFF_UP))
			continue;
		inet_ntop(ifa->ifa_addr->sa_family, ifa->ifa_addr->sa_family == AF_INET ?
			  (const void *) &((const struct sockaddr_in *) (const void *) ifa->ifa_addr)->sin_addr :
			  (const void *) &((const struct sockaddr_in6 *) (const void *) ifa->ifa_addr)->sin6_addr,
			  addr, sizeof(addr));
		fab_strbuf_printf(sb, "%s%s %s", sb->len ? ", " : "", ifa->ifa_name, addr);
	}
}

/* Report that there is no interface to use: the filter leaves none of those that are up, or none is up. */
static void tell_none(const struct fi_provider *prov, const char *filter, const struct ifaddrs *ifas)
{
	char variable[64], asked[104], up[400], why[512];
	struct fab_strbuf sb;

	fab_strbuf_init(&sb, up, sizeof(up));
	put_up(&sb, ifas);
	if (filter && sb.len) {
		snprintf(variable, sizeof(variable), "FI_%.40s_IFACE", prov->name);
		for (char *c = variable; *c; c++)
			*c = (char) toupper((unsigned char) *c);
		snprintf(asked, sizeof(asked), "%.100s", filter);
		snprintf(why, sizeof(why), "it names no interface that is up; up are: %s", up);
	} else {
		snprintf(variable, sizeof(variable), "network interfaces");
		*asked = '\0';
		snprintf(why, sizeof(why), "none is up with an IP address; \"ip link set lo up\" is enough for "
			 "processes of one host");
	}
	if (fab_why_wanted(prov))
		fab_why_report(prov, FAB_WHY_CALL, NULL, variable, asked, why);
	else if (!fab_core_ops(prov->context.internal))
		FI_WARN(prov, FI_LOG_CORE, "%s%s%s: %s\n", variable, *asked ? "=" : "", asked, why);
}

int fab_netif_list(const struct fi_provider *prov, const char *filter, struct fab_netif **list, size_t *cnt)
{
	struct candidate *candidates;
	struct fab_netif *ranked;
	size_t max = 0, found = 0;
	struct facts facts;
	struct ifaddrs *ifas;
	int ret = -FI_ENOMEM;

	if (fab_netif_source->getifaddrs(&ifas))
		return -errno;
	for (const struct ifaddrs *ifa = ifas; ifa; ifa = ifa->ifa_next)
		max++;
	candidates = calloc(max + 1, sizeof(*candidates));
	ranked = calloc(max + 1, sizeof(*ranked));
	if (facts_read(&facts) || !candidates || !ranked)
		goto free_ranked;
	for (const struct ifaddrs *ifa = ifas; ifa; ifa = ifa->ifa_next) {
		struct candidate *candidate = &candidates[found];

		if (!candidate_make(candidates, found, &facts, ifa) ||
		    !netif_pick(filter, &candidate->netif, &candidate->rank[RANK_PICK]))
			continue;
		candidate->rank[RANK_ORDER] = found++;
	}
	if (!found) {
		tell_none(prov, filter, ifas);
		ret = -FI_ENODATA;
		goto free_ranked;
	}
	qsort(candidates, found, sizeof(*candidates), compare_candidates);
	for (size_t i = 0; i < found; i++)
		ranked[i] = candidates[i].netif;
	*list = ranked;
	ranked = NULL;
	*cnt = found;
	ret = 0;

free_ranked:
	facts_free(&facts);
	free(ranked);
	free(candidates);
	fab_netif_source->freeifaddrs(ifas);
	return ret;
}
