/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rendezvous: long messages, and messages for which the peer has granted no credit, are announced first. Both sides;
 * engine lock held.
 *
 *   sender                         receiver
 *   announce --XRTS(tag, len, id)--> match, or keep the announcement, at its place in the order
 *            <--XCTS(id, rx_id, n)-- take: at most n bytes fit
 *   data     --XDATA(rx_id), n bytes--> directly into the receive
 *
 * n == 0: no data follows, and both sides are done. A send may be cancelled (XCANCEL) as long as no receive has taken
 * it. Long data over TCP has a longer header (XDATA_WIDE), if the receiver says that it knows it.
 */
#include "tcp/message/msg.h"
#include <string.h>
#include "base/bits.h"
#include "base/probe.h"
#include "tcp/params/params.h"

_Static_assert(FAB_CLASS_MSG == 0 && FAB_CLASS_TAGGED == 1 && FAB_CLASS_COLL == 2, "they are on the wire (tcp_rts)");

/* ---- sender ---- */

int tcp_rndv_announce(struct tcp_conn *conn, struct tcp_tx *tx)
{
	enum fab_msg_class class = tx->code == FAB_OP_SEND ? FAB_CLASS_MSG :
			       tx->code == FAB_OP_TSEND ? FAB_CLASS_TAGGED : FAB_CLASS_COLL;
	struct tcp_rts rts = { .tag = class == FAB_CLASS_MSG ? 0 : tx->tag, .len = tx->len };
	uint8_t *pos = tx->hdr_buf + sizeof(tx->hdr);
	struct tcp_group group;
	int ret;

	ret = tcp_idmap_add(&conn->tx.rts, tx, &tx->id);
	if (ret)
		return ret;
	tx->rndv = TCP_TX_ANNOUNCED;
	conn->stats->announced++;
	if (tx->len <= conn->peer.eager_max && !tx->match) {
		conn->stats->credit_waits++;
		FAB_PROBE3(credit, &conn->ep->base, conn->fi_addr, tx->len);
	}
	conn->ep->tx->cnt--;
	rts.id = tx->id;
	if (tx->hdr.flags & TCP_FLAG_CQ_DATA)
		pos += sizeof(uint64_t);	/* stays in place */
	memcpy(&group, tx->hdr_buf + tx->hdr_len - sizeof(group), sizeof(group));	/* if it has one */
	memcpy(pos, &rts, sizeof(rts));
	pos += sizeof(rts);
	if (tx->hdr.flags & TCP_FLAG_GROUP) {
		memcpy(pos, &group, sizeof(group));
		pos += sizeof(group);
	}
	tx->hdr.op = TCP_WIRE_XRTS;
	tx->hdr.op_data = class;
	tx->hdr_len = pos - tx->hdr_buf;
	tx->hdr.hdr_size = tx->hdr_len;
	tx->size = tx->hdr.size = tx->hdr_len;
	return 0;
}

void tcp_rndv_sent(struct tcp_conn *conn, struct tcp_tx *tx)
{
	(void) conn, (void) tx;		/* it is in conn->tx.rts */
}

/* Make the operation a data frame with the first len bytes of the message. */
static void rndv_make_data(struct tcp_tx *tx, const struct tcp_cts *cts, bool wide)
{
	const struct tcp_xdata_wide data = { .xdata.rx_id = cts->rx_id };
	const size_t data_len = wide ? sizeof(data) : sizeof(data.xdata);

	_Static_assert(sizeof(tx->hdr) + sizeof(data) == TCP_WIDE_LEN, "the payload begins there");
	tx->want_ack = tx->hdr.flags & TCP_FLAG_WANT_ACK;
	tx->hdr.flags &= TCP_FLAG_WANT_ACK;
	tx->hdr.op = wide ? TCP_WIRE_XDATA_WIDE : TCP_WIRE_XDATA;
	tx->hdr.op_data = 0;
	tx->hdr_len = sizeof(tx->hdr) + data_len;
	tx->hdr.hdr_size = tx->hdr_len;
	tx->size = tx->hdr.size = tx->hdr_len + cts->len;
	memcpy(tx->hdr_buf + sizeof(tx->hdr), &data, data_len);
	tx->sent = 0;
}

void tcp_rndv_cts(struct tcp_conn *conn)
{
	struct tcp_cts cts;
	struct tcp_tx *tx;

	memcpy(&cts, tcp_rx_extra(conn), sizeof(cts));
	tx = tcp_idmap_get(&conn->tx.rts, cts.id);
	if (!tx || tx->sent < tx->size || cts.len > tx->len) {
		tcp_rx_broken(conn, "go-ahead for a message that was not announced");
		return;
	}
	tcp_idmap_del(&conn->tx.rts, cts.id);
	if (!cts.len) {
		int err = tx->rndv == TCP_TX_ASKED_BACK && cts.rx_id == TCP_RX_ID_NONE ? FI_ECANCELED : 0;

		tcp_tx_done(tx, err, err, "cancelled before a receive had taken it");
		return;
	}
	rndv_make_data(tx, &cts, conn->rx.hdr.op_data == TCP_CTS_WIDE);
	tcp_direct_offer(conn, tx);
	tcp_tx_queue(conn, tx);
}

void tcp_rndv_cancel(struct tcp_conn *conn, struct tcp_tx *tx)
{
	struct tcp_xcancel cancel = { .id = tx->id };
	struct tcp_tx *control = tcp_tx_control(conn, TCP_WIRE_XCANCEL, &cancel, sizeof(cancel));

	if (!control)
		return;
	tx->rndv = TCP_TX_ASKED_BACK;
	tcp_tx_queue(conn, control);
}

/* ---- receiver ---- */

static uint64_t rndv_hash(const struct tcp_conn *conn, uint32_t id)
{
	return fab_mix64((uintptr_t) conn + id);
}

/* The announced message with this id that no receive has taken, or NULL. */
static struct tcp_unexp *rndv_find(const struct tcp_conn *conn, uint32_t id)
{
	const struct fab_table *table = &conn->ep->rx->announced;
	struct fab_list *link;

	if (!table->cnt)
		return NULL;
	fab_list_for_each(fab_table_bucket(table, rndv_hash(conn, id)), link) {
		struct tcp_unexp *unexp = fab_container(link, struct tcp_unexp, entry.link);

		if (unexp->conn == conn && unexp->rts_id == id)
			return unexp;
	}
	return NULL;
}

/* Let the sender take back an announced message, unless the connection is ended because of it. */
static void rndv_list(struct tcp_conn *conn, struct tcp_unexp *unexp)
{
	struct fab_table *table = &conn->ep->rx->announced;

	if (rndv_find(conn, unexp->rts_id)) {
		tcp_rx_broken(conn, "announcement with the id of another one");
	} else if (!table->bucket && fab_table_init(table)) {
		tcp_conn_fail(conn, FI_ENOMEM, FI_ENOMEM, "no memory for an announcement");
	} else {
		fab_table_add(table, &unexp->entry, rndv_hash(conn, unexp->rts_id));
		unexp->listed = true;
	}
}

void tcp_rndv_unlist(struct tcp_unexp *unexp)
{
	fab_table_remove(&unexp->ep->rx->announced, &unexp->entry);
	unexp->listed = false;
}

void tcp_rndv_rts(struct tcp_conn *conn)
{
	struct tcp_msg msg = {
		.base = {
			.class = conn->rx.hdr.op_data, .data = tcp_rx_cq_data(conn), .src = conn->fi_addr,
			.flags = conn->rx.hdr.flags & TCP_FLAG_CQ_DATA ? FI_REMOTE_CQ_DATA : 0,
		},
		.conn = conn, .group = tcp_rx_group(conn),
	};
	struct fi_peer_rx_entry *entry;
	struct tcp_unexp *unexp;
	struct tcp_rts rts;
	struct fab_rx *rx;

	memcpy(&rts, tcp_rx_extra(conn), sizeof(rts));
	if (rts.len > TCP_MAX_MSG_SIZE) {
		tcp_rx_broken(conn, "announcement of a message that is too long");
		return;
	}
	if (msg.base.class >= FAB_CLASS_MAX ||
	    (msg.base.class == FAB_CLASS_COLL && (msg.group || !tcp_conn_has_coll(conn)))) {
		tcp_rx_broken(conn, "announcement of a message of unknown kind");
		return;
	}
	if (msg.group > TCP_GROUP_MAX) {
		tcp_rx_broken(conn, "no such peer group");
		return;
	}
	msg.base.tag = msg.base.class != FAB_CLASS_MSG ? rts.tag : 0;
	msg.base.len = rts.len;
	rx = tcp_rx_find(conn, msg.base.class, msg.base.tag, msg.group);
	unexp = tcp_unexp_new(conn, &msg, true);
	if (!unexp)
		return;
	unexp->rts_id = rts.id;
	if (!rx)
		rndv_list(conn, unexp);
	if (conn->state == TCP_CONN_DOWN)
		return;
	if (!rx && conn->ep->rx->owner && msg.base.class != FAB_CLASS_COLL) {
		rx = conn->ep->rx->owner->ops->find(conn, &msg, &entry);
		if (entry)
			conn->ep->rx->owner->ops->queue(conn->ep->rx->owner, unexp, entry);
		if (conn->state == TCP_CONN_DOWN)
			return;
	}
	if (rx)
		tcp_unexp_take(unexp, rx);
	else if (msg.base.class == FAB_CLASS_COLL && tcp_msg_coll_refuses(conn, msg.base.tag) &&
		 conn->state != TCP_CONN_DOWN)
		tcp_unexp_drop(unexp);
}

static void rndv_data_finish(struct tcp_conn *conn, struct tcp_unexp *unexp)
{
	struct tcp_msg msg = tcp_unexp_msg(unexp);

	tcp_rx_finish(conn->ep, &unexp->base.into, &msg, NULL);
	tcp_unexp_free(unexp);
}

void tcp_rndv_take(struct tcp_conn *conn, struct tcp_unexp *unexp)
{
	struct tcp_cts cts = { .id = unexp->rts_id, .len = unexp->base.into.take };
	struct tcp_tx *tx;

	if (unexp->listed)
		tcp_rndv_unlist(unexp);
	if (cts.len && tcp_idmap_add(&conn->msg.rndv, unexp, &cts.rx_id)) {
		tcp_conn_fail(conn, FI_ENOMEM, FI_ENOMEM, "no memory, or too many long messages at once");
		return;
	}
	tx = tcp_tx_control(conn, TCP_WIRE_XCTS, &cts, sizeof(cts));
	if (!tx)
		return;
	if (cts.len >= TCP_RX_BULK_LEN && !conn->local)
		tx->hdr.op_data = TCP_CTS_WIDE;
	if (!cts.len)
		rndv_data_finish(conn, unexp);
	tcp_tx_queue(conn, tx);
}

/* Answer that no data is needed. */
static void rndv_answer_none(struct tcp_conn *conn, const struct tcp_unexp *unexp, uint32_t rx_id)
{
	struct tcp_cts cts = { .id = unexp->rts_id, .rx_id = rx_id };
	struct tcp_tx *tx = tcp_tx_control(conn, TCP_WIRE_XCTS, &cts, sizeof(cts));

	if (tx)
		tcp_tx_queue(conn, tx);
}

void tcp_rndv_discard(struct tcp_conn *conn, const struct tcp_unexp *unexp)
{
	rndv_answer_none(conn, unexp, 0);
}

/* If the message is not among the announcements, a receive has taken it: the go-ahead was sent, and the send completes
 * as usual. A message that a peek has claimed belongs to the claim's receive, so it stays, too. */
void tcp_rndv_xcancel(struct tcp_conn *conn)
{
	struct tcp_xcancel cancel;
	struct tcp_unexp *unexp;

	memcpy(&cancel, tcp_rx_extra(conn), sizeof(cancel));
	unexp = rndv_find(conn, cancel.id);
	if (!unexp || unexp->base.place == FAB_KEPT_CLAIMED)
		return;
	tcp_unexp_unlink(unexp);
	unexp->base.place = FAB_KEPT_DROPPED;
	rndv_answer_none(conn, unexp, TCP_RX_ID_NONE);
	if (conn->state != TCP_CONN_DOWN)
		tcp_unexp_free(unexp);
}

static void rndv_data_done(struct tcp_conn *conn)
{
	struct tcp_unexp *unexp = conn->rx.unexp;

	conn->rx.unexp = NULL;
	if (__builtin_expect(conn->rx.spoilt, 0))
		unexp->base.into.rx->rare |= FAB_RX_SPOILT;
	rndv_data_finish(conn, unexp);
	tcp_rx_delivered(conn);
}

void tcp_rndv_data(struct tcp_conn *conn)
{
	uint64_t len = conn->rx.hdr.size - conn->rx.hdr.hdr_size;
	struct tcp_unexp *unexp;
	struct tcp_xdata xdata;

	memcpy(&xdata, tcp_rx_extra(conn), sizeof(xdata));
	unexp = tcp_idmap_get(&conn->msg.rndv, xdata.rx_id);
	if (!unexp || unexp->base.into.take != len) {
		tcp_rx_broken(conn, "data that was not asked for");
		return;
	}
	tcp_idmap_del(&conn->msg.rndv, xdata.rx_id);
	conn->rx.unexp = unexp;
	tcp_rx_aim_into(&conn->rx, &unexp->base.into);
	tcp_rx_expect(conn, len, 0, rndv_data_done);
}
