/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How common/net/resolve.c puts its parts together: fab_resolve_name(), fab_resolve_gid(), fab_resolve_nth() and
 * fab_resolve(), for any node, service, flags, family and hints. The parts, which resolve.c proves each by itself, have
 * contracts here: where they need a text there is one, and a hint has as many bytes as they are told; their results are
 * any. An address is there if a call succeeds; the reason is a text whenever it is reported.
 *
 * eva: -eva-slevel 60 -eva-use-spec resolve_look_up,parse_port,parse_str,is_addr_text,addr_advance,read_hint,strnlen
 * eva: -eva-slevel-function main:0,strlen:0,any_string:0,any_family:0
 * eva: -eva-split-return-function fab_resolve_name:full,fab_resolve_gid:full
 */
#include <stddef.h>
/*@ requires text: \valid_read(s);
  @ assigns \result \from s[0 .. max - 1], max;
  @ ensures 0 <= \result <= max;
  @*/
size_t strnlen(const char *s, size_t max);
#include "resolve.h"

struct fi_info;

static int two_texts(char *to, size_t size, const char *a, const char *b)
{
	(void) strlen(a);
	(void) strlen(b);
	return any_text(to, size);
}

static const char reason[] = "reason";

/* ---- the parts ---- */

/*@ requires one_is_there: node != \null || service != \null;
  @ requires texts: (node == \null || \valid_read(node)) && (service == \null || \valid_read(service));
  @ requires \valid(addr) && \valid(why);
  @ assigns \result \from flags, family;
  @ assigns addr->sa.sa_family, ((char *) addr)[2 .. 27] \from family;
  @ assigns *why \from &reason[0];
  @ ensures why: \initialized(why) && *why == &reason[0];
  @ ensures \initialized((char *) addr + (0 .. 27));
  @ ensures family: addr->sa.sa_family == 2 || addr->sa.sa_family == 10;
  @ ensures \result == 0 || \result == -12 || \result == -22 || \result == -61;
  @*/
static int resolve_look_up(const char *node, const char *service, int flags, int family, union fab_sockaddr *addr,
			   const char **why);

/*@ requires text: service == \null || \valid_read(service);
  @ requires \valid(port) && \valid(why);
  @ assigns \result \from service[0 .. 8];
  @ assigns *port \from service[0 .. 8];
  @ assigns *why \from &reason[0];
  @ ensures \initialized(port);
  @ ensures why: *why == &reason[0];
  @ ensures \result == 0 || \result == -12 || \result == -22 || \result == -61;
  @*/
static int parse_port(const char *service, uint16_t *port, const char **why);

/*@ requires text: \valid_read(str);
  @ requires \valid(addr) && \valid(why);
  @ assigns \result \from str[0 .. 8], family;
  @ assigns addr->sa.sa_family, ((char *) addr)[2 .. 27] \from family;
  @ assigns *why \from &reason[0];
  @ ensures why: \initialized(why) && *why == &reason[0];
  @ ensures \initialized((char *) addr + (0 .. 27));
  @ ensures family: addr->sa.sa_family == 2 || addr->sa.sa_family == 10;
  @ ensures \result == 0 || \result == -12 || \result == -22 || \result == -61;
  @*/
static int parse_str(const char *str, int family, union fab_sockaddr *addr, const char **why);

/*@ requires text: \valid_read(node);
  @ assigns \result \from node[0 .. 8];
  @ ensures 0 <= \result <= 1;
  @*/
static bool is_addr_text(const char *node);

/*@ requires \valid(addr) && \initialized(&addr->sa.sa_family);
  @ assigns ((char *) addr)[2 .. 27] \from *addr, n;
  @ assigns \result \from *addr, n;
  @ ensures 0 <= \result <= 1;
  @*/
static bool addr_advance(union fab_sockaddr *addr, uint64_t n);

/*@ requires \valid_read(hints) && \valid(addr) && \valid(why);
  @ requires bytes: \valid_read((char *) data + (0 .. len - 1));
  @ assigns \result \from len, family;
  @ assigns addr->sa.sa_family, ((char *) addr)[2 .. 27] \from family;
  @ assigns *why \from &reason[0];
  @ ensures why: \initialized(why) && *why == &reason[0];
  @ ensures \initialized((char *) addr + (0 .. 27));
  @ ensures \result == 0 || \result == -12 || \result == -22 || \result == -61;
  @*/
static int read_hint(const struct fi_info *hints, const void *data, size_t len, int family, union fab_sockaddr *addr,
		     const char **why);

#include "common/net/resolve.c"

/* ---- below ---- */

/*@ requires text: \valid_read(str);
  @ requires \valid(sib);
  @ assigns \result, *sib \from str[0 .. 8];
  @*/
int fab_addr_ib_from_str(const char *str, struct fab_sockaddr_ib *sib);
/*@ requires \valid(sib) && \valid_read((char *) gid + (0 .. 15));
  @ assigns *sib \from ((char *) gid)[0 .. 15], pkey, port;
  @*/
void fab_addr_ib_set(struct fab_sockaddr_ib *sib, const void *gid, uint16_t pkey, uint16_t port);
/*@ requires \valid_read(addr) && \initialized(&addr->sa_family);
  @ assigns \result \from *addr;
  @*/
uint16_t fab_addr_port(const struct sockaddr *addr);
/*@ requires \valid(addr) && \initialized(&addr->sa_family);
  @ assigns ((char *) addr)[2 .. 3] \from port;
  @*/
void fab_addr_set_port(struct sockaddr *addr, uint16_t port);
/*@ requires \valid_read(addr) && \initialized(&addr->sa_family);
  @ assigns \result \from *addr;
  @ ensures 0 <= \result <= 1;
  @*/
bool fab_addr_is_any(const struct sockaddr *addr);

/*@ assigns \result \from \nothing;
  @ ensures 0 <= \result <= 1;
  @*/
extern bool fab_why_wanted(const struct fi_provider *prov);

/* ---- the calls ---- */

#define ROOM	(NODE_MAX + 1)
static char node_mem[ROOM + 1], service_mem[ROOM + 1], long_mem[ROOM + 1];


static void prove_name(const char *node, const char *service)
{
	union fab_sockaddr addr = { .sa.sa_family = AF_UNSPEC };
	struct fab_sockaddr_ib sib;
	const char *why;

	if (!fab_resolve_name(node, service, any_of(0, UINT64_MAX), any_family(), &addr, &why))
		prove(addr.sa.sa_family == AF_INET || addr.sa.sa_family == AF_INET6);
	(void) fab_resolve_gid(node, service, any_of(0, UINT64_MAX), &sib, &why);
}

static void prove_nth(const char *node)
{
	union fab_sockaddr addr = { .sa.sa_family = AF_UNSPEC };
	const char *why;

	if (!fab_resolve_nth(node, any_of(0, UINT64_MAX), any_of(0, UINT64_MAX), any_family(), &addr, &why))
		prove(addr.sa.sa_family == AF_INET || addr.sa.sa_family == AF_INET6);
}

static void prove_resolve(const char *node, const char *service, const struct fi_info *hints)
{
	struct fab_addr_hint out;

	(void) fab_resolve(NULL, node, service, any_of(0, UINT64_MAX), hints, any_family(), &out);
}

int main(void)
{
	static char src[32], dest[32];
	struct fi_info hints = { .addr_format = any_of(0, UINT32_MAX) };
	const char *node, *service;

	any_bytes(src, sizeof(src));
	any_bytes(dest, sizeof(dest));
	hints.src_addr = any_of(0, 1) ? src : NULL;
	hints.src_addrlen = any_of(0, sizeof(src));
	hints.dest_addr = any_of(0, 1) ? dest : NULL;
	hints.dest_addrlen = any_of(0, sizeof(dest));
	node = any_string(node_mem, ROOM, 8);
	service = any_string(service_mem, ROOM, 8);
	prove_name(node, service);
	prove_name(NULL, service);
	prove_name(node, NULL);
	prove_name(any_string(long_mem, ROOM, ROOM), NULL);
	prove_nth(node);
	prove_resolve(node, service, &hints);
	prove_resolve(NULL, service, &hints);
	prove_resolve(node, NULL, &hints);
	prove_resolve(NULL, NULL, &hints);
	prove_resolve(node, service, NULL);
	reached();
	return 0;
}
