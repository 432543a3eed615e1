/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Socket addresses of IPv4, IPv6 and InfiniBand. Pure functions: the caller owns every address, and may call from any
 * thread. An address that is passed in must have all the bytes of its family (fab_any_addr_len()); no function checks
 * this.
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

/* An InfiniBand address, laid out as the kernel's struct sockaddr_ib. Numbers are big-endian, except the scope. The low
 * 16 bits of the service id are a port, and the 16 bits above are the port space. Only bits that are set in the mask
 * count. */
#define FAB_AF_IB	27
struct fab_sockaddr_ib {
	sa_family_t sib_family;
	uint16_t sib_pkey;
	uint32_t sib_flowinfo;
	uint8_t sib_gid[16];
	uint64_t sib_sid, sib_sid_mask;
	uint64_t sib_scope_id;
};

/* Room for any address, InfiniBand included. A union fab_sockaddr is too small for a struct fab_sockaddr_ib, so that
 * providers without InfiniBand do not pay for its size. fab_addr_len() and fab_addr_from_str() do not know FAB_AF_IB
 * either. Functions that take a struct sockaddr do, except fab_addr_hash().
 *
 * Where an InfiniBand address must fit into a union fab_sockaddr (address vectors, peers of rxm), it is condensed: GID,
 * partition and port are stored in the address, flow and port of a struct sockaddr_in6 whose family is FAB_AF_GID. That
 * family is private: no application and no peer ever sees it. Functions that take a struct sockaddr know it as well,
 * except fab_addr_len() and fab_any_addr_len(). */
#define FAB_AF_GID	0x6769
union fab_any_addr {
	struct sockaddr sa;
	struct sockaddr_in sin;
	struct sockaddr_in6 sin6;
	struct fab_sockaddr_ib sib;
	union fab_sockaddr ip;
};

/* Bytes of an address of this family; 0 if it is neither AF_INET nor AF_INET6. */
socklen_t fab_addr_family_len(int family);
/* Bytes of this address, by its family; 0 if that is neither AF_INET nor AF_INET6. */
socklen_t fab_addr_len(const struct sockaddr *addr);
/* Bytes of this address, by its family; 0 if that is not AF_INET, AF_INET6 or FAB_AF_IB. */
socklen_t fab_any_addr_len(const struct sockaddr *addr);

/* True if family, address and port are the same, and the interface if the addresses are link-local. An IPv4 address and
 * its v4-mapped IPv6 form are different. */
bool fab_addr_equal(const struct sockaddr *a, const struct sockaddr *b);
/* The same without the port. */
bool fab_addr_equal_host(const struct sockaddr *a, const struct sockaddr *b);
/* A hash of address and port; addresses that are fab_addr_equal() have the same hash. Not for FAB_AF_IB, whose GID is
 * left out. */
uint64_t fab_addr_hash(const struct sockaddr *addr);

/* True for 0.0.0.0, :: and a GID of zeros. False for an unknown family. */
bool fab_addr_is_any(const struct sockaddr *addr);
/* True for 127.0.0.0/8 and ::1. False for other families. */
bool fab_addr_is_loopback(const struct sockaddr *addr);
/* True for 169.254.0.0/16 and fe80::/10. False for other families. */
bool fab_addr_is_link_local(const struct sockaddr *addr);

/* The port in host order; 0 for an unknown family. */
uint16_t fab_addr_port(const struct sockaddr *addr);
/* Set the port, given in host order. Does nothing for an unknown family. */
void fab_addr_set_port(struct sockaddr *addr, uint16_t port);

/* Write an address as text, in the form of its family:
 *	fi_sockaddr_in://1.2.3.4:5
 *	fi_sockaddr_in6://[fe80::1%2]:5			without %2 if the scope is 0
 *	fi_sockaddr_ib://[fe80::1]:0xffff:0x13f:0x0:5	GID, partition, port space, scope, port (left out if 0)
 * An unknown family is written as a sentence that says so. The text is cut off at size bytes, and ends with NUL unless
 * size is 0. Returns the length of the whole text without NUL. */
size_t fab_addr_to_str(const struct sockaddr *addr, char *str, size_t size);

/* Parse an IP address as fab_addr_to_str() writes it. An empty host means the wildcard address, and a missing ":port"
 * means port 0. The scope may also be the name of an interface. The scheme may also be fi_sockaddr://, for either
 * family. Text from '/' or '?' on is ignored. The form of older versions of fi_getinfo(3), "AF_INET;1.2.3.4;5", is
 * accepted, too. Host names are not looked up. 0, or -EINVAL with *addr unchanged. */
int fab_addr_from_str(const char *str, union fab_sockaddr *addr);

/* ---- addr_ib.c ---- */

/* Fill *sib with a GID (16 bytes, as on the wire), a partition key (host order), and a port (host order) of the port
 * space RDMA_PS_IB. Port 0 means any: the mask leaves the port out. */
void fab_addr_ib_set(struct fab_sockaddr_ib *sib, const void *gid, uint16_t pkey, uint16_t port);
/* Parse an InfiniBand address as fab_addr_to_str() writes it. The fields behind the GID may be missing from the right;
 * the partition is then 0xffff, the scope 0, the port 0. 0, or -EINVAL with *sib unchanged (also if the port space is
 * not RDMA_PS_IB). */
int fab_addr_ib_from_str(const char *str, struct fab_sockaddr_ib *sib);

struct fab_strbuf;
/* Append the text of the address, as fab_addr_to_str() describes it. For addr.c. */
void fab_addr_ib_to_str(const struct fab_sockaddr_ib *sib, struct fab_strbuf *sb);
/* The port, in host order; 0 if the mask leaves it out. For addr.c. */
uint16_t fab_addr_ib_port(const struct fab_sockaddr_ib *sib);
/* Set the port, given in host order; for 0 the mask leaves it out. For addr.c. */
void fab_addr_ib_set_port(struct fab_sockaddr_ib *sib, uint16_t port);

/* Store *full in *addr. An InfiniBand address is condensed to GID, partition and port, of the family FAB_AF_GID. An IP
 * address is copied. FAB_AF_GID is private, so an address that an application or a peer passes in with that family gets
 * AF_UNSPEC. */
void fab_addr_condense(const union fab_any_addr *full, union fab_sockaddr *addr);
/* Store *addr in *full. A condensed address becomes an InfiniBand address, in the port space RDMA_PS_IB. An IP address
 * is copied. */
void fab_addr_expand(const union fab_sockaddr *addr, union fab_any_addr *full);

#endif
