/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posted receives: from fi_recv and its kin until their completion. Engine lock held by all but tcp_post_recv(),
 * which takes it.
 *
 * prov/common/receive/recv.c is the same for providers whose messages are there when they look for a receive; why there
 * are two, and what keeps them in step: doc/decisions/receives.md.
 *
 * A receive is posted, claimed by a message (tcp_rx_claim), finished (tcp_rx_finish). A multi-receive stays posted
 * and is claimed part by part until less than FI_OPT_MIN_MULTI_RECV is left.
 */
#include "tcp/message/msg.h"
#include <errno.h>
#include <string.h>
#include "common/av/av.h"
#include "common/trigger/trigger.h"
#include "tcp/params/params.h"

static enum tcp_class class_of(enum fab_op_code code)
{
	return code == FAB_OP_RECV ? TCP_CLASS_MSG : code == FAB_OP_TRECV ? TCP_CLASS_TAGGED : TCP_CLASS_COLL;
}

struct tcp_rx *tcp_rx_find(struct tcp_conn *conn, enum tcp_class class, uint64_t tag, uint32_t group)
{
	fi_addr_t src = tcp_match_src(conn->ep, conn->fi_addr, group);
	struct fab_posted *posted = fab_match_find_posted(tcp_rx_queue(conn->ep, class), tag, src);
	struct tcp_rx *rx = posted ? fab_container(posted, struct tcp_rx, posted) : NULL;

	return __builtin_expect(conn->ep->rx->keyed, 0) && !group ? tcp_keyed_find(conn, class, tag, rx) : rx;
}

void tcp_rx_free(struct tcp_rx_ctx *ctx, struct tcp_rx *rx)
{
	if (rx->iov != rx->own)
		fab_pool_put(&ctx->iov_pool, rx->iov);
	fab_pool_put(rx->code == FAB_OP_CRECV ? &ctx->coll_pool : &ctx->pool, rx);
}

static void rx_unpost(struct tcp_ep *ep, struct tcp_rx *rx)
{
	fab_match_unpost(tcp_rx_queue(ep, class_of(rx->code)), &rx->posted);
	rx->unposted = true;
}

bool tcp_rx_claim(struct tcp_ep *ep, struct tcp_rx *rx, uint64_t len, struct tcp_into *into)
{
	into->rx = rx;
	into->start = rx->iov_cnt ? rx->iov[0].iov_base : NULL;
	into->take = len < rx->len ? len : rx->len;
	rx->busy++;
	if (rx->flags & FI_MULTI_RECV) {
		/* one buffer, filled from the front */
		rx->iov[0].iov_base = into->start + into->take;
		rx->iov[0].iov_len -= into->take;
		rx->len -= into->take;
		if (rx->len && rx->len >= ep->rx->min_multi_recv)
			return true;
	}
	if (!rx->unposted)
		rx_unpost(ep, rx);
	return false;
}

void tcp_fail_unknown(struct tcp_ep *ep, enum fab_op_code code, struct fab_comp *comp, const struct tcp_conn *conn)
{
	const union fab_sockaddr *addr = conn ? &conn->addr : NULL;

	if (conn && ep->base.av->keys)
		comp->src = fab_av_key_name(ep->base.av, conn->auth_key);
	fab_ep_fail(&ep->base, code, comp, &(struct fab_cq_fail) {
		    .err = FI_EADDRNOTAVAIL, .prov_errno = FI_EADDRNOTAVAIL, .err_data = addr,
		    .err_data_len = addr ? fab_addr_len(&addr->sa) : 0,
		    .text = "the data is here; its sender is not in the address vector, err_data has its address" });
}

/* A failure, if fail is not NULL; or what somebody else than the endpoint is to hear of; or a message of a stranger. */
static void rx_finish_rare(struct tcp_ep *ep, struct tcp_rx *rx, struct fab_comp *comp, const struct tcp_msg *msg,
			   const struct fab_cq_fail *fail)
{
	struct fab_hook *hook = rx->context;

	if (rx->hooked)
		hook->done(hook, rx->code, comp, fail);
	else if (fail)
		fab_ep_fail(&ep->base, rx->code, comp, fail);
	else
		tcp_fail_unknown(ep, rx->code, comp, msg->conn);
}

void tcp_rx_finish(struct tcp_ep *ep, const struct tcp_into *into, const struct tcp_msg *msg,
		   const struct fab_cq_fail *fail)
{
	struct fab_cq_fail trunc = {
		.err = FI_ETRUNC, .prov_errno = FI_ETRUNC, .olen = msg->len - into->take,
		.text = "the message is longer than the receive buffer",
	};
	struct tcp_rx *rx = into->rx;
	bool last = !--rx->busy && rx->unposted;
	struct fab_comp comp = {
		.context = rx->context,
		.flags = fab_op_desc[rx->code].cq_flags | (msg->has_data ? FI_REMOTE_CQ_DATA : 0) |
			 (msg->layered ? FI_TAGGED : 0),
		.len = into->take,
		.buf = into->start,
		.data = msg->data,
		.tag = msg->tag,
		.src = tcp_ep_src(ep, msg->src),
	};

	if (last && (rx->flags & FI_MULTI_RECV))
		comp.flags |= FI_MULTI_RECV;
	if (!fail && into->take < msg->len)
		fail = &trunc;
	if (__builtin_expect(fail || rx->hooked || (ep->src_err && msg->src == FI_ADDR_NOTAVAIL), 0))
		rx_finish_rare(ep, rx, &comp, msg, fail);
	else
		fab_ep_complete(&ep->base, rx->code, &comp, fab_ep_rx_wants_comp(&ep->base, rx->flags));
	if (last)
		tcp_rx_free(ep->rx, rx);
}

struct tcp_ep *tcp_rx_reporter(struct tcp_ep *ep)
{
	return fab_list_empty(&ep->rx->users) ? ep : fab_list_first(&ep->rx->users, struct tcp_ep, shared.link);
}

/* Complete a posted receive, which no message has taken, in error. */
static void rx_fail_posted(struct tcp_ep *ep, struct tcp_rx *rx, int err)
{
	struct tcp_msg msg = { .src = FI_ADDR_NOTAVAIL };
	struct tcp_into into = { .rx = rx };

	rx_unpost(ep, rx);
	rx->busy++;
	tcp_rx_finish(tcp_rx_reporter(ep), &into, &msg, &(struct fab_cq_fail) { .err = err, .prov_errno = err });
}

static bool rx_cancel(struct tcp_ep *ep, struct fab_match *match, const void *context, bool hooked)
{
	struct fab_list *link;

	fab_list_for_each(&match->posted_order, link) {
		struct tcp_rx *rx = fab_container(link, struct tcp_rx, posted.order);

		if (rx->context == context && rx->hooked == hooked) {
			rx_fail_posted(ep, rx, FI_ECANCELED);
			return true;
		}
	}
	return false;
}

bool tcp_rx_cancel(struct tcp_ep *ep, void *context)
{
	if (ep->shared.srx)
		return false;
	return rx_cancel(ep, &ep->rx->tagged, context, false) || rx_cancel(ep, &ep->rx->msg, context, false);
}

bool tcp_rx_cancel_coll(struct tcp_ep *ep, struct fab_hook *hook)
{
	return rx_cancel(ep, &ep->own_rx.coll, hook, true);
}

static void rx_flush(struct tcp_ep *ep, struct fab_match *match, int err)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(&match->posted_order, link, next)
		rx_fail_posted(ep, fab_container(link, struct tcp_rx, posted.order), err);
}

void tcp_rx_flush(struct tcp_ep *ep, int err)
{
	rx_flush(ep, &ep->own_rx.coll, err);
	if (ep->shared.srx)
		return;
	rx_flush(ep, &ep->rx->msg, err);
	rx_flush(ep, &ep->rx->tagged, err);
}

void tcp_rx_name_orphans(struct tcp_ep *ep, const union fab_sockaddr *addr, fi_addr_t fi_addr)
{
	struct fab_list *link;

	fab_list_for_each(&ep->rx->orphans, link) {
		struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, link);

		if (fab_addr_equal(&unexp->from.sa, &addr->sa))
			tcp_unexp_set_src(ep, unexp, fi_addr);
	}
}

/* ---- posting ---- */

int tcp_rx_enqueue(struct tcp_ep *ep, struct fab_match *queue, struct tcp_rx *rx)
{
	int ret;

	rx->unposted = false;
	ret = fab_match_post(queue, &rx->posted);
	if (ret)
		tcp_rx_free(ep->rx, rx);
	return ret;
}

int tcp_rx_new(struct tcp_ep *ep, const struct fab_op *op, struct tcp_rx **new_rx)
{
	struct fab_pool *pool;
	struct tcp_rx *rx;

	if (op->iov_cnt > TCP_IOV_LIMIT || ((op->flags & FI_MULTI_RECV) && op->iov_cnt != 1))
		return -FI_EINVAL;
	pool = op->code == FAB_OP_CRECV ? &ep->rx->coll_pool : &ep->rx->pool;
	rx = fab_pool_get(pool);
	if (!rx)
		return fab_pool_full(pool) ? -FI_EAGAIN : -FI_ENOMEM;
	rx->iov = op->iov_cnt <= TCP_RX_IOV ? rx->own : fab_pool_get(&ep->rx->iov_pool);
	if (!rx->iov) {
		fab_pool_put(pool, rx);
		return -FI_ENOMEM;
	}
	rx->posted.tag = op->tag & ~op->ignore;
	rx->posted.ignore = op->ignore;
	rx->posted.src = op->code == FAB_OP_CRECV ? tcp_match_src(ep, op->addr, 0) : tcp_ep_recv_src(ep, op->addr);
	rx->context = op->context;
	rx->flags = op->flags;
	rx->len = fab_iov_len(op->iov, op->iov_cnt);
	rx->iov_cnt = op->iov_cnt;
	rx->busy = 0;
	rx->code = op->code;
	rx->unposted = true;
	rx->hooked = op->hooked;
	fab_iov_copy(rx->iov, op->iov, op->iov_cnt);
	*new_rx = rx;
	return 0;
}

/* What is no plain receive. */
static int rx_post_rare(struct tcp_ep *ep, const struct fab_op *op)
{
	if ((op->flags & FI_TRIGGER) && ep->rx->export_cnt && fab_trigger_is_deferred(op)) {
		TCP_WARN(FI_LOG_EP_DATA, "FI_QUEUE_WORK: a receive of a context that is exported (fi_export_fid): "
			 "another provider may report its end, which the work would not hear of\n");
		return -FI_EOPNOTSUPP;
	}
	if (op->flags & FI_TRIGGER)
		return fab_trigger_op(&ep->base, op, tcp_post_recv_locked);
	return op->flags & FI_AUTH_KEY ? tcp_keyed_post(ep, op) : tcp_peek(ep, op);
}

int tcp_post_recv_locked(struct fab_ep *base, const struct fab_op *op)
{
	struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);
	struct fab_match *queue = tcp_rx_queue(ep, class_of(op->code));
	struct fab_unexp *unexp = NULL;
	struct tcp_rx *rx;
	fi_addr_t src;
	int ret;

	if (!ep->base.enabled || ep->closing || (ep->conn && ep->conn->state == TCP_CONN_DOWN))
		return -FI_EOPBADSTATE;
	if (op->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER | FI_AUTH_KEY))
		return rx_post_rare(ep, op);
	if (__builtin_expect(ep->rx->grouped, 0) && !tcp_group_valid(ep, op->addr))
		return -FI_EINVAL;
	ret = tcp_rx_new(ep, op, &rx);
	if (ret)
		return ret;
	src = rx->posted.src;
	if (queue->unexp_cnt)
		unexp = fab_match_find_unexp(queue, op->tag, op->ignore, src);
	if (!unexp || (op->flags & FI_MULTI_RECV)) {
		ret = tcp_rx_enqueue(ep, queue, rx);
		if (ret)
			return ret;
	}
	/* a multi-receive may take several, and still be posted for more */
	while (unexp && tcp_unexp_take(fab_container(unexp, struct tcp_unexp, match), rx))
		unexp = fab_match_find_unexp(queue, op->tag, op->ignore, src);
	return 0;
}

ssize_t tcp_post_recv(struct tcp_ep *ep, const struct fab_op *op)
{
	struct fab_engine *engine = ep->base.engine;
	int ret;

	fab_engine_enter(engine);
	ret = tcp_post_recv_locked(&ep->base, op);
	fab_engine_unlock(engine);
	return ret;
}

/* ---- life ---- */

int tcp_rx_ctx_init(struct tcp_rx_ctx *ctx, const struct fi_rx_attr *attr)
{
	int ret;

	ret = fab_match_init(&ctx->msg);
	if (ret)
		return ret;
	ret = fab_match_init(&ctx->tagged);
	if (ret)
		goto fini_msg;
	fab_pool_init(&ctx->pool, &(struct fab_pool_attr) { .size = sizeof(struct tcp_rx), .max_cnt = attr->size,
		      .chunk_cnt = 16 });
	fab_match_init(&ctx->coll);
	fab_pool_init(&ctx->coll_pool, &(struct fab_pool_attr) { .size = sizeof(struct tcp_rx), .chunk_cnt = 4 });
	fab_pool_init(&ctx->iov_pool, &(struct fab_pool_attr) { .size = TCP_IOV_LIMIT * sizeof(struct iovec),
		      .chunk_cnt = 4 });
	fab_pool_init(&ctx->unexp_pool, &(struct fab_pool_attr) { .size = sizeof(struct tcp_unexp), .chunk_cnt = 16 });
	fab_list_init(&ctx->claimed);
	fab_list_init(&ctx->orphans);
	fab_list_init(&ctx->strangers);
	fab_list_init(&ctx->users);
	ctx->min_multi_recv = TCP_MIN_MULTI_RECV;
	return 0;

fini_msg:
	fab_match_fini(&ctx->msg);
	return ret;
}

static void drop_unexp(struct tcp_ep *ep, struct fab_list *order)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(order, link, next) {
		struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, match.order);

		if (unexp->ep != ep)
			continue;
		tcp_unexp_unlink(unexp);
		tcp_unexp_free(unexp);
	}
}

void tcp_rx_drop_unexp(struct tcp_ep *ep)
{
	drop_unexp(ep, &ep->rx->msg.unexp_order);
	drop_unexp(ep, &ep->rx->tagged.unexp_order);
	drop_unexp(ep, &ep->rx->claimed);
	drop_unexp(ep, &ep->own_rx.coll.unexp_order);
}

void tcp_rx_ctx_fini(struct tcp_rx_ctx *ctx)
{
	fab_match_fini(&ctx->tagged);
	fab_match_fini(&ctx->msg);
	fab_match_fini(&ctx->coll);
	fab_pool_fini(&ctx->coll_pool);
	fab_pool_fini(&ctx->unexp_pool);
	fab_pool_fini(&ctx->iov_pool);
	fab_pool_fini(&ctx->pool);
}
