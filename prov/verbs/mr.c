/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions, fi_mr(3): regions of the device. A descriptor is the struct ibv_mr, and a key is its rkey. Remote
 * addresses are virtual addresses.
 */
#include "verbs/kind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <rdma/fi_errno.h>
#include "common/hmem/hmem.h"
#include "common/memory/memory.h"
#include "common/ops/ops.h"

struct vrb_mr {
	struct fid_mr mr_fid;
	struct vrb_domain *domain;	/* borrowed: registration took a reference */
	struct ibv_mr *mr;		/* owned */
	uint64_t base;			/* virtual address of the first byte */
	struct ibv_mr foreign;		/* descriptor of a dma-buf region */
};

/* ---- on-demand paging ---- */

bool vrb_odp_has(const struct ibv_device_attr_ex *attr, uint32_t caps, uint32_t more)
{
	more |= IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ;
	if (attr->orig_attr.atomic_cap != IBV_ATOMIC_NONE)
		more |= IBV_ODP_SUPPORT_ATOMIC;
	return (attr->odp_caps.general_caps & IBV_ODP_SUPPORT) && (caps & more) == more;
}

bool vrb_mr_odp(const struct vrb_device *dev, const struct vrb_kind *kind)
{
	struct ibv_device_attr_ex attr = { 0 };

	if (!vrb_params.use_odp)
		return false;
	if (kind->odp && !ibv_query_device_ex(dev->verbs, NULL, &attr) && kind->odp(&attr))
		return true;
	VRB_WARN(FI_LOG_MR, "FI_VERBS_USE_ODP has no effect: %s%s does not support on-demand paging for all "
		 "operations; registered memory is pinned\n", dev->name, kind->suffix);
	return false;
}

/* ---- objects ---- */

static int mr_close(struct fid *fid)
{
	struct vrb_mr *mr = fab_container(fid, struct vrb_mr, mr_fid.fid);
	int ret = ibv_dereg_mr(mr->mr);

	if (ret) {
		VRB_WARN(FI_LOG_MR, "ibv_dereg_mr on %s: %s\n", mr->domain->dev->name, strerror(ret));
		return -ret;
	}
	if (mr->domain->base.events.eq)
		fab_eq_purge(mr->domain->base.events.eq, fid, NULL);
	atomic_fetch_sub(&mr->domain->base.ref, 1);
	free(mr);
	return 0;
}

static int mr_get_raw(const struct vrb_mr *mr, const struct fi_mr_raw_attr *attr)
{
	uint64_t key = htobe64(mr->mr_fid.key);
	bool fits;

	if (!attr->key_size || !attr->base_addr)
		return -FI_EINVAL;
	fits = *attr->key_size >= sizeof(key) && attr->raw_key;
	*attr->key_size = sizeof(key);
	*attr->base_addr = mr->base;
	if (fits)
		memcpy(attr->raw_key, &key, sizeof(key));
	return fits ? 0 : -FI_ETOOSMALL;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct vrb_mr *mr = fab_container(fid, struct vrb_mr, mr_fid.fid);

	switch (command) {
	case FI_ENABLE:
		return 0;		/* a region is enabled when it is registered */
	case FI_GET_RAW_MR:
		return arg ? mr_get_raw(mr, arg) : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.control = mr_control,
};

/* The IBV_ACCESS_* flags of a region. The destination of an iWARP read is written by the peer's device, so it needs
 * remote write access. */
static int access_of(const struct vrb_domain *domain, uint64_t access)
{
	int ibv = 0;

	if (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE))
		ibv |= IBV_ACCESS_LOCAL_WRITE;
	if (access & FI_REMOTE_READ)
		ibv |= IBV_ACCESS_REMOTE_READ;
	if ((access & FI_REMOTE_WRITE) && vrb_device_atomics(domain->dev))
		ibv |= IBV_ACCESS_REMOTE_ATOMIC;
	if ((access & FI_REMOTE_WRITE) || ((access & FI_READ) && domain->dev->quirks->reads_are_writes))
		ibv |= IBV_ACCESS_REMOTE_WRITE;
	return ibv;
}

/* The memory to register: a buffer, or a part of `dmabuf`. For a dma-buf, `buf` is the address of its first byte in
 * operations. */
struct region {
	void *buf;
	size_t len, cnt;		/* cnt: number of buffers that were given */
	bool device;			/* memory of another device: the processor must not touch it */
	uint8_t hmem;			/* if device: the number of its memory (common/hmem), or 0 */
	const struct fi_mr_dmabuf *dmabuf;
	uint64_t access, offset, flags;
	void *context;
};

static const char flags_unknown[] = "the only flag is FI_MR_DMABUF, with fi_mr_regattr";

static const char *bad_region(const struct vrb_domain *domain, const struct region *region)
{
	if (region->cnt != 1)
		return "a region has one buffer (domain_attr->mr_iov_limit)";
	if (region->offset)
		return "offset must be 0";
	return fab_mr_flags(&domain->base, region->flags) ? flags_unknown : NULL;
}

static struct ibv_mr *reg_dmabuf(const struct vrb_domain *domain, const struct region *region, int access)
{
	const struct fi_mr_dmabuf *dmabuf = region->dmabuf;

	if (vrb_params.use_dmabuf && vrb_lib_dmabuf())
		return ibv_reg_dmabuf_mr(domain->pd, dmabuf->offset, dmabuf->len, (uintptr_t) region->buf, dmabuf->fd,
					 access);
	errno = EOPNOTSUPP;
	return NULL;
}

static struct ibv_mr *reg_buf(const struct vrb_domain *domain, const struct region *region, int access)
{
	return ibv_reg_mr(domain->pd, region->buf, region->len, access | (domain->odp ? IBV_ACCESS_ON_DEMAND : 0));
}

/* Register memory of another device: as a dma-buf, if its library exports it and our device takes it; otherwise a
 * module of the kernel may know its addresses (nvidia-peermem). */
static struct ibv_mr *reg_device(const struct vrb_domain *domain, const struct region *region, int access)
{
	struct fab_hmem_dmabuf exported;
	struct ibv_mr *mr;
	int err;

	if (!region->hmem || !vrb_params.use_dmabuf || !vrb_lib_dmabuf() ||
	    fab_hmem_export(region->hmem, region->buf, region->len, &exported))
		return reg_buf(domain, region, access);
	mr = ibv_reg_dmabuf_mr(domain->pd, exported.offset, region->len, (uintptr_t) region->buf, exported.fd, access);
	err = errno;
	close(exported.fd);
	errno = err;
	return mr || err != EOPNOTSUPP ? mr : reg_buf(domain, region, access);
}

static void say_why(const struct vrb_domain *domain, const struct region *region, int err)
{
	const char *hint = err == ENOMEM ? " (see ulimit -l)" : "";

	if (region->dmabuf && err == EOPNOTSUPP)
		hint = !vrb_params.use_dmabuf ? " (FI_VERBS_USE_DMABUF is off)" :
		       !vrb_lib_dmabuf() ? " (libibverbs is older than 1.12)" : " (neither has the device)";
	VRB_WARN(FI_LOG_MR, "%s of %zu bytes on %s: %s%s\n", region->dmabuf ? "ibv_reg_dmabuf_mr" : "ibv_reg_mr",
		 region->len, domain->dev->name, strerror(err), hint);
}

/* Register a region with the device. 0 or -FI_E*, logged. */
static int mr_init(struct vrb_mr *mr, struct vrb_domain *domain, const struct region *region)
{
	int access = access_of(domain, fab_mr_access(&domain->base, region->access)) | domain->relaxed, err;

	mr->domain = domain;
	mr->base = (uintptr_t) region->buf;
	mr->mr = region->dmabuf ? reg_dmabuf(domain, region, access) :
		 region->device ? reg_device(domain, region, access) : reg_buf(domain, region, access);
	if (!mr->mr) {
		err = errno;
		say_why(domain, region, err);
		return -err;
	}
	mr->foreign = *mr->mr;
	mr->foreign.context = NULL;
	mr->mr_fid = (struct fid_mr) {
		.fid = { .fclass = FI_CLASS_MR, .context = region->context, .ops = &mr_fid_ops },
		.mem_desc = region->dmabuf || region->device ? &mr->foreign : mr->mr, .key = mr->mr->rkey,
	};
	return 0;
}

static int region_open(struct fid *fid, const struct region *region, struct fid_mr **mr_fid)
{
	struct vrb_domain *domain = fab_container(fid, struct vrb_domain, base.domain_fid.fid);
	const char *why = bad_region(domain, region);
	struct vrb_mr *mr;
	int ret;

	if (why) {
		VRB_WARN(FI_LOG_MR, "memory registration refused: %s (%zu buffers, access %#" PRIx64 ", flags %#" PRIx64
			 ")\n", why, region->cnt, region->access, region->flags);
		return why == flags_unknown ? -FI_EBADFLAGS : -FI_EINVAL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	ret = mr_init(mr, domain, region);
	if (ret) {
		free(mr);
		return ret;
	}
	atomic_fetch_add(&domain->base.ref, 1);
	*mr_fid = &mr->mr_fid;		/* before the event, whose reader may use the region at once */
	if (!domain->base.events.of_regions)
		return 0;
	ret = fab_eq_write_done(domain->base.events.eq, FI_MR_COMPLETE, &mr->mr_fid.fid, region->context, 0);
	if (ret)
		mr_close(&mr->mr_fid.fid);
	return ret;
}

/* The device chooses the key (FI_MR_PROV_KEY), so requested_key is ignored. */
static int mr_regv(struct fid *fid, const struct iovec *iov, size_t cnt, uint64_t access, uint64_t offset,
		uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct region region = {
		.cnt = iov ? cnt : 0, .access = access, .offset = offset, .flags = flags, .context = context,
	};

	(void) requested_key;
	if (region.cnt) {
		region.buf = iov->iov_base;
		region.len = iov->iov_len;
	}
	return region_open(fid, &region, mr);
}

/* What attr says of the memory of a buffer. 0 or -FI_E*, logged. */
static int find_device(const struct vrb_domain *domain, const struct fi_mr_attr *attr, uint64_t flags,
		       struct region *region)
{
	struct fi_mr_attr full;

	fab_mr_read_attr(&domain->base, attr, &full);
	if (full.iface == FI_HMEM_SYSTEM || (flags & FI_HMEM_HOST_ALLOC))
		return 0;
	region->device = true;
	/* memory of other interfaces can only be what a module of the kernel knows */
	return full.iface == FI_HMEM_CUDA || full.iface == FI_HMEM_ROCR ?
	       fab_mr_hmem(&domain->base, &full, flags, &region->hmem) : 0;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	const struct vrb_domain *domain = fab_container(fid, struct vrb_domain, base.domain_fid.fid);
	struct region region = {
		.cnt = attr->dmabuf ? attr->iov_count : 0, .dmabuf = attr->dmabuf, .access = attr->access,
		.offset = attr->offset, .flags = flags & ~FI_MR_DMABUF, .context = attr->context,
	};
	int ret;

	ret = fab_mr_refuse_key(&domain->base, attr);
	if (ret)
		return ret;
	if (domain->base.attr.caps & FI_HMEM) {
		ret = flags & FI_MR_DMABUF ? 0 : find_device(domain, attr, flags, &region);
		if (ret)
			return ret;
		region.flags &= ~FI_HMEM_HOST_ALLOC;
	}
	if (!(flags & FI_MR_DMABUF)) {
		region.dmabuf = NULL;
		region.cnt = attr->mr_iov ? attr->iov_count : 0;
		if (region.cnt) {
			region.buf = attr->mr_iov->iov_base;
			region.len = attr->mr_iov->iov_len;
		}
		return region_open(fid, &region, mr);
	}
	if (region.dmabuf) {
		region.buf = (uint8_t *) region.dmabuf->base_addr + region.dmabuf->offset;
		region.len = region.dmabuf->len;
	}
	return region_open(fid, &region, mr);
}

static int vrb_mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		      uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *) buf, .iov_len = len };

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr vrb_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = vrb_mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};

void vrb_mr_fill_ops(void)
{
	FAB_OPS_FILL(&mr_fid_ops);
	FAB_OPS_FILL(&vrb_mr_ops);
}
