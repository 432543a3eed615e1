/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The matcher of all providers: it compares hints with the offers of a provider, attribute by attribute from tables,
 * and reports a reason for every mismatch. doc/design.md, section 4; fi_getinfo(3), fi_domain(3), fi_endpoint(3).
 *
 * A provider makes a list of offers, best first, and calls fab_hints_match(). An offer is a complete fi_info with the
 * most that the provider can do. Any thread; no state between calls.
 */
#ifndef FAB_HINTS_H
#define FAB_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include "common/explain/explain.h"

/* An entry that a provider offers, and rules for matching it. */
struct fab_offer {
	/* Borrowed. Complete: it has every attribute structure, and names. The answer is a copy. Limits and bits are
	 * the most that the provider can do (caps with all modifiers, see fab_caps_full()). An enum is the answer to
	 * hints that leave it open. */
	const struct fi_info *info;
	uint64_t secondary_caps;	/* returned though not asked for (fi_getinfo(3)); the rest only on request */
	uint64_t mode_told;		/* modes that are returned if the hints have them, but not required */
	uint64_t mr_mode_need;		/* FI_MR_* that the hints must allow (verbs), those of keys and addresses if
					 * they ask for FI_RMA or FI_ATOMIC; 0 for software */
	uint64_t mr_mode_told;		/* FI_MR_* that are returned if the hints have them, but not required */
	bool mr_basic;			/* hints with FI_MR_BASIC match, though remote access needs none of its bits */
	uint64_t order_costs;		/* FI_ORDER_* of messages that cost speed: returned on request only */
	bool tclasses;			/* packets are marked with traffic classes (tclass.h) */
	size_t auth_key_max;		/* bytes of an authorization key at most; 0: keys are not supported */
	size_t tx_size, rx_size;	/* sizes for hints that leave them open, unless info has less; 0: info's */
};

/*
 * Answer fi_getinfo() from offers[0..cnt). version is the caller's API version; hints may be NULL. 0: *info is a list
 * of new entries in the order of the offers, which the caller frees; the core fills in fabric_attr->prov_name and
 * api_version. -FI_ENODATA: nothing matches; each mismatch has been reported to the core if it wants reasons.
 * -FI_ENOMEM.
 */
int fab_hints_match(const struct fi_provider *prov, uint32_t version, const struct fi_info *hints,
		   const struct fab_offer *offers, size_t cnt, struct fi_info **info);

/* Check that the info with which an application opens an endpoint or domain is within one of the offers. Of its structs
 * no more is read than that API version has. 0, -FI_ENOMEM or -FI_EINVAL. The log then names an attribute of the
 * nearest offer, the value asked for, and the value offered. Names, handles and addresses are not compared: they belong
 * to objects that are open already. */
int fab_hints_check(const struct fi_provider *prov, uint32_t version, const struct fi_info *info,
		    const struct fab_offer *offers, size_t cnt);

/* caps with the modifiers added that they imply (fi_getinfo(3)). FI_MSG or FI_TAGGED without modifiers mean FI_SEND and
 * FI_RECV. FI_RMA or FI_ATOMIC without modifiers mean FI_READ, FI_WRITE, FI_REMOTE_READ and FI_REMOTE_WRITE. */
uint64_t fab_caps_full(uint64_t caps);

#endif
