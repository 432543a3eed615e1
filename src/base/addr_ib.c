/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * InfiniBand addresses: a GID, a partition and a service id, which holds a port and its port space. No state.
 */
#include "base/addr.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/strbuf.h"

#define SCHEME		"fi_sockaddr_ib://["
#define PKEY_DEFAULT	0xffff
#define SPACE_IB	0x13f		/* RDMA_PS_IB: ports that are no other protocol's */
#define SPACE_SHIFT	16
#define PORT_MASK	UINT64_C(0xffff)

_Static_assert(sizeof(struct fab_sockaddr_ib) == 48, "as the kernel has it");

uint16_t fab_addr_ib_port(const struct fab_sockaddr_ib *sib)
{
	return (uint16_t) (be64toh(sib->sib_sid & sib->sib_sid_mask) & PORT_MASK);
}

void fab_addr_ib_set_port(struct fab_sockaddr_ib *sib, uint16_t port)
{
	sib->sib_sid = htobe64((be64toh(sib->sib_sid) & ~PORT_MASK) | port);
	sib->sib_sid_mask = htobe64(port ? UINT64_MAX : ~PORT_MASK);
}

void fab_addr_ib_set(struct fab_sockaddr_ib *sib, const void *gid, uint16_t pkey, uint16_t port)
{
	*sib = (struct fab_sockaddr_ib) {
		.sib_family = FAB_AF_IB, .sib_pkey = htons(pkey),
		.sib_sid = htobe64((uint64_t) SPACE_IB << SPACE_SHIFT),
	};
	memcpy(sib->sib_gid, gid, sizeof(sib->sib_gid));
	fab_addr_ib_set_port(sib, port);
}

void fab_addr_condense(const union fab_any_addr *full, union fab_sockaddr *addr)
{
	if (full->sa.sa_family != FAB_AF_IB) {
		*addr = full->ip;
		if (addr->sa.sa_family == FAB_AF_GID)
			addr->sa.sa_family = AF_UNSPEC;
		return;
	}
	memset(addr, 0, sizeof(*addr));
	addr->sin6.sin6_family = FAB_AF_GID;
	addr->sin6.sin6_port = htons(fab_addr_ib_port(&full->sib));
	addr->sin6.sin6_flowinfo = full->sib.sib_pkey;
	memcpy(&addr->sin6.sin6_addr, full->sib.sib_gid, sizeof(full->sib.sib_gid));
}

void fab_addr_expand(const union fab_sockaddr *addr, union fab_any_addr *full)
{
	memset(full, 0, sizeof(*full));
	if (addr->sa.sa_family == FAB_AF_GID)
		fab_addr_ib_set(&full->sib, &addr->sin6.sin6_addr, ntohs((uint16_t) addr->sin6.sin6_flowinfo),
				ntohs(addr->sin6.sin6_port));
	else
		full->ip = *addr;
}

void fab_addr_ib_to_str(const struct fab_sockaddr_ib *sib, struct fab_strbuf *sb)
{
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, sib->sib_gid, gid, sizeof(gid));
	fab_strbuf_printf(sb, SCHEME "%s]:0x%x:0x%x:0x%" PRIx64, gid, ntohs(sib->sib_pkey),
			  (unsigned) (be64toh(sib->sib_sid) >> SPACE_SHIFT & 0xffff), sib->sib_scope_id);
	if (fab_addr_ib_port(sib))
		fab_strbuf_printf(sb, ":%u", fab_addr_ib_port(sib));
}

/* Parse the prefix and a number up to max at *str, and move *str behind it. An empty *str leaves *value as it is.
 * False: the text is something else. */
static bool addr_ib_take(const char **str, const char *prefix, int base, uint64_t max, uint64_t *value)
{
	size_t len = strlen(prefix);
	unsigned long long number;
	char *end;

	if (!**str)
		return true;
	if (strncmp(*str, prefix, len) || !isxdigit((unsigned char) (*str)[len]))
		return false;
	errno = 0;
	number = strtoull(*str + len, &end, base);
	if (errno || number > max || end == *str + len)
		return false;
	*value = number;
	*str = end;
	return true;
}

int fab_addr_ib_from_str(const char *str, struct fab_sockaddr_ib *sib)
{
	uint64_t pkey = PKEY_DEFAULT, space = SPACE_IB, scope = 0, port = 0;
	char gid[INET6_ADDRSTRLEN];
	struct in6_addr bytes;
	const char *end;
	size_t len;

	if (strncmp(str, SCHEME, strlen(SCHEME)))
		return -EINVAL;
	str += strlen(SCHEME);
	end = strchr(str, ']');
	len = end ? (size_t) (end - str) : sizeof(gid);
	if (len >= sizeof(gid))
		return -EINVAL;
	memcpy(gid, str, len);
	gid[len] = '\0';
	str = end + 1;
	if (inet_pton(AF_INET6, gid, &bytes) != 1 || !addr_ib_take(&str, ":0x", 16, UINT16_MAX, &pkey) ||
	    !addr_ib_take(&str, ":0x", 16, UINT16_MAX, &space) || !addr_ib_take(&str, ":0x", 16, UINT64_MAX, &scope) ||
	    !addr_ib_take(&str, ":", 10, UINT16_MAX, &port) || *str || space != SPACE_IB)
		return -EINVAL;
	fab_addr_ib_set(sib, &bytes, (uint16_t) pkey, (uint16_t) port);
	sib->sib_scope_id = scope;
	return 0;
}
