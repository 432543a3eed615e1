/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Domains. Their engines: engines.c. atomics_lock is taken last.
 */
#include "common/domain/domain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "common/explain/explain.h"
#include "common/ops/ops.h"

/* For fab_domain_lock_atomics(). */
static pthread_mutex_t atomics_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned domain_cnt;	/* domains open in this process */

/* Check an enum of fi_domain_attr: it is at most max. Logs its name if not. */
static int check_enum(const struct fi_provider *prov, const char *name, unsigned value, unsigned max)
{
	if (value <= max)
		return 0;
	FI_WARN(prov, FI_LOG_DOMAIN, "fi_domain: domain_attr->%s is %u, values are 0 to %u\n", name, value, max);
	return -FI_EINVAL;
}

static int domain_check_mr_mode(const struct fi_provider *prov, int mr_mode)
{
	const int known = FI_MR_LOCAL | FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
			  FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT | FI_MR_HMEM | FI_MR_COLLECTIVE;

	if (mr_mode == FI_MR_BASIC || mr_mode == FI_MR_SCALABLE || !(mr_mode & ~known))
		return 0;
	FI_WARN(prov, FI_LOG_DOMAIN, "fi_domain: domain_attr->mr_mode is %#x; FI_MR_BASIC and FI_MR_SCALABLE stand "
		"alone, and bits %#x are unknown\n", mr_mode, mr_mode & ~known & ~(FI_MR_BASIC | FI_MR_SCALABLE));
	return -FI_EINVAL;
}

static int domain_check_attr(const struct fab_fabric *fabric, const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;
	const struct fi_provider *prov = fabric->prov;

	if (!attr || !attr->name) {
		FI_WARN(prov, FI_LOG_DOMAIN, "fi_domain: info has no domain_attr or no name in it; pass an info of "
			"fi_getinfo()\n");
		return -FI_EINVAL;
	}
	if (check_enum(prov, "threading", attr->threading, FI_THREAD_ENDPOINT) ||
	    check_enum(prov, "control_progress", attr->control_progress, FI_PROGRESS_CONTROL_UNIFIED) ||
	    check_enum(prov, "data_progress", attr->data_progress, FI_PROGRESS_MANUAL) ||
	    check_enum(prov, "resource_mgmt", attr->resource_mgmt, FI_RM_ENABLED) ||
	    check_enum(prov, "av_type", attr->av_type, FI_AV_TABLE))
		return -FI_EINVAL;
	return domain_check_mr_mode(prov, attr->mr_mode);
}

static int mr_mode_bits(int mr_mode)
{
	switch (mr_mode) {
	case FI_MR_BASIC:
		return FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	case FI_MR_SCALABLE:
		return 0;
	default:
		return mr_mode;
	}
}

static void domain_fill_attr(struct fab_domain *domain, const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	domain->attr.threading = attr->threading == FI_THREAD_UNSPEC ? FI_THREAD_SAFE : attr->threading;
	domain->attr.control_progress = attr->control_progress;
	domain->attr.data_progress = attr->data_progress == FI_PROGRESS_AUTO ||
				     attr->control_progress == FI_PROGRESS_AUTO ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	domain->attr.tclass = attr->tclass;
	domain->attr.av_type = attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : attr->av_type;
	domain->attr.resource_mgmt = attr->resource_mgmt;
	domain->attr.mr_mode = mr_mode_bits(attr->mr_mode);
	domain->attr.caps = info->caps | (attr->caps & FI_AV_USER_ID);
	domain->attr.addr_format = info->addr_format;
	domain->attr.max_group_id = FI_VERSION_GE(domain->fabric->fabric_fid.api_version, FI_VERSION(2, 0)) ?
			       attr->max_group_id : 0;
	domain->events = (struct fab_domain_events) { 0 };
}

/* API 1.5 added authorization keys. The structures of older callers lack the fields. */
static int init_auth_key(struct fab_domain *domain, const struct fi_info *info)
{
	const struct fi_domain_attr *attr = info->domain_attr;

	domain->auth.key = domain->auth.spare = NULL;
	domain->auth.per_av = false;
	if (FI_VERSION_LT(domain->fabric->fabric_fid.api_version, FI_VERSION(1, 5)) || !attr->auth_key_size)
		return 0;
	if (attr->auth_key_size != FI_AV_AUTH_KEY)
		return fab_auth_get(domain->fabric->prov, "fi_domain", attr->auth_key, attr->auth_key_size,
				    &domain->auth.key);
	if (attr->auth_key) {
		FI_WARN(domain->fabric->prov, FI_LOG_DOMAIN, "fi_domain: domain_attr->auth_key_size is FI_AV_AUTH_KEY; "
			"auth_key must then be NULL\n");
		return -FI_EINVAL;
	}
	domain->auth.per_av = true;
	return 0;
}

/* struct fab_mr_map.quiesce */
static void map_quiesce(struct fab_mr_map *map)
{
	fab_domain_quiesce(fab_container(map, struct fab_domain, mr_map));
}

/* fab_domain_init() with an info that has all members. */
static int domain_init(struct fab_domain *domain, struct fab_fabric *fabric, const struct fi_info *info,
		       const struct fab_domain_ops *ops, void *context)
{
	int ret;

	ret = domain_check_attr(fabric, info);
	if (ret)
		return ret;
	domain->name = strdup(info->domain_attr->name);
	if (!domain->name)
		return -FI_ENOMEM;

	FAB_OPS_FILL(ops->fid);
	FAB_OPS_FILL(ops->domain);
	FAB_OPS_FILL(ops->mr);
	domain->domain_fid = (struct fid_domain) {
		.fid = { .fclass = FI_CLASS_DOMAIN, .context = context, .ops = ops->fid },
		.ops = ops->domain,
		.mr = ops->mr,
	};
	domain->ops = ops;
	domain->fabric = fabric;
	atomic_init(&domain->ref, 0);
	domain_fill_attr(domain, info);
	ret = init_auth_key(domain, info);
	if (ret)
		goto free_name;
	ret = fab_mr_map_init(&domain->mr_map, domain->attr.mr_mode, domain->attr.caps, map_quiesce);
	if (ret)
		goto put_key;
	ret = fab_domain_engines_init(domain);
	if (ret)
		goto fini_mr_map;
	pthread_mutex_init(&domain->works.lock, NULL);
	fab_list_init(&domain->works.list);

	atomic_fetch_add(&domain_cnt, 1);
	atomic_fetch_add(&fabric->ref, 1);
	pthread_mutex_lock(&fabric->lock);
	fab_list_add_tail(&fabric->domains, &domain->link);
	pthread_mutex_unlock(&fabric->lock);
	return 0;

fini_mr_map:
	fab_mr_map_fini(&domain->mr_map);
put_key:
	fab_auth_put(domain->auth.key);
free_name:
	free(domain->name);
	return ret;
}

int fab_domain_init(struct fab_domain *domain, struct fab_fabric *fabric, const struct fi_info *info,
		    const struct fab_domain_ops *ops, void *context)
{
	struct fi_info *whole;
	int ret;

	/* From API 2.0 on, an application's info has every member that is read here. */
	if (FI_VERSION_GE(fabric->fabric_fid.api_version, FI_VERSION(2, 0)))
		return domain_init(domain, fabric, info, ops, context);
	whole = fab_info_copy(fabric->prov, fabric->fabric_fid.api_version, info);
	if (!whole)
		return -FI_ENOMEM;
	ret = domain_init(domain, fabric, whole, ops, context);
	fi_freeinfo(whole);
	return ret;
}

int fab_domain_fini(struct fab_domain *domain)
{
	struct fab_fabric *fabric = domain->fabric;
	uint32_t ref = atomic_load(&domain->ref);

	if (ref) {
		FI_WARN(fabric->prov, FI_LOG_DOMAIN, "fi_close of domain %s: %u objects opened from it are still open "
			"(endpoints, queues, counters, address vectors, memory regions); close them first\n",
			domain->name, ref);
		return -FI_EBUSY;
	}
	pthread_mutex_lock(&fabric->lock);
	fab_list_remove(&domain->link);
	pthread_mutex_unlock(&fabric->lock);

	fab_domain_engines_fini(domain);
	fab_mr_map_fini(&domain->mr_map);
	pthread_mutex_destroy(&domain->works.lock);
	if (domain->events.eq)
		domain->events.put(domain->events.eq);
	fab_auth_put(domain->auth.key);
	fab_auth_put(domain->auth.spare);
	free(domain->name);
	atomic_fetch_sub(&domain_cnt, 1);
	atomic_fetch_sub(&fabric->ref, 1);
	return 0;
}

int fab_domain_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_domain **domain_fid, void *context)
{
	struct fab_fabric *fabric = fab_container(fabric_fid, struct fab_fabric, fabric_fid);
	struct fab_domain *domain;
	int ret;

	if (!info)
		return -FI_EINVAL;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	ret = fab_domain_init(domain, fabric, info, fabric->domain_ops, context);
	if (ret)
		free(domain);
	else
		*domain_fid = &domain->domain_fid;
	return ret;
}

int fab_domain_close(struct fid *fid)
{
	struct fab_domain *domain = fab_container(fid, struct fab_domain, domain_fid.fid);
	int ret = fab_domain_fini(domain);

	if (!ret)
		free(domain);
	return ret;
}

int fab_domain_set_ops(struct fid *fid, const char *name, uint64_t flags, void *ops, void *context)
{
	struct fab_domain *domain = fab_container(fid, struct fab_domain, domain_fid.fid);
	const struct fi_hmem_override_ops *override = ops;

	(void) context;
	if (!name || strcmp(name, FI_SET_OPS_HMEM_OVERRIDE))
		return -FI_ENOSYS;
	if (flags)
		return -FI_EBADFLAGS;
	if (!override || override->size < sizeof(*override) || !override->copy_from_hmem_iov ||
	    !override->copy_to_hmem_iov)
		return -FI_EINVAL;
	domain->hmem_own = *override;
	return 0;
}

int fab_domain_control(struct fid *fid, int command, void *arg)
{
	(void) fid;
	switch (command) {
	case FI_MAP_RAW_MR:
		return arg ? fab_mr_map_raw(arg) : -FI_EINVAL;
	case FI_UNMAP_KEY:
		return arg ? 0 : -FI_EINVAL;	/* FI_MAP_RAW_MR allocates nothing */
	default:
		return -FI_ENOSYS;
	}
}

bool fab_domain_lock_atomics(struct fab_domain *domain)
{
	bool needed = domain->engines.per_queue || atomic_load_explicit(&domain_cnt, memory_order_relaxed) > 1;

	if (needed)
		pthread_mutex_lock(&atomics_lock);
	return needed;
}

void fab_domain_unlock_atomics(void)
{
	pthread_mutex_unlock(&atomics_lock);
}
