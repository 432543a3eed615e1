/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions: registration, binding, closing. common/regions finds them by their keys.
 */
#include "common/memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/av/av.h"
#include "common/queue/queue.h"
#include "common/domain/domain.h"
#include "common/hmem/hmem.h"
#include "common/op/op.h"
#include "common/ops/ops.h"

/* ---- the object ---- */

void fab_mr_count(struct fab_mr *mr, struct fab_engine *engine, size_t len)
{
	struct fab_cntr *cntr = atomic_load_explicit(&mr->cntr, memory_order_acquire);
	struct fab_engine *domains;

	if (!cntr)
		return;
	/* the counter's engine is the domain's own, or follows it; so may this one */
	domains = &mr->domain->engine;
	if (engine == domains || engine->lead == domains) {
		fab_cntr_inc(cntr, len);
		return;
	}
	fab_engine_lock(domains);
	fab_cntr_inc(cntr, len);
	fab_engine_unlock(domains);
}

int fab_mr_commit(const struct fab_mr *mr, const struct iovec *iov, uint32_t cnt)
{
	const uintptr_t in_page = sysconf(_SC_PAGESIZE) - 1;

	for (uint32_t i = 0; i < cnt; i++) {
		uintptr_t start = (uintptr_t) iov[i].iov_base & ~in_page;
		size_t len = (uintptr_t) iov[i].iov_base + iov[i].iov_len - start;

		if (iov[i].iov_len && msync((void *) start, len, MS_SYNC)) {
			int err = errno;

			FI_WARN(mr->domain->fabric->prov, FI_LOG_MR, "%zu bytes at %p of region %#" PRIx64 " cannot be "
				"made durable for FI_COMMIT_COMPLETE: msync: %s\n", iov[i].iov_len, iov[i].iov_base,
				mr->mr_fid.key, strerror(err));
			return -err;
		}
	}
	return 0;
}

static int mr_close(struct fid *fid)
{
	struct fab_mr *mr = fab_container(fid, struct fab_mr, mr_fid.fid);
	struct fab_domain *domain = mr->domain;
	struct fab_cntr *cntr = atomic_load(&mr->cntr);
	int ret = fab_mr_map_withdraw(&domain->mr_map, mr);

	if (ret)
		return ret;
	fab_mr_map_remove(&domain->mr_map, mr);
	if (cntr)
		atomic_fetch_sub(&cntr->ref, 1);
	fab_auth_put(mr->auth_key);
	if (domain->events.of_regions)
		fab_eq_purge(domain->events.eq, fid, NULL);	/* no event may refer to this region any more */
	free(mr);
	atomic_fetch_sub(&domain->ref, 1);
	return 0;
}

/* Take a reference to a counter. It is on the domain's engine, or its engine follows that. 0 or -FI_E*. */
static int keep_cntr(struct fab_cntr *cntr)
{
	struct fab_domain *domain = cntr->domain;
	int ret = 0;

	pthread_mutex_lock(&domain->engines.join_lock);
	if (cntr->wait.settled)
		ret = fab_domain_lead(domain, cntr->wait.engine);
	else
		ret = fab_queue_settle(domain, &cntr->wait, &domain->engine);
	if (!ret)
		atomic_fetch_add(&cntr->ref, 1);
	pthread_mutex_unlock(&domain->engines.join_lock);
	return ret;
}

/* Any endpoint's engine may add to the counter: with the lock of the domain's engine held. */
static int mr_bind_cntr(struct fab_mr *mr, struct fab_cntr *cntr, uint64_t flags)
{
	struct fab_domain *domain = mr->domain;
	const struct fi_provider *prov = domain->fabric->prov;
	struct fab_cntr *none = NULL;
	int ret;

	if (flags != FI_REMOTE_WRITE) {
		FI_WARN(prov, FI_LOG_MR, "fi_mr_bind: flags %#" PRIx64 " for a counter; only FI_REMOTE_WRITE can be "
			"counted\n", flags);
		return -FI_EBADFLAGS;
	}
	if (!(domain->attr.caps & FI_RMA_EVENT)) {
		FI_WARN(prov, FI_LOG_MR, "fi_mr_bind: domain %s was opened without FI_RMA_EVENT\n", domain->name);
		return -FI_ENOSYS;
	}
	if (cntr->domain != domain) {
		FI_WARN(prov, FI_LOG_MR, "fi_mr_bind: the counter belongs to another domain than the region\n");
		return -FI_EINVAL;
	}
	ret = keep_cntr(cntr);
	if (ret)
		return ret;
	/* last: what is withdrawn does not come back */
	ret = fab_mr_map_withdraw(&domain->mr_map, mr);
	if (ret) {
		atomic_fetch_sub(&cntr->ref, 1);
		return ret;
	}
	if (!atomic_compare_exchange_strong(&mr->cntr, &none, cntr)) {
		atomic_fetch_sub(&cntr->ref, 1);
		FI_WARN(prov, FI_LOG_MR, "fi_mr_bind: the region has a counter already\n");
		return -FI_EINVAL;
	}
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fab_mr *mr = fab_container(fid, struct fab_mr, mr_fid.fid);
	const struct fi_provider *prov = mr->domain->fabric->prov;

	switch (bfid->fclass) {
	case FI_CLASS_CNTR:
		return mr_bind_cntr(mr, fab_container(bfid, struct fab_cntr, cntr_fid.fid), flags);
	case FI_CLASS_EP:
	case FI_CLASS_SEP:
	case FI_CLASS_RX_CTX:
		/* A region serves all endpoints of its domain. Programs may bind it all the same, as FI_MR_ENDPOINT
		 * requires. */
		return 0;
	default:
		FI_WARN(prov, FI_LOG_MR, "fi_mr_bind: object of class %zu; a counter or an endpoint can be bound\n",
			bfid->fclass);
		return -FI_EINVAL;
	}
}

static int mr_get_raw(const struct fab_mr *mr, const struct fi_mr_raw_attr *attr)
{
	uint64_t key = htobe64(mr->mr_fid.key);
	bool fits;

	if (!attr->key_size || !attr->base_addr)
		return -FI_EINVAL;
	fits = *attr->key_size >= FAB_MR_KEY_SIZE && attr->raw_key;
	*attr->key_size = FAB_MR_KEY_SIZE;
	*attr->base_addr = mr->base;
	if (!fits)
		return -FI_ETOOSMALL;
	memcpy(attr->raw_key, &key, FAB_MR_KEY_SIZE);
	return 0;
}

/* Nothing about pages is cached, so there is nothing to refresh. Only the ranges are checked. */
static int refresh(const struct fab_mr *mr, const struct fi_mr_modify *modify)
{
	uintptr_t start, first, part;

	for (size_t i = 0; i < modify->attr.iov_count; i++) {
		uint32_t k = 0;

		start = (uintptr_t) modify->attr.mr_iov[i].iov_base;
		for (; k < mr->iov_cnt; k++) {
			first = (uintptr_t) mr->iov[k].iov_base;
			part = mr->iov[k].iov_len;
			if (start >= first && start - first <= part &&
			    modify->attr.mr_iov[i].iov_len <= part - (start - first))
				break;
		}
		if (k == mr->iov_cnt) {
			FI_WARN(mr->domain->fabric->prov, FI_LOG_MR, "fi_mr_refresh: range %zu is not inside the "
				"region\n", i);
			return -FI_EINVAL;
		}
	}
	return 0;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct fab_mr *mr = fab_container(fid, struct fab_mr, mr_fid.fid);

	switch (command) {
	case FI_ENABLE:
		return 0;	/* the region is enabled since its registration: no mr_mode here asks for a later
				 * enable */
	case FI_GET_RAW_MR:
		return arg ? mr_get_raw(mr, arg) : -FI_EINVAL;
	case FI_REFRESH:
		return arg ? refresh(mr, arg) : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
};

/* ---- registration ---- */

/* test/abi/abi-generations.tsv lists the versions in which the members were added. */
void fab_mr_read_attr(const struct fab_domain *domain, const struct fi_mr_attr *attr, struct fi_mr_attr *full)
{
	static const struct {
		uint32_t version;
		size_t size;
	} generation[] = {
		{ FI_VERSION(2, 0), sizeof(struct fi_mr_attr) },
		{ FI_VERSION(1, 22), offsetof(struct fi_mr_attr, base_mr) },
		{ FI_VERSION(1, 19), offsetof(struct fi_mr_attr, page_size) },
		{ FI_VERSION(1, 5), offsetof(struct fi_mr_attr, iface) },
		{ 0, offsetof(struct fi_mr_attr, auth_key_size) },
	};
	uint32_t version = domain->fabric->fabric_fid.api_version;
	const bool hmem = domain->attr.caps & FI_HMEM;
	size_t i = 0;

	while (FI_VERSION_LT(version, generation[i].version))
		i++;
	memset(full, 0, sizeof(*full));
	memcpy(full, attr, generation[i].size);
	/* from 1.9 on, programs with FI_HMEM have these two */
	if (hmem && FI_VERSION_GE(version, FI_VERSION(1, 9)) && FI_VERSION_LT(version, FI_VERSION(1, 19))) {
		full->iface = attr->iface;
		full->device = attr->device;
	}
	if (!hmem) {
		full->iface = FI_HMEM_SYSTEM;
		full->device.reserved = 0;
		full->hmem_data = NULL;
	}
}

uint64_t fab_mr_access(const struct fab_domain *domain, uint64_t access)
{
	const uint64_t uses = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE |
			      FI_COLLECTIVE;

	if (access & ~uses)
		FI_INFO(domain->fabric->prov, FI_LOG_MR, "memory registration: access bits %#" PRIx64 " do not apply "
			"to a memory region and are ignored\n", access & ~uses);
	return access & uses;
}

uint64_t fab_mr_flags(const struct fab_domain *domain, uint64_t flags)
{
	const uint64_t idle = FI_HMEM_DEVICE_ONLY | FI_COLLECTIVE |
			      (domain->attr.caps & FI_HMEM ? 0 : FI_HMEM_HOST_ALLOC);

	if (flags & idle)
		FI_INFO(domain->fabric->prov, FI_LOG_MR, "memory registration: flags %#" PRIx64 " have no effect and "
			"are ignored\n", flags & idle);
	return flags & ~idle;
}

/* The reason why an attribute is not supported, or NULL. */
static const char *mr_bad_attr(const struct fi_mr_attr *attr)
{
	if (!attr->mr_iov || !attr->iov_count)
		return "no buffer";
	if (attr->iov_count > FAB_MR_IOV_LIMIT)
		return "more buffers than domain_attr->mr_iov_limit";
	if (attr->offset)
		return "offset must be 0";
	if (attr->base_mr || attr->sub_mr_cnt)
		return "a region made of other regions (base_mr)";
	for (size_t i = 0, len = 0; i < attr->iov_count; len += attr->mr_iov[i++].iov_len) {
		if ((uintptr_t) attr->mr_iov[i].iov_base + attr->mr_iov[i].iov_len < attr->mr_iov[i].iov_len ||
		    len + attr->mr_iov[i].iov_len < len)
			return "a buffer that goes beyond the end of the address space";
	}
	return NULL;
}

static int check_registration(const struct fab_domain *domain, const struct fi_mr_attr *attr, uint64_t flags)
{
	const struct fi_provider *prov = domain->fabric->prov;
	const char *why;

	if (flags & ~(FI_RMA_EVENT | FI_RMA_PMEM | FI_AUTH_KEY | FI_HMEM_HOST_ALLOC)) {
		FI_WARN(prov, FI_LOG_MR, "memory registration with flags %#" PRIx64 "; FI_RMA_EVENT, FI_RMA_PMEM and "
			"FI_AUTH_KEY are known, and with FI_HMEM FI_HMEM_HOST_ALLOC and FI_MR_DMABUF\n", flags);
		return -FI_EBADFLAGS;
	}
	if ((flags & FI_RMA_PMEM) && !(domain->attr.caps & FI_RMA_PMEM)) {
		FI_WARN(prov, FI_LOG_MR, "memory registration with FI_RMA_PMEM: domain %s was opened without that "
			"capability, or its provider does not have it\n", domain->name);
		return -FI_EBADFLAGS;
	}
	why = mr_bad_attr(attr);
	if (why) {
		FI_WARN(prov, FI_LOG_MR, "memory registration refused: %s (%zu buffers, access %#" PRIx64 ")\n",
			why, attr->iov_count, attr->access);
		return -FI_EINVAL;
	}
	if (!domain->mr_map.prov_key && attr->requested_key == FI_KEY_NOTAVAIL) {
		FI_WARN(prov, FI_LOG_MR, "memory registration refused: requested_key is FI_KEY_NOTAVAIL\n");
		return -FI_EKEYREJECTED;
	}
	return 0;
}

/* Find the key that attr->auth_key (a struct fi_mr_auth_key) refers to in an address vector. *key is a new reference;
 * NULL: peers need no other key than for the endpoint. 0 or -FI_EINVAL. */
static int av_auth_key(struct fab_domain *domain, const struct fi_mr_attr *attr, uint64_t flags,
		       struct fab_auth_key **key)
{
	struct fi_mr_auth_key from;
	struct fab_av *av;

	if (attr->auth_key_size != sizeof(from) || !attr->auth_key)
		return -FI_EINVAL;
	memcpy(&from, attr->auth_key, sizeof(from));
	av = from.av ? fab_container(from.av, struct fab_av, av_fid) : NULL;
	if (!av || av->domain != domain)
		return -FI_EINVAL;
	if (from.src_addr == FI_ADDR_UNSPEC)
		return 0;
	*key = fab_auth_share(flags & FI_AUTH_KEY ? fab_av_key_at(av, from.src_addr) : fab_av_key(av, from.src_addr));
	return *key ? 0 : -FI_EINVAL;
}

int fab_mr_refuse_key(const struct fab_domain *domain, const struct fi_mr_attr *attr)
{
	const struct fi_provider *prov = domain->fabric->prov;

	if (FI_VERSION_LT(domain->fabric->fabric_fid.api_version, FI_VERSION(1, 5)) || !attr->auth_key_size)
		return 0;
	FI_WARN(prov, FI_LOG_MR, "memory registration: auth_key_size is %zu; %s does not support authorization keys, "
		"and would let every peer access the region\n", attr->auth_key_size, prov->name);
	return -FI_EINVAL;
}

/* Find the authorization key that a peer needs for access to the region. *key is a new reference, or NULL. 0 or -FI_E*,
 * logged. */
static int mr_get_auth_key(struct fab_domain *domain, const struct fi_mr_attr *attr, uint64_t flags,
			   struct fab_auth_key **key)
{
	const struct fi_provider *prov = domain->fabric->prov;
	int ret = 0;

	*key = NULL;
	if (domain->auth.per_av) {
		if (attr->auth_key_size)
			ret = av_auth_key(domain, attr, flags, key);
		if (ret)
			FI_WARN(prov, FI_LOG_MR, "memory registration: with FI_AV_AUTH_KEY, auth_key is a struct "
				"fi_mr_auth_key with an address vector of domain %s and a key or address in it, or "
				"FI_ADDR_UNSPEC\n", domain->name);
		return ret;
	}
	if (!domain->auth.proven)
		return fab_mr_refuse_key(domain, attr);
	if (attr->auth_key_size)
		return fab_auth_get(prov, "memory registration", attr->auth_key, attr->auth_key_size, key);
	*key = fab_auth_share(domain->auth.key);
	return 0;
}

static struct fab_mr *mr_alloc(struct fab_domain *domain, const struct fi_mr_attr *attr, uint64_t flags)
{
	const struct fab_mr_map *map = &domain->mr_map;
	struct fab_mr *mr = calloc(1, sizeof(*mr) + attr->iov_count * sizeof(mr->iov[0]));

	if (!mr)
		return NULL;
	FAB_OPS_FILL(&mr_fid_ops);
	mr->mr_fid.fid = (struct fid) { .fclass = FI_CLASS_MR, .context = attr->context, .ops = &mr_fid_ops };
	mr->mr_fid.mem_desc = mr;
	mr->domain = domain;
	mr->access = fab_mr_access(domain, attr->access) | FAB_MR_HOST;
	mr->flags = flags;
	mr->base = map->virt_addr ? (uintptr_t) attr->mr_iov[0].iov_base : 0;
	mr->iov_cnt = attr->iov_count;
	for (size_t i = 0; i < attr->iov_count; i++) {
		mr->iov[i] = attr->mr_iov[i];
		mr->len += attr->mr_iov[i].iov_len;
	}
	return mr;
}

int fab_mr_hmem(const struct fab_domain *domain, const struct fi_mr_attr *attr, uint64_t flags, uint8_t *hmem)
{
	const struct fi_provider *prov = domain->fabric->prov;

	/* allocated by the device's library, in memory of the host */
	*hmem = FAB_HMEM_HOST;
	if (flags & FI_HMEM_HOST_ALLOC)
		return 0;
	if (attr->iface != FI_HMEM_SYSTEM && (flags & FI_RMA_PMEM)) {
		FI_WARN(prov, FI_LOG_MR, "memory registration with FI_RMA_PMEM: memory of a device is not "
			"persistent\n");
		return -FI_EBADFLAGS;
	}
	return fab_hmem_open(prov, attr->iface, attr->device.reserved, &domain->hmem_own, hmem);
}

int fab_mr_mark(void *const *desc, size_t cnt, uint64_t *flags)
{
	uint8_t hmem = fab_op_hmem(*flags);

	for (size_t i = 0; desc && i < cnt; i++) {
		const struct fab_mr *mr = desc[i];

		if (!mr || !mr->hmem || !fab_hmem_join(&hmem, mr->hmem))
			continue;
		FI_WARN(mr->domain->fabric->prov, FI_LOG_EP_DATA, "the buffers of one operation are in memory of "
			"several device interfaces; use one interface per operation\n");
		return -FI_EINVAL;
	}
	*flags |= fab_op_hmem_flags(hmem);
	return 0;
}

/* The memory of a dma-buf, which its device copies: its addresses replace it in *attr, in *iov. 0 or -FI_E*, logged. */
static int mr_take_dmabuf(const struct fab_domain *domain, struct fi_mr_attr *attr, struct iovec *iov)
{
	const struct fi_mr_dmabuf *dmabuf = attr->dmabuf;

	if (!dmabuf || attr->iov_count != 1 || !dmabuf->base_addr || attr->iface == FI_HMEM_SYSTEM) {
		FI_WARN(domain->fabric->prov, FI_LOG_MR, "memory registration with FI_MR_DMABUF: %s copies through the "
			"device's library, so the domain needs FI_HMEM, and the attributes one dma-buf, its iface and "
			"base_addr\n", domain->fabric->prov->name);
		return -FI_EOPNOTSUPP;
	}
	*iov = (struct iovec) { (uint8_t *) dmabuf->base_addr + dmabuf->offset, dmabuf->len };
	attr->mr_iov = iov;
	return 0;
}

/* Register. attr is complete (fab_mr_read_attr()). */
static int mr_reg(struct fab_domain *domain, struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr_fid)
{
	struct iovec iov;
	struct fab_mr *mr;
	uint8_t hmem;
	int ret;

	flags = fab_mr_flags(domain, flags);
	ret = flags & FI_MR_DMABUF ? mr_take_dmabuf(domain, attr, &iov) : 0;
	if (ret)
		return ret;
	flags &= ~FI_MR_DMABUF;
	ret = check_registration(domain, attr, flags);
	if (!ret)
		ret = fab_mr_hmem(domain, attr, flags, &hmem);
	if (ret)
		return ret;
	mr = mr_alloc(domain, attr, flags);
	if (!mr)
		return -FI_ENOMEM;
	mr->hmem = hmem;
	if (hmem)
		mr->access &= ~FAB_MR_HOST;
	ret = mr_get_auth_key(domain, attr, flags, &mr->auth_key);
	if (ret) {
		free(mr);
		return ret;
	}
	ret = fab_mr_map_add(&domain->mr_map, mr, attr->requested_key);
	if (ret) {
		if (ret == -FI_ENOKEY)
			FI_WARN(domain->fabric->prov, FI_LOG_MR, "memory registration refused: requested_key "
				"%#" PRIx64 " is in use\n", attr->requested_key);
		fab_auth_put(mr->auth_key);
		free(mr);
		return ret;
	}
	atomic_fetch_add(&domain->ref, 1);
	*mr_fid = &mr->mr_fid;		/* set before the event is written, since a reader of the event may use the
					 * region at once */
	if (domain->events.of_regions) {
		ret = fab_eq_write_done(domain->events.eq, FI_MR_COMPLETE, &mr->mr_fid.fid, attr->context, 0);
		if (ret)
			mr_close(&mr->mr_fid.fid);
	}
	return ret;
}

static int mr_reg_attr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	struct fab_domain *domain = fab_container(fid, struct fab_domain, domain_fid.fid);
	struct fi_mr_attr full;

	fab_mr_read_attr(domain, attr, &full);
	return mr_reg(domain, &full, flags, mr);
}

static int mr_reg_vec(struct fid *fid, const struct iovec *iov, size_t cnt, uint64_t access, uint64_t offset,
		      uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	return mr_reg(fab_container(fid, struct fab_domain, domain_fid.fid), &(struct fi_mr_attr) {
		      .mr_iov = iov, .iov_count = cnt, .access = access, .offset = offset,
		      .requested_key = requested_key, .context = context }, flags, mr);
}

static int mr_reg_buf(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		      uint64_t requested_key,
		      uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *) buf, .iov_len = len };

	return mr_reg_vec(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr fab_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg_buf,
	.regv = mr_reg_vec,
	.regattr = mr_reg_attr,
};
