/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices (GPUs and others, "XPU") that start operations and read completions without the host. A preview of libfabric
 * 2.7, which may still change it; no provider of this library has such devices, so fi_xpu_ctx() returns -FI_ENOSYS.
 *
 * The host opens, binds, enables and closes objects, fills in address vectors and registers memory. Only the device
 * uses endpoints, completion queues and counters that were opened with FI_XPU. It does so through handles that the host
 * exports (fi_ep_export_xpu(), fi_cq_export_xpu(), fi_cntr_export_xpu()), with the functions of fi_xpu_device.h.
 */
#ifndef FI_XPU_H
#define FI_XPU_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of alloc and import of fi_xpu_ops. */
#define FI_XPU_ALLOC_DMABUF (1ULL << 0)		/* return a dma-buf descriptor and the offset in it, too */
#define FI_XPU_IMPORT_IOMEMORY (1ULL << 0)	/* the memory is registers of a device */
#define FI_XPU_IMPORT_DEVICEMAP (1ULL << 1)	/* code on the device will access it */

/* What a context can have, fi_xpu_ctx_attr::caps. */
#define FI_XPU_CAP_EP (1ULL << 0)
#define FI_XPU_CAP_CQ (1ULL << 1)
#define FI_XPU_CAP_CNTR (1ULL << 2)

/* How many threads of a device make one call together. */
enum {
	FI_XPU_WORK_ITEM,		/* one thread */
	FI_XPU_SUBGROUP,		/* a warp or wavefront */
	FI_XPU_WORK_GROUP,		/* a thread block */
	FI_XPU_DEVICE,			/* all */
};

/* Values of fid_xpu::prov_id. */
enum fi_xpu_provider {
	FI_XPU_PROV_EFA = 1,
};

/* Functions of the program with which a provider gets memory of a device. The first argument is fi_xpu_attr::device. A
 * provider tests size before each. */
struct fi_xpu_ops {
	size_t size;
	int (*alloc)(uint64_t, uint64_t, uint64_t, uint64_t, void **, int *, uint64_t *);
	int (*import)(uint64_t, void *, uint64_t, uint64_t, void **);
	void (*free)(uint64_t, void *);
};

struct fi_xpu_attr {
	enum fi_hmem_iface iface;
	uint64_t device;		/* its number in the system of iface */
	struct fi_xpu_ops *ops;		/* borrowed until the context closes; NULL: the provider's own */
};

/* Constants of a context. */
struct fi_xpu_ctx_attr {
	uint64_t caps;			/* FI_XPU_CAP_* */
	size_t av_addr_size;		/* bytes that fi_av_lookup2() writes */
	size_t mr_desc_size;		/* bytes that fi_mr_get_xpu_desc() writes */
};

struct fi_ops_xpu_ctx {
	size_t size;
	int (*query)(struct fid_xpu_ctx *ctx, struct fi_xpu_ctx_attr *attr);
};

/* A device of a domain; class FI_CLASS_XPU_CTX. Close it after the objects that were opened for it. */
struct fid_xpu_ctx {
	struct fid fid;
	struct fi_ops_xpu_ctx *ops;
};

/* A handle for a device. It may be copied; the provider keeps no pointer to it. */
struct fid_xpu {
	uint32_t fclass;		/* FI_CLASS_EP, FI_CLASS_CQ or FI_CLASS_CNTR */
	uint32_t prov_id;		/* enum fi_xpu_provider */
	uint64_t prov_ctx;		/* the provider's */
};

struct fid_xpu_ep {
	struct fid_xpu fid;
};

struct fid_xpu_cq {
	struct fid_xpu fid;
};

struct fid_xpu_cntr {
	struct fid_xpu fid;
};

/* Open a context for a device. -FI_ENOSYS: the provider has none (domain_attr::max_xpu_ctx_cnt is 0). A library from
 * before 2.7 has no such function, and the call must not be made there. */
static inline int fi_xpu_ctx(struct fid_domain *domain, struct fi_xpu_attr *attr, struct fid_xpu_ctx **ctx,
			     void *context)
{
	return domain->ops->xpu_ctx(domain, attr, ctx, context);
}

/* Get the constants of a context. */
static inline int fi_xpu_ctx_query(struct fid_xpu_ctx *ctx, struct fi_xpu_ctx_attr *attr)
{
	return ctx->ops->query(ctx, attr);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_XPU_H */
