/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See auth.h. A list of all keys under one lock; there are few, and the list is searched only when objects are opened.
 */
#include "common/domain/auth.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/hmac.h"

static pthread_mutex_t keys_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fab_list keys = FAB_LIST_INIT(keys);

static struct fab_auth_key *auth_key_find(const void *bytes, size_t len)
{
	struct fab_list *link;

	fab_list_for_each(&keys, link) {
		struct fab_auth_key *key = fab_container(link, struct fab_auth_key, link);

		if (key->len == len && !memcmp(key->bytes, bytes, len))
			return key;
	}
	return NULL;
}

static struct fab_auth_key *key_new(const void *bytes, size_t len)
{
	struct fab_auth_key *key = malloc(sizeof(*key) + len);

	if (!key)
		return NULL;
	key->ref = 0;
	key->len = len;
	memcpy(key->bytes, bytes, len);
	fab_list_add_tail(&keys, &key->link);
	return key;
}

int fab_auth_get(const struct fi_provider *prov, const char *what, const void *bytes, size_t len,
		 struct fab_auth_key **key)
{
	const char *why;

	if (!bytes || !len || len > FAB_AUTH_KEY_MAX) {
		FI_WARN(prov, FI_LOG_CORE, "%s: the authorization key has %zu bytes at %p; it must have 1 to %d "
			"bytes\n",
			what, len, bytes, FAB_AUTH_KEY_MAX);
		return -FI_EINVAL;
	}
	why = fab_hmac_missing();
	if (why) {
		FI_WARN(prov, FI_LOG_CORE, "%s: authorization keys cannot be used: %s\n", what, why);
		return -FI_ENOSYS;
	}
	pthread_mutex_lock(&keys_lock);
	*key = auth_key_find(bytes, len);
	if (!*key)
		*key = key_new(bytes, len);
	if (*key)
		(*key)->ref++;
	pthread_mutex_unlock(&keys_lock);
	return *key ? 0 : -FI_ENOMEM;
}

struct fab_auth_key *fab_auth_share(struct fab_auth_key *key)
{
	if (!key)
		return NULL;
	pthread_mutex_lock(&keys_lock);
	key->ref++;
	pthread_mutex_unlock(&keys_lock);
	return key;
}

void fab_auth_put(struct fab_auth_key *key)
{
	bool last;

	if (!key)
		return;
	pthread_mutex_lock(&keys_lock);
	last = !--key->ref;
	if (last)
		fab_list_remove(&key->link);
	pthread_mutex_unlock(&keys_lock);
	if (!last)
		return;
	explicit_bzero(key->bytes, key->len);
	free(key);
}
