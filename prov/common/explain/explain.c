/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls from a provider to the core through its table (base/core_ops.h): reasons (inside of provider->getinfo() only),
 * fi_getinfo() for layered providers, copies of infos, and the number of open fabrics.
 */
#include "common/explain/explain.h"

bool fab_why_wanted(const struct fi_provider *prov)
{
	const struct fab_core_ops *core = fab_core_ops(prov->context.internal);

	return core && core->why_wanted();
}

void fab_why_report(const struct fi_provider *prov, enum fab_why_kind kind, const char *entry, const char *attr,
		    const char *asked, const char *offered)
{
	const struct fab_core_ops *core = fab_core_ops(prov->context.internal);

	if (core)
		core->why(prov, &(struct fab_why) { .kind = kind, .entry = entry, .attr = attr, .asked = asked,
			  .offered = offered });
}

/* True if the table of the core has the member. An older core may lack the last members. */
#define CORE_HAS(core, member) \
	((core) && (core)->size >= offsetof(struct fab_core_ops, member) + sizeof((core)->member) && (core)->member)

int fab_getinfo_below(const struct fi_provider *prov, const struct fi_info *hints, struct fi_info **info)
{
	const struct fab_core_ops *core = fab_core_ops(prov->context.internal);
	uint32_t version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);

	return (CORE_HAS(core, getinfo) ? core->getinfo : fi_getinfo)(version, NULL, NULL, 0, hints, info);
}

struct fi_info *fab_info_copy(const struct fi_provider *prov, uint32_t api_version, const struct fi_info *info)
{
	const struct fab_core_ops *core = fab_core_ops(prov->context.internal);

	return CORE_HAS(core, dupinfo) ? core->dupinfo(api_version, info) : fi_dupinfo(info);
}

void fab_core_count_fabric(const struct fi_provider *prov, int change)
{
	const struct fab_core_ops *core = fab_core_ops(prov->context.internal);

	if (CORE_HAS(core, count_fabric))
		core->count_fabric(change);
}

const struct fab_monitor *fab_core_monitor(const struct fi_provider *prov)
{
	const struct fab_core_ops *core = fab_core_ops(prov->context.internal);

	return CORE_HAS(core, monitor) ? core->monitor : NULL;
}
