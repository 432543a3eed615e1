/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Attributes in hints, one kind a test: values are set in a loop, and each answer is held against its hints. */
#include "getinfo_attrs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#define VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)
#define SERVICE "4711"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Whether an entry is what the hints ask for. */
typedef bool fits_fn(const struct fi_info *hints, const struct fi_info *info);

/* Hints for the kind of endpoint that the program has opened. NULL without memory. */
static struct fi_info *new_hints(const struct unit *unit)
{
	struct fi_info *hints = unit_hints(unit, FI_MSG, unit->info->ep_attr->type);

	if (!hints || hints->fabric_attr->prov_name)
		return hints;
	hints->fabric_attr->prov_name = strdup(unit->info->fabric_attr->prov_name);
	return hints;
}

/* Ask with hints, which are freed: every answer fits. `found` may be NULL, or counts those that found something;
 * without it there must be an answer. */
static int ask(struct unit *unit, struct fi_info *hints, fits_fn *fits, unsigned *found)
{
	struct fi_info *list = NULL, *info;
	bool all = true;
	int ret;

	(void) unit;
	if (!hints)
		return unit_fail(-FI_ENOMEM, "hints");
	ret = fi_getinfo(VERSION, NULL, NULL, 0, hints, &list);
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

static int ask_none(struct unit *unit, struct fi_info *hints)
{
	struct fi_info *list = NULL;
	int ret;

	(void) unit;
	if (!hints)
		return unit_fail(-FI_ENOMEM, "hints");
	ret = fi_getinfo(VERSION, NULL, NULL, 0, hints, &list);
	fi_freeinfo(list);
	fi_freeinfo(hints);
	return ret == -FI_ENODATA ? 0 : unit_fail(ret, "fi_getinfo, which must be -FI_ENODATA");
}

static int some(unsigned found)
{
	return found ? 0 : unit_fail(0, "no value at all is offered");
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
		hints = new_hints(unit);
		if (hints) {
			hints->tx_attr->msg_order = tx ? order : 0;
			hints->rx_attr->msg_order = rx ? order : 0;
		}
		ret = ask(unit, hints, has_order, &found);
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
	struct fi_info *hints = new_hints(unit), *list = NULL;
	size_t offered = 0;
	unsigned found = 0;

	if (hints) {
		hints->caps |= FI_RMA;
		hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
	}
	if (hints && !fi_getinfo(VERSION, NULL, NULL, 0, hints, &list))
		offered = *order_size(list, order);
	fi_freeinfo(list);
	if (!offered || (more && offered == SIZE_MAX)) {
		fi_freeinfo(hints);
		return 0;
	}
	*order_size(hints, order) = offered + more;
	return more ? ask_none(unit, hints) : ask(unit, hints, has_sizes, &found);
}

static int order_sizes(struct unit *unit)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < COUNT(size_orders) && !ret; i++)
		ret = try_size(unit, size_orders[i], false);
	return ret;
}

static int order_sizes_too_large(struct unit *unit)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < COUNT(size_orders) && !ret; i++)
		ret = try_size(unit, size_orders[i], true);
	return ret;
}

/* ---- the domain ---- */

static bool needs_no_more(const struct fi_info *hints, const struct fi_info *info)
{
	return !(info->domain_attr->mr_mode & ~hints->domain_attr->mr_mode);
}

static int mr_modes(struct unit *unit)
{
	static const int bits[] = {
		FI_MR_LOCAL, FI_MR_RAW, FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MR_MMU_NOTIFY, FI_MR_RMA_EVENT,
		FI_MR_ENDPOINT,
	};
	struct fi_info *hints;
	unsigned set, found = 0;
	size_t i;
	int ret = 0;

	for (set = 0; set < 1u << COUNT(bits) && !ret; set++) {
		hints = new_hints(unit);
		for (i = 0; hints && i < COUNT(bits); i++) {
			hints->domain_attr->mr_mode &= ~bits[i];
			hints->domain_attr->mr_mode |= set & 1u << i ? bits[i] : 0;
		}
		ret = ask(unit, hints, needs_no_more, &found);
	}
	return ret ? ret : some(found);
}

/* Manual progress may be answered with automatic one, but not the other way round. */
static bool has_progress(const struct fi_info *hints, const struct fi_info *info)
{
	return hints->domain_attr->data_progress != FI_PROGRESS_AUTO ||
	       (info->domain_attr->data_progress == FI_PROGRESS_AUTO && info->domain_attr->control_progress == FI_PROGRESS_AUTO);
}

static int try_progress(struct unit *unit, enum fi_progress progress)
{
	struct fi_info *hints = new_hints(unit);
	unsigned found = 0;
	int ret;

	if (hints)
		hints->domain_attr->data_progress = hints->domain_attr->control_progress = progress;
	ret = ask(unit, hints, has_progress, &found);
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
	static const enum fi_threading levels[] = {
		FI_THREAD_SAFE, FI_THREAD_FID, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT,
	};
	struct fi_info *hints;
	unsigned found = 0;
	size_t i;
	int ret = 0;

	for (i = 0; i < COUNT(levels) && !ret; i++) {
		hints = new_hints(unit);
		if (hints)
			hints->domain_attr->threading = levels[i];
		ret = ask(unit, hints, has_threading, &found);
	}
	return ret ? ret : some(found);
}

static bool has_av_type(const struct fi_info *hints, const struct fi_info *info)
{
	return info->domain_attr->av_type == FI_AV_UNSPEC || info->domain_attr->av_type == hints->domain_attr->av_type;
}

static int av_types(struct unit *unit)
{
	static const enum fi_av_type types[] = { FI_AV_MAP, FI_AV_TABLE };
	struct fi_info *hints;
	unsigned found = 0;
	size_t i;
	int ret = 0;

	for (i = 0; i < COUNT(types) && !ret; i++) {
		hints = new_hints(unit);
		if (hints)
			hints->domain_attr->av_type = types[i];
		ret = ask(unit, hints, has_av_type, &found);
	}
	return ret;
}

static bool has_management(const struct fi_info *hints, const struct fi_info *info)
{
	return hints->domain_attr->resource_mgmt != FI_RM_ENABLED || info->domain_attr->resource_mgmt == FI_RM_ENABLED;
}

static int resource_mgmt(struct unit *unit)
{
	static const enum fi_resource_mgmt levels[] = { FI_RM_DISABLED, FI_RM_ENABLED };
	struct fi_info *hints;
	unsigned found = 0;
	size_t i;
	int ret = 0;

	for (i = 0; i < COUNT(levels) && !ret; i++) {
		hints = new_hints(unit);
		if (hints)
			hints->domain_attr->resource_mgmt = levels[i];
		ret = ask(unit, hints, has_management, &found);
	}
	return ret ? ret : some(found);
}

static bool has_data_size(const struct fi_info *hints, const struct fi_info *info)
{
	return info->domain_attr->cq_data_size >= hints->domain_attr->cq_data_size;
}

static int cq_data_size(struct unit *unit)
{
	struct fi_info *hints;
	unsigned found = 0;
	size_t size;
	int ret = 0;

	for (size = 0; size <= 16 && !ret; size = size ? 2 * size : 1) {
		hints = new_hints(unit);
		if (hints) {
			hints->domain_attr->cq_data_size = size;
			hints->mode |= FI_RX_CQ_DATA;
		}
		ret = ask(unit, hints, has_data_size, &found);
	}
	return ret ? ret : some(found);
}

/* ---- capabilities ---- */

static bool has_caps(const struct fi_info *hints, const struct fi_info *info)
{
	return (info->caps & hints->caps) == hints->caps;
}

/* Every subset of these. */
static int try_caps(struct unit *unit, const uint64_t *bits, size_t cnt, uint64_t with, unsigned *found)
{
	struct fi_info *hints;
	unsigned set;
	size_t i;
	int ret = 0;

	for (set = 0; set < 1u << cnt && !ret; set++) {
		hints = new_hints(unit);
		if (hints)
			hints->caps = with;
		for (i = 0; hints && i < cnt; i++)
			hints->caps |= set & 1u << i ? bits[i] : 0;
		ret = ask(unit, hints, has_caps, found);
	}
	return ret;
}

static int primary_caps(struct unit *unit)
{
	static const uint64_t bits[] = { FI_MSG, FI_RMA, FI_TAGGED, FI_ATOMIC, FI_MULTICAST, FI_NAMED_RX_CTX, FI_DIRECTED_RECV,
					 FI_COLLECTIVE };
	unsigned found = 0;
	int ret = try_caps(unit, bits, COUNT(bits), 0, &found);

	return ret ? ret : some(found);
}

static int secondary_caps(struct unit *unit)
{
	static const uint64_t bits[] = { FI_MULTI_RECV, FI_SOURCE, FI_RMA_EVENT, FI_SHARED_AV, FI_TRIGGER, FI_FENCE,
					 FI_SOURCE_ERR };
	unsigned found = 0;
	int ret = try_caps(unit, bits, COUNT(bits), FI_MSG, &found);

	return ret ? ret : some(found);
}

static int modifiers(struct unit *unit)
{
	static const uint64_t bits[] = { FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	unsigned found = 0;

	return try_caps(unit, bits, COUNT(bits), FI_MSG | FI_RMA, &found);
}

static int comm_caps(struct unit *unit)
{
	static const uint64_t bits[] = { FI_LOCAL_COMM, FI_REMOTE_COMM };
	unsigned found = 0;
	int ret = try_caps(unit, bits, COUNT(bits), FI_MSG, &found);

	return ret ? ret : some(found);
}

/* ---- endpoints and addresses ---- */

static bool has_type(const struct fi_info *hints, const struct fi_info *info)
{
	return info->ep_attr->type == hints->ep_attr->type;
}

static int ep_types(struct unit *unit)
{
	static const enum fi_ep_type types[] = { FI_EP_MSG, FI_EP_DGRAM, FI_EP_RDM };
	struct fi_info *hints;
	unsigned found = 0;
	size_t i;
	int ret = 0;

	for (i = 0; i < COUNT(types) && !ret; i++) {
		hints = new_hints(unit);
		if (hints)
			hints->ep_attr->type = types[i];
		ret = ask(unit, hints, has_type, &found);
	}
	return ret ? ret : some(found);
}

static bool has_format(const struct fi_info *hints, const struct fi_info *info)
{
	return info->addr_format == hints->addr_format ||
	       (hints->addr_format == FI_SOCKADDR && (info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6));
}

static int addr_formats(struct unit *unit)
{
	static const uint32_t formats[] = { FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_SOCKADDR_IB, FI_ADDR_STR };
	struct fi_info *hints;
	unsigned found = 0;
	size_t i;
	int ret = 0;

	for (i = 0; i < COUNT(formats) && !ret; i++) {
		hints = new_hints(unit);
		if (hints)
			hints->addr_format = formats[i];
		ret = ask(unit, hints, has_format, &found);
	}
	return ret;
}

static bool has_room(const struct fi_info *hints, const struct fi_info *info)
{
	return info->tx_attr->inject_size >= hints->tx_attr->inject_size && info->tx_attr->size >= hints->tx_attr->size &&
	       info->tx_attr->iov_limit >= hints->tx_attr->iov_limit && info->rx_attr->size >= hints->rx_attr->size &&
	       info->rx_attr->iov_limit >= hints->rx_attr->iov_limit;
}

/* As much as is offered. */
static int limits(struct unit *unit)
{
	struct fi_info *hints = new_hints(unit);

	if (hints) {
		hints->tx_attr->inject_size = unit->info->tx_attr->inject_size;
		hints->tx_attr->size = unit->info->tx_attr->size;
		hints->tx_attr->iov_limit = unit->info->tx_attr->iov_limit;
		hints->rx_attr->size = unit->info->rx_attr->size;
		hints->rx_attr->iov_limit = unit->info->rx_attr->iov_limit;
	}
	return ask(unit, hints, has_room, NULL);
}

static int limits_too_large(struct unit *unit)
{
	struct fi_info *hints = new_hints(unit);
	int ret;

	if (hints)
		hints->tx_attr->inject_size = SIZE_MAX;
	ret = ask_none(unit, hints);
	hints = ret ? NULL : new_hints(unit);
	if (ret)
		return ret;
	if (hints)
		hints->tx_attr->iov_limit = SIZE_MAX;
	return ask_none(unit, hints);
}

/* ---- names and versions ---- */

static bool anything(const struct fi_info *hints, const struct fi_info *info)
{
	(void) hints;
	return info->fabric_attr && info->domain_attr && info->ep_attr && info->tx_attr && info->rx_attr;
}

static int wrong_fabric(struct unit *unit)
{
	struct fi_info *hints = new_hints(unit);

	if (hints) {
		free(hints->fabric_attr->name);
		hints->fabric_attr->name = strdup("no-such-fabric");
	}
	return ask_none(unit, hints);
}

static int old_versions(struct unit *unit)
{
	struct fi_info *list = NULL, *info;
	unsigned minor;
	int ret = 0;

	(void) unit;
	for (minor = 0; minor <= 17 && !ret; minor++) {
		ret = fi_getinfo(FI_VERSION(1, minor), NULL, NULL, 0, NULL, &list);
		if (ret == -FI_ENODATA && minor < 5)
			ret = 0;
		for (info = list; info && !ret; info = info->next) {
			if (info->fabric_attr->api_version != FI_VERSION(1, minor))
				ret = unit_fail(info->fabric_attr->api_version, "api_version of an entry");
		}
		fi_freeinfo(list);
		list = NULL;
	}
	return ret < 0 ? unit_fail(ret, "fi_getinfo of an old version") : ret;
}

/* The source, or the destination, in the hints. */
static int addr_in_hints(struct unit *unit, bool source)
{
	struct fi_info *hints = new_hints(unit);
	size_t len = unit->info->src_addrlen;
	void *addr;

	if (!unit->info->src_addr || !hints) {
		fi_freeinfo(hints);
		return unit_skip("the interface has no address");
	}
	addr = malloc(len);
	if (addr)
		memcpy(addr, unit->info->src_addr, len);
	hints->addr_format = unit->info->addr_format;
	*(source ? &hints->src_addr : &hints->dest_addr) = addr;
	*(source ? &hints->src_addrlen : &hints->dest_addrlen) = addr ? len : 0;
	return ask(unit, hints, anything, NULL);
}

static int src_in_hints(struct unit *unit)
{
	return addr_in_hints(unit, true);
}

static int dest_in_hints(struct unit *unit)
{
	return addr_in_hints(unit, false);
}

static int numeric_host(struct unit *unit)
{
	struct fi_info *list = NULL;
	struct fi_info *hints = new_hints(unit);
	int ret, bad;

	if (!hints)
		return unit_fail(-FI_ENOMEM, "hints");
	ret = fi_getinfo(VERSION, "127.0.0.1", SERVICE, FI_SOURCE | FI_NUMERICHOST, hints, &list);
	fi_freeinfo(list);
	list = NULL;
	bad = fi_getinfo(VERSION, "localhost", SERVICE, FI_SOURCE | FI_NUMERICHOST, hints, &list);
	fi_freeinfo(list);
	fi_freeinfo(hints);
	if (ret && ret != -FI_ENODATA)
		return unit_fail(ret, "fi_getinfo of a numeric host");
	return bad ? 0 : unit_fail(bad, "fi_getinfo of a name with FI_NUMERICHOST");
}

static int providers_only(struct unit *unit)
{
	struct fi_info *list = NULL, *info;
	int ret = fi_getinfo(VERSION, NULL, NULL, FI_PROV_ATTR_ONLY, NULL, &list);
	bool named = true;

	(void) unit;
	for (info = list; info; info = info->next)
		named = named && info->fabric_attr && info->fabric_attr->prov_name && info->fabric_attr->prov_version;
	fi_freeinfo(list);
	if (ret)
		return unit_fail(ret, "fi_getinfo");
	return named ? 0 : unit_fail(0, "a provider without name or version");
}

const struct unit_test getinfo_attr_tests[] = {
	{ "FI_NUMERICHOST: no names", numeric_host },
	{ "FI_PROV_ATTR_ONLY: providers and their versions", providers_only },
	{ "the source in the hints", src_in_hints },
	{ "the destination in the hints", dest_in_hints },
	{ "versions 1.0 to 1.17 of the interface", old_versions },
	{ "a fabric that does not exist", wrong_fabric },
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
