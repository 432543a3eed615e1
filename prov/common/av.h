/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors for IP providers, fi_av(3): index -> socket address, and address -> index. FI_AV_MAP and FI_AV_TABLE are the same
 * table: fi_addr is the index, which a table counts from 0.
 *
 * Entries live in chunks that never move, so the data path reads fab_av_addr() without a lock; an index is published after its entry. The
 * reverse table, insert and remove take av->lock. Inserting an address that is there gives its fi_addr again and counts a reference;
 * the last remove frees the index for reuse and bumps its generation. Endpoints learn of a removal through fab_av_watch.
 */
#ifndef FAB_AV_H
#define FAB_AV_H

#include <pthread.h>
#include <stdatomic.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include "base/addr.h"
#include "base/list.h"

struct fab_domain;

#define FAB_AV_CHUNK	256		/* entries in a chunk */
#define FAB_AV_CHUNKS	65536		/* so 16 Mi addresses at most: -FI_ENOSPC */

struct fab_av_entry {
	union fab_sockaddr addr;
	uint32_t ref;			/* inserts less removes; 0: free */
	uint32_t gen;
};

struct fab_av_reverse;

/* Who wants to know: an endpoint with connections. Called with av->lock NOT held, the watcher's engine lock not held. */
struct fab_av_watch {
	struct fab_list link;
	void (*inserted)(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr);
	void (*removed)(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr);
};

struct fab_av {
	struct fid_av av_fid;
	struct fab_domain *domain;	/* borrowed: open took a reference */
	uint32_t addr_format;		/* FI_SOCKADDR_IN or FI_SOCKADDR_IN6 */
	size_t addrlen;
	_Atomic uint32_t ref;		/* endpoints bound */
	pthread_mutex_t lock;
	_Atomic uint64_t cnt;		/* highest index ever used + 1 */
	struct fab_list free;
	struct fab_av_reverse *reverse;	/* address -> index (uthash) */
	struct fab_list watches;
	struct fab_eq *eq;		/* fi_av_bind for FI_EVENT inserts; borrowed with a reference, or NULL */
	_Atomic(struct fab_av_entry *) *chunks;	/* FAB_AV_CHUNKS pointers, allocated as zeroed pages, touched as needed */
};

/* The domain's fi_av_open slot. Address format is the domain's (set by the provider in fab_domain through info). 0 or -FI_E*. */
int fab_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);

/* The address at fi_addr, or NULL if there is none. No lock; the pointer stays readable until the AV closes, though a removed entry's
 * content may be reused. */
const union fab_sockaddr *fab_av_addr(const struct fab_av *av, fi_addr_t fi_addr);
/* The fi_addr of an address, or FI_ADDR_NOTAVAIL. Takes av->lock. */
fi_addr_t fab_av_find(struct fab_av *av, const union fab_sockaddr *addr);

void fab_av_watch(struct fab_av *av, struct fab_av_watch *watch);
void fab_av_unwatch(struct fab_av *av, struct fab_av_watch *watch);

#endif
