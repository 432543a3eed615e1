/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Aliases, shared contexts and scalable endpoints. Source: fi_endpoint(3), fi_av(3). */
#include <string.h>
#include <rdma/fi_trigger.h>

#include "ops.h"

/* ---- aliases */

static struct fid_ep *alias_open(struct side *s, uint64_t flags)
{
	struct fid_ep *alias = NULL;
	int ret;

	ret = fi_ep_alias(s->ep, &alias, flags);
	if (ret && !run.ours)
		ABSENT("%s has no fi_ep_alias()", run.prov);
	MUST(ret);
	own_fid(s->t, &alias->fid);
	return alias;
}

/* An alias is the same endpoint with other flags: what goes through it completes by its own. */
TEST_PROV(alias_has_flags_of_its_own, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t, .tx_bind = FI_SELECTIVE_COMPLETION);
	struct fid_ep *alias = alias_open(p.a, FI_TRANSMIT | FI_COMPLETION);
	uint64_t flags = FI_TRANSMIT;
	char in[3][4];
	int ctx;

	if ((p.a->info->domain_attr->mr_mode & FI_MR_LOCAL) && p.a->info->tx_attr->inject_size < 4)
		ABSENT("the calls of the alias have no descriptors, and inject_size is %zu",
		       p.a->info->tx_attr->inject_size);
	MUST(fi_control(&alias->fid, FI_GETOPSFLAG, &flags));
	CHECK(flags & FI_COMPLETION);
	flags = FI_TRANSMIT;
	MUST(fi_control(&p.a->ep->fid, FI_GETOPSFLAG, &flags));
	CHECK_EQ(flags & FI_COMPLETION, 0);
	post_recv(p.b, in[0], 4);
	post_recv(p.b, in[1], 4);
	send_bytes(p.a, "1111", 4);
	while (fi_send(alias, "2222", 4, NULL, p.a->peer, &ctx) == -FI_EAGAIN)
		sides_progress(t);
	p.a->tx_posted++;
	CHECK(expect_tx(p.a).ctx == &ctx);
	expect_recv(p.b, "1111", 4);
	expect_recv(p.b, "2222", 4);
	expect_no_completion(p.a);
	/* Flags of the alias can be changed, and the endpoint's stay. */
	flags = FI_TRANSMIT;
	MUST(fi_control(&alias->fid, FI_SETOPSFLAG, &flags));
	post_recv(p.b, in[2], 4);
	while (fi_send(alias, "3333", 4, NULL, p.a->peer, &ctx) == -FI_EAGAIN)
		sides_progress(t);
	expect_recv(p.b, "3333", 4);
	expect_no_completion(p.a);
}

/* An alias receives into the endpoint's queue; name and options are the endpoint's. */
TEST_PROV(alias_is_the_endpoint, FI_MSG | FI_MULTI_RECV, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_ep *alias = alias_open(p.b, FI_RECV | FI_MULTI_RECV);
	uint8_t name[128], own_name[128], *in = mem(t, 512);
	size_t len = sizeof(name), own_len = sizeof(own_name), value = 128, got = 0;
	struct comp c;

	MUST(fi_getname(&alias->fid, name, &len));
	MUST(fi_getname(&p.b->ep->fid, own_name, &own_len));
	CHECK_EQ(len, own_len);
	CHECK_MEM(name, own_name, len);
	MUST(fi_setopt(&alias->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)));
	len = sizeof(got);
	MUST(fi_getopt(&p.b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &got, &len));
	CHECK_EQ(got, value);
	MUST((int) fi_recv(alias, in, 512, NULL, FI_ADDR_UNSPEC, &c));
	send_bytes(p.a, "1111", 4);
	c = expect_rx(p.b);
	CHECK(c.buf == in && c.len == 4 && !(c.flags & FI_MULTI_RECV));
	send_bytes(p.a, "2222", 4);
	c = expect_rx(p.b);
	CHECK(c.buf == in + 4 && c.len == 4);
	MUST((int) fi_cancel(&alias->fid, &c));
}

/* Flags of both directions at once, or such that do not exist for it, make no alias. */
TEST_PROV(alias_of_what, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_ep *alias = NULL;

	if (!run.ours)
		ABSENT("upstream does not look");
	CHECK_RET(fi_ep_alias(p.a->ep, &alias, FI_TRANSMIT | FI_RECV), -FI_EINVAL);
	CHECK_RET(fi_ep_alias(p.a->ep, &alias, FI_COMPLETION), -FI_EINVAL);
	CHECK_RET(fi_ep_alias(p.a->ep, &alias, FI_TRANSMIT | FI_MULTI_RECV), -FI_EBADFLAGS);
	CHECK(alias == NULL);
	check_link(p.a, p.b);
}

/* The endpoint stays until its last alias is closed, those of aliases included. */
TEST_PROV(alias_keeps_the_endpoint, FI_MSG, RELIABLE)
{
	struct pair p = pair_open(t);
	struct fid_ep *first = alias_open(p.a, FI_TRANSMIT), *second = NULL;

	MUST(fi_ep_alias(first, &second, FI_TRANSMIT | FI_COMPLETION));
	close_now(t, &first->fid);
	if (run.ours)
		CHECK_RET(fi_close(&p.a->ep->fid), -FI_EBUSY);
	MUST(fi_close(&second->fid));
	check_link(p.a, p.b);
	side_close_ep(p.a);
}

/* ---- shared contexts */

enum { SHARERS = 3 };

/* Clients, each with a server; the servers are endpoints of one domain and have contexts in common. */
struct share {
	struct side *client[SHARERS], *server[SHARERS];
	struct side *listener;
	struct fid_ep *srx;
	struct fid_stx *stx;
};

static struct fid_ep *srx_open(struct side *s, size_t size)
{
	struct fi_rx_attr attr = *s->info->rx_attr;
	struct fid_ep *srx = NULL;
	int ret;

	if (run.ours && !s->info->domain_attr->max_ep_srx_ctx)
		ABSENT("%s has no shared receive contexts here: max_ep_srx_ctx is 0", run.prov);
	attr.size = size;
	ret = fi_srx_context(s->domain, &attr, &srx, s);
	if (ret && !run.ours)
		ABSENT("%s has no shared receive contexts", run.prov);
	MUST(ret);
	CHECK_EQ(srx->fid.fclass, FI_CLASS_SRX_CTX);
	CHECK(srx->fid.context == s);
	own_fid(s->t, &srx->fid);
	return srx;
}

/* Post a buffer, which is the context of its completion too, to what the servers share. */
static ssize_t shared_recv(struct share *sh, void *buf, size_t len)
{
	return fi_recv(sh->srx, buf, len, desc_for(sh->server[0], buf, len), FI_ADDR_UNSPEC, buf);
}

static struct fid_stx *stx_open(struct side *s, size_t size)
{
	struct fi_tx_attr attr = *s->info->tx_attr;
	struct fid_stx *stx = NULL;
	int ret;

	attr.size = size;
	ret = fi_stx_context(s->domain, &attr, &stx, s);
	if (ret && !run.ours)
		ABSENT("%s has no shared transmit contexts", run.prov);
	MUST(ret);
	CHECK_EQ(stx->fid.fclass, FI_CLASS_STX_CTX);
	own_fid(s->t, &stx->fid);
	return stx;
}

/* What server i is opened with; the contexts come with the first domain. */
static struct opts share_opts(const struct share *sh, const struct opts *o, int i)
{
	struct opts mine = *o;

	mine.domain_of = i ? sh->server[0] : NULL;
	mine.av_of = mine.domain_of;
	mine.srx = sh->srx;
	mine.stx = sh->stx;
	mine.unenabled = true;
	return mine;
}

static void share_server(struct test *t, struct share *sh, const struct opts *o, int i, struct fi_info *request)
{
	struct opts mine = share_opts(sh, o, i);
	struct side *s;

	if (run.type != FI_EP_MSG) {
		s = i ? NULL : domain_side_opts(t, &mine);
		if (i)
			s = side_open_opts(t, &mine);
	} else {
		s = acceptor_new(sh->listener, request, &mine);
	}
	sh->server[i] = s;
	if (!i) {
		s->o.srx = sh->srx = o->rx_size ? srx_open(s, o->rx_size) : NULL;
		s->o.stx = sh->stx = o->tx_size ? stx_open(s, o->tx_size) : NULL;
	}
	if (run.type == FI_EP_MSG || !i)
		side_open_rest(s);
}

/* rx_size and tx_size of @o are those of the shared contexts; 0: there is none. */
static struct share share_open(struct test *t, const struct opts *o)
{
	struct opts plain = *o;
	struct share sh = { 0 };
	int i;

	plain.rx_size = plain.tx_size = 0;
	if (run.type == FI_EP_MSG)
		sh.listener = listener_open_opts(t, &plain);
	for (i = 0; i < SHARERS; i++) {
		struct fi_info *request = NULL;

		if (run.type == FI_EP_MSG) {
			sh.client[i] = connector_open(t, sh.listener, &plain);
			MUST(fi_connect(sh.client[i]->ep, sh.listener->name, NULL, 0));
			request = expect_event(sh.listener, FI_CONNREQ).info;
		} else {
			sh.client[i] = side_open_opts(t, &plain);
		}
		share_server(t, &sh, o, i, request);
		if (run.type == FI_EP_MSG) {
			MUST(fi_accept(sh.server[i]->ep, NULL, 0));
			expect_event(sh.client[i], FI_CONNECTED);
			expect_event(sh.server[i], FI_CONNECTED);
		} else {
			side_enable(sh.server[i]);
			sh.client[i]->peer = side_insert(sh.client[i], sh.server[i]);
			sh.server[i]->peer = side_insert(sh.server[i], sh.client[i]);
		}
	}
	return sh;
}

static void completion_threading(struct fi_info *hints)
{
	hints->domain_attr->threading = FI_THREAD_COMPLETION;
}

struct share_row {
	const char *name;
	size_t len;
	bool early;			/* the messages come before the receives */
	bool completion;		/* FI_THREAD_COMPLETION */
};

static const struct share_row share_rows[] = {
	{ "expected", 64, false, false }, { "unexpected", 64, true, false }, { "unexpected_4K", 4096, true, false },
	{ "announced", 300000, true, false }, { "completion_threading", 64, false, true },
};

/* Receives of a shared context serve all endpoints bound; each message completes at the endpoint that it came to, and
 * those of one sender stay in their order. */
TEST_TABLE(srx_serves_all, share_rows, FI_MSG, RELIABLE)
{
	enum { MSGS = 4, ALL = SHARERS * MSGS };
	const struct share_row *row = ROW(share_rows);
	struct opts o = { .rx_size = ALL, .hints = row->completion ? completion_threading : NULL };
	struct share sh = share_open(t, &o);
	uint8_t *in[ALL], *out[ALL];
	struct comp c;
	int i, k;

	for (i = 0; i < ALL; i++) {
		in[i] = mem(t, row->len);
		out[i] = mem_pattern(t, row->len, (unsigned int) i);
	}
	for (k = 0; k < 2; k++) {
		if (k == row->early) {
			for (i = 0; i < ALL; i++)
				MUST((int) shared_recv(&sh, in[i], row->len));
			if (!row->early && run.ours)
				CHECK(shared_recv(&sh, in[0], row->len) == -FI_EAGAIN);
		} else {
			for (i = 0; i < ALL; i++)
				send_bytes(sh.client[i % SHARERS], out[i], row->len);
			idle(t);
		}
	}
	for (i = 0; i < ALL; i++) {
		c = expect_rx(sh.server[i % SHARERS]);
		CHECK_EQ(c.len, row->len);
		check_fill(c.ctx, row->len, (unsigned int) i);
	}
}

/* A side whose endpoint shares a receive context; *alias was made before it was bound to that. */
static struct side *aliased_sharer(struct test *t, struct fid_ep **alias)
{
	struct side *s = domain_side(t);

	s->o.srx = srx_open(s, 8);
	side_open_cqs(s);
	if (run.type != FI_EP_MSG)
		side_open_av(s);
	side_open_ep(s);
	*alias = alias_open(s, FI_RECV);
	side_bind(s);
	side_enable(s);
	return s;
}

/* An alias differs from its endpoint by its flags alone: where that shares a receive context, nothing is received
 * through the alias either, though it was there first. */
TEST_PROV(srx_takes_receives_of_aliases, FI_MSG, RELIABLE)
{
	struct fid_ep *alias;
	struct side *s = aliased_sharer(t, &alias);
	char in[4];

	if (!run.ours)
		ABSENT("what %s answers is not laid down", run.prov);
	CHECK_RET((int) fi_recv(s->ep, in, 4, NULL, FI_ADDR_UNSPEC, in), -FI_ENOSYS);
	CHECK_RET((int) fi_recv(alias, in, 4, NULL, FI_ADDR_UNSPEC, in), -FI_ENOSYS);
}

/* Nor is it deferred: the receive would outlive the endpoint in the context. */
TEST_PROV(srx_takes_deferred_receives_of_aliases, FI_MSG | FI_TRIGGER, RELIABLE)
{
	struct fid_ep *alias;
	struct side *s = aliased_sharer(t, &alias);
	struct fi_cntr_attr attr = { 0 };
	char in[4];
	struct iovec iov = { in, sizeof(in) };
	struct fi_op_msg op = { .ep = alias, .msg = { .msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC } };
	struct fi_deferred_work work = { .op_type = FI_OP_RECV, .op.msg = &op };

	if (!run.ours)
		ABSENT("what %s answers is not laid down", run.prov);
	MUST(fi_cntr_open(s->domain, &attr, &work.triggering_cntr, NULL));
	own_fid(t, &work.triggering_cntr->fid);
	CHECK_RET(fi_control(&s->domain->fid, FI_QUEUE_WORK, &work), -FI_ENOSYS);
	close_now(t, &alias->fid);
	side_close_ep(s);
	close_now(t, &s->o.srx->fid);
}

/* One client's end takes no receive away from the others. */
TEST_PROV(srx_outlives_connections, FI_MSG, RELIABLE)
{
	struct share sh = share_open(t, &(struct opts) { .rx_size = 8 });
	char in[2][4];
	int i;

	for (i = 0; i < 2; i++)
		MUST((int) shared_recv(&sh, in[i], 4));
	send_bytes(sh.client[0], "zero", 4);
	CHECK(expect_rx(sh.server[0]).ctx == in[0]);
	side_close_ep(sh.client[0]);
	idle(t);
	if (run.type == FI_EP_MSG)
		expect_event(sh.server[0], FI_SHUTDOWN);
	side_close_ep(sh.server[0]);
	send_bytes(sh.client[2], "two.", 4);
	CHECK(expect_rx(sh.server[2]).ctx == in[1]);
	CHECK_MEM(in[1], "two.", 4);
}

/* What came for an endpoint that is closed is gone with it. */
TEST_PROV(srx_drops_what_its_endpoint_left, FI_MSG, RELIABLE)
{
	struct share sh = share_open(t, &(struct opts) { .rx_size = 8 });
	char in[4];

	send_bytes(sh.client[0], "lost", 4);
	send_bytes(sh.client[1], "kept", 4);
	idle(t);
	side_close_ep(sh.server[0]);
	MUST((int) shared_recv(&sh, in, 4));
	CHECK(expect_rx(sh.server[1]).ctx == in);
	CHECK_MEM(in, "kept", 4);
}

/* A cancelled receive is reported by one of the endpoints; options are the context's, which is busy while they are
 * bound. */
TEST_PROV(srx_cancel_options_close, FI_MSG | FI_MULTI_RECV, RELIABLE)
{
	struct share sh = share_open(t, &(struct opts) { .rx_size = 8 });
	size_t value = 100, len = sizeof(value);
	char in[4];

	MUST(fi_enable(sh.srx));
	MUST(fi_setopt(&sh.srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, len));
	value = 0;
	MUST(fi_getopt(&sh.server[1]->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len));
	CHECK_EQ(value, 100);
	MUST((int) shared_recv(&sh, in, 4));
	MUST((int) fi_cancel(&sh.srx->fid, in));
	expect_rx_err(sh.server[0], FI_ECANCELED, .ctx = in);
	MUST((int) shared_recv(&sh, in, 4));
	if (!run.ours)
		return;
	CHECK_RET((int) fi_recv(sh.server[1]->ep, in, 4, NULL, FI_ADDR_UNSPEC, in), -FI_ENOSYS);
	CHECK(fi_send(sh.srx, in, 4, NULL, 0, in) == -FI_ENOSYS);
	CHECK_RET(fi_close(&sh.srx->fid), -FI_EBUSY);
	side_close_ep(sh.server[0]);
	side_close_ep(sh.server[1]);
	CHECK_RET(fi_close(&sh.srx->fid), -FI_EBUSY);
	side_close_ep(sh.server[2]);
	close_now(t, &sh.srx->fid);
}

/* While no endpoint uses the context there is no queue to report to: nothing can be looked for or cancelled. */
TEST_PROV(srx_without_endpoints, FI_TAGGED, RELIABLE)
{
	struct share sh = share_open(t, &(struct opts) { .rx_size = 8 });
	char in[4];
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .context = in };

	if (!run.ours)
		ABSENT("what %s answers is not laid down", run.prov);
	MUST((int) fi_trecv(sh.srx, in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, in));
	side_close_ep(sh.server[0]);
	side_close_ep(sh.server[1]);
	MUST((int) fi_cancel(&sh.srx->fid, in));
	expect_rx_err(sh.server[2], FI_ECANCELED, .ctx = in);
	MUST((int) fi_trecv(sh.srx, in, 4, NULL, FI_ADDR_UNSPEC, 1, 0, in));
	side_close_ep(sh.server[2]);
	CHECK_RET((int) fi_trecvmsg(sh.srx, &msg, FI_PEEK), -FI_EOPBADSTATE);
	CHECK_RET((int) fi_cancel(&sh.srx->fid, in), -FI_EOPBADSTATE);
	close_now(t, &sh.srx->fid);
}

/* Tags and sources work as they do without sharing. */
TEST_PROV(srx_tags_and_peeks, FI_TAGGED, RELIABLE)
{
	struct share sh = share_open(t, &(struct opts) { .rx_size = 8 });
	struct fi_msg_tagged msg = { .tag = 2, .addr = FI_ADDR_UNSPEC };
	struct iovec iov;
	char in[2][4];
	int ctx;

	tsend_bytes(sh.client[0], "zero", 4, 1);
	tsend_bytes(sh.client[1], "one.", 4, 2);
	idle(t);
	msg.context = &ctx;
	MUST((int) fi_trecvmsg(sh.srx, &msg, FI_PEEK | FI_CLAIM));
	CHECK_EQ(expect_rx(sh.server[1]).tag, 2);
	iov = (struct iovec) { in[1], 4 };
	msg.msg_iov = &iov;
	msg.iov_count = 1;
	MUST((int) fi_trecvmsg(sh.srx, &msg, FI_CLAIM));
	CHECK_EQ(expect_rx(sh.server[1]).tag, 2);
	CHECK_MEM(in[1], "one.", 4);
	MUST((int) fi_trecv(sh.srx, in[0], 4, NULL, FI_ADDR_UNSPEC, 0, 0xff, in[0]));
	CHECK(expect_rx(sh.server[0]).ctx == in[0]);
	msg.tag = 3;
	MUST((int) fi_trecvmsg(sh.srx, &msg, FI_PEEK));
	expect_rx_err(sh.server[0], FI_ENOMSG, .ctx = &ctx);
}

/* Without tags and multi-receive, too: what cannot be had of a context, or bound, and who keeps it. */
TEST_PROV(srx_rules, FI_MSG, RELIABLE)
{
	struct fi_rx_attr attr;
	struct share sh;
	struct fid_ep *srx;
	struct side *s, *other;
	char buf[4];

	if (!run.ours)
		ABSENT("upstream does not look");
	sh = share_open(t, &(struct opts) { .rx_size = 8 });
	s = sh.server[1];
	note("its calls");
	CHECK_RET(fi_enable(sh.srx), 0);
	CHECK_RET((int) fi_recv(s->ep, buf, 4, NULL, FI_ADDR_UNSPEC, buf), -FI_ENOSYS);
	CHECK_RET((int) fi_send(sh.srx, buf, 4, NULL, 0, buf), -FI_ENOSYS);
	CHECK_RET(fi_ep_bind(sh.srx, &s->rx_cq->fid, FI_RECV), -FI_EINVAL);
	note("late");
	CHECK_RET(fi_ep_bind(s->ep, &sh.srx->fid, 0), -FI_EOPBADSTATE);
	note("more than there is");
	attr = *s->info->rx_attr;
	attr.iov_limit = 1000;
	CHECK_RET(fi_srx_context(s->domain, &attr, &srx, NULL), -FI_EINVAL);
	attr = *s->info->rx_attr;
	attr.size = SIZE_MAX;
	CHECK_RET(fi_srx_context(s->domain, &attr, &srx, NULL), -FI_EINVAL);
	note("of all sizes, and of none said");
	MUST(fi_srx_context(s->domain, NULL, &srx, NULL));
	MUST(fi_close(&srx->fid));
	note("bind");
	other = domain_side_opts(t, &(struct opts) { .unenabled = true });
	other->info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	srx = srx_open(other, 4);
	side_open_rest(other);
	CHECK_RET(fi_enable(other->ep), -FI_EOPBADSTATE);
	CHECK_RET(fi_ep_bind(other->ep, &sh.srx->fid, 0), -FI_EDOMAIN);
	CHECK_RET(fi_ep_bind(other->ep, &srx->fid, FI_RECV), -FI_EINVAL);
	MUST(fi_ep_bind(other->ep, &srx->fid, 0));
	CHECK_RET(fi_ep_bind(other->ep, &srx_open(other, 4)->fid, 0), -FI_EINVAL);
	side_enable(other);
	note("close");
	MUST((int) shared_recv(&sh, buf, 4));
	for (int i = 0; i < SHARERS; i++) {
		CHECK_RET(fi_close(&sh.srx->fid), -FI_EBUSY);
		side_close_ep(sh.server[i]);
	}
	close_now(t, &sh.srx->fid);
}

/* A context is bound once, before the endpoint is enabled, and belongs to its domain. */
TEST_PROV(shared_bind_rules, FI_MSG, RDM_ONLY)
{
	struct side *s, *other;
	struct fid_ep *srx;
	struct fid_stx *stx;

	if (!run.ours)
		ABSENT("upstream does not look");
	s = domain_side(t);
	other = domain_side(t);
	s->info->ep_attr->tx_ctx_cnt = s->info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	s->o.unenabled = true;
	srx = srx_open(s, 4);
	stx = stx_open(s, 4);
	side_open_rest(s);
	note("shared contexts that are missing");
	CHECK_RET(fi_enable(s->ep), -FI_EOPBADSTATE);
	note("flags");
	CHECK_RET(fi_ep_bind(s->ep, &srx->fid, FI_RECV), -FI_EINVAL);
	note("of another domain");
	CHECK_RET(fi_ep_bind(s->ep, &srx_open(other, 4)->fid, 0), -FI_EDOMAIN);
	CHECK_RET(fi_ep_bind(s->ep, &stx_open(other, 4)->fid, 0), -FI_EDOMAIN);
	MUST(fi_ep_bind(s->ep, &srx->fid, 0));
	CHECK_RET(fi_enable(s->ep), -FI_EOPBADSTATE);
	MUST(fi_ep_bind(s->ep, &stx->fid, 0));
	note("a second one");
	CHECK_RET(fi_ep_bind(s->ep, &srx_open(s, 4)->fid, 0), -FI_EINVAL);
	CHECK_RET(fi_ep_bind(s->ep, &stx_open(s, 4)->fid, 0), -FI_EINVAL);
	note("queues of a context");
	CHECK_RET(fi_ep_bind(srx, &s->rx_cq->fid, FI_RECV), -FI_EINVAL);
	side_enable(s);
	note("late");
	CHECK_RET(fi_ep_bind(s->ep, &stx->fid, 0), -FI_EOPBADSTATE);
}

/* Operations of all endpoints count against the size of their shared transmit context; each completes at its own. */
TEST_PROV(stx_is_one_queue, FI_MSG, RDM_ONLY)
{
	struct share sh = share_open(t, &(struct opts) { .tx_size = 4 });
	char in[SHARERS][2][4], *out[] = { "zero", "one.", "two." };
	int i, k, posted = 0;

	for (i = 0; i < SHARERS; i++) {
		for (k = 0; k < 2; k++)
			post_recv(sh.client[i], in[i][k], 4);
	}
	/* Nobody is connected yet and nobody drives: all of them wait. */
	for (k = 0; k < 2; k++) {
		for (i = 0; i < SHARERS && posted < 4; i++, posted++)
			MUST((int) try_op(sh.server[i], SEND, .buf = out[i], .len = 4));
	}
	for (i = 0; i < SHARERS && run.progress != FI_PROGRESS_AUTO; i++)
		CHECK(try_op(sh.server[i], SEND, .buf = out[i], .len = 4) == -FI_EAGAIN);
	expect_tx_cnt(sh.server[0], 2);
	expect_tx_cnt(sh.server[1], 1);
	expect_tx_cnt(sh.server[2], 1);
	send_bytes(sh.server[1], out[1], 4);
	send_bytes(sh.server[2], out[2], 4);
	for (i = 0; i < SHARERS; i++) {
		expect_recv(sh.client[i], out[i], 4);
		expect_recv(sh.client[i], out[i], 4);
	}
	CHECK_RET(fi_close(&sh.stx->fid), -FI_EBUSY);
	for (i = 0; i < SHARERS; i++)
		side_close_ep(sh.server[i]);
	close_now(t, &sh.stx->fid);
}

struct late_row {
	const char *name;
	bool linked;			/* after messages, in both directions */
	int before;			/* sends under way, of 4 */
};

static const struct late_row late_rows[] = {
	{ "at_once", false, 0 }, { "after_messages", true, 0 }, { "amid_messages", false, 2 },
};

/* An endpoint that has a transmit queue of its own and is enabled may get a shared one: its operations count there. */
TEST_TABLE(stx_bound_late, late_rows, FI_MSG, RDM_ONLY)
{
	struct pair p = pair_open(t);
	const struct late_row *row = ROW(late_rows);
	struct fid_stx *stx = stx_open(p.a, 4);
	char in[4][4];
	int i;

	if (row->linked) {
		check_link(p.a, p.b);
		check_link(p.b, p.a);
	}
	for (i = 0; i < 4; i++)
		post_recv(p.b, in[i], 4);
	for (i = 0; i < row->before; i++)
		MUST((int) try_op(p.a, SEND, .buf = "late", .len = 4));
	MUST(fi_ep_bind(p.a->ep, &stx->fid, 0));
	for (; i < 4; i++)
		MUST((int) try_op(p.a, SEND, .buf = "late", .len = 4));
	if (run.ours && run.progress != FI_PROGRESS_AUTO && !row->linked && !row->before)
		CHECK(try_op(p.a, SEND, .buf = "five", .len = 4) == -FI_EAGAIN);
	expect_tx_cnt(p.a, 4);
	for (i = 0; i < 4; i++)
		expect_recv(p.b, "late", 4);
	check_link(p.b, p.a);
	CHECK_RET(fi_close(&stx->fid), -FI_EBUSY);
	side_close_ep(p.a);
	close_now(t, &stx->fid);
}

/* SOS: contexts without attributes, endpoints with reduced capabilities and FI_SHARED_CONTEXT, one CQ each. */
TEST_PROV(sos_stx_pool, FI_RMA, RDM_ONLY)
{
	struct side *target = side_open(t), *s = domain_side(t);
	struct fid_stx *stx = NULL;
	struct region r = region_open(target, NULL, 64, FI_REMOTE_WRITE);
	int ret;

	ret = fi_stx_context(s->domain, NULL, &stx, NULL);
	if (ret && !run.ours)
		ABSENT("%s has no shared transmit contexts", run.prov);
	MUST(ret);
	own_fid(t, &stx->fid);
	CHECK(s->info->domain_attr->max_ep_stx_ctx > 1);
	s->info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	s->info->caps = FI_RMA | FI_WRITE | FI_READ;
	s->info->tx_attr->caps = s->info->rx_attr->caps = 0;
	s->info->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	s->o.stx = stx;
	side_open_rest(s);
	s->peer = side_insert(s, target);
	post(s, WRITE, .buf = "8 bytes.", .len = 8, .raddr = r.addr, .key = r.key);
	expect_tx(s);
	CHECK_MEM(r.buf, "8 bytes.", 8);
}
