/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See judge.h.
 *
 * Operations are numbered in the order of their calls. Of a slot, the judge knows the last write. A read sees the last
 * write that was posted before it; a later one only where no order was asked for. A message that was sent after a write
 * shows that the write is there. Atomics are carried out in a model, in the order of the calls.
 *
 * Where there was a fault between two nodes ("doubt"), operations may fail. The bytes of a write that has completed
 * with delivery are there all the same, until the next write is posted or the target is started again: nothing of an
 * old connection comes after it.
 */
#include "sim/judge.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_eq.h>
#include "base/bits.h"

/* What a node knows of its slot at another. All are numbers of writes, + 1. */
struct slot {
	uint32_t last;
	uint32_t loose;			/* the last one that may overtake reads */
	uint32_t sure;			/* it is there, and none was posted after it; 0: not known */
};

struct op ops[OPS];
uint32_t op_cnt, open_cnt;
struct memory *memory[NET_NODES];

static const struct program *program;
static struct slot slots[NET_NODES][NET_NODES][SLOTS];
static uint8_t model[NET_NODES][NET_NODES][CELLS_LEN];
static bool doubt[NET_NODES][NET_NODES];
static bool met[NET_NODES][NET_NODES];		/* they have a connection */
static uint32_t lives[NET_NODES];
/* Additions to the common number of a node, of any of its lives: a call may wait for the next one. */
static uint32_t adds[NET_NODES];
static bool added[NET_NODES][OPS];		/* this value was fetched from it */
static uint32_t bad_cnt[NET_NODES], late_cnt[NET_NODES];	/* refused after their completion: due, and seen */

void judge_begin(const struct program *what)
{
	program = what;
	memset(slots, 0, sizeof(slots));
	memset(model, 0, sizeof(model));
	memset(doubt, 0, sizeof(doubt));
	memset(met, 0, sizeof(met));
	memset(lives, 0, sizeof(lives));
	memset(adds, 0, sizeof(adds));
	memset(added, 0, sizeof(added));
	memset(bad_cnt, 0, sizeof(bad_cnt));
	memset(late_cnt, 0, sizeof(late_cnt));
	op_cnt = open_cnt = 0;
}

/* ---- doubts ---- */

void judge_doubt(unsigned a, unsigned b)
{
	doubt[a][b] = doubt[b][a] = true;
}

void judge_doubt_all(void)
{
	memset(doubt, 1, sizeof(doubt));
}

void judge_jumped(bool parks)
{
	for (unsigned a = 0; a < NET_NODES; a++) {
		for (unsigned b = 0; b < NET_NODES; b++)
			doubt[a][b] |= parks || !met[a][b];
	}
}

static void judge_met(unsigned a, unsigned b)
{
	met[a][b] = met[b][a] = true;
}

bool judge_foreign(unsigned a, unsigned b)
{
	return program->keys == 2 && !a != !b;
}

bool judge_doubts(unsigned a, unsigned b)
{
	return doubt[a][b] || judge_foreign(a, b);
}

bool judge_doubts_op(const struct op *op)
{
	return op->kind == ACT_COLL ? program->faults : judge_doubts(op->node, op->peer);
}

void judge_restarted(unsigned n)
{
	lives[n]++;
	memset(added[n], 0, sizeof(added[n]));
	for (unsigned i = 0; i < NET_NODES; i++) {
		judge_doubt(n, i);
		memset(slots[n][i], 0, sizeof(slots[n][i]));
		memset(slots[i][n], 0, sizeof(slots[i][n]));
	}
}

/* ---- operations ---- */

uint32_t op_id(const struct op *op)
{
	return (uint32_t) (op - ops);
}

bool op_is_recv(const struct op *op)
{
	return op->kind == ACT_RECV || op->kind == ACT_TRECV || op->kind == ACT_MRECV;
}

bool op_is_send(const struct op *op)
{
	return op->kind == ACT_SEND || op->kind == ACT_TSEND;
}

void op_free(struct op *op)
{
	free(op->buf);
	free(op->want);
	op->buf = op->want = NULL;
}

#define RUN	16		/* bytes that are made or compared together, as vectors */

/* The first of the RUN bytes at i, a multiple of RUN. Each is larger by 7 than the one before. */
static uint8_t byte_at(uint32_t id, uint32_t i)
{
	return (uint8_t) (id * 31 + i * 7 + (i >> 8));
}

static void run_fill(uint8_t *buf, uint8_t first)
{
	for (unsigned i = 0; i < RUN; i++)
		buf[i] = (uint8_t) (first + i * 7);
}

void op_fill(uint8_t *buf, uint32_t id, uint32_t len)
{
	uint8_t rest[RUN];
	uint32_t i;

	for (i = 0; i + RUN <= len; i += RUN)
		run_fill(buf + i, byte_at(id, i));
	run_fill(rest, byte_at(id, i));
	memcpy(buf + i, rest, len - i);
	memcpy(buf, &id, fab_min(len, (uint32_t) sizeof(id)));
}

bool op_is_filled(const uint8_t *buf, uint32_t id, uint32_t len)
{
	uint8_t want[RUN];

	if (memcmp(buf, &id, fab_min(len, (uint32_t) sizeof(id))))
		return false;
	for (uint32_t i = 0; i < len; i += RUN) {
		uint32_t from = i ? 0 : sizeof(id);

		run_fill(want, byte_at(id, i));
		if (from < len - i && memcmp(buf + i + from, want + from, fab_min(len - i, (uint32_t) RUN) - from))
			return false;
	}
	return true;
}

/* ---- messages ---- */

/* True if a directed receive names the source of this message. */
static bool is_from(const struct op *recv, const struct op *send)
{
	return recv->peer == send->node && (program->contexts != SHARED || recv->tx == send->tx);
}

/* True if the order of calls holds between two operations of one node at another: they use the same contexts. */
static bool same_route(const struct op *a, const struct op *b)
{
	return a->tx == b->tx && a->rx == b->rx;
}

static bool fits(const struct op *recv, const struct op *send)
{
	bool tagged = recv->kind == ACT_TRECV || recv->kind == ACT_PEEK;

	return tagged == (send->kind == ACT_TSEND) && send->peer == recv->node &&
	       (program->contexts != SCALABLE || recv->rx == send->rx) &&
	       (recv->peer == recv->node || is_from(recv, send)) &&
	       (!tagged || !((recv->tag ^ send->tag) & ~recv->ignore));
}

static bool in_slot(unsigned a, unsigned b, unsigned s, uint32_t len)
{
	uint32_t id = slots[a][b][s].last - 1;

	return op_is_filled(memory[b]->slots[a][s], id, fab_min(len, ops[id].len));
}

/* The writes that were posted before this message, which has arrived, are there. */
static void check_writes_before(const struct op *send)
{
	if (doubt[send->node][send->peer])
		return;
	for (unsigned s = 0; s < SLOTS; s++) {
		const struct slot *slot = &slots[send->node][send->peer][s];

		if (slot->last && slot->last <= op_id(send) && same_route(&ops[slot->last - 1], send) &&
		    !in_slot(send->node, send->peer, s, 1000))
			judge_wrong("message %u has overtaken write %u", op_id(send), slot->last - 1);
	}
}

static void check_envelope(const struct op *recv, const struct op *send, const struct ending *ending)
{
	uint32_t id = op_id(send);

	if (send->kind == ACT_TSEND && ending->tag != send->tag)
		judge_wrong("receive %u: the tag of message %u is another", op_id(recv), id);
	if (program->data && (!(ending->flags & FI_REMOTE_CQ_DATA) || ending->data != id))
		judge_wrong("receive %u: the CQ data of message %u are others", op_id(recv), id);
	if (!program->data && (ending->flags & FI_REMOTE_CQ_DATA))
		judge_wrong("receive %u: message %u has CQ data that nobody sent", op_id(recv), id);
	if (ending->src != FI_ADDR_NOTAVAIL && ending->src != send->node)
		judge_wrong("receive %u: message %u is not from there", op_id(recv), id);
}

/* A message is in a receive. */
static void took(struct op *recv, const struct ending *ending)
{
	uint64_t len = ending->len + ending->olen;
	struct op *send;
	uint32_t id;

	if (ending->len < LEN_MIN)
		judge_wrong("receive %u: a message of %zu bytes", op_id(recv), (size_t) ending->len);
	memcpy(&id, ending->buf, sizeof(id));
	if (id >= op_cnt || !op_is_send(&ops[id]))
		judge_wrong("receive %u: bytes that nobody has sent", op_id(recv));
	send = &ops[id];
	if (!fits(recv, send) || judge_foreign(send->node, recv->node))
		judge_wrong("receive %u took message %u, which does not match", op_id(recv), id);
	if (send->got)
		judge_wrong("message %u was received twice, by %u and %u", id, send->got - 1, op_id(recv));
	if (len != send->len || !op_is_filled(ending->buf, id, (uint32_t) ending->len))
		judge_wrong("receive %u: message %u has other bytes or another length", op_id(recv), id);
	if (ending->olen && recv->kind != ACT_MRECV && ending->len != recv->len)
		judge_wrong("receive %u: message %u is cut off too early", op_id(recv), id);
	if (recv->claimed && (recv->peeked_len != len || recv->peeked_tag != send->tag))
		judge_wrong("receive %u: message %u is not the claimed one", op_id(recv), id);
	if (send->err == FI_ECANCELED && !doubt[send->node][send->peer])
		judge_wrong("message %u was cancelled, and is received", id);
	if (!ending->err)
		check_envelope(recv, send, ending);
	send->got = op_id(recv) + 1;
	if (send->life == lives[send->node])
		judge_met(send->node, recv->node);
	check_writes_before(send);
}

/* A message that a peek may have seen. */
static struct op *find_peeked(const struct op *peek, const struct ending *ending)
{
	for (uint32_t i = 0; i < op_cnt; i++) {
		struct op *send = &ops[i];

		if (op_is_send(send) && !send->got && fits(peek, send) && send->len == ending->len &&
		    send->tag == ending->tag && (!program->data || ending->data == i))
			return send;
	}
	return NULL;
}

static void peeked(struct op *peek, const struct ending *ending)
{
	struct op *send;

	if (ending->err)
		return;
	send = find_peeked(peek, ending);
	if (!send)
		judge_wrong("peek %u sees a message that is not there", op_id(peek));
	if (peek->way == DISCARD && program->data)
		send->got = op_id(peek) + 1;
	peek->peeked_len = (uint32_t) ending->len;
	peek->peeked_tag = (uint32_t) ending->tag;
}

/* A message whose match was confirmed was matched: there is a receive that fits. */
static void matched(const struct op *send)
{
	for (uint32_t i = 0; i < op_cnt; i++) {
		const struct op *recv = &ops[i];

		if ((op_is_recv(recv) || recv->kind == ACT_PEEK) && fits(recv, send))
			return;
	}
	judge_wrong("send %u has matched, and no receive fits", op_id(send));
}

/* ---- remote memory ---- */

static void wrote(const struct op *op)
{
	struct slot *slot = &slots[op->node][op->peer][op->slot];

	if (op->err || op->way != DELIVERED || op->life != lives[op->node] || op->peer_life != lives[op->peer])
		return;
	judge_met(op->node, op->peer);
	if (slot->last != op_id(op) + 1)
		return;
	if (!in_slot(op->node, op->peer, op->slot, SLOT_LEN))
		judge_wrong("write %u is delivered, and its bytes are not there", op_id(op));
	slot->sure = slot->last;
}

static void was_read(const struct op *op)
{
	const struct slot *slot = &slots[op->node][op->peer][op->slot];
	bool known = !doubt[op->node][op->peer] || (op->sure && op->peer_life == lives[op->peer]);

	if (op->err || !op->expect || !known || op->life != lives[op->node])
		return;
	if (slot->last != op->expect && slot->loose > op_id(op))
		return;		/* a later write may have overtaken it */
	if (!op_is_filled(op->buf, op->expect - 1, fab_min(op->len, ops[op->expect - 1].len)))
		judge_wrong("read %u does not see write %u", op_id(op), op->expect - 1);
}

/* Carry out an atomic in the model. */
static void model_run(const struct op *op)
{
	uint8_t *cells = model[op->node][op->peer];
	size_t width = (size_t) 1 << op->slot;

	for (uint32_t at = 0; at < op->len; at += (uint32_t) width) {
		uint64_t value = 0, next;

		memcpy(&value, cells + at, width);
		next = value;
		if (op->way == AMO_ADD || op->way == AMO_FETCH_ADD)
			next = value + 1;
		else if (op->way == AMO_SWAP || (op->way == AMO_CSWAP && value == op->ignore))
			next = op->tag;
		memcpy(cells + at, &next, width);
	}
}

static void atomic_ended(const struct op *op)
{
	if (!op->err && op->way != AMO_ADD && !doubt[op->node][op->peer] && memcmp(op->buf, op->want, op->len))
		judge_wrong("the result of atomic %u is wrong", op_id(op));
}

static void counted(const struct op *op)
{
	uint64_t value;

	if (op->err || op->peer_life != lives[op->peer] || op->life != lives[op->node])
		return;
	memcpy(&value, op->buf, sizeof(value));
	if (value >= adds[op->peer])
		judge_wrong("count %u has %llu, and there were %u", op_id(op), (unsigned long long) value,
			    adds[op->peer]);
	if (added[op->peer][value])
		judge_wrong("count %u has %llu, as another one", op_id(op), (unsigned long long) value);
	added[op->peer][value] = true;
}

static void bad_ended(const struct op *op)
{
	if (!op->err && op->way != PLAIN)
		judge_wrong("access %u beyond the region succeeds", op_id(op));
}

/* ---- each operation ---- */

void judge_posted(struct op *op)
{
	struct slot *slot = &slots[op->node][op->peer][op->slot % SLOTS];

	op->posted = true;
	op->life = lives[op->node];
	op->peer_life = lives[op->peer];
	op_cnt++;
	open_cnt += !op_is_recv(op);
	switch (op->kind) {
	case ACT_WRITE:
		slot->last = op_id(op) + 1;
		slot->sure = 0;
		if (!program->ordered && op->way != FENCED)
			slot->loose = slot->last;
		break;
	case ACT_READ:
		op->expect = slot->last;
		op->sure = slot->sure;
		break;
	case ACT_ATOMIC:
		memcpy(op->want, model[op->node][op->peer], op->len);
		model_run(op);
		break;
	case ACT_COUNT:
		adds[op->peer]++;
		break;
	case ACT_BAD:
		bad_cnt[op->node] += op->way == PLAIN;
		break;
	}
}

/* A receive fails if it is cancelled, or if its sender goes away in the middle of the message. */
static bool may_fail(const struct op *op)
{
	bool any = false;

	if (op->cancelled && op->err == FI_ECANCELED)
		return true;
	if (op->kind == ACT_BAD || (op->kind == ACT_PEEK && op->err == FI_ENOMSG && !op->claimed))
		return true;
	if (!op_is_recv(op) && op->kind != ACT_PEEK)
		return judge_doubts_op(op);
	for (unsigned n = 0; n < NET_NODES; n++)
		any |= doubt[op->node][n];
	return any || op->err == FI_ETRUNC;
}

void op_check_guard(const struct op *op)
{
	for (uint32_t i = 0; i < GUARD_LEN; i++) {
		if (op->buf && op->buf[op->len + i] != 0xa5)
			judge_wrong("operation %u has written behind its buffer", op_id(op));
	}
}

static void check_ending(struct op *op)
{
	switch (op->kind) {
	case ACT_SEND:
	case ACT_TSEND:
		if (!op->err && op->way == MATCHED)
			matched(op);
		if (op->err == FI_ECANCELED && op->got && !doubt[op->node][op->peer])
			judge_wrong("message %u was received, and is cancelled", op_id(op));
		break;
	case ACT_WRITE:
		wrote(op);
		break;
	case ACT_READ:
		was_read(op);
		break;
	case ACT_ATOMIC:
		atomic_ended(op);
		break;
	case ACT_COUNT:
		counted(op);
		break;
	case ACT_BAD:
		bad_ended(op);
		break;
	}
}

void judge_ended(struct op *op, const struct ending *ending)
{
	bool takes = op_is_recv(op) || op->claimed;

	if (op < ops || op >= ops + op_cnt || !op->posted)
		judge_wrong("a completion of nothing that was posted");
	if (op->gone)
		judge_wrong("operation %u ends after its process", op_id(op));
	if (op->ended)
		judge_wrong("operation %u ends twice", op_id(op));
	net_event((uint64_t) op_id(op) << 8 ^ (uint64_t) ending->err);
	op->err = ending->err;
	if (op->err && !may_fail(op))
		judge_wrong("operation %u fails without a reason: %s", op_id(op), fi_strerror(op->err));
	if (!op->err && !op_is_recv(op) && op->kind != ACT_PEEK && judge_foreign(op->node, op->peer))
		judge_wrong("operation %u succeeds with another key", op_id(op));
	if (takes && (!op->err || op->err == FI_ETRUNC))
		took(op, ending);
	else if (op->kind == ACT_PEEK && !takes)
		peeked(op, ending);
	check_ending(op);
	op_check_guard(op);
	if (op->kind == ACT_MRECV && !(ending->flags & FI_MULTI_RECV))
		return;
	if (op->kind == ACT_PEEK && op->way == CLAIM && !op->err && !takes)
		return;
	op->ended = true;
	open_cnt -= !op_is_recv(op);
	op_free(op);
}

void judge_late(unsigned n)
{
	bool any = false;

	for (unsigned i = 0; i < NET_NODES; i++)
		any |= judge_doubts(n, i);
	if (++late_cnt[n] > bad_cnt[n] && !any)
		judge_wrong("an error of no operation at node %u", n);
}

/* ---- the end ---- */

static bool is_missing(const struct op *op)
{
	/* without CQ data nobody knows which one was dropped */
	return op_is_send(op) && !op->got && !op->gone && !op->err && !judge_doubts(op->node, op->peer);
}

uint32_t judge_missing(void)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < op_cnt; i++)
		cnt += is_missing(&ops[i]);
	return cnt;
}

const struct op *judge_first_open(void)
{
	for (uint32_t i = 0; i < op_cnt; i++) {
		if (!ops[i].gone && ((!ops[i].ended && !op_is_recv(&ops[i])) || is_missing(&ops[i])))
			return &ops[i];
	}
	return NULL;
}

/* Of two messages of a sender the first goes to the first receive that fits both. */
static void check_order(void)
{
	for (uint32_t i = 0; i < op_cnt; i++) {
		const struct op *later = &ops[i], *recv = later->got ? &ops[later->got - 1] : NULL;

		if (!op_is_send(later) || !recv)
			continue;
		for (uint32_t j = 0; j < i; j++) {
			const struct op *first = &ops[j];

			if (!op_is_send(first) || first->node != later->node || first->life != later->life ||
			    first->peer != later->peer || first->err || !same_route(first, later) ||
			    !fits(recv, first))
				continue;
			if (first->got ? ops[first->got - 1].life == recv->life && first->got - 1 > op_id(recv) :
			    !doubt[first->node][first->peer])
				judge_wrong("receive %u took message %u, and message %u, sent before, fits too",
					    op_id(recv), i, j);
		}
	}
}

static void check_memory(unsigned a, unsigned b)
{
	for (unsigned s = 0; s < SLOTS; s++) {
		const struct slot *slot = &slots[a][b][s];

		if (slot->last && (!doubt[a][b] || slot->sure) && !judge_foreign(a, b) && !in_slot(a, b, s, SLOT_LEN))
			judge_wrong("write %u has ended, and its bytes are not there", slot->last - 1);
	}
	if (!judge_doubts(a, b) && memcmp(memory[b]->cells.of[a], model[a][b], CELLS_LEN))
		judge_wrong("the atomics of node %u at node %u have another sum", a, b);
}

/* What only a node without a doubt must have. */
static void check_node(unsigned n)
{
	static const uint8_t zeros[SLOT_LEN];
	bool any = false;

	if (memcmp(memory[n]->cells.guard, zeros, SLOT_LEN))
		judge_wrong("node %u: bytes behind the region were written", n);
	for (unsigned i = 0; i < program->nodes; i++)
		any |= judge_doubts(n, i);
	if (!any && memory[n]->cells.cnt != adds[n])
		judge_wrong("node %u has counted to %llu, and there were %u", n,
			    (unsigned long long) memory[n]->cells.cnt, adds[n]);
	if (!any && late_cnt[n] != bad_cnt[n])
		judge_wrong("node %u: %u bad writes, and %u errors", n, bad_cnt[n], late_cnt[n]);
}

void judge_finish(void)
{
	check_order();
	for (unsigned a = 0; a < program->nodes; a++) {
		check_node(a);
		for (unsigned b = 0; b < program->nodes; b++)
			check_memory(a, b);
	}
}
