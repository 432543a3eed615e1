/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See group.h. All elements are 64-bit integers. op->tag is the number of the collective, from 0 on.
 */
#include "sim/group.h"

#include <string.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "sim/net.h"

/* The collective with a number. */
struct call {
	enum fi_collective_op kind;
	uint32_t cnt;			/* elements of a block */
	unsigned root;
};

struct member {
	struct fid_eq *eq;
	struct fid_av_set *set;
	struct fid_mc *mc;
	struct fid_ep *ep;
	const fi_addr_t *addr;
	bool joined;
	uint32_t called;
};

static const struct program *program;
static struct member members[NET_NODES];

static void must(int ret, const char *call)
{
	if (ret)
		judge_wrong("%s: %s", call, fi_strerror(-ret));
}

void group_begin(const struct program *what)
{
	program = what;
	memset(members, 0, sizeof(members));
}

void group_bind(unsigned n, struct fid_fabric *fabric, struct fid_ep *ep)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_NONE };

	members[n] = (struct member) { .ep = ep };
	must(fi_eq_open(fabric, &attr, &members[n].eq, NULL), "fi_eq_open");
	must(fi_ep_bind(ep, &members[n].eq->fid, 0), "fi_ep_bind");
}

void group_join(unsigned n, struct fid_av *av, const fi_addr_t *addr)
{
	struct fi_av_set_attr attr = {
		.count = program->nodes, .start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL,
	};
	struct member *member = &members[n];
	fi_addr_t all;

	member->addr = addr;
	must(fi_av_set(av, &attr, &member->set, NULL), "fi_av_set");
	for (unsigned i = 0; i < program->nodes; i++)
		must(fi_av_set_insert(member->set, addr[i]), "fi_av_set_insert");
	must(fi_av_set_addr(member->set, &all), "fi_av_set_addr");
	must(fi_join_collective(member->ep, all, member->set, 0, &member->mc, NULL), "fi_join_collective");
}

void group_close(unsigned n)
{
	must(fi_close(&members[n].mc->fid), "fi_close of a group");
	must(fi_close(&members[n].set->fid), "fi_close of a set");
}

void group_close_queue(unsigned n)
{
	must(fi_close(&members[n].eq->fid), "fi_close of an event queue");
}

bool group_pass(unsigned n)
{
	struct member *member = &members[n];
	struct fi_eq_entry entry;
	uint32_t event;
	ssize_t ret = fi_eq_read(member->eq, &event, &entry, sizeof(entry), 0);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret != sizeof(entry) || event != FI_JOIN_COMPLETE || entry.fid != &member->mc->fid || member->joined)
		judge_wrong("fi_eq_read of node %u returns %zd instead of the one join", n, ret);
	member->joined = true;
	return true;
}

bool group_joined(unsigned n)
{
	return members[n].joined;
}

bool group_behind(unsigned n)
{
	bool behind = !members[n].joined;

	for (unsigned i = 0; i < program->nodes; i++)
		behind |= members[n].called < members[i].called;
	return behind;
}

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

/* Element i of block `block` of node n. */
static uint64_t given(uint32_t number, unsigned n, uint32_t block, uint32_t i)
{
	return (uint64_t) number << 40 ^ (uint64_t) n << 32 ^ (uint64_t) block << 24 ^ i;
}

static uint64_t sum(uint32_t number, uint32_t block, uint32_t i)
{
	uint64_t all = 0;

	for (unsigned n = 0; n < program->nodes; n++)
		all += given(number, n, block, i);
	return all;
}

/* The same of the result. */
static uint64_t wanted(const struct call *call, uint32_t number, unsigned n, uint32_t block, uint32_t i)
{
	switch (call->kind) {
	case FI_BROADCAST:
		return given(number, call->root, 0, i);
	case FI_ALLTOALL:
		return given(number, block, n, i);
	case FI_ALLGATHER:
	case FI_GATHER:
		return given(number, block, 0, i);
	case FI_SCATTER:
		return given(number, call->root, n, i);
	case FI_REDUCE_SCATTER:
		return sum(number, n, i);
	default:
		return sum(number, 0, i);
	}
}

uint32_t group_len(unsigned n)
{
	struct call call = call_of(members[n].called);

	return blocks_got(&call) * call.cnt * (uint32_t) sizeof(uint64_t);
}

static void fill(struct op *op, const struct call *call)
{
	uint64_t *to;

	op->want = net_alloc((size_t) blocks_given(call) * call->cnt * sizeof(*to));
	to = (uint64_t *) op->want;
	for (uint32_t block = 0; block < blocks_given(call); block++) {
		for (uint32_t i = 0; i < call->cnt; i++)
			*to++ = given(op->tag, op->node, block, i);
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

	op->tag = member->called;
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
		member->called++;
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

void group_ended(const struct op *op)
{
	struct call call = call_of(op->tag);
	const uint64_t *got = (const uint64_t *) op->buf;

	for (unsigned i = 0; i < program->nodes; i++) {
		if (needs(&call, op->node, i) && members[i].called <= op->tag)
			judge_wrong("collective %u ended at node %u before node %u called it", op->tag, op->node, i);
	}
	if (!gets(&call, op->node))
		return;
	for (uint32_t block = 0; block < blocks_got(&call); block++) {
		for (uint32_t i = 0; i < call.cnt; i++) {
			if (*got++ != wanted(&call, op->tag, op->node, block, i))
				judge_wrong("collective %u gives node %u a wrong element %u of block %u", op->tag,
					    op->node, i, block);
		}
	}
}
