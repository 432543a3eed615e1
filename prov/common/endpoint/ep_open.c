/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Opening and closing endpoints: initialisation from a struct fi_info, and the calls that open.
 */
#include "common/endpoint/ep.h"

#include <stdlib.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "common/explain/explain.h"
#include "common/hints/hints.h"
#include "common/net/net.h"
#include "common/ops/ops.h"

#define TX_MODIFIERS (FI_SEND | FI_READ | FI_WRITE)
#define RX_MODIFIERS (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* The endpoint's capabilities, restricted to those of its transmit and receive attributes, of which 0 does not
 * restrict. */
static uint64_t effective_caps(const struct fi_info *info)
{
	uint64_t caps = fab_caps_full(info->caps);

	if (info->tx_attr && info->tx_attr->caps)
		caps &= fab_caps_full(info->tx_attr->caps) | ~TX_MODIFIERS;
	if (info->rx_attr && info->rx_attr->caps)
		caps &= fab_caps_full(info->rx_attr->caps) | ~RX_MODIFIERS;
	return caps;
}

static int check_info(const struct fab_domain *domain, const struct fi_info *info)
{
	const struct fi_provider *prov = domain->fabric->prov;

	if (!info || !info->ep_attr || !info->domain_attr || !info->fabric_attr) {
		FI_WARN(prov, FI_LOG_EP_CTRL, "fi_endpoint: info %s; pass an info of fi_getinfo()\n",
			info ? "lacks ep_attr, domain_attr or fabric_attr" : "is NULL");
		return -FI_EINVAL;
	}
	switch (info->ep_attr->type) {
	case FI_EP_MSG:
		return 0;
	case FI_EP_RDM:
	case FI_EP_DGRAM:
		if (info->addr_format == domain->attr.addr_format)
			return 0;
		FI_WARN(prov, FI_LOG_EP_CTRL, "fi_endpoint: info->addr_format is %u, but domain %s and its address "
			"vectors have %u; open the domain with this info\n", info->addr_format, domain->name,
			domain->attr.addr_format);
		return -FI_EINVAL;
	default:
		FI_WARN(prov, FI_LOG_EP_CTRL, "fi_endpoint: ep_attr->type is %d, which is not an endpoint type\n",
			info->ep_attr->type);
		return -FI_EINVAL;
	}
}

/* Get the endpoint's authorization key: its own, the domain's, or the provider's; NULL with FI_AV_AUTH_KEY. *key is a
 * new reference. 0 or -FI_E*. */
static int ep_get_auth_key(const struct fab_domain *domain, const struct fi_info *info, struct fab_auth_key **key)
{
	const struct fi_provider *prov = domain->fabric->prov;
	const struct fi_ep_attr *attr = info->ep_attr;
	size_t len = FI_VERSION_LT(domain->fabric->fabric_fid.api_version, FI_VERSION(1, 5)) ? 0 : attr->auth_key_size;

	*key = NULL;
	if (domain->auth.per_av && (attr->type == FI_EP_MSG || (len && len != FI_AV_AUTH_KEY))) {
		FI_WARN(prov, FI_LOG_EP_CTRL, "fi_endpoint: domain %s was opened with FI_AV_AUTH_KEY, so its "
			"endpoints take their authorization keys from address vectors; pass no key, and no FI_EP_MSG\n",
			domain->name);
		return -FI_EINVAL;
	}
	if (len && !domain->auth.per_av)
		return fab_auth_get(prov, "fi_endpoint", attr->auth_key, len, key);
	if (domain->auth.per_av)
		return 0;
	*key = fab_auth_share(domain->auth.key);
	if (!*key && attr->type != FI_EP_DGRAM)
		*key = fab_auth_share(domain->auth.spare);
	return 0;
}

/* Set the name of an endpoint whose addresses are those of IP. 0 or -FI_EINVAL, logged. */
static int name_take(struct fab_ep *ep, const void *addr, size_t addrlen)
{
	if (ep->info->addr_format != FI_SOCKADDR_IN && ep->info->addr_format != FI_SOCKADDR_IN6)
		return 0;
	return fab_name_take(ep->domain->fabric->prov, &ep->name, ep->info, addr, addrlen);
}

/* The endpoint's table for a family of calls, or the table in which all are "not supported". */
#define TABLE(ops, none) ({ if (ops) FAB_OPS_FILL(ops); (ops) ? (ops) : &(none); })
/* Like TABLE, for calls that need a capability. Without it, all calls are "not supported". */
#define TABLE_FOR(cap, ops, none) (info->caps & (cap) ? TABLE(ops, none) : &(none))

int fab_ep_init(struct fab_ep *ep, struct fab_domain *domain, const struct fi_info *info, const struct fab_ep_ops *ops,
		void *context)
{
	struct fab_auth_key *auth_key;
	int ret;

	ret = check_info(domain, info);
	if (!ret)
		ret = ep_get_auth_key(domain, info, &auth_key);
	if (ret)
		return ret;
	*ep = (struct fab_ep) {
		.domain = domain,
		.engine = &domain->engine,
		.type = info->ep_attr->type,
		.caps = effective_caps(info),
		.report.tx_msg_flags = FI_COMPLETION,
		.report.rx_msg_flags = FI_COMPLETION,
		.auth_key = auth_key,
		.info = fab_info_copy(domain->fabric->prov, domain->fabric->fabric_fid.api_version, info),
		.enable = ops->enable,
		.views.profiler = ops->profiler,
		.stats = fab_stats_ep_open(domain->fabric->prov, info, domain->fabric->layered),
		.forks = fab_fork_cnt,
	};
	ep->report.want_src = ep->caps & FI_SOURCE;
	ep->report.src_err = ep->report.want_src && (ep->caps & FI_SOURCE_ERR);
	fab_list_init(&ep->views.profiles);
	fab_list_init(&ep->views.aliases);
	if (!ep->info || !ep->stats) {
		ret = -FI_ENOMEM;
		goto free_info;
	}
	FAB_OPS_FILL(ops->fid);
	FAB_OPS_FILL(ops->ep);
	ep->own = (struct fab_ep_fid) {
		.ep_fid = {
			.fid = { .fclass = FI_CLASS_EP, .context = context, .ops = ops->fid },
			.ops = ops->ep,
			.cm = TABLE(ops->cm, fab_no_cm),
			.msg = TABLE_FOR(FI_MSG, ops->msg, fab_no_msg),
			.tagged = TABLE_FOR(FI_TAGGED, ops->tagged, fab_no_tagged),
			.rma = TABLE_FOR(FI_RMA, ops->rma, fab_no_rma),
			.atomic = TABLE_FOR(FI_ATOMIC, ops->atomic, fab_no_atomic),
			.collective = TABLE_FOR(FI_COLLECTIVE, ops->collective, fab_no_collective),
		},
		.ep = ep,
		.tx_op_flags = info->tx_attr ? info->tx_attr->op_flags : 0,
		.rx_op_flags = info->rx_attr ? info->rx_attr->op_flags : 0,
	};
	ret = name_take(ep, info->src_addr, info->src_addrlen);
	if (!ret)
		ret = fab_ops_part_take(&ep->ep_fid, ep->caps, &ep->part);
	if (ret)
		goto free_info;
	atomic_fetch_add(&domain->ref, 1);
	return 0;

free_info:
	fab_stats_ep_close(ep->stats);
	fi_freeinfo(ep->info);
	fab_auth_put(auth_key);
	return ret;
}

int fab_ep_check_close(const struct fab_ep *ep)
{
	bool viewed, aliased;

	fab_engine_disown(ep->engine);
	fab_engine_lock(ep->engine);
	viewed = !fab_list_empty(&ep->views.profiles);
	aliased = !fab_list_empty(&ep->views.aliases);
	fab_engine_unlock(ep->engine);
	if (viewed) {
		FI_WARN(ep->domain->fabric->prov, FI_LOG_EP_CTRL, "fi_close of an endpoint whose fi_profile_open() has "
			"not been undone: fi_profile_close() first\n");
		return -FI_EBUSY;
	}
	if (!aliased)
		return 0;
	FI_WARN(ep->domain->fabric->prov, FI_LOG_EP_CTRL, "fi_close of an endpoint that has aliases (fi_ep_alias): "
		"close them first\n");
	return -FI_EBUSY;
}

void fab_ep_fini(struct fab_ep *ep)
{
	fab_ep_unbind(ep);
	if (ep->forks == fab_fork_cnt)
		fab_stats_ep_close(ep->stats);
	fab_auth_put(ep->auth_key);
	fi_freeinfo(ep->info);
	free(ep->part);
	atomic_fetch_sub(&ep->domain->ref, 1);
}

/* ---- calls that open ---- */

int fab_ep_check_parts(const struct fab_domain *domain, const struct fi_info *info)
{
	if (info && info->ep_attr && info->tx_attr && info->rx_attr && info->domain_attr && info->fabric_attr)
		return 0;
	FI_WARN(domain->fabric->prov, FI_LOG_EP_CTRL, "fi_endpoint: info %s; pass an info of fi_getinfo()\n",
		info ? "lacks attributes" : "is NULL");
	return -FI_EINVAL;
}

int fab_ep_open(struct fid_domain *domain_fid, struct fi_info *info, struct fid_ep **ep_fid, void *context)
{
	struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);
	struct fab_ep *ep;
	int ret;

	ret = fab_ep_check_parts(domain, info);
	if (ret)
		return ret;
	ep = calloc(1, domain->ops->ep_size);
	if (!ep)
		return -FI_ENOMEM;
	ret = domain->ops->ep_init(ep, domain, info, context);
	if (ret)
		free(ep);
	else
		*ep_fid = &ep->ep_fid;
	return ret;
}

int fab_endpoint2(struct fid_domain *domain_fid, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
		  void *context)
{
	const struct fab_domain *domain = fab_container(domain_fid, struct fab_domain, domain_fid);

	if (!flags)
		return domain_fid->ops->endpoint(domain_fid, info, ep, context);
	FI_WARN(domain->fabric->prov, FI_LOG_EP_CTRL, "fi_endpoint2: flags %#llx; none are supported\n",
		(unsigned long long) flags);
	return flags & FI_XPU ? -FI_ENOSYS : -FI_EBADFLAGS;
}

/* ---- names ---- */

int fab_ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	return fab_name_give(&fab_ep_of(fid)->name, addr, addrlen);
}

int fab_ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct fab_ep *ep = fab_ep_of(fid);

	if (!ep->enabled)
		return name_take(ep, addr, addrlen);
	FI_WARN(ep->domain->fabric->prov, FI_LOG_EP_CTRL, "fi_setname: the endpoint is enabled already\n");
	return -FI_EOPBADSTATE;
}
