/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See owner.h. A message known to the owner, from its arrival until its entry is returned:
 *
 *   receive found  -> TAKEN -> its hook reports, and returns the entry
 *   none           -> QUEUED -> start or discard is recorded -> TAKEN, or dropped
 *                        \-- its connection or endpoint ends: the entry is returned; if start was called before, it
 *                            ends with an error
 */
#include "tcp/lent/owner.h"

#include <pthread.h>
#include <stdlib.h>
#include "base/bits.h"
#include "tcp/lent/exported.h"
#include "tcp/params/params.h"

/* Guarded by the engine's lock, except where a member says otherwise. */
struct owner {
	struct tcp_owner base;
	struct fid_peer_srx *srx;	/* borrowed */
	struct fab_pool pool;		/* struct tcp_owned */
	struct fab_list all;		/* struct tcp_owned.all */
	struct fab_bell bell;		/* rung by the owner's calls; opened when the first message waits */
	pthread_mutex_t lock;		/* guards told, and records in its entries; taken last */
	struct fab_list told;		/* struct tcp_owned.told: calls of the owner that were recorded */
};

struct tcp_owned {
	struct fab_hook hook;		/* of the receive */
	struct fab_list all, told;
	struct owner *owner;
	struct fi_peer_rx_entry *entry;	/* the owner's */
	struct tcp_ep *ep;		/* borrowed: returns its entries before it closes */
	struct tcp_unexp *unexp;	/* QUEUED; NULL: freed */
	uint8_t code;			/* FAB_OP_RECV, FAB_OP_TRECV */
	bool discard, gone;		/* recorded under owner->lock; gone: a call of the owner comes too late */
};

static struct tcp_owned *owned_new(struct owner *owner, struct tcp_ep *ep, struct fi_peer_rx_entry *entry,
				   enum fab_msg_class class)
{
	struct tcp_owned *owned = fab_pool_get(&owner->pool);

	if (!owned)
		return NULL;
	*owned = (struct tcp_owned) { .owner = owner, .entry = entry, .ep = ep,
				      .code = class == FAB_CLASS_TAGGED ? FAB_OP_TRECV : FAB_OP_RECV };
	fab_list_init(&owned->told);
	fab_list_add_tail(&owner->all, &owned->all);
	return owned;
}

static void owned_free(struct tcp_owned *owned)
{
	struct owner *owner = owned->owner;

	owner->srx->owner_ops->free_entry(owned->entry);
	fab_list_remove(&owned->all);
	fab_pool_put(&owner->pool, owned);
}

/* ---- receives ---- */

static void owned_done(struct fab_hook *hook, enum fab_op_code code, const struct fab_comp *comp,
		       const struct fab_cq_fail *fail)
{
	struct tcp_owned *owned = fab_container(hook, struct tcp_owned, hook);
	struct fab_comp mine = *comp;

	mine.context = owned->entry->context;
	mine.flags |= owned->entry->flags & ~(uint64_t) FI_COMPLETION;
	if (fail)
		fab_ep_fail(&owned->ep->base, code, &mine, fail);
	else
		fab_ep_complete(&owned->ep->base, code, &mine,
				fab_ep_rx_wants_comp(&owned->ep->base, owned->entry->flags));
	owned_free(owned);
}

/* Make a receive of ours for the owner's entry. NULL: no memory. */
static struct fab_rx *owned_rx(struct tcp_owned *owned)
{
	const struct fi_peer_rx_entry *entry = owned->entry;
	struct fab_rx *rx;

	owned->hook.done = owned_done;
	return fab_rx_new(&owned->ep->rx->recv, &(struct fab_op) {
		.code = owned->code, .hooked = true, .accepted = true, .iov = entry->iov,
		.iov_cnt = (uint32_t) entry->count, .context = &owned->hook,
	}, FI_ADDR_UNSPEC, &rx) ? NULL : rx;
}

static void owned_fail(struct tcp_owned *owned, int err)
{
	const struct fab_comp comp = { .flags = fab_op_desc[owned->code].cq_flags, .src = FI_ADDR_NOTAVAIL };

	owned_done(&owned->hook, owned->code, &comp, &(struct fab_cq_fail) { .err = err, .prov_errno = err,
		   .text = "the message was announced, but its connection has ended" });
}

/* The source for the owner: the user id, if the owner has set one (FI_AV_USER_ID). A sender in no address vector still
 * has its group. */
static fi_addr_t owner_src(const struct tcp_ep *ep, fi_addr_t src, uint32_t group)
{
	if (src != FI_ADDR_NOTAVAIL && ep->base.bound.av)
		src = fab_av_user_id(ep->base.bound.av, src);
	return fi_group_addr(group && src == FI_ADDR_NOTAVAIL ? UINT32_MAX : src, group);
}

static struct owner *owner_of(struct tcp_owner *base)
{
	return fab_container(base, struct owner, base);
}

static struct fab_rx *owner_find(struct tcp_conn *conn, const struct tcp_msg *msg, struct fi_peer_rx_entry **entry)
{
	struct owner *owner = owner_of(conn->ep->rx->owner);
	struct fi_ops_srx_owner *ops = owner->srx->owner_ops;
	struct fi_peer_match_attr attr = {
		.addr = owner_src(conn->ep, msg->base.src, msg->group), .msg_size = msg->base.len,
		.tag = msg->base.tag,
	};
	struct tcp_owned *owned;
	struct fab_rx *rx;
	int ret;

	*entry = NULL;
	ret = msg->base.class == FAB_CLASS_TAGGED ? ops->get_tag(owner->srx, &attr, entry) :
					       ops->get_msg(owner->srx, &attr, entry);
	if (ret == -FI_ENOENT)
		return NULL;
	owned = ret ? NULL : owned_new(owner, conn->ep, *entry, msg->base.class);
	rx = owned ? owned_rx(owned) : NULL;
	if (!rx && owned)
		owned_free(owned);
	else if (!rx && !ret)
		ops->free_entry(*entry);
	*entry = NULL;
	if (rx)
		return rx;
	tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory for a receive of the owner");
	return NULL;
}

/* ---- messages that wait ---- */

static void owned_take(struct tcp_owned *owned)
{
	struct tcp_unexp *unexp = owned->unexp;
	struct fab_rx *rx;

	if (!unexp) {
		owned_fail(owned, FI_ECONNRESET);
		return;
	}
	unexp->owned = NULL;
	owned->unexp = NULL;
	rx = owned_rx(owned);
	if (rx) {
		tcp_unexp_take(unexp, rx);
	} else {
		tcp_unexp_drop(unexp);
		owned_fail(owned, FI_ENOMEM);
	}
}

static void owned_drop(struct tcp_owned *owned)
{
	struct tcp_unexp *unexp = owned->unexp;

	if (unexp) {
		unexp->owned = NULL;
		tcp_unexp_drop(unexp);
	}
	owned_free(owned);
}

static struct tcp_owned *owner_next_told(struct owner *owner)
{
	struct fab_list *link;

	pthread_mutex_lock(&owner->lock);
	link = fab_list_pop_front(&owner->told);
	pthread_mutex_unlock(&owner->lock);
	return link ? fab_container(link, struct tcp_owned, told) : NULL;
}

static void owner_rung(struct fab_bell *bell)
{
	struct owner *owner = fab_container(bell, struct owner, bell);
	struct tcp_owned *owned;

	while ((owned = owner_next_told(owner))) {
		if (owned->discard)
			owned_drop(owned);
		else
			owned_take(owned);
	}
}

/* Record a call of the owner, who holds none of our locks and perhaps one of its own. */
static int owner_tell(struct fi_peer_rx_entry *entry, bool discard)
{
	struct tcp_owned *owned = entry->peer_context;
	struct owner *owner = owned->owner;
	bool gone;

	pthread_mutex_lock(&owner->lock);
	gone = owned->gone;
	if (!gone) {
		owned->discard = discard;
		fab_list_add_tail(&owner->told, &owned->told);
		fab_bell_ring(&owner->bell);
	}
	pthread_mutex_unlock(&owner->lock);
	return gone && !discard ? -FI_ECONNRESET : 0;
}

/* Withdraw a message from the owner. False: the owner has called before. */
static bool owned_withdraw(struct tcp_owned *owned)
{
	struct owner *owner = owned->owner;

	pthread_mutex_lock(&owner->lock);
	owned->gone = fab_list_empty(&owned->told);
	pthread_mutex_unlock(&owner->lock);
	return owned->gone;
}

static int owner_start(struct fi_peer_rx_entry *entry)
{
	return owner_tell(entry, false);
}

static int owner_discard(struct fi_peer_rx_entry *entry)
{
	return owner_tell(entry, true);
}

/* Open the bell when the first message waits. 0 or -FI_E*. */
static int owner_open_bell(struct owner *owner, struct fab_engine *engine)
{
	return fab_bell_is_open(&owner->bell) ? 0 : fab_bell_open(&owner->bell, engine, owner_rung);
}

static void owner_queue(struct tcp_owner *base, struct tcp_unexp *unexp, struct fi_peer_rx_entry *entry)
{
	struct owner *owner = owner_of(base);
	struct fi_ops_srx_owner *ops = owner->srx->owner_ops;
	struct tcp_owned *owned = NULL;

	if (unexp && !owner_open_bell(owner, unexp->ep->base.engine))
		owned = owned_new(owner, unexp->ep, entry, unexp->base.class);
	if (!owned) {
		ops->free_entry(entry);
		if (unexp)
			tcp_conn_fail(unexp->conn, FI_ENOMEM, ENOMEM, "no memory to queue a message at the owner");
		return;
	}
	owned->unexp = unexp;
	unexp->owned = owned;
	entry->peer_context = owned;
	entry->cq_data = unexp->base.data;
	entry->flags = unexp->base.flags & FI_REMOTE_CQ_DATA;
	if (unexp->base.class == FAB_CLASS_TAGGED)
		ops->queue_tag(entry);
	else
		ops->queue_msg(entry);
}

static void owner_lost(struct tcp_owned *owned)
{
	owned->unexp = NULL;
	if (owned_withdraw(owned))
		owned_free(owned);
}

void tcp_owner_forget(struct tcp_owner *base, struct tcp_ep *ep)
{
	struct owner *owner = owner_of(base);
	struct tcp_owned *owned;
	struct fab_list *link, *next;

	/* messages that the owner had not called about were returned when the endpoint's messages were dropped */
	fab_list_for_each_safe(&owner->all, link, next) {
		owned = fab_container(link, struct tcp_owned, all);
		if (owned->ep != ep)
			continue;
		pthread_mutex_lock(&owner->lock);
		fab_list_remove(&owned->told);
		pthread_mutex_unlock(&owner->lock);
		if (owned->discard)
			owned_free(owned);
		else
			owned_fail(owned, FI_ECONNRESET);
	}
}

static fi_addr_t owned_addr_of(struct fi_peer_rx_entry *entry)
{
	const struct tcp_owned *owned = entry->peer_context;
	fi_addr_t src;

	if (!owned || !owned->unexp)
		return FI_ADDR_UNSPEC;
	src = fab_recv_plain_src(&owned->ep->rx->recv, owned->unexp->base.match.src);
	return src == FI_ADDR_NOTAVAIL ? FI_ADDR_UNSPEC :
	       owner_src(owned->ep, src, owned->ep->rx->recv.grouped ? owned->unexp->base.match.src >> 32 : 0);
}

static void owner_named(struct tcp_owner *base)
{
	struct owner *owner = owner_of(base);

	if (FI_CHECK_OP(owner->srx->owner_ops, struct fi_ops_srx_owner, foreach_unspec_addr))
		owner->srx->owner_ops->foreach_unspec_addr(owner->srx, owned_addr_of);
}

static const struct tcp_owner_ops owner_ops = {
	.find = owner_find,
	.queue = owner_queue,
	.lost = owner_lost,
	.named = owner_named,
};

/* ---- open and close ---- */

static bool owner_is_complete(const struct fid_peer_srx *srx)
{
	const struct fi_ops_srx_owner *ops = srx->owner_ops;

	return ops && srx->peer_ops && srx->peer_ops->size >= sizeof(*srx->peer_ops) &&
	       ops->size >= sizeof(*ops) && ops->get_msg && ops->get_tag && ops->queue_msg && ops->queue_tag &&
	       ops->free_entry;
}

int tcp_owner_open(struct tcp_ep *srx, const struct fi_peer_srx_context *context)
{
	struct owner *owner;

	if (!context || context->size < sizeof(*context) || !context->srx || !owner_is_complete(context->srx)) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_srx_context with FI_PEER: the context must be a struct "
			 "fi_peer_srx_context whose srx has all owner_ops and a place for peer_ops\n");
		return -FI_EINVAL;
	}
	if (tcp_exported_by(context->srx, srx->base.domain)) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_srx_context with FI_PEER: its owner is a context of the same domain; bind "
			 "endpoints to the owner\n");
		return -FI_EINVAL;
	}
	owner = calloc(1, sizeof(*owner));
	if (!owner)
		return -FI_ENOMEM;
	owner->base.ops = &owner_ops;
	owner->srx = context->srx;
	fab_pool_init(&owner->pool, &(struct fab_pool_attr) { .size = sizeof(struct tcp_owned), .chunk_cnt = 16 });
	fab_list_init(&owner->all);
	fab_list_init(&owner->told);
	pthread_mutex_init(&owner->lock, NULL);
	context->srx->peer_ops->start_msg = context->srx->peer_ops->start_tag = owner_start;
	context->srx->peer_ops->discard_msg = context->srx->peer_ops->discard_tag = owner_discard;
	srx->own_rx.owner = &owner->base;
	return 0;
}

void tcp_owner_close(struct tcp_owner *base)
{
	struct owner *owner = base ? owner_of(base) : NULL;

	if (!owner)
		return;
	fab_bell_close(&owner->bell);
	pthread_mutex_destroy(&owner->lock);
	fab_pool_fini(&owner->pool);
	free(owner);
}
