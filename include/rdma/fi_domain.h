/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domains, and the objects that are opened in them except endpoints - fi_domain(3), fi_mr(3), fi_av(3), fi_av_set(3):
 * memory regions, address vectors, completion queues, counters. Also the datatypes and operations of atomics and
 * collectives. All calls here are control calls, and may be made from any thread.
 */
#ifndef FI_DOMAIN_H
#define FI_DOMAIN_H

#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Address vectors - fi_av(3)
 *
 * A list of peers. Each address that is inserted gets an fi_addr_t, by which transfers identify the peer.
 * Connectionless endpoints are bound to an address vector. A vector contains an address once; the result of inserting
 * it again depends on the provider.
 */

/* Flags of fi_av_open(). */
#define FI_SYMMETRIC (1ULL << 59)	/* every node has the same number of endpoints, at consecutive addresses */

/* Flags of insertions, in addition to FI_MORE, FI_AV_USER_ID, FI_AUTH_KEY and FI_FIREWALL_ADDR of fabric.h. */
#define FI_SYNC_ERR (1ULL << 58)	/* context points to an int for each address, which is set to 0 or a positive
					 * FI_E* */

struct fi_av_attr {
	enum fi_av_type type;		/* in: the type; out: the actual type, if it was FI_AV_UNSPEC */
	int rx_ctx_bits;		/* bits of an fi_addr_t for fi_rx_addr() */
	size_t count;			/* addresses to expect; 0: unknown */
	size_t ep_per_node;		/* endpoints to expect on a node; 0: unknown */
	const char *name;		/* of a vector that processes of one node share (FI_SHARED_AV), or NULL */
	void *map_addr;			/* in and out, with name: processes with the same value can exchange handles */
	uint64_t flags;			/* FI_READ: open a vector with a name for reading. FI_EVENT, FI_SYMMETRIC */
};

/* The calls are inline functions below; av_set is in fi_collective.h. */
struct fi_ops_av {
	size_t size;
	int (*insert)(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags,
		      void *context);
	int (*insertsvc)(struct fid_av *av, const char *node, const char *service, fi_addr_t *fi_addr, uint64_t flags,
			 void *context);
	int (*insertsym)(struct fid_av *av, const char *node, size_t nodecnt, const char *service, size_t svccnt,
			 fi_addr_t *fi_addr, uint64_t flags, void *context);
	int (*remove)(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags);
	int (*lookup)(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen);
	const char *(*straddr)(struct fid_av *av, const void *addr, char *buf, size_t *len);
	/* Since 1.9. */
	int (*av_set)(struct fid_av *av, struct fi_av_set_attr *attr, struct fid_av_set **av_set, void *context);
	/* Since 1.20. */
	int (*insert_auth_key)(struct fid_av *av, const void *auth_key, size_t auth_key_size, fi_addr_t *fi_addr,
			       uint64_t flags);
	int (*lookup_auth_key)(struct fid_av *av, fi_addr_t addr, void *auth_key, size_t *auth_key_size);
	int (*set_user_id)(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags);
#ifdef WEFT_API_2_7
	/* Since 2.7. */
	int (*lookup2)(struct fid_av *av, fi_addr_t fi_addr, void *buf, size_t *len, uint64_t flags,
		       struct fid_xpu_ctx *ctx);
#endif /* WEFT_API_2_7 */
};

struct fid_av {
	struct fid fid;
	struct fi_ops_av *ops;
};


/*
 * Sets of addresses, the members of a collective group - fi_av_set(3); the calls are in fi_collective.h.
 */

/* Flags of fi_av_set(). FI_UNIVERSE: start with all addresses of the vector. The others: the collectives that will be
 * used; without any, all of them. */
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

struct fi_av_set_attr {
	size_t count;			/* members to expect; 0: unknown */
	/* First members, for FI_AV_TABLE: start_addr, start_addr + stride... up to end_addr. For no members both
	 * addresses are FI_ADDR_NOTAVAIL, and stride is 0. */
	fi_addr_t start_addr;
	fi_addr_t end_addr;
	uint64_t stride;
	size_t comm_key_size;		/* for a group that was set up by the fabric's management; otherwise 0 */
	uint8_t *comm_key;
	uint64_t flags;
};


/*
 * Memory regions - fi_mr(3)
 *
 * Memory that a peer, or the local hardware, may access. A peer identifies it by a key, and local calls by a descriptor
 * (desc). domain_attr::mr_mode tells which memory must be registered, and how it is addressed. The program owns the
 * memory, which must outlive the region. Closing the region ends access: outstanding local operations fail or transfer
 * undefined data, and the peer gets an error.
 */
struct fid_mr {
	struct fid fid;
	void *mem_desc;			/* fi_mr_desc() */
	uint64_t key;			/* fi_mr_key() */
};

/* The interface that allocated the memory, with FI_HMEM. */
enum fi_hmem_iface {
	FI_HMEM_SYSTEM,			/* malloc(3), mmap(2) ... */
	FI_HMEM_CUDA,			/* NVIDIA */
	FI_HMEM_ROCR,			/* AMD */
	FI_HMEM_ZE,			/* oneAPI Level Zero */
	FI_HMEM_NEURON,			/* AWS Trainium */
	FI_HMEM_SYNAPSEAI,		/* Habana Gaudi */
};

/* fi_mr_attr::device.ze for a driver and a device, both numbered in the order in which Level Zero lists them. */
static inline int fi_hmem_ze_device(int driver_index, int device_index)
{
	return driver_index << 16 | device_index;
}

/*
 * Flags of registrations, in addition to FI_RMA_EVENT (a counter will be bound), FI_RMA_PMEM (persistent memory) and
 * FI_COLLECTIVE. fabric.h defines some of them:
 *
 *   FI_MR_DMABUF		the memory is fi_mr_attr::dmabuf, not mr_iov
 *   FI_HMEM_DEVICE_ONLY	only the device can access it
 *   FI_HMEM_HOST_ALLOC		host memory that was allocated through the device's interface
 */
#define FI_MR_SINGLE_USE (1ULL << 41)	/* the key is valid for one operation of a peer */

/* Memory of a Linux dma-buf: len bytes of fd, from offset on. */
struct fi_mr_dmabuf {
	int fd;				/* borrowed */
	uint64_t offset;
	size_t len;
	void *base_addr;		/* the virtual address of the buffer (not of the region), actual or intended */
};

/* fi_mr_attr::auth_key of a domain with FI_AV_AUTH_KEY: the key of an entry of av. auth_key_size is the size of this
 * struct. */
struct fi_mr_auth_key {
	struct fid_av *av;
	fi_addr_t src_addr;
};

/*
 * The arguments of a registration. A program has the members of its version: up to context since 1.0, the authorization
 * key since 1.5, iface and device since 1.9, hmem_data since 1.19, page_size since 1.22, the rest since 2.0.
 */
struct fi_mr_attr {
	union {
		const struct iovec *mr_iov;
		const struct fi_mr_dmabuf *dmabuf;	/* with FI_MR_DMABUF; since 1.20 */
	};
	size_t iov_count;		/* at most domain_attr::mr_iov_limit */
	uint64_t access;		/* FI_SEND, FI_RECV: in messages. FI_READ, FI_WRITE: as the local side of RMA
					 * and atomics. FI_REMOTE_READ, FI_REMOTE_WRITE: by peers. FI_COLLECTIVE */
	uint64_t offset;		/* 0 */
	uint64_t requested_key;		/* without FI_MR_PROV_KEY: the key, unique in the domain */
	void *context;			/* fid::context */
	size_t auth_key_size;		/* 0: the domain's key */
	uint8_t *auth_key;
	enum fi_hmem_iface iface;	/* used only with FI_HMEM, as the next two members */
	union {
		uint64_t reserved;
		int cuda;		/* CUdevice */
		int ze;			/* fi_hmem_ze_device() */
		int neuron;
		int synapseai;
		int rocr;
	} device;
	void *hmem_data;		/* data of the interface, or NULL */
	size_t page_size;		/* page size for mapping the memory; 0: default */
	const struct fid_mr *base_mr;	/* borrowed: the region of which this is a part, and whose resources it shares;
					 * or NULL */
	size_t sub_mr_cnt;		/* parts to expect of this region */
};

/* The argument of FI_REFRESH; fi_mr_refresh() fills it in. */
struct fi_mr_modify {
	uint64_t flags;
	struct fi_mr_attr attr;
};

/* The calls are inline functions of these names; fid is a domain. */
struct fi_ops_mr {
	size_t size;
	int (*reg)(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		   uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context);
	int (*regv)(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access, uint64_t offset,
		    uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context);
	int (*regattr)(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr);
};

/* Name for fi_set_ops() of a domain: functions of the program that copy from and to device memory, for all interfaces
 * that the program uses. Each returns the number of bytes copied, or a negative error. Set them before anything is
 * opened in the domain. */
#define FI_SET_OPS_HMEM_OVERRIDE "hmem_override_ops"

struct fi_hmem_override_ops {
	size_t size;			/* of this struct */
	ssize_t (*copy_from_hmem_iov)(void *dest, size_t size, enum fi_hmem_iface iface, uint64_t device,
				      const struct iovec *hmem_iov, size_t hmem_iov_count, uint64_t hmem_iov_offset);
	ssize_t (*copy_to_hmem_iov)(enum fi_hmem_iface iface, uint64_t device, const struct iovec *hmem_iov,
				    size_t hmem_iov_count, uint64_t hmem_iov_offset, const void *src, size_t size);
};


/*
 * Datatypes and operations of atomics and collectives - fi_atomic(3), fi_collective(3)
 */
#define FI_COLLECTIVE_OFFSET 256	/* values from here on are for collectives only */

/* Types of elements, in the byte order of the machine. */
enum fi_datatype {
	FI_INT8,
	FI_UINT8,
	FI_INT16,
	FI_UINT16,
	FI_INT32,
	FI_UINT32,
	FI_INT64,
	FI_UINT64,
	FI_FLOAT,
	FI_DOUBLE,
	FI_FLOAT_COMPLEX,		/* real part first, as in all complex types */
	FI_DOUBLE_COMPLEX,
	FI_LONG_DOUBLE,			/* of the compiler that built the library: compare fi_atomic_attr::size */
	FI_LONG_DOUBLE_COMPLEX,
	FI_INT128,
	FI_UINT128,
	FI_FLOAT16,			/* IEEE 754 binary16 */
	FI_BFLOAT16,			/* upper half of a float */
	FI_FLOAT8_E4M3,			/* OCP 8-bit floating point with 4 bits of exponent */
	FI_FLOAT8_E5M2,			/* the same with 5 bits of exponent */
	FI_VOID = FI_COLLECTIVE_OFFSET,	/* none: a barrier */
};

/* Operations on each element t of the target, with b from the buffer and c from the compare buffer. Operations before
 * FI_ATOMIC_READ, and FI_DIFF, may be fetching or not. FI_CSWAP to FI_MSWAP are compare operations. */
enum fi_op {
	FI_MIN,
	FI_MAX,
	FI_SUM,
	FI_PROD,
	FI_LOR,				/* t = t || b */
	FI_LAND,
	FI_BOR,				/* t = t | b */
	FI_BAND,
	FI_LXOR,			/* t = !t != !b */
	FI_BXOR,
	FI_ATOMIC_READ,			/* fetch only; b is not read */
	FI_ATOMIC_WRITE,		/* t = b, fetching or not */
	FI_CSWAP,			/* t = b if c == t */
	FI_CSWAP_NE,			/* t = b if c != t */
	FI_CSWAP_LE,			/* t = b if c <= t */
	FI_CSWAP_LT,			/* t = b if c < t */
	FI_CSWAP_GE,			/* t = b if c >= t */
	FI_CSWAP_GT,			/* t = b if c > t */
	FI_MSWAP,			/* t = (b & c) | (t & ~c) */
	FI_DIFF,			/* t = t - b */
	FI_NOOP = FI_COLLECTIVE_OFFSET,	/* nothing: a collective that only moves data */
};

enum fi_collective_op {
	FI_BARRIER,
	FI_BROADCAST,
	FI_ALLTOALL,
	FI_ALLREDUCE,
	FI_ALLGATHER,
	FI_REDUCE_SCATTER,
	FI_REDUCE,
	FI_SCATTER,
	FI_GATHER,
};

struct fi_atomic_attr;
struct fi_collective_attr;
#ifdef WEFT_API_2_7
struct fi_xpu_attr;
#endif /* WEFT_API_2_7 */


/*
 * Domains - fi_domain(3)
 */

/* The calls are inline functions of the same names, here and in the headers of the objects that they open. */
struct fi_ops_domain {
	size_t size;
	int (*av_open)(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context);
	int (*cq_open)(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);
	int (*endpoint)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
	int (*scalable_ep)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep, void *context);
	int (*cntr_open)(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr, void *context);
	int (*poll_open)(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **pollset);
	int (*stx_ctx)(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx, void *context);
	int (*srx_ctx)(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx_ep, void *context);
	/* Since 1.5. */
	int (*query_atomic)(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
			    struct fi_atomic_attr *attr, uint64_t flags);
	/* Since 1.9. */
	int (*query_collective)(struct fid_domain *domain, enum fi_collective_op coll, struct fi_collective_attr *attr,
				uint64_t flags);
	/* Since 1.17. */
	int (*endpoint2)(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
			 void *context);
#ifdef WEFT_API_2_7
	/* Since 2.7. */
	int (*xpu_ctx)(struct fid_domain *domain, struct fi_xpu_attr *attr, struct fid_xpu_ctx **ctx, void *context);
#endif /* WEFT_API_2_7 */
};

struct fid_domain {
	struct fid fid;
	struct fi_ops_domain *ops;
	struct fi_ops_mr *mr;
};

/* Flag of fi_domain_bind(): registrations are asynchronous and end with FI_MR_COMPLETE; deprecated. */
#define FI_REG_MR (1ULL << 59)

/* Open the domain of an entry of fi_getinfo(). */
static inline int fi_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context)
{
	return fabric->ops->domain(fabric, info, domain, context);
}

/* The same with flags: FI_PEER makes context a struct fi_peer_domain_context of fi_peer.h. Since 1.17. */
static inline int fi_domain2(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
			     uint64_t flags, void *context)
{
	if (!flags)
		return fi_domain(fabric, info, domain, context);
	if (!FI_CHECK_OP(fabric->ops, struct fi_ops_fabric, domain2))
		return -FI_ENOSYS;
	return fabric->ops->domain2(fabric, info, domain, flags, context);
}

/* Bind an event queue for the events of all objects in the domain that have no event queue of their own. flags: 0 or
 * FI_REG_MR. */
static inline int fi_domain_bind(struct fid_domain *domain, struct fid *fid, uint64_t flags)
{
	return domain->fid.ops->bind(&domain->fid, fid, flags);
}

/* Open a completion queue or a counter: fi_eq.h. attr: NULL for defaults. -FI_ENOSYS: the wait object is not
 * supported. */
static inline int fi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context)
{
	return domain->ops->cq_open(domain, attr, cq, context);
}

static inline int fi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
			       void *context)
{
	return domain->ops->cntr_open(domain, attr, cntr, context);
}

/* Open a wait set or a poll set: fi_eq.h. */
FI_DEPRECATED_FUNC static inline int fi_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
						  struct fid_wait **waitset)
{
	return fabric->ops->wait_open(fabric, attr, waitset);
}

FI_DEPRECATED_FUNC static inline int fi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
						  struct fid_poll **pollset)
{
	return domain->ops->poll_open(domain, attr, pollset);
}


/*
 * Register memory. acs is fi_mr_attr::access, and the other arguments are the members with their names; offset: 0. The
 * region can be used at once, with these exceptions. With FI_MR_ENDPOINT or FI_RMA_EVENT it must be bound and enabled
 * first. In a domain with FI_REG_MR it can be used after the event. -FI_ENOKEY: the key is in use. -FI_EKEYREJECTED:
 * the key is longer than mr_key_size.
 */
static inline int fi_mr_reg(struct fid_domain *domain, const void *buf, size_t len, uint64_t acs, uint64_t offset,
			    uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	return domain->mr->reg(&domain->fid, buf, len, acs, offset, requested_key, flags, mr, context);
}

/* Register several pieces as one region. For peers they follow one another. */
static inline int fi_mr_regv(struct fid_domain *domain, const struct iovec *iov, size_t count, uint64_t acs,
			     uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	return domain->mr->regv(&domain->fid, iov, count, acs, offset, requested_key, flags, mr, context);
}

static inline int fi_mr_regattr(struct fid_domain *domain, const struct fi_mr_attr *attr, uint64_t flags,
				struct fid_mr **mr)
{
	return domain->mr->regattr(&domain->fid, attr, flags, mr);
}

/* The descriptor for desc arguments of local transfers. Valid while the region is open. */
static inline void *fi_mr_desc(struct fid_mr *mr)
{
	return mr->mem_desc;
}

/* The key by which a peer identifies the region. FI_KEY_NOTAVAIL: the region is not registered yet, or the key is
 * longer than 64 bits (FI_MR_RAW). */
static inline uint64_t fi_mr_key(struct fid_mr *mr)
{
	return mr->key;
}

/* Get the key as bytes, and the address of the region's start, to be sent to the peer. key_size: in the room of
 * raw_key, out the length. -FI_ETOOSMALL: *key_size is the length needed. flags: 0. */
static inline int fi_mr_raw_attr(struct fid_mr *mr, uint64_t *base_addr, uint8_t *raw_key, size_t *key_size,
				 uint64_t flags)
{
	struct fi_mr_raw_attr attr;

	attr.flags = flags;
	attr.base_addr = base_addr;
	attr.raw_key = raw_key;
	attr.key_size = key_size;
	return mr->fid.ops->control(&mr->fid, FI_GET_RAW_MR, &attr);
}

/* At the peer: make a key for transfers from these bytes. The caller returns it with fi_mr_unmap_key() before it closes
 * the domain. flags: 0. */
static inline int fi_mr_map_raw(struct fid_domain *domain, uint64_t base_addr, uint8_t *raw_key, size_t key_size,
				uint64_t *key, uint64_t flags)
{
	struct fi_mr_map_raw map;

	map.flags = flags;
	map.base_addr = base_addr;
	map.raw_key = raw_key;
	map.key_size = key_size;
	map.key = key;
	return domain->fid.ops->control(&domain->fid, FI_MAP_RAW_MR, &map);
}

static inline int fi_mr_unmap_key(struct fid_domain *domain, uint64_t key)
{
	return domain->fid.ops->control(&domain->fid, FI_UNMAP_KEY, &key);
}

/* Bind a counter, with FI_REMOTE_WRITE or FI_REMOTE_READ for the operations to count, or an endpoint (FI_MR_ENDPOINT),
 * with flags 0. */
static inline int fi_mr_bind(struct fid_mr *mr, struct fid *bfid, uint64_t flags)
{
	return mr->fid.ops->bind(&mr->fid, bfid, flags);
}

/* Tell the provider that the pages of a region, or of the pieces in iov, have changed. No operation may be using them.
 * flags: 0. */
static inline int fi_mr_refresh(struct fid_mr *mr, const struct iovec *iov, size_t count, uint64_t flags)
{
	struct fi_mr_modify modify;

	memset(&modify, 0, sizeof(modify));
	modify.flags = flags;
	modify.attr.mr_iov = iov;
	modify.attr.iov_count = count;
	return mr->fid.ops->control(&mr->fid, FI_REFRESH, &modify);
}

/* Allow the use of a region, after everything was bound to it. */
static inline int fi_mr_enable(struct fid_mr *mr)
{
	return mr->fid.ops->control(&mr->fid, FI_ENABLE, NULL);
}
#ifdef WEFT_API_2_7

/* Get the descriptor of a region for operations of the device of a context; flags: FI_XPU. *len as in fi_av_lookup2().
 * Since 2.7. */
static inline int fi_mr_get_xpu_desc(struct fid_mr *mr, void *buf, size_t *len, uint64_t flags, struct fid_xpu_ctx *ctx)
{
	struct fi_mr_xpu_desc desc;

	desc.buf = buf;
	desc.len = len;
	desc.flags = flags;
	desc.ctx = ctx;
	return mr->fid.ops->control(&mr->fid, FI_GET_MR_XPU_DESC, &desc);
}
#endif /* WEFT_API_2_7 */


/* Open an address vector. -FI_EINVAL: attr has a name and the domain lacks FI_SHARED_AV. Closing it returns -FI_EBUSY
 * while endpoints are bound. */
static inline int fi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av, void *context)
{
	return domain->ops->av_open(domain, attr, av, context);
}

/* Bind an event queue, for a vector with FI_EVENT. flags: 0. */
FI_DEPRECATED_FUNC static inline int fi_av_bind(struct fid_av *av, struct fid *fid, uint64_t flags)
{
	return av->fid.ops->bind(&av->fid, fid, flags);
}

/*
 * Insert count addresses, which follow one another in the domain's format (for FI_ADDR_STR: an array of pointers to
 * strings). fi_addr: out, count handles, FI_ADDR_NOTAVAIL for an address that failed. It may be NULL for FI_AV_TABLE,
 * which uses the lowest free indices in order. With FI_AV_USER_ID, in: the numbers of the addresses in completions.
 *
 * Returns the number of addresses inserted. With FI_EVENT it returns 0; an error event for each address that failed
 * follows, then FI_AV_COMPLETE with that number, all with context. fi_addr must stay valid until then. -FI_ENOEQ: no
 * event queue is bound.
 */
static inline int fi_av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags,
			       void *context)
{
	return av->ops->insert(av, addr, count, fi_addr, flags, context);
}

/* The same for one peer, by name and port as in fi_getinfo(). */
static inline int fi_av_insertsvc(struct fid_av *av, const char *node, const char *service, fi_addr_t *fi_addr,
				  uint64_t flags, void *context)
{
	return av->ops->insertsvc(av, node, service, fi_addr, flags, context);
}

/* The same for nodecnt nodes (10.1.1.1, 10.1.1.2; or host10, host11), each with svccnt consecutive ports, in the order
 * of nodes. */
static inline int fi_av_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service,
				  size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return av->ops->insertsym(av, node, nodecnt, service, svccnt, fi_addr, flags, context);
}

/* Remove addresses. No operation may be using them. Later insertions may use the handles again. flags: 0. */
static inline int fi_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	return av->ops->remove(av, fi_addr, count, flags);
}

/* Get the address of a handle, cut off at *addrlen bytes; *addrlen is then its full length. -FI_EINVAL: no such
 * handle. */
static inline int fi_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	return av->ops->lookup(av, fi_addr, addr, addrlen);
}
#ifdef WEFT_API_2_7

/* With flag FI_XPU, get what identifies a handle to the device of a context. *len is the room in buf; afterwards the
 * length. -FI_ETOOSMALL: *len is the length needed, and buf unchanged. Without a flag, fi_av_lookup(), which does not
 * look at ctx. Since 2.7. */
static inline int fi_av_lookup2(struct fid_av *av, fi_addr_t fi_addr, void *buf, size_t *len, uint64_t flags,
				struct fid_xpu_ctx *ctx)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, lookup2))
		return -FI_ENOSYS;
	return av->ops->lookup2(av, fi_addr, buf, len, flags, ctx);
}
#endif /* WEFT_API_2_7 */

/* Write an address in the vector's format as text into buf, cut off at *len bytes including the NUL; *len is then the
 * length needed. The address need not be in the vector. Returns buf. */
static inline const char *fi_av_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len)
{
	return av->ops->straddr(av, addr, buf, len);
}

/* In a domain with FI_AV_AUTH_KEY: get a handle for an authorization key, for insertions and receives with FI_AUTH_KEY.
 * flags: 0. Since 1.20. */
static inline int fi_av_insert_auth_key(struct fid_av *av, const void *auth_key, size_t auth_key_size,
					fi_addr_t *fi_addr, uint64_t flags)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, insert_auth_key))
		return -FI_ENOSYS;
	return av->ops->insert_auth_key(av, auth_key, auth_key_size, fi_addr, flags);
}

/* Get the authorization key of a handle, which belongs to a key or to a peer; otherwise as fi_av_lookup(). Since
 * 1.20. */
static inline int fi_av_lookup_auth_key(struct fid_av *av, fi_addr_t addr, void *auth_key, size_t *auth_key_size)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, lookup_auth_key))
		return -FI_ENOSYS;
	return av->ops->lookup_auth_key(av, addr, auth_key, auth_key_size);
}

/* Change the number that a peer inserted with FI_AV_USER_ID has in completions. flags: 0. Since 1.20. */
static inline int fi_av_set_user_id(struct fid_av *av, fi_addr_t fi_addr, fi_addr_t user_id, uint64_t flags)
{
	if (!FI_CHECK_OP(av->ops, struct fi_ops_av, set_user_id))
		return -FI_ENOSYS;
	return av->ops->set_user_id(av, fi_addr, user_id, flags);
}

/* The address of a receive context of a peer (FI_NAMED_RX_CTX): rx_index is stored in the rx_ctx_bits of the vector,
 * which must not be 0. */
static inline fi_addr_t fi_rx_addr(fi_addr_t fi_addr, int rx_index, int rx_ctx_bits)
{
	return (fi_addr_t) rx_index << (64 - rx_ctx_bits) | fi_addr;
}

/* The address of a peer in a group. Messages match only receives of the same group, at most domain_attr::max_group_id.
 * Since 2.0. */
static inline fi_addr_t fi_group_addr(fi_addr_t fi_addr, uint32_t group_id)
{
	return (fi_addr_t) group_id << 32 | fi_addr;
}

#ifdef __cplusplus
}
#endif

#endif /* FI_DOMAIN_H */
