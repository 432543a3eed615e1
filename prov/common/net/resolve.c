/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Resolves node, service and hints of fi_getinfo(3) to socket addresses. No state; may block in name lookups.
 */
#include "common/net/netif.h"

#include <ctype.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/explain/explain.h"

#define NODE_MAX	1024	/* bytes of a host name or address text */
#define SERVICE_MAX	255

static int resolve_fail(const char **why, const char *text, int err)
{
	*why = text;
	return -err;
}

/* Call getaddrinfo() for one family, and take the first address. */
static int resolve_look_up(const char *node, const char *service, int flags, int family, union fab_sockaddr *addr,
			   const char **why)
{
	struct addrinfo hints = { .ai_flags = flags, .ai_family = family, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *one;
	size_t len = 0;
	int ret;

	ret = getaddrinfo(node, service, &hints, &list);
	switch (ret) {
	case 0:
		break;
	case EAI_MEMORY:
		return resolve_fail(why, "no memory for a name lookup", FI_ENOMEM);
	case EAI_SERVICE:
		return resolve_fail(why, "neither a port number nor a service in /etc/services", FI_EINVAL);
	case EAI_AGAIN:
		return resolve_fail(why, "no name server answers", FI_ENODATA);
	default:
		return resolve_fail(why, flags & AI_NUMERICHOST ? "not a numeric address of this family" :
				    "no such host, or none with an address of this family", FI_ENODATA);
	}
	for (one = list; one && !(len = fab_addr_len(one->ai_addr)); one = one->ai_next)
		;
	if (one) {
		memset(addr, 0, sizeof(*addr));
		memcpy(addr, one->ai_addr, len);
	}
	freeaddrinfo(list);
	return one ? 0 : resolve_fail(why, "no such host, or none with an IP address", FI_ENODATA);
}

static int parse_port(const char *service, uint16_t *port, const char **why)
{
	union fab_sockaddr addr;
	unsigned long value;
	char *end;
	int ret;

	*port = 0;
	if (!service)
		return 0;
	if (!*service || strnlen(service, SERVICE_MAX + 1) > SERVICE_MAX)
		return resolve_fail(why, "neither a port number nor a service in /etc/services", FI_EINVAL);
	if (isdigit((unsigned char) *service)) {
		value = strtoul(service, &end, 10);
		if (*end || value > UINT16_MAX)
			return resolve_fail(why, "a port is a number from 0 to 65535", FI_EINVAL);
		*port = value;
		return 0;
	}
	ret = resolve_look_up(NULL, service, 0, AF_INET, &addr, why);
	if (!ret)
		*port = fab_addr_port(&addr.sa);
	return ret;
}

/* Parse an FI_ADDR_STR text. A text that leaves the family open is tried in both families. */
static int parse_str(const char *str, int family, union fab_sockaddr *addr, const char **why)
{
	static const char *const open[] = { "fi_sockaddr://", "fi_sockaddr_ip://" };
	static const char *const schemes[] = { "fi_sockaddr_in://", "fi_sockaddr_in6://" };
	char text[NODE_MAX + 32];
	int ret = -FI_EINVAL;

	for (unsigned i = 0; i < fab_countof(open); i++) {
		if (strncmp(str, open[i], strlen(open[i])))
			continue;
		for (unsigned k = 0; ret && k < fab_countof(schemes); k++) {
			snprintf(text, sizeof(text), "%s%s", schemes[k], str + strlen(open[i]));
			ret = fab_addr_from_str(text, addr);
		}
	}
	if (ret)
		ret = fab_addr_from_str(str, addr);
	if (ret)
		return resolve_fail(why, "not an address text such as fi_sockaddr_in://1.2.3.4:5 or "
				    "fi_sockaddr_in6://[fe80::1%eth0]:5",
				    FI_EINVAL);
	if (family != AF_UNSPEC && addr->sa.sa_family != family)
		return resolve_fail(why, "an address of another family", FI_ENODATA);
	return 0;
}

/* True if the node is an FI_ADDR_STR text, in the current or the older form. */
static bool is_addr_text(const char *node)
{
	return strstr(node, "://") || !strncmp(node, "AF_INET;", 8) || !strncmp(node, "AF_INET6;", 9);
}

int fab_resolve_name(const char *node, const char *service, uint64_t flags, int family, union fab_sockaddr *addr,
		     const char **why)
{
	int gai_flags = (flags & FI_NUMERICHOST ? AI_NUMERICHOST : 0) | (!node && (flags & FI_SOURCE) ? AI_PASSIVE : 0);
	uint16_t port;
	int ret;

	if (node && strnlen(node, NODE_MAX + 1) > NODE_MAX)
		return resolve_fail(why, "longer than a host name can be", FI_EINVAL);
	if (node && is_addr_text(node)) {
		if (service)
			return resolve_fail(why, "an address text names its port itself: service must be NULL",
					    FI_EINVAL);
		ret = parse_str(node, family, addr, why);
		if (!ret && !(flags & FI_SOURCE) && fab_addr_is_any(&addr->sa) && !fab_addr_port(&addr->sa))
			return resolve_fail(why, "an address text with neither host nor port", FI_EINVAL);
		return ret;
	}
	ret = parse_port(service, &port, why);
	if (ret)
		return ret;
	if (!node && family == AF_UNSPEC)
		family = AF_INET;
	ret = resolve_look_up(node, node ? NULL : "0", gai_flags, family, addr, why);
	if (!ret)
		fab_addr_set_port(&addr->sa, port);
	return ret;
}

int fab_resolve_gid(const char *node, const char *service, uint64_t flags, struct fab_sockaddr_ib *sib,
		    const char **why)
{
	union fab_sockaddr ip;
	int ret;

	if (node && !service && !fab_addr_ib_from_str(node, sib))
		return 0;
	ret = fab_resolve_name(node, service, flags | FI_NUMERICHOST, AF_INET6, &ip, why);
	if (!ret)
		fab_addr_ib_set(sib, &ip.sin6.sin6_addr, UINT16_MAX, fab_addr_port(&ip.sa));
	return ret;
}

/* ---- consecutive nodes ---- */

/* Split "host09" into "host" and 9, with 2 digits. */
struct name_series {
	size_t prefix_len;
	int digits;
	uint64_t first;
};

static bool parse_series(const char *node, struct name_series *series)
{
	size_t len = strlen(node);

	series->prefix_len = len;
	while (series->prefix_len && isdigit((unsigned char) node[series->prefix_len - 1]))
		series->prefix_len--;
	series->digits = len - series->prefix_len;
	if (!series->digits || series->digits > 18)
		return false;
	series->first = strtoull(node + series->prefix_len, NULL, 10);
	return true;
}

/* Add n to the host part of an address. False if it overflows. */
static bool addr_advance(union fab_sockaddr *addr, uint64_t n)
{
	uint32_t host;

	if (addr->sa.sa_family == AF_INET) {
		host = ntohl(addr->sin.sin_addr.s_addr);
		if (n > UINT32_MAX - host)
			return false;
		addr->sin.sin_addr.s_addr = htonl(host + n);
		return true;
	}
	for (int i = 15; i >= 0 && n; i--) {
		n += addr->sin6.sin6_addr.s6_addr[i];
		addr->sin6.sin6_addr.s6_addr[i] = n;
		n >>= 8;
	}
	return !n;
}

int fab_resolve_nth(const char *node, uint64_t n, uint64_t flags, int family, union fab_sockaddr *addr,
		    const char **why)
{
	char name[FI_NAME_MAX * 4];
	struct name_series series;
	const char *other;
	int ret;

	ret = fab_resolve_name(node, NULL, FI_NUMERICHOST, family, addr, why);
	if (!ret) {
		*why = "the range of nodes goes beyond the last address";
		return addr_advance(addr, n) ? 0 : -FI_EINVAL;
	}
	/* a numeric address of the other family is not a host name that ends in a number: 192.0.2.256 would be a
	 * name */
	if ((flags & FI_NUMERICHOST) || !fab_resolve_name(node, NULL, FI_NUMERICHOST, AF_UNSPEC, addr, &other))
		return ret;
	if (!n)
		return fab_resolve_name(node, NULL, 0, family, addr, why);
	*why = "consecutive nodes need a host name that ends in a number and has at most 200 bytes";
	if (!parse_series(node, &series) || series.prefix_len > 200)
		return -FI_EINVAL;
	snprintf(name, sizeof(name), "%.*s%0*" PRIu64, (int) series.prefix_len, node, series.digits, series.first + n);
	return fab_resolve_name(name, NULL, 0, family, addr, why);
}

/* ---- hints ---- */

/* Take an address from hints: len bytes in the format of the hints. */
static int read_hint(const struct fi_info *hints, const void *data, size_t len, int family, union fab_sockaddr *addr,
		     const char **why)
{
	sa_family_t there;
	size_t want;

	switch (hints->addr_format) {
	case FI_FORMAT_UNSPEC:
	case FI_SOCKADDR:
	case FI_SOCKADDR_IP:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
		break;
	default:
		return resolve_fail(why, "not an IP address (addr_format)", FI_ENODATA);
	}
	if (len < sizeof(there))
		return resolve_fail(why, "shorter than an address", FI_EINVAL);
	memcpy(&there, data, sizeof(there));
	want = fab_addr_family_len(there);
	if (!want)
		return resolve_fail(why, "neither IPv4 nor IPv6 (sa_family)", FI_ENODATA);
	if (len < want)
		return resolve_fail(why, "shorter than an address of its family", FI_EINVAL);
	if (family != AF_UNSPEC && there != family)
		return resolve_fail(why, "an address of another family", FI_ENODATA);
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, data, want);
	return 0;
}

/* Report the reason, if reasons are wanted. asked may have any length. */
static void resolve_tell(const struct fi_provider *prov, int family, const char *what, const char *asked,
			 const char *why)
{
	char text[128], reason[192];

	if (!fab_why_wanted(prov))
		return;
	snprintf(text, sizeof(text), "%.100s", asked ? asked : "none");
	snprintf(reason, sizeof(reason), "%s%s", why,
		 family == AF_INET ? " (IPv4)" : family == AF_INET6 ? " (IPv6)" : "");
	fab_why_report(prov, FAB_WHY_CALL, NULL, what, text, reason);
}

int fab_resolve(const struct fi_provider *prov, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, int family, struct fab_addr_hint *out)
{
	bool source = flags & FI_SOURCE, named = node || service;
	const char *why = NULL, *what;
	int ret;

	memset(out, 0, sizeof(*out));
	if (source && !named) {
		resolve_tell(prov, family, "flags", "FI_SOURCE",
			     "it applies to node and service, and neither is given");
		return -FI_EINVAL;
	}
	if (named) {
		ret = fab_resolve_name(node, service, flags, family, source ? &out->src : &out->dest, &why);
		if (ret) {
			what = !node || (ret == -FI_EINVAL && service && !is_addr_text(node)) ? "service" : "node";
			resolve_tell(prov, family, what, *what == 's' ? service : node, why);
			return ret;
		}
		*(source ? &out->has_src : &out->has_dest) = true;
	}
	if (hints && hints->src_addr && !source) {
		ret = read_hint(hints, hints->src_addr, hints->src_addrlen, family, &out->src, &why);
		if (ret) {
			resolve_tell(prov, family, "src_addr", "an address", why);
			return ret;
		}
		out->has_src = true;
	}
	if (hints && hints->dest_addr && (!named || source)) {
		ret = read_hint(hints, hints->dest_addr, hints->dest_addrlen, family, &out->dest, &why);
		if (ret) {
			resolve_tell(prov, family, "dest_addr", "an address", why);
			return ret;
		}
		out->has_dest = true;
	}
	return 0;
}
