/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See group.h. All elements are 64-bit integers. op->tag is the number of the collective in its group, from 0 on, and
 * op->ignore the number of that group among those of its node.
 *
 * Nodes number their groups alone, so a group has another number at each of them. What a node gives names its own, so
 * the results of a group tell which ones belong together: that must be the same for all collectives of the group, and
 * of any two nodes for both.
 */
#include "sim/group.h"

#include <string.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "sim/net.h"

#define GROUPS		256		/* of a node */
#define GROUPS_FIT	200		/* of those as many as a program asks for; more are needed in the end */
/* An element is the sum of these, so that a sum of elements is the sum of each. */
#define OF_GROUP	48
#define OF_NUMBER	32
#define OF_NODE		24
#define OF_BLOCK	16

/* The collective with a number. */
struct call {
	enum fi_collective_op kind;
	uint32_t cnt;			/* elements of a block */
	unsigned root;
};

enum state { NONE, JOINING, JOINED, FAILED };

struct member {
	struct fid_eq *eq;
	struct fid_av *av;
	struct fid_av_set *set;
	struct fid_mc *mc;
	struct fid_ep *ep;
	fi_addr_t addr[NET_NODES];
	enum state state;
};

/* The groups of a node, in all its lives. */
struct past {
	uint32_t cnt;			/* the last one is that of its member */
	uint32_t called[GROUPS];
	uint32_t mate[GROUPS][NET_NODES];	/* the number of the same group at another node, + 1; 0: not known */
};

static const struct program *program;
static struct member members[NET_NODES];
static struct past pasts[NET_NODES];

static void must(int ret, const char *call)
{
	if (ret)
		judge_wrong("%s: %s", call, fi_strerror(-ret));
}

void group_begin(const struct program *what)
{
	program = what;
	memset(members, 0, sizeof(members));
	memset(pasts, 0, sizeof(pasts));
}

/* ---- membership ---- */

void group_bind(unsigned n, struct fid_fabric *fabric, struct fid_ep *ep)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	members[n] = (struct member) { .ep = ep };
	must(fi_eq_open(fabric, &attr, &members[n].eq, NULL), "fi_eq_open");
	must(fi_ep_bind(ep, &members[n].eq->fid, 0), "fi_ep_bind");
}

void group_know(unsigned n, struct fid_av *av, const fi_addr_t *addr)
{
	members[n].av = av;
	memcpy(members[n].addr, addr, sizeof(members[n].addr));
}

static struct fid_av_set *make_set(const struct member *member)
{
	struct fi_av_set_attr attr = {
		.count = program->nodes, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL,
	};
	struct fid_av_set *set;

	if (fi_av_set(member->av, &attr, &set, NULL))
		return NULL;
	for (unsigned i = 0; i < program->nodes; i++) {
		if (!fi_av_set_insert(set, member->addr[i]))
			continue;
		must(fi_close(&set->fid), "fi_close of a set");
		return NULL;
	}
	return set;
}

void group_join(unsigned n)
{
	struct member *member = &members[n];
	fi_addr_t all;
	int ret = -FI_ENOMEM;

	member->set = make_set(member);
	if (member->set) {
		must(fi_av_set_addr(member->set, &all), "fi_av_set_addr");
		ret = fi_join_collective(member->ep, all, member->set, 0, &member->mc, NULL);
	}
	if (ret && !program->lack_memory)
		must(ret, "fi_join_collective");
	if (ret) {
		member->mc = NULL;
		group_close(n);
		return;
	}
	member->state = JOINING;
	pasts[n].cnt++;
}

void group_join_again(unsigned n)
{
	if (pasts[n].cnt >= GROUPS_FIT)
		return;
	group_close(n);
	group_join(n);
}

void group_close(unsigned n)
{
	struct member *member = &members[n];

	if (member->mc)
		must(fi_close(&member->mc->fid), "fi_close of a group");
	if (member->set)
		must(fi_close(&member->set->fid), "fi_close of a set");
	member->mc = NULL;
	member->set = NULL;
	member->state = NONE;
}

void group_close_queue(unsigned n)
{
	must(fi_close(&members[n].eq->fid), "fi_close of an event queue");
}

static enum group_event read_error(unsigned n)
{
	struct member *member = &members[n];
	struct fi_eq_err_entry error = { 0 };

	if (fi_eq_readerr(member->eq, &error, 0) <= 0)
		judge_wrong("node %u: no error where fi_eq_read() has said so", n);
	if (error.err == FI_EOVERRUN && program->lack_memory)
		return GROUP_LOST;
	if (!program->faults || member->state != JOINING || error.fid != &member->mc->fid)
		judge_wrong("node %u: a join fails without a reason: %s", n, fi_strerror(error.err));
	member->state = FAILED;
	return GROUP_JOINED;
}

enum group_event group_pass(unsigned n)
{
	struct member *member = &members[n];
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret = fi_eq_read(member->eq, &event, &entry, sizeof(entry), 0);

	if (ret == -FI_EAGAIN)
		return GROUP_NOTHING;
	if (ret == -FI_EAVAIL)
		return read_error(n);
	if (ret != sizeof(entry) || event != FI_JOIN_COMPLETE || member->state != JOINING ||
	    entry.fid != &member->mc->fid)
		judge_wrong("fi_eq_read of node %u returns %zd instead of the one join", n, ret);
	member->state = JOINED;
	return GROUP_JOINED;
}

static uint32_t number_of(unsigned n)
{
	return pasts[n].cnt - 1;
}

static uint32_t called(unsigned n)
{
	return pasts[n].cnt ? pasts[n].called[number_of(n)] : 0;
}

bool group_joined(unsigned n)
{
	return members[n].state == JOINED;
}

bool group_failed(unsigned n)
{
	return members[n].state == FAILED || members[n].state == NONE;
}

bool group_behind(unsigned n)
{
	bool behind = members[n].state == JOINING && !program->faults;

	for (unsigned i = 0; i < program->nodes; i++)
		behind |= members[n].state == JOINED && called(n) < called(i);
	return behind;
}

/* ---- values ---- */

static struct call call_of(uint32_t number)
{
	static const uint32_t cnts[] = { 1, 5, 100, 2000 };
	uint64_t draw = fab_mix64(program->seed ^ fab_mix64(number + 1));

	return (struct call) {
		.kind = FI_BARRIER + draw % (FI_GATHER + 1), .cnt = cnts[draw >> 8 & 3],
		.root = (unsigned) (draw >> 16) % program->nodes,
	};
}

/* Blocks that a node gives, and that it gets. */
static uint32_t blocks_given(const struct call *call)
{
	return call->kind == FI_ALLTOALL || call->kind == FI_SCATTER || call->kind == FI_REDUCE_SCATTER ?
	       program->nodes : 1;
}

static uint32_t blocks_got(const struct call *call)
{
	return call->kind == FI_ALLTOALL || call->kind == FI_ALLGATHER || call->kind == FI_GATHER ? program->nodes : 1;
}

/* Element i of block `block` of node n, without the number of its group. */
static uint64_t given(uint32_t number, unsigned n, uint32_t block, uint32_t i)
{
	return (uint64_t) number << OF_NUMBER | (uint64_t) n << OF_NODE | (uint64_t) block << OF_BLOCK | i;
}

uint32_t group_len(unsigned n)
{
	struct call call = call_of(called(n));

	return blocks_got(&call) * call.cnt * (uint32_t) sizeof(uint64_t);
}

static void fill(struct op *op, const struct call *call)
{
	uint64_t *to;

	op->want = net_alloc((size_t) blocks_given(call) * call->cnt * sizeof(*to));
	to = (uint64_t *) op->want;
	for (uint32_t block = 0; block < blocks_given(call); block++) {
		for (uint32_t i = 0; i < call->cnt; i++)
			*to++ = given(op->tag, op->node, block, i) | (uint64_t) op->ignore << OF_GROUP;
	}
	if (call->kind == FI_BROADCAST && op->node == call->root)
		memcpy(op->buf, op->want, call->cnt * sizeof(*to));
}

ssize_t group_call(struct op *op)
{
	struct member *member = &members[op->node];
	struct call call;
	fi_addr_t addr = fi_mc_addr(member->mc), root;
	ssize_t ret;

	op->tag = called(op->node);
	op->ignore = number_of(op->node);
	call = call_of(op->tag);
	root = member->addr[call.root];
	fill(op, &call);
	switch (call.kind) {
	case FI_BARRIER:
		ret = fi_barrier(member->ep, addr, op);
		break;
	case FI_BROADCAST:
		ret = fi_broadcast(member->ep, op->buf, call.cnt, NULL, addr, root, FI_UINT64, 0, op);
		break;
	case FI_ALLTOALL:
		ret = fi_alltoall(member->ep, op->want, call.cnt, NULL, op->buf, NULL, addr, FI_UINT64, 0, op);
		break;
	case FI_ALLREDUCE:
		ret = fi_allreduce(member->ep, op->want, call.cnt, NULL, op->buf, NULL, addr, FI_UINT64, FI_SUM, 0, op);
		break;
	case FI_ALLGATHER:
		ret = fi_allgather(member->ep, op->want, call.cnt, NULL, op->buf, NULL, addr, FI_UINT64, 0, op);
		break;
	case FI_REDUCE_SCATTER:
		ret = fi_reduce_scatter(member->ep, op->want, call.cnt, NULL, op->buf, NULL, addr, FI_UINT64, FI_SUM, 0,
					op);
		break;
	case FI_REDUCE:
		ret = fi_reduce(member->ep, op->want, call.cnt, NULL, op->buf, NULL, addr, root, FI_UINT64, FI_SUM, 0,
				op);
		break;
	case FI_SCATTER:
		ret = fi_scatter(member->ep, op->want, call.cnt, NULL, op->buf, NULL, addr, root, FI_UINT64, 0, op);
		break;
	default:
		ret = fi_gather(member->ep, op->want, call.cnt, NULL, op->buf, NULL, addr, root, FI_UINT64, 0, op);
		break;
	}
	if (!ret)
		pasts[op->node].called[op->ignore]++;
	else if (ret != -FI_EAGAIN)
		member->state = FAILED;
	return ret;
}

/* True: the result of the call at node n depends on what node i gives, so that i must have called it. */
static bool needs(const struct call *call, unsigned n, unsigned i)
{
	switch (call->kind) {
	case FI_BROADCAST:
	case FI_SCATTER:
		return i == call->root;
	case FI_REDUCE:
	case FI_GATHER:
		return n == call->root;
	default:
		return true;
	}
}

static bool gets(const struct call *call, unsigned n)
{
	switch (call->kind) {
	case FI_BARRIER:
		return false;
	case FI_REDUCE:
	case FI_GATHER:
		return n == call->root;
	default:
		return true;
	}
}

/* ---- results ---- */

/* Group g of node n is group h of node i. */
static void note_mates(const struct op *op, unsigned i, uint32_t h)
{
	uint32_t g = op->ignore, *there;

	if (h >= pasts[i].cnt || pasts[i].called[h] <= op->tag)
		judge_wrong("collective %u of group %u of node %u has what node %u gives to group %u, and did not call",
			    op->tag, g, op->node, i, h);
	there = &pasts[i].mate[h][op->node];
	if ((pasts[op->node].mate[g][i] && pasts[op->node].mate[g][i] != h + 1) || (*there && *there != g + 1))
		judge_wrong("collective %u of group %u of node %u has what node %u gives to group %u: another group",
			    op->tag, g, op->node, i, h);
	pasts[op->node].mate[g][i] = h + 1;
	*there = g + 1;
}

static void wrong_element(const struct op *op, uint32_t block, uint32_t i)
{
	judge_wrong("collective %u of group %u gives node %u a wrong element %u of block %u", op->tag, op->ignore,
		    op->node, i, block);
}

/* A block that is one of those that node i gives. */
static void check_copy(const struct op *op, const uint64_t *got, uint32_t cnt, uint32_t block, unsigned i,
		       uint32_t given_block)
{
	uint64_t group = got[0] >> OF_GROUP;

	for (uint32_t at = 0; at < cnt; at++) {
		if (got[at] != (given(op->tag, i, given_block, at) | group << OF_GROUP))
			wrong_element(op, block, at);
	}
	note_mates(op, i, (uint32_t) group);
}

/* A block that is the sum of what all nodes give. */
static void check_sum(const struct op *op, const uint64_t *got, uint32_t cnt, uint32_t block)
{
	uint64_t groups = 0;
	bool all_known = true;

	for (unsigned i = 0; i < program->nodes; i++) {
		uint32_t mate = i == op->node ? op->ignore + 1 : pasts[op->node].mate[op->ignore][i];

		all_known &= mate != 0;
		groups += mate - 1;
	}
	if (!program->faults)
		groups = 0;
	else if (!all_known)
		groups = got[0] >> OF_GROUP;
	for (uint32_t at = 0; at < cnt; at++) {
		uint64_t want = groups << OF_GROUP;

		for (unsigned i = 0; i < program->nodes; i++)
			want += given(op->tag, i, block, at);
		if (got[at] != want)
			wrong_element(op, block, at);
	}
}

static void check_block(const struct op *op, const struct call *call, const uint64_t *got, uint32_t block)
{
	switch (call->kind) {
	case FI_BROADCAST:
		check_copy(op, got, call->cnt, block, call->root, 0);
		return;
	case FI_ALLTOALL:
		check_copy(op, got, call->cnt, block, block, op->node);
		return;
	case FI_ALLGATHER:
	case FI_GATHER:
		check_copy(op, got, call->cnt, block, block, 0);
		return;
	case FI_SCATTER:
		check_copy(op, got, call->cnt, block, call->root, op->node);
		return;
	case FI_REDUCE_SCATTER:
		check_sum(op, got, call->cnt, op->node);
		return;
	default:
		check_sum(op, got, call->cnt, 0);
	}
}

/* True: node i has called this collective of its own group, or, where that is not known, of any. */
static bool has_called(const struct op *op, unsigned i)
{
	uint32_t mate = pasts[op->node].mate[op->ignore][i];
	bool any = false;

	if (mate)
		return pasts[i].called[mate - 1] > op->tag;
	for (uint32_t h = 0; h < pasts[i].cnt; h++)
		any |= pasts[i].called[h] > op->tag;
	return any;
}

void group_ended(const struct op *op, int err)
{
	struct call call = call_of(op->tag);
	const uint64_t *got = (const uint64_t *) op->buf;

	if (err && op->ignore == number_of(op->node) && members[op->node].state == JOINED)
		members[op->node].state = FAILED;
	if (err)
		return;
	for (unsigned i = 0; i < program->nodes; i++) {
		if (needs(&call, op->node, i) && !has_called(op, i))
			judge_wrong("collective %u ended at node %u before node %u called it", op->tag, op->node, i);
	}
	for (uint32_t block = 0; gets(&call, op->node) && block < blocks_got(&call); block++)
		check_block(op, &call, got + block * call.cnt, block);
}
