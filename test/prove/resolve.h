/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * For programs that analyse common/net/resolve.c, included before it: what it formats, where it reports reasons, and
 * texts and families of any value. two_texts(to, size, a, b) is the program's.
 */
#ifndef PROVE_RESOLVE_H
#define PROVE_RESOLVE_H

#include "text.h"
#include <netdb.h>
#include "base/addr.h"
#include "common/explain/explain.h"

/* The name of a later node is made of the node, up to its digits, and a number of as many. */
static int numbered(char *to, size_t size, int len, const char *node, int digits)
{
	prove(len >= 0 && len + digits < (int) size && digits <= 20);
	prove_readable(node, len);
	return any_text(to, size);
}
static int one_text(char *to, size_t size, const char *a)
{
	(void) strlen(a);
	return any_text(to, size);
}
#undef snprintf
#define FORM(_1, _2, _3, _4, _5, _6, _7, name, ...)	name
#define FORM_1(to, size, fmt, a)			one_text(to, size, a)
#define FORM_2(to, size, fmt, a, b)			two_texts(to, size, a, b)
#define FORM_4(to, size, fmt, len, node, digits, n)	numbered(to, size, len, node, digits)
#define snprintf(...)	FORM(__VA_ARGS__, FORM_4, , FORM_2, FORM_1, , , )(__VA_ARGS__)

void fab_why_report(const struct fi_provider *prov, enum fab_why_kind kind, const char *entry, const char *attr,
		    const char *asked, const char *offered)
{
	(void) prov, (void) kind, (void) entry;
	(void) strlen(attr);
	(void) strlen(asked);
	(void) strlen(offered);
}

/* n bytes of any value, and a NUL that ends mem, which has room + 1 bytes. */
static const char *any_string(char *mem, size_t room, size_t n)
{
	char *text = mem + room - n;

	any_bytes(text, n);
	mem[room] = '\0';
	return text;
}

static int any_family(void)
{
	return any_of(0, 1) ? AF_UNSPEC : any_of(0, 1) ? AF_INET : AF_INET6;
}

#endif
