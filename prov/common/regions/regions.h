/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory regions of a domain by key, and the check that every remote access passes. fi_mr(3).
 *
 * The data path reads the map without a lock of its own: an open-addressed table of pointers. To grow it, a larger
 * table is built and published. Readers hold the lock of their engine. Writers (registration, fi_close) hold a mutex,
 * and free regions and tables that they took out of the map only after map->quiesce(). So a region that fab_mr_lookup()
 * returned stays valid until the reader releases its engine's lock. A transfer that continues later verifies the region
 * again if map->gen has changed.
 */
#ifndef FAB_REGIONS_H
#define FAB_REGIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <rdma/fi_domain.h>
#include "base/list.h"

struct fab_auth_key;
struct fab_cntr;
struct fab_domain;
struct fab_mr;
struct fab_mr_map;
struct fab_mr_table;

#define FAB_MR_IOV_LIMIT	8		/* domain_attr->mr_iov_limit of providers with this map */
/* Of fab_mr.access: the processor reaches the region. An access that is checked with it goes the short way. */
#define FAB_MR_HOST		(1ULL << 62)
#define FAB_MR_KEY_SIZE		8		/* domain_attr->mr_key_size, and the length of a raw key in bytes */

/*
 * For a provider whose peers may reach a region without fab_mr_verify(), and without our making progress. Any thread,
 * no lock held.
 */
struct fab_mr_watch {
	/* A region that was registered is in the map. */
	void (*opened)(struct fab_mr_map *map, struct fab_mr *mr);
	/* Take such access to a region back for good, and wait until nobody is in the middle of one. 0. -FI_EBUSY,
	 * logged: a peer still is, after a bounded time; the next call waits again. */
	int (*withdraw)(struct fab_mr_map *map, struct fab_mr *mr);
	/* The map ends; it has no region, and no engine runs any more. */
	void (*fini)(struct fab_mr_map *map);
};

/* The watch's part of a region, guarded by its lock; zeroed at first. */
struct fab_mr_watched {
	struct fab_list link;
	uint32_t slot;			/* 0: none */
	bool listed, withdrawn;
};

struct fab_mr {
	struct fid_mr mr_fid;		/* .key: for peers; .mem_desc: the struct fab_mr itself */
	struct fab_domain *domain;	/* borrowed: registration took a reference */
	uint64_t access;		/* FI_SEND ... FI_REMOTE_WRITE, FAB_MR_HOST */
	uint64_t flags;			/* of the registration */
	uint64_t base;			/* the peer's address is relative to this: 0, or our virtual address */
	size_t len;			/* bytes of all iov together */
	/* the key that a peer must have proved, a reference; NULL: no more than its endpoint requires */
	struct fab_auth_key *auth_key;
	bool in_map;			/* has a key of its own, and is in the map */
	uint8_t hmem;			/* of a device: the number of its memory (common/hmem/hmem.h); else 0 */
	uint32_t iov_cnt;
	struct fab_mr_watched watched;
	_Atomic(struct fab_cntr *) cntr;	/* counts remote writes (fab_mr_count()); has a reference; or NULL */
	struct iovec iov[];
};

struct fab_mr_map {
	pthread_mutex_t lock;		/* held by writers */
	_Atomic(struct fab_mr_table *) table;	/* owned */
	uint32_t cnt;			/* regions in the table */
	_Atomic uint32_t gen;		/* counts regions that were closed */
	void (*quiesce)(struct fab_mr_map *map);	/* returns when no reader can see removed regions and tables any
							 * more; constant */
	const struct fab_mr_watch *watch;	/* set before the first region; NULL: none */
	void *watch_data;			/* its own */
	bool prov_key, virt_addr;
	bool keys_matter;		/* opened with FI_RMA or FI_ATOMIC: registering a key that is in use is
					 * -FI_ENOKEY */
};

/* Initialise an empty map. caps determine keys_matter; mr_mode has the format of struct fab_domain. quiesce is called
 * after a region or an old table was taken out of the map. It returns when every reader that may have seen it has
 * released its lock. 0 or -FI_ENOMEM. */
int fab_mr_map_init(struct fab_mr_map *map, int mr_mode, uint64_t caps, void (*quiesce)(struct fab_mr_map *map));
void fab_mr_map_fini(struct fab_mr_map *map);	/* after all regions were closed, and the engines have ended */
/* Choose the key of the region, and publish the region. A requested key that is in use is an error only if keys_matter.
 * May call map->quiesce. 0, -FI_ENOKEY, -FI_ENOMEM. */
int fab_mr_map_add(struct fab_mr_map *map, struct fab_mr *mr, uint64_t requested_key);
/* Before a region is closed, or becomes one whose accesses must be noticed here: fab_mr_watch.withdraw. */
int fab_mr_map_withdraw(struct fab_mr_map *map, struct fab_mr *mr);
/* Remove the region, if it is in the map. When this returns, no reader that found it before is using it. */
void fab_mr_map_remove(struct fab_mr_map *map, struct fab_mr *mr);

/* The region with this key, or NULL. Data path: engine lock held. */
struct fab_mr *fab_mr_lookup(struct fab_mr_map *map, uint64_t key);

/*
 * Check a peer's access to len bytes at addr under a key. `access` is FI_REMOTE_READ or FI_REMOTE_WRITE, perhaps with
 * FAB_MR_HOST, and without that the region may be memory of a device (mr->hmem); `proven` is
 * the authorization key that the peer has proved, or NULL. *iov_cnt is the length of iov on entry and the number of
 * entries used on return. 0: *mr is the region, and iov describes the bytes in our memory. -FI_ENOKEY: no such region.
 * -FI_EACCES: the region does not allow this access, or requires another authorization key. -FI_EINVAL: out of bounds.
 * -FI_ETOOSMALL: iov is too short. An access with len 0 is checked, too, and uses no entry. Engine lock held.
 */
int fab_mr_verify(struct fab_mr_map *map, const struct fab_auth_key *proven, uint64_t key, uint64_t addr, size_t len,
		  uint64_t access, struct iovec *iov, uint32_t *iov_cnt, struct fab_mr **mr);

/* fi_mr_map_raw(3). A raw key is the key in network byte order. 0 or -FI_EINVAL (wrong size, or a NULL pointer). */
int fab_mr_map_raw(const struct fi_mr_map_raw *map_raw);

#endif
