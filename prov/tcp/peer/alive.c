/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Detects peers that are gone without a word: a host that lost power, a network that was cut. Keepalive detects this on
 * an idle connection; this file does it for a connection with data to send. It also detects peers whose kernel is alive
 * but whose process has stopped. That is logged once, and ends the connection if FI_TCP_STALL_TIMEOUT is set.
 *
 * TCP_USER_TIMEOUT of the kernel is not suitable: it also ends connections to a healthy peer that computes and has not
 * read for so long. So the kernel is asked (TCP_INFO) whether it has received anything lately, which is the case as
 * long as the peer's kernel is alive.
 *
 * Runs in a timer on the endpoint's engine, engine lock held.
 */
#include <linux/tcp.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "tcp/params/params.h"
#include "tcp/peer/peers.h"
#include "tcp/sock/sock.h"

#define MS		1000000ULL	/* ns */
#define CHECKS		4		/* per timeout; so a dead peer is found late by at most one of these */
#define UNANSWERED	3		/* packets without an answer, before silence counts */

/* What is known of the other end of a stream. */
struct alive_facts {
	uint64_t mark;			/* changes when the peer's process reads or sends */
	bool unread;			/* the peer's process has not read all that was sent */
	bool silent;			/* the peer's kernel has not answered for too long */
};

static bool alive_is_silent(const struct tcp_info *info)
{
	bool unanswered = (info->tcpi_unacked && info->tcpi_retransmits >= UNANSWERED) ||
			  info->tcpi_probes >= UNANSWERED;

	return tcp_params.user_timeout_ms && unanswered &&
	       info->tcpi_last_ack_recv >= (uint32_t) tcp_params.user_timeout_ms;
}

/* Data accepted by the peer's kernel shows that its process is alive only if the kernel's buffer is full. False: not
 * known. */
static bool alive_ask_tcp(const struct tcp_conn *conn, struct alive_facts *facts)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (fab_sock->getsockopt(conn->src.fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	facts->mark = info.tcpi_bytes_received + (conn->tx.blocked ? info.tcpi_bytes_acked : 0);
	facts->unread = info.tcpi_unacked || info.tcpi_notsent_bytes;
	facts->silent = alive_is_silent(&info);
	return true;
}

/* The same for a peer of this host. Its kernel is ours. */
static bool alive_ask_local(const struct tcp_conn *conn, struct alive_facts *facts)
{
	uint64_t unread = conn->io->unread(conn);

	*facts = (struct alive_facts) { .mark = ((uint64_t) conn->used.recv_pass << 32) + unread, .unread = unread };
	return true;
}

/* True if an operation waits for the peer's process to read or to answer. An announced message does not count: it waits
 * for a receive, for any time. */
static bool alive_waits(const struct tcp_conn *conn, const struct alive_facts *facts)
{
	return (conn->tx.blocked && facts->unread) || !fab_list_empty(&conn->tx.ack_wait) ||
	       !fab_list_empty(&conn->tx.read_wait);
}

/* The time for which the peer's process has done nothing although an operation waits for it. If data has arrived that
 * we have not read, because we made no progress, the answer may be in it. */
static uint64_t alive_stuck_ms(struct tcp_conn *conn, const struct alive_facts *facts)
{
	bool works = facts->mark != conn->alive.mark || tcp_sock_peek(conn->src.fd) != -EAGAIN;

	conn->alive.mark = facts->mark;
	if (!works && conn->alive.stuck_ns && alive_waits(conn, facts))
		return (fab_now_ns() - conn->alive.stuck_ns) / MS;
	conn->alive.stuck_ns = alive_waits(conn, facts) ? fab_now_ns() : 0;
	conn->alive.told = false;
	return 0;
}

static void alive_tell_stuck(struct tcp_conn *conn, uint64_t stuck_ms)
{
	char ends[TCP_CONN_TEXT];

	conn->alive.told = true;
	tcp_conn_text(conn, ends);
	TCP_WARN(FI_LOG_EP_DATA, "%s: the peer has read and answered nothing for %" PRIu64 " ms while operations wait "
		 "for it, although its machine answers: does the peer make progress (read its CQ)? "
		 "FI_TCP_STALL_TIMEOUT (%d ms, 0 is never) ends such waits with FI_ETIMEDOUT\n", ends, stuck_ms,
		 tcp_params.stall_timeout_ms);
}

static bool alive_look_after(struct tcp_ep *ep, struct tcp_conn *conn, void *arg)
{
	struct alive_facts facts;
	uint64_t stuck_ms;

	(void) ep, (void) arg;
	if (!tcp_conn_has_stream(conn) ||
	    !(conn->local ? alive_ask_local(conn, &facts) : alive_ask_tcp(conn, &facts)))
		return false;
	stuck_ms = alive_stuck_ms(conn, &facts);
	if (facts.silent)
		tcp_conn_fail(conn, FI_ETIMEDOUT, ETIMEDOUT,
			      "the peer's machine has not answered within the time limit (FI_TCP_USER_TIMEOUT)");
	else if (tcp_params.stall_timeout_ms && stuck_ms >= (uint64_t) tcp_params.stall_timeout_ms)
		tcp_conn_fail(conn, FI_ETIMEDOUT, ETIMEDOUT,
			      "the peer has read and answered nothing within the time limit (FI_TCP_STALL_TIMEOUT)");
	else if (tcp_params.user_timeout_ms && stuck_ms >= (uint64_t) tcp_params.user_timeout_ms && !conn->alive.told)
		alive_tell_stuck(conn, stuck_ms);
	return false;
}

/* The shorter of both timeouts; 0: none is set. */
static int alive_timeout_ms(void)
{
	if (!tcp_params.user_timeout_ms || !tcp_params.stall_timeout_ms)
		return tcp_params.user_timeout_ms + tcp_params.stall_timeout_ms;
	return fab_min(tcp_params.user_timeout_ms, tcp_params.stall_timeout_ms);
}

static void alive_next(struct tcp_ep *ep)
{
	fab_timer_start(ep->base.engine, &ep->alive.timer, fab_now_ns() + alive_timeout_ms() * MS / CHECKS);
}

static bool alive_any_up(struct tcp_ep *ep, struct tcp_conn *conn, void *arg)
{
	(void) ep, (void) arg;
	return tcp_conn_has_stream(conn);
}

static void alive_fire(struct fab_timer *timer)
{
	struct tcp_ep *ep = fab_container(timer, struct tcp_ep, alive.timer);

	if (ep->conn)
		alive_look_after(ep, ep->conn, NULL);
	else
		tcp_peers_any(ep, alive_look_after, NULL);
	if (ep->rdm.peers)
		tcp_reap_start(ep->rdm.peers);
	ep->alive.runs = ep->conn ? ep->conn->state == TCP_CONN_UP : tcp_peers_any(ep, alive_any_up, NULL);
	if (ep->alive.runs)
		alive_next(ep);
}

void tcp_alive_start(struct tcp_ep *ep)
{
	if (ep->alive.runs || !alive_timeout_ms())
		return;
	fab_timer_init(&ep->alive.timer, alive_fire);
	ep->alive.runs = true;
	alive_next(ep);
}

void tcp_alive_stop(struct tcp_ep *ep)
{
	if (ep->alive.runs)
		fab_timer_stop(&ep->alive.timer);
	ep->alive.runs = false;
}
