/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The one matcher: hints against what a provider offers, attribute by attribute from tables, with a reason for every
 * refusal. doc/design.md, section 4; fi_getinfo(3), fi_domain(3), fi_endpoint(3).
 *
 * A provider makes its offers - complete fi_info entries, best first, each saying the most it can do - and calls
 * fab_hints_match(). Any thread; nothing is kept between calls.
 */
#ifndef FAB_HINTS_H
#define FAB_HINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include "common/explain/explain.h"

/* What an offer is, beyond the entry itself. */
struct fab_offer {
	/* The provider's; complete: every attribute struct, names. Copied into the answer. Limits and bits are the most
	 * that can be had (caps with modifiers spelled out), enums what is answered to hints that leave them open. */
	const struct fi_info *info;
	uint64_t secondary_caps;	/* returned though not asked for (fi_getinfo(3)); the rest only on request */
	uint64_t mode_told;		/* FI_RX_CQ_DATA ...: what the provider does to the willing; not demanded */
	uint64_t mr_mode_need;		/* FI_MR_* that the hints must allow (verbs), those of keys and addresses if
					 * they ask for FI_RMA or FI_ATOMIC; 0 for software */
	uint64_t mr_mode_can;		/* FI_MR_* honoured when asked for; the answer drops other bits of a hint */
	uint64_t order_costs;		/* FI_ORDER_* of messages that cost something: answered on request only */
	bool tclasses;			/* packets are marked with traffic classes (tclass.h) */
	size_t auth_key_max;		/* bytes of an authorization key at most, echoed; 0: there are none */
	size_t tx_size, rx_size;	/* answered when the hints leave them open, if info has as much; 0: info's */
};

/*
 * Answer fi_getinfo from offers[0..cnt). version is the caller's API version, hints may be NULL. On success *info is a
 * list of freshly allocated entries, in the order of the offers, fabric_attr->prov_name and api_version left to the
 * core. 0, -FI_ENODATA (every refusal has been recorded through the core, if it wants to know), -FI_ENOMEM.
 */
int fab_hints_match(const struct fi_provider *prov, uint32_t version, const struct fi_info *hints,
		   const struct fab_offer *offers, size_t cnt, struct fi_info **info);

/* Is an info, with which the application opens an endpoint or domain, within one of the offers? 0, or -FI_EINVAL with a
 * log line that names the attribute nearest to it, what was asked and what there is. Names, handles and addresses are
 * not looked at: the objects at hand have them. */
int fab_hints_check(const struct fi_provider *prov, uint32_t version, const struct fi_info *info,
		    const struct fab_offer *offers, size_t cnt);

/* caps with the modifiers that they leave open spelled out (fi_getinfo(3)): FI_MSG or FI_TAGGED alone mean FI_SEND and
 * FI_RECV, FI_RMA or FI_ATOMIC alone mean FI_READ, FI_WRITE, FI_REMOTE_READ and FI_REMOTE_WRITE. */
uint64_t fab_caps_full(uint64_t caps);

#endif
