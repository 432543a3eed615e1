/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The provider as a peer: the test plays the owner of its queues. Source: fi_peer(3). */
#include <rdma/providers/fi_peer.h>
#include <string.h>

#include "ops.h"

#define CAPS (FI_MSG | FI_TAGGED | FI_PEER)

/* ---- completion queues */

/* What an owner has been told. */
struct owned_cq {
	struct fid_peer_cq peer;
	size_t cnt, err_cnt;
	struct fi_cq_tagged_entry last;
	fi_addr_t src;
	struct fi_cq_err_entry err;
};

static ssize_t owner_write(struct fid_peer_cq *cq, void *context, uint64_t flags, size_t len, void *buf, uint64_t data,
			   uint64_t tag, fi_addr_t src)
{
	struct owned_cq *owned = (struct owned_cq *) cq;

	owned->cnt++;
	owned->last = (struct fi_cq_tagged_entry) { context, flags, len, buf, data, tag };
	owned->src = src;
	return 0;
}

static ssize_t owner_writeerr(struct fid_peer_cq *cq, const struct fi_cq_err_entry *err)
{
	struct owned_cq *owned = (struct owned_cq *) cq;

	owned->err_cnt++;
	owned->err = *err;
	return 0;
}

static struct fi_ops_cq_owner cq_owner = {
	.size = sizeof(struct fi_ops_cq_owner),
	.write = owner_write,
	.writeerr = owner_writeerr,
};

static struct fid_cq *peer_cq_open(struct side *s, struct owned_cq *owned)
{
	struct fi_peer_cq_context context = { .size = sizeof(context), .cq = &owned->peer };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .flags = FI_PEER };
	struct fid_cq *cq;

	owned->peer.fid.fclass = FI_CLASS_PEER_CQ;
	owned->peer.owner_ops = &cq_owner;
	MUST(fi_cq_open(s->domain, &attr, &cq, &context));
	own_fid(s->t, &cq->fid);
	return cq;
}

/* Two sides that know each other; b's completions go to the owners. */
static struct pair pair_owned(struct test *t, struct owned_cq *tx, struct owned_cq *rx)
{
	struct pair p = { .a = side_open(t), .b = domain_side(t, .raw_cq = true) };

	p.b->tx_cq = peer_cq_open(p.b, tx);
	p.b->rx_cq = tx == rx ? p.b->tx_cq : peer_cq_open(p.b, rx);
	side_open_av(p.b);
	side_open_ep(p.b);
	side_bind(p.b);
	side_enable(p.b);
	p.a->peer = side_insert(p.a, p.b);
	p.b->peer = side_insert(p.b, p.a);
	return p;
}

static void wait_cnt(struct test *t, const size_t *cnt, size_t at_least)
{
	struct wait w = wait_begin();

	while (*cnt < at_least)
		wait_more(t, &w, "a completion at the owner");
	CHECK_EQ(*cnt, at_least);
}

/* Successes go to the owner with all that the entry of a queue would have. */
TEST_PROV(completions_go_to_the_owner, CAPS | FI_SOURCE, RDM_ONLY)
{
	struct owned_cq tx = { 0 }, rx = { 0 };
	struct pair p = pair_owned(t, &tx, &rx);
	char in[8], out[8] = "outward";

	post(p.b, TRECV, .buf = in, .len = 8, .tag = 5, .ctx = in);
	post(p.a, TSENDDATA, .buf = "inward.", .len = 8, .tag = 5, .data = 77);
	wait_cnt(t, &rx.cnt, 1);
	CHECK(rx.last.op_context == in && rx.last.len == 8 && rx.last.tag == 5 && rx.last.data == 77);
	CHECK((rx.last.flags & (FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA)) == (FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA));
	CHECK_EQ(rx.src, p.b->peer);
	CHECK_MEM(in, "inward.", 8);

	post_recv(p.a, in, 8);
	post(p.b, SEND, .buf = out, .len = 8, .ctx = out);
	wait_cnt(t, &tx.cnt, 1);
	CHECK(tx.last.op_context == out && (tx.last.flags & (FI_MSG | FI_SEND)) == (FI_MSG | FI_SEND));
	expect_recv(p.a, "outward", 8);
	CHECK_EQ(rx.cnt, 1);
}

/* More than any ring holds: each is told once. */
TEST_PROV(many_completions, CAPS, RDM_ONLY)
{
	enum { CNT = 300 };
	struct owned_cq all = { 0 };
	struct pair p = pair_owned(t, &all, &all);
	char in[CNT];

	for (size_t i = 0; i < CNT; i++)
		post_recv(p.b, &in[i], 1);
	for (size_t i = 0; i < CNT; i++)
		send_bytes(p.a, "x", 1);
	wait_cnt(t, &all.cnt, CNT);
	CHECK_EQ(all.err_cnt, 0);
}

/* Failures, too. */
TEST_PROV(errors_go_to_the_owner, CAPS, RDM_ONLY)
{
	struct owned_cq all = { 0 };
	struct pair p = pair_owned(t, &all, &all);
	char in[4];

	post(p.b, RECV, .buf = in, .len = 4, .ctx = in);
	send_bytes(p.a, "too long", 8);
	wait_cnt(t, &all.err_cnt, 1);
	CHECK(all.err.op_context == in && all.err.err == FI_ETRUNC && all.err.olen == 4);
	post(p.b, RECV, .buf = in, .len = 4, .ctx = &p);
	MUST(fi_cancel(&p.b->ep->fid, &p));
	wait_cnt(t, &all.err_cnt, 2);
	CHECK(all.err.op_context == &p && all.err.err == FI_ECANCELED);
	CHECK_EQ(all.cnt, 0);
}

/* There is nothing to read from a peer's queue; reading none of it makes progress. */
TEST_PROV(peer_queue_is_not_read, CAPS, RDM_ONLY)
{
	struct owned_cq owned = { 0 };
	struct side *s = domain_side(t);
	struct fid_cq *cq = peer_cq_open(s, &owned);
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };

	CHECK_RET(fi_cq_read(cq, &entry, 1), -FI_ENOSYS);
	CHECK_RET(fi_cq_readerr(cq, &err, 0), -FI_ENOSYS);
	CHECK_RET(fi_cq_sread(cq, &entry, 1, NULL, 0), -FI_ENOSYS);
	CHECK_RET(fi_cq_read(cq, NULL, 0), -FI_EAGAIN);
}

struct refused_row {
	const char *name;
	bool no_context, short_context, no_cq, no_ops;
};
static const struct refused_row refused_rows[] = {
	{ "no_context", .no_context = true }, { "short_context", .short_context = true }, { "no_object", .no_cq = true },
	{ "no_operations", .no_ops = true },
};

/* Half an owner is none. */
TEST_TABLE(owner_is_checked, refused_rows, CAPS, RDM_ONLY)
{
	const struct refused_row *row = ROW(refused_rows);
	struct owned_cq owned = { .peer.owner_ops = row->no_ops ? NULL : &cq_owner };
	struct fi_peer_cq_context context = {
		.size = row->short_context ? 8 : sizeof(context), .cq = row->no_cq ? NULL : &owned.peer,
	};
	struct fi_peer_cntr_context cntr_context = { .size = context.size };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .flags = FI_PEER };
	struct fi_cntr_attr cntr_attr = { .flags = FI_PEER };
	struct side *s = domain_side(t);
	struct fid_cntr *cntr;
	struct fid_cq *cq;

	CHECK_RET(fi_cq_open(s->domain, &attr, &cq, row->no_context ? NULL : &context), -FI_EINVAL);
	CHECK_RET(fi_cntr_open(s->domain, &cntr_attr, &cntr, row->no_context ? NULL : &cntr_context), -FI_EINVAL);
}

/* ---- counters */

struct owned_cntr {
	struct fid_peer_cntr peer;
	size_t cnt, err_cnt;
};

static void owner_inc(struct fid_peer_cntr *cntr)
{
	((struct owned_cntr *) cntr)->cnt++;
}

static void owner_incerr(struct fid_peer_cntr *cntr)
{
	((struct owned_cntr *) cntr)->err_cnt++;
}

static struct fi_ops_cntr_owner cntr_owner = {
	.size = sizeof(struct fi_ops_cntr_owner),
	.inc = owner_inc,
	.incerr = owner_incerr,
};

/* What a counter counts, its owner counts. */
TEST_PROV(counts_go_to_the_owner, CAPS, RDM_ONLY)
{
	struct owned_cntr owned = { .peer = { .fid.fclass = FI_CLASS_PEER_CNTR, .owner_ops = &cntr_owner } };
	struct fi_peer_cntr_context context = { .size = sizeof(context), .cntr = &owned.peer };
	struct fi_cntr_attr attr = { .flags = FI_PEER };
	struct pair p = { .a = side_open(t), .b = domain_side(t) };
	struct fid_cntr *cntr;
	char in[3][4];

	MUST(fi_cntr_open(p.b->domain, &attr, &cntr, &context));
	own_fid(t, &cntr->fid);
	side_open_rest(p.b);
	MUST(fi_ep_bind(p.b->ep, &cntr->fid, FI_RECV));
	p.a->peer = side_insert(p.a, p.b);
	for (size_t i = 0; i < 3; i++) {
		post_recv(p.b, in[i], 4);
		send_bytes(p.a, i < 2 ? "fits" : "not so", i < 2 ? 4 : 6);
	}
	expect_rx_cnt(p.b, 2);
	expect_rx_err(p.b, FI_ETRUNC);
	fi_cntr_read(cntr);
	CHECK_EQ(owned.cnt, 2);
	CHECK_EQ(owned.err_cnt, 1);
	CHECK_RET(fi_cntr_add(cntr, 1), -FI_ENOSYS);
}
