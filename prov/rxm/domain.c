/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabrics, domains and memory regions. Each embeds the object of prov/common, and owns one of the provider below. A
 * region is registered below, which gives it its key, and then here under the same key, where atomics look it up.
 */
#include "rxm/rxm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "common/hmem/hmem.h"
#include "common/lent/lent.h"
#include "common/provider/provider.h"
#include "common/trigger/trigger.h"


/* ---- memory regions: the application's descriptor is a struct rxm_mr ---- */

static int mr_close(struct fid *fid)
{
	struct fid_mr *fid_mr = fab_container(fid, struct fid_mr, fid);
	struct rxm_mr *mr = fid_mr->mem_desc;
	struct fab_mr *region = fab_container(fid_mr, struct fab_mr, mr_fid);
	struct rxm_domain *domain = fab_container(region->domain, struct rxm_domain, base);
	int ret = domain->mr_close_base(fid);

	if (ret)
		return ret;
	ret = fi_close(&mr->below->fid);
	if (mr->offer)
		fi_close(&mr->offer->fid);
	free(mr);
	return ret;
}

int rxm_mr_offer(struct rxm_domain *domain, struct rxm_mr *mr)
{
	struct fid_mr *offer;
	int ret = 0;

	if ((mr->access & FI_REMOTE_READ) || mr->offer)
		return 0;
	if (mr->device)
		return -FI_EOPNOTSUPP;		/* a dma-buf without FI_SEND */
	pthread_mutex_lock(&domain->lock);
	if (!mr->offer) {
		ret = fi_mr_reg(domain->below, mr->base, mr->len, RXM_PIN_OFFER, 0, 0, 0, &offer, NULL);
		if (!ret)
			mr->offer = offer;
	}
	pthread_mutex_unlock(&domain->lock);
	return ret;
}

/* The access of a region below. A receive is filled by a read of ours, if its message is announced. */
static uint64_t access_below(const struct rxm_domain *domain, uint64_t access)
{
	return domain->mr_local && (access & FI_RECV) ? access | FI_READ : access;
}

/* From before a descriptor of a dma-buf is known, calls look at their descriptors. */
static void note_device(struct rxm_domain *domain)
{
	struct fab_list *link;

	pthread_mutex_lock(&domain->lock);
	domain->has_device = true;
	fab_list_for_each(&domain->pollers, link)
		fab_container(link, struct rxm_poller, link)->odd = true;
	pthread_mutex_unlock(&domain->lock);
}

/* Make what is registered below of a dma-buf: by its device, and once more for peers of announced messages, since the
 * application may close the descriptor after this. Here the region permits nothing: atomics would touch the memory. */
static int mr_take_dmabuf(struct rxm_domain *domain, struct rxm_mr *own, struct fi_mr_attr *low,
			  struct fi_mr_attr *full, struct iovec *iov)
{
	const struct fi_mr_dmabuf *dmabuf = full->dmabuf;
	int ret = 0;

	if (!dmabuf || full->iov_count != 1)
		return -FI_EINVAL;
	low->dmabuf = dmabuf;
	*iov = (struct iovec) { (uint8_t *) dmabuf->base_addr + dmabuf->offset, dmabuf->len };
	if ((full->access & FI_SEND) && !(full->access & FI_REMOTE_READ)) {
		struct fi_mr_attr offered = *low;
		struct fid_mr *offer;

		offered.access = RXM_PIN_OFFER;
		ret = fi_mr_regattr(domain->below, &offered, FI_MR_DMABUF, &offer);
		if (!ret)
			own->offer = offer;
	}
	own->device = true;
	full->mr_iov = iov;
	full->access &= ~(uint64_t) (FI_REMOTE_READ | FI_REMOTE_WRITE);
	return ret;
}

/* A key for a region that no peer is told, or by a packet only. */
static uint64_t own_key(void)
{
	return fab_random64() | 1ULL << 63;
}

/* The key of a region for the application, which is that of the region below. A device may give the same key, 0, to all
 * regions that no peer may reach; then it is one of ours, since no two regions have the same. */
static uint64_t key_of(const struct rxm_domain *domain, struct fid_mr *below, uint64_t access)
{
	return domain->mr_local && !(access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) ? own_key() : fi_mr_key(below);
}

/* Make what is registered below of memory of a device: by its interface, and once more for peers of announced messages,
 * unless the region itself lets them read. */
static int mr_take_device(struct rxm_domain *domain, struct rxm_mr *own, uint64_t flags, struct fi_mr_attr *low,
			  const struct fi_mr_attr *full)
{
	struct fi_mr_attr offered;
	struct fid_mr *offer;
	int ret;

	ret = fab_mr_hmem(&domain->base, full, flags, &own->hmem);
	if (ret || !own->hmem)
		return ret;
	own->device = true;
	low->iface = full->iface;
	low->device = full->device;
	low->hmem_data = full->hmem_data;
	if (low->access & FI_REMOTE_READ)
		return 0;
	offered = *low;
	offered.access = RXM_PIN_OFFER;
	offered.requested_key = own_key();
	ret = fi_mr_regattr(domain->below, &offered, 0, &offer);
	if (!ret)
		own->offer = offer;
	return ret;
}

/* A dma-buf where nobody below takes one: its memory is copied, by its addresses. 0 or -FI_EOPNOTSUPP. */
static int mr_of_dmabuf(const struct fab_domain *domain, struct fi_mr_attr *low, struct fi_mr_attr *full,
			struct iovec *iov)
{
	const struct fi_mr_dmabuf *dmabuf = full->dmabuf;

	if (!dmabuf || full->iov_count != 1 || !dmabuf->base_addr || full->iface == FI_HMEM_SYSTEM) {
		RXM_WARN(FI_LOG_MR, "memory registration with FI_MR_DMABUF over a provider that copies: domain %s "
			 "needs FI_HMEM, and the attributes one dma-buf, its iface and base_addr\n", domain->name);
		return -FI_EOPNOTSUPP;
	}
	*iov = (struct iovec) { (uint8_t *) dmabuf->base_addr + dmabuf->offset, dmabuf->len };
	full->mr_iov = low->mr_iov = iov;
	return 0;
}

static uint8_t hmem_of(const void *desc)
{
	return ((const struct rxm_mr *) desc)->hmem;
}

/* The memory of a region: a dma-buf, or memory of a device or of the host. Fills own, low and, for a dma-buf, full and
 * iov, which full then points to. 0 or -FI_E*. */
static int mr_take_memory(struct rxm_domain *domain, struct rxm_mr *own, uint64_t flags, struct fi_mr_attr *low,
			  struct fi_mr_attr *full, struct iovec *iov)
{
	bool below = domain->mr_local && (flags & FI_MR_DMABUF);	/* it is the device's */
	int ret = 0;

	if (below)
		ret = mr_take_dmabuf(domain, own, low, full, iov);
	else if (flags & FI_MR_DMABUF)
		ret = mr_of_dmabuf(&domain->base, low, full, iov);
	if (!ret && !below && (domain->base.attr.caps & FI_HMEM))
		ret = mr_take_device(domain, own, flags & ~FI_MR_DMABUF, low, full);
	if (!ret && own->device)
		note_device(domain);
	return ret;
}

/* Give a region of prov/common our close, and our descriptor. */
static void mr_adopt(struct rxm_domain *domain, struct fid_mr *mr, struct rxm_mr *own)
{
	pthread_mutex_lock(&domain->lock);
	if (!domain->mr_close_base) {
		domain->mr_fid_ops = *mr->fid.ops;
		domain->mr_close_base = domain->mr_fid_ops.close;
		domain->mr_fid_ops.close = mr_close;
	}
	pthread_mutex_unlock(&domain->lock);
	mr->fid.ops = &domain->mr_fid_ops;
	mr->mem_desc = own;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags, struct fid_mr **mr)
{
	struct rxm_domain *domain = fab_container(fid, struct rxm_domain, base.domain_fid.fid);
	struct fi_mr_attr full, low;
	uint64_t dmabuf = domain->mr_local ? flags & FI_MR_DMABUF : 0;
	struct iovec iov;
	struct rxm_mr *own;
	int ret;

	if (!attr || !mr)
		return -FI_EINVAL;
	fab_mr_read_attr(&domain->base, attr, &full);
	full.access = fab_mr_access(&domain->base, full.access);
	low = (struct fi_mr_attr) {
		.mr_iov = full.mr_iov, .iov_count = full.iov_count,
		.access = access_below(domain, full.access), .offset = full.offset,
		.requested_key = domain->own_keys ? own_key() : full.requested_key,
	};
	own = calloc(1, sizeof(*own));
	if (!own)
		return -FI_ENOMEM;
	ret = mr_take_memory(domain, own, flags, &low, &full, &iov);
	if (ret)
		goto free_own;
	flags &= ~FI_MR_DMABUF;
	ret = fi_mr_regattr(domain->below, &low, dmabuf, &own->below);
	if (ret)
		goto close_offer;
	own->access = low.access;
	if (full.iov_count) {
		own->base = full.mr_iov->iov_base;
		own->len = full.mr_iov->iov_len;
	}
	if (!domain->own_keys)
		full.requested_key = key_of(domain, own->below, low.access);
	ret = fab_mr_ops.regattr(fid, &full, flags, mr);
	if (ret)
		goto close_below;
	mr_adopt(domain, *mr, own);
	return 0;

close_below:
	fi_close(&own->below->fid);
close_offer:
	if (own->offer)
		fi_close(&own->offer->fid);
free_own:
	free(own);
	return ret;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t cnt, uint64_t access, uint64_t offset, uint64_t key,
		   uint64_t flags, struct fid_mr **mr, void *context)
{
	return mr_regattr(fid, &(struct fi_mr_attr) {
		.mr_iov = iov, .iov_count = cnt, .access = access, .offset = offset,
		.requested_key = key, .context = context,
	}, flags, mr);
}

static int rxm_mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key,
		  uint64_t flags, struct fid_mr **mr, void *context)
{
	return mr_regv(fid, &(struct iovec) { (void *) buf, len }, 1, access, offset, key, flags, mr, context);
}

static struct fi_ops_mr mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = rxm_mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};

/* ---- domain ---- */

static int domain_close(struct fid *fid)
{
	struct rxm_domain *domain = fab_container(fid, struct rxm_domain, base.domain_fid.fid);
	int ret = fab_domain_fini(&domain->base);

	if (ret)
		return ret;
	fab_mrc_fini(&domain->cache);
	fi_close(&domain->below->fid);
	fi_freeinfo(domain->below_info);
	fi_freeinfo(domain->most);
	pthread_mutex_destroy(&domain->lock);
	free(domain);
	return 0;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	return fab_domain_work_control(fid, rxm_calls, command, arg);
}

/* Copies are made here and below. */
static int domain_set_ops(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	struct rxm_domain *domain = fab_container(fid, struct rxm_domain, base.domain_fid.fid);
	int ret = fab_domain_set_ops(fid, name, flags, ops, context);

	return ret ? ret : fi_set_ops(&domain->below->fid, name, flags, ops, context);
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops), .close = domain_close, .bind = fab_domain_bind, .control = domain_control,
	.ops_set = domain_set_ops,
};

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	FAB_DOMAIN_SLOTS,
	.av_open = fab_av_open,
	.cq_open = fab_cq_open,
	.query_collective = fab_coll_query,
	.query_atomic = rxm_query_atomic,
};

static const struct fab_domain_ops domain_tables = {
	.fid = &domain_fid_ops,
	.domain = &domain_ops,
	.mr = &mr_ops,
	.lend = fab_lend,
	.ep_init = rxm_ep_init,
	.ep_size = sizeof(struct rxm_ep),
};

/* The threading model for the domain below. If only one thread at a time uses this domain, this also holds below: there
 * is no engine thread here, no second engine, and no lock for registrations. */
static enum fi_threading threading_below(const struct fi_domain_attr *attr)
{
	bool alone = attr->threading == FI_THREAD_DOMAIN && attr->data_progress != FI_PROGRESS_AUTO &&
		     attr->control_progress != FI_PROGRESS_AUTO;

	return alone ? FI_THREAD_DOMAIN : FI_THREAD_SAFE;
}

/* Find the info of the provider below with which the domain below is opened. */
static int find_below(const char *below, const struct rxm_domain *domain, const struct fi_info *info,
		      struct fi_info **found)
{
	struct fi_info *hints = rxm_below_hints(below, NULL);
	int ret;

	if (!hints)
		return -FI_ENOMEM;
	if (info->caps & FI_HMEM)
		rxm_ask_hmem(hints);
	rxm_ask_order(hints, info);
	hints->addr_format = info->addr_format;
	hints->domain_attr->name = strdup(domain->base.name);
	hints->fabric_attr->name = strdup(domain->base.fabric->name);
	hints->domain_attr->threading = threading_below(info->domain_attr);
	hints->tx_attr->size = rxm_params.msg_tx;
	hints->rx_attr->size = rxm_params.conn_rx;
	ret = hints->domain_attr->name && hints->fabric_attr->name ?
		fab_getinfo_below(&rxm_prov, hints, found) : -FI_ENOMEM;
	if (!ret)	/* keys and addresses as this domain has them, where the answer would have fewer bits */
		(*found)->domain_attr->mr_mode |= (int) (domain->base.attr.mr_mode & MR_BASIC_BITS);
	else
		RXM_WARN(FI_LOG_DOMAIN, "fi_domain: %s has no FI_EP_MSG endpoints in domain %s of fabric %s: %s\n",
			 below, domain->base.name, domain->base.fabric->name, fi_strerror(-ret));
	fi_freeinfo(hints);
	return ret;
}

static int domain_init(struct rxm_fabric *fabric, struct rxm_domain *domain, const struct fi_info *info)
{
	int ret;

	ret = find_below(fabric->below_name, domain, info, &domain->below_info);
	if (ret)
		return ret;
	domain->most = fi_dupinfo(domain->below_info);
	ret = domain->most ? rxm_info_raise(domain->most) : -FI_ENOMEM;
	if (!ret)
		ret = fi_domain(fabric->below, domain->below_info, &domain->below, NULL);
	if (!ret) {
		domain->mr_local = domain->below_info->domain_attr->mr_mode & FI_MR_LOCAL;
		/* other providers register for nothing */
		ret = fab_mrc_init(&domain->cache, domain->mr_local ? &rxm_prov : NULL, &rxm_pin_ops);
		if (ret)
			fi_close(&domain->below->fid);
	}
	if (ret) {
		fi_freeinfo(domain->below_info);
		fi_freeinfo(domain->most);
		return ret;
	}
	domain->base.hmem_of = hmem_of;
	domain->base.hmem_p2p = domain->mr_local;
	domain->uses_desc = domain->mr_local || (info->caps & FI_HMEM);
	domain->mr_virt = domain->below_info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	domain->has_dc = domain->patient = domain->has_files = !strcmp(fabric->below_name, "tcp");
	domain->own_keys = !(info->caps & (FI_RMA | FI_ATOMIC));
	domain->base.mr_map.prov_key = false;	/* the provider below chooses the keys */
	domain->base.mr_map.virt_addr = domain->mr_virt;
	pthread_mutex_init(&domain->lock, NULL);
	fab_list_init(&domain->pollers);
	return 0;
}

static int domain_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_domain **domain_fid,
		       void *context)
{
	struct rxm_fabric *fabric = fab_container(fabric_fid, struct rxm_fabric, base.fabric_fid);
	struct rxm_domain *domain;
	int ret;

	if (!info)
		return -FI_EINVAL;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	ret = fab_domain_init(&domain->base, &fabric->base, info, &domain_tables, context);
	if (ret)
		goto free_domain;
	ret = domain_init(fabric, domain, info);
	if (ret)
		goto fini_base;
	*domain_fid = &domain->base.domain_fid;
	return 0;

fini_base:
	fab_domain_fini(&domain->base);
free_domain:
	free(domain);
	return ret;
}

/* ---- fabric ---- */

static int fabric_close(struct fid *fid)
{
	struct rxm_fabric *fabric = fab_container(fid, struct rxm_fabric, base.fabric_fid.fid);
	int ret = fab_fabric_fini(&fabric->base);

	if (ret)
		return ret;
	fi_close(&fabric->below->fid);
	free(fabric);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
};

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	FAB_FABRIC_SLOTS,
	.domain = domain_open,
};

/* Get "tcp" from "tcp;ofi_rxm" (in any order). False: there is no other layer, or more than one. */
static bool take_below_name(const char *name, char below[RXM_BELOW_NAME_MAX])
{
	const char *part = name;

	*below = 0;
	while (part && *part) {
		size_t len = strcspn(part, ";");

		if (len != strlen(RXM_LAYER) || strncasecmp(part, RXM_LAYER, len)) {
			if (*below || len >= RXM_BELOW_NAME_MAX)
				return false;
			snprintf(below, RXM_BELOW_NAME_MAX, "%.*s", (int) len, part);
		}
		part += len + (part[len] == ';');
	}
	return *below;
}

int rxm_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric_fid, void *context)
{
	struct rxm_fabric *fabric = calloc(1, sizeof(*fabric));
	struct fi_fabric_attr low = *attr;
	int ret = -FI_EINVAL;

	if (!fabric)
		return -FI_ENOMEM;
	if (!attr->prov_name || !take_below_name(attr->prov_name, fabric->below_name)) {
		RXM_WARN(FI_LOG_FABRIC, "fi_fabric: prov_name is %s: it lacks the provider below, as in tcp;" RXM_LAYER
			 "; pass an info of fi_getinfo()\n", attr->prov_name ? attr->prov_name : "NULL");
		goto free_fabric;
	}
	low.prov_name = fabric->below_name;
	low.fabric = NULL;
	low.api_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
	ret = fi_fabric(&low, &fabric->below, NULL);
	if (ret)
		goto free_fabric;
	fi_control(&fabric->below->fid, FAB_CONTROL_LAYERED, NULL);	/* of no use to foreign providers */
	ret = fab_fabric_init(&fabric->base, &rxm_prov, attr, &fabric_fid_ops, &fabric_ops, context);
	if (ret)
		goto close_below;
	*fabric_fid = &fabric->base.fabric_fid;
	return 0;

close_below:
	fi_close(&fabric->below->fid);
free_fabric:
	free(fabric);
	return ret;
}

void rxm_fill_ops(void)
{
	FAB_OPS_FILL(&domain_fid_ops);
	FAB_OPS_FILL(&domain_ops);
	FAB_OPS_FILL(&mr_ops);
	FAB_OPS_FILL(&fabric_fid_ops);
	FAB_OPS_FILL(&fabric_ops);
}
