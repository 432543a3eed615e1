/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The calls of fi_av(3). Insertions go through struct batch, which records where to put results. Not on the data path.
 */
#include "common/av/vector.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_peer.h>
#include "base/bits.h"
#include "common/av/av_batch.h"
#include "common/av/av_key.h"
#include "common/av/av_set.h"
#include "common/av/av_shared.h"
#include "common/av/av_table.h"
#include "common/queue/queue.h"
#include "common/domain/domain.h"
#include "common/net/net.h"
#include "common/ops/ops.h"

/* ---- the insert calls ---- */

/* One insert call: its results, and the meaning of the values that fi_addr has on entry. */
struct batch {
	struct fab_av_batch results;
	bool user_ids;			/* fi_addr has user ids */
	bool auth_keys;			/* fi_addr has handles of keys */
	bool firewalled;		/* FI_FIREWALL_ADDR: these peers connect to us */
};

/* Check flags that give fi_addr a meaning on entry. It can have one meaning only. 0 or -FI_E*, logged. */
static int check_extra(const struct fab_av *av, const fi_addr_t *fi_addr, uint64_t flags)
{
	bool user_ids = flags & FI_AV_USER_ID, auth_keys = flags & FI_AUTH_KEY;
	const char *why = user_ids && !av->user_ids ? "FI_AV_USER_ID, but the domain was opened without it" :
			  auth_keys && !av->keys ? "FI_AUTH_KEY, but the domain was opened without FI_AV_AUTH_KEY" :
			  !auth_keys && av->keys ? "no FI_AUTH_KEY: with FI_AV_AUTH_KEY, fi_addr has the key of each" :
			  user_ids && auth_keys ? "both FI_AV_USER_ID and FI_AUTH_KEY: use fi_av_set_user_id" :
			  (user_ids || auth_keys) && !fi_addr ? "fi_addr NULL; these flags read values from it" : NULL;

	if (!why)
		return 0;
	FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_insert: %s\n", why);
	return user_ids && !av->user_ids ? -FI_ENOSYS : -FI_EINVAL;
}

/* Check the arguments of an insertion. 0: the caller resolves names, then calls av_insert_start(). -FI_E*: nothing to
 * end. */
static int batch_prepare(struct batch *batch, struct fab_av *av, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	const struct fi_provider *prov = av->domain->fabric->prov;
	uint64_t firewall = av->domain->av_firewall ? FI_FIREWALL_ADDR : 0;
	int ret;

	if (flags & ~(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID | FI_AUTH_KEY | firewall)) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_insert: flags are %#" PRIx64 "; only FI_MORE, FI_SYNC_ERR, "
			"FI_AV_USER_ID, FI_AUTH_KEY%s are supported\n", flags, firewall ? " and FI_FIREWALL_ADDR" : "");
		return -FI_EBADFLAGS;
	}
	ret = check_extra(av, fi_addr, flags);
	if (ret)
		return ret;
	ret = fab_av_batch_start(&batch->results, av, fi_addr, flags, context);
	if (ret)
		return ret;
	batch->user_ids = flags & FI_AV_USER_ID;
	batch->auth_keys = flags & FI_AUTH_KEY;
	batch->firewalled = flags & FI_FIREWALL_ADDR;
	return 0;
}

/* Begin to change the vector; nothing may block until batch_end(). 0; -FI_E*: there is nothing to end. */
static int av_insert_start(struct batch *batch)
{
	return fab_av_change_begin(batch->results.av);
}

/* Insert the next address of the call and record the result. If ret is an error, only record that. */
static void av_batch_add(struct batch *batch, const union fab_sockaddr *addr, int ret)
{
	struct fab_av_batch *results = &batch->results;
	struct fab_av *av = results->av;
	fi_addr_t fi_addr = FI_ADDR_NOTAVAIL;
	fi_addr_t in = results->fi_addr ? results->fi_addr[results->index] : FI_ADDR_NOTAVAIL;
	struct fab_auth_key *key = batch->auth_keys ? fab_av_key_at(av, in) : NULL;

	if (!ret && batch->auth_keys && !key)
		ret = -FI_EINVAL;
	if (!ret)
		ret = fab_av_table_insert(av, addr, key, &fi_addr);
	if (!ret && batch->firewalled)
		fab_av_table_firewall(av, fi_addr);
	if (!ret && batch->user_ids)
		atomic_store_explicit(&fab_av_extra(av, fi_addr)->user_id, in, memory_order_relaxed);
	if (ret)
		FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_insert: address %zu of the call: %s\n",
			results->index, fi_strerror(-ret));
	fab_av_batch_next(results, fi_addr, ret);
}

/* End the changes. Returns the result of the call. */
static int batch_end(struct batch *batch)
{
	fab_av_change_end(batch->results.av);
	return fab_av_batch_end(&batch->results);
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
		FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_insert: addr is %p and count %zu; addr must not be "
			"NULL, and count at most %" PRIu64 "\n", addr, count, FAB_AV_MAX);
		return -FI_EINVAL;
	}
	ret = batch_prepare(&batch, av, fi_addr, flags, context);
	if (!ret)
		ret = av_insert_start(&batch);
	if (ret)
		return ret;
	for (size_t i = 0; i < count; i++, next += av->addrlen) {
		union fab_any_addr full;
		union fab_sockaddr one;

		memset(&full, 0, sizeof(full));
		memcpy(&full, next, av->addrlen);
		fab_addr_condense(&full, &one);
		av_batch_add(&batch, &one, one.sa.sa_family == av->family ? 0 : -FI_EINVAL);
	}
	return batch_end(&batch);
}

static int resolve(const struct fab_av *av, const char *node, const char *service, union fab_sockaddr *addr,
		   const char **why)
{
	union fab_any_addr full;
	int ret;

	if (av->family != FAB_AF_GID)
		return fab_resolve_name(node, service, 0, av->family, addr, why);
	ret = fab_resolve_gid(node, service, 0, &full.sib, why);
	if (!ret)
		fab_addr_condense(&full, addr);
	return ret;
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service, fi_addr_t *fi_addr, uint64_t flags,
			void *context)
{
	struct fab_av *av = av_of(fid);
	union fab_sockaddr addr;
	struct batch batch;
	const char *why;
	int ret, found;

	ret = batch_prepare(&batch, av, fi_addr, flags, context);
	if (ret)
		return ret;
	found = resolve(av, node, service, &addr, &why);
	if (found)
		FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_insertsvc: %s\n", why);
	ret = av_insert_start(&batch);
	if (ret)
		return ret;
	av_batch_add(&batch, &addr, found);
	return batch_end(&batch);
}

/* A node of fi_av_insertsym(). */
struct node {
	union fab_sockaddr addr;	/* valid if ret is 0 */
	int ret;
};

/* Resolve cnt nodes, one after the other. The caller frees the array; NULL: no memory. */
static struct node *resolve_nodes(const struct fab_av *av, const char *name, size_t cnt)
{
	struct node *nodes = calloc(cnt ? cnt : 1, sizeof(*nodes));
	const char *why;

	for (size_t i = 0; nodes && i < cnt; i++) {
		nodes[i].ret = fab_resolve_nth(name, i, 0, av->family, &nodes[i].addr, &why);
		if (nodes[i].ret)
			FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_insertsym: %s\n", why);
	}
	return nodes;
}

/* Insert the addresses of one node with svccnt consecutive ports. */
static void batch_add_node(struct batch *batch, const struct node *node, uint64_t first_port, size_t svccnt)
{
	union fab_sockaddr addr = node->addr;

	for (size_t k = 0; k < svccnt; k++) {
		uint64_t port = first_port + k;

		if (!node->ret)
			fab_addr_set_port(&addr.sa, port);
		av_batch_add(batch, &addr, node->ret ? node->ret : port <= UINT16_MAX ? 0 : -FI_EINVAL);
	}
}

static int av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt, const char *service, size_t svccnt,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct fab_av *av = av_of(fid);
	const struct fi_provider *prov = av->domain->fabric->prov;
	union fab_sockaddr base;
	const char *why = NULL;
	struct node *nodes;
	struct batch batch;
	int ret;

	if (av->family == FAB_AF_GID) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_insertsym: GIDs are not numbered one after the other; insert them "
			"with fi_av_insertsvc()\n");
		return -FI_ENOSYS;
	}
	ret = fab_resolve_name(NULL, service, FI_SOURCE, av->family, &base, &why);
	if (!ret && (!node || !service || nodecnt > FAB_AV_MAX || svccnt > UINT16_MAX + 1u ||
		     nodecnt * svccnt > FAB_AV_MAX)) {
		why = "node and service must be given, be no more than there are addresses and ports, and their "
		      "product no more than fits";
		ret = -FI_EINVAL;
	}
	if (ret) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_insertsym: %s\n", why);
		return ret;
	}
	ret = batch_prepare(&batch, av, fi_addr, flags, context);
	if (ret)
		return ret;
	nodes = resolve_nodes(av, node, nodecnt);
	if (!nodes)
		return -FI_ENOMEM;
	ret = av_insert_start(&batch);
	if (ret)
		goto free_nodes;
	for (size_t i = 0; i < nodecnt; i++)
		batch_add_node(&batch, &nodes[i], fab_addr_port(&base.sa), svccnt);
	ret = batch_end(&batch);

free_nodes:
	free(nodes);
	return ret;
}

/* ---- the other calls ---- */

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct fab_av *av = av_of(fid);
	int ret;

	if (flags || (!fi_addr && count)) {
		FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_remove: flags are %#" PRIx64 ", fi_addr is %p and "
			"count %zu; flags must be 0, and fi_addr not NULL\n", flags, (void *) fi_addr, count);
		return flags ? -FI_EBADFLAGS : -FI_EINVAL;
	}
	ret = fab_av_change_begin(av);
	if (ret)
		return ret;
	for (size_t i = 0; i < count; i++) {
		if (fab_av_table_remove(av, fi_addr[i])) {
			FI_WARN(av->domain->fabric->prov, FI_LOG_AV, "fi_av_remove: the address vector has no fi_addr "
				"%" PRIu64 "\n", fi_addr[i]);
			ret = -FI_EINVAL;
		}
	}
	fab_av_change_end(av);
	return ret;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct fab_av *av = av_of(fid);
	union fab_sockaddr there;
	union fab_any_addr full;

	if (!fab_av_table_get(av, fi_addr, &there))
		return -FI_EINVAL;
	fab_addr_expand(&there, &full);
	if (*addrlen)		/* with 0 the caller asks for the length only, and addr may be NULL */
		memcpy(addr, &full, fab_min(*addrlen, av->addrlen));
	*addrlen = av->addrlen;
	return 0;
}

int fab_av_lookup2(struct fid_av *fid, fi_addr_t fi_addr, void *buf, size_t *len, uint64_t flags,
		   struct fid_xpu_ctx *ctx)
{
	(void) ctx;
	return flags ? -FI_ENOSYS : fid->ops->lookup(fid, fi_addr, buf, len);
}

static const char *av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	const struct fab_av *av = av_of(fid);
	union fab_any_addr copy;

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
	fab_av_shared_close(av->shared);
	fab_av_keys_fini(av);
	fab_av_table_fini(av);
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
	fab_av_drop_events(av);
	av_free(av);
	atomic_fetch_sub(&domain->ref, 1);
	return 0;
}

static int av_control(struct fid *fid, int command, void *arg)
{
	if (command != FI_EXPORT_FID)
		return -FI_ENOSYS;
	return fab_domain_lend(fab_container(fid, struct fab_av, av_fid.fid)->domain, fid, arg);
}

static struct fi_ops av_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = av_control,
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
	.lookup2 = fab_av_lookup2,
};

/* Query the owner of a vector that is opened with FI_PEER (fi_peer(3)): *owner gets the attributes of the owner's
 * vector. 0; -FI_EINVAL; or the error of the owner's query. Errors are logged. */
static int ask_owner(const struct fab_domain *domain, const struct fi_av_attr *attr,
		     const struct fi_peer_av_context *context, struct fi_av_attr *owner)
{
	bool whole = context && context->size >= sizeof(*context) && context->av && context->av->owner_ops &&
		     FI_CHECK_OP(context->av->owner_ops, struct fi_ops_av_owner, query);
	int ret;

	if (!whole || attr->name) {
		FI_WARN(domain->fabric->prov, FI_LOG_AV, "fi_av_open with FI_PEER: %s\n",
			attr->name ? "an address vector with a name cannot have an owner" :
			"the context must be a struct fi_peer_av_context, with an av whose owner_ops have query");
		return -FI_EINVAL;
	}
	ret = context->av->owner_ops->query(context->av, owner);
	if (ret)
		FI_WARN(domain->fabric->prov, FI_LOG_AV, "fi_av_open with FI_PEER: the owner's query returned %d\n",
			ret);
	return ret;
}

/* True if entries may have user ids. Those of a peer's vector are the owner's, if it sets them. */
static bool has_user_ids(const struct fab_domain *domain, const struct fi_av_attr *attr)
{
	return (domain->attr.caps & FI_AV_USER_ID) || (attr->flags & FI_PEER);
}

static int av_check_attr(const struct fab_domain *domain, const struct fi_av_attr *attr)
{
	const struct fi_provider *prov = domain->fabric->prov;
	const char *why = !attr ? "is NULL" : attr->type > FI_AV_TABLE ? "has an unknown type" :
			  attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > 32 ? "has rx_ctx_bits outside 0 to 32" : NULL;

	if (why) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: attr %s\n", why);
		return -FI_EINVAL;
	}
	if (attr->name && domain->auth.per_av) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: name \"%.64s\": authorization keys of an address vector "
			"(FI_AV_AUTH_KEY) are not shared\n", attr->name);
		return -FI_ENOSYS;
	}
	if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC | FI_AV_USER_ID | FI_PEER | (attr->name ? FI_READ : 0))) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: flags are %#" PRIx64 "; FI_EVENT, FI_SYMMETRIC, FI_AV_USER_ID, "
			"FI_PEER and, with a name, FI_READ are supported\n", attr->flags);
		return -FI_EBADFLAGS;
	}
	if ((attr->flags & FI_AV_USER_ID) && !has_user_ids(domain, attr)) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open with FI_AV_USER_ID: domain %s was opened without that "
			"capability; ask fi_getinfo() for it\n", domain->name);
		return -FI_EINVAL;
	}
	if (attr->count > FAB_AV_MAX) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: count is %zu; an address vector holds at most %" PRIu64
			" addresses\n", attr->count, FAB_AV_MAX);
		return -FI_EINVAL;
	}
	if (domain->attr.addr_format != FI_SOCKADDR_IN && domain->attr.addr_format != FI_SOCKADDR_IN6 &&
	    domain->attr.addr_format != FI_SOCKADDR_IB) {
		FI_WARN(prov, FI_LOG_AV, "fi_av_open: domain %s was opened with addr_format %u in place of "
			"FI_SOCKADDR_IN, FI_SOCKADDR_IN6 or FI_SOCKADDR_IB; open it with an info of fi_getinfo()\n",
			domain->name,
			domain->attr.addr_format);
		return -FI_EINVAL;
	}
	return 0;
}

int fab_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr, struct fid_av **av_fid, void *context)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct fi_av_attr owner = { 0 };
	struct fab_av *av;
	int ret;

	ret = av_check_attr(domain, attr);
	if (!ret && (attr->flags & FI_PEER))
		ret = ask_owner(domain, attr, context, &owner);
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
	av->family = domain->attr.addr_format == FI_SOCKADDR_IN ? AF_INET :
		     domain->attr.addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : FAB_AF_GID;
	av->addrlen = av->family == FAB_AF_GID ? sizeof(struct fab_sockaddr_ib) : fab_addr_family_len(av->family);
	av->async = attr->flags & FI_EVENT;
	av->rx_ctx_bits = attr->rx_ctx_bits ? attr->rx_ctx_bits : owner.rx_ctx_bits;
	av->user_ids = has_user_ids(domain, attr);
	ret = fab_av_table_init(av, fab_min(fab_max(attr->count, owner.count), (size_t) FAB_AV_MAX));
	if (!ret && domain->auth.per_av)
		ret = fab_av_keys_init(av);
	if (!ret && attr->name)
		ret = fab_av_shared_open(av, attr, &av->shared);
	if (ret) {
		av_free(av);
		return ret;
	}
	fab_av_sync(av);
	if (attr->name)
		attr->map_addr = fab_av_shared_map(av->shared);
	if (attr->type == FI_AV_UNSPEC)
		attr->type = owner.type ? owner.type : domain->attr.av_type;
	atomic_fetch_add(&domain->ref, 1);
	*av_fid = &av->av_fid;
	return 0;
}
