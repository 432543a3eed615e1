/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The rare cases of receiving, and the functions that do not gain from constant operations. recv_path.h has the others.
 * Engine lock held, except in fab_recv_setopt().
 */
#include "common/receive/recv.h"

#include <string.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"
#include "common/hmem/hmem.h"
#include "common/receive/recv_path.h"

#define MIN_MULTI_RECV	64		/* bytes; the default of FI_OPT_MIN_MULTI_RECV */

/* ---- posted receives ---- */

/* A multi-receive has one buffer, which messages fill from the front. */
bool fab_rx_claim_part(struct fab_recv *recv, struct fab_rx *rx, const struct fab_into *into)
{
	rx->iov[0].iov_base = into->start + into->take;
	rx->iov[0].iov_len -= into->take;
	rx->len -= into->take;
	return rx->len && rx->len >= recv->min_multi_recv;
}

static void copy_to_device(const struct fab_into *into, uint64_t offset, const void *buf, uint64_t len)
{
	const struct iovec part = { into->start, into->take };
	struct fab_rx *rx = into->rx;

	if (fab_hmem_to(fab_op_hmem(rx->flags), rx->flags & FI_MULTI_RECV ? &part : rx->iov, offset, buf, len))
		rx->rare |= FAB_RX_SPOILT;
}

void fab_into_copy(const struct fab_into *into, uint64_t offset, const void *buf, uint64_t len)
{
	const uint8_t *from = buf;

	if (offset >= into->take)
		return;
	len = fab_min(len, into->take - offset);
	if (into->rx->flags & FAB_OP_HMEM) {
		copy_to_device(into, offset, buf, len);
		return;
	}
	if (into->rx->flags & FI_MULTI_RECV) {
		memcpy(into->start + offset, from, len);
		return;
	}
	for (const struct iovec *iov = into->rx->iov; len; iov++) {
		size_t part;

		if (offset >= iov->iov_len) {
			offset -= iov->iov_len;
			continue;
		}
		part = fab_min(iov->iov_len - offset, len);
		memcpy((uint8_t *) iov->iov_base + offset, from, part);
		from += part;
		len -= part;
		offset = 0;
	}
}

void fab_rx_finish_rare(struct fab_recv *recv, struct fab_ep *ep, const struct fab_into *into, struct fab_comp *comp,
			const struct fab_msg *msg, const struct fab_cq_fail *fail)
{
	const struct fab_cq_fail trunc = {
		.err = FI_ETRUNC, .prov_errno = FI_ETRUNC, .olen = msg->len - into->take,
		.text = "the message is longer than the receive buffer",
	};
	static const struct fab_cq_fail spoilt = {
		.err = FI_EIO, .prov_errno = FI_EIO, .text = "the message could not be copied to the device",
	};
	struct fab_rx *rx = into->rx;
	struct fab_hook *hook = rx->context;

	if (!fail && (rx->rare & FAB_RX_SPOILT))
		fail = &spoilt;
	if (!fail && into->take < msg->len)
		fail = &trunc;
	rx->rare &= ~FAB_RX_SPOILT;	/* a multi-receive goes on */
	if (rx->rare & FAB_RX_HOOKED)
		hook->done(hook, rx->code, comp, fail);
	else if (fail)
		fab_ep_fail(ep, rx->code, comp, fail);
	else
		recv->ops->unknown(ep, rx->code, comp, msg);
}

void fab_rx_finish(struct fab_recv *recv, struct fab_ep *ep, const struct fab_into *into, const struct fab_msg *msg,
		   const struct fab_cq_fail *fail)
{
	fab_rx_finish_with(recv, ep, into, msg, fail, recv->ops);
}

void fab_rx_fail_posted(struct fab_recv *recv, struct fab_rx *rx, int err)
{
	const struct fab_msg msg = { .src = FI_ADDR_NOTAVAIL };
	const struct fab_into into = { .rx = rx };

	fab_rx_unpost(recv, rx);
	rx->busy++;
	fab_rx_finish(recv, fab_recv_reporter(recv, NULL), &into, &msg,
		      &(struct fab_cq_fail) { .err = err, .prov_errno = err });
}

void fab_recv_flush(struct fab_recv *recv, int err)
{
	static const enum fab_msg_class order[] = { FAB_CLASS_COLL, FAB_CLASS_MSG, FAB_CLASS_TAGGED };
	struct fab_list *link, *next;

	for (size_t i = 0; i < fab_countof(order); i++) {
		fab_list_for_each_safe(&recv->queue[order[i]].posted_order, link, next)
			fab_rx_fail_posted(recv, fab_container(link, struct fab_rx, posted.order), err);
	}
}

int fab_rx_new(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src, struct fab_rx **rx)
{
	return fab_rx_new_with(recv, &recv->pool, op, src, recv->ops, rx);
}

ssize_t fab_recv_post_grouped(struct fab_engine *engine, struct fab_recv *recv, struct fab_rx *rx)
{
	int ret = fab_match_post_grouped(fab_rx_queue(recv, rx->code), &rx->posted);

	if (ret)
		fab_rx_free_with(recv, rx, recv->ops);
	fab_engine_unlock(engine);
	return ret;
}

int fab_recv_post_coll(struct fab_recv *recv, const struct fab_op *op, fi_addr_t src)
{
	return fab_recv_post_with(recv, &recv->coll_pool, op, src, fab_recv_find_kept, recv->ops);
}

void fab_rx_free(struct fab_recv *recv, struct fab_rx *rx)
{
	fab_rx_free_with(recv, rx, recv->ops);
}

/* ---- kept messages ---- */

struct fab_msg fab_kept_msg(const struct fab_recv *recv, const struct fab_kept *kept)
{
	return (struct fab_msg) {
		.tag = kept->tag, .data = kept->data, .len = kept->len,
		.src = fab_recv_plain_src(recv, kept->match.src), .flags = kept->flags, .class = kept->class,
	};
}

void fab_kept_set_src(struct fab_recv *recv, struct fab_kept *kept, fi_addr_t src)
{
	if (kept->place == FAB_KEPT_QUEUED)
		fab_match_set_unexp_src(&recv->queue[kept->class], &kept->match, src);
	else
		kept->match.src = src;
}

void fab_recv_named(struct fab_recv *recv, enum fab_msg_class class, fi_addr_t src)
{
	struct fab_match *queue = &recv->queue[class];
	struct fab_list *link = queue->unexp_order.next, *next;

	for (; queue->posted_cnt && link != &queue->unexp_order; link = next) {
		struct fab_kept *kept = fab_container(link, struct fab_kept, match.order);
		uint32_t cnt = queue->unexp_cnt;
		struct fab_rx *rx;

		next = link->next;
		if (fab_recv_plain_src(recv, kept->match.src) != src)
			continue;
		rx = fab_recv_find(recv, class, kept->match.tag, kept->match.src);
		if (!rx)
			continue;
		fab_kept_take_with(recv, kept, rx, recv->ops);
		/* others have gone, too, if their connection has failed */
		if (queue->unexp_cnt != cnt - 1)
			next = queue->unexp_order.next;
	}
}

void fab_kept_drop(struct fab_recv *recv, struct fab_kept *kept)
{
	fab_kept_unlink(recv, kept);
	kept->place = FAB_KEPT_DROPPED;
	recv->ops->drop(recv, kept);
}

void fab_recv_each_kept(struct fab_recv *recv, void (*fn)(struct fab_recv *recv, struct fab_kept *kept, void *arg),
			void *arg)
{
	struct fab_list *orders[] = {
		&recv->queue[FAB_CLASS_MSG].unexp_order, &recv->queue[FAB_CLASS_TAGGED].unexp_order, &recv->claimed,
		&recv->queue[FAB_CLASS_COLL].unexp_order,
	};
	struct fab_list *link, *next;

	for (size_t i = 0; i < fab_countof(orders); i++) {
		fab_list_for_each_safe(orders[i], link, next)
			fn(recv, fab_container(link, struct fab_kept, match.order), arg);
	}
}

static void recv_drop_one(struct fab_recv *recv, struct fab_kept *kept, void *arg)
{
	(void) arg;
	fab_kept_drop(recv, kept);
}

void fab_recv_drop_all(struct fab_recv *recv)
{
	fab_recv_each_kept(recv, recv_drop_one, NULL);
}

/* ---- init, fini, options ---- */

int fab_recv_setopt(struct fab_recv *recv, const void *optval, size_t optlen)
{
	size_t size;
	int ret;

	ret = fab_setopt_size(recv->ep->domain->fabric->prov, &size, optval, optlen);
	if (ret)
		return ret;
	fab_engine_lock(recv->ep->engine);
	recv->min_multi_recv = size;
	fab_engine_unlock(recv->ep->engine);
	return 0;
}

void fab_recv_set_grouped(struct fab_recv *recv, bool grouped)
{
	recv->grouped = grouped;
	for (int i = 0; i < FAB_CLASS_MAX; i++)
		recv->queue[i].grouped = grouped;
}

int fab_recv_init(struct fab_recv *recv, struct fab_ep *ep, size_t size, const struct fab_recv_ops *ops)
{
	const size_t rx_size = sizeof(struct fab_rx) + ops->iov_own *
			       (sizeof(struct iovec) + (ops->keeps_desc ? sizeof(void *) : 0));
	int ret;

	recv->ep = ep;
	recv->ops = ops;
	recv->stats = ep->stats ? ep->stats : fab_stats_nobody();
	for (int i = 0; i < FAB_CLASS_MAX; i++) {
		ret = fab_match_init(&recv->queue[i]);
		if (ret) {
			while (i--)
				fab_match_fini(&recv->queue[i]);
			return ret;
		}
		/* receives of two queues share a pool: see recv_cancel.c */
		recv->queue[i].next_seq = ((uint64_t) i << 62) + 1;
		recv->by_context[i] = NULL;
	}
	fab_pool_init(&recv->pool, &(struct fab_pool_attr) { .size = rx_size, .max_cnt = size, .chunk_cnt = 16 });
	fab_pool_init(&recv->coll_pool, &(struct fab_pool_attr) { .size = rx_size, .chunk_cnt = 4 });
	fab_pool_init(&recv->iov_pool, &(struct fab_pool_attr) { .size = ops->iov_max * sizeof(struct iovec),
		      .chunk_cnt = 4 });
	fab_list_init(&recv->claimed);
	recv->min_multi_recv = MIN_MULTI_RECV;
	recv->grouped = false;
	return 0;
}

/* The oldest receive of a class that is posted. */
static void survey_class(const struct fab_recv *recv, enum fab_msg_class class, struct fi_stats_pending *pending,
			 uint32_t (*peer)(const struct fab_recv *recv, fi_addr_t src))
{
	const struct fab_match *queue = &recv->queue[class];
	const struct fab_posted *first = fab_list_first(&queue->posted_order, struct fab_posted, order);
	bool connected = recv->ep->type == FI_EP_MSG;	/* to the only peer from which a message can come */
	bool any = first && !connected && (first->src == FI_ADDR_UNSPEC ||
					   (recv->grouped && (uint32_t) first->src == UINT32_MAX));
	struct fi_stats_pending what = {
		.cnt = queue->posted_cnt, .peer = UINT32_MAX, .op = FAB_OP_RECV + class, .state = FI_STATS_POSTED,
		.flags = (class != FAB_CLASS_MSG ? FI_STATS_TAGGED : 0) | (any ? FI_STATS_ANY_SOURCE : 0),
	};

	if (first) {
		what.number = first->seq;
		what.tag = first->tag;
		what.ignore = first->ignore;
		what.len = fab_container(first, const struct fab_rx, posted)->len;
		what.peer = any || !peer ? UINT32_MAX : peer(recv, first->src);
		what.flags |= what.peer != UINT32_MAX ? FI_STATS_PEER : connected ? FI_STATS_ANY_SOURCE : 0;
	}
	fab_stats_pending(pending, first ? &what : NULL);
}

void fab_recv_survey(const struct fab_recv *recv, struct fi_stats_ep *ep,
		     uint32_t (*peer)(const struct fab_recv *recv, fi_addr_t src))
{
	survey_class(recv, FAB_CLASS_MSG, &ep->pending[FI_STATS_EP_RECV], peer);
	survey_class(recv, FAB_CLASS_TAGGED, &ep->pending[FI_STATS_EP_TRECV], peer);
}

void fab_recv_fini(struct fab_recv *recv)
{
	fab_recv_cancel_fini(recv);
	for (int i = 0; i < FAB_CLASS_MAX; i++)
		fab_match_fini(&recv->queue[i]);
	fab_pool_fini(&recv->coll_pool);
	fab_pool_fini(&recv->iov_pool);
	fab_pool_fini(&recv->pool);
}
