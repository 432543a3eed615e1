/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Incoming requests of an RDM endpoint: identify the peer, decide, answer. Engine lock held.
 */
#include "tcp/peer/peers.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "base/clock.h"
#include "tcp/params/params.h"
#include "tcp/sock/sock.h"

#define MS		1000000ULL	/* ns */
#define SLOW_SYN_NS	(1000 * MS)	/* our connect takes too long: prefer the peer's */
#define KNOCK_NS	(30000 * MS)
#define SETTLE_READS	256		/* most reads of remaining data on an old connection */
#define SETTLE_FEW	8		/* the same for a request for which nobody has vouched yet */

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
	REJECT,			/* send a NACK */
	ACCEPT,			/* it becomes the peer's life, with the operations that wait */
	REPLACE,		/* the old life has ended, and this is the new one */
	ASK,			/* the same, if the peer is asked and agrees */
	INBOUND,		/* a further connection beside the peer's life, only for receiving */
};

/* True if this is the same run of the peer's program as the one we are connected to. */
static bool request_same_run(const struct tcp_life *life, const struct tcp_cm *cm)
{
	const struct tcp_hello *old = &life->conn.peer, *new = &cm->peer;

	if (old->ext || new->ext)
		return old->ext && new->ext && old->incarnation == new->incarnation;
	return !life->pid || !tcp_rdm_pid(cm) || life->pid == tcp_rdm_pid(cm);
}

/*
 * True if the peer must be asked before this request takes the place of one of its connections. Not if that has ended,
 * if nobody can be asked (upstream's says no incarnation, or a firewall is in between), or if it is a process of this
 * host and user.
 */
static bool request_needs_voucher(const struct tcp_life *life, const struct tcp_cm *cm, const struct tcp_request *req)
{
	const struct tcp_conn *conn = &life->conn;

	if (req->vouched || cm->sock.local || !conn->peer.ext || conn->park.stays)
		return false;
	return conn->state != TCP_CONN_IDLE || (conn->park.parked && !request_same_run(life, cm));
}

/*
 * The peer requests a connection; cmp compares its address with ours, as the peer sees it. Both sides must reach the
 * same decision, also with upstream on the other side:
 *
 * - Both sides request at the same time: the request of the larger address wins. Exception: if our connect does not
 *   succeed, or cannot, the request of the side to which nobody can connect wins.
 * - Another run of the peer: it has restarted.
 * - The same run: a leftover of simultaneous connects, which comes once; or the peer has lost its end of the
 *   connection. Then it requests again, and is accepted when everything received on the old connection was read.
 */
static enum verdict request_decide(struct tcp_peer *peer, const struct tcp_cm *cm, const struct tcp_request *req,
				   int cmp)
{
	bool only_ours = tcp_params.firewall_addr, only_theirs = tcp_rdm_firewalled(cm);
	struct tcp_life *life = peer->life;
	uint64_t now = fab_now_ns();
	bool ask;

	if (!cmp || peer->table->ep->context.sep || (cm->peer.features & TCP_EXT_CTX))
		return INBOUND;
	if (!life)
		return ACCEPT;
	if (life->conn.state == TCP_CONN_PARKING && request_same_run(life, cm))
		return REJECT;		/* the end of the old stream must be read first */
	ask = request_needs_voucher(life, cm, req);
	if (life->conn.state == TCP_CONN_IDLE) {
		if (!peer->cm || (only_ours == only_theirs ? cmp > 0 : only_theirs) ||
		    (peer->cm->state == TCP_CM_CONNECTING && now - peer->cm->since_ns > SLOW_SYN_NS))
			return ask ? ASK : ACCEPT;
		return REJECT;
	}
	if (!request_same_run(life, cm))
		return ask ? ASK : REPLACE;
	if (peer->knock_ns && now - peer->knock_ns < KNOCK_NS && !life->conn.io->has_input(&life->conn))
		return ask ? ASK : REPLACE;
	peer->knock_ns = now;
	return REJECT;
}

/* Take the address that the peer announces, if it has our family and may be trusted. */
static bool request_named_addr(const struct tcp_rdm_name *name, union fab_sockaddr *addr)
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

/* Read the contexts. False: invalid. */
static bool request_read_ctx(const struct tcp_cm *cm, struct tcp_request *req)
{
	struct tcp_rdm_ctx ctx;

	*req = (struct tcp_request) { .tx_ctx = TCP_CTX_NONE, .data_len = cm->data_len };
	if (!(cm->peer.features & TCP_EXT_CTX))
		return true;
	if (cm->data_len < sizeof(struct tcp_rdm_cm) + sizeof(ctx))
		return false;
	req->data_len -= sizeof(ctx);
	memcpy(&ctx, cm->data + req->data_len, sizeof(ctx));
	req->rx_ctx = be16toh(ctx.rx_ctx);
	req->tx_ctx = be16toh(ctx.tx_ctx);
	return req->tx_ctx < TCP_CTX_MAX || req->tx_ctx == TCP_CTX_NONE;
}

/* Identify the peer: by the address of the connection with the listening port that it announces; by the address that it
 * advertises; or, for ourselves, by our own advertised address. False: not possible. */
static bool request_read_addr(const struct tcp_ep *ep, const struct tcp_cm *cm, struct tcp_request *req)
{
	struct tcp_rdm_data data = { 0 };
	union fab_sockaddr *addr = &req->addr;
	bool named;

	memcpy(&data, cm->data, fab_min(sizeof(data), (size_t) req->data_len));
	*addr = cm->remote;
	named = request_named_addr(&data.name, addr);
	if (!named)
		fab_addr_set_port(&addr->sa, be16toh(data.cm.port));
	if (cm->peer.ext && cm->peer.incarnation == ep->incarnation) {
		fab_addr_set_port(&addr->sa, fab_addr_port(&ep->base.name.sa));
		tcp_advertise(addr);
	}
	return named || data.cm.port;
}

static int request_answer(const struct tcp_ep *ep, const struct tcp_cm *cm, uint8_t type, uint16_t ext)
{
	struct tcp_rdm_data data;
	size_t len = tcp_rdm_data(ep, &data);

	return tcp_cm_send(cm->sock.fd, &(struct tcp_cm_msg) { .type = type, .incarnation = ep->incarnation, .ext = ext,
			   .data = &data, .data_len = len });
}

void tcp_request_reject(const struct tcp_ep *ep, struct tcp_cm *cm)
{
	request_answer(ep, cm, TCP_CM_NACK, 0);
}

void tcp_request_refuse(const struct tcp_ep *ep, struct tcp_cm *cm, uint8_t refusal)
{
	tcp_cm_send(cm->sock.fd, &(struct tcp_cm_msg) { .type = TCP_CM_NACK, .incarnation = ep->incarnation,
						   .refusal = refusal });
}

/* Make the request the stream of this life. */
static void request_accept(struct tcp_life *life, struct tcp_cm *cm)
{
	struct tcp_ep *ep = life->table->ep;
	struct tcp_peer *peer = life->peer;
	int ret;

	if (life == peer->life) {
		tcp_peer_stop(peer);
		peer->knock_ns = 0;
		peer->holdoff_ns = 0;
		peer->said.when_ns = 0;
	}
	ret = request_answer(ep, cm, TCP_CM_CONNRESP, tcp_rdm_ext(ep) | (cm->peer.features & TCP_EXT_CTX) |
			     (tcp_conn_resumes(&life->conn, &cm->peer) ? TCP_EXT_RESUME : 0));
	if (ret) {
		tcp_conn_down(&life->conn, -ret, -ret, "the peer closed the connection while it was being accepted");
		return;
	}
	if (life == peer->life && life->conn.fi_addr != FI_ADDR_NOTAVAIL)
		tcp_peer_index(peer, life->conn.fi_addr, &life->conn);
	life->table->accepted++;
	tcp_life_start(life, cm);
}

struct fab_auth_key *tcp_request_key(const struct tcp_peer_table *table, const struct tcp_cm *cm)
{
	return table->ep->base.bound.av->keys ? cm->proven : NULL;
}

struct tcp_peer *tcp_request_peer(const struct tcp_peer_table *table, const struct tcp_cm *cm,
				  const struct tcp_request *req)
{
	return tcp_peer_find(table, &req->addr, tcp_request_key(table, cm), 0);
}

/* Read the rest of a connection that will be replaced, in `max` reads at most. False: the peer keeps sending, so there
 * may be more. */
static bool request_read_rest(struct tcp_conn *conn, int max)
{
	for (int i = 0; i < max; i++) {
		if (!tcp_rx_poll(&conn->src))
			return true;
	}
	return false;
}

/* The same for a connection that this request would replace. Whoever repeats requests must not make us read from one
 * peer for long while the others wait. */
static void request_read_replaced(struct tcp_life *life, const struct tcp_cm *cm, const struct tcp_request *req)
{
	request_read_rest(&life->conn, request_needs_voucher(life, cm, req) ? SETTLE_FEW : SETTLE_READS);
}

/* Read the rest of connections to this address that are leaving: it was sent before the data of a new connection.
 * False: there may be more. */
static bool request_settle_leaving(struct tcp_peer_table *table, const union fab_sockaddr *addr)
{
	struct fab_list *link = table->lives.next;

	while (link != &table->lives) {
		struct tcp_life *life = fab_container(link, struct tcp_life, link);
		bool leaves = life->leave_ns && fab_addr_equal(&life->conn.addr.sa, &addr->sa);

		if (leaves && !request_read_rest(&life->conn, SETTLE_READS))
			return false;
		/* a life whose end was read has left the list */
		link = life->conn.state == TCP_CONN_DOWN ? table->lives.next : link->next;
	}
	return true;
}

/* The peer agreed to end the stream, or was started again, and now requests a new stream, so it has closed the old one:
 * read to its end. False: there is so much data that the peer must request again. */
static bool request_settle(struct tcp_peer_table *table, const struct tcp_cm *cm, const struct tcp_request *req)
{
	struct tcp_peer *peer;

	if (!fab_list_empty(&table->leave.link) && !request_settle_leaving(table, &req->addr))
		return false;
	peer = tcp_request_peer(table, cm, req);
	if (!peer || !peer->life)
		return true;
	if (peer->life->conn.state == TCP_CONN_PARKING)
		tcp_rx_poll(&peer->life->conn.src);
	else if (peer->life->conn.state == TCP_CONN_UP && !request_same_run(peer->life, cm))
		request_read_replaced(peer->life, cm, req);
	return true;
}

/* End a connection that another one replaces. May free the peer. */
static void request_end_life(struct tcp_life *life)
{
	tcp_conn_down(&life->conn, FI_ECONNRESET, FI_ECONNRESET, "the peer has restarted, or lost the connection");
}

/* ---- connections for one direction ---- */

static struct tcp_life *inbound_find(const struct tcp_peer *peer, uint16_t tx_ctx)
{
	struct fab_list *link;

	fab_list_for_each(&peer->inbound, link) {
		struct tcp_life *life = fab_container(link, struct tcp_life, in_link);

		if (life->from == tx_ctx)
			return life;
	}
	return NULL;
}

/* Read the rest of the previous connection of the peer's context, which precedes all data of the new one. REJECT: its
 * end was not reached, and may still come. */
static enum verdict inbound_decide(struct tcp_life *old, const struct tcp_cm *cm, const struct tcp_request *req)
{
	struct tcp_conn *conn = &old->conn;

	request_read_replaced(old, cm, req);
	if (conn->state == TCP_CONN_DOWN)
		return ACCEPT;
	if (request_same_run(old, cm) && (conn->rx.paused || !old->knocked)) {
		old->knocked = true;
		return REJECT;
	}
	return request_needs_voucher(old, cm, req) ? ASK : REPLACE;
}

static void inbound_accept(struct tcp_peer_table *table, struct tcp_cm *cm, const struct tcp_request *req,
			   struct fab_auth_key *key)
{
	struct tcp_peer *peer = tcp_peer_find(table, &req->addr, key, 0);
	struct tcp_life *life = peer ? inbound_find(peer, req->tx_ctx) : NULL;

	switch (life ? inbound_decide(life, cm, req) : ACCEPT) {
	case REJECT:
		tcp_request_reject(table->ep, cm);
		return;
	case ASK:
		tcp_ask(peer, cm, req);
		return;
	case REPLACE:
		request_end_life(life);
		/* fall through */
	default:
		break;
	}
	peer = tcp_peer_get(table, &req->addr, key, 0);
	life = peer ? tcp_life_new(peer) : NULL;
	if (!life) {
		if (peer)
			tcp_peer_put(peer);
		return;
	}
	life->inbound = true;
	life->conn.owner = &tcp_inbound_owner;
	life->from = req->tx_ctx;
	fab_list_add_tail(&peer->inbound, &life->in_link);
	request_accept(life, cm);
}

/* ---- connections for both directions ---- */

/* True if a new stranger is refused because there are too many. It requests again; meanwhile idle ones are closed. */
static bool request_is_turned_away(struct tcp_peer_table *table, const union fab_sockaddr *addr,
				   const struct fab_auth_key *key)
{
	const struct tcp_peer *peer;

	if (!tcp_strangers_full(table) || fab_av_find_under(table->ep->base.bound.av, addr, key) != FI_ADDR_NOTAVAIL)
		return false;
	peer = tcp_peer_find(table, addr, key, 0);
	if (peer && peer->life)
		return false;
	tcp_reap_start(table);
	tcp_account_refuse(&table->ep->rx->account, TCP_REFUSED_REQUEST);
	if (!table->stranger_warned)
		TCP_WARN(FI_LOG_EP_CTRL, "%u peers that are in no address vector are connected; further ones wait "
			 "until some of these are idle. To admit more, raise FI_TCP_STRANGER_CONN and ulimit -n, "
			 "of which such peers get five eighths\n", table->stranger_cnt);
	table->stranger_warned = true;
	return true;
}

bool tcp_request_needs_voucher(const struct tcp_peer_table *table, const struct tcp_cm *cm,
			       const struct tcp_request *req)
{
	const struct tcp_peer *peer = tcp_request_peer(table, cm, req);
	const struct tcp_life *inbound = peer ? inbound_find(peer, req->tx_ctx) : NULL;

	return peer && ((peer->life && request_needs_voucher(peer->life, cm, req)) ||
			(inbound && request_needs_voucher(inbound, cm, req)));
}

void tcp_request_handle(struct tcp_peer_table *table, struct tcp_cm *cm, const struct tcp_request *req)
{
	const union fab_sockaddr *addr = &req->addr;
	union fab_sockaddr own = cm->local;
	struct fab_auth_key *key = tcp_request_key(table, cm);
	struct tcp_peer *peer;
	int cmp;

	if (!request_settle(table, cm, req) || request_is_turned_away(table, addr, key)) {
		tcp_request_reject(table->ep, cm);
		return;
	}
	peer = tcp_peer_get(table, addr, key, 0);
	if (!peer)
		return;
	fab_addr_set_port(&own.sa, fab_addr_port(&table->ep->base.name.sa));
	tcp_advertise(&own);
	cmp = tcp_peer_cmp(addr, &own);
	if (req->vouched)
		peer->asked_ns = 0;
	peer->self = !cmp;
	switch (request_decide(peer, cm, req, cmp)) {
	case REJECT:
		tcp_request_reject(table->ep, cm);
		return;
	case ASK:
		tcp_ask(peer, cm, req);
		return;
	case INBOUND:
		inbound_accept(table, cm, req, key);
		return;
	case REPLACE:
		/* its operations end with the life for which they were posted */
		request_end_life(peer->life);
		peer = tcp_peer_get(table, addr, key, 0);
		if (!peer)
			return;
		/* fall through */
	default:
		break;
	}
	if (!peer->life)
		peer->life = tcp_life_new(peer);
	if (peer->life)
		request_accept(peer->life, cm);
	else
		tcp_peer_put(peer);
}

bool tcp_request_is_dead(const struct tcp_cm *cm)
{
	ssize_t ret = tcp_sock_peek(cm->sock.fd);

	return !ret || (ret < 0 && ret != -EAGAIN && ret != -EINTR);
}

void tcp_peer_requested(struct tcp_peer_table *table, struct tcp_cm *cm)
{
	enum tcp_kind kind = tcp_cm_kind(cm);
	struct tcp_request req;
	char from[FAB_ADDR_STRLEN];

	if (cm->peer.features & TCP_EXT_WHO) {
		tcp_ask_answer(table, cm);
		return;
	}
	if (kind == TCP_KIND_MSG || kind == TCP_KIND_RXM) {
		tcp_cm_refuse_kind(cm, TCP_KIND_RDM);
		return;
	}
	if (!request_read_ctx(cm, &req) || !request_read_addr(table->ep, cm, &req)) {
		fab_addr_to_str(&cm->remote.sa, from, sizeof(from));
		TCP_WARN(FI_LOG_EP_CTRL, "rejected a connection from %s: its request names no listening port; is the "
			 "peer an FI_EP_MSG endpoint?\n", from);
		tcp_request_reject(table->ep, cm);
		return;
	}
	if (table->ep->context.sep)
		table = tcp_sep_route(table->ep, cm, req.rx_ctx);
	else if (req.rx_ctx)
		tcp_request_refuse(table->ep, cm, TCP_REFUSE_NO_CTX);
	if (table && (table->ep->context.sep || !req.rx_ctx) && !tcp_request_is_dead(cm)) {
		table->asked++;
		tcp_request_handle(table, cm, &req);
	}
}

void tcp_peer_request(struct tcp_listener *listener, struct tcp_cm *cm)
{
	tcp_peer_requested(fab_container(listener, struct tcp_peer_table, listener), cm);
}
