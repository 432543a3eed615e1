/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * loop: the smallest whole provider, to copy from. FI_EP_RDM endpoints send messages to endpoints of the same process.
 * common/provider/provider.h says what each function must do for its caller. Here helpers come first, so the entry of
 * the provider is at the end.
 *
 * An endpoint's address is one of the loopback interface; its port is an index of `ports`, and no socket has it. A send
 * copies its message to the inbox of the destination, rings the bell of the destination's engine, and is complete. The
 * engine then gives the message to a posted receive, or keeps it until one is posted (common/receive).
 *
 * Locks: the lock of an endpoint's engine guards its receives and kept messages. wire_lock guards all inboxes and
 * `ports`, and is taken last. Sender and receiver may be on different engines, and never need both locks.
 */
#include <stdlib.h>
#include "common/calls/calls.h"
#include "common/provider/provider.h"

#define IOV_LIMIT	4
#define QUEUE_SIZE	1024		/* receives posted on an endpoint */

struct loop_ep {
	struct fab_ep base;
	struct fab_bell bell;		/* rung when a message comes to the inbox */
	struct fab_recv recv;		/* posted receives and kept messages; engine's lock */
	struct fab_list inbox;		/* struct message, oldest first; wire_lock */
};

struct message {
	struct fab_kept kept;
	struct fab_list link;		/* in an inbox */
	struct fab_msg about;
	union fab_sockaddr from;
	uint8_t bytes[];
};

static pthread_mutex_t wire_lock = PTHREAD_MUTEX_INITIALIZER;
static struct loop_ep *ports[UINT16_MAX + 1];	/* enabled endpoints; wire_lock */
static struct fi_provider loop_prov;

/* ---- fi_getinfo(3): offers, each attribute at its most ---- */

static const struct fi_info most = {
	.tx_attr = &(struct fi_tx_attr) {
		.caps = FI_MSG | FI_SEND, .inject_size = 4096, .size = QUEUE_SIZE, .iov_limit = IOV_LIMIT,
		.op_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_MORE,
		.msg_order = FI_ORDER_SAS, .comp_order = FI_ORDER_STRICT,
	},
	.rx_attr = &(struct fi_rx_attr) {
		.caps = FI_MSG | FI_RECV | FI_SOURCE, .size = QUEUE_SIZE, .iov_limit = IOV_LIMIT,
		.op_flags = FI_COMPLETION | FI_MORE, .msg_order = FI_ORDER_SAS, .comp_order = FI_ORDER_STRICT,
	},
	.ep_attr = &(struct fi_ep_attr) { .max_msg_size = 64 << 20, .tx_ctx_cnt = 1, .rx_ctx_cnt = 1 },
	.domain_attr = &(struct fi_domain_attr) {
		FAB_DOMAIN_LIMITS(1024), .control_progress = FI_PROGRESS_AUTO, .data_progress = FI_PROGRESS_AUTO,
		.cq_data_size = sizeof(uint64_t), .caps = FI_LOCAL_COMM,
	},
};

static const struct fab_ip ip = {
	.prov = &loop_prov, .iface = "lo", .types = &(const enum fi_ep_type) { FI_EP_RDM }, .type_cnt = 1,
	.most = &most, .nic = fab_nic_open, .offer = { .secondary_caps = FI_SOURCE | FI_LOCAL_COMM },
};

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		   const struct fi_info *hints, struct fi_info **info)
{
	return fab_ip_getinfo(&ip, version, node, service, flags, hints, info);
}

/* ---- receive: all with the engine's lock held ---- */

/* A receive has taken the message. */
static bool take(struct fab_recv *recv, struct fab_kept *kept)
{
	struct message *msg = fab_container(kept, struct message, kept);

	msg->about.src = recv->ep->report.want_src ? fab_av_find(recv->ep->bound.av, &msg->from) : FI_ADDR_NOTAVAIL;
	fab_into_copy(&kept->into, 0, msg->bytes, msg->about.len);
	fab_rx_finish(recv, recv->ep, &kept->into, &msg->about, NULL);
	free(msg);
	return true;
}

static void drop(struct fab_recv *recv, struct fab_kept *kept)
{
	(void) recv;
	free(fab_container(kept, struct message, kept));
}

static const struct fab_recv_ops recv_ops = { .iov_max = IOV_LIMIT, .iov_own = IOV_LIMIT, .take = take, .drop = drop };

/* Give the messages in the inbox to receives, or keep them. */
static void inbox_empty(struct fab_bell *bell)
{
	struct loop_ep *ep = fab_container(bell, struct loop_ep, bell);
	struct fab_list arrived = FAB_LIST_INIT(arrived), *link;

	pthread_mutex_lock(&wire_lock);
	fab_list_splice_tail(&arrived, &ep->inbox);
	pthread_mutex_unlock(&wire_lock);
	while ((link = fab_list_pop_front(&arrived))) {
		struct message *msg = fab_container(link, struct message, link);
		struct fab_rx *rx = fab_recv_find(&ep->recv, FAB_CLASS_MSG, 0, FI_ADDR_NOTAVAIL);

		fab_recv_keep(&ep->recv, &msg->kept, &msg->about, FI_ADDR_NOTAVAIL);
		if (rx)
			fab_kept_take_with(&ep->recv, &msg->kept, rx, &recv_ops);
	}
}

static int post_recv(struct fab_ep *base, const struct fab_op *op)
{
	struct fab_recv *recv = &fab_container(base, struct loop_ep, base)->recv;

	if (!base->enabled)
		return -FI_EOPBADSTATE;
	return fab_recv_post_with(recv, &recv->pool, op, FI_ADDR_UNSPEC, fab_recv_find_kept, &recv_ops);
}

/* ---- send ---- */

static struct message *message_make(const struct fab_ep *ep, const struct fab_op *op, size_t len)
{
	struct message *msg = malloc(sizeof(*msg) + len);

	if (!msg)
		return NULL;
	msg->from = ep->name;
	msg->about = (struct fab_msg) {
		.class = FAB_CLASS_MSG, .len = len, .flags = op->flags & FI_REMOTE_CQ_DATA, .data = op->data,
	};
	fab_iov_gather(msg->bytes, op->iov, 0, len);
	return msg;
}

/* Engine's lock held. */
static int submit(struct fab_ep *ep, const struct fab_op *op)
{
	struct fab_comp comp = { .context = op->context, .flags = fab_op_desc[op->code].cq_flags };
	size_t len = fab_iov_len(op->iov, op->iov_cnt);
	const union fab_sockaddr *dest;
	struct message *msg;
	struct loop_ep *to;

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	dest = fab_av_addr(ep->bound.av, op->addr);
	if (!dest)
		return -FI_EINVAL;
	if (len > (op->flags & FI_INJECT ? ep->info->tx_attr->inject_size : ep->info->ep_attr->max_msg_size))
		return -FI_EMSGSIZE;
	msg = message_make(ep, op, len);
	if (!msg)
		return -FI_ENOMEM;
	pthread_mutex_lock(&wire_lock);
	to = ports[fab_addr_port(&dest->sa)];
	if (to) {
		fab_list_add_tail(&to->inbox, &msg->link);
		fab_bell_ring(&to->bell);
	}
	pthread_mutex_unlock(&wire_lock);
	if (to) {
		fab_ep_complete(ep, op->code, &comp, fab_ep_tx_wants_comp(ep, op));
	} else {
		free(msg);
		fab_ep_fail(ep, op->code, &comp, &(struct fab_cq_fail) {
			    .err = FI_ECONNREFUSED, .prov_errno = FI_ECONNREFUSED, .text = "nobody has this address" });
	}
	return 0;
}

FAB_CALLS_LOCKED(submit_locked, submit)
FAB_CALLS_LOCKED(post_recv_locked, post_recv)

static const struct fab_calls calls = {
	.prov = &loop_prov, .submit = submit_locked, .post_recv = post_recv_locked, .iov_limit = IOV_LIMIT,
	.send_flags = FI_MSG | FI_SEND | FI_COMPLETION | FI_MORE | FI_INJECT | FI_INJECT_COMPLETE |
		      FI_TRANSMIT_COMPLETE | FI_REMOTE_CQ_DATA,
	.recv_flags = FI_MSG | FI_RECV | FI_COMPLETION | FI_MORE,
};

/* ---- endpoints ---- */

/* Take the port of the endpoint's name, or any that is free. */
static int port_take(struct loop_ep *ep)
{
	uint32_t port = fab_addr_port(&ep->base.name.sa), last = port ? port : UINT16_MAX;

	pthread_mutex_lock(&wire_lock);
	for (port = port ? port : 1; port <= last && ports[port]; port++)
		;
	if (port <= last)
		ports[port] = ep;
	pthread_mutex_unlock(&wire_lock);
	if (port > last)
		return -FI_EADDRINUSE;
	fab_addr_set_port(&ep->base.name.sa, (uint16_t) port);
	fab_ip_fill_addr(&loop_prov, ip.iface, &ep->base.name, ep->base.info);
	return 0;
}

static int ep_enable(struct fab_ep *base)
{
	struct loop_ep *ep = fab_container(base, struct loop_ep, base);
	int ret = fab_ep_check_enable(base);

	if (ret)
		return ret;
	fab_engine_lock(base->engine);
	ret = fab_bell_open(&ep->bell, base->engine, inbox_empty);
	if (!ret)
		ret = port_take(ep);	/* last: from here on messages come */
	if (ret)
		fab_bell_close(&ep->bell);
	base->enabled = !ret;
	fab_engine_unlock(base->engine);
	return ret;
}

static int ep_close(struct fid *fid)
{
	struct loop_ep *ep = fab_container(fab_ep_of(fid), struct loop_ep, base);
	int ret = fab_ep_check_close(&ep->base);

	if (ret)
		return ret;
	fab_engine_lock(ep->base.engine);
	pthread_mutex_lock(&wire_lock);
	if (ep->base.enabled)
		ports[fab_addr_port(&ep->base.name.sa)] = NULL;	/* nothing comes to the inbox any more */
	pthread_mutex_unlock(&wire_lock);
	fab_bell_close(&ep->bell);
	fab_recv_flush(&ep->recv, FI_ECANCELED);
	inbox_empty(&ep->bell);
	fab_recv_drop_all(&ep->recv);
	fab_engine_unlock(ep->base.engine);
	fab_recv_fini(&ep->recv);
	fab_ep_fini(&ep->base);
	free(ep);
	return 0;
}

static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct loop_ep *ep = fab_container(fab_ep_of(fid), struct loop_ep, base);

	fab_engine_lock(ep->base.engine);
	fab_recv_cancel(&ep->recv, context);
	fab_engine_unlock(ep->base.engine);
	return 0;
}

static const struct fab_ep_ops ep_tables = {
	.fid = &(struct fi_ops) { .close = ep_close, .bind = fab_ep_bind, .control = fab_ep_control },
	.ep = &(struct fi_ops_ep) { .cancel = ep_cancel, .getopt = fab_ep_getopt, .setopt = fab_ep_setopt },
	.cm = &(struct fi_ops_cm) { .setname = fab_ep_setname, .getname = fab_ep_getname },
	.msg = &(struct fi_ops_msg) FAB_CALLS_MSG, .enable = ep_enable,
};

static int ep_init(struct fab_ep *base, struct fab_domain *domain, const struct fi_info *info, void *context)
{
	struct loop_ep *ep = fab_container(base, struct loop_ep, base);
	int ret = fab_ip_check(&ip, info, domain->fabric->fabric_fid.api_version);

	if (!ret)
		ret = fab_ep_init(base, domain, info, &ep_tables, context);
	if (ret)
		return ret;
	fab_list_init(&ep->inbox);
	ret = fab_recv_init(&ep->recv, base, info->rx_attr->size, &recv_ops);
	if (ret)
		fab_ep_fini(base);
	return ret;
}

/* ---- domain, fabric, provider: prov/common has all but the way to endpoints ---- */

static const struct fab_domain_ops domain_tables = {
	.fid = &(struct fi_ops) FAB_DOMAIN_FID(fab_domain_close, fab_domain_control),
	.domain = &(struct fi_ops_domain) { FAB_DOMAIN_SLOTS, .av_open = fab_av_open, .cq_open = fab_cq_open },
	.mr = &fab_mr_ops, .ep_init = ep_init, .ep_size = sizeof(struct loop_ep),
};
static struct fi_ops_fabric fabric_ops = { FAB_FABRIC_SLOTS, .domain = fab_domain_open };

static int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	return fab_fabric_open(&loop_prov, attr, &fabric_ops, &domain_tables, fabric, context);
}

static struct fi_provider loop_prov = {
	.name = "loop", .version = FI_VERSION(1, 0), .fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.getinfo = getinfo, .fabric = fabric_open,
};

FI_EXT_INI
{
	return &loop_prov;
}
