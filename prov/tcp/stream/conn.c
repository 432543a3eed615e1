/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Start and end of a connection. Engine lock held; nothing blocks.
 *
 * After tcp_conn_down(), only epoll events of this pass refer to the connection (so the owner frees it with
 * fab_engine_defer()). Complete unexpected messages drop their reference here, and every operation has completed.
 */
#include "tcp/stream/stream.h"
#include "tcp/stream/direct.h"
#include "tcp/stream/io_ring.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/addr.h"
#include "base/bits.h"
#include "base/sock.h"
#include "common/net/net.h"
#include "tcp/params/params.h"

static void conn_ready(struct fab_source *src, uint32_t events)
{
	const uint32_t gone = EPOLLHUP | EPOLLERR | EPOLLRDHUP;
	struct tcp_conn *conn = fab_container(src, struct tcp_conn, src);

	/* the kernel has all data that will come: waiting operations must get it */
	if ((conn->rx.paused & TCP_RX_PAUSED) && (events & gone))
		tcp_above.gone(conn);
	if (tcp_conn_has_stream(conn) && (events & (EPOLLIN | gone)))
		tcp_rx_poll(src);
	if (events & EPOLLOUT)
		tcp_tx_unblock(conn);
	if (src->outsider)
		tcp_rx_learn_cost(conn);
}

static void conn_flush(struct fab_flush *flush)
{
	struct tcp_conn *conn = fab_container(flush, struct tcp_conn, tx.flush);

	tcp_rx_tell_flush(conn);
	tcp_tx_flush(conn);
}

void tcp_conn_init(struct tcp_conn *conn, struct tcp_ep *ep, const struct tcp_conn_owner *owner)
{
	memset(conn, 0, sizeof(*conn));
	conn->src.fd = -1;
	conn->src.ready = conn_ready;
	conn->src.poll = tcp_rx_poll_socket;
	conn->src.glance_len = tcp_rx_glance_len;
	conn->src.glanced = tcp_rx_glanced;
	fab_list_init(&conn->src.hot);
	conn->ep = ep;
	conn->stats = &ep->base.stats->rest;
	conn->owner = owner;
	conn->io = &tcp_io_sock;
	conn->fi_addr = FI_ADDR_NOTAVAIL;
	fab_list_init(&conn->tx.queue);
	fab_list_init(&conn->tx.held);
	fab_list_init(&conn->tx.ack_wait);
	fab_list_init(&conn->tx.read_wait);
	fab_list_init(&conn->msg.unexp);
	tcp_holding_init(&conn->holding);
	tcp_idmap_init(&conn->tx.rts);
	tcp_idmap_init(&conn->msg.rndv);
	fab_flush_init(&conn->tx.flush, conn_flush);
	tcp_conn_classify(conn);
}

void tcp_conn_classify(struct tcp_conn *conn)
{
	bool is_msg = conn->ep->base.type == FI_EP_MSG;
	bool known = is_msg ? !conn->ep->strange : conn->fi_addr != FI_ADDR_NOTAVAIL;

	enum tcp_class class = known ? TCP_KNOWN : conn->auth_key ? TCP_PROVED : TCP_STRANGER;
	bool waits = class == TCP_STRANGER || tcp_conn_reads_nothing(conn);

	conn->holding.layered = is_msg;
	tcp_account_reclass(&conn->ep->rx->account, &conn->holding, class);
	fab_source_set_outsider(&conn->src, waits);
	conn->rx.stage = waits ? TCP_RX_STRANGER_FIRST : FAB_STAGING_LEN;
	tcp_io_ring_classify(conn);
}

static enum fi_stats_carrier carrier_of(const struct tcp_conn *conn)
{
	return conn->io == &tcp_io_ring ? FI_STATS_CARRIER_RING :
	       conn->local ? FI_STATS_CARRIER_UNIX : FI_STATS_CARRIER_TCP;
}

void tcp_conn_tell(struct tcp_conn *conn, enum fi_stats_conn state)
{
	fab_stats_peer_conn(conn->ep->base.stats, conn->stats, state,
			    state == FI_STATS_CONN_UP ? carrier_of(conn) : FI_STATS_CARRIER_NONE);
}

void tcp_conn_tell_inserted(struct tcp_conn *conn, fi_addr_t fi_addr, uint32_t pid)
{
	struct fi_stats_peer *before = conn->stats;

	conn->stats = fab_stats_peer_insert(conn->ep->base.stats, before, &conn->addr.sa, fi_addr);
	if (conn->stats == before)
		return;
	fab_stats_peer_name(conn->ep->base.stats, conn->stats, NULL, NULL, conn->peer.incarnation, pid);
	if (conn->state == TCP_CONN_UP && conn->stats != &conn->ep->base.stats->rest) {
		conn->stats->conn = FI_STATS_CONN_UP;		/* which it was before: no event */
		conn->stats->carrier = (uint16_t) carrier_of(conn);
	}
}

int tcp_conn_start(struct tcp_conn *conn, const struct tcp_link *link, const struct tcp_hello *peer,
		   struct fab_source *from)
{
	int broken = tcp_io_ring_choose(conn, link), ret = 0;
	bool resumed;

	conn->src.fd = link->fd;
	if (from && from->engine == conn->ep->base.engine)
		ret = fab_source_move(from, &conn->src, EPOLLIN);
	else
		ret = fab_source_add(conn->ep->base.engine, &conn->src, EPOLLIN);
	if (ret) {
		conn->src.fd = -1;
		conn->local = NULL;
		conn->io = &tcp_io_sock;
		conn->src.poll = tcp_rx_poll_socket;
		return ret;
	}
	tcp_descriptor_take(TCP_FD_STREAM);
	if (!conn->local)
		fab_tclass_mark(&tcp_prov, conn->ep->base.info, conn->ep->base.domain->attr.tclass, link->fd);
	resumed = tcp_conn_resumes(conn, peer);
	conn->tx.credit = resumed ? fab_min(conn->tx.credit, (int64_t) peer->credit) : peer->credit;
	conn->peer = *peer;
	conn->rx.special = peer->swap;
	tcp_direct_begin(conn);
	conn->park.parked = false;
	conn->state = TCP_CONN_UP;
	fab_stats_peer_name(conn->ep->base.stats, conn->stats, &conn->addr.sa, NULL, peer->incarnation, 0);
	tcp_conn_tell(conn, FI_STATS_CONN_UP);
	tcp_above.started(conn, resumed);
	if (broken)
		tcp_conn_fail(conn, FI_ECONNRESET, -broken, "the peer closed it before it began");
	else
		tcp_tx_start(conn);
	return 0;
}

bool tcp_conn_resumes(const struct tcp_conn *conn, const struct tcp_hello *peer)
{
	return conn->park.parked && (peer->features & TCP_EXT_RESUME) && peer->incarnation == conn->peer.incarnation;
}

static void conn_unplug(struct tcp_conn *conn)
{
	fab_flush_cancel(&conn->tx.flush);
	fab_list_remove(&conn->holding.waits);
	tcp_direct_end(conn);
	if (conn->src.fd >= 0) {
		fab_source_del(&conn->src);
		tcp_link_retire(&(struct tcp_link) { conn->src.fd, conn->local }, conn->ep->base.engine);
		conn->src.fd = -1;
		conn->local = NULL;
		conn->io = &tcp_io_sock;
		tcp_descriptor_give(TCP_FD_STREAM);
	}
}

void tcp_conn_park(struct tcp_conn *conn)
{
	struct tcp_tx *tx = fab_list_first(&conn->tx.queue, struct tcp_tx, link);

	conn_unplug(conn);
	/* the peer has closed before the kernel has sent all of PARK_YES */
	if (tx && tx->code == FAB_OP_MAX) {
		fab_list_remove(&tx->link);
		tcp_tx_done(tx, 0, 0, NULL);
	}
	conn->state = TCP_CONN_IDLE;
	conn->park.parked = true;
	conn->tx.blocked = false;
	conn->tx.unread_cnt = 0;
	conn->tx.cnt = 0;
	tcp_conn_tell(conn, FI_STATS_CONN_PARKED);
	conn->owner->parked(conn);
}

void tcp_conn_wake(struct tcp_conn *conn)
{
	conn->state = TCP_CONN_UP;
	tcp_tx_start(conn);
}

void tcp_conn_down(struct tcp_conn *conn, int err, int prov_errno, const char *text)
{
	int op_err = err ? err : prov_errno ? prov_errno : FI_ECANCELED;

	if (conn->state == TCP_CONN_DOWN)
		return;
	conn->stats->losses += err != 0;
	fab_stats_event(conn->ep->base.stats, conn->stats, err ? FI_STATS_EV_LOST : FI_STATS_EV_ENDED, (uint64_t) err);
	conn->state = TCP_CONN_DOWN;
	conn_unplug(conn);
	tcp_tx_fail_all(conn, op_err, prov_errno ? prov_errno : op_err, text);
	tcp_above.ended(conn, err, op_err, prov_errno ? prov_errno : op_err, text);
	conn->owner->down(conn, err);
}

void tcp_conn_names(const struct tcp_conn *conn, union fab_sockaddr *ours, union fab_sockaddr *theirs)
{
	tcp_link_names(&(struct tcp_link) { conn->src.fd, conn->local }, ours, theirs);
}

void tcp_conn_text(const struct tcp_conn *conn, char text[TCP_CONN_TEXT])
{
	union fab_sockaddr ours = { 0 }, theirs = { 0 };
	char ours_text[FAB_ADDR_STRLEN] = "?", theirs_text[FAB_ADDR_STRLEN] = "?";

	tcp_conn_names(conn, &ours, &theirs);
	if (ours.sa.sa_family)
		fab_addr_to_str(&ours.sa, ours_text, sizeof(ours_text));
	/* after a reset the kernel does not know the peer's address any more */
	if (!theirs.sa.sa_family)
		theirs = conn->addr;
	if (theirs.sa.sa_family)
		fab_addr_to_str(&theirs.sa, theirs_text, sizeof(theirs_text));
	snprintf(text, TCP_CONN_TEXT, "connection %s -> %s%s", ours_text, theirs_text,
		 conn->io->pull ? " (shared memory)" : conn->local ? " (Unix socket)" : "");
}

/* True if an operation or a message is outstanding. */
static bool conn_is_busy(const struct tcp_conn *conn)
{
	return !tcp_tx_all_done(conn) || !fab_list_empty(&conn->tx.held) || conn->msg.rndv.cnt || conn->rx.into.rx;
}

void tcp_conn_fail(struct tcp_conn *conn, int err, int prov_errno, const char *what)
{
	/* a peer may close when it has all that it wants; messages that it does not take say so in their completions */
	bool quiet = !err ? fab_list_empty(&conn->tx.read_wait) : err == FI_ECONNRESET && !conn_is_busy(conn);
	char ends[TCP_CONN_TEXT], text[TCP_CONN_TEXT + 128];

	tcp_conn_text(conn, ends);
	snprintf(text, sizeof(text), "%s: %s", ends, what);
	TCP_LOG(quiet ? FI_LOG_INFO : FI_LOG_WARN, FI_LOG_EP_DATA, "%s\n", text);
	tcp_conn_down(conn, err, prov_errno, text);
}

bool tcp_conn_flush(struct tcp_conn *conn)
{
	if (conn->state == TCP_CONN_UP && conn->owed.ack_cnt)
		tcp_tx_ack(conn, 0);	/* one may wait for the next read, which may not come */
	if (conn->state == TCP_CONN_UP && !conn->tx.blocked)
		tcp_tx_flush(conn);
	return fab_list_empty(&conn->tx.queue) && fab_list_empty(&conn->tx.held) && !tcp_direct_lends(conn);
}

void tcp_conn_fini(struct tcp_conn *conn)
{
	tcp_idmap_fini(&conn->tx.rts);
	tcp_idmap_fini(&conn->msg.rndv);
	fab_stats_peer_put(conn->ep->base.stats, conn->stats);
}
