/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The offers of tcp: an entry for each endpoint type, network interface and address, RDM first.
 */
#include "tcp/offer/offer.h"

#include "base/bits.h"
#include "common/endpoint/endpoint.h"
#include "common/offers/offers.h"
#include "common/net/net.h"
#include "tcp/params/params.h"
#include "tcp/wire/wire.h"

/* Orders that cost speed. Remote accesses wait until an earlier announced message has its receive. Fetching atomics,
 * and operations that would change memory or be visible too early, wait for earlier reads: the answers to reads are
 * taken from memory when the socket takes them (those to atomics at once). */
#define MSG_ORDER_COSTS	(FI_ORDER_RAS | FI_ORDER_WAS | FI_ORDER_RAR | FI_ORDER_WAR | FI_ORDER_SAR | FI_ORDER_RMA_WAR)
#define MSG_ORDER	(MSG_ORDER_COSTS | FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_SAW | FI_ORDER_SAS | \
			 FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | \
			 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)
#define TX_CAPS		(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE | FI_TRIGGER | \
			 FI_FENCE | FI_RMA_PMEM | FI_HMEM)
#define RX_CAPS		(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE | \
			 FI_MULTI_RECV | FI_TAGGED_MULTI_RECV | FI_RMA_EVENT | FI_TRIGGER | FI_RMA_PMEM | FI_HMEM)
#define RX_RDM_CAPS	(RX_CAPS | FI_SOURCE | FI_SOURCE_ERR | FI_DIRECTED_RECV | FI_COLLECTIVE)
/* As upstream's providers of these names answer them unasked. */
#define SECONDARY_CAPS	(FI_MULTI_RECV | FI_RMA_EVENT | FI_RMA_PMEM | FI_SOURCE)
#define SOCKETS_SECONDARY_CAPS	(SECONDARY_CAPS | FI_TRIGGER | FI_FENCE | FI_SHARED_AV)
#define OBJECT_CNT	32768

/* Attributes that are the same in all entries; names and addresses depend on the interface. */
static const struct fi_info most = {
	.tx_attr = &(struct fi_tx_attr) {
		.caps = TX_CAPS,
		.msg_order = MSG_ORDER,
		.op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
			    FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE | FI_MORE,
		.comp_order = FI_ORDER_NONE,
		.size = TCP_TX_SIZE_MAX,
		.iov_limit = TCP_IOV_LIMIT,
		.rma_iov_limit = TCP_RMA_IOV_MAX,
	},
	.rx_attr = &(struct fi_rx_attr) {
		.op_flags = FI_COMPLETION | FI_MULTI_RECV | FI_MORE,
		.size = TCP_RX_SIZE_MAX,
		.msg_order = MSG_ORDER,
		.comp_order = FI_ORDER_NONE,
		.iov_limit = TCP_IOV_LIMIT,
	},
	.ep_attr = &(struct fi_ep_attr) {
		.max_msg_size = TCP_MAX_MSG_SIZE,
		.max_order_raw_size = SIZE_MAX,
		.max_order_war_size = SIZE_MAX,
		.max_order_waw_size = SIZE_MAX,
		.mem_tag_format = 0xaaaaaaaaaaaaaaaaULL,	/* 64 bits, no fields */
		.tx_ctx_cnt = 1,
		.rx_ctx_cnt = 1,
	},
	.domain_attr = &(struct fi_domain_attr) {
		FAB_DOMAIN_LIMITS(OBJECT_CNT),
		.control_progress = FI_PROGRESS_MANUAL,
		.data_progress = FI_PROGRESS_MANUAL,
		.cq_data_size = sizeof(uint64_t),
		.max_ep_stx_ctx = OBJECT_CNT,
		.max_ep_srx_ctx = OBJECT_CNT,
		.caps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_PEER,
		.max_err_data = TCP_CM_DATA_MAX,
	},
};

static void offer_fill(const struct fab_ip *ip, struct fi_info *info, const struct fab_netif *netif,
		       enum fi_ep_type type)
{
	(void) ip, (void) netif;
	info->tx_attr->inject_size = tcp_params.max_inject;
	if (type != FI_EP_MSG)
		info->tx_attr->caps |= FI_COLLECTIVE;
	info->rx_attr->caps = type != FI_EP_MSG ? RX_RDM_CAPS : RX_CAPS;
	/* the protocols that upstream uses for the same wire format (taken from its fi_info) */
	info->ep_attr->protocol = type != FI_EP_MSG ? FI_PROTO_XNET : FI_PROTO_SOCK_TCP;
	if (type != FI_EP_MSG) {
		if (type == FI_EP_RDM) {	/* datagram endpoints are not scalable */
			info->tx_attr->caps |= FI_NAMED_RX_CTX;
			info->domain_attr->max_ep_tx_ctx = info->domain_attr->max_ep_rx_ctx = TCP_CTX_MAX;
		}
		info->domain_attr->caps |= FI_AV_USER_ID | FI_DIRECTED_RECV | FI_SHARED_AV;
		info->domain_attr->max_ep_auth_key = FAB_AUTH_EP_MAX;
		info->domain_attr->max_group_id = TCP_GROUP_MAX;
	}
}

/* Fill in an entry of the provider "sockets", see face/sockets.c. */
static void offer_fill_sockets(const struct fab_ip *ip, struct fi_info *info, const struct fab_netif *netif,
			       enum fi_ep_type type)
{
	offer_fill(ip, info, netif, type);
	info->ep_attr->protocol = FI_PROTO_SOCK_TCP;
	info->domain_attr->control_progress = FI_PROGRESS_AUTO;
	info->domain_attr->data_progress = FI_PROGRESS_AUTO;
}

static struct fab_ip offer_ip(const struct fi_provider *prov)
{
	static const enum fi_ep_type types[] = { FI_EP_RDM, FI_EP_MSG, FI_EP_DGRAM };
	bool sockets = prov == &sockets_prov;

	return (struct fab_ip) {
		.prov = prov,
		.iface = sockets ? tcp_params.sockets_iface : tcp_params.iface,
		.types = types,
		.type_cnt = fab_countof(types) - !sockets,
		.most = &most,
		.fill = sockets ? offer_fill_sockets : offer_fill,
		.nic = fab_nic_open,
		.offer = {
			.secondary_caps = sockets ? SOCKETS_SECONDARY_CAPS : SECONDARY_CAPS,
			.tclasses = true,
			.mr_basic = true,
			.order_costs = MSG_ORDER_COSTS,
			.auth_key_max = FAB_AUTH_KEY_MAX,
			.tx_size = tcp_params.tx_size,
			.rx_size = tcp_params.rx_size,
		},
	};
}

int tcp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	struct fab_ip ip = offer_ip(&tcp_prov);

	return fab_ip_getinfo(&ip, version, node, service, flags, hints, info);
}

int sockets_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		    const struct fi_info *hints, struct fi_info **info)
{
	struct fab_ip ip = offer_ip(&sockets_prov);

	return fab_ip_getinfo(&ip, version, node, service, flags, hints, info);
}

int tcp_info_check(const struct fi_info *info, const struct fab_domain *domain)
{
	struct fab_ip ip = offer_ip(domain->fabric->prov);

	return fab_ip_check(&ip, info, domain->fabric->fabric_fid.api_version);
}

void tcp_addr_fill(union fab_sockaddr *addr, const struct fab_ep *ep)
{
	struct fab_ip ip = offer_ip(ep->domain->fabric->prov);

	fab_ip_fill_addr(ip.prov, ip.iface, addr, ep->info);
}
