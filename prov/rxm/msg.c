/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Messages that arrive: each goes into a matching receive, or is kept as unexpected. Engine lock held.
 *
 * With FI_DELIVERY_COMPLETE the sender is answered when the message is in its receive buffer, or kept here if no
 * receive was posted (fi_cq(3)). With FI_MATCH_COMPLETE it is answered when a receive has taken the message. The answer
 * to an announced message is sent when it has been fetched, which serves both.
 */
#include "rxm/rx.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages in one packet ---- */

static struct fab_msg msg_of(const struct rxm_in *in)
{
	const struct rxm_op_hdr *op = &in->pkt->op;

	return (struct fab_msg) {
		.tag = op->op == RXM_OP_MSG ? 0 : op->tag,
		.data = op->flags & RXM_FLAG_CQ_DATA ? op->data : 0,
		.len = op->size,
		.src = in->conn->peer->fi_addr,
		.flags = op->flags & RXM_FLAG_CQ_DATA ? FI_REMOTE_CQ_DATA : 0,
		.class = op->op == RXM_OP_COLL ? FAB_CLASS_COLL :
			 op->op == RXM_OP_TAGGED ? FAB_CLASS_TAGGED : FAB_CLASS_MSG,
	};
}

static bool is_message(const struct rxm_in *in)
{
	return in->pkt->op.op <= RXM_OP_TAGGED || (in->pkt->op.op == RXM_OP_COLL && in->conn->coll);
}

void rxm_msg_acknowledge(struct rxm_conn *conn, bool wanted, uint64_t msg_id)
{
	if (wanted && conn && conn->state == RXM_CONN_UP)
		rxm_answer(conn, RXM_ACK, msg_id, 0);
}

void rxm_rx_finish(struct rxm_ep *ep, struct fi_stats_peer *stats, const struct fab_into *into,
		   const struct fab_msg *msg, const struct fab_cq_fail *fail)
{
	fab_recv_count(stats, into, msg, fail);
	fab_rx_finish_with(&ep->recv, &ep->base, into, msg, fail, &rxm_recv_ops);
}

/* Deliver a complete message to its receive, or keep it. False: no memory. */
static inline __attribute__((always_inline))
bool take_whole(struct rxm_in *in, const struct fab_msg *msg, const void *data)
{
	struct rxm_ep *ep = in->conn->ep;
	struct fab_rx *rx = fab_recv_find(&ep->recv, msg->class, msg->tag, msg->src);
	struct fab_into into;

	/* receives of collectives are from another pool */
	if (rx && msg->class != FAB_CLASS_COLL &&
	    fab_rx_take_whole(&ep->recv, &ep->base, rx, msg, data, &rxm_recv_ops)) {
		fab_stats_count(in->conn->stats, FAB_OP_RECV + msg->class, msg->len);
		return true;
	}
	if (rx) {
		fab_rx_claim(&ep->recv, rx, msg->len, &into);
		fab_into_fill(&into, data);
		rxm_rx_finish(ep, in->conn->stats, &into, msg, NULL);
		return true;
	}
	if (rxm_coll_refuses(in->conn, msg))
		return true;
	in->kept = rxm_kept_new(in->conn, msg, msg->len, msg->len);
	if (!in->kept)
		return false;
	memcpy(in->kept->data, data, msg->len);
	in->conn->stats->unexpected++;
	in->conn->stats->unexpected_bytes += msg->len;
	return true;
}

void rxm_msg_eager(struct rxm_in *in)
{
	struct rxm_conn *conn = in->conn;
	struct fab_msg msg = msg_of(in);
	bool wants_ack = conn->ext && (in->pkt->op.flags & RXM_FLAG_ACK);

	if (!is_message(in) || msg.len != in->len) {
		rxm_conn_broken(conn, "a message whose length differs from its packet's");
		return;
	}
	if (!take_whole(in, &msg, in->pkt->data))
		return;
	if (in->kept && (in->pkt->op.flags & RXM_FLAG_MATCH)) {
		in->kept->owes_ack = wants_ack;
		in->kept->msg_id = in->pkt->ctrl.msg_id;
	} else {
		rxm_msg_acknowledge(conn, wants_ack, in->pkt->ctrl.msg_id);
	}
}

void rxm_msg_bare(struct rxm_in *in)
{
	const struct rxm_rx *rx = in->rx;
	struct rxm_conn *conn = in->conn;
	const struct fab_msg msg = {
		.tag = rx->tag, .data = rx->data, .len = rx->len, .src = conn->peer->fi_addr,
		.flags = rx->has_data ? FI_REMOTE_CQ_DATA : 0, .class = FAB_CLASS_TAGGED,
	};

	if (conn->ext)
		rxm_conn_broken(conn, "a message without a packet");
	else
		take_whole(in, &msg, rx->pkt);
}

void rxm_msg_rndv(struct rxm_in *in)
{
	struct rxm_conn *conn = in->conn;
	struct fab_recv *recv = &conn->ep->recv;
	struct fab_msg msg = msg_of(in);
	struct rxm_rndv rndv;
	struct fab_into into;
	struct fab_rx *rx;
	uint64_t sum = 0;

	if (!is_message(in) || in->len != sizeof(rndv)) {
		rxm_conn_broken(conn, "an announcement of another length");
		return;
	}
	memcpy(&rndv, in->pkt->data, sizeof(rndv));
	for (uint32_t i = 0; i < rndv.count && i < RXM_IOV_MAX; i++) {
		if (rndv.iov[i].len > msg.len - sum)
			rndv.count = UINT8_MAX;
		else
			sum += rndv.iov[i].len;
	}
	if (rndv.count > RXM_IOV_MAX || sum != msg.len || msg.len > conn->ep->base.info->ep_attr->max_msg_size) {
		rxm_conn_broken(conn, "an announcement whose pieces do not add up to the message");
		return;
	}
	conn->stats->announced_by_peer++;
	rx = fab_recv_find(recv, msg.class, msg.tag, msg.src);
	if (rx) {
		fab_rx_claim(recv, rx, msg.len, &into);
		rxm_rndv_take(conn, &rndv, in->pkt->ctrl.msg_id, &into, &msg);
		return;
	}
	if (rxm_coll_refuses(conn, &msg)) {
		rxm_answer(conn, RXM_RNDV_DONE, in->pkt->ctrl.msg_id, FI_ECANCELED);
		return;
	}
	in->kept = rxm_kept_new(conn, &msg, sizeof(rndv), sizeof(rndv));
	if (!in->kept)
		return;
	in->kept->rndv = true;
	in->kept->msg_id = in->pkt->ctrl.msg_id;
	memcpy(in->kept->data, &rndv, sizeof(rndv));
}

/* ---- messages in segments ---- */

void rxm_part_free(struct rxm_part *part)
{
	if (part->kept)
		part->kept->part = NULL;
	part->conn->part_cnt--;
	fab_list_remove(&part->link);
	free(part);
}

static struct rxm_part *part_find(struct rxm_conn *conn, uint64_t msg_id)
{
	struct fab_list *link;

	fab_list_for_each(&conn->parts, link) {
		struct rxm_part *part = fab_container(link, struct rxm_part, link);

		if (part->msg_id == msg_id)
			return part;
	}
	return NULL;
}

static struct rxm_part *part_new(struct rxm_in *in)
{
	struct rxm_conn *conn = in->conn;
	struct fab_recv *recv = &conn->ep->recv;
	struct rxm_part *part;
	bool refused = false;
	struct fab_rx *rx;

	if (conn->part_cnt == RXM_PARTS_MAX) {
		rxm_conn_broken(conn, "too many messages in segments at once");
		return NULL;
	}
	part = calloc(1, sizeof(*part));
	if (!part) {
		rxm_conn_fail(conn, FI_ENOMEM, "no memory for a message in segments");
		return NULL;
	}
	part->conn = conn;
	part->msg_id = in->pkt->ctrl.msg_id;
	part->msg = msg_of(in);
	rx = fab_recv_find(recv, part->msg.class, part->msg.tag, part->msg.src);
	if (rx)
		fab_rx_claim(recv, rx, part->msg.len, &part->into);
	else
		refused = rxm_coll_refuses(conn, &part->msg);
	if (!rx && !refused)
		part->kept = rxm_kept_new(conn, &part->msg, part->msg.len, 0);
	if (!rx && !refused && !part->kept) {
		free(part);
		return NULL;
	}
	if (part->kept) {
		part->kept->part = part;
		conn->stats->unexpected++;
		conn->stats->unexpected_bytes += part->msg.len;
	}
	fab_list_add_tail(&conn->parts, &part->link);
	conn->part_cnt++;
	return part;
}

void rxm_msg_segment(struct rxm_in *in)
{
	const struct rxm_ctrl_hdr *ctrl = &in->pkt->ctrl;
	struct rxm_conn *conn = in->conn;
	struct rxm_part *part = part_find(conn, ctrl->msg_id);

	if (!part && !ctrl->seg_no && is_message(in) && in->pkt->op.size <= RXM_SEG_MAX) {
		part = part_new(in);
		if (!part)
			return;
	}
	if (!part || ctrl->seg_no != part->next_no || ctrl->seg_size != in->len || !in->len ||
	    in->len > part->msg.len - part->have) {
		rxm_conn_broken(conn, "a segment that does not follow the one before");
		return;
	}
	if (part->kept)
		rxm_kept_append(part->kept, in->pkt->data, in->len);
	else if (part->into.rx)
		fab_into_copy(&part->into, part->have, in->pkt->data, in->len);
	part->have += in->len;
	part->next_no++;
	in->kept = part->kept;
	if (part->have < part->msg.len)
		return;
	if (part->into.rx)
		rxm_rx_finish(conn->ep, conn->stats, &part->into, &part->msg, NULL);
	rxm_part_free(part);
}
