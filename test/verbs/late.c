/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints that close while their device does not flush them: what they had outstanding is cancelled, once, and their
 * memory stays as long as a completion may refer to it, and no longer. The device is test/softverbs'; the program is
 * both ends of each connection, and its clock runs while an endpoint closes.
 */
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/unit.h"
#include "verbs/kind.h"

#define PATIENCE_MS	60000
#define KEPT_MAX	64		/* doc/decisions/verbs.md */
#define LEN		8

/* prov.c. It is called past the core, so that the provider is the program's, with its clock. */
struct fi_provider *fab_verbs_prov_ini(void);

static struct fi_provider *prov;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_pep *pep;
static struct fid_mr *mr;
static struct fi_info *info;
static union fab_sockaddr listens_at;
static char room[2 * LEN];

/* ---- the clock ---- */

static _Atomic uint64_t ahead_ns;
static _Atomic bool hurries;

static uint64_t now_ns(void)
{
	if (hurries)
		ahead_ns += 100000000;
	return fab_system_clock.now_ns() + ahead_ns;
}

static uint64_t random64(void)
{
	return fab_system_clock.random64();
}

static const struct fab_clock_ops clock_ops = { .now_ns = now_ns, .random64 = random64 };

/* ---- connections ---- */

static struct fid_ep *open_ep(struct fi_info *of)
{
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(domain, of, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	return ep;
}

static struct fi_info *await(uint32_t wanted)
{
	struct fi_eq_cm_entry entry = { 0 };
	uint32_t event;

	do
		assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), PATIENCE_MS, 0), sizeof(entry));
	while (event == FI_SHUTDOWN);
	assert_int_equal(event, wanted);
	return entry.info;
}

static void connect_both(struct fid_ep **a, struct fid_ep **b)
{
	struct fi_info *request;

	*a = open_ep(info);
	assert_int_equal(fi_connect(*a, &listens_at, NULL, 0), 0);
	request = await(FI_CONNREQ);
	*b = open_ep(request);
	fi_freeinfo(request);
	assert_int_equal(fi_accept(*b, NULL, 0), 0);
	await(FI_CONNECTED);
	await(FI_CONNECTED);
}

static void expect_cancelled(void *context)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_data_entry entry;

	assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(cq, &err, 0), 1);
	assert_int_equal(err.err, FI_ECANCELED);
	assert_ptr_equal(err.op_context, context);
}

/* An endpoint with a send that meets no receive, and a receive, is closed. */
static void close_busy(void)
{
	struct fi_cq_data_entry entry;
	struct fid_ep *a, *b;

	connect_both(&a, &b);
	assert_int_equal(fi_recv(a, room, LEN, fi_mr_desc(mr), 0, &room[1]), 0);
	assert_int_equal(fi_send(a, room + LEN, LEN, fi_mr_desc(mr), 0, &room[0]), 0);
	hurries = true;
	assert_int_equal(fi_close(&a->fid), 0);
	hurries = false;
	expect_cancelled(&room[0]);
	expect_cancelled(&room[1]);
	assert_int_equal(fi_close(&b->fid), 0);
	assert_int_equal(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
}

static unsigned kept_cnt(void)
{
	const struct fab_list *list = &fab_container(domain, struct vrb_domain, base.domain_fid)->late, *link;
	unsigned cnt = 0;

	fab_list_for_each(list, link)
		cnt++;
	return cnt;
}

static int setup(void **state)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_DATA };
	size_t len = sizeof(listens_at);

	(void) state;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->ep_attr->type = FI_EP_MSG;
	hints->ep_attr->protocol = FI_PROTO_RDMA_CM_IB_RC;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	assert_int_equal(prov->getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), 0);
	fi_freeinfo(hints);
	assert_int_equal(prov->fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_eq_open(fabric, &eq_attr, &eq, NULL), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_mr_reg(domain, room, sizeof(room), FI_SEND | FI_RECV, 0, 0, 0, &mr, NULL), 0);
	assert_int_equal(fi_passive_ep(fabric, info, &pep, NULL), 0);
	assert_int_equal(fi_pep_bind(pep, &eq->fid, 0), 0);
	assert_int_equal(fi_listen(pep), 0);
	assert_int_equal(fi_getname(&pep->fid, &listens_at, &len), 0);
	return 0;
}

static int teardown(void **state)
{
	(void) state;
	assert_int_equal(fi_close(&pep->fid), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	prov->cleanup();
	return 0;
}

/* ---- tests ---- */

static void a_queue_pair_that_is_flushed_when_it_is_destroyed_leaves_nothing(void **state)
{
	(void) state;
	setenv("SOFTVERBS_LIMITS", "late_flush=1", 1);
	for (int i = 0; i < 3; i++)
		close_busy();
	assert_int_equal(kept_cnt(), 0);
}

static void of_those_that_are_never_flushed_a_bounded_number_is_kept(void **state)
{
	(void) state;
	setenv("SOFTVERBS_LIMITS", "late_flush=2", 1);
	for (unsigned i = 1; i <= KEPT_MAX + 6; i++) {
		close_busy();
		assert_int_equal(kept_cnt(), i < KEPT_MAX ? i : KEPT_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_queue_pair_that_is_flushed_when_it_is_destroyed_leaves_nothing),
		cmocka_unit_test(of_those_that_are_never_flushed_a_bounded_number_is_kept),
	};

	fab_clock = &clock_ops;
	/* probes and deadlines are no part of this */
	if (setenv("FI_VERBS_KEEPALIVE_INTERVAL", "0", 1) || setenv("FI_VERBS_STALL_TIMEOUT", "0", 1))
		return 1;
	prov = fab_verbs_prov_ini();
	return !vrb_lib_ready() || cmocka_run_group_tests(tests, setup, teardown);
}
