/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * How long a peer waits that met no receive, FI_VERBS_MIN_RNR_TIMER, is set in both queue pairs of a connection, once
 * there is one. And errors of a connection manager that come when there is one already, or no more, or in fi_accept().
 * The device is test/softverbs'; the program is both ends of it.
 */
#include <errno.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/unit.h"
#include "verbs/kind.h"
#include "../softverbs/stand_in.h"

#define WANTED		7
#define PATIENCE_MS	60000

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_pep *pep;
static struct fi_info *info;
static union fab_sockaddr listens_at;

static struct fid_ep *open_ep(struct fi_info *of)
{
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(domain, of, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &eq->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	return ep;
}

/* The next event, which is this one. NULL, or the info of a request. */
static struct fi_info *await(uint32_t wanted)
{
	struct fi_eq_cm_entry entry = { 0 };
	uint32_t event;

	assert_int_equal(fi_eq_sread(eq, &event, &entry, sizeof(entry), PATIENCE_MS, 0), sizeof(entry));
	assert_int_equal(event, wanted);
	return entry.info;
}

static int timer_of(struct fid_ep *ep)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(vrb_ep_of(&ep->fid)->qp, &attr, IBV_QP_MIN_RNR_TIMER, &init), 0);
	return attr.min_rnr_timer;
}

static struct fi_info *find(void)
{
	struct fi_info *hints = fi_allocinfo(), *found;

	hints->fabric_attr->prov_name = strdup("verbs");
	hints->ep_attr->type = FI_EP_MSG;
	hints->ep_attr->protocol = FI_PROTO_RDMA_CM_IB_RC;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &found), 0);
	fi_freeinfo(hints);
	return found;
}

/* Let errors come for an endpoint whose attempt to connect is over: nothing is told. */
static void say_late_errors(struct fid_ep *fid)
{
	static const enum rdma_cm_event_type late[] = {
		RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_CONNECT_ERROR,
		RDMA_CM_EVENT_UNREACHABLE, RDMA_CM_EVENT_REJECTED,
	};
	struct vrb_ep *ep = vrb_ep_of(&fid->fid);
	struct fi_eq_cm_entry entry;
	uint32_t event;

	for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
		const struct rdma_cm_event error = { .event = late[i], .status = -ETIMEDOUT };

		fab_engine_lock(ep->base.engine);
		vrb_cm_event(ep, &error);
		fab_engine_unlock(ep->base.engine);
		assert_int_equal(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	}
}

static int setup(void **state)
{
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT };
	size_t len = sizeof(listens_at);

	(void) state;
	info = find();
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_eq_open(fabric, &eq_attr, &eq, NULL), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
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
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&eq->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
	return 0;
}

/* An endpoint that connects, and one for its request. */
static void ask(struct fid_ep **active, struct fid_ep **passive)
{
	struct fi_info *request;

	*active = open_ep(info);
	assert_int_equal(fi_connect(*active, &listens_at, NULL, 0), 0);
	request = await(FI_CONNREQ);
	*passive = open_ep(request);
	fi_freeinfo(request);
}

static void both_ends_have_the_timer(void **state)
{
	struct fid_ep *active, *passive;
	unsigned (*modify_cnt)(void), before;

	(void) state;
	modify_cnt = stand_in("sv_test_modify_cnt");
	before = modify_cnt();
	ask(&active, &passive);
	assert_int_equal(fi_accept(passive, NULL, 0), 0);
	assert_int_equal(timer_of(passive), WANTED);	/* a peer sends as soon as it hears */
	await(FI_CONNECTED);
	await(FI_CONNECTED);
	assert_int_equal(timer_of(active), WANTED);
	assert_int_equal(timer_of(passive), WANTED);
	assert_int_equal(modify_cnt() - before, 2);	/* each is a command of the device's firmware */
	say_late_errors(active);
	assert_int_equal(fi_shutdown(active, 0), 0);
	await(FI_SHUTDOWN);
	await(FI_SHUTDOWN);
	say_late_errors(active);
	assert_int_equal(fi_close(&active->fid), 0);
	assert_int_equal(fi_close(&passive->fid), 0);
}

static enum fi_stats_conn shown(struct fid_ep *ep)
{
	return (enum fi_stats_conn) vrb_ep_of(&ep->fid)->stats->conn;
}

/* Nothing is pending any more in the page of the process. */
static void an_accept_that_fails_is_over(void **state)
{
	struct fid_ep *active, *passive;

	(void) state;
	ask(&active, &passive);
	setenv("SOFTVERBS_FAIL", "rdma_accept:1+=EIO", 1);
	assert_int_equal(fi_accept(passive, NULL, 0), -FI_EIO);
	assert_int_equal(shown(active), FI_STATS_CONN_CONNECTING);
	assert_int_equal(shown(passive), FI_STATS_CONN_DOWN);
	assert_int_equal(fi_close(&passive->fid), 0);
	assert_int_equal(fi_close(&active->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_have_the_timer), cmocka_unit_test(an_accept_that_fails_is_over),
	};

	return setenv("FI_VERBS_MIN_RNR_TIMER", "7", 1) || !vrb_lib_ready() ||
	       cmocka_run_group_tests(tests, setup, teardown);
}
