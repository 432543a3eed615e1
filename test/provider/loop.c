/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * loop: the smallest whole provider, to copy from. FI_EP_RDM endpoints that send messages to endpoints of the same
 * process. common/provider/provider.h says what each function owes to its caller; its order is that of this file,
 * read from the end.
 *
 * An endpoint's address is one of the loopback interface's; its port is a number in `ports`, and no socket has it. A
 * message is copied to the inbox of its destination, which an eventfd wakes. There it waits for a receive,
 * as long as it has to. So a send is complete when it returns, and only receives are ever outstanding.
 *
 * Locks: an endpoint's receives are guarded by the lock of its engine; all inboxes and `ports` by wire_lock, which is
 * taken last. Sender and receiver may be on different engines, and never need both locks.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/bits.h"
#include "common/calls/calls.h"
#include "common/provider/provider.h"

#define IOV_LIMIT	4
#define MESSAGE_MAX	(64 << 20)	/* bytes */
#define INJECT_MAX	4096		/* bytes */
#define QUEUE_SIZE	1024		/* receives posted on an endpoint */
#define OBJECT_CNT	1024

struct loop_ep {
	struct fab_ep base;
	union fab_sockaddr name;	/* asked for; once enabled, in `ports` under its port */
	struct fab_source bell;		/* eventfd: there is something in an inbox that was empty */
	struct fab_list posted;		/* struct receive, oldest first; engine's lock */
	struct fab_pool receives;	/* engine's lock */
	struct fab_list inbox;		/* struct message, oldest first; wire_lock */
};

struct receive {
	struct fab_list link;
	void *context;
	uint64_t flags;
	uint32_t iov_cnt;
	struct iovec iov[IOV_LIMIT];
};

struct message {
	struct fab_list link;
	union fab_sockaddr from;
	uint64_t cq_flags, data;	/* FI_REMOTE_CQ_DATA, and that; or 0 */
	size_t len;
	uint8_t bytes[];
};

static pthread_mutex_t wire_lock = PTHREAD_MUTEX_INITIALIZER;
static struct loop_ep *ports[UINT16_MAX + 1];	/* enabled endpoints; wire_lock */
static struct fi_provider loop_prov;

static struct loop_ep *loop_ep_of(const struct fid *fid)
{
	return fab_container(fab_ep_of(fid), struct loop_ep, base);
}

/* ---- receive ---- */

/* The end of a posted receive: a message, or fail. Engine's lock held. */
static void receive_end(struct loop_ep *ep, struct receive *rx, const struct message *msg,
			const struct fab_cq_fail *fail)
{
	struct fab_comp comp = {
		.context = rx->context, .flags = fab_op_desc[FAB_OP_RECV].cq_flags, .src = FI_ADDR_NOTAVAIL,
	};
	struct fab_cq_fail trunc = { .err = FI_ETRUNC, .prov_errno = FI_ETRUNC };

	for (uint32_t i = 0; msg && i < rx->iov_cnt; i++) {
		size_t part = fab_min(rx->iov[i].iov_len, msg->len - comp.len);

		if (part)
			memcpy(rx->iov[i].iov_base, msg->bytes + comp.len, part);
		comp.len += part;
	}
	if (msg) {
		comp.flags |= msg->cq_flags;
		comp.data = msg->data;
		comp.src = ep->base.caps & FI_SOURCE ? fab_av_find(ep->base.bound.av, &msg->from) : FI_ADDR_NOTAVAIL;
		trunc.olen = msg->len - comp.len;
		fail = trunc.olen ? &trunc : fail;
	}
	if (fail)
		fab_ep_fail(&ep->base, FAB_OP_RECV, &comp, fail);
	else
		fab_ep_complete(&ep->base, FAB_OP_RECV, &comp, fab_ep_rx_wants_comp(&ep->base, rx->flags));
	fab_list_remove(&rx->link);
	fab_pool_put(&ep->receives, rx);
}

/* Let messages that wait meet receives, each in its order. Engine's lock held. */
static void deliver(struct loop_ep *ep)
{
	while (!fab_list_empty(&ep->posted)) {
		struct fab_list *link;

		pthread_mutex_lock(&wire_lock);
		link = fab_list_pop_front(&ep->inbox);
		pthread_mutex_unlock(&wire_lock);
		if (!link)
			return;
		receive_end(ep, fab_list_first(&ep->posted, struct receive, link),
			    fab_container(link, struct message, link), NULL);
		free(fab_container(link, struct message, link));
	}
}

/* Engine's lock held, in a pass. What finds no receive is delivered when one is posted. */
static void bell_rings(struct fab_source *bell, uint32_t events)
{
	eventfd_t rings;

	(void) events;
	eventfd_read(bell->fd, &rings);
	deliver(fab_container(bell, struct loop_ep, bell));
}

static int post_recv_locked(struct loop_ep *ep, const struct fab_op *op)
{
	struct receive *rx;

	if (!ep->base.enabled)
		return -FI_EOPBADSTATE;
	rx = fab_pool_get(&ep->receives);
	if (!rx)
		return fab_pool_full(&ep->receives) ? -FI_EAGAIN : -FI_ENOMEM;
	rx->context = op->context;
	rx->flags = op->flags;
	rx->iov_cnt = op->iov_cnt;
	fab_iov_copy(rx->iov, op->iov, op->iov_cnt);
	fab_list_add_tail(&ep->posted, &rx->link);
	deliver(ep);
	return 0;
}

static ssize_t post_recv(struct fab_ep *base, const struct fab_op *op)
{
	int ret;

	fab_engine_enter(base->engine);
	ret = post_recv_locked(fab_container(base, struct loop_ep, base), op);
	fab_engine_unlock(base->engine);
	return ret;
}

/* Complete the oldest posted receive with this context, or all of them, as cancelled. Engine's lock held. */
static void cancel(struct loop_ep *ep, bool all, const void *context)
{
	const struct fab_cq_fail fail = { .err = FI_ECANCELED, .prov_errno = FI_ECANCELED };
	struct fab_list *link, *next;

	fab_list_for_each_safe(&ep->posted, link, next) {
		struct receive *rx = fab_container(link, struct receive, link);

		if (!all && rx->context != context)
			continue;
		receive_end(ep, rx, NULL, &fail);
		if (!all)
			return;
	}
}

/* ---- send ---- */

static struct message *message_make(const struct loop_ep *ep, const struct fab_op *op, size_t len)
{
	struct message *msg = malloc(sizeof(*msg) + len);

	if (!msg)
		return NULL;
	*msg = (struct message) {
		.from = ep->name, .len = len, .cq_flags = op->flags & FI_REMOTE_CQ_DATA, .data = op->data,
	};
	for (size_t i = 0, at = 0; i < op->iov_cnt; at += op->iov[i++].iov_len) {
		if (op->iov[i].iov_len)
			memcpy(msg->bytes + at, op->iov[i].iov_base, op->iov[i].iov_len);
	}
	return msg;
}

/* Put it into the inbox of who has this address: it is the receiver's then. False: nobody has. */
static bool message_pass(struct message *msg, const union fab_sockaddr *dest)
{
	struct loop_ep *to;

	pthread_mutex_lock(&wire_lock);
	to = ports[fab_addr_port(&dest->sa)];
	if (to && fab_list_empty(&to->inbox))
		eventfd_write(to->bell.fd, 1);
	if (to)
		fab_list_add_tail(&to->inbox, &msg->link);
	pthread_mutex_unlock(&wire_lock);
	return to;
}

static int submit_locked(struct loop_ep *ep, const struct fab_op *op)
{
	const struct fab_cq_fail nobody = {
		.err = FI_ECONNREFUSED, .prov_errno = FI_ECONNREFUSED, .text = "no endpoint has this address",
	};
	struct fab_comp comp = { .context = op->context, .flags = fab_op_desc[op->code].cq_flags };
	size_t len = fab_iov_len(op->iov, op->iov_cnt);
	const union fab_sockaddr *dest;
	struct message *msg;

	if (!ep->base.enabled)
		return -FI_EOPBADSTATE;
	dest = fab_av_addr(ep->base.bound.av, op->addr);
	if (!dest)
		return -FI_EINVAL;
	if (len > (op->flags & FI_INJECT ? ep->base.info->tx_attr->inject_size : ep->base.info->ep_attr->max_msg_size))
		return -FI_EMSGSIZE;
	msg = message_make(ep, op, len);
	if (!msg)
		return -FI_ENOMEM;
	if (message_pass(msg, dest)) {
		fab_ep_complete(&ep->base, op->code, &comp, fab_ep_tx_wants_comp(&ep->base, op));
	} else {
		free(msg);
		fab_ep_fail(&ep->base, op->code, &comp, &nobody);
	}
	return 0;
}

static ssize_t submit(struct fab_ep *base, const struct fab_op *op)
{
	int ret;

	fab_engine_enter(base->engine);
	ret = submit_locked(fab_container(base, struct loop_ep, base), op);
	fab_engine_unlock(base->engine);
	return ret;
}

/* What programs add that says nothing new about a call. */
#define ANY_FLAGS	(FI_MSG | FI_SEND | FI_RECV | FI_COMPLETION | FI_MORE)

static const struct fab_calls calls = {
	.prov = &loop_prov, .submit = submit, .post_recv = post_recv, .iov_limit = IOV_LIMIT,
	.send_flags = ANY_FLAGS | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_REMOTE_CQ_DATA,
	.recv_flags = ANY_FLAGS,
};

static struct fi_ops_msg msg_ops = FAB_CALLS_MSG;

/* ---- endpoints ---- */

/* Take the port of ep->name, or any that is free. */
static int port_take(struct loop_ep *ep)
{
	uint32_t port = fab_addr_port(&ep->name.sa), last = port ? port : UINT16_MAX;

	pthread_mutex_lock(&wire_lock);
	for (port = port ? port : 1; port <= last && ports[port]; port++)
		;
	if (port <= last)
		ports[port] = ep;
	pthread_mutex_unlock(&wire_lock);
	if (port > last)
		return -FI_EADDRINUSE;
	fab_addr_set_port(&ep->name.sa, (uint16_t) port);
	fab_ip_fill_addr(&loop_prov, "lo", &ep->name, ep->base.info);
	return 0;
}

static int ep_enable(struct loop_ep *ep)
{
	int ret = fab_ep_check_enable(&ep->base);

	if (ret)
		return ret;
	ep->bell.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ep->bell.fd < 0)
		return -errno;
	fab_engine_lock(ep->base.engine);
	ret = fab_source_add(ep->base.engine, &ep->bell, EPOLLIN);
	if (!ret)
		ret = port_take(ep);	/* last: from here on messages come */
	ep->base.enabled = !ret;
	if (ret)
		fab_source_del(&ep->bell);
	fab_engine_unlock(ep->base.engine);
	if (ret)
		close(ep->bell.fd);
	return ret;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	return command == FI_ENABLE ? ep_enable(loop_ep_of(fid)) : fab_ep_control(fid, command, arg);
}

static int ep_close(struct fid *fid)
{
	struct loop_ep *ep = loop_ep_of(fid);
	struct fab_list *link;
	int ret = fab_ep_check_close(&ep->base);

	if (ret)
		return ret;
	if (ep->base.enabled) {
		pthread_mutex_lock(&wire_lock);
		ports[fab_addr_port(&ep->name.sa)] = NULL;	/* nobody adds to the inbox any more */
		pthread_mutex_unlock(&wire_lock);
	}
	fab_engine_lock(ep->base.engine);
	if (ep->base.enabled)
		fab_source_del(&ep->bell);
	cancel(ep, true, NULL);
	fab_engine_unlock(ep->base.engine);
	if (ep->base.enabled)
		close(ep->bell.fd);
	while ((link = fab_list_pop_front(&ep->inbox)))
		free(fab_container(link, struct message, link));
	if (ep->base.bound.eq)
		fab_eq_purge(ep->base.bound.eq, fid, NULL);
	fab_pool_fini(&ep->receives);
	fab_ep_fini(&ep->base);
	free(ep);
	return 0;
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct loop_ep *ep = loop_ep_of(fid);

	fab_engine_lock(ep->base.engine);
	cancel(ep, false, context);
	fab_engine_unlock(ep->base.engine);
	return 0;
}

static int ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct loop_ep *ep = loop_ep_of(fid);

	return fab_ep_take_name(&ep->base, &ep->name, addr, addrlen);
}

static int ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	return fab_name_give(&loop_ep_of(fid)->name, addr, addrlen);
}

static struct fi_ops ep_fid_ops = { .close = ep_close, .bind = fab_ep_bind, .control = ep_control };
static struct fi_ops_ep ep_ops = { .cancel = ep_cancel, .getopt = fab_ep_getopt, .setopt = fab_ep_setopt };
static struct fi_ops_cm cm_ops = { .setname = ep_setname, .getname = ep_getname };
static int check(const struct fi_info *info, uint32_t version);

static int ep_init(struct fab_ep *base, struct fab_domain *domain, const struct fi_info *info, void *context)
{
	const struct fab_ep_ops ops = {
		.fid = &ep_fid_ops, .ep = &ep_ops, .cm = &cm_ops, .msg = info->caps & FI_MSG ? &msg_ops : NULL,
	};
	struct loop_ep *ep = fab_container(base, struct loop_ep, base);
	int ret = check(info, domain->fabric->fabric_fid.api_version);

	if (!ret)
		ret = fab_ep_init(base, domain, info, &ops, context);
	if (ret)
		return ret;
	ret = fab_name_take(&loop_prov, &ep->name, info, info->src_addr, info->src_addrlen);
	if (ret) {
		fab_ep_fini(base);
		return ret;
	}
	ep->bell.ready = bell_rings;
	fab_list_init(&ep->posted);
	fab_list_init(&ep->inbox);
	fab_pool_init(&ep->receives, &(struct fab_pool_attr) { .size = sizeof(struct receive), .chunk_cnt = 16,
		      .max_cnt = info->rx_attr->size });
	return 0;
}

static int ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context)
{
	return fab_ep_open(domain, info, sizeof(struct loop_ep), ep_init, ep, context);
}

/* ---- domain and fabric: prov/common has all but the way to endpoints ---- */

static struct fi_ops domain_fid_ops = {
	.close = fab_domain_close, .bind = fab_domain_bind, .control = fab_domain_control,
	.ops_set = fab_domain_set_ops,
};
static struct fi_ops_domain domain_ops = {
	.av_open = fab_av_open, .cq_open = fab_cq_open, .endpoint = ep_open, .cntr_open = fab_cntr_open,
	.poll_open = fab_poll_open, .endpoint2 = fab_endpoint2,
};

static int domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **domain, void *context)
{
	static const struct fab_domain_ops ops = { .fid = &domain_fid_ops, .domain = &domain_ops, .mr = &fab_mr_ops };

	return fab_domain_open(fab_container(fid, struct fab_fabric, fabric_fid), info, &ops, domain, context);
}

static struct fi_ops fabric_fid_ops = { .close = fab_fabric_close };
static struct fi_ops_fabric fabric_ops = {
	.domain = domain_open, .eq_open = fab_eq_open, .wait_open = fab_wait_open, .trywait = fab_trywait,
	.domain2 = fab_domain2,
};

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return fab_fabric_open(&loop_prov, attr, &fabric_fid_ops, &fabric_ops, fabric, context);
}

/* ---- fi_getinfo ---- */

static void fill(const struct fab_ip *ip, struct fi_info *info, const struct fab_netif *netif, enum fi_ep_type type)
{
	(void) ip, (void) netif, (void) type;
	*info->tx_attr = (struct fi_tx_attr) {
		.caps = FI_MSG | FI_SEND, .inject_size = INJECT_MAX, .size = QUEUE_SIZE, .iov_limit = IOV_LIMIT,
		.op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_MORE,
		.msg_order = FI_ORDER_SAS, .comp_order = FI_ORDER_STRICT,
	};
	*info->rx_attr = (struct fi_rx_attr) {
		.caps = FI_MSG | FI_RECV | FI_SOURCE, .size = QUEUE_SIZE, .iov_limit = IOV_LIMIT,
		.op_flags = FI_COMPLETION | FI_MORE, .msg_order = FI_ORDER_SAS, .comp_order = FI_ORDER_STRICT,
	};
	*info->ep_attr = (struct fi_ep_attr) {
		.protocol = FI_PROTO_UNSPEC, .max_msg_size = MESSAGE_MAX, .tx_ctx_cnt = 1, .rx_ctx_cnt = 1,
	};
	*info->domain_attr = (struct fi_domain_attr) {
		.threading = FI_THREAD_SAFE, .control_progress = FI_PROGRESS_AUTO, .data_progress = FI_PROGRESS_AUTO,
		.resource_mgmt = FI_RM_ENABLED, .mr_key_size = FAB_MR_KEY_SIZE, .cq_data_size = sizeof(uint64_t),
		.cq_cnt = OBJECT_CNT, .ep_cnt = OBJECT_CNT, .tx_ctx_cnt = OBJECT_CNT, .rx_ctx_cnt = OBJECT_CNT,
		.max_ep_tx_ctx = 1, .max_ep_rx_ctx = 1, .cntr_cnt = OBJECT_CNT, .mr_iov_limit = FAB_MR_IOV_LIMIT,
		.caps = FI_LOCAL_COMM, .mr_cnt = OBJECT_CNT, .max_cntr_value = UINT64_MAX,
		.max_err_cntr_value = UINT64_MAX,
	};
}

static bool place(const struct fab_ip *ip, const struct fab_netif *netif, char *domain, char *fabric)
{
	(void) ip, (void) domain, (void) fabric;
	return netif->loopback;
}

static const enum fi_ep_type types[] = { FI_EP_RDM };
static const struct fab_ip ip = {
	.prov = &loop_prov, .types = types, .type_cnt = fab_countof(types), .place = place, .fill = fill,
	.nic = fab_nic_open, .offer = { .secondary_caps = FI_SOURCE | FI_LOCAL_COMM },
};

/* Does info ask for nothing that loop does not offer? */
static int check(const struct fi_info *info, uint32_t version)
{
	return info->ep_attr->type == FI_EP_RDM ? fab_ip_check(&ip, info, version) : -FI_EINVAL;
}

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	return fab_ip_getinfo(&ip, version, node, service, flags, hints, info);
}

/* ---- the provider ---- */

static struct fi_provider loop_prov = {
	.name = "loop", .version = FI_VERSION(1, 0), .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = getinfo, .fabric = fabric_open,
};

FI_EXT_INI
{
	return &loop_prov;
}
