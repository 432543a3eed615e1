/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Who connects to an RDM endpoint: finds out who it is, decides, answers. Engine lock held.
 */
#include "tcp/peers.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "base/clock.h"
#include "tcp/advert.h"
#include "tcp/peer.h"
#include "tcp/sock.h"
#include "tcp/stream.h"
#include "tcp/tcp.h"

#define MS		1000000ULL	/* ns */
#define SLOW_SYN_NS	(1000 * MS)	/* our connect is not getting through: rather take theirs */
#define KNOCK_NS	(30000 * MS)

int tcp_peer_cmp(const union fab_sockaddr *a, const union fab_sockaddr *b)
{
	int ret;

	if (a->sa.sa_family == AF_INET6)
		ret = memcmp(&a->sin6.sin6_addr, &b->sin6.sin6_addr, sizeof(a->sin6.sin6_addr));
	else
		ret = memcmp(&a->sin.sin_addr, &b->sin.sin_addr, sizeof(a->sin.sin_addr));
	return ret ? ret : (int) fab_addr_port(&a->sa) - (int) fab_addr_port(&b->sa);
}

enum verdict {
	REJECT,			/* tell it no */
	ACCEPT,			/* it becomes the peer's life, with the operations that wait */
	REPLACE,		/* the old life is over, this is the new one */
	LOOP,			/* ourselves */
};

/* Is this the same run of the peer's program as the one that we are connected to? */
static bool same_run(const struct tcp_life *life, const struct tcp_cm *cm)
{
	const struct tcp_hello *old = &life->conn.peer, *new = &cm->peer;

	if (old->ext || new->ext)
		return old->ext && new->ext && old->incarnation == new->incarnation;
	return !life->pid || !tcp_rdm_pid(cm) || life->pid == tcp_rdm_pid(cm);
}

/*
 * The peer asks for a connection; own is our address as it sees it. Both sides must come to the same result,
 * upstream's included:
 * - Both ask at the same time: the request of the larger address wins. Unless ours does not get through.
 * - Another run of the peer: it has restarted.
 * - The same run: a leftover of a simultaneous connect, which comes once; or it lost its end, then it will ask again,
 *   and is believed once all that came by the old connection has been read.
 */
static enum verdict decide(struct tcp_peer *peer, const struct tcp_cm *cm, const union fab_sockaddr *own)
{
	struct tcp_life *life = peer->life;
	uint64_t now = fab_now_ns();
	int cmp = tcp_peer_cmp(&peer->addr, own);

	if (!cmp)
		return peer->loop ? REJECT : LOOP;
	if (!life)
		return ACCEPT;
	if (life->conn.state == TCP_CONN_PARKING && same_run(life, cm))
		return REJECT;		/* the end of the old stream must come first */
	if (life->conn.state == TCP_CONN_IDLE) {
		if (cmp > 0 || !peer->cm)
			return ACCEPT;
		return peer->cm->state == TCP_CM_CONNECTING && now - peer->cm->since_ns > SLOW_SYN_NS ? ACCEPT : REJECT;
	}
	if (!same_run(life, cm))
		return REPLACE;
	if (peer->knock_ns && now - peer->knock_ns < KNOCK_NS && tcp_sock_peek(life->conn.src.fd) <= 0)
		return REPLACE;
	peer->knock_ns = now;
	return REJECT;
}

/* The address that it says it is at, if it is one of ours by its family, and we are to believe it. */
static bool named_addr(const struct tcp_rdm_name *name, union fab_sockaddr *addr)
{
	int family = addr->sa.sa_family == AF_INET6 ? 6 : 4;

	if (!tcp_params.trust_advertised || !name->port || be16toh(name->family) != family)
		return false;
	if (addr->sa.sa_family == AF_INET6)
		memcpy(&addr->sin6.sin6_addr, name->addr, sizeof(addr->sin6.sin6_addr));
	else
		memcpy(&addr->sin.sin_addr, name->addr, sizeof(addr->sin.sin_addr));
	fab_addr_set_port(&addr->sa, be16toh(name->port));
	return true;
}

/* Who asks: the address of the connection with the port that it says it listens at; one that it says it is known by; or
 * what we are known by ourselves. False: it does not say. */
static bool request_addr(const struct tcp_ep *ep, const struct tcp_cm *cm, union fab_sockaddr *addr)
{
	struct tcp_rdm_data data = { 0 };
	bool named;

	memcpy(&data, cm->data, fab_min(sizeof(data), (size_t) cm->data_len));
	*addr = cm->remote;
	named = named_addr(&data.name, addr);
	if (!named)
		fab_addr_set_port(&addr->sa, be16toh(data.cm.port));
	if (cm->peer.ext && cm->peer.incarnation == ep->incarnation) {
		fab_addr_set_port(&addr->sa, fab_addr_port(&ep->addr.sa));
		tcp_advertise(addr);
	}
	return named || data.cm.port;
}

static int request_answer(const struct tcp_ep *ep, const struct tcp_cm *cm, uint8_t type, uint16_t ext)
{
	struct tcp_rdm_data data;
	size_t len = tcp_rdm_data(ep, &data);

	return tcp_cm_send(cm->fd, &(struct tcp_cm_msg) { .type = type, .incarnation = ep->incarnation, .ext = ext,
			   .data = &data, .data_len = len });
}

/* Let the request become this life. */
static void request_accept(struct tcp_life *life, struct tcp_cm *cm)
{
	struct tcp_ep *ep = life->table->ep;
	struct tcp_peer *peer = life->peer;
	int ret;

	if (life == peer->life) {
		tcp_peer_stop(peer);
		peer->knock_ns = 0;
		peer->holdoff_ns = 0;
	}
	ret = request_answer(ep, cm, TCP_CM_CONNRESP, tcp_rdm_ext(ep) |
			     (tcp_conn_resumes(&life->conn, &cm->peer) ? TCP_EXT_RESUME : 0));
	if (ret) {
		tcp_conn_down(&life->conn, -ret, -ret, "the peer went away while it was being accepted");
		return;
	}
	life->pid = tcp_rdm_pid(cm);
	life->conn.auth_key = cm->proven;
	if (life == peer->life && life->conn.fi_addr != FI_ADDR_NOTAVAIL)
		tcp_peer_index(ep, life->conn.fi_addr, &life->conn);
	tcp_life_start(life, tcp_cm_take_fd(cm), &cm->peer);
}

/* Who agreed that the stream between us may end, and now asks for another, has closed it: so its end is here, or on
 * its way. */
static void request_settle(struct tcp_peer_table *table, const union fab_sockaddr *addr, const struct fab_auth_key *key)
{
	struct tcp_peer *peer = tcp_peer_find(table, addr, key);

	if (peer && peer->life && peer->life->conn.state == TCP_CONN_PARKING)
		tcp_rx_poll(&peer->life->conn.src);
}

static void request_handle(struct tcp_peer_table *table, struct tcp_cm *cm, const union fab_sockaddr *addr)
{
	union fab_sockaddr own = cm->local;
	struct fab_auth_key *key = table->ep->base.av->keys ? cm->proven : NULL;
	struct tcp_peer *peer;
	struct tcp_life **life;

	request_settle(table, addr, key);
	peer = tcp_peer_get(table, addr, key);
	if (!peer)
		return;
	fab_addr_set_port(&own.sa, fab_addr_port(&table->ep->addr.sa));
	tcp_advertise(&own);
	switch (decide(peer, cm, &own)) {
	case REJECT:
		request_answer(table->ep, cm, TCP_CM_NACK, 0);
		return;
	case LOOP:
		life = &peer->loop;
		break;
	case REPLACE:
		/* the peer may go with its life; and its operations with the life that they were meant for */
		tcp_conn_down(&peer->life->conn, FI_ECONNRESET, FI_ECONNRESET,
			      "the peer has restarted, or lost the connection");
		peer = tcp_peer_get(table, addr, key);
		if (!peer)
			return;
		/* fall through */
	default:
		life = &peer->life;
	}
	if (!*life)
		*life = tcp_life_new(peer);
	if (*life)
		request_accept(*life, cm);
	else
		tcp_peer_put(peer);
}

/* Has the peer closed meanwhile? It does when another connection between the two of us has won. */
static bool is_dead(int fd)
{
	ssize_t ret = tcp_sock_peek(fd);

	return !ret || (ret < 0 && ret != -EAGAIN && ret != -EINTR);
}

void tcp_peer_request(struct tcp_listener *listener, struct tcp_cm *cm)
{
	struct tcp_peer_table *table = fab_container(listener, struct tcp_peer_table, listener);
	union fab_sockaddr addr;
	char from[FAB_ADDR_STRLEN];

	if (!request_addr(table->ep, cm, &addr)) {
		fab_addr_to_str(&cm->remote.sa, from, sizeof(from));
		TCP_WARN(FI_LOG_EP_CTRL, "rejected a connection from %s: it does not say where it listens (a FI_EP_MSG "
			 "endpoint?)\n", from);
		request_answer(table->ep, cm, TCP_CM_NACK, 0);
	} else if (!is_dead(cm->fd)) {
		request_handle(table, cm, &addr);
	}
}
