/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(): an FI_EP_RDM entry for each FI_EP_MSG entry of the supported providers below. An inner fi_getinfo()
 * finds these entries; the core logs nothing for it.
 */
#include "rxm/rxm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/hints/hints.h"

#define TX_CAPS		(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_TRIGGER | \
			 FI_COLLECTIVE)
#define RX_CAPS		(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | \
			 FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV | FI_TRIGGER | FI_COLLECTIVE)
#define SECONDARY_CAPS	FI_MULTI_RECV
/* The target processes messages and atomics in order. A remote access by the provider below may complete before an
 * atomic that was issued earlier. So order is kept within each of these two groups only. */
#define MSG_ORDER	(FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | \
			 FI_ORDER_ATOMIC_WAW)
#define BELOW_ORDER	(FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW | FI_ORDER_SAW)
#define OP_FLAGS	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
			 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_MORE)

/* The supported providers below, in the order of the result, and the FI_MR_* bits that an application must accept with
 * each. */
static const struct {
	const char *name;
	uint64_t mr_mode;
	bool tclasses;			/* marks packets with traffic classes */
} cores[] = {
	{ "verbs", MR_BASIC_BITS, true },
	{ "tcp", 0, true },
};

static uint64_t mr_mode_of(const char *below)
{
	for (size_t i = 0; i < fab_countof(cores); i++) {
		if (!strcmp(cores[i].name, below))
			return cores[i].mr_mode;
	}
	return MR_BASIC_BITS;
}

static bool has_tclasses(const char *below)
{
	for (size_t i = 0; i < fab_countof(cores); i++) {
		if (!strcmp(cores[i].name, below))
			return cores[i].tclasses;
	}
	return false;
}

struct fab_offer rxm_offer_over(const char *below)
{
	return (struct fab_offer) {
		.secondary_caps = SECONDARY_CAPS,
		.mr_mode_need = mr_mode_of(below),
		.mr_mode_told = mr_mode_of(below) ? FI_MR_LOCAL : 0,
		.mr_basic = true,
		.tclasses = has_tclasses(below),
		.tx_size = rxm_params.tx_size,
		.rx_size = rxm_params.rx_size,
	};
}

int rxm_info_raise(struct fi_info *info)
{
	const struct fi_tx_attr *below = info->tx_attr;
	uint64_t order = MSG_ORDER | (below->msg_order & BELOW_ORDER);
	uint64_t comm = info->domain_attr->caps & (FI_LOCAL_COMM | FI_REMOTE_COMM), hmem = info->caps & FI_HMEM;
	char *name;

	if (asprintf(&name, "%s;" RXM_LAYER, info->fabric_attr->prov_name) < 0)
		return -FI_ENOMEM;
	info->domain_attr->mr_mode = mr_mode_of(info->fabric_attr->prov_name);
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = name;
	info->fabric_attr->prov_version = rxm_prov.version;
	*info->tx_attr = (struct fi_tx_attr) {
		.caps = TX_CAPS, .op_flags = OP_FLAGS, .msg_order = order, .comp_order = FI_ORDER_NONE,
		.inject_size = RXM_INJECT_SIZE, .size = RXM_SIZE_MAX,
		.iov_limit = fab_min(below->iov_limit, (size_t) RXM_IOV_LIMIT),
		.rma_iov_limit = fab_min(below->rma_iov_limit, (size_t) RXM_IOV_LIMIT),
	};
	*info->rx_attr = (struct fi_rx_attr) {
		.caps = RX_CAPS, .op_flags = FI_COMPLETION | FI_MULTI_RECV | FI_MORE, .msg_order = order,
		.comp_order = FI_ORDER_NONE, .size = RXM_SIZE_MAX, .iov_limit = RXM_IOV_LIMIT,
	};
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->protocol = FI_PROTO_RXM;
	info->ep_attr->protocol_version = RXM_CM_VERSION;
	info->ep_attr->mem_tag_format = 0xaaaaaaaaaaaaaaaaULL;	/* 64 bits, no fields */
	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1;
	info->domain_attr->threading = FI_THREAD_SAFE;
	info->domain_attr->control_progress = info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	info->domain_attr->resource_mgmt = FI_RM_ENABLED;
	info->domain_attr->av_type = FI_AV_UNSPEC;
	info->domain_attr->cq_data_size = sizeof(uint64_t);
	info->domain_attr->max_ep_tx_ctx = info->domain_attr->max_ep_rx_ctx = 1;
	info->domain_attr->max_ep_stx_ctx = info->domain_attr->max_ep_srx_ctx = 0;
	info->domain_attr->max_ep_auth_key = 0;
	info->domain_attr->max_err_data = 0;
	info->domain_attr->caps = comm;
	info->domain_attr->mode = 0;
	info->mode = 0;
	info->caps = TX_CAPS | RX_CAPS | comm | hmem;
	info->tx_attr->caps |= hmem;
	info->rx_attr->caps |= hmem;
	return 0;
}

static char *copy_name(const char *name)
{
	return name ? strdup(name) : NULL;
}

/* Copy an address of hints as it is: the provider below refuses one whose length is 0. */
static int copy_addr(void **to, size_t *to_len, const void *from, size_t len)
{
	if (!from)
		return 0;
	*to = malloc(fab_max(len, (size_t) 1));
	if (!*to)
		return -FI_ENOMEM;
	memcpy(*to, from, len);
	*to_len = len;
	return 0;
}

void rxm_ask_hmem(struct fi_info *hints)
{
	hints->caps |= FI_HMEM;
	hints->domain_attr->mr_mode |= FI_MR_HMEM;
}

void rxm_ask_order(struct fi_info *hints, const struct fi_info *info)
{
	uint64_t tx = info->tx_attr ? info->tx_attr->msg_order : 0, rx = info->rx_attr ? info->rx_attr->msg_order : 0;

	hints->tx_attr->msg_order = hints->rx_attr->msg_order = (tx | rx) & BELOW_ORDER;
}

struct fi_info *rxm_below_hints(const char *below, const struct fi_info *hints)
{
	struct fi_info *info = fi_allocinfo();
	bool bad = false;

	if (!info)
		return NULL;
	info->ep_attr->type = FI_EP_MSG;
	info->caps = FI_MSG | FI_RMA;
	info->mode = FI_CONTEXT | FI_CONTEXT2;
	info->domain_attr->mr_mode = mr_mode_of(below) | (mr_mode_of(below) ? FI_MR_LOCAL : 0);
	info->fabric_attr->prov_name = strdup(below);
	bad = !info->fabric_attr->prov_name;
	if (hints && (hints->caps & FI_HMEM))
		rxm_ask_hmem(info);
	if (hints) {
		rxm_ask_order(info, hints);
		info->addr_format = hints->addr_format;
		bad |= copy_addr(&info->src_addr, &info->src_addrlen, hints->src_addr, hints->src_addrlen) ||
		       copy_addr(&info->dest_addr, &info->dest_addrlen, hints->dest_addr, hints->dest_addrlen);
	}
	if (hints && hints->domain_attr)
		info->domain_attr->name = copy_name(hints->domain_attr->name);
	if (hints && hints->fabric_attr)
		info->fabric_attr->name = copy_name(hints->fabric_attr->name);
	if (!bad)
		return info;
	fi_freeinfo(info);
	return NULL;
}

/* True if an entry of the provider below can be used, given the entries in `before`. Not if it is another layer or
 * another endpoint type. Without a domain name in the hints, only the first protocol of each fabric is used: a program
 * that spreads its processes over all entries, as Open MPI does, would otherwise use RC in some and XRC in others,
 * which cannot connect to each other. */
static bool info_suits(const struct fi_info *info, const char *below, const struct fi_info *hints,
		  const struct fi_info *before)
{
	if (strcmp(info->fabric_attr->prov_name, below) || info->ep_attr->type != FI_EP_MSG)
		return false;
	if (hints && hints->domain_attr && hints->domain_attr->name)
		return true;
	while (before && strcmp(before->fabric_attr->name, info->fabric_attr->name))
		before = before->next;
	return !before || before->ep_attr->protocol == info->ep_attr->protocol;
}

/* True if the entries have more than one protocol. */
static bool has_protocols(const struct fi_info *list)
{
	const struct fi_info *info = list;

	while (info && info->ep_attr->protocol == list->ep_attr->protocol)
		info = info->next;
	return info;
}

/* Remove the entries that cannot be used. */
static void sift(struct fi_info **list, const char *below, const struct fi_info *hints)
{
	struct fi_info *rest = *list, **end = list, *info;
	bool choose = has_protocols(rest);

	*list = NULL;
	while ((info = rest)) {
		rest = info->next;
		info->next = NULL;
		if (info_suits(info, below, hints, choose ? *list : NULL)) {
			*end = info;
			end = &info->next;
		} else {
			fi_freeinfo(info);
		}
	}
}

/* Append entries made from those of the provider below to a list. 0, also if there are none; or -FI_ENOMEM. */
static int add_over(const char *below, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info ***end, size_t *cnt)
{
	struct fi_info *ask = rxm_below_hints(below, hints), *list, *info;
	int ret;

	if (!ask)
		return -FI_ENOMEM;
	ret = fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), node, service, flags, ask, &list);
	fi_freeinfo(ask);
	if (ret)
		return ret == -FI_ENOMEM ? ret : 0;
	sift(&list, below, hints);
	while ((info = list)) {
		list = info->next;
		info->next = NULL;
		**end = info;
		*end = &info->next;
		(*cnt)++;
		ret = rxm_info_raise(info);
		if (ret) {
			fi_freeinfo(list);
			return ret;
		}
	}
	return 0;
}

static int match(uint32_t version, const struct fi_info *hints, const struct fi_info *list, size_t cnt,
		 struct fi_info **info)
{
	struct fab_offer *offers = calloc(cnt, sizeof(*offers));
	char below[RXM_BELOW_NAME_MAX];
	size_t i = 0;
	int ret;

	if (!offers)
		return -FI_ENOMEM;
	for (; list; list = list->next, i++) {
		const char *name = list->fabric_attr->prov_name;

		snprintf(below, sizeof(below), "%.*s", (int) strcspn(name, ";"), name);
		offers[i] = rxm_offer_over(below);
		offers[i].secondary_caps &= list->caps;
		offers[i].info = list;
	}
	ret = fab_hints_match(&rxm_prov, version, hints, offers, cnt, info);
	free(offers);
	return ret;
}

/* True if the hints may ask for rxm over this provider. The core checks names in the end; this only saves calls. */
static bool may_be_meant(const struct fi_info *hints, const char *below)
{
	const char *name = hints && hints->fabric_attr ? hints->fabric_attr->prov_name : NULL;

	return !name || !*name || strchr(name, '^') || strcasestr(name, below) ||
	       (strcasestr(name, RXM_LAYER) && !strchr(name, ';'));
}

static int refuse_type(uint32_t type)
{
	char text[32];

	fab_why_report(&rxm_prov, FAB_WHY_WHICH, "FI_EP_RDM", "ep_attr->type",
		       fi_tostr_r(text, sizeof(text), &type, FI_TYPE_EP_TYPE), "FI_EP_RDM");
	return -FI_ENODATA;
}

/* Report that no requested provider below has an entry that can be used. */
static int refuse_below(const struct fi_info *hints)
{
	for (size_t i = 0; i < fab_countof(cores); i++) {
		if (may_be_meant(hints, cores[i].name))
			fab_why_report(&rxm_prov, FAB_WHY_CALL, NULL, "FI_EP_MSG of", cores[i].name,
				       "none for this node, service and source (fi_info -t FI_EP_MSG --why)");
	}
	return -FI_ENODATA;
}

int rxm_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	struct fi_info *list = NULL, **end = &list;
	size_t cnt = 0;
	int ret = 0;

	if (hints && hints->ep_attr && hints->ep_attr->type != FI_EP_UNSPEC && hints->ep_attr->type != FI_EP_RDM)
		return refuse_type(hints->ep_attr->type);
	for (size_t i = 0; i < fab_countof(cores) && !ret; i++) {
		if (may_be_meant(hints, cores[i].name))
			ret = add_over(cores[i].name, node, service, flags, hints, &end, &cnt);
	}
	if (!ret)
		ret = cnt ? match(version, hints, list, cnt, info) : refuse_below(hints);
	if (list)
		fi_freeinfo(list);
	return ret;
}
