/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The matcher's table, attribute by attribute: hints against made-up offers, and what the answer has.
 */
#include "unit.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include "base/bits.h"
#include "offer.h"

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
	{ ATTR(rx_attr, total_buffered_recv), 0, MATCHES, 0 },
	{ ATTR(rx_attr, total_buffered_recv), SIZE_MAX, MATCHES, SIZE_MAX },
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
	{ ATTR(domain_attr, resource_mgmt), FI_RM_DISABLED, MATCHES, FI_RM_ENABLED },
	{ ATTR(domain_attr, resource_mgmt), FI_RM_ENABLED, MATCHES, FI_RM_ENABLED },
	{ ATTR(domain_attr, av_type), 0, MATCHES, FI_AV_UNSPEC },
	{ ATTR(domain_attr, av_type), FI_AV_MAP, MATCHES, FI_AV_MAP },
	{ ATTR(domain_attr, av_type), FI_AV_TABLE, MATCHES, FI_AV_TABLE },
	{ ATTR(domain_attr, av_type), 3, REFUSED, 0 },
	{ ATTR(domain_attr, tclass), FI_TC_BEST_EFFORT, MATCHES, FI_TC_BEST_EFFORT },
	{ ATTR(domain_attr, tclass), FI_TC_LOW_LATENCY, MATCHES, FI_TC_UNSPEC },
	{ ATTR(tx_attr, tclass), FI_TC_BULK_DATA, MATCHES, FI_TC_UNSPEC },
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
		info = offers_ask(API, hints);
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
		offers_assert_stable(API, info);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
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
		info = offers_ask(version, hints);
		matched += !!info;
		offers_assert_stable(version, info);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
	assert_true(matched > 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_attribute_by_its_rule),
		cmocka_unit_test(any_answer_fed_back_gives_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
