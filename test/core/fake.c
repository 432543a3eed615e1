/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Made-up providers.
 */
#include "core/fake.h"

#include "base/core_ops.h"
#include "fabric.h"
#include "registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake_a, fake_b, fake_util;

static void report(struct fake *fake)
{
	const struct fab_core_ops *core = fab_core_ops(fake->prov.context.internal);
	char entry[64], asked[16];
	unsigned i;

	if (!core->why_wanted())
		return;
	fake->told++;
	snprintf(entry, sizeof(entry), "%s-entry", fake->prov.name);
	for (i = 0; i < fake->misses; i++) {
		snprintf(asked, sizeof(asked), "%u", i);
		core->why(&fake->prov, &(struct fab_why) {
			.kind = fake->wrong_type && !i ? FAB_WHY_WHICH : FAB_WHY_WHAT, .entry = entry,
			.attr = fake->wrong_type && !i ? "ep_attr->type" : "tx_attr->size", .asked = asked,
			.offered = "7",
		});
	}
}

static int getinfo(struct fake *fake, struct fi_info **info)
{
	struct fi_info *entry, *inner = NULL, **tail = info;
	unsigned i;

	fake->calls++;
	if (fake->asks_others) {
		fake->asks_others = false;
		if (!fi_getinfo(FI_VERSION(1, 5), NULL, NULL, 0, NULL, &inner))
			fi_freeinfo(inner);
		fake->asks_others = true;
	}
	if (fake->ret)
		return fake->ret;
	if (!fake->names[0]) {
		report(fake);
		return -FI_ENODATA;
	}
	for (i = 0; fake->names[i]; i++) {
		entry = fi_allocinfo();
		if (!entry) {
			fi_freeinfo(*info);
			*info = NULL;
			return -FI_ENOMEM;
		}
		*tail = entry;
		tail = &entry->next;
		entry->addr_format = fake->addr_format;
		if (*fake->names[i])
			entry->fabric_attr->prov_name = strdup(fake->names[i]);
	}
	return 0;
}

static int fabric(struct fi_fabric_attr *attr, struct fid_fabric **fid, void *context)
{
	static struct fid_fabric object;

	(void) attr;
	object = (struct fid_fabric) { .fid = { .fclass = FI_CLASS_FABRIC, .context = context }, .api_version = 99 };
	*fid = &object;
	return 0;
}

#define FAKE(fake) \
	static int fake##_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, \
				  const struct fi_info *hints, struct fi_info **info) \
	{ \
		(void) version, (void) node, (void) service, (void) flags, (void) hints; \
		return getinfo(&fake, info); \
	} \
	static void fake##_cleanup(void) \
	{ \
		fake.cleanups++; \
	}
FAKE(fake_a)
FAKE(fake_b)
FAKE(fake_util)

/* What the core wrote into a provider that it knows already has to stay. */
static void reset(struct fake *fake, struct fake fresh)
{
	fresh.prov.context = fake->prov.context;
	fresh.prov.fi_version = FI_VERSION(2, 6);
	fresh.prov.fabric = fabric;
	*fake = fresh;
}

void fakes_register(void)
{
	bool first = !fake_a.prov.name;

	fab_init();
	reset(&fake_a, (struct fake) {
		.prov = { .name = "qa", .version = FI_VERSION(3, 1), .getinfo = fake_a_getinfo,
			  .cleanup = fake_a_cleanup },
		.names = { "" },
	});
	reset(&fake_b, (struct fake) {
		.prov = { .name = "qb", .version = FI_VERSION(3, 2), .getinfo = fake_b_getinfo,
			  .cleanup = fake_b_cleanup },
		.names = { "" },
	});
	reset(&fake_util, (struct fake) {
		.prov = { .name = "ofi_q", .version = FI_VERSION(3, 3), .getinfo = fake_util_getinfo,
			  .cleanup = fake_util_cleanup },
		.names = { "qa;ofi_q", "qb;ofi_q" },
	});
	if (!first)
		return;
	fab_registry_add(&fake_util.prov, NULL, "a test", false);
	fab_registry_add(&fake_a.prov, NULL, "a test", false);
	fab_registry_add(&fake_b.prov, NULL, "a test", false);
}

const char *fake_names(const struct fi_info *info)
{
	static char names[4096];

	names[0] = '\0';
	for (; info; info = info->next) {
		if (!strchr(info->fabric_attr->prov_name, 'q'))
			continue;
		if (*names)
			strcat(names, " ");
		strcat(names, info->fabric_attr->prov_name);
	}
	return names;
}
