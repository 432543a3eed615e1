/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tables of values and their names.
 */
#include "names.h"

#include "base/bits.h"
#include "base/strbuf.h"
#include "log.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_trigger.h>

struct name {
	uint64_t value;
	const char *name;
};

#define NAME(value) { value, #value }

/* In the order in which they are printed. */
static const struct name caps_names[] = {
	NAME(FI_MSG), NAME(FI_RMA), NAME(FI_TAGGED), NAME(FI_ATOMIC), NAME(FI_MULTICAST), NAME(FI_COLLECTIVE),
	NAME(FI_READ), NAME(FI_WRITE), NAME(FI_RECV), NAME(FI_SEND), NAME(FI_REMOTE_READ), NAME(FI_REMOTE_WRITE),
	NAME(FI_MULTI_RECV), NAME(FI_REMOTE_CQ_DATA), NAME(FI_TRIGGER), NAME(FI_FENCE), NAME(FI_RMA_PMEM),
	NAME(FI_SOURCE_ERR), NAME(FI_LOCAL_COMM), NAME(FI_REMOTE_COMM), NAME(FI_SHARED_AV), NAME(FI_RMA_EVENT),
	NAME(FI_SOURCE), NAME(FI_NAMED_RX_CTX), NAME(FI_DIRECTED_RECV), NAME(FI_HMEM), NAME(FI_AV_USER_ID),
	NAME(FI_PEER), NAME(FI_TAGGED_DIRECTED_RECV), NAME(FI_TAGGED_MULTI_RECV), NAME(FI_EXACT_DIRECTED_RECV),
	NAME(FI_XPU),
};

static const struct name mode_names[] = {
	NAME(FI_CONTEXT), NAME(FI_MSG_PREFIX), NAME(FI_ASYNC_IOV), NAME(FI_RX_CQ_DATA), NAME(FI_LOCAL_MR),
	NAME(FI_CONTEXT2), NAME(FI_BUFFERED_RECV),
};

static const struct name getinfo_flags_names[] = {
	NAME(FI_SOURCE), NAME(FI_NUMERICHOST), NAME(FI_PROV_ATTR_ONLY), NAME(FI_RESCAN),
};

static const struct name op_flags_names[] = {
	NAME(FI_MULTICAST), NAME(FI_MULTI_RECV), NAME(FI_REMOTE_CQ_DATA), NAME(FI_MORE), NAME(FI_PEEK),
	NAME(FI_TRIGGER), NAME(FI_FENCE), NAME(FI_COMPLETION), NAME(FI_INJECT), NAME(FI_INJECT_COMPLETE),
	NAME(FI_TRANSMIT_COMPLETE), NAME(FI_DELIVERY_COMPLETE), NAME(FI_MATCH_COMPLETE), NAME(FI_COMMIT_COMPLETE),
	NAME(FI_AFFINITY), NAME(FI_CLAIM), NAME(FI_DISCARD), NAME(FI_AUTH_KEY),
};

static const struct name event_flags_names[] = {
	NAME(FI_SEND), NAME(FI_RECV), NAME(FI_RMA), NAME(FI_ATOMIC), NAME(FI_MSG), NAME(FI_TAGGED),
	NAME(FI_MULTICAST), NAME(FI_COLLECTIVE), NAME(FI_READ), NAME(FI_WRITE), NAME(FI_REMOTE_READ),
	NAME(FI_REMOTE_WRITE), NAME(FI_REMOTE_CQ_DATA), NAME(FI_MULTI_RECV), NAME(FI_MORE), NAME(FI_CLAIM),
};

static const struct name order_names[] = {
	NAME(FI_ORDER_RAR), NAME(FI_ORDER_RAW), NAME(FI_ORDER_RAS), NAME(FI_ORDER_WAR), NAME(FI_ORDER_WAW),
	NAME(FI_ORDER_WAS), NAME(FI_ORDER_SAR), NAME(FI_ORDER_SAW), NAME(FI_ORDER_SAS), NAME(FI_ORDER_RMA_RAR),
	NAME(FI_ORDER_RMA_RAW), NAME(FI_ORDER_RMA_WAR), NAME(FI_ORDER_RMA_WAW), NAME(FI_ORDER_ATOMIC_RAR),
	NAME(FI_ORDER_ATOMIC_RAW), NAME(FI_ORDER_ATOMIC_WAR), NAME(FI_ORDER_ATOMIC_WAW),
};

static const struct name comp_order_names[] = {
	NAME(FI_ORDER_NONE), NAME(FI_ORDER_STRICT), NAME(FI_ORDER_DATA),
};

static const struct name mr_mode_names[] = {
	NAME(FI_MR_BASIC), NAME(FI_MR_SCALABLE), NAME(FI_MR_LOCAL), NAME(FI_MR_RAW), NAME(FI_MR_VIRT_ADDR),
	NAME(FI_MR_ALLOCATED), NAME(FI_MR_PROV_KEY), NAME(FI_MR_MMU_NOTIFY), NAME(FI_MR_RMA_EVENT),
	NAME(FI_MR_ENDPOINT), NAME(FI_MR_HMEM), NAME(FI_MR_COLLECTIVE), NAME(FI_MR_XPU_DESC),
};

static const struct name ep_type_names[] = {
	NAME(FI_EP_UNSPEC), NAME(FI_EP_MSG), NAME(FI_EP_DGRAM), NAME(FI_EP_RDM), NAME(FI_EP_SOCK_DGRAM),
};

static const struct name addr_format_names[] = {
	NAME(FI_FORMAT_UNSPEC), NAME(FI_SOCKADDR), NAME(FI_SOCKADDR_IN), NAME(FI_SOCKADDR_IN6), NAME(FI_SOCKADDR_IB),
	NAME(FI_ADDR_PSMX), NAME(FI_ADDR_GNI), NAME(FI_ADDR_BGQ), NAME(FI_ADDR_MLX), NAME(FI_ADDR_STR),
	NAME(FI_ADDR_PSMX2), NAME(FI_ADDR_IB_UD), NAME(FI_ADDR_EFA), NAME(FI_ADDR_PSMX3), NAME(FI_ADDR_OPX),
	NAME(FI_ADDR_CXI), NAME(FI_ADDR_UCX), NAME(FI_SOCKADDR_IP),
};

static const struct name threading_names[] = {
	NAME(FI_THREAD_UNSPEC), NAME(FI_THREAD_SAFE), NAME(FI_THREAD_FID), NAME(FI_THREAD_DOMAIN),
	NAME(FI_THREAD_COMPLETION), NAME(FI_THREAD_ENDPOINT),
};

static const struct name progress_names[] = {
	NAME(FI_PROGRESS_UNSPEC), NAME(FI_PROGRESS_AUTO), NAME(FI_PROGRESS_MANUAL), NAME(FI_PROGRESS_CONTROL_UNIFIED),
};

static const struct name protocol_names[] = {
	NAME(FI_PROTO_UNSPEC), NAME(FI_PROTO_RDMA_CM_IB_RC), NAME(FI_PROTO_IWARP), NAME(FI_PROTO_IB_UD),
	NAME(FI_PROTO_PSMX), NAME(FI_PROTO_UDP), NAME(FI_PROTO_SOCK_TCP), NAME(FI_PROTO_MXM),
	NAME(FI_PROTO_IWARP_RDM), NAME(FI_PROTO_IB_RDM), NAME(FI_PROTO_GNI), NAME(FI_PROTO_RXM), NAME(FI_PROTO_RXD),
	NAME(FI_PROTO_MLX), NAME(FI_PROTO_NETWORKDIRECT), NAME(FI_PROTO_PSMX2), NAME(FI_PROTO_SHM),
	NAME(FI_PROTO_MRAIL), NAME(FI_PROTO_RSTREAM), NAME(FI_PROTO_RDMA_CM_IB_XRC), NAME(FI_PROTO_EFA),
	NAME(FI_PROTO_PSMX3), NAME(FI_PROTO_RXM_TCP), NAME(FI_PROTO_OPX), NAME(FI_PROTO_CXI), NAME(FI_PROTO_XNET),
	NAME(FI_PROTO_COLL), NAME(FI_PROTO_UCX), NAME(FI_PROTO_SM2), NAME(FI_PROTO_CXI_RNR), NAME(FI_PROTO_LPP),
	NAME(FI_PROTO_LNX),
};

static const struct name av_type_names[] = {
	NAME(FI_AV_UNSPEC), NAME(FI_AV_MAP), NAME(FI_AV_TABLE),
};

static const struct name datatype_names[] = {
	NAME(FI_INT8), NAME(FI_UINT8), NAME(FI_INT16), NAME(FI_UINT16), NAME(FI_INT32), NAME(FI_UINT32),
	NAME(FI_INT64), NAME(FI_UINT64), NAME(FI_FLOAT), NAME(FI_DOUBLE), NAME(FI_FLOAT_COMPLEX),
	NAME(FI_DOUBLE_COMPLEX), NAME(FI_LONG_DOUBLE), NAME(FI_LONG_DOUBLE_COMPLEX), NAME(FI_INT128),
	NAME(FI_UINT128), NAME(FI_FLOAT16), NAME(FI_BFLOAT16), NAME(FI_FLOAT8_E4M3), NAME(FI_FLOAT8_E5M2),
	NAME(FI_VOID),
};

static const struct name atomic_op_names[] = {
	NAME(FI_MIN), NAME(FI_MAX), NAME(FI_SUM), NAME(FI_PROD), NAME(FI_LOR), NAME(FI_LAND), NAME(FI_BOR),
	NAME(FI_BAND), NAME(FI_LXOR), NAME(FI_BXOR), NAME(FI_ATOMIC_READ), NAME(FI_ATOMIC_WRITE), NAME(FI_CSWAP),
	NAME(FI_CSWAP_NE), NAME(FI_CSWAP_LE), NAME(FI_CSWAP_LT), NAME(FI_CSWAP_GE), NAME(FI_CSWAP_GT),
	NAME(FI_MSWAP), NAME(FI_DIFF), NAME(FI_NOOP),
};

static const struct name eq_event_names[] = {
	NAME(FI_NOTIFY), NAME(FI_CONNREQ), NAME(FI_CONNECTED), NAME(FI_SHUTDOWN), NAME(FI_MR_COMPLETE),
	NAME(FI_AV_COMPLETE), NAME(FI_JOIN_COMPLETE),
};

static const struct name op_type_names[] = {
	NAME(FI_OP_RECV), NAME(FI_OP_SEND), NAME(FI_OP_TRECV), NAME(FI_OP_TSEND), NAME(FI_OP_READ),
	NAME(FI_OP_WRITE), NAME(FI_OP_ATOMIC), NAME(FI_OP_FETCH_ATOMIC), NAME(FI_OP_COMPARE_ATOMIC),
	NAME(FI_OP_CNTR_SET), NAME(FI_OP_CNTR_ADD),
};

static const struct name collective_op_names[] = {
	NAME(FI_BARRIER), NAME(FI_BROADCAST), NAME(FI_ALLTOALL), NAME(FI_ALLREDUCE), NAME(FI_ALLGATHER),
	NAME(FI_REDUCE_SCATTER), NAME(FI_REDUCE), NAME(FI_SCATTER), NAME(FI_GATHER),
};

static const struct name hmem_names[] = {
	NAME(FI_HMEM_SYSTEM), NAME(FI_HMEM_CUDA), NAME(FI_HMEM_ROCR), NAME(FI_HMEM_ZE), NAME(FI_HMEM_NEURON),
	NAME(FI_HMEM_SYNAPSEAI),
};

static const struct name cq_format_names[] = {
	NAME(FI_CQ_FORMAT_UNSPEC), NAME(FI_CQ_FORMAT_CONTEXT), NAME(FI_CQ_FORMAT_MSG), NAME(FI_CQ_FORMAT_DATA),
	NAME(FI_CQ_FORMAT_TAGGED),
};

static const struct name wait_cond_names[] = {
	NAME(FI_CQ_COND_NONE), NAME(FI_CQ_COND_THRESHOLD),
};

static const struct name wait_obj_names[] = {
	NAME(FI_WAIT_NONE), NAME(FI_WAIT_UNSPEC), NAME(FI_WAIT_SET), NAME(FI_WAIT_FD), NAME(FI_WAIT_MUTEX_COND),
	NAME(FI_WAIT_YIELD), NAME(FI_WAIT_POLLFD),
};

static const struct name rm_names[] = {
	NAME(FI_RM_UNSPEC), NAME(FI_RM_DISABLED), NAME(FI_RM_ENABLED),
};

static const struct name log_level_names[] = {
	{ FI_LOG_WARN, "warn" }, { FI_LOG_TRACE, "trace" }, { FI_LOG_INFO, "info" }, { FI_LOG_DEBUG, "debug" },
};

static const struct name log_subsys_names[] = {
	{ FI_LOG_CORE, "core" }, { FI_LOG_FABRIC, "fabric" }, { FI_LOG_DOMAIN, "domain" },
	{ FI_LOG_EP_CTRL, "ep_ctrl" }, { FI_LOG_EP_DATA, "ep_data" }, { FI_LOG_AV, "av" }, { FI_LOG_CQ, "cq" },
	{ FI_LOG_EQ, "eq" }, { FI_LOG_MR, "mr" }, { FI_LOG_CNTR, "cntr" },
};

static const struct name class_names[] = {
	NAME(FI_CLASS_UNSPEC), NAME(FI_CLASS_FABRIC), NAME(FI_CLASS_DOMAIN), NAME(FI_CLASS_EP), NAME(FI_CLASS_SEP),
	NAME(FI_CLASS_RX_CTX), NAME(FI_CLASS_SRX_CTX), NAME(FI_CLASS_TX_CTX), NAME(FI_CLASS_STX_CTX),
	NAME(FI_CLASS_PEP), NAME(FI_CLASS_INTERFACE), NAME(FI_CLASS_AV), NAME(FI_CLASS_MR), NAME(FI_CLASS_EQ),
	NAME(FI_CLASS_CQ), NAME(FI_CLASS_CNTR), NAME(FI_CLASS_WAIT), NAME(FI_CLASS_POLL), NAME(FI_CLASS_CONNREQ),
	NAME(FI_CLASS_MC), NAME(FI_CLASS_NIC), NAME(FI_CLASS_AV_SET), NAME(FI_CLASS_MR_CACHE),
	NAME(FI_CLASS_MEM_MONITOR), NAME(FI_CLASS_PEER_CQ), NAME(FI_CLASS_PEER_SRX), NAME(FI_CLASS_LOG),
	NAME(FI_CLASS_PEER_AV), NAME(FI_CLASS_PEER_AV_SET), NAME(FI_CLASS_PEER_CNTR), NAME(FI_CLASS_PROFILE),
	NAME(FI_CLASS_XPU_CTX),
};

static const struct name bus_names[] = {
	NAME(FI_BUS_UNKNOWN), NAME(FI_BUS_PCI),
};

static const struct name link_state_names[] = {
	NAME(FI_LINK_UNKNOWN), NAME(FI_LINK_DOWN), NAME(FI_LINK_UP),
};

struct table {
	const struct name *names;
	size_t cnt;
	bool flags;
	bool wide;		/* a datum has 64 bits, otherwise 32 */
};

#define FLAGS(table, width) { table, fab_countof(table), true, (width) == 64 }
#define ENUM(table) { table, fab_countof(table), false, false }

static const struct table tables[] = {
	[FI_TYPE_EP_TYPE] = ENUM(ep_type_names),
	[FI_TYPE_CAPS] = FLAGS(caps_names, 64),
	[FI_TYPE_OP_FLAGS] = FLAGS(op_flags_names, 64),
	[FI_TYPE_ADDR_FORMAT] = ENUM(addr_format_names),
	[FI_TYPE_THREADING] = ENUM(threading_names),
	[FI_TYPE_PROGRESS] = ENUM(progress_names),
	[FI_TYPE_PROTOCOL] = ENUM(protocol_names),
	[FI_TYPE_MSG_ORDER] = FLAGS(order_names, 64),
	[FI_TYPE_MODE] = FLAGS(mode_names, 64),
	[FI_TYPE_AV_TYPE] = ENUM(av_type_names),
	[FI_TYPE_ATOMIC_TYPE] = ENUM(datatype_names),
	[FI_TYPE_ATOMIC_OP] = ENUM(atomic_op_names),
	[FI_TYPE_EQ_EVENT] = ENUM(eq_event_names),
	[FI_TYPE_CQ_EVENT_FLAGS] = FLAGS(event_flags_names, 64),
	[FI_TYPE_MR_MODE] = FLAGS(mr_mode_names, 32),
	[FI_TYPE_OP_TYPE] = ENUM(op_type_names),
	[FI_TYPE_COLLECTIVE_OP] = ENUM(collective_op_names),
	[FI_TYPE_HMEM_IFACE] = ENUM(hmem_names),
	[FI_TYPE_CQ_FORMAT] = ENUM(cq_format_names),
	[FI_TYPE_LOG_LEVEL] = ENUM(log_level_names),
	[FI_TYPE_LOG_SUBSYS] = ENUM(log_subsys_names),
	[FI_TYPE_CQ_WAIT_COND] = ENUM(wait_cond_names),
	[FI_TYPE_WAIT_OBJ] = ENUM(wait_obj_names),
	[FAB_TYPE_COMP_ORDER] = FLAGS(comp_order_names, 64),
	[FAB_TYPE_RESOURCE_MGMT] = ENUM(rm_names),
	[FAB_TYPE_CLASS] = ENUM(class_names),
	[FAB_TYPE_BUS] = ENUM(bus_names),
	[FAB_TYPE_LINK_STATE] = ENUM(link_state_names),
	[FAB_TYPE_GETINFO_FLAGS] = FLAGS(getinfo_flags_names, 64),
};

bool fab_names_has(unsigned type)
{
	return type < fab_countof(tables) && tables[type].names;
}

uint64_t fab_names_load(unsigned type, const void *data)
{
	return tables[type].wide ? *(const uint64_t *) data : *(const uint32_t *) data;
}

const char *fab_names_find(unsigned type, uint64_t value)
{
	const struct table *table = &tables[type];
	size_t i;

	for (i = 0; i < table->cnt; i++)
		if (table->names[i].value == value)
			return table->names[i].name;
	return NULL;
}

static void put_flags(struct fab_strbuf *sb, const struct table *table, uint64_t value)
{
	const char *separator = "";
	size_t i;

	for (i = 0; i < table->cnt; i++) {
		const struct name *flag = &table->names[i];

		if (flag->value && (value & flag->value) == flag->value) {
			fab_strbuf_printf(sb, "%s%s", separator, flag->name);
			value &= ~flag->value;
			separator = ", ";
		}
	}
	if (value)
		fab_strbuf_printf(sb, "%s0x%llx", separator, (unsigned long long) value);
}

void fab_names_put(struct fab_strbuf *sb, unsigned type, uint64_t value)
{
	const char *name = fab_names_find(type, value);

	if (name)
		fab_strbuf_puts(sb, name);
	else if (tables[type].flags)
		put_flags(sb, &tables[type], value);
	else
		fab_strbuf_printf(sb, "Unknown (%llu)", (unsigned long long) value);
}
