/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fabrics, and the list of open fabrics, in which fi_getinfo() finds open objects by name.
 *
 * open_lock guards the list, and is taken before a fabric's own lock.
 */
#include "common/domain/domain.h"

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "common/explain/explain.h"
#include "common/ops/ops.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fab_list open_fabrics = FAB_LIST_INIT(open_fabrics);

int fab_fabric_init(struct fab_fabric *fabric, const struct fi_provider *prov, const struct fi_fabric_attr *attr,
		    struct fi_ops *fid_ops, struct fi_ops_fabric *ops, void *context)
{
	fabric->name = strdup(attr->name ? attr->name : prov->name);
	if (!fabric->name)
		return -FI_ENOMEM;

	FAB_OPS_FILL(fid_ops);
	FAB_OPS_FILL(ops);
	fabric->fabric_fid = (struct fid_fabric) {
		.fid = { .fclass = FI_CLASS_FABRIC, .context = context, .ops = fid_ops },
		.ops = ops,
		.api_version = attr->api_version,
	};
	fabric->prov = prov;
	atomic_init(&fabric->ref, 0);
	pthread_mutex_init(&fabric->lock, NULL);
	fab_list_init(&fabric->domains);
	fab_list_init(&fabric->peps);
	fab_list_init(&fabric->connreqs);
	fab_list_init(&fabric->old_connreqs);

	pthread_mutex_lock(&open_lock);
	fab_list_add_tail(&open_fabrics, &fabric->link);
	pthread_mutex_unlock(&open_lock);
	fab_core_count_fabric(prov, 1);
	return 0;
}

int fab_fabric_fini(struct fab_fabric *fabric)
{
	struct fab_list *link, *next;
	uint32_t ref = atomic_load(&fabric->ref);

	if (ref) {
		FI_WARN(fabric->prov, FI_LOG_FABRIC, "fi_close of fabric %s: %u objects opened from it are still open "
			"(domains, event queues, passive endpoints, wait sets); close them first\n", fabric->name, ref);
		return -FI_EBUSY;
	}
	pthread_mutex_lock(&open_lock);
	fab_list_remove(&fabric->link);
	pthread_mutex_unlock(&open_lock);
	fab_list_for_each_safe(&fabric->old_connreqs, link, next)
		free(fab_container(link, struct fab_connreq_handle, link));
	fab_core_count_fabric(fabric->prov, -1);
	pthread_mutex_destroy(&fabric->lock);
	free(fabric->name);
	return 0;
}

static int fabric_close(struct fid *fid)
{
	struct fab_fabric *fabric = fab_container(fid, struct fab_fabric, fabric_fid.fid);
	int ret = fab_fabric_fini(fabric);

	if (!ret)
		free(fabric);
	return ret;
}

static int fabric_control(struct fid *fid, int command, void *arg)
{
	(void) arg;
	if (command != FAB_CONTROL_LAYERED)
		return -FI_ENOSYS;
	fab_container(fid, struct fab_fabric, fabric_fid.fid)->layered = true;
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.control = fabric_control,
};

int fab_fabric_open(const struct fi_provider *prov, const struct fi_fabric_attr *attr, struct fi_ops_fabric *ops,
		    const struct fab_domain_ops *domain_ops, struct fid_fabric **fabric_fid, void *context)
{
	struct fab_fabric *fabric = calloc(1, sizeof(*fabric));
	int ret;

	if (!fabric)
		return -FI_ENOMEM;
	fabric->domain_ops = domain_ops;
	ret = fab_fabric_init(fabric, prov, attr, &fabric_fid_ops, ops, context);
	if (ret)
		free(fabric);
	else
		*fabric_fid = &fabric->fabric_fid;
	return ret;
}

int fab_domain2(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_domain **domain, uint64_t flags,
		void *context)
{
	const struct fab_fabric *fabric = fab_container(fabric_fid, struct fab_fabric, fabric_fid);

	if (!flags)
		return fabric_fid->ops->domain(fabric_fid, info, domain, context);
	FI_WARN(fabric->prov, FI_LOG_DOMAIN, "fi_domain2: flags %#llx; none are supported\n",
		(unsigned long long) flags);
	return flags & FI_PEER ? -FI_EINVAL : -FI_EBADFLAGS;
}

struct fid_fabric *fab_fabric_find(const struct fi_provider *prov, const struct fid_fabric *handle, const char *name)
{
	struct fid_fabric *found = NULL;
	struct fab_list *link;

	pthread_mutex_lock(&open_lock);
	fab_list_for_each(&open_fabrics, link) {
		struct fab_fabric *fabric = fab_container(link, struct fab_fabric, link);

		if (fabric->prov == prov && (!handle || handle == &fabric->fabric_fid) &&
		    (!name || !strcmp(fabric->name, name))) {
			found = &fabric->fabric_fid;
			break;
		}
	}
	pthread_mutex_unlock(&open_lock);
	return found;
}

static struct fid_domain *find_domain_in(struct fab_fabric *fabric, const struct fid_domain *handle, const char *name)
{
	struct fid_domain *found = NULL;
	struct fab_list *link;

	pthread_mutex_lock(&fabric->lock);
	fab_list_for_each(&fabric->domains, link) {
		struct fab_domain *domain = fab_container(link, struct fab_domain, link);

		if ((!handle || handle == &domain->domain_fid) && (!name || !strcmp(domain->name, name))) {
			found = &domain->domain_fid;
			break;
		}
	}
	pthread_mutex_unlock(&fabric->lock);
	return found;
}

struct fid_domain *fab_domain_find(const struct fi_provider *prov, const struct fid_domain *handle,
				   const char *fabric_name, const char *name)
{
	struct fid_domain *found = NULL;
	struct fab_list *link;

	pthread_mutex_lock(&open_lock);
	fab_list_for_each(&open_fabrics, link) {
		struct fab_fabric *fabric = fab_container(link, struct fab_fabric, link);

		if (fabric->prov == prov && (!fabric_name || !strcmp(fabric->name, fabric_name)))
			found = find_domain_in(fabric, handle, name);
		if (found)
			break;
	}
	pthread_mutex_unlock(&open_lock);
	return found;
}
