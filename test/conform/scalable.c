/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Scalable endpoints and named receive contexts. Source: fi_endpoint(3), fi_av(3). */
#include <string.h>

#include <rdma/fi_atomic.h>

#include "ops.h"
#include "scalable.h"

#define BITS	SCALABLE_BITS
#define CAPS	(FI_MSG | FI_NAMED_RX_CTX)

static int want_tx, want_rx;
enum fi_threading scalable_threading;
static bool want_key;

static void key_hints(struct fi_info *hints)
{
	hints->domain_attr->auth_key = (uint8_t *) strdup("the key");
	hints->domain_attr->auth_key_size = 7;
}

static void scalable_hints(struct fi_info *hints)
{
	hints->ep_attr->tx_ctx_cnt = (size_t) want_tx;
	hints->ep_attr->rx_ctx_cnt = (size_t) want_rx;
	if (scalable_threading)
		hints->domain_attr->threading = scalable_threading;
	if (want_key)
		key_hints(hints);
}

struct scalable scalable_begin(struct test *t, int tx_cnt, int rx_cnt)
{
	struct scalable s = { .tx_cnt = tx_cnt, .rx_cnt = rx_cnt };

	want_tx = tx_cnt;
	want_rx = rx_cnt;
	s.base = domain_side(t, .hints = scalable_hints, .rx_ctx_bits = BITS);
	side_open_av(s.base);
	MUST(fi_scalable_ep(s.base->domain, s.base->info, &s.sep, &s));
	own_fid(t, &s.sep->fid);
	CHECK_EQ(s.sep->fid.fclass, FI_CLASS_SEP);
	MUST(fi_scalable_ep_bind(s.sep, &s.base->av->fid, 0));
	return s;
}

struct side *scalable_ctx_opts(struct scalable *s, bool rx, int i, const struct opts *o)
{
	struct opts mine = *o;
	struct side *ctx;

	mine.domain_of = mine.av_of = s->base;
	mine.sep = s->sep;
	mine.rx_ctx = rx;
	mine.ctx = i;
	mine.unenabled = true;
	ctx = side_open_opts(s->base->t, &mine);
	CHECK_EQ(ctx->ep->fid.fclass, rx ? FI_CLASS_RX_CTX : FI_CLASS_TX_CTX);
	CHECK(ctx->ep->fid.context == ctx);
	MUST(fi_enable(ctx->ep));
	return ctx;
}

void scalable_enable(struct scalable *s)
{
	MUST(fi_enable(s->sep));
	s->base->name_len = sizeof(s->base->name);
	MUST(fi_getname(&s->sep->fid, s->base->name, &s->base->name_len));
}

struct scalable scalable_open(struct test *t, int tx_cnt, int rx_cnt)
{
	struct scalable s = scalable_begin(t, tx_cnt, rx_cnt);
	int i;

	for (i = 0; i < tx_cnt; i++)
		s.tx[i] = scalable_ctx(&s, false, i);
	for (i = 0; i < rx_cnt; i++)
		s.rx[i] = scalable_ctx(&s, true, i);
	scalable_enable(&s);
	return s;
}

/* What context @rx of the endpoint at @addr is sent to by. */
static fi_addr_t rx_addr(fi_addr_t addr, int rx)
{
	return fi_rx_addr(addr, rx, BITS);
}

/* @from sends to receive context @rx of whoever is at @addr, whose side is @to. */
static void send_ctx(struct side *from, fi_addr_t addr, int rx, struct side *to, const char *text)
{
	fi_addr_t dest = rx_addr(addr, rx);
	char in[8];

	post_recv(to, in, sizeof(in));
	post(from, SEND, .buf = text, .len = strlen(text), .addr = &dest);
	expect_tx(from);
	expect_recv(to, text, strlen(text));
}

/* ---- exchange */

struct exchange_row {
	const char *name;
	size_t len;
	bool early;			/* the messages come before the receives */
	enum fi_threading threading;
};

static const struct exchange_row exchange_rows[] = {
	{ "expected", 64, false, FI_THREAD_UNSPEC }, { "unexpected", 64, true, FI_THREAD_UNSPEC },
	{ "announced", 300000, true, FI_THREAD_UNSPEC }, { "completion_threading", 64, false, FI_THREAD_COMPLETION },
	{ "domain_threading", 64, false, FI_THREAD_DOMAIN },
};

/* Each transmit context to each receive context: what comes is what was sent to that one, in order, and who sent it. */
TEST_TABLE(every_pair, exchange_rows, CAPS | FI_SOURCE, RDM_ONLY)
{
	enum { TX = 3, RX = 2, MSGS = 2, EACH = TX * MSGS };
	const struct exchange_row *row = ROW(exchange_rows);
	struct scalable a, b;
	fi_addr_t to_b, from_a;
	unsigned int next[RX][TX] = { { 0 } };
	int i, k, m, round;

	scalable_threading = row->threading;
	a = scalable_open(t, TX, 1);
	b = scalable_open(t, 1, RX);
	scalable_threading = FI_THREAD_UNSPEC;
	to_b = side_insert(a.base, b.base);
	from_a = side_insert(b.base, a.base);
	for (round = 0; round < 2; round++) {
		for (k = 0; k < RX; k++) {
			for (i = 0; i < EACH; i++) {
				fi_addr_t dest = rx_addr(to_b, k);
				unsigned int seed = (unsigned int) (k << 8 | (i % TX) << 4 | i / TX);

				if (round == row->early)
					post_recv(b.rx[k], mem(t, row->len), row->len);
				else
					post(a.tx[i % TX], SEND, .buf = mem_pattern(t, row->len, seed), .len = row->len,
					     .addr = &dest);
			}
		}
		if (row->early)
			idle(t);
	}
	for (k = 0; k < RX; k++) {
		for (m = 0; m < EACH; m++) {
			struct comp c = expect_rx(b.rx[k]);
			uint8_t *buf = ctx_buf(b.rx[k], c.ctx), want[64];
			bool found = false;

			CHECK_EQ(c.len, row->len);
			CHECK_EQ(c.src, from_a);
			/* the next one of one of the senders */
			for (i = 0; i < TX && !found; i++) {
				unsigned int seed = (unsigned int) (k << 8 | i << 4) | next[k][i];

				fill(want, sizeof(want), seed);
				found = !memcmp(buf, want, sizeof(want));
				next[k][i] += found;
				if (found)
					check_fill(buf, row->len, seed);
			}
			CHECK(found);
		}
	}
	for (i = 0; i < TX; i++)
		expect_tx_cnt(a.tx[i], RX * MSGS);
}

/* An endpoint that is not scalable talks to one that is, to each of its contexts, and is talked to by each. */
TEST_PROV(with_a_plain_endpoint, CAPS, RDM_ONLY)
{
	struct scalable s = scalable_open(t, 2, 3);
	struct side *plain = side_open(t, .rx_ctx_bits = BITS);
	fi_addr_t to_s = side_insert(plain, s.base), to_plain = side_insert(s.base, plain);
	int round;

	for (round = 0; round < 2; round++) {
		send_ctx(plain, to_s, 0, s.rx[0], "to rx 0");
		send_ctx(s.tx[1], to_plain, 0, plain, "by tx 1");
		send_ctx(plain, to_s, 2, s.rx[2], "to rx 2");
		send_ctx(s.tx[0], to_plain, 0, plain, "by tx 0");
		send_ctx(plain, to_s, 1, s.rx[1], "to rx 1");
	}
}

/* All contexts are under the authorization key of the endpoint. */
TEST_PROV(contexts_have_its_key, CAPS, RDM_ONLY)
{
	struct side *plain, *stranger;
	struct scalable s;
	fi_addr_t to_s;

	if (!run.ours)
		ABSENT("the provider has no authorization keys");
	want_key = true;
	s = scalable_open(t, 2, 2);
	want_key = false;
	plain = side_open(t, .rx_ctx_bits = BITS, .hints = key_hints);
	stranger = side_open(t, .rx_ctx_bits = BITS);
	to_s = side_insert(plain, s.base);
	send_ctx(plain, to_s, 1, s.rx[1], "to rx 1");
	send_ctx(plain, to_s, 0, s.rx[0], "to rx 0");
	send_ctx(s.tx[1], side_insert(s.base, plain), 0, plain, "by tx 1");
	to_s = rx_addr(side_insert(stranger, s.base), 1);
	post(stranger, SEND, .buf = "nobody's", .len = 8, .addr = &to_s);
	expect_tx_err(stranger, FI_EACCES);
}

/* Its own receive contexts are like those of others. */
TEST_PROV(with_itself, CAPS, RDM_ONLY)
{
	struct scalable s = scalable_open(t, 2, 2);
	fi_addr_t self = side_insert(s.base, s.base);

	send_ctx(s.tx[0], self, 1, s.rx[1], "0 to 1.");
	send_ctx(s.tx[1], self, 0, s.rx[0], "1 to 0.");
	send_ctx(s.tx[1], self, 1, s.rx[1], "1 to 1.");
}

/* Memory of the other side is reached by way of each receive context, and counted there. */
TEST_PROV(remote_access, FI_MSG | FI_RMA | FI_RMA_EVENT | FI_NAMED_RX_CTX, RDM_ONLY)
{
	struct scalable a = scalable_open(t, 2, 1), b = scalable_begin(t, 1, 2);
	struct region r = region_open(b.base, NULL, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
	struct fid_cntr *cntr[2];
	uint8_t back[16];
	fi_addr_t to_b, dest;
	int i;

	for (i = 0; i < 2; i++) {
		MUST(fi_cntr_open(b.base->domain, NULL, &cntr[i], NULL));
		own_fid(t, &cntr[i]->fid);
		b.rx[i] = scalable_ctx(&b, true, i);
		MUST(fi_ep_bind(b.rx[i]->ep, &cntr[i]->fid, FI_REMOTE_WRITE));
	}
	scalable_enable(&b);
	to_b = side_insert(a.base, b.base);
	for (i = 0; i < 3; i++) {
		dest = rx_addr(to_b, i % 2);
		post(a.tx[i % 2], WRITEMSG, .buf = "8 bytes.", .len = 8, .raddr = r.addr + 8 * (uint64_t) i,
		     .key = r.key, .addr = &dest, .flags = FI_DELIVERY_COMPLETE);
		expect_tx(a.tx[i % 2]);
	}
	CHECK_EQ(fi_cntr_read(cntr[0]), 2);
	CHECK_EQ(fi_cntr_read(cntr[1]), 1);
	dest = rx_addr(to_b, 1);
	post(a.tx[0], READ, .buf = back, .len = 16, .raddr = r.addr, .key = r.key, .addr = &dest);
	expect_tx(a.tx[0]);
	CHECK_MEM(back, "8 bytes.8 bytes.", 16);
}

/* Atomics of several contexts on one word, by way of several. */
TEST_PROV(atomics, FI_MSG | FI_ATOMIC | FI_NAMED_RX_CTX, RDM_ONLY)
{
	struct scalable a = scalable_open(t, 2, 1), b = scalable_open(t, 1, 2);
	struct region r = region_open(b.base, NULL, 8, FI_REMOTE_READ | FI_REMOTE_WRITE);
	fi_addr_t to_b = side_insert(a.base, b.base);
	uint64_t one = 1, before[4];
	int i;

	for (i = 0; i < 4; i++) {
		struct side *s = a.tx[i % 2];
		struct wait w = wait_begin();

		while (fi_fetch_atomic(s->ep, &one, 1, NULL, &before[i], NULL, rx_addr(to_b, i / 2), r.addr, r.key,
				       FI_UINT64, FI_SUM, NULL) == -FI_EAGAIN)
			wait_more(t, &w, "room for an atomic");
		s->tx_posted++;
		expect_tx(s);
		CHECK_EQ(before[i], (uint64_t) i);
	}
	CHECK_EQ(*(uint64_t *) r.buf, 4);
}

/* ---- which there are */

/* More bits than there can be contexts are taken as they are, and cost no memory. */
TEST_PROV(more_bits_than_contexts, CAPS, RDM_ONLY)
{
	struct scalable s = scalable_open(t, 1, 2);
	struct side *from = side_open(t, .rx_ctx_bits = 32);
	fi_addr_t self = side_insert(from, from), to_s = side_insert(from, s.base), dest;
	int rx;

	for (rx = 0; rx < 4; rx++) {
		char in[8];

		dest = fi_rx_addr(to_s, rx % 2, 32);
		post_recv(s.rx[rx % 2], in, sizeof(in));
		post(from, SEND, .buf = "far off", .len = 7, .addr = &dest);
		expect_tx(from);
		expect_recv(s.rx[rx % 2], "far off", 7);
	}
	CHECK(self < to_s);
}

/* A receive context that does not exist is an error at once, and the others go on. */
TEST_PROV(no_such_context, CAPS, RDM_ONLY)
{
	struct scalable s = scalable_open(t, 1, 2);
	struct side *plain = side_open(t, .rx_ctx_bits = BITS);
	fi_addr_t to_s = side_insert(plain, s.base), to_plain = side_insert(s.base, plain);
	fi_addr_t wrong = rx_addr(to_s, 3), named = rx_addr(to_plain, 1);

	post(plain, SEND, .buf = "x", .len = 1, .addr = &wrong);
	if (run.ours)
		expect_tx_err(plain, FI_ENORX);
	else
		expect_tx_failed(plain);
	post(s.tx[0], SEND, .buf = "x", .len = 1, .addr = &named);
	if (run.ours)
		expect_tx_err(s.tx[0], FI_ENORX);
	else
		expect_tx_failed(s.tx[0]);
	send_ctx(plain, to_s, 1, s.rx[1], "to rx 1");
	send_ctx(s.tx[0], to_plain, 0, plain, "by tx 0");
}

/* A context that is not enabled yet is waited for. */
TEST_PROV(context_comes_late, CAPS, RDM_ONLY)
{
	struct scalable s = scalable_begin(t, 1, 2);
	struct side *plain = side_open(t, .rx_ctx_bits = BITS);
	fi_addr_t dest;
	char in[4];

	s.rx[0] = scalable_ctx(&s, true, 0);
	scalable_enable(&s);
	dest = rx_addr(side_insert(plain, s.base), 1);
	post(plain, SEND, .buf = "late", .len = 4, .addr = &dest);
	idle(t);
	s.rx[1] = scalable_ctx(&s, true, 1);
	post_recv(s.rx[1], in, 4);
	expect_tx(plain);
	expect_recv(s.rx[1], "late", 4);
}

/* One context closes and is opened anew; the others notice nothing. */
TEST_PROV(context_comes_again, CAPS, RDM_ONLY)
{
	struct scalable a = scalable_open(t, 2, 1), b = scalable_open(t, 1, 2);
	fi_addr_t to_b = side_insert(a.base, b.base);

	send_ctx(a.tx[0], to_b, 0, b.rx[0], "one");
	send_ctx(a.tx[0], to_b, 1, b.rx[1], "two");
	side_close_ep(b.rx[1]);
	side_close_ep(a.tx[1]);
	idle(t);
	send_ctx(a.tx[0], to_b, 0, b.rx[0], "three");
	b.rx[1] = scalable_ctx(&b, true, 1);
	a.tx[1] = scalable_ctx(&a, false, 1);
	send_ctx(a.tx[0], to_b, 1, b.rx[1], "four");
	send_ctx(a.tx[1], to_b, 1, b.rx[1], "five");
}

/* An address that is removed and inserted again is connected to again, by every context. */
TEST_PROV(address_comes_again, CAPS, RDM_ONLY)
{
	struct scalable a = scalable_open(t, 1, 1), b = scalable_open(t, 1, 2);
	fi_addr_t to_b = side_insert(a.base, b.base);
	int i;

	for (i = 0; i < 3; i++) {
		send_ctx(a.tx[0], to_b, 1, b.rx[1], "rx 1");
		send_ctx(a.tx[0], to_b, 0, b.rx[0], "rx 0");
		MUST(fi_av_remove(a.base->av, &to_b, 1, 0));
		to_b = side_insert(a.base, b.base);
	}
}

/* ---- rules */

/* Contexts are opened once, by a number below their count; each does its own direction only; the endpoint none. */
TEST_PROV(context_rules, CAPS, RDM_ONLY)
{
	struct scalable s = scalable_begin(t, 2, 2);
	struct fi_tx_attr tx_attr = { .size = 16 };
	struct fid_ep *ep = NULL;
	char buf[4];

	if (!run.ours)
		ABSENT("upstream does not look");
	CHECK_RET(fi_tx_context(s.sep, 2, NULL, &ep, NULL), -FI_EINVAL);
	CHECK_RET(fi_tx_context(s.sep, -1, NULL, &ep, NULL), -FI_EINVAL);
	CHECK_RET(fi_rx_context(s.sep, 2, NULL, &ep, NULL), -FI_EINVAL);
	s.tx[0] = scalable_ctx(&s, false, 0);
	s.rx[0] = scalable_ctx(&s, true, 0);
	CHECK_RET(fi_tx_context(s.sep, 0, NULL, &ep, NULL), -FI_EBUSY);
	CHECK_RET(fi_rx_context(s.sep, 0, NULL, &ep, NULL), -FI_EBUSY);
	CHECK(ep == NULL);
	note("attributes");
	MUST(fi_tx_context(s.sep, 1, &tx_attr, &ep, NULL));
	own_fid(t, &ep->fid);
	CHECK_EQ(tx_attr.size, 16);
	CHECK(tx_attr.inject_size > 0 && tx_attr.iov_limit > 0);
	note("directions");
	CHECK_RET((int) fi_recv(s.tx[0]->ep, buf, 4, NULL, FI_ADDR_UNSPEC, NULL), -FI_ENOSYS);
	CHECK_RET((int) fi_send(s.rx[0]->ep, buf, 4, NULL, 0, NULL), -FI_ENOSYS);
	CHECK_RET((int) fi_send(s.sep, buf, 4, NULL, 0, NULL), -FI_ENOSYS);
	CHECK_RET((int) fi_recv(s.sep, buf, 4, NULL, FI_ADDR_UNSPEC, NULL), -FI_ENOSYS);
	note("before it is enabled");
	CHECK_RET((int) fi_send(ep, buf, 4, NULL, 0, NULL), -FI_EOPBADSTATE);
	CHECK_RET(fi_enable(ep), -FI_ENOCQ);
	note("what a scalable endpoint is bound to");
	CHECK_RET(fi_scalable_ep_bind(s.sep, &s.tx[0]->tx_cq->fid, FI_TRANSMIT), -FI_EINVAL);
	MUST(fi_enable(s.sep));
	CHECK_RET(fi_enable(s.sep), -FI_EOPBADSTATE);
}

/* A scalable endpoint stays until its last context is closed; without an address vector it cannot be enabled. */
TEST_PROV(close_order, CAPS, RDM_ONLY)
{
	struct scalable s = scalable_open(t, 1, 1);
	struct fid_ep *sep = NULL;

	CHECK_RET(fi_close(&s.sep->fid), -FI_EBUSY);
	CHECK_RET(fi_close(&s.base->av->fid), -FI_EBUSY);
	side_close_ep(s.tx[0]);
	CHECK_RET(fi_close(&s.sep->fid), -FI_EBUSY);
	side_close_ep(s.rx[0]);
	close_now(t, &s.sep->fid);
	MUST(fi_scalable_ep(s.base->domain, s.base->info, &sep, NULL));
	own_fid(t, &sep->fid);
	CHECK_RET(fi_enable(sep), -FI_ENOAV);
}

/* One address for all: the name of a context is that of the endpoint, which it has before or after its contexts. */
TEST_PROV(one_name, CAPS, RDM_ONLY)
{
	struct scalable s = scalable_begin(t, 1, 1);
	uint8_t name[128];
	size_t len = sizeof(name);

	scalable_enable(&s);
	s.tx[0] = scalable_ctx(&s, false, 0);
	s.rx[0] = scalable_ctx(&s, true, 0);
	MUST(fi_getname(&s.rx[0]->ep->fid, name, &len));
	CHECK_EQ(len, s.base->name_len);
	CHECK_MEM(name, s.base->name, len);
	send_ctx(s.tx[0], side_insert(s.base, s.base), 0, s.rx[0], "itself.");
	CHECK_RET(fi_setname(&s.sep->fid, name, len), -FI_EOPBADSTATE);
}

/* fi_getinfo() says how many contexts there may be, answers what was asked for, and refuses more. */
TEST_PROV(counts_are_told, CAPS, RDM_ONLY)
{
	struct fi_info *hints = hints_new(t, &(struct opts) { 0 }), *info = info_find(t, hints, NULL, NULL, 0);
	size_t max_tx = info->domain_attr->max_ep_tx_ctx, max_rx = info->domain_attr->max_ep_rx_ctx;

	CHECK(max_tx > 1 && max_rx > 1);
	CHECK(info->caps & FI_NAMED_RX_CTX);
	hints->ep_attr->tx_ctx_cnt = max_tx;
	hints->ep_attr->rx_ctx_cnt = 3;
	info = info_find(t, hints, NULL, NULL, 0);
	CHECK(info != NULL);
	CHECK_EQ(info->ep_attr->tx_ctx_cnt, max_tx);
	CHECK_EQ(info->ep_attr->rx_ctx_cnt, 3);
	hints->ep_attr->rx_ctx_cnt = max_rx + 1;
	CHECK(info_find(t, hints, NULL, NULL, 0) == NULL);
}
