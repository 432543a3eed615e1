/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "offer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "base/addr.h"
#include "unit.h"

struct heard heard;

void hear_nothing(bool wanted)
{
	memset(&heard, 0, sizeof(heard));
	heard.wanted = wanted;
}

static bool why_wanted(void)
{
	return heard.wanted;
}

static void why(const struct fi_provider *prov, const struct fab_why *why)
{
	(void) prov;
	heard.cnt++;
	if (*heard.attrs)
		strncat(heard.attrs, " ", sizeof(heard.attrs) - strlen(heard.attrs) - 1);
	strncat(heard.attrs, why->attr, sizeof(heard.attrs) - strlen(heard.attrs) - 1);
	snprintf(heard.entry, sizeof(heard.entry), "%s", why->entry ? why->entry : "");
	snprintf(heard.asked, sizeof(heard.asked), "%s", why->asked);
	snprintf(heard.offered, sizeof(heard.offered), "%s", why->offered);
}

static void count_fabric(int change)
{
	(void) change;
}

static const struct fab_core_ops core_ops = {
	.size = sizeof(core_ops), .why_wanted = why_wanted, .why = why, .count_fabric = count_fabric,
};

struct fi_provider test_prov = {
	.name = "test",
	.version = FI_VERSION(2, 6),
	.fi_version = FI_VERSION(2, 6),
	.context.internal = { (void *) &core_ops, FAB_CORE_MAGIC },
};

static struct fi_info *make_info(uint32_t addr_format, int family, const char *addr, const char *fabric)
{
	struct fi_info *info = fi_allocinfo();
	union fab_sockaddr *src = calloc(1, sizeof(*src));

	info->caps = OFFER_CAPS;
	info->addr_format = addr_format;
	src->sa.sa_family = family;
	inet_pton(family, addr, family == AF_INET ? (void *) &src->sin.sin_addr : (void *) &src->sin6.sin6_addr);
	info->src_addr = src;
	info->src_addrlen = fab_addr_family_len(family);

	info->tx_attr->caps = OFFER_CAPS;
	info->tx_attr->op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
				  FI_DELIVERY_COMPLETE;
	info->tx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_RAS;
	info->tx_attr->comp_order = FI_ORDER_STRICT;
	info->tx_attr->inject_size = 128;
	info->tx_attr->size = 4096;
	info->tx_attr->iov_limit = 4;
	info->tx_attr->rma_iov_limit = 4;
	info->rx_attr->caps = OFFER_CAPS;
	info->rx_attr->op_flags = FI_COMPLETION | FI_MULTI_RECV;
	info->rx_attr->msg_order = FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW;
	info->rx_attr->size = 65536;
	info->rx_attr->iov_limit = 4;

	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->protocol = FI_PROTO_XNET;
	info->ep_attr->protocol_version = 3;
	info->ep_attr->max_msg_size = 1 << 30;
	info->ep_attr->max_order_raw_size = SIZE_MAX;
	info->ep_attr->mem_tag_format = UINT64_MAX;
	info->ep_attr->tx_ctx_cnt = 1;
	info->ep_attr->rx_ctx_cnt = 1;

	info->domain_attr->name = strdup("eth0");
	info->domain_attr->threading = FI_THREAD_SAFE;
	info->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	info->domain_attr->resource_mgmt = FI_RM_ENABLED;
	info->domain_attr->av_type = FI_AV_UNSPEC;
	info->domain_attr->mr_key_size = 8;
	info->domain_attr->cq_data_size = 8;
	info->domain_attr->cq_cnt = 256;
	info->domain_attr->ep_cnt = 256;
	info->domain_attr->max_ep_tx_ctx = 2;
	info->domain_attr->max_ep_rx_ctx = 1;
	info->domain_attr->max_ep_srx_ctx = 16;
	info->domain_attr->mr_iov_limit = 8;
	info->domain_attr->mr_cnt = 65536;
	info->domain_attr->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
	info->domain_attr->max_cntr_value = UINT64_MAX;
	info->domain_attr->max_group_id = 100;
	info->fabric_attr->name = strdup(fabric);
	info->fabric_attr->prov_version = FI_VERSION(206, 0);
	return info;
}

void offers_make(struct offers *offers)
{
	offers->info[0] = make_info(FI_SOCKADDR_IN, AF_INET, "192.0.2.1", "192.0.2.0/24");
	offers->info[1] = make_info(FI_SOCKADDR_IN6, AF_INET6, "2001:db8::1", "2001:db8::/64");
	for (int i = 0; i < 2; i++)
		offers->offer[i] = (struct fab_offer) {
			.info = offers->info[i],
			.secondary_caps = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_MULTI_RECV | FI_RMA_EVENT,
			.mr_basic = true,
			.order_costs = FI_ORDER_RAS,
			.tx_size = 1024,
			.rx_size = 2048,
		};
}

void offers_free(struct offers *offers)
{
	for (int i = 0; i < 2; i++)
		fi_freeinfo(offers->info[i]);
}

struct fi_info *offers_ask(uint32_t version, const struct fi_info *hints)
{
	struct offers offers;
	struct fi_info *info = NULL;
	int ret;

	offers_make(&offers);
	ret = fab_hints_match(&test_prov, version, hints, offers.offer, 2, &info);
	offers_free(&offers);
	assert_int_equal(ret, info ? 0 : -FI_ENODATA);
	return info;
}

static void assert_same_info(const struct fi_info *a, const struct fi_info *b)
{
	char text_a[8192], text_b[8192];

	fi_tostr_r(text_a, sizeof(text_a), a, FI_TYPE_INFO);
	fi_tostr_r(text_b, sizeof(text_b), b, FI_TYPE_INFO);
	assert_string_equal(text_a, text_b);
}

void offers_assert_stable(uint32_t version, const struct fi_info *info)
{
	struct fi_info *again;

	for (; info; info = info->next) {
		again = offers_ask(version, info);
		assert_non_null(again);
		assert_null(again->next);
		assert_same_info(info, again);
		fi_freeinfo(again);
	}
}
