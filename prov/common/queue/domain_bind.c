/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_domain_bind(3): an event queue for the events of a domain. Control; no lock held.
 */
#include "common/queue/eq.h"

#include <inttypes.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "common/domain/domain.h"

int fab_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fab_domain *domain = fab_container(fid, struct fab_domain, domain_fid.fid);
	const struct fi_provider *prov = domain->fabric->prov;
	struct fab_eq *eq;

	if (bfid->fclass != FI_CLASS_EQ) {
		FI_WARN(prov, FI_LOG_DOMAIN, "fi_domain_bind: object of class %zu; only an event queue can be bound\n",
			bfid->fclass);
		return -FI_EINVAL;
	}
	if (flags & ~FI_REG_MR) {
		FI_WARN(prov, FI_LOG_DOMAIN, "fi_domain_bind: flags %#" PRIx64 "; only FI_REG_MR is allowed\n", flags);
		return -FI_EBADFLAGS;
	}
	eq = fab_container(bfid, struct fab_eq, eq_fid.fid);
	if (eq->fabric != domain->fabric) {
		FI_WARN(prov, FI_LOG_DOMAIN, "fi_domain_bind: the event queue belongs to another fabric than domain "
			"%s\n", domain->name);
		return -FI_EINVAL;
	}
	if (domain->events.eq) {
		FI_WARN(prov, FI_LOG_DOMAIN, "fi_domain_bind: domain %s has an event queue already\n", domain->name);
		return -FI_EBUSY;
	}
	fab_eq_get(eq);
	domain->events = (struct fab_domain_events) { .eq = eq, .put = fab_eq_put, .of_regions = flags & FI_REG_MR };
	return 0;
}
