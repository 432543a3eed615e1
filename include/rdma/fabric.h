/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Public API of libfabric, version 2.6: rdma/fabric.h. */
#ifndef FABRIC_H
#define FABRIC_H

#include <stdint.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <rdma/fi_errno.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FI_FORMAT_PRINTF(string, first) __attribute__((__format__(__printf__, (string), (first))))
#else
#define FI_FORMAT_PRINTF(string, first)
#endif
#define FI_VERSION(major, minor) (((major) << 16) | (minor))
#define FI_MAJOR(version) ((version) >> 16)
#define FI_MINOR(version) ((version) & 0xffff)
#define FI_VERSION_GE(v1, v2) ((v1) >= (v2))
#define FI_VERSION_LT(v1, v2) ((v1) < (v2))
#define FI_CHECK_OP(ops, opstype, op) ((ops) && (ops)->size > offsetof(opstype, op) && (ops)->op)
#if defined(__GNUC__)
#define FI_DEPRECATED_FUNC __attribute__((__deprecated__))
#else
#define FI_DEPRECATED_FUNC
#endif
#define FI_DEPRECATED_FIELD FI_DEPRECATED_FUNC
#if defined(__GNUC__) && !defined(__clang__)
#define EXTERNALLY_VISIBLE externally_visible
#else
#define EXTERNALLY_VISIBLE
#endif

enum fi_mr_mode {
	FI_MR_UNSPEC,
	FI_MR_BASIC,
	FI_MR_SCALABLE,
};

struct fi_alias;
struct fi_atomic_attr;
struct fi_av_attr;
struct fi_av_set_attr;
struct fi_bus_attr;
struct fi_cntr_attr;
struct fi_collective_addr;
struct fi_collective_attr;
struct fi_context;
struct fi_context2;
struct fi_cq_attr;
struct fi_cq_data_entry;
struct fi_cq_entry;
struct fi_cq_err_entry;
struct fi_cq_msg_entry;
struct fi_cq_tagged_entry;
struct fi_deferred_work;
struct fi_device_attr;
struct fi_domain_attr;
struct fi_ep_attr;
struct fi_eq_attr;
struct fi_eq_cm_entry;
struct fi_eq_entry;
struct fi_eq_err_entry;
struct fi_fabric_attr;
struct fi_fid_export;
struct fi_fid_var;
struct fi_hmem_override_ops;
struct fi_info;
struct fi_ioc;
struct fi_link_attr;
struct fi_mr_attr;
struct fi_mr_auth_key;
struct fi_mr_dmabuf;
struct fi_mr_map_raw;
struct fi_mr_modify;
struct fi_mr_raw_attr;
struct fi_msg;
struct fi_msg_atomic;
struct fi_msg_collective;
struct fi_msg_compare;
struct fi_msg_fetch;
struct fi_msg_rma;
struct fi_msg_tagged;
struct fi_mutex_cond;
struct fi_op_atomic;
struct fi_op_cntr;
struct fi_op_compare_atomic;
struct fi_op_fetch_atomic;
struct fi_op_msg;
struct fi_op_rma;
struct fi_op_tagged;
struct fi_ops;
struct fi_ops_atomic;
struct fi_ops_av;
struct fi_ops_av_owner;
struct fi_ops_av_set;
struct fi_ops_av_set_owner;
struct fi_ops_cm;
struct fi_ops_cntr;
struct fi_ops_cntr_owner;
struct fi_ops_collective;
struct fi_ops_cq;
struct fi_ops_cq_owner;
struct fi_ops_domain;
struct fi_ops_ep;
struct fi_ops_eq;
struct fi_ops_fabric;
struct fi_ops_log;
struct fi_ops_mem_monitor;
struct fi_ops_mem_notify;
struct fi_ops_mr;
struct fi_ops_msg;
struct fi_ops_poll;
struct fi_ops_rma;
struct fi_ops_srx_owner;
struct fi_ops_srx_peer;
struct fi_ops_tagged;
struct fi_ops_transfer_peer;
struct fi_ops_wait;
struct fi_param;
struct fi_pci_attr;
struct fi_peer_av_context;
struct fi_peer_av_set_context;
struct fi_peer_cntr_context;
struct fi_peer_cq_context;
struct fi_peer_domain_context;
struct fi_peer_eq_context;
struct fi_peer_match_attr;
struct fi_peer_rx_entry;
struct fi_peer_srx_context;
struct fi_peer_transfer_context;
struct fi_poll_attr;
struct fi_profile_desc;
struct fi_profile_ops;
struct fi_provider;
struct fi_recv_context;
struct fi_rma_ioc;
struct fi_rma_iov;
struct fi_rx_attr;
struct fi_trigger_threshold;
struct fi_trigger_var;
struct fi_trigger_xpu;
struct fi_triggered_context;
struct fi_triggered_context2;
struct fi_tx_attr;
struct fi_wait_attr;
struct fi_wait_pollfd;
struct fid;
struct fid_av;
struct fid_av_set;
struct fid_cntr;
struct fid_cq;
struct fid_domain;
struct fid_ep;
struct fid_eq;
struct fid_fabric;
struct fid_logging;
struct fid_mc;
struct fid_mem_monitor;
struct fid_mr;
struct fid_nic;
struct fid_peer_av;
struct fid_peer_av_set;
struct fid_peer_cntr;
struct fid_peer_cq;
struct fid_peer_srx;
struct fid_pep;
struct fid_poll;
struct fid_profile;
struct fid_stx;
struct fid_wait;

#define FI_MAJOR_VERSION 2
#define FI_MINOR_VERSION 6
#define FI_REVISION_VERSION 0
#define FI_MSG (1ULL << 1)
#define FI_RMA (1ULL << 2)
#define FI_TAGGED (1ULL << 3)
#define FI_ATOMIC (1ULL << 4)
#define FI_ATOMICS FI_ATOMIC
#define FI_MULTICAST (1ULL << 5)
#define FI_COLLECTIVE (1ULL << 6)
#define FI_READ (1ULL << 8)
#define FI_WRITE (1ULL << 9)
#define FI_RECV (1ULL << 10)
#define FI_SEND (1ULL << 11)
#define FI_TRANSMIT FI_SEND
#define FI_REMOTE_READ (1ULL << 12)
#define FI_REMOTE_WRITE (1ULL << 13)
#define FI_MULTI_RECV (1ULL << 16)
#define FI_REMOTE_CQ_DATA (1ULL << 17)
#define FI_MORE (1ULL << 18)
#define FI_PEEK (1ULL << 19)
#define FI_TRIGGER (1ULL << 20)
#define FI_FENCE (1ULL << 21)
#define FI_COMPLETION (1ULL << 24)
#define FI_EVENT FI_COMPLETION
#define FI_INJECT (1ULL << 25)
#define FI_INJECT_COMPLETE (1ULL << 26)
#define FI_TRANSMIT_COMPLETE (1ULL << 27)
#define FI_DELIVERY_COMPLETE (1ULL << 28)
#define FI_AFFINITY (1ULL << 29)
#define FI_COMMIT_COMPLETE (1ULL << 30)
#define FI_MATCH_COMPLETE (1ULL << 31)
#define FI_RESCAN (1ULL << 35)
#define FI_PEER_TRANSFER (1ULL << 36)
#define FI_AV_USER_ID (1ULL << 41)
#define FI_FIREWALL_ADDR (1ULL << 42)
#define FI_PEER (1ULL << 43)
#define FI_TAGGED_DIRECTED_RECV (1ULL << 45)
#define FI_TAGGED_MULTI_RECV (1ULL << 46)
#define FI_HMEM (1ULL << 47)
#define FI_EXACT_DIRECTED_RECV (1ULL << 48)
#define FI_RMA_PMEM (1ULL << 49)
#define FI_SOURCE_ERR (1ULL << 50)
#define FI_LOCAL_COMM (1ULL << 51)
#define FI_REMOTE_COMM (1ULL << 52)
#define FI_SHARED_AV (1ULL << 53)
#define FI_PROV_ATTR_ONLY (1ULL << 54)
#define FI_NUMERICHOST (1ULL << 55)
#define FI_RMA_EVENT (1ULL << 56)
#define FI_SOURCE (1ULL << 57)
#define FI_NAMED_RX_CTX (1ULL << 58)
#define FI_DIRECTED_RECV (1ULL << 59)
#define FI_CLAIM (1ULL << 59)
#define FI_DISCARD (1ULL << 58)
#define FI_AUTH_KEY (1ULL << 57)
#define FI_ADDR_UNSPEC UINT64_MAX
#define FI_ADDR_NOTAVAIL UINT64_MAX
#define FI_KEY_NOTAVAIL UINT64_MAX
#define FI_SHARED_CONTEXT SIZE_MAX
#define FI_AV_AUTH_KEY SIZE_MAX
#define FI_MR_UNSPEC FI_MR_UNSPEC
#define FI_MR_BASIC FI_MR_BASIC
#define FI_MR_SCALABLE FI_MR_SCALABLE
#define FI_MR_LOCAL (1 << 2)
#define FI_MR_RAW (1 << 3)
#define FI_MR_VIRT_ADDR (1 << 4)
#define FI_MR_ALLOCATED (1 << 5)
#define FI_MR_PROV_KEY (1 << 6)
#define FI_MR_MMU_NOTIFY (1 << 7)
#define FI_MR_RMA_EVENT (1 << 8)
#define FI_MR_ENDPOINT (1 << 9)
#define FI_MR_HMEM (1 << 10)
#define FI_MR_COLLECTIVE (1 << 11)
#define FI_ORDER_NONE 0ULL
#define FI_ORDER_RAR (1ULL << 0)
#define FI_ORDER_RAW (1ULL << 1)
#define FI_ORDER_RAS (1ULL << 2)
#define FI_ORDER_WAR (1ULL << 3)
#define FI_ORDER_WAW (1ULL << 4)
#define FI_ORDER_WAS (1ULL << 5)
#define FI_ORDER_SAR (1ULL << 6)
#define FI_ORDER_SAW (1ULL << 7)
#define FI_ORDER_SAS (1ULL << 8)
#define FI_ORDER_STRICT 0x1ff
#define FI_ORDER_RMA_RAR (1ULL << 32)
#define FI_ORDER_RMA_RAW (1ULL << 33)
#define FI_ORDER_RMA_WAR (1ULL << 34)
#define FI_ORDER_RMA_WAW (1ULL << 35)
#define FI_ORDER_ATOMIC_RAR (1ULL << 36)
#define FI_ORDER_ATOMIC_RAW (1ULL << 37)
#define FI_ORDER_ATOMIC_WAR (1ULL << 38)
#define FI_ORDER_ATOMIC_WAW (1ULL << 39)
#define FI_ORDER_DATA (1ULL << 16)
#define FI_CONTEXT (1ULL << 59)
#define FI_MSG_PREFIX (1ULL << 58)
#define FI_ASYNC_IOV (1ULL << 57)
#define FI_RX_CQ_DATA (1ULL << 56)
#define FI_LOCAL_MR (1ULL << 55)
#define FI_CONTEXT2 (1ULL << 52)
#define FI_SELECTIVE_COMPLETION (1ULL << 59)
#define FI_VARIABLE_MSG 0ULL
#define FI_NOTIFY_FLAGS_ONLY 0ULL
#define FI_RESTRICTED_COMP 0ULL
#define FI_EP_SOCK_STREAM FI_EP_UNSPEC
#define FI_MR_DMABUF (1ULL << 40)
#define FI_HMEM_HOST_ALLOC (1ULL << 45)
#define FI_HMEM_DEVICE_ONLY (1ULL << 46)
#define FI_PROV_SPECIFIC (1U << 31)
#define FI_BUFFERED_RECV (1ULL << 51)
#define FI_PRIORITY (1ULL << 22)
#define FI_XPU_TRIGGER (1ULL << 44)

enum {
	FI_NAME_MAX = 64,
	FI_ATOMIC_OP_LAST = 19,
	FI_DATATYPE_LAST = 14,
	FI_PATH_MAX = 256,
	FI_VERSION_MAX = 64,
};

enum {
	FI_FORMAT_UNSPEC = 0,
	FI_SOCKADDR = 1,
	FI_SOCKADDR_IN = 2,
	FI_SOCKADDR_IN6 = 3,
	FI_SOCKADDR_IB = 4,
	FI_ADDR_PSMX = 5,
	FI_ADDR_GNI = 6,
	FI_ADDR_BGQ = 7,
	FI_ADDR_MLX = 8,
	FI_ADDR_STR = 9,
	FI_ADDR_PSMX2 = 10,
	FI_ADDR_IB_UD = 11,
	FI_ADDR_EFA = 12,
	FI_ADDR_PSMX3 = 13,
	FI_ADDR_OPX = 14,
	FI_ADDR_CXI = 15,
	FI_ADDR_UCX = 16,
	FI_SOCKADDR_IP = 17,
};

enum fi_av_type {
	FI_AV_UNSPEC = 0,
	FI_AV_MAP = 1,
	FI_AV_TABLE = 2,
};

enum fi_progress {
	FI_PROGRESS_UNSPEC = 0,
	FI_PROGRESS_AUTO = 1,
	FI_PROGRESS_MANUAL = 2,
	FI_PROGRESS_CONTROL_UNIFIED = 3,
};

enum fi_threading {
	FI_THREAD_UNSPEC = 0,
	FI_THREAD_SAFE = 1,
	FI_THREAD_FID = 2,
	FI_THREAD_DOMAIN = 3,
	FI_THREAD_COMPLETION = 4,
	FI_THREAD_ENDPOINT = 5,
};

enum fi_resource_mgmt {
	FI_RM_UNSPEC = 0,
	FI_RM_DISABLED = 1,
	FI_RM_ENABLED = 2,
};

enum fi_ep_type {
	FI_EP_UNSPEC = 0,
	FI_EP_MSG = 1,
	FI_EP_DGRAM = 2,
	FI_EP_RDM = 3,
	FI_EP_SOCK_DGRAM = 5,
};

enum {
	FI_PROTO_UNSPEC = 0,
	FI_PROTO_RDMA_CM_IB_RC = 1,
	FI_PROTO_IWARP = 2,
	FI_PROTO_IB_UD = 3,
	FI_PROTO_PSMX = 4,
	FI_PROTO_UDP = 5,
	FI_PROTO_SOCK_TCP = 6,
	FI_PROTO_MXM = 7,
	FI_PROTO_IWARP_RDM = 8,
	FI_PROTO_IB_RDM = 9,
	FI_PROTO_GNI = 10,
	FI_PROTO_RXM = 11,
	FI_PROTO_RXD = 12,
	FI_PROTO_MLX = 13,
	FI_PROTO_NETWORKDIRECT = 14,
	FI_PROTO_PSMX2 = 15,
	FI_PROTO_SHM = 16,
	FI_PROTO_MRAIL = 17,
	FI_PROTO_RSTREAM = 18,
	FI_PROTO_RDMA_CM_IB_XRC = 19,
	FI_PROTO_EFA = 20,
	FI_PROTO_PSMX3 = 21,
	FI_PROTO_RXM_TCP = 22,
	FI_PROTO_OPX = 23,
	FI_PROTO_CXI = 24,
	FI_PROTO_XNET = 25,
	FI_PROTO_COLL = 26,
	FI_PROTO_UCX = 27,
	FI_PROTO_SM2 = 28,
	FI_PROTO_CXI_RNR = 29,
	FI_PROTO_LPP = 30,
	FI_PROTO_LNX = 31,
};

enum {
	FI_TAG_BITS = 0,
	FI_TAG_MPI = 1,
	FI_TAG_CCL = 2,
	FI_TAG_MAX_FORMAT = 65536,
};

enum {
	FI_TC_UNSPEC = 0,
	FI_TC_DSCP = 256,
	FI_TC_LABEL = 512,
	FI_TC_BEST_EFFORT = 512,
	FI_TC_LOW_LATENCY = 513,
	FI_TC_DEDICATED_ACCESS = 514,
	FI_TC_BULK_DATA = 515,
	FI_TC_SCAVENGER = 516,
	FI_TC_NETWORK_CTRL = 517,
};

enum fi_bus_type {
	FI_BUS_UNSPEC = 0,
	FI_BUS_UNKNOWN = 0,
	FI_BUS_PCI = 1,
};

enum fi_link_state {
	FI_LINK_UNKNOWN = 0,
	FI_LINK_DOWN = 1,
	FI_LINK_UP = 2,
};

enum {
	FI_CLASS_UNSPEC = 0,
	FI_CLASS_FABRIC = 1,
	FI_CLASS_DOMAIN = 2,
	FI_CLASS_EP = 3,
	FI_CLASS_SEP = 4,
	FI_CLASS_RX_CTX = 5,
	FI_CLASS_SRX_CTX = 6,
	FI_CLASS_TX_CTX = 7,
	FI_CLASS_STX_CTX = 8,
	FI_CLASS_PEP = 9,
	FI_CLASS_INTERFACE = 10,
	FI_CLASS_AV = 11,
	FI_CLASS_MR = 12,
	FI_CLASS_EQ = 13,
	FI_CLASS_CQ = 14,
	FI_CLASS_CNTR = 15,
	FI_CLASS_WAIT = 16,
	FI_CLASS_POLL = 17,
	FI_CLASS_CONNREQ = 18,
	FI_CLASS_MC = 19,
	FI_CLASS_NIC = 20,
	FI_CLASS_AV_SET = 21,
	FI_CLASS_MR_CACHE = 22,
	FI_CLASS_MEM_MONITOR = 23,
	FI_CLASS_PEER_CQ = 24,
	FI_CLASS_PEER_SRX = 25,
	FI_CLASS_LOG = 26,
	FI_CLASS_PEER_AV = 27,
	FI_CLASS_PEER_AV_SET = 28,
	FI_CLASS_PEER_CNTR = 29,
	FI_CLASS_PROFILE = 30,
};

enum {
	FI_GETFIDFLAG = 0,
	FI_SETFIDFLAG = 1,
	FI_GETOPSFLAG = 2,
	FI_SETOPSFLAG = 3,
	FI_ALIAS = 4,
	FI_GETWAIT = 5,
	FI_ENABLE = 6,
	FI_BACKLOG = 7,
	FI_GET_RAW_MR = 8,
	FI_MAP_RAW_MR = 9,
	FI_UNMAP_KEY = 10,
	FI_QUEUE_WORK = 11,
	FI_CANCEL_WORK = 12,
	FI_FLUSH_WORK = 13,
	FI_REFRESH = 14,
	FI_DUP = 15,
	FI_GETWAITOBJ = 16,
	FI_GET_VAL = 17,
	FI_SET_VAL = 18,
	FI_EXPORT_FID = 19,
	FI_GET_FD = 20,
};

enum fi_type {
	FI_TYPE_INFO = 0,
	FI_TYPE_EP_TYPE = 1,
	FI_TYPE_CAPS = 2,
	FI_TYPE_OP_FLAGS = 3,
	FI_TYPE_ADDR_FORMAT = 4,
	FI_TYPE_TX_ATTR = 5,
	FI_TYPE_RX_ATTR = 6,
	FI_TYPE_EP_ATTR = 7,
	FI_TYPE_DOMAIN_ATTR = 8,
	FI_TYPE_FABRIC_ATTR = 9,
	FI_TYPE_THREADING = 10,
	FI_TYPE_PROGRESS = 11,
	FI_TYPE_PROTOCOL = 12,
	FI_TYPE_MSG_ORDER = 13,
	FI_TYPE_MODE = 14,
	FI_TYPE_AV_TYPE = 15,
	FI_TYPE_ATOMIC_TYPE = 16,
	FI_TYPE_ATOMIC_OP = 17,
	FI_TYPE_VERSION = 18,
	FI_TYPE_EQ_EVENT = 19,
	FI_TYPE_CQ_EVENT_FLAGS = 20,
	FI_TYPE_MR_MODE = 21,
	FI_TYPE_OP_TYPE = 22,
	FI_TYPE_FID = 23,
	FI_TYPE_COLLECTIVE_OP = 24,
	FI_TYPE_HMEM_IFACE = 25,
	FI_TYPE_CQ_FORMAT = 26,
	FI_TYPE_LOG_LEVEL = 27,
	FI_TYPE_LOG_SUBSYS = 28,
	FI_TYPE_AV_ATTR = 29,
	FI_TYPE_CQ_ATTR = 30,
	FI_TYPE_MR_ATTR = 31,
	FI_TYPE_CNTR_ATTR = 32,
	FI_TYPE_CQ_ERR_ENTRY = 33,
	FI_TYPE_CQ_WAIT_COND = 34,
	FI_TYPE_WAIT_OBJ = 35,
};

enum fi_param_type {
	FI_PARAM_STRING = 0,
	FI_PARAM_INT = 1,
	FI_PARAM_BOOL = 2,
	FI_PARAM_SIZE_T = 3,
};

typedef struct fid *fid_t;
typedef uint64_t fi_addr_t;

struct fi_ioc {
	void *addr;
	size_t count;
};

struct fi_tx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;
	uint64_t msg_order;
	uint64_t comp_order;
	size_t inject_size;
	size_t size;
	size_t iov_limit;
	size_t rma_iov_limit;
	uint32_t tclass;
};

struct fi_rx_attr {
	uint64_t caps;
	uint64_t mode;
	uint64_t op_flags;
	uint64_t msg_order;
	uint64_t comp_order;
	size_t total_buffered_recv;
	size_t size;
	size_t iov_limit;
};

struct fi_ep_attr {
	enum fi_ep_type type;
	uint32_t protocol;
	uint32_t protocol_version;
	size_t max_msg_size;
	size_t msg_prefix_size;
	size_t max_order_raw_size;
	size_t max_order_war_size;
	size_t max_order_waw_size;
	uint64_t mem_tag_format;
	size_t tx_ctx_cnt;
	size_t rx_ctx_cnt;
	size_t auth_key_size;
	uint8_t *auth_key;
};

struct fi_domain_attr {
	struct fid_domain *domain;
	char *name;
	enum fi_threading threading;
	enum fi_progress control_progress;
	union {
		enum fi_progress data_progress;
		enum fi_progress progress;
	};
	enum fi_resource_mgmt resource_mgmt;
	enum fi_av_type av_type;
	int mr_mode;
	size_t mr_key_size;
	size_t cq_data_size;
	size_t cq_cnt;
	size_t ep_cnt;
	size_t tx_ctx_cnt;
	size_t rx_ctx_cnt;
	size_t max_ep_tx_ctx;
	size_t max_ep_rx_ctx;
	size_t max_ep_stx_ctx;
	size_t max_ep_srx_ctx;
	size_t cntr_cnt;
	size_t mr_iov_limit;
	uint64_t caps;
	uint64_t mode;
	uint8_t *auth_key;
	size_t auth_key_size;
	size_t max_err_data;
	size_t mr_cnt;
	uint32_t tclass;
	size_t max_ep_auth_key;
	uint32_t max_group_id;
	uint64_t max_cntr_value;
	uint64_t max_err_cntr_value;
};

struct fi_fabric_attr {
	struct fid_fabric *fabric;
	char *name;
	char *prov_name;
	uint32_t prov_version;
	uint32_t api_version;
};

struct fi_info {
	struct fi_info *next;
	uint64_t caps;
	uint64_t mode;
	uint32_t addr_format;
	size_t src_addrlen;
	size_t dest_addrlen;
	void *src_addr;
	void *dest_addr;
	fid_t handle;
	struct fi_tx_attr *tx_attr;
	struct fi_rx_attr *rx_attr;
	struct fi_ep_attr *ep_attr;
	struct fi_domain_attr *domain_attr;
	struct fi_fabric_attr *fabric_attr;
	struct fid_nic *nic;
};

struct fi_device_attr {
	char *name;
	char *device_id;
	char *device_version;
	char *vendor_id;
	char *driver;
	char *firmware;
};

struct fi_pci_attr {
	uint16_t domain_id;
	uint8_t bus_id;
	uint8_t device_id;
	uint8_t function_id;
};

struct fi_bus_attr {
	enum fi_bus_type bus_type;
	union {
		struct fi_pci_attr pci;
	} attr;
};

struct fi_link_attr {
	char *address;
	size_t mtu;
	size_t speed;
	enum fi_link_state state;
	char *network_type;
};

struct fi_ops {
	size_t size;
	int (*close)(struct fid *);
	int (*bind)(struct fid *, struct fid *, uint64_t);
	int (*control)(struct fid *, int, void *);
	int (*ops_open)(struct fid *, const char *, uint64_t, void **, void *);
	int (*tostr)(const struct fid *, char *, size_t);
	int (*ops_set)(struct fid *, const char *, uint64_t, void *, void *);
};

struct fid {
	size_t fclass;
	void *context;
	struct fi_ops *ops;
};

struct fi_ops_fabric {
	size_t size;
	int (*domain)(struct fid_fabric *, struct fi_info *, struct fid_domain **, void *);
	int (*passive_ep)(struct fid_fabric *, struct fi_info *, struct fid_pep **, void *);
	int (*eq_open)(struct fid_fabric *, struct fi_eq_attr *, struct fid_eq **, void *);
	int (*wait_open)(struct fid_fabric *, struct fi_wait_attr *, struct fid_wait **);
	int (*trywait)(struct fid_fabric *, struct fid **, int);
	int (*domain2)(struct fid_fabric *, struct fi_info *, struct fid_domain **, uint64_t, void *);
};

struct fid_fabric {
	struct fid fid;
	struct fi_ops_fabric *ops;
	uint32_t api_version;
};

struct fid_nic {
	struct fid fid;
	struct fi_device_attr *device_attr;
	struct fi_bus_attr *bus_attr;
	struct fi_link_attr *link_attr;
	void *prov_attr;
};

struct fi_alias {
	struct fid **fid;
	uint64_t flags;
};

struct fi_fid_var {
	int name;
	void *val;
};

struct fi_mr_raw_attr {
	uint64_t flags;
	uint64_t *base_addr;
	uint8_t *raw_key;
	size_t *key_size;
};

struct fi_mr_map_raw {
	uint64_t flags;
	uint64_t base_addr;
	uint8_t *raw_key;
	size_t key_size;
	uint64_t *key;
};

struct fi_param {
	const char *name;
	enum fi_param_type type;
	const char *help_string;
	const char *value;
};

struct fi_context {
	void *internal[4];
};

struct fi_context2 {
	void *internal[8];
};

struct fi_recv_context {
	struct fid_ep *ep;
	void *context;
};

uint32_t fi_version(void);

static inline uint32_t fi_tc_dscp_set(uint8_t dscp)
{
	return ((uint32_t) dscp) | FI_TC_DSCP;
}

static inline uint8_t fi_tc_dscp_get(uint32_t tclass)
{
	return (tclass & FI_TC_DSCP) ? (uint8_t) (tclass & 0xff) : 0;
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct fi_info **info);

void fi_freeinfo(struct fi_info *info);

struct fi_info *fi_dupinfo(const struct fi_info *info);

static inline struct fi_info *fi_allocinfo(void)
{
	return fi_dupinfo(NULL);
}

int fi_fabric2(struct fi_info *info, struct fid_fabric **fabric, uint64_t flags, void *context);

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

int fi_open(uint32_t version, const char *name, void *attr, size_t attr_len, uint64_t flags, struct fid **fid, void *context);

static inline int fi_close(struct fid *fid)
{
	return fid->ops->close(fid);
}

static inline int fi_control(struct fid *fid, int command, void *arg)
{
	return fid->ops->control(fid, command, arg);
}

static inline int fi_alias(struct fid *fid, struct fid **alias_fid, uint64_t flags)
{
	struct fi_alias arg;

	arg.fid = alias_fid;
	arg.flags = flags;
	return fid->ops->control(fid, FI_ALIAS, &arg);
}

static inline int fi_get_val(struct fid *fid, int name, void *val)
{
	struct fi_fid_var arg;

	arg.name = name;
	arg.val = val;
	return fid->ops->control(fid, FI_GET_VAL, &arg);
}

static inline int fi_set_val(struct fid *fid, int name, void *val)
{
	struct fi_fid_var arg;

	arg.name = name;
	arg.val = val;
	return fid->ops->control(fid, FI_SET_VAL, &arg);
}

static inline int fi_open_ops(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	return fid->ops->ops_open(fid, name, flags, ops, context);
}

static inline int fi_set_ops(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	if (!FI_CHECK_OP(fid->ops, struct fi_ops, ops_set))
		return -FI_ENOSYS;
	return fid->ops->ops_set(fid, name, flags, ops, context);
}

char *fi_tostr(const void *data, enum fi_type datatype);

char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype);

int fi_getparams(struct fi_param **params, int *count);

void fi_freeparams(struct fi_param *params);

#ifdef __cplusplus
}
#endif

#endif /* FABRIC_H */
