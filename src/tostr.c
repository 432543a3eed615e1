/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_tostr() and fi_tostr_r(): values and structures as text, one field a line, indented by depth. Programs parse this
 * text (fi_info -v prints it), so fields keep their names and order, and new fields go to the end of their structure.
 * State: a buffer for each thread, which holds the result of its latest fi_tostr().
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tostr.h"

#include "base/addr.h"
#include "base/bits.h"
#include "base/strbuf.h"
#include "export.h"
#include "names.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUF_LEN = 8192,		/* of fi_tostr(); the longest fi_info is about half of it */
	MAX_ADDR_BYTES = 128,	/* of an address that is shown in hexadecimal */
};

/* The text so far, and the depth of the structure that is being written. */
struct out {
	struct fab_strbuf sb;
	unsigned depth;
};

/* Begin a line "name: ". */
static void key(struct out *out, const char *name)
{
	fab_strbuf_printf(&out->sb, "%*s%s: ", (int) out->depth * 4, "", name);
}

/* Begin a structure: write "name:"; its fields follow one level deeper. For NULL write "name: (null)", and return
 * false. */
static bool tostr_begin(struct out *out, const char *name, const void *structure)
{
	fab_strbuf_printf(&out->sb, "%*s%s:%s\n", (int) out->depth * 4, "", name, structure ? "" : " (null)");
	if (structure)
		out->depth++;
	return structure;
}

static void end(struct out *out)
{
	out->depth--;
}

static void put_number(struct out *out, const char *name, uint64_t value)
{
	key(out, name);
	fab_strbuf_printf(&out->sb, "%llu\n", (unsigned long long) value);
}

static void put_hex(struct out *out, const char *name, uint64_t value)
{
	key(out, name);
	fab_strbuf_printf(&out->sb, "0x%llx\n", (unsigned long long) value);
}

static void put_pointer(struct out *out, const char *name, const void *value)
{
	key(out, name);
	if (value)
		fab_strbuf_printf(&out->sb, "%p\n", value);
	else
		fab_strbuf_puts(&out->sb, "(nil)\n");
}

static void put_string(struct out *out, const char *name, const char *value)
{
	key(out, name);
	fab_strbuf_puts(&out->sb, value ? value : "(null)");
	fab_strbuf_putc(&out->sb, '\n');
}

static void put_version(struct out *out, const char *name, uint32_t version)
{
	key(out, name);
	fab_strbuf_printf(&out->sb, "%u.%u\n", FI_MAJOR(version), FI_MINOR(version));
}

static void put_enum(struct out *out, const char *name, unsigned type, uint64_t value)
{
	key(out, name);
	fab_names_put(&out->sb, type, value);
	fab_strbuf_putc(&out->sb, '\n');
}

static void put_flags(struct out *out, const char *name, unsigned type, uint64_t value)
{
	key(out, name);
	fab_strbuf_puts(&out->sb, "[ ");
	fab_names_put(&out->sb, type, value);
	fab_strbuf_puts(&out->sb, " ]\n");
}

/* Of a key only the length is shown. FI_AV_AUTH_KEY says that the keys are in the AV. */
static void put_key_size(struct out *out, size_t size)
{
	if (size == FI_AV_AUTH_KEY)
		put_string(out, "auth_key_size", "FI_AV_AUTH_KEY");
	else
		put_number(out, "auth_key_size", size);
}

static void put_bytes(struct out *out, uint32_t format, const uint8_t *bytes, size_t len)
{
	size_t i;

	fab_names_put(&out->sb, FI_TYPE_ADDR_FORMAT, format);
	fab_strbuf_puts(&out->sb, "://");
	for (i = 0; i < fab_min(len, (size_t) MAX_ADDR_BYTES); i++)
		fab_strbuf_printf(&out->sb, "%02x", bytes[i]);
	if (len > MAX_ADDR_BYTES)
		fab_strbuf_puts(&out->sb, "...");
}

/* True if the format is one of socket addresses, and addr is a complete address of a known family. */
static bool is_sockaddr(uint32_t format, const void *addr, size_t len)
{
	socklen_t need;

	if (format != FI_SOCKADDR && format != FI_SOCKADDR_IN && format != FI_SOCKADDR_IN6 &&
	    format != FI_SOCKADDR_IP && format != FI_SOCKADDR_IB)
		return false;
	need = len >= sizeof(struct sockaddr_in) ? fab_any_addr_len(addr) : 0;
	return need && len >= need;
}

static void put_addr(struct out *out, const char *name, uint32_t format, const void *addr, size_t len)
{
	char text[FAB_ADDR_STRLEN];

	key(out, name);
	if (!addr) {
		fab_strbuf_puts(&out->sb, "(null)");
	} else if (is_sockaddr(format, addr, len)) {
		fab_addr_to_str(addr, text, sizeof(text));
		fab_strbuf_puts(&out->sb, text);
	} else if (format == FI_ADDR_STR) {
		fab_strbuf_printf(&out->sb, "%.*s", (int) fab_min(len, (size_t) BUF_LEN), (const char *) addr);
	} else {
		put_bytes(out, format, addr, len);
	}
	fab_strbuf_putc(&out->sb, '\n');
}

/* The fields that fi_tx_attr and fi_rx_attr both begin with. */
static void put_context(struct out *out, uint64_t caps, uint64_t mode, uint64_t op_flags, uint64_t msg_order,
			uint64_t comp_order)
{
	put_flags(out, "caps", FI_TYPE_CAPS, caps);
	put_flags(out, "mode", FI_TYPE_MODE, mode);
	put_flags(out, "op_flags", FI_TYPE_OP_FLAGS, op_flags);
	put_flags(out, "msg_order", FI_TYPE_MSG_ORDER, msg_order);
	put_flags(out, "comp_order", FAB_TYPE_COMP_ORDER, comp_order);
}

static void put_tx_attr(struct out *out, const struct fi_tx_attr *attr)
{
	if (!tostr_begin(out, "fi_tx_attr", attr))
		return;
	put_context(out, attr->caps, attr->mode, attr->op_flags, attr->msg_order, attr->comp_order);
	put_number(out, "inject_size", attr->inject_size);
	put_number(out, "size", attr->size);
	put_number(out, "iov_limit", attr->iov_limit);
	put_number(out, "rma_iov_limit", attr->rma_iov_limit);
	put_hex(out, "tclass", attr->tclass);
	end(out);
}

static void put_rx_attr(struct out *out, const struct fi_rx_attr *attr)
{
	if (!tostr_begin(out, "fi_rx_attr", attr))
		return;
	put_context(out, attr->caps, attr->mode, attr->op_flags, attr->msg_order, attr->comp_order);
	put_number(out, "total_buffered_recv", attr->total_buffered_recv);
	put_number(out, "size", attr->size);
	put_number(out, "iov_limit", attr->iov_limit);
	end(out);
}

static void put_ep_attr(struct out *out, const struct fi_ep_attr *attr)
{
	if (!tostr_begin(out, "fi_ep_attr", attr))
		return;
	put_enum(out, "type", FI_TYPE_EP_TYPE, attr->type);
	put_enum(out, "protocol", FI_TYPE_PROTOCOL, attr->protocol);
	put_number(out, "protocol_version", attr->protocol_version);
	put_number(out, "max_msg_size", attr->max_msg_size);
	put_number(out, "msg_prefix_size", attr->msg_prefix_size);
	put_number(out, "max_order_raw_size", attr->max_order_raw_size);
	put_number(out, "max_order_war_size", attr->max_order_war_size);
	put_number(out, "max_order_waw_size", attr->max_order_waw_size);
	key(out, "mem_tag_format");
	fab_strbuf_printf(&out->sb, "0x%016llx\n", (unsigned long long) attr->mem_tag_format);
	put_number(out, "tx_ctx_cnt", attr->tx_ctx_cnt);
	put_number(out, "rx_ctx_cnt", attr->rx_ctx_cnt);
	put_key_size(out, attr->auth_key_size);
	end(out);
}

/* The members of 2.7 are written only where FI_XPU says that they are there. The version of the caller's structure is
 * not known here, and older callers have shorter ones. In ep_attr nothing says so, and xpu_ctx is not written. */
static void put_domain_attr(struct out *out, const struct fi_domain_attr *attr)
{
	if (!tostr_begin(out, "fi_domain_attr", attr))
		return;
	put_hex(out, "domain", (uintptr_t) attr->domain);
	put_string(out, "name", attr->name);
	put_enum(out, "threading", FI_TYPE_THREADING, attr->threading);
	put_enum(out, "control_progress", FI_TYPE_PROGRESS, attr->control_progress);
	put_enum(out, "data_progress", FI_TYPE_PROGRESS, attr->data_progress);
	put_enum(out, "resource_mgmt", FAB_TYPE_RESOURCE_MGMT, attr->resource_mgmt);
	put_enum(out, "av_type", FI_TYPE_AV_TYPE, attr->av_type);
	put_flags(out, "mr_mode", FI_TYPE_MR_MODE, (uint32_t) attr->mr_mode);
	put_number(out, "mr_key_size", attr->mr_key_size);
	put_number(out, "cq_data_size", attr->cq_data_size);
	put_number(out, "cq_cnt", attr->cq_cnt);
	put_number(out, "ep_cnt", attr->ep_cnt);
	put_number(out, "tx_ctx_cnt", attr->tx_ctx_cnt);
	put_number(out, "rx_ctx_cnt", attr->rx_ctx_cnt);
	put_number(out, "max_ep_tx_ctx", attr->max_ep_tx_ctx);
	put_number(out, "max_ep_rx_ctx", attr->max_ep_rx_ctx);
	put_number(out, "max_ep_stx_ctx", attr->max_ep_stx_ctx);
	put_number(out, "max_ep_srx_ctx", attr->max_ep_srx_ctx);
	put_number(out, "cntr_cnt", attr->cntr_cnt);
	put_number(out, "mr_iov_limit", attr->mr_iov_limit);
	put_flags(out, "caps", FI_TYPE_CAPS, attr->caps);
	put_flags(out, "mode", FI_TYPE_MODE, attr->mode);
	put_key_size(out, attr->auth_key_size);
	put_number(out, "max_err_data", attr->max_err_data);
	put_number(out, "mr_cnt", attr->mr_cnt);
	put_hex(out, "tclass", attr->tclass);
	put_number(out, "max_ep_auth_key", attr->max_ep_auth_key);
	put_number(out, "max_group_id", attr->max_group_id);
	put_number(out, "max_cntr_value", attr->max_cntr_value);
	put_number(out, "max_err_cntr_value", attr->max_err_cntr_value);
	if (attr->caps & FI_XPU)
		put_number(out, "max_xpu_ctx_cnt", attr->max_xpu_ctx_cnt);
	end(out);
}

static void put_fabric_attr(struct out *out, const struct fi_fabric_attr *attr)
{
	if (!tostr_begin(out, "fi_fabric_attr", attr))
		return;
	put_string(out, "name", attr->name);
	put_string(out, "prov_name", attr->prov_name);
	put_version(out, "prov_version", attr->prov_version);
	put_version(out, "api_version", attr->api_version);
	end(out);
}

static void put_device_attr(struct out *out, const struct fi_device_attr *attr)
{
	if (!tostr_begin(out, "fi_device_attr", attr))
		return;
	put_string(out, "name", attr->name);
	put_string(out, "device_id", attr->device_id);
	put_string(out, "device_version", attr->device_version);
	put_string(out, "vendor_id", attr->vendor_id);
	put_string(out, "driver", attr->driver);
	put_string(out, "firmware", attr->firmware);
	end(out);
}

static void put_bus_attr(struct out *out, const struct fi_bus_attr *attr)
{
	if (!tostr_begin(out, "fi_bus_attr", attr))
		return;
	put_enum(out, "bus_type", FAB_TYPE_BUS, attr->bus_type);
	if (attr->bus_type == FI_BUS_PCI) {
		tostr_begin(out, "fi_pci_attr", &attr->attr.pci);
		put_number(out, "domain_id", attr->attr.pci.domain_id);
		put_number(out, "bus_id", attr->attr.pci.bus_id);
		put_number(out, "device_id", attr->attr.pci.device_id);
		put_number(out, "function_id", attr->attr.pci.function_id);
		end(out);
	}
	end(out);
}

static void put_link_attr(struct out *out, const struct fi_link_attr *attr)
{
	if (!tostr_begin(out, "fi_link_attr", attr))
		return;
	put_string(out, "address", attr->address);
	put_number(out, "mtu", attr->mtu);
	put_number(out, "speed", attr->speed);
	put_enum(out, "state", FAB_TYPE_LINK_STATE, attr->state);
	put_string(out, "network_type", attr->network_type);
	end(out);
}

static void put_nic(struct out *out, const struct fid_nic *nic)
{
	if (!nic) {
		put_pointer(out, "nic", NULL);
		return;
	}
	tostr_begin(out, "nic", nic);
	put_device_attr(out, nic->device_attr);
	put_bus_attr(out, nic->bus_attr);
	put_link_attr(out, nic->link_attr);
	end(out);
}

static void put_info(struct out *out, const void *data)
{
	const struct fi_info *info = data;

	tostr_begin(out, "fi_info", info);
	put_flags(out, "caps", FI_TYPE_CAPS, info->caps);
	put_flags(out, "mode", FI_TYPE_MODE, info->mode);
	put_enum(out, "addr_format", FI_TYPE_ADDR_FORMAT, info->addr_format);
	put_number(out, "src_addrlen", info->src_addrlen);
	put_number(out, "dest_addrlen", info->dest_addrlen);
	put_addr(out, "src_addr", info->addr_format, info->src_addr, info->src_addrlen);
	put_addr(out, "dest_addr", info->addr_format, info->dest_addr, info->dest_addrlen);
	put_pointer(out, "handle", info->handle);
	put_tx_attr(out, info->tx_attr);
	put_rx_attr(out, info->rx_attr);
	put_ep_attr(out, info->ep_attr);
	put_domain_attr(out, info->domain_attr);
	put_fabric_attr(out, info->fabric_attr);
	put_nic(out, info->nic);
	end(out);
}

/* An object with its own tostr() writes its own text, cut off at the end of the buffer. */
static void put_fid(struct out *out, const void *data)
{
	const struct fid *fid = data;
	struct fab_strbuf *sb = &out->sb;

	if (FI_CHECK_OP(fid->ops, struct fi_ops, tostr) && sb->size) {
		fid->ops->tostr(fid, sb->text, sb->size);
		sb->len = strnlen(sb->text, sb->size);
		return;
	}
	fab_strbuf_printf(sb, "fid: %p\n", data);
	put_enum(out, "fclass", FAB_TYPE_CLASS, fid->fclass);
}

static void put_av_attr(struct out *out, const void *data)
{
	const struct fi_av_attr *attr = data;

	tostr_begin(out, "fi_av_attr", attr);
	put_enum(out, "type", FI_TYPE_AV_TYPE, attr->type);
	put_number(out, "rx_ctx_bits", (uint64_t) attr->rx_ctx_bits);
	put_number(out, "count", attr->count);
	put_number(out, "ep_per_node", attr->ep_per_node);
	put_string(out, "name", attr->name);
	put_pointer(out, "map_addr", attr->map_addr);
	put_hex(out, "flags", attr->flags);
	end(out);
}

static void put_cq_attr(struct out *out, const void *data)
{
	const struct fi_cq_attr *attr = data;

	tostr_begin(out, "fi_cq_attr", attr);
	put_number(out, "size", attr->size);
	put_hex(out, "flags", attr->flags);
	put_enum(out, "format", FI_TYPE_CQ_FORMAT, attr->format);
	put_enum(out, "wait_obj", FI_TYPE_WAIT_OBJ, attr->wait_obj);
	put_number(out, "signaling_vector", (uint64_t) attr->signaling_vector);
	put_enum(out, "wait_cond", FI_TYPE_CQ_WAIT_COND, attr->wait_cond);
	put_pointer(out, "wait_set", attr->wait_set);
	if (attr->flags & FI_XPU)
		put_pointer(out, "xpu_ctx", attr->xpu_ctx);
	end(out);
}

/* This function and the next write the members that libfabric 1.17 had. The caller's structure may lack later members,
 * and its version is not known here. */
static void put_mr_attr(struct out *out, const void *data)
{
	const struct fi_mr_attr *attr = data;

	tostr_begin(out, "fi_mr_attr", attr);
	put_pointer(out, "mr_iov", attr->mr_iov);
	put_number(out, "iov_count", attr->iov_count);
	put_flags(out, "access", FI_TYPE_CAPS, attr->access);
	put_number(out, "offset", attr->offset);
	put_hex(out, "requested_key", attr->requested_key);
	put_pointer(out, "context", attr->context);
	put_key_size(out, attr->auth_key_size);
	put_enum(out, "iface", FI_TYPE_HMEM_IFACE, attr->iface);
	put_hex(out, "device", attr->device.reserved);
	end(out);
}

static void put_cq_err_entry(struct out *out, const void *data)
{
	const struct fi_cq_err_entry *entry = data;

	tostr_begin(out, "fi_cq_err_entry", entry);
	put_pointer(out, "op_context", entry->op_context);
	put_flags(out, "flags", FI_TYPE_CQ_EVENT_FLAGS, entry->flags);
	put_number(out, "len", entry->len);
	put_pointer(out, "buf", entry->buf);
	put_hex(out, "data", entry->data);
	put_hex(out, "tag", entry->tag);
	put_number(out, "olen", entry->olen);
	put_number(out, "err", (uint64_t) entry->err);
	put_string(out, "error", fi_strerror(entry->err));
	put_number(out, "prov_errno", (uint64_t) entry->prov_errno);
	put_pointer(out, "err_data", entry->err_data);
	put_number(out, "err_data_size", entry->err_data_size);
	end(out);
}

static void put_cntr_attr(struct out *out, const void *data)
{
	const struct fi_cntr_attr *attr = data;

	tostr_begin(out, "fi_cntr_attr", attr);
	put_string(out, "events", attr->events == FI_CNTR_EVENTS_COMP ? "FI_CNTR_EVENTS_COMP" :
		   attr->events == FI_CNTR_EVENTS_BYTES ? "FI_CNTR_EVENTS_BYTES" : "Unknown");
	put_enum(out, "wait_obj", FI_TYPE_WAIT_OBJ, attr->wait_obj);
	put_pointer(out, "wait_set", attr->wait_set);
	put_hex(out, "flags", attr->flags);
	if (attr->flags & FI_XPU)
		put_pointer(out, "xpu_ctx", attr->xpu_ctx);
	end(out);
}

static void put_library_version(struct out *out, const void *data)
{
	(void) data;
	fab_strbuf_printf(&out->sb, "%d.%d.%d (%s)", FI_MAJOR_VERSION, FI_MINOR_VERSION, FI_REVISION_VERSION,
			  WEFT_VERSION);
}

#define STRUCTURE(name) \
	static void put_##name##_type(struct out *out, const void *data) \
	{ \
		put_##name(out, data); \
	}
STRUCTURE(tx_attr)
STRUCTURE(rx_attr)
STRUCTURE(ep_attr)
STRUCTURE(domain_attr)
STRUCTURE(fabric_attr)

static void (*const put_structure[])(struct out *out, const void *data) = {
	[FI_TYPE_INFO] = put_info,
	[FI_TYPE_TX_ATTR] = put_tx_attr_type,
	[FI_TYPE_RX_ATTR] = put_rx_attr_type,
	[FI_TYPE_EP_ATTR] = put_ep_attr_type,
	[FI_TYPE_DOMAIN_ATTR] = put_domain_attr_type,
	[FI_TYPE_FABRIC_ATTR] = put_fabric_attr_type,
	[FI_TYPE_VERSION] = put_library_version,
	[FI_TYPE_FID] = put_fid,
	[FI_TYPE_AV_ATTR] = put_av_attr,
	[FI_TYPE_CQ_ATTR] = put_cq_attr,
	[FI_TYPE_MR_ATTR] = put_mr_attr,
	[FI_TYPE_CNTR_ATTR] = put_cntr_attr,
	[FI_TYPE_CQ_ERR_ENTRY] = put_cq_err_entry,
};

FAB_EXPORT char *fi_tostr_r(char *buf, size_t len, const void *data, enum fi_type datatype)
{
	unsigned type = (unsigned) datatype;
	struct out out = { .depth = 0 };

	if (!buf || !len || (!data && datatype != FI_TYPE_VERSION))
		return NULL;
	fab_strbuf_init(&out.sb, buf, len);
	if (type < fab_countof(put_structure) && put_structure[type])
		put_structure[type](&out, data);
	else if (type < FAB_TYPE_PRIVATE && fab_names_has(type))
		fab_names_put(&out.sb, type, fab_names_load(type, data));
	else
		fab_strbuf_puts(&out.sb, "Unknown type");
	return buf;
}

static pthread_key_t buf_key;
static pthread_once_t buf_once = PTHREAD_ONCE_INIT;
static bool buf_key_valid;

static void make_buf_key(void)
{
	buf_key_valid = !pthread_key_create(&buf_key, free);
}

/* The calling thread's buffer: overwritten by its next call, freed when it ends. NULL: no memory. */
static char *thread_buf(void)
{
	char *buf;

	pthread_once(&buf_once, make_buf_key);
	if (!buf_key_valid)
		return NULL;
	buf = pthread_getspecific(buf_key);
	if (buf)
		return buf;
	buf = malloc(BUF_LEN);
	if (buf && pthread_setspecific(buf_key, buf)) {
		free(buf);
		buf = NULL;
	}
	return buf;
}

FAB_EXPORT char *fi_tostr(const void *data, enum fi_type datatype)
{
	return fi_tostr_r(thread_buf(), BUF_LEN, data, datatype);
}

void fab_tostr_fini(void)
{
	if (!buf_key_valid)
		return;
	free(pthread_getspecific(buf_key));
	pthread_key_delete(buf_key);
	buf_key_valid = false;
}
