/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See calls_deferred.h. The tables of an endpoint say which calls it has. A call that it lacks, for its capabilities or
 * because its receives are those of a shared context, is the entry of common/ops that answers -FI_ENOSYS.
 */
#include "common/calls/calls_deferred.h"

#include "common/ops/ops.h"

/* True if the endpoint that the work names lacks this call. */
#define LACKS(from, table, slot)	((from)->ep->table->slot == fab_no_##table.slot)

static void begin(struct fab_deferred_op *made, struct fid_ep *fid, uint64_t flags)
{
	made->ep = fab_calls_held(fid)->ep;
	made->flags = flags;
}

static ssize_t of_msg(const struct fab_calls *calls, const struct fi_op_msg *from, bool recv,
		      struct fab_deferred_op *made)
{
	const uint64_t flags = from->flags | FI_TRIGGER;

	if (recv ? LACKS(from, msg, recvmsg) : LACKS(from, msg, sendmsg))
		return -FI_ENOSYS;
	begin(made, from->ep, from->flags);
	return recv ? fab_op_of_recv(from->ep, calls, &from->msg, flags, &made->op) :
		      fab_op_of_send(from->ep, calls, &from->msg, flags, &made->op);
}

static ssize_t of_tagged(const struct fab_calls *calls, const struct fi_op_tagged *from, bool recv,
			 struct fab_deferred_op *made)
{
	const uint64_t flags = from->flags | FI_TRIGGER;

	if (recv ? LACKS(from, tagged, recvmsg) : LACKS(from, tagged, sendmsg))
		return -FI_ENOSYS;
	begin(made, from->ep, from->flags);
	return recv ? fab_op_of_trecv(from->ep, calls, &from->msg, flags, &made->op) :
		      fab_op_of_tsend(from->ep, calls, &from->msg, flags, &made->op);
}

static ssize_t of_rma(const struct fab_calls *calls, const struct fi_op_rma *from, enum fab_op_code code,
		      struct fab_deferred_op *made)
{
	if (code == FAB_OP_READ ? LACKS(from, rma, readmsg) : LACKS(from, rma, writemsg))
		return -FI_ENOSYS;
	begin(made, from->ep, from->flags);
	return fab_op_of_rma(from->ep, calls, &from->msg, from->flags | FI_TRIGGER, code, &made->op);
}

/* struct fi_op_atomic, fi_op_fetch_atomic and fi_op_compare_atomic have these members in common. */
#define OF_ATOMIC(calls, from, made, slot, ...)								\
	({												\
		struct fab_call_atomic call_ = { __VA_ARGS__ };						\
													\
		LACKS(from, atomic, slot) ? -FI_ENOSYS :						\
			(begin(made, (from)->ep, (from)->flags),					\
			 fab_op_of_atomic_msg((from)->ep, calls, &(from)->msg, (from)->flags | FI_TRIGGER,	\
					      &call_, &(made)->atomic));				\
	})
#define VEC(from)	{ (from).msg_iov, (from).iov_count, (from).desc }

static int of_fetch(const struct fab_calls *calls, const struct fi_op_fetch_atomic *from,
		    struct fab_deferred_op *made)
{
	return OF_ATOMIC(calls, from, made, readwritemsg, .kind = FAB_ATOMIC_FETCH, .result = VEC(from->fetch));
}

static int of_compare(const struct fab_calls *calls, const struct fi_op_compare_atomic *from,
		      struct fab_deferred_op *made)
{
	return OF_ATOMIC(calls, from, made, compwritemsg, .kind = FAB_ATOMIC_COMPARE,
			 .compare = VEC(from->compare), .result = VEC(from->fetch));
}

int fab_op_of_deferred(const struct fab_calls *calls, const struct fi_deferred_work *work,
		       struct fab_deferred_op *made)
{
	switch (work->op_type) {
	case FI_OP_RECV:
	case FI_OP_SEND:
		return (int) of_msg(calls, work->op.msg, work->op_type == FI_OP_RECV, made);
	case FI_OP_TRECV:
	case FI_OP_TSEND:
		return (int) of_tagged(calls, work->op.tagged, work->op_type == FI_OP_TRECV, made);
	case FI_OP_READ:
		return (int) of_rma(calls, work->op.rma, FAB_OP_READ, made);
	case FI_OP_WRITE:
		return (int) of_rma(calls, work->op.rma, FAB_OP_WRITE, made);
	case FI_OP_ATOMIC:
		return OF_ATOMIC(calls, work->op.atomic, made, writemsg, .kind = FAB_ATOMIC_BASE);
	case FI_OP_FETCH_ATOMIC:
		return of_fetch(calls, work->op.fetch_atomic, made);
	case FI_OP_COMPARE_ATOMIC:
		return of_compare(calls, work->op.compare_atomic, made);
	default:
		return -FI_ENOSYS;
	}
}
