/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A cache of registrations, for a provider that needs memory registered which the application has not registered. A
 * registration stays after its transfer, and the next transfer of the same memory finds it, until the memory changes
 * (base/core_ops.h, struct fab_monitor) or others need the room. Where there is no monitor, each transfer registers.
 *
 * A registration has exactly the bytes that were asked for, and the rights of one use of memory. So a peer that got its
 * key reaches nothing else, but it can reach those bytes as long as the registration stays.
 *
 * All functions may be called from any thread. They take the monitor's lock; "may block" means that one
 * calls the provider's functions.
 */
#ifndef FAB_MRCACHE_H
#define FAB_MRCACHE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/core_ops.h"
#include "base/list.h"

struct fi_provider;
struct fab_mrc;

#define FAB_MRC_USES	6		/* different `access` that one cache is asked for, at most */

/* A registration. It is valid for a caller from fab_mrc_find() or fab_mrc_get() until fab_mrc_put(). */
struct fab_pin {
	void *region;			/* what ops->reg made */
	/* private to mrcache.c */
	uintptr_t start, end;
	uint64_t access;
	unsigned user_cnt;
	bool cached;			/* in the table of its access; if not, it ends with its last user */
	bool changed;			/* its memory has changed while it was being registered */
	/* in cache->coming while it is being registered, in cache->idle while it is cached and has no user; in
	 * cache->dead */
	struct fab_list link;
};

struct fab_mrc_ops {
	/* Register len bytes at addr for this access: 0 and *region, or -FI_E*, logged. */
	int (*reg)(struct fab_mrc *cache, void *addr, size_t len, uint64_t access, void **region);
	void (*dereg)(struct fab_mrc *cache, void *region);
};

/* The cached registrations of one access, by address. None contains another, so they have the same order by their
 * starts and by their ends. */
struct fab_mrc_table {
	uint64_t access;
	struct fab_pin **pin;
	size_t cnt;
};

struct fab_mrc {
	struct fab_mem_watcher watcher;
	/* of the process, from the first registration on, before which there is nothing to watch; NULL: nothing is
	 * cached */
	const struct fab_monitor *_Atomic monitor;
	const struct fi_provider *prov;	/* borrowed: whose core has the monitor; NULL: nothing is cached */
	bool asked;			/* the monitor has been joined, or cannot be; dead_lock */
	const struct fab_mrc_ops *ops;
	uint32_t forks;			/* fab_fork_cnt of the process that made it; a child leaves it alone */
	size_t max_cnt, max_size;
	/* guarded by the monitor's lock */
	struct fab_mrc_table table[FAB_MRC_USES];
	size_t cnt, size;		/* of the cached registrations: number, bytes */
	struct fab_list coming;		/* struct fab_pin.link: watched, and being registered by a thread */
	struct fab_list idle;		/* likewise: least recently used first */
	pthread_mutex_t dead_lock;	/* for dead; may be taken with the monitor's lock held */
	struct fab_list dead;		/* likewise: to be deregistered by fab_mrc_reap() */
	_Atomic bool has_dead;
};

/* Make a cache. prov is whose core has the monitor; NULL: nothing is cached. 0: the caller calls
 * fab_mrc_fini() later. -FI_ENOMEM. */
int fab_mrc_init(struct fab_mrc *cache, const struct fi_provider *prov, const struct fab_mrc_ops *ops);
/* Deregister everything. No registration is in use. May block. */
void fab_mrc_fini(struct fab_mrc *cache);

/* A registration that has these bytes and all of this access; NULL if none is cached. Does not block. */
struct fab_pin *fab_mrc_find(struct fab_mrc *cache, const void *addr, size_t len, uint64_t access);
/* The same, or a new one. May block. 0; -FI_ENOMEM, or the error of ops->reg. */
int fab_mrc_get(struct fab_mrc *cache, const void *addr, size_t len, uint64_t access, struct fab_pin **pin);
/* The caller does not use the registration any more. Does not block: where it ends with that, fab_mrc_reap() has to be
 * called. True if it does. */
bool fab_mrc_put(struct fab_mrc *cache, struct fab_pin *pin);
/* Deregister what is not needed any more. May block. */
void fab_mrc_reap(struct fab_mrc *cache);

#endif
