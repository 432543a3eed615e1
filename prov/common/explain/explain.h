/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The way from a provider to the core (base/core_ops.h): the reasons why fi_getinfo() leaves an entry out, and
 * fi_getinfo() for providers that stand on others.
 */
#ifndef FAB_EXPLAIN_H
#define FAB_EXPLAIN_H

#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include "base/core_ops.h"

/* Does the core want reasons from this call of getinfo? Ask once, and only then build texts. */
bool fab_why_wanted(const struct fi_provider *prov);
/* Record a refusal that the provider itself decides (an address that cannot be resolved, an interface that is
 * filtered): see struct fab_why. Texts are borrowed for the call. */
void fab_why_report(const struct fi_provider *prov, enum fab_why_kind kind, const char *entry, const char *attr,
		    const char *asked, const char *offered);

/* fi_getinfo() for a provider that stands on others: FI_PROVIDER, which is about what applications get, leaves none
 * out. 0 or -FI_E*; nothing is logged. */
int fab_getinfo_below(const struct fi_provider *prov, const struct fi_info *hints, struct fi_info **info);

/* Tell the core that a fabric of the provider was opened (change 1), or is about to be freed (-1): while there is one,
 * provider and core are not taken down at the end of the process. Any thread. */
void fab_core_count_fabric(const struct fi_provider *prov, int change);

#endif
