/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * struct fi_info as JSON. A table for each structure lists its fields and their formats; one function walks any of the
 * tables.
 */
#include "info_json.h"

#include <stddef.h>
#include <stdio.h>

#include "common.h"

enum field_kind {
	FIELD_SIZE,             /* size_t, in bytes if its name has "size", otherwise a count */
	FIELD_U32,
	FIELD_U64,
	FIELD_HEX64,
	FIELD_FLAGS32,          /* a flag word: names of its bits from libfabric */
	FIELD_FLAGS64,
	FIELD_ENUM,             /* 32 bits, name from libfabric */
	FIELD_NAMED,            /* 32 bits, name from our own list, since libfabric has none */
	FIELD_STRING,
	FIELD_VERSION,          /* major and minor in 32 bits */
};

struct field {
	const char *name;
	size_t offset;
	enum field_kind kind;
	enum fi_type type;              /* for FIELD_FLAGS* and FIELD_ENUM */
	const char *const *names;       /* for FIELD_NAMED; ends with NULL */
};

static const char *const resource_mgmt_names[] = { "FI_RM_UNSPEC", "FI_RM_DISABLED", "FI_RM_ENABLED", NULL };
static const char *const link_state_names[] = { "FI_LINK_UNKNOWN", "FI_LINK_DOWN", "FI_LINK_UP", NULL };
static const char *const bus_type_names[] = { "FI_BUS_UNKNOWN", "FI_BUS_PCI", NULL };

#define FIELD(strct, member, how, ...) \
	{ .name = #member, .offset = offsetof(struct strct, member), .kind = how, ##__VA_ARGS__ }
#define FIELDS_END { .name = NULL }

static const struct field info_fields[] = {
	FIELD(fi_info, caps, FIELD_FLAGS64, .type = FI_TYPE_CAPS),
	FIELD(fi_info, mode, FIELD_FLAGS64, .type = FI_TYPE_MODE),
	FIELD(fi_info, addr_format, FIELD_ENUM, .type = FI_TYPE_ADDR_FORMAT),
	FIELD(fi_info, src_addrlen, FIELD_SIZE),
	FIELD(fi_info, dest_addrlen, FIELD_SIZE),
	FIELDS_END
};

static const struct field tx_fields[] = {
	FIELD(fi_tx_attr, caps, FIELD_FLAGS64, .type = FI_TYPE_CAPS),
	FIELD(fi_tx_attr, mode, FIELD_FLAGS64, .type = FI_TYPE_MODE),
	FIELD(fi_tx_attr, op_flags, FIELD_FLAGS64, .type = FI_TYPE_OP_FLAGS),
	FIELD(fi_tx_attr, msg_order, FIELD_FLAGS64, .type = FI_TYPE_MSG_ORDER),
	FIELD(fi_tx_attr, comp_order, FIELD_FLAGS64, .type = FI_TYPE_MSG_ORDER),
	FIELD(fi_tx_attr, inject_size, FIELD_SIZE),
	FIELD(fi_tx_attr, size, FIELD_SIZE),
	FIELD(fi_tx_attr, iov_limit, FIELD_SIZE),
	FIELD(fi_tx_attr, rma_iov_limit, FIELD_SIZE),
	FIELD(fi_tx_attr, tclass, FIELD_U32),
	FIELDS_END
};

static const struct field rx_fields[] = {
	FIELD(fi_rx_attr, caps, FIELD_FLAGS64, .type = FI_TYPE_CAPS),
	FIELD(fi_rx_attr, mode, FIELD_FLAGS64, .type = FI_TYPE_MODE),
	FIELD(fi_rx_attr, op_flags, FIELD_FLAGS64, .type = FI_TYPE_OP_FLAGS),
	FIELD(fi_rx_attr, msg_order, FIELD_FLAGS64, .type = FI_TYPE_MSG_ORDER),
	FIELD(fi_rx_attr, comp_order, FIELD_FLAGS64, .type = FI_TYPE_MSG_ORDER),
	FIELD(fi_rx_attr, total_buffered_recv, FIELD_SIZE),
	FIELD(fi_rx_attr, size, FIELD_SIZE),
	FIELD(fi_rx_attr, iov_limit, FIELD_SIZE),
	FIELDS_END
};

static const struct field ep_fields[] = {
	FIELD(fi_ep_attr, type, FIELD_ENUM, .type = FI_TYPE_EP_TYPE),
	FIELD(fi_ep_attr, protocol, FIELD_ENUM, .type = FI_TYPE_PROTOCOL),
	FIELD(fi_ep_attr, protocol_version, FIELD_U32),
	FIELD(fi_ep_attr, max_msg_size, FIELD_SIZE),
	FIELD(fi_ep_attr, msg_prefix_size, FIELD_SIZE),
	FIELD(fi_ep_attr, max_order_raw_size, FIELD_SIZE),
	FIELD(fi_ep_attr, max_order_war_size, FIELD_SIZE),
	FIELD(fi_ep_attr, max_order_waw_size, FIELD_SIZE),
	FIELD(fi_ep_attr, mem_tag_format, FIELD_HEX64),
	FIELD(fi_ep_attr, tx_ctx_cnt, FIELD_SIZE),
	FIELD(fi_ep_attr, rx_ctx_cnt, FIELD_SIZE),
	FIELD(fi_ep_attr, auth_key_size, FIELD_SIZE),
	FIELDS_END
};

static const struct field domain_fields[] = {
	FIELD(fi_domain_attr, name, FIELD_STRING),
	FIELD(fi_domain_attr, threading, FIELD_ENUM, .type = FI_TYPE_THREADING),
	FIELD(fi_domain_attr, control_progress, FIELD_ENUM, .type = FI_TYPE_PROGRESS),
	FIELD(fi_domain_attr, data_progress, FIELD_ENUM, .type = FI_TYPE_PROGRESS),
	FIELD(fi_domain_attr, resource_mgmt, FIELD_NAMED, .names = resource_mgmt_names),
	FIELD(fi_domain_attr, av_type, FIELD_ENUM, .type = FI_TYPE_AV_TYPE),
	FIELD(fi_domain_attr, mr_mode, FIELD_FLAGS32, .type = FI_TYPE_MR_MODE),
	FIELD(fi_domain_attr, mr_key_size, FIELD_SIZE),
	FIELD(fi_domain_attr, cq_data_size, FIELD_SIZE),
	FIELD(fi_domain_attr, cq_cnt, FIELD_SIZE),
	FIELD(fi_domain_attr, ep_cnt, FIELD_SIZE),
	FIELD(fi_domain_attr, tx_ctx_cnt, FIELD_SIZE),
	FIELD(fi_domain_attr, rx_ctx_cnt, FIELD_SIZE),
	FIELD(fi_domain_attr, max_ep_tx_ctx, FIELD_SIZE),
	FIELD(fi_domain_attr, max_ep_rx_ctx, FIELD_SIZE),
	FIELD(fi_domain_attr, max_ep_stx_ctx, FIELD_SIZE),
	FIELD(fi_domain_attr, max_ep_srx_ctx, FIELD_SIZE),
	FIELD(fi_domain_attr, cntr_cnt, FIELD_SIZE),
	FIELD(fi_domain_attr, mr_iov_limit, FIELD_SIZE),
	FIELD(fi_domain_attr, caps, FIELD_FLAGS64, .type = FI_TYPE_CAPS),
	FIELD(fi_domain_attr, mode, FIELD_FLAGS64, .type = FI_TYPE_MODE),
	FIELD(fi_domain_attr, auth_key_size, FIELD_SIZE),
	FIELD(fi_domain_attr, max_err_data, FIELD_SIZE),
	FIELD(fi_domain_attr, mr_cnt, FIELD_SIZE),
	FIELD(fi_domain_attr, tclass, FIELD_U32),
#if UTIL_API_VERSION >= FI_VERSION(2, 6)
	FIELD(fi_domain_attr, max_ep_auth_key, FIELD_SIZE),
	FIELD(fi_domain_attr, max_group_id, FIELD_U32),
	FIELD(fi_domain_attr, max_cntr_value, FIELD_U64),
	FIELD(fi_domain_attr, max_err_cntr_value, FIELD_U64),
#endif
	FIELDS_END
};

static const struct field fabric_fields[] = {
	FIELD(fi_fabric_attr, name, FIELD_STRING),
	FIELD(fi_fabric_attr, prov_name, FIELD_STRING),
	FIELD(fi_fabric_attr, prov_version, FIELD_VERSION),
	FIELD(fi_fabric_attr, api_version, FIELD_VERSION),
	FIELDS_END
};

static const struct field device_fields[] = {
	FIELD(fi_device_attr, name, FIELD_STRING),
	FIELD(fi_device_attr, device_id, FIELD_STRING),
	FIELD(fi_device_attr, device_version, FIELD_STRING),
	FIELD(fi_device_attr, vendor_id, FIELD_STRING),
	FIELD(fi_device_attr, driver, FIELD_STRING),
	FIELD(fi_device_attr, firmware, FIELD_STRING),
	FIELDS_END
};

static const struct field bus_fields[] = {
	FIELD(fi_bus_attr, bus_type, FIELD_NAMED, .names = bus_type_names),
	FIELDS_END
};

static const struct field link_fields[] = {
	FIELD(fi_link_attr, address, FIELD_STRING),
	FIELD(fi_link_attr, mtu, FIELD_SIZE),
	FIELD(fi_link_attr, speed, FIELD_SIZE),
	FIELD(fi_link_attr, state, FIELD_NAMED, .names = link_state_names),
	FIELD(fi_link_attr, network_type, FIELD_STRING),
	FIELDS_END
};

const char *info_version(uint32_t version)
{
	static char text[24];

	snprintf(text, sizeof(text), "%u.%u", FI_MAJOR(version), FI_MINOR(version));
	return text;
}

static void add_flags(struct json *json, const char *key, uint64_t flags, enum fi_type type)
{
	const char *name;
	char hex[24];
	int shift;

	json_open(json, key, '[');
	for (shift = 0; shift < 64; shift++) {
		if (!(flags & 1ULL << shift))
			continue;
		name = util_flag_name(1ULL << shift, type);
		snprintf(hex, sizeof(hex), "0x%llx", 1ULL << shift);
		json_string(json, NULL, name ? name : hex);
	}
	json_close(json, ']');
}

/* The name of `value` in a list that ends with NULL; NULL if the list has no such name. */
static const char *name_at(const char *const *names, uint32_t value)
{
	while (*names && value--)
		names++;
	return *names;
}

static void add_field(struct json *json, const struct field *field, const void *data)
{
	char hex[24];

	switch (field->kind) {
	case FIELD_SIZE:
		json_number(json, field->name, *(const size_t *) data);
		break;
	case FIELD_U32:
		json_number(json, field->name, *(const uint32_t *) data);
		break;
	case FIELD_U64:
		json_number(json, field->name, *(const uint64_t *) data);
		break;
	case FIELD_HEX64:
		snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long) *(const uint64_t *) data);
		json_string(json, field->name, hex);
		break;
	case FIELD_FLAGS32:
		add_flags(json, field->name, *(const uint32_t *) data, field->type);
		break;
	case FIELD_FLAGS64:
		add_flags(json, field->name, *(const uint64_t *) data, field->type);
		break;
	case FIELD_ENUM:
		json_string(json, field->name, util_tostr(data, field->type));
		break;
	case FIELD_NAMED:
		json_string(json, field->name, name_at(field->names, *(const uint32_t *) data));
		break;
	case FIELD_STRING:
		json_string(json, field->name, *(const char *const *) data);
		break;
	case FIELD_VERSION:
		json_string(json, field->name, info_version(*(const uint32_t *) data));
		break;
	}
}

static void add_fields(struct json *json, const struct field *fields, const void *data)
{
	for (; fields->name; fields++)
		add_field(json, fields, (const char *) data + fields->offset);
}

static void add_struct(struct json *json, const char *key, const struct field *fields, const void *data)
{
	if (!data) {
		json_string(json, key, NULL);
		return;
	}
	json_open(json, key, '{');
	add_fields(json, fields, data);
	json_close(json, '}');
}

static void add_address(struct json *json, const char *key, uint32_t format, const void *addr, size_t len)
{
	json_string(json, key, addr ? util_addr_text(format, addr, len) : NULL);
}

/* Add a bus with the device's address on it, in the form of lspci(8). */
static void add_bus(struct json *json, const struct fi_bus_attr *bus)
{
	char address[32];

	if (!bus) {
		json_string(json, "bus_attr", NULL);
		return;
	}
	json_open(json, "bus_attr", '{');
	add_fields(json, bus_fields, bus);
	if (bus->bus_type == FI_BUS_PCI) {
		snprintf(address, sizeof(address), "%04x:%02x:%02x.%x", bus->attr.pci.domain_id, bus->attr.pci.bus_id,
			 bus->attr.pci.device_id, bus->attr.pci.function_id);
		json_string(json, "pci", address);
	}
	json_close(json, '}');
}

static void add_nic(struct json *json, const struct fid_nic *nic)
{
	if (!nic) {
		json_string(json, "nic", NULL);
		return;
	}
	json_open(json, "nic", '{');
	add_struct(json, "device_attr", device_fields, nic->device_attr);
	add_bus(json, nic->bus_attr);
	add_struct(json, "link_attr", link_fields, nic->link_attr);
	json_close(json, '}');
}

void info_json(struct json *json, const struct fi_info *info)
{
	json_open(json, NULL, '{');
	add_fields(json, info_fields, info);
	add_address(json, "src_addr", info->addr_format, info->src_addr, info->src_addrlen);
	add_address(json, "dest_addr", info->addr_format, info->dest_addr, info->dest_addrlen);
	add_struct(json, "tx_attr", tx_fields, info->tx_attr);
	add_struct(json, "rx_attr", rx_fields, info->rx_attr);
	add_struct(json, "ep_attr", ep_fields, info->ep_attr);
	add_struct(json, "domain_attr", domain_fields, info->domain_attr);
	add_struct(json, "fabric_attr", fabric_fields, info->fabric_attr);
	add_nic(json, info->nic);
	json_close(json, '}');
}
