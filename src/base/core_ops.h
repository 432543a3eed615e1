/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How a provider tells our core why an entry did not fit, without a symbol of its own (a provider may be a DSO, and may
 * be loaded by somebody else's core). Before it calls a provider for the first time, our core sets
 *
 *	provider->context.internal[0] = pointer to a struct fab_core_ops that lives as long as the core
 *	provider->context.internal[1] = FAB_CORE_MAGIC
 *
 * and does not change them afterwards. A provider that finds another value in internal[1] has a foreign core, and says
 * nothing. So a provider writes:
 *
 *	const struct fab_core_ops *core = fab_core_ops(prov->context.internal);
 *	bool tell = core && core->why_wanted();		(once a call of getinfo)
 *	if (tell)
 *		core->why(prov, &(struct fab_why) { .entry = ..., .attr = ..., .asked = ..., .offered = ... });
 */
#ifndef FAB_BASE_CORE_OPS_H
#define FAB_BASE_CORE_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fi_info;
struct fi_provider;

#define FAB_CORE_MAGIC ((void *) (uintptr_t) 0x66616263)

/* What kind of thing did not fit. It decides which entry counts as the nearest miss: an entry that is not even of the
 * wanted endpoint type is further away than one that merely has too small a queue. */
enum fab_why_kind {
	FAB_WHY_CALL,	/* the call as a whole: node not resolved, nothing to offer on this machine; entry NULL */
	FAB_WHY_WHERE,	/* an interface without the address that was asked for: nothing else of it was compared */
	FAB_WHY_WHICH,	/* picks among entries: endpoint type, address or format, names, handles, protocol */
	FAB_WHY_WHAT,	/* what the entry can do: caps, mode, an attribute */
};

/* One reason. Strings are borrowed for the time of the call, without newline; numbers and flags as fi_tostr() or
 * printf() would write them for people. */
struct fab_why {
	enum fab_why_kind kind;
	const char *entry;	/* "eth0 FI_EP_RDM FI_SOCKADDR_IN 10.0.0.0/8"; the same for all reasons of one entry */
	const char *attr;	/* as in the header: "domain_attr->mr_mode"; of FAB_WHY_CALL the parameter: "node" */
	const char *asked;
	const char *offered;	/* what there is; of FAB_WHY_CALL what went wrong */
};

struct fab_core_ops {
	size_t size;		/* of this struct, in the core that filled it */
	/* True if the calling thread's fi_getinfo() wants reasons. It does only after a first call of the provider
	 * found nothing, or when asked to explain; then the provider goes on after the first mismatch of an entry, and
	 * reports every one. A matcher asks once a call and otherwise pays nothing. */
	bool (*why_wanted)(void);
	/* Report one reason. Ignored if not wanted. Any thread, inside of provider->getinfo() only. */
	void (*why)(const struct fi_provider *prov, const struct fab_why *why);
	/* fi_getinfo() as a provider means it that stands on others, and as one gets it anyway inside of
	 * provider->getinfo(): of all providers, whatever FI_PROVIDER leaves out, and without a word if there is
	 * nothing. Any thread. */
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
};

/* Our core's table, or NULL if the core is not ours. internal is that of provider->context. */
static inline const struct fab_core_ops *fab_core_ops(void *const internal[])
{
	return internal[1] == FAB_CORE_MAGIC ? (const struct fab_core_ops *) internal[0] : NULL;
}

#endif
