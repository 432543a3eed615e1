/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo(): an entry for each address of each network interface. max_msg_size is the payload of one frame of the
 * interface: a longer datagram is lost if any of its fragments is.
 */
#include "base/bits.h"
#include "common/offers/offers.h"
#include "common/net/net.h"
#include "udp/udp.h"

#define TX_CAPS		(FI_MSG | FI_SEND | FI_MULTICAST)
#define RX_CAPS		(FI_MSG | FI_RECV | FI_SOURCE | FI_SOURCE_ERR)
#define SECONDARY_CAPS	FI_SOURCE
#define OBJECT_CNT	32768

#define MTU_UNKNOWN	1500		/* bytes; the usual value */
#define DATAGRAM_MAX	65507		/* payload of the longest datagram that IPv4 can carry, bytes */

/* max_msg_size and inject_size are those of the interface. */
static const struct fi_info most = {
	.tx_attr = &(struct fi_tx_attr) {
		.caps = TX_CAPS,
		.op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_MORE |
			    FI_MULTICAST,
		.comp_order = FI_ORDER_STRICT,
		.size = UDP_TX_SIZE_MAX,
		.iov_limit = UDP_IOV_LIMIT,
	},
	.rx_attr = &(struct fi_rx_attr) {
		.caps = RX_CAPS,
		.op_flags = FI_COMPLETION | FI_MORE,
		.comp_order = FI_ORDER_STRICT,
		.size = UDP_RX_SIZE_MAX,
		.iov_limit = UDP_IOV_LIMIT,
	},
	.ep_attr = &(struct fi_ep_attr) { .protocol = FI_PROTO_UDP, .tx_ctx_cnt = 1, .rx_ctx_cnt = 1 },
	.domain_attr = &(struct fi_domain_attr) {
		FAB_DOMAIN_LIMITS(OBJECT_CNT),
		.control_progress = FI_PROGRESS_AUTO,
		.data_progress = FI_PROGRESS_AUTO,
		.caps = FI_LOCAL_COMM | FI_REMOTE_COMM,
		.max_err_data = sizeof(union fab_sockaddr),
	},
};

/* Payload in bytes after the IP and UDP headers. */
static size_t payload_max(const struct fab_netif *netif)
{
	size_t headers = netif->addr.sa.sa_family == AF_INET6 ? 40 + 8 : 20 + 8;
	size_t mtu = netif->mtu > headers ? netif->mtu : MTU_UNKNOWN;

	return fab_min(mtu - headers, (size_t) DATAGRAM_MAX);
}

static void info_fill_attr(const struct fab_ip *ip, struct fi_info *info, const struct fab_netif *netif,
		      enum fi_ep_type type)
{
	(void) ip, (void) type;
	info->ep_attr->max_msg_size = info->tx_attr->inject_size = payload_max(netif);
}

static struct fab_ip ip_now(void)
{
	static const enum fi_ep_type types[] = { FI_EP_DGRAM };

	return (struct fab_ip) {
		.prov = &udp_prov,
		.iface = udp_params.iface,
		.types = types,
		.type_cnt = fab_countof(types),
		.most = &most,
		.fill = info_fill_attr,
		.nic = fab_nic_open,
		.offer = {
			.secondary_caps = SECONDARY_CAPS,
			.tclasses = true,
			.tx_size = udp_params.tx_size,
			.rx_size = udp_params.rx_size,
		},
	};
}

int udp_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		struct fi_info **info)
{
	struct fab_ip ip = ip_now();

	return fab_ip_getinfo(&ip, version, node, service, flags, hints, info);
}

int udp_info_check(const struct fi_info *info, uint32_t version)
{
	struct fab_ip ip = ip_now();

	return fab_ip_check(&ip, info, version);
}
