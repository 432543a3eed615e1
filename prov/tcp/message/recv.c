/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tcp's part of receives, on the common half (common/receive/recv.h): the endpoint that reports, sources with peer
 * groups and keys, receives of deferred work and of other providers. The engine lock is held in all functions except
 * tcp_post_recv(), which takes it.
 */
#include "tcp/message/msg.h"
#include <errno.h>
#include <string.h>
#include "common/av/av.h"
#include "common/memory/memory.h"
#include "common/trigger/trigger.h"
#include "tcp/params/params.h"

void tcp_fail_unknown(struct tcp_ep *ep, enum fab_op_code code, struct fab_comp *comp, const struct tcp_conn *conn)
{
	const union fab_sockaddr *addr = conn ? &conn->addr : NULL;

	if (conn && ep->base.bound.av->keys)
		comp->src = fab_av_key_name(ep->base.bound.av, conn->auth_key);
	fab_ep_fail(&ep->base, code, comp, &(struct fab_cq_fail) {
		    .err = FI_EADDRNOTAVAIL, .prov_errno = FI_EADDRNOTAVAIL, .err_data = addr,
		    .err_data_len = addr ? fab_addr_len(&addr->sa) : 0,
		    .text = "the data has arrived, but its sender is not in the address vector; err_data has the "
		    	"sender's address" });
}

void tcp_recv_unknown(struct fab_ep *ep, enum fab_op_code code, struct fab_comp *comp, const struct fab_msg *msg)
{
	const struct tcp_conn *conn = fab_container(msg, const struct tcp_msg, base)->conn;

	tcp_fail_unknown(fab_container(ep, struct tcp_ep, base), code, comp, conn);
}

void tcp_rx_finish(struct tcp_ep *ep, const struct fab_into *into, const struct tcp_msg *msg,
		   const struct fab_cq_fail *fail)
{
	fab_recv_count(msg->conn ? msg->conn->stats : &ep->base.stats->rest, into, &msg->base, fail);
	fab_rx_finish_with(tcp_recv_of(ep, msg->base.class), &ep->base, into, &msg->base, fail, &tcp_recv_ops);
}

/* A shared context has no queue, so the endpoint bound first reports receives without a message. */
struct fab_ep *tcp_recv_reporter(const struct fab_recv *recv, const struct fab_kept *kept)
{
	const struct tcp_unexp *unexp = kept ? fab_container(kept, const struct tcp_unexp, base) : NULL;
	const struct tcp_rx_ctx *ctx = fab_container(recv, const struct tcp_rx_ctx, recv);

	if (unexp && !unexp->foreign)
		return &unexp->ep->base;
	return fab_list_empty(&ctx->users) ? recv->ep : &fab_list_first(&ctx->users, struct tcp_ep, shared.link)->base;
}

void tcp_rx_name_orphans(struct tcp_ep *ep, const union fab_sockaddr *addr, fi_addr_t fi_addr)
{
	struct fab_list *link;

	fab_list_for_each(fab_table_bucket(&ep->rx->orphans, fab_addr_hash(&addr->sa)), link) {
		struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, orphan.link);

		if (fab_addr_equal(&unexp->from.sa, &addr->sa))
			tcp_unexp_set_src(ep, unexp, fi_addr);
	}
}

void tcp_rx_named(struct tcp_ep *ep, fi_addr_t fi_addr)
{
	if (!ep->rx->named)
		return;
	ep->rx->named = false;
	for (enum fab_msg_class class = 0; class < FAB_CLASS_MAX; class++)
		fab_recv_named(tcp_recv_of(ep, class), class, fi_addr);
}

/* ---- posting ---- */

/* Post a receive with a flag for a rare case. */
static __attribute__((noinline, cold)) int rx_post_rare(struct tcp_ep *ep, const struct fab_op *op)
{
	if ((op->flags & FI_TRIGGER) && ep->rx->export_cnt && op->hooked) {
		TCP_WARN(FI_LOG_EP_DATA, "FI_QUEUE_WORK: deferred receives are not possible on an exported context "
			 "(fi_export_fid), because another provider may report the completion\n");
		return -FI_EOPNOTSUPP;
	}
	if (op->flags & FI_TRIGGER)
		return fab_trigger_op(&ep->base, op, tcp_post_recv_locked);
	if (op->flags & FI_AUTH_KEY)
		return tcp_keyed_post(ep, op);
	if ((op->flags & FI_PEEK) && ep->rx->recv.grouped && !tcp_group_valid(ep, op->addr))
		return -FI_EINVAL;
	return fab_recv_peek(&ep->rx->recv, op, tcp_ep_recv_src(ep, op->addr));
}

static int rx_post_hmem(struct tcp_ep *ep, const struct fab_op *op);

/* marked: with FI_HMEM, the flags tell whether buffers are memory of a device. */
static inline __attribute__((always_inline))
int rx_post_marked(struct tcp_ep *ep, const struct fab_op *op, bool marked)
{
	if (!ep->base.enabled || ep->detours || (ep->conn && ep->conn->state == TCP_CONN_DOWN)) {
		if (ep->detours != TCP_EP_HMEM || !ep->base.enabled ||
		    (ep->conn && ep->conn->state == TCP_CONN_DOWN))
			return -FI_EOPBADSTATE;
		if (!marked)
			return rx_post_hmem(ep, op);
	}
	if (op->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER | FI_AUTH_KEY))
		return rx_post_rare(ep, op);
	if (__builtin_expect(ep->rx->recv.grouped, 0) && !tcp_group_valid(ep, op->addr))
		return -FI_EINVAL;
	if (__builtin_expect(op->code == FAB_OP_CRECV, 0))
		return fab_recv_post_coll(&ep->own_rx.recv, op, tcp_match_src(ep, op->addr, 0));
	return fab_recv_post_with(&ep->rx->recv, &ep->rx->recv.pool, op, tcp_ep_recv_src(ep, op->addr),
				  fab_recv_find_kept, &tcp_recv_ops);
}

static inline __attribute__((always_inline)) int rx_post(struct tcp_ep *ep, const struct fab_op *op)
{
	return rx_post_marked(ep, op, false);
}

static __attribute__((noinline)) int rx_post_hmem(struct tcp_ep *ep, const struct fab_op *op)
{
	struct fab_op marked = *op;
	int ret = fab_mr_mark(op->desc, op->iov_cnt, &marked.flags);

	return ret ? ret : rx_post_marked(ep, &marked, true);
}

int tcp_post_recv_locked(struct fab_ep *base, const struct fab_op *op)
{
	return rx_post(fab_container(base, struct tcp_ep, base), op);
}

ssize_t tcp_post_recv(struct tcp_ep *ep, const struct fab_op *op)
{
	struct fab_engine *engine = ep->base.engine;
	int ret;

	fab_engine_enter(engine);
	ret = rx_post(ep, op);
	fab_engine_unlock(engine);
	return ret;
}

/* ---- init and fini ---- */

int tcp_rx_ctx_init(struct tcp_rx_ctx *ctx, struct tcp_ep *ep, const struct fi_rx_attr *attr)
{
	int ret;

	if (fab_table_init(&ctx->orphans))
		return -FI_ENOMEM;
	ret = fab_recv_init(&ctx->recv, &ep->base, attr->size, &tcp_recv_ops);
	if (ret) {
		fab_table_fini(&ctx->orphans);
		return ret;
	}
	fab_pool_init(&ctx->unexp_pool, &(struct fab_pool_attr) { .size = sizeof(struct tcp_unexp), .chunk_cnt = 16 });
	tcp_account_init(&ctx->account);
	fab_list_init(&ctx->users);
	return 0;
}

static void rx_drop_of(struct fab_recv *recv, struct fab_kept *kept, void *ep)
{
	struct tcp_unexp *unexp = fab_container(kept, struct tcp_unexp, base);

	if (unexp->ep != ep)
		return;
	fab_kept_unlink(recv, kept);
	tcp_unexp_free(unexp);
}

void tcp_rx_drop_unexp(struct tcp_ep *ep)
{
	fab_recv_each_kept(&ep->rx->recv, rx_drop_of, ep);
	if (ep->rx != &ep->own_rx)
		fab_recv_each_kept(&ep->own_rx.recv, rx_drop_of, ep);
}

void tcp_rx_ctx_fini(struct tcp_rx_ctx *ctx)
{
	fab_recv_fini(&ctx->recv);
	tcp_account_fini(&ctx->account);
	fab_pool_fini(&ctx->unexp_pool);
	fab_table_fini(&ctx->orphans);
	fab_table_fini(&ctx->announced);
	fab_table_fini(&ctx->grouped);
}
