/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors of providers, fi_av(3). A vector maps an index to an address (IP address and port, or a GID with
 * partition and service for verbs), and back. FI_AV_MAP and FI_AV_TABLE use the same table: an fi_addr_t is the index.
 * A new address gets the lowest free index.
 *
 * Entries are in chunks that never move. Each chunk is twice as large as the one before. An entry is published after
 * its content is written, so the data path reads fab_av_addr() without a lock. Inserting an address that is in the
 * vector already returns its fi_addr_t again and adds a reference. Removing the last reference frees the index. struct
 * fab_av_watch tells endpoints of both.
 *
 * A vector with a name is a copy of one that processes share (av_shared.h). A vector that was opened with FI_PEER
 * (fi_peer(3)) takes its attributes from its owner's vector; its completions have the owner's user ids if the owner
 * sets them (FI_AV_USER_ID).
 *
 * Locks: change_lock makes an insert or remove and its calls of watchers one sequence. lock guards the reverse table.
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

#define FAB_AV_FIRST	64		/* entries of the first chunk */
#define FAB_AV_CHUNKS	18
#define FAB_AV_MAX	(((uint64_t) FAB_AV_FIRST << FAB_AV_CHUNKS) - FAB_AV_FIRST)	/* of all chunks: 16 Mi */

struct fab_av_entry {
	union fab_sockaddr addr;
	_Atomic uint32_t ref;		/* inserts less removes, possibly with FAB_AV_FIREWALLED; 0: the index is
					 * free */
};
#define FAB_AV_FIREWALLED (1u << 31)	/* FI_FIREWALL_ADDR: the peer connects to us; we do not connect to it */

/* The part of an endpoint that follows the changes of a vector. The calls come in the order of the changes, on the
 * thread that makes them, with change_lock held. They must not change the vector, and must not call fab_av_watch() or
 * fab_av_unwatch(). av->lock and the engine's lock are not held, and may be taken. */
struct fab_av_watch {
	struct fab_list link;
	void (*inserted)(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr);
	void (*removed)(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr);
};

struct fab_av {
	struct fid_av av_fid;
	struct fab_domain *domain;	/* borrowed: open took a reference */
	int family;			/* of its addresses: AF_INET, AF_INET6 or FAB_AF_GID */
	int rx_ctx_bits;		/* the topmost bits of an fi_addr_t that are the receive context
					 * (fi_rx_addr(3)) */
	size_t addrlen;
	bool async;			/* FI_EVENT: results of an insert are written to eq, or to the domain's */
	/* opened with FI_AV_USER_ID: completions contain the application's user ids in place of indices */
	bool user_ids;
	struct fab_av_shared *shared;	/* owned: of a vector with a name, see av_shared.h; else NULL */
	uint64_t told_gen;		/* generation of shared up to which watchers have been called; change_lock */
	uint64_t import_gen;		/* generation of shared up to which new entries have been copied; lock */
	struct fab_av_keys *keys;	/* owned: with FI_AV_AUTH_KEY, see av_key.h; else NULL */
	_Atomic uint32_t ref;		/* counts endpoints bound, sets open and exported forms */
	struct fab_eq *eq;		/* bound with fi_av_bind(); has a reference; or NULL */
	pthread_mutex_t change_lock;	/* guards the members from here to lock */
	struct fab_list watches;
	/* owned; bit n: index n is in use, and the watchers have been told. Changed with both locks held */
	uint64_t *used;
	uint64_t lowest;		/* no lower index is free */
	pthread_mutex_t lock;		/* guards changes of entries, and the reverse table: slots, slot_mask,
					 * addr_cnt */
	uint32_t *slots;		/* owned; open addressing by the hash of the address: index + 1, or 0 if
					 * empty */
	uint32_t slot_mask;
	uint32_t addr_cnt;		/* addresses in the table */
	_Atomic uint64_t cnt;		/* indices used so far; entries of lower indices may be read */
	_Atomic(struct fab_av_entry *) chunk[FAB_AV_CHUNKS];	/* owned */
	/* owned; parallel to chunk, if the vector has user ids or keys */
	_Atomic(struct fab_av_extra *) extra[FAB_AV_CHUNKS];
};

/* The domain's fi_av_open slot. The vector has the address format of the domain. 0: the caller closes *av with
 * fi_close(); or -FI_E*, logged. */
int fab_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);

/* fi_av_lookup2() of every vector: without a flag fi_av_lookup(), with one -FI_ENOSYS. */
int fab_av_lookup2(struct fid_av *av, fi_addr_t fi_addr, void *buf, size_t *len, uint64_t flags,
		   struct fid_xpu_ctx *ctx);

/* Take and drop a reference, for an endpoint that is bound or a set that is open. fi_close() of the vector returns
 * -FI_EBUSY while there are any. No lock needed. */
static inline void fab_av_get(struct fab_av *av)
{
	atomic_fetch_add(&av->ref, 1);
}

static inline void fab_av_put(struct fab_av *av)
{
	atomic_fetch_sub(&av->ref, 1);
}

/* The address at fi_addr; NULL: the index is free. No lock needed on a vector without a name; one with a name may take
 * av->lock to copy new entries. The pointer stays readable until the vector is closed, but the entry may get another
 * address once it is removed. */
const union fab_sockaddr *fab_av_addr(const struct fab_av *av, fi_addr_t fi_addr);
/* The fi_addr_t of an address; FI_ADDR_NOTAVAIL: not in the vector. With FI_AV_AUTH_KEY the address is searched
 * together with this key; otherwise key is NULL. Takes av->lock; an engine's lock may be held. */
fi_addr_t fab_av_find_under(struct fab_av *av, const union fab_sockaddr *addr, const struct fab_auth_key *key);

static inline fi_addr_t fab_av_find(struct fab_av *av, const union fab_sockaddr *addr)
{
	return fab_av_find_under(av, addr, NULL);
}

/* True if the entry was inserted with FI_FIREWALL_ADDR. The flag concerns this process only, and lasts until the entry
 * is removed. No lock. */
bool fab_av_is_firewalled(const struct fab_av *av, fi_addr_t fi_addr);

/* The user id and key of an entry. NULL: the vector has neither, or this index was never used. No lock. */
struct fab_av_extra *fab_av_extra(const struct fab_av *av, fi_addr_t fi_addr);
/* The user id of an entry of a vector that has user ids. For fab_av_user_id(). No lock. */
fi_addr_t fab_av_find_user_id(const struct fab_av *av, fi_addr_t fi_addr);
/* The user id of an entry, for completions; fi_addr itself if the vector has no user ids or fi_addr is
 * FI_ADDR_NOTAVAIL. No lock. */
static inline fi_addr_t fab_av_user_id(const struct fab_av *av, fi_addr_t fi_addr)
{
	return __builtin_expect(av->user_ids, 0) ? fab_av_find_user_id(av, fi_addr) : fi_addr;
}

/* The receive context in an fi_addr_t made by fi_rx_addr(3), and the fi_addr_t without it. */
static inline uint64_t fab_av_rx_ctx(const struct fab_av *av, fi_addr_t fi_addr)
{
	return av->rx_ctx_bits ? fi_addr >> (64 - av->rx_ctx_bits) : 0;
}

static inline fi_addr_t fab_av_no_ctx(const struct fab_av *av, fi_addr_t fi_addr)
{
	return fi_addr == FI_ADDR_UNSPEC ? fi_addr : fi_addr & (UINT64_MAX >> av->rx_ctx_bits);
}

/* Start and stop calling watch. No call comes once fab_av_unwatch() has returned. No lock held; takes change_lock. */
void fab_av_watch(struct fab_av *av, struct fab_av_watch *watch);
void fab_av_unwatch(struct fab_av *av, struct fab_av_watch *watch);

#endif
