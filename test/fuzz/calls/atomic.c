/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Steps with atomics, collectives, and deferred work.
 */
#include "fuzz/calls/data.h"

#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_tagged.h>

#define ELEMENT		32	/* bytes of the longest: complex of long double */

/* ---- atomics */

/* Operand, comparison and result, each in pieces of its own; and where. */
struct atomic {
	struct args a;
	enum fi_datatype type;
	enum fi_op op;
	struct fi_ioc ioc[3][PIECES];
	void *desc[3][PIECES];
	size_t cnt[3], all;
	struct fi_rma_ioc rma[PIECES];
	struct fi_msg_atomic msg;
};

static bool pieces(struct atomic *at, unsigned which)
{
	size_t left = at->all, some;

	at->cnt[which] = one_in(4) ? draw(4) : 1;
	for (size_t i = 0; i < at->cnt[which]; i++) {
		some = i + 1 == at->cnt[which] ? left : draw((uint32_t) left + 1);
		at->ioc[which][i].addr = op_mem(at->a.op, some * ELEMENT, &at->desc[which][i]);
		at->ioc[which][i].count = some;
		left -= some;
		if (!at->ioc[which][i].addr)
			return false;
	}
	return true;
}

static bool atomic_draw(struct atomic *at)
{
	static const uint64_t flags = FI_COMPLETION | FI_INJECT | FI_DELIVERY_COMPLETE | FI_TRANSMIT_COMPLETE |
		FI_FENCE |
		FI_MORE | FI_TRIGGER;

	memset(at, 0, sizeof(*at));
	if (!args_draw(&at->a, true, flags))
		return false;
	at->all = one_in(4) ? draw_len() / 64 : draw(5);
	at->type = one_in(16) ? draw_any() : draw(FI_DATATYPE_LAST);
	at->op = one_in(16) ? draw_any() : draw(FI_ATOMIC_OP_LAST);
	for (unsigned i = 0; i < 3; i++) {
		if (!pieces(at, i)) {
			args_called(&at->a, -1, false);
			return false;
		}
	}
	at->a.len = at->all * 8;
	args_draw_remote(&at->a);
	for (size_t i = 0; i < at->a.rma_cnt; i++)
		at->rma[i] = (struct fi_rma_ioc) { at->a.rma[i].addr, at->a.rma_cnt == 1 ? at->all :
						  at->a.rma[i].len / 8,
						   at->a.key };
	at->msg = (struct fi_msg_atomic) {
		.msg_iov = at->ioc[0], .desc = at->desc[0], .iov_count = at->cnt[0], .addr = at->a.addr,
			.rma_iov = at->rma,
		.rma_iov_count = at->a.rma_cnt, .datatype = at->type, .op = at->op, .context = at->a.context,
		.data = at->a.data,
	};
	return true;
}

static long long base_call(struct atomic *at, uint32_t way)
{
	struct args *a = &at->a;
	void *buf = at->ioc[0][0].addr;
	size_t first = at->ioc[0][0].count;

	switch (way) {
	case 0:
		return fi_atomic(a->fid, buf, first, at->desc[0][0], a->addr, a->raddr, a->key, at->type, at->op,
				 a->context);
	case 1:
		return fi_atomicv(a->fid, at->ioc[0], at->desc[0], at->cnt[0], a->addr, a->raddr, a->key, at->type,
				  at->op,
				  a->context);
	case 2:
		return fi_inject_atomic(a->fid, buf, first, a->addr, a->raddr, a->key, at->type, at->op);
	default:
		return fi_atomicmsg(a->fid, &at->msg, a->flags);
	}
}

static long long fetch_call(struct atomic *at, uint32_t way)
{
	struct args *a = &at->a;

	switch (way) {
	case 0:
		if (at->ioc[0][0].count != at->ioc[2][0].count)	/* both have the one count */
			return -FI_EINVAL;
		return fi_fetch_atomic(a->fid, at->ioc[0][0].addr, at->ioc[0][0].count, at->desc[0][0],
				       at->ioc[2][0].addr,
				       at->desc[2][0], a->addr, a->raddr, a->key, at->type, at->op, a->context);
	case 1:
		return fi_fetch_atomicv(a->fid, at->ioc[0], at->desc[0], at->cnt[0], at->ioc[2], at->desc[2],
					at->cnt[2],
					a->addr, a->raddr, a->key, at->type, at->op, a->context);
	default:
		return fi_fetch_atomicmsg(a->fid, &at->msg, at->ioc[2], at->desc[2], at->cnt[2], a->flags);
	}
}

static long long compare_call(struct atomic *at, uint32_t way)
{
	struct args *a = &at->a;
	struct fi_ioc *buf = at->ioc[0], *compare = at->ioc[1], *result = at->ioc[2];

	switch (way) {
	case 0:
		if (buf->count != compare->count || buf->count != result->count)
			return -FI_EINVAL;
		return fi_compare_atomic(a->fid, buf->addr, buf->count, at->desc[0][0], compare->addr, at->desc[1][0],
					 result->addr, at->desc[2][0], a->addr, a->raddr, a->key, at->type, at->op,
					 a->context);
	case 1:
		return fi_compare_atomicv(a->fid, buf, at->desc[0], at->cnt[0], compare, at->desc[1], at->cnt[1],
					  result,
					  at->desc[2], at->cnt[2], a->addr, a->raddr, a->key, at->type, at->op,
					  	a->context);
	default:
		return fi_compare_atomicmsg(a->fid, &at->msg, compare, at->desc[1], at->cnt[1], result, at->desc[2],
					    at->cnt[2], a->flags);
	}
}

void step_atomic(void)
{
	static const char *const names[] = { "fi_atomic", "fi_fetch_atomic", "fi_compare_atomic" };
	struct atomic at;
	uint32_t kind = draw(3), way = draw(5);
	size_t cnt;
	long long ret;

	if (!atomic_draw(&at))
		return;
	if (kind)
		at.a.flags &= ~FI_INJECT;
	doing("%s(ep %u, op %#lx, %zu elements, type %d, op %d, way %u, flags %#llx)", names[kind], at.a.ep->id,
	      (unsigned long) (uintptr_t) at.a.op, at.all, at.type, at.op, way, (unsigned long long) at.a.flags);
	if (one_in(20))
		(void) (fi_atomicvalid(at.a.fid, at.type, at.op, &cnt) + fi_fetch_atomicvalid(at.a.fid, at.type,
				at.op, &cnt) +
			fi_compare_atomicvalid(at.a.fid, at.type, at.op, &cnt));
	ret = did(!kind ? base_call(&at, way) : kind == 1 ? fetch_call(&at, way) : compare_call(&at, way));
	args_called(&at.a, ret, !kind && (way == 2 || (way > 2 && at.a.flags & FI_INJECT)));
}

/* ---- collectives */

static void join(struct obj *ep)
{
	struct obj *set = pick_beside(SET, ep), *obj = ep ? obj_new(MC, ep) : NULL;
	fi_addr_t coll = FI_ADDR_NOTAVAIL;
	struct fid_mc *mc = NULL;

	if (!obj || !set)
		return;
	if (!one_in(8))
		fi_av_set_addr(AS(fid_av_set, set), &coll);
	obj_opened(obj, CALL(fi_join_collective(AS(fid_ep, ep), coll, AS(fid_av_set, set), one_in(16) ? draw_any() :
						0, &mc,
						obj), "fi_join_collective(ep %u, set %u) -> %u", ep->id, set->id,
							obj->id),
		   mc ? &mc->fid : NULL);
}

#define CALLED(name, ...) CALL(name(a->fid, __VA_ARGS__), #name "(ep %u, op %#lx, %zu elements, type %d)", a->ep->id, \
			       (unsigned long) (uintptr_t) a->op, cnt, type)

/* The memory is enough for each of up to 16 members. */
static long long collective_call(struct args *a, fi_addr_t coll, void *result, void *desc)
{
	enum fi_datatype type = one_in(16) ? draw_any() : draw(FI_DATATYPE_LAST);
	enum fi_op op = one_in(16) ? draw_any() : draw(FI_ATOMIC_OP_LAST);
	size_t cnt = a->iov[0].iov_len / 16 / ELEMENT;
	fi_addr_t root = an_addr(a->ep);
	uint64_t flags = a->flags;
	void *buf = a->buf, *mine = a->desc[0];

	switch (draw(10)) {
	case 0:
		return CALLED(fi_barrier, coll, a->context);
	case 1:
		return CALLED(fi_barrier2, coll, flags, a->context);
	case 2:
		return CALLED(fi_broadcast, buf, cnt, mine, coll, root, type, flags, a->context);
	case 3:
		return CALLED(fi_alltoall, buf, cnt, mine, result, desc, coll, type, flags, a->context);
	case 4:
		return CALLED(fi_allreduce, buf, cnt, mine, result, desc, coll, type, op, flags, a->context);
	case 5:
		return CALLED(fi_allgather, buf, cnt, mine, result, desc, coll, type, flags, a->context);
	case 6:
		return CALLED(fi_reduce_scatter, buf, cnt, mine, result, desc, coll, type, op, flags, a->context);
	case 7:
		return CALLED(fi_reduce, buf, cnt, mine, result, desc, coll, root, type, op, flags, a->context);
	case 8:
		return CALLED(fi_scatter, buf, cnt, mine, result, desc, coll, root, type, flags, a->context);
	default:
		return CALLED(fi_gather, buf, cnt, mine, result, desc, coll, root, type, flags, a->context);
	}
}

void step_collective(void)
{
	struct obj *mc = pick(MC);
	struct args a;
	void *result, *desc;
	fi_addr_t coll;

	if (!mc || one_in(4)) {
		join(pick(EP));
		return;
	}
	if (!args_draw(&a, true, FI_COMPLETION))
		return;
	result = op_mem(a.op, a.iov[0].iov_len, &desc);
	a.flags &= FI_COMPLETION | FI_SCATTER | FI_TRANSMIT_COMPLETE;
	coll = one_in(8) ? draw_any() : fi_mc_addr(AS(fid_mc, mc));
	if (!result || !a.cnt || a.flags & FI_TRIGGER) {
		args_called(&a, -1, false);
		return;
	}
	args_called(&a, collective_call(&a, coll, result, desc), false);
}

/* ---- deferred work */

/* The descriptions live until the end, since nobody says when work has begun. */
struct work {
	struct fi_deferred_work work;
	struct args args;
	union {
		struct fi_op_msg msg;
		struct fi_op_tagged tagged;
		struct fi_op_rma rma;
		struct fi_op_cntr cntr;
	} op;
};

static void describe(struct work *work, struct obj *cntr)
{
	struct args *a = &work->args;

	switch (work->work.op_type) {
	case FI_OP_RECV:
	case FI_OP_SEND:
		work->work.op.msg = &work->op.msg;
		work->op.msg = (struct fi_op_msg) { a->fid, { .msg_iov = a->iov, .desc = a->desc, .iov_count = a->cnt,
			.addr = a->addr, .context = a->context, .data = a->data }, a->flags };
		break;
	case FI_OP_TRECV:
	case FI_OP_TSEND:
		work->work.op.tagged = &work->op.tagged;
		work->op.tagged = (struct fi_op_tagged) { a->fid, { .msg_iov = a->iov, .desc = a->desc,
								   .iov_count = a->cnt,
			.addr = a->addr, .tag = a->tag, .ignore = a->ignore, .context = a->context, .data = a->data },
			a->flags };
		break;
	case FI_OP_READ:
	case FI_OP_WRITE:
		args_draw_remote(a);
		work->work.op.rma = &work->op.rma;
		work->op.rma = (struct fi_op_rma) { a->fid, { .msg_iov = a->iov, .desc = a->desc, .iov_count = a->cnt,
			.addr = a->addr, .rma_iov = a->rma, .rma_iov_count = a->rma_cnt, .context = a->context,
			.data = a->data }, a->flags };
		break;
	default:
		work->work.op.cntr = &work->op.cntr;
		work->op.cntr = (struct fi_op_cntr) { AS(fid_cntr, cntr), draw(8) };
		work->work.completion_cntr = NULL;
	}
}

/* Counters that work waits for, or that wait for it, stay open until the domain has no more work. */
void step_deferred(void)
{
	static const enum fi_op_type types[] = { FI_OP_RECV, FI_OP_SEND, FI_OP_TRECV, FI_OP_TSEND, FI_OP_READ,
						FI_OP_WRITE,
						 FI_OP_CNTR_SET, FI_OP_CNTR_ADD };
	struct obj *domain, *cntr;
	struct work *work;
	struct args a;

	if (!args_draw(&a, true, FI_COMPLETION | FI_DELIVERY_COMPLETE))
		return;
	domain = (struct obj *) obj_domain(a.ep);
	cntr = pick_of_domain(CNTR, domain);
	work = (struct work *) mem_new(sizeof(*work));
	memset(work, 0, sizeof(*work));
	work->args = a;
	if (!cntr || a.flags & FI_TRIGGER) {
		args_called(&a, -1, false);
		return;
	}
	work->work = (struct fi_deferred_work) { .threshold = draw(6), .triggering_cntr = AS(fid_cntr, cntr),
						 .completion_cntr = AS(fid_cntr, cntr),
						 	.op_type = types[draw(COUNT(types))] };
	describe(work, cntr);
	a.op->many = work->args.flags & FI_MULTI_RECV;
	op_pin(a.op, cntr);
	args_called(&a, CALL(fi_control(domain->fid, FI_QUEUE_WORK, &work->work),
			     "fi_control(domain %u, FI_QUEUE_WORK, ep %u, op %#lx, type %d, cntr %u)", domain->id,
			     	a.ep->id,
			     (unsigned long) (uintptr_t) a.op, work->work.op_type, cntr->id), false);
	if (one_in(4))
		CALL(fi_control(domain->fid, FI_CANCEL_WORK, &work->work), "fi_control(domain %u, FI_CANCEL_WORK)",
		     domain->id);
	if (one_in(8))
		CALL(fi_control(domain->fid, FI_FLUSH_WORK, one_in(2) ? NULL : cntr->fid),
		     "fi_control(domain %u, FI_FLUSH_WORK)", domain->id);
}
