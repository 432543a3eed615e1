/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A device of two ports: an entry's endpoint is on the port that has the entry's address. */
#include "link.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void datagrams(void)
{
	struct fi_info *hints = dgram_hints_new(), *info;
	struct dgram one = { 0 }, two = { 0 };

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	MUST_BE(info->next && !info->next->next && memcmp(info->src_addr, info->next->src_addr, 16));
	MUST_BE(!strcmp(info->domain_attr->name, info->next->domain_attr->name));
	dgram_open(&one, info);
	dgram_open(&two, info->next);
	dgram_talk(&one, &two);
	dgram_talk(&two, &one);
	dgram_close(&one);
	dgram_close(&two);
	fi_freeinfo(info);
}

/* In the domain of one port there is no endpoint of the other. */
static void not_the_others(void)
{
	struct fi_info *hints = dgram_hints_new(), *info;
	struct end end = { 0 };

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	end_open(&end, fi_dupinfo(info));
	MUST_FAIL(fi_endpoint(end.domain, info->next, &end.ep, NULL), FI_EINVAL);
	end.ep = NULL;
	end_close(&end);
	fi_freeinfo(info);
}

/* Nobody listens: the text names the port. */
static void connection(void)
{
	struct fi_info *hints = hints_new(), *info;
	struct link link = { 0 };
	struct happened what;

	MUST(fi_getinfo(FI_VERSION(1, 20), "127.0.0.1", "9", 0, hints, &info));
	fi_freeinfo(hints);
	end_open(&link.a, info);
	MUST(end_open_ep(&link.a));
	MUST(fi_connect(link.a.ep, link.a.info->dest_addr, NULL, 0));
	what = await_event(&link, link.a.eq);
	MUST_BE(!what.event && what.err == FI_ECONNREFUSED);
	end_close(&link.a);
}

#define PORTS "SOFTVERBS_DEVICES=soft0=127.0.0.2;127.0.0.1"

static const struct vcase cases[] = {
	{ "datagrams of two ports", PORTS, datagrams, NULL },
	{ "an endpoint in the domain of the other port", PORTS, not_the_others,
	  "the source address belongs to soft0, port [12], " },
	{ "a connection names its port", PORTS, connection, "soft0, port 2: no connection to" },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
