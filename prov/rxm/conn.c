/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections of the provider below: how we or a peer make them, and how they end. Engine lock held.
 *
 *   CONNECTING (fi_connect) --FI_CONNECTED--> UP --FI_SHUTDOWN, error--> DOWN --completions read--> freed
 *   ACCEPTING  (fi_accept)  --FI_CONNECTED--^          any error, deadline --^
 *
 * FI_SHUTDOWN may be read before the completions of messages that the peer sent earlier. So the connection stays
 * (poller->ending) until the completion queue has been read until it was empty.
 *
 * Both ends may connect at once. The end with the higher address wins: it refuses the other's request; the other end
 * drops its own attempt, and accepts. An end that is refused because there is a connection already, or one is being
 * made, tries again until its deadline: the peer has not seen the end of the old connection yet, or is about to connect
 * itself. The same holds for an attempt that is reset, or that times out where the provider below does not wait for a
 * busy peer. Operations that are queued for the peer wait meanwhile.
 *
 * A request of another process at the address of a peer is that of a peer that was restarted, or of somebody who
 * pretends to be it: every process on its host can name its port. While the connection is up, the request is refused,
 * and this end connects to the address itself, beside that connection: an inquiry. A peer that has its end refuses it.
 * One that was restarted, or has lost its end, accepts it, and it takes the place of the connection. (A connection with
 * an upstream peer gives way at once.)
 */
#include "rxm/rxm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/sock.h"
#include "common/net/net.h"

#define MS		1000000ULL	/* ns */
#define CANNOT_ACCEPT	"it cannot be accepted"
#define INQUIRIES_MAX	16		/* of an endpoint at a time */
#define INQUIRE_NS	(100 * MS)	/* from one inquiry at a peer to the next */

/* ---- open and end ---- */

static void conn_free(struct rxm_conn *conn)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(&conn->flying)))
		rxm_tx_free(conn->ep, fab_container(link, struct rxm_tx, link));
	fab_list_remove(&conn->link);
	if (conn->shares) {
		rxm_srx_return(conn);
		conn->ep->poller->conn_cnt--;
	}
	rxm_chunk_free(conn->rx_mem);
	free(conn->rx);
	free(conn->asked);
	free(conn);
}

void rxm_conn_reap(struct rxm_poller *poller)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(&poller->gone, link, next)
		conn_free(fab_container(link, struct rxm_conn, link));
}

/* A connection stops counting as one that is being made. Does nothing if it is UP. */
static void made(struct rxm_conn *conn)
{
	struct rxm_ep *ep = conn->ep;

	if (conn->state == RXM_CONN_UP)
		return;
	if (conn->state == RXM_CONN_CONNECTING && conn->peer->inquiry != conn)
		fab_pace_leave(&ep->pace, &conn->peer->turn);
	ep->poller->making--;
	if (--ep->making)
		return;
	fab_timer_stop(&ep->timer);
	ep->timer_runs = false;
}

/* The connection is being made, or is up: tell the page of the process. */
static void tell(struct rxm_conn *conn, enum fi_stats_conn state)
{
	fab_stats_peer_conn(conn->ep->base.stats, conn->stats, state, FI_STATS_CARRIER_BELOW);
}

void rxm_conn_tell_again(struct rxm_conn *conn)
{
	struct fi_stats_peer *stats = conn->stats = conn->peer->stats;

	if (conn->state != RXM_CONN_UP || stats == &conn->ep->base.stats->rest)
		return;
	fab_stats_peer_name(conn->ep->base.stats, stats, NULL, NULL, conn->peer_id, 0);
	stats->conn = FI_STATS_CONN_UP;		/* which it was before: no event */
	stats->carrier = FI_STATS_CARRIER_BELOW;
}

/* The same of a connection that has ended. err is a positive FI_E*. */
static void tell_end(struct rxm_conn *conn, bool was_up, int err)
{
	bool lost = was_up && err != FI_ECANCELED;

	conn->stats->losses += lost;
	for (int kind = FI_STATS_PEER_KEPT; kind < FI_STATS_PEER_KINDS; kind++)
		fab_stats_pending(&conn->stats->pending[kind], NULL);
	if (was_up)
		fab_stats_event(conn->ep->base.stats, conn->stats, lost ? FI_STATS_EV_LOST : FI_STATS_EV_ENDED,
				lost ? (uint64_t) err : 0);
	tell(conn, FI_STATS_CONN_DOWN);
}

/* The peer's inquiry has ended, or is an inquiry no more. */
static void inquiry_leave(struct rxm_peer *peer)
{
	peer->inquiry = NULL;
	peer->ep->inquiry_cnt--;
}

void rxm_conn_set_stranger(struct rxm_conn *conn, bool stranger)
{
	if (conn->stranger == stranger)
		return;
	conn->ep->stranger_cnt += stranger - conn->stranger;
	conn->ep->poller->stranger_cnt += stranger - conn->stranger;
	conn->ep->poller->watch |= stranger;
	conn->stranger = stranger;
	/* providers that know of no strangers refuse it: all peers have the same share there */
	if (conn->below)
		fi_setopt(&conn->below->fid, FI_OPT_ENDPOINT, FAB_OPT_STRANGER, &stranger, sizeof(stranger));
}

void rxm_conn_end(struct rxm_conn *conn, int err, const char *why)
{
	struct rxm_peer *peer = conn->peer;
	struct rxm_ep *ep = conn->ep;
	char text[RXM_WHY];
	bool was_up;

	rxm_rx_last_words(conn);
	if (conn->state == RXM_CONN_DOWN)
		return;
	was_up = conn->state == RXM_CONN_UP;
	made(conn);
	if (ep->poller->ending == conn)
		ep->poller->ending = NULL;
	conn->state = RXM_CONN_DOWN;
	fi_close(&conn->below->fid);
	conn->below = NULL;
	fab_list_remove(&conn->stuck);
	fab_list_remove(&conn->link);
	fab_list_add_tail(&ep->poller->gone, &conn->link);
	ep->conn_cnt--;
	rxm_conn_set_stranger(conn, false);
	if (peer->conn == conn) {
		peer->conn = NULL;
		tell_end(conn, was_up, err);
	}
	if (peer->inbound == conn)
		peer->inbound = NULL;
	if (peer->inquiry == conn)
		inquiry_leave(peer);
	rxm_peer_why(peer, why, NULL, text);
	rxm_tx_fail_all(conn, err, text);
	rxm_rx_fail_all(conn, err, text);
	if (conn->shares)
		rxm_srx_return(conn);
	conn->peer = NULL;
}

/* True if another attempt may succeed after one has failed with err: the peer is busy or was restarted, or this end was
 * accepting, and can connect instead. */
static bool worth_retry(const struct rxm_conn *conn, int err)
{
	if (err == FI_EPROTO || err == FI_ENOMEM)
		return false;
	return conn->state == RXM_CONN_ACCEPTING ||
	       (conn->state == RXM_CONN_CONNECTING &&
		(err == FI_ECONNRESET || (err == FI_ETIMEDOUT && !conn->ep->domain->patient)));
}

static void conn_fail(struct rxm_conn *conn, int err, const char *why, bool for_good)
{
	struct rxm_peer *peer = conn->peer;
	char text[FAB_ADDR_STRLEN];
	bool again;

	/* these may end the connection */
	rxm_rx_last_words(conn);
	if (conn->state == RXM_CONN_DOWN)
		return;
	if (peer->inquiry == conn) {
		rxm_conn_end(conn, err, why);
		rxm_peer_put(peer);
		return;
	}
	again = !for_good && worth_retry(conn, err);
	fab_addr_to_str(&peer->addr.sa, text, sizeof(text));
	RXM_INFO(FI_LOG_EP_CTRL, "the connection with %s ends: %s (%s)\n", text, why, fi_strerror(err));
	rxm_conn_end(conn, err, why);
	if (again)
		rxm_peer_again(peer, err, why);
	else
		rxm_peer_lost(peer, err, why);
}

void rxm_conn_fail(struct rxm_conn *conn, int err, const char *why)
{
	conn_fail(conn, err, why, false);
}

void rxm_conn_broken(struct rxm_conn *conn, const char *what)
{
	char text[FAB_ADDR_STRLEN];

	if (conn->state == RXM_CONN_DOWN)
		return;
	fab_addr_to_str(&conn->peer->addr.sa, text, sizeof(text));
	RXM_WARN(FI_LOG_EP_DATA, "%s broke the protocol of " RXM_LAYER ": %s; its connection is closed\n", text, what);
	rxm_conn_fail(conn, FI_EPROTO, "the peer broke the protocol");
}

static void conn_init(struct rxm_conn *conn, struct rxm_peer *peer)
{
	conn->ep = peer->ep;
	conn->peer = peer;
	conn->stats = peer->stats;
	fab_list_init(&conn->txq);
	fab_list_init(&conn->ctlq);
	fab_list_init(&conn->answerq);
	fab_list_init(&conn->flying);
	fab_list_init(&conn->waiting);
	fab_list_init(&conn->kept);
	fab_list_init(&conn->parts);
	fab_list_init(&conn->stuck);
	fab_list_init(&conn->posted);
	fab_list_init(&conn->held);
	conn->deadline_ns = fab_now_ns() + (uint64_t) rxm_params.connect_timeout_ms * MS;
}

/* Open the endpoint below, with its receives. 0, or -FI_E* of *step; the endpoint is there if conn->below is. */
static int open_below(struct rxm_conn *conn, struct fi_info *info, const char **step)
{
	struct rxm_ep *ep = conn->ep;
	struct rxm_poller *poller = ep->poller;
	int ret;

	info->tx_attr->tclass = ep->base.info->tx_attr->tclass;
	if (info->tx_attr->tclass == FI_TC_UNSPEC)
		info->tx_attr->tclass = ep->base.domain->attr.tclass;
	info->ep_attr->rx_ctx_cnt = poller->srx ? FI_SHARED_CONTEXT : 1;
	*step = "fi_endpoint";
	ret = fi_endpoint(ep->domain->below, info, &conn->below, conn);
	if (ret)
		return ret;
	*step = "fi_ep_bind";
	ret = fi_ep_bind(conn->below, &poller->eq->fid, 0);
	if (!ret)
		ret = fi_ep_bind(conn->below, &poller->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret && poller->srx)
		ret = fi_ep_bind(conn->below, &poller->srx->fid, 0);
	if (ret)
		return ret;
	if (poller->srx) {
		conn->shares = true;
		poller->conn_cnt++;
	}
	*step = "fi_enable";
	ret = fi_enable(conn->below);
	if (ret)
		return ret;
	*step = "fi_recv";
	return rxm_rx_post_all(conn);
}

/* Undo open_below(), which has failed, and free the connection: later, where there is an endpoint below, since what was
 * posted there may have completed already. */
static void conn_give_up(struct rxm_conn *conn)
{
	if (!conn->below) {
		free(conn);
		return;
	}
	fi_close(&conn->below->fid);
	conn->below = NULL;
	conn->state = RXM_CONN_DOWN;
	fab_list_add_tail(&conn->ep->poller->gone, &conn->link);
}

/* Make a connection: an enabled endpoint below, opened with info and the traffic class of the peer's endpoint, and
 * posted buffers. NULL on failure, which is logged; the error is in *err. */
static struct rxm_conn *conn_new(struct rxm_peer *peer, struct fi_info *info, int *err)
{
	struct rxm_ep *ep = peer->ep;
	struct rxm_conn *conn = calloc(1, sizeof(*conn));
	const char *step;

	*err = -FI_ENOMEM;
	if (!conn || ep->poller->eq_lost || ep->poller->lost) {
		free(conn);
		return NULL;
	}
	conn_init(conn, peer);
	*err = open_below(conn, info, &step);
	if (*err) {
		RXM_WARN(FI_LOG_EP_CTRL, "%s on the endpoint of the provider below, for a connection: %s\n", step,
			 fi_strerror(-*err));
		conn_give_up(conn);
		return NULL;
	}
	fab_list_add_tail(&ep->conns, &conn->link);
	ep->conn_cnt++;
	rxm_conn_set_stranger(conn, peer->fi_addr == FI_ADDR_NOTAVAIL);
	ep->making++;
	ep->poller->making++;
	rxm_conn_watch(ep);
	return conn;
}

static void conn_up(struct rxm_conn *conn)
{
	struct rxm_peer *peer = conn->peer;

	made(conn);
	conn->state = RXM_CONN_UP;
	for (int i = 0; i < RXM_LOADS; i++)
		conn->credit[i].left = conn->window;
	if (peer->conn == conn) {
		fab_stats_peer_name(conn->ep->base.stats, conn->stats, NULL, NULL, conn->peer_id, 0);
		tell(conn, FI_STATS_CONN_UP);
		peer->tries = 0;
		peer->asked = peer->untold = false;
		if (!conn->coll)
			rxm_coll_purge(peer);
		rxm_tx_adopt(conn, &peer->txq);
	}
	if (conn->state == RXM_CONN_UP) {
		rxm_coll_met(conn);
		rxm_tx_run(conn);
	}
	rxm_rx_resume(conn);
}

/* ---- additions to the protocol ---- */

static uint8_t own_ext(const struct rxm_ep *ep)
{
	return RXM_EXT | (ep->has_coll ? RXM_EXT_COLL : 0);
}

static bool is_ext(uint32_t ext)
{
	return (ext & ~(uint32_t) RXM_EXT_COLL) == RXM_EXT;
}

/* The mark of additions in a request. 0: the peer is upstream's. Older builds of ours have it in slot. */
static uint8_t req_ext(const struct rxm_cm_req *req)
{
	return (uint8_t) (req->slot ? req->slot : req->rx_size >> RXM_EXT_SHIFT);
}

/* True if the request is for a further connection with an upstream peer, and not for one with an older build of
 * ours. */
static bool is_further(const struct rxm_peer *peer, const struct rxm_cm_req *req)
{
	const struct rxm_conn *conn = peer->conn;
	bool upstream = conn && conn->state != RXM_CONN_CONNECTING && !conn->ext && conn->peer_id == req->conn_id;

	return req->slot && (upstream || !is_ext(req->slot));
}

/* ---- active side ---- */

/* Make the info of an endpoint below, from this endpoint's address to dest. NULL: no memory. */
static struct fi_info *info_below(const struct rxm_ep *ep, const union fab_any_addr *dest)
{
	struct fi_info *info = fi_dupinfo(ep->domain->below_info);
	union fab_any_addr src;

	if (!info)
		return NULL;
	fab_addr_expand(&ep->addr, &src);
	fab_addr_set_port(&src.sa, 0);
	free(info->src_addr);
	free(info->dest_addr);
	info->src_addr = info->dest_addr = NULL;
	info->src_addrlen = info->dest_addrlen = 0;
	if (!fab_name_set(&info->src_addr, &info->src_addrlen, &src) &&
	    !fab_name_set(&info->dest_addr, &info->dest_addrlen, dest))
		return info;
	fi_freeinfo(info);
	return NULL;
}

/* Connect to the peer. *place is set to the connection. 0 or -FI_E*. */
static int conn_begin(struct rxm_peer *peer, struct rxm_conn **place)
{
	struct rxm_ep *ep = peer->ep;
	struct rxm_cm_req req = {
		.version = RXM_CM_VERSION, .endian = RXM_ENDIAN, .ctrl_version = RXM_CTRL_VERSION,
		.op_version = RXM_CM_OP_VERSION, .port = fab_addr_port(&ep->addr.sa), .flow_ctrl = 2,
		.eager_limit = (uint32_t) rxm_params.buffer_size,
		.rx_size = (uint32_t) rxm_params.conn_rx | (uint32_t) own_ext(ep) << RXM_EXT_SHIFT,
		.conn_id = ep->incarnation,
	};
	union fab_any_addr to;
	struct fi_info *info;
	struct rxm_conn *conn;
	int ret = -FI_ENOMEM;

	fab_addr_expand(&peer->addr, &to);
	info = info_below(ep, &to);
	conn = info ? conn_new(peer, info, &ret) : NULL;
	fi_freeinfo(info);
	if (!conn)
		return ret;
	conn->state = RXM_CONN_CONNECTING;
	*place = conn;
	ep->inquiry_cnt += place == &peer->inquiry;
	if (peer->conn == conn)
		tell(conn, FI_STATS_CONN_CONNECTING);
	ret = fi_connect(conn->below, &to, &req, sizeof(req));
	if (ret)
		rxm_conn_end(conn, -ret, "cannot connect");
	return ret;
}

int rxm_conn_start(struct rxm_peer *peer)
{
	return conn_begin(peer, &peer->conn);
}

/* ---- inquiries ---- */

/* Find out whether the peer still has its end of the connection. Each inquiry holds what a connection holds, and
 * whoever can name the peer's port makes us do so, so they are bounded. */
static void inquire(struct rxm_peer *peer)
{
	struct rxm_ep *ep = peer->ep;
	uint64_t now = fab_now_ns();

	if (peer->inquiry || ep->inquiry_cnt == INQUIRIES_MAX ||
	    (peer->inquired_ns && now - peer->inquired_ns < INQUIRE_NS))
		return;
	peer->inquired_ns = now;
	conn_begin(peer, &peer->inquiry);
}

/* The peer has accepted an inquiry: it has lost its end of the connection, or is another process. */
static void inquiry_takes_over(struct rxm_conn *conn)
{
	struct rxm_peer *peer = conn->peer;
	struct rxm_conn *old = peer->conn;

	if (old && old->state == RXM_CONN_CONNECTING)
		rxm_conn_end(old, FI_ECONNABORTED, "the peer has accepted another connection");
	else if (old)
		rxm_conn_fail(old, FI_ECONNRESET, "the peer has restarted");
	if (conn->state == RXM_CONN_DOWN)
		return;
	inquiry_leave(peer);
	peer->conn = conn;
}

/* The peer refuses an inquiry: it has its end, and somebody else has sent the request. */
static void inquiry_is_refused(const struct rxm_conn *conn)
{
	char text[FAB_ADDR_STRLEN];

	fab_addr_to_str(&conn->peer->addr.sa, text, sizeof(text));
	RXM_WARN(FI_LOG_EP_CTRL, "refused a connection that claims to come from the endpoint at %s, which is connected "
		 "and does not know of it. Does a program on that host pretend to be it?\n", text);
}

/* ---- passive side ---- */

static void conn_refuse(struct rxm_ep *ep, const struct fi_info *info, enum rxm_cm_reason reason)
{
	const struct rxm_cm_rej rej = { .version = RXM_CM_VERSION, .reason = (uint8_t) reason };

	fi_reject(ep->pep, info->handle, &rej, sizeof(rej));
}

static int compare_addr(const union fab_sockaddr *a, const union fab_sockaddr *b)
{
	int diff;

	if (a->sa.sa_family == AF_INET)
		diff = memcmp(&a->sin.sin_addr, &b->sin.sin_addr, sizeof(a->sin.sin_addr));
	else
		diff = memcmp(&a->sin6.sin6_addr, &b->sin6.sin6_addr, sizeof(a->sin6.sin6_addr));
	return diff ? diff : (int) fab_addr_port(&a->sa) - (int) fab_addr_port(&b->sa);
}

/* The answer to a connection request. */
enum verdict {
	ACCEPT,
	ACCEPT_INBOUND,			/* the request came from this endpoint itself */
	REFUSE,
	INQUIRE,			/* the same, and find out whether the peer was restarted */
};

static enum verdict conn_decide(struct rxm_peer *peer, const union fab_sockaddr *own, const struct rxm_cm_req *req)
{
	struct rxm_conn *conn = peer->conn;
	int order = compare_addr(&peer->addr, own);

	if (!order)
		return req->conn_id == peer->ep->incarnation && !peer->inbound ? ACCEPT_INBOUND : REFUSE;
	if (!conn)
		return ACCEPT;
	if (conn->state == RXM_CONN_CONNECTING) {
		if (order < 0)
			return REFUSE;
		rxm_conn_end(conn, FI_ECONNABORTED, "the peer connects");
		return ACCEPT;
	}
	if (conn->peer_id != req->conn_id && conn->state == RXM_CONN_UP && conn->ext)
		return INQUIRE;
	/* the peer was restarted: the connection with its previous process is dead */
	if (conn->peer_id != req->conn_id) {
		rxm_conn_fail(conn, FI_ECONNRESET, "the peer has restarted");
		return ACCEPT;
	}
	return REFUSE;
}

static bool read_req(struct rxm_ep *ep, const struct fi_info *info, const void *data, size_t len,
		     struct rxm_cm_req *req, union fab_sockaddr *from)
{
	char text[FAB_ADDR_STRLEN] = "?";
	union fab_any_addr full;

	memset(&full, 0, sizeof(full));
	if (info->dest_addr && info->dest_addrlen <= sizeof(full))
		memcpy(&full, info->dest_addr, info->dest_addrlen);
	if (fab_any_addr_len(&full.sa))
		fab_addr_to_str(&full.sa, text, sizeof(text));
	fab_addr_condense(&full, from);
	if (from->sa.sa_family != ep->addr.sa.sa_family || len < sizeof(*req)) {
		RXM_WARN(FI_LOG_EP_CTRL, "a request from %s with %zu bytes is not one of " RXM_LAYER
			 "; it is refused: open the same provider at both ends\n", text, len);
		return false;
	}
	memcpy(req, data, sizeof(*req));
	fab_addr_set_port(&from->sa, req->port);
	if (req->version != RXM_CM_VERSION || req->endian != RXM_ENDIAN || req->ctrl_version != RXM_CTRL_VERSION ||
	    !req->port) {
		RXM_WARN(FI_LOG_EP_CTRL, "a request from %s has version %u.%u and byte order %u, this end has %u.%u "
			 "and %u; it is refused\n", text, req->version, req->ctrl_version, req->endian, RXM_CM_VERSION,
			 RXM_CTRL_VERSION, RXM_ENDIAN);
		return false;
	}
	if (req->eager_limit != rxm_params.buffer_size) {
		RXM_WARN(FI_LOG_EP_CTRL, "a request from %s has packets of %u bytes, this end %zu: it is refused; set "
			 "FI_OFI_RXM_BUFFER_SIZE to the same value at both ends\n", text, req->eager_limit,
			 rxm_params.buffer_size);
		return false;
	}
	return true;
}

static void set_window(struct rxm_conn *conn, uint8_t ext, uint32_t rx_size)
{
	conn->ext = is_ext(ext) && rx_size >= 16;
	conn->coll = conn->ext && conn->ep->has_coll && (ext & RXM_EXT_COLL);
	conn->window = conn->ext ? RXM_WINDOW(fab_min(rx_size, UINT32_C(65536))) : 0;
}

/* Accept a request. 0, or -FI_E* if the request was refused or has ended. */
static int accept_from(struct rxm_peer *peer, struct fi_info *info, const struct rxm_cm_req *req, enum verdict verdict)
{
	const struct rxm_cm_rsp rsp = {
		.conn_id = peer->ep->incarnation, .rx_size = (uint32_t) rxm_params.conn_rx, .flow_ctrl = 2,
		.ext = is_ext(req_ext(req)) ? own_ext(peer->ep) : 0,
	};
	struct rxm_conn *conn;
	int ret;

	conn = conn_new(peer, info, &ret);
	if (!conn) {
		conn_refuse(peer->ep, info, RXM_REJECT_UNSPEC);
		return ret;
	}
	conn->state = RXM_CONN_ACCEPTING;
	conn->peer_id = req->conn_id;
	set_window(conn, req_ext(req), req->rx_size & ((1u << RXM_EXT_SHIFT) - 1));
	if (verdict == ACCEPT_INBOUND)
		peer->inbound = conn;
	else
		peer->conn = conn;
	if (peer->conn == conn)
		tell(conn, FI_STATS_CONN_CONNECTING);
	ret = fi_accept(conn->below, &rsp, sizeof(rsp));
	if (ret)
		rxm_conn_end(conn, -ret, CANNOT_ACCEPT);
	return ret;
}

/* True if the peer is a stranger, and strangers have all that they may have together. It repeats its request. */
static bool is_turned_away(const struct rxm_peer *peer)
{
	const struct rxm_ep *ep = peer->ep;

	if (peer->fi_addr != FI_ADDR_NOTAVAIL || !fab_list_empty(&peer->txq))
		return false;
	if (ep->stranger_len < rxm_params.stranger_max && ep->stranger_cnt < rxm_params.stranger_conn &&
	    (!ep->domain->has_files || ep->conn_cnt < fab_file_limit() / 8 * 5))
		return false;
	peer->ep->refused_cnt++;
	RXM_WARN(FI_LOG_EP_CTRL, "%u peers that are in no address vector are connected, and %zu bytes of messages of "
		 "such peers wait for receives; further ones have to wait. Limits are FI_OFI_RXM_STRANGER_CONN, "
		 "FI_OFI_RXM_STRANGER_MAX, and over tcp five eighths of ulimit -n\n", ep->stranger_cnt,
		 ep->stranger_len);
	return true;
}

/* False: it is that of a stranger, or of somebody who is refused. */
static bool request(struct rxm_ep *ep, struct fi_info *info, const void *data, size_t len)
{
	struct rxm_peer *peer;
	union fab_sockaddr from, own = ep->addr;
	enum verdict verdict;
	struct rxm_cm_req req;
	bool known;
	int ret = 0;

	if (ep->closing || !read_req(ep, info, data, len, &req, &from)) {
		conn_refuse(ep, info, RXM_REJECT_REFUSED);
		return false;
	}
	/* the local address to which the peer connected */
	if (fab_addr_is_any(&own.sa) && info->src_addr && info->src_addrlen == fab_addr_len(&own.sa)) {
		memcpy(&own, info->src_addr, info->src_addrlen);
		fab_addr_set_port(&own.sa, fab_addr_port(&ep->addr.sa));
	}
	peer = rxm_peer_of(ep, &from);
	if (peer && is_further(peer, &req)) {
		conn_refuse(ep, info, RXM_REJECT_REFUSED);
		rxm_peer_put(peer);
		return false;
	}
	verdict = peer ? conn_decide(peer, &own, &req) : REFUSE;
	/* a peer in no address vector was freed together with the connection of its previous process */
	peer = peer ? rxm_peer_of(ep, &from) : NULL;
	if (!peer) {
		conn_refuse(ep, info, RXM_REJECT_UNSPEC);
		return false;
	}
	if (verdict == ACCEPT && is_turned_away(peer))
		verdict = REFUSE;
	if (verdict == REFUSE || verdict == INQUIRE)
		conn_refuse(ep, info, RXM_REJECT_ALREADY);
	else
		ret = accept_from(peer, info, &req, verdict);
	if (verdict == INQUIRE)
		inquire(peer);		/* behind the refusal: a peer that is refused accepts */
	known = peer->fi_addr != FI_ADDR_NOTAVAIL && (verdict == ACCEPT || verdict == ACCEPT_INBOUND);
	/* this end's own attempt may have been dropped in favour of the request */
	if (ret)
		rxm_peer_again(peer, -ret, CANNOT_ACCEPT);
	else
		rxm_peer_put(peer);
	return known;
}

/* ---- events ---- */

/* True if an accepted connection ended before its FI_CONNECTED was read, because the peer had given up. */
static bool over_already(const struct rxm_conn *conn)
{
	union fab_sockaddr addr;
	size_t len = sizeof(addr);

	return conn->state == RXM_CONN_ACCEPTING && fi_getpeer(conn->below, &addr, &len) == -FI_ENOTCONN;
}

static void connected(struct rxm_conn *conn, const void *data, size_t len)
{
	static const char other_kind[] = "it answers as another kind of endpoint than one of " RXM_LAYER ": open the "
					 "same provider at both ends";
	char text[RXM_WHY];
	struct rxm_cm_rsp rsp;

	if (conn->state == RXM_CONN_CONNECTING) {
		if (len < sizeof(rsp)) {
			rxm_peer_why(conn->peer, other_kind, NULL, text);
			RXM_WARN(FI_LOG_EP_CTRL, "no connection: %s\n", text);
			rxm_conn_fail(conn, FI_EOPNOTSUPP, other_kind);
			return;
		}
		memcpy(&rsp, data, sizeof(rsp));
		conn->peer_id = rsp.conn_id;
		set_window(conn, rsp.ext, rsp.rx_size);
	}
	if (over_already(conn))
		rxm_conn_fail(conn, FI_ECONNRESET, "it ended as soon as it was established");
	if (conn->state == RXM_CONN_CONNECTING && conn->peer->inquiry == conn)
		inquiry_takes_over(conn);
	if (conn->state != RXM_CONN_DOWN && conn->state != RXM_CONN_UP)
		conn_up(conn);
}

/* Events can no longer be read. No connection could be made any more, which a program that only receives would not
 * learn. */
static void lose_events(struct rxm_poller *poller)
{
	poller->eq_lost = true;
	rxm_poller_lose(poller, "event", FI_EOVERRUN);
	fab_source_mod(&poller->eq_src, 0);
}

static void ends(struct rxm_poller *poller, struct rxm_conn *conn, int err, const char *why)
{
	if (conn->state == RXM_CONN_DOWN)
		return;
	poller->ending = conn;
	poller->ending_err = err;
	snprintf(poller->ending_why, sizeof(poller->ending_why), "%s", why);
}

void rxm_conn_ended(struct rxm_poller *poller)
{
	rxm_conn_fail(poller->ending, poller->ending_err, poller->ending_why);
}

static void conn_failed(struct rxm_poller *poller)
{
	uint8_t data[256];
	char said[RXM_WHY - 40], why[RXM_WHY];
	struct fi_eq_err_entry entry = { .err_data = data, .err_data_size = sizeof(data) };
	const struct rxm_cm_rej *rej;
	struct rxm_conn *conn;
	struct rxm_peer *peer;

	if (fi_eq_readerr(poller->eq, &entry, 0) < 0)
		return;
	/* this entry stays in the queue and blocks all entries after it */
	if (entry.err == FI_EOVERRUN)
		lose_events(poller);
	if (!entry.fid || entry.fid->fclass != FI_CLASS_EP)
		return;
	conn = entry.fid->context;
	rej = entry.err_data;
	peer = conn->peer;
	if (conn->state == RXM_CONN_CONNECTING && entry.err == FI_ECONNREFUSED && entry.err_data_size >= sizeof(*rej) &&
	    rej->version == RXM_CM_VERSION && rej->reason == RXM_REJECT_ALREADY) {
		if (peer->inquiry == conn)
			inquiry_is_refused(conn);
		rxm_conn_end(conn, FI_EAGAIN, "the peer connects, or has not seen the end of an older connection yet");
		rxm_peer_again(peer, FI_ETIMEDOUT, "it refuses, because it believes that it is connected");
		return;
	}
	snprintf(why, sizeof(why),
		 conn->state == RXM_CONN_UP ? "the connection was lost: %s" : "cannot connect: %s",
		 fi_eq_strerror(poller->eq, entry.prov_errno, entry.err_data, said, sizeof(said)));
	if (conn->state == RXM_CONN_UP)
		ends(poller, conn, entry.err, why);
	else
		rxm_conn_fail(conn, entry.err, why);
}

bool rxm_conn_event(struct rxm_poller *poller)
{
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + 256];
	} entry;
	uint64_t begun;
	void *owner;
	uint32_t event;
	bool known;
	ssize_t ret;

	if (poller->eq_lost || poller->ending)
		return false;
	ret = fi_eq_read(poller->eq, &event, &entry, sizeof(entry), 0);
	if (ret == -FI_EAVAIL) {
		conn_failed(poller);
		return true;
	}
	if (ret < (ssize_t) sizeof(entry.cm))
		return false;
	owner = entry.cm.fid->context;
	switch (event) {
	case FI_CONNREQ:
		begun = fab_now_ns();
		known = request(owner, entry.cm.info, entry.cm.data, (size_t) ret - sizeof(entry.cm));
		fi_freeinfo(entry.cm.info);
		if (!known)
			rxm_poller_stranger_asked(poller, fab_now_ns() - begun);
		break;
	case FI_CONNECTED:
		connected(owner, entry.cm.data, (size_t) ret - sizeof(entry.cm));
		break;
	case FI_SHUTDOWN:
		ends(poller, owner, FI_ECONNRESET, "the peer has closed the connection");
		break;
	default:
		break;
	}
	return true;
}

/* ---- deadlines ---- */

static void check_deadlines(struct fab_timer *timer)
{
	struct rxm_ep *ep = fab_container(timer, struct rxm_ep, timer);
	struct fab_list *link, *next;
	uint64_t now = fab_now_ns();
	bool open = false;

	ep->timer_runs = false;
	rxm_poller_run(ep->poller);
	fab_list_for_each_safe(&ep->conns, link, next) {
		struct rxm_conn *conn = fab_container(link, struct rxm_conn, link);

		if (conn->state == RXM_CONN_UP)
			continue;
		if (now >= conn->deadline_ns) {
			conn_fail(conn, FI_ETIMEDOUT,
			     "the connection was not established in time (FI_OFI_RXM_CONNECT_TIMEOUT)", true);
			next = ep->conns.next;
			continue;
		}
		open = true;
	}
	if (open)
		rxm_conn_watch(ep);
}

void rxm_conn_watch(struct rxm_ep *ep)
{
	if (ep->timer_runs)
		return;
	ep->timer_runs = true;
	ep->timer.fire = check_deadlines;
	fab_timer_start(ep->base.engine, &ep->timer, fab_now_ns() + 100 * MS);
}
