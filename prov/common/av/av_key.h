/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an address vector keeps beside addresses: numbers of the program for its entries (FI_AV_USER_ID), and
 * authorization keys (FI_AV_AUTH_KEY), of which each entry has one. Keys are only added; they go with the vector. An
 * fi_addr_t of a key counts from 0, apart from those of entries: calls take it with FI_AUTH_KEY. Locks as in av.h.
 */
#ifndef FAB_AV_KEY_H
#define FAB_AV_KEY_H

#include "common/domain/domain.h"
#include "common/av/vector.h"

/* Of an entry; in chunks as the entries are. */
struct fab_av_extra {
	struct fab_auth_key *key;	/* borrowed from the vector's; NULL without FI_AV_AUTH_KEY */
	_Atomic fi_addr_t user_id;	/* what completions name it by */
};

struct fab_av_keys {
	_Atomic uint32_t cnt;
	struct fab_auth_key *key[FAB_AUTH_EP_MAX];	/* a reference each; written once, before cnt counts it */
	_Atomic fi_addr_t user_id[FAB_AUTH_EP_MAX];
};

/* 0 or -FI_ENOMEM: keys of a new vector. fini takes NULL. */
int fab_av_keys_init(struct fab_av *av);
void fab_av_keys_fini(struct fab_av *av);

/* Slots of struct fi_ops_av. */
int fab_av_insert_auth_key(struct fid_av *av, const void *auth_key, size_t auth_key_size, fi_addr_t *fi_addr,
			   uint64_t flags);
int fab_av_lookup_auth_key(struct fid_av *av, fi_addr_t fi_addr, void *auth_key, size_t *auth_key_size);
int fab_av_set_user_id(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags);

/* The key that a handle means; NULL: none. */
struct fab_auth_key *fab_av_key_at(const struct fab_av *av, fi_addr_t handle);
/* The handle of a key, which may be NULL or none of this vector: FI_ADDR_NOTAVAIL. */
fi_addr_t fab_av_key_handle(const struct fab_av *av, const struct fab_auth_key *key);
/* The key of the entry at fi_addr, also just after its removal; NULL without FI_AV_AUTH_KEY. */
struct fab_auth_key *fab_av_key(const struct fab_av *av, fi_addr_t fi_addr);
/* The first key of the vector that is(key, ctx), or NULL. */
struct fab_auth_key *fab_av_key_find(const struct fab_av *av, bool (*is)(struct fab_auth_key *key, void *ctx),
				     void *ctx);
/* What names a key in an error entry for an unknown peer: its number of the program, or its handle. */
fi_addr_t fab_av_key_name(const struct fab_av *av, const struct fab_auth_key *key);

#endif
