/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * MSG and RDM endpoints: open, enable, options, close. Their differences are selected by tables when they are opened.
 *
 * Closing: operations are refused (TCP_EP_CLOSING); queued data gets TCP_FLUSH_MS to be sent; all connections end,
 * which completes the remaining operations with errors; the engine frees the memory to which events may point. From
 * then on the endpoint cannot be reached.
 */
#include "tcp/endpoint/ep.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/sock.h"
#include "common/net/net.h"
#include "common/ops/ops.h"
#include "common/trigger/trigger.h"
#include "tcp/calls/calls.h"
#include "tcp/collective/collective.h"
#include "tcp/connect/connect.h"
#include "tcp/message/message.h"
#include "tcp/offer/offer.h"
#include "tcp/params/params.h"
#include "tcp/peer/peer.h"
#include "tcp/sock/sock.h"

/* ---- enable ---- */

int tcp_enabled_again(const struct fab_ep *ep)
{
	/* programs that use this name call fi_enable() again after binding a counter late */
	if (ep->domain->fabric->prov == &sockets_prov)
		return 0;
	TCP_WARN(FI_LOG_EP_CTRL, "fi_enable of an endpoint: it is enabled already\n");
	return -FI_EOPBADSTATE;
}

int tcp_ep_enable(struct fab_ep *base)
{
	struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);
	union fab_sockaddr name;
	int ret;

	if (base->enabled)
		return tcp_enabled_again(base);
	ret = ep->context.sep ? tcp_sep_join(ep) : 0;
	if (!ret)
		ret = tcp_shared_check(ep);
	if (!ret)
		ret = fab_ep_check_enable(&ep->base);
	if (ret)
		return ret;
	if (ep->base.type != FI_EP_MSG) {
		ret = tcp_peers_open(ep);
		if (ret)
			return ret;
	}
	ret = ep->context.sep ? tcp_sep_live(ep) : 0;
	if (ret) {
		tcp_peers_close(ep);
		return ret;
	}
	name = ep->base.name;
	if (ep->base.type != FI_EP_MSG)
		tcp_addr_fill(&name, &ep->base);
	fab_engine_lock(ep->base.engine);
	ep->base.enabled = true;
	fab_stats_ep_name(ep->base.stats, &name.sa, ep->incarnation);
	tcp_survey_start(ep);
	fab_engine_unlock(ep->base.engine);
	return 0;
}

/* ---- control, options, cancel ---- */

static int ep_get_fd(struct tcp_ep *ep, int *fd)
{
	int ret = 0;

	if (!fd)
		return -FI_EINVAL;
	if (!ep->conn)
		return -FI_ENOSYS;
	fab_engine_lock(ep->base.engine);
	if (ep->conn->state == TCP_CONN_UP)
		*fd = ep->conn->src.fd;
	else
		ret = -FI_ENOTCONN;
	fab_engine_unlock(ep->base.engine);
	return ret;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	return command == FI_GET_FD ? ep_get_fd(tcp_ep_of(fid), arg) : fab_ep_control(fid, command, arg);
}

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	struct tcp_ep *ep = tcp_ep_of(fid);

	if (level != FI_OPT_ENDPOINT)
		return -FI_ENOPROTOOPT;
	switch (optname) {
	case FI_OPT_MIN_MULTI_RECV:
		return fab_getopt_size(ep->rx->recv.min_multi_recv, optval, optlen);
	case FI_OPT_CM_DATA_SIZE:
		return ep->conn ? fab_getopt_size(TCP_CM_DATA_MAX, optval, optlen) : -FI_ENOPROTOOPT;
	case FI_OPT_SHARED_MEMORY_PERMITTED:
		return fab_getopt_bool(ep->shared_memory, optval, optlen);
	case FI_OPT_FIREWALL_ADDR:
		return fab_getopt_bool(tcp_params.firewall_addr, optval, optlen);
	default:
		return fab_ep_getopt(fid, level, optname, optval, optlen);
	}
}

/* The peer of a MSG endpoint is a stranger to the layer above, or not. */
static int set_strange(struct tcp_ep *ep, const void *optval, size_t optlen)
{
	bool strange = false;
	int ret = fab_setopt_bool(&tcp_prov, &strange, optval, optlen);

	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	ep->strange = strange;
	tcp_stranger_reclass(ep->conn);
	fab_engine_unlock(ep->base.engine);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	struct tcp_ep *ep = tcp_ep_of(fid);

	if (level == FI_OPT_ENDPOINT && optname == FI_OPT_MIN_MULTI_RECV)
		return fab_recv_setopt(&ep->rx->recv, optval, optlen);
	if (level == FI_OPT_ENDPOINT && optname == FI_OPT_SHARED_MEMORY_PERMITTED)
		return fab_setopt_bool(&tcp_prov, &ep->shared_memory, optval, optlen);
	if (level == FI_OPT_ENDPOINT && optname == FAB_OPT_STRANGER && ep->conn)
		return set_strange(ep, optval, optlen);
	return fab_ep_setopt(fid, level, optname, optval, optlen);
}

/* The number of operations that can still be posted (1.x); a shared context counts those of all its endpoints.
 * A context of one direction has none of the other. */
static ssize_t ep_tx_size_left(struct fid_ep *fid)
{
	struct tcp_ep *ep = tcp_ep_of(&fid->fid);
	ssize_t left;

	if (!ep->tx)
		return -FI_EOPNOTSUPP;
	fab_engine_lock(ep->base.engine);
	left = ep->base.enabled ? (ssize_t) (ep->tx->size - ep->tx->cnt) : -FI_EOPBADSTATE;
	fab_engine_unlock(ep->base.engine);
	return left;
}

static ssize_t ep_rx_size_left(struct fid_ep *fid)
{
	struct tcp_ep *ep = tcp_ep_of(&fid->fid);
	ssize_t left;

	if (!ep->rx)
		return -FI_EOPNOTSUPP;
	fab_engine_lock(ep->base.engine);
	left = ep->base.enabled ? (ssize_t) (ep->rx->recv.pool.max_cnt - ep->rx->recv.pool.out_cnt) : -FI_EOPBADSTATE;
	fab_engine_unlock(ep->base.engine);
	return left;
}

/* An operation that is not found has completed, and its completion shows its result. */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct tcp_ep *ep = tcp_ep_of(fid);
	ssize_t ret = 0;

	fab_engine_lock(ep->base.engine);
	if (fab_recv_is_mute(&ep->own_rx.recv)) {
		ret = -FI_EOPBADSTATE;
	} else if (!fab_trigger_cancel(&ep->base, context) && !fab_recv_cancel(&ep->own_rx.recv, context)) {
		if (ep->conn)
			tcp_tx_cancel(ep, ep->conn, context);
		else if (ep->rdm.peers)
			tcp_peers_any(ep, tcp_tx_cancel, context);
	}
	fab_engine_unlock(ep->base.engine);
	return ret;
}

/* ---- names ---- */

int tcp_rdm_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct tcp_ep *ep = tcp_ep_of(fid);
	union fab_sockaddr name = ep->base.name;

	tcp_addr_fill(&name, &ep->base);
	tcp_advertise(&name);
	return fab_name_give(&name, addr, addrlen);
}

static int ep_msg_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct tcp_ep *ep = tcp_ep_of(fid);
	union fab_sockaddr name = ep->base.name, theirs;

	fab_engine_lock(ep->base.engine);
	if (ep->conn->state == TCP_CONN_UP)
		tcp_conn_names(ep->conn, &name, &theirs);
	fab_engine_unlock(ep->base.engine);
	return fab_name_give(fab_addr_len(&name.sa) ? &name : &ep->base.name, addr, addrlen);
}

/* ---- close ---- */

static void ep_conn_release(struct fab_defer *defer)
{
	struct tcp_conn *conn = fab_container(defer, struct tcp_conn, defer);

	tcp_conn_fini(conn);
	free(conn);
}

static void ep_msg_fini(struct tcp_ep *ep)
{
	struct fab_engine *engine = ep->base.engine;

	fab_engine_lock(engine);
	tcp_msg_stop(ep);
	tcp_alive_stop(ep);
	ep->conn->defer.free = ep_conn_release;
	fab_engine_defer(engine, &ep->conn->defer);
	fab_engine_unlock(engine);
}

static int ep_close(struct fid *fid)
{
	struct tcp_ep *ep = tcp_ep_of(fid);
	struct fab_engine *engine = ep->base.engine;
	int ret;

	ret = fab_ep_check_close(&ep->base);
	if (!ret)
		ret = fab_coll_check_close(&ep->base);
	if (ret)
		return ret;
	if (ep->context.sep)
		tcp_sep_leave(ep);
	fab_engine_lock(engine);
	ep->detours |= TCP_EP_CLOSING;
	tcp_survey_stop(ep);
	fab_engine_unlock(engine);
	fab_trigger_close(&ep->base);
	if (ep->conn)
		ep_msg_fini(ep);
	else
		tcp_peers_close(ep);

	fab_engine_lock(engine);
	fab_recv_flush(&ep->own_rx.recv, FI_ECANCELED);
	fab_engine_run(engine);	/* frees the connections, which refer to this endpoint */
	tcp_coll_part(ep);
	fab_coll_fini(&ep->base);
	tcp_rx_drop_unexp(ep);
	tcp_rest_fini(ep);
	tcp_shared_put(ep);
	fab_engine_unlock(engine);
	tcp_ep_fini(ep);
	if (ep->context.sep)
		tcp_sep_closed(ep);
	free(ep);
	return 0;
}

/* ---- tables ---- */

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	switch (bfid->fclass) {
	case FI_CLASS_SRX_CTX:
		return tcp_srx_bind(tcp_ep_of(fid), bfid, flags);
	case FI_CLASS_STX_CTX:
		return tcp_stx_bind(tcp_ep_of(fid), bfid, flags);
	default:
		return fab_ep_bind(fid, bfid, flags);
	}
}

struct fi_ops tcp_ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = fab_ep_ops_open,
};

struct fi_ops_ep tcp_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.rx_size_left = ep_rx_size_left,
	.tx_size_left = ep_tx_size_left,
};

static struct fi_ops_cm msg_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = fab_ep_setname,
	.getname = ep_msg_getname,
	.getpeer = tcp_msg_getpeer,
	.connect = tcp_msg_connect,
	.accept = tcp_msg_accept,
	.shutdown = tcp_msg_shutdown,
};

static struct fi_ops_cm rdm_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = fab_ep_setname,
	.getname = tcp_rdm_getname,
	.join = fab_coll_join,
};

void tcp_ep_fill_ops(void)
{
	FAB_OPS_FILL(&tcp_ep_fid_ops);
	FAB_OPS_FILL(&tcp_ep_ops);
	FAB_OPS_FILL(&msg_cm_ops);
	FAB_OPS_FILL(&rdm_cm_ops);
}

/* ---- open ---- */

/* Initialise a MSG endpoint: its connection, and the socket or request of info->handle. */
static int ep_msg_init(struct tcp_ep *ep, struct fab_fabric *fabric, const struct fi_info *info)
{
	union fab_sockaddr name;
	int fd;

	ep->conn = calloc(1, sizeof(*ep->conn));
	if (!ep->conn)
		return -FI_ENOMEM;
	tcp_conn_init(ep->conn, ep, &tcp_msg_conn_owner);
	ep->conn->stats = fab_stats_peer_get(ep->base.stats, NULL, FI_ADDR_NOTAVAIL);
	if (!info->handle)
		return 0;
	ep->connect.req = tcp_connreq_take(fabric, info->handle);
	if (ep->connect.req)
		return 0;
	fd = tcp_pep_take_fd(fabric, info->handle);
	if (fd >= 0) {
		ep->connect.bound_fd = fd;
		fab_name_local(fd, &name);
		if (fab_addr_len(&name.sa))
			ep->base.name = name;
		return 0;
	}
	TCP_WARN(FI_LOG_EP_CTRL, "fi_endpoint: info->handle %s\n", fd == -FI_EOPBADSTATE ?
		 "is a passive endpoint that already listens; use one that does not listen" :
		 "is neither a passive endpoint nor a connection request that waits for an answer");
	tcp_conn_fini(ep->conn);
	free(ep->conn);
	return fd;
}

static bool ep_has_collectives(const struct fi_info *info)
{
	return info->ep_attr->type != FI_EP_MSG && (info->caps & FI_COLLECTIVE);
}

static struct fab_ep_ops ep_ops_for(const struct fi_info *info)
{
	return (struct fab_ep_ops) {
		.fid = &tcp_ep_fid_ops,
		.ep = &tcp_ep_ops,
		.cm = info->ep_attr->type == FI_EP_MSG ? &msg_cm_ops : &rdm_cm_ops,
		.msg = &tcp_msg_ops,
		.tagged = &tcp_tagged_ops,
		.rma = &tcp_rma_ops,
		.atomic = &tcp_atomic_ops,
		.collective = ep_has_collectives(info) ? &fab_coll_ops : NULL,
		.profiler = info->ep_attr->type == FI_EP_MSG ? &tcp_msg_profiler : &tcp_rdm_profiler,
		.enable = tcp_ep_enable,
	};
}

/* Set the conditions under which each kind of operation starts, so that the requested order is kept as far as the
 * stream does not keep it by itself. A fetching atomic reads and writes; collectives have no order with other
 * operations. */
static void ep_choose_waits(struct tcp_ep *ep, uint64_t order)
{
	uint8_t rma = order & (FI_ORDER_RAS | FI_ORDER_WAS) ? TCP_TX_BEHIND_SENDS : TCP_TX_AT_ONCE;
	uint8_t war = order & FI_ORDER_WAR ? TCP_TX_BEHIND_READS : TCP_TX_AT_ONCE;

	ep->waits[FAB_OP_SEND] = ep->waits[FAB_OP_TSEND] = order & FI_ORDER_SAR ? TCP_TX_BEHIND_READS : TCP_TX_AT_ONCE;
	ep->waits[FAB_OP_WRITE] = rma | war | (order & FI_ORDER_RMA_WAR ? TCP_TX_BEHIND_READS : TCP_TX_AT_ONCE);
	ep->waits[FAB_OP_ATOMIC] = rma | war;
	ep->waits[FAB_OP_READ] = rma | (order & (FI_ORDER_RAR | FI_ORDER_RMA_RAR) ? TCP_TX_BEHIND_DIRECT :
										       TCP_TX_AT_ONCE);
	ep->waits[FAB_OP_FETCH_ATOMIC] = rma | war | (order & FI_ORDER_RAR ? TCP_TX_BEHIND_READS : TCP_TX_AT_ONCE);
}

int tcp_ep_init(struct tcp_ep *ep, struct fab_domain *domain, const struct fi_info *info, const struct fab_ep_ops *ops,
		void *context)
{
	int ret;

	ret = fab_ep_init(&ep->base, domain, info, ops, context);
	if (ret)
		return ret;
	ep->connect.bound_fd = -1;
	ep->incarnation = fab_random64() | 1;	/* 0 means unknown */
	ep->pid = getpid();
	ep->shared_memory = tcp_params.shared_memory;
	ep->detours = domain->attr.caps & FI_HMEM ? TCP_EP_HMEM : 0;
	ep->directed_recv = info->ep_attr->type != FI_EP_MSG && (ep->base.caps & FI_DIRECTED_RECV);
	ep_choose_waits(ep, info->tx_attr->msg_order);
	ret = tcp_rx_ctx_init(&ep->own_rx, ep, info->rx_attr);
	if (ret) {
		fab_ep_fini(&ep->base);
		return ret;
	}
	tcp_tx_ctx_init(&ep->own_tx, info->tx_attr);
	tcp_rest_init(ep);
	if (info->ep_attr->type != FI_EP_MSG)
		tcp_group_init(&ep->own_rx, domain);
	ep->rx = &ep->own_rx;
	ep->tx = &ep->own_tx;
	return 0;
}

void tcp_ep_fini(struct tcp_ep *ep)
{
	tcp_rx_ctx_fini(&ep->own_rx);
	tcp_tx_ctx_fini(&ep->own_tx);
	fab_ep_fini(&ep->base);
}

int tcp_ep_start(struct fab_ep *base, struct fab_domain *domain, const struct fi_info *info, void *context)
{
	struct tcp_ep *ep = fab_container(base, struct tcp_ep, base);
	struct fab_ep_ops ops = ep_ops_for(info);
	int ret;

	ret = tcp_info_check(info, domain);
	if (ret)
		return ret;
	ret = tcp_ep_init(ep, domain, info, &ops, context);
	if (ret)
		return ret;
	if (info->ep_attr->type == FI_EP_MSG)
		ret = ep_msg_init(ep, domain->fabric, info);
	else if (ep_has_collectives(info))
		ret = fab_coll_open(&ep->base, &tcp_coll_net);
	if (ret)
		tcp_ep_fini(ep);
	return ret;
}
