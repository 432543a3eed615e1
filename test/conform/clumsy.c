/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A program that closes parents before their children, ignores the refusals, and goes on. A refusal harms nothing: what
 * was refused is as it was, and closes when its turn comes. Source: fi_domain(3), fi_cq(3) on fi_close; what real
 * programs do at their end.
 */
#include <rdma/fi_cm.h>

#include "ops.h"

enum { BIG = 1 << 20, OBJECTS = 9, ROUNDS = 3 };

/* The objects of a side, parents first. */
struct clumsy {
	struct side *s;
	struct fid_mr *mr;
	struct fid_cntr *cntr;
};

static struct fid *object(const struct clumsy *c, size_t i)
{
	const struct side *s = c->s;
	struct fid *const list[OBJECTS] = {
		s->fabric ? &s->fabric->fid : NULL, s->domain ? &s->domain->fid : NULL, s->eq ? &s->eq->fid : NULL,
		s->av ? &s->av->fid : NULL, s->tx_cq ? &s->tx_cq->fid : NULL,
		s->rx_cq && s->rx_cq != s->tx_cq ? &s->rx_cq->fid : NULL, c->cntr ? &c->cntr->fid : NULL,
		c->mr ? &c->mr->fid : NULL, s->ep ? &s->ep->fid : NULL,
	};

	return list[i];
}

static void forget(struct clumsy *c, size_t i)
{
	struct side *s = c->s;
	void **const list[OBJECTS] = {
		(void **) &s->fabric, (void **) &s->domain, (void **) &s->eq, (void **) &s->av, (void **) &s->tx_cq,
		(void **) &s->rx_cq, (void **) &c->cntr, (void **) &c->mr, (void **) &s->ep,
	};

	*list[i] = NULL;
}

/* Close all objects, from @first on, whatever the answers are. */
static void close_all_from(struct test *t, struct clumsy *c, size_t first)
{
	for (size_t n = 0; n < OBJECTS; n++) {
		size_t i = (first + n) % OBJECTS;
		struct fid *fid = object(c, i);
		int ret = fid ? fi_close(fid) : -FI_EBUSY;

		if (ret && ret != -FI_EBUSY)
			FAIL("object %zu, from %zu on: fi_close says %s", i, first, fi_strerror(-ret));
		if (ret)
			continue;
		disown(t, fid);
		forget(c, i);
	}
}

/* Operations that are under way: receives, and sends that nobody takes. */
static void begin_work(struct test *t, struct side *s, size_t len)
{
	uint8_t *out = mem(t, BIG);
	char *in = mem(t, 8);

	post_recv(s, in, 4);
	post_recv(s, in + 4, 4);
	for (int i = 0; i < 4; i++)
		try_op(s, SEND, .buf = out, .len = len);
	side_progress(s);
}

static const struct clumsy_row {
	const char *name;
	size_t first;
} clumsy_rows[] = {
	{ "fabric_first", 0 }, { "domain_first", 1 }, { "eq_first", 2 }, { "av_first", 3 }, { "tx_cq_first", 4 },
	{ "rx_cq_first", 5 }, { "cntr_first", 6 }, { "mr_first", 7 }, { "endpoint_first", 8 },
};

static void close_in_a_wrong_order(struct test *t, size_t first, bool busy)
{
	struct pair p = pair_open(t, .eq = true);
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct clumsy c = { .s = p.a };
	uint8_t *buf = mem(t, 64);

	check_link(p.a, p.b);
	if (!fi_cntr_open(p.a->domain, &attr, &c.cntr, NULL))
		own_fid(t, &c.cntr->fid);
	if (!fi_mr_reg(p.a->domain, buf, 64, FI_SEND | FI_RECV, 0, 77, 0, &c.mr, NULL))
		own_fid(t, &c.mr->fid);
	if (busy)
		begin_work(t, p.a, run.type == FI_EP_DGRAM ? 4 : BIG);
	close_all_from(t, &c, first);
	idle(t);
	/* again and again, as often as the tree of objects is deep */
	for (int i = 0; i < ROUNDS; i++)
		close_all_from(t, &c, first);
	/* what still holds the domain is memory that the suite has registered */
	if (c.s->domain)
		side_close(c.s);
	idle(t);
}

/* Objects that are closed in a wrong order refuse with -FI_EBUSY, and close in the right one. */
TEST_TABLE(without_operations, clumsy_rows, FI_MSG)
{
	close_in_a_wrong_order(t, ROW(clumsy_rows)->first, false);
}

/* The same while operations are pending. */
TEST_TABLE(with_operations, clumsy_rows, FI_MSG)
{
	close_in_a_wrong_order(t, ROW(clumsy_rows)->first, true);
}

/* The refused objects still serve their endpoint. */
TEST_PROV(refusals_harm_nothing, FI_MSG)
{
	struct pair p = pair_open(t, .eq = true);
	struct clumsy c = { .s = p.a };

	for (int n = 0; n < 3; n++) {
		for (size_t i = 0; i + 1 < OBJECTS; i++) {
			if (object(&c, i))
				CHECK_RET(fi_close(object(&c, i)), -FI_EBUSY);
		}
		check_link(p.a, p.b);
		check_link(p.b, p.a);
	}
}
