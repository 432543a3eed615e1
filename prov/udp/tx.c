/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Sending. The first datagram after a pass of the engine is sent at once. Later ones of the same pass are queued if
 * they have a completion, for which the caller must make progress anyway; the next pass sends many in one system call.
 * Sends with FI_MORE, and those that the socket has no room for, are queued as well. An inject is never queued.
 *
 * A send completes when the kernel has the datagram. Later errors are known only as far as ICMP reports them
 * (udp_port_errors()).
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/sock.h"
#include "udp/udp.h"

#define SEND_TRIES	4	/* attempts while ICMP reports errors of earlier datagrams */
#define LOOK_MAX	64	/* queued sends that are looked at in one survey */

/* A queued send. */
struct udp_tx {
	struct fab_list link;		/* in ep->txq */
	struct fi_stats_peer *stats;	/* borrowed: the record of the peer in the page of the process */
	uint64_t number;		/* counts those of the record that were queued */
	void *context;
	uint64_t cq_flags;
	size_t len;
	bool want_cq;
	uint8_t iov_cnt;
	union fab_sockaddr dest;
	struct iovec iov[UDP_IOV_LIMIT];
};

static void tx_complete(struct udp_ep *ep, const struct udp_tx *tx, int err)
{
	struct fab_comp comp = {
		.context = tx->context, .flags = tx->cq_flags, .len = tx->len, .src = FI_ADDR_NOTAVAIL,
	};

	if (__builtin_expect(err, 0)) {
		tx->stats->errors++;
		fab_ep_fail(&ep->base, FAB_OP_SEND, &comp, &(struct fab_cq_fail) { .err = err, .prov_errno = err });
		return;
	}
	fab_stats_count(tx->stats, FAB_OP_SEND, tx->len);
	fab_ep_complete(&ep->base, FAB_OP_SEND, &comp, tx->want_cq);
}

static void tx_done(struct udp_ep *ep, struct udp_tx *tx, int err)
{
	fab_list_remove(&tx->link);
	tx->stats->dequeued++;
	fab_stats_completed(&tx->stats->pending[FI_STATS_PEER_MESSAGE], tx->number);
	tx_complete(ep, tx, err);
	fab_pool_put(&ep->tx_pool, tx);
}

/* True if the socket has no room at the moment. */
static bool is_full(int err)
{
	return err == EAGAIN || err == EINTR || err == ENOBUFS;
}

static struct msghdr header(struct udp_tx *tx)
{
	return (struct msghdr) {
		.msg_name = &tx->dest, .msg_namelen = fab_addr_len(&tx->dest.sa), .msg_iov = tx->iov,
		.msg_iovlen = tx->iov_cnt,
	};
}

/* ---- the queue ---- */

/* Send as many datagrams as the kernel takes in one call. Returns the number, or -1 with the errno of the first. */
static int send_batch(struct udp_ep *ep)
{
	struct mmsghdr msgs[UDP_BATCH];
	struct fab_list *link;
	unsigned cnt = 0;

	fab_list_for_each(&ep->txq, link) {
		if (cnt == UDP_BATCH)
			break;
		msgs[cnt++].msg_hdr = header(fab_container(link, struct udp_tx, link));
	}
	return fab_sock->sendmmsg(ep->port.src.fd, msgs, cnt, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void udp_tx_flush(struct udp_ep *ep)
{
	struct fab_source *src = &ep->port.src;
	int sent, err, tries = 0;

	while (!fab_list_empty(&ep->txq)) {
		sent = send_batch(ep);
		err = sent < 0 ? errno : 0;
		if (err && is_full(err))
			break;
		/* it may be an ICMP error of an earlier datagram, see send_now() */
		if (err && (++tries == SEND_TRIES || !udp_port_errors(&ep->port)))
			tx_done(ep, fab_list_first(&ep->txq, struct udp_tx, link), err);
		for (int i = 0; i < sent; i++)
			tx_done(ep, fab_list_first(&ep->txq, struct udp_tx, link), 0);
	}
	fab_flush_cancel(&ep->flush);
	ep->sent_pass = ep->base.engine->pass_cnt;
	fab_source_mod(src, fab_list_empty(&ep->txq) ? src->events & ~EPOLLOUT : src->events | EPOLLOUT);
}

static void flush_due(struct fab_flush *flush)
{
	udp_tx_flush(fab_container(flush, struct udp_ep, flush));
}

/* ---- submit ---- */

/* True if a send may wait for the next pass: the caller must come back for its completion, and no thread sleeps on the
 * engine that would have to be woken. */
static bool tx_hold(const struct udp_ep *ep, const struct fab_op *op, const struct udp_tx *tx)
{
	const struct fab_engine *engine = ep->base.engine;

	if (op->flags & (FI_INJECT | FI_MORE))
		return !(op->flags & FI_INJECT);
	return ep->sent_pass == engine->pass_cnt && (tx->want_cq || ep->base.bound.cntr[FAB_CNTR_SEND]) &&
	       fab_engine_may_hold(engine);
}

/* Send one datagram now. 0 or -errno. An error may be an ICMP error of an earlier datagram; then try again. */
static int send_now(struct udp_ep *ep, struct udp_tx *tx)
{
	struct msghdr msg = header(tx);
	int err = 0;

	for (int tries = 0; tries < SEND_TRIES; tries++) {
		if (fab_sock->sendmsg(ep->port.src.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
			ep->sent_pass = ep->base.engine->pass_cnt;
			return 0;
		}
		err = errno;
		if (is_full(err) || !udp_port_errors(&ep->port))
			break;
	}
	return is_full(err) ? -EAGAIN : -err;
}

static int tx_queue(struct udp_ep *ep, const struct udp_tx *tx, bool hold)
{
	struct udp_tx *queued = fab_pool_get(&ep->tx_pool);

	if (!queued) {
		tx->stats->retries++;
		return fab_pool_full(&ep->tx_pool) ? -FI_EAGAIN : -FI_ENOMEM;
	}
	*queued = *tx;
	queued->number = ++tx->stats->queued;
	fab_list_add_tail(&ep->txq, &queued->link);
	if (hold) {
		fab_engine_flush_later(ep->base.engine, &ep->flush);
		return 0;
	}
	udp_tx_flush(ep);
	/* the page has the first one that waits from now on, also if the program never makes progress */
	if (fab_list_first(&ep->txq, struct udp_tx, link) == queued)
		udp_tx_survey(ep);
	return 0;
}

/* Check the call's arguments, and copy them. */
static int tx_make(struct udp_ep *ep, const struct fab_op *op, struct udp_tx *tx)
{
	const struct fi_info *info = ep->base.info;
	bool to_group = op->flags & FI_MULTICAST;
	const union fab_sockaddr *dest;

	if (!ep->base.enabled || ep->closing)
		return -FI_EOPBADSTATE;
	dest = to_group ? udp_group_addr(ep, op->addr) : fab_av_addr(ep->base.bound.av, op->addr);
	if (!dest)
		return -FI_EINVAL;
	tx->dest = *dest;
	tx->stats = to_group ? &ep->base.stats->rest : udp_stats(ep, op->addr, dest);
	tx->len = fab_iov_len(op->iov, op->iov_cnt);
	if ((op->flags & FI_INJECT) && tx->len > info->tx_attr->inject_size)
		return -FI_EMSGSIZE;
	if (tx->len > info->ep_attr->max_msg_size)
		return -FI_EMSGSIZE;
	tx->context = op->context;
	tx->cq_flags = fab_op_desc[FAB_OP_SEND].cq_flags | (to_group ? FI_MULTICAST : 0);
	tx->want_cq = fab_ep_tx_wants_comp(&ep->base, op);
	tx->iov_cnt = op->iov_cnt;
	fab_iov_copy(tx->iov, op->iov, op->iov_cnt);
	return 0;
}

int udp_submit(struct fab_ep *base, const struct fab_op *op)
{
	struct udp_ep *ep = fab_container(base, struct udp_ep, base);
	struct udp_tx tx;
	bool hold;
	int ret;

	ret = tx_make(ep, op, &tx);
	if (ret)
		return ret;
	hold = tx_hold(ep, op, &tx);
	if (!hold && !fab_list_empty(&ep->txq))
		udp_tx_flush(ep);
	if (!hold && fab_list_empty(&ep->txq)) {
		ret = send_now(ep, &tx);
		if (!ret)
			tx_complete(ep, &tx, 0);
		if (ret != -EAGAIN)
			return ret;
	}
	if (op->flags & FI_INJECT) {
		tx.stats->retries++;
		return -FI_EAGAIN;	/* the socket gets room without progress here */
	}
	return tx_queue(ep, &tx, hold);
}

/* ---- the page of the process ---- */

struct fi_stats_peer *udp_stats_add(struct udp_ep *ep, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	char text[FI_STATS_TEXT];

	fab_addr_to_str(&addr->sa, text, sizeof(text));
	return fab_stats_peers_add(&ep->peers, ep->base.stats, fi_addr, text, fi_addr);
}

/* True if an earlier send in the queue is to the same peer. */
static bool follows_another(const struct udp_ep *ep, const struct udp_tx *tx)
{
	struct fab_list *link;

	fab_list_for_each(&ep->txq, link) {
		const struct udp_tx *other = fab_container(link, struct udp_tx, link);

		if (other == tx || other->stats == tx->stats)
			return other != tx;
	}
	return false;
}

uint64_t udp_tx_survey(struct udp_ep *ep)
{
	bool full = ep->port.src.events & EPOLLOUT;
	struct fab_list *link;
	int cnt = 0;

	fab_list_for_each(&ep->txq, link) {
		const struct udp_tx *tx = fab_container(link, struct udp_tx, link);

		if (++cnt > LOOK_MAX)
			break;
		if (follows_another(ep, tx))
			continue;
		fab_stats_peer_pending(ep->base.stats, tx->stats, FI_STATS_PEER_MESSAGE, &(struct fi_stats_pending) {
			.number = tx->number, .cnt = tx->stats->queued - tx->stats->dequeued, .len = tx->len,
			.op = FAB_OP_SEND, .state = full ? FI_STATS_FULL : FI_STATS_QUEUED, .peer = UINT32_MAX,
		});
	}
	return ep->tx_pool.out_cnt;
}

/* ---- cancel, init, fini ---- */

bool udp_tx_cancel(struct udp_ep *ep, const void *context)
{
	struct fab_list *link;

	fab_list_for_each(&ep->txq, link) {
		struct udp_tx *tx = fab_container(link, struct udp_tx, link);

		if (tx->context == context) {
			tx_done(ep, tx, FI_ECANCELED);
			return true;
		}
	}
	return false;
}

void udp_tx_cancel_all(struct udp_ep *ep)
{
	while (!fab_list_empty(&ep->txq))
		tx_done(ep, fab_list_first(&ep->txq, struct udp_tx, link), FI_ECANCELED);
}

void udp_tx_init(struct udp_ep *ep, const struct fi_tx_attr *attr)
{
	fab_pool_init(&ep->tx_pool, &(struct fab_pool_attr) { .size = sizeof(struct udp_tx), .max_cnt = attr->size,
		      .chunk_cnt = 16 });
	fab_list_init(&ep->txq);
	fab_flush_init(&ep->flush, flush_due);
}

void udp_tx_fini(struct udp_ep *ep)
{
	fab_flush_cancel(&ep->flush);
	fab_pool_fini(&ep->tx_pool);
}
