/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * tcp's part of passive endpoints (common/endpoint/pep.h): a socket, and a listener with the connections that wait for
 * their request. It runs on the engine of the EQ bound, whose lock guards it.
 */
#include "tcp/connect/connect.h"

#include <stdlib.h>
#include <string.h>
#include "base/sock.h"
#include "common/endpoint/endpoint.h"
#include "tcp/handshake/handshake.h"
#include "tcp/params/params.h"
#include "tcp/sock/sock.h"

struct tcp_pep {
	struct fab_pep base;
	int fd;				/* owned: bound and not listening, or -1 */
	struct fab_auth_key *auth_key;	/* has a reference: the key that clients must prove; or NULL */
	struct tcp_listener listener;
};
_Static_assert(TCP_CM_DATA_MAX <= FAB_CM_DATA_MAX, "events of the CM have room");

static struct tcp_pep *pep_of(struct fab_pep *base)
{
	return fab_container(base, struct tcp_pep, base);
}

/* ---- requests ---- */

void tcp_connreq_free(struct tcp_connreq *req)
{
	tcp_link_close(&req->sock);
	fab_auth_put(req->auth_key);
	free(req);
}

static struct tcp_connreq *connreq_of(struct fab_connreq *base)
{
	return fab_container(base, struct tcp_connreq, base);
}

struct tcp_connreq *tcp_connreq_take(struct fab_fabric *fabric, fid_t handle)
{
	struct fab_connreq *base = fab_connreq_take(fabric, handle);

	return base ? connreq_of(base) : NULL;
}

static void pep_drop(struct fab_connreq *base)
{
	tcp_connreq_free(connreq_of(base));
}

static void pep_reject(struct fab_connreq *base, const void *data, size_t len)
{
	struct tcp_connreq *req = connreq_of(base);
	int ret;

	ret = tcp_cm_send(req->sock.fd, &(struct tcp_cm_msg) { .type = TCP_CM_NACK, .data = data, .data_len = len });
	if (ret)
		TCP_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "fi_reject: the peer has closed the connection: %s\n",
			strerror(-ret));
	tcp_connreq_free(req);
}

/* Make a request from a finished exchange, and report it to the application. */
static void pep_request(struct tcp_listener *listener, struct tcp_cm *cm)
{
	struct tcp_pep *pep = fab_container(listener, struct tcp_pep, listener);
	struct tcp_connreq *req;

	if (tcp_cm_kind(cm) == TCP_KIND_RDM) {
		tcp_cm_refuse_kind(cm, TCP_KIND_MSG);
		return;
	}
	req = calloc(1, sizeof(*req));
	if (!req) {
		TCP_WARN(FI_LOG_EP_CTRL, "no memory for a connection request: it is dropped\n");
		return;
	}
	req->sock = tcp_cm_take_sock(cm);
	req->peer = cm->peer;
	req->auth_key = fab_auth_share(cm->proven);
	req->base.local.ip = cm->local;
	req->base.remote.ip = cm->remote;
	fab_pep_request(&pep->base, &req->base, cm->data, cm->data_len);
}

static bool pep_has_room(struct tcp_listener *listener)
{
	return fab_pep_room(&fab_container(listener, struct tcp_pep, listener)->base, listener->awaited_cnt);
}

/* ---- the socket ---- */

static int pep_bind(struct fab_pep *base)
{
	struct tcp_pep *pep = pep_of(base);
	int fd;

	if (pep->fd >= 0)
		return 0;
	fd = tcp_sock_bind(&base->addr.ip, &base->addr.ip);
	if (fd < 0)
		return fd;
	pep->fd = fd;
	return 0;
}

static void pep_unbind(struct fab_pep *base)
{
	fab_sock_close(&pep_of(base)->fd);
}

static int pep_listen(struct fab_pep *base)
{
	struct tcp_pep *pep = pep_of(base);
	int ret;

	fab_engine_lock(&base->eq->engine);
	ret = tcp_listener_start(&pep->listener, &base->eq->engine, pep->fd, TCP_BACKLOG);
	if (!ret)
		pep->fd = -1;
	fab_engine_unlock(&base->eq->engine);
	return ret;
}

static void pep_take_fd(struct fab_pep *base, void *fd)
{
	*(int *) fd = pep_of(base)->fd;
	pep_of(base)->fd = -1;
}

int tcp_pep_take_fd(struct fab_fabric *fabric, fid_t handle)
{
	int fd, ret = fab_pep_take(fabric, handle, pep_take_fd, &fd);

	return !ret ? fd : ret == -FI_ENOENT ? -FI_EINVAL : ret;
}

static void pep_stop(struct fab_pep *base)
{
	fab_engine_lock(&base->eq->engine);
	tcp_listener_stop(&pep_of(base)->listener);
	fab_engine_unlock(&base->eq->engine);
}

static void pep_fini(struct fab_pep *base)
{
	pep_unbind(base);
	fab_auth_put(pep_of(base)->auth_key);
}

static const struct fab_pep_ops pep_ops = {
	.cm_data_max = TCP_CM_DATA_MAX,
	.bind = pep_bind,
	.unbind = pep_unbind,
	.listen = pep_listen,
	.stop = pep_stop,
	.fini = pep_fini,
	.reject = pep_reject,
	.drop = pep_drop,
	.advertise = tcp_advertise,
};

/* Get the authorization key of endpoints that will be opened for its requests: info's own, that of info's domain,
 * or that of FI_TCP_AUTH_KEY_FILE. */
static int pep_get_key(const struct fab_fabric *fabric, const struct fi_info *info, struct fab_auth_key **key)
{
	const struct fi_domain_attr *domain = info ? info->domain_attr : NULL;
	const struct fi_ep_attr *ep = info ? info->ep_attr : NULL;

	*key = NULL;
	if (FI_VERSION_LT(fabric->fabric_fid.api_version, FI_VERSION(1, 5)))
		return tcp_auth_spare("fi_passive_ep", key);
	if (ep && ep->auth_key_size)
		return fab_auth_get(&tcp_prov, "fi_passive_ep", ep->auth_key, ep->auth_key_size, key);
	if (domain && domain->auth_key_size)
		return fab_auth_get(&tcp_prov, "fi_passive_ep", domain->auth_key, domain->auth_key_size, key);
	return tcp_auth_spare("fi_passive_ep", key);
}

int tcp_pep_open(struct fid_fabric *fabric_fid, struct fi_info *info, struct fid_pep **pep_fid, void *context)
{
	struct fab_fabric *fabric = fab_container(fabric_fid, struct fab_fabric, fabric_fid);
	struct tcp_pep *pep = calloc(1, sizeof(*pep));
	int ret;

	if (!pep)
		return -FI_ENOMEM;
	pep->fd = -1;
	ret = pep_get_key(fabric, info, &pep->auth_key);
	if (ret)
		goto free_pep;
	pep->listener.room = pep_has_room;
	pep->listener.request = pep_request;
	pep->listener.keyring.key = pep->auth_key;
	ret = fab_pep_init(&pep->base, fabric, info, &pep_ops, context);
	if (ret)
		goto put_key;
	*pep_fid = &pep->base.pep_fid;
	return 0;

put_key:
	fab_auth_put(pep->auth_key);
free_pep:
	free(pep);
	return ret;
}
