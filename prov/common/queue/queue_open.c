/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See queue_open.h.
 */
#include "common/queue/queue_open.h"

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

int fab_queue_init(struct fab_domain *domain, struct fab_wait *wait, struct fab_wait_attr *attr)
{
	int ret;

	attr->engine = &domain->engine;
	attr->settles_later = domain->engines.per_queue;
	ret = fab_wait_init(wait, attr);
	if (!ret)
		atomic_fetch_add(&domain->ref, 1);
	return ret;
}

int fab_queue_close(struct fab_domain *domain, struct fab_wait *wait, const _Atomic uint32_t *ref, const char *what)
{
	uint32_t users = atomic_load(ref);

	if (users) {
		FI_WARN(domain->fabric->prov, FI_LOG_DOMAIN, "fi_close of %s that %u endpoints, memory regions, poll "
			"sets or triggered operations use; close or cancel them first\n", what, users);
		return -FI_EBUSY;
	}
	fab_wait_fini(wait);
	fab_domain_put_engine(domain, wait->engine);
	atomic_fetch_sub(&domain->ref, 1);
	return 0;
}

int fab_queue_settle(struct fab_domain *domain, struct fab_wait *wait, struct fab_engine *to)
{
	bool watched;
	int ret;

	fab_domain_add_queue(domain, to);
	if (fab_wait_has_thread(wait))
		fab_engine_share(to);
	fab_engine_lock(&domain->engine);
	watched = wait->armed;
	ret = fab_wait_settle(wait, to);
	fab_engine_unlock(&domain->engine);
	if (ret) {
		fab_domain_put_engine(domain, to);
		return ret;
	}
	if (watched) {
		/* for threads that sleep on the descriptor: `to` may have timers already */
		fab_engine_lock(to);
		fab_engine_prepare_sleep(to);
		fab_engine_unlock(to);
	}
	return 0;
}

int fab_queue_settle_alone(struct fab_domain *domain, struct fab_wait *wait)
{
	struct fab_engine *engine;
	int ret;

	if (wait->settled)
		return 0;
	ret = fab_domain_get_engine(domain, &engine);
	if (ret)
		return ret;
	ret = fab_queue_settle(domain, wait, engine);
	fab_domain_put_engine(domain, engine);
	return ret;
}
