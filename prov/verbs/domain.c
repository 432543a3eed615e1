/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabrics and domains: the common ones, plus a protection domain of the device.
 */
#include "verbs/kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include "common/lent/lent.h"
#include "common/provider/provider.h"
#include "verbs/srx.h"

static int domain_close(struct fid *fid)
{
	struct vrb_domain *domain = fab_container(fid, struct vrb_domain, base.domain_fid.fid);
	struct ibv_pd *pd = domain->pd;
	int ret;

	if (!atomic_load(&domain->base.ref))
		vrb_unanswered_end(domain, true);
	ret = fab_domain_fini(&domain->base);
	if (ret)
		return ret;
	ret = ibv_dealloc_pd(pd);
	if (ret)
		VRB_WARN(FI_LOG_DOMAIN, "ibv_dealloc_pd on %s: %s\n", domain->dev->name, strerror(ret));
	if (domain->channel)
		rdma_destroy_event_channel(domain->channel);
	vrb_ep_free_late(domain);
	pthread_mutex_destroy(&domain->late_lock);
	pthread_mutex_destroy(&domain->lock);
	free(domain);
	return 0;
}

static struct fi_ops domain_fid_ops = FAB_DOMAIN_FID(domain_close, fab_domain_control);

static int domain_av_open(struct fid_domain *fid, struct fi_av_attr *attr, struct fid_av **av, void *context)
{
	return fab_container(fid, struct vrb_domain, base.domain_fid)->kind->av_open(fid, attr, av, context);
}

static int domain_srx_ctx(struct fid_domain *fid, struct fi_rx_attr *attr, struct fid_ep **srx, void *context)
{
	const struct vrb_domain *domain = fab_container(fid, struct vrb_domain, base.domain_fid);

	return domain->kind->srx ? vrb_srx_open(fid, attr, srx, context) : -FI_ENOSYS;
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	FAB_DOMAIN_SLOTS,
	.av_open = domain_av_open,
	.query_atomic = vrb_query_atomic,
	.cq_open = vrb_cq_open,
	.srx_ctx = domain_srx_ctx,
};

/* The tables of domains of each kind, in the order of vrb_kinds: endpoints have different sizes. */
static struct fab_domain_ops domain_tables[VRB_KIND_CNT];

static const struct fab_domain_ops *tables_of(const struct vrb_kind *kind)
{
	size_t i = 0;

	while (vrb_kinds[i] != kind)
		i++;
	return &domain_tables[i];
}

static int domain_init(struct vrb_domain *domain, struct fab_fabric *fabric, const struct fi_info *info, void *context)
{
	int ret;

	domain->pd = ibv_alloc_pd(domain->dev->verbs);
	if (!domain->pd) {
		ret = -errno;
		VRB_WARN(FI_LOG_DOMAIN, "ibv_alloc_pd on %s: %s\n", domain->dev->name, strerror(errno));
		return ret;
	}
	ret = fab_domain_init(&domain->base, fabric, info, tables_of(domain->kind), context);
	if (ret) {
		ibv_dealloc_pd(domain->pd);
		return ret;
	}
	domain->base.hmem_p2p = domain->base.hmem_p2p_only = true;
	domain->odp = vrb_mr_odp(domain->dev, domain->kind);
	domain->relaxed = vrb_info_relaxed(info) ? IBV_ACCESS_RELAXED_ORDERING : 0;
	pthread_mutex_init(&domain->lock, NULL);
	fab_list_init(&domain->pollers);
	fab_list_init(&domain->unanswered);
	pthread_mutex_init(&domain->late_lock, NULL);
	fab_list_init(&domain->late);
	return 0;
}

int vrb_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain_fid, void *context)
{
	const char *name = info && info->domain_attr ? info->domain_attr->name : NULL;
	struct vrb_domain *domain;
	int ret;

	if (!name) {
		VRB_WARN(FI_LOG_DOMAIN, "fi_domain: info names no domain; pass an info of fi_getinfo()\n");
		return -FI_EINVAL;
	}
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->dev = vrb_device_meant(info);
	if (!domain->dev) {
		VRB_WARN(FI_LOG_DOMAIN, "fi_domain: there is no device %s; fi_getinfo() lists the devices\n",
			 name);
		free(domain);
		return -FI_ENODEV;
	}
	domain->kind = vrb_kind_of(name, domain->dev->name);
	ret = domain_init(domain, fab_container(fabric, struct fab_fabric, fabric_fid), info, context);
	if (ret) {
		free(domain);
		return ret;
	}
	*domain_fid = &domain->base.domain_fid;
	return 0;
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	FAB_FABRIC_SLOTS,
	.domain = vrb_domain_open,
	.passive_ep = vrb_pep_open,
};

int vrb_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	if (!vrb_lib_ready()) {
		VRB_WARN(FI_LOG_FABRIC, "fi_fabric: there is no RDMA device on this machine\n");
		return -FI_ENODEV;
	}
	return fab_fabric_open(&vrb_prov, attr, &fabric_ops, NULL, fabric, context);
}

void vrb_domain_fill_ops(void)
{
	FAB_OPS_FILL(&domain_fid_ops);
	FAB_OPS_FILL(&domain_ops);
	FAB_OPS_FILL(&fabric_ops);
	for (size_t i = 0; i < VRB_KIND_CNT; i++)
		domain_tables[i] = (struct fab_domain_ops) {
			.fid = &domain_fid_ops, .domain = &domain_ops, .mr = &vrb_mr_ops, .lend = fab_lend,
			.ep_init = vrb_ep_init, .ep_size = vrb_kinds[i]->ep_size,
		};
}
