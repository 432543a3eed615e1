/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints: open, enable, options, close.
 *
 * Close: first new operations are refused (ep->closing). Then the operations that the provider below has get FLUSH_MS
 * to complete. Then all connections end, which completes the remaining operations in error.
 */
#include "rxm/rxm.h"

#include <sched.h>
#include <stdlib.h>
#include "base/clock.h"
#include "common/collective/collective.h"
#include "common/queue/queue.h"
#include "common/offers/offers.h"
#include "common/net/net.h"
#include "common/hints/hints.h"
#include "common/ops/ops.h"
#include "common/trigger/trigger.h"

#define FLUSH_MS	1000

/* ---- enable ---- */

static int listen_below(struct rxm_ep *ep)
{
	struct fi_info *info = fi_dupinfo(ep->domain->below_info);
	union fab_any_addr addr;
	size_t len = sizeof(addr);
	int ret;

	if (!info)
		return -FI_ENOMEM;
	free(info->src_addr);
	info->src_addr = NULL;
	fab_addr_expand(&ep->addr, &addr);
	ret = fab_name_set(&info->src_addr, &info->src_addrlen, &addr);
	if (!ret)
		ret = fi_passive_ep(ep->poller->fabric, info, &ep->pep, ep);
	fi_freeinfo(info);
	if (ret)
		return ret;
	ret = fi_pep_bind(ep->pep, &ep->poller->eq->fid, 0);
	if (!ret)
		ret = fi_listen(ep->pep);
	if (!ret)
		ret = fi_getname(&ep->pep->fid, &addr, &len);
	if (!ret)
		fab_addr_condense(&addr, &ep->addr);
	return ret;
}

static int ep_enable(struct fab_ep *base)
{
	struct rxm_ep *ep = fab_container(base, struct rxm_ep, base);
	int ret = fab_ep_check_enable(&ep->base);

	if (!ret)
		ret = rxm_poller_get(ep->domain, ep->base.engine, &ep->poller);
	if (ret)
		return ret;
	ret = rxm_peers_open(ep);
	if (!ret)
		ret = listen_below(ep);
	if (ret)
		goto close_pep;
	fab_engine_lock(ep->base.engine);
	fab_list_add_tail(&ep->poller->eps, &ep->poller_link);
	ep->base.enabled = true;
	rxm_survey_start(ep);
	fab_engine_unlock(ep->base.engine);
	return 0;

close_pep:
	if (ep->pep)
		fi_close(&ep->pep->fid);
	if (ep->peers.bucket)
		fab_av_unwatch(ep->base.bound.av, &ep->watch);
	rxm_peers_close(ep);
	rxm_poller_put(ep->domain, ep->poller);
	ep->pep = NULL;
	ep->poller = NULL;
	return ret;
}

/* ---- control, options, cancel, names ---- */

static int ep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	if (level == FI_OPT_ENDPOINT && optname == FI_OPT_MIN_MULTI_RECV)
		return fab_getopt_size(rxm_ep_of(fid)->recv.min_multi_recv, optval, optlen);
	return fab_ep_getopt(fid, level, optname, optval, optlen);
}

static int ep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_MIN_MULTI_RECV)
		return fab_ep_setopt(fid, level, optname, optval, optlen);
	return fab_recv_setopt(&rxm_ep_of(fid)->recv, optval, optlen);
}

/* An operation that is not found has completed or can no longer be cancelled; its completion reports the result. */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct rxm_ep *ep = rxm_ep_of(fid);

	fab_engine_lock(ep->base.engine);
	if (!fab_trigger_cancel(&ep->base, context) && !fab_recv_cancel(&ep->recv, context))
		rxm_tx_cancel(ep, context, false);
	fab_engine_unlock(ep->base.engine);
	return 0;
}

/* The number of operations that can still be posted (API 1.x). */
static ssize_t ep_tx_size_left(struct fid_ep *fid)
{
	struct rxm_ep *ep = rxm_ep_of(&fid->fid);
	ssize_t left;

	fab_engine_lock(ep->base.engine);
	left = ep->base.enabled ? (ssize_t) (ep->tx_size - ep->tx_cnt) : -FI_EOPBADSTATE;
	fab_engine_unlock(ep->base.engine);
	return left;
}

static ssize_t ep_rx_size_left(struct fid_ep *fid)
{
	struct rxm_ep *ep = rxm_ep_of(&fid->fid);
	ssize_t left;

	fab_engine_lock(ep->base.engine);
	left = ep->base.enabled ? (ssize_t) (ep->recv.pool.max_cnt - ep->recv.pool.out_cnt) : -FI_EOPBADSTATE;
	fab_engine_unlock(ep->base.engine);
	return left;
}

/* Set the address to listen on; addr NULL: any. If the GID is unspecified, use the GID of the domain's port, since
 * peers cannot connect to an unspecified GID. 0 or -FI_EINVAL, logged. */
static int take_name(struct rxm_ep *ep, const struct fi_info *info, const void *addr, size_t addrlen)
{
	const struct fi_info *below = ep->domain->below_info;
	union fab_any_addr full;
	int ret = fab_any_name_take(&rxm_prov, &full, info, addr, addrlen);

	if (ret)
		return ret;
	if (full.sa.sa_family == FAB_AF_IB && fab_addr_is_any(&full.sa) && below->src_addr &&
	    below->src_addrlen >= sizeof(full.sib)) {
		uint16_t port = fab_addr_port(&full.sa);

		memcpy(&full.sib, below->src_addr, sizeof(full.sib));
		fab_addr_set_port(&full.sa, port);
	}
	fab_addr_condense(&full, &ep->addr);
	return 0;
}

static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct rxm_ep *ep = rxm_ep_of(fid);

	if (!ep->base.enabled)
		return take_name(ep, ep->base.info, addr, addrlen);
	RXM_WARN(FI_LOG_EP_CTRL, "fi_setname: the endpoint is enabled already\n");
	return -FI_EOPBADSTATE;
}

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct rxm_ep *ep = rxm_ep_of(fid);
	union fab_sockaddr name = ep->addr;
	union fab_any_addr full;

	fab_ip_fill_addr(&rxm_prov, NULL, &name, ep->base.info);
	fab_addr_expand(&name, &full);
	return fab_name_give(&full, addr, addrlen);
}

/* ---- close ---- */

static bool is_busy(const struct rxm_ep *ep)
{
	struct fab_list *link;

	fab_list_for_each(&ep->conns, link) {
		const struct rxm_conn *conn = fab_container(link, struct rxm_conn, link);

		if (conn->state == RXM_CONN_UP && (!fab_list_empty(&conn->flying) || !fab_list_empty(&conn->ctlq) ||
						   !fab_list_empty(&conn->answerq) || !fab_list_empty(&conn->txq)))
			return true;
	}
	return false;
}

static void flush_receives(struct rxm_ep *ep, int err)
{
	fab_recv_flush(&ep->recv, err);
}

/* Requests of peers are refused from now on. */
static void stop_listening(struct rxm_ep *ep)
{
	if (ep->pep)
		fi_close(&ep->pep->fid);
	ep->pep = NULL;
}

void rxm_ep_lost(struct rxm_ep *ep, int err)
{
	stop_listening(ep);
	rxm_peers_lost(ep, err);
	flush_receives(ep, err);
}

/* Give queued operations limited time to complete. */
static void flush(struct rxm_ep *ep)
{
	uint64_t deadline_ns = fab_now_ns() + FLUSH_MS * 1000000ULL;

	while (is_busy(ep) && fab_now_ns() < deadline_ns)
		rxm_poller_wait(ep->poller, 10);
}

static void rxm_ep_stop(struct rxm_ep *ep)
{
	fab_av_unwatch(ep->base.bound.av, &ep->watch);
	fab_engine_lock(ep->base.engine);
	if (fab_engine_is_inherited(ep->base.engine)) {
		ep->poller->odd = ep->poller->watch = true;
		ep->poller->lost = FI_ECANCELED;	/* the connections are the parent's: nothing of them is read */
		ep->poller->reading = false;		/* by a thread of the parent */
	} else {
		flush(ep);
	}
	stop_listening(ep);
	fab_survey_del(&ep->survey);
	fab_timer_stop(&ep->timer);
	rxm_peers_close(ep);
	/* a thread that registers buffers comes back to what they were for */
	while (ep->poller->registering) {
		fab_engine_unlock(ep->base.engine);
		sched_yield();
		fab_engine_lock(ep->base.engine);
	}
	rxm_poller_settle(ep->poller);
	fab_list_remove(&ep->poller_link);
	fab_engine_unlock(ep->base.engine);
	rxm_poller_put(ep->domain, ep->poller);
}

static void free_orphan(struct fab_entry *entry)
{
	free(fab_container(entry, struct rxm_kept, orphan));
}

static void drop_orphans(struct rxm_ep *ep)
{
	fab_recv_drop_all(&ep->recv);
	fab_table_clear(&ep->orphans, free_orphan);
	fab_table_fini(&ep->orphans);
}

static int ep_close(struct fid *fid)
{
	struct rxm_ep *ep = rxm_ep_of(fid);
	int ret = fab_ep_check_close(&ep->base);

	if (!ret)
		ret = fab_coll_check_close(&ep->base);
	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	ep->closing = true;
	fab_engine_unlock(ep->base.engine);
	fab_trigger_close(&ep->base);
	if (ep->base.enabled)
		rxm_ep_stop(ep);
	fab_engine_lock(ep->base.engine);
	flush_receives(ep, FI_ECANCELED);
	fab_coll_fini(&ep->base);
	drop_orphans(ep);
	rxm_account_end(ep);
	fab_engine_unlock(ep->base.engine);
	fab_recv_fini(&ep->recv);
	rxm_bufs_fini(&ep->small);
	rxm_bufs_fini(&ep->big);
	fab_pool_fini(&ep->tx_pool);
	fab_ep_fini(&ep->base);
	free(ep);
	return 0;
}

/* ---- open ---- */

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = fab_ep_bind,
	.control = fab_ep_control,
};

static struct fi_ops_ep ep_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.rx_size_left = ep_rx_size_left,
	.tx_size_left = ep_tx_size_left,
};

static struct fi_ops_cm ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = ep_setname,
	.getname = ep_getname,
	.join = fab_coll_join,
};

static int rxm_ep_check_open(const struct rxm_domain *domain, const struct fi_info *info)
{
	const struct rxm_fabric *fabric = fab_container(domain->base.fabric, struct rxm_fabric, base);
	struct fab_offer offer = rxm_offer_over(fabric->below_name);

	if (info->ep_attr->type != FI_EP_RDM) {
		RXM_WARN(FI_LOG_EP_CTRL, "fi_endpoint: ep_attr->type is %d; " RXM_LAYER " has FI_EP_RDM\n",
			 info->ep_attr->type);
		return -FI_EINVAL;
	}
	offer.info = domain->most;
	return fab_hints_check(&rxm_prov, domain->base.fabric->fabric_fid.api_version, info, &offer, 1);
}

int rxm_ep_init(struct fab_ep *base, struct fab_domain *base_domain, const struct fi_info *info, void *context)
{
	struct rxm_domain *domain = fab_container(base_domain, struct rxm_domain, base);
	struct rxm_ep *ep = fab_container(base, struct rxm_ep, base);
	struct fab_ep_ops ops = {
		.fid = &ep_fid_ops, .ep = &ep_ep_ops, .cm = &ep_cm_ops,
		.msg = &rxm_msg_ops,
		.tagged = &rxm_tagged_ops,
		.rma = &rxm_rma_ops,
		.atomic = &rxm_atomic_ops,
		.collective = &fab_coll_ops,
		.enable = ep_enable,
	};
	struct fid_domain *reg = domain->mr_local ? domain->below : NULL;
	size_t most = fab_max(rxm_params.buffer_size, (size_t) RXM_BIG_MIN);
	int ret;

	ret = rxm_ep_check_open(domain, info);
	if (!ret)
		ret = fab_ep_init(&ep->base, &domain->base, info, &ops, context);
	if (ret)
		return ret;
	ep->domain = domain;
	ep->incarnation = fab_random64();
	ret = take_name(ep, info, info->src_addr, info->src_addrlen);
	if (!ret)
		ret = fab_recv_init(&ep->recv, &ep->base, info->rx_attr->size, &rxm_recv_ops);
	if (ret)
		goto fini_base;
	ret = fab_table_init(&ep->orphans);
	if (ret)
		goto fini_recv;
	if (info->caps & FI_COLLECTIVE)
		ret = fab_coll_open(&ep->base, &rxm_coll_net);
	if (ret)
		goto fini_orphans;
	ep->has_coll = info->caps & FI_COLLECTIVE;
	ep->tx_size = (uint32_t) info->tx_attr->size;
	ep->rx_len = sizeof(struct rxm_pkt) + most;
	fab_pool_init(&ep->tx_pool, &(struct fab_pool_attr) { .size = sizeof(struct rxm_tx), .chunk_cnt = 16 });
	rxm_bufs_init(&ep->small, reg, RXM_SMALL);
	rxm_bufs_init(&ep->big, reg, most);
	fab_list_init(&ep->conns);
	fab_list_init(&ep->poller_link);
	fab_timer_init(&ep->timer, NULL);
	return 0;

fini_orphans:
	fab_table_fini(&ep->orphans);
fini_recv:
	fab_recv_fini(&ep->recv);
fini_base:
	fab_ep_fini(&ep->base);
	return ret;
}

void rxm_ep_fill_ops(void)
{
	FAB_OPS_FILL(&ep_fid_ops);
	FAB_OPS_FILL(&ep_ep_ops);
	FAB_OPS_FILL(&ep_cm_ops);
	FAB_OPS_FILL(&rxm_msg_ops);
	FAB_OPS_FILL(&rxm_tagged_ops);
	FAB_OPS_FILL(&rxm_rma_ops);
	FAB_OPS_FILL(&rxm_atomic_ops);
}
