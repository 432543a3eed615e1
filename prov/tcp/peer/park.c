/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Parking: an idle connection is closed and later opened again, unnoticed by the application, so that an endpoint may
 * have more peers than descriptors. The connection object stays, with the peer's kept messages and the remaining
 * credits; only the stream ends. budget.c decides when to ask. Engine lock held.
 *
 *   asking side                            other side
 *   idle --PARK-->                         busy, asks itself, or goes straight: --PARK_NO-->
 *                                          idle: --PARK_YES-->, then PARKING: it sends nothing, operations wait
 *   has sent nothing since PARK: closes    the stream ends: parked
 *   has sent something, or has gone        a frame comes: UP again, waiting operations are sent
 *   straight: continues
 *
 * So neither end closes before it has everything that the other end has sent, and nothing is sent into a stream that
 * will be closed. Each PARK has one answer, and at most one PARK is unanswered. If a frame that should be sent after
 * PARK was cancelled, PARK_STAY is sent in its place.
 */
#include "tcp/peer/peers.h"

#include "common/collective/collective.h"
#include "tcp/params/params.h"

#define STRAIGHT_PASSES	16		/* so long after a straight access the stream is in use */

bool tcp_conn_idle(const struct tcp_conn *conn)
{
	const struct tcp_rx_state *rx = &conn->rx;

	if ((conn->msg.unexp_len && !conn->owner->resumes) || conn->park.stays ||
	    fab_av_is_firewalled(conn->ep->base.bound.av, conn->fi_addr))
		return false;
	return tcp_tx_all_done(conn) && fab_list_empty(&conn->tx.held) && !conn->msg.rndv.cnt &&
	       !conn->msg.announced_cnt && !conn->remote.rsp_cnt && !conn->owed.ack_cnt && !rx->paused &&
	       rx->phase == TCP_RX_HDR && !rx->hdr_have &&
	       !(conn->ep->base.coll && fab_coll_waits_for(conn->ep->base.coll, conn->fi_addr));
}

/* True if remote accesses have just gone past the stream (remote/straight.c), which only their initiator knows of. */
static bool park_goes_straight(const struct tcp_conn *conn)
{
	uint32_t pass = conn->used.straight_pass;

	return pass && conn->ep->base.engine->pass_cnt - pass <= STRAIGHT_PASSES;
}

static void park_send(struct tcp_conn *conn, enum tcp_wire_op op)
{
	struct tcp_tx *tx = tcp_tx_control(conn, op, NULL, 0);

	if (!tx)
		return;
	tcp_tx_queue(conn, tx);
	tcp_tx_flush(conn);	/* before the read ends: in PARKING nothing is sent */
}

void tcp_park_ask(struct tcp_conn *conn)
{
	conn->park.asked = true;
	conn->park.cnt = conn->tx.cnt + 1;
	park_send(conn, TCP_WIRE_PARK);
}

/* The answer leaves with others when the read ends. */
static void park_refuse(struct tcp_conn *conn)
{
	struct tcp_tx *tx = tcp_tx_control(conn, TCP_WIRE_PARK_NO, NULL, 0);

	if (tx)
		tcp_tx_queue(conn, tx);
}

void tcp_park_asked(struct tcp_conn *conn)
{
	const uint32_t pass = conn->ep->base.engine->pass_cnt;

	/* who asks again before it can have our answer gets no system call for each frame of 16 bytes */
	if (conn->park.answer_pass && conn->park.answer_pass == pass) {
		park_refuse(conn);
		return;
	}
	conn->park.answer_pass = pass;
	if (!conn->owner->parked || conn->park.asked || !tcp_conn_idle(conn) || park_goes_straight(conn)) {
		park_send(conn, TCP_WIRE_PARK_NO);
		return;
	}
	park_send(conn, TCP_WIRE_PARK_YES);
	if (conn->state == TCP_CONN_UP)
		conn->state = TCP_CONN_PARKING;
}

/* The peer has agreed: it sends nothing more unless it receives something. */
static void park_agreed(struct tcp_conn *conn)
{
	if (conn->tx.cnt != conn->park.cnt)
		return;
	if (tcp_conn_idle(conn) && !park_goes_straight(conn))
		tcp_conn_park(conn);
	else
		park_send(conn, TCP_WIRE_PARK_STAY);
}

void tcp_park_answered(struct tcp_conn *conn)
{
	if (!conn->park.asked) {
		tcp_rx_broken(conn, "an answer without a question");
		return;
	}
	conn->park.asked = false;
	if (conn->rx.hdr.op == TCP_WIRE_PARK_YES)
		park_agreed(conn);
}

void tcp_park_stay(struct tcp_conn *conn)
{
	(void) conn;		/* its arrival is all the information */
}
