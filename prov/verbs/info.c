/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(): an entry for each address of each port that is up. Limits are the device's.
 */
#include "verbs/ports.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/hmem/hmem.h"
#include "common/offers/offers.h"

#define TX_CAPS		(FI_MSG | FI_RMA | FI_SEND | FI_READ | FI_WRITE | FI_FENCE)
#define RX_CAPS		(FI_MSG | FI_RMA | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)
/* A connection executes requests in order, except that requests do not wait for earlier reads. */
#define MSG_ORDER	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_SAW | \
			 FI_ORDER_SAS | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW)
/* A responder executes atomics in the order in which they come. */
#define ATOMIC_ORDER	(FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
/* Orders of what remote writes, reads and atomics do to memory. */
#define MEMORY_ORDER	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_RMA_RAR | \
			 FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW | ATOMIC_ORDER)
/* Buffers must be registered, the device chooses the keys, and addresses are virtual. */
#define MR_MODES	(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

uint32_t vrb_read_iov_limit(const struct vrb_device *dev)
{
	return (uint32_t) (dev->attr.max_sge_rd > 0 ? dev->attr.max_sge_rd : dev->attr.max_sge);
}

uint32_t vrb_requests(const struct vrb_device *dev, uint32_t iov_limit)
{
	uint32_t most = vrb_read_iov_limit(dev);

	return iov_limit > most ? (iov_limit + most - 1) / most : 1;
}

/* Limits of an endpoint's queues, such that all its outstanding requests can complete to one queue of the device. */
static size_t rq_max(const struct vrb_device *dev)
{
	return (size_t) fab_min(dev->attr.max_qp_wr, dev->attr.max_cqe / 2);
}

static size_t sq_max(const struct vrb_device *dev)
{
	return fab_min((size_t) dev->sq_max, (size_t) dev->attr.max_cqe - rq_max(dev));
}

static void fill_tx(struct fi_tx_attr *tx, const struct vrb_device *dev)
{
	size_t requests = sq_max(dev) - 1;	/* one is used by the provider (vrb_post_marker) */

	tx->caps = TX_CAPS | (vrb_device_atomics(dev) ? FI_ATOMIC : 0);
	tx->msg_order = MSG_ORDER | (vrb_device_atomics(dev) ? ATOMIC_ORDER : 0);
	tx->comp_order = FI_ORDER_STRICT;
	tx->op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_FENCE | FI_MORE;
	tx->inject_size = fab_min(dev->inline_max, dev->port.max_msg_sz);
	tx->iov_limit = fab_min((size_t) dev->attr.max_sge, vrb_params.tx_iov_limit);
	tx->iov_limit = fab_min(tx->iov_limit, requests * vrb_read_iov_limit(dev));
	tx->size = requests / vrb_requests(dev, (uint32_t) tx->iov_limit);
	tx->rma_iov_limit = 1;
}

static void fill_rx(struct fi_rx_attr *rx, const struct vrb_device *dev)
{
	rx->caps = RX_CAPS | (vrb_device_atomics(dev) ? FI_ATOMIC : 0);
	rx->msg_order = MSG_ORDER | (vrb_device_atomics(dev) ? ATOMIC_ORDER : 0);
	rx->comp_order = FI_ORDER_STRICT;
	rx->op_flags = FI_COMPLETION | FI_MORE;
	rx->size = rq_max(dev);
	rx->iov_limit = fab_min((size_t) dev->attr.max_sge, vrb_params.rx_iov_limit);
}

static void fill_ep(struct fi_ep_attr *ep, const struct vrb_device *dev)
{
	ep->protocol_version = 1;
	ep->max_msg_size = dev->port.max_msg_sz;
	ep->max_order_raw_size = dev->port.max_msg_sz;
	ep->max_order_war_size = vrb_device_atomics(dev) ? VRB_ATOMIC_LEN : 0;	/* for atomics only */
	ep->max_order_waw_size = dev->port.max_msg_sz;
	ep->tx_ctx_cnt = 1;
	ep->rx_ctx_cnt = 1;
}

static void fill_domain(struct fi_domain_attr *domain, const struct vrb_device *dev)
{
	domain->threading = FI_THREAD_SAFE;
	domain->control_progress = FI_PROGRESS_MANUAL;
	domain->data_progress = FI_PROGRESS_MANUAL;
	domain->resource_mgmt = FI_RM_ENABLED;
	domain->av_type = FI_AV_UNSPEC;
	domain->mr_mode = MR_MODES;
	domain->mr_key_size = sizeof(uint32_t);
	domain->cq_data_size = dev->quirks->data_len;
	domain->cq_cnt = dev->attr.max_cq;
	domain->ep_cnt = dev->attr.max_qp;
	domain->tx_ctx_cnt = dev->attr.max_qp;
	domain->rx_ctx_cnt = dev->attr.max_qp;
	domain->max_ep_tx_ctx = 1;
	domain->max_ep_rx_ctx = 1;
	domain->cntr_cnt = dev->attr.max_cq;	/* counters are software objects: there is no real limit */
	domain->mr_iov_limit = 1;
	domain->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
	domain->max_err_data = VRB_CM_DATA_MAX;
	domain->mr_cnt = dev->attr.max_mr;
	domain->max_cntr_value = UINT64_MAX;
	domain->max_err_cntr_value = UINT64_MAX;
}

static void fill_from(const struct vrb_kind *kind, struct fi_info *info, const struct vrb_device *dev)
{
	fill_tx(info->tx_attr, dev);
	fill_rx(info->rx_attr, dev);
	fill_ep(info->ep_attr, dev);
	fill_domain(info->domain_attr, dev);
	kind->fill(info, dev);
	/* the device reads and writes memory of other devices by itself, or not at all */
	if (kind->ep_type == FI_EP_MSG && fab_hmem_p2p()) {
		info->tx_attr->caps |= FI_HMEM;
		info->rx_attr->caps |= FI_HMEM;
	}
}

bool vrb_info_relaxed(const struct fi_info *info)
{
	return vrb_params.relaxed_ordering &&
	       !((info->tx_attr->msg_order | info->rx_attr->msg_order) & MEMORY_ORDER);
}

/* ---- kinds ---- */

const struct vrb_kind *const vrb_kinds[VRB_KIND_CNT] = { &vrb_rc, &vrb_xrc_kind, &vrb_ud };

const struct vrb_kind *vrb_kind_of(const char *domain, const char *device)
{
	size_t len = strlen(device), i;

	for (i = 0; i < VRB_KIND_CNT && !strncmp(domain, device, len); i++) {
		if (!strcmp(domain + len, vrb_kinds[i]->suffix))
			return vrb_kinds[i];
	}
	return NULL;
}

struct fab_offer vrb_offer(void)
{
	return (struct fab_offer) {
		.secondary_caps = FI_FENCE,
		.mode_told = FI_RX_CQ_DATA,
		.mr_mode_need = MR_MODES,
		.order_costs = vrb_params.relaxed_ordering ? MEMORY_ORDER : 0,
		.tclasses = true,
		.tx_size = vrb_params.tx_size,
		.rx_size = vrb_params.rx_size,
	};
}

struct fi_info *vrb_info_of(const struct vrb_kind *kind, const struct vrb_device *dev, const char *fabric)
{
	struct fi_info *info = fi_allocinfo();

	if (!info)
		return NULL;
	fill_from(kind, info, dev);
	info->ep_attr->type = kind->ep_type;
	info->caps = info->tx_attr->caps | info->rx_attr->caps | info->domain_attr->caps;
	info->fabric_attr->prov_version = vrb_prov.version;
	info->fabric_attr->name = strdup(fabric);
	if (asprintf(&info->domain_attr->name, "%s%s", dev->name, kind->suffix) < 0)
		info->domain_attr->name = NULL;
	if (info->fabric_attr->name && info->domain_attr->name)
		return info;
	fi_freeinfo(info);
	return NULL;
}

/* ---- entries of addresses ---- */

struct vrb_ip {
	struct fab_ip ip;
	const struct vrb_kind *kind;
};

static const struct vrb_kind *kind_of(const struct fab_ip *ip)
{
	return fab_container(ip, const struct vrb_ip, ip)->kind;
}

/* Fill an entry. info_place() has found the device before. */
static void vrb_info_fill(const struct fab_ip *ip, struct fi_info *info, const struct fab_netif *netif,
			  enum fi_ep_type type)
{
	const struct vrb_device *dev = vrb_device_of(&netif->addr.sa);

	(void) type;
	if (dev)
		fill_from(kind_of(ip), info, dev);
}

static bool info_place(const struct fab_ip *ip, const struct fab_netif *netif, char *domain, char *fabric)
{
	const struct vrb_device *dev = vrb_device_of(&netif->addr.sa);

	if (!dev || !kind_of(ip)->offered(dev))
		return false;
	snprintf(domain, FI_NAME_MAX, "%s%s", dev->name, kind_of(ip)->suffix);
	if (vrb_device_roce(dev))
		vrb_fabric_of_network(fabric, FI_NAME_MAX, netif->network);
	else
		snprintf(fabric, FI_NAME_MAX, "%s", dev->fabric);
	return true;
}

static int nic(const struct fab_netif *netif, struct fid_nic **nic_fid)
{
	const struct vrb_device *dev = vrb_device_of(&netif->addr.sa);

	*nic_fid = NULL;
	return dev ? vrb_nic_open(dev, nic_fid) : 0;
}

static int ip_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info)
{
	struct vrb_ip ip = {
		.ip = {
			.prov = &vrb_prov, .iface = vrb_params.iface, .types = &kind->ep_type, .type_cnt = 1,
			.place = info_place, .fill = vrb_info_fill, .nic = nic, .offer = vrb_offer(),
		},
		.kind = kind,
	};

	return fab_ip_getinfo(&ip.ip, query->version, query->node, query->service, query->flags, query->hints, info);
}

/* Entries of IP addresses are before those of GIDs. */
int vrb_msg_getinfo(const struct vrb_kind *kind, const struct vrb_query *query, struct fi_info **info)
{
	struct fi_info **end = info;
	int ret, more;

	*info = NULL;
	ret = ip_getinfo(kind, query, info);
	if (ret == -FI_ENOMEM)
		return ret;
	if (ret)
		*info = NULL;
	while (*end)
		end = &(*end)->next;
	more = vrb_ib_getinfo(kind, query, end);
	if (more)
		*end = NULL;
	return *info ? 0 : more == -FI_ENOMEM ? more : ret;
}

/* ---- the result: the entries of each kind in turn ---- */

/* The i-th kind. FI_VERBS_PREFER_XRC exchanges the first two. */
static const struct vrb_kind *kind_in_turn(size_t i)
{
	return vrb_kinds[vrb_params.prefer_xrc && i < 2 ? 1 - i : i];
}

static int vrb_info_answer(const struct vrb_query *query, struct fi_info **info)
{
	struct fi_info **end = info;
	int ret = -FI_ENODATA;

	*info = NULL;
	for (size_t i = 0; i < VRB_KIND_CNT && ret != -FI_ENOMEM; i++) {
		const struct vrb_kind *kind = kind_in_turn(i);

		ret = kind->getinfo(kind, query, end);
		if (ret)
			*end = NULL;
		while (*end)
			end = &(*end)->next;
	}
	if (ret == -FI_ENOMEM)
		fi_freeinfo(*info);
	else if (*info)
		ret = 0;
	return ret;
}

/* No entry was found. Log once, a line for each, the devices that cannot be opened, since nothing else reports them. */
static void say_closed(struct ibv_device **list, int cnt)
{
	static atomic_bool told;

	if (atomic_exchange(&told, true))
		return;
	for (int i = 0; i < cnt; i++) {
		struct ibv_context *verbs = ibv_open_device(list[i]);

		if (verbs)
			ibv_close_device(verbs);
		else
			VRB_WARN(FI_LOG_FABRIC, "device %s cannot be opened: %s\n", ibv_get_device_name(list[i]),
				 strerror(errno));
	}
}

int vrb_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	const struct vrb_query query = { version, node, service, flags, hints };
	struct ibv_device **list = NULL;
	int cnt = 0, ret = -FI_ENODATA;

	/* do not load librdmacm if there is no device */
	if (vrb_lib_ready())
		list = ibv_get_device_list(&cnt);
	if (cnt)
		ret = vrb_info_answer(&query, info);
	else if (fab_why_wanted(&vrb_prov))
		fab_why_report(&vrb_prov, FAB_WHY_WHICH, "verbs", "RDMA device", "one", "none on this machine");
	if (ret == -FI_ENODATA && !vrb_devices_known())
		say_closed(list, cnt);
	if (list)
		ibv_free_device_list(list);
	return ret;
}

int vrb_info_check(const struct vrb_kind *kind, const struct fi_info *info, uint32_t version)
{
	struct fab_offer offer = vrb_offer();
	const struct vrb_device *dev;
	struct fi_info *most;
	int ret;

	if (!info->domain_attr->name) {
		VRB_WARN(FI_LOG_EP_CTRL, "the info names no domain; pass an info of fi_getinfo()\n");
		return -FI_EINVAL;
	}
	dev = vrb_device_meant(info);
	if (!dev) {
		VRB_WARN(FI_LOG_EP_CTRL, "domain %s: the device does not exist\n", info->domain_attr->name);
		return -FI_ENODEV;
	}
	/* the address determines the fabric */
	most = vrb_info_of(kind, dev, info->fabric_attr->name ? info->fabric_attr->name : dev->fabric);
	if (!most)
		return -FI_ENOMEM;
	most->addr_format = info->addr_format;
	offer.info = most;
	ret = fab_hints_check(&vrb_prov, version, info, &offer, 1);
	fi_freeinfo(most);
	return ret;
}
