/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The verbs part of passive endpoints (common/endpoint/pep.h): a listening CM id. The engine of the bound EQ reads its
 * requests; the lock of that engine guards everything after fi_listen().
 */
#include "verbs/kind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <rdma/fi_errno.h>
#include "base/bits.h"
#include "common/endpoint/endpoint.h"

/* Requests that wait for the program to make progress. The kernel drops what comes beyond that or its own limit
 * (net.rdma_ucm.max_backlog, 1024 by default), and the peer's repeats it after seconds. */
#define BACKLOG	1024

struct vrb_pep {
	struct fab_pep base;
	struct fab_pep_ops ops;		/* with the limit for private data of the kind */
	struct rdma_event_channel *channel;	/* owned */
	const struct vrb_kind *kind;	/* of its domain; NULL: its name is not of this provider */
	struct rdma_cm_id *id;		/* owned; NULL until it is bound */
	struct rdma_cm_id *sidr;	/* owned: at the same port, if the kind has one (vrb_kind.sidr); or NULL */
	struct fab_source src;
};
_Static_assert(VRB_CM_DATA_MAX <= FAB_CM_DATA_MAX, "events of the CM have room");

static struct vrb_pep *pep_of(struct fab_pep *base)
{
	return fab_container(base, struct vrb_pep, base);
}

/* ---- requests ---- */

static struct vrb_connreq *connreq_of(const struct fab_connreq *base)
{
	return fab_container(base, struct vrb_connreq, base);
}

struct vrb_connreq *vrb_connreq_take(struct fab_fabric *fabric, fid_t handle)
{
	struct fab_connreq *base = fab_connreq_take(fabric, handle);

	return base ? connreq_of(base) : NULL;
}

/* The kind of an info. NULL: its domain name is not of this provider. */
static const struct vrb_kind *kind_of(const struct fi_info *info)
{
	const char *domain = info && info->domain_attr ? info->domain_attr->name : NULL;
	const struct vrb_device *dev = domain ? vrb_device_named(domain) : NULL;

	return dev ? vrb_kind_of(domain, dev->name) : NULL;
}

/* A listener at the wildcard address gets requests from any device. */
static int pep_describe(const struct fab_connreq *base, struct fi_info *info)
{
	const struct vrb_device *dev = vrb_device_of(&base->local.sa);
	const struct vrb_kind *kind = kind_of(info);
	char name[FI_NAME_MAX];

	if (!dev || dev == vrb_device_named(info->domain_attr->name))
		return 0;
	snprintf(name, sizeof(name), "%s%s", dev->name, kind ? kind->suffix : "");
	free(info->domain_attr->name);
	info->domain_attr->name = strdup(name);
	return info->domain_attr->name ? 0 : -FI_ENOMEM;
}

static void pep_reject(struct fab_connreq *base, const void *param, size_t len)
{
	struct vrb_connreq *req = connreq_of(base);
	const struct vrb_kind *kind = pep_of(base->pep)->kind;
	uint8_t data[VRB_CM_DATA_MAX + 1] = { 0 };

	vrb_cm_pack(data, param, len);
	if (rdma_reject(req->id, data, kind && kind->refusal ? kind->refusal(req->data, data) : data[0] + 1u))
		VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "rdma_reject: the peer has closed the connection: %s\n",
			strerror(errno));
	rdma_destroy_id(req->id);
	free(req);
}

static void pep_drop(struct fab_connreq *base)
{
	pep_reject(base, NULL, 0);
}

/* Handle a connection request. The event has been acknowledged, since a handler of the request may move or destroy the
 * id. */
static void on_request(struct vrb_pep *pep, struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	bool ib = rdma_get_local_addr(id)->sa_family == FAB_AF_IB;
	size_t ahead = ib ? sizeof(struct vrb_ib_ahead) : 0;
	size_t len = param->private_data && param->private_data_len > ahead ? param->private_data_len - ahead : 0;
	const uint8_t *told = len ? (const uint8_t *) param->private_data + ahead : NULL;
	struct vrb_connreq *req = calloc(1, sizeof(*req));
	const void *data;

	if (!req) {
		VRB_WARN(FI_LOG_EP_CTRL, "no memory for a connection request: it is refused\n");
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	req->id = id;
	if (len)
		memcpy(req->data, told, fab_min(sizeof(req->data), len));
	memcpy(&req->base.local, rdma_get_local_addr(id), fab_any_addr_len(rdma_get_local_addr(id)));
	memcpy(&req->base.remote, rdma_get_peer_addr(id), fab_any_addr_len(rdma_get_peer_addr(id)));
	data = vrb_cm_data(pep->kind, told, (uint8_t) len, &len);
	fab_pep_request(&pep->base, &req->base, data, len);
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
		if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			VRB_WARN(FI_LOG_EP_CTRL, "the device that a passive endpoint listens on is being removed\n");
		if (type == RDMA_CM_EVENT_ADDR_CHANGE)
			vrb_cm_address_changed(id->verbs ? ibv_get_device_name(id->verbs->device) : "(any)");
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			on_request(pep, id, &param);
	}
}

/* ---- the listener ---- */

static void pep_unbind(struct fab_pep *base)
{
	struct vrb_pep *pep = pep_of(base);

	if (pep->id)
		rdma_destroy_id(pep->id);
	if (pep->sidr)
		rdma_destroy_id(pep->sidr);
	pep->id = pep->sidr = NULL;
}

/* Without it, peers of upstream that share an initiator get no answer. */
static void bind_sidr(struct vrb_pep *pep)
{
	struct sockaddr *addr = &pep->base.addr.sa;

	if (rdma_create_id(pep->channel, &pep->sidr, pep, RDMA_PS_UDP)) {
		pep->sidr = NULL;
		return;
	}
	if (!rdma_bind_addr(pep->sidr, addr))
		return;
	VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "rdma_bind_addr to port %u of the service of datagrams: %s; upstream's "
		"processes can have one XRC connection each to here\n", fab_addr_port(addr), strerror(errno));
	rdma_destroy_id(pep->sidr);
	pep->sidr = NULL;
}

static int pep_bind(struct fab_pep *base)
{
	struct vrb_pep *pep = pep_of(base);
	int ret;

	if (pep->id)
		return 0;
	if (rdma_create_id(pep->channel, &pep->id, pep, vrb_port_space(&base->addr.sa))) {
		pep->id = NULL;
		return -errno;
	}
	if (!rdma_bind_addr(pep->id, &base->addr.sa)) {
		fab_addr_set_port(&base->addr.sa, ntohs(rdma_get_src_port(pep->id)));
		if (pep->kind && pep->kind->sidr && base->addr.sa.sa_family != FAB_AF_IB)
			bind_sidr(pep);
		return 0;
	}
	ret = -errno;
	VRB_WARN(FI_LOG_EP_CTRL, "rdma_bind_addr: %s\n", strerror(errno));
	pep_unbind(base);
	return ret;
}

static void pep_take_id(struct fab_pep *base, void *id)
{
	*(struct rdma_cm_id **) id = pep_of(base)->id;
	pep_of(base)->id = NULL;
	pep_unbind(base);
}

int vrb_pep_take_id(struct fab_fabric *fabric, fid_t handle, struct rdma_cm_id **id)
{
	return fab_pep_take(fabric, handle, pep_take_id, id);
}

static int pep_listen(struct fab_pep *base)
{
	struct vrb_pep *pep = pep_of(base);
	int ret;

	if (rdma_listen(pep->id, base->backlog)) {
		VRB_WARN(FI_LOG_EP_CTRL, "rdma_listen: %s\n", strerror(errno));
		return -errno;
	}
	if (pep->sidr && rdma_listen(pep->sidr, base->backlog))
		VRB_LOG(FI_LOG_INFO, FI_LOG_EP_CTRL, "rdma_listen to the service of datagrams: %s\n", strerror(errno));
	fab_engine_lock(&base->eq->engine);
	ret = fab_source_add(&base->eq->engine, &pep->src, EPOLLIN);
	fab_engine_unlock(&base->eq->engine);
	return ret;
}

static void pep_stop(struct fab_pep *base)
{
	fab_engine_lock(&base->eq->engine);
	fab_source_del(&pep_of(base)->src);
	fab_engine_unlock(&base->eq->engine);
}

static void pep_fini(struct fab_pep *base)
{
	pep_unbind(base);
	rdma_destroy_event_channel(pep_of(base)->channel);
}

static const struct fab_pep_ops pep_ops = {
	.backlog = BACKLOG,
	.bind = pep_bind,
	.unbind = pep_unbind,
	.listen = pep_listen,
	.stop = pep_stop,
	.fini = pep_fini,
	.reject = pep_reject,
	.drop = pep_drop,
	.describe = pep_describe,
};

int vrb_pep_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep_fid, void *context)
{
	struct vrb_pep *pep = calloc(1, sizeof(*pep));
	int ret;

	if (!pep)
		return -FI_ENOMEM;
	pep->kind = kind_of(info);
	pep->ops = pep_ops;
	pep->ops.cm_data_max = pep->kind ? pep->kind->cm_data_max : VRB_CM_DATA_MAX;
	ret = vrb_channel_make(&pep->channel);
	if (ret)
		goto free_pep;
	pep->src = (struct fab_source) { .fd = pep->channel->fd, .ready = pep_ready };
	ret = fab_pep_init(&pep->base, fab_container(fabric, struct fab_fabric, fabric_fid), info, &pep->ops, context);
	if (ret)
		goto destroy_channel;
	*pep_fid = &pep->base.pep_fid;
	return 0;

destroy_channel:
	rdma_destroy_event_channel(pep->channel);
free_pep:
	free(pep);
	return ret;
}
