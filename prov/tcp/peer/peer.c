/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Peers of an RDM endpoint. A peer is a listening address. It has a *life* while there is a connection, or one being
 * made. A new connection is a new life, so that nothing of the connection before a restart can affect the one after it.
 *
 *   no life --first operation--> connecting (conn IDLE, operations wait) --answer--> UP --any end--> no life
 *      \-----------------------request from the peer, accepted-------------------------^
 *   UP --parked, by agreement with the peer--> dormant --operation, or request--> connecting: the same life
 *   connecting --refused, timed out--> no life, and a hold-off: operations fail at once with the same error
 *   no life --operation to a peer that must connect to us (FI_FIREWALL_ADDR)--> waiting (conn IDLE) --request--> UP
 *      \<--no request comes; then a hold-off--/
 *   connecting --rejected by the peer (NACK)--> retried until the deadline: the peer may be connecting to us, or may
 *   not have noticed yet that our previous connection has ended
 *
 * Our own connects: dial.c. The choice between two requests: request_decide() in request.c. Whether a request that
 * would replace a connection is the peer's: ask.c. A life that is not needed
 * any more, because its address was removed, leaves: it sends what is queued, shuts down, and reads until the peer
 * closes, too.
 *
 * Everything runs under the engine's lock. A peer is referred to by its life, its exchange (cm) and its timer; each
 * drops the reference when it ends. The engine frees lives and the table when no event can reach them any more.
 */
#include "tcp/peer/peers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "base/clock.h"
#include "base/sock.h"
#include "common/av/av.h"
#include "tcp/message/message.h"
#include "tcp/params/params.h"
#include "tcp/sock/sock.h"

#define MS		1000000ULL	/* ns */
#define LEAVE_POLL_NS	(20 * MS)
#define SPARSE_INDEX	0x10000u	/* connections, half a megabyte */

/* ---- table ---- */

struct tcp_peer *tcp_peer_find(const struct tcp_peer_table *table, const union fab_sockaddr *addr,
			       const struct fab_auth_key *key, uint16_t rx_ctx)
{
	struct fab_list *link;

	fab_list_for_each(fab_table_bucket(&table->peers, fab_addr_hash(&addr->sa)), link) {
		struct tcp_peer *peer = fab_container(link, struct tcp_peer, entry.link);

		if (fab_addr_equal(&peer->addr.sa, &addr->sa) && peer->key == key && peer->rx_ctx == rx_ctx)
			return peer;
	}
	return NULL;
}

struct tcp_peer *tcp_peer_get(struct tcp_peer_table *table, const union fab_sockaddr *addr, struct fab_auth_key *key,
			      uint16_t rx_ctx)
{
	struct tcp_peer *peer = tcp_peer_find(table, addr, key, rx_ctx);

	if (peer)
		return peer;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->table = table;
	peer->addr = *addr;
	peer->key = key;
	peer->rx_ctx = rx_ctx;
	fab_list_init(&peer->inbound);
	fab_timer_init(&peer->retry, tcp_peer_retry_fire);
	fab_turn_init(&peer->turn);
	fab_table_add(&table->peers, &peer->entry, fab_addr_hash(&addr->sa));
	return peer;
}

/* Free a peer about which nothing must be remembered. */
void tcp_peer_put(struct tcp_peer *peer)
{
	if (peer->life || !fab_list_empty(&peer->inbound) || peer->holdoff_ns > fab_now_ns())
		return;
	assert(!peer->cm);
	fab_table_remove(&peer->table->peers, &peer->entry);
	free(peer);
}

/* The index of a peer's connection. */
static uint64_t peer_slot(const struct tcp_peer *peer, fi_addr_t fi_addr)
{
	return fi_addr << peer->table->ep->rdm.rx_ctx_bits | peer->rx_ctx;
}

/* If addresses have more bits for contexts than needed, the index would be sparse; then most connections are only found
 * in the table. */
bool tcp_peer_index(struct tcp_peer *peer, fi_addr_t fi_addr, struct tcp_conn *conn)
{
	struct tcp_ep *ep = peer->table->ep;
	uint64_t slot = peer_slot(peer, fi_addr);

	if ((uint64_t) 1 << ep->rdm.rx_ctx_bits > TCP_CTX_MAX && slot >= SPARSE_INDEX)
		return true;
	if (fab_grow(&ep->rdm.by_addr, &ep->rdm.by_addr_cnt, slot, sizeof(*ep->rdm.by_addr)))
		return false;
	ep->rdm.by_addr[slot] = conn;
	return true;
}

static void peer_index_clear(struct tcp_peer *peer, const struct tcp_conn *conn)
{
	struct tcp_ep *ep = peer->table->ep;
	uint64_t slot = peer_slot(peer, conn->fi_addr);

	if (slot < ep->rdm.by_addr_cnt && ep->rdm.by_addr[slot] == conn)
		ep->rdm.by_addr[slot] = NULL;
}

void tcp_peer_stop(struct tcp_peer *peer)
{
	peer->table->connecting_cnt -= peer->cm != NULL;
	tcp_cm_free(peer->cm);
	peer->cm = NULL;
	fab_timer_stop(&peer->retry);
	fab_pace_leave(&peer->table->pace, &peer->turn);
}

/* ---- lives ---- */

static void life_release(struct fab_defer *defer)
{
	struct tcp_life *life = fab_container(defer, struct tcp_life, defer);

	tcp_conn_fini(&life->conn);
	free(life);
}

/* Detach a life from its peer. */
static void life_detach(struct tcp_life *life)
{
	struct tcp_peer *peer = life->peer;

	if (!peer)
		return;
	life->peer = NULL;
	if (life->inbound) {
		fab_list_remove(&life->in_link);
	} else {
		peer_index_clear(peer, &life->conn);
		tcp_peer_stop(peer);
		peer->life = NULL;
	}
	tcp_peer_put(peer);
}

/* The connection has ended, from either side. */
static void life_down(struct tcp_conn *conn, int err)
{
	struct tcp_life *life = fab_container(conn, struct tcp_life, conn);

	(void) err;
	life_detach(life);
	fab_list_remove(&life->link);
	life->table->life_cnt--;
	life->table->stranger_cnt -= conn->fi_addr == FI_ADDR_NOTAVAIL;
	life->defer.free = life_release;
	fab_engine_defer(life->table->ep->base.engine, &life->defer);
}

bool tcp_life_is_forgettable(const struct tcp_life *life)
{
	const struct tcp_conn *conn = &life->conn;

	return conn->state == TCP_CONN_IDLE && conn->park.parked && conn->fi_addr == FI_ADDR_NOTAVAIL &&
	       tcp_strangers_many(life->table) && fab_list_empty(&conn->tx.queue) && fab_list_empty(&conn->msg.unexp);
}

/* Restart at once if it has operations by now. */
static void life_parked(struct tcp_conn *conn)
{
	struct tcp_life *life = fab_container(conn, struct tcp_life, conn);
	int ret = 0;

	if (!life->peer || tcp_life_is_forgettable(life)) {
		tcp_conn_down(conn, 0, 0, "the connection was idle");
		return;
	}
	peer_index_clear(life->peer, conn);
	life->dormant = fab_list_empty(&conn->tx.queue);
	if (!life->dormant)
		ret = tcp_peer_try(life->peer);
	if (ret)
		tcp_conn_down(conn, -ret, -ret, "no descriptor or memory to reopen an idle connection");
}

static const struct tcp_conn_owner life_owner = { .down = life_down, .parked = life_parked, .resumes = true };

/* The peer connects again when it has something to send. */
static void inbound_parked(struct tcp_conn *conn)
{
	tcp_conn_down(conn, 0, 0, "the connection was idle");
}

const struct tcp_conn_owner tcp_inbound_owner = { .down = life_down, .parked = inbound_parked };

bool tcp_peer_same_ctx(const struct tcp_conn *conn)
{
	const struct tcp_life *life = fab_container(conn, const struct tcp_life, conn);

	if (conn->owner != &tcp_inbound_owner)
		return true;
	return life->from == TCP_CTX_NONE || life->from == conn->ep->context.number;
}

struct tcp_life *tcp_life_new(struct tcp_peer *peer)
{
	struct tcp_peer_table *table = peer->table;
	struct tcp_life *life = calloc(1, sizeof(*life));

	if (!life)
		return NULL;
	tcp_conn_init(&life->conn, table->ep, &life_owner);
	life->conn.addr = peer->addr;
	life->conn.fi_addr = fab_av_find_under(table->ep->base.bound.av, &peer->addr, peer->key);
	life->conn.stats = fab_stats_peer_get(table->ep->base.stats, &peer->addr.sa, life->conn.fi_addr);
	tcp_conn_classify(&life->conn);
	table->stranger_cnt += life->conn.fi_addr == FI_ADDR_NOTAVAIL;
	life->table = table;
	life->peer = peer;
	fab_list_add_tail(&table->lives, &life->link);
	table->life_cnt++;
	return life;
}

void tcp_life_start(struct tcp_life *life, struct tcp_cm *cm)
{
	struct tcp_ep *ep = life->table->ep;
	int ret;

	life->pid = tcp_rdm_pid(cm);
	fab_stats_peer_name(ep->base.stats, life->conn.stats, NULL, NULL, 0, life->pid);
	life->conn.auth_key = cm->proven;
	tcp_conn_classify(&life->conn);
	life->conn.park.stays = tcp_params.firewall_addr || tcp_rdm_firewalled(cm);
	life->dormant = false;
	ret = tcp_cm_start(cm, &life->conn);
	if (!ret) {
		tcp_alive_start(ep);
		tcp_reap_start(life->table);
		return;
	}
	tcp_conn_down(&life->conn, -ret, -ret, "there was no memory or descriptor for the new connection");
}

static void peer_inserted(struct tcp_peer *peer, fi_addr_t fi_addr);

int tcp_peer_conn(struct tcp_ep *ep, fi_addr_t fi_addr, struct tcp_conn **conn)
{
	uint64_t rx_ctx = fab_av_rx_ctx(ep->base.bound.av, fi_addr);
	const union fab_sockaddr *addr;
	struct tcp_peer *peer;
	int ret = 0;

	if (fi_addr & ep->rdm.group_bits)
		return tcp_group_valid(ep, fi_addr) ? tcp_ep_conn(ep, fi_addr & ~ep->rdm.group_bits, conn) : -FI_EINVAL;
	fi_addr = fab_av_no_ctx(ep->base.bound.av, fi_addr);
	addr = fab_av_addr(ep->base.bound.av, fi_addr);
	if (!addr || rx_ctx >= TCP_CTX_MAX)
		return -FI_EINVAL;
	peer = tcp_peer_get(ep->rdm.peers, addr, fab_av_key(ep->base.bound.av, fi_addr), rx_ctx);
	if (!peer)
		return -FI_ENOMEM;
	if (!peer->life || peer->life->dormant)
		ret = tcp_peer_begin(peer);
	if (ret)
		return ret;
	if (!tcp_peer_index(peer, fi_addr, &peer->life->conn))
		return -FI_ENOMEM;
	/* of a shared vector: another process has inserted it, and no watcher was called */
	if (peer->life->conn.fi_addr == FI_ADDR_NOTAVAIL)
		peer_inserted(peer, fi_addr);
	*conn = &peer->life->conn;
	return 0;
}

/* ---- the address vector changes ---- */

/* The peer of a life was inserted as fi_addr, or removed (FI_ADDR_NOTAVAIL). */
static void life_name(struct tcp_life *life, fi_addr_t fi_addr)
{
	life->table->stranger_cnt -= life->conn.fi_addr == FI_ADDR_NOTAVAIL;
	life->table->stranger_cnt += fi_addr == FI_ADDR_NOTAVAIL;
	if (fi_addr != FI_ADDR_NOTAVAIL && !life->leave_ns)
		tcp_conn_tell_inserted(&life->conn, fi_addr, life->pid);
	tcp_msg_name_sender(&life->conn, fi_addr);
	fab_engine_no_glance(life->table->ep->base.engine);	/* a stranger may have to wait to be read */
}

/* Set the fi_addr of a peer's inbound connections. */
static void peer_name_inbound(struct tcp_peer *peer, fi_addr_t fi_addr)
{
	struct fab_list *link;

	fab_list_for_each(&peer->inbound, link)
		life_name(fab_container(link, struct tcp_life, in_link), fi_addr);
}

static void peer_inserted(struct tcp_peer *peer, fi_addr_t fi_addr)
{
	peer_name_inbound(peer, fi_addr);
	if (!peer->life)
		return;
	life_name(peer->life, fi_addr);
	if (!peer->life->dormant)
		tcp_peer_index(peer, fi_addr, &peer->life->conn);
}

static void peer_removed(struct tcp_peer *peer, fi_addr_t none)
{
	struct tcp_life *life = peer->life;

	peer_name_inbound(peer, none);
	if (!life)
		return;
	peer_index_clear(peer, &life->conn);
	life_name(life, none);
	tcp_life_leave(life);
}

/* The same for connections that leave: they may still bring messages. */
static void peers_name_leaving(struct tcp_peer_table *table, const struct fab_auth_key *key,
			       const union fab_sockaddr *addr, fi_addr_t fi_addr)
{
	struct fab_list *link;

	fab_list_for_each(&table->lives, link) {
		struct tcp_life *life = fab_container(link, struct tcp_life, link);

		if (life->leave_ns && (!key || life->conn.auth_key == key) &&
		    fab_addr_equal(&life->conn.addr.sa, &addr->sa))
			life_name(life, fi_addr);
	}
}

/* Tell the peers at addr, one for each receive context used, their new fi_addr. */
static void peers_av_changed(struct tcp_peer_table *table, const struct fab_auth_key *key,
			     const union fab_sockaddr *addr, fi_addr_t name,
			     void (*changed)(struct tcp_peer *peer, fi_addr_t name))
{
	struct tcp_ep *ep = table->ep;
	uint64_t ctx_cnt = fab_min((uint64_t) 1 << ep->rdm.rx_ctx_bits, (uint64_t) TCP_CTX_MAX);

	fab_engine_lock(ep->base.engine);
	for (uint64_t i = 0; i < ctx_cnt; i++) {
		struct tcp_peer *peer = tcp_peer_find(table, addr, key, i);

		if (peer)
			changed(peer, name);
	}
	if (!fab_list_empty(&table->leave.link))
		peers_name_leaving(table, key, addr, name);
	tcp_rx_name_orphans(ep, addr, name);
	tcp_rx_named(ep, name);
	fab_engine_unlock(ep->base.engine);
}

static void peers_av_inserted(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct tcp_peer_table *table = fab_container(watch, struct tcp_peer_table, watch);

	peers_av_changed(table, fab_av_key(table->ep->base.bound.av, fi_addr), addr, fi_addr, peer_inserted);
}

/* Continue leaving: send, then shut down; the peer's close ends it, or the deadline. */
static void life_leave_step(struct tcp_life *life)
{
	struct tcp_conn *conn = &life->conn;

	if (fab_now_ns() >= life->leave_ns) {
		tcp_conn_down(conn, 0, 0, "its address was removed from the address vector");
	} else if (!life->drained && tcp_conn_flush(conn) && conn->state == TCP_CONN_UP) {
		life->drained = true;
		fab_sock->shutdown(conn->src.fd, SHUT_WR);
	}
}

static void peers_leave_fire(struct fab_timer *timer)
{
	struct tcp_peer_table *table = fab_container(timer, struct tcp_peer_table, leave);
	struct fab_list *link, *next;
	bool more = false;

	fab_list_for_each_safe(&table->lives, link, next) {
		struct tcp_life *life = fab_container(link, struct tcp_life, link);

		if (life->leave_ns) {
			more = true;
			life_leave_step(life);
		}
	}
	if (more)
		fab_timer_start(table->ep->base.engine, timer, fab_now_ns() + LEAVE_POLL_NS);
}

void tcp_life_leave(struct tcp_life *life)
{
	struct tcp_peer_table *table = life->table;

	if (life->conn.state != TCP_CONN_UP) {
		tcp_conn_down(&life->conn, FI_ECANCELED, FI_ECANCELED,
			      "its address was removed from the address vector");
		return;
	}
	life_detach(life);
	life->leave_ns = fab_now_ns() + TCP_FLUSH_MS * MS;
	fab_timer_start(table->ep->base.engine, &table->leave, fab_now_ns());
}

static void peers_av_removed(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct tcp_peer_table *table = fab_container(watch, struct tcp_peer_table, watch);

	peers_av_changed(table, fab_av_key(table->ep->base.bound.av, fi_addr), addr, FI_ADDR_NOTAVAIL, peer_removed);
}

/* ---- open and close ---- */

static void peers_free(struct fab_defer *defer)
{
	struct tcp_peer_table *table = fab_container(defer, struct tcp_peer_table, defer);

	fab_table_fini(&table->peers);
	free(table);
}

static void peers_listener_starved(struct tcp_listener *listener)
{
	tcp_reap_shortage(fab_container(listener, struct tcp_peer_table, listener));
}

static struct tcp_peer_table *peers_new(struct tcp_ep *ep)
{
	struct tcp_peer_table *table = calloc(1, sizeof(*table));

	if (!table || fab_table_init(&table->peers)) {
		free(table);
		return NULL;
	}
	table->ep = ep;
	fab_list_init(&table->lives);
	fab_list_init(&table->asks);
	table->listener.request = tcp_peer_request;
	table->listener.starved = peers_listener_starved;
	fab_timer_init(&table->leave, peers_leave_fire);
	fab_timer_init(&table->reap, tcp_reap_fire);
	tcp_pace_init(&table->pace, ep);
	table->listener.keyring.key = ep->base.auth_key;
	table->listener.keyring.av = ep->base.bound.av->keys ? ep->base.bound.av : NULL;
	table->watch.inserted = peers_av_inserted;
	table->watch.removed = peers_av_removed;
	return table;
}

/* The socket on which the endpoint listens, or -errno. */
static int peers_listening_fd(struct tcp_ep *ep)
{
	return ep->context.sep ? tcp_sep_fd(ep) : tcp_sock_bind(&ep->base.name, &ep->base.name);
}

int tcp_peers_open(struct tcp_ep *ep)
{
	struct fab_engine *engine = ep->base.engine;
	struct tcp_peer_table *table = peers_new(ep);
	bool listens = !tcp_ep_is_tx_ctx(ep);
	int fd = -1, ret = 0;

	if (!table)
		return -FI_ENOMEM;
	if (listens)
		fd = ret = peers_listening_fd(ep);
	if (ret < 0)
		goto free_table;
	ep->rdm.peers = table;
	ep->rdm.rx_ctx_bits = ep->base.bound.av->rx_ctx_bits;
	if (ep->base.domain->attr.max_group_id)
		ep->rdm.group_bits = (UINT64_MAX >> ep->rdm.rx_ctx_bits) & ~(uint64_t) UINT32_MAX;
	/* before the first peer can connect, so that no address is missed that another thread inserts meanwhile */
	fab_av_watch(ep->base.bound.av, &table->watch);
	if (!listens)
		return 0;
	fab_engine_lock(engine);
	ret = tcp_listener_start(&table->listener, engine, fd, TCP_BACKLOG);
	fab_engine_unlock(engine);
	if (ret)
		goto unwatch;
	return 0;

unwatch:
	fab_av_unwatch(ep->base.bound.av, &table->watch);
	ep->rdm.peers = NULL;
	fab_sock_close(&fd);
free_table:
	peers_free(&table->defer);
	return ret;
}

static bool peers_drained(struct tcp_ep *ep)
{
	struct fab_list *link, *next;
	bool all = true;

	fab_list_for_each_safe(&ep->rdm.peers->lives, link, next) {
		struct tcp_life *life = fab_container(link, struct tcp_life, link);

		if (!life->drained && !tcp_conn_drained(&life->conn))
			all = false;
		else
			life->drained = true;
	}
	return all;
}

static void peer_free(struct fab_entry *entry)
{
	free(fab_container(entry, struct tcp_peer, entry));
}

void tcp_peers_close(struct tcp_ep *ep)
{
	struct fab_engine *engine = ep->base.engine;
	struct tcp_peer_table *table = ep->rdm.peers;
	struct tcp_life *life;

	if (!table)
		return;
	fab_av_unwatch(ep->base.bound.av, &table->watch);
	fab_engine_lock(engine);
	tcp_ep_drain(ep, peers_drained);
	tcp_listener_stop(&table->listener);
	tcp_ask_stop(table);
	fab_timer_stop(&table->leave);
	fab_timer_stop(&table->reap);
	fab_pace_stop(&table->pace);
	while ((life = fab_list_first(&table->lives, struct tcp_life, link)))
		tcp_conn_down(&life->conn, 0, 0, "the endpoint was closed");
	tcp_alive_stop(ep);
	fab_table_clear(&table->peers, peer_free);
	free(ep->rdm.by_addr);
	ep->rdm.by_addr = NULL;
	ep->rdm.by_addr_cnt = 0;
	ep->rdm.peers = NULL;
	table->defer.free = peers_free;
	fab_engine_defer(engine, &table->defer);
	fab_engine_unlock(engine);
}

bool tcp_peers_any(struct tcp_ep *ep, bool (*fn)(struct tcp_ep *ep, struct tcp_conn *conn, void *arg), void *arg)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(&ep->rdm.peers->lives, link, next) {
		if (fn(ep, &fab_container(link, struct tcp_life, link)->conn, arg))
			return true;
	}
	return false;
}

struct tcp_peer_counts tcp_peer_count(const struct tcp_ep *ep)
{
	struct tcp_peer_counts counts = { .up = ep->conn && ep->conn->state == TCP_CONN_UP };
	struct fab_list *link;

	if (!ep->rdm.peers)		/* NULL before the endpoint is enabled */
		return counts;
	counts.asked = ep->rdm.peers->asked;
	counts.accepted = ep->rdm.peers->accepted;
	fab_list_for_each(&ep->rdm.peers->lives, link)
		counts.up += fab_container(link, struct tcp_life, link)->conn.state == TCP_CONN_UP;
	return counts;
}
