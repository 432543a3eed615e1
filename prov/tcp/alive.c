/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers that are gone without a word: a host that lost power, a network that was cut. Keepalive finds them on an idle
 * connection; here is what it does not see, a connection with something to send.
 *
 * The kernel's own answer, TCP_USER_TIMEOUT, is no good: it also ends connections whose peer is well, but has not
 * read for that long since it computes. So we ask the kernel (TCP_INFO) whether anything at all was heard lately,
 * which is so as long as the peer's kernel lives.
 *
 * A timer on the endpoint's engine, engine lock held.
 */
#include <linux/tcp.h>
#include <errno.h>
#include <netinet/in.h>
#include "base/clock.h"
#include "base/sock.h"
#include "tcp/connect.h"
#include "tcp/peer.h"
#include "tcp/peers.h"

#define MS		1000000ULL	/* ns */
#define CHECKS		4		/* a timeout; a peer is found dead that much late at most */
#define UNANSWERED	3		/* packets, before silence means anything */

static bool is_silent(const struct tcp_info *info)
{
	bool unanswered = (info->tcpi_unacked && info->tcpi_retransmits >= UNANSWERED) ||
			  info->tcpi_probes >= UNANSWERED;

	return unanswered && info->tcpi_last_ack_recv >= (uint32_t) tcp_params.user_timeout_ms;
}

static bool is_dead(const struct tcp_conn *conn)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return tcp_conn_has_stream(conn) && !fab_sock->getsockopt(conn->src.fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       is_silent(&info);
}

static bool end_if_dead(struct tcp_ep *ep, struct tcp_conn *conn, void *arg)
{
	(void) ep, (void) arg;
	if (is_dead(conn))
		tcp_conn_fail(conn, FI_ETIMEDOUT, ETIMEDOUT,
			      "the peer's machine has been silent for too long (FI_TCP_USER_TIMEOUT)");
	return false;
}

static void alive_next(struct tcp_ep *ep)
{
	fab_timer_start(ep->base.progress, &ep->alive, fab_now_ns() + tcp_params.user_timeout_ms * MS / CHECKS);
}

static bool any_up(struct tcp_ep *ep, struct tcp_conn *conn, void *arg)
{
	(void) ep, (void) arg;
	return tcp_conn_has_stream(conn);
}

static void alive_fire(struct fab_timer *timer)
{
	struct tcp_ep *ep = fab_container(timer, struct tcp_ep, alive);

	if (ep->conn)
		end_if_dead(ep, ep->conn, NULL);
	else
		tcp_peers_any(ep, end_if_dead, NULL);
	if (ep->peers)
		tcp_reap_start(ep->peers);
	ep->alive_runs = ep->conn ? ep->conn->state == TCP_CONN_UP : tcp_peers_any(ep, any_up, NULL);
	if (ep->alive_runs)
		alive_next(ep);
}

void tcp_alive_start(struct tcp_ep *ep)
{
	if (ep->alive_runs || !tcp_params.user_timeout_ms)
		return;
	fab_timer_init(&ep->alive, alive_fire);
	ep->alive_runs = true;
	alive_next(ep);
}

void tcp_alive_stop(struct tcp_ep *ep)
{
	if (ep->alive_runs)
		fab_timer_stop(&ep->alive);
	ep->alive_runs = false;
}
