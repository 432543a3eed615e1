/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Receiving. The kernel fills posted receives in order, many in one system call. While no receive is posted, datagrams
 * stay in the socket, which drops those it has no room for; FI_EP_DGRAM allows that.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "base/sock.h"
#include "udp/udp.h"

struct udp_rx {
	struct fab_list link;		/* in ep->posted */
	void *context;
	uint64_t flags;			/* flags of the call: FI_COMPLETION */
	uint64_t number;		/* counts receives of the endpoint */
	size_t len;			/* length of iov, bytes */
	uint32_t iov_cnt;
	struct iovec iov[UDP_IOV_LIMIT];
};

/* ---- senders of datagrams ---- */

static void forget_src(struct fab_av_watch *watch, fi_addr_t fi_addr, const union fab_sockaddr *addr)
{
	struct udp_ep *ep = fab_container(watch, struct udp_ep, watch);

	(void) addr;
	fab_engine_lock(ep->base.engine);
	ep->last_fi_addr = FI_ADDR_NOTAVAIL;
	ep->last_stats = &ep->base.stats->rest;
	fab_stats_peers_forget(&ep->peers, ep->base.stats, fi_addr);
	fab_engine_unlock(ep->base.engine);
}

/* The sender of a datagram. Its record is ep->last_stats. */
static fi_addr_t source_of(struct udp_ep *ep, const union fab_sockaddr *from)
{
	if (!ep->want_src)
		return FI_ADDR_NOTAVAIL;
	if (ep->last_fi_addr == FI_ADDR_NOTAVAIL || !fab_addr_equal(&from->sa, &ep->last_src.sa)) {
		ep->last_fi_addr = fab_av_find(ep->base.bound.av, from);
		ep->last_src = *from;
		ep->last_stats = ep->last_fi_addr == FI_ADDR_NOTAVAIL ? &ep->base.stats->rest :
				 udp_stats(ep, ep->last_fi_addr, from);
	}
	return ep->last_fi_addr;
}

/* ---- completing ---- */

static void rx_done(struct udp_ep *ep, struct udp_rx *rx, const struct fab_comp *comp, const struct fab_cq_fail *fail)
{
	fab_list_remove(&rx->link);
	if (fail)
		fab_ep_fail(&ep->base, FAB_OP_RECV, comp, fail);
	else
		fab_ep_complete(&ep->base, FAB_OP_RECV, comp, fab_ep_rx_wants_comp(&ep->base, rx->flags));
	fab_pool_put(&ep->rx_pool, rx);
}

static void rx_arrived(struct udp_port *port, struct udp_rx *rx, size_t len, const union fab_sockaddr *from)
{
	struct udp_ep *ep = port->ep;
	struct fab_comp comp = {
		.context = rx->context,
		.flags = fab_op_desc[FAB_OP_RECV].cq_flags | port->cq_flags,
		.len = fab_min(len, rx->len),
		.buf = rx->iov_cnt ? rx->iov[0].iov_base : NULL,
		.src = source_of(ep, from),
	};
	struct fab_cq_fail trunc = {
		.err = FI_ETRUNC, .prov_errno = FI_ETRUNC, .olen = len - comp.len,
		.text = "the datagram is longer than the receive buffer",
	};
	struct fab_cq_fail stranger = {
		.err = FI_EADDRNOTAVAIL, .prov_errno = FI_EADDRNOTAVAIL,
		.text = "the sender is not in the address vector",
		.err_data = from, .err_data_len = fab_addr_len(&from->sa),
	};

	if (len <= rx->len && !(ep->source_err && comp.src == FI_ADDR_NOTAVAIL)) {
		fab_stats_count(ep->last_stats, FAB_OP_RECV, comp.len);
		rx_done(ep, rx, &comp, NULL);
		return;
	}
	ep->last_stats->errors++;
	rx_done(ep, rx, &comp, len > rx->len ? &trunc : &stranger);
}

/* ---- the socket ---- */

/* Set up msgs with the buffers of the oldest receives. Returns the number of entries. */
static unsigned aim(struct udp_ep *ep, struct mmsghdr *msgs, union fab_sockaddr *from)
{
	struct fab_list *link;
	unsigned cnt = 0;

	fab_list_for_each(&ep->posted, link) {
		struct udp_rx *rx = fab_container(link, struct udp_rx, link);

		if (cnt == ep->batch)
			break;
		msgs[cnt].msg_hdr = (struct msghdr) {
			.msg_name = &from[cnt], .msg_namelen = sizeof(from[cnt]), .msg_iov = rx->iov,
			.msg_iovlen = rx->iov_cnt,
		};
		cnt++;
	}
	return cnt;
}

/* The number of datagrams to ask for in the next call. */
static unsigned next_batch(unsigned batch, unsigned got)
{
	if (got == batch)
		return fab_min(batch * 2, (unsigned) UDP_BATCH);
	return got < batch / 2 ? batch / 2 : batch;
}

bool udp_rx_run(struct udp_port *port)
{
	union fab_sockaddr from[UDP_BATCH];
	struct mmsghdr msgs[UDP_BATCH];
	struct udp_ep *ep = port->ep;
	unsigned cnt;
	int got;

	cnt = aim(ep, msgs, from);
	if (!cnt)
		return false;
	/* MSG_TRUNC: return the full length of a datagram that did not fit */
	got = fab_sock->recvmmsg(port->src.fd, msgs, cnt, MSG_DONTWAIT | MSG_TRUNC, NULL);
	if (got < 0) {
		ep->batch = next_batch(ep->batch, 0);
		return errno != EAGAIN && errno != EINTR && udp_port_errors(port);
	}
	ep->batch = next_batch(ep->batch, (unsigned) got);
	ep->heard = true;
	for (int i = 0; i < got; i++)
		rx_arrived(port, fab_list_first(&ep->posted, struct udp_rx, link), msgs[i].msg_len, &from[i]);
	return got > 0;
}

/* ---- posting ---- */

/* Poll sockets again that were ignored while no receive was posted. */
static void listen_again(struct udp_ep *ep)
{
	struct fab_list *link;

	ep->deaf = false;
	fab_list_for_each(&ep->ports, link) {
		struct udp_port *port = fab_container(link, struct udp_port, link);

		fab_source_mod(&port->src, port->src.events | EPOLLIN);
	}
}

int udp_post_recv(struct fab_ep *base, const struct fab_op *op)
{
	struct udp_ep *ep = fab_container(base, struct udp_ep, base);
	struct udp_rx *rx;

	if (!ep->base.enabled || ep->closing)
		return -FI_EOPBADSTATE;
	rx = fab_pool_get(&ep->rx_pool);
	if (!rx)
		return fab_pool_full(&ep->rx_pool) ? -FI_EAGAIN : -FI_ENOMEM;
	rx->context = op->context;
	rx->flags = op->flags;
	rx->len = fab_iov_len(op->iov, op->iov_cnt);
	rx->iov_cnt = op->iov_cnt;
	fab_iov_copy(rx->iov, op->iov, op->iov_cnt);
	fab_list_add_tail(&ep->posted, &rx->link);
	rx->number = ++ep->base.stats->posted[0];
	if (ep->deaf)
		listen_again(ep);
	return 0;
}

static void rx_cancel(struct udp_ep *ep, struct udp_rx *rx)
{
	struct fab_comp comp = {
		.context = rx->context, .flags = fab_op_desc[FAB_OP_RECV].cq_flags, .src = FI_ADDR_NOTAVAIL,
	};

	rx_done(ep, rx, &comp, &(struct fab_cq_fail) { .err = FI_ECANCELED, .prov_errno = FI_ECANCELED });
}

bool udp_rx_cancel(struct udp_ep *ep, const void *context)
{
	struct fab_list *link;

	fab_list_for_each(&ep->posted, link) {
		struct udp_rx *rx = fab_container(link, struct udp_rx, link);

		if (rx->context == context) {
			rx_cancel(ep, rx);
			return true;
		}
	}
	return false;
}

void udp_rx_cancel_all(struct udp_ep *ep)
{
	while (!fab_list_empty(&ep->posted))
		rx_cancel(ep, fab_list_first(&ep->posted, struct udp_rx, link));
}

void udp_rx_survey(struct udp_ep *ep)
{
	const struct udp_rx *rx = fab_list_first(&ep->posted, struct udp_rx, link);

	fab_stats_pending(&ep->base.stats->pending[FI_STATS_EP_RECV], !rx ? NULL : &(struct fi_stats_pending) {
		.number = rx->number, .cnt = ep->rx_pool.out_cnt, .len = rx->len, .peer = UINT32_MAX,
		.op = FAB_OP_RECV, .state = FI_STATS_POSTED, .flags = FI_STATS_ANY_SOURCE,
	});
}

/* ---- init and fini ---- */

void udp_rx_init(struct udp_ep *ep, const struct fi_rx_attr *attr)
{
	fab_pool_init(&ep->rx_pool, &(struct fab_pool_attr) { .size = sizeof(struct udp_rx), .max_cnt = attr->size,
		      .chunk_cnt = 16 });
	fab_list_init(&ep->posted);
	ep->batch = 1;
	ep->last_fi_addr = FI_ADDR_NOTAVAIL;
	ep->last_stats = &ep->base.stats->rest;
	ep->watch.inserted = forget_src;
	ep->watch.removed = forget_src;
}

void udp_rx_fini(struct udp_ep *ep)
{
	fab_pool_fini(&ep->rx_pool);
}
