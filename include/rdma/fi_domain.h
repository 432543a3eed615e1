/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Public API of libfabric, version 2.6: rdma/fi_domain.h. */
#ifndef FI_DOMAIN_H
#define FI_DOMAIN_H

#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FI_SYMMETRIC (1ULL << 59)
#define FI_SYNC_ERR (1ULL << 58)
#define FI_UNIVERSE (1ULL << 57)
#define FI_BARRIER_SET (1ULL << 40)
#define FI_BROADCAST_SET (1ULL << 41)
#define FI_ALLTOALL_SET (1ULL << 42)
#define FI_ALLREDUCE_SET (1ULL << 43)
#define FI_ALLGATHER_SET (1ULL << 44)
#define FI_REDUCE_SCATTER_SET (1ULL << 45)
#define FI_REDUCE_SET (1ULL << 46)
#define FI_SCATTER_SET (1ULL << 47)
#define FI_GATHER_SET (1ULL << 48)
#define FI_MR_SINGLE_USE (1ULL << 41)
#define FI_COLLECTIVE_OFFSET (1 << 8)
#define FI_REG_MR (1ULL << 59)
#define FI_SET_OPS_HMEM_OVERRIDE "hmem_override_ops"

enum fi_hmem_iface {
	FI_HMEM_SYSTEM = 0,
	FI_HMEM_CUDA = 1,
	FI_HMEM_ROCR = 2,
	FI_HMEM_ZE = 3,
	FI_HMEM_NEURON = 4,
	FI_HMEM_SYNAPSEAI = 5,
};

enum fi_datatype {
	FI_INT8 = 0,
	FI_UINT8 = 1,
	FI_INT16 = 2,
	FI_UINT16 = 3,
	FI_INT32 = 4,
	FI_UINT32 = 5,
	FI_INT64 = 6,
	FI_UINT64 = 7,
	FI_FLOAT = 8,
	FI_DOUBLE = 9,
	FI_FLOAT_COMPLEX = 10,
	FI_DOUBLE_COMPLEX = 11,
	FI_LONG_DOUBLE = 12,
	FI_LONG_DOUBLE_COMPLEX = 13,
	FI_INT128 = 14,
	FI_UINT128 = 15,
	FI_FLOAT16 = 16,
	FI_BFLOAT16 = 17,
	FI_FLOAT8_E4M3 = 18,
	FI_FLOAT8_E5M2 = 19,
	FI_VOID = 256,
};

enum fi_op {
	FI_MIN = 0,
	FI_MAX = 1,
	FI_SUM = 2,
	FI_PROD = 3,
	FI_LOR = 4,
	FI_LAND = 5,
	FI_BOR = 6,
	FI_BAND = 7,
	FI_LXOR = 8,
	FI_BXOR = 9,
	FI_ATOMIC_READ = 10,
	FI_ATOMIC_WRITE = 11,
	FI_CSWAP = 12,
	FI_CSWAP_NE = 13,
	FI_CSWAP_LE = 14,
	FI_CSWAP_LT = 15,
	FI_CSWAP_GE = 16,
	FI_CSWAP_GT = 17,
	FI_MSWAP = 18,
	FI_DIFF = 19,
	FI_NOOP = 256,
};

enum fi_collective_op {
	FI_BARRIER = 0,
	FI_BROADCAST = 1,
	FI_ALLTOALL = 2,
	FI_ALLREDUCE = 3,
	FI_ALLGATHER = 4,
	FI_REDUCE_SCATTER = 5,
	FI_REDUCE = 6,
	FI_SCATTER = 7,
	FI_GATHER = 8,
};

struct fi_av_attr {
	enum fi_av_type type;
	int rx_ctx_bits;
	size_t count;
	size_t ep_per_node;
	const char *name;
	void *map_addr;
	uint64_t flags;
};

struct fi_av_set_attr {
	size_t count;
	fi_addr_t start_addr;
	fi_addr_t end_addr;
	uint64_t stride;
	size_t comm_key_size;
	uint8_t *comm_key;
	uint64_t flags;
};

struct fi_ops_av {
	size_t size;
	int (*insert)(struct fid_av *, const void *, size_t, fi_addr_t *, uint64_t, void *);
	int (*insertsvc)(struct fid_av *, const char *, const char *, fi_addr_t *, uint64_t, void *);
	int (*insertsym)(struct fid_av *, const char *, size_t, const char *, size_t, fi_addr_t *, uint64_t, void *);
	int (*remove)(struct fid_av *, fi_addr_t *, size_t, uint64_t);
	int (*lookup)(struct fid_av *, fi_addr_t, void *, size_t *);
	const char *(*straddr)(struct fid_av *, const void *, char *, size_t *);
	int (*av_set)(struct fid_av *, struct fi_av_set_attr *, struct fid_av_set **, void *);
	int (*insert_auth_key)(struct fid_av *, const void *, size_t, fi_addr_t *, uint64_t);
	int (*lookup_auth_key)(struct fid_av *, fi_addr_t, void *, size_t *);
	int (*set_user_id)(struct fid_av *, fi_addr_t, fi_addr_t, uint64_t);
};

struct fid_av {
	struct fid fid;
	struct fi_ops_av *ops;
};

struct fid_mr {
	struct fid fid;
	void *mem_desc;
	uint64_t key;
};

struct fi_mr_dmabuf {
	int fd;
	uint64_t offset;
	size_t len;
	void *base_addr;
};

struct fi_mr_auth_key {
	struct fid_av *av;
	fi_addr_t src_addr;
};

struct fi_mr_attr {
	union {
		const struct iovec *mr_iov;
		const struct fi_mr_dmabuf *dmabuf;
	};
	size_t iov_count;
	uint64_t access;
	uint64_t offset;
	uint64_t requested_key;
	void *context;
	size_t auth_key_size;
	uint8_t *auth_key;
	enum fi_hmem_iface iface;
	union {
		uint64_t reserved;
		int cuda;
		int ze;
		int neuron;
		int synapseai;
		int rocr;
	} device;
	void *hmem_data;
	size_t page_size;
	const struct fid_mr *base_mr;
	size_t sub_mr_cnt;
};

struct fi_mr_modify {
	uint64_t flags;
	struct fi_mr_attr attr;
};

struct fi_hmem_override_ops {
	size_t size;
	ssize_t (*copy_from_hmem_iov)(void *, size_t, enum fi_hmem_iface, uint64_t, const struct iovec *, size_t, uint64_t);
	ssize_t (*copy_to_hmem_iov)(enum fi_hmem_iface, uint64_t, const struct iovec *, size_t, uint64_t, const void *, size_t);
};

struct fi_ops_domain {
	size_t size;
	int (*av_open)(struct fid_domain *, struct fi_av_attr *, struct fid_av **, void *);
	int (*cq_open)(struct fid_domain *, struct fi_cq_attr *, struct fid_cq **, void *);
	int (*endpoint)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *);
	int (*scalable_ep)(struct fid_domain *, struct fi_info *, struct fid_ep **, void *);
	int (*cntr_open)(struct fid_domain *, struct fi_cntr_attr *, struct fid_cntr **, void *);
	int (*poll_open)(struct fid_domain *, struct fi_poll_attr *, struct fid_poll **);
	int (*stx_ctx)(struct fid_domain *, struct fi_tx_attr *, struct fid_stx **, void *);
	int (*srx_ctx)(struct fid_domain *, struct fi_rx_attr *, struct fid_ep **, void *);
	int (*query_atomic)(struct fid_domain *, enum fi_datatype, enum fi_op, struct fi_atomic_attr *, uint64_t);
	int (*query_collective)(struct fid_domain *, enum fi_collective_op, struct fi_collective_attr *, uint64_t);
	int (*endpoint2)(struct fid_domain *, struct fi_info *, struct fid_ep **, uint64_t, void *);
};

struct fi_ops_mr {
	size_t size;
	int (*reg)(struct fid *, const void *, size_t, uint64_t, uint64_t, uint64_t, uint64_t, struct fid_mr **, void *);
	int (*regv)(struct fid *, const struct iovec *, size_t, uint64_t, uint64_t, uint64_t, uint64_t, struct fid_mr **, void *);
	int (*regattr)(struct fid *, const struct fi_mr_attr *, uint64_t, struct fid_mr **);
};

struct fid_domain {
	struct fid fid;
	struct fi_ops_domain *ops;
	struct fi_ops_mr *mr;
};

static inline int fi_hmem_ze_device(int driver_index, int device_index)
{
	return driver_index << 16 | device_index;
}

static inline int fi_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context)
{
	return fabric->ops->domain(fabric, info, domain, context);
}

static inline int fi_domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, uint64_t flags, void *context)
{
	if (!flags)
		return fi_domain(fabric, info, domain, context);
	if (!FI_CHECK_OP(fabric->ops, struct fi_ops_fabric, domain2))
		return -FI_ENOSYS;
	return fabric->ops->domain2(fabric, info, domain, flags, context);
}

static inline int fi_domain_bind(struct fid_domain *domain, struct fid *fid, uint64_t flags)
{
	return domain->fid.ops->bind(&domain->fid, fid, flags);
}

static inline int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context)
{
	return domain->ops->cq_open(domain, attr, cq, context);
}

static inline int fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context)
{
	return domain->ops->cntr_open(domain, attr, cntr, context);
}

FI_DEPRECATED_FUNC static inline int fi_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **waitset)
{
	return fabric->ops->wait_open(fabric, attr, waitset);
}

FI_DEPRECATED_FUNC static inline int fi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset)
{
	return domain->ops->poll_open(domain, attr, pollset);
}

static inline int fi_mr_reg(struct fid_domain *domain, const void *buf, size_t len, uint64_t acs, uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	return domain->mr->reg(&domain->fid, buf, len, acs, offset, requested_key, flags, mr, context);
}

static inline int fi_mr_regv(struct fid_domain *domain, const struct iovec *iov, size_t count, uint64_t acs, uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	return domain->mr->regv(&domain->fid, iov, count, acs, offset, requested_key, flags, mr, context);
}

static inline int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	return domain->mr->regattr(&domain->fid, attr, flags, mr);
}

static inline void *fi_mr_desc(struct fid_mr *mr)
{
	return mr->mem_desc;
}

static inline uint64_t fi_mr_key(struct fid_mr *mr)
{
	return mr->key;
}

static inline int fi_mr_raw_attr(struct fid_mr *mr, uint64_t *base_addr, uint8_t *raw_key, size_t *key_size, uint64_t flags)
{
	struct fi_mr_raw_attr arg;

	arg.flags = flags;
	arg.base_addr = base_addr;
	arg.raw_key = raw_key;
	arg.key_size = key_size;
	return mr->fid.ops->control(&mr->fid, FI_GET_RAW_MR, &arg);
}

static inline int fi_mr_map_raw(struct fid_domain *domain, uint64_t base_addr, uint8_t *raw_key, size_t key_size, uint64_t *key, uint64_t flags)
{
	struct fi_mr_map_raw arg;

	arg.flags = flags;
	arg.base_addr = base_addr;
	arg.raw_key = raw_key;
	arg.key_size = key_size;
	arg.key = key;
	return domain->fid.ops->control(&domain->fid, FI_MAP_RAW_MR, &arg);
}

static inline int fi_mr_unmap_key(struct fid_domain *domain, uint64_t key)
{
	return domain->fid.ops->control(&domain->fid, FI_UNMAP_KEY, &key);
}

static inline int fi_mr_bind(struct fid_mr *mr, struct fid *bfid, uint64_t flags)
{
	return mr->fid.ops->bind(&mr->fid, bfid, flags);
}

static inline int fi_mr_refresh(struct fid_mr *mr, const struct iovec *iov, size_t count, uint64_t flags)
{
	struct fi_mr_modify modify;

	memset(&modify, 0, sizeof(modify));
	modify.flags = flags;
	modify.attr.mr_iov = iov;
	modify.attr.iov_count = count;
	return mr->fid.ops->control(&mr->fid, FI_REFRESH, &modify);
}

static inline int fi_mr_enable(struct fid_mr *mr)
{
	return mr->fid.ops->control(&mr->fid, FI_ENABLE, NULL);
}

static inline int fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context)
{
	return domain->ops->av_open(domain, attr, av, context);
}

FI_DEPRECATED_FUNC static inline int fi_av_bind(struct fid_av *av, struct fid *fid, uint64_t flags)
{
	return av->fid.ops->bind(&av->fid, fid, flags);
}

static inline int fi_av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return av->ops->insert(av, addr, count, fi_addr, flags, context);
}

static inline int fi_av_insertsvc(struct fid_av *av, const char *node, const char *service, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return av->ops->insertsvc(av, node, service, fi_addr, flags, context);
}

static inline int fi_av_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service, size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return av->ops->insertsym(av, node, nodecnt, service, svccnt, fi_addr, flags, context);
}

static inline int fi_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	return av->ops->remove(av, fi_addr, count, flags);
}

static inline int fi_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	return av->ops->lookup(av, fi_addr, addr, addrlen);
}

static inline const char *fi_av_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len)
{
	return av->ops->straddr(av, addr, buf, len);
}

static inline int fi_av_insert_auth_key(struct fid_av *av, const void *auth_key, size_t auth_key_size, fi_addr_t *fi_addr, uint64_t flags)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, insert_auth_key))
		return -FI_ENOSYS;
	return av->ops->insert_auth_key(av, auth_key, auth_key_size, fi_addr, flags);
}

static inline int fi_av_lookup_auth_key(struct fid_av *av, fi_addr_t addr, void *auth_key, size_t *auth_key_size)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, lookup_auth_key))
		return -FI_ENOSYS;
	return av->ops->lookup_auth_key(av, addr, auth_key, auth_key_size);
}

static inline int fi_av_set_user_id(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, set_user_id))
		return -FI_ENOSYS;
	return av->ops->set_user_id(av, fi_addr, user_id, flags);
}

static inline fi_addr_t fi_rx_addr(fi_addr_t fi_addr, int rx_index, int rx_ctx_bits)
{
	return (fi_addr_t) (((uint64_t) rx_index << (64 - rx_ctx_bits)) | fi_addr);
}

static inline fi_addr_t fi_group_addr(fi_addr_t fi_addr, uint32_t group_id)
{
	return fi_addr | (fi_addr_t) group_id << 32;
}

#ifdef __cplusplus
}
#endif

#endif /* FI_DOMAIN_H */
