/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attributes in hints, one kind a test: values are set in a loop, and each answer is held against its hints. */
#include "getinfo_attrs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct fi_info *getinfo_hints(const struct unit *unit)
{
	struct fi_info *hints = unit_hints(unit, FI_MSG, unit->info->ep_attr->type);

	if (!hints || hints->fabric_attr->prov_name)
		return hints;
	hints->fabric_attr->prov_name = strdup(unit->info->fabric_attr->prov_name);
	return hints;
}

int getinfo_ask(struct unit *unit, struct fi_info *hints, getinfo_fits_fn *fits, unsigned *found)
{
	struct fi_info *list = NULL, *info;
	bool all = true;
	int ret;

	(void) unit;
	if (!hints)
		return unit_fail(-FI_ENOMEM, "hints");
	ret = fi_getinfo(GETINFO_VERSION, NULL, NULL, 0, hints, &list);
	for (info = list; info && all; info = info->next)
		all = fits(hints, info);
	fi_freeinfo(list);
	fi_freeinfo(hints);
	if (found && ret == -FI_ENODATA)
		return 0;
	if (ret)
		return unit_fail(ret, "fi_getinfo");
	if (found)
		(*found)++;
	return all ? 0 : unit_fail(0, "an entry that is not what was asked for");
}

int getinfo_ask_none(struct fi_info *hints)
{
	struct fi_info *list = NULL;
	int ret;

	if (!hints)
		return unit_fail(-FI_ENOMEM, "hints");
	ret = fi_getinfo(GETINFO_VERSION, NULL, NULL, 0, hints, &list);
	fi_freeinfo(list);
	fi_freeinfo(hints);
	return ret == -FI_ENODATA ? 0 : unit_fail(ret, "fi_getinfo, which must be -FI_ENODATA");
}

static int some(unsigned found)
{
	return found ? 0 : unit_fail(0, "no value at all is offered");
}

/* An attribute: where its value goes, and which answers are right. */
struct attr {
	void (*set)(struct fi_info *hints, uint64_t value);
	getinfo_fits_fn *fits;
};

/* Setters of what is one field. */
#define SETTER(name, field, type)								\
	static void name(struct fi_info *hints, uint64_t value)					\
	{											\
		hints->field = (type) value;							\
	}

SETTER(set_threading, domain_attr->threading, enum fi_threading)
SETTER(set_av_type, domain_attr->av_type, enum fi_av_type)
SETTER(set_management, domain_attr->resource_mgmt, enum fi_resource_mgmt)
SETTER(set_type, ep_attr->type, enum fi_ep_type)
SETTER(set_format, addr_format, uint32_t)
SETTER(set_caps, caps, uint64_t)

static int try_value(struct unit *unit, const struct attr *attr, uint64_t value, unsigned *found)
{
	struct fi_info *hints = getinfo_hints(unit);

	if (hints)
		attr->set(hints, value);
	return getinfo_ask(unit, hints, attr->fits, found);
}

/* Ask for each of the values; `any` wants one of them offered. */
static int try_values(struct unit *unit, const struct attr *attr, const uint64_t *values, size_t cnt, bool any)
{
	unsigned found = 0;
	size_t i;
	int ret = 0;

	for (i = 0; i < cnt && !ret; i++)
		ret = try_value(unit, attr, values[i], &found);
	return ret || !any ? ret : some(found);
}

/* The same for every subset of these bits, each with those of `base`. */
static int try_subsets(struct unit *unit, const struct attr *attr, const uint64_t *bits, size_t cnt, uint64_t base,
		       bool any)
{
	unsigned set, found = 0;
	uint64_t value;
	size_t i;
	int ret = 0;

	for (set = 0; set < 1u << cnt && !ret; set++) {
		value = base;
		for (i = 0; i < cnt; i++)
			value |= set & 1u << i ? bits[i] : 0;
		ret = try_value(unit, attr, value, &found);
	}
	return ret || !any ? ret : some(found);
}

/* ---- order ---- */

static const uint64_t orders[] = {
	FI_ORDER_RAR, FI_ORDER_RAW, FI_ORDER_RAS, FI_ORDER_WAR, FI_ORDER_WAW, FI_ORDER_WAS, FI_ORDER_SAR, FI_ORDER_SAW,
	FI_ORDER_SAS,
};

static bool has_order(const struct fi_info *hints, const struct fi_info *info)
{
	return (info->tx_attr->msg_order & hints->tx_attr->msg_order) == hints->tx_attr->msg_order &&
	       (info->rx_attr->msg_order & hints->rx_attr->msg_order) == hints->rx_attr->msg_order;
}

/* Each bit alone, and with the one before it; on one side or both. */
static int try_orders(struct unit *unit, bool tx, bool rx)
{
	struct fi_info *hints;
	unsigned found = 0;
	uint64_t order;
	size_t i;
	int ret = 0;

	for (i = 0; i < 2 * COUNT(orders) && !ret; i++) {
		order = orders[i / 2] | (i & 1 && i > 1 ? orders[i / 2 - 1] : 0);
		hints = getinfo_hints(unit);
		if (hints) {
			hints->tx_attr->msg_order = tx ? order : 0;
			hints->rx_attr->msg_order = rx ? order : 0;
		}
		ret = getinfo_ask(unit, hints, has_order, &found);
	}
	return ret;
}

static int tx_order(struct unit *unit)
{
	return try_orders(unit, true, false);
}

static int rx_order(struct unit *unit)
{
	return try_orders(unit, false, true);
}

static int both_orders(struct unit *unit)
{
	return try_orders(unit, true, true);
}

static const uint64_t size_orders[] = { FI_ORDER_RAW, FI_ORDER_WAR, FI_ORDER_WAW };

/* Where the hints and an entry have the size that goes with an order. */
static size_t *order_size(struct fi_info *info, uint64_t order)
{
	if (order == FI_ORDER_RAW)
		return &info->ep_attr->max_order_raw_size;
	return order == FI_ORDER_WAR ? &info->ep_attr->max_order_war_size : &info->ep_attr->max_order_waw_size;
}

static bool has_sizes(const struct fi_info *hints, const struct fi_info *info)
{
	return has_order(hints, info) && info->ep_attr->max_order_raw_size >= hints->ep_attr->max_order_raw_size &&
	       info->ep_attr->max_order_war_size >= hints->ep_attr->max_order_war_size &&
	       info->ep_attr->max_order_waw_size >= hints->ep_attr->max_order_waw_size;
}

/* Ask for an order up to what is offered, or one byte more, which nothing offers. */
static int try_size(struct unit *unit, uint64_t order, bool more)
{
	struct fi_info *hints = getinfo_hints(unit), *list = NULL;
	size_t offered = 0;
	unsigned found = 0;

	if (hints) {
		hints->caps |= FI_RMA;
		hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
	}
	if (hints && !fi_getinfo(GETINFO_VERSION, NULL, NULL, 0, hints, &list))
		offered = *order_size(list, order);
	fi_freeinfo(list);
	if (!offered || (more && offered == SIZE_MAX)) {
		fi_freeinfo(hints);
		return 0;
	}
	*order_size(hints, order) = offered + more;
	return more ? getinfo_ask_none(hints) : getinfo_ask(unit, hints, has_sizes, &found);
}

static int try_sizes(struct unit *unit, bool more)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < COUNT(size_orders) && !ret; i++)
		ret = try_size(unit, size_orders[i], more);
	return ret;
}

static int order_sizes(struct unit *unit)
{
	return try_sizes(unit, false);
}

static int order_sizes_too_large(struct unit *unit)
{
	return try_sizes(unit, true);
}

/* ---- the domain ---- */

static bool needs_no_more(const struct fi_info *hints, const struct fi_info *info)
{
	return !(info->domain_attr->mr_mode & ~hints->domain_attr->mr_mode);
}

static const uint64_t mr_mode_bits[] = {
	FI_MR_LOCAL, FI_MR_RAW, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MR_MMU_NOTIFY, FI_MR_RMA_EVENT,
	FI_MR_ENDPOINT,
};

static void set_mr_mode(struct fi_info *hints, uint64_t value)
{
	size_t i;

	for (i = 0; i < COUNT(mr_mode_bits); i++)
		hints->domain_attr->mr_mode &= ~(int) mr_mode_bits[i];
	hints->domain_attr->mr_mode |= (int) value;
}

static int mr_modes(struct unit *unit)
{
	static const struct attr attr = { set_mr_mode, needs_no_more };

	return try_subsets(unit, &attr, mr_mode_bits, COUNT(mr_mode_bits), 0, true);
}

/* Manual progress may be answered with automatic one, but not the other way round. */
static bool has_progress(const struct fi_info *hints, const struct fi_info *info)
{
	return hints->domain_attr->data_progress != FI_PROGRESS_AUTO ||
	       (info->domain_attr->data_progress == FI_PROGRESS_AUTO &&
		info->domain_attr->control_progress == FI_PROGRESS_AUTO);
}

static void set_progress(struct fi_info *hints, uint64_t value)
{
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = (enum fi_progress) value;
}

static int try_progress(struct unit *unit, enum fi_progress progress)
{
	static const struct attr attr = { set_progress, has_progress };
	unsigned found = 0;
	int ret = try_value(unit, &attr, progress, &found);

	return ret || found ? ret : unit_skip("it is not offered");
}

static int manual_progress(struct unit *unit)
{
	return try_progress(unit, FI_PROGRESS_MANUAL);
}

static int auto_progress(struct unit *unit)
{
	return try_progress(unit, FI_PROGRESS_AUTO);
}

/* FI_THREAD_SAFE serves whoever promises more. */
static bool has_threading(const struct fi_info *hints, const struct fi_info *info)
{
	return info->domain_attr->threading == hints->domain_attr->threading ||
	       info->domain_attr->threading == FI_THREAD_SAFE;
}

static int threading(struct unit *unit)
{
	static const struct attr attr = { set_threading, has_threading };
	static const uint64_t levels[] = {
		FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT,
	};

	return try_values(unit, &attr, levels, COUNT(levels), true);
}

static bool has_av_type(const struct fi_info *hints, const struct fi_info *info)
{
	return info->domain_attr->av_type == FI_AV_UNSPEC || info->domain_attr->av_type == hints->domain_attr->av_type;
}

static int av_types(struct unit *unit)
{
	static const struct attr attr = { set_av_type, has_av_type };
	static const uint64_t types[] = { FI_AV_MAP, FI_AV_TABLE };

	return try_values(unit, &attr, types, COUNT(types), false);
}

static bool has_management(const struct fi_info *hints, const struct fi_info *info)
{
	return hints->domain_attr->resource_mgmt != FI_RM_ENABLED || info->domain_attr->resource_mgmt == FI_RM_ENABLED;
}

static int resource_mgmt(struct unit *unit)
{
	static const struct attr attr = { set_management, has_management };
	static const uint64_t levels[] = { FI_RM_DISABLED, FI_RM_ENABLED };

	return try_values(unit, &attr, levels, COUNT(levels), true);
}

static bool has_data_size(const struct fi_info *hints, const struct fi_info *info)
{
	return info->domain_attr->cq_data_size >= hints->domain_attr->cq_data_size;
}

static void set_data_size(struct fi_info *hints, uint64_t value)
{
	hints->domain_attr->cq_data_size = value;
	hints->mode |= FI_RX_CQ_DATA;
}

static int cq_data_size(struct unit *unit)
{
	static const struct attr attr = { set_data_size, has_data_size };
	static const uint64_t sizes[] = { 0, 1, 2, 4, 8, 16 };

	return try_values(unit, &attr, sizes, COUNT(sizes), true);
}

/* ---- capabilities ---- */

static bool has_caps(const struct fi_info *hints, const struct fi_info *info)
{
	return (info->caps & hints->caps) == hints->caps;
}

static const struct attr caps_attr = { set_caps, has_caps };

static int primary_caps(struct unit *unit)
{
	static const uint64_t bits[] = { FI_MSG, FI_RMA, FI_TAGGED, FI_ATOMIC, FI_MULTICAST, FI_NAMED_RX_CTX,
					 FI_DIRECTED_RECV, FI_COLLECTIVE };

	return try_subsets(unit, &caps_attr, bits, COUNT(bits), 0, true);
}

static int secondary_caps(struct unit *unit)
{
	static const uint64_t bits[] = { FI_MULTI_RECV, FI_SOURCE, FI_RMA_EVENT, FI_SHARED_AV, FI_TRIGGER, FI_FENCE,
					 FI_SOURCE_ERR };

	return try_subsets(unit, &caps_attr, bits, COUNT(bits), FI_MSG, true);
}

static int modifiers(struct unit *unit)
{
	static const uint64_t bits[] = { FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };

	return try_subsets(unit, &caps_attr, bits, COUNT(bits), FI_MSG | FI_RMA, false);
}

static int comm_caps(struct unit *unit)
{
	static const uint64_t bits[] = { FI_LOCAL_COMM, FI_REMOTE_COMM };

	return try_subsets(unit, &caps_attr, bits, COUNT(bits), FI_MSG, true);
}

/* ---- endpoints and addresses ---- */

static bool has_type(const struct fi_info *hints, const struct fi_info *info)
{
	return info->ep_attr->type == hints->ep_attr->type;
}

static int ep_types(struct unit *unit)
{
	static const struct attr attr = { set_type, has_type };
	static const uint64_t types[] = { FI_EP_MSG, FI_EP_DGRAM, FI_EP_RDM };

	return try_values(unit, &attr, types, COUNT(types), true);
}

static bool has_format(const struct fi_info *hints, const struct fi_info *info)
{
	return info->addr_format == hints->addr_format ||
	       (hints->addr_format == FI_SOCKADDR &&
		(info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6));
}

static int addr_formats(struct unit *unit)
{
	static const struct attr attr = { set_format, has_format };
	static const uint64_t formats[] = {
		FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_SOCKADDR_IB, FI_ADDR_STR,
	};

	return try_values(unit, &attr, formats, COUNT(formats), false);
}

static bool has_room(const struct fi_info *hints, const struct fi_info *info)
{
	return info->tx_attr->inject_size >= hints->tx_attr->inject_size &&
	       info->tx_attr->size >= hints->tx_attr->size &&
	       info->tx_attr->iov_limit >= hints->tx_attr->iov_limit && info->rx_attr->size >= hints->rx_attr->size &&
	       info->rx_attr->iov_limit >= hints->rx_attr->iov_limit;
}

/* As much as is offered. */
static int limits(struct unit *unit)
{
	struct fi_info *hints = getinfo_hints(unit);

	if (hints) {
		hints->tx_attr->inject_size = unit->info->tx_attr->inject_size;
		hints->tx_attr->size = unit->info->tx_attr->size;
		hints->tx_attr->iov_limit = unit->info->tx_attr->iov_limit;
		hints->rx_attr->size = unit->info->rx_attr->size;
		hints->rx_attr->iov_limit = unit->info->rx_attr->iov_limit;
	}
	return getinfo_ask(unit, hints, has_room, NULL);
}

static int limits_too_large(struct unit *unit)
{
	struct fi_info *hints = getinfo_hints(unit);
	int ret;

	if (hints)
		hints->tx_attr->inject_size = SIZE_MAX;
	ret = getinfo_ask_none(hints);
	hints = ret ? NULL : getinfo_hints(unit);
	if (ret)
		return ret;
	if (hints)
		hints->tx_attr->iov_limit = SIZE_MAX;
	return getinfo_ask_none(hints);
}

const struct unit_test getinfo_attr_tests[] = {
	{ "transmit order", tx_order },
	{ "receive order", rx_order },
	{ "order of both", both_orders },
	{ "how far an order reaches", order_sizes },
	{ "an order that reaches further than it is offered", order_sizes_too_large },
	{ "256 registration modes", mr_modes },
	{ "manual progress", manual_progress },
	{ "automatic progress", auto_progress },
	{ "threading levels", threading },
	{ "address vector types", av_types },
	{ "resource management", resource_mgmt },
	{ "data in completions", cq_data_size },
	{ "primary capabilities", primary_caps },
	{ "secondary capabilities", secondary_caps },
	{ "modifiers of capabilities", modifiers },
	{ "FI_LOCAL_COMM and FI_REMOTE_COMM", comm_caps },
	{ "endpoint types", ep_types },
	{ "address formats", addr_formats },
	{ "limits as they are offered", limits },
	{ "limits that nothing offers", limits_too_large },
};
const size_t getinfo_attr_test_cnt = COUNT(getinfo_attr_tests);
