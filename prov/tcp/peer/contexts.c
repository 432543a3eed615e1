/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See contexts.h. Every live receive context listens on its own engine, on a duplicate of the one socket. The context
 * whose engine runs first accepts a connection and reads its request. The context named in the request gets it at once,
 * or through its inbox if it is on another engine (FI_THREAD_COMPLETION).
 */
#include "tcp/peer/contexts.h"

#include <errno.h>
#include "tcp/peer/peers.h"
#include "tcp/sock/sock.h"

static struct tcp_sep_slot *sep_slot_of(const struct tcp_ep *ctx)
{
	const struct tcp_sep *sep = ctx->context.sep;

	return tcp_ep_is_tx_ctx(ctx) ? &sep->tx[ctx->context.number] : &sep->rx[ctx->context.number];
}

/* ---- the address ---- */

int tcp_sep_bind(struct tcp_sep *sep)
{
	int ret = 0;

	pthread_mutex_lock(&sep->lock);
	if (sep->fd < 0)
		sep->fd = ret = tcp_sock_bind(&sep->ep.base.name, &sep->ep.base.name);
	pthread_mutex_unlock(&sep->lock);
	return ret < 0 ? ret : 0;
}

int tcp_sep_join(struct tcp_ep *ctx)
{
	struct tcp_sep *sep = ctx->context.sep;
	int ret;

	if (!ctx->base.bound.av && sep->ep.base.bound.av) {
		fab_av_get(sep->ep.base.bound.av);
		ctx->base.bound.av = sep->ep.base.bound.av;
	}
	if (!ctx->base.bound.eq && sep->ep.base.bound.eq) {
		fab_eq_get(sep->ep.base.bound.eq);
		ctx->base.bound.eq = sep->ep.base.bound.eq;
	}
	ret = tcp_sep_bind(sep);
	ctx->base.name = sep->ep.base.name;
	return ret;
}

int tcp_sep_fd(const struct tcp_ep *ctx)
{
	int fd = fab_sock->dup(ctx->context.sep->fd);

	return fd < 0 ? -errno : fd;
}

/* ---- requests ---- */

static struct tcp_cm *sep_inbox_pop(struct tcp_sep *sep, struct tcp_sep_slot *slot)
{
	struct fab_list *link;

	pthread_mutex_lock(&sep->lock);
	link = fab_list_pop_front(&slot->inbox);
	pthread_mutex_unlock(&sep->lock);
	return link ? fab_container(link, struct tcp_cm, link) : NULL;
}

static void sep_woken(struct fab_bell *wake)
{
	struct tcp_sep_slot *slot = fab_container(wake, struct tcp_sep_slot, wake);
	struct tcp_ep *ctx = slot->open;
	struct tcp_cm *cm;

	while ((cm = sep_inbox_pop(ctx->context.sep, slot))) {
		tcp_peer_requested(ctx->rdm.peers, cm);
		tcp_cm_free(cm);
	}
}

/* Pass a request to another engine. sep->lock held. False: no memory, or the engine cannot be woken. */
static bool sep_pass_on(struct tcp_sep_slot *slot, struct tcp_cm *cm)
{
	struct tcp_cm *passed = tcp_cm_pass(cm, slot->live->base.engine);

	if (!passed)
		return false;
	fab_list_add_tail(&slot->inbox, &passed->link);
	fab_bell_ring(&slot->wake);
	return true;
}

struct tcp_peer_table *tcp_sep_route(struct tcp_ep *ctx, struct tcp_cm *cm, uint16_t rx_ctx)
{
	struct tcp_sep *sep = ctx->context.sep;
	struct tcp_peer_table *table = NULL;
	struct tcp_sep_slot *slot;
	bool taken = false;

	if (!cm->peer.ext || rx_ctx >= sep->rx_cnt) {
		tcp_request_refuse(ctx, cm, cm->peer.ext ? TCP_REFUSE_NO_CTX : TCP_REFUSE_NO_EXT);
		return NULL;
	}
	pthread_mutex_lock(&sep->lock);
	slot = &sep->rx[rx_ctx];
	if (slot->live && slot->live->base.engine == ctx->base.engine)
		table = slot->live->rdm.peers;
	else if (slot->live)
		taken = sep_pass_on(slot, cm);
	pthread_mutex_unlock(&sep->lock);
	/* not enabled yet, or closed: the peer may try again later */
	if (!table && !taken)
		tcp_request_refuse(ctx, cm, 0);
	return table;
}

int tcp_sep_live(struct tcp_ep *ctx)
{
	struct fab_engine *engine = ctx->base.engine;
	struct tcp_sep_slot *slot = sep_slot_of(ctx);
	int ret = 0;

	if (tcp_ep_is_tx_ctx(ctx))
		return 0;
	if (ctx->base.domain->engines.per_queue) {
		fab_engine_lock(engine);
		ret = fab_bell_open(&slot->wake, engine, sep_woken);
		fab_engine_unlock(engine);
	}
	if (ret)
		return ret;
	pthread_mutex_lock(&ctx->context.sep->lock);
	slot->live = ctx;
	pthread_mutex_unlock(&ctx->context.sep->lock);
	return 0;
}

void tcp_sep_leave(struct tcp_ep *ctx)
{
	struct fab_engine *engine = ctx->base.engine;
	struct tcp_sep_slot *slot = sep_slot_of(ctx);
	struct tcp_cm *cm;

	pthread_mutex_lock(&ctx->context.sep->lock);
	slot->live = NULL;
	pthread_mutex_unlock(&ctx->context.sep->lock);
	fab_engine_lock(engine);
	while ((cm = sep_inbox_pop(ctx->context.sep, slot)))
		tcp_cm_free(cm);
	fab_bell_close(&slot->wake);
	fab_engine_unlock(engine);
}

struct tcp_ep *tcp_sep_mate(const struct tcp_ep *ctx)
{
	struct tcp_sep *sep = ctx->context.sep;
	struct tcp_ep *mate;

	pthread_mutex_lock(&sep->lock);
	mate = ctx->context.number < sep->rx_cnt ? sep->rx[ctx->context.number].live : NULL;
	pthread_mutex_unlock(&sep->lock);
	return mate;
}

void tcp_sep_closed(struct tcp_ep *ctx)
{
	pthread_mutex_lock(&ctx->context.sep->lock);
	sep_slot_of(ctx)->open = NULL;
	pthread_mutex_unlock(&ctx->context.sep->lock);
}
