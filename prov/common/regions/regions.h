/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The memory regions of a domain by their keys, and the check that every remote access passes. fi_mr(3).
 *
 * The data path reads the map without a lock of its own: an open-addressed table of pointers, grown by building a new
 * one and publishing it. Readers hold the lock of their engine. Writers (registration, fi_close) serialise on a mutex,
 * and free what they took out of the map only after map->quiesce(). So a region that fab_mr_lookup() found stays valid
 * until the reader lets go of its engine's lock. A transfer that goes on later is verified again if map->gen has moved.
 */
#ifndef FAB_REGIONS_H
#define FAB_REGIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <rdma/fi_domain.h>

struct fab_auth_key;
struct fab_cntr;
struct fab_domain;
struct fab_mr_table;

#define FAB_MR_IOV_LIMIT	8		/* domain_attr->mr_iov_limit of providers that use this */
#define FAB_MR_KEY_SIZE		8		/* domain_attr->mr_key_size, and bytes of a raw key */

struct fab_mr {
	struct fid_mr mr_fid;		/* .key: what the peer uses; .mem_desc: itself */
	struct fab_domain *domain;	/* borrowed: registration took a reference */
	uint64_t access;		/* FI_SEND ... FI_REMOTE_WRITE */
	uint64_t flags;			/* as registered */
	uint64_t base;			/* what the peer's address is relative to: 0, or our virtual address */
	size_t len;			/* all iov together */
	/* a reference: what a peer must have proved; NULL: whatever its endpoint wants */
	struct fab_auth_key *auth_key;
	bool in_map;			/* has a key of its own in the map */
	uint32_t iov_cnt;
	_Atomic(struct fab_cntr *) cntr;	/* fab_mr_count() adds to it; borrowed with a reference, or NULL */
	struct iovec iov[];
};

struct fab_mr_map {
	pthread_mutex_t lock;		/* writers */
	_Atomic(struct fab_mr_table *) table;	/* owned */
	uint32_t cnt;			/* regions in the table */
	_Atomic uint32_t gen;		/* counts regions closed */
	void (*quiesce)(struct fab_mr_map *map);	/* returns when nobody reads what was taken out; fixed */
	bool prov_key, virt_addr;
	bool keys_matter;		/* opened with FI_RMA or FI_ATOMIC: a requested key in use is -FI_ENOKEY */
};

/* caps decide keys_matter; mr_mode is that of struct fab_domain. quiesce is called after a region or an old table was
 * taken out of the map: it returns when every reader has let go of its lock. 0 or -FI_ENOMEM. */
int fab_mr_map_init(struct fab_mr_map *map, int mr_mode, uint64_t caps, void (*quiesce)(struct fab_mr_map *map));
void fab_mr_map_fini(struct fab_mr_map *map);	/* every region is closed */
/* Give the region its key, and publish it. A requested key that is in use is an error only where regions are looked up
 * by it. 0, -FI_ENOKEY, -FI_ENOMEM; calls map->quiesce where the table has grown. */
int fab_mr_map_add(struct fab_mr_map *map, struct fab_mr *mr, uint64_t requested_key);
/* Take it out, if it is there; when this returns nobody who found it before is still looking at it. */
void fab_mr_map_remove(struct fab_mr_map *map, struct fab_mr *mr);

/* The region of a key: NULL if unknown. Data path: engine lock held. */
struct fab_mr *fab_mr_lookup(struct fab_mr_map *map, uint64_t key);

/*
 * May a peer do `access` (FI_REMOTE_READ or FI_REMOTE_WRITE) on addr, len under key? 0, and iov (of *iov_cnt slots on
 * entry, how many were used on return) says where that is in our memory; -FI_ENOKEY, -FI_EACCES (not that access, or
 * the region has an authorization key that is not `proven`, the one that the peer has proved, if any), -FI_EINVAL (out
 * of bounds) or -FI_ETOOSMALL (more pieces than slots). len 0 is checked too, and uses no slot. Engine lock held. On
 * success *mr is the region.
 */
int fab_mr_verify(struct fab_mr_map *map, const struct fab_auth_key *proven, uint64_t key, uint64_t addr, size_t len,
		  uint64_t access, struct iovec *iov, uint32_t *iov_cnt, struct fab_mr **mr);

/* fi_mr_map_raw(3): a raw key is the key in network byte order. 0 or -FI_EINVAL (wrong size, no buffers). */
int fab_mr_map_raw(const struct fi_mr_map_raw *map_raw);

#endif
