/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * See queue_open.h.
 */
#include "common/queue/queue_open.h"

#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>

int fab_queue_init(struct fab_domain *domain, const struct fab_engine_user *queue, struct fab_wait_attr *attr)
{
	int ret;

	ret = fab_domain_get_engine(domain, queue->engine, queue->own);
	if (ret)
		return ret;
	attr->engine = *queue->engine;
	ret = fab_wait_init(queue->wait, attr);
	if (ret) {
		fab_domain_put_engine(domain, *queue->engine, *queue->own);
		return ret;
	}
	atomic_fetch_add(&domain->ref, 1);
	return 0;
}

int fab_queue_close(struct fab_domain *domain, const struct fab_engine_user *queue, const _Atomic uint32_t *ref,
		    const char *what)
{
	uint32_t users = atomic_load(ref);

	if (users) {
		FI_WARN(domain->fabric->prov, FI_LOG_DOMAIN, "fi_close of %s that %u endpoints, memory regions, poll "
			"sets or triggered operations use; close or cancel them first\n", what, users);
		return -FI_EBUSY;
	}
	fab_wait_fini(queue->wait);
	fab_domain_put_engine(domain, *queue->engine, *queue->own);
	atomic_fetch_sub(&domain->ref, 1);
	return 0;
}

int fab_engine_join(struct fab_domain *domain, const struct fab_engine_user *user, struct fab_engine *to)
{
	struct fab_engine *from = *user->engine;
	int ret;

	ret = fab_wait_move(user->wait, to);
	if (ret)
		return ret;
	fab_domain_put_engine(domain, from, *user->own);
	*user->engine = to;
	fab_domain_hold_engine(domain, to, user->own);
	if (*user->own)
		fab_domain_count_queue(domain, to);
	return 0;
}
