/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What one-sided runtimes do with the entry they have taken, call by call: Sandia OpenSHMEM, GASNet-EX, Chapel. The two
 * sides are two processes of the client.
 * Source: fi_rma(3), fi_atomic(3), fi_cntr(3).
 */
#include <rdma/fi_atomic.h>
#include <string.h>

#include "clients.h"

/* ---- Sandia OpenSHMEM */

/* A target that only lets itself be accessed, and a context that only transmits and counts what it has done. */
struct pe {
	struct side *target, *ctx;
	struct fid_cntr *put, *get, *at_target;
	struct region data, heap;
};

/* A region with the key that was asked for, where keys are the application's. */
static struct region region_with_key(struct side *s, uint64_t key, size_t len)
{
	struct region r = { .buf = mem(s->t, len), .len = len };
	int mr_mode = s->info->domain_attr->mr_mode;

	MUST(fi_mr_reg(s->domain, r.buf, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &r.mr, NULL));
	own_fid(s->t, &r.mr->fid);
	region_ready(s, r.mr);
	r.key = fi_mr_key(r.mr);
	if (!(mr_mode & (FI_MR_PROV_KEY | MR_BASIC)))
		CHECK_EQ(r.key, key);
	r.addr = mr_mode & (FI_MR_VIRT_ADDR | MR_BASIC) ? (uintptr_t) r.buf : 0;
	return r;
}

static void open_target(struct pe *pe, struct test *t, struct fi_info *info)
{
	struct side *s = side_open(t, .info = info);

	if (info->caps & FI_RMA_EVENT) {
		pe->at_target = client_counter(s, FI_WAIT_UNSPEC);
		MUST(fi_ep_bind(s->ep, &pe->at_target->fid, FI_REMOTE_WRITE | FI_REMOTE_READ));
		disown(t, &s->ep->fid);
		own_fid(t, &s->ep->fid);
	}
	pe->target = s;
}

static void open_ctx(struct pe *pe)
{
	struct fi_info *info = fi_dupinfo(pe->target->info);
	struct side *s;

	CHECK(info != NULL);
	own_info(pe->target->t, info);
	info->caps = info->tx_attr->caps = FI_RMA | FI_WRITE | FI_READ | (info->caps & FI_ATOMIC);
	s = domain_side(pe->target->t, .info = info, .domain_of = pe->target, .format = FI_CQ_FORMAT_CONTEXT);
	side_open_cqs(s);
	side_open_av(s);
	pe->put = client_counter(s, FI_WAIT_UNSPEC);
	pe->get = client_counter(s, FI_WAIT_NONE);
	side_open_ep(s);
	MUST(fi_ep_bind(s->ep, &s->tx_cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	MUST(fi_ep_bind(s->ep, &pe->put->fid, FI_WRITE));
	MUST(fi_ep_bind(s->ep, &pe->get->fid, FI_READ));
	MUST(fi_ep_bind(s->ep, &s->av->fid, 0));
	MUST(fi_enable(s->ep));
	pe->ctx = s;
}

static struct pe pe_open(struct test *t, struct fi_info *info)
{
	struct pe pe = { 0 };

	open_target(&pe, t, info);
	open_ctx(&pe);
	pe.data = region_with_key(pe.target, 0, 8192);
	pe.heap = region_with_key(pe.target, 1, 65536);
	return pe;
}

static void sos_check_puts(struct pe *a, struct pe *b)
{
	uint8_t *out = mem_pattern(a->ctx->t, 8192, 7), *in = mem(a->ctx->t, 8192);
	struct wait w = wait_begin();
	uint64_t one = 1;
	int i;

	for (i = 0; i < 64; i++)
		post(a->ctx, INJECT_WRITE, .buf = &one, .len = 8, .raddr = b->data.addr + 8 * i, .key = b->data.key);
	post(a->ctx, WRITE, .buf = out, .len = 8192, .raddr = b->heap.addr + 100, .key = b->heap.key);
	while (fi_cntr_read(a->put) < 65)
		wait_more(a->ctx->t, &w, "the counter of puts");
	for (i = 0; i < 64; i++)
		CHECK_EQ(((uint64_t *) b->data.buf)[i], 1);
	CHECK_MEM(b->heap.buf + 100, out, 8192);
	post(a->ctx, READ, .buf = in, .len = 8192, .raddr = b->heap.addr + 100, .key = b->heap.key);
	while (fi_cntr_read(a->get) < 1)
		wait_more(a->ctx->t, &w, "the counter of gets");
	CHECK_MEM(in, out, 8192);
	CHECK_EQ(fi_cntr_readerr(a->put), 0);
	expect_no_completion(a->ctx);
}

/* Every type and operation that OpenSHMEM has must be valid, or SOS refuses the provider; then it uses them. */
static void sos_check_atomics(struct pe *a, struct pe *b)
{
	static const enum fi_datatype types[] = { FI_INT32, FI_INT64, FI_UINT32, FI_UINT64, FI_FLOAT, FI_DOUBLE };
	static const enum fi_op sums[] = { FI_SUM, FI_MIN, FI_MAX, FI_ATOMIC_WRITE };
	static const enum fi_op bits[] = { FI_BXOR, FI_BOR, FI_BAND };
	uint64_t *word = (uint64_t *) b->heap.buf, operand = 3, result = 0, compare = 8;
	struct fid_ep *ep = a->ctx->ep;
	struct wait w = wait_begin();
	size_t i, j, cnt;

	for (i = 0; i < COUNT(types); i++) {
		for (j = 0; j < COUNT(sums); j++)
			MUST(fi_atomicvalid(ep, types[i], sums[j], &cnt));
		for (j = 0; j < COUNT(bits) && i < 4; j++)
			MUST(fi_atomicvalid(ep, types[i], bits[j], &cnt));
		MUST(fi_fetch_atomicvalid(ep, types[i], FI_ATOMIC_READ, &cnt));
		MUST(fi_fetch_atomicvalid(ep, types[i], FI_SUM, &cnt));
		MUST(fi_compare_atomicvalid(ep, types[i], FI_CSWAP, &cnt));
		if (i < 4)
			MUST(fi_compare_atomicvalid(ep, types[i], FI_MSWAP, &cnt));
	}
	*word = 5;
	MUST((int) fi_inject_atomic(ep, &operand, 1, a->ctx->peer, b->heap.addr, b->heap.key, FI_UINT64, FI_SUM));
	while (fi_cntr_read(a->put) < 66)
		wait_more(a->ctx->t, &w, "the atomic to count");
	CHECK_EQ(*word, 8);
	MUST((int) fi_compare_atomic(ep, &operand, 1, NULL, &compare, NULL, &result, NULL, a->ctx->peer, b->heap.addr,
				     b->heap.key, FI_UINT64, FI_CSWAP, NULL));
	while (fi_cntr_read(a->get) < 2)
		wait_more(a->ctx->t, &w, "the compare-and-swap to count");
	CHECK_EQ(result, 8);
	CHECK_EQ(*word, 3);
}

static void sos_sequence(struct test *t, const char *name)
{
	struct fi_info *info = client_info(t, name);
	struct pe b = pe_open(t, info), a = pe_open(t, info);
	struct wait w = wait_begin();
	fi_addr_t addr;

	CHECK_RET(fi_av_insert(a.ctx->av, b.target->name, 1, &addr, 0, NULL), 1);
	CHECK_EQ(addr, 0);
	a.ctx->peer = addr;
	sos_check_puts(&a, &b);
	while (b.at_target && fi_cntr_read(b.at_target) < 65)
		wait_more(t, &w, "the counter at the target");
	sos_check_atomics(&a, &b);
}

/* The calls of Sandia OpenSHMEM with regions that start at offset 0. */
TEST_PROV(sos_sequence_scalable, FI_RMA | FI_ATOMIC, RDM_ONLY)
{
	sos_sequence(t, "sos");
}

/* The same with virtual addresses and keys of the provider, and manual progress. */
TEST_PROV(sos_sequence_basic, FI_RMA | FI_ATOMIC, RDM_ONLY)
{
	sos_sequence(t, "sos_manual_basic");
}

/* The same with counters at the target. */
TEST_PROV(sos_sequence_target_counters, FI_RMA | FI_ATOMIC | FI_RMA_EVENT, RDM_ONLY)
{
	sos_sequence(t, "sos_target_counters");
}

/* ---- GASNet-EX */

/* It asks what providers there are before it asks for one. */
TEST_PROV(gasnet_asks_for_attributes_only, FI_RMA | FI_MSG | FI_MULTI_RECV, RDM_ONLY)
{
	struct fi_info *hints = hints_new(t, &(struct opts) { 0 }), *list;

	MUST(fi_getinfo(FI_VERSION(1, 5), NULL, NULL, FI_PROV_ATTR_ONLY, hints, &list));
	own_info(t, list);
	CHECK(list->fabric_attr && list->fabric_attr->prov_name);
}

/* An endpoint each for requests, replies and RMA, on one address vector; requests land in multi-receive buffers. */
static void gasnet_sequence(struct test *t, const char *name)
{
	enum { REQUEST, REPLY, RMA, EP_CNT, REQUESTS = 40 };
	struct fi_info *info = client_info(t, name);
	uint8_t *out = mem_pattern(t, 8192, 3), *in = mem(t, 2 * 65536);
	struct side *a[EP_CNT], *b[EP_CNT];
	size_t min = 4096, received = 0, i;
	struct region r;
	struct comp c;

	for (i = 0; i < EP_CNT; i++) {
		b[i] = i ? side_open(t, .domain_of = b[0], .av_of = b[0], .one_cq = true) :
			   side_open(t, .info = info, .av_type = FI_AV_TABLE, .one_cq = true);
		a[i] = i ? side_open(t, .domain_of = a[0], .av_of = a[0], .one_cq = true) :
			   side_open(t, .info = info, .av_type = FI_AV_TABLE, .one_cq = true);
	}
	for (i = 0; i < EP_CNT; i++) {
		CHECK_RET(fi_av_insert(a[0]->av, b[i]->name, 1, NULL, 0, NULL), 1);
		CHECK_RET(fi_av_insert(b[0]->av, a[i]->name, 1, NULL, 0, NULL), 1);
		a[i]->peer = b[i]->peer = i;
	}
	MUST(fi_setopt(&b[REQUEST]->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	for (i = 0; i < 2; i++)
		post(b[REQUEST], RECVMSG, .buf = in + i * 65536, .len = 65536, .flags = FI_MULTI_RECV);
	for (i = 0; i < REQUESTS; i++)
		post(a[REQUEST], SEND, .buf = out, .len = 1000);
	while (received < REQUESTS) {
		c = expect_rx(b[REQUEST]);
		if (!(c.flags & FI_RECV))
			continue;
		CHECK_MEM(c.buf, out, 1000);
		received++;
	}
	expect_tx_cnt(a[REQUEST], REQUESTS);
	post_recv(a[REPLY], in, 64);
	post(b[REPLY], SENDMSG, .buf = out, .len = 64, .flags = FI_INJECT | FI_COMPLETION);
	expect_recv(a[REPLY], out, 64);
	expect_tx(b[REPLY]);
	r = region_open(b[RMA], NULL, 8192, FI_REMOTE_READ | FI_REMOTE_WRITE);
	post(a[RMA], WRITEMSG, .buf = out, .len = 64, .raddr = r.addr, .key = r.key,
	     .flags = FI_INJECT | FI_DELIVERY_COMPLETE | FI_COMPLETION);
	post(a[RMA], WRITEMSG, .buf = out, .len = 8192, .raddr = r.addr, .key = r.key,
	     .flags = FI_DELIVERY_COMPLETE | FI_COMPLETION);
	expect_tx_cnt(a[RMA], 2);
	CHECK_MEM(r.buf, out, 8192);
	post(a[RMA], READ, .buf = in, .len = 8192, .raddr = r.addr, .key = r.key);
	expect_tx(a[RMA]);
	CHECK_MEM(in, out, 8192);
}

/* The calls of GASNet-EX with virtual addresses and keys of the provider. */
TEST_PROV(gasnet_sequence_basic, FI_RMA | FI_MSG | FI_MULTI_RECV, RDM_ONLY)
{
	gasnet_sequence(t, "gasnet");
}

/* The same with regions that start at offset 0. */
TEST_PROV(gasnet_sequence_scalable, FI_RMA | FI_MSG | FI_MULTI_RECV, RDM_ONLY)
{
	gasnet_sequence(t, "gasnet_scalable");
}

/* ---- Chapel */

/* A put is made visible by a get of a word behind it (orders), or is so when it completes (delivery). */
static void chapel_sequence(struct test *t, const char *name)
{
	struct fi_info *info = client_info(t, name);
	struct side *b = side_open(t, .info = info, .av_type = FI_AV_TABLE, .one_cq = true);
	struct side *a = side_open(t, .info = info, .av_type = FI_AV_TABLE, .one_cq = true,
				   .tx_bind = FI_SELECTIVE_COMPLETION);
	struct region heap = region_open(b, NULL, 1 << 16, FI_REMOTE_READ | FI_REMOTE_WRITE);
	uint8_t *out = mem_pattern(t, 4096, 2), *in = mem(t, 4096);
	bool delivery = info->tx_attr->op_flags & FI_DELIVERY_COMPLETE;
	size_t i;

	a->peer = side_insert(a, b);
	for (i = 0; i < 16; i++)
		post(a, WRITEMSG, .buf = out, .len = 4096, .raddr = heap.addr + 4096 * i, .key = heap.key,
		     .flags = delivery && i == 15 ? FI_COMPLETION | FI_DELIVERY_COMPLETE : 0);
	if (!delivery)
		post(a, READMSG, .buf = in, .len = 8, .raddr = heap.addr + 4096 * 15, .key = heap.key,
		     .flags = FI_COMPLETION);
	expect_tx(a);
	for (i = 0; i < 16; i++)
		CHECK_MEM(heap.buf + 4096 * i, out, 4096);
	if (!delivery)
		CHECK_MEM(in, out, 8);
	post(b, RECVMSG, .buf = in, .len = 4096, .flags = FI_MULTI_RECV);
	post(a, SENDMSG, .buf = "an active message", .len = 17, .flags = FI_COMPLETION);
	expect_tx(a);
	CHECK_EQ(expect_rx(b).len, 17);
	CHECK_MEM(in, "an active message", 17);
}

/* The calls of Chapel where it relies on message orders. */
TEST_PROV(chapel_sequence_orders, FI_RMA | FI_MSG | FI_MULTI_RECV, RDM_ONLY)
{
	chapel_sequence(t, "chapel_orders");
}

/* The calls of Chapel where it relies on FI_DELIVERY_COMPLETE. */
TEST_PROV(chapel_sequence_delivery, FI_RMA | FI_MSG | FI_MULTI_RECV, RDM_ONLY)
{
	chapel_sequence(t, "chapel_delivery");
}
