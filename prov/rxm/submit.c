/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * From a data call to entries (struct rxm_tx) that are sent: the choice of the protocol for a message.
 *
 *   up to buffer_size          eager: one packet; copied if it is small or injected, or memory must be registered
 *   up to sar_limit            segments: several packets
 *   longer                     rendezvous: announced, then the receiver reads it, or asks for it to be written
 *   FI_DELIVERY_COMPLETE       eager with an acknowledgement, or rendezvous, which ends with one anyway
 *   FI_MATCH_COMPLETE          the same, but acknowledged when a receive has taken the message
 *
 * If nothing tells the application of the success, both levels are dropped (decisions/rxm.md).
 */
#include "rxm/rxm.h"

#include <string.h>
#include "common/trigger/trigger.h"

#define INLINE static inline __attribute__((always_inline))	/* parts of rxm_submit() on the path of every message */

INLINE void app_fill(struct rxm_tx *tx, const struct fab_op *op, size_t len)
{
	tx->app = true;
	tx->hooked = op->hooked;
	tx->done = rxm_app_done;
	tx->code = op->code;
	tx->context = op->context;
	tx->len = len;
	tx->tag = op->tag;
	tx->data = op->data;
	tx->want_cq = fab_ep_tx_wants_comp(&tx->ep->base, op);
}

INLINE int app_tx(struct rxm_ep *ep, const struct fab_op *op, size_t len, enum rxm_tx_what what, struct rxm_tx **out)
{
	struct rxm_tx *tx = rxm_tx_new(ep, what);

	if (!tx)
		return -FI_ENOMEM;
	app_fill(tx, op, len);
	*out = tx;
	return 0;
}

int rxm_app_tx(struct rxm_ep *ep, const struct fab_op *op, size_t len, enum rxm_tx_what what, struct rxm_tx **out)
{
	return app_tx(ep, op, len, what, out);
}

INLINE void fill_op(struct rxm_tx *tx, const struct fab_op *op, uint64_t len)
{
	struct rxm_op_hdr *hdr = &tx->buf->pkt.op;

	hdr->size = len;
	hdr->tag = op->tag;
	if (op->flags & FI_REMOTE_CQ_DATA) {
		hdr->flags |= RXM_FLAG_CQ_DATA;
		hdr->data = op->data;
	}
}

enum rxm_op rxm_op_of(const struct fab_op *op)
{
	return op->code == FAB_OP_SEND ? RXM_OP_MSG : op->code == FAB_OP_TSEND ? RXM_OP_TAGGED : RXM_OP_COLL;
}

/* Copy all of iov, which usually has one entry. */
INLINE void gather_all(uint8_t *to, const struct iovec *iov, uint32_t cnt, size_t len)
{
	if (__builtin_expect(cnt == 1 && len, 1))
		memcpy(to, iov->iov_base, len);
	else
		fab_iov_gather(to, iov, 0, len);
}

INLINE int make_eager(struct rxm_ep *ep, const struct fab_op *op, struct rxm_tx *tx)
{
	bool copy = tx->len <= RXM_SMALL || (op->flags & FI_INJECT) || ep->domain->mr_local;

	if (!rxm_tx_packet(ep, tx, RXM_EAGER, rxm_op_of(op), copy ? tx->len : 0))
		return -FI_ENOMEM;
	fill_op(tx, op, tx->len);
	if (copy) {
		gather_all(tx->buf->pkt.data, op->iov, op->iov_cnt, tx->len);
	} else {
		fab_iov_copy(tx->iov, op->iov, op->iov_cnt);
		tx->iov_cnt = op->iov_cnt;
		for (uint32_t i = 0; i < op->iov_cnt; i++)
			tx->desc[i] = NULL;
	}
	if (op->flags & RXM_DELIVERED) {
		tx->wants_answer = true;
		tx->buf->pkt.op.flags |= RXM_FLAG_ACK | (op->flags & FI_MATCH_COMPLETE ? RXM_FLAG_MATCH : 0);
	}
	return 0;
}

/* The application has submitted an operation: the last one of the entry. */
INLINE void count_submitted(struct rxm_ep *ep, struct rxm_peer *peer, struct rxm_tx *tx)
{
	if (tx->then)
		tx = tx->then;
	ep->tx_cnt++;
	tx->stats = peer->stats;
	tx->number = (uint32_t) ++tx->stats->queued;
}

/* Queue a message in segments. All entries are queued at once, since they must be consecutive. The last entry completes
 * the operation. */
static int submit_segments(struct rxm_ep *ep, const struct fab_op *op, size_t len, struct rxm_peer *peer)
{
	size_t most = fab_min(rxm_params.buffer_size, (size_t) UINT16_MAX), at;
	uint64_t msg_id = ++ep->seg_id;
	struct fab_list list, *link;
	uint32_t no = 0;

	fab_list_init(&list);
	for (at = 0; at < len; at += most) {
		size_t part = fab_min(most, len - at);
		struct rxm_tx *tx = rxm_tx_new(ep, RXM_TX_PACKET);

		if (!tx || !rxm_tx_packet(ep, tx, RXM_SEG, rxm_op_of(op), part)) {
			if (tx)
				rxm_tx_free(ep, tx);
			rxm_tx_fail_list(&list, FI_ENOMEM, NULL);
			return -FI_ENOMEM;
		}
		fill_op(tx, op, len);
		tx->buf->pkt.ctrl.msg_id = msg_id;
		tx->buf->pkt.ctrl.seg_no = no++;
		tx->buf->pkt.ctrl.seg_size = (uint16_t) part;
		fab_iov_gather(tx->buf->pkt.data, op->iov, at, part);
		if (at + part == len)
			app_fill(tx, op, len);
		fab_list_add_tail(&list, &tx->link);
	}
	count_submitted(ep, peer, fab_container(list.prev, struct rxm_tx, link));
	while ((link = fab_list_pop_front(&list)))
		rxm_tx_submit(peer, fab_container(link, struct rxm_tx, link));
	return 0;
}

static bool is_eager(size_t len)
{
	return len <= rxm_params.buffer_size;
}

INLINE int make_send(struct rxm_ep *ep, const struct fab_op *op, size_t len, struct rxm_tx **out)
{
	int ret = app_tx(ep, op, len, RXM_TX_PACKET, out);

	if (ret)
		return ret;
	ret = is_eager(len) ? make_eager(ep, op, *out) : rxm_rndv_make(ep, op, *out);
	if (ret)
		rxm_tx_free(ep, *out);
	return ret;
}

/* results of check(): the arguments are valid, but ... */
#define TX_WAITS	1	/* a counter triggers the operation */
#define TX_NOW		2	/* it must not be queued: it is injected, and has no completion */
#define TX_DEVICE	3	/* its memory is for the device alone */

static __attribute__((noinline)) int check_odd(const struct rxm_ep *ep, const struct fab_op *op, size_t len)
{
	if (ep->poller->lost)
		return -ep->poller->lost;
	return len && rxm_is_device(op) ? TX_DEVICE : 0;
}

INLINE int check_len(const struct rxm_ep *ep, const struct fab_op *op, size_t len)
{
	if (len <= ep->base.info->ep_attr->max_msg_size)
		return 0;
	RXM_WARN(FI_LOG_EP_DATA, "%s of %zu bytes is longer than ep_attr->max_msg_size, %zu\n",
		 fab_op_desc[op->code].name, len,
		 ep->base.info->ep_attr->max_msg_size);
	return -FI_EMSGSIZE;
}

/* Check an operation. 0, TX_WAITS, TX_NOW, -FI_E*. */
INLINE int check(const struct rxm_ep *ep, const struct fab_op *op, size_t len)
{
	int ret;

	if (!ep->base.enabled || ep->closing)
		return -FI_EOPBADSTATE;
	if (__builtin_expect(ep->poller->odd, 0)) {
		ret = check_odd(ep, op, len);
		if (ret)
			return ret;
	}
	if (ep->tx_cnt >= ep->tx_size && !op->accepted)
		return -FI_EAGAIN;
	if (__builtin_expect(!(op->flags & (FI_INJECT | FI_TRIGGER)), 1))
		return check_len(ep, op, len);
	if ((op->flags & FI_INJECT) && len > ep->base.info->tx_attr->inject_size) {
		RXM_WARN(FI_LOG_EP_DATA, "%s of %zu bytes with FI_INJECT is longer than tx_attr->inject_size, %zu\n",
			 fab_op_desc[op->code].name, len, ep->base.info->tx_attr->inject_size);
		return -FI_EMSGSIZE;
	}
	ret = check_len(ep, op, len);
	if (ret)
		return ret;
	if (op->flags & FI_TRIGGER)
		return TX_WAITS;
	return fab_ep_tx_leaves(&ep->base, op) ? TX_NOW : 0;
}

/* True if the peer accepts segments. Over tcp, upstream announces all messages longer than a packet; this end does the
 * same until the peer is known to be of this library. */
static bool takes_segments(const struct rxm_peer *peer)
{
	return peer->conn && peer->conn->state == RXM_CONN_UP && peer->conn->ext;
}

/* Make the entry of an operation. */
INLINE int make(struct rxm_ep *ep, const struct fab_op *op, size_t len, struct rxm_tx **tx)
{
	switch (op->code) {
	case FAB_OP_SEND:
	case FAB_OP_TSEND:
	case FAB_OP_CSEND:
		return make_send(ep, op, len, tx);
	case FAB_OP_READ:
	case FAB_OP_WRITE:
		return rxm_rma_make(ep, op, len, tx);
	default:
		return rxm_atomic_make(ep, op, len, tx);
	}
}

INLINE int find_peer(struct rxm_ep *ep, const struct fab_op *op, struct rxm_peer **peer)
{
	int ret = rxm_peer_get(ep, op->addr, peer);

	return ret ? ret : rxm_peer_want(*peer);
}

/* Read returned credit: an application that only sends would not see it otherwise. */
INLINE void look_for_credit(struct rxm_ep *ep, const struct rxm_peer *peer)
{
	if (peer->conn && peer->conn->state == RXM_CONN_UP && peer->conn->ext && !peer->conn->credit[RXM_ASKS].left)
		rxm_poller_run(ep->poller);
}

/* Submit an operation that must be sent now or be refused. */
static __attribute__((noinline))
int submit_now(struct rxm_ep *ep, const struct fab_op *op, size_t len)
{
	struct rxm_peer *peer;
	struct rxm_tx *tx;
	int ret;

	ret = find_peer(ep, op, &peer);
	if (!ret)
		ret = make(ep, op, len, &tx);
	if (ret)
		return ret;
	count_submitted(ep, peer, tx);
	if (!rxm_tx_submit_now(peer, tx)) {
		ep->tx_cnt--;
		peer->stats->dequeued++;
		peer->stats->retries++;
		rxm_tx_free(ep, tx);
		return -FI_EAGAIN;
	}
	look_for_credit(ep, peer);
	return 0;
}

/* Submit an operation without its completion level, which nobody can observe. */
static __attribute__((noinline))
int submit_unobserved(struct rxm_ep *ep, const struct fab_op *op)
{
	struct fab_op plain = *op;

	plain.flags &= ~RXM_DELIVERED;
	return rxm_submit_locked(&ep->base, &plain);
}

/* Submit a short message, or injected data, in memory of a device: by a copy. */
static int submit_copied(struct rxm_ep *ep, const struct fab_op *op, size_t len)
{
	uint8_t copy[RXM_INJECT_SIZE];
	struct iovec iov = { copy, len };
	struct fab_op plain = *op;

	if (rxm_gather(op->flags, copy, op->iov, len))
		return -FI_EIO;
	plain.iov = &iov;
	plain.iov_cnt = len != 0;
	plain.desc = NULL;
	plain.flags = (op->flags & ~FAB_OP_HMEM_BITS) | FI_INJECT;
	return rxm_submit_locked(&ep->base, &plain);
}

/* Submit a message, or an access, that the provider below reads from memory of a device, or writes there. */
static int submit_below(struct rxm_ep *ep, const struct fab_op *op, size_t len)
{
	struct rxm_tx *tx = NULL;
	struct rxm_peer *peer;
	int ret;

	ret = find_peer(ep, op, &peer);
	if (ret)
		return ret;
	if (op->amo) {
		ret = rxm_atomic_make(ep, op, len, &tx);
	} else if (op->code > FAB_OP_CSEND) {
		ret = rxm_rma_make(ep, op, len, &tx);
	} else {
		ret = app_tx(ep, op, len, RXM_TX_PACKET, &tx);
		if (!ret)
			ret = rxm_rndv_make(ep, op, tx);
		if (ret && tx)
			rxm_tx_free(ep, tx);
	}
	if (ret)
		return ret;
	count_submitted(ep, peer, tx);
	rxm_tx_submit(peer, tx);
	return 0;
}

/* Submit an operation on memory of a device. That of a dma-buf alone cannot be copied; the device reads it by itself,
 * however short it is. */
static __attribute__((noinline))
int submit_device(struct rxm_ep *ep, const struct fab_op *op, size_t len)
{
	struct fab_op marked = *op;
	bool inject = op->flags & FI_INJECT;
	int ret;

	if (ep->tx_cnt >= ep->tx_size && !op->accepted)
		return -FI_EAGAIN;
	ret = check_len(ep, op, len);
	if (ret)
		return ret;
	if (inject && len > ep->base.info->tx_attr->inject_size)
		return -FI_EMSGSIZE;
	ret = rxm_mark_device(op, &marked.flags);
	if (ret == -FI_EOPNOTSUPP && !inject && !op->amo) {
		marked.flags = op->flags;
		ret = 0;
	}
	if (ret) {
		RXM_WARN(FI_LOG_EP_DATA, "%s of memory that was registered as a dma-buf, or of devices of several "
			 "interfaces: use neither FI_INJECT nor atomics with such memory\n",
			 fab_op_desc[op->code].name);
		return ret;
	}
	if (op->flags & FI_TRIGGER)
		return fab_trigger_op(&ep->base, &marked, rxm_submit_locked);
	if ((marked.flags & FAB_OP_HMEM) && !op->amo && op->code != FAB_OP_READ &&
	    (inject || (op->code <= FAB_OP_CSEND && len <= RXM_INJECT_SIZE)))
		return submit_copied(ep, &marked, len);
	return submit_below(ep, &marked, len);
}

INLINE int submit_locked(struct rxm_ep *ep, const struct fab_op *op)
{
	size_t len = fab_iov_len(op->iov, op->iov_cnt);
	struct rxm_peer *peer;
	struct rxm_tx *tx;
	int ret;

	if (__builtin_expect(op->flags & RXM_DELIVERED, 0) && !fab_ep_tx_is_observed(&ep->base, op))
		return submit_unobserved(ep, op);
	ret = check(ep, op, len);
	if (__builtin_expect(ret > 0, 0))
		return ret == TX_DEVICE ? submit_device(ep, op, len) : ret == TX_NOW ? submit_now(ep, op, len) :
		       fab_trigger_op(&ep->base, op, rxm_submit_locked);
	if (!ret)
		ret = find_peer(ep, op, &peer);
	if (ret)
		return ret;
	if (op->code <= FAB_OP_CSEND && !is_eager(len) && len <= rxm_params.sar_limit &&
	    !(op->flags & RXM_DELIVERED) && takes_segments(peer))
		return submit_segments(ep, op, len, peer);
	ret = make(ep, op, len, &tx);
	if (ret)
		return ret;
	count_submitted(ep, peer, tx);
	rxm_tx_submit(peer, tx);
	look_for_credit(ep, peer);
	return 0;
}

/* Submit an operation with these registrations, which stay the caller's as far as it does not take them over. */
static int submit_pinned(struct rxm_ep *ep, const struct fab_op *op, struct rxm_pins *pins)
{
	int ret;

	ep->pins = pins;
	ret = submit_locked(ep, op);
	ep->pins = NULL;
	return ret;
}

int rxm_submit_locked(struct fab_ep *base, const struct fab_op *op)
{
	struct rxm_ep *ep = fab_container(base, struct rxm_ep, base);
	int ret = submit_locked(ep, op);
	struct rxm_pins pins;

	if (ret != RXM_UNPINNED)
		return ret;
	ret = rxm_pins_get(ep, op, &pins);
	if (ret)
		return ret;
	ret = submit_pinned(ep, op, &pins);
	rxm_pins_put(ep, &pins);
	return ret;
}

/* Register the buffers of an operation without the lock, which is held on entry and on return. A registration ends with
 * its operation; it is the caller's reference that lets the operation find it. */
static __attribute__((noinline))
int register_and_submit(struct rxm_ep *ep, const struct fab_op *op)
{
	struct fab_engine *engine = ep->base.engine;
	struct rxm_pins pins;
	int ret;

	fab_engine_unlock(engine);
	ret = rxm_pins_get(ep, op, &pins);
	fab_engine_enter(engine);
	if (ret)
		return ret;
	ret = submit_pinned(ep, op, &pins);
	rxm_pins_put(ep, &pins);
	return ret;
}

ssize_t rxm_submit(struct rxm_ep *ep, const struct fab_op *op)
{
	struct fab_engine *engine = ep->base.engine;
	ssize_t ret;

	fab_engine_enter(engine);
	ret = submit_locked(ep, op);
	/* an application that only sends never makes progress otherwise, and completions free room */
	if (ret == -FI_EAGAIN) {
		fab_engine_run(engine);
		ret = submit_locked(ep, op);
	}
	if (__builtin_expect(ret > 0, 0))
		ret = register_and_submit(ep, op);
	fab_engine_unlock(engine);
	return ret;
}

static int post_recv_locked(struct fab_ep *base, const struct fab_op *op);

static int post_marked(struct rxm_ep *ep, const struct fab_op *op);

/* The endpoint is lost; or the receive is in memory of a device, to which short messages are copied. That of a dma-buf
 * alone cannot be copied. */
static __attribute__((noinline)) int post_odd(struct rxm_ep *ep, const struct fab_op *op)
{
	struct fab_op marked = *op;
	int ret;

	if (ep->poller->lost)
		return -ep->poller->lost;
	ret = rxm_mark_device(op, &marked.flags);
	if (!ret)
		return post_marked(ep, &marked);
	RXM_WARN(FI_LOG_EP_DATA, "%s into memory that was registered as a dma-buf, or of devices of several "
		 "interfaces: receive into memory of the host, or let the peer write\n", fab_op_desc[op->code].name);
	return ret;
}

static int post_rare(struct rxm_ep *ep, const struct fab_op *op, fi_addr_t src)
{
	if (op->flags & FI_TRIGGER)
		return fab_trigger_op(&ep->base, op, post_recv_locked);
	return fab_recv_peek(&ep->recv, op, src);
}

FAB_RECV_PATH int post_here(struct rxm_ep *ep, const struct fab_op *op)
{
	fi_addr_t src = ep->base.caps & FI_DIRECTED_RECV ? op->addr : FI_ADDR_UNSPEC;
	if (__builtin_expect(op->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_TRIGGER), 0))
		return post_rare(ep, op, src);
	return fab_recv_post_with(&ep->recv, &ep->recv.pool, op, src, fab_recv_find_kept, &rxm_recv_ops);
}

static __attribute__((noinline)) int post_marked(struct rxm_ep *ep, const struct fab_op *op)
{
	return post_here(ep, op);
}

FAB_RECV_PATH int post_locked(struct rxm_ep *ep, const struct fab_op *op)
{
	if (!ep->base.enabled || ep->closing)
		return -FI_EOPBADSTATE;
	if (__builtin_expect(ep->poller->odd, 0) && (ep->poller->lost || rxm_is_device(op)))
		return post_odd(ep, op);
	return post_here(ep, op);
}

static int post_recv_locked(struct fab_ep *base, const struct fab_op *op)
{
	return post_locked(fab_container(base, struct rxm_ep, base), op);
}

ssize_t rxm_post_recv(struct rxm_ep *ep, const struct fab_op *op)
{
	struct fab_engine *engine = ep->base.engine;
	ssize_t ret;

	fab_engine_enter(engine);
	ret = post_locked(ep, op);
	fab_engine_unlock(engine);
	return ret;
}
