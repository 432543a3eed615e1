/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive endpoints: a listening id, whose requests are reported as FI_CONNREQ. Runs on the engine of the bound EQ, whose
 * lock guards what happens after fi_listen.
 *
 *   request -> struct vrb_connreq, event -> taken by fi_endpoint or fi_reject, or dropped by fi_close
 */
#include "verbs/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include "common/ip_name.h"
#include "common/ops.h"

#define DEFAULT_BACKLOG	128

struct vrb_pep {
	struct fid_pep pep_fid;
	struct vrb_fabric *fabric;	/* borrowed: open took a reference */
	struct fab_eq *eq;		/* borrowed: bind took a reference; NULL before */
	struct fi_info *info;		/* owned; what a request's info is a copy of */
	union fab_sockaddr addr;	/* to bind to */
	struct rdma_event_channel *channel;	/* owned */
	struct rdma_cm_id *id;		/* owned; NULL until it is bound */
	bool listening;
	int backlog;
	struct fab_source src;
	struct fab_defer defer;
};

static struct vrb_pep *pep_of(struct fid *fid)
{
	return fab_container(fid, struct vrb_pep, pep_fid.fid);
}

/* ---- requests ---- */

struct vrb_connreq *vrb_connreq_take(struct vrb_fabric *fabric, fid_t handle)
{
	struct vrb_connreq *found = NULL;
	struct fab_list *link;

	pthread_mutex_lock(&fabric->lock);
	fab_list_for_each(&fabric->connreqs, link) {
		struct vrb_connreq *req = fab_container(link, struct vrb_connreq, link);

		if (&req->fid == handle)
			found = req;
	}
	if (found)
		fab_list_remove(&found->link);
	pthread_mutex_unlock(&fabric->lock);
	return found;
}

static struct fi_info *request_info(const struct vrb_pep *pep, struct vrb_connreq *req)
{
	const struct vrb_device *dev = NULL;
	struct fi_info *info = fi_dupinfo(pep->info);
	union fab_sockaddr local = { 0 }, peer = { 0 };

	if (!info)
		return NULL;
	memcpy(&local, rdma_get_local_addr(req->id), fab_addr_len(rdma_get_local_addr(req->id)));
	memcpy(&peer, rdma_get_peer_addr(req->id), fab_addr_len(rdma_get_peer_addr(req->id)));
	dev = vrb_device_of(&local);
	info->handle = &req->fid;
	/* a listener at the wildcard address has them on any device */
	if (dev && strcmp(dev->name, info->domain_attr->name)) {
		free(info->domain_attr->name);
		info->domain_attr->name = strdup(dev->name);
	}
	if (info->domain_attr->name && !fab_name_set(&info->src_addr, &info->src_addrlen, &local) &&
	    !fab_name_set(&info->dest_addr, &info->dest_addrlen, &peer))
		return info;
	fi_freeinfo(info);
	return NULL;
}

static int report(struct vrb_pep *pep, struct vrb_connreq *req, const struct rdma_conn_param *param)
{
	union vrb_cm_event ev = { .entry.fid = &pep->pep_fid.fid };
	const void *data;
	size_t len;
	int ret;

	ev.entry.info = request_info(pep, req);
	if (!ev.entry.info)
		return -FI_ENOMEM;
	data = vrb_cm_unpack(param->private_data, param->private_data_len, &len);
	if (len)
		memcpy(ev.entry.data, data, len);
	ret = fab_eq_write(pep->eq, FI_CONNREQ, &ev, sizeof(ev.entry) + len, 0, &pep->pep_fid.fid);
	if (ret)
		fi_freeinfo(ev.entry.info);
	return ret;
}

/* Refuse without a word. */
static void drop(struct rdma_cm_id *id)
{
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

/* The event has been acknowledged: the id may be moved or destroyed by whoever hears of the request. */
static void on_request(struct vrb_pep *pep, struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	struct vrb_connreq *req = calloc(1, sizeof(*req));

	if (!req) {
		drop(id);
		return;
	}
	req->fid.fclass = FI_CLASS_CONNREQ;
	req->pep = &pep->pep_fid;
	req->id = id;
	pthread_mutex_lock(&pep->fabric->lock);
	fab_list_add_tail(&pep->fabric->connreqs, &req->link);
	pthread_mutex_unlock(&pep->fabric->lock);
	if (!report(pep, req, param))
		return;
	VRB_WARN(FI_LOG_EP_CTRL, "no memory to report a connection request: refused\n");
	req = vrb_connreq_take(pep->fabric, &req->fid);
	drop(req->id);
	free(req);
}

static void pep_ready(struct fab_source *src, uint32_t events)
{
	struct vrb_pep *pep = fab_container(src, struct vrb_pep, src);
	struct rdma_cm_event *event;

	(void) events;
	while (!rdma_get_cm_event(pep->channel, &event)) {
		enum rdma_cm_event_type type = event->event;
		struct rdma_conn_param param = event->param.conn;
		struct rdma_cm_id *id = event->id;
		uint8_t data[UINT8_MAX];

		if (type == RDMA_CM_EVENT_CONNECT_REQUEST && param.private_data) {
			memcpy(data, param.private_data, param.private_data_len);
			param.private_data = data;
		}
		rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			on_request(pep, id, &param);
	}
}

/* ---- calls ---- */

static int pep_bind_id(struct vrb_pep *pep)
{
	int ret;

	if (pep->id)
		return 0;
	if (rdma_create_id(pep->channel, &pep->id, pep, RDMA_PS_TCP)) {
		pep->id = NULL;
		return -errno;
	}
	if (!rdma_bind_addr(pep->id, &pep->addr.sa))
		return 0;
	ret = -errno;
	VRB_WARN(FI_LOG_EP_CTRL, "rdma_bind_addr: %s\n", strerror(errno));
	rdma_destroy_id(pep->id);
	pep->id = NULL;
	return ret;
}

static int pep_listen(struct fid_pep *fid)
{
	struct vrb_pep *pep = pep_of(&fid->fid);
	int ret;

	if (!pep->eq || pep->listening) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_listen: %s\n",
			 pep->listening ? "it listens already" : "bind an event queue first");
		return pep->eq ? -FI_EOPBADSTATE : -FI_ENOEQ;
	}
	ret = pep_bind_id(pep);
	if (ret)
		return ret;
	if (rdma_listen(pep->id, pep->backlog)) {
		VRB_WARN(FI_LOG_EP_CTRL, "rdma_listen: %s\n", strerror(errno));
		return -errno;
	}
	fab_progress_lock(&pep->eq->progress);
	ret = fab_source_add(&pep->eq->progress, &pep->src, EPOLLIN);
	pep->listening = !ret;
	fab_progress_unlock(&pep->eq->progress);
	return ret;
}

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t paramlen)
{
	struct vrb_pep *pep = pep_of(&fid->fid);
	uint8_t data[VRB_CM_DATA_MAX + 1];
	struct vrb_connreq *req;
	int ret;

	ret = vrb_cm_pack(data, param, paramlen);
	if (ret)
		return ret;
	req = vrb_connreq_take(pep->fabric, handle);
	if (!req) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_reject: the handle is no connection request that waits for an answer\n");
		return -FI_EINVAL;
	}
	if (rdma_reject(req->id, data, data[0] + 1))
		VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "fi_reject: the peer has gone meanwhile: %s\n", strerror(errno));
	rdma_destroy_id(req->id);
	free(req);
	return 0;
}

static int pep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct vrb_pep *pep = pep_of(fid);

	if (pep->id)
		return -FI_EOPBADSTATE;
	return fab_name_take(&vrb_prov, &pep->addr, pep->info, addr, addrlen);
}

static int pep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct vrb_pep *pep = pep_of(fid);
	union fab_sockaddr name;
	int ret = pep_bind_id(pep);

	if (ret)
		return ret;
	name = pep->addr;
	fab_addr_set_port(&name.sa, ntohs(rdma_get_src_port(pep->id)));
	return fab_name_give(&name, addr, addrlen);
}

static int pep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	(void) fid;
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	return fab_getopt_size(VRB_CM_DATA_MAX, optval, optlen);
}

static int pep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	(void) fid, (void) level, (void) optname, (void) optval, (void) optlen;
	return -FI_ENOPROTOOPT;
}

static int pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct vrb_pep *pep = pep_of(fid);
	struct fab_eq *eq;

	if (bfid->fclass != FI_CLASS_EQ || flags) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_pep_bind of an object of class %zu with flags %#llx: an event queue and "
			 "no flags are allowed\n", bfid->fclass, (unsigned long long) flags);
		return -FI_EINVAL;
	}
	eq = fab_container(bfid, struct fab_eq, eq_fid.fid);
	if (eq->fabric != &pep->fabric->base || pep->eq) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_pep_bind: %s\n", pep->eq ? "there is an event queue already" :
			 "the event queue belongs to another fabric");
		return -FI_EINVAL;
	}
	fab_eq_get(eq);
	pep->eq = eq;
	return 0;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	struct vrb_pep *pep = pep_of(fid);

	if (command != FI_BACKLOG)
		return -FI_ENOSYS;
	if (!arg || *(int *) arg < 0)
		return -FI_EINVAL;
	pep->backlog = *(int *) arg ? *(int *) arg : DEFAULT_BACKLOG;
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

/* Refuse whoever nobody has taken. */
static void drop_requests(struct vrb_pep *pep)
{
	struct fab_list *link, *next;

	pthread_mutex_lock(&pep->fabric->lock);
	fab_list_for_each_safe(&pep->fabric->connreqs, link, next) {
		struct vrb_connreq *req = fab_container(link, struct vrb_connreq, link);

		if (req->pep != &pep->pep_fid)
			continue;
		fab_list_remove(link);
		drop(req->id);
		free(req);
	}
	pthread_mutex_unlock(&pep->fabric->lock);
}

static void pep_free(struct fab_defer *defer)
{
	free(fab_container(defer, struct vrb_pep, defer));
}

static int pep_close(struct fid *fid)
{
	struct vrb_pep *pep = pep_of(fid);
	struct fab_eq *eq = pep->eq;

	if (eq) {
		fab_progress_lock(&eq->progress);
		fab_source_del(&pep->src);
		fab_progress_unlock(&eq->progress);
		fab_eq_purge(eq, fid, drop_event);
	}
	drop_requests(pep);
	if (pep->id)
		rdma_destroy_id(pep->id);
	rdma_destroy_event_channel(pep->channel);
	fi_freeinfo(pep->info);
	atomic_fetch_sub(&pep->fabric->base.ref, 1);
	pep->defer.free = pep_free;
	if (!eq) {
		pep_free(&pep->defer);
		return 0;
	}
	fab_progress_lock(&eq->progress);
	fab_progress_defer(&eq->progress, &pep->defer);
	fab_progress_unlock(&eq->progress);
	fab_eq_put(eq);
	return 0;
}

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

void vrb_pep_fill_ops(void)
{
	FAB_OPS_FILL(&pep_fid_ops);
	FAB_OPS_FILL(&pep_ep_ops);
	FAB_OPS_FILL(&pep_cm_ops);
}

static int pep_init(struct vrb_pep *pep, const struct fi_info *info)
{
	int flags, ret;

	pep->info = fi_dupinfo(info);
	if (!pep->info)
		return -FI_ENOMEM;
	ret = fab_name_take(&vrb_prov, &pep->addr, info, info->src_addr, info->src_addrlen);
	if (ret)
		goto free_info;
	pep->channel = rdma_create_event_channel();
	flags = pep->channel ? fcntl(pep->channel->fd, F_GETFL) : -1;
	if (flags >= 0 && !fcntl(pep->channel->fd, F_SETFL, flags | O_NONBLOCK)) {
		pep->src = (struct fab_source) { .fd = pep->channel->fd, .ready = pep_ready };
		return 0;
	}
	ret = -errno;
	if (pep->channel)
		rdma_destroy_event_channel(pep->channel);
free_info:
	fi_freeinfo(pep->info);
	return ret;
}

int vrb_pep_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_pep **pep_fid, void *context)
{
	struct vrb_fabric *fabric = fab_container(fabric_fid, struct vrb_fabric, base.fabric_fid);
	struct vrb_pep *pep;
	int ret;

	if (!info || !info->ep_attr || !info->domain_attr || info->ep_attr->type != FI_EP_MSG) {
		VRB_WARN(FI_LOG_EP_CTRL, "fi_passive_ep: pass an info of fi_getinfo() with ep_attr->type FI_EP_MSG\n");
		return -FI_EINVAL;
	}
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	ret = pep_init(pep, info);
	if (ret) {
		free(pep);
		return ret;
	}
	pep->pep_fid = (struct fid_pep) {
		.fid = { .fclass = FI_CLASS_PEP, .context = context, .ops = &pep_fid_ops },
		.ops = &pep_ep_ops,
		.cm = &pep_cm_ops,
	};
	pep->fabric = fabric;
	pep->backlog = DEFAULT_BACKLOG;
	atomic_fetch_add(&fabric->base.ref, 1);
	*pep_fid = &pep->pep_fid;
	return 0;
}
