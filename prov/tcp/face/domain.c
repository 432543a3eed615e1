/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabrics and domains of tcp: the tables of their operations, most of which are in prov/common.
 */
#include "tcp/face/face.h"

#include "common/explain/explain.h"
#include "common/lent/lent.h"
#include "common/provider/provider.h"
#include "common/trigger/trigger.h"
#include "tcp/calls/calls.h"
#include "tcp/connect/connect.h"
#include "tcp/endpoint/endpoint.h"
#include "tcp/handshake/handshake.h"
#include "tcp/local/local.h"
#include "tcp/params/params.h"

/* ---- domain ---- */

static int domain_control(struct fid *fid, int command, void *arg)
{
	return fab_domain_work_control(fid, tcp_calls, command, arg);
}

static struct fi_ops domain_fid_ops = FAB_DOMAIN_FID(fab_domain_close, domain_control);

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	FAB_DOMAIN_SLOTS,
	.av_open = fab_av_open,
	.cq_open = fab_cq_open,
	.scalable_ep = tcp_sep_open,
	.stx_ctx = tcp_stx_open,
	.srx_ctx = tcp_srx_open,
	.query_collective = fab_coll_query,
	.query_atomic = tcp_query_atomic,
};

static const struct fab_domain_ops domain_tables = {
	.fid = &domain_fid_ops,
	.domain = &domain_ops,
	.mr = &fab_mr_ops,
	.lend = fab_lend,
	.ep_init = tcp_ep_start,
	.ep_size = sizeof(struct tcp_ep),
};

/* Open a domain as info says, except that FI_TCP_DISABLE_AUTO_PROGRESS disables the progress thread. */
int tcp_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain, void *context)
{
	const struct fab_fabric *owner = fab_container(fabric, struct fab_fabric, fabric_fid);
	/* datagram endpoints (of "sockets") have no connections; others may follow on the same domain */
	bool connects = !info || !info->ep_attr || info->ep_attr->type != FI_EP_DGRAM;
	struct fab_auth_key *key = NULL;
	struct fi_info *copy = NULL;
	struct fab_domain *opened;
	int ret;

	if (tcp_params.auto_progress_off && info && info->domain_attr) {
		copy = fab_info_copy(owner->prov, fabric->api_version, info);
		if (!copy)
			return -FI_ENOMEM;
		copy->domain_attr->data_progress = FI_PROGRESS_MANUAL;
		if (copy->domain_attr->control_progress == FI_PROGRESS_AUTO)
			copy->domain_attr->control_progress = FI_PROGRESS_MANUAL;
		info = copy;
	}
	ret = tcp_auth_spare("fi_domain", &key);
	if (ret)
		goto free_copy;
	ret = fab_domain_open(fabric, info, domain, context);
	if (ret) {
		fab_auth_put(key);
		goto free_copy;
	}
	opened = fab_container(*domain, struct fab_domain, domain_fid);
	opened->auth.proven = true;
	tcp_windows_open(&opened->mr_map);
	opened->auth.spare = key;
	opened->av_firewall = connects;

free_copy:
	fi_freeinfo(copy);
	return ret;
}

/* ---- fabric ---- */

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	FAB_FABRIC_SLOTS,
	.domain = tcp_domain_open,
	.passive_ep = tcp_pep_open,
};

int tcp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return fab_fabric_open(&tcp_prov, attr, &fabric_ops, &domain_tables, fabric, context);
}

int sockets_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return fab_fabric_open(&sockets_prov, attr, &fabric_ops, &domain_tables, fabric, context);
}

void tcp_domain_fill_ops(void)
{
	FAB_OPS_FILL(&domain_fid_ops);
	FAB_OPS_FILL(&domain_ops);
	FAB_OPS_FILL(&fabric_ops);
}
