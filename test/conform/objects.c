/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Life of objects: what they say they are, who may be closed when, what an endpoint needs before it is enabled, and
 * calls on objects in the wrong state. Source: fi_fabric(3), fi_domain(3), fi_endpoint(3), fi_control(3).
 */
#include "ops.h"

/* ---- opening one object of each kind below a domain */

static struct fid *open_cq(struct side *s)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fid_cq *cq;

	MUST(fi_cq_open(s->domain, &attr, &cq, &attr));
	return &cq->fid;
}

static struct fid *open_cntr(struct side *s)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;

	MUST(fi_cntr_open(s->domain, &attr, &cntr, &attr));
	return &cntr->fid;
}

static struct fid *open_av(struct side *s)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fid_av *av;

	MUST(fi_av_open(s->domain, &attr, &av, &attr));
	return &av->fid;
}

static struct fid *open_ep(struct side *s)
{
	struct fid_ep *ep;

	MUST(fi_endpoint(s->domain, s->info, &ep, s));
	return &ep->fid;
}

static struct fid *open_mr(struct side *s)
{
	struct fid_mr *mr;

	MUST(fi_mr_reg(s->domain, mem(s->t, 64), 64, FI_SEND | FI_RECV, 0, 5, 0, &mr, s));
	return &mr->fid;
}

struct child_row {
	const char *name;
	struct fid *(*open)(struct side *s);
	size_t class;
	uint64_t caps;
};

static const struct child_row child_rows[] = {
	{ "cq", open_cq, FI_CLASS_CQ, FI_MSG }, { "cntr", open_cntr, FI_CLASS_CNTR, FI_MSG },
	{ "av", open_av, FI_CLASS_AV, FI_MSG }, { "ep", open_ep, FI_CLASS_EP, FI_MSG },
	{ "mr", open_mr, FI_CLASS_MR, FI_MSG | FI_RMA },
};

static void need_child(const struct child_row *row)
{
	if (row->open == open_av && run.type == FI_EP_MSG)
		ABSENT("MSG endpoints have no address vector");
	offer_check(row->caps);
}

/* A domain is busy as long as anything of it is open, and closes then. */
TEST_TABLE(domain_is_busy, child_rows, 0)
{
	const struct child_row *row = ROW(child_rows);
	struct side *s;
	struct fid *fid;

	need_child(row);
	s = domain_side(t, .caps = row->caps);
	fid = row->open(s);
	CHECK_EQ(fid->fclass, row->class);
	CHECK_RET(fi_close(&s->domain->fid), -FI_EBUSY);
	MUST(fi_close(fid));
	side_close(s);
}

/* The calls that every object has answer, also where the object has nothing behind them. */
TEST_TABLE(unknown_calls_of_a_child, child_rows, 0)
{
	const struct child_row *row = ROW(child_rows);
	struct side *s;
	struct fid *fid;
	void *ops;

	need_child(row);
	s = domain_side(t, .caps = row->caps);
	fid = row->open(s);
	CHECK_RET(fi_open_ops(fid, "no-such-ops", 0, &ops, NULL), -FI_ENOSYS);
	CHECK_RET(fi_set_ops(fid, "no-such-ops", 0, NULL, NULL), -FI_ENOSYS);
	CHECK(fi_control(fid, 7777, NULL) < 0);
	MUST(fi_close(fid));
	side_close(s);
}

/* A fabric is busy with a domain, an event queue, or a passive endpoint. */
TEST_PROV(fabric_is_busy, FI_MSG)
{
	struct side *s = domain_side(t, .eq = true);

	CHECK_RET(fi_close(&s->fabric->fid), -FI_EBUSY);
	close_now(t, &s->domain->fid);
	s->domain = NULL;
	CHECK_RET(fi_close(&s->fabric->fid), -FI_EBUSY);
	close_now(t, &s->eq->fid);
	s->eq = NULL;
	close_now(t, &s->fabric->fid);
}

/* A passive endpoint keeps its fabric and its event queue. */
TEST_PROV(pep_keeps_parents, FI_MSG, CONNECTED)
{
	struct side *s = listener_open(t);

	CHECK_RET(fi_close(&s->fabric->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&s->eq->fid), -FI_EBUSY);
	side_close(s);
}

/* What an endpoint is bound to is busy until the endpoint is closed; the refusal harms nothing. */
TEST_PROV(bound_objects_are_busy, FI_MSG)
{
	struct pair p = pair_open(t);

	CHECK_RET(fi_close(&p.a->tx_cq->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&p.a->rx_cq->fid), -FI_EBUSY);
	if (p.a->av)
		CHECK_RET(fi_close(&p.a->av->fid), -FI_EBUSY);
	if (p.a->eq)
		CHECK_RET(fi_close(&p.a->eq->fid), -FI_EBUSY);
	check_link(p.a, p.b);
	check_link(p.b, p.a);
	side_close(p.a);
}

/* Every object says what it is and gives its context back. */
TEST_PROV(class_and_context, FI_MSG)
{
	struct pair p = pair_open(t, .eq = true);
	struct side *s = p.a;

	CHECK_EQ(s->fabric->fid.fclass, FI_CLASS_FABRIC);
	CHECK_EQ(s->domain->fid.fclass, FI_CLASS_DOMAIN);
	CHECK_EQ(s->ep->fid.fclass, FI_CLASS_EP);
	CHECK_EQ(s->tx_cq->fid.fclass, FI_CLASS_CQ);
	CHECK_EQ(s->eq->fid.fclass, FI_CLASS_EQ);
	CHECK(s->fabric->fid.context == s && s->domain->fid.context == s && s->ep->fid.context == s);
	CHECK(s->tx_cq->fid.context == s && s->eq->fid.context == s);
	if (s->av) {
		CHECK_EQ(s->av->fid.fclass, FI_CLASS_AV);
		CHECK(s->av->fid.context == s);
	}
	if (p.listener)
		CHECK_EQ(p.listener->pep->fid.fclass, FI_CLASS_PEP);
}

/* The calls with a flags parameter, and 0 in it, open the same objects. */
TEST_PROV(second_forms, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fid_domain *domain;
	struct fid_ep *ep;

	MUST(fi_domain2(s->fabric, s->info, &domain, 0, s));
	own_fid(t, &domain->fid);
	MUST(fi_endpoint2(domain, s->info, &ep, 0, s));
	CHECK(ep->fid.context == s);
	MUST(fi_close(&ep->fid));
}

/* Two fabrics and domains of one info are two. */
TEST_PROV(same_info_twice, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	MUST(fi_fabric(s->info->fabric_attr, &fabric, NULL));
	own_fid(t, &fabric->fid);
	MUST(fi_domain(fabric, s->info, &domain, NULL));
	own_fid(t, &domain->fid);
	CHECK(domain != s->domain);
	MUST(fi_domain(s->fabric, s->info, &domain, NULL));
	own_fid(t, &domain->fid);
	CHECK(domain != s->domain);
}

/* Opening and closing leaves nothing, however often. */
TEST_PROV(open_close_many, FI_MSG)
{
	unsigned int i;

	for (i = 0; i < 30; i++) {
		struct pair p = pair_open(t);

		check_link(p.a, p.b);
		side_close(p.a);
		side_close(p.b);
		if (p.listener)
			side_close(p.listener);
	}
}

/* An endpoint that was never bound or enabled closes, and so do many. */
TEST_PROV(close_unbound_endpoints, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fid *fid[64];
	unsigned int i;

	if (!run.ours)
		ABSENT("upstream crashes");
	for (i = 0; i < COUNT(fid); i++)
		fid[i] = open_ep(s);
	for (i = 0; i < COUNT(fid); i++)
		MUST(fi_close(fid[i]));
}

/* ---- what fi_enable() needs */

enum lack { NO_TX_CQ, NO_RX_CQ, NO_CQ, NO_AV, NO_EQ };

struct lack_row {
	const char *name;
	enum lack lack;
	int ret;
};

static const struct lack_row lack_rows[] = {
	{ "tx_cq", NO_TX_CQ, -FI_ENOCQ }, { "rx_cq", NO_RX_CQ, -FI_ENOCQ }, { "cq", NO_CQ, -FI_ENOCQ },
	{ "av", NO_AV, -FI_ENOAV }, { "eq", NO_EQ, -FI_ENOEQ },
};

/* What is missing is named; once it is bound the endpoint is enabled. */
TEST_TABLE(enable_without, lack_rows, FI_MSG)
{
	const struct lack_row *row = ROW(lack_rows);
	struct side *s = domain_side(t);

	if (row->lack == (run.type == FI_EP_MSG ? NO_AV : NO_EQ))
		ABSENT("not needed by this endpoint type");
	side_open_cqs(s);
	if (run.type != FI_EP_MSG)
		side_open_av(s);
	side_open_ep(s);
	if (s->eq && row->lack != NO_EQ)
		MUST(fi_ep_bind(s->ep, &s->eq->fid, 0));
	if (s->av && row->lack != NO_AV)
		MUST(fi_ep_bind(s->ep, &s->av->fid, 0));
	if (row->lack != NO_TX_CQ && row->lack != NO_CQ)
		MUST(fi_ep_bind(s->ep, &s->tx_cq->fid, FI_TRANSMIT));
	if (row->lack != NO_RX_CQ && row->lack != NO_CQ)
		MUST(fi_ep_bind(s->ep, &s->rx_cq->fid, FI_RECV));
	if (row->lack == NO_EQ && !fi_enable(s->ep)) {
		/* An endpoint may wait for it until it is to connect. */
		CHECK_RET(fi_connect(s->ep, s->info->src_addr, NULL, 0), row->ret);
		return;
	}
	CHECK_RET(fi_enable(s->ep), row->ret);
	if (row->lack == NO_EQ)
		MUST(fi_ep_bind(s->ep, &s->eq->fid, 0));
	if (row->lack == NO_AV)
		MUST(fi_ep_bind(s->ep, &s->av->fid, 0));
	if (row->lack == NO_TX_CQ || row->lack == NO_CQ)
		MUST(fi_ep_bind(s->ep, &s->tx_cq->fid, FI_TRANSMIT));
	if (row->lack == NO_RX_CQ || row->lack == NO_CQ)
		MUST(fi_ep_bind(s->ep, &s->rx_cq->fid, FI_RECV));
	MUST(fi_enable(s->ep));
}

/* An endpoint for one direction needs the queue of that one. */
TEST_PROV(send_only_needs_tx_cq_only, FI_MSG | FI_SEND, RDM_ONLY)
{
	struct side *s = domain_side(t);

	if (s->info->caps & FI_RECV)
		ABSENT("%s cannot be restricted", run.prov);
	side_open_cqs(s);
	side_open_av(s);
	side_open_ep(s);
	MUST(fi_ep_bind(s->ep, &s->av->fid, 0));
	MUST(fi_ep_bind(s->ep, &s->tx_cq->fid, FI_TRANSMIT));
	MUST(fi_enable(s->ep));
}

/* Enabling twice does not disturb. */
TEST_PROV(enable_twice, FI_MSG)
{
	struct pair p = pair_open(t);
	int ret = fi_enable(p.a->ep);

	CHECK(ret == 0 || ret == -FI_EOPBADSTATE);
	check_link(p.a, p.b);
}

static struct side *unenabled(struct test *t)
{
	struct side *s = domain_side(t, .caps = FI_MSG | FI_TAGGED | FI_RMA);

	side_open_cqs(s);
	if (run.type != FI_EP_MSG)
		side_open_av(s);
	side_open_ep(s);
	side_bind(s);
	return s;
}

/* Every data call of an endpoint that is not enabled is -FI_EOPBADSTATE. */
TEST_PROV(calls_before_enable, FI_MSG | FI_TAGGED | FI_RMA, RELIABLE)
{
	struct side *s;
	unsigned int i;
	char buf[8];

	if (!run.ours)
		ABSENT("upstream does not look");
	s = unenabled(t);
	s->peer = 0;
	for (i = 0; i < CALL_CNT; i++) {
		note("%s", calls[i].name);
		CHECK_RET(try_op(s, (enum call) i, .buf = buf, .len = 8, .key = 1), -FI_EOPBADSTATE);
	}
	MUST(fi_enable(s->ep));
	expect_no_completion(s);
}

/* ---- binding */

/* Wrong objects, flags and states; an endpoint takes one queue a direction. */
TEST_PROV(bad_bindings, FI_MSG)
{
	struct side *s = domain_side(t), *other = domain_side(t);
	struct fid *cq, *cq2;
	int ret;

	if (!run.ours)
		ABSENT("upstream does not look");
	cq = open_cq(s);
	own_fid(t, cq);
	cq2 = open_cq(s);
	own_fid(t, cq2);
	side_open_ep(s);
	note("a domain");
	CHECK_RET(fi_ep_bind(s->ep, &s->domain->fid, 0), -FI_EINVAL);
	note("a CQ without direction");
	ret = fi_ep_bind(s->ep, cq, 0);
	CHECK(ret == -FI_EBADFLAGS || ret == -FI_EINVAL);
	note("a CQ with unknown flags");
	ret = fi_ep_bind(s->ep, cq, FI_TRANSMIT | 1ULL << 62);
	CHECK(ret == -FI_EBADFLAGS || ret == -FI_EINVAL);
	note("a CQ of another domain");
	side_open_cqs(other);
	ret = fi_ep_bind(s->ep, &other->tx_cq->fid, FI_TRANSMIT);
	CHECK(ret == -FI_EDOMAIN || ret == -FI_EINVAL);
	note("two CQs of one direction");
	MUST(fi_ep_bind(s->ep, cq, FI_TRANSMIT));
	ret = fi_ep_bind(s->ep, cq2, FI_TRANSMIT);
	CHECK(ret == -FI_EBUSY || ret == -FI_EINVAL || ret == -FI_EOPBADSTATE);
	MUST(fi_ep_bind(s->ep, cq2, FI_RECV));
	side_close_ep(s);
}

/* Queues are bound before the endpoint is enabled, not after. */
TEST_PROV(bind_after_enable, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fid *cq;
	int ret;

	if (!run.ours)
		ABSENT("upstream does not look");
	cq = open_cq(p.a);
	ret = fi_ep_bind(p.a->ep, cq, FI_TRANSMIT);
	CHECK(ret == -FI_EOPBADSTATE || ret == -FI_EBUSY || ret == -FI_EINVAL);
	MUST(fi_close(cq));
	check_link(p.a, p.b);
}

/* An event queue, which an endpoint without connections can do without, may be bound late. */
TEST_PROV(event_queue_bound_late, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t);
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };
	struct fid_eq *eq, *second;

	MUST(fi_eq_open(p.a->fabric, &attr, &eq, NULL));
	own_fid(t, &eq->fid);
	MUST(fi_eq_open(p.a->fabric, &attr, &second, NULL));
	own_fid(t, &second->fid);
	MUST(fi_ep_bind(p.a->ep, &eq->fid, 0));
	if (run.ours) {
		CHECK_RET(fi_ep_bind(p.a->ep, &second->fid, 0), -FI_EINVAL);
		CHECK_RET(fi_close(&eq->fid), -FI_EBUSY);
	}
	check_link(p.a, p.b);
	side_close_ep(p.a);
}

/* ---- attributes that cannot be */

/* Attributes of completion queues that nobody knows are refused, and no object is made. */
TEST_PROV(bad_cq_attributes, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fi_cq_attr attr = { .format = (enum fi_cq_format) 99 };
	struct fid_cq *cq = NULL;

	CHECK(fi_cq_open(s->domain, &attr, &cq, NULL) < 0);
	attr = (struct fi_cq_attr) { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = (enum fi_wait_obj) 99 };
	CHECK(fi_cq_open(s->domain, &attr, &cq, NULL) < 0);
	CHECK(cq == NULL);
	if (!run.ours)
		ABSENT("upstream takes any size");
	attr = (struct fi_cq_attr) { .format = FI_CQ_FORMAT_CONTEXT, .size = SIZE_MAX };
	CHECK(fi_cq_open(s->domain, &attr, &cq, NULL) < 0);
	attr = (struct fi_cq_attr) { .format = FI_CQ_FORMAT_CONTEXT, .flags = 1ULL << 62 };
	CHECK(fi_cq_open(s->domain, &attr, &cq, NULL) < 0);
	CHECK(cq == NULL);
}

/* Attributes of event queues that nobody knows are refused, and no object is made. */
TEST_PROV(bad_eq_attributes, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fi_eq_attr attr = { .wait_obj = (enum fi_wait_obj) 99 };
	struct fid_eq *eq = NULL;

	CHECK(fi_eq_open(s->fabric, &attr, &eq, NULL) < 0);
	attr = (struct fi_eq_attr) { .flags = 1ULL << 62 };
	CHECK(fi_eq_open(s->fabric, &attr, &eq, NULL) < 0);
	CHECK(eq == NULL);
}

/* Attributes of counters that nobody knows are refused, and no object is made. */
TEST_PROV(bad_cntr_attributes, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fi_cntr_attr attr = { .events = (enum fi_cntr_events) 99 };
	struct fid_cntr *cntr = NULL;

	CHECK(fi_cntr_open(s->domain, &attr, &cntr, NULL) < 0);
	attr = (struct fi_cntr_attr) { .events = FI_CNTR_EVENTS_COMP, .wait_obj = (enum fi_wait_obj) 99 };
	CHECK(fi_cntr_open(s->domain, &attr, &cntr, NULL) < 0);
	if (!run.ours)
		ABSENT("upstream ignores flags");
	attr = (struct fi_cntr_attr) { .events = FI_CNTR_EVENTS_COMP, .flags = 1ULL << 62 };
	CHECK(fi_cntr_open(s->domain, &attr, &cntr, NULL) < 0);
	CHECK(cntr == NULL);
}

/* Attributes of address vectors that nobody knows are refused, and no object is made. */
TEST_PROV(bad_av_attributes, FI_MSG, UNCONNECTED)
{
	struct side *s = domain_side(t);
	struct fi_av_attr attr = { .type = (enum fi_av_type) 99 };
	struct fid_av *av = NULL;

	CHECK(fi_av_open(s->domain, &attr, &av, NULL) < 0);
	attr = (struct fi_av_attr) { .type = FI_AV_TABLE, .flags = 1ULL << 62 };
	CHECK(fi_av_open(s->domain, &attr, &av, NULL) < 0);
	CHECK(av == NULL);
}

/* ---- what an object does not have is -FI_ENOSYS, not a crash */

/* Calls that an object does not support return -FI_ENOSYS. */
TEST_PROV(what_is_not_there, FI_MSG)
{
	struct pair p = pair_open(t);
	struct fi_rx_attr rx_attr = { 0 };
	struct fi_tx_attr tx_attr = { 0 };
	struct fid_ep *ep;
	struct fid_stx *stx;
	void *ops;
	int ret;

	if (!run.ours)
		ABSENT("upstream returns what it likes");
	CHECK_RET(fi_open_ops(&p.a->domain->fid, "no-such-ops", 0, &ops, NULL), -FI_ENOSYS);
	ret = fi_control(&p.a->ep->fid, 7777, NULL);
	CHECK(ret == -FI_ENOSYS || ret == -FI_EINVAL);
	ret = fi_control(&p.a->domain->fid, 7777, NULL);
	CHECK(ret == -FI_ENOSYS || ret == -FI_EINVAL);
	ret = fi_control(&p.a->tx_cq->fid, 7777, NULL);
	CHECK(ret == -FI_ENOSYS || ret == -FI_EINVAL);
	if (p.a->info->domain_attr->max_ep_tx_ctx <= 1)
		CHECK(fi_tx_context(p.a->ep, 0, &tx_attr, &ep, NULL) < 0);
	if (!p.a->info->domain_attr->max_ep_stx_ctx)
		CHECK(fi_stx_context(p.a->domain, &tx_attr, &stx, NULL) < 0);
	if (!p.a->info->domain_attr->max_ep_srx_ctx)
		CHECK(fi_srx_context(p.a->domain, &rx_attr, &ep, NULL) < 0);
	if (!(p.a->info->caps & FI_RMA)) {
		ret = (int) try_op(p.a, READ, .buf = &ops, .len = 1, .key = 1);
		CHECK(ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP);
	}
	if (!(p.a->info->caps & FI_TAGGED)) {
		ret = (int) try_op(p.a, TRECV, .buf = &ops, .len = 1);
		CHECK(ret == -FI_ENOSYS || ret == -FI_EOPNOTSUPP);
	}
	expect_no_completion(p.a);
}

/* A shared receive context has no transmit queue to ask about. */
TEST_PROV(receive_context_sends_nothing, FI_MSG)
{
	struct side *s = domain_side(t);
	struct fid_ep *srx;

	if (!run.ours)
		ABSENT("upstream returns what it likes");
	if (!s->info->domain_attr->max_ep_srx_ctx)
		ABSENT("no shared receive contexts");
	MUST(fi_srx_context(s->domain, s->info->rx_attr, &srx, NULL));
	own_fid(t, &srx->fid);
	CHECK(srx->ops->tx_size_left(srx) < 0);
}

/* A passive endpoint of an unconnected type is refused. */
TEST_PROV(passive_endpoint_of_rdm, FI_MSG, UNCONNECTED)
{
	struct side *s = domain_side(t);
	struct fid_pep *pep = NULL;

	if (!run.ours)
		ABSENT("upstream opens one");
	CHECK(fi_passive_ep(s->fabric, s->info, &pep, NULL) < 0);
	CHECK(pep == NULL);
}
