/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabrics and domains: the common ones, with udp's operation tables.
 */
#include "common/lent/lent.h"
#include "common/provider/provider.h"
#include "udp/udp.h"

static struct fi_ops domain_fid_ops = FAB_DOMAIN_FID(fab_domain_close, fab_domain_control);

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	FAB_DOMAIN_SLOTS,
	.av_open = fab_av_open,
	.cq_open = fab_cq_open,
};

static const struct fab_domain_ops domain_tables = {
	.fid = &domain_fid_ops,
	.domain = &domain_ops,
	.mr = &fab_mr_ops,
	.lend = fab_lend,
	.ep_init = udp_ep_init,
	.ep_size = sizeof(struct udp_ep),
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	FAB_FABRIC_SLOTS,
	.domain = fab_domain_open,
};

int udp_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_fid, void *context)
{
	return fab_fabric_open(&udp_prov, attr, &fabric_ops, &domain_tables, fabric_fid, context);
}
