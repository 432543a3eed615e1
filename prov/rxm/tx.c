/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Packets and RMA operations that are sent, from their making to their end. Engine lock held.
 *
 *   made -> peer->txq, until there is a connection -> conn->txq, answerq or ctlq -> flying: the provider below has it
 *        -> waiting, if the peer has to answer -> done() and free
 *
 * An operation that is injected without a completion leaves at once or not at all (rxm_tx_submit_now()); it is never
 * queued.
 *
 * txq keeps the order of the application. A packet of it leaves when the peer has given credit for it (if the peer
 * knows credits) and, if it wants an answer, when a slot for requests is free. Answers are queued in answerq and have
 * credit of their own, so that they never wait for requests that wait for them. Operations that need no credit are
 * queued in ctlq: RMA that serves a request of the peer, and packets of credit.
 */
#include "rxm/rxm.h"

#include <string.h>

/* Parts of rxm_tx_submit() on the path of every message. */
#define INLINE static inline __attribute__((always_inline))
#define SLOT_BITS	16		/* slot bits of a request number; the other bits count the uses of the slot */

/* ---- entries ---- */

struct rxm_tx *rxm_tx_new(struct rxm_ep *ep, enum rxm_tx_what what)
{
	struct rxm_tx *tx = fab_pool_get(&ep->tx_pool);

	if (!tx)
		return NULL;
	memset(&tx->conn, 0, offsetof(struct rxm_tx, slot) - offsetof(struct rxm_tx, conn));
	tx->ep = ep;
	tx->ctx.kind = RXM_CTX_TX;
	tx->what = what;
	fab_list_init(&tx->link);
	return tx;
}

bool rxm_tx_packet(struct rxm_ep *ep, struct rxm_tx *tx, enum rxm_type type, enum rxm_op op, size_t len)
{
	struct rxm_bufs *bufs = len <= RXM_SMALL ? &ep->small : &ep->big;

	tx->buf = rxm_buf_get(bufs);
	if (!tx->buf)
		return false;
	tx->bufs = bufs;
	tx->pkt_len = sizeof(struct rxm_pkt) + len;
	tx->buf->pkt.ctrl = (struct rxm_ctrl_hdr) { .version = RXM_CTRL_VERSION, .type = type };
	tx->buf->pkt.op = (struct rxm_op_hdr) { .version = RXM_OP_VERSION, .op = op };
	return true;
}

/* Free an entry, but not those that were to follow it. */
INLINE void tx_free(struct rxm_ep *ep, struct rxm_tx *tx)
{
	if (__builtin_expect(tx->pin_cnt || tx->fetching, 0))
		rxm_tx_unpin(ep, tx);
	if (tx->buf)
		rxm_buf_put(tx->bufs, tx->buf);
	if (tx->hold)
		rxm_buf_put(tx->hold_bufs, tx->hold);
	if (tx->control && tx->conn)
		tx->conn->ctl_cnt--;
	fab_pool_put(&ep->tx_pool, tx);
}

void rxm_tx_free(struct rxm_ep *ep, struct rxm_tx *tx)
{
	if (tx->then)
		rxm_tx_free(ep, tx->then);
	tx_free(ep, tx);
}

int rxm_tx_local(struct rxm_ep *ep, struct rxm_tx *tx, const struct iovec *iov, void **desc, size_t cnt,
		 uint64_t access)
{
	tx->iov_cnt = 0;
	for (size_t i = 0; i < cnt; i++) {
		uint32_t n = tx->iov_cnt;
		struct fid_mr *mr;
		int ret;

		if (!iov[i].iov_len)
			continue;
		tx->iov[n] = iov[i];
		tx->desc[n] = NULL;
		if (ep->domain->uses_desc && desc && desc[i]) {
			tx->desc[n] = rxm_desc_below(desc[i]);
		} else if (ep->domain->mr_local) {
			ret = rxm_pin_take(ep, tx, iov[i].iov_base, iov[i].iov_len, access, &mr);
			if (ret)
				return ret;
			tx->desc[n] = fi_mr_desc(mr);
		}
		tx->iov_cnt++;
	}
	return 0;
}

/* ---- completion ---- */

static uint64_t slot_id(const struct rxm_tx *tx)
{
	return (uint64_t) tx->conn->asked[tx->slot].gen << SLOT_BITS | tx->slot;
}

static void slot_free(struct rxm_tx *tx)
{
	struct rxm_conn *conn = tx->conn;
	struct rxm_slot *slot = &conn->asked[tx->slot];

	tx->has_slot = false;
	slot->tx = NULL;
	slot->gen++;
	slot->next_free = conn->asked_free;
	conn->asked_free = tx->slot + 1;
}

/* Complete an entry that is in no queue, but not those that were to follow it. */
INLINE void tell_one(struct rxm_tx *tx, int err, const char *text)
{
	if (tx->has_slot)
		slot_free(tx);
	if (tx->done)
		tx->done(tx, err, text);
}

/* Complete an entry that is in no queue. Entries that were to follow it are not sent. */
static __attribute__((noinline)) void tell(struct rxm_tx *tx, int err, const char *text)
{
	for (; tx; tx = tx->then) {
		tell_one(tx, err, text);
		tx->done = NULL;
	}
}

INLINE void finish(struct rxm_tx *tx, int err, const char *text)
{
	struct rxm_ep *ep = tx->ep;

	if (__builtin_expect(tx->then != NULL, 0)) {
		tell(tx, err, text);
		rxm_tx_free(ep, tx);
	} else {
		tell_one(tx, err, text);
		tx_free(ep, tx);
	}
}

/* Complete an entry that has a hook or has failed. */
static __attribute__((noinline))
void tell_rare(struct rxm_tx *tx, const struct fab_comp *comp, const struct fab_cq_fail *fail)
{
	struct fab_hook *hook = tx->context;

	if (fail->err)
		tx->stats->errors++;
	else
		fab_stats_count(tx->stats, tx->code, tx->len);
	if (tx->hooked)
		hook->done(hook, tx->code, comp, fail->err ? fail : NULL);
	else
		fab_ep_fail(&tx->ep->base, tx->code, comp, fail);
}

void rxm_app_done(struct rxm_tx *tx, int err, const char *text)
{
	struct fab_ep *ep = &tx->ep->base;
	const struct fab_comp comp = {
		.context = tx->context, .flags = fab_op_desc[tx->code].cq_flags, .len = tx->len, .tag = tx->tag,
		.data = tx->data, .src = FI_ADDR_NOTAVAIL,
	};

	tx->ep->tx_cnt--;
	tx->stats->dequeued++;
	if (__builtin_expect(tx->told, 0))
		fab_stats_completed(&tx->stats->pending[rxm_kind_of(tx)], tx->number);
	if (__builtin_expect(tx->hooked || err, 0)) {
		tell_rare(tx, &comp, &(struct fab_cq_fail) { .err = err, .prov_errno = err, .text = text });
		return;
	}
	fab_stats_count(tx->stats, tx->code, tx->len);
	fab_ep_complete(ep, tx->code, &comp, tx->want_cq);
}

static struct fab_list *queue_of(struct rxm_conn *conn, const struct rxm_tx *tx)
{
	if (!tx->control && !tx->rma_at)
		return &conn->txq;
	return tx->what == RXM_TX_PACKET && tx->buf->pkt.ctrl.type != RXM_CREDIT ? &conn->answerq : &conn->ctlq;
}

static void enqueue(struct rxm_conn *conn, struct rxm_tx *tx, bool first)
{
	struct fab_list *queue = queue_of(conn, tx);

	if (first)
		fab_list_add_head(queue, &tx->link);
	else
		fab_list_add_tail(queue, &tx->link);
}

/* A text for the peer's error, or NULL if the peer reported success. */
static const char *refusal(const struct rxm_tx *tx, int err, char text[RXM_WHY])
{
	if (!err)
		return NULL;
	rxm_peer_why(tx->conn->peer, "the peer could not execute it", fi_strerror(err), text);
	return text;
}

/* The provider below has completed an entry without error. */
static void below_succeeded(struct rxm_conn *conn, struct rxm_tx *tx)
{
	struct rxm_tx *then = tx->then;
	char why[RXM_WHY];

	if (tx->answered && tx->answer_err) {
		finish(tx, tx->answer_err, refusal(tx, tx->answer_err, why));
	} else if (tx->what != RXM_TX_PACKET && ++tx->rma_at < tx->parts) {
		enqueue(conn, tx, true);
		rxm_tx_run(conn);
	} else if (then) {
		tx->then = NULL;
		then->conn = conn;
		finish(tx, 0, NULL);
		enqueue(conn, then, true);
		rxm_tx_run(conn);
	} else if (tx->wants_answer && !tx->answered) {
		fab_list_add_tail(&conn->waiting, &tx->link);
	} else {
		finish(tx, 0, NULL);
	}
}

void rxm_tx_below_done(struct rxm_tx *tx, int err, const char *text)
{
	struct rxm_conn *conn = tx->conn;

	fab_list_remove(&tx->link);
	tx->flying = false;
	if (tx->gone) {
		rxm_tx_free(tx->ep, tx);
		return;
	}
	if (err)
		finish(tx, err, text);
	else if (tx->what == RXM_TX_PACKET && !tx->wants_answer)
		finish(tx, 0, NULL);
	else
		below_succeeded(conn, tx);
	rxm_rx_release(conn);
}

struct rxm_tx *rxm_tx_asked(struct rxm_conn *conn, uint64_t msg_id)
{
	uint64_t slot = msg_id & ((1u << SLOT_BITS) - 1);

	return slot < conn->asked_cnt && conn->asked[slot].gen == msg_id >> SLOT_BITS ? conn->asked[slot].tx : NULL;
}

void rxm_tx_answered(struct rxm_tx *tx, int err, const char *text)
{
	struct rxm_conn *conn = tx->conn;

	if (tx->has_slot)
		slot_free(tx);
	tx->answered = true;
	tx->answer_err = err;
	if (!tx->flying) {
		fab_list_remove(&tx->link);
		finish(tx, err, text);
	}
	rxm_tx_run(conn);
}

void rxm_tx_told(struct rxm_tx *tx, int err)
{
	char text[RXM_WHY];

	rxm_tx_answered(tx, err, refusal(tx, err, text));
}

void rxm_tx_fail_list(struct fab_list *list, int err, const char *text)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(list)))
		finish(fab_container(link, struct rxm_tx, link), err, text);
}

void rxm_tx_fail_all(struct rxm_conn *conn, int err, const char *text)
{
	struct fab_list *link, *next;

	/* the queue below may hold completions of these: keep their memory until it has been read */
	fab_list_for_each_safe(&conn->flying, link, next) {
		struct rxm_tx *tx = fab_container(link, struct rxm_tx, link);

		tx->gone = true;
		tell(tx, err, text);
	}
	rxm_tx_fail_list(&conn->ctlq, err, text);	/* before waiting: the chunks of messages in there */
	fab_list_for_each_safe(&conn->waiting, link, next) {
		struct rxm_tx *tx = fab_container(link, struct rxm_tx, link);

		if (!tx->registering)
			continue;
		/* a thread comes back to it */
		fab_list_remove(link);
		tx->gone = true;
		tell(tx, err, text);
		tx->conn = NULL;
	}
	rxm_tx_fail_list(&conn->waiting, err, text);
	rxm_tx_fail_list(&conn->answerq, err, text);
	rxm_tx_fail_list(&conn->txq, err, text);
}

/* Identifies an operation by context and hooked. */
struct which {
	void *context;
	bool hooked;
	uint64_t tag;			/* set if the operation was found */
};

static bool tx_is_meant(const struct rxm_tx *tx, const struct which *which)
{
	return tx->app && tx->hooked == which->hooked && tx->context == which->context;
}

/* Cancel an operation in a list. Segments are not cancelled: those before the last may have been sent. */
static bool cancel_in(struct fab_list *list, const struct which *which)
{
	struct fab_list *link;

	fab_list_for_each(list, link) {
		struct rxm_tx *tx = fab_container(link, struct rxm_tx, link);

		if (!tx_is_meant(tx, which) || (tx->buf && tx->buf->pkt.ctrl.type == RXM_SEG))
			continue;
		fab_list_remove(link);
		finish(tx, FI_ECANCELED, NULL);
		return true;
	}
	return false;
}

static bool cancel_to(struct fab_entry *entry, void *which)
{
	struct rxm_peer *peer = fab_container(entry, struct rxm_peer, entry);

	return cancel_in(&peer->txq, which) || (peer->conn && cancel_in(&peer->conn->txq, which));
}

bool rxm_tx_cancel(struct rxm_ep *ep, void *context, bool hooked)
{
	struct which which = { .context = context, .hooked = hooked };

	return fab_table_any(&ep->peers, cancel_to, &which);
}

static bool announced_in(const struct fab_list *list, struct which *which)
{
	struct fab_list *link;

	fab_list_for_each(list, link) {
		const struct rxm_tx *tx = fab_container(link, struct rxm_tx, link);

		if (!tx_is_meant(tx, which) || !tx->wants_answer)
			continue;
		which->tag = tx->tag;
		return true;
	}
	return false;
}

static bool announced_to(struct fab_entry *entry, void *which)
{
	const struct rxm_peer *peer = fab_container(entry, struct rxm_peer, entry);

	return peer->conn && (announced_in(&peer->conn->waiting, which) || announced_in(&peer->conn->flying, which));
}

bool rxm_tx_announced(struct rxm_ep *ep, struct fab_hook *hook, uint64_t *tag)
{
	struct which which = { .context = hook, .hooked = true };
	bool found = fab_table_any(&ep->peers, announced_to, &which);

	*tag = which.tag;
	return found;
}

void rxm_tx_fail_coll(struct fab_list *list, int err, const char *text)
{
	struct fab_list *link, *next;

	fab_list_for_each_safe(list, link, next) {
		struct rxm_tx *tx = fab_container(link, struct rxm_tx, link);

		if (tx->what != RXM_TX_PACKET || tx->buf->pkt.op.op != RXM_OP_COLL)
			continue;
		fab_list_remove(link);
		finish(tx, err, text);
	}
}

/* ---- to the provider below ---- */

static bool tx_slot_take(struct rxm_tx *tx)
{
	struct rxm_conn *conn = tx->conn;

	if (tx->has_slot)
		return true;
	if (conn->asked_free) {
		tx->slot = conn->asked_free - 1;
		conn->asked_free = conn->asked[tx->slot].next_free;
	} else {
		if (conn->asked_cnt == RXM_ASKED_MAX ||
		    fab_grow(&conn->asked, &conn->asked_room, conn->asked_cnt, sizeof(*conn->asked)))
			return false;
		tx->slot = conn->asked_cnt++;
	}
	tx->has_slot = true;
	conn->asked[tx->slot].tx = tx;
	conn->stats->announced += tx->what == RXM_TX_PACKET && tx->buf->pkt.ctrl.type == RXM_RNDV_REQ;
	return true;
}

/* Post a packet together with data in the application's buffers. */
static int post_gathered(struct rxm_conn *conn, struct rxm_tx *tx)
{
	struct iovec iov[1 + RXM_IOV_LIMIT] = { { &tx->buf->pkt, tx->pkt_len } };
	void *desc[1 + RXM_IOV_LIMIT] = { tx->buf->desc };
	const struct fi_msg msg = { .msg_iov = iov, .desc = desc, .iov_count = 1 + tx->iov_cnt, .context = &tx->ctx };

	for (uint32_t i = 0; i < tx->iov_cnt; i++) {
		iov[1 + i] = tx->iov[i];
		desc[1 + i] = tx->desc[i];
	}
	return (int) fi_sendmsg(conn->below, &msg, FI_COMPLETION | tx->below_flags);
}

/* The credit that this packet returns to the peer. */
static uint64_t say_credit(const struct rxm_conn *conn)
{
	return (uint64_t) conn->credit[RXM_ANSWERS].owed << 32 | conn->credit[RXM_ASKS].owed;
}

INLINE void credit_said(struct rxm_conn *conn)
{
	for (int i = 0; i < RXM_LOADS; i++) {
		conn->credit[i].unpaid -= conn->credit[i].owed;
		conn->credit[i].owed = 0;
	}
}

INLINE int post_packet(struct rxm_conn *conn, struct rxm_tx *tx)
{
	struct rxm_pkt *pkt = &tx->buf->pkt;
	int ret;

	if (tx->has_slot) {
		uint64_t id = slot_id(tx);

		/* this packet answers a request, whose number it has already; its own number is in another field */
		if (pkt->ctrl.type == RXM_RNDV_WR)
			pkt->ctrl.ctrl_data = id;
		else
			pkt->ctrl.msg_id = id;
	}
	if (conn->ext)
		pkt->ctrl.conn_id = say_credit(conn);
	ret = tx->iov_cnt || tx->below_flags ? post_gathered(conn, tx) :
	      (int) fi_send(conn->below, pkt, tx->pkt_len, tx->buf->desc, FI_ADDR_UNSPEC, &tx->ctx);
	if (!ret && conn->ext && pkt->ctrl.conn_id)
		credit_said(conn);
	return ret;
}

/* Get bytes [at, at + len) of the entry's iov. */
static uint32_t slice(struct iovec *iov, void **desc, const struct rxm_tx *tx, size_t at, size_t len)
{
	uint32_t cnt = 0;

	for (uint32_t i = 0; i < tx->iov_cnt && len; i++) {
		size_t part = tx->iov[i].iov_len;

		if (at >= part) {
			at -= part;
			continue;
		}
		part = fab_min(part - at, len);
		iov[cnt] = (struct iovec) { (uint8_t *) tx->iov[i].iov_base + at, part };
		desc[cnt++] = tx->desc[i];
		at = 0;
		len -= part;
	}
	return cnt;
}

/* Post an RMA operation; if it has several parts, post the next part. */
static int post_rma(struct rxm_conn *conn, struct rxm_tx *tx)
{
	struct iovec iov[RXM_IOV_LIMIT];
	void *desc[RXM_IOV_LIMIT];
	struct fi_msg_rma msg = {
		.msg_iov = tx->iov, .desc = tx->desc, .iov_count = tx->iov_cnt, .rma_iov = tx->rma,
		.rma_iov_count = tx->rma_cnt, .context = &tx->ctx, .data = tx->data,
	};
	size_t at = 0;

	if (tx->parts > 1) {
		for (int i = 0; i < tx->rma_at; i++)
			at += tx->rma[i].len;
		msg.msg_iov = iov;
		msg.desc = desc;
		msg.iov_count = slice(iov, desc, tx, at, tx->rma[tx->rma_at].len);
		msg.rma_iov = &tx->rma[tx->rma_at];
		msg.rma_iov_count = 1;
	}
	return (int) (tx->what == RXM_TX_READ ? fi_readmsg(conn->below, &msg, FI_COMPLETION) :
		      fi_writemsg(conn->below, &msg, FI_COMPLETION | tx->below_flags));
}

/* Decide how the CQ data of a remote write is sent: in a packet of its own after the write, or with the write if the
 * peer does not know such packets. */
static void decide_data(struct rxm_tx *tx)
{
	struct rxm_tx *then = tx->then;

	if (!then)
		return;
	if (then->buf->pkt.op.flags & RXM_FLAG_CQ_DATA)
		tx->below_flags |= FI_REMOTE_CQ_DATA;
	tx->then = NULL;
	tx->data = then->data;
	tx->done = then->done;
	tx->app = then->app;
	tx->code = then->code;
	tx->want_cq = then->want_cq;
	tx->context = then->context;
	tx->len = then->len;
	tx->stats = then->stats;
	tx->number = then->number;
	rxm_tx_free(tx->ep, then);
}

/* Upstream never answers the announcement of an empty message, because there is nothing to read. So an empty message
 * stays a packet, and completes when the provider below has delivered it. Nothing tells that a receive has taken it. 0;
 * -FI_EOPNOTSUPP: the operation asks for that (FI_MATCH_COMPLETE). */
static int decide_empty(const struct rxm_conn *conn, struct rxm_tx *tx)
{
	if (tx->buf->pkt.op.flags & RXM_FLAG_MATCH)
		return -FI_EOPNOTSUPP;
	tx->buf->pkt.op.flags &= ~RXM_FLAG_ACK;
	tx->wants_answer = false;
	slot_free(tx);
	tx->iov[0] = (struct iovec) { .iov_base = tx->buf->pkt.data };
	tx->desc[0] = tx->buf->desc;
	tx->iov_cnt = 1;
	tx->below_flags = conn->ep->domain->has_dc ? FI_DELIVERY_COMPLETE : 0;
	return 0;
}

/* Decide what depends on whether the peer is of this library, which was unknown before the connection. False: the peer
 * cannot have the operation, which has completed with an error. */
static bool tx_decide(struct rxm_conn *conn, struct rxm_tx *tx)
{
	const char *text = "the message could not be announced";
	int ret = 0;

	if (tx->what != RXM_TX_PACKET) {
		decide_data(tx);
	} else if (tx->buf->pkt.ctrl.type == RXM_EAGER && (tx->buf->pkt.op.flags & RXM_FLAG_ACK)) {
		if (!tx->buf->pkt.op.size)
			text = "the peer cannot tell when a receive takes an empty message";
		ret = tx->buf->pkt.op.size ? rxm_rndv_convert(conn->ep, tx) : decide_empty(conn, tx);
	}
	if (ret)
		finish(tx, -ret, text);
	return !ret;
}

/* There is no memory, or the provider below has no room: put the entry first in its queue. The queues run again when
 * something was received or has ended. */
static void wait_below(struct rxm_conn *conn, struct rxm_tx *tx)
{
	enqueue(conn, tx, true);
	conn->stats->full_waits++;
	fab_list_remove(&conn->stuck);
	fab_list_add_tail(&conn->ep->poller->stuck, &conn->stuck);
	if (fab_list_empty(&conn->flying) && fab_list_empty(&conn->waiting))
		rxm_poller_again(conn->ep->poller);
}

/* The provider below has refused an entry. The peer may wait for such a packet, or for the rest of its message, and the
 * credit for it would be lost, so the connection ends. Where it has ended below, its event comes after all earlier
 * messages. */
static __attribute__((noinline)) void refused(struct rxm_conn *conn, struct rxm_tx *tx, int err)
{
	bool misses = tx->what == RXM_TX_PACKET && err != FI_ENOTCONN && err != FI_EOPBADSTATE;

	finish(tx, err, "refused by the provider below");
	if (misses)
		rxm_conn_fail(conn, err, "a packet for the peer cannot be sent");
}

/* Post an entry that is in no queue. True: it was posted, or has completed. False: it cannot be posted now, and is
 * first in its queue. */
INLINE bool post(struct rxm_conn *conn, struct rxm_tx *tx)
{
	int ret;

	if (tx->wants_answer && !tx->answered && !tx_slot_take(tx)) {
		wait_below(conn, tx);
		return false;
	}
	if (!conn->ext && !tx_decide(conn, tx))
		return true;
	fab_list_add_tail(&conn->flying, &tx->link);
	tx->flying = true;
	ret = tx->what == RXM_TX_PACKET ? post_packet(conn, tx) : post_rma(conn, tx);
	if (__builtin_expect(!ret, 1))
		return true;
	tx->flying = false;
	fab_list_remove(&tx->link);
	if (ret == -FI_EAGAIN) {
		wait_below(conn, tx);
		return false;
	}
	refused(conn, tx, -ret);
	return true;
}

INLINE bool pays(const struct rxm_conn *conn, const struct rxm_tx *tx, enum rxm_load load)
{
	return conn->ext && load != RXM_FREE && tx->what == RXM_TX_PACKET;
}

/* Like post(), for an entry that may need credit. The caller has checked that there is enough. */
INLINE bool pay_and_post(struct rxm_conn *conn, struct rxm_tx *tx, enum rxm_load load)
{
	if (!pays(conn, tx, load))
		return post(conn, tx);
	conn->credit[load].left--;
	if (post(conn, tx))
		return true;
	conn->credit[load].left++;
	return false;
}

/* Post as many entries of a queue as possible; its packets have this load. */
static void run_queue(struct rxm_conn *conn, struct fab_list *queue, enum rxm_load load)
{
	struct rxm_tx *tx;

	while (conn->state == RXM_CONN_UP && fab_list_empty(&conn->stuck) &&
	       (tx = fab_list_first(queue, struct rxm_tx, link))) {
		if (pays(conn, tx, load) && !conn->credit[load].left)
			return;
		fab_list_remove(&tx->link);
		if (!pay_and_post(conn, tx, load))
			return;
	}
}

void rxm_tx_run_queues(struct rxm_conn *conn)
{
	if (conn->state != RXM_CONN_UP || conn->running)
		return;
	conn->running = true;
	fab_list_remove(&conn->stuck);
	run_queue(conn, &conn->ctlq, RXM_FREE);
	run_queue(conn, &conn->answerq, RXM_ANSWERS);
	run_queue(conn, &conn->txq, RXM_ASKS);
	conn->running = false;
	rxm_rx_release(conn);
}

void rxm_tx_start(struct rxm_conn *conn, struct rxm_tx *tx)
{
	tx->conn = conn;
	conn->ctl_cnt += tx->control;
	enqueue(conn, tx, false);
	rxm_tx_run(conn);
}

/* True if an operation may be posted at once, because nothing is queued before it. */
static bool is_clear(const struct rxm_conn *conn, const struct rxm_tx *tx)
{
	return !conn->running && fab_list_empty(&conn->stuck) && !rxm_tx_waits(conn) &&
	       (conn->credit[RXM_ASKS].left || !pays(conn, tx, RXM_ASKS));
}

/* A write has completed whose packet did not wait for it. This completes the packet, too, if it was sent and waits for
 * nothing else. */
static void told_write_done(struct rxm_tx *tx, int err, const char *text)
{
	struct rxm_tx *then = tx->conn->state == RXM_CONN_DOWN ? NULL : rxm_tx_asked(tx->conn, tx->msg_id);

	if (then && (err || !(then->buf->pkt.op.flags & RXM_FLAG_ACK)))
		rxm_tx_answered(then, err, text);
}

/* True if the provider below has room for cnt more operations; those that it has are in conn->flying. */
static bool tx_has_room(const struct rxm_conn *conn, size_t cnt)
{
	const struct fab_list *link;

	fab_list_for_each(&conn->flying, link)
		cnt++;
	return cnt <= conn->ep->domain->below_info->tx_attr->size;
}

/* True if a write and the packet that reports it can be posted one after the other. */
static bool may_tell_write(struct rxm_conn *conn, struct rxm_tx *tx)
{
	tx->then->conn = conn;
	return conn->credit[RXM_ASKS].left && tx_has_room(conn, 2) && tx_slot_take(tx->then);
}

/* Post a write and directly after it the packet that reports it, after may_tell_write(); the connection below keeps
 * their order. False: neither was posted. The write is first in its queue; the packet will follow its completion. */
static bool post_told_write(struct rxm_conn *conn, struct rxm_tx *tx)
{
	struct rxm_tx *then = tx->then;
	bool asks = then->wants_answer;
	uint64_t id;

	then->wants_answer = true;
	if (conn->ep->domain->has_dc)
		tx->below_flags |= FI_MORE;	/* both leave in one system call */
	tx->then = NULL;
	tx->done = told_write_done;
	tx->msg_id = id = slot_id(then);
	if (!post(conn, tx)) {
		slot_free(then);
		then->wants_answer = asks;
		tx->below_flags &= ~FI_MORE;
		tx->done = NULL;
		tx->then = then;
		return false;
	}
	if (rxm_tx_asked(conn, id) == then)
		pay_and_post(conn, then, RXM_ASKS);
	return true;
}

/* True if the packet after a write need not wait for the write to complete: the target checks the write itself. */
static bool tells_at_once(const struct rxm_conn *conn, const struct rxm_tx *tx)
{
	return conn->ext && (tx->then->buf->pkt.op.flags & RXM_FLAG_UNSURE);
}

/* An operation cannot leave at once: count it, if that is for lack of credit. */
static void note_wait(struct rxm_conn *conn, const struct rxm_tx *tx)
{
	if (!tx->app || !pays(conn, tx, RXM_ASKS) || conn->credit[RXM_ASKS].left)
		return;
	conn->stats->credit_waits++;
	FAB_PROBE3(credit, &tx->ep->base, conn->peer->fi_addr, tx->len);
}

void rxm_tx_submit(struct rxm_peer *peer, struct rxm_tx *tx)
{
	struct rxm_conn *conn = peer->conn;

	if (__builtin_expect(!conn || conn->state != RXM_CONN_UP, 0)) {
		fab_list_add_tail(&peer->txq, &tx->link);
		return;
	}
	if (!is_clear(conn, tx)) {
		note_wait(conn, tx);
		rxm_tx_start(conn, tx);
		return;
	}
	tx->conn = conn;
	conn->running = true;
	if (__builtin_expect(tx->then && tells_at_once(conn, tx) && may_tell_write(conn, tx), 0))
		post_told_write(conn, tx);
	else
		pay_and_post(conn, tx, RXM_ASKS);
	conn->running = false;
}

bool rxm_tx_submit_now(struct rxm_peer *peer, struct rxm_tx *tx)
{
	struct rxm_conn *conn = peer->conn;
	bool left;

	if (!conn || conn->state != RXM_CONN_UP) {
		peer->asked = true;
		return false;
	}
	if (!is_clear(conn, tx))
		return false;
	tx->conn = conn;
	conn->running = true;
	if (tx->then && conn->ext)
		left = may_tell_write(conn, tx) && post_told_write(conn, tx);
	else
		left = pay_and_post(conn, tx, RXM_ASKS);
	conn->running = false;
	if (left)
		return true;
	fab_list_remove(&tx->link);
	if (tx->has_slot)
		slot_free(tx);
	return false;
}

void rxm_tx_adopt(struct rxm_conn *conn, struct fab_list *list)
{
	struct fab_list *link;

	while ((link = fab_list_pop_front(list))) {
		fab_container(link, struct rxm_tx, link)->conn = conn;
		fab_list_add_tail(&conn->txq, link);
	}
	rxm_tx_run(conn);
}
