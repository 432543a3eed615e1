/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parts of common/net/resolve.c that read node, service and hints of fi_getinfo(3), and names of consecutive nodes,
 * each by itself, for texts and bytes of any value: texts are read up to their NUL, copies stay in their buffers, and a
 * hint is read as far as its length says. getaddrinfo(3) gives any list of addresses, or an error; the parser of
 * address texts (addr_text.c) any address of IPv4 or IPv6, or an error.
 *
 * eva: -eva-slevel 40 -eva-split-return-function strncmp:full,fab_addr_family_len:full,fab_addr_len:full
 * eva: -eva-split-return-function parse_series:full,fab_addr_from_str:full,parse_str:full
 * eva: -eva-slevel-function main:0,strlen:0,strnlen:0,strstr:0,getaddrinfo:0,any_string:0
 */
#include "resolve.h"

/* What is formatted: texts end, or are as long as the format says. */
static int two_texts(char *to, size_t size, const char *a, const char *b)
{
	(void) strlen(a);
	(void) strlen(b);
	(void) any_text(to, size);
	to[24] = '\0';			/* where a text ends, does not matter here */
	return 24;
}

uint16_t unused_addr_port(const struct sockaddr *addr);
#define fab_addr_from_str	unused_addr_from_str
#define fab_addr_port		unused_addr_port
#include "base/addr.c"
#undef fab_addr_from_str
#undef fab_addr_port
#include "common/net/resolve.c"

/* ---- below ---- */

void fab_strbuf_printf(struct fab_strbuf *sb, const char *fmt, ...)
{
	(void) sb, (void) fmt;
}

int fab_addr_from_str(const char *str, union fab_sockaddr *addr)
{
	(void) strlen(str);
	if (any_of(0, 1))
		return -FI_EINVAL;
	any_bytes(addr, sizeof(*addr));
	addr->sa.sa_family = any_of(0, 1) ? AF_INET : AF_INET6;
	return 0;
}

int fab_addr_ib_from_str(const char *str, struct fab_sockaddr_ib *sib)
{
	(void) strlen(str);
	any_bytes(sib, sizeof(*sib));
	return any_of(0, 1) ? 0 : -FI_EINVAL;
}

/* Eva does not know that a copied address has its family still. */
/*@ requires \valid_read((union fab_sockaddr *) addr);
  @ assigns \result \from *addr;
  @*/
uint16_t fab_addr_port(const struct sockaddr *addr);
/*@ requires \valid(sib) && \valid_read((char *) gid + (0 .. 15));
  @ assigns *sib \from ((char *) gid)[0 .. 15], pkey, port;
  @*/
void fab_addr_ib_set(struct fab_sockaddr_ib *sib, const void *gid, uint16_t pkey, uint16_t port);

static struct sockaddr_storage found_addr[2];
static struct addrinfo found[2];

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **list)
{
	(void) hints;
	prove(node || service);
	if (node)
		(void) strlen(node);
	if (service)
		(void) strlen(service);
	if (any_of(0, 1))
		return -(int) any_of(1, 20);
	any_bytes(found_addr, sizeof(found_addr));
	found[0].ai_addr = (struct sockaddr *) &found_addr[0];
	found[0].ai_next = any_of(0, 1) ? &found[1] : NULL;
	found[1].ai_addr = (struct sockaddr *) &found_addr[1];
	found[1].ai_next = NULL;
	*list = found;
	return 0;
}

/*@ requires list == &found[0];
  @ assigns \nothing;
  @*/
void freeaddrinfo(struct addrinfo *list);

/*@ assigns \result \from prov; */
extern bool fab_why_wanted(const struct fi_provider *prov);

/* ---- texts ---- */

#define ROOM	(NODE_MAX + 1)
static char node_mem[ROOM + 1], service_mem[ROOM + 1];


static void prove_look_up(const char *node, const char *service)
{
	union fab_sockaddr addr = { .sa.sa_family = AF_UNSPEC };
	const char *why;

	(void) resolve_look_up(node, service, any_of(0, INT32_MAX), any_family(), &addr, &why);
}

static void prove_port(const char *service)
{
	const char *why;
	uint16_t port;

	(void) parse_port(service, &port, &why);
	prove(port <= UINT16_MAX);
}

static void prove_text(const char *node)
{
	union fab_sockaddr addr = { .sa.sa_family = AF_UNSPEC };
	const char *why;

	(void) is_addr_text(node);
	if (!parse_str(node, any_family(), &addr, &why))
		prove(addr.sa.sa_family == AF_INET || addr.sa.sa_family == AF_INET6);
}

/* Its name is made as fab_resolve_nth() does. */
static void prove_series(const char *node)
{
	struct name_series series;
	char name[FI_NAME_MAX * 4];

	if (!parse_series(node, &series) || series.prefix_len > 200)
		return;
	prove(series.digits <= 18);
	(void) numbered(name, sizeof(name), (int) series.prefix_len, node, series.digits);
}

static void prove_advance(int family)
{
	union fab_sockaddr addr;

	any_bytes(&addr, sizeof(addr));
	addr.sa.sa_family = family;
	(void) addr_advance(&addr, any_of(0, UINT64_MAX));
	prove(addr.sa.sa_family == family);
}

static void prove_hint(size_t len)
{
	static char hint[sizeof(union fab_sockaddr) + 8];
	union fab_sockaddr addr = { .sa.sa_family = AF_UNSPEC };
	struct fi_info hints = { .addr_format = any_of(0, UINT32_MAX) };
	const char *why;

	any_bytes(hint + sizeof(hint) - len, len);
	(void) read_hint(&hints, hint + sizeof(hint) - len, len, any_family(), &addr, &why);
}

int main(void)
{
	prove_look_up(any_string(node_mem, ROOM, 8), NULL);
	prove_look_up(NULL, any_string(service_mem, ROOM, 8));
	prove_port(NULL);
	//@ loop unroll 40;
	for (size_t n = 0; n <= 20; n++) {
		prove_text(any_string(node_mem, ROOM, n));
		prove_series(any_string(node_mem, ROOM, n));
	}
	//@ loop unroll 40;
	for (size_t n = 0; n <= 6; n++)
		prove_port(any_string(service_mem, ROOM, n));
	//@ loop unroll 10;
	for (size_t n = SERVICE_MAX; n <= SERVICE_MAX + 1; n++)
		prove_port(any_string(service_mem, ROOM, n));
	//@ loop unroll 10;
	for (size_t n = 199; n <= 202; n++)
		prove_series(any_string(node_mem, ROOM, n));
	prove_advance(AF_INET);
	prove_advance(AF_INET6);
	//@ loop unroll 60;
	for (size_t n = 0; n <= sizeof(union fab_sockaddr) + 4; n++)
		prove_hint(n);
	reached();
	return 0;
}
