/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket addresses of IPv4 and IPv6, and of InfiniBand. Pure functions: the caller owns every address, and may call
 * from any thread.
 * An address handed in must be as long as its family says (fab_addr_len()), whatever else the caller has checked.
 */
#ifndef FAB_BASE_ADDR_H
#define FAB_BASE_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Room for any address, and for any address as text with its NUL. */
union fab_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in sin;
	struct sockaddr_in6 sin6;
};
#define FAB_ADDR_STRLEN 96

/* An address of InfiniBand, as the kernel's struct sockaddr_ib: numbers are big-endian, but for the scope. Of the
 * service the low 16 bits are a port, in a space of ports, as far as the mask has them. */
#define FAB_AF_IB	27
struct fab_sockaddr_ib {
	sa_family_t sib_family;
	uint16_t sib_pkey;
	uint32_t sib_flowinfo;
	uint8_t sib_gid[16];
	uint64_t sib_sid, sib_sid_mask;
	uint64_t sib_scope_id;
};

/* Room for that as well. Only those who know devices that have such addresses pay for it: where a union fab_sockaddr is
 * wanted there is none, and fab_addr_len() and fab_addr_from_str() do not know the family. What takes a struct sockaddr
 * does, but for the hash.
 *
 * In a union fab_sockaddr it is kept condensed, where it has to be (address vectors, rxm's peers): GID, partition and
 * port, as the address, flow and port of a struct sockaddr_in6 of a family of our own, which no application and no peer
 * ever sees. What takes a struct sockaddr knows that, too. */
#define FAB_AF_GID	0x6769
union fab_any_addr {
	struct sockaddr sa;
	struct sockaddr_in sin;
	struct sockaddr_in6 sin6;
	struct fab_sockaddr_ib sib;
	union fab_sockaddr ip;
};

/* Bytes of an address of this family; 0 for a family that is neither IPv4 nor IPv6. */
socklen_t fab_addr_family_len(int family);
/* The same, of the family that the address states. */
socklen_t fab_addr_len(const struct sockaddr *addr);
/* The same, of any that a union fab_any_addr has room for. */
socklen_t fab_any_addr_len(const struct sockaddr *addr);

/* Same family, address, port, and for link-local addresses the same interface. A v4-mapped IPv6 address differs from
 * the IPv4 one. fab_addr_equal_host() leaves the port aside. */
bool fab_addr_equal(const struct sockaddr *a, const struct sockaddr *b);
bool fab_addr_equal_host(const struct sockaddr *a, const struct sockaddr *b);
/* Equal addresses have equal hashes. */
uint64_t fab_addr_hash(const struct sockaddr *addr);

/* 0.0.0.0 or ::; 127.0.0.0/8 or ::1; 169.254.0.0/16 or fe80::/10. False for an unknown family. */
bool fab_addr_is_any(const struct sockaddr *addr);
bool fab_addr_is_loopback(const struct sockaddr *addr);
bool fab_addr_is_link_local(const struct sockaddr *addr);

/* Port in host order; 0 for an unknown family, which also has none to set. */
uint16_t fab_addr_port(const struct sockaddr *addr);
void fab_addr_set_port(struct sockaddr *addr, uint16_t port);

/* Write "fi_sockaddr_in://1.2.3.4:5" or "fi_sockaddr_in6://[fe80::1%2]:5" (the part from % only if there is a scope),
 * or "fi_sockaddr_ib://[fe80::1]:0xffff:0x13f:0x0:5": GID, partition, space of ports, scope, and the port, if not 0.
 * Cut off at size, always ends with NUL if size is not 0. Returns the length that the whole text needs without NUL. */
size_t fab_addr_to_str(const struct sockaddr *addr, char *str, size_t size);

/* Read what fab_addr_to_str() writes. An empty host means the wildcard address, a missing ":port" port 0; the scope may
 * be an interface's name, the scheme fi_sockaddr:// either family, and what follows the port from '/' or '?' on is
 * passed over. So is the form of the older fi_getinfo(3), "AF_INET;1.2.3.4;5". Host names are not looked up. 0, or
 * -EINVAL with *addr unchanged. */
int fab_addr_from_str(const char *str, union fab_sockaddr *addr);

/* ---- addr_ib.c ---- */

/* The address of a GID (16 bytes, as on the wire) in a partition (host order), with a port of the space of InfiniBand's
 * own ports; 0: any. */
void fab_addr_ib_set(struct fab_sockaddr_ib *sib, const void *gid, uint16_t pkey, uint16_t port);
/* Read what fab_addr_to_str() writes of an address of InfiniBand; what is behind the GID may be missing: partition
 * 0xffff, port 0. 0, or -EINVAL with *sib unchanged. */
int fab_addr_ib_from_str(const char *str, struct fab_sockaddr_ib *sib);

struct fab_strbuf;
/* What addr.c calls for this family. */
void fab_addr_ib_to_str(const struct fab_sockaddr_ib *sib, struct fab_strbuf *sb);
uint16_t fab_addr_ib_port(const struct fab_sockaddr_ib *sib);
void fab_addr_ib_set_port(struct fab_sockaddr_ib *sib, uint16_t port);

/* An address with whatever room it needs, and what is kept of it where there is less; back, one of InfiniBand's own
 * ports comes out. An IP address stays as it is. Whoever comes with FAB_AF_GID from outside has AF_UNSPEC then. */
void fab_addr_condense(const union fab_any_addr *full, union fab_sockaddr *addr);
void fab_addr_expand(const union fab_sockaddr *addr, union fab_any_addr *full);

#endif
