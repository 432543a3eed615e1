/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The part of the receiving half (recv.h) that every message runs through: posting and finding a receive, keeping a
 * message, finishing. A provider compiles it with `ops`, a static const, so that its operations are called directly and
 * the tests for missing operations disappear. recv.c has the same functions with recv->ops, for rare cases.
 *
 * Engine lock held.
 */
#ifndef FAB_RECV_PATH_H
#define FAB_RECV_PATH_H

#include <string.h>
#include <rdma/fi_errno.h>
#include "base/copy.h"
#include "base/probe.h"
#include "common/receive/recv.h"

#define FAB_RECV_PATH	static inline __attribute__((always_inline))

_Static_assert(FAB_OP_RECV + FAB_CLASS_TAGGED == FAB_OP_TRECV && FAB_OP_RECV + FAB_CLASS_COLL == FAB_OP_CRECV,
	       "fab_rx_queue()");

static inline struct fab_match *fab_rx_queue(struct fab_recv *recv, enum fab_op_code code)
{
	return &recv->queue[code - FAB_OP_RECV];
}

/* The descriptors of a receive's buffers, as the call passed them; some may be NULL. Only with ops->keeps_desc. */
static inline void **fab_rx_desc(const struct fab_recv_ops *ops, struct fab_rx *rx)
{
	return (void **) (rx->own + ops->iov_own);
}

/* The tag for matching. */
static inline uint64_t fab_msg_match_tag(const struct fab_msg *msg)
{
	return __builtin_expect(msg->flags & FI_TAGGED, 0) ? 0 : msg->tag;
}

/* The oldest posted receive for a message. NULL: there is none, and the provider keeps the message. src is a source of
 * matching. */
FAB_RECV_PATH struct fab_rx *fab_recv_find(struct fab_recv *recv, enum fab_msg_class class, uint64_t tag, fi_addr_t src)
{
	struct fab_posted *posted = fab_match_find_oldest(&recv->queue[class], tag, src);

	return posted ? fab_container(posted, struct fab_rx, posted) : NULL;
}

/* ---- claiming ---- */

static inline void fab_rx_unpost(struct fab_recv *recv, struct fab_rx *rx)
{
	fab_match_unpost(fab_rx_queue(recv, rx->code), &rx->posted);
}

/* Claim room for a message of len bytes: the whole receive, or the next part of a multi-receive. *into is the room.
 * True: a multi-receive that stays posted. False: the receive is used up and was unposted. The caller must finish the
 * claim in either case. */
FAB_RECV_PATH bool fab_rx_claim(struct fab_recv *recv, struct fab_rx *rx, uint64_t len, struct fab_into *into)
{
	FAB_PROBE2(match, rx->context, len);
	into->rx = rx;
	into->start = rx->iov_cnt ? rx->iov[0].iov_base : NULL;
	into->take = len < rx->len ? len : rx->len;
	rx->busy++;
	if (__builtin_expect(rx->flags & FI_MULTI_RECV, 0)) {
		const struct fab_into copy = *into;	/* see fab_cq_write() */

		if (fab_rx_claim_part(recv, rx, &copy))
			return true;
	}
	if (rx->posted.seq)
		fab_rx_unpost(recv, rx);
	return false;
}

/* Fill the room with the first bytes of a message, all of which is at buf. */
FAB_RECV_PATH void fab_into_fill(const struct fab_into *into, const void *buf)
{
	if (__builtin_expect(!into->take, 0))
		return;		/* the receive may have no buffer */
	if (__builtin_expect(into->rx->iov_cnt == 1 && !(into->rx->flags & FAB_OP_HMEM), 1)) {
		memcpy(into->start, buf, into->take);
	} else {
		const struct fab_into copy = *into;

		fab_into_copy(&copy, 0, buf, into->take);
	}
}

/* ---- finishing ---- */

/* fab_rx_free() with constant operations. */
FAB_RECV_PATH void fab_rx_free_with(struct fab_recv *recv, struct fab_rx *rx, const struct fab_recv_ops *ops)
{
	if (ops->iov_own < ops->iov_max && rx->iov != rx->own)
		fab_pool_put(&recv->iov_pool, rx->iov);
	fab_pool_put(rx->code == FAB_OP_CRECV ? &recv->coll_pool : &recv->pool, rx);
}

/* In recv.c: finish a receive that has a hook, has failed, is too short, or has a message from an unknown sender. */
void fab_rx_finish_rare(struct fab_recv *recv, struct fab_ep *ep, const struct fab_into *into, struct fab_comp *comp,
			const struct fab_msg *msg, const struct fab_cq_fail *fail);

/* fab_rx_finish() with constant operations. */
FAB_RECV_PATH void fab_rx_finish_with(struct fab_recv *recv, struct fab_ep *ep, const struct fab_into *into,
				      const struct fab_msg *msg, const struct fab_cq_fail *fail,
				      const struct fab_recv_ops *ops)
{
	struct fab_rx *rx = into->rx;
	bool last = !--rx->busy && !rx->posted.seq;
	struct fab_comp comp = {
		.context = rx->context,
		.flags = fab_op_desc[rx->code].cq_flags | msg->flags | (last ? rx->flags & FI_MULTI_RECV : 0),
		.len = into->take, .buf = into->start, .data = msg->data, .tag = msg->tag,
		.src = fab_ep_src(ep, msg->src),
	};

	if (__builtin_expect(fail || rx->rare || into->take < msg->len ||
			     (ops->unknown && ep->report.src_err && msg->src == FI_ADDR_NOTAVAIL), 0)) {
		const struct fab_into room = *into;
		struct fab_comp copy = comp;

		fab_rx_finish_rare(recv, ep, &room, &copy, msg, fail);
	} else {
		fab_ep_complete_to(ep, rx->code, &comp, fab_ep_rx_wants_comp(ep, rx->flags), NULL);
	}
	if (last)
		fab_rx_free_with(recv, rx, ops);
}

/*
 * Claim, fill and finish in one step: a posted receive takes a message, all of which is at payload. False: nothing was
 * done, since the receive is a multi-receive, memory of a device, too short, in several pieces, or for
 * fab_rx_finish_rare(). The receive is from recv->pool: not of a collective. msg->class may be a constant.
 */
FAB_RECV_PATH bool fab_rx_take_whole(struct fab_recv *recv, struct fab_ep *ep, struct fab_rx *rx,
				     const struct fab_msg *msg, const void *payload, const struct fab_recv_ops *ops)
{
	const enum fab_op_code code = FAB_OP_RECV + msg->class;
	struct fab_comp comp;

	if (__builtin_expect((rx->flags & FAB_RX_SPECIAL) || rx->iov_cnt != 1 || rx->rare || rx->len < msg->len ||
			     (ops->unknown && ep->report.src_err && msg->src == FI_ADDR_NOTAVAIL), 0))
		return false;
	FAB_PROBE2(match, rx->context, msg->len);
	comp = (struct fab_comp) {
		.context = rx->context, .flags = fab_op_desc[code].cq_flags | msg->flags, .len = msg->len,
		.buf = rx->own[0].iov_base, .data = msg->data, .tag = msg->tag, .src = fab_ep_src(ep, msg->src),
	};
	fab_match_unpost(&recv->queue[msg->class], &rx->posted);
	fab_copy_short(comp.buf, payload, msg->len);
	fab_ep_complete_to(ep, code, &comp, fab_ep_rx_wants_comp(ep, rx->flags), NULL);
	fab_pool_put(&recv->pool, rx);
	return true;
}

/* ---- kept messages ---- */

/* Keep a message until a receive takes it. The provider fills in the struct around *kept. src is a source of
 * matching. */
FAB_RECV_PATH void fab_recv_keep(struct fab_recv *recv, struct fab_kept *kept, const struct fab_msg *msg, fi_addr_t src)
{
	FAB_PROBE4(unexpected, kept, msg->src, msg->tag, msg->len);
	kept->into.rx = NULL;
	kept->tag = msg->tag;
	kept->data = msg->data;
	kept->len = msg->len;
	kept->flags = msg->flags;
	kept->class = msg->class;
	kept->place = FAB_KEPT_QUEUED;
	kept->match.tag = fab_msg_match_tag(msg);
	kept->match.src = src;
	fab_match_add_unexp(&recv->queue[msg->class], &kept->match);
}

/* Let a receive take a kept message. True: the receive is a multi-receive and still posted. */
FAB_RECV_PATH bool fab_kept_take_with(struct fab_recv *recv, struct fab_kept *kept, struct fab_rx *rx,
				      const struct fab_recv_ops *ops)
{
	bool more;

	FAB_PROBE2(taken, kept, rx->context);
	fab_kept_unlink(recv, kept);
	kept->place = FAB_KEPT_TAKEN;
	more = fab_rx_claim(recv, rx, kept->len, &kept->into);
	return ops->take(recv, kept) && more;
}

/* ---- posting ---- */

/* Fill in a new receive, except its vector and posted.seq. */
FAB_RECV_PATH void fab_rx_fill(struct fab_rx *rx, const struct fab_op *op, fi_addr_t src)
{
	rx->posted.tag = op->tag & ~op->ignore;
	rx->posted.ignore = op->ignore;
	rx->posted.src = src;
	rx->context = op->context;
	rx->flags = op->flags;
	rx->len = fab_iov_len(op->iov, op->iov_cnt);
	rx->iov_cnt = op->iov_cnt;
	rx->busy = 0;
	rx->code = op->code;
	rx->rare = op->hooked;
}

/* fab_rx_new() with constant operations, from the given pool. */
FAB_RECV_PATH int fab_rx_new_with(struct fab_recv *recv, struct fab_pool *pool, const struct fab_op *op, fi_addr_t src,
				  const struct fab_recv_ops *ops, struct fab_rx **new_rx)
{
	struct fab_rx *rx;

	if (op->iov_cnt > ops->iov_max || ((op->flags & FI_MULTI_RECV) && op->iov_cnt != 1))
		return -FI_EINVAL;
	rx = fab_pool_get(pool);
	if (!rx)
		return fab_pool_full(pool) ? -FI_EAGAIN : -FI_ENOMEM;
	rx->iov = rx->own;
	if (ops->iov_own < ops->iov_max && op->iov_cnt > ops->iov_own) {
		rx->iov = fab_pool_get(&recv->iov_pool);
		if (!rx->iov) {
			fab_pool_put(pool, rx);
			return -FI_ENOMEM;
		}
	}
	fab_rx_fill(rx, op, src);
	rx->posted.seq = 0;
	rx->posted.group = NULL;
	for (uint32_t i = 0; i < op->iov_cnt; i++) {
		rx->iov[i] = op->iov[i];
		if (ops->keeps_desc)
			fab_rx_desc(ops, rx)[i] = op->desc ? op->desc[i] : NULL;
	}
	*new_rx = rx;
	return 0;
}

/* Finds the oldest kept message for a receive, or NULL. */
typedef struct fab_kept *fab_recv_find_kept_fn(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src);
FAB_RECV_PATH struct fab_kept *fab_recv_find_kept(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src)
{
	struct fab_match *queue = fab_rx_queue(recv, op->code);
	struct fab_unexp *unexp = queue->unexp_cnt ? fab_match_find_unexp(queue, op->tag, op->ignore, src) : NULL;

	return unexp ? fab_container(unexp, struct fab_kept, match) : NULL;
}

/*
 * Post a receive without FI_PEEK, FI_CLAIM and FI_DISCARD (these: fab_recv_peek()). src is a source of matching; `find`
 * finds kept messages. The receive is allocated from pool. 0: one completion will follow, or has been written.
 * -FI_EAGAIN: the pool is used up; -FI_EINVAL, -FI_ENOMEM: nothing was done.
 */
FAB_RECV_PATH int fab_recv_post_with(struct fab_recv *recv, struct fab_pool *pool, const struct fab_op *op,
				     fi_addr_t src, fab_recv_find_kept_fn *find, const struct fab_recv_ops *ops)
{
	struct fab_kept *kept;
	struct fab_rx *rx;
	int ret;

	ret = fab_rx_new_with(recv, pool, op, src, ops, &rx);
	if (ret)
		return ret;
	recv->stats->posted[op->code - FAB_OP_RECV]++;
	kept = find(recv, op, src);
	if (!kept || (op->flags & FI_MULTI_RECV)) {
		ret = fab_match_post(fab_rx_queue(recv, op->code), &rx->posted);
		if (ret) {
			fab_rx_free_with(recv, rx, ops);
			return ret;
		}
	}
	/* a multi-receive may take several messages, and stay posted */
	while (kept && fab_kept_take_with(recv, kept, rx, ops))
		kept = find(recv, op, src);
	return 0;
}

/*
 * The same in two steps, for a receive with one buffer. The first makes no call, and the second none but its last, so
 * they fit into functions that save few registers. The first makes the receive, if the pool has one at hand, and no
 * message is kept; NULL: nothing was done, use fab_recv_post_with(). The second posts it and releases the lock, which
 * was taken by fab_engine_try_enter(). 0 or -FI_ENOMEM.
 */
FAB_RECV_PATH struct fab_rx *fab_recv_make_one(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src)
{
	struct fab_rx *rx;

	if (fab_rx_queue(recv, op->code)->unexp_cnt || !recv->pool.free)
		return NULL;
	rx = fab_pool_get(&recv->pool);
	rx->iov = rx->own;
	rx->own[0] = *op->iov;
	fab_rx_fill(rx, op, src);
	recv->stats->posted[op->code - FAB_OP_RECV]++;
	return rx;
}

FAB_RECV_PATH ssize_t fab_recv_post_one(struct fab_engine *engine, struct fab_recv *recv, struct fab_rx *rx,
					enum fab_op_code code)
{
	struct fab_match *queue = fab_rx_queue(recv, code);
	ssize_t ret;

	if (queue->rest_cnt < FAB_MATCH_FEW) {
		fab_match_post_rest(queue, &rx->posted);
		ret = fab_engine_return(engine, 0);
	} else {
		ret = fab_recv_post_grouped(engine, recv, rx);
	}
	if (ret > 0)
		__builtin_unreachable();	/* so that both are last calls */
	return ret;
}

#endif
