/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Hints against made-up offers: what matches, what the answer says, what a refusal names. The attributes that stand
 * alone are in match_rules.c.
 */
#include "unit.h"

#include <stdio.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include "common/endpoint/ep.h"
#include "common/domain/domain.h"
#include "common/hints/hints.h"
#include "common/memory/memory.h"
#include "offer.h"

/* ---- capabilities ---- */

static const uint64_t rma_bits = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

static struct fi_info *ask_caps(uint64_t caps, uint64_t tx, uint64_t rx)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->caps = caps;
	hints->tx_attr->caps = tx;
	hints->rx_attr->caps = rx;
	hear_nothing(true);
	info = offers_ask(API, hints);
	offers_assert_stable(API, info);
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
	{ API, 0, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_LOCAL, 0, MATCHES, 0 },
	{ API, 0, FI_MR_RMA_EVENT, 0, MATCHES, 0 },
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
	{ FI_VERSION(1, 4), 0, 0, 0, MATCHES, FI_MR_BASIC },
	{ FI_VERSION(1, 4), 0, FI_MR_BASIC, 0, MATCHES, FI_MR_BASIC },
	{ FI_VERSION(1, 4), 0, FI_MR_SCALABLE, 0, MATCHES, FI_MR_SCALABLE },
	{ FI_VERSION(1, 4), 0, FI_MR_VIRT_ADDR, 0, MATCHES, 0 },
	{ FI_VERSION(1, 4), FI_MR_VIRT_ADDR, 0, 0, MATCHES, FI_MR_BASIC },
	{ FI_VERSION(1, 4), FI_MR_VIRT_ADDR, FI_MR_SCALABLE, 0, REFUSED, 0 },
	{ FI_VERSION(1, 4), FI_MR_LOCAL, 0, 0, REFUSED, 0 },
	{ FI_VERSION(1, 4), FI_MR_LOCAL, 0, FI_LOCAL_MR, MATCHES, FI_MR_BASIC },
};

/* Keys and addresses of regions are nothing to clients whose memory nobody is to reach: Open MPI asks so. Who asks for
 * nothing gets what it can have without. */
static void mr_mode_of_messages_alone(void **state)
{
	const struct {
		uint64_t caps;
		int result, answer;
	} rows[] = {
		{ 0, MATCHES, FI_MR_LOCAL }, { FI_MSG, MATCHES, FI_MR_LOCAL }, { FI_MSG | FI_RMA, REFUSED, 0 },
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
		assert_int_equal(fab_hints_match(&test_prov, API, hints, offers.offer, 1, &info),
				 rows[i].result == MATCHES ? 0 : -FI_ENODATA);
		if (info)
			assert_int_equal(info->domain_attr->mr_mode, rows[i].answer);
		if (info)
			assert_int_equal(info->caps & (FI_MSG | FI_RMA | FI_REMOTE_WRITE), FI_MSG);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
	offers_free(&offers);
}

/* Hints for manual progress of data alone get no thread for control, either, where it would be there unasked. */
static void control_follows_data_where_hints_leave_it_open(void **state)
{
	static const struct {
		enum fi_progress data, control, answer;
	} rows[] = {
		{ FI_PROGRESS_UNSPEC, FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO },
		{ FI_PROGRESS_MANUAL, FI_PROGRESS_UNSPEC, FI_PROGRESS_MANUAL },
		{ FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO, FI_PROGRESS_AUTO },
		{ FI_PROGRESS_AUTO, FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO },
	};
	struct fi_info *hints, *info;
	struct offers offers;

	(void) state;
	offers_make(&offers);
	offers.info[0]->domain_attr->control_progress = FI_PROGRESS_AUTO;
	offers.info[0]->domain_attr->data_progress = FI_PROGRESS_AUTO;
	for (size_t i = 0; i < fab_countof(rows); i++) {
		hints = fi_allocinfo();
		hints->domain_attr->data_progress = rows[i].data;
		hints->domain_attr->control_progress = rows[i].control;
		hints->caps = FI_MSG;
		hear_nothing(true);
		assert_int_equal(fab_hints_match(&test_prov, API, hints, offers.offer, 1, &info), 0);
		assert_int_equal(info->domain_attr->control_progress, rows[i].answer);
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
		hints->caps = FI_MSG | FI_RMA;
		hints->mode = mr_rows[i].mode;
		hints->domain_attr->mr_mode = mr_rows[i].hint;
		hear_nothing(true);
		info = NULL;
		assert_int_equal(fab_hints_match(&test_prov, mr_rows[i].version, hints, offers.offer, 1, &info),
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
	offers.offer[0].mr_basic = false;
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	assert_int_equal(fab_hints_match(&test_prov, API, hints, offers.offer, 1, &info), -FI_ENODATA);
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
	assert_int_equal(fab_hints_match(&test_prov, API, hints, offers.offer, 1, &info), -FI_ENODATA);
	assert_string_equal(heard.attrs, "mode");
	assert_non_null(strstr(heard.offered, "FI_RX_CQ_DATA"));
	hints->mode = FI_RX_CQ_DATA | FI_CONTEXT;
	assert_int_equal(fab_hints_match(&test_prov, API, hints, offers.offer, 1, &info), 0);
	assert_int_equal(info->mode, FI_RX_CQ_DATA);
	fi_freeinfo(info);
	assert_int_equal(fab_hints_match(&test_prov, API, NULL, offers.offer, 1, &info), 0);
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
	info = offers_ask(API, hints);
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
		info = offers_ask(API, hints);
		assert_int_equal(count(info), formats[i].cnt);
		offers_assert_stable(API, info);
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
	info = offers_ask(API, hints);
	assert_int_equal(count(info), 1);
	fi_freeinfo(info);
	hints->domain_attr->name = strdup("eth0");
	info = offers_ask(API, hints);
	assert_int_equal(count(info), 1);
	fi_freeinfo(info);
	free(hints->domain_attr->name);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	hints->domain_attr->name = strdup(long_name);
	hear_nothing(true);
	assert_null(offers_ask(API, hints));
	assert_string_equal(heard.attrs, "domain_attr->name fabric_attr->name domain_attr->name");
	fi_freeinfo(hints);
}

static struct fi_ops fid_ops;
static struct fi_ops_fabric fabric_ops;
static struct fi_ops_domain domain_ops;

static void handles_pick_what_is_open(void **state)
{
	const struct fab_domain_ops tables = { .fid = &fid_ops, .domain = &domain_ops, .mr = &fab_mr_ops };
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fab_fabric fabric;
	struct fab_domain domain = { 0 };
	struct fid_domain other;

	(void) state;
	info = offers_ask(API, NULL);
	assert_null(info->fabric_attr->fabric);
	assert_int_equal(fab_fabric_init(&fabric, &test_prov, info->fabric_attr, &fid_ops, &fabric_ops, NULL), 0);
	assert_int_equal(fab_domain_init(&domain, &fabric, info, &tables, NULL), 0);
	fi_freeinfo(info);

	/* the answer knows it ... */
	info = offers_ask(API, NULL);
	assert_ptr_equal(info->fabric_attr->fabric, &fabric.fabric_fid);
	assert_ptr_equal(info->domain_attr->domain, &domain.domain_fid);
	assert_null(info->next->fabric_attr->fabric);
	fi_freeinfo(info);
	/* ... and asked for it, gives its entry only */
	hints->domain_attr->domain = &domain.domain_fid;
	info = offers_ask(API, hints);
	assert_int_equal(count(info), 1);
	assert_ptr_equal(info->domain_attr->domain, &domain.domain_fid);
	offers_assert_stable(API, info);
	fi_freeinfo(info);
	/* a handle is never looked into */
	hints->domain_attr->domain = &other;
	hear_nothing(true);
	assert_null(offers_ask(API, hints));
	assert_string_equal(heard.attrs, "domain_attr->domain domain_attr->domain");
	hints->domain_attr->domain = NULL;
	hints->fabric_attr->fabric = &fabric.fabric_fid;
	info = offers_ask(API, hints);
	assert_int_equal(count(info), 1);

	assert_int_equal(fab_fabric_fini(&fabric), -FI_EBUSY);
	assert_int_equal(fab_domain_fini(&domain), 0);
	assert_int_equal(fab_fabric_fini(&fabric), 0);
	assert_null(offers_ask(API, hints));
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
	info = offers_ask(API, hints);
	assert_ptr_equal(info->handle, &pep.fid);
	fi_freeinfo(info);
	hints->handle = &ep.fid;
	info = offers_ask(API, hints);
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
		info = offers_ask(API, hints[i]);
		assert_int_equal(count(info), 2);
		assert_int_equal(info->addr_format, FI_SOCKADDR_IN);
		assert_int_equal(info->next->addr_format, FI_SOCKADDR_IN6);
		assert_int_equal(info->src_addrlen, sizeof(struct sockaddr_in));
		offers_assert_stable(API, info);
		fi_freeinfo(info);
	}
	fi_freeinfo(zeroed);
}

static void nothing_is_told_unless_it_is_wanted(void **state)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	(void) state;
	hear_nothing(true);
	info = offers_ask(API, hints);
	assert_int_equal(heard.cnt, 0);
	fi_freeinfo(info);
	hints->tx_attr->inject_size = SIZE_MAX;
	hear_nothing(false);
	assert_null(offers_ask(API, hints));
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
	assert_null(offers_ask(API, hints));
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
	assert_int_equal(fab_hints_match(&foreign, API, hints, offers.offer, 2, &info), -FI_ENODATA);
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
		ret = fab_hints_match(&test_prov, API, NULL, offers.offer, 2, &info);
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
	struct fi_info *info = offers_ask(API, NULL);
	struct offers offers;

	(void) state;
	offers_make(&offers);
	assert_int_equal(fab_hints_check(&test_prov, API, info, offers.offer, 2), 0);
	info->caps = FI_MSG | FI_RECV;
	info->domain_attr->data_progress = FI_PROGRESS_AUTO;
	info->domain_attr->domain = (struct fid_domain *) &offers;
	free(info->domain_attr->name);
	info->domain_attr->name = NULL;
	assert_int_equal(fab_hints_check(&test_prov, API, info, offers.offer, 2), 0);
	info->caps |= FI_ATOMIC;
	assert_int_equal(fab_hints_check(&test_prov, API, info, offers.offer, 2), -FI_EINVAL);
	info->caps &= ~FI_ATOMIC;
	info->tx_attr->inject_size = 1 << 20;
	assert_int_equal(fab_hints_check(&test_prov, API, info, offers.offer, 2), -FI_EINVAL);
	assert_int_equal(fab_hints_check(&test_prov, API, info, offers.offer, 0), -FI_EINVAL);
	offers_free(&offers);
	fi_freeinfo(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(primary_caps_come_only_when_asked_for),
		cmocka_unit_test(no_caps_asked_gives_all),
		cmocka_unit_test(modifiers_default_to_all_and_restrict_when_given),
		cmocka_unit_test(secondary_caps_on_request_are_kept),
		cmocka_unit_test(caps_that_are_not_there_are_named),
		cmocka_unit_test(tx_and_rx_caps_are_part_of_the_whole),
		cmocka_unit_test(mr_mode_of_messages_alone),
		cmocka_unit_test(control_follows_data_where_hints_leave_it_open),
		cmocka_unit_test(mr_mode_by_version_need_and_hint),
		cmocka_unit_test(basic_is_refused_where_keys_are_the_applications),
		cmocka_unit_test(a_mode_that_is_wanted_must_be_allowed),
		cmocka_unit_test(modes_that_nobody_wants_are_cleared),
		cmocka_unit_test(address_formats),
		cmocka_unit_test(names_are_exact),
		cmocka_unit_test(handles_pick_what_is_open),
		cmocka_unit_test(a_passive_endpoint_as_handle_comes_back),
		cmocka_unit_test(null_and_zeroed_hints_give_every_entry_in_order),
		cmocka_unit_test(nothing_is_told_unless_it_is_wanted),
		cmocka_unit_test(every_mismatch_is_told),
		cmocka_unit_test(a_foreign_core_is_told_nothing),
		cmocka_unit_test(no_memory_is_an_error_and_leaves_nothing),
		cmocka_unit_test(an_info_may_be_opened_with_less_but_not_with_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
