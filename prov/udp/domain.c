/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabrics and domains: those of prov/common, with udp's operation tables.
 */
#include "common/av/av.h"
#include "common/lent/lent.h"
#include "common/memory/memory.h"
#include "common/queue/queue.h"
#include "udp/udp.h"

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fab_domain_close,
	.bind = fab_domain_bind,
	.control = fab_domain_control,
	.ops_set = fab_domain_set_ops,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = fab_av_open,
	.cq_open = fab_cq_open,
	.endpoint = udp_ep_open,
	.cntr_open = fab_cntr_open,
	.poll_open = fab_poll_open,
	.endpoint2 = fab_endpoint2,
};

static const struct fab_domain_ops domain_tables = {
	.fid = &domain_fid_ops,
	.domain = &domain_ops,
	.mr = &fab_mr_ops,
	.lend = fab_lend,
};

static int domain_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_domain **domain, void *context)
{
	struct fab_fabric *fabric = fab_container(fabric_fid, struct fab_fabric, fabric_fid);

	return fab_domain_open(fabric, info, &domain_tables, domain, context);
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fab_fabric_close,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = domain_open,
	.eq_open = fab_eq_open,
	.wait_open = fab_wait_open,
	.trywait = fab_trywait,
	.domain2 = fab_domain2,
};

int udp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_fid, void *context)
{
	return fab_fabric_open(&udp_prov, attr, &fabric_fid_ops, &fabric_ops, fabric_fid, context);
}
