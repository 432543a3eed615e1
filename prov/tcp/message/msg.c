/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages at the receiver: into the posted receive that fits, or kept until one comes. Engine lock held.
 *
 *   header -> posted receive found -> payload straight into it -> finish
 *         \-> none: unexpected, payload into a buffer -> a receive takes it, now or while it is still arriving
 *                                                     -> finish
 *                                \-> too long for that: stall.c
 */
#include "tcp/message/msg.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "common/collective/collective.h"
#include "common/endpoint/endpoint.h"
#include "common/hmem/hmem.h"
#include "tcp/params/params.h"

#define TRIM_CNT	2048	/* entries of a pool, a megabyte, that it keeps when all are free */

/* ---- unexpected messages ---- */

/* The longest message of a peer without announcements that is kept. */
static uint64_t unexp_max(const struct tcp_conn *conn)
{
	uint64_t max = tcp_params.unexp_max;

	return conn->holding.class == TCP_STRANGER ? fab_min(max, tcp_stranger_own_max(&conn->holding)) : max;
}

/* ---- kept messages of collectives, by group: whoever says that a group has failed decides how often ---- */

static uint64_t group_hash(const struct tcp_conn *conn, uint64_t tag)
{
	return fab_mix64(fab_mix64((uintptr_t) conn) ^ (tag & FAB_COLL_GROUP_BITS));
}

/* False: no memory. */
static bool group_list(struct tcp_unexp *unexp, uint64_t tag)
{
	struct fab_table *table = &unexp->ep->own_rx.grouped;

	if (!table->bucket && fab_table_init(table))
		return false;
	fab_table_add(table, &unexp->group, group_hash(unexp->conn, tag));
	return true;
}

static void group_unlist(struct tcp_unexp *unexp)
{
	if (unexp->base.class == FAB_CLASS_COLL)
		fab_table_remove(&unexp->ep->own_rx.grouped, &unexp->group);
}

struct tcp_unexp *tcp_unexp_new(struct tcp_conn *conn, const struct tcp_msg *msg, bool announced)
{
	struct tcp_ep *ep = conn->ep;
	bool too_many = announced ? conn->msg.announced_cnt >= TCP_IDMAP_MAX :
				    conn->peer.ext && conn->msg.unexp_len + msg->base.len >
						      2 * tcp_params.credit + TCP_SHORT_DEBT;
	struct tcp_unexp *unexp;

	if (too_many) {
		tcp_rx_broken(conn, "more unexpected messages than it was given credit for");
		return NULL;
	}
	unexp = fab_pool_get(&ep->rx->unexp_pool);
	if (!unexp)
		goto no_memory;
	memset(unexp, 0, offsetof(struct tcp_unexp, small));
	unexp->conn = conn;
	unexp->ep = ep;
	unexp->announced = announced;
	unexp->stalled = !announced && !conn->peer.ext && msg->base.len > unexp_max(conn);
	unexp->kept = announced || unexp->stalled ? 0 : msg->base.len + tcp_unexp_overhead(conn);
	unexp->buf = unexp->small;
	if (unexp->stalled)
		unexp->buf = NULL;
	else if (!announced && msg->base.len > TCP_UNEXP_SMALL)
		unexp->buf = malloc(msg->base.len);
	if (!unexp->buf && !unexp->stalled)
		goto put;
	if (msg->base.class == FAB_CLASS_COLL && !group_list(unexp, msg->base.tag))
		goto free_buf;
	fab_recv_keep(tcp_recv_of(ep, msg->base.class), &unexp->base, &msg->base,
		      tcp_match_src(ep, msg->base.src, msg->group));
	fab_list_add_tail(&conn->msg.unexp, &unexp->link);
	conn->msg.announced_cnt += announced;
	conn->msg.unexp_len += unexp->kept;
	conn->stats->announced_by_peer += announced;
	conn->stats->unexpected += !announced;
	conn->stats->unexpected_bytes += announced ? 0 : msg->base.len;
	tcp_unexp_charge(unexp, sizeof(*unexp) + (unexp->buf && unexp->buf != unexp->small ? msg->base.len : 0));
	if (fab_profile_listens(&ep->base))
		tcp_profile_event(unexp, FI_EVENT_UNEXP_MSG_RECVD);
	return unexp;

free_buf:
	if (unexp->buf != unexp->small)
		free(unexp->buf);
put:
	fab_pool_put(&ep->rx->unexp_pool, unexp);
no_memory:
	tcp_conn_fail(conn, FI_ENOMEM, ENOMEM, "no memory to keep an unexpected message");
	return NULL;
}

/* Grant credit to the peer: len bytes of eager messages were consumed. */
static void rx_give_credit(struct tcp_conn *conn, uint64_t len)
{
	if (conn->peer.ext)
		conn->owed.credit += len;
}

/* A pool that was much in use, and is not used now, gives its memory back. */
static void unexp_put(struct tcp_ep *ep, struct tcp_unexp *unexp)
{
	struct fab_pool *pool = &ep->rx->unexp_pool;

	fab_pool_put(pool, unexp);
	if (__builtin_expect(!pool->out_cnt && pool->made_cnt > TRIM_CNT, 0))
		tcp_rest_pool(ep, pool);
}

static void unexp_unlist(struct tcp_unexp *unexp)
{
	if (!unexp->conn && !unexp->foreign) {
		fab_table_remove(&unexp->ep->rx->orphans, &unexp->orphan);
		return;
	}
	fab_list_remove(&unexp->link);
	group_unlist(unexp);
}

void tcp_unexp_free(struct tcp_unexp *unexp)
{
	struct tcp_conn *conn = unexp->conn;

	if (conn) {
		conn->msg.announced_cnt -= unexp->announced;
		conn->msg.unexp_len -= unexp->kept;
		rx_give_credit(conn, unexp->kept);
		if (conn->msg.unexp_len < tcp_params.unexp_max / 2 && conn->rx.phase != TCP_RX_STALLED)
			tcp_rx_pause(conn, false);
	}
	tcp_unexp_give(unexp);
	if (unexp->listed)
		tcp_rndv_unlist(unexp);
	if (unexp->owned)
		unexp->ep->rx->owner->ops->lost(unexp->owned);
	unexp_unlist(unexp);
	if (unexp->buf != unexp->small)
		free(unexp->buf);
	unexp_put(unexp->ep, unexp);
}

void tcp_unexp_set_src(struct tcp_ep *ep, struct tcp_unexp *unexp, fi_addr_t fi_addr)
{
	fab_kept_set_src(tcp_recv_of(ep, unexp->base.class), &unexp->base,
			 tcp_match_src(ep, fi_addr, unexp->base.match.src >> 32));
	ep->rx->named |= fi_addr != FI_ADDR_NOTAVAIL;
	if (!unexp->conn)
		tcp_unexp_reclass(unexp, fi_addr != FI_ADDR_NOTAVAIL ? TCP_KNOWN : TCP_STRANGER);
}

void tcp_msg_name_sender(struct tcp_conn *conn, fi_addr_t fi_addr)
{
	struct fab_list *link;

	conn->fi_addr = fi_addr;
	fab_list_for_each(&conn->msg.unexp, link)
		tcp_unexp_set_src(conn->ep, fab_container(link, struct tcp_unexp, link), fi_addr);
	tcp_stranger_reclass(conn);
	if (conn->ep->rx->owner && !fab_list_empty(&conn->msg.unexp))
		conn->ep->rx->owner->ops->named(conn->ep->rx->owner);
}

struct tcp_msg tcp_unexp_msg(const struct tcp_unexp *unexp)
{
	return (struct tcp_msg) {
		.base = fab_kept_msg(tcp_recv_of(unexp->ep, unexp->base.class), &unexp->base), .conn = unexp->conn,
	};
}

void tcp_rx_aim_into(struct tcp_rx_state *rx, const struct fab_into *into)
{
	uint8_t hmem = fab_op_hmem(into->rx->flags);

	if (into->rx->flags & FI_MULTI_RECV)
		tcp_rx_aim(rx, &(struct iovec) { into->start, into->take }, 1, into->take, hmem);
	else
		tcp_rx_aim(rx, into->rx->iov, into->rx->iov_cnt, into->take, hmem);
}

/* Copy a complete message into the receive that has taken it, and finish. */
static void unexp_deliver(struct tcp_unexp *unexp)
{
	struct tcp_msg msg = tcp_unexp_msg(unexp);

	fab_into_copy(&unexp->base.into, 0, unexp->buf, msg.base.len);
	tcp_rx_finish(unexp->ep, &unexp->base.into, &msg, NULL);
	tcp_unexp_free(unexp);
}

void tcp_unexp_unlink(struct tcp_unexp *unexp)
{
	fab_kept_unlink(tcp_recv_of(unexp->ep, unexp->base.class), &unexp->base);
}

void tcp_unexp_dropped(struct fab_recv *recv, struct fab_kept *kept)
{
	struct tcp_unexp *unexp = fab_container(kept, struct tcp_unexp, base);
	struct tcp_conn *conn = unexp->conn;

	(void) recv;
	if (unexp->announced)
		tcp_rndv_discard(conn, unexp);
	if (conn && conn->state == TCP_CONN_DOWN)
		return;		/* the failure has freed it */
	if (unexp->stalled)
		tcp_stall_take(conn, unexp);
	else if (unexp->announced || unexp->complete)
		tcp_unexp_free(unexp);
	else if (unexp->foreign)
		unexp->theirs.ops->discard(unexp);
	if (conn)
		tcp_rx_tell(conn);
}

void tcp_unexp_drop(struct tcp_unexp *unexp)
{
	fab_kept_drop(tcp_recv_of(unexp->ep, unexp->base.class), &unexp->base);
}

bool tcp_unexp_taken(struct fab_recv *recv, struct fab_kept *kept)
{
	struct tcp_unexp *unexp = fab_container(kept, struct tcp_unexp, base);
	struct tcp_conn *conn = unexp->conn;
	struct tcp_ep *ep = unexp->ep;

	(void) recv;
	if (fab_profile_listens(&ep->base))
		tcp_profile_event(unexp, FI_EVENT_UNEXP_MSG_MATCHED);
	if (unexp->announced)
		tcp_rndv_take(conn, unexp);
	else if (unexp->stalled)
		tcp_stall_take(conn, unexp);
	else if (unexp->complete)
		unexp_deliver(unexp);
	else if (unexp->foreign)
		unexp->theirs.ops->start(unexp);
	else
		tcp_rx_pause(conn, false);	/* its rest can be read now */
	if (conn)
		tcp_rx_tell(conn);
	/* if this was the endpoint's only connection and it has failed meanwhile, the endpoint's own receives have
	 * ended, too */
	return ep->shared.srx || !ep->conn || ep->conn->state != TCP_CONN_DOWN;
}

bool tcp_unexp_take(struct tcp_unexp *unexp, struct fab_rx *rx)
{
	return fab_kept_take_with(tcp_recv_of(unexp->ep, unexp->base.class), &unexp->base, rx, &tcp_recv_ops);
}

/* ---- messages ---- */

static const uint8_t class_of_frame[TCP_WIRE_OP_END] = {
	[TCP_WIRE_TAG] = FAB_CLASS_TAGGED,
	[TCP_WIRE_COLL] = FAB_CLASS_COLL,
};

/* Read the rest of a header with additional parts. */
static void rx_msg_rare(const struct tcp_conn *conn, struct tcp_msg *msg)
{
	const struct tcp_hdr *hdr = &conn->rx.hdr;

	const bool has_data = hdr->flags & TCP_FLAG_CQ_DATA;

	msg->base.data = tcp_rx_cq_data(conn);
	msg->base.flags = has_data ? FI_REMOTE_CQ_DATA : 0;
	if (hdr->flags & TCP_FLAG_GROUP)
		msg->group = tcp_rx_group(conn);
	/* the length of the header was checked: with such a peer, no other part makes it longer */
	if (hdr->op == TCP_WIRE_MSG && !conn->peer.ext &&
	    hdr->hdr_size >= sizeof(*hdr) + sizeof(uint64_t) + has_data * sizeof(uint64_t))
		msg->base.flags |= FI_TAGGED;
}

/* Small messages pass here twice, so it is inlined, and additional parts of a header cost one branch. */
static inline __attribute__((always_inline)) struct tcp_msg rx_msg(const struct tcp_conn *conn)
{
	const struct tcp_hdr *hdr = &conn->rx.hdr;
	struct tcp_msg msg = {
		.base = {
			.class = class_of_frame[hdr->op], .len = hdr->size - hdr->hdr_size, .src = conn->fi_addr,
		},
		.conn = conn,
	};
	const void *tag = conn->rx.hdr_buf + sizeof(*hdr);

	if (__builtin_expect(hdr->flags & TCP_FLAGS_LONGER, 0)) {
		rx_msg_rare(conn, &msg);
		tag = tcp_rx_extra(conn);
	}
	if (msg.base.class != FAB_CLASS_MSG || (msg.base.flags & FI_TAGGED))
		memcpy(&msg.base.tag, tag, sizeof(msg.base.tag));
	return msg;
}

/* The current message is complete in the receive that it has claimed. Inlined, as most messages come here. */
static inline __attribute__((always_inline))
void posted_finish(struct tcp_conn *conn, struct fab_recv *recv, const struct tcp_msg *msg, const struct fab_into *into)
{
	fab_recv_count(conn->stats, into, &msg->base, NULL);
	fab_rx_finish_with(recv, &conn->ep->base, into, &msg->base, NULL, &tcp_recv_ops);
	rx_give_credit(conn, msg->base.len + TCP_CREDIT_OVERHEAD);
	tcp_rx_delivered(conn);
}

static void posted_done(struct tcp_conn *conn)
{
	struct tcp_msg msg = rx_msg(conn);
	struct fab_into into = conn->rx.into;

	conn->rx.into.rx = NULL;
	if (__builtin_expect(conn->rx.spoilt, 0))
		into.rx->rare |= FAB_RX_SPOILT;
	posted_finish(conn, tcp_recv_of(conn->ep, msg.base.class), &msg, &into);
}

static void unexp_done(struct tcp_conn *conn)
{
	struct tcp_unexp *unexp = conn->rx.unexp;

	conn->rx.unexp = NULL;
	unexp->complete = true;
	tcp_rx_delivered(conn);
	if (unexp->base.place == FAB_KEPT_TAKEN)
		unexp_deliver(unexp);
	else if (unexp->base.place == FAB_KEPT_DROPPED)
		tcp_unexp_free(unexp);
	else if (!conn->peer.ext && conn->msg.unexp_len > tcp_params.unexp_max)
		tcp_rx_pause(conn, true);
}

/* Read the payload into the receive that has taken rx.into. */
static inline void flow_into_posted(struct tcp_conn *conn, uint64_t len)
{
	tcp_rx_aim_into(&conn->rx, &conn->rx.into);
	tcp_rx_expect(conn, conn->rx.into.take, len - conn->rx.into.take, posted_done);
}

/* A receive takes the message. */
static inline __attribute__((always_inline))
void start_into_posted(struct tcp_conn *conn, struct fab_rx *rx, const struct tcp_msg *msg)
{
	const uint8_t *payload = tcp_rx_take(conn, msg->base.len);
	struct fab_recv *recv = tcp_recv_of(conn->ep, msg->base.class);
	struct fab_into into;

	if (payload) {
		fab_rx_claim(recv, rx, msg->base.len, &into);
		fab_into_fill(&into, payload);
		posted_finish(conn, recv, msg, &into);
	} else {
		fab_rx_claim(recv, rx, msg->base.len, &conn->rx.into);
		flow_into_posted(conn, msg->base.len);
	}
}

/* The way of a message that is all there, and for which a plain receive is posted. tag_len is a constant, 0 for
 * untagged messages. */
static inline __attribute__((always_inline))
bool msg_whole(struct tcp_conn *conn, enum fab_msg_class class, const uint8_t *rest, size_t tag_len, size_t len)
{
	struct fab_recv *recv = &conn->ep->rx->recv;
	struct fab_msg msg = { .class = class, .len = len, .src = conn->fi_addr };
	struct fab_rx *rx;

	memcpy(&msg.tag, rest, tag_len);
	rx = tcp_rx_find(conn, class, msg.tag, 0);
	if (!rx || !fab_rx_take_whole(recv, &conn->ep->base, rx, &msg, rest + tag_len, &tcp_recv_ops))
		return false;
	fab_stats_count(conn->stats, FAB_OP_RECV + class, len);
	rx_give_credit(conn, len + TCP_CREDIT_OVERHEAD);
	tcp_rx_delivered(conn);
	return true;
}

bool tcp_msg_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len)
{
	return conn->rx.hdr.op_data != TCP_OP_DATA_ACK && msg_whole(conn, FAB_CLASS_MSG, rest, 0, len);
}

bool tcp_tag_whole(struct tcp_conn *conn, const uint8_t *rest, size_t len)
{
	return msg_whole(conn, FAB_CLASS_TAGGED, rest, sizeof(uint64_t), len);
}

void tcp_msg_resume(struct tcp_conn *conn, const uint8_t *buf, uint64_t len)
{
	uint64_t all = conn->rx.hdr.size - conn->rx.hdr.hdr_size;

	if (conn->rx.into.rx)
		flow_into_posted(conn, all);
	else
		tcp_rx_expect(conn, 0, all, tcp_rx_delivered);
	tcp_rx_copy(&conn->rx, buf, len);
}

void tcp_msg_keep(struct tcp_conn *conn)
{
	struct tcp_unexp *unexp = conn->rx.unexp;
	uint64_t left = unexp->base.len - unexp->have;

	tcp_rx_aim(&conn->rx, &(struct iovec) { unexp->buf + unexp->have, left }, 1, left, FAB_HMEM_HOST);
	tcp_rx_expect(conn, left, 0, unexp_done);
}

bool tcp_msg_coll_refuses(struct tcp_conn *conn, uint64_t tag)
{
	return conn->ep->base.coll && fab_coll_refuses(conn->ep->base.coll, conn->fi_addr, tag);
}

/* The end of a message of a group that has failed. */
static void refused_done(struct tcp_conn *conn)
{
	rx_give_credit(conn, conn->rx.hdr.size - conn->rx.hdr.hdr_size + TCP_CREDIT_OVERHEAD);
	tcp_rx_delivered(conn);
}

void tcp_msg_start(struct tcp_conn *conn)
{
	const struct tcp_hdr *hdr = &conn->rx.hdr;
	struct fi_peer_rx_entry *entry = NULL;
	struct tcp_msg msg;
	struct fab_rx *rx;

	if (hdr->op == TCP_WIRE_MSG && hdr->op_data == TCP_OP_DATA_ACK) {
		tcp_rx_ack(conn);
		return;
	}
	msg = rx_msg(conn);
	if (__builtin_expect(msg.group > TCP_GROUP_MAX, 0)) {
		tcp_rx_broken(conn, "no such peer group");
		return;
	}
	rx = tcp_rx_find(conn, msg.base.class, fab_msg_match_tag(&msg.base), msg.group);
	if (!rx && conn->ep->rx->owner && msg.base.class != FAB_CLASS_COLL) {
		rx = conn->ep->rx->owner->ops->find(conn, &msg, &entry);
		if (conn->state == TCP_CONN_DOWN)
			return;
	}
	if (rx) {
		start_into_posted(conn, rx, &msg);
		return;
	}
	if (msg.base.class == FAB_CLASS_COLL && tcp_msg_coll_refuses(conn, msg.base.tag)) {
		if (conn->state != TCP_CONN_DOWN)
			tcp_rx_expect(conn, 0, msg.base.len, refused_done);
		return;
	}
	conn->rx.unexp = tcp_unexp_new(conn, &msg, false);
	if (entry)
		conn->ep->rx->owner->ops->queue(conn->ep->rx->owner, conn->rx.unexp, entry);
	if (!conn->rx.unexp || conn->state == TCP_CONN_DOWN)
		return;
	if (conn->rx.unexp->stalled)
		conn->rx.phase = TCP_RX_STALLED;
	else
		tcp_msg_keep(conn);
}

/* ---- the end of a connection, or of a message ---- */

/* The message that flows into a posted receive ends here. */
static void posted_fail(struct tcp_conn *conn, const struct fab_cq_fail *fail)
{
	struct tcp_msg msg = rx_msg(conn);
	struct fab_into into = conn->rx.into;

	into.take -= conn->rx.left;
	conn->rx.into.rx = NULL;
	tcp_rx_finish(conn->ep, &into, &msg, fail);
}

/* A message that is not complete, and will not be. */
static void unexp_fail(struct tcp_unexp *unexp, const struct fab_cq_fail *fail)
{
	tcp_unexp_unlink(unexp);
	if (unexp->base.place == FAB_KEPT_TAKEN) {
		struct tcp_msg msg = tcp_unexp_msg(unexp);

		tcp_rx_finish(unexp->ep, &unexp->base.into, &msg, fail);
	}
	tcp_unexp_free(unexp);
}

void tcp_msg_spoilt(struct tcp_conn *conn, int err)
{
	const struct fab_cq_fail fail = {
		.err = err, .prov_errno = err,
		.text = "the buffer of the receive, or of the peer's send, is no valid memory",
	};
	struct tcp_unexp *unexp = conn->rx.unexp;

	conn->rx.unexp = NULL;
	if (conn->rx.into.rx) {
		posted_fail(conn, &fail);
		rx_give_credit(conn, conn->rx.hdr.size - conn->rx.hdr.hdr_size + TCP_CREDIT_OVERHEAD);
	} else {
		unexp_fail(unexp, &fail);
	}
	tcp_tx_ack(conn, err);
}

void tcp_msg_refused(struct tcp_tx *tx, int err)
{
	tcp_tx_done(tx, err, err, "the buffer of the send, or of the peer's receive, is no valid memory");
}

/* Detach a complete message from its connection; a receive may still take it. */
static void unexp_orphan(struct tcp_unexp *unexp)
{
	fab_list_remove(&unexp->link);
	group_unlist(unexp);
	unexp->from = unexp->conn->addr;
	fab_table_add(&unexp->ep->rx->orphans, &unexp->orphan, fab_addr_hash(&unexp->from.sa));
	tcp_unexp_leave(unexp);
}

void tcp_rx_disown(struct tcp_conn *conn)
{
	while (!fab_list_empty(&conn->msg.unexp))
		unexp_orphan(fab_list_first(&conn->msg.unexp, struct tcp_unexp, link));
	conn->msg.unexp_len = 0;
	conn->owed.credit = 0;
}

/* True if it is of this group, and no receive has taken it. */
static bool unexp_is_of_group(const struct tcp_unexp *unexp, uint64_t group)
{
	return unexp->base.class == FAB_CLASS_COLL && unexp->base.place == FAB_KEPT_QUEUED &&
	       (unexp->base.tag & FAB_COLL_GROUP_BITS) == group;
}

void tcp_rx_drop_group(struct tcp_conn *conn, uint64_t group)
{
	const struct fab_table *table = &conn->ep->own_rx.grouped;
	struct fab_list *link, *next;

	if (!table->cnt)
		return;
	fab_list_for_each_safe(fab_table_bucket(table, group_hash(conn, group)), link, next) {
		struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, group.link);

		if (unexp->conn == conn && unexp_is_of_group(unexp, group))
			tcp_unexp_drop(unexp);
		if (conn->state == TCP_CONN_DOWN)
			return;
	}
}

static bool drop_orphan(struct fab_entry *entry, void *group)
{
	struct tcp_unexp *unexp = fab_container(entry, struct tcp_unexp, orphan);

	if (unexp_is_of_group(unexp, *(const uint64_t *) group))
		tcp_unexp_drop(unexp);
	return false;
}

void tcp_rx_drop_group_left(struct tcp_ep *ep, uint64_t group)
{
	fab_table_any(&ep->rx->orphans, drop_orphan, &group);
}

void tcp_rx_fail_all(struct tcp_conn *conn, int err, int prov_errno, const char *text)
{
	const struct fab_cq_fail fail = { .err = err, .prov_errno = prov_errno, .text = text };
	struct fab_list *link, *next;

	if (conn->rx.into.rx)
		posted_fail(conn, &fail);
	fab_list_for_each_safe(&conn->msg.unexp, link, next) {
		struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, link);

		if (unexp->complete) {
			unexp_orphan(unexp);
			continue;
		}
		unexp_fail(unexp, &fail);
	}
}
