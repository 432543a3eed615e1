/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See coll_plan.h. Below, n is the number of members and r this member's rank; a block is one member's share of a
 * vector. The number of rounds is behind the colon.
 *
 *   barrier          dissemination: log n
 *   broadcast        binomial tree: log n
 *   reduce           binomial tree: log n
 *   allreduce        recursive doubling: log n; long vectors: a ring that reduces, then a ring that gathers; each byte
 *                    is sent twice
 *   allgather        doubling, each member a little further on (Bruck): log n; long vectors: a ring
 *   reduce_scatter   as allreduce, of which each member keeps its block; long vectors: a ring
 *   gather, scatter  binomial tree, of blocks relative to the root: log n
 *   alltoall         one partner a round: n
 *
 * A reduction gives every member the same bits. Two operands are always combined in the order of their members, and a
 * ring passes its reduced parts on unchanged.
 */
#include "common/collective/coll_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/table.h"

#define LONG_LEN	(32 * 1024)	/* vectors of at least so many bytes use rings */

/* Rounds of recursive doubling beside those that count from 0: members beyond the largest power of two contribute
 * before them and receive the result after them. */
#define ROUND_FOLD	254
#define ROUND_UNFOLD	255

struct maker {
	struct fab_coll_plan *plan;
	const struct fab_coll_call *call;
	uint32_t r, n;
	size_t block;			/* bytes */
};

static void plan_add(struct maker *m, struct fab_coll_step step)
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
		plan_add(m, (struct fab_coll_step) { .to = FAB_COLL_NOBODY, .from = FAB_COLL_NOBODY,
			 .then = FAB_COLL_COPY,
						.dst = dst, .src = src, .len = len });
}

static void add_send(struct maker *m, uint32_t to, unsigned round, const void *out, size_t len)
{
	plan_add(m, (struct fab_coll_step) { .to = to, .from = FAB_COLL_NOBODY, .round = (uint8_t) round, .out = out,
					.out_len = len });
}

static void add_recv(struct maker *m, uint32_t from, unsigned round, void *in, size_t len)
{
	plan_add(m, (struct fab_coll_step) { .to = FAB_COLL_NOBODY, .from = from, .round = (uint8_t) round, .in = in,
					.in_len = len });
}

/* Make the step added last also reduce: dst = dst op src. */
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

/* Allocate memory that is freed with the plan. NULL: no memory; plan->no_memory is set, and the plan need not be
 * finished. */
static uint8_t *take_temp(struct maker *m, size_t len)
{
	struct fab_coll_plan *plan = m->plan;
	uint8_t *temp = malloc(len ? len : 1);

	if (!temp) {
		plan->no_memory = true;
		return NULL;
	}
	assert(plan->temp_cnt < fab_countof(plan->temp));
	plan->temp[plan->temp_cnt++] = temp;
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
		plan_add(m, (struct fab_coll_step) { .to = right_of(m, (uint32_t) by), .from = left_of(m,
												       (uint32_t) by),
						.round = (uint8_t) round++ });
}

/*
 * Trees count members from the root; v is the number of this one. Its parent is v without its lowest bit, and its
 * children are v + 1, v + 2, v + 4 ... below that bit; the subtree of child v + bit has the members below v + 2 * bit.
 */
struct tree {
	uint32_t v;
	uint64_t top;			/* lowest bit of v; for the root, the first power of two that is not below n */
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

/* The number of members in the subtree at v, whose lowest bit is bit. */
static size_t tree_size(const struct maker *m, uint64_t v, uint64_t bit)
{
	return fab_min(bit, m->n - v);
}

/* Send to the parent. */
static void tree_send_up(struct maker *m, const struct tree *tree, const void *out, size_t len)
{
	add_send(m, tree_member(m, tree->v - tree->top), round_of(tree->top), out, len);
}

/* Receive from the parent. */
static void tree_recv_down(struct maker *m, const struct tree *tree, void *in, size_t len)
{
	add_recv(m, tree_member(m, tree->v - tree->top), round_of(tree->top), in, len);
}

static void plan_broadcast(struct maker *m)
{
	struct tree tree = tree_of(m);
	void *buf = m->call->result;

	if (tree.v)
		tree_recv_down(m, &tree, buf, m->block);
	for (uint64_t bit = tree.top / 2; bit; bit /= 2) {
		if (tree.v + bit < m->n)
			add_send(m, tree_member(m, tree.v + bit), round_of(bit), buf, m->block);
	}
}

static void plan_reduce(struct maker *m)
{
	struct tree tree = tree_of(m);
	bool alone = tree_size(m, tree.v, tree.top) == 1;
	uint8_t *in = alone ? NULL : take_temp(m, m->block), *sum = m->call->result;

	if (tree.v && alone) {
		tree_send_up(m, &tree, m->call->buf, m->block);
		return;
	}
	if (tree.v)
		sum = take_temp(m, m->block);
	if (m->plan->no_memory)
		return;
	add_copy(m, sum, m->call->buf, m->block);
	for (uint64_t bit = 1; bit < tree.top; bit *= 2) {
		if (tree.v + bit < m->n) {
			add_recv(m, tree_member(m, tree.v + bit), round_of(bit), in, m->block);
			then_reduce(m, sum, in, m->block);
		}
	}
	if (tree.v)
		tree_send_up(m, &tree, sum, m->block);
}

/* The blocks of a subtree, as parts of the whole vector. `first` is the member of the first block. Blocks past the end
 * of the vector continue at its beginning. */
struct range {
	uint32_t first;
	size_t cnt, head;		/* all blocks; those before the end of the vector */
};

static struct range tree_range(const struct maker *m, uint64_t bit)
{
	uint32_t first = tree_member(m, bit);
	size_t cnt = tree_size(m, bit, bit);

	return (struct range) { .first = first, .cnt = cnt, .head = fab_min(cnt, (size_t) (m->n - first)) };
}

static void gather_at_root(struct maker *m, uint64_t top)
{
	uint8_t *result = m->call->result;

	add_copy(m, result + m->r * m->block, m->call->buf, m->block);
	for (uint64_t bit = 1; bit < top; bit *= 2) {
		struct range range = tree_range(m, bit);
		uint8_t *place = result + range.first * m->block, *in = place;

		if (range.head < range.cnt)
			in = take_temp(m, range.cnt * m->block);
		if (m->plan->no_memory)
			return;
		add_recv(m, range.first, round_of(bit), in, range.cnt * m->block);
		if (in != place) {
			add_copy(m, place, in, range.head * m->block);
			add_copy(m, result, in + range.head * m->block, (range.cnt - range.head) * m->block);
		}
	}
}

static void plan_gather(struct maker *m)
{
	struct tree tree = tree_of(m);
	size_t cnt = tree_size(m, tree.v, tree.top);
	const uint8_t *out = m->call->buf;
	uint8_t *all;

	if (!tree.v) {
		gather_at_root(m, tree.top);
		return;
	}
	if (cnt > 1) {
		all = take_temp(m, cnt * m->block);
		if (!all)
			return;
		add_copy(m, all, m->call->buf, m->block);
		for (uint64_t bit = 1; bit < tree.top && tree.v + bit < m->n; bit *= 2)
			add_recv(m, tree_member(m, tree.v + bit), round_of(bit), all + bit * m->block,
				 tree_size(m, tree.v + bit, bit) * m->block);
		out = all;
	}
	tree_send_up(m, &tree, out, cnt * m->block);
}

static void scatter_at_root(struct maker *m, uint64_t top)
{
	const uint8_t *buf = m->call->buf;
	uint8_t *joined;

	for (uint64_t bit = top / 2; bit; bit /= 2) {
		struct range range = tree_range(m, bit);
		const uint8_t *out = buf + range.first * m->block;

		if (range.head < range.cnt) {
			joined = take_temp(m, range.cnt * m->block);
			if (!joined)
				return;
			add_copy(m, joined, out, range.head * m->block);
			add_copy(m, joined + range.head * m->block, buf, (range.cnt - range.head) * m->block);
			out = joined;
		}
		add_send(m, range.first, round_of(bit), out, range.cnt * m->block);
	}
	add_copy(m, m->call->result, buf + m->r * m->block, m->block);
}

static void plan_scatter(struct maker *m)
{
	struct tree tree = tree_of(m);
	size_t cnt = tree_size(m, tree.v, tree.top);
	uint8_t *all = m->call->result;

	if (!tree.v) {
		scatter_at_root(m, tree.top);
		return;
	}
	if (cnt > 1)
		all = take_temp(m, cnt * m->block);
	if (m->plan->no_memory)
		return;
	tree_recv_down(m, &tree, all, cnt * m->block);
	for (uint64_t bit = tree.top / 2; bit; bit /= 2) {
		if (tree.v + bit < m->n)
			add_send(m, tree_member(m, tree.v + bit), round_of(bit), all + bit * m->block,
				 tree_size(m, tree.v + bit, bit) * m->block);
	}
	add_copy(m, m->call->result, all, m->block);
}

/* ---- rings ---- */

/* The offset in bytes of part i, when the vector is divided into n nearly equal parts. */
static size_t part_at(const struct maker *m, size_t count, size_t size, uint32_t i)
{
	return (size_t) ((unsigned __int128) count * i / m->n) * size;
}

struct ring {
	size_t count, size;		/* elements of the vector; bytes of an element */
	uint8_t *vec;
	unsigned round;
};

/* Send part `out` to the right neighbour and receive part `in` from the left one. */
static void ring_step(struct maker *m, struct ring *ring, uint32_t out, uint32_t in, uint8_t *room)
{
	size_t out_at = part_at(m, ring->count, ring->size, out), in_at = part_at(m, ring->count, ring->size, in);

	plan_add(m, (struct fab_coll_step) {
		.to = right_of(m, 1), .from = left_of(m, 1), .round = (uint8_t) (ring->round++ % ROUND_FOLD),
		.out = ring->vec + out_at, .out_len = part_at(m, ring->count, ring->size, out + 1) - out_at,
		.in = room ? room : ring->vec + in_at,
		.in_len = part_at(m, ring->count, ring->size, in + 1) - in_at,
	});
}

/* Reduce around the ring. Afterwards member i has the reduced part i. */
static void ring_reduce(struct maker *m, struct ring *ring, uint8_t *room)
{
	for (uint32_t s = 1; s < m->n; s++) {
		uint32_t in = left_of(m, s + 1);
		size_t at = part_at(m, ring->count, ring->size, in);

		ring_step(m, ring, left_of(m, s), in, room);
		then_reduce(m, ring->vec + at, room, part_at(m, ring->count, ring->size, in + 1) - at);
	}
}

/* Gather around the ring. Member i begins with part i; afterwards all members have all parts. */
static void ring_gather(struct maker *m, struct ring *ring)
{
	for (uint32_t s = 0; s + 1 < m->n; s++)
		ring_step(m, ring, left_of(m, s), left_of(m, s + 1), NULL);
}

/* ---- allreduce ---- */

/* Exchange vectors with a partner, then reduce in the order of members. */
static void exchange(struct maker *m, uint32_t with, unsigned round, uint8_t **mine, uint8_t **other, size_t len)
{
	uint8_t *theirs = *other;

	plan_add(m, (struct fab_coll_step) { .to = with, .from = with, .round = (uint8_t) round, .out = *mine,
					.out_len = len, .in = theirs, .in_len = len });
	if (m->r < with) {
		then_reduce(m, *mine, theirs, len);
	} else {
		then_reduce(m, theirs, *mine, len);
		*other = *mine;
		*mine = theirs;
	}
}

/* Recursive doubling. The first 2 * rest members form pairs, of which the second member acts for both. */
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
	bool in_ring = m->block >= LONG_LEN && m->n > 2 && ring.count >= m->n;
	uint8_t *room;

	add_copy(m, ring.vec, m->call->buf, m->block);
	if (m->n == 1)
		return;
	room = take_temp(m, in_ring ? (ring.count / m->n + 1) * ring.size : m->block);
	if (!room)
		return;
	if (in_ring) {
		ring_reduce(m, &ring, room);
		ring_gather(m, &ring);
	} else {
		doubling(m, ring.vec, room, m->block);
	}
}

static void plan_reduce_scatter(struct maker *m)
{
	struct ring ring = { .count = m->call->count * m->n, .size = elem_size(m) };
	size_t len = m->block * m->n;
	uint8_t *room;

	if (m->n == 1) {
		add_copy(m, m->call->result, m->call->buf, len);
		return;
	}
	ring.vec = take_temp(m, len);
	room = take_temp(m, len < LONG_LEN ? len : m->block);
	if (m->plan->no_memory)
		return;
	add_copy(m, ring.vec, m->call->buf, len);
	if (len < LONG_LEN)
		doubling(m, ring.vec, room, len);
	else
		ring_reduce(m, &ring, room);
	add_copy(m, m->call->result, ring.vec + m->r * m->block, m->block);
}

/* ---- the others ---- */

/* Each round lengthens a run of blocks that begins with our own. At the end the blocks are put in order. */
static void allgather_doubling(struct maker *m, uint8_t *result)
{
	uint8_t *all = take_temp(m, m->n * m->block);
	size_t head = (m->n - m->r) * m->block;
	unsigned round = 0;

	if (!all)
		return;
	add_copy(m, all, m->call->buf, m->block);
	for (uint64_t by = 1; by < m->n; by *= 2) {
		size_t len = fab_min(by, m->n - by) * m->block;

		plan_add(m, (struct fab_coll_step) { .to = left_of(m, (uint32_t) by), .from = right_of(m,
												       (uint32_t) by),
						.round = (uint8_t) round++, .out = all, .out_len = len,
						.in = all + by * m->block, .in_len = len });
	}
	add_copy(m, result + m->r * m->block, all, head);
	add_copy(m, result, all + head, m->n * m->block - head);
}

static void plan_allgather(struct maker *m)
{
	struct ring ring = { .count = m->call->count * m->n, .size = elem_size(m), .vec = m->call->result };

	if (m->n > 1 && m->block * m->n < LONG_LEN) {
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
		if (!copy)
			return;
		add_copy(m, copy, buf, m->n * m->block);
		buf = copy;
	}
	add_copy(m, result + m->r * m->block, buf + m->r * m->block, m->block);
	for (uint32_t s = 1; s < m->n; s++) {
		uint32_t to = right_of(m, s), from = left_of(m, s);

		plan_add(m, (struct fab_coll_step) { .to = to, .from = from, .round = (uint8_t) (s % ROUND_FOLD),
						.out = buf + to * m->block, .out_len = m->block,
						.in = result + from * m->block, .in_len = m->block });
	}
}

/* ---- all of them ---- */

static const struct {
	void (*make)(struct maker *m);
	bool whole;			/* some member has a vector of n blocks */
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
	size_t whole_len;

	*plan = (struct fab_coll_plan) { 0 };
	if (call->kind != FI_BARRIER &&
	    __builtin_mul_overflow(call->count, fab_atomic_size(call->datatype), &m.block))
		return -FI_EMSGSIZE;
	if (kinds[call->kind].whole && __builtin_mul_overflow(m.block, m.n, &whole_len))
		return -FI_EMSGSIZE;
	kinds[call->kind].make(&m);
	if (!plan->no_memory)
		return 0;
	fab_coll_plan_fini(plan);
	return -FI_ENOMEM;
}

void fab_coll_plan_fini(struct fab_coll_plan *plan)
{
	for (unsigned i = 0; i < plan->temp_cnt; i++)
		free(plan->temp[i]);
	free(plan->step);
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
