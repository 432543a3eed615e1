/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* See collective.h. Source: fi_collective(3). */
#define CONFORM_INSIDE
#include "collective.h"

#include <string.h>

#include "ops.h"

ssize_t coll_call_now(struct side *s, struct fid_mc *mc, const struct coll_call *c)
{
	fi_addr_t addr = fi_mc_addr(mc);

	switch (c->kind) {
	case FI_BARRIER:
		return fi_barrier(s->ep, addr, c->context);
	case FI_BROADCAST:
		return fi_broadcast(s->ep, c->result, c->count, NULL, addr, c->root, c->datatype, 0, c->context);
	case FI_ALLTOALL:
		return fi_alltoall(s->ep, c->buf, c->count, NULL, c->result, NULL, addr, c->datatype, 0, c->context);
	case FI_ALLREDUCE:
		return fi_allreduce(s->ep, c->buf, c->count, NULL, c->result, NULL, addr, c->datatype, c->op, 0,
				    c->context);
	case FI_ALLGATHER:
		return fi_allgather(s->ep, c->buf, c->count, NULL, c->result, NULL, addr, c->datatype, 0, c->context);
	case FI_REDUCE_SCATTER:
		return fi_reduce_scatter(s->ep, c->buf, c->count, NULL, c->result, NULL, addr, c->datatype, c->op, 0,
					 c->context);
	case FI_REDUCE:
		return fi_reduce(s->ep, c->buf, c->count, NULL, c->result, NULL, addr, c->root, c->datatype, c->op, 0,
				 c->context);
	case FI_SCATTER:
		return fi_scatter(s->ep, c->buf, c->count, NULL, c->result, NULL, addr, c->root, c->datatype, 0,
				  c->context);
	default:
		return fi_gather(s->ep, c->buf, c->count, NULL, c->result, NULL, addr, c->root, c->datatype, 0,
				 c->context);
	}
}

void coll_call(struct side *s, struct fid_mc *mc, const struct coll_call *c)
{
	MUST(coll_call_now(s, mc, c));
	s->tx_posted++;
}

void coll_expect_done(struct side *s, void *context)
{
	struct comp comp = expect_tx(s);

	CHECK(comp.ctx == context);
	CHECK(comp.flags & FI_COLLECTIVE);
}

void coll_barrier(struct coll_group *g)
{
	for (size_t i = 0; i < g->cnt; i++)
		coll_call(g->side[i], g->mc[i], &(struct coll_call) { .kind = FI_BARRIER, .context = g });
	for (size_t i = 0; i < g->cnt; i++)
		coll_expect_done(g->side[i], g);
}

void coll_join_all(struct coll_group *g)
{
	for (size_t i = 0; i < g->cnt; i++)
		g->mc[i] = coll_join_begin(g->side[i], coll_everyone, g->cnt);
	for (size_t i = 0; i < g->cnt; i++)
		coll_join_end(g->side[i], g->mc[i]);
}

/* ---- what each gets, of 64-bit integers */

/* Element j of block b of member i's buf. */
int64_t coll_value(size_t i, size_t b, size_t j)
{
	return (int64_t) (i * 1000003 + b * 1009 + j + 1);
}

int64_t coll_sum(size_t cnt, size_t b, size_t j)
{
	int64_t all = 0;

	for (size_t i = 0; i < cnt; i++)
		all += coll_value(i, b, j);
	return all;
}

/* Element j of block b of member i's result. */
static int64_t want(const struct coll_call *c, size_t cnt, size_t i, size_t b, size_t j)
{
	switch (c->kind) {
	case FI_BROADCAST:
		return coll_value(c->root, b, j);
	case FI_ALLTOALL:
		return coll_value(b, i, j);
	case FI_ALLGATHER:
	case FI_GATHER:
		return coll_value(b, 0, j);
	case FI_SCATTER:
		return coll_value(c->root, i, j);
	case FI_REDUCE_SCATTER:
		return coll_sum(cnt, i, j);
	default:
		return coll_sum(cnt, 0, j);
	}
}

static size_t blocks_out(enum fi_collective_op kind, size_t cnt)
{
	return kind == FI_ALLTOALL || kind == FI_SCATTER || kind == FI_REDUCE_SCATTER ? cnt : 1;
}

static size_t blocks_in(enum fi_collective_op kind, size_t cnt)
{
	return kind == FI_ALLTOALL || kind == FI_ALLGATHER || kind == FI_GATHER ? cnt : 1;
}

void coll_check_one(struct coll_group *g, enum fi_collective_op kind, size_t count)
{
	struct coll_call c[COLL_MEMBERS_MAX];
	int64_t *buf, *result;

	note("collective %d of %zu", kind, count);
	for (size_t i = 0; i < g->cnt; i++) {
		buf = mem(g->t, (blocks_out(kind, g->cnt) * count + 1) * sizeof(*buf));
		result = mem(g->t, (blocks_in(kind, g->cnt) * count + 1) * sizeof(*result));
		for (size_t b = 0; b < blocks_out(kind, g->cnt); b++) {
			for (size_t j = 0; j < count; j++)
				buf[b * count + j] = coll_value(i, b, j);
		}
		c[i] = (struct coll_call) { .kind = kind, .datatype = FI_INT64, .op = FI_SUM, .count = count,
				       .root = g->cnt / 2, .buf = buf, .result = result, .context = &c[i] };
		if (kind == FI_BROADCAST && i == c[i].root)
			memcpy(result, buf, count * sizeof(*buf));
		coll_call(g->side[i], g->mc[i], &c[i]);
	}
	for (size_t i = 0; i < g->cnt; i++)
		coll_expect_done(g->side[i], &c[i]);
	for (size_t i = 0; i < g->cnt; i++) {
		if ((kind == FI_GATHER || kind == FI_REDUCE) && i != c[i].root)
			continue;
		result = c[i].result;
		for (size_t b = 0; b < blocks_in(kind, g->cnt); b++) {
			for (size_t j = 0; j < count; j++)
				CHECK(result[b * count + j] == want(&c[i], g->cnt, i, b, j));
		}
		CHECK_EQ(result[blocks_in(kind, g->cnt) * count], 0);
	}
	note(NULL);
}
