/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Passive endpoints: a listener whose connections each owe a request, and report it as FI_CONNREQ. Runs on the engine
 * of the bound EQ, whose lock guards what happens after fi_listen.
 *
 *   listener has a request -> struct tcp_connreq, event -> taken by fi_endpoint or fi_reject, or
 *   dropped by fi_close
 *
 * Who may still reach a pep when it closes: its listener, stopped under the
 * engine's lock; its requests, in fabric->connreqs under that lock; unread events, purged.
 */
#include "tcp/connect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/sock.h"
#include "common/ip_name.h"
#include "common/ops.h"
#include "tcp/advert.h"
#include "tcp/cm.h"
#include "tcp/listen.h"
#include "tcp/sock.h"

#define DEFAULT_BACKLOG	128	/* requests that nobody has answered yet; further ones wait in the kernel */

struct tcp_pep {
	struct fid_pep pep_fid;
	struct tcp_fabric *fabric;	/* borrowed: open took a reference */
	struct fab_eq *eq;		/* borrowed: bind took a reference; NULL before */
	struct fi_info *info;		/* owned; what a request's info is a copy of */
	struct fab_list link;		/* in fabric->peps */
	union fab_sockaddr addr;	/* asked for, then bound to */
	int fd;				/* owned: bound and not listening, or -1 */
	bool listening;
	int backlog;
	struct fab_auth_key *auth_key;	/* a reference, or NULL: what clients have to prove */
	uint32_t req_cnt;		/* requests not taken yet; fabric->lock */
	struct tcp_listener listener;
	struct fab_defer defer;
};

static struct tcp_pep *pep_of(struct fid *fid)
{
	return fab_container(fid, struct tcp_pep, pep_fid.fid);
}

/* ---- requests ---- */

void tcp_connreq_free(struct tcp_connreq *req)
{
	fab_sock_close(&req->fd);
	fab_auth_put(req->auth_key);
	free(req);
}

struct tcp_connreq *tcp_connreq_take(struct tcp_fabric *fabric, fid_t handle)
{
	struct tcp_connreq *found = NULL;
	struct fab_list *link;

	pthread_mutex_lock(&fabric->lock);
	fab_list_for_each(&fabric->connreqs, link) {
		struct tcp_connreq *req = fab_container(link, struct tcp_connreq, link);

		if (&req->fid == handle) {
			found = req;
			break;
		}
	}
	if (found) {
		fab_list_remove(&found->link);
		found->pep->req_cnt--;
	}
	pthread_mutex_unlock(&fabric->lock);
	return found;
}

/* Take what the exchange brought into a request. NULL: no memory. */
static struct tcp_connreq *connreq_new(struct tcp_pep *pep, struct tcp_cm *cm)
{
	struct tcp_connreq *req = calloc(1, sizeof(*req));

	if (!req)
		return NULL;
	req->fid.fclass = FI_CLASS_CONNREQ;
	req->pep = pep;
	req->fd = tcp_cm_take_fd(cm);
	req->remote = cm->remote;
	req->peer = cm->peer;
	req->auth_key = fab_auth_share(cm->proven);
	pthread_mutex_lock(&pep->fabric->lock);
	fab_list_add_tail(&pep->fabric->connreqs, &req->link);
	pep->req_cnt++;
	pthread_mutex_unlock(&pep->fabric->lock);
	return req;
}

/* What the application opens its endpoint with. */
static struct fi_info *connreq_info(const struct tcp_connreq *req, const union fab_sockaddr *local)
{
	struct fi_info *info = fi_dupinfo(req->pep->info);

	if (!info)
		return NULL;
	info->handle = (fid_t) &req->fid;
	if (fab_name_set(&info->src_addr, &info->src_addrlen, local) ||
	    fab_name_set(&info->dest_addr, &info->dest_addrlen, &req->remote)) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

/* Tell the application. Nothing touches the request after the event is written: another thread may have it already. */
static int report(struct tcp_connreq *req, const struct tcp_cm *cm)
{
	struct tcp_pep *pep = req->pep;
	union tcp_cm_event ev = { .entry.fid = &pep->pep_fid.fid };
	int ret;

	ev.entry.info = connreq_info(req, &cm->local);
	if (!ev.entry.info)
		return -FI_ENOMEM;
	memcpy(ev.entry.data, cm->data, cm->data_len);
	ret = fab_eq_write(pep->eq, FI_CONNREQ, &ev, sizeof(ev.entry) + cm->data_len, 0, &pep->pep_fid.fid);
	if (ret)
		fi_freeinfo(ev.entry.info);
	return ret;
}

/* A request has come: the application is to decide. */
static void pep_request(struct tcp_listener *listener, struct tcp_cm *cm)
{
	struct tcp_pep *pep = fab_container(listener, struct tcp_pep, listener);
	struct tcp_connreq *req = connreq_new(pep, cm);

	if (!req || report(req, cm)) {
		TCP_WARN(FI_LOG_EP_CTRL, "no memory to report a connection request: dropped\n");
		if (req)
			tcp_connreq_free(tcp_connreq_take(pep->fabric, &req->fid));
	}
}

static bool pep_room(struct tcp_listener *listener)
{
	struct tcp_pep *pep = fab_container(listener, struct tcp_pep, listener);
	uint32_t cnt;

	pthread_mutex_lock(&pep->fabric->lock);
	cnt = pep->req_cnt + listener->awaited_cnt;
	pthread_mutex_unlock(&pep->fabric->lock);
	return cnt < (uint32_t) pep->backlog;
}

/* ---- calls ---- */

static int pep_bind_socket(struct tcp_pep *pep)
{
	int fd;

	if (pep->fd >= 0)
		return 0;
	fd = tcp_sock_bind(&pep->addr, &pep->addr);
	if (fd < 0)
		return fd;
	pep->fd = fd;
	return 0;
}

static int pep_listen(struct fid_pep *fid)
{
	struct tcp_pep *pep = pep_of(&fid->fid);
	int ret;

	if (!pep->eq || pep->listening) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_listen: %s\n",
			 pep->listening ? "it listens already" : "bind an event queue first");
		return pep->eq ? -FI_EOPBADSTATE : -FI_ENOEQ;
	}
	ret = pep_bind_socket(pep);
	if (ret)
		return ret;
	fab_progress_lock(&pep->eq->progress);
	ret = tcp_listener_start(&pep->listener, &pep->eq->progress, pep->fd, TCP_BACKLOG);
	if (!ret) {
		pep->fd = -1;
		pep->listening = true;
	}
	fab_progress_unlock(&pep->eq->progress);
	return ret;
}

static int pep_reject(struct fid_pep *fid, fid_t handle, const void *param, size_t paramlen)
{
	struct tcp_pep *pep = pep_of(&fid->fid);
	struct tcp_connreq *req;
	int ret;

	ret = tcp_check_param(param, paramlen);
	if (ret)
		return ret;
	req = tcp_connreq_take(pep->fabric, handle);
	if (!req) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_reject: the handle is no connection request that waits for an answer\n");
		return -FI_EINVAL;
	}
	ret = tcp_cm_send(req->fd, &(struct tcp_cm_msg) { .type = TCP_CM_NACK, .data = param, .data_len = paramlen });
	if (ret)
		TCP_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "fi_reject: the peer has gone meanwhile: %s\n", strerror(-ret));
	tcp_connreq_free(req);
	return 0;
}

static int pep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct tcp_pep *pep = pep_of(fid);

	if (pep->listening)
		return -FI_EOPBADSTATE;
	fab_sock_close(&pep->fd);
	return fab_name_take(&tcp_prov, &pep->addr, pep->info, addr, addrlen);
}

static int pep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct tcp_pep *pep = pep_of(fid);
	union fab_sockaddr name;
	int ret = 0;

	if (!pep->listening)
		ret = pep_bind_socket(pep);
	name = pep->addr;
	tcp_advertise(&name);
	return ret ? ret : fab_name_give(&name, addr, addrlen);
}

int tcp_pep_take_fd(struct tcp_fabric *fabric, fid_t handle)
{
	struct fab_list *link;
	int fd = -FI_EINVAL;

	pthread_mutex_lock(&fabric->lock);
	fab_list_for_each(&fabric->peps, link) {
		struct tcp_pep *pep = fab_container(link, struct tcp_pep, link);

		if (&pep->pep_fid.fid != handle)
			continue;
		fd = pep->listening ? -FI_EOPBADSTATE : pep_bind_socket(pep);
		if (!fd) {
			fd = pep->fd;
			pep->fd = -1;
		}
		break;
	}
	pthread_mutex_unlock(&fabric->lock);
	return fd;
}

static int pep_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	(void) fid;
	if (level != FI_OPT_ENDPOINT || optname != FI_OPT_CM_DATA_SIZE)
		return -FI_ENOPROTOOPT;
	return fab_getopt_size(TCP_CM_DATA_MAX, optval, optlen);
}

static int pep_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	(void) fid, (void) level, (void) optname, (void) optval, (void) optlen;
	return -FI_ENOPROTOOPT;
}

static int pep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct tcp_pep *pep = pep_of(fid);
	struct fab_eq *eq;

	if (bfid->fclass != FI_CLASS_EQ || flags) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_pep_bind of an object of class %zu with flags %#llx: an event queue and "
			 "no flags are allowed\n", bfid->fclass, (unsigned long long) flags);
		return -FI_EINVAL;
	}
	eq = fab_container(bfid, struct fab_eq, eq_fid.fid);
	if (eq->fabric != &pep->fabric->base || pep->eq) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_pep_bind: %s\n", pep->eq ? "there is an event queue already" :
			 "the event queue belongs to another fabric");
		return -FI_EINVAL;
	}
	fab_eq_get(eq);
	pep->eq = eq;
	return 0;
}

static int pep_control(struct fid *fid, int command, void *arg)
{
	struct tcp_pep *pep = pep_of(fid);
	int backlog;

	if (command != FI_BACKLOG)
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	backlog = *(int *) arg;
	if (backlog < 0) {
		TCP_WARN(FI_LOG_EP_CTRL, "FI_BACKLOG %d: 0 (the default) or more is allowed\n", backlog);
		return -FI_EINVAL;
	}
	pep->backlog = backlog ? backlog : DEFAULT_BACKLOG;
	return 0;
}

static void drop_event(uint32_t event, void *data, size_t len)
{
	struct fi_eq_cm_entry *entry = data;

	(void) len;
	if (event == FI_CONNREQ)
		fi_freeinfo(entry->info);
}

/* Refuse new connections, let go of those that nobody has taken: their peers see the stream end. */
static void pep_stop(struct tcp_pep *pep)
{
	struct fab_list *link, *next;

	fab_progress_lock(&pep->eq->progress);
	tcp_listener_stop(&pep->listener);
	fab_progress_unlock(&pep->eq->progress);
	fab_eq_purge(pep->eq, &pep->pep_fid.fid, drop_event);

	pthread_mutex_lock(&pep->fabric->lock);
	fab_list_for_each_safe(&pep->fabric->connreqs, link, next) {
		struct tcp_connreq *req = fab_container(link, struct tcp_connreq, link);

		if (req->pep != pep)
			continue;
		fab_list_remove(link);
		tcp_connreq_free(req);
	}
	pthread_mutex_unlock(&pep->fabric->lock);
}

static void pep_free(struct fab_defer *defer)
{
	free(fab_container(defer, struct tcp_pep, defer));
}

static int pep_close(struct fid *fid)
{
	struct tcp_pep *pep = pep_of(fid);
	struct fab_eq *eq = pep->eq;

	pthread_mutex_lock(&pep->fabric->lock);
	fab_list_remove(&pep->link);
	pthread_mutex_unlock(&pep->fabric->lock);
	if (eq)
		pep_stop(pep);
	fab_sock_close(&pep->fd);
	fi_freeinfo(pep->info);
	fab_auth_put(pep->auth_key);
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

void tcp_pep_fill_ops(void)
{
	FAB_OPS_FILL(&pep_fid_ops);
	FAB_OPS_FILL(&pep_ep_ops);
	FAB_OPS_FILL(&pep_cm_ops);
}

/* The authorization key of the endpoints that will come from here: info's own, or that of its domain. */
static int pep_get_key(const struct fab_fabric *fabric, const struct fi_info *info, struct fab_auth_key **key)
{
	const struct fi_domain_attr *domain = info->domain_attr;
	const struct fi_ep_attr *ep = info->ep_attr;

	*key = NULL;
	if (FI_VERSION_LT(fabric->fabric_fid.api_version, FI_VERSION(1, 5)))
		return 0;
	if (ep->auth_key_size)
		return fab_auth_get(&tcp_prov, "fi_passive_ep", ep->auth_key, ep->auth_key_size, key);
	if (domain && domain->auth_key_size)
		return fab_auth_get(&tcp_prov, "fi_passive_ep", domain->auth_key, domain->auth_key_size, key);
	return 0;
}

int tcp_pep_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_pep **pep_fid, void *context)
{
	struct tcp_fabric *fabric = fab_container(fabric_fid, struct tcp_fabric, base.fabric_fid);
	struct tcp_pep *pep;
	int ret;

	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_MSG) {
		TCP_WARN(FI_LOG_EP_CTRL, "fi_passive_ep: pass an info of fi_getinfo() with ep_attr->type FI_EP_MSG\n");
		return -FI_EINVAL;
	}
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return -FI_ENOMEM;
	pep->info = fi_dupinfo(info);
	ret = pep->info ? fab_name_take(&tcp_prov, &pep->addr, info, info->src_addr, info->src_addrlen) : -FI_ENOMEM;
	if (!ret)
		ret = pep_get_key(&fabric->base, info, &pep->auth_key);
	if (ret) {
		fi_freeinfo(pep->info);
		free(pep);
		return ret;
	}
	pep->pep_fid = (struct fid_pep) {
		.fid = { .fclass = FI_CLASS_PEP, .context = context, .ops = &pep_fid_ops },
		.ops = &pep_ep_ops,
		.cm = &pep_cm_ops,
	};
	pep->fabric = fabric;
	pep->fd = -1;
	pep->backlog = DEFAULT_BACKLOG;
	pep->listener.room = pep_room;
	pep->listener.request = pep_request;
	pep->listener.keyring.key = pep->auth_key;
	atomic_fetch_add(&fabric->base.ref, 1);
	pthread_mutex_lock(&fabric->lock);
	fab_list_add_tail(&fabric->peps, &pep->link);
	pthread_mutex_unlock(&fabric->lock);
	*pep_fid = &pep->pep_fid;
	return 0;
}
