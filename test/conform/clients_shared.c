/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What clients do with objects that they use if they are offered, call by call: MPICH with a scalable endpoint and a
 * named address vector, Sandia OpenSHMEM with a pool of shared transmit contexts and counters that are bound late.
 * Source: fi_endpoint(3).
 */
#include <rdma/fi_atomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clients.h"

/* ---- MPICH: a context of each direction for each of its interfaces (VCI), which have a queue and a counter each */

enum { VCIS = 2, RX_BITS = 8, RANKS = 3, AM_LEN = 16384 };

struct rank {
	struct side *base;
	struct fid_ep *sep;
	struct side *tx[VCIS], *rx[VCIS];	/* the queue is drained by tx */
	struct fid_cntr *rma[VCIS];
	bool reads_av;
};

/* The first process of a node finds no vector by this name and makes it; the others read. */
static void rank_open_av(struct rank *r)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE, .rx_ctx_bits = RX_BITS, .flags = FI_READ };
	struct side *s = r->base;
	char name[64];

	snprintf(name, sizeof(name), "FI_NAMED_AV_0 of %d", (int) getpid());
	attr.name = name;
	r->reads_av = !fi_av_open(s->domain, &attr, &s->av, s);
	if (!r->reads_av) {
		attr.flags = 0;
		MUST(fi_av_open(s->domain, &attr, &s->av, s));
	}
	own_fid(s->t, &s->av->fid);
	CHECK(attr.map_addr != NULL);
}

static void rank_open_vci(struct rank *r, int i)
{
	struct side *s = r->base;
	size_t min = AM_LEN / 4;

	r->tx[i] = domain_side(s->t, .domain_of = s, .av_of = s, .sep = r->sep, .ctx = i, .one_cq = true);
	r->rx[i] = domain_side(s->t, .domain_of = s, .av_of = s, .sep = r->sep, .ctx = i, .rx_ctx = true,
			       .cq_of = r->tx[i]);
	side_open_cqs(r->tx[i]);
	side_open_cqs(r->rx[i]);
	r->rma[i] = client_counter(s, FI_WAIT_UNSPEC);
	side_open_ep(r->tx[i]);
	side_open_ep(r->rx[i]);
	MUST(fi_ep_bind(r->tx[i]->ep, &r->tx[i]->tx_cq->fid, FI_SEND | FI_SELECTIVE_COMPLETION));
	MUST(fi_ep_bind(r->tx[i]->ep, &r->rma[i]->fid, FI_READ | FI_WRITE));
	MUST(fi_ep_bind(r->rx[i]->ep, &r->tx[i]->tx_cq->fid, FI_RECV));
	MUST(fi_setopt(&r->rx[i]->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	MUST(fi_enable(r->tx[i]->ep));
	MUST(fi_enable(r->rx[i]->ep));
}

static struct rank rank_open(struct test *t, struct fi_info *info)
{
	struct rank r = { 0 };
	int i;

	info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = VCIS;
	r.base = domain_side(t, .info = info);
	rank_open_av(&r);
	MUST(fi_scalable_ep(r.base->domain, info, &r.sep, &r));
	own_fid(t, &r.sep->fid);
	MUST(fi_scalable_ep_bind(r.sep, &r.base->av->fid, 0));
	for (i = 0; i < VCIS; i++)
		rank_open_vci(&r, i);
	MUST(fi_enable(r.sep));
	r.base->name_len = sizeof(r.base->name);
	MUST(fi_getname(&r.sep->fid, r.base->name, &r.base->name_len));
	CHECK(r.base->name_len <= 64);
	return r;
}

/* The next receive of this interface: what was posted with @ctx, filled by pattern @seed. */
static struct comp vci_received(struct rank *r, int vci, void *ctx, const void *buf, size_t len, unsigned int seed)
{
	struct comp c = expect_rx(r->tx[vci]);

	CHECK(c.ctx == ctx);
	CHECK_EQ(c.len, len);
	check_fill(buf, len, seed);
	return c;
}

/* Rank and tag by one interface to the same one of another rank, early and late. */
static void vci_check_tagged(struct rank *a, struct rank *b, int vci, fi_addr_t to_b)
{
	static const size_t sizes[] = { 8, 5000, 300000 };
	struct test *t = a->base->t;
	fi_addr_t dest = fi_rx_addr(to_b, vci, RX_BITS);
	struct comp c;
	size_t i;
	void *ctx;

	for (i = 0; i < 2 * COUNT(sizes); i++) {
		size_t len = sizes[i / 2];
		unsigned int seed = (unsigned int) (100 * vci + (int) i);
		uint8_t *in = mem(t, len), *out = mem_pattern(t, len, seed);

		if (i % 2)
			post(a->tx[vci], TSENDDATA, .buf = out, .len = len, .tag = i, .data = 7, .addr = &dest);
		ctx = post(b->rx[vci], TRECV, .buf = in, .len = len, .tag = i);
		if (!(i % 2))
			post(a->tx[vci], TSENDDATA, .buf = out, .len = len, .tag = i, .data = 7, .addr = &dest);
		c = vci_received(b, vci, ctx, in, len, seed);
		CHECK_EQ(c.tag, i);
		CHECK_EQ(c.data, 7);
		expect_tx(a->tx[vci]);
	}
	ctx = post(b->rx[vci], TRECV, .buf = mem(t, 8), .len = 8, .tag = 99);
	MUST((int) fi_cancel(&b->rx[vci]->ep->fid, ctx));
	CHECK(expect_rx_err(b->tx[vci], FI_ECANCELED).ctx == ctx);
}

/* Active messages come into a buffer for many of the interface that they were sent to. */
static void vci_check_am(struct rank *a, struct rank *b, int vci, fi_addr_t to_b)
{
	uint8_t *in = mem(a->base->t, AM_LEN), *out = mem_pattern(a->base->t, 900, 4);
	fi_addr_t dest = fi_rx_addr(to_b, vci, RX_BITS);
	int i, received = 0;
	struct comp c;

	post(b->rx[vci], RECVMSG, .buf = in, .len = AM_LEN, .flags = FI_MULTI_RECV | FI_COMPLETION);
	for (i = 0; i < 20; i++)
		post(a->tx[vci], INJECT, .buf = out, .len = 100, .addr = &dest);
	while (received < 20) {
		c = expect_rx(b->tx[vci]);
		if (!(c.flags & FI_RECV))
			continue;
		CHECK_EQ(c.len, 100);
		check_fill(c.buf, 100, 4);
		received++;
	}
}

/* Puts and gets that are counted at the interface and have no completion. */
static void vci_check_rma(struct rank *a, struct rank *b, int vci, fi_addr_t to_b)
{
	struct region r = region_open(b->base, NULL, 4096, FI_REMOTE_READ | FI_REMOTE_WRITE);
	uint8_t *out = mem_pattern(a->base->t, 4096, 8), *in = mem(a->base->t, 4096);
	fi_addr_t dest = fi_rx_addr(to_b, vci, RX_BITS);
	uint64_t before = fi_cntr_read(a->rma[vci]), other = fi_cntr_read(a->rma[!vci]);

	post(a->tx[vci], WRITEMSG, .buf = out, .len = 4096, .raddr = r.addr, .key = r.key, .addr = &dest,
	     .flags = FI_DELIVERY_COMPLETE);
	post(a->tx[vci], INJECT_WRITE, .buf = out, .len = 16, .raddr = r.addr, .key = r.key, .addr = &dest);
	client_counted(a->base, a->rma[vci], before + 2);
	check_fill(r.buf, 4096, 8);
	post(a->tx[vci], READMSG, .buf = in, .len = 4096, .raddr = r.addr, .key = r.key, .addr = &dest);
	client_counted(a->base, a->rma[vci], before + 3);
	check_fill(in, 4096, 8);
	CHECK_EQ(fi_cntr_read(a->rma[!vci]), other);
	expect_no_completion(a->tx[vci]);
}

/* Three processes of a node: one inserts everybody's address, all of them use it by its index, each from its own
 * place. */
TEST_PROV(mpich_sequence_scalable, FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV | FI_NAMED_RX_CTX | FI_SHARED_AV,
	  RDM_ONLY)
{
	struct fi_info *info = client_info(t, "mpich_ch4_scalable");
	struct rank rank[RANKS];
	uint8_t name[128];
	fi_addr_t addr;
	size_t len;
	int i, vci;

	for (i = 0; i < RANKS; i++) {
		rank[i] = rank_open(t, info);
		CHECK_EQ(rank[i].reads_av, i > 0);
	}
	for (i = 0; i < RANKS; i++) {
		CHECK_RET(fi_av_insert(rank[0].base->av, rank[i].base->name, 1, &addr, 0, NULL), 1);
		CHECK_EQ(addr, i);
	}
	for (i = 0; i < RANKS; i++) {
		len = sizeof(name);
		MUST(fi_av_lookup(rank[i].base->av, (i + 1) % RANKS, name, &len));
		CHECK_EQ(len, rank[(i + 1) % RANKS].base->name_len);
		CHECK_MEM(name, rank[(i + 1) % RANKS].base->name, len);
	}
	for (vci = 0; vci < VCIS; vci++) {
		for (i = 0; i < RANKS; i++) {
			note("interface %d of rank %d", vci, i);
			vci_check_tagged(&rank[i], &rank[(i + 1) % RANKS], vci, (i + 1) % RANKS);
			vci_check_am(&rank[i], &rank[(i + 2) % RANKS], vci, (i + 2) % RANKS);
			vci_check_rma(&rank[i], &rank[(i + 1) % RANKS], vci, (i + 1) % RANKS);
		}
	}
}

/* ---- Sandia OpenSHMEM: contexts take a transmit context from a pool, and have counters of their own */

enum { CTXS = 3 };

struct pe {
	struct side *target, *ctx[CTXS];
	struct fid_stx *stx[2];			/* fewer than contexts: some share one */
	struct fid_cntr *put[CTXS], *get[CTXS], *at_target;
	struct region heap;
};

static void pe_open_ctx(struct pe *pe, struct fi_info *info, int i)
{
	struct side *s = domain_side(pe->target->t, .info = info, .domain_of = pe->target,
				     .format = FI_CQ_FORMAT_CONTEXT);

	side_open_cqs(s);
	side_open_av(s);
	pe->put[i] = client_counter(s, FI_WAIT_UNSPEC);
	pe->get[i] = client_counter(s, FI_WAIT_UNSPEC);
	side_open_ep(s);
	MUST(fi_ep_bind(s->ep, &pe->stx[i % 2]->fid, 0));
	MUST(fi_ep_bind(s->ep, &pe->put[i]->fid, FI_WRITE));
	MUST(fi_ep_bind(s->ep, &pe->get[i]->fid, FI_READ));
	MUST(fi_ep_bind(s->ep, &s->tx_cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	MUST(fi_ep_bind(s->ep, &s->av->fid, 0));
	MUST(fi_enable(s->ep));
	pe->ctx[i] = s;
}

/* The target is enabled and named before anybody counts at it. */
static void count_target(struct side *s, struct fid_cntr *at_target)
{
	MUST(fi_ep_bind(s->ep, &at_target->fid, FI_REMOTE_WRITE | FI_REMOTE_READ));
	disown(s->t, &s->ep->fid);
	own_fid(s->t, &s->ep->fid);
	if (!strcmp(s->info->fabric_attr->prov_name, "sockets"))
		MUST(fi_enable(s->ep));
}

static void pe_count_target(struct pe *pe)
{
	pe->at_target = client_counter(pe->target, FI_WAIT_UNSPEC);
	count_target(pe->target, pe->at_target);
}

static struct pe pe_open(struct test *t, struct fi_info *info)
{
	struct fi_info *target_info = fi_dupinfo(info), *ctx_info = fi_dupinfo(info);
	struct pe pe = { 0 };
	int i;

	CHECK(target_info && ctx_info);
	own_info(t, target_info);
	own_info(t, ctx_info);
	target_info->ep_attr->tx_ctx_cnt = 0;
	pe.target = side_open(t, .info = target_info);
	for (i = 0; i < 2; i++) {
		MUST(fi_stx_context(pe.target->domain, NULL, &pe.stx[i], NULL));
		own_fid(t, &pe.stx[i]->fid);
	}
	ctx_info->caps = ctx_info->tx_attr->caps = FI_RMA | FI_WRITE | FI_READ | FI_ATOMIC;
	ctx_info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
	for (i = 0; i < CTXS; i++)
		pe_open_ctx(&pe, ctx_info, i);
	pe.heap = region_open(pe.target, NULL, 8192 * CTXS, FI_REMOTE_READ | FI_REMOTE_WRITE);
	return pe;
}

/* Puts of every context at once, then each waits for its own: shmem_ctx_quiet(). */
static void check_contexts(struct pe *a, struct pe *b)
{
	struct test *t = a->target->t;
	uint8_t *out[CTXS], *in[CTXS];
	uint64_t one = 1;
	int i, k;

	for (i = 0; i < CTXS; i++) {
		out[i] = mem_pattern(t, 8000, (unsigned int) i);
		in[i] = mem(t, 8000);
		CHECK_RET(fi_av_insert(a->ctx[i]->av, b->target->name, 1, NULL, 0, NULL), 1);
		a->ctx[i]->peer = 0;
	}
	for (k = 0; k <= CTXS; k++) {
		for (i = k; i < CTXS; i++)
			post(a->ctx[i], INJECT_WRITE, .buf = &one, .len = 8, .key = b->heap.key,
			     .raddr = b->heap.addr + 8192 * (uint64_t) i + 8000 + 8 * (uint64_t) k);
	}
	for (i = 0; i < CTXS; i++)
		post(a->ctx[i], WRITE, .buf = out[i], .len = 8000, .raddr = b->heap.addr + 8192 * (uint64_t) i,
		     .key = b->heap.key);
	for (i = 0; i < CTXS; i++) {
		client_counted(a->ctx[i], a->put[i], 2 + (uint64_t) i);
		check_fill(b->heap.buf + 8192 * i, 8000, (unsigned int) i);
		CHECK_EQ(*(uint64_t *) (b->heap.buf + 8192 * i + 8000 + 8 * i), 1);
		CHECK_EQ(fi_cntr_read(a->get[i]), 0);
	}
	for (i = 0; i < CTXS; i++)
		post(a->ctx[i], READ, .buf = in[i], .len = 8000, .raddr = b->heap.addr + 8192 * (uint64_t) i,
		     .key = b->heap.key);
	for (i = 0; i < CTXS; i++) {
		client_counted(a->ctx[i], a->get[i], 1);
		check_fill(in[i], 8000, (unsigned int) i);
		expect_no_completion(a->ctx[i]);
	}
}

/* Every context adds to one word. */
static void check_adds(struct pe *a, struct pe *b)
{
	uint64_t *word = (uint64_t *) b->heap.buf, one = 1;
	int i;

	*word = 0;
	for (i = 0; i < CTXS; i++)
		MUST((int) fi_inject_atomic(a->ctx[i]->ep, &one, 1, a->ctx[i]->peer, b->heap.addr, b->heap.key,
					    FI_UINT64, FI_SUM));
	for (i = 0; i < CTXS; i++)
		client_counted(a->ctx[i], a->put[i], 3 + (uint64_t) i);
	CHECK_EQ(*word, CTXS);
}

/* The default build of SOS: one enabled endpoint, source and target at once, gets a transmit context and counters. */
TEST_PROV(sos_sequence_one_endpoint, FI_RMA | FI_ATOMIC | FI_RMA_EVENT, RDM_ONLY)
{
	struct fi_info *info = fi_dupinfo(client_info(t, "sos_shared_contexts"));
	struct fid_cntr *put, *get, *at_target;
	uint64_t word = 5, back = 0;
	struct fid_stx *stx;
	struct region heap;
	struct side *a, *b;

	own_info(t, info);
	info->ep_attr->tx_ctx_cnt = 0;
	a = side_open(t, .info = info);
	b = side_open(t, .info = info);
	MUST(fi_stx_context(a->domain, NULL, &stx, NULL));
	own_fid(t, &stx->fid);
	put = client_counter(a, FI_WAIT_UNSPEC);
	get = client_counter(a, FI_WAIT_UNSPEC);
	at_target = client_counter(b, FI_WAIT_UNSPEC);
	MUST(fi_ep_bind(a->ep, &stx->fid, 0));
	MUST(fi_ep_bind(a->ep, &put->fid, FI_WRITE));
	MUST(fi_ep_bind(a->ep, &get->fid, FI_READ));
	disown(t, &a->ep->fid);
	own_fid(t, &a->ep->fid);
	count_target(b, at_target);
	if (!strcmp(a->info->fabric_attr->prov_name, "sockets"))
		MUST(fi_enable(a->ep));
	heap = region_open(b, NULL, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
	a->peer = side_insert(a, b);
	post(a, INJECT_WRITE, .buf = &word, .len = 8, .raddr = heap.addr, .key = heap.key);
	MUST((int) fi_inject_atomic(a->ep, &word, 1, a->peer, heap.addr, heap.key, FI_UINT64, FI_SUM));
	client_counted(a, put, 2);
	client_counted(b, at_target, 2);
	post(a, READ, .buf = &back, .len = 8, .raddr = heap.addr, .key = heap.key);
	client_counted(a, get, 1);
	CHECK_EQ(back, 10);
	CHECK_RET(fi_close(&stx->fid), -FI_EBUSY);
}

/* The calls of Sandia OpenSHMEM with shared transmit contexts. */
TEST_PROV(sos_sequence_shared_contexts, FI_RMA | FI_ATOMIC | FI_RMA_EVENT, RDM_ONLY)
{
	enum { PUTS = CTXS * (CTXS + 1) / 2 + CTXS };
	struct fi_info *info = client_info(t, "sos_shared_contexts");
	struct pe b = pe_open(t, info), a = pe_open(t, info);

	pe_count_target(&b);
	check_contexts(&a, &b);
	client_counted(b.target, b.at_target, PUTS + CTXS);
	check_adds(&a, &b);
	client_counted(b.target, b.at_target, PUTS + 2 * CTXS);
	CHECK_RET(fi_close(&a.stx[0]->fid), -FI_EBUSY);
}
