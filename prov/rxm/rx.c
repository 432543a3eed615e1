/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets that arrive, and their buffers. Engine lock held.
 *
 * The buffer of a packet is posted again as soon as the packet has been processed, since an unexpected message is
 * copied. Credit bounds these copies: the peer gets credit back for each packet at once, except for unexpected messages
 * beyond RXM_KEEP_MAX bytes or RXM_KEEP_CNT messages, for which it gets it when a receive takes them. For a peer
 * without credits, the buffers of such messages are not posted again before that. Nor are they while more than
 * RXM_CTL_MAX answers to its requests are queued, because it does not take them.
 */
#include "rxm/rx.h"

#include <stdlib.h>

/* ---- buffers ---- */

static inline int post(struct rxm_rx *rx)
{
	struct rxm_conn *conn = rx->conn;

	fab_list_add_tail(&conn->posted, &rx->link);
	return (int) fi_recv(conn->below, rx->pkt, conn->ep->rx_len, rx->desc, FI_ADDR_UNSPEC, &rx->ctx);
}

void rxm_rx_repost(struct rxm_rx *rx)
{
	struct rxm_conn *conn = rx->conn;
	int ret;

	if (rx->shared) {
		rxm_srx_repost(conn->ep->poller, rx);
		return;
	}
	if (conn->state == RXM_CONN_DOWN)
		return;
	ret = post(rx);
	/* the connection below has ended; its event is handled after all earlier messages */
	if (ret == -FI_ENOTCONN || ret == -FI_EOPBADSTATE)
		return;
	if (ret)
		rxm_conn_fail(conn, -ret, "a packet buffer cannot be posted again");
}

/* Post a buffer again, unless too many answers are queued: the next request would add another. */
static inline void repost_or_hold(struct rxm_rx *rx)
{
	if (!rx->conn->ext && rx->conn->ctl_cnt >= RXM_CTL_MAX)
		fab_list_add_tail(&rx->conn->held, &rx->link);
	else if (rx->shared)
		rxm_srx_repost(rx->conn->ep->poller, rx);
	else
		rxm_rx_repost(rx);
}

void rxm_rx_release_held(struct rxm_conn *conn)
{
	struct fab_list *link;

	while (conn->state == RXM_CONN_UP && conn->ctl_cnt < RXM_CTL_MAX && (link = fab_list_pop_front(&conn->held)))
		rxm_rx_repost(fab_container(link, struct rxm_rx, link));
}

int rxm_rx_post_all(struct rxm_conn *conn)
{
	struct rxm_ep *ep = conn->ep;
	size_t stride = (ep->rx_len + 63) & ~(size_t) 63;
	int ret = 0;

	conn->rx_cnt = (uint32_t) rxm_params.conn_rx;
	conn->own_window = RXM_WINDOW(conn->rx_cnt);
	if (conn->shares)
		return rxm_srx_join(conn);
	conn->rx_mem = rxm_chunk_alloc(ep->domain->mr_local ? ep->domain->below : NULL, stride, conn->rx_cnt);
	conn->rx = calloc(conn->rx_cnt, sizeof(*conn->rx));
	if (!conn->rx_mem || !conn->rx)
		return -FI_ENOMEM;
	for (uint32_t i = 0; i < conn->rx_cnt && !ret; i++) {
		struct rxm_rx *rx = &conn->rx[i];

		rx->ctx.kind = RXM_CTX_RX;
		rx->conn = conn;
		rx->pkt = (struct rxm_pkt *) (rxm_chunk_mem(conn->rx_mem) + i * stride);
		rx->desc = rxm_chunk_desc(conn->rx_mem);
		fab_list_init(&rx->link);
		ret = post(rx);
	}
	return ret;
}

static inline void credit_give(struct rxm_conn *conn, enum rxm_load load)
{
	if (!conn->ext || load == RXM_FREE || conn->state != RXM_CONN_UP)
		return;
	if (++conn->credit[load].owed >= conn->own_window / 2)
		rxm_answer(conn, RXM_CREDIT, 0, 0);
}

void rxm_credit_give(struct rxm_conn *conn, enum rxm_load load)
{
	credit_give(conn, load);
}

/* ---- answers and control packets ---- */

/* Convert an error number of the peer. Invalid numbers become FI_EIO. */
int rxm_wire_err(uint64_t status)
{
	return status > 0 && status < 4096 ? (int) status : status ? FI_EIO : 0;
}

static void take_answer(struct rxm_in *in, uint64_t bit)
{
	struct rxm_tx *tx = rxm_tx_asked(in->conn, in->pkt->ctrl.msg_id);
	int err = in->conn->ext ? rxm_wire_err(in->pkt->ctrl.ctrl_data) : 0;

	if (!tx || tx->what != RXM_TX_PACKET || !(bit & 1ULL << tx->buf->pkt.ctrl.type) || tx->writing)
		rxm_conn_broken(in->conn, "an answer without a request");
	else
		rxm_tx_told(tx, err);
}

/* Add credit that the peer has returned. False: it is more than was spent. */
static bool take_credit(struct rxm_conn *conn, uint64_t said)
{
	const uint32_t cnt[RXM_LOADS] = { [RXM_ASKS] = (uint32_t) said, [RXM_ANSWERS] = (uint32_t) (said >> 32) };

	for (int i = 0; i < RXM_LOADS && said && conn->ext; i++) {
		if (cnt[i] > conn->window - conn->credit[i].left) {
			rxm_conn_broken(conn, "more credit than the protocol allows");
			return false;
		}
		conn->credit[i].left += cnt[i];
	}
	return true;
}

/* Count a packet against the peer's credit. False: the peer had no credit left. */
static bool spends(struct rxm_conn *conn, enum rxm_load load)
{
	if (!conn->ext || load == RXM_FREE || ++conn->credit[load].unpaid <= conn->own_window)
		return true;
	rxm_conn_broken(conn, "more packets than its credit");
	return false;
}

/* True if the write before a packet was carried out. If the packet cannot tell, check whether the write was valid. */
static bool was_written(const struct rxm_ep *ep, const struct rxm_pkt *pkt)
{
	struct iovec iov[FAB_MR_IOV_LIMIT];
	uint32_t cnt = FAB_MR_IOV_LIMIT;
	struct fab_mr *mr;

	return !(pkt->op.flags & RXM_FLAG_UNSURE) || !pkt->op.size ||
	       !fab_mr_verify(&ep->base.domain->mr_map, NULL, pkt->op.tag, pkt->ctrl.ctrl_data, pkt->op.size,
			      FI_REMOTE_WRITE, iov, &cnt, &mr);
}

static enum rxm_load dispatch(struct rxm_in *in)
{
	const struct rxm_pkt *pkt = in->pkt;

	switch (pkt->ctrl.type) {
	case RXM_EAGER:
		rxm_msg_eager(in);
		return RXM_ASKS;
	case RXM_SEG:
		rxm_msg_segment(in);
		return RXM_ASKS;
	case RXM_RNDV_REQ:
		rxm_msg_rndv(in);
		return RXM_ASKS;
	case RXM_ATOMIC:
		rxm_atomic_req(in->conn, pkt, in->len);
		return RXM_ASKS;
	case RXM_WRITTEN:
		if (!in->conn->ext)
			rxm_conn_broken(in->conn, "a notice of a remote write, which the peer said it does not "
					"support");
		else if ((pkt->op.flags & RXM_FLAG_CQ_DATA) && was_written(in->conn->ep, pkt))
			rxm_rx_written(in->conn->ep, in->conn->stats, pkt->op.data, pkt->op.size);
		rxm_msg_acknowledge(in->conn, in->conn->ext && (pkt->op.flags & RXM_FLAG_ACK), pkt->ctrl.msg_id);
		return RXM_ASKS;
	case RXM_COLL_ABORT:
		rxm_coll_aborted(in->conn, pkt);
		return RXM_ASKS;
	case RXM_RNDV_DONE:
		take_answer(in, 1ULL << RXM_RNDV_REQ);
		return RXM_ANSWERS;
	case RXM_RNDV_WDONE:
		take_answer(in, 1ULL << RXM_RNDV_WR);
		return RXM_ANSWERS;
	case RXM_ACK:
		take_answer(in, 1ULL << RXM_EAGER | 1ULL << RXM_WRITTEN);
		return RXM_ANSWERS;
	case RXM_RNDV_WR:
		rxm_rndv_wr(in->conn, pkt, in->len);
		return RXM_ANSWERS;
	case RXM_ATOMIC_RSP:
		rxm_atomic_rsp(in->conn, pkt, in->len);
		return RXM_ANSWERS;
	case RXM_CREDIT:
		return RXM_FREE;
	default:
		rxm_conn_broken(in->conn, "a packet of unknown type");
		return RXM_FREE;
	}
}

/* Check that a packet is valid, and take the credit in it. */
static bool check_packet(struct rxm_conn *conn, const struct rxm_rx *rx)
{
	bool is_short = rx->len < sizeof(*rx->pkt);

	if (!is_short && rx->pkt->ctrl.version == RXM_CTRL_VERSION)
		return take_credit(conn, rx->pkt->ctrl.conn_id);
	rxm_conn_broken(conn, is_short ? "a packet shorter than its headers" : "a packet of another version");
	return false;
}

/* The connection has ended over a packet: the buffer goes back, if others share it. */
static void abandon(struct rxm_rx *rx)
{
	if (rx->shared)
		rxm_srx_repost(rx->conn->ep->poller, rx);
}

/* True if a peer without credit has made this end keep more than it may. Its buffers cannot be held back from it, where
 * others share them, nor a segment of a stranger, since a receive may want the next one; so one stranger has an eighth
 * of what all may have. */
static bool keeps_too_much(struct rxm_conn *conn, const struct rxm_kept *kept)
{
	bool segments = kept && kept->part && conn->stranger &&
			(rxm_strangers_have_enough(conn) || conn->kept_len > rxm_params.stranger_max / 8);

	if (conn->ext || (!segments && (!conn->shares || conn->kept_len <= RXM_KEEP_SHARED)))
		return false;
	rxm_conn_fail(conn, FI_ENOBUFS, "it has sent more unexpected messages than are kept for a peer without credit "
		      "(FI_OFI_RXM_USE_SRX=0 lets it wait)");
	return true;
}

static void take_packet(struct rxm_rx *rx)
{
	struct rxm_conn *conn = rx->conn;
	struct rxm_in in = { .conn = conn, .rx = rx, .pkt = rx->pkt, .len = rx->len - sizeof(*rx->pkt) };
	enum rxm_load load = RXM_ASKS;
	bool too_much;

	if (__builtin_expect(rx->bare, 0)) {
		rxm_msg_bare(&in);
		rx->bare = false;
	} else if (check_packet(conn, rx)) {
		load = dispatch(&in);
	} else {
		abandon(rx);
		return;
	}
	if (conn->state == RXM_CONN_DOWN || !spends(conn, load) || keeps_too_much(conn, in.kept)) {
		abandon(rx);
		return;
	}
	too_much = in.kept && (conn->kept_len > RXM_KEEP_MAX || conn->kept_cnt > RXM_KEEP_CNT ||
			       rxm_strangers_have_enough(conn));
	/* a message holds back the credit of one packet, one of a stranger that of each of its segments */
	if (too_much && conn->ext && (!in.kept->no_credit || conn->stranger)) {
		in.kept->no_credit++;
		load = RXM_FREE;
	} else if (too_much && !conn->ext && !conn->shares && !in.kept->rx && !in.kept->part) {
		in.kept->rx = rx;
	}
	if (!in.kept || in.kept->rx != rx)
		repost_or_hold(rx);
	credit_give(conn, load);
	if (conn->state != RXM_CONN_DOWN)
		rxm_tx_run(conn);
}

void rxm_rx_written(struct rxm_ep *ep, struct fi_stats_peer *stats, uint64_t data, size_t len)
{
	const struct fab_comp comp = {
		.flags = fab_op_desc[FAB_OP_REMOTE_WRITE].cq_flags | FI_REMOTE_CQ_DATA, .len = len, .data = data,
		.src = FI_ADDR_NOTAVAIL,
	};

	fab_stats_count(stats, FAB_OP_REMOTE_WRITE, len);
	fab_ep_complete(&ep->base, FAB_OP_REMOTE_WRITE, &comp, ep->base.bound.rx_cq);
}

/* Process the packets that have arrived, in order, while the connection is in this state. */
static void take_arrived(struct rxm_conn *conn, enum rxm_conn_state state)
{
	struct rxm_rx *rx;

	while (conn->state == state && (rx = fab_list_first(&conn->posted, struct rxm_rx, link)) && rx->arrived) {
		bool written = rx->written;

		fab_list_remove(&rx->link);
		rx->arrived = rx->written = false;
		if (written) {
			rxm_rx_written(conn->ep, conn->stats, rx->data, rx->len);
			rxm_rx_repost(rx);
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
	struct rxm_conn *conn = rx->conn;

	rx->len = len;
	if (rx->shared) {
		/* in the order of the packets, which wait for the handshake at most */
		if (__builtin_expect(conn->state == RXM_CONN_UP && !rx->written && fab_list_empty(&conn->posted), 1)) {
			take_packet(rx);
			return;
		}
		fab_list_add_tail(&conn->posted, &rx->link);
	}
	rx->arrived = true;
	rxm_rx_resume(conn);
}

void rxm_rx_bare(struct rxm_rx *rx, const struct fi_cq_tagged_entry *entry)
{
	rx->bare = true;
	rx->tag = entry->tag;
	rx->has_data = entry->flags & FI_REMOTE_CQ_DATA;
	rx->data = rx->has_data ? entry->data : 0;
	rxm_rx_packet(rx, entry->len);
}

/* Get the endpoint whose completion queue gets the data of a write, when the write does not name the endpoint. NULL:
 * the endpoints use different completion queues. */
static struct rxm_ep *any_target(const struct rxm_poller *poller)
{
	struct rxm_ep *found = NULL;
	struct fab_list *link;

	fab_list_for_each(&poller->eps, link) {
		struct rxm_ep *ep = fab_container(link, struct rxm_ep, poller_link);

		if (found && ep->base.bound.rx_cq != found->base.bound.rx_cq)
			return NULL;
		found = ep;
	}
	return found;
}

void rxm_rx_remote_write(struct rxm_poller *poller, struct rxm_ctx *ctx, uint64_t data, size_t len)
{
	struct rxm_ep *ep;
	struct rxm_rx *rx;

	/* with some providers the data consumes a receive, which names the endpoint; with others nothing does */
	if (!ctx || ctx->kind != RXM_CTX_RX) {
		ep = any_target(poller);
		if (ep)
			rxm_rx_written(ep, &ep->base.stats->rest, data, len);
		else
			FI_WARN_ONCE(&rxm_prov, FI_LOG_EP_DATA, "the data of a peer's write is lost: the device does "
				     "not tell its endpoint, and those of this domain have different completion "
				     "queues; bind them to one\n");
		return;
	}
	rx = fab_container(ctx, struct rxm_rx, ctx);
	rx->written = true;
	rx->data = data;
	rxm_rx_packet(rx, len);
}
