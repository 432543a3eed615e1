/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Whether a request is the peer's. Every process on the peer's host can send a request that names the peer's port, and
 * would get the connection of a peer that lives. So the port itself is asked first: who listens there? The request
 * waits for the answer, without a limit in time: its sender may be the peer, busy with something else. If the
 * connection that it would replace ends meanwhile, the answer is not needed any more.
 *
 *   request --tcp_ask--> question to the port it names --> answer with the request's incarnation: accepted
 *                                                     \--> another incarnation, or "I am not connecting": rejected
 *                                                     \--> nobody answers there: accepted, as nobody can be asked
 *
 * Requests make us connect to others, and hold descriptors. Both have bounds, for a peer and for the table. A request
 * beyond them is rejected, and an honest sender repeats it. An answer that rejects one request is remembered for those
 * of others: whoever makes us ask all the time does not keep the peer itself waiting. Engine lock held.
 */
#include "tcp/peer/peers.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "base/clock.h"
#include "tcp/params/params.h"

#define MS		1000000ULL	/* ns */
#define ASK_MAX		16		/* questions without an answer, and requests that wait for them */
#define ASK_RATE	256		/* questions in a second */
#define SECOND_NS	(1000 * MS)
#define ASK_AGAIN_NS	(100 * MS)	/* a peer is not asked again before that */
#define ASK_LOOK_NS	(1000 * MS)	/* longest connect of a question; then the time between looks */
#define ASK_SAID_NS	(1000 * MS)	/* an answer is remembered for so long */

struct tcp_ask {
	struct fab_list link;
	struct tcp_peer_table *table;
	struct tcp_cm *claim;		/* owned: the request */
	struct tcp_request req;
	struct tcp_cm *question;	/* owned */
	struct fab_timer look;
	uint64_t begun_ns;
};

/* Free a question. Returns its request, for the caller. */
static struct tcp_cm *ask_free(struct tcp_ask *ask)
{
	struct tcp_cm *claim = ask->claim;

	fab_timer_stop(&ask->look);
	fab_list_remove(&ask->link);
	ask->table->ask_cnt--;
	tcp_cm_free(ask->question);
	free(ask);
	return claim;
}

static void ask_reject(struct tcp_ask *ask)
{
	struct tcp_peer_table *table = ask->table;
	struct tcp_cm *claim = ask_free(ask);

	tcp_request_reject(table->ep, claim);
	tcp_cm_free(claim);
}

/* Nothing speaks against the request: decide on it again. */
static void ask_accept(struct tcp_ask *ask)
{
	struct tcp_peer_table *table = ask->table;
	struct tcp_request req = ask->req;
	struct tcp_cm *claim = ask_free(ask);

	req.vouched = true;
	if (!tcp_request_is_dead(claim))
		tcp_request_handle(table, claim, &req);
	tcp_cm_free(claim);
}

/* ---- the answer ---- */

/* True if a process that says this has sent the request. */
static bool who_vouches(const struct tcp_who *said, const struct tcp_hello *claim)
{
	return claim->ext && said->incarnation == claim->incarnation && said->connects;
}

static void ask_done(struct tcp_cm *question)
{
	struct tcp_ask *ask = question->ctx;
	const struct tcp_hello *there = &question->peer;
	const struct tcp_who said = {
		.when_ns = fab_now_ns(), .incarnation = there->incarnation,
		.connects = !(there->features & TCP_EXT_WHO) || tcp_rdm_connects(question),
	};
	struct tcp_peer *peer;
	char name[FAB_ADDR_STRLEN];

	if (!there->ext || who_vouches(&said, &ask->claim->peer)) {
		ask_accept(ask);
		return;
	}
	peer = tcp_request_peer(ask->table, ask->claim, &ask->req);
	if (peer)
		peer->said = said;
	fab_addr_to_str(&ask->req.addr.sa, name, sizeof(name));
	TCP_WARN(FI_LOG_EP_CTRL, "refused a connection that claims to come from the endpoint at %s: another process "
		 "listens there, and stays connected. Does a program on that host pretend to be it?\n", name);
	ask_reject(ask);
}

/* The question has no answer. A timeout or a reset comes from a process that is busy, or flooded with connections: the
 * request may come again. */
static void ask_failed(struct tcp_cm *question, int err)
{
	if (err == FI_ETIMEDOUT || err == FI_ECONNRESET || err == EPIPE)
		ask_reject(question->ctx);
	else
		ask_accept(question->ctx);
}

static const struct tcp_cm_owner question_owner = { .done = ask_done, .fail = ask_failed };

static void ask_look(struct fab_timer *timer)
{
	struct tcp_ask *ask = fab_container(timer, struct tcp_ask, look);

	if (tcp_request_is_dead(ask->claim))
		tcp_cm_free(ask_free(ask));
	else if (ask->question->state == TCP_CM_CONNECTING ||
		 !tcp_request_needs_voucher(ask->table, ask->claim, &ask->req))
		ask_accept(ask);
	else
		fab_timer_start(ask->table->ep->base.engine, timer, fab_now_ns() + ASK_LOOK_NS);
}

/* ---- the question ---- */

static struct tcp_ask *ask_find(const struct tcp_peer *peer)
{
	struct fab_list *link;

	fab_list_for_each(&peer->table->asks, link) {
		struct tcp_ask *ask = fab_container(link, struct tcp_ask, link);

		if (fab_addr_equal(&ask->req.addr.sa, &peer->addr.sa))
			return ask;
	}
	return NULL;
}

/* True if there is room for a question: the oldest one makes room, unless it is young. */
static bool ask_has_room(struct tcp_peer_table *table, uint64_t now)
{
	struct tcp_ask *oldest = fab_list_first(&table->asks, struct tcp_ask, link);

	if (table->ask_cnt < ASK_MAX)
		return true;
	if (now - oldest->begun_ns < ASK_LOOK_NS)
		return false;
	ask_reject(oldest);
	return true;
}

/* True if this peer may be asked now; the question is counted. */
static bool ask_is_allowed(struct tcp_peer *peer, uint64_t now)
{
	struct tcp_peer_table *table = peer->table;
	struct tcp_ask *other = ask_find(peer);

	if (other && tcp_request_is_dead(other->claim))
		tcp_cm_free(ask_free(other));
	else if (other)
		return false;
	if (now - table->asked_since_ns >= SECOND_NS) {
		table->asked_since_ns = now;
		table->asked_cnt = 0;
	}
	if ((peer->asked_ns && now - peer->asked_ns < ASK_AGAIN_NS) || table->asked_cnt >= ASK_RATE ||
	    !ask_has_room(table, now))
		return false;
	table->asked_cnt++;
	peer->asked_ns = now;
	return true;
}

/* Begin to connect. 0 or -FI_E*. */
static int ask_connect(struct tcp_ask *ask, const struct tcp_peer *peer)
{
	struct tcp_ep *ep = ask->table->ep;
	struct fab_auth_key *key = peer->key ? peer->key : ep->base.auth_key;
	struct tcp_rdm_cm data = { .pid = htobe32(fab_addr_port(&ep->base.name.sa)) };
	struct tcp_cm_msg msg = { .type = TCP_CM_CONNREQ, .incarnation = ep->incarnation, .data = &data,
				  .data_len = sizeof(data),
				  .ext = tcp_rdm_ext(ep) | TCP_EXT_WHO | (key ? TCP_EXT_AUTH : 0) };

	ask->question = tcp_cm_new(ep->base.engine, &question_owner, ask);
	if (!ask->question)
		return -FI_ENOMEM;
	ask->question->keyring.key = key;
	return tcp_cm_connect(ask->question, -1, &ep->base.name, tcp_peer_target(peer), &msg);
}

void tcp_ask(struct tcp_peer *peer, struct tcp_cm *cm, const struct tcp_request *req)
{
	struct tcp_peer_table *table = peer->table;
	uint64_t now = fab_now_ns();
	struct tcp_request vouched = *req;
	struct tcp_ask *ask;

	vouched.vouched = true;
	if (peer->said.when_ns && now - peer->said.when_ns < ASK_SAID_NS && who_vouches(&peer->said, &cm->peer)) {
		tcp_request_handle(table, cm, &vouched);
		return;
	}
	ask = ask_is_allowed(peer, now) ? calloc(1, sizeof(*ask)) : NULL;
	if (!ask) {
		tcp_request_reject(table->ep, cm);
		return;
	}
	ask->table = table;
	ask->req = *req;
	ask->begun_ns = now;
	fab_timer_init(&ask->look, ask_look);
	fab_list_add_tail(&table->asks, &ask->link);
	table->ask_cnt++;
	if (!ask_connect(ask, peer))
		ask->claim = tcp_cm_pass(cm, table->ep->base.engine);
	if (ask->claim) {
		fab_timer_start(table->ep->base.engine, &ask->look, now + ASK_LOOK_NS);
		return;
	}
	ask_free(ask);
	tcp_request_reject(table->ep, cm);
}

void tcp_ask_stop(struct tcp_peer_table *table)
{
	struct tcp_ask *ask;

	while ((ask = fab_list_first(&table->asks, struct tcp_ask, link)))
		tcp_cm_free(ask_free(ask));
}

/* ---- questions of others ---- */

/* True if this end is connecting to who asks. Whoever pretends to be this end must find it doing so, and not to
 * somebody else, who may never answer. */
static bool ask_is_awaited(const struct tcp_peer_table *table, const struct tcp_cm *cm)
{
	union fab_sockaddr addr = cm->remote;
	struct tcp_rdm_cm data = { 0 };
	struct tcp_peer *peer;

	memcpy(&data, cm->data, fab_min(sizeof(data), (size_t) cm->data_len));
	fab_addr_set_port(&addr.sa, (uint16_t) be32toh(data.pid));
	peer = data.pid ? tcp_peer_find(table, &addr, tcp_request_key(table, cm), 0) : NULL;
	return peer ? peer->cm != NULL : table->connecting_cnt;
}

/* The contexts of a scalable endpoint connect for themselves, so that one of them does not know. */
void tcp_ask_answer(struct tcp_peer_table *table, struct tcp_cm *cm)
{
	struct tcp_ep *ep = table->ep;
	struct tcp_rdm_data data;
	size_t len = tcp_rdm_data(ep, &data);

	if (ask_is_awaited(table, cm))
		data.cm.features |= TCP_RDM_CONNECTS;
	tcp_cm_send(cm->sock.fd, &(struct tcp_cm_msg) { .type = TCP_CM_NACK, .incarnation = ep->incarnation,
		    .ext = ep->context.sep ? 0 : TCP_EXT_WHO, .data = &data, .data_len = len });
}
