/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A device of two ports: an entry's endpoint is on the port that has the entry's address. Which devices and interfaces
 * there are to be. */
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

/* The devices that datagrams are offered on, by name, each once. */
static void must_offer(const char *names)
{
	struct fi_info *hints = dgram_hints_new(), *info, *entry;
	char found[256] = "";

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	for (entry = info; entry; entry = entry->next) {
		strcat(found, *found ? " " : "");
		strcat(found, entry->domain_attr->name);
	}
	fi_freeinfo(info);
	if (strcmp(found, names))
		die("offered are %s", found);
}

static void three_devices(const char *names)
{
	setenv("SOFTVERBS_DEVICES", "soft0=127.0.0.1 soft1=127.0.0.2 other0=127.0.0.3", 1);
	setenv("FI_VERBS_DEVICE_NAME", names, 1);
}

/* FI_VERBS_DEVICE_NAME is a list: of names, and of their beginnings. */
static void devices_of_a_list(void)
{
	three_devices("soft1,nosuch,oth");
	must_offer("soft1-dgram other0-dgram");
}

static void no_device_of_a_list(void)
{
	three_devices("nosuch,oft1");
	hints_in_vain(dgram_hints_new());
	hints_in_vain(hints_new());
}

/* FI_VERBS_IFACE is one, too, and where none of it is there, nothing else is offered in its place. */
static void interfaces_of_a_list(void)
{
	struct fi_info *hints = hints_new(), *info;

	MUST(fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	fi_freeinfo(info);
}

static void no_interface_of_a_list(void)
{
	hints_in_vain(hints_new());
}

#define PORTS "SOFTVERBS_DEVICES=soft0=127.0.0.2;127.0.0.1"

static const struct vcase cases[] = {
	{ "datagrams of two ports", PORTS, datagrams, NULL },
	{ "an endpoint in the domain of the other port", PORTS, not_the_others,
	  "the source address belongs to soft0, port [12], " },
	{ "a connection names its port", PORTS, connection, "soft0, port 2: no connection to" },
	{ "a list of devices", NULL, devices_of_a_list, NULL },
	{ "a list of devices that are not there", NULL, no_device_of_a_list, NULL },
	{ "a list of interfaces", "FI_VERBS_IFACE=nosuch0,lo", interfaces_of_a_list, NULL },
	{ "a list of interfaces that are not there",
	  "FI_VERBS_IFACE=nosuch0,nosuch1 SOFTVERBS_DEVICES=soft0=127.0.0.1,ib", no_interface_of_a_list,
	  "FI_VERBS_IFACE=nosuch0,nosuch1: it names no interface that is up" },
};

int main(void)
{
	return run_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
