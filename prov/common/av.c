/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors. Three parts: the table of entries, the reverse table, and the calls of fi_av(3), all of which go
 * through struct batch, that knows where results are wanted. Setup tier, except fab_av_addr() and fab_av_find().
 */
#include "common/av.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/av_key.h"
#include "common/av_set.h"
#include "common/eq.h"
#include "common/fabric.h"
#include "common/netif.h"
#include "common/ops.h"

#define SLOTS_MIN 64
#define WORD_BITS 64

/* ---- entries: index -> address ---- */

/* Chunk k holds the indices for which index + FAB_AV_FIRST has its highest bit at log2(FAB_AV_FIRST) + k. */
static unsigned chunk_of(uint64_t index)
{
	return __builtin_clzll(FAB_AV_FIRST) - __builtin_clzll(index + FAB_AV_FIRST);
}

static uint64_t chunk_size(unsigned k)
{
	return (uint64_t) FAB_AV_FIRST << k;
}

static struct fab_av_entry *entry_at(const struct fab_av *av, uint64_t index)
{
	unsigned k = chunk_of(index);

	return atomic_load_explicit(&av->chunk[k], memory_order_relaxed) + (index + FAB_AV_FIRST - chunk_size(k));
}

const union fab_sockaddr *fab_av_addr(const struct fab_av *av, fi_addr_t fi_addr)
{
	const struct fab_av_entry *entry;

	if (fi_addr >= atomic_load_explicit(&av->cnt, memory_order_acquire))
		return NULL;
	entry = entry_at(av, fi_addr);
	return atomic_load_explicit(&entry->ref, memory_order_acquire) ? &entry->addr : NULL;
}

struct fab_av_extra *fab_av_extra(const struct fab_av *av, fi_addr_t fi_addr)
{
	unsigned k = chunk_of(fi_addr);
	struct fab_av_extra *extra;

	if (fi_addr >= atomic_load_explicit(&av->cnt, memory_order_acquire))
		return NULL;
	extra = atomic_load_explicit(&av->extra[k], memory_order_relaxed);
	return extra ? extra + (fi_addr + FAB_AV_FIRST - chunk_size(k)) : NULL;
}

fi_addr_t fab_av_user_id(const struct fab_av *av, fi_addr_t fi_addr)
{
	const struct fab_av_extra *extra = av->user_ids ? fab_av_extra(av, fi_addr) : NULL;

	return extra ? atomic_load_explicit(&extra->user_id, memory_order_relaxed) : fi_addr;
}

/* Make index usable: its chunk, and its bit. */
static int reserve(struct fab_av *av, uint64_t index)
{
	unsigned k = chunk_of(index);
	struct fab_av_entry *chunk;
	struct fab_av_extra *extra;
	uint64_t *used;

	if (index >= FAB_AV_MAX)
		return -FI_ENOSPC;
	if (atomic_load_explicit(&av->chunk[k], memory_order_relaxed))
		return 0;
	used = realloc(av->used, (index + chunk_size(k)) / 8);
	if (!used)
		return -FI_ENOMEM;
	av->used = used;
	if ((av->user_ids || av->keys) && !atomic_load_explicit(&av->extra[k], memory_order_relaxed)) {
		extra = calloc(chunk_size(k), sizeof(*extra));
		if (!extra)
			return -FI_ENOMEM;
		atomic_store_explicit(&av->extra[k], extra, memory_order_relaxed);
	}
	chunk = calloc(chunk_size(k), sizeof(*chunk));
	if (!chunk)
		return -FI_ENOMEM;
	memset(used + index / WORD_BITS, 0, chunk_size(k) / 8);
	atomic_store_explicit(&av->chunk[k], chunk, memory_order_relaxed);
	return 0;
}

static bool is_used(const struct fab_av *av, uint64_t index)
{
	return av->used[index / WORD_BITS] >> index % WORD_BITS & 1;
}

/* The lowest index that is free, which may be one that was never used. */
static uint64_t lowest_free(const struct fab_av *av)
{
	uint64_t cnt = atomic_load_explicit(&av->cnt, memory_order_relaxed);
	uint64_t index = av->lowest;

	while (index < cnt && is_used(av, index))
		index = av->used[index / WORD_BITS] == UINT64_MAX ? (index / WORD_BITS + 1) * WORD_BITS : index + 1;
	return fab_min(index, cnt);
}

/* ---- reverse table: address -> index; av->lock held ---- */

/* Is this what the entry is? */
static bool entry_is(const struct fab_av *av, uint64_t index, const union fab_sockaddr *addr,
		     const struct fab_auth_key *key)
{
	return fab_addr_equal(&entry_at(av, index)->addr.sa, &addr->sa) && (!av->keys || fab_av_key(av, index) == key);
}

/* The slot of an address (and key), or the empty one where it would go. */
static uint32_t find_slot(const struct fab_av *av, const union fab_sockaddr *addr, const struct fab_auth_key *key)
{
	uint32_t i = fab_addr_hash(&addr->sa) & av->slot_mask;

	while (av->slots[i] && !entry_is(av, av->slots[i] - 1, addr, key))
		i = (i + 1) & av->slot_mask;
	return i;
}

static int grow_slots(struct fab_av *av, uint32_t slot_cnt)
{
	uint32_t *old = av->slots, old_cnt = old ? av->slot_mask + 1 : 0;
	uint32_t *slots = calloc(slot_cnt, sizeof(*slots));

	if (!slots)
		return -FI_ENOMEM;
	av->slots = slots;
	av->slot_mask = slot_cnt - 1;
	for (uint32_t i = 0; i < old_cnt; i++) {
		if (old[i])
			slots[find_slot(av, &entry_at(av, old[i] - 1)->addr, fab_av_key(av, old[i] - 1))] = old[i];
	}
	free(old);
	return 0;
}

/* Empty slot i, and move up what was pushed past it, so that no search meets a hole. */
static void clear_slot(struct fab_av *av, uint32_t i)
{
	uint32_t mask = av->slot_mask, k = i, home;

	for (;;) {
		k = (k + 1) & mask;
		if (!av->slots[k])
			break;
		home = fab_addr_hash(&entry_at(av, av->slots[k] - 1)->addr.sa) & mask;
		if (((k - home) & mask) >= ((k - i) & mask)) {
			av->slots[i] = av->slots[k];
			i = k;
		}
	}
	av->slots[i] = 0;
}

fi_addr_t fab_av_find_under(struct fab_av *av, const union fab_sockaddr *addr, const struct fab_auth_key *key)
{
	uint32_t index;

	pthread_mutex_lock(&av->lock);
	index = av->slots[find_slot(av, addr, key)];
	pthread_mutex_unlock(&av->lock);
	return index ? index - 1 : FI_ADDR_NOTAVAIL;
}

/* ---- one address in, one out; change_lock held ---- */

static void tell_inserted(struct fab_av *av, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct fab_list *link;

	fab_list_for_each(&av->watches, link) {
		struct fab_av_watch *watch = fab_container(link, struct fab_av_watch, link);

		watch->inserted(watch, fi_addr, addr);
	}
}

static void tell_removed(struct fab_av *av, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct fab_list *link;

	fab_list_for_each(&av->watches, link) {
		struct fab_av_watch *watch = fab_container(link, struct fab_av_watch, link);

		watch->removed(watch, fi_addr, addr);
	}
}

/* Write a new entry and publish it. av->lock held, slot is the empty one for addr. */
static int publish(struct fab_av *av, const union fab_sockaddr *addr, struct fab_auth_key *key, uint32_t slot,
		   fi_addr_t *fi_addr)
{
	uint64_t index = lowest_free(av);
	struct fab_av_entry *entry;
	struct fab_av_extra *extra;
	int ret;

	ret = reserve(av, index);
	if (ret)
		return ret;
	entry = entry_at(av, index);
	entry->addr = *addr;
	atomic_store_explicit(&entry->ref, 1, memory_order_release);
	extra = atomic_load_explicit(&av->extra[chunk_of(index)], memory_order_relaxed);
	if (extra) {
		extra += index + FAB_AV_FIRST - chunk_size(chunk_of(index));
		extra->key = key;
		atomic_store_explicit(&extra->user_id, index, memory_order_relaxed);
	}
	if (index == atomic_load_explicit(&av->cnt, memory_order_relaxed))
		atomic_store_explicit(&av->cnt, index + 1, memory_order_release);
	av->used[index / WORD_BITS] |= FAB_BIT(index % WORD_BITS);
	av->lowest = index + 1;
	av->slots[slot] = index + 1;
	av->addr_cnt++;
	*fi_addr = index;
	return 0;
}

static int insert_addr(struct fab_av *av, const union fab_sockaddr *addr, struct fab_auth_key *key, fi_addr_t *fi_addr)
{
	bool is_new;
	uint32_t slot;
	int ret = 0;

	pthread_mutex_lock(&av->lock);
	if ((av->addr_cnt + 1) * UINT64_C(4) > (av->slot_mask + UINT64_C(1)) * 3)
		ret = grow_slots(av, (av->slot_mask + 1) * 2);
	if (ret)
		goto unlock;
	slot = find_slot(av, addr, key);
	is_new = !av->slots[slot];
	if (is_new) {
		ret = publish(av, addr, key, slot, fi_addr);
	} else {
		*fi_addr = av->slots[slot] - 1;
		atomic_fetch_add_explicit(&entry_at(av, *fi_addr)->ref, 1, memory_order_relaxed);
	}
unlock:
	pthread_mutex_unlock(&av->lock);
	if (!ret && is_new)
		tell_inserted(av, *fi_addr, addr);
	return ret;
}

static int remove_addr(struct fab_av *av, fi_addr_t fi_addr)
{
	const union fab_sockaddr *there = fab_av_addr(av, fi_addr);
	union fab_sockaddr addr;
	bool last;

	if (!there)
		return -FI_EINVAL;
	addr = *there;
	pthread_mutex_lock(&av->lock);
	last = atomic_fetch_sub(&entry_at(av, fi_addr)->ref, 1) == 1;
	if (last) {
		clear_slot(av, find_slot(av, &addr, fab_av_key(av, fi_addr)));
		av->addr_cnt--;
		av->used[fi_addr / WORD_BITS] &= ~FAB_BIT(fi_addr % WORD_BITS);
		av->lowest = fab_min(av->lowest, (uint64_t) fi_addr);
	}
	pthread_mutex_unlock(&av->lock);
	if (last)
		tell_removed(av, fi_addr, &addr);
	return 0;
}

void fab_av_watch(struct fab_av *av, struct fab_av_watch *watch)
{
	pthread_mutex_lock(&av->change_lock);
	fab_list_add_tail(&av->watches, &watch->link);
	pthread_mutex_unlock(&av->change_lock);
}

void fab_av_unwatch(struct fab_av *av, struct fab_av_watch *watch)
{
	pthread_mutex_lock(&av->change_lock);
	fab_list_remove(&watch->link);
	pthread_mutex_unlock(&av->change_lock);
}

/* ---- the insert calls ---- */

/* One call of fi_av_insert*(): where the result of each address goes. */
struct batch {
	struct fab_av *av;
	fi_addr_t *fi_addr;		/* NULL, or one for each address */
	int *errs;			/* FI_SYNC_ERR: likewise */
	bool user_ids;			/* fi_addr has the program's numbers of the entries */
	bool auth_keys;			/* fi_addr has the handles of their keys */
	void *context;
	size_t index;			/* of the next address */
	size_t ok_cnt;
};

/* What each entry of an insertion is to have beside its address: fi_addr says, so it can be one thing only. */
static int check_extra(const struct fab_av *av, const fi_addr_t *fi_addr, uint64_t flags)
{
	bool user_ids = flags & FI_AV_USER_ID, auth_keys = flags & FI_AUTH_KEY;
	const char *why = user_ids && !av->user_ids ? "FI_AV_USER_ID, and the domain was opened without it" :
			  auth_keys && !av->keys ? "FI_AUTH_KEY, and the domain was opened without FI_AV_AUTH_KEY" :
			  !auth_keys && av->keys ? "no FI_AUTH_KEY: with FI_AV_AUTH_KEY, fi_addr has the key of each" :
			  user_ids && auth_keys ? "both FI_AV_USER_ID and FI_AUTH_KEY: use fi_av_set_user_id" :
			  (user_ids || auth_keys) && !fi_addr ? "fi_addr NULL, and flags that want values in it" : NULL;

	if (!why)
		return 0;
	FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_insert: %s\n", why);
	return user_ids && !av->user_ids ? -FI_ENOSYS : -FI_EINVAL;
}

/* Take change_lock and start. 0 or -FI_E* with nothing to end. */
static int batch_start(struct batch *batch, struct fab_av *av, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	const struct fi_provider *prov = av->domain->fabric->prov;
	int ret;

	if (flags & ~(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID | FI_AUTH_KEY)) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_insert: flags %#" PRIx64 "; FI_MORE, FI_SYNC_ERR, FI_AV_USER_ID and "
			"FI_AUTH_KEY are known\n", flags);
		return -FI_EBADFLAGS;
	}
	ret = check_extra(av, fi_addr, flags);
	if (ret)
		return ret;
	if ((flags & FI_SYNC_ERR) && (av->async || !context)) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_insert: FI_SYNC_ERR wants %s\n", av->async ?
			"an address vector without FI_EVENT" : "context to be an array of int");
		return -FI_EINVAL;
	}
	if (av->async && !av->eq) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_insert: the address vector has FI_EVENT; bind an event queue first\n");
		return -FI_ENOEQ;
	}
	*batch = (struct batch) { .av = av, .fi_addr = fi_addr, .context = context,
				  .errs = flags & FI_SYNC_ERR ? context : NULL,
				  .user_ids = flags & FI_AV_USER_ID, .auth_keys = flags & FI_AUTH_KEY };
	pthread_mutex_lock(&av->change_lock);
	return 0;
}

/* The next address of the call: insert it, unless ret says that there is none. */
static void batch_add(struct batch *batch, const union fab_sockaddr *addr, int ret)
{
	struct fab_av *av = batch->av;
	fi_addr_t fi_addr = FI_ADDR_NOTAVAIL, in = batch->fi_addr ? batch->fi_addr[batch->index] : FI_ADDR_NOTAVAIL;
	struct fab_auth_key *key = batch->auth_keys ? fab_av_key_at(av, in) : NULL;

	if (!ret && batch->auth_keys && !key)
		ret = -FI_EINVAL;
	if (!ret)
		ret = insert_addr(av, addr, key, &fi_addr);
	if (!ret && batch->user_ids)
		atomic_store_explicit(&fab_av_extra(av, fi_addr)->user_id, in, memory_order_relaxed);
	if (batch->fi_addr)
		batch->fi_addr[batch->index] = fi_addr;
	if (batch->errs)
		batch->errs[batch->index] = -ret;
	if (ret) {
		FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_insert: address %zu of the call: %s\n",
			batch->index, fi_strerror(-ret));
		if (av->async)
			fab_eq_write_err(av->eq, &av->av_fid.fid, batch->context, batch->index, -ret, -ret, NULL, 0);
	} else {
		batch->ok_cnt++;
	}
	batch->index++;
}

/* What the call returns. */
static int batch_end(struct batch *batch)
{
	struct fab_av *av = batch->av;

	pthread_mutex_unlock(&av->change_lock);
	if (!av->async)
		return batch->ok_cnt;
	return fab_eq_write(av->eq, FI_AV_COMPLETE, &(struct fi_eq_entry) { .fid = &av->av_fid.fid,
			    .context = batch->context, .data = batch->ok_cnt }, sizeof(struct fi_eq_entry), 0,
			    &av->av_fid.fid);
}

static struct fab_av *av_of(struct fid_av *fid)
{
	return fab_container(fid, struct fab_av, av_fid);
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags,
		     void *context)
{
	struct fab_av *av = av_of(fid);
	const uint8_t *next = addr;
	struct batch batch;
	int ret;

	if ((!addr && count) || count > FAB_AV_MAX) {
		FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_insert: %zu addresses at %p\n", count, addr);
		return -FI_EINVAL;
	}
	ret = batch_start(&batch, av, fi_addr, flags, context);
	if (ret)
		return ret;
	for (size_t i = 0; i < count; i++, next += av->addrlen) {
		union fab_sockaddr one;

		memset(&one, 0, sizeof(one));
		memcpy(&one, next, av->addrlen);
		batch_add(&batch, &one, one.sa.sa_family == av->family ? 0 : -FI_EINVAL);
	}
	return batch_end(&batch);
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr, uint64_t flags,
			void *context)
{
	struct fab_av *av = av_of(fid);
	union fab_sockaddr addr;
	struct batch batch;
	const char *why;
	int ret, found;

	found = fab_resolve_name(node, service, 0, av->family, &addr, &why);
	if (found)
		FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_insertsvc: %s\n", why);
	ret = batch_start(&batch, av, fi_addr, flags, context);
	if (ret)
		return ret;
	batch_add(&batch, &addr, found);
	return batch_end(&batch);
}

/* Split "host09" into "host" and 9, with 2 digits. The number is what fi_av_insertsym() counts up. */
struct name_series {
	size_t prefix_len;
	int digits;
	uint64_t first;
};

static bool parse_series(const char *node, struct name_series *series)
{
	size_t len = strlen(node);

	series->prefix_len = len;
	while (series->prefix_len && isdigit((unsigned char) node[series->prefix_len - 1]))
		series->prefix_len--;
	series->digits = len - series->prefix_len;
	if (!series->digits || series->digits > 18)
		return false;
	series->first = strtoull(node + series->prefix_len, NULL, 10);
	return true;
}

/* Add n to the host part of an address. False if it overflows. */
static bool addr_advance(union fab_sockaddr *addr, uint64_t n)
{
	uint32_t host;

	if (addr->sa.sa_family == AF_INET) {
		host = ntohl(addr->sin.sin_addr.s_addr);
		if (n > UINT32_MAX - host)
			return false;
		addr->sin.sin_addr.s_addr = htonl(host + n);
		return true;
	}
	for (int i = 15; i >= 0 && n; i--) {
		n += addr->sin6.sin6_addr.s6_addr[i];
		addr->sin6.sin6_addr.s6_addr[i] = n;
		n >>= 8;
	}
	return !n;
}

/* The address of node number n of a symmetric insert, without port. */
static int sym_node(const struct fab_av *av, const char *node, uint64_t n, union fab_sockaddr *addr, const char **why)
{
	char name[FI_NAME_MAX * 4];
	struct name_series series;
	int ret;

	ret = fab_resolve_name(node, NULL, FI_NUMERICHOST, av->family, addr, why);
	if (!ret) {
		*why = "the range of nodes goes beyond the last address";
		return addr_advance(addr, n) ? 0 : -FI_EINVAL;
	}
	if (!n)
		return fab_resolve_name(node, NULL, 0, av->family, addr, why);
	*why = "counting up from a host name wants one that ends in a number and is not longer than 200 bytes";
	if (!parse_series(node, &series) || series.prefix_len > 200)
		return -FI_EINVAL;
	snprintf(name, sizeof(name), "%.*s%0*" PRIu64, (int) series.prefix_len, node, series.digits, series.first + n);
	return fab_resolve_name(name, NULL, 0, av->family, addr, why);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service, size_t svccnt,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct fab_av *av = av_of(fid);
	const struct fi_provider *prov = av->domain->fabric->prov;
	union fab_sockaddr base, addr;
	const char *why = NULL;
	struct batch batch;
	uint64_t port;
	int ret;

	ret = fab_resolve_name(NULL, service, FI_SOURCE, av->family, &base, &why);
	if (!ret && (!node || !service || nodecnt > FAB_AV_MAX || svccnt > UINT16_MAX + 1u)) {
		why = "node and service must be given, and be no more than there are addresses and ports";
		ret = -FI_EINVAL;
	}
	if (ret) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_insertsym: %s\n", why);
		return ret;
	}
	ret = batch_start(&batch, av, fi_addr, flags, context);
	if (ret)
		return ret;
	for (size_t i = 0; i < nodecnt; i++) {
		ret = sym_node(av, node, i, &addr, &why);
		if (ret)
			FI_WARN(prov, FI_LOG_AV, "fi_av_insertsym: %s\n", why);
		for (size_t k = 0; k < svccnt; k++) {
			port = fab_addr_port(&base.sa) + k;
			if (!ret)
				fab_addr_set_port(&addr.sa, port);
			batch_add(&batch, &addr, ret ? ret : port <= UINT16_MAX ? 0 : -FI_EINVAL);
		}
	}
	return batch_end(&batch);
}

/* ---- the other calls ---- */

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct fab_av *av = av_of(fid);
	int ret = 0;

	if (flags) {
		FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_remove: flags %#" PRIx64 "; they must be 0\n",
			flags);
		return -FI_EBADFLAGS;
	}
	pthread_mutex_lock(&av->change_lock);
	for (size_t i = 0; i < count; i++) {
		if (remove_addr(av, fi_addr[i])) {
			FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_remove: nothing is at fi_addr "
				"%" PRIu64 "\n", fi_addr[i]);
			ret = -FI_EINVAL;
		}
	}
	pthread_mutex_unlock(&av->change_lock);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	const struct fab_av *av = av_of(fid);
	const union fab_sockaddr *there = fab_av_addr(av, fi_addr);

	if (!there)
		return -FI_EINVAL;
	if (*addrlen)		/* else addr may be NULL: the caller asks for the length */
		memcpy(addr, there, fab_min(*addrlen, av->addrlen));
	*addrlen = av->addrlen;
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	const struct fab_av *av = av_of(fid);
	union fab_sockaddr copy;

	memset(&copy, 0, sizeof(copy));
	memcpy(&copy, addr, av->addrlen);
	*len = fab_addr_to_str(&copy.sa, buf, *len) + 1;
	return buf;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fab_av *av = fab_container(fid, struct fab_av, av_fid.fid);
	const struct fi_provider *prov = av->domain->fabric->prov;
	struct fab_eq *eq;
	const char *why;

	if (flags) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_bind: flags %#" PRIx64 "; they must be 0\n", flags);
		return -FI_EBADFLAGS;
	}
	why = bfid->fclass != FI_CLASS_EQ ? "only an event queue can be bound" :
	      !av->async ? "the address vector was opened without FI_EVENT" :
	      av->eq ? "an event queue is bound already" : NULL;
	if (why) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_bind: %s\n", why);
		return -FI_EINVAL;
	}
	eq = fab_container(bfid, struct fab_eq, eq_fid.fid);
	fab_eq_get(eq);
	av->eq = eq;
	return 0;
}

static void av_free(struct fab_av *av)
{
	for (unsigned k = 0; k < FAB_AV_CHUNKS; k++) {
		free(atomic_load(&av->chunk[k]));
		free(atomic_load(&av->extra[k]));
	}
	fab_av_keys_fini(av);
	free(av->used);
	free(av->slots);
	pthread_mutex_destroy(&av->lock);
	pthread_mutex_destroy(&av->change_lock);
	free(av);
}

static int av_close(struct fid *fid)
{
	struct fab_av *av = fab_container(fid, struct fab_av, av_fid.fid);
	struct fab_domain *domain = av->domain;
	uint32_t ref = atomic_load(&av->ref);

	if (ref) {
		FI_WARN(domain->fabric->prov, FI_LOG_AV, "fi_close of an address vector: %u endpoints and sets use it; "
			"close them first\n", ref);
		return -FI_EBUSY;
	}
	if (av->eq)
		fab_eq_put(av->eq);
	av_free(av);
	atomic_fetch_sub(&domain->ref, 1);
	return 0;
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
};

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = fab_av_set_open,
	.insert_auth_key = fab_av_insert_auth_key,
	.lookup_auth_key = fab_av_lookup_auth_key,
	.set_user_id = fab_av_set_user_id,
};

static int check_attr(const struct fab_domain *domain, const struct fi_av_attr *attr)
{
	const struct fi_provider *prov = domain->fabric->prov;
	const char *why = !attr ? "is NULL" : attr->type > FI_AV_TABLE ? "has an unknown type" :
			  attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > 32 ? "has rx_ctx_bits outside 0 to 32" : NULL;

	if (why) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: attr %s\n", why);
		return -FI_EINVAL;
	}
	if (attr->name) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: name \"%.64s\": address vectors are not shared between processes "
			"(FI_SHARED_AV is not offered)\n", attr->name);
		return -FI_ENOSYS;
	}
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC | FI_AV_USER_ID)) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: flags %#" PRIx64 "; FI_EVENT, FI_SYMMETRIC and FI_AV_USER_ID are "
			"known, FI_READ needs a name\n", attr->flags);
		return -FI_EBADFLAGS;
	}
	if ((attr->flags & FI_AV_USER_ID) && !(domain->caps & FI_AV_USER_ID)) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: FI_AV_USER_ID, and domain %s was opened without it\n",
			domain->name);
		return -FI_EINVAL;
	}
	if (attr->count > FAB_AV_MAX) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: count %zu; at most %" PRIu64 " addresses fit\n", attr->count,
			FAB_AV_MAX);
		return -FI_EINVAL;
	}
	if (domain->addr_format != FI_SOCKADDR_IN && domain->addr_format != FI_SOCKADDR_IN6) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: domain %s was opened with addr_format %u; FI_SOCKADDR_IN or "
			"FI_SOCKADDR_IN6, as fi_getinfo() gives, is needed\n", domain->name, domain->addr_format);
		return -FI_EINVAL;
	}
	return 0;
}

int fab_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr, struct fid_av **av_fid, void *context)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct fab_av *av;
	int ret;

	ret = check_attr(domain, attr);
	if (ret)
		return ret;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	FAB_OPS_FILL(&av_fid_ops);
	FAB_OPS_FILL(&av_ops);
	av->av_fid = (struct fid_av) {
		.fid = { .fclass = FI_CLASS_AV, .context = context, .ops = &av_fid_ops },
		.ops = &av_ops,
	};
	av->domain = domain;
	av->family = domain->addr_format == FI_SOCKADDR_IN ? AF_INET : AF_INET6;
	av->addrlen = fab_addr_family_len(av->family);
	av->async = attr->flags & FI_EVENT;
	av->user_ids = domain->caps & FI_AV_USER_ID;
	pthread_mutex_init(&av->change_lock, NULL);
	pthread_mutex_init(&av->lock, NULL);
	fab_list_init(&av->watches);
	ret = grow_slots(av, fab_max((uint64_t) SLOTS_MIN, fab_pow2_up(attr->count * 2)));
	if (!ret && domain->av_auth_key)
		ret = fab_av_keys_init(av);
	if (ret) {
		av_free(av);
		return ret;
	}
	if (attr->type == FI_AV_UNSPEC)
		attr->type = domain->av_type;
	atomic_fetch_add(&domain->ref, 1);
	*av_fid = &av->av_fid;
	return 0;
}
