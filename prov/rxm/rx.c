/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What arrives: packets, the messages in them, and messages that wait for their receive. Engine lock held.
 *
 * A packet's buffer is posted again as soon as the packet has been looked at, since a message for which there is no
 * receive yet is copied. What bounds those copies is credit: it comes with each packet that was taken, but for
 * messages that wait beyond RXM_KEEP_MAX bytes or RXM_KEEP_CNT of them, for which it comes when they are received. A
 * peer that knows no credits finds fewer and fewer buffers instead.
 */
#include "rxm/rxm.h"

#include <stdlib.h>
#include <string.h>

/* ---- buffers ---- */

static int post(struct rxm_rx *rx)
{
	struct rxm_conn *conn = rx->conn;

	fab_list_add_tail(&conn->posted, &rx->link);
	return (int) fi_recv(conn->below, rx->pkt, conn->ep->rx_len, rxm_chunk_desc(conn->rx_mem), FI_ADDR_UNSPEC, &rx->ctx);
}

static void repost(struct rxm_rx *rx)
{
	struct rxm_conn *conn = rx->conn;
	int ret;

	if (conn->state == RXM_CONN_DOWN)
		return;
	ret = post(rx);
	if (ret)
		rxm_conn_fail(conn, -ret, "a packet buffer cannot be posted again");
}

int rxm_rx_post_all(struct rxm_conn *conn)
{
	struct rxm_ep *ep = conn->ep;
	size_t stride = (ep->rx_len + 63) & ~(size_t) 63;
	int ret = 0;

	conn->rx_cnt = (uint32_t) rxm_params.conn_rx;
	conn->rx_mem = rxm_chunk_alloc(ep->domain->mr_local ? ep->domain->below : NULL, stride, conn->rx_cnt);
	conn->rx = calloc(conn->rx_cnt, sizeof(*conn->rx));
	if (!conn->rx_mem || !conn->rx)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < conn->rx_cnt && !ret; i++) {
		struct rxm_rx *rx = &conn->rx[i];

		rx->ctx.kind = RXM_CTX_RX;
		rx->conn = conn;
		rx->pkt = (struct rxm_pkt *) (rxm_chunk_mem(conn->rx_mem) + i * stride);
		fab_list_init(&rx->link);
		ret = post(rx);
	}
	return ret;
}

void rxm_credit_tell(struct rxm_conn *conn)
{
	if (conn->ext && conn->state == RXM_CONN_UP && conn->credit_owed >= RXM_WINDOW(conn->rx_cnt) / 2)
		rxm_answer(conn, RXM_CREDIT, 0);
}

static void give_credit(struct rxm_conn *conn)
{
	conn->credit_owed++;
	rxm_credit_tell(conn);
}

/* ---- messages that wait ---- */

static struct rxm_kept *kept_new(struct rxm_conn *conn, const struct fab_msg *msg, size_t room)
{
	struct rxm_ep *ep = conn->ep;
	struct rxm_kept *kept = malloc(sizeof(*kept) + room);

	if (!kept) {
		rxm_conn_fail(conn, FI_ENOMEM, "no memory to keep an unexpected message");
		return NULL;
	}
	memset(kept, 0, sizeof(*kept));
	fab_recv_keep(&ep->recv, &kept->base, msg);
	kept->conn = conn;
	kept->cost = room + sizeof(*kept);
	conn->kept_len += kept->cost;
	conn->kept_cnt++;
	fab_list_add_tail(&conn->kept, &kept->link);
	return kept;
}

static void kept_free(struct rxm_kept *kept)
{
	struct rxm_conn *conn = kept->conn;
	struct rxm_rx *rx = kept->rx;
	bool owes = kept->no_credit;

	if (conn) {
		conn->kept_len -= kept->cost;
		conn->kept_cnt--;
	}
	fab_list_remove(&kept->link);
	free(kept);
	if (!conn || conn->state == RXM_CONN_DOWN)
		return;
	if (rx)
		repost(rx);
	if (owes && conn->state == RXM_CONN_UP)
		give_credit(conn);
}

static void acknowledge(struct rxm_conn *conn, bool wanted, uint64_t msg_id)
{
	if (wanted && conn && conn->state == RXM_CONN_UP)
		rxm_answer(conn, RXM_ACK, msg_id);
}

static void kept_take(struct fab_recv *recv, struct fab_kept *base, const struct fab_into *into)
{
	struct rxm_kept *kept = fab_container(base, struct rxm_kept, base);
	struct fab_msg msg = fab_kept_msg(base);
	struct rxm_rndv rndv;

	if (kept->part) {
		/* its rest goes there at once */
		fab_into_copy(into, 0, kept->data, kept->have);
		kept->part->into = *into;
		kept->part->kept = NULL;
		kept_free(kept);
	} else if (kept->rndv) {
		struct rxm_conn *conn = kept->conn;
		uint64_t msg_id = kept->msg_id;

		memcpy(&rndv, kept->data, sizeof(rndv));
		kept_free(kept);
		rxm_rndv_take(conn, &rndv, msg_id, into, &msg);
	} else {
		fab_into_copy(into, 0, kept->data, msg.len);
		fab_recv_finish(recv, into, &msg, NULL);
		kept_free(kept);
	}
}

static void kept_drop(struct fab_recv *recv, struct fab_kept *base)
{
	struct rxm_kept *kept = fab_container(base, struct rxm_kept, base);
	struct rxm_conn *conn = kept->conn;
	uint64_t msg_id = kept->msg_id;
	bool rndv = kept->rndv;

	(void) recv;
	if (kept->part)
		kept->part->kept = NULL;
	kept_free(kept);
	if (rndv && conn->state == RXM_CONN_UP)
		rxm_answer(conn, RXM_RNDV_DONE, msg_id);
}

const struct fab_recv_ops rxm_recv_ops = {
	.take = kept_take,
	.drop = kept_drop,
};

void rxm_rx_name(struct rxm_ep *ep, struct rxm_peer *peer, const union fab_sockaddr *addr, fi_addr_t fi_addr)
{
	struct rxm_conn *conns[] = { peer ? peer->conn : NULL, peer ? peer->inbound : NULL };
	struct fab_list *link;

	for (size_t i = 0; i < fab_countof(conns); i++) {
		if (!conns[i])
			continue;
		fab_list_for_each(&conns[i]->kept, link)
			fab_kept_set_src(&ep->recv, &fab_container(link, struct rxm_kept, link)->base, fi_addr);
	}
	fab_list_for_each(&ep->orphans, link) {
		struct rxm_kept *kept = fab_container(link, struct rxm_kept, link);

		if (fab_addr_equal(&kept->from.sa, &addr->sa))
			fab_kept_set_src(&ep->recv, &kept->base, fi_addr);
	}
}

/* ---- packets ---- */

/* What came, and what is left to decide about it. */
struct packet {
	struct rxm_conn *conn;
	struct rxm_rx *rx;
	const struct rxm_pkt *pkt;
	size_t len;			/* bytes behind the headers */
	struct rxm_kept *kept;		/* it waits here, or NULL */
};

static struct fab_msg msg_of(const struct packet *in)
{
	const struct rxm_op_hdr *op = &in->pkt->op;

	return (struct fab_msg) {
		.tag = op->op == RXM_OP_TAGGED ? op->tag : 0,
		.data = op->flags & RXM_FLAG_CQ_DATA ? op->data : 0,
		.len = op->size,
		.src = in->conn->peer->fi_addr,
		.tagged = op->op == RXM_OP_TAGGED,
		.has_data = op->flags & RXM_FLAG_CQ_DATA,
	};
}

static bool is_message(const struct packet *in)
{
	return in->pkt->op.op <= RXM_OP_TAGGED;
}

/* A whole message: to its receive, or kept. False: no memory. */
static bool take_whole(struct packet *in, const struct fab_msg *msg, const void *data)
{
	struct fab_recv *recv = &in->conn->ep->recv;
	struct fab_rx *rx = fab_recv_find(recv, msg->tagged, msg->tag, msg->src);
	struct fab_into into;

	if (rx) {
		fab_recv_claim(recv, rx, msg->len, &into);
		fab_into_copy(&into, 0, data, msg->len);
		fab_recv_finish(recv, &into, msg, NULL);
		return true;
	}
	in->kept = kept_new(in->conn, msg, msg->len);
	if (!in->kept)
		return false;
	memcpy(in->kept->data, data, msg->len);
	return true;
}

static void take_eager(struct packet *in)
{
	struct rxm_conn *conn = in->conn;
	struct fab_msg msg = msg_of(in);
	bool wants_ack = conn->ext && (in->pkt->op.flags & RXM_FLAG_ACK);

	if (!is_message(in) || msg.len != in->len)
		rxm_conn_broken(conn, "a message that is not as long as its packet says");
	else if (take_whole(in, &msg, in->pkt->data))
		acknowledge(conn, wants_ack, in->pkt->ctrl.msg_id);
}

/* Its buffer has the message itself. True as of dispatch(). */
static bool take_bare(struct packet *in)
{
	const struct rxm_rx *rx = in->rx;
	struct rxm_conn *conn = in->conn;
	const struct fab_msg msg = {
		.tag = rx->tag, .data = rx->data, .len = rx->len, .src = conn->peer->fi_addr, .tagged = true,
		.has_data = rx->has_data,
	};

	if (conn->ext)
		rxm_conn_broken(conn, "a message without a packet");
	else
		take_whole(in, &msg, rx->pkt);
	return true;
}

static void take_rndv(struct packet *in)
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
		rxm_conn_broken(conn, "an announcement whose pieces are not the message");
		return;
	}
	rx = fab_recv_find(recv, msg.tagged, msg.tag, msg.src);
	if (rx) {
		fab_recv_claim(recv, rx, msg.len, &into);
		rxm_rndv_take(conn, &rndv, in->pkt->ctrl.msg_id, &into, &msg);
		return;
	}
	in->kept = kept_new(conn, &msg, sizeof(rndv));
	if (!in->kept)
		return;
	in->kept->rndv = true;
	in->kept->msg_id = in->pkt->ctrl.msg_id;
	memcpy(in->kept->data, &rndv, sizeof(rndv));
}

/* ---- segments ---- */

static void part_free(struct rxm_part *part)
{
	if (part->kept)
		part->kept->part = NULL;
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

static struct rxm_part *part_new(struct packet *in)
{
	struct rxm_conn *conn = in->conn;
	struct fab_recv *recv = &conn->ep->recv;
	struct rxm_part *part = calloc(1, sizeof(*part));
	struct fab_rx *rx;

	if (!part) {
		rxm_conn_fail(conn, FI_ENOMEM, "no memory for a message in segments");
		return NULL;
	}
	part->conn = conn;
	part->msg_id = in->pkt->ctrl.msg_id;
	part->msg = msg_of(in);
	rx = fab_recv_find(recv, part->msg.tagged, part->msg.tag, part->msg.src);
	if (rx)
		fab_recv_claim(recv, rx, part->msg.len, &part->into);
	else
		part->kept = kept_new(conn, &part->msg, part->msg.len);
	if (!rx && !part->kept) {
		free(part);
		return NULL;
	}
	if (part->kept)
		part->kept->part = part;
	fab_list_add_tail(&conn->parts, &part->link);
	return part;
}

static void take_segment(struct packet *in)
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
		memcpy(part->kept->data + part->have, in->pkt->data, in->len);
	else if (part->into.rx)
		fab_into_copy(&part->into, part->have, in->pkt->data, in->len);
	part->have += in->len;
	part->next_no++;
	if (part->kept) {
		part->kept->have = part->have;
		in->kept = part->kept;
	}
	if (part->have < part->msg.len)
		return;
	if (part->into.rx)
		fab_recv_finish(&conn->ep->recv, &part->into, &part->msg, NULL);
	part_free(part);
}

/* ---- answers and notes ---- */

static void take_answer(struct packet *in, uint64_t bit)
{
	struct rxm_tx *tx = rxm_tx_asked(in->conn, in->pkt->ctrl.msg_id);

	if (!tx || tx->what != RXM_TX_PACKET || !(bit & 1ULL << tx->buf->pkt.ctrl.type) || tx->writing)
		rxm_conn_broken(in->conn, "an answer to what was not asked");
	else
		rxm_tx_answered(tx, 0, NULL);
}

/* The peer has been told that there are as many buffers. */
static bool take_credit(struct rxm_conn *conn, uint64_t cnt)
{
	if (!conn->ext || !cnt)
		return true;
	if (cnt > conn->window || conn->credit + cnt > conn->window) {
		rxm_conn_broken(conn, "more credit than there can be");
		return false;
	}
	conn->credit += (uint32_t) cnt;
	return true;
}

/* True: it counts against the peer's credit. */
static bool dispatch(struct packet *in)
{
	const struct rxm_pkt *pkt = in->pkt;

	switch (pkt->ctrl.type) {
	case RXM_EAGER:
		take_eager(in);
		return true;
	case RXM_SEG:
		take_segment(in);
		return true;
	case RXM_RNDV_REQ:
		take_rndv(in);
		return true;
	case RXM_ATOMIC:
		rxm_atomic_req(in->conn, pkt, in->len);
		return true;
	case RXM_WRITTEN:
		if (!in->conn->ext)
			rxm_conn_broken(in->conn, "word of a remote write, of which it knows nothing");
		else if (pkt->op.flags & RXM_FLAG_CQ_DATA)
			rxm_rx_written(in->conn->ep, pkt->op.data, pkt->op.size);
		acknowledge(in->conn, in->conn->ext && (pkt->op.flags & RXM_FLAG_ACK), pkt->ctrl.msg_id);
		return true;
	case RXM_RNDV_DONE:
		take_answer(in, 1ULL << RXM_RNDV_REQ);
		return false;
	case RXM_RNDV_WDONE:
		take_answer(in, 1ULL << RXM_RNDV_WR);
		return false;
	case RXM_ACK:
		take_answer(in, 1ULL << RXM_EAGER | 1ULL << RXM_WRITTEN);
		return false;
	case RXM_RNDV_WR:
		rxm_rndv_wr(in->conn, pkt, in->len);
		return false;
	case RXM_ATOMIC_RSP:
		rxm_atomic_rsp(in->conn, pkt, in->len);
		return false;
	case RXM_CREDIT:
		return false;
	default:
		rxm_conn_broken(in->conn, "a packet of unknown type");
		return false;
	}
}

/* Is it one? Takes the credit that comes with it. */
static bool check_packet(struct rxm_conn *conn, const struct rxm_rx *rx)
{
	bool is_short = rx->len < sizeof(*rx->pkt);

	if (!is_short && rx->pkt->ctrl.version == RXM_CTRL_VERSION)
		return take_credit(conn, rx->pkt->ctrl.conn_id);
	rxm_conn_broken(conn, is_short ? "a packet shorter than its headers" : "a packet of another version");
	return false;
}

static void take_packet(struct rxm_rx *rx)
{
	struct rxm_conn *conn = rx->conn;
	struct packet in = { .conn = conn, .rx = rx, .pkt = rx->pkt, .len = rx->len - sizeof(*rx->pkt) };
	bool pays, too_much;

	if (!rx->bare && !check_packet(conn, rx))
		return;
	pays = rx->bare ? take_bare(&in) : dispatch(&in);
	rx->bare = false;
	if (conn->state == RXM_CONN_DOWN)
		return;
	if (pays && conn->ext && ++conn->unpaid > RXM_WINDOW(conn->rx_cnt)) {
		rxm_conn_broken(conn, "more packets than it was given credit for");
		return;
	}
	too_much = in.kept && (conn->kept_len > RXM_KEEP_MAX || conn->kept_cnt > RXM_KEEP_CNT);
	/* one message is enough to answer for: that of several segments for its last */
	if (too_much && conn->ext && !in.kept->no_credit) {
		in.kept->no_credit = true;
		pays = false;
	} else if (too_much && !conn->ext && !in.kept->rx && !in.kept->part) {
		in.kept->rx = rx;
	}
	if (!in.kept || in.kept->rx != rx)
		repost(rx);
	if (pays && conn->ext && conn->state != RXM_CONN_DOWN)
		give_credit(conn);
	if (conn->state != RXM_CONN_DOWN)
		rxm_tx_run(conn);
}

void rxm_rx_written(struct rxm_ep *ep, uint64_t data, size_t len)
{
	const struct fab_comp comp = {
		.flags = fab_op_desc[FAB_OP_REMOTE_WRITE].cq_flags | FI_REMOTE_CQ_DATA, .len = len, .data = data,
		.src = FI_ADDR_NOTAVAIL,
	};

	fab_ep_complete(&ep->base, FAB_OP_REMOTE_WRITE, &comp, ep->base.rx_cq);
}

/* What has come, in order, as long as the connection is in this state. */
static void take_arrived(struct rxm_conn *conn, enum rxm_conn_state state)
{
	struct rxm_rx *rx;

	while (conn->state == state && (rx = fab_list_first(&conn->posted, struct rxm_rx, link)) && rx->arrived) {
		bool written = rx->written;

		fab_list_remove(&rx->link);
		rx->arrived = rx->written = false;
		if (written) {
			rxm_rx_written(conn->ep, rx->data, rx->len);
			repost(rx);
		} else {
			take_packet(rx);
		}
	}
}

void rxm_rx_resume(struct rxm_conn *conn)
{
	take_arrived(conn, RXM_CONN_UP);
}

void rxm_rx_last_words(struct rxm_conn *conn)
{
	take_arrived(conn, RXM_CONN_ACCEPTING);
}

void rxm_rx_packet(struct rxm_rx *rx, size_t len)
{
	rx->len = len;
	rx->arrived = true;
	rxm_rx_resume(rx->conn);
}

void rxm_rx_bare(struct rxm_rx *rx, const struct fi_cq_tagged_entry *entry)
{
	rx->bare = true;
	rx->tag = entry->tag;
	rx->has_data = entry->flags & FI_REMOTE_CQ_DATA;
	rx->data = rx->has_data ? entry->data : 0;
	rxm_rx_packet(rx, entry->len);
}

void rxm_rx_remote_write(struct rxm_ctx *ctx, uint64_t data, size_t len)
{
	struct rxm_rx *rx;

	/* of some providers the data takes a receive, which says whose it is; of others nobody does */
	if (!ctx || ctx->kind != RXM_CTX_RX)
		return;
	rx = fab_container(ctx, struct rxm_rx, ctx);
	rx->written = true;
	rx->data = data;
	rxm_rx_packet(rx, len);
}

/* ---- the end ---- */

void rxm_rx_fail_all(struct rxm_conn *conn, int err, const char *text)
{
	const struct fab_cq_fail fail = { .err = err, .prov_errno = err, .text = text };
	struct rxm_ep *ep = conn->ep;
	struct fab_list *link, *next;

	fab_list_for_each_safe(&conn->parts, link, next) {
		struct rxm_part *part = fab_container(link, struct rxm_part, link);

		if (part->into.rx) {
			part->into.take = fab_min(part->into.take, (size_t) part->have);
			fab_recv_finish(&ep->recv, &part->into, &part->msg, &fail);
		} else if (part->kept) {
			fab_kept_unlink(&ep->recv, &part->kept->base);
			kept_free(part->kept);
			part->kept = NULL;
		}
		part_free(part);
	}
	fab_list_for_each_safe(&conn->kept, link, next) {
		struct rxm_kept *kept = fab_container(link, struct rxm_kept, link);

		if (kept->rndv) {
			/* what it announces went with its sender */
			fab_kept_unlink(&ep->recv, &kept->base);
			kept_free(kept);
			continue;
		}
		fab_list_remove(link);
		fab_list_add_tail(&ep->orphans, link);
		kept->from = conn->peer->addr;
		kept->conn = NULL;
		kept->rx = NULL;
	}
}
