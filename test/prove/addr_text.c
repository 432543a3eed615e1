/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The parsers of address texts (fab_addr_from_str(), fab_addr_ib_from_str()), for any text: they read it up to its NUL,
 * write within their own buffers, and give an address of IPv4 or IPv6, or of InfiniBand, or an error.
 *
 * eva: -eva-slevel 100000 -eva-slevel-function main:0
 * eva: -eva-split-return-function strlen:full,strchr:full,strcspn:full,strncmp:full,strtoull:full
 * eva: -eva-split-return-function split_port:full,split_fields:full,parse_family:full,parse_scheme:full
 * eva: -eva-split-return-function addr_ib_take:full
 */
#include "text.h"
#include "base/addr.c"
#include "base/addr_ib.c"

#define ROOM	128
static char mem[ROOM + 1];

/* Writing is not analysed. */
void fab_strbuf_printf(struct fab_strbuf *sb, const char *fmt, ...)
{
	(void) sb, (void) fmt;
}

/* A text of this start and n other bytes. Its NUL ends the array. */
static char *any_address(const char *start, size_t n)
{
	size_t len = strlen(start);
	char *text = mem + ROOM - len - n;

	memcpy(text, start, len);
	any_bytes(text + len, n);
	mem[ROOM] = '\0';
	return text;
}

static void parse(const char *text)
{
	union fab_sockaddr addr = { .sa.sa_family = AF_UNSPEC };

	if (!fab_addr_from_str(text, &addr))
		prove(addr.sa.sa_family == AF_INET || addr.sa.sa_family == AF_INET6);
	else
		prove(addr.sa.sa_family == AF_UNSPEC);
}

static void prove_ip(const char *start, size_t n)
{
	parse(any_address(start, n));
}

/* Texts about as long as the buffer of the parser: digits, and two bytes that end them somehow. */
static void prove_long(const char *start, size_t n)
{
	char *text = any_address(start, n);

	memset(text + strlen(start), '1', n - 2);
	parse(text);
}

static void prove_ib(const char *start, size_t n)
{
	struct fab_sockaddr_ib sib = { .sib_family = AF_UNSPEC };
	char *text = any_address(start, n);

	prove(fab_addr_ib_from_str(text, &sib) ? sib.sib_family == AF_UNSPEC : sib.sib_family == FAB_AF_IB);
}

static void prove_ib_long(size_t n)
{
	static const char start[] = "fi_sockaddr_ib://[";
	struct fab_sockaddr_ib sib;
	char *text = any_address(start, n);

	memset(text + sizeof(start) - 1, '1', n - 2);
	fab_addr_ib_from_str(text, &sib);
}

int main(void)
{
	//@ loop unroll 20;
	for (size_t n = 0; n <= 10; n++)
		prove_ip("", n);
	//@ loop unroll 20;
	for (size_t n = 0; n <= 5; n++) {
		prove_ip("fi_sockaddr_in://", n);
		prove_ip("fi_sockaddr_in6://", n);
		prove_ip("fi_sockaddr://", n);
		prove_ip("AF_INET;", n);
		prove_ip("AF_INET6;", n);
		prove_ib("fi_sockaddr_ib://[", n);
		prove_ib("fi_sockaddr_ib://[fe80::1]:0x", n);
	}
	//@ loop unroll 20;
	for (size_t n = FAB_ADDR_STRLEN - 3; n <= FAB_ADDR_STRLEN + 1; n++)
		prove_long("fi_sockaddr_in://", n);
	//@ loop unroll 20;
	for (size_t n = INET6_ADDRSTRLEN - 2; n <= INET6_ADDRSTRLEN + 3; n++)
		prove_ib_long(n);
	reached();
	return 0;
}
