/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The provider as a peer: the test plays the owner of its queues. Source: fi_peer(3). */
#include <pthread.h>
#include <rdma/providers/fi_peer.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"	/* poll sets */

#define CAPS (FI_MSG | FI_TAGGED | FI_PEER)

/* Owners are called from whatever thread makes progress: guards all that they have been told. */
static pthread_mutex_t owner_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t told(const size_t *cnt)
{
	size_t now;

	pthread_mutex_lock(&owner_lock);
	now = *cnt;
	pthread_mutex_unlock(&owner_lock);
	return now;
}

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

	pthread_mutex_lock(&owner_lock);
	owned->cnt++;
	owned->last = (struct fi_cq_tagged_entry) { context, flags, len, buf, data, tag };
	owned->src = src;
	pthread_mutex_unlock(&owner_lock);
	return 0;
}

static ssize_t owner_writeerr(struct fid_peer_cq *cq, const struct fi_cq_err_entry *err)
{
	struct owned_cq *owned = (struct owned_cq *) cq;

	pthread_mutex_lock(&owner_lock);
	owned->err_cnt++;
	owned->err = *err;
	pthread_mutex_unlock(&owner_lock);
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

/* Connected: b is who accepts. */
static struct pair connect_owned(struct test *t, struct owned_cq *tx, struct owned_cq *rx)
{
	struct opts raw = { .raw_cq = true };
	struct pair p = { .listener = listener_open(t) };
	struct event request;

	p.a = connector_open(t, p.listener, &(struct opts) { 0 });
	MUST(fi_connect(p.a->ep, p.listener->name, NULL, 0));
	request = expect_event(p.listener, FI_CONNREQ);
	p.b = acceptor_new(p.listener, request.info, &raw);
	p.b->tx_cq = peer_cq_open(p.b, tx);
	p.b->rx_cq = tx == rx ? p.b->tx_cq : peer_cq_open(p.b, rx);
	side_open_ep(p.b);
	side_bind(p.b);
	side_enable(p.b);
	MUST(fi_accept(p.b->ep, NULL, 0));
	expect_event(p.a, FI_CONNECTED);
	expect_event(p.b, FI_CONNECTED);
	return p;
}

/* Two sides that know each other; b's completions go to the owners. */
static struct pair pair_owned(struct test *t, struct owned_cq *tx, struct owned_cq *rx)
{
	struct pair p = { 0 };

	if (run.type == FI_EP_MSG)
		return connect_owned(t, tx, rx);
	p.a = side_open(t);
	p.b = domain_side(t, .raw_cq = true);
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

	while (told(cnt) < at_least)
		wait_more(t, &w, "a completion at the owner");
	CHECK_EQ(told(cnt), at_least);
}

/* Successes go to the owner with all that the entry of a queue would have. */
TEST_PROV(completions_go_to_the_owner, CAPS, RELIABLE)
{
	struct owned_cq tx = { 0 }, rx = { 0 };
	struct pair p = pair_owned(t, &tx, &rx);
	char in[8], out[8] = "outward";

	post(p.b, TRECV, .buf = in, .len = 8, .tag = 5, .ctx = in);
	post(p.a, TSENDDATA, .buf = "inward.", .len = 8, .tag = 5, .data = 77);
	wait_cnt(t, &rx.cnt, 1);
	CHECK(rx.last.op_context == in && rx.last.len == 8 && rx.last.tag == 5 && rx.last.data == 77);
	CHECK((rx.last.flags & (FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA)) == (FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA));
	CHECK_MEM(in, "inward.", 8);

	post_recv(p.a, in, 8);
	post(p.b, SEND, .buf = out, .len = 8, .ctx = out);
	wait_cnt(t, &tx.cnt, 1);
	CHECK(tx.last.op_context == out && (tx.last.flags & (FI_MSG | FI_SEND)) == (FI_MSG | FI_SEND));
	expect_recv(p.a, "outward", 8);
	CHECK_EQ(told(&rx.cnt), 1);
}

/* And whom a message came from. */
TEST_PROV(source_goes_to_the_owner, CAPS | FI_SOURCE, RDM_ONLY)
{
	struct owned_cq all = { 0 };
	struct pair p = pair_owned(t, &all, &all);
	char in[8];

	post_recv(p.b, in, 8);
	send_bytes(p.a, "inward.", 8);
	wait_cnt(t, &all.cnt, 1);
	CHECK_EQ(all.src, p.b->peer);
}

/* More than any ring holds: each is told once. */
TEST_PROV(many_completions, CAPS, RELIABLE)
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
	CHECK_EQ(told(&all.err_cnt), 0);
}

/* Failures, too. */
TEST_PROV(errors_go_to_the_owner, CAPS, RELIABLE)
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
	CHECK_EQ(told(&all.cnt), 0);
}

/* There is nothing to read from a peer's queue; reading none of it makes progress. */
TEST_PROV(peer_queue_is_not_read, CAPS, RDM_ONLY)
{
	struct owned_cq owned = { 0 };
	struct side *s = domain_side(t);
	struct fid_cq *cq = peer_cq_open(s, &owned);
	struct fi_poll_attr attr = { 0 };
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err = { 0 };
	struct fid_poll *set;
	void *context[1];

	CHECK_RET(fi_cq_read(cq, &entry, 1), -FI_ENOSYS);
	CHECK_RET(fi_cq_readerr(cq, &err, 0), -FI_ENOSYS);
	CHECK_RET(fi_cq_sread(cq, &entry, 1, NULL, 0), -FI_ENOSYS);
	CHECK_RET(fi_cq_read(cq, NULL, 0), -FI_EAGAIN);
	MUST(fi_poll_open(s->domain, &attr, &set));
	own_fid(t, &set->fid);
	MUST(fi_poll_add(set, &cq->fid, 0));
	CHECK_RET(fi_poll(set, context, 1), 0);
	MUST(fi_poll_del(set, &cq->fid, 0));
}

struct refused_row {
	const char *name;
	bool no_context, short_context, no_cq, no_ops;
};
static const struct refused_row refused_rows[] = {
	{ "no_context", .no_context = true }, { "short_context", .short_context = true },
	{ "no_object", .no_cq = true }, { "no_operations", .no_ops = true },
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
	struct fi_peer_av_context av_context = { .size = context.size };
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .flags = FI_PEER };
	struct fi_cntr_attr cntr_attr = { .flags = FI_PEER };
	struct fi_av_attr av_attr = { .flags = FI_PEER };
	struct side *s = domain_side(t);
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct fid_av *av;

	CHECK_RET(fi_cq_open(s->domain, &attr, &cq, row->no_context ? NULL : &context), -FI_EINVAL);
	CHECK_RET(fi_cntr_open(s->domain, &cntr_attr, &cntr, row->no_context ? NULL : &cntr_context), -FI_EINVAL);
	CHECK_RET(fi_av_open(s->domain, &av_attr, &av, row->no_context ? NULL : &av_context), -FI_EINVAL);
}

/* ---- counters */

struct owned_cntr {
	struct fid_peer_cntr peer;
	size_t cnt, err_cnt;
};

static void owner_inc(struct fid_peer_cntr *cntr)
{
	pthread_mutex_lock(&owner_lock);
	((struct owned_cntr *) cntr)->cnt++;
	pthread_mutex_unlock(&owner_lock);
}

static void owner_incerr(struct fid_peer_cntr *cntr)
{
	pthread_mutex_lock(&owner_lock);
	((struct owned_cntr *) cntr)->err_cnt++;
	pthread_mutex_unlock(&owner_lock);
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
	CHECK_EQ(told(&owned.cnt), 2);
	CHECK_EQ(told(&owned.err_cnt), 1);
	CHECK_RET(fi_cntr_add(cntr, 1), -FI_ENOSYS);
}

/* What is no peer object here says so, as fi_peer(3) has it. */
TEST_PROV(other_objects_are_refused, CAPS, RDM_ONLY)
{
	struct side *s = domain_side(t);
	struct fi_eq_attr eq_attr = { .flags = FI_PEER };
	struct fid_domain *domain;
	struct fid_eq *eq;

	CHECK_RET(fi_eq_open(s->fabric, &eq_attr, &eq, NULL), -FI_EINVAL);
	CHECK_RET(fi_domain2(s->fabric, s->info, &domain, FI_PEER, NULL), -FI_EINVAL);
}

/* ---- receives */

/* A receive or a message that waits at the owner; the entry goes to the provider and back. */
struct owned_rx {
	struct fi_peer_rx_entry entry;
	struct iovec iov;
	struct owned_rx *next;
};

/* An owner of receives, as simple as can be: two lists, in order; by tag alone. */
struct owned_srx {
	struct fid_peer_srx srx;
	struct fi_ops_srx_peer peer_ops;
	struct owned_rx *posted, *waiting;
	size_t out_cnt;			/* entries that have not come back */
};

static struct owned_rx **place_of(struct owned_rx **list, uint64_t tag)
{
	while (*list && (*list)->entry.tag != tag)
		list = &(*list)->next;
	return list;
}

static struct owned_rx *take_out(struct owned_rx **list, uint64_t tag)
{
	struct owned_rx **place = place_of(list, tag), *rx = *place;

	if (rx)
		*place = rx->next;
	return rx;
}

static void append(struct owned_rx **list, struct owned_rx *rx)
{
	while (*list)
		list = &(*list)->next;
	rx->next = NULL;
	*list = rx;
}

static int owner_get_tag(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr, struct fi_peer_rx_entry **entry)
{
	struct owned_srx *owned = (struct owned_srx *) srx;
	struct owned_rx *rx;
	int ret;

	pthread_mutex_lock(&owner_lock);
	rx = take_out(&owned->posted, attr->tag);
	ret = rx ? FI_SUCCESS : -FI_ENOENT;
	if (!rx)
		rx = calloc(1, sizeof(*rx));
	owned->out_cnt++;
	rx->entry.srx = srx;
	rx->entry.addr = attr->addr;
	rx->entry.msg_size = attr->msg_size;
	rx->entry.tag = attr->tag;
	*entry = &rx->entry;
	pthread_mutex_unlock(&owner_lock);
	return ret;
}

static int owner_get_msg(struct fid_peer_srx *srx, struct fi_peer_match_attr *attr, struct fi_peer_rx_entry **entry)
{
	return owner_get_tag(srx, attr, entry);		/* of tag 0 */
}

static int owner_queue(struct fi_peer_rx_entry *entry)
{
	pthread_mutex_lock(&owner_lock);
	append(&((struct owned_srx *) entry->srx)->waiting, (struct owned_rx *) entry);
	pthread_mutex_unlock(&owner_lock);
	return 0;
}

static void owner_free_entry(struct fi_peer_rx_entry *entry)
{
	pthread_mutex_lock(&owner_lock);
	((struct owned_srx *) entry->srx)->out_cnt--;
	pthread_mutex_unlock(&owner_lock);
	free(entry);
}

static struct fi_ops_srx_owner srx_owner = {
	.size = sizeof(struct fi_ops_srx_owner),
	.get_msg = owner_get_msg,
	.get_tag = owner_get_tag,
	.queue_msg = owner_queue,
	.queue_tag = owner_queue,
	.free_entry = owner_free_entry,
};

/* The program posts a receive with the owner, which calls the provider with its lock held. */
static void owner_post(struct owned_srx *owned, void *buf, size_t len, uint64_t tag)
{
	struct owned_rx *rx;
	bool waits;
	int ret = 0;

	pthread_mutex_lock(&owner_lock);
	rx = take_out(&owned->waiting, tag);
	waits = rx;
	if (!rx)
		rx = calloc(1, sizeof(*rx));
	rx->iov = (struct iovec) { buf, len };
	rx->entry.iov = &rx->iov;
	rx->entry.count = 1;
	rx->entry.tag = tag;
	rx->entry.context = buf;
	if (!waits)
		append(&owned->posted, rx);
	else
		ret = tag ? owned->peer_ops.start_tag(&rx->entry) : owned->peer_ops.start_msg(&rx->entry);
	pthread_mutex_unlock(&owner_lock);
	MUST(ret);
}

struct owned_pair {
	struct pair p;
	struct owned_srx *srx;
	struct owned_cq *cq;
};

/* b's receives and completions are the owner's. */
static struct owned_pair pair_owned_rx(struct test *t)
{
	struct owned_pair o = { .srx = mem(t, sizeof(*o.srx)), .cq = mem(t, sizeof(*o.cq)) };
	struct fi_peer_srx_context context = { .size = sizeof(context), .srx = &o.srx->srx };
	struct fi_rx_attr attr = { .op_flags = FI_PEER };
	struct fid_ep *srx;

	o.p.a = side_open(t);
	o.p.b = domain_side(t, .raw_cq = true);
	o.srx->srx.owner_ops = &srx_owner;
	o.srx->srx.peer_ops = &o.srx->peer_ops;
	o.srx->peer_ops.size = sizeof(o.srx->peer_ops);
	MUST(fi_srx_context(o.p.b->domain, &attr, &srx, &context));
	own_fid(t, &srx->fid);
	o.p.b->o.srx = srx;
	o.p.b->tx_cq = o.p.b->rx_cq = peer_cq_open(o.p.b, o.cq);
	side_open_av(o.p.b);
	side_open_ep(o.p.b);
	side_bind(o.p.b);
	side_enable(o.p.b);
	o.p.a->peer = side_insert(o.p.a, o.p.b);
	o.p.b->peer = side_insert(o.p.b, o.p.a);
	return o;
}

static const struct length_row peer_lengths[] = { { "8_bytes", 8 }, { "64_KiB", 65536 }, { "1_MiB", 1 << 20 } };

/* A message goes into the receive that the owner has for it, whichever of the two comes first. */
TEST_TABLE(owner_matches, peer_lengths, CAPS, RDM_ONLY)
{
	size_t len = ROW(peer_lengths)->len;
	struct owned_pair o = pair_owned_rx(t);
	uint8_t *early = mem(t, len), *late = mem(t, len), *plain = mem(t, len);

	owner_post(o.srx, early, len, 5);
	post(o.p.a, TSEND, .buf = mem_pattern(t, len, 1), .len = len, .tag = 5);
	wait_cnt(t, &o.cq->cnt, 1);
	CHECK(o.cq->last.op_context == early && o.cq->last.len == len && o.cq->last.tag == 5);
	check_fill(early, len, 1);

	post(o.p.a, TSEND, .buf = mem_pattern(t, len, 2), .len = len, .tag = 6);
	post(o.p.a, SEND, .buf = mem_pattern(t, len, 3), .len = len);
	idle(t);
	CHECK_EQ(told(&o.cq->cnt), 1);
	owner_post(o.srx, plain, len, 0);
	wait_cnt(t, &o.cq->cnt, 2);
	owner_post(o.srx, late, len, 6);
	wait_cnt(t, &o.cq->cnt, 3);
	check_fill(plain, len, 3);
	check_fill(late, len, 2);
	expect_tx_cnt(o.p.a, 3);
	CHECK_EQ(told(&o.srx->out_cnt), 0);
}

/* What the owner drops is reported to nobody, and the next message arrives. */
TEST_PROV(owner_discards, CAPS, RDM_ONLY)
{
	struct owned_pair o = pair_owned_rx(t);
	struct owned_rx *rx;
	struct wait w;
	char in[8];

	post(o.p.a, TSEND, .buf = "unwanted", .len = 8, .tag = 5);
	idle(t);
	pthread_mutex_lock(&owner_lock);
	rx = take_out(&o.srx->waiting, 5);
	pthread_mutex_unlock(&owner_lock);
	CHECK(rx);
	MUST(o.srx->peer_ops.discard_tag(&rx->entry));
	w = wait_begin();
	while (told(&o.srx->out_cnt))
		wait_more(t, &w, "the entry's return");
	CHECK_EQ(told(&o.cq->cnt) + told(&o.cq->err_cnt), 0);
	owner_post(o.srx, in, 8, 5);
	post(o.p.a, TSEND, .buf = "wanted..", .len = 8, .tag = 5);
	wait_cnt(t, &o.cq->cnt, 1);
	CHECK_MEM(in, "wanted..", 8);
}

/* A receive that is too short is an error, and gives its entry back, too. */
TEST_PROV(owner_gets_truncation, CAPS, RDM_ONLY)
{
	struct owned_pair o = pair_owned_rx(t);
	char in[4];

	owner_post(o.srx, in, 4, 5);
	post(o.p.a, TSEND, .buf = "too long", .len = 8, .tag = 5);
	wait_cnt(t, &o.cq->err_cnt, 1);
	CHECK(o.cq->err.op_context == in && o.cq->err.err == FI_ETRUNC);
	CHECK_EQ(told(&o.srx->out_cnt), 0);
}

/* Entries that still wait come back when the context is closed, or the message's endpoint has gone. */
TEST_PROV(entries_come_back, CAPS, RDM_ONLY)
{
	struct owned_pair o = pair_owned_rx(t);
	struct fid_ep *srx = o.p.b->o.srx;

	post(o.p.a, TSEND, .buf = "waiting.", .len = 8, .tag = 5);
	post(o.p.a, TSEND, .buf = mem_pattern(t, 1 << 20, 1), .len = 1 << 20, .tag = 6);
	idle(t);
	CHECK_EQ(told(&o.srx->out_cnt), 2);
	CHECK_RET(fi_close(&srx->fid), -FI_EBUSY);
	side_close_ep(o.p.b);
	close_now(t, &srx->fid);
	CHECK_EQ(told(&o.srx->out_cnt), 0);
}
