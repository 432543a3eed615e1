/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Address vectors of datagram endpoints, fi_av(3): a table from index to name and address handle of the device.
 * FI_AV_MAP and FI_AV_TABLE are the same. Endpoints and domains see the struct fab_av at its start, of which only the
 * fields that all vectors have in common are in use.
 *
 * Entries are in chunks that never move, each twice as large as the one before, so that a send reads an entry without a
 * lock. An entry is published (cnt) after it has been filled in. A vector has an address once, and keeps it until it
 * has been removed as often as it was inserted. change_lock guards changes.
 */
#include "verbs/ud.h"
#include "verbs/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/av/av.h"
#include "common/ops/ops.h"

#define FIRST		64		/* entries of the first chunk */
#define CHUNKS		16
#define HOP_LIMIT	64

struct vrb_ud_av {
	struct fab_av base;		/* av_fid, domain, ref, async, eq, change_lock, lowest, cnt */
	struct vrb_ud_peer *chunk[CHUNKS];	/* owned */
	struct fab_table by_name;	/* struct vrb_ud_peer.by_name: each address once */
	struct vrb_gids gids;		/* of the port at the time of fi_av_open() */
	uint32_t number;		/* insertions of new addresses so far */
};

static struct vrb_ud_av *av_of(const struct fid_av *fid)
{
	return fab_container(fid, struct vrb_ud_av, base.av_fid);
}

static struct vrb_ud_peer *entry(const struct vrb_ud_av *av, uint64_t index)
{
	unsigned k = __builtin_clzll(FIRST) - __builtin_clzll(index + FIRST);

	return av->chunk[k] + (index + FIRST - ((uint64_t) FIRST << k));
}

const struct vrb_ud_peer *vrb_ud_peer(const struct fab_av *base, fi_addr_t fi_addr)
{
	const struct vrb_ud_av *av = fab_container(base, const struct vrb_ud_av, base);
	const struct vrb_ud_peer *peer;

	if (fi_addr >= atomic_load_explicit(&base->cnt, memory_order_acquire))
		return NULL;
	peer = entry(av, fi_addr);
	return peer->ah ? peer : NULL;
}

/* ---- insert ---- */

/* Make an address handle. It needs the index of a GID of the same sort as the peer's. */
struct ibv_ah *vrb_ud_ah(const struct vrb_domain *domain, const struct vrb_gids *gids, const struct vrb_ud_name *name)
{
	const struct vrb_device *dev = domain->dev;
	struct ibv_ah_attr attr = {
		.is_global = 1, .dlid = name->lid, .sl = name->sl, .port_num = dev->port_num,
		.grh = { .dgid = name->gid, .hop_limit = HOP_LIMIT, .sgid_index = vrb_gid_towards(gids, &name->gid) },
	};

	return ibv_create_ah(domain->pd, &attr);
}

/* Get the lowest free entry, which may be one that was never used. Lock held. NULL: no memory, or the vector is
 * full. */
static struct vrb_ud_peer *free_entry(struct vrb_ud_av *av, uint64_t *index)
{
	uint64_t cnt = atomic_load_explicit(&av->base.cnt, memory_order_relaxed);
	unsigned k;

	while (av->base.lowest < cnt && entry(av, av->base.lowest)->ah)
		av->base.lowest++;
	*index = av->base.lowest;
	if (*index < cnt)
		return entry(av, *index);
	k = __builtin_clzll(FIRST) - __builtin_clzll(cnt + FIRST);
	if (k >= CHUNKS)
		return NULL;
	if (!av->chunk[k])
		av->chunk[k] = calloc((size_t) FIRST << k, sizeof(*av->chunk[k]));
	return av->chunk[k] ? entry(av, cnt) : NULL;
}

/* Hash of the fields of a name that determine the destination. */
static uint64_t hash_of(const struct vrb_ud_name *name)
{
	return fab_mix64(name->gid.global.interface_id ^ fab_mix64(name->gid.global.subnet_prefix ^ name->qpn));
}

static struct vrb_ud_peer *ud_av_find(const struct vrb_ud_av *av, const struct vrb_ud_name *name, uint64_t hash)
{
	struct fab_list *link;

	fab_list_for_each(fab_table_bucket(&av->by_name, hash), link) {
		struct vrb_ud_peer *peer = fab_container(link, struct vrb_ud_peer, by_name.link);

		if (!memcmp(&peer->name.gid, &name->gid, sizeof(name->gid)) && peer->name.qpn == name->qpn &&
		    peer->name.lid == name->lid && peer->name.sl == name->sl)
			return peer;
	}
	return NULL;
}

/* Insert a name. Lock held. 0 or -errno. */
static int insert_one(struct vrb_ud_av *av, const struct vrb_ud_name *name, fi_addr_t *fi_addr)
{
	const struct vrb_domain *domain = fab_container(av->base.domain, const struct vrb_domain, base);
	uint64_t index, hash = hash_of(name);
	struct vrb_ud_peer *peer = ud_av_find(av, name, hash);
	struct ibv_ah *ah;

	if (peer) {
		peer->ref++;
		*fi_addr = peer->index;
		return 0;
	}
	peer = free_entry(av, &index);
	if (!peer)
		return -FI_ENOMEM;
	ah = vrb_ud_ah(domain, &av->gids, name);
	if (!ah) {
		VRB_WARN(FI_LOG_AV,
			 "fi_av_insert: no address handle on %s, port %u for queue pair %u: ibv_create_ah: %s\n",
			 domain->dev->name, domain->dev->port_num, name->qpn, strerror(errno));
		return errno ? -errno : -FI_EIO;
	}
	peer->name = *name;
	peer->ref = 1;
	peer->index = (uint32_t) index;
	peer->number = av->number++;
	fab_table_add(&av->by_name, &peer->by_name, hash);
	peer->ah = ah;
	if (index == atomic_load_explicit(&av->base.cnt, memory_order_relaxed))
		atomic_store_explicit(&av->base.cnt, index + 1, memory_order_release);
	*fi_addr = index;
	return 0;
}

static int batch_start(struct fab_av_batch *batch, struct fid_av *fid, fi_addr_t *fi_addr, uint64_t flags,
		       void *context)
{
	if (!(flags & ~(FI_MORE | FI_SYNC_ERR)))
		return fab_av_batch_start(batch, &av_of(fid)->base, fi_addr, flags, context);
	VRB_WARN(FI_LOG_AV, "fi_av_insert: flags %#" PRIx64 "; only FI_MORE and FI_SYNC_ERR are supported\n", flags);
	return -FI_EBADFLAGS;
}

/* Insert the next name of a batch, or with ret not 0, report that it cannot be inserted. */
static void batch_add(struct fab_av_batch *batch, const struct vrb_ud_name *name, int ret)
{
	fi_addr_t index = FI_ADDR_NOTAVAIL;

	pthread_mutex_lock(&batch->av->change_lock);
	if (!ret)
		ret = insert_one(fab_container(batch->av, struct vrb_ud_av, base), name, &index);
	pthread_mutex_unlock(&batch->av->change_lock);
	fab_av_batch_next(batch, index, ret);
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags,
		     void *context)
{
	struct fab_av_batch batch;
	struct vrb_ud_name name;
	int ret;

	ret = batch_start(&batch, fid, fi_addr, flags, context);
	if (ret)
		return ret;
	if (!addr && count) {
		VRB_WARN(FI_LOG_AV, "fi_av_insert of %zu addresses: addr is NULL\n", count);
		return -FI_EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		memcpy(&name, (const uint8_t *) addr + i * sizeof(name), sizeof(name));
		batch_add(&batch, &name, 0);
	}
	return fab_av_batch_end(&batch);
}

/* ---- insert by name: asks the node (names.h), with no lock held ---- */

/* Insert the endpoint of the n-th node. If the node is an address text, it contains the service, and `service` is 0. */
static void insert_named(struct fab_av_batch *batch, const char *node, uint64_t n, size_t service)
{
	char why[VRB_NAMES_WHY] = "services are numbers up to 65535";
	struct vrb_ud_name name;
	int ret = -FI_EINVAL;

	if (service <= UINT16_MAX)
		ret = vrb_names_ask(node, n, 0, (uint16_t) service, &name, why);
	if (ret)
		VRB_WARN(FI_LOG_AV, "fi_av_insertsvc: %.200s, %" PRIu64 " on, service %zu: %s\n", node, n, service,
			 why);
	batch_add(batch, &name, ret);
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service, size_t svccnt,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct fab_av_batch batch;
	const char *reason = "node must be given, and no more nodes and services than exist";
	size_t first, last;
	uint16_t number;
	int ret;

	ret = batch_start(&batch, fid, fi_addr, flags, context);
	if (ret)
		return ret;
	ret = !node || nodecnt > UINT32_MAX || svccnt > UINT16_MAX ? -FI_EINVAL :
	      vrb_names_service(service, &number, &reason);
	if (ret) {
		VRB_WARN(FI_LOG_AV, "fi_av_insertsym of %zu nodes, %zu services: %s\n", nodecnt, svccnt, reason);
		return ret;
	}
	first = number;
	last = first + svccnt;
	for (size_t i = 0; i < nodecnt; i++) {
		for (size_t k = first; k < last; k++)
			insert_named(&batch, node, i, k);
	}
	return fab_av_batch_end(&batch);
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr, uint64_t flags,
			void *context)
{
	return av_insertsym(fid, node, 1, service, 1, fi_addr, flags, context);
}

/* ---- the other calls ---- */

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct vrb_ud_av *av = av_of(fid);
	int ret = 0;

	if (flags)
		return -FI_EBADFLAGS;
	pthread_mutex_lock(&av->base.change_lock);
	for (size_t i = 0; i < count; i++) {
		struct vrb_ud_peer *peer = (struct vrb_ud_peer *) vrb_ud_peer(&av->base, fi_addr[i]);

		if (!peer) {
			VRB_WARN(FI_LOG_AV, "fi_av_remove: the address vector has no fi_addr %" PRIu64 "\n",
				 fi_addr[i]);
			ret = -FI_EINVAL;
			continue;
		}
		if (--peer->ref)
			continue;
		fab_table_remove(&av->by_name, &peer->by_name);
		ibv_destroy_ah(peer->ah);
		peer->ah = NULL;
		av->base.lowest = fab_min(av->base.lowest, fi_addr[i]);
	}
	pthread_mutex_unlock(&av->base.change_lock);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct fab_av *av = &av_of(fid)->base;
	const struct vrb_ud_peer *peer;

	/* another thread may remove the entry, and insert another name there */
	pthread_mutex_lock(&av->change_lock);
	peer = vrb_ud_peer(av, fi_addr);
	if (peer && *addrlen)		/* with length 0, addr may be NULL: the caller queries the length */
		memcpy(addr, &peer->name, fab_min(*addrlen, sizeof(peer->name)));
	pthread_mutex_unlock(&av->change_lock);
	if (!peer)
		return -FI_EINVAL;
	*addrlen = sizeof(peer->name);
	return 0;
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	struct vrb_ud_name name;
	char gid[INET6_ADDRSTRLEN];

	(void) fid;
	memcpy(&name, addr, sizeof(name));
	inet_ntop(AF_INET6, name.gid.raw, gid, sizeof(gid));
	*len = snprintf(buf, *len, "fi_addr_ib_ud://%s:%x/%x/%x/%x", gid, name.qpn, name.lid, name.pkey, name.sl) + 1;
	return buf;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fab_av *av = fab_container(fid, struct fab_av, av_fid.fid);

	if (flags || bfid->fclass != FI_CLASS_EQ || !av->async || av->eq) {
		VRB_WARN(FI_LOG_AV,
			 "fi_av_bind: one event queue can be bound, without flags, to a vector that was opened with "
			 "FI_EVENT\n");
		return flags ? -FI_EBADFLAGS : -FI_EINVAL;
	}
	av->eq = fab_container(bfid, struct fab_eq, eq_fid.fid);
	fab_eq_get(av->eq);
	return 0;
}

static int av_close(struct fid *fid)
{
	struct vrb_ud_av *av = fab_container(fid, struct vrb_ud_av, base.av_fid.fid);
	uint64_t cnt = atomic_load(&av->base.cnt);

	if (atomic_load(&av->base.ref)) {
		VRB_WARN(FI_LOG_AV, "fi_close of an address vector: endpoints use it; close them first\n");
		return -FI_EBUSY;
	}
	fab_av_drop_events(&av->base);
	while (cnt--) {
		if (entry(av, cnt)->ah)
			ibv_destroy_ah(entry(av, cnt)->ah);
	}
	fab_table_fini(&av->by_name);
	for (unsigned k = 0; k < CHUNKS; k++)
		free(av->chunk[k]);
	pthread_mutex_destroy(&av->base.change_lock);
	atomic_fetch_sub(&av->base.domain->ref, 1);
	free(av);
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
	.lookup2 = fab_av_lookup2,
};

void vrb_ud_av_fill_ops(void)
{
	FAB_OPS_FILL(&av_fid_ops);
	FAB_OPS_FILL(&av_ops);
}

int vrb_ud_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr, struct fid_av **av_fid, void *context)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct vrb_ud_av *av;

	if (!attr || attr->type > FI_AV_TABLE || attr->name || attr->rx_ctx_bits ||
	    (attr->flags & ~(FI_EVENT | FI_SYMMETRIC))) {
		VRB_WARN(FI_LOG_AV, "fi_av_open: vectors of datagram endpoints have no name and no rx_ctx_bits; the "
			 "only flags are FI_EVENT and FI_SYMMETRIC\n");
		return attr && attr->name ? -FI_ENOSYS : attr && (attr->flags & ~(FI_EVENT | FI_SYMMETRIC | FI_PEER)) ?
		       -FI_EBADFLAGS : -FI_EINVAL;
	}
	av = calloc(1, sizeof(*av));
	if (!av || fab_table_init(&av->by_name)) {
		free(av);
		return -FI_ENOMEM;
	}
	av->base.av_fid = (struct fid_av) {
		.fid = { .fclass = FI_CLASS_AV, .context = context, .ops = &av_fid_ops },
		.ops = &av_ops,
	};
	av->base.domain = domain;
	av->base.addrlen = sizeof(struct vrb_ud_name);
	av->base.async = attr->flags & FI_EVENT;
	vrb_gids_find(fab_container(domain, struct vrb_domain, base)->dev, &av->gids);
	pthread_mutex_init(&av->base.change_lock, NULL);
	if (attr->type == FI_AV_UNSPEC)
		attr->type = domain->attr.av_type;
	atomic_fetch_add(&domain->ref, 1);
	*av_fid = &av->base.av_fid;
	return 0;
}
