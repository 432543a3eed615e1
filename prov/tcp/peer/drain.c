/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Waiting until sent data has arrived, before a connection is closed. Engine lock held.
 */
#include <linux/tcp.h>
#include <errno.h>
#include <netinet/in.h>
#include "base/clock.h"
#include "base/sock.h"
#include "common/net/net.h"
#include "tcp/peer/peer.h"
#include "tcp/sock/sock.h"

#define DRAIN_POLL_MS	10

static bool drain_on_this_host(int fd)
{
	union fab_sockaddr local = { 0 }, remote = { 0 };

	fab_name_local(fd, &local);
	fab_name_remote(fd, &remote);
	return fab_addr_len(&local.sa) && fab_addr_equal_host(&local.sa, &remote.sa);
}

/* True if the peer's kernel has all data that was sent. It may acknowledge that late (some 40 ms) while the peer does
 * not read. Within one host data cannot be lost: it has arrived when it was sent, unless the peer's buffer was full.
 * Unread data of the peer would turn close() into a reset. */
static bool drain_has_arrived(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (fab_sock->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return true;
	if (info.tcpi_notsent_bytes)
		return false;
	return !info.tcpi_unacked || (!info.tcpi_retransmits && tcp_sock_peek(fd) == -EAGAIN && drain_on_this_host(fd));
}

bool tcp_conn_drained(struct tcp_conn *conn)
{
	if (conn->state == TCP_CONN_UP && tcp_conn_flush(conn) && conn->state == TCP_CONN_UP)
		return drain_has_arrived(conn->src.fd);
	return conn->state != TCP_CONN_UP && fab_list_empty(&conn->tx.queue);
}

void tcp_ep_drain(struct tcp_ep *ep, bool (*drained)(struct tcp_ep *ep))
{
	struct fab_engine *engine = ep->base.engine;
	uint64_t end_ms = fab_now_ms() + TCP_FLUSH_MS;
	struct pollfd pfd = { .fd = engine->epfd, .events = POLLIN };

	if (fab_engine_is_inherited(engine))
		return;		/* the connections are the parent's */
	fab_engine_watch(engine);
	while (!drained(ep) && fab_now_ms() < end_ms) {
		fab_engine_prepare_sleep(engine);
		fab_engine_unlock(engine);
		fab_sock->poll(&pfd, 1, DRAIN_POLL_MS);
		fab_engine_lock(engine);
		fab_engine_run(engine);
	}
	fab_engine_unwatch(engine);
}
