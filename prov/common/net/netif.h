/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The machine's network interfaces, best first, and the resolution of node, service and flags of fi_getinfo(3). For IP
 * providers. doc/design.md, 7.7.
 *
 * Interfaces that are down are left out, and so are IPv6 addresses that cannot be used. Of two entries that one is
 * better which differs first in this list: not loopback; running; not a link-local address; an interface with hardware
 * or with a default route before other software interfaces, and those before docker, bridges, veth and tun; a default
 * route; faster; not a temporary or deprecated IPv6 address; IPv4; the order of the kernel.
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
	bool hardware;			/* there is a device behind it */
	uint32_t mtu;			/* bytes, 0 unknown */
	uint64_t speed;			/* bit/s, 0 unknown */
	char network[64];		/* "192.168.1.0/24", "fe80::/64": the fabric name */
};

/*
 * List the interfaces, one entry for each address, best first. filter is the value of FI_TCP_IFACE, or NULL: a comma
 * list of names, globs ("eth*"), addresses and ranges ("10.0.0.0/8"). An item with '^' or '!' in front leaves out the
 * entries that it matches. If there are items without, only entries that match one of them are taken, in the order of
 * the items. The caller frees *list by free(). 0; -FI_ENODATA: the filter leaves none (logged, with the interfaces
 * that there are); -FI_ENOMEM; or -errno of the system.
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
 * One address from a node and a service, as fi_getinfo(3) and fi_av_insertsvc(3) name them. node: a host name, a
 * numeric address (the only thing with FI_NUMERICHOST), or an FI_ADDR_STR text ("fi_sockaddr_in://1.2.3.4:5", then
 * service is NULL); NULL is the wildcard address with FI_SOURCE, else the loopback address. service: a port number or a
 * name of /etc/services; NULL is port 0. family: AF_INET, AF_INET6, or AF_UNSPEC for whatever comes first. May ask name
 * servers, and wait for them. 0 with *addr, -FI_ENODATA (no such name, or none in this family), -FI_EINVAL (a service
 * that is none, a text that cannot be read), -FI_ENOMEM; then *why is a sentence for people, constant text.
 */
int fab_resolve_name(const char *node, const char *service, uint64_t flags, int family, union fab_sockaddr *addr,
		     const char **why);

/* The same of an address of InfiniBand, where a node is a GID, as IPv6 addresses are written, or an address text
 * (fi_sockaddr_ib://[GID]..., then service is NULL), and a service is a port of InfiniBand's own port space; names are
 * not looked up. On failure *sib is unchanged. */
int fab_resolve_gid(const char *node, const char *service, uint64_t flags, struct fab_sockaddr_ib *sib,
		    const char **why);

/* The node that comes n places behind the named one; port 0, or that of an address text: an address is counted up, or
 * the number that a name ends with (node09, node10). flags: FI_NUMERICHOST, or 0. Answers as fab_resolve_name(). */
int fab_resolve_nth(const char *node, uint64_t n, uint64_t flags, int family, union fab_sockaddr *addr,
		    const char **why);

/* The source and destination that a getinfo call means, from node/service/flags and hints' addresses. */
struct fab_addr_hint {
	bool has_src, has_dest;
	union fab_sockaddr src, dest;
};
/* Resolve all of it, in one family (AF_INET, AF_INET6) or whatever comes first (AF_UNSPEC): a provider with offers in
 * both asks once for each. An address of the hints that is of the other family is -FI_ENODATA. 0, -FI_ENODATA (no such
 * name), -FI_EINVAL (a service that is none, wrong address length ...): each told to the core under `prov`. */
int fab_resolve(const struct fi_provider *prov, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, int family, struct fab_addr_hint *out);

#endif
