/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors for IP providers, fi_av(3): index -> socket address, and address -> index. FI_AV_MAP and FI_AV_TABLE
 * are the same table: fi_addr is the index; a new address gets the lowest that is free.
 *
 * Entries live in chunks that never move, each twice the one before, so the data path reads fab_av_addr() without a
 * lock; an entry is published after its content. Inserting an address that is there gives its fi_addr again and counts
 * a reference; the last remove frees the index. Endpoints learn of both through fab_av_watch. A vector with a name is a
 * copy of one that processes share (av_shared.h). One with an owner (FI_PEER, fi_peer(3)) is shaped as that, and names
 * its entries by the owner's numbers as far as the owner gives them (FI_AV_USER_ID).
 *
 * Locks: change_lock makes insert, remove and what watchers hear of them one sequence; lock guards the reverse table.
 * Order: change_lock, engine lock, lock.
 */
#ifndef FAB_AV_H
#define FAB_AV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <rdma/fi_domain.h>
#include "base/addr.h"
#include "base/list.h"

struct fab_auth_key;
struct fab_av_extra;
struct fab_av_keys;
struct fab_av_shared;
struct fab_domain;
struct fab_eq;

#define FAB_AV_FIRST	64		/* entries in the first chunk */
#define FAB_AV_CHUNKS	18
#define FAB_AV_MAX	(((uint64_t) FAB_AV_FIRST << FAB_AV_CHUNKS) - FAB_AV_FIRST)	/* entries in all: 16 Mi */

struct fab_av_entry {
	union fab_sockaddr addr;
	_Atomic uint32_t ref;		/* inserts less removes, with FAB_AV_FIREWALLED or not; 0: free */
};
#define FAB_AV_FIREWALLED (1u << 31)	/* FI_FIREWALL_ADDR: it connects to us, and we not to it */

/* Who wants to know: an endpoint with connections. Called in the order of the changes, with change_lock held: no call
 * on the AV that changes it, watches or stops watching from in here; av->lock and the engine's lock are free. */
struct fab_av_watch {
	struct fab_list link;
	void (*inserted)(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr);
	void (*removed)(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr);
};

struct fab_av {
	struct fid_av av_fid;
	struct fab_domain *domain;	/* borrowed: open took a reference */
	int family;			/* of what is in it: AF_INET, AF_INET6 or FAB_AF_GID */
	int rx_ctx_bits;		/* of an fi_addr, from the top, are the receive context's (fi_rx_addr(3)) */
	size_t addrlen;
	bool async;			/* FI_EVENT: results of an insert go to eq */
	/* opened with FI_AV_USER_ID: completions name entries by numbers of the program */
	bool user_ids;
	struct fab_av_shared *shared;	/* owned: the vector has a name, see av_shared.h; or NULL */
	uint64_t told_gen;		/* of shared, up to which watchers know; change_lock */
	uint64_t import_gen;		/* likewise, up to which new entries were taken over; lock */
	struct fab_av_keys *keys;	/* owned: FI_AV_AUTH_KEY, see av_key.h; or NULL */
	_Atomic uint32_t ref;		/* endpoints bound, sets open */
	struct fab_eq *eq;		/* fi_av_bind; borrowed with a reference, or NULL */
	pthread_mutex_t change_lock;	/* guards what follows up to lock */
	struct fab_list watches;
	/* a bit for each index below cnt: taken, and the watchers know; owned. Changed with both locks held */
	uint64_t *used;
	uint64_t lowest;		/* no index below it is free */
	pthread_mutex_t lock;		/* guards the reverse table */
	uint32_t *slots;		/* open addressing by hash of the address: index + 1, or 0; owned */
	uint32_t slot_mask;
	uint32_t addr_cnt;		/* addresses there are */
	_Atomic uint64_t cnt;		/* indices ever used: entries below are readable */
	_Atomic(struct fab_av_entry *) chunk[FAB_AV_CHUNKS];	/* owned */
	/* owned; likewise, where there are user ids or keys */
	_Atomic(struct fab_av_extra *) extra[FAB_AV_CHUNKS];
};

/* The domain's fi_av_open slot. The address format is the domain's. 0 or -FI_E*. */
int fab_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);

/* An endpoint was bound to the AV, or a set opened, or lets go: fi_close of it is -FI_EBUSY meanwhile. */
static inline void fab_av_get(struct fab_av *av)
{
	atomic_fetch_add(&av->ref, 1);
}

static inline void fab_av_put(struct fab_av *av)
{
	atomic_fetch_sub(&av->ref, 1);
}

/* The address at fi_addr, or NULL if there is none. No lock; the pointer stays readable until the AV closes, though a
 * removed entry's content may be reused. */
const union fab_sockaddr *fab_av_addr(const struct fab_av *av, fi_addr_t fi_addr);
/* The fi_addr of an address, with FI_AV_AUTH_KEY that of the address under this key (else key is NULL), or
 * FI_ADDR_NOTAVAIL. Takes av->lock; an engine's lock may be held. */
fi_addr_t fab_av_find_under(struct fab_av *av, const union fab_sockaddr *addr, const struct fab_auth_key *key);

static inline fi_addr_t fab_av_find(struct fab_av *av, const union fab_sockaddr *addr)
{
	return fab_av_find_under(av, addr, NULL);
}

/* Was it inserted with FI_FIREWALL_ADDR? That holds for this process, until the entry is removed. No lock. */
bool fab_av_is_firewalled(const struct fab_av *av, fi_addr_t fi_addr);

/* What an entry has beside its address; NULL: there is no such thing in this vector, or never was such an entry. */
struct fab_av_extra *fab_av_extra(const struct fab_av *av, fi_addr_t fi_addr);
/* What completions name an entry by. FI_ADDR_NOTAVAIL stays that. No lock. */
fi_addr_t fab_av_user_id(const struct fab_av *av, fi_addr_t fi_addr);

/* fi_rx_addr(3): the receive context that an fi_addr names, and the fi_addr without it. */
static inline uint64_t fab_av_rx_ctx(const struct fab_av *av, fi_addr_t fi_addr)
{
	return av->rx_ctx_bits ? fi_addr >> (64 - av->rx_ctx_bits) : 0;
}

static inline fi_addr_t fab_av_no_ctx(const struct fab_av *av, fi_addr_t fi_addr)
{
	return fi_addr == FI_ADDR_UNSPEC ? fi_addr : fi_addr & (UINT64_MAX >> av->rx_ctx_bits);
}

/* No lock held: changes are told from here on, or no longer once unwatch has returned. */
void fab_av_watch(struct fab_av *av, struct fab_av_watch *watch);
void fab_av_unwatch(struct fab_av *av, struct fab_av_watch *watch);

#endif
