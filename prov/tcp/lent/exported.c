/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See exported.h. The states (tcp_unexp.place) of another provider's message, from get until its entry is returned
 * (free_entry):
 *
 *   get: a receive fits -> TAKEN, the entry has it
 *        none -> ASKED -- queue --> QUEUED -> a receive takes it, possibly after a claim -> TAKEN, start_*
 *                           \                \-> dropped -> DROPPED, discard_*
 *                            \-> a receive was posted meanwhile -> TAKEN, start_* before queue returns
 *
 * An entry may be returned in any state. It keeps a claim on the receive (rx->busy) until then. Everything runs under
 * the lock of the context's engine.
 */
#include "tcp/lent/exported.h"

#include <stdatomic.h>
#include <stdlib.h>
#include "base/bits.h"
#include "common/lent/lent.h"
#include "common/ops/ops.h"
#include "common/trigger/trigger.h"
#include "tcp/message/message.h"
#include "tcp/params/params.h"

_Static_assert(sizeof(struct tcp_foreign) <= TCP_UNEXP_SMALL, "it costs no more than a small message of ours");

/* One for each peer. Guarded by the engine's lock, except where a member says otherwise. */
struct tcp_exported {
	struct fid_peer_srx peer;
	struct fi_ops_srx_peer peer_ops;	/* of the peer, which sets them when it opens its context */
	struct tcp_ep *srx;		/* borrowed: counted in its export_cnt */
	/* the thread that calls the peer with the lock held, and may come back; 0: none. Any thread reads it */
	_Atomic pthread_t caller;
	uint32_t entry_cnt;		/* entries that the peer has */
	struct fab_list unnamed;	/* struct tcp_unexp.link: messages that wait and whose sender is unknown */
};

/* ---- the lock ---- */

static struct tcp_exported *exported_of(struct fid_peer_srx *peer)
{
	return fab_container(peer, struct tcp_exported, peer);
}

/* Take the lock. False: this thread has it, since it has called the peer. */
static bool exported_enter(struct tcp_exported *x)
{
	if (atomic_load_explicit(&x->caller, memory_order_relaxed) == pthread_self())
		return false;
	fab_engine_lock(x->srx->base.engine);
	return true;
}

static void exported_leave(struct tcp_exported *x, bool entered)
{
	if (entered)
		fab_engine_unlock(x->srx->base.engine);
}

/* Call a function of the peer with the lock held, and return its result. The entry may have been returned meanwhile. */
static int exported_call_peer(struct tcp_exported *x, int (*fn)(struct fi_peer_rx_entry *entry),
			      struct fi_peer_rx_entry *entry)
{
	pthread_t before = atomic_load_explicit(&x->caller, memory_order_relaxed);
	int ret;

	atomic_store_explicit(&x->caller, pthread_self(), memory_order_relaxed);
	ret = fn(entry);
	atomic_store_explicit(&x->caller, before, memory_order_relaxed);
	if (ret)
		TCP_WARN(FI_LOG_EP_DATA, "the peer of an exported receive context returned %d; its entry stays in use "
			 "until the peer frees it\n", ret);
	return ret;
}

/* ---- entries ---- */

static struct tcp_unexp *exported_unexp_of(struct fi_peer_rx_entry *entry)
{
	return fab_container(entry, struct tcp_unexp, theirs.entry);
}

/* Convert a source from the peer to a source of matching. */
static fi_addr_t exported_src_of(const struct tcp_ep *srx, fi_addr_t addr)
{
	return addr == FI_ADDR_NOTAVAIL ? tcp_match_src(srx, FI_ADDR_NOTAVAIL, 0) : addr;
}

static bool entry_is_named(const struct tcp_unexp *unexp)
{
	return fab_recv_plain_src(&unexp->ep->rx->recv, unexp->base.match.src) != FI_ADDR_NOTAVAIL;
}

static const struct tcp_foreign_ops foreign_ops;

/* Make an entry. NULL: no memory. */
static struct tcp_unexp *entry_new(struct tcp_exported *x, enum fab_msg_class class,
				   const struct fi_peer_match_attr *attr)
{
	struct tcp_unexp *unexp = fab_pool_get(&x->srx->own_rx.unexp_pool);

	if (!unexp)
		return NULL;
	*unexp = (struct tcp_unexp) {
		.base = {
			.match.src = exported_src_of(x->srx, attr->addr), .len = attr->msg_size, .class = class,
			.place = FAB_KEPT_ASKED,
		},
		.ep = x->srx, .foreign = true, .theirs.ops = &foreign_ops, .theirs.exported = x, .theirs.entry = {
			.srx = &x->peer, .addr = attr->addr, .msg_size = attr->msg_size,
		},
	};
	if (class == FAB_CLASS_TAGGED)
		unexp->base.tag = unexp->base.match.tag = unexp->theirs.entry.tag = attr->tag;
	fab_list_init(&unexp->link);
	x->entry_cnt++;
	return unexp;
}

/* Free an entry that is in no queue. */
static void entry_free(struct tcp_unexp *unexp)
{
	unexp->theirs.exported->entry_cnt--;
	tcp_unexp_free(unexp);
}

static struct fab_rx *entry_find_rx(const struct tcp_unexp *unexp)
{
	return fab_recv_find(&unexp->ep->rx->recv, unexp->base.class, unexp->base.match.tag, unexp->base.match.src);
}

/* Give the entry the receive that was claimed for it. */
static void entry_give_rx(struct tcp_unexp *unexp)
{
	static void *no_desc[TCP_IOV_LIMIT];
	struct fi_peer_rx_entry *entry = &unexp->theirs.entry;
	const struct fab_into *into = &unexp->base.into;

	entry->context = into->rx->context;
	entry->flags = into->rx->flags & FI_COMPLETION;
	entry->desc = no_desc;
	if (into->rx->flags & FI_MULTI_RECV) {
		unexp->theirs.part = (struct iovec) { into->start, into->take };
		entry->iov = &unexp->theirs.part;
		entry->count = 1;
	} else {
		entry->iov = into->rx->iov;
		entry->count = into->rx->iov_cnt;
	}
}

/* Let a posted receive take a message that is in no queue. */
static void entry_take_posted(struct tcp_unexp *unexp, struct fab_rx *rx)
{
	unexp->base.place = FAB_KEPT_TAKEN;
	fab_rx_claim(&unexp->ep->rx->recv, rx, unexp->base.len, &unexp->base.into);
	entry_give_rx(unexp);
}

/* Release the claim of a peer's message, whose end the peer has reported. The end of a multi-receive is reported after
 * all messages in it: reports of peers may still be on their way, and none of our own messages may be left to report
 * it. */
static void entry_put_rx(struct tcp_ep *srx, struct fab_rx *rx)
{
	struct fab_ep *reporter = fab_recv_reporter(&srx->own_rx.recv, NULL);
	bool multi = rx->flags & FI_MULTI_RECV;

	if (multi && reporter->bound.rx_cq)
		fab_export_settle(reporter->bound.rx_cq);
	if (--rx->busy || rx->posted.seq)
		return;
	if (multi && fab_ep_rx_wants_comp(reporter, rx->flags))
		fab_cq_write(reporter->bound.rx_cq, &(struct fab_comp) {
			.context = rx->context, .flags = fab_op_desc[rx->code].cq_flags | FI_MULTI_RECV,
			.src = FI_ADDR_NOTAVAIL,
		});
	fab_rx_free(&srx->own_rx.recv, rx);
}

/* The peer will not fill the receive that it has: complete it with an error. */
static void entry_fail_rx(struct tcp_unexp *unexp, int err)
{
	const struct fab_msg msg = { .len = unexp->base.into.take, .tag = unexp->base.tag, .src = FI_ADDR_NOTAVAIL };
	struct fab_recv *recv = &unexp->ep->own_rx.recv;
	struct fab_into into = unexp->base.into;

	unexp->base.into.rx = NULL;
	fab_rx_finish(recv, fab_recv_reporter(recv, NULL), &into, &msg, &(struct fab_cq_fail) {
		      .err = err, .prov_errno = err,
		      .text = "the provider that has the message did not write it into the receive buffer" });
}

static void foreign_start(struct tcp_unexp *unexp)
{
	struct tcp_exported *x = unexp->theirs.exported;
	bool tagged = unexp->base.class == FAB_CLASS_TAGGED;
	int ret;

	fab_list_remove(&unexp->link);
	entry_give_rx(unexp);
	ret = exported_call_peer(x, tagged ? x->peer_ops.start_tag : x->peer_ops.start_msg, &unexp->theirs.entry);
	if (ret)
		entry_fail_rx(unexp, ret < 0 ? -ret : FI_EOTHER);
}

static void foreign_discard(struct tcp_unexp *unexp)
{
	struct tcp_exported *x = unexp->theirs.exported;
	bool tagged = unexp->base.class == FAB_CLASS_TAGGED;

	fab_list_remove(&unexp->link);
	exported_call_peer(x, tagged ? x->peer_ops.discard_tag : x->peer_ops.discard_msg, &unexp->theirs.entry);
}

static const struct tcp_foreign_ops foreign_ops = { .start = foreign_start, .discard = foreign_discard };

/* ---- functions that the peer calls ---- */

static int entry_get(struct fid_peer_srx *peer, enum fab_msg_class class, const struct fi_peer_match_attr *attr,
		     struct fi_peer_rx_entry **entry)
{
	struct tcp_exported *x = exported_of(peer);
	bool entered = exported_enter(x);
	struct tcp_unexp *unexp = entry_new(x, class, attr);
	struct fab_rx *rx = unexp ? entry_find_rx(unexp) : NULL;
	int ret = rx ? 0 : -FI_ENOENT;

	if (rx) {
		entry_take_posted(unexp, rx);
	} else if (unexp && x->entry_cnt > TCP_EXPORTED_MAX) {
		entry_free(unexp);
		unexp = NULL;
	}
	if (unexp)
		*entry = &unexp->theirs.entry;
	else
		ret = -FI_ENOMEM;
	exported_leave(x, entered);
	return ret;
}

static int entry_get_msg(struct fid_peer_srx *peer, struct fi_peer_match_attr *attr, struct fi_peer_rx_entry **entry)
{
	return entry_get(peer, FAB_CLASS_MSG, attr, entry);
}

static int entry_get_tag(struct fid_peer_srx *peer, struct fi_peer_match_attr *attr, struct fi_peer_rx_entry **entry)
{
	return entry_get(peer, FAB_CLASS_TAGGED, attr, entry);
}

/* Queue a message, unless a receive was posted since get. */
static void entry_wait_or_start(struct tcp_exported *x, struct tcp_unexp *unexp)
{
	struct fab_rx *rx = entry_find_rx(unexp);

	unexp->base.data = unexp->theirs.entry.cq_data;
	unexp->base.flags = unexp->theirs.entry.flags & FI_REMOTE_CQ_DATA;
	if (rx) {
		entry_take_posted(unexp, rx);
		foreign_start(unexp);
		return;
	}
	unexp->base.place = FAB_KEPT_QUEUED;
	fab_match_add_unexp(&unexp->ep->rx->recv.queue[unexp->base.class], &unexp->base.match);
	if (!entry_is_named(unexp))
		fab_list_add_tail(&x->unnamed, &unexp->link);
}

static int entry_queue(struct fi_peer_rx_entry *entry)
{
	struct tcp_exported *x = exported_of(entry->srx);
	struct tcp_unexp *unexp = exported_unexp_of(entry);
	bool entered = exported_enter(x);
	int ret = unexp->base.place == FAB_KEPT_ASKED ? 0 : -FI_EINVAL;

	if (!ret)
		entry_wait_or_start(x, unexp);
	exported_leave(x, entered);
	return ret;
}

static void exported_each_unspec(struct fid_peer_srx *peer, fi_addr_t (*get_addr)(struct fi_peer_rx_entry *entry))
{
	struct tcp_exported *x = exported_of(peer);
	bool entered = exported_enter(x);
	struct fab_list known = FAB_LIST_INIT(known), *link, *next;
	struct tcp_unexp *unexp;
	struct fab_rx *rx;

	fab_list_for_each_safe(&x->unnamed, link, next) {
		fi_addr_t addr = get_addr(&fab_container(link, struct tcp_unexp, link)->theirs.entry);

		if (addr == FI_ADDR_UNSPEC)
			continue;
		unexp = fab_container(link, struct tcp_unexp, link);
		unexp->theirs.entry.addr = addr;
		tcp_unexp_set_src(x->srx, unexp, addr);
		fab_list_remove(link);
		fab_list_add_tail(&known, link);
	}
	/* a receive for this source may have been posted before */
	while ((unexp = fab_list_first(&known, struct tcp_unexp, link))) {
		fab_list_remove(&unexp->link);
		rx = unexp->base.place == FAB_KEPT_QUEUED ? entry_find_rx(unexp) : NULL;
		if (rx)
			tcp_unexp_take(unexp, rx);
	}
	exported_leave(x, entered);
}

static void entry_give_back(struct fi_peer_rx_entry *entry)
{
	struct tcp_exported *x = exported_of(entry->srx);
	struct tcp_unexp *unexp = exported_unexp_of(entry);
	bool entered = exported_enter(x);

	tcp_unexp_unlink(unexp);
	if (unexp->base.into.rx)
		entry_put_rx(x->srx, unexp->base.into.rx);
	entry_free(unexp);
	exported_leave(x, entered);
}

static struct fi_ops_srx_owner owner_ops = {
	.size = sizeof(struct fi_ops_srx_owner),
	.get_msg = entry_get_msg,
	.get_tag = entry_get_tag,
	.queue_msg = entry_queue,
	.queue_tag = entry_queue,
	.foreach_unspec_addr = exported_each_unspec,
	.free_entry = entry_give_back,
};

/* ---- export and close ---- */

static int exported_close(struct fid *fid)
{
	struct tcp_exported *x = fab_container(fid, struct tcp_exported, peer.ep_fid.fid);
	struct fab_engine *engine = x->srx->base.engine;
	uint32_t entry_cnt;

	fab_engine_lock(engine);
	entry_cnt = x->entry_cnt;
	if (!entry_cnt)
		x->srx->own_rx.export_cnt--;
	fab_engine_unlock(engine);
	if (entry_cnt) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_close of an exported receive context: its peer still has %u entries; "
			 "close the peer's objects first\n", entry_cnt);
		return -FI_EBUSY;
	}
	free(x);
	return 0;
}

static struct fi_ops exported_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = exported_close,
};

static struct fi_ops_ep exported_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
};

void tcp_exported_fill_ops(void)
{
	FAB_OPS_FILL(&exported_fid_ops);
	FAB_OPS_FILL(&exported_ep_ops);
}

int tcp_exported_busy(void)
{
	TCP_WARN(FI_LOG_EP_CTRL,
		 "fi_close of a shared receive context that is exported: close its exported forms first\n");
	return -FI_EBUSY;
}

bool tcp_exported_by(const struct fid_peer_srx *peer, const struct fab_domain *domain)
{
	return peer->owner_ops == &owner_ops &&
	       fab_container(peer, struct tcp_exported, peer)->srx->base.domain == domain;
}

/* True if deferred work receives in the context: a peer that reports the end of a message does not know hooks. Lock
 * held. */
static bool exported_has_deferred(const struct tcp_ep *srx)
{
	const struct fab_match *queue = srx->own_rx.recv.queue;
	struct fab_list *link;

	for (int i = 0; i < FAB_CLASS_MAX; i++) {
		fab_list_for_each(&queue[i].posted_order, link) {
			if (fab_container(link, struct fab_rx, posted.order)->rare & FAB_RX_HOOKED)
				return true;
		}
	}
	return fab_trigger_defers_recv(&srx->base);
}

int tcp_srx_export(struct tcp_ep *srx, struct fi_fid_export *exp)
{
	struct fab_engine *engine;
	struct tcp_exported *x;
	int ret;

	ret = fab_export_check(&tcp_prov, exp, srx->own_rx.owner);
	if (!ret && (srx->detours & TCP_EP_HMEM)) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_export_fid of a shared receive context with FI_HMEM: another provider "
			 "cannot tell which receives are in memory of a device\n");
		ret = -FI_EOPNOTSUPP;
	}
	if (!ret)
		ret = fab_ep_fix_engine(&srx->base);
	if (ret)
		return ret;
	x = calloc(1, sizeof(*x));
	if (!x)
		return -FI_ENOMEM;
	x->srx = srx;
	fab_list_init(&x->unnamed);
	x->peer_ops.size = sizeof(x->peer_ops);
	x->peer = (struct fid_peer_srx) {
		.ep_fid = {
			.fid = { FI_CLASS_PEER_SRX, exp->context, &exported_fid_ops }, .ops = &exported_ep_ops,
			.cm = &fab_no_cm, .msg = &fab_no_msg, .rma = &fab_no_rma, .tagged = &fab_no_tagged,
			.atomic = &fab_no_atomic, .collective = &fab_no_collective,
		},
		.owner_ops = &owner_ops, .peer_ops = &x->peer_ops,
	};
	engine = srx->base.engine;
	fab_engine_share(engine);
	fab_engine_lock(engine);
	if (exported_has_deferred(srx))
		ret = -FI_EBUSY;
	else
		srx->own_rx.export_cnt++;
	fab_engine_unlock(engine);
	if (ret) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_export_fid of a shared receive context with deferred receives "
			 "(FI_QUEUE_WORK); export it before any work is queued, and post its receives directly\n");
		free(x);
		return ret;
	}
	*exp->fid = &x->peer.ep_fid.fid;
	return 0;
}
