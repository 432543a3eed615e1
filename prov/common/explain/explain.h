/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls from a provider to the core (base/core_ops.h): reasons why fi_getinfo() leaves an entry out, fi_getinfo() for
 * layered providers, copies of infos, and the number of open fabrics. They do nothing, or the plain call, where another
 * core loaded the provider.
 */
#ifndef FAB_EXPLAIN_H
#define FAB_EXPLAIN_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include "base/core_ops.h"

/* True if the core wants reasons from this call of getinfo(). Called once for each; texts are made only if it is
 * true. */
bool fab_why_wanted(const struct fi_provider *prov);
/* Report a reason that the matcher does not know of (an address that cannot be resolved, an interface that is left
 * out); see struct fab_why. Texts are borrowed for the call. */
void fab_why_report(const struct fi_provider *prov, enum fab_why_kind kind, const char *entry, const char *attr,
		    const char *asked, const char *offered);

/* fi_getinfo() for a provider that is layered over others. FI_PROVIDER leaves out none of them, since it is about what
 * applications get. 0 with a list that the caller frees, or -FI_E*; nothing is logged. */
int fab_getinfo_below(const struct fi_provider *prov, const struct fi_info *hints, struct fi_info **info);

/* Copy an info that an application passed. Of its structs no more is read than the application's API version has. The
 * caller frees the copy with fi_freeinfo(). NULL: no memory. */
struct fi_info *fab_info_copy(const struct fi_provider *prov, uint32_t api_version, const struct fi_info *info);

/* Tell the core that a fabric of the provider was opened (change is 1), or is about to be freed (-1). While any is
 * open, provider and core are not cleaned up at the end of the process. Any thread. */
void fab_core_count_fabric(const struct fi_provider *prov, int change);

/* The memory monitor of the process (base/core_ops.h); NULL: the provider was loaded by a core that has none. */
const struct fab_monitor *fab_core_monitor(const struct fi_provider *prov);

#endif
