/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fi_getinfo_test: what fi_getinfo() finds, and what it must not find. */
#include "lib/getinfo_attrs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define SERVICE "4711"

/* Whether an entry is what was asked for. */
typedef bool check_info(const struct unit *unit, const struct fi_info *info);

/* Every entry that the hints (freed here) find passes the check, and there is one. */
static int expect_all(struct unit *unit, const char *node, const char *service, uint64_t flags, struct fi_info *hints,
		      check_info *check)
{
	struct fi_info *list = NULL, *info;
	int ret;

	if (!hints)
		return unit_fail(-FI_ENOMEM, "hints");
	ret = fi_getinfo(GETINFO_VERSION, node, service, flags, hints, &list);
	fi_freeinfo(hints);
	if (ret)
		return unit_fail(ret, "fi_getinfo");
	for (info = list; info && check(unit, info); info = info->next)
		;
	fi_freeinfo(list);
	return info ? unit_fail(0, "an entry that was not asked for") : 0;
}

static bool is_complete(const struct unit *unit, const struct fi_info *info)
{
	(void) unit;
	return info->fabric_attr->name && info->fabric_attr->prov_name && info->domain_attr->name && info->caps &&
	       info->ep_attr->type != FI_EP_UNSPEC && info->ep_attr->max_msg_size;
}

static bool has_source(const struct unit *unit, const struct fi_info *info)
{
	return is_complete(unit, info) && info->src_addr && info->src_addrlen;
}

static bool has_dest(const struct unit *unit, const struct fi_info *info)
{
	return is_complete(unit, info) && info->dest_addr && info->dest_addrlen;
}

/* The type, domain and fabric of the interface that the program has opened. */
static bool is_same(const struct unit *unit, const struct fi_info *info)
{
	const struct fi_info *ours = unit->info;

	return info->ep_attr->type == ours->ep_attr->type && (info->caps & FI_MSG) &&
	       !strcmp(info->domain_attr->name, ours->domain_attr->name) &&
	       !strcmp(info->fabric_attr->name, ours->fabric_attr->name);
}

static int no_hints(struct unit *unit)
{
	return expect_all(unit, NULL, NULL, 0, fi_allocinfo(), is_complete);
}

static int source(struct unit *unit)
{
	return expect_all(unit, unit->src, SERVICE, FI_SOURCE, unit_hints(unit, 0, FI_EP_UNSPEC), has_source);
}

static int destination(struct unit *unit)
{
	return expect_all(unit, unit->src, SERVICE, 0, unit_hints(unit, 0, FI_EP_UNSPEC), has_dest);
}

/* Hints that name what the opened interface has. */
static int same(struct unit *unit)
{
	struct fi_info *hints = unit_hints(unit, FI_MSG, unit->info->ep_attr->type);

	if (hints) {
		free(hints->domain_attr->name);
		hints->domain_attr->name = strdup(unit->info->domain_attr->name);
		free(hints->fabric_attr->name);
		hints->fabric_attr->name = strdup(unit->info->fabric_attr->name);
	}
	return expect_all(unit, unit->src, NULL, FI_SOURCE, hints, is_same);
}

static int wrong_provider(struct unit *unit)
{
	struct fi_info *hints = unit_hints(unit, 0, FI_EP_UNSPEC);

	if (hints) {
		free(hints->fabric_attr->prov_name);
		hints->fabric_attr->prov_name = strdup("no-such-provider");
	}
	return getinfo_ask_none(hints);
}

static int wrong_domain(struct unit *unit)
{
	struct fi_info *hints = unit_hints(unit, 0, FI_EP_UNSPEC);

	if (hints) {
		free(hints->domain_attr->name);
		hints->domain_attr->name = strdup("no-such-domain");
	}
	return getinfo_ask_none(hints);
}

/* More than the provider offers. */
static int too_large(struct unit *unit)
{
	struct fi_info *hints = unit_hints(unit, 0, unit->info->ep_attr->type);

	if (unit->info->ep_attr->max_msg_size == SIZE_MAX) {
		fi_freeinfo(hints);
		return unit_skip("messages have no limit");
	}
	if (hints) {
		free(hints->fabric_attr->prov_name);
		hints->fabric_attr->prov_name = strdup(unit->info->fabric_attr->prov_name);
		hints->ep_attr->max_msg_size = SIZE_MAX;
	}
	return getinfo_ask_none(hints);
}

static int newer_version(struct unit *unit)
{
	struct fi_info *list = NULL;
	int ret;

	(void) unit;
	ret = fi_getinfo(FI_VERSION(FI_MAJOR(fi_version()) + 1, 0), NULL, NULL, 0, NULL, &list);
	fi_freeinfo(list);
	return ret == -FI_ENOSYS ? 0 : unit_fail(ret, "fi_getinfo, which must be -FI_ENOSYS");
}

static int duplicate(struct unit *unit)
{
	struct fi_info *copy = fi_dupinfo(unit->info);
	bool same_text;

	if (!copy)
		return unit_fail(-FI_ENOMEM, "fi_dupinfo");
	same_text = is_same(unit, copy) && copy->domain_attr->name != unit->info->domain_attr->name && !copy->next;
	fi_freeinfo(copy);
	return same_text ? 0 : unit_fail(0, "a copy that differs, or is none");
}

static bool anything(const struct fi_info *hints, const struct fi_info *info)
{
	(void) hints;
	return info->fabric_attr && info->domain_attr && info->ep_attr && info->tx_attr && info->rx_attr;
}

static int wrong_fabric(struct unit *unit)
{
	struct fi_info *hints = getinfo_hints(unit);

	if (hints) {
		free(hints->fabric_attr->name);
		hints->fabric_attr->name = strdup("no-such-fabric");
	}
	return getinfo_ask_none(hints);
}

static int old_versions(struct unit *unit)
{
	struct fi_info *list = NULL, *info;
	unsigned minor;
	int ret = 0;

	(void) unit;
	for (minor = 0; minor <= 17 && !ret; minor++) {
		ret = fi_getinfo(FI_VERSION(1, minor), NULL, NULL, 0, NULL, &list);
		if (ret == -FI_ENODATA && minor < 5)
			ret = 0;
		for (info = list; info && !ret; info = info->next) {
			if (info->fabric_attr->api_version != FI_VERSION(1, minor))
				ret = unit_fail(info->fabric_attr->api_version, "api_version of an entry");
		}
		fi_freeinfo(list);
		list = NULL;
	}
	return ret < 0 ? unit_fail(ret, "fi_getinfo of an old version") : ret;
}

/* The source, or the destination, in the hints. */
static int addr_in_hints(struct unit *unit, bool source)
{
	struct fi_info *hints = getinfo_hints(unit);
	size_t len = unit->info->src_addrlen;
	void *addr;

	if (!unit->info->src_addr || !hints) {
		fi_freeinfo(hints);
		return unit_skip("the interface has no address");
	}
	addr = malloc(len);
	if (addr)
		memcpy(addr, unit->info->src_addr, len);
	hints->addr_format = unit->info->addr_format;
	*(source ? &hints->src_addr : &hints->dest_addr) = addr;
	*(source ? &hints->src_addrlen : &hints->dest_addrlen) = addr ? len : 0;
	return getinfo_ask(unit, hints, anything, NULL);
}

static int src_in_hints(struct unit *unit)
{
	return addr_in_hints(unit, true);
}

static int dest_in_hints(struct unit *unit)
{
	return addr_in_hints(unit, false);
}

static int numeric_host(struct unit *unit)
{
	struct fi_info *list = NULL;
	struct fi_info *hints = getinfo_hints(unit);
	int ret, bad;

	if (!hints)
		return unit_fail(-FI_ENOMEM, "hints");
	ret = fi_getinfo(GETINFO_VERSION, "127.0.0.1", SERVICE, FI_SOURCE | FI_NUMERICHOST, hints, &list);
	fi_freeinfo(list);
	list = NULL;
	bad = fi_getinfo(GETINFO_VERSION, "localhost", SERVICE, FI_SOURCE | FI_NUMERICHOST, hints, &list);
	fi_freeinfo(list);
	fi_freeinfo(hints);
	if (ret && ret != -FI_ENODATA)
		return unit_fail(ret, "fi_getinfo of a numeric host");
	return bad ? 0 : unit_fail(bad, "fi_getinfo of a name with FI_NUMERICHOST");
}

static int providers_only(struct unit *unit)
{
	struct fi_info *list = NULL, *info;
	int ret = fi_getinfo(GETINFO_VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list);
	bool named = true;

	(void) unit;
	for (info = list; info; info = info->next)
		named = named && info->fabric_attr && info->fabric_attr->prov_name && info->fabric_attr->prov_version;
	fi_freeinfo(list);
	if (ret)
		return unit_fail(ret, "fi_getinfo");
	return named ? 0 : unit_fail(0, "a provider without name or version");
}

int main(int argc, char **argv)
{
	static const struct unit_test tests[] = {
		{ "empty hints find complete entries", no_hints },
		{ "FI_SOURCE: node and service are the source address", source },
		{ "node and service are the destination", destination },
		{ "names, type and capabilities choose", same },
		{ "a provider that does not exist", wrong_provider },
		{ "a domain that does not exist", wrong_domain },
		{ "messages longer than the limit", too_large },
		{ "a version newer than the library", newer_version },
		{ "fi_dupinfo copies", duplicate },
		{ "FI_NUMERICHOST: no names", numeric_host },
		{ "FI_PROV_ATTR_ONLY: providers and their versions", providers_only },
		{ "the source in the hints", src_in_hints },
		{ "the destination in the hints", dest_in_hints },
		{ "versions 1.0 to 1.17 of the interface", old_versions },
		{ "a fabric that does not exist", wrong_fabric },
	};
	const struct unit_program program = {
		.about = "Ask fi_getinfo() for what there is and what there is not.",
		.caps = FI_MSG,
		.tests = tests,
		.test_cnt = sizeof(tests) / sizeof(tests[0]),
		.more_tests = getinfo_attr_tests,
		.more_test_cnt = getinfo_attr_test_cnt,
	};

	return unit_main(argc, argv, &program);
}
