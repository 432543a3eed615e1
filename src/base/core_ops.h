/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Functions of our core for providers, above all to report why an entry of fi_getinfo() did not match. They are reached
 * through a table and not through exported symbols, since a provider may be a DSO that another core loads. Before our
 * core calls a provider for the first time, it sets
 *
 *	provider->context.internal[0] = pointer to a struct fab_core_ops that lives as long as the core
 *	provider->context.internal[1] = FAB_CORE_MAGIC
 *
 * and does not change them afterwards. A provider that finds another value in internal[1] was loaded by another core,
 * and reports nothing. A provider writes:
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
#include "base/list.h"

struct fi_info;
struct fi_provider;
struct fi_stats_page;

#define FAB_CORE_MAGIC ((void *) (uintptr_t) 0x66616263)

/* A flag beside the type in fi_param_define(): the parameter is accepted, since users' scripts set it, and has no
 * effect. The help is the reason. Our core lists the parameter so, and logs when it is set; a foreign one does not know
 * its type. */
#define FAB_PARAM_UNUSED 0x10000

/* The kind of a mismatch. It decides which entry is the nearest miss: an entry of another endpoint type is further away
 * than one whose queue is too small. */
enum fab_why_kind {
	FAB_WHY_CALL,	/* the whole call: node not resolved, nothing to offer on this machine; entry is NULL */
	FAB_WHY_WHERE,	/* the interface does not have the address that was asked for; nothing else was compared */
	FAB_WHY_WHICH,	/* a hint that selects entries: endpoint type, address or format, name, handle, protocol */
	FAB_WHY_WHAT,	/* a hint that asks for abilities: an attribute */
	FAB_WHY_LACKS,	/* the same, of flags: asked has those that the provider lacks, offered all that it has */
	FAB_WHY_NEEDS,	/* flags that the hints must allow, a mode: asked has those that they allow, offered those that
			 * the provider needs besides */
};

/* One reason. Strings are borrowed for the time of the call and have no newline. Numbers and flags are written for
 * people, as fi_tostr() or printf() does. */
struct fab_why {
	enum fab_why_kind kind;
	const char *entry;	/* "eth0 FI_EP_RDM FI_SOCKADDR_IN 10.0.0.0/8"; the same for all reasons of one entry */
	const char *attr;	/* the field, "domain_attr->mr_mode"; with FAB_WHY_CALL the parameter, "node", or an
				 * environment variable, "FI_TCP_IFACE" */
	const char *asked;	/* the value in the hints; with FAB_WHY_CALL of the parameter, or "" */
	const char *offered;	/* the provider's value; with FAB_WHY_CALL what went wrong */
};

/*
 * The memory monitor of the process: it tells the caches of registrations that virtual memory is not the same memory
 * any more, because it was unmapped, moved or discarded. src/monitor.c says how it knows.
 */

/* What a cache gives to the monitor; embedded in it. The functions are called with the monitor's lock held, by any
 * thread, among them one that must not wait for a thread that frees memory: they neither allocate nor free memory, call
 * nothing of the library, and take no lock. */
struct fab_mem_watcher {
	struct fab_list link;		/* private to the monitor */
	/* The memory in [start, end) is another one, or soon will be. */
	void (*changed)(struct fab_mem_watcher *watcher, uintptr_t start, uintptr_t end);
	/* Shrink [*start, *end) so that it has no memory that this cache wants to be watched. */
	void (*spare)(struct fab_mem_watcher *watcher, uintptr_t *start, uintptr_t *end);
};

/* Any thread, except where a function says otherwise. A thread that holds the lock must not free memory, since a free()
 * may unmap some, which waits for the monitor, which waits for the lock. */
struct fab_monitor {
	/* Begin to tell this cache. 0: the caller calls leave() later. -FI_ENOSYS: this process has no monitor (logged
	 * once), so that nothing may be cached. Lock not held. */
	int (*join)(struct fab_mem_watcher *watcher);
	/* Undo join(). Nothing calls the watcher's functions after this. Also in a child of fork(2), for the parent's
	 * watcher. Lock not held. */
	void (*leave)(struct fab_mem_watcher *watcher);
	void (*lock)(void);
	void (*unlock)(void);
	/* True if all changes of watched memory that began before this call are told before the lock can next be taken.
	 * False: one is under way, so that what is cached means nothing now. Lock not held. */
	bool (*quiet)(void);
	/* True if registrations of [addr, addr + len) that were made before are still good. Lock held. */
	bool (*valid)(uintptr_t addr, size_t len);
	/* Watch [addr, addr + len) from now on, whole pages. spare() of the caller's watcher must know this memory
	 * before the call, because unwatch() of another cache may end the watch of the same pages at any time. False:
	 * this memory cannot be watched. Lock not held. */
	bool (*watch)(uintptr_t addr, size_t len);
	/* True if this memory, which is resident by now, is of a kind whose changes are all noticed. Lock not held. */
	bool (*lasts)(uintptr_t addr, size_t len);
	/* Nobody needs [addr, addr + len) watched any more, as far as the caches do not say otherwise. Lock held. */
	void (*unwatch)(uintptr_t addr, size_t len);
	/* The settings of the caches: bytes and number of registrations, at most. */
	size_t max_size, max_cnt;
};

struct fab_core_ops {
	size_t size;		/* of this struct, in the core that filled it */
	/* True if the calling thread's fi_getinfo() wants reasons: the user asked for an explanation, or a first call
	 * of the provider found nothing. The provider then does not stop at the first mismatch of an entry, but reports
	 * them all. A matcher asks once a call, and pays nothing else for reasons while the answer is false. */
	bool (*why_wanted)(void);
	/* Report one reason; nothing happens if none are wanted. Any thread, inside of provider->getinfo() only. */
	void (*why)(const struct fi_provider *prov, const struct fab_why *why);
	/* fi_getinfo() for a provider that is layered over others: it asks all providers, including those left out by
	 * FI_PROVIDER, and logs nothing when nothing matches. Inside of provider->getinfo() a call of fi_getinfo() does
	 * the same. Any thread. */
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	/* A fabric was opened (change 1) or is about to be freed (-1). While there is one, threads may be inside of the
	 * provider and of the core, and neither is taken down at the end of the process. Any thread. */
	void (*count_fabric)(int change);
	/* fi_dupinfo() of an info that an application passed. Of its structs no more is read than the application's API
	 * version has; the copies are those of the core. Any thread. */
	struct fi_info *(*dupinfo)(uint32_t api_version, const struct fi_info *info);
	/* The page of this process (weft/stats.h), made by the first call in it, also in a child of fork(2). It stays
	 * at its address while the core is loaded. Returns NULL if there is no memory. Any thread. The slot may be
	 * NULL: there is no page. */
	struct fi_stats_page *(*stats_page)(void);
	/* Constant. */
	const struct fab_monitor *monitor;
	/* Pending operations were just looked through: if one has waited for FI_STUCK_AFTER, print what waits. Returns
	 * the nanoseconds until the next one will have, or 0: there is none, or nobody asked. Any thread; an engine's
	 * lock may be held. */
	uint64_t (*stats_stuck)(void);
};

/* Our core's table, or NULL if another core loaded the provider. internal is provider->context.internal. */
static inline const struct fab_core_ops *fab_core_ops(void *const internal[])
{
	return internal[1] == FAB_CORE_MAGIC ? (const struct fab_core_ops *) internal[0] : NULL;
}

#endif
