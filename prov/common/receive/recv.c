/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Posted receives, messages that wait for one, and looking for those. Engine lock held, but for the option.
 */
#include "common/receive/recv.h"

#include <inttypes.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "base/bits.h"

#define MIN_MULTI_RECV	64		/* bytes; what FI_OPT_MIN_MULTI_RECV is at first */

static struct fab_match *queue_of(struct fab_recv *recv, bool tagged)
{
	return tagged ? &recv->tagged : &recv->msg;
}

/* What a completion has as the source of what came from src. */
static fi_addr_t told_src(const struct fab_recv *recv, fi_addr_t src)
{
	return recv->want_src && recv->ep->av ? fab_av_user_id(recv->ep->av, src) : FI_ADDR_NOTAVAIL;
}

/* ---- posted receives ---- */

static void rx_unpost(struct fab_recv *recv, struct fab_rx *rx)
{
	fab_match_unpost(queue_of(recv, rx->code == FAB_OP_TRECV), &rx->posted);
	rx->unposted = true;
}

struct fab_rx *fab_recv_find(struct fab_recv *recv, bool tagged, uint64_t tag, fi_addr_t src)
{
	struct fab_posted *posted = fab_match_find_posted(queue_of(recv, tagged), tag, src);

	return posted ? fab_container(posted, struct fab_rx, posted) : NULL;
}

bool fab_recv_claim(struct fab_recv *recv, struct fab_rx *rx, uint64_t len, struct fab_into *into)
{
	*into = (struct fab_into) {
		.rx = rx, .start = rx->iov_cnt ? rx->iov[0].iov_base : NULL, .take = fab_min(len, (uint64_t) rx->len),
	};
	rx->busy++;
	if (rx->flags & FI_MULTI_RECV) {
		/* one buffer, filled from the front */
		rx->iov[0].iov_base = (uint8_t *) into->start + into->take;
		rx->iov[0].iov_len -= into->take;
		rx->len -= into->take;
		if (rx->len && rx->len >= recv->min_multi_recv)
			return true;
	}
	if (!rx->unposted)
		rx_unpost(recv, rx);
	return false;
}

void fab_into_copy(const struct fab_into *into, size_t offset, const void *buf, size_t len)
{
	const uint8_t *from = buf;

	if (offset >= into->take)
		return;
	len = fab_min(len, into->take - offset);
	if (into->rx->flags & FI_MULTI_RECV) {
		memcpy((uint8_t *) into->start + offset, from, len);
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

/* It has a hook, has failed (fail), or was too short by so many bytes. */
static __attribute__((noinline))
void finish_rare(struct fab_recv *recv, struct fab_rx *rx, struct fab_comp *comp, size_t over,
		 const struct fab_cq_fail *fail)
{
	const struct fab_cq_fail trunc = {
		.err = FI_ETRUNC, .prov_errno = FI_ETRUNC, .olen = over,
		.text = "the message is longer than the receive buffer",
	};
	struct fab_hook *hook = rx->context;

	if (!fail && over)
		fail = &trunc;
	if (rx->hooked)
		hook->done(hook, rx->code, comp, fail);
	else
		fab_ep_fail(recv->ep, rx->code, comp, fail);
}

void fab_recv_finish(struct fab_recv *recv, const struct fab_into *into, const struct fab_msg *msg,
		     const struct fab_cq_fail *fail)
{
	struct fab_rx *rx = into->rx;
	bool last = !--rx->busy && rx->unposted;
	struct fab_comp comp = {
		.context = rx->context,
		.flags = fab_op_desc[rx->code].cq_flags | (msg->has_data ? FI_REMOTE_CQ_DATA : 0) |
			 (last ? rx->flags & FI_MULTI_RECV : 0),
		.len = into->take, .buf = into->start, .data = msg->data, .tag = msg->tag,
		.src = told_src(recv, msg->src),
	};

	if (__builtin_expect(rx->hooked || fail || into->take < msg->len, 0))
		finish_rare(recv, rx, &comp, msg->len - into->take, fail);
	else
		fab_ep_complete_to(recv->ep, rx->code, &comp, fab_ep_rx_wants_comp(recv->ep, rx->flags), NULL);
	if (last)
		fab_pool_put(&recv->pool, rx);
}

/* Complete a receive that no message has taken. */
static void rx_fail_posted(struct fab_recv *recv, struct fab_rx *rx, int err)
{
	const struct fab_msg msg = { .src = FI_ADDR_NOTAVAIL };
	const struct fab_into into = { .rx = rx };

	rx_unpost(recv, rx);
	rx->busy++;
	fab_recv_finish(recv, &into, &msg, &(struct fab_cq_fail) { .err = err, .prov_errno = err });
}

static bool cancel_in(struct fab_recv *recv, struct fab_match *match, const void *context, bool hooked)
{
	struct fab_list *link;

	fab_list_for_each(&match->posted_order, link) {
		struct fab_rx *rx = fab_container(link, struct fab_rx, posted.order);

		if (rx->context == context && rx->hooked == hooked) {
			rx_fail_posted(recv, rx, FI_ECANCELED);
			return true;
		}
	}
	return false;
}

bool fab_recv_cancel(struct fab_recv *recv, const void *context)
{
	return cancel_in(recv, &recv->tagged, context, false) || cancel_in(recv, &recv->msg, context, false);
}

bool fab_recv_cancel_hook(struct fab_recv *recv, const struct fab_hook *hook)
{
	return cancel_in(recv, &recv->msg, hook, true);
}

void fab_recv_flush(struct fab_recv *recv, int err)
{
	struct fab_match *queues[] = { &recv->msg, &recv->tagged };
	struct fab_list *link, *next;

	for (size_t i = 0; i < fab_countof(queues); i++) {
		fab_list_for_each_safe(&queues[i]->posted_order, link, next)
			rx_fail_posted(recv, fab_container(link, struct fab_rx, posted.order), err);
	}
}

static inline int rx_new(struct fab_recv *recv, const struct fab_op *op, struct fab_rx **new_rx)
{
	struct fab_rx *rx;

	if (op->iov_cnt > FAB_RECV_IOV || ((op->flags & FI_MULTI_RECV) && op->iov_cnt != 1))
		return -FI_EINVAL;
	rx = fab_pool_get(&recv->pool);
	if (!rx)
		return fab_pool_full(&recv->pool) ? -FI_EAGAIN : -FI_ENOMEM;
	rx->posted.tag = op->tag & ~op->ignore;
	rx->posted.ignore = op->ignore;
	rx->posted.src = recv->directed ? op->addr : FI_ADDR_UNSPEC;
	rx->context = op->context;
	rx->flags = op->flags;
	rx->len = fab_iov_len(op->iov, op->iov_cnt);
	rx->iov_cnt = op->iov_cnt;
	rx->busy = 0;
	rx->code = op->code;
	rx->unposted = true;
	rx->hooked = op->hooked;
	for (uint32_t i = 0; i < op->iov_cnt; i++) {
		rx->iov[i] = op->iov[i];
		rx->desc[i] = op->desc ? op->desc[i] : NULL;
	}
	*new_rx = rx;
	return 0;
}

/* ---- messages that wait ---- */

void fab_recv_keep(struct fab_recv *recv, struct fab_kept *kept, const struct fab_msg *msg)
{
	*kept = (struct fab_kept) {
		.match = { .tag = msg->tag, .src = msg->src },
		.data = msg->data, .len = msg->len, .tagged = msg->tagged, .has_data = msg->has_data, .waiting = true,
	};
	fab_match_add_unexp(queue_of(recv, msg->tagged), &kept->match);
}

struct fab_msg fab_kept_msg(const struct fab_kept *kept)
{
	return (struct fab_msg) {
		.tag = kept->match.tag, .data = kept->data, .len = kept->len, .src = kept->match.src,
		.tagged = kept->tagged, .has_data = kept->has_data,
	};
}

void fab_kept_set_src(struct fab_recv *recv, struct fab_kept *kept, fi_addr_t src)
{
	if (kept->waiting && !kept->claimed)
		fab_match_set_unexp_src(queue_of(recv, kept->tagged), &kept->match, src);
	else
		kept->match.src = src;
}

void fab_kept_unlink(struct fab_recv *recv, struct fab_kept *kept)
{
	if (!kept->waiting)
		return;
	kept->waiting = false;
	if (kept->claimed)
		fab_list_remove(&kept->match.order);
	else
		fab_match_del_unexp(queue_of(recv, kept->tagged), &kept->match);
}

static void kept_drop(struct fab_recv *recv, struct fab_kept *kept)
{
	fab_kept_unlink(recv, kept);
	recv->ops->drop(recv, kept);
}

/* True: the receive is still posted, for more. */
static bool kept_take(struct fab_recv *recv, struct fab_kept *kept, struct fab_rx *rx)
{
	struct fab_into into;
	bool more;

	fab_kept_unlink(recv, kept);
	more = fab_recv_claim(recv, rx, kept->len, &into);
	recv->ops->take(recv, kept, &into);
	return more;
}

void fab_recv_drop_all(struct fab_recv *recv)
{
	struct fab_list *queues[] = { &recv->msg.unexp_order, &recv->tagged.unexp_order, &recv->claimed };
	struct fab_list *link, *next;

	for (size_t i = 0; i < fab_countof(queues); i++) {
		fab_list_for_each_safe(queues[i], link, next)
			kept_drop(recv, fab_container(link, struct fab_kept, match.order));
	}
}

static struct fab_kept *find_kept(struct fab_recv *recv, const struct fab_op *op)
{
	struct fab_match *queue = queue_of(recv, op->code == FAB_OP_TRECV);
	struct fab_unexp *unexp = queue->unexp_cnt ?
		fab_match_find_unexp(queue, op->tag, op->ignore, recv->directed ? op->addr : FI_ADDR_UNSPEC) : NULL;

	return unexp ? fab_container(unexp, struct fab_kept, match) : NULL;
}

/* ---- peek, claim, discard ---- */

static void peek_found(struct fab_recv *recv, const struct fab_op *op, const struct fab_kept *kept)
{
	struct fab_comp comp = {
		.context = op->context,
		.flags = fab_op_desc[op->code].cq_flags | (kept->has_data ? FI_REMOTE_CQ_DATA : 0) |
			 (op->flags & FI_CLAIM),
		.len = kept->len, .data = kept->data, .tag = kept->match.tag, .src = told_src(recv, kept->match.src),
	};

	/* the answer is the completion: there is one whatever was selected */
	fab_ep_complete(recv->ep, op->code, &comp, recv->ep->rx_cq);
}

static void peek_nothing(struct fab_recv *recv, const struct fab_op *op)
{
	struct fab_comp comp = {
		.context = op->context, .flags = fab_op_desc[op->code].cq_flags, .tag = op->tag,
		.src = FI_ADDR_NOTAVAIL,
	};

	fab_ep_fail(recv->ep, op->code, &comp, &(struct fab_cq_fail) {
		    .err = FI_ENOMSG, .prov_errno = FI_ENOMSG, .text = "no such message has arrived" });
}

static struct fab_kept *find_claimed(struct fab_recv *recv, const void *context)
{
	struct fab_list *link;

	fab_list_for_each(&recv->claimed, link) {
		struct fab_kept *kept = fab_container(link, struct fab_kept, match.order);

		if (kept->claim == context)
			return kept;
	}
	return NULL;
}

static void peek(struct fab_recv *recv, const struct fab_op *op)
{
	struct fab_kept *kept = find_kept(recv, op);

	/* whoever only peeks, and reads the one answer each time, makes no progress otherwise: fi_cq_read had an
	 * entry */
	if (!kept && fab_engine_run(recv->ep->engine))
		kept = find_kept(recv, op);
	if (!kept) {
		peek_nothing(recv, op);
		return;
	}
	peek_found(recv, op, kept);
	if (op->flags & FI_DISCARD) {
		kept_drop(recv, kept);
	} else if (op->flags & FI_CLAIM) {
		fab_match_del_unexp(queue_of(recv, true), &kept->match);
		kept->claimed = true;
		kept->claim = op->context;
		fab_list_add_tail(&recv->claimed, &kept->match.order);
	}
}

/* The receive of what was claimed with this context, whatever address or tag the call gives. */
static int claim(struct fab_recv *recv, const struct fab_op *op)
{
	struct fab_kept *kept = find_claimed(recv, op->context);
	struct fab_rx *rx;
	int ret;

	if (!kept) {
		/* never claimed, or its sender went before all of it had come */
		peek_nothing(recv, op);
		return 0;
	}
	if (op->flags & FI_DISCARD) {
		peek_found(recv, op, kept);
		kept_drop(recv, kept);
		return 0;
	}
	ret = rx_new(recv, op, &rx);
	if (!ret)
		kept_take(recv, kept, rx);
	return ret;
}

static int post_rare(struct fab_recv *recv, const struct fab_op *op)
{
	if (op->code != FAB_OP_TRECV || (op->flags & FI_MULTI_RECV) || !(op->flags & (FI_PEEK | FI_CLAIM)))
		return -FI_EINVAL;
	if (!(op->flags & FI_PEEK))
		return claim(recv, op);
	peek(recv, op);
	return 0;
}

/* ---- posting, life, options ---- */

int fab_recv_post(struct fab_recv *recv, const struct fab_op *op)
{
	struct fab_kept *kept;
	struct fab_rx *rx;
	int ret;

	if (op->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))
		return post_rare(recv, op);
	ret = rx_new(recv, op, &rx);
	if (ret)
		return ret;
	kept = find_kept(recv, op);
	if (!kept || (op->flags & FI_MULTI_RECV)) {
		rx->unposted = false;
		ret = fab_match_post(queue_of(recv, op->code == FAB_OP_TRECV), &rx->posted);
		if (ret) {
			fab_pool_put(&recv->pool, rx);
			return ret;
		}
	}
	/* a multi-receive may take several, and still be posted for more */
	while (kept && kept_take(recv, kept, rx))
		kept = find_kept(recv, op);
	return 0;
}

int fab_recv_setopt(struct fab_recv *recv, const void *optval, size_t optlen)
{
	if (!optval || optlen != sizeof(size_t)) {
		FI_WARN(recv->ep->domain->fabric->prov, FI_LOG_EP_CTRL, "FI_OPT_MIN_MULTI_RECV of %zu bytes: it is a "
			"size_t\n", optlen);
		return -FI_EINVAL;
	}
	fab_engine_lock(recv->ep->engine);
	memcpy(&recv->min_multi_recv, optval, sizeof(size_t));
	fab_engine_unlock(recv->ep->engine);
	return 0;
}

int fab_recv_init(struct fab_recv *recv, struct fab_ep *ep, const struct fab_recv_ops *ops)
{
	int ret;

	*recv = (struct fab_recv) {
		.ep = ep, .ops = ops, .min_multi_recv = MIN_MULTI_RECV,
		.directed = ep->caps & FI_DIRECTED_RECV, .want_src = ep->caps & FI_SOURCE,
	};
	ret = fab_match_init(&recv->msg);
	if (ret)
		return ret;
	ret = fab_match_init(&recv->tagged);
	if (ret) {
		fab_match_fini(&recv->msg);
		return ret;
	}
	fab_pool_init(&recv->pool, &(struct fab_pool_attr) { .size = sizeof(struct fab_rx),
		      .max_cnt = ep->info->rx_attr->size, .chunk_cnt = 16 });
	fab_list_init(&recv->claimed);
	return 0;
}

void fab_recv_fini(struct fab_recv *recv)
{
	fab_pool_fini(&recv->pool);
	fab_match_fini(&recv->tagged);
	fab_match_fini(&recv->msg);
}
