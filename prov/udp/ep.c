/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints: open, enable, names, close.
 *
 * Close: first new operations are refused (ep->closing). Then queued sends get one attempt to leave. Then all
 * outstanding operations complete with FI_ECANCELED, and the socket is closed. After that nothing can reach the
 * endpoint, since its groups have been left before.
 */
#include <stdlib.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/queue/queue.h"
#include "common/offers/offers.h"
#include "common/net/net.h"
#include "udp/udp.h"

/* ---- enable, cancel ---- */

static uint64_t survey_look(struct fab_survey *survey)
{
	struct udp_ep *ep = fab_container(survey, struct udp_ep, survey);

	udp_rx_survey(ep);
	return udp_tx_survey(ep);
}

static int ep_enable(struct fab_ep *base)
{
	struct udp_ep *ep = fab_container(base, struct udp_ep, base);
	int ret;

	ret = fab_ep_check_enable(&ep->base);
	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	ret = udp_port_open(&ep->port, ep, &ep->base.name, false);
	if (!ret) {
		fab_name_local(ep->port.src.fd, &ep->base.name);
		ep->sent_pass = ep->base.engine->pass_cnt - 1;
		ep->base.enabled = true;
		fab_stats_ep_name(ep->base.stats, &ep->base.name.sa, 0);
		ep->survey.look = survey_look;
		fab_survey_add(ep->base.engine, &ep->survey);
	}
	fab_engine_unlock(ep->base.engine);
	if (!ret)
		fab_av_watch(ep->base.bound.av, &ep->watch);
	return ret;
}

/* An operation that is not found has completed; its completion reports the result. */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct udp_ep *ep = udp_ep_of(fid);

	fab_engine_lock(ep->base.engine);
	if (!udp_rx_cancel(ep, context))
		udp_tx_cancel(ep, context);
	fab_engine_unlock(ep->base.engine);
	return 0;
}

/* ---- names ---- */

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct udp_ep *ep = udp_ep_of(fid);
	union fab_sockaddr name = ep->base.name;

	fab_ip_fill_addr(&udp_prov, udp_params.iface, &name, ep->base.info);
	return fab_name_give(&name, addr, addrlen);
}

/* ---- close ---- */

static int ep_close(struct fid *fid)
{
	struct udp_ep *ep = udp_ep_of(fid);
	unsigned groups;
	bool inherited;
	int ret;

	ret = fab_ep_check_close(&ep->base);
	if (ret)
		return ret;
	inherited = fab_engine_disown(ep->base.engine);
	fab_engine_lock(ep->base.engine);
	groups = udp_group_cnt(ep);
	ep->closing = !groups;
	if (ep->closing && ep->base.enabled) {
		if (!inherited)
			udp_tx_flush(ep);
		udp_port_close(&ep->port);
		fab_survey_del(&ep->survey);
	}
	fab_engine_unlock(ep->base.engine);
	if (groups) {
		UDP_WARN(FI_LOG_EP_CTRL, "fi_close of an endpoint that has joined %u multicast groups; close those "
			 "first\n", groups);
		return -FI_EBUSY;
	}
	if (ep->base.enabled)
		fab_av_unwatch(ep->base.bound.av, &ep->watch);
	fab_engine_lock(ep->base.engine);
	udp_tx_cancel_all(ep);
	udp_rx_cancel_all(ep);
	udp_tx_fini(ep);
	udp_rx_fini(ep);
	fab_stats_peers_fini(&ep->peers);
	fab_engine_unlock(ep->base.engine);
	fab_ep_fini(&ep->base);
	free(ep);
	return 0;
}

/* ---- tables ---- */

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = fab_ep_bind,
	.control = fab_ep_control,
};

static struct fi_ops_ep ep_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = fab_ep_getopt,
	.setopt = fab_ep_setopt,
};

static struct fi_ops_cm unicast_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = fab_ep_setname,
	.getname = ep_getname,
};

static struct fi_ops_cm multicast_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = fab_ep_setname,
	.getname = ep_getname,
	.join = udp_join,
};

/* ---- open ---- */

/* A datagram cannot prove an authorization key, so refuse an endpoint with a key rather than ignore it. */
static int check_key(const struct fab_ep *ep)
{
	if (!ep->auth_key && !ep->domain->auth.per_av)
		return 0;
	UDP_WARN(FI_LOG_EP_CTRL, "fi_endpoint: datagrams carry no authorization keys; open the endpoint without one\n");
	return -FI_EINVAL;
}

int udp_ep_init(struct fab_ep *base, struct fab_domain *domain, const struct fi_info *info, void *context)
{
	struct udp_ep *ep = fab_container(base, struct udp_ep, base);
	struct fab_ep_ops ops = {
		.fid = &ep_fid_ops,
		.ep = &ep_ep_ops,
		.cm = info->caps & FI_MULTICAST ? &multicast_cm_ops : &unicast_cm_ops,
		.msg = &udp_msg_ops,
		.enable = ep_enable,
	};
	int ret;

	ret = udp_info_check(info, domain->fabric->fabric_fid.api_version);
	if (ret)
		return ret;
	ret = fab_ep_init(&ep->base, domain, info, &ops, context);
	if (ret)
		return ret;
	ret = check_key(&ep->base);
	if (ret) {
		fab_ep_fini(&ep->base);
		return ret;
	}
	ep->want_src = ep->base.caps & (FI_SOURCE | FI_SOURCE_ERR);
	ep->source_err = ep->base.caps & FI_SOURCE_ERR;
	ep->port.src.fd = -1;
	fab_list_init(&ep->ports);
	udp_tx_init(ep, info->tx_attr);
	udp_rx_init(ep, info->rx_attr);
	return 0;
}
