/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The connects of an RDM endpoint: the contents of its requests, retries, and giving up. Engine lock held.
 *
 *   tcp_peer_begin -> tcp_peer_try -> (in line, common/pace/pace.h) -> peer_turn -> answer: the life starts
 *                    \                              ^-- retry, after a while --/ \-> peer_fail: a hold-off
 *                     FI_FIREWALL_ADDR: waits for the peer's request (request.c), or for the deadline: peer_fail
 */
#include "tcp/peer/peers.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/bits.h"
#include "base/clock.h"
#include "tcp/offer/offer.h"
#include "tcp/params/params.h"
#include "tcp/sock/sock.h"

#define MS		1000000ULL	/* ns */
#define YOUNG_MAX	256		/* attempts to connect */
#define YOUNG_TIGHT	8		/* while connections are being closed to make room for new ones */
#define RETRY_MIN_MS	1
#define RETRY_MAX_MS	500
#define UNTOLD_NS	(60000 * MS)	/* a failure that no operation has reported is kept so long */

size_t tcp_rdm_data(const struct tcp_ep *ep, struct tcp_rdm_data *data)
{
	union fab_sockaddr name = ep->base.name;
	bool told = tcp_advertise(&name), v6 = name.sa.sa_family == AF_INET6;

	data->cm = (struct tcp_rdm_cm) { .port = htobe16(fab_addr_port(&name.sa)), .pid = htobe32(ep->pid),
					 .features = tcp_params.firewall_addr ? TCP_RDM_FIREWALL : 0 };
	if (!told)
		return sizeof(data->cm);
	data->name = (struct tcp_rdm_name) { .family = htobe16(v6 ? 6 : 4), .port = data->cm.port };
	if (v6)
		memcpy(data->name.addr, &name.sin6.sin6_addr, sizeof(name.sin6.sin6_addr));
	else
		memcpy(data->name.addr, &name.sin.sin_addr, sizeof(name.sin.sin_addr));
	return sizeof(*data);
}

/* Our own advertised address need not be reachable from here. */
const union fab_sockaddr *tcp_peer_target(const struct tcp_peer *peer)
{
	const struct tcp_ep *ep = peer->table->ep;
	union fab_sockaddr name = ep->base.name;

	return tcp_advertise(&name) && fab_addr_equal(&name.sa, &peer->addr.sa) ? &ep->base.name : &peer->addr;
}

static struct tcp_rdm_cm rdm_read(const struct tcp_cm *cm)
{
	struct tcp_rdm_cm data = { 0 };

	memcpy(&data, cm->data, fab_min(sizeof(data), (size_t) cm->data_len));
	return data;
}

uint32_t tcp_rdm_pid(const struct tcp_cm *cm)
{
	return be32toh(rdm_read(cm).pid);
}

bool tcp_rdm_firewalled(const struct tcp_cm *cm)
{
	return rdm_read(cm).features & TCP_RDM_FIREWALL;
}

bool tcp_rdm_connects(const struct tcp_cm *cm)
{
	return rdm_read(cm).features & TCP_RDM_CONNECTS;
}

/* Begin the hold-off. If no operation waits that will report the failure, since injected ones were refused while the
 * connection was being made, the hold-off lasts until the next operation reports it. */
static void peer_hold_off(struct tcp_peer *peer, int err)
{
	const struct tcp_conn *conn = &peer->life->conn;
	bool told = !tcp_tx_all_done(conn) || !fab_list_empty(&conn->tx.held);
	uint64_t now = fab_now_ns(), end = now + tcp_params.holdoff_ms * MS;

	peer->holdoff_err = err;
	peer->holdoff_ns = told ? end : fab_max(end, now + UNTOLD_NS);
	peer->untold_ns = told ? 0 : end;
}

/* The peer cannot be reached: fail all its operations, and new ones for a while (hold-off). */
static void peer_fail(struct tcp_peer *peer, int err, const char *text)
{
	TCP_WARN(FI_LOG_EP_CTRL, "%s\n", text);
	peer_hold_off(peer, err);
	tcp_conn_down(&peer->life->conn, err, err, text);
}

static const struct tcp_cm_owner connect_owner;

/* True if the connection is between contexts. */
static bool peer_names_ctx(const struct tcp_peer *peer)
{
	return peer->rx_ctx || peer->table->ep->context.sep;
}

/* Append the contexts to the private data of a request. */
static void peer_add_ctx(struct tcp_cm_msg *msg, const struct tcp_peer *peer, uint8_t *data)
{
	const struct tcp_ep *ep = peer->table->ep;
	struct tcp_rdm_ctx ctx = { .rx_ctx = htobe16(peer->rx_ctx),
				   .tx_ctx = htobe16(ep->context.sep ? ep->context.number : TCP_CTX_NONE) };

	memcpy(data + msg->data_len, &ctx, sizeof(ctx));
	msg->data_len += sizeof(ctx);
	msg->ext |= TCP_EXT_CTX;
}

/* Begin to connect. 0; -FI_E*: no attempt is being made. */
static int peer_connect(struct tcp_peer *peer)
{
	struct tcp_ep *ep = peer->table->ep;
	union {
		struct tcp_rdm_data rdm;
		uint8_t bytes[sizeof(struct tcp_rdm_data) + sizeof(struct tcp_rdm_ctx)];
	} data;
	struct tcp_cm_msg msg = { .type = TCP_CM_CONNREQ, .incarnation = ep->incarnation, .ext = tcp_rdm_ext(ep),
				  .data = &data, .data_len = tcp_rdm_data(ep, &data.rdm) };
	struct fab_auth_key *key = peer->key ? peer->key : ep->base.auth_key;
	int ret;

	if (peer->life->conn.park.parked)
		msg.ext |= TCP_EXT_RESUME;
	if (peer_names_ctx(peer))
		peer_add_ctx(&msg, peer, data.bytes);
	if (!peer->give_up_ns)
		peer->give_up_ns = fab_now_ns() + tcp_params.connect_timeout_ms * MS;
	peer->cm = tcp_cm_new(ep->base.engine, &connect_owner, peer);
	if (peer->cm) {
		peer->table->connecting_cnt++;
		peer->cm->keyring.key = key;
		peer->cm->shared_memory = ep->shared_memory;
	}
	msg.ext |= key ? TCP_EXT_AUTH : 0;
	ret = peer->cm ? tcp_cm_connect(peer->cm, -1, &ep->base.name, tcp_peer_target(peer), &msg) : -FI_ENOMEM;
	if (ret)
		tcp_peer_stop(peer);
	return ret;
}

static bool dial_is_shortage(int ret)
{
	return ret == -EMFILE || ret == -ENFILE;
}

/* Retry after a random delay, so that many peers rejected together do not return together; or give up with err. */
static void peer_retry(struct tcp_peer *peer, int err, const char *text)
{
	uint64_t wait_ns = peer->retry_ms * MS;

	wait_ns += fab_random64() % wait_ns;
	peer->life->conn.stats->retries++;
	if (fab_now_ns() + wait_ns > peer->give_up_ns) {
		peer_fail(peer, err, text);
		return;
	}
	fab_timer_start(peer->table->ep->base.engine, &peer->retry, fab_now_ns() + wait_ns);
	peer->retry_ms = fab_min(peer->retry_ms * 2, RETRY_MAX_MS);
}

static void peer_turn(struct tcp_peer *peer)
{
	int ret = peer_connect(peer);

	if (!ret)
		return;
	if (dial_is_shortage(ret))
		tcp_reap_shortage(peer->table);
	peer_retry(peer, -ret, "no memory or descriptor for a connection");
}

/* ---- peers that connect to us ---- */

/* True if the peer must connect to us. */
static bool peer_comes_to_us(const struct tcp_peer *peer)
{
	return fab_av_is_firewalled(peer->table->ep->base.bound.av, peer->life->conn.fi_addr);
}

/* Let its operations wait for its request, until a deadline. 0 or -FI_E*. */
static int peer_await(struct tcp_peer *peer)
{
	if (peer_names_ctx(peer)) {
		TCP_WARN(FI_LOG_EP_CTRL, "an address with FI_FIREWALL_ADDR cannot be used with a scalable endpoint: "
			 "its transmit contexts open their own connections, which the firewall blocks\n");
		return -FI_EOPNOTSUPP;
	}
	peer->give_up_ns = fab_now_ns() + tcp_params.connect_timeout_ms * MS;
	fab_timer_start(peer->table->ep->base.engine, &peer->retry, peer->give_up_ns);
	return 0;
}

/* The request has not come before the deadline. */
static void peer_missed(struct tcp_peer *peer)
{
	struct tcp_ep *ep = peer->table->ep;
	union fab_sockaddr own = ep->base.name;
	char from[FAB_ADDR_STRLEN], to[FAB_ADDR_STRLEN], text[320];

	tcp_addr_fill(&own, &ep->base);
	fab_addr_to_str(&peer->addr.sa, from, sizeof(from));
	fab_addr_to_str(&own.sa, to, sizeof(to));
	snprintf(text, sizeof(text), "%s is behind a firewall (FI_FIREWALL_ADDR) and has not connected to this "
		 "endpoint, %s, within FI_TCP_CONNECT_TIMEOUT, %d ms", from, to, tcp_params.connect_timeout_ms);
	peer_fail(peer, FI_EFIREWALLADDR, text);
}

static void peer_turn_begin(struct fab_turn *turn)
{
	peer_turn(fab_container(turn, struct tcp_peer, turn));
}

static uint32_t dial_young_max(void)
{
	return tcp_descriptors_excess() ? YOUNG_TIGHT : YOUNG_MAX;
}

void tcp_pace_init(struct fab_pace *pace, struct tcp_ep *ep)
{
	fab_pace_init(pace, ep->base.engine, dial_young_max, peer_turn_begin);
}

void tcp_peer_retry_fire(struct fab_timer *timer)
{
	struct tcp_peer *peer = fab_container(timer, struct tcp_peer, retry);

	if (peer_comes_to_us(peer) && fab_now_ns() < peer->give_up_ns)
		fab_timer_start(peer->table->ep->base.engine, timer, peer->give_up_ns);
	else if (peer_comes_to_us(peer))
		peer_missed(peer);
	else if (fab_pace_enter(&peer->table->pace, &peer->turn))
		peer_turn(peer);
}

/* ---- answers ---- */

/* True if the answer shows that no RDM endpoint listens there. Upstream's sends its private data with each answer, but
 * not with a refusal. */
static bool answer_is_of_another_kind(const struct tcp_cm *cm)
{
	enum tcp_kind kind = tcp_cm_kind(cm);

	return kind == TCP_KIND_MSG || (kind == TCP_KIND_RXM && cm->type == TCP_CM_NACK) ||
	       (cm->type != TCP_CM_NACK && cm->data_len < sizeof(struct tcp_rdm_cm));
}

/* The exchange of our connect is done; the callback frees it. */
static void peer_end_exchange(struct tcp_peer *peer)
{
	peer->cm = NULL;
	peer->table->connecting_cnt--;
	fab_pace_leave(&peer->table->pace, &peer->turn);
}

static void peer_connect_done(struct tcp_cm *cm)
{
	struct tcp_peer *peer = cm->ctx;
	char text[256];

	peer_end_exchange(peer);
	if (answer_is_of_another_kind(cm)) {
		cm->why = tcp_kind_msg_here;
		tcp_cm_text(cm, FI_EOPNOTSUPP, text, sizeof(text));
		peer_fail(peer, FI_EOPNOTSUPP, text);
	} else if (cm->type == TCP_CM_NACK) {
		cm->why = "the peer rejects it, because it believes that it is connected or connecting";
		tcp_cm_text(cm, FI_ECONNREFUSED, text, sizeof(text));
		/* it may have held the request (ask.c): that time is not that of the retries */
		peer->give_up_ns += cm->reply_ns;
		peer_retry(peer, FI_ECONNREFUSED, text);
	} else if (peer_names_ctx(peer) && !(cm->peer.features & TCP_EXT_CTX)) {
		cm->why = "scalable endpoints and their contexts need this library at both ends";
		tcp_cm_text(cm, FI_EOPNOTSUPP, text, sizeof(text));
		peer_fail(peer, FI_EOPNOTSUPP, text);
	} else {
		tcp_life_start(peer->life, cm);
	}
	tcp_cm_free(cm);
}

/* True if another attempt may succeed: the peer is alive, or resources were short on this side. */
static bool dial_worth_retry(int err)
{
	return err == FI_ECONNRESET || err == EPIPE || err == FI_EADDRNOTAVAIL || err == FI_ENOBUFS;
}

static void peer_connect_fail(struct tcp_cm *cm, int err)
{
	struct tcp_peer *peer = cm->ctx;
	char text[256];

	peer_end_exchange(peer);
	tcp_cm_text(cm, err, text, sizeof(text));
	if (dial_worth_retry(err))
		peer_retry(peer, err, text);
	else
		peer_fail(peer, err, text);
	tcp_cm_free(cm);
}

static const struct tcp_cm_owner connect_owner = { .done = peer_connect_done, .fail = peer_connect_fail };

int tcp_peer_try(struct tcp_peer *peer)
{
	int ret;

	peer->life->dormant = false;
	tcp_conn_tell(&peer->life->conn, FI_STATS_CONN_CONNECTING);
	peer->retry_ms = RETRY_MIN_MS;
	peer->give_up_ns = 0;
	peer->knock_ns = 0;
	if (peer_comes_to_us(peer))
		return peer_await(peer);
	if (!fab_pace_enter(&peer->table->pace, &peer->turn))
		return 0;
	ret = peer_connect(peer);
	if (!dial_is_shortage(ret) || !tcp_reap_shortage(peer->table))
		return ret;
	peer_retry(peer, -ret, "no descriptor for a connection, and no connection can be closed to get one; raise the "
		   "limit on open files (ulimit -n)");
	return peer->life ? 0 : ret;	/* no time was left for another attempt: the life has ended */
}

int tcp_peer_begin(struct tcp_peer *peer)
{
	int ret;

	if (peer->holdoff_ns > fab_now_ns()) {
		if (peer->untold_ns)
			peer->holdoff_ns = peer->untold_ns;
		peer->untold_ns = 0;
		return -peer->holdoff_err;
	}
	if (!peer->life)
		peer->life = tcp_life_new(peer);
	if (!peer->life)
		return -FI_ENOMEM;
	ret = tcp_peer_try(peer);
	if (ret && peer->life)
		tcp_conn_down(&peer->life->conn, -ret, -ret, NULL);
	return ret;
}
