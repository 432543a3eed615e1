/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * User ids of entries (FI_AV_USER_ID) and authorization keys (FI_AV_AUTH_KEY) of an address vector. With FI_AV_AUTH_KEY
 * each entry has one key. Keys can be added but not removed; closing the vector frees them. A key's handle is an
 * fi_addr_t, too. Handles count from 0 independently of the indices of entries; calls that take a handle have
 * FI_AUTH_KEY set. Locks as in vector.h.
 */
#ifndef FAB_AV_KEY_H
#define FAB_AV_KEY_H

#include "common/domain/domain.h"
#include "common/av/vector.h"

/* User id and key of one entry. They are in chunks parallel to those of the entries. */
struct fab_av_extra {
	struct fab_auth_key *key;	/* borrowed from av->keys; NULL without FI_AV_AUTH_KEY */
	_Atomic fi_addr_t user_id;	/* the entry's number in completions */
};

struct fab_av_keys {
	_Atomic uint32_t cnt;
	struct fab_auth_key *key[FAB_AUTH_EP_MAX];	/* a reference each; written once, before cnt includes it */
	_Atomic fi_addr_t user_id[FAB_AUTH_EP_MAX];
};

/* Allocate the keys of a new vector: 0 or -FI_ENOMEM. fini frees them; it accepts av->keys == NULL. */
int fab_av_keys_init(struct fab_av *av);
void fab_av_keys_fini(struct fab_av *av);

/* Slots of struct fi_ops_av. */
int fab_av_insert_auth_key(struct fid_av *av, const void *auth_key, size_t auth_key_size, fi_addr_t *fi_addr,
			   uint64_t flags);
int fab_av_lookup_auth_key(struct fid_av *av, fi_addr_t fi_addr, void *auth_key, size_t *auth_key_size);
int fab_av_set_user_id(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags);

/* The key with this handle, or NULL. No lock. */
struct fab_auth_key *fab_av_key_at(const struct fab_av *av, fi_addr_t handle);
/* The handle of a key. FI_ADDR_NOTAVAIL: key is NULL or not in this vector. No lock. */
fi_addr_t fab_av_key_handle(const struct fab_av *av, const struct fab_auth_key *key);
/* The key of the entry at fi_addr, also just after the entry was removed. NULL without FI_AV_AUTH_KEY. No lock. */
struct fab_auth_key *fab_av_key(const struct fab_av *av, fi_addr_t fi_addr);
/* The first key of the vector for which is(key, ctx) is true, or NULL. No lock. */
struct fab_auth_key *fab_av_key_find(const struct fab_av *av, bool (*is)(struct fab_auth_key *key, void *ctx),
				     void *ctx);
/* The identifier of a key in an error entry about an unknown peer: its user id, which is the handle unless the
 * application has set another. FI_ADDR_NOTAVAIL: not in this vector. No lock. */
fi_addr_t fab_av_key_name(const struct fab_av *av, const struct fab_auth_key *key);

#endif
