/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See coll_plan.h. n members, this one is r, a block is one member's share.
 *
 *   barrier          dissemination: log n rounds
 *   broadcast        binomial tree: log n
 *   reduce           binomial tree: log n
 *   allreduce        recursive doubling: log n; long: a ring that reduces and a ring that gathers, each byte sent twice
 *   allgather        doubling, each member a little further on (Bruck): log n; long: a ring
 *   reduce_scatter   as allreduce, of which each keeps its block; long: a ring
 *   gather, scatter  binomial tree, of blocks relative to the root: log n
 *   alltoall         one partner a round: n
 *
 * A reduction gives every member the same bits: two operands always meet in the order of their members, and what a ring
 * has reduced is passed on as it is.
 */
#include "common/collective/coll_plan.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/table.h"

#define LONG_LEN	(32 * 1024)	/* bytes of the whole vector from which on rings are taken */

/* Rounds beside those that count from 0: members beyond the largest power of two join in and get the result. */
#define ROUND_FOLD	254
#define ROUND_UNFOLD	255

struct maker {
	struct fab_coll_plan *plan;
	const struct fab_coll_call *call;
	uint32_t r, n;
	size_t block;			/* bytes */
	uint8_t *temp;			/* what is left of plan->temp */
};

static void add(struct maker *m, struct fab_coll_step step)
{
	struct fab_coll_plan *plan = m->plan;

	if (fab_grow(&plan->step, &plan->room, plan->cnt, sizeof(*plan->step))) {
		plan->no_memory = true;
		return;
	}
	plan->step[plan->cnt++] = step;
}

static void add_copy(struct maker *m, void *dst, const void *src, size_t len)
{
	if (len && dst != src)
		add(m, (struct fab_coll_step) { .to = FAB_COLL_NOBODY, .from = FAB_COLL_NOBODY, .then = FAB_COLL_COPY,
						.dst = dst, .src = src, .len = len });
}

static void add_send(struct maker *m, uint32_t to, unsigned round, const void *out, size_t len)
{
	add(m, (struct fab_coll_step) { .to = to, .from = FAB_COLL_NOBODY, .round = (uint8_t) round, .out = out,
					.out_len = len });
}

static void add_recv(struct maker *m, uint32_t from, unsigned round, void *in, size_t len)
{
	add(m, (struct fab_coll_step) { .to = FAB_COLL_NOBODY, .from = from, .round = (uint8_t) round, .in = in,
					.in_len = len });
}

/* Let the step added last also reduce: dst = dst op src. */
static void then_reduce(struct maker *m, void *dst, const void *src, size_t len)
{
	struct fab_coll_step *step;

	if (m->plan->no_memory || !len)
		return;
	step = &m->plan->step[m->plan->cnt - 1];
	step->then = FAB_COLL_REDUCE;
	step->dst = dst;
	step->src = src;
	step->len = len;
}

static uint8_t *take_temp(struct maker *m, size_t len)
{
	uint8_t *temp = m->temp;

	m->temp += len;
	return temp;
}

static uint32_t right_of(const struct maker *m, uint32_t by)
{
	return (uint32_t) (((uint64_t) m->r + by) % m->n);
}

static uint32_t left_of(const struct maker *m, uint32_t by)
{
	return (uint32_t) (((uint64_t) m->r + m->n - by % m->n) % m->n);
}

/* ---- trees ---- */

static void plan_barrier(struct maker *m)
{
	unsigned round = 0;

	for (uint64_t by = 1; by < m->n; by *= 2)
		add(m, (struct fab_coll_step) { .to = right_of(m, (uint32_t) by), .from = left_of(m, (uint32_t) by),
						.round = (uint8_t) round++ });
}

/*
 * Trees count members from the root on: v is this one. Its parent is v without its lowest bit, and its children are
 * v + 1, v + 2, v + 4 ... below that bit; the child at v + bit has the members up to v + 2 * bit below it.
 */
struct tree {
	uint32_t v;
	uint64_t top;			/* lowest bit of v; of the root, the first power of two that is not below n */
};

static struct tree tree_of(const struct maker *m)
{
	struct tree tree = { .v = left_of(m, m->call->root), .top = 1 };

	while (tree.top < m->n && !(tree.v & tree.top))
		tree.top *= 2;
	return tree;
}

static uint32_t tree_member(const struct maker *m, uint64_t v)
{
	return (uint32_t) ((v + m->call->root) % m->n);
}

static unsigned round_of(uint64_t bit)
{
	return (unsigned) __builtin_ctzll(bit);
}

/* Members in the subtree at v, whose lowest bit is bit. */
static size_t tree_size(const struct maker *m, uint64_t v, uint64_t bit)
{
	return fab_min(bit, m->n - v);
}

static void plan_broadcast(struct maker *m)
{
	struct tree tree = tree_of(m);
	void *buf = m->call->result;

	if (tree.v)
		add_recv(m, tree_member(m, tree.v - tree.top), round_of(tree.top), buf, m->block);
	for (uint64_t bit = tree.top / 2; bit; bit /= 2) {
		if (tree.v + bit < m->n)
			add_send(m, tree_member(m, tree.v + bit), round_of(bit), buf, m->block);
	}
}

static void plan_reduce(struct maker *m)
{
	struct tree tree = tree_of(m);
	uint8_t *in = take_temp(m, m->block), *sum = take_temp(m, m->block);

	if (!tree.v)
		sum = m->call->result;
	add_copy(m, sum, m->call->buf, m->block);
	for (uint64_t bit = 1; bit < tree.top; bit *= 2) {
		if (tree.v + bit < m->n) {
			add_recv(m, tree_member(m, tree.v + bit), round_of(bit), in, m->block);
			then_reduce(m, sum, in, m->block);
		}
	}
	if (tree.v)
		add_send(m, tree_member(m, tree.v - tree.top), round_of(tree.top), sum, m->block);
}

/* Blocks between their order from the root on and the order of members. */
static void unrotate(struct maker *m, uint8_t *dst, const uint8_t *src)
{
	size_t head = (m->n - m->call->root) * m->block;

	add_copy(m, dst + m->call->root * m->block, src, head);
	add_copy(m, dst, src + head, m->n * m->block - head);
}

static void rotate(struct maker *m, uint8_t *dst, const uint8_t *src)
{
	size_t head = (m->n - m->call->root) * m->block;

	add_copy(m, dst, src + m->call->root * m->block, head);
	add_copy(m, dst + head, src, m->n * m->block - head);
}

static void plan_gather(struct maker *m)
{
	struct tree tree = tree_of(m);
	uint8_t *all = take_temp(m, m->n * m->block);

	add_copy(m, all, m->call->buf, m->block);
	for (uint64_t bit = 1; bit < tree.top; bit *= 2) {
		if (tree.v + bit < m->n)
			add_recv(m, tree_member(m, tree.v + bit), round_of(bit), all + bit * m->block,
				 tree_size(m, tree.v + bit, bit) * m->block);
	}
	if (tree.v)
		add_send(m, tree_member(m, tree.v - tree.top), round_of(tree.top), all,
			 tree_size(m, tree.v, tree.top) * m->block);
	else
		unrotate(m, m->call->result, all);
}

static void plan_scatter(struct maker *m)
{
	struct tree tree = tree_of(m);
	uint8_t *all = take_temp(m, m->n * m->block);

	if (tree.v)
		add_recv(m, tree_member(m, tree.v - tree.top), round_of(tree.top), all,
			 tree_size(m, tree.v, tree.top) * m->block);
	else
		rotate(m, all, m->call->buf);
	for (uint64_t bit = tree.top / 2; bit; bit /= 2) {
		if (tree.v + bit < m->n)
			add_send(m, tree_member(m, tree.v + bit), round_of(bit), all + bit * m->block,
				 tree_size(m, tree.v + bit, bit) * m->block);
	}
	add_copy(m, m->call->result, all, m->block);
}

/* ---- rings ---- */

/* The elements of the vector in n parts, nearly equal: where part i begins, in bytes. */
static size_t part_at(const struct maker *m, size_t count, size_t size, uint32_t i)
{
	return (size_t) ((unsigned __int128) count * i / m->n) * size;
}

struct ring {
	size_t count, size;		/* elements of the vector, bytes of one */
	uint8_t *vec;
	unsigned round;
};

/* To the right goes part `out`, from the left comes part `in`. */
static void ring_step(struct maker *m, struct ring *ring, uint32_t out, uint32_t in, uint8_t *room)
{
	size_t out_at = part_at(m, ring->count, ring->size, out), in_at = part_at(m, ring->count, ring->size, in);

	add(m, (struct fab_coll_step) {
		.to = right_of(m, 1), .from = left_of(m, 1), .round = (uint8_t) (ring->round++ % ROUND_FOLD),
		.out = ring->vec + out_at, .out_len = part_at(m, ring->count, ring->size, out + 1) - out_at,
		.in = room ? room : ring->vec + in_at,
		.in_len = part_at(m, ring->count, ring->size, in + 1) - in_at,
	});
}

/* Afterwards member i has the reduction of part i. */
static void ring_reduce(struct maker *m, struct ring *ring, uint8_t *room)
{
	for (uint32_t s = 1; s < m->n; s++) {
		uint32_t in = left_of(m, s + 1);
		size_t at = part_at(m, ring->count, ring->size, in);

		ring_step(m, ring, left_of(m, s), in, room);
		then_reduce(m, ring->vec + at, room, part_at(m, ring->count, ring->size, in + 1) - at);
	}
}

/* Member i has part i; afterwards all have all. */
static void ring_gather(struct maker *m, struct ring *ring)
{
	for (uint32_t s = 0; s + 1 < m->n; s++)
		ring_step(m, ring, left_of(m, s), left_of(m, s + 1), NULL);
}

/* ---- allreduce ---- */

/* Exchange what we have with a partner, then reduce in the order of members. */
static void exchange(struct maker *m, uint32_t with, unsigned round, uint8_t **mine, uint8_t **other, size_t len)
{
	uint8_t *theirs = *other;

	add(m, (struct fab_coll_step) { .to = with, .from = with, .round = (uint8_t) round, .out = *mine,
					.out_len = len, .in = theirs, .in_len = len });
	if (m->r < with) {
		then_reduce(m, *mine, theirs, len);
	} else {
		then_reduce(m, theirs, *mine, len);
		*other = *mine;
		*mine = theirs;
	}
}

/* The first 2 * rest members go together in pairs, whose second one acts for both. */
static void doubling(struct maker *m, uint8_t *vec, uint8_t *room, size_t len)
{
	uint32_t pow2 = 1u << (31 - __builtin_clz(m->n)), rest = m->n - pow2;
	bool paired = m->r < 2 * rest, acts = !paired || m->r % 2;
	uint32_t acting = paired ? m->r / 2 : m->r - rest;
	uint8_t *mine = vec;

	if (paired && acts) {
		add_recv(m, m->r - 1, ROUND_FOLD, room, len);
		then_reduce(m, room, vec, len);
		mine = room;
		room = vec;
	} else if (paired) {
		add_send(m, m->r + 1, ROUND_FOLD, vec, len);
	}
	for (uint32_t bit = 1; acts && bit < pow2; bit *= 2) {
		uint32_t with = acting ^ bit;

		exchange(m, with < rest ? with * 2 + 1 : with + rest, round_of(bit), &mine, &room, len);
	}
	if (paired && acts)
		add_send(m, m->r - 1, ROUND_UNFOLD, mine, len);
	else if (paired)
		add_recv(m, m->r + 1, ROUND_UNFOLD, vec, len);
	add_copy(m, vec, mine, acts ? len : 0);
}

static size_t elem_size(const struct maker *m)
{
	return fab_atomic_size(m->call->datatype);
}

static void plan_allreduce(struct maker *m)
{
	struct ring ring = { .count = m->call->count, .size = elem_size(m), .vec = m->call->result };
	uint8_t *room = take_temp(m, m->block);

	add_copy(m, ring.vec, m->call->buf, m->block);
	if (m->n == 1)
		return;
	if (m->block < LONG_LEN || m->n == 2 || m->call->count < m->n) {
		doubling(m, ring.vec, room, m->block);
	} else {
		ring_reduce(m, &ring, room);
		ring_gather(m, &ring);
	}
}

static void plan_reduce_scatter(struct maker *m)
{
	struct ring ring = { .count = m->call->count * m->n, .size = elem_size(m) };
	size_t len = m->block * m->n;
	uint8_t *room = take_temp(m, len);

	ring.vec = take_temp(m, len);
	add_copy(m, ring.vec, m->call->buf, len);
	if (m->n > 1 && len < LONG_LEN)
		doubling(m, ring.vec, room, len);
	else
		ring_reduce(m, &ring, room);
	add_copy(m, m->call->result, ring.vec + m->r * m->block, m->block);
}

/* ---- the others ---- */

/* What begins with our own block becomes longer from round to round, and is put in its order in the end. */
static void allgather_doubling(struct maker *m, uint8_t *result)
{
	uint8_t *all = take_temp(m, m->n * m->block);
	size_t head = (m->n - m->r) * m->block;
	unsigned round = 0;

	add_copy(m, all, m->call->buf, m->block);
	for (uint64_t by = 1; by < m->n; by *= 2) {
		size_t len = fab_min(by, m->n - by) * m->block;

		add(m, (struct fab_coll_step) { .to = left_of(m, (uint32_t) by), .from = right_of(m, (uint32_t) by),
						.round = (uint8_t) round++, .out = all, .out_len = len,
						.in = all + by * m->block, .in_len = len });
	}
	add_copy(m, result + m->r * m->block, all, head);
	add_copy(m, result, all + head, m->n * m->block - head);
}

static void plan_allgather(struct maker *m)
{
	struct ring ring = { .count = m->call->count * m->n, .size = elem_size(m), .vec = m->call->result };

	if (m->block * m->n < LONG_LEN) {
		allgather_doubling(m, ring.vec);
		return;
	}
	add_copy(m, ring.vec + m->r * m->block, m->call->buf, m->block);
	ring_gather(m, &ring);
}

static void plan_alltoall(struct maker *m)
{
	const uint8_t *buf = m->call->buf;
	uint8_t *result = m->call->result, *copy;

	if (buf == result) {
		copy = take_temp(m, m->n * m->block);
		add_copy(m, copy, buf, m->n * m->block);
		buf = copy;
	}
	add_copy(m, result + m->r * m->block, buf + m->r * m->block, m->block);
	for (uint32_t s = 1; s < m->n; s++) {
		uint32_t to = right_of(m, s), from = left_of(m, s);

		add(m, (struct fab_coll_step) { .to = to, .from = from, .round = (uint8_t) (s % ROUND_FOLD),
						.out = buf + to * m->block, .out_len = m->block,
						.in = result + from * m->block, .in_len = m->block });
	}
}

/* ---- all of them ---- */

static const struct {
	void (*make)(struct maker *m);
	bool whole;			/* temp is for two whole vectors of n blocks; else for two blocks */
} kinds[] = {
	[FI_BARRIER] = { plan_barrier, false },
	[FI_BROADCAST] = { plan_broadcast, false },
	[FI_ALLTOALL] = { plan_alltoall, true },
	[FI_ALLREDUCE] = { plan_allreduce, false },
	[FI_ALLGATHER] = { plan_allgather, true },
	[FI_REDUCE_SCATTER] = { plan_reduce_scatter, true },
	[FI_REDUCE] = { plan_reduce, false },
	[FI_SCATTER] = { plan_scatter, true },
	[FI_GATHER] = { plan_gather, true },
};

int fab_coll_plan(struct fab_coll_plan *plan, const struct fab_coll_call *call)
{
	struct maker m = { .plan = plan, .call = call, .r = call->rank, .n = call->cnt };
	size_t temp_len;

	*plan = (struct fab_coll_plan) { 0 };
	if (call->kind != FI_BARRIER &&
	    __builtin_mul_overflow(call->count, fab_atomic_size(call->datatype), &m.block))
		return -FI_EMSGSIZE;
	if (__builtin_mul_overflow(m.block, kinds[call->kind].whole ? (size_t) m.n * 2 : 2, &temp_len))
		return -FI_EMSGSIZE;
	if (call->kind != FI_BARRIER && call->kind != FI_BROADCAST && temp_len) {
		plan->temp = malloc(temp_len);
		if (!plan->temp)
			return -FI_ENOMEM;
	}
	m.temp = plan->temp;
	kinds[call->kind].make(&m);
	if (!plan->no_memory)
		return 0;
	fab_coll_plan_fini(plan);
	return -FI_ENOMEM;
}

void fab_coll_plan_fini(struct fab_coll_plan *plan)
{
	free(plan->step);
	free(plan->temp);
	*plan = (struct fab_coll_plan) { 0 };
}

void fab_coll_step_finish(const struct fab_coll_call *call, const struct fab_coll_step *step)
{
	if (step->then == FAB_COLL_COPY)
		memmove(step->dst, step->src, step->len);
	else if (step->then == FAB_COLL_REDUCE)
		fab_atomic_do(call->datatype, call->op, step->dst, step->src, NULL, NULL,
			      step->len / fab_atomic_size(call->datatype));
}
