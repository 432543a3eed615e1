/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What MPI libraries do with the entry they have taken, call by call: MPICH's ch4:ofi, Open MPI's mtl and btl, oneCCL.
 * The two sides are two processes of the client.
 * Source: fi_getinfo(3), fi_endpoint(3), fi_av(3), fi_msg(3).
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_ext.h>
#include <string.h>

#include "clients.h"

#define AM_LEN		16384
#define AM_BUFS		8
#define NO_TAG		0x7777ULL

/* ---- steps that they have in common */

/* Nothing is there: an answer at once, or an error completion. */
static void expect_no_message(struct side *s, uint64_t flags)
{
	ssize_t ret = try_op(s, TRECVMSG, .tag = NO_TAG, .flags = flags | FI_COMPLETION);

	if (ret == -FI_ENOMSG)
		return;
	CHECK_RET(ret, 0);
	expect_rx_err(s, FI_ENOMSG);
}

/* Look until a message with @tag is there. */
static struct comp peek_until(struct side *s, uint64_t tag, uint64_t flags, const fi_addr_t *from, void *ctx)
{
	struct wait w = wait_begin();
	struct comp c;
	ssize_t ret;

	for (;;) {
		ret = try_op(s, TRECVMSG, .addr = from, .tag = tag, .flags = FI_PEEK | FI_COMPLETION | flags,
			     .ctx = ctx);
		if (!ret) {
			while (!rx_waiting(s))
				wait_more(s->t, &w, "a completion of FI_PEEK");
			c = s->rx.list[s->rx.taken++];
			if (!c.err)
				return c;
			ret = -c.err;
		}
		CHECK_RET(ret, -FI_ENOMSG);
		wait_more(s->t, &w, "the message to be seen");
	}
}

/* MPI_Iprobe, then MPI_Improbe and MPI_Mrecv. @claim_addr: what the client leaves in msg.addr of the claim. */
static void check_probes(struct side *a, struct side *b, const fi_addr_t *from, fi_addr_t claim_addr)
{
	struct fi_context2 *ctx = mem(b->t, sizeof(*ctx));
	uint8_t *out = mem_pattern(b->t, 3000, 5), *in = mem(b->t, 3000);
	struct comp c;

	expect_no_message(b, FI_PEEK);
	tsend_bytes(a, out, 3000, 0x51);
	c = peek_until(b, 0x51, 0, from, NULL);
	CHECK_EQ(c.len, 3000);
	CHECK_EQ(c.tag, 0x51);
	c = peek_until(b, 0x51, FI_CLAIM, from, ctx);
	CHECK(c.ctx == ctx);
	expect_no_message(b, FI_PEEK);
	CHECK_RET(try_op(b, TRECVMSG, .buf = in, .len = 3000, .addr = &claim_addr, .ctx = ctx,
			 .flags = FI_CLAIM | FI_COMPLETION), 0);
	c = expect_rx(b);
	CHECK(c.ctx == ctx);
	CHECK_EQ(c.len, 3000);
	CHECK_MEM(in, out, 3000);
	expect_tx(a);
}

static void check_cancel(struct side *a, struct side *b, const fi_addr_t *from)
{
	char first[8] = "", second[8] = "";
	void *ctx = post(b, TRECV, .buf = first, .len = 8, .tag = 0x61, .addr = from);
	struct comp c;

	MUST((int) fi_cancel(&b->ep->fid, ctx));
	c = expect_rx_err(b, FI_ECANCELED);
	CHECK(c.ctx == ctx);
	post(b, TRECV, .buf = second, .len = 8, .tag = 0x61, .addr = from);
	tsend_bytes(a, "after it", 8, 0x61);
	expect_recv(b, "after it", 8);
	expect_tx(a);
	CHECK_EQ(first[0], 0);
}

static void check_truncation(struct side *a, struct side *b, const fi_addr_t *from)
{
	uint8_t *out = mem_pattern(b->t, 5000, 9), *in = mem(b->t, 5000);

	post(b, TRECV, .buf = in, .len = 100, .tag = 0x62, .addr = from);
	tsend_bytes(a, out, 5000, 0x62);
	expect_rx_err(b, FI_ETRUNC, .tag = 0x62);
	expect_tx(a);
	post(b, TRECV, .buf = in, .len = 5000, .tag = 0x62, .addr = from);
	tsend_bytes(a, out, 5000, 0x62);
	expect_recv(b, out, 5000);
	expect_tx(a);
}

/* Each way of sending that a client has, to a receive that ignores some bits of the tag. */
static void check_sends(struct side *a, struct side *b, const fi_addr_t *from)
{
	static const enum call ways[] = { TSEND, TSENDMSG, TSENDDATA, TINJECT, TINJECTDATA };
	struct comp c;
	char in[64];
	size_t i;

	for (i = 0; i < COUNT(ways); i++) {
		post(b, TRECV, .buf = in, .len = sizeof(in), .tag = 0xa0000000000ULL, .ignore = 0xffffff, .addr = from);
		post(a, ways[i], .buf = "rank and tag", .len = 12, .tag = 0xa0000000000ULL | i, .data = 3,
		     .flags = FI_COMPLETION);
		c = expect_recv(b, "rank and tag", 12);
		CHECK_EQ(c.tag, 0xa0000000000ULL | i);
		if (calls[ways[i]].data) {
			CHECK(c.flags & FI_REMOTE_CQ_DATA);
			CHECK_EQ(c.data, 3);
		}
		if (!calls[ways[i]].inject)
			expect_tx(a);
	}
}

/* ---- MPICH */

struct mpich {
	struct side *s;
	struct fid_cntr *rma;
	uint8_t *am;			/* AM_BUFS buffers for active messages */
};

static struct mpich mpich_open(struct test *t, struct fi_info *info)
{
	struct mpich m = { .s = domain_side(t, .info = info, .one_cq = true, .tx_bind = FI_SELECTIVE_COMPLETION,
					    .rx_bind = FI_SELECTIVE_COMPLETION, .av_type = FI_AV_TABLE) };
	size_t min = AM_LEN / 4;
	struct side *s = m.s;

	side_open_cqs(s);
	side_open_av(s);
	m.rma = client_counter(s, FI_WAIT_UNSPEC);
	side_open_ep(s);
	MUST(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)));
	MUST(fi_ep_bind(s->ep, &s->tx_cq->fid, FI_SEND | FI_RECV | FI_SELECTIVE_COMPLETION));
	MUST(fi_ep_bind(s->ep, &m.rma->fid, FI_READ | FI_WRITE));
	MUST(fi_ep_bind(s->ep, &s->av->fid, 0));
	side_enable(s);
	CHECK(s->name_len <= 64);
	m.am = mem(t, AM_BUFS * AM_LEN);
	return m;
}

static void mpich_check_am(struct mpich *a, struct mpich *b)
{
	uint8_t *out = mem_pattern(a->s->t, 900, 4);
	size_t i, received, total = 0;
	struct comp c;

	for (i = 0; i < AM_BUFS; i++)
		post(b->s, RECVMSG, .buf = b->am + i * AM_LEN, .len = AM_LEN, .flags = FI_MULTI_RECV | FI_COMPLETION);
	for (i = 0; i < 60; i++) {
		if (i % 2)
			post(a->s, INJECT, .buf = out, .len = 64);
		else
			post(a->s, SEND, .buf = out, .len = 900);
	}
	for (received = 0; received < 60;) {
		c = expect_rx(b->s);
		if (!(c.flags & FI_RECV))
			continue;
		/* it asks for no order of completions */
		CHECK(c.len == 64 || c.len == 900);
		CHECK_MEM(c.buf, out, c.len);
		total += c.len;
		received++;
	}
	CHECK_EQ(total, 30 * (64 + 900));
	expect_tx_cnt(a->s, 30);
}

/* Puts and gets that are counted and have no completion, to the whole address space where that can be registered. */
static void mpich_check_rma(struct mpich *a, struct mpich *b)
{
	struct region r = region_open(b->s, NULL, 4096, FI_REMOTE_READ | FI_REMOTE_WRITE);
	uint8_t *out = mem_pattern(a->s->t, 4096, 8), *in = mem(a->s->t, 4096);
	struct wait w = wait_begin();

	post(a->s, WRITEMSG, .buf = out, .len = 4096, .raddr = r.addr, .key = r.key, .flags = FI_DELIVERY_COMPLETE);
	post(a->s, INJECT_WRITE, .buf = out, .len = 16, .raddr = r.addr, .key = r.key);
	while (fi_cntr_read(a->rma) < 2)
		wait_more(a->s->t, &w, "the counter of writes");
	CHECK_MEM(r.buf, out, 4096);
	post(a->s, READMSG, .buf = in, .len = 4096, .raddr = r.addr, .key = r.key);
	while (fi_cntr_read(a->rma) < 3)
		wait_more(a->s->t, &w, "the counter of reads");
	CHECK_MEM(in, out, 4096);
	MUST(fi_cntr_wait(a->rma, 3, 1000));
	expect_no_completion(a->s);
}

/* The calls of MPICH (ch4:ofi), from the addresses to active messages, put and get. */
TEST_PROV(mpich_sequence, FI_MSG | FI_TAGGED | FI_RMA | FI_MULTI_RECV, RDM_ONLY)
{
	struct fi_info *info = client_info(t, "mpich_ch4");
	uint8_t name[128];
	size_t len = sizeof(name);
	struct mpich a, b;
	fi_addr_t from;

	info->domain_attr->control_progress = info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	a = mpich_open(t, info);
	b = mpich_open(t, info);
	a.s->peer = side_insert(a.s, b.s);
	b.s->peer = from = side_insert(b.s, a.s);
	MUST(fi_av_lookup(a.s->av, a.s->peer, name, &len));
	CHECK_EQ(len, b.s->name_len);
	CHECK_MEM(name, b.s->name, len);
	mpich_check_am(&a, &b);
	check_sends(a.s, b.s, &from);
	check_probes(a.s, b.s, &from, from);
	check_cancel(a.s, b.s, &from);
	check_truncation(a.s, b.s, &from);
	mpich_check_rma(&a, &b);
}

/* One point for each setting that its default set calls optimal; the highest entry wins (mpich issue 7028). */
TEST_PROV(mpich_scores_tcp_highest, FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, RDM_ONLY)
{
	const uint64_t orders = FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
	struct fi_info *hints = hints_new(t, &(struct opts) { .caps = t->c->caps | FI_MULTI_RECV }), *info;

	if (!run.ours)
		ABSENT("a rule for this library");
	info = info_find(t, hints, NULL, NULL, 0);
	CHECK(info != NULL);
	CHECK(info->domain_attr->cq_data_size >= 4);
	CHECK_EQ(info->tx_attr->msg_order & orders, orders);
}

/* ---- Open MPI's mtl */

static struct side *mtl_open(struct test *t, struct fi_info *info)
{
	return side_open(t, .info = info, .one_cq = true, .tx_bind = FI_SELECTIVE_COMPLETION,
			 .rx_bind = FI_SELECTIVE_COMPLETION, .av_type = FI_AV_MAP);
}

static void mtl_sequence(struct test *t, const char *name)
{
	struct fi_info *info = client_info(t, name);
	struct side *a = mtl_open(t, info), *b = mtl_open(t, info);
	uint8_t *out = mem_pattern(t, 1 << 20, 3), *in = mem(t, 1 << 20);
	fi_addr_t from;

	a->peer = side_insert(a, b);
	b->peer = from = side_insert(b, a);
	check_sends(a, b, &from);
	check_sends(a, b, NULL);
	check_probes(a, b, &from, 0);
	check_probes(a, b, NULL, 0);
	check_cancel(a, b, &from);
	check_truncation(a, b, &from);
	tsend_bytes(a, out, 1 << 20, 1);
	post(b, TRECV, .buf = in, .len = 1 << 20, .tag = 1, .addr = &from);
	expect_recv(b, out, 1 << 20);
	expect_tx(a);
}

/* The calls of the mtl of Open MPI 4.1. */
TEST_PROV(ompi_mtl_4_sequence, FI_TAGGED, RDM_ONLY)
{
	mtl_sequence(t, "ompi_mtl_4.1");
}

/* The calls of the mtl of Open MPI's main branch. */
TEST_PROV(ompi_mtl_main_sequence, FI_TAGGED | FI_MSG, RDM_ONLY)
{
	mtl_sequence(t, "ompi_mtl_main");
}

/* It asks for the memory monitor of the registration cache, which takes no other object than a monitor. */
TEST_PROV(ompi_asks_for_mr_cache, 0, .alone = true)
{
	struct fid *fid = NULL, *second = NULL, other = { .fclass = FI_CLASS_LOG };

	if (!run.ours)
		ABSENT("upstream looks at nothing");
	MUST(fi_open(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &fid, NULL));
	CHECK_EQ(fid->fclass, FI_CLASS_MR_CACHE);
	CHECK_RET(fi_open(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &second, NULL), -FI_EALREADY);
	CHECK_RET(fi_import_fid(fid, &other, 0), -FI_EINVAL);
	MUST(fi_close(fid));
}

static int ompi_start(struct fid_mem_monitor *monitor)
{
	(void) monitor;
	return 0;
}

static void ompi_stop(struct fid_mem_monitor *monitor)
{
	(void) monitor;
}

static int ompi_subscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void) monitor;
	(void) addr;
	(void) len;
	return 0;
}

static void ompi_unsubscribe(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void) monitor;
	(void) addr;
	(void) len;
}

static bool ompi_valid(struct fid_mem_monitor *monitor, const void *addr, size_t len)
{
	(void) monitor;
	(void) addr;
	(void) len;
	return true;
}

/* It imports its monitor, and in the end closes both through the operations that they have then, the monitor last. */
TEST_PROV(ompi_closes_its_monitor, 0, .alone = true)
{
	static struct fi_ops_mem_monitor ops = {
		.size = sizeof(ops), .start = ompi_start, .stop = ompi_stop, .subscribe = ompi_subscribe,
		.unsubscribe = ompi_unsubscribe, .valid = ompi_valid,
	};
	static struct fid_mem_monitor monitor = { .fid.fclass = FI_CLASS_MEM_MONITOR, .export_ops = &ops };
	struct fid *fid = NULL;

	MUST(fi_open(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &fid, NULL));
	MUST(fi_import_fid(fid, &monitor.fid, 0));
	CHECK(monitor.import_ops && monitor.fid.ops);
	MUST(fi_close(fid));
	if (monitor.fid.ops)
		MUST(fi_close(&monitor.fid));
	if (!run.ours)
		return;
	/* it was taken back, so the next one is taken */
	MUST(fi_import(FI_VERSION(1, 13), "mr_cache", NULL, 0, 0, &monitor.fid, NULL));
	MUST(fi_close(&monitor.fid));
}

/* ---- Open MPI's btl: one-sided, 64-bit atomics */

/* Every operation completes. */
static struct side *plain_open(struct test *t, struct fi_info *info, enum fi_cq_format format)
{
	return side_open(t, .info = info, .one_cq = true, .format = format);
}

static void btl_check_atomics(struct side *a, struct region *r, uint64_t *word)
{
	uint64_t *local = mem(a->t, 4 * sizeof(*local)), *operand = local, *result = local + 1, *compare = local + 2;
	void *desc = desc_for(a, local, 4 * sizeof(*local));
	struct fi_context2 *ctx = mem(a->t, sizeof(*ctx));

	*word = 100;
	*operand = 5;
	a->tx_posted += 3;
	MUST((int) fi_atomic(a->ep, operand, 1, desc, a->peer, r->addr, r->key, FI_UINT64, FI_SUM, ctx));
	expect_tx(a);
	CHECK_EQ(*word, 105);
	MUST((int) fi_fetch_atomic(a->ep, operand, 1, desc, result, desc, a->peer, r->addr, r->key, FI_UINT64, FI_SUM,
				   ctx));
	expect_tx(a);
	CHECK_EQ(*result, 105);
	CHECK_EQ(*word, 110);
	*compare = 110;
	*operand = 7;
	MUST((int) fi_compare_atomic(a->ep, operand, 1, desc, compare, desc, result, desc, a->peer, r->addr, r->key,
				     FI_UINT64, FI_CSWAP, ctx));
	expect_tx(a);
	CHECK_EQ(*result, 110);
	CHECK_EQ(*word, 7);
}

/* The calls of Open MPI's btl: put, get and atomics on one region. */
TEST_PROV(ompi_btl_sequence, FI_RMA | FI_ATOMIC, RDM_ONLY)
{
	struct fi_info *info = client_info(t, "ompi_btl");
	struct side *b = plain_open(t, info, FI_CQ_FORMAT_CONTEXT), *a = plain_open(t, info, FI_CQ_FORMAT_CONTEXT);
	struct region r = region_open(b, NULL, 1 << 20, FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE);
	uint8_t *out = mem_pattern(t, 1 << 20, 3), *in = mem(t, 1 << 20);

	a->peer = side_insert(a, b);
	b->peer = side_insert(b, a);
	post(a, WRITE, .buf = out, .len = 1 << 20, .raddr = r.addr, .key = r.key);
	expect_tx(a);
	CHECK_MEM(r.buf, out, 1 << 20);
	post(a, READ, .buf = in, .len = 1 << 20, .raddr = r.addr, .key = r.key);
	expect_tx(a);
	CHECK_MEM(in, out, 1 << 20);
	btl_check_atomics(a, &r, (uint64_t *) r.buf);
}

/* ---- oneCCL: tagged only, probes, and takes both answers for "no message" */

/* The calls of oneCCL: tagged messages, and probes that find nothing. */
TEST_PROV(oneccl_sequence, FI_TAGGED, RDM_ONLY)
{
	struct fi_info *info = client_info(t, "oneccl");
	struct side *a = plain_open(t, info, FI_CQ_FORMAT_TAGGED), *b = plain_open(t, info, FI_CQ_FORMAT_TAGGED);

	a->peer = side_insert(a, b);
	b->peer = side_insert(b, a);
	check_probes(a, b, NULL, FI_ADDR_UNSPEC);
	check_cancel(a, b, NULL);
}
