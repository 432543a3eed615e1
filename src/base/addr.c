/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket addresses: one function for all families, and their text form.
 */
#include "base/addr.h"

#include "base/bits.h"
#include "base/strbuf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

/* Schemes of the text form. An address of the one without a family is IPv6 if it is in brackets, else IPv4. */
static const struct {
	const char *text;
	int family;
} schemes[] = {
	{ "fi_sockaddr_in://", AF_INET },
	{ "fi_sockaddr_in6://", AF_INET6 },
	{ "fi_sockaddr://", AF_UNSPEC },
};

static const struct sockaddr_in *as_in(const struct sockaddr *addr)
{
	return (const struct sockaddr_in *) (const void *) addr;
}

static const struct sockaddr_in6 *as_in6(const struct sockaddr *addr)
{
	return (const struct sockaddr_in6 *) (const void *) addr;
}

static const struct fab_sockaddr_ib *as_ib(const struct sockaddr *addr)
{
	return (const struct fab_sockaddr_ib *) (const void *) addr;
}

socklen_t fab_addr_family_len(int family)
{
	switch (family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

socklen_t fab_addr_len(const struct sockaddr *addr)
{
	return fab_addr_family_len(addr->sa_family);
}

socklen_t fab_any_addr_len(const struct sockaddr *addr)
{
	return addr->sa_family == FAB_AF_IB ? sizeof(struct fab_sockaddr_ib) : fab_addr_len(addr);
}

bool fab_addr_equal_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	switch (a->sa_family) {
	case AF_INET:
		return as_in(a)->sin_addr.s_addr == as_in(b)->sin_addr.s_addr;
	case AF_INET6:
		return !memcmp(&as_in6(a)->sin6_addr, &as_in6(b)->sin6_addr, sizeof(struct in6_addr)) &&
		       (!fab_addr_is_link_local(a) || as_in6(a)->sin6_scope_id == as_in6(b)->sin6_scope_id);
	case FAB_AF_IB:
		return !memcmp(as_ib(a)->sib_gid, as_ib(b)->sib_gid, sizeof(as_ib(a)->sib_gid));
	case FAB_AF_GID:
		return !memcmp(&as_in6(a)->sin6_addr, &as_in6(b)->sin6_addr, sizeof(struct in6_addr));
	default:
		return false;
	}
}

bool fab_addr_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	return fab_addr_equal_host(a, b) && fab_addr_port(a) == fab_addr_port(b);
}

uint64_t fab_addr_hash(const struct sockaddr *addr)
{
	uint64_t half[2] = { 0, 0 };

	if (addr->sa_family == AF_INET)
		half[0] = as_in(addr)->sin_addr.s_addr;
	else if (addr->sa_family == AF_INET6 || addr->sa_family == FAB_AF_GID)
		memcpy(half, &as_in6(addr)->sin6_addr, sizeof(half));
	return fab_mix64(fab_mix64(half[0]) + half[1] + ((uint64_t) fab_addr_port(addr) << 48));
}

bool fab_addr_is_any(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return as_in(addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	case AF_INET6:
	case FAB_AF_GID:
		return IN6_IS_ADDR_UNSPECIFIED(&as_in6(addr)->sin6_addr);
	case FAB_AF_IB:
		return !memcmp(as_ib(addr)->sib_gid, &in6addr_any, sizeof(as_ib(addr)->sib_gid));
	default:
		return false;
	}
}

bool fab_addr_is_loopback(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ntohl(as_in(addr)->sin_addr.s_addr) >> 24 == 127;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&as_in6(addr)->sin6_addr);
	default:
		return false;
	}
}

bool fab_addr_is_link_local(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ntohl(as_in(addr)->sin_addr.s_addr) >> 16 == 0xa9fe;
	case AF_INET6:
		return IN6_IS_ADDR_LINKLOCAL(&as_in6(addr)->sin6_addr);
	default:
		return false;
	}
}

uint16_t fab_addr_port(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ntohs(as_in(addr)->sin_port);
	case AF_INET6:
	case FAB_AF_GID:
		return ntohs(as_in6(addr)->sin6_port);
	case FAB_AF_IB:
		return fab_addr_ib_port(as_ib(addr));
	default:
		return 0;
	}
}

void fab_addr_set_port(struct sockaddr *addr, uint16_t port)
{
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *) (void *) addr)->sin_port = htons(port);
	else if (addr->sa_family == AF_INET6 || addr->sa_family == FAB_AF_GID)
		((struct sockaddr_in6 *) (void *) addr)->sin6_port = htons(port);
	else if (addr->sa_family == FAB_AF_IB)
		fab_addr_ib_set_port((struct fab_sockaddr_ib *) (void *) addr, port);
}

size_t fab_addr_to_str(const struct sockaddr *addr, char *str, size_t size)
{
	char host[INET6_ADDRSTRLEN];
	union fab_any_addr full;
	struct fab_strbuf sb;

	fab_strbuf_init(&sb, str, size);
	switch (addr->sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &as_in(addr)->sin_addr, host, sizeof(host));
		fab_strbuf_printf(&sb, "fi_sockaddr_in://%s:%u", host, fab_addr_port(addr));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &as_in6(addr)->sin6_addr, host, sizeof(host));
		fab_strbuf_printf(&sb, "fi_sockaddr_in6://[%s", host);
		if (as_in6(addr)->sin6_scope_id)
			fab_strbuf_printf(&sb, "%%%u", as_in6(addr)->sin6_scope_id);
		fab_strbuf_printf(&sb, "]:%u", fab_addr_port(addr));
		break;
	case FAB_AF_IB:
		fab_addr_ib_to_str(as_ib(addr), &sb);
		break;
	case FAB_AF_GID:
		fab_addr_expand((const union fab_sockaddr *) (const void *) addr, &full);
		fab_addr_ib_to_str(&full.sib, &sb);
		break;
	default:
		fab_strbuf_printf(&sb, "address of unknown family %u", addr->sa_family);
	}
	return sb.len;
}

/* Parse a string that is one decimal number up to max. 0, or -EINVAL for anything else. */
static int parse_number(const char *str, unsigned long max, unsigned long *value)
{
	char *end;

	if (*str < '0' || *str > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoul(str, &end, 10);
	return *end || errno || *value > max ? -EINVAL : 0;
}

static int parse_scope(const char *str, uint32_t *scope)
{
	unsigned long number;

	if (!parse_number(str, UINT32_MAX, &number))
		*scope = (uint32_t) number;
	else
		*scope = if_nametoindex(str);
	return *scope ? 0 : -EINVAL;
}

static int parse_in6_host(char *host, struct sockaddr_in6 *sin6)
{
	char *scope = strchr(host, '%');

	if (scope) {
		*scope++ = '\0';
		if (parse_scope(scope, &sin6->sin6_scope_id))
			return -EINVAL;
	}
	if (!*host)
		return 0;
	return inet_pton(AF_INET6, host, &sin6->sin6_addr) == 1 ? 0 : -EINVAL;
}

/* Split "host:port" or "[host]:port", either part optional, in place. NULL if the brackets are wrong. */
static char *split_port(char *text, bool brackets, const char **port)
{
	char *host = text, *colon;

	*port = "";
	if (brackets && *text == '[') {
		host = text + 1;
		text = strchr(host, ']');
		if (!text)
			return NULL;
		*text++ = '\0';
		if (*text && *text != ':')
			return NULL;
		colon = *text ? text : NULL;
	} else {
		colon = strchr(text, ':');
		if (brackets && colon != text)
			return NULL;
	}
	if (colon) {
		*colon = '\0';
		*port = colon + 1;
		if (!**port)
			return NULL;
	}
	return host;
}

/* Move *str behind its scheme. Returns the family of the scheme, or -EINVAL. */
static int parse_scheme(const char **str)
{
	size_t i, len;

	for (i = 0; i < fab_countof(schemes); i++) {
		len = strlen(schemes[i].text);
		if (strncmp(*str, schemes[i].text, len))
			continue;
		*str += len;
		if (schemes[i].family == AF_UNSPEC)
			return **str == '[' ? AF_INET6 : AF_INET;
		return schemes[i].family;
	}
	return -EINVAL;
}

/* Split the older form, "AF_INET;host;port" and further fields, in place. Host and port may be empty or missing. */
static char *split_fields(char *text, const char **port)
{
	char *host = strchr(text, ';'), *end;

	*port = "";
	if (!host)
		return text + strlen(text);
	end = strchr(++host, ';');
	if (end) {
		*end++ = '\0';
		end[strcspn(end, ";")] = '\0';
		*port = end;
	}
	return host;
}

/* The family that the older form names, or -EINVAL if the text is not of that form. */
static int parse_family(const char *str)
{
	size_t len = strcspn(str, ";");

	if (len == 7 && !strncmp(str, "AF_INET", len))
		return AF_INET;
	return len == 8 && !strncmp(str, "AF_INET6", len) ? AF_INET6 : -EINVAL;
}

int fab_addr_from_str(const char *str, union fab_sockaddr *addr)
{
	union fab_sockaddr result = { .sin6 = { .sin6_family = AF_UNSPEC } };
	char text[FAB_ADDR_STRLEN], *host;
	unsigned long port = 0;
	const char *port_str;
	int older = parse_family(str), family = older >= 0 ? older : parse_scheme(&str);
	size_t len = older >= 0 ? strlen(str) : strcspn(str, "/?");

	if (family < 0 || len >= sizeof(text))
		return -EINVAL;
	memcpy(text, str, len);
	text[len] = '\0';

	host = older >= 0 ? split_fields(text, &port_str) : split_port(text, family == AF_INET6, &port_str);
	if (!host || (*port_str && parse_number(port_str, UINT16_MAX, &port)))
		return -EINVAL;
	result.sa.sa_family = (sa_family_t) family;
	if (family == AF_INET6 ? parse_in6_host(host, &result.sin6) :
				 *host && inet_pton(AF_INET, host, &result.sin.sin_addr) != 1)
		return -EINVAL;
	fab_addr_set_port(&result.sa, (uint16_t) port);
	*addr = result;
	return 0;
}
