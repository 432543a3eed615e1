/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory regions: the device's. A descriptor is its struct ibv_mr, a key its rkey, addresses are virtual ones. fi_mr(3).
 */
#include "verbs/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "common/ops.h"

struct vrb_mr {
	struct fid_mr mr_fid;
	struct vrb_domain *domain;	/* borrowed: registration took a reference */
	struct ibv_mr *mr;		/* owned */
};

static int mr_close(struct fid *fid)
{
	struct vrb_mr *mr = fab_container(fid, struct vrb_mr, mr_fid.fid);
	int ret = ibv_dereg_mr(mr->mr);

	if (ret) {
		VRB_WARN(FI_LOG_MR, "ibv_dereg_mr on %s: %s\n", mr->domain->dev->name, strerror(ret));
		return -ret;
	}
	if (mr->domain->base.eq)
		fab_eq_purge(mr->domain->base.eq, fid, NULL);
	atomic_fetch_sub(&mr->domain->base.ref, 1);
	free(mr);
	return 0;
}

static int get_raw(const struct vrb_mr *mr, const struct fi_mr_raw_attr *attr)
{
	uint64_t key = htobe64(mr->mr_fid.key);
	bool fits;

	if (!attr->key_size || !attr->base_addr)
		return -FI_EINVAL;
	fits = *attr->key_size >= sizeof(key) && attr->raw_key;
	*attr->key_size = sizeof(key);
	*attr->base_addr = (uintptr_t) mr->mr->addr;
	if (fits)
		memcpy(attr->raw_key, &key, sizeof(key));
	return fits ? 0 : -FI_ETOOSMALL;
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct vrb_mr *mr = fab_container(fid, struct vrb_mr, mr_fid.fid);

	switch (command) {
	case FI_ENABLE:
		return 0;		/* it is from the start */
	case FI_GET_RAW_MR:
		return arg ? get_raw(mr, arg) : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.control = mr_control,
};

/* What the device is to allow. The sink of an iWARP read is written by the peer's device, so it says. */
static int access_of(const struct vrb_domain *domain, uint64_t access)
{
	int ibv = 0;

	if (access & (FI_RECV | FI_READ | FI_REMOTE_WRITE))
		ibv |= IBV_ACCESS_LOCAL_WRITE;
	if (access & FI_REMOTE_READ)
		ibv |= IBV_ACCESS_REMOTE_READ;
	if ((access & FI_REMOTE_WRITE) && vrb_device_atomics(domain->dev))
		ibv |= IBV_ACCESS_REMOTE_ATOMIC;
	if ((access & FI_REMOTE_WRITE) || ((access & FI_READ) && vrb_device_iwarp(domain->dev)))
		ibv |= IBV_ACCESS_REMOTE_WRITE;
	return ibv;
}

static const char *bad_registration(const struct iovec *iov, size_t cnt, uint64_t access, uint64_t offset)
{
	const uint64_t known = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

	if (!iov || cnt != 1)
		return "one buffer is registered at a time (domain_attr->mr_iov_limit)";
	if (access & ~known)
		return "access bits beyond FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE";
	if (offset)
		return "offset must be 0";
	return NULL;
}

static int regv(struct fid *fid, const struct iovec *iov, size_t cnt, uint64_t access, uint64_t offset,
		uint64_t requested_key, uint64_t flags, struct fid_mr **mr_fid, void *context)
{
	struct vrb_domain *domain = fab_container(fid, struct vrb_domain, base.domain_fid.fid);
	const char *why = bad_registration(iov, cnt, access, offset);
	struct vrb_mr *mr;
	int ret;

	(void) requested_key;		/* FI_MR_PROV_KEY */
	if (why || flags) {
		VRB_WARN(FI_LOG_MR, "memory registration refused: %s (%zu buffers, access %#" PRIx64 ", flags %#" PRIx64
			 ")\n", why ? why : "no flags are known", cnt, access, flags);
		return why ? -FI_EINVAL : -FI_EBADFLAGS;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->mr = ibv_reg_mr(domain->pd, iov->iov_base, iov->iov_len, access_of(domain, access));
	if (!mr->mr) {
		ret = -errno;
		VRB_WARN(FI_LOG_MR, "ibv_reg_mr of %zu bytes on %s: %s%s\n", iov->iov_len, domain->dev->name,
			 strerror(errno), errno == ENOMEM ? " (see ulimit -l)" : "");
		free(mr);
		return ret;
	}
	mr->domain = domain;
	mr->mr_fid = (struct fid_mr) {
		.fid = { .fclass = FI_CLASS_MR, .context = context, .ops = &mr_fid_ops },
		.mem_desc = mr->mr, .key = mr->mr->rkey,
	};
	atomic_fetch_add(&domain->base.ref, 1);
	*mr_fid = &mr->mr_fid;		/* before the event: its reader may use it at once */
	if (!domain->base.reg_mr_event)
		return 0;
	ret = fab_eq_write_done(domain->base.eq, FI_MR_COMPLETE, &mr->mr_fid.fid, context, 0);
	if (ret)
		mr_close(&mr->mr_fid.fid);
	return ret;
}

/* Only fields that every generation of the struct has are read. */
static int regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	return regv(fid, attr->mr_iov, attr->iov_count, attr->access, attr->offset, attr->requested_key, flags, mr,
		    attr->context);
}

static int reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t requested_key,
	       uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = { .iov_base = (void *) buf, .iov_len = len };

	return regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr vrb_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = reg,
	.regv = regv,
	.regattr = regattr,
};

void vrb_mr_fill_ops(void)
{
	FAB_OPS_FILL(&mr_fid_ops);
	FAB_OPS_FILL(&vrb_mr_ops);
}
