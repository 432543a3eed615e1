/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Unexpected messages: they wait until a receive takes them, or the endpoint is closed. Engine lock held.
 *
 *   complete   all bytes are here; the message stays when its connection ends (ep->orphans)
 *   in parts   segments are missing; they go here, or into the receive once it has one. Freed with its connection
 *   announced  the bytes are at the sender. Freed with its connection
 */
#include "rxm/rx.h"

#include <stdlib.h>
#include <string.h>
#include "common/collective/collective.h"

/* Its peer is in no address vector now, or in one. */
static void kept_set_stranger(struct rxm_kept *kept, bool stranger)
{
	if (kept->stranger == stranger)
		return;
	kept->stranger = stranger;
	kept->ep->stranger_len += stranger ? kept->cost : -kept->cost;
}

/* More of it is here. */
static void kept_charge(struct rxm_kept *kept, size_t len)
{
	kept->cost += len;
	kept->conn->kept_len += len;
	kept->ep->kept_len += len;
	kept->ep->stranger_len += kept->stranger ? len : 0;
}

struct rxm_kept *rxm_kept_new(struct rxm_conn *conn, const struct fab_msg *msg, size_t room, size_t len)
{
	struct rxm_kept *kept = malloc(sizeof(*kept) + room);

	if (!kept) {
		rxm_conn_fail(conn, FI_ENOMEM, "no memory to keep an unexpected message");
		return NULL;
	}
	memset(kept, 0, sizeof(*kept));
	fab_recv_keep(&conn->ep->recv, &kept->base, msg, msg->src);
	kept->ep = conn->ep;
	kept->conn = conn;
	kept_set_stranger(kept, conn->stranger);
	kept_charge(kept, sizeof(*kept) + len);
	conn->kept_cnt++;
	fab_list_add_tail(&conn->kept, &kept->link);
	return kept;
}

void rxm_kept_append(struct rxm_kept *kept, const void *data, size_t len)
{
	memcpy(kept->data + kept->have, data, len);
	kept->have += len;
	kept_charge(kept, len);
}

void rxm_kept_free(struct rxm_kept *kept)
{
	struct rxm_conn *conn = kept->conn;
	struct rxm_rx *rx = kept->rx;
	uint32_t owes = kept->no_credit;

	kept_set_stranger(kept, false);
	kept->ep->kept_len -= kept->cost;
	if (conn) {
		conn->kept_len -= kept->cost;
		conn->kept_cnt--;
		fab_list_remove(&kept->link);
	} else {
		fab_table_remove(&kept->ep->orphans, &kept->orphan);
	}
	free(kept);
	if (!conn || conn->state == RXM_CONN_DOWN)
		return;
	if (rx)
		rxm_rx_repost(rx);
	for (; owes && conn->state == RXM_CONN_UP; owes--)
		rxm_credit_give(conn, RXM_ASKS);
}

/* The message was taken by a receive or discarded by the application: free it, and tell the sender. */
static void kept_end(struct rxm_kept *kept)
{
	struct rxm_conn *conn = kept->conn;
	uint64_t msg_id = kept->msg_id;
	bool owes_ack = kept->owes_ack, rndv = kept->rndv;

	rxm_kept_free(kept);
	rxm_msg_acknowledge(conn, owes_ack, msg_id);
	if (rndv && conn->state == RXM_CONN_UP)
		rxm_answer(conn, RXM_RNDV_DONE, msg_id, 0);
}

bool rxm_kept_take(struct fab_recv *recv, struct fab_kept *base)
{
	struct rxm_kept *kept = fab_container(base, struct rxm_kept, base);
	struct fab_msg msg = fab_kept_msg(recv, base);
	const struct fab_into *into = &base->into;
	struct rxm_ep *ep = fab_container(recv, struct rxm_ep, recv);
	struct rxm_rndv rndv;

	if (kept->part) {
		/* later segments go directly to the receive */
		fab_into_copy(into, 0, kept->data, kept->have);
		kept->part->into = *into;
		kept->part->kept = NULL;
		rxm_kept_free(kept);
	} else if (kept->rndv) {
		struct rxm_conn *conn = kept->conn;
		const struct fab_into there = *into;
		uint64_t msg_id = kept->msg_id;

		memcpy(&rndv, kept->data, sizeof(rndv));
		rxm_kept_free(kept);
		rxm_rndv_take(conn, &rndv, msg_id, &there, &msg);
	} else {
		fab_into_copy(into, 0, kept->data, msg.len);
		rxm_rx_finish(ep, kept->conn ? kept->conn->stats : &ep->base.stats->rest, into, &msg, NULL);
		kept_end(kept);
	}
	return true;
}

void rxm_kept_drop(struct fab_recv *recv, struct fab_kept *base)
{
	struct rxm_kept *kept = fab_container(base, struct rxm_kept, base);

	(void) recv;
	if (kept->part)
		kept->part->kept = NULL;
	kept_end(kept);
}

static void kept_name(struct rxm_kept *kept, fi_addr_t fi_addr)
{
	fab_kept_set_src(&kept->ep->recv, &kept->base, fi_addr);
	kept_set_stranger(kept, fi_addr == FI_ADDR_NOTAVAIL);
}

void rxm_rx_name(struct rxm_ep *ep, struct rxm_peer *peer, const union fab_sockaddr *addr, fi_addr_t fi_addr)
{
	struct rxm_conn *conns[] = { peer ? peer->conn : NULL, peer ? peer->inbound : NULL,
				     peer ? peer->inquiry : NULL };
	struct fab_list *link;
	bool named = false;

	for (size_t i = 0; i < fab_countof(conns); i++) {
		if (!conns[i])
			continue;
		rxm_conn_set_stranger(conns[i], fi_addr == FI_ADDR_NOTAVAIL);
		fab_list_for_each(&conns[i]->kept, link)
			kept_name(fab_container(link, struct rxm_kept, link), fi_addr);
		named |= !fab_list_empty(&conns[i]->kept);
	}
	fab_list_for_each(fab_table_bucket(&ep->orphans, fab_addr_hash(&addr->sa)), link) {
		struct rxm_kept *kept = fab_container(link, struct rxm_kept, orphan.link);

		if (fab_addr_equal(&kept->from.sa, &addr->sa)) {
			kept_name(kept, fi_addr);
			named = true;
		}
	}
	if (!named || fi_addr == FI_ADDR_NOTAVAIL)
		return;
	for (enum fab_msg_class class = 0; class < FAB_CLASS_MAX; class++)
		fab_recv_named(&ep->recv, class, fi_addr);
}

static bool kept_is_of_group(const struct rxm_kept *kept, uint64_t group)
{
	return kept->base.class == FAB_CLASS_COLL && (kept->base.tag & FAB_COLL_GROUP_BITS) == group;
}

void rxm_kept_drop_group(struct rxm_conn *conn, uint64_t group)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(&conn->kept, link, next) {
		struct rxm_kept *kept = fab_container(link, struct rxm_kept, link);

		if (kept_is_of_group(kept, group))
			fab_kept_drop(&conn->ep->recv, &kept->base);
		if (conn->state == RXM_CONN_DOWN)
			return;
	}
}

static bool drop_orphan(struct fab_entry *entry, void *group)
{
	struct rxm_kept *kept = fab_container(entry, struct rxm_kept, orphan);

	if (kept_is_of_group(kept, *(const uint64_t *) group))
		fab_kept_drop(&kept->ep->recv, &kept->base);
	return false;
}

void rxm_kept_drop_group_left(struct rxm_ep *ep, uint64_t group)
{
	fab_table_any(&ep->orphans, drop_orphan, &group);
}

void rxm_rx_fail_all(struct rxm_conn *conn, int err, const char *text)
{
	const struct fab_cq_fail fail = { .err = err, .prov_errno = err, .text = text };
	struct rxm_ep *ep = conn->ep;
	struct fab_list *link, *next;

	fab_list_for_each_safe(&conn->parts, link, next) {
		struct rxm_part *part = fab_container(link, struct rxm_part, link);

		if (part->into.rx) {
			part->into.take = fab_min(part->into.take, part->have);
			rxm_rx_finish(ep, conn->stats, &part->into, &part->msg, &fail);
		} else if (part->kept) {
			fab_kept_unlink(&ep->recv, &part->kept->base);
			rxm_kept_free(part->kept);
			part->kept = NULL;
		}
		rxm_part_free(part);
	}
	fab_list_for_each_safe(&conn->kept, link, next) {
		struct rxm_kept *kept = fab_container(link, struct rxm_kept, link);

		if (kept->rndv) {
			/* the announced bytes were lost with the sender */
			fab_kept_unlink(&ep->recv, &kept->base);
			rxm_kept_free(kept);
			continue;
		}
		fab_list_remove(link);
		kept->from = conn->peer->addr;
		fab_table_add(&ep->orphans, &kept->orphan, fab_addr_hash(&kept->from.sa));
		kept->conn = NULL;
		kept->rx = NULL;
	}
}
