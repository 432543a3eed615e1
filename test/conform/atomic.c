/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Atomics: every datatype with every operation, calls, errors, order. How they complete is in atomic.completion.c.
 * Source: fi_atomic(3), fi_mr(3).
 */
#include <string.h>

#include "atomic_call.h"

#define ATOMIC_ORDERS (FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

/* ---- datatypes and operations */

/* Seven elements at an odd address, by one call, against the model. */
struct trial {
	struct pair p;
	struct region r;
	const struct datatype *type;
	unsigned int seed;
};

enum { TRIAL_CNT = 7 };

static void try_one(struct trial *tr, const struct amo *how)
{
	size_t size = tr->type->size, len = TRIAL_CNT * size;
	uint8_t want[TRIAL_CNT * ELEMENT_MAX] = { 0 }, was[TRIAL_CNT * ELEMENT_MAX] = { 0 };
	uint8_t buf[TRIAL_CNT * ELEMENT_MAX] = { 0 }, compare[TRIAL_CNT * ELEMENT_MAX] = { 0 };
	uint8_t result[TRIAL_CNT * ELEMENT_MAX] = { 0 }, *target = tr->r.buf + 1;
	struct amo a = *how;
	unsigned int i;

	note("%s, op %d, kind %d, form %d", tr->type->name, a.op, a.kind, a.form);
	for (i = 0; i < TRIAL_CNT; i++) {
		tr->type->make(was + i * size, tr->seed += 5);
		tr->type->make(buf + i * size, tr->seed + 2);
		tr->type->make(compare + i * size, i % 2 ? tr->seed : tr->seed + 3);
		memcpy(want + i * size, was + i * size, size);
		CHECK(tr->type->apply(a.op, want + i * size, buf + i * size, compare + i * size));
	}
	memset(tr->r.buf, 0x55, tr->r.len);
	memcpy(target, was, len);
	a.type = tr->type->type;
	a.size = size;
	a.count = TRIAL_CNT;
	a.buf = a.op == FI_ATOMIC_READ && a.form != ONE ? NULL : buf;
	a.compare = compare;
	a.result = result;
	a.raddr = tr->r.addr + 1;
	a.key = tr->r.key;
	a.flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
	CHECK_RET((int) amo_ret(tr->p.a, &a), 0);
	if (a.form == INJ)
		amo(tr->p.a, FETCH, ONE, .type = FI_UINT8, .op = FI_ATOMIC_READ, .size = 1, .result = result,
		    .count = 1, .raddr = tr->r.addr, .key = tr->r.key);
	expect_tx(tr->p.a);
	for (i = 0; i < TRIAL_CNT; i++) {
		if (!element_eq(tr->type, target + i * size, want + i * size))
			FAIL("element %u is not what the operation makes of it", i);
	}
	if (a.kind != BASE)
		CHECK_MEM(result, was, len);
	CHECK(tr->r.buf[0] == 0x55 && target[len] == 0x55);
	note(NULL);
}

static bool model_has(const struct datatype *type, enum kind kind, enum fi_op op)
{
	uint8_t t[ELEMENT_MAX], b[ELEMENT_MAX];

	type->make(t, 1);
	type->make(b, 2);
	return kind_has(kind, op) && type->apply(op, t, b, b);
}

static void try_kind(struct trial *tr, enum kind kind)
{
	for (enum fi_op op = FI_MIN; op <= FI_DIFF; op++) {
		if (!model_has(tr->type, kind, op))
			continue;
		for (enum form form = ONE; form <= (kind == BASE ? INJ : MSG); form++) {
			if (form == INJ && TRIAL_CNT * tr->type->size > tr->p.a->info->tx_attr->inject_size)
				continue;
			try_one(tr, &(struct amo) { .kind = kind, .form = form, .op = op });
		}
	}
}

/* Every datatype with every operation, by every call. */
TEST_PROV(matrix, FI_ATOMIC, RELIABLE)
{
	struct trial tr = { .p = amo_pair(t) };

	if (!run.ours)
		ABSENT("what upstream has differs by provider");
	tr.r = region_open(tr.p.b, NULL, 2 + TRIAL_CNT * ELEMENT_MAX, ALL_REMOTE);
	for (size_t i = 0; i < datatype_cnt; i++) {
		tr.type = &datatypes[i];
		for (enum kind kind = BASE; kind < KIND_CNT; kind++)
			try_kind(&tr, kind);
	}
}

static const struct datatype *datatype_of(unsigned int type)
{
	for (size_t i = 0; i < datatype_cnt; i++) {
		if (datatypes[i].type == type)
			return &datatypes[i];
	}
	return NULL;
}

static int valid(struct fid_ep *ep, enum kind kind, enum fi_datatype type, enum fi_op op, size_t *count)
{
	return kind == BASE ? fi_atomicvalid(ep, type, op, count) :
	       kind == FETCH ? fi_fetch_atomicvalid(ep, type, op, count) :
			       fi_compare_atomicvalid(ep, type, op, count);
}

/* What the queries say is what there is: for any numbers, on the endpoint and on the domain. */
TEST_PROV(queries, FI_ATOMIC, RELIABLE)
{
	static const uint64_t kind_flags[] = { 0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC };
	struct side *a = amo_pair(t).a;

	if (!run.ours)
		ABSENT("what upstream has differs by provider");
	for (unsigned int i = 0; i < KIND_CNT * 30 * 30; i++) {
		enum kind kind = i % KIND_CNT;
		unsigned int type = i / KIND_CNT % 30, op = i / KIND_CNT / 30;
		const struct datatype *d = datatype_of(type);
		struct fi_atomic_attr attr = { 0 };
		size_t count = 0;
		int want = d && model_has(d, kind, op) ? 0 : -FI_EOPNOTSUPP;

		note("kind %d, datatype %u, op %u", kind, type, op);
		CHECK_RET(valid(a->ep, kind, type, op, &count), want);
		CHECK_RET(fi_query_atomic(a->domain, type, op, &attr, kind_flags[kind]), want);
		if (want)
			continue;
		CHECK(count >= 64);
		CHECK_EQ(attr.count, count);
		CHECK_EQ(attr.size, d->size);
	}
	CHECK_RET(valid(a->ep, BASE, FI_VOID, FI_SUM, &(size_t) { 0 }), -FI_EOPNOTSUPP);
	CHECK_RET(valid(a->ep, BASE, FI_UINT64, FI_NOOP, &(size_t) { 0 }), -FI_EOPNOTSUPP);
	CHECK_RET(fi_query_atomic(a->domain, FI_UINT64, FI_SUM, &(struct fi_atomic_attr) { 0 },
				  FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC), -FI_EINVAL);
	CHECK_RET(fi_query_atomic(a->domain, FI_UINT64, FI_SUM, &(struct fi_atomic_attr) { 0 }, FI_PEEK),
		  -FI_EBADFLAGS);
}

/* ---- calls that are refused */

/* Nothing is posted, and nothing is changed, by a call that asks for what there is not. */
TEST_PROV(bad_calls, FI_ATOMIC, RELIABLE)
{
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, NULL, 64, ALL_REMOTE);
	struct fi_rma_ioc half = { .addr = r.addr, .count = 1, .key = r.key };
	struct amo good;
	size_t count;
	uint8_t *buf;

	if (!run.ours)
		ABSENT("upstream's answers differ by provider");
	MUST(fi_atomicvalid(p.a->ep, FI_UINT64, FI_SUM, &count));
	buf = mem(t, (count + 1) * 8);

	good = (struct amo) { .type = FI_UINT64, .op = FI_SUM, .size = 8, .buf = buf, .compare = buf, .result = buf,
			      .count = 2, .raddr = r.addr, .key = r.key };
#define BAD(want, kind_, form_, ...)							\
	do {										\
		struct amo a = good;							\
											\
		a.kind = kind_;								\
		a.form = form_;								\
		(void) (__VA_ARGS__);							\
		CHECK_RET((int) amo_ret(p.a, &a), want);				\
	} while (0)
	BAD(-FI_EOPNOTSUPP, BASE, ONE, a.op = FI_CSWAP);
	BAD(-FI_EOPNOTSUPP, BASE, ONE, a.op = FI_ATOMIC_READ);
	BAD(-FI_EOPNOTSUPP, FETCH, ONE, a.op = FI_MSWAP);
	BAD(-FI_EOPNOTSUPP, COMPARE, ONE, a.op = FI_SUM);
	BAD(-FI_EOPNOTSUPP, COMPARE, ONE, a.type = FI_DOUBLE, a.op = FI_MSWAP);
	BAD(-FI_EOPNOTSUPP, BASE, ONE, a.type = FI_DOUBLE_COMPLEX, a.op = FI_MAX);
	BAD(-FI_EOPNOTSUPP, BASE, ONE, a.type = 99);
	BAD(-FI_EOPNOTSUPP, BASE, INJ, a.op = 99);
	BAD(-FI_EMSGSIZE, BASE, ONE, a.count = count + 1);
	BAD(-FI_EMSGSIZE, FETCH, MSG, a.count = count + 1);
	BAD(-FI_EMSGSIZE, COMPARE, ONE, a.op = FI_CSWAP, a.count = SIZE_MAX / 8);
	BAD(-FI_EINVAL, BASE, MSG, a.rma = &half, a.rma_cnt = 1);
	BAD(-FI_EINVAL, FETCH, MSG, a.rma = &half, a.rma_cnt = 0);
	BAD(-FI_EMSGSIZE, BASE, INJ, a.count = p.a->info->tx_attr->inject_size / 8 + 1);
	BAD(-FI_EBADFLAGS, BASE, MSG, a.flags = FI_PEEK);
	expect_no_completion(p.a);
	for (size_t i = 0; i < r.len; i++)
		CHECK(!r.buf[i]);
}

static const struct refused_row {
	const char *name;
	enum kind kind;
	enum fi_op op;
	uint64_t access;		/* of the region */
	uint64_t past, wrong_key;	/* added to address and key */
	bool allowed;
} refused_rows[] = {
	{ .name = "base_key", .kind = BASE, .op = FI_SUM, .access = ALL_REMOTE, .wrong_key = 1 },
	{ .name = "fetch_key", .kind = FETCH, .op = FI_SUM, .access = ALL_REMOTE, .wrong_key = 1 },
	{ .name = "compare_key", .kind = COMPARE, .op = FI_CSWAP, .access = ALL_REMOTE, .wrong_key = 1 },
	{ .name = "base_bounds", .kind = BASE, .op = FI_SUM, .access = ALL_REMOTE, .past = 57 },
	{ .name = "fetch_bounds", .kind = FETCH, .op = FI_ATOMIC_READ, .access = ALL_REMOTE, .past = 57 },
	{ .name = "compare_bounds", .kind = COMPARE, .op = FI_MSWAP, .access = ALL_REMOTE, .past = UINT64_MAX },
	{ .name = "base_read_only", .kind = BASE, .op = FI_ATOMIC_WRITE, .access = FI_REMOTE_READ },
	{ .name = "fetch_read_only", .kind = FETCH, .op = FI_SUM, .access = FI_REMOTE_READ },
	{ .name = "read_read_only", .kind = FETCH, .op = FI_ATOMIC_READ, .access = FI_REMOTE_READ, .allowed = true },
	{ .name = "fetch_write_only", .kind = FETCH, .op = FI_ATOMIC_READ, .access = FI_REMOTE_WRITE },
	{ .name = "compare_write_only", .kind = COMPARE, .op = FI_CSWAP_NE, .access = FI_REMOTE_WRITE },
	{ .name = "base_write_only", .kind = BASE, .op = FI_SUM, .access = FI_REMOTE_WRITE, .allowed = true },
};

/* The target decides: one error at the initiator, memory as it was, and the next one works. */
TEST_TABLE(target_refuses, refused_rows, FI_ATOMIC, RELIABLE)
{
	const struct refused_row *row = ROW(refused_rows);
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, NULL, 64, row->access), ok = region_open(p.b, NULL, 8, ALL_REMOTE);
	uint64_t one = 1, cmp = 1, out = 77;

	if (!run.ours)
		ABSENT("upstream's errors differ by provider, and it ends the connection");
	amo_u64(p.a, row->kind, ONE, .op = row->op, .buf = &one, .compare = &cmp, .result = &out,
		.raddr = r.addr + row->past, .key = r.key + 1000 * row->wrong_key);
	if (row->allowed) {
		expect_tx(p.a);
		return;
	}
	expect_tx_failed(p.a);
	CHECK_EQ(out, 77);
	for (size_t i = 0; i < r.len; i++)
		CHECK(!r.buf[i]);
	amo_u64(p.a, FETCH, ONE, .op = FI_SUM, .buf = &one, .result = &out, .raddr = ok.addr, .key = ok.key);
	expect_tx(p.a);
	CHECK_EQ(out, 0);
	CHECK_EQ(ok.buf[0], 1);
}

/* ---- shapes */

/* Pieces here and regions there need not agree, and a region of several pieces may end one within an element. */
TEST_PROV(pieces, FI_ATOMIC, RELIABLE)
{
	struct pair p = amo_pair(t);
	uint64_t out[6] = { 1, 2, 3, 4, 5, 6 }, result[6];
	uint8_t *parts = mem(t, 100);
	struct iovec iov[3] = { { parts, 13 }, { parts + 20, 11 }, { parts + 40, 24 } };
	struct region r = region_open(p.b, NULL, 64, ALL_REMOTE);
	uint8_t flat[48];
	struct fid_mr *mr;
	uint64_t base = 0;

	MUST(fi_mr_regv(p.b->domain, iov, 3, ALL_REMOTE, 0, ++t->key, 0, &mr, NULL));
	own_fid(t, &mr->fid);
	region_ready(p.b, mr);
	if (p.b->info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | MR_BASIC))
		base = (uintptr_t) parts;
	amo(p.a, BASE, MSG, .type = FI_UINT64, .op = FI_SUM, .size = 8, .buf = out, .count = 6,
	    .flags = FI_COMPLETION | FI_DELIVERY_COMPLETE, .rma_cnt = 3,
	    .rma = (struct fi_rma_ioc[]) { { base, 3, fi_mr_key(mr) }, { r.addr + 3, 1, r.key },
					   { base + 24, 2, fi_mr_key(mr) } });
	expect_tx(p.a);
	memcpy(flat, parts, 13);
	memcpy(flat + 13, parts + 20, 11);
	memcpy(flat + 24, parts + 40, 16);
	CHECK_MEM(flat, ((uint64_t[]) { 1, 2, 3, 5, 6 }), 40);
	CHECK_MEM(r.buf + 3, &out[3], 8);
	amo(p.a, FETCH, ONE, .type = FI_UINT64, .op = FI_ATOMIC_READ, .size = 8, .result = result, .count = 5,
	    .raddr = base, .key = fi_mr_key(mr));
	expect_tx(p.a);
	CHECK_MEM(result, ((uint64_t[]) { 1, 2, 3, 5, 6 }), 40);
	CHECK(!parts[19] && !parts[31] && !parts[39]);
}

/* As many elements as a call may have, more calls at a time than the peer would keep results of. */
TEST_PROV(largest, FI_ATOMIC, RELIABLE)
{
	enum { CALLS = 48 };
	struct pair p = amo_pair(t);
	uint64_t *out, *result[CALLS];
	struct region r;
	size_t count;

	MUST(fi_fetch_atomicvalid(p.a->ep, FI_UINT64, FI_SUM, &count));
	r = region_open(p.b, NULL, count * 8, ALL_REMOTE);
	out = mem(t, count * 8);
	for (size_t i = 0; i < count; i++)
		out[i] = i;
	for (unsigned int k = 0; k < CALLS; k++) {
		result[k] = mem(t, count * 8);
		amo(p.a, FETCH, k % 2 ? ONE : VEC, .type = FI_UINT64, .op = FI_SUM, .size = 8, .buf = out,
		    .result = result[k], .count = count, .raddr = r.addr, .key = r.key);
	}
	expect_tx_cnt(p.a, CALLS);
	for (unsigned int k = 0; k < CALLS; k++) {
		for (size_t i = 0; i < count; i++)
			CHECK_EQ(result[k][i], k * i);
	}
}

/* Nothing to do is done. */
TEST_PROV(no_elements, FI_ATOMIC, RELIABLE)
{
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);
	uint64_t buf = 1, result = 2;

	amo(p.a, BASE, ONE, .type = FI_UINT64, .op = FI_SUM, .size = 8, .buf = &buf, .count = 0, .raddr = r.addr,
	    .key = r.key);
	amo(p.a, FETCH, ONE, .type = FI_UINT64, .op = FI_SUM, .size = 8, .buf = &buf, .result = &result, .count = 0,
	    .raddr = r.addr, .key = r.key);
	expect_tx_cnt(p.a, 2);
	CHECK_EQ(result, 2);
	CHECK_EQ(r.buf[0], 0);
}

/* An endpoint may change its own memory. */
TEST_PROV(self, FI_ATOMIC, RDM_ONLY)
{
	struct side *s = side_open(t);
	struct region r = region_open(s, NULL, 16, ALL_REMOTE);
	uint64_t one = 1, result = 9;

	s->peer = side_insert(s, s);
	amo_u64(s, BASE, ONE, .op = FI_SUM, .buf = &one, .raddr = r.addr, .key = r.key);
	amo_u64(s, FETCH, ONE, .op = FI_SUM, .buf = &one, .result = &result, .raddr = r.addr, .key = r.key);
	expect_tx_cnt(s, 2);
	CHECK_EQ(result, 1);
	CHECK_EQ(r.buf[0], 2);
}

/* ---- many at once */

/* Eight peers, each of which adds, fetches, and takes a lock by comparing: nothing is lost, nothing is seen twice. */
TEST_PROV(eight_peers, FI_ATOMIC, RDM_ONLY)
{
	enum { PEERS = 8, EACH = 60 };
	struct side *target = side_open(t), *peer[PEERS];
	struct region r = region_open(target, NULL, 64, ALL_REMOTE);
	uint64_t one = 1, ticket[PEERS][EACH], *word = (uint64_t *) r.buf;
	bool seen[PEERS * EACH] = { false };
	double half = 0.5;

	for (unsigned int i = 0; i < PEERS; i++) {
		peer[i] = side_open(t);
		peer[i]->peer = side_insert(peer[i], target);
	}
	for (unsigned int k = 0; k < EACH * PEERS; k++) {
		struct side *s = peer[k % PEERS];

		amo_u64(s, FETCH, ONE, .op = FI_SUM, .buf = &one, .result = &ticket[k % PEERS][k / PEERS],
			.raddr = r.addr, .key = r.key);
		amo(s, BASE, ONE, .type = FI_DOUBLE, .op = FI_SUM, .size = 8, .buf = &half, .count = 1,
		    .raddr = r.addr + 8, .key = r.key);
		amo(s, BASE, INJ, .type = FI_UINT32, .op = FI_BXOR, .size = 4, .buf = &(uint32_t) { 1u << k % 32 },
		    .count = 1, .raddr = r.addr + 17, .key = r.key);
	}
	for (unsigned int i = 0; i < PEERS; i++)
		expect_tx_cnt(peer[i], 2 * EACH);
	CHECK_EQ(word[0], PEERS * EACH);
	CHECK_MEM(&word[1], &(double) { PEERS * EACH * 0.5 }, 8);
	for (unsigned int k = 0; k < EACH * PEERS; k++) {
		uint64_t got = ticket[k % PEERS][k / PEERS];

		CHECK(got < PEERS * EACH && !seen[got]);
		CHECK(k < PEERS || got > ticket[k % PEERS][k / PEERS - 1]);
		seen[got] = true;
	}
}

/* One of eight has the word, whoever it is, and passes it on. */
TEST_PROV(compare_and_swap, FI_ATOMIC, RDM_ONLY)
{
	enum { PEERS = 8 };
	struct side *target = side_open(t), *peer[PEERS];
	struct region r = region_open(target, NULL, 8, ALL_REMOTE);
	uint64_t mine[PEERS], zero = 0, was[PEERS];
	unsigned int won = 0;

	for (unsigned int i = 0; i < PEERS; i++) {
		peer[i] = side_open(t);
		peer[i]->peer = side_insert(peer[i], target);
		mine[i] = i + 1;
	}
	for (unsigned int i = 0; i < PEERS; i++)
		amo_u64(peer[i], COMPARE, ONE, .op = FI_CSWAP, .buf = &mine[i], .compare = &zero, .result = &was[i],
			.raddr = r.addr, .key = r.key);
	for (unsigned int i = 0; i < PEERS; i++) {
		expect_tx(peer[i]);
		won += !was[i];
	}
	CHECK_EQ(won, 1);
	for (unsigned int i = 0; i < PEERS; i++)
		CHECK(was[i] == 0 ? r.buf[0] == mine[i] : was[i] == r.buf[0]);
}

/* ---- order */

/* What is posted behind sees what is posted before, and not the other way round, with nothing waited for. */
TEST_PROV(in_order, FI_ATOMIC, RELIABLE)
{
	enum { N = 300 };
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, NULL, 16, ALL_REMOTE);
	uint64_t out[N], before[N], after[N];

	if ((p.a->info->tx_attr->msg_order & ATOMIC_ORDERS) != ATOMIC_ORDERS)
		ABSENT("not all of FI_ORDER_ATOMIC_*");
	for (unsigned int i = 0; i < N; i++) {
		out[i] = i + 1;
		amo_u64(p.a, FETCH, ONE, .op = FI_ATOMIC_READ, .result = &before[i], .raddr = r.addr, .key = r.key);
		amo_u64(p.a, BASE, ONE, .op = FI_ATOMIC_WRITE, .buf = &out[i], .raddr = r.addr, .key = r.key);
		amo_u64(p.a, COMPARE, ONE, .op = FI_CSWAP, .buf = &out[i], .compare = &out[i], .result = &after[i],
			.raddr = r.addr, .key = r.key);
	}
	expect_tx_cnt(p.a, 3 * N);
	for (unsigned int i = 0; i < N; i++) {
		CHECK_EQ(before[i], i);
		CHECK_EQ(after[i], i + 1);
	}
}

/* With remote reads, writes and messages, as FI_ORDER_RAW, WAW, RAR and SAW have it. */
TEST_PROV(among_others, FI_ATOMIC | FI_RMA | FI_MSG, RELIABLE)
{
	const uint64_t orders = FI_ORDER_RAW | FI_ORDER_WAW | FI_ORDER_SAW;
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, NULL, 8, ALL_REMOTE);
	uint64_t out[40], in[40], one = 1;
	char msg[4];

	if ((p.a->info->tx_attr->msg_order & orders) != orders)
		ABSENT("not all of FI_ORDER_RAW, WAW and SAW");
	for (unsigned int i = 0; i < COUNT(out); i++) {
		out[i] = 10 * i;
		post_recv(p.b, msg, 4);
		post(p.a, WRITE, .buf = &out[i], .len = 8, .raddr = r.addr, .key = r.key);
		amo_u64(p.a, BASE, ONE, .op = FI_SUM, .buf = &one, .raddr = r.addr, .key = r.key);
		post(p.a, READ, .buf = &in[i], .len = 8, .raddr = r.addr, .key = r.key);
		send_bytes(p.a, "done", 4);
		expect_recv(p.b, "done", 4);
		CHECK_MEM(r.buf, &(uint64_t) { 10 * i + 1 }, 8);
	}
	expect_tx_cnt(p.a, 4 * COUNT(out));
	for (unsigned int i = 0; i < COUNT(out); i++)
		CHECK_EQ(in[i], 10 * i + 1);
}

/* FI_DELIVERY_COMPLETE: when it completes it is there, whoever looks. */
TEST_PROV(delivered, FI_ATOMIC, RELIABLE)
{
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, NULL, 8, ALL_REMOTE);
	uint64_t one = 1;

	for (uint8_t i = 1; i < 50; i++) {
		amo_u64(p.a, BASE, MSG, .op = FI_SUM, .buf = &one, .raddr = r.addr, .key = r.key,
			.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION);
		expect_tx(p.a);
		CHECK_EQ(r.buf[0], i);
	}
}

/* A fence in front of an atomic: what a read before it brings is from before. */
TEST_PROV(fenced, FI_ATOMIC | FI_RMA | FI_FENCE, RELIABLE)
{
	enum { LEN = 2 << 20 };
	struct pair p = amo_pair(t);
	struct region r = region_open(p.b, mem_pattern(t, LEN, 1), LEN, ALL_REMOTE);
	uint64_t zero = 0, was;
	uint8_t *in = mem(t, LEN);

	post(p.a, READ, .buf = in, .len = LEN, .raddr = r.addr, .key = r.key);
	amo_u64(p.a, FETCH, MSG, .op = FI_ATOMIC_WRITE, .buf = &zero, .result = &was, .raddr = r.addr + LEN - 8,
		.key = r.key, .flags = FI_FENCE | FI_COMPLETION);
	expect_tx_cnt(p.a, 2);
	check_fill(in, LEN, 1);
	CHECK_MEM(&was, in + LEN - 8, 8);
	CHECK_MEM(r.buf + LEN - 8, &zero, 8);
}
