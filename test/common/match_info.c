/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hints against made-up offers: what matches, what the answer says, what a refusal names.
 */
#include "unit.h"

#include <stdio.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "common/ep.h"
#include "common/fabric.h"
#include "common/match_info.h"
#include "offer.h"

#define API FI_VERSION(2, 6)

/* Ask both offers. The list, or NULL for -FI_ENODATA. */
static struct fi_info *ask(uint32_t version, const struct fi_info *hints)
{
	struct offers offers;
	struct fi_info *info = NULL;
	int ret;

	offers_make(&offers);
	ret = fab_match_info(&test_prov, version, hints, offers.offer, 2, &info);
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

/* An answer as hints gives itself, and nothing else. */
static void assert_stable(uint32_t version, const struct fi_info *info)
{
	struct fi_info *again;

	for (; info; info = info->next) {
		again = ask(version, info);
		assert_non_null(again);
		assert_null(again->next);
		assert_same_info(info, again);
		fi_freeinfo(again);
	}
}

/* ---- attribute by attribute ---- */

enum { REFUSED, MATCHES };

struct row {
	const char *attr;
	size_t part, offset, size;
	uint64_t hint;
	int result;
	uint64_t answer;
};

#define ATTR(part_name, member) #part_name "->" #member, offsetof(struct fi_info, part_name),	\
	offsetof(struct fi_##part_name, member), sizeof(((struct fi_##part_name *) 0)->member)

static uint64_t get(const struct fi_info *info, const struct row *row)
{
	uint64_t value = 0;

	memcpy(&value, *(const char *const *) ((const char *) info + row->part) + row->offset, row->size);
	return value;
}

static void set(struct fi_info *info, const struct row *row)
{
	memcpy(*(char **) ((char *) info + row->part) + row->offset, &row->hint, row->size);
}

static const struct row rows[] = {
	/* limits: a hint may be as large as the offer, the answer is what there is */
	{ ATTR(tx_attr, inject_size), 0, MATCHES, 128 },
	{ ATTR(tx_attr, inject_size), 16, MATCHES, 128 },
	{ ATTR(tx_attr, inject_size), 128, MATCHES, 128 },
	{ ATTR(tx_attr, inject_size), 129, REFUSED, 0 },
	{ ATTR(tx_attr, iov_limit), 4, MATCHES, 4 },
	{ ATTR(tx_attr, iov_limit), 5, REFUSED, 0 },
	{ ATTR(tx_attr, rma_iov_limit), 5, REFUSED, 0 },
	{ ATTR(rx_attr, iov_limit), 5, REFUSED, 0 },
	{ ATTR(ep_attr, max_msg_size), 1 << 30, MATCHES, 1 << 30 },
	{ ATTR(ep_attr, max_msg_size), (1 << 30) + 1, REFUSED, 0 },
	{ ATTR(ep_attr, msg_prefix_size), 8, REFUSED, 0 },
	{ ATTR(ep_attr, max_order_raw_size), SIZE_MAX, MATCHES, SIZE_MAX },
	{ ATTR(ep_attr, max_order_war_size), 1, REFUSED, 0 },
	{ ATTR(domain_attr, mr_key_size), 1, MATCHES, 8 },
	{ ATTR(domain_attr, mr_key_size), 9, REFUSED, 0 },
	{ ATTR(domain_attr, cq_data_size), 4, MATCHES, 8 },
	{ ATTR(domain_attr, cq_data_size), 16, REFUSED, 0 },
	{ ATTR(domain_attr, cq_cnt), 256, MATCHES, 256 },
	{ ATTR(domain_attr, cq_cnt), SIZE_MAX, REFUSED, 0 },
	{ ATTR(domain_attr, ep_cnt), 257, REFUSED, 0 },
	{ ATTR(domain_attr, mr_iov_limit), 9, REFUSED, 0 },
	{ ATTR(domain_attr, max_ep_stx_ctx), 1, REFUSED, 0 },
	{ ATTR(domain_attr, max_cntr_value), UINT64_MAX, MATCHES, UINT64_MAX },
	{ ATTR(domain_attr, max_err_cntr_value), 1, REFUSED, 0 },
	/* peer groups: for those who ask only */
	{ ATTR(domain_attr, max_group_id), 0, MATCHES, 0 },
	{ ATTR(domain_attr, max_group_id), 7, MATCHES, 7 },
	{ ATTR(domain_attr, max_group_id), 100, MATCHES, 100 },
	{ ATTR(domain_attr, max_group_id), 101, REFUSED, 0 },
	/* queue sizes: as asked, else the default */
	{ ATTR(tx_attr, size), 0, MATCHES, 1024 },
	{ ATTR(tx_attr, size), 512, MATCHES, 512 },
	{ ATTR(tx_attr, size), 4096, MATCHES, 4096 },
	{ ATTR(tx_attr, size), 4097, REFUSED, 0 },
	{ ATTR(rx_attr, size), 0, MATCHES, 2048 },
	{ ATTR(rx_attr, size), 65537, REFUSED, 0 },
	{ ATTR(rx_attr, total_buffered_recv), SIZE_MAX, MATCHES, 0 },
	/* bits */
	{ ATTR(tx_attr, op_flags), 0, MATCHES, 0 },
	{ ATTR(tx_attr, op_flags), FI_DELIVERY_COMPLETE | FI_COMPLETION, MATCHES,
	  FI_DELIVERY_COMPLETE | FI_COMPLETION },
	{ ATTR(tx_attr, op_flags), FI_COMMIT_COMPLETE, REFUSED, 0 },
	{ ATTR(rx_attr, op_flags), FI_MULTI_RECV, MATCHES, FI_MULTI_RECV },
	{ ATTR(rx_attr, op_flags), FI_INJECT, REFUSED, 0 },
	{ ATTR(tx_attr, msg_order), FI_ORDER_SAS, MATCHES, FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW },
	{ ATTR(tx_attr, msg_order), FI_ORDER_RAS, MATCHES, FI_ORDER_SAS | FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_RAS },
	{ ATTR(tx_attr, msg_order), FI_ORDER_ATOMIC_WAW, REFUSED, 0 },
	{ ATTR(rx_attr, msg_order), FI_ORDER_SAR, REFUSED, 0 },
	{ ATTR(tx_attr, comp_order), FI_ORDER_STRICT, MATCHES, FI_ORDER_STRICT },
	{ ATTR(rx_attr, comp_order), FI_ORDER_DATA, REFUSED, 0 },
	{ ATTR(domain_attr, caps), FI_LOCAL_COMM, MATCHES, FI_LOCAL_COMM | FI_REMOTE_COMM },
	{ ATTR(domain_attr, caps), FI_SHARED_AV, REFUSED, 0 },
	/* what the application chooses is answered exactly */
	{ ATTR(domain_attr, threading), 0, MATCHES, FI_THREAD_SAFE },
	{ ATTR(domain_attr, threading), FI_THREAD_DOMAIN, MATCHES, FI_THREAD_DOMAIN },
	{ ATTR(domain_attr, threading), FI_THREAD_COMPLETION, MATCHES, FI_THREAD_COMPLETION },
	{ ATTR(domain_attr, threading), FI_THREAD_FID, MATCHES, FI_THREAD_FID },
	{ ATTR(domain_attr, threading), FI_THREAD_ENDPOINT, MATCHES, FI_THREAD_ENDPOINT },
	{ ATTR(domain_attr, threading), 6, REFUSED, 0 },
	{ ATTR(domain_attr, control_progress), FI_PROGRESS_AUTO, MATCHES, FI_PROGRESS_AUTO },
	{ ATTR(domain_attr, control_progress), FI_PROGRESS_CONTROL_UNIFIED, MATCHES, FI_PROGRESS_CONTROL_UNIFIED },
	{ ATTR(domain_attr, data_progress), 0, MATCHES, FI_PROGRESS_MANUAL },
	{ ATTR(domain_attr, data_progress), FI_PROGRESS_AUTO, MATCHES, FI_PROGRESS_AUTO },
	{ ATTR(domain_attr, data_progress), 77, REFUSED, 0 },
	{ ATTR(domain_attr, resource_mgmt), FI_RM_DISABLED, MATCHES, FI_RM_DISABLED },
	{ ATTR(domain_attr, resource_mgmt), FI_RM_ENABLED, MATCHES, FI_RM_ENABLED },
	{ ATTR(domain_attr, av_type), 0, MATCHES, FI_AV_UNSPEC },
	{ ATTR(domain_attr, av_type), FI_AV_MAP, MATCHES, FI_AV_MAP },
	{ ATTR(domain_attr, av_type), FI_AV_TABLE, MATCHES, FI_AV_TABLE },
	{ ATTR(domain_attr, av_type), 3, REFUSED, 0 },
	{ ATTR(domain_attr, tclass), FI_TC_BEST_EFFORT, MATCHES, FI_TC_BEST_EFFORT },
	{ ATTR(domain_attr, tclass), FI_TC_LOW_LATENCY, REFUSED, 0 },
	{ ATTR(tx_attr, tclass), FI_TC_BULK_DATA, REFUSED, 0 },
	{ ATTR(ep_attr, mem_tag_format), 0, MATCHES, UINT64_MAX },
	{ ATTR(ep_attr, mem_tag_format), 0xff00ff, MATCHES, 0xff00ff },
	{ ATTR(ep_attr, mem_tag_format), FI_TAG_MPI, MATCHES, FI_TAG_MPI },
	/* picks among entries */
	{ ATTR(ep_attr, type), FI_EP_RDM, MATCHES, FI_EP_RDM },
	{ ATTR(ep_attr, type), FI_EP_MSG, REFUSED, 0 },
	{ ATTR(ep_attr, type), 4, REFUSED, 0 },
	{ ATTR(ep_attr, protocol), FI_PROTO_XNET, MATCHES, FI_PROTO_XNET },
	{ ATTR(ep_attr, protocol), FI_PROTO_RXM, REFUSED, 0 },
	{ ATTR(ep_attr, protocol_version), 2, MATCHES, 3 },
	{ ATTR(ep_attr, protocol_version), 4, REFUSED, 0 },
	/* contexts */
	{ ATTR(ep_attr, tx_ctx_cnt), 0, MATCHES, 1 },
	{ ATTR(ep_attr, tx_ctx_cnt), 2, MATCHES, 2 },
	{ ATTR(ep_attr, tx_ctx_cnt), 3, REFUSED, 0 },
	{ ATTR(ep_attr, tx_ctx_cnt), FI_SHARED_CONTEXT, REFUSED, 0 },
	{ ATTR(ep_attr, rx_ctx_cnt), FI_SHARED_CONTEXT, MATCHES, FI_SHARED_CONTEXT },
	{ ATTR(ep_attr, auth_key_size), 8, REFUSED, 0 },
	{ ATTR(domain_attr, auth_key_size), 8, REFUSED, 0 },
};

static void each_attribute_by_its_rule(void **state)
{
	struct fi_info *hints, *info;

	(void) state;
	for (size_t i = 0; i < fab_countof(rows); i++) {
		hints = fi_allocinfo();
		set(hints, &rows[i]);
		hear_nothing(true);
		info = ask(API, hints);
		if (rows[i].result == MATCHES && (!info || get(info, &rows[i]) != rows[i].answer))
			fail_msg("%s %#lx: %s, answer %#lx instead of %#lx", rows[i].attr, (unsigned long) rows[i].hint,
				 heard.attrs, info ? (unsigned long) get(info, &rows[i]) : 0,
				 (unsigned long) rows[i].answer);
		if (rows[i].result == REFUSED) {
			/* both offers, for this reason and no other */
			assert_null(info);
			assert_int_equal(heard.cnt, 2);
			assert_non_null(strstr(heard.attrs, rows[i].attr));
		}
		assert_stable(API, info);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

/* ---- capabilities ---- */

static const uint64_t rma_bits = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

static struct fi_info *ask_caps(uint64_t caps, uint64_t tx, uint64_t rx)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->caps = caps;
	hints->tx_attr->caps = tx;
	hints->rx_attr->caps = rx;
	hear_nothing(true);
	info = ask(API, hints);
	assert_stable(API, info);
	fi_freeinfo(hints);
	return info;
}

static void primary_caps_come_only_when_asked_for(void **state)
{
	struct fi_info *info = ask_caps(FI_MSG, 0, 0);

	(void) state;
	assert_non_null(info);
	assert_int_equal(info->caps, FI_MSG | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM);
	assert_int_equal(info->tx_attr->caps, FI_MSG | FI_SEND);
	assert_int_equal(info->rx_attr->caps, FI_MSG | FI_RECV | FI_MULTI_RECV);
	fi_freeinfo(info);
}

static void no_caps_asked_gives_all(void **state)
{
	struct fi_info *info = ask_caps(0, 0, 0);

	(void) state;
	assert_int_equal(info->caps, OFFER_CAPS);
	fi_freeinfo(info);
}

static void modifiers_default_to_all_and_restrict_when_given(void **state)
{
	struct fi_info *info;

	(void) state;
	info = ask_caps(FI_RMA, 0, 0);
	assert_int_equal(info->caps & (rma_bits | FI_SEND | FI_RECV), rma_bits);
	assert_int_equal(info->caps & FI_RMA_EVENT, FI_RMA_EVENT);
	fi_freeinfo(info);
	info = ask_caps(FI_RMA | FI_WRITE, 0, 0);
	assert_int_equal(info->caps & rma_bits, FI_WRITE);
	fi_freeinfo(info);
	info = ask_caps(FI_MSG | FI_RMA | FI_SEND, 0, 0);
	assert_int_equal(info->caps & (FI_SEND | FI_RECV | rma_bits), FI_SEND | rma_bits);
	assert_int_equal(info->caps & FI_MULTI_RECV, 0);
	fi_freeinfo(info);
}

static void secondary_caps_on_request_are_kept(void **state)
{
	struct fi_info *info = ask_caps(FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV, 0, 0);

	(void) state;
	assert_int_equal(info->caps & (FI_SOURCE | FI_DIRECTED_RECV), FI_SOURCE | FI_DIRECTED_RECV);
	assert_int_equal(info->rx_attr->caps & (FI_SOURCE | FI_DIRECTED_RECV), FI_SOURCE | FI_DIRECTED_RECV);
	fi_freeinfo(info);
}

static void caps_that_are_not_there_are_named(void **state)
{
	(void) state;
	assert_null(ask_caps(FI_MSG | FI_ATOMIC | FI_HMEM, 0, 0));
	assert_string_equal(heard.attrs, "caps caps");
	assert_non_null(strstr(heard.asked, "FI_ATOMIC"));
	assert_non_null(strstr(heard.asked, "FI_HMEM"));
	assert_null(strstr(heard.asked, "FI_MSG"));
	assert_non_null(strstr(heard.offered, "FI_MSG"));
	assert_non_null(strstr(heard.entry, "eth0"));
	assert_non_null(strstr(heard.entry, "FI_EP_RDM"));
	assert_null(ask_caps(1ULL << 63, 0, 0));
}

static void tx_and_rx_caps_are_part_of_the_whole(void **state)
{
	struct fi_info *info = ask_caps(FI_MSG | FI_RMA, FI_RMA | FI_WRITE, FI_MSG | FI_RECV);

	(void) state;
	assert_non_null(info);
	assert_int_equal(info->tx_attr->caps, FI_RMA | FI_WRITE);
	assert_int_equal(info->rx_attr->caps, FI_MSG | FI_RECV | FI_MULTI_RECV | FI_RMA_EVENT);
	fi_freeinfo(info);
	/* capabilities of the whole, handed down as they are */
	info = ask_caps(FI_MSG | FI_LOCAL_COMM, FI_MSG | FI_LOCAL_COMM, FI_MSG | FI_LOCAL_COMM);
	assert_non_null(info);
	assert_int_equal(info->tx_attr->caps, FI_MSG | FI_SEND | FI_LOCAL_COMM);
	fi_freeinfo(info);
	/* bits that nobody knows */
	assert_null(ask_caps(FI_MSG, 1, 0));
	assert_null(ask_caps(FI_MSG, 0, 1));
	assert_null(ask_caps(FI_MSG, FI_MSG | FI_TAGGED, 0));
	assert_string_equal(heard.attrs, "tx_attr->caps tx_attr->caps");
}

/* ---- memory registration ---- */

static const struct {
	uint32_t version;
	uint64_t need;		/* of the offer */
	int hint;
	uint64_t mode;
	int result, answer;
} mr_rows[] = {
	/* software, today */
	{ API, 0, 0, 0, MATCHES, 0 },
	{ API, 0, FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_HMEM, 0, MATCHES, 0 },
	{ API, 0, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_LOCAL, 0, MATCHES, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY },
	{ API, 0, FI_MR_RMA_EVENT, 0, MATCHES, FI_MR_RMA_EVENT },
	{ API, 0, FI_MR_BASIC, 0, MATCHES, FI_MR_BASIC },
	{ API, 0, FI_MR_SCALABLE, 0, MATCHES, FI_MR_SCALABLE },
	{ API, 0, FI_MR_BASIC | FI_MR_VIRT_ADDR, 0, REFUSED, 0 },
	{ API, 0, FI_MR_BASIC | FI_MR_SCALABLE, 0, REFUSED, 0 },
	/* hardware that wants something */
	{ API, FI_MR_LOCAL | FI_MR_VIRT_ADDR, 0, 0, REFUSED, 0 },
	{ API, FI_MR_LOCAL, FI_MR_LOCAL | FI_MR_ENDPOINT, 0, MATCHES, FI_MR_LOCAL },
	{ API, FI_MR_VIRT_ADDR, FI_MR_BASIC, 0, MATCHES, FI_MR_BASIC },
	{ API, FI_MR_VIRT_ADDR, FI_MR_SCALABLE, 0, REFUSED, 0 },
	{ API, FI_MR_LOCAL, FI_MR_BASIC, 0, REFUSED, 0 },
	{ API, FI_MR_LOCAL, FI_MR_BASIC, FI_LOCAL_MR, MATCHES, FI_MR_BASIC },
	/* before 1.5 */
	{ FI_VERSION(1, 4), 0, 0, 0, MATCHES, FI_MR_SCALABLE },
	{ FI_VERSION(1, 4), 0, FI_MR_BASIC, 0, MATCHES, FI_MR_BASIC },
	{ FI_VERSION(1, 4), 0, FI_MR_SCALABLE, 0, MATCHES, FI_MR_SCALABLE },
	{ FI_VERSION(1, 4), 0, FI_MR_VIRT_ADDR, 0, MATCHES, FI_MR_VIRT_ADDR },
	{ FI_VERSION(1, 4), FI_MR_VIRT_ADDR, 0, 0, MATCHES, FI_MR_BASIC },
	{ FI_VERSION(1, 4), FI_MR_VIRT_ADDR, FI_MR_SCALABLE, 0, REFUSED, 0 },
	{ FI_VERSION(1, 4), FI_MR_LOCAL, 0, 0, REFUSED, 0 },
	{ FI_VERSION(1, 4), FI_MR_LOCAL, 0, FI_LOCAL_MR, MATCHES, FI_MR_SCALABLE },
};

/* Keys and addresses of regions are nothing to clients whose memory nobody is to reach: Open MPI asks so. */
static void mr_mode_of_messages_alone(void **state)
{
	const struct {
		uint64_t caps;
		int result, answer;
	} rows[] = {
		{ 0, REFUSED, 0 }, { FI_MSG, MATCHES, FI_MR_LOCAL }, { FI_MSG | FI_RMA, REFUSED, 0 },
	};
	struct fi_info *hints, *info;
	struct offers offers;

	(void) state;
	offers_make(&offers);
	for (size_t i = 0; i < fab_countof(rows); i++) {
		offers.offer[0].mr_mode_need = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
		hints = fi_allocinfo();
		hints->caps = rows[i].caps;
		hints->domain_attr->mr_mode = FI_MR_LOCAL;
		hear_nothing(true);
		info = NULL;
		assert_int_equal(fab_match_info(&test_prov, API, hints, offers.offer, 1, &info),
				 rows[i].result == MATCHES ? 0 : -FI_ENODATA);
		if (info)
			assert_int_equal(info->domain_attr->mr_mode, rows[i].answer);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
	offers_free(&offers);
}

static void mr_mode_by_version_need_and_hint(void **state)
{
	struct fi_info *hints, *info;
	struct offers offers;

	(void) state;
	offers_make(&offers);
	for (size_t i = 0; i < fab_countof(mr_rows); i++) {
		offers.offer[0].mr_mode_need = mr_rows[i].need;
		hints = fi_allocinfo();
		hints->mode = mr_rows[i].mode;
		hints->domain_attr->mr_mode = mr_rows[i].hint;
		hear_nothing(true);
		info = NULL;
		assert_int_equal(fab_match_info(&test_prov, mr_rows[i].version, hints, offers.offer, 1, &info),
				 mr_rows[i].result == MATCHES ? 0 : -FI_ENODATA);
		if (info) {
			assert_int_equal(info->domain_attr->mr_mode, mr_rows[i].answer);
			assert_int_equal(info->mode, mr_rows[i].mode);
		} else {
			assert_string_equal(heard.attrs, "domain_attr->mr_mode");
		}
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
	offers_free(&offers);
}

static void basic_is_refused_where_keys_are_the_applications(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct offers offers;

	(void) state;
	offers_make(&offers);
	offers.offer[0].mr_mode_can = 0;
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	assert_int_equal(fab_match_info(&test_prov, API, hints, offers.offer, 1, &info), -FI_ENODATA);
	fi_freeinfo(hints);
	offers_free(&offers);
}

/* ---- modes ---- */

static void a_mode_that_is_wanted_must_be_allowed(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct offers offers;

	(void) state;
	offers_make(&offers);
	offers.info[0]->mode = FI_RX_CQ_DATA;
	hear_nothing(true);
	assert_int_equal(fab_match_info(&test_prov, API, hints, offers.offer, 1, &info), -FI_ENODATA);
	assert_string_equal(heard.attrs, "mode");
	assert_non_null(strstr(heard.offered, "FI_RX_CQ_DATA"));
	hints->mode = FI_RX_CQ_DATA | FI_CONTEXT;
	assert_int_equal(fab_match_info(&test_prov, API, hints, offers.offer, 1, &info), 0);
	assert_int_equal(info->mode, FI_RX_CQ_DATA);
	fi_freeinfo(info);
	assert_int_equal(fab_match_info(&test_prov, API, NULL, offers.offer, 1, &info), 0);
	assert_int_equal(info->mode, FI_RX_CQ_DATA);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	offers_free(&offers);
}

static void modes_that_nobody_wants_are_cleared(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	(void) state;
	hints->mode = UINT64_MAX;
	info = ask(API, hints);
	assert_int_equal(info->mode, 0);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ---- address formats, names, handles ---- */

static unsigned count(const struct fi_info *info)
{
	unsigned cnt = 0;

	for (; info; info = info->next)
		cnt++;
	return cnt;
}

static void address_formats(void **state)
{
	static const struct { uint32_t hint; unsigned cnt; } formats[] = {
		{ FI_FORMAT_UNSPEC, 2 }, { FI_SOCKADDR, 2 }, { FI_SOCKADDR_IP, 2 }, { FI_SOCKADDR_IN, 1 },
		{ FI_SOCKADDR_IN6, 1 }, { FI_SOCKADDR_IB, 0 }, { FI_ADDR_STR, 0 }, { 9999, 0 },
	};
	struct fi_info *hints = fi_allocinfo(), *info;

	(void) state;
	for (size_t i = 0; i < fab_countof(formats); i++) {
		hints->addr_format = formats[i].hint;
		info = ask(API, hints);
		assert_int_equal(count(info), formats[i].cnt);
		assert_stable(API, info);
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
}

static void names_are_exact(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	char long_name[70000];

	(void) state;
	hints->fabric_attr->name = strdup("192.0.2.0/24");
	info = ask(API, hints);
	assert_int_equal(count(info), 1);
	fi_freeinfo(info);
	hints->domain_attr->name = strdup("eth0");
	info = ask(API, hints);
	assert_int_equal(count(info), 1);
	fi_freeinfo(info);
	free(hints->domain_attr->name);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	hints->domain_attr->name = strdup(long_name);
	hear_nothing(true);
	assert_null(ask(API, hints));
	assert_string_equal(heard.attrs, "domain_attr->name fabric_attr->name domain_attr->name");
	fi_freeinfo(hints);
}

static struct fi_ops fid_ops;
static struct fi_ops_fabric fabric_ops;
static struct fi_ops_domain domain_ops;

static void handles_pick_what_is_open(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fab_fabric fabric;
	struct fab_domain domain;
	struct fid_domain other;

	(void) state;
	info = ask(API, NULL);
	assert_null(info->fabric_attr->fabric);
	assert_int_equal(fab_fabric_init(&fabric, &test_prov, info->fabric_attr, &fid_ops, &fabric_ops, NULL), 0);
	assert_int_equal(fab_domain_init(&domain, &fabric, info, &fid_ops, &domain_ops, &fab_mr_ops, NULL), 0);
	fi_freeinfo(info);

	/* the answer knows it ... */
	info = ask(API, NULL);
	assert_ptr_equal(info->fabric_attr->fabric, &fabric.fabric_fid);
	assert_ptr_equal(info->domain_attr->domain, &domain.domain_fid);
	assert_null(info->next->fabric_attr->fabric);
	fi_freeinfo(info);
	/* ... and asked for it, gives its entry only */
	hints->domain_attr->domain = &domain.domain_fid;
	info = ask(API, hints);
	assert_int_equal(count(info), 1);
	assert_ptr_equal(info->domain_attr->domain, &domain.domain_fid);
	assert_stable(API, info);
	fi_freeinfo(info);
	/* a handle is never looked into */
	hints->domain_attr->domain = &other;
	hear_nothing(true);
	assert_null(ask(API, hints));
	assert_string_equal(heard.attrs, "domain_attr->domain domain_attr->domain");
	hints->domain_attr->domain = NULL;
	hints->fabric_attr->fabric = &fabric.fabric_fid;
	info = ask(API, hints);
	assert_int_equal(count(info), 1);

	assert_int_equal(fab_fabric_fini(&fabric), -FI_EBUSY);
	assert_int_equal(fab_domain_fini(&domain), 0);
	assert_int_equal(fab_fabric_fini(&fabric), 0);
	assert_null(ask(API, hints));
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static void a_passive_endpoint_as_handle_comes_back(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_pep pep = { .fid.fclass = FI_CLASS_PEP };
	struct fid_ep ep = { .fid.fclass = FI_CLASS_EP };

	(void) state;
	hints->handle = &pep.fid;
	info = ask(API, hints);
	assert_ptr_equal(info->handle, &pep.fid);
	fi_freeinfo(info);
	hints->handle = &ep.fid;
	info = ask(API, hints);
	assert_null(info->handle);
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

/* ---- the whole ---- */

static void null_and_zeroed_hints_give_every_entry_in_order(void **state)
{
	struct fi_info blank = { 0 }, *zeroed = fi_allocinfo(), *info;
	const struct fi_info *hints[] = { NULL, &blank, zeroed };

	(void) state;
	for (size_t i = 0; i < fab_countof(hints); i++) {
		info = ask(API, hints[i]);
		assert_int_equal(count(info), 2);
		assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
		assert_int_equal(info->next->addr_format, FI_SOCKADDR_IN6);
		assert_int_equal(info->src_addrlen, sizeof(struct sockaddr_in));
		assert_stable(API, info);
		fi_freeinfo(info);
	}
	fi_freeinfo(zeroed);
}

/* Hints made of any of the rows that match, several at a time. */
static void any_answer_fed_back_gives_itself(void **state)
{
	static const uint64_t caps[] = { 0, FI_MSG, FI_TAGGED | FI_SEND, FI_RMA, FI_RMA | FI_READ,
					 FI_MSG | FI_RMA | FI_SOURCE, FI_MSG | FI_REMOTE_COMM };
	static const uint32_t versions[] = { API, FI_VERSION(1, 5), FI_VERSION(1, 4), FI_VERSION(1, 0) };
	struct rng rng = { 3 };
	struct fi_info *hints, *info;
	unsigned matched = 0;

	(void) state;
	for (int n = 0; n < 500; n++) {
		uint32_t version = versions[rng_below(&rng, fab_countof(versions))];

		hints = fi_allocinfo();
		hints->caps = caps[rng_below(&rng, fab_countof(caps))];
		for (int k = 0; k < 4; k++) {
			const struct row *row = &rows[rng_below(&rng, fab_countof(rows))];

			if (row->result == MATCHES)
				set(hints, row);
		}
		info = ask(version, hints);
		matched += !!info;
		assert_stable(version, info);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
	assert_true(matched > 400);
}

static void nothing_is_told_unless_it_is_wanted(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	(void) state;
	hear_nothing(true);
	info = ask(API, hints);
	assert_int_equal(heard.cnt, 0);
	fi_freeinfo(info);
	hints->tx_attr->inject_size = SIZE_MAX;
	hear_nothing(false);
	assert_null(ask(API, hints));
	assert_int_equal(heard.cnt, 0);
	fi_freeinfo(hints);
}

static void every_mismatch_is_told(void **state)
{
	struct fi_info *hints = fi_allocinfo();

	(void) state;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->caps = FI_ATOMIC;
	hints->tx_attr->inject_size = 1000;
	hints->ep_attr->type = FI_EP_DGRAM;
	hear_nothing(true);
	assert_null(ask(API, hints));
	assert_string_equal(heard.attrs, "ep_attr->type tx_attr->inject_size caps "
			    "addr_format ep_attr->type tx_attr->inject_size caps");
	fi_freeinfo(hints);
}

static void a_foreign_core_is_told_nothing(void **state)
{
	struct fi_provider foreign = { .name = "foreign" };
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	struct offers offers;

	(void) state;
	offers_make(&offers);
	hints->caps = FI_ATOMIC;
	assert_int_equal(fab_match_info(&foreign, API, hints, offers.offer, 2, &info), -FI_ENODATA);
	assert_null(info);
	offers_free(&offers);
	fi_freeinfo(hints);
}

static void no_memory_is_an_error_and_leaves_nothing(void **state)
{
	struct fi_info *info = NULL;
	struct offers offers;
	int ret = -FI_ENOMEM;

	(void) state;
	offers_make(&offers);
	hear_nothing(false);
	for (long n = 0; ret; n++) {
		fail_alloc(n);
		ret = fab_match_info(&test_prov, API, NULL, offers.offer, 2, &info);
		fail_alloc(-1);
		assert_true(ret == 0 || ret == -FI_ENOMEM);
		assert_true(n < 100);
	}
	fi_freeinfo(info);
	offers_free(&offers);
}

/* ---- an info that comes back ---- */

static void an_info_may_be_opened_with_less_but_not_with_more(void **state)
{
	struct fi_info *info = ask(API, NULL);
	struct offers offers;

	(void) state;
	offers_make(&offers);
	assert_int_equal(fab_match_check(&test_prov, API, info, offers.offer, 2), 0);
	info->caps = FI_MSG | FI_RECV;
	info->domain_attr->data_progress = FI_PROGRESS_AUTO;
	info->domain_attr->domain = (struct fid_domain *) &offers;
	free(info->domain_attr->name);
	info->domain_attr->name = NULL;
	assert_int_equal(fab_match_check(&test_prov, API, info, offers.offer, 2), 0);
	info->caps |= FI_ATOMIC;
	assert_int_equal(fab_match_check(&test_prov, API, info, offers.offer, 2), -FI_EINVAL);
	info->caps &= ~FI_ATOMIC;
	info->tx_attr->inject_size = 1 << 20;
	assert_int_equal(fab_match_check(&test_prov, API, info, offers.offer, 2), -FI_EINVAL);
	assert_int_equal(fab_match_check(&test_prov, API, info, offers.offer, 0), -FI_EINVAL);
	offers_free(&offers);
	fi_freeinfo(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_attribute_by_its_rule),
		cmocka_unit_test(primary_caps_come_only_when_asked_for),
		cmocka_unit_test(no_caps_asked_gives_all),
		cmocka_unit_test(modifiers_default_to_all_and_restrict_when_given),
		cmocka_unit_test(secondary_caps_on_request_are_kept),
		cmocka_unit_test(caps_that_are_not_there_are_named),
		cmocka_unit_test(tx_and_rx_caps_are_part_of_the_whole),
		cmocka_unit_test(mr_mode_of_messages_alone),
		cmocka_unit_test(mr_mode_by_version_need_and_hint),
		cmocka_unit_test(basic_is_refused_where_keys_are_the_applications),
		cmocka_unit_test(a_mode_that_is_wanted_must_be_allowed),
		cmocka_unit_test(modes_that_nobody_wants_are_cleared),
		cmocka_unit_test(address_formats),
		cmocka_unit_test(names_are_exact),
		cmocka_unit_test(handles_pick_what_is_open),
		cmocka_unit_test(a_passive_endpoint_as_handle_comes_back),
		cmocka_unit_test(null_and_zeroed_hints_give_every_entry_in_order),
		cmocka_unit_test(any_answer_fed_back_gives_itself),
		cmocka_unit_test(nothing_is_told_unless_it_is_wanted),
		cmocka_unit_test(every_mismatch_is_told),
		cmocka_unit_test(a_foreign_core_is_told_nothing),
		cmocka_unit_test(no_memory_is_an_error_and_leaves_nothing),
		cmocka_unit_test(an_info_may_be_opened_with_less_but_not_with_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
