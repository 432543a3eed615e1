/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions and the check that every remote access passes. fi_mr(3).
 *
 * The map from key to region is read without a lock on the data path: an open-addressed table of pointers, grown by building a new one and
 * publishing it; old tables live until the domain closes (together no larger than the newest). Writers serialise on a mutex.
 * Taking a region away (fi_close of the MR) is serialised with the engine by its lock.
 */
#ifndef FAB_MR_H
#define FAB_MR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <rdma/fi_domain.h>
#include "base/list.h"

struct fab_domain;
struct fab_cntr;
struct fab_mr_table;

struct fab_mr {
	struct fid_mr mr_fid;		/* .key: what the peer uses; .mem_desc: itself */
	struct fab_domain *domain;	/* borrowed: registration took a reference */
	uint64_t access;		/* FI_SEND ... FI_REMOTE_WRITE */
	uint64_t flags;			/* as registered */
	uint64_t base;			/* what the peer's address is relative to: 0-based, or the virtual address itself */
	bool enabled;			/* false between fi_mr_reg and fi_mr_enable under FI_MR_ENDPOINT/FI_MR_RMA_EVENT */
	bool in_map;			/* has a key of its own in the map */
	uint32_t iov_cnt;
	size_t len;			/* all iov together */
	struct fab_cntr *cntr;		/* remote writes (fi_mr_bind); borrowed with a reference, or NULL */
	struct iovec iov[];
};

struct fab_mr_map {
	pthread_mutex_t lock;		/* writers */
	_Atomic(struct fab_mr_table *) table;
	uint64_t next_key;		/* FI_MR_PROV_KEY */
	uint32_t cnt;
	uint32_t gen;			/* counts regions closed: who verified an access before looks again when it moved. Engine lock */
	bool prov_key, virt_addr, need_enable;
	bool keys_matter;		/* domain opened with FI_RMA or FI_ATOMIC: a requested key in use is -FI_ENOKEY */
};

/* caps decide keys_matter. 0 or -FI_ENOMEM. */
int fab_mr_map_init(struct fab_mr_map *map, int mr_mode, uint64_t caps);
void fab_mr_map_fini(struct fab_mr_map *map);	/* every region is closed */

/* The domain's fi_mr_reg, fi_mr_regv, fi_mr_regattr slots. fi_mr_attr is read only as far as the fabric's API version says. */
extern struct fi_ops_mr fab_mr_ops;

/* Descend to the region of a key: NULL if unknown. Data path; no lock. */
struct fab_mr *fab_mr_lookup(struct fab_mr_map *map, uint64_t key);

/*
 * May a peer do `access` (FI_REMOTE_READ or FI_REMOTE_WRITE) on addr, len under key? 0, and iov (of *iov_cnt slots on entry, how many were
 * used on return) says where that is in our memory; -FI_ENOKEY, -FI_EACCES, -FI_EINVAL (out of bounds) or -FI_ETOOSMALL (more pieces than
 * slots). len 0 is checked too. Engine lock held. On success *mr is the region.
 */
int fab_mr_verify(struct fab_mr_map *map, uint64_t key, uint64_t addr, size_t len, uint64_t access, struct iovec *iov,
		  uint32_t *iov_cnt, struct fab_mr **mr);

#endif
