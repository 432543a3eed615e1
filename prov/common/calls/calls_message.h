/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data calls of fi_msg(3), fi_tagged(3) and fi_rma(3), written once: each puts its arguments into a struct fab_op,
 * and the provider acts on that. (Those of fi_atomic(3): calls_atomic.h.)
 *
 * One file of a provider includes this header and defines `calls` below. Its operation tables name the calls that the
 * provider supports, or all of a table with FAB_CALLS_MSG, FAB_CALLS_TAGGED and FAB_CALLS_RMA. `calls` is a constant
 * that the compiler sees, so each call ends in a direct jump into the provider, not in a call through a pointer.
 *
 * Flags (fi_endpoint(3), fi_msg(3)). A call without a flags argument takes the default flags of the fid it is called
 * on, an endpoint or an alias. fi_*msg() take the flags given, and FI_COMPLETION too unless the endpoint is bound with
 * FI_SELECTIVE_COMPLETION. fi_inject*() take the endpoint's completion level, which counters depend on, and never write
 * a CQ entry.
 *
 * The calls run on the application's thread and take no lock. Each returns the result of submit or post_recv, or one of
 * these before the provider sees the call: -FI_EINVAL (msg is NULL, a vector is NULL, or it has more entries than the
 * limit), -FI_EBADFLAGS (logged).
 */
#ifndef FAB_CALLS_H
#define FAB_CALLS_H

#include <rdma/fi_errno.h>
#include "base/probe.h"
#include "common/endpoint/endpoint.h"

/* A provider's part of the calls. */
struct fab_calls {
	const struct fi_provider *prov;
	/* submit carries out a send, write, read or atomic; post_recv posts a receive. No lock is held. op and all that
	 * it points to are the caller's, and valid only during the call. The call returns their result: 0 or -FI_E*. */
	ssize_t (*submit)(struct fab_ep *ep, const struct fab_op *op);
	ssize_t (*post_recv)(struct fab_ep *ep, const struct fab_op *op);
	/* For the calls that are made most, or NULL. send_one: submit for fi_send, fi_tsend, fi_inject and fi_tinject.
	 * rma_one: submit for fi_read, fi_write and fi_inject_write, with one remote buffer. recv_now: tried before
	 * post_recv for fi_recv and fi_trecv; FAB_OP_NOT_NOW: nothing was done. op has one local buffer, and its code
	 * is a constant, so these may be inline functions that never store it. send_one and rma_one fire the probe
	 * `post` themselves (base/probe.h), once they have its arguments at hand. */
	ssize_t (*send_one)(struct fab_ep *ep, const struct fab_op *op);
	ssize_t (*rma_one)(struct fab_ep *ep, const struct fab_op *op);
	ssize_t (*recv_now)(struct fab_ep *ep, const struct fab_op *op);
	/* The flags that the calls with a struct fi_msg* allow. */
	uint64_t send_flags;		/* fi_sendmsg, fi_tsendmsg, fi_writemsg */
	uint64_t write_flags;		/* fi_writemsg: these and send_flags */
	uint64_t read_flags;		/* fi_readmsg */
	uint64_t recv_flags;		/* fi_recvmsg */
	uint64_t trecv_flags;		/* fi_trecvmsg */
	uint64_t atomic_flags;		/* fi_*atomicmsg */
	uint32_t iov_limit;		/* entries of a local vector; with atomics at most FAB_CALLS_IOV_MAX */
	uint32_t rma_limit;		/* entries of a remote vector, likewise */
	size_t atomic_max;		/* bytes of an atomic, all elements together, at most */
};

/* Log why fab_calls_check() refuses a call, and return its error: -FI_EINVAL or -FI_EBADFLAGS. No lock needed. */
ssize_t fab_calls_refuse(const struct fi_provider *prov, const void *msg, uint64_t flags, uint64_t allowed);

/* Check msg and flags of a fi_*msg() call. 0; -FI_EINVAL: msg is NULL; -FI_EBADFLAGS: a flag is not in allowed. The
 * errors are logged. */
static inline ssize_t fab_calls_check(const struct fi_provider *prov, const void *msg, uint64_t flags, uint64_t allowed)
{
	return __builtin_expect(msg && !(flags & ~allowed), 1) ? 0 : fab_calls_refuse(prov, msg, flags, allowed);
}

/* True if a vector of cnt entries is NULL or has more entries than limit (iov_limit of fi_tx_attr, fi_rx_attr). The
 * caller returns -FI_EINVAL. */
static inline bool fab_calls_bad_vec(const void *vec, size_t cnt, size_t limit)
{
	return __builtin_expect(cnt > limit || (cnt && !vec), 0);
}

/* The struct behind a fid of the application. The fid is an endpoint or an alias; each has default flags of its own. */
static inline struct fab_ep_fid *fab_calls_held(struct fid_ep *fid)
{
	return fab_container(fid, struct fab_ep_fid, ep_fid);
}

/* The flags of a transmit call that has no flags argument. */
static inline uint64_t fab_calls_tx_flags(struct fid_ep *fid)
{
	return fab_calls_held(fid)->tx_op_flags;
}

/* The flags of a fi_inject*() call. */
static inline uint64_t fab_calls_inject_flags(struct fid_ep *fid)
{
	return (fab_calls_tx_flags(fid) & ~FI_COMPLETION) | FI_INJECT;
}

/* The flags of a transmit call with a message: those given, and FI_COMPLETION without selective completion. */
static inline uint64_t fab_calls_tx_msg_flags(struct fid_ep *fid, uint64_t flags)
{
	return flags | fab_calls_held(fid)->ep->report.tx_msg_flags;
}

/* Define name(), a function for `submit` or `post_recv`: it calls fn(), which has the same arguments, with the lock of
 * the endpoint's engine held. */
#define FAB_CALLS_LOCKED(name, fn)						\
	static ssize_t name(struct fab_ep *ep, const struct fab_op *op)	\
	{									\
		ssize_t ret;							\
										\
		fab_engine_enter(ep->engine);					\
		ret = fn(ep, op);						\
		fab_engine_unlock(ep->engine);					\
		return ret;							\
	}

/* A tentative definition. The including file completes it with its own. */
static const struct fab_calls calls;

/*
 * ---- builders: fill in the buffers of op, which has all else, and hand it to act (calls.submit or calls.post_recv).
 * Each returns act's result; those with a vector may return -FI_EINVAL before. ----
 */

#define CALL_INLINE	static inline __attribute__((always_inline))
/* Not inline, so that what tries something else first saves no register for it: it is called last. */
#define CALL_REST	static __attribute__((noinline, unused))
#define CALL_OP(...)	(&(struct fab_op) { __VA_ARGS__ })

/* The type of calls.submit and the like. */
typedef ssize_t call_act_fn(struct fab_ep *ep, const struct fab_op *op);

CALL_INLINE call_act_fn *call_send_one(void)
{
	return calls.send_one ? calls.send_one : calls.submit;
}

CALL_INLINE call_act_fn *call_rma_one(void)
{
	return calls.rma_one ? calls.rma_one : calls.submit;
}

CALL_INLINE call_act_fn *call_recv_first(void)
{
	return calls.recv_now ? calls.recv_now : calls.post_recv;
}

/* The flags of a receive call without a flags argument; of one for tagged messages; of one with a message. */
CALL_INLINE uint64_t call_rx_flags(struct fid_ep *fid)
{
	return fab_calls_held(fid)->rx_op_flags;
}

/* FI_MULTI_RECV is no flag of tagged receives. */
CALL_INLINE uint64_t call_trecv_flags(struct fid_ep *fid)
{
	return call_rx_flags(fid) & ~FI_MULTI_RECV;
}

/* Those given, and FI_COMPLETION without selective completion. */
CALL_INLINE uint64_t call_rx_msg_flags(struct fid_ep *fid, uint64_t flags)
{
	return flags | fab_calls_held(fid)->ep->report.rx_msg_flags;
}

/* The application posts an operation, which the provider may refuse. */
CALL_INLINE void call_note(struct fid_ep *fid, const struct fab_op *op)
{
	FAB_PROBE4(post, fab_calls_held(fid)->ep, op->addr, op->code, op->context);
	(void) fid, (void) op;
}

/* One local buffer; the provider has been asked before. */
CALL_INLINE ssize_t call_buf_again(struct fid_ep *fid, const void *buf, size_t len, void *desc, call_act_fn *act,
				   struct fab_op *op)
{
	struct iovec iov = { (void *) buf, len };

	op->iov = &iov;
	op->desc = &desc;
	op->iov_cnt = 1;
	return act(fab_calls_held(fid)->ep, op);
}

/* One local buffer. */
CALL_INLINE ssize_t call_buf(struct fid_ep *fid, const void *buf, size_t len, void *desc, call_act_fn *act,
			     struct fab_op *op)
{
	if (!act || (act != calls.send_one && act != calls.rma_one))
		call_note(fid, op);
	return call_buf_again(fid, buf, len, desc, act, op);
}

/* An operation that is complete. */
CALL_INLINE ssize_t call_op(struct fid_ep *fid, call_act_fn *act, const struct fab_op *op)
{
	call_note(fid, op);
	return act(fab_calls_held(fid)->ep, op);
}

/* A local vector. */
CALL_INLINE ssize_t call_vec(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, call_act_fn *act,
			     struct fab_op *op)
{
	if (fab_calls_bad_vec(iov, cnt, calls.iov_limit))
		return -FI_EINVAL;
	op->iov = iov;
	op->desc = desc;
	op->iov_cnt = cnt;
	return call_op(fid, act, op);
}

/* One local buffer, and one remote buffer of the same length. */
CALL_INLINE ssize_t call_rma_buf(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t remote,
				 uint64_t key, call_act_fn *act, struct fab_op *op)
{
	struct fi_rma_iov rma = { .addr = remote, .len = len, .key = key };

	op->rma = &rma;
	op->rma_cnt = 1;
	return call_buf(fid, buf, len, desc, act, op);
}

/* A local vector, and one remote buffer of its length. */
CALL_INLINE ssize_t call_rma_vec(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, uint64_t remote,
				 uint64_t key, struct fab_op *op)
{
	struct fi_rma_iov rma = { .addr = remote, .key = key };

	if (fab_calls_bad_vec(iov, cnt, calls.iov_limit))
		return -FI_EINVAL;
	rma.len = fab_iov_len(iov, cnt);
	op->rma = &rma;
	op->rma_cnt = 1;
	return call_vec(fid, iov, desc, cnt, calls.submit, op);
}

/*
 * ---- operations of calls with a message: for the calls below, and for deferred work (calls_deferred.h) ----
 *
 * Each checks msg and flags against the limits of `by`, the calls of fid's provider, and fills in *op. The pointers in
 * op are those in msg. 0; -FI_EINVAL (msg or a vector is NULL, or a vector is too long; RMA without a remote buffer) or
 * -FI_EBADFLAGS (logged): *op is undefined.
 */

/* Fill in *op with the members that struct fi_msg, fi_msg_tagged and fi_msg_rma share, and those named behind. msg is
 * not NULL. */
#define CALL_MSG(by, msg, op, ...) \
	(fab_calls_bad_vec((msg)->msg_iov, (msg)->iov_count, (by)->iov_limit) ? -FI_EINVAL : \
	 (*(op) = (struct fab_op) { .iov = (msg)->msg_iov, .desc = (msg)->desc, .iov_cnt = (msg)->iov_count, \
				    .addr = (msg)->addr, .context = (msg)->context, __VA_ARGS__ }, 0))

CALL_INLINE ssize_t fab_op_of_recv(struct fid_ep *fid, const struct fab_calls *by, const struct fi_msg *msg,
				   uint64_t flags, struct fab_op *op)
{
	ssize_t ret = fab_calls_check(by->prov, msg, flags, by->recv_flags);

	return ret ? ret : CALL_MSG(by, msg, op, .code = FAB_OP_RECV, .flags = call_rx_msg_flags(fid, flags));
}

CALL_INLINE ssize_t fab_op_of_send(struct fid_ep *fid, const struct fab_calls *by, const struct fi_msg *msg,
				   uint64_t flags, struct fab_op *op)
{
	ssize_t ret = fab_calls_check(by->prov, msg, flags, by->send_flags);

	return ret ? ret : CALL_MSG(by, msg, op, .code = FAB_OP_SEND, .data = msg->data,
				    .flags = fab_calls_tx_msg_flags(fid, flags));
}

CALL_INLINE ssize_t fab_op_of_trecv(struct fid_ep *fid, const struct fab_calls *by, const struct fi_msg_tagged *msg,
				    uint64_t flags, struct fab_op *op)
{
	ssize_t ret = fab_calls_check(by->prov, msg, flags, by->trecv_flags);

	return ret ? ret : CALL_MSG(by, msg, op, .code = FAB_OP_TRECV, .tag = msg->tag, .ignore = msg->ignore,
				    .flags = call_rx_msg_flags(fid, flags));
}

CALL_INLINE ssize_t fab_op_of_tsend(struct fid_ep *fid, const struct fab_calls *by, const struct fi_msg_tagged *msg,
				    uint64_t flags, struct fab_op *op)
{
	ssize_t ret = fab_calls_check(by->prov, msg, flags, by->send_flags);

	return ret ? ret : CALL_MSG(by, msg, op, .code = FAB_OP_TSEND, .tag = msg->tag, .data = msg->data,
				    .flags = fab_calls_tx_msg_flags(fid, flags));
}

/* code: FAB_OP_READ or FAB_OP_WRITE. */
CALL_INLINE ssize_t fab_op_of_rma(struct fid_ep *fid, const struct fab_calls *by, const struct fi_msg_rma *msg,
				  uint64_t flags, enum fab_op_code code, struct fab_op *op)
{
	ssize_t ret = fab_calls_check(by->prov, msg, flags, code == FAB_OP_READ ? by->read_flags :
				      by->send_flags | by->write_flags);

	if (ret)
		return ret;
	if (!msg->rma_iov_count || fab_calls_bad_vec(msg->rma_iov, msg->rma_iov_count, by->rma_limit))
		return -FI_EINVAL;
	return CALL_MSG(by, msg, op, .code = code, .rma = msg->rma_iov, .rma_cnt = msg->rma_iov_count,
			.data = msg->data, .flags = fab_calls_tx_msg_flags(fid, flags));
}

/* ---- messages: the calls of fi_msg(3), one for each slot of struct fi_ops_msg ---- */

#define CALL_RECV(fid, src, ctx)									\
	CALL_OP(.code = FAB_OP_RECV, .addr = (src), .flags = call_rx_flags(fid), .context = (ctx))

CALL_REST ssize_t call_recv_rest(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	return call_buf_again(fid, buf, len, desc, calls.post_recv, CALL_RECV(fid, addr, context));
}

static inline ssize_t call_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, void *context)
{
	ssize_t ret = call_buf(fid, buf, len, desc, call_recv_first(), CALL_RECV(fid, addr, context));

	return ret == FAB_OP_NOT_NOW ? call_recv_rest(fid, buf, len, desc, addr, context) : ret;
}

static inline ssize_t call_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
				 void *context)
{
	return call_vec(fid, iov, desc, cnt, calls.post_recv, CALL_OP(.code = FAB_OP_RECV, .addr = addr,
			.flags = call_rx_flags(fid), .context = context));
}

static inline ssize_t call_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct fab_op op;
	ssize_t ret = fab_op_of_recv(fid, &calls, msg, flags, &op);

	return ret ? ret : call_op(fid, calls.post_recv, &op);
}

static inline ssize_t call_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr,
				void *context)
{
	return call_buf(fid, buf, len, desc, call_send_one(), CALL_OP(.code = FAB_OP_SEND, .addr = addr,
			.flags = fab_calls_tx_flags(fid), .context = context));
}

static inline ssize_t call_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
				 void *context)
{
	return call_vec(fid, iov, desc, cnt, calls.submit, CALL_OP(.code = FAB_OP_SEND, .addr = addr,
			.flags = fab_calls_tx_flags(fid), .context = context));
}

static inline ssize_t call_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct fab_op op;
	ssize_t ret = fab_op_of_send(fid, &calls, msg, flags, &op);

	return ret ? ret : call_op(fid, calls.submit, &op);
}

static inline ssize_t call_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr)
{
	return call_buf(fid, buf, len, NULL, call_send_one(), CALL_OP(.code = FAB_OP_SEND, .no_comp = true,
			.addr = addr, .flags = fab_calls_inject_flags(fid)));
}

static inline ssize_t call_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
				    fi_addr_t addr, void *context)
{
	return call_buf(fid, buf, len, desc, calls.submit, CALL_OP(.code = FAB_OP_SEND, .addr = addr, .data = data,
			.flags = fab_calls_tx_flags(fid) | FI_REMOTE_CQ_DATA, .context = context));
}

static inline ssize_t call_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t addr)
{
	return call_buf(fid, buf, len, NULL, calls.submit, CALL_OP(.code = FAB_OP_SEND, .no_comp = true, .addr = addr,
			.data = data, .flags = fab_calls_inject_flags(fid) | FI_REMOTE_CQ_DATA));
}

#define FAB_CALLS_MSG { \
	.size = sizeof(struct fi_ops_msg), .recv = call_recv, .recvv = call_recvv, .recvmsg = call_recvmsg, \
	.send = call_send, .sendv = call_sendv, .sendmsg = call_sendmsg, .inject = call_inject, \
	.senddata = call_senddata, .injectdata = call_injectdata, \
}

/* ---- tagged messages: the calls of fi_tagged(3), one for each slot of struct fi_ops_tagged ---- */

#define CALL_TRECV(fid, src, tag_, ignore_, ctx)							\
	CALL_OP(.code = FAB_OP_TRECV, .addr = (src), .tag = (tag_), .ignore = (ignore_),		\
		.flags = call_trecv_flags(fid), .context = (ctx))

CALL_REST ssize_t call_trecv_rest(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t tag,
				  uint64_t ignore, void *context)
{
	return call_buf_again(fid, buf, len, desc, calls.post_recv, CALL_TRECV(fid, addr, tag, ignore, context));
}

static inline ssize_t call_trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t tag,
				 uint64_t ignore, void *context)
{
	ssize_t ret = call_buf(fid, buf, len, desc, call_recv_first(), CALL_TRECV(fid, addr, tag, ignore, context));

	return ret == FAB_OP_NOT_NOW ? call_trecv_rest(fid, buf, len, desc, addr, tag, ignore, context) : ret;
}

static inline ssize_t call_trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
				  uint64_t tag, uint64_t ignore, void *context)
{
	return call_vec(fid, iov, desc, cnt, calls.post_recv, CALL_OP(.code = FAB_OP_TRECV, .addr = addr, .tag = tag,
			.ignore = ignore, .flags = call_trecv_flags(fid), .context = context));
}

static inline ssize_t call_trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct fab_op op;
	ssize_t ret = fab_op_of_trecv(fid, &calls, msg, flags, &op);

	return ret ? ret : call_op(fid, calls.post_recv, &op);
}

static inline ssize_t call_tsend(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr,
				 uint64_t tag, void *context)
{
	return call_buf(fid, buf, len, desc, call_send_one(), CALL_OP(.code = FAB_OP_TSEND, .addr = addr, .tag = tag,
			.flags = fab_calls_tx_flags(fid), .context = context));
}

static inline ssize_t call_tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
				  uint64_t tag, void *context)
{
	return call_vec(fid, iov, desc, cnt, calls.submit, CALL_OP(.code = FAB_OP_TSEND, .addr = addr, .tag = tag,
			.flags = fab_calls_tx_flags(fid), .context = context));
}

static inline ssize_t call_tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct fab_op op;
	ssize_t ret = fab_op_of_tsend(fid, &calls, msg, flags, &op);

	return ret ? ret : call_op(fid, calls.submit, &op);
}

static inline ssize_t call_tinject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr, uint64_t tag)
{
	return call_buf(fid, buf, len, NULL, call_send_one(), CALL_OP(.code = FAB_OP_TSEND, .no_comp = true,
			.addr = addr, .tag = tag, .flags = fab_calls_inject_flags(fid)));
}

static inline ssize_t call_tsenddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
				     fi_addr_t addr, uint64_t tag, void *context)
{
	return call_buf(fid, buf, len, desc, calls.submit, CALL_OP(.code = FAB_OP_TSEND, .addr = addr, .tag = tag,
			.data = data, .flags = fab_calls_tx_flags(fid) | FI_REMOTE_CQ_DATA, .context = context));
}

static inline ssize_t call_tinjectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data, fi_addr_t addr,
				       uint64_t tag)
{
	return call_buf(fid, buf, len, NULL, calls.submit, CALL_OP(.code = FAB_OP_TSEND, .no_comp = true, .addr = addr,
			.tag = tag, .data = data, .flags = fab_calls_inject_flags(fid) | FI_REMOTE_CQ_DATA));
}

#define FAB_CALLS_TAGGED { \
	.size = sizeof(struct fi_ops_tagged), .recv = call_trecv, .recvv = call_trecvv, .recvmsg = call_trecvmsg, \
	.send = call_tsend, .sendv = call_tsendv, .sendmsg = call_tsendmsg, .inject = call_tinject, \
	.senddata = call_tsenddata, .injectdata = call_tinjectdata, \
}

/* ---- RMA: the calls of fi_rma(3), one for each slot of struct fi_ops_rma. Only those with a message may have several
 * remote buffers. ---- */

static inline ssize_t call_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t addr, uint64_t remote,
				uint64_t key, void *context)
{
	return call_rma_buf(fid, buf, len, desc, remote, key, call_rma_one(), CALL_OP(.code = FAB_OP_READ,
			    .addr = addr, .flags = fab_calls_tx_flags(fid), .context = context));
}

static inline ssize_t call_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
				 uint64_t remote, uint64_t key, void *context)
{
	return call_rma_vec(fid, iov, desc, cnt, remote, key, CALL_OP(.code = FAB_OP_READ, .addr = addr,
			    .flags = fab_calls_tx_flags(fid), .context = context));
}

/* code: FAB_OP_READ or FAB_OP_WRITE. */
CALL_INLINE ssize_t call_rma_msg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags,
				 enum fab_op_code code)
{
	struct fab_op op;
	ssize_t ret = fab_op_of_rma(fid, &calls, msg, flags, code, &op);

	return ret ? ret : call_op(fid, calls.submit, &op);
}

static inline ssize_t call_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return call_rma_msg(fid, msg, flags, FAB_OP_READ);
}

static inline ssize_t call_write(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t addr,
				 uint64_t remote, uint64_t key, void *context)
{
	return call_rma_buf(fid, buf, len, desc, remote, key, call_rma_one(), CALL_OP(.code = FAB_OP_WRITE,
			    .addr = addr, .flags = fab_calls_tx_flags(fid), .context = context));
}

static inline ssize_t call_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t cnt, fi_addr_t addr,
				  uint64_t remote, uint64_t key, void *context)
{
	return call_rma_vec(fid, iov, desc, cnt, remote, key, CALL_OP(.code = FAB_OP_WRITE, .addr = addr,
			    .flags = fab_calls_tx_flags(fid), .context = context));
}

static inline ssize_t call_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	return call_rma_msg(fid, msg, flags, FAB_OP_WRITE);
}

static inline ssize_t call_inject_write(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t addr,
					uint64_t remote, uint64_t key)
{
	return call_rma_buf(fid, buf, len, NULL, remote, key, call_rma_one(), CALL_OP(.code = FAB_OP_WRITE,
			    .no_comp = true, .addr = addr, .flags = fab_calls_inject_flags(fid)));
}

static inline ssize_t call_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
				     fi_addr_t addr, uint64_t remote, uint64_t key, void *context)
{
	return call_rma_buf(fid, buf, len, desc, remote, key, calls.submit, CALL_OP(.code = FAB_OP_WRITE,
			    .addr = addr, .data = data, .flags = fab_calls_tx_flags(fid) | FI_REMOTE_CQ_DATA,
			    .context = context));
}

static inline ssize_t call_inject_writedata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
					    fi_addr_t addr, uint64_t remote, uint64_t key)
{
	return call_rma_buf(fid, buf, len, NULL, remote, key, calls.submit, CALL_OP(.code = FAB_OP_WRITE,
			    .no_comp = true, .addr = addr, .data = data,
			    .flags = fab_calls_inject_flags(fid) | FI_REMOTE_CQ_DATA));
}

#define FAB_CALLS_RMA { \
	.size = sizeof(struct fi_ops_rma), .read = call_read, .readv = call_readv, .readmsg = call_readmsg, \
	.write = call_write, .writev = call_writev, .writemsg = call_writemsg, .inject = call_inject_write, \
	.writedata = call_writedata, .injectdata = call_inject_writedata, \
}

#endif
