/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Keys and user ids of address vectors. See av_key.h.
 */
#include "common/av/av_key.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/domain/domain.h"

static struct fab_av *av_key_av(struct fid_av *fid)
{
	return fab_container(fid, struct fab_av, av_fid);
}

static const struct fi_provider *av_key_prov(const struct fab_av *av)
{
	return av->domain->fabric->prov;
}

int fab_av_keys_init(struct fab_av *av)
{
	av->keys = calloc(1, sizeof(*av->keys));
	return av->keys ? 0 : -FI_ENOMEM;
}

void fab_av_keys_fini(struct fab_av *av)
{
	for (uint32_t i = 0; av->keys && i < atomic_load(&av->keys->cnt); i++)
		fab_auth_put(av->keys->key[i]);
	free(av->keys);
	av->keys = NULL;
}

/* ---- lookups ---- */

static uint32_t key_cnt(const struct fab_av *av)
{
	return av->keys ? atomic_load_explicit(&av->keys->cnt, memory_order_acquire) : 0;
}

struct fab_auth_key *fab_av_key_at(const struct fab_av *av, fi_addr_t handle)
{
	return handle < key_cnt(av) ? av->keys->key[handle] : NULL;
}

struct fab_auth_key *fab_av_key(const struct fab_av *av, fi_addr_t fi_addr)
{
	const struct fab_av_extra *extra = fab_av_extra(av, fi_addr);

	return extra ? extra->key : NULL;
}

struct fab_auth_key *fab_av_key_find(const struct fab_av *av, bool (*is)(struct fab_auth_key *key, void *ctx),
				     void *ctx)
{
	for (uint32_t i = 0, cnt = key_cnt(av); i < cnt; i++) {
		if (is(av->keys->key[i], ctx))
			return av->keys->key[i];
	}
	return NULL;
}

fi_addr_t fab_av_key_handle(const struct fab_av *av, const struct fab_auth_key *key)
{
	for (uint32_t i = 0, cnt = key_cnt(av); i < cnt; i++) {
		if (av->keys->key[i] == key)
			return i;
	}
	return FI_ADDR_NOTAVAIL;
}

fi_addr_t fab_av_key_name(const struct fab_av *av, const struct fab_auth_key *key)
{
	fi_addr_t handle = fab_av_key_handle(av, key);

	if (handle == FI_ADDR_NOTAVAIL)
		return handle;
	return atomic_load_explicit(&av->keys->user_id[handle], memory_order_relaxed);
}

/* ---- slots of struct fi_ops_av ---- */

static int add_key(struct fab_av *av, const void *bytes, size_t len, fi_addr_t *fi_addr)
{
	struct fab_av_keys *keys = av->keys;
	uint32_t cnt = atomic_load(&keys->cnt);
	struct fab_auth_key *key;
	int ret;

	ret = fab_auth_get(av_key_prov(av), "fi_av_insert_auth_key", bytes, len, &key);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < cnt; i++) {
		if (keys->key[i] == key) {	/* added before: the same handle again */
			fab_auth_put(key);
			*fi_addr = i;
			return 0;
		}
	}
	if (cnt == FAB_AUTH_EP_MAX) {
		FI_WARN(av_key_prov(av), FI_LOG_AV, "fi_av_insert_auth_key: the address vector has %u keys "
			"already, which is the maximum (domain_attr->max_ep_auth_key)\n", cnt);
		fab_auth_put(key);
		return -FI_ENOSPC;
	}
	keys->key[cnt] = key;
	atomic_store(&keys->user_id[cnt], cnt);
	atomic_store_explicit(&keys->cnt, cnt + 1, memory_order_release);
	*fi_addr = cnt;
	return 0;
}

int fab_av_insert_auth_key(struct fid_av *fid, const void *auth_key, size_t auth_key_size, fi_addr_t *fi_addr,
			   uint64_t flags)
{
	struct fab_av *av = av_key_av(fid);
	int ret;

	if (flags || !fi_addr) {
		FI_WARN(av_key_prov(av), FI_LOG_AV, "fi_av_insert_auth_key: flags are %#" PRIx64 " and must be 0; "
			"fi_addr is %p and must not be NULL\n", flags, (void *) fi_addr);
		return flags ? -FI_EBADFLAGS : -FI_EINVAL;
	}
	if (!av->keys) {
		FI_WARN(av_key_prov(av), FI_LOG_AV, "fi_av_insert_auth_key: domain %s was not opened with "
			"domain_attr->auth_key_size FI_AV_AUTH_KEY\n", av->domain->name);
		return -FI_EINVAL;
	}
	pthread_mutex_lock(&av->change_lock);
	ret = add_key(av, auth_key, auth_key_size, fi_addr);
	pthread_mutex_unlock(&av->change_lock);
	return ret;
}

/* fi_addr is the index of an entry or the handle of a key. The call has no flag that tells which (fi_av(3)), so an
 * entry with this index is preferred. */
int fab_av_lookup_auth_key(struct fid_av *fid, fi_addr_t fi_addr, void *auth_key, size_t *auth_key_size)
{
	struct fab_av *av = av_key_av(fid);
	struct fab_auth_key *key = fab_av_addr(av, fi_addr) ? fab_av_key(av, fi_addr) : fab_av_key_at(av, fi_addr);

	if (!key)
		return -FI_EINVAL;
	if (*auth_key_size)
		memcpy(auth_key, key->bytes, fab_min(*auth_key_size, (size_t) key->len));
	*auth_key_size = key->len;
	return 0;
}

int fab_av_set_user_id(struct fid_av *fid, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags)
{
	struct fab_av *av = av_key_av(fid);
	struct fab_av_extra *extra = fab_av_extra(av, fi_addr);

	if (flags & ~FI_AUTH_KEY) {
		FI_WARN(av_key_prov(av), FI_LOG_AV, "fi_av_set_user_id: flags are %#" PRIx64 "; only FI_AUTH_KEY is "
			"supported\n", flags);
		return -FI_EBADFLAGS;
	}
	if (!av->user_ids) {
		FI_WARN(av_key_prov(av), FI_LOG_AV, "fi_av_set_user_id: domain %s was opened without FI_AV_USER_ID; "
			"ask fi_getinfo() for it\n", av->domain->name);
		return -FI_ENOSYS;
	}
	if (flags ? !fab_av_key_at(av, fi_addr) : !fab_av_addr(av, fi_addr)) {
		FI_WARN(av_key_prov(av), FI_LOG_AV, "fi_av_set_user_id: the address vector has no %s with fi_addr "
			"%" PRIu64 "\n", flags ? "key" : "address", fi_addr);
		return -FI_EINVAL;
	}
	atomic_store(flags ? &av->keys->user_id[fi_addr] : &extra->user_id, user_id);
	return 0;
}
