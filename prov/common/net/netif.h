/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The machine's network interfaces, best first, and the resolution of node, service and flags of fi_getinfo(3). For IP
 * providers. doc/design.md, 7.7.
 *
 * Interfaces that are down are left out, and so are IPv6 addresses that cannot be used. Of two entries that one is
 * better which differs first in this list: not loopback; running; not a link-local address; an interface with hardware
 * or with a default route before other software interfaces, those before docker, bridges, veth and tun, and these
 * before point-to-point interfaces (wg, ppp); a default route; faster; not a temporary or deprecated IPv6 address;
 * IPv4; the order of the kernel.
 */
#ifndef FAB_NETIF_H
#define FAB_NETIF_H

#include <ifaddrs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/addr.h"

struct fi_info;
struct fi_provider;

struct fab_netif {
	char name[16];			/* of the kernel, without an address label: "eth0", not "eth0:1" */
	union fab_sockaddr addr;	/* port 0 */
	union fab_sockaddr net;		/* addr & netmask */
	uint8_t prefix_len;
	bool loopback, running;
	bool point_to_point;		/* it has one peer */
	bool hardware;			/* there is a device behind it */
	uint32_t mtu;			/* bytes, 0 unknown */
	uint64_t speed;			/* bit/s, 0 unknown */
	char network[64];		/* "192.168.1.0/24", "fe80::/64": the fabric name */
};

/*
 * List the interfaces, one entry for each address, best first. filter is the value of FI_TCP_IFACE, or NULL: a comma
 * list of names, globs ("eth*"), addresses and ranges ("10.0.0.0/8"). An item with '^' or '!' in front leaves out the
 * entries that it matches. If there are items without, only entries that match one of them are taken, in the order of
 * the items. The caller frees *list by free(). 0; -FI_ENODATA: the filter leaves none, or none is up; inside of
 * fi_getinfo() that is reported to the core, with the interfaces that there are; -FI_ENOMEM; or -errno of the system.
 */
int fab_netif_list(const struct fi_provider *prov, const char *filter, struct fab_netif **list, size_t *cnt);

/* The sources of fab_netif_list(). A test may replace them. */
struct fab_netif_source {
	const char *proc_net;		/* "/proc/net": route, ipv6_route, if_inet6 */
	const char *sys_net;		/* "/sys/class/net" */
	int (*getifaddrs)(struct ifaddrs **list);
	void (*freeifaddrs)(struct ifaddrs *list);
};
extern const struct fab_netif_source *fab_netif_source;

/*
 * Resolve a node and a service of fi_getinfo(3) or fi_av_insertsvc(3) to one address. node: a host name, a numeric
 * address (no other with FI_NUMERICHOST), or an FI_ADDR_STR text ("fi_sockaddr_in://1.2.3.4:5"; service is then NULL).
 * A NULL node is the wildcard address with FI_SOURCE, and the loopback address without. service: a port number or a
 * name from /etc/services; NULL is port 0. family: AF_INET, AF_INET6, or AF_UNSPEC for the first address found. May
 * block on name servers. 0: *addr is set. -FI_ENODATA (no such name, or no address in this family), -FI_EINVAL (no such
 * service, or an invalid text), -FI_ENOMEM: *why is the reason, a constant English text.
 */
int fab_resolve_name(const char *node, const char *service, uint64_t flags, int family, union fab_sockaddr *addr,
		     const char **why);

/* The same for an InfiniBand address. A node is a GID, written as an IPv6 address, or an address text
 * (fi_sockaddr_ib://[GID]...; service is then NULL). A service is a port of InfiniBand's port space. Names are not
 * resolved. On failure *sib is unchanged. */
int fab_resolve_gid(const char *node, const char *service, uint64_t flags, struct fab_sockaddr_ib *sib,
		    const char **why);

/* Resolve the node n places after the given one. n is added to an address, or to the number at the end of a name
 * (node09, node10). The port is 0, or the one in an address text. flags: FI_NUMERICHOST, or 0. Results as of
 * fab_resolve_name(). */
int fab_resolve_nth(const char *node, uint64_t n, uint64_t flags, int family, union fab_sockaddr *addr,
		    const char **why);

/* The source and destination of a fi_getinfo() call, from its node, service and flags and from the addresses in its
 * hints. */
struct fab_addr_hint {
	bool has_src, has_dest;
	union fab_sockaddr src, dest;
};
/* Resolve them for one family (AF_INET, AF_INET6) or for any (AF_UNSPEC: the first address found). A provider that
 * offers both families calls it once for each. -FI_ENODATA: no such name, or the address in the hints is of the other
 * family. -FI_EINVAL: invalid service, wrong address length ... Errors are reported to the core under `prov`. */
int fab_resolve(const struct fi_provider *prov, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, int family, struct fab_addr_hint *out);

#endif
