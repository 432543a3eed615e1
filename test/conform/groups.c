/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peer groups: what is sent to fi_group_addr(peer, group) meets receives of that group only. Source: fi_endpoint(3),
 * fi_domain(3), domain_attr::max_group_id.
 */
#include <string.h>

#include "ops.h"

#define LONG	(2 << 20)		/* longer than what is sent unasked */

static struct pair groups_open(struct test *t)
{
	if (!info_find(t, hints_new(t, &(struct opts) { .hints = ask_for_groups }), NULL, NULL, 0))
		ABSENT("%s has no peer groups", run.prov);
	return pair_open(t, .hints = ask_for_groups);
}

/* The peer of a side, in a group. */
static fi_addr_t in_group(const struct side *s, uint32_t group)
{
	return fi_group_addr(s->peer, group);
}

/* Any peer of a group. */
static fi_addr_t any_in(uint32_t group)
{
	return fi_group_addr(UINT32_MAX, group);
}

static void send_to(struct side *s, enum call call, uint32_t group, const void *buf, size_t len, uint64_t tag)
{
	const fi_addr_t addr = in_group(s, group);

	post(s, call, .buf = buf, .len = len, .tag = tag, .addr = &addr);
}

static void *recv_from(struct side *s, enum call call, fi_addr_t addr, void *buf, size_t len, uint64_t tag)
{
	return post(s, call, .buf = buf, .len = len, .tag = tag, .addr = &addr);
}

/* The peer's next message is this one, in the receive with this context. */
static struct comp expect_in(struct side *s, void *ctx, const void *data, size_t len)
{
	struct comp c = expect_rx(s);

	CHECK(c.ctx == ctx);
	CHECK_EQ(c.len, len);
	CHECK_MEM(ctx_buf(s, ctx), data, len);
	return c;
}

/* ---- getinfo ---- */

/* Who does not ask has none; who asks has as many at least; nobody has more than there are. */
TEST_PROV(max_group_id_is_for_those_who_ask, 0, .since = FI_VERSION(2, 0))
{
	struct fi_info *hints = hints_new(t, &(struct opts) { 0 }), *info = info_find(t, hints, NULL, NULL, 0);

	CHECK(info);
	CHECK_EQ(info->domain_attr->max_group_id, 0);
	ask_for_groups(hints);
	info = info_find(t, hints, NULL, NULL, 0);
	if (!info)
		ABSENT("%s has no peer groups", run.prov);
	CHECK(info->domain_attr->max_group_id >= GROUPS);
	hints->domain_attr->max_group_id = UINT32_MAX;
	CHECK(!info_find(t, hints, NULL, NULL, 0));
}

/* ---- which receive takes which message ---- */

static const struct kind_row {
	const char *name;
	enum call send, recv;
	size_t len;
} kind_rows[] = {
	{ "msg", SEND, RECV, 8 },
	{ "tagged", TSEND, TRECV, 8 },
	{ "inject", INJECT, RECV, 8 },
	{ "tagged inject", TINJECT, TRECV, 8 },
	{ "data", SENDDATA, RECV, 8 },
	{ "tagged data", TSENDDATA, TRECV, 8 },
	{ "10k", SEND, RECV, 10000 },
	{ "long", SEND, RECV, LONG },
	{ "long tagged", TSEND, TRECV, LONG },
	{ "long data", SENDDATA, RECV, LONG },
};

/* Posted: of three receives for the same peer each takes the messages of its group, in whatever order they come. */
TEST_TABLE(posted, kind_rows, FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	static const uint32_t groups[] = { 0, 1, GROUPS };
	const struct kind_row *row = ROW(kind_rows);
	struct pair p = groups_open(t);
	uint8_t *out[COUNT(groups)], *in;
	void *ctx[COUNT(groups)];
	size_t i;

	for (i = 0; i < COUNT(groups); i++) {
		in = mem(t, row->len);
		out[i] = mem_pattern(t, row->len, i);
		ctx[i] = recv_from(p.b, row->recv, in_group(p.b, groups[i]), in, row->len, 7);
	}
	for (i = COUNT(groups); i-- > 0; ) {
		send_to(p.a, row->send, groups[i], out[i], row->len, 7);
		expect_in(p.b, ctx[i], out[i], row->len);
	}
	if (!calls[row->send].inject)
		expect_tx_cnt(p.a, COUNT(groups));
}

/* Unexpected: a receive finds what was sent in its group, whatever came before it. */
TEST_TABLE(unexpected, kind_rows, FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	static const uint32_t groups[] = { 3, 0, 2 };
	const struct kind_row *row = ROW(kind_rows);
	struct pair p = groups_open(t);
	uint8_t *out[COUNT(groups)], *in = mem(t, row->len);
	size_t i;

	for (i = 0; i < COUNT(groups); i++) {
		out[i] = mem_pattern(t, row->len, i);
		send_to(p.a, row->send, groups[i], out[i], row->len, 7);
	}
	idle(t);
	for (i = COUNT(groups); i-- > 0; )
		expect_in(p.b, recv_from(p.b, row->recv, i & 1 ? in_group(p.b, groups[i]) :
			  groups[i] ? any_in(groups[i]) : FI_ADDR_UNSPEC, in, row->len, 7), out[i], row->len);
	if (!calls[row->send].inject)
		expect_tx_cnt(p.a, COUNT(groups));
}

/* A receive of any source takes those of its group only; FI_ADDR_UNSPEC is any source, in none. */
TEST_PROV(any_source_of_a_group, FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	struct pair p = groups_open(t);
	char in[4][4];
	void *none = recv_from(p.b, TRECV, FI_ADDR_UNSPEC, in[0], 4, 1);
	void *five = recv_from(p.b, TRECV, any_in(5), in[1], 4, 1);
	void *six = recv_from(p.b, TRECV, any_in(6), in[2], 4, 1);
	void *peer = recv_from(p.b, TRECV, in_group(p.b, 5), in[3], 4, 1);

	send_to(p.a, TSEND, 6, "six1", 4, 1);
	CHECK_EQ(expect_in(p.b, six, "six1", 4).src, p.b->peer);
	send_to(p.a, TSEND, 5, "fiv1", 4, 1);
	CHECK_EQ(expect_in(p.b, five, "fiv1", 4).src, p.b->peer);
	send_to(p.a, TSEND, 5, "fiv2", 4, 1);
	CHECK_EQ(expect_in(p.b, peer, "fiv2", 4).src, p.b->peer);
	send_to(p.a, TSEND, 0, "none", 4, 1);
	CHECK_EQ(expect_in(p.b, none, "none", 4).src, p.b->peer);
	expect_tx_cnt(p.a, 4);
}

/* The group counts without FI_DIRECTED_RECV, too, the address does not. */
TEST_PROV(groups_without_directed_receives, FI_TAGGED, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	struct pair p = groups_open(t);
	char in[2][4];
	void *one, *two;

	if (p.b->info->caps & FI_DIRECTED_RECV)
		FAIL("FI_DIRECTED_RECV is primary and was not asked for");
	one = recv_from(p.b, TRECV, fi_group_addr(7777, 1), in[0], 4, 1);
	two = recv_from(p.b, TRECV, any_in(2), in[1], 4, 1);
	send_to(p.a, TSEND, 2, "two_", 4, 1);
	expect_in(p.b, two, "two_", 4);
	send_to(p.a, TSEND, 1, "one_", 4, 1);
	expect_in(p.b, one, "one_", 4);
	expect_tx_cnt(p.a, 2);
}

/* Within a group tags, masks and the order of messages are what they are without. Many, so that indexes are made. */
TEST_PROV(tags_and_order_within_a_group, FI_TAGGED | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	enum { N = 900 };
	struct pair p = groups_open(t);
	uint32_t *out = mem(t, N * sizeof(*out)), *in = mem(t, N * sizeof(*in)), i;

	for (i = 0; i < N; i++) {
		out[i] = i;
		send_to(p.a, TSEND, i % 3, &out[i], sizeof(out[i]), i / 3 % 2);
	}
	idle(t);
	for (i = 0; i < N; i++) {
		const fi_addr_t addr = i % 3 == 2 ? any_in(2) : in_group(p.b, i % 3);

		post(p.b, TRECV, .buf = &in[i], .len = sizeof(in[i]), .tag = 0x10 | (i / 3 % 2), .ignore = 0x10,
		     .addr = &addr);
	}
	expect_rx_cnt(p.b, N);
	expect_tx_cnt(p.a, N);
	for (i = 0; i < N; i++)
		CHECK_EQ(in[i], i);
}

/* The answer to a peek: true if it found nothing. */
static bool peek_failed(struct side *s, struct comp *c)
{
	struct wait w = wait_begin();

	while (!rx_waiting(s))
		wait_more(s->t, &w, "the answer to a peek");
	*c = s->rx.list[s->rx.taken++];
	return c->err;
}

/* A peek finds, and a claim takes, messages of the group that it names. */
TEST_PROV(peek_and_claim_in_a_group, FI_TAGGED | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	struct pair p = groups_open(t);
	const fi_addr_t one = in_group(p.b, 1), two = in_group(p.b, 2);
	struct fi_context2 ctx;
	struct wait w;
	struct comp c;
	char in[8];

	send_to(p.a, TSEND, 2, "of two--", 8, 5);
	expect_tx(p.a);
	for (w = wait_begin(); ; wait_more(t, &w, "a peek to find the message")) {
		post(p.b, TRECVMSG, .tag = 5, .flags = FI_PEEK, .ctx = &ctx, .addr = &one);
		expect_rx_err(p.b, FI_ENOMSG);
		post(p.b, TRECVMSG, .tag = 5, .flags = FI_PEEK, .ctx = &ctx);
		expect_rx_err(p.b, FI_ENOMSG);
		post(p.b, TRECVMSG, .tag = 5, .flags = FI_PEEK | FI_CLAIM, .ctx = &ctx, .addr = &two);
		if (!peek_failed(p.b, &c))
			break;
	}
	CHECK_EQ(c.len, 8);
	post(p.b, TRECVMSG, .buf = in, .len = 8, .tag = 5, .flags = FI_CLAIM, .ctx = &ctx);
	CHECK_EQ(expect_rx(p.b).len, 8);
	CHECK_MEM(in, "of two--", 8);
}

/* A multi-receive takes what comes in its group. */
TEST_PROV(multi_receive_of_a_group, FI_MSG | FI_MULTI_RECV | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	struct pair p = groups_open(t);
	const fi_addr_t one = any_in(1);
	uint8_t *in = mem(t, 256);
	char other[4];
	struct comp c;
	void *ctx;
	int i;

	post(p.b, RECVMSG, .buf = in, .len = 256, .flags = FI_MULTI_RECV, .addr = &one);
	ctx = recv_from(p.b, RECV, FI_ADDR_UNSPEC, other, 4, 0);
	for (i = 0; i < 2; i++) {
		uint8_t *out = mem_pattern(t, 60, i);

		send_to(p.a, SEND, 1, out, 60, 0);
		c = expect_rx(p.b);
		CHECK(c.buf == in + 60 * i);
		CHECK_MEM(c.buf, out, 60);
	}
	send_to(p.a, SEND, 0, "none", 4, 0);
	expect_in(p.b, ctx, "none", 4);
	expect_tx_cnt(p.a, 3);
}

/* A receive of a group can be cancelled; what comes then waits for the next. */
TEST_PROV(cancel_in_a_group, FI_MSG | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	struct pair p = groups_open(t);
	char in[4];
	void *ctx = recv_from(p.b, RECV, in_group(p.b, 9), in, 4, 0);

	MUST(fi_cancel(&p.b->ep->fid, ctx));
	expect_rx_err(p.b, FI_ECANCELED, .ctx = ctx);
	send_to(p.a, SEND, 9, "late", 4, 0);
	expect_tx(p.a);
	expect_in(p.b, recv_from(p.b, RECV, any_in(9), in, 4, 0), "late", 4);
}

/* Receives of a shared context take what is in their group, whichever endpoint it came to. */
TEST_PROV(shared_context_has_groups, FI_MSG | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	struct opts o = { .hints = ask_for_groups };
	struct side *to[2], *from;
	struct fid_ep *srx;
	fi_addr_t addr[2];
	char in[2][4];
	int i;

	if (!info_find(t, hints_new(t, &o), NULL, NULL, 0))
		ABSENT("%s has no peer groups", run.prov);
	from = side_open_opts(t, &o);
	to[0] = domain_side_opts(t, &o);
	MUST(fi_srx_context(to[0]->domain, to[0]->info->rx_attr, &srx, NULL));
	own_fid(t, &srx->fid);
	to[0]->o.srx = srx;
	side_open_rest(to[0]);
	to[1] = side_open(t, .hints = ask_for_groups, .domain_of = to[0], .av_of = to[0], .srx = srx);
	for (i = 0; i < 2; i++) {
		addr[i] = side_insert(from, to[i]);
		MUST((int) fi_recv(srx, in[i], 4, NULL, any_in(i + 1), in[i]));
	}
	for (i = 0; i < 2; i++) {
		/* the first endpoint's message is for the second receive */
		from->peer = addr[i];
		send_to(from, SEND, 2 - i, i ? "one_" : "two_", 4, 0);
		CHECK(expect_rx(to[i]).ctx == in[1 - i]);
	}
	CHECK_MEM(in[0], "one_", 4);
	CHECK_MEM(in[1], "two_", 4);
	expect_tx_cnt(from, 2);
}

/* ---- peers ---- */

/* A message of somebody who is in no address vector yet keeps its group when he becomes known. */
TEST_PROV(stranger_in_a_group, FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	struct pair p = groups_open(t);
	struct side *c = side_open(t, .hints = ask_for_groups);
	char in[2][4];
	void *ctx;

	c->peer = side_insert(c, p.b);
	ctx = recv_from(p.b, TRECV, any_in(4), in[0], 4, 1);
	send_to(c, TSEND, 4, "str1", 4, 1);
	send_to(c, TSEND, 4, "str2", 4, 1);
	expect_tx_cnt(c, 2);
	CHECK_EQ(expect_in(p.b, ctx, "str1", 4).src, FI_ADDR_NOTAVAIL);
	ctx = recv_from(p.b, TRECV, fi_group_addr(side_insert(p.b, c), 4), in[1], 4, 1);
	expect_in(p.b, ctx, "str2", 4);
}

/* A peer that has none: an error completion says so, and messages without a group go on. */
TEST_PROV(peer_without_groups, FI_MSG | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	struct pair p = groups_open(t);
	struct side *c = side_open(t);
	char in[4];

	p.a->peer = side_insert(p.a, c);
	send_to(p.a, SEND, 1, "none", 4, 0);
	expect_tx_err(p.a, FI_EOPNOTSUPP);
	post_recv(c, in, 4);
	send_bytes(p.a, "fine", 4);
	expect_recv(c, "fine", 4);
	expect_tx(p.a);
	send_to(p.a, SEND, 1, "none", 4, 0);
	expect_tx_err(p.a, FI_EOPNOTSUPP);
}

/* A group beyond what the domain has is refused, in sends and in receives. */
TEST_PROV(group_out_of_range, FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	struct pair p = groups_open(t);
	const fi_addr_t to = in_group(p.a, p.a->info->domain_attr->max_group_id + 1);
	const fi_addr_t from = any_in(p.b->info->domain_attr->max_group_id + 1);
	struct fi_context2 ctx;
	char in[4];

	CHECK_RET(try_op(p.a, SEND, .buf = "none", .len = 4, .addr = &to), -FI_EINVAL);
	CHECK_RET(try_op(p.a, TINJECT, .buf = "none", .len = 4, .addr = &to), -FI_EINVAL);
	CHECK_RET(try_op(p.b, RECV, .buf = in, .len = 4, .addr = &from), -FI_EINVAL);
	CHECK_RET(try_op(p.b, TRECVMSG, .flags = FI_PEEK, .ctx = &ctx, .addr = &from), -FI_EINVAL);
	check_link(p.a, p.b);
}

/* Remote access matches nothing: the group of its address does not count. */
TEST_PROV(remote_access_in_a_group, FI_MSG | FI_RMA, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	struct pair p = groups_open(t);
	struct region r = region_open(p.b, NULL, 8, FI_REMOTE_WRITE | FI_REMOTE_READ);
	const fi_addr_t addr = in_group(p.a, 3);
	char back[8];

	post(p.a, WRITEMSG, .buf = "written", .len = 8, .raddr = r.addr, .key = r.key, .addr = &addr,
	     .flags = FI_COMPLETION | level_delivered());
	expect_tx(p.a);
	CHECK_MEM(r.buf, "written", 8);
	post(p.a, READ, .buf = back, .len = 8, .raddr = r.addr, .key = r.key, .addr = &addr);
	expect_tx(p.a);
	CHECK_MEM(back, "written", 8);
}

/* Groups are there beside the receive contexts of a scalable endpoint's address: both are in the upper half. */
TEST_PROV(group_and_receive_context, FI_TAGGED | FI_DIRECTED_RECV, RDM_ONLY, .since = FI_VERSION(2, 0))
{
	enum { BITS = 4 };
	struct side *a, *b;
	fi_addr_t addr;
	char in[4];

	groups_open(t);
	a = side_open(t, .hints = ask_for_groups, .rx_ctx_bits = BITS);
	b = side_open(t, .hints = ask_for_groups, .rx_ctx_bits = BITS);
	a->peer = side_insert(a, b);
	b->peer = side_insert(b, a);
	addr = fi_rx_addr(in_group(a, GROUPS), 0, BITS);
	post(a, TSEND, .buf = "both", .len = 4, .tag = 1, .addr = &addr);
	expect_in(b, recv_from(b, TRECV, in_group(b, GROUPS), in, 4, 1), "both", 4);
	expect_tx(a);
}

/* With FI_AV_USER_ID a completion names the peer by its number of the program, in a group as well. */
TEST_PROV(user_id_of_a_source_in_a_group, FI_MSG | FI_SOURCE | FI_DIRECTED_RECV | FI_AV_USER_ID, RDM_ONLY,
	  .since = FI_VERSION(2, 0))
{
	struct pair p = groups_open(t);
	char in[4];
	void *ctx;

	MUST(fi_av_set_user_id(p.b->av, p.b->peer, 77, 0));
	ctx = recv_from(p.b, RECV, in_group(p.b, 8), in, 4, 0);
	send_to(p.a, SEND, 8, "user", 4, 0);
	CHECK_EQ(expect_in(p.b, ctx, "user", 4).src, 77);
	expect_tx(p.a);
}
