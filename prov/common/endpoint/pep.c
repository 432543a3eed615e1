/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive endpoints. A listening one runs on the engine of its EQ.
 *
 * These may still refer to a pep when it closes: the provider's listener, which is stopped under the engine's lock; its
 * requests in fabric->connreqs, which are dropped; and unread events, which are purged.
 */
#include "common/endpoint/pep.h"

#include <stdlib.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include "common/endpoint/ep.h"
#include "common/explain/explain.h"
#include "common/net/net.h"
#include "common/ops/ops.h"
#include "common/stats/stats.h"

#define DEFAULT_BACKLOG	128	/* further requests wait in the kernel */

/* ---- requests ---- */

/* The oldest request without an answer, for the page of the process. fabric->lock held. */
static void pep_tell(struct fab_pep *pep)
{
	struct fi_stats_pending *pending = &pep->stats->pending[FI_STATS_EP_ACCEPT];
	const struct fab_connreq_handle *first = NULL;
	struct fab_list *link;

	fab_list_for_each(&pep->fabric->connreqs, link) {
		first = fab_container(link, struct fab_connreq_handle, link);
		if (first->req->pep == pep)
			break;
	}
	if (link == &pep->fabric->connreqs) {
		fab_stats_pending(pending, NULL);
		return;
	}
	if (pending->since && pending->number == first->number && pending->cnt == pep->req_cnt)
		return;
	fab_stats_rest_name(pep->stats, &first->req->remote.sa, &first->req->local.sa);
	fab_stats_pending(pending, &(struct fi_stats_pending) {
		.number = first->number, .cnt = pep->req_cnt, .state = FI_STATS_REQUESTED, .peer = UINT32_MAX,
	});
}

/* Add a request to its fabric. 0 or -FI_ENOMEM. */
static int request_add(struct fab_connreq *req)
{
	struct fab_fabric *fabric = req->pep->fabric;
	struct fab_connreq_handle *handle = calloc(1, sizeof(*handle));

	if (!handle)
		return -FI_ENOMEM;
	handle->fid.fclass = FI_CLASS_CONNREQ;
	handle->req = req;
	req->handle = handle;
	pthread_mutex_lock(&fabric->lock);
	fab_list_add_tail(&fabric->connreqs, &handle->link);
	handle->number = ++req->pep->req_number;
	req->pep->req_cnt++;
	pep_tell(req->pep);
	pthread_mutex_unlock(&fabric->lock);
	return 0;
}

/* Give the request to the caller. Its handle stays in old_connreqs for a while. fabric->lock held. */
static struct fab_connreq *request_remove(struct fab_fabric *fabric, struct fab_connreq_handle *handle)
{
	struct fab_connreq *req = handle->req;
	struct fab_list *oldest;

	handle->req = NULL;
	fab_list_remove(&handle->link);
	fab_list_add_tail(&fabric->old_connreqs, &handle->link);
	req->pep->req_cnt--;
	pep_tell(req->pep);
	if (++fabric->old_connreq_cnt > FAB_CONNREQ_OLD_MAX) {
		oldest = fab_list_pop_front(&fabric->old_connreqs);
		free(fab_container(oldest, struct fab_connreq_handle, link));
		fabric->old_connreq_cnt--;
	}
	return req;
}

/* Take the request with this handle out of the fabric; with handle NULL, the first request of the passive endpoint.
 * NULL: no such request. */
static struct fab_connreq *pep_take_request(struct fab_fabric *fabric, fid_t fid, const struct fab_pep *pep)
{
	struct fab_connreq *req = NULL;
	struct fab_list *link;

	pthread_mutex_lock(&fabric->lock);
	fab_list_for_each(&fabric->connreqs, link) {
		struct fab_connreq_handle *handle = fab_container(link, struct fab_connreq_handle, link);

		if (fid ? &handle->fid == fid : handle->req->pep == pep) {
			req = request_remove(fabric, handle);
			break;
		}
	}
	pthread_mutex_unlock(&fabric->lock);
	return req;
}

struct fab_connreq *fab_connreq_take(struct fab_fabric *fabric, fid_t handle)
{
	return handle ? pep_take_request(fabric, handle, NULL) : NULL;
}

/* Make the info with which the application opens its endpoint. NULL: no memory. */
static struct fi_info *request_info(const struct fab_connreq *req)
{
	const struct fab_pep *pep = req->pep;
	struct fi_info *info = fi_dupinfo(pep->info);

	if (!info)
		return NULL;
	info->handle = &req->handle->fid;
	if (fab_name_set(&info->src_addr, &info->src_addrlen, &req->local) ||
	    fab_name_set(&info->dest_addr, &info->dest_addrlen, &req->remote) ||
	    (pep->ops->describe && pep->ops->describe(req, info))) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

/* Write the event. Another thread may have taken the request as soon as it is written, so nothing uses the request
 * afterwards. */
static int pep_report(struct fab_connreq *req, const void *data, size_t len)
{
	struct fab_pep *pep = req->pep;
	struct fi_info *info = request_info(req);
	int ret;

	if (!info)
		return -FI_ENOMEM;
	ret = fab_eq_write_cm(pep->eq, FI_CONNREQ, &pep->pep_fid.fid, info, data, len);
	if (ret)
		fi_freeinfo(info);
	return ret;
}

void fab_pep_request(struct fab_pep *pep, struct fab_connreq *req, const void *data, size_t len)
{
	req->pep = pep;
	if (!request_add(req)) {
		if (!pep_report(req, data, len))
			return;
		fab_connreq_take(pep->fabric, &req->handle->fid);
	}
	FI_WARN(pep->fabric->prov, FI_LOG_EP_CTRL, "no memory to report a connection request: it is refused\n");
	pep->ops->drop(req);
}

bool fab_pep_room(const struct fab_pep *pep, uint32_t more)
{
	uint32_t cnt;

	pthread_mutex_lock(&pep->fabric->lock);
	cnt = pep->req_cnt + more;
	pthread_mutex_unlock(&pep->fabric->lock);
	return cnt < (uint32_t) pep->backlog;
}

/* The passive endpoint with this handle, or NULL. fabric->lock held. */
static struct fab_pep *pep_find(struct fab_fabric *fabric, fid_t handle)
{
	struct fab_list *link;

	fab_list_for_each(&fabric->peps, link) {
		struct fab_pep *pep = fab_container(link, struct fab_pep, link);

		if (&pep->pep_fid.fid == handle)
			return pep;
	}
	return NULL;
}

int fab_pep_take(struct fab_fabric *fabric, fid_t handle, void (*take)(struct fab_pep *pep, void *to), void *to)
{
	struct fab_pep *pep;
	int ret = -FI_ENOENT;

	pthread_mutex_lock(&fabric->lock);
	pep = pep_find(fabric, handle);
	if (pep)
		ret = pep->listening ? -FI_EOPBADSTATE : pep->ops->bind(pep);
	if (!ret)
		take(pep, to);
	pthread_mutex_unlock(&fabric->lock);
	return ret;
}

int fab_cm_check_data(const struct fi_provider *prov, size_t max, const void *data, size_t len)
{
	if (len <= max && (data || !len))
		return 0;
	FI_WARN(prov, FI_LOG_EP_CTRL, "%zu bytes of connection data%s: at most %zu can be sent (FI_OPT_CM_DATA_SIZE)\n",
		len, data ? "" : " at NULL", max);
	return -FI_EINVAL;
}

/* ---- calls ---- */

static int pep_listen(struct fid_pep *fid)
{
	struct fab_pep *pep = fab_pep_of(&fid->fid);
	int ret;

	if (!pep->eq || pep->listening) {
		FI_WARN(pep->fabric->prov, FI_LOG_EP_CTRL, "fi_listen: %s\n",
			pep->listening ? "it listens already" : "bind an event queue first");
		return pep->eq ? -FI_EOPBADSTATE : -FI_ENOEQ;
	}
	ret = pep->ops->bind(pep);
	if (!ret)
		ret = pep->ops->listen(pep);
	pep->listening = !ret;
	if (!ret) {
		fab_stats_ep_name(pep->stats, &pep->addr.sa, 0);
		fab_stats_ep_enabled(pep->stats, pep->eq->engine.stats.record, FI_CLASS_PEP);
	}
	return ret;
}

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t paramlen)
{
	struct fab_pep *pep = fab_pep_of(&fid->fid);
	struct fab_connreq *req;
	int ret;

	ret = fab_cm_check_data(pep->fabric->prov, pep->ops->cm_data_max, param, paramlen);
	if (ret)
		return ret;
	req = fab_connreq_take(pep->fabric, handle);
	if (!req) {
		FI_WARN(pep->fabric->prov, FI_LOG_EP_CTRL, "fi_reject: the handle is no connection request that waits "
			"for an answer\n");
		return -FI_EINVAL;
	}
	pep->ops->reject(req, param, paramlen);
	return 0;
}

static int pep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct fab_pep *pep = fab_pep_of(fid);

	if (pep->listening)
		return -FI_EOPBADSTATE;
	pep->ops->unbind(pep);
	return fab_any_name_take(pep->fabric->prov, &pep->addr, pep->info, addr, addrlen);
}

static int pep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct fab_pep *pep = fab_pep_of(fid);
	union fab_any_addr name;
	int ret;

	ret = pep->listening ? 0 : pep->ops->bind(pep);
	if (ret)
		return ret;
	name = pep->addr;
	if (pep->ops->advertise)
		pep->ops->advertise(&name.ip);
	return fab_name_give(&name, addr, addrlen);
}

static int pep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	return fab_getopt_size(fab_pep_of(fid)->ops->cm_data_max, optval, optlen);
}

static int pep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	(void) fid, (void) level, (void) optname, (void) optval, (void) optlen;
	return -FI_ENOPROTOOPT;
}

static int pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct fab_pep *pep = fab_pep_of(fid);
	struct fab_eq *eq;

	if (bfid->fclass != FI_CLASS_EQ || flags) {
		FI_WARN(pep->fabric->prov, FI_LOG_EP_CTRL, "fi_pep_bind of an object of class %zu with flags %#llx: an "
			"event queue and no flags are allowed\n", bfid->fclass, (unsigned long long) flags);
		return -FI_EINVAL;
	}
	eq = fab_container(bfid, struct fab_eq, eq_fid.fid);
	if (eq->fabric != pep->fabric || pep->eq) {
		FI_WARN(pep->fabric->prov, FI_LOG_EP_CTRL, "fi_pep_bind: %s\n", pep->eq ?
			"there is an event queue already" : "the event queue belongs to another fabric");
		return -FI_EINVAL;
	}
	fab_eq_get(eq);
	pep->eq = eq;
	return 0;
}

static int default_backlog(const struct fab_pep_ops *ops)
{
	return ops->backlog ? ops->backlog : DEFAULT_BACKLOG;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	struct fab_pep *pep = fab_pep_of(fid);
	int backlog;

	if (command != FI_BACKLOG)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	backlog = *(int *) arg;
	if (backlog < 0) {
		FI_WARN(pep->fabric->prov, FI_LOG_EP_CTRL, "FI_BACKLOG %d: 0 (the default) or more is allowed\n",
			backlog);
		return -FI_EINVAL;
	}
	pep->backlog = backlog ? backlog : default_backlog(pep->ops);
	return 0;
}

/* ---- close ---- */

static void drop_event(uint32_t event, void *data, size_t len)
{
	struct fi_eq_cm_entry *entry = data;

	(void) len;
	if (event == FI_CONNREQ)
		fi_freeinfo(entry->info);
}

/* Drop the requests that were not taken. */
static void drop_requests(struct fab_pep *pep)
{
	struct fab_connreq *req;

	while ((req = pep_take_request(pep->fabric, NULL, pep)))
		pep->ops->drop(req);
}

static void pep_free(struct fab_defer *defer)
{
	free(fab_container(defer, struct fab_pep, defer));
}

static int pep_close(struct fid *fid)
{
	struct fab_pep *pep = fab_pep_of(fid);
	struct fab_fabric *fabric = pep->fabric;
	struct fab_eq *eq = pep->eq;

	pthread_mutex_lock(&fabric->lock);
	fab_list_remove(&pep->link);
	pthread_mutex_unlock(&fabric->lock);
	if (eq) {
		fab_engine_disown(&eq->engine);
		pep->ops->stop(pep);
		fab_eq_purge(eq, fid, drop_event);
		drop_requests(pep);
	}
	pep->ops->fini(pep);
	fi_freeinfo(pep->info);
	if (pep->forks == fab_fork_cnt)
		fab_stats_ep_close(pep->stats);
	atomic_fetch_sub(&fabric->ref, 1);
	pep->defer.free = pep_free;
	if (!eq) {
		pep_free(&pep->defer);
		return 0;
	}
	fab_engine_lock(&eq->engine);
	fab_engine_defer(&eq->engine, &pep->defer);
	fab_engine_unlock(&eq->engine);
	fab_eq_put(eq);
	return 0;
}

/* ---- tables and opening ---- */

static struct fi_ops pep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = pep_close,
	.bind = pep_bind,
	.control = pep_control,
};

static struct fi_ops_ep pep_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.getopt = pep_getopt,
	.setopt = pep_setopt,
};

static struct fi_ops_cm pep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = pep_setname,
	.getname = pep_getname,
	.listen = pep_listen,
	.reject = pep_reject,
};

void fab_pep_fill_ops(void)
{
	FAB_OPS_FILL(&pep_fid_ops);
	FAB_OPS_FILL(&pep_ep_ops);
	FAB_OPS_FILL(&pep_cm_ops);
}

int fab_pep_init(struct fab_pep *pep, struct fab_fabric *fabric, const struct fi_info *info,
		 const struct fab_pep_ops *ops, void *context)
{
	int ret;

	if (!info || !info->ep_attr || !info->domain_attr || info->ep_attr->type != FI_EP_MSG) {
		FI_WARN(fabric->prov, FI_LOG_EP_CTRL, "fi_passive_ep: pass an info of fi_getinfo() with ep_attr->type "
			"FI_EP_MSG\n");
		return -FI_EINVAL;
	}
	ret = fab_any_name_take(fabric->prov, &pep->addr, info, info->src_addr, info->src_addrlen);
	if (ret)
		return ret;
	pep->info = fab_info_copy(fabric->prov, fabric->fabric_fid.api_version, info);
	pep->stats = pep->info ? fab_stats_ep_open(fabric->prov, pep->info, fabric->layered) : NULL;
	if (!pep->stats) {
		fi_freeinfo(pep->info);
		return -FI_ENOMEM;
	}
	pep->forks = fab_fork_cnt;
	pep->pep_fid = (struct fid_pep) {
		.fid = { .fclass = FI_CLASS_PEP, .context = context, .ops = &pep_fid_ops },
		.ops = &pep_ep_ops,
		.cm = &pep_cm_ops,
	};
	pep->fabric = fabric;
	pep->ops = ops;
	pep->backlog = default_backlog(ops);
	atomic_fetch_add(&fabric->ref, 1);
	pthread_mutex_lock(&fabric->lock);
	fab_list_add_tail(&fabric->peps, &pep->link);
	pthread_mutex_unlock(&fabric->lock);
	return 0;
}
